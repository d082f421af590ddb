/*
 * The stories of sim/stories/: each comes true as it is written, tells what its golden trace
 * tells, and keeps what it expects always at crash points all over it, in both fates.
 * CAIRN_GOLDEN=1 writes the traces anew; `cairn sim -story NAME` tells one.
 *
 * Built as clang-asan: each build's worlds are the same ones, which same_worlds.py compares, and a
 * release goes through all crash points of all stories; how memory is used remains to be seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/laboratory.h"
#include "sim/start.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACE_BYTES_MAX = 1 << 20,
    POINTS_MIN = 2,
    EVENTS_MAX = 3000, /* of all runs of a story together, each with another crash */
    FATES_EVERY = 40,
    FATES_BELOW = 80, /* of the crash points of a story, whose fates are compared */
};

static const char *const folder = "test/golden/stories";

static struct sim_script script, again;
static struct sim_result result;
static struct err err;

struct trace {
    char text[TRACE_BYTES_MAX];
    size_t used;
};
static struct trace told, golden;

static void collect(void *ctx, const char *text)
{
    struct trace *trace = ctx;
    size_t length = strlen(text);

    assert_true(trace->used + length < sizeof(trace->text));
    memcpy(trace->text + trace->used, text, length + 1);
    trace->used += length;
}

/* Stories may have jobs. */
static struct sim *new_sim(void)
{
    struct sim *sim = sim_new();

    sim_set_plane(sim, &laboratory_plane);
    return sim;
}

static void read_story(const char *name)
{
    if (sim_script_read(sim_story_text(name), &script, &err) < 0)
        fail_msg("%s: %s", name, err.text);
}

static void tell_story(struct sim *sim, const char *name)
{
    char line[64];

    told.used = 0;
    told.text[0] = '\0';
    sim_run(sim, &script, collect, &told, &result);
    if (result.outcome != SIM_FINE)
        fail_msg("%s: %s; see: cairn sim -story %s", name, result.text, name);
    (void)snprintf(line, sizeof(line), "hash %016llx\n", (unsigned long long)result.hash);
    collect(&told, line);
}

/* --- expectations --- */

static const char plain[] = "alloc a batch\n"
                            "task a/main runs 100 exits 3 attempts 0\n"
                            "heal 5000\n"
                            "at 0 assign a\n";

/* What becomes of a batch task that ends with 3, of which LINE is expected. */
static const char *outcome_of(const char *line)
{
    static char text[1024];
    struct sim *sim = new_sim();

    (void)snprintf(text, sizeof(text), "%s%s\n", plain, line);
    assert_int_equal(sim_script_read(text, &script, &err), 0);
    sim_run(sim, &script, NULL, NULL, &result);
    sim_free(sim);
    return result.text;
}

static void test_what_does_not_come_true_fails_the_run(void **state)
{
    static const char *const wrong[][2] = {
        {"expect starts a/main 2", "\"expect starts a/main 2\": it was 1"},
        {"expect starts a/main 1 since 2", "\"expect starts a/main 1 since 2\": it was 0"},
        {"always ends a/main at_most 0", "\"always ends a/main at_most 0\": it was 1"},
        {"expect ends a/main at_least 2", "\"expect ends a/main at_least 2\": it was 1"},
        {"expect exit a/main 0", "\"expect exit a/main 0\": it is 3"},
        {"expect exit a/main unknown", "\"expect exit a/main unknown\": it is 3"},
        {"expect status a complete", "\"expect status a complete\": it is failed"},
        {"expect state task a/main GONE", "\"expect state task a/main GONE\": it is DEAD"},
        {"expect state alloc a absent", "\"expect state alloc a absent\": it is TERMINAL"},
        {"expect alive a/main yes", "\"expect alive a/main yes\": it is no"},
        {"expect first ends a/main then starts a/main",
         "\"expect first ends a/main then starts a/main\": the second came first"},
        {"expect first starts a/main then enters task a/main BACKOFF",
         "\"expect first starts a/main then enters task a/main BACKOFF\": the second never came"},
        {"always first enters task a/main BACKOFF then starts a/main",
         "\"always first enters task a/main BACKOFF then starts a/main\": the first never came"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_string_equal(outcome_of(wrong[i][0]), wrong[i][1]);
        assert_int_equal(result.outcome, SIM_SAFETY);
        assert_int_equal(result.invariant, 0);
    }
}

static void test_what_comes_true_does_not(void **state)
{
    static const char *const right[] = {
        "expect starts a/main 1",
        "expect starts a/main 0 since 2",
        "expect ends a/main at_most 1",
        "expect performs task a/main DRIVER_START at_least 1",
        "expect daemons 1",
        "expect exit a/main 3",
        "expect status a failed",
        "expect state task a/main DEAD",
        "expect alive a/main no",
        "expect first starts a/main then enters alloc a TERMINAL",
        "always first enters task a/main HELD then enters task a/main BACKOFF",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(right); i++)
        assert_string_equal(outcome_of(right[i]), "");
}

/* A story whose events never came about does not tell what it says. */
static void test_what_never_happens_fails_the_run(void **state)
{
    (void)state;
    assert_string_equal(outcome_of("expect daemons 1\nat 3000 exit a/main"),
                        "\"at 3000 exit a/main\": it never happened");
    assert_string_equal(outcome_of("expect daemons 1\nwhen task a/main BACKOFF after crash 10"),
                        "\"when task a/main BACKOFF after crash 10\": it never happened");
    assert_string_equal(outcome_of("expect daemons 1\nfate ERR task a/main DRIVER_START 2"),
                        "\"fate ERR task a/main DRIVER_START 2\": it struck nothing");
    assert_string_equal(outcome_of("at 3000 exit a/main"), ""); /* not a story: expects nothing */
}

static void test_only_always_is_judged_when_crashes_were_added(void **state)
{
    (void)state;
    assert_string_equal(outcome_of("varied\nexpect exit a/main 0\nalways starts a/main 1"), "");
    assert_string_equal(outcome_of("varied\nalways starts a/main 2"),
                        "\"always starts a/main 2\": it was 1");
}

static void test_lines_that_make_no_sense_are_refused(void **state)
{
    static const char *const nonsense[] = {
        "expect",
        "expect starts",
        "expect starts a/main",
        "expect starts a/main many",
        "expect starts a/main 1 since",
        "expect starts a/other 1",
        "expect starts a 1",
        "expect mounted a/main yes",
        "expect alive a/main maybe",
        "expect state task a/main NOWHERE",
        "expect status a fine",
        "expect first starts a/main",
        "expect first starts a/main then",
        "expect performs task a/main NOTHING 1",
        "expect performs task a/main SEND_CHANGED 0",
        "fate LIE task a/main DRIVER_START 1",
        "fate HANG commit 1",
        "fate KILL@effect task a/main HOOK 1",
        "expect daemons 1 2",
        "expect hopes a/main 1",
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        (void)snprintf(text, sizeof(text), "%s%s\n", plain, nonsense[i]);
        if (sim_script_read(text, &script, &err) != ERR_INVALID)
            fail_msg("taken: %s", nonsense[i]);
    }
}

/* --- the stories --- */

static void test_each_story_is_found_by_name(void **state)
{
    size_t count = 0;

    (void)state;
    for (const char *name; (name = sim_story_name(count)) != NULL; count++) {
        assert_non_null(sim_story_text(name));
        assert_true(strlen(sim_story_about(name)) > 10);
        assert_non_null(sim_story_covers(name));
    }
    assert_true(count > 0);
    assert_null(sim_story_name(count + 1));
    assert_null(sim_story_text("no-such-story"));
    assert_null(sim_story_about("no-such-story"));
    assert_null(sim_story_covers("no-such-story"));
}

/* What is read again is printed in the same way, and is the same world. */
static void test_each_story_reads_as_it_is_printed(void **state)
{
    struct sim *sim = new_sim();

    (void)state;
    for (size_t i = 0; sim_story_name(i) != NULL; i++) {
        read_story(sim_story_name(i));
        assert_true(script.expects_count > 0);
        told.used = golden.used = 0;
        sim_script_print(&script, collect, &told);
        assert_int_equal(sim_script_read(told.text, &again, &err), 0);
        sim_script_print(&again, collect, &golden);
        assert_string_equal(golden.text, told.text);
        sim_run(sim, &script, NULL, NULL, &result);
        uint64_t hash = result.hash;
        sim_run(sim, &again, NULL, NULL, &result);
        assert_int_equal(result.hash, hash);
    }
    sim_free(sim);
}

static void compare(const char *name, const char *path)
{
    FILE *file = fopen(path, "r");

    if (file == NULL)
        fail_msg("%s: no %s; run ./dev golden and look at the difference", name, path);
    golden.used = fread(golden.text, 1, sizeof(golden.text) - 1, file);
    golden.text[golden.used] = '\0';
    (void)fclose(file);
    if (strcmp(golden.text, told.text) == 0)
        return;
    size_t at = 0, line = 1, begin = 0;
    for (; golden.text[at] == told.text[at]; at++) {
        if (told.text[at] == '\n') {
            line++;
            begin = at + 1;
        }
    }
    fail_msg("%s differs from %s in line %zu: \"%.*s\", it was \"%.*s\"", name, path, line,
             (int)strcspn(told.text + begin, "\n"), told.text + begin,
             (int)strcspn(golden.text + begin, "\n"), golden.text + begin);
}

static void write_down(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(told.text, 1, told.used, file), told.used);
    assert_int_equal(fclose(file), 0);
}

static void test_each_story_is_told_as_its_trace_tells_it(void **state)
{
    struct sim *sim = new_sim();
    bool write = getenv("CAIRN_GOLDEN") != NULL;
    char path[256];

    (void)state;
    for (size_t i = 0; sim_story_name(i) != NULL; i++) {
        const char *name = sim_story_name(i);
        read_story(name);
        tell_story(sim, name);
        (void)snprintf(path, sizeof(path), "%s/%s.trace", folder, name);
        if (write)
            write_down(path);
        else
            compare(name, path);
    }
    sim_free(sim);
}

static void test_each_trace_has_its_story(void **state)
{
    DIR *traces = opendir(folder);
    char name[256];

    (void)state;
    assert_non_null(traces);
    for (const struct dirent *entry; (entry = readdir(traces)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry->d_name, "."), entry->d_name);
        if (sim_story_text(name) == NULL)
            fail_msg("%s/%s has no story", folder, entry->d_name);
    }
    (void)closedir(traces);
}

/* All crash points of all of them are what `cairn sim -exhaustive all` tries with the release
 * build. */
static void test_each_story_holds_at_some_crash_points(void **state)
{
    struct sim *sim = new_sim();
    struct sim_tally tally = {0};
    struct sim_reach reach;

    (void)state;
    for (size_t i = 0; sim_story_name(i) != NULL; i++) {
        read_story(sim_story_name(i));
        sim_run(sim, &script, NULL, NULL, &result);
        uint64_t points = EVENTS_MAX / (result.events + 1);
        if (points < POINTS_MIN)
            points = POINTS_MIN;
        if (!sim_exhaust_start(sim, &script, points, &tally, &reach, &result)) {
            told.used = 0;
            sim_script_print(&script, collect, &told);
            fail_msg("%s: %s, in\n%s", sim_story_name(i), result.text, told.text);
        }
        tally.points += reach.points;
        tally.tried += reach.tried;
    }
    (void)printf("%llu runs, at %llu of %llu crash points\n", (unsigned long long)tally.runs,
                 (unsigned long long)tally.tried, (unsigned long long)tally.points);
    sim_free(sim);
}

/* sim_exhaust tries one of them then. */
static void test_fates_are_one_where_nothing_is_under_way(void **state)
{
    struct sim *sim = new_sim();
    uint32_t same = 0, open = 0;

    (void)state;
    for (size_t i = 0; sim_story_name(i) != NULL; i++) {
        read_story(sim_story_name(i));
        script.varied = 1;
        for (uint32_t point = 1 + (uint32_t)i % FATES_EVERY; point < FATES_BELOW;
             point += FATES_EVERY) {
            uint64_t hash[2];
            uint32_t decided[2];
            script.cuts[0] = point;
            for (int fate = 0; fate < 2; fate++) {
                script.fate_of_cut = (uint8_t)(1 + fate);
                sim_run(sim, &script, NULL, NULL, &result);
                hash[fate] = result.hash;
                decided[fate] = result.decided;
            }
            assert_int_equal(decided[0] == 0, decided[1] == 0);
            if (decided[0] == 0 && hash[0] != hash[1])
                fail_msg("%s: a crash at point %u has two fates", sim_story_name(i), point);
            same += decided[0] == 0;
            open += hash[0] != hash[1];
        }
    }
    (void)printf("%u crash points with one fate, %u with two\n", same, open);
    assert_true(same > 100 && open > 100);
    sim_free(sim);
}

/* Each crash point once, and once more where it has two fates: found here one by one. */
static void test_all_crash_points_are_tried_in_all_their_fates(void **state)
{
    struct sim *sim = new_sim();
    struct sim_tally tally = {0};
    struct sim_reach reach;
    uint64_t points = 0, open = 0;

    (void)state;
    read_story("two-that-inherit-leave-together");
    script.varied = 1;
    script.fate_of_cut = 1;
    sim_run(sim, &script, NULL, NULL, &result);
    assert_int_equal(result.decided, 0); /* no crash of its own decides for those that are added */
    struct sim_result whole = result;
    for (int number = 0; number < SIM_CUTS_MAX; number++) {
        for (uint32_t point = 1; point <= whole.points[number]; point++, points++) {
            script.cuts[number] = point;
            sim_run(sim, &script, NULL, NULL, &result);
            open += result.decided > 0;
        }
        script.cuts[number] = 0;
    }
    read_story("two-that-inherit-leave-together");
    assert_true(sim_exhaust_start(sim, &script, 0, &tally, &reach, &result));
    assert_int_equal(reach.tried, points);
    assert_int_equal(reach.points, points);
    assert_int_equal(tally.runs, 1 + points + open);
    assert_true(open > 0 && open < points);
    sim_free(sim);
}

static void test_each_fault_is_in_a_story(void **state)
{
    struct sim *sim = new_sim();
    uint32_t faults[SIM_FAULT_COUNT] = {0};

    (void)state;
    for (size_t i = 0; sim_story_name(i) != NULL; i++) {
        read_story(sim_story_name(i));
        sim_run(sim, &script, NULL, NULL, &result);
        for (unsigned fault = 1; fault < SIM_FAULT_COUNT; fault++)
            faults[fault] += result.faults[fault];
    }
    for (unsigned fault = 1; fault < SIM_FAULT_COUNT; fault++) {
        if (faults[fault] == 0)
            fail_msg("no story has %s: %s", sim_fault_name(fault), sim_fault_what(fault));
    }
    sim_free(sim);
}

/* --- by hand --- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_does_not_come_true_fails_the_run),
        cmocka_unit_test(test_what_comes_true_does_not),
        cmocka_unit_test(test_what_never_happens_fails_the_run),
        cmocka_unit_test(test_only_always_is_judged_when_crashes_were_added),
        cmocka_unit_test(test_lines_that_make_no_sense_are_refused),
        cmocka_unit_test(test_each_story_is_found_by_name),
        cmocka_unit_test(test_each_story_reads_as_it_is_printed),
        cmocka_unit_test(test_each_story_is_told_as_its_trace_tells_it),
        cmocka_unit_test(test_each_trace_has_its_story),
        cmocka_unit_test(test_each_story_holds_at_some_crash_points),
        cmocka_unit_test(test_fates_are_one_where_nothing_is_under_way),
        cmocka_unit_test(test_all_crash_points_are_tried_in_all_their_fates),
        cmocka_unit_test(test_each_fault_is_in_a_story),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
