/* Room for those who come: whoever does nothing with a connection, and whoever sends or is sent
 * much, keeps nobody from a short request. */
#include "io/net/connection.h"
#include "test/io/net/http_peer.h"

#include <fcntl.h>
#include <sys/resource.h>

enum { LARGE = 150000, SHORT = 60000, PLACES = 8 };

static char large[LARGE];

/* /large gets a large answer, /rest is told how long its body was; the others as in http_peer.h. */
static void handle(void *ctx, struct http_exchange *exchange)
{
    char text[32];
    size_t length;

    if (text_equal(http_path(exchange), "/large")) {
        http_respond(exchange, 200, NULL, NULL, 0, large, sizeof(large));
    } else if (text_equal(http_path(exchange), "/length")) {
        (void)http_body(exchange, &length); /* only its length is asked for */
        (void)text_format(text, sizeof(text), "%zu", length);
        http_respond(exchange, 200, NULL, NULL, 0, text, strlen(text));
    } else {
        peer_handle(ctx, exchange);
    }
}

static void start(struct peer *peer, size_t bytes_max)
{
    struct http_listen listen = peer_listen(peer);

    memset(large, 'x', sizeof(large));
    listen.connections_max = PLACES;
    listen.body_bytes_max = 1 << 20;
    listen.bodies_bytes_max = listen.answers_bytes_max = bytes_max;
    listen.handle = handle;
    peer_start(peer, &listen);
}

/* True if COUNT connections are there, with a request whose head has come if BEGUN. */
static bool has_connections(struct peer *peer, unsigned count, bool begun)
{
    unsigned found = 0;

    for (struct connection *at = peer->server->connections; at != NULL; at = at->next)
        found += !begun || (at->exchange != NULL && at->exchange->begun);
    return found >= count;
}

struct until {
    struct io_before_sleep before;
    struct peer *peer;
    unsigned count;
    bool begun;
};

static bool look(void *ctx)
{
    struct until *until = ctx;

    if (has_connections(until->peer, until->count, until->begun))
        loop_stop(until->peer->loop);
    return false;
}

static void run_until(struct peer *peer, unsigned count, bool begun)
{
    struct until until = {.peer = peer, .count = count, .begun = begun};

    io_before_sleep_start(peer->loop, &until.before, look, &until);
    loop_run(peer->loop);
    io_before_sleep_stop(&until.before);
}

static void send_all(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void fill(struct peer *peer, int fds[PLACES], unsigned from, unsigned to, const char *bytes)
{
    for (unsigned i = from; i < to; i++) {
        fds[i] = raw_connect(peer);
        send_all(fds[i], bytes);
    }
    run_until(peer, to < PLACES - 1 ? to : PLACES - 1, strstr(bytes, "\r\n\r\n") != NULL);
}

static void close_all(int fds[PLACES], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

/* Their time is over, without waiting for it. */
static void let_pass(struct peer *peer)
{
    for (struct connection *at = peer->server->connections; at != NULL; at = at->next)
        at->since_ms -= 60000;
}

static void assert_answered(struct peer *peer)
{
    ask_and_wait(peer, (struct http_call){.url = "/e"});
    assert_int_equal(peer->last_status, 200);
}

static void test_who_does_nothing_makes_room(void **state)
{
    static const char *const beginnings[] = {
        "", "GET / HT", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhell"};
    struct peer *peer = *state;
    int fds[PLACES];

    for (size_t i = 0; i < COUNT_OF(beginnings); i++) {
        start(peer, 0);
        peer->server->arrive_ms = 3600000; /* that is not what ends them */
        fill(peer, fds, 0, PLACES, beginnings[i]);
        let_pass(peer);
        assert_answered(peer);
        close_all(fds, PLACES);
    }
}

static void test_idle_connections_make_room_by_themselves(void **state)
{
    struct peer *peer = *state;
    int fds[PLACES];

    start(peer, 0);
    fill(peer, fds, 0, PLACES, "");
    assert_answered(peer); /* without anybody's help, in about a second */
    close_all(fds, PLACES);
}

static void test_who_does_not_take_his_answer_makes_room(void **state)
{
    struct peer *peer = *state;
    const int little = 4096;
    int fds[PLACES];

    start(peer, 0);
    for (unsigned i = 0; i < PLACES; i++) {
        fds[i] = raw_connect(peer);
        assert_return_code(setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
        for (int more = 0; more < 40; more++) /* six megabytes do not fit between the two */
            send_all(fds[i], "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    run_until(peer, PLACES - 1, true);
    let_pass(peer);
    assert_answered(peer);
    close_all(fds, PLACES);
}

static void test_who_waits_for_an_answer_is_left_alone(void **state)
{
    struct peer *peer = *state;
    int fds[PLACES];
    char got[256] = "";

    start(peer, 0);
    fill(peer, fds, 0, 1, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    peer->late_wanted = 1;
    if (peer->late_count < 1)
        loop_run(peer->loop);
    fill(peer, fds, 1, PLACES, "");
    let_pass(peer);
    assert_answered(peer);
    http_respond(peer->late[0], 200, NULL, NULL, 0, "late", 4);
    assert_answered(peer); /* the loop has had its turn */
    assert_true(recv(fds[0], got, sizeof(got) - 1, 0) > 0);
    assert_true(text_ends_with(got, "late"));
    close_all(fds, PLACES);
}

/* --- descriptors --- */

enum { FILLERS_MAX = 64 };

/* Opens all that may be opened. */
static unsigned use_up(int fillers[FILLERS_MAX], struct rlimit *ret_before)
{
    unsigned count = 0;

    assert_return_code(getrlimit(RLIMIT_NOFILE, ret_before), 0);
    const struct rlimit few = {.rlim_cur = count_descriptors() + FILLERS_MAX / 2,
                               .rlim_max = ret_before->rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count < FILLERS_MAX && (fillers[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    assert_true(count < FILLERS_MAX);
    assert_int_equal(errno, EMFILE);
    return count;
}

static void give_back(const int fillers[FILLERS_MAX], unsigned count, const struct rlimit *before)
{
    for (unsigned i = 0; i < count; i++)
        close(fillers[i]);
    assert_return_code(setrlimit(RLIMIT_NOFILE, before), 0);
}

static bool count_turns(void *ctx)
{
    ++*(unsigned *)ctx;
    return false;
}

static void stop_loop(struct io_timer *timer)
{
    loop_stop(timer->loop);
}

static void run_for(struct peer *peer, uint64_t ms)
{
    struct io_timer timer = {0};

    io_timer_start(peer->loop, &timer, loop_now_ms() + ms, stop_loop, NULL);
    loop_run(peer->loop);
}

static void test_without_descriptors_one_gets_in_at_a_time_and_nothing_spins(void **state)
{
    static const char request[] = "GET /e HTTP/1.1\r\nHost: a\r\n\r\n";
    struct peer *peer = *state;
    struct io_before_sleep counter = {0};
    int fillers[FILLERS_MAX], fds[2];
    struct rlimit before;
    unsigned turns = 0;
    char got[1024];

    start(peer, 0);
    run_for(peer, 1); /* what the loop needs it has */
    for (size_t i = 0; i < 2; i++) {
        fds[i] = raw_connect(peer);
        send_all(fds[i], request);
    }
    unsigned count = use_up(fillers, &before);
    io_before_sleep_start(peer->loop, &counter, count_turns, &turns);
    run_for(peer, 500);
    io_before_sleep_stop(&counter);
    assert_true(turns < 100);
    assert_true(recv(fds[0], got, sizeof(got), MSG_DONTWAIT) > 0);
    assert_int_equal(recv(fds[1], got, sizeof(got), MSG_DONTWAIT), -1);
    close(fds[0]);
    while (recv(fds[1], got, sizeof(got), MSG_DONTWAIT) <= 0)
        run_for(peer, 50);
    close(fds[1]);
    give_back(fillers, count, &before);
    assert_answered(peer);
}

/* --- memory --- */

static const struct http_call put_large = {
    .method = "PUT", .url = "/length", .body = large, .body_length = LARGE};
static const struct http_call put_short = {
    .method = "PUT", .url = "/length", .body = large, .body_length = SHORT};

static void test_large_bodies_share_what_there_is(void **state)
{
    struct peer *peer = *state;
    char head[128];

    start(peer, 100000);
    ask_and_wait(peer, put_large); /* alone it has all */
    assert_string_equal(peer->last_body, "150000");

    int fd = raw_connect(peer);
    (void)text_format(head, sizeof(head),
                      "PUT /length HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", LARGE);
    send_all(fd, head);
    assert_int_equal(send(fd, large, LARGE - 1, MSG_NOSIGNAL), LARGE - 1);
    while (peer->server->bodies.used == 0)
        assert_answered(peer);
    ask_and_wait(peer, put_large);
    assert_int_equal(peer->last_status, 503);
    ask_and_wait(peer, put_short); /* what is short has room of its own */
    assert_string_equal(peer->last_body, "60000");
    close(fd);
    while (peer->server->bodies.used != 0)
        assert_answered(peer);
    ask_and_wait(peer, put_large);
    assert_string_equal(peer->last_body, "150000");
    assert_int_equal(peer->server->bodies.used, 0);
}

static void test_body_that_was_taken_counts_no_more(void **state)
{
    struct peer *peer = *state;
    size_t length;

    start(peer, 100000);
    peer->late_wanted = 1;
    (void)ask(peer, (struct http_call){
                        .method = "PUT", .url = "/late", .body = large, .body_length = LARGE});
    loop_run(peer->loop);
    assert_true(peer->server->bodies.used > 0);
    char *body = http_take_body(peer->late[0], &length);
    assert_int_equal(length, LARGE);
    assert_memory_equal(body, large, LARGE);
    assert_int_equal(peer->server->bodies.used, 0);
    free(body);
    http_respond(peer->late[0], 200, NULL, NULL, 0, NULL, 0);
    loop_run(peer->loop);
    assert_int_equal(peer->last_status, 200);
}

static void test_large_answers_share_what_there_is(void **state)
{
    struct peer *peer = *state;
    const int little = 4096;

    start(peer, 100000);
    int fd = raw_connect(peer);
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    for (int more = 0; more < 40; more++)
        send_all(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    while (peer->server->answers.used == 0)
        assert_answered(peer);
    while (peer->last_status == 200)
        ask_and_wait(peer, (struct http_call){.url = "/large"});
    assert_int_equal(peer->last_status, 503);
    assert_answered(peer);
    close(fd);
    while (peer->server->answers.used != 0)
        assert_answered(peer);
    ask_and_wait(peer, (struct http_call){.url = "/large"});
    assert_int_equal(peer->last_status, 200);
}

/* --- doors --- */

static struct http_door *open_door(struct peer *peer, const char *name, int code)
{
    struct http_door *door = NULL;
    struct err err = {0};
    int directory = open(peer->scratch->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_true(directory >= 0);
    assert_int_equal(
        http_door_open(peer->server, directory, name, &(struct http_admission){0}, 2, &door, &err),
        code);
    close(directory);
    return door;
}

static int connect_door(struct peer *peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(text_copy(address.sun_path, sizeof(address.sun_path), at(peer->scratch, "door")));
    assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void test_who_fills_a_door_leaves_the_others_alone(void **state)
{
    struct peer *peer = *state;
    int fds[4];

    start(peer, 0);
    struct http_door *door = open_door(peer, "door", 0);
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        fds[i] = connect_door(peer);
    while (door->connections_count < 2)
        assert_answered(peer);
    assert_answered(peer);
    assert_int_equal(door->connections_count, 2);
    close(fds[0]);
    close(fds[1]);
    send_all(fds[2], "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    struct pollfd heard = {.fd = fds[2], .events = POLLIN};
    while (poll(&heard, 1, 0) == 0) /* who waited has their places */
        assert_answered(peer);
    http_door_close(door);
    close(fds[2]);
    close(fds[3]);
}

static void test_a_door_that_is_closed_ends_who_came_by_it(void **state)
{
    struct peer *peer = *state;
    char byte;

    start(peer, 0);
    struct http_door *door = open_door(peer, "door", 0);
    peer->watch_close = true;
    peer->late_wanted = 1;
    int fd = connect_door(peer);
    send_all(fd, "GET /late HTTP/1.1\r\nHost: a\r\n\r\n");
    loop_run(peer->loop);
    assert_true(http_is_local(peer->late[0]));
    http_door_close(door);
    assert_string_equal(peer->trace, "closed ");
    loop_run(peer->loop); /* who was told has stopped it */
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    assert_answered(peer);
    close(fd);
    http_door_close(open_door(peer, "door", 0)); /* in place of the one that nobody listens on */
}

static void test_a_door_takes_the_place_of_no_file_and_follows_no_link(void **state)
{
    struct peer *peer = *state;
    char file[PATH_SIZE];

    start(peer, 0);
    (void)text_copy(file, sizeof(file), at(peer->scratch, "file"));
    close(creat(file, 0644));
    assert_return_code(symlink(file, at(peer->scratch, "link")), 0);
    (void)open_door(peer, "file", ERR_EXISTS);
    (void)open_door(peer, "link", ERR_EXISTS);
    assert_int_equal(mode_of(file), 0644);
}

#define WITH_PEER(test) cmocka_unit_test_setup_teardown(test, peer_set_up, peer_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PEER(test_who_does_nothing_makes_room),
        WITH_PEER(test_idle_connections_make_room_by_themselves),
        WITH_PEER(test_who_does_not_take_his_answer_makes_room),
        WITH_PEER(test_who_waits_for_an_answer_is_left_alone),
        WITH_PEER(test_without_descriptors_one_gets_in_at_a_time_and_nothing_spins),
        WITH_PEER(test_large_bodies_share_what_there_is),
        WITH_PEER(test_body_that_was_taken_counts_no_more),
        WITH_PEER(test_large_answers_share_what_there_is),
        WITH_PEER(test_who_fills_a_door_leaves_the_others_alone),
        WITH_PEER(test_a_door_that_is_closed_ends_who_came_by_it),
        WITH_PEER(test_a_door_takes_the_place_of_no_file_and_follows_no_link),
    };
    return cmocka_run_group_tests_name("io_net_room", tests, NULL, NULL);
}
