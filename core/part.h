/*
 * A life from the inside.
 *
 * life.c turns; restart.c brings back what the journal holds; waiters.c says what has become of it
 * to those who wait.
 */
#ifndef CAIRN_CORE_PART_H
#define CAIRN_CORE_PART_H

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

/* Who wants to hear of changes. */
struct watcher {
    void (*cb)(void *ctx);
    void *ctx;
};

struct watcher_list {
    struct watcher *items;
    size_t count, size;
};

/* Allocs that wait for the end of others. */
struct successor {
    struct machine_id id;
    char previous[UUID_TEXT_SIZE];
};

struct successor_list {
    struct successor *items;
    size_t count, size;
};

struct life {
    struct life_world world;
    struct life_control control;
    struct core *core;
    struct retention *retention;
    struct waiting *waiting; /* by token */
    uint64_t tokens;
    struct committed_list committed;
    struct watcher_list watchers;
    struct successor_list successors;
    uint64_t index;
    uint64_t retry_at_ms, sweep_at_ms; /* node time, 0: not to be tried again */
    uint64_t lost;                     /* tasks whose payload was not found after the restart */
    bool changed;
    uint64_t turned_at_ms; /* node time of the last turn */
    bool started, swept_once, reported;
    char degraded[ERR_TEXT_SIZE];
};

/* --- waiters.c --- */

/* The commit is made, or has failed with CODE: calls whoever gave life_after_commit an answer. */
void life_answer_committed(struct life *life, int code, const struct err *err);

/* Moves the index and calls the watchers if anything users see has changed. */
void life_tell_watchers(struct life *life);

void life_free_waiters(struct life *life);

#endif
