/*
 * A batch that has been committed: what must hold of it now, and what is kept in mind for later
 * judgement.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <string.h>

/* How many of BEFORE's task events AFTER has still; the oldest go first. */
static unsigned notes_kept(const struct task *before, const struct task *after)
{
    unsigned kept = before->events_count;

    while (kept > 0 && (kept > after->events_count ||
                        memcmp(&before->events[before->events_count - kept], after->events,
                               kept * sizeof(after->events[0])) != 0))
        kept--;
    return kept;
}

/* What users are shown from now on. */
static void note_shown(struct sim *sim, const struct journal_record *item)
{
    struct sim_whom whom = sim_find(sim, &item->id);
    const struct machine *record = core_find(sim->core, &item->id);

    if (whom.kind != MACHINE_TASK || item->record == NULL)
        return;
    const struct task *task = task_of(item->record);
    unsigned from = record == NULL ? 0 : notes_kept(task_of(record), task);
    for (unsigned i = from; i < task->events_count; i++)
        sim_fact(sim, SIM_FACT_NOTES, &whom, task->events[i].type);
}

static void note_task(struct sim *sim, const struct sim_whom *whom,
                      const struct journal_event *event, const struct machine *record)
{
    struct sim_task_state *task = sim_task_of(sim, whom);

    if (event->after == T_STARTING && event->before != T_RECOVERING && event->before != T_STARTING)
        task->hooked = 0;
    if (event->after == T_LOOKING && event->before != T_LOOKING)
        task->looking_turn = event->turn;
    if (record != NULL)
        sim_check_tries(sim, whom, event, task_of(record));
    if (event->after == T_DEAD || event->after == T_OWING)
        task->dead = 1;
    if (event->after == T_WAITING)
        task->dead = 0; /* its alloc runs it again */
    if (event->after != T_DEAD)
        return;
    if (record != NULL && (task_of(record)->define.hooks_stop & ~task->stopped) != 0)
        sim_violate(sim, 24, "%s is dead, and not all of its stop hooks have succeeded",
                    event->id.text);
}

static void note_alloc(struct sim *sim, const struct sim_whom *whom,
                       const struct journal_event *event, const struct machine *record)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);
    uint8_t kind = event->event.kind;

    if (kind == AE_ASSIGN || kind == AE_AUTHORIZED || kind == AE_STOP)
        alloc->fresh = sim->incarnation;
    alloc->checks_pass = sim_checks_after(alloc->checks_pass, &event->event);
    sim_check_contact(sim, whom, event, record);
    if (kind == AE_AUTHORIZED)
        alloc->seen_index = alloc->offered_index;
    if (kind == AE_STATUS_ACKED)
        alloc->acked_digest = alloc->confirmed_digest;
    if (event->before == A_ABSENT && !alloc->specified && !alloc->damaged)
        sim_violate(sim, 15, "%s is stored without its specification", event->id.text);
    if (event->before == A_ABSENT)
        alloc->unknown = 0;
    if ((event->after == A_PREPARING && event->before != A_PREPARING) || kind == AE_UPDATE)
        alloc->asked_ms = event->now_ms;
    if (event->after == A_GONE)
        alloc->gone = 1;
    if (event->after != A_TERMINAL || event->before == A_TERMINAL || record == NULL)
        return;
    alloc->ended = 1;
    alloc->unasked = !alloc_of(record)->stop_wanted;
    alloc->ended_turn = event->turn;
    if ((alloc_of(record)->assign.hooks_postrun & ~(uint32_t)alloc->torn) != 0)
        sim_violate(sim, 24, "%s has ended, and not all of its last hooks ran", event->id.text);
    if (alloc->network)
        sim_violate(sim, 33, "%s has ended, and its network is left", event->id.text);
    const char *missing = sim_health_missing(alloc_of(record));
    if (missing != NULL && !alloc->damaged)
        sim_violate(sim, 39, "%s has ended by itself, %s", event->id.text, missing);
    sim_check_outcome(sim, whom, alloc_of(record));
}

/* An alloc and its tasks are of one version, the one that the newest commit about it has named. */
static void check_version(struct sim *sim, const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);
    const struct machine *record = sim_store_find(&sim->store, &alloc->id);

    if (!sim->script->server || record == NULL || alloc->damaged ||
        alloc_of(record)->assign.condemned)
        return;
    for (int t = 0; t < alloc->tasks_count; t++) {
        const struct machine *task = sim_store_find(&sim->store, &alloc->tasks[t].id);
        if (task != NULL &&
            !sim_runs_by(alloc, t, &task_of(task)->define, alloc_of(record)->assign.job_version))
            sim_violate(sim, 15, "%s runs by another version than its alloc",
                        alloc->tasks[t].id.text);
    }
}

void sim_check_committed(struct sim *sim, const struct journal_batch *batch)
{
    size_t record_at = 0;

    for (size_t i = 0; i < sim->attempts.ending_count; i++)
        sim->attempts.ending[i]->told = 1;
    sim->attempts.ending_count = 0;
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        struct sim_whom whom = sim_find(sim, &event->id);
        const struct machine *record = sim_new_record(batch, &event->id, &record_at);
        if (whom.kind == MACHINE_TASK)
            note_task(sim, &whom, event, record);
        if (whom.kind == MACHINE_ALLOC)
            note_alloc(sim, &whom, event, record);
        if (whom.kind == MACHINE_ALLOC && event->event.kind == AE_UPDATE)
            check_version(sim, &whom);
        if (whom.kind == MACHINE_VOLUME && sim_sees_mount(event))
            sim_claim_of(sim, &whom)->seen_turn = event->turn;
        if (whom.kind == MACHINE_VOLUME && event->before == V_ABSENT)
            sim_claim_of(sim, &whom)->made_turn = event->turn;
        if (whom.kind == MACHINE_VOLUME && event->after == V_UNSTAGING &&
            event->before != V_UNSTAGING)
            sim_claim_of(sim, &whom)->unstaging_turn = event->turn;
        if (whom.kind == MACHINE_PLUGIN && event->before == P_ABSENT)
            sim_plugin_of(sim, &whom)->launched = 0;
    }
    for (size_t i = 0; i < batch->records_count; i++)
        note_shown(sim, &batch->records[i]);
    for (int a = 0; a < sim->allocs_count && batch->specs_count > 0; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (!alloc->specified && !alloc->damaged && sim_store_has(&sim->store, &alloc->id))
            sim_violate(sim, 15, "the specification of %s is gone before it", alloc->id.text);
    }
}
