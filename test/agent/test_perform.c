/* Effects, news and the sweep (agent/perform/perform.c), through whole nodes. */
#include "test/agent/nodes.h"

#include <sys/mount.h>

/* --- a specification that is lost --- */

static void lose_spec(const struct whole *node, const char *alloc)
{
    char path[PATH_SIZE];
    struct journal *journal;
    struct journal_blob gone = {.key = ""};
    struct journal_batch batch = {.specs = &gone, .specs_count = 1};
    struct err err = {0};

    assert_int_equal(path_join(path, node->config.state_dir, "journal"), 0);
    assert_int_equal(journal_open(path, JOURNAL_WRITE, &journal, &err), 0);
    assert_true(text_format(gone.key, sizeof(gone.key), "alloc/%s", alloc));
    assert_int_equal(journal_commit(journal, &batch, &err), 0);
    journal_close(journal);
}

static bool first_is_dead(struct nodes *nodes)
{
    return task_is(&nodes->node[0], T_DEAD);
}

static bool has_said(const struct task *task, const char *text)
{
    for (size_t i = 0; i < task->events_count; i++) {
        if (strstr(task->events[i].text, text) != NULL)
            return true;
    }
    return false;
}

static void test_task_without_its_specification_runs_on_and_does_not_start_again(void **state)
{
    struct nodes *nodes = *state;
    const struct whole *first = &nodes->node[0];
    struct request again = {.text = "to see what happens"};

    nodes_need_root();
    node_up(nodes, 0);
    register_sleeper(nodes, 0);
    nodes_run_until(nodes, first_runs);
    struct machine_id alloc = the_alloc(first);
    node_down(nodes, 0);
    lose_spec(first, alloc.text);
    node_up(nodes, 0);
    nodes_run_until(nodes, first_runs);

    struct machine_id task = machine_id_join(MACHINE_TASK, alloc.text, "t");
    core_tell(first->parts->core, &task, TE_RESTART, &again);
    nodes_run_until(nodes, first_is_dead);
    assert_true(the_task(first)->failed);
    assert_true(has_said(the_task(first), "no such entry"));
    purge_sleeper(nodes, 0); /* every teardown goes without it */
    nodes_run_until(nodes, first_is_empty);
}

/* --- what has no adapter --- */

static const struct plugin *the_plugin(const struct whole *node)
{
    struct machine_id id = {.text = ""};

    core_each(node->parts->core, MACHINE_PLUGIN, first_is, &id);
    const struct machine *record = core_find(node->parts->core, &id);
    return record != NULL ? plugin_of(record) : NULL;
}

static bool plugin_has_failed(struct nodes *nodes)
{
    const struct plugin *plugin = the_plugin(&nodes->node[0]);

    return plugin != NULL && plugin->failure[0] != '\0';
}

static void test_plugin_fails_for_good_and_says_why(void **state)
{
    struct nodes *nodes = *state;
    struct machine_id id =
        machine_id_join(MACHINE_PLUGIN, "0f2a91c4-1111-4222-8333-444455556666", "disks");
    struct plugin_define define = {.supervised = 0, .plugin = "disks"};

    nodes_need_root();
    node_up(nodes, 0);
    core_tell(nodes->node[0].parts->core, &id, PE_DEFINE, &define);
    nodes_run_until(nodes, plugin_has_failed);
    const struct plugin *plugin = the_plugin(&nodes->node[0]);
    assert_string_equal(plugin->failure,
                        "plugins that are no tasks are not available in this release");
    assert_true(plugin->permanent);
}

/* --- the sweep --- */

static void mount_below(struct nodes *nodes, const char *name, char to[PATH_SIZE])
{
    struct err err = {0};

    assert_int_equal(path_join(to, nodes->node[0].config.alloc_dir, name), 0);
    assert_int_equal(directory_make_all(to, 0755, &err), 0);
    assert_return_code(mount("tmpfs", to, "tmpfs", 0, "size=64k"), 0);
}

static char stray[PATH_SIZE];

static bool stray_is_gone(struct nodes *nodes)
{
    struct err err = {0};

    (void)nodes;
    return mount_is_point(AT_FDCWD, stray, &err) == 0;
}

/* The sweep calls back when hooks have ended; nothing else of it shows. */
static void test_secrets_of_unknown_allocs_are_unmounted_and_nothing_else_is(void **state)
{
    static const char *const others[] = {
        "0f2a91c4-1111-4222-8333-444455556666/t/local", /* no secrets */
        "not-an-alloc/t/secrets",
        "secrets",
    };
    struct nodes *nodes = *state;
    char kept[COUNT_OF(others)][PATH_SIZE];
    struct err err = {0};

    nodes_need_root();
    for (size_t i = 0; i < COUNT_OF(others); i++)
        mount_below(nodes, others[i], kept[i]);
    mount_below(nodes, "0f2a91c4-1111-4222-8333-444455556666/t/secrets", stray);
    node_up(nodes, 0);
    nodes_run_until(nodes, stray_is_gone);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_int_equal(mount_is_point(AT_FDCWD, kept[i], &err), 1);
        assert_return_code(umount(kept[i]), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nodes_make, nodes_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_task_without_its_specification_runs_on_and_does_not_start_again),
        TEST(test_plugin_fails_for_good_and_says_why),
        TEST(test_secrets_of_unknown_allocs_are_unmounted_and_nothing_else_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
