/*
 * Services in the mesh of Consul: what jobs of this node get that servers would have added, which
 * is what nomad v2.0.6 nomad/job_endpoint_hook_connect.go adds, and what an alloc runs by.
 */
#include "spec/blocks/blocks.h"
#include "spec/job.h"
#include "spec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALLOC_ID "0f3a3e5c-5f31-4a52-9f0e-0123456789ab"
#define BRIDGE "network {\n mode = \"bridge\"\n}\n"
#define TASK "task \"t\" {\n driver = \"raw_exec\"\n}\n"
#define SIDECAR(inner)                                                                             \
    "service {\n name = \"api-${JOB}\"\n port = \"9001\"\n connect {\n sidecar_service {\n" inner  \
    "}\n"

static struct jobspec_problems problems;

/* The only group of a job that says INNER. */
static json_t *group_of(const char *inner, json_t **ret_job)
{
    char text[8192];
    struct jobspec_source source = {.name = "job", .text = text};

    assert_true(text_format(text, sizeof(text), "job \"j\" {\n group \"g\" {\n%s}\n}\n", inner));
    source.length = strlen(text);
    if (jobspec_parse(&source, ret_job, &problems) != 0)
        fail_msg("%s", problems.items[0]);
    return json_array_get(json_object_get(*ret_job, "TaskGroups"), 0);
}

static json_t *task_of(const json_t *group, const char *name)
{
    json_t *task;
    size_t i;

    json_array_foreach(json_object_get(group, "Tasks"), i, task)
    {
        if (text_equal(text_of(task, "Name"), name))
            return task;
    }
    fail_msg("there is no task %s", name);
    return NULL;
}

/* FIELD of OBJECT is EXPECTED, with ' for ". */
static void assert_field(const json_t *object, const char *field, const char *expected)
{
    char *copy = strdup(expected);

    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    char *text =
        json_dumps(json_object_get(object, field), JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    if (text == NULL || strcmp(text, copy) != 0)
        fail_msg("%s is %s, not %s", field, text, copy);
    free(text);
    free(copy);
}

static struct alloc_spec *make_alloc(const json_t *job, char **ret_text, size_t *ret_length)
{
    struct spec_port port = {.label = "connect-proxy-api-j",
                             .task = "",
                             .host_network = "default",
                             .host_ip = "127.0.0.1",
                             .value = 20001,
                             .to = -1};
    const struct jobspec_placement placement = {.alloc_id = ALLOC_ID,
                                                .eval_id = "",
                                                .group = "g",
                                                .datacenter = "dc1",
                                                .ports = {.items = &port, .count = 1}};
    struct alloc_spec *spec;
    struct err err = {0};

    if (jobspec_make_alloc(job, &placement, ret_text, ret_length, &spec, &err) != 0)
        fail_msg("%s", err.text);
    return spec;
}

static struct alloc_spec *spec_of(const json_t *job)
{
    return make_alloc(job, NULL, NULL);
}

static json_t *essence_of_alloc(const json_t *job)
{
    char *text;
    size_t length;

    alloc_spec_free(make_alloc(job, &text, &length));
    json_t *essence = jobspec_alloc_essence(text, length);
    free(text);
    return essence;
}

static void test_a_sidecar_gets_a_task_and_a_port(void **state)
{
    json_t *job, *group = group_of(BRIDGE SIDECAR("") "}\n}\n" TASK, &job);
    const json_t *task = task_of(group, "connect-proxy-api-j");
    const json_t *network = json_array_get(json_object_get(group, "Networks"), 0);

    (void)state;
    assert_int_equal(json_array_size(json_object_get(group, "Tasks")), 2);
    assert_field(task, "Kind", "'connect-proxy:api-j'");
    assert_field(task, "Driver", "'docker'");
    assert_field(task, "Config",
                 "{'args':['-c','${NOMAD_SECRETS_DIR}/envoy_bootstrap.json','-l',"
                 "'${meta.connect.log_level}','--concurrency','${meta.connect.proxy_concurrency}',"
                 "'--disable-hot-restart'],'image':'${meta.connect.sidecar_image}'}");
    assert_field(task, "Lifecycle", "{'Hook':'prestart','Sidecar':true}");
    assert_field(task, "LogConfig", "{'Disabled':false,'MaxFileSizeMB':2,'MaxFiles':2}");
    assert_field(task, "ShutdownDelay", "5000000000");
    assert_field(task, "Constraints",
                 "[{'LTarget':'${attr.consul.version}','Operand':'semver','RTarget':'>= 1.8.0'},"
                 "{'LTarget':'${attr.consul.grpc}','Operand':'>','RTarget':'0'}]");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(task, "Resources"), "CPU")),
                     250);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(task, "Resources"), "MemoryMB")), 128);
    assert_field(network, "DynamicPorts",
                 "[{'HostNetwork':'default','Label':'connect-proxy-api-j','To':-1,'Value':0}]");
    json_decref(job);
}

static void test_a_job_that_comes_back_with_it_is_the_same(void **state)
{
    json_t *job, *again;

    (void)state;
    (void)group_of(
        BRIDGE SIDECAR("") " sidecar_task {\n driver = \"raw_exec\"\n config {\n a = 1\n}"
                           "\n}\n}\n}\n" TASK,
        &job);
    assert_int_equal(jobspec_from_json("job", job, &again, &problems), 0);
    assert_true(json_equal(job, again));
    json_decref(again);
    json_decref(job);
}

static void test_what_the_job_says_of_the_task_goes_before(void **state)
{
    json_t *job,
        *group =
            group_of(BRIDGE SIDECAR(
                         "port = \"own\"\n") " sidecar_task {\n name = \"side\"\n env {\n A = "
                                             "\"b\"\n}\n config {\n image = \"i\"\n}\n resources "
                                             "{\n cpu = 7\n}\n shutdown_delay = \"1s\"\n logs {\n "
                                             "max_files = 9\n}\n}\n}\n}\n" TASK,
                     &job);
    const json_t *task = task_of(group, "side");
    const json_t *network = json_array_get(json_object_get(group, "Networks"), 0);

    (void)state;
    assert_field(json_object_get(task, "Config"), "image", "'i'");
    assert_int_equal(json_array_size(json_object_get(json_object_get(task, "Config"), "args")), 7);
    assert_field(task, "Env", "{'A':'b'}");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(task, "Resources"), "CPU")),
                     7);
    assert_field(task, "ShutdownDelay", "1000000000");
    assert_field(task, "LogConfig", "{'Disabled':false,'MaxFileSizeMB':2,'MaxFiles':9}");
    assert_field(network, "DynamicPorts",
                 "[{'HostNetwork':'default','Label':'own','To':-1,'Value':0}]");
    json_decref(job);
}

static void test_another_driver_has_a_config_of_its_own(void **state)
{
    json_t *job,
        *group = group_of(BRIDGE SIDECAR("") " sidecar_task {\n driver = \"exec\"\n"
                                             " config {\n command = \"c\"\n}\n}\n}\n}\n" TASK,
                          &job);
    const json_t *task = task_of(group, "connect-proxy-api-j");

    (void)state;
    assert_field(task, "Driver", "'exec'");
    assert_field(task, "Config", "{'command':'c'}");
    json_decref(job);
}

static void test_a_native_service_is_its_tasks(void **state)
{
    json_t *job,
        *group =
            group_of("service {\n name = \"n\"\n connect {\n native = true\n}\n}\n" TASK, &job);
    const json_t *service = json_array_get(json_object_get(group, "Services"), 0);

    (void)state;
    assert_field(task_of(group, "t"), "Kind", "'connect-native:n'");
    assert_field(service, "TaskName", "'t'");
    struct alloc_spec *spec = spec_of(job);
    assert_int_equal(spec->tasks[0].connect, CONNECT_NATIVE);
    assert_string_equal(spec->tasks[0].connect_service, "n");
    assert_true(spec->services[0].connect->native);
    alloc_spec_free(spec);
    json_decref(job);
}

static void test_an_alloc_knows_all_of_its_sidecar(void **state)
{
    json_t *job;

    (void)state;
    (void)group_of(
        BRIDGE SIDECAR(
            "tags = [\"x\"]\n disable_default_tcp_check = true\n meta {\n k = \"v\"\n}\n"
            "proxy {\n local_service_address = \"127.0.0.9\"\n local_service_port = 81\n"
            "config {\n a = 1\n}\n upstreams {\n destination_name = \"db\"\n"
            "datacenter = \"dc2\"\n local_bind_address = \"127.0.0.3\"\n"
            "local_bind_port = 5000\n mesh_gateway {\n mode = \"local\"\n}\n"
            "config {\n b = 2\n}\n}\n upstreams {\n destination_name = \"s\"\n"
            "local_bind_socket_path = \"/s\"\n local_bind_socket_mode = \"0600\"\n}\n"
            "expose {\n path {\n path = \"/h\"\n local_path_port = 82\n"
            "listener_port = \"connect-proxy-api-j\"\n protocol = \"http\"\n}\n}\n}\n") "}\n}"
                                                                                        "\n" TASK,
        &job);
    struct alloc_spec *spec = spec_of(job);
    const struct spec_connect *connect = spec->services[0].connect;

    assert_int_equal(spec->tasks[1].connect, CONNECT_PROXY);
    assert_string_equal(spec->tasks[1].connect_service, "api-j");
    assert_int_equal(spec->tasks[0].connect, CONNECT_NOTHING);
    assert_string_equal(connect->tags.items[0], "x");
    assert_string_equal(connect->meta.items[0].value, "v");
    assert_true(connect->no_tcp_check);
    assert_string_equal(connect->service_address, "127.0.0.9");
    assert_int_equal(connect->service_port, 81);
    assert_string_equal(connect->config_json, "{\"a\":1}");
    assert_int_equal(connect->upstreams_count, 2);
    assert_string_equal(connect->upstreams[0].name, "db");
    assert_string_equal(connect->upstreams[0].datacenter, "dc2");
    assert_string_equal(connect->upstreams[0].address, "127.0.0.3");
    assert_int_equal(connect->upstreams[0].port, 5000);
    assert_string_equal(connect->upstreams[0].mesh_gateway, "local");
    assert_string_equal(connect->upstreams[0].config_json, "{\"b\":2}");
    assert_string_equal(connect->upstreams[1].socket, "/s");
    assert_string_equal(connect->upstreams[1].socket_mode, "0600");
    assert_int_equal(connect->exposed_count, 1);
    assert_string_equal(connect->exposed[0].path, "/h");
    assert_string_equal(connect->exposed[0].listener, "connect-proxy-api-j");
    assert_int_equal(connect->exposed[0].port, 82);
    alloc_spec_free(spec);
    json_decref(job);
}

/* Consul tells the sidecar, which goes on; and whoever asks what would change is told of it. */
static void test_other_upstreams_replace_no_alloc(void **state)
{
    static const char *const texts[] = {
        BRIDGE SIDECAR("proxy {\n upstreams {\n destination_name = \"db\"\n local_bind_port = "
                       "5000\n}\n}\n") "}\n}\n" TASK,
        BRIDGE SIDECAR("proxy {\n upstreams {\n destination_name = \"db\"\n local_bind_port = "
                       "5001\n}\n}\n") "}\n}\n" TASK,
    };
    json_t *jobs[2], *essences[2];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        (void)group_of(texts[i], &jobs[i]);
        essences[i] = jobspec_essence(jobs[i], "g");
    }
    assert_true(json_equal(essences[0], essences[1]));
    json_t *diff = jobspec_diff(jobs[0], jobs[1]);
    char *text = json_dumps(diff, JSON_COMPACT);
    static const char *const order[] = {"\"ConsulConnect\"", "\"SidecarService\"",
                                        "\"ConsulProxy\"", "\"ConsulUpstreams\"",
                                        "\"LocalBindPort\""};
    const char *at = text;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        at = strstr(at, order[i]);
        if (at == NULL)
            fail_msg("%s is not told: %s", order[i], text);
    }
    free(text);
    json_decref(diff);
    json_t *stored = essence_of_alloc(jobs[0]);
    if (!json_equal(stored, essences[1]))
        fail_msg("%s\n%s", json_dumps(stored, JSON_SORT_KEYS),
                 json_dumps(essences[1], JSON_SORT_KEYS));
    json_decref(stored);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        json_decref(essences[i]);
        json_decref(jobs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sidecar_gets_a_task_and_a_port),
        cmocka_unit_test(test_a_job_that_comes_back_with_it_is_the_same),
        cmocka_unit_test(test_what_the_job_says_of_the_task_goes_before),
        cmocka_unit_test(test_another_driver_has_a_config_of_its_own),
        cmocka_unit_test(test_a_native_service_is_its_tasks),
        cmocka_unit_test(test_an_alloc_knows_all_of_its_sidecar),
        cmocka_unit_test(test_other_upstreams_replace_no_alloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
