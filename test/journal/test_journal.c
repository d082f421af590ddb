/* Opening: one daemon, any number of readers, journals of other places, rights and schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal/migrate.h"
#include "test/journal/scratch.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

static struct turn_batch turn;

static int try_open(const char *name, enum journal_mode mode, struct journal **ret_journal,
                    struct err *err)
{
    char path[PATH_MAX];

    return journal_open(in_scratch(path, name), mode, ret_journal, err);
}

static void commit_turns(struct journal *journal, uint64_t first, uint64_t last)
{
    struct err err;

    for (uint64_t number = first; number <= last; number++) {
        turn_make(&turn, number);
        check(journal_commit(journal, &turn.batch, &err) == 0);
    }
}

static void make_journal(uint64_t turns)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);

    commit_turns(journal, 1, turns);
    journal_close(journal);
}

/* --- one daemon --- */

static void hold_journal(int orders, int answers)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);

    child_done(answers);
    child_wait(orders);
    journal_close(journal);
}

static void test_second_daemon_is_refused_with_the_number_of_the_first(void **state)
{
    struct child holder = child_start(hold_journal);
    struct journal *journal;
    char number[32];
    struct err err;

    (void)state;
    child_await(&holder);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &journal, &err), ERR_EXISTS);
    text_format(number, sizeof(number), "process %d,", (int)holder.pid);
    assert_non_null(strstr(err.text, number));
    child_order(&holder);
    assert_int_equal(child_end(&holder), 0);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &journal, &err), 0);
    journal_close(journal);
}

static void test_lock_of_a_killed_daemon_does_not_block(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct child holder = child_start(hold_journal);
        child_await(&holder);
        child_kill(&holder);
        journal_close(open_journal(JOURNAL_WRITE));
    }
}

/* As a daemon whose last threads take their time: the lock outlives the process that took it. */
static void hold_journal_beyond_death(int orders, int answers)
{
    (void)open_journal(JOURNAL_WRITE);
    if (fork() == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        _exit(0);
    }
    child_done(answers);
    child_wait(orders);
}

static void test_lock_of_a_dying_daemon_is_waited_for(void **state)
{
    struct child holder = child_start(hold_journal_beyond_death);
    struct journal *journal;
    struct err err = {0};

    (void)state;
    child_await(&holder);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &journal, &err), ERR_EXISTS); /* it lives */
    assert_int_equal(kill(holder.pid, SIGKILL), 0);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &journal, &err), 0); /* not even reaped */
    journal_close(journal);
    assert_true(WIFSIGNALED(child_end(&holder)));
}

static void hold_copies_of_descriptors(int orders, int answers)
{
    child_done(answers);
    child_wait(orders);
}

static void test_closed_journal_is_free_whoever_has_copies_of_its_descriptors(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct child holder = child_start(hold_copies_of_descriptors);

    (void)state;
    child_await(&holder);
    journal_close(journal);
    journal_close(open_journal(JOURNAL_WRITE));
    child_kill(&holder);
}

static void test_same_process_cannot_open_twice(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE), *again;
    struct err err;

    (void)state;
    commit_turns(journal, 1, 1);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &again, &err), ERR_EXISTS);
    assert_int_equal(try_open("journal", JOURNAL_READ, &again, &err), ERR_EXISTS);
    commit_turns(journal, 2, 2); /* and the first is none the worse */
    assert_int_equal(turn_verify(journal), 2);
    journal_close(journal);
    journal_close(open_journal(JOURNAL_READ));
}

static void test_quarantine_while_reading_is_refused(void **state)
{
    struct journal *journal;
    struct err err;

    (void)state;
    make_journal(1);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_quarantine(journal, "log", "1", "test", 0, &err), ERR_REFUSED);
    assert_int_equal(journal_quarantine_drop(journal, 1, &err), ERR_REFUSED);
    journal_close(journal);
}

/* --- readers --- */

static void write_while_read(int orders, int answers)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);

    commit_turns(journal, 1, 5);
    child_done(answers);
    for (uint64_t number = 6; number <= 300; number++) {
        commit_turns(journal, number, number);
        if (number == 100) {
            child_done(answers);
            child_wait(orders);
        }
    }
    journal_close(journal);
}

/* turn_verify makes several calls, so it holds only where they see one moment. */
static void test_frozen_reader_sees_one_moment_of_a_live_journal(void **state)
{
    struct child writer = child_start(write_while_read);
    struct journal *journal;
    struct err err;

    (void)state;
    child_await(&writer);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_freeze(journal, &err), 0);
    uint64_t seen = turn_verify(journal);
    assert_true(seen >= 5);
    child_await(&writer);
    assert_int_equal(turn_verify(journal), seen); /* however much was written since */
    journal_thaw(journal);
    assert_int_equal(turn_verify(journal), 100);
    child_order(&writer);
    for (uint64_t last = 100; last < 300;) {
        bool lives = child_lives(&writer);
        assert_int_equal(journal_freeze(journal, &err), 0);
        uint64_t now = turn_verify(journal);
        journal_thaw(journal);
        assert_true(now >= last && (lives || now == 300));
        last = now;
    }
    assert_int_equal(child_end(&writer), 0);
    journal_close(journal);
}

static void read_frozen(int orders, int answers)
{
    struct journal *journal = open_journal(JOURNAL_READ);
    struct err err;

    child_check(journal_freeze(journal, &err) == 0);
    child_done(answers);
    child_wait(orders);
}

static void test_slots_of_killed_readers_are_cleared_and_the_file_stays_small(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct journal_figures figures;
    uint64_t after_two = 0;
    struct err err;

    (void)state;
    commit_turns(journal, 1, 1);
    for (uint64_t round = 0; round < 20; round++) {
        struct journal_batch again = {.records = turn.records, .records_count = TURN_MACHINES};
        journal_close(journal); /* LMDB's environment may not be open across the fork */
        struct child reader = child_start(read_frozen);
        child_await(&reader);
        journal = open_journal(JOURNAL_WRITE);
        assert_int_equal(journal_figures(journal, &figures, &err), 0);
        assert_int_equal(figures.readers, 1);
        child_kill(&reader);
        journal_clear_readers(journal);
        assert_int_equal(journal_figures(journal, &figures, &err), 0);
        assert_int_equal(figures.readers, 0);
        for (int i = 0; i < 50; i++)
            assert_int_equal(journal_commit(journal, &again, &err), 0);
        assert_int_equal(journal_figures(journal, &figures, &err), 0);
        if (round == 1)
            after_two = figures.bytes_file;
    }
    assert_true(figures.bytes_file <= after_two);
    assert_int_equal(turn_verify(journal), 1);
    journal_close(journal);
}

static void test_writer_takes_back_the_slots_of_killed_readers_by_itself(void **state)
{
    struct journal_batch again = {.records = turn.records, .records_count = TURN_MACHINES};
    struct journal_figures figures;
    struct err err;

    (void)state;
    make_journal(1);
    struct child reader = child_start(read_frozen);
    child_await(&reader);
    struct journal *journal = open_journal(JOURNAL_WRITE);
    child_kill(&reader);
    assert_int_equal(journal_figures(journal, &figures, &err), 0);
    assert_int_equal(figures.readers, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(journal_commit(journal, &again, &err), 0);
    assert_int_equal(journal_figures(journal, &figures, &err), 0);
    assert_int_equal(figures.readers, 0);
    journal_close(journal);
}

static void test_missing_or_unused_journal_is_gone_and_nothing_is_made(void **state)
{
    struct journal *journal;
    char path[PATH_MAX], names[256];
    struct err err;

    (void)state;
    assert_int_equal(try_open("nothing", JOURNAL_READ, &journal, &err), ERR_GONE);
    assert_int_equal(mkdir(in_scratch(path, "empty"), 0700), 0);
    assert_int_equal(try_open("empty", JOURNAL_READ, &journal, &err), ERR_GONE);
    directory_names(path, names, sizeof(names));
    assert_string_equal(names, "");
    file_write(in_scratch(path, "empty/data.mdb"), "", 0);
    assert_int_equal(try_open("empty", JOURNAL_READ, &journal, &err), ERR_GONE);
    directory_names(in_scratch(path, ""), names, sizeof(names));
    assert_string_equal(names, "empty ");
}

static void test_new_directory_is_private(void **state)
{
    struct stat about;
    char path[PATH_MAX];

    (void)state;
    make_journal(1);
    assert_int_equal(stat(in_scratch(path, "journal"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(stat(in_scratch(path, "journal/data.mdb"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void assert_unchanged(const char *path, const unsigned char *before, size_t length_before)
{
    size_t length;
    unsigned char *after = file_read(path, &length);

    assert_int_equal(length, length_before);
    assert_memory_equal(before, after, length);
    free(after);
}

static void test_copied_data_file_alone_is_read_and_nothing_is_made(void **state)
{
    struct journal *journal;
    char from[PATH_MAX], to[PATH_MAX], names[256];
    struct err err;
    size_t length;

    (void)state;
    make_journal(7);
    assert_int_equal(mkdir(in_scratch(to, "copy"), 0700), 0);
    file_copy(in_scratch(from, "journal/data.mdb"), in_scratch(to, "copy/data.mdb"));
    unsigned char *before = file_read(to, &length);
    assert_int_equal(try_open("copy", JOURNAL_READ, &journal, &err), 0);
    assert_int_equal(turn_verify(journal), 7);
    journal_close(journal);
    assert_unchanged(to, before, length);
    directory_names(in_scratch(to, "copy"), names, sizeof(names));
    assert_string_equal(names, "data.mdb ");
    free(before);
}

/* --- other rights, other file systems: root only --- */

static void become_nobody(void)
{
    child_check(setgroups(0, NULL) == 0);
    child_check(setgid(65534) == 0);
    child_check(setuid(65534) == 0);
}

static void read_as_nobody(int orders, int answers)
{
    struct journal *journal;
    struct err err;

    become_nobody();
    child_done(answers);
    child_wait(orders);
    int code = try_open("journal", JOURNAL_READ, &journal, &err);
    if (code != 0)
        fprintf(stderr, "in the child: %s\n", err.text);
    child_check(code == 0);
    child_check(turn_verify(journal) == 9);
    child_done(answers);
    child_wait(orders);
    child_check(turn_verify(journal) == 9); /* a moment of its own while the writer goes on */
    journal_close(journal);
    child_check(try_open("journal", JOURNAL_WRITE, &journal, &err) == ERR_REFUSED);
}

static void let_everybody_read(void)
{
    char path[PATH_MAX];

    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(chmod(in_scratch(path, "journal"), 0755), 0);
    assert_int_equal(chmod(in_scratch(path, "journal/data.mdb"), 0644), 0);
    assert_int_equal(chmod(in_scratch(path, "journal/lock"), 0644), 0);
}

static void test_reader_without_rights_to_the_lock_reads_a_live_journal(void **state)
{
    struct journal *journal;

    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: needs root to become somebody else\n");
        skip();
    }
    struct child reader = child_start(read_as_nobody);
    child_await(&reader);
    journal = open_journal(JOURNAL_WRITE);
    commit_turns(journal, 1, 9);
    let_everybody_read();
    child_order(&reader);
    child_await(&reader);
    commit_turns(journal, 10, 60);
    child_order(&reader);
    assert_int_equal(child_end(&reader), 0);
    journal_close(journal);
}

static void test_reader_without_rights_to_the_lock_reads_a_stopped_journal(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: needs root to become somebody else\n");
        skip();
    }
    make_journal(9);
    let_everybody_read();
    struct child reader = child_start(read_as_nobody);
    child_await(&reader);
    child_order(&reader);
    child_await(&reader);
    child_order(&reader);
    assert_int_equal(child_end(&reader), 0);
}

/* What is written stays in memory, by one process at a time. */
static void write_in_memory(void)
{
    struct journal *journal, *other;
    struct err err;

    child_check(try_open("journal", JOURNAL_VOLATILE, &journal, &err) == 0);
    commit_turns(journal, 4, 5);
    child_check(turn_verify(journal) == 5);
    pid_t pid = fork();
    child_check(pid >= 0);
    if (pid == 0)
        _exit(try_open("journal", JOURNAL_VOLATILE, &other, &err) == ERR_EXISTS ? 0 : 1);
    int status;
    child_check(waitpid(pid, &status, 0) == pid);
    child_check(status == 0);
    journal_close(journal);
    child_check(try_open("journal", JOURNAL_READ, &journal, &err) == 0);
    child_check(turn_verify(journal) == 3);
    journal_close(journal);
}

/* In a mount namespace of its own, so that nothing is left whatever happens. */
static void use_read_only(int orders, int answers)
{
    char path[PATH_MAX], names_before[256], names_after[256];
    struct journal *journal;
    struct err err;

    (void)orders, (void)answers; /* runs to its end */
    in_scratch(path, "journal");
    child_check(unshare(CLONE_NEWNS) == 0);
    child_check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    child_check(mount(path, path, NULL, MS_BIND, NULL) == 0);
    child_check(mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
    directory_names(path, names_before, sizeof(names_before));
    child_check(try_open("journal", JOURNAL_WRITE, &journal, &err) == ERR_REFUSED);
    child_check(err.os == EROFS);
    child_check(try_open("journal", JOURNAL_READ, &journal, &err) == 0);
    child_check(turn_verify(journal) == 3);
    journal_close(journal);
    write_in_memory();
    directory_names(path, names_after, sizeof(names_after));
    child_check(text_equal(names_before, names_after));
    child_check(mount(NULL, path, NULL, MS_BIND | MS_REMOUNT, NULL) == 0);
    journal = open_journal(JOURNAL_WRITE); /* writable again, and as it was */
    commit_turns(journal, 4, 4);
    child_check(turn_verify(journal) == 4);
    journal_close(journal);
}

static void test_journal_on_a_read_only_file_system_is_read_and_not_written(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: needs root to mount\n");
        skip();
    }
    make_journal(3);
    struct child child = child_start(use_read_only);
    assert_int_equal(child_end(&child), 0);
}

/* --- schemas --- */

static int write_schema(struct store_txn *txn, void *ctx, struct err *err)
{
    return schema_write(txn, *(const uint32_t *)ctx, err);
}

static void set_schema(uint32_t schema)
{
    char path[PATH_MAX];
    struct store_options options = {.path = in_scratch(path, "journal"), .write = true};
    struct store *store;
    struct err err;

    assert_int_equal(store_open(&options, &store, &err), 0);
    assert_int_equal(store_write(store, write_schema, &schema, &err), 0);
    store_close(store);
}

static void test_newer_schema_is_refused_and_left_alone(void **state)
{
    struct journal *journal;
    char path[PATH_MAX];
    struct err err;
    size_t length;

    (void)state;
    make_journal(3);
    set_schema(JOURNAL_SCHEMA + 7);
    unsigned char *before = file_read(in_scratch(path, "journal/data.mdb"), &length);
    for (int mode = JOURNAL_WRITE; mode <= JOURNAL_READ; mode++) {
        assert_int_equal(try_open("journal", (enum journal_mode)mode, &journal, &err),
                         ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "schema 8"));
        assert_non_null(strstr(err.text, "knows 1"));
        assert_unchanged(path, before, length);
    }
    free(before);
}

static void test_older_schema_that_nothing_leads_from_is_refused(void **state)
{
    struct journal *journal;
    struct err err;

    (void)state;
    make_journal(3);
    set_schema(0);
    assert_int_equal(try_open("journal", JOURNAL_WRITE, &journal, &err), ERR_UNSUPPORTED);
    assert_int_equal(try_open("journal", JOURNAL_READ, &journal, &err), ERR_UNSUPPORTED);
    set_schema(1);
    journal_close(open_journal(JOURNAL_WRITE)); /* the refusals have let go of the lock */
}

static int add_greeting(struct store_txn *txn, struct err *err)
{
    struct key key = key_of_text("greeting");

    return value_put(txn, STORE_META, &key, "hello", 5, err);
}

static const struct migration to_one[] = {{.from = 0, .to = 1, .run = add_greeting}};
static const struct migrations known = {.rows = to_one, .count = 1};

static void assert_greeting(struct journal *journal)
{
    struct err err;
    char *bytes;
    size_t length;

    assert_int_equal(journal_meta_read(journal, "greeting", &bytes, &length, &err), 0);
    assert_string_equal(bytes, "hello");
    free(bytes);
}

static void test_older_schema_is_migrated_when_written_and_in_memory_when_read(void **state)
{
    struct journal *journal;
    struct journal_figures figures;
    char path[PATH_MAX], file[PATH_MAX];
    struct err err;
    size_t length;

    (void)state;
    make_journal(3);
    set_schema(0);
    in_scratch(path, "journal");
    unsigned char *before = file_read(in_scratch(file, "journal/data.mdb"), &length);
    assert_int_equal(journal_open_with(path, JOURNAL_READ, &known, &journal, &err), 0);
    assert_greeting(journal);
    assert_int_equal(turn_verify(journal), 3);
    assert_int_equal(journal_freeze(journal, &err), 0);
    journal_thaw(journal);
    journal_close(journal);
    assert_unchanged(file, before, length);
    free(before);

    assert_int_equal(journal_open_with(path, JOURNAL_WRITE, &known, &journal, &err), 0);
    assert_greeting(journal);
    assert_int_equal(journal_figures(journal, &figures, &err), 0);
    assert_int_equal(figures.schema, JOURNAL_SCHEMA);
    commit_turns(journal, 4, 4);
    journal_close(journal);
    journal = open_journal(JOURNAL_READ); /* without the table: it is migrated for good */
    assert_greeting(journal);
    assert_int_equal(turn_verify(journal), 4);
    journal_close(journal);
}

static int fail_migration(struct store_txn *txn, struct err *err)
{
    struct key key = key_of_text("greeting");

    int code = value_put(txn, STORE_META, &key, "half", 4, err);
    return code < 0 ? code : err_set(err, ERR_CORRUPT, "on purpose");
}

static void test_failed_migration_changes_nothing(void **state)
{
    static const struct migration bad_row[] = {{.from = 0, .to = 1, .run = fail_migration}};
    static const struct migrations bad = {.rows = bad_row, .count = 1};
    struct journal *journal;
    char path[PATH_MAX], *bytes;
    struct err err;
    size_t length;

    (void)state;
    make_journal(3);
    set_schema(0);
    in_scratch(path, "journal");
    assert_int_equal(journal_open_with(path, JOURNAL_WRITE, &bad, &journal, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "on purpose"));
    set_schema(1);
    journal = open_journal(JOURNAL_READ);
    assert_int_equal(journal_meta_read(journal, "greeting", &bytes, &length, &err), ERR_GONE);
    assert_int_equal(turn_verify(journal), 3);
    journal_close(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_second_daemon_is_refused_with_the_number_of_the_first),
        TEST(test_lock_of_a_killed_daemon_does_not_block),
        TEST(test_lock_of_a_dying_daemon_is_waited_for),
        TEST(test_closed_journal_is_free_whoever_has_copies_of_its_descriptors),
        TEST(test_same_process_cannot_open_twice),
        TEST(test_quarantine_while_reading_is_refused),
        TEST(test_missing_or_unused_journal_is_gone_and_nothing_is_made),
        TEST(test_newer_schema_is_refused_and_left_alone),
        TEST(test_older_schema_that_nothing_leads_from_is_refused),
        TEST(test_failed_migration_changes_nothing),
        TEST(test_older_schema_is_migrated_when_written_and_in_memory_when_read),
        TEST(test_journal_on_a_read_only_file_system_is_read_and_not_written),
        TEST(test_reader_without_rights_to_the_lock_reads_a_live_journal),
        TEST(test_reader_without_rights_to_the_lock_reads_a_stopped_journal),
        TEST(test_slots_of_killed_readers_are_cleared_and_the_file_stays_small),
        TEST(test_writer_takes_back_the_slots_of_killed_readers_by_itself),
        TEST(test_frozen_reader_sees_one_moment_of_a_live_journal),
        TEST(test_copied_data_file_alone_is_read_and_nothing_is_made),
        TEST(test_new_directory_is_private),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
