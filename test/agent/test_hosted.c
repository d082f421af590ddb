/*
 * Starts that wait for a host volume whose plugin has not answered since the daemon began
 * (agent/perform/hosted.c): they go on with it, end with a kill, and fail when it takes too long.
 *
 * The file is compiled into this program with a limit of the effect that can be over at once.
 */
#include "test/agent/nodes.h"

static bool limit_is_over;

static void start_limit(struct loop *loop, struct io_timer *timer, uint64_t at_ms,
                        void (*cb)(struct io_timer *timer), void *ctx)
{
    io_timer_start(loop, timer, limit_is_over ? loop_now_ms() : at_ms, cb, ctx);
}

#define io_timer_start start_limit
#include "agent/perform/hosted.c"
#undef io_timer_start

/* --- a node with a plugin --- */

static void path_of(const struct nodes *nodes, const char *name, char to[PATH_SIZE])
{
    assert_int_equal(path_join(to, nodes->scratch.path, name), 0);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, mode), 0);
}

/* It hangs while there is a file "hang". */
static void write_plugin(struct nodes *nodes)
{
    const struct config *config = &nodes->node[0].config;
    char path[PATH_SIZE], script[2 * PATH_SIZE];
    struct err err = {0};

    assert_true(text_format(
        script, sizeof(script),
        "#!/bin/sh\ntest $1 = fingerprint && exit 1\ntest -e %s/hang && exec sleep 600\n"
        "echo '{\"path\": \"/tmp\"}'\n",
        nodes->scratch.path));
    assert_int_equal(directory_make_all(config->host_plugin_dir, 0755, &err), 0);
    assert_int_equal(path_join(path, config->host_plugin_dir, "own"), 0);
    write_file(path, script, 0755);
}

static void hang(struct nodes *nodes, bool does)
{
    char path[PATH_SIZE];

    path_of(nodes, "hang", path);
    if (does)
        write_file(path, "", 0600);
    else
        assert_return_code(unlink(path), 0);
}

static bool first_starts(struct nodes *nodes)
{
    return nodes->node[0].parts->held != NULL;
}

static bool first_is_dead(struct nodes *nodes)
{
    return task_is(&nodes->node[0], T_DEAD);
}

/* A task of which the volume is asked for again, without an answer, and which is to start again. */
static void begin_waiting(struct nodes *nodes)
{
    struct request again = {.text = "to see what happens"};

    write_plugin(nodes);
    node_up(nodes, 0);
    ask_api(nodes, 0, "PUT", "/v1/volume/host/create",
            "{\"Volume\": {\"Name\": \"data\", \"PluginID\": \"own\"}}");
    ask_api(nodes, 0, "PUT", "/v1/jobs",
            "{\"Job\": {\"ID\": \"sleeper\", \"Name\": \"sleeper\", \"Type\": \"service\","
            " \"Datacenters\": [\"dc1\"], \"TaskGroups\": [{\"Name\": \"g\", \"Count\": 1,"
            " \"RestartPolicy\": {\"Attempts\": 1, \"Delay\": 0, \"Interval\": 3600000000000,"
            " \"Mode\": \"fail\"}, \"ReschedulePolicy\": {\"Attempts\": 0, \"Unlimited\": false},"
            " \"Volumes\": {\"v\": {\"Type\": \"host\", \"Source\": \"data\"}},"
            " \"Tasks\": [{\"Name\": \"t\", \"Driver\": \"raw_exec\","
            " \"Config\": {\"command\": \"/bin/sleep\", \"args\": [\"1000\"]}}]}]}}");
    nodes_run_until(nodes, first_runs);
    node_down(nodes, 0);
    hang(nodes, true);
    node_up(nodes, 0);
    nodes_run_until(nodes, first_runs); /* who runs has it */
    struct machine_id alloc = the_alloc(&nodes->node[0]);
    struct machine_id task = machine_id_join(MACHINE_TASK, alloc.text, "t");
    core_tell(nodes->node[0].parts->core, &task, TE_RESTART, &again);
}

static bool has_said(const struct task *task, const char *text)
{
    for (size_t i = 0; i < task->events_count; i++) {
        if (strstr(task->events[i].text, text) != NULL)
            return true;
    }
    return false;
}

/* --- */

static void test_start_goes_on_when_the_plugin_has_answered(void **state)
{
    struct nodes *nodes = *state;

    nodes_need_root();
    begin_waiting(nodes);
    nodes_run_until(nodes, first_starts);
    assert_true(task_is(&nodes->node[0], T_PRESTART));
    node_down(nodes, 0); /* at once, and the plugin ends with it */
    hang(nodes, false);
    node_up(nodes, 0);
    nodes_run_until(nodes, first_runs);
    assert_null(nodes->node[0].parts->held);
    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, first_is_empty);
}

static void test_kill_ends_the_wait(void **state)
{
    struct nodes *nodes = *state;

    nodes_need_root();
    begin_waiting(nodes);
    nodes_run_until(nodes, first_starts);
    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, first_is_empty);
    const struct storage_volume *volume =
        storage_find_hosted(nodes->node[0].parts->host_volumes, "data");
    assert_true(storage_hosted_settles(volume)); /* it hangs still */
}

static void test_wait_ends_when_its_effect_may_last_no_longer(void **state)
{
    struct nodes *nodes = *state;

    nodes_need_root();
    begin_waiting(nodes);
    limit_is_over = true;
    nodes_run_until(nodes, first_is_dead); /* after all attempts that it has */
    limit_is_over = false;
    assert_true(the_task(&nodes->node[0])->failed);
    assert_true(
        has_said(the_task(&nodes->node[0]), "host volume \"data\" is asked for again since"));
    assert_int_equal(the_task(&nodes->node[0])->restarts, 2); /* as asked, and by its policy */
    assert_null(nodes->node[0].parts->held);
    purge_sleeper(nodes, 0);
    nodes_run_until(nodes, first_is_empty);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nodes_make, nodes_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_start_goes_on_when_the_plugin_has_answered),
        TEST(test_kill_ends_the_wait),
        TEST(test_wait_ends_when_its_effect_may_last_no_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
