/* Nobody waits for a large request but who sent it: it is read aside, one at a time, within bounds;
 * who waits for long takes nobody else's place. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

static const char short_job[] =
    "{\"Job\":{\"ID\":\"little\",\"Type\":\"batch\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":["
    "{\"Name\":\"t\",\"Driver\":\"raw_exec\",\"Config\":{\"command\":\"/bin/true\"}}]}]}}";

/* A text as it grows. */
struct text {
    char *bytes;
    size_t used, size;
};

static void add(struct text *text, const char *more)
{
    size_t length = strlen(more);

    assert_true(text->used + length < text->size);
    memcpy(text->bytes + text->used, more, length + 1);
    text->used += length;
}

static struct text new_text(size_t size)
{
    struct text text = {.bytes = malloc(size), .size = size};

    assert_non_null(text.bytes);
    return text;
}

/* A job with so many fields that nobody knows that it takes a while to say so. */
static char *large_job(void)
{
    enum { FIELDS = 200000, FIELD_SIZE = 16 };
    struct text text = new_text(FIELDS * FIELD_SIZE + 64);
    char field[FIELD_SIZE];

    add(&text, "{\"Job\":{\"ID\":\"large\"");
    for (int i = 0; i < FIELDS; i++) {
        (void)text_format(field, sizeof(field), ",\"k%06d\":1", i); /* it fits */
        add(&text, field);
    }
    add(&text, "}}");
    return text.bytes;
}

static bool is_one_aside(void *ctx)
{
    return ((struct whole_node *)ctx)->api->asides_count > 0;
}

static bool are_two_aside(void *ctx)
{
    return ((struct whole_node *)ctx)->api->asides_count > 1;
}

static bool is_none_aside(void *ctx)
{
    return ((struct whole_node *)ctx)->api->asides_count == 0;
}

static void test_short_requests_go_before_a_large_one(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();
    struct query *large = put(node, "/v1/jobs", body);

    run_until(node, is_one_aside, node);
    assert_int_equal(status_of(node, "GET", "/v1/status/leader"), 200);
    struct query *little = put(node, "/v1/jobs", short_job);
    hear(node, little);
    assert_int_equal(little->status, 200);
    assert_false(large->answered);
    assert_int_equal(status_of(node, "GET", "/v1/job/little"), 200);

    hear(node, large);
    assert_int_equal(large->status, 400);
    assert_non_null(strstr(large->body, "unknown field \"k000000\""));
    assert_int_equal(node->api->asides_bytes, 0);
    query_end(little);
    query_end(large);
    free(body);
}

static void test_large_job_is_registered_like_any(void **state)
{
    struct whole_node *node = *state;
    char *body = malloc(2 * API_SHORT_BODY_MAX);

    assert_non_null(body);
    (void)text_copy(body, 2 * API_SHORT_BODY_MAX, short_job); /* it fits; JSON may end in spaces */
    memset(body + strlen(short_job), ' ', 2 * API_SHORT_BODY_MAX - strlen(short_job));
    body[2 * API_SHORT_BODY_MAX - 1] = '\0';
    struct query *query = put(node, "/v1/job/little", body);
    run_until(node, is_one_aside, node);
    hear(node, query);
    assert_int_equal(query->status, 200);
    assert_int_equal(status_of(node, "GET", "/v1/job/little"), 200);
    query_end(query);
    query = put(node, "/v1/job/other", body);
    hear(node, query);
    assert_int_equal(query->status, 400);
    assert_string_equal(query->body, "Job ID does not match name");
    query_end(query);
    free(body);
}

static void test_large_bodies_are_read_one_at_a_time(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();
    struct query *queries[] = {put(node, "/v1/jobs", body), put(node, "/v1/validate/job", body)};

    run_until(node, are_two_aside, node);
    assert_true(node->api->asides->running);
    assert_false(node->api->asides->next->running);
    hear(node, queries[0]);
    hear(node, queries[1]);
    assert_int_equal(queries[1]->status, 200); /* which says what is wrong */
    query_end(queries[0]);
    query_end(queries[1]);
    free(body);
}

static void test_large_request_of_one_who_left_is_forgotten(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();
    struct query *first = put(node, "/v1/jobs", body), *second = put(node, "/v1/jobs", body);

    run_until(node, are_two_aside, node);
    query_end(second);
    query_end(first);
    run_until(node, is_none_aside, node);
    assert_int_equal(node->api->readings[READS_LONG], 0);
    second = put(node, "/v1/jobs", body);
    hear(node, second);
    assert_int_equal(second->status, 400);
    query_end(second);
    free(body);
}

static void test_node_ends_while_requests_are_read(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();
    struct query *first = put(node, "/v1/jobs", body), *second = put(node, "/v1/jobs", body);

    run_until(node, are_two_aside, node);
    query_end(first);
    query_end(second);
    free(body);
    /* What was under way is freed with the node: the sanitizers look. */
}

static void test_large_bodies_that_wait_are_bounded(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();

    node->api->asides_bytes = API_BODIES_BYTES_MAX - API_SHORT_BODY_MAX;
    struct query *large = put(node, "/v1/jobs", body), *little = put(node, "/v1/jobs", short_job);
    hear(node, large);
    hear(node, little);
    assert_int_equal(large->status, 503);
    assert_int_equal(little->status, 200);
    node->api->asides_bytes = 0;
    query_end(large);
    query_end(little);

    node->api->asides_count = API_ASIDES_MAX;
    large = put(node, "/v1/jobs", body);
    hear(node, large);
    assert_int_equal(large->status, 503);
    assert_non_null(strstr(large->body, "try again"));
    node->api->asides_count = 0;
    query_end(large);
    free(body);
}

static void test_body_that_is_no_job_is_short(void **state)
{
    struct whole_node *node = *state;
    char *body = large_job();
    static const char *const paths[] = {
        "/v1/search",
        "/v1/client/allocation/a1000001-0000-4000-8000-000000000001/restart",
        "/v1/client/allocation/a1000001-0000-4000-8000-000000000001/signal",
    };

    whole_register(node, "web", 1);
    whole_turns(node);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct query *query = put(node, paths[i], body);

        hear(node, query);
        if (query->status != 413 && query->status != 404)
            fail_msg("%s: %d %s", paths[i], query->status, query->body);
        query_end(query);
    }
    free(body);
}

/* BEFORE, then OPEN again and again, then BEHIND, and so many spaces that it is read aside. */
static char *deep(const char *before, const char *open, const char *behind)
{
    enum { DEPTH = 2040, SIZE = 64 << 10 };
    struct text text = new_text(SIZE);

    add(&text, before);
    for (int i = 0; i < DEPTH; i++)
        add(&text, open);
    add(&text, behind);
    while (text.used <= API_SHORT_BODY_MAX)
        add(&text, "                ");
    return text.bytes;
}

/* The threads of the pool have small stacks. */
static void test_deep_bodies_do_no_harm(void **state)
{
    static const struct {
        const char *path, *before, *open, *behind;
    } deeps[] = {
        {"/v1/jobs", "{\"Job\":{\"ID\":", "[", "1"},
        {"/v1/jobs", "{\"Job\":{\"ID\":", "{\"a\":", "1"},
        {"/v1/jobs/parse", "{\"JobHCL\":\"job \\\"a\\\" {\\n meta { a = ", "[", "\\n}}\"}"},
        {"/v1/jobs/parse", "{\"JobHCL\":\"job \\\"a\\\" {\\n meta { a = ", "(", "\\n}}\"}"},
        {"/v1/jobs/parse", "{\"JobHCL\":\"job \\\"a\\\" {\\n meta { a = ", "{a=", "\\n}}\"}"},
        {"/v1/jobs/parse", "{\"JobHCL\":\"job \\\"a\\\" {\\n meta { a = ", "\\\"${", "\\n}}\"}"},
    };
    struct whole_node *node = *state;

    for (size_t i = 0; i < COUNT_OF(deeps); i++) {
        char *body = deep(deeps[i].before, deeps[i].open, deeps[i].behind);
        struct query *query = put(node, deeps[i].path, body);

        hear(node, query);
        assert_int_equal(query->status, 400);
        query_end(query);
        free(body);
    }
}

/* --- who waits for long --- */

static void test_queries_that_wait_leave_room_for_others(void **state)
{
    struct whole_node *node = *state;
    char path[64];

    (void)text_format(path, sizeof(path), "/v1/jobs?index=%llu",
                      (unsigned long long)api_index(node->api)); /* it fits */
    node->api->parked_count = API_PARKED_MAX;
    assert_int_equal(status_of(node, "GET", path), 503);
    assert_int_equal(status_of(node, "GET", "/v1/jobs"), 200);
    node->api->parked_count = 0;
}

static const struct question monitor = {.path = "/v1/agent/monitor?plain=true", .listen = true};

static bool is_followed(void *ctx)
{
    return ((struct whole_node *)ctx)->api->monitors != NULL;
}

static void test_follower_who_takes_nothing_makes_room(void **state)
{
    struct whole_node *node = *state;
    struct query *first = ask_with(node, &monitor);
    char *text;

    run_until(node, is_followed, node);
    struct api_stream *stream = node->api->streams;
    node->api->followers_count = API_FOLLOWERS_MAX;
    assert_int_equal(talk(node, &monitor, &text), 503);
    assert_non_null(strstr(text, "end one"));
    free(text);

    stream->stalled_ms = loop_now_ms() - 9000; /* he may be reading what came */
    assert_int_equal(talk(node, &monitor, NULL), 503);
    stream->stalled_ms = loop_now_ms() - 60000;
    struct query *second = ask_with(node, &monitor);
    hear(node, first); /* he is let go */
    run_until(node, is_followed, node);
    assert_false(second->answered);
    assert_int_equal(node->api->followers_count, API_FOLLOWERS_MAX);
    node->api->followers_count = 1;
    query_end(first);
    query_end(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, node_open, node_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_short_requests_go_before_a_large_one),
        TEST(test_large_job_is_registered_like_any),
        TEST(test_large_bodies_are_read_one_at_a_time),
        TEST(test_large_request_of_one_who_left_is_forgotten),
        TEST(test_node_ends_while_requests_are_read),
        TEST(test_large_bodies_that_wait_are_bounded),
        TEST(test_body_that_is_no_job_is_short),
        TEST(test_deep_bodies_do_no_harm),
        TEST(test_queries_that_wait_leave_room_for_others),
        TEST(test_follower_who_takes_nothing_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
