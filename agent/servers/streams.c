/*
 * Calls of servers that go on: logs, files that are followed, the monitor, commands in tasks.
 *
 * What the API writes goes out as it comes, in wrappers.  A command's session is a WebSocket there:
 * here its messages go to and fro without frames.
 */
#include "agent/servers/part.h"

#include "base/list.h"
#include "io/websocket.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAYLOAD_MAX = 48 << 10, /* bytes of one wrapper */
    MESSAGE_MAX = 256 << 10,
};

#define POSITION                                                                                   \
    {"Offset", "offset", NULL}, {"Origin", "origin", NULL}, {"PlainText", "plain", NULL},          \
    {                                                                                              \
        "Follow", "follow", "false"                                                                \
    }

static const struct question rows[] = {
    {.method = "FileSystem.Logs",
     .verb = "GET",
     .path = "/v1/client/fs/logs/*",
     .query = {{"Task", "task", NULL}, {"LogType", "type", NULL}, POSITION}},
    {.method = "FileSystem.Stream",
     .verb = "GET",
     .path = "/v1/client/fs/stream/*",
     .query = {{"Path", "path", NULL}, POSITION}},
    {.method = "Agent.Monitor",
     .verb = "GET",
     .path = "/v1/agent/monitor",
     .query = {{"LogLevel", "log_level", NULL},
               {"LogJSON", "log_json", NULL},
               {"PlainText", "plain", NULL}}},
    {.method = "Allocations.Exec",
     .verb = "GET",
     .path = "/v1/client/allocation/*/exec",
     .query = {{"Task", "task", NULL},
               {"Tty", "tty", NULL},
               {"Cmd", "command", NULL},
               {"Action", "action", NULL},
               {"JobID", "job", NULL}}},
};

/* A part of a file, as it is. */
static const struct question part = {
    .verb = "GET",
    .path = "/v1/client/fs/readat/*",
    .query = {{"Path", "path", NULL}, {"Offset", "offset", NULL}, {"Limit", "limit", NULL}}};

struct stream {
    struct rpc_stream *rpc;         /* NULL: the server is gone */
    struct http_exchange *exchange; /* NULL: it is answered */
    int status;
    struct websocket *socket; /* of a command; NULL: none */
    struct {
        char *items;
        size_t count, size;
    } frames;    /* that the session is to have when our codec is done with them */
    bool full;   /* the server takes nothing for the moment */
    bool over;   /* the last was said, or the server has left */
    bool inside; /* of a call that must not free it */
};

/* --- out --- */

static json_t *payload_of(const void *bytes, size_t length)
{
    char *text = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);

    check(text != NULL);
    base64_encode_raw(text, length, bytes);
    json_t *json = json_pack("{s:s#}", "$bytes", text, (int)BASE64_ENCODE_RAW_LENGTH(length));
    check(json != NULL);
    free(text);
    return json;
}

static void send_wrapper(struct stream *stream, json_t *wrapper)
{
    check(wrapper != NULL);
    if (stream->rpc != NULL)
        stream->full = !rpc_stream_send(stream->rpc, wrapper);
    json_decref(wrapper);
}

static void send_payload(struct stream *stream, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length && stream->rpc != NULL; at += PAYLOAD_MAX) {
        size_t left = length - at;
        json_t *payload = payload_of(bytes + at, left < PAYLOAD_MAX ? left : PAYLOAD_MAX);

        send_wrapper(stream, json_pack("{s:n, s:o}", "Error", "Payload", payload));
    }
}

static void send_error(struct stream *stream, const char *text, size_t length, int code)
{
    json_t *said = json_stringn(text, length);
    json_t *message = said != NULL ? said : json_string("no text");

    if (code != 0)
        send_wrapper(stream, json_pack("{s:{s:o, s:i}, s:n}", "Error", "Message", message, "Code",
                                       code, "Payload"));
    else
        send_wrapper(stream, json_pack("{s:{s:o, s:n}, s:n}", "Error", "Message", message, "Code",
                                       "Payload"));
}

/* --- its end --- */

static void free_if_over(struct stream *stream)
{
    if (!stream->over || stream->inside || stream->exchange != NULL)
        return;
    if (stream->rpc != NULL)
        rpc_stream_end(stream->rpc);
    websocket_free(stream->socket);
    free(stream->frames.items);
    free(stream);
}

static void on_rpc_end(void *ctx)
{
    struct stream *stream = ctx;
    struct http_exchange *exchange = stream->exchange;

    stream->rpc = NULL;
    stream->over = true;
    stream->exchange = NULL;
    stream->inside = true;
    if (exchange != NULL)
        http_guest_leave(exchange);
    stream->inside = false;
    free_if_over(stream);
}

/* --- what the API says --- */

static void on_begin(void *ctx, int status)
{
    ((struct stream *)ctx)->status = status;
}

/* What the session is closed with, if it is not how a command ends. */
static void send_closed(struct stream *stream)
{
    char reason[WEBSOCKET_REASON_SIZE];
    uint16_t status = websocket_closed_with(stream->socket, reason);

    if (status != WEBSOCKET_NORMAL && status != 1005 && status != 1006)
        send_error(stream, reason, strlen(reason), 0);
}

static size_t on_bytes(void *ctx, const void *bytes, size_t length)
{
    struct stream *stream = ctx;

    if (stream->status == 101) {
        if (!stream->over && !websocket_take(stream->socket, bytes, length))
            send_closed(stream);
        stream->frames.count = 0; /* answers to pings and goodbyes, which nobody misses */
    } else if (stream->status == 200) {
        send_payload(stream, bytes, length);
    } else {
        send_error(stream, bytes, length, stream->status);
    }
    return stream->full ? length + 1 : 0;
}

static void on_end(void *ctx)
{
    struct stream *stream = ctx;

    stream->exchange = NULL;
    stream->over = true;
    free_if_over(stream);
}

static void on_room(void *ctx)
{
    struct stream *stream = ctx;

    stream->full = false;
    if (stream->exchange != NULL)
        http_guest_drained(stream->exchange);
}

/* --- commands --- */

/* A message of the session, which is what the server is to have. */
static void on_message(void *ctx, const char *bytes, size_t length)
{
    send_payload(ctx, bytes, length);
}

static void on_frame(void *ctx, const void *bytes, size_t length)
{
    struct stream *stream = ctx;

    stream->frames.items =
        list_room(stream->frames.items, &stream->frames.size, stream->frames.count + length, 1);
    memcpy(stream->frames.items + stream->frames.count, bytes, length);
    stream->frames.count += length;
}

static void send_frames(struct stream *stream)
{
    size_t count = stream->frames.count;

    stream->frames.count = 0;
    http_guest_send(stream->exchange, stream->frames.items, count);
}

/* BYTES as the server has them, in base64 as the session has them; a new reference. */
static json_t *data_of(const json_t *bytes)
{
    const json_t *raw = json_object_get(bytes, "$bytes");

    if (raw != NULL)
        return json_incref((json_t *)(uintptr_t)raw);
    if (!json_is_string(bytes))
        return json_string("");
    json_t *payload = payload_of(json_string_value(bytes), json_string_length(bytes));
    json_t *data = json_incref(json_object_get(payload, "$bytes"));
    json_decref(payload);
    return data;
}

static json_t *message_of(const json_t *input)
{
    const json_t *in = json_object_get(input, "Stdin"), *size = json_object_get(input, "TtySize");
    json_t *message = json_object();

    if (json_is_object(in))
        check(json_object_set_new(message, "stdin",
                                  json_pack("{s:o, s:b}", "data",
                                            data_of(json_object_get(in, "Data")), "close",
                                            json_is_true(json_object_get(in, "Close")))) == 0);
    if (json_is_object(size))
        check(json_object_set_new(
                  message, "tty_size",
                  json_pack("{s:I, s:I}", "height",
                            json_integer_value(json_object_get(size, "Height")), "width",
                            json_integer_value(json_object_get(size, "Width")))) == 0);
    return message;
}

static void on_input(void *ctx, const json_t *input)
{
    struct stream *stream = ctx;

    if (stream->socket == NULL || stream->exchange == NULL)
        return;
    json_t *message = message_of(input);
    char *text = json_dumps(message, JSON_COMPACT);
    check(text != NULL);
    stream->inside = true;
    websocket_send(stream->socket, text, strlen(text));
    send_frames(stream);
    stream->inside = false;
    free(text);
    json_decref(message);
    free_if_over(stream);
}

/* --- begin --- */

static const struct question *row_of(const char *method)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (text_equal(rows[i].method, method))
            return &rows[i];
    }
    return NULL;
}

bool streams_know(void *ctx, const char *method)
{
    (void)ctx;
    return row_of(method) != NULL;
}

/* What is limited, and so neither followed nor framed, has a path of its own. */
static const struct question *question_of(const char *method, const json_t *args)
{
    bool plain = json_is_true(json_object_get(args, "PlainText"));
    bool follows = json_is_true(json_object_get(args, "Follow"));
    bool is_part = json_integer_value(json_object_get(args, "Limit")) > 0;

    return text_equal(method, "FileSystem.Stream") && plain && !follows && is_part ? &part
                                                                                   : row_of(method);
}

void streams_begin(struct api *api, struct rpc_stream *rpc, const char *method, const json_t *args)
{
    const struct question *question = question_of(method, args);
    struct stream *stream = calloc(1, sizeof(*stream));
    char key[WEBSOCKET_KEY_SIZE];

    check(stream != NULL);
    check(question != NULL); /* as streams_know says */
    const struct rpc_stream_calls calls = {
        .on_input = on_input, .on_room = on_room, .on_end = on_rpc_end, .ctx = stream};
    const struct http_guest guest = {
        .on_begin = on_begin, .on_bytes = on_bytes, .on_end = on_end, .ctx = stream};
    const struct websocket_calls socket = {
        .send = on_frame, .on_message = on_message, .ctx = stream};
    websocket_key(key);
    const struct http_pair headers[] = {{"upgrade", "websocket"},
                                        {"connection", "upgrade"},
                                        {"sec-websocket-version", "13"},
                                        {"sec-websocket-key", key}};

    stream->rpc = rpc;
    rpc_stream_take(rpc, &calls);
    if (text_equal(method, "Allocations.Exec"))
        stream->socket = websocket_new(true, MESSAGE_MAX, &socket);
    stream->exchange = question_begin(question, args, headers, COUNT_OF(headers), &guest);
    stream->inside = true;
    api_serve(api, stream->exchange);
    stream->inside = false;
    free_if_over(stream);
}
