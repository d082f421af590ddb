/* Ports of one address: which are taken, and which is given out next. */
#include "fsm/policy.h"

_Static_assert(sizeof(((struct port_set *)NULL)->bits) * 8 == UINT16_MAX + 1, "a bit for each");

enum { BITS = 64 };

bool port_set_has(const struct port_set *set, uint16_t port)
{
    return (set->bits[port / BITS] >> (port % BITS) & 1u) != 0;
}

void port_set_add(struct port_set *set, uint16_t port)
{
    set->bits[port / BITS] |= UINT64_C(1) << (port % BITS);
}

void port_set_drop(struct port_set *set, uint16_t port)
{
    set->bits[port / BITS] &= ~(UINT64_C(1) << (port % BITS));
}

/* The first of FIRST..LAST that is not in SET, 0: none.  Full words are passed over whole. */
static uint16_t first_free(const struct port_set *set, uint32_t first, uint32_t last)
{
    for (uint32_t port = first; port <= last; port = (port / BITS + 1) * BITS) {
        uint64_t free = ~set->bits[port / BITS] & (UINT64_MAX << (port % BITS));

        if (free == 0)
            continue;
        uint32_t found = port / BITS * BITS + (uint32_t)__builtin_ctzll(free);
        return found <= last ? (uint16_t)found : 0;
    }
    return 0;
}

uint16_t policy_pick_port(const struct port_set *taken, const struct port_range *range,
                          uint64_t seed)
{
    if (range->first == 0 || range->first > range->last)
        return 0;
    uint32_t start = range->first + (uint32_t)(seed % (range->last - range->first + UINT64_C(1)));
    uint16_t found = first_free(taken, start, range->last);

    return found != 0 || start == range->first ? found : first_free(taken, range->first, start - 1);
}
