/* The node's metadata over HTTP: refused whole, or true when it is answered. */
#include "test/agent/api/query.h"

static struct spec_pair configured[] = {{"rack", "r1"}, {"zone", "a"}};

static const char route[] = "/v1/client/metadata";

static int open_node(void **state)
{
    struct whole_node *node = malloc(sizeof(*node));
    struct store store;
    struct err err;

    assert_non_null(node);
    whole_open(node);
    node->config.meta = (struct spec_pairs){configured, COUNT_OF(configured)};
    store = store_of_journal(node->parts.journal);
    json_decref(node->parts.node.meta.said);
    assert_int_equal(node_meta_read(&node->parts.node.meta, &store, NULL, 0, &err), 0);
    *state = node;
    return 0;
}

static json_t *answer_to(struct whole_node *node, const char *method, const char *path,
                         const char *body)
{
    const size_t length = body == NULL ? 0 : strlen(body);
    const struct question question = {
        .method = method, .path = path, .body = body, .length = length};
    char *text;
    int status = talk(node, &question, &text);
    json_t *json = json_loads(text, 0, NULL);

    if (status != 200 || json == NULL)
        fail_msg("%s %s: %d %s", method, path, status, text);
    free(text);
    return json;
}

static void assert_is(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void assert_refused(struct whole_node *node, const char *path, const char *body, int status,
                           const char *why)
{
    char *text;
    int got = talk(
        node,
        &(struct question){.method = "PUT", .path = path, .body = body, .length = strlen(body)},
        &text);

    if (got != status || strstr(text, why) == NULL)
        fail_msg("%s %s: %d %s", path, body, got, text);
    free(text);
}

static void test_what_is_wrong_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *why;
    } rows[] = {
        {"", 400, "Request body is empty"},
        {"[]", 400, "Failed to decode body"},
        {"{\"Meta\":{\"a\":\"x\"}", 400, "Failed to decode body"},
        {"{}", 400, "missing required Meta object"},
        {"{\"Meta\":null}", 400, "missing required Meta object"},
        {"{\"Meta\":\"a=x\"}", 400, "missing required Meta object"},
        {"{\"Meta\":{}}", 400, "missing required Meta object"},
        {"{\"Meta\":{\"a\":\"x\",\"b c\":\"x\"}}", 400, "\"b c\" is invalid"},
        {"{\"Meta\":{\"a\":\"x\",\"b\":7}}", 400, "must be text or null"},
        {"{\"Meta\":{\"a\":\"x\"},\"NodeID\":7}", 400, "NodeID must be a text"},
        {"{\"Meta\":{\"a\":\"x\"},\"NodeID\":\"ffffffff\"}", 404, "Unknown node ffffffff"},
    };
    struct whole_node *node = *state;
    char large[NODE_META_VALUE_MAX + 64] = "{\"Meta\":{\"a\":\"", path[64];
    size_t used = strlen(large);

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_refused(node, route, rows[i].body, rows[i].status, rows[i].why);
    memset(large + used, 'x', NODE_META_VALUE_MAX + 1);
    assert_true(text_copy(large + used + NODE_META_VALUE_MAX + 1, 4, "\"}}"));
    assert_refused(node, route, large, 400, "may have 4096 bytes");
    assert_true(text_format(path, sizeof(path), "%s?node_id=ffffffff", route));
    assert_refused(node, path, "{\"Meta\":{\"a\":\"x\"}}", 404, "Unknown node ffffffff");
    assert_int_equal(status_of(node, "GET", path), 404);
    assert_is(answer_to(node, "GET", route, NULL),
              "{\"Dynamic\":{},\"Meta\":{\"rack\":\"r1\",\"zone\":\"a\"},"
              "\"Static\":{\"rack\":\"r1\",\"zone\":\"a\"}}");
}

static void test_what_is_answered_is_so_everywhere(void **state)
{
    static const char said[] =
        "{\"Dynamic\":{\"own\":\"x\",\"rack\":\"r2\",\"zone\":null},"
        "\"Meta\":{\"own\":\"x\",\"rack\":\"r2\"},\"Static\":{\"rack\":\"r1\",\"zone\":\"a\"}}";
    struct whole_node *node = *state;
    char *stored;
    size_t length;
    struct err err;

    assert_is(answer_to(node, "POST", "/v1/client/metadata?node_id=" WHOLE_NODE_ID,
                        "{\"Meta\":{\"rack\":\"r2\",\"zone\":null,\"own\":\"x\"}}"),
              said);
    assert_int_equal(journal_meta_read(node->parts.journal, "metadata", &stored, &length, &err), 0);
    assert_true(length == strlen("{\"own\":\"x\",\"rack\":\"r2\",\"zone\":null}"));
    free(stored);
    assert_is(answer_to(node, "GET", route, NULL), said);
    json_t *whole = answer_to(node, "GET", "/v1/node/" WHOLE_NODE_ID, NULL);
    assert_is(json_incref(json_object_get(whole, "Meta")), "{\"own\":\"x\",\"rack\":\"r2\"}");
    json_decref(whole);
    assert_is(answer_to(node, "PUT", route,
                        "{\"NodeID\":\"" WHOLE_NODE_ID "\",\"Meta\":{\"own\":null,\"gone\":null}}"),
              "{\"Dynamic\":{\"rack\":\"r2\",\"zone\":null},\"Meta\":{\"rack\":\"r2\"},"
              "\"Static\":{\"rack\":\"r1\",\"zone\":\"a\"}}");
    assert_is(answer_to(node, "PUT", route, "{\"Meta\":{\"rack\":\"r2\"}}"), /* as it was */
              "{\"Dynamic\":{\"rack\":\"r2\",\"zone\":null},\"Meta\":{\"rack\":\"r2\"},"
              "\"Static\":{\"rack\":\"r1\",\"zone\":\"a\"}}");
}

static void test_who_waits_for_news_of_the_node_hears_of_it(void **state)
{
    const struct life_subject everything = {.kind = LIFE_EVERYTHING};
    struct whole_node *node = *state;
    char path[128];

    assert_true(text_format(path, sizeof(path), "/v1/node/" WHOLE_NODE_ID "?index=%llu",
                            (unsigned long long)life_index(node->parts.life, &everything)));
    struct query *waits = ask(node, path);
    assert_int_equal(status_of(node, "GET", "/v1/status/leader"), 200); /* it has come */
    assert_false(waits->answered);
    json_decref(answer_to(node, "PUT", route, "{\"Meta\":{\"own\":\"x\"}}"));
    hear(node, waits);
    assert_int_equal(waits->status, 200);
    assert_non_null(strstr(waits->body, "\"own\":\"x\""));
    query_end(waits);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_node, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_wrong_is_refused_and_changes_nothing),
        TEST(test_what_is_answered_is_so_everywhere),
        TEST(test_who_waits_for_news_of_the_node_hears_of_it),
    };

    return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
