/*
 * What a plugin has started for a task and does not know of: it ended in mid-start.
 *
 * It is in the plugin's cgroup, where what plugins start begins, and it has the task's environment:
 * whoever has both is of this task, and of no attempt that goes on, since there is none.
 */
#include "drivers/external/external.h"

#include "io/log.h"
#include "io/scope.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 256 << 10, VARIABLE_SIZE = SPEC_NAME_SIZE + 64 };

struct orphans {
    char alloc[VARIABLE_SIZE], task[VARIABLE_SIZE]; /* variables, with the NUL behind each */
    char *environment;                              /* of the one that is looked at */
    size_t count;
};

/* True if the LENGTH bytes of an environment have VARIABLE, whole. */
static bool has(const char *environment, size_t length, const char *variable)
{
    size_t size = strlen(variable) + 1; /* as it ends there, too */
    const char *found = memmem(environment, length, variable, size);

    return found != NULL && (found == environment || found[-1] == '\0');
}

static bool end_one(void *ctx, pid_t pid)
{
    struct orphans *orphans = ctx;
    struct proc_identity identity;
    char path[PLACE_PATH_SIZE];

    check(text_format(path, sizeof(path), "/proc/%d/environ", (int)pid));
    if (proc_identify(pid, &identity, NULL) != 0)
        return true;
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, orphans->environment, ENVIRONMENT_MAX);
    if (length > 0 && has(orphans->environment, (size_t)length, orphans->alloc) &&
        has(orphans->environment, (size_t)length, orphans->task)) {
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
    orphans.environment = malloc(ENVIRONMENT_MAX);
    check(orphans.environment != NULL);
    (void)cgroup_each_process(drivers->config.cgroup_mode, cgroup, end_one, &orphans,
                              NULL); /* where there is none, nothing is */
    free(orphans.environment);
    if (orphans.count > 0)
        log_warn("drivers", "what a plugin does not know of was ended task=%s/%s processes=%zu",
                 run->key.alloc, run->key.task, orphans.count);
}
