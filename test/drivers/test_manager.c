/* Which drivers a node has, by its configuration and by how it is; and who hears when that changes.
 */
#include "test/drivers/room.h"

static struct driver_info info_of(const struct room *room, const char *name)
{
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(room->drivers, infos, COUNT_OF(infos));

    for (size_t i = 0; i < count; i++) {
        if (text_equal(infos[i].name, name))
            return infos[i];
    }
    fail_msg("no driver %s", name);
    return infos[0];
}

static void assert_denied(struct room *room, const char *name, const char *why)
{
    struct driver_info info = info_of(room, name);

    assert_false(info.detected || info.healthy);
    assert_string_equal(info.description, why);
    assert_false(driver_is_healthy(room->drivers, name));
}

static void test_lists_of_the_node_say_which_drivers_there_are(void **state)
{
    static const struct {
        const char *allowed, *denied;
        bool mock, raw_exec;
    } cases[] = {
        {NULL, NULL, true, true},
        {"", "", true, true},
        {" , ", " , ", true, true},
        {"mock_driver", NULL, true, false},
        {" raw_exec , mock_driver ", NULL, true, true},
        {"mock", "raw_exe,aw_exec", false, false},
        {NULL, "raw_exec", true, false},
        {"raw_exec", "raw_exec,mock_driver", false, false},
    };
    struct room *room = *state;

    room->mock.enabled = true;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        room->allowlist = cases[i].allowed;
        room->denylist = cases[i].denied;
        room_open(room);
        assert_int_equal(info_of(room, "mock_driver").detected, cases[i].mock);
        assert_int_equal(info_of(room, "raw_exec").detected, cases[i].raw_exec);
        room_close(room);
    }
    room->allowlist = "exec";
    room->denylist = "raw_exec";
    room_open(room);
    assert_denied(room, "mock_driver", "not allowed by driver.allowlist");
    assert_denied(room, "raw_exec", "not allowed by driver.denylist");
    room_script(room, "true");
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "not allowed by driver.denylist"));
    room_destroy(room, 1);
}

static void test_what_a_denied_driver_runs_is_found_and_stopped(void **state)
{
    struct room *room = *state;

    room->mock.enabled = true;
    room->task.driver = "mock_driver";
    room->task.config_json = "{\"run_for\": \"1h\", \"exit_code\": 3}";
    room_open(room);
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    room_close(room);
    room->denylist = "mock_driver";
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 3);
    room_destroy(room, 1);
}

static void test_drivers_that_the_configuration_disables_are_not_there(void **state)
{
    struct room *room = *state;

    room->exec.disabled = true;
    room_open(room);
    assert_denied(room, "exec", "disabled");
    assert_denied(room, "mock_driver", "disabled");
}

static void test_change_of_health_is_told_once_and_has_its_time(void **state)
{
    struct room *room = *state;
    char shim[PATH_SIZE];

    room_need_root();
    assert_true(text_copy(shim, sizeof(shim), room->shim));
    assert_int_equal(path_join(room->shim, room->path, "cairn-shim"), 0);
    int64_t before_ns = loop_now_unix_ns();
    room_open(room);
    struct driver_info first = info_of(room, "raw_exec");
    assert_true(first.detected && !first.healthy);
    assert_non_null(strstr(first.description, "cairn-shim: No such file"));
    assert_true(first.since_unix_ns >= before_ns);
    assert_int_equal(room->changes, 0); /* what is so from the start is no change */
    drivers_look_again(room->drivers);
    assert_int_equal(room->changes, 0);
    assert_true(info_of(room, "raw_exec").since_unix_ns == first.since_unix_ns);

    assert_return_code(symlink(shim, room->shim), 0);
    room_await_change(room); /* it is looked at by itself, and soon */
    assert_int_equal(room->changes, 1);
    struct driver_info now = info_of(room, "raw_exec");
    assert_true(now.healthy && driver_is_healthy(room->drivers, "raw_exec"));
    assert_string_equal(now.description, "Healthy");
    assert_true(now.since_unix_ns > first.since_unix_ns);
    assert_return_code(unlink(room->shim), 0);
    drivers_look_again(room->drivers);
    assert_int_equal(room->changes, 2);
    assert_false(driver_is_healthy(room->drivers, "exec"));
}

static void test_driver_that_goes_is_noticed_at_its_time(void **state)
{
    struct room *room = *state;

    room->mock =
        (struct drivers_mock){.enabled = true, .shuts_down = true, .shutdown_after_ms = 50};
    room_open(room);
    if (driver_is_healthy(room->drivers, "mock_driver"))
        room_await_change(room);
    assert_denied(room, "mock_driver", "disabled");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lists_of_the_node_say_which_drivers_there_are),
        TEST(test_what_a_denied_driver_runs_is_found_and_stopped),
        TEST(test_drivers_that_the_configuration_disables_are_not_there),
        TEST(test_change_of_health_is_told_once_and_has_its_time),
        TEST(test_driver_that_goes_is_noticed_at_its_time),
    };

    return cmocka_run_group_tests_name("driver manager", tests, NULL, NULL);
}
