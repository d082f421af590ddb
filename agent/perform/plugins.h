/*
 * Storage plugins that run as tasks: between their machines, their tasks' hooks and csi/plugins.h.
 *
 * The instance of a task is a machine, "<alloc>/<task>", that begins when the task runs and is
 * removed when it is over; hooks tell both.  What the machine wants is asked here.
 */
#ifndef CAIRN_AGENT_PERFORM_PLUGINS_H
#define CAIRN_AGENT_PERFORM_PLUGINS_H

#include "agent/parts.h"

/* Fills PARTS->plugins and RET_HOOKS, which is for hooks_config. */
int plugins_open(struct parts *parts, struct hooks_plugins *ret_hooks, struct err *err);

/* Begins an effect of the machine of a plugin that is a task. */
void plugins_perform(struct parts *parts, const struct effect *effect);

#endif
