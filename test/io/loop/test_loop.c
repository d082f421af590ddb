/* The loop: order of callbacks, timers, watches, signals, and that an idle loop does not wake. */
#include "io/loop.h"

#include "base/base.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct loop *loop;
    char trace[256]; /* one letter for each callback */
    struct io_timer timers[8];
    struct io_watch watches[2];
    struct io_before_sleep before_sleep[3];
    int sockets[2];
    unsigned rounds;
    uint64_t last_ms;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->loop = loop_new();
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fixture->sockets), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    loop_free(fixture->loop);
    close(fixture->sockets[0]);
    close(fixture->sockets[1]);
    free(fixture);
    return 0;
}

static void trace(struct fixture *fixture, const char *letter)
{
    assert_true(text_append(fixture->trace, sizeof(fixture->trace), letter));
}

static void on_timer(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;
    char letter[2] = {(char)('a' + (timer - fixture->timers)), '\0'};

    trace(fixture, letter);
}

static void on_timer_stop(struct io_timer *timer)
{
    on_timer(timer);
    loop_stop(timer->loop);
}

static void test_run_with_nothing_armed_returns(void **state)
{
    struct fixture *fixture = *state;

    loop_run(fixture->loop);
    loop_run(fixture->loop); /* and can be called again */
}

static void test_stop_before_run_is_not_lost(void **state)
{
    struct fixture *fixture = *state;

    io_timer_start(fixture->loop, &fixture->timers[0], 0, on_timer, fixture);
    loop_stop(fixture->loop);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "");
    loop_run(fixture->loop); /* the stop has been used up */
    assert_string_equal(fixture->trace, "a");
}

static void test_timers_fire_by_deadline_then_by_arming(void **state)
{
    struct fixture *fixture = *state;
    uint64_t now_ms = loop_now_ms();

    io_timer_start(fixture->loop, &fixture->timers[0], now_ms + 9, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], now_ms + 3, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], 0, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[3], now_ms + 3, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[4], now_ms + 1, on_timer, fixture);
    assert_string_equal(fixture->trace, ""); /* never inside the call that arms */
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "cebda");
    assert_true(loop_now_ms() >= now_ms + 9);
}

static void test_timer_armed_again_moves(void **state)
{
    struct fixture *fixture = *state;
    uint64_t now_ms = loop_now_ms();

    io_timer_start(fixture->loop, &fixture->timers[0], now_ms + 3600000, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], now_ms + 2, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[0], now_ms + 1, on_timer, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "ab");
}

static void stop_the_others(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    on_timer(timer);
    for (size_t i = 0; i < COUNT_OF(fixture->timers); i++)
        io_timer_stop(&fixture->timers[i]); /* itself too, which does nothing */
}

static void test_timer_stopped_by_a_due_one_does_not_fire(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT_OF(fixture->timers); i++)
        io_timer_start(fixture->loop, &fixture->timers[i], i, stop_the_others, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "a");
}

/* A deadline in the past, again and again, as a machine with a bug would do it. */
static void arm_again(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    fixture->rounds++;
    io_timer_start(timer->loop, timer, 0, arm_again, fixture);
}

static void on_readable_stop(struct io_watch *watch, int events)
{
    assert_int_equal(events, IO_READABLE);
    loop_stop(watch->loop);
}

static void test_timer_that_arms_itself_does_not_starve_descriptors(void **state)
{
    struct fixture *fixture = *state;

    io_timer_start(fixture->loop, &fixture->timers[0], 0, arm_again, fixture);
    assert_int_equal(write(fixture->sockets[0], "x", 1), 1);
    io_watch_start(fixture->loop, &fixture->watches[0], fixture->sockets[1], IO_READABLE,
                   on_readable_stop, fixture);
    loop_run(fixture->loop);
    assert_true(fixture->rounds > 0);
    io_timer_stop(&fixture->timers[0]);
    io_watch_stop(&fixture->watches[0]);
}

/* Two that arm themselves at a time long past, and one that waits for its turn behind them. */
static void test_timer_that_arms_itself_does_not_starve_timers(void **state)
{
    struct fixture *fixture = *state;

    io_timer_start(fixture->loop, &fixture->timers[0], 0, arm_again, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], 1, arm_again, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], loop_now_ms(), on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "c");
    assert_int_equal(fixture->rounds, 2); /* each of them once before it */
    io_timer_stop(&fixture->timers[0]);
    io_timer_stop(&fixture->timers[1]);
}

static void on_work_done(struct io_work *work)
{
    loop_stop(work->loop);
}

static void no_work(struct io_work *work)
{
    (void)work; /* that it was done is all */
}

static void test_timer_that_arms_itself_does_not_starve_work(void **state)
{
    struct fixture *fixture = *state;
    struct io_work work = {0};

    io_timer_start(fixture->loop, &fixture->timers[0], 0, arm_again, fixture);
    io_work_submit(fixture->loop, &work, no_work, on_work_done, fixture);
    loop_run(fixture->loop);
    io_timer_stop(&fixture->timers[0]);
}

/* The letter, then moves the next timers: b to a time past, c to the far future; e, which stops the
 * loop, comes behind b. */
static void move_the_next(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    on_timer(timer);
    if (timer == &fixture->timers[0]) {
        io_timer_start(timer->loop, &fixture->timers[1], 0, on_timer, fixture);
        io_timer_start(timer->loop, &fixture->timers[2], loop_now_ms() + 3600000, on_timer,
                       fixture);
        io_timer_start(timer->loop, &fixture->timers[4], 1, on_timer_stop, fixture);
    }
}

static void test_due_timer_moved_by_another_fires_at_its_new_time_only(void **state)
{
    struct fixture *fixture = *state;

    io_timer_start(fixture->loop, &fixture->timers[0], 1, move_the_next, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], 2, move_the_next, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], 3, move_the_next, fixture);
    io_timer_start(fixture->loop, &fixture->timers[3], 4, on_timer, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "adbe"); /* b in the round after, c not yet */
    io_timer_stop(&fixture->timers[2]);
}

static void stop_and_arm_again(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    on_timer(timer);
    for (size_t i = 1; i < 4; i++) {
        io_timer_stop(&fixture->timers[i]);
        io_timer_start(timer->loop, &fixture->timers[i], 4 - i, on_timer, fixture);
        if (i != 2)
            io_timer_stop(&fixture->timers[i]);
    }
}

static void test_due_timer_stopped_and_armed_in_turn_ends_as_it_was_left(void **state)
{
    struct fixture *fixture = *state;

    io_timer_start(fixture->loop, &fixture->timers[0], 0, stop_and_arm_again, fixture);
    for (size_t i = 1; i < 4; i++)
        io_timer_start(fixture->loop, &fixture->timers[i], i, on_timer, fixture);
    loop_run(fixture->loop); /* returns: nothing is counted twice */
    assert_string_equal(fixture->trace, "ac");
}

/* Timers that start, stop and move each other at random, against what was last asked of each. */
static struct {
    struct io_timer timers[64];
    bool armed[64];
    uint64_t at_ms[64];
    struct rng rng;
    unsigned calls;
} jumble;

static void on_jumble(struct io_timer *timer)
{
    size_t self = (size_t)(timer - jumble.timers);

    assert_true(jumble.armed[self]);
    assert_int_equal(timer->at_ms, jumble.at_ms[self]);
    assert_true(timer->at_ms <= loop_now_ms());
    jumble.armed[self] = false;
    if (++jumble.calls > 20000)
        return; /* what is armed still fires, then nothing is left */
    for (size_t i = 0; i < 3; i++) {
        size_t which = rng_below(&jumble.rng, COUNT_OF(jumble.timers));

        jumble.armed[which] = rng_chance(&jumble.rng, 2, 3);
        jumble.at_ms[which] = loop_now_ms() - 10 + rng_below(&jumble.rng, 11);
        if (jumble.armed[which])
            io_timer_start(timer->loop, &jumble.timers[which], jumble.at_ms[which], on_jumble,
                           NULL);
        else
            io_timer_stop(&jumble.timers[which]);
    }
}

static void test_timers_that_move_each_other_fire_as_last_asked(void **state)
{
    struct fixture *fixture = *state;

    jumble.rng = rng_init(11);
    for (size_t i = 0; i < COUNT_OF(jumble.timers); i++) {
        jumble.armed[i] = true;
        jumble.at_ms[i] = i;
        io_timer_start(fixture->loop, &jumble.timers[i], i, on_jumble, NULL);
    }
    loop_run(fixture->loop);
    assert_true(jumble.calls > 20000);
    for (size_t i = 0; i < COUNT_OF(jumble.timers); i++)
        assert_false(jumble.armed[i]);
}

static void on_sorted(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    assert_true(timer->at_ms >= fixture->last_ms);
    fixture->last_ms = timer->at_ms;
    fixture->rounds++;
}

static void test_thousand_timers_in_random_order_fire_sorted(void **state)
{
    enum { COUNT = 1000 };
    struct fixture *fixture = *state;
    static struct io_timer timers[COUNT];
    struct rng rng = rng_init(7);

    for (size_t i = 0; i < COUNT; i++)
        io_timer_start(fixture->loop, &timers[i], rng_below(&rng, 500), on_sorted, fixture);
    for (size_t i = 0; i < COUNT; i += 3)
        io_timer_stop(&timers[i]);
    for (size_t i = 0; i < COUNT; i += 6)
        io_timer_start(fixture->loop, &timers[i], rng_below(&rng, 500), on_sorted, fixture);

    loop_run(fixture->loop); /* returns when none is left */
    assert_int_equal(fixture->rounds, COUNT - 334 + 167);
}

static bool count_rounds(void *ctx)
{
    struct fixture *fixture = ctx;

    trace(fixture, "|");
    return ++fixture->rounds < 3;
}

static void test_before_sleep_runs_after_callbacks_and_polls_while_there_is_more(void **state)
{
    struct fixture *fixture = *state;

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], count_rounds, fixture);
    io_timer_start(fixture->loop, &fixture->timers[0], 0, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], loop_now_ms() + 3600000, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], loop_now_ms() + 20, on_timer_stop, fixture);
    loop_run(fixture->loop);
    /* One call before the first callback; polling through three; after that it sleeps, so that
     * there is one more call for the iteration of timer a at most, and none without a cause. */
    assert_true(text_starts_with(fixture->trace, "|a||"));
    assert_true(text_ends_with(fixture->trace, "c"));
    assert_true(strlen(fixture->trace) <= 6);
    io_timer_stop(&fixture->timers[1]);
}

static bool arm_timer_once(void *ctx)
{
    struct fixture *fixture = ctx;

    if (fixture->rounds++ == 0)
        io_timer_start(fixture->loop, &fixture->timers[0], loop_now_ms() + 1, on_timer, fixture);
    return false;
}

static void test_timer_armed_before_sleep_is_seen_by_that_sleep(void **state)
{
    struct fixture *fixture = *state;

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], arm_timer_once, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "a");
}

static bool say_first(void *ctx)
{
    struct fixture *fixture = ctx;

    trace(fixture, "1");
    return ++fixture->rounds < 3;
}

static bool say_third(void *ctx)
{
    trace(ctx, "3");
    return false;
}

/* Ends itself and its neighbour, which has not been called yet. */
static bool end_two(void *ctx)
{
    struct fixture *fixture = ctx;

    trace(fixture, "2");
    io_before_sleep_stop(&fixture->before_sleep[1]);
    io_before_sleep_stop(&fixture->before_sleep[2]);
    io_before_sleep_stop(&fixture->before_sleep[2]); /* not armed any more: nothing happens */
    return false;
}

static void test_each_before_sleep_is_called_and_one_that_has_more_suffices(void **state)
{
    struct fixture *fixture = *state;

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], say_first, fixture);
    io_before_sleep_start(fixture->loop, &fixture->before_sleep[2], say_third, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], loop_now_ms() + 20, on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "131313c");
}

static void test_before_sleep_may_end_itself_and_the_next_one(void **state)
{
    struct fixture *fixture = *state;

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], say_first, fixture);
    io_before_sleep_start(fixture->loop, &fixture->before_sleep[1], end_two, fixture);
    io_before_sleep_start(fixture->loop, &fixture->before_sleep[2], say_third, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], loop_now_ms() + 20, on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "1211c");
}

static bool arm_the_third(void *ctx)
{
    struct fixture *fixture = ctx;

    if (fixture->rounds++ == 0)
        io_before_sleep_start(fixture->loop, &fixture->before_sleep[2], say_third, fixture);
    return false;
}

static void test_before_sleep_armed_by_another_is_called_before_the_sleep(void **state)
{
    struct fixture *fixture = *state;

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], arm_the_third, fixture);
    io_timer_start(fixture->loop, &fixture->timers[2], loop_now_ms() + 20, on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "3c");
}

static void on_events(struct io_watch *watch, int events)
{
    struct fixture *fixture = watch->ctx;

    trace(fixture, events == IO_READABLE ? "r" : events == IO_WRITABLE ? "w" : "b");
    if (events == IO_WRITABLE) { /* change what is waited for, from inside */
        io_watch_start(watch->loop, watch, watch->fd, IO_READABLE, on_events, fixture);
        assert_int_equal(write(fixture->sockets[1], "x", 1), 1);
    } else {
        io_watch_stop(watch);
    }
}

static void test_watch_started_again_changes_its_events(void **state)
{
    struct fixture *fixture = *state;

    io_watch_start(fixture->loop, &fixture->watches[0], fixture->sockets[0], IO_WRITABLE, on_events,
                   fixture);
    loop_run(fixture->loop); /* returns: a stopped watch does not hold it */
    assert_string_equal(fixture->trace, "wr");
}

static void stop_both(struct io_watch *watch, int events)
{
    struct fixture *fixture = watch->ctx;

    trace(fixture, events == IO_WRITABLE ? "w" : "?");
    io_watch_stop(&fixture->watches[0]);
    io_watch_stop(&fixture->watches[1]);
}

static void test_watch_stopped_by_another_in_the_same_iteration_is_silent(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < 2; i++)
        io_watch_start(fixture->loop, &fixture->watches[i], fixture->sockets[i], IO_WRITABLE,
                       stop_both, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "w");
}

static void on_urgent(struct io_watch *watch, int events)
{
    struct fixture *fixture = watch->ctx;
    char byte;

    assert_int_equal(events, IO_URGENT);
    assert_int_equal(recv(watch->fd, &byte, 1, MSG_OOB), 1);
    trace(fixture, "u");
    io_watch_stop(watch);
}

/* TCP's out-of-band byte is POLLPRI as cgroup.events gives it, and needs no cgroup. */
static void test_urgent_watch_sees_priority_data_only(void **state)
{
    struct fixture *fixture = *state;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        fail_msg("no socket pair");
    if (send(pair[0], "!", 1, MSG_OOB) != 1) {
        close(pair[0]);
        close(pair[1]);
        print_message("skipped: this kernel has no out-of-band data on UNIX sockets\n");
        skip();
    }
    assert_int_equal(write(fixture->sockets[0], "x", 1), 1); /* plain data is not urgent */
    io_watch_start(fixture->loop, &fixture->watches[0], fixture->sockets[1], IO_URGENT, on_urgent,
                   fixture);
    io_watch_start(fixture->loop, &fixture->watches[1], pair[1], IO_URGENT, on_urgent, fixture);
    io_timer_start(fixture->loop, &fixture->timers[0], loop_now_ms() + 5, on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "ua");
    io_watch_stop(&fixture->watches[0]);
    close(pair[0]);
    close(pair[1]);
}

/* --- a crowd --- */

enum { CROWD = 24, CROWD_EACH_MS = IO_CROWD_MS / 4 };

struct crowd {
    struct fixture *fixture;
    struct io_watch watches[CROWD];
    int sockets[CROWD][2];
    unsigned called, calls[CROWD], iterations;
    unsigned stops; /* this one stops the last */
};

static void on_one_of_many(struct io_watch *watch, int events)
{
    struct crowd *crowd = watch->ctx;
    uint64_t until_ms = loop_now_ms() + CROWD_EACH_MS;

    assert_int_equal(events, IO_WRITABLE);
    while (loop_now_ms() < until_ms)
        ;
    crowd->calls[watch - crowd->watches]++;
    if (++crowd->called == crowd->stops)
        io_watch_stop(&crowd->watches[CROWD - 1]);
    io_watch_stop(watch);
}

static bool count_iterations(void *ctx)
{
    struct crowd *crowd = ctx;

    crowd->iterations++;
    return false;
}

static void crowd_run(struct crowd *crowd)
{
    struct fixture *fixture = crowd->fixture;

    for (size_t i = 0; i < CROWD; i++) {
        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, crowd->sockets[i]), 0);
        io_watch_start(fixture->loop, &crowd->watches[i], crowd->sockets[i][0],
                       IO_WRITABLE | IO_CROWD, on_one_of_many, crowd);
    }
    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], count_iterations, crowd);
    loop_run(fixture->loop);
    io_before_sleep_stop(&fixture->before_sleep[0]);
    for (size_t i = 0; i < CROWD; i++) {
        io_watch_stop(&crowd->watches[i]);
        close(crowd->sockets[i][0]);
        close(crowd->sockets[i][1]);
    }
}

/* Each takes a quarter of what all have of one iteration, and twice that is the most. */
static void test_crowd_is_heard_in_pieces_and_each_of_it_once(void **state)
{
    struct crowd crowd = {.fixture = *state};

    crowd_run(&crowd);
    for (size_t i = 0; i < CROWD; i++)
        assert_int_equal(crowd.calls[i], 1);
    assert_true(crowd.iterations >=
                1 + CROWD / 8); /* the loop begins with one in which nobody came */
}

static void test_crowd_who_waits_may_be_stopped(void **state)
{
    struct crowd crowd = {.fixture = *state, .stops = CROWD / 2};

    crowd_run(&crowd);
    assert_true(crowd.calls[CROWD - 1] <= 1);
    for (size_t i = 0; i < CROWD - 1; i++)
        assert_int_equal(crowd.calls[i], 1);
}

static void on_crowd_to_last(struct io_watch *watch, int events)
{
    struct crowd *crowd = watch->ctx;

    (void)events;
    while (crowd->called == 0 && loop_now_ms() < crowd->fixture->last_ms)
        ;
    crowd->called++;
    trace(crowd->fixture, "c");
    io_watch_stop(watch);
}

static void on_plain(struct io_watch *watch, int events)
{
    (void)events;
    trace(watch->ctx, "p");
    io_watch_stop(watch);
}

/* One of the crowd takes all its time: the plain one does not wait for the rest of it. */
static void test_crowd_keeps_nobody_else_waiting(void **state)
{
    struct fixture *fixture = *state;
    struct crowd crowd = {.fixture = fixture};
    int pairs[4][2];

    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        io_watch_start(fixture->loop, &crowd.watches[i], pairs[i][0], IO_WRITABLE | IO_CROWD,
                       on_crowd_to_last, &crowd);
    }
    io_watch_start(fixture->loop, &fixture->watches[0], fixture->sockets[0], IO_WRITABLE, on_plain,
                   fixture);
    fixture->last_ms = loop_now_ms() + 2 * IO_CROWD_MS;
    loop_run(fixture->loop);
    assert_int_equal(strlen(fixture->trace), 5);
    assert_true(strchr(fixture->trace, 'p') - fixture->trace <= 1);
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
}

static void on_signal(void *ctx, int number)
{
    struct fixture *fixture = ctx;

    trace(fixture, number == SIGUSR1 ? "1" : number == SIGTERM ? "T" : "?");
    if (number == SIGTERM)
        loop_stop(fixture->loop);
}

static void send_signals(struct io_timer *timer)
{
    struct fixture *fixture = timer->ctx;

    assert_return_code(kill(getpid(), SIGUSR1), 0);
    assert_return_code(kill(getpid(), SIGTERM), 0);
    trace(fixture, "k"); /* neither interrupted us nor killed us */
}

static void test_signals_come_through_the_loop(void **state)
{
    struct fixture *fixture = *state;
    sigset_t mask;

    loop_on_signals(fixture->loop, (const int[]){SIGUSR1, SIGTERM, 0}, on_signal, fixture);
    io_timer_start(fixture->loop, &fixture->timers[0], 0, send_signals, fixture);
    loop_run(fixture->loop);
    assert_string_equal(fixture->trace, "k1T");

    loop_free(fixture->loop);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGTERM));
    fixture->loop = loop_new();
}

static bool count_only(void *ctx)
{
    ((struct fixture *)ctx)->rounds++;
    return false;
}

static void test_idle_loop_does_not_wake(void **state)
{
    struct fixture *fixture = *state;
    uint64_t now_ms = loop_now_ms();

    io_before_sleep_start(fixture->loop, &fixture->before_sleep[0], count_only, fixture);
    io_watch_start(fixture->loop, &fixture->watches[0], fixture->sockets[0], IO_READABLE,
                   on_readable_stop, fixture);
    io_timer_start(fixture->loop, &fixture->timers[1], now_ms + 3600000, on_timer, fixture);
    io_timer_start(fixture->loop, &fixture->timers[0], now_ms + 300, on_timer_stop, fixture);
    loop_run(fixture->loop);
    assert_int_equal(fixture->rounds, 1); /* one iteration, one sleep: the timer's */
    io_watch_stop(&fixture->watches[0]);
    io_timer_stop(&fixture->timers[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_run_with_nothing_armed_returns),
        TEST(test_stop_before_run_is_not_lost),
        TEST(test_timers_fire_by_deadline_then_by_arming),
        TEST(test_timer_armed_again_moves),
        TEST(test_timer_stopped_by_a_due_one_does_not_fire),
        TEST(test_timer_that_arms_itself_does_not_starve_descriptors),
        TEST(test_timer_that_arms_itself_does_not_starve_timers),
        TEST(test_timer_that_arms_itself_does_not_starve_work),
        TEST(test_due_timer_moved_by_another_fires_at_its_new_time_only),
        TEST(test_due_timer_stopped_and_armed_in_turn_ends_as_it_was_left),
        TEST(test_timers_that_move_each_other_fire_as_last_asked),
        TEST(test_thousand_timers_in_random_order_fire_sorted),
        TEST(test_before_sleep_runs_after_callbacks_and_polls_while_there_is_more),
        TEST(test_timer_armed_before_sleep_is_seen_by_that_sleep),
        TEST(test_each_before_sleep_is_called_and_one_that_has_more_suffices),
        TEST(test_before_sleep_may_end_itself_and_the_next_one),
        TEST(test_before_sleep_armed_by_another_is_called_before_the_sleep),
        TEST(test_watch_started_again_changes_its_events),
        TEST(test_watch_stopped_by_another_in_the_same_iteration_is_silent),
        TEST(test_crowd_is_heard_in_pieces_and_each_of_it_once),
        TEST(test_crowd_who_waits_may_be_stopped),
        TEST(test_crowd_keeps_nobody_else_waiting),
        TEST(test_urgent_watch_sees_priority_data_only),
        TEST(test_signals_come_through_the_loop),
        TEST(test_idle_loop_does_not_wake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
