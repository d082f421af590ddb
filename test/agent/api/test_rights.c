/* Who shows no token, or one that grants too little, is refused at every route that there is. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

/* With its * as an id that nothing has. */
static void path_of(const struct api_route *route, char to[256])
{
    const char *star = strchr(route->path, '*');
    int before = star == NULL ? (int)strlen(route->path) : (int)(star - route->path);

    assert_true(text_format(to, 256, "%.*s%s%s", before, route->path,
                            star == NULL ? "" : "e1000001-0000-4000-8000-000000000001",
                            star == NULL ? "" : star + 1));
}

static const char *method_of(const struct api_route *route)
{
    if ((route->methods & API_GET) != 0)
        return "GET";
    return (route->methods & API_PUT) != 0 ? "PUT" : "DELETE";
}

struct told {
    bool is;
    char secret[UUID_TEXT_SIZE];
};

static void told(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct told *told = ctx;

    assert_int_equal(code, 0);
    (void)err;
    told->is = true;
    (void)text_copy(told->secret, sizeof(told->secret),
                    json_string_value(json_object_get(answer, "SecretID")));
}

static struct acl_fresh fresh_of(struct whole_node *node)
{
    struct acl_fresh fresh;

    whole_new_id(node, fresh.accessor);
    whole_new_id(node, fresh.secret);
    return fresh;
}

/* The header of a token with one policy of RULES. */
static void token_of(struct whole_node *node, const char *rules, char header[128])
{
    struct acl *acl = alone_acl(node->parts.alone);
    json_t *policy = json_pack("{s:s, s:s}", "Name", "p", "Rules", rules);
    json_t *request = json_pack("{s:s, s:[s]}", "Type", "client", "Policies", "p");
    struct acl_fresh fresh = fresh_of(node);
    struct told put = {0}, made = {0};

    acl_put_policy(acl, policy, told, &put);
    acl_create_token(acl, request, &fresh, told, &made);
    whole_turns(node);
    assert_true(put.is && made.is);
    assert_true(text_format(header, 128, "X-Nomad-Token: %s", made.secret));
    json_decref(policy);
    json_decref(request);
}

static int status_at(struct whole_node *node, const struct api_route *route, const char *header)
{
    const char *const headers[] = {header, NULL};
    char path[256];

    path_of(route, path);
    return talk(node,
                &(struct question){.method = method_of(route), .path = path, .headers = headers},
                NULL);
}

/* A stream goes on for whoever is let in. */
static bool ends(const struct api_route *route)
{
    return !text_equal(route->path, "/v1/agent/monitor") &&
           !text_equal(route->path, "/v1/event/stream");
}

static void test_nobody_gets_past_any_route(void **state)
{
    struct whole_node *node = *state;
    size_t refused = 0;

    for (size_t i = 0; i < api_routes_count; i++) {
        const struct api_route *route = &api_routes[i];
        int status = status_at(node, route, "X-Test: none");

        if (route->need.scope == NEEDS_NOTHING)
            assert_int_not_equal(status, 0);
        else if (status != 403)
            fail_msg("%s %s: %d", method_of(route), route->path, status);
        refused += status == 403;
    }
    assert_true(refused > 70);
}

static void test_a_wrong_token_opens_nothing_at_all(void **state)
{
    struct whole_node *node = *state;

    for (size_t i = 0; i < api_routes_count; i++) {
        if (ends(&api_routes[i]))
            assert_int_equal(status_at(node, &api_routes[i],
                                       "X-Nomad-Token: e1000001-0000-4000-8000-000000000001"),
                             403);
    }
}

/* Whoever may read is let through where nothing is changed, and nowhere else. */
static void test_a_reader_changes_nothing(void **state)
{
    struct whole_node *node = *state;
    char header[128];

    token_of(node,
             "namespace \"default\" { policy = \"read\" }\nnode { policy = \"read\" }\n"
             "agent { policy = \"read\" }\nplugin { policy = \"read\" }",
             header);
    for (size_t i = 0; i < api_routes_count; i++) {
        const struct api_route *route = &api_routes[i];
        bool parses = text_equal(route->path, "/v1/jobs/parse") ||
                      text_equal(route->path, "/v1/validate/job");

        if (!ends(route) || route->need.scope == NEEDS_NOTHING || parses)
            continue;
        int status = status_at(node, route, header);
        bool reads = (route->methods & API_GET) != 0 && route->need.scope != NEEDS_MANAGEMENT &&
                     route->need.scope != NEEDS_MIGRATION && /* no such token */
                     !text_starts_with(route->path, "/v1/client/fs/") &&
                     !text_ends_with(route->path, "/exec");
        if ((status != 403) != reads)
            fail_msg("%s %s: %d", method_of(route), route->path, status);
    }
}

/* The namespace that is named in the query is not that of what the body describes. */
static void test_a_body_speaks_for_its_own_namespace(void **state)
{
    static const char job[] =
        "{\"Job\": {\"ID\": \"a\", \"Name\": \"a\", \"Type\": \"batch\", \"Datacenters\": "
        "[\"dc1\"], \"TaskGroups\": [{\"Name\": \"g\", \"Count\": 1, \"Tasks\": [{\"Name\": \"t\","
        " \"Driver\": \"raw_exec\", \"Config\": {\"command\": \"/bin/true\"}}]}]}}";
    struct whole_node *node = *state;
    char header[128];
    const char *const headers[] = {header, NULL};

    token_of(node, "namespace \"other\" { policy = \"write\" }", header);
    struct question question = {.method = "PUT",
                                .path = "/v1/jobs?namespace=other",
                                .body = job,
                                .length = strlen(job),
                                .headers = headers};
    assert_int_equal(talk(node, &question, NULL), 403);
    assert_null(alone_find(node->parts.alone, "default", "a"));
    token_of(node, "namespace \"default\" { capabilities = [\"register-job\"] }", header);
    question.path = "/v1/jobs";
    assert_int_equal(talk(node, &question, NULL), 200);
    assert_non_null(alone_find(node->parts.alone, "default", "a"));
}

/* Neither of a host volume, whose body may name none; what is refused is not even made. */
static void test_a_host_volume_is_where_its_body_says(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
    } asked[] = {
        {"/v1/volume/host/create?namespace=default",
         "{\"Volume\": {\"Name\": \"a\", \"Namespace\": \"other\"}}", 403},
        {"/v1/volume/host/register?namespace=default",
         "{\"Volume\": {\"Name\": \"a\", \"Namespace\": \"other\"}}", 403},
        {"/v1/volume/host/create?namespace=other", "{\"Volume\": {\"Name\": \"a\"}}", 403},
        {"/v1/volume/host/create?namespace=other",
         "{\"Volume\": {\"Name\": \"a\", \"Namespace\": 7}}", 403},
        {"/v1/volume/host/create?namespace=%ff", "{\"Volume\": {\"Name\": \"a\"}}", 400},
        {"/v1/volume/host/create", "{\"Volume\": {\"Name\": \"a\"}}", 400},
        {"/v1/volume/host/create?namespace=other",
         "{\"Volume\": {\"Name\": \"a\", \"Namespace\": \"default\"}}", 400},
        {"/v1/volume/host/create", "{\"Volume\": []}", 400},
    };
    struct whole_node *node = *state;
    char header[128];
    const char *const headers[] = {header, NULL};

    token_of(node,
             "namespace \"default\" { capabilities = [\"host-volume-create\", "
             "\"host-volume-register\"] }",
             header);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        struct question question = {.method = "PUT",
                                    .path = asked[i].path,
                                    .body = asked[i].body,
                                    .length = strlen(asked[i].body),
                                    .headers = headers};
        int status = talk(node, &question, NULL);

        if (status != asked[i].status)
            fail_msg("%s %s: %d", asked[i].path, asked[i].body, status);
    }
    assert_null(storage_find_hosted(node->parts.host_volumes, "a"));
}

static int open_node(void **state)
{
    struct whole_node *node = malloc(sizeof(*node));

    assert_non_null(node);
    whole_open(node);
    node->config.acl_enabled = true;
    *state = node;
    return 0;
}

static int close_node(void **state)
{
    whole_close(*state);
    free(*state);
    return 0;
}

#define NODE_TEST(function) cmocka_unit_test_setup_teardown(function, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODE_TEST(test_nobody_gets_past_any_route),
        NODE_TEST(test_a_wrong_token_opens_nothing_at_all),
        NODE_TEST(test_a_reader_changes_nothing),
        NODE_TEST(test_a_body_speaks_for_its_own_namespace),
        NODE_TEST(test_a_host_volume_is_where_its_body_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
