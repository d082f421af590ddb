/* Callers who wait for a machine: up to their limit, not one more, each answered once. */
#include "test/core/empty_life.h"

#include <string.h>

/* --- asking --- */

static struct {
    size_t answers, gone, refused;
    struct err last;
} heard;

static int begin(void **state)
{
    memset(&heard, 0, sizeof(heard));
    return empty_begin(state);
}

static void hear(void *ctx, int code, const struct err *err)
{
    (void)ctx; /* they are all ours */
    heard.answers++;
    heard.gone += code == ERR_GONE;
    heard.refused += code == ERR_AGAIN;
    heard.last = *err;
}

static void ask(struct empty_life *empty)
{
    struct machine_id nobody = machine_id_make(MACHINE_ALLOC, "nobody");

    life_ask(empty->life, &nobody, AE_DESTROY, NULL, hear, NULL);
}

static void test_one_more_than_may_wait_is_refused_at_once(void **state)
{
    struct empty_life *empty = *state;

    for (int i = 0; i < CALLERS_MAX; i++)
        ask(empty);
    assert_int_equal(heard.answers, 0);
    ask(empty);
    assert_int_equal(heard.refused, 1);
    assert_string_equal(heard.last.text, "too many requests wait already: try again");
    (void)life_turn(empty->life);
    assert_int_equal(heard.gone, CALLERS_MAX);
    ask(empty);
    (void)life_turn(empty->life);
    assert_int_equal(heard.gone, CALLERS_MAX + 1);
    assert_int_equal(heard.answers, CALLERS_MAX + 2);
}

static void test_nobody_asks_when_a_turn_has_enough_to_do(void **state)
{
    struct empty_life *empty = *state;
    struct core *core = life_core(empty->life);
    struct machine_id nobody = machine_id_make(MACHINE_ALLOC, "nobody");

    assert_int_equal(core_room(core), NODE_MACHINES_MAX * TURN_ASKED_A_MACHINE);
    while (core_room(core) > 1)
        core_tell(core, &nobody, AE_DESTROY, NULL);
    ask(empty);
    assert_int_equal(core_room(core), 0);
    ask(empty);
    assert_int_equal(heard.refused, 1);
    (void)life_turn(empty->life);
    assert_int_equal(heard.gone, 1);
    assert_int_equal(core_room(core), NODE_MACHINES_MAX * TURN_ASKED_A_MACHINE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, empty_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_more_than_may_wait_is_refused_at_once),
        TEST(test_nobody_asks_when_a_turn_has_enough_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
