/*
 * Seeded worlds with jobs: the stand-alone control plane itself registers, places, stops and
 * collects in them, its daemon dies at any point, and commits fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/laboratory.h"
#include "sim/sim.h"

enum { WORLDS = 150 };

static struct sim_script script;
static struct sim_result result;

static void run(struct sim *sim, uint64_t seed)
{
    sim_set_plane(sim, &laboratory_plane);
    sim_draw(seed, SIM_CONTROL, &script);
    sim_run(sim, &script, NULL, NULL, &result);
}

static void test_worlds_with_jobs_break_no_invariant(void **state)
{
    struct sim *sim = sim_new();
    uint64_t incarnations = 0, events = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        run(sim, seed);
        if (result.outcome != SIM_FINE)
            fail_msg("seed %llu: %s; see: cairn sim -seed %llu -control", (unsigned long long)seed,
                     result.text, (unsigned long long)seed);
        incarnations += result.incarnations;
        events += result.events;
    }
    assert_true(incarnations > 2 * WORLDS);
    assert_true(events > 100 * WORLDS);
    sim_free(sim);
}

static void test_the_same_seed_is_the_same_world(void **state)
{
    struct sim *sim = sim_new(), *other = sim_new();

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run(sim, seed);
        uint64_t hash = result.hash;
        run(other, seed + 1000); /* what ran before leaves no trace */
        run(other, seed);
        assert_int_equal(result.hash, hash);
    }
    sim_free(sim);
    sim_free(other);
}

/* A world with jobs, as the text of a script, is the same world. */
static void test_jobs_are_read_as_they_are_printed(void **state)
{
    static const char text[] = "alloc a\ntask a/main\nalloc b\ntask b/main\n"
                               "kept 3\njob j a b count 2\njob k b count 0\n"
                               "at 5 register j 7\nat 6 count j 3\nat 7 replace j 1\n"
                               "at 8 gc\nat 9 torn_job j\nat 10 deregister j\nat 11 purge j\n"
                               "always live j 2\nexpect kept k 0\nexpect job j -1\n";
    struct err err;

    (void)state;
    assert_int_equal(sim_script_read(text, &script, &err), 0);
    assert_int_equal(script.jobs_count, 2);
    assert_int_equal(script.jobs[0].groups, 3);
    assert_int_equal(script.jobs[1].groups, 2);
    assert_int_equal(script.steps[0].number, 7);
    assert_int_equal(script.steps[0].whom.member, 0);
    assert_int_equal(script.expects[2].number, -1);
    assert_int_equal(sim_script_read("job j nobody\n", &script, &err), ERR_INVALID);
    assert_int_equal(sim_script_read("alloc a\njob j a count 99\n", &script, &err), ERR_INVALID);
    assert_int_equal(sim_script_read("alloc a\nalloc b batch\njob j a b\n", &script, &err),
                     ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds_with_jobs_break_no_invariant),
        cmocka_unit_test(test_the_same_seed_is_the_same_world),
        cmocka_unit_test(test_jobs_are_read_as_they_are_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
