/* cairn job history, and inspect of a version: how versions of a job differ, and what they were
 * read of. */
#include "test/agent/cli/answering.h"

/* 2020-09-13T12:26:40Z */
#define NOW_NS "1600000000000000000"
#define JOB "{\"ID\":\"shop\",\"Name\":\"shop\",\"Namespace\":\"default\"}"
#define VERSION(number, tag)                                                                       \
    "{\"ID\":\"shop\",\"Version\":" number ",\"Stable\":false,\"SubmitTime\":" NOW_NS              \
    ",\"VersionTag\":" tag "}"
#define TAG "{\"Name\":\"good\",\"Description\":\"\"}"
#define DIFF(old, new)                                                                             \
    "{\"Type\":\"Edited\",\"ID\":\"shop\",\"Fields\":[],\"Objects\":[],\"TaskGroups\":[{\"Type\":" \
    "\"Edited\",\"Name\":\"front\",\"Fields\":[{\"Type\":\"Edited\",\"Name\":\"Count\",\"Old\":"   \
    "\"" old "\",\"New\":\"" new "\",\"Annotations\":null}],\"Objects\":[],\"Tasks\":[],"          \
                                 "\"Updates\":null}]}"

/* Runs LINE against an agent that keeps three versions; what it was asked, owned by the caller. */
static char *run(struct typed *typed, const struct cli_verb *verb, const char *line)
{
    struct answering answering;

    answering_start(
        &answering,
        (struct answer[]){
            {.path = "/v1/jobs", .body = "[" JOB "]"},
            {.path = "/v1/job/shop/versions/good/tag", .body = "{}"},
            {.path = "/v1/job/shop/versions",
             .body = "{\"Versions\":[" VERSION("7", "null") "," VERSION("6", "null") "," VERSION(
                 "5", TAG) "],\"Diffs\":[" DIFF("2", "3") "," DIFF("1", "2") "]}"},
            {.path = "/v1/job/shop/revert", .body = "{\"EvalID\":\"e\"}"},
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
    assert_string_equal(typed->out, "Version  Stable  Submit Date           Tag\n"
                                    "7        false   2020-09-13T12:26:40Z  <none>\n"
                                    "6        false   2020-09-13T12:26:40Z  <none>\n"
                                    "5        false   2020-09-13T12:26:40Z  good\n");
    assert_says(asked, "/v1/job/shop/versions?diffs=false");
    free(asked);
    free(run(typed, &cli_job_history, "job history -version 6 shop"));
    assert_string_equal(typed->out, "Version  Stable  Submit Date           Tag\n"
                                    "6        false   2020-09-13T12:26:40Z  <none>\n");
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
                                           "Submit Date = 2020-09-13T12:26:40Z\n"
                                           "Tag         = good\n"));
    free(asked);
    asked = run(typed, &cli_job_history, "job history -p -diff-version 5 -version 6 shop");
    assert_says(asked, "diffs=true&diff_version=5");
    assert_says(typed->out, "\"1\" => \"2\"");
    assert_is_silent_about(typed->out, "\"2\" => \"3\"");
    free(asked);
    asked = run(typed, &cli_job_history, "job history -p -diff-tag good shop");
    assert_says(asked, "diffs=true&diff_tag=good");
    free(asked);
    free(run(typed, &cli_job_history, "job history -diff-version 5 shop"));
    assert_int_equal(typed->status, CLI_USAGE);
    assert_string_equal(typed->complain, "cairn: -diff-version and -diff-tag go with -p\n");
    free(run(typed, &cli_job_history, "job history -p -diff-version 5 -diff-tag good shop"));
    assert_int_equal(typed->status, CLI_USAGE);
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

static void test_version_is_named_and_found_by_that(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_tag, "job tag apply -name good -version 5 shop");

    assert_int_equal(typed->status, CLI_OK);
    assert_says(asked, "PUT /v1/job/shop/versions/good/tag?namespace=default "
                       "{\"Version\":5,\"Description\":\"\"}");
    assert_string_equal(typed->out, "Job version 5 tagged with name \"good\"\n");
    free(asked);
    asked = run(typed, &cli_job_tag, "job tag unset -name good shop");
    assert_says(asked, "DELETE /v1/job/shop/versions/good/tag?namespace=default");
    assert_string_equal(typed->out, "Tag \"good\" removed from job \"shop\"\n");
    free(asked);
    asked = run(typed, &cli_job_revert, "job revert -detach shop good");
    assert_int_equal(typed->status, CLI_OK);
    assert_says(asked, "\"JobVersion\":5");
    free(asked);
    free(run(typed, &cli_job_revert, "job revert -detach shop bad"));
    assert_int_equal(typed->status, CLI_USAGE);
    assert_string_equal(typed->complain, "cairn: \"bad\" is no version and no tag: `cairn job "
                                         "history shop` lists them\n");
    static const char *const wrong[] = {"job tag apply shop", "job tag apply -name a/b shop",
                                        "job tag give -name a shop"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        free(run(typed, &cli_job_tag, wrong[i]));
        assert_int_equal(typed->status, CLI_USAGE);
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
        TEST(test_version_is_named_and_found_by_that),
        TEST(test_version_that_is_not_kept_is_said),
    };

    return cmocka_run_group_tests_name("cli_job_history", tests, NULL, NULL);
}
