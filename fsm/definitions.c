/* The four lifecycles.  What knows all of them stands above their tables; rules do not. */
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

const struct fsm_def *fsm_definition(enum machine_kind kind)
{
    switch (kind) {
    case MACHINE_PLUGIN:
        return &plugin_def;
    case MACHINE_VOLUME:
        return &volume_def;
    case MACHINE_TASK:
        return &task_def;
    case MACHINE_ALLOC:
        return &alloc_def;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

const char *machine_kind_name(enum machine_kind kind)
{
    return (unsigned)kind < MACHINE_KIND_COUNT ? fsm_definition(kind)->name : "?";
}
