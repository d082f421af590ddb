/*
 * Checks of Consul that are scripts: run in their tasks, as `alloc exec` runs a command, one at a
 * time of each check, and told to Consul's agent, who lets them fail if nobody tells anything.
 *
 * A script ends with its task and with the daemon.  What it is comes from the catalogue each time,
 * so that nothing of it is kept here.  Follows nomad v2.0.5
 * client/allocrunner/taskrunner/script_check_hook.go.
 */
#ifndef CAIRN_AGENT_CONSUL_SCRIPT_CHECKS_H
#define CAIRN_AGENT_CONSUL_SCRIPT_CHECKS_H

#include "hooks/consul/consul.h"

struct parts;
struct script_checks;

/* CONSUL is told; both borrowed. */
struct script_checks *script_checks_new(struct parts *parts, struct consul *consul);
void script_checks_free(struct script_checks *scripts);

/* SERVICE of ALLOC is registered, or is it anew: its scripts begin, the first run at once.  What
 * runs by the same id goes on. */
void script_checks_begin(struct script_checks *scripts, const char *alloc,
                         const struct hooks_service *service);

/* It is not any more: none of its scripts runs on. */
void script_checks_end(struct script_checks *scripts, const char *alloc, const char *service);

#endif
