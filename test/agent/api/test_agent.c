/* The agent and its node about themselves: what Nomad's tools ask for is there, in their form. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

static json_t *get(struct whole_node *node, const char *path)
{
    char *text;
    int status = talk(node, &(struct question){.path = path}, &text);

    if (status != 200)
        fail_msg("%s: %d %s", path, status, text);
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static const char *text_at(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    assert_non_null(text);
    return text;
}

static void test_agent_describes_itself(void **state)
{
    struct whole_node *node = *state;
    json_t *self = get(node, "/v1/agent/self"), *members = get(node, "/v1/agent/members");
    const json_t *config = json_object_get(self, "config");
    const json_t *member = json_array_get(json_object_get(members, "Members"), 0);

    assert_string_equal(text_at(config, "Name"), "node-1");
    assert_string_equal(text_at(config, "Datacenter"), "dc1");
    assert_string_equal(
        text_at(json_object_get(json_object_get(self, "stats"), "client"), "node_id"),
        WHOLE_NODE_ID);
    assert_string_equal(text_at(member, "Name"), "node-1.global");
    assert_string_equal(text_at(json_object_get(member, "Tags"), "port"),
                        strrchr(api_address(node->api), ':') + 1);
    json_decref(self);
    json_decref(members);
}

static void test_agent_is_its_own_leader(void **state)
{
    struct whole_node *node = *state;
    json_t *leader = get(node, "/v1/status/leader"), *peers = get(node, "/v1/status/peers");
    json_t *servers = get(node, "/v1/agent/servers"), *regions = get(node, "/v1/regions");

    assert_string_equal(json_string_value(leader), api_address(node->api));
    assert_string_equal(json_string_value(json_array_get(peers, 0)), api_address(node->api));
    assert_int_equal(json_array_size(servers), 0);
    assert_string_equal(json_string_value(json_array_get(regions, 0)), "global");
    json_decref(leader);
    json_decref(peers);
    json_decref(servers);
    json_decref(regions);
}

static void test_agent_that_is_well_says_so(void **state)
{
    struct whole_node *node = *state;
    json_t *health = get(node, "/v1/agent/health");

    assert_true(json_is_true(json_object_get(json_object_get(health, "client"), "ok")));
    json_decref(health);
}

static void test_namespaces_are_those_of_jobs(void **state)
{
    struct whole_node *node = *state;
    json_t *all = get(node, "/v1/namespaces"), *none = get(node, "/v1/namespaces?prefix=x");

    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(text_at(json_array_get(all, 0), "Name"), "default");
    assert_int_equal(json_array_size(none), 0);
    json_decref(all);
    json_decref(none);
    json_decref(get(node, "/v1/namespace/default"));
    assert_int_equal(status_of(node, "GET", "/v1/namespace/none"), 404);
}

static double gauge(const json_t *metrics, const char *name)
{
    const json_t *found;
    size_t i;

    json_array_foreach(json_object_get(metrics, "Gauges"), i, found)
    {
        if (text_equal(text_at(found, "Name"), name))
            return json_number_value(json_object_get(found, "Value"));
    }
    fail_msg("there is no gauge %s", name);
    return 0;
}

static void test_metrics_count_what_there_is_in_both_forms(void **state)
{
    struct whole_node *node = *state;
    char *text;

    whole_register(node, "web", 3);
    whole_turns(node);
    json_t *metrics = get(node, "/v1/metrics");
    assert_true(gauge(metrics, "nomad.client.allocations.running") == 3);
    assert_true(gauge(metrics, "cairn.machines.tasks") == 3);
    assert_true(gauge(metrics, "nomad.client.host.disk.size") > 0);
    assert_true(gauge(metrics, "nomad.runtime.resident_bytes") > 0);
    json_decref(metrics);

    const struct question prometheus = {.path = "/v1/metrics?format=prometheus"};
    (void)text_copy(node->config.name, sizeof(node->config.name), "a\"b\\c");
    assert_int_equal(talk(node, &prometheus, &text), 200);
    assert_non_null(strstr(text, "# TYPE nomad_client_allocations_running gauge\n"
                                 "nomad_client_allocations_running{node_id=\"" WHOLE_NODE_ID
                                 "\",datacenter=\"dc1\",node_class=\"none\",node_pool=\"default\","
                                 "node_status=\"ready\",node_scheduling_eligibility=\"eligible\","
                                 "host=\"a\\\"b\\\\c\"} 3\n"));
    assert_non_null(strstr(text, "\nnomad_client_tasks_running{"));
    assert_non_null(strstr(text, "\nnomad_client_allocated_memory{"));
    assert_null(strstr(text, "nomad_client_allocs_")); /* nobody asked for what costs more */
    free(text);
}

static void expect_given(struct whole_node *node)
{
    json_t *metrics = get(node, "/v1/metrics");
    assert_true(gauge(metrics, "nomad.client.allocated.cpu") == 2 * 350);
    assert_true(gauge(metrics, "nomad.client.allocated.memory") == 2 * (64 + 32));
    assert_true(gauge(metrics, "nomad.client.allocated.max_memory") == 2 * (256 + 32));
    assert_true(gauge(metrics, "nomad.client.allocated.disk") == 2 * 150);
    assert_true(gauge(metrics, "nomad.client.unallocated.cpu") == 1000 - 700);
    assert_true(gauge(metrics, "nomad.client.unallocated.memory") == 4000 - 192);
    json_decref(metrics);
}

/* What runs before the mains does not run beside them, and who may take more has a limit, or none.
 */
static void test_metrics_sum_what_allocs_were_given(void **state)
{
    struct whole_node *node = *state;
    struct alone_evaluation evaluation;

    node->parts.node.room = (struct room){.cpu_mhz = 1000, .memory_mb = 4000, .disk_mb = 500};
    whole_register_job(
        node,
        json_loads(
            "{\"ID\":\"web\",\"Name\":\"web\",\"Type\":\"service\",\"Datacenters\":[\"dc1\"],"
            "\"TaskGroups\":[{\"Name\":\"g\",\"Count\":2,\"EphemeralDisk\":{\"SizeMB\":150},"
            "\"Tasks\":[{\"Name\":\"a\",\"Driver\":\"raw_exec\",\"Config\":{\"command\":\"a\"},"
            "\"Resources\":{\"CPU\":100,\"MemoryMB\":64,\"MemoryMaxMB\":256}},"
            "{\"Name\":\"b\",\"Driver\":\"raw_exec\",\"Config\":{\"command\":\"b\"},"
            "\"Resources\":{\"CPU\":200,\"MemoryMB\":32}},"
            "{\"Name\":\"c\",\"Driver\":\"raw_exec\",\"Config\":{\"command\":\"c\"},"
            "\"Lifecycle\":{\"Hook\":\"prestart\"},"
            "\"Resources\":{\"CPU\":350,\"MemoryMB\":10,\"MemoryMaxMB\":-1}}]}]}",
            0, NULL));
    whole_turns(node);
    expect_given(node);
    specs_free(node->parts.specs);
    node->parts.specs = specs_new(node->parts.journal); /* as after a restart */
    expect_given(node);

    assert_return_code(alone_deregister(node->parts.alone, "default", "web", 0, &evaluation, NULL),
                       0);
    whole_turns(node);
    json_t *metrics = get(node, "/v1/metrics");
    assert_true(gauge(metrics, "nomad.client.allocated.max_memory") == 0);
    assert_true(gauge(metrics, "nomad.client.unallocated.memory") == 4000);
    json_decref(metrics);
}

static void test_metrics_are_those_that_are_published(void **state)
{
    struct whole_node *node = *state;
    json_t *found;
    size_t i;

    node->config.publishes_node = node->config.publishes_prometheus = false;
    assert_int_equal(status_of(node, "GET", "/v1/metrics?format=prometheus"), 415);
    json_t *metrics = get(node, "/v1/metrics");
    json_array_foreach(json_object_get(metrics, "Gauges"), i, found)
        assert_null(strstr(text_at(found, "Name"), "nomad.client."));
    assert_true(gauge(metrics, "cairn.degraded") == 0);
    json_decref(metrics);
}

static void test_node_is_the_only_one(void **state)
{
    struct whole_node *node = *state;
    json_t *nodes = get(node, "/v1/nodes?resources=true"), *none = get(node, "/v1/nodes?prefix=c");
    json_t *whole = get(node, "/v1/node/" WHOLE_NODE_ID);

    assert_int_equal(json_array_size(nodes), 1);
    assert_string_equal(text_at(json_array_get(nodes, 0), "ID"), WHOLE_NODE_ID);
    assert_string_equal(text_at(json_array_get(nodes, 0), "Status"), "ready");
    assert_int_equal(json_array_size(none), 0);
    assert_string_equal(text_at(whole, "ID"), WHOLE_NODE_ID);
    assert_string_equal(text_at(whole, "HTTPAddr"), api_address(node->api));
    assert_int_equal(status_of(node, "GET", "/v1/node/none"), 404);
    assert_int_equal(status_of(node, "GET", "/v1/client/stats?node_id=none"), 404);
    assert_int_equal(status_of(node, "GET", "/v1/nodes?resources=perhaps"), 400);
    json_decref(nodes);
    json_decref(none);
    json_decref(whole);
}

static void test_node_shows_its_allocs(void **state)
{
    struct whole_node *node = *state;

    whole_register(node, "web", 2);
    whole_turns(node);
    json_t *allocs = get(node, "/v1/node/" WHOLE_NODE_ID "/allocations");
    assert_int_equal(json_array_size(allocs), 2);
    assert_non_null(json_object_get(json_array_get(allocs, 0), "TaskStates"));
    json_decref(allocs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_agent_describes_itself),
        TEST(test_agent_is_its_own_leader),
        TEST(test_agent_that_is_well_says_so),
        TEST(test_namespaces_are_those_of_jobs),
        TEST(test_metrics_count_what_there_is_in_both_forms),
        TEST(test_metrics_sum_what_allocs_were_given),
        TEST(test_metrics_are_those_that_are_published),
        TEST(test_node_is_the_only_one),
        TEST(test_node_shows_its_allocs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
