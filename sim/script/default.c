/*
 * What a script says where it says nothing: what its text form leaves out.
 */
#include "sim/script/words.h"

#include "fsm/task.h"

struct sim_task sim_task_default(const char *name)
{
    struct sim_task task = {
        .dies_ms = 5,
        .interval_ms = 60000,
        .backoff_ms = 1000,
        .kill_ms = 2000,
        .attempts = 1,
        .hooks = {1u << TASK_HOOK_VALIDATE | 1u << TASK_HOOK_TASK_DIR | 1u << TASK_HOOK_LOGS, 0, 0,
                  0, 1u << TASK_HOOK_TASK_DIR},
    };

    (void)text_copy(task.name, sizeof(task.name), name); /* cut: then not found again */
    return task;
}

struct sim_alloc sim_alloc_default(const char *name)
{
    struct sim_alloc alloc = {
        .hooks = {1u << ALLOC_HOOK_ALLOC_DIR, 0, 0, 1u << ALLOC_HOOK_ALLOC_DIR},
    };

    (void)text_copy(alloc.name, sizeof(alloc.name), name); /* cut: then not found again */
    return alloc;
}

struct sim_script sim_script_default(void)
{
    return (struct sim_script){.seed = 1, .heal_ms = 60000, .cut_down_ms = 100};
}
