/* The environment of a task: which variables, which values, who wins; and its bounds. */
#include "hooks/env/env.h"
#include "test/hooks/fixture.h"

static struct hooks_launch *prepare(struct fixture *fixture, const struct results *results)
{
    struct hooks_launch *launch = NULL;
    int code = hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task,
                             results == NULL ? NULL : results->bytes,
                             results == NULL ? 0 : results->used, &launch, &fixture->scratch.err);

    if (code != 0)
        print_error("%s\n", fixture->scratch.err.text);
    assert_int_equal(code, 0);
    return launch;
}

static int prepare_code(struct fixture *fixture)
{
    struct hooks_launch *launch = NULL;
    int code = hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, NULL, 0, &launch,
                             &fixture->scratch.err);

    if (code == 0)
        hooks_launch_free(launch);
    else
        assert_null(launch);
    return code;
}

static const char *value_of(const struct hooks_launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->env.count; i++) {
        if (text_equal(launch->env.items[i].key, name))
            return launch->env.items[i].value;
    }
    return NULL;
}

/* Names, their values, and that there is nothing else.  "@" is the alloc's root. */
static void assert_env(const struct fixture *fixture, const struct hooks_launch *launch,
                       const char *const *expected)
{
    char entry[2048], wanted[2048];

    for (size_t i = 0; i < launch->env.count; i++) {
        assert_non_null(expected[i]);
        const char *sign = strchr(expected[i], '@');
        if (sign != NULL)
            (void)text_format(wanted, sizeof(wanted), "%.*s%s%s", (int)(sign - expected[i]),
                              expected[i], fixture->root, sign + 1); /* fits */
        else
            (void)text_copy(wanted, sizeof(wanted), expected[i]); /* fits */
        (void)text_format(entry, sizeof(entry), "%s=%s", launch->env.items[i].key,
                          launch->env.items[i].value); /* fits */
        assert_string_equal(entry, wanted);
    }
    assert_null(expected[launch->env.count]);
}

/* --- bounds and refusals --- */

static void assert_no_secret(const struct fixture *fixture)
{
    assert_null(strstr(fixture->scratch.err.text, "hunter2"));
}

static void test_a_value_that_grows_without_end_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair env[24];
    char names[24][8], values[24][32];

    (void)text_copy(values[0], sizeof(values[0]), "hunter2");
    for (unsigned i = 0; i < COUNT_OF(env); i++) {
        (void)text_format(names[i], sizeof(names[i]), "V%02u", i); /* fits */
        if (i > 0)
            (void)text_format(values[i], sizeof(values[i]), "${V%02u}${V%02u}", i - 1, i - 1);
        env[i] = (struct spec_pair){names[i], values[i]};
    }
    fixture->task.env = (struct spec_pairs){env, COUNT_OF(env)};
    assert_int_equal(prepare_code(fixture), ERR_LIMIT);
    assert_false(fixture->scratch.err.recoverable);
    assert_non_null(strstr(fixture->scratch.err.text, "environment variable V15"));
    assert_no_secret(fixture);
}

static void test_an_environment_that_is_too_long_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair env[16];
    char names[16][8];
    char *value = calloc(1, 100 * 1024);

    assert_non_null(value);
    memset(value, 'x', 100 * 1024 - 1);
    memcpy(value, "hunter2", 7);
    for (unsigned i = 0; i < COUNT_OF(env); i++) {
        (void)text_format(names[i], sizeof(names[i]), "V%02u", i); /* fits */
        env[i] = (struct spec_pair){names[i], value};
    }
    fixture->task.env = (struct spec_pairs){env, COUNT_OF(env)};
    assert_int_equal(prepare_code(fixture), ERR_LIMIT);
    assert_no_secret(fixture);
    fixture->task.env.count = 8;
    assert_int_equal(prepare_code(fixture), 0);
    free(value);
}

static void test_too_many_variables_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair *env = calloc(ENV_COUNT_MAX, sizeof(*env));
    char(*names)[8] = calloc(ENV_COUNT_MAX, sizeof(*names));

    assert_non_null(env);
    assert_non_null(names);
    for (unsigned i = 0; i < ENV_COUNT_MAX; i++) {
        (void)text_format(names[i], sizeof(names[i]), "V%u", i); /* fits */
        env[i] = (struct spec_pair){names[i], ""};
    }
    fixture->task.env = (struct spec_pairs){env, ENV_COUNT_MAX};
    assert_int_equal(prepare_code(fixture), ERR_LIMIT);
    free(names);
    free(env);
}

static void test_a_name_no_environment_can_hold_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair env = {"A=B", "hunter2"};

    fixture->task.env = (struct spec_pairs){&env, 1};
    assert_int_equal(prepare_code(fixture), ERR_INVALID);
    assert_no_secret(fixture);
    env.key = "";
    assert_int_equal(prepare_code(fixture), ERR_INVALID);
}

static void test_damaged_results_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_launch *launch = NULL;
    const uint8_t damaged[] = {9, 9, 9, 9, 9, 9, 9, 9, 9};

    assert_int_equal(hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, damaged,
                                   sizeof(damaged), &launch, &fixture->scratch.err),
                     ERR_CORRUPT);
    assert_null(launch);
}

/* --- what is in it --- */

static void test_environment_of_the_smallest_task_is_as_documented(void **state)
{
    struct fixture *fixture = *state;
    static const char *const expected[] = {
        "NOMAD_ALLOC_DIR=@/alloc",
        "NOMAD_ALLOC_ID=" ALLOC_ID,
        "NOMAD_ALLOC_INDEX=0",
        "NOMAD_ALLOC_NAME=shop.front[0]",
        "NOMAD_DC=dc1",
        "NOMAD_GROUP_NAME=front",
        "NOMAD_JOB_ID=shop",
        "NOMAD_JOB_NAME=shop",
        "NOMAD_NAMESPACE=default",
        "NOMAD_REGION=global",
        "NOMAD_SECRETS_DIR=@/web/secrets",
        "NOMAD_SHORT_ALLOC_ID=5b4c3f8e",
        "NOMAD_TASK_DIR=@/web/local",
        "NOMAD_TASK_NAME=web",
        NULL,
    };
    struct hooks_launch *launch = prepare(fixture, NULL);

    assert_env(fixture, launch, expected);
    hooks_launch_free(launch);
}

/* Everything at once: all sources, and each layer over the one before it. */
static void test_environment_of_a_full_task_is_as_documented(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta[] = {
        {"color-of", "red ${node.unique.name}"},
        {"size", "9"},
    };
    struct spec_pair env[] = {
        {"BOTH", "task over host"},
        {"FIRST", "1 ${NOMAD_META_color-of}"},
        {"SECOND", "${FIRST} ${LATER} ${attr.kernel.name}/${meta.rack}"},
        {"LATER", "not yet known above"},
        {"HOOKED", "hook over task"},
        {"NOMAD_PORT_my-port", "80"},
    };
    struct spec_pair attributes[] = {{"kernel.name", "linux"}}, node_meta[] = {{"rack", "r7"}};
    uint8_t bytes[1024];
    struct results results = {bytes, 0, sizeof(bytes)};
    static const char *const expected[] = {
        "BOTH=task over host",
        "FIRST=1 red stone",
        "HOME=/root dc1",
        "HOOKED=by web",
        "LATER=not yet known above",
        "NOMAD_ADDR=http://127.0.0.1:4646",
        "NOMAD_ALLOC_DIR=@/alloc",
        "NOMAD_ALLOC_ID=" ALLOC_ID,
        "NOMAD_ALLOC_INDEX=3",
        "NOMAD_ALLOC_NAME=shop.front[0]",
        "NOMAD_CPU_CORES=0,2-4",
        "NOMAD_CPU_LIMIT=500",
        "NOMAD_DC=dc1",
        "NOMAD_GROUP_NAME=front",
        "NOMAD_JOB_ID=shop",
        "NOMAD_JOB_NAME=shop",
        "NOMAD_JOB_PARENT_ID=shop-parent",
        "NOMAD_MEMORY_LIMIT=256",
        "NOMAD_MEMORY_MAX_LIMIT=512",
        "NOMAD_META_COLOR_OF=red stone",
        "NOMAD_META_SIZE=9",
        "NOMAD_META_color_of=red stone",
        "NOMAD_META_size=9",
        "NOMAD_NAMESPACE=default",
        "NOMAD_PORT_my_port=80",
        "NOMAD_REGION=global",
        "NOMAD_SECRETS_DIR=@/web/secrets",
        "NOMAD_SHORT_ALLOC_ID=5b4c3f8e",
        "NOMAD_TASK_DIR=@/web/local",
        "NOMAD_TASK_NAME=web",
        "NOMAD_TOKEN=a.b.c",
        "NOMAD_UNIX_ADDR=unix://@/web/secrets/api.sock",
        "SECOND=1 red stone ${LATER} linux/r7",
        NULL,
    };

    fixture->environment[0] = "HOME=/root ${node.datacenter}";
    fixture->environment[1] = "BOTH=host";
    fixture->environment[2] = "NOMAD_ALLOC_ID=somebody else's"; /* the daemon is a task itself */
    fixture->environment[3] = "NOMAD_ADDR=http://127.0.0.1:4646";
    fixture->environment[4] = "NOMAD_TOKEN=hunter2";
    fixture->environment[5] = "AWS_SECRET_ACCESS_KEY=hunter2";
    fixture->environment[6] = "no equals sign";
    fixture->node.attributes = (struct spec_pairs){attributes, 1};
    fixture->node.meta = (struct spec_pairs){node_meta, 1};
    fixture->alloc.index = 3;
    fixture->alloc.job_parent_id = "shop-parent";
    fixture->task.identity = (struct spec_identity){.token = "a.b.c", .env = true, .file = ""};
    fixture->task.meta = (struct spec_pairs){meta, COUNT_OF(meta)};
    fixture->task.env = (struct spec_pairs){env, COUNT_OF(env)};
    fixture->task.resources = (struct spec_resources){.cpu_mhz = 500,
                                                      .memory_mb = 256,
                                                      .memory_max_mb = 512,
                                                      .cores = 4,
                                                      .core_ids = (const uint16_t[]){0, 2, 3, 4}};
    assert_int_equal(
        results_set(&results, TASK_HOOK_LOGS, RESULT_ENV, "HOOKED", "by ${NOMAD_TASK_NAME}", 21),
        0);
    assert_int_equal(results_set(&results, TASK_HOOK_LOGS, RESULT_DATA, "NOT_ENV", "hunter2", 7),
                     0);

    struct hooks_launch *launch = prepare(fixture, &results);
    assert_env(fixture, launch, expected);
    hooks_launch_free(launch);
}

/* R-28: after a restart of the daemon the payload starts with the same, byte for byte. */
/* What is made of its services is told to others; and a file alone is no variable. */
static void test_a_token_is_in_no_other_environment(void **state)
{
    struct fixture *fixture = *state;
    struct arena arena = {0};
    struct hooks_env env = {.arena = &arena};

    fixture->task.identity = (struct spec_identity){.token = "a.b.c", .env = true, .file = ""};
    assert_int_equal(hooks_env_build_task(fixture->hooks, &fixture->alloc, &fixture->task, NULL,
                                          &env, &fixture->scratch.err),
                     0);
    assert_null(hooks_env_find(&env, "NOMAD_TOKEN", strlen("NOMAD_TOKEN")));
    arena_free(&arena);
    fixture->task.identity = (struct spec_identity){.token = "a.b.c", .file = "secrets/t"};
    struct hooks_launch *launch = prepare(fixture, NULL);
    assert_null(value_of(launch, "NOMAD_TOKEN"));
    hooks_launch_free(launch);
}

static void test_environment_is_the_same_each_time(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta[] = {{"a-b", "1"}, {"a+b", "2"}, {"A-B", "3"}};

    fixture->task.meta = (struct spec_pairs){meta, COUNT_OF(meta)};
    struct hooks_launch *first = prepare(fixture, NULL), *second = prepare(fixture, NULL);
    assert_int_equal(first->env.count, second->env.count);
    for (size_t i = 0; i < first->env.count; i++) {
        assert_string_equal(first->env.items[i].key, second->env.items[i].key);
        assert_string_equal(first->env.items[i].value, second->env.items[i].value);
        if (i > 0) /* each name once */
            assert_true(strcmp(first->env.items[i - 1].key, first->env.items[i].key) < 0);
    }
    hooks_launch_free(first);
    hooks_launch_free(second);
}

static void test_names_are_cleaned_where_nomad_cleans_them(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta[] = {{"x/y", "1"}, {"x.y", "2"}, {"x_y", "kept"}, {"\xc3\xa9", "3"}};
    struct spec_pair env[] = {
        {"NOMAD_IP_a~b", "4"}, {"NOMAD_HOST_PORT_a b", "5"}, {"OTHER-name", "6"}};

    fixture->task.meta = (struct spec_pairs){meta, COUNT_OF(meta)};
    fixture->task.env = (struct spec_pairs){env, COUNT_OF(env)};
    struct hooks_launch *launch = prepare(fixture, NULL);
    assert_string_equal(value_of(launch, "NOMAD_META_x_y"), "kept");
    assert_string_equal(value_of(launch, "NOMAD_META_x.y"), "2");
    assert_string_equal(value_of(launch, "NOMAD_META___"), "3");
    assert_string_equal(value_of(launch, "NOMAD_IP_a_b"), "4");
    assert_string_equal(value_of(launch, "NOMAD_HOST_PORT_a_b"), "5");
    assert_string_equal(value_of(launch, "OTHER-name"), "6");
    assert_null(value_of(launch, "NOMAD_META_x/y"));
    hooks_launch_free(launch);
}

static void test_isolated_drivers_see_their_own_paths_and_images_no_host(void **state)
{
    struct fixture *fixture = *state;

    fixture->environment[0] = "HOME=/root";
    fixture->task.driver = "exec";
    struct hooks_launch *launch = prepare(fixture, NULL);
    assert_string_equal(value_of(launch, "NOMAD_ALLOC_DIR"), "/alloc");
    assert_string_equal(value_of(launch, "NOMAD_TASK_DIR"), "/local");
    assert_string_equal(value_of(launch, "NOMAD_SECRETS_DIR"), "/secrets");
    assert_string_equal(value_of(launch, "HOME"), "/root");
    hooks_launch_free(launch);

    fixture->task.driver = "docker";
    launch = prepare(fixture, NULL);
    assert_string_equal(value_of(launch, "NOMAD_ALLOC_DIR"), "/alloc");
    assert_null(value_of(launch, "HOME"));
    hooks_launch_free(launch);
}

/* --- the launch --- */

static void test_launch_has_user_and_config_interpolated(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair env = {"WHO", "alice"};

    fixture->task.env = (struct spec_pairs){&env, 1};
    fixture->task.user = "${WHO}";
    fixture->task.config_json = "{\"command\":\"/bin/${WHO}\"}";
    fixture->task.kill_signal = "SIGINT";
    fixture->task.kill_timeout_ms = 7000;
    struct hooks_launch *launch = prepare(fixture, NULL);
    fixture->task = (struct task_spec){0}; /* nothing is borrowed */
    env = (struct spec_pair){0};
    assert_string_equal(launch->task.name, "web");
    assert_string_equal(launch->task.driver, "raw_exec");
    assert_string_equal(launch->task.user, "alice");
    assert_string_equal(launch->task.config_json, "{\"command\":\"/bin/alice\"}");
    assert_string_equal(launch->task.kill_signal, "SIGINT");
    assert_int_equal(launch->task.kill_timeout_ms, 7000);
    assert_ptr_equal(launch->task.env.items, launch->env.items);
    hooks_launch_free(launch);
    hooks_launch_free(NULL);
}

static void test_unknown_variable_in_config_fails_for_good_and_keeps_secrets(void **state)
{
    struct fixture *fixture = *state;

    fixture->task.config_json = "{\"args\":[\"--password\",\"hunter2 ${NOBODY}\"]}";
    assert_int_equal(prepare_code(fixture), ERR_INVALID);
    assert_false(fixture->scratch.err.recoverable);
    assert_string_equal(fixture->scratch.err.text,
                        "failed to parse config: args[1]: Unknown variable: There is no variable "
                        "named \"NOBODY\".");
    assert_no_secret(fixture);
}

static void test_a_user_that_is_too_long_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char user[300];

    memset(user, 'x', sizeof(user));
    user[sizeof(user) - 1] = '\0';
    fixture->task.user = user;
    assert_int_equal(prepare_code(fixture), ERR_INVALID);
    fixture->task.user = "${NOMAD_ALLOC_DIR}${NOMAD_ALLOC_DIR}${NOMAD_ALLOC_DIR}"
                         "${NOMAD_ALLOC_DIR}${NOMAD_ALLOC_DIR}${NOMAD_ALLOC_DIR}";
    assert_int_equal(prepare_code(fixture), ERR_LIMIT);
}

/* Those of the group, of the task, and of another task, as nomad v2.0.5 client/taskenv names them
 * in the host's network. */
static void test_ports_are_in_the_environment(void **state)
{
    struct fixture *fixture = *state;
    struct spec_port ports[] = {
        {.label = "http", .task = "", .host_ip = "10.0.0.1", .value = 8080, .is_static = true},
        {.label = "a-b", .task = "", .host_ip = "fd00::1", .value = 20001, .to = 99},
        {.label = "own", .task = "web", .host_ip = "10.0.0.1", .value = 20002, .to = 7},
        {.label = "six", .task = "web", .host_ip = "fd00::1", .value = 20003},
        {.label = "db", .task = "side", .host_ip = "10.0.0.1", .value = 20004, .to = 5},
    };
    static const struct {
        const char *name, *value;
    } expected[] = {
        {"NOMAD_ADDR_http", "10.0.0.1:8080"},
        {"NOMAD_HOST_ADDR_http", "10.0.0.1:8080"},
        {"NOMAD_IP_http", "10.0.0.1"},
        {"NOMAD_HOST_IP_http", "10.0.0.1"},
        {"NOMAD_PORT_http", "8080"},
        {"NOMAD_ALLOC_PORT_http", "8080"},
        {"NOMAD_HOST_PORT_http", "8080"},
        {"NOMAD_IPv4_http", NULL},
        {"NOMAD_ALLOC_IP_http", NULL}, /* of a network of the alloc's own */
        {"NOMAD_ALLOC_ADDR_http", NULL},
        {"NOMAD_ADDR_a_b", "[fd00::1]:20001"},
        {"NOMAD_HOST_ADDR_a-b", "[fd00::1]:20001"}, /* Nomad does not clean it */
        {"NOMAD_PORT_a_b", "99"},
        {"NOMAD_ALLOC_PORT_a-b", "99"},
        {"NOMAD_HOST_PORT_a_b", "20001"},
        {"NOMAD_ADDR_own", "10.0.0.1:20002"},
        {"NOMAD_IP_own", "10.0.0.1"},
        {"NOMAD_IPv4_own", "10.0.0.1"},
        {"NOMAD_IPv6_own", NULL},
        {"NOMAD_PORT_own", "20002"}, /* no driver maps it */
        {"NOMAD_HOST_PORT_own", "20002"},
        {"NOMAD_HOST_IP_own", NULL},
        {"NOMAD_IPv6_six", "fd00::1"},
        {"NOMAD_ADDR_six", "[fd00::1]:20003"},
        {"NOMAD_ADDR_side_db", "10.0.0.1:20004"},
        {"NOMAD_IP_side_db", "10.0.0.1"},
        {"NOMAD_PORT_side_db", "20004"},
        {"NOMAD_HOST_PORT_side_db", NULL},
        {"NOMAD_ADDR_db", NULL},
        {"LISTEN", "10.0.0.1:8080 20002"},
        {"NOMAD_META_at", "8080"},
    };
    struct spec_pair env = {"LISTEN", "${NOMAD_ADDR_http} ${NOMAD_PORT_own}"};
    struct spec_pair meta = {"at", "${NOMAD_PORT_http}"};

    fixture->alloc.ports = (struct spec_ports){ports, COUNT_OF(ports)};
    fixture->task.env = (struct spec_pairs){&env, 1};
    fixture->task.meta = (struct spec_pairs){&meta, 1};
    fixture->task.config_json = "{\"args\":[\"-p\",\"${NOMAD_PORT_http}\"]}";
    struct hooks_launch *launch = prepare(fixture, NULL);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const char *value = value_of(launch, expected[i].name);
        if (expected[i].value == NULL ? value != NULL
                                      : value == NULL || !text_equal(value, expected[i].value))
            fail_msg("%s is %s", expected[i].name, value == NULL ? "not there" : value);
    }
    assert_string_equal(launch->task.config_json, "{\"args\":[\"-p\",\"8080\"]}");
    hooks_launch_free(launch);
}

/* nomad v2.0.5 client/taskenv: addNomadAllocNetwork. */
static void test_the_address_of_an_own_network_is_in_the_environment(void **state)
{
    struct fixture *fixture = *state;
    struct spec_port ports[] = {
        {.label = "http", .task = "", .host_ip = "10.0.0.1", .value = 20001, .to = 80},
        {.label = "own", .task = "", .host_ip = "10.0.0.1", .value = 20002},
    };
    static const char status[] = "{\"InterfaceName\":\"eth0\",\"Address\":\"172.26.64.9\","
                                 "\"AddressIPv6\":\"\",\"DNS\":null}";
    static const struct {
        const char *name, *value;
    } expected[] = {
        {"NOMAD_ALLOC_INTERFACE_http", "eth0"},      {"NOMAD_ALLOC_IP_http", "172.26.64.9"},
        {"NOMAD_ALLOC_ADDR_http", "172.26.64.9:80"}, {"NOMAD_ALLOC_ADDR_own", "172.26.64.9:20002"},
        {"NOMAD_ADDR_http", "10.0.0.1:20001"},       {"NOMAD_PORT_http", "80"},
        {"NOMAD_HOST_PORT_http", "20001"},
    };
    struct hooks_launch *launch;
    uint8_t room[1024];
    struct results results = {room, 0, sizeof(room)};

    assert_int_equal(results_set(&results, TASK_HOOK_NETWORK, RESULT_DATA, "status", status,
                                 (uint32_t)strlen(status)),
                     0);
    fixture->alloc.network_mode = "bridge";
    fixture->alloc.ports = (struct spec_ports){ports, COUNT_OF(ports)};
    assert_int_equal(hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, room,
                                   results.used, &launch, &fixture->scratch.err),
                     0);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const char *value = value_of(launch, expected[i].name);
        if (value == NULL || !text_equal(value, expected[i].value))
            fail_msg("%s is %s", expected[i].name, value == NULL ? "not there" : value);
    }
    hooks_launch_free(launch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_make, fixture_remove)
        TEST(test_a_value_that_grows_without_end_is_refused),
        TEST(test_an_environment_that_is_too_long_is_refused),
        TEST(test_too_many_variables_are_refused),
        TEST(test_a_name_no_environment_can_hold_is_refused),
        TEST(test_damaged_results_are_refused),
        TEST(test_environment_of_the_smallest_task_is_as_documented),
        TEST(test_environment_of_a_full_task_is_as_documented),
        TEST(test_a_token_is_in_no_other_environment),
        TEST(test_environment_is_the_same_each_time),
        TEST(test_names_are_cleaned_where_nomad_cleans_them),
        TEST(test_isolated_drivers_see_their_own_paths_and_images_no_host),
        TEST(test_launch_has_user_and_config_interpolated),
        TEST(test_unknown_variable_in_config_fails_for_good_and_keeps_secrets),
        TEST(test_a_user_that_is_too_long_is_refused),
        TEST(test_ports_are_in_the_environment),
        TEST(test_the_address_of_an_own_network_is_in_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
