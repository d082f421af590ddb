/*
 * Tokens of Consul: had by logging in with the token of an identity, and given back.
 *
 * One that was just made may not be known to all of Consul's servers: it is shown to the agent
 * until that knows it, for ten seconds.  Follows nomad v2.0.6 client/consul/consul.go.
 */
#include "hooks/consul/part.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

enum {
    SHOW_MS = 10 * 1000,
    SHOW_AGAIN_MS = 500,
    TOKEN_SIZE = 256, /* with its NUL */
};

/* One token on its way, here or back. */
struct errand {
    struct consul_tokens *tokens;
    char token[TOKEN_SIZE]; /* "": not yet */
    struct http_request *request;
    struct io_timer timer;
    uint64_t until_ms;   /* it is shown */
    consul_token_cb *cb; /* NULL: nobody is told */
    void *ctx;
    struct errand *prev, *next;
};

struct consul_tokens {
    const struct consul_config *config;
    struct errand *errands;
};

struct consul_tokens *consul_tokens_new(const struct consul_config *config)
{
    struct consul_tokens *tokens = calloc(1, sizeof(*tokens));

    check(tokens != NULL);
    tokens->config = config;
    return tokens;
}

static struct errand *errand_new(struct consul_tokens *tokens, consul_token_cb *cb, void *ctx)
{
    struct errand *errand = calloc(1, sizeof(*errand));

    check(errand != NULL);
    errand->tokens = tokens;
    errand->cb = cb;
    errand->ctx = ctx;
    DL_APPEND(tokens->errands, errand);
    return errand;
}

static void end(struct errand *errand, const struct err *err)
{
    DL_DELETE(errand->tokens->errands, errand);
    io_timer_stop(&errand->timer);
    if (errand->cb != NULL)
        errand->cb(errand->ctx, err == NULL ? errand->token : NULL, err);
    explicit_bzero(errand->token, sizeof(errand->token));
    free(errand);
}

void consul_tokens_free(struct consul_tokens *tokens)
{
    struct errand *errand, *next;

    if (tokens == NULL)
        return;
    DL_FOREACH_SAFE(tokens->errands, errand, next)
    {
        errand->cb = NULL;
        if (errand->request != NULL)
            http_cancel(errand->request); /* which ends it */
        else
            end(errand, NULL);
    }
    free(tokens);
}

/* Why REPLY is no success: what does not answer, or cannot just now, may later. */
static bool fill_failure(const struct http_reply *reply, struct err *err)
{
    char why[ERR_TEXT_SIZE];

    if (!consul_failed(reply, why, sizeof(why)))
        return false;
    (void)err_set(err, reply->status == 0 ? reply->error.code : ERR_REFUSED, "%s",
                  why); /* only to be filled */
    err->recoverable = reply->status == 0 || reply->status >= 500 || reply->status == 429;
    return true;
}

/* --- having one --- */

static void show(struct io_timer *timer);

static void on_shown(void *ctx, const struct http_reply *reply)
{
    struct errand *errand = ctx;
    uint64_t now_ms = loop_now_ms();
    struct err err = {0};

    errand->request = NULL;
    if (!fill_failure(reply, &err))
        end(errand, NULL);
    else if (reply->error.code == ERR_CANCELED || now_ms >= errand->until_ms)
        end(errand, &err);
    else
        io_timer_start(errand->tokens->config->loop, &errand->timer, now_ms + SHOW_AGAIN_MS, show,
                       errand);
}

static void show(struct io_timer *timer)
{
    struct errand *errand = timer->ctx;
    const struct consul_request call = {
        .method = "GET", .path = "/v1/acl/token/self?stale", .token = errand->token};

    consul_send(errand->tokens->config, &call, on_shown, errand, &errand->request);
}

static void on_login(void *ctx, const struct http_reply *reply)
{
    struct errand *errand = ctx;
    struct err err = {0};

    errand->request = NULL;
    if (!fill_failure(reply, &err)) {
        json_t *answer = json_loadb(reply->body, reply->body_length, 0, NULL);
        const char *token = json_string_value(json_object_get(answer, "SecretID"));

        if (token == NULL || token[0] == '\0' || !spec_is_token(token) ||
            !text_copy(errand->token, sizeof(errand->token), token))
            (void)err_set(&err, ERR_CORRUPT, "Consul sent no token"); /* only to be filled */
        json_decref(answer);
    }
    if (err.code != 0) {
        end(errand, &err);
        return;
    }
    errand->until_ms = loop_now_ms() + SHOW_MS;
    io_timer_start(errand->tokens->config->loop, &errand->timer, loop_now_ms(), show, errand);
}

void consul_login(struct consul_tokens *tokens, const char *method, const char *jwt,
                  const char *requested_by, consul_token_cb *cb, void *ctx)
{
    struct errand *errand = errand_new(tokens, cb, ctx);
    json_t *body =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "AuthMethod", method, "BearerToken", jwt, "Meta",
                  "requested_by", requested_by, "node_id", tokens->config->node_id);
    const struct consul_request call = {
        .method = "POST", .path = "/v1/acl/login", .token = "", .body = body, .secret = true};

    check(body != NULL);
    consul_send(tokens->config, &call, on_login, errand, &errand->request);
    json_decref(body);
}

/* --- giving one back --- */

/* Consul says that it knows no such token of one that is gone, as of any that it does not. */
static void on_logout(void *ctx, const struct http_reply *reply)
{
    struct errand *errand = ctx;
    struct err err = {0};

    errand->request = NULL;
    bool failed = fill_failure(reply, &err) && reply->status != 403;
    end(errand, failed ? &err : NULL);
}

void consul_logout(struct consul_tokens *tokens, const char *token, consul_token_cb *cb, void *ctx)
{
    struct errand *errand = errand_new(tokens, cb, ctx);
    const struct consul_request call = {.method = "POST", .path = "/v1/acl/logout", .token = token};

    consul_send(tokens->config, &call, on_logout, errand, &errand->request);
}
