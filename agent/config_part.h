/* Inside agent/config*.c only. */
#ifndef CAIRN_AGENT_CONFIG_PART_H
#define CAIRN_AGENT_CONFIG_PART_H

#include "agent/config.h"

/* Why CIDR is no list of networks, NULL: it is one. */
const char *config_cidr_fault(const char *cidr);

/* Reads one file, HCL or JSON. */
int config_read_file(struct config *config, const char *path, struct err *err);

#endif
