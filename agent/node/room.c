/*
 * What this node has, and what of it allocs may be given.
 *
 * Follows nomad v2.0.5 client/lib/numalib/topology.go (UsableCompute) and structs.AllocsFit: the
 * cores that are reserved count for nothing, and what else is reserved is taken off.  Nomad places
 * by what there is with those cores, though no task runs on them, and takes reserved cpu off what
 * its operator gives but not off what it then says is usable; here both are the same number.
 */
#include "agent/node/node.h"

/* What is left of TOTAL, which is 0 where it could not be found out: then there is no bound. */
static uint64_t rest(uint64_t total, uint64_t usable, uint64_t reserved)
{
    if (total == 0)
        return UINT64_MAX;
    return usable > reserved ? usable - reserved : 0;
}

void node_find_room(struct node *node, const struct config *config)
{
    const struct host_facts *facts = &node->facts;
    size_t withheld = node->cores_count - core_set_count(&node->cores);
    size_t usable = facts->cpu_cores > withheld ? facts->cpu_cores - withheld : 0;
    uint64_t given_mhz = config->cpu_total_compute;

    node->whole = (struct room){
        .cpu_mhz = given_mhz > 0 ? given_mhz : (uint64_t)facts->cpu_mhz * facts->cpu_cores,
        .cores = node->cores_count,
        .memory_mb = facts->memory_bytes >> 20,
        .disk_mb = facts->disk_free_bytes >> 20,
    };
    node->room = (struct room){
        .cpu_mhz =
            rest(node->whole.cpu_mhz, given_mhz > 0 ? given_mhz : (uint64_t)facts->cpu_mhz * usable,
                 config->reserved_cpu_mhz),
        .cores = core_set_count(&node->cores),
        .memory_mb = rest(node->whole.memory_mb, node->whole.memory_mb, config->reserved_memory_mb),
        .disk_mb = rest(facts->disk_bytes, node->whole.disk_mb, config->reserved_disk_mb),
    };
}
