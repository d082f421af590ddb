/* The token of a task: in a file that only its user reads, there before each start, and in the
 * environment of nobody else. */
#include "test/hooks/fixture.h"

static void begin(struct fixture *fixture, const char *file, const char *user)
{
    fixture->task.identity = (struct spec_identity){.token = "a.b-c.d_e", .file = file};
    fixture->task.user = user;
    assert_int_equal(build_alloc(fixture), 0);
}

static void assert_token(struct fixture *fixture, const char *path, const char *token,
                         const char *user)
{
    struct stat status;
    char *bytes;
    size_t length;

    assert_int_equal(
        file_read(in_alloc(fixture, path), 100, &bytes, &length, &fixture->scratch.err), 0);
    assert_int_equal(length, strlen(token));
    assert_memory_equal(bytes, token, length);
    free(bytes);
    assert_return_code(lstat(in_alloc(fixture, path), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600u);
    assert_int_equal(status.st_uid, user[0] == '\0' ? geteuid() : getpwnam(user)->pw_uid);
}

static void test_root_has_it_for_itself(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "secrets/nomad_token", "");
    assert_int_equal(build_task(fixture), 0);
    assert_token(fixture, "web/secrets/nomad_token", "a.b-c.d_e", "");
}

static void test_it_is_the_users(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    begin(fixture, "local/in/token", "nobody");
    assert_int_equal(build_task(fixture), 0);
    assert_token(fixture, "web/local/in/token", "a.b-c.d_e", "nobody");
    assert_directory(in_alloc(fixture, "web/local/in"), 0755, "nobody");
}

/* As after a reboot, which empties `secrets`, or a task that cleans up. */
static void test_it_is_there_before_each_start(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "secrets/nomad_token", "");
    assert_int_equal(build_task(fixture), 0);
    assert_return_code(unlink(in_alloc(fixture, "web/secrets/nomad_token")), 0);
    assert_int_equal(build_task(fixture), 0);
    assert_token(fixture, "web/secrets/nomad_token", "a.b-c.d_e", "");
    fixture->task.identity.token = "another";
    assert_int_equal(build_task(fixture), 0);
    assert_token(fixture, "web/secrets/nomad_token", "another", "");
}

static void test_what_was_there_is_replaced_and_no_link_followed(void **state)
{
    struct fixture *fixture = *state;
    char outside[PATH_SIZE];

    begin(fixture, "", "");
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(path_join(outside, fixture->scratch.path, "outside"), 0);
    assert_return_code(mkdir(outside, 0755), 0);
    assert_return_code(symlink(outside, in_alloc(fixture, "web/local/in")), 0);
    fixture->task.identity.file = "local/in/token";
    assert_int_not_equal(build_task(fixture), 0);
    assert_non_null(strstr(fixture->text, "failed to write the identity token: cannot enter in"));
    assert_null(strstr(fixture->text, "a.b-c"));
    assert_return_code(rmdir(outside), 0); /* nothing is in it */
    assert_return_code(symlink("/dev/null", in_alloc(fixture, "web/local/token")), 0);
    fixture->task.identity.file = "local/token";
    assert_int_equal(build_task(fixture), 0);
    assert_token(fixture, "web/local/token", "a.b-c.d_e", "");
}

static void test_without_a_file_there_is_none(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "", "");
    fixture->task.identity.env = true;
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(access(in_alloc(fixture, "web/secrets/nomad_token"), F_OK), -1);
}

static int end(void **state)
{
    int code = strip_task(*state);

    return fixture_remove(state) != 0 || code != 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_root_has_it_for_itself),
        TEST(test_it_is_the_users),
        TEST(test_it_is_there_before_each_start),
        TEST(test_what_was_there_is_replaced_and_no_link_followed),
        TEST(test_without_a_file_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
