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

/* How a world ended; also the exit status of `cairn sim`. */
enum sim_outcome {
    SIM_FINE,
    SIM_ASSERTION = 127,
    SIM_LIVENESS = 128,
    SIM_SAFETY = 129,
};

enum { SIM_ROWS_MAX = 256, SIM_VIOLATION_SIZE = 512 };

struct sim_result {
    enum sim_outcome outcome;
    uint8_t invariant;               /* 1 to 40; 0: none by number, as a story's expectation */
    char text[SIM_VIOLATION_SIZE];   /* what was violated, "" if nothing */
    uint64_t hash;                   /* of everything that happened, in order */
    uint64_t events, turns, effects; /* steps of machines, commits, effects */
    uint64_t simulated_ms;
    uint32_t incarnations;
    uint32_t points[SIM_CUTS_MAX];    /* crash points that each incarnation has passed */
    uint32_t faults[SIM_FAULT_COUNT]; /* how often each came up */
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64]; /* rows taken */
};

/* What many worlds came to, together. */
struct sim_tally {
    uint64_t runs, events, turns, simulated_ms, incarnations;
    uint64_t faults[SIM_FAULT_COUNT];
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64];
    uint64_t hash; /* of all of them, in whatever order they ran */
};
void sim_count(struct sim_tally *tally, const struct sim_result *result);
void sim_tally_add(struct sim_tally *tally, const struct sim_tally *other);

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

/* Number NUMBER's name, or NULL behind the last; the named story's text, what it is about in one
 * line, and the entries of restore-failures.md that it covers ("R-01 R-15"), or NULL. */
const char *sim_story_name(size_t number);
const char *sim_story_text(const char *name);
const char *sim_story_about(const char *name);
const char *sim_story_covers(const char *name);

/* --- every crash point of a script --- */

/* Runs SCRIPT with a crash at each of its crash points, PAIRS: and at each point behind the first
 * crash, in both fates of the work under way; TALLY counts the runs.  False at the first failure:
 * SCRIPT is the one that failed, RET_RESULT says how. */
bool sim_exhaust(struct sim *sim, struct sim_script *script, bool pairs, struct sim_tally *tally,
                 struct sim_result *ret_result);

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
