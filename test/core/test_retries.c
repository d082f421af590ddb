/*
 * What a life tries again by itself: a commit that failed, and a sweep that did, one beside the
 * other; and what waits for the sweep meanwhile.
 */
#include "test/core/empty_life.h"

/* The timer fires, if it runs: then it runs no more until it is armed. */
static bool wait_for_timer(struct empty_life *empty)
{
    if (empty->armed_ms == 0)
        return false;
    empty->now_ms = empty->armed_ms;
    empty->armed_ms = 0;
    (void)life_turn(empty->life);
    return true;
}

static void test_commit_is_tried_again_beside_a_sweep_that_comes_first(void **state)
{
    struct empty_life *empty = *state;

    (void)life_turn(empty->life);
    assert_int_equal(empty->sweeps, 1);
    life_swept(empty->life, false);
    assert_true(empty->armed_ms > empty->now_ms);

    empty->now_ms = empty->armed_ms - 500; /* the commit's second try is due behind the sweep's */
    empty->full = true;
    core_meta(life_core(empty->life), "node", "x", 1);
    (void)life_turn(empty->life);
    assert_non_null(life_degraded(empty->life));

    assert_true(wait_for_timer(empty));
    assert_int_equal(empty->sweeps, 2);
    assert_non_null(life_degraded(empty->life)); /* nothing has been stored yet */
    empty->full = false;
    assert_true(wait_for_timer(empty));
    assert_int_equal(empty->commits, 1);
    assert_null(life_degraded(empty->life));
}

static void test_sweep_is_made_again_beside_a_commit_that_fails(void **state)
{
    struct empty_life *empty = *state;

    (void)life_turn(empty->life);
    life_swept(empty->life, false);
    empty->full = true;
    core_meta(life_core(empty->life), "node", "x", 1);
    (void)life_turn(empty->life);
    for (int i = 0; i < 20 && empty->sweeps == 1; i++)
        assert_true(wait_for_timer(empty));
    assert_int_equal(empty->sweeps, 2);
    assert_int_equal(empty->commits, 0);
    life_swept(empty->life, true);
    empty->full = false;
    for (int i = 0; i < 20 && empty->commits == 0; i++)
        assert_true(wait_for_timer(empty));
    assert_int_equal(empty->commits, 1);
}

/* One thing that cannot be ended must not keep all others from running for ever. */
static void test_sweep_that_fails_keeps_no_task_from_starting(void **state)
{
    const struct task_define define = {.may_start = 1, .driver = "mock"};
    const struct machine_id id = machine_id_make(MACHINE_TASK, "a/web");
    struct hook_outcome outcome = {.hook = HOOK_NONE};
    struct empty_life *empty = *state;
    struct core *core = life_core(empty->life);

    core_tell(core, &id, TE_DEFINE, &define);
    core_tell(core, &id, TE_START, NULL);
    (void)life_turn(empty->life);
    core_done(core, &id, LANE_HOOK, TE_HOOK_DONE, &outcome);
    (void)life_turn(empty->life);
    assert_int_equal(core_task(core, "a", "web")->machine.state, T_STARTING);
    assert_int_equal(empty->sweeps, 1);
    assert_int_equal(empty->starts, 0);
    life_swept(empty->life, false);
    assert_int_equal(empty->starts, 1);

    assert_true(wait_for_timer(empty));
    assert_int_equal(empty->sweeps, 2); /* that is tried again */
    life_swept(empty->life, true);
    assert_int_equal(empty->starts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY_LIFE_TEST(test_commit_is_tried_again_beside_a_sweep_that_comes_first),
        EMPTY_LIFE_TEST(test_sweep_is_made_again_beside_a_commit_that_fails),
        EMPTY_LIFE_TEST(test_sweep_that_fails_keeps_no_task_from_starting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
