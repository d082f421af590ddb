/*
 * gRPC calls against a peer that says exactly what the test wants, byte by byte: every way a call
 * can end, each with its own error, exactly one callback, nothing left open.
 *
 * What real servers say is test/csi's.
 */
#include "io/grpc.h"
#include "test/io/net/http_peer.h"

#include "io/net/grpc_read.h"

enum { CONNECTIONS = 400, BYTES = 1 << 17 };

struct raw_peer;

struct connection {
    struct raw_peer *peer;
    struct io_watch watch;
    size_t got;
    bool asked; /* the whole request has come */
    unsigned char bytes[2048];
};

struct raw_peer {
    struct scratch *scratch;
    struct loop *loop;
    char path[PATH_SIZE];
    int fd;
    struct io_watch watch;
    struct connection connections[CONNECTIONS];
    unsigned count, asked;
    char *answer;
    size_t answer_length;
    bool closes;       /* after the answer */
    bool is_hasty;     /* it answers before the request has ended */
    unsigned hang_ups; /* of the client */
    unsigned awaited;
    unsigned replies;
    struct grpc_reply last;
    char last_detail[GRPC_DETAIL_SIZE], last_message[64];
    unsigned descriptors;
};

/* --- what it says --- */

static void say(struct raw_peer *peer, const void *bytes, size_t length)
{
    assert_true(peer->answer_length + length <= BYTES);
    memcpy(peer->answer + peer->answer_length, bytes, length);
    peer->answer_length += length;
}

static void say_frame(struct raw_peer *peer, uint8_t type, uint8_t flags, uint32_t stream,
                      const void *payload, size_t length)
{
    const unsigned char head[] = {(unsigned char)(length >> 16),
                                  (unsigned char)(length >> 8),
                                  (unsigned char)length,
                                  type,
                                  flags,
                                  0,
                                  0,
                                  0,
                                  (unsigned char)stream};

    say(peer, head, sizeof(head));
    say(peer, payload, length);
}

enum { DATA, HEADERS, RST_STREAM = 3, SETTINGS, GOAWAY = 7 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

static void say_settings(struct raw_peer *peer)
{
    say_frame(peer, SETTINGS, 0, 0, "", 0);
    say_frame(peer, SETTINGS, ACK, 0, "", 0);
}

/* Lines "name: value", the status of HTTP among them; never compressed. */
static void say_headers(struct raw_peer *peer, uint8_t flags, const char *const *lines)
{
    char block[8192];
    size_t used = 0;

    for (; *lines != NULL; lines++) {
        const char *colon = strstr(*lines, ": ");
        size_t name = (size_t)(colon - *lines), value = strlen(colon + 2);

        block[used++] = 0; /* a literal that is not kept */
        block[used++] = (char)name;
        memcpy(block + used, *lines, name);
        used += name;
        if (value < 127) {
            block[used++] = (char)value;
        } else { /* an integer with a prefix of seven bits: RFC 7541, 5.1 */
            size_t left = value - 127;
            block[used++] = 127;
            for (; left >= 128; left /= 128)
                block[used++] = (char)(left % 128 + 128);
            block[used++] = (char)left;
        }
        memcpy(block + used, colon + 2, value);
        used += value;
        assert_true(used < sizeof(block) - 4096);
    }
    say_frame(peer, HEADERS, (uint8_t)(END_HEADERS | flags), 1, block, used);
}

#define LINES(...) ((const char *[]){__VA_ARGS__, NULL})

static void say_begin(struct raw_peer *peer)
{
    say_settings(peer);
    say_headers(peer, 0, LINES(":status: 200", "content-type: application/grpc"));
}

static void say_error(struct raw_peer *peer, const char *status, const char *message)
{
    say_settings(peer);
    say_headers(peer, END_STREAM,
                LINES(":status: 200", "content-type: application/grpc", status, message));
}

static void say_body_and_ok(struct raw_peer *peer, const void *body, size_t length)
{
    say_begin(peer);
    say_frame(peer, DATA, 0, 1, body, length);
    say_headers(peer, END_STREAM, LINES("grpc-status: 0"));
}

/* --- how it listens --- */

/* True if a DATA frame, one that ends the request, is among what has come. */
static bool is_whole(const struct connection *connection)
{
    bool is_hasty = connection->peer->is_hasty;

    for (size_t at = 24; at + 9 <= connection->got;) {
        const unsigned char *head = connection->bytes + at;
        size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

        at += 9 + length;
        if (head[3] == DATA && (is_hasty || (head[4] & END_STREAM) != 0) && at <= connection->got)
            return true;
    }
    return false;
}

static void hang_up(struct connection *connection)
{
    if (connection->watch.fd < 0)
        return;
    io_watch_stop(&connection->watch);
    close(connection->watch.fd);
    connection->watch.fd = -1;
}

static void on_bytes(struct io_watch *watch, int events)
{
    struct connection *connection = watch->ctx;
    struct raw_peer *peer = connection->peer;
    (void)events;

    ssize_t got = recv(watch->fd, connection->bytes + connection->got,
                       sizeof(connection->bytes) - connection->got, MSG_DONTWAIT);
    if (got <= 0) {
        hang_up(connection);
        peer->hang_ups++;
        if (peer->awaited == 0)
            loop_stop(peer->loop);
        return;
    }
    connection->got += (size_t)got;
    if (connection->asked || !is_whole(connection))
        return;
    connection->asked = true;
    peer->asked++;
    (void)send(watch->fd, peer->answer, peer->answer_length, MSG_NOSIGNAL);
    if (peer->closes)
        hang_up(connection);
    if (peer->awaited == 0)
        loop_stop(peer->loop);
}

static void on_connection(struct io_watch *watch, int events)
{
    struct raw_peer *peer = watch->ctx;
    struct connection *connection = &peer->connections[peer->count++];
    (void)events;

    assert_true(peer->count < CONNECTIONS);
    int fd = accept4(peer->fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    *connection = (struct connection){.peer = peer};
    io_watch_start(peer->loop, &connection->watch, fd, IO_READABLE, on_bytes, connection);
}

/* --- calls --- */

static void on_grpc(void *ctx, const struct grpc_reply *reply)
{
    struct raw_peer *peer = ctx;

    peer->replies++;
    peer->last = *reply;
    (void)text_copy(peer->last_detail, sizeof(peer->last_detail), reply->detail);
    peer->last_message[0] = '\0';
    if (reply->message != NULL)
        memcpy(peer->last_message, reply->message,
               reply->message_length < 64 ? reply->message_length : 64);
    assert_true(peer->awaited > 0);
    if (--peer->awaited == 0)
        loop_stop(peer->loop);
}

static struct grpc_request *call(struct raw_peer *peer, const char *message, uint64_t timeout_ms)
{
    struct err err = {0};
    const struct grpc_call call = {.unix_socket = peer->path,
                                   .method = "/test.v1.Test/Call",
                                   .message = message,
                                   .message_length = strlen(message),
                                   .timeout_ms = timeout_ms,
                                   .answer_bytes_max = 60000,
                                   .cb = on_grpc,
                                   .ctx = peer};
    struct grpc_request *request = grpc_start(peer->loop, &call, &err);

    if (request == NULL)
        fail_msg("%s", err.text);
    peer->awaited++;
    return request;
}

static void call_and_wait(struct raw_peer *peer)
{
    unsigned before = peer->replies;

    (void)call(peer, "hello", 20000);
    loop_run(peer->loop);
    assert_int_equal(peer->replies, before + 1);
    peer->answer_length = 0;
    peer->closes = false;
}

#define assert_failed(peer, status_wanted, code_wanted, answered_wanted, text_wanted)              \
    do {                                                                                           \
        assert_string_equal((peer)->last.error.text, text_wanted);                                 \
        assert_int_equal((peer)->last.status, status_wanted);                                      \
        assert_int_equal((peer)->last.error.code, code_wanted);                                    \
        assert_int_equal((peer)->last.answered, answered_wanted);                                  \
        assert_null((peer)->last.message);                                                         \
    } while (0)

/* --- tests --- */

static void test_answer_and_request_are_what_grpc_says(void **state)
{
    struct raw_peer *peer = *state;

    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    call_and_wait(peer);
    assert_int_equal(peer->last.status, GRPC_OK);
    assert_int_equal(peer->last.error.code, 0);
    assert_true(peer->last.answered && peer->last.sent);
    assert_int_equal(peer->last.message_length, 3);
    assert_string_equal(peer->last_message, "abc");

    const unsigned char *bytes = peer->connections[0].bytes;
    assert_memory_equal(bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    assert_non_null(memmem(bytes, peer->connections[0].got, "\0\0\0\0\5hello", 10));
}

static void test_message_may_be_empty_and_come_in_pieces(void **state)
{
    struct raw_peer *peer = *state;

    say_body_and_ok(peer, "\0\0\0\0\0", 5);
    call_and_wait(peer);
    assert_int_equal(peer->last.status, GRPC_OK);
    assert_non_null(peer->last.message);
    assert_int_equal(peer->last.message_length, 0);

    say_begin(peer);
    say_frame(peer, DATA, 0, 1, "\0\0", 2);
    say_frame(peer, DATA, 0, 1, "\0\0\5ab", 5);
    say_frame(peer, DATA, 0, 1, "cde", 3);
    say_headers(peer, END_STREAM, LINES("grpc-status: 0", "grpc-message: fine"));
    call_and_wait(peer);
    assert_int_equal(peer->last.status, GRPC_OK);
    assert_string_equal(peer->last_message, "abcde");
}

/* --- messages that follow --- */

struct sending {
    struct raw_peer *peer;
    struct grpc_request *request;
    unsigned sent, heard; /* times that all was on its way; messages */
};

static bool on_one(void *ctx, const void *message, size_t length)
{
    struct sending *sending = ctx;

    assert_int_equal(length, 3);
    assert_memory_equal(message, "abc", 3);
    sending->heard++;
    return true;
}

static bool on_one_and_end(void *ctx, const void *message, size_t length)
{
    struct sending *sending = ctx;

    grpc_send_end(sending->request);
    return on_one(ctx, message, length);
}

static void on_sending_end(void *ctx, const struct grpc_reply *reply)
{
    struct sending *sending = ctx;

    on_grpc(sending->peer, reply);
}

/* The second one when the first is on its way, and the end when that is. */
static void on_sent(void *ctx)
{
    struct sending *sending = ctx;

    sending->sent++;
    if (sending->sent == 1)
        assert_int_equal(grpc_send(sending->request, "you", 3), 8);
    else
        grpc_send_end(sending->request);
}

static void test_messages_follow_until_their_end_is_said(void **state)
{
    struct raw_peer *peer = *state;
    struct sending sending = {.peer = peer};
    struct err err = {0};
    const struct grpc_call call = {.unix_socket = peer->path,
                                   .method = "/test.v1.Test/Call",
                                   .message = "hello",
                                   .message_length = 5,
                                   .sends_more = true,
                                   .on_sent = on_sent,
                                   .on_message = on_one,
                                   .cb = on_sending_end,
                                   .ctx = &sending};

    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    sending.request = grpc_start(peer->loop, &call, &err);
    assert_non_null(sending.request);
    peer->awaited++;
    loop_run(peer->loop);
    assert_int_equal(peer->last.status, GRPC_OK);
    assert_int_equal(sending.sent, 2);
    assert_int_equal(sending.heard, 1);
    const struct connection *connection = &peer->connections[0];
    assert_non_null(memmem(connection->bytes, connection->got, "\0\0\0\0\5hello", 10));
    assert_non_null(memmem(connection->bytes, connection->got, "\0\0\0\0\3you", 8));
}

/* As of a command that does not wait for the end of its input. */
static void test_answer_ends_a_call_that_would_send_more(void **state)
{
    struct raw_peer *peer = *state;
    struct sending sending = {.peer = peer, .sent = 7};
    struct err err = {0};
    struct grpc_call call = {.unix_socket = peer->path,
                             .method = "/test.v1.Test/Call",
                             .message = "hello",
                             .message_length = 5,
                             .sends_more = true,
                             .on_message = on_one,
                             .cb = on_sending_end,
                             .ctx = &sending};

    peer->is_hasty = true;
    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    say_frame(peer, RST_STREAM, 0, 1, "\0\0\0\0", 4); /* no error: nothing more is read */
    for (int i = 0; i < 2; i++) {
        sending.request = grpc_start(peer->loop, &call, &err);
        assert_non_null(sending.request);
        peer->awaited++;
        loop_run(peer->loop);
        if (peer->last.status != GRPC_OK)
            fail_msg("%d: %s", i, peer->last.error.text);
        assert_int_equal(sending.heard, i + 1);
        call.on_message = on_one_and_end;
    }
    peer->answer_length = 0;
    say_error(peer, "grpc-status: 5", "grpc-message: gone");
    say_frame(peer, RST_STREAM, 0, 1, "\0\0\0\0", 4);
    sending.request = grpc_start(peer->loop, &call, &err);
    assert_non_null(sending.request);
    peer->awaited++;
    loop_run(peer->loop);
    assert_int_equal(peer->last.status, GRPC_NOT_FOUND);
    peer->is_hasty = false;
    peer->answer_length = 0;
}

static bool on_one_and_hold(void *ctx, const void *message, size_t length)
{
    struct sending *sending = ctx;

    if (sending->heard == 0) {
        grpc_hold(sending->request, true);
        loop_stop(sending->peer->loop);
    }
    return on_one(ctx, message, length);
}

static void on_while(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

/* A peer that says more than is wanted waits, and is not stored. */
static void test_stream_that_is_held_is_not_read(void **state)
{
    enum { FRAMES = 6, MESSAGES = 2000, MESSAGE = 8, HEARD_MAX = 2 * MESSAGES };
    struct raw_peer *peer = *state;
    struct sending sending = {.peer = peer};
    struct io_timer timer = {0};
    struct err err = {0};
    const struct grpc_call call = {.unix_socket = peer->path,
                                   .method = "/test.v1.Test/Call",
                                   .message = "hello",
                                   .message_length = 5,
                                   .on_message = on_one_and_hold,
                                   .cb = on_sending_end,
                                   .ctx = &sending};
    char messages[MESSAGES * MESSAGE];

    for (size_t i = 0; i < MESSAGES; i++)
        memcpy(messages + i * MESSAGE, "\0\0\0\0\3abc", MESSAGE);
    say_begin(peer);
    for (int i = 0; i < FRAMES; i++)
        say_frame(peer, DATA, 0, 1, messages, sizeof(messages));
    say_headers(peer, END_STREAM, LINES("grpc-status: 0"));
    sending.request = grpc_start(peer->loop, &call, &err);
    assert_non_null(sending.request);
    peer->awaited++;
    loop_run(peer->loop);
    unsigned heard = sending.heard;
    assert_in_range(heard, 1, HEARD_MAX);
    io_timer_start(peer->loop, &timer, loop_now_ms() + 20, on_while, peer->loop);
    loop_run(peer->loop); /* in which it would have been read */
    assert_int_equal(sending.heard, heard);
    assert_int_equal(peer->replies, 0);
    grpc_hold(sending.request, false);
    loop_run(peer->loop);
    assert_int_equal(sending.heard, FRAMES * MESSAGES);
    assert_int_equal(peer->last.status, GRPC_OK);
}

static void test_error_comes_in_trailers_alone_or_behind(void **state)
{
    struct raw_peer *peer = *state;

    say_error(peer, "grpc-status: 5", "grpc-message: no volume v%2F1 %C3%BC 100%% %zz");
    call_and_wait(peer);
    assert_failed(peer, GRPC_NOT_FOUND, ERR_GONE, true,
                  "NOT_FOUND: no volume v/1 \xc3\xbc 100%% %zz");
    assert_string_equal(peer->last_detail, "no volume v/1 \xc3\xbc 100%% %zz");
    assert_false(peer->last.error.recoverable);

    say_begin(peer);
    say_frame(peer, DATA, 0, 1, "\0\0\0\0\3abc", 8); /* does not count */
    say_headers(peer, END_STREAM, LINES("grpc-status: 10", "grpc-message: pending"));
    call_and_wait(peer);
    assert_failed(peer, GRPC_ABORTED, ERR_AGAIN, true, "ABORTED: pending");
    assert_true(peer->last.error.recoverable);

    say_error(peer, "grpc-status: 4", "grpc-message: too late"); /* what it does goes on, maybe */
    call_and_wait(peer);
    assert_failed(peer, GRPC_DEADLINE_EXCEEDED, ERR_TIMEOUT, false, "DEADLINE_EXCEEDED: too late");

    say_settings(peer); /* the last line counts */
    say_headers(peer, 0, LINES(":status: 200", "grpc-status: 0"));
    say_frame(peer, DATA, 0, 1, "\0\0\0\0\0", 5);
    say_headers(peer, END_STREAM, LINES("grpc-status: 13"));
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, true, "INTERNAL");
}

static void test_words_of_the_peer_are_bounded_and_clean(void **state)
{
    struct raw_peer *peer = *state;
    char longest[3600] = "grpc-message: ";

    say_error(peer, "grpc-status: 2", "grpc-message: a%1B[2J%00%0Ab%FF%C3c%C2%9B");
    call_and_wait(peer);
    assert_string_equal(peer->last_detail, "a?[2J??bc??");

    memset(longest + 14, 'x', sizeof(longest) - 15);
    longest[sizeof(longest) - 1] = '\0';
    say_error(peer, "grpc-status: 2", longest);
    call_and_wait(peer);
    assert_int_equal(strlen(peer->last_detail), sizeof(longest) - 15);
    assert_int_equal(strlen(peer->last.error.text), ERR_TEXT_SIZE - 1);
}

static void test_status_that_grpc_does_not_have_is_unknown(void **state)
{
    static const char *const lines[] = {"grpc-status: 17", "grpc-status: -1", "grpc-status: 0x0",
                                        "grpc-status: 00000000000000000000000000"};
    struct raw_peer *peer = *state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        say_error(peer, lines[i], "grpc-message: x");
        call_and_wait(peer);
        assert_int_equal(peer->last.status, GRPC_UNKNOWN);
        assert_int_equal(peer->last.error.code, ERR_IO);
        assert_true(text_starts_with(peer->last.error.text, "its status \""));
    }
}

static void test_ok_without_one_whole_message_is_an_error(void **state)
{
    struct raw_peer *peer = *state;

    say_error(peer, "grpc-status: 0", "grpc-message: x");
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, true, "it said OK without a message");
    say_body_and_ok(peer, "\1\0\0\0\3abc", 8);
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, true,
                  "it compressed its message, which was not asked for");
    say_body_and_ok(peer, "\0\0\0\0\4abc", 8);
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, true,
                  "it announced a message of 4 bytes and sent 3");
    say_body_and_ok(peer, "\0\0\0\0\3abc\0\0\0\0\0", 13); /* one and another */
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, true,
                  "it announced a message of 3 bytes and sent 8");
}

static void test_answer_of_http_without_a_status(void **state)
{
    static const struct {
        const char *line;
        enum grpc_status status;
    } answers[] = {
        {":status: 400", GRPC_INTERNAL},          {":status: 401", GRPC_UNAUTHENTICATED},
        {":status: 403", GRPC_PERMISSION_DENIED}, {":status: 404", GRPC_UNIMPLEMENTED},
        {":status: 503", GRPC_UNAVAILABLE},       {":status: 000", GRPC_UNKNOWN},
        {":status: 500", GRPC_UNKNOWN},
    };
    struct raw_peer *peer = *state;

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        say_settings(peer);
        say_headers(peer, END_STREAM, LINES(answers[i].line));
        call_and_wait(peer);
        assert_int_equal(peer->last.status, answers[i].status);
        assert_false(peer->last.answered);
    }
    assert_string_equal(peer->last.error.text, "it answered HTTP 500 without a status of gRPC");
    say_begin(peer);
    say_frame(peer, DATA, END_STREAM, 1, "\0\0\0\0\0", 5);
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, false, "its answer ended without a status");
    say_begin(peer); /* a frame longer than was agreed */
    static char large[70000];
    say_frame(peer, DATA, 0, 1, large, sizeof(large));
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, false,
                  "it does not keep to HTTP/2: FRAME_SIZE_ERROR");
}

static void test_peer_that_dies_is_said_whenever_it_does(void **state)
{
    struct raw_peer *peer = *state;
    const char *text = "it closed the connection in the middle of the call";

    peer->closes = true; /* before its first word */
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, text);
    assert_true(peer->last.sent);
    say_settings(peer);
    peer->closes = true;
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, text);
    say_begin(peer);
    say_frame(peer, DATA, 0, 1,
              "\0\0\0\0\x09"
              "abc",
              8);
    peer->closes = true;
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, text);
    assert_true(peer->last.error.recoverable);
}

static void test_nobody_listens(void **state)
{
    struct raw_peer *peer = *state;

    io_watch_stop(&peer->watch);
    close(peer->fd);
    peer->fd = -1;
    call_and_wait(peer); /* its file is still there */
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, "nobody listens on its socket");
    assert_false(peer->last.sent);
    assert_int_equal(peer->last.error.os, ECONNREFUSED);
    assert_return_code(unlink(peer->path), 0);
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, "nobody listens on its socket");
    assert_int_equal(peer->last.error.os, ENOENT);
}

static void on_listener(struct io_timer *timer)
{
    struct raw_peer *peer = timer->ctx;

    io_watch_start(peer->loop, &peer->watch, peer->fd, IO_READABLE, on_connection, peer);
}

/* As of a plugin that is asked by hundreds when it has just begun. */
static void test_listener_whose_queue_is_full_is_waited_for(void **state)
{
    enum { QUEUE = 4 };
    struct raw_peer *peer = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct io_timer timer = {0};
    int fds[CONNECTIONS];
    int count = 0;

    assert_true(text_copy(at.sun_path, sizeof(at.sun_path), peer->path));
    io_watch_stop(&peer->watch); /* it accepts nobody */
    assert_return_code(listen(peer->fd, QUEUE), 0);
    for (int result = 0; result == 0; count += result == 0 ? 1 : 0) {
        fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        result = connect(fds[count], (struct sockaddr *)&at, sizeof(at));
        assert_true(result == 0 || errno == EAGAIN);
    }
    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    (void)call(peer, "hello", 20000);
    grpc_cancel(call(peer, "hello", 20000)); /* which is in nobody's way */
    io_timer_start(peer->loop, &timer, loop_now_ms() + 20, on_listener, peer);
    while (peer->replies < 2)
        loop_run(peer->loop);
    assert_int_equal(peer->last.status, GRPC_OK);
    for (int i = 0; i <= count; i++)
        close(fds[i]);
}

static void test_what_is_no_http2(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        "\x93no frame of any kind, but enough bytes for several of them, really",
        "SSH-2.0-OpenSSH_9.2\r\n",
    };
    struct raw_peer *peer = *state;

    for (size_t i = 0; i < 2 * COUNT_OF(answers); i++) {
        say(peer, answers[i / 2], strlen(answers[i / 2]));
        peer->closes = i % 2 != 0;
        call_and_wait(peer);
        assert_failed(peer, GRPC_INTERNAL, ERR_IO, false,
                      "what it sends is not HTTP/2: no gRPC server listens there");
    }
    say_settings(peer);
    say_frame(peer, HEADERS, END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6); /* of no table */
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, false,
                  "it does not keep to HTTP/2: COMPRESSION_ERROR");
}

static void test_call_that_is_reset_and_connection_that_is_refused(void **state)
{
    struct raw_peer *peer = *state;

    say_settings(peer);
    say_frame(peer, RST_STREAM, 0, 1, "\0\0\0\x08", 4);
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, false, "it broke the call off: CANCEL");
    say_begin(peer);
    say_frame(peer, DATA, 0, 1,
              "\0\0\0\0\x09"
              "abc",
              8);
    say_frame(peer, RST_STREAM, 0, 1, "\0\0\0\x02", 4);
    call_and_wait(peer);
    assert_failed(peer, GRPC_INTERNAL, ERR_IO, false, "it broke the call off: INTERNAL_ERROR");
    say_settings(peer);
    say_frame(peer, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false, "it takes no more calls (GOAWAY)");
    assert_false(peer->last.sent);
    say_settings(peer);
    say_frame(peer, RST_STREAM, 0, 1, "\0\0\0\x07", 4);
    call_and_wait(peer);
    assert_failed(peer, GRPC_UNAVAILABLE, ERR_AGAIN, false,
                  "it takes no more calls (REFUSED_STREAM)");
    assert_false(peer->last.sent);
    say_settings(peer); /* a connection that ends, but not before our answer */
    say_frame(peer, GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0", 8);
    say_headers(peer, END_STREAM, LINES(":status: 200", "grpc-status: 9"));
    call_and_wait(peer);
    assert_failed(peer, GRPC_FAILED_PRECONDITION, ERR_REFUSED, true, "FAILED_PRECONDITION");
}

static void test_what_is_too_large_is_refused_both_ways(void **state)
{
    struct raw_peer *peer = *state;
    static char large[GRPC_MESSAGE_MAX + 1];
    struct err err = {0};
    struct grpc_call large_call = {.unix_socket = peer->path,
                                   .method = "/test.v1.Test/Call",
                                   .message = large,
                                   .message_length = sizeof(large),
                                   .timeout_ms = 1000,
                                   .cb = on_grpc};

    assert_null(grpc_start(peer->loop, &large_call, &err));
    assert_int_equal(err.code, ERR_LIMIT);
    char path[200];
    memset(path, 'x', sizeof(path));
    path[108] = '\0';
    large_call = (struct grpc_call){
        .unix_socket = path, .method = "/x/y", .timeout_ms = 1000, .cb = on_grpc};
    assert_null(grpc_start(peer->loop, &large_call, &err));
    assert_int_equal(err.code, ERR_INVALID);

    say_begin(peer);
    for (int i = 0; i < 4; i++) /* call() allows 60,000 and the prefix; no window is full */
        say_frame(peer, DATA, 0, 1, large, 15001 + (i == 3 ? 2 : 0));
    call_and_wait(peer);
    assert_failed(peer, GRPC_RESOURCE_EXHAUSTED, ERR_LIMIT, false, "the answer is too large");
}

static void test_deadline_is_kept_here_and_told(void **state)
{
    struct raw_peer *peer = *state;

    for (uint64_t timeout_ms = 30; peer->asked == 0; timeout_ms *= 2) { /* until it was heard */
        (void)call(peer, "hello", timeout_ms);
        loop_run(peer->loop);
        assert_int_equal(peer->last.status, GRPC_DEADLINE_EXCEEDED);
        assert_int_equal(peer->last.error.code, ERR_TIMEOUT);
        assert_true(text_starts_with(peer->last.error.text, "it has not answered within "));
        assert_true(peer->last.error.recoverable);
        assert_false(peer->last.answered);
    }
    if (peer->hang_ups < peer->count)
        loop_run(peer->loop); /* until it hears that we have gone */
    assert_int_equal(peer->hang_ups, peer->count);
}

static void test_canceled_call_ends_now_and_only_once(void **state)
{
    struct raw_peer *peer = *state;

    struct grpc_request *request = call(peer, "hello", 20000);
    grpc_cancel(request); /* before anything was sent */
    assert_int_equal(peer->replies, 1);
    assert_failed(peer, GRPC_CANCELLED, ERR_CANCELED, false, "canceled");
    loop_run(peer->loop); /* on_grpc has stopped it */
    request = call(peer, "hello", 20000);
    peer->awaited = 0;
    loop_run(peer->loop);
    assert_int_equal(peer->asked, 1);
    peer->awaited = 1;
    grpc_cancel(request); /* in mid-call */
    assert_int_equal(peer->replies, 2);
    assert_int_equal(peer->last.error.code, ERR_CANCELED);
    while (peer->hang_ups == 0)
        loop_run(peer->loop); /* until the peer hears of it */
    assert_int_equal(peer->hang_ups, 1);
    assert_int_equal(peer->replies, 2);
    (void)call(peer, "hello", 20000); /* and one that loop_free ends, in tear-down */
}

static void test_many_calls_at_once_each_get_their_answer(void **state)
{
    struct raw_peer *peer = *state;

    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    for (int i = 0; i < 300; i++) /* more than have connections at once */
        (void)call(peer, "hello", 20000);
    loop_run(peer->loop);
    assert_int_equal(peer->replies, 300);
    assert_int_equal(peer->count, 300);
    assert_int_equal(peer->last.status, GRPC_OK);
}

static void test_calls_that_hang_are_in_nobodys_way(void **state)
{
    struct raw_peer *peer = *state;
    struct err err = {0};

    for (int i = 0; i < 256; i++)
        (void)call(peer, "hello", 60000); /* no answer: all connections of gRPC are taken */
    struct peer *http = calloc(1, sizeof(*http));
    http->loop = peer->loop;
    const struct http_listen listen = peer_listen(http);
    http->server = http_server_new(peer->loop, &listen, &err);
    assert_non_null(http->server);
    (void)text_format(http->base, sizeof(http->base), "http://127.0.0.1:%u",
                      http_server_port(http->server));
    ask_and_wait(http, (struct http_call){.url = "/e"});
    assert_int_equal(http->last_status, 200);
    http_server_free(http->server);
    free(http);
}

static bool on_none(void *ctx, const void *message, size_t length)
{
    (void)ctx;
    (void)message;
    (void)length;
    return true;
}

static void on_long_end(void *ctx, const struct grpc_reply *reply)
{
    assert_int_equal(reply->error.code, ERR_CANCELED);
    (*(unsigned *)ctx)++;
}

/* As of so many tasks of a plugin: each waits for its end in a call of its own. */
static void test_calls_that_last_are_in_nobodys_way(void **state)
{
    enum { LONG = 300 };
    struct raw_peer *peer = *state;
    struct grpc_request *lasting[LONG];
    struct err err = {0};
    unsigned ended = 0;
    const struct grpc_call lasts = {.unix_socket = peer->path,
                                    .method = "/test.v1.Test/Wait",
                                    .message = "",
                                    .lasts = true,
                                    .on_message = on_none,
                                    .cb = on_long_end,
                                    .ctx = &ended};

    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    call_and_wait(peer); /* which is first does not matter */
    for (int i = 0; i < LONG; i++) {
        lasting[i] = grpc_start(peer->loop, &lasts, &err);
        assert_non_null(lasting[i]);
    }
    while (peer->asked < 1 + LONG)
        loop_run(peer->loop); /* until the next one is asked */
    say_body_and_ok(peer, "\0\0\0\0\3abc", 8);
    call_and_wait(peer);
    assert_int_equal(peer->last.status, GRPC_OK);
    for (int i = 0; i < LONG; i++)
        grpc_cancel(lasting[i]);
    assert_int_equal(ended, LONG);
}

static int set_up(void **state)
{
    struct raw_peer *peer = calloc(1, sizeof(*peer));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    void *scratch;

    assert_non_null(peer);
    (void)scratch_make(&scratch);
    peer->scratch = scratch;
    peer->descriptors = count_descriptors();
    peer->answer = malloc(BYTES);
    peer->loop = loop_new();
    assert_int_equal(path_join(peer->path, peer->scratch->path, "sock"), 0);
    assert_true(text_copy(at.sun_path, sizeof(at.sun_path), peer->path));
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(peer->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_return_code(listen(peer->fd, 512), 0);
    io_watch_start(peer->loop, &peer->watch, peer->fd, IO_READABLE, on_connection, peer);
    *state = peer;
    return 0;
}

static int tear_down(void **state)
{
    struct raw_peer *peer = *state;
    void *scratch = peer->scratch;
    unsigned before = peer->descriptors;

    for (unsigned i = 0; i < peer->count; i++)
        hang_up(&peer->connections[i]);
    io_watch_stop(&peer->watch);
    if (peer->fd >= 0)
        close(peer->fd);
    loop_free(peer->loop);
    assert_int_equal(peer->awaited, 0); /* each call had its callback */
    free(peer->answer);
    free(peer);
    assert_int_equal(count_descriptors(), before);
    return scratch_remove(&scratch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_answer_and_request_are_what_grpc_says),
        TEST(test_message_may_be_empty_and_come_in_pieces),
        TEST(test_messages_follow_until_their_end_is_said),
        TEST(test_answer_ends_a_call_that_would_send_more),
        TEST(test_stream_that_is_held_is_not_read),
        TEST(test_error_comes_in_trailers_alone_or_behind),
        TEST(test_words_of_the_peer_are_bounded_and_clean),
        TEST(test_status_that_grpc_does_not_have_is_unknown),
        TEST(test_ok_without_one_whole_message_is_an_error),
        TEST(test_answer_of_http_without_a_status),
        TEST(test_peer_that_dies_is_said_whenever_it_does),
        TEST(test_nobody_listens),
        TEST(test_listener_whose_queue_is_full_is_waited_for),
        TEST(test_what_is_no_http2),
        TEST(test_call_that_is_reset_and_connection_that_is_refused),
        TEST(test_what_is_too_large_is_refused_both_ways),
        TEST(test_deadline_is_kept_here_and_told),
        TEST(test_canceled_call_ends_now_and_only_once),
        TEST(test_many_calls_at_once_each_get_their_answer),
        TEST(test_calls_that_hang_are_in_nobodys_way),
        TEST(test_calls_that_last_are_in_nobodys_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
