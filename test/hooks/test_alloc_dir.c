/* The alloc's directory: it is whole or the hook fails, and it goes only when nothing is mounted
 * in it any more. */
#include "test/hooks/fixture.h"

static void test_build_in_a_read_only_parent_fails_and_says_so(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_return_code(mount("tmpfs", fixture->alloc_dir, "tmpfs", MS_RDONLY, "size=64k"), 0);
    assert_int_equal(build_alloc(fixture), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false, "Read-only file system");
    assert_false(exists(fixture->root));
    assert_return_code(umount(fixture->alloc_dir), 0);
}

static void test_build_in_a_parent_of_others_fails_without_root(void **state)
{
    struct fixture *fixture = *state;

    if (geteuid() == 0) { /* a daemon without privileges, in a directory that is not its own */
        assert_return_code(chmod(fixture->scratch.path, 0755), 0);
        assert_return_code(chmod(fixture->alloc_dir, 0755), 0);
        assert_return_code(seteuid(65534), 0);
        start_hooks(fixture, NULL);
    } else {
        assert_return_code(chmod(fixture->alloc_dir, 0555), 0);
    }
    int code = build_alloc(fixture);
    if (getuid() == 0)
        assert_return_code(seteuid(0), 0);
    assert_return_code(chmod(fixture->alloc_dir, 0755), 0);
    assert_int_equal(code, ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, false, "Permission denied");
}

static void test_build_with_a_full_file_system_may_be_tried_again(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_return_code(mount("tmpfs", fixture->alloc_dir, "tmpfs", 0, "nr_inodes=3"), 0);
    assert_int_equal(build_alloc(fixture), ERR_FULL);
    assert_outcome(fixture, ERR_FULL, true, "No space left");
    assert_return_code(umount(fixture->alloc_dir), 0);
}

static void test_build_makes_all_directories_with_their_modes(void **state)
{
    struct fixture *fixture = *state;
    mode_t before = umask(0077); /* must not matter */

    assert_int_equal(build_alloc(fixture), 0);
    (void)umask(before);
    assert_int_equal(mode_of(fixture->alloc_dir), 0711);
    assert_directory(fixture->root, 0700, "root");
    assert_directory(in_alloc(fixture, "alloc"), 0777, "root");
    assert_directory(in_alloc(fixture, "alloc/logs"), 0777, "root");
    assert_directory(in_alloc(fixture, "alloc/tmp"), 0777, "root");
    assert_directory(in_alloc(fixture, "alloc/data"), 0777, "root");
}

static void test_build_twice_keeps_what_is_there(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    put_file(in_alloc(fixture, "alloc/data/kept"), "kept");
    assert_return_code(chmod(in_alloc(fixture, "alloc/data"), 0700), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_file_is(in_alloc(fixture, "alloc/data/kept"), "kept");
    assert_int_equal(mode_of(in_alloc(fixture, "alloc/data")), 0700); /* the payload's own */
}

/* A crash between making a directory and giving it its mode leaves one without mode bits. */
static void test_build_finishes_what_a_crash_left_half_made(void **state)
{
    struct fixture *fixture = *state;

    assert_return_code(mkdir(fixture->root, 0), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_directory(fixture->root, 0700, "root");
    assert_return_code(rmdir(in_alloc(fixture, "alloc/tmp")), 0);
    assert_return_code(mkdir(in_alloc(fixture, "alloc/tmp"), 0), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_directory(in_alloc(fixture, "alloc/tmp"), 0777, "root");
}

static void test_build_does_not_follow_a_link_in_its_place(void **state)
{
    struct fixture *fixture = *state;
    char outside[PATH_SIZE];

    assert_int_equal(path_join(outside, fixture->scratch.path, "outside"), 0);
    assert_return_code(mkdir(outside, 0), 0);
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(rmdir(in_alloc(fixture, "alloc/logs")), 0);
    assert_return_code(symlink(outside, in_alloc(fixture, "alloc/logs")), 0);
    assert_int_equal(build_alloc(fixture), ERR_EXISTS);
    assert_outcome(fixture, ERR_EXISTS, false, "alloc/logs is not a directory");
    assert_int_equal(mode_of(outside), 0);
}

static void test_destroy_of_nothing_is_success(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(destroy_alloc(fixture), 0);
    assert_return_code(rmdir(fixture->alloc_dir), 0);
    assert_int_equal(destroy_alloc(fixture), 0);
}

/* I-30, R-46: the canary lies behind a mount that cannot be taken away. */
static void test_destroy_with_a_busy_mount_deletes_nothing(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(mkdir(in_alloc(fixture, "alloc/data/other"), 0755), 0);
    assert_return_code(
        mount("tmpfs", in_alloc(fixture, "alloc/data/other"), "tmpfs", 0, "size=64k"), 0);
    assert_int_equal(build_task(fixture), 0); /* mounted last: the first to be unmounted */
    put_file(in_alloc(fixture, "web/secrets/canary"), "alive");
    put_file(in_alloc(fixture, "web/local/file"), "alive");
    int fd = open(in_alloc(fixture, "web/secrets"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);

    assert_int_equal(destroy_alloc(fixture), ERR_AGAIN);
    assert_outcome(fixture, ERR_AGAIN, true, "cannot unmount " ALLOC_ID "/web/secrets");
    assert_file_is(in_alloc(fixture, "web/secrets/canary"), "alive");
    assert_file_is(in_alloc(fixture, "web/local/file"), "alive");
    /* The other one is not spared by the failure of the first. */
    assert_int_equal(
        mount_is_point(AT_FDCWD, in_alloc(fixture, "alloc/data/other"), &fixture->scratch.err), 0);

    assert_return_code(close(fd), 0);
    assert_int_equal(destroy_alloc(fixture), 0);
    assert_false(exists(fixture->root));
}

/* A volume mounted below: unmounted, and what is on it stays. */
static void test_destroy_unmounts_and_spares_what_was_mounted(void **state)
{
    struct fixture *fixture = *state;
    char volume[PATH_SIZE], canary[PATH_SIZE];

    need_root();
    assert_int_equal(path_join(volume, fixture->scratch.path, "volume"), 0);
    assert_int_equal(path_join(canary, volume, "canary"), 0);
    assert_return_code(mkdir(volume, 0755), 0);
    put_file(canary, "alive");
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_return_code(mkdir(in_alloc(fixture, "web/local/v"), 0755), 0);
    assert_return_code(mount(volume, in_alloc(fixture, "web/local/v"), NULL, MS_BIND, NULL), 0);
    assert_return_code(mkdir(in_alloc(fixture, "web/local/v/deep"), 0755), 0);
    assert_return_code(
        mount("tmpfs", in_alloc(fixture, "web/local/v/deep"), "tmpfs", 0, "size=64k"), 0);

    assert_int_equal(destroy_alloc(fixture), 0);
    assert_false(exists(fixture->root));
    assert_file_is(canary, "alive");
    assert_int_equal(destroy_alloc(fixture), 0); /* twice in a row */
}

static void test_destroy_needs_no_more_of_the_spec_than_its_id(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    fixture->alloc = (struct alloc_spec){.id = ALLOC_ID}; /* a damaged record leaves no more */
    assert_int_equal(destroy_alloc(fixture), 0);
    assert_false(exists(fixture->root));
}

static void test_an_id_that_is_no_name_is_refused_and_deletes_nothing(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ids[] = {"", ".", "..", "../other", "a/b"};

    assert_int_equal(build_alloc(fixture), 0);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        fixture->alloc.id = ids[i];
        assert_int_equal(build_alloc(fixture), ERR_INVALID);
        assert_int_equal(destroy_alloc(fixture), 0); /* nothing can be there: no need to insist */
    }
    assert_true(exists(fixture->root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_build_in_a_read_only_parent_fails_and_says_so),
        TEST(test_build_in_a_parent_of_others_fails_without_root),
        TEST(test_build_with_a_full_file_system_may_be_tried_again),
        TEST(test_build_makes_all_directories_with_their_modes),
        TEST(test_build_twice_keeps_what_is_there),
        TEST(test_build_finishes_what_a_crash_left_half_made),
        TEST(test_build_does_not_follow_a_link_in_its_place),
        TEST(test_destroy_of_nothing_is_success),
        TEST(test_destroy_with_a_busy_mount_deletes_nothing),
        TEST(test_destroy_unmounts_and_spares_what_was_mounted),
        TEST(test_destroy_needs_no_more_of_the_spec_than_its_id),
        TEST(test_an_id_that_is_no_name_is_refused_and_deletes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
