/*
 * Plugins that are programs of their own: between their machines, the configuration and
 * plugins/plugins.h.
 *
 * One is the machine "device/<name>", from when the configuration names it until it does not.  What
 * the machine wants is asked here; what they say of their devices is agent/devices.h's.
 */
#ifndef CAIRN_AGENT_PERFORM_EXTERNALS_H
#define CAIRN_AGENT_PERFORM_EXTERNALS_H

#include "agent/parts.h"

/* Makes PARTS->programs, which whoever made PARTS frees. */
void externals_open(struct parts *parts);

/* What the configuration names is there from now on, and what it does not name any more is not;
 * once records are loaded. */
void externals_define(struct parts *parts);

/* Begins an effect of the machine of a plugin. */
void externals_perform(struct parts *parts, const struct effect *effect);

#endif
