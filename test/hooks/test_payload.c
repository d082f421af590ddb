/* Payloads of dispatched jobs: written once, into the task's own directory, and nowhere else. */
#include "fsm/results.h"
#include "test/hooks/fixture.h"

static uint8_t results[256];
static uint32_t results_bytes;

static void on_built(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    fixture->outcome = *outcome;
    (void)text_copy(fixture->text, sizeof(fixture->text), outcome->text); /* same size */
    assert_true(outcome->results_bytes <= sizeof(results));
    results_bytes = outcome->results_bytes;
    memcpy(results, outcome->results, results_bytes);
    loop_stop(fixture->loop);
}

/* The hook as the machine runs it, with what it left before. */
static int build(struct fixture *fixture)
{
    const struct hook_run run = {
        .phase = PHASE_PRESTART,
        .hook = TASK_HOOK_TASK_DIR,
        .alloc = &fixture->alloc,
        .task = &fixture->task,
        .results = results,
        .results_bytes = results_bytes,
    };

    hook_run(fixture->hooks, &run, on_built, fixture);
    loop_run(fixture->loop);
    return fixture->outcome.code;
}

static void begin(struct fixture *fixture, const char *file)
{
    results_bytes = 0;
    fixture->alloc.payload = "aGkAeW91"; /* "hi", a NUL, "you" */
    fixture->task.payload_file = file;
    assert_int_equal(build_alloc(fixture), 0);
}

static void assert_payload(struct fixture *fixture, const char *path)
{
    char *bytes;
    size_t length;

    assert_int_equal(
        file_read(in_alloc(fixture, path), 100, &bytes, &length, &fixture->scratch.err), 0);
    assert_int_equal(length, 6);
    assert_memory_equal(bytes, "hi\0you", 6);
    free(bytes);
}

static void test_payload_is_written_byte_for_byte(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "in/deep/file");
    assert_int_equal(build(fixture), 0);
    assert_payload(fixture, "web/local/in/deep/file");
}

/* The task may have moved it, or changed it: a restart brings nothing back. */
static void test_payload_is_written_once(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "file");
    assert_int_equal(build(fixture), 0);
    assert_return_code(unlink(in_alloc(fixture, "web/local/file")), 0);
    assert_int_equal(build(fixture), 0);
    assert_int_equal(build(fixture), 0);
    assert_int_equal(access(in_alloc(fixture, "web/local/file"), F_OK), -1);
}

static void test_task_without_a_file_gets_none(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, "");
    assert_int_equal(build(fixture), 0);
    assert_int_equal(results_bytes, 0);
}

static void test_payload_follows_no_link(void **state)
{
    struct fixture *fixture = *state;
    char outside[PATH_SIZE];

    begin(fixture, "in/file");
    assert_int_equal(path_join(outside, fixture->scratch.path, "outside"), 0);
    assert_return_code(mkdir(outside, 0755), 0);
    fixture->task.payload_file = "";
    assert_int_equal(build(fixture), 0);
    fixture->task.payload_file = "in/file";
    assert_return_code(symlink(outside, in_alloc(fixture, "web/local/in")), 0);
    assert_int_not_equal(build(fixture), 0);
    assert_non_null(strstr(fixture->text, "failed to write the dispatch payload: cannot enter in"));
    assert_return_code(rmdir(outside), 0); /* nothing is in it */
}

static void test_payload_is_the_users(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    need_root();
    begin(fixture, "in/file");
    fixture->task.user = "nobody";
    assert_int_equal(build(fixture), 0);
    assert_return_code(lstat(in_alloc(fixture, "web/local/in/file"), &status), 0);
    assert_int_equal(status.st_uid, getpwnam("nobody")->pw_uid);
    assert_int_equal(status.st_mode & 07777u, 0777);
    assert_directory(in_alloc(fixture, "web/local/in"), 0755, "nobody");
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
        TEST(test_payload_is_written_byte_for_byte),
        TEST(test_payload_is_written_once),
        TEST(test_task_without_a_file_gets_none),
        TEST(test_payload_follows_no_link),
        TEST(test_payload_is_the_users),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
