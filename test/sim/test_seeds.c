/*
 * Seeded worlds: the daemon's turn, lanes, restore and tables against a simulated world with every
 * fault, crashes included; the invariants are looked at after every turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_WORLDS = 400, LARGE_WORLDS = 40 };

static struct sim_script script;
static struct sim_result result;

static void run(struct sim *sim, uint64_t seed, enum sim_profile profile)
{
    sim_draw(seed, profile, &script);
    sim_run(sim, &script, NULL, NULL, &result);
}

static void run_worlds(uint64_t count, enum sim_profile profile)
{
    struct sim *sim = sim_new();

    for (uint64_t seed = 1; seed <= count; seed++) {
        run(sim, seed, profile);
        if (result.outcome != SIM_FINE)
            fail_msg("seed %llu: %s; see: cairn sim -seed %llu%s", (unsigned long long)seed,
                     result.text, (unsigned long long)seed, profile == SIM_LARGE ? " -large" : "");
    }
    sim_free(sim);
}

static void test_small_worlds_break_no_invariant(void **state)
{
    (void)state;
    run_worlds(SMALL_WORLDS, SIM_SMALL);
}

static void test_large_worlds_break_no_invariant(void **state)
{
    (void)state;
    run_worlds(LARGE_WORLDS, SIM_LARGE);
}

static void test_the_same_seed_is_the_same_world(void **state)
{
    struct sim *sim = sim_new(), *other = sim_new();

    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        run(sim, seed, SIM_SMALL);
        uint64_t hash = result.hash, events = result.events;
        run(other, seed + 1000, SIM_SMALL); /* what ran before leaves no trace */
        run(other, seed, SIM_SMALL);
        assert_int_equal(result.hash, hash);
        assert_int_equal(result.events, events);
    }
    sim_free(sim);
    sim_free(other);
}

/* Worlds in which nothing happens would break no invariant either. */
static void test_worlds_are_eventful(void **state)
{
    struct sim *sim = sim_new();
    uint64_t incarnations = 0, events = 0, faults = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        run(sim, seed, SIM_SMALL);
        incarnations += result.incarnations;
        events += result.events;
        for (int i = 0; i < SIM_FAULT_COUNT; i++)
            faults += result.faults[i] > 0;
    }
    assert_true(incarnations > 200);
    assert_true(events > 5000);
    assert_true(faults > 100);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_worlds_break_no_invariant),
        cmocka_unit_test(test_large_worlds_break_no_invariant),
        cmocka_unit_test(test_the_same_seed_is_the_same_world),
        cmocka_unit_test(test_worlds_are_eventful),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
