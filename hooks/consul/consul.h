/*
 * Consul: what this node offers is registered with the agent of Consul beside it, and what its
 * checks find is read there.
 *
 * One round at a time: who the agent is, if that is not known; its services; its checks; then one
 * call for each service that is not as it is wanted, as policy_consul_call decides.  A round comes
 * when something is wanted otherwise, every 30 s, and after a failure again and again.  Nothing is
 * remembered of what was told: the round reads what is there.  While checks are waited for there
 * are rounds that read only these, once a second.
 *
 * An entry is this node's if its metadata says so (CONSUL_MARK); others are never touched, whatever
 * they are called.  Several nodes may share one agent.
 *
 * Behaviour follows nomad v2.0.5 command/agent/consul/service_client.go, but for that, and for
 * checks, of which there is one reader for the node.  Everything is called on the loop's thread.
 */
#ifndef CAIRN_HOOKS_CONSUL_CONSUL_H
#define CAIRN_HOOKS_CONSUL_CONSUL_H

#include "fsm/policy.h"
#include "hooks/services.h"
#include "io/http.h"
#include "io/loop.h"
#include "spec/spec.h"

#include <jansson.h>

struct consul;

enum { CONSUL_ENVOY_SIZE = 32 };

/* All borrowed until it is freed; CTX goes to each call. */
struct consul_config {
    struct loop *loop;
    const char *url;         /* "http://127.0.0.1:8500": scheme and host, nothing behind */
    const char *unix_socket; /* NULL: by the network */
    const char *token;       /* "": none */
    struct http_trust trust;
    uint64_t timeout_ms; /* of one call */
    const char *node_id;
    void *ctx;

    /* True if the journal has ALLOC. */
    bool (*knows)(void *ctx, const char *alloc);
    /* The agent has answered who it is: ATTRIBUTES of the node, and the version of ENVOY that it
     * prefers, shorter than CONSUL_ENVOY_SIZE, "": none; borrowed for the call. */
    void (*found)(void *ctx, const struct spec_pairs *attributes, const char *envoy);
    /* What CHECK (its id) of a service of ALLOC has found; in each round, for each of them. */
    void (*checked)(void *ctx, const char *alloc, const char *check, enum consul_status status);
    /* True if somebody waits for what checks find. */
    bool (*watched)(void *ctx);
};

/* Begins as soon as the loop runs. */
struct consul *consul_new(const struct consul_config *config);
void consul_free(struct consul *consul);

/* REGISTRATION, the body of a call to register it, is wanted from now on, in place of what was
 * wanted under its id; a new reference is taken.  TOKEN, a secret that is copied, is what it is
 * registered by, NULL: the daemon's. */
void consul_want(struct consul *consul, json_t *registration, const char *token);

/* Nothing is wanted under ID. */
void consul_drop(struct consul *consul, const char *id);

/* What the TTL check ID has found, in UTF-8; told once more if the agent does not take it. */
void consul_beat(struct consul *consul, const char *id, enum consul_status status,
                 const char *output);

/* False: the agent has not answered the last time that it was asked. */
bool consul_is_reached(const struct consul *consul);

/* --- the node itself (api.c) --- */

/* All borrowed. */
struct consul_api {
    const char *address; /* "host:port" */
    const char *service, *check_name;
    bool has_tls, asks_certificates; /* of who connects */
};

/* What is wanted so that others find API of the node NODE_ID; a new reference.  Follows nomad
 * v2.0.6 command/agent/agent.go `setupClient`, `agentHTTPCheck`. */
json_t *consul_api_registration(const struct consul_api *api, const char *node_id);

/* --- tokens (tokens.c) --- */

/* Asks for tokens and gives them back; CONFIG is borrowed, its callbacks are not used. */
struct consul_tokens;
struct consul_tokens *consul_tokens_new(const struct consul_config *config);

/* Nobody is told any more. */
void consul_tokens_free(struct consul_tokens *tokens);

/* TOKEN is borrowed for the call; NULL with an ERR that says whether asking again may help. */
typedef void consul_token_cb(void *ctx, const char *token, const struct err *err);

/* Logs in at METHOD by JWT, for REQUESTED_BY.  CB comes once, with a token that Consul's servers
 * know by then. */
void consul_login(struct consul_tokens *tokens, const char *method, const char *jwt,
                  const char *requested_by, consul_token_cb *cb, void *ctx);

/* TOKEN is good for nothing any more when CB comes without an ERR. */
void consul_logout(struct consul_tokens *tokens, const char *token, consul_token_cb *cb, void *ctx);

/* --- where somebody is (search.c) --- */

enum { CONSUL_FOUND_MAX = 64, CONSUL_PLACE_SIZE = 272 /* "host:port" */ };

struct consul_search_config {
    const struct consul_config *consul; /* its callbacks are not used */
    const char *service, *tag;
    /* COUNT addresses, the nearest first, borrowed for the call; none: ERR says why. */
    void (*found)(void *ctx, const char (*places)[CONSUL_PLACE_SIZE], size_t count,
                  const struct err *err);
    void *ctx;
};

/* Who offers a service; all is borrowed, and nothing is asked before it is begun. */
struct consul_search;
struct consul_search *consul_search_new(const struct consul_search_config *config);

/* FOUND does not come any more. */
void consul_search_free(struct consul_search *search);

/* Looks in the datacenter of the agent, and where nobody is there in others, the nearest first;
 * FOUND comes once, never from inside.  If that is under way already, it is the one. */
void consul_search_begin(struct consul_search *search);

#endif
