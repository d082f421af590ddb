/* Groups that ask for volumes of the node are placed where it has them, and wait where not. */
#include "test/server/small_life.h"

static struct spec_node_volume volumes[] = {
    {"data", "/srv/data", false}, {"certs", "/etc/ssl", true}, {"own[0]", "/srv/own", false}};

/* The daemon dies, and its node is configured with the first COUNT of them when it comes again. */
static void have_volumes(struct small_life *small, size_t count)
{
    small->volumes = (struct spec_node_volumes){.items = volumes, .count = count};
    small_again(small);
}

/* A service "j" of COUNT allocs with one volume. */
static struct alone_evaluation run(struct small_life *small, int count, const char *source,
                                   bool read_only, bool per_alloc)
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = json_pack(
        "{s:s, s:s, s:[s], s:[{s:s, s:i, s:{s:{s:s, s:s, s:b, s:b}}, s:[{s:s, s:s, s:{s:s}, "
        "s:[{s:s, s:s}]}]}]}",
        "ID", "j", "Type", "service", "Datacenters", "dc1", "TaskGroups", "Name", "g", "Count",
        count, "Volumes", "v", "Type", "host", "Source", source, "ReadOnly", read_only, "PerAlloc",
        per_alloc, "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a",
        "VolumeMounts", "Volume", "v", "Destination", "/srv");

    assert_non_null(job);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    small_settle(small);
    return evaluation;
}

static void assert_waits(struct small_life *small, const struct alone_evaluation *evaluation,
                         size_t count, const char *what)
{
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation->blocked_id);

    assert_int_equal(alone_queued(small_find(small, "j"), 0), count);
    assert_non_null(blocked);
    const json_t *failed = json_array_get(blocked->failed, 0);
    assert_string_equal(json_string_value(json_object_get(failed, "Why")), "constraint");
    assert_string_equal(json_string_value(json_object_get(failed, "What")), what);
}

static void test_group_is_placed_beside_its_volume(void **state)
{
    struct small_life *small = *state;

    have_volumes(small, 2);
    (void)run(small, 3, "data", false, false);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
    (void)run(small, 3, "certs", true, false);
    assert_int_equal(small_count(small, "j", NULL).live, 3);
}

static void test_group_waits_for_a_node_with_its_volume(void **state)
{
    struct small_life *small = *state;

    have_volumes(small, 0);
    struct alone_evaluation evaluation = run(small, 2, "data", false, false);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_waits(small, &evaluation, 2, "missing compatible host volumes: there is no \"data\"");
    have_volumes(small, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    have_volumes(small, 1);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 2);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 0);
}

static void test_who_wants_to_write_waits_for_a_volume_that_may_be_written(void **state)
{
    struct small_life *small = *state;

    have_volumes(small, 2);
    struct alone_evaluation evaluation = run(small, 1, "certs", false, false);
    assert_waits(small, &evaluation, 1, "missing compatible host volumes: \"certs\" is read-only");
}

static void test_each_alloc_has_its_own(void **state)
{
    struct small_life *small = *state;

    have_volumes(small, 3);
    struct alone_evaluation evaluation = run(small, 2, "own", false, true);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    assert_waits(small, &evaluation, 1, "missing compatible host volumes: there is no \"own[1]\"");
}

/* What runs is left alone, and what takes its place waits. */
static void test_volume_that_goes_stops_nothing_and_lets_nothing_come(void **state)
{
    struct small_life *small = *state;

    have_volumes(small, 1);
    (void)run(small, 1, "data", false, false);
    struct small_counts counts = small_count(small, "j", NULL);
    have_volumes(small, 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 1);
    struct alone_evaluation evaluation;
    struct err err = {0};
    assert_int_equal(alone_stop_alloc(small->alone, counts.newest, 0, &evaluation, &err), 0);
    small_settle(small);
    assert_int_equal(small_count(small, "j", NULL).live, 0);
    assert_int_equal(alone_queued(small_find(small, "j"), 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_group_is_placed_beside_its_volume),
        SMALL_TEST(test_group_waits_for_a_node_with_its_volume),
        SMALL_TEST(test_who_wants_to_write_waits_for_a_volume_that_may_be_written),
        SMALL_TEST(test_each_alloc_has_its_own),
        SMALL_TEST(test_volume_that_goes_stops_nothing_and_lets_nothing_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
