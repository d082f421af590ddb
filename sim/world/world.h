/*
 * The simulated world as a whole: its parts, the daemon in it, and what happens to it.
 *
 * Each part has its own header: time, told (its story), things (what there is), store (the
 * journal), process, call, control.  What must hold is in check.h.
 */
#ifndef CAIRN_SIM_WORLD_WORLD_H
#define CAIRN_SIM_WORLD_WORLD_H

#include "core/life.h"
#include "core/replay.h"
#include "sim/script/started.h"
#include "sim/sim.h"
#include "sim/world/call.h"
#include "sim/world/control.h"
#include "sim/world/jobs.h"
#include "sim/world/journal/store.h"
#include "sim/world/process.h"
#include "sim/world/things.h"
#include "sim/world/time.h"
#include "sim/world/told.h"

#include <setjmp.h>

enum { SIM_FIRST_BOOT = 1 }; /* also of a journal to begin from */

struct sim {
    const struct sim_script *script;
    const struct sim_start *start; /* journal to begin from, or NULL */
    fsm_print *print;
    void *print_ctx;
    struct sim_result *result;
    jmp_buf failed; /* an assertion comes back here */

    uint64_t now_ms;
    uint64_t boot_at_ms, boot; /* this boot's beginning and number */
    uint64_t uptime_ms;        /* of the host at that time */
    int64_t jump_ms;           /* of the wall clock */

    struct sim_heap heap;
    struct sim_told told;
    struct sim_store store;
    struct sim_copy copy;
    struct sim_sink sink;
    struct sim_attempts attempts;
    struct sim_calls calls;
    struct sim_control control;
    struct sim_jobs jobs;

    uint64_t first_sequence, first_turn; /* what the world's own events begin at */
    struct replay *replay;

    /* The daemon.  What is here dies with it. */
    struct life *life;
    struct core *core;    /* of the life */
    uint32_t incarnation; /* 1, 2, ... */
    bool up, dying, restored, in_turn;
    bool looked, swept;       /* a sweep of this incarnation has answered; so has the last one */
    bool commit_failed;       /* that of the turn under way, or of the last one */
    bool term;                /* it was told to stop, orderly */
    uint64_t clock_offset_ms; /* node time - time since boot */
    uint64_t down_ms;         /* for how long it will be away when it has died */
    bool rebooting;

    /* What there is; its size is decided when the world begins. */
    struct sim_alloc_state *allocs;
    struct sim_task_state *tasks;
    struct sim_claim_state *claims;
    struct sim_plugin_state *plugins;
    struct sim_disk_state *disks;
    int allocs_count, tasks_count, claims_count, plugins_count, disks_count;
    struct sim_names names;
    void *room; /* of all arrays of that size, kept for the next world */
    size_t room_bytes;

    /* Faults, and the end. */
    bool healed, draining;
    int unsettled; /* alloc that was found so last */
    uint64_t quiet_since_ms;
    uint32_t points; /* crash points that this incarnation has passed */
    uint32_t commits_to_fail;
    uint64_t sweep_ms; /* what a sweep takes, 0: as drawn */
    uint32_t commits;
    uint32_t turns;
    uint64_t deliveries, deliveries_max;
    bool over;
};

static inline struct sim_alloc_state *sim_alloc_of(const struct sim *sim,
                                                   const struct sim_whom *whom)
{
    check(whom->alloc >= 0 && whom->alloc < sim->allocs_count);
    return &sim->allocs[whom->alloc];
}

static inline struct sim_task_state *sim_task_of(const struct sim *sim, const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);

    check(whom->kind == MACHINE_TASK && whom->member >= 0 && whom->member < alloc->tasks_count);
    return &alloc->tasks[whom->member];
}

static inline struct sim_claim_state *sim_claim_of(const struct sim *sim,
                                                   const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);

    check(whom->kind == MACHINE_VOLUME && whom->member >= 0 && whom->member < alloc->claims_count);
    return &alloc->claims[whom->member];
}

static inline struct sim_plugin_state *sim_plugin_of(const struct sim *sim,
                                                     const struct sim_whom *whom)
{
    check(whom->kind == MACHINE_PLUGIN && whom->member >= 0 && whom->member < sim->plugins_count);
    return &sim->plugins[whom->member];
}

static inline struct sim_disk_state *sim_disk_of(const struct sim *sim, const struct sim_whom *whom)
{
    return &sim->disks[sim_claim_of(sim, whom)->disk];
}

/* --- begin.c: from a journal --- */

/* Makes journal, host and clocks as sim->start says. */
void sim_begin(struct sim *sim);

/* --- step.c: steps of the script --- */

/* sim->told.stepped says whether it came about. */
void sim_do_step(struct sim *sim, const struct sim_step *step);
/* Steps that wait for a transition among EVENTS, before (SIM_BEFORE) or after (SIM_AFTER) their
 * commit. */
void sim_watch_transitions(struct sim *sim, const struct journal_event *events, size_t count,
                           enum sim_moment moment);
void sim_heal(struct sim *sim);

/* --- dying.c --- */

/* A place at which the daemon may die.  True if it does: nothing more happens in it. */
bool sim_point(struct sim *sim, enum sim_fault kind);

/* The daemon dies before it does anything else, for DOWN_MS. */
void sim_die(struct sim *sim, uint64_t down_ms);

#endif
