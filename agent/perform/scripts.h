/* Scripts that templates ask for when they change: commands in a task that runs. */
#ifndef CAIRN_AGENT_PERFORM_SCRIPTS_H
#define CAIRN_AGENT_PERFORM_SCRIPTS_H

#include "agent/parts.h"

/* Runs the script that the record of the task names; its end is told to the machine. */
void scripts_perform(struct parts *parts, const struct effect *effect);

/* All end, and nobody is told; before the drivers go. */
void scripts_forget(struct parts *parts);

#endif
