/*
 * Streams in general: how many there may be, frames; and the log of the daemon as a stream.
 *
 * A monitor that cannot keep up loses lines and is told how many (nomad v1.1.2 command/agent/
 * monitor): the log never waits for a reader.
 */
#include "agent/api/format.h"
#include "agent/api/part.h"

#include "io/log.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* --- how many --- */

bool api_stream_take(struct api_request *request)
{
    if (request->api->streams_count == API_STREAMS_MAX) {
        api_refuse(request, 503, "There are %d streams open already: close one, then try again",
                   API_STREAMS_MAX);
        return false;
    }
    request->api->streams_count++;
    return true;
}

void api_stream_give(struct api *api)
{
    check(api->streams_count > 0);
    api->streams_count--;
}

/* --- frames --- */

static json_t *base64(const void *bytes, size_t length)
{
    unsigned char *text = malloc((length + 2) / 3 * 4 + 1);

    check(text != NULL && length <= INT_MAX);
    int written = EVP_EncodeBlock(text, bytes, (int)length);
    json_t *value = json_stringn((const char *)text, (size_t)written);
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
}

static void forget(struct api_monitor *monitor)
{
    struct api *api = monitor->api;

    io_timer_stop(&monitor->heartbeat);
    log_listen_end(&monitor->listener);
    *monitor->link = monitor->next;
    if (monitor->next != NULL)
        monitor->next->link = monitor->link;
    api_stream_give(api);
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
    if (!api_query_bool(request, "plain", &plain) || !api_query_bool(request, "log_json", &json) ||
        !api_stream_take(request))
        return;
    struct api *api = request->api;
    struct api_monitor *monitor = calloc(1, sizeof(*monitor));
    check(monitor != NULL);
    *monitor = (struct api_monitor){
        .api = api,
        .exchange = request->exchange,
        .plain = plain,
        .json = json,
        .next = api->monitors,
        .link = &api->monitors,
    };
    if (monitor->next != NULL)
        monitor->next->link = &monitor->next;
    api->monitors = monitor;
    http_on_close(monitor->exchange, on_monitor_closed, monitor);
    http_stream_begin(monitor->exchange, 200, plain ? "text/plain" : "application/json",
                      on_monitor_drain, monitor);
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
