/*
 * sim: the restore laboratory.
 *
 * A simulated world under the seam of agent/agent.h: servers, plugins, processes, mounts, clocks
 * and a journal in memory, with every fault of restore-failures.md section 1 and a crash at any
 * point.  Turn, lanes, restore and replay above the seam are the daemon's own.  Checkers for the 40
 * invariants look at every turn and at the end.
 *
 * A world is decided by its script (sim_script.h) and by nothing else.
 */
#ifndef CAIRN_AGENT_SIM_H
#define CAIRN_AGENT_SIM_H

#include "agent/sim_script.h"

/* `cairn sim ...`; the exit status: 0, 1 usage, 127 assertion, 128 liveness, 129 safety. */
int cli_sim(int argc, char **argv);

enum sim_outcome {
    SIM_FINE,
    SIM_ASSERTION = 127,
    SIM_LIVENESS = 128,
    SIM_SAFETY = 129,
};

enum { SIM_ROWS_MAX = 256, SIM_VIOLATION_SIZE = 512 };

struct sim_result {
    enum sim_outcome outcome;
    uint8_t invariant;               /* 1 to 40; 0: none by number */
    char text[SIM_VIOLATION_SIZE];   /* what was violated, "" if nothing */
    uint64_t hash;                   /* of everything that happened, in order */
    uint64_t events, turns, effects; /* steps of machines, commits, effects */
    uint64_t simulated_ms;
    uint32_t incarnations;
    uint32_t points[SIM_CUTS_MAX];    /* crash points that each incarnation has passed */
    uint32_t cuttable[SIM_CUTS_MAX];  /* those at which it could have died: not yet healed */
    uint32_t faults[SIM_FAULT_COUNT]; /* how often each came up */
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64]; /* rows taken */
};

/* A world that can be run again and again; one at a time in a process. */
struct sim;
struct sim *sim_new(void);
void sim_free(struct sim *sim);

/* Runs SCRIPT from nothing to its end.  PRINT (may be NULL) gets the story line by line. */
void sim_run(struct sim *sim, const struct sim_script *script, fsm_print *print, void *ctx,
             struct sim_result *ret_result);

/* From the next world on, commits go to JOURNAL, too, which is new and open for writing, or holds
 * what the worlds begin from.  Of the first INCARNATIONS only (0: of all): then it stays as the
 * last one's crash has left it.  NULL: no more. */
struct journal;
void sim_set_journal(struct sim *sim, struct journal *journal, uint32_t incarnations);

/* --- stories --- */

/* The named story's text, or NULL; number NUMBER's name, or NULL behind the last. */
const char *sim_story_text(const char *name);
const char *sim_story_name(size_t number);
const char *sim_story_about(const char *name);

/* --- every crash point of a script --- */

struct sim_exhaustion {
    uint64_t runs;
    uint64_t points, tried;   /* crash points of the runs without one; those at which one came */
    struct sim_script worst;  /* the first script that failed, if any */
    struct sim_result result; /* and how */
};

/* Runs SCRIPT with a crash at each of its crash points, PAIRS: and at each point behind the first
 * crash, in both fates of the work under way.  Stops at the first failure. */
void sim_exhaust(struct sim *sim, const struct sim_script *script, bool pairs,
                 struct sim_exhaustion *ret_exhaustion);

/* Makes SCRIPT, which fails, smaller for as long as it fails in the same way. */
void sim_shrink(struct sim *sim, struct sim_script *script, struct sim_result *result);

/* --- all reachable states of the composed tables, within bounds --- */

struct sim_search {
    uint64_t states_max;  /* in: 0 is no bound */
    uint32_t crashes_max; /* in: of one path */
    uint64_t states, transitions;
    uint32_t depth;
    bool complete; /* every state within the bounds was visited */
    char violation[SIM_VIOLATION_SIZE];
};

/* PRINT gets the shortest trace to a violation. */
void sim_search(struct sim_search *search, fsm_print *print, void *ctx);

/* --- the list of invariants --- */

struct sim_invariant {
    const char *title;
    const char *checked;   /* how the simulator checks it, or NULL */
    const char *elsewhere; /* why it cannot: what does */
};
const struct sim_invariant *sim_invariant(unsigned number); /* 1 to 40 */

#endif
