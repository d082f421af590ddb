/* What registering a job would do is what it then does, and asking for it changes nothing. */
#include "test/server/small_life.h"

static struct alone_plan plan_job(struct small_life *small, json_t *job)
{
    struct alone_wanted wanted;
    struct alone_plan plan = {0};
    struct err err = {0};
    size_t commits = small->commits;

    if (alone_read_job(alone_plans(small->alone), job, &wanted, NULL, &err) != 0 ||
        alone_plan(small->alone, &wanted, &plan, &err) != 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    assert_int_equal(small->commits, commits);
    return plan;
}

static struct alone_plan plan_of(struct small_life *small, const char *command, int a, int b)
{
    return plan_job(small, small_job("j", command, a, b));
}

/* Of GROUP so many are placed, stopped, replaced, kept as they are and kept for another version. */
static void check_updates(const struct alone_plan *plan, const char *group, int place, int stop,
                          int replace, int ignore, int in_place)
{
    static const char *const names[] = {"Place", "Stop", "DestructiveUpdate", "Ignore",
                                        "InPlaceUpdate"};
    const int wanted[] = {place, stop, replace, ignore, in_place};
    const json_t *update = json_object_get(plan->updates, group);

    assert_non_null(update);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        json_int_t found = json_integer_value(json_object_get(update, names[i]));
        if (found != wanted[i])
            fail_msg("%s %s: %lld, not %d", group, names[i], (long long)found, wanted[i]);
    }
}

static void test_plan_of_a_new_job_leaves_nothing(void **state)
{
    struct small_life *small = *state;
    struct alone_plan plan = plan_of(small, "/bin/a", 2, 1);

    check_updates(&plan, "a", 2, 0, 0, 0, 0);
    check_updates(&plan, "b", 1, 0, 0, 0, 0);
    assert_int_equal(plan.job_modify_index, 0);
    assert_int_equal(json_array_size(plan.failed), 0);
    assert_null(small_find(small, "j"));
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    alone_plan_free(&plan);
}

static void test_plan_tells_what_stays_what_is_replaced_and_what_goes(void **state)
{
    struct small_life *small = *state;

    (void)small_run(small, "j", "/bin/a", 3, 1);
    struct alone_plan plan = plan_of(small, "/bin/a", 3, 1);
    check_updates(&plan, "a", 0, 0, 0, 3, 0);
    assert_int_equal(plan.job_modify_index, small_find(small, "j")->job_modify_index);
    alone_plan_free(&plan);
    plan = plan_of(small, "/bin/c", 2, 2); /* of "a" another command, of "b" another count */
    check_updates(&plan, "a", 0, 1, 2, 0, 0);
    check_updates(&plan, "b", 1, 0, 0, 0, 1);
    json_t *diff = alone_plan_diff(&plan);
    const json_t *group = json_array_get(json_object_get(diff, "TaskGroups"), 0);
    const json_t *shown = json_object_get(group, "Updates");
    assert_int_equal(json_integer_value(json_object_get(shown, "create/destroy update")), 2);
    assert_int_equal(json_integer_value(json_object_get(shown, "destroy")), 1);
    assert_null(json_object_get(shown, "ignore"));
    json_decref(diff);
    alone_plan_free(&plan);
    assert_int_equal(small_count(small, "j", NULL).live, 4);
    json_t *job = small_job("j", "/bin/a", 3, 1);
    assert_int_equal(json_array_remove(json_object_get(job, "TaskGroups"), 0), 0);
    plan = plan_job(small, job); /* a group that the job has no more is told of, too */
    check_updates(&plan, "a", 0, 3, 0, 0, 0);
    alone_plan_free(&plan);
}

static void test_plan_tells_what_would_wait(void **state)
{
    struct small_life *small = *state;

    small->room.memory_mb = 1000;
    small_again(small);
    (void)small_run(small, "j", "/bin/a", 1, 0);
    struct alone_plan plan = plan_of(small, "/bin/a", 4, 0);
    check_updates(&plan, "a", 3, 0, 0, 0, 1);
    const json_t *failed = json_array_get(plan.failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "What")), "memory");
    assert_int_equal(json_integer_value(json_object_get(failed, "Count")), 1);
    alone_plan_free(&plan);
    plan = plan_of(small, "/bin/c", 3, 0); /* what is replaced makes room */
    check_updates(&plan, "a", 2, 0, 1, 0, 0);
    assert_int_equal(json_array_size(plan.failed), 0);
    alone_plan_free(&plan);
}

static void test_plan_for_another_region_is_refused(void **state)
{
    struct small_life *small = *state;
    json_t *job = small_job("j", "/bin/a", 1, 1);
    struct alone_wanted wanted;
    struct alone_plan plan;
    struct err err = {0};

    assert_int_equal(json_object_set_new(job, "Region", json_string("eu")), 0);
    assert_int_equal(alone_read_job(alone_plans(small->alone), job, &wanted, NULL, &err), 0);
    assert_int_equal(alone_plan(small->alone, &wanted, &plan, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "No path to region"));
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_plan_of_a_new_job_leaves_nothing),
        SMALL_TEST(test_plan_tells_what_stays_what_is_replaced_and_what_goes),
        SMALL_TEST(test_plan_tells_what_would_wait),
        SMALL_TEST(test_plan_for_another_region_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
