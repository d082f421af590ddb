/* Lists and blocking queries over HTTP: what is shown, what is filtered, who is woken. */
#include "test/agent/api/whole_node.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

struct query {
    int fd;
    size_t used;
    uint64_t index;
    char *body;
    char text[1 << 17];
};

static int open_node(void **state)
{
    struct whole_node *node = malloc(sizeof(*node));

    assert_non_null(node);
    whole_open(node);
    whole_register(node, "web", 2);
    whole_register(node, "web-2", 1);
    whole_register(node, "sums", 0);
    whole_turns(node);
    *state = node;
    return 0;
}

static int close_node(void **state)
{
    whole_close(*state);
    free(*state);
    return 0;
}

/* --- HTTP --- */

static void stop_soon(struct io_timer *timer)
{
    loop_stop(timer->ctx);
}

/* Lets the node see to what has come. */
static void run(struct whole_node *node, uint64_t ms)
{
    struct io_timer timer = {0};

    io_timer_start(node->parts.loop, &timer, loop_now_ms() + ms, stop_soon, node->parts.loop);
    loop_run(node->parts.loop);
    io_timer_stop(&timer);
}

static struct query *ask(struct whole_node *node, const char *path)
{
    struct query *query = calloc(1, sizeof(*query));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    uint64_t port;

    assert_non_null(query);
    assert_true(text_to_u64(strrchr(api_address(node->api), ':') + 1, &port));
    address.sin_port = htons((uint16_t)port);
    query->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(query->fd >= 0);
    assert_int_equal(connect(query->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_true(dprintf(query->fd,
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                        path) > 0);
    run(node, 20);
    return query;
}

/* True when its answer is there. */
static bool is_answered(struct query *query)
{
    struct pollfd poll_fd = {.fd = query->fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

static void hear(struct whole_node *node, struct query *query)
{
    static const char index_line[] = "X-Nomad-Index: ";
    int waited = 0;
    ssize_t got = 1;

    while (got > 0) {
        while (!is_answered(query) && waited++ < 500)
            run(node, 10);
        assert_true(is_answered(query));
        got = read(query->fd, query->text + query->used, sizeof(query->text) - query->used - 1);
        assert_true(got >= 0);
        query->used += (size_t)got;
    }
    char *index = strstr(query->text, index_line);
    assert_non_null(index);
    index += sizeof(index_line) - 1;
    query->body = strstr(index, "\r\n\r\n");
    assert_non_null(query->body);
    query->body += 4;
    index[strcspn(index, "\r")] = '\0';
    assert_true(text_to_u64(index, &query->index));
}

static void end(struct query *query)
{
    assert_int_equal(close(query->fd), 0);
    free(query);
}

static json_t *get(struct whole_node *node, const char *path)
{
    struct query *query = ask(node, path);

    hear(node, query);
    json_t *json = json_loads(query->body, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    end(query);
    return json;
}

static uint64_t index_of(struct whole_node *node, const char *path)
{
    struct query *query = ask(node, path);

    hear(node, query);
    uint64_t index = query->index;
    end(query);
    return index;
}

/* A query that waits for the next change of PATH. */
static struct query *park(struct whole_node *node, const char *path)
{
    char with_index[256];

    assert_true(text_format(with_index, sizeof(with_index), "%s?index=%llu", path,
                            (unsigned long long)index_of(node, path)));
    struct query *query = ask(node, with_index);
    assert_false(is_answered(query));
    return query;
}

static void assert_count(struct whole_node *node, const char *path, size_t count)
{
    json_t *list = get(node, path);

    assert_true(json_is_array(list));
    if (json_array_size(list) != count)
        fail_msg("%s lists %zu, not %zu", path, json_array_size(list), count);
    json_decref(list);
}

static const char *text_at(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

/* --- lists --- */

static void test_list_shows_what_its_filters_let_through(void **state)
{
    struct whole_node *node = *state;

    assert_count(node, "/v1/jobs", 3);
    assert_count(node, "/v1/jobs?prefix=web", 2);
    assert_count(node, "/v1/jobs?namespace=none", 0);
    assert_count(node, "/v1/jobs?namespace=*", 3);
    assert_count(node, "/v1/allocations", 3);
    assert_count(node, "/v1/allocations?namespace=none", 0);
    assert_count(node, "/v1/allocations?prefix=ffff", 0);
    assert_count(node, "/v1/job/web/allocations", 2);
    assert_count(node, "/v1/job/web/allocations?namespace=*", 2);
    assert_count(node, "/v1/job/sums/allocations", 0);
    assert_count(node, "/v1/job/web/evaluations", 1);
    assert_count(node, "/v1/evaluations", 3);
}

static void test_job_is_listed_with_its_own_status_and_counts(void **state)
{
    struct whole_node *node = *state;
    json_t *list = get(node, "/v1/jobs?prefix=web"), *summary = get(node, "/v1/job/web/summary");
    const json_t *web = json_array_get(list, 0);

    assert_string_equal(text_at(web, "ID"), "web");
    assert_string_equal(text_at(web, "Status"), "running");
    const json_t *group =
        json_object_get(json_object_get(json_object_get(web, "JobSummary"), "Summary"), "g");
    assert_int_equal(json_integer_value(json_object_get(group, "Running")), 2);
    assert_true(json_equal(json_object_get(web, "JobSummary"), summary));
    json_decref(list);
    json_decref(summary);
}

static void test_alloc_is_listed_with_its_evaluation(void **state)
{
    struct whole_node *node = *state;
    json_t *evaluations = get(node, "/v1/job/web/evaluations");
    const char *id = text_at(json_array_get(evaluations, 0), "ID");
    char path[128];

    assert_true(text_format(path, sizeof(path), "/v1/evaluation/%s/allocations", id));
    json_t *allocs = get(node, path);
    assert_int_equal(json_array_size(allocs), 2);
    const json_t *alloc = json_array_get(allocs, 0);
    assert_string_equal(text_at(alloc, "EvalID"), id);
    assert_string_equal(text_at(alloc, "JobType"), "service");
    assert_int_equal(
        json_integer_value(json_object_get(alloc, "CreateIndex")),
        json_integer_value(json_object_get(json_array_get(evaluations, 0), "CreateIndex")));
    json_decref(allocs);
    json_decref(evaluations);
}

/* --- blocking queries --- */

static void test_query_is_woken_by_its_own_job_only(void **state)
{
    struct whole_node *node = *state;
    struct query *web = park(node, "/v1/job/web"), *sums = park(node, "/v1/job/sums");
    struct query *all = park(node, "/v1/jobs");

    whole_register(node, "sums", 1);
    run(node, 50);
    assert_true(is_answered(sums));
    assert_true(is_answered(all));
    assert_false(is_answered(web));
    hear(node, sums);
    hear(node, all);
    assert_true(sums->index <= all->index);
    assert_true(index_of(node, "/v1/job/web") < sums->index);
    end(sums);
    end(all);
    end(web); /* goes away while it waits */
    run(node, 20);
    whole_register(node, "web", 1);
    run(node, 20);
}

static void test_query_with_another_index_is_answered_at_once(void **state)
{
    struct whole_node *node = *state;
    struct query *query = ask(node, "/v1/job/web?index=999999");

    hear(node, query);
    assert_true(query->index < 999999);
    end(query);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_list_shows_what_its_filters_let_through),
        TEST(test_job_is_listed_with_its_own_status_and_counts),
        TEST(test_alloc_is_listed_with_its_evaluation),
        TEST(test_query_is_woken_by_its_own_job_only),
        TEST(test_query_with_another_index_is_answered_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
