/*
 * Hook consul_si_token: the token by which a task is its service to Consul.
 *
 * It is that of the service where its identity has got one (login.c).  Else servers up to Nomad 1.9
 * derive it, and revoke it when they hear that the alloc has ended; newer ones do not know the
 * question, and the task has none.  It is in a file and nowhere else: one that is there is still
 * good, be it after a crash of the daemon, and after a reboot there is another one.  Without a
 * token of its own the daemon asks for none: then Consul asks nobody for any.
 */
#include "hooks/connect/part.h"

#include <stdlib.h>
#include <string.h>

struct deriving {
    struct hooks_asking asking;
    struct hooks *hooks;
    const struct hook_request *request; /* borrowed until it is abandoned, or done */
    struct io_timer begin;
    bool asked;
    hooks_asked *done; /* NULL: nobody waits any more */
    void *ctx;
};

static void finish(struct deriving *deriving, const struct err *err)
{
    const struct results nothing = {.used = 0};

    if (deriving->done != NULL)
        deriving->done(deriving->ctx, &nothing, err);
    free(deriving);
}

static void derived(void *ctx, const char *token, const struct err *why)
{
    struct deriving *deriving = ctx;
    struct err err = {0};

    if (deriving->done == NULL || (token == NULL && why == NULL)) {
        finish(deriving, NULL);
        return;
    }
    if (token == NULL) {
        err = *why;
        (void)err_wrap(&err, "failed to derive SI token"); /* only to be filled, as below */
    } else if (strlen(token) >= CONNECT_TOKEN_SIZE) {
        (void)err_set(&err, ERR_INVALID, "failed to derive SI token: it is none");
    } else {
        (void)connect_write_secret(deriving->request, "si_token", token, strlen(token), &err);
    }
    finish(deriving, err.code == 0 ? NULL : &err);
}

/* The order is whose token it is by its identity: that of the service; nothing, if it has none. */
int hooks_si_token_begin(const struct hooks *hooks, const struct hook_run *asked, char **ret_order,
                         struct err *err)
{
    const struct alloc_spec *alloc = asked->alloc;

    (void)hooks;
    (void)err;
    for (size_t i = 0; i < alloc->services_count && *ret_order == NULL; i++) {
        const struct spec_service *service = &alloc->services[i];

        if (service->connect != NULL && service->identity[0] != '\0' &&
            text_equal(service->name, asked->task->connect_service)) {
            *ret_order = strdup(service->identity);
            check(*ret_order != NULL);
        }
    }
    return 0;
}

static void on_begin(struct io_timer *timer)
{
    struct deriving *deriving = timer->ctx;
    const struct hooks_connect *connect = deriving->hooks->connect;
    const struct hook_request *request = deriving->request;
    char token[CONNECT_TOKEN_SIZE];

    if (request->order[0] != '\0') {
        bool found = connect_token_find(deriving->hooks, request->alloc, request->order, token);

        derived(deriving, found ? token : NULL, NULL);
        explicit_bzero(token, sizeof(token));
        return;
    }
    if (connect == NULL || connect->token[0] == '\0' || connect->derive == NULL ||
        hooks_read_token(deriving->hooks, request->alloc, request->task, token)) {
        explicit_bzero(token, sizeof(token));
        finish(deriving, NULL);
        return;
    }
    deriving->asked = true;
    connect->derive(connect->ctx, request->alloc, request->task, derived, deriving);
}

static void forget(struct hooks_asking *asking)
{
    struct deriving *deriving = (struct deriving *)(void *)asking;

    io_timer_stop(&deriving->begin);
    free(deriving);
}

static void abandon(struct hooks_asking *asking)
{
    struct deriving *deriving = (struct deriving *)(void *)asking;

    deriving->done = NULL;
    if (!deriving->asked)
        forget(asking);
}

struct hooks_asking *hooks_si_token_ask(struct hooks *hooks, const struct hook_request *request,
                                        hooks_asked *done, void *ctx)
{
    struct deriving *deriving = calloc(1, sizeof(*deriving));

    check(deriving != NULL);
    *deriving = (struct deriving){.asking = {.forget = forget, .abandon = abandon},
                                  .hooks = hooks,
                                  .request = request,
                                  .done = done,
                                  .ctx = ctx};
    io_timer_start(hooks->loop, &deriving->begin, loop_now_ms(), on_begin, deriving);
    return &deriving->asking;
}
