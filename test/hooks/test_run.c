/* Plans and runs: what a spec needs is in its masks, and every run is answered once, later. */
#include "test/hooks/fixture.h"

static void test_plan_of_an_alloc_has_what_there_is_to_do(void **state)
{
    struct fixture *fixture = *state;
    struct alloc_assign assign = {.hooks_prekill = ~0u, .hooks_postrun = ~0u};

    hooks_plan_alloc(&fixture->alloc, &assign);
    assert_int_equal(assign.hooks_prerun, 1u << ALLOC_HOOK_ALLOC_DIR);
    assert_int_equal(assign.hooks_destroy, 1u << ALLOC_HOOK_ALLOC_DIR);
    assert_int_equal(assign.hooks_prekill, 0);
    assert_int_equal(assign.hooks_postrun, 0);
}

static void test_plan_has_a_network_where_it_is_not_the_hosts(void **state)
{
    struct fixture *fixture = *state;
    static const char *const modes[] = {"bridge", "none", "cni/mine"};
    uint32_t network = 1u << ALLOC_HOOK_NETWORK;
    struct alloc_assign assign = {.disk_from = ""};
    struct task_define define;

    for (size_t i = 0; i < COUNT_OF(modes) + 1; i++) {
        fixture->alloc.network_mode = i < COUNT_OF(modes) ? modes[i] : "host";
        fixture->alloc.has_dns = i == COUNT_OF(modes);
        hooks_plan_alloc(&fixture->alloc, &assign);
        hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, "exec"), &define);
        assert_int_equal(assign.hooks_prerun, 1u << ALLOC_HOOK_ALLOC_DIR | network);
        assert_int_equal(assign.hooks_postrun, network);
        assert_true((define.hooks_prestart & 1u << TASK_HOOK_NETWORK) != 0);
    }
    fixture->alloc.has_dns = false;
    hooks_plan_alloc(&fixture->alloc, &assign);
    assert_int_equal(assign.hooks_prerun, 1u << ALLOC_HOOK_ALLOC_DIR);
}

static void test_plan_of_a_task_follows_its_driver_and_logs(void **state)
{
    struct fixture *fixture = *state;
    struct task_define define = {.hooks_poststart = ~0u, .hooks_prekill = ~0u, .hooks_exited = ~0u};

    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, fixture->task.driver),
                    &define);
    assert_int_equal(define.hooks_prestart, 1u << TASK_HOOK_TASK_DIR | 1u << TASK_HOOK_LOGS);
    assert_int_equal(define.hooks_stop, 1u << TASK_HOOK_TASK_DIR);
    assert_int_equal(define.hooks_poststart | define.hooks_prekill | define.hooks_exited, 0);

    fixture->task.driver = "exec";
    fixture->task.logs.disabled = true;
    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, fixture->task.driver),
                    &define);
    assert_int_equal(define.hooks_prestart, 1u << TASK_HOOK_VALIDATE | 1u << TASK_HOOK_TASK_DIR);
}

static void test_no_hook_left_is_answered_later_with_success(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(run_hook(fixture, PHASE_EXITED, HOOK_NONE, &fixture->task), 0);
    assert_int_equal(run_hook(fixture, PHASE_POSTRUN, HOOK_NONE, NULL), 0);
    fixture->alloc.id = ".."; /* nothing is done: nothing can be wrong */
    assert_int_equal(run_hook(fixture, PHASE_STOP, HOOK_NONE, &fixture->task), 0);
    assert_int_equal(fixture->answers, 3);
}

static void test_a_phase_without_a_step_is_answered_with_success(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(run_hook(fixture, PHASE_STOP, TASK_HOOK_LOGS, &fixture->task), 0);
    assert_false(exists(fixture->root));
}

enum { MANY = 300 };

static void count_outcome(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    assert_int_equal(outcome->code, 0);
    if (++fixture->answers == MANY)
        loop_stop(fixture->loop);
}

/* The spec may go as soon as the call returns. */
static void test_many_runs_at_once_are_each_answered_once(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    fixture->answers = 0;
    for (unsigned i = 0; i < MANY; i++) {
        char *name = malloc(16), *id = strdup(ALLOC_ID);
        assert_non_null(name);
        assert_non_null(id);
        (void)text_format(name, 16, "task-%u", i); /* fits */
        const struct task_spec task = {.name = name,
                                       .driver = "raw_exec",
                                       .user = "",
                                       .payload_file = "",
                                       .identity = {.token = "", .file = ""}};
        const struct alloc_spec alloc = {.id = id, .payload = ""};
        const struct hook_run run = {
            .phase = PHASE_PRESTART, .hook = TASK_HOOK_TASK_DIR, .alloc = &alloc, .task = &task};
        hook_run(fixture->hooks, &run, count_outcome, fixture);
        memset(name, 'x', strlen(name));
        memset(id, 'x', strlen(id));
        free(name);
        free(id);
    }
    loop_run(fixture->loop);
    assert_int_equal(fixture->answers, MANY);
    assert_true(exists(in_alloc(fixture, "task-0/local")));
    assert_true(exists(in_alloc(fixture, "task-299/local")));
    assert_int_equal(destroy_alloc(fixture), 0);
}

/* Each is counted. */
static void build_many_allocs(struct fixture *fixture)
{
    for (unsigned i = 0; i < MANY; i++) {
        char id[UUID_TEXT_SIZE];
        const struct alloc_spec alloc = {.id = id, .payload = ""};
        const struct hook_run run = {
            .phase = PHASE_PRERUN, .hook = ALLOC_HOOK_ALLOC_DIR, .alloc = &alloc};

        (void)text_format(id, sizeof(id), "%08x-0000-4000-8000-000000000000", i); /* fits */
        hook_run(fixture->hooks, &run, count_outcome, fixture);
    }
}

struct witness {
    const struct fixture *fixture;
    int before; /* answers, when this one came */
};

static void on_task(void *ctx, const struct hook_outcome *outcome)
{
    struct witness *witness = ctx;

    assert_int_equal(outcome->code, 0);
    witness->before = (int)witness->fixture->answers;
}

/* Else the first task of a job of many would start behind the directories of its last alloc. */
static void test_a_task_waits_for_some_allocs_and_not_for_all(void **state)
{
    struct fixture *fixture = *state;
    struct witness witness = {.fixture = fixture, .before = -1};
    const struct hook_run run = {.phase = PHASE_PRESTART,
                                 .hook = TASK_HOOK_TASK_DIR,
                                 .alloc = &fixture->alloc,
                                 .task = &fixture->task};

    assert_int_equal(build_alloc(fixture), 0);
    fixture->answers = 0;
    build_many_allocs(fixture);
    hook_run(fixture->hooks, &run, on_task, &witness);
    loop_run(fixture->loop);
    assert_int_equal(fixture->answers, MANY);
    assert_in_range(witness.before, 0, MANY * 9 / 10); /* on a busy machine it takes its time */
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_free_with_runs_under_way_answers_nobody(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(build_alloc(fixture), 0);
    build_many_allocs(fixture); /* most of them wait for room */
    ask(fixture, PHASE_PRESTART, TASK_HOOK_LOGS, &fixture->task);
    ask(fixture, PHASE_EXITED, HOOK_NONE, &fixture->task);
    ask(fixture, PHASE_PRESTART, TASK_HOOK_TASK_DIR, &fixture->task);
    hooks_free(fixture->hooks);
    fixture->hooks = NULL;
    fixture->answers = 0;
    loop_free(fixture->loop); /* waits for the pool */
    assert_int_equal(fixture->answers, 0);

    fixture->loop = loop_new();
    start_hooks(fixture, NULL);
    assert_int_equal(destroy_alloc(fixture), 0);
}

static void test_new_refuses_a_directory_it_cannot_use(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_config config = {.loop = fixture->loop, .node = &fixture->node};
    char path[512] = "/";

    config.alloc_dir = "relative/path";
    assert_null(hooks_new(&config, &fixture->scratch.err));
    assert_int_equal(fixture->scratch.err.code, ERR_INVALID);
    put_file(at(&fixture->scratch, "file"), "");
    config.alloc_dir = at(&fixture->scratch, "file/allocs");
    assert_null(hooks_new(&config, &fixture->scratch.err));
    memset(path + 1, 'x', 400);
    config.alloc_dir = path;
    assert_null(hooks_new(&config, &fixture->scratch.err));
    assert_int_equal(fixture->scratch.err.code, ERR_LIMIT);
}

static void test_paths_are_those_of_nomad(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_paths paths;

    assert_int_equal(hooks_paths(fixture->hooks, ALLOC_ID, "web", &paths, &fixture->scratch.err),
                     0);
    assert_string_equal(paths.root, fixture->root);
    assert_string_equal(paths.shared, in_alloc(fixture, "alloc"));
    assert_string_equal(paths.logs, in_alloc(fixture, "alloc/logs"));
    assert_string_equal(paths.task, in_alloc(fixture, "web"));
    assert_string_equal(paths.local, in_alloc(fixture, "web/local"));
    assert_string_equal(paths.secrets, in_alloc(fixture, "web/secrets"));

    /* Without a task: only what the alloc has. */
    assert_int_equal(hooks_paths(fixture->hooks, ALLOC_ID, NULL, &paths, &fixture->scratch.err), 0);
    assert_string_equal(paths.task, "");
    assert_int_equal(hooks_paths(fixture->hooks, ALLOC_ID, "a/b", &paths, &fixture->scratch.err),
                     ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_plan_of_an_alloc_has_what_there_is_to_do),
        TEST(test_plan_has_a_network_where_it_is_not_the_hosts),
        TEST(test_plan_of_a_task_follows_its_driver_and_logs),
        TEST(test_no_hook_left_is_answered_later_with_success),
        TEST(test_a_phase_without_a_step_is_answered_with_success),
        TEST(test_many_runs_at_once_are_each_answered_once),
        TEST(test_a_task_waits_for_some_allocs_and_not_for_all),
        TEST(test_free_with_runs_under_way_answers_nobody),
        TEST(test_new_refuses_a_directory_it_cannot_use),
        TEST(test_paths_are_those_of_nomad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
