/*
 * sim: the restore laboratory.
 *
 * A simulated world under the seam of core/core.h: servers, plugins, processes, mounts, clocks
 * and a journal in memory, with every fault of restore-failures.md section 1 and a crash at any
 * point.  Turn, lanes, restore and replay above the seam are the daemon's own.  Checkers for the 40
 * invariants look at every turn and at the end.
 *
 * A world is decided by its script (sim/script/script.h) and by nothing else.
 */
#ifndef CAIRN_SIM_SIM_H
#define CAIRN_SIM_SIM_H

#include "sim/script/script.h"

/* How a world ended; also the exit status of `cairn sim`. */
enum sim_outcome {
    SIM_FINE,
    SIM_ASSERTION = 127,
    SIM_LIVENESS = 128,
    SIM_SAFETY = 129,
};

enum { SIM_ROWS_MAX = 512, SIM_VIOLATION_SIZE = 512 };

struct sim_result {
    enum sim_outcome outcome;
    uint8_t invariant;               /* 1 to 40; 0: none by number, as a story's expectation */
    char text[SIM_VIOLATION_SIZE];   /* what was violated, "" if nothing */
    uint64_t hash;                   /* of everything that happened, in order */
    uint64_t events, turns, effects; /* steps of machines, commits, effects */
    uint64_t simulated_ms;
    uint32_t incarnations;
    uint32_t decided;                 /* how often it was open whether work under way happens */
    uint32_t points[SIM_CUTS_MAX];    /* crash points that each incarnation has passed */
    uint32_t faults[SIM_FAULT_COUNT]; /* how often each came up */
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64]; /* rows taken */
};

/* What many worlds came to, together. */
struct sim_tally {
    uint64_t runs, events, turns, simulated_ms, incarnations;
    uint64_t faults[SIM_FAULT_COUNT];
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64];
    uint64_t points, tried; /* crash points of restarts from a journal: all, and those tried */
    uint64_t hash;          /* of all of them, in whatever order they ran */
};
void sim_count(struct sim_tally *tally, const struct sim_result *result);
void sim_tally_add(struct sim_tally *tally, const struct sim_tally *other);

/* A world that can be run again and again. */
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

/* What runs in worlds whose script has jobs; borrowed. */
struct sim_plane;
void sim_set_plane(struct sim *sim, const struct sim_plane *plane);

/* --- stories --- */

/* Number NUMBER's name, or NULL behind the last; the named story's text, what it is about in one
 * line, and the entries of restore-failures.md that it covers ("R-01 R-15"), or NULL. */
const char *sim_story_name(size_t number);
const char *sim_story_text(const char *name);
const char *sim_story_about(const char *name);
const char *sim_story_covers(const char *name);

/* --- every crash point of a script --- */

/* Runs SCRIPT with a crash at each of its crash points, PAIRS: and at each point behind the first
 * crash, in both fates of the work under way where there is some; TALLY counts the runs.  False at
 * the first failure: SCRIPT is the one that failed, RET_RESULT says how. */
bool sim_exhaust(struct sim *sim, struct sim_script *script, bool pairs, struct sim_tally *tally,
                 struct sim_result *ret_result);

/* Makes SCRIPT, which fails, smaller for as long as it fails in the same way. */
void sim_shrink(struct sim *sim, struct sim_script *script, struct sim_result *result);

/* --- all reachable states of the composed tables, within bounds --- */

/* How often something may happen on one path; all are part of the state, so that there are finitely
 * many of them.
 *      name        default  what */
#define SIM_BOUNDS(X)                                                                              \
    X(FAULTS, "faults", 1, "faults of all kinds together")                                         \
    X(CRASH, "crashes", 1, "SIGKILL of the daemon, at any point")                                  \
    X(BOOT, "reboots", 1, "reboots of the host")                                                   \
    X(CALL, "failures", 1, "calls that fail, for good, for now, or too late")                      \
    X(SHIM, "shims", 1, "shims that die, and exit records that are lost")                          \
    X(PLUGIN, "plugins", 1, "plugin processes that die")                                           \
    X(MOUNT, "mounts", 1, "mounts that vanish")                                                    \
    X(COMMIT, "commits", 1, "commits that fail")                                                   \
    X(DAMAGE, "damages", 1, "records of the journal that cannot be read any more")                 \
    X(REQUEST, "requests", 0,                                                                      \
      "restarts of tasks, stops of the plugin that are asked for; no fault")                       \
    X(TOGETHER, "together", 1, "events that one turn may take at once; no fault")
enum sim_bound {
#define X(name, text, value, what) SIM_BOUND_##name,
    SIM_BOUNDS(X)
#undef X
        SIM_BOUND_COUNT,
};
const char *sim_bound_name(enum sim_bound bound);
const char *sim_bound_about(enum sim_bound bound);

/* What the two tasks of the alloc are to each other, and the plugin. */
#define SIM_SHAPES(X)                                                                              \
    X(MAINS, "mains", "two main tasks")                                                            \
    X(LEADER, "leader", "a leader and another main task")                                          \
    X(SIDECAR, "sidecar", "a main task and a sidecar before it; the plugin stages nothing")        \
    X(POSTSTOP, "poststop", "a main task and one that runs after it")                              \
    X(HOOKS, "hooks", "the same, with hooks in every phase and delays before each stop")
enum sim_shape {
#define X(name, text, what) SIM_SHAPE_##name,
    SIM_SHAPES(X)
#undef X
        SIM_SHAPE_COUNT,
};
const char *sim_shape_name(enum sim_shape shape);
const char *sim_shape_about(enum sim_shape shape);

struct sim_search;
typedef void sim_search_progress(void *ctx, const struct sim_search *so_far);

struct sim_search {
    /* In. */
    uint8_t bounds[SIM_BOUND_COUNT];
    enum sim_shape shape;
    bool server;                   /* a server decides, else a stand-alone control plane */
    uint64_t states_max;           /* 0: as many as there are */
    sim_search_progress *progress; /* called now and then; may be NULL */
    void *progress_ctx;

    /* Out, and so far. */
    uint64_t states, transitions;
    uint64_t frontier; /* states whose transitions have not been looked at */
    uint64_t ends;     /* states in which the node is at rest */
    uint32_t depth;    /* transitions of the longest shortest path */
    bool complete;     /* every state within the bounds was visited */
    enum sim_outcome outcome;
    uint8_t invariant;                                    /* as in struct sim_result */
    char text[SIM_VIOLATION_SIZE];                        /* what was violated, "" if nothing */
    uint32_t trace_length;                                /* transitions that lead there */
    uint64_t rows[MACHINE_KIND_COUNT][SIM_ROWS_MAX / 64]; /* rows taken */
};

/* The first of the searches below. */
struct sim_search sim_search_default(void);

/* The searches that are made when nothing else is asked for: the name of number NUMBER, NULL behind
 * the last. */
const char *sim_search_plan(size_t number, struct sim_search *ret_search);

/* One alloc with two tasks and one volume, one plugin, and a world in which everything that can
 * happen may happen next: visits every state that can be reached within the bounds and judges each;
 * then looks for states from which no rest can be reached without another fault.  PRINT (may be
 * NULL) gets the shortest trace to the first violation. */
void sim_search(struct sim_search *search, fsm_print *print, void *ctx);

/* --- the list of invariants --- */

struct sim_invariant {
    const char *title;
    const char *checked;   /* how the simulator checks it, or NULL */
    const char *elsewhere; /* why it cannot: what does */
};
const struct sim_invariant *sim_invariant(unsigned number); /* 1 to 40 */

#endif
