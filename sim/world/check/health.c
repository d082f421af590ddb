/*
 * The health of allocs for which somebody waits: said once to each deployment, and what is said is
 * true of the payloads themselves, whatever the records say of them.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

/* The task as it is with BATCH, NULL: it has no record. */
static const struct task *task_in(const struct sim *sim, const struct journal_batch *batch,
                                  const struct machine_id *id)
{
    const struct machine *record = core_find(sim->core, id);

    for (size_t i = 0; i < batch->records_count; i++) {
        if (machine_id_equal(&batch->records[i].id, id))
            record = batch->records[i].record;
    }
    return record == NULL ? NULL : task_of(record);
}

/* Why nobody can say that TASK, number T of WHOM, has run for LEAST_MS, or NULL. */
static const char *not_running(struct sim *sim, const struct sim_whom *whom, int t,
                               const struct task *task, uint64_t least_ms)
{
    if (task == NULL || task->failed)
        return "a task of it has failed";
    bool aside = task->define.lifecycle == LIFECYCLE_PRESTART ||
                 task->define.lifecycle == LIFECYCLE_POSTSTART;
    if (task->define.lifecycle == LIFECYCLE_POSTSTOP || (aside && task->run_state == TASK_RUN_DEAD))
        return NULL;
    const struct sim_attempt *attempt = sim_attempt(sim, whom->alloc, t, task->machine.generation);
    if (attempt == NULL || attempt->starts == 0)
        return "a task of it has never run";
    if (attempt->reported != sim->incarnation || task->exit_seen)
        return "nobody knows that a task of it runs";
    bool known = attempt->began_ms != 0;
    return known && sim->now_ms < attempt->began_ms + least_ms
               ? "a task of it has not run for so long"
               : NULL;
}

static bool is_updated(const struct journal_batch *batch, const struct machine_id *id)
{
    for (size_t i = 0; i < batch->events_count; i++) {
        if (batch->events[i].event.kind == AE_UPDATE && machine_id_equal(&batch->events[i].id, id))
            return true;
    }
    return false;
}

uint64_t sim_checks_after(uint64_t before, const struct fsm_event *event)
{
    if (event->kind == AE_CHECKED)
        return ((const struct checked *)event->payload)->pass;
    if (event->kind == AE_UPDATE)
        return 0;
    if (event->kind == AE_RESTORE && ((const struct restore *)event->payload)->rebooted)
        return 0;
    return before;
}

/* What the checks of the alloc of STATE have found by the end of BATCH. */
static uint64_t checks_with(const struct sim_alloc_state *state, const struct journal_batch *batch)
{
    uint64_t pass = state->checks_pass;

    for (size_t i = 0; i < batch->events_count; i++) {
        if (machine_id_equal(&batch->events[i].id, &state->id))
            pass = sim_checks_after(pass, &batch->events[i].event);
    }
    return pass;
}

static bool is_over(const struct task *task)
{
    return task == NULL || task->failed || task->run_state == TASK_RUN_DEAD;
}

void sim_check_health(struct sim *sim, const struct journal_batch *batch,
                      const struct sim_whom *whom, const struct alloc *before,
                      const struct alloc *after)
{
    const struct sim_alloc_state *state = sim_alloc_of(sim, whom);
    uint8_t was = before == NULL ? (uint8_t)HEALTH_UNKNOWN : before->health;
    uint64_t now_ms = batch->events[batch->events_count - 1].now_ms;
    bool over = after->setup_failed || after->client_status == CLIENT_FAILED;
    bool updated = is_updated(batch, &state->id);
    const char *why = NULL;

    if (before != NULL && before->unhealthy_at_ms != 0 && !updated &&
        before->unhealthy_at_ms != after->unhealthy_at_ms)
        sim_violate(sim, 36, "%s was given another time to be healthy", state->id.text);
    if (updated && before != NULL &&
        before->assign.deployed_unix_ns != after->assign.deployed_unix_ns)
        was = HEALTH_UNKNOWN; /* what another deployment was told */
    if (was == after->health || state->damaged)
        return;
    if (after->health_said) {
        if (!after->assign.watched)
            sim_violate(sim, 39, "%s has a health for which nobody waits", state->id.text);
        return; /* whoever said it knows */
    }
    if (after->assign.manual)
        sim_violate(sim, 39, "%s has a health that no user has said", state->id.text);
    if (was != HEALTH_UNKNOWN)
        sim_violate(sim, 39, "%s was said to be %s, and now %s", state->id.text,
                    was == HEALTH_HEALTHY ? "healthy" : "unhealthy",
                    after->health == HEALTH_HEALTHY ? "healthy" : "not");
    bool told = before != NULL && (before->stop_wanted || before->destroy_wanted);
    if (!after->assign.watched || told) /* who is told in this turn may have been known before */
        sim_violate(sim, 39, "%s has a health for which nobody waits", state->id.text);
    for (int t = 0; t < state->tasks_count && why == NULL; t++) {
        const struct task *task = task_in(sim, batch, &state->tasks[t].id);
        over |= is_over(task);
        if (after->health == HEALTH_HEALTHY)
            why = not_running(sim, whom, t, task, after->assign.min_healthy_ms);
    }
    if (after->health == HEALTH_HEALTHY && now_ms < state->asked_ms + after->assign.min_healthy_ms)
        why = "it was asked later";
    if (after->health == HEALTH_HEALTHY && (after->assign.checks & ~checks_with(state, batch)) != 0)
        why = "a check of it has not passed";
    if (why != NULL)
        sim_violate(sim, 36, "%s is said to be healthy, but %s", state->id.text, why);
    if (after->health == HEALTH_UNHEALTHY && !over &&
        now_ms < state->asked_ms + after->assign.healthy_deadline_ms)
        sim_violate(sim, 36, "%s is said to be unhealthy before its time", state->id.text);
}

const char *sim_health_missing(const struct alloc *alloc)
{
    bool awaited = alloc->assign.watched && !alloc->assign.manual && !alloc->stop_wanted &&
                   !alloc->destroy_wanted && !alloc->ran_out && !alloc->cut_off;

    return awaited && alloc->health == HEALTH_UNKNOWN && !alloc->assign.condemned
               ? "and nobody was told whether it is healthy"
               : NULL;
}
