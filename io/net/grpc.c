/*
 * The gRPC client: messages in frames, given to the client of HTTP/2, and a deadline kept here.
 *
 * The deadline is kept twice: the peer may give up its work when it hears of it, and we go on when
 * it does not.  Ours counts from the start of the call, waiting for a connection included.
 *
 * Invariant: the callback of a call comes exactly once, never from inside grpc_start, and after it
 * the call does not exist for the caller; that of HTTP/2 is what makes it so.
 */
#include "io/grpc.h"

#include "io/net/buffer.h"
#include "io/net/grpc_read.h"
#include "io/net/http2.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

_Static_assert((int)GRPC_CALLS_MAX == (int)HTTP2_CALLS_MAX, "a call has a connection");

enum { TIMEOUT_MS_MAX = 99999999 }; /* eight digits of a grpc-timeout */

struct grpc_request {
    struct http2_request *http;
    struct io_timer deadline;
    uint64_t timeout_ms;
    bool late; /* its deadline has passed */
    size_t message_bytes_max;
    struct buffer stream; /* what has come of a message that is not whole yet */
    struct err broken;    /* why a stream cannot be read on */
    bool (*on_message)(void *ctx, const void *message, size_t length); /* NULL: one answer */
    void (*on_sent)(void *ctx);
    void (*cb)(void *ctx, const struct grpc_reply *reply);
    void *ctx;
};

/* --- streams --- */

static bool break_off(struct grpc_request *request, int code, const char *text)
{
    (void)err_set(&request->broken, code, "%s", text); /* told when HTTP has given up */
    return false;
}

/* Hands over the next whole message; false: there is none, or no more of them are wanted. */
static bool take_message(struct grpc_request *request, bool *ret_more)
{
    const unsigned char *bytes = (const unsigned char *)buffer_text(&request->stream);
    size_t have = buffer_length(&request->stream), length = 0;

    if (have < GRPC_PREFIX_BYTES)
        return false;
    for (size_t i = 1; i < GRPC_PREFIX_BYTES; i++)
        length = length << 8 | bytes[i];
    if (bytes[0] != 0)
        *ret_more =
            break_off(request, ERR_CORRUPT, "it compressed a message, which was not asked for");
    else if (length > request->message_bytes_max)
        *ret_more = break_off(request, ERR_LIMIT, "it announced a message that is too long");
    if (!*ret_more || have - GRPC_PREFIX_BYTES < length)
        return false;
    *ret_more = request->on_message(request->ctx, bytes + GRPC_PREFIX_BYTES, length);
    buffer_drop(&request->stream, GRPC_PREFIX_BYTES + length);
    return *ret_more;
}

/* A message may come in pieces, and a piece may end one and begin the next. */
static bool on_stream(void *ctx, const char *bytes, size_t length)
{
    struct grpc_request *request = ctx;
    size_t bytes_max = GRPC_PREFIX_BYTES + request->message_bytes_max;
    bool more = true;

    while (more && length > 0) {
        size_t room = bytes_max - buffer_length(&request->stream);
        size_t piece = length < room ? length : room;

        check(piece > 0); /* a message that fills it was taken */
        if (!buffer_append(&request->stream, bytes, piece, bytes_max))
            return break_off(request, ERR_LIMIT, "no memory for its message");
        bytes += piece;
        length -= piece;
        while (more && take_message(request, &more))
            continue;
    }
    return more;
}

/* What HTTP has of a stream is its end: an answer without anything in it. */
static struct http2_reply end_of_stream(const struct http2_reply *http)
{
    static const char empty[GRPC_PREFIX_BYTES + 1];
    struct http2_reply end = *http;

    end.body = empty;
    end.body_length = GRPC_PREFIX_BYTES;
    return end;
}

/* --- a call --- */

static void on_http(void *ctx, const struct http2_reply *http)
{
    struct grpc_request *request = ctx;
    struct http2_reply end = end_of_stream(http);
    struct grpc_reply reply;
    struct grpc_words words;

    io_timer_stop(&request->deadline);
    grpc_read(request->on_message != NULL ? &end : http, &words, &reply);
    if (request->broken.code != 0) {
        reply.status = GRPC_INTERNAL;
        reply.error = request->broken;
    } else if (request->late) {
        reply.status = GRPC_DEADLINE_EXCEEDED;
        (void)err_set(&reply.error, ERR_TIMEOUT, "it has not answered within %llu ms",
                      (unsigned long long)request->timeout_ms); /* only to be filled */
        reply.error.recoverable = true;
    } else if (reply.error.code == ERR_CANCELED) {
        reply.status = GRPC_CANCELLED;
    }
    request->cb(request->ctx, &reply);
    buffer_close(&request->stream);
    free(request);
}

static void on_deadline(struct io_timer *timer)
{
    struct grpc_request *request = timer->ctx;

    request->late = true;
    http2_cancel(request->http);
}

/* MESSAGE as it is sent, RET_LENGTH bytes; owned by the caller, who wipes it. */
static unsigned char *frame_of(const void *message, size_t length, size_t *ret_length)
{
    unsigned char *frame = malloc(GRPC_PREFIX_BYTES + length);

    check(frame != NULL);
    frame[0] = 0; /* not compressed */
    for (size_t i = 0; i < 4; i++)
        frame[1 + i] = (unsigned char)(length >> (8 * (3 - i)));
    if (length > 0)
        memcpy(frame + GRPC_PREFIX_BYTES, message, length);
    *ret_length = GRPC_PREFIX_BYTES + length;
    return frame;
}

static void on_sent(void *ctx)
{
    struct grpc_request *request = ctx;

    if (request->on_sent != NULL)
        request->on_sent(request->ctx);
}

struct grpc_request *grpc_start(struct loop *loop, const struct grpc_call *call, struct err *err)
{
    char timeout[32];
    bool endless = call->timeout_ms == 0, streams = call->on_message != NULL;
    const struct http2_header headers[] = {
        {"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-timeout", timeout}};
    size_t bytes_max = call->answer_bytes_max == 0 ? GRPC_MESSAGE_MAX : call->answer_bytes_max;

    check(call->cb != NULL);
    check(implies(endless, streams));
    check(call->timeout_ms <= TIMEOUT_MS_MAX);
    check(text_format(timeout, sizeof(timeout), "%llum", (unsigned long long)call->timeout_ms));
    if (strlen(call->unix_socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        (void)err_set(err, ERR_INVALID, "the path of its socket is longer than 107 bytes");
        return NULL;
    }
    if (call->message_length > GRPC_MESSAGE_MAX) {
        (void)err_set(err, ERR_LIMIT, "the request has %zu bytes, and %d are allowed",
                      call->message_length, GRPC_MESSAGE_MAX);
        return NULL;
    }

    struct grpc_request *request = calloc(1, sizeof(*request));
    check(request != NULL);
    request->cb = call->cb;
    request->ctx = call->ctx;
    request->timeout_ms = call->timeout_ms;
    request->message_bytes_max = bytes_max;
    request->on_message = call->on_message;
    request->on_sent = call->on_sent;
    size_t frame_length;
    unsigned char *frame = frame_of(call->message, call->message_length, &frame_length);
    const struct http2_call http = {.unix_socket = call->unix_socket,
                                    .path = call->method,
                                    .headers = headers,
                                    .headers_count = COUNT_OF(headers) - (endless ? 1 : 0),
                                    .body = frame,
                                    .body_length = frame_length,
                                    .sends_more = call->sends_more,
                                    .on_sent = on_sent,
                                    .body_bytes_max =
                                        streams ? SIZE_MAX : GRPC_PREFIX_BYTES + bytes_max,
                                    .lasts = call->lasts,
                                    .on_data = streams ? on_stream : NULL,
                                    .cb = on_http,
                                    .ctx = request};
    request->http = http2_start(loop, &http);
    explicit_bzero(frame, frame_length);
    free(frame);
    if (!endless)
        io_timer_start(loop, &request->deadline, loop_now_ms() + call->timeout_ms, on_deadline,
                       request);
    return request;
}

size_t grpc_send(struct grpc_request *request, const void *message, size_t length)
{
    size_t frame_length;
    unsigned char *frame = frame_of(message, length, &frame_length);
    size_t waits = http2_send(request->http, frame, frame_length);

    explicit_bzero(frame, frame_length);
    free(frame);
    return waits;
}

void grpc_send_end(struct grpc_request *request)
{
    http2_send_end(request->http);
}

void grpc_hold(struct grpc_request *request, bool hold)
{
    http2_hold(request->http, hold);
}

void grpc_cancel(struct grpc_request *request)
{
    http2_cancel(request->http);
}
