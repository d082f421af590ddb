/* What queries ask for: it is done, or refused by its name. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

static json_t *get(struct whole_node *node, const char *path)
{
    char *body;
    int status = talk(node, &(struct question){.path = path}, &body);
    json_t *json = json_loads(body, JSON_REJECT_DUPLICATES, NULL);

    if (status != 200 || json == NULL)
        fail_msg("%s: %d %s", path, status, body);
    free(body);
    return json;
}

/* PATH is refused with STATUS and a text that has WORD. */
static void assert_refused(struct whole_node *node, const char *method, const char *path,
                           int status, const char *word)
{
    char *body;
    int got = talk(node, &(struct question){.method = method, .path = path}, &body);

    if (got != status || strstr(body, word) == NULL)
        fail_msg("%s %s: %d %s", method, path, got, body);
    free(body);
}

static void assert_count(struct whole_node *node, const char *path, size_t count)
{
    json_t *list = get(node, path);

    if (json_array_size(list) != count)
        fail_msg("%s lists %zu, not %zu", path, json_array_size(list), count);
    json_decref(list);
}

static void test_what_is_not_served_is_refused_by_name(void **state)
{
    static const char *const lists[] = {
        "jobs",        "allocations", "evaluations",       "nodes",
        "deployments", "volumes",     "volumes?type=host", "acl/tokens"};
    static const char *const words[] = {"filter=ID==1", "next_token=a", "reverse=true"};
    char path[128], name[32];

    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (size_t w = 0; w < COUNT_OF(words); w++) {
            assert_true(text_format(path, sizeof(path), "/v1/%s%c%s", lists[i],
                                    strchr(lists[i], '?') == NULL ? '?' : '&', words[w]));
            assert_true(text_format(name, sizeof(name), "%.*s is not available",
                                    (int)strcspn(words[w], "="), words[w]));
            assert_refused(*state, "GET", path, 400, name);
        }
    }
    assert_refused(*state, "DELETE", "/v1/job/web?eval_priority=5", 400, "eval_priority");
    assert_refused(*state, "PUT",
                   "/v1/allocation/a0000001-0000-4000-8000-000000000001/stop?reschedule=true", 400,
                   "reschedule");
    assert_refused(*state, "GET", "/v1/agent/monitor?log_include_location=true", 400,
                   "log_include_location");
}

/* As Nomad's clients say them who do not mean them. */
static void test_what_asks_for_nothing_is_passed_over(void **state)
{
    assert_count(*state, "/v1/jobs?per_page=0&next_token=&filter=&reverse=false", 0);
    assert_count(*state, "/v1/nodes?stale&nobody_knows=1", 1);
}

/* Nomad's command line looks so for each job that it is given, and for what can be dispatched; it
 * does without a filter where this is what it is told. */
static void test_list_is_one_page(void **state)
{
    whole_register(*state, "web", 1);
    whole_register(*state, "web-2", 1);
    whole_turns(*state);
    assert_count(*state, "/v1/jobs?prefix=web&per_page=1", 2);
    assert_refused(*state, "GET", "/v1/jobs?prefix=web&filter=ParameterizedJob+is+not+nil", 400,
                   "failed to create result paginator");
}

static void test_evaluation_tells_what_waits_behind_it(void **state)
{
    char path[128];

    whole_register_job(*state,
                       json_pack("{s:s, s:s, s:[s], s:[{s:s, s:i, s:[{s:s, s:s, s:{s:s}}]}]}", "ID",
                                 "web", "Type", "service", "Datacenters", "elsewhere", "TaskGroups",
                                 "Name", "g", "Count", 1, "Tasks", "Name", "t", "Driver",
                                 "raw_exec", "Config", "command", "/bin/true"));
    whole_turns(*state);
    json_t *list = get(*state, "/v1/evaluations?status=complete");
    const char *id = json_string_value(json_object_get(json_array_get(list, 0), "ID"));
    assert_true(text_format(path, sizeof(path), "/v1/evaluation/%s", id));
    json_t *plain = get(*state, path);
    assert_null(json_object_get(plain, "RelatedEvals"));
    assert_true(text_append(path, sizeof(path), "?related=true"));
    json_t *whole = get(*state, path), *related = json_object_get(whole, "RelatedEvals");
    assert_int_equal(json_array_size(related), 1);
    const json_t *behind = json_array_get(related, 0);
    assert_string_equal(json_string_value(json_object_get(behind, "ID")),
                        json_string_value(json_object_get(plain, "BlockedEval")));
    assert_string_equal(json_string_value(json_object_get(behind, "Status")), "blocked");
    assert_null(json_object_get(behind, "QueuedAllocations"));
    json_decref(list);
    json_decref(plain);
    json_decref(whole);
}

static void test_registration_with_what_is_not_served_is_refused(void **state)
{
    static const char *const bodies[] = {
        "{\"EvalPriority\": 7, \"Job\": {}}",
        "{\"PreserveResources\": true, \"Job\": {}}",
    };

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        char *body;
        int status = talk(*state,
                          &(struct question){.method = "PUT",
                                             .path = "/v1/jobs",
                                             .body = bodies[i],
                                             .length = strlen(bodies[i])},
                          &body);

        assert_int_equal(status, 400);
        assert_non_null(strstr(body, "is not available here in this release"));
        free(body);
    }
}

/* As PUT /v1/jobs would; what else is wrong with it is told by those who read it. */
static void test_validation_knows_what_a_job_names(void **state)
{
    static const struct {
        const char *field, *says;
    } jobs[] = {
        {"\"Namespace\": \"foo\"", "nonexistent namespace \"foo\""},
        {"\"NodePool\": \"gpu\"", "nonexistent node pool \"gpu\""},
        {"\"Region\": \"eu\"", "No path to region: this is \"global\", not \"eu\""},
        {"\"Namespace\": \"default\"", ""},
    };
    char text[512], *body;

    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        assert_true(
            text_format(text, sizeof(text),
                        "{\"Job\": {\"ID\": \"web\", %s, \"TaskGroups\": [{\"Name\": \"g\", "
                        "\"Tasks\": [{\"Name\": \"t\", \"Driver\": \"raw_exec\", "
                        "\"Config\": {\"command\": \"/bin/true\"}}]}]}}",
                        jobs[i].field));
        assert_int_equal(talk(*state,
                              &(struct question){.method = "PUT",
                                                 .path = "/v1/validate/job",
                                                 .body = text,
                                                 .length = strlen(text)},
                              &body),
                         200);
        json_t *answer = json_loads(body, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(answer, "Error")), jobs[i].says);
        assert_int_equal(json_array_size(json_object_get(answer, "ValidationErrors")),
                         jobs[i].says[0] != '\0');
        json_decref(answer);
        free(body);
    }
}

static void test_other_nodes_and_servers_are_not_asked(void **state)
{
    struct whole_node *node = *state;

    assert_refused(node, "PUT", "/v1/client/gc?node_id=ffffffff", 404, "Unknown node");
    assert_refused(node, "GET", "/v1/agent/monitor?node_id=ffffffff", 404, "Unknown node");
    assert_refused(node, "GET", "/v1/agent/monitor?server_id=elsewhere", 404, "elsewhere");
    assert_int_equal(status_of(node, "PUT", "/v1/client/gc?node_id=" WHOLE_NODE_ID), 200);
}

static void test_evaluations_are_listed_by_job_and_status(void **state)
{
    struct whole_node *node = *state;

    whole_register(node, "web", 1);
    whole_register(node, "web-2", 1);
    whole_turns(node);
    assert_count(node, "/v1/evaluations", 2);
    assert_count(node, "/v1/evaluations?job=web", 1);
    assert_count(node, "/v1/evaluations?job=we", 0);
    assert_count(node, "/v1/evaluations?status=complete", 2);
    assert_count(node, "/v1/evaluations?status=blocked", 0);
    assert_count(node, "/v1/evaluations?job=web&status=complete", 1);
    assert_count(node, "/v1/evaluations?job=&status=", 2);
}

static void test_what_else_a_list_shows_is_asked_for(void **state)
{
    struct whole_node *node = *state;

    whole_register_job(node, json_pack("{s:s, s:s, s:[s], s:{s:s}, s:[{s:s, s:i, s:[{s:s, s:s, "
                                       "s:{s:s}}]}]}",
                                       "ID", "web", "Type", "service", "Datacenters", "dc1", "Meta",
                                       "owner", "x", "TaskGroups", "Name", "g", "Count", 0, "Tasks",
                                       "Name", "t", "Driver", "raw_exec", "Config", "command",
                                       "/bin/true"));
    whole_turns(node);
    json_t *plain = get(node, "/v1/jobs"), *meta = get(node, "/v1/jobs?meta=true");
    assert_null(json_object_get(json_array_get(plain, 0), "Meta"));
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(json_array_get(meta, 0), "Meta"), "owner")),
                        "x");
    json_decref(plain);
    json_decref(meta);
    plain = get(node, "/v1/nodes");
    meta = get(node, "/v1/nodes?os=true");
    assert_null(json_object_get(json_array_get(plain, 0), "Attributes"));
    assert_true(json_is_string(
        json_object_get(json_object_get(json_array_get(meta, 0), "Attributes"), "os.name")));
    json_decref(plain);
    json_decref(meta);
    assert_refused(node, "GET", "/v1/jobs?meta=maybe", 400, "meta must be true or false");
    assert_refused(node, "GET", "/v1/nodes?os=maybe", 400, "os must be true or false");
}

static void test_event_streams_say_what_they_cannot_tell(void **state)
{
    assert_refused(*state, "GET", "/v1/event/stream?index=-1", 400, "index must not be negative");
    assert_refused(*state, "GET", "/v1/event/stream?topic=Job:", 400, "unknown topic \"Job:\"");
    assert_refused(*state, "GET", "/v1/event/stream?topic=:", 400, "unknown topic \":\"");
    assert_refused(*state, "GET", "/v1/event/stream?topic=", 400, "unknown topic \"\"");
}

/* A query of PATH with the index that it has now. */
static struct query *ask_again(struct whole_node *node, const char *path)
{
    static const char line[] = "X-Nomad-Index: ";
    struct query *query = ask(node, path);
    char again[128];

    hear(node, query);
    const char *index = strstr(query->headers, line);
    assert_non_null(index);
    index += strlen(line);
    assert_true(text_format(again, sizeof(again), "%s?index=%.*s", path,
                            (int)strcspn(index, "\r\n"), index));
    query_end(query);
    return ask(node, again);
}

static void test_namespaces_are_waited_for(void **state)
{
    struct whole_node *node = *state;

    whole_register(node, "web", 0);
    whole_turns(node);
    struct query *query = ask_again(node, "/v1/namespaces");
    assert_int_equal(status_of(node, "GET", "/v1/status/leader"), 200); /* it has come */
    assert_false(query->answered);
    whole_register(node, "web-2", 0);
    hear(node, query);
    assert_int_equal(query->status, 200);
    query_end(query);
}

/* Where tokens are asked for nobody waits without one, and what needs them is refused at once. */
static void test_who_may_nothing_does_not_wait(void **state)
{
    struct whole_node *node = *state;
    struct query *query;

    whole_register(node, "web", 0);
    whole_turns(node);
    query = ask_again(node, "/v1/acl/tokens");
    hear(node, query);
    assert_int_equal(query->status, 400);
    query_end(query);
    node->config.acl_enabled = true;
    query = ask_again(node, "/v1/namespaces");
    hear(node, query);
    assert_int_equal(query->status, 200);
    query_end(query);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_not_served_is_refused_by_name),
        TEST(test_what_asks_for_nothing_is_passed_over),
        TEST(test_list_is_one_page),
        TEST(test_evaluation_tells_what_waits_behind_it),
        TEST(test_registration_with_what_is_not_served_is_refused),
        TEST(test_validation_knows_what_a_job_names),
        TEST(test_other_nodes_and_servers_are_not_asked),
        TEST(test_evaluations_are_listed_by_job_and_status),
        TEST(test_what_else_a_list_shows_is_asked_for),
        TEST(test_event_streams_say_what_they_cannot_tell),
        TEST(test_namespaces_are_waited_for),
        TEST(test_who_may_nothing_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
