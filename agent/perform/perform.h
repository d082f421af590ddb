/* Effects to the real world: one table, one function for each kind. */
#ifndef CAIRN_AGENT_PERFORM_PERFORM_H
#define CAIRN_AGENT_PERFORM_PERFORM_H

#include "agent/parts.h"

/* life_world.perform of the daemon; CTX is the struct parts. */
void perform_effect(void *ctx, const struct effect *effect);

/* A payload has ended (drivers_config.on_exit); CTX is the struct parts. */
void perform_exit(void *ctx, const struct driver_key *key, const struct driver_exit *exit);

/* A driver has something to say of a task that it starts (drivers_config.on_said); CTX is the
 * struct parts. */
void perform_said(void *ctx, const struct driver_key *key, const char *text);

/* What templates of a task that runs say now (hooks_templates.changed); CTX is the struct parts. */
void perform_changed(void *ctx, const char *alloc, const char *task,
                     const struct hook_outcome *rendered);

/* What templates of a task that is to start wait for (hooks_templates.waits); likewise. */
void perform_waits(void *ctx, const char *alloc, const char *task, const char *text);

/* Forgets the calls under way, when drivers and hooks are gone and none is answered any more. */
void perform_forget(struct parts *parts);

/* life_world.sweep: ends what carries our mark and belongs to no machine (I-1). */
void perform_sweep(void *ctx);

#endif
