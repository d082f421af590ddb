/*
 * What a peer says over HTTP/2, byte by byte, to a call of gRPC, before it hangs up: the first byte
 * says of which kind the call is.
 *
 * Each call ends exactly once, whole only if its peer has said so, and no message of it is longer
 * than was agreed.
 */
#include "test/fuzz.h"

#include "io/grpc.h"

#include <sys/socket.h>
#include <sys/un.h>

enum { MESSAGE_MAX = 4096, SENT_MAX = 100 << 10, MORE_MAX = 4 };

enum { STREAMS = 1, SENDS_MORE = 2, HOLDS = 4 }; /* in the first byte */

static struct {
    struct loop *loop;
    int fd; /* that listens */
    char path[512];
    struct io_watch watch;
    struct io_timer release;

    const uint8_t *bytes; /* that the peer says */
    size_t length;
    unsigned kind, ends, more;
    struct grpc_request *request;
} all;

static void on_release(struct io_timer *timer)
{
    (void)timer;
    if (all.request != NULL)
        grpc_hold(all.request, false);
}

static bool on_message(void *ctx, const void *message, size_t length)
{
    (void)ctx;
    check(length <= MESSAGE_MAX);
    check(all.ends == 0);
    check(length == 0 || memchr(message, ((const char *)message)[length - 1], length) != NULL);
    if ((all.kind & HOLDS) != 0) {
        grpc_hold(all.request, true);
        io_timer_start(all.loop, &all.release, 0, on_release, NULL);
    }
    return true;
}

static void on_sent(void *ctx)
{
    (void)ctx;
    if (all.more++ < MORE_MAX)
        (void)grpc_send(all.request, "more", 4); /* nobody counts it */
    else if (all.more == MORE_MAX + 1)
        grpc_send_end(all.request);
}

static void on_end(void *ctx, const struct grpc_reply *reply)
{
    (void)ctx;
    all.ends++;
    all.request = NULL;
    check((reply->status == GRPC_OK) == (reply->error.code == 0));
    check(reply->status >= GRPC_OK && reply->status < GRPC_STATUS_COUNT);
    check(text_is_utf8(reply->error.text, strlen(reply->error.text)));
    check(reply->message_length <= MESSAGE_MAX);
    loop_stop(all.loop);
}

static void on_connection(struct io_watch *watch, int events)
{
    int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
    (void)events;

    check(fd >= 0);
    check(send(fd, all.bytes, all.length, MSG_NOSIGNAL) == (ssize_t)all.length);
    close(fd);
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)arguments_count;
    (void)arguments;

    all.loop = loop_new();
    check(text_copy(at.sun_path, sizeof(at.sun_path), fuzz_path(all.path, "http2")));
    (void)unlink(all.path); /* of a former run */
    all.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(all.fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    check(listen(all.fd, 1) == 0);
    io_watch_start(all.loop, &all.watch, all.fd, IO_READABLE, on_connection, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};

    if (size == 0 || size > SENT_MAX)
        return 0;
    all.kind = data[0];
    all.bytes = data + 1;
    all.length = size - 1;
    all.ends = all.more = 0;
    const struct grpc_call call = {
        .unix_socket = all.path,
        .method = "/test.v1.Test/Call",
        .message = "hello",
        .message_length = 5,
        .sends_more = (all.kind & SENDS_MORE) != 0,
        .on_sent = (all.kind & SENDS_MORE) != 0 ? on_sent : NULL,
        .timeout_ms = 60000,
        .answer_bytes_max = MESSAGE_MAX,
        .on_message = (all.kind & STREAMS) != 0 ? on_message : NULL,
        .cb = on_end,
    };
    all.request = grpc_start(all.loop, &call, &err);
    check(all.request != NULL);
    loop_run(all.loop); /* its peer hangs up, so that there is an end */
    check(all.ends == 1);
    io_timer_stop(&all.release);
    return 0;
}
