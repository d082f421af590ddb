/* Where the shim will write: made again before a payload runs; where that cannot be it is said, and
 * the payload runs all the same. */
#include "test/hooks/fixture.h"

static void test_prepare_without_its_alloc_fails_for_good(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(prepare_logs(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "alloc directory is gone");
    assert_false(exists(fixture->root));
}

static void test_prepare_without_the_shared_directory_says_so(void **state)
{
    struct fixture *fixture = *state;

    assert_return_code(mkdir(fixture->root, 0755), 0);
    assert_int_equal(prepare_logs(fixture), 0);
    assert_outcome(fixture, 0, false, "output is lost until this is mended: cannot open alloc");
}

/* A shim that writes as root must not be sent elsewhere. */
static void test_prepare_with_a_link_in_place_of_logs_leaves_it_and_says_so(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(rmdir(in_alloc(fixture, "alloc/logs")), 0);
    assert_return_code(symlink("/etc", in_alloc(fixture, "alloc/logs")), 0);
    assert_int_equal(prepare_logs(fixture), 0);
    assert_outcome(fixture, 0, false, "alloc/logs is not a directory");
}

static void test_prepare_with_read_only_logs_says_so(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(
        mount("tmpfs", in_alloc(fixture, "alloc/logs"), "tmpfs", MS_RDONLY, "size=64k"), 0);
    assert_int_equal(prepare_logs(fixture), 0);
    assert_outcome(fixture, 0, false, "cannot write to alloc/logs: Read-only file system");
    assert_return_code(umount(in_alloc(fixture, "alloc/logs")), 0);
}

static void test_prepare_makes_logs_again_and_keeps_old_ones(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    assert_return_code(rmdir(in_alloc(fixture, "alloc/logs")), 0);
    assert_int_equal(prepare_logs(fixture), 0);
    assert_directory(in_alloc(fixture, "alloc/logs"), 0777, "root");
    put_file(in_alloc(fixture, "alloc/logs/web.stdout.0"), "said before");
    assert_int_equal(prepare_logs(fixture), 0);
    assert_file_is(in_alloc(fixture, "alloc/logs/web.stdout.0"), "said before");
    assert_string_equal(fixture->text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_prepare_without_its_alloc_fails_for_good),
        TEST(test_prepare_without_the_shared_directory_says_so),
        TEST(test_prepare_with_a_link_in_place_of_logs_leaves_it_and_says_so),
        TEST(test_prepare_with_read_only_logs_says_so),
        TEST(test_prepare_makes_logs_again_and_keeps_old_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
