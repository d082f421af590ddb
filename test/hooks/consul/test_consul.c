/* What the agent of Consul has, compared with what is wanted; what it says of itself; ids that are
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks/consul/part.h"

#include <stdlib.h>
#include <string.h>

static const char wanted_text[] =
    "{'ID': 'i', 'Name': 'web', 'Address': 'a', 'Port': 80, 'Tags': ['x', 'y'],"
    " 'Meta': {'k': 'v', 'cairn-node': 'n'}, 'Checks': [{'CheckID': '_nomad-check-1'}]}";
static const char there_text[] =
    "{'ID': 'i', 'Service': 'web', 'Address': 'a', 'Port': 80, 'Tags': ['y', 'x'],"
    " 'Meta': {'cairn-node': 'n', 'k': 'v'}, 'Weights': {'Passing': 1, 'Warning': 1},"
    " 'EnableTagOverride': false, 'TaggedAddresses': {'lan_ipv4': {'Address': 'a', 'Port': 80}}}";
static const char checks_text[] =
    "{'_nomad-check-1': {'ServiceID': 'i', 'Status': 'passing'},"
    " '_nomad-check-2': {'ServiceID': 'other'}, 'by hand': {'ServiceID': 'i'}}";

/* TEXT with ' for ", as a new reference. */
static json_t *value_of(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *at = copy; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_loads(copy, 0, NULL);
    if (value == NULL)
        fail_msg("%s is no JSON", text);
    free(copy);
    return value;
}

/* Whether it is the same once FIELD of what is THERE, or else of what is wanted, is VALUE. */
static bool same_with(bool there_too, const char *field, const char *value, bool tags)
{
    json_t *wanted = value_of(wanted_text), *there = value_of(there_text);
    json_t *checks = value_of(checks_text);
    json_t *other = field == NULL ? NULL : value_of(value);

    if (field != NULL)
        assert_int_equal(
            json_object_set(there_too ? there : wanted, field, json_object_get(other, "v")), 0);
    json_t *services = json_pack("{s:O}", "i", there);
    bool same = consul_is_same(wanted, services, checks, tags);
    json_decref(services);
    json_decref(other);
    json_decref(checks);
    json_decref(there);
    json_decref(wanted);
    return same;
}

static void test_what_is_wanted_is_the_same_in_consuls_own_words(void **state)
{
    (void)state;
    assert_true(same_with(false, NULL, NULL, false));
}

static void test_each_difference_is_seen(void **state)
{
    static const struct {
        const char *field, *value;
    } cases[] = {
        {"Service", "{'v': 'other'}"},
        {"Service", "{'v': null}"},
        {"Address", "{'v': 'b'}"},
        {"Port", "{'v': 81}"},
        {"Tags", "{'v': ['x']}"},
        {"Tags", "{'v': ['x', 'y', 'z']}"},
        {"Tags", "{'v': ['x', 1]}"},
        {"Tags", "{'v': null}"},
        {"Meta", "{'v': {'cairn-node': 'n'}}"},
        {"Meta", "{'v': []}"},
        {"Weights", "{'v': {'Passing': 2, 'Warning': 1}}"},
        {"Weights", "{'v': {'Passing': 1, 'Warning': 2}}"},
        {"EnableTagOverride", "{'v': true}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (same_with(true, cases[i].field, cases[i].value, false))
            fail_msg("%s %s is not seen", cases[i].field, cases[i].value);
    }
}

static void test_checks_are_those_that_are_wanted_and_no_other_of_ours(void **state)
{
    (void)state;
    assert_false(same_with(false, "Checks", "{'v': []}", false));
    assert_false(same_with(false, "Checks", "{'v': [{'CheckID': '_nomad-check-2'}]}", false));
    assert_false(same_with(false, "Checks",
                           "{'v': [{'CheckID': '_nomad-check-1'}, {'CheckID': '_nomad-check-3'}]}",
                           false));
}

static void test_tags_of_others_stay_where_they_may(void **state)
{
    json_t *wanted = value_of("{'ID': 'i', 'EnableTagOverride': true, 'Tags': ['ours']}");
    json_t *there = value_of("{'EnableTagOverride': true, 'Tags': ['theirs'], 'Meta': {}}");
    json_t *none = value_of("{}"), *services = json_pack("{s:O}", "i", there), *merged;

    (void)state;
    assert_true(consul_is_same(wanted, services, none, false));
    assert_false(consul_is_same(wanted, services, none, true));
    json_decref(services);
    merged = consul_merge(wanted, there, false);
    assert_string_equal(json_string_value(json_array_get(json_object_get(merged, "Tags"), 0)),
                        "theirs");
    json_decref(merged);
    merged = consul_merge(wanted, there, true);
    assert_true(json_equal(merged, wanted));
    json_decref(merged);
    merged = consul_merge(wanted, NULL, false);
    assert_true(json_equal(merged, wanted));
    json_decref(merged);
    assert_int_equal(json_object_set_new(there, "EnableTagOverride", json_false()), 0);
    merged = consul_merge(wanted, there, false); /* it was not theirs to change by then */
    assert_true(json_equal(merged, wanted));
    json_decref(merged);
    json_decref(none);
    json_decref(there);
    json_decref(wanted);
}

/* --- sidecars --- */

static const char mesh_text[] =
    "{'ID': 'i', 'Name': 'web', 'Tags': ['x'], 'Connect': {'SidecarService': {'Port': 2,"
    " 'Address': 'a', 'Proxy': {'Config': {'bind_port': 2}, 'Upstreams': [{'DestinationName': 'db',"
    " 'LocalBindPort': 5, 'MeshGateway': {}, 'Config': {'n': 1, 'l': [1, 'x']}}],"
    " 'Expose': {'Paths': [{'Path': '/h', 'ListenerPort': 3, 'LocalPathPort': 4}]}}}}}";
static const char meshed_text[] =
    "{'i': {'Service': 'web', 'Tags': ['x']}, 'i-sidecar-proxy': {'Kind': 'connect-proxy',"
    " 'Service': 'web-sidecar-proxy', 'Port': 2, 'Address': 'a', 'Tags': ['x'],"
    " 'Proxy': {'DestinationServiceName': 'web', 'LocalServiceAddress': '127.0.0.1',"
    " 'Config': {'bind_port': 2}, 'Upstreams': [{'DestinationType': 'service', 'DestinationName':"
    " 'db', 'LocalBindPort': 5, 'MeshGateway': {}, 'Config': {'n': 1.0, 'l': [1, 'x']}}],"
    " 'Expose': {'Paths': [{'Path': '/h', 'ListenerPort': 3, 'LocalPathPort': 4,"
    " 'ParsedFromCheck': false}]}}}}";

/* Whether a service with a sidecar is the same once FIND in what is there is PUT. */
static bool same_mesh(const char *find, const char *put)
{
    char text[2048];
    const char *at = find == NULL ? NULL : strstr(meshed_text, find);

    assert_true(find == NULL || at != NULL);
    if (find == NULL)
        assert_true(text_copy(text, sizeof(text), meshed_text));
    else
        assert_true(text_format(text, sizeof(text), "%.*s%s%s", (int)(at - meshed_text),
                                meshed_text, put, at + strlen(find)));
    json_t *wanted = value_of(mesh_text), *services = value_of(text), *none = json_object();
    bool same = consul_is_same(wanted, services, none, false);
    json_decref(none);
    json_decref(services);
    json_decref(wanted);
    return same;
}

static void test_a_sidecar_is_the_same_in_consuls_own_words(void **state)
{
    (void)state;
    assert_true(same_mesh(NULL, NULL));
    assert_true(same_mesh("'bind_port': 2", "'bind_port': 7")); /* it follows from the rest */
}

static void test_each_difference_of_a_sidecar_is_seen(void **state)
{
    static const char *const cases[][2] = {
        {"'i-sidecar-proxy'", "'other'"},
        {"'Port': 2", "'Port': 7"},
        {"'Address': 'a'", "'Address': 'b'"},
        {"'a', 'Tags': ['x']", "'a', 'Tags': ['y']"},
        {"'db'", "'cache'"},
        {"'LocalBindPort': 5", "'LocalBindPort': 6"},
        {"'DestinationType': 'service'", "'DestinationType': 'prepared_query'"},
        {"'MeshGateway': {}", "'MeshGateway': {'Mode': 'local'}"},
        {"'n': 1.0", "'n': 2"},
        {"'n': 1.0, ", ""},
        {"'n': 1.0, ", "'n': 1, 'm': 1, "},
        {"'l': [1, 'x']", "'l': [1]"},
        {"'l': [1, 'x']", "'l': [1, 'x', 2]"},
        {"'LocalBindPort': 5", "'LocalBindPort': 5, 'Datacenter': 'd'"},
        {"'LocalBindPort': 5", "'LocalBindPort': 5, 'LocalBindAddress': '127.0.0.2'"},
        {"'LocalBindPort': 5", "'LocalBindPort': 5, 'DestinationPeer': 'p'"},
        {"'LocalBindPort': 5", "'LocalBindPort': 5, 'LocalBindSocketPath': '/s'"},
        {"'LocalBindPort': 5", "'LocalBindPort': 5, 'LocalBindSocketMode': '1'"},
        {"'Upstreams': [", "'Upstreams': [{}, "},
        {"'Path': '/h'", "'Path': '/i'"},
        {"'ListenerPort': 3", "'ListenerPort': 8"},
        {"'LocalPathPort': 4", "'LocalPathPort': 8"},
        {"'Paths': [", "'Paths': [{}, "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (same_mesh(cases[i][0], cases[i][1]))
            fail_msg("%s instead of %s is not seen", cases[i][1], cases[i][0]);
    }
}

static void test_native_services_say_so(void **state)
{
    (void)state;
    assert_false(same_with(true, "Connect", "{'v': {'Native': true}}", false));
    assert_false(same_with(false, "Connect", "{'v': {'Native': true}}", false));
}

static void test_envoy_is_the_version_that_consul_prefers(void **state)
{
    static const char *const cases[][2] = {
        {"{'xDS': {'SupportedProxies': {'envoy': ['1.31.0', '1.30.4']}}}", "1.31.0"},
        {"{'xDS': {'SupportedProxies': {'envoy': ['1.31.0/../x']}}}", ""},
        {"{'xDS': {'SupportedProxies': {'envoy': ['1234567890.1234567890.1234567890']}}}", ""},
        {"{'xDS': {'SupportedProxies': {'envoy': []}}}", ""},
        {"{'xDS': {'SupportedProxies': {'envoy': [7]}}}", ""},
        {"{'xDS': 7}", ""},
        {"{}", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *self = value_of(cases[i][0]);

        assert_string_equal(consul_envoy_of(self), cases[i][1]);
        json_decref(self);
    }
}

static void test_what_is_ours_says_so(void **state)
{
    json_t *there = value_of(there_text), *none = value_of("{'Meta': null}");

    (void)state;
    assert_true(consul_is_ours(there, "n"));
    assert_false(consul_is_ours(there, "m"));
    assert_false(consul_is_ours(none, "n"));
    assert_false(consul_is_ours(NULL, "n"));
    json_decref(none);
    json_decref(there);
}

static void test_only_an_id_of_ours_has_an_alloc(void **state)
{
    static const char *const none[] = {
        "",
        "_nomad-task-",
        "_nomad-task-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
        "_nomad-task-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeeex",
        "_nomad-task-zzzzzzzz-bbbb-cccc-dddd-eeeeeeeeeeee-g",
        "_nomad-executor-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-g",
        "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-g",
    };
    char alloc[UUID_TEXT_SIZE] = "untouched";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(consul_alloc_of(none[i], alloc));
    assert_string_equal(alloc, "untouched");
    assert_true(
        consul_alloc_of("_nomad-task-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee-group-g-w-", alloc));
    assert_string_equal(alloc, "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee");
}

static void test_a_status_that_is_no_word_is_critical(void **state)
{
    static const struct {
        const char *text;
        enum consul_status status;
    } cases[] = {
        {"{'Status': 'passing'}", CONSUL_PASSING},   {"{'Status': 'warning'}", CONSUL_WARNING},
        {"{'Status': 'critical'}", CONSUL_CRITICAL}, {"{'Status': 'maintenance'}", CONSUL_CRITICAL},
        {"{'Status': 1}", CONSUL_CRITICAL},          {"{}", CONSUL_CRITICAL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        json_t *value = value_of(cases[i].text);
        assert_int_equal(consul_status_of(value), cases[i].status);
        json_decref(value);
    }
}

/* --- who it is --- */

static char values[CONSUL_ATTRIBUTES_MAX][CONSUL_ATTRIBUTE_SIZE];
static struct spec_pair pairs[CONSUL_ATTRIBUTES_MAX];

/* What SELF says under NAME, "": nothing. */
static const char *said(const char *self, bool https, const char *name)
{
    json_t *value = value_of(self);
    size_t count = 0;
    const char *found = "";

    assert_true(consul_read_self(value, https, values, pairs, &count));
    json_decref(value);
    for (size_t i = 0; i < count; i++) {
        if (text_equal(pairs[i].key, name))
            found = pairs[i].value;
    }
    return found;
}

static void test_who_says_no_version_is_no_agent(void **state)
{
    static const char *const none[] = {"{}", "{'Config': []}", "{'Config': {'Version': 1}}",
                                       "{'Member': {'Tags': {'build': '1.9.0'}}}"};
    size_t count = 77;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        json_t *value = value_of(none[i]);
        assert_false(consul_read_self(value, false, values, pairs, &count));
        json_decref(value);
    }
    assert_int_equal(count, 77);
}

static void test_what_is_of_another_type_or_too_long_is_left_out(void **state)
{
    char *self = NULL, name[CONSUL_ATTRIBUTE_SIZE + 1];

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_true(asprintf(&self,
                         "{'Config': {'Version': '1.9.0', 'Server': 'yes', 'NodeName': '%s', "
                         "'Datacenter': 7}, 'DebugConfig': {'GRPCPort': '8502'}}",
                         name) > 0);
    assert_string_equal(said(self, false, "consul.version"), "1.9.0");
    assert_string_equal(said(self, false, "consul.server"), "");
    assert_string_equal(said(self, false, "unique.consul.name"), "");
    assert_string_equal(said(self, false, "consul.datacenter"), "");
    assert_string_equal(said(self, false, "consul.grpc"), "");
    free(self);
}

static void test_the_port_of_grpc_is_that_of_the_transport_and_version(void **state)
{
    static const char newer[] = "{'Config': {'Version': '1.14.0'}, 'DebugConfig': {'GRPCPort': 1, "
                                "'GRPCTLSPort': 2}}";
    static const char older[] = "{'Config': {'Version': '1.13.9+ent'}, 'DebugConfig': {'GRPCPort': "
                                "1, 'GRPCTLSPort': 2}}";

    (void)state;
    assert_string_equal(said(newer, false, "consul.grpc"), "1");
    assert_string_equal(said(newer, true, "consul.grpc"), "2");
    assert_string_equal(said(older, true, "consul.grpc"), "1");
    assert_string_equal(said(older, true, "consul.sku"), "ent");
    assert_string_equal(said(newer, true, "consul.sku"), "oss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wanted_is_the_same_in_consuls_own_words),
        cmocka_unit_test(test_each_difference_is_seen),
        cmocka_unit_test(test_checks_are_those_that_are_wanted_and_no_other_of_ours),
        cmocka_unit_test(test_tags_of_others_stay_where_they_may),
        cmocka_unit_test(test_a_sidecar_is_the_same_in_consuls_own_words),
        cmocka_unit_test(test_each_difference_of_a_sidecar_is_seen),
        cmocka_unit_test(test_native_services_say_so),
        cmocka_unit_test(test_envoy_is_the_version_that_consul_prefers),
        cmocka_unit_test(test_what_is_ours_says_so),
        cmocka_unit_test(test_only_an_id_of_ours_has_an_alloc),
        cmocka_unit_test(test_a_status_that_is_no_word_is_critical),
        cmocka_unit_test(test_who_says_no_version_is_no_agent),
        cmocka_unit_test(test_what_is_of_another_type_or_too_long_is_left_out),
        cmocka_unit_test(test_the_port_of_grpc_is_that_of_the_transport_and_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
