/* What is between the daemon and its parser: each value comes through, and nothing that is none. */
#include "spec/job.h"
#include "spec/parsed.h"
#include "spec/rendering.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct said {
    int code;
    json_t *value;
    char *refusal;
    struct err err;
};

static void forget(struct said *said)
{
    json_decref(said->value);
    free(said->refusal);
    *said = (struct said){0};
}

static void read_answer(const void *answer, size_t length, struct said *ret_said)
{
    *ret_said = (struct said){0};
    ret_said->code =
        parsed_read(answer, length, &ret_said->value, &ret_said->refusal, &ret_said->err);
}

static void ask(enum parse_kind kind, const char *text, struct said *ret_said)
{
    size_t length;
    uint8_t *answer = parse_answer(kind, text, strlen(text), &length);

    read_answer(answer, length, ret_said);
    free(answer);
}

static void test_values_come_through(void **state)
{
    static const char text[] = "{\"a\":[null,true,false,{},[]],\"i\":-9223372036854775808,"
                               "\"d\":1.25e300,\"s\":\"\\u00e4\\n\",\"\":{\"b\":{\"c\":0}}}";
    json_t *wanted = json_loads(text, 0, NULL);
    struct said said;

    (void)state;
    ask(PARSE_OBJECT, text, &said);
    assert_int_equal(said.code, 0);
    assert_true(json_equal(said.value, wanted));
    forget(&said);
    json_decref(wanted);
}

static void test_what_is_wrong_is_said(void **state)
{
    struct said said;

    (void)state;
    ask(PARSE_OBJECT, "{\"a\":}", &said);
    assert_int_equal(said.code, ERR_INVALID);
    assert_non_null(strstr(said.refusal, "line 1, column 6"));
    forget(&said);
    ask(PARSE_OBJECT, "", &said);
    assert_string_equal(said.refusal, "Request body is empty");
    forget(&said);
    ask(PARSE_OBJECT, "[]", &said);
    assert_non_null(strstr(said.refusal, "no JSON object"));
    forget(&said);
    ask(PARSE_JOB, "{}", &said);
    assert_string_equal(said.refusal, "Job spec is empty");
    forget(&said);
    ask(PARSE_JOB, "{\"JobHCL\":\"job \\\"a\\\" {\"}", &said);
    assert_int_equal(said.code, ERR_INVALID);
    assert_non_null(strstr(said.refusal, "input.hcl:1:"));
    forget(&said);
}

static void test_job_file_becomes_its_job(void **state)
{
    struct said said;

    (void)state;
    ask(PARSE_JOB,
        "{\"JobHCL\":\"job \\\"a\\\" {\\n group \\\"g\\\" {\\n task \\\"t\\\" {\\n driver = "
        "\\\"raw_exec\\\"\\n"
        "config { \\n command = upper(\\\"x\\\") \\n}\\n}\\n}\\n}\"}",
        &said);
    assert_int_equal(said.code, 0);
    assert_string_equal(json_string_value(json_object_get(said.value, "ID")), "a");
    forget(&said);
}

#define WITH_VARIABLE                                                                              \
    "{\"JobHCL\":\"variable \\\"x\\\" {\\n default = 1\\n}\\njob \\\"a\\\" {\\n priority = "       \
    "var.x\\n "                                                                                    \
    "group \\\"g\\\" {\\n task \\\"t\\\" {\\n driver = \\\"raw_exec\\\"\\n}\\n}\\n}\""

static void test_variables_of_a_job_file_have_the_values_that_come_with_it(void **state)
{
    static const struct {
        const char *variables;
        int priority; /* 0: refused */
        const char *why;
    } cases[] = {
        {"}", 1, NULL},
        {",\"Variables\":\"\"}", 1, NULL},
        {",\"Variables\":null}", 1, NULL},
        {",\"Variables\":\"x = 2 + 5\\n\"}", 7, NULL},
        {",\"Variables\":\"{\\\"x\\\": 8}\"}", 8, NULL},
        {",\"Variables\":\"y = 2\"}", 0, "\"y\""},
        {",\"Variables\":\"x {\"}", 0, "variables.hcl:1:"},
        {",\"Variables\":\"{\"}", 0, "variables.hcl:1:"},
        {",\"Variables\":{\"x\":3}}", 0, "Variables must be the text"},
    };
    char text[512];
    struct said said;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(text_format(text, sizeof(text), "%s%s", WITH_VARIABLE, cases[i].variables));
        ask(PARSE_JOB, text, &said);
        assert_int_equal(said.code, cases[i].why == NULL ? 0 : ERR_INVALID);
        if (cases[i].why == NULL)
            assert_int_equal(json_integer_value(json_object_get(said.value, "Priority")),
                             cases[i].priority);
        else if (strstr(said.refusal, cases[i].why) == NULL)
            fail_msg("%s: %s", cases[i].variables, said.refusal);
        forget(&said);
    }
}

/* What is wrong with texts of templates is noted in the job, and nobody else notes anything. */
static void test_templates_of_a_request_are_read(void **state)
{
    static const char text[] =
        "{\"Job\":{\"ID\":\"a\",\"cairnTemplates\":[\"mine\"],\"TaskGroups\":[{\"Name\":\"g\","
        "\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"raw_exec\",\"Templates\":["
        "{\"EmbeddedTmpl\":\"{{ fil }}\",\"DestPath\":\"a\"},"
        "{\"EmbeddedTmpl\":\"[[ nope }}\",\"LeftDelim\":\"[[\",\"DestPath\":\"b\"},"
        "{\"EmbeddedTmpl\":\"{{ env `A` }}\",\"DestPath\":\"c\"}]}]}]}}";
    struct jobspec_problems *problems = calloc(1, sizeof(*problems));
    json_t *job = NULL;
    struct said said;

    (void)state;
    assert_non_null(problems);
    ask(PARSE_OBJECT, text, &said);
    assert_int_equal(said.code, 0);
    assert_int_equal(jobspec_from_json("job", said.value, &job, problems), ERR_INVALID);
    assert_int_equal(problems->count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(text_starts_with(problems->items[i],
                                     "job: group \"g\", task \"t\": template: line 1: "));
    forget(&said);
    ask(PARSE_OBJECT, "{\"Job\":{\"ID\":\"a\",\"cairnTemplates\":[\"mine\"]}}", &said);
    assert_null(json_object_get(json_object_get(said.value, "Job"), JOBSPEC_NOTES));
    forget(&said);
    free(problems);
}

static void test_failure_of_a_renderer_comes_through_or_is_none(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } none[] = {{"", 0}, {"\1", 1}, {"\0a", 2}, {"\15a", 2}, {"\1\0", 2}, {"\1\xff", 2}};
    uint8_t bytes[RENDERING_FAILURE_SIZE];
    struct err err, said = {.code = ERR_GONE}, read = {0};

    (void)state;
    (void)err_set(&err, ERR_LIMIT, "%0238d\xc3\xa4", 0); /* cut in the letter */
    assert_int_equal(rendering_failure_read(bytes, rendering_failure(bytes, &err), &said),
                     ERR_LIMIT);
    assert_int_equal(said.code, ERR_LIMIT);
    assert_string_equal(said.text, err.text);
    assert_int_equal(strlen(said.text), 238);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(
            rendering_failure_read((const uint8_t *)none[i].bytes, none[i].length, &read),
            ERR_CORRUPT);
}

static void test_too_deep_is_refused(void **state)
{
    char text[PARSED_NESTING_MAX * 2 + 16] = "{\"a\":";
    size_t length = strlen(text);
    struct said said;

    (void)state;
    memset(text + length, '[', PARSED_NESTING_MAX - 1);
    memset(text + length + PARSED_NESTING_MAX - 1, ']', PARSED_NESTING_MAX - 1);
    text[length + 2 * (PARSED_NESTING_MAX - 1)] = '}';
    ask(PARSE_OBJECT, text, &said);
    assert_int_equal(said.code, 0); /* as deep as may be */
    forget(&said);
    memset(text + length, '[', PARSED_NESTING_MAX);
    memset(text + length + PARSED_NESTING_MAX, ']', PARSED_NESTING_MAX);
    text[length + 2 * PARSED_NESTING_MAX] = '}';
    ask(PARSE_OBJECT, text, &said);
    assert_int_equal(said.code, ERR_INVALID);
    assert_non_null(strstr(said.refusal, "too deep"));
    forget(&said);
}

static void test_too_many_values_are_refused(void **state)
{
    enum { LENGTH = 2 * PARSED_VALUES_MAX + 16 };
    char *text = malloc(LENGTH);
    struct said said;

    (void)state;
    assert_non_null(text);
    size_t length = (size_t)snprintf(text, LENGTH, "{\"a\":[0");
    for (int i = 1; i < PARSED_VALUES_MAX; i++, length += 2)
        memcpy(text + length, ",0", 2);
    memcpy(text + length, "]}", 3);
    ask(PARSE_OBJECT, text, &said);
    assert_int_equal(said.code, ERR_INVALID);
    assert_non_null(strstr(said.refusal, "too many"));
    forget(&said);
    free(text);
}

/* No parser of ours says this. */
static void test_answers_of_others_are_no_values(void **state)
{
#define SAYS(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    static const struct {
        const char *bytes;
        size_t length;
    } answers[] = {
        SAYS(""),                               /* nothing */
        SAYS("v"),                              /* no value */
        SAYS("xn"),                             /* neither of both */
        SAYS("vx"),                             /* no tag */
        SAYS("vnn"),                            /* more than a value */
        SAYS("vi\1\2\3"),                       /* too short a number */
        SAYS("vs\4\0\0\0abc"),                  /* a text longer than the answer */
        SAYS("vs\xff\xff\xff\xff"),             /* the same */
        SAYS("vs\2\0\0\0\xc3\x28"),             /* no UTF-8 */
        SAYS("va\2\0\0\0n"),                    /* fewer than said */
        SAYS("va\xff\xff\xff\xffn"),            /* the same */
        SAYS("vo\1\0\0\0\1\0\0\0an\1"),         /* more behind */
        SAYS("vo\2\0\0\0\1\0\0\0an\1\0\0\0an"), /* a name twice */
        SAYS("vo\1\0\0\0\2\0\0\0a\0n"),         /* a name with a NUL */
        SAYS("vo\1\0\0\0\1\0\0\0\xffn"),        /* a name that is no UTF-8 */
        SAYS("vd\0\0\0\0\0\0\xf0\x7f"),         /* no number */
        SAYS("r"),                              /* no reason */
        SAYS("r\xff"),                          /* no UTF-8 */
        SAYS("ra\0b"),                          /* a NUL */
    };
#undef SAYS
    struct said said;

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        read_answer(answers[i].bytes, answers[i].length, &said);
        if (said.code != ERR_CORRUPT || said.value != NULL || said.refusal != NULL)
            fail_msg("answer %zu: %d", i, said.code);
    }
}

static void test_answer_that_is_too_deep_is_none(void **state)
{
    enum { DEPTH = 100000 };
    char *answer = malloc(DEPTH * 5 + 2);
    struct said said;

    (void)state;
    assert_non_null(answer);
    answer[0] = 'v';
    for (int i = 0; i < DEPTH; i++)
        memcpy(answer + 1 + i * 5, "a\1\0\0", 5);
    answer[DEPTH * 5 + 1] = 'n';
    read_answer(answer, DEPTH * 5 + 2, &said);
    assert_int_equal(said.code, ERR_CORRUPT);
    free(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_through),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_job_file_becomes_its_job),
        cmocka_unit_test(test_variables_of_a_job_file_have_the_values_that_come_with_it),
        cmocka_unit_test(test_templates_of_a_request_are_read),
        cmocka_unit_test(test_failure_of_a_renderer_comes_through_or_is_none),
        cmocka_unit_test(test_too_deep_is_refused),
        cmocka_unit_test(test_too_many_values_are_refused),
        cmocka_unit_test(test_answers_of_others_are_no_values),
        cmocka_unit_test(test_answer_that_is_too_deep_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
