/* Stopping: a job, a job for good, one alloc of it; and several requests in one turn. */
#include "test/server/small_life.h"

static int deregister(struct small_life *small, const char *job, bool purge,
                      struct alone_evaluation *ret_evaluation)
{
    struct err err = {0};

    return alone_deregister(small->alone, "default", job, purge, ret_evaluation, &err);
}

static int stop_alloc(struct small_life *small, const char *alloc,
                      struct alone_evaluation *ret_evaluation)
{
    struct err err = {0};

    return alone_stop_alloc(small->alone, alloc, ret_evaluation, &err);
}

/* --- jobs --- */

static void test_stopped_job_is_kept_and_its_allocs_end(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 1);
    small_run(small, "other", "/bin/a", 1, 0);
    assert_int_equal(deregister(small, "j", false, &evaluation), 0);
    assert_int_equal(evaluation.stopped, 3);
    assert_true(life_turn(small->life));
    assert_true(small->job_was_saved); /* by the commit that tells the allocs */
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(small_count(small, "j", NULL).ended, 3);
    assert_int_equal(small_count(small, "other", NULL).live, 1);
    assert_true(small_find(small, "j")->stop);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "j")), "dead");

    small_again(small);
    assert_true(small_find(small, "j")->stop);
    assert_int_equal(small_run(small, "j", "/bin/a", 2, 1).placed, 3);
    assert_false(small_find(small, "j")->stop);
}

static void test_purged_job_is_forgotten_when_its_allocs_are_gone(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    assert_non_null(small_find(small, "j"));
    assert_true(life_turn(small->life));
    assert_non_null(small_spec(small, "job/default/j")); /* allocs are left */
    small_settle(small);
    assert_null(small_find(small, "j"));
    assert_int_equal(small->records.count, 0);
    assert_int_equal(small->specs.count, 0);
}

static void test_purge_goes_on_after_a_restart(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    (void)life_turn(small->life);
    assert_non_null(small_spec(small, "job/default/j"));
    small_again(small);
    assert_null(small_find(small, "j"));
    assert_int_equal(small->specs.count, 0);
}

/* The daemon dies between the commit that removes the last alloc and the one that forgets the
 * job. */
static void test_purged_job_without_allocs_is_forgotten_by_the_next_start(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 1, 0);
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    while (small->records.count > 0)
        (void)life_turn(small->life);
    assert_non_null(small_spec(small, "job/default/j"));
    small_again(small);
    assert_null(small_find(small, "j"));
    assert_int_equal(small->specs.count, 0);
}

static void test_failed_commit_of_a_stop_leaves_the_job_running(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct small_heard heard = {0};

    small_run(small, "j", "/bin/a", 2, 0);
    small->commit_code = ERR_FULL;
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    life_after_commit(small->life, small_hear, &heard);
    small_settle(small);
    assert_int_equal(heard.code, ERR_FULL);
    assert_false(small_find(small, "j")->stop);
    assert_int_equal(deregister(small, "j", false, &evaluation), ERR_AGAIN);
    small->commit_code = 0;
    small->now_ms += 2000;
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
}

static void test_unknown_job_and_alloc_are_refused(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    assert_int_equal(deregister(small, "j", false, &evaluation), ERR_GONE);
    assert_int_equal(stop_alloc(small, "3f2a91c4-0000-4000-8000-000000000000", &evaluation),
                     ERR_GONE);
    assert_false(life_has_work(small->life));
}

/* --- one alloc --- */

static void test_stopped_alloc_is_replaced_under_its_index(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    struct small_counts before = small_count(small, "j", "a");
    assert_int_equal(stop_alloc(small, before.newest, &evaluation), 0);
    assert_int_equal(evaluation.stopped, 1);
    assert_int_equal(evaluation.placed, 1);
    size_t commits = small->commits;
    assert_true(life_turn(small->life));
    assert_int_equal(small->commits, commits + 1);
    assert_int_equal(small->assigned, 1); /* with the stop */
    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").live, 2);
    assert_int_equal(small_count(small, "j", "a").indices, 3);
    assert_int_equal(small_count(small, "j", "a").ended, 1);
    assert_string_not_equal(small_count(small, "j", "a").newest, before.newest);
}

static void test_alloc_of_a_stopped_job_is_not_replaced(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 1, 0);
    struct small_counts before = small_count(small, "j", "a");
    assert_int_equal(deregister(small, "j", false, &evaluation), 0);
    assert_int_equal(stop_alloc(small, before.newest, &evaluation), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(small_count(small, "j", NULL).ended, 1);
}

/* --- several requests, one commit --- */

static void test_one_alloc_stopped_twice_in_one_turn_is_replaced_once(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    small_run(small, "j", "/bin/a", 2, 0);
    struct small_counts before = small_count(small, "j", "a");
    assert_int_equal(stop_alloc(small, before.newest, &evaluation), 0);
    assert_int_equal(stop_alloc(small, before.newest, &evaluation), 0);
    assert_int_equal(evaluation.placed, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").live, 2);
    assert_int_equal(small_count(small, "j", "a").ended, 1);
}

static void test_job_stopped_in_the_turn_that_registers_it_does_not_run(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    assert_int_equal(small_post(small, "j", "/bin/a", 2, 0, &evaluation), 0);
    assert_int_equal(deregister(small, "j", false, &evaluation), 0);
    assert_int_equal(evaluation.stopped, 2);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_true(small_find(small, "j")->stop);
}

static void test_job_purged_in_the_turn_that_registers_it_leaves_nothing(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    assert_int_equal(small_post(small, "j", "/bin/a", 2, 0, &evaluation), 0);
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    small_settle(small);
    assert_null(small_find(small, "j"));
    assert_int_equal(small->records.count, 0);
    assert_int_equal(small->specs.count, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SMALL_TEST(test_stopped_job_is_kept_and_its_allocs_end),
        SMALL_TEST(test_purged_job_is_forgotten_when_its_allocs_are_gone),
        SMALL_TEST(test_purge_goes_on_after_a_restart),
        SMALL_TEST(test_purged_job_without_allocs_is_forgotten_by_the_next_start),
        SMALL_TEST(test_failed_commit_of_a_stop_leaves_the_job_running),
        SMALL_TEST(test_unknown_job_and_alloc_are_refused),
        SMALL_TEST(test_stopped_alloc_is_replaced_under_its_index),
        SMALL_TEST(test_alloc_of_a_stopped_job_is_not_replaced),
        SMALL_TEST(test_one_alloc_stopped_twice_in_one_turn_is_replaced_once),
        SMALL_TEST(test_job_stopped_in_the_turn_that_registers_it_does_not_run),
        SMALL_TEST(test_job_purged_in_the_turn_that_registers_it_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
