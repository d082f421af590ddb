/*
 * Inside hooks/connect/ only: what a task in the mesh of Consul finds before it starts.
 *
 *     login.c      tokens of Consul for the identities of an alloc's tasks and services
 *     tokens.c     which of these is whose
 *     token.c      secrets/si_token: by which it is its service: one of those, or from servers that
 *                  give such out
 *     version.c    which Envoy the image of a sidecar has
 *     bootstrap.c  secrets/envoy_bootstrap.json, which Consul's own program makes
 *     native.c     what one that does all itself reaches Consul by
 *
 * All of it but the tokens of login.c is made before each start: a reboot has emptied the secrets.
 * Follows nomad v2.0.6 client/allocrunner/consul_hook.go, and of its tasks consul_hook.go,
 * sids_hook.go, envoy_version_hook.go, envoy_bootstrap_hook.go and connect_native_hook.go.
 */
#ifndef CAIRN_HOOKS_CONNECT_PART_H
#define CAIRN_HOOKS_CONNECT_PART_H

#include "hooks/file.h"
#include "hooks/part.h"

/* Writes BYTES as the file NAME into the secrets of the task of REQUEST, for its user only. */
int connect_write_secret(const struct hook_request *request, const char *name, const void *bytes,
                         size_t length, struct err *err);

/* The tokens that an alloc has, texts by whose they are: a new reference, never NULL.  They are in
 * a file of its directory that is the daemon's alone, and not in the journal, until they are good
 * for nothing. */
json_t *connect_tokens_read(const struct hook_request *request);
int connect_tokens_write(const struct hook_request *request, const json_t *tokens, struct err *err);
void connect_tokens_free(json_t *tokens); /* wiped */

/* Whose a token is: a service's, by the name of its identity; or a task's. */
enum { TOKEN_KEY_SIZE = SPEC_SERVICE_IDENTITY_SIZE };
void connect_task_key(const char *task, char ret_key[TOKEN_KEY_SIZE]);

/* False: there is none of KEY. */
bool connect_token_find(const struct hooks *hooks, const char *alloc, const char *key,
                        char ret_token[CONNECT_TOKEN_SIZE]);

/* Where a task finds NAME, which is in alloc/tmp; RET_PATH is one of the host for a task that has
 * no root of its own. */
int connect_socket_path(const struct hooks *hooks, const struct hook_run *asked, const char *name,
                        char ret_path[PATH_SIZE], struct err *err);

/* True if the job gives TASK a variable NAME. */
bool connect_is_given(const struct task_spec *task, const char *name);

/* One more variable for the task, of HOOK. */
int connect_set(const struct hook_request *request, enum task_hook hook, const char *name,
                const char *value, struct err *err);

#endif
