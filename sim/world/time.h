/*
 * Chance and time.
 *
 * Time is one number, the milliseconds since the world began.  What will happen is a heap ordered
 * by (time, sequence); chance is a hash of the script's seed and of what it is drawn for, so that
 * taking one thing out of a script leaves the luck of all others as it was.
 */
#ifndef CAIRN_SIM_WORLD_TIME_H
#define CAIRN_SIM_WORLD_TIME_H

#include "base/base.h"

struct sim;

enum { SIM_UNIX_BASE_S = 1700000000 };

/* --- what will happen --- */

enum sim_event_kind {
    SE_STEP,     /* a step of the script; index: which */
    SE_START,    /* the daemon is started */
    SE_CALL,     /* a call gets on; index: call, stamp: its serial */
    SE_RENDER,   /* templates are rendered again; index: task, stamp: incarnation */
    SE_SPAWN,    /* a shim starts its payload; index: attempt */
    SE_EXIT,     /* a payload ends; stamp: the attempt's epoch */
    SE_KILL,     /* a shim's kill timeout */
    SE_RECORD,   /* a shim writes the exit record */
    SE_SHIM_END, /* and ends */
    SE_WATCH,    /* the daemon's driver sees an end; stamp: incarnation */
    SE_SWEEP,    /* the driver destroys what nobody owns; stamp: incarnation */
    SE_SWEPT,    /* and has done so; stamp: incarnation */
    SE_USER,     /* a user, or the stand-alone control plane, tries again; index: alloc */
    SE_POLL,     /* the client asks the server; stamp: incarnation */
    SE_ANSWER,   /* the server has answered; stamp: incarnation */
    SE_PUSH,     /* the client reports statuses; stamp: incarnation */
    SE_ACK,      /* the server has taken them; stamp: incarnation */
    SE_BEAT,     /* the client says that it is there; stamp: incarnation */
};

struct sim_event {
    uint64_t at_ms;
    uint32_t sequence;
    uint32_t stamp;
    uint32_t index;
    uint8_t kind;
};

struct sim_heap {
    struct sim_event *items;
    size_t count, size;
    uint32_t sequence; /* of the newest one */
};

void sim_later(struct sim *sim, uint64_t delay_ms, enum sim_event_kind kind, size_t index,
               uint32_t stamp);
/* The first of what will happen, taken out; there must be one. */
struct sim_event sim_next(struct sim *sim);

int64_t sim_unix_ns(const struct sim *sim);
uint64_t sim_node_ms(const struct sim *sim);
uint64_t sim_since_boot_ms(const struct sim *sim);

/* --- chance --- */

enum {
    LUCK_LATENCY = 1,
    LUCK_FATE,
    LUCK_COMMIT,
    LUCK_BATCH,
    LUCK_CUT,
    LUCK_SPLIT,
    LUCK_SEED,
    LUCK_MARK,
    LUCK_BEGIN,
    LUCK_ID,
    LUCK_TWICE,
    LUCK_RETENTION,
    LUCK_SWEEP,
};

/* A number that depends on the seed and on what it is drawn for. */
uint64_t sim_chance(const struct sim *sim, uint64_t what, uint64_t which, uint64_t nth);
uint64_t sim_below(uint64_t chance, uint64_t bound);

#endif
