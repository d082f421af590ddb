/* Command line: what is not understood is an error that helps, flags and arguments may be mixed. */
#include "agent/cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cli_flag flags[] = {
    {"detach", FLAG_SWITCH, NULL, ""},
    {"n", FLAG_NUMBER, "LINES", ""},
    {"var", FLAG_TEXT, "NAME=VALUE", ""},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static const struct cli_verb verb = {
    .group = "job", .name = "run", .arguments = "FILE [TASK]", .min = 1, .max = 2, .flags = flags};

static const struct cli_verb local_verb = {
    .group = "", .name = "version", .arguments = "", .is_local = true};

struct fixture {
    struct cli cli;
    struct err err;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->cli.verb = &verb;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    free(fixture->cli.arguments);
    free(fixture);
    return 0;
}

#define PARSE(fixture, ...)                                                                        \
    parse(fixture, (char *[]){__VA_ARGS__}, (int)COUNT_OF(((char *[]){__VA_ARGS__})))

static int parse(struct fixture *fixture, char **words, int count)
{
    const struct cli_verb *of = fixture->cli.verb;

    free(fixture->cli.arguments);
    fixture->cli = (struct cli){.verb = of};
    return cli_parse(&fixture->cli, count, words, &fixture->err);
}

static void assert_says(const struct fixture *fixture, const char *what)
{
    if (strstr(fixture->err.text, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", fixture->err.text, what);
}

static void test_unknown_flag_is_refused_with_a_suggestion(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "f", "-detahc"), ERR_INVALID);
    assert_says(fixture, "no flag -detahc");
    assert_says(fixture, "did you mean -detach?");
    assert_int_equal(PARSE(fixture, "f", "-adress=x"), ERR_INVALID);
    assert_says(fixture, "did you mean -address?");
}

static void test_local_verb_does_not_take_an_address(void **state)
{
    struct fixture *fixture = *state;

    fixture->cli.verb = &local_verb;
    assert_int_equal(PARSE(fixture, "-address=x"), ERR_INVALID);
    assert_says(fixture, "version has no flag -address");
}

static void test_wrong_values_are_refused(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "f", "-n", "many"), ERR_INVALID);
    assert_says(fixture, "-n takes a number");
    assert_int_equal(PARSE(fixture, "f", "-n"), ERR_INVALID);
    assert_says(fixture, "-n needs a value: -n LINES");
    assert_int_equal(PARSE(fixture, "f", "-detach=maybe"), ERR_INVALID);
    assert_says(fixture, "-detach is true or false");
}

static void test_too_few_and_too_many_arguments_are_refused(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "-detach"), ERR_INVALID);
    assert_says(fixture, "usage: cairn job run FILE [TASK]");
    assert_int_equal(PARSE(fixture, "a", "b", "c"), ERR_INVALID);
    assert_says(fixture, "does not take \"c\"");
}

static void test_too_many_flags_are_refused(void **state)
{
    struct fixture *fixture = *state;
    char *words[CLI_FLAGS_MAX + 2];

    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = "-detach";
    words[0] = "f";
    assert_int_equal(parse(fixture, words, (int)COUNT_OF(words)), ERR_INVALID);
    assert_says(fixture, "more than");
}

static void test_flags_are_found_wherever_they_stand(void **state)
{
    struct fixture *fixture = *state;
    int64_t lines = 0;

    assert_int_equal(PARSE(fixture, "-n=3", "file", "--detach", "task", "-var", "a=b=c"), 0);
    assert_int_equal(fixture->cli.arguments_count, 2);
    assert_string_equal(cli_argument(&fixture->cli, 0), "file");
    assert_string_equal(cli_argument(&fixture->cli, 1), "task");
    assert_null(cli_argument(&fixture->cli, 2));
    assert_true(cli_switch(&fixture->cli, "detach"));
    assert_int_equal(cli_number(&fixture->cli, "n", &lines), 0);
    assert_int_equal(lines, 3);
    assert_string_equal(cli_text(&fixture->cli, "var", ""), "a=b=c");
}

static void test_switch_can_be_taken_back(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "f", "-detach", "-detach=false"), 0);
    assert_false(cli_switch(&fixture->cli, "detach"));
}

static void test_repeated_flag_keeps_all_values_in_order(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "f", "-var", "a=1", "-detach", "-var", "b=2"), 0);
    assert_string_equal(cli_text_again(&fixture->cli, "var", 0), "a=1");
    assert_string_equal(cli_text_again(&fixture->cli, "var", 1), "b=2");
    assert_null(cli_text_again(&fixture->cli, "var", 2));
    assert_string_equal(cli_text(&fixture->cli, "var", ""), "b=2");
}

static void test_dashes_end_flags_and_a_dash_is_an_argument(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "-", "--", "-detach"), 0);
    assert_string_equal(cli_argument(&fixture->cli, 0), "-");
    assert_string_equal(cli_argument(&fixture->cli, 1), "-detach");
    assert_false(cli_switch(&fixture->cli, "detach"));
}

static void test_help_is_given_without_arguments(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(PARSE(fixture, "-h"), 0);
    assert_true(cli_switch(&fixture->cli, "h"));
}

static void test_path_escapes_what_comes_from_outside(void **state)
{
    struct fixture *fixture = *state;
    char path[CLI_URL_SIZE];

    fixture->cli.namespace = "a b";
    assert_string_equal(cli_path(&fixture->cli, path, "/v1/job/%s", "x/y?z=%"),
                        "/v1/job/x%2Fy%3Fz%3D%25?namespace=a%20b");
    assert_string_equal(cli_path(&fixture->cli, path, "/v1/jobs?prefix=%s", "\xc3\xa4&"),
                        "/v1/jobs?prefix=%C3%A4%26&namespace=a%20b");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_flag_is_refused_with_a_suggestion),
        TEST(test_local_verb_does_not_take_an_address),
        TEST(test_wrong_values_are_refused),
        TEST(test_too_few_and_too_many_arguments_are_refused),
        TEST(test_too_many_flags_are_refused),
        TEST(test_flags_are_found_wherever_they_stand),
        TEST(test_switch_can_be_taken_back),
        TEST(test_repeated_flag_keeps_all_values_in_order),
        TEST(test_dashes_end_flags_and_a_dash_is_an_argument),
        TEST(test_help_is_given_without_arguments),
        TEST(test_path_escapes_what_comes_from_outside),
    };

    return cmocka_run_group_tests_name("cli_flags", tests, NULL, NULL);
}
