/* JSON written without a tree: the same text as jansson's, and always valid. */
#include "agent/api/format/write.h"
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_written(struct writer *to, const char *expected)
{
    assert_int_equal(to->depth, 0);
    assert_int_equal(to->used, strlen(expected));
    assert_memory_equal(to->bytes, expected, to->used);
    free(to->bytes);
    *to = (struct writer){.pretty = to->pretty};
}

static void put_sample(struct writer *to)
{
    put_object(to, NULL);
    put_text(to, "a", "b");
    put_array(to, "list");
    put_number(to, NULL, 1);
    put_array(to, NULL);
    put_end(to);
    put_object(to, NULL);
    put_end(to);
    put_object(to, NULL);
    put_bool(to, "yes", true);
    put_null(to, "none");
    put_end(to);
    put_end(to);
    put_json_new(to, "tree", json_pack("{s:[ii], s:{}, s:s}", "t", 1, 2, "e", "n", "two\nlines"));
    put_end(to);
}

static void test_written_text_is_that_of_a_tree(void **state)
{
    static const size_t flags[] = {JSON_COMPACT, JSON_INDENT(4)};
    (void)state;

    for (int pretty = 0; pretty <= 1; pretty++) {
        struct writer to = {.pretty = pretty != 0};
        put_sample(&to);
        json_t *tree = json_loadb(to.bytes, to.used, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(tree);
        char *text = json_dumps(tree, flags[pretty]);
        assert_written(&to, text);
        free(text);
        json_decref(tree);
    }
}

/* With everything that a tree may hold, deeper than is written without jansson, and keys of all
 * kinds. */
static void test_written_tree_is_jansson_s_text(void **state)
{
    static const size_t flags[] = {JSON_COMPACT, JSON_INDENT(4)};
    json_t *tree = json_pack("{s:[i,f,b,b,n], s:{}, s:[], s:{s:[{}]}, s:s}", "all", -7, 1.5, 1, 0,
                             "none\n\"", "empty", "in", "", "text", "gr\xc3\xbc\xc3\x9f\x01");
    (void)state;

    assert_non_null(tree);
    for (int depth = 0; depth < 2 * WRITE_DEPTH_MAX; depth++)
        tree = depth % 3 == 0 ? json_pack("[o,i]", tree, depth) : json_pack("{s:o}", "o", tree);
    for (int pretty = 0; pretty <= 1; pretty++) {
        struct writer to = {.pretty = pretty != 0};
        char *text = json_dumps(tree, flags[pretty]);

        put_json(&to, NULL, tree);
        assert_written(&to, text);
        free(text);
    }
    json_decref(tree);
}

static void test_written_strings_are_escaped(void **state)
{
    struct writer to = {0};
    (void)state;

    put_text(&to, NULL, "a\"b\\c/d\b\f\n\r\t\x01\x1f\x7f");
    assert_written(&to, "\"a\\\"b\\\\c/d\\b\\f\\n\\r\\t\\u0001\\u001F\x7f\"");
    put_text(&to, NULL, "gr\xc3\xbc\xc3\x9f");
    assert_written(&to, "\"gr\xc3\xbc\xc3\x9f\"");
    put_text(&to, NULL, "gr\xfc\xdf");
    assert_written(&to, "\"gr??\"");
    put_text(&to, NULL, NULL);
    assert_written(&to, "\"\"");
}

/* Bytes are looked at by eights: wherever one stands, it comes to what jansson makes of it. */
static void test_written_bytes_are_jansson_s_wherever_they_stand(void **state)
{
    enum { LENGTH_MAX = 27 };
    (void)state;

    for (size_t length = 1; length <= LENGTH_MAX; length++) {
        for (size_t at = 0; at < length; at++) {
            for (int byte = 1; byte < 256; byte++) {
                char text[LENGTH_MAX + 1] = {0}, known[LENGTH_MAX + 1] = {0};
                struct writer to = {0};

                memset(text, 'x', length);
                text[at] = (char)byte;
                memcpy(known, text, length);
                if (byte >= 0x80)
                    known[at] = '?';
                json_t *string = json_string(known);
                char *expected = json_dumps(string, JSON_ENCODE_ANY);
                put_text(&to, NULL, text);
                assert_written(&to, expected);
                free(expected);
                json_decref(string);
            }
        }
    }
}

static void test_written_runs_of_all_kinds_are_jansson_s(void **state)
{
    static const char *const kinds[] = {"plain text here",
                                        "\n",
                                        "gr\xc3\xbc\xc3\x9f",
                                        "\"",
                                        "\x01",
                                        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80"};
    (void)state;

    for (size_t seed = 0; seed < 6 * 6 * 6 * 6 * 6; seed++) {
        char text[128] = "";
        struct writer to = {0};

        for (size_t i = 0, rest = seed; i < 5; i++, rest /= COUNT_OF(kinds))
            assert_true(text_append(text, sizeof(text), kinds[rest % COUNT_OF(kinds)]));
        json_t *string = json_string(text);
        char *expected = json_dumps(string, JSON_ENCODE_ANY);
        put_text(&to, NULL, text);
        assert_written(&to, expected);
        free(expected);
        json_decref(string);
    }
}

static void test_written_numbers_reach_both_ends(void **state)
{
    static const struct {
        int64_t number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-1, "-1"},
        {1234567890, "1234567890"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    struct writer to = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put_number(&to, NULL, cases[i].number);
        assert_written(&to, cases[i].text);
    }
}

static void test_written_times_are_go_times(void **state)
{
    struct writer to = {0};
    (void)state;

    put_time(&to, NULL, 1600000000ll * 1000000000);
    assert_written(&to, "\"2020-09-13T12:26:40Z\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_text_is_that_of_a_tree),
        cmocka_unit_test(test_written_tree_is_jansson_s_text),
        cmocka_unit_test(test_written_strings_are_escaped),
        cmocka_unit_test(test_written_bytes_are_jansson_s_wherever_they_stand),
        cmocka_unit_test(test_written_runs_of_all_kinds_are_jansson_s),
        cmocka_unit_test(test_written_numbers_reach_both_ends),
        cmocka_unit_test(test_written_times_are_go_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
