/*
 * Storage plugins: between their machines, their tasks' hooks, the configuration and csi/plugins.h.
 *
 * The instance of a task is a machine, "<alloc>/<task>", that begins when the task runs and is
 * removed when it is over; hooks tell both.  One that somebody else runs is "<type>/<id>", from
 * when the configuration names it until it does not.  What the machine wants is asked here.
 */
#ifndef CAIRN_AGENT_PERFORM_PLUGINS_H
#define CAIRN_AGENT_PERFORM_PLUGINS_H

#include "agent/parts.h"

/* Fills PARTS->plugins and RET_HOOKS, which is for hooks_config. */
int plugins_open(struct parts *parts, struct hooks_plugins *ret_hooks, struct err *err);

/* What the configuration names is there from now on, and what it does not name any more is not;
 * once records are loaded. */
void plugins_define(struct parts *parts);

/* Begins an effect of the machine of a plugin. */
void plugins_perform(struct parts *parts, const struct effect *effect);

#endif
