/*
 * What a life tries again by itself, in a world of one timer that fires once: a commit that failed,
 * and a sweep that did, one beside the other; and what waits for the sweep meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/life.h"

#include <stdlib.h>

struct place {
    struct life *life;
    uint64_t now_ms;
    uint64_t armed_ms; /* 0: the timer does not run */
    unsigned sweeps, commits, starts;
    bool full; /* no commit can be made */
};

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct place *place = ctx;

    (void)batch;
    if (place->full)
        return err_set(err, ERR_FULL, "no space left");
    place->commits++;
    return 0;
}

static uint64_t sequence(void *ctx)
{
    (void)ctx;
    return 1;
}

static int each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb, journal_bad *bad,
                       void *cb_ctx, struct err *err)
{
    (void)ctx, (void)kind, (void)cb, (void)bad, (void)cb_ctx, (void)err;
    return 0;
}

static int each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                     struct err *err)
{
    (void)ctx, (void)prefix, (void)cb, (void)cb_ctx, (void)err;
    return 0;
}

static int each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)ctx, (void)bad, (void)cb_ctx, (void)err;
    return 0;
}

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    *ret_unix_ns = 1;
    return ((struct place *)ctx)->now_ms;
}

static uint64_t draw(void *ctx)
{
    (void)ctx;
    return 1;
}

static void arm(void *ctx, uint64_t at_ms)
{
    ((struct place *)ctx)->armed_ms = at_ms;
}

static void perform(void *ctx, const struct effect *effect)
{
    ((struct place *)ctx)->starts +=
        effect->id.kind == MACHINE_TASK && effect->kind == TX_DRIVER_START;
}

static void sweep(void *ctx)
{
    ((struct place *)ctx)->sweeps++;
}

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    struct life_start how = {.authority = true};
    struct err err = {0};
    struct life_world world = {
        .ctx = place,
        .store = {.ctx = place,
                  .commit = commit,
                  .first_sequence = sequence,
                  .next_sequence = sequence,
                  .each_record = each_record,
                  .each_spec = each_spec,
                  .each_bad_spec = each_bad_spec},
        .now = now,
        .random = draw,
        .arm = arm,
        .perform = perform,
        .sweep = sweep,
    };

    assert_non_null(place);
    place->now_ms = 1000;
    place->life = life_new(&world);
    *state = place;
    return life_start(place->life, &how, &err);
}

static int tear_down(void **state)
{
    struct place *place = *state;

    life_free(place->life);
    free(place);
    return 0;
}

/* The timer fires, if it runs: then it runs no more until it is armed. */
static bool wait_for_timer(struct place *place)
{
    if (place->armed_ms == 0)
        return false;
    place->now_ms = place->armed_ms;
    place->armed_ms = 0;
    (void)life_turn(place->life);
    return true;
}

static void test_commit_is_tried_again_beside_a_sweep_that_comes_first(void **state)
{
    struct place *place = *state;

    (void)life_turn(place->life);
    assert_int_equal(place->sweeps, 1);
    life_swept(place->life, false);
    assert_true(place->armed_ms > place->now_ms);

    place->now_ms = place->armed_ms - 500; /* the commit's second try is due behind the sweep's */
    place->full = true;
    core_meta(life_core(place->life), "node", "x", 1);
    (void)life_turn(place->life);
    assert_non_null(life_degraded(place->life));

    assert_true(wait_for_timer(place));
    assert_int_equal(place->sweeps, 2);
    assert_non_null(life_degraded(place->life)); /* nothing has been stored yet */
    place->full = false;
    assert_true(wait_for_timer(place));
    assert_int_equal(place->commits, 1);
    assert_null(life_degraded(place->life));
}

static void test_sweep_is_made_again_beside_a_commit_that_fails(void **state)
{
    struct place *place = *state;

    (void)life_turn(place->life);
    life_swept(place->life, false);
    place->full = true;
    core_meta(life_core(place->life), "node", "x", 1);
    (void)life_turn(place->life);
    for (int i = 0; i < 20 && place->sweeps == 1; i++)
        assert_true(wait_for_timer(place));
    assert_int_equal(place->sweeps, 2);
    assert_int_equal(place->commits, 0);
    life_swept(place->life, true);
    place->full = false;
    for (int i = 0; i < 20 && place->commits == 0; i++)
        assert_true(wait_for_timer(place));
    assert_int_equal(place->commits, 1);
}

/* One thing that cannot be ended must not keep all others from running for ever. */
static void test_sweep_that_fails_keeps_no_task_from_starting(void **state)
{
    const struct task_define define = {.may_start = 1, .driver = "mock"};
    const struct machine_id id = machine_id_make(MACHINE_TASK, "a/web");
    struct hook_outcome outcome = {.hook = TASK_HOOK_COUNT};
    struct place *place = *state;
    struct core *core = life_core(place->life);

    core_tell(core, &id, TE_DEFINE, &define);
    core_tell(core, &id, TE_START, NULL);
    (void)life_turn(place->life);
    core_done(core, &id, LANE_HOOK, TE_HOOK_DONE, &outcome);
    (void)life_turn(place->life);
    assert_int_equal(core_task(core, "a", "web")->machine.state, T_STARTING);
    assert_int_equal(place->sweeps, 1);
    assert_int_equal(place->starts, 0);
    life_swept(place->life, false);
    assert_int_equal(place->starts, 1);

    assert_true(wait_for_timer(place));
    assert_int_equal(place->sweeps, 2); /* that is tried again */
    life_swept(place->life, true);
    assert_int_equal(place->starts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commit_is_tried_again_beside_a_sweep_that_comes_first,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sweep_is_made_again_beside_a_commit_that_fails, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_sweep_that_fails_keeps_no_task_from_starting, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
