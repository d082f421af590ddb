/* Private to the room. */
#ifndef CAIRN_AGENT_CONFIG_PART_H
#define CAIRN_AGENT_CONFIG_PART_H

#include "agent/config/config.h"

/* Why CIDR is no list of networks, NULL: it is one. */
const char *config_cidr_fault(const char *cidr);

/* The same for the one network that a bridge gives out addresses of; "" is none, and for IPv6
 * that is fine. */
const char *config_subnet_fault(const char *subnet, bool six);

/* Reads one file, HCL or JSON. */
int config_read_file(struct config *config, const char *path, struct err *err);

#endif
