/*
 * Requests that threads of the pool work for, while the loop goes on.
 *
 * A body that is short is read at once, which takes a few milliseconds at most.  Longer ones are
 * read one at a time: what a parser makes of 8 MiB can be thirty times as much, and is given back
 * to the system as soon as its request is answered.  Nobody waits for one whose peer has gone.
 */
#include "agent/api/part.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TRIM_BYTES_MIN = 256 << 10 }; /* a body worth looking for free memory after it */

/* --- lists --- */

static void unlink_aside(struct api_aside *aside)
{
    *aside->link = aside->next;
    if (aside->next != NULL)
        aside->next->link = aside->link;
    aside->api->asides_count--;
    aside->api->asides_bytes -= aside->body_length;
}

static void link_aside(struct api *api, struct api_aside *aside)
{
    struct api_aside **end = &api->asides;

    while (*end != NULL)
        end = &(*end)->next;
    aside->next = NULL;
    aside->link = end;
    *end = aside;
    api->asides_count++;
    api->asides_bytes += aside->body_length;
}

static void aside_free(struct api_aside *aside)
{
    free(aside->body);
    aside->free(aside);
}

/* --- on the pool --- */

static void run(struct io_work *work)
{
    struct api_aside *aside = work->ctx;

    aside->run(aside);
    free(aside->body);
    aside->body = NULL;
}

static void run_trim(struct io_work *work)
{
    (void)work;
    (void)malloc_trim(0); /* whether anything could be given back does not matter */
}

static void trim_done(struct io_work *work)
{
    free(work);
}

/* --- on the loop --- */

static void start_next(struct api *api);

static void answer(struct api_aside *aside)
{
    http_on_close(aside->request.exchange, NULL, NULL);
    if (api_is_allowed(&aside->request)) /* still: a token may have gone meanwhile */
        aside->answer(&aside->request, aside);
}

static void done(struct io_work *work)
{
    struct api_aside *aside = work->ctx;
    struct api *api = aside->api;
    bool trim = aside->body_length >= TRIM_BYTES_MIN, was_read = aside->body_length > 0;

    if (api != NULL)
        unlink_aside(aside);
    if (api != NULL && !aside->left)
        answer(aside);
    aside_free(aside);
    if (api == NULL)
        return;
    if (was_read) {
        api->reading = false;
        start_next(api);
    }
    if (trim) {
        struct io_work *trimming = calloc(1, sizeof(*trimming));

        check(trimming != NULL);
        io_work_submit(api->parts->loop, trimming, run_trim, trim_done, NULL);
    }
}

static void submit(struct api_aside *aside)
{
    aside->running = true;
    io_work_submit_ahead(aside->api->parts->loop, &aside->work, run, done, aside);
}

/* The next body, unless one is being read. */
static void start_next(struct api *api)
{
    struct api_aside *next = api->asides;

    while (next != NULL && (next->running || next->body_length == 0))
        next = next->next;
    if (next == NULL || api->reading)
        return;
    api->reading = true;
    submit(next);
}

static void on_aside_closed(void *ctx)
{
    struct api_aside *aside = ctx;

    aside->left = true;
    if (aside->running)
        return;
    unlink_aside(aside);
    aside_free(aside);
}

/* --- the door --- */

/* True if there is room for one more with a body of LENGTH; else REQUEST is refused. */
static bool has_room(struct api_request *request, size_t length)
{
    const struct api *api = request->api;

    if (api->asides_count < API_ASIDES_MAX && length <= API_BODIES_BYTES_MAX - api->asides_bytes)
        return true;
    api_refuse(request, 503, "%zu requests that take their time are being worked for: try again",
               api->asides_count);
    return false;
}

static void begin(struct api_request *request, struct api_aside *aside)
{
    aside->api = request->api;
    aside->request = *request; /* what it borrows lives as long as the exchange, but for: */
    aside->request.argument = aside->argument;
    check(request->subject.kind == LIFE_EVERYTHING);
    (void)text_copy(aside->argument, sizeof(aside->argument), request->argument); /* of that size */
    link_aside(request->api, aside);
    http_on_close(request->exchange, on_aside_closed, aside);
}

void api_aside_start(struct api_request *request, struct api_aside *aside)
{
    if (!has_room(request, 0)) {
        aside->free(aside);
        return;
    }
    begin(request, aside);
    submit(aside);
}

void api_aside_read(struct api_request *request, struct api_aside *aside)
{
    size_t length;

    (void)http_body(request->exchange, &length); /* only its length, yet */
    if (length > API_SHORT_BODY_MAX && !has_room(request, length)) {
        aside->free(aside);
        return;
    }
    aside->body = http_take_body(request->exchange, &aside->body_length);
    if (length > API_SHORT_BODY_MAX) {
        begin(request, aside);
        start_next(request->api);
        return;
    }
    aside->run(aside);
    aside->answer(request, aside);
    aside_free(aside);
}

void api_asides_close(struct api *api)
{
    /* Their peers are gone; what runs ends by itself and answers nobody. */
    for (struct api_aside *at = api->asides; at != NULL; at = at->next) {
        check(at->running && at->left);
        at->api = NULL;
    }
    api->asides = NULL;
}
