/*
 * A streaming call: {"Method"}, {"Error"} in answer, arguments, then objects of ours and perhaps of
 * the peer's until one of us ends.  Its end is a FIN, or a reset where something is broken.
 */
#include "io/rpc/stream.h"

#include "io/rpc/msgpack.h"

#include <stdlib.h>
#include <string.h>

struct rpc_stream {
    const struct rpc_config *config;
    struct session *session;
    struct yamux_stream *yamux;
    struct msgpack_reader *reader;
    struct rpc_stream_calls calls;
    char method[RPC_METHOD_SIZE];
    enum { AWAITS_METHOD, AWAITS_ARGS, OPENED } state;
    bool taken, held, broken;
    unsigned busy;         /* reading, on the stack */
    bool gone;             /* to be freed when it is not */
    struct io_timer timer; /* to have begun; to go on, soon */
};

static void release(struct rpc_stream *stream)
{
    io_timer_stop(&stream->timer);
    stream->gone = true;
    if (stream->busy > 0)
        return;
    msgpack_reader_free(stream->reader);
    free(stream);
}

/* Ends it from our side, and tells who has it. */
static void reset(struct rpc_stream *stream)
{
    yamux_reset(stream->yamux);
    session_wake(stream->session);
    if (stream->taken)
        stream->calls.on_end(stream->calls.ctx);
    release(stream);
}

static size_t send_object(struct rpc_stream *stream, const json_t *object)
{
    struct buffer bytes = {0};
    size_t waiting = RPC_STREAM_MAX + 1;

    if (msgpack_write(&bytes, RPC_STREAM_MAX, object) == 0)
        waiting = yamux_send(stream->yamux, buffer_text(&bytes), buffer_length(&bytes));
    buffer_close(&bytes);
    session_wake(stream->session);
    return waiting;
}

static void acknowledge(struct rpc_stream *stream, const char *error)
{
    json_t *answer = json_pack("{s:s}", "Error", error);

    check(answer != NULL);
    (void)send_object(stream, answer);
    json_decref(answer);
}

/* False: it is none, or is not spoken here. */
static bool take_method(struct rpc_stream *stream, const json_t *object)
{
    const char *method = json_string_value(json_object_get(object, "Method"));
    const struct rpc_config *config = stream->config;

    if (method == NULL || !text_copy(stream->method, sizeof(stream->method), method))
        return false;
    if (config->streams == NULL || !config->streams(config->ctx, method)) {
        char text[RPC_METHOD_SIZE + 32];

        (void)text_format(text, sizeof(text), "Unknown rpc method: \"%s\"", method);
        acknowledge(stream, text);
        yamux_finish(stream->yamux);
        release(stream);
        return true;
    }
    acknowledge(stream, "");
    stream->state = AWAITS_ARGS;
    return true;
}

static bool take_args(struct rpc_stream *stream, const json_t *object)
{
    if (!json_is_object(object))
        return false;
    io_timer_stop(&stream->timer);
    stream->state = OPENED;
    stream->config->opened(stream->config->ctx, stream, stream->method, object);
    check(stream->gone || stream->taken);
    return true;
}

static bool take(struct rpc_stream *stream, const json_t *object)
{
    switch (stream->state) {
    case AWAITS_METHOD:
        return take_method(stream, object);
    case AWAITS_ARGS:
        return take_args(stream, object);
    case OPENED:
        if (stream->calls.on_input != NULL)
            stream->calls.on_input(stream->calls.ctx, object);
        return true;
    }
    unreachable("a stream is in one of these states");
}

/* Reads what is whole; the stream may be gone afterwards. */
static void read_on(struct rpc_stream *stream)
{
    struct err err = {0};
    json_t *object;
    int code = 0;
    bool good = true;

    stream->busy++;
    while (good && !stream->gone && !stream->held &&
           (code = msgpack_reader_next(stream->reader, &object, &err)) == 0) {
        good = take(stream, object);
        json_decref(object);
    }
    stream->busy--;
    if (stream->gone)
        release(stream);
    else if (!good || (code != 0 && code != ERR_AGAIN))
        reset(stream);
}

static void on_data(void *ctx, const char *bytes, size_t length)
{
    struct rpc_stream *stream = ctx;

    if (msgpack_reader_add(stream->reader, bytes, length) != 0)
        reset(stream);
    else
        read_on(stream);
}

static void on_room(void *ctx)
{
    const struct rpc_stream *stream = ctx;

    if (stream->calls.on_room != NULL)
        stream->calls.on_room(stream->calls.ctx);
}

static void on_end(void *ctx, enum yamux_end end)
{
    struct rpc_stream *stream = ctx;
    (void)end;

    if (stream->taken)
        stream->calls.on_end(stream->calls.ctx);
    release(stream);
}

static void on_too_late(struct io_timer *timer)
{
    reset(timer->ctx);
}

static void on_soon(struct io_timer *timer)
{
    struct rpc_stream *stream = timer->ctx;

    if (stream->broken) {
        reset(stream);
        return;
    }
    if (stream->held)
        return;
    yamux_hold(stream->yamux, false);
    session_wake(stream->session);
    read_on(stream);
}

static void come_back(struct rpc_stream *stream)
{
    io_timer_start(session_loop(stream->session), &stream->timer, loop_now_ms(), on_soon, stream);
}

void rpc_stream_begin(const struct rpc_config *config, struct session *session,
                      struct yamux_stream *yamux, const char *bytes, size_t length)
{
    static const struct yamux_stream_calls calls = {on_data, on_room, on_end};
    struct rpc_stream *stream = calloc(1, sizeof(*stream));

    check(stream != NULL);
    stream->config = config;
    stream->session = session;
    stream->yamux = yamux;
    stream->reader = msgpack_reader_new(RPC_ARGS_MAX);
    yamux_give(yamux, &calls, stream);
    io_timer_start(session_loop(session), &stream->timer, loop_now_ms() + RPC_BEGIN_MS, on_too_late,
                   stream);
    on_data(stream, bytes, length);
}

/* --- the door --- */

void rpc_stream_take(struct rpc_stream *stream, const struct rpc_stream_calls *calls)
{
    stream->calls = *calls;
    stream->taken = true;
}

bool rpc_stream_send(struct rpc_stream *stream, const json_t *object)
{
    if (stream->broken)
        return false;
    size_t waiting = send_object(stream, object);
    if (waiting > RPC_STREAM_MAX) {
        stream->broken = true;
        come_back(stream);
    } else if (waiting >= RPC_STREAM_FULL) {
        yamux_tell_room(stream->yamux, RPC_STREAM_FULL / 2);
    }
    return waiting < RPC_STREAM_FULL;
}

void rpc_stream_hold(struct rpc_stream *stream, bool held)
{
    if (stream->held == held)
        return;
    stream->held = held;
    if (held)
        yamux_hold(stream->yamux, true);
    else
        come_back(stream);
}

void rpc_stream_end(struct rpc_stream *stream)
{
    yamux_finish(stream->yamux);
    session_wake(stream->session);
    release(stream);
}
