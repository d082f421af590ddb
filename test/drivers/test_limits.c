/* What a task asks for of memory and processors, as the kernel is told of it. */
#include "test/drivers/room.h"

static void test_weights_are_those_that_others_give(void **state)
{
    static const struct {
        uint64_t shares, weight;
    } known[] = {{2, 1},      {3, 2},      {100, 17},       {300, 39},
                 {1024, 100}, {2596, 210}, {262143, 10000}, {262144, 10000}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_int_equal(plan_cpu_weight(known[i].shares), known[i].weight);
    for (uint64_t shares = 2; shares < 262144; shares++)
        assert_true(plan_cpu_weight(shares) <= plan_cpu_weight(shares + 1));
}

/* The value of a file of the task's cgroup, by its name on v1 or on v2; -1: there is none. */
static long long limit_of(struct room *room, const char *controller, const char *v1, const char *v2)
{
    char cgroup[CGROUP_NAME_SIZE], path[PATH_SIZE];
    bool is_v2 = room->cgroup_mode == CGROUP_V2;

    room_cgroup(room, 1, cgroup);
    (void)text_format(path, sizeof(path), "/sys/fs/cgroup/%s%s/%s/%s", is_v2 ? "" : "/",
                      is_v2 ? "" : controller, cgroup, is_v2 ? v2 : v1); /* fits */
    return access(path, F_OK) == 0 ? atoll(content_of(path)) : -1;
}

static long long memory_limit(struct room *room)
{
    return limit_of(room, "memory", "memory.limit_in_bytes", "memory.max");
}

static void need_controllers(struct room *room)
{
    room_need_root();
    if (access(room->cgroup_mode == CGROUP_V2 ? "/sys/fs/cgroup/memory.stat"
                                              : "/sys/fs/cgroup/memory/memory.oom_control",
               F_OK) != 0) {
        print_message("skipped: no memory controller\n");
        skip();
    }
}

static void test_raw_exec_is_bounded_by_what_it_asks_for(void **state)
{
    struct room *room = *state;

    need_controllers(room);
    room_open(room);
    room->task.resources =
        (struct spec_resources){.cpu_mhz = 300, .memory_mb = 64, .memory_max_mb = 128};
    room_script(room, "echo ready > ready; exec sleep 1000");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(memory_limit(room), 128 << 20);
    assert_int_equal(limit_of(room, "memory", "memory.soft_limit_in_bytes", "memory.low"),
                     64 << 20);
    assert_int_equal(limit_of(room, "cpu", "cpu.shares", "cpu.weight"),
                     room->cgroup_mode == CGROUP_V2 ? (long long)plan_cpu_weight(300) : 300);
    room_destroy(room, 1);
}

/* An alloc of an older version is given cores and no number for them. */
static void test_cores_without_a_number_count_all_the_same(void **state)
{
    static const uint16_t ids[] = {0};
    struct room *room = *state;

    need_controllers(room);
    room_open(room);
    room->task.resources = (struct spec_resources){.memory_mb = 64, .cores = 1, .core_ids = ids};
    room_script(room, "echo ready > ready; exec sleep 1000");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(limit_of(room, "cpu", "cpu.shares", "cpu.weight"),
                     room->cgroup_mode == CGROUP_V2 ? 100 : 1024);
    room_destroy(room, 1);
}

static void test_raw_exec_that_wants_more_memory_is_killed_and_says_so(void **state)
{
    struct room *room = *state;

    need_controllers(room);
    room_open(room);
    room->task.resources = (struct spec_resources){.cpu_mhz = 100, .memory_mb = 24};
    room_script(room, "x=0; while :; do x=$x$x; done");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.signal, SIGKILL);
    assert_true(room->exit.oom_killed);
    room_destroy(room, 1);
}

static void test_raw_exec_without_cgroups_has_no_bound(void **state)
{
    struct room *room = *state;

    need_controllers(room);
    room->no_cgroups = true;
    room_open(room);
    room->task.resources = (struct spec_resources){.cpu_mhz = 100, .memory_mb = 24};
    room_script(room, "echo ready > ready; exec sleep 1000");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    assert_int_equal(memory_limit(room), -1);
    room_destroy(room, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make_on, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_those_that_others_give),
        TEST(test_raw_exec_is_bounded_by_what_it_asks_for),
        TEST(test_cores_without_a_number_count_all_the_same),
        TEST(test_raw_exec_that_wants_more_memory_is_killed_and_says_so),
        TEST(test_raw_exec_without_cgroups_has_no_bound),
    };

    room_mode = cgroup_mode();
    int failed = cmocka_run_group_tests_name("limits", tests, NULL, NULL);
    return room_tries_v1() ? failed + cmocka_run_group_tests_name("limits on v1", tests, NULL, NULL)
                           : failed;
}
