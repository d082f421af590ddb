/* The client: every way a call can end, exactly one callback, nothing unbounded. */
#include "test/io/net/http_peer.h"

static void test_nobody_listening_is_said_at_once(void **state)
{
    struct peer *peer = *state;
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);

    assert_return_code(bind(fd, (struct sockaddr *)&at, length), 0); /* a port that nobody gets */
    assert_return_code(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    (void)text_format(url, sizeof(url), "http://user:secret@127.0.0.1:%u/x?token=secret",
                      ntohs(at.sin_port));
    ask_and_wait(peer, (struct http_call){.url = url});
    assert_int_equal(peer->last_status, 0);
    assert_int_equal(peer->last_error.code, ERR_AGAIN);
    assert_true(peer->last_error.recoverable);
    assert_true(text_starts_with(peer->last_error.text, "GET 127.0.0.1:"));
    assert_null(strstr(peer->last_error.text, "secret"));
    close(fd);
}

static void test_missing_unix_socket_is_no_connection(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(
        peer, (struct http_call){.url = "http://any/", .unix_socket = at(peer->scratch, "none")});
    assert_int_equal(peer->last_error.code, ERR_AGAIN);
}

static void test_what_no_request_can_be_made_of_is_invalid(void **state)
{
    static const struct {
        const char *method, *url, *header;
    } calls[] = {
        {"GET", "file:///etc/passwd", NULL},
        {"GET", "ftp://127.0.0.1/", NULL},
        {"GET", "http://", NULL},
        {"GET", "http://127.0.0.1:99999/", NULL},
        {"GET", "http://127.0.0.1/ HTTP/1.1\r\nX-Forged: 1\r\n", NULL},
        {"GET / HTTP/1.1\r\nX: 1\r\n\r\n", "http://127.0.0.1/", NULL},
        {"", "http://127.0.0.1/", NULL},
        {"GET", "http://127.0.0.1/", "X-Test: 1\r\nX-Forged: 2"},
        {"GET", "http://127.0.0.1/", "no colon"},
    };
    struct peer *peer = *state;

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        ask_and_wait(peer, (struct http_call){.method = calls[i].method,
                                              .url = calls[i].url,
                                              .headers = (const char *[]){calls[i].header, NULL}});
        if (peer->last_error.code != ERR_INVALID)
            fail_msg("call %zu: %d %s", i, peer->last_error.code, peer->last_error.text);
        assert_false(peer->last_error.recoverable);
        assert_int_equal(peer->last_status, 0);
    }
}

/* Asks for what gets no whole answer in time, with a little more time until the server has seen
 * one: how much that takes is up to the machine. */
static void ask_in_vain(struct peer *peer, const char *url)
{
    for (uint64_t timeout_ms = 30; peer->late_seen == 0; timeout_ms *= 2) {
        peer->trace[0] = '\0';
        ask_and_wait(peer, (struct http_call){.url = url, .timeout_ms = timeout_ms});
        assert_int_equal(peer->last_error.code, ERR_TIMEOUT);
    }
}

static void test_answer_that_does_not_come_times_out(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    ask_in_vain(peer, "/late");
    assert_true(peer->last_error.recoverable);
    if (strstr(peer->trace, "closed ") == NULL)
        loop_run(peer->loop);
    assert_string_equal(peer->trace, "failed closed ");
}

static void test_stream_that_stops_times_out(void **state)
{
    struct peer *peer = *state;

    ask_in_vain(peer, "/stream");
    assert_int_equal(peer->last_status, 0); /* 200 came, but not the whole answer */
    http_stream_end(peer->late[0]);
    peer->late_count = 0;
}

static void break_off(struct peer *peer)
{
    (void)http_stream_write(peer->late[0], "half", 4);
    loop_stop(peer->loop);
}

static void test_answer_that_breaks_off_is_an_error(void **state)
{
    struct peer *peer = *state;

    peer->on_late = break_off;
    peer->watch_close = true;
    (void)ask(peer, (struct http_call){.url = "/stream"});
    loop_run(peer->loop);
    http_server_free(peer->server);
    peer->server = NULL;
    loop_run(peer->loop);
    assert_int_equal(peer->last_error.code, ERR_IO);
    assert_int_equal(peer->last_status, 0);
}

static void test_body_of_an_answer_is_bounded(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/e", .body_bytes_max = 22});
    assert_int_equal(peer->last_error.code, ERR_LIMIT);
    assert_int_equal(peer->last_status, 0);
    ask_and_wait(peer, (struct http_call){.url = "/e", .body_bytes_max = 23});
    assert_string_equal(peer->last_body, "GET /e q=none x=none 0:");
}

/* An answer of a server that is not ours, given by a raw one. */
struct canned {
    struct io_work work;
    struct peer *peer;
    int fd;
    const char *bytes;
    size_t repeat;
};

static void canned_run(struct io_work *work)
{
    struct canned *canned = work->ctx;
    struct pollfd ready = {.fd = canned->fd, .events = POLLIN};
    char request[4096];

    if (poll(&ready, 1, 4000) != 1)
        return;
    int fd = accept4(canned->fd, NULL, NULL, SOCK_CLOEXEC);
    if (recv(fd, request, sizeof(request), 0) > 0)
        (void)send(fd, canned->bytes, strlen(canned->bytes), MSG_NOSIGNAL);
    for (size_t i = 0; i < canned->repeat; i++) {
        if (send(fd, "X-Filler: 0123456789\r\n", 22, MSG_NOSIGNAL) < 0)
            break;
    }
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, request, sizeof(request), 0) > 0)
        ; /* so that no reset destroys what was sent */
    close(fd);
}

static void canned_done(struct io_work *work)
{
    struct canned *canned = work->ctx;

    peer_replied(canned->peer);
}

static void ask_canned(struct peer *peer, const char *bytes, size_t repeat)
{
    struct canned canned = {.peer = peer, .bytes = bytes, .repeat = repeat};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    char url[64];

    canned.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(canned.fd, (struct sockaddr *)&at, length), 0);
    assert_return_code(listen(canned.fd, 1), 0);
    assert_return_code(getsockname(canned.fd, (struct sockaddr *)&at, &length), 0);
    (void)text_format(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(at.sin_port));
    peer->awaited = 1;
    io_work_submit(peer->loop, &canned.work, canned_run, canned_done, &canned);
    ask_and_wait(peer, (struct http_call){.url = url});
    close(canned.fd);
}

static void test_headers_of_an_answer_are_bounded(void **state)
{
    struct peer *peer = *state;

    ask_canned(peer, "HTTP/1.1 200 OK\r\n", 10000);
    assert_int_equal(peer->last_error.code, ERR_LIMIT);
}

static void test_interim_answers_are_skipped(void **state)
{
    struct peer *peer = *state;

    ask_canned(peer,
               "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n"
               "HTTP/1.1 200 OK\r\nX-Final:\t 2 \r\nConnection: close\r\n\r\nok",
               0);
    const struct http_reply reply = {.headers = peer->last_headers};
    char value[8];
    assert_int_equal(peer->last_status, 200);
    assert_string_equal(peer->last_body, "ok");
    assert_false(http_reply_header(&reply, "x-early", value, sizeof(value)));
    assert_true(http_reply_header(&reply, "x-final", value, sizeof(value)));
    assert_string_equal(value, "2");
}

static void test_answer_that_is_no_http_is_an_error(void **state)
{
    struct peer *peer = *state;

    ask_canned(peer, "SSH-2.0-OpenSSH_9.2\r\n", 0);
    assert_int_equal(peer->last_error.code, ERR_INVALID); /* of a protocol we do not speak */
    ask_canned(peer, "", 0);
    assert_int_equal(peer->last_error.code, ERR_IO);
    ask_canned(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", 0);
    assert_int_equal(peer->last_error.code, ERR_IO);
}

static bool refuse_piece(void *ctx, const char *bytes, size_t length)
{
    (void)bytes;
    (void)length;
    note(ctx, "piece ");
    return false;
}

static void test_consumer_that_has_enough_ends_the_call(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/e", .on_data = refuse_piece});
    assert_int_equal(peer->last_error.code, ERR_CANCELED);
    assert_string_equal(peer->trace, "piece canceled ");
}

static void test_body_of_a_refusal_is_not_streamed(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/moved?to=/e", .on_data = refuse_piece});
    assert_int_equal(peer->last_status, 302);
    assert_string_equal(peer->last_body, "elsewhere");
    assert_string_equal(peer->trace, "reply ");
}

static void test_redirects_are_followed_when_asked_and_only_to_http(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/moved?to=/e", .redirects_max = 1});
    assert_int_equal(peer->last_status, 200);
    assert_string_equal(peer->last_body, "GET /e q=none x=none 0:");
    ask_and_wait(peer, (struct http_call){.url = "/moved?to=/moved?to=/e", .redirects_max = 1});
    assert_int_equal(peer->last_error.code, ERR_LIMIT);
    ask_and_wait(peer,
                 (struct http_call){.url = "/moved?to=file:///etc/passwd", .redirects_max = 3});
    assert_int_equal(peer->last_error.code, ERR_INVALID);
    assert_string_equal(peer->last_body, "");
}

/* --- cancel --- */

static void test_cancel_before_the_first_turn(void **state)
{
    struct peer *peer = *state;

    http_cancel(ask(peer, (struct http_call){.url = "/e"}));
    assert_string_equal(peer->trace, "canceled ");
    assert_int_equal(peer->last_error.code, ERR_CANCELED);
    loop_run(peer->loop); /* uses up the stop that came with the reply */
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    assert_string_equal(peer->trace, "canceled reply ");
}

static bool cancel_itself(void *ctx, const char *bytes, size_t length)
{
    struct peer *peer = ctx;
    (void)bytes;
    (void)length;

    http_cancel(peer->request);
    note(peer, "after ");
    return true;
}

static void test_cancel_from_inside_on_data(void **state)
{
    struct peer *peer = *state;

    ask_and_wait(peer, (struct http_call){.url = "/e", .on_data = cancel_itself});
    ask_and_wait(peer, (struct http_call){.url = "/e"}); /* the library is still in order */
    assert_string_equal(peer->trace, "canceled after reply ");
}

static struct http_request *others[2];

static bool cancel_and_start_others(void *ctx, const char *bytes, size_t length)
{
    struct peer *peer = ctx;
    (void)bytes;
    (void)length;

    note(peer, "piece ");
    for (size_t i = 0; i < COUNT_OF(others); i++)
        http_cancel(others[i]);
    (void)ask(peer, (struct http_call){.url = "/e"});
    return true;
}

static void test_cancel_and_start_of_others_from_inside_on_data(void **state)
{
    struct peer *peer = *state;

    peer->watch_close = true;
    peer->late_wanted = 1;
    others[0] = ask(peer, (struct http_call){.url = "/late"});
    loop_run(peer->loop); /* with the server by now */
    peer->late_wanted = 0;
    (void)ask(peer, (struct http_call){.url = "/e", .on_data = cancel_and_start_others});
    others[1] = ask(peer, (struct http_call){.url = "/late"});
    loop_run(peer->loop);
    assert_int_equal(peer->awaited, 0);
    /* That the server noticed may be told at any time among these. */
    assert_true(text_starts_with(peer->trace, "piece canceled canceled "));
    assert_non_null(strstr(peer->trace, "reply "));
    peer->watch_close = false;
}

static void cancel_other(void *ctx, const struct http_reply *reply)
{
    struct http_request *other = others[0];

    on_reply(ctx, reply);
    others[0] = NULL;
    if (other != NULL)
        http_cancel(other);
}

/* Two that end in the same iteration, the first of which cancels the second. */
static void test_cancel_of_one_that_is_done_but_not_told(void **state)
{
    struct peer *peer = *state;
    static const char *const bad[] = {"X: \n", NULL};

    (void)ask(peer, (struct http_call){.url = "/e", .headers = bad, .cb = cancel_other});
    others[0] = ask(peer, (struct http_call){.url = "/e", .headers = bad});
    loop_run(peer->loop);
    assert_string_equal(peer->trace, "failed canceled ");
}

static void test_loop_freed_with_calls_in_flight_cancels_them(void **state)
{
    struct peer *peer = *state;

    peer->late_wanted = 2;
    (void)ask(peer, (struct http_call){.url = "/late"});
    (void)ask(peer, (struct http_call){.url = "/stream"});
    loop_run(peer->loop);
    (void)ask(peer, (struct http_call){.url = "/e"}); /* not even begun */
    http_server_free(peer->server);
    peer->server = NULL;
    for (unsigned i = 0; i < 2; i++) { /* the handler's part, to nobody */
        if (text_equal(http_path(peer->late[i]), "/late"))
            http_respond(peer->late[i], 200, NULL, NULL, 0, NULL, 0);
        else
            http_stream_end(peer->late[i]);
    }
    loop_free(peer->loop);
    assert_string_equal(peer->trace, "canceled canceled canceled ");
    peer->loop = loop_new();
}

static void test_proxy_of_the_environment_is_not_used_for_this_machine(void **state)
{
    struct peer *peer = *state;

    assert_return_code(setenv("http_proxy", "http://127.0.0.1:1/", 1), 0);
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    assert_int_equal(peer->last_status, 200);
    ask_and_wait(peer, (struct http_call){.url = "http://192.0.2.1/", .timeout_ms = 2000});
    assert_int_equal(peer->last_error.code, ERR_AGAIN); /* the proxy was asked, and is not there */
    assert_return_code(unsetenv("http_proxy"), 0);
}

static void test_many_calls_at_once_are_all_answered(void **state)
{
    enum { MANY = 150 };
    struct peer *peer = *state;

    for (int i = 0; i < MANY; i++)
        (void)ask(peer, (struct http_call){.url = "/e"});
    loop_run(peer->loop);
    assert_int_equal(peer->awaited, 0);
    assert_null(strstr(peer->trace, "failed"));
    assert_int_equal(strlen(peer->trace), MANY * strlen("reply "));
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

static void test_waiting_for_an_answer_does_not_wake(void **state)
{
    struct peer *peer = *state;
    struct io_before_sleep counter = {0};
    unsigned iterations = 0;

    peer->late_wanted = 1;
    (void)ask(peer, (struct http_call){.url = "/late"});
    loop_run(peer->loop);
    /* The library looks again a few times within its first second; then it has nothing to do. */
    io_timer_start(peer->loop, &peer->timer, loop_now_ms() + 1500, stop_from_timer, peer);
    loop_run(peer->loop);
    io_before_sleep_start(peer->loop, &counter, count_iterations, &iterations);
    io_timer_start(peer->loop, &peer->timer, loop_now_ms() + 500, stop_from_timer, peer);
    loop_run(peer->loop);
    assert_true(iterations <= 2);
    io_before_sleep_stop(&counter);
    http_respond(peer->late[0], 200, NULL, NULL, 0, NULL, 0);
    loop_run(peer->loop);
    assert_int_equal(peer->last_status, 200);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, peer_set_up, peer_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_nobody_listening_is_said_at_once),
        TEST(test_missing_unix_socket_is_no_connection),
        TEST(test_what_no_request_can_be_made_of_is_invalid),
        TEST(test_answer_that_does_not_come_times_out),
        TEST(test_stream_that_stops_times_out),
        TEST(test_answer_that_breaks_off_is_an_error),
        TEST(test_body_of_an_answer_is_bounded),
        TEST(test_headers_of_an_answer_are_bounded),
        TEST(test_interim_answers_are_skipped),
        TEST(test_answer_that_is_no_http_is_an_error),
        TEST(test_consumer_that_has_enough_ends_the_call),
        TEST(test_body_of_a_refusal_is_not_streamed),
        TEST(test_redirects_are_followed_when_asked_and_only_to_http),
        TEST(test_cancel_before_the_first_turn),
        TEST(test_cancel_from_inside_on_data),
        TEST(test_cancel_and_start_of_others_from_inside_on_data),
        TEST(test_cancel_of_one_that_is_done_but_not_told),
        TEST(test_loop_freed_with_calls_in_flight_cancels_them),
        TEST(test_proxy_of_the_environment_is_not_used_for_this_machine),
        TEST(test_many_calls_at_once_are_all_answered),
        TEST(test_waiting_for_an_answer_does_not_wake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
