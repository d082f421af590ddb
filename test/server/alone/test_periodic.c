/* Periodic jobs: launched when it is time, once, over crashes and commits that fail. */
#include "test/server/small_life.h"

#include "spec/job.h"

static json_t *every_minute(bool prohibits, const char *zone)
{
    json_t *job =
        json_pack("{s:s, s:s, s:[s], s:{s:s, s:b, s:s}, s:[{s:s, s:[{s:s, s:s, s:{s:s}}]}]}", "ID",
                  "p", "Type", "batch", "Datacenters", "*", "Periodic", "Spec", "* * * * *",
                  "ProhibitOverlap", prohibits, "TimeZone", zone, "TaskGroups", "Name", "g",
                  "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a");

    assert_non_null(job);
    return job;
}

static int run(struct small_life *small, json_t *job, struct err *err)
{
    struct alone_evaluation evaluation;
    int code = alone_register(small->alone, job, &evaluation, NULL, err);

    json_decref(job);
    small_settle(small);
    assert_true(code < 0 || evaluation.id[0] == '\0'); /* there is nothing to decide */
    return code;
}

static void begin(struct small_life *small, bool prohibits)
{
    struct err err = {0};

    if (run(small, every_minute(prohibits, "UTC"), &err) < 0)
        fail_msg("%s", err.text);
}

/* The wall clock is at so many seconds, and the daemon has had its turns. */
static void at(struct small_life *small, uint64_t second)
{
    assert_true(second * 1000 >= small->now_ms);
    small->now_ms = second * 1000;
    small_settle(small);
    small_settle(small); /* what was posted by the look is committed */
}

static bool there(struct small_life *small, const char *id)
{
    return alone_find(small->alone, "default", id) != NULL;
}

static size_t launched(struct small_life *small)
{
    return small_specs_of(small, "job/default/p/");
}

static void test_it_is_launched_when_it_is_time_and_not_before(void **state)
{
    struct small_life *small = *state;

    begin(small, false);
    at(small, 59);
    assert_int_equal(launched(small), 0);
    assert_string_equal(alone_job_status(small->alone, small_find(small, "p")), "running");
    at(small, 60);
    assert_true(there(small, "p/periodic-60"));
    assert_int_equal(small_count(small, "p/periodic-60", "g").live, 1);
    assert_true(jobspec_is_child(small_find(small, "p/periodic-60")->job));
    at(small, 61);
    assert_int_equal(launched(small), 1);
    at(small, 120);
    assert_true(there(small, "p/periodic-120"));
    assert_int_equal(small_count(small, "p", NULL).live, 0); /* nothing of the job itself */
}

static void test_crash_behind_a_launch_makes_no_second_one(void **state)
{
    struct small_life *small = *state;

    begin(small, false);
    at(small, 60);
    for (uint64_t second = 61; second < 64; second++) {
        small_kill(small);
        small->now_ms = second * 1000;
        small_begin(small);
        at(small, second);
    }
    assert_int_equal(launched(small), 1);
    at(small, 120);
    assert_int_equal(launched(small), 2);
}

/* Neither the job that is launched nor that it was is known. */
static void test_launch_whose_commit_failed_is_made_again(void **state)
{
    struct small_life *small = *state;

    begin(small, false);
    small->commit_code = ERR_IO;
    at(small, 60);
    assert_int_equal(launched(small), 0);
    small->commit_code = 0;
    at(small, 63); /* the journal is tried again, */
    at(small, 65); /* and then the launch */
    assert_true(there(small, "p/periodic-60"));
    assert_int_equal(launched(small), 1);
}

static void test_what_was_missed_while_it_was_down_is_launched_once(void **state)
{
    struct small_life *small = *state;

    begin(small, false);
    at(small, 60);
    small_kill(small);
    small->now_ms = 400500;
    small_begin(small);
    small_settle(small);
    small_settle(small);
    assert_true(there(small, "p/periodic-400"));
    assert_int_equal(launched(small), 2);
    at(small, 419);
    assert_int_equal(launched(small), 2);
    at(small, 420);
    assert_true(there(small, "p/periodic-420"));
}

static void test_times_before_it_was_registered_are_not_missed(void **state)
{
    struct small_life *small = *state;

    small->now_ms = 1000000;
    begin(small, false);
    small_again(small);
    assert_int_equal(launched(small), 0);
}

static void test_overlap_that_is_prohibited_is_left_out(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, true);
    at(small, 60);
    at(small, 120);
    at(small, 180);
    assert_int_equal(launched(small), 1);
    assert_int_equal(
        alone_deregister(small->alone, "default", "p/periodic-60", 0, &evaluation, &err), 0);
    at(small, 181);
    assert_false(there(small, "p/periodic-181")); /* what was left out stays so */
    at(small, 240);
    assert_true(there(small, "p/periodic-240"));
}

static void test_one_that_is_stopped_or_disabled_is_not_launched(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = every_minute(false, "UTC");

    begin(small, false);
    assert_int_equal(alone_deregister(small->alone, "default", "p", 0, &evaluation, &err), 0);
    at(small, 60);
    assert_int_equal(alone_force(small->alone, "default", "p", &evaluation, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "can't force run non-tracked job"));
    assert_int_equal(json_object_set_new(json_object_get(job, "Periodic"), "Enabled", json_false()),
                     0);
    assert_int_equal(run(small, job, &err), 0);
    at(small, 120);
    assert_int_equal(launched(small), 0);
}

static void test_force_launches_one_a_second_be_it_time_or_not(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, true);
    at(small, 10);
    assert_int_equal(alone_force(small->alone, "default", "p", &evaluation, &err), 0);
    assert_string_equal(evaluation.job_id, "p/periodic-10");
    assert_int_equal(alone_force(small->alone, "default", "p", &evaluation, &err), ERR_AGAIN);
    small_settle(small);
    at(small, 11);
    assert_int_equal(alone_force(small->alone, "default", "p", &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(launched(small), 2);
    assert_int_equal(alone_force(small->alone, "default", "q", &evaluation, &err), ERR_GONE);
    small_run(small, "s", "/bin/a", 1, 0);
    assert_int_equal(alone_force(small->alone, "default", "s", &evaluation, &err), ERR_INVALID);
    assert_string_equal(err.text, "can't force launch non-periodic job");
}

static void test_what_was_launched_goes_with_its_last_alloc(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    small->kept = 0;
    small_again(small);
    begin(small, false);
    at(small, 60);
    assert_int_equal(
        alone_deregister(small->alone, "default", "p/periodic-60", 0, &evaluation, &err), 0);
    small_settle(small);
    small_settle(small);
    assert_false(there(small, "p/periodic-60"));
    assert_true(there(small, "p"));
}

static void test_zone_that_is_not_there_and_other_kinds_are_refused(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};

    assert_int_equal(run(small, every_minute(false, "Mars/Base"), &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "time zone \"Mars/Base\""));
    begin(small, false);
    json_t *job = every_minute(false, "UTC");
    assert_int_equal(json_object_del(job, "Periodic"), 0);
    assert_int_equal(run(small, job, &err), ERR_INVALID);
    assert_string_equal(err.text, "cannot update periodic job to being non-periodic");
}

static void test_job_keeps_its_type(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    begin(small, false);
    for (int i = 0; i < 2; i++) { /* while it runs, and when it is stopped */
        json_t *job = every_minute(false, "UTC");
        assert_int_equal(json_object_set_new(job, "Type", json_string("sysbatch")), 0);
        assert_int_equal(run(small, job, &err), ERR_INVALID);
        assert_string_equal(err.text, "cannot update job from type \"batch\" to \"sysbatch\"");
        if (i == 0)
            assert_int_equal(alone_deregister(small->alone, "default", "p", 0, &evaluation, &err),
                             0);
        small_settle(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_it_is_launched_when_it_is_time_and_not_before),
        SMALL_TEST(test_crash_behind_a_launch_makes_no_second_one),
        SMALL_TEST(test_launch_whose_commit_failed_is_made_again),
        SMALL_TEST(test_what_was_missed_while_it_was_down_is_launched_once),
        SMALL_TEST(test_times_before_it_was_registered_are_not_missed),
        SMALL_TEST(test_overlap_that_is_prohibited_is_left_out),
        SMALL_TEST(test_one_that_is_stopped_or_disabled_is_not_launched),
        SMALL_TEST(test_force_launches_one_a_second_be_it_time_or_not),
        SMALL_TEST(test_what_was_launched_goes_with_its_last_alloc),
        SMALL_TEST(test_job_keeps_its_type),
        SMALL_TEST(test_zone_that_is_not_there_and_other_kinds_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
