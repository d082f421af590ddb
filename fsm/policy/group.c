/*
 * The group's policies: who may start, who must end, what the alloc looks like from outside.
 *
 * Classes: main (no lifecycle block), prestart, poststart, poststop; a sidecar lives as long as
 * the mains, an ephemeral ends by itself.  Gates follow Nomad's task lifecycle coordinator.
 */
#include "fsm/policy.h"

const char policy_ran_out[] = "allocation exceeded max_run_duration";
const char policy_replayed[] = "User requested all tasks to restart";

static bool is_task(const struct alloc_member *member)
{
    return member->kind == MEMBER_TASK;
}

static bool is_live(const struct alloc_member *member)
{
    return is_task(member) && member->run_state != TASK_RUN_DEAD;
}

static const struct alloc_member *member_at(const struct alloc *alloc, uint32_t i)
{
    check(i < alloc->assign.members_count);
    return &alloc->assign.members[i];
}

bool policy_may_start(const struct alloc *alloc, const struct alloc_member *member)
{
    bool prestart_done = true, mains_started = true, others_dead = true;

    check(is_task(member));
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *other = member_at(alloc, i);
        if (!is_task(other))
            continue;
        if (other->lifecycle == LIFECYCLE_PRESTART) {
            bool reached = other->sidecar ? other->started
                                          : other->run_state == TASK_RUN_DEAD && !other->failed;
            prestart_done = prestart_done && reached;
        }
        if (other->lifecycle == LIFECYCLE_MAIN)
            mains_started = mains_started && other->started;
        if (other->lifecycle != LIFECYCLE_POSTSTOP)
            others_dead = others_dead && other->run_state == TASK_RUN_DEAD;
    }
    switch ((enum spec_lifecycle)member->lifecycle) {
    case LIFECYCLE_PRESTART:
        return true;
    case LIFECYCLE_MAIN:
        return prestart_done;
    case LIFECYCLE_POSTSTART:
        return mains_started;
    case LIFECYCLE_POSTSTOP:
        return others_dead;
    }
    unreachable("lifecycle");
}

bool policy_runs_poststop(const struct alloc *alloc)
{
    return alloc->prepared && !alloc->destroy_wanted && !alloc->setup_failed && !alloc->ran_out;
}

/* Order of the kill: 0 leader, 1 mains and ephemerals, 2 sidecars, 3 poststop. */
static int kill_rank(const struct alloc_member *member)
{
    if (member->leader)
        return 0;
    if (member->lifecycle == LIFECYCLE_POSTSTOP)
        return 3;
    return member->lifecycle != LIFECYCLE_MAIN && member->sidecar ? 2 : 1;
}

bool policy_must_kill(const struct alloc *alloc, const struct alloc_member *member)
{
    int rank = kill_rank(member);

    check(is_task(member));
    if (!is_live(member) || (rank == 3 && policy_runs_poststop(alloc)))
        return false;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *other = member_at(alloc, i);
        if (is_live(other) && kill_rank(other) < rank)
            return false;
    }
    return true;
}

static bool is_to_rewind(const struct alloc_member *member)
{
    return is_task(member) && member->lifecycle != LIFECYCLE_POSTSTOP && !member->rewound;
}

bool policy_comes_back(const struct alloc *alloc, const struct alloc_member *member)
{
    return is_task(member) && member->run_state == TASK_RUN_DEAD && !member->failed &&
           member->lifecycle != LIFECYCLE_POSTSTOP &&
           (alloc->machine.state == A_REPLAYING || member->told == ORDER_REWIND);
}

bool policy_must_rewind(const struct alloc *alloc, const struct alloc_member *member)
{
    if (!is_to_rewind(member) || member->run_state != TASK_RUN_RUNNING)
        return is_to_rewind(member); /* nothing more of it starts while others end */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *other = member_at(alloc, i);
        if (is_to_rewind(other) && kill_rank(other) < kill_rank(member))
            return false;
    }
    return true;
}

bool policy_is_rewound(const struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        if (is_to_rewind(member_at(alloc, i)))
            return false;
    }
    return true;
}

enum task_event_type policy_kill_reason(const struct alloc *alloc, const char **ret_name)
{
    const struct alloc_member *failed = NULL;
    bool leader_dead = false, any_live = false, only_sidecars = true, has_main = false;

    *ret_name = "";
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = member_at(alloc, i);
        if (!is_task(member) || member->lifecycle == LIFECYCLE_POSTSTOP)
            continue;
        if (member->run_state == TASK_RUN_DEAD) {
            if (member->failed && failed == NULL)
                failed = member;
            leader_dead = leader_dead || (member->leader && !member->failed);
        } else {
            any_live = true;
            only_sidecars = only_sidecars && member->lifecycle != LIFECYCLE_MAIN && member->sidecar;
        }
        has_main = has_main || member->lifecycle == LIFECYCLE_MAIN;
    }
    if (!any_live)
        return TASK_EVENT_NONE;
    if (alloc->machine.state == A_REPLAYING) /* who has ended well runs again */
        leader_dead = only_sidecars = false;
    if (leader_dead)
        return TASK_EVENT_LEADER_DEAD;
    if (failed != NULL) {
        *ret_name = failed->name;
        return TASK_EVENT_SIBLING_FAILED;
    }
    return has_main && only_sidecars ? TASK_EVENT_MAIN_DEAD : TASK_EVENT_NONE;
}

enum client_status policy_client_status(const struct alloc *alloc, const char **ret_description)
{
    bool failed = false, running = false, pending = false;

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = member_at(alloc, i);
        if (!is_task(member))
            continue;
        failed = failed || (member->run_state == TASK_RUN_DEAD && member->failed);
        running = running || member->run_state == TASK_RUN_RUNNING;
        pending =
            pending || member->run_state == TASK_RUN_PENDING || policy_comes_back(alloc, member);
    }
    if (alloc->assign.condemned || alloc->setup_failed) {
        *ret_description = alloc->failure;
        return running && !failed ? CLIENT_RUNNING : CLIENT_FAILED;
    }
    failed = failed && !alloc->ran_out; /* that is how its tasks are ended */
    *ret_description = failed           ? "Failed tasks"
                       : running        ? "Tasks are running"
                       : pending        ? "No tasks have started"
                       : alloc->ran_out ? policy_ran_out
                                        : "All tasks have completed";
    return failed    ? CLIENT_FAILED
           : running ? CLIENT_RUNNING
           : pending ? CLIENT_PENDING
                     : CLIENT_COMPLETE;
}
