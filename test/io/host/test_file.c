/* Files: whole or not at all, nothing followed, bounds kept; directories with exact modes. */
#include "test/io/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

static void test_read_longer_than_allowed_is_refused(void **state)
{
    struct scratch *scratch = *state;
    char *bytes = NULL;
    size_t length = 0;

    put_file(at(scratch, "f"), "12345");
    assert_int_equal(file_read(at(scratch, "f"), 4, &bytes, &length, &scratch->err), ERR_LIMIT);
    assert_null(bytes); /* untouched */
    assert_int_equal(file_read(at(scratch, "f"), 5, &bytes, &length, &scratch->err), 0);
    assert_int_equal(length, 5);
    assert_string_equal(bytes, "12345");
    free(bytes);
}

static void test_read_endless_file_is_refused(void **state)
{
    struct scratch *scratch = *state;
    char *bytes = NULL;
    size_t length = 0;

    /* Says it has no length and gives more than that. */
    assert_int_equal(file_read("/proc/self/maps", 100, &bytes, &length, &scratch->err), ERR_LIMIT);
    assert_int_equal(file_read("/proc/self/maps", 1 << 24, &bytes, &length, &scratch->err), 0);
    assert_true(length > 100);
    assert_int_equal(strlen(bytes), length);
    free(bytes);
}

static void test_read_what_is_no_file_is_refused(void **state)
{
    struct scratch *scratch = *state;
    char *bytes = NULL;
    size_t length = 0;

    assert_int_equal(file_read(at(scratch, "none"), 9, &bytes, &length, &scratch->err), ERR_GONE);
    assert_int_equal(scratch->err.os, ENOENT);
    assert_int_equal(file_read(scratch->path, 9, &bytes, &length, &scratch->err), ERR_INVALID);
    /* A FIFO without a writer would hold a worker for good. */
    assert_return_code(mkfifo(at(scratch, "fifo"), 0600), 0);
    assert_int_equal(file_read(scratch->text, 9, &bytes, &length, &scratch->err), ERR_INVALID);
}

static void test_write_durable_replaces_with_exact_mode(void **state)
{
    struct scratch *scratch = *state;
    mode_t mask = umask(077);

    put_file(at(scratch, "f"), "old");
    assert_int_equal(file_write_durable(at(scratch, "f"), "new one", 7, 0644, &scratch->err), 0);
    umask(mask);
    assert_file_is(at(scratch, "f"), "new one");
    assert_int_equal(mode_of(at(scratch, "f")), 0644);
    assert_false(exists(at(scratch, "f.new")));
}

static void test_write_durable_does_not_follow_what_lies_beside(void **state)
{
    struct scratch *scratch = *state;
    char canary[PATH_SIZE];

    put_file(at(scratch, "canary"), "alive");
    (void)text_copy(canary, sizeof(canary), scratch->text);
    assert_return_code(symlink(canary, at(scratch, "f.new")), 0);
    assert_return_code(symlink(canary, at(scratch, "f")), 0);
    assert_int_equal(file_write_durable(at(scratch, "f"), "x", 1, 0600, &scratch->err), 0);
    assert_file_is(canary, "alive");
    assert_file_is(at(scratch, "f"), "x");
}

static void test_write_durable_that_fails_keeps_the_old_file(void **state)
{
    struct scratch *scratch = *state;
    struct rlimit before, tiny;
    static char large[65536];

    put_file(at(scratch, "f"), "old");
    assert_return_code(getrlimit(RLIMIT_FSIZE, &before), 0);
    tiny = before;
    tiny.rlim_cur = 4096; /* the write runs into a wall in its middle */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    int code = file_write_durable(at(scratch, "f"), large, sizeof(large), 0600, &scratch->err);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(code, ERR_IO);
    assert_int_equal(scratch->err.os, EFBIG);
    assert_file_is(at(scratch, "f"), "old");
    assert_false(exists(at(scratch, "f.new")));
}

static void test_write_durable_into_nothing_says_so(void **state)
{
    struct scratch *scratch = *state;
    char name[300];

    assert_int_equal(file_write_durable(at(scratch, "no/f"), "x", 1, 0600, &scratch->err),
                     ERR_GONE);
    assert_int_equal(file_write_durable("/", "x", 1, 0600, &scratch->err), ERR_INVALID);
    assert_int_equal(file_write_durable("", "x", 1, 0600, &scratch->err), ERR_INVALID);
    assert_int_equal(file_write_durable("..", "x", 1, 0600, &scratch->err), ERR_INVALID);
    memset(name, 'n', sizeof(name));
    name[253] = '\0'; /* a name that has no room for what lies beside it */
    assert_int_equal(file_write_durable(at(scratch, name), "x", 1, 0600, &scratch->err), ERR_LIMIT);
}

static void test_join_bounds_and_slashes(void **state)
{
    char to[PATH_SIZE], big[PATH_SIZE];
    (void)state;

    assert_int_equal(path_join(to, "/a", "b"), 0);
    assert_string_equal(to, "/a/b");
    assert_int_equal(path_join(to, "/a//", "//b/c"), 0);
    assert_string_equal(to, "/a/b/c");
    assert_int_equal(path_join(to, "/", "b"), 0);
    assert_string_equal(to, "/b");
    assert_int_equal(path_join(to, "", "b"), 0);
    assert_string_equal(to, "b");
    assert_int_equal(path_join(to, "a", ""), 0);
    assert_string_equal(to, "a");

    memset(big, 'x', sizeof(big));
    big[PATH_SIZE - 3] = '\0';
    assert_int_equal(path_join(to, big, "b"), 0);
    assert_int_equal(strlen(to), PATH_SIZE - 1);
    assert_int_equal(path_join(to, big, "bb"), ERR_LIMIT);
}

static void test_directory_gets_exact_mode_whatever_was_there(void **state)
{
    struct scratch *scratch = *state;
    mode_t mask = umask(077);

    assert_int_equal(directory_make(at(scratch, "d"), 01777, (uid_t)-1, (gid_t)-1, &scratch->err),
                     0);
    umask(mask);
    assert_int_equal(mode_of(at(scratch, "d")), 01777);
    assert_int_equal(directory_make(at(scratch, "d"), 0700, getuid(), getgid(), &scratch->err), 0);
    assert_int_equal(mode_of(at(scratch, "d")), 0700);
}

static void test_directory_in_place_of_a_file_or_link_is_refused(void **state)
{
    struct scratch *scratch = *state;
    char target[PATH_SIZE];

    put_file(at(scratch, "f"), "");
    assert_int_equal(directory_make(at(scratch, "f"), 0700, (uid_t)-1, (gid_t)-1, &scratch->err),
                     ERR_EXISTS);
    assert_return_code(mkdir(at(scratch, "target"), 0755), 0);
    (void)text_copy(target, sizeof(target), scratch->text);
    assert_return_code(symlink(target, at(scratch, "link")), 0);
    assert_int_equal(directory_make(at(scratch, "link"), 0700, (uid_t)-1, (gid_t)-1, &scratch->err),
                     ERR_EXISTS);
    assert_int_equal(mode_of(target), 0755); /* not changed through the link */
    assert_int_equal(directory_make(at(scratch, "a/b"), 0700, (uid_t)-1, (gid_t)-1, &scratch->err),
                     ERR_GONE);
}

static void test_directory_given_to_another_user(void **state)
{
    struct scratch *scratch = *state;
    struct stat status;

    if (geteuid() != 0) {
        print_message("skipped: giving directories away needs root\n");
        skip();
    }
    assert_int_equal(directory_make(at(scratch, "d"), 02750, 1234, 5678, &scratch->err), 0);
    assert_return_code(stat(at(scratch, "d"), &status), 0);
    assert_int_equal(status.st_uid, 1234);
    assert_int_equal(status.st_gid, 5678);
    assert_int_equal(status.st_mode & 07777u, 02750); /* the new owner did not clear the bit */
}

static void test_make_all_makes_what_is_missing(void **state)
{
    struct scratch *scratch = *state;

    assert_return_code(mkdir(at(scratch, "a"), 0755), 0);
    assert_int_equal(directory_make_all(at(scratch, "a//b/c/"), 0711, &scratch->err), 0);
    assert_int_equal(directory_make_all(at(scratch, "a/b/c"), 0700, &scratch->err), 0);
    assert_int_equal(mode_of(at(scratch, "a")), 0755);
    assert_int_equal(mode_of(at(scratch, "a/b")), 0711);
    assert_int_equal(mode_of(at(scratch, "a/b/c")), 0711);
    assert_int_equal(directory_make_all("/", 0700, &scratch->err), 0);
}

static void test_make_all_through_a_file_is_refused(void **state)
{
    struct scratch *scratch = *state;

    put_file(at(scratch, "f"), "");
    assert_int_not_equal(directory_make_all(at(scratch, "f/b"), 0700, &scratch->err), 0);
    assert_int_equal(scratch->err.os, ENOTDIR);
    assert_int_equal(directory_make_all("", 0700, &scratch->err), ERR_INVALID);
}

struct listed {
    unsigned count, directories, stop_at;
};

static int list_entry(void *ctx, const char *name, unsigned char type)
{
    struct listed *listed = ctx;

    assert_true(text_starts_with(name, "entry"));
    listed->directories += type == DT_DIR;
    return ++listed->count == listed->stop_at ? 7 : 0;
}

static void test_directory_is_listed_from_its_begin_until_told_to_stop(void **state)
{
    struct scratch *scratch = *state;
    char name[32];

    for (int i = 0; i < 100; i++) { /* more than one buffer holds */
        (void)text_format(name, sizeof(name), "entry-with-a-long-name-%d", i);
        assert_return_code(mkdir(at(scratch, name), 0700), 0);
    }
    int fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int again = 0; again < 2; again++) {
        struct listed listed = {0};
        assert_int_equal(directory_each(fd, list_entry, &listed), 0);
        assert_int_equal(listed.count, 100);
        assert_int_equal(listed.directories, 100);
    }
    struct listed few = {.stop_at = 3};
    assert_int_equal(directory_each(fd, list_entry, &few), 7);
    assert_int_equal(few.count, 3);
    close(fd);
    assert_int_equal(directory_each(-1, list_entry, &few), -EBADF);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_read_longer_than_allowed_is_refused),
        TEST(test_read_endless_file_is_refused),
        TEST(test_read_what_is_no_file_is_refused),
        TEST(test_write_durable_replaces_with_exact_mode),
        TEST(test_write_durable_does_not_follow_what_lies_beside),
        TEST(test_write_durable_that_fails_keeps_the_old_file),
        TEST(test_write_durable_into_nothing_says_so),
        TEST(test_join_bounds_and_slashes),
        TEST(test_directory_gets_exact_mode_whatever_was_there),
        TEST(test_directory_in_place_of_a_file_or_link_is_refused),
        TEST(test_directory_given_to_another_user),
        TEST(test_make_all_makes_what_is_missing),
        TEST(test_make_all_through_a_file_is_refused),
        TEST(test_directory_is_listed_from_its_begin_until_told_to_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
