/*
 * The daemon: a life bound to LMDB, processes, files and HTTP.
 *
 * Owns the loop and everything on it.  The API (api/) reads machines through the core and changes
 * them only by asking: life_ask for one machine, server/alone/alone.h for jobs.
 */
#ifndef CAIRN_AGENT_DAEMON_H
#define CAIRN_AGENT_DAEMON_H

#include "agent/config.h"

/* Runs the daemon until it is told to stop; the exit status of the process.  Says what is wrong on
 * standard error.  Payloads live on. */
int daemon_run(const struct config *config);

#endif
