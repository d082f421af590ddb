/*
 * Who is there: questions about the members of an alloc, answered from what they have told it.
 * Pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"

struct alloc_member *member_find(struct alloc *alloc, enum alloc_member_kind kind, const char *name)
{
    check(alloc->assign.members_count <= ALLOC_MEMBERS_MAX);
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == kind && text_equal(member->name, name))
            return member;
    }
    return NULL;
}

uint32_t members_count(const struct alloc *alloc, enum alloc_member_kind kind, member_pred *pred)
{
    uint32_t found = 0;

    check(alloc->assign.members_count <= ALLOC_MEMBERS_MAX);
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == kind && pred(alloc, member))
            found++;
    }
    return found;
}

static bool is_running(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return member->run_state == TASK_RUN_RUNNING;
}

static bool is_live(const struct alloc *alloc, const struct alloc_member *member)
{
    return member->run_state != TASK_RUN_DEAD || policy_comes_back(alloc, member);
}

bool member_is_live_poststop(const struct alloc *alloc, const struct alloc_member *member)
{
    return is_live(alloc, member) && member->lifecycle == LIFECYCLE_POSTSTOP;
}

/* Live, and not merely a poststop task that waits for the others. */
static bool holds_end(const struct alloc *alloc, const struct alloc_member *member)
{
    return is_live(alloc, member) &&
           (member->lifecycle != LIFECYCLE_POSTSTOP || !policy_runs_poststop(alloc));
}

bool member_is_unready(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return !member->ready;
}

static bool is_held(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return !member->gone;
}

static bool is_begun(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return member->run_state != TASK_RUN_PENDING || member->started;
}

bool members_none_begun(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_TASK, is_begun) == 0;
}

static bool is_failed(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return member->failed;
}

bool members_any_failed(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_TASK, is_failed) > 0;
}

bool members_any_running(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_TASK, is_running) > 0;
}

bool members_hold_volumes(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_VOLUME, is_held) > 0;
}

bool members_all_dead(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_TASK, holds_end) == 0;
}

bool members_every_dead(const struct alloc *alloc)
{
    return members_count(alloc, MEMBER_TASK, is_live) == 0;
}
