/* Bounded text, durations, ids, digests: what everything else trusts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#include <string.h>

static void test_text_copy_cuts_between_characters_and_zeroes_the_rest(void **state)
{
    char to[6];

    (void)state;
    memset(to, 'x', sizeof(to));
    assert_false(
        text_copy(to, sizeof(to), "abcd\xc3\xbc")); /* the two-byte character does not fit */
    assert_memory_equal(to, "abcd\0\0", 6);
    assert_true(text_copy(to, sizeof(to), NULL));
    assert_memory_equal(to, "\0\0\0\0\0\0", 6);
}

static void test_text_append_fills_up_to_the_bound_only(void **state)
{
    char to[8] = "abc";

    (void)state;
    assert_true(text_append(to, sizeof(to), "defg"));
    assert_false(text_append(to, sizeof(to), "h"));
    assert_string_equal(to, "abcdefg");
}

static void test_text_goes_up_by_a_whole_part_only(void **state)
{
    static const char *const up[] = {"..", "../a", "a/..", "/..", "a//../b", "../"};
    static const char *const not_up[] = {"",      "/",     ".",       "...", "a..",
                                         "..a/b", "a/...", "a/.../b", "./a"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(up); i++)
        assert_true(text_goes_up(up[i]));
    for (size_t i = 0; i < COUNT_OF(not_up); i++)
        assert_false(text_goes_up(not_up[i]));
}

static void test_text_lists_a_whole_name_only(void **state)
{
    static const char *const in[] = {"a", "a,b", " a ", "b, a", ",a,", "b,,a"};
    static const char *const not_in[] = {"", ",", "aa", "a b", "b", "A"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(in); i++)
        assert_true(text_lists(in[i], "a"));
    for (size_t i = 0; i < COUNT_OF(not_in); i++)
        assert_false(text_lists(not_in[i], "a"));
    assert_false(text_lists(" , ,", ""));
}

static void test_text_to_u64_refuses_what_is_no_number(void **state)
{
    static const char *const bad[] = {"",   "-1",   "+1",  " 1",
                                      "1 ", "0x10", "1.5", "18446744073709551616"};
    uint64_t value = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(text_to_u64(bad[i], &value));
    assert_false(text_to_u64(NULL, &value));
    assert_int_equal(value, 7);
    assert_true(text_to_u64("18446744073709551615", &value));
    assert_int_equal(value, UINT64_MAX);
}

static void test_text_to_i64_knows_both_ends(void **state)
{
    int64_t value = 0;

    (void)state;
    assert_true(text_to_i64("-9223372036854775808", &value));
    assert_int_equal(value, INT64_MIN);
    assert_false(text_to_i64("9223372036854775808", &value));
    assert_false(text_to_i64("-", &value));
}

static void test_duration_prints_as_go_does(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1ns"},
        {1500, "1.5\xc2\xb5s"},
        {2300000, "2.3ms"},
        {5000000000, "5s"},
        {2300269983, "2.300269983s"},
        {90000000000, "1m30s"},
        {1800000000000, "30m0s"},
        {5400500000000, "1h30m0.5s"},
        {-1000000000, "-1s"},
        {86400000000000, "24h0m0s"},
    };
    char text[48];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t back = -7;
        text_from_duration_ns(text, sizeof(text), cases[i].ns);
        assert_string_equal(text, cases[i].text);
        assert_true(text_to_duration_ns(text, &back));
        assert_int_equal(back, cases[i].ns);
    }
}

static void test_duration_refuses_what_go_refuses(void **state)
{
    static const char *const bad[] = {"", "5", "s", "1x", "1s ", "-", ".s", "9223372036854775807h"};
    int64_t ns = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(text_to_duration_ns(bad[i], &ns));
    assert_int_equal(ns, 7);
    assert_true(text_to_duration_ns("1.5h", &ns));
    assert_int_equal(ns, 5400000000000);
}

static void test_utf8_refuses_overlong_surrogates_and_halves(void **state)
{
    static const char *const bad[] = {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xe2\x82", "\x80",         "\xff"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    assert_false(text_is_utf8("a\0b", 3));
    for (size_t at = 0; at < 24; at++) { /* wherever it stands among what is plain */
        static const char plain[] = "0123456789abcdefghijklmn";
        char text[sizeof(plain)];

        memcpy(text, plain, sizeof(plain));
        assert_true(text_is_utf8(text, 24));
        text[at] = '\0';
        assert_false(text_is_utf8(text, 24));
        text[at] = '\x80';
        assert_false(text_is_utf8(text, 24));
        text[at] = '\x01';
        assert_true(text_is_utf8(text, 24));
    }
    assert_true(text_is_utf8("\xe2\x82\xac \xf0\x9f\x98\x80", 8));
}

static void test_text_whole_drops_halves_and_keeps_the_rest(void **state)
{
    static const struct {
        const char *text, *whole;
    } rows[] = {
        {"", ""},
        {"name", "name"},
        {"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80"},
        {"cut \xe2\x82\" here", "cut \" here"},
        {"cut \xf0\x9f\x98", "cut "},
        {"\xc3", ""},
        {"a\x82"
         "b",
         "ab"},
        {"\xe2\xe2\x82\xac", "\xe2\x82\xac"},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        (void)text_copy(text, sizeof(text), "");
        memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
        text_whole(text);
        assert_string_equal(text, rows[i].whole);
    }
}

static void test_clean_text_cannot_drive_a_terminal(void **state)
{
    char text[] = "a\x1b[2J\x07\xc2\x9b"
                  "31m\x7f b\xc3\xa9";

    (void)state;
    text_clean(text);
    assert_string_equal(text, "a?[2J???31m? b\xc3\xa9");
}

static void test_uuid_format_is_valid_and_version_4(void **state)
{
    char id[UUID_TEXT_SIZE];

    (void)state;
    uuid_format(id, UINT64_MAX, UINT64_MAX);
    assert_string_equal(id, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    assert_true(uuid_is_valid(id));
    id[8] = '0';
    assert_false(uuid_is_valid(id));
    assert_false(uuid_is_valid("ffffffff-ffff-4fff-bfff-fffffffffff"));
}

/* Part of the journal's format: a changed digest would make every old journal look damaged. */
static void test_hash_is_what_it_was(void **state)
{
    char bytes[67];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    assert_int_equal(hash_bytes(0, "", 0), 0xbafde6e38dd32b71u);
    assert_int_equal(hash_bytes(1, bytes, sizeof(bytes)), 0xeb61ae0841eba078u);
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 37 + 200);
    for (size_t length = 0; length <= sizeof(bytes); length++)
        all = hash_u64(all, hash_bytes(length, bytes, length));
    assert_int_equal(all, 0xb45cd12604c2711bu);
}

static void test_hash_differs_for_every_single_bit(void **state)
{
    unsigned char bytes[80] = {0};
    uint64_t plain = hash_bytes(3, bytes, sizeof(bytes));

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(hash_bytes(3, bytes, sizeof(bytes)) != plain);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void test_rng_is_bounded_and_repeats_from_its_seed(void **state)
{
    struct rng a = rng_init(42), b = rng_init(42);

    (void)state;
    assert_int_equal(rng_below(&a, 0), rng_below(&b, 0));
    for (int i = 0; i < 1000; i++) {
        uint64_t value = rng_below(&a, 7);
        assert_true(value < 7);
        assert_int_equal(value, rng_below(&b, 7));
    }
}

static void test_err_wrap_keeps_the_code_and_puts_the_place_first(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(err_os(&err, ERR_IO, 2, "open %s", "x"), ERR_IO);
    assert_int_equal(err_wrap(&err, "restore task %s", "web"), ERR_IO);
    assert_string_equal(err.text, "restore task web: open x: No such file or directory");
    assert_int_equal(err.os, 2);
    assert_int_equal(err_set(NULL, ERR_GONE, "nobody listens"), ERR_GONE);
}

static void test_of_a_url_user_query_and_fragment_are_left_out(void **state)
{
    static const struct {
        const char *url, *scheme, *place;
        bool user;
        char rest;
    } urls[] = {
        {"https://example.com/a", "https://", "example.com/a", false, '\0'},
        {"https://ann:p@ss@example.com/a@b?key=x", "https://", "example.com/a@b", true, '?'},
        {"git::ssh://git@example.com/repo#main", "git::ssh://", "example.com/repo", true, '#'},
        {"git@example.com:repo?ref=x", "", "git@example.com:repo", false, '?'},
        {"/srv/file?x://ann:x@y", "", "/srv/file", false, '?'},
        {"http://?a@b", "http://", "", false, '?'},
        {"", "", "", false, '\0'},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct url_shown shown = url_shown(urls[i].url);
        char scheme[64], place[64];

        assert_true(text_format(scheme, sizeof(scheme), "%.*s", shown.scheme_length, shown.scheme));
        assert_true(text_format(place, sizeof(place), "%.*s", shown.place_length, shown.place));
        assert_string_equal(scheme, urls[i].scheme);
        assert_string_equal(place, urls[i].place);
        assert_int_equal(shown.user, urls[i].user);
        assert_int_equal(shown.rest, urls[i].rest);
    }
}

static void test_wall_clocks_far_apart_do_not_overflow(void **state)
{
    (void)state;
    assert_int_equal(wall_since(5, 7), 2);
    assert_int_equal(wall_since(7, 5), -2);
    assert_int_equal(wall_since(INT64_MIN, 1), INT64_MAX);
    assert_int_equal(wall_since(INT64_MAX, -2), INT64_MIN);
    assert_int_equal(wall_add(5, -7), -2);
    assert_int_equal(wall_add(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(wall_add(INT64_MIN, -1), INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_copy_cuts_between_characters_and_zeroes_the_rest),
        cmocka_unit_test(test_text_append_fills_up_to_the_bound_only),
        cmocka_unit_test(test_text_goes_up_by_a_whole_part_only),
        cmocka_unit_test(test_text_lists_a_whole_name_only),
        cmocka_unit_test(test_text_to_u64_refuses_what_is_no_number),
        cmocka_unit_test(test_text_to_i64_knows_both_ends),
        cmocka_unit_test(test_duration_prints_as_go_does),
        cmocka_unit_test(test_duration_refuses_what_go_refuses),
        cmocka_unit_test(test_utf8_refuses_overlong_surrogates_and_halves),
        cmocka_unit_test(test_text_whole_drops_halves_and_keeps_the_rest),
        cmocka_unit_test(test_clean_text_cannot_drive_a_terminal),
        cmocka_unit_test(test_uuid_format_is_valid_and_version_4),
        cmocka_unit_test(test_hash_is_what_it_was),
        cmocka_unit_test(test_hash_differs_for_every_single_bit),
        cmocka_unit_test(test_rng_is_bounded_and_repeats_from_its_seed),
        cmocka_unit_test(test_err_wrap_keeps_the_code_and_puts_the_place_first),
        cmocka_unit_test(test_of_a_url_user_query_and_fragment_are_left_out),
        cmocka_unit_test(test_wall_clocks_far_apart_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
