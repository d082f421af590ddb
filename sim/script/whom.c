/*
 * Who is who: the machines that a script, or the journal it begins from, names.
 */
#include "sim/script/started.h"

const struct machine_id *sim_start_id(const struct sim_start *start, const struct sim_whom *whom)
{
    size_t member = (size_t)whom->member;

    switch ((enum machine_kind)whom->kind) {
    case MACHINE_PLUGIN:
        return &start->plugins.items[member].id;
    case MACHINE_ALLOC:
        return &start->allocs.items[(size_t)whom->alloc].id;
    case MACHINE_TASK:
        return &start->tasks.items[start->allocs.items[(size_t)whom->alloc].tasks + member].id;
    case MACHINE_VOLUME:
        return &start->claims.items[start->allocs.items[(size_t)whom->alloc].claims + member].id;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("a machine that is not in the journal");
}

bool sim_plugin_task(const struct sim_script *script, int plugin, struct sim_whom *ret_task)
{
    for (unsigned a = 0; a < script->allocs_count; a++) {
        for (unsigned t = 0; t < script->allocs[a].tasks_count; t++) {
            if (script->allocs[a].tasks[t].serves != plugin + 1)
                continue;
            *ret_task = (struct sim_whom){MACHINE_TASK, (int16_t)a, (int16_t)t};
            return true;
        }
    }
    return false;
}

static struct machine_id plugin_id(const struct sim_script *script, int plugin)
{
    struct sim_whom task;

    if (!sim_plugin_task(script, plugin, &task))
        return machine_id_join(MACHINE_PLUGIN, "csi", script->plugins[plugin].name);
    const struct sim_alloc *alloc = &script->allocs[(unsigned)task.alloc];
    return machine_id_join(MACHINE_PLUGIN, alloc->name, alloc->tasks[(unsigned)task.member].name);
}

struct machine_id sim_whom_id(const struct sim_script *script, const struct sim_whom *whom)
{
    if (script->start != NULL)
        return *sim_start_id(script->start, whom);
    if (whom->kind == MACHINE_PLUGIN)
        return plugin_id(script, whom->member);
    const struct sim_alloc *alloc = &script->allocs[(unsigned)whom->alloc];
    if (whom->kind == MACHINE_ALLOC)
        return machine_id_make(MACHINE_ALLOC, alloc->name);
    if (whom->kind == MACHINE_TASK)
        return machine_id_join(MACHINE_TASK, alloc->name,
                               alloc->tasks[(unsigned)whom->member].name);
    return machine_id_join(MACHINE_VOLUME, alloc->name, alloc->claims[(unsigned)whom->member].name);
}

void sim_whom_name(const struct sim_script *script, const struct sim_whom *whom, char *to,
                   size_t size)
{
    if (whom->kind == MACHINE_KIND_COUNT) {
        (void)text_copy(to, size, script->jobs[(unsigned)whom->member].name); /* bounded */
        return;
    }
    if (whom->kind == MACHINE_PLUGIN && script->start == NULL) {
        (void)text_copy(to, size, script->plugins[(unsigned)whom->member].name); /* bounded */
        return;
    }
    struct machine_id id = sim_whom_id(script, whom);
    (void)text_format(to, size, "%s",
                      whom->kind == MACHINE_PLUGIN ? machine_id_name(&id) : id.text); /* bounded */
}
