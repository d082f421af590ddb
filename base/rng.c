#include "base/rng.h"

/* SplitMix64. */
struct rng rng_init(uint64_t seed)
{
    return (struct rng){.state = seed};
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    return (uint64_t)(((__uint128_t)rng_next(rng) * bound) >> 64);
}

bool rng_chance(struct rng *rng, uint64_t chance, uint64_t of)
{
    return rng_below(rng, of) < chance;
}
