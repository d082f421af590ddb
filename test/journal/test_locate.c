/* Which directory a path names, and which machine a key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/journal/scratch.h"

#include <grp.h>

/* --- paths --- */

/* An empty data file in the directory NAME, with all directories above it. */
static void make_journal(const char *name)
{
    char path[PATH_MAX];

    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        char above[PATH_MAX];

        text_format(above, sizeof(above), "%.*s", (int)(slash - name), name);
        (void)mkdir(in_scratch(path, above), 0755); /* may be there */
    }
    assert_int_equal(mkdir(in_scratch(path, name), 0755), 0);
    text_append(path, sizeof(path), "/data.mdb");
    file_write(path, "", 0);
}

static void assert_located(const char *named, const char *wanted)
{
    char path[PATH_MAX], expected[PATH_MAX], found[JOURNAL_PATH_SIZE];
    struct err err = {0};

    assert_int_equal(journal_locate(in_scratch(path, named), found, &err), 0);
    assert_string_equal(found, in_scratch(expected, wanted));
}

static void assert_not_located(const char *path, int code, const char *says)
{
    char found[JOURNAL_PATH_SIZE] = "as it was";
    struct err err = {0};

    assert_int_equal(journal_locate(path, found, &err), code);
    assert_non_null(strstr(err.text, says));
    assert_string_equal(found, "as it was");
}

static void test_locate_takes_the_directory_the_data_directory_and_the_file(void **state)
{
    (void)state;
    make_journal("bare");
    make_journal("node/client/journal");
    make_journal("other/journal");
    assert_located("bare", "bare");
    assert_located("bare/data.mdb", "bare/");
    assert_located("node", "node/client/journal");
    assert_located("node/client", "node/client/journal");
    assert_located("other", "other/journal");
}

static void test_locate_prefers_what_was_named(void **state)
{
    (void)state;
    make_journal("node");
    make_journal("node/journal");
    assert_located("node", "node");
}

static void test_locate_of_a_file_here_is_here(void **state)
{
    char found[JOURNAL_PATH_SIZE], path[PATH_MAX], before[PATH_MAX];
    struct err err;

    (void)state;
    make_journal("bare");
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(in_scratch(path, "bare")), 0);
    assert_int_equal(journal_locate("data.mdb", found, &err), 0);
    assert_string_equal(found, ".");
    assert_int_equal(chdir(before), 0);
}

static void test_locate_without_a_journal_says_where_it_looked(void **state)
{
    char path[PATH_MAX];

    (void)state;
    assert_not_located(in_scratch(path, "nowhere"), ERR_GONE, "no journal at");
    assert_not_located(scratch, ERR_GONE, "/client/journal or ");
    file_write(in_scratch(path, "notes.txt"), "", 0);
    assert_not_located(path, ERR_INVALID, "neither a directory nor a data.mdb");
}

static void test_locate_of_a_long_path_is_no_journal(void **state)
{
    char path[JOURNAL_PATH_SIZE];

    (void)state;
    /* "/scratch/././.": short enough to be opened, too long with the file's name behind it */
    (void)text_copy(path, sizeof(path), scratch);
    while (strlen(path) + 2 < sizeof(path))
        text_append(path, sizeof(path), "/.");
    assert_not_located(path, ERR_GONE, "no journal in");
}

/* As nobody, in a process of its own: root may read everything. */
static void locate_as_nobody(int orders, int answers)
{
    char path[PATH_MAX], found[JOURNAL_PATH_SIZE];
    struct err err = {0};

    (void)orders, (void)answers; /* the status tells */
    child_check(setgroups(0, NULL) == 0);
    child_check(setresgid(65534, 65534, 65534) == 0);
    child_check(setresuid(65534, 65534, 65534) == 0);
    child_check(journal_locate(in_scratch(path, "node"), found, &err) == ERR_REFUSED);
    child_check(strstr(err.text, "may not be read by this user") != NULL);
}

static void test_locate_of_an_unreadable_journal_is_refused(void **state)
{
    char path[PATH_MAX];
    int status;

    (void)state;
    if (geteuid() != 0)
        skip();
    make_journal("node/journal");
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(chmod(in_scratch(path, "node/journal"), 0700), 0);
    struct child child = child_start(locate_as_nobody);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(status, 0);
    close(child.orders);
    close(child.answers);
}

/* --- keys --- */

static void test_key_as_the_journal_prints_it_names_its_machine(void **state)
{
    struct machine_id id;

    (void)state;
    assert_true(journal_id_of_key("task/3f2a91c4/web", &id));
    assert_int_equal(id.kind, MACHINE_TASK);
    assert_string_equal(id.text, "3f2a91c4/web");
    assert_true(journal_id_of_key("plugin/hostpath", &id));
    assert_int_equal(id.kind, MACHINE_PLUGIN);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        char key[JOURNAL_KEY_SIZE];
        text_format(key, sizeof(key), "%s/x", machine_kind_name((enum machine_kind)kind));
        assert_true(journal_id_of_key(key, &id));
        assert_int_equal(id.kind, kind);
        assert_string_equal(id.text, "x");
    }
}

static void test_key_that_names_no_machine_is_refused(void **state)
{
    static const char *const keys[] = {"", "task", "task/", "tasks/x", "raw:02ff", "17", "/x"};
    char longest[MACHINE_ID_SIZE + 16] = "task/";
    struct machine_id id = {.kind = MACHINE_VOLUME};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_false(journal_id_of_key(keys[i], &id));
    memset(longest + 5, 'x', MACHINE_ID_SIZE);
    assert_false(journal_id_of_key(longest, &id));
    assert_int_equal(id.kind, MACHINE_VOLUME);
    longest[5 + MACHINE_ID_SIZE - 1] = '\0';
    assert_true(journal_id_of_key(longest, &id));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_locate_takes_the_directory_the_data_directory_and_the_file),
        TEST(test_locate_prefers_what_was_named),
        TEST(test_locate_of_a_file_here_is_here),
        TEST(test_locate_without_a_journal_says_where_it_looked),
        TEST(test_locate_of_a_long_path_is_no_journal),
        TEST(test_locate_of_an_unreadable_journal_is_refused),
        cmocka_unit_test(test_key_as_the_journal_prints_it_names_its_machine),
        cmocka_unit_test(test_key_that_names_no_machine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
