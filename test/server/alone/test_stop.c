/* Stopping: a job, a job for good, one alloc of it; and several requests in one turn. */
#include "test/server/small_life.h"

static int deregister_so(struct small_life *small, const char *job, unsigned how,
                         struct alone_evaluation *ret_evaluation)
{
    struct err err = {0};

    return alone_deregister(small->alone, "default", job, how, ret_evaluation, &err);
}

static int deregister(struct small_life *small, const char *job, bool purge,
                      struct alone_evaluation *ret_evaluation)
{
    return deregister_so(small, job, purge ? ALONE_PURGE : 0, ret_evaluation);
}

static int stop_alloc(struct small_life *small, const char *alloc,
                      struct alone_evaluation *ret_evaluation)
{
    struct err err = {0};

    return alone_stop_alloc(small->alone, alloc, 0, ret_evaluation, &err);
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

/* While its allocs are still ending. */
static void test_purged_job_may_come_back_as_one_of_another_type(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = small_job("j", "/bin/a", 1, 0);

    small_run(small, "j", "/bin/a", 2, 0);
    assert_int_equal(json_object_set_new(job, "Type", json_string("batch")), 0);
    assert_int_equal(json_object_del(job, "Update"), 0);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), ERR_INVALID);
    assert_int_equal(deregister(small, "j", true, &evaluation), 0);
    assert_true(life_turn(small->life));
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
    assert_int_equal(evaluation.placed, 1);
    small_settle(small);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(small_count(small, "j", NULL).ended, 0);
    assert_non_null(small_find(small, "j"));
    json_decref(job);
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

/* --- delays --- */

/* Runs a job with two groups; ends of the first are delayed for a minute, and then for another. */
static void run_delayed(struct small_life *small)
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = small_job("j", "/bin/a", 1, 1);
    json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);
    json_t *task = json_array_get(json_object_get(group, "Tasks"), 0);
    const json_int_t minute_ns = (json_int_t)60 * 1000000000;

    assert_int_equal(json_object_set_new(group, "ShutdownDelay", json_integer(minute_ns)), 0);
    assert_int_equal(json_object_set_new(task, "ShutdownDelay", json_integer(minute_ns)), 0);
    assert_int_equal(alone_register(small->alone, job, &evaluation, NULL, &err), 0);
    json_decref(job);
    small_settle(small);
}

static void test_stop_at_once_waits_for_no_delay(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    run_delayed(small);
    assert_int_equal(deregister_so(small, "j", ALONE_AT_ONCE, &evaluation), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

/* Who is told to end already is told so; the daemon may have died between the two. */
static void test_delay_under_way_is_cut_short_by_the_next_stop(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;

    run_delayed(small);
    assert_int_equal(deregister(small, "j", false, &evaluation), 0);
    small_settle(small);
    small_again(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_int_equal(deregister_so(small, "j", ALONE_AT_ONCE, &evaluation), 0);
    assert_int_equal(evaluation.stopped, 0);
    small_settle(small);
    small->now_ms += 1; /* the timer of its delay */
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
}

static void test_alloc_stopped_at_once_is_one_of_all(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    run_delayed(small);
    struct small_counts before = small_count(small, "j", "a");
    assert_int_equal(
        alone_stop_alloc(small->alone, before.newest, ALONE_AT_ONCE, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").ended, 1);
    assert_int_equal(small_count(small, "j", "a").live, 1); /* in its place */
    assert_int_equal(deregister(small, "j", false, &evaluation), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", "a").live, 1); /* which waits */
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
        SMALL_TEST(test_purged_job_may_come_back_as_one_of_another_type),
        SMALL_TEST(test_purge_goes_on_after_a_restart),
        SMALL_TEST(test_purged_job_without_allocs_is_forgotten_by_the_next_start),
        SMALL_TEST(test_failed_commit_of_a_stop_leaves_the_job_running),
        SMALL_TEST(test_unknown_job_and_alloc_are_refused),
        SMALL_TEST(test_stopped_alloc_is_replaced_under_its_index),
        SMALL_TEST(test_alloc_of_a_stopped_job_is_not_replaced),
        SMALL_TEST(test_stop_at_once_waits_for_no_delay),
        SMALL_TEST(test_delay_under_way_is_cut_short_by_the_next_stop),
        SMALL_TEST(test_alloc_stopped_at_once_is_one_of_all),
        SMALL_TEST(test_one_alloc_stopped_twice_in_one_turn_is_replaced_once),
        SMALL_TEST(test_job_stopped_in_the_turn_that_registers_it_does_not_run),
        SMALL_TEST(test_job_purged_in_the_turn_that_registers_it_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
