/* Jobs and allocs over HTTP, whose answers are kept: they say what is so now, whoever asked before.
 */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

/* What GET PATH says, a new reference, with 200. */
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

static json_int_t number_of(const json_t *job, const char *name)
{
    return json_integer_value(json_object_get(job, name));
}

/* JOB (moved) has COUNT allocs in its group, and is that version of it. */
static void assert_job(json_t *job, int count, int version)
{
    const json_t *group = json_array_get(json_object_get(job, "TaskGroups"), 0);

    assert_int_equal(number_of(group, "Count"), count);
    assert_int_equal(number_of(job, "Version"), version);
    json_decref(job);
}

/* An alloc that shows its job. */
static void find_alloc(struct whole_node *node, char path[64])
{
    json_t *list = get(node, "/v1/job/web/allocations");

    assert_true(json_array_size(list) > 0);
    assert_true(text_format(path, 64, "/v1/allocation/%s",
                            json_string_value(json_object_get(json_array_get(list, 0), "ID"))));
    json_decref(list);
}

static json_t *job_of_alloc(struct whole_node *node, const char *path)
{
    json_t *alloc = get(node, path), *job = json_incref(json_object_get(alloc, "Job"));

    json_decref(alloc);
    return job;
}

static void test_job_is_shown_as_it_is_whoever_asked_before(void **state)
{
    struct whole_node *node = *state;
    struct alone_evaluation evaluation;
    char path[64];
    struct err err = {0};

    for (int count = 1; count <= 3; count++) {
        whole_register(node, "web", count);
        whole_turns(node);
        find_alloc(node, path);
        for (int again = 0; again < 2; again++) {
            assert_job(get(node, "/v1/job/web"), count, count - 1);
            assert_job(job_of_alloc(node, path), count, count - 1);
        }
    }
    json_t *job = get(node, "/v1/job/web");
    assert_true(json_is_false(json_object_get(job, "Stop")));
    json_decref(job);
    assert_int_equal(alone_deregister(node->parts.alone, "default", "web", 0, &evaluation, &err),
                     0);
    whole_turns(node);
    job = get(node, "/v1/job/web");
    assert_true(json_is_true(json_object_get(job, "Stop")));
    json_decref(job);
}

/* A version of before has the text of no other. */
static void test_versions_are_each_their_own(void **state)
{
    struct whole_node *node = *state;

    for (int count = 1; count <= 3; count++) {
        whole_register(node, "web", count);
        whole_turns(node);
    }
    assert_job(get(node, "/v1/job/web"), 3, 2);
    json_t *answer = get(node, "/v1/job/web/versions");
    for (int i = 0; i < 3; i++)
        assert_job(json_incref(json_array_get(json_object_get(answer, "Versions"), (size_t)i)),
                   3 - i, 2 - i);
    json_decref(answer);
}

static void test_job_of_another_namespace_is_another(void **state)
{
    struct whole_node *node = *state;

    whole_register(node, "web", 0);
    whole_turns(node);
    for (int again = 0; again < 2; again++) {
        assert_job(get(node, "/v1/job/web"), 0, 0);
        assert_int_equal(
            talk(node, &(struct question){.path = "/v1/job/web?namespace=other"}, NULL), 404);
    }
}

static void test_pretty_answer_says_the_same(void **state)
{
    struct whole_node *node = *state;

    whole_register(node, "web", 2);
    whole_turns(node);
    json_t *plain = get(node, "/v1/job/web"), *pretty = get(node, "/v1/job/web?pretty");
    assert_true(json_equal(plain, pretty));
    json_decref(plain);
    json_decref(pretty);
}

/* More of them than are kept, and one that is too long for it. */
static void test_each_of_many_jobs_is_itself(void **state)
{
    enum { MANY = 40 };
    struct whole_node *node = *state;
    char id[32], path[64];
    static char long_text[20000];

    memset(long_text, 'x', sizeof(long_text) - 1);
    for (int i = 0; i < MANY; i++) {
        assert_true(text_format(id, sizeof(id), "job-%d", i));
        whole_register(node, id, i % 2);
    }
    whole_register_job(node, json_pack("{s:s, s:s, s:[s], s:{s:s}, s:[{s:s, s:i, s:[{s:s, s:s, "
                                       "s:{s:s}}]}]}",
                                       "ID", "long", "Type", "service", "Datacenters", "dc1",
                                       "Meta", "text", long_text, "TaskGroups", "Name", "g",
                                       "Count", 0, "Tasks", "Name", "t", "Driver", "raw_exec",
                                       "Config", "command", "/bin/true"));
    whole_turns(node);
    for (int i = 0; i < 2 * MANY; i++) {
        json_t *job;

        assert_true(text_format(path, sizeof(path), "/v1/job/job-%d", i % MANY));
        job = get(node, path);
        assert_string_equal(json_string_value(json_object_get(job, "ID")),
                            path + strlen("/v1/job/"));
        assert_job(job, i % 2, 0);
        job = get(node, "/v1/job/long");
        assert_int_equal(json_string_length(json_object_get(json_object_get(job, "Meta"), "text")),
                         sizeof(long_text) - 1);
        json_decref(job);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_job_is_shown_as_it_is_whoever_asked_before),
        TEST(test_versions_are_each_their_own),
        TEST(test_job_of_another_namespace_is_another),
        TEST(test_pretty_answer_says_the_same),
        TEST(test_each_of_many_jobs_is_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
