/* cairn job history, and inspect of a version: how versions of a job differ, and what they were
 * read of. */
#include "test/agent/cli/answering.h"

/* 2020-09-13T12:26:40Z */
#define NOW_NS "1600000000000000000"
#define JOB "{\"ID\":\"shop\",\"Name\":\"shop\",\"Namespace\":\"default\"}"
#define VERSION(number)                                                                            \
    "{\"ID\":\"shop\",\"Version\":" number ",\"Stable\":false,\"SubmitTime\":" NOW_NS "}"
#define DIFF(old, new)                                                                             \
    "{\"Type\":\"Edited\",\"ID\":\"shop\",\"Fields\":[],\"Objects\":[],\"TaskGroups\":[{\"Type\":" \
    "\"Edited\",\"Name\":\"front\",\"Fields\":[{\"Type\":\"Edited\",\"Name\":\"Count\",\"Old\":"   \
    "\"" old "\",\"New\":\"" new "\",\"Annotations\":null}],\"Objects\":[],\"Tasks\":[],"          \
                                 "\"Updates\":null}]}"

/* Runs LINE against an agent that keeps three versions; what it was asked, owned by the caller. */
static char *run(struct typed *typed, const struct cli_verb *verb, const char *line)
{
    struct answering answering;

    answering_start(&answering,
                    (struct answer[]){
                        {.path = "/v1/jobs", .body = "[" JOB "]"},
                        {.path = "/v1/job/shop/versions",
                         .body = "{\"Versions\":[" VERSION("7") "," VERSION("6") "," VERSION(
                             "5") "],\"Diffs\":[" DIFF("2", "3") "," DIFF("1", "2") "]}"},
                        {.path = "/v1/job/shop/submission?version=5",
                         .body = "job source not found",
                         .status = 404},
                        {.path = "/v1/job/shop/submission",
                         .body = "{\"Source\":\"job \\\"shop\\\" {}\\n\",\"Version\":6,"
                                 "\"VariableFlags\":{\"a\":\"it's\"},"
                                 "\"Variables\":\"b = 1\\n\"}"},
                        {.path = "/v1/job/shop", .body = JOB},
                        {.path = NULL},
                    });
    type(typed, verb, line);
    return answering_stop(&answering);
}

static void test_versions_are_listed(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_history, "job history sh");

    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "Version  Stable  Submit Date\n"
                                    "7        false   2020-09-13T12:26:40Z\n"
                                    "6        false   2020-09-13T12:26:40Z\n"
                                    "5        false   2020-09-13T12:26:40Z\n");
    assert_says(asked, "/v1/job/shop/versions?diffs=false");
    free(asked);
    free(run(typed, &cli_job_history, "job history -version 6 shop"));
    assert_string_equal(typed->out, "Version  Stable  Submit Date\n"
                                    "6        false   2020-09-13T12:26:40Z\n");
}

static void test_differences_are_shown_as_a_plan_shows_them(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_history, "job history -p shop");

    assert_int_equal(typed->status, CLI_OK);
    assert_says(asked, "/v1/job/shop/versions?diffs=true");
    assert_says(typed->out, "Version     = 7\n"
                            "Stable      = false\n"
                            "Submit Date = 2020-09-13T12:26:40Z\n"
                            "Diff        =\n"
                            "+/- Job: \"shop\"\n"
                            "\n"
                            "+/- Task Group: \"front\"\n"
                            "  +/- Count: \"2\" => \"3\"\n"
                            "\n"
                            "Version     = 6\n");
    assert_true(text_ends_with(typed->out, "Version     = 5\n"
                                           "Stable      = false\n"
                                           "Submit Date = 2020-09-13T12:26:40Z\n"));
    free(asked);
    asked = run(typed, &cli_job_history, "job history -p -diff-version 5 -version 6 shop");
    assert_says(asked, "diffs=true&diff_version=5");
    assert_says(typed->out, "\"1\" => \"2\"");
    assert_is_silent_about(typed->out, "\"2\" => \"3\"");
    free(asked);
    free(run(typed, &cli_job_history, "job history -diff-version 5 shop"));
    assert_int_equal(typed->status, CLI_USAGE);
    assert_string_equal(typed->complain, "cairn: -diff-version goes with -p\n");
}

static void test_one_version_is_inspected(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_inspect, "job inspect -version 6 shop"));
    assert_int_equal(typed->status, CLI_OK);
    json_t *json = json_loads(typed->out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "Job"), "Version")),
                     6);
    json_decref(json);
    free(run(typed, &cli_job_history, "job history -full -version 5 shop"));
    json = json_loads(typed->out, 0, NULL);
    assert_int_equal(json_array_size(json), 1);
    json_decref(json);
}

static void test_file_that_it_was_read_of_is_printed(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_inspect, "job inspect -hcl -version 6 shop");

    assert_int_equal(typed->status, CLI_OK);
    assert_says(asked, "/v1/job/shop/submission?version=6");
    assert_string_equal(typed->out, "job \"shop\" {}\n");
    assert_string_equal(typed->complain, "");
    free(asked);
    free(run(typed, &cli_job_inspect, "job inspect -hcl -with-vars -version 6 shop"));
    assert_string_equal(typed->out, "job \"shop\" {}\n");
    assert_string_equal(typed->complain, "\nIt was submitted with:\n"
                                         "-var 'a=it'\\''s'\n"
                                         "-var-file:\n"
                                         "b = 1\n");
    free(run(typed, &cli_job_inspect, "job inspect -hcl -json -version 6 shop"));
    json_t *json = json_loads(typed->out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "Variables")), "b = 1\n");
    json_decref(json);
    free(run(typed, &cli_job_inspect, "job inspect -hcl -version 5 shop"));
    assert_int_equal(typed->status, CLI_FAILED);
    assert_string_equal(typed->complain, "cairn: job source not found\n");
    free(run(typed, &cli_job_inspect, "job inspect -with-vars shop"));
    assert_int_equal(typed->status, CLI_USAGE);
    assert_string_equal(typed->complain, "cairn: -with-vars goes with -hcl\n");
}

static void test_version_that_is_not_kept_is_said(void **state)
{
    static const char *const lines[] = {"job history -version 4 shop",
                                        "job inspect -version 4 shop"};
    static const struct cli_verb *const verbs[] = {&cli_job_history, &cli_job_inspect};
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        free(run(typed, verbs[i], lines[i]));
        assert_int_equal(typed->status, CLI_FAILED);
        assert_string_equal(typed->complain, "cairn: job \"shop\" has no version 4: "
                                             "`cairn job history shop` lists them\n");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, typed_make, typed_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_versions_are_listed),
        TEST(test_differences_are_shown_as_a_plan_shows_them),
        TEST(test_one_version_is_inspected),
        TEST(test_file_that_it_was_read_of_is_printed),
        TEST(test_version_that_is_not_kept_is_said),
    };

    return cmocka_run_group_tests_name("cli_job_history", tests, NULL, NULL);
}
