/*
 * What a plugin has started for a task and does not know of: it ended in mid-start.
 *
 * It is in the plugin's cgroup, where what plugins start begins, and it has the task's environment:
 * whoever has both is of this task, and of no attempt that goes on, since there is none.
 */
#include "drivers/external/external.h"

#include "io/log.h"

#include <signal.h>

enum { VARIABLE_SIZE = SPEC_NAME_SIZE + 64 };

struct orphans {
    char alloc[VARIABLE_SIZE], task[VARIABLE_SIZE]; /* variables */
    size_t count;
};

static bool end_one(void *ctx, pid_t pid)
{
    struct orphans *orphans = ctx;
    struct proc_identity identity;

    if (proc_identify(pid, &identity, NULL) == 0 && proc_has_variable(&identity, orphans->alloc) &&
        proc_has_variable(&identity, orphans->task)) {
        (void)proc_signal(&identity, SIGKILL, NULL); /* gone is what is wanted */
        orphans->count++;
    }
    return true;
}

void external_end_orphans(const struct external *external)
{
    const struct run *run = external->run;
    const struct drivers *drivers = run->drivers;
    struct orphans orphans = {.count = 0};
    char cgroup[CGROUP_NAME_SIZE];

    if (drivers->config.plugins == NULL ||
        !plugins_cgroup(drivers->config.plugins, external->record.driver, cgroup))
        return;
    check(text_format(orphans.alloc, sizeof(orphans.alloc), "NOMAD_ALLOC_ID=%s", run->key.alloc));
    check(text_format(orphans.task, sizeof(orphans.task), "NOMAD_TASK_NAME=%s", run->key.task));
    (void)cgroup_each_process(drivers->config.cgroup_mode, cgroup, end_one, &orphans,
                              NULL); /* where there is none, nothing is */
    if (orphans.count > 0)
        log_warn("drivers", "what a plugin does not know of was ended task=%s/%s processes=%zu",
                 run->key.alloc, run->key.task, orphans.count);
}
