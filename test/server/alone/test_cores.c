/* Cores are given to one task each, are the same after a restart, and free when they are let go. */
#include "test/server/small_life.h"

#include "spec/job.h"
#include "spec/names.h"

/* The node has cores 1 to COUNT. */
static void have_cores(struct small_life *small, uint16_t count)
{
    small->cores = (struct core_set){{0}};
    for (uint16_t core = 1; core <= count; core++)
        core_set_add(&small->cores, core);
    small->room.cores = count;
    small_again(small);
}

/* A service NAME of one alloc with two tasks, which want so many cores. */
static struct alone_evaluation post(struct small_life *small, const char *name, const int cores[2])
{
    struct alone_evaluation evaluation;
    struct err err = {0};
    json_t *job = json_pack(
        "{s:s, s:s, s:[s], s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}, s:{s:i, s:i}}, {s:s, s:s, s:{s:s}, "
        "s:{s:i, s:i}}]}]}",
        "ID", name, "Type", "service", "Datacenters", "dc1", "TaskGroups", "Name", "g", "Count", 1,
        "Tasks", "Name", "t", "Driver", "raw_exec", "Config", "command", "/bin/a", "Resources",
        "Cores", cores[0], "CPU", cores[0] > 0 ? 0 : 10, "Name", "u", "Driver", "raw_exec",
        "Config", "command", "/bin/a", "Resources", "Cores", cores[1], "CPU",
        cores[1] > 0 ? 0 : 10);

    assert_non_null(job);
    if (alone_register(small->alone, job, &evaluation, NULL, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(job);
    return evaluation;
}

static struct alone_evaluation run(struct small_life *small, const char *name, const int cores[2])
{
    struct alone_evaluation evaluation = post(small, name, cores);

    small_settle(small);
    return evaluation;
}

/* What the newest alloc of JOB was given, as "t:1-2 u:3". */
static const char *given(struct small_life *small, const char *job)
{
    static char text[CORES_TEXT_SIZE];
    struct small_counts counts = small_count(small, job, NULL);
    struct stored_blob *stored;
    struct alloc_spec *spec;
    char key[JOURNAL_KEY_SIZE], part[CORES_TEXT_SIZE];
    struct err err = {0};

    assert_true(text_format(key, sizeof(key), "alloc/%s", counts.newest));
    stored = small_spec(small, key);
    assert_non_null(stored);
    if (jobspec_decode_alloc(stored->bytes, stored->length, &spec, &err) != 0)
        fail_msg("%s", err.text);
    text[0] = '\0';
    for (size_t i = 0; i < spec->tasks_count; i++) {
        spec_cores_text(spec->tasks[i].resources.core_ids, spec->tasks[i].resources.cores, part);
        assert_true(text_append(text, sizeof(text), i > 0 ? " " : ""));
        assert_true(text_append(text, sizeof(text), spec->tasks[i].name));
        assert_true(text_append(text, sizeof(text), ":"));
        assert_true(text_append(text, sizeof(text), part));
    }
    alloc_spec_free(spec);
    return text;
}

static void stop(struct small_life *small, const char *job)
{
    struct alone_evaluation evaluation;
    struct err err = {0};

    assert_int_equal(alone_deregister(small->alone, "default", job, ALONE_PURGE, &evaluation, &err),
                     0);
    small_settle(small);
}

static void test_each_task_has_its_own_and_they_run_out(void **state)
{
    struct small_life *small = *state;

    have_cores(small, 4);
    (void)run(small, "a", (const int[]){2, 1});
    assert_string_equal(given(small, "a"), "t:1-2 u:3");
    struct alone_evaluation evaluation = run(small, "b", (const int[]){0, 2});
    assert_int_equal(small_count(small, "b", NULL).live, 0);
    const struct alone_evaluation *blocked = alone_evaluation(small->alone, evaluation.blocked_id);
    assert_non_null(blocked);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(blocked->failed, 0), "What")), "cores");
    (void)run(small, "c", (const int[]){0, 1});
    assert_string_equal(given(small, "c"), "t: u:4");
    (void)run(small, "d", (const int[]){0, 0}); /* who asks for none gets in */
    assert_int_equal(small_count(small, "d", NULL).live, 1);
    stop(small, "a");
    assert_string_equal(given(small, "b"), "t: u:1-2");
}

static void test_they_are_known_after_the_daemon_has_died(void **state)
{
    struct small_life *small = *state;

    have_cores(small, 4);
    (void)run(small, "a", (const int[]){1, 0});
    (void)run(small, "b", (const int[]){1, 0});
    stop(small, "a");
    have_cores(small, 4);
    assert_string_equal(given(small, "b"), "t:2 u:");
    (void)run(small, "c", (const int[]){2, 0});
    assert_string_equal(given(small, "c"), "t:1,3 u:"); /* around what b has */
}

/* A change that was not committed takes nothing, and what it let go is held again. */
static void test_what_was_not_committed_was_not_given(void **state)
{
    struct small_life *small = *state;
    struct alone_evaluation evaluation;
    struct err err = {0};

    have_cores(small, 3);
    (void)run(small, "a", (const int[]){1, 0});
    small->commit_code = ERR_IO;
    (void)post(small, "b", (const int[]){1, 0});
    assert_int_equal(alone_deregister(small->alone, "default", "a", 0, &evaluation, &err), 0);
    assert_false(life_turn(small->life));
    small->commit_code = 0;
    small->now_ms += 5000;
    small_settle(small);
    assert_null(small_find(small, "b"));
    (void)run(small, "c", (const int[]){2, 0});
    assert_int_equal(small_count(small, "a", NULL).live, 1);
    assert_string_equal(given(small, "c"), "t:2-3 u:");
}

static void test_an_alloc_of_a_new_version_has_the_room_of_the_old(void **state)
{
    struct small_life *small = *state;

    have_cores(small, 2);
    (void)run(small, "a", (const int[]){2, 0});
    (void)run(small, "a", (const int[]){1, 1});
    assert_int_equal(small_count(small, "a", NULL).live, 1);
    assert_string_equal(given(small, "a"), "t:1 u:2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(test_each_task_has_its_own_and_they_run_out),
        SMALL_TEST(test_they_are_known_after_the_daemon_has_died),
        SMALL_TEST(test_what_was_not_committed_was_not_given),
        SMALL_TEST(test_an_alloc_of_a_new_version_has_the_room_of_the_old),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
