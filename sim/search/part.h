/*
 * The search from the inside.  Private to sim/search/.
 *
 * The core above the seam is the daemon's own; below it is a world without time: whatever can
 * happen may happen next, and each of these moves is tried in each state.  A state is all that can
 * influence what follows: the records, what is under way on each lane, what waits in the queue,
 * the world, and how much of the bounds has been used.
 *
 * Where a daemon may die.  A move is followed by at most one turn, and death is a move between
 * two turns, after which any part of the work under way has happened, will happen, or never does.
 * That covers every other point: a death before a commit is one before its turn, and whatever
 * happened in the world meanwhile can happen while the daemon is down as well; a death between two
 * effects is one after all of them in which the rest never happens.
 */
#ifndef CAIRN_SIM_SEARCH_PART_H
#define CAIRN_SIM_SEARCH_PART_H

#include "core/snapshot.h"
#include "sim/answer.h"
#include "sim/sim.h"

#include <setjmp.h>

enum { SEARCH_TASKS = 2, SEARCH_ATTEMPTS = 2, SEARCH_MOVES_MAX = 256 };

/* There is no time: every turn is at this one, and every timer is far off until it is due. */
#define SEARCH_NOW_MS UINT64_C(1000000000)
#define SEARCH_FAR_MS (2 * SEARCH_NOW_MS)

/* The machines, in the order in which a restart brings them back. */
enum search_who { WHO_PLUGIN, WHO_VOLUME, WHO_TASK_A, WHO_TASK_B, WHO_ALLOC, WHO_COUNT };

static inline unsigned who_task(unsigned who)
{
    check(who == WHO_TASK_A || who == WHO_TASK_B);
    return who - WHO_TASK_A;
}

/* --- the world --- */

enum search_shim { SEEN_NO_SHIM, SHIM_IS_STARTING, SHIM_IS_ALIVE, SHIM_HAS_ENDED };
enum search_payload { NO_PAYLOAD_YET, PAYLOAD_LIVES, PAYLOAD_HAS_ENDED };
enum search_record { NO_RECORD, RECORD_OF_END, RECORD_OF_FAILURE, RECORD_OF_NO_MOUNT };
enum search_end { ENDS_WELL, ENDS_BADLY, ENDS_KILLED, SEARCH_ENDS };

/* What exists under one key. */
struct search_attempt {
    uint32_t generation; /* 0: of none */
    uint8_t begun;       /* a start under this key got as far as its mark */
    uint8_t shim, payload, record;
    uint8_t end;      /* how the payload ended, in truth: enum search_end */
    uint8_t starts;   /* of the payload: never more than one */
    uint8_t stopping; /* it was sent the signal to end */
    uint8_t reported; /* this incarnation was told that it runs, and is owed the end */
    uint8_t answered; /* some incarnation was told so */
    uint8_t told;     /* its end is in the journal */
    uint8_t by_boot;  /* a reboot ended it */
    uint8_t unfit;    /* its record said that it could not be started */
};

struct search_task {
    struct search_attempt attempts[SEARCH_ATTEMPTS]; /* newest first */
    uint8_t untouched;  /* the look under way found nothing when it began */
    uint8_t prestarted; /* its hooks have run since the last start, in this boot */
    uint8_t hooked;     /* they ran for the attempt under way */
    uint8_t dead;       /* it was dead once */
    uint8_t unseen;     /* looking for its payload was given up */
    uint8_t pad[3];
};

struct search_world {
    struct search_task tasks[SEARCH_TASKS];
    uint32_t plugin_generation; /* of its process, 0: none lives */
    uint8_t up;                 /* the daemon */
    uint8_t booted;             /* the host, since the daemon last ran */
    uint8_t unswept;            /* what belongs to nobody has yet to be ended */
    uint8_t fresh;              /* this incarnation has the server's word about the alloc */
    uint8_t assigned;           /* the alloc was accepted once */
    uint8_t ended, gone;        /* it was terminal once; it was removed */
    uint8_t spec;               /* its specification is in the journal */
    uint8_t torn;               /* a record of it was damaged */
    uint8_t directory;
    uint8_t staged, mounted, snatched, claimed;
    uint8_t late; /* calls of the volume that nobody waits for any more: a bit each, by effect */
    uint8_t left[SIM_BOUND_COUNT]; /* of what may still happen */
    uint8_t pad[2];
};
_Static_assert(sizeof(struct search_world) ==
                   SEARCH_TASKS * sizeof(struct search_task) + 4 + 15 + SIM_BOUND_COUNT + 2,
               "equal worlds are equal bytes");

/* --- moves --- */

/* Price: which bound pays for it, COUNT: it is free.  Posts: events for the core come with it.
 * Heals: it goes on in a world without faults in which nobody asks for anything.
 *    name     what happens                                        price   posts  heals */
#define SEARCH_MOVES(X)                                                                            \
    X(NOTHING, "nothing", COUNT, false, false)                                                     \
    X(START, "the daemon starts", COUNT, false, true)                                              \
    X(SWEEP, "the daemon ends what belongs to nobody", COUNT, true, true)                          \
    X(DIE, "the daemon is killed", CRASH, false, false)                                            \
    X(BOOT, "the host reboots", BOOT, false, false)                                                \
    X(TURN, "the turn is tried again", COUNT, true, true)                                          \
    X(DONE, "the call is done", COUNT, true, true)                                                 \
    X(FAIL, "the call fails", CALL, true, false)                                                   \
    X(SPAWN, "a shim is made", COUNT, false, true)                                                 \
    X(RUN, "the shim starts the payload", COUNT, false, true)                                      \
    X(UNFIT, "the shim finds that the program cannot be executed", CALL, false, false)             \
    X(EXIT, "the payload ends", COUNT, false, true)                                                \
    X(FORGET, "the payload ends, and its shim before it has written so", SHIM, false, false)       \
    X(SHIM, "the shim dies", SHIM, false, false)                                                   \
    X(SEE, "the daemon sees the end", COUNT, true, true)                                           \
    X(LATE, "a call that nobody waits for happens after all", COUNT, false, true)                  \
    X(VANISH, "a call that nobody waits for never happens", COUNT, false, true)                    \
    X(PLUGIN, "the plugin dies", PLUGIN, true, false)                                              \
    X(SNATCH, "the mount vanishes", MOUNT, false, false)                                           \
    X(TIMER, "the timer is due", COUNT, true, true)                                                \
    X(OVERDUE, "the timer is due although a call is under way", CALL, true, false)                 \
    X(ASSIGN, "the alloc is assigned", COUNT, true, false)                                         \
    X(CONFIRM, "the server still wants the alloc", COUNT, true, true)                              \
    X(STOP, "the alloc is to stop", COUNT, true, false)                                            \
    X(HURRY, "a user stops the alloc without its delays", REQUEST, true, false)                    \
    X(DESTROY, "the alloc is to be gone", COUNT, true, false)                                      \
    X(RESTART, "a user asks for a restart", REQUEST, true, false)                                  \
    X(REPLAY, "a user asks for all tasks again", REQUEST, true, false)                             \
    X(HEALTHY, "a user says that the alloc is healthy", COUNT, true, false)                        \
    X(UNHEALTHY, "a user says that the alloc is not healthy", COUNT, true, false)                  \
    X(CHECK, "the checks of its services find another thing", COUNT, true, false)                  \
    X(UPDATE, "there is a newer version of the alloc", COUNT, true, false)                         \
    X(DETACH, "the server asks for the volume to be detached", COUNT, true, false)                 \
    X(SIGNAL, "a user sends a signal", COUNT, true, false)                                         \
    X(VAIN, "a user asks for a restart in vain", COUNT, true, false)                               \
    X(UNPLUG, "an operator stops the plugin", REQUEST, true, false)                                \
    X(REMOVE, "an operator removes the plugin", REQUEST, true, false)                              \
    X(TEAR, "its record in the journal is damaged, the daemon is killed", DAMAGE, false, false)
enum search_move_kind {
#define X(name, text, price, posts, heals) MOVE_##name,
    SEARCH_MOVES(X)
#undef X
        SEARCH_MOVE_COUNT,
};

/* How a call fails. */
enum search_how {
    HOW_AGAIN, /* nothing was done; trying again may help */
    HOW_HARD,  /* nothing was done; trying again does not help */
    HOW_LAST,  /* as AGAIN, and it was the last try */
    HOW_LATE,  /* it was done or will be, and is answered with a failure */
    HOW_COUNT,
};

/* What becomes of the events that a move posts. */
enum search_fate {
    FATE_TURN,
    FATE_WAIT, /* more come first */
    FATE_LOSE, /* the commit fails */
};

struct search_move {
    uint8_t kind;
    uint8_t who; /* enum search_who */
    uint8_t how; /* FAIL: how; DONE, FAIL: lane in the upper half; EXIT: enum search_end;
                  * LATE, VANISH: effect; DIE: calls that happen all the same, a bit by who;
                  * BOOT: 1: unsynced marks go with it */
    uint8_t fate;
};

/* The two halves of "how". */
enum { SEARCH_SHIFT = 4 };

static inline unsigned search_how(unsigned how)
{
    return how & ((1u << SEARCH_SHIFT) - 1);
}

static inline unsigned search_place(unsigned how)
{
    return how >> SEARCH_SHIFT;
}

/* --- the form of a state --- */

/* A state is a handful of numbers: each part is kept once, whatever number of states share it
 * (collapse compression, after Holzmann's SPIN).  Equal states are equal numbers, exactly. */
enum search_part {
    PART_RECORDS, /* one for each who */
    PART_LANES = PART_RECORDS + WHO_COUNT,
    PART_QUEUE,
    PART_WORLD,
    PART_COUNT,
};

struct search_form {
    uint32_t parts[PART_COUNT];
};

/* Byte strings, each kept once and known by its number; 0 is the empty one. */
struct search_shelf {
    unsigned char *bytes;
    size_t used, size;
    size_t *starts; /* of each number, and one more */
    size_t starts_size;
    uint32_t *table;
    uint32_t count, table_size;
};

/* --- the search --- */

struct search {
    struct sim_search *asked;
    struct core *core;
    struct core_snapshot seen; /* of the core; its records are borrowed until something happens */
    uint8_t places[WHO_COUNT]; /* of each in what was seen, counted from 1; 0: it is not there */
    struct search_world world;
    struct machine_id ids[WHO_COUNT];
    struct search_shelf shelves[PART_COUNT];
    struct search_draft *draft; /* while a form is made, or made use of */
    struct search_form loaded;  /* last */

    fsm_print *print; /* while a trace is told */
    void *print_ctx;

    /* The step under way. */
    jmp_buf failed;
    bool lose;                                 /* the commit fails */
    bool in_turn;                              /* of the core */
    bool committed;                            /* since then only effects are performed */
    uint64_t revisions[WHO_COUNT];             /* as committed */
    uint32_t finals;                           /* who has come to its end: a bit each */
    uint32_t answered;                         /* requests */
    struct search_attempt *ends[SEARCH_TASKS]; /* whose end the batch reports */
};

/* --- search.c --- */

/* In its first state: nothing is there, the daemon has never run. */
struct search *search_new(struct sim_search *asked);
void search_free(struct search *search);

/* --- find.c: looking, and what is found wrong --- */

unsigned search_who(const struct search *search, const struct machine_id *id);
/* Looks at the core anew.  What follows is as it was seen last. */
void search_see(struct search *search);
struct core_machine *search_machine(const struct search *search, unsigned who); /* or NULL */
const struct machine *search_record(const struct search *search, unsigned who); /* or NULL */
const struct lane *search_lane(const struct search *search, unsigned who, enum fsm_lane lane);
/* What was seen has been changed: the core is to be so. */
void search_put(struct search *search);
struct search_attempt *search_attempt(struct search *search, unsigned task, uint32_t generation);
/* Anything of it is left, dead or alive. */
bool search_exists(const struct search_attempt *attempt);
bool search_alloc_lives(const struct search *search);
/* The search is over: goes to search->failed. */
_Noreturn void search_violate(struct search *search, enum sim_outcome outcome, unsigned invariant,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));

/* --- moves.c: what may happen next --- */

size_t search_moves(struct search *search, struct search_move *moves);
bool search_heals(const struct search *search, const struct search_move *move);
void search_describe(const struct search *search, const struct search_move *move, char *to,
                     size_t size);
/* Which bound a move is paid for from; SIM_BOUND_COUNT: it is free. */
enum sim_bound search_price(enum search_move_kind kind);
void search_pay(struct search_world *world, enum sim_bound bound);
/* A world in which nothing has happened. */
void search_begin(struct search *search);

/* --- world.c: making it happen --- */

/* Makes MOVE in the state that is loaded.  A violation goes to search->failed. */
void search_make(struct search *search, const struct search_move *move);
struct core *search_core(struct search *search);
void search_say(struct search *search, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- assign.c: what the control plane posts --- */

void search_assign(struct search *search);
void search_update(struct search *search); /* by a version that says the same */
void search_define_plugin(struct search *search);
void search_known(void *ctx, const char *alloc, struct alloc_assign *assign);
bool search_claim_known(void *ctx, const char *alloc, const char *name,
                        struct volume_define *ret_define);

/* --- process.c: shims, payloads, the driver --- */

bool search_driver_ready(struct search *search, unsigned who);
void search_driver_done(struct search *search, unsigned who);
void search_driver_fail(struct search *search, unsigned who, enum search_how how);
bool search_driver_is_open(const struct search *search, unsigned who);
void search_driver_cut(struct search *search, unsigned who);
void search_spawn(struct search *search, unsigned who);
void search_process(struct search *search, const struct search_move *move,
                    struct search_attempt *attempt);
bool search_may_sweep(const struct search *search);
void search_sweep(struct search *search);
void search_processes_reboot(struct search *search, bool marks_go);

/* --- call.c: hooks, server, plugin --- */

bool search_call_ready(const struct search *search, unsigned who, enum fsm_lane lane);
void search_call_done(struct search *search, unsigned who, enum fsm_lane lane);
void search_call_fail(struct search *search, unsigned who, enum fsm_lane lane, enum search_how how);
/* The ways in which the call on LANE can fail: a bit by enum search_how. */
unsigned search_call_fails(const struct search *search, unsigned who, enum fsm_lane lane);
/* True if the death of the daemon in mid-call leaves open whether its work has happened. */
bool search_call_is_open(const struct search *search, unsigned who);
/* Death in mid-call: the work happens all the same. */
void search_call_cut(struct search *search, unsigned who);
/* A call of the volume that nobody waits for any more happens. */
void search_call_late(struct search *search, uint8_t effect);
/* Death: calls of the volume that are under way become late ones. */
void search_calls_orphan(struct search *search);

/* --- check.c: the invariants --- */

void search_check_batch(struct search *search, const struct journal_batch *batch);
void search_check_committed(struct search *search, const struct journal_batch *batch);
void search_check_effect(struct search *search, const struct effect *effect, unsigned who);
bool search_check_mount(struct search *search, unsigned task); /* it is mounted */
void search_check_payload(struct search *search, unsigned task,
                          const struct search_attempt *attempt);
void search_check_sweep(struct search *search, unsigned task, const struct search_attempt *attempt);
void search_check_state(struct search *search);
/* True in a state in which the node is at rest; what is missing goes to RET_WHY. */
bool search_at_rest(struct search *search, const char **ret_why, unsigned *ret_invariant);

/* --- reduce.c: what is left out --- */

struct search_rules {
    bool server;   /* one decides */
    bool may_boot; /* the host may yet reboot */
    bool queued;   /* events wait for the turn */
};
void search_reduce(struct machine *const *records, struct search_world *world,
                   const struct search_rules *rules);

/* --- form.c --- */

struct search_form search_form(struct search *search);
void search_load(struct search *search, const struct search_form *form);
void search_shelf_free(struct search_shelf *shelf);
struct search_draft *search_draft_new(void);

#endif
