/*
 * What the peer opens a stream for: calls, one after the other, each a header and arguments, or one
 * streaming call (stream.c).  While a call waits for its answer its stream is not read.
 *
 * A call outlives its stream, since somebody has to answer it; then the answer goes nowhere.
 */
#include "io/rpc/in.h"

#include "io/rpc/msgpack.h"
#include "io/rpc/stream.h"

#include <stdlib.h>
#include <string.h>

/* A stream of the peer's with calls. */
struct incoming {
    const struct rpc_config *config;
    struct session *session;
    struct yamux_stream *stream;
    struct msgpack_reader *reader;
    json_t *header;            /* owned; NULL: awaited */
    struct rpc_called *called; /* under way; NULL: none */
    bool headed;               /* its first byte has come */
    unsigned busy;             /* reading, on the stack */
    bool gone;                 /* to be freed when it is not */
    struct io_timer timer;     /* to have begun; to go on, soon */
};

struct rpc_called {
    struct incoming *incoming; /* NULL: the peer does not wait any more */
    json_t *header;            /* owned: names and numbers the answer */
};

static void release(struct incoming *incoming)
{
    io_timer_stop(&incoming->timer);
    incoming->gone = true;
    if (incoming->called != NULL)
        incoming->called->incoming = NULL;
    incoming->called = NULL;
    if (incoming->busy > 0)
        return;
    msgpack_reader_free(incoming->reader);
    json_decref(incoming->header);
    free(incoming);
}

static void reset(struct incoming *incoming)
{
    yamux_reset(incoming->stream);
    session_wake(incoming->session);
    release(incoming);
}

static const char *method_of(const json_t *header)
{
    return json_string_value(json_object_get(header, "ServiceMethod"));
}

static bool is_header(const json_t *object)
{
    const char *method = method_of(object);

    return method != NULL && strlen(method) < RPC_METHOD_SIZE &&
           json_is_integer(json_object_get(object, "Seq"));
}

static void call(struct incoming *incoming, const json_t *args)
{
    const struct rpc_config *config = incoming->config;
    struct rpc_called *called = calloc(1, sizeof(*called));

    check(called != NULL);
    io_timer_stop(&incoming->timer);
    called->incoming = incoming;
    called->header = incoming->header;
    incoming->header = NULL;
    incoming->called = called;
    yamux_hold(incoming->stream, true);
    if (config->called == NULL) {
        rpc_refuse_unknown(called);
        return;
    }
    json_t *header = json_incref(called->header); /* holds the name, whoever answers first */
    config->called(config->ctx, called, method_of(header), args);
    json_decref(header);
}

/* False: it is not what has to come. */
static bool take(struct incoming *incoming, json_t *object)
{
    if (incoming->header == NULL && !is_header(object))
        return false;
    if (incoming->header == NULL)
        incoming->header = json_incref(object);
    else
        call(incoming, object);
    return true;
}

static void read_on(struct incoming *incoming)
{
    struct err err = {0};
    json_t *object;
    int code = 0;
    bool good = true;

    incoming->busy++;
    while (good && !incoming->gone && incoming->called == NULL &&
           (code = msgpack_reader_next(incoming->reader, &object, &err)) == 0) {
        good = take(incoming, object);
        json_decref(object);
    }
    incoming->busy--;
    if (incoming->gone)
        release(incoming);
    else if (!good || (code != 0 && code != ERR_AGAIN))
        reset(incoming);
}

static void begin_stream(struct incoming *incoming, const char *bytes, size_t length)
{
    const struct rpc_config *config = incoming->config;
    struct session *session = incoming->session;
    struct yamux_stream *stream = incoming->stream;

    release(incoming);
    rpc_stream_begin(config, session, stream, bytes, length);
}

static void on_data(void *ctx, const char *bytes, size_t length)
{
    struct incoming *incoming = ctx;
    bool is_head = !incoming->headed;

    if (is_head && bytes[0] == RPC_HEAD_STREAM) {
        begin_stream(incoming, bytes + 1, length - 1);
        return;
    }
    if (is_head && bytes[0] != RPC_HEAD_CALL) {
        reset(incoming);
        return;
    }
    incoming->headed = true;
    if (msgpack_reader_add(incoming->reader, bytes + is_head, length - is_head) != 0)
        reset(incoming);
    else
        read_on(incoming);
}

static void on_end(void *ctx, enum yamux_end end)
{
    (void)end;
    release(ctx);
}

static void on_too_late(struct io_timer *timer)
{
    reset(timer->ctx);
}

void rpc_in_begin(const struct rpc_config *config, struct session *session,
                  struct yamux_stream *stream)
{
    static const struct yamux_stream_calls calls = {on_data, NULL, on_end};
    struct incoming *incoming = calloc(1, sizeof(*incoming));

    check(incoming != NULL);
    incoming->config = config;
    incoming->session = session;
    incoming->stream = stream;
    incoming->reader = msgpack_reader_new(RPC_ARGS_MAX);
    yamux_give(stream, &calls, incoming);
    io_timer_start(session_loop(session), &incoming->timer, loop_now_ms() + RPC_BEGIN_MS,
                   on_too_late, incoming);
}

/* --- answers --- */

static void on_soon(struct io_timer *timer)
{
    struct incoming *incoming = timer->ctx;

    yamux_hold(incoming->stream, false);
    session_wake(incoming->session);
    read_on(incoming);
}

/* The header that answers CALLED's, with ERROR. */
static json_t *answer_of(const struct rpc_called *called, const char *error)
{
    json_t *header = json_pack("{s:O,s:O,s:s}", "ServiceMethod",
                               json_object_get(called->header, "ServiceMethod"), "Seq",
                               json_object_get(called->header, "Seq"), "Error", error);

    check(header != NULL);
    return header;
}

static int write_answer(struct buffer *to, const json_t *header, const json_t *reply)
{
    json_t *empty = json_object();
    int code = msgpack_write(to, RPC_MESSAGE_MAX, header);

    check(empty != NULL);
    if (code == 0)
        code = msgpack_write(to, RPC_MESSAGE_MAX, reply == NULL ? empty : reply);
    json_decref(empty);
    return code;
}

/* False: it cannot be written. */
static bool send_answer(struct rpc_called *called, const char *error, const json_t *reply)
{
    struct incoming *incoming = called->incoming;
    struct buffer bytes = {0};
    json_t *header = answer_of(called, error);
    int code = write_answer(&bytes, header, reply);

    json_decref(header);
    if (code == 0) {
        (void)yamux_send(incoming->stream, buffer_text(&bytes), buffer_length(&bytes));
        session_wake(incoming->session);
    }
    buffer_close(&bytes);
    return code == 0;
}

static void forget(struct rpc_called *called)
{
    json_decref(called->header);
    free(called);
}

void rpc_answer(struct rpc_called *called, const json_t *reply)
{
    struct incoming *incoming = called->incoming;

    if (incoming == NULL) {
        forget(called);
    } else if (!send_answer(called, "", reply)) {
        rpc_refuse(called, "the answer is too long");
    } else {
        incoming->called = NULL;
        forget(called);
        io_timer_start(session_loop(incoming->session), &incoming->timer, loop_now_ms(), on_soon,
                       incoming);
    }
}

void rpc_refuse(struct rpc_called *called, const char *text)
{
    struct incoming *incoming = called->incoming;

    check(text[0] != '\0');
    if (incoming != NULL) {
        check(send_answer(called, text, NULL));
        yamux_finish(incoming->stream);
        release(incoming);
    }
    forget(called);
}

void rpc_refuse_unknown(struct rpc_called *called)
{
    char text[RPC_METHOD_SIZE + 32];

    (void)text_format(text, sizeof(text), "rpc: can't find method %s", method_of(called->header));
    rpc_refuse(called, text);
}
