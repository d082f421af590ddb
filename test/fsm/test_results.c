/* Hook results: the packed list that a later start depends on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fsm/results.h"

#include <string.h>

static uint8_t bytes[RESULTS_BYTES_MAX];

static struct results empty(uint32_t size)
{
    memset(bytes, 0, sizeof(bytes));
    return (struct results){bytes, 0, size};
}

static void set(struct results *results, uint8_t hook, const char *key, const char *value)
{
    assert_int_equal(results_set(results, hook, RESULT_ENV, key, value, (uint32_t)strlen(value)),
                     0);
}

static void test_results_are_the_same_bytes_in_whatever_order_they_were_set(void **state)
{
    static uint8_t first[RESULTS_BYTES_MAX];
    struct results results = empty(sizeof(bytes));

    (void)state;
    set(&results, 2, "B", "2");
    set(&results, 1, "A", "old value");
    set(&results, 1, "A", "1");
    set(&results, 1, "AA", "3");
    memcpy(first, bytes, sizeof(bytes));
    uint32_t used = results.used;
    results = empty(sizeof(bytes));
    set(&results, 1, "AA", "3");
    set(&results, 1, "A", "1");
    set(&results, 2, "B", "2");
    assert_int_equal(results.used, used);
    assert_memory_equal(bytes, first, sizeof(bytes));
    assert_true(results_valid(bytes, used));
}

static void test_results_set_refuses_what_does_not_fit_and_keeps_what_is_there(void **state)
{
    struct results results = empty(24);

    (void)state;
    set(&results, 1, "A", "1");
    assert_int_equal(results_set(&results, 1, RESULT_ENV, "B", "0123456789abcdef", 16), ERR_LIMIT);
    assert_int_equal(results.used, 10);
    assert_true(results_valid(bytes, results.used));
}

static void test_results_take_replaces_all_of_one_hook_only(void **state)
{
    uint8_t other[64] = {0};
    struct results fresh = {other, 0, sizeof(other)}, results = empty(sizeof(bytes));
    struct result result;
    uint32_t at = 0;

    (void)state;
    set(&results, 1, "OLD", "x");
    set(&results, 2, "KEPT", "y");
    assert_int_equal(results_set(&fresh, 1, RESULT_MOUNT, "/a", "/b\tro\t", 6), 0);
    assert_int_equal(results_take(&results, 1, other, fresh.used), 0);
    assert_true(results_next(bytes, results.used, &at, &result));
    assert_string_equal(result.key, "/a");
    assert_true(results_next(bytes, results.used, &at, &result));
    assert_string_equal(result.key, "KEPT");
    assert_false(results_next(bytes, results.used, &at, &result));
}

static void test_results_valid_finds_every_cut_and_disorder(void **state)
{
    struct results results = empty(sizeof(bytes));

    (void)state;
    set(&results, 1, "A", "1");
    set(&results, 2, "B", "2");
    for (uint32_t cut = 1; cut < results.used; cut++) {
        if (cut != 10)
            assert_false(results_valid(bytes, cut));
    }
    bytes[0] = 3; /* behind its successor */
    assert_false(results_valid(bytes, results.used));
    bytes[0] = 1;
    bytes[1] = RESULT_KIND_COUNT;
    assert_false(results_valid(bytes, results.used));
}

static void test_results_have_room_for_what_takes_the_place_of_older_ones(void **state)
{
    const uint32_t size = 64;
    struct results results = empty(size);

    (void)state;
    assert_true(results_have_room(&results, 1, size));
    assert_false(results_have_room(&results, 1, size + 1));
    set(&results, 1, "A", "0123456789");
    set(&results, 2, "B", "0123456789");
    uint32_t one = results.used / 2;
    assert_true(results_have_room(&results, 1, size - one));
    assert_false(results_have_room(&results, 1, size - one + 1));
    assert_true(results_have_room(&results, 2, size - one));
    assert_false(results_have_room(&results, 3, size - 2 * one + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_the_same_bytes_in_whatever_order_they_were_set),
        cmocka_unit_test(test_results_set_refuses_what_does_not_fit_and_keeps_what_is_there),
        cmocka_unit_test(test_results_take_replaces_all_of_one_hook_only),
        cmocka_unit_test(test_results_have_room_for_what_takes_the_place_of_older_ones),
        cmocka_unit_test(test_results_valid_finds_every_cut_and_disorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
