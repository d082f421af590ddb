/* cairn completion: every verb and flag of the table is in the script. */
#include "test/agent/cli/running.h"

static const struct cli_verb *const verbs[] = {
    &cli_alloc_signal,  &cli_alloc_stop,    &cli_eval_list,  &cli_volume_create,
    &cli_volume_detach, &cli_journal_stats, &cli_completion, &cli_version,
};

static void test_script_names_verbs_with_all_their_flags(void **state)
{
    char name[] = "cairn", word[] = "completion", shell[] = "bash";
    char *argv[] = {name, word, shell, NULL};

    (void)state;
    struct diverted out = divert(stdout);
    int status = cli_main(verbs, COUNT_OF(verbs), 3, argv);
    char *script = give_back(&out);
    assert_int_equal(status, CLI_OK);
    assert_says(script, "words=\" alloc eval volume journal completion version\"\n");
    assert_says(script, "    alloc) words=\" signal stop\" ;;\n");
    assert_says(script, "    \"alloc signal\") words=\" -s -task -address -token -ca-cert -ca-path "
                        "-client-cert -client-key -tls-skip-verify -namespace -json "
                        "-no-color -h\"");
    assert_says(script, "    \"journal stats\") words=\" -dir -json -h\" ;;\n");
    assert_says(script, "    \"version\") words=\" -h\" ;;\n");
    assert_says(script, "    \"alloc stop\") kinds=\" allocs\" ;;\n");
    assert_says(script, "    \"volume detach\") kinds=\" volumes host_volumes nodes\" ;;\n");
    assert_null(strstr(script, "\"journal stats\") kinds="));
    assert_null(strstr(script, "\"volume create\") kinds="));
    free(script);
}

static void test_other_shells_are_refused(void **state)
{
    struct typed *typed = *state;

    type(typed, &cli_completion, "completion zsh");
    assert_int_equal(typed->status, CLI_USAGE);
    assert_string_equal(typed->complain,
                        "cairn: there is a completion for bash, not for \"zsh\"\n");
    type(typed, &cli_completion, "completion");
    assert_int_equal(typed->status, CLI_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script_names_verbs_with_all_their_flags),
        cmocka_unit_test_setup_teardown(test_other_shells_are_refused, typed_make, typed_remove),
    };

    return cmocka_run_group_tests_name("cli_completion", tests, NULL, NULL);
}
