/*
 * Two whole nodes in one process know nothing of each other: neither journals, payloads, APIs,
 * crash points nor failed assertions are mixed up, and one may go and come back.
 */
#include "test/agent/nodes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct proc_identity payload_of(const struct whole *node)
{
    const struct task *task = the_task(node);

    assert_non_null(task);
    return (struct proc_identity){task->process.payload_pid, task->process.payload_ticks};
}

/* Each of its drivers has said how it is, which is journaled. */
static bool second_has_settled(struct nodes *nodes)
{
    const struct parts *parts = nodes->node[1].parts;
    struct driver_info infos[DRIVERS_MAX];

    return json_object_size(json_object_get(parts->health.json, "drivers")) ==
               drivers_list(parts->drivers, infos, COUNT_OF(infos)) &&
           !core_has_work(parts->core);
}

static bool name_it(void *ctx, const char *child)
{
    print_message("left behind: %s\n", child);
    ++*(int *)ctx;
    return true;
}

/* Neither a cgroup nor a file of any payload. */
static void assert_nothing_is_left(const struct whole *node)
{
    char cgroup[CGROUP_NAME_SIZE], path[PATH_SIZE];
    struct err err = {0};
    int left = 0;

    assert_true(text_format(cgroup, sizeof(cgroup), "cairn/%s", node->mark));
    assert_int_equal(cgroup_each_child(cgroup_mode(), cgroup, name_it, &left, &err), 0);
    assert_int_equal(left, 0);
    assert_int_equal(path_join(path, node->config.state_dir, "shim"), 0);
    assert_return_code(rmdir(path), 0);
    assert_return_code(rmdir(node->config.alloc_dir), 0);
}

static void test_one_node_goes_and_comes_back_and_the_other_never_notices(void **state)
{
    struct nodes *nodes = *state;
    struct whole *first = &nodes->node[0], *second = &nodes->node[1];

    nodes_need_root();
    node_up(nodes, 0);
    node_up(nodes, 1);
    assert_string_not_equal(first->parts->node.identity.id, second->parts->node.identity.id);
    assert_string_not_equal(first->mark, second->mark);
    register_sleeper(nodes, 0);
    register_sleeper(nodes, 1);
    nodes_run_until(nodes, both_run);
    nodes_run_until(nodes, second_has_settled);
    struct proc_identity payloads[] = {payload_of(first), payload_of(second)};
    struct machine_id alloc = the_alloc(first);
    assert_int_not_equal(payloads[0].pid, payloads[1].pid);
    assert_string_not_equal(alloc.text, the_alloc(second).text);
    assert_int_equal(core_count(first->parts->core, MACHINE_TASK), 1);

    struct core_figures before = core_figures(second->parts->core);
    uint64_t passed = second->parts->crash.passed;
    node_down(nodes, 0);
    assert_true(proc_is_alive(&payloads[0]));
    node_up(nodes, 0);
    nodes_run_until(nodes, first_runs);
    assert_string_equal(the_alloc(first).text, alloc.text);
    assert_int_equal(payload_of(first).pid, payloads[0].pid);
    assert_true(proc_is_alive(&payloads[0]));
    assert_int_equal(the_task(first)->restarts, 0);
    assert_true(first->parts->crash.passed > 0);
    assert_int_equal(core_figures(second->parts->core).sequence, before.sequence);
    assert_int_equal(second->parts->crash.passed, passed);

    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, first_is_empty);
    assert_false(proc_is_alive(&payloads[0]));
    assert_true(proc_is_alive(&payloads[1]));
    ask_api(nodes, 1, "GET", "/v1/agent/self", "");
    assert_non_null(strstr(nodes->body, second->parts->node.identity.id));
    purge_sleeper(nodes, 1);
    nodes_run_until(nodes, second_is_empty);
    assert_false(proc_is_alive(&payloads[1]));
    node_down(nodes, 0);
    node_down(nodes, 1);
    assert_nothing_is_left(first);
    assert_nothing_is_left(second);
}

/* --- one node a directory --- */

static void test_second_node_on_the_same_directory_is_refused(void **state)
{
    struct nodes *nodes = *state;
    struct err err = {0};

    nodes_need_root();
    node_up(nodes, 0);
    assert_null(daemon_new(&nodes->node[0].config, nodes->loop, NULL, &err));
    assert_int_equal(err.code, ERR_EXISTS);
    assert_non_null(strstr(err.text, "open already"));
    ask_api(nodes, 0, "GET", "/v1/agent/self", ""); /* the first goes on */
}

/* --- a failed assertion --- */

struct last_words {
    char text[16384];
    int status;
    bool spoken;
};

/* Runs within the turn of a node: breaks an assertion there, in a process that may die of it. */
static void break_an_assertion(void *ctx, int code, const struct err *err)
{
    struct last_words *words = ctx;
    int ends[2];
    size_t length = 0;
    (void)code;
    (void)err;

    assert_return_code(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        check(words == NULL);
    }
    assert_return_code(close(ends[1]), 0);
    for (ssize_t got = 1; got > 0; length += (size_t)got) {
        got = read(ends[0], words->text + length, sizeof(words->text) - 1 - length);
        assert_true(got >= 0);
    }
    assert_return_code(close(ends[0]), 0);
    assert_int_equal(waitpid(pid, &words->status, 0), pid);
    words->spoken = true;
}

static struct last_words words;

static bool has_spoken(struct nodes *nodes)
{
    (void)nodes;
    return words.spoken;
}

static void test_failed_assertion_is_told_to_the_node_at_work(void **state)
{
    struct nodes *nodes = *state;
    const struct whole *first = &nodes->node[0], *second = &nodes->node[1];

    nodes_need_root();
    node_up(nodes, 0);
    node_up(nodes, 1);
    register_sleeper(nodes, 0);
    register_sleeper(nodes, 1);
    nodes_run_until(nodes, both_run);
    struct machine_id at_work = the_alloc(second), other = the_alloc(first);
    at_work.text[8] = other.text[8] = '\0'; /* the flight recorder may cut ids */

    memset(&words, 0, sizeof(words));
    purge_sleeper(nodes, 1);
    life_after_commit(second->parts->life, break_an_assertion, &words);
    nodes_run_until(nodes, has_spoken);
    assert_true(WIFSIGNALED(words.status) && WTERMSIG(words.status) == SIGABRT);
    assert_non_null(strstr(words.text, second->parts->node.identity.id));
    assert_non_null(strstr(words.text, at_work.text));
    assert_null(strstr(words.text, first->parts->node.identity.id));
    assert_null(strstr(words.text, other.text));

    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, first_is_empty);
    nodes_run_until(nodes, second_is_empty);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nodes_make, nodes_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_one_node_goes_and_comes_back_and_the_other_never_notices),
        TEST(test_second_node_on_the_same_directory_is_refused),
        TEST(test_failed_assertion_is_told_to_the_node_at_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
