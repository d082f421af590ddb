/*
 * Counts that somebody else than the job's author chooses: what is refused, what is kept of it, and
 * that a daemon that dies keeps it, too.
 */
#include "test/server/small_life.h"

/* A batch job "j" whose group "g" has COUNT allocs; SCALING (moved) may be NULL. */
static json_t *job_of(const char *type, int count, json_t *scaling)
{
    json_t *job =
        json_pack("{s:s, s:s, s:[s], s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}]}", "ID", "j", "Type",
                  type, "Datacenters", "*", "TaskGroups", "Name", "g", "Count", count, "Tasks",
                  "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a");

    assert_non_null(job);
    if (scaling != NULL)
        assert_int_equal(json_object_set_new(json_array_get(json_object_get(job, "TaskGroups"), 0),
                                             "Scaling", scaling),
                         0);
    return job;
}

static void run(struct small_life *small, json_t *job)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
}

static json_t *bounds(int min, int max)
{
    return json_pack("{s:i, s:i, s:{s:s}}", "Min", min, "Max", max, "Policy", "cooldown", "1m");
}

static int scale(struct small_life *small, const struct alone_scaling *scaling, struct err *err)
{
    struct alone_evaluation evaluation;
    struct alone_scaling said = *scaling;

    said.group = said.group == NULL ? "g" : said.group;
    said.message = said.message == NULL ? "" : said.message;
    int code = alone_scale(small->alone, "default", "j", &said, &evaluation, err);
    small_settle(small);
    return code;
}

static void scale_to(struct small_life *small, int64_t count)
{
    struct err err = {0};

    if (scale(small, &(struct alone_scaling){.count = count}, &err) < 0)
        fail_msg("%s", err.text);
}

static void expect_refused(struct small_life *small, const struct alone_scaling *scaling, int code,
                           const char *text)
{
    uint64_t version = small_find(small, "j")->version;
    struct err err = {0};

    assert_int_equal(scale(small, scaling, &err), code);
    assert_string_equal(err.text, text);
    assert_int_equal(small_find(small, "j")->version, version);
    assert_null(alone_scaling_events(small_find(small, "j"), "g"));
}

static bool count_one(void *ctx, const struct machine_id *id, const struct machine *record)
{
    size_t *count = ctx;

    (void)id;
    *count += alloc_of(record)->ended_unix_ns == 0;
    return true;
}

static size_t living(struct small_life *small)
{
    size_t count = 0;

    core_each(life_core(small->life), MACHINE_ALLOC, count_one, &count);
    return count;
}

static const char *policy_id(struct small_life *small)
{
    return json_string_value(
        json_object_get(alone_scaling_policy(small_find(small, "j"), "g"), "ID"));
}

static const json_t *event(struct small_life *small, size_t nth)
{
    return json_array_get(alone_scaling_events(small_find(small, "j"), "g"), nth);
}

static void test_what_the_policy_does_not_allow_is_refused(void **state)
{
    struct small_life *small = *state;

    run(small, job_of("batch", 3, bounds(2, 4)));
    expect_refused(small, &(struct alone_scaling){.count = 1}, ERR_INVALID,
                   "group count was less than scaling policy minimum: 1 < 2");
    expect_refused(small, &(struct alone_scaling){.count = 5}, ERR_INVALID,
                   "group count was greater than scaling policy maximum: 5 > 4");
    expect_refused(small, &(struct alone_scaling){.count = 3, .group = "h"}, ERR_INVALID,
                   "task group \"h\" specified for scaling does not exist in job");
    expect_refused(small, &(struct alone_scaling){.count = 4, .index = 1000}, ERR_REFUSED,
                   "Enforcing job modify index 1000: job exists with conflicting job modify index: "
                   "2");
    assert_int_equal(living(small), 3);
}

static void test_what_is_too_much_for_the_node_is_refused(void **state)
{
    struct small_life *small = *state;
    static char long_text[5000];

    memset(long_text, 'x', sizeof(long_text) - 1);
    run(small, job_of("batch", 3, NULL));
    expect_refused(small, &(struct alone_scaling){.count = INT64_MAX}, ERR_LIMIT,
                   "Count must be at most 2000, but is 9223372036854775807");
    expect_refused(small, &(struct alone_scaling){.count = 4, .message = long_text}, ERR_LIMIT,
                   "Message and Meta of a scaling have 4999 bytes: there may be 4096");
}

static void test_system_job_has_one_alloc_or_none(void **state)
{
    struct small_life *small = *state;

    run(small, job_of("system", 1, NULL));
    small->now_ms += 10000; /* its deployment is over */
    small_settle(small);
    expect_refused(small, &(struct alone_scaling){.count = 2}, ERR_INVALID,
                   "jobs of type \"system\" can only be scaled between 0 and 1");
    scale_to(small, 0);
    assert_int_equal(living(small), 0);
}

static void test_deployment_that_is_under_way_is_not_disturbed(void **state)
{
    struct small_life *small = *state;

    run(small, job_of("service", 1, NULL));
    expect_refused(small, &(struct alone_scaling){.count = 2}, ERR_INVALID,
                   "job scaling blocked due to active deployment");
}

static void test_group_has_the_count_that_is_said(void **state)
{
    struct small_life *small = *state;

    run(small, job_of("batch", 1, bounds(0, 9)));
    scale_to(small, 4);
    assert_int_equal(living(small), 4);
    assert_int_equal(small_find(small, "j")->version, 1);
    assert_int_equal(json_integer_value(json_object_get(event(small, 0), "Count")), 4);
    assert_int_equal(json_integer_value(json_object_get(event(small, 0), "PreviousCount")), 1);
    assert_true(json_is_string(json_object_get(event(small, 0), "EvalID")));
    small_again(small);
    assert_int_equal(living(small), 4);
    scale_to(small, 2);
    assert_int_equal(living(small), 2);
    assert_int_equal(json_integer_value(json_object_get(event(small, 0), "PreviousCount")), 4);
    scale_to(small, 2); /* as it is: the same version */
    assert_int_equal(small_find(small, "j")->version, 2);
}

static void test_what_only_is_said_changes_nothing(void **state)
{
    struct small_life *small = *state;
    struct err err = {0};
    json_t *meta = json_pack("{s:i}", "cpu", 99);

    run(small, job_of("batch", 1, bounds(0, 9)));
    assert_int_equal(scale(small,
                           &(struct alone_scaling){
                               .count = -1, .error = true, .message = "no metrics", .meta = meta},
                           &err),
                     0);
    assert_int_equal(small_find(small, "j")->version, 0);
    assert_true(json_is_null(json_object_get(event(small, 0), "Count")));
    assert_true(json_is_null(json_object_get(event(small, 0), "EvalID")));
    assert_true(json_is_true(json_object_get(event(small, 0), "Error")));
    assert_true(json_equal(json_object_get(event(small, 0), "Meta"), meta));
    json_decref(meta);
}

static void test_oldest_events_are_forgotten(void **state)
{
    struct small_life *small = *state;

    run(small, job_of("batch", 1, NULL));
    for (int64_t i = 0; i < 22; i++)
        scale_to(small, i % 2);
    assert_int_equal(json_array_size(alone_scaling_events(small_find(small, "j"), "g")), 20);
    assert_int_equal(json_integer_value(json_object_get(event(small, 0), "Count")), 1);
}

static void test_events_of_all_groups_have_a_bound(void **state)
{
    enum { GROUPS = 10, BYTES_MAX = 128 << 10 };
    struct small_life *small = *state;
    json_t *job = job_of("batch", 0, NULL), *groups = json_object_get(job, "TaskGroups");
    static char said[4001];
    size_t bytes = 0, left = 0;
    char name[8];

    memset(said, 'x', sizeof(said) - 1);
    for (int g = 0; g < GROUPS; g++) {
        json_t *group = json_deep_copy(json_array_get(groups, 0));
        assert_true(text_format(name, sizeof(name), "g%d", g));
        assert_int_equal(json_object_set_new(group, "Name", json_string(name)), 0);
        assert_int_equal(json_array_append_new(groups, group), 0);
    }
    run(small, job);
    for (int i = 0; i < 10 * GROUPS; i++) {
        struct err err = {0};
        assert_true(text_format(name, sizeof(name), "g%d", i % GROUPS));
        struct alone_scaling scaling = {.group = name, .count = -1, .message = said};
        assert_int_equal(scale(small, &scaling, &err), 0);
    }
    for (int g = 0; g < GROUPS; g++) {
        assert_true(text_format(name, sizeof(name), "g%d", g));
        const json_t *events = alone_scaling_events(small_find(small, "j"), name);
        left += json_array_size(events);
        bytes += json_dumpb(events, NULL, 0, JSON_COMPACT);
        assert_in_range(json_array_size(events), 3, 4);
    }
    assert_in_range(bytes, BYTES_MAX - 5000, BYTES_MAX);
    assert_in_range(left, 30, 32);
}

static void test_policy_keeps_its_id_while_the_group_has_one(void **state)
{
    struct small_life *small = *state;
    char id[UUID_TEXT_SIZE];

    run(small, job_of("batch", 1, bounds(0, 9)));
    assert_true(text_copy(id, sizeof(id), policy_id(small)));
    const json_t *policy = alone_scaling_policy(small_find(small, "j"), "g");
    uint64_t modified = (uint64_t)json_integer_value(json_object_get(policy, "ModifyIndex"));
    scale_to(small, 2);
    small_again(small);
    assert_string_equal(policy_id(small), id);
    policy = alone_scaling_policy(small_find(small, "j"), "g");
    assert_int_equal(json_integer_value(json_object_get(policy, "ModifyIndex")), modified);
    run(small, job_of("batch", 1, bounds(0, 8)));
    assert_string_equal(policy_id(small), id);
    policy = alone_scaling_policy(small_find(small, "j"), "g");
    assert_true((uint64_t)json_integer_value(json_object_get(policy, "ModifyIndex")) > modified);
    assert_non_null(event(small, 0)); /* what was said before is not forgotten */
    run(small, job_of("batch", 1, NULL));
    assert_null(policy_id(small));
    run(small, job_of("batch", 1, bounds(0, 8)));
    assert_string_not_equal(policy_id(small), id);
}

static void test_job_that_is_stopped_stays_so(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    run(small, job_of("batch", 2, bounds(0, 9)));
    assert_int_equal(alone_deregister(small->alone, "default", "j", 0, &evaluation, &err), 0);
    small_settle(small);
    scale_to(small, 3);
    assert_int_equal(living(small), 0);
    assert_true(small_find(small, "j")->stop);
    small_again(small);
    assert_true(small_find(small, "j")->stop);
    run(small, job_of("batch", 3, bounds(0, 9)));
    assert_int_equal(living(small), 3);
}

static void test_failed_commit_leaves_the_count_as_it_was(void **state)
{
    struct small_life *small = *state;
    struct alone_scaling scaling = {.group = "g", .count = 3, .message = ""};
    struct alone_evaluation evaluation;
    struct err err = {0};

    run(small, job_of("batch", 1, bounds(0, 9)));
    small->commit_code = ERR_FULL;
    assert_int_equal(alone_scale(small->alone, "default", "j", &scaling, &evaluation, &err), 0);
    small_settle(small);
    small->commit_code = 0;
    small->now_ms += 2000; /* the journal is tried again */
    small_settle(small);
    assert_int_equal(small_find(small, "j")->version, 0);
    assert_int_equal(living(small), 1);
    assert_null(event(small, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_what_the_policy_does_not_allow_is_refused),
        SMALL_TEST(test_what_is_too_much_for_the_node_is_refused),
        SMALL_TEST(test_system_job_has_one_alloc_or_none),
        SMALL_TEST(test_deployment_that_is_under_way_is_not_disturbed),
        SMALL_TEST(test_group_has_the_count_that_is_said),
        SMALL_TEST(test_what_only_is_said_changes_nothing),
        SMALL_TEST(test_oldest_events_are_forgotten),
        SMALL_TEST(test_events_of_all_groups_have_a_bound),
        SMALL_TEST(test_policy_keeps_its_id_while_the_group_has_one),
        SMALL_TEST(test_job_that_is_stopped_stays_so),
        SMALL_TEST(test_failed_commit_leaves_the_count_as_it_was),
    };
    return cmocka_run_group_tests_name("server/scaling", tests, NULL, NULL);
}
