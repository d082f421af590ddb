/* Following an evaluation: one line for each change, and how it ended. */
#include "test/agent/cli/answering.h"

#define PATH "/v1/job/shop/allocations"

struct followed {
    char *out, *asked; /* owned */
    int status;
};

static int set_up(void **state)
{
    static struct followed followed;

    *state = &followed;
    return 0;
}

static int tear_down(void **state)
{
    struct followed *followed = *state;

    free(followed->out);
    free(followed->asked);
    *followed = (struct followed){.status = 0};
    return 0;
}

static void follow(struct followed *followed, const struct answer *looks, bool stopping)
{
    struct cli cli = {.verb = &cli_job_run};
    struct answering answering;

    answering_start(&answering, looks);
    cli.address = answering.address;
    struct diverted out = divert(stdout);
    followed->status = cli_follow(&cli, "eval-1", "shop", "default", stopping);
    followed->out = give_back(&out);
    followed->asked = answering_stop(&answering);
    cli_close(&cli);
}

/* The lines of TEXT without their times, "==> 2020-09-13T12:26:40Z: ". */
static void without_times(char *text)
{
    char *to = text, *at = text;

    while (*at != '\0') {
        size_t indent = strspn(at, "=> ");
        const char *end = strstr(at, ": ");
        if (indent == 4 && at[indent] == '2' && end != NULL)
            at += end + 2 - at;
        for (; *at != '\0' && *at != '\n'; at++)
            *to++ = *at;
        if (*at == '\n')
            *to++ = *at++;
    }
    *to = '\0';
}

#define BEGUN                                                                                      \
    "Monitoring evaluation \"eval-1\"\n"                                                           \
    "Evaluation triggered by job \"shop\"\n"

static void test_start_is_followed_until_it_runs(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\","
                        "\"TaskGroup\":\"front\",\"DesiredStatus\":\"run\","
                        "\"ClientStatus\":\"pending\",\"CreateIndex\":5}]",
                .once = true},
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\","
                        "\"TaskGroup\":\"front\",\"DesiredStatus\":\"run\","
                        "\"ClientStatus\":\"running\","
                        "\"ClientDescription\":\"Tasks are running\"}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_OK);
    without_times(followed->out);
    assert_string_equal(followed->out,
                        BEGUN "Allocation \"aaaaaaaa\" created: group \"front\"\n"
                              "Allocation \"aaaaaaaa\" status changed: \"pending\" -> \"running\" "
                              "(Tasks are running)\n"
                              "Evaluation \"eval-1\" finished with status \"complete\"\n");
    /* The second look waits for what comes behind the first. */
    assert_string_equal(followed->asked, "GET /v1/evaluation/eval-1?namespace=default \n"
                                         "GET " PATH "?index=0&wait=60s&namespace=default \n"
                                         "GET " PATH "?index=7&wait=60s&namespace=default \n");
}

static void test_what_was_there_before_is_modified(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\",\"CreateIndex\":4,"
                        "\"TaskGroup\":\"front\",\"DesiredStatus\":\"run\","
                        "\"ClientStatus\":\"running\"}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_OK);
    without_times(followed->out);
    assert_string_equal(followed->out,
                        BEGUN "Allocation \"aaaaaaaa\" modified: group \"front\"\n"
                              "Evaluation \"eval-1\" finished with status \"complete\"\n");
}

static void test_what_waits_for_room_is_said_and_is_the_exit_status(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH, .body = "[]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"BlockedEval\":\"eval-2\"}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_UNHEALTHY);
    assert_non_null(strstr(followed->out, "failed to place all allocations"));
}

static void test_failure_says_why_and_is_the_exit_status(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\",\"TaskGroup\":\"front\","
                        "\"DesiredStatus\":\"run\",\"ClientStatus\":\"failed\",\"CreateIndex\":6,"
                        "\"ClientDescription\":\"Failed tasks\",\"TaskStates\":{\"fine\":{},"
                        "\"web\":{\"Failed\":true,\"Events\":["
                        "{\"Type\":\"Received\",\"DisplayMessage\":\"by client\"},"
                        "{\"Type\":\"Driver Failure\",\"DisplayMessage\":\"no such file\"},"
                        "{\"Type\":\"Not Restarting\",\"DisplayMessage\":\"unrecoverable\"}]}}}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_UNHEALTHY);
    without_times(followed->out);
    assert_string_equal(followed->out,
                        BEGUN "Allocation \"aaaaaaaa\" created: group \"front\"\n"
                              "Allocation \"aaaaaaaa\" status changed: \"pending\" -> \"failed\" "
                              "(Failed tasks)\n"
                              "      task \"web\": Driver Failure: no such file\n"
                              "Evaluation \"eval-1\" finished, 1 of its allocations failed\n");
}

/* It may be seen only when another one has its place. */
static void test_failure_that_was_made_good_is_one(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\",\"TaskGroup\":\"front\","
                        "\"DesiredStatus\":\"stop\",\"ClientStatus\":\"failed\",\"CreateIndex\":6,"
                        "\"NextAllocation\":\"bbbbbbbb-1111\"}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_UNHEALTHY);
    assert_non_null(strstr(followed->out, "1 of its allocations failed"));
}

/* What a new version replaces is waited for; how it ends is no failure of the new one. */
static void test_replaced_allocs_are_waited_for(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"bbbbbbbb-1111\",\"EvalID\":\"eval-0\","
                        "\"TaskGroup\":\"front\",\"DesiredStatus\":\"stop\","
                        "\"ClientStatus\":\"running\"}]",
                .once = true},
               {.path = PATH,
                .body = "[{\"ID\":\"bbbbbbbb-1111\",\"EvalID\":\"eval-0\","
                        "\"TaskGroup\":\"front\",\"DesiredStatus\":\"stop\","
                        "\"ClientStatus\":\"failed\","
                        "\"ClientDescription\":\"killed\"}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_OK);
    without_times(followed->out);
    assert_string_equal(followed->out,
                        BEGUN "Allocation \"bbbbbbbb\" stopping: group \"front\"\n"
                              "Allocation \"bbbbbbbb\" status changed: \"running\" -> \"failed\" "
                              "(killed)\n"
                              "Evaluation \"eval-1\" finished with status \"complete\"\n");
}

static void test_allocs_of_others_are_left_alone(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"bbbbbbbb-1111\",\"EvalID\":\"eval-0\","
                        "\"DesiredStatus\":\"run\",\"ClientStatus\":\"failed\"}]"},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    assert_int_equal(followed->status, CLI_OK);
    assert_is_silent_about(followed->out, "bbbbbbbb");
}

static void test_stop_does_not_mind_failures(void **state)
{
    struct followed *followed = *state;

    follow(followed,
           (struct answer[]){
               {.path = PATH,
                .body = "[{\"ID\":\"aaaaaaaa-1111\",\"EvalID\":\"eval-1\","
                        "\"DesiredStatus\":\"run\",\"ClientStatus\":\"failed\"}]"},
               {.path = NULL},
           },
           true);
    assert_int_equal(followed->status, CLI_OK);
    assert_says(followed->out, "finished with status \"complete\"");
}

static void test_refusal_of_the_agent_ends_it(void **state)
{
    struct followed *followed = *state;
    struct diverted complain = divert(stderr);

    follow(followed,
           (struct answer[]){
               {.path = PATH, .body = "job not found\n", .status = 404},
               {.path = "/v1/evaluation/eval-1", .body = "{\"CreateIndex\":5}"},
               {.path = NULL},
           },
           false);
    char *said = give_back(&complain);
    assert_int_equal(followed->status, CLI_FAILED);
    assert_string_equal(said, "cairn: job not found\n");
    free(said);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_start_is_followed_until_it_runs),
        TEST(test_what_was_there_before_is_modified),
        TEST(test_what_waits_for_room_is_said_and_is_the_exit_status),
        TEST(test_failure_says_why_and_is_the_exit_status),
        TEST(test_failure_that_was_made_good_is_one),
        TEST(test_replaced_allocs_are_waited_for),
        TEST(test_allocs_of_others_are_left_alone),
        TEST(test_stop_does_not_mind_failures),
        TEST(test_refusal_of_the_agent_ends_it),
    };

    return cmocka_run_group_tests_name("cli_follow", tests, NULL, NULL);
}
