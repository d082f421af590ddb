/* The instances of plugins: where they are, what they are asked, which of them is used. */
#include "csi/plugins.h"
#include "test/csi/plugin.h"

#include <cmocka.h>

enum { RECORDS_MAX = 4 };

static const char alloc_one[] = "11111111-2222-3333-4444-555555555555";
static const char alloc_two[] = "99999999-2222-3333-4444-555555555555";

struct fixture {
    struct plugin_process process;
    struct csi_plugins *plugins;
    struct plugin records[RECORDS_MAX]; /* of alloc_one and alloc_two */
    unsigned answers;
    struct err err; /* of the last answer, code 0: it went well */
    struct plugin_identity identity;
};

static const struct plugin *record_of(void *ctx, const char *alloc, const char *task)
{
    const struct fixture *fixture = ctx;

    assert_string_equal(task, "plugin");
    const struct plugin *record = &fixture->records[strcmp(alloc, alloc_two) == 0];
    return record->machine.state == P_ABSENT ? NULL : record;
}

static void answered(void *ctx, const struct plugin_identity *identity, const struct err *err)
{
    struct fixture *fixture = ctx;

    fixture->answers++;
    fixture->err = err == NULL ? (struct err){0} : *err;
    if (identity != NULL)
        fixture->identity = *identity;
    loop_stop(fixture->process.loop);
}

static void add(struct fixture *fixture, const char *alloc, enum plugin_type type)
{
    const struct csi_place place = {
        .plugin = "hp", .alloc = alloc, .task = "plugin", .type = type, .inside = "/local/csi"};

    assert_int_equal(csi_plugins_add(fixture->plugins, &place, &fixture->err), 0);
}

static void set_record(struct fixture *fixture, const char *alloc, uint8_t state,
                       uint64_t defined_ms)
{
    struct plugin *record = &fixture->records[strcmp(alloc, alloc_two) == 0];

    record->machine.kind = MACHINE_PLUGIN;
    record->machine.state = state;
    record->defined_ms = defined_ms;
}

/* The socket is where a plugin of ALLOC would make it, below STATE. */
static void begin(struct fixture *fixture, const char *state)
{
    struct plugin_process *process = &fixture->process;
    struct csi_plugins_config config = {.state_dir = state, .record = record_of, .ctx = fixture};
    struct csi_paths paths;
    struct err *err = &fixture->err;

    process->loop = loop_new();
    config.loop = process->loop;
    fixture->plugins = csi_plugins_new(&config, err);
    assert_non_null(fixture->plugins);
    assert_int_equal(
        csi_plugins_paths(fixture->plugins, alloc_one, "hp", PLUGIN_CSI_MONOLITH, &paths, err), 0);
    assert_int_equal(directory_make_all(paths.directory, 0700, err), 0);
    assert_true(text_copy(process->socket, sizeof(process->socket), paths.socket));
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    void *scratch;

    assert_non_null(fixture);
    (void)scratch_make(&scratch);
    fixture->process.scratch = scratch;
    begin(fixture, fixture->process.scratch->path);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *scratch = fixture->process.scratch;

    csi_plugins_free(fixture->plugins);
    loop_free(fixture->process.loop);
    plugin_end(&fixture->process);
    free(fixture);
    return scratch_remove(&scratch);
}

static void run_or_skip(struct fixture *fixture)
{
    if (plugin_run(&fixture->process) == SKIPPED)
        skip();
}

static void wait_for_answer(struct fixture *fixture, unsigned answers)
{
    while (fixture->answers < answers)
        loop_run(fixture->process.loop);
    assert_int_equal(fixture->answers, answers);
}

/* --- where --- */

static void test_all_instances_have_one_root_and_each_its_own_socket(void **state)
{
    struct fixture *fixture = *state;
    struct csi_paths one, two, controller;
    struct err err;

    assert_int_equal(
        csi_plugins_paths(fixture->plugins, alloc_one, "hp", PLUGIN_CSI_NODE, &one, &err), 0);
    assert_int_equal(
        csi_plugins_paths(fixture->plugins, alloc_two, "hp", PLUGIN_CSI_MONOLITH, &two, &err), 0);
    assert_int_equal(csi_plugins_paths(fixture->plugins, alloc_one, "hp", PLUGIN_CSI_CONTROLLER,
                                       &controller, &err),
                     0);
    assert_string_equal(one.root, two.root);
    assert_string_not_equal(one.root, controller.root);
    assert_string_not_equal(one.socket, two.socket);
}

static void test_names_lead_nowhere_else(void **state)
{
    static const char *const names[] = {"", ".", "..", "../x", "a/b", "/etc"};
    struct fixture *fixture = *state;
    struct csi_paths paths;
    struct err err;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(
            csi_plugins_paths(fixture->plugins, alloc_one, names[i], PLUGIN_CSI_NODE, &paths, &err),
            ERR_INVALID);
        assert_int_equal(
            csi_plugins_paths(fixture->plugins, names[i], "hp", PLUGIN_CSI_NODE, &paths, &err),
            ERR_INVALID);
    }
}

/* --- what it is asked --- */

static void test_it_is_waited_for_and_says_who_it_is(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, alloc_one, PLUGIN_CSI_MONOLITH);
    csi_plugins_await(fixture->plugins, alloc_one, "plugin", answered, fixture);
    run_or_skip(fixture);
    wait_for_answer(fixture, 1);
    assert_int_equal(fixture->err.code, 0);
    csi_plugins_probe(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 2);
    assert_int_equal(fixture->err.code, 0);
    csi_plugins_identify(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 3);
    assert_int_equal(fixture->err.code, 0);
    assert_string_equal(fixture->identity.provider, "test.cairn.example");
    assert_string_equal(fixture->identity.version, "1.2.3");
    assert_true(fixture->identity.staging);
    assert_true((fixture->identity.plugin_capabilities & CSI_PLUGIN_HAS_CONTROLLER) != 0);
    assert_true((fixture->identity.controller_capabilities & CSI_CONTROLLER_CREATES) != 0);
    assert_true(fixture->identity.node[0] != '\0');
    set_record(fixture, alloc_one, P_READY, 1);
    const struct csi_instance *found =
        csi_plugins_find(fixture->plugins, "hp", CSI_ROLE_CONTROLLER);
    assert_non_null(found);
    assert_true(found->topology.count > 0);
    assert_string_equal(found->plugin_root, "/local/csi");
}

static void test_a_controller_is_not_asked_for_its_node(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, alloc_one, PLUGIN_CSI_CONTROLLER);
    run_or_skip(fixture);
    csi_plugins_identify(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 1);
    assert_int_equal(fixture->err.code, 0);
    assert_string_equal(fixture->identity.node, "");
    assert_int_equal(fixture->identity.node_capabilities, 0);
}

static void test_one_that_is_not_ready_says_so(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, alloc_one, PLUGIN_CSI_NODE);
    run_or_skip(fixture);
    plugin_next(&fixture->process, "raw 0a00"); /* BoolValue{} is false */
    csi_plugins_probe(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 1);
    assert_int_equal(fixture->err.code, ERR_AGAIN);
    plugin_next(&fixture->process, "say 9 no device");
    csi_plugins_identify(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 2);
    assert_true(fixture->err.code < 0);
    assert_non_null(strstr(fixture->err.text, "no device"));
}

static void test_who_waits_hears_that_its_task_has_ended(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, alloc_one, PLUGIN_CSI_NODE);
    csi_plugins_await(fixture->plugins, alloc_one, "plugin", answered, fixture);
    csi_plugins_ended(fixture->plugins, alloc_one, "plugin");
    assert_int_equal(fixture->answers, 1);
    assert_int_equal(fixture->err.code, ERR_CANCELED);
    run_or_skip(fixture);
    plugin_next(&fixture->process, "hang");
    csi_plugins_probe(fixture->plugins, alloc_one, "plugin", answered, fixture);
    csi_plugins_drop(fixture->plugins, alloc_one, "plugin");
    assert_int_equal(fixture->answers, 2);
    assert_int_equal(fixture->err.code, ERR_CANCELED);
    csi_plugins_probe(fixture->plugins, alloc_one, "plugin", answered, fixture);
    assert_int_equal(fixture->answers, 3);
    assert_int_equal(fixture->err.code, ERR_GONE);
}

static void test_a_long_path_is_no_obstacle(void **state)
{
    struct fixture *fixture = *state;
    char deep[PATH_SIZE], name[100];
    char socket[PATH_SIZE];

    memset(name, 'd', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(path_join(deep, fixture->process.scratch->path, name), 0);
    csi_plugins_free(fixture->plugins);
    loop_free(fixture->process.loop);
    begin(fixture, deep);
    assert_true(strlen(fixture->process.socket) > CSI_SOCKET_MAX);
    add(fixture, alloc_one, PLUGIN_CSI_NODE);

    /* The plugin itself has a shorter way to its directory. */
    char *slash = strrchr(fixture->process.socket, '/');
    *slash = '\0';
    assert_int_equal(path_join(socket, fixture->process.scratch->path, "way"), 0);
    assert_return_code(symlink(fixture->process.socket, socket), 0);
    assert_int_equal(path_join(fixture->process.socket, socket, "csi.sock"), 0);
    run_or_skip(fixture);
    csi_plugins_await(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 1);
    csi_plugins_probe(fixture->plugins, alloc_one, "plugin", answered, fixture);
    wait_for_answer(fixture, 2);
    assert_int_equal(fixture->err.code, 0);
}

/* --- which is used --- */

static const char *found(struct fixture *fixture, enum csi_role role)
{
    const struct csi_instance *instance = csi_plugins_find(fixture->plugins, "hp", role);

    return instance == NULL ? "none" : instance->alloc;
}

static void test_the_newest_that_is_ready_is_used(void **state)
{
    struct fixture *fixture = *state;

    add(fixture, alloc_two, PLUGIN_CSI_NODE);
    add(fixture, alloc_one, PLUGIN_CSI_NODE);
    assert_string_equal(found(fixture, CSI_ROLE_NODE), "none");
    csi_plugins_await(fixture->plugins, alloc_one, "plugin", answered, fixture);
    csi_plugins_await(fixture->plugins, alloc_two, "plugin", answered, fixture);
    run_or_skip(fixture);
    wait_for_answer(fixture, 1);
    csi_plugins_probe(fixture->plugins, alloc_two, "plugin", answered, fixture);
    wait_for_answer(fixture, 2);
    set_record(fixture, alloc_one, P_READY, 10);
    set_record(fixture, alloc_two, P_READY, 20);
    assert_string_equal(found(fixture, CSI_ROLE_NODE), alloc_two);
    assert_string_equal(found(fixture, CSI_ROLE_CONTROLLER), "none");
    set_record(fixture, alloc_two, P_UNHEALTHY, 20);
    assert_string_equal(found(fixture, CSI_ROLE_NODE), alloc_one);
    set_record(fixture, alloc_one, P_STOPPING, 10);
    assert_string_equal(found(fixture, CSI_ROLE_NODE), "none");
    assert_null(csi_plugins_find(fixture->plugins, "other", CSI_ROLE_NODE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_instances_have_one_root_and_each_its_own_socket,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_lead_nowhere_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_is_waited_for_and_says_who_it_is, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_controller_is_not_asked_for_its_node, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_is_not_ready_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_waits_hears_that_its_task_has_ended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_path_is_no_obstacle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_newest_that_is_ready_is_used, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
