/*
 * mock_driver: tasks that are what their config and the clock say, over crashes of the daemon that
 * holds them.  No time is asserted: what a task waits for is either at once, or never within a
 * test.
 */
#include "test/drivers/room.h"

static void open_mock(struct room *room, const char *config)
{
    room->task.driver = "mock_driver";
    room->task.config_json = config;
    room->mock.enabled = true;
    if (room->drivers == NULL)
        room_open(room);
}

/* --- config --- */

static void assert_refused(const char *config, const char *why)
{
    struct task_spec task = {.name = "web",
                             .driver = "mock_driver",
                             .user = "",
                             .config_json = config,
                             .kill_signal = ""};
    struct err err = {0};

    assert_int_equal(driver_validate(NULL, &in_host, &task, &err), ERR_INVALID);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void test_config_that_is_wrong_or_of_no_use_is_refused_by_name(void **state)
{
    (void)state;
    assert_refused("{\"run_for\": 5}", "\"run_for\" must be a duration");
    assert_refused("{\"run_for\": \"-5s\"}", "\"run_for\" must be a duration");
    assert_refused("{\"exit_code\": \"many\"}", "\"exit_code\" must be a whole number");
    assert_refused("{\"exit_code\": 256}", "0 to 255");
    assert_refused("{\"exit_signal\": -1}", "0 to 64");
    assert_refused("{\"stdout_repeat\": 1000001}", "0 to 1000000 times");
    assert_refused("{\"start_error_recoverable\": 1}", "must be true or false");
    assert_refused("{\"start_block_for\": \"31s\"}", "30 s at most");
    assert_refused("{\"driver_ip\": \"127.0.0.1\"}", "\"driver_ip\" is not available");
    assert_refused("{\"driver_advertise\": true}", "\"driver_advertise\" is not available");
    assert_refused("{\"driver_port_map\": \"a:1\"}", "\"driver_port_map\" is not available");
    assert_refused("{\"exec_command\": 1}", "\"exec_command\" must be a block, once");
    assert_refused("{\"exec_command\": [{}, {}]}", "\"exec_command\" must be a block, once");
    assert_refused("{\"exec_command\": {\"kill_after\": \"1s\"}}", "unknown key");
    assert_refused("{\"exec_command\": {\"exec_command\": {}}}", "unknown key");
    assert_refused("{\"exec_command.exit_code\": 1}", "unknown key \"exec_command.exit_code\"");
    assert_refused("{\"exec_command\": {\"exit_code\": 256}}", "0 to 255");
    assert_refused("{\"exec_command\": {\"stderr_repeat\": -1}}", "0 to 1000000 times");
    assert_refused("{\"exec_command\": {\"signal_error\": \"no\"}}", "not available");
    assert_refused("{\"command\": \"/bin/sh\"}", "unknown key \"command\"");
}

static void test_it_is_there_only_where_it_is_enabled(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\"}");
    room_close(room);
    room->mock.enabled = false;
    room_open(room);
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "disabled"));
    room_destroy(room, 1);
}

static void test_it_shuts_down_when_it_is_told_so(void **state)
{
    struct room *room = *state;

    room->mock = (struct drivers_mock){.shuts_down = true, .shutdown_after_ms = 3600000};
    open_mock(room, "{\"run_for\": \"1h\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    room_close(room);
    room->mock.shutdown_after_ms = 0;
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING); /* what runs goes on */
    assert_int_equal(room_start(room, 2), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "disabled"));
    room_destroy(room, 2);
    room_destroy(room, 1);
}

/* --- its life --- */

static void test_it_runs_without_a_process_and_ends_as_configured(void **state)
{
    static const struct {
        const char *config, *message;
        int code, signal;
        bool known;
    } cases[] = {
        {"", "", 0, 0, true},
        {"{\"run_for\": \"20ms\"}", "", 0, 0, true},
        {"{\"run_for\": \"20ms\", \"exit_code\": 3}", "", 3, 0, true},
        {"{\"run_for\": \"20ms\", \"exit_code\": \"4\"}", "", 4, 0, true},
        {"{\"run_for\": \"20ms\", \"exit_signal\": 9}", "", 137, 9, true},
        {"{\"run_for\": \"20ms\", \"exit_code\": 2, \"exit_err_msg\": \"no\"}", "no", 2, 0, true},
        {"{\"run_for\": \"20ms\", \"exit_err_msg\": \"no\"}", "no", 0, 0, false},
        {"{\"run_for\": \"20ms\", \"start_block_for\": \"20ms\"}", "", 0, 0, true},
    };
    struct room *room = *state;

    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t before_ns = loop_now_unix_ns();

        open_mock(room, cases[i].config);
        room->exits = 0;
        enum driver_outcome outcome = room_start(room, i);
        if (outcome == DRIVER_RUNNING) { /* a slow machine may see only its end */
            room_run(room, 0, 1);
        } else {
            assert_int_equal(outcome, DRIVER_EXITED);
            room->exit = room->result.exit;
        }
        assert_int_equal(room->result.payload.pid, 0);
        assert_int_equal(room->exit.known, cases[i].known);
        assert_int_equal(room->exit.code, cases[i].code);
        assert_int_equal(room->exit.signal, cases[i].signal);
        assert_string_equal(room->exit.message, cases[i].message);
        assert_true(room->exit.finished_unix_ns >= before_ns - 1000000); /* whole ones count */
        assert_true(room->exit.finished_unix_ns <= loop_now_unix_ns() + 1000000);
        assert_int_equal(room_recover(room, i), DRIVER_EXITED); /* until it is destroyed */
        assert_int_equal(room->result.exit.code, cases[i].code);
        room_destroy(room, i);
    }
}

static void test_start_that_fails_says_why_and_whether_to_try_again(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"start_error\": \"no luck\", \"start_error_recoverable\": true}");
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_string_equal(room->result.error.text, "no luck");
    assert_true(room->result.error.recoverable);
    assert_int_equal(room_recover(room, 1), DRIVER_NOT_STARTED);
    room_destroy(room, 1);
    open_mock(room, "{\"start_error\": \"never\"}");
    assert_int_equal(room_start(room, 2), DRIVER_FAILED);
    assert_false(room->result.error.recoverable);
    room_destroy(room, 2);
}

static void test_stop_ends_it_with_its_own_code(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\", \"exit_code\": 7, \"kill_after\": \"10ms\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_signal(room, 1, "SIGHUP"), DRIVER_DONE);
    assert_int_equal(room_stop(room, 1, "", 3600000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, 7);
    assert_int_equal(room_signal(room, 1, "SIGHUP"), DRIVER_FAILED);
    assert_int_equal(room->result.error.code, ERR_GONE);
    room_destroy(room, 1);
}

static void test_kill_timeout_ends_what_takes_longer(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\", \"kill_after\": \"1h\", \"signal_error\": \"deaf\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_signal(room, 1, "SIGHUP"), DRIVER_FAILED);
    assert_string_equal(room->result.error.text, "deaf");
    assert_int_equal(room_stop(room, 1, "", 3600000), DRIVER_DONE);
    assert_int_equal(room->exits, 0);
    assert_int_equal(room_stop(room, 1, "", 10), DRIVER_DONE); /* a shorter rest shortens it */
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 137);
    assert_int_equal(room->exit.signal, SIGKILL);
    room_destroy(room, 1);
}

static void test_destroy_ends_it_and_leaves_nothing(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    open_mock(room, "{\"run_for\": \"1h\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    room_task_file(room, 1, path);
    assert_int_equal(access(path, F_OK), 0);
    room_destroy(room, 1);
    assert_int_equal(room->exits, 1); /* what was reported as running has ended */
    assert_int_equal(room->exit.signal, SIGKILL);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
}

static void test_start_ends_what_an_earlier_life_left(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    open_mock(room, "{\"run_for\": \"1h\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    room_close(room);
    room_open(room);
    assert_int_equal(room_start(room, 2), DRIVER_RUNNING);
    room_task_file(room, 1, path);
    assert_int_equal(access(path, F_OK), -1);
    room_destroy(room, 2);
}

static void test_it_uses_nothing_and_tells_so(void **state)
{
    struct room *room = *state;
    struct driver_key key;
    struct driver_stats stats;
    struct err err = {0};

    open_mock(room, "{\"run_for\": \"1h\"}");
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    key = room_key(room, 1);
    assert_int_equal(driver_stats(room->drivers, &key, &stats, &err), 0);
    assert_int_equal(stats.usage.memory_rss_bytes, 0);
    assert_int_equal(stats.usage.processes, 0);
    room_destroy(room, 1);
}

/* --- the daemon dies --- */

static void start_one(struct room *room)
{
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
}

enum { RECORD_LENGTH = 1424 };

/* The record of generation 1 has LENGTH bytes and was written so long ago, from now on. */
static void age(struct room *room, uint64_t ms, size_t length)
{
    enum { ASKED_MS = 24, ASKED_NS = 32 };
    char path[PATH_SIZE], bytes[RECORD_LENGTH];
    uint64_t asked_ms;
    int64_t asked_ns;

    room_task_file(room, 1, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, length, TASK_STARTED_AT), length);
    memcpy(&asked_ms, bytes + ASKED_MS, sizeof(asked_ms));
    memcpy(&asked_ns, bytes + ASKED_NS, sizeof(asked_ns));
    asked_ms -= ms;
    asked_ns -= (int64_t)ms * 1000000;
    memcpy(bytes + ASKED_MS, &asked_ms, sizeof(asked_ms));
    memcpy(bytes + ASKED_NS, &asked_ns, sizeof(asked_ns));
    record_seal(bytes, RECORD_MAGIC_MOCK, (uint32_t)length);
    assert_int_equal(pwrite(fd, bytes, length, TASK_STARTED_AT), length);
    assert_return_code(close(fd), 0);
}

static void test_it_goes_on_when_its_daemon_dies(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\", \"exit_code\": 5}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    for (int i = 0; i < 2; i++) {
        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
        assert_int_equal(room_recover(room, 1), DRIVER_RUNNING); /* already known */
        if (i == 0)
            room_close(room);
    }
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING); /* found, not made again */
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 5);
    room_destroy(room, 1);
}

static void test_its_end_while_no_daemon_is_there_has_its_time_and_code(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1s\", \"exit_code\": 6}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    age(room, 2 * 1000, RECORD_LENGTH);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_true(room->result.exit.known);
    assert_int_equal(room->result.exit.code, 6);
    int64_t ago_ns = loop_now_unix_ns() - room->result.exit.finished_unix_ns;
    assert_true(ago_ns >= INT64_C(1000000000)); /* and not when it was found */
    assert_int_equal(room->exits, 0);
    room_destroy(room, 1);
}

static void stop_and_die(struct room *room)
{
    assert_int_equal(room_start(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_stop(room, 1, "", 3600000), DRIVER_DONE);
}

static void test_a_stop_goes_on_when_the_daemon_dies(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\", \"kill_after\": \"20ms\", \"exit_code\": 8}");
    room_close(room);
    in_crashing_daemon(room, stop_and_die);
    room_open(room);
    if (room_recover(room, 1) == DRIVER_RUNNING) { /* a quick machine */
        room_run(room, 0, 1);
        room->result.exit = room->exit;
    }
    assert_int_equal(room->result.exit.code, 8); /* by the first daemon's order */
    room_destroy(room, 1);
}

static void test_a_reboot_loses_it(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    room_open(room);
    room->drivers->boot_id[0] = room->drivers->boot_id[0] == '0' ? '1' : '0';
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    room_destroy(room, 1);
}

static void test_a_torn_record_loses_it(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    open_mock(room, "{\"run_for\": \"1h\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    room_task_file(room, 1, path);
    assert_return_code(truncate(path, TASK_STARTED_AT + 100), 0);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    room_destroy(room, 1);
}

static void test_plugin_that_exits_loses_it(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\", \"plugin_exit_after\": \"20ms\"}");
    if (room_start(room, 1) == DRIVER_RUNNING)
        room_run(room, 0, 1);
    else
        room->exit = room->result.exit;
    assert_false(room->exit.known);
    assert_non_null(strstr(room->exit.message, "supervisor was lost"));
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    room_destroy(room, 1);
}

static bool keep_nothing(void *ctx, const struct driver_key *key)
{
    (void)ctx;
    (void)key;
    return false;
}

static void test_sweep_ends_what_is_unknown(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"run_for\": \"1h\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    room_open(room);
    drivers_sweep(room->drivers, keep_nothing, NULL, room_on_done, room);
    room_run(room, 1, 0);
    assert_int_equal(room->result.outcome, DRIVER_DONE);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
}

/* --- output --- */

static void test_output_is_written_as_often_as_it_says(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"stdout_string\": \"tick\\n\", \"stdout_repeat\": 3, "
                    "\"stdout_repeat_duration\": \"10ms\", \"stderr_string\": \"oh\"}");
    if (room_start(room, 1) == DRIVER_RUNNING)
        room_run(room, 0, 1);
    assert_string_equal(log_file(room, "web.stdout.0"), "tick\ntick\ntick\ntick\n");
    assert_string_equal(log_file(room, "web.stderr.0"), "oh");
    room_destroy(room, 1);
    room->exits = 0;
    open_mock(room, "{\"stdout_string\": \"again\\n\", \"stdout_repeat\": 1}");
    if (room_start(room, 2) == DRIVER_RUNNING)
        room_run(room, 0, 1);
    assert_string_equal(log_file(room, "web.stdout.0"), "tick\ntick\ntick\ntick\nagain\nagain\n");
    room_destroy(room, 2);
}

static void test_output_has_neither_gap_nor_double_over_a_crash(void **state)
{
    struct room *room = *state;

    open_mock(room, "{\"stdout_string\": \"tick\\n\", \"stdout_repeat\": 3, "
                    "\"stdout_repeat_duration\": \"20s\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    assert_string_equal(log_file(room, "web.stdout.0"), "tick\n");
    age(room, (2 * 20 + 1) * 1000, RECORD_LENGTH);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_string_equal(log_file(room, "web.stdout.0"), "tick\ntick\ntick\n");
    room_destroy(room, 1);
}

static off_t log_size(const struct room *room, const char *name)
{
    char path[PATH_SIZE];
    struct stat status;

    assert_int_equal(path_join(path, room->logs, name), 0);
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* 512 bytes, 6,400 times and once more. */
#define TEXT_32 "0123456789abcdef0123456789abcdef"
#define TEXT_128 TEXT_32 TEXT_32 TEXT_32 TEXT_32
#define MUCH_OUTPUT                                                                                \
    "{\"stdout_string\": \"" TEXT_128 TEXT_128 TEXT_128 TEXT_128 "\", \"stdout_repeat\": 6400"
enum { MUCH_BYTES = 6401 * 512 };

static void test_output_goes_on_in_the_next_file_and_the_oldest_are_deleted(void **state)
{
    struct room *room = *state;

    room->task.logs.max_file_size_mb = 1;
    room->task.logs.max_files = 2;
    open_mock(room, MUCH_OUTPUT "}");
    if (room_start(room, 1) == DRIVER_RUNNING)
        room_run(room, 0, 1);
    assert_int_equal(log_size(room, "web.stdout.1"), -1);
    assert_int_equal(log_size(room, "web.stdout.2"), 1 << 20);
    assert_int_equal(log_size(room, "web.stdout.3"), MUCH_BYTES - (3 << 20));
    room_destroy(room, 1);
}

static void test_output_of_many_files_has_neither_gap_nor_double_over_crashes(void **state)
{
    struct room *room = *state;

    room->task.logs.max_file_size_mb = 1;
    open_mock(room, MUCH_OUTPUT ", \"stdout_repeat_duration\": \"10ms\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    for (int i = 0; i < 25; i++) { /* each writes a part of what was due meanwhile */
        age(room, 2000, RECORD_LENGTH);
        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
        room_close(room);
    }
    assert_true(log_size(room, "web.stdout.1") > 0);
    age(room, 60 * 1000, RECORD_LENGTH);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_int_equal(log_size(room, "web.stdout.0"), 1 << 20);
    assert_int_equal(log_size(room, "web.stdout.2"), 1 << 20);
    assert_int_equal(log_size(room, "web.stdout.3"), MUCH_BYTES - (3 << 20));
    room_destroy(room, 1);
}

/* It knows of one file. */
static void test_output_of_a_task_of_an_older_version_stays_in_its_file(void **state)
{
    enum { OLDER_LENGTH = 1400 };
    struct room *room = *state;

    room->task.logs.max_file_size_mb = 1;
    open_mock(room, MUCH_OUTPUT ", \"stdout_repeat_duration\": \"10ms\"}");
    room_close(room);
    in_crashing_daemon(room, start_one);
    age(room, 100 * 1000, OLDER_LENGTH);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_int_equal(log_size(room, "web.stdout.0"), 1 << 20);
    assert_int_equal(log_size(room, "web.stdout.1"), -1);
    room_destroy(room, 1);
}

static void test_output_stays_within_its_log_and_out_of_links(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE], elsewhere[PATH_SIZE];
    struct stat status;

    room->task.logs.max_file_size_mb = 1;
    room->task.logs.max_files = 1;
    open_mock(room, "{\"stdout_string\": \"0123456789abcdef0123456789abcdef\", "
                    "\"stdout_repeat\": 32767, \"stderr_string\": \"x\"}");
    assert_int_equal(path_join(path, room->logs, "web.stderr.0"), 0);
    assert_int_equal(path_join(elsewhere, room->path, "elsewhere"), 0);
    assert_return_code(symlink(elsewhere, path), 0);
    if (room_start(room, 1) == DRIVER_RUNNING)
        room_run(room, 0, 1);
    assert_int_equal(path_join(path, room->logs, "web.stdout.0"), 0);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_size, 1 << 20);
    assert_int_equal(access(elsewhere, F_OK), -1);
    room_destroy(room, 1);
    room->task.logs.disabled = true;
    assert_return_code(unlink(path), 0);
    if (room_start(room, 2) == DRIVER_RUNNING)
        room_await_exit(room);
    assert_int_equal(access(path, F_OK), -1);
    room_destroy(room, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_that_is_wrong_or_of_no_use_is_refused_by_name),
        TEST(test_it_is_there_only_where_it_is_enabled),
        TEST(test_it_shuts_down_when_it_is_told_so),
        TEST(test_it_runs_without_a_process_and_ends_as_configured),
        TEST(test_start_that_fails_says_why_and_whether_to_try_again),
        TEST(test_stop_ends_it_with_its_own_code),
        TEST(test_kill_timeout_ends_what_takes_longer),
        TEST(test_destroy_ends_it_and_leaves_nothing),
        TEST(test_start_ends_what_an_earlier_life_left),
        TEST(test_it_uses_nothing_and_tells_so),
        TEST(test_it_goes_on_when_its_daemon_dies),
        TEST(test_its_end_while_no_daemon_is_there_has_its_time_and_code),
        TEST(test_a_stop_goes_on_when_the_daemon_dies),
        TEST(test_a_reboot_loses_it),
        TEST(test_a_torn_record_loses_it),
        TEST(test_plugin_that_exits_loses_it),
        TEST(test_sweep_ends_what_is_unknown),
        TEST(test_output_is_written_as_often_as_it_says),
        TEST(test_output_has_neither_gap_nor_double_over_a_crash),
        TEST(test_output_goes_on_in_the_next_file_and_the_oldest_are_deleted),
        TEST(test_output_of_many_files_has_neither_gap_nor_double_over_crashes),
        TEST(test_output_of_a_task_of_an_older_version_stays_in_its_file),
        TEST(test_output_stays_within_its_log_and_out_of_links),
    };

    return cmocka_run_group_tests_name("mock_driver", tests, NULL, NULL);
}
