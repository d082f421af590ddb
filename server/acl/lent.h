/*
 * Tokens and policies of servers, for a node that has joined some: what they say of who shows a
 * secret, remembered for a while.
 *
 * Follows nomad v2.0.6 client/acl.go.  A token's policies, and those of its roles, are added up
 * once for as long as they are believed (ttl_ms); when servers cannot be asked again, what they
 * said last counts on, but not beyond the token's end.  Only digests of secrets are kept, but for
 * the time of asking.  Nothing of it is durable.
 */
#ifndef CAIRN_SERVER_ACL_LENT_H
#define CAIRN_SERVER_ACL_LENT_H

#include "server/acl/acl.h"

enum {
    ACL_LENT_MAX = 512,         /* tokens that are remembered */
    ACL_LENT_ASKED_MAX = 32,    /* that servers are asked about at once */
    ACL_LENT_SECRET_MAX = 8192, /* bytes: an identity of a workload is a long text */
};

struct acl_lent;

/* REPLY, borrowed; NULL: ERR says why, ERR_REFUSED in the servers' own words. */
typedef void acl_lent_reply(void *ctx, const json_t *reply, const struct err *err);

struct acl_lent_config {
    struct say say;
    uint64_t ttl_ms;
    void *ctx;
    /* Asks METHOD (a literal) with ARGS (moved) of the servers, as who shows SECRET.  CB once, or
     * never, if it is the end of all. */
    void (*ask)(void *ctx, const char *method, json_t *args, const char *secret, acl_lent_reply *cb,
                void *cb_ctx);
    uint64_t (*now_ms)(void *ctx);     /* that only grows */
    int64_t (*now_unix_ns)(void *ctx); /* by which tokens end */
};

struct acl_lent *acl_lent_new(const struct acl_lent_config *config);

/* Nobody answers any more what was asked. */
void acl_lent_free(struct acl_lent *lent);

/* Whoever shows SECRET (NULL or "": nothing) has RET_RIGHTS, borrowed until the next turn.
 * ERR_AGAIN: servers have to be asked (acl_lent_ask); not if it is SETTLED: then what they said
 * last counts, however long ago.  ERR_GONE: it is no token's, or that has expired.  Any other: they
 * could not be asked, or would not say. */
int acl_lent_find(struct acl_lent *lent, const char *secret, bool settled,
                  const struct acl_rights **ret_rights, struct err *err);

/* THEN when acl_lent_find has an answer, once, and perhaps before this returns; until then RET_WAIT
 * is who waits.  ERR_LIMIT: too much is being asked. */
typedef void acl_lent_then(void *ctx);
struct acl_lent_wait;
int acl_lent_ask(struct acl_lent *lent, const char *secret, acl_lent_then *then, void *ctx,
                 struct acl_lent_wait **ret_wait, struct err *err);

/* WAIT is over: THEN does not come any more. */
void acl_lent_leave(struct acl_lent_wait *wait);

#endif
