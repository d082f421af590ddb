/* Coverage: what is counted as taken, missing and excused; no reason outlives its row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cover.h"

#include <string.h>

static void count_lines(void *ctx, const char *text)
{
    unsigned *lines = ctx;

    (*lines)++;
    assert_non_null(strstr(text, "-> "));
}

static void test_cover_every_reason_is_about_a_row(void **state)
{
    const char *stale = sim_cover_stale();

    (void)state;
    if (stale != NULL)
        fail_msg("no row is left for: %s", stale);
}

static void test_cover_nothing_taken_lists_every_row(void **state)
{
    struct sim_tally tally = {0};
    unsigned lines = 0, rows = 0;

    (void)state;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        rows += fsm_definition((enum machine_kind)kind)->rows_count;
    struct sim_cover cover = sim_cover_look(&tally, count_lines, &lines);
    assert_int_equal(cover.rows, rows);
    assert_int_equal(cover.taken, 0);
    assert_int_equal(lines, rows);
    assert_true(cover.excused > 0);
    assert_true(cover.excused < rows / 4); /* reasons are the exception */
}

static void test_cover_everything_taken_lists_only_reasons_that_do_not_hold(void **state)
{
    struct sim_tally tally;
    unsigned lines = 0;

    (void)state;
    memset(&tally, 0xFF, sizeof(tally));
    struct sim_cover cover = sim_cover_look(&tally, count_lines, &lines);
    assert_int_equal(cover.taken, cover.rows);
    assert_int_equal(cover.excused, 0);
    assert_int_equal(lines, cover.unlikely);
    assert_true(cover.unlikely > 0);
}

static void test_cover_a_world_takes_some_rows(void **state)
{
    struct sim *sim = sim_new();
    struct sim_tally tally = {0};
    struct sim_script script;
    struct sim_result result;

    (void)state;
    sim_draw(1, SIM_SMALL, &script);
    sim_run(sim, &script, NULL, NULL, &result);
    sim_count(&tally, &result);
    struct sim_cover cover = sim_cover_look(&tally, NULL, NULL);
    assert_true(cover.taken > 10);
    assert_true(cover.taken < cover.rows);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover_every_reason_is_about_a_row),
        cmocka_unit_test(test_cover_nothing_taken_lists_every_row),
        cmocka_unit_test(test_cover_everything_taken_lists_only_reasons_that_do_not_hold),
        cmocka_unit_test(test_cover_a_world_takes_some_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
