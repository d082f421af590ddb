/* What a web page may reach: nothing that changes something, under no name but ours. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

static const char *const evil_host[] = {"Host: evil.example:4646", NULL};
static const char *const own_host[] = {"Host: node-1:4646", NULL};
static const char *const origin[] = {"Origin: http://evil.example", NULL};
static const char *const null_origin[] = {"Origin: null", NULL};
/* What makes a GET one of a program, and what makes it one of a browser. */
static const char *const programs[][3] = {{"User-Agent: Go-http-client/1.1", NULL},
                                          {"User-Agent: curl/7.88.1", NULL},
                                          {"X-Nomad-Token: any", NULL}};
static const char *const browsers[][3] = {
    {NULL},
    {"User-Agent:", NULL},
    {"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", NULL},
    {"User-Agent: Go-http-client/1.1", "Sec-Fetch-Site: cross-site", NULL},
    {"User-Agent: Go-http-client/1.1", "Sec-Fetch-Dest: image", NULL},
    {"User-Agent: Go-http-client/1.1", "Referer: http://evil.example/", NULL},
    {"X-Nomad-Token: any", "Sec-Fetch-Mode: no-cors", NULL}};

static int status_with(struct whole_node *node, const char *method, const char *path,
                       const char *const *headers)
{
    return talk(node, &(struct question){.method = method, .path = path, .headers = headers}, NULL);
}

static void test_loopback_is_known_in_all_its_forms(void **state)
{
    static const char *const loopback[] = {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {
        "0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::127", "localhost", ""};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(loopback); i++)
        assert_true(api_is_loopback(loopback[i]));
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(api_is_loopback(others[i]));
}

static void test_names_of_others_are_not_ours_on_any_loopback_address(void **state)
{
    static const char *const binds[] = {"127.0.0.1", "127.0.0.2", "::1"};
    static const char *const ours[] = {"localhost",      "LocalHost:4646", "127.0.0.1:4646",
                                       "[::1]:4646",     "192.0.2.7",      "node-1",
                                       "a.example:4646", "B.example"};
    static const char *const theirs[] = {
        "evil.example",   "evil.example:4646",      "example", "xa.example",
        "a.example.evil", "127.0.0.1.evil.example", "",        "[evil]:4646"};
    struct config config = {.name = "node-1", .allowed_hosts = "a.example, b.example"};
    (void)state;

    for (size_t b = 0; b < COUNT_OF(binds); b++) {
        (void)text_copy(config.bind_address, sizeof(config.bind_address), binds[b]); /* they fit */
        for (size_t i = 0; i < COUNT_OF(ours); i++)
            assert_true(api_is_own_name(&config, ours[i]));
        for (size_t i = 0; i < COUNT_OF(theirs); i++)
            assert_false(api_is_own_name(&config, theirs[i]));
    }
}

static void test_agent_beyond_loopback_takes_any_name_unless_it_was_told(void **state)
{
    struct config config = {.bind_address = "192.0.2.1"};
    (void)state;

    assert_true(api_is_own_name(&config, "any.example:4646"));
    (void)text_copy(config.allowed_hosts, sizeof(config.allowed_hosts), "a.example"); /* fits */
    assert_false(api_is_own_name(&config, "any.example:4646"));
    assert_true(api_is_own_name(&config, "a.example:4646"));
}

static void test_requests_of_pages_are_refused(void **state)
{
    struct whole_node *node = *state;

    assert_int_equal(status_with(node, "GET", "/v1/jobs", evil_host), 403);
    assert_int_equal(status_with(node, "GET", "/v1/jobs", own_host), 200);
    assert_int_equal(status_with(node, "PUT", "/v1/system/gc", origin), 403);
    assert_int_equal(status_with(node, "PUT", "/v1/system/gc", null_origin), 403);
    assert_int_equal(status_with(node, "OPTIONS", "/v1/system/gc", NULL), 405);
}

/* An image on a page is a GET that says it is a browser's; Nomad's client collects by GET, too. */
static void test_get_changes_something_only_for_programs(void **state)
{
    static const char *const paths[] = {
        "/v1/client/gc", "/v1/client/allocation/a1000001-0000-4000-8000-000000000001/gc"};
    struct whole_node *node = *state;
    char *text;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        for (size_t b = 0; b < COUNT_OF(browsers); b++) {
            assert_int_equal(
                talk(node, &(struct question){.path = paths[i], .headers = browsers[b]}, &text),
                405);
            assert_non_null(strstr(text, "use PUT"));
            free(text);
        }
        for (size_t p = 0; p < COUNT_OF(programs); p++)
            assert_int_equal(status_with(node, "GET", paths[i], programs[p]),
                             status_with(node, "PUT", paths[i], NULL));
    }
    assert_int_equal(status_with(node, "PUT", paths[0], NULL), 200);
    for (size_t i = 0; i < api_routes_count; i++) {
        bool gets = (api_routes[i].methods & API_GET) != 0;
        bool changes = strstr(api_routes[i].path, "gc") != NULL ||
                       text_ends_with(api_routes[i].path, "stop") ||
                       text_ends_with(api_routes[i].path, "restart") ||
                       text_ends_with(api_routes[i].path, "signal");
        assert_false(gets && changes);
    }
}

static void test_answers_are_taken_for_nothing_else(void **state)
{
    static const char *const paths[] = {"/v1/jobs", "/v1/none", "/v1/metrics?format=prometheus"};
    struct whole_node *node = *state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct query *query = ask(node, paths[i]);

        hear(node, query);
        assert_non_null(strcasestr(query->headers, "X-Content-Type-Options: nosniff"));
        assert_non_null(strcasestr(query->headers, "Content-Security-Policy: default-src 'none'"));
        assert_null(strcasestr(query->headers, "Access-Control"));
        query_end(query);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_is_known_in_all_its_forms),
        cmocka_unit_test(test_names_of_others_are_not_ours_on_any_loopback_address),
        cmocka_unit_test(test_agent_beyond_loopback_takes_any_name_unless_it_was_told),
        TEST(test_requests_of_pages_are_refused),
        TEST(test_get_changes_something_only_for_programs),
        TEST(test_answers_are_taken_for_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
