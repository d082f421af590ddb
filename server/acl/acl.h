/*
 * Who may do what: policies and tokens, as the stand-alone control plane has them.
 *
 * They are Nomad's (v2.0 acl/policy.go, acl/acl.go, nomad/acl_endpoint.go).  A policy is a text of
 * rules under a name; a token has an accessor, by which it is spoken of, and a secret, by which
 * whoever shows it is known; one of type client has what its policies grant, one of type management
 * may do everything.  Who shows no token has what the policy "anonymous" grants, if there is one.
 *
 * Both are kept in the journal's `spec` table: policies under "acl/policy/<name>", tokens under
 * "secret/token/<accessor>", which no export and no quarantine shows.  Of a secret only the SHA-256
 * is kept: it is told once, to whom the token is made for.
 *
 * Roles, methods of authentication and tokens for other regions are not: there is one node.
 */
#ifndef CAIRN_SERVER_ACL_ACL_H
#define CAIRN_SERVER_ACL_ACL_H

#include "base/uuid.h"
#include "core/life.h"
#include "core/say.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ACL_POLICIES_MAX = 1024,
    ACL_TOKENS_MAX = 4096,
    ACL_TOKEN_POLICIES_MAX = 32,
    ACL_RULES_BYTES_MAX = 64 << 10, /* the text of a policy */
    ACL_RULES_MAX = 256,            /* in one */
    ACL_NAME_SIZE = 129,            /* of a policy, of what it is about; with the NUL */
    ACL_TEXT_SIZE = 257,            /* names of tokens, descriptions */
};

/* --- rights --- */

/* What may be done in a namespace, by bits. */
enum acl_capability {
    ACL_DENY,
    ACL_LIST_JOBS,
    ACL_PARSE_JOB,
    ACL_READ_JOB,
    ACL_SUBMIT_JOB,
    ACL_DISPATCH_JOB,
    ACL_READ_LOGS,
    ACL_READ_FS,
    ACL_ALLOC_EXEC,
    ACL_ALLOC_NODE_EXEC,
    ACL_ALLOC_LIFECYCLE,
    ACL_SENTINEL_OVERRIDE,
    ACL_CSI_REGISTER_PLUGIN,
    ACL_CSI_WRITE_VOLUME,
    ACL_CSI_READ_VOLUME,
    ACL_CSI_LIST_VOLUME,
    ACL_CSI_MOUNT_VOLUME,
    ACL_HOST_VOLUME_CREATE,
    ACL_HOST_VOLUME_REGISTER,
    ACL_HOST_VOLUME_READ,
    ACL_HOST_VOLUME_WRITE,
    ACL_HOST_VOLUME_DELETE,
    ACL_LIST_SCALING_POLICIES,
    ACL_READ_SCALING_POLICY,
    ACL_READ_JOB_SCALING,
    ACL_SCALE_JOB,
    ACL_SUBMIT_RECOMMENDATION,
    ACL_REGISTER_JOB,
    ACL_REVERT_JOB,
    ACL_DEREGISTER_JOB,
    ACL_PURGE_JOB,
    ACL_EVALUATE_JOB,
    ACL_PLAN_JOB,
    ACL_TAG_JOB_VERSION,
    ACL_STABLE_JOB,
    ACL_FAIL_DEPLOYMENT,
    ACL_PAUSE_DEPLOYMENT,
    ACL_PROMOTE_DEPLOYMENT,
    ACL_UNBLOCK_DEPLOYMENT,
    ACL_CANCEL_DEPLOYMENT,
    ACL_SET_ALLOC_HEALTH_DEPLOYMENT,
    ACL_GC_ALLOCATION,
    ACL_PAUSE_ALLOCATION,
    ACL_FORCE_PERIODIC_JOB,
    ACL_DELETE_SERVICE_REGISTRATION,
    ACL_CAPABILITIES,
};

#define ACL_BIT(capability) (UINT64_C(1) << (capability))

/* The same of volumes of the node. */
enum acl_volume { ACL_VOLUME_DENY, ACL_MOUNT_READONLY, ACL_MOUNT_READWRITE };

/* What has no namespace, and how much of it. */
enum acl_area { ACL_AGENT, ACL_NODE, ACL_OPERATOR, ACL_QUOTA, ACL_PLUGIN, ACL_SENTINEL, ACL_AREAS };
enum acl_level { ACL_NOTHING, ACL_LIST, ACL_READ, ACL_WRITE, ACL_DENIED };

struct acl_rights;

/* May do everything: a management token, or anybody where nobody asks for tokens; and nothing at
 * all. */
extern const struct acl_rights acl_everything, acl_nothing;

/* True if RIGHTS have one of CAPABILITIES (bits) in NAMESPACE; "*": in any. */
bool acl_allows(const struct acl_rights *rights, const char *namespace, uint64_t capabilities);
bool acl_allows_area(const struct acl_rights *rights, enum acl_area area, enum acl_level level);
bool acl_allows_volume(const struct acl_rights *rights, const char *name, uint64_t capabilities);
bool acl_manages(const struct acl_rights *rights);

/* True if RIGHTS have anything at all there. */
bool acl_sees_namespace(const struct acl_rights *rights, const char *namespace);

/* --- policies as texts (policy.c) --- */

/* Reads TEXT, in HCL or JSON; free with acl_rights_free.  ERR_INVALID. */
int acl_read_policy(const char *text, size_t length, struct acl_rights **ret_rights,
                    struct err *err);
void acl_rights_free(struct acl_rights *rights);

/* --- the book --- */

struct acl;

struct acl_config {
    struct life *life; /* borrowed */
    struct say say;
    int64_t ttl_min_ns, ttl_max_ns; /* of tokens that do not last for ever; 0: Nomad's defaults */
};

struct acl *acl_new(const struct acl_config *config);
void acl_free(struct acl *acl);

/* Reads policies and tokens of the journal. */
int acl_load(struct acl *acl, struct err *err);

/* Whoever shows SECRET (NULL or "": nothing) has RET_RIGHTS, borrowed until the next turn.
 * ERR_GONE: it is no token's, or that has expired. */
int acl_resolve(struct acl *acl, const char *secret, const struct acl_rights **ret_rights,
                struct err *err);

/* True if there has been a first token (acl_bootstrap). */
bool acl_is_bootstrapped(const struct acl *acl);

/* Nomad's ACLPolicy and ACLToken without its secret, borrowed until the next turn; NULL: there is
 * none. */
const json_t *acl_policy(const struct acl *acl, const char *name);
const json_t *acl_token(const struct acl *acl, const char *accessor);
const json_t *acl_token_of(const struct acl *acl, const char *secret);

/* Each of them in the order of their names. */
typedef void acl_each_cb(void *ctx, const json_t *json);
void acl_each_policy(struct acl *acl, acl_each_cb *cb, void *ctx);
void acl_each_token(struct acl *acl, acl_each_cb *cb, void *ctx);

/* --- asking --- */

/* CODE is 0 and ANSWER (may be NULL) what came of it, when that is durable; or ERR_* and ERR says
 * why.  Once, and perhaps before what was called returns. */
typedef void acl_answer(void *ctx, int code, const struct err *err, const json_t *answer);

/* What a new token is made of: of the caller's chance, there is none here. */
struct acl_fresh {
    char accessor[UUID_TEXT_SIZE], secret[UUID_TEXT_SIZE];
};

/* Takes back, for good, what whoever owns the data directory has said: that there may be a first
 * token once more.  False: it is not said. */
typedef bool acl_again(void *ctx);

/* Makes the first management token, and another one if AGAIN (NULL: nobody has said so) takes that
 * back, which it is asked for last: what is refused for another reason leaves it said, and leaves
 * nobody else's way open.  ERR_EXISTS: there has been one. */
void acl_bootstrap(struct acl *acl, const struct acl_fresh *fresh, acl_again *again,
                   void *again_ctx, acl_answer *answer, void *ctx);

/* Sets a policy, Nomad's ACLPolicy, or forgets that of NAME. */
void acl_put_policy(struct acl *acl, const json_t *policy, acl_answer *answer, void *ctx);
void acl_delete_policy(struct acl *acl, const char *name, acl_answer *answer, void *ctx);

/* Makes a token of REQUEST, Nomad's ACLToken; its answer is the only one with a SecretID. */
void acl_create_token(struct acl *acl, const json_t *request, const struct acl_fresh *fresh,
                      acl_answer *answer, void *ctx);

/* Changes name and policies of the token that REQUEST names; or forgets one. */
void acl_update_token(struct acl *acl, const json_t *request, acl_answer *answer, void *ctx);
void acl_delete_token(struct acl *acl, const char *accessor, acl_answer *answer, void *ctx);

#endif
