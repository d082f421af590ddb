/*
 * The daemon: the core bound to LMDB, processes, files and HTTP.
 *
 * Owns the loop and everything on it.  The API (api*.c) reads machines through daemon_core and
 * changes them only by asking: daemon_ask for one machine, server/alone/alone.h for jobs.  Every
 * answer to a caller is given after the commit that made it true, or says why it was refused
 * (I-14).
 */
#ifndef CAIRN_AGENT_DAEMON_H
#define CAIRN_AGENT_DAEMON_H

#include "agent/config.h"
#include "agent/node.h"
#include "core/core.h"
#include "drivers/drivers.h"
#include "hooks/hooks.h"
#include "io/loop.h"

struct daemon;
struct alone;

/* Runs the daemon until it is told to stop; the exit status of the process.  Says what is wrong on
 * standard error.  Payloads live on. */
int daemon_run(const struct config *config);

/* --- its parts, borrowed for the life of the daemon --- */

struct loop *daemon_loop(struct daemon *daemon);
struct core *daemon_core(struct daemon *daemon);
struct drivers *daemon_drivers(struct daemon *daemon);
struct hooks *daemon_hooks(struct daemon *daemon);
struct alone *daemon_alone(struct daemon *daemon);
struct journal *daemon_journal(struct daemon *daemon);
const struct config *daemon_config(const struct daemon *daemon);
const struct node *daemon_node(const struct daemon *daemon);

/* Node time, as fsm_now.ms. */
uint64_t daemon_now_ms(const struct daemon *daemon);

/* --- asking --- */

/* CODE is 0, or ERR_* with ERR saying why.  Called once, on the loop, after the commit. */
typedef void daemon_answer(void *ctx, int code, const struct err *err);

/* Asks one machine; EVENT is a request of its kind. */
void daemon_ask(struct daemon *daemon, const struct machine_id *id, uint8_t event,
                const struct request *request, daemon_answer *answer, void *ctx);

/* Calls ANSWER after the commit that makes durable what has been posted so far, or when that
 * commit has failed and all of it was dropped. */
void daemon_after_commit(struct daemon *daemon, daemon_answer *answer, void *ctx);

/* The spec of an alloc, decoded from the journal; ERR_GONE if there is none.  The caller frees it
 * with alloc_spec_free. */
int daemon_alloc_spec(struct daemon *daemon, const char *alloc, struct alloc_spec **ret_spec,
                      struct err *err);

/* CB is called after each commit that changed something users see; for blocking queries.  The
 * index is that of the last such commit (the X-Nomad-Index of all lists). */
uint64_t daemon_index(const struct daemon *daemon);
void daemon_watch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx);
void daemon_unwatch(struct daemon *daemon, void (*cb)(void *ctx), void *ctx);

/* Why the journal cannot be written at the moment, or NULL: the node is degraded (I-18). */
const char *daemon_degraded(const struct daemon *daemon);

#endif
