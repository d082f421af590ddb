/* What a node has for allocs: what was found or given, less what is reserved. */
#include "agent/node/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct node node;
    struct config config;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    fixture->node.facts = (struct host_facts){
        .cpu_cores = 4,
        .cpu_mhz = 2500,
        .memory_bytes = (uint64_t)8000 << 20,
        .disk_bytes = (uint64_t)90000 << 20,
        .disk_free_bytes = (uint64_t)50000 << 20,
    };
    fixture->node.cores_count = 4;
    for (uint16_t core = 0; core < 4; core++)
        core_set_add(&fixture->node.cores, core);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void expect(const struct fixture *fixture, struct room room)
{
    assert_int_equal(fixture->node.room.cpu_mhz, room.cpu_mhz);
    assert_int_equal(fixture->node.room.cores, room.cores);
    assert_int_equal(fixture->node.room.memory_mb, room.memory_mb);
    assert_int_equal(fixture->node.room.disk_mb, room.disk_mb);
}

static void test_room_without_a_word_about_it_is_the_whole(void **state)
{
    struct fixture *fixture = *state;

    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){10000, 8000, 50000, 4, 0});
    assert_int_equal(fixture->node.whole.cpu_mhz, 10000);
}

static void test_room_lacks_what_is_reserved(void **state)
{
    struct fixture *fixture = *state;

    fixture->config.reserved_cpu_mhz = 400;
    fixture->config.reserved_memory_mb = 1000;
    fixture->config.reserved_disk_mb = 2000;
    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){9600, 7000, 48000, 4, 0});
    assert_int_equal(fixture->node.whole.cpu_mhz, 10000);
    assert_int_equal(fixture->node.whole.memory_mb, 8000);
    assert_int_equal(fixture->node.whole.disk_mb, 50000);
}

static void test_room_lacks_the_cpu_of_reserved_cores(void **state)
{
    struct fixture *fixture = *state;

    core_set_drop(&fixture->node.cores, 0);
    fixture->config.reserved_cpu_mhz = 500;
    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){7000, 8000, 50000, 3, 0});
}

static void test_room_of_a_given_cpu_has_it_with_reserved_cores(void **state)
{
    struct fixture *fixture = *state;

    core_set_drop(&fixture->node.cores, 0);
    fixture->config.cpu_total_compute = 3000;
    fixture->config.reserved_cpu_mhz = 500;
    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){2500, 8000, 50000, 3, 0});
    assert_int_equal(fixture->node.whole.cpu_mhz, 3000);
}

static void test_room_of_less_than_is_reserved_is_none(void **state)
{
    struct fixture *fixture = *state;

    fixture->config.reserved_cpu_mhz = 10001;
    fixture->config.reserved_memory_mb = 8000;
    fixture->config.reserved_disk_mb = UINT32_MAX;
    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){0, 0, 0, 4, 0});
}

static void test_room_that_nobody_knows_is_no_bound(void **state)
{
    struct fixture *fixture = *state;

    fixture->node.facts = (struct host_facts){.cpu_cores = 4};
    fixture->config.reserved_cpu_mhz = 1;
    node_find_room(&fixture->node, &fixture->config);
    expect(fixture, (struct room){UINT64_MAX, UINT64_MAX, UINT64_MAX, 4, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_room_without_a_word_about_it_is_the_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_room_lacks_what_is_reserved, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_lacks_the_cpu_of_reserved_cores, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_of_a_given_cpu_has_it_with_reserved_cores, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_room_of_less_than_is_reserved_is_none, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_room_that_nobody_knows_is_no_bound, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
