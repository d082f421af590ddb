/*
 * The task machine's decision after an attempt: start again, later, or never.
 *
 * Orders come first, then whatever ended the payload from outside, and only then the restart policy
 * of the task, which counts.  Pure.
 */
#include "fsm/task/part.h"

#include "fsm/policy.h"

static bool exit_is_success(const struct task *task)
{
    return task->exit_seen && task->exit.known && task->exit.code == 0 && task->exit.signal == 0;
}

void task_note_restarting(struct task *task, const struct fsm_now *now, uint64_t delay_ms,
                          const char *reason)
{
    task_note(task, now, TASK_EVENT_RESTARTING, reason)->number = (int64_t)delay_ms * 1000000;
    task->restarts++;
    task->last_restart_unix_ns = now->unix_ns;
}

/* The payload did not end by its own doing, but by a reboot.  One whose end is known did, unless
 * that came with the shutdown; finished work does not run again even then.  One that could
 * not be started never was. */
static bool died_with_host(const struct task *task)
{
    bool known = task->exit_seen && task->exit.known;
    bool finished = exit_is_success(task) && !task->define.restart_on_success;

    return task->rebooted && !task->start_failed && (!known || (task->exit.with_host && !finished));
}

void task_decide(struct task *task, const struct fsm_now *now)
{
    /* An attempt is over: its hooks or mounts failed, or nothing of its payload lives. */
    check(task->machine.state == T_PRESTART || task->machine.state == T_LOOKING ||
          task->machine.state == T_HELD || task->machine.state == T_REAPING ||
          task->machine.state == T_EXITED);
    if (task->kill_wanted || task->rewind_wanted) {
        task->verdict = task->kill_wanted ? TASK_ENDS : TASK_REWINDS;
        return;
    }
    /* Each of the two reasons is good for one decision: a start that then fails counts. */
    bool asked = task->restart_wanted, rebooted = died_with_host(task);
    task->restart_wanted = 0;
    task->rebooted = 0;
    if (asked || rebooted) {
        task->verdict = TASK_RESTART_NOW;
        if (asked)
            task_note_restarting(task, now, 0, "");
        else
            task_note(task, now, TASK_EVENT_RESTORE_FAILED, "");
        return;
    }

    struct restart_input input = {
        .define = &task->define,
        .now_ms = now->ms,
        .interval_ms = task->interval_ms,
        .seed = now->seed,
        .count = task->restart_count,
        .success = exit_is_success(task) && !task->start_failed && !task->unwell,
        .unrecoverable = task->start_failed && task->unrecoverable,
    };
    struct restart_decision decision;
    policy_restart(&input, &decision);
    task->interval_ms = decision.interval_ms;
    task->restart_count = decision.count;
    check(implies(input.success && decision.answer == RESTART_EXHAUSTED,
                  task->define.restart_on_success));
    switch (decision.answer) {
    case RESTART_AGAIN:
    case RESTART_DELAYED:
        task->verdict = TASK_RESTART_LATER;
        task->restart_at_ms = now->ms + decision.delay_ms;
        task_note_restarting(task, now, decision.delay_ms, decision.reason);
        return;
    case RESTART_SUCCEEDED:
        task->verdict = TASK_ENDS;
        return;
    case RESTART_EXHAUSTED:
        task->verdict = TASK_ENDS;
        task_note_failing(task, now, TASK_EVENT_NOT_RESTARTING, decision.reason);
        return;
    }
    unreachable("restart answer");
}
