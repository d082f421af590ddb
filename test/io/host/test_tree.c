/* Deleting trees: a canary outside survives whatever the tree holds (I-30). */
#include "io/host.h"

/* The file under test, with a moment between its look at the mount table and its walk. */
static void (*after_look)(void);

static int look_then_wait(int directory_fd, const char *path,
                          bool (*cb)(void *ctx, const char *point), void *ctx, struct err *err)
{
    int code = mount_each_below(directory_fd, path, cb, ctx, err);

    if (after_look != NULL)
        after_look();
    return code;
}

#define mount_each_below look_then_wait
#include "io/host/tree.c"
#undef mount_each_below

#include "test/io/scratch.h"

#include <sys/mount.h>
#include <sys/resource.h>

static void need_root(void)
{
    if (geteuid() != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
}

static void test_missing_tree_is_success(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "none"), &scratch->err), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "no/where"), &scratch->err), 0);
}

static void test_paths_without_a_name_are_refused(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(tree_remove(AT_FDCWD, "/", &scratch->err), ERR_INVALID);
    assert_int_equal(tree_remove(AT_FDCWD, "", &scratch->err), ERR_INVALID);
    assert_int_equal(tree_remove(AT_FDCWD, "..", &scratch->err), ERR_INVALID);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, ".."), &scratch->err), ERR_INVALID);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "."), &scratch->err), ERR_INVALID);
    assert_true(exists(scratch->path));
}

static void test_links_are_deleted_and_not_followed(void **state)
{
    struct scratch *scratch = *state;
    char outside[PATH_SIZE];

    assert_int_equal(directory_make_all(at(scratch, "outside/deep"), 0755, &scratch->err), 0);
    put_file(at(scratch, "outside/canary"), "alive");
    (void)text_copy(outside, sizeof(outside), at(scratch, "outside"));
    assert_int_equal(directory_make_all(at(scratch, "tree/sub"), 0755, &scratch->err), 0);
    assert_return_code(symlink(outside, at(scratch, "tree/link")), 0);
    assert_return_code(symlink("../../outside/canary", at(scratch, "tree/sub/link")), 0);
    assert_return_code(symlink("/", at(scratch, "tree/sub/root")), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
    assert_false(exists(at(scratch, "tree")));
    assert_file_is(at(scratch, "outside/canary"), "alive");

    /* The tree itself being a link: the link goes, its target stays. */
    assert_return_code(symlink(outside, at(scratch, "tree")), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
    assert_false(exists(at(scratch, "tree")));
    assert_file_is(at(scratch, "outside/canary"), "alive");
    assert_true(exists(at(scratch, "outside/deep")));
}

static void test_one_file_is_a_tree(void **state)
{
    struct scratch *scratch = *state;

    put_file(at(scratch, "f"), "x");
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "f"), &scratch->err), 0);
    assert_false(exists(at(scratch, "f")));
}

/* Nesting that no path can name and no descriptor table can hold. */
static void make_deep(const char *start, unsigned depth)
{
    int fd = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    for (unsigned i = 0; i < depth; i++) {
        assert_return_code(mkdirat(fd, "directory-with-a-name", 0755), 0);
        int file = openat(fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        assert_return_code(close(file), 0);
        int next = openat(fd, "directory-with-a-name", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        assert_return_code(close(fd), 0);
        fd = next;
    }
    assert_return_code(close(fd), 0);
}

static void test_nesting_deeper_than_any_path_is_deleted(void **state)
{
    struct scratch *scratch = *state;
    struct rlimit before, few;

    assert_return_code(mkdir(at(scratch, "tree"), 0755), 0);
    /* What it uses for its own purpose exists already. */
    put_file(at(scratch, "tree/.cairn-deleted-0"), "");
    assert_int_equal(directory_make_all(at(scratch, "tree/.cairn-deleted-1/x"), 0755, NULL), 0);
    make_deep(at(scratch, "tree"), 250); /* 22 bytes each: more than 4,096 */
    assert_return_code(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 64;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &few), 0);
    int code = tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, 0);
    assert_false(exists(at(scratch, "tree")));
}

static void test_directory_of_many_files_is_deleted(void **state)
{
    struct scratch *scratch = *state;

    assert_return_code(mkdir(at(scratch, "tree"), 0755), 0);
    int fd = open(at(scratch, "tree"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < 700; i++) { /* more than one read of the directory gives */
        char name[80];
        (void)text_format(name, sizeof(name),
                          "file-with-a-long-name-to-fill-the-buffer-of-readdir-sooner-%d", i);
        assert_return_code(mknodat(fd, name, S_IFREG | 0600, 0), 0);
    }
    assert_return_code(close(fd), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
    assert_false(exists(at(scratch, "tree")));
}

/* As the unprivileged user a developer is: directories that their owner may not enter. */
static void test_closed_directories_are_opened_by_their_owner(void **state)
{
    struct scratch *scratch = *state;
    bool root = geteuid() == 0;

    if (root) {
        assert_return_code(chown(scratch->path, 65534, 65534), 0);
        assert_return_code(seteuid(65534), 0);
    }
    assert_int_equal(directory_make_all(at(scratch, "tree/a/b"), 0755, &scratch->err), 0);
    put_file(at(scratch, "tree/a/b/f"), "x");
    assert_return_code(chmod(at(scratch, "tree/a/b"), 0555), 0);
    assert_return_code(chmod(at(scratch, "tree/a"), 0000), 0);
    int code = tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err);
    if (root)
        assert_return_code(seteuid(0), 0);
    assert_int_equal(code, 0);
    assert_false(exists(at(scratch, "tree")));
}

static void test_mount_in_the_tree_refuses_and_deletes_nothing(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    assert_int_equal(directory_make_all(at(scratch, "tree/a/mnt"), 0755, &scratch->err), 0);
    put_file(at(scratch, "tree/file"), "x");
    assert_int_equal(mount_small(at(scratch, "tree/a/mnt"), 1 << 20, 0755, &scratch->err), 0);
    put_file(at(scratch, "tree/a/mnt/canary"), "alive");

    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), ERR_AGAIN);
    assert_non_null(strstr(scratch->err.text, "tree/a/mnt"));
    assert_true(exists(at(scratch, "tree/file")));
    assert_file_is(at(scratch, "tree/a/mnt/canary"), "alive");
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree/a/mnt"), &scratch->err), ERR_AGAIN);
    assert_file_is(at(scratch, "tree/a/mnt/canary"), "alive");

    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "tree/a/mnt"), &scratch->err), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
    assert_false(exists(at(scratch, "tree")));
}

/* The same file system mounted into the tree: no device number tells, only the mount does. */
static void test_bind_mount_of_a_file_or_directory_refuses(void **state)
{
    struct scratch *scratch = *state;
    char outside[PATH_SIZE];

    need_root();
    assert_return_code(mkdir(at(scratch, "outside"), 0755), 0);
    put_file(at(scratch, "outside/canary"), "alive");
    (void)text_copy(outside, sizeof(outside), at(scratch, "outside"));
    assert_int_equal(directory_make_all(at(scratch, "tree/with space"), 0755, &scratch->err), 0);
    assert_return_code(mount(outside, at(scratch, "tree/with space"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), ERR_AGAIN);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "tree/with space"), &scratch->err), 0);

    put_file(at(scratch, "tree/file"), "");
    (void)text_append(outside, sizeof(outside), "/canary");
    assert_return_code(mount(outside, at(scratch, "tree/file"), NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), ERR_AGAIN);
    assert_int_equal(mount_remove(AT_FDCWD, at(scratch, "tree/file"), &scratch->err), 0);
    assert_file_is(at(scratch, "outside/canary"), "alive");
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
}

/* What a payload or an operator does between the look at the table and the walk. */
static char mount_source[PATH_SIZE], mount_target[PATH_SIZE];

static void mount_now(void)
{
    assert_return_code(mount(mount_source, mount_target, NULL, MS_BIND, NULL), 0);
}

static void test_mount_that_comes_after_the_look_is_not_entered(void **state)
{
    struct scratch *scratch = *state;

    need_root();
    assert_int_equal(directory_make_all(at(scratch, "outside/sub"), 0755, &scratch->err), 0);
    put_file(at(scratch, "outside/sub/canary"), "alive");
    assert_int_equal(directory_make_all(at(scratch, "tree/a/b/c"), 0755, &scratch->err), 0);
    (void)text_copy(mount_source, sizeof(mount_source), at(scratch, "outside"));
    (void)text_copy(mount_target, sizeof(mount_target), at(scratch, "tree/a/b/c"));
    after_look = mount_now;
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), ERR_AGAIN);
    after_look = NULL;
    assert_int_equal(mount_remove(AT_FDCWD, mount_target, &scratch->err), 0);
    assert_file_is(at(scratch, "outside/sub/canary"), "alive");

    assert_int_equal(directory_make_all(at(scratch, "tree"), 0755, &scratch->err), 0);
    put_file(at(scratch, "tree/file"), "");
    (void)text_append(mount_source, sizeof(mount_source), "/sub/canary");
    (void)text_copy(mount_target, sizeof(mount_target), at(scratch, "tree/file"));
    after_look = mount_now;
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), ERR_AGAIN);
    after_look = NULL;
    assert_int_equal(mount_remove(AT_FDCWD, mount_target, &scratch->err), 0);
    assert_file_is(at(scratch, "outside/sub/canary"), "alive");
    assert_int_equal(tree_remove(AT_FDCWD, at(scratch, "tree"), &scratch->err), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_missing_tree_is_success),
        TEST(test_paths_without_a_name_are_refused),
        TEST(test_links_are_deleted_and_not_followed),
        TEST(test_one_file_is_a_tree),
        TEST(test_nesting_deeper_than_any_path_is_deleted),
        TEST(test_directory_of_many_files_is_deleted),
        TEST(test_closed_directories_are_opened_by_their_owner),
        TEST(test_mount_in_the_tree_refuses_and_deletes_nothing),
        TEST(test_bind_mount_of_a_file_or_directory_refuses),
        TEST(test_mount_that_comes_after_the_look_is_not_entered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
