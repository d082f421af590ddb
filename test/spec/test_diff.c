/* What differs between two jobs is told as Nomad tells it, and nothing else. */
#include "spec/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char plain[] =
    "job \"j\" {\n  meta { a = \"1\" }\n  group \"g\" {\n    count = 2\n    task \"t\" {\n"
    "      driver = \"raw_exec\"\n      config {\n        command = \"/bin/a\"\n"
    "        args    = [\"x\", \"y\"]\n      }\n      env { A = \"1\" }\n    }\n  }\n}\n";

static json_t *read_job(const char *text)
{
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    const struct jobspec_source source = {.name = "j", .text = text, .length = strlen(text)};
    json_t *job = NULL;

    assert_non_null(problems);
    if (jobspec_parse(&source, &job, problems) != 0)
        fail_msg("%s", problems->items[0]);
    free(problems);
    return job;
}

/* The plain job with WHAT, which is in it once, as WITH. */
static json_t *job_with(const char *what, const char *with)
{
    const char *at = strstr(plain, what);
    char text[2048];

    assert_non_null(at);
    assert_true(text_format(text, sizeof(text), "%.*s%s%s", (int)(at - plain), plain, with,
                            at + strlen(what)));
    return read_job(text);
}

static json_t *diff_with(const char *what, const char *with)
{
    json_t *before = read_job(plain), *after = job_with(what, with);
    json_t *diff = jobspec_diff(before, after);

    json_decref(before);
    json_decref(after);
    return diff;
}

static const json_t *group_of(const json_t *diff, size_t at)
{
    return json_array_get(json_object_get(diff, "TaskGroups"), at);
}

static const json_t *task_of(const json_t *diff)
{
    return json_array_get(json_object_get(group_of(diff, 0), "Tasks"), 0);
}

/* PART (of DIFF) of LIST named NAME says WHAT, as JSON; "" for one that is not there. */
static void check_part(const json_t *part, const char *list, const char *name, const char *what)
{
    char *text = NULL;
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(part, list), i, item)
    {
        if (text == NULL && text_equal(json_string_value(json_object_get(item, "Name")), name))
            text = json_dumps(item, JSON_COMPACT); /* of the first of that name */
    }
    if (what[0] == '\0' ? text != NULL : text == NULL || strstr(text, what) == NULL)
        fail_msg("%s: %s, not %s", name, text == NULL ? "nothing" : text, what);
    free(text);
}

static void check_type(const json_t *diff, const char *type)
{
    assert_string_equal(json_string_value(json_object_get(diff, "Type")), type);
}

static void test_same_jobs_have_no_difference(void **state)
{
    json_t *diff = diff_with("count = 2", "count = 2");
    (void)state;

    check_type(diff, "None");
    assert_int_equal(json_array_size(json_object_get(diff, "Fields")), 0);
    assert_int_equal(json_array_size(json_object_get(diff, "Objects")), 0);
    check_type(group_of(diff, 0), "None");
    check_type(task_of(diff), "None");
    assert_true(json_is_null(json_object_get(task_of(diff), "Annotations")));
    json_decref(diff);
}

static void test_new_job_is_added_with_all_it_says(void **state)
{
    json_t *after = read_job(plain), *diff = jobspec_diff(NULL, after);
    (void)state;

    check_type(diff, "Added");
    assert_string_equal(json_string_value(json_object_get(diff, "ID")), "j");
    check_part(diff, "Fields", "Meta[a]", "\"Type\":\"Added\"");
    check_part(diff, "Fields", "ID", "");
    check_part(diff, "Objects", "Update", "");
    check_type(group_of(diff, 0), "Added");
    check_part(group_of(diff, 0), "Fields", "Count", "\"New\":\"2\"");
    check_part(group_of(diff, 0), "Fields", "Name", "");
    check_part(group_of(diff, 0), "Tasks", "t", "[\"forces create\"]");
    json_decref(diff);
    json_decref(after);
}

static void test_fields_and_maps_are_told_by_name(void **state)
{
    json_t *diff = diff_with("count = 2", "count = 3\n shutdown_delay = \"1s\"");
    (void)state;

    check_type(diff, "Edited");
    check_part(group_of(diff, 0), "Fields", "Count", "\"Old\":\"2\",\"New\":\"3\"");
    check_part(group_of(diff, 0), "Fields", "Count", "[\"forces create\"]");
    check_part(group_of(diff, 0), "Fields", "ShutdownDelay", "\"New\":\"1000000000\"");
    check_type(task_of(diff), "None");
    json_decref(diff);
    diff = diff_with("count = 2", "count = 1");
    check_part(group_of(diff, 0), "Fields", "Count", "[\"forces destroy\"]");
    json_decref(diff);
    diff = diff_with("meta { a = \"1\" }", "meta { b = \"1\" }");
    check_part(diff, "Fields", "Meta[a]", "\"Type\":\"Deleted\"");
    check_part(diff, "Fields", "Meta[b]", "\"Type\":\"Added\"");
    check_type(group_of(diff, 0), "None");
    json_decref(diff);
    diff = diff_with("A = \"1\"", "A = \"2\"");
    check_part(task_of(diff), "Fields", "Env[A]", "\"Old\":\"1\",\"New\":\"2\"");
    json_decref(diff);
}

static void test_what_a_driver_is_told_is_flat(void **state)
{
    json_t *diff = diff_with("\"y\"]", "\"z\", 7]\n nested = [{ k = true }]");
    (void)state;

    check_part(task_of(diff), "Objects", "Config", "\"Type\":\"Edited\"");
    check_part(task_of(diff), "Objects", "Config",
               "\"Name\":\"args[1]\",\"Old\":\"y\",\"New\":\"z\"");
    check_part(task_of(diff), "Objects", "Config",
               "\"Name\":\"args[2]\",\"Old\":\"\",\"New\":\"7\"");
    check_part(task_of(diff), "Objects", "Config", "\"Name\":\"nested[0][k]\"");
    check_part(task_of(diff), "Objects", "Config", "\"Type\":\"None\",\"Name\":\"args[0]\"");
    assert_non_null(
        strstr(json_string_value(json_array_get(json_object_get(task_of(diff), "Annotations"), 0)),
               "create/destroy"));
    json_decref(diff);
}

static void test_task_that_runs_by_the_same_is_changed_in_place(void **state)
{
    json_t *diff =
        diff_with("env {", "constraint {\n attribute = \"${meta.a}\"\n value = \"1\"\n }\n"
                           " env {");
    (void)state;

    check_type(task_of(diff), "Edited");
    check_part(task_of(diff), "Objects", "Constraint", "\"Type\":\"Added\"");
    check_part(group_of(diff, 0), "Tasks", "t", "[\"forces in-place update\"]");
    json_decref(diff);
}

static void test_task_that_takes_it_is_changed_in_place(void **state)
{
    json_t *diff = diff_with("env {", "kill_timeout = \"9s\"\n logs {\n max_files = 3\n }\n env {");
    (void)state;

    check_part(group_of(diff, 0), "Tasks", "t", "[\"forces in-place update\"]");
    json_decref(diff);
    diff = diff_with("env {", "logs {\n disabled = true\n }\n env {");
    check_part(group_of(diff, 0), "Tasks", "t", "[\"forces create/destroy update\"]");
    json_decref(diff);
}

static void test_lists_of_blocks_are_sets(void **state)
{
    static const char one[] = "constraint {\n attribute = \"${meta.a}\"\n value = \"1\"\n}\n";
    static const char two[] = "constraint {\n attribute = \"${meta.b}\"\n value = \"2\"\n}\n";
    char both[300], turned[300];
    (void)state;

    assert_true(text_format(both, sizeof(both), "%s%scount = 2", one, two));
    assert_true(text_format(turned, sizeof(turned), "%s%scount = 2", two, one));
    json_t *before = job_with("count = 2", both), *after = job_with("count = 2", turned);
    json_t *diff = jobspec_diff(before, after);
    assert_int_equal(json_array_size(json_object_get(group_of(diff, 0), "Objects")), 0);
    json_decref(diff);
    json_decref(after);
    after = job_with("count = 2", "count = 2");
    diff = jobspec_diff(before, after);
    assert_int_equal(json_array_size(json_object_get(group_of(diff, 0), "Objects")), 2);
    check_part(group_of(diff, 0), "Objects", "Constraint", "\"Type\":\"Deleted\"");
    json_decref(diff);
    json_decref(before);
    json_decref(after);
}

static void test_groups_come_and_go_and_stopped_jobs_start(void **state)
{
    json_t *before = read_job(plain), *after = job_with("\"g\"", "\"h\"");
    (void)state;

    assert_int_equal(json_object_set_new(before, "Stop", json_true()), 0);
    assert_int_equal(json_object_set_new(before, "Version", json_integer(7)), 0);
    json_t *diff = jobspec_diff(before, after);
    check_part(diff, "TaskGroups", "g", "\"Type\":\"Deleted\"");
    check_part(diff, "TaskGroups", "h", "\"Type\":\"Added\"");
    check_part(group_of(diff, 0), "Tasks", "t", "[\"forces destroy\"]");
    check_part(diff, "Fields", "Stop", "\"Old\":\"true\",\"New\":\"false\"");
    check_part(diff, "Fields", "Version", "");
    json_decref(diff);
    json_decref(before);
    json_decref(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_jobs_have_no_difference),
        cmocka_unit_test(test_new_job_is_added_with_all_it_says),
        cmocka_unit_test(test_fields_and_maps_are_told_by_name),
        cmocka_unit_test(test_what_a_driver_is_told_is_flat),
        cmocka_unit_test(test_task_that_runs_by_the_same_is_changed_in_place),
        cmocka_unit_test(test_task_that_takes_it_is_changed_in_place),
        cmocka_unit_test(test_lists_of_blocks_are_sets),
        cmocka_unit_test(test_groups_come_and_go_and_stopped_jobs_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
