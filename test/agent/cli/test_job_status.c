/* cairn job status and inspect: jobs in a list, one with its allocs, how one is found. */
#include "test/agent/cli/answering.h"

/* 2020-09-13T12:26:40Z */
#define NOW_NS "1600000000000000000"
#define JOB                                                                                        \
    "{\"ID\":\"shop\",\"Name\":\"shop\",\"Type\":\"service\",\"Priority\":50,\"Version\":3,"       \
    "\"Namespace\":\"default\",\"Status\":\"dead\",\"Stop\":true,\"SubmitTime\":" NOW_NS ","       \
    "\"Datacenters\":[\"dc1\",\"dc2\"]}"

/* Runs LINE against an agent that has JOBS in its list and ALLOCS of the job; what it was asked,
 * owned by the caller. */
static char *run(struct typed *typed, const struct cli_verb *verb, const char *jobs,
                 const char *allocs, const char *line)
{
    struct answering answering;

    answering_start(&answering,
                    (struct answer[]){
                        {.path = "/v1/jobs", .body = jobs},
                        {.path = "/v1/job/shop/summary",
                         .body = "{\"Summary\":{\"front\":{\"Queued\":0,\"Starting\":1,"
                                 "\"Running\":2,\"Failed\":3,\"Complete\":4,\"Lost\":5}}}"},
                        {.path = "/v1/job/shop/allocations", .body = allocs},
                        {.path = "/v1/job/shop/evaluations",
                         .body = "[{\"ID\":\"eeeeeeee-1111\",\"Priority\":50,"
                                 "\"TriggeredBy\":\"job-register\",\"Status\":\"complete\"}]"},
                        {.path = "/v1/job/shop/deployment",
                         .body = "{\"ID\":\"dddddddd-1111\",\"Status\":\"running\","
                                 "\"StatusDescription\":\"Deployment is running\",\"TaskGroups\":"
                                 "{\"front\":{\"DesiredTotal\":4,\"PlacedAllocs\":3,"
                                 "\"HealthyAllocs\":2,\"UnhealthyAllocs\":1,"
                                 "\"RequireProgressBy\":\"2026-11-23T08:01:55.123Z\"}}}"},
                        {.path = "/v1/job/shop", .body = JOB},
                        {.path = NULL},
                    });
    type(typed, verb, line);
    return answering_stop(&answering);
}

/* --- lists --- */

static void test_jobs_are_listed_and_stopped_ones_marked(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status,
             "[" JOB ",{\"ID\":\"w\",\"Type\":\"batch\",\"Status\":\"running\"}]", "[]",
             "job status"));
    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out,
                        "ID    Type     Priority  Status          Submit Date\n"
                        "shop  service  50        dead (stopped)  2020-09-13T12:26:40Z\n"
                        "w     batch    <none>    running         N/A\n");
}

static void test_no_jobs_are_said(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status, "[]", "[]", "job status"));
    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "No jobs\n");
}

/* --- one job --- */

static void test_status_shows_job_summary_and_allocs(void **state)
{
    struct typed *typed = *state;

    char *asked = run(typed, &cli_job_status, "[" JOB "]",
                      "[{\"ID\":\"aaaaaaaa-1111\",\"NodeID\":\"nnnnnnnn-1111\","
                      "\"TaskGroup\":\"front\",\"JobVersion\":2,\"DesiredStatus\":\"run\","
                      "\"ClientStatus\":\"running\"},{\"ID\":\"bbbbbbbb-1111\","
                      "\"NodeID\":\"nnnnnnnn-1111\",\"TaskGroup\":\"front\","
                      "\"Job\":{\"Version\":1},\"DesiredStatus\":\"stop\","
                      "\"ClientStatus\":\"complete\"}]",
                      "job status sh");
    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "Datacenters = dc1,dc2\n");
    assert_says(typed->out, "Status      = dead (stopped)\n");
    assert_says(typed->out, "Summary\n"
                            "Task Group  Queued  Starting  Running  Failed  Complete  Lost\n"
                            "front       0       1         2        3       4         5\n");
    assert_says(typed->out, "Latest Deployment\n"
                            "ID          = dddddddd\n"
                            "Status      = running\n"
                            "Description = Deployment is running\n");
    assert_says(typed->out, "Task Group  Desired  Placed  Healthy  Unhealthy  Progress Deadline\n"
                            "front       4        3       2        1          "
                            "2026-11-23T08:01:55Z\n");
    assert_says(typed->out, "aaaaaaaa  nnnnnnnn  front       2        run      running   <none>");
    assert_says(typed->out, "bbbbbbbb  nnnnnnnn  front       1        stop     complete  <none>");
    assert_is_silent_about(typed->out, "Evaluations");
    assert_is_silent_about(asked, "/evaluations");
    free(asked);
}

static void test_verbose_status_shows_whole_ids_and_evaluations(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status, "[" JOB "]", "[{\"ID\":\"aaaaaaaa-1111\"}]",
             "job status -verbose shop"));
    assert_says(typed->out, "aaaaaaaa-1111");
    assert_says(typed->out, "eeeeeeee-1111  50        job-register  complete\n");
}

static void test_short_status_leaves_allocs_away(void **state)
{
    struct typed *typed = *state;

    char *asked = run(typed, &cli_job_status, "[" JOB "]", "[]", "job status -short shop");
    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "Version     = 3\n");
    assert_is_silent_about(typed->out, "Allocations");
    assert_is_silent_about(asked, "/allocations");
    free(asked);
}

static void test_job_without_allocs_says_so(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status, "[" JOB "]", "[]", "job status shop"));
    assert_says(typed->out, "\nAllocations\nNo allocations placed\n");
}

static void test_inspect_prints_the_job_as_it_was_submitted(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_inspect, "[" JOB "]", "[]", "job inspect shop"));
    assert_int_equal(typed->status, CLI_OK);
    json_t *json = json_loads(typed->out, 0, NULL);
    assert_string_equal(cli_value(json_object_get(json, "Job"), "ID"), "shop");
    json_decref(json);
}

/* --- finding --- */

static void test_whole_id_is_meant_though_others_begin_with_it(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status, "[{\"ID\":\"shopping\",\"Namespace\":\"default\"}," JOB "]",
             "[]", "job status -short shop"));
    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "ID          = shop\n");
}

static void test_prefix_of_several_jobs_is_refused_with_their_ids(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_status, "[{\"ID\":\"shopping\"},{\"ID\":\"shops\"}]", "[]",
             "job status shop"));
    assert_int_equal(typed->status, CLI_FAILED);
    assert_string_equal(typed->out, "");
    assert_string_equal(typed->complain, "cairn: 2 jobs have an id that begins with \"shop\":\n"
                                         "  shopping\n"
                                         "  shops\n");
}

static void test_job_that_is_not_there_is_said(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_job_inspect, "[]", "[]", "job inspect -namespace prod shop"));
    assert_int_equal(typed->status, CLI_FAILED);
    assert_says(typed->complain, "no job has an id that begins with \"shop\" in namespace prod");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, typed_make, typed_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_jobs_are_listed_and_stopped_ones_marked),
        TEST(test_no_jobs_are_said),
        TEST(test_status_shows_job_summary_and_allocs),
        TEST(test_verbose_status_shows_whole_ids_and_evaluations),
        TEST(test_short_status_leaves_allocs_away),
        TEST(test_job_without_allocs_says_so),
        TEST(test_inspect_prints_the_job_as_it_was_submitted),
        TEST(test_whole_id_is_meant_though_others_begin_with_it),
        TEST(test_prefix_of_several_jobs_is_refused_with_their_ids),
        TEST(test_job_that_is_not_there_is_said),
    };

    return cmocka_run_group_tests_name("cli_job_status", tests, NULL, NULL);
}
