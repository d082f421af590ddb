/*
 * Processors that tasks have for themselves (resources { cores = 2 }), as Nomad has them in the
 * resources of an alloc.
 */
#include "spec/blocks/blocks.h"
#include "spec/names.h"

#include <string.h>

uint64_t jobspec_cores(const json_t *group)
{
    const json_t *task;
    uint64_t cores = 0;
    size_t i;

    json_array_foreach(json_object_get(group, "Tasks"), i, task)
    {
        json_int_t asked =
            json_integer_value(json_object_get(json_object_get(task, "Resources"), "Cores"));

        cores += asked > 0 ? (uint64_t)asked : 0;
    }
    return cores;
}

void spec_cores_text(const uint16_t *ids, size_t count, char to[CORES_TEXT_SIZE])
{
    char part[16];
    size_t last;

    to[0] = '\0';
    for (size_t i = 0; i < count; i = last + 1) {
        for (last = i; last + 1 < count && ids[last + 1] == ids[last] + 1; last++)
            continue;
        if (last == i)
            (void)text_format(part, sizeof(part), "%s%u", i > 0 ? "," : "", ids[i]); /* both */
        else
            (void)text_format(part, sizeof(part), "%s%u-%u", i > 0 ? "," : "", ids[i],
                              ids[last]); /* fit */
        check(text_append(to, CORES_TEXT_SIZE, part));
    }
}

void jobspec_add_cores(json_t *alloc, const struct spec_cores *cores)
{
    for (size_t i = 0; i < cores->count; i++) {
        json_t *all = jobspec_member(alloc, "AllocatedResources", json_object);
        json_t *task = jobspec_member(jobspec_member(all, "Tasks", json_object),
                                      cores->items[i].task, json_object);
        json_t *cpu = jobspec_member(task, "Cpu", json_object);
        json_t *ids = jobspec_member(cpu, "ReservedCores", json_array);

        check(json_array_append_new(ids, json_integer(cores->items[i].id)) == 0);
        uint64_t mhz = json_array_size(ids) * cores->mhz;
        mhz = mhz > INT32_MAX ? INT32_MAX : mhz; /* of a total that somebody made up */
        check(json_object_set_new(cpu, "CpuShares", json_integer((json_int_t)mhz)) == 0);
    }
}
