/* cairn alloc: what is shown of an alloc, how it is found, what is asked of the agent. */
#include "test/agent/cli/answering.h"

#define ID "3f2a91c4-0000-4000-8000-000000000001"
#define OTHER "3f2a91c4-0000-4000-8000-000000000002"
#define ONE "[{\"ID\":\"" ID "\"}]"

/* 2020-09-13T12:26:40Z */
#define NOW_NS "1600000000000000000"

static const char alloc[] =
    "{\"ID\":\"" ID "\",\"EvalID\":\"eeeeeeee-1111\",\"Name\":\"shop.front[0]\","
    "\"NodeID\":\"nnnnnnnn-1111\",\"NodeName\":\"host\",\"JobID\":\"shop\",\"TaskGroup\":\"front\","
    "\"ClientStatus\":\"%s\",\"ClientDescription\":\"Tasks are running\",\"DesiredStatus\":\"run\","
    "\"CreateTime\":" NOW_NS ",\"ModifyTime\":" NOW_NS ","
    "\"Job\":{\"Version\":3,\"TaskGroups\":[{\"Name\":\"back\",\"Tasks\":[{\"Name\":\"web\","
    "\"Lifecycle\":{\"Hook\":\"poststop\"}}]},{\"Name\":\"front\",\"Tasks\":[{\"Name\":\"web\"},"
    "{\"Name\":\"log\",\"Lifecycle\":{\"Hook\":\"prestart\",\"Sidecar\":true}}]}]},"
    "\"TaskResources\":{\"web\":{\"CPU\":500,\"MemoryMB\":300}},"
    "\"TaskStates\":{\"web\":{\"State\":\"running\",\"Restarts\":2,"
    "\"StartedAt\":\"2020-09-13T12:26:40Z\",\"FinishedAt\":\"0001-01-01T00:00:00Z\",\"Events\":["
    "{\"Time\":" NOW_NS ",\"Type\":\"Received\",\"DisplayMessage\":\"by client\"},"
    "{\"Time\":" NOW_NS ",\"Type\":\"Started\",\"DisplayMessage\":\"by client\"}]},"
    "\"log\":{\"State\":\"pending\"}}}";

static const char stats[] =
    "{\"Tasks\":{\"web\":{\"ResourceUsage\":{\"CpuStats\":{\"TotalTicks\":12.4},"
    "\"MemoryStats\":{\"RSS\":1572864}}}}}";

/* Runs LINE against an agent with an alloc in STATUS; what the agent was asked, owned by the
 * caller. */
static char *run(struct typed *typed, const struct cli_verb *verb, const char *status,
                 const char *line)
{
    struct answering answering;
    char body[4096];

    assert_true(text_format(body, sizeof(body), alloc, status));
    answering_start(&answering, (struct answer[]){
                                    {.path = "/v1/allocations?", .body = ONE},
                                    {.path = "/v1/allocation/" ID "/stop", .body = "{}"},
                                    {.path = "/v1/allocation/" ID, .body = body},
                                    {.path = "/v1/client/allocation/" ID "/stats", .body = stats},
                                    {.path = "/v1/client/allocation/" ID, .body = "{\"Index\":9}"},
                                    {.path = NULL},
                                });
    type(typed, verb, line);
    return answering_stop(&answering);
}

/* --- status --- */

static void test_status_shows_tasks_with_role_usage_and_events(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_alloc_status, "running", "alloc status 3f2a91c4"));
    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "ID                  = " ID "\n");
    assert_says(typed->out, "Eval ID             = eeeeeeee\n");
    assert_says(typed->out, "Job Version         = 3\n");
    assert_says(typed->out, "Desired Description = <none>\n");
    assert_says(typed->out, " ago\n");
    assert_says(typed->out, "Task \"web\" is \"running\"\n");
    assert_says(typed->out, "Task \"log\" (prestart sidecar) is \"pending\"\n");
    assert_says(typed->out, "CPU         Memory\n12/500 MHz  1.5 MiB/300 MiB\n");
    assert_says(typed->out, "Started At     = 2020-09-13T12:26:40Z\n"
                            "Finished At    = N/A\n"
                            "Total Restarts = 2\n"
                            "Last Restart   = N/A\n");
    assert_says(typed->out, "Time                  Type      Description\n"
                            "2020-09-13T12:26:40Z  Started   by client\n"
                            "2020-09-13T12:26:40Z  Received  by client\n");
}

static void test_status_of_an_alloc_that_rests_asks_for_no_usage(void **state)
{
    struct typed *typed = *state;

    char *asked = run(typed, &cli_alloc_status, "complete", "alloc status -verbose 3f2a91c4");
    assert_int_equal(typed->status, CLI_OK);
    assert_is_silent_about(asked, "/stats");
    assert_says(typed->out, "CPU      Memory\n500 MHz  300 MiB\n");
    assert_says(typed->out, "Eval ID             = eeeeeeee-1111\n");
    assert_says(typed->out, "Created             = 2020-09-13T12:26:40Z\n");
    free(asked);
}

static void test_short_status_has_a_line_for_each_task(void **state)
{
    struct typed *typed = *state;

    free(run(typed, &cli_alloc_status, "running", "alloc status -short 3f2a91c4"));
    assert_int_equal(typed->status, CLI_OK);
    assert_says(typed->out, "Name  State    Last Event  Time\n"
                            "web   running  Started     2020-09-13T12:26:40Z\n"
                            "log   pending  <none>      N/A\n");
    assert_is_silent_about(typed->out, "Task Events");
}

/* --- finding --- */

static void test_alloc_that_is_not_there_is_said(void **state)
{
    struct typed *typed = *state;
    struct answering answering;

    answering_start(&answering,
                    (struct answer[]){{.path = "/v1/allocations?", .body = "[]"}, {.path = NULL}});
    type(typed, &cli_alloc_stop, "alloc stop 77");
    char *asked = answering_stop(&answering);
    assert_int_equal(typed->status, CLI_FAILED);
    assert_says(typed->complain, "no alloc has an id that begins with \"77\"");
    assert_string_equal(asked, "GET /v1/allocations?task_states=false&prefix=77&namespace=%2A \n");
    free(asked);
}

static void test_prefix_of_several_allocs_lists_them_and_does_nothing(void **state)
{
    struct typed *typed = *state;
    struct answering answering;

    answering_start(&answering, (struct answer[]){
                                    {.path = "/v1/allocations?",
                                     .body = "[{\"ID\":\"" ID "\",\"TaskGroup\":\"front\"},"
                                             "{\"ID\":\"" OTHER "\",\"TaskGroup\":\"back\"}]"},
                                    {.path = NULL},
                                });
    type(typed, &cli_alloc_stop, "alloc stop 3f");
    char *asked = answering_stop(&answering);
    assert_int_equal(typed->status, CLI_FAILED);
    assert_says(typed->complain, "2 allocs have an id that begins with \"3f\":");
    assert_says(typed->out, "front");
    assert_says(typed->out, "back");
    assert_is_silent_about(asked, "PUT");
    free(asked);
}

static void test_agent_that_does_not_answer_has_a_status_of_its_own(void **state)
{
    struct typed *typed = *state;

    type(typed, &cli_alloc_stop, "alloc stop -address http://127.0.0.1:1 3f");
    assert_int_equal(typed->status, CLI_UNREACHABLE);
    assert_says(typed->complain, "no agent answers at http://127.0.0.1:1");
}

/* --- restart, signal, stop --- */

static void test_orders_name_the_whole_alloc_and_the_task(void **state)
{
    static const struct {
        const struct cli_verb *verb;
        const char *line, *asked;
    } cases[] = {
        {&cli_alloc_restart, "alloc restart 3f2a91c4",
         "PUT /v1/client/allocation/" ID "/restart?namespace=default "
         "{\"TaskName\":\"\",\"AllTasks\":false}\n"},
        {&cli_alloc_restart, "alloc restart 3f2a91c4 web",
         "PUT /v1/client/allocation/" ID "/restart?namespace=default "
         "{\"TaskName\":\"web\",\"AllTasks\":false}\n"},
        {&cli_alloc_restart, "alloc restart -task web -all-tasks 3f2a91c4",
         "PUT /v1/client/allocation/" ID "/restart?namespace=default "
         "{\"TaskName\":\"web\",\"AllTasks\":true}\n"},
        {&cli_alloc_signal, "alloc signal -task web 3f2a91c4",
         "PUT /v1/client/allocation/" ID "/signal?namespace=default "
         "{\"Task\":\"web\",\"Signal\":\"SIGKILL\"}\n"},
        {&cli_alloc_signal, "alloc signal 3f2a91c4 web",
         "PUT /v1/client/allocation/" ID "/signal?namespace=default "
         "{\"Task\":\"web\",\"Signal\":\"SIGKILL\"}\n"},
        {&cli_alloc_signal, "alloc signal -s SIGHUP 3f2a91c4",
         "PUT /v1/client/allocation/" ID "/signal?namespace=default "
         "{\"Task\":\"\",\"Signal\":\"SIGHUP\"}\n"},
        {&cli_alloc_stop, "alloc stop 3f2a91c4",
         "PUT /v1/allocation/" ID "/stop?namespace=default {}\n"},
    };
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *asked = run(typed, cases[i].verb, "running", cases[i].line);
        assert_int_equal(typed->status, CLI_OK);
        assert_string_equal(typed->out, "");
        assert_says(asked, cases[i].asked);
        free(asked);
    }
}

/* --- fs --- */

static char *run_fs(struct typed *typed, const char *info, const char *line)
{
    struct answering answering;

    answering_start(
        &answering,
        (struct answer[]){
            {.path = "/v1/allocations?", .body = ONE},
            {.path = "/v1/allocation/" ID, .body = "{\"ID\":\"" ID "\"}"},
            {.path = "/v1/client/fs/stat/" ID, .body = info},
            {.path = "/v1/client/fs/ls/" ID,
             .body = "[{\"Name\":\"alloc\",\"IsDir\":true,\"Size\":4096,\"FileMode\":\"drwx\","
                     "\"ModTime\":\"then\"},{\"Name\":\"f\",\"Size\":2048,\"FileMode\":\"-rw-\","
                     "\"ModTime\":\"then\"}]"},
            {.path = "/v1/client/fs/cat/" ID, .body = "what is in it\n"},
            {.path = NULL},
        });
    type(typed, &cli_alloc_fs, line);
    return answering_stop(&answering);
}

static void test_fs_lists_a_directory(void **state)
{
    struct typed *typed = *state;

    char *asked = run_fs(typed, "{\"IsDir\":true}", "alloc fs 3f2a91c4");
    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "Mode  Size  Modified Time  Name\n"
                                    "drwx  4096  then           alloc/\n"
                                    "-rw-  2048  then           f\n");
    assert_says(asked, "GET /v1/client/fs/ls/" ID "?path=%2F&namespace=default \n");
    free(asked);
    free(run_fs(typed, "{\"IsDir\":true}", "alloc fs -H 3f2a91c4"));
    assert_says(typed->out, "-rw-  2.0 KiB  then");
}

static void test_fs_prints_a_file_or_what_it_is(void **state)
{
    static const char info[] =
        "{\"Name\":\"f\",\"Size\":2048,\"FileMode\":\"-rw-\",\"ModTime\":\"then\"}";
    struct typed *typed = *state;

    char *asked = run_fs(typed, info, "alloc fs 3f2a91c4 web/local/f");
    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "what is in it\n");
    assert_says(asked, "cat/" ID "?path=web%2Flocal%2Ff&");
    free(asked);
    asked = run_fs(typed, info, "alloc fs -stat 3f2a91c4 web/local/f");
    assert_string_equal(typed->out, "Mode  Size  Modified Time  Name\n"
                                    "-rw-  2048  then           f\n");
    assert_is_silent_about(asked, "/cat/");
    free(asked);
}

/* Behind the ID it would be a command, and the task unnamed. */
static void test_exec_takes_no_flag_for_a_command(void **state)
{
    struct typed *typed = *state;

    type(typed, &cli_alloc_exec, "alloc exec 3f2a91c4 -task web true");
    assert_int_equal(typed->status, CLI_USAGE);
    assert_says(typed->complain, "flags stand before the ID, and \"-task\" behind it");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, typed_make, typed_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_status_shows_tasks_with_role_usage_and_events),
        TEST(test_status_of_an_alloc_that_rests_asks_for_no_usage),
        TEST(test_short_status_has_a_line_for_each_task),
        TEST(test_alloc_that_is_not_there_is_said),
        TEST(test_prefix_of_several_allocs_lists_them_and_does_nothing),
        TEST(test_agent_that_does_not_answer_has_a_status_of_its_own),
        TEST(test_orders_name_the_whole_alloc_and_the_task),
        TEST(test_fs_lists_a_directory),
        TEST(test_fs_prints_a_file_or_what_it_is),
        TEST(test_exec_takes_no_flag_for_a_command),
    };

    return cmocka_run_group_tests_name("cli_alloc", tests, NULL, NULL);
}
