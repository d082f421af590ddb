/*
 * The gRPC client: a message in a frame, given to the HTTP client, and a deadline kept here.
 *
 * The deadline is kept twice: the peer may give up its work when it hears of it, and we go on when
 * it does not.  Ours counts from the start of the call, waiting for a connection included.
 *
 * Invariant: the callback of a call comes exactly once, never from inside grpc_start, and after it
 * the call does not exist for the caller; HTTP's own callback is what makes it so.
 */
#include "io/grpc.h"

#include "io/http.h"
#include "io/net/grpc_read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum {
    TIMEOUT_MS_MAX = 99999999, /* eight digits of a grpc-timeout */
    GRACE_MS = 60 * 1000,      /* for HTTP's own time limit not to come first */
};

struct grpc_request {
    struct http_request *http;
    struct io_timer deadline;
    uint64_t timeout_ms;
    bool late; /* its deadline has passed */
    void (*cb)(void *ctx, const struct grpc_reply *reply);
    void *ctx;
};

static void on_http(void *ctx, const struct http_reply *http)
{
    struct grpc_request *request = ctx;
    struct grpc_reply reply;
    char detail[GRPC_DETAIL_SIZE];

    io_timer_stop(&request->deadline);
    grpc_read(http, detail, &reply);
    if (request->late) {
        reply.status = GRPC_DEADLINE_EXCEEDED;
        (void)err_set(&reply.error, ERR_TIMEOUT, "it has not answered within %llu ms",
                      (unsigned long long)request->timeout_ms); /* only to be filled */
        reply.error.recoverable = true;
    } else if (reply.error.code == ERR_CANCELED) {
        reply.status = GRPC_CANCELLED;
    }
    request->cb(request->ctx, &reply);
    free(request);
}

static void on_deadline(struct io_timer *timer)
{
    struct grpc_request *request = timer->ctx;

    request->late = true;
    http_cancel(request->http);
}

/* MESSAGE with the five bytes before it; owned by the caller, who wipes it. */
static unsigned char *frame_of(const void *message, size_t length)
{
    unsigned char *frame = malloc(GRPC_PREFIX_BYTES + length);

    check(frame != NULL);
    frame[0] = 0; /* not compressed */
    for (size_t i = 0; i < 4; i++)
        frame[1 + i] = (unsigned char)(length >> (8 * (3 - i)));
    if (length > 0)
        memcpy(frame + GRPC_PREFIX_BYTES, message, length);
    return frame;
}

struct grpc_request *grpc_start(struct loop *loop, const struct grpc_call *call, struct err *err)
{
    char url[256], timeout[32];
    const char *headers[] = {"Content-Type: application/grpc", "TE: trailers", timeout, NULL};

    check(call->cb != NULL);
    check(call->timeout_ms > 0 && call->timeout_ms <= TIMEOUT_MS_MAX);
    check(text_format(url, sizeof(url), "http://localhost%s", call->method));
    check(text_format(timeout, sizeof(timeout), "grpc-timeout: %llum",
                      (unsigned long long)call->timeout_ms));
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
    unsigned char *frame = frame_of(call->message, call->message_length);
    const struct http_call http = {
        .method = "POST",
        .url = url,
        .unix_socket = call->unix_socket,
        .headers = headers,
        .body = frame,
        .body_length = GRPC_PREFIX_BYTES + call->message_length,
        .timeout_ms = call->timeout_ms + GRACE_MS,
        .body_bytes_max = GRPC_PREFIX_BYTES +
                          (call->answer_bytes_max == 0 ? GRPC_MESSAGE_MAX : call->answer_bytes_max),
        .http2 = true,
        .secret = true,
        .cb = on_http,
        .ctx = request};
    request->http = http_start(loop, &http, err);
    explicit_bzero(frame, http.body_length);
    free(frame);
    if (request->http == NULL) {
        free(request);
        return NULL;
    }
    io_timer_start(loop, &request->deadline, loop_now_ms() + call->timeout_ms, on_deadline,
                   request);
    return request;
}

void grpc_cancel(struct grpc_request *request)
{
    http_cancel(request->http);
}
