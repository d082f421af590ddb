/* Services made whole: names, addresses, what their checks ask, and the ids of both. */
#include "test/hooks/fixture.h"

#include "hooks/services.h"

#include <jansson.h>

#define NODE_ADDRESS "192.0.2.7"

/* One service with one check, which tests change. */
struct offered {
    struct spec_check check;
    struct spec_service service;
    struct spec_port ports[3];
    struct spec_pair attribute;
    struct hooks_services *services;
    struct err err;
};

static struct offered offered;

static int make(void **state)
{
    int code = fixture_make(state);
    struct fixture *fixture = *state;

    offered = (struct offered){
        .check = {.type = CHECK_HTTP,
                  .name = "alive",
                  .task = "",
                  .port = "",
                  .path = "/",
                  .method = "",
                  .protocol = "",
                  .body = "",
                  .interval_ms = 2000,
                  .timeout_ms = 1000},
        .service = {.task = "",
                    .name = "web",
                    .port = "http",
                    .address = "",
                    .checks = &offered.check,
                    .checks_count = 1},
        .ports = {{.label = "http",
                   .task = "",
                   .host_network = "",
                   .host_ip = "192.0.2.1",
                   .value = 20001,
                   .to = 8080},
                  {.label = "admin",
                   .task = "",
                   .host_network = "",
                   .host_ip = "2001:db8::1",
                   .value = 20002,
                   .to = 0},
                  {.label = "own",
                   .task = "web",
                   .host_network = "",
                   .host_ip = "192.0.2.1",
                   .value = 20003}},
        .attribute = {"unique.network.ip-address", NODE_ADDRESS},
    };
    fixture->alloc.services = &offered.service;
    fixture->alloc.services_count = 1;
    fixture->alloc.ports = (struct spec_ports){offered.ports, COUNT_OF(offered.ports)};
    fixture->node.attributes = (struct spec_pairs){&offered.attribute, 1};
    return code;
}

static int clear(void **state)
{
    hooks_services_free(offered.services);
    return fixture_remove(state);
}

static int make_with(struct fixture *fixture, bool canary, const json_t *network)
{
    hooks_services_free(offered.services);
    offered.services = NULL;
    offered.err = (struct err){0};
    return hooks_services_make(fixture->hooks, &fixture->alloc, canary, network, &offered.services,
                               &offered.err);
}

static const struct hooks_service *made(struct fixture *fixture)
{
    int code = make_with(fixture, false, NULL);

    if (code != 0)
        print_error("%s\n", offered.err.text);
    assert_int_equal(code, 0);
    assert_int_equal(offered.services->count, 1);
    return &offered.services->items[0];
}

static void assert_refused(struct fixture *fixture, const char *text)
{
    assert_int_equal(make_with(fixture, false, NULL), ERR_INVALID);
    assert_string_equal(offered.err.text, text);
    assert_false(offered.err.recoverable);
    assert_null(offered.services);
}

static void assert_made(struct fixture *fixture, const char *address, uint16_t port,
                        const char *target)
{
    const struct hooks_service *service = made(fixture);

    assert_string_equal(service->address, address);
    assert_int_equal(service->port, port);
    assert_string_equal(service->checks[0].target, target);
}

/* --- what is refused --- */

static void test_a_name_that_is_no_label_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {
        "",
        "-web",
        "web-",
        "a.b",
        "a_b",
        "a b",
        "w\xc3\xa4h",
        "${NOMAD_META_none}",
        "a/b",
        "a\nb",
        "0123456789012345678901234567890123456789012345678901234567890123"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        offered.service.name = names[i];
        assert_int_equal(make_with(fixture, false, NULL), ERR_INVALID);
        assert_non_null(strstr(offered.err.text, "must be a label of DNS"));
    }
}

static void test_a_port_that_the_group_has_not_is_refused(void **state)
{
    struct fixture *fixture = *state;

    offered.service.port = "htpt";
    assert_refused(fixture, "unable to get address for service \"web\": invalid port \"htpt\": "
                            "port label not found");
    offered.service.port = "0";
    assert_refused(fixture, "unable to get address for service \"web\": invalid port \"0\": "
                            "port must be 1 to 65535");
    offered.service.port = "65536";
    assert_refused(fixture, "unable to get address for service \"web\": invalid port \"65536\": "
                            "port must be 1 to 65535");
    offered.service.port = "own"; /* a task's, and the service is the group's */
    assert_refused(fixture, "unable to get address for service \"web\": invalid port \"own\": "
                            "port label not found");
    offered.service.port = "http";
    offered.check.port = "other";
    assert_refused(fixture, "check \"alive\" of service \"web\": invalid port \"other\": "
                            "port label not found");
}

static void test_an_address_that_cannot_be_had_is_refused(void **state)
{
    struct fixture *fixture = *state;

    offered.service.address_mode = ADDRESS_ALLOC;
    assert_refused(fixture, "unable to get address for service \"web\": cannot use "
                            "address_mode=\"alloc\": the group has no network of its own with an "
                            "address");
    offered.service.address = "198.51.100.1";
    assert_refused(fixture, "unable to get address for service \"web\": cannot use custom "
                            "advertise address with \"alloc\" address mode");
    offered.service.address_mode = ADDRESS_HOST;
    assert_refused(fixture, "unable to get address for service \"web\": cannot use custom "
                            "advertise address with \"host\" address mode");
    offered.service.address_mode = ADDRESS_AUTO;
    offered.service.port = "none";
    assert_refused(fixture, "unable to get address for service \"web\": invalid port \"none\": "
                            "not a valid port mapping or numeric port");
    offered.service.port = "http";
    offered.service.address = "u@h/x";
    assert_refused(fixture, "unable to get address for service \"web\": \"u@h/x\" is no address");
}

static void test_a_check_that_nobody_can_ask_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair header = {"X-One", "a\r\nX-Two: b"};

    offered.service.port = "";
    assert_refused(fixture, "check \"alive\" of service \"web\": neither it nor service \"web\" "
                            "has a port");
    offered.service.port = "http";
    offered.check.protocol = "ftp";
    assert_refused(fixture, "check \"alive\" of service \"web\": its protocol \"ftp\" is not "
                            "\"http\" or \"https\"");
    offered.check.protocol = "https";
    offered.check.method = "GET / HTTP/1.1";
    assert_refused(fixture, "check \"alive\" of service \"web\": its method \"GET / HTTP/1.1\" is "
                            "none");
    offered.check.method = "GET";
    offered.check.headers = (struct spec_pairs){&header, 1};
    assert_refused(fixture, "check \"alive\" of service \"web\": its header \"X-One\" is none");
    offered.check.headers.count = 0;
    static const char *const paths[] = {"http://elsewhere/", "//elsewhere/", "a:b"};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        offered.check.path = paths[i];
        assert_refused(fixture, "check \"alive\" of service \"web\": its path leads to another "
                                "host");
    }
    static const char *const broken[] = {"/%", "/%4", "/%zz", "/a\nb", "/?\x7f"};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        offered.check.path = broken[i];
        assert_refused(fixture, "check \"alive\" of service \"web\": its path has an escape or a "
                                "control character that no URL has");
    }
}

static void test_what_is_no_text_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const char *tags[] = {"${NOMAD_META_raw}"};
    struct spec_pair meta = {"raw", "\xff\xfe"};

    fixture->alloc.meta = (struct spec_pairs){&meta, 1};
    offered.service.tags = (struct spec_texts){tags, 1};
    assert_refused(fixture, "service \"web\": what is interpolated in it is no text");
}

static void test_an_order_has_a_bound(void **state)
{
    struct fixture *fixture = *state;
    char *body = calloc(1, 70000);

    memset(body, 'b', 69999);
    offered.check.body = body;
    assert_int_equal(make_with(fixture, false, NULL), ERR_LIMIT);
    offered.check.body = "";
    free(body);
}

/* --- where they are --- */

static void test_a_port_has_the_address_of_the_host(void **state)
{
    struct fixture *fixture = *state;

    assert_made(fixture, "192.0.2.1", 20001, "http://192.0.2.1:20001/");
    offered.service.address_mode = ADDRESS_HOST;
    assert_made(fixture, "192.0.2.1", 20001, "http://192.0.2.1:20001/");
    offered.service.port = "admin";
    assert_made(fixture, "2001:db8::1", 20002, "http://[2001:db8::1]:20002/");
    offered.check.type = CHECK_TCP;
    assert_made(fixture, "2001:db8::1", 20002, "[2001:db8::1]:20002");
}

static void test_without_a_label_it_is_the_nodes(void **state)
{
    struct fixture *fixture = *state;

    offered.service.port = "7000";
    assert_made(fixture, NODE_ADDRESS, 7000, "http://" NODE_ADDRESS ":7000/");
    offered.service.port = "";
    offered.check.port = "http";
    assert_made(fixture, NODE_ADDRESS, 0, "http://192.0.2.1:20001/");
}

static void test_a_task_has_ports_of_its_own(void **state)
{
    struct fixture *fixture = *state;

    offered.service.task = "web";
    offered.service.port = "own";
    assert_made(fixture, "192.0.2.1", 20003, "http://192.0.2.1:20003/");
}

static void test_an_address_of_the_job_has_the_port_of_the_host(void **state)
{
    struct fixture *fixture = *state;

    offered.service.address = "${NOMAD_META_public}";
    struct spec_pair meta = {"public", "203.0.113.9"};
    fixture->alloc.meta = (struct spec_pairs){&meta, 1};
    assert_made(fixture, "203.0.113.9", 20001, "http://203.0.113.9:20001/");
    offered.service.port = "81";
    assert_made(fixture, "203.0.113.9", 81, "http://203.0.113.9:81/");
    offered.service.port = "";
    offered.check.port = "admin"; /* without a mode it has the service's address */
    assert_made(fixture, "203.0.113.9", 0, "http://203.0.113.9:20002/");
}

static void test_in_its_own_network_a_port_has_another_number(void **state)
{
    struct fixture *fixture = *state;
    json_t *network = json_pack("{s:s, s:s}", "InterfaceName", "eth0", "Address", "172.26.64.5");

    fixture->alloc.network_mode = "bridge";
    offered.service.address_mode = ADDRESS_ALLOC;
    offered.check.has_address_mode = true;
    offered.check.address_mode = ADDRESS_ALLOC;
    assert_int_equal(make_with(fixture, false, network), 0);
    assert_string_equal(offered.services->items[0].address, "172.26.64.5");
    assert_int_equal(offered.services->items[0].port, 8080);
    assert_string_equal(offered.services->items[0].checks[0].target, "http://172.26.64.5:8080/");
    offered.service.port = "admin"; /* which is the same inside */
    assert_int_equal(make_with(fixture, false, network), 0);
    assert_int_equal(offered.services->items[0].port, 20002);
    offered.check.has_address_mode = false; /* a check of its own is at the host's */
    assert_int_equal(make_with(fixture, false, network), 0);
    assert_string_equal(offered.services->items[0].checks[0].target, "http://[2001:db8::1]:20002/");
    json_decref(network);
}

static void test_an_address_that_is_not_known_yet_is_empty(void **state)
{
    struct fixture *fixture = *state;
    json_t *without = json_pack("{s:s}", "InterfaceName", "eth0");

    fixture->alloc.network_mode = "bridge";
    offered.service.address_mode = ADDRESS_ALLOC;
    offered.check.has_address_mode = true;
    offered.check.address_mode = ADDRESS_ALLOC;
    assert_made(fixture, "", 8080, "");
    assert_int_equal(make_with(fixture, false, without), ERR_INVALID); /* it will have none */
    json_decref(without);
}

/* --- what is interpolated --- */

static void test_tags_of_a_canary_are_its_own(void **state)
{
    struct fixture *fixture = *state;
    const char *tags[] = {"plain", "i-${NOMAD_ALLOC_INDEX}", "${unknown}"}, *canary[] = {"bird"};

    offered.service.tags = (struct spec_texts){tags, COUNT_OF(tags)};
    assert_int_equal(make_with(fixture, true, NULL), 0); /* it has none: those of all */
    assert_int_equal(offered.services->items[0].tags.count, 3);
    assert_string_equal(offered.services->items[0].tags.items[1], "i-0");
    assert_string_equal(offered.services->items[0].tags.items[2], "${unknown}");
    offered.service.canary_tags = (struct spec_texts){canary, 1};
    assert_int_equal(make_with(fixture, true, NULL), 0);
    assert_int_equal(offered.services->items[0].tags.count, 1);
    assert_string_equal(offered.services->items[0].tags.items[0], "bird");
    assert_int_equal(made(fixture)->tags.count, 3);
}

static void test_a_task_has_its_own_environment(void **state)
{
    struct fixture *fixture = *state;
    struct spec_pair env = {"PART", "front"};

    fixture->task.env = (struct spec_pairs){&env, 1};
    offered.service.name = "s-${PART}";
    offered.service.task = "web";
    offered.check.name = "in ${NOMAD_TASK_NAME}";
    offered.check.path = "/${PART}?at=${NOMAD_PORT_http}";
    const struct hooks_service *service = made(fixture);
    assert_string_equal(service->name, "s-front");
    assert_string_equal(service->id, "_nomad-task-" ALLOC_ID "-web-s-front-http");
    assert_string_equal(service->checks[0].name, "in web");
    assert_string_equal(service->checks[0].target, "http://192.0.2.1:20001/front?at=8080");

    offered.service.task = ""; /* the group knows nothing of it */
    offered.service.name = "s-${NOMAD_GROUP_NAME}";
    service = made(fixture);
    assert_string_equal(service->id, "_nomad-task-" ALLOC_ID "-group-front-s-front-http");
    assert_string_equal(service->checks[0].name, "in ${NOMAD_TASK_NAME}");
}

static void test_paths_are_resolved_as_references(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *path, *resolved;
    } rows[] = {
        {"", ""},
        {"health", "/health"},
        {"/a/../b/./c", "/b/c"},
        {"../../x", "/x"},
        {"/a/..", "/"},
        {"/a/.", "/a/"},
        {"a/b/", "/a/b/"},
        {"/a//b", "/a//b"},
        {"?q=1", "?q=1"},
        {"/p?q=a b&c=%zz", "/p?q=a%20b&c=%zz"},
        {"/a b/%7e", "/a%20b/%7e"},
        {"/\xc3\xa4", "/%C3%A4"},
        {"/x?y#z", "/x?y"},
        {"#z", ""},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char expected[128];

        assert_true(
            text_format(expected, sizeof(expected), "http://192.0.2.1:20001%s", rows[i].resolved));
        offered.check.path = rows[i].path;
        assert_string_equal(made(fixture)->checks[0].target, expected);
    }
}

/* --- ids: those that nomad 2.0.6-dev gave the same checks --- */

static void assert_id(struct fixture *fixture, const char *id)
{
    assert_string_equal(made(fixture)->checks[0].id, id);
    assert_int_equal(made(fixture)->checks[0].status, CHECK_PENDING);
    assert_string_equal(made(fixture)->checks[0].output, "nomad: waiting to run");
}

static void test_ids_of_checks_are_nomads(void **state)
{
    struct fixture *fixture = *state;

    fixture->alloc.id = "f7ffc35a-552d-9153-abc6-985cc4f28539";
    fixture->alloc.group = "g";
    offered.check.name = "service: \"web-svc\" check";
    assert_id(fixture, "b2b21a15ede8adf00845a7e8b4d8d077359096c61e81cdf47fd960a10d405f9a");

    offered.check.name = "service: \"cust\" check";
    offered.check.path = "health?x=1";
    offered.check.method = "POST";
    offered.check.protocol = "http";
    offered.check.tls_skip_verify = true;
    assert_id(fixture, "fc6fa55af704852a75b440bb6965d9878abe0d3412cccd13cd28a7dccd80cbb9");
    assert_string_equal(made(fixture)->checks[0].target, "http://192.0.2.1:20001/health?x=1");

    offered.check.name = "service: \"num\" check";
    offered.check.type = CHECK_TCP;
    offered.check.path = offered.check.method = offered.check.protocol = "";
    offered.check.tls_skip_verify = false;
    assert_id(fixture, "71ed625ceedad59955edd6d160e1f4518767745622b42e933cfee38ff0fa852e");

    offered.check.name = "tcp ${NOMAD_GROUP_NAME}";
    offered.ports[1].label = "fix";
    offered.check.port = "fix";
    offered.check.ready_only = offered.check.has_address_mode = true;
    offered.check.address_mode = ADDRESS_HOST;
    offered.check.interval_ms = 3000;
    assert_id(fixture, "03a92d142e0237836fec93ef0392cf482e6c0643654cddfc78ced24f1c9decbe");
}

static void test_an_id_names_the_task(void **state)
{
    struct fixture *fixture = *state;

    fixture->alloc.id = "f7ffc35a-552d-9153-abc6-985cc4f28539";
    fixture->alloc.group = "g";
    offered.check.task = "t"; /* of a group's service, whose checks do not know the name of it */
    offered.check.path = "/nothere";
    offered.check.name = "in ${NOMAD_TASK_NAME}";
    assert_id(fixture, "ce8ecd93f1e913997a6c9c93c2c0aad79aa032baa3b4bf26d52a3b73697ac397");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_name_that_is_no_label_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_a_port_that_the_group_has_not_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_an_address_that_cannot_be_had_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_a_check_that_nobody_can_ask_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_what_is_no_text_is_refused, make, clear),
        cmocka_unit_test_setup_teardown(test_an_order_has_a_bound, make, clear),
        cmocka_unit_test_setup_teardown(test_a_port_has_the_address_of_the_host, make, clear),
        cmocka_unit_test_setup_teardown(test_without_a_label_it_is_the_nodes, make, clear),
        cmocka_unit_test_setup_teardown(test_a_task_has_ports_of_its_own, make, clear),
        cmocka_unit_test_setup_teardown(test_an_address_of_the_job_has_the_port_of_the_host, make,
                                        clear),
        cmocka_unit_test_setup_teardown(test_in_its_own_network_a_port_has_another_number, make,
                                        clear),
        cmocka_unit_test_setup_teardown(test_an_address_that_is_not_known_yet_is_empty, make,
                                        clear),
        cmocka_unit_test_setup_teardown(test_tags_of_a_canary_are_its_own, make, clear),
        cmocka_unit_test_setup_teardown(test_a_task_has_its_own_environment, make, clear),
        cmocka_unit_test_setup_teardown(test_paths_are_resolved_as_references, make, clear),
        cmocka_unit_test_setup_teardown(test_ids_of_checks_are_nomads, make, clear),
        cmocka_unit_test_setup_teardown(test_an_id_names_the_task, make, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
