/*
 * Allocs that end when they have had no contact to the server for too long: not before, by the
 * words of the server that were stored, and not later either.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

/* A record may be older than what was stored once, or made anew. */
static bool is_known(const struct sim_alloc_state *alloc)
{
    return alloc->contact_ms != 0 && !alloc->damaged && !alloc->older;
}

void sim_check_contact(struct sim *sim, const struct sim_whom *whom,
                       const struct journal_event *event, const struct machine *record)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);
    uint8_t kind = event->event.kind;
    uint64_t after_ms = record == NULL ? 0 : alloc_of(record)->assign.stop_after_ms;

    if (kind == AE_ASSIGN || kind == AE_AUTHORIZED || kind == AE_UPDATE || kind == AE_CONTACT)
        alloc->contact_ms = event->now_ms;
    if (kind != AE_TIMEOUT || record == NULL || !alloc_of(record)->cut_off || alloc->cut_off ||
        !is_known(alloc))
        return;
    alloc->cut_off = 1;
    if (event->now_ms < alloc->contact_ms + after_ms)
        sim_violate(sim, 36, "%s is ended for want of a server before its time", alloc->id.text);
    if (after_ms == 0 || event->before == event->after || alloc_state_ends(event->before))
        sim_violate(sim, 36, "%s is ended for want of a server, which it does not mind",
                    alloc->id.text);
}

void sim_check_cut_off(struct sim *sim)
{
    uint64_t node_ms = sim_node_ms(sim), timer_ms = core_deadline_ms(sim->core);

    if (core_in_parts(sim->core) || (timer_ms != 0 && timer_ms <= node_ms))
        return; /* there is another turn at once */
    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *state = &sim->allocs[a];

        if (!is_known(state))
            continue;
        const struct alloc *alloc = core_alloc(sim->core, state->id.text);
        if (alloc == NULL || alloc->assign.stop_after_ms == 0 ||
            alloc_state_ends(alloc->machine.state))
            continue;
        if (node_ms >= state->contact_ms + alloc->assign.stop_after_ms)
            sim_violate(sim, 36, "%s goes on without a server for too long", state->id.text);
    }
}
