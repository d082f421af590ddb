/* cairn node meta: what is asked of the agent, and how its answer is shown. */
#include "test/agent/cli/answering.h"

/* Runs LINE against an agent that answers BODY; what it was asked, owned by the caller. */
static char *run(struct typed *typed, const char *line, const char *body, int status)
{
    struct answering answering;

    answering_start(&answering, (struct answer[]){
                                    {.path = "/v1/client/metadata", .body = body, .status = status},
                                    {.path = NULL}});
    type(typed, &cli_node_meta, line);
    return answering_stop(&answering);
}

static void test_what_asks_for_nothing_is_no_command(void **state)
{
    static const char *const lines[] = {"node meta",
                                        "node meta show",
                                        "node meta read rack",
                                        "node meta read -unset rack",
                                        "node meta apply",
                                        "node meta apply -unset ,",
                                        "node meta apply \xff=x",
                                        "node meta apply a=\xff",
                                        "node meta apply -unset \xff"};
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char *asked = run(typed, lines[i], "{}", 200);

        if (typed->status != CLI_USAGE)
            fail_msg("%s: %d %s", lines[i], typed->status, typed->complain);
        assert_string_equal(asked, "");
        free(asked);
    }
}

static void test_changes_are_sent_as_they_are_written(void **state)
{
    static const struct {
        const char *line, *asked;
    } rows[] = {
        {"node meta apply rack=r1 -node-id 3f2a",
         "?node_id=3f2a&namespace=default {\"Meta\":{\"rack\":\"r1\"}}\n"},
        {"node meta apply a=b=c empty= alone",
         "?node_id=&namespace=default "
         "{\"Meta\":{\"a\":\"b=c\",\"empty\":\"\",\"alone\":\"\"}}\n"},
        {"node meta apply -unset a,,b a=1 c=2 -unset d",
         "?node_id=&namespace=default "
         "{\"Meta\":{\"a\":null,\"c\":\"2\",\"b\":null,\"d\":null}}\n"},
    };
    struct typed *typed = *state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *asked = run(typed, rows[i].line, "{\"Meta\":{}}", 200);

        assert_int_equal(typed->status, CLI_OK);
        assert_string_equal(typed->out, "");
        assert_says(asked, rows[i].asked);
        free(asked);
    }
    free(run(typed, "node meta apply -json a=1", "{\"Meta\":{\"a\":\"1\"}}", 200));
    assert_says(typed->out, "\"a\": \"1\"");
}

static void test_a_refusal_is_said(void **state)
{
    struct typed *typed = *state;

    free(run(typed, "node meta apply 1=x", "\"1\" is invalid", 400));
    assert_int_equal(typed->status, CLI_FAILED);
    assert_says(typed->complain, "\"1\" is invalid");
}

static void test_what_holds_is_shown_in_order(void **state)
{
    static const char body[] =
        "{\"Meta\":{\"rack\":\"r2\",\"own\":\"\"},\"Dynamic\":{\"zone\":null,\"rack\":\"r2\","
        "\"own\":\"\"},\"Static\":{\"rack\":\"r1\",\"zone\":\"a\\u001b\"}}";
    struct typed *typed = *state;

    free(run(typed, "node meta read", body, 200));
    assert_int_equal(typed->status, CLI_OK);
    assert_string_equal(typed->out, "All Meta\n"
                                    "own  = <none>\n"
                                    "rack = r2\n"
                                    "\nDynamic Meta\n"
                                    "own  = <none>\n"
                                    "rack = r2\n"
                                    "zone = <unset>\n"
                                    "\nStatic Meta\n"
                                    "rack = r1\n"
                                    "zone = a?\n");
    free(run(typed, "node meta read -json", body, 200));
    assert_says(typed->out, "\"zone\": null");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, typed_make, typed_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_asks_for_nothing_is_no_command),
        TEST(test_changes_are_sent_as_they_are_written),
        TEST(test_a_refusal_is_said),
        TEST(test_what_holds_is_shown_in_order),
    };

    return cmocka_run_group_tests_name("node_meta", tests, NULL, NULL);
}
