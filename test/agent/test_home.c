/* Where a node is: what counts as the same place, and what a note that says nothing is worth. */
#include "test/io/scratch.h"

#include "agent/node/home.c"

static struct config config;
static struct home home;

static int set_up(void **state)
{
    int code = scratch_make(state);
    struct scratch *scratch = *state;

    config = (struct config){.log_level = "INFO"};
    (void)text_copy(config.data_dir, sizeof(config.data_dir), at(scratch, "data"));
    (void)text_copy(config.state_dir, sizeof(config.state_dir), at(scratch, "data/client"));
    (void)text_copy(config.alloc_dir, sizeof(config.alloc_dir), at(scratch, "data/alloc"));
    assert_int_equal(directory_make_all(config.state_dir, 0700, &scratch->err), 0);
    home = (struct home){.lock_fd = -1};
    return code;
}

static void put_note(struct scratch *scratch, uint64_t inode, int64_t born_ns)
{
    char text[PATH_SIZE];

    (void)unlink(at(scratch, "data/client/home"));
    assert_true(text_format(text, sizeof(text),
                            "{\"file\": {\"inode\": %llu, \"born_ns\": %lld}, \"path\": \"/old\"}",
                            (unsigned long long)inode, (long long)born_ns));
    put_file(at(scratch, "data/client/home"), text);
}

static void test_first_start_and_a_damaged_note_tell_nothing(void **state)
{
    struct scratch *scratch = *state;

    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    put_file(at(scratch, "data/client/home"), "{\"file\": 7, \"path\": ");
    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    put_file(at(scratch, "data/client/home"), "");
    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    assert_false(home.is_known);
    write_note(&config);
    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    assert_true(home.is_known);
}

static void test_birth_decides_and_the_inode_where_there_is_none(void **state)
{
    const struct evidence found = {.inode = 7, .born_ns = 1000};
    const struct evidence old = {.inode = 7, .born_ns = 0};
    (void)state;

    assert_true(is_same(&(struct evidence){.inode = 7, .born_ns = 1000}, &found));
    assert_true(is_same(&(struct evidence){.inode = 8, .born_ns = 1000}, &found)); /* renumbered */
    assert_false(is_same(&(struct evidence){.inode = 7, .born_ns = 1001}, &found));
    assert_true(is_same(&old, &found)); /* the file system tells, but did not then */
    assert_true(is_same(&(struct evidence){.inode = 7, .born_ns = 1001}, &old));
    assert_false(is_same(&(struct evidence){.inode = 8, .born_ns = 1001}, &old));
}

static void test_copy_is_refused_with_what_can_be_done(void **state)
{
    struct scratch *scratch = *state;

    put_note(scratch, 1, 1);
    assert_int_equal(home_open(&home, &config, &scratch->err), ERR_REFUSED);
    assert_non_null(strstr(scratch->err.text, "/old"));
    assert_non_null(strstr(scratch->err.text, "-take-over"));
    assert_non_null(strstr(scratch->err.text, "-new-node"));
    config.take_over = true;
    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    assert_true(home.is_copy);
    assert_true(exists(at(scratch, "data/client/home"))); /* until the lock is taken */
}

/* A crash between two of its steps leaves a copy that is known as one. */
static void test_copy_is_put_aside_with_the_note_last(void **state)
{
    struct scratch *scratch = *state;

    put_note(scratch, 1, 1);
    put_file(at(scratch, "data/client/mark"), "0123abcd");
    assert_return_code(mkdir(at(scratch, "data/client/journal"), 0700), 0);
    assert_return_code(mkdir(at(scratch, "data/client/images"), 0700), 0);
    assert_return_code(mkdir(at(scratch, "data/client/copied.1"), 0700), 0); /* cut off */
    assert_int_equal(directory_make_all(at(scratch, "data/alloc/id"), 0711, &scratch->err), 0);
    config.new_node = true;
    assert_int_equal(home_open(&home, &config, &scratch->err), 0);
    assert_false(home.is_known);
    assert_false(exists(at(scratch, "data/client/home")));
    assert_false(exists(at(scratch, "data/client/journal")));
    assert_false(exists(at(scratch, "data/client/images"))); /* which it would remove */
    assert_file_is(at(scratch, "data/client/copied.2/mark"), "0123abcd");
    assert_true(exists(at(scratch, "data/client/copied.2/home")));
    assert_true(exists(at(scratch, "data/client/copied.2/alloc/id")));
    assert_false(exists(at(scratch, "data/alloc")));
    assert_int_equal(home_open(&home, &config, &scratch->err), 0); /* again: nothing to do */
    assert_false(exists(at(scratch, "data/client/copied.3")));
}

static void test_lock_is_held_by_one_and_let_go(void **state)
{
    struct scratch *scratch = *state;
    struct node node = {.mark = ""};
    struct home second = {.lock_fd = -1};

    if (geteuid() != 0) {
        print_message("skipped: the lock's directory is root's\n");
        skip();
    }
    (void)text_format(node.mark, sizeof(node.mark), "%08x", (unsigned)getpid());
    assert_int_equal(home_take(&home, &config, &node, &scratch->err), 0);
    assert_true(exists(home.lock_path));
    assert_int_equal(home_take(&second, &config, &node, &scratch->err), ERR_REFUSED);
    assert_non_null(strstr(scratch->err.text, "runs already, pid"));
    home_close(&second);
    home_close(&home);
    assert_false(exists(home.lock_path));
    assert_int_equal(home_take(&second, &config, &node, &scratch->err), 0);
    home_close(&second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, scratch_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_first_start_and_a_damaged_note_tell_nothing),
        TEST(test_birth_decides_and_the_inode_where_there_is_none),
        TEST(test_copy_is_refused_with_what_can_be_done),
        TEST(test_copy_is_put_aside_with_the_note_last),
        TEST(test_lock_is_held_by_one_and_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
