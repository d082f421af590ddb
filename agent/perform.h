/* Effects to the real world: one table, one function for each kind. */
#ifndef CAIRN_AGENT_PERFORM_H
#define CAIRN_AGENT_PERFORM_H

#include "agent/daemon.h"

/* world.perform of the daemon; CTX is the struct daemon. */
void perform_effect(void *ctx, const struct effect *effect);

/* A payload has ended (drivers_config.on_exit); CTX is the struct daemon. */
void perform_exit(void *ctx, const struct driver_key *key, const struct driver_exit *exit);

/* Ends what carries our mark and belongs to no machine (I-1); after the first turn.  Tells the core
 * when it is over. */
void perform_sweep(struct daemon *daemon);

/* --- what the daemon offers to effects --- */

/* Gives ANSWER to whoever waits for the reply TOKEN; 0 is nobody. */
void daemon_reply(struct daemon *daemon, uint64_t token, int code, const struct err *err);

/* The sweep has failed: it is made again after a while. */
void daemon_sweep_again(struct daemon *daemon);

/* Something users see has changed. */
void daemon_changed(struct daemon *daemon);

/* The alloc has ended: those who wait for it go on, garbage collection may have work. */
void daemon_alloc_ended(struct daemon *daemon, const char *alloc);

/* The spec of an alloc from the cache, borrowed until the loop goes on; NULL with ERR. */
const struct alloc_spec *daemon_cached_spec(struct daemon *daemon, const char *alloc,
                                            struct err *err);

/* Answers PREVIOUS_ENDED for ID once PREVIOUS has ended or is not known. */
void daemon_watch_previous(struct daemon *daemon, const struct machine_id *id,
                           const char *previous);

#endif
