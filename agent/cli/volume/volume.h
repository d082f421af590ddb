/* Private to the verbs of volumes. */
#ifndef CAIRN_AGENT_CLI_VOLUME_VOLUME_H
#define CAIRN_AGENT_CLI_VOLUME_VOLUME_H

#include "agent/cli/cli.h"

/* The volume of TEXT, a file of that NAME, HCL or JSON, as the API takes it, and whether it is one
 * of the host: a new reference.  ERROR has room for HCL_ERROR_SIZE and says what is wrong with it.
 */
int volume_read(const char *name, const char *text, size_t length, json_t **ret_volume,
                bool *ret_is_host, char *error);

/* Bytes of "10GiB", "20G", "4096": false if it is none. */
bool volume_bytes(const char *text, int64_t *ret_bytes);

/* What `volume init` writes. */
extern const char volume_example_hcl[], volume_example_json[], volume_example_host_hcl[];

/* --- of both types (shared.c) --- */

/* GET of the path FORMAT with the id of ENTRY, a volume as a list has it, in its namespace;
 * printed, or as JSON. */
int volume_show(struct cli *cli, const char *format, const json_t *entry,
                void (*print)(const struct cli *cli, const json_t *volume));

/* As what jobs may ask for it, and the allocs that have it. */
void volume_print_use(const struct cli *cli, const json_t *volume);

/* DELETE of the path FORMAT with ENTRY's id and MORE, in its namespace. */
int volume_act(struct cli *cli, const json_t *entry, const char *format, const char *more);

/* The flags -secret as the header that Nomad has for them, into the next call. */
int volume_add_secrets(struct cli *cli);

/* --- those of storage plugins (shared.c) --- */

/* The volume that PREFIX names, as a list has it: a new reference; said if there is none or more.
 */
int volume_find(struct cli *cli, const char *prefix, json_t **ret_volume);
void volume_print_list(json_t *volumes);

/* After a refusal that is said: that the plugin is asked again for the volume ID, if it is. */
void volume_say_doubt(struct cli *cli, const char *id);

/* --- those of the host (host.c) --- */

/* The one whose name or id begins with PREFIX, as a list has it: a new reference; CLI_OK and NULL:
 * there is none. */
int volume_find_host(struct cli *cli, const char *prefix, json_t **ret_volume);
int volume_show_host(struct cli *cli, const json_t *entry);
int volume_list_host(struct cli *cli);
int volume_send_host(struct cli *cli, json_t *volume, bool creates);
int volume_delete_host(struct cli *cli, const char *prefix);

#endif
