/*
 * What the host uses, for those who ask: looked at by a thread of the pool.
 *
 * The file system of the data directory may be one that does not answer any more.  Then one thread
 * waits for it, and one only; who asks gets what was seen last, and how long ago.
 */
#include "agent/api/part.h"

#include "io/log.h"

#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 1000 };

struct api_host_look {
    struct io_work work;
    struct api *api; /* NULL: it is gone */
    api_host_reader *read;
    char data_dir[PATH_SIZE];
    struct host_cpu_times cpu;
    struct host_stats stats;
    int64_t unix_ns;
    struct err err;
};

struct api_host_waiter {
    struct api *api;
    struct api_request request;
    void (*answer)(struct api_request *request, const struct api_host_view *view);
    struct io_timer timer;
    struct api_host_waiter *next, **link;
};

/* --- answering --- */

static struct api_host_view view_of(const struct api *api)
{
    const struct api_host *host = &api->host;

    return (struct api_host_view){
        .stats = host->known ? &host->stats : NULL,
        .unix_ns = host->unix_ns,
        .age_ms = host->known ? loop_now_ms() - host->seen_ms : 0,
        .err = &host->err,
    };
}

static void forget(struct api_host_waiter *waiter)
{
    io_timer_stop(&waiter->timer);
    *waiter->link = waiter->next;
    if (waiter->next != NULL)
        waiter->next->link = waiter->link;
    waiter->api->host.waiters_count--;
    free(waiter);
}

static void answer(struct api_host_waiter *waiter)
{
    struct api_host_view view = view_of(waiter->api);

    http_on_close(waiter->request.exchange, NULL, NULL);
    waiter->answer(&waiter->request, &view);
    forget(waiter);
}

static void on_waiter_closed(void *ctx)
{
    forget(ctx);
}

static void on_out_of_patience(struct io_timer *timer)
{
    struct api_host_waiter *waiter = timer->ctx;
    struct api_host *host = &waiter->api->host;

    if (!host->hangs)
        log_warn("api", "the file system of the data directory does not answer data_dir=%s",
                 log_value(waiter->api->parts->config->data_dir));
    host->hangs = true;
    if (!host->known)
        (void)err_set(&host->err, ERR_TIMEOUT, /* told to who asked */
                      "the file system of the data directory does not answer");
    answer(waiter);
}

/* --- looking --- */

static void run(struct io_work *work)
{
    struct api_host_look *look = work->ctx;

    (void)look->read(look->data_dir, &look->cpu, &look->stats, &look->err); /* its error is kept */
    look->unix_ns = loop_now_unix_ns();
}

static void done(struct io_work *work)
{
    struct api_host_look *look = work->ctx;
    struct api *api = look->api;

    if (api == NULL) {
        free(look);
        return;
    }
    struct api_host *host = &api->host;
    if (host->hangs)
        log_info("api", "the file system of the data directory answers again");
    host->look = NULL;
    host->hangs = false;
    host->err = look->err;
    host->cpu = look->cpu;
    if (look->err.code == 0) {
        host->known = true;
        host->stats = look->stats;
        host->unix_ns = look->unix_ns;
        host->seen_ms = loop_now_ms();
    }
    free(look);
    while (host->waiters != NULL)
        answer(host->waiters);
}

static void start_look(struct api *api)
{
    struct api_host_look *look = calloc(1, sizeof(*look));

    check(look != NULL);
    look->api = api;
    look->read = api->host.read;
    look->cpu = api->host.cpu;
    (void)text_copy(look->data_dir, sizeof(look->data_dir),
                    api->parts->config->data_dir); /* fits */
    api->host.look = look;
    io_work_submit_ahead(api->parts->loop, &look->work, run, done, look);
}

/* --- the door --- */

void api_host_ask(struct api_request *request,
                  void (*give)(struct api_request *request, const struct api_host_view *view))
{
    struct api *api = request->api;

    if (api->host.look == NULL)
        start_look(api);
    if (api->host.hangs || api->host.waiters_count == API_ASIDES_MAX) {
        struct api_host_view view = view_of(api);

        give(request, &view);
        return;
    }
    struct api_host_waiter *waiter = calloc(1, sizeof(*waiter));
    check(waiter != NULL);
    *waiter = (struct api_host_waiter){
        .api = api,
        .request = *request,
        .answer = give,
        .next = api->host.waiters,
        .link = &api->host.waiters,
    };
    if (waiter->next != NULL)
        waiter->next->link = &waiter->next;
    waiter->request.argument = ""; /* the rest it borrows lives as long as the exchange */
    api->host.waiters = waiter;
    api->host.waiters_count++;
    http_on_close(request->exchange, on_waiter_closed, waiter);
    io_timer_start(api->parts->loop, &waiter->timer, loop_now_ms() + PATIENCE_MS,
                   on_out_of_patience, waiter);
}

void api_host_close(struct api *api)
{
    check(api->host.waiters == NULL); /* their peers are gone */
    if (api->host.look != NULL)
        api->host.look->api = NULL;
}
