/* What one job may ask for: each bound, one past it, and their products. */
#include "spec/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_SIZE = JOBSPEC_PROBLEMS_MAX * HCL_ERROR_SIZE };

static void add_group(json_t *groups, json_int_t count, size_t tasks)
{
    json_t *list = json_array();
    char name[16];

    for (size_t i = 0; i < tasks; i++) {
        (void)text_format(name, sizeof(name), "t%zu", i); /* fits */
        assert_int_equal(json_array_append_new(
                             list, json_pack("{s:s, s:s}", "Name", name, "Driver", "raw_exec")),
                         0);
    }
    (void)text_format(name, sizeof(name), "g%zu", json_array_size(groups)); /* fits */
    /* The logs of as many tasks need a large disk; that is not what is tried here. */
    assert_int_equal(json_array_append_new(groups, json_pack("{s:s, s:I, s:{s:i}, s:o}", "Name",
                                                             name, "Count", count, "EphemeralDisk",
                                                             "SizeMB", 100000, "Tasks", list)),
                     0);
}

/* The problems of a job with GROUPS (moved), "" if there are none; owned by the caller. */
static char *problems_of(json_t *groups)
{
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    char *text = calloc(1, TEXT_SIZE);
    json_t *request = json_pack("{s:s, s:o}", "ID", "job", "TaskGroups", groups), *job = NULL;

    assert_non_null(problems);
    assert_non_null(text);
    assert_non_null(request);
    if (jobspec_from_json("t", request, &job, problems) != 0)
        jobspec_problems_text(problems, text, TEXT_SIZE);
    json_decref(job);
    json_decref(request);
    free(problems);
    return text;
}

/* A job of GROUPS groups with COUNT allocs of TASKS tasks each, and a group of LAST allocs. */
static void expect(size_t groups, json_int_t count, size_t tasks, json_int_t last,
                   const char *expected)
{
    json_t *list = json_array();

    for (size_t i = 0; i < groups; i++)
        add_group(list, count, tasks);
    if (last > 0)
        add_group(list, last, 1);
    char *text = problems_of(list);
    if (expected == NULL)
        assert_string_equal(text, "");
    else if (strstr(text, expected) == NULL)
        fail_msg("\"%s\" is not in: %s", expected, text);
    free(text);
}

static void test_groups(void **state)
{
    (void)state;
    expect(JOB_GROUPS_MAX, 1, 1, 0, NULL);
    expect(JOB_GROUPS_MAX, 1, 1, 1, "101 groups, there may be 100");
}

static void test_count_of_a_group(void **state)
{
    (void)state;
    expect(1, JOB_COUNT_MAX, 1, 0, NULL);
    expect(1, JOB_COUNT_MAX + 1, 1, 0, "2000");
}

static void test_tasks_of_a_group(void **state)
{
    (void)state;
    expect(1, 1, SPEC_TASKS_MAX, 0, NULL);
    expect(1, 1, SPEC_TASKS_MAX + 1, 0, "65 tasks, there may be 64");
}

static void test_allocs_of_all_groups(void **state)
{
    (void)state;
    expect(2, JOB_COUNT_MAX, 1, JOB_ALLOCS_MAX - 2 * JOB_COUNT_MAX, NULL);
    expect(2, JOB_COUNT_MAX, 1, JOB_ALLOCS_MAX - 2 * JOB_COUNT_MAX + 1,
           "4097 allocs, the counts of all groups together: a job may have 4096");
}

static void test_tasks_of_all_allocs(void **state)
{
    (void)state;
    expect(1, JOB_TASKS_MAX / SPEC_TASKS_MAX, SPEC_TASKS_MAX, 0, NULL);
    expect(1, JOB_TASKS_MAX / SPEC_TASKS_MAX, SPEC_TASKS_MAX, 1,
           "8193 tasks in all its allocs together: a job may have 8192");
}

static void test_products_of_what_is_allowed_by_itself(void **state)
{
    (void)state;
    expect(34, JOB_COUNT_MAX, 1, 0, "68000 allocs, the counts of all groups together");
    expect(JOB_GROUPS_MAX, JOB_COUNT_MAX, 1, 0, "200000 allocs");
    expect(1, JOB_COUNT_MAX, SPEC_TASKS_MAX, 0, "128000 tasks in all its allocs together");
    expect(JOB_GROUPS_MAX, JOB_COUNT_MAX, SPEC_TASKS_MAX, 0, "12800000 tasks");
}

static void test_counts_that_are_no_counts_are_refused_by_themselves(void **state)
{
    (void)state;
    expect(2, INT64_MAX, 2, 0, "2000");
    expect(2, INT64_MIN, 2, 0, "at least 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_count_of_a_group),
        cmocka_unit_test(test_tasks_of_a_group),
        cmocka_unit_test(test_allocs_of_all_groups),
        cmocka_unit_test(test_tasks_of_all_allocs),
        cmocka_unit_test(test_products_of_what_is_allowed_by_itself),
        cmocka_unit_test(test_counts_that_are_no_counts_are_refused_by_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
