/*
 * What the table asks of a task: its guards, its timers, and what always holds of its record.
 * Nothing here changes one.  Pure.
 */
#include "fsm/task/part.h"

#include "fsm/policy.h"

enum {
    LOOKS_MAX = 20,        /* about ten minutes */
    LOOKS_UNSEEN_MAX = 4,  /* of a payload that was never seen running */
    LOOKS_ENDING_MAX = 2,  /* of one that is to end: each look may take ten seconds */
    STOP_GRACE_MS = 10000, /* the shim kills at the kill timeout; we step in this much later */
    REAP_BACKOFF_MS = 500,
    REAP_BACKOFF_MS_MAX = 30000,
};

/* --- what is asked in more than one place --- */

static uint32_t hooks_of(const struct task *task, enum hook_phase phase)
{
    switch (phase) {
    case PHASE_PRESTART:
        return task->define.hooks_prestart;
    case PHASE_POSTSTART:
        return task->define.hooks_poststart;
    case PHASE_PREKILL:
        return task->define.hooks_prekill;
    case PHASE_EXITED:
        return task->define.hooks_exited;
    case PHASE_STOP:
        return task->owed;
    case PHASE_PRERUN:
    case PHASE_POSTRUN:
    case PHASE_DESTROY:
    case PHASE_COUNT:
        break;
    }
    unreachable("task hook phase");
}

static const uint8_t in_order[] = {
#define X(name) TASK_HOOK_##name,
    TASK_HOOKS_IN_ORDER(X)
#undef X
};
#define X(name) | 1u << TASK_HOOK_##name
_Static_assert(COUNT_OF(in_order) == TASK_HOOK_COUNT &&
                   (0u TASK_HOOKS_IN_ORDER(X)) == (1u << TASK_HOOK_COUNT) - 1,
               "each hook has its turn");
#undef X

static uint8_t hook_from(const struct task *task, enum hook_phase phase, size_t place)
{
    uint32_t mask = hooks_of(task, phase);

    for (; place < COUNT_OF(in_order); place++) {
        if ((mask >> in_order[place] & 1u) != 0)
            return in_order[place];
    }
    return HOOK_NONE;
}

uint8_t task_hook_first(const struct task *task, enum hook_phase phase)
{
    return hook_from(task, phase, 0);
}

uint8_t task_hook_after(const struct task *task, enum hook_phase phase, uint8_t hook)
{
    size_t place = 0;

    while (place < COUNT_OF(in_order) && in_order[place] != hook)
        place++;
    return hook_from(task, phase, place + 1);
}

bool task_look_failed(const struct task *task, const struct failure *failure)
{
    check(failure != NULL);
    uint32_t looks = task->kill_wanted ? LOOKS_ENDING_MAX
                     : task->ran       ? LOOKS_MAX
                                       : LOOKS_UNSEEN_MAX;

    /* Once looking was given up an end is told, and what is found later can be ended only. */
    return failure->recoverable && !task->exit_seen && task->machine.attempt < looks;
}

#define IN(state) ((uint32_t)1 << T_##state)

static bool is_in(const struct task *task, uint32_t states)
{
    return (states >> task->machine.state & 1u) != 0;
}

bool task_holds_work(const struct task *task)
{
    return is_in(task, IN(STARTING) | IN(RUNNING) | IN(RECOVERING) | IN(PREKILL) | IN(DELAYING) |
                           IN(STOPPING) | IN(REAPING));
}

bool task_is_on_its_way(const struct task *task)
{
    return is_in(task, IN(PRESTART) | IN(LOOKING) | IN(HELD) | IN(STARTING) | IN(RECOVERING) |
                           IN(REAPING));
}

/* --- guards --- */

#define GUARD(function, condition)                                                                 \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now)                                                       \
    {                                                                                              \
        const struct task *task = task_of(record);                                                 \
        (void)event;                                                                               \
        (void)now;                                                                                 \
        return condition;                                                                          \
    }

static bool has_hooks(const struct task *task, enum hook_phase phase)
{
    return task_hook_first(task, phase) != HOOK_NONE;
}

static bool delay_ahead(const struct task *task)
{
    return task->define.shutdown_delay_ms > 0 && task->delay_until_ms == 0 && !task->at_once;
}

/* One of an earlier life of the daemon has ended with it. */
static bool owes_script(const struct task *task)
{
    return task->script != 0 && task->machine.lane_effect[LANE_NODE] == 0;
}

/* A look that failed for good says nothing about that: what may be there is taken away first. */
static bool never_begun(const struct task *task, const struct failure *look)
{
    return !task->ran && !look->recoverable;
}

/* clang-format off */
GUARD(task_may_start, task->may_start)
GUARD(task_hooks_left, task->hook != HOOK_NONE)
GUARD(task_has_mounts, task->define.mounts)
GUARD(task_has_prekill, has_hooks(task, PHASE_PREKILL))
GUARD(task_has_delay, delay_ahead(task))
GUARD(task_at_once, task->at_once)
GUARD(task_has_poststart, has_hooks(task, PHASE_POSTSTART))
GUARD(task_has_exited, has_hooks(task, PHASE_EXITED))
GUARD(task_kill_wanted, task->kill_wanted)
GUARD(task_kill_prekill,
      task->kill_wanted && has_hooks(task, PHASE_PREKILL) && task->resume == RESUME_NOTHING)
GUARD(task_kill_delay, task->kill_wanted && delay_ahead(task))
GUARD(task_resume_stop, task->resume == RESUME_STOPPING)
GUARD(task_resume_delay, task->resume == RESUME_DELAYING && !task->at_once)
GUARD(task_resume_prekill, task->resume == RESUME_PREKILL && has_hooks(task, PHASE_PREKILL))
GUARD(task_look_again, task_look_failed(task, event->payload))
GUARD(task_never_begun, never_begun(task, event->payload))
GUARD(task_never_begun_anew, never_begun(task, event->payload) && task->may_start &&
                                 (task->rebooted || task->define.mounts))
GUARD(task_never_begun_may, never_begun(task, event->payload) && task->may_start)
GUARD(task_never_begun_kill, never_begun(task, event->payload) && task->kill_wanted)
GUARD(task_never_begun_rewind, never_begun(task, event->payload) && task->rewind_wanted)
GUARD(task_exit_unseen, task->ran && !task->exit_seen)
GUARD(task_restart_held, (task->verdict == TASK_RESTART_NOW) && !task->may_start)
GUARD(task_restart_now, task->verdict == TASK_RESTART_NOW)
GUARD(task_restart_later, task->verdict == TASK_RESTART_LATER)
GUARD(task_rewinds, task->rewind_wanted)
GUARD(task_rewind_prekill,
      task->rewind_wanted && has_hooks(task, PHASE_PREKILL) && task->resume == RESUME_NOTHING)
GUARD(task_remove_wanted, task->remove_wanted)
GUARD(task_owes, task->owed != 0)
GUARD(task_owes_signal, task->signals_owed != 0)
GUARD(task_owes_script, owes_script(task))
GUARD(task_owes_both, task->signals_owed != 0 && owes_script(task))
GUARD(task_change_restarts, task->restart_wanted)
GUARD(task_change_prekill, task->restart_wanted && has_hooks(task, PHASE_PREKILL))
/* clang-format on */

/* --- timers --- */

uint64_t task_deadline(const struct machine *record, const struct fsm_now *now)
{
    const struct task *task = task_of(record);

    (void)now; /* each deadline was fixed when its wait began, and outlives restarts */
    switch ((enum task_state)record->state) {
    case T_DELAYING:
        return task->delay_until_ms;
    case T_STOPPING:
        return task->kill_at_ms + STOP_GRACE_MS;
    case T_BACKOFF:
        return task->restart_at_ms;
    case T_OWING:
        return task->owed_at_ms;
    case T_ABSENT:
    case T_WAITING:
    case T_PRESTART:
    case T_STARTING:
    case T_RUNNING:
    case T_RECOVERING:
    case T_HELD:
    case T_PREKILL:
    case T_REAPING:
    case T_EXITED:
    case T_CLEANUP:
    case T_DEAD:
    case T_GONE:
    case T_LOOKING:
    case T_COUNT:
        break;
    }
    unreachable("state without a computed limit");
}

uint64_t task_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    return policy_backoff_ms(REAP_BACKOFF_MS, REAP_BACKOFF_MS_MAX, record->attempt, now->seed);
}

/* --- the invariant, and the validator for records from disk --- */

static const char *broken_lists(const struct task *task)
{
    if (task->results_bytes > RESULTS_BYTES_MAX)
        return "hook results are too long";
    if (!results_valid(task->results, task->results_bytes))
        return "hook results are malformed";
    if (task->events_count > TASK_EVENTS_MAX)
        return "too many task events";
    for (int i = 0; i < task->events_count; i++) {
        if (task->events[i].type == TASK_EVENT_NONE ||
            task->events[i].type >= TASK_EVENT_TYPE_COUNT)
            return "malformed task event";
    }
    return NULL;
}

static const char *broken_names(const struct task *task)
{
    const struct task_define *define = &task->define;

    if (define->lifecycle > LIFECYCLE_POSTSTOP || task->run_state > TASK_RUN_DEAD ||
        task->phase > PHASE_STOP || (task->hook >= TASK_HOOK_COUNT && task->hook != HOOK_NONE) ||
        task->verdict > TASK_REWINDS || task->resume > RESUME_STOPPING)
        return "unknown lifecycle, state, phase, hook, verdict or way to resume";
    if (define->restart_interval_ms > DURATION_MS_MAX ||
        define->restart_delay_ms > DURATION_MS_MAX || define->kill_timeout_ms > DURATION_MS_MAX ||
        define->shutdown_delay_ms > DURATION_MS_MAX || task->older_wait_ms > 3 * DURATION_MS_MAX)
        return "a length of time that no job may ask for";
    return NULL;
}

/* What runs, and what may: nothing is alive that was not begun. */
static const char *broken_life(const struct task *task)
{
    const uint32_t alive = IN(RUNNING) | IN(PREKILL) | IN(DELAYING) | IN(STOPPING);
    const uint32_t begun = alive | IN(STARTING) | IN(RECOVERING) | IN(REAPING);
    const uint32_t pending =
        IN(WAITING) | IN(PRESTART) | IN(LOOKING) | IN(STARTING) | IN(HELD) | IN(BACKOFF);
    const uint32_t over = IN(CLEANUP) | IN(DEAD) | IN(OWING) | IN(GONE);

    if (!implies(is_in(task, alive), task->ran))
        return "alive, but was never seen running";
    if (!implies(is_in(task, IN(RUNNING) | IN(RECOVERING)), !task->exit_seen))
        return "alive, but its end was told";
    if (!implies(is_in(task, begun) || task->ran || task->exit_seen, task->machine.generation > 0))
        return "alive without a generation";
    if (!implies(is_in(task, alive), task->run_state == TASK_RUN_RUNNING))
        return "alive, but not shown running";
    if (!implies(is_in(task, pending), task->run_state == TASK_RUN_PENDING))
        return "about to start, but not shown pending";
    if (!implies(is_in(task, IN(LOOKING)), task->define.mounts))
        return "looking at mounts, and its alloc has none";
    if (!implies(is_in(task, IN(DEAD) | IN(OWING)), task->run_state == TASK_RUN_DEAD))
        return "dead, but shown alive";
    if (!implies(task->run_state == TASK_RUN_DEAD, is_in(task, over)))
        return "shown dead, but not over";
    if (!implies(task->remove_wanted, is_in(task, over)))
        return "to be forgotten before it is over";
    if (!implies(task->rewind_wanted, !task->kill_wanted && !task->failed &&
                                          is_in(task, begun | IN(EXITED) | IN(CLEANUP))))
        return "on the way back to its turn, and has nothing to come back from";
    if (!implies(task->rewound, !is_in(task, alive)))
        return "alive, and has not run since it was sent back";
    if (!implies(task->signals_owed != 0, task->ran && has_hooks(task, PHASE_POSTSTART)))
        return "to be told of a change that nobody looks for";
    if (!implies(task->script != 0 || task->scripts_owed != 0,
                 task->ran && has_hooks(task, PHASE_POSTSTART)))
        return "to run a script for a change that nobody looks for";
    if (task->script > SPEC_SCRIPTS_MAX)
        return "to run a script that there cannot be";
    if (!implies(task->script_failed, task->kill_wanted))
        return "a script has ended it, and it goes on";
    if (!implies(task->at_once, task->kill_wanted))
        return "its delay is skipped, and nobody has told it to end";
    if (task->told_revision > task->status_revision)
        return "its alloc was told what never was";
    return NULL;
}

/* The hook under way is of the phase that its state is there for. */
static const char *broken_phase(const struct task *task)
{
    static const uint8_t phases[T_COUNT] = {
        [T_PRESTART] = 1 + PHASE_PRESTART, [T_RUNNING] = 1 + PHASE_POSTSTART,
        [T_PREKILL] = 1 + PHASE_PREKILL,   [T_EXITED] = 1 + PHASE_EXITED,
        [T_CLEANUP] = 1 + PHASE_STOP,
    };
    uint8_t phase = phases[task->machine.state];

    if (phase != 0 && task->phase != phase - 1)
        return "running hooks of another phase than its state's";
    uint32_t hooks = task->phase == PHASE_STOP ? task->define.hooks_stop
                                               : hooks_of(task, (enum hook_phase)task->phase);

    if ((task->owed & ~task->define.hooks_stop) != 0)
        return "owing stop hooks that it does not have";
    if (phase != 0 && task->hook < TASK_HOOK_COUNT && (hooks >> task->hook & 1u) == 0)
        return "running a hook that it does not have";
    return NULL;
}

/* Who waits for a time has one. */
static const char *broken_times(const struct task *task)
{
    bool waits = task->machine.deadline_ms != 0;

    if (!implies(is_in(task, IN(BACKOFF)), waits && task->restart_at_ms != 0))
        return "backing off without a timer";
    if (!implies(is_in(task, IN(OWING)), waits && task->owed_at_ms != 0))
        return "owing stop hooks without a timer";
    if (!implies(is_in(task, IN(DELAYING)), waits && task->delay_until_ms != 0))
        return "delaying without a deadline";
    if (!implies(is_in(task, IN(STOPPING)), waits && task->kill_at_ms != 0))
        return "stopping without a deadline";
    return NULL;
}

const char *task_broken(const struct machine *record)
{
    static const char *(*const looks[])(const struct task *) = {
        broken_lists, broken_names, broken_life, broken_phase, broken_times,
    };
    const struct task *task = task_of(record);
    const char *why = NULL;

    for (size_t i = 0; i < COUNT_OF(looks) && why == NULL; i++)
        why = looks[i](task);
    return why;
}

/* --- times that were read --- */

/* AT is not later than LENGTH_MS after FROM. */
static bool is_within(uint64_t at, uint64_t from, uint64_t length_ms)
{
    return at <= from || at - from <= length_ms;
}

static uint64_t longest_pause_ms(const struct task_define *define)
{
    return define->restart_interval_ms + define->restart_delay_ms + define->restart_delay_ms / 4;
}

uint64_t task_longest_wait_ms(const struct task_define *define)
{
    uint64_t longest_ms = longest_pause_ms(define);

    if (longest_ms < define->shutdown_delay_ms)
        longest_ms = define->shutdown_delay_ms;
    return longest_ms < define->kill_timeout_ms ? define->kill_timeout_ms : longest_ms;
}

/* Each wait was fixed when it began, at the latest when its state was entered; a version before
 * this one may have asked for it. */
const char *task_mistimed(const struct machine *record)
{
    const struct task *task = task_of(record);
    const struct task_define *define = &task->define;
    const struct {
        uint64_t at_ms, asked_ms;
    } waits[] = {
        {task->restart_at_ms, longest_pause_ms(define)},
        {task->delay_until_ms, define->shutdown_delay_ms},
        {task->kill_at_ms, define->kill_timeout_ms},
    };

    if (task->interval_ms > record->entered_ms)
        return "its restart interval has not begun yet";
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        if (!is_within(waits[i].at_ms, record->entered_ms, waits[i].asked_ms) &&
            !is_within(waits[i].at_ms, record->entered_ms, task->older_wait_ms))
            return "a wait is longer than was asked for";
    }
    if (is_in(task, IN(BACKOFF) | IN(DELAYING) | IN(STOPPING) | IN(OWING)) &&
        record->deadline_ms != task_deadline(record, NULL))
        return "its timer is set to another time than it waits for";
    return NULL;
}
