/* Inside agent/config*.c only. */
#ifndef CAIRN_AGENT_CONFIG_PART_H
#define CAIRN_AGENT_CONFIG_PART_H

#include "agent/config.h"

enum { CONFIG_PAIRS_MAX = 256 };

/* Reads one file, HCL or JSON. */
int config_read_file(struct config *config, const char *path, struct err *err);

/* Sets KEY to VALUE in owned pairs, in the place of what it was; false when there are too many. */
bool config_set_pair(struct spec_pairs *pairs, const char *key, const char *value);

#endif
