/*
 * Calls of ours.  Each has a stream for itself while it is under way, a used one if there is one;
 * calls wait for the connection in their streams, whose bytes wait for it.
 *
 * A stream is used again only after a whole answer that was no error and that nothing follows.  One
 * whose call was canceled or had no answer in time is reset, so that its answer cannot be
 * another's.
 */
#include "io/rpc.h"

#include "io/rpc/in.h"
#include "io/rpc/msgpack.h"
#include "io/rpc/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_MAX = 2 };

static const char multiplexed = 6; /* each stream begins with a byte of its own */

struct idle {
    struct rpc *rpc;
    struct yamux_stream *stream; /* NULL: none */
};

struct rpc {
    struct rpc_config config; /* without address and TLS, which are not kept */
    struct session *session;  /* owned */
    struct rpc_call *calls;
    unsigned calls_count;
    struct idle idle[IDLE_MAX];
    int64_t sequence;
    bool closed;
};

struct rpc_call {
    struct rpc *rpc;
    struct yamux_stream *stream; /* NULL: it has none, any more */
    int64_t sequence;
    uint64_t mark; /* where it begins in what is sent */
    struct msgpack_reader *reader;
    json_t *header;        /* owned: of the answer; NULL: it has not come */
    struct err failed;     /* before it began */
    struct io_timer timer; /* to be answered; to fail, soon */
    rpc_reply_cb *cb;
    void *ctx;
    struct rpc_call *next, **link;
};

/* --- streams that are used again --- */

static void on_idle_data(void *ctx, const char *bytes, size_t length)
{
    struct idle *idle = ctx;
    (void)bytes;
    (void)length;

    yamux_reset(idle->stream); /* he answers what nobody has asked */
    idle->stream = NULL;
}

static void on_idle_end(void *ctx, enum yamux_end end)
{
    struct idle *idle = ctx;
    (void)end;

    idle->stream = NULL;
}

static void keep(struct rpc *rpc, struct yamux_stream *stream)
{
    static const struct yamux_stream_calls calls = {on_idle_data, NULL, on_idle_end};

    for (size_t i = 0; i < IDLE_MAX; i++) {
        struct idle *idle = &rpc->idle[i];

        if (idle->stream != NULL || !rpc_is_up(rpc))
            continue;
        *idle = (struct idle){rpc, stream};
        yamux_give(stream, &calls, idle);
        return;
    }
    yamux_finish(stream);
}

static struct yamux_stream *take_idle(struct rpc *rpc)
{
    for (size_t i = IDLE_MAX; i-- > 0;) {
        struct yamux_stream *stream = rpc->idle[i].stream;

        rpc->idle[i].stream = NULL;
        if (stream != NULL)
            return stream;
    }
    return NULL;
}

static void on_leaving(void *ctx)
{
    struct yamux_stream *stream;

    while ((stream = take_idle(ctx)) != NULL)
        yamux_finish(stream);
}

/* --- the end of a call --- */

/* Takes CALL, which has no stream any more, out of the session and tells the outcome. */
static void end(struct rpc_call *call, const json_t *reply, const struct err *err)
{
    check(call->stream == NULL);
    io_timer_stop(&call->timer);
    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    call->rpc->calls_count--;
    call->cb(call->ctx, reply, err);
    msgpack_reader_free(call->reader);
    json_decref(call->header);
    free(call);
}

static void fail(struct rpc_call *call, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct rpc_call *call, int code, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    struct err err = {0};
    va_list values;

    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values); /* cut if it has to be */
    va_end(values);
    text_whole(text);
    (void)err_set(&err, code, "%s", text);
    end(call, NULL, &err);
}

static void reset(struct rpc_call *call)
{
    if (call->stream == NULL)
        return;
    yamux_reset(call->stream);
    call->stream = NULL;
    session_wake(call->rpc->session);
}

static void fail_for_the_end(struct rpc_call *call)
{
    const struct err *why = session_why(call->rpc->session);
    bool was_sent = session_has_sent(call->rpc->session, call->mark);

    fail(call, was_sent ? ERR_IO : ERR_AGAIN, "%s",
         why != NULL ? why->text : "the peer has ended the call");
}

static void on_end(void *ctx, enum yamux_end how)
{
    struct rpc_call *call = ctx;
    (void)how;

    call->stream = NULL;
    fail_for_the_end(call);
}

static void on_timer(struct io_timer *timer)
{
    struct rpc_call *call = timer->ctx;

    reset(call);
    if (call->failed.code != 0)
        end(call, NULL, &call->failed);
    else
        fail(call, ERR_TIMEOUT, "no answer in time");
}

/* --- answers --- */

/* False: it is none. */
static bool is_header_of(const struct rpc_call *call, const json_t *header)
{
    const json_t *error = json_object_get(header, "Error"),
                 *sequence = json_object_get(header, "Seq");

    return json_is_integer(sequence) && json_integer_value(sequence) == call->sequence &&
           (error == NULL || json_is_null(error) || json_is_string(error));
}

static void take_reply(struct rpc_call *call, const json_t *reply)
{
    const char *error = json_string_value(json_object_get(call->header, "Error"));
    struct yamux_stream *stream = call->stream;

    call->stream = NULL;
    if (!msgpack_reader_is_empty(call->reader))
        yamux_reset(stream);
    else if (error != NULL && error[0] != '\0')
        yamux_finish(stream);
    else
        keep(call->rpc, stream);
    session_wake(call->rpc->session);
    if (error != NULL && error[0] != '\0')
        fail(call, ERR_REFUSED, "%s", error);
    else
        end(call, reply, NULL);
}

static void on_data(void *ctx, const char *bytes, size_t length)
{
    struct rpc_call *call = ctx;
    struct err err = {0};
    json_t *object = NULL;
    int code = msgpack_reader_add(call->reader, bytes, length);

    if (code == 0)
        code = msgpack_reader_next(call->reader, &object, &err);
    if (code == 0 && call->header == NULL && is_header_of(call, object)) {
        call->header = object;
        object = NULL;
        code = msgpack_reader_next(call->reader, &object, &err);
    } else if (code == 0 && call->header == NULL) {
        code = err_set(&err, ERR_CORRUPT, "the answer has a strange header");
    }
    if (code == 0) {
        take_reply(call, object);
    } else if (code != ERR_AGAIN) {
        reset(call);
        fail(call, ERR_CORRUPT, "the answer is none: %s", err.text);
    }
    json_decref(object);
}

/* --- the door: calls --- */

static int write_call(struct buffer *to, const struct rpc_call *call, const char *method,
                      const json_t *args)
{
    static const char head = RPC_HEAD_CALL;
    json_t *header =
               json_pack("{s:s,s:I}", "ServiceMethod", method, "Seq", (json_int_t)call->sequence),
           *empty = json_object();

    check(header != NULL && empty != NULL);
    check(buffer_append(to, &head, 1, SIZE_MAX));
    int code = msgpack_write(to, RPC_MESSAGE_MAX, header);
    if (code == 0)
        code = msgpack_write(to, RPC_MESSAGE_MAX, args == NULL ? empty : args);
    json_decref(header);
    json_decref(empty);
    return code;
}

/* Gives CALL a stream that begins with BYTES, or continues without the first of them. */
static int start(struct rpc_call *call, const char *bytes, size_t length, struct err *err)
{
    static const struct yamux_stream_calls calls = {on_data, NULL, on_end};
    struct rpc *rpc = call->rpc;
    struct yamux *yamux = session_yamux(rpc->session);

    if (rpc->calls_count > RPC_CALLS_MAX)
        return err_set(err, ERR_LIMIT, "more than %u calls", RPC_CALLS_MAX);
    const struct err *why = session_why(rpc->session);
    if (yamux_is_leaving(yamux))
        return err_set(err, ERR_AGAIN, "%s",
                       why == NULL ? "the session takes no more calls" : why->text);
    call->mark = session_mark(rpc->session);
    call->stream = take_idle(rpc);
    if (call->stream != NULL) {
        yamux_give(call->stream, &calls, call);
        (void)yamux_send(call->stream, bytes + 1, length - 1);
    } else {
        call->stream = yamux_open(yamux, &calls, call, bytes, length);
    }
    if (call->stream == NULL)
        return err_set(err, ERR_LIMIT, "the peer does not keep up with calls");
    session_wake(rpc->session);
    return 0;
}

struct rpc_call *rpc_call(struct rpc *rpc, const char *method, const json_t *args,
                          uint64_t timeout_ms, rpc_reply_cb *cb, void *ctx)
{
    struct rpc_call *call = calloc(1, sizeof(*call));
    struct buffer bytes = {0};

    check(call != NULL);
    check(!rpc->closed && strlen(method) < RPC_METHOD_SIZE);
    *call = (struct rpc_call){.rpc = rpc, .cb = cb, .ctx = ctx, .sequence = ++rpc->sequence};
    call->reader = msgpack_reader_new(RPC_MESSAGE_MAX);
    call->next = rpc->calls;
    call->link = &rpc->calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    rpc->calls = call;
    rpc->calls_count++;
    if (write_call(&bytes, call, method, args) != 0)
        (void)err_set(&call->failed, ERR_LIMIT, "the arguments are too long");
    else
        (void)start(call, buffer_text(&bytes), buffer_length(&bytes), &call->failed);
    buffer_close(&bytes);
    io_timer_start(rpc->config.loop, &call->timer,
                   loop_now_ms() + (call->failed.code == 0 ? timeout_ms : 0), on_timer, call);
    return call;
}

void rpc_cancel(struct rpc_call *call)
{
    reset(call);
    fail(call, ERR_CANCELED, "the call is canceled");
}

/* --- the door: sessions --- */

static void on_opened(void *ctx, struct yamux_stream *stream)
{
    const struct rpc *rpc = ctx;

    rpc_in_begin(&rpc->config, rpc->session, stream);
}

/* Those with streams have ended with them. */
static void on_over(void *ctx, const struct err *why)
{
    struct rpc *rpc = ctx;

    while (rpc->calls != NULL)
        end(rpc->calls, NULL, &rpc->calls->failed);
    if (!rpc->closed)
        rpc->config.ended(rpc->config.ctx, why);
}

static void on_gone(void *ctx)
{
    struct rpc *rpc = ctx;

    check(rpc->calls == NULL);
    free(rpc);
}

struct rpc *rpc_open(const struct rpc_config *config, struct err *err)
{
    struct rpc *rpc = calloc(1, sizeof(*rpc));
    const struct session_calls calls = {on_opened, on_leaving, on_over, on_gone, rpc};

    check(rpc != NULL);
    rpc->config = *config;
    rpc->config.address = NULL;
    rpc->config.tls = NULL;
    rpc->session =
        session_open(config->loop, config->address, config->tls, multiplexed, &calls, err);
    if (rpc->session != NULL)
        return rpc;
    free(rpc);
    return NULL;
}

void rpc_close(struct rpc *rpc)
{
    if (rpc == NULL || rpc->closed)
        return;
    rpc->closed = true;
    while (rpc->calls != NULL) {
        reset(rpc->calls);
        fail(rpc->calls, ERR_CANCELED, "the session is closed");
    }
    session_close(rpc->session);
}

bool rpc_is_up(const struct rpc *rpc)
{
    return session_is_up(rpc->session) && !yamux_is_leaving(session_yamux(rpc->session));
}

bool rpc_is_idle(const struct rpc *rpc)
{
    return rpc->calls == NULL && !yamux_owes(session_yamux(rpc->session));
}
