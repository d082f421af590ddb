/* Host volumes: what the control plane asks of their plugins, and where tasks find them. */
#ifndef CAIRN_AGENT_PERFORM_HOSTED_H
#define CAIRN_AGENT_PERFORM_HOSTED_H

#include "agent/parts.h"
#include "agent/perform/volumes.h"

/* A control_call for host volumes, and whether there is a PLUGIN; CTX is the struct parts. */
void hosted_ask_plugin(void *ctx, const char *plugin, enum csi_call call, const json_t *request,
                       control_answer_cb *cb, void *cb_ctx);
bool hosted_has_plugin(void *ctx, const char *plugin);

/* Adds the host volumes that ALLOC asks for, but not those of the node's configuration alone. */
void hosted_find_mounted(const struct parts *parts, const struct alloc_spec *alloc,
                         struct volumes_mounted *mounted);

/* What becomes of a hook of a task that waits: it is run when there is nothing to wait for any
 * more, or it has failed. */
struct hosted_wait {
    void (*again)(struct parts *parts, const struct effect *effect);
    void (*failed)(struct parts *parts, const struct effect *effect, uint8_t phase, uint8_t hook,
                   const struct err *err); /* EFFECT has no record: that may be another one now */
};

/* True if it is about to be known where a volume of ALLOC is: then EFFECT, a hook of a task, waits
 * for that, but no longer than it may take.  WAIT is borrowed for ever. */
bool hosted_holds(struct parts *parts, const struct effect *effect, const struct alloc_spec *alloc,
                  const struct hosted_wait *wait);

/* Nobody waits any more for the hook of the task ID: if it is held, it fails. */
void hosted_abort(struct parts *parts, const struct machine_id *id);

/* A host volume is somewhere else, or known not to be (alone_config.hosted_changed). */
void hosted_changed(void *ctx);

/* Nobody who waits is told any more, once the plugins are freed and do not answer. */
void hosted_forget(struct parts *parts);

#endif
