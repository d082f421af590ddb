#include "agent/launch.h"

#include "agent/parts.h"

const struct task_spec *launch_task(const struct alloc_spec *alloc, const char *name)
{
    for (size_t i = 0; i < alloc->tasks_count; i++) {
        if (text_equal(alloc->tasks[i].name, name))
            return &alloc->tasks[i];
    }
    return NULL;
}

int launch_open(struct parts *parts, const struct alloc_spec *alloc, const struct task_spec *spec,
                const struct task *task, struct launch *launch, struct err *err)
{
    int code = hooks_paths(parts->hooks, alloc->id, spec->name, &launch->paths, err);

    if (code == 0)
        code = hooks_prepare(parts->hooks, alloc, spec, task->results, task->results_bytes,
                             &launch->ready, err);
    if (code < 0)
        return code;
    launch->start = (struct driver_start){
        .key = {.generation = task->machine.generation},
        .task = &launch->ready->task,
        .alloc_dir = launch->paths.root,
        .task_dir = launch->paths.task,
        .log_dir = launch->paths.logs,
        .env = launch->ready->env,
        .mounts = launch->ready->mounts,
        .ports = alloc->ports,
        .network = launch->ready->network,
        .resolv = launch->ready->resolv,
        .hosts = launch->ready->hosts,
        .hostname = launch->ready->hostname,
    };
    struct driver_key *key = &launch->start.key;
    (void)text_copy(key->alloc, sizeof(key->alloc), alloc->id);             /* a UUID */
    (void)text_copy(key->task, sizeof(key->task), spec->name);              /* bounded */
    (void)text_copy(key->driver, sizeof(key->driver), task->define.driver); /* same size */
    return 0;
}

void launch_close(struct launch *launch)
{
    hooks_launch_free(launch->ready);
}
