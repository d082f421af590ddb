/* Mounting where the kernel has no calls to make a mount first and attach it then: on the directory
 * that was opened, and on no other. */
#include "test/io/scratch.h"

#include <sys/mount.h>

static void (*before_mount)(void);

static int no_fsopen(const char *name, unsigned flags)
{
    (void)name;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

static int mount_later(const char *source, const char *target, const char *type,
                       unsigned long flags, const void *data)
{
    if (before_mount != NULL)
        before_mount();
    return mount(source, target, type, flags, data);
}

#define fsopen no_fsopen
#define mount mount_later
#include "io/host/mount.c"
#include "io/host/mount_make.c"
#undef mount
#undef fsopen

static const struct mount_tmpfs small = {.size_bytes = 65536, .mode = 0700, .uid = 7, .gid = 8};

static struct scratch *moving;

/* What a payload does between the look and the mount. */
static void move_target(void)
{
    char target[PATH_SIZE];

    (void)text_copy(target, sizeof(target), at(moving, "a/t"));
    assert_return_code(rename(target, at(moving, "a/moved")), 0);
    assert_return_code(symlink("../outside", target), 0);
}

static int open_a(struct scratch *scratch)
{
    assert_int_equal(directory_make_all(at(scratch, "a/t"), 0755, &scratch->err), 0);
    assert_return_code(mkdir(at(scratch, "outside"), 0755), 0);
    int fd = open(at(scratch, "a"), O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
}

static void test_tmpfs_is_whole_and_goes_again(void **state)
{
    struct scratch *scratch = *state;
    struct stat status;

    need_root();
    int fd = open_a(scratch);
    assert_int_equal(mount_tmpfs(fd, "t", &small, &scratch->err), 0);
    assert_int_equal(mount_is_point(fd, "t", &scratch->err), 1);
    assert_return_code(stat(at(scratch, "a/t"), &status), 0);
    assert_int_equal(status.st_mode & 07777u, 0700);
    assert_int_equal(status.st_uid, 7);
    assert_int_equal(status.st_gid, 8);
    assert_int_equal(mount_remove(fd, "t", &scratch->err), 0);
    assert_int_equal(mount_is_point(fd, "t", &scratch->err), 0);
    assert_return_code(close(fd), 0);
}

static void test_directory_moved_before_the_mount_keeps_none(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    int fd = open_a(scratch);
    moving = scratch;
    before_mount = move_target;
    assert_int_equal(mount_tmpfs(fd, "t", &small, &scratch->err), ERR_AGAIN);
    before_mount = NULL;
    assert_int_equal(mount_is_point(fd, "moved", &scratch->err), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "outside"), &scratch->err), 0);
    assert_int_not_equal(mount_tmpfs(fd, "t", &small, &scratch->err), 0); /* a link by now */
    assert_int_equal(mount_is_point(AT_FDCWD, at(scratch, "outside"), &scratch->err), 0);
    assert_return_code(close(fd), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_tmpfs_is_whole_and_goes_again),
        TEST(test_directory_moved_before_the_mount_keeps_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
