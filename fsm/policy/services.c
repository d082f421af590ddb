/*
 * What is offered, and what a check that fails does.  Follows Nomad's group and task service hooks,
 * which register and deregister; here both are one question to the records.
 */
#include "fsm/policy.h"

bool policy_group_offers(const struct alloc *alloc)
{
    uint8_t state = alloc->machine.state;

    return (state == A_RUNNING || state == A_REPLAYING) && !alloc->assign.condemned;
}

bool policy_task_offers(const struct alloc *alloc, const struct task *task)
{
    bool stays = task->machine.state == T_RECOVERING && task->resume == RESUME_NOTHING;

    return policy_group_offers(alloc) && (task->machine.state == T_RUNNING || stays);
}

bool policy_has_mesh(uint8_t state)
{
    static const bool has[A_COUNT] = {
        [A_RUNNING] = true, [A_PREKILL] = true,  [A_DELAYING] = true,
        [A_KILLING] = true, [A_POSTSTOP] = true, [A_REPLAYING] = true,
    };

    check(state < A_COUNT);
    return has[state];
}

bool policy_check_restarts(struct check_count *count, uint32_t limit, bool passes, uint64_t now_ms)
{
    if (passes)
        count->failures = 0;
    else if (limit != 0 && now_ms >= count->grace_until_ms)
        count->failures++;
    return !passes && limit != 0 && count->failures >= limit;
}

bool policy_check_is_of(const struct alloc_member *member, const char *task)
{
    return member->kind == MEMBER_TASK && (task[0] == '\0' || text_equal(task, member->name));
}
