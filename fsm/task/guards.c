/*
 * What the table asks of a task: its guards, its timers, and what always holds of its record.
 * Nothing here changes one.  Pure.
 */
#include "fsm/task/part.h"

#include "fsm/policy.h"

#include <string.h>

enum {
    LOOKS_MAX = 20,        /* about ten minutes */
    LOOKS_UNSEEN_MAX = 4,  /* of a payload that was never seen running */
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
        return task->define.hooks_stop;
    case PHASE_PRERUN:
    case PHASE_POSTRUN:
    case PHASE_DESTROY:
    case PHASE_COUNT:
        break;
    }
    unreachable("task hook phase");
}

uint8_t task_hook_from(const struct task *task, enum hook_phase phase, unsigned first)
{
    uint32_t mask = hooks_of(task, phase);

    for (unsigned hook = first; hook < TASK_HOOK_COUNT; hook++) {
        if ((mask >> hook & 1u) != 0)
            return (uint8_t)hook;
    }
    return TASK_HOOK_COUNT;
}

bool task_look_failed(const struct task *task, const struct failure *failure)
{
    check(failure != NULL);
    uint32_t looks = task->ran ? LOOKS_MAX : LOOKS_UNSEEN_MAX;

    return failure->recoverable && task->machine.attempt < looks;
}

bool task_holds_work(const struct task *task)
{
    static const uint32_t holding = 1u << T_STARTING | 1u << T_RUNNING | 1u << T_RECOVERING |
                                    1u << T_PREKILL | 1u << T_DELAYING | 1u << T_STOPPING |
                                    1u << T_REAPING;

    return (holding >> task->machine.state & 1u) != 0;
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
    return task_hook_from(task, phase, 0) != TASK_HOOK_COUNT;
}

static bool delay_ahead(const struct task *task)
{
    return task->define.shutdown_delay_ms > 0 && task->delay_until_ms == 0;
}

/* clang-format off */
GUARD(task_may_start, task->may_start)
GUARD(task_hooks_left, task->hook != TASK_HOOK_COUNT)
GUARD(task_has_prekill, has_hooks(task, PHASE_PREKILL))
GUARD(task_has_delay, delay_ahead(task))
GUARD(task_has_poststart, has_hooks(task, PHASE_POSTSTART))
GUARD(task_has_exited, has_hooks(task, PHASE_EXITED))
GUARD(task_kill_wanted, task->kill_wanted)
GUARD(task_kill_prekill,
      task->kill_wanted && has_hooks(task, PHASE_PREKILL) && task->resume == RESUME_NOTHING)
GUARD(task_kill_delay, task->kill_wanted && delay_ahead(task))
GUARD(task_resume_stop, task->resume == RESUME_STOPPING)
GUARD(task_resume_delay, task->resume == RESUME_DELAYING)
GUARD(task_resume_prekill, task->resume == RESUME_PREKILL && has_hooks(task, PHASE_PREKILL))
GUARD(task_look_again, task_look_failed(task, event->payload))
GUARD(task_never_begun, !task->ran)
GUARD(task_never_begun_boot, !task->ran && task->may_start && task->rebooted)
GUARD(task_never_begun_may, !task->ran && task->may_start)
GUARD(task_never_begun_kill, !task->ran && task->kill_wanted)
GUARD(task_exit_unseen, task->ran && !task->exit_seen)
GUARD(task_restart_held, (task->verdict == TASK_RESTART_NOW) && !task->may_start)
GUARD(task_restart_now, task->verdict == TASK_RESTART_NOW)
GUARD(task_restart_later, task->verdict == TASK_RESTART_LATER)
GUARD(task_remove_wanted, task->remove_wanted)
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

static bool is_text(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

const char *task_broken(const struct machine *record)
{
    const struct task *task = task_of(record);
    bool alive = record->state == T_RUNNING || record->state == T_PREKILL ||
                 record->state == T_DELAYING || record->state == T_STOPPING;

    if (task->results_bytes > RESULTS_BYTES_MAX)
        return "hook results are too long";
    if (!results_valid(task->results, task->results_bytes))
        return "hook results are malformed";
    if (task->events_count > TASK_EVENTS_MAX)
        return "too many task events";
    for (int i = 0; i < task->events_count; i++) {
        if (task->events[i].type == TASK_EVENT_NONE ||
            task->events[i].type >= TASK_EVENT_TYPE_COUNT ||
            !is_text(task->events[i].text, sizeof(task->events[i].text)))
            return "malformed task event";
    }
    if (!is_text(task->define.driver, sizeof(task->define.driver)) ||
        !is_text(task->define.kill_signal, sizeof(task->define.kill_signal)) ||
        !is_text(task->exit.message, sizeof(task->exit.message)))
        return "unterminated text";
    if (task->define.lifecycle > LIFECYCLE_POSTSTOP || task->run_state > TASK_RUN_DEAD ||
        task->phase >= PHASE_COUNT || task->hook > TASK_HOOK_COUNT)
        return "unknown lifecycle, state, phase or hook";
    if (!implies(alive, task->ran))
        return "alive, but was never seen running";
    if (!implies(alive, task->machine.generation > 0))
        return "alive without a generation";
    if (!implies(record->state == T_BACKOFF, record->deadline_ms != 0))
        return "backing off without a timer";
    if (!implies(record->state == T_DEAD, task->run_state == TASK_RUN_DEAD))
        return "dead, but shown alive";
    if (!implies(record->state == T_STOPPING, task->kill_at_ms != 0))
        return "stopping without a deadline";
    return NULL;
}
