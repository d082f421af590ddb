/* In words: times, ages, ids, what machines are; and that secrets of a specification are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/part.h"

#define UUID "3f2a91c4-0000-4000-8000-000000000001"

static void test_time_is_utc_to_the_millisecond(void **state)
{
    char text[TIME_TEXT_SIZE];

    (void)state;
    inspect_print_time(1768212000063000000, text);
    assert_string_equal(text, "2026-01-12T10:00:00.063Z");
    inspect_print_time(-1000000, text); /* before 1970, as a clock that was never set */
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
}

static void test_age_has_two_units_at_most(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "0.000s"},   {59, "59.000s"},   {60, "1m0s"},    {3599, "59m59s"}, {3600, "1h0m"},
        {7800, "2h10m"}, {86399, "23h59m"}, {86400, "1d0h"}, {442800, "5d3h"},
    };
    char text[AGE_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        inspect_print_age(cases[i].seconds * 1000000000, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_id_is_short_where_it_is_an_allocs(void **state)
{
    static const struct {
        const char *id, *text;
    } cases[] = {
        {UUID, "3f2a91c4"},       {UUID "/web", "3f2a91c4/web"}, {UUID "x", UUID "x"},
        {"3f2a91c4", "3f2a91c4"}, {"csi/plugin", "csi/plugin"},  {"a\x1b[2J", "a?[2J"},
    };
    char text[ID_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct machine_id id = {.kind = MACHINE_TASK};
        assert_true(text_copy(id.text, sizeof(id.text), cases[i].id));
        inspect_print_id(&id, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_summary_of_a_task_says_how_it_went(void **state)
{
    struct task *task = calloc(1, sizeof(*task));
    char text[128];

    (void)state;
    assert_non_null(task);
    task->machine.kind = MACHINE_TASK;
    (void)text_copy(task->define.driver, sizeof(task->define.driver), "exec");
    inspect_print_summary(&task->machine, text, sizeof(text));
    assert_string_equal(text, "exec");
    task->ran = 1;
    task->process.payload_pid = 42;
    inspect_print_summary(&task->machine, text, sizeof(text));
    assert_string_equal(text, "exec pid 42");
    task->exit_seen = 1;
    inspect_print_summary(&task->machine, text, sizeof(text));
    assert_string_equal(text, "exec exit unknown");
    task->exit.known = 1;
    task->exit.code = 3;
    task->restarts = 2;
    task->failed = 1;
    inspect_print_summary(&task->machine, text, sizeof(text));
    assert_string_equal(text, "exec exit 3 restarts 2 failed");
    free(task);
}

static void test_secrets_are_gone_wherever_they_are(void **state)
{
    json_t *json = json_loads(
        "{\"Env\":{\"A\":\"x\"},\"Tasks\":[{\"Env\":{\"B\":\"x\"},\"Name\":"
        "\"web\",\"Artifacts\":[{\"GetterHeaders\":{\"H\":\"x\"}}],"
        "\"Templates\":[{\"DestPath\":\"y\",\"EmbeddedTmpl\":\"x\"}],"
        "\"Config\":{\"deep\":{\"secret\":\"x\",\"open\":\"y\"}}}],"
        "\"Volumes\":{\"v\":{\"MountOptions\":{\"FSType\":\"cifs\","
        "\"MountFlags\":[\"password=x\",\"ro\"]}}},\"SignedIdentities\":{\"web\":\"x\"}}",
        0, NULL);

    (void)state;
    assert_non_null(json);
    inspect_redact(json);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(
        text,
        "{\"Env\":{\"A\":\"***\"},\"SignedIdentities\":{\"web\":\"***\"},\"Tasks\":[{\"Artifacts\":"
        "[{\"GetterHeaders\":"
        "{\"H\":\"***\"}}],\"Config\":{\"deep\":{\"open\":"
        "\"y\",\"secret\":\"***\"}},\"Env\":{\"B\":\"***\"},\"Name\":"
        "\"web\",\"Templates\":[{\"DestPath\":\"y\","
        "\"EmbeddedTmpl\":\"***\"}]}],\"Volumes\":{\"v\":{\"MountOptions\":{\"FSType\":\"cifs\","
        "\"MountFlags\":[\"***\",\"***\"]}}}}");
    free(text);
    json_decref(json);
}

static void test_a_source_is_shown_without_user_and_query(void **state)
{
    static const char *const pairs[][2] = {
        {"https://ann:x@example.com/a@b?sshkey=x", "https://***@example.com/a@b?***"},
        {"git::ssh://git@example.com/repo", "git::ssh://***@example.com/repo"},
        {"git@example.com:repo?ref=main", "git@example.com:repo?***"},
        {"https://example.com/?at=x@y", "https://example.com/?***"},
        {"/srv/file?x://ann:x@y", "/srv/file?***"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        json_t *json =
            json_pack("{s:s, s:{s:s}, s:s, s:{s:s}}", "GetterSource", pairs[i][0], "GetterOptions",
                      "sshkey", "x", "Payload", "x", "ParameterizedJob", "Payload", "optional");
        assert_non_null(json);
        inspect_redact(json);
        const char *source, *key, *payload, *kind;
        assert_int_equal(json_unpack(json, "{s:s, s:{s:s}, s:s, s:{s:s}}", "GetterSource", &source,
                                     "GetterOptions", "sshkey", &key, "Payload", &payload,
                                     "ParameterizedJob", "Payload", &kind),
                         0);
        assert_string_equal(source, pairs[i][1]);
        assert_string_equal(key, "***");
        assert_string_equal(payload, "***");
        assert_string_equal(kind, "optional");
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_source_is_shown_without_user_and_query),
        cmocka_unit_test(test_time_is_utc_to_the_millisecond),
        cmocka_unit_test(test_age_has_two_units_at_most),
        cmocka_unit_test(test_id_is_short_where_it_is_an_allocs),
        cmocka_unit_test(test_summary_of_a_task_says_how_it_went),
        cmocka_unit_test(test_secrets_are_gone_wherever_they_are),
    };

    return cmocka_run_group_tests_name("inspect_words", tests, NULL, NULL);
}
