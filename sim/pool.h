/*
 * sim_pool: many worlds on several cores.
 *
 * Items are numbered from 0 and taken in order by child processes, one for each core, so that an
 * assertion, a crash or a hang in one costs that item alone and is reported like any other failure.
 * What they count lies in memory that all of them share.  The failure of the lowest item is the one
 * reported, however many cores there are.
 */
#ifndef CAIRN_SIM_POOL_H
#define CAIRN_SIM_POOL_H

#include "sim/sim.h"

enum { SIM_CORES_MAX = 256 };

struct sim_failure {
    uint64_t item;
    bool has_run;             /* false: the process died, and there is no script to run again */
    struct sim_script script; /* that fails */
    struct sim_result result;
};

/* Does ITEM and adds to TALLY, world by world.  False if it failed; FAILURE says how. */
typedef bool sim_work(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                      struct sim_failure *ret_failure);

struct sim_pool {
    const char *what; /* the items, in the progress line: "seeds" */
    uint64_t items;
    unsigned cores;
    uint32_t stall_s; /* an item in which no world ends for this long hangs */
    sim_work *work;
    void *ctx;
};

/* Runs all items, or those before the first that fails.  True if none failed; TALLY and
 * RET_FAILURE are the caller's. */
bool sim_pool_run(const struct sim_pool *pool, struct sim_tally *tally,
                  struct sim_failure *ret_failure);

#endif
