/*
 * Tasks in the mesh of Consul: how they are registered, what they are told, and what is there
 * before they start, with a program `consul` of the test's own.
 */
#include "test/hooks/fixture.h"

#include "fsm/results.h"
#include "hooks/services.h"

#include <signal.h>
#include <stdlib.h>

#define TOKEN "11111111-2222-3333-4444-555555555555"

static struct {
    struct hooks_connect connect;
    struct spec_connect mesh;
    struct spec_upstream upstream;
    struct spec_exposed exposed;
    struct spec_service service;
    struct spec_port ports[2];
    char bin[PATH_SIZE], says[PATH_SIZE];

    const char *token; /* that is derived; NULL: none */
    int code;
    bool withholds; /* nobody answers, but tells later: */
    hooks_derived *done;
    void *done_ctx;
    unsigned derived;
    const char *envoy;
} mesh;

static void derive(void *ctx, const char *alloc, const char *task, hooks_derived *done,
                   void *done_ctx)
{
    struct err err = {0};

    (void)ctx;
    assert_string_equal(alloc, ALLOC_ID);
    assert_string_equal(task, "web");
    mesh.derived++;
    mesh.done = done;
    mesh.done_ctx = done_ctx;
    if (mesh.code != 0) {
        (void)err_set(&err, mesh.code, "no");
        err.recoverable = true;
    }
    if (!mesh.withholds)
        done(done_ctx, mesh.token, mesh.code != 0 ? &err : NULL);
}

static const char *envoy(void *ctx)
{
    (void)ctx;
    return mesh.envoy;
}

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    memset(&mesh, 0, sizeof(mesh));
    mesh.connect = (struct hooks_connect){.address = "127.0.0.1:8500",
                                          .token = "agents",
                                          .verifies = true,
                                          .ca_file = "",
                                          .cert_file = "",
                                          .key_file = "",
                                          .grpc_ca_file = "",
                                          .shares_files = true,
                                          .envoy = envoy,
                                          .derive = derive};
    mesh.upstream = (struct spec_upstream){.name = "count-db",
                                           .peer = "",
                                           .type = "",
                                           .datacenter = "",
                                           .address = "",
                                           .port = 5000,
                                           .socket = "",
                                           .socket_mode = "",
                                           .mesh_gateway = "local",
                                           .config_json = "{\"x\":[\"${NOMAD_JOB_ID}\",1]}"};
    mesh.exposed =
        (struct spec_exposed){.path = "/h", .protocol = "http", .listener = "health", .port = 9001};
    mesh.mesh = (struct spec_connect){.port = "",
                                      .service_address = "",
                                      .service_port = 9001,
                                      .config_json = "{\"a\":\"${NOMAD_GROUP_NAME}\"}",
                                      .upstreams = &mesh.upstream,
                                      .upstreams_count = 1,
                                      .exposed = &mesh.exposed,
                                      .exposed_count = 1};
    mesh.service = (struct spec_service){.provider = PROVIDER_CONSUL,
                                         .task = "",
                                         .name = "api",
                                         .port = "9001",
                                         .address = "",
                                         .identity = "",
                                         .connect = &mesh.mesh};
    mesh.ports[0] = (struct spec_port){.label = "connect-proxy-api",
                                       .task = "",
                                       .host_network = "",
                                       .host_ip = "192.0.2.1",
                                       .value = 20001,
                                       .to = 7};
    mesh.ports[1] = (struct spec_port){
        .label = "health", .task = "", .host_network = "", .host_ip = "192.0.2.1", .value = 20002};
    fixture->alloc.services = &mesh.service;
    fixture->alloc.services_count = 1;
    fixture->alloc.ports = (struct spec_ports){mesh.ports, COUNT_OF(mesh.ports)};
    fixture->alloc.network_mode = "bridge";
    fixture->task.connect = CONNECT_PROXY;
    fixture->task.connect_service = "api";
    fixture->connect = &mesh.connect;
    start_hooks(fixture, NULL);
    assert_int_equal(path_join(mesh.bin, fixture->scratch.path, "bin"), 0);
    assert_int_equal(path_join(mesh.says, fixture->scratch.path, "says"), 0);
    assert_return_code(mkdir(mesh.bin, 0755), 0);
    assert_return_code(setenv("PATH", mesh.bin, 1), 0);
    return code;
}

static int clear(void **state)
{
    struct fixture *fixture = *state;

    (void)strip_task(fixture); /* the mount of its secrets, where there is one */
    return fixture_remove(state);
}

/* A program `consul` in PATH that runs TEXT; $S is a file for it. */
static void write_program(const char *text)
{
    char path[PATH_SIZE];

    assert_int_equal(path_join(path, mesh.bin, "consul"), 0);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fprintf(file, "#!/bin/sh\nPATH=/bin:/usr/bin\nS=%s\n%s\n", mesh.says, text) > 0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(chmod(path, 0755), 0);
}

static void begin(struct fixture *fixture)
{
    assert_int_equal(build_alloc(fixture), 0);
    assert_int_equal(build_task(fixture), 0);
}

/* Runs a hook that may leave something; its code. */
static int run(struct fixture *fixture, enum task_hook hook)
{
    ask(fixture, PHASE_PRESTART, hook, &fixture->task);
    loop_run(fixture->loop);
    assert_true(fixture->answered);
    return fixture->outcome.code;
}

static void stop(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

/* A while of the loop's. */
static void turn(struct fixture *fixture)
{
    struct io_timer timer = {0};

    io_timer_start(fixture->loop, &timer, loop_now_ms() + 10, stop, fixture->loop);
    loop_run(fixture->loop);
    io_timer_stop(&timer);
}

static void assert_secret(struct fixture *fixture, const char *path, const char *expected)
{
    struct stat status;
    char *bytes;
    size_t length;

    assert_int_equal(
        file_read(in_alloc(fixture, path), 4000, &bytes, &length, &fixture->scratch.err), 0);
    assert_string_equal(bytes, expected);
    free(bytes);
    assert_return_code(lstat(in_alloc(fixture, path), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600u);
}

static void assert_missing(struct fixture *fixture, const char *path)
{
    assert_int_not_equal(access(in_alloc(fixture, path), F_OK), 0);
}

/* --- registrations --- */

static void test_a_sidecar_is_registered_with_its_service(void **state)
{
    static const char expected[] =
        "{\"SidecarService\":{\"Address\":\"192.0.2.1\",\"Checks\":[{\"AliasService\":\"ID\","
        "\"Name\":\"Connect Sidecar Aliasing ID\"},{\"Interval\":\"10s\",\"Name\":\"Connect "
        "Sidecar "
        "Listening\",\"TCP\":\"192.0.2.1:20001\"}],\"Port\":20001,\"Proxy\":{\"Config\":{\"a\":"
        "\"front\",\"bind_address\":\"0.0.0.0\",\"bind_port\":7,\"envoy_stats_tags\":[\"nomad."
        "alloc_"
        "id=" ALLOC_ID "\",\"nomad.group=front\",\"nomad.job=shop\",\"nomad.namespace=default\"]},"
        "\"Expose\":{\"Paths\":[{\"ListenerPort\":20002,\"LocalPathPort\":9001,\"Path\":\"/h\","
        "\"Protocol\":\"http\"}]},\"LocalServicePort\":9001,\"Upstreams\":[{\"Config\":{\"x\":"
        "[\"shop\",1]},\"DestinationName\":\"count-db\",\"LocalBindPort\":5000,\"MeshGateway\":"
        "{\"Mode\":\"local\"}}]}}}";
    static const char id[] = "_nomad-task-" ALLOC_ID "-group-front-api-9001";
    struct fixture *fixture = *state;
    struct hooks_services *services;
    struct err err = {0};
    char whole[sizeof(expected) + 2 * sizeof(id)] = "";

    for (const char *at = expected; *at != '\0'; at++) {
        char one[2] = {*at};
        bool is_id = strncmp(at, "ID\"", 3) == 0;

        assert_true(text_append(whole, sizeof(whole), is_id ? id : one));
        at += is_id;
    }
    if (hooks_services_make(fixture->hooks, &fixture->alloc, false, NULL, &services, &err) != 0)
        fail_msg("%s", err.text);
    char *text = json_dumps(json_object_get(services->items[0].registration, "Connect"),
                            JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, whole);
    free(text);
    hooks_services_free(services);
}

static void test_what_it_needs_and_has_not_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_services *services;
    struct err err = {0};

    mesh.mesh.port = "other";
    assert_int_equal(
        hooks_services_make(fixture->hooks, &fixture->alloc, false, NULL, &services, &err),
        ERR_INVALID);
    assert_non_null(strstr(err.text, "no port of label \"other\""));
    mesh.mesh.port = "health"; /* another one will do */
    mesh.exposed.listener = "none";
    assert_int_equal(
        hooks_services_make(fixture->hooks, &fixture->alloc, false, NULL, &services, &err),
        ERR_INVALID);
    assert_non_null(strstr(err.text, "no port of label \"none\""));
}

/* --- what tasks are told --- */

static const char *variable(const struct hooks_launch *launch, const char *name)
{
    for (size_t i = 0; i < launch->env.count; i++) {
        if (text_equal(launch->env.items[i].key, name))
            return launch->env.items[i].value;
    }
    return "";
}

static struct hooks_launch *prepare(struct fixture *fixture, const uint8_t *results, uint32_t bytes)
{
    struct hooks_launch *launch;
    struct err err;

    if (hooks_prepare(fixture->hooks, &fixture->alloc, &fixture->task, results, bytes, &launch,
                      &err) != 0)
        fail_msg("%s", err.text);
    return launch;
}

static void test_tasks_know_their_upstreams(void **state)
{
    struct fixture *fixture = *state;
    struct hooks_launch *launch;

    fixture->task.connect = CONNECT_NOTHING; /* any task of the group */
    launch = prepare(fixture, NULL, 0);
    assert_string_equal(variable(launch, "NOMAD_UPSTREAM_ADDR_count_db"), "127.0.0.1:5000");
    assert_string_equal(variable(launch, "NOMAD_UPSTREAM_IP_count_db"), "127.0.0.1");
    assert_string_equal(variable(launch, "NOMAD_UPSTREAM_PORT_count_db"), "5000");
    hooks_launch_free(launch);
}

static void test_the_image_is_of_the_version_that_consul_prefers(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair meta = {"connect.sidecar_image", "e/envoy:v${NOMAD_envoy_version}-x"};
    struct hooks_launch *launch;

    begin(fixture);
    fixture->node.meta = (struct spec_pairs){&meta, 1};
    fixture->task.config_json = "{\"image\":\"${meta.connect.sidecar_image}\"}";
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_VERSION), ERR_GONE);
    assert_true(fixture->outcome.recoverable);
    mesh.envoy = "1.31.0";
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_VERSION), 0);
    uint8_t bytes[256];
    struct results results = {.bytes = bytes, .size = sizeof(bytes)};
    assert_int_equal(results_set(&results, TASK_HOOK_ENVOY_VERSION, RESULT_ENV,
                                 "NOMAD_envoy_version", "1.31.0", 6),
                     0);
    launch = prepare(fixture, bytes, results.used);
    assert_string_equal(launch->task.config_json, "{\"image\":\"e/envoy:v1.31.0-x\"}");
    hooks_launch_free(launch);
    fixture->task.config_json = "{\"command\":\"envoy\"}"; /* which is whatever it is */
    mesh.envoy = NULL;
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_VERSION), 0);
}

/* --- tokens --- */

static void test_a_token_is_derived_once_and_its_users_alone(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    mesh.token = TOKEN;
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    assert_secret(fixture, "web/secrets/si_token", TOKEN);
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    assert_int_equal(mesh.derived, 1);
    assert_return_code(unlink(in_alloc(fixture, "web/secrets/si_token")), 0); /* a reboot */
    mesh.token = "another";
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    assert_secret(fixture, "web/secrets/si_token", "another");
}

static void test_without_a_token_of_the_agent_or_of_servers_there_is_none(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0); /* servers do not derive any */
    assert_int_equal(mesh.derived, 1);
    mesh.connect.token = "";
    mesh.token = TOKEN;
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    assert_int_equal(mesh.derived, 1);
    assert_missing(fixture, "web/secrets/si_token");
}

static void test_a_token_that_is_refused_fails_the_hook(void **state)
{
    struct fixture *fixture = *state;
    char large[300];

    begin(fixture);
    mesh.code = ERR_REFUSED;
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), ERR_REFUSED);
    assert_outcome(fixture, ERR_REFUSED, true, "failed to derive SI token: no");
    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    mesh.code = 0;
    mesh.token = large;
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), ERR_INVALID);
    assert_null(strstr(fixture->text, "xxx"));
    assert_missing(fixture, "web/secrets/si_token");
}

static void test_who_ends_meanwhile_gets_none(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    mesh.withholds = true;
    ask(fixture, PHASE_PRESTART, TASK_HOOK_SI_TOKEN, &fixture->task);
    while (mesh.derived == 0)
        turn(fixture);
    hooks_abort(fixture->hooks, ALLOC_ID, "web");
    loop_run(fixture->loop);
    assert_int_equal(fixture->outcome.code, ERR_CANCELED);
    mesh.done(mesh.done_ctx, TOKEN, NULL); /* which comes too late */
    assert_missing(fixture, "web/secrets/si_token");
}

/* --- the file for Envoy --- */

static void test_the_file_is_what_consul_says(void **state)
{
    struct fixture *fixture = *state;

    write_program("echo \"{\\\"args\\\": \\\"$*\\\", \\\"token\\\": \\\"$CONSUL_HTTP_TOKEN\\\", "
                  "\\\"ssl\\\": \\\"$CONSUL_HTTP_SSL$CONSUL_HTTP_SSL_VERIFY\\\", \\\"job\\\": "
                  "\\\"$NOMAD_JOB_ID\\\"}\"");
    begin(fixture);
    fixture->task.driver = "docker";
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), 0);
    fixture->task.driver = "raw_exec";
    mesh.connect.ca_file = "/c";
    mesh.token = TOKEN;
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), 0);
    char expected[4096];
    assert_true(text_format(
        expected, sizeof(expected),
        "{\"args\": \"connect envoy -grpc-addr unix://%s/alloc/tmp/consul_grpc.sock -http-addr "
        "127.0.0.1:8500 -admin-bind 127.0.0.2:19000 -address 127.0.0.1:19100 -proxy-id "
        "_nomad-task-" ALLOC_ID "-group-front-api-9001-sidecar-proxy -bootstrap -ca-file /c\", "
        "\"token\": \"" TOKEN "\", \"ssl\": \"falsetrue\", \"job\": \"shop\"}\n",
        fixture->root));
    assert_secret(fixture, "web/secrets/envoy_bootstrap.json", expected);
}

static void test_what_runs_in_an_image_can_read_it(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    write_program("echo '{}'");
    fixture->task.driver = "docker";
    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), 0);
    assert_return_code(stat(in_alloc(fixture, "web/secrets/envoy_bootstrap.json"), &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0644u);
    assert_return_code(stat(in_alloc(fixture, "web"), &status), 0);
    assert_int_equal(status.st_mode & 0777u, 0700u); /* which nobody else gets to */
}

static void test_a_service_that_is_not_there_yet_is_asked_for_again(void **state)
{
    struct fixture *fixture = *state;

    write_program("[ -e $S ] && echo '{}' && exit 0\ntouch $S\necho no such proxy >&2\nexit 1");
    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), 0);
    assert_secret(fixture, "web/secrets/envoy_bootstrap.json", "{}\n");
}

static void test_what_is_no_json_is_no_file(void **state)
{
    struct fixture *fixture = *state;

    write_program("echo hello");
    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), ERR_INVALID);
    assert_outcome(fixture, ERR_INVALID, false, "consul made no JSON of it");
    assert_missing(fixture, "web/secrets/envoy_bootstrap.json");
}

static void test_without_the_program_or_the_service_there_is_none(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), ERR_GONE);
    assert_outcome(fixture, ERR_GONE, false, "there is no program consul in PATH");
    fixture->task.connect_service = "other";
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), ERR_INVALID);
    fixture->connect = NULL;
    start_hooks(fixture, NULL);
    assert_int_equal(run(fixture, TASK_HOOK_ENVOY_BOOTSTRAP), ERR_UNSUPPORTED);
    assert_int_equal(run(fixture, TASK_HOOK_CONNECT_NATIVE), ERR_UNSUPPORTED);
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
}

static bool is_running(const char *pid_file, pid_t *ret_pid)
{
    char *bytes;
    size_t length;
    struct err err;

    if (file_read(pid_file, 32, &bytes, &length, &err) != 0)
        return false;
    *ret_pid = (pid_t)strtol(bytes, NULL, 10);
    free(bytes);
    return *ret_pid > 0 && length > 1;
}

static void test_a_program_that_hangs_ends_with_its_task(void **state)
{
    struct fixture *fixture = *state;
    pid_t pid = 0;

    write_program("echo $$ > $S\nexec sleep 1000");
    begin(fixture);
    ask(fixture, PHASE_PRESTART, TASK_HOOK_ENVOY_BOOTSTRAP, &fixture->task);
    while (!is_running(mesh.says, &pid))
        turn(fixture);
    hooks_abort(fixture->hooks, ALLOC_ID, "web");
    while (!fixture->answered)
        turn(fixture);
    assert_int_equal(fixture->outcome.code, ERR_CANCELED);
    while (kill(pid, 0) == 0)
        turn(fixture);
    assert_missing(fixture, "web/secrets/envoy_bootstrap.json");
}

/* --- native --- */

static void test_a_native_task_reaches_consul(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair given = {"CONSUL_HTTP_SSL", "mine"};
    char path[PATH_SIZE];
    struct hooks_launch *launch;

    mesh.mesh = (struct spec_connect){
        .native = true, .port = "", .service_address = "", .config_json = "{}"};
    fixture->task.connect = CONNECT_NATIVE;
    fixture->task.env = (struct spec_pairs){&given, 1};
    assert_int_equal(path_join(path, fixture->scratch.path, "ca.pem"), 0);
    FILE *file = fopen(path, "we");
    assert_true(file != NULL && fputs("CA", file) > 0 && fclose(file) == 0);
    mesh.connect.ca_file = path;
    mesh.token = TOKEN;
    begin(fixture);
    assert_int_equal(run(fixture, TASK_HOOK_SI_TOKEN), 0);
    ask(fixture, PHASE_PRESTART, TASK_HOOK_CONNECT_NATIVE, &fixture->task);
    loop_run(fixture->loop);
    assert_int_equal(fixture->outcome.code, 0);
    assert_secret(fixture, "web/secrets/consul_ca_file.pem", "CA");
    launch = prepare(fixture, NULL, 0);
    assert_string_equal(variable(launch, "CONSUL_HTTP_TOKEN"), TOKEN);
    assert_string_equal(variable(launch, "CONSUL_HTTP_SSL"), "mine");
    hooks_launch_free(launch);
    given.key = "CONSUL_HTTP_TOKEN";
    launch = prepare(fixture, NULL, 0);
    assert_string_equal(variable(launch, "CONSUL_HTTP_TOKEN"), "mine");
    hooks_launch_free(launch);
    mesh.connect.ca_file = "/nonexistent/ca.pem";
    assert_int_not_equal(run(fixture, TASK_HOOK_CONNECT_NATIVE), 0);
    assert_non_null(strstr(fixture->text, "failed to copy Consul TLS certificates"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sidecar_is_registered_with_its_service, make, clear),
        cmocka_unit_test_setup_teardown(test_what_it_needs_and_has_not_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_tasks_know_their_upstreams, make, clear),
        cmocka_unit_test_setup_teardown(test_the_image_is_of_the_version_that_consul_prefers, make,
                                        clear),
        cmocka_unit_test_setup_teardown(test_a_token_is_derived_once_and_its_users_alone, make,
                                        clear),
        cmocka_unit_test_setup_teardown(
            test_without_a_token_of_the_agent_or_of_servers_there_is_none, make, clear),
        cmocka_unit_test_setup_teardown(test_a_token_that_is_refused_fails_the_hook, make, clear),
        cmocka_unit_test_setup_teardown(test_who_ends_meanwhile_gets_none, make, clear),
        cmocka_unit_test_setup_teardown(test_the_file_is_what_consul_says, make, clear),
        cmocka_unit_test_setup_teardown(test_what_runs_in_an_image_can_read_it, make, clear),
        cmocka_unit_test_setup_teardown(test_a_service_that_is_not_there_yet_is_asked_for_again,
                                        make, clear),
        cmocka_unit_test_setup_teardown(test_what_is_no_json_is_no_file, make, clear),
        cmocka_unit_test_setup_teardown(test_without_the_program_or_the_service_there_is_none, make,
                                        clear),
        cmocka_unit_test_setup_teardown(test_a_program_that_hangs_ends_with_its_task, make, clear),
        cmocka_unit_test_setup_teardown(test_a_native_task_reaches_consul, make, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
