/* Output: columns stay aligned, and what comes from outside cannot drive the terminal. */
#include "agent/cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void assert_printed(struct cli_table *table, bool pairs, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    if (pairs)
        cli_table_print_pairs(table, to);
    else
        cli_table_print(table, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, expected);
    free(text);
    assert_int_equal(table->count, 0); /* may be used again */
}

static void test_table_control_characters_are_shown_not_sent(void **state)
{
    struct cli_table table = {0};
    (void)state;

    cli_row(&table, "a\033[2Jb", "c\nd\x7f");
    assert_printed(&table, false, "a?[2Jb  c?d?\n");
}

static void test_table_columns_are_aligned_by_characters(void **state)
{
    struct cli_table table = {0};
    (void)state;

    cli_row(&table, "ID", "Status", "Name");
    cli_row(&table, "\xc3\xa4\xc3\xb6\xc3\xbc", "x", "y");
    cli_row(&table, "12345", "running", "");
    assert_printed(&table, false,
                   "ID     Status   Name\n"
                   "\xc3\xa4\xc3\xb6\xc3\xbc    x        y\n"
                   "12345  running  <none>\n");
}

static void test_pairs_are_joined_by_equals(void **state)
{
    struct cli_table table = {0};
    (void)state;

    cli_row(&table, "ID", "1");
    cli_row(&table, "Node Name", "n");
    assert_printed(&table, true,
                   "ID        = 1\n"
                   "Node Name = n\n");
}

static void test_ago_shows_two_units_at_most(void **state)
{
    const int64_t second = 1000000000;
    (void)state;

    assert_string_equal(cli_ago(0, 5 * second), "");
    assert_string_equal(cli_ago(10 * second, 5 * second), "0s ago"); /* clocks differ */
    assert_string_equal(cli_ago(second, 10 * second), "9s ago");
    assert_string_equal(cli_ago(second, 66 * second), "1m5s ago");
    assert_string_equal(cli_ago(second, 3601 * second), "1h ago");
    assert_string_equal(cli_ago(second, (86400 + 7200 + 61) * second), "1d2h ago");
}

static void test_bytes_have_a_unit(void **state)
{
    (void)state;
    assert_string_equal(cli_bytes(0), "0 B");
    assert_string_equal(cli_bytes(1023), "1023 B");
    assert_string_equal(cli_bytes(1536), "1.5 KiB");
    assert_string_equal(cli_bytes(300ull << 20), "300 MiB");
    assert_string_equal(cli_bytes(UINT64_MAX), "16384 PiB");
}

static void test_time_is_local_and_absent_when_zero(void **state)
{
    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    assert_string_equal(cli_time(0), "N/A");
    assert_string_equal(cli_time(1000000000ll * 1600000000), "2020-09-13T12:26:40Z");
    assert_int_equal(setenv("TZ", "AAA-1:30", 1), 0);
    tzset();
    assert_string_equal(cli_time(1000000000ll * 1600000000), "2020-09-13T13:56:40+01:30");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_control_characters_are_shown_not_sent),
        cmocka_unit_test(test_table_columns_are_aligned_by_characters),
        cmocka_unit_test(test_pairs_are_joined_by_equals),
        cmocka_unit_test(test_ago_shows_two_units_at_most),
        cmocka_unit_test(test_bytes_have_a_unit),
        cmocka_unit_test(test_time_is_local_and_absent_when_zero),
    };

    return cmocka_run_group_tests_name("cli_table", tests, NULL, NULL);
}
