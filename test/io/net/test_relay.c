/* Relays: bytes go both ways whole and in order, ends are told, and who cannot be reached costs who
 * came his connection and nobody else anything. */
#include "io/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT_MS = 10 * 1000, MANY = 300 * 1000 };

static struct loop *loop;
static char directory[64];
static int directory_fd, server;
static char target[128];
static struct relay *relay;

static struct sockaddr_un address_of(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert_true(text_format(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name));
    return address;
}

static int setup(void **state)
{
    struct sockaddr_un address;

    (void)state;
    (void)text_copy(directory, sizeof(directory), "/tmp/cairn-relay-XXXXXX");
    assert_non_null(mkdtemp(directory));
    directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory_fd >= 0);
    address = address_of("server");
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_true(text_format(target, sizeof(target), "unix:%s/server", directory));
    loop = loop_new();
    assert_non_null(loop);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    relay_close(relay);
    relay = NULL;
    loop_free(loop);
    (void)close(server);
    (void)close(directory_fd);
    assert_true(text_format(command, sizeof(command), "%s/server", directory));
    (void)unlink(command);
    assert_true(text_format(command, sizeof(command), "%s/door", directory));
    (void)unlink(command);
    return rmdir(directory);
}

static void open_relay(unsigned connections_max)
{
    const struct http_admission admits = {.mode = 0600};
    struct err err = {0};

    if (relay_open(loop, directory_fd, "door", &admits, target, connections_max, &relay, &err) != 0)
        fail_msg("%s", err.text);
}

static int come(void)
{
    struct sockaddr_un address = address_of("door");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void stop(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

static void turn(void)
{
    struct io_timer timer = {0};

    io_timer_start(loop, &timer, loop_now_ms() + 2, stop, loop);
    loop_run(loop);
}

static void turn_until(bool (*is_done)(void *ctx), void *ctx)
{
    uint64_t until_ms = loop_now_ms() + LIMIT_MS;

    while (!is_done(ctx)) {
        if (loop_now_ms() > until_ms)
            fail_msg("nothing comes");
        turn();
    }
}

static bool has_come(void *ctx)
{
    *(int *)ctx = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return *(int *)ctx >= 0;
}

static int led(void)
{
    int fd;

    turn_until(has_come, &fd);
    return fd;
}

/* Reads and writes of one end. */
struct end {
    int fd;
    size_t sent, got;
    bool ended;
};

static bool has_got_all(void *ctx)
{
    struct end *ends = ctx;
    unsigned char bytes[4096];

    if (ends[0].sent < MANY) {
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (unsigned char)((ends[0].sent + i) % 251);
        size_t wanted = MANY - ends[0].sent;
        ssize_t put =
            send(ends[0].fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), MSG_NOSIGNAL);
        ends[0].sent += put > 0 ? (size_t)put : 0;
        if (ends[0].sent == MANY)
            assert_int_equal(shutdown(ends[0].fd, SHUT_WR), 0);
    }
    ssize_t got = recv(ends[1].fd, bytes, sizeof(bytes), 0);
    for (ssize_t i = 0; i < got; i++)
        assert_int_equal(bytes[i], (ends[1].got + (size_t)i) % 251);
    ends[1].got += got > 0 ? (size_t)got : 0;
    ends[1].ended = got == 0;
    return ends[1].ended;
}

static bool is_over(void *ctx)
{
    char byte;

    return recv(*(int *)ctx, &byte, 1, 0) == 0;
}

static void test_bytes_go_both_ways_and_ends_are_told(void **state)
{
    int fd, other;

    (void)state;
    open_relay(4);
    fd = come();
    other = led();
    struct end there[] = {{.fd = fd}, {.fd = other}}, back[] = {{.fd = other}, {.fd = fd}};
    turn_until(has_got_all, there);
    assert_int_equal(there[1].got, MANY);
    turn_until(has_got_all, back); /* one direction is over, and the other is not */
    assert_int_equal(back[1].got, MANY);
    (void)close(fd);
    (void)close(other);
}

static void test_who_cannot_be_reached_ends_who_came(void **state)
{
    int fd;

    (void)state;
    open_relay(1);
    relay_aim(relay, "unix:/nonexistent/socket");
    for (int i = 0; i < 3; i++) { /* each leaves its place */
        fd = come();
        turn_until(is_over, &fd);
        (void)close(fd);
    }
    relay_aim(relay, "no address");
    fd = come();
    turn_until(is_over, &fd);
    (void)close(fd);
    relay_aim(relay, target);
    fd = come();
    (void)close(led());
    turn_until(is_over, &fd);
    (void)close(fd);
}

static void test_more_than_there_may_be_wait(void **state)
{
    int first, second, one, other;

    (void)state;
    open_relay(1);
    first = come();
    one = led();
    second = come();
    for (int i = 0; i < 20; i++)
        turn();
    assert_true(accept4(server, NULL, NULL, SOCK_CLOEXEC) < 0);
    (void)close(one);
    (void)close(first);
    other = led();
    (void)close(other);
    turn_until(is_over, &second);
    (void)close(second);
}

static void test_closing_ends_all_and_the_next_takes_its_place(void **state)
{
    const struct http_admission admits = {.mode = 0600};
    struct relay *second;
    struct err err;
    int fd, other;

    (void)state;
    open_relay(4);
    fd = come();
    other = led();
    (void)come(); /* which is not led yet */
    turn();
    assert_int_equal(relay_open(loop, directory_fd, "door", &admits, target, 4, &second, &err),
                     ERR_EXISTS);
    relay_close(relay);
    relay = NULL;
    turn_until(is_over, &fd);
    turn_until(is_over, &other);
    (void)close(fd);
    (void)close(other);
    open_relay(4);
    fd = come();
    other = led();
    (void)close(other);
    (void)close(fd);
}

static void test_addresses_are_those_of_networks_too(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int fd, other;

    (void)state;
    (void)close(server);
    server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (const struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
    open_relay(4);
    for (size_t i = 0; i < 2; i++) {
        char text[64];

        (void)snprintf(text, sizeof(text), i == 0 ? "127.0.0.1:%u" : "localhost:%u",
                       (unsigned)ntohs(address.sin_port));
        relay_aim(relay, text);
        fd = come();
        other = led();
        (void)close(other);
        (void)close(fd);
    }
}

/* --- who does not answer --- */

static void do_nothing(struct io_work *work)
{
    (void)work;
}

static void note_done(struct io_work *work)
{
    *(bool *)work->ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

/* A listener whose queue is full lets who comes wait for a long time; many of them wait for it
 * here, and nobody else for them. */
static void test_one_that_does_not_answer_keeps_nobody_from_working(void **state)
{
    enum { FILLERS = 8, GUESTS = 16 };
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    int fillers[FILLERS], guests[GUESTS];
    bool done = false;
    struct io_work work;
    char text[64], byte;

    (void)state;
    (void)close(server);
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (const struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server, 0), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (const struct sockaddr *)&address, length); /* or not yet */
    }
    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    open_relay(GUESTS);
    relay_aim(relay, text);
    for (int i = 0; i < GUESTS; i++) {
        guests[i] = come();
        turn();
    }
    io_work_submit(loop, &work, do_nothing, note_done, &done);
    turn_until(is_set, &done);
    for (int i = 0; i < GUESTS; i++) { /* who still waits */
        assert_int_equal(recv(guests[i], &byte, 1, 0), -1);
        (void)close(guests[i]);
    }
    for (int i = 0; i < FILLERS; i++)
        (void)close(fillers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_go_both_ways_and_ends_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_cannot_be_reached_ends_who_came, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_there_may_be_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closing_ends_all_and_the_next_takes_its_place, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_addresses_are_those_of_networks_too, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_does_not_answer_keeps_nobody_from_working,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
