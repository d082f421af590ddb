/* Letting single users into a directory: what was allowed stays, what was not is not. */
#include "test/io/scratch.h"

#include <grp.h>
#include <sys/wait.h>

static const uid_t first = 4242, second = 2424;

static bool can_enter(const char *path, uid_t uid, gid_t gid)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
                      setresuid(uid, uid, uid) == 0 && chdir(path) == 0
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status) == 0;
}

static int open_closed(struct scratch *scratch, mode_t mode)
{
    if (geteuid() != 0) {
        print_message("skipped: needs other users\n");
        skip();
    }
    assert_return_code(chmod(scratch->path, 0711), 0);
    assert_return_code(mkdir(at(scratch, "d"), 0), 0);
    assert_return_code(chown(at(scratch, "d"), 0, 77), 0);
    assert_return_code(chmod(at(scratch, "d"), mode), 0);
    int fd = open(at(scratch, "d"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void test_each_admitted_user_enters_and_no_other(void **state)
{
    struct scratch *scratch = *state;
    int fd = open_closed(scratch, 0700);

    assert_int_equal(directory_admit(fd, first, &scratch->err), 0);
    assert_true(can_enter(at(scratch, "d"), first, first));
    assert_false(can_enter(at(scratch, "d"), second, second));
    assert_int_equal(directory_admit(fd, second, &scratch->err), 0);
    assert_int_equal(directory_admit(fd, first, &scratch->err), 0); /* again */
    assert_true(can_enter(at(scratch, "d"), first, first));
    assert_true(can_enter(at(scratch, "d"), second, second));
    assert_false(can_enter(at(scratch, "d"), 7, 77)); /* its group had nothing, and has nothing */
    assert_int_equal(mode_of(at(scratch, "d")) & 0007, 0);
    assert_return_code(close(fd), 0);
}

/* The mask that comes with the first entry must not take from the group what it had. */
static void test_group_keeps_what_it_had(void **state)
{
    struct scratch *scratch = *state;
    int fd = open_closed(scratch, 0750);

    assert_int_equal(directory_admit(fd, first, &scratch->err), 0);
    assert_int_equal(mode_of(at(scratch, "d")), 0750);
    assert_true(can_enter(at(scratch, "d"), 7, 77));
    assert_true(can_enter(at(scratch, "d"), first, first));
    assert_return_code(close(fd), 0);
}

static void test_list_that_is_full_is_an_error_and_stays(void **state)
{
    struct scratch *scratch = *state;
    int fd = open_closed(scratch, 0700), code = 0;
    uid_t uid = 1000;

    while (code == 0 && uid < 2000)
        code = directory_admit(fd, uid++, &scratch->err);
    assert_int_not_equal(code, 0);
    assert_true(uid > 1100);
    assert_true(can_enter(at(scratch, "d"), 1000, 1000));
    assert_true(can_enter(at(scratch, "d"), uid - 2, uid - 2));
    assert_false(can_enter(at(scratch, "d"), uid - 1, uid - 1));
    assert_return_code(close(fd), 0);
}

static void test_closed_directory_on_the_way_is_named(void **state)
{
    struct scratch *scratch = *state;
    char closed[PATH_SIZE], wanted[PATH_SIZE];

    assert_return_code(chmod(scratch->path, 0711), 0);
    assert_int_equal(directory_make_all(at(scratch, "a/b/c"), 0711, &scratch->err), 0);
    assert_true(directory_is_open(at(scratch, "a/b/c"), closed));
    assert_return_code(chmod(at(scratch, "a/b"), 0710), 0);
    (void)text_copy(wanted, sizeof(wanted), at(scratch, "a/b"));
    assert_false(directory_is_open(at(scratch, "a/b/c"), closed));
    assert_string_equal(closed, wanted);
    assert_false(directory_is_open(at(scratch, "none"), closed));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_each_admitted_user_enters_and_no_other),
        TEST(test_group_keeps_what_it_had),
        TEST(test_list_that_is_full_is_an_error_and_stays),
        TEST(test_closed_directory_on_the_way_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
