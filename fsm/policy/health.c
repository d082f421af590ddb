/*
 * Whether a group of tasks is what was asked for.  Nomad's tracker, with two differences: a payload
 * that has ended counts as not running at once, not when its restart is decided; and after a
 * restart of the daemon a task counts when it was found, not because it is in the records.
 */
#include "fsm/policy.h"

static enum group_health task_health(const struct alloc *alloc, const struct alloc_member *task)
{
    if (task->failed)
        return GROUP_BROKEN;
    if (task->run_state == TASK_RUN_DEAD && !policy_comes_back(alloc, task)) {
        bool aside =
            task->lifecycle == LIFECYCLE_PRESTART || task->lifecycle == LIFECYCLE_POSTSTART;
        return aside ? GROUP_STEADY : GROUP_BROKEN;
    }
    return task->up == MEMBER_UP      ? GROUP_STEADY
           : task->up == MEMBER_ASKED ? GROUP_DOUBTED
                                      : GROUP_UNSETTLED;
}

bool policy_checks_pass(const struct alloc *alloc)
{
    return (alloc->assign.checks & ~alloc->checks_pass) == 0;
}

enum group_health policy_group_health(const struct alloc *alloc)
{
    bool unsettled = alloc->machine.state == A_REPLAYING || !policy_checks_pass(alloc);
    bool doubted = false;
    const char *cause;

    if (alloc->setup_failed || alloc->client_status == CLIENT_FAILED ||
        policy_kill_reason(alloc, &cause) != TASK_EVENT_NONE)
        return GROUP_BROKEN;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind != MEMBER_TASK || member->lifecycle == LIFECYCLE_POSTSTOP)
            continue;
        enum group_health health = task_health(alloc, member);
        if (health == GROUP_BROKEN)
            return GROUP_BROKEN;
        unsettled = unsettled || health == GROUP_UNSETTLED;
        doubted = doubted || health == GROUP_DOUBTED;
    }
    return unsettled ? GROUP_UNSETTLED : doubted ? GROUP_DOUBTED : GROUP_STEADY;
}

bool policy_unhealthy_reason(const struct alloc *alloc, const struct alloc_member *member, char *to,
                             size_t size)
{
    /* All of them ran, and not for long enough: which of them began last is not known here. */
    bool late = alloc->healthy_at_ms > alloc->unhealthy_at_ms;
    char min[40], deadline[40];

    check(member->kind == MEMBER_TASK);
    text_from_duration_ns(deadline, sizeof(deadline),
                          (int64_t)alloc->assign.healthy_deadline_ms * 1000000);
    if (member->lifecycle == LIFECYCLE_POSTSTOP)
        return false;
    if (member->failed)
        return text_copy(to, size, "Unhealthy because of failed task");
    if (member->run_state == TASK_RUN_DEAD)
        return task_health(alloc, member) == GROUP_BROKEN &&
               text_copy(to, size, "Unhealthy because of dead task");
    if (!member->started)
        return text_format(to, size, "Task not running by healthy_deadline of %s", deadline);
    if (member->run_state == TASK_RUN_RUNNING && !policy_checks_pass(alloc))
        return text_copy(to, size, "Services not healthy by deadline");
    if (member->run_state == TASK_RUN_RUNNING && !late)
        return false;
    text_from_duration_ns(min, sizeof(min), (int64_t)alloc->assign.min_healthy_ms * 1000000);
    return text_format(to, size,
                       "Task not running for min_healthy_time of %s by healthy_deadline of %s", min,
                       deadline);
}
