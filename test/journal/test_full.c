/* A disk that will not take it: nothing changes, and the same batch is taken later (I-18). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/journal/scratch.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

static struct turn_batch turn;

static void commit_turn(struct journal *journal, uint64_t number)
{
    struct err err;

    turn_make(&turn, number);
    int code = journal_commit(journal, &turn.batch, &err);
    if (code != 0)
        fprintf(stderr, "commit: %s\n", err.text);
    check(code == 0);
}

/* --- injected --- */

static void test_injected_error_changes_nothing_and_the_batch_is_taken_later(void **state)
{
    static const struct {
        int os, code;
    } errors[] = {
        {ENOSPC, ERR_FULL},   {EDQUOT, ERR_FULL}, {EIO, ERR_IO},
        {EROFS, ERR_REFUSED}, {ENOMEM, ERR_IO},
    };
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;
    uint64_t number = 1;

    (void)state;
    commit_turn(journal, number);
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        journal_inject(journal, errors[i].os, 1, 2);
        commit_turn(journal, ++number); /* the first goes through */
        turn_make(&turn, number + 1);
        for (int try = 0; try < 2; try++) {
            assert_int_equal(journal_commit(journal, &turn.batch, &err), errors[i].code);
            assert_int_equal(err.code, errors[i].code);
            assert_int_equal(err.os, errors[i].os);
            assert_int_equal(turn_verify(journal), number);
        }
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
        assert_int_equal(turn_verify(journal), ++number);
    }
    journal_close(journal);
    journal = open_journal(JOURNAL_WRITE);
    assert_int_equal(turn_verify(journal), number);
    journal_close(journal);
}

static void test_injected_error_stops_quarantine_too(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;

    (void)state;
    commit_turn(journal, 1);
    journal_inject(journal, EIO, 0, 1);
    assert_int_equal(journal_quarantine(journal, "log", "1", "test", 1, &err), ERR_IO);
    assert_int_equal(turn_verify(journal), 1);
    journal_close(journal);
}

/* --- LMDB's own failures: its descriptors of the data file lead to a full device --- */

/* A descriptor of data.mdb with the access mode MODE (its head pages have one of their own). */
static int find_descriptor(int mode)
{
    char link[PATH_MAX], target[PATH_MAX];

    for (int fd = 0; fd < 256; fd++) {
        text_format(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (text_ends_with(target, "/data.mdb") && (fcntl(fd, F_GETFL) & O_ACCMODE) == mode)
            return fd;
    }
    return -1;
}

static void test_device_full_while_pages_are_written_changes_nothing(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;

    (void)state;
    commit_turn(journal, 1);
    int fd = find_descriptor(O_RDWR);
    assert_true(fd >= 0);
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0), full = open("/dev/full", O_RDWR | O_CLOEXEC);
    assert_true(kept >= 0 && full >= 0);
    assert_int_equal(dup3(full, fd, O_CLOEXEC), fd);
    turn_make(&turn, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(journal_commit(journal, &turn.batch, &err), ERR_FULL);
        assert_int_equal(err.os, ENOSPC);
        assert_int_equal(turn_verify(journal), 1);
    }
    assert_int_equal(dup3(kept, fd, O_CLOEXEC), fd);
    close(kept);
    close(full);
    assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
    assert_int_equal(turn_verify(journal), 2);
    journal_close(journal);
}

/* Where the head page cannot be written, LMDB gives the environment up (MDB_PANIC). */
static void test_device_full_while_the_head_is_written_is_survived_by_reopening(void **state)
{
    struct journal *journal = open_journal(JOURNAL_WRITE);
    struct err err;

    (void)state;
    commit_turn(journal, 1);
    for (uint64_t number = 2; number < 6; number++) {
        int fd = find_descriptor(O_WRONLY), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0 && full >= 0);
        assert_int_equal(dup3(full, fd, O_CLOEXEC), fd);
        close(full);
        turn_make(&turn, number);
        assert_int_equal(journal_commit(journal, &turn.batch, &err), ERR_FULL);
        assert_int_equal(turn_verify(journal), number - 1);
        assert_int_equal(journal_commit(journal, &turn.batch, &err), 0);
        assert_int_equal(turn_verify(journal), number);
    }
    journal_close(journal);
    journal = open_journal(JOURNAL_WRITE);
    assert_int_equal(turn_verify(journal), 5);
    journal_close(journal);
}

/* --- a small file system of its own: root only --- */

static void fill(const char *path)
{
    static const char bytes[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    child_check(fd >= 0);
    while (write(fd, bytes, sizeof(bytes)) > 0)
        continue;
    close(fd);
}

static void use_small_file_system(int orders, int answers)
{
    char path[PATH_MAX], filler[PATH_MAX];
    struct journal *journal;
    struct err err;
    uint64_t number = 0;
    unsigned refused = 0;

    (void)orders, (void)answers; /* runs to its end */
    in_scratch(path, "small");
    child_check(mkdir(path, 0700) == 0);
    child_check(unshare(CLONE_NEWNS) == 0);
    child_check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    child_check(mount("none", path, "tmpfs", 0, "size=2m") == 0);
    in_scratch(filler, "small/filler");
    in_scratch(path, "small/journal");
    child_check(journal_open(path, JOURNAL_WRITE, &journal, &err) == 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++)
            commit_turn(journal, ++number);
        fill(filler);
        for (;;) { /* a few may still find free pages */
            turn_make(&turn, number + 1);
            int code = journal_commit(journal, &turn.batch, &err);
            if (code != 0) {
                child_check(code == ERR_FULL);
                child_check(err.os == ENOSPC);
                refused++;
                break;
            }
            number++;
        }
        child_check(turn_verify(journal) == number);
        child_check(journal_commit(journal, &turn.batch, &err) == ERR_FULL);
        child_check(unlink(filler) == 0);
        child_check(journal_commit(journal, &turn.batch, &err) == 0);
        child_check(turn_verify(journal) == ++number);
    }
    child_check(refused == 3);
    journal_close(journal);
    child_check(journal_open(path, JOURNAL_WRITE, &journal, &err) == 0);
    child_check(turn_verify(journal) == number);
    journal_close(journal);

    fill(filler); /* and one that is full from the start */
    in_scratch(path, "small/another");
    int code = journal_open(path, JOURNAL_WRITE, &journal, &err);
    child_check(code == ERR_FULL);
    child_check(unlink(filler) == 0);
    child_check(journal_open(path, JOURNAL_WRITE, &journal, &err) == 0);
    commit_turn(journal, 1);
    journal_close(journal);
}

static void test_full_file_system_refuses_and_goes_on_when_there_is_room(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: needs root to mount\n");
        skip();
    }
    struct child child = child_start(use_small_file_system);
    assert_int_equal(child_end(&child), 0);
}

/* --- room in reserve --- */

enum { MIB = 1 << 20 };

/* Full to the last block by somebody else, who would take whatever was given back. */
static void use_reserve(int orders, int answers)
{
    char path[PATH_MAX], other[PATH_MAX];
    struct journal *journal;
    struct err err;

    (void)orders, (void)answers; /* runs to its end */
    child_check(mkdir(in_scratch(path, "small"), 0700) == 0);
    child_check(unshare(CLONE_NEWNS) == 0);
    child_check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    child_check(mount("none", path, "tmpfs", 0, "size=48m") == 0);
    child_check(journal_open(in_scratch(path, "small/journal"), JOURNAL_WRITE, &journal, &err) ==
                0);
    journal_reserve(journal, 100 * (uint64_t)MIB); /* 3 MiB of so small a one */
    commit_turn(journal, 1);
    child_check(!journal_is_tight(journal));
    fill(in_scratch(other, "small/filler"));
    uint64_t number = 1;
    while (number < 200)
        commit_turn(journal, ++number);
    child_check(journal_is_tight(journal));
    child_check(turn_verify(journal) == number);
    journal_close(journal);

    child_check(journal_open(path, JOURNAL_WRITE, &journal, &err) == 0); /* it is still there */
    journal_reserve(journal, 100 * (uint64_t)MIB);
    while (number < 250)
        commit_turn(journal, ++number);
    child_check(journal_is_tight(journal));
    child_check(unlink(other) == 0);
    child_check(!journal_is_tight(journal));
    child_check(turn_verify(journal) == number);
    journal_close(journal);
}

static void test_disk_full_to_the_last_block_takes_commits_in_reserve(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    struct child child = child_start(use_reserve);
    assert_int_equal(child_end(&child), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_disk_full_to_the_last_block_takes_commits_in_reserve),
        TEST(test_injected_error_changes_nothing_and_the_batch_is_taken_later),
        TEST(test_injected_error_stops_quarantine_too),
        TEST(test_device_full_while_pages_are_written_changes_nothing),
        TEST(test_device_full_while_the_head_is_written_is_survived_by_reopening),
        TEST(test_full_file_system_refuses_and_goes_on_when_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
