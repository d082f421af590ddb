/*
 * What holds between the tasks of one alloc: who starts and ends before whom, when the group has to
 * end, and what it looks like from outside when it has.
 *
 * Everything is asked of the tasks' own records; allocs with a damaged one are excused.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

static const struct task *task_at(const struct sim *sim, const struct sim_alloc_state *alloc, int t)
{
    const struct machine *record = core_find(sim->core, &alloc->tasks[t].id);

    return record == NULL ? NULL : task_of(record);
}

static bool is_dead(const struct task *task)
{
    return task->run_state == TASK_RUN_DEAD;
}

/* --- starts --- */

/* OTHER has come as far as TASK waits for. */
static bool is_reached(const struct task *task, const struct task *other)
{
    bool started = task_has_started(other);

    /* One that was not sent back with it goes on where it was, before their alloc was replayed. */
    if (other->rewound && !task->rewound && task->define.lifecycle != LIFECYCLE_POSTSTOP)
        return true;
    switch ((enum spec_lifecycle)task->define.lifecycle) {
    case LIFECYCLE_PRESTART:
        return true;
    case LIFECYCLE_MAIN:
        return other->define.lifecycle != LIFECYCLE_PRESTART ||
               (other->define.sidecar ? started : is_dead(other) && !other->failed);
    case LIFECYCLE_POSTSTART:
        return other->define.lifecycle != LIFECYCLE_MAIN || started;
    case LIFECYCLE_POSTSTOP:
        return other->define.lifecycle == LIFECYCLE_POSTSTOP || is_dead(other);
    }
    unreachable("lifecycle");
}

void sim_check_order(struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_alloc_state *alloc = &sim->allocs[attempt->alloc];
    const struct task *task = sim->core == NULL ? NULL : task_at(sim, alloc, attempt->task);

    if (alloc->tasks[attempt->task].tries.asked == attempt->generation)
        return; /* its start had begun when all were told to begin again, and it will be ended */
    for (int t = 0; task != NULL && !alloc->damaged && t < alloc->tasks_count; t++) {
        const struct task *other = t == attempt->task ? NULL : task_at(sim, alloc, t);
        if (other != NULL && !is_reached(task, other))
            sim_violate(sim, 11, "%s runs, and waits for %s by its lifecycle",
                        alloc->tasks[attempt->task].id.text, alloc->tasks[t].id.text);
    }
}

/* --- ends --- */

/* The leader is ended first, then all that have their own end, then sidecars, then the rest. */
static int rank(const struct task_define *define)
{
    if (define->leader)
        return 0;
    if (define->lifecycle == LIFECYCLE_POSTSTOP)
        return 3;
    return define->lifecycle != LIFECYCLE_MAIN && define->sidecar ? 2 : 1;
}

void sim_check_stop(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);
    const struct task *task = task_of(effect->record);

    bool ordered = (task->kill_wanted && !task->script_failed) ||
                   (task->rewind_wanted && sim_task_of(sim, whom)->tries.in_turn);

    for (int t = 0; ordered && !alloc->damaged && t < alloc->tasks_count; t++) {
        const struct task *other = t == whom->member ? NULL : task_at(sim, alloc, t);
        bool waits = task->rewind_wanted && other != NULL &&
                     (other->rewound || other->define.lifecycle == LIFECYCLE_POSTSTOP);
        if (other != NULL && !is_dead(other) && !waits &&
            rank(&other->define) < rank(&task->define))
            sim_violate(sim, 9, "%s is ended while %s lives, which is ended before it",
                        effect->id.text, alloc->tasks[t].id.text);
    }
}

const char *sim_group_over(const struct sim *sim, int a)
{
    const struct sim_alloc_state *alloc = &sim->allocs[a];
    bool live = false, others = false, mains = false;
    const char *why = NULL;

    for (int t = 0; t < alloc->tasks_count; t++) {
        const struct task *task = task_at(sim, alloc, t);
        if (task == NULL || task->define.lifecycle == LIFECYCLE_POSTSTOP)
            continue;
        bool main = task->define.lifecycle == LIFECYCLE_MAIN;
        mains |= main;
        live |= !is_dead(task);
        others |= !is_dead(task) && (main || !task->define.sidecar);
        if (is_dead(task) && (task->failed || task->define.leader))
            why =
                task->failed ? "goes on without a task that failed" : "goes on without its leader";
    }
    if (why == NULL && mains && !others)
        why = "goes on for its sidecars alone";
    return live ? why : NULL;
}

/* --- the outcome --- */

void sim_check_outcome(struct sim *sim, const struct sim_whom *whom, const struct alloc *alloc)
{
    const struct sim_alloc_state *state = sim_alloc_of(sim, whom);
    bool failed = alloc->setup_failed != 0;

    if (state->damaged || alloc->assign.condemned)
        return;
    for (int t = 0; t < state->tasks_count; t++) {
        const struct task *task = task_at(sim, state, t);
        failed |= task != NULL && task->failed;
        if (task != NULL && task->define.lifecycle == LIFECYCLE_POSTSTOP && alloc->prepared &&
            !task->define.leader && !alloc->setup_failed && !alloc->destroy_wanted &&
            !alloc->ran_out && !task->failed && task->started_unix_ns == 0)
            sim_violate(sim, 24, "%s has ended without %s", state->id.text,
                        state->tasks[t].id.text);
    }
    if (alloc->ran_out && alloc->client_status == CLIENT_COMPLETE)
        return; /* whatever became of its tasks */
    if (alloc->client_status != (failed ? CLIENT_FAILED : CLIENT_COMPLETE))
        sim_violate(sim, 39, "%s has ended %s and is shown %s", state->id.text,
                    failed ? "failed" : "well",
                    client_status_name((enum client_status)alloc->client_status));
}
