/* Parameterized jobs: what one may say, and what is made of one with what a dispatch brings. */
#include "spec/job.h"
#include "spec/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct jobspec_problems problems;

/* A batch job that is dispatched as BLOCK says, and whose task has the payload in FILE. */
static json_t *read_job(const char *id, const char *type, const char *block, const char *file)
{
    json_t *job = NULL, *said = json_loads(block, 0, NULL);
    json_t *raw = json_pack("{s:s, s:s, s:O, s:{s:s, s:s}, s:[{s:s, s:[{s:s, s:s, s:{s:s}}]}]}",
                            "ID", id, "Type", type, "ParameterizedJob", said, "Meta", "size",
                            "large", "own", "1", "TaskGroups", "Name", "g", "Tasks", "Name", "t",
                            "Driver", "raw_exec", "DispatchPayload", "File", file);

    assert_non_null(raw);
    (void)jobspec_from_json("job", raw, &job, &problems); /* NULL says so */
    json_decref(said);
    json_decref(raw);
    return job;
}

static json_t *job_of(const char *block)
{
    json_t *job = read_job("resize", "batch", block, "in/photo");

    if (job == NULL)
        fail_msg("%s", problems.items[0]);
    return job;
}

static void test_block_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        const char *id, *type, *block, *file, *part;
    } cases[] = {
        {"j", "service", "{}", "f", "has type \"batch\" or \"sysbatch\", not \"service\""},
        {"j", "batch", "{\"Payload\": \"maybe\"}", "f", "\"forbidden\", not \"maybe\""},
        {"j", "batch", "{\"MetaRequired\": [\"\"]}", "f", "must not be empty"},
        {"j", "batch", "{\"MetaRequired\": [\"a\"], \"MetaOptional\": [\"b\", \"a\"]}", "f",
         "meta key \"a\" cannot be both"},
        {"j", "batch", "{}", "../f", "escapes the directory"},
        {"j", "batch", "{}", "a/../../f", "escapes the directory"},
        {"j", "batch", "{}", "a/", "names no file"},
        {"jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj", "batch", "{}", "f",
         "has at most 66 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_null(read_job(cases[i].id, cases[i].type, cases[i].block, cases[i].file));
        if (strstr(problems.items[0], cases[i].part) == NULL)
            fail_msg("%s", problems.items[0]);
    }
}

static void test_nobody_submits_what_only_a_dispatch_brings(void **state)
{
    static const char *const fields[] = {"{\"Payload\": \"aGk=\"}", "{\"Dispatched\": true}"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        json_t *job = job_of("{}"), *field = json_loads(fields[i], 0, NULL), *again = NULL;

        assert_int_equal(json_object_update(job, field), 0);
        assert_int_equal(jobspec_from_json("job", job, &again, &problems), ERR_INVALID);
        assert_non_null(strstr(problems.items[0], "and dispatch that: cairn job dispatch"));
        json_decref(field);
        json_decref(job);
    }
}

static void test_dispatch_that_the_job_does_not_want_is_refused(void **state)
{
    static char large[24000];
    static const struct {
        const char *block, *payload, *meta, *text;
        int64_t priority;
    } cases[] = {
        {"{\"Payload\": \"required\"}", "", "{}",
         "Payload is not provided but required by parameterized job", 0},
        {"{\"Payload\": \"forbidden\"}", "aGk=", "{}",
         "Payload provided but forbidden by parameterized job", 0},
        {"{}", "?", "{}", "Payload is not in base64", 0},
        {"{}", "aGk", "{}", "Payload is not in base64", 0},
        {"{}", large, "{}", "Payload exceeds maximum size; 17997 > 16384", 0},
        {"{\"MetaOptional\": [\"a\"]}", "", "{\"a\": \"1\", \"b\": \"2\"}",
         "Dispatch request included unpermitted metadata keys: [b]", 0},
        {"{\"MetaRequired\": [\"a\", \"b\", \"c\"]}", "", "{\"b\": \"2\"}",
         "Dispatch did not provide required meta keys: [a c]", 0},
        {"{\"MetaRequired\": [\"a\"]}", "", "{\"a\": 1}", "the value of meta key \"a\" is no text",
         0},
        {"{}", "", "{}", "dispatch job priority must be between [1, 100]", 101},
        {"{}", "", "{}", "dispatch job priority must be between [1, 100]", -1},
    };

    (void)state;
    memset(large, 'A', 23996);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *job = job_of(cases[i].block), *meta = json_loads(cases[i].meta, 0, NULL), *made;
        const struct jobspec_dispatch dispatch = {.id = "resize/dispatch-1-a",
                                                  .payload = cases[i].payload,
                                                  .meta = meta,
                                                  .token = "",
                                                  .priority = cases[i].priority};
        struct err err = {0};

        assert_int_equal(jobspec_dispatch(job, &dispatch, &made, &err), ERR_INVALID);
        assert_string_equal(err.text, cases[i].text);
        json_decref(meta);
        json_decref(job);
    }
}

/* All that fits fits, and not a byte more. */
static void test_payload_of_the_largest_size_is_taken(void **state)
{
    static char text[BUFSIZ * 4];
    uint8_t *bytes;
    size_t length;

    (void)state;
    memset(text, 'A', 21848); /* of 16,386 bytes */
    assert_false(jobspec_payload(text, &bytes, &length));
    memcpy(text + 21844, "AA==", 4);
    assert_true(jobspec_payload(text, &bytes, &length));
    assert_int_equal(length, SPEC_PAYLOAD_BYTES_MAX);
    free(bytes);
}

/* What an alloc of MADE runs by. */
static struct alloc_spec *alloc_of_job(const json_t *made)
{
    struct jobspec_placement placement = {.group = "g",
                                          .alloc_id = "5b4c3f8e-9a1d-4d5e-8f00-0123456789ab",
                                          .eval_id = "",
                                          .datacenter = "dc1"};
    struct alloc_spec *spec;
    struct err err = {0};
    size_t length;
    char *text;

    assert_int_equal(jobspec_make_alloc(made, &placement, &text, &length, &spec, &err), 0);
    free(text);
    return spec;
}

static void test_dispatched_job_has_all_that_was_brought(void **state)
{
    json_t *job = job_of("{\"MetaRequired\": [\"user\"], \"MetaOptional\": [\"size\", \"tag\"]}");
    json_t *meta = json_pack("{s:s}", "user", "ann"), *made;
    const struct jobspec_dispatch dispatch = {.id = "resize/dispatch-1-a",
                                              .payload = "aGk=",
                                              .meta = meta,
                                              .token = "once",
                                              .priority = 70};
    static const struct spec_pair expected[] = {
        {"own", "1"}, {"size", "large"}, {"tag", ""}, {"user", "ann"}};
    struct err err = {0};

    (void)state;
    assert_true(jobspec_is_parameterized(job));
    assert_false(jobspec_is_dispatched(job));
    assert_int_equal(jobspec_dispatch(job, &dispatch, &made, &err), 0);
    assert_false(jobspec_is_parameterized(made));
    assert_true(jobspec_is_dispatched(made));
    assert_string_equal(json_string_value(json_object_get(made, "ParentID")), "resize");
    assert_string_equal(json_string_value(json_object_get(made, "DispatchIdempotencyToken")),
                        "once");
    assert_int_equal(json_integer_value(json_object_get(made, "Priority")), 70);
    struct alloc_spec *spec = alloc_of_job(made);
    assert_string_equal(spec->job_id, "resize/dispatch-1-a");
    assert_string_equal(spec->job_parent_id, "resize");
    assert_string_equal(spec->payload, "aGk=");
    assert_string_equal(spec->tasks[0].payload_file, "in/photo");
    assert_int_equal(spec->tasks[0].meta.count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_string_equal(spec->tasks[0].meta.items[i].key, expected[i].key);
        assert_string_equal(spec->tasks[0].meta.items[i].value, expected[i].value);
    }
    alloc_spec_free(spec);
    assert_null(json_object_get(job, "Payload")); /* it is as it was */
    json_decref(made);
    json_decref(meta);
    json_decref(job);
}

static void test_damaged_payload_of_an_alloc_is_noticed(void **state)
{
    static const char *const changes[][2] = {
        {"aGk=", "a?"}, {"\"aGk=\"", "7"}, {"in/photo", "../photo"}};
    struct jobspec_placement placement = {.group = "g",
                                          .alloc_id = "5b4c3f8e-9a1d-4d5e-8f00-0123456789ab",
                                          .eval_id = "",
                                          .datacenter = "dc1"};
    json_t *job = job_of("{}"), *made;
    const struct jobspec_dispatch dispatch = {
        .id = "resize/dispatch-1-a", .payload = "aGk=", .token = ""};
    struct alloc_spec *spec;
    char *text, damaged[8192];
    struct err err = {0};
    size_t length;

    (void)state;
    assert_int_equal(jobspec_dispatch(job, &dispatch, &made, &err), 0);
    assert_int_equal(jobspec_make_alloc(made, &placement, &text, &length, &spec, &err), 0);
    alloc_spec_free(spec);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        const char *at = strstr(text, changes[i][0]);

        assert_non_null(at);
        assert_true(text_format(damaged, sizeof(damaged), "%.*s%s%s", (int)(at - text), text,
                                changes[i][1], at + strlen(changes[i][0])));
        assert_int_equal(jobspec_decode_alloc(damaged, strlen(damaged), &spec, &err), ERR_CORRUPT);
    }
    free(text);
    json_decref(made);
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_that_makes_no_sense_is_refused),
        cmocka_unit_test(test_nobody_submits_what_only_a_dispatch_brings),
        cmocka_unit_test(test_dispatch_that_the_job_does_not_want_is_refused),
        cmocka_unit_test(test_payload_of_the_largest_size_is_taken),
        cmocka_unit_test(test_dispatched_job_has_all_that_was_brought),
        cmocka_unit_test(test_damaged_payload_of_an_alloc_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
