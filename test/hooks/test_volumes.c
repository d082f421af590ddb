/* Volumes of the node become mounts of tasks: by name, once each, and never without the node. */
#include "test/hooks/fixture.h"

static struct spec_node_volume on_node[] = {
    {"database[2]", "/srv/database", false}, {"certs", "/etc/ssl", true}, {"data", "/data", false}};

static struct spec_volume wanted[] = {{.name = "data", .source = "database[2]"},
                                      {.name = "certs", .source = "certs", .read_only = true}};

static struct spec_volume_mount mounts[2];

static void start(struct fixture *fixture, size_t on_node_count)
{
    const struct hooks_config config = {
        .loop = fixture->loop,
        .alloc_dir = fixture->alloc_dir,
        .node = &fixture->node,
        .environment = fixture->environment,
        .driver = fixture_driver,
        .volumes = {.items = on_node, .count = on_node_count},
    };

    hooks_free(fixture->hooks);
    fixture->hooks = hooks_new(&config, &fixture->scratch.err);
    assert_non_null(fixture->hooks);
    fixture->task.driver = "exec";
    fixture->task.volume_mounts = mounts;
    fixture->task.volume_mounts_count = COUNT_OF(mounts);
    fixture->alloc.volumes = wanted;
    fixture->alloc.volumes_count = COUNT_OF(wanted);
    mounts[0] =
        (struct spec_volume_mount){"data", "/var/lib/data/", false, PROPAGATION_BIDIRECTIONAL};
    mounts[1] =
        (struct spec_volume_mount){"certs", "${NOMAD_TASK_DIR}/ssl", false, PROPAGATION_PRIVATE};
}

static struct {
    int code;
    struct err err;
    uint32_t bytes;
    uint8_t results[RESULTS_BYTES_MAX];
} got;

static void on_volumes(void *ctx, const struct hook_outcome *outcome)
{
    struct fixture *fixture = ctx;

    got.code = outcome->code;
    got.err.recoverable = outcome->recoverable;
    (void)text_copy(got.err.text, sizeof(got.err.text), outcome->text);
    got.bytes = outcome->results_bytes;
    memcpy(got.results, outcome->results, outcome->results_bytes);
    loop_stop(fixture->loop);
}

static int run_with(struct fixture *fixture, const struct hook_claim *claims, size_t count)
{
    const struct hook_run run = {.phase = PHASE_PRESTART,
                                 .hook = TASK_HOOK_VOLUMES,
                                 .alloc = &fixture->alloc,
                                 .task = &fixture->task,
                                 .claims = claims,
                                 .claims_count = count};

    hook_run(fixture->hooks, &run, on_volumes, fixture);
    loop_run(fixture->loop);
    return got.code;
}

static int run_volumes(struct fixture *fixture)
{
    return run_with(fixture, NULL, 0);
}

static void assert_says(const char *why)
{
    if (strstr(got.err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", got.err.text, why);
    assert_int_equal(got.bytes, 0);
    assert_false(got.err.recoverable);
}

static struct hooks_launch *launch_with(struct fixture *fixture)
{
    struct hooks_launch *launch;

    if (hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, got.results, got.bytes,
                      &launch, &got.err) != 0)
        fail_msg("%s", got.err.text);
    return launch;
}

static void test_mounts_are_what_group_node_and_task_say_together(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, COUNT_OF(on_node));
    assert_int_equal(run_volumes(fixture), 0);
    struct hooks_launch *launch = launch_with(fixture);
    assert_int_equal(launch->mounts.count, 2);
    /* By their places, so that none is below a later one. */
    assert_string_equal(launch->mounts.items[0].inside, "/local/ssl");
    assert_string_equal(launch->mounts.items[0].host, "/etc/ssl");
    assert_true(launch->mounts.items[0].read_only); /* the node says so */
    assert_int_equal(launch->mounts.items[0].propagation, PROPAGATION_PRIVATE);
    assert_false(launch->mounts.items[0].is_mount);
    assert_string_equal(launch->mounts.items[1].inside, "/var/lib/data");
    assert_string_equal(launch->mounts.items[1].host, "/srv/database");
    assert_false(launch->mounts.items[1].read_only);
    assert_int_equal(launch->mounts.items[1].propagation, PROPAGATION_BIDIRECTIONAL);
    hooks_launch_free(launch);
}

static void test_any_of_three_makes_it_read_only(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, COUNT_OF(on_node));
    for (int who = 0; who < 4; who++) {
        struct hooks_launch *launch;

        on_node[0].read_only = who == 1;
        wanted[0].read_only = who == 2;
        mounts[0].read_only = who == 3;
        assert_int_equal(run_volumes(fixture), 0);
        launch = launch_with(fixture);
        assert_int_equal(launch->mounts.items[1].read_only, who > 0);
        hooks_launch_free(launch);
    }
    on_node[0].read_only = wanted[0].read_only = false;
}

static void test_volume_that_the_node_has_no_more_fails_the_start(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, 1);
    assert_int_equal(run_volumes(fixture), ERR_GONE);
    assert_says("host volume validation error: missing certs");
    fixture->task.volume_mounts_count = 0; /* another task's, and yet the group needs it */
    assert_int_equal(run_volumes(fixture), ERR_GONE);
    start(fixture, 2);
    fixture->task.volume_mounts_count = 0;
    assert_int_equal(run_volumes(fixture), 0);
    assert_int_equal(got.bytes, 0);
}

static void test_volume_of_a_plugin_is_where_it_is_published(void **state)
{
    static const struct hook_claim claims[] = {{"other", "/csi/other"}, {"data", "/csi/data"}};
    struct fixture *fixture = *state;

    start(fixture, COUNT_OF(on_node));
    wanted[0].type = VOLUME_CSI;
    wanted[0].source = "nowhere on the node";
    for (int read_only = 0; read_only < 2; read_only++) {
        wanted[0].read_only = read_only != 0;
        assert_int_equal(run_with(fixture, claims, COUNT_OF(claims)), 0);
        struct hooks_launch *launch = launch_with(fixture);
        assert_int_equal(launch->mounts.count, 2);
        assert_string_equal(launch->mounts.items[1].inside, "/var/lib/data");
        assert_string_equal(launch->mounts.items[1].host, "/csi/data");
        assert_true(launch->mounts.items[1].is_mount);
        assert_int_equal(launch->mounts.items[1].read_only, read_only);
        assert_int_equal(launch->mounts.items[1].propagation, PROPAGATION_BIDIRECTIONAL);
        hooks_launch_free(launch);
    }
    assert_int_equal(run_with(fixture, claims, 1), ERR_GONE);
    assert_says("No CSI Mount Point found for volume: data");
    fixture->task.driver = "raw_exec";
    assert_int_equal(run_with(fixture, claims, COUNT_OF(claims)), ERR_REFUSED);
    assert_says("task driver \"raw_exec\" for \"web\" does not support CSI");
    wanted[0] = (struct spec_volume){.name = "data", .source = "database[2]"};
}

static void test_drivers_without_mounts_refuse_them(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, COUNT_OF(on_node));
    fixture->task.driver = "raw_exec";
    assert_int_equal(run_volumes(fixture), ERR_REFUSED);
    assert_says("task driver \"raw_exec\" for \"web\" does not support host volumes");
}

static void test_places_are_looked_at_when_they_are_known(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta[] = {{"where", ".."}};

    start(fixture, COUNT_OF(on_node));
    fixture->task.meta = (struct spec_pairs){meta, 1};
    mounts[0].destination = "/srv/${NOMAD_META_where}/etc";
    assert_int_equal(run_volumes(fixture), ERR_INVALID);
    assert_says("\"/srv/../etc\" leads out of where it begins");
    mounts[0].destination = "${NOMAD_SECRETS_DIR}";
    assert_int_equal(run_volumes(fixture), ERR_INVALID);
    assert_says("is a directory that every task has");
    mounts[0].destination = "/local//${NOMAD_META_what}";
    meta[0] = (struct spec_pair){"what", "ssl"};
    assert_int_equal(run_volumes(fixture), ERR_INVALID);
    assert_says("is that of two volume_mounts");
}

static void test_only_groups_with_volumes_need_it(void **state)
{
    struct fixture *fixture = *state;
    struct task_define define = {0};

    start(fixture, COUNT_OF(on_node));
    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, "exec"), &define);
    assert_true((define.hooks_prestart >> TASK_HOOK_VOLUMES & 1u) != 0);
    fixture->alloc.volumes_count = 0;
    hooks_plan_task(&fixture->alloc, &fixture->task, fixture_driver(NULL, "exec"), &define);
    assert_true((define.hooks_prestart >> TASK_HOOK_VOLUMES & 1u) == 0);
}

/* Whichever hook it is from: so will those of other kinds of volumes be. */
static void test_damaged_mounts_are_refused_and_others_taken(void **state)
{
    static const struct {
        const char *place, *value;
        bool good;
    } rows[] = {
        {"/srv", "/data\trw\tprivate", true},
        {"/srv", "/data\tro\thost-to-task", true},
        {"/srv", "/data\tro", false},
        {"/srv", "data\trw\tprivate", false},
        {"/srv", "/data\tread\tprivate", false},
        {"/srv", "/data\trw\tpublic", false},
        {"/srv/../etc", "/data\trw\tprivate", false},
        {"/proc", "/data\trw\tprivate", false},
    };
    struct fixture *fixture = *state;

    start(fixture, COUNT_OF(on_node));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct results results = {got.results, 0, sizeof(got.results)};
        struct hooks_launch *launch = NULL;

        assert_int_equal(results_set(&results, TASK_HOOK_LOGS, RESULT_MOUNT, rows[i].place,
                                     rows[i].value, (uint32_t)strlen(rows[i].value)),
                         0);
        int code = hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, got.results,
                                 results.used, &launch, &got.err);
        assert_int_equal(code, rows[i].good ? 0 : ERR_CORRUPT);
        if (code == 0)
            assert_string_equal(launch->mounts.items[0].host, "/data");
        if (code == 0)
            hooks_launch_free(launch);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mounts_are_what_group_node_and_task_say_together),
        TEST(test_any_of_three_makes_it_read_only),
        TEST(test_volume_that_the_node_has_no_more_fails_the_start),
        TEST(test_volume_of_a_plugin_is_where_it_is_published),
        TEST(test_drivers_without_mounts_refuse_them),
        TEST(test_places_are_looked_at_when_they_are_known),
        TEST(test_only_groups_with_volumes_need_it),
        TEST(test_damaged_mounts_are_refused_and_others_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
