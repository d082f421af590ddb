/* How the agent of Consul is reached, as the configuration says. */
#ifndef CAIRN_AGENT_CONSUL_REACH_H
#define CAIRN_AGENT_CONSUL_REACH_H

#include "hooks/consul/consul.h"

struct parts;

/* Without callbacks; it borrows from PARTS. */
struct consul_config reach_consul(const struct parts *parts);

#endif
