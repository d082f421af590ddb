/*
 * A life from the inside.
 *
 * life.c turns; restart.c brings back what the journal holds; waiters.c says what has become of it
 * to those who wait; watchers.c says what has changed to those who watch it.
 */
#ifndef CAIRN_CORE_LIFE_PART_H
#define CAIRN_CORE_LIFE_PART_H

#include "core/life.h"
#include "core/retention.h"

/* Calls that wait for the next commit. */
struct committed {
    life_answer *answer;
    void *ctx;
};

struct committed_list {
    struct committed *items;
    size_t count, size;
};

/* An alloc that waits for the end of others. */
struct successor {
    struct machine_id id;
    char previous[UUID_TEXT_SIZE];  /* "": that has ended */
    char disk_from[UUID_TEXT_SIZE]; /* whose disk it takes over, or who was to have that disk before
                                       it and ended without it, and so on; "": all have ended */
};

struct successor_list {
    struct successor *items;
    size_t count, size;
};

/* What is watched, or has changed since the start. */
struct subject;

struct subject_list {
    struct subject **items;
    size_t count, size;
};

struct watched {
    struct subject *subjects; /* by key, but for this one: */
    struct subject *everything;
    struct subject_list changed; /* since watchers were told */
    uint64_t floor; /* the index of a subject that is not in the table; never less than before */
    size_t watchers_count;
    void (*listener)(void *ctx, uint64_t index, const struct life_subject *subject);
    void *listener_ctx;
};

struct life {
    struct life_world world;
    struct life_control control;
    struct core *core;
    struct retention *retention;
    struct waiting *waiting; /* by token */
    uint64_t tokens;
    struct committed_list committed;
    struct successor_list successors;
    bool (*others)(void *ctx, const char *alloc); /* life_others */
    void *others_ctx;
    struct watched watched;
    uint64_t retry_at_ms, sweep_at_ms; /* node time, 0: not to be tried again */
    uint64_t lost;                     /* tasks whose payload was not found after the restart */
    uint64_t turned_at_ms;             /* node time of the last turn */
    bool started, swept_once, reported;
    bool sweeping, sweep_again; /* one is under way; and another one is wanted after it */
    char degraded[ERR_TEXT_SIZE];
};

/* --- aside.c --- */

/* Says that the entry KEY of TABLE is damaged, REASON says why, and takes it out of the way. */
int life_set_aside(struct life *life, const char *table, const char *key, const char *reason,
                   struct err *err);

/* --- waiters.c --- */

/* The commit is made, or has failed with CODE: calls whoever gave life_after_commit an answer. */
void life_answer_committed(struct life *life, int code, const struct err *err);

void life_free_waiters(struct life *life);

/* --- watchers.c --- */

void life_begin_watchers(struct life *life);
void life_free_watchers(struct life *life);

/* The index of all that has not changed since the start. */
void life_index_begins(struct life *life, uint64_t index);

/* Something users see of an alloc, and so of its job, has changed; ALLOC is its record. */
void life_alloc_changed(struct life *life, const char *id, const struct alloc *alloc);

/* It is gone. */
void life_alloc_gone(struct life *life, const char *id, const struct alloc *alloc);

/* Moves the index of what has changed and calls those who watch it. */
void life_tell_watchers(struct life *life);

#endif
