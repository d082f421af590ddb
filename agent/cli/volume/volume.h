/* Private to the verbs of volumes. */
#ifndef CAIRN_AGENT_CLI_VOLUME_VOLUME_H
#define CAIRN_AGENT_CLI_VOLUME_VOLUME_H

#include "agent/cli/cli.h"

/* The volume of TEXT, a file of that NAME, HCL or JSON, as the API takes it: a new reference.
 * ERROR has room for HCL_ERROR_SIZE and says what is wrong with it. */
int volume_read(const char *name, const char *text, size_t length, json_t **ret_volume,
                char *error);

/* Bytes of "10GiB", "20G", "4096": false if it is none. */
bool volume_bytes(const char *text, int64_t *ret_bytes);

/* What `volume init` writes. */
extern const char volume_example_hcl[], volume_example_json[];

#endif
