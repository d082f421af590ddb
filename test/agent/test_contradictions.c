/*
 * Stories that contradict themselves: refused with a sentence that names the line, or told without
 * blaming an invariant, which holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/laboratory.h"
#include "base/base.h"
#include "base/rng.h"
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>

enum { STORIES = 6000, DRAWN = 300, TEXT_BYTES = 64 * 1024 };

static struct sim_script script, again;
static struct sim_result result;
static char text[TEXT_BYTES], printed[TEXT_BYTES];

/* --- by name --- */

static const struct {
    const char *story, *says; /* NULL: it is told */
} cases[] = {
    {"alloc a\ntask a/x\nalloc a\n", "line 3: alloc \"a\" is there already, of line 1"},
    {"alloc a\ntask a/x\ntask a/x\n", "line 3: task \"x\" is there already, of line 2"},
    {"plugin p\nplugin p\n", "line 2: plugin \"p\" is there already"},
    {"alloc a/b\n", "line 1: \"a/b\" is no name"},
    {"alloc ..\n", "line 1: \"..\" is no name"},
    {"alloc a\ntask a/\n", "line 2: \"\" is no name"},
    {"alloc a\n", "line 1: alloc a has no task"},
    {"alloc a\ntask a/first lifecycle prestart\ntask a/x\n",
     "line 2: the end of task a/first is waited for"},
    {"alloc a\ntask a/first lifecycle prestart\ntask a/x\nat 0 assign a\nat 900 exit a/first 0\n",
     NULL},
    {"alloc a\ntask a/first lifecycle prestart runs 3600001\ntask a/x\n",
     "line 2: the end of task a/first is waited for, and it runs for 3600001"},
    {"alloc a\ntask a/first lifecycle prestart runs 3600000\ntask a/x\nat 0 assign a\n", NULL},
    {"alloc a\ntask a/x runs 1 interval 0 backoff 0 attempts 5\n",
     "line 2: with task a/x there are up to 30001 starts"},
    {"alloc a\ntask a/x exits 999\n", "line 2: 999 is not from 0 to 255"},
    {"alloc a\ntask a/x hooks 40000 0 0 0 0\n", "line 2: 40000 is not from 0 to 32767"},
    {"alloc a\ntask a/x\nat 0 boot 99999999\n", "line 3: 99999999 is not from 0 to 3600000"},
    {"alloc a\ntask a/x\nat 0 sleep -5\n", "line 3: -5 is not from 0 to 3600000"},
    {"mode server\nalloc a\ntask a/x\njob j a\n", "line 4: job j is for a node that stands alone"},
    {"alloc a\ntask a/x\njob j a\nat 0 assign a\n", "line 4: assign a: there are jobs"},
    {"alloc a\ntask a/x\nalloc b\ntask b/x\njob j a\n",
     "line 3: there are jobs, and alloc b is of"},
    {"plugin p\nalloc a\ntask a/x\nclaim a/d plugin p disk 0\njob j a\n",
     "line 2: alloc a is of a"},
    {"alloc a\ntask a/x\nat 70000 crash\nexpect daemons 2\n",
     "line 3: crash is at 70000, and the world is healed from 60000 on"},
    {"alloc a\ntask a/x\nexpect state task a/x DEAD\nalways state task a/x RUNNING\n",
     "line 4: \"always state task a/x RUNNING\" cannot be beside \"expect state task a/x DEAD\" of "
     "line 3"},
    {"alloc a\ntask a/x\nexpect starts a/x at_most 1\nexpect starts a/x at_least 2\n", "line 4: "},
    {"alloc a\ntask a/x\nexpect starts a/x 1\nexpect starts a/x at_least 2\n", "line 4: "},
    {"alloc a\ntask a/x\nexpect first starts a/x then ends a/x\n"
     "expect first ends a/x then starts a/x\n",
     "line 4: "},
    {"alloc a\ntask a/x\nat 0 assign a\nexpect starts a/x at_most 1\nexpect starts a/x 1\n", NULL},
};

static void test_contradictions_are_refused_by_their_line(void **state)
{
    struct sim *sim = sim_new();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        int code = sim_script_read(cases[i].story, &script, &err);
        if (cases[i].says == NULL) {
            if (code != 0)
                fail_msg("%s", err.text);
            sim_run(sim, &script, NULL, NULL, &result);
            assert_string_equal(result.text, "");
        } else {
            assert_int_equal(code, ERR_INVALID);
            if (!text_starts_with(err.text, cases[i].says))
                fail_msg("says \"%s\", not \"%s\"", err.text, cases[i].says);
        }
    }
    sim_free(sim);
}

/* --- by chance --- */

static uint64_t below(struct rng *rng, uint64_t bound)
{
    return rng_next(rng) % bound;
}

static const char *one_of(struct rng *rng, const char *const *words, size_t count)
{
    return words[below(rng, count)];
}

/* What a place for a number may get: what is meant, a limit, one past it, nonsense. */
static int64_t number(struct rng *rng)
{
    static const int64_t odd[] = {0,        1,        -1,        2,        255,
                                  256,      65535,    65536,     3600000,  3600001,
                                  86400000, 1u << 31, INT64_MAX, INT64_MIN};

    return below(rng, 16) == 0 ? odd[below(rng, COUNT_OF(odd))] : (int64_t)below(rng, 255);
}

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...)
{
    char line[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* short */
    va_end(arguments);
    assert_true(text_append(text, sizeof(text), line));
}

#define ONE_OF(rng, ...)                                                                           \
    one_of(rng, (const char *const[]){__VA_ARGS__},                                                \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Each draw is a statement of its own: compilers differ in the order of arguments. */

static void add_settings(struct rng *rng)
{
    if (below(rng, 3) == 0)
        add("mode %s\n", ONE_OF(rng, "server", "alone"));
    if (below(rng, 3) == 0) {
        const char *what = ONE_OF(rng, "heal", "log", "kept", "down", "rate ERR");
        add("%s %lld\n", what, (long long)number(rng));
    }
}

static void add_task(struct rng *rng, unsigned which)
{
    const char *alloc = ONE_OF(rng, "a", "b"), *name = ONE_OF(rng, "y", "z");
    const char *what =
        ONE_OF(rng, "runs", "dies", "exits", "attempts", "interval", "backoff", "kill");
    int64_t much = number(rng);

    add("task %s/%s%u %s %lld %s\n", alloc, name, which, what, (long long)much,
        ONE_OF(rng, "", "lifecycle prestart", "lifecycle poststop", "sidecar", "leader",
               "lifecycle poststart sidecar", "forks", "ignores_term"));
}

static void add_things(struct rng *rng)
{
    add_settings(rng);
    bool plugin = below(rng, 2) == 0, job = below(rng, 6) == 0;
    if (plugin)
        add("plugin p%s\n", ONE_OF(rng, "", " stages"));
    add("alloc a%s\ntask a/x\n", ONE_OF(rng, "", "", " batch"));
    add("alloc b%s\ntask b/x\n", ONE_OF(rng, "", "", " after a"));
    if (below(rng, 10) == 0)
        add("%s\n", ONE_OF(rng, "alloc a", "task a/x", "plugin p", "alloc c", "task c/x"));
    for (uint64_t n = below(rng, 4); n > 0; n--)
        add_task(rng, (unsigned)n);
    if (plugin && !job) {
        const char *alloc = ONE_OF(rng, "a", "b");
        add("claim %s/d plugin p disk %lld\n", alloc, (long long)below(rng, 4));
    }
    if (job)
        add("job j %s\n", ONE_OF(rng, "a b", "a b count 2", "a", ""));
}

static const char *any_happening(struct rng *rng)
{
    return ONE_OF(rng, "restart a", "restart_task a/x", "signal b/x", "crash", "term", "boot",
                  "shim a/x", "exit a/x", "record_lost a/x", "torn_cut task a/x",
                  "torn_zero alloc a", "dir_lost a", "sleep", "jump", "disk", "gc", "sweep", "copy",
                  "older");
}

/* One that this story may know of. */
static const char *own_happening(struct rng *rng)
{
    if (strstr(text, "job j") != NULL)
        return ONE_OF(rng, "register j", "count j", "purge j", "deregister j", "replace j");
    if (strstr(text, "claim a/d") != NULL)
        return ONE_OF(rng, "busy a/d", "unmount a/d", "detach a/d", "remove p", "install p");
    return ONE_OF(rng, "stop a", "destroy a", "assign a", "update a", "stop b", "plug p");
}

static void add_happenings(struct rng *rng)
{
    if (strstr(text, "job j") == NULL || below(rng, 4) == 0)
        add("at 0 assign a\nat %lld assign b\n", (long long)number(rng));
    for (uint64_t n = below(rng, 7); n > 0; n--) {
        uint64_t at_ms = (uint64_t)number(rng) * 10;
        const char *what = any_happening(rng);
        add("at %lld %s %lld\n", (long long)at_ms, what, (long long)number(rng));
    }
    for (uint64_t n = below(rng, 3); n > 0; n--) {
        uint64_t at_ms = (uint64_t)number(rng) * 10;
        const char *what = own_happening(rng);
        add("at %lld %s %lld\n", (long long)at_ms, what, (long long)below(rng, 5));
    }
    if (below(rng, 2) == 0) {
        const char *state = ONE_OF(rng, "RUNNING", "DEAD", "BACKOFF");
        const char *moment = ONE_OF(rng, "before", "after", "then");
        add("when task a/x %s %s %s 10\n", state, moment, ONE_OF(rng, "crash", "stop a", "boot"));
    }
    for (uint64_t n = below(rng, 4); n > 0; n--) {
        const char *how = ONE_OF(rng, "expect", "always");
        add("%s %s\n", how,
            ONE_OF(rng, "state task a/x DEAD", "state task a/x RUNNING", "starts a/x 1",
                   "starts a/x at_least 2", "alive a/x yes", "alive a/x no", "status a failed"));
    }
}

/* Whatever is left is told to its end: only what the story itself expects may not come. */
static void test_no_story_blames_what_holds(void **state)
{
    struct sim *sim = sim_new();
    unsigned told = 0, refused = 0;

    (void)state;
    sim_set_plane(sim, &laboratory_plane);
    for (uint64_t seed = 1; seed <= STORIES; seed++) {
        struct rng rng = rng_init(seed);
        struct err err = {0};
        text[0] = '\0';
        add_things(&rng);
        add_happenings(&rng);
        if (sim_script_read(text, &script, &err) < 0) {
            refused++;
            if (!text_starts_with(err.text, "line "))
                fail_msg("\"%s\" names no line:\n%s", err.text, text);
            continue;
        }
        told++;
        sim_run(sim, &script, NULL, NULL, &result);
        if (result.outcome != SIM_FINE && !(result.outcome == SIM_SAFETY && result.invariant == 0))
            fail_msg("story %llu: %s:\n%s", (unsigned long long)seed, result.text, text);
    }
    assert_true(told > STORIES / 20);
    assert_true(refused > STORIES / 20);
    sim_free(sim);
}

/* --- what is drawn contradicts nothing --- */

static void take(void *ctx, const char *part)
{
    assert_true(text_append(ctx, TEXT_BYTES, part));
}

static void test_drawn_worlds_are_read_as_they_are_printed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= DRAWN; seed++) {
        for (int profile = SIM_SMALL; profile <= SIM_CONTROL; profile++) {
            struct err err = {0};
            text[0] = printed[0] = '\0';
            sim_draw(seed, (enum sim_profile)profile, &script);
            sim_script_print(&script, take, text);
            if (sim_script_read(text, &again, &err) < 0)
                fail_msg("seed %llu: %s:\n%s", (unsigned long long)seed, err.text, text);
            sim_script_print(&again, take, printed);
            assert_string_equal(printed, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contradictions_are_refused_by_their_line),
        cmocka_unit_test(test_no_story_blames_what_holds),
        cmocka_unit_test(test_drawn_worlds_are_read_as_they_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
