/* Inside hooks/consul/ only: what the agent says, and whether that is what is wanted.  Pure. */
#ifndef CAIRN_HOOKS_CONSUL_PART_H
#define CAIRN_HOOKS_CONSUL_PART_H

#include "hooks/consul/consul.h"

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

/* True if THERE is one that the node NODE_ID has registered. */
bool consul_is_ours(const json_t *there, const char *node_id);

/* The alloc in the id of a service, or false. */
bool consul_alloc_of(const char *id, char ret_alloc[UUID_TEXT_SIZE]);

/* The status of CHECK, a value of /v1/agent/checks: what is no word of Consul's is critical. */
enum consul_status consul_status_of(const json_t *check);

#endif
