/* Commits: whole turns or nothing, under growth, trimming and SIGKILL; and what reads them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <malloc.h>

#include "journal/part.h"
#include "test/journal/scratch.h"

static struct turn_batch turn;

static void commit_turn(struct journal *journal, uint64_t number)
{
    struct err err;

    turn_make(&turn, number);
    int code = journal_commit(journal, &turn.batch, &err);
    if (code != 0)
        fail_msg("commit: %s", err.text);
}

/* --- all or nothing --- */

static void write_turns_until_killed(int orders, int answers)
{
    struct journal *journal;
    struct err err;
    char path[PATH_MAX];

    (void)orders;
    child_check(journal_open(in_scratch(path, "journal"), JOURNAL_WRITE, &journal, &err) == 0);
    for (uint64_t number = turn_verify(journal) + 1;; number++) {
        turn_make(&turn, number);
        child_check(journal_commit(journal, &turn.batch, &err) == 0);
        child_done(answers);
    }
}

static void test_killed_writer_leaves_whole_turns_only(void **state)
{
    struct rng rng = rng_init(1);
    uint64_t before = 0, acknowledged = 0;

    (void)state;
    for (int round = 0; round < 25; round++) {
        struct child child = child_start(write_turns_until_killed);
        uint64_t turns = 1 + rng_below(&rng, 12);
        for (uint64_t i = 0; i < turns; i++)
            child_await(&child);
        for (uint64_t i = rng_below(&rng, 200000); i > 0; i--)
            __asm__ volatile("" ::: "memory"); /* somewhere within the next turns */
        child_kill(&child);

        acknowledged = before + turns;
        struct journal *journal = open_journal(JOURNAL_WRITE);
        uint64_t after = turn_verify(journal);
        journal_close(journal);
        assert_true(after >= acknowledged); /* what was acknowledged is durable (I-14) */
        before = after;
    }
}

/* A commit writes its pages, syncs, then writes one head and syncs.  Power that fails in between
 * has written any of the pages, and no head: whatever the disk kept, the turn before is whole. */
static void test_power_lost_within_a_commit_leaves_the_turn_before(void **state)
{
    enum { PAGE = 4096, HEADS = 2 };
    struct rng rng = rng_init(3);
    char file[PATH_MAX], cut[PATH_MAX];
    struct err err;
    unsigned changed = 0;

    (void)state;
    assert_int_equal(mkdir(in_scratch(cut, "cut"), 0700), 0);
    struct journal *journal = open_journal(JOURNAL_WRITE);
    for (uint64_t number = 1; number <= 25; number++)
        commit_turn(journal, number);
    in_scratch(file, "journal/data.mdb");
    in_scratch(cut, "cut/data.mdb");
    for (uint64_t number = 25; number < 31; number++) {
        size_t before_length, after_length;
        unsigned char *before = file_read(file, &before_length);
        commit_turn(journal, number + 1);
        unsigned char *after = file_read(file, &after_length);
        for (int i = 0; i < 8; i++) {
            unsigned char *image = calloc(1, after_length);
            size_t length = before_length;
            memcpy(image, before, before_length);
            for (size_t page = HEADS; page < after_length / PAGE; page++) {
                if (rng_chance(&rng, (uint64_t)i, 7)) { /* none, some, all of them */
                    memcpy(image + page * PAGE, after + page * PAGE, PAGE);
                    length = length > (page + 1) * PAGE ? length : (page + 1) * PAGE;
                    changed++;
                }
            }
            file_write(cut, image, length);
            struct journal *copy;
            char path[PATH_MAX];
            assert_int_equal(journal_open(in_scratch(path, "cut"), JOURNAL_READ, &copy, &err), 0);
            assert_int_equal(turn_verify(copy), number);
            journal_close(copy);
            free(image);
        }
        free(before);
        free(after);
    }
    assert_true(changed > 0);
    journal_close(journal);
}

static void test_batch_with_a_value_too_long_changes_nothing(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;
    char *bytes = calloc(1, JOURNAL_VALUE_BYTES_MAX + 1);

    (void)state;
    commit_turn(journal, 1);
    turn_make(&turn, 2);
    turn.spec.bytes = bytes;
    turn.spec.length = JOURNAL_VALUE_BYTES_MAX + 1;
    assert_int_equal(journal_commit(journal, &turn.batch, &err), ERR_LIMIT);
    assert_int_equal(turn_verify(journal), 1);
    free(bytes);
    journal_close(journal);
}

static void test_batch_of_nothing_writes_nothing(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_batch nothing = {0};
    char path[PATH_MAX];
    size_t length_before, length_after;
    struct err err;

    (void)state;
    commit_turn(journal, 1);
    unsigned char *before = file_read(in_scratch(path, "journal/data.mdb"), &length_before);
    assert_int_equal(journal_commit(journal, &nothing, &err), 0);
    unsigned char *after = file_read(path, &length_after);
    assert_int_equal(length_before, length_after);
    assert_memory_equal(before, after, length_before);
    free(before);
    free(after);
    journal_close(journal);
}

/* --- what comes back --- */

struct seen {
    unsigned count;
    uint64_t first, last;
};

static bool see_event(void *ctx, const struct journal_event *event)
{
    struct seen *seen = ctx;
    const struct journal_event *written = &turn.events[seen->count++];
    struct journal_event a = *event, b = *written;

    a.event.payload = b.event.payload = NULL;
    a.event.reply = b.event.reply = 0; /* is not stored */
    assert_memory_equal(&a, &b, sizeof(a));
    assert_memory_equal(event->event.payload, written->event.payload, sizeof(struct exited));
    return true;
}

static bool see_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct seen *seen = ctx;

    for (int i = 0; i < TURN_MACHINES; i++) {
        if (machine_id_equal(id, &turn.records[i].id)) {
            assert_memory_equal(record, turn.records[i].record,
                                fsm_record_size(turn.records[i].record));
            seen->count++;
        }
    }
    return true;
}

static void test_committed_turn_reads_back_after_reopening(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct seen seen = {0};
    struct err err;
    char *bytes;
    size_t length;

    (void)state;
    turn_make(&turn, 1);
    turn.events[2].event.reply = 77;
    assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
    journal_close(journal);

    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_each_event(journal, 0, see_event, NULL, &seen, &err), 0);
    assert_int_equal(seen.count, TURN_EVENTS);
    seen = (struct seen){0};
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        assert_int_equal(
            journal_each_record(journal, (enum machine_kind)kind, see_record, NULL, &seen, &err),
            0);
    assert_int_equal(seen.count, TURN_MACHINES);
    seen = (struct seen){0};
    assert_int_equal(journal_each_base(journal, MACHINE_TASK, see_record, NULL, &seen, &err), 0);
    assert_int_equal(seen.count, 1);
    struct machine_id based = turn_machine(0), baseless = turn_machine(2);
    struct machine *base;
    assert_int_equal(journal_base_read(journal, &baseless, &base, &err), ERR_GONE);
    assert_int_equal(journal_base_read(journal, &based, &base, &err), 0);
    assert_memory_equal(base, turn.records[0].record, fsm_record_size(turn.records[0].record));
    free(base);
    assert_int_equal(journal_meta_read(journal, "turn", &bytes, &length, &err), 0);
    assert_int_equal(length, 1);
    assert_string_equal(bytes, "1"); /* a NUL stands behind it */
    free(bytes);
    assert_int_equal(journal_spec_read(journal, "turn", &bytes, &length, &err), ERR_GONE);
    journal_close(journal);
}

static void test_deleted_entries_stay_gone(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_record gone = {.id = turn_machine(0)};
    struct journal_blob spec = {.key = "alloc/turn"}, meta = {.key = "turn"};
    struct journal_batch batch = {.records = &gone,
                                  .records_count = 1,
                                  .bases = &gone,
                                  .bases_count = 1,
                                  .specs = &spec,
                                  .specs_count = 1,
                                  .metas = &meta,
                                  .metas_count = 1};
    struct journal_figures figures;
    struct err err;
    char *bytes;
    size_t length;

    (void)state;
    commit_turn(journal, 1);
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
    assert_int_equal(journal_commit(journal, &batch, &err), 0); /* deleting twice is harmless */
    journal_close(journal);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_figures(journal, &figures, &err), 0);
    assert_int_equal(figures.states, TURN_MACHINES - 1);
    assert_int_equal(figures.bases, 0);
    assert_int_equal(figures.specs, 0);
    assert_int_equal(figures.events, TURN_EVENTS);
    assert_int_equal(figures.schema, JOURNAL_SCHEMA);
    assert_int_equal(journal_meta_read(journal, "turn", &bytes, &length, &err), ERR_GONE);
    journal_close(journal);
}

static bool see_blob(void *ctx, const char *key, const void *bytes, size_t length)
{
    char *names = ctx;

    assert_int_equal(length, 3);
    assert_memory_equal(bytes, "abc", 3);
    text_append(names, 64, key);
    text_append(names, 64, " ");
    return true;
}

static void test_specs_are_walked_by_prefix(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_blob specs[4] = {
        {.key = "job/b"}, {.key = "alloc/1"}, {.key = "job/a"}, {.key = "jobs"}};
    struct journal_batch batch = {.specs = specs, .specs_count = 4};
    char names[64] = "";
    struct err err;

    (void)state;
    for (int i = 0; i < 4; i++) {
        specs[i].bytes = "abc";
        specs[i].length = 3;
    }
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
    assert_int_equal(journal_each_spec(journal, "job/", see_blob, names, &err), 0);
    assert_string_equal(names, "job/a job/b ");
    journal_close(journal);
}

/* --- retention --- */

static bool see_number(void *ctx, const struct journal_event *event)
{
    struct seen *seen = ctx;

    if (seen->count++ == 0)
        seen->first = event->sequence;
    seen->last = event->sequence;
    return true;
}

static void test_trimmed_log_begins_later_and_numbers_go_on(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_batch trim = {.trim_below = 10};
    struct seen seen = {0};
    struct err err;

    (void)state;
    for (uint64_t number = 1; number <= 3; number++)
        commit_turn(journal, number);
    assert_int_equal(journal_commit(journal, &trim, &err), 0);
    assert_int_equal(journal_first_sequence(journal), 10);
    assert_int_equal(journal_each_event(journal, 1, see_number, NULL, &seen, &err), 0);
    assert_int_equal(seen.first, 10);
    assert_int_equal(seen.last, 3 * TURN_EVENTS);
    assert_int_equal(seen.count, 3 * TURN_EVENTS - 9);

    trim.trim_below = 1000; /* all of it */
    assert_int_equal(journal_commit(journal, &trim, &err), 0);
    journal_close(journal);
    journal = open_journal(JOURNAL_WRITE);
    assert_int_equal(journal_first_sequence(journal), 3 * TURN_EVENTS + 1);
    assert_int_equal(journal_next_sequence(journal), 3 * TURN_EVENTS + 1);
    commit_turn(journal, 4);
    assert_int_equal(journal_next_sequence(journal), 4 * TURN_EVENTS + 1);
    journal_close(journal);
}

/* --- growth --- */

static void read_before_and_after(int orders, int answers)
{
    struct journal *journal;
    struct err err;
    char path[PATH_MAX], *bytes;
    size_t length;

    child_wait(orders);
    child_check(journal_open(in_scratch(path, "journal"), JOURNAL_READ, &journal, &err) == 0);
    child_check(journal_spec_read(journal, "large/0", &bytes, &length, &err) == 0);
    free(bytes);
    child_done(answers);
    child_wait(orders);
    child_check(journal_spec_read(journal, "large/19", &bytes, &length, &err) == 0);
    child_check(length == JOURNAL_VALUE_BYTES_MAX);
    free(bytes);
    journal_close(journal);
}

static void test_map_grows_without_stopping_writer_or_reader(void **state)
{
    struct child reader = child_start(read_before_and_after);
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_blob spec;
    struct journal_batch batch = {.specs = &spec, .specs_count = 1};
    struct journal_figures before, after;
    char *bytes = malloc(JOURNAL_VALUE_BYTES_MAX), *read;
    size_t length;
    struct err err;

    (void)state;
    memset(bytes, 'x', JOURNAL_VALUE_BYTES_MAX);
    assert_int_equal(journal_figures(journal, &before, &err), 0);
    for (int i = 0; i < 20; i++) { /* 80 MiB into a map of 64 */
        spec = (struct journal_blob){.bytes = bytes, .length = JOURNAL_VALUE_BYTES_MAX};
        text_format(spec.key, sizeof(spec.key), "large/%d", i);
        assert_int_equal(journal_commit(journal, &batch, &err), 0);
        if (i == 0) {
            child_order(&reader);
            child_await(&reader);
        }
    }
    assert_int_equal(journal_figures(journal, &after, &err), 0);
    assert_int_equal(after.bytes_map, 2 * before.bytes_map);
    child_order(&reader);
    assert_int_equal(child_end(&reader), 0);
    assert_int_equal(journal_spec_read(journal, "large/19", &read, &length, &err), 0);
    assert_memory_equal(bytes, read, JOURNAL_VALUE_BYTES_MAX);
    free(read);
    free(bytes);
    journal_close(journal);

    journal = open_journal(JOURNAL_WRITE); /* the larger map is remembered */
    assert_int_equal(journal_figures(journal, &after, &err), 0);
    assert_int_equal(after.bytes_map, 2 * before.bytes_map);
    journal_close(journal);
}

/* --- upkeep --- */

static void test_copy_is_a_journal_with_the_same_contents(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal *copy;
    char path[PATH_MAX];
    struct err err;

    (void)state;
    for (uint64_t number = 1; number <= 20; number++)
        commit_turn(journal, number);
    assert_int_equal(journal_copy(journal, in_scratch(path, "copy"), &err), 0);
    assert_int_equal(journal_copy(journal, path, &err), ERR_EXISTS);
    commit_turn(journal, 21);
    journal_close(journal);
    assert_int_equal(journal_open(path, JOURNAL_READ, &copy, &err), 0);
    assert_int_equal(turn_verify(copy), 20);
    journal_close(copy);
}

/* Whatever the directory lets others do, and whoever's mask it is. */
static void test_copy_is_for_its_owner_only(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    char directory[PATH_MAX], file[PATH_MAX];
    mode_t mask = umask(0);
    struct stat about;
    struct err err;

    (void)state;
    commit_turn(journal, 1);
    assert_int_equal(mkdir(in_scratch(directory, "open"), 0755), 0);
    assert_int_equal(journal_copy(journal, directory, &err), 0);
    assert_int_equal(stat(in_scratch(file, "open/data.mdb"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    (void)umask(mask);

    file_write(in_scratch(file, "file"), "mine", 4);
    assert_int_equal(journal_copy(journal, file, &err), ERR_EXISTS);
    assert_int_equal(mkdir(in_scratch(directory, "used"), 0755), 0);
    file_write(in_scratch(file, "used/data.mdb"), "mine", 4);
    assert_int_equal(journal_copy(journal, directory, &err), ERR_EXISTS);
    assert_non_null(strstr(err.text, "is not an empty directory"));
    assert_int_equal(stat(file, &about), 0);
    assert_int_equal(about.st_size, 4);
    journal_close(journal);
}

/* Resident kB of the maps of data.mdb. */
static unsigned long resident_map_kb(void)
{
    char line[512];
    unsigned long sum = 0, value, begin, end;
    bool ours = false;
    FILE *maps = fopen("/proc/self/smaps", "re");

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            ours = strstr(line, "/data.mdb") != NULL;
        else if (ours && sscanf(line, "Rss: %lu kB", &value) == 1)
            sum += value;
    }
    fclose(maps);
    return sum;
}

static void test_released_memory_is_not_resident_and_still_reads(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);

    (void)state;
    for (uint64_t number = 1; number <= 20; number++)
        commit_turn(journal, number);
    assert_int_equal(turn_verify(journal), 20);
    assert_true(resident_map_kb() > 0);
    journal_release_memory(journal);
    assert_int_equal(resident_map_kb(), 0);
    assert_int_equal(turn_verify(journal), 20);
    journal_close(journal);
}

enum { CROWD = 2000 };

/* Far from each other, so that each dirties pages of its own. */
static int write_crowd(struct store_txn *txn, void *ctx, struct err *err)
{
    char key[32], value[1024] = {1};
    int code = 0;

    (void)ctx;
    for (uint32_t i = 0; i < CROWD && code == 0; i++) {
        (void)text_format(key, sizeof(key), "crowd/%u", i); /* fits */
        code = store_put(txn, STORE_META, (struct store_bytes){key, strlen(key)},
                         (struct store_bytes){value, sizeof(value)}, err);
    }
    return code;
}

static void test_buffers_of_a_large_commit_are_given_back(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err = {0};
    size_t before = mallinfo2().uordblks;

    (void)state;
    if (before == 0)
        skip(); /* the sanitizers' allocator does not tell */
    commit_turn(journal, 1);
    assert_int_equal(store_write(journal->store, write_crowd, NULL, &err), 0);
    assert_true(mallinfo2().uordblks > before + CROWD / 8 * 4096);
    journal_release_memory(journal);
    assert_true(mallinfo2().uordblks < before + 64 * 4096);
    commit_turn(journal, 2);
    assert_int_equal(turn_verify(journal), 2);
    journal_close(journal);
}

static void test_every_descriptor_is_close_on_exec(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    char link[PATH_MAX], target[PATH_MAX];
    unsigned seen = 0;

    (void)state;
    for (int fd = 0; fd < 256; fd++) {
        text_format(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (!text_starts_with(target, scratch))
            continue;
        assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        seen++;
    }
    assert_int_equal(seen, 4); /* data twice, LMDB's locks, ours */
    journal_close(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_killed_writer_leaves_whole_turns_only),
        TEST(test_power_lost_within_a_commit_leaves_the_turn_before),
        TEST(test_batch_with_a_value_too_long_changes_nothing),
        TEST(test_batch_of_nothing_writes_nothing),
        TEST(test_deleted_entries_stay_gone),
        TEST(test_trimmed_log_begins_later_and_numbers_go_on),
        TEST(test_map_grows_without_stopping_writer_or_reader),
        TEST(test_committed_turn_reads_back_after_reopening),
        TEST(test_specs_are_walked_by_prefix),
        TEST(test_copy_is_a_journal_with_the_same_contents),
        TEST(test_copy_is_for_its_owner_only),
        TEST(test_released_memory_is_not_resident_and_still_reads),
        TEST(test_buffers_of_a_large_commit_are_given_back),
        TEST(test_every_descriptor_is_close_on_exec),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
