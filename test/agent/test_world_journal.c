/*
 * The simulator and real journals: worlds write what verify accepts, and begin from what daemons
 * and worlds wrote.
 *
 *     test_journal               the tests
 *     test_journal DIR [SEEDS]   restarts from the journal in DIR: crash points, drawn lives
 *
 * Built as debug, clang-asan: same_worlds.py says that builds do the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inspect/inspect.h"
#include "io/host.h"
#include "sim/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STORY_BYTES = 1 << 20, RUNS_MAX = 400 };

/* Two allocs, one with volumes; all of it runs when the daemon dies. */
static const char two_allocs[] = "mode alone\n"
                                 "plugin disk stages\n"
                                 "alloc a\n"
                                 "task a/main\n"
                                 "task a/side lifecycle prestart sidecar\n"
                                 "claim a/data plugin disk disk 0\n"
                                 "alloc b\n"
                                 "task b/main forks\n"
                                 "at 0 assign a\n"
                                 "at 0 assign b\n"
                                 "at 5000 crash 100\n";

struct place {
    char path[64]; /* a directory of its own */
    struct sim *sim;
    char *story;
    size_t story_length;
};

static struct sim_script script;
static struct sim_result result;
static struct sim_tally tally;

static int make(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    char made[] = "/tmp/cairn-test-XXXXXX";

    assert_non_null(place);
    assert_non_null(mkdtemp(made));
    (void)text_copy(place->path, sizeof(place->path), made);
    place->sim = sim_new();
    place->story = calloc(1, STORY_BYTES);
    assert_non_null(place->story);
    *state = place;
    return 0;
}

static int unmake(void **state)
{
    struct place *place = *state;
    struct err err = {0};
    int code = tree_remove(AT_FDCWD, place->path, &err);

    sim_free(place->sim);
    free(place->story);
    free(place);
    return code;
}

static void hear(void *ctx, const char *text)
{
    struct place *place = ctx;
    size_t length = strlen(text);

    if (place->story_length + length >= STORY_BYTES)
        return; /* the begin of a long story is enough */
    memcpy(place->story + place->story_length, text, length + 1);
    place->story_length += length;
}

static void forget(struct place *place)
{
    place->story_length = 0;
    place->story[0] = '\0';
}

static void read_script(const char *text)
{
    struct err err;

    if (sim_script_read(text, &script, &err) < 0)
        fail_msg("%s", err.text);
}

/* The name of a directory in the test's own; one buffer. */
static const char *in(const struct place *place, const char *name)
{
    static char path[128];

    (void)text_format(path, sizeof(path), "%s/%s", place->path, name);
    return path;
}

static struct journal *open_journal(const struct place *place, const char *name,
                                    enum journal_mode mode)
{
    struct journal *journal;
    struct err err;

    if (journal_open(in(place, name), mode, &journal, &err) < 0)
        fail_msg("%s", err.text);
    return journal;
}

/* Runs the script and writes what its first INCARNATIONS commit (0: all) into NAME. */
static void write_world(struct place *place, const char *name, uint32_t incarnations)
{
    struct journal *journal = open_journal(place, name, JOURNAL_WRITE);

    sim_set_journal(place->sim, journal, incarnations);
    sim_run(place->sim, &script, NULL, NULL, &result);
    sim_set_journal(place->sim, NULL, 0);
    journal_close(journal);
    if (result.outcome != SIM_FINE)
        fail_msg("the world itself: %s", result.text);
}

static void note_finding(void *ctx, const struct finding *finding)
{
    struct place *place = ctx;

    if (finding->bad) {
        hear(place, finding->where);
        hear(place, "\n");
    }
}

static struct inspect_verdict verify(struct place *place, const char *name)
{
    struct journal *journal = open_journal(place, name, JOURNAL_READ);
    struct inspect_verdict verdict;
    struct err err;

    forget(place);
    if (inspect_verify(journal, note_finding, place, &verdict, &err) < 0)
        fail_msg("%s", err.text);
    journal_close(journal);
    return verdict;
}

static struct sim_start *load(struct place *place, const char *name)
{
    struct sim_start *start;
    struct err err;

    if (sim_start_load(in(place, name), &start, &err) < 0)
        fail_msg("%s", err.text);
    return start;
}

static void run_from(struct place *place, const struct sim_start *start)
{
    forget(place);
    sim_set_start(place->sim, start);
    sim_run(place->sim, &script, hear, place, &result);
    sim_set_start(place->sim, NULL);
}

static void assert_fine(const char *what, uint64_t number)
{
    if (result.outcome != SIM_FINE)
        fail_msg("%s %llu: %s", what, (unsigned long long)number, result.text);
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* --- damage --- */

/* Flips a byte behind each place at which KIND and NAME stand as a key.  How many there were. */
static unsigned damage(struct place *place, const char *name, enum machine_kind kind,
                       const char *id, size_t behind)
{
    char file[160], key[MACHINE_ID_SIZE + 1];
    unsigned places = 0;
    struct stat about;

    (void)text_format(file, sizeof(file), "%s/data.mdb", in(place, name));
    (void)text_format(key, sizeof(key), "%c%s", (int)kind, id);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &about), 0);
    size_t length = (size_t)about.st_size, key_length = 1 + strlen(id);
    uint8_t *bytes = malloc(length);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, length), length);
    for (size_t at = 0; at + key_length + behind < length; at++) {
        if (memcmp(bytes + at, key, key_length) != 0)
            continue;
        bytes[at + key_length + behind] ^= 0x20;
        places++;
    }
    assert_int_equal(pwrite(fd, bytes, length, 0), length);
    assert_int_equal(close(fd), 0);
    free(bytes);
    return places;
}

static void test_where_there_is_no_journal_nothing_begins(void **state)
{
    struct place *place = *state;
    struct sim_start *start = NULL;
    struct err err;

    assert_int_equal(sim_start_load(in(place, "nowhere"), &start, &err), ERR_GONE);
    assert_int_equal(sim_start_load(place->path, &start, &err), ERR_GONE);
    assert_null(start);
}

static void test_a_damaged_byte_of_a_written_journal_is_found(void **state)
{
    struct place *place = *state;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    assert_int_equal(verify(place, "journal").bad, 0);
    assert_true(damage(place, "journal", MACHINE_TASK, "b/main", 24) > 0);
    assert_true(verify(place, "journal").bad > 0);
    assert_non_null(strstr(place->story, "b/main"));
}

/* R-21, I-17: one record costs one alloc, and the world says which. */
static void test_a_damaged_record_ends_its_alloc_and_the_world_goes_on(void **state)
{
    struct place *place = *state;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    assert_true(damage(place, "journal", MACHINE_TASK, "b/main", 24) > 0);
    struct sim_start *start = load(place, "journal");
    struct sim_start_figures figures = sim_start_figures(start);
    assert_int_equal(figures.damaged, 1);
    assert_int_equal(figures.records[MACHINE_TASK], 2);
    forget(place);
    sim_start_describe(start, hear, place);
    assert_non_null(strstr(place->story, "damaged: task b/main"));

    for (uint8_t fate = 1; fate <= 2; fate++) {
        script = sim_start_script(start, SIM_AWAY_NOTHING);
        script.fate_of_cut = fate;
        run_from(place, start);
        assert_fine("fate", fate);
        assert_int_equal(count_of(place->story, "quarantine: task b/main"), 1);
        assert_non_null(strstr(place->story, "alloc b RUNNING -MEMBER_LOST"));
        assert_null(strstr(place->story, "alloc a RUNNING -MEMBER_LOST"));
        assert_null(strstr(place->story, "payload of a/main generation 1 runs"));
    }
    sim_start_free(start);
}

static void test_a_damaged_alloc_record_is_lived_through_at_each_crash_point(void **state)
{
    struct place *place = *state;
    struct sim_reach reach;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    assert_true(damage(place, "journal", MACHINE_ALLOC, "b", 24) > 0);
    struct sim_start *start = load(place, "journal");
    assert_int_equal(sim_start_figures(start).damaged, 1);
    script = sim_start_script(start, SIM_AWAY_NOTHING);
    sim_set_start(place->sim, start);
    (void)sim_exhaust_start(place->sim, &script, 0, &tally, &reach, &result);
    assert_fine("crash point", script.cuts[0]);
    assert_true(reach.tried > 40);
    sim_set_start(place->sim, NULL);
    sim_start_free(start);
}

/* --- written --- */

/* Its journal is written to its end: only the world goes on from an older copy. */
static bool is_written_whole(uint32_t incarnations)
{
    for (int i = 0; i < script.steps_count; i++) {
        if (script.steps[i].action == SIM_DO_OLDER)
            return false;
    }
    return incarnations == 0;
}

/* Whole lives and lives cut short by a crash, stepped again byte for byte; what worlds damage is
 * put into quarantine there, too, and explains what has become of it. */
static void test_journals_of_worlds_verify(void **state)
{
    struct place *place = *state;
    uint64_t notes = 0;
    char name[16];

    for (uint64_t seed = 1; seed <= 60; seed++) {
        sim_draw(seed, SIM_SMALL, &script);
        uint32_t incarnations = (uint32_t)(seed % 3);
        if (incarnations > 0 && script.cuts[incarnations - 1] == 0)
            script.cuts[incarnations - 1] = (uint32_t)(10 + 7 * seed);
        (void)text_format(name, sizeof(name), "seed%llu", (unsigned long long)seed);
        write_world(place, name, incarnations);
        struct inspect_verdict verdict = verify(place, name);
        if (verdict.bad > 0)
            fail_msg("seed %llu: %s", (unsigned long long)seed, place->story);
        notes += verdict.notes;
        struct sim_start *start = load(place, name);
        assert_int_equal(sim_start_figures(start).sequence, verdict.last);
        if (is_written_whole(incarnations))
            assert_int_equal(verdict.events, result.events);
        sim_start_free(start);
    }
    assert_true(notes > 0);
}

/* What a history says of one payload, and of the clocks where it changes hands. */
struct hearing {
    uint64_t first; /* event of the second world */
    uint64_t before_ms, after_ms;
    int64_t before_unix_ns, after_unix_ns;
    struct started started, found;
    unsigned starts, finds;
};

static bool hear_event(void *ctx, const struct journal_event *event)
{
    struct hearing *hearing = ctx;

    if (event->sequence == hearing->first) {
        hearing->after_ms = event->now_ms;
        hearing->after_unix_ns = event->unix_ns;
    } else if (event->sequence < hearing->first) {
        hearing->before_ms = event->now_ms;
        hearing->before_unix_ns = event->unix_ns;
    }
    if (event->id.kind != MACHINE_TASK || !text_equal(event->id.text, "a/main"))
        return true;
    if (event->event.kind == TE_STARTED) {
        hearing->started = *(const struct started *)event->event.payload;
        hearing->starts++;
    }
    if (event->event.kind == TE_RECOVERED) {
        hearing->found = *(const struct started *)event->event.payload;
        hearing->finds++;
    }
    return true;
}

static void listen(struct place *place, const char *name, struct hearing *hearing)
{
    struct journal *journal = open_journal(place, name, JOURNAL_READ);
    struct err err;

    assert_int_equal(journal_each_event(journal, 1, hear_event, NULL, hearing, &err), 0);
    journal_close(journal);
}

/* A world goes on in the journal of another, and the whole is one history: the same payload is
 * found, and the time that the daemon was away has passed. */
static void test_a_world_goes_on_in_the_journal_of_another(void **state)
{
    struct place *place = *state;
    struct hearing hearing = {.first = 0};
    struct err err;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    struct journal *journal = open_journal(place, "journal", JOURNAL_READ);
    assert_int_equal(journal_copy(journal, in(place, "copy"), &err), 0);
    journal_close(journal);
    uint64_t before = verify(place, "copy").events;
    struct sim_start *start = load(place, "journal");
    sim_set_start(place->sim, start);
    script = sim_start_script(start, SIM_AWAY_NOTHING);
    write_world(place, "copy", 0);
    sim_set_start(place->sim, NULL);
    struct inspect_verdict verdict = verify(place, "copy");
    assert_int_equal(verdict.bad, 0);
    assert_int_equal(verdict.events, before + result.events);
    assert_int_equal(verdict.machines, 0); /* all was to be gone in the end */
    hearing.first = before + 1;
    listen(place, "copy", &hearing);
    assert_int_equal(hearing.starts, 1);
    assert_true(hearing.finds > 0);
    assert_memory_equal(&hearing.started, &hearing.found, sizeof(hearing.found));
    assert_int_equal(hearing.after_ms - hearing.before_ms, 1000);
    assert_int_equal(hearing.after_unix_ns - hearing.before_unix_ns, 1000000000);
    sim_start_free(start);
}

/* --- begun from --- */

static void test_what_runs_is_found_again_and_not_started(void **state)
{
    static const struct {
        enum sim_away away;
        bool started, rebooted;
    } cases[] = {
        {SIM_AWAY_NOTHING, false, false},
        {SIM_AWAY_EXITS, true, false},
        {SIM_AWAY_REBOOT, true, true},
    };
    struct place *place = *state;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    struct sim_start *start = load(place, "journal");
    struct sim_start_figures figures = sim_start_figures(start);
    assert_int_equal(figures.records[MACHINE_ALLOC], 2);
    assert_int_equal(figures.records[MACHINE_TASK], 3);
    assert_int_equal(figures.records[MACHINE_VOLUME], 1);
    assert_int_equal(figures.records[MACHINE_PLUGIN], 1);
    assert_int_equal(figures.payloads, 3);
    assert_false(figures.server);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        script = sim_start_script(start, cases[i].away);
        run_from(place, start);
        assert_fine("away", i);
        assert_int_equal(count_of(place->story, "payload of a/main generation 2 runs"),
                         cases[i].started);
        assert_int_equal(count_of(place->story, "payload of a/main generation 1 runs"), 0);
        assert_int_equal(count_of(place->story, ", after a reboot"), cases[i].rebooted);
        assert_int_equal(count_of(place->story, "plugin csi/disk RECOVERING -LOST->"),
                         cases[i].rebooted);
        assert_int_equal(count_of(place->story, "volume a/data VERIFYING -MOUNT_MISSING->"),
                         cases[i].rebooted);
    }
    sim_start_free(start);
}

/* Journals that a crash has left at its points: restored, and cut again at each point of that. */
static void test_a_journal_cut_at_a_crash_point_comes_back_from_every_other(void **state)
{
    struct place *place = *state;
    struct sim_reach reach;
    char name[16];

    for (uint32_t point = 5; point <= 75; point += 14) {
        read_script(two_allocs);
        script.cuts[0] = point;
        (void)text_format(name, sizeof(name), "point%u", point);
        write_world(place, name, 1);
        assert_int_equal(verify(place, name).bad, 0);
        struct sim_start *start = load(place, name);
        script = sim_start_script(start, SIM_AWAY_NOTHING);
        sim_set_start(place->sim, start);
        (void)sim_exhaust_start(place->sim, &script, 0, &tally, &reach, &result);
        assert_fine("crash point", script.cuts[0]);
        assert_true(reach.points > 20 && reach.tried == reach.points);
        (void)sim_exhaust_start(place->sim, &script, 10, &tally, &reach, &result);
        assert_true(reach.tried <= 10 && reach.points > 20); /* evenly, as many as asked for */
        sim_set_start(place->sim, NULL);
        sim_start_free(start);
    }
}

static void test_drawn_lives_break_no_invariant_and_are_the_same_again(void **state)
{
    struct place *place = *state;
    uint64_t faults = 0;

    read_script(two_allocs);
    write_world(place, "journal", 1);
    struct sim_start *start = load(place, "journal");
    sim_set_start(place->sim, start);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        sim_start_draw(start, seed, &script);
        sim_run(place->sim, &script, NULL, NULL, &result);
        assert_fine("seed", seed);
        uint64_t hash = result.hash;
        for (int fault = 0; fault < SIM_FAULT_COUNT; fault++)
            faults += result.faults[fault] > 0;
        if (seed % 50 != 0)
            continue;
        sim_run(place->sim, &script, NULL, NULL, &result);
        assert_int_equal(result.hash, hash);
    }
    assert_true(faults > 1000);
    forget(place); /* what happens in a life is told by the names that the journal has */
    sim_start_draw(start, 1, &script);
    sim_script_print(&script, hear, place);
    assert_non_null(strstr(place->story, " stop b\n"));
    assert_non_null(strstr(place->story, " hurry a\n"));
    assert_non_null(strstr(place->story, " destroy a\n"));
    sim_set_start(place->sim, NULL);
    sim_start_free(start);
}

/* --- from the command line --- */

static void say(void *ctx, const char *text)
{
    (void)ctx;
    (void)fputs(text, stdout);
}

static int try_start(struct sim *sim, const struct sim_start *start, uint64_t seeds)
{
    struct sim_reach reach;

    for (int away = 0; away < SIM_AWAY_DRAWN; away++) {
        script = sim_start_script(start, (enum sim_away)away);
        bool fine = sim_exhaust_start(sim, &script, RUNS_MAX, &tally, &reach, &result);
        (void)printf("away %d: %llu of %llu crash points: %s\n", away,
                     (unsigned long long)reach.tried, (unsigned long long)reach.points,
                     fine ? "ok" : result.text);
        if (!fine)
            return (int)result.outcome;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        sim_start_draw(start, seed, &script);
        sim_run(sim, &script, NULL, NULL, &result);
        if (result.outcome == SIM_FINE)
            continue;
        (void)printf("seed %llu: %s\n", (unsigned long long)seed, result.text);
        return (int)result.outcome;
    }
    (void)printf("%llu seeds: ok\n", (unsigned long long)seeds);
    return 0;
}

static int try_journal(const char *path, uint64_t seeds)
{
    struct sim_start *start;
    struct err err;

    if (sim_start_load(path, &start, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    sim_start_describe(start, say, NULL);
    struct sim *sim = sim_new();
    sim_set_start(sim, start);
    int status = try_start(sim, start, seeds);
    sim_free(sim);
    sim_start_free(start);
    return status;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_where_there_is_no_journal_nothing_begins),
        TEST(test_a_damaged_byte_of_a_written_journal_is_found),
        TEST(test_a_damaged_record_ends_its_alloc_and_the_world_goes_on),
        TEST(test_a_damaged_alloc_record_is_lived_through_at_each_crash_point),
        TEST(test_journals_of_worlds_verify),
        TEST(test_a_world_goes_on_in_the_journal_of_another),
        TEST(test_what_runs_is_found_again_and_not_started),
        TEST(test_a_journal_cut_at_a_crash_point_comes_back_from_every_other),
        TEST(test_drawn_lives_break_no_invariant_and_are_the_same_again),
    };

    if (argc > 1)
        return try_journal(argv[1], argc > 2 ? strtoull(argv[2], NULL, 10) : 200);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
