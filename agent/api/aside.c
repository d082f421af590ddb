/*
 * Requests that threads of the pool work for, while the loop goes on.
 *
 * Bodies with a job are read by the parser beside the daemon, a process for each.  Long ones are
 * read one at a time: what comes of 8 MiB can be thirty times as much, and is given back to the
 * system as soon as its request is answered.  Of short ones no more are read at once than leave
 * threads for others.  Nobody waits for one whose peer has gone.
 */
#include "agent/api/part.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum { TRIM_BYTES_MIN = 256 << 10 }; /* a body worth looking for free memory after it */

static const unsigned readings_max[READINGS] = {[READS_SHORT] = 2, [READS_LONG] = 1};

/* --- lists --- */

static void unlink_aside(struct api_aside *aside)
{
    *aside->link = aside->next;
    if (aside->next != NULL)
        aside->next->link = aside->link;
    aside->api->asides_count -= aside->reading != READS_SHORT;
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
    api->asides_count += aside->reading != READS_SHORT;
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

void api_trim(struct api *api)
{
    struct io_work *trimming = calloc(1, sizeof(*trimming));

    check(trimming != NULL);
    io_work_submit(api->parts->loop, trimming, run_trim, trim_done, NULL);
}

static void start_next(struct api *api, enum api_reads reading);

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
    bool trim = aside->body_length >= TRIM_BYTES_MIN;
    enum api_reads reading = aside->reading;

    if (api != NULL)
        unlink_aside(aside);
    if (api != NULL && !aside->left)
        answer(aside);
    aside_free(aside);
    if (api == NULL)
        return;
    if (reading != READS_NOTHING) {
        api->readings[reading]--;
        start_next(api, reading);
    }
    if (trim)
        api_trim(api);
}

static void submit(struct api_aside *aside)
{
    aside->running = true;
    io_work_submit_ahead(aside->api->parts->loop, &aside->work, run, done, aside);
}

/* The next body, unless as many as may be are being read. */
static void start_next(struct api *api, enum api_reads reading)
{
    struct api_aside *next = api->asides;

    while (next != NULL && (next->running || next->reading != reading))
        next = next->next;
    if (next == NULL || api->readings[reading] == readings_max[reading])
        return;
    api->readings[reading]++;
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
static bool has_room(struct api_request *request, enum api_reads reading, size_t length)
{
    const struct api *api = request->api;

    if ((reading == READS_SHORT || api->asides_count < API_ASIDES_MAX) &&
        length <= API_BODIES_BYTES_MAX - api->asides_bytes)
        return true;
    api_refuse(request, 503, "%zu requests that take their time are being worked for: try again",
               api->asides_count);
    return false;
}

static void begin(struct api_request *request, struct api_aside *aside)
{
    aside->api = request->api;
    aside->parse = request->api->parts->parse;
    aside->parse_path = request->api->parts->config->parse_path;
    aside->request = *request; /* what it borrows lives as long as the exchange, but for: */
    aside->request.argument = aside->argument;
    if (request->route->blocks != BLOCKS_NOT)
        aside->request.index = api_index_of(request); /* what changes from now on is not in it */
    aside->request.subject = (struct life_subject){.kind = LIFE_EVERYTHING};
    (void)text_copy(aside->argument, sizeof(aside->argument), request->argument); /* of that size */
    link_aside(request->api, aside);
    http_on_close(request->exchange, on_aside_closed, aside);
}

void api_aside_start(struct api_request *request, struct api_aside *aside)
{
    if (!has_room(request, READS_NOTHING, 0)) {
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
    aside->reading = length > API_SHORT_BODY_MAX ? READS_LONG : READS_SHORT;
    if (!has_room(request, aside->reading, length)) {
        aside->free(aside);
        return;
    }
    aside->body = http_take_body(request->exchange, &aside->body_length);
    begin(request, aside);
    start_next(request->api, aside->reading);
}

json_t *api_aside_parse(const struct api_aside *aside, enum parse_kind kind, char **ret_refusal,
                        struct err *err)
{
    json_t *value = NULL;
    char *refusal = NULL;

    /* Who is refused hears why, and no more of it. */
    if (aside->parse(aside->parse_path, kind, aside->body, aside->body_length, &value, &refusal,
                     err) == ERR_INVALID)
        (void)err_set(err, ERR_INVALID, "%s", refusal);
    if (ret_refusal != NULL)
        *ret_refusal = refusal;
    else
        free(refusal);
    return value;
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
