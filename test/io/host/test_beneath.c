/* Opening beneath a directory: by the kernel and by hand alike, and while names are exchanged. */
#include "test/io/swapper.h"

#include <sys/syscall.h>

/* The file under test, on a kernel that may lack the call. */
static bool kernel_is_old;

static long old_or_new(long number, long a, const char *path, const void *how, size_t size)
{
    if (kernel_is_old) {
        errno = ENOSYS;
        return -1;
    }
    return syscall(number, a, path, how, size);
}

#define syscall old_or_new
#include "io/host/beneath.c"
#undef syscall

enum { ROUNDS = 20000, MOST_ROUNDS = 1000 * ROUNDS };

static int root_of(struct scratch *scratch)
{
    int fd = open(at(scratch, "a"), O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

/* a/b/c/file, links in and out of a, and a file that lies beside it. */
static int set_up(void **state)
{
    int code = scratch_make(state);
    struct scratch *scratch = *state;
    char outside[PATH_SIZE];

    assert_int_equal(directory_make_all(at(scratch, "a/b/c"), 0755, &scratch->err), 0);
    put_file(at(scratch, "a/b/c/file"), "inside");
    put_file(at(scratch, "beside"), "beside");
    (void)text_copy(outside, sizeof(outside), at(scratch, "beside"));
    assert_return_code(symlink("b/c", at(scratch, "a/in")), 0);
    assert_return_code(symlink("file", at(scratch, "a/b/c/link")), 0);
    assert_return_code(symlink("..", at(scratch, "a/out")), 0);
    assert_return_code(symlink(outside, at(scratch, "a/absolute")), 0);
    assert_return_code(symlink("/proc/self/cwd", at(scratch, "a/magic")), 0);
    kernel_is_old = false;
    return code;
}

static int try(struct scratch *scratch, const char *path, int flags)
{
    int root = root_of(scratch), fd = beneath_open(root, path, flags, 0644);

    assert_return_code(close(root), 0);
    if (fd >= 0)
        assert_return_code(close(fd), 0);
    return fd < 0 ? fd : 0;
}

static int follow(struct scratch *scratch, const char *path)
{
    int root = root_of(scratch), fd = beneath_follow(root, path, O_RDONLY);

    assert_return_code(close(root), 0);
    if (fd >= 0)
        assert_return_code(close(fd), 0);
    return fd < 0 ? fd : 0;
}

static void assert_nothing_is_followed(struct scratch *scratch)
{
    char long_name[NAME_SIZE + 8];

    assert_int_equal(try(scratch, "b/c/file", O_RDONLY), 0);
    assert_int_equal(try(scratch, "/b//./c/file", O_RDONLY), 0);
    assert_int_equal(try(scratch, "b/c/", O_RDONLY | O_DIRECTORY), 0);
    assert_int_equal(try(scratch, "", O_RDONLY | O_DIRECTORY), 0);
    assert_int_equal(try(scratch, "/", O_PATH), 0);
    assert_int_equal(try(scratch, "b/c/new", O_WRONLY | O_CREAT | O_EXCL), 0);
    assert_return_code(unlink(at(scratch, "a/b/c/new")), 0);

    assert_int_equal(try(scratch, "b/c/link", O_RDONLY), -ELOOP);
    assert_int_equal(try(scratch, "b/c/link", O_PATH), -ELOOP);
    assert_int_equal(try(scratch, "b/c/link", O_WRONLY | O_CREAT), -ELOOP);
    assert_int_equal(try(scratch, "in", O_PATH | O_DIRECTORY), -ELOOP);
    assert_int_equal(try(scratch, "in/file", O_RDONLY), -ELOOP);
    assert_int_equal(try(scratch, "out/beside", O_RDONLY), -ELOOP);
    assert_int_equal(try(scratch, "absolute", O_RDONLY), -ELOOP);
    assert_int_equal(try(scratch, "magic/x", O_RDONLY), -ELOOP);
    assert_int_equal(try(scratch, "../beside", O_RDONLY), -EXDEV);
    assert_int_equal(try(scratch, "b/../../beside", O_RDONLY), -EXDEV);
    assert_int_equal(try(scratch, "none/file", O_RDONLY), -ENOENT);
    assert_int_equal(try(scratch, "b/c/file/x", O_RDONLY), -ENOTDIR);
    memset(long_name, 'x', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    assert_int_equal(try(scratch, long_name, O_RDONLY), -ENAMETOOLONG);

    assert_int_equal(follow(scratch, "b/c/file"), 0);
    assert_int_not_equal(follow(scratch, "out/beside"), 0);
    assert_int_not_equal(follow(scratch, "absolute"), 0);
    assert_int_not_equal(follow(scratch, "magic/x"), 0);
    assert_int_equal(follow(scratch, "../beside"), -EXDEV);
}

static void test_nothing_is_followed_and_nothing_outside_is_opened(void **state)
{
    assert_nothing_is_followed(*state);
    assert_int_equal(follow(*state, "in/link"), 0); /* for readers, what stays inside is */
}

static void test_an_old_kernel_is_walked_by_hand_with_the_same_answers(void **state)
{
    kernel_is_old = true;
    assert_nothing_is_followed(*state);
    assert_int_equal(follow(*state, "in/link"), -ELOOP); /* no promise, no link */
}

static void test_a_place_is_what_was_opened_whatever_has_its_name(void **state)
{
    struct scratch *scratch = *state;
    int root = root_of(scratch), place = beneath_open(root, "b/c/file", O_PATH, 0);
    char bytes[8] = "", moved[PATH_SIZE];

    assert_true(place >= 0);
    (void)text_copy(moved, sizeof(moved), at(scratch, "moved"));
    assert_return_code(rename(at(scratch, "a/b/c/file"), moved), 0);
    put_file(at(scratch, "a/b/c/file"), "another");
    assert_int_equal(place_chmod(place, 0600), 0);
    assert_int_equal(mode_of(moved), 0600);
    int fd = place_open(place, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes) - 1), 6);
    assert_string_equal(bytes, "inside");
    assert_return_code(close(fd), 0);
    assert_return_code(close(place), 0);
    assert_return_code(close(root), 0);
}

static void race(struct scratch *scratch)
{
    struct swapper swapper = {.pid = 0};
    char above[PATH_SIZE], at_b[PATH_SIZE];
    const struct swap swaps[] = {{above, "b"}, {at_b, "c"}};
    unsigned rounds = 0, worked = 0, refused = 0;
    int root = root_of(scratch);

    swapper_open(&swapper, scratch);
    (void)text_copy(above, sizeof(above), at(scratch, "a"));
    (void)text_copy(at_b, sizeof(at_b), at(scratch, "a/b"));
    assert_return_code(chown(above, SWAPPER_USER, SWAPPER_USER), 0);
    assert_return_code(chown(at_b, SWAPPER_USER, SWAPPER_USER), 0);
    swapper_run(&swapper, swaps, COUNT_OF(swaps));
    /* A swapper that waits for a processor leaves one answer to all rounds: until both are seen. */
    for (; rounds < ROUNDS || (rounds < MOST_ROUNDS && (worked == 0 || refused == 0)); rounds++) {
        int fd = beneath_open(root, "b/c/made", O_WRONLY | O_CREAT, 0644);

        worked += fd >= 0;
        refused += fd == -ELOOP;
        if (fd >= 0)
            assert_return_code(close(fd), 0);
    }
    swapper_stop(&swapper);
    assert_outside_untouched(&swapper);
    print_message("%u of %u were opened, %u met a link\n", worked, rounds, refused);
    assert_true(worked > 0);
    assert_true(refused > 0);
    assert_return_code(close(root), 0);
}

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: needs a second user\n");
        skip();
    }
}

static void test_links_swapped_in_meanwhile_are_refused(void **state)
{
    need_root();
    race(*state);
}

static void test_links_swapped_in_meanwhile_are_refused_by_hand(void **state)
{
    need_root();
    kernel_is_old = true;
    race(*state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_followed_and_nothing_outside_is_opened),
        TEST(test_an_old_kernel_is_walked_by_hand_with_the_same_answers),
        TEST(test_a_place_is_what_was_opened_whatever_has_its_name),
        TEST(test_links_swapped_in_meanwhile_are_refused),
        TEST(test_links_swapped_in_meanwhile_are_refused_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
