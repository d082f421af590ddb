/* Versions of a job over HTTP: those that are kept, how each differs from another one, what it was
 * read of, and what it is called. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

/* Three versions of "web", with a count of 1, 2 and 3. */
static int open_versions(void **state)
{
    struct whole_node *node;

    (void)node_open(state); /* it asserts */
    node = *state;
    for (int count = 1; count <= 3; count++) {
        whole_register(node, "web", count);
        whole_turns(node);
    }
    return 0;
}

/* What GET PATH says, a new reference, with 200. */
static json_t *get(struct whole_node *node, const char *path)
{
    char *body;
    int status = talk(node, &(struct question){.path = path}, &body);
    json_t *json = json_loads(body, 0, NULL);

    if (status != 200 || json == NULL)
        fail_msg("%s: %d %s", path, status, body);
    free(body);
    return json;
}

static void assert_refused(struct whole_node *node, const char *path, int status, const char *text)
{
    char *body;

    assert_int_equal(talk(node, &(struct question){.path = path}, &body), status);
    if (strstr(body, text) == NULL)
        fail_msg("%s: %s", path, body);
    free(body);
}

/* DIFF is of that TYPE, and its group's count went from OLD to NEW, NULL: did not change. */
static void assert_diff(const json_t *diff, const char *type, const char *old, const char *new)
{
    const json_t *group = json_array_get(json_object_get(diff, "TaskGroups"), 0);
    const json_t *field = json_array_get(json_object_get(group, "Fields"), 0);

    assert_string_equal(json_string_value(json_object_get(diff, "Type")), type);
    assert_string_equal(json_string_value(json_object_get(diff, "ID")), "web");
    assert_int_equal(json_array_size(json_object_get(group, "Fields")), old != NULL);
    if (old == NULL)
        return;
    assert_string_equal(json_string_value(json_object_get(field, "Name")), "Count");
    assert_string_equal(json_string_value(json_object_get(field, "Old")), old);
    assert_string_equal(json_string_value(json_object_get(field, "New")), new);
    assert_true(json_is_null(json_object_get(field, "Annotations"))); /* nothing is foretold */
}

static void test_each_version_differs_from_the_one_before(void **state)
{
    json_t *answer = get(*state, "/v1/job/web/versions?diffs=true");
    const json_t *versions = json_object_get(answer, "Versions");
    const json_t *diffs = json_object_get(answer, "Diffs");

    assert_int_equal(json_array_size(versions), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(versions, i), "Version")), 2 - i);
    assert_int_equal(json_array_size(diffs), 2); /* the first differs from nothing */
    assert_diff(json_array_get(diffs, 0), "Edited", "2", "3");
    assert_diff(json_array_get(diffs, 1), "Edited", "1", "2");
    json_decref(answer);
}

static void test_each_version_differs_from_the_one_that_is_named(void **state)
{
    json_t *answer = get(*state, "/v1/job/web/versions?diffs=true&diff_version=0");
    const json_t *diffs = json_object_get(answer, "Diffs");

    assert_int_equal(json_array_size(diffs), 3);
    assert_diff(json_array_get(diffs, 0), "Edited", "1", "3");
    assert_diff(json_array_get(diffs, 1), "Edited", "1", "2");
    assert_diff(json_array_get(diffs, 2), "None", NULL, NULL);
    json_decref(answer);
}

static void test_differences_are_told_to_who_asks_and_where_there_are_two(void **state)
{
    json_t *answer = get(*state, "/v1/job/web/versions");

    assert_int_equal(json_array_size(json_object_get(answer, "Versions")), 3);
    assert_true(json_is_null(json_object_get(answer, "Diffs")));
    json_decref(answer);
    whole_register(*state, "lone", 1);
    whole_turns(*state);
    answer = get(*state, "/v1/job/lone/versions?diffs=true");
    assert_true(json_is_null(json_object_get(answer, "Diffs")));
    json_decref(answer);
}

static void test_version_that_is_stopped_differs_by_that(void **state)
{
    struct whole_node *node = *state;
    struct err err = {0};
    struct alone_evaluation evaluation;

    assert_int_equal(alone_deregister(node->parts.alone, "default", "web", 0, &evaluation, &err),
                     0);
    whole_turns(node);
    json_t *answer = get(node, "/v1/job/web/versions?diffs=true");
    const json_t *diff = json_array_get(json_object_get(answer, "Diffs"), 0);
    const json_t *field = json_array_get(json_object_get(diff, "Fields"), 0);
    assert_string_equal(json_string_value(json_object_get(field, "Name")), "Stop");
    assert_string_equal(json_string_value(json_object_get(field, "Old")), "false");
    assert_string_equal(json_string_value(json_object_get(field, "New")), "true");
    json_decref(answer);
}

static void test_what_cannot_be_compared_is_refused(void **state)
{
    assert_refused(*state, "/v1/job/web/versions?diffs=true&diff_version=7", 404,
                   "version 7 not found");
    assert_refused(*state, "/v1/job/web/versions?diffs=true&diff_tag=good", 404,
                   "tag \"good\" not found");
    assert_refused(*state, "/v1/job/web/versions?diffs=true&diff_version=one", 400,
                   "diff_version must be a number");
    assert_refused(*state, "/v1/job/web/versions?diffs=perhaps", 400, "diffs");
    assert_refused(*state, "/v1/job/none/versions?diffs=true", 404, "job not found");
}

/* What METHOD /v1/job/web/versions/NAME/tag with BODY says. */
static json_t *tag(struct whole_node *node, const char *method, const char *name, const char *body,
                   int wanted)
{
    char path[128], *said;

    assert_true(text_format(path, sizeof(path), "/v1/job/web/versions/%s/tag", name));
    int status = talk(
        node,
        &(struct question){.method = method, .path = path, .body = body, .length = strlen(body)},
        &said);
    json_t *json = json_loads(said, JSON_DECODE_ANY, NULL);
    if (status != wanted)
        fail_msg("%d %s", status, said);
    free(said);
    return json;
}

static void test_version_has_a_tag(void **state)
{
    json_t *said =
        tag(*state, "PUT", "the%20good", "{\"Version\":1,\"Description\":\"words\"}", 200);

    assert_string_equal(json_string_value(json_object_get(said, "Name")), "the good");
    assert_string_equal(json_string_value(json_object_get(said, "Description")), "words");
    assert_true(json_integer_value(json_object_get(said, "TaggedTime")) > 0);
    assert_true(json_integer_value(json_object_get(said, "Index")) > 0);
    json_decref(said);
    json_t *answer = get(*state, "/v1/job/web/versions?diffs=true&diff_tag=the%20good");
    const json_t *versions = json_object_get(answer, "Versions");
    const json_t *own = json_object_get(json_array_get(versions, 1), "VersionTag");
    assert_string_equal(json_string_value(json_object_get(own, "Name")), "the good");
    assert_diff(json_array_get(json_object_get(answer, "Diffs"), 0), "Edited", "2", "3");
    assert_diff(json_array_get(json_object_get(answer, "Diffs"), 1), "None", NULL, NULL);
    json_decref(answer);
    json_decref(tag(*state, "POST", "last", "{\"Latest\":true}", 200));
    answer = get(*state, "/v1/job/web");
    own = json_object_get(answer, "VersionTag");
    assert_string_equal(json_string_value(json_object_get(own, "Name")), "last");
    json_decref(answer);
    json_decref(tag(*state, "DELETE", "last", "", 200));
    answer = get(*state, "/v1/job/web");
    assert_true(json_is_null(json_object_get(answer, "VersionTag")));
    json_decref(answer);
}

static void test_tag_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *method, *body;
        int status;
    } rows[] = {
        {"PUT", "{\"Version\":7}", 404},
        {"PUT", "{\"Version\":-1}", 400},
        {"PUT", "{\"Version\":\"1\"}", 400},
        {"PUT", "{\"Description\":5}", 400},
        {"PUT", "{\"Latest\":\"true\"}", 400},
        {"PUT", "{\"Latest\":true,\"Version\":1}", 400},
        {"PUT", "[]", 400},
        {"DELETE", "", 404},
        {"GET", "", 404}, /* of a job of that name */
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        json_decref(tag(*state, rows[i].method, "none", rows[i].body, rows[i].status));
}

/* What PUT /v1/jobs says of a job "read" of one group, with SUBMISSION. */
static int submit(struct whole_node *node, const char *submission, char **ret_body)
{
    char body[1024];

    assert_true(text_format(
        body, sizeof(body),
        "{\"Job\":{\"ID\":\"read\",\"Datacenters\":[\"*\"],\"TaskGroups\":[{\"Name\":\"g\","
        "\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"mock_driver\"}]}]},\"Submission\":%s}",
        submission));
    return talk(node,
                &(struct question){
                    .method = "PUT", .path = "/v1/jobs", .body = body, .length = strlen(body)},
                ret_body);
}

static void test_what_it_was_read_of_is_given_back(void **state)
{
    char *body;

    assert_int_equal(submit(*state,
                            "{\"Source\":\"job \\\"read\\\" {}\",\"Format\":\"hcl2\","
                            "\"VariableFlags\":{\"a\":\"b c\"},\"Variables\":\"d = 1\"}",
                            &body),
                     200);
    free(body);
    json_t *source = get(*state, "/v1/job/read/submission?version=0");
    json_t *index = json_object_get(source, "JobModifyIndex");
    assert_true(json_integer_value(index) > 0);
    json_t *wanted =
        json_pack("{s:s, s:s, s:{s:s}, s:s, s:s, s:s, s:i, s:O}", "Source", "job \"read\" {}",
                  "Format", "hcl2", "VariableFlags", "a", "b c", "Variables", "d = 1", "Namespace",
                  "default", "JobID", "read", "Version", 0, "JobModifyIndex", index);
    assert_true(json_equal(source, wanted));
    json_decref(wanted);
    json_decref(source);
    source = get(*state, "/v1/job/read");
    assert_null(json_object_get(source, "cairnSource"));
    json_decref(source);
}

static void test_what_was_not_submitted_is_not_there(void **state)
{
    char *body;

    assert_refused(*state, "/v1/job/web/submission?version=0", 404, "job source not found");
    assert_refused(*state, "/v1/job/web/submission?version=7", 404, "job source not found");
    assert_refused(*state, "/v1/job/none/submission?version=0", 404, "job source not found");
    assert_refused(*state, "/v1/job/web/submission", 400,
                   "Unable to parse job submission version parameter");
    assert_refused(*state, "/v1/job/web/submission?version=-1", 400,
                   "Unable to parse job submission version parameter");
    assert_int_equal(submit(*state, "{\"Source\":5}", &body), 400);
    assert_non_null(strstr(body, "Submission must have texts"));
    free(body);
    assert_refused(*state, "/v1/job/read", 404, "job not found");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_versions, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_version_differs_from_the_one_before),
        TEST(test_each_version_differs_from_the_one_that_is_named),
        TEST(test_differences_are_told_to_who_asks_and_where_there_are_two),
        TEST(test_version_that_is_stopped_differs_by_that),
        TEST(test_what_cannot_be_compared_is_refused),
        TEST(test_version_has_a_tag),
        TEST(test_tag_that_cannot_be_is_refused),
        TEST(test_what_it_was_read_of_is_given_back),
        TEST(test_what_was_not_submitted_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
