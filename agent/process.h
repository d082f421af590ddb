/*
 * The process of one daemon: what a process has once, whatever lives in it.
 *
 * Signals, its place under a service manager, the limit of descriptors, the heap's settings, the
 * last words of a failed assertion, crash points by environment.
 */
#ifndef CAIRN_AGENT_PROCESS_H
#define CAIRN_AGENT_PROCESS_H

#include "agent/config/config.h"
#include "io/service.h"

/* Runs a daemon until a signal ends it; the exit status of the process.  Says what is wrong on
 * standard error, and to whoever manages the process as SERVICE.  Payloads live on. */
int process_run(const struct config *config, struct service *service);

#endif
