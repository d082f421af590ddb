/* The server under good and bad peers: late answers, streams, limits, malformed requests. */
#include "test/io/net/http_peer.h"

#include "io/net/connection.h"

#include <sys/resource.h>

/* What the library has given back to us: it waits for the handler, or for a stream's next piece. */
static bool waits_for_us(const struct http_exchange *exchange)
{
    return exchange->connection->suspended;
}

static bool has_deadline(const struct http_exchange *exchange)
{
    return exchange->connection->deadline.slot != 0;
}

static void look_again(struct io_timer *timer)
{
    struct peer *peer = timer->ctx;

    if (peer->late_count > 0 && waits_for_us(peer->late[0]))
        loop_stop(peer->loop);
    else
        io_timer_start(peer->loop, timer, loop_now_ms() + 1, look_again, peer);
}

/* Runs until the exchange that the test keeps has come, and the peer has all that was said. */
static void run_until_it_waits(struct peer *peer)
{
    io_timer_start(peer->loop, &peer->timer, 0, look_again, peer);
    loop_run(peer->loop);
}

static void test_request_reaches_the_handler_decoded(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){
                           .url = "/a%20b/%C3%A9?q=1%262+3&q2",
                           .headers = (const char *[]){"X-Test: yes", "Content-Type: x/y", NULL},
                           .method = "PUT",
                           .body = "hello",
                           .body_length = 5});
    assert_int_equal(peer->last_error.code, 0);
    assert_int_equal(peer->last_status, 200);
    assert_string_equal(peer->last_body, "PUT /a b/\xc3\xa9 q=1&2 3 x=yes 5:hello");

    const struct http_reply reply = {.headers = peer->last_headers};
    char value[8];
    assert_true(http_reply_header(&reply, "x-index", value, sizeof(value)));
    assert_string_equal(value, "7");
    assert_false(http_reply_header(&reply, "X-Index", value, 1)); /* would be cut */
    assert_false(http_reply_header(&reply, "X-Forged", value, sizeof(value)));
    assert_false(http_reply_header(&reply, "X-Bad", value, sizeof(value)));
}

static void test_query_without_a_value_is_there_and_empty(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/?q"});
    assert_string_equal(peer->last_body, "GET / q= x=none 0:");
    ask_and_wait(peer, (struct http_call){.url = "/?qq=1"});
    assert_string_equal(peer->last_body, "GET / q=none x=none 0:");
}

static void test_every_method_and_head_without_a_body(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/e", .method = "DELETE"});
    assert_string_equal(peer->last_body, "DELETE /e q=none x=none 0:");
    ask_and_wait(
        peer, (struct http_call){.url = "/e", .method = "DELETE", .body = "why", .body_length = 3});
    assert_string_equal(peer->last_body, "DELETE /e q=none x=none 3:why");
    ask_and_wait(peer, (struct http_call){.url = "/e", .method = "POST"});
    assert_string_equal(peer->last_body, "POST /e q=none x=none 0:");
    ask_and_wait(peer, (struct http_call){.url = "/e", .method = "HEAD"});
    assert_int_equal(peer->last_status, 200);
    assert_string_equal(peer->last_body, "");
    assert_non_null(strstr(peer->last_headers, "Content-Length: 24"));
}

static void test_body_at_the_limit_is_taken_and_above_refused(void **state)
{
    struct peer *peer = *state;
    static char body[BODY_MAX + 1];

    memset(body, 'b', sizeof(body));
    ask_and_wait(peer, (struct http_call){
                           .url = "/e", .method = "PUT", .body = body, .body_length = BODY_MAX});
    assert_int_equal(peer->last_status, 200);
    ask_and_wait(peer,
                 (struct http_call){
                     .url = "/e", .method = "PUT", .body = body, .body_length = BODY_MAX + 1});
    assert_int_equal(peer->last_status, 413);
}

static void test_body_far_above_the_limit_still_gets_an_answer(void **state)
{
    enum { LARGE = 8 << 20 };
    struct peer *peer = *state;
    char *body = calloc(1, LARGE);

    assert_non_null(body);
    ask_and_wait(
        peer, (struct http_call){.url = "/e", .method = "PUT", .body = body, .body_length = LARGE});
    assert_int_equal(peer->last_status, 413);
    free(body);
}

static void test_chunked_body_is_put_together_and_bounded(void **state)
{
    struct peer *peer = *state;
    static char large[BODY_MAX * 3];

    assert_non_null(strstr(
        raw_talk(peer,
                 "PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close"
                 "\r\n\r\n5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n",
                 NULL),
        "PUT /c q=none x=none 6:hello!<end>"));

    (void)text_copy(large, sizeof(large),
                    "PUT /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n");
    size_t used = strlen(large);
    memset(large + used, 'x', 2000);
    memcpy(large + used + 2000, "\r\n0\r\n\r\n", sizeof("\r\n0\r\n\r\n"));
    const char *got = raw_talk(peer, large, NULL);
    assert_non_null(strstr(got, "HTTP/1.1 413 "));
    assert_true(text_ends_with(got, "<end>"));
}

static void test_expectation_is_met_or_refused_before_the_body(void **state)
{
    struct peer *peer = *state;
    static struct raw raw;

    memset(&raw, 0, sizeof(raw));
    raw_send(peer, &raw,
             "PUT /c HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
             "\r\n\r\n");
    loop_run(peer->loop);
    assert_string_equal(raw.got, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_send(peer, &raw, "ab", "2:ab");
    loop_run(peer->loop);
    assert_non_null(strstr(raw.got, "HTTP/1.1 200 OK\r\n"));
    assert_true(text_ends_with(raw.got, "2:ab"));
    close(raw.fd);

    const char *got = raw_talk(peer,
                               "PUT /c HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n"
                               "Expect: 100-continue\r\n\r\n",
                               NULL);
    assert_true(text_starts_with(got, "HTTP/1.1 413 "));
    assert_true(text_ends_with(got, "<end>"));
}

static void test_malformed_requests_get_400_and_do_no_harm(void **state)
{
    static const char *const requests[] = {
        "GET /\r\nHost: a\r\n\r\n",
        "GET / HTTQ/9\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", /* no host */
        "GET / HTTP/1.1\r\nHost a\r\n\r\n",
        "GET no-slash HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /?q=%c0%80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "METHODTHATISTOOLONGTOBETRUE / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\r\nhello",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nhello",
    };
    struct peer *peer = *state;

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const char *got = raw_talk(peer, requests[i], NULL);

        if (strstr(got, " 400 ") == NULL || !text_ends_with(got, "<end>"))
            fail_msg("request %zu \"%s\" got \"%s\"", i, requests[i], got);
        assert_null(strstr(got, " 200 "));
    }
    ask_and_wait(peer, (struct http_call){.url = "/still"});
    assert_string_equal(peer->last_body, "GET /still q=none x=none 0:");
}

/* What is no HTTP at all, and bodies that break off their own rules. */
#define CHUNKED "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

static void test_bytes_without_sense_are_cut_off(void **state)
{
    static const char *const requests[] = {
        "\r\n\r\n\r\n\x01\x02garbage\r\n\r\n",
        "GET\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 TLS says hello\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        CHUNKED "xyz\r\nhello\r\n",
        CHUNKED "-5\r\nhello\r\n",
        CHUNKED "ffffffffffffffffff\r\nhello",
        CHUNKED "5\r\nhelloworld\r\n0\r\n",
    };
    struct peer *peer = *state;

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        const char *got = raw_talk(peer, requests[i], NULL);

        if (strstr(got, " 200 ") != NULL || !text_ends_with(got, "<end>"))
            fail_msg("request %zu \"%s\" got \"%s\"", i, requests[i], got);
    }
    ask_and_wait(peer, (struct http_call){.url = "/still"});
    assert_string_equal(peer->last_body, "GET /still q=none x=none 0:");
}

static void test_head_of_a_request_is_bounded(void **state)
{
    struct peer *peer = *state;
    static char large[60000];

    (void)text_copy(large, sizeof(large), "GET /c HTTP/1.1\r\nHost: a\r\nX-Test: ");
    memset(large + strlen(large), 'x', 50000);
    memcpy(large + 50100, "\r\n\r\n", sizeof("\r\n\r\n"));
    for (size_t i = 0; i < 50100; i++)
        large[i] = large[i] == '\0' ? 'x' : large[i];
    const char *got = raw_talk(peer, large, NULL);
    assert_non_null(strstr(got, "HTTP/1.1 431 "));
}

static void test_old_client_gets_an_answer_and_the_end(void **state)
{
    struct peer *peer = *state;
    const char *got = raw_talk(peer, "GET /old HTTP/1.0\r\n\r\n", NULL);

    assert_non_null(strstr(got, " 200 OK\r\n"));
    assert_true(text_ends_with(got, "GET /old q=none x=none 0:<end>"));
}

static void test_pipelined_requests_are_answered_in_order(void **state)
{
    struct peer *peer = *state;
    const char *got = raw_talk(peer,
                               "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPUT /2 HTTP/1.1\r\nHost: a\r\n"
                               "Content-Length: 1\r\n\r\nxGET /3 HTTP/1.1\r\nHost: a\r\n"
                               "Connection: close\r\n\r\n",
                               NULL);
    const char *first = strstr(got, "GET /1 q"), *second = strstr(got, "PUT /2 q");

    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_true(text_ends_with(got, "GET /3 q=none x=none 0:<end>"));
}

/* --- late answers --- */

static void answer_from_timer(struct io_timer *timer)
{
    struct peer *peer = timer->ctx;

    note(peer, "answering ");
    http_respond(peer->late[--peer->late_count], 202, "text/plain", NULL, 0, "late", 4);
}

static void plan_answer(struct peer *peer)
{
    io_timer_start(peer->loop, &peer->timer, loop_now_ms() + 5, answer_from_timer, peer);
}

static void test_late_answer_arrives(void **state)
{
    struct peer *peer = *state;

    peer->on_late = plan_answer;
    peer->watch_close = true;
    ask_and_wait(peer, (struct http_call){.url = "/late"});
    assert_int_equal(peer->last_status, 202);
    assert_string_equal(peer->last_body, "late");
    ask_and_wait(peer, (struct http_call){.url = "/late", .method = "PUT"}); /* same connection */
    assert_int_equal(peer->last_status, 202);
    assert_string_equal(peer->trace, "answering reply answering reply ");
}

static void test_late_answer_to_one_who_sends_on_arrives(void **state)
{
    struct peer *peer = *state;

    peer->on_late = plan_answer;
    peer->watch_close = true;
    const char *got = raw_talk(peer,
                               "GET /late HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\n"
                               "Host: a\r\nConnection: close\r\n\r\n",
                               NULL);
    assert_true(text_starts_with(got, "HTTP/1.1 202 "));
    assert_true(text_ends_with(got, "GET /next q=none x=none 0:<end>"));
    assert_string_equal(peer->trace, "answering raw ");
}

static void cancel_from_timer(struct io_timer *timer)
{
    struct peer *peer = timer->ctx;

    http_cancel(peer->request);
}

static void plan_cancel(struct peer *peer)
{
    io_timer_start(peer->loop, &peer->timer, 0, cancel_from_timer, peer);
}

static void run_until_closed(struct peer *peer)
{
    if (strstr(peer->trace, "closed ") == NULL)
        loop_run(peer->loop);
}

static void test_peer_that_leaves_before_the_answer_is_noticed(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    peer->on_late = plan_cancel;
    (void)ask(peer, (struct http_call){.url = "/late"});
    loop_run(peer->loop);
    run_until_closed(peer);
    assert_string_equal(peer->trace, "canceled closed ");
}

static void test_answer_to_one_who_left_goes_nowhere(void **state)
{
    struct peer *peer = *state;

    peer->on_late = plan_cancel;
    (void)ask(peer, (struct http_call){.url = "/late?q=1"});
    loop_run(peer->loop);
    /* Another request on another connection makes sure the server has seen the end of the first. */
    peer->on_late = NULL;
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    assert_int_equal(peer->late_count, 1);
    assert_string_equal(http_path(peer->late[0]), "/late");
    assert_string_equal(http_method(peer->late[0]), "GET");
    http_respond(peer->late[0], 200, NULL, NULL, 0, "nobody", 6);

    peer->late_count = 0;
    peer->on_late = plan_cancel;
    (void)ask(peer, (struct http_call){.url = "/stream"});
    loop_run(peer->loop);
    peer->on_late = NULL;
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    (void)http_stream_write(peer->late[0], "nobody", 6);
    http_stream_end(peer->late[0]);
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    assert_string_equal(peer->trace, "canceled reply canceled reply reply ");
}

static void test_server_freed_with_open_exchanges_tells_them(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    (void)ask(peer, (struct http_call){.url = "/late"});
    (void)ask(peer, (struct http_call){.url = "/stream"});
    peer->late_wanted = 2;
    loop_run(peer->loop); /* until both are with the handler */
    http_server_free(peer->server);
    peer->server = NULL;
    assert_string_equal(peer->trace, "closed closed ");
    loop_run(peer->loop);
    assert_string_equal(peer->trace, "closed closed failed failed ");
    assert_int_equal(peer->last_error.code, ERR_IO);
}

/* --- streams --- */

static bool on_piece(void *ctx, const char *bytes, size_t length)
{
    struct peer *peer = ctx;
    char piece[64];

    (void)text_format(piece, sizeof(piece), "<%.*s>", (int)length, bytes);
    note(peer, piece);
    if (peer->late_count == 0)
        return true;
    if (length == 3 && memcmp(bytes, "one", 3) == 0) {
        assert_int_equal(http_stream_write(peer->late[0], "two", 3), 3);
    } else {
        http_stream_end(peer->late[0]);
        peer->late_count = 0;
    }
    return true;
}

static void write_one(struct peer *peer)
{
    assert_int_equal(http_stream_write(peer->late[0], "one", 3), 3);
}

static void test_stream_arrives_piece_by_piece(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    peer->on_late = write_one;
    ask_and_wait(peer, (struct http_call){.url = "/stream", .on_data = on_piece});
    assert_int_equal(peer->last_status, 200);
    assert_string_equal(peer->last_body, "");
    assert_non_null(strstr(peer->last_headers, "chunked"));
    assert_string_equal(peer->trace, "<one><two>reply ");
    ask_and_wait(peer, (struct http_call){.url = "/e"}); /* the connection goes on */
    assert_int_equal(peer->last_status, 200);
}

static void end_at_once(struct peer *peer)
{
    (void)http_stream_write(peer->late[0], "one", 3);
    (void)http_stream_write(peer->late[0], "two", 3);
    http_stream_end(peer->late[0]);
    peer->late_count = 0;
}

static void test_stream_written_and_ended_inside_the_handler_is_whole(void **state)
{
    struct peer *peer = *state;

    peer->on_late = end_at_once;
    ask_and_wait(peer, (struct http_call){.url = "/stream"});
    assert_string_equal(peer->last_body, "onetwo");
    const char *got = raw_talk(peer, "GET /stream HTTP/1.0\r\n\r\n", NULL);
    assert_true(text_ends_with(got, "\r\n\r\nonetwo<end>")); /* no chunks for the old */
}

static void test_stream_for_head_is_closed_for_the_producer(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    ask_and_wait(peer, (struct http_call){.url = "/stream", .method = "HEAD"});
    assert_int_equal(peer->last_status, 200);
    run_until_closed(peer);
    assert_non_null(strstr(peer->trace, "closed "));
}

/* A producer that writes while it may and goes on when the queue is empty. */
struct flood {
    struct peer *peer;
    struct http_exchange *exchange;
    size_t sent, drains, queued_max;
};

enum { FLOOD_BYTES = 4 << 20, PAUSE_AT = 64 << 10 };

static void flood_write(void *ctx)
{
    static char block[8192];
    struct flood *flood = ctx;
    size_t queued = 0;

    while (flood->sent < FLOOD_BYTES && queued < PAUSE_AT) {
        queued = http_stream_write(flood->exchange, block, sizeof(block));
        flood->sent += sizeof(block);
        if (queued > flood->queued_max)
            flood->queued_max = queued;
    }
    if (flood->sent == FLOOD_BYTES && flood->exchange != NULL) {
        http_stream_end(flood->exchange);
        flood->exchange = NULL;
    }
}

static void flood_drained(void *ctx)
{
    struct flood *flood = ctx;

    flood->drains++;
    if (flood->exchange != NULL)
        flood_write(flood);
}

static void flood_handle(void *ctx, struct http_exchange *exchange)
{
    struct flood *flood = ctx;

    flood->exchange = exchange;
    http_stream_begin(exchange, 200, NULL, NULL, 0, flood_drained, flood);
    flood_write(flood);
}

static bool count_bytes(void *ctx, const char *bytes, size_t length)
{
    struct peer *peer = ctx;
    (void)bytes;

    peer->late_count += (unsigned)length;
    return true;
}

static void test_slow_reader_holds_the_producer_back(void **state)
{
    struct peer *peer = *state;
    struct flood flood = {.peer = peer};
    struct http_listen listen = peer_listen(peer);

    listen.handle = flood_handle;
    listen.ctx = &flood;
    peer_start(peer, &listen);
    ask_and_wait(peer, (struct http_call){.url = "/", .on_data = count_bytes});
    assert_int_equal(peer->late_count, FLOOD_BYTES);
    assert_true(flood.drains > 10);
    assert_true(flood.queued_max < PAUSE_AT + 8192);
}

static void flood_closed(void *ctx)
{
    struct flood *flood = ctx;

    flood->exchange = NULL;
    note(flood->peer, "closed ");
    loop_stop(flood->peer->loop);
}

static void pile_up(void *ctx, struct http_exchange *exchange)
{
    static char block[1 << 20];
    struct flood *flood = ctx;

    http_on_close(exchange, flood_closed, flood);
    http_stream_begin(exchange, 200, NULL, NULL, 0, NULL, NULL);
    for (int i = 0; i < 40; i++) {
        size_t queued = http_stream_write(exchange, block, sizeof(block));
        if (queued > flood->queued_max)
            flood->queued_max = queued;
    }
}

static void test_producer_that_does_not_stop_loses_the_peer(void **state)
{
    struct peer *peer = *state;
    struct flood flood = {.peer = peer};
    struct http_listen listen = peer_listen(peer);
    const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    listen.handle = pile_up;
    listen.ctx = &flood;
    peer_start(peer, &listen);
    int fd = raw_connect(peer); /* never reads */
    assert_int_equal(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    loop_run(peer->loop);
    assert_string_equal(peer->trace, "closed ");
    assert_true(flood.queued_max <= 16 << 20);
    close(fd);
}

/* --- time and number --- */

static void test_request_that_does_not_arrive_is_cut_off(void **state)
{
    static const char *const parts[] = {
        "", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell",
        /* A whole one first: the connection is idle, then the next one begins and stops. */
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"};
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);

    listen.arrive_ms = 20;
    peer_start(peer, &listen);
    for (size_t i = 0; i + 1 < COUNT_OF(parts); i++)
        assert_string_equal(raw_talk(peer, parts[i], NULL), "<end>");

    static struct raw raw;
    memset(&raw, 0, sizeof(raw));
    peer->server->arrive_ms = 3600000; /* it does arrive, however busy this machine is */
    raw_send(peer, &raw, parts[4], "GET /1 q=none x=none 0:");
    loop_run(peer->loop);
    peer->server->arrive_ms = 20;
    raw_send(peer, &raw, "GET /2", NULL);
    loop_run(peer->loop);
    assert_true(text_ends_with(raw.got, "0:<end>"));
    close(raw.fd);
}

static void test_idle_connection_is_closed(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);

    listen.idle_ms = 20;
    peer_start(peer, &listen);
    assert_true(text_ends_with(raw_talk(peer, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", NULL),
                               "GET /1 q=none x=none 0:<end>"));
}

static void test_late_answer_and_quiet_stream_have_no_deadline(void **state)
{
    struct peer *peer = *state;

    (void)ask(peer, (struct http_call){.url = "/late"});
    run_until_it_waits(peer);
    assert_false(has_deadline(peer->late[0]));
    http_respond(peer->late[0], 202, NULL, NULL, 0, "late", 4);
    loop_run(peer->loop);
    assert_int_equal(peer->last_status, 202);

    peer->late_count = 0;
    peer->on_late = write_one;
    (void)ask(peer, (struct http_call){.url = "/stream"});
    run_until_it_waits(peer);
    assert_false(has_deadline(peer->late[0]));
    (void)http_stream_write(peer->late[0], "two", 3);
    assert_true(has_deadline(peer->late[0])); /* until that is taken */
    http_stream_end(peer->late[0]);
    loop_run(peer->loop);
    assert_string_equal(peer->last_body, "onetwo");
}

static void test_connections_above_the_limit_wait(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);
    static struct raw first, second;

    listen.connections_max = 1;
    peer_start(peer, &listen);
    memset(&first, 0, sizeof(first));
    memset(&second, 0, sizeof(second));
    raw_send(peer, &first, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", "0:");
    loop_run(peer->loop);
    assert_non_null(strstr(first.got, "GET /1 q"));

    raw_send(peer, &second, "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n", "0:");
    raw_send(peer, &first, "GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", NULL);
    loop_run(peer->loop);
    assert_true(text_ends_with(first.got, "GET /3 q=none x=none 0:<end>"));
    assert_non_null(strstr(second.got, "GET /2 q")); /* its turn came */
    close(first.fd);
    close(second.fd);
}

static bool count_iterations(void *ctx)
{
    ++*(unsigned *)ctx;
    return false;
}

static void stop_from_timer(struct io_timer *timer)
{
    loop_stop(timer->loop);
}

static void test_server_with_idle_connections_does_not_wake(void **state)
{
    struct peer *peer = *state;
    struct io_before_sleep counter = {0};
    unsigned iterations = 0;
    static struct raw idle;

    memset(&idle, 0, sizeof(idle));
    raw_send(peer, &idle, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", "0:");
    loop_run(peer->loop);
    peer->watch_close = true;
    peer->on_late = write_one;
    int fd = raw_connect(peer); /* a stream that has nothing to say after its first word */
    const char request[] = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
    peer->awaited = 1;
    run_until_it_waits(peer);

    io_before_sleep_start(peer->loop, &counter, count_iterations, &iterations);
    io_timer_start(peer->loop, &peer->timer, loop_now_ms() + 300, stop_from_timer, peer);
    loop_run(peer->loop);
    assert_int_equal(iterations, 1);
    assert_int_equal(peer->late_count, 1);
    peer->awaited = 0;
    close(fd);
    close(idle.fd);
    io_before_sleep_stop(&counter);
    run_until_closed(peer);
}

/* --- addresses --- */

static void test_address_in_use_is_one_clear_error(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);
    struct err err = {0};
    char expected[64];

    listen.port = http_server_port(peer->server);
    assert_null(http_server_new(peer->loop, &listen, &err));
    assert_int_equal(err.code, ERR_EXISTS);
    (void)text_format(expected, sizeof(expected), "address 127.0.0.1:%u is already in use",
                      listen.port);
    assert_true(text_starts_with(err.text, expected));

    listen.address = "localhost";
    assert_null(http_server_new(peer->loop, &listen, &err));
    assert_int_equal(err.code, ERR_INVALID);
    listen.address = "192.0.2.1"; /* reserved for documentation: nobody's */
    listen.port = 0;
    assert_null(http_server_new(peer->loop, &listen, &err));
    assert_non_null(strstr(err.text, "cannot listen on 192.0.2.1:0"));
}

static void listen_on_path(struct peer *peer, const char *path)
{
    struct http_listen listen = peer_listen(peer);

    listen.address = NULL;
    listen.unix_socket = path;
    peer_start(peer, &listen);
}

static void test_unix_socket_is_private_and_goes_with_its_server(void **state)
{
    struct peer *peer = *state;

    (void)text_copy(peer->socket, sizeof(peer->socket), at(peer->scratch, "s"));
    listen_on_path(peer, peer->socket);
    assert_int_equal(mode_of(peer->socket), 0600);
    ask_and_wait(peer, (struct http_call){.url = "http://any/u", .unix_socket = peer->socket});
    assert_string_equal(peer->last_body, "GET /u q=none x=none 0:");
    peer->on_late = plan_answer;
    ask_and_wait(peer, (struct http_call){.url = "http://any/late", .unix_socket = peer->socket});
    assert_int_equal(peer->last_status, 202);

    struct http_listen listen = peer_listen(peer);
    struct err err = {0};
    listen.unix_socket = peer->socket;
    assert_null(http_server_new(peer->loop, &listen, &err));
    assert_int_equal(err.code, ERR_EXISTS);
    assert_true(exists(peer->socket)); /* the one in use was not taken away */
    http_server_free(peer->server);
    peer->server = NULL;
    assert_false(exists(peer->socket));
}

static void test_unix_socket_admits_whom_it_is_told(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);
    struct stat status;

    (void)text_copy(peer->socket, sizeof(peer->socket), at(peer->scratch, "s"));
    listen.unix_socket = peer->socket;
    listen.admits =
        (struct http_admission){.mode = 0660, .gives = geteuid() == 0, .uid = (uid_t)-1, .gid = 12};
    peer_start(peer, &listen);
    assert_return_code(lstat(peer->socket, &status), 0);
    assert_int_equal(status.st_mode & 07777u, 0660);
    assert_int_equal(status.st_uid, geteuid());
    assert_int_equal(status.st_gid, geteuid() == 0 ? 12 : getegid());
    ask_and_wait(peer, (struct http_call){.url = "http://any/u", .unix_socket = peer->socket});
    assert_int_equal(peer->last_status, 200);
}

static void test_unix_socket_left_by_a_crash_is_replaced(void **state)
{
    struct peer *peer = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)text_copy(peer->socket, sizeof(peer->socket), at(peer->scratch, "s"));
    assert_true(text_copy(address.sun_path, sizeof(address.sun_path), peer->socket));
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    listen_on_path(peer, peer->socket);
    ask_and_wait(peer, (struct http_call){.url = "http://any/u", .unix_socket = peer->socket});
    assert_int_equal(peer->last_status, 200);
}

static void test_unix_socket_of_a_server_that_cannot_start_is_not_left(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);
    struct http_server *server = NULL;
    struct rlimit before, few;
    struct err err = {0};
    unsigned failures = 0;

    (void)text_copy(peer->socket, sizeof(peer->socket), at(peer->scratch, "s"));
    listen.unix_socket = peer->socket;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    /* One descriptor more each time: each step of the start fails once for want of it. */
    for (few.rlim_cur = 3; server == NULL && few.rlim_cur < before.rlim_cur; few.rlim_cur++) {
        assert_return_code(setrlimit(RLIMIT_NOFILE, &few), 0);
        server = http_server_new(peer->loop, &listen, &err);
        assert_return_code(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_true(exists(peer->socket) == (server != NULL));
        failures += server == NULL;
    }
    assert_non_null(server);
    assert_true(failures > 3);
    http_server_free(server);
}

static void test_file_in_place_of_a_unix_socket_is_kept(void **state)
{
    struct peer *peer = *state;
    struct http_listen listen = peer_listen(peer);
    struct err err = {0};

    put_file(at(peer->scratch, "s"), "precious");
    listen.unix_socket = peer->scratch->text;
    assert_null(http_server_new(peer->loop, &listen, &err));
    assert_int_equal(err.code, ERR_EXISTS);
    assert_file_is(at(peer->scratch, "s"), "precious");
}

static void test_unix_socket_at_the_end_of_a_long_path_listens(void **state)
{
    struct peer *peer = *state;
    char name[200];

    memset(name, 'd', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_return_code(mkdir(at(peer->scratch, name), 0755), 0);
    assert_int_equal(path_join(peer->socket, peer->scratch->text, "api.sock"), 0);
    listen_on_path(peer, peer->socket);
    assert_true(exists(peer->socket));
    http_server_free(peer->server);
    peer->server = NULL;
    assert_false(exists(peer->socket));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, peer_set_up, peer_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_request_reaches_the_handler_decoded),
        TEST(test_query_without_a_value_is_there_and_empty),
        TEST(test_every_method_and_head_without_a_body),
        TEST(test_body_at_the_limit_is_taken_and_above_refused),
        TEST(test_body_far_above_the_limit_still_gets_an_answer),
        TEST(test_chunked_body_is_put_together_and_bounded),
        TEST(test_expectation_is_met_or_refused_before_the_body),
        TEST(test_malformed_requests_get_400_and_do_no_harm),
        TEST(test_bytes_without_sense_are_cut_off),
        TEST(test_head_of_a_request_is_bounded),
        TEST(test_old_client_gets_an_answer_and_the_end),
        TEST(test_pipelined_requests_are_answered_in_order),
        TEST(test_late_answer_arrives),
        TEST(test_late_answer_to_one_who_sends_on_arrives),
        TEST(test_peer_that_leaves_before_the_answer_is_noticed),
        TEST(test_answer_to_one_who_left_goes_nowhere),
        TEST(test_server_freed_with_open_exchanges_tells_them),
        TEST(test_stream_arrives_piece_by_piece),
        TEST(test_stream_written_and_ended_inside_the_handler_is_whole),
        TEST(test_stream_for_head_is_closed_for_the_producer),
        TEST(test_slow_reader_holds_the_producer_back),
        TEST(test_producer_that_does_not_stop_loses_the_peer),
        TEST(test_request_that_does_not_arrive_is_cut_off),
        TEST(test_idle_connection_is_closed),
        TEST(test_late_answer_and_quiet_stream_have_no_deadline),
        TEST(test_connections_above_the_limit_wait),
        TEST(test_server_with_idle_connections_does_not_wake),
        TEST(test_address_in_use_is_one_clear_error),
        TEST(test_unix_socket_is_private_and_goes_with_its_server),
        TEST(test_unix_socket_admits_whom_it_is_told),
        TEST(test_unix_socket_left_by_a_crash_is_replaced),
        TEST(test_unix_socket_of_a_server_that_cannot_start_is_not_left),
        TEST(test_file_in_place_of_a_unix_socket_is_kept),
        TEST(test_unix_socket_at_the_end_of_a_long_path_listens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
