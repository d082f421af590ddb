/* Node time over restarts, reboots and steps of the wall clock (I-36). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "core/clock.h"
#include "fsm/limits.h"

enum { SECOND = 1000 };

static const int64_t second_ns = 1000000000;
static const int64_t noon_ns = 1700000000 * (int64_t)1000000000;

/* The node's time SINCE_BOOT_MS after the boot, as the next incarnation has it. */
static uint64_t time_of(uint64_t offset_ms, bool rebooted, struct clock_last last,
                        uint64_t since_boot_ms, int64_t unix_ns)
{
    return since_boot_ms + clock_continue(offset_ms, rebooted, &last, since_boot_ms, unix_ns);
}

static void test_clock_of_an_empty_journal_is_the_time_since_boot(void **state)
{
    (void)state;
    assert_int_equal(time_of(0, false, (struct clock_last){0}, 77, noon_ns), 77);
    assert_int_equal(time_of(0, true, (struct clock_last){0}, 77, noon_ns), 77);
}

static void test_clock_within_a_boot_is_moved_by_nothing(void **state)
{
    struct clock_last last = {.now_ms = 1500 * SECOND, .unix_ns = noon_ns};

    (void)state;
    /* An hour away, most of it asleep, which the time since boot counts. */
    assert_int_equal(time_of(500 * SECOND, false, last, 4600 * SECOND, noon_ns + 3600 * second_ns),
                     5100 * SECOND);
    /* Somebody has set the wall clock, forward and back. */
    assert_int_equal(time_of(500 * SECOND, false, last, 1001 * SECOND, noon_ns * 2), 1501 * SECOND);
    assert_int_equal(time_of(500 * SECOND, false, last, 1001 * SECOND, 0), 1501 * SECOND);
}

static void test_clock_after_a_reboot_goes_on_by_the_wall_clock(void **state)
{
    struct clock_last last = {.now_ms = 9000 * SECOND, .unix_ns = noon_ns};

    (void)state;
    assert_int_equal(time_of(0, true, last, 40 * SECOND, noon_ns + 90 * second_ns), 9090 * SECOND);
    /* A host that was up for longer than the node's time has come. */
    assert_int_equal(time_of(0, true, last, 50000 * SECOND, noon_ns + 90 * second_ns),
                     9090 * SECOND);
}

static void test_clock_never_goes_back(void **state)
{
    struct clock_last last = {.now_ms = 9000 * SECOND, .unix_ns = noon_ns};

    (void)state;
    /* No battery: the wall clock begins anew with each boot. */
    assert_int_equal(time_of(0, true, last, 40 * SECOND, 0), 9000 * SECOND);
    /* An offset that was lost, or is of another boot. */
    assert_int_equal(time_of(0, false, last, 40 * SECOND, noon_ns + second_ns), 9000 * SECOND);
    /* From there it goes on by what the kernel counts. */
    uint64_t offset_ms = clock_continue(0, true, &last, 40 * SECOND, 0);
    last.now_ms = 9010 * SECOND;
    assert_int_equal(time_of(offset_ms, false, last, 55 * SECOND, noon_ns), 9015 * SECOND);
}

/* What is damaged may say anything: node time stays where counting can go on from. */
static void test_clock_believes_no_odd_number(void **state)
{
    struct clock_last last = {.now_ms = 9000 * SECOND, .unix_ns = noon_ns};
    const uint64_t odd[] = {1ull << 63, UINT64_MAX / 2, 1ull << 53};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        assert_int_equal(time_of(odd[i], false, last, 9001 * SECOND, noon_ns), 9001 * SECOND);
    /* One that is less than nothing is no odd one. */
    assert_int_equal(time_of(0 - (uint64_t)SECOND, false, last, 9010 * SECOND, noon_ns),
                     9009 * SECOND);
    last.unix_ns = INT64_MIN;
    assert_true(time_of(0, true, last, 40 * SECOND, INT64_MAX) < NUMBER_BEGIN_MAX);
    last.unix_ns = INT64_MAX;
    assert_int_equal(time_of(0, true, last, 40 * SECOND, INT64_MIN), 9000 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_of_an_empty_journal_is_the_time_since_boot),
        cmocka_unit_test(test_clock_within_a_boot_is_moved_by_nothing),
        cmocka_unit_test(test_clock_after_a_reboot_goes_on_by_the_wall_clock),
        cmocka_unit_test(test_clock_never_goes_back),
        cmocka_unit_test(test_clock_believes_no_odd_number),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
