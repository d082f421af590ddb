/* What many worlds came to: counts, and which rows of the tables were taken. */
#include "sim/sim.h"

#include <string.h>

void sim_tally_add(struct sim_tally *tally, const struct sim_tally *other)
{
    tally->runs += other->runs;
    tally->events += other->events;
    tally->turns += other->turns;
    tally->simulated_ms += other->simulated_ms;
    tally->incarnations += other->incarnations;
    tally->points += other->points;
    tally->tried += other->tried;
    tally->hash += other->hash;
    for (int i = 0; i < SIM_FAULT_COUNT; i++)
        tally->faults[i] += other->faults[i];
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        for (size_t i = 0; i < COUNT_OF(tally->rows[kind]); i++)
            tally->rows[kind][i] |= other->rows[kind][i];
    }
}

void sim_count(struct sim_tally *tally, const struct sim_result *result)
{
    struct sim_tally one = {
        .runs = 1,
        .events = result->events,
        .turns = result->turns,
        .simulated_ms = result->simulated_ms,
        .incarnations = result->incarnations,
        .hash = hash_u64(1, result->hash), /* a sum does not know the order */
    };

    for (int i = 0; i < SIM_FAULT_COUNT; i++)
        one.faults[i] = result->faults[i];
    memcpy(one.rows, result->rows, sizeof(one.rows));
    sim_tally_add(tally, &one);
}
