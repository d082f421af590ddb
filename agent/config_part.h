/* Inside agent/config*.c only. */
#ifndef CAIRN_AGENT_CONFIG_PART_H
#define CAIRN_AGENT_CONFIG_PART_H

#include "agent/config.h"

/* Reads one file, HCL or JSON. */
int config_read_file(struct config *config, const char *path, struct err *err);

#endif
