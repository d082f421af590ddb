/* Configuration: every mistake is named with its place, nothing is ignored, the later file wins. */
#include "agent/config/config.h"
#include "test/io/scratch.h"

struct fixture {
    struct scratch *scratch;
    struct config config;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    void *scratch = NULL;

    assert_non_null(fixture);
    assert_int_equal(scratch_make(&scratch), 0);
    fixture->scratch = scratch;
    config_defaults(&fixture->config);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *scratch = fixture->scratch;
    int code = scratch_remove(&scratch);

    config_free(&fixture->config);
    free(fixture);
    return code;
}

static int read_text(struct fixture *fixture, const char *name, const char *text)
{
    put_file(at(fixture->scratch, name), text);
    return config_read(&fixture->config, fixture->scratch->text, &fixture->scratch->err);
}

/* TEXT is refused, and the message says where, what, and what to do. */
static void refuse(struct fixture *fixture, const char *name, const char *text, const char *where,
                   const char *what)
{
    fixture->scratch->err = (struct err){0};
    assert_int_equal(read_text(fixture, name, text), ERR_INVALID);
    if (strstr(fixture->scratch->err.text, where) == NULL ||
        strstr(fixture->scratch->err.text, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", fixture->scratch->err.text, where, what);
}

static void test_unknown_key_is_refused_with_place_and_hint(void **state)
{
    struct fixture *fixture = *state;

    refuse(fixture, "a.hcl", "name = \"n\"\ndata_dri = \"/x\"\n",
           "a.hcl:2:1:", "did you mean data_dir?");
    refuse(fixture, "a.hcl", "client {\n  gc_max_alocs = 3\n}\n",
           "a.hcl:2:3:", "did you mean gc_max_allocs?");
    refuse(fixture, "a.hcl", "clinet {}\n", "a.hcl:1:1:", "did you mean client?");
    refuse(fixture, "a.json", "{\"client\": {\"nodeclass\": \"x\"}}", "a.json", "nodeclass");
}

/* What TEXT says of Consul, as a whole configuration. */
static int finish_consul(struct fixture *fixture, const char *text)
{
    config_free(&fixture->config);
    config_defaults(&fixture->config);
    fixture->scratch->err = (struct err){0};
    assert_int_equal(read_text(fixture, "a.hcl", "data_dir = \"/d\"\n"), 0);
    assert_int_equal(read_text(fixture, "b.hcl", text), 0);
    return config_finish(&fixture->config, &fixture->scratch->err);
}

static void test_consul_is_asked_where_the_block_says_and_only_if_there_is_one(void **state)
{
    static const struct {
        const char *text, *url, *socket;
    } cases[] = {
        {"consul {}", "http://127.0.0.1:8500", ""},
        {"consul {\n  address = \"a.example:1\"\n}\n", "http://a.example:1", ""},
        {"consul {\n  address = \"a:1\"\n  ssl = true\n}\n", "https://a:1", ""},
        {"consul {\n  address = \"https://[::1]:2\"\n}\n", "https://[::1]:2", ""},
        {"consul {\n  address = \"http://a:2\"\n}\n", "http://a:2", ""},
        {"consul {\n  address = \"unix:///run/c.sock\"\n}\n", "http://localhost", "/run/c.sock"},
    };
    struct fixture *fixture = *state;

    assert_int_equal(finish_consul(fixture, "name = \"n\""), 0);
    assert_false(fixture->config.consul.used);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(finish_consul(fixture, cases[i].text), 0);
        assert_true(fixture->config.consul.used);
        assert_string_equal(fixture->config.consul.url, cases[i].url);
        assert_string_equal(fixture->config.consul.socket, cases[i].socket);
    }
}

static void test_a_block_of_consul_that_cannot_be_is_refused_and_no_token_is_shown(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"consul {\n  address = \"a/b\"\n}\n", "is no address"},
        {"consul {\n  address = \"unix://run/c\"\n}\n", "absolute path"},
        {"consul {\n  timeout = \"0s\"\n}\n", "longer than 0s"},
        {"consul {\n  cert_file = \"/c\"\n}\n", "go together"},
        {"consul {\n  token = \"s3cret x\"\n}\n", "holds no token"},
        {"consul {\n  token = \"s3cret\"\n  token_file = \"/t\"\n}\n", "not both"},
        {"consul {\n  token_file = \"/none\"\n}\n", "consul.token_file"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_not_equal(finish_consul(fixture, cases[i].text), 0);
        if (strstr(fixture->scratch->err.text, cases[i].why) == NULL ||
            strstr(fixture->scratch->err.text, "s3cret") != NULL)
            fail_msg("%s", fixture->scratch->err.text);
    }
}

static void test_a_token_is_the_line_of_its_file(void **state)
{
    struct fixture *fixture = *state;
    char text[PATH_SIZE + 64];

    put_file(at(fixture->scratch, "token"), "of-file\n\n");
    (void)text_format(text, sizeof(text), "consul {\n  token_file = \"%s\"\n}\n",
                      fixture->scratch->text);
    assert_int_equal(finish_consul(fixture, text), 0);
    assert_string_equal(fixture->config.consul.token, "of-file");
}

static void test_what_nomad_has_and_we_have_not_is_refused_by_name(void **state)
{
    struct fixture *fixture = *state;

    refuse(fixture, "a.hcl", "consul {\n  namespace = \"n\"\n}\n",
           "a.hcl:2:3:", "namespace is not available in this release");
    refuse(fixture, "a.hcl", "consul {\n  server_auto_join = true\n}\n",
           "a.hcl:2:3:", "only false is available");
    refuse(fixture, "a.hcl", "vault {}\n", "a.hcl:1:1:", "vault is not available");
    refuse(fixture, "a.hcl", "client {\n  network_speed = 100\n}\n",
           "a.hcl:2:3:", "network_speed is not available in this release");
    refuse(fixture, "a.hcl", "plugin \"qemu\" {}\n", "a.hcl:1:1:", "no plugin \"qemu\"");
    refuse(fixture, "a.hcl", "server {\n  bootstrap_expect = 1\n}\n",
           "a.hcl:2:3:", "server.bootstrap_expect is not available: cairn is no server");
    refuse(fixture, "a.hcl", "client {\n  server_join {\n    retry_max = 3\n  }\n}\n",
           "a.hcl:3:5:", "retry_max is not available");
    refuse(fixture, "a.hcl", "server {\n  enabled = true\n}\n", "a.hcl:2:3:", "no server");
    refuse(fixture, "a.hcl", "client {\n  enabled = false\n}\n", "a.hcl:2:3:", "run nothing");
}

static void test_who_looks_for_servers_in_consul_has_some(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    assert_int_equal(finish_consul(fixture, "consul {\n  client_auto_join = false\n}\n"), 0);
    assert_false(config_has_servers(config));
    assert_int_equal(finish_consul(fixture, "client {\n  node_pool = \"p\"\n}\n"
                                            "consul {\n  client_auto_join = true\n}\n"),
                     0);
    assert_true(config_has_servers(config));
    assert_string_equal(config->servers, "");
    assert_string_equal(config->consul.server_service_name, "nomad");
    assert_int_equal(finish_consul(fixture, "consul {\n  client_auto_join = true\n"
                                            "  server_service_name = \"masters\"\n}\n"),
                     0);
    assert_string_equal(config->consul.server_service_name, "masters");
    assert_int_equal(finish_consul(fixture,
                                   "acl {\n  enabled = true\n  bootstrap_secret_file = \"/x\"\n}\n"
                                   "consul {\n  client_auto_join = true\n}\n"),
                     ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text, "those of its servers"));
}

static void test_who_is_advertised_has_an_address(void **state)
{
    struct fixture *fixture = *state;
    const struct config_consul *consul = &fixture->config.consul;

    assert_int_equal(finish_consul(fixture, "consul {\n  timeout = \"1s\"\n}\n"), 0);
    assert_false(consul->auto_advertise);
    assert_int_equal(finish_consul(fixture, "consul {\n  auto_advertise = true\n"
                                            "  client_http_check_name = \"up\"\n}\n"),
                     0);
    assert_true(consul->auto_advertise);
    assert_string_equal(consul->client_service_name, "nomad-client");
    assert_string_equal(consul->client_http_check_name, "up");
    assert_int_equal(finish_consul(fixture, "addresses {\n  http = \"unix:///run/c.sock\"\n}\n"
                                            "consul {\n  auto_advertise = true\n}\n"),
                     ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text, "no address that others"));
}

static void test_servers_are_addresses_that_get_a_port(void **state)
{
    static const struct {
        const char *text, *servers; /* NULL: refused */
    } rows[] = {
        {"servers = [\"10.0.0.1\", \"b:99\", \"fd00::1\", \"[fd00::2]\", \"[fd00::3]:7\"]",
         "10.0.0.1:4647,b:99,[fd00::1]:4647,[fd00::2]:4647,[fd00::3]:7"},
        {"servers = []", ""},
        {"server_join {\n  retry_join = [\"a\"]\n}", "a:4647"},
        {"servers = [\"\", \"a\"]", "a:4647"},
        {"servers = [\"a:0\"]", NULL},
        {"servers = [\"a:70000\"]", NULL},
        {"servers = [\"a b\"]", NULL},
        {"servers = [\"http://a\"]", NULL},
        {"servers = [\"[fd00::1\"]", NULL},
    };
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;
    char text[512];

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        config_free(config);
        config_defaults(config);
        assert_true(
            text_format(text, sizeof(text), "data_dir = \"/d\"\nclient {\n %s\n}\n", rows[i].text));
        assert_int_equal(read_text(fixture, "a.hcl", text), 0);
        assert_int_equal(config_finish(config, err), rows[i].servers == NULL ? ERR_INVALID : 0);
        if (rows[i].servers != NULL)
            assert_string_equal(config->servers, rows[i].servers);
        else
            assert_non_null(strstr(err->text, "is no address"));
    }
}

static void test_more_servers_than_can_be_asked_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    char text[1024] = "data_dir = \"/d\"\nclient {\n servers = [\"a\"";

    for (int i = 1; i < NOMAD_SERVERS_MAX; i++)
        assert_true(text_append(text, sizeof(text), ",\"a\""));
    assert_true(text_append(text, sizeof(text), ",\"a\"]\n}\n"));
    assert_int_equal(read_text(fixture, "a.hcl", text), 0);
    assert_int_equal(config_finish(config, &fixture->scratch->err), ERR_INVALID);
    assert_string_equal(fixture->scratch->err.text,
                        "client.servers: these are 65, and 64 is the most");
}

static void test_a_pool_is_one_of_servers(void **state)
{
    static const struct {
        const char *text, *pool;
    } rows[] = {
        {"servers = [\"a\"]", "default"},
        {"servers = [\"a\"]\n node_pool = \"gpu-1_B\"", "gpu-1_B"},
        {"servers = [\"a\"]\n node_pool = \"default\"", "default"},
        {"servers = [\"a\"]\n node_pool = \"all\"", NULL},
        {"servers = [\"a\"]\n node_pool = \"\"", NULL},
        {"servers = [\"a\"]\n node_pool = \"a b\"", NULL},
        {"node_pool = \"default\"", "default"},
        {"node_pool = \"gpu\"", NULL},
    };
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;
    char text[512];

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        config_free(config);
        config_defaults(config);
        assert_true(
            text_format(text, sizeof(text), "data_dir = \"/d\"\nclient {\n %s\n}\n", rows[i].text));
        assert_int_equal(read_text(fixture, "a.hcl", text), 0);
        assert_int_equal(config_finish(config, err), rows[i].pool == NULL ? ERR_INVALID : 0);
        if (rows[i].pool != NULL)
            assert_string_equal(config->node_pool, rows[i].pool);
        else
            assert_non_null(strstr(err->text, "client.node_pool: "));
    }
}

static void test_servers_have_tokens_and_certificates_of_their_own(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;

    config_free(config);
    config_defaults(config);
    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/d\"\nclient {\n servers = [\"a\"]\n}\n"
                               "acl {\n enabled = true\n bootstrap_secret_file = \"/f\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "this one has those of its servers"));
    config_free(config);
    config_defaults(config);
    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/d\"\nclient {\n servers = [\"a\"]\n}\n"
                               "tls {\n rpc = true\n ca_file = \"/a\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "tls.rpc needs"));
}

/* FORMAT with VALUE in the place of its %s. */
static void fill(char text[128], const char *format, const char *value)
{
    const char *at = strstr(format, "%s");

    assert_non_null(at);
    assert_true(text_format(text, 128, "%.*s%s%s", (int)(at - format), format, value, at + 2));
}

/* What cairn does in any case may be said, and nothing else. */
static void test_keys_with_one_value_are_taken_with_that(void **state)
{
    static const struct {
        const char *format, *good, *bad, *why;
    } keys[] = {
        {"disable_update_check = %s\n", "true", "false", ": only true"},
        {"disable_anonymous_signature = %s\n", "true", "false", ": only true"},
        {"leave_on_interrupt = %s\n", "false", "true", ": only false"},
        {"leave_on_terminate = %s\n", "false", "true", ": only false"},
        {"enable_debug = %s\n", "false", "true", ": only false"},
        {"enable_syslog = %s\n", "false", "true", ": only false"},
        {"log_include_location = %s\n", "false", "true", ": only false"},
        {"client { no_host_uuid = %s }\n", "true", "false", ": only true"},
        {"client { disable_remote_exec = %s }\n", "false", "true", ": only false"},
        {"client { default_ineligible = %s }\n", "false", "true", ": only false"},
    };
    struct fixture *fixture = *state;
    char text[128];

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        fixture->scratch->err = (struct err){0};
        fill(text, keys[i].format, keys[i].good);
        if (read_text(fixture, "a.hcl", text) != 0)
            fail_msg("%s: %s", text, fixture->scratch->err.text);
        fill(text, keys[i].format, keys[i].bad);
        refuse(fixture, "a.hcl", text, "a.hcl:1:", keys[i].why);
    }
}

static void test_values_of_the_wrong_kind_are_refused(void **state)
{
    struct fixture *fixture = *state;

    refuse(fixture, "a.hcl", "ports {\n  http = 70000\n}\n", "a.hcl:2:3:", "0 to 65535");
    refuse(fixture, "a.hcl", "log_json = \"perhaps\"\n", "a.hcl:1:1:", "true or false");
    refuse(fixture, "a.hcl", "client {\n  gc_interval = \"soon\"\n}\n", "a.hcl:2:3:", "duration");
    refuse(fixture, "a.hcl", "client {\n  gc_disk_usage_threshold = 101\n}\n",
           "a.hcl:2:3:", "from 0 to 100");
    refuse(fixture, "a.hcl", "name = [\"a\"]\n", "a.hcl:1:1:", "must be a string");
#define DOCKER(text) "plugin \"docker\" { config {\n" text "\n} }\n"
    refuse(fixture, "a.hcl", DOCKER("gc { dangling_containers { period = \"0s\" } }"),
           "a.hcl:2:", "\"1s\" or more");
    refuse(fixture, "a.hcl", DOCKER("gc { image_delay = 3 }"), "a.hcl:2:", "duration");
    refuse(fixture, "a.hcl", DOCKER("gc { container = false }"), "a.hcl:2:", "only true");
    refuse(fixture, "a.hcl", DOCKER("auth { helper = \"/bin/x\" }"), "a.hcl:2:", "ecr-login");
#undef DOCKER
    refuse(fixture, "a.hcl", "ports = 3\n", "a.hcl:1:1:", "must be a block");
    refuse(fixture, "a.hcl", "client {\n  meta {\n    rack = [1]\n  }\n}\n",
           "a.hcl:3:5:", "client.meta.rack");
    refuse(fixture, "a.hcl", "name = \"unfinished\n", "a.hcl:1:", "");
    refuse(fixture, "a.json", "{\"name\": }", "a.json:1:", "");
}

static void test_ports_and_networks_that_are_none_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct port_set ports = {{0}};

    refuse(fixture, "a.hcl", "client {\n  reserved {\n    reserved_ports = \"80,\"\n  }\n}\n",
           "a.hcl:3:5:", "reserved_ports: an empty port");
    refuse(fixture, "a.hcl", "client {\n  reserved {\n    reserved_ports = \"90-80\"\n  }\n}\n",
           "a.hcl:3:5:", "ends before it begins");
    refuse(fixture, "a.hcl", "client {\n  reserved {\n    cpu = -1\n  }\n}\n",
           "a.hcl:3:5:", "cpu must be a whole number");
    refuse(fixture, "a.hcl",
           "client {\n  host_network \"x\" {\n    cidr = \"10.0.0.0/33\"\n  }\n}\n",
           "a.hcl:3:5:", "no list of networks");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet = \"10.0.0.0/24,10.1.0.0/24\"\n}\n",
           "a.hcl:2:3:", "that is not one network (as in \"10.0.0.0/8\")");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet = \"\"\n}\n",
           "a.hcl:2:3:", "that is not one network");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet = \"fd00::/64\"\n}\n",
           "a.hcl:2:3:", "no network of IPv4");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet_ipv6 = \"10.0.0.0/24\"\n}\n",
           "a.hcl:2:3:", "no network of IPv6 (as in \"fd00:1::/64\")");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet = \"10.0.0.0/31\"\n}\n",
           "a.hcl:2:3:", "no room for an alloc");
    refuse(fixture, "a.hcl", "client {\n  bridge_network_subnet = \"10.0.1.0/23\"\n}\n",
           "a.hcl:2:3:", "ends with zeros");
    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n  bridge_network_subnet = \"10.0.0.4/30\"\n"
                               "  bridge_network_subnet_ipv6 = \"fd00:1::/64\"\n}\n"),
                     0);
    refuse(fixture, "a.hcl", "client {\n  host_network {\n  }\n}\n",
           "a.hcl:2:3:", "takes one name");
    refuse(fixture, "a.hcl", "client {\n  host_network \"default\" {\n  }\n}\n",
           "a.hcl:2:3:", "there already");
    refuse(fixture, "a.hcl", "client {\n  host_network \"x\" {\n    cidrs = \"\"\n  }\n}\n",
           "a.hcl:3:5:", "did you mean cidr?");
    for (const char *const *bad = (const char *const[]){"0", "65536", "1-65536", "a", "1-2-3",
                                                        "1 2", ",", "-5", "5-", " ", NULL};
         *bad != NULL; bad++)
        assert_non_null(config_ports(*bad, &ports));
}

static void test_ports_and_networks_are_read(void **state)
{
    static const char text[] =
        "client {\n  network_interface = \"eth7\"\n  min_dynamic_port = 30000\n"
        "  max_dynamic_port = 30010\n  reserved {\n    reserved_ports = \"22, 8000-8010\"\n  }\n"
        "  host_network \"public\" {\n    cidr = \"203.0.113.0/24,fd00::/8\"\n"
        "    interface = \"eth1\"\n    reserved_ports = \"443\"\n  }\n"
        "  host_network \"lan\" {\n    cidr = \"10.0.0.0/9\"\n  }\n}\n";
    struct fixture *fixture = *state;
    const struct config *config = &fixture->config;
    struct port_set ports = {{0}};

    assert_int_equal(read_text(fixture, "a.hcl", text), 0);
    assert_int_equal(read_text(fixture, "b.json",
                               "{\"client\": {\"host_network\": {\"lan\": {\"interface\": "
                               "\"eth2\"}}}}"),
                     0);
    assert_string_equal(config->network_interface, "eth7");
    assert_int_equal(config->min_dynamic_port, 30000);
    assert_int_equal(config->max_dynamic_port, 30010);
    assert_int_equal(config->host_networks_count, 2);
    assert_string_equal(config->host_networks[0].name, "public");
    assert_string_equal(config->host_networks[0].interface, "eth1");
    assert_string_equal(config->host_networks[1].cidr, "10.0.0.0/9");
    assert_string_equal(config->host_networks[1].interface, "eth2"); /* the later file adds to it */
    assert_null(config_ports(config->reserved_ports, &ports));
    assert_true(port_set_has(&ports, 22));
    assert_true(port_set_has(&ports, 8000));
    assert_true(port_set_has(&ports, 8010));
    assert_false(port_set_has(&ports, 8011));
    assert_false(port_set_has(&ports, 7999));
    assert_true(config_cidr_holds(config->host_networks[0].cidr, "203.0.113.9"));
    assert_true(config_cidr_holds(config->host_networks[0].cidr, "fd12::1"));
    assert_false(config_cidr_holds(config->host_networks[0].cidr, "203.0.114.9"));
    assert_true(config_cidr_holds("10.0.0.0/9", "10.127.255.255"));
    assert_false(config_cidr_holds("10.0.0.0/9", "10.128.0.0"));
    assert_true(config_cidr_holds("0.0.0.0/0", "10.128.0.0"));
    assert_false(config_cidr_holds("0.0.0.0/0", "::1"));
}

static void test_plugins_that_are_programs_have_arguments_and_a_configuration(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    assert_int_equal(
        read_text(fixture, "a.hcl",
                  "plugin_dir = \"/opt/plugins\"\n"
                  "plugin \"gpu\" {\n  args = [\"-v\", \"a,b\"]\n"
                  "  config {\n    enabled = true\n    inner {\n      x = 1\n    }\n  }\n}\n"
                  "plugin \"raw_exec\" {\n  config {\n    enabled = false\n  }\n}\n"),
        0);
    struct config_plugin *plugin = &config->plugins.items[0];
    assert_string_equal(plugin->arguments[1], "a,b");
    assert_null(plugin->arguments[2]);
    assert_true(json_is_array(json_object_get(plugin->config, "inner")));
    assert_int_equal(read_text(fixture, "b.json",
                               "{\"plugin\": [{\"gpu\": {\"config\": [{\"enabled\": false}]}}, "
                               "{\"fpga\": {}}]}"),
                     0);
    plugin = &config->plugins.items[0];
    assert_string_equal(config->plugin_dir, "/opt/plugins");
    assert_false(config->raw_exec_enabled);
    assert_int_equal(config->plugins.count, 2);
    assert_string_equal(plugin->name, "gpu");
    assert_null(plugin->arguments[0]); /* the later file's is whole */
    assert_true(json_is_false(json_object_get(plugin->config, "enabled")));
    assert_string_equal(config->plugins.items[1].name, "fpga");
    assert_null(config->plugins.items[1].config);

    refuse(fixture, "a.hcl", "plugin {\n}\n", "a.hcl:1:1:", "takes one name");
    refuse(fixture, "a.hcl", "plugin \"../sh\" {\n}\n", "a.hcl:1:1:", "the name of a plugin");
    refuse(fixture, "a.hcl", "plugin \"gpu\" {\n  arg = []\n}\n",
           "a.hcl:2:3:", "plugin \"gpu\" has no key \"arg\"");
    refuse(fixture, "a.hcl", "plugin \"gpu\" {\n  args = \"-v\"\n}\n",
           "a.hcl:2:3:", "args must be a list");
    refuse(fixture, "a.hcl", "plugin \"gpu\" {\n  args = [1]\n}\n",
           "a.hcl:2:3:", "args[0] must be a string, not a number");
    refuse(fixture, "a.hcl", "plugin \"gpu\" {\n  conf {\n  }\n}\n", "a.hcl:2:3:", "no block conf");
    refuse(fixture, "a.hcl", "plugin \"gpu\" {\n  config {\n  }\n  config {\n  }\n}\n",
           "a.hcl:4:3:", "one block config");
}

static void test_storage_plugins_have_a_type_and_a_socket(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n  csi_plugin \"disks\" {\n    type = \"node\"\n"
                               "    socket = \"/run/disks.sock\"\n  }\n}\n"),
                     0);
    assert_int_equal(read_text(fixture, "b.json",
                               "{\"client\": {\"csi_plugin\": {\"disks\": {\"type\": \"monolith\", "
                               "\"socket\": \"/run/d\", \"stage_publish_base_dir\": \"/m\"}}}}"),
                     0);
    assert_int_equal(config->csi_plugins.count, 1);
    struct config_csi_plugin *plugin = &config->csi_plugins.items[0];
    assert_string_equal(plugin->id, "disks");
    assert_string_equal(plugin->type, "monolith"); /* the later file's is whole */
    assert_string_equal(plugin->socket, "/run/d");
    assert_string_equal(plugin->base_dir, "/m");
    (void)text_copy(config->data_dir, sizeof(config->data_dir), "/tmp/x"); /* fits */
    assert_int_equal(config_finish(config, err), 0);
    (void)text_copy(plugin->base_dir, sizeof(plugin->base_dir), "m"); /* fits */
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "stage_publish_base_dir \"m\" must be an absolute path"));
    (void)text_copy(plugin->socket, sizeof(plugin->socket), "d"); /* fits */
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "socket \"d\" must be an absolute path"));
    (void)text_copy(plugin->type, sizeof(plugin->type), "disk"); /* fits */
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "type \"disk\" must be node, controller or monolith"));
    refuse(fixture, "a.hcl", "client {\n  csi_plugin {\n  }\n}\n", "a.hcl:2:3:", "takes one name");
    refuse(fixture, "a.hcl", "client {\n  csi_plugin \"a/b\" {\n  }\n}\n",
           "a.hcl:2:3:", "cannot be the name of a directory");
    refuse(fixture, "a.hcl", "client {\n  csi_plugin \"a\" {\n    sock = \"/a\"\n  }\n}\n",
           "a.hcl:3:5:", "did you mean socket?");
}

static void test_host_volumes_are_read_and_have_to_be_paths(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n  host_volume \"data\" {\n    path = \"/srv\"\n"
                               "    read_only = true\n  }\n"
                               "  host_volume \"own[0]\" {\n    path = \"/tmp\"\n  }\n}\n"),
                     0);
    assert_int_equal(read_text(fixture, "b.json",
                               "{\"client\": {\"host_volume\": {\"data\": {\"path\": \"/etc\"}}}}"),
                     0);
    assert_int_equal(config->host_volumes.count, 2);
    assert_string_equal(config->host_volumes.items[0].name, "data");
    assert_string_equal(config->host_volumes.items[0].path, "/etc"); /* the later file's is whole */
    assert_false(config->host_volumes.items[0].read_only);
    assert_string_equal(config->host_volumes.items[1].path, "/tmp");
    (void)text_copy(config->data_dir, sizeof(config->data_dir), "/tmp/x"); /* fits */
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
    (void)text_copy(config->host_volumes.items[1].path, 8, "srv"); /* fits */
    assert_int_equal(config_finish(config, &fixture->scratch->err), ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text,
                           "client.host_volume \"own[0]\": path \"srv\" must be an absolute"));
    refuse(fixture, "a.hcl", "client {\n  host_volume {\n  }\n}\n", "a.hcl:2:3:", "takes one name");
    refuse(fixture, "a.hcl", "client {\n  host_volume \"a/b\" {\n  }\n}\n",
           "a.hcl:2:3:", "must not contain slashes");
    refuse(fixture, "a.hcl", "client {\n  host_volume \"a\" {\n    readonly = true\n  }\n}\n",
           "a.hcl:3:5:", "did you mean read_only?");
}

static void test_directories_of_host_volumes_are_below_data_dir_or_as_told(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    (void)text_copy(config->data_dir, sizeof(config->data_dir), "/tmp/x"); /* fits */
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
    assert_string_equal(config->host_plugin_dir, "/tmp/x/host_volume_plugins");
    assert_string_equal(config->host_volumes_dir, "/tmp/x/host_volumes");
    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n  host_volume_plugin_dir = \"/opt/plugins\"\n"
                               "  host_volumes_dir = \"/srv/volumes\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
    assert_string_equal(config->host_plugin_dir, "/opt/plugins");
    assert_string_equal(config->host_volumes_dir, "/srv/volumes");
    refuse(fixture, "a.hcl", "client {\n  host_volume_dir = \"/srv\"\n}\n",
           "a.hcl:2:3:", "did you mean host_volumes_dir?");
}

static void test_finish_wants_some_history(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    (void)text_copy(config->data_dir, sizeof(config->data_dir), "/tmp/x"); /* fits */
    config->journal_max_events = 99;
    assert_int_equal(config_finish(config, &fixture->scratch->err), ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text, "journal_max_events 99 is less than 100"));
    config->journal_max_events = 100;
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
}

static void test_finish_wants_a_range_of_dynamic_ports(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    (void)text_copy(config->data_dir, sizeof(config->data_dir), "/tmp/x"); /* fits */
    config->min_dynamic_port = 32001;
    assert_int_equal(config_finish(config, &fixture->scratch->err), ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text, "32001 to max_dynamic_port 32000"));
    config->min_dynamic_port = 32000;
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
}

static void test_text_longer_than_its_field_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char text[200];

    assert_true(text_format(text, sizeof(text), "region = \"%0100d\"\n", 0));
    refuse(fixture, "a.hcl", text, "a.hcl:1:1:", "longer than 63 bytes");
}

static void test_hcl_and_json_say_the_same(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    static const char hcl[] = "\"region\" = \"eu\"\n"
                              "ports { http = 5000 }\n"
                              "client {\n"
                              "  enabled = true\n"
                              "  servers = []\n"
                              "  node_class = \"edge\"\n"
                              "  gc_interval = \"2m\"\n"
                              "  gc_disk_usage_threshold = 80\n"
                              "  gc_inode_usage_threshold = 70\n"
                              "  gc_parallel_destroys = 3\n"
                              "  journal_max_events = 5000\n"
                              "  max_kill_timeout = \"90s\"\n"
                              "  meta { rack = \"r1\" }\n"
                              "}\n"
                              "plugin \"raw_exec\" { config { enabled = false } }\n"
                              "plugin \"exec\" { config {\n"
                              "allow_caps = [\"chown\", \"CAP_KILL\"]\n"
                              "default_pid_mode = \"host\"\n"
                              "} }\n"
                              "client { chroot_env { \"/etc/hosts\" = \"/etc/hosts\" } }\n";
    static const char json[] =
        "{\"region\": \"eu\", \"ports\": {\"http\": 5000},"
        " \"client\": [{\"enabled\": true, \"node_class\": \"edge\", \"gc_interval\": \"2m\","
        "   \"gc_disk_usage_threshold\": 80, \"gc_inode_usage_threshold\": 70,"
        "   \"gc_parallel_destroys\": 3, \"journal_max_events\": 5000,"
        "   \"max_kill_timeout\": \"90s\", \"meta\": {\"rack\": \"r1\"}},"
        "  {\"chroot_env\": {\"/etc/hosts\": \"/etc/hosts\"}}],"
        " \"plugin\": [{\"raw_exec\": [{\"config\": [{\"enabled\": false}]}]},"
        " {\"exec\": {\"config\": {\"allow_caps\": [\"chown\", \"CAP_KILL\"],"
        " \"default_pid_mode\": \"host\"}}}]}";

    for (int i = 0; i < 2; i++) {
        config_free(config);
        config_defaults(config);
        assert_int_equal(read_text(fixture, i == 0 ? "a.hcl" : "a.json", i == 0 ? hcl : json), 0);
        assert_string_equal(config->region, "eu");
        assert_int_equal(config->http_port, 5000);
        assert_string_equal(config->node_class, "edge");
        assert_int_equal(config->gc_interval_ms, 120000);
        assert_int_equal(config->gc_disk_percent, 80);
        assert_int_equal(config->gc_inode_percent, 70);
        assert_int_equal(config->gc_parallel_destroys, 3);
        assert_int_equal(config->journal_max_events, 5000);
        assert_int_equal(config->max_kill_timeout_ms, 90000);
        assert_false(config->raw_exec_enabled);
        assert_int_equal(config->exec_allow_caps, 1 | 1 << 5);
        assert_true(config->exec_host_pids && !config->exec_host_ipc);
        assert_int_equal(config->chroot_env.count, 1);
        assert_string_equal(config->chroot_env.items[0].key, "/etc/hosts");
        assert_int_equal(config->meta.count, 1);
        assert_string_equal(config->meta.items[0].key, "rack");
        assert_string_equal(config->meta.items[0].value, "r1");
    }
}

static void test_what_a_driver_keeps_from_tasks_is_read(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n options {\n \"driver.allowlist\" = \"exec\"\n"
                               "\"user.denylist\" = \"\"\n }\n }\n"
                               "plugin \"raw_exec\" { config {\n"
                               "denied_envvars = [\"A*\", \"B\"]\n denied_host_uids = \"0,5-9\"\n"
                               "denied_host_gids = \"7\"\n } }\n"
                               "plugin \"exec\" { config {\n enabled = false\n"
                               "denied_host_uids = \"1\"\n denied_host_gids = \"2\"\n } }\n"),
                     0);
    assert_string_equal(config->driver_allowlist, "exec");
    assert_string_equal(config->user_denylist, "");
    assert_string_equal(config->raw_exec_denied_env, "A*,B");
    assert_string_equal(config->raw_exec_denied_uids, "0,5-9");
    assert_string_equal(config->raw_exec_denied_gids, "7");
    assert_false(config->exec_enabled);
    assert_string_equal(config->exec_denied_uids, "1");
    assert_string_equal(config->exec_denied_gids, "2");
    static const char *const wrong[] = {"denied_host_uids = \"9-5\"", "denied_envvars = \"A\"",
                                        "denied_envvars = [\"A,B\"]"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[128];

        assert_true(
            text_format(text, sizeof(text), "plugin \"raw_exec\" { config {\n%s\n} }", wrong[i]));
        assert_int_equal(read_text(fixture, "a.hcl", text), ERR_INVALID);
        assert_non_null(strstr(fixture->scratch->err.text, "denied_"));
    }
}

static void test_mock_driver_is_off_until_it_is_enabled(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;

    assert_false(config->mock_enabled || config->mock_shuts_down);
    assert_int_equal(read_text(fixture, "a.hcl",
                               "plugin \"mock_driver\" { config {\n enabled = true\n"
                               "fs_isolation = \"none\"\n shutdown_periodic_after = true\n"
                               "shutdown_periodic_duration = \"2s\"\n } }\n"),
                     0);
    assert_true(config->mock_enabled && config->mock_shuts_down);
    assert_int_equal(config->mock_shutdown_after_ms, 2000);
    assert_int_equal(read_text(fixture, "a.hcl",
                               "plugin \"mock_driver\" { config { fs_isolation = \"chroot\" } }"),
                     ERR_INVALID);
    assert_non_null(strstr(fixture->scratch->err.text, "has no files to isolate"));
}

static void test_directory_is_read_in_name_order_and_the_later_wins(void **state)
{
    struct fixture *fixture = *state;
    struct scratch *scratch = fixture->scratch;

    put_file(at(scratch, "20.hcl"), "name = \"second\"\nclient { meta { b = \"2\" } }\n");
    put_file(at(scratch, "10.json"),
             "{\"name\": \"first\", \"client\": {\"meta\": {\"a\": \"1\", \"b\": \"1\"}}}");
    put_file(at(scratch, ".hidden.hcl"), "nonsense");
    put_file(at(scratch, "notes.txt"), "nonsense");
    assert_int_equal(config_read(&fixture->config, scratch->path, &scratch->err), 0);
    assert_string_equal(fixture->config.name, "second");
    assert_int_equal(fixture->config.meta.count, 2);
    assert_string_equal(fixture->config.meta.items[0].value, "1");
    assert_string_equal(fixture->config.meta.items[1].value, "2");
}

static void test_missing_file_is_named(void **state)
{
    struct fixture *fixture = *state;
    struct scratch *scratch = fixture->scratch;

    assert_int_equal(config_read(&fixture->config, at(scratch, "none.hcl"), &scratch->err),
                     ERR_GONE);
    assert_non_null(strstr(scratch->err.text, "none.hcl"));
}

/* What Nomad lets stand for an address of the machine. */
static void test_addresses_of_this_machine_are_found(void **state)
{
    static const char *const wrong[] = {"{{ GetInterfaceIP \"no-such-0\" }}",
                                        "{{ GetAllInterfaces }}", "{{ GetInterfaceIP \"lo\" }",
                                        "{{ GetInterfaceIP \"lo\" }}}"};
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;

    assert_true(text_copy(config->data_dir, sizeof(config->data_dir), "/data"));
    assert_true(text_copy(config->bind_address, sizeof(config->bind_address), "localhost"));
    assert_int_equal(config_finish(config, err), 0);
    assert_string_equal(config->bind_address, "127.0.0.1");
    assert_int_equal(
        read_text(fixture, "a.hcl", "bind_addr = \"{{ GetInterfaceIP \\\"lo\\\" }}\"\n"), 0);
    assert_int_equal(config_finish(config, err), 0);
    assert_string_equal(config->bind_address, "127.0.0.1");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)text_copy(config->bind_address, sizeof(config->bind_address), wrong[i]); /* fits */
        assert_int_equal(config_finish(config, err), ERR_INVALID);
        assert_non_null(strstr(err->text, wrong[i]));
    }
    assert_int_equal(read_text(fixture, "a.hcl",
                               "bind_addr = \"0.0.0.0\"\naddresses {\n  http = \"{{ GetInterfaceIP "
                               "\\\"lo\\\" }} unix:///run/x.sock\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), 0);
    assert_string_equal(config->bind_address, "127.0.0.1");
    assert_string_equal(config->socket_path, "/run/x.sock");
}

/* As HCL's first version has it, and JSON where Nomad reads it. */
static void test_dotted_names_and_last_commas_are_read(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "client {\n  options {\n    driver.raw_exec.enable = \"1\"\n  }\n"
                               "  meta {\n    a.b.c = \"d\"\n  }\n}\n"),
                     0);
    assert_string_equal(fixture->config.meta.items[0].key, "a.b.c");
    refuse(fixture, "a.hcl", "client {\n  meta {\n    a. = \"d\"\n  }\n}\n", "a.hcl:3:8:", "dot");
    assert_int_equal(
        read_text(fixture, "b.json",
                  "{\"name\": \"a,]\\\",}\", \"client\": {\"meta\": {\"x\": \"y\",\n} , },\n}\n"),
        0);
    assert_string_equal(fixture->config.name, "a,]\",}");
    refuse(fixture, "b.json", "{\"name\": \"a\",,}", "b.json:1:", "");
    assert_int_equal(read_text(fixture, "c.hcl",
                               "name = \"n\" datacenter = \"d\"\n"
                               "client { meta { k = \"v\" \"l\" = \"w\" } enabled = true }\n"),
                     0);
    assert_string_equal(fixture->config.name, "n");
    assert_string_equal(fixture->config.datacenter, "d");
    assert_string_equal(fixture->config.meta.items[fixture->config.meta.count - 1].value, "w");
}

static void test_finish_wants_a_data_directory_and_a_numeric_address(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;

    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "-data-dir"));
    assert_true(text_copy(config->data_dir, sizeof(config->data_dir), "/data"));
    assert_true(text_copy(config->bind_address, sizeof(config->bind_address), "example.com"));
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "bind_addr"));
    assert_true(text_copy(config->bind_address, sizeof(config->bind_address), "::1"));
    assert_true(text_copy(config->log_level, sizeof(config->log_level), "LOUD"));
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "log_level"));
}

static void test_addresses_name_one_of_each_kind(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "it names no address"},
        {"example.com", "an address is numeric"},
        {"127.0.0.1 ::1", "at most one numeric address"},
        {"unix:///a unix:///b", "at most one numeric address, and one UNIX socket"},
        {"unix://a/b", "has an absolute path"},
        {"unix:///"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaa",
         "107 bytes at most"},
    };
    char text[512];

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_true(
            text_format(text, sizeof(text), "addresses {\n  http = \"%s\"\n}\n", wrong[i].text));
        refuse(fixture, "a.hcl", text, "a.hcl:2:3:", wrong[i].part);
    }
    refuse(fixture, "a.hcl", "addresses {\n  rpc = \"::1\"\n}\n",
           "a.hcl:2:3:", "rpc is not available");
    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/data\"\nbind_addr = \"0.0.0.0\"\n"
                               "addresses {\n  http = \" unix:///run/s  ::1 \"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), 0);
    assert_string_equal(config->bind_address, "::1"); /* and not that of all, as with Nomad */
    assert_string_equal(config->socket_path, "/run/s");
}

static void test_socket_alone_is_enough(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct http_admission admits;
    struct err *err = &fixture->scratch->err;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/data\"\naddresses {\n  http = \"unix:///s\"\n}\n"
                               "unix_sockets {\n  user = \"root\"\n  group = \"12\"\n"
                               "  mode = \"0660\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), 0);
    assert_string_equal(config->bind_address, "");
    assert_int_equal(config_admission(config, &admits, err), 0);
    assert_int_equal(admits.mode, 0660);
    assert_true(admits.gives);
    assert_int_equal(admits.uid, 0);
    assert_int_equal(admits.gid, 12);
}

static void test_nobody_is_let_in_by_mistake(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;
    static const char *const modes[] = {"", "660x", "0888", "1777", "0066", "rw"};

    assert_true(text_copy(config->data_dir, sizeof(config->data_dir), "/data"));
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        (void)text_copy(config->socket_mode, sizeof(config->socket_mode), modes[i]);
        assert_int_equal(config_finish(config, err), ERR_INVALID);
        assert_non_null(strstr(err->text, "unix_sockets.mode"));
    }
    (void)text_copy(config->socket_mode, sizeof(config->socket_mode), "0660");
    (void)text_copy(config->socket_group, sizeof(config->socket_group), "no such group");
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "there is no group \"no such group\""));
}

static void test_tokens_last_within_a_range(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;

    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/d\"\nacl {\n  token_min_expiration_ttl = \"1h\"\n"
                               "  token_max_expiration_ttl = \"30m\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), ERR_INVALID);
    assert_non_null(strstr(err->text, "is no range of durations"));
    config->token_max_ms = 7200 * 1000;
    assert_int_equal(config_finish(config, err), 0);
    assert_int_equal(config->token_min_ms, 3600 * 1000);
}

static void test_tls_says_all_that_it_needs(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    struct err *err = &fixture->scratch->err;
    struct http_tls tls;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"http = true", "tls.http needs a tls.cert_file"},
        {"verify_https_client = true", "tls.verify_https_client needs tls.http"},
        {"http = true\n cert_file = \"/c\"\n key_file = \"/k\"\n verify_https_client = true",
         "a tls.ca_file that says whose"},
        {"tls_min_version = \"tls11\"", "is \"tls12\" or \"tls13\", not \"tls11\""},
    };
    char text[512];

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        config_free(config);
        config_defaults(config);
        assert_true(
            text_format(text, sizeof(text), "data_dir = \"/d\"\ntls {\n %s\n}\n", wrong[i].text));
        assert_int_equal(read_text(fixture, "a.hcl", text), 0);
        assert_int_equal(config_finish(config, err), ERR_INVALID);
        assert_non_null(strstr(err->text, wrong[i].part));
    }
    refuse(fixture, "a.hcl", "tls {\n  tls_cipher_suites = \"x\"\n}\n",
           "a.hcl:2:3:", "tls_cipher_suites is not available");
    config_free(config);
    config_defaults(config);
    assert_int_equal(read_text(fixture, "a.hcl",
                               "data_dir = \"/d\"\ntls {\n http = true\n rpc = false\n"
                               " cert_file = \"/c\"\n key_file = \"/k\"\n ca_file = \"/a\"\n"
                               " tls_min_version = \"tls13\"\n}\n"),
                     0);
    assert_int_equal(config_finish(config, err), 0);
    assert_true(config_tls(config, &tls));
    assert_null(tls.ca_file); /* clients are not asked */
    assert_true(tls.only_13);
}

static void test_credentials_are_files_that_the_manager_has_passed(void **state)
{
    static const char tls[] = "tls {\n http = true\n cert_file = \"/c\"\n key_file = \"%s\"\n}\n"
                              "acl {\n enabled = %s\n bootstrap_secret_file = \"%s\"\n}\n"
                              "data_dir = \"/d\"\n";
    static const struct {
        const char *key, *enabled, *first, *directory, *why;
    } cases[] = {
        {"credential:own.key", "true", "/first", NULL, "LoadCredential=own.key:PATH"},
        {"credential:own.key", "true", "/first", "here", "LoadCredential=own.key:PATH"},
        {"credential:", "true", "/first", "/run/c", "tls.key_file: \"credential:\" names no"},
        {"credential:../a", "true", "/first", "/run/c", "names no credential"},
        {"credential:a/b", "true", "/first", "/run/c", "names no credential"},
        {"/key", "true", "credential:/first", "/run/c", "acl.bootstrap_secret_file: "},
        {"/key", "false", "/first", "/run/c", "acl.bootstrap_secret_file is for agents that ask"},
        {"credential:own.key", "true", "credential:first", "/run/c", NULL},
    };
    struct fixture *fixture = *state;
    char text[512];

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        config_free(&fixture->config);
        config_defaults(&fixture->config);
        assert_true(
            text_format(text, sizeof(text), tls, cases[i].key, cases[i].enabled, cases[i].first));
        assert_int_equal(read_text(fixture, "a.hcl", text), 0);
        assert_return_code(unsetenv("CREDENTIALS_DIRECTORY"), errno);
        if (cases[i].directory != NULL)
            assert_return_code(setenv("CREDENTIALS_DIRECTORY", cases[i].directory, 1), errno);
        int code = config_finish(&fixture->config, &fixture->scratch->err);
        if (cases[i].why == NULL)
            assert_int_equal(code, 0);
        else if (code != ERR_INVALID || strstr(fixture->scratch->err.text, cases[i].why) == NULL)
            fail_msg("%zu: \"%s\"", i, fixture->scratch->err.text);
    }
    assert_string_equal(fixture->config.tls_key_file, "/run/c/own.key");
    assert_string_equal(fixture->config.bootstrap_secret_file, "/run/c/first");
    assert_string_equal(fixture->config.tls_cert_file, "/c");
    assert_return_code(unsetenv("CREDENTIALS_DIRECTORY"), errno);
}

static void test_finish_derives_absolute_paths(void **state)
{
    struct fixture *fixture = *state;
    struct config *config = &fixture->config;
    char here[PATH_SIZE], wanted[PATH_SIZE];

    assert_non_null(getcwd(here, sizeof(here)));
    assert_true(text_copy(config->data_dir, sizeof(config->data_dir), "some/where"));
    assert_int_equal(config_finish(config, &fixture->scratch->err), 0);
    assert_int_equal(path_join(wanted, here, "some/where"), 0);
    assert_string_equal(config->data_dir, wanted);
    assert_int_equal(path_join(wanted, config->data_dir, "alloc"), 0);
    assert_string_equal(config->alloc_dir, wanted);
    assert_int_equal(path_join(wanted, config->data_dir, "client"), 0);
    assert_string_equal(config->state_dir, wanted);
    assert_true(text_ends_with(config->shim_path, "/cairn-shim"));
    assert_int_equal(config->shim_path[0], '/');
    assert_true(config->name[0] != '\0');
    assert_string_equal(config->log_file, ""); /* standard error stays standard error */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_key_is_refused_with_place_and_hint),
        TEST(test_consul_is_asked_where_the_block_says_and_only_if_there_is_one),
        TEST(test_a_block_of_consul_that_cannot_be_is_refused_and_no_token_is_shown),
        TEST(test_a_token_is_the_line_of_its_file),
        TEST(test_what_nomad_has_and_we_have_not_is_refused_by_name),
        TEST(test_who_looks_for_servers_in_consul_has_some),
        TEST(test_who_is_advertised_has_an_address),
        TEST(test_servers_are_addresses_that_get_a_port),
        TEST(test_more_servers_than_can_be_asked_are_refused),
        TEST(test_a_pool_is_one_of_servers),
        TEST(test_servers_have_tokens_and_certificates_of_their_own),
        TEST(test_keys_with_one_value_are_taken_with_that),
        TEST(test_values_of_the_wrong_kind_are_refused),
        TEST(test_text_longer_than_its_field_is_refused),
        TEST(test_ports_and_networks_that_are_none_are_refused),
        TEST(test_ports_and_networks_are_read),
        TEST(test_host_volumes_are_read_and_have_to_be_paths),
        TEST(test_directories_of_host_volumes_are_below_data_dir_or_as_told),
        TEST(test_plugins_that_are_programs_have_arguments_and_a_configuration),
        TEST(test_storage_plugins_have_a_type_and_a_socket),
        TEST(test_finish_wants_some_history),
        TEST(test_finish_wants_a_range_of_dynamic_ports),
        TEST(test_hcl_and_json_say_the_same),
        TEST(test_addresses_of_this_machine_are_found),
        TEST(test_dotted_names_and_last_commas_are_read),
        TEST(test_what_a_driver_keeps_from_tasks_is_read),
        TEST(test_mock_driver_is_off_until_it_is_enabled),
        TEST(test_directory_is_read_in_name_order_and_the_later_wins),
        TEST(test_missing_file_is_named),
        TEST(test_finish_wants_a_data_directory_and_a_numeric_address),
        TEST(test_addresses_name_one_of_each_kind),
        TEST(test_socket_alone_is_enough),
        TEST(test_nobody_is_let_in_by_mistake),
        TEST(test_tokens_last_within_a_range),
        TEST(test_tls_says_all_that_it_needs),
        TEST(test_credentials_are_files_that_the_manager_has_passed),
        TEST(test_finish_derives_absolute_paths),
    };

    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
