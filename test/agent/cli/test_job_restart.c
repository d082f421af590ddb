/* cairn job restart, eval and start: whom they tell what; and what is Nomad's alone. */
#include "test/agent/cli/answering.h"

#define JOB                                                                                        \
    "{\"ID\":\"shop\",\"Namespace\":\"default\",\"Type\":\"service\",\"Status\":\"running\"}"
#define STOPPED                                                                                    \
    "{\"ID\":\"shop\",\"Namespace\":\"default\",\"Stop\":true,\"Status\":\"dead\","                \
    "\"JobModifyIndex\":9}"
#define ALLOC(id, group, wanted, status, next)                                                     \
    "{\"ID\":\"" id "\",\"TaskGroup\":\"" group "\",\"DesiredStatus\":\"" wanted                   \
    "\",\"ClientStatus\":\"" status "\",\"NextAllocation\":\"" next "\",\"TaskStates\":{\"web\":"  \
    "{\"State\":\"running\",\"Restarts\":0},\"log\":{\"State\":\"running\",\"Restarts\":0}}}"
#define RESTARTED(web, log)                                                                        \
    "{\"ClientStatus\":\"running\",\"TaskStates\":{\"web\":{\"State\":\"running\","                \
    "\"Restarts\":" web "},\"log\":{\"State\":\"running\",\"Restarts\":" log "}}}"

/* Two run in group "a", one in "b"; one is to end, one has ended, and one was replaced. */
#define ALLOCS                                                                                     \
    "[" ALLOC("a1", "a", "run", "running", "") "," ALLOC(                                          \
        "a2", "a", "run", "running",                                                               \
        "") "," ALLOC("b1", "b", "run", "running",                                                 \
                      "") "," ALLOC("e1", "a", "stop", "running",                                  \
                                    "") "," ALLOC("e2", "a", "run", "failed",                      \
                                                  "") "," ALLOC("e3", "a", "run", "running",       \
                                                                "a1") "]"

/* Runs LINE against an agent with that job, whose newest deployment is in STATUS; what it was
 * asked, owned by the caller. */
static char *run(struct typed *typed, const struct cli_verb *verb, const char *job,
                 const char *deployment, const char *line)
{
    struct answering answering;

    answering_start(&answering,
                    (struct answer[]){
                        {.path = "/v1/jobs?prefix", .body = "[{\"ID\":\"shop\"}]"},
                        {.path = "/v1/jobs", .body = "{\"EvalID\":\"new\"}"},
                        {.path = "/v1/job/shop/allocations", .body = ALLOCS},
                        {.path = "/v1/job/shop/deployment", .body = deployment},
                        {.path = "/v1/job/shop/evaluate", .body = "{\"EvalID\":\"eval-1\"}"},
                        {.path = "/v1/job/shop", .body = job},
                        {.path = "/v1/client/allocation/", .body = "{}"},
                        {.path = "/v1/allocation/b1?", .body = RESTARTED("1", "0")},
                        {.path = "/v1/allocation/", .body = RESTARTED("1", "1")},
                        {.path = NULL},
                    });
    type(typed, verb, line);
    return answering_stop(&answering);
}

static void test_those_that_run_are_restarted_and_waited_for(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_restart, JOB, "null",
                      "job restart -on-error fail -group a -batch-size 2 shop");

    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "Restarting 2 allocations");
    assert_says(typed->out, "Job restart finished");
    const char *first = strstr(asked, "/v1/client/allocation/a1/restart");
    const char *second = strstr(asked, "/v1/client/allocation/a2/restart");
    const char *awaited = strstr(asked, "/v1/allocation/a1?");
    assert_non_null(first);
    assert_true(first < second && second < awaited); /* of one batch all are told first */
    assert_is_silent_about(asked, "/restart b");
    assert_is_silent_about(asked, "allocation/b1");
    assert_is_silent_about(asked, "allocation/e");
    free(asked);
}

static void test_batches_follow_one_another(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_restart, JOB, "null",
                      "job restart -on-error fail -task web -batch-size 34% shop");

    assert_int_equal(typed->status, CLI_OK); /* 34% of three are two */
    const char *third = strstr(asked, "/v1/client/allocation/b1/restart");
    const char *awaited = strstr(asked, "/v1/allocation/a2?");
    assert_non_null(third);
    assert_non_null(awaited);
    assert_true(awaited < third);
    assert_says(asked, "\"TaskName\":\"web\"");
    free(asked);
}

static void test_nothing_is_restarted_during_a_deployment(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_restart, JOB, "{\"ID\":\"d\",\"Status\":\"running\"}",
                      "job restart -on-error fail shop");

    assert_int_equal(typed->status, CLI_FAILED);
    assert_is_silent_about(asked, "/restart");
    free(asked);
}

/* The servers place nothing for a stopped alloc of such a job until they are told to look, and
 * where one finds no room the next would not either, whatever -yes says. */
static void test_system_job_is_looked_at_again_and_ends_where_there_is_no_room(void **state)
{
    struct typed *typed = *state;
    struct answering answering;

    answering_start(
        &answering,
        (struct answer[]){
            {.path = "/v1/jobs?prefix", .body = "[{\"ID\":\"shop\"}]"},
            {.path = "/v1/job/shop/allocations", .body = ALLOCS},
            {.path = "/v1/job/shop/deployment", .body = "null"},
            {.path = "/v1/job/shop/evaluate", .body = "{\"EvalID\":\"eval-1\"}"},
            {.path = "/v1/job/shop/evaluations",
             .body = "[{\"ID\":\"eval-2\",\"Status\":\"blocked\",\"FailedTGAllocs\":{\"a\":{}}}]"},
            {.path = "/v1/job/shop", .body = "{\"ID\":\"shop\",\"Type\":\"system\"}"},
            {.path = "/v1/allocation/a1?", .body = RESTARTED("0", "0")},
            {.path = "/v1/allocation/a1/stop", .body = "{}"},
            {.path = NULL},
        });
    type(typed, &cli_job_restart, "job restart -yes -reschedule -group a shop");
    char *asked = answering_stop(&answering);
    assert_int_equal(typed->status, CLI_FAILED);
    assert_says(typed->out, "Stopping job restart due to error");
    const char *stopped = strstr(asked, "/v1/allocation/a1/stop");
    const char *looked = strstr(asked, "PUT /v1/job/shop/evaluate?");
    assert_non_null(stopped);
    assert_true(stopped < looked);
    assert_says(asked, "\"ForceReschedule\":true");
    assert_is_silent_about(asked, "/v1/allocation/a2");
    free(asked);
}

/* Who may not restart one alloc may not restart the next one, either; another refusal says nothing
 * of those that follow. */
static void test_yes_goes_on_after_a_failure_but_not_for_want_of_a_right(void **state)
{
    static const struct {
        int status;
        bool goes_on;
        const char *end;
    } cases[] = {{403, false, "Stopping job restart due to error"},
                 {500, true, "Job restart finished with errors"}};
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct answering answering;

        answering_start(&answering, (struct answer[]){
                                        {.path = "/v1/jobs?prefix", .body = "[{\"ID\":\"shop\"}]"},
                                        {.path = "/v1/job/shop/allocations", .body = ALLOCS},
                                        {.path = "/v1/job/shop/deployment", .body = "null"},
                                        {.path = "/v1/job/shop", .body = JOB},
                                        {.path = "/v1/client/allocation/a1/",
                                         .body = "Permission denied",
                                         .status = cases[i].status},
                                        {.path = "/v1/client/allocation/", .body = "{}"},
                                        {.path = "/v1/allocation/", .body = RESTARTED("1", "1")},
                                        {.path = NULL},
                                    });
        type(typed, &cli_job_restart, "job restart -yes -group a shop");
        char *asked = answering_stop(&answering);
        assert_int_equal(typed->status, CLI_FAILED);
        assert_says(typed->out, cases[i].end);
        assert_says(asked, "/v1/client/allocation/a1/restart");
        assert_int_equal(strstr(asked, "/v1/client/allocation/a2/restart") != NULL,
                         cases[i].goes_on);
        free(asked);
    }
}

static void test_what_makes_no_sense_is_refused_before_anybody_is_asked(void **state)
{
    static const char *const lines[] = {
        "job restart -on-error never shop",
        "job restart -on-error fail -batch-wait soon shop",
        "job restart -on-error fail -batch-wait 25h shop",
        "job restart -on-error fail -task web -reschedule shop",
        "job restart -on-error fail -task web -all-tasks shop",
    };
    static const char *const sizes[] = {
        "job restart -on-error fail -batch-size 0 shop",
        "job restart -on-error fail -batch-size % shop",
        "job restart -on-error fail -batch-size -1 shop",
        "job restart -on-error fail -batch-size 12345678901234567890 shop",
    };
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char *asked = run(typed, &cli_job_restart, JOB, "null", lines[i]);
        assert_int_equal(typed->status, CLI_USAGE);
        assert_string_equal(asked, "");
        free(asked);
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *asked = run(typed, &cli_job_restart, JOB, "null", sizes[i]);
        assert_int_equal(typed->status, CLI_USAGE);
        assert_is_silent_about(asked, "PUT");
        free(asked);
    }
}

static void test_evaluation_says_whether_it_is_forced(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_eval, JOB, "null", "job eval -detach -force-reschedule shop");

    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "Evaluation created\nEvaluation ID: eval-1\n");
    assert_says(asked, "\"ForceReschedule\":true");
    assert_says(asked, "\"JobID\":\"shop\"");
    free(asked);
}

static void test_only_a_job_that_was_stopped_is_started(void **state)
{
    struct typed *typed = *state;
    char *asked = run(typed, &cli_job_start, JOB, "null", "job start -detach shop");

    assert_int_equal(typed->status, CLI_FAILED);
    assert_is_silent_about(asked, "PUT");
    free(asked);
    asked = run(typed, &cli_job_start, STOPPED, "null", "job start -detach shop");
    assert_int_equal(typed->status, CLI_OK);
    assert_says(asked, "\"Stop\":false");
    assert_says(asked, "\"EnforceIndex\":true");
    free(asked);
}

static void test_commands_of_nomad_alone_have_a_reason(void **state)
{
    (void)state;
    assert_non_null(cli_missing("job", "allocs"));
    assert_non_null(cli_missing("", "var"));
    assert_null(cli_missing("job", "tag"));
    assert_null(cli_missing("job", "restart"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, typed_make, typed_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_those_that_run_are_restarted_and_waited_for),
        TEST(test_batches_follow_one_another),
        TEST(test_nothing_is_restarted_during_a_deployment),
        TEST(test_system_job_is_looked_at_again_and_ends_where_there_is_no_room),
        TEST(test_yes_goes_on_after_a_failure_but_not_for_want_of_a_right),
        TEST(test_what_makes_no_sense_is_refused_before_anybody_is_asked),
        TEST(test_evaluation_says_whether_it_is_forced),
        TEST(test_only_a_job_that_was_stopped_is_started),
        cmocka_unit_test(test_commands_of_nomad_alone_have_a_reason),
    };

    return cmocka_run_group_tests_name("cli_job_restart", tests, NULL, NULL);
}
