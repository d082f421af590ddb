/* The task's directory: made before each start from what is there, never in place of a lost alloc;
 * secrets end with the task. */
#include "test/hooks/fixture.h"

#include <sys/statvfs.h>

/* A daemon without privileges, in a directory of its own; back with be_root. */
static void be_nobody(struct fixture *fixture)
{
    if (geteuid() == 0) {
        assert_return_code(chown(fixture->scratch.path, 65534, 65534), 0);
        assert_return_code(chown(fixture->alloc_dir, 65534, 65534), 0);
        assert_return_code(seteuid(65534), 0);
    }
    start_hooks(fixture, NULL);
}

static void be_root(void)
{
    if (getuid() == 0)
        assert_return_code(seteuid(0), 0);
}

static bool secrets_mounted(struct fixture *fixture)
{
    int mounted = mount_is_point(AT_FDCWD, in_alloc(fixture, "web/secrets"), &fixture->scratch.err);

    assert_true(mounted >= 0);
    return mounted == 1;
}

/* on a tmpfs or a new disk after a reboot; a fresh empty one would look like success. */
static void test_build_without_its_alloc_fails_for_good(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_task(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "alloc directory is gone");
    assert_false(exists(fixture->root));
    assert_return_code(rmdir(fixture->alloc_dir), 0);
    assert_int_equal(build_task(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "alloc directory is gone");
    assert_false(exists(fixture->alloc_dir));
}

static void test_build_on_a_read_only_file_system_fails(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(mount(fixture->root, fixture->root, NULL, MS_BIND, NULL), 0);
    assert_return_code(mount(NULL, fixture->root, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL), 0);
    assert_int_equal(build_task(fixture), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false, "cannot make web: Read-only file system");
    assert_return_code(umount(fixture->root), 0);
}

static void test_build_with_something_else_on_secrets_fails(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), 0);
    assert_return_code(
        mount(fixture->alloc_dir, in_alloc(fixture, "web/secrets"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(build_task(fixture), ERR_EXISTS);
    assert_outcome(fixture, ERR_EXISTS, false, "something else is mounted on web/secrets");
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), 0);
}

static void test_build_does_not_follow_links_of_the_payload(void **state)
{
    struct fixture *fixture = *state;
    char outside[PATH_SIZE];

    assert_int_equal(path_join(outside, fixture->scratch.path, "outside"), 0);
    assert_return_code(mkdir(outside, 0), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(mkdir(in_alloc(fixture, "web"), 0777), 0);
    assert_return_code(symlink(outside, in_alloc(fixture, "web/local")), 0);
    assert_int_equal(build_task(fixture), ERR_EXISTS);
    assert_outcome(fixture, ERR_EXISTS, false, "web/local is not a directory");
    assert_int_equal(mode_of(outside), 0);
}

/* Its name is the payload's to exchange, and what lies below it would be read without it. */
static void test_secrets_are_mounted_on_an_empty_directory_and_nothing_else(void **state)
{
    struct fixture *fixture = *state;
    char outside[PATH_SIZE], below[PATH_SIZE];

    need_root();
    assert_int_equal(path_join(outside, fixture->scratch.path, "outside"), 0);
    assert_return_code(mkdir(outside, 0), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(mkdir(in_alloc(fixture, "web"), 0777), 0);
    assert_return_code(symlink(outside, in_alloc(fixture, "web/secrets")), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_true(secrets_mounted(fixture));
    assert_int_equal(mode_of(outside), 0);
    assert_int_equal(mount_is_point(AT_FDCWD, outside, &fixture->scratch.err), 0);

    /* After a boot, or an unmount by hand. */
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), 0);
    assert_int_equal(mode_of(in_alloc(fixture, "web/secrets")), 0);
    assert_return_code(mkdir(in_alloc(fixture, "web/secrets/deep"), 0777), 0);
    put_file(in_alloc(fixture, "web/secrets/deep/token"), "old");
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(path_join(below, fixture->scratch.path, "below"), 0);
    assert_return_code(mkdir(below, 0700), 0);
    assert_return_code(mount(in_alloc(fixture, "web"), below, NULL, MS_BIND, NULL), 0);
    assert_int_equal(path_join(outside, below, "secrets/deep"), 0);
    assert_false(exists(outside));
    assert_return_code(umount(below), 0);
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_build_makes_all_directories_with_their_modes(void **state)
{
    struct fixture *fixture = *state;
    struct statvfs status;
    mode_t before = umask(0077); /* must not matter */

    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    (void)umask(before);
    assert_directory(in_alloc(fixture, "web"), 0755, "root");
    assert_directory(in_alloc(fixture, "web/local"), 0755, "root");
    assert_directory(in_alloc(fixture, "web/tmp"), 0700, "root");
    assert_directory(in_alloc(fixture, "web/secrets"), 0700, "root");
    if (geteuid() != 0)
        return;
    assert_true(secrets_mounted(fixture));
    assert_return_code(statvfs(in_alloc(fixture, "web/secrets"), &status), 0);
    assert_int_equal(status.f_blocks * status.f_frsize, 1 << 20);
    const unsigned long wanted = ST_NOEXEC | ST_NOSUID | ST_NODEV;
    assert_int_equal(status.f_flag & wanted, wanted);
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_build_without_root_has_a_plain_secrets_directory(void **state)
{
    struct fixture *fixture = *state;

    be_nobody(fixture);
    int alloc_code = build_alloc(fixture), task_code = build_task(fixture);
    be_root();
    assert_int_equal(alloc_code, 0);
    assert_int_equal(task_code, 0);
    assert_int_equal(mode_of(in_alloc(fixture, "web/secrets")), 0700);
    assert_int_equal(mode_of(in_alloc(fixture, "web/tmp")), 0700);
    assert_false(secrets_mounted(fixture));
}

static void test_build_twice_keeps_files_modes_and_the_mount(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put_file(in_alloc(fixture, "web/local/file"), "kept");
    put_file(in_alloc(fixture, "web/secrets/token"), "kept too");
    assert_return_code(chmod(in_alloc(fixture, "web/local"), 0700), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_file_is(in_alloc(fixture, "web/local/file"), "kept");
    assert_file_is(in_alloc(fixture, "web/secrets/token"), "kept too");
    assert_int_equal(mode_of(in_alloc(fixture, "web/local")), 0700);
    assert_int_equal(destroy_alloc(fixture), 0);
}

/* a reboot takes the tmpfs and leaves the disk. */
static void test_build_after_a_reboot_mounts_secrets_again(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put_file(in_alloc(fixture, "web/local/file"), "kept");
    put_file(in_alloc(fixture, "alloc/data/file"), "kept too");
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), 0);

    assert_int_equal(build_task(fixture), 0);
    assert_true(secrets_mounted(fixture));
    assert_directory(in_alloc(fixture, "web/secrets"), 0700, "root");
    assert_file_is(in_alloc(fixture, "web/local/file"), "kept");
    assert_file_is(in_alloc(fixture, "alloc/data/file"), "kept too");
    assert_int_equal(destroy_alloc(fixture), 0);
}

/* A crash between the mount and its mode. */
static void test_build_finishes_a_mount_that_was_left_half_made(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), 0);
    assert_int_equal(
        mount_small(in_alloc(fixture, "web/secrets"), 1 << 20, 0, &fixture->scratch.err), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_directory(in_alloc(fixture, "web/secrets"), 0700, "root");
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_strip_with_busy_secrets_fails_and_works_later(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    int fd = open(in_alloc(fixture, "web/secrets"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(strip_task(fixture), ERR_AGAIN);
    assert_outcome(fixture, ERR_AGAIN, true, "cannot unmount web/secrets");
    assert_return_code(close(fd), 0);
    assert_int_equal(strip_task(fixture), 0);
}

static void test_strip_takes_secrets_and_nothing_else(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put_file(in_alloc(fixture, "web/local/file"), "kept");
    put_file(in_alloc(fixture, "web/secrets/token"), "s3cret");
    assert_int_equal(strip_task(fixture), 0);
    assert_false(exists(in_alloc(fixture, "web/secrets/token")));
    assert_false(secrets_mounted(fixture));
    assert_file_is(in_alloc(fixture, "web/local/file"), "kept");
    assert_int_equal(strip_task(fixture), 0); /* again, and after a crash in between */

    assert_int_equal(build_task(fixture), 0); /* and the task can come back */
    assert_directory(in_alloc(fixture, "web/secrets"), 0700, "root");
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_strip_without_root_deletes_secrets_from_disk(void **state)
{
    struct fixture *fixture = *state;

    be_nobody(fixture);
    int alloc_code = build_alloc(fixture), task_code = build_task(fixture);
    put_file(in_alloc(fixture, "web/secrets/token"), "s3cret");
    int strip_code = strip_task(fixture);
    be_root();
    assert_int_equal(alloc_code, 0);
    assert_int_equal(task_code, 0);
    assert_int_equal(strip_code, 0);
    assert_false(exists(in_alloc(fixture, "web/secrets/token")));
}

/* A payload that put a link there: the link goes, what it leads to stays, the task can come back.
 */
static void test_strip_takes_a_link_and_not_what_it_leads_to(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    put_file(in_alloc(fixture, "web/local/file"), "kept");
    assert_int_equal(strip_task(fixture), 0);
    assert_return_code(symlink("local", in_alloc(fixture, "web/secrets")), 0);
    assert_int_equal(strip_task(fixture), 0);
    assert_false(exists(in_alloc(fixture, "web/secrets")));
    assert_file_is(in_alloc(fixture, "web/local/file"), "kept");
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_strip_of_what_was_never_made_is_success(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(strip_task(fixture), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(strip_task(fixture), 0);
    assert_false(exists(in_alloc(fixture, "web")));
}

/* "alloc" is the directory that all tasks share. */
static void test_a_task_whose_name_is_no_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"", "..", "../../etc", "alloc"};

    assert_int_equal(build_alloc(fixture), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        fixture->task.name = names[i];
        assert_int_equal(build_task(fixture), ERR_INVALID);
        assert_int_equal(strip_task(fixture), 0);
    }
    assert_true(exists(in_alloc(fixture, "alloc/logs")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_build_without_its_alloc_fails_for_good),
        TEST(test_build_on_a_read_only_file_system_fails),
        TEST(test_build_with_something_else_on_secrets_fails),
        TEST(test_build_does_not_follow_links_of_the_payload),
        TEST(test_secrets_are_mounted_on_an_empty_directory_and_nothing_else),
        TEST(test_build_makes_all_directories_with_their_modes),
        TEST(test_build_without_root_has_a_plain_secrets_directory),
        TEST(test_build_twice_keeps_files_modes_and_the_mount),
        TEST(test_build_after_a_reboot_mounts_secrets_again),
        TEST(test_build_finishes_a_mount_that_was_left_half_made),
        TEST(test_strip_with_busy_secrets_fails_and_works_later),
        TEST(test_strip_takes_secrets_and_nothing_else),
        TEST(test_strip_without_root_deletes_secrets_from_disk),
        TEST(test_strip_takes_a_link_and_not_what_it_leads_to),
        TEST(test_strip_of_what_was_never_made_is_success),
        TEST(test_a_task_whose_name_is_no_directory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
