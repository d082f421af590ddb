/* The pool: at most four threads, all blocked for signals, done() always and on the loop thread. */
#include "io/loop.h"

#include "base/base.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MANY = 500 };

struct fixture {
    struct loop *loop;
    pthread_t loop_thread;
    pthread_barrier_t barrier;
    struct io_work works[MANY];
    atomic_uint ran, running, running_max;
    atomic_bool signals_open, wrong_thread, unmasked;
    unsigned done;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->loop = loop_new();
    fixture->loop_thread = pthread_self();
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    loop_free(fixture->loop);
    free(fixture);
    return 0;
}

static unsigned threads_count(void)
{
    DIR *directory = opendir("/proc/self/task");
    unsigned count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.')
            count++;
    }
    closedir(directory);
    return count;
}

/* A thread that was joined is listed for a moment longer; one that was not, for ever. */
static void await_one_thread(void)
{
    for (int tries = 0; threads_count() > 1; tries++) {
        assert_true(tries < 1000);
        (void)poll(NULL, 0, 1);
    }
}

static void run_count(struct io_work *work)
{
    struct fixture *fixture = work->ctx;
    unsigned running = atomic_fetch_add(&fixture->running, 1) + 1;
    unsigned max = atomic_load(&fixture->running_max);
    sigset_t mask;

    while (running > max && !atomic_compare_exchange_weak(&fixture->running_max, &max, running))
        ;
    if (pthread_sigmask(SIG_SETMASK, NULL, &mask) != 0 || !sigismember(&mask, SIGTERM) ||
        !sigismember(&mask, SIGCHLD))
        atomic_store(&fixture->signals_open, true);
    if (pthread_equal(pthread_self(), fixture->loop_thread))
        atomic_store(&fixture->wrong_thread, true);
    atomic_fetch_add(&fixture->ran, 1);
    atomic_fetch_sub(&fixture->running, 1);
}

static void done_count(struct io_work *work)
{
    struct fixture *fixture = work->ctx;

    if (!pthread_equal(pthread_self(), fixture->loop_thread))
        atomic_store(&fixture->wrong_thread, true);
    fixture->done++;
}

static void test_work_runs_elsewhere_and_is_done_here(void **state)
{
    struct fixture *fixture = *state;
    unsigned threads_before = threads_count();

    for (size_t i = 0; i < MANY; i++)
        io_work_submit(fixture->loop, &fixture->works[i], run_count, done_count, fixture);
    assert_int_equal(fixture->done, 0);
    assert_true(threads_count() <= threads_before + 4);
    loop_run(fixture->loop); /* returns by itself when all is done */
    assert_int_equal(fixture->ran, MANY);
    assert_int_equal(fixture->done, MANY);
    assert_true(fixture->running_max <= 4);
    assert_false(fixture->signals_open);
    assert_false(fixture->wrong_thread);
}

static void run_make(struct io_work *work)
{
    struct fixture *fixture = work->ctx;

    fixture->unmasked = io_work_is_unmasked() && umask(0) == 0;
}

static void test_threads_have_a_umask_of_their_own_and_none(void **state)
{
    struct fixture *fixture = *state;
    mode_t before = umask(0077);

    io_work_submit(fixture->loop, &fixture->works[0], run_make, done_count, fixture);
    loop_run(fixture->loop);
    assert_true(fixture->unmasked);
    assert_false(io_work_is_unmasked());
    assert_int_equal(umask(before), 0077);
}

static void test_threads_are_not_started_before_there_is_work(void **state)
{
    struct fixture *fixture = *state;
    struct loop *other = loop_new();

    await_one_thread(); /* those of an earlier test are on their way out */
    loop_free(other);
    io_work_submit(fixture->loop, &fixture->works[0], run_count, done_count, fixture);
    loop_run(fixture->loop);
    assert_int_equal(threads_count(), 2);
    io_work_submit(fixture->loop, &fixture->works[0], run_count, done_count, fixture);
    loop_run(fixture->loop);
    assert_int_equal(threads_count(), 2); /* the idle one was used again */
    assert_int_equal(fixture->done, 2);
}

static void run_meet(struct io_work *work)
{
    struct fixture *fixture = work->ctx;

    (void)pthread_barrier_wait(&fixture->barrier); /* passes only when four are in here at once */
    atomic_fetch_add(&fixture->ran, 1);
}

static void test_four_calls_block_at_the_same_time(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(pthread_barrier_init(&fixture->barrier, NULL, 4), 0);
    for (size_t i = 0; i < 8; i++)
        io_work_submit(fixture->loop, &fixture->works[i], run_meet, done_count, fixture);
    loop_run(fixture->loop);
    assert_int_equal(fixture->ran, 8);
    assert_int_equal(fixture->done, 8);
    assert_int_equal(pthread_barrier_destroy(&fixture->barrier), 0);
}

static void done_again(struct io_work *work)
{
    struct fixture *fixture = work->ctx;

    if (++fixture->done < 100)
        io_work_submit(work->loop, work, run_count, done_again, fixture);
}

static void test_work_submitted_from_done_runs(void **state)
{
    struct fixture *fixture = *state;

    io_work_submit(fixture->loop, &fixture->works[0], run_count, done_again, fixture);
    loop_run(fixture->loop);
    assert_int_equal(fixture->ran, 100);
    assert_int_equal(fixture->done, 100);
}

/* The queue is made of the works themselves: there is no number at which it overflows. */
static void test_any_number_may_wait(void **state)
{
    enum { VERY_MANY = (1 << 16) + 1 };
    struct fixture *fixture = *state;
    struct io_work *works = calloc(VERY_MANY, sizeof(*works));

    assert_non_null(works);
    for (size_t i = 0; i < VERY_MANY; i++)
        io_work_submit(fixture->loop, &works[i], run_count, done_count, fixture);
    loop_run(fixture->loop);
    assert_int_equal(fixture->ran, VERY_MANY);
    assert_int_equal(fixture->done, VERY_MANY);
    free(works);
}

static void stop_loop(struct io_timer *timer)
{
    loop_stop(timer->loop);
}

/* One of the pool's threads, held until the test lets go. */
struct hold {
    struct io_work work;
    struct fixture *fixture;
    pthread_mutex_t *gate;
};

static void run_hold(struct io_work *work)
{
    struct hold *hold = work->ctx;

    atomic_fetch_add(&hold->fixture->running, 1);
    if (pthread_mutex_lock(hold->gate) == 0)
        (void)pthread_mutex_unlock(hold->gate); /* it was locked */
}

static void done_hold(struct io_work *work)
{
    (void)work; /* they hold the threads, no more */
}

static char order[32];
static unsigned order_count;

static void run_behind(struct io_work *work)
{
    (void)work;
    order[order_count++] = 'b';
}

static void run_ahead(struct io_work *work)
{
    (void)work;
    order[order_count++] = 'a';
}

static void test_what_is_ahead_goes_first_and_starves_nobody(void **state)
{
    enum { HELD = 4, BEHIND = 2, AHEAD = 20 };
    struct fixture *fixture = *state;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, last_gate = PTHREAD_MUTEX_INITIALIZER;
    struct hold holds[HELD] = {0};

    assert_int_equal(pthread_mutex_lock(&gate), 0);
    assert_int_equal(pthread_mutex_lock(&last_gate), 0);
    for (size_t i = 0; i < HELD; i++) {
        holds[i] = (struct hold){.fixture = fixture, .gate = i == 0 ? &last_gate : &gate};
        io_work_submit(fixture->loop, &holds[i].work, run_hold, done_hold, &holds[i]);
    }
    while (atomic_load(&fixture->running) < HELD)
        (void)poll(NULL, 0, 1);
    for (size_t i = 0; i < BEHIND; i++)
        io_work_submit(fixture->loop, &fixture->works[i], run_behind, done_count, fixture);
    for (size_t i = BEHIND; i < BEHIND + AHEAD; i++)
        io_work_submit_ahead(fixture->loop, &fixture->works[i], run_ahead, done_count, fixture);
    assert_int_equal(pthread_mutex_unlock(&last_gate), 0); /* one thread does all of it, in order */
    while (fixture->done < BEHIND + AHEAD) {
        struct io_timer timer = {0};

        io_timer_start(fixture->loop, &timer, loop_now_ms() + 5, stop_loop, NULL);
        loop_run(fixture->loop);
    }
    assert_int_equal(pthread_mutex_unlock(&gate), 0);
    loop_run(fixture->loop);
    assert_string_equal(order, "aaaaaaaabaaaaaaaabaaaa");
}

static void test_free_with_work_in_flight_finishes_it(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < MANY; i++)
        io_work_submit(fixture->loop, &fixture->works[i], run_count, done_count, fixture);
    loop_free(fixture->loop);
    fixture->loop = loop_new();
    assert_int_equal(fixture->ran, MANY);
    assert_int_equal(fixture->done, MANY);
    await_one_thread();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_work_runs_elsewhere_and_is_done_here),
        TEST(test_threads_have_a_umask_of_their_own_and_none),
        TEST(test_threads_are_not_started_before_there_is_work),
        TEST(test_four_calls_block_at_the_same_time),
        TEST(test_work_submitted_from_done_runs),
        TEST(test_any_number_may_wait),
        TEST(test_what_is_ahead_goes_first_and_starves_nobody),
        TEST(test_free_with_work_in_flight_finishes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
