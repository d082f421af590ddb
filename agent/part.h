/*
 * Inside agent/daemon*.c only: the daemon's state and what its parts ask of each other.
 *
 * daemon.c makes and ends the parts; world.c turns; core/waiters.c says what has become of
 * it to those who wait; core/restart.c brings back what the journal holds; specs.c knows
 * what allocs were asked to be.  What effects may call is in perform.h.
 */
#ifndef CAIRN_AGENT_PART_H
#define CAIRN_AGENT_PART_H

#include "agent/daemon.h"
#include "agent/perform.h"

struct daemon {
    const struct config *config;
    struct loop *loop;
    struct journal *journal;
    struct core *core;
    struct drivers *drivers;
    struct hooks *hooks;
    struct alone *alone;
    struct retention *retention;
    struct api *api;
    struct node node;
    struct waiting *waiting; /* by token */
    uint64_t tokens;
    struct committed *committed;
    size_t committed_count, committed_size;
    struct cached *specs;
    struct watcher *watchers;
    size_t watchers_count;
    struct previous *previous;
    size_t previous_count, previous_size;
    struct io_timer deadline_timer, retry_timer, idle_timer, sweep_timer;
    struct rng rng;
    uint64_t index;
    bool restored, reported, changed, waits_for_retry;
    uint64_t lost; /* tasks whose payload was not found after the restart */
    char degraded[ERR_TEXT_SIZE];
};

/* Where rooms that see no io say their lines: the log. */
extern const struct say daemon_say;

/* --- the turn (world.c) --- */

/* The core, bound to the journal and the rooms. */
struct core *daemon_new_core(struct daemon *daemon);

/* One turn, if there is anything to do; loop_before_sleep, CTX is the struct daemon. */
bool daemon_turn(void *ctx);

/* --- restore (core/restart.c) --- */

/* Loads every record and posts RESTORE; before the first turn. */
int daemon_restore(struct daemon *daemon, struct err *err);

/* --- answers (core/waiters.c) --- */

/* The commit is made, or has failed with CODE: calls whoever gave daemon_after_commit an answer. */
void daemon_answer_committed(struct daemon *daemon, int code, const struct err *err);

/* Moves the index and calls the watchers if anything users see has changed. */
void daemon_tell_watchers(struct daemon *daemon);

/* At the end: once the API has closed every exchange, and once nothing is left that may ask. */
void daemon_forget_callers(struct daemon *daemon);
void daemon_free_answers(struct daemon *daemon);

/* --- specs (specs.c) --- */

/* Empties the cache. */
void daemon_forget_specs(struct daemon *daemon);

#endif
