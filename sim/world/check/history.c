/*
 * What retention may do to a log (core/retention.h), and what it must.
 *
 * Each event says what record it left, by its digest, and was stepped again when it was stored.  So
 * a commit that takes events away has to store a base for each machine among them, with the digest
 * of the last of its events that go, and for no other machine.  When the daemon has died, bases and
 * log are stepped from nothing else and compared with the records, as a journal is verified.
 */
#include "base/list.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <string.h>

enum { DEATHS_OF_A_LOOK = 4 };

static bool is_same(const struct machine *one, const struct machine *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    return fsm_record_size(one) == fsm_record_size(other) &&
           memcmp(one, other, fsm_record_size(one)) == 0;
}

/* The place of ID's base, COUNT: there is none.  They are in order (core/retention.h). */
static size_t base_of(const struct journal_batch *batch, const struct machine_id *id)
{
    size_t low = 0, high = batch->bases_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = machine_id_order(&batch->bases[middle].id, id);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return batch->bases_count;
}

/* EVENT is the newest of BASE's that go, NULL: none does. */
static void check_base(struct sim *sim, const struct journal_record *base,
                       const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)base->id.kind);

    if (event == NULL) {
        sim_violate(sim, 20, "%s gets a base and none of its events is taken away", base->id.text);
        return;
    }
    bool ended = (def->states[event->after].flags & FSM_FINAL) != 0;
    if (ended ? base->record != NULL
              : base->record == NULL || fsm_digest(base->record) != event->digest)
        sim_violate(sim, 20, "the base of %s is not what its event %llu left", base->id.text,
                    (unsigned long long)event->sequence);
}

void sim_check_trim(struct sim *sim, const struct journal_batch *batch)
{
    struct sim_history *history = &sim->store.history;
    uint64_t below = batch->trim_below;

    if (below > history->next) {
        sim_violate(sim, 20, "event %llu is taken away before it is stored",
                    (unsigned long long)history->next);
        return;
    }
    history->goes.count = 0;
    for (size_t i = 0; i < batch->bases_count; i++)
        *list_more(&history->goes) = NULL;
    for (uint64_t at = history->first; at < below; at++) {
        const struct journal_event *event = sim_history_at(history, at);
        size_t place = base_of(batch, &event->id);
        if (place < batch->bases_count)
            history->goes.items[place] = event;
        else
            sim_violate(sim, 20, "event %llu of %s is taken away without a base",
                        (unsigned long long)at, event->id.text);
    }
    for (size_t i = 0; i < batch->bases_count; i++)
        check_base(sim, &batch->bases[i], history->goes.items[i]);
}

void sim_check_bound(struct sim *sim, uint64_t events_before, const struct journal_batch *batch)
{
    const struct sim_history *history = &sim->store.history;
    uint64_t events = history->next - history->first;

    if (history->limit == 0 || events <= history->limit)
        return;
    if (events != batch->events_count && events >= events_before) /* nothing older, or fewer */
        sim_violate(sim, 20, "the log has %llu events, and does not shrink to its %llu",
                    (unsigned long long)events, (unsigned long long)history->limit);
}

/* --- from what is stored alone --- */

/* What begins a machine takes the place of one that ended, or whose record was put aside. */
static bool step(struct replay *replay, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    if ((def->states[event->before].flags & FSM_INITIAL) != 0)
        replay_forget(replay, &event->id);
    return replay_step(replay, event) == REPLAY_SAME;
}

static bool copy_base(void *ctx, const struct machine_id *id, const struct machine *record)
{
    replay_base(ctx, id, record);
    return true;
}

static bool was_put_aside(const struct sim_history *history, const struct machine_id *id)
{
    for (size_t i = 0; i < history->aside.count; i++) {
        if (machine_id_equal(&history->aside.items[i], id))
            return true;
    }
    return false;
}

static bool is_stored(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct sim *sim = ctx;

    (void)record; /* compared below, from the side of what is stored */
    if (!sim_store_has(&sim->store, id) && !was_put_aside(&sim->store.history, id))
        sim_violate(sim, 20, "bases and log give %s, which is not there", id->text);
    return true;
}

/* Stepping it all costs as much as it was to come that far: one death in some is enough, and a log
 * that was never trimmed has been stepped as it was written. */
static bool is_looked_at(const struct sim *sim)
{
    return sim->store.history.first > sim->store.history.begin &&
           (sim->script->seed + sim->incarnation) % DEATHS_OF_A_LOOK == 0;
}

void sim_check_history(struct sim *sim)
{
    const struct sim_history *history = &sim->store.history;
    struct replay *replay = history->again;

    if (!is_looked_at(sim))
        return;
    replay_clear(replay);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(history->bases, (enum machine_kind)kind, copy_base, replay);
    for (uint64_t at = history->first; at < history->next; at++) {
        if (!step(replay, sim_history_at(history, at)))
            sim_violate(sim, 20, "event %llu does not replay from the bases",
                        (unsigned long long)at);
    }
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        replay_each(replay, (enum machine_kind)kind, is_stored, sim);
    for (size_t i = 0; i < sim->store.count; i++) {
        const struct sim_stored *item = sim->store.items[i];
        if (!item->damaged && !is_same(item->record, replay_find(replay, &item->id)))
            sim_violate(sim, 20, "bases and log do not give the record of %s", item->id.text);
    }
}
