/*
 * Times of cron: what lines mean, as hashicorp/cronexpr v1.1.3 answers; what a change of clocks
 * does to them; and what is no line, or no zone.
 */
#include "spec/cron.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* 2023-11-14T22:13:20Z, a Tuesday. */
#define SOME_DAY INT64_C(1700000000)

static int64_t next(const char *line, const struct zone *zone, int64_t after)
{
    struct cron cron;
    struct err err = {0};

    if (cron_parse(line, &cron, &err) < 0)
        fail_msg("%s: %s", line, err.text);
    return cron_next(&cron, zone, after);
}

static void test_lines_mean_what_nomad_takes_them_for(void **state)
{
    static const struct {
        const char *line;
        int64_t next;
    } cases[] = {
        {"* * * * *", 1700000040},
        {"*/15 * * * *", 1700000100},
        {"@hourly", 1700002800},
        {"@daily", 1700006400},
        {"@weekly", 1700352000},
        {"@monthly", 1701388800},
        {"@yearly", 1704067200},
        {"13 22 * * *", 1700086380},
        {"20 13 22 14 11 * 2023", CRON_NEVER},
        {"21 13 22 14 11 * 2023", 1700000001},
        {"0 0 L * *", 1701302400},
        {"0 0 LW * *", 1701302400},
        {"0 0 18W * *", 1700179200},
        {"0 0 * * 5L", 1700784000},
        {"0 0 * * mon#1", 1701648000},
        {"0 0 13 * fri", 1700179200},
        {"0 12 29 2 *", 1709208000},
        {"0 12 29 feb * 2025-2040", 1835438400},
        {"0 0 * * 7", 1700352000},
        {"30 8-18/2 ? * Mon-FRI", 1700037000},
        {"* * * * * 2000", CRON_NEVER},
        {"0 0 31 2 *", CRON_NEVER},
        {"0 0 * * fri-sun", 1700179200},
        {"0,30 0 1 jan,July *", 1704067200},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t found = next(cases[i].line, NULL, SOME_DAY);

        if (found != cases[i].next)
            fail_msg("%s: %lld, not %lld", cases[i].line, (long long)found,
                     (long long)cases[i].next);
    }
}

static void test_days_that_end_with_sunday_have_it(void **state)
{
    int64_t saturday = INT64_C(1700265600); /* 2023-11-18 */

    (void)state;
    assert_int_equal(next("0 0 * * fri-sun", NULL, saturday), saturday + 86400);
    assert_int_equal(next("0 0 * * 5-7", NULL, saturday), saturday + 86400);
    assert_int_equal(next("0 0 * * 01", NULL, saturday), saturday + 2 * 86400);
}

static void test_what_is_no_line_is_refused(void **state)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"", "missing field(s)"},
        {"* * * *", "missing field(s)"},
        {"60 * * * *", "syntax error in minute field: '60'"},
        {"* 24 * * *", "syntax error in hour field: '24'"},
        {"* * 0 * *", "syntax error in day-of-month field: '0'"},
        {"* * * 13 *", "syntax error in month field: '13'"},
        {"* * * * 8", "syntax error in day-of-week field: '8'"},
        {"* * * * x", "syntax error in day-of-week field: 'x'"},
        {"* * * * mon#6", "syntax error in day-of-week field: 'mon#6'"},
        {"* * * * * 1969", "syntax error in year field: '1969'"},
        {"*/0 * * * *", "invalid interval */0"},
        {"*/60 * * * *", "invalid interval */60"},
        {"30-10 * * * *", "a range of the minute field runs backwards: '30-10'"},
        {"*x * * * *", "syntax error in minute field: '*x'"},
        {"1-2-3 * * * *", "syntax error in minute field: '1-2-3'"},
        {"99999999999999999999 * * * *", "syntax error in minute field: '99999999999999999999'"},
        {", * * * *", "minute field: missing directive"},
    };
    struct cron cron;
    char long_line[CRON_TEXT_SIZE + 1];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};

        assert_int_equal(cron_parse(cases[i].line, &cron, &err), ERR_INVALID);
        assert_string_equal(err.text, cases[i].why);
    }
    memset(long_line, '*', sizeof(long_line) - 1);
    long_line[sizeof(long_line) - 1] = '\0';
    assert_int_equal(cron_parse(long_line, &cron, NULL), ERR_INVALID);
}

/* --- zones --- */

/* A file of version 2 with no change of its own, one type that is OFFSET ahead, and a FOOTER. */
static struct zone *zone_of(uint32_t offset, const char *footer)
{
    uint8_t bytes[512] = {0}, *at = bytes;
    struct zone *zone = NULL;

    for (int block = 0; block < 2; block++) {
        memcpy(at, "TZif2", 5);
        at[36 + 3] = 1; /* types */
        at[40 + 3] = 4; /* letters */
        at += 44;
        for (int i = 0; i < 4; i++)
            at[i] = (uint8_t)(offset >> (24 - 8 * i));
        at += 6 + 4;
    }
    int length = snprintf((char *)at, 256, "\n%s\n", footer);
    (void)zone_parse(bytes, (size_t)(at - bytes) + (size_t)length, &zone, NULL); /* NULL says so */
    return zone;
}

/* Clocks of New York go forward at 2024-03-10T07:00Z, and back at 2024-11-03T06:00Z. */
static void test_time_that_is_skipped_does_not_happen(void **state)
{
    struct zone *zone = zone_of((uint32_t)-18000, "EST5EDT,M3.2.0,M11.1.0");

    (void)state;
    assert_non_null(zone);
    /* 02:30 on the day before is 07:30Z; that of the day itself is not there. */
    assert_int_equal(next("30 2 * * *", zone, 1709930000), 1709969400);
    assert_int_equal(next("30 2 * * *", zone, 1709969400), 1710138600);
    assert_int_equal(next("30 * * * *", zone, 1710052200), 1710055800); /* 01:30, 03:30 */
    zone_free(zone);
}

static void test_time_that_comes_twice_happens_twice(void **state)
{
    struct zone *zone = zone_of((uint32_t)-18000, "EST5EDT,M3.2.0,M11.1.0");
    int64_t first = next("30 1 * * *", zone, 1730600000);

    (void)state;
    assert_int_equal(first, 1730611800);
    assert_int_equal(next("30 1 * * *", zone, first), first + 3600);
    assert_int_equal(next("30 1 * * *", zone, first + 3600), first + 3600 + 86400);
    zone_free(zone);
}

static void test_rules_of_posix_are_understood(void **state)
{
    static const struct {
        const char *footer;
        int64_t at;
        int32_t offset;
    } cases[] = {
        {"<+0530>-5:30", SOME_DAY, 19800},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1720000000, 7200},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1711846799, 3600}, /* 2024-03-31T00:59:59Z */
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1711846800, 7200},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1704067200, 39600}, /* over the new year */
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1704067200, 0},
        {"X0Y,J60,J300", 1709251200, 0}, /* 2024-03-01T00:00Z, before two o'clock */
        {"X0Y,J60,J300", 1709258400, 3600},
        {"X0Y,59,300", 1709172000, 3600}, /* 2024-02-29T02:00Z */
        {"EET-2EEST,M3.4.4/50,M10.4.4/50", 1711749599, 7200},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct zone *zone = zone_of((uint32_t)cases[i].offset, cases[i].footer);
        int64_t until = 0;

        if (zone == NULL || zone_offset(zone, cases[i].at, &until) != cases[i].offset)
            fail_msg("%s at %lld", cases[i].footer, (long long)cases[i].at);
        assert_true(until > cases[i].at);
        zone_free(zone);
    }
}

static void test_what_is_no_zone_is_refused(void **state)
{
    static const char *const footers[] = {"5",
                                          "EST",
                                          "EST999",
                                          "EST5EDT,M3.2.0",
                                          "<+5",
                                          "EST5EDT,M13.1.0,M1.1.0",
                                          "EST5EDT,M3.2.0,M11.1.0x",
                                          "EST5EDT,J0,J1",
                                          "EST5:60"};
    struct zone *zone;
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(footers); i++) {
        zone = zone_of(0, footers[i]);
        if (zone != NULL)
            fail_msg("%s", footers[i]);
    }
    assert_null(zone_of(200000, ""));
    assert_int_equal(zone_parse("TZif", 4, &zone, &err), ERR_CORRUPT);
    assert_non_null(zone_name_fault("../shadow"));
    assert_non_null(zone_name_fault("/etc/localtime"));
    assert_non_null(zone_name_fault("a b"));
    assert_null(zone_name_fault("America/Argentina/Buenos_Aires"));
    assert_null(zone_name_fault("Etc/GMT+1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_mean_what_nomad_takes_them_for),
        cmocka_unit_test(test_days_that_end_with_sunday_have_it),
        cmocka_unit_test(test_what_is_no_line_is_refused),
        cmocka_unit_test(test_time_that_is_skipped_does_not_happen),
        cmocka_unit_test(test_time_that_comes_twice_happens_twice),
        cmocka_unit_test(test_rules_of_posix_are_understood),
        cmocka_unit_test(test_what_is_no_zone_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
