/*
 * Hook consul: tokens of Consul for the identities of an alloc, had before its tasks and given back
 * after them.
 *
 * Servers sign an identity, and Consul gives a token to whoever shows that.  Each token is written
 * down as soon as it is there: after a crash only those are asked for that are missing.  What does
 * not answer is asked again for a minute; what is refused is refused.  Tokens that cannot be given
 * back in half a minute stay good for as long as Consul's method has them be.
 */
#include "fsm/policy.h"
#include "hooks/connect/part.h"
#include "hooks/services.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRY_MS = 60 * 1000,
    GIVE_BACK_MS = 30 * 1000,
    AGAIN_MS = 500,
    AGAIN_MAX_MS = 8000,
};

struct login {
    struct hooks_asking asking;
    struct hooks *hooks;
    const struct hook_request *request; /* borrowed until it is abandoned, or done */
    json_t *wants;                      /* of PRERUN: whose tokens are to be had; owned */
    json_t *signatures;                 /* of those, once they are signed: by key; owned, secret */
    json_t *tokens;                     /* that there are; owned, secret */
    struct io_timer timer;
    bool waits; /* for an answer */
    uint64_t until_ms;
    uint32_t tries;
    hooks_asked *done; /* NULL: nobody waits any more */
    void *ctx;
};

static void login_free(struct login *login)
{
    io_timer_stop(&login->timer);
    json_decref(login->wants);
    connect_tokens_free(login->signatures);
    connect_tokens_free(login->tokens);
    free(login);
}

static void finish(struct login *login, const struct err *err)
{
    const struct results nothing = {.used = 0};

    if (login->done != NULL)
        login->done(login->ctx, &nothing, err);
    login_free(login);
}

/* True if WHY may pass and there is time: then FUNCTION comes again. */
static bool tries_again(struct login *login, const struct err *why,
                        void (*function)(struct io_timer *timer))
{
    uint64_t now_ms = loop_now_ms();

    if (!why->recoverable || now_ms >= login->until_ms)
        return false;
    login->tries++;
    io_timer_start(login->hooks->loop, &login->timer,
                   now_ms + policy_backoff_ms(AGAIN_MS, AGAIN_MAX_MS, login->tries, now_ms),
                   function, login);
    return true;
}

/* Nobody is told: it goes when what it waits for has come. */
static bool is_abandoned(struct login *login)
{
    login->waits = false;
    if (login->done != NULL)
        return false;
    login_free(login);
    return true;
}

static void forget(struct hooks_asking *asking)
{
    login_free((struct login *)(void *)asking);
}

static void abandon(struct hooks_asking *asking)
{
    struct login *login = (struct login *)(void *)asking;

    login->done = NULL;
    if (!login->waits)
        login_free(login);
}

static struct login *login_new(struct hooks *hooks, const struct hook_request *request,
                               uint64_t for_ms, hooks_asked *done, void *ctx)
{
    struct login *login = calloc(1, sizeof(*login));

    check(login != NULL);
    *login = (struct login){.asking = {.forget = forget, .abandon = abandon},
                            .hooks = hooks,
                            .request = request,
                            .tokens = connect_tokens_read(request),
                            .until_ms = loop_now_ms() + for_ms,
                            .done = done,
                            .ctx = ctx};
    return login;
}

/* --- what is to be had --- */

static const char *want_text(const json_t *want, const char *field)
{
    return json_string_value(json_object_get(want, field));
}

static void add_want(json_t *wants, const char *key, const char *identity, const char *workload,
                     const char *service)
{
    json_t *want = json_pack("{s:s, s:s, s:s, s:s?}", "Key", key, "Identity", identity, "Workload",
                             workload, "Service", service);

    check(want != NULL && json_array_append_new(wants, want) == 0);
}

int hooks_login_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                      struct err *err)
{
    const struct alloc_spec *alloc = asked->alloc;
    struct hooks_services *services;
    char key[TOKEN_KEY_SIZE];

    if (hooks->connect == NULL)
        return err_set(err, ERR_UNSUPPORTED, "this agent has no Consul");
    if (hooks->signer == NULL)
        return err_set(err, ERR_UNSUPPORTED, "nobody signs identities here");
    int code = hooks_services_make(hooks, alloc, false, NULL, &services, err);
    if (code != 0)
        return code;
    json_t *wants = json_array();
    for (size_t i = 0; i < services->count; i++) {
        const struct spec_service *spec = services->items[i].spec;

        if (spec->identity[0] != '\0')
            add_want(wants, spec->identity, spec->identity, spec->name, services->items[i].name);
    }
    hooks_services_free(services);
    for (size_t i = 0; i < alloc->tasks_count; i++) {
        connect_task_key(alloc->tasks[i].name, key);
        if (alloc->tasks[i].has_consul_token)
            add_want(wants, key, SPEC_CONSUL_IDENTITY, alloc->tasks[i].name, NULL);
    }
    json_t *order =
        json_pack("{s:I, s:o}", "Index", (json_int_t)alloc->create_index, "Wants", wants);
    check(order != NULL);
    *ret_order = json_dumps(order, JSON_COMPACT);
    check(*ret_order != NULL);
    json_decref(order);
    return 0;
}

/* --- having it --- */

static void go_on(struct io_timer *timer);

/* The first that is missing, NULL: none is. */
static const json_t *next_want(const struct login *login)
{
    const json_t *want;
    size_t i;

    json_array_foreach(json_object_get(login->wants, "Wants"), i, want)
    {
        if (json_object_get(login->tokens, want_text(want, "Key")) == NULL)
            return want;
    }
    return NULL;
}

/* Nobody minds whether it is: who it was for has gone. */
static void on_returned(void *ctx, const char *token, const struct err *why)
{
    (void)ctx;
    (void)token;
    (void)why;
}

static void on_token(void *ctx, const char *token, const struct err *why)
{
    struct login *login = ctx;
    const struct hooks_connect *connect = login->hooks->connect;
    const json_t *want = next_want(login);
    struct err err = {0};

    if (token != NULL && login->done == NULL) {
        connect->logout(connect->ctx, token, on_returned, NULL); /* it is written down nowhere */
    } else if (token != NULL) {
        const char *key = want_text(want, "Key");

        check(json_object_set_new(login->tokens, key, json_string(token)) == 0);
        (void)connect_tokens_write(login->request, login->tokens, &err); /* it fills that */
    } else if (why != NULL) {
        err = *why;
    }
    if (is_abandoned(login))
        return;
    if (token == NULL && tries_again(login, &err, go_on))
        return;
    if (err.code != 0) {
        bool of_service = want_text(want, "Service") != NULL;

        (void)err_wrap(&err, "failed to derive Consul token for %s %.100s",
                       of_service ? "service" : "task",
                       want_text(want, of_service ? "Service" : "Workload")); /* it is told */
        finish(login, &err);
        return;
    }
    login->tries = 0;
    go_on(&login->timer);
}

static void on_signed(void *ctx, const struct spec_signed *tokens, const struct err *why)
{
    struct login *login = ctx;
    struct err err = {0};
    const json_t *want;
    size_t i, count = 0;

    if (is_abandoned(login))
        return;
    if (tokens == NULL) {
        if (tries_again(login, why, go_on))
            return;
        err = *why;
        (void)err_wrap(&err, "error getting signed identities"); /* only to be filled */
        finish(login, &err);
        return;
    }
    login->signatures = json_object();
    json_array_foreach(json_object_get(login->wants, "Wants"), i, want)
    {
        const char *key = want_text(want, "Key");

        if (json_object_get(login->tokens, key) == NULL)
            check(json_object_set_new(login->signatures, key, json_string(tokens[count++].token)) ==
                  0);
    }
    go_on(&login->timer);
}

static void sign(struct login *login)
{
    const struct hooks_signer *signer = login->hooks->signer;
    struct spec_bearer bearers[SPEC_SERVICES_MAX + SPEC_TASKS_MAX];
    const json_t *want;
    size_t i, count = 0;

    json_array_foreach(json_object_get(login->wants, "Wants"), i, want)
    {
        if (json_object_get(login->tokens, want_text(want, "Key")) == NULL)
            bearers[count++] = (struct spec_bearer){.identity = want_text(want, "Identity"),
                                                    .workload = want_text(want, "Workload"),
                                                    .service = want_text(want, "Service")};
    }
    login->waits = true;
    signer->sign(signer->ctx, login->request->alloc,
                 (uint64_t)json_integer_value(json_object_get(login->wants, "Index")), bearers,
                 count, on_signed, login);
}

static void go_on(struct io_timer *timer)
{
    struct login *login = timer->ctx;
    const struct hooks_connect *connect = login->hooks->connect;
    const json_t *want = next_want(login);

    if (want == NULL) {
        finish(login, NULL);
    } else if (login->signatures == NULL) {
        sign(login);
    } else {
        bool of_service = want_text(want, "Service") != NULL;
        const struct hooks_login order = {
            .jwt = want_text(login->signatures, want_text(want, "Key")),
            .of_service = of_service,
            .bearer = want_text(want, of_service ? "Service" : "Workload")};

        login->waits = true;
        connect->login(connect->ctx, &order, on_token, login);
    }
}

struct hooks_asking *hooks_login_ask(struct hooks *hooks, const struct hook_request *request,
                                     hooks_asked *done, void *ctx)
{
    struct login *login = login_new(hooks, request, TRY_MS, done, ctx);

    login->wants = json_loads(request->order, 0, NULL);
    check(login->wants != NULL); /* hooks_login_begin has made it */
    io_timer_start(hooks->loop, &login->timer, loop_now_ms(), go_on, login);
    return &login->asking;
}

/* --- giving it back --- */

static void give_back(struct io_timer *timer);

/* What is left is told, and nobody waits for it. */
static void leave(struct login *login, const struct err *why)
{
    struct err remark = *why;

    (void)err_wrap(&remark, "%zu tokens of Consul were not given back",
                   json_object_size(login->tokens)); /* only to be filled */
    remark.code = 0;
    finish(login, &remark);
}

static void on_given_back(void *ctx, const char *token, const struct err *why)
{
    struct login *login = ctx;
    struct err err = {0};

    (void)token;
    if (why == NULL && login->done != NULL) {
        void *first = json_object_iter(login->tokens);

        (void)json_object_del(login->tokens, json_object_iter_key(first)); /* it is there */
        (void)connect_tokens_write(login->request, login->tokens, &err);   /* it fills that */
    } else if (why != NULL) {
        err = *why;
    }
    if (is_abandoned(login))
        return;
    if (err.code == 0)
        give_back(&login->timer);
    else if (!tries_again(login, &err, give_back))
        leave(login, &err);
}

static void give_back(struct io_timer *timer)
{
    struct login *login = timer->ctx;
    const struct hooks_connect *connect = login->hooks->connect;
    void *first = json_object_iter(login->tokens);
    struct err err = {0};

    if (first == NULL) {
        finish(login, NULL);
    } else if (connect == NULL) {
        (void)err_set(&err, ERR_UNSUPPORTED, "this agent has no Consul any more");
        leave(login, &err);
    } else {
        login->waits = true;
        connect->logout(connect->ctx, json_string_value(json_object_iter_value(first)),
                        on_given_back, login);
    }
}

struct hooks_asking *hooks_logout_ask(struct hooks *hooks, const struct hook_request *request,
                                      hooks_asked *done, void *ctx)
{
    struct login *login = login_new(hooks, request, GIVE_BACK_MS, done, ctx);

    io_timer_start(hooks->loop, &login->timer, loop_now_ms(), give_back, login);
    return &login->asking;
}
