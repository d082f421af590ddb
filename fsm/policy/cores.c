/* Processors by their numbers. */
#include "fsm/policy.h"

static uint64_t bit_of(uint16_t core)
{
    check(core < NODE_CORES_MAX);
    return (uint64_t)1 << core % 64;
}

bool core_set_has(const struct core_set *set, uint16_t core)
{
    return (set->bits[core / 64] & bit_of(core)) != 0;
}

void core_set_add(struct core_set *set, uint16_t core)
{
    set->bits[core / 64] |= bit_of(core);
}

void core_set_drop(struct core_set *set, uint16_t core)
{
    set->bits[core / 64] &= ~bit_of(core);
}

size_t core_set_count(const struct core_set *set)
{
    size_t count = 0;

    for (uint16_t core = 0; core < NODE_CORES_MAX; core++)
        count += core_set_has(set, core);
    return count;
}
