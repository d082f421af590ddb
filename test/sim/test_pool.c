/*
 * The workers of the restore laboratory: what goes wrong in one of them is one failure, always the
 * same one, and what they count is the same for any number of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/pool.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 200, PATIENCE_S = 60, SHORT_S = 1 };

static bool count_seed(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                       struct sim_failure *ret_failure)
{
    (void)ctx;
    sim_draw(1 + item, SIM_SMALL, &ret_failure->script);
    sim_run(sim, &ret_failure->script, NULL, NULL, &ret_failure->result);
    sim_count(tally, &ret_failure->result);
    return true;
}

/* Fails from item 50 on, the later the sooner. */
static bool fail_from_fifty(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                            struct sim_failure *ret_failure)
{
    (void)ctx;
    (void)sim;
    tally->runs++;
    if (item == 50)
        (void)poll(NULL, 0, 100); /* items behind it have failed long before */
    ret_failure->result.outcome = SIM_SAFETY;
    return item < 50;
}

static bool crash_at_seven(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                           struct sim_failure *ret_failure)
{
    (void)ctx;
    (void)sim;
    (void)ret_failure;
    tally->runs++;
    if (item == 7)
        (void)raise(SIGKILL);
    return true;
}

static bool hang_at_seven(void *ctx, struct sim *sim, uint64_t item, struct sim_tally *tally,
                          struct sim_failure *ret_failure)
{
    (void)ctx;
    (void)sim;
    (void)ret_failure;
    tally->runs++;
    while (item == 7)
        (void)pause();
    return true;
}

static bool run_within(unsigned stall_s, sim_work *work, unsigned cores,
                       struct sim_tally *ret_tally, struct sim_failure *ret_failure)
{
    struct sim_pool pool = {"items", ITEMS, cores, stall_s, work, NULL};

    *ret_tally = (struct sim_tally){0};
    return sim_pool_run(&pool, ret_tally, ret_failure);
}

static bool run(sim_work *work, unsigned cores, struct sim_tally *ret_tally,
                struct sim_failure *ret_failure)
{
    return run_within(PATIENCE_S, work, cores, ret_tally, ret_failure);
}

static void test_pool_counts_the_same_on_any_number_of_cores(void **state)
{
    struct sim_tally one, four;
    struct sim_failure failure;

    (void)state;
    assert_true(run(count_seed, 1, &one, &failure));
    assert_true(run(count_seed, 4, &four, &failure));
    assert_int_equal(one.runs, ITEMS);
    assert_int_equal(one.runs, four.runs);
    assert_int_equal(one.events, four.events);
    assert_int_equal(one.hash, four.hash);
    assert_memory_equal(one.rows, four.rows, sizeof(one.rows));
    assert_memory_equal(one.faults, four.faults, sizeof(one.faults));
}

static void test_pool_failures_in_several_the_lowest_item_is_reported(void **state)
{
    struct sim_tally tally;
    struct sim_failure failure;

    (void)state;
    assert_false(run(fail_from_fifty, 4, &tally, &failure));
    assert_int_equal(failure.item, 50);
    assert_int_equal(failure.result.outcome, SIM_SAFETY);
    assert_true(failure.has_run);
    assert_true(tally.runs < ITEMS); /* nobody went on for the rest */
}

static void test_pool_process_that_dies_fails_its_item(void **state)
{
    struct sim_tally tally;
    struct sim_failure failure;

    (void)state;
    assert_false(run(crash_at_seven, 2, &tally, &failure));
    assert_int_equal(failure.item, 7);
    assert_int_equal(failure.result.outcome, SIM_ASSERTION);
    assert_non_null(strstr(failure.result.text, "Killed"));
    assert_false(failure.has_run);
}

static void test_pool_process_that_hangs_is_ended_and_fails_its_item(void **state)
{
    struct sim_tally tally;
    struct sim_failure failure;

    (void)state;
    assert_false(run_within(SHORT_S, hang_at_seven, 2, &tally, &failure));
    assert_int_equal(failure.item, 7);
    assert_int_equal(failure.result.outcome, SIM_LIVENESS);
}

static void test_pool_no_process_can_be_made_is_a_failure(void **state)
{
    struct sim_tally tally;
    struct sim_failure failure;
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        struct rlimit none = {0, 0};
        if (setrlimit(RLIMIT_NPROC, &none) != 0 || setuid(65534) != 0)
            _exit(2);
        _exit(run(count_seed, 2, &tally, &failure) ? 1 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        skip(); /* only root can become somebody who may not fork */
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_counts_the_same_on_any_number_of_cores),
        cmocka_unit_test(test_pool_failures_in_several_the_lowest_item_is_reported),
        cmocka_unit_test(test_pool_process_that_dies_fails_its_item),
        cmocka_unit_test(test_pool_process_that_hangs_is_ended_and_fails_its_item),
        cmocka_unit_test(test_pool_no_process_can_be_made_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
