/* A file system that does not answer any more keeps one thread, and nobody who asks. */
#include "agent/api/part.h"
#include "test/agent/api/query.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_bool hangs;
static atomic_uint readers;
static atomic_ulong disk_size;

static int read_or_hang(const char *data_dir, struct host_cpu_times *since,
                        struct host_stats *ret_stats, struct err *err)
{
    (void)data_dir;
    (void)since;
    (void)err;
    atomic_fetch_add(&readers, 1);
    while (atomic_load(&hangs))
        (void)poll(NULL, 0, 5);
    *ret_stats =
        (struct host_stats){.disk_size = atomic_load(&disk_size),
                            .disk_used = 30,
                            .disk_available = 90,
                            .cpu = {.total = 40},
                            .cpus = {{.number = 0, .total = 30}, {.number = 3, .total = 50}},
                            .cpus_count = 2};
    atomic_fetch_sub(&readers, 1);
    return 0;
}

static int open_node(void **state)
{
    int code = node_open(state);

    ((struct whole_node *)*state)->api->host.read = read_or_hang;
    atomic_store(&hangs, false);
    return code;
}

static int close_node(void **state)
{
    atomic_store(&hangs, false);
    return node_close(state);
}

static json_t *ask_json(struct whole_node *node, const char *path)
{
    char *text;

    assert_int_equal(talk(node, &(struct question){.path = path}, &text), 200);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    free(text);
    return json;
}

static double figure(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void test_each_cpu_and_what_may_be_used_of_the_disk_are_told(void **state)
{
    json_t *json = ask_json(*state, "/v1/client/stats");
    const json_t *cpus = json_object_get(json, "CPU"), *second = json_array_get(cpus, 1);
    const json_t *disk = json_array_get(json_object_get(json, "DiskStats"), 0);

    assert_int_equal(json_array_size(cpus), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(cpus, 0), "CPU")), "cpu0");
    assert_string_equal(json_string_value(json_object_get(second, "CPU")), "cpu3");
    assert_true(figure(second, "TotalPercent") == 50);
    assert_true(figure(disk, "UsedPercent") == 25);
    json_decref(json);
}

static json_int_t disk_of(struct whole_node *node, json_int_t *ret_timestamp)
{
    json_t *json = ask_json(node, "/v1/client/stats");
    json_int_t size = json_integer_value(
        json_object_get(json_array_get(json_object_get(json, "DiskStats"), 0), "Size"));

    *ret_timestamp = json_integer_value(json_object_get(json, "Timestamp"));
    json_decref(json);
    return size;
}

static double age_of(struct whole_node *node)
{
    json_t *json = ask_json(node, "/v1/metrics"), *gauge;
    double age = -1;
    size_t i;

    json_array_foreach(json_object_get(json, "Gauges"), i, gauge)
    {
        if (text_equal(json_string_value(json_object_get(gauge, "Name")), "cairn.host.age_seconds"))
            age = json_number_value(json_object_get(gauge, "Value"));
    }
    json_decref(json);
    return age;
}

static bool is_seen(void *ctx)
{
    return ((struct whole_node *)ctx)->api->host.look == NULL;
}

static void test_file_system_that_hangs_is_shown_as_it_was(void **state)
{
    struct whole_node *node = *state;
    json_int_t before, during, after;

    atomic_store(&disk_size, 7000);
    assert_int_equal(disk_of(node, &before), 7000);
    atomic_store(&disk_size, 8000);
    atomic_store(&hangs, true);
    assert_int_equal(disk_of(node, &during), 7000); /* after a moment of patience */
    assert_true(during == before);
    assert_true(node->api->host.hangs);
    for (int i = 0; i < 5; i++) /* no more patience, and no more threads */
        assert_true(age_of(node) > 0);
    assert_int_equal(atomic_load(&readers), 1);
    assert_int_equal(status_of(node, "GET", "/v1/agent/health"), 200);

    atomic_store(&hangs, false);
    run_until(node, is_seen, node);
    assert_int_equal(disk_of(node, &after), 8000);
    assert_true(after > before);
    assert_false(node->api->host.hangs);
}

static void test_file_system_that_never_answered_is_said_to(void **state)
{
    struct whole_node *node = *state;
    char *text;

    atomic_store(&hangs, true);
    assert_int_equal(talk(node, &(struct question){.path = "/v1/client/stats"}, &text), 503);
    assert_non_null(strstr(text, "does not answer"));
    free(text);
    assert_int_equal(status_of(node, "GET", "/v1/metrics"), 200); /* of all else */
}

static bool is_asked(void *ctx)
{
    return ((struct whole_node *)ctx)->api->host.waiters != NULL;
}

static void test_who_leaves_while_it_hangs_is_forgotten(void **state)
{
    struct whole_node *node = *state;

    atomic_store(&hangs, true);
    struct query *query = ask(node, "/v1/client/stats");
    run_until(node, is_asked, node);
    query_end(query);
    while (node->api->host.waiters != NULL)
        assert_int_equal(status_of(node, "GET", "/v1/agent/health"), 200);
}

static void *let_go_later(void *unused)
{
    (void)poll(NULL, 0, 200);
    atomic_store(&hangs, false);
    return unused;
}

static void test_node_ends_while_it_hangs(void **state)
{
    struct whole_node *node = *state;
    pthread_t later;

    atomic_store(&hangs, true);
    struct query *query = ask(node, "/v1/client/stats");
    run_until(node, is_asked, node);
    query_end(query);
    assert_int_equal(pthread_create(&later, NULL, let_go_later, NULL), 0);
    assert_int_equal(node_close(state), 0);
    assert_int_equal(pthread_join(later, NULL), 0);
    assert_int_equal(open_node(state), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_node, close_node)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_cpu_and_what_may_be_used_of_the_disk_are_told),
        TEST(test_file_system_that_hangs_is_shown_as_it_was),
        TEST(test_file_system_that_never_answered_is_said_to),
        TEST(test_who_leaves_while_it_hangs_is_forgotten),
        TEST(test_node_ends_while_it_hangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
