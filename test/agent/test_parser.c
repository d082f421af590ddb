/* The parser as a process: what it has, what it may, and how its end is told. */
#include "agent/parser.h"
#include "test/io/beside.h"
#include "test/io/scratch.h"

struct asked {
    json_t *value;
    char *refusal;
    struct err err;
};

static int ask(const char *program, enum parse_kind kind, const char *text, size_t length,
               struct asked *asked)
{
    *asked = (struct asked){0};
    return parser_ask(program, kind, text, length, &asked->value, &asked->refusal, &asked->err);
}

static void forget(struct asked *asked)
{
    json_decref(asked->value);
    free(asked->refusal);
}

static void find(char program[PATH_SIZE])
{
    beside_program(program, "cairn-parse");
}

static void test_one_text_is_read_by_one_process(void **state)
{
    char program[PATH_SIZE];
    struct asked asked;

    (void)state;
    find(program);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(program, PARSE_OBJECT, "{\"a\":1}", 7, &asked), 0);
        assert_int_equal(json_integer_value(json_object_get(asked.value, "a")), 1);
        forget(&asked);
    }
    assert_int_equal(ask(program, PARSE_OBJECT, "no", 2, &asked), ERR_INVALID);
    assert_non_null(strstr(asked.refusal, "line 1"));
    forget(&asked);
}

static void test_long_texts_and_answers_pass(void **state)
{
    enum { LENGTH = PARSE_TEXT_MAX };
    char program[PATH_SIZE], *text = malloc(LENGTH + 1);
    struct asked asked;

    (void)state;
    find(program);
    assert_non_null(text);
    memset(text, 'x', LENGTH);
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + LENGTH - 2, "\"}", 2);
    assert_int_equal(ask(program, PARSE_OBJECT, text, LENGTH, &asked), 0);
    assert_int_equal(json_string_length(json_object_get(asked.value, "a")), LENGTH - 8);
    forget(&asked);
    free(text);
}

/* Files that expressions name are nobody's business there: it has no file system. */
static void test_expressions_reach_no_file(void **state)
{
    static const char text[] = "{\"JobHCL\":\"job \\\"a\\\" { meta { x = "
                               "file(\\\"/etc/hostname\\\") } group \\\"g\\\" { task "
                               "\\\"t\\\" { driver = \\\"raw_exec\\\" } } }\"}";
    char program[PATH_SIZE];
    struct asked asked;

    (void)state;
    find(program);
    assert_int_equal(ask(program, PARSE_JOB, text, strlen(text), &asked), ERR_INVALID);
    assert_null(asked.value);
    forget(&asked);
}

static void write_script(struct scratch *scratch, const char *script, char to[PATH_SIZE])
{
    assert_int_equal(path_join(to, scratch->path, "parser"), 0);
    assert_int_equal(file_write_durable(to, script, strlen(script), 0755, &scratch->err), 0);
}

static int ask_script(struct scratch *scratch, const char *script, struct asked *asked)
{
    char program[PATH_SIZE];

    write_script(scratch, script, program);
    return ask(program, PARSE_OBJECT, "{}", 2, asked);
}

static void test_end_of_a_parser_is_told(void **state)
{
    struct scratch *scratch = *state;
    struct asked asked;

    assert_int_equal(ask("/nonexistent/cairn-parse", PARSE_OBJECT, "{}", 2, &asked), ERR_IO);
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nkill -SEGV $$\n", &asked), ERR_IO);
    assert_non_null(strstr(asked.err.text, "signal 11"));
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nexit 3\n", &asked), ERR_UNSUPPORTED);
    assert_non_null(strstr(asked.err.text, "privileges"));
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nexit 2\n", &asked), ERR_UNSUPPORTED);
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nprintf no >&3\n", &asked), ERR_CORRUPT);
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nexit 0\n", &asked), ERR_CORRUPT);
    assert_int_equal(ask_script(scratch, "#!/bin/sh\nexec yes >&3\n", &asked), ERR_TIMEOUT);
    assert_null(asked.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_text_is_read_by_one_process),
        cmocka_unit_test(test_long_texts_and_answers_pass),
        cmocka_unit_test(test_expressions_reach_no_file),
        cmocka_unit_test_setup_teardown(test_end_of_a_parser_is_told, scratch_make, scratch_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
