/*
 * Whether an alloc and one of its tasks tell the same story.
 *
 * Both are written in one commit, so that what the task has told its alloc is what the alloc knows.
 * Where they differ, one of the records is not what was written: nothing of the alloc is started
 * any more, and what runs of it ends.  Pure.
 */
#include "fsm/alloc.h"
#include "fsm/task.h"

static const struct alloc_member *find_task(const struct alloc *alloc, const char *name)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && text_equal(member->name, name))
            return member;
    }
    return NULL;
}

static const char *difference(const struct alloc_member *member, const struct task *task)
{
    if (member == NULL)
        return "its alloc does not know it";
    if (member->run_state != task->run_state)
        return "it is in another state than its alloc was told";
    if (member->lifecycle != task->define.lifecycle || member->sidecar != task->define.sidecar ||
        member->leader != task->define.leader)
        return "it has another place in its group than its alloc knows";
    if (task->told_revision != task->status_revision)
        return NULL; /* its alloc has not heard of all of it yet */
    if (member->failed != task->failed)
        return "its alloc was told another outcome";
    if (member->rewound && !task_is_rewound(task))
        return "its alloc was told otherwise of its turn";
    if (member->started != task_has_started(task))
        return "its alloc was told otherwise of its start";
    return NULL;
}

/* Nobody but its alloc or a script of its own orders a task to end, and the alloc does not go on.
 */
static const char *disorder(const struct alloc *alloc, const struct task *task)
{
    bool runs = alloc->machine.state == A_RUNNING || alloc->machine.state == A_REPLAYING;

    return runs && task->kill_wanted && !task->script_failed
               ? "it was told to end, and its alloc goes on"
               : NULL;
}

/* Its tasks are dead, and what has come of them stands. */
static bool is_over(const struct alloc *alloc)
{
    uint8_t state = alloc->machine.state;

    return state == A_RELEASING || state == A_POSTRUN || state == A_TERMINAL ||
           state == A_DESTROYING;
}

enum alloc_belief alloc_believe(const struct alloc *alloc, const char *name,
                                const struct task *task, const char **ret_why)
{
    const char *why = difference(find_task(alloc, name), task);

    if (why == NULL)
        why = disorder(alloc, task);
    if (why == NULL)
        return BELIEVE_BOTH;
    *ret_why = why;
    if (is_over(alloc))
        return BELIEVE_ALLOC;
    return task_holds_work(task) ? BELIEVE_TASK : BELIEVE_NEITHER;
}
