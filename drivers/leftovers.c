/*
 * What sessions of an earlier life of the daemon have left in a task.
 *
 * Their helpers end them with the daemon; only of one that was killed, too, something is there.
 */
#include "drivers/part.h"
#include "drivers/shim/session.h"

static bool end_one(void *ctx, const char *child)
{
    const struct run *run = ctx;
    char task[CGROUP_NAME_SIZE], cgroup[CGROUP_NAME_SIZE];

    key_cgroup(run->drivers, &run->key, false, task);
    if (!text_starts_with(child, SESSION_CGROUP_PREFIX) ||
        !text_format(cgroup, sizeof(cgroup), "%s/%s", task, child))
        return true;
    (void)cgroup_kill(run->drivers->config.cgroup_mode, cgroup, NULL);   /* else it goes with */
    (void)cgroup_remove(run->drivers->config.cgroup_mode, cgroup, NULL); /* the task, as this */
    return true;
}

void sessions_sweep(const struct run *run)
{
    char task[CGROUP_NAME_SIZE];

    key_cgroup(run->drivers, &run->key, false, task);
    (void)cgroup_each_child(run->drivers->config.cgroup_mode, task, end_one, (void *)(uintptr_t)run,
                            NULL); /* what cannot be looked at is gone */
}
