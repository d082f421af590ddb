/* What a node that is drained still runs: nomad v2.0.5 nomad/drainer, as one node has it. */
#include "fsm/policy.h"

/* What the node serves others by goes last, when nobody is left who may use it. */
static bool goes_last(const struct drain_alloc *alloc)
{
    return alloc->type == JOB_SYSTEM || alloc->plugin;
}

/* Work is let end by itself; all else would have been placed elsewhere, and nobody waits for that
 * where there is one node. */
static bool ends_by_itself(const struct drain_alloc *alloc)
{
    return alloc->type == JOB_BATCH || alloc->type == JOB_SYSBATCH;
}

bool policy_drain(const struct drain *drain, struct drain_alloc *allocs, size_t count)
{
    bool awaits = false;

    for (size_t i = 0; i < count; i++)
        awaits |= !allocs[i].ended && !goes_last(&allocs[i]);
    for (size_t i = 0; i < count; i++) {
        struct drain_alloc *alloc = &allocs[i];
        bool now = drain->over || (goes_last(alloc) ? !awaits : !ends_by_itself(alloc));

        alloc->stop = alloc->live && now && !(alloc->type == JOB_SYSTEM && drain->ignore_system);
    }
    return !awaits;
}
