/* What a control plane asks of the controllers of storage plugins (server/control.h). */
#ifndef CAIRN_AGENT_PERFORM_CONTROLLER_H
#define CAIRN_AGENT_PERFORM_CONTROLLER_H

#include "agent/parts.h"

/* A control_call; CTX is the struct parts, whose plugins are asked. */
void controller_call(void *ctx, const char *plugin, enum csi_call call, const json_t *request,
                     control_answer_cb *cb, void *cb_ctx);

/* A control_topology; CTX is the same. */
json_t *controller_topology(void *ctx, const char *plugin);

/* Nobody who waits is told any more. */
void controller_forget(struct parts *parts);

#endif
