/*
 * Templates before a start of their task: they are rendered, and again when what they lack is
 * known, until they lack nothing.  What they wait for is told when it has been another thing than
 * before for a while, as in Nomad (template.go handleFirstRender, DefaultMaxTemplateEventRate).
 *
 * Who waits for it no longer gets its answer when nothing is written any more.
 */
#include "hooks/render/render.h"

#include "io/loop.h"

#include <stdlib.h>
#include <string.h>

enum { TELL_MS = 3000 };

struct first {
    struct hooks_asking asking; /* what others know of it */
    struct hooks *hooks;
    char *alloc_dir, *alloc, *task, *user, *order; /* of the request */
    struct hook_request request;
    struct results results;
    struct io_work work;
    struct io_timer timer, telling; /* timer: it is stopped, and has to say so */
    struct err err;
    char missing[DESCRIPTION_SIZE], told[DESCRIPTION_SIZE];
    bool working, stopped, tells; /* tells: soon */
    hooks_asked *done;            /* NULL: nobody waits any more */
    void *ctx;
};

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    check(copy != NULL);
    return copy;
}

static void free_first(struct first *first)
{
    free(first->alloc_dir);
    free(first->alloc);
    free(first->task);
    free(first->user);
    free(first->order);
    free(first->results.bytes);
    free(first);
}

/* --- its end --- */

static void finish(struct first *first)
{
    hooks_asked *done = first->done;
    void *ctx = first->ctx;
    struct results results = first->results;
    struct err err = first->err;

    io_timer_stop(&first->timer);
    io_timer_stop(&first->telling);
    asks_close(first->request.asks);
    first->results = (struct results){0};
    free_first(first);
    done(ctx, err.code == 0 ? &results : NULL, err.code == 0 ? NULL : &err);
    free(results.bytes);
}

static void on_stopped(struct io_timer *timer)
{
    struct first *first = timer->ctx;

    (void)err_set(&first->err, ERR_CANCELED, "nobody waits for it any more"); /* to be told */
    finish(first);
}

static void stop(struct hooks_asking *asking)
{
    struct first *first = (struct first *)(void *)asking;

    first->stopped = true;
    if (!first->working)
        io_timer_start(first->hooks->loop, &first->timer, loop_now_ms(), on_stopped, first);
}

/* The hooks are gone, too. */
static void forget(struct hooks_asking *asking)
{
    struct first *first = (struct first *)(void *)asking;

    io_timer_stop(&first->timer);
    io_timer_stop(&first->telling);
    first->done = NULL;
    if (!first->working)
        free_first(first);
}

/* --- what it waits for --- */

static void on_telling(struct io_timer *timer)
{
    struct first *first = timer->ctx;
    const struct hooks_templates *templates = first->hooks->templates;

    first->tells = false;
    (void)text_copy(first->told, sizeof(first->told), first->missing); /* same size */
    if (templates != NULL)
        templates->waits(templates->ctx, first->alloc, first->task, first->told);
}

static void tell_later(struct first *first)
{
    asks_missing(first->request.asks, first->missing, sizeof(first->missing));
    if (first->tells || text_equal(first->missing, first->told))
        return;
    first->tells = true;
    io_timer_start(first->hooks->loop, &first->telling, loop_now_ms() + TELL_MS, on_telling, first);
}

static void render_now(struct first *first);

/* It lacked something. */
static void look(struct first *first)
{
    switch (asks_state(first->request.asks, &first->err)) {
    case ASKS_READY:
        render_now(first);
        break;
    case ASKS_LACKING:
        tell_later(first);
        break;
    case ASKS_IN_VAIN:
        first->err.recoverable = false;
        finish(first);
        break;
    case ASKS_COMPLETE:
        finish(first); /* what else is to be tried again */
        break;
    }
}

static void on_news(void *ctx)
{
    struct first *first = ctx;

    if (!first->working && !first->stopped)
        look(first);
}

/* --- rendering --- */

static void on_pool(struct io_work *work)
{
    struct first *first = work->ctx;
    int code = hooks_render(&first->request, &first->err);

    check(code == 0 || code == first->err.code);
}

static void on_rendered(struct io_work *work)
{
    struct first *first = work->ctx;

    first->working = false;
    asks_settle(first->request.asks);
    if (first->done == NULL)
        free_first(first);
    else if (first->stopped)
        on_stopped(&first->timer);
    else if (first->err.code == ERR_AGAIN)
        look(first);
    else
        finish(first);
}

static void render_now(struct first *first)
{
    first->working = true;
    first->err = (struct err){0};
    first->results.used = 0;
    asks_begin(first->request.asks);
    io_work_submit(first->hooks->loop, &first->work, on_pool, on_rendered, first);
}

struct hooks_asking *hooks_render_ask(struct hooks *hooks, const struct hook_request *request,
                                      hooks_asked *done, void *ctx)
{
    struct first *first = calloc(1, sizeof(*first));
    json_t *order = json_loads(request->order, 0, NULL);

    check(first != NULL && order != NULL);
    first->asking = (struct hooks_asking){.forget = forget, .stop = stop};
    first->hooks = hooks;
    first->alloc_dir = copy_of(request->alloc_dir);
    first->alloc = copy_of(request->alloc);
    first->task = copy_of(request->task);
    first->user = copy_of(request->user);
    first->order = copy_of(request->order);
    first->results = (struct results){malloc(RESULTS_BYTES_MAX), 0, RESULTS_BYTES_MAX};
    check(first->results.bytes != NULL);
    first->timer.ctx = first;
    first->done = done;
    first->ctx = ctx;
    first->request = (struct hook_request){
        .alloc_dir = first->alloc_dir,
        .alloc = first->alloc,
        .task = first->task,
        .user = first->user,
        .order = first->order,
        .parser = request->parser,
        .privileged = request->privileged,
        .results = &first->results,
        .asks = asks_open(hooks, first->alloc, first->task, json_object_get(order, "asker"),
                          on_news, first),
    };
    json_decref(order);
    render_now(first);
    return &first->asking;
}
