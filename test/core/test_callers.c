/* Callers who wait for a machine: up to their limit, not one more, each answered once. */
#include "core/life.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct place {
    struct life *life;
    size_t answers, gone, refused;
    struct err last;
};

/* --- a life of which nothing is stored and where nothing happens --- */

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    (void)ctx;
    (void)batch;
    (void)err;
    return 0;
}

static uint64_t next_sequence(void *ctx)
{
    (void)ctx;
    return 1;
}

static int each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb, journal_bad *bad,
                       void *cb_ctx, struct err *err)
{
    (void)ctx;
    (void)kind;
    (void)cb;
    (void)bad;
    (void)cb_ctx;
    (void)err;
    return 0;
}

static int each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                     struct err *err)
{
    (void)ctx;
    (void)prefix;
    (void)cb;
    (void)cb_ctx;
    (void)err;
    return 0;
}

static int each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    (void)ctx;
    (void)bad;
    (void)cb_ctx;
    (void)err;
    return 0;
}

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    (void)ctx;
    *ret_unix_ns = 1;
    return 1;
}

static uint64_t draw(void *ctx)
{
    (void)ctx;
    return 1;
}

static void perform(void *ctx, const struct effect *effect)
{
    (void)ctx;
    (void)effect;
}

static void sweep(void *ctx)
{
    (void)ctx;
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
                  .first_sequence = next_sequence,
                  .next_sequence = next_sequence,
                  .each_record = each_record,
                  .each_spec = each_spec,
                  .each_bad_spec = each_bad_spec},
        .now = now,
        .random = draw,
        .perform = perform,
        .sweep = sweep,
    };

    assert_non_null(place);
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

/* --- asking --- */

static void hear(void *ctx, int code, const struct err *err)
{
    struct place *place = ctx;

    place->answers++;
    place->gone += code == ERR_GONE;
    place->refused += code == ERR_AGAIN;
    place->last = *err;
}

static void ask(struct place *place)
{
    struct machine_id nobody = machine_id_make(MACHINE_ALLOC, "nobody");

    life_ask(place->life, &nobody, AE_DESTROY, NULL, hear, place);
}

static void test_one_more_than_may_wait_is_refused_at_once(void **state)
{
    struct place *place = *state;

    for (int i = 0; i < CALLERS_MAX; i++)
        ask(place);
    assert_int_equal(place->answers, 0);
    ask(place);
    assert_int_equal(place->refused, 1);
    assert_string_equal(place->last.text, "too many requests wait already: try again");
    (void)life_turn(place->life);
    assert_int_equal(place->gone, CALLERS_MAX);
    ask(place);
    (void)life_turn(place->life);
    assert_int_equal(place->gone, CALLERS_MAX + 1);
    assert_int_equal(place->answers, CALLERS_MAX + 2);
}

static void test_nobody_asks_when_a_turn_has_enough_to_do(void **state)
{
    struct place *place = *state;
    struct core *core = life_core(place->life);
    struct machine_id nobody = machine_id_make(MACHINE_ALLOC, "nobody");

    assert_int_equal(core_room(core), NODE_MACHINES_MAX * TURN_ASKED_A_MACHINE);
    while (core_room(core) > 1)
        core_tell(core, &nobody, AE_DESTROY, NULL);
    ask(place);
    assert_int_equal(core_room(core), 0);
    ask(place);
    assert_int_equal(place->refused, 1);
    (void)life_turn(place->life);
    assert_int_equal(place->gone, 1);
    assert_int_equal(core_room(core), NODE_MACHINES_MAX * TURN_ASKED_A_MACHINE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_more_than_may_wait_is_refused_at_once),
        TEST(test_nobody_asks_when_a_turn_has_enough_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
