/* Pseudo-random numbers from an explicit state: the same seed gives the same numbers. */
#ifndef CAIRN_BASE_RNG_H
#define CAIRN_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

struct rng rng_init(uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* Uniform in [0, BOUND); 0 if BOUND is 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

/* True CHANCE times in OF. */
bool rng_chance(struct rng *rng, uint64_t chance, uint64_t of);

#endif
