/* Inside hooks/consul/ only: one call of the agent; and, pure, what it says, and whether that is
 * what is wanted. */
#ifndef CAIRN_HOOKS_CONSUL_PART_H
#define CAIRN_HOOKS_CONSUL_PART_H

#include "hooks/consul/consul.h"

/* --- one call (call.c) --- */

enum { CONSUL_URL_SIZE = 1024 };

struct consul_request {
    const char *method, *path; /* escaped */
    const char *token;         /* "": none */
    const json_t *body;        /* NULL: none */
    bool secret;               /* the body is */
};

/* CB comes once, maybe before this returns, and then RET_REQUEST is NULL. */
void consul_send(const struct consul_config *config, const struct consul_request *call,
                 void (*cb)(void *ctx, const struct http_reply *reply), void *ctx,
                 struct http_request **ret_request);

/* Why REPLY is no success, into TO; false: it is one. */
bool consul_failed(const struct http_reply *reply, char *to, size_t size);

/* Appends NAME as one part of a path or a query to TO; false: it has no room. */
bool consul_escape(char *to, size_t size, const char *name);

/* --- what it says --- */

enum { CONSUL_ATTRIBUTES_MAX = 16, CONSUL_ATTRIBUTE_SIZE = 256 };

/* What SELF (/v1/agent/self) says of the node: pairs, at most CONSUL_ATTRIBUTES_MAX, whose values
 * are copied to VALUES.  False: whoever has answered is no agent of Consul. */
bool consul_read_self(const json_t *self, bool https,
                      char values[CONSUL_ATTRIBUTES_MAX][CONSUL_ATTRIBUTE_SIZE],
                      struct spec_pair pairs[CONSUL_ATTRIBUTES_MAX], size_t *ret_count);

/* What its sidecar has behind the id of a service; and what all ids fit in. */
#define CONSUL_SIDECAR "-sidecar-proxy"
enum { CONSUL_ID_SIZE = 1024 };

/* The version of Envoy that SELF prefers, borrowed from it; "": it says none. */
const char *consul_envoy_of(const json_t *self);

/* True if SERVICES (all of /v1/agent/services) say what WANTED registers, with its sidecar, and
 * CHECKS (all of /v1/agent/checks) has its checks and no other of ours.  TAGS: those count, even if
 * WANTED lets others override them. */
bool consul_is_same(const json_t *wanted, const json_t *services, const json_t *checks, bool tags);

/* WANTED as it is to be registered over THERE, or NULL for nothing: with the tags that others have
 * overridden, unless TAGS; a new reference. */
json_t *consul_merge(const json_t *wanted, const json_t *there, bool tags);

/* How Nomad calls the clients it registers. */
#define CONSUL_API_PREFIX "_nomad-client-"

/* True if THERE is one that the node NODE_ID has registered. */
bool consul_is_ours(const json_t *there, const char *node_id);

/* The alloc in the id of a service, or false. */
bool consul_alloc_of(const char *id, char ret_alloc[UUID_TEXT_SIZE]);

/* The status of CHECK, a value of /v1/agent/checks: what is no word of Consul's is critical. */
enum consul_status consul_status_of(const json_t *check);

#endif
