/* The hook that fetches: with the real cairn-fetch, from files of the host. */
#include "test/hooks/fixture.h"
#include "test/io/beside.h"

#include <jansson.h>

struct fetched {
    struct fixture *fixture;
    char program[PATH_SIZE], source[PATH_SIZE];
    struct hooks_fetch fetch;
    struct spec_artifact artifact;
    uint8_t results[1024]; /* of the last run that left any */
    uint32_t results_bytes;
};

static struct fetched fetched;

static void on_fetched(void *ctx, const struct hook_outcome *outcome)
{
    on_outcome(ctx, outcome);
    if (outcome->code != 0)
        assert_int_equal(outcome->results_bytes, 0);
    else
        fetched.results_bytes = outcome->results_bytes;
    assert_true(outcome->results_bytes <= sizeof(fetched.results));
    memcpy(fetched.results, outcome->results, outcome->results_bytes);
}

static void begin(struct fixture *fixture)
{
    const struct hook_run run = {
        .phase = PHASE_PRESTART,
        .hook = TASK_HOOK_ARTIFACTS,
        .alloc = &fixture->alloc,
        .task = &fixture->task,
        .results = fetched.results,
        .results_bytes = fetched.results_bytes,
    };

    fixture->answered = false;
    hook_run(fixture->hooks, &run, on_fetched, fixture);
}

static int fetch(struct fixture *fixture)
{
    begin(fixture);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    return fixture->outcome.code;
}

static void write_source(struct fixture *fixture, const char *content)
{
    assert_int_equal(file_write_durable(at(&fixture->scratch, "source"), content, strlen(content),
                                        0644, &fixture->scratch.err),
                     0);
}

static void assert_content(struct fixture *fixture, const char *name, const char *content)
{
    char *bytes;
    size_t length;

    assert_int_equal(
        file_read(in_alloc(fixture, name), 1024, &bytes, &length, &fixture->scratch.err), 0);
    assert_string_equal(bytes, content);
    free(bytes);
}

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    fetched = (struct fetched){.fixture = fixture};
    beside_program(fetched.program, "cairn-fetch");
    fetched.fetch = (struct hooks_fetch){.program = fetched.program,
                                         .variables = "",
                                         .timeout_ms = 60000,
                                         .bytes_max = 1 << 20,
                                         .unpacked_bytes_max = 1 << 20,
                                         .entries_max = 16};
    fixture->fetch = &fetched.fetch;
    start_hooks(fixture, NULL);
    /* Who fetches is a user of its own, who may go there. */
    assert_return_code(chmod(fixture->scratch.path, 0711), errno);
    assert_true(text_format(fetched.source, sizeof(fetched.source), "file://%s",
                            at(&fixture->scratch, "source")));
    fetched.artifact = (struct spec_artifact){
        .source = fetched.source, .destination = "local/", .mode = ARTIFACT_ANY};
    fixture->task.artifacts = &fetched.artifact;
    fixture->task.artifacts_count = 1;
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
    return code;
}

static int clear(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(strip_task(fixture), 0);
    assert_int_equal(destroy_alloc(fixture), 0);
    return fixture_remove(state);
}

static void test_only_tasks_with_artifacts_need_it(void **state)
{
    struct fixture *fixture = *state;
    struct task_define define;

    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, "exec"), &define);
    assert_true((define.hooks_prestart & 1u << TASK_HOOK_ARTIFACTS) != 0);
    fixture->task.artifacts_count = 0;
    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, "exec"), &define);
    assert_true((define.hooks_prestart & 1u << TASK_HOOK_ARTIFACTS) == 0);
}

static void test_what_was_fetched_is_not_fetched_again(void **state)
{
    struct fixture *fixture = *state;

    write_source(fixture, "first");
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "web/local/source", "first");
    assert_true(fetched.results_bytes > 0);
    write_source(fixture, "second");
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "web/local/source", "first");
    assert_true(fetched.results_bytes > 0); /* it stays known */
    fetched.artifact.destination = "local/other";
    assert_int_equal(fetch(fixture), 0); /* which is another one */
    assert_content(fixture, "web/local/other/source", "second");
}

static void test_failure_leaves_nothing_and_may_be_tried_again(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(fetch(fixture), ERR_IO);
    assert_outcome(fixture, ERR_IO, true, "failed to download artifact \"file:///");
    assert_int_equal(fetched.results_bytes, 0);
    write_source(fixture, "there");
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "web/local/source", "there");
}

static void test_what_only_root_may_read_is_not_fetched(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    write_source(fixture, "secret");
    assert_return_code(chmod(at(&fixture->scratch, "source"), 0600), errno);
    assert_int_equal(fetch(fixture), ERR_IO);
    assert_int_not_equal(access(in_alloc(fixture, "web/local/source"), F_OK), 0);
}

static void test_destination_is_in_a_directory_of_the_task(void **state)
{
    struct fixture *fixture = *state;
    static const char *const outside[] = {"local/../../../x", "..", "${NOMAD_ALLOC_DIR}/../data",
                                          "../other/local", "${meta.up}/x"};
    struct spec_pair up = {"up", "local/../.."};

    fixture->node.meta = (struct spec_pairs){&up, 1};
    write_source(fixture, "x");
    for (size_t i = 0; i < COUNT_OF(outside); i++) {
        fetched.artifact.destination = outside[i];
        assert_int_equal(fetch(fixture), ERR_INVALID);
        assert_outcome(fixture, ERR_INVALID, false, "escapes the directories of the task");
    }
    fetched.artifact.destination = "${NOMAD_SECRETS_DIR}/x";
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "web/secrets/x/source", "x");
}

static void test_directory_of_the_alloc_may_be_the_destination(void **state)
{
    struct fixture *fixture = *state;

    write_source(fixture, "x");
    assert_return_code(symlink("/tmp", in_alloc(fixture, "alloc/data/link")), errno);
    assert_return_code(symlink("../web/local", in_alloc(fixture, "alloc/data/near")), errno);
    fetched.artifact.destination = "../alloc/data/link";
    assert_int_equal(fetch(fixture), ERR_IO);
    assert_int_not_equal(access("/tmp/source", F_OK), 0);
    fetched.artifact.destination = "../alloc/data/near";
    assert_int_equal(fetch(fixture), ERR_IO);
    assert_false(exists(in_alloc(fixture, "web/local/source")));
    fetched.artifact.destination = "../alloc/data/own";
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "alloc/data/own/source", "x");
    assert_false(exists(in_alloc(fixture, "web/data")));
    fetched.artifact.destination = "${NOMAD_ALLOC_DIR}/other";
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "alloc/other/source", "x");
}

static void test_what_secrets_have_lost_is_fetched_again(void **state)
{
    struct fixture *fixture = *state;

    need_root();
    write_source(fixture, "x");
    fetched.artifact.destination = "secrets";
    assert_int_equal(fetch(fixture), 0);
    assert_return_code(unlink(in_alloc(fixture, "web/secrets/source")), errno);
    assert_int_equal(fetch(fixture), 0); /* it is the task's to delete it */
    assert_false(exists(in_alloc(fixture, "web/secrets/source")));
    assert_return_code(umount(in_alloc(fixture, "web/secrets")), errno);
    assert_int_equal(build_task(fixture), 0);
    assert_int_equal(fetch(fixture), 0);
    assert_content(fixture, "web/secrets/source", "x");
}

static void test_link_in_the_way_is_not_followed(void **state)
{
    struct fixture *fixture = *state;

    write_source(fixture, "x");
    assert_return_code(symlink("/tmp", in_alloc(fixture, "web/local/link")), errno);
    fetched.artifact.destination = "local/link";
    assert_int_equal(fetch(fixture), ERR_IO);
    assert_int_not_equal(access("/tmp/source", F_OK), 0);
}

/* A source that nobody writes to is read for ever. */
static void make_endless(struct fixture *fixture)
{
    assert_return_code(mkfifo(at(&fixture->scratch, "source"), 0644), errno);
}

static void test_one_that_nobody_waits_for_ends(void **state)
{
    struct fixture *fixture = *state;

    make_endless(fixture);
    begin(fixture);
    hooks_abort(fixture->hooks, ALLOC_ID, "other");
    hooks_abort(fixture->hooks, ALLOC_ID, "web");
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    assert_outcome(fixture, ERR_CANCELED, false, "nobody waits");
}

static void test_one_under_way_does_not_outlive_the_hooks(void **state)
{
    struct fixture *fixture = *state;

    make_endless(fixture);
    begin(fixture);
    hooks_free(fixture->hooks);
    fixture->hooks = NULL;
    start_hooks(fixture, NULL);
    assert_false(fixture->answered);
}

static void test_agent_that_fetches_nothing_says_so(void **state)
{
    struct fixture *fixture = *state;

    fixture->fetch = NULL;
    start_hooks(fixture, NULL);
    assert_int_equal(fetch(fixture), ERR_UNSUPPORTED);
    fetched.fetch.program = "/nonexistent/cairn-fetch";
    fixture->fetch = &fetched.fetch;
    start_hooks(fixture, NULL);
    assert_int_equal(fetch(fixture), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "/nonexistent/cairn-fetch");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_only_tasks_with_artifacts_need_it),
        TEST(test_what_was_fetched_is_not_fetched_again),
        TEST(test_failure_leaves_nothing_and_may_be_tried_again),
        TEST(test_what_only_root_may_read_is_not_fetched),
        TEST(test_destination_is_in_a_directory_of_the_task),
        TEST(test_directory_of_the_alloc_may_be_the_destination),
        TEST(test_what_secrets_have_lost_is_fetched_again),
        TEST(test_link_in_the_way_is_not_followed),
        TEST(test_one_that_nobody_waits_for_ends),
        TEST(test_one_under_way_does_not_outlive_the_hooks),
        TEST(test_agent_that_fetches_nothing_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
