/*
 * Streams in general: how many there may be, frames; and the log of the daemon as a stream.
 *
 * A monitor that cannot keep up loses lines and is told how many (nomad v1.1.2 command/agent/
 * monitor): the log never waits for a reader.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "io/log.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

/* --- how many --- */

enum {
    STALLED_MS = 10 * 1000, /* somebody may be reading what came, page by page */
    LEFT_MS = 2000,         /* their connections end after their streams, and often many at once */
};

static size_t *count_of(struct api *api, bool follows)
{
    return follows ? &api->followers_count : &api->reads_count;
}

/* What they held is free only within this process: no turn is made that would give it back. */
static void on_left(struct io_timer *timer)
{
    api_trim(timer->ctx);
}

void api_stream_give(struct api_stream *stream)
{
    if (!stream->taken)
        return;
    struct api *api = stream->api;
    size_t *count = count_of(api, stream->follows);

    check(*count > 0);
    --*count;
    stream->taken = false;
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    io_timer_start(api->parts->loop, &api->left_timer, loop_now_ms() + LEFT_MS, on_left, api);
}

/* Lets the one go whose peer has taken nothing for longest; false: all take what they get. */
static bool end_stalled(struct api *api, bool follows)
{
    struct api_stream *longest = NULL;

    for (struct api_stream *at = api->streams; at != NULL; at = at->next) {
        if (at->follows == follows && at->stalled_ms != 0 &&
            (longest == NULL || at->stalled_ms < longest->stalled_ms))
            longest = at;
    }
    if (longest == NULL || loop_now_ms() - longest->stalled_ms < STALLED_MS)
        return false;
    api_stream_give(longest);
    http_disconnect(longest->exchange);
    return true;
}

bool api_stream_take(struct api_request *request, struct api_stream *stream, bool follows)
{
    struct api *api = request->api;
    size_t max = follows ? API_FOLLOWERS_MAX : API_READS_MAX;

    if (*count_of(api, follows) == max && !end_stalled(api, follows)) {
        api_refuse(request, 503, "%zu clients %s files or logs already: %s", max,
                   follows ? "follow" : "read",
                   follows ? "end one, or read without following" : "try again");
        return false;
    }
    *stream = (struct api_stream){
        .api = api,
        .exchange = request->exchange,
        .taken = true,
        .follows = follows,
        .next = api->streams,
        .link = &api->streams,
    };
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    api->streams = stream;
    ++*count_of(api, follows);
    return true;
}

void api_stream_begin(struct http_exchange *exchange, bool plain, void (*on_drain)(void *ctx),
                      void *ctx)
{
    http_stream_begin(exchange, 200, plain ? "text/plain; charset=utf-8" : "application/json",
                      api_safe_headers, API_SAFE_HEADERS, on_drain, ctx);
}

void api_stream_stalls(struct api_stream *stream, bool stalls)
{
    stream->stalled_ms = stalls ? loop_now_ms() : 0;
}

/* --- frames --- */

static json_t *base64(const void *bytes, size_t length)
{
    char *text = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);

    check(text != NULL);
    base64_encode_raw(text, length, bytes);
    json_t *value = json_stringn(text, BASE64_ENCODE_RAW_LENGTH(length));
    free(text);
    return value;
}

json_t *api_format_frame(const struct api_frame *frame)
{
    json_t *to = json_object();

    if (frame->offset != 0)
        check(json_object_set_new(to, "Offset", json_integer((json_int_t)frame->offset)) == 0);
    if (frame->length > 0)
        check(json_object_set_new(to, "Data", base64(frame->data, frame->length)) == 0);
    if (frame->file != NULL)
        check(json_object_set_new(to, "File", api_text(frame->file)) == 0);
    if (frame->event != NULL)
        check(json_object_set_new(to, "FileEvent", json_string(frame->event)) == 0);
    return to;
}

size_t api_frame_write(struct http_exchange *exchange, const struct api_frame *frame)
{
    json_t *json = api_format_frame(frame);
    char *text = json_dumps(json, JSON_COMPACT);

    check(text != NULL);
    size_t queued = http_stream_write(exchange, text, strlen(text));
    free(text);
    json_decref(json);
    return queued;
}

/* --- monitors --- */

enum { HEARTBEAT_MS = 1000 };

struct api_monitor {
    struct api_stream stream;
    struct api *api;
    struct http_exchange *exchange;
    struct io_timer heartbeat;
    struct log_listener listener;
    bool plain, json, full; /* full: the reader lags, lines are lost */
    uint64_t lost;
    struct api_monitor *next, **link;
};

static size_t write_text(struct api_monitor *monitor, const char *text, size_t length)
{
    struct api_frame frame = {.data = text, .length = length};

    if (monitor->plain)
        return http_stream_write(monitor->exchange, text, length);
    return api_frame_write(monitor->exchange, &frame);
}

static void on_entry(void *ctx, const struct log_entry *entry)
{
    struct api_monitor *monitor = ctx;
    char line[LOG_LINE_SIZE + 1];

    if (monitor->full) {
        monitor->lost++;
        return;
    }
    size_t length = log_format(line, entry, monitor->json);
    line[length++] = '\n';
    monitor->full = write_text(monitor, line, length) > API_STREAM_QUEUE_MAX;
    api_stream_stalls(&monitor->stream, monitor->full);
}

static void forget(struct api_monitor *monitor)
{
    io_timer_stop(&monitor->heartbeat);
    log_listen_end(&monitor->listener);
    *monitor->link = monitor->next;
    if (monitor->next != NULL)
        monitor->next->link = monitor->link;
    api_stream_give(&monitor->stream);
    free(monitor);
}

static void on_monitor_closed(void *ctx)
{
    forget(ctx);
}

static void on_monitor_drain(void *ctx)
{
    struct api_monitor *monitor = ctx;
    char line[80];

    if (!monitor->full)
        return;
    monitor->full = false;
    api_stream_stalls(&monitor->stream, false);
    if (monitor->lost == 0)
        return;
    (void)text_format(line, sizeof(line), "[WARN] agent: the reader was too slow: lost=%llu\n",
                      (unsigned long long)monitor->lost); /* it fits */
    monitor->lost = 0;
    (void)write_text(monitor, line, strlen(line)); /* the queue was empty */
}

static void on_heartbeat(struct io_timer *timer)
{
    struct api_monitor *monitor = timer->ctx;
    struct api_frame heartbeat = {0};

    if (!monitor->full)
        (void)api_frame_write(monitor->exchange, &heartbeat); /* few bytes; `full` sees the rest */
    io_timer_start(monitor->api->parts->loop, timer, loop_now_ms() + HEARTBEAT_MS, on_heartbeat,
                   monitor);
}

void api_agent_monitor(struct api_request *request)
{
    const char *text = http_query(request->exchange, "log_level");
    enum log_level level = LOG_INFO;
    bool plain = false, json = false;

    if (text != NULL && text[0] != '\0' && !log_level_from_text(text, &level)) {
        api_refuse(request, 400, "Unknown log level: %.40s", text);
        return;
    }
    if (!api_is_of_this_agent(request) || !api_query_bool(request, "plain", &plain) ||
        !api_query_bool(request, "log_json", &json))
        return;
    struct api *api = request->api;
    struct api_monitor *monitor = calloc(1, sizeof(*monitor));
    check(monitor != NULL);
    if (!api_stream_take(request, &monitor->stream, true)) {
        free(monitor);
        return;
    }
    monitor->api = api;
    monitor->exchange = request->exchange;
    monitor->plain = plain;
    monitor->json = json;
    monitor->next = api->monitors;
    monitor->link = &api->monitors;
    if (monitor->next != NULL)
        monitor->next->link = &monitor->next;
    api->monitors = monitor;
    http_on_close(monitor->exchange, on_monitor_closed, monitor);
    api_stream_begin(monitor->exchange, plain, on_monitor_drain, monitor);
    log_listen(&monitor->listener, level, on_entry, monitor);
    if (!plain)
        io_timer_start(api->parts->loop, &monitor->heartbeat, loop_now_ms() + HEARTBEAT_MS,
                       on_heartbeat, monitor);
}

void api_monitors_close(struct api *api)
{
    while (api->monitors != NULL) {
        struct http_exchange *exchange = api->monitors->exchange;

        http_on_close(exchange, NULL, NULL);
        forget(api->monitors);
        http_stream_end(exchange);
    }
}
