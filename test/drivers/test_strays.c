/*
 * Payloads that leave the cgroup they were born in, which root may: the main process, its
 * descendants, with and without a daemon or a shim that could see it, on every kind of cgroup this
 * machine has.
 */
#include "test/drivers/room.h"

/* Runs SCRIPT, in which LEAVE takes the (sub)shell that says it out of its cgroup. */
static void room_leaver(struct room *room, const char *script)
{
    char whole[1024], *leave;

    assert_true(text_copy(whole, sizeof(whole), script));
    leave = strstr(whole, "LEAVE");
    assert_non_null(leave);
    *leave = '\0';
    char with_path[2048];
    assert_true(text_format(with_path, sizeof(with_path),
                            "%secho 0 > /sys/fs/cgroup%s/cgroup.procs%s", whole,
                            room_mode == CGROUP_V2   ? ""
                            : room_mode == CGROUP_V1 ? "/freezer"
                                                     : "/unified",
                            leave + strlen("LEAVE")));
    room_script(room, with_path);
}

/* The process whose number the payload wrote into the file NAME. */
static struct proc_identity written(const struct room *room, const char *name)
{
    struct proc_identity identity;

    await_task_file(room, name);
    assert_int_equal(proc_identify(number_in(task_file(room, name)), &identity, NULL), 0);
    return identity;
}

static bool is_inside(const struct room *room, const struct proc_identity *identity)
{
    char cgroup[CGROUP_NAME_SIZE];

    room_cgroup(room, 1, cgroup);
    return cgroup_has(room->cgroup_mode, cgroup, identity->pid);
}

static const char obstinate[] =
    "trap '' INT TERM; LEAVE; echo $$ > ready; while :; do sleep 100; done";

static void test_main_process_that_left_ends_at_the_timeout(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_leaver(room, obstinate);
    room_start_running(room, 1);
    struct proc_identity payload = written(room, "ready");
    assert_false(is_inside(room, &payload));
    assert_int_equal(room_stop(room, 1, "", 50), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.signal, SIGKILL);
    assert_false(proc_is_alive(&payload));
    room_destroy(room, 1);
}

static void test_main_process_that_left_ends_without_a_daemon(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_leaver(room, obstinate);
    in_crashing_daemon(room, room_stop_and_die);
    await_exit_record(room, 1);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_true(room->result.exit.known);
    assert_int_equal(room->result.exit.signal, SIGKILL);
    room_destroy(room, 1);
}

static void test_end_of_a_main_process_that_left_is_true(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_leaver(room, "LEAVE; exit 7");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, 7);
    assert_string_equal(room->exit.message, "");
    room_destroy(room, 1);
}

/* They change session as well, and their parents end. */
static void test_descendants_that_left_are_ended_and_told_of(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_leaver(room,
                "(LEAVE; trap '' INT TERM HUP; (setsid sleep 100 > /dev/null 2>&1 & echo $! > "
                "first); setsid sleep 200 > /dev/null 2>&1 & echo $! > second); exit 5");
    room_start_running(room, 1);
    struct proc_identity first = {0}, second = {0};
    room_await_exit(room);
    assert_int_equal(room->exit.code, 5);
    assert_string_equal(room->exit.message, "2 processes had left its cgroup and were killed");
    /* Told only when they are gone. */
    assert_int_equal(proc_identify(number_in(task_file(room, "first")), &first, NULL), ERR_GONE);
    assert_int_equal(proc_identify(number_in(task_file(room, "second")), &second, NULL), ERR_GONE);
    room_destroy(room, 1);
}

static void test_descendants_that_stay_are_ended_with_the_main_process(void **state)
{
    struct room *room = *state;
    char cgroup[CGROUP_NAME_SIZE];

    room_need_root();
    room_open(room);
    room_script(room, "(trap '' TERM HUP INT; setsid sleep 100 > /dev/null 2>&1 & echo $! > "
                      "orphan); exit 5");
    room_start_running(room, 1);
    room_await_exit(room);
    assert_int_equal(room->exit.code, 5);
    assert_string_equal(room->exit.message, ""); /* nothing to report: they kept to their place */
    room_cgroup(room, 1, cgroup);
    assert_int_equal(cgroup_populated(room->cgroup_mode, cgroup, NULL), 0);
    room_destroy(room, 1);
}

static void test_descendant_that_left_dies_with_a_shim_that_hangs(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_leaver(room, "(LEAVE; (setsid sleep 100 & echo $! > stray)); exec sleep 200");
    room_start_running(room, 1);
    struct proc_identity shim = room->result.shim, stray = written(room, "stray");
    assert_false(is_inside(room, &stray));
    assert_int_equal(proc_signal(&shim, SIGSTOP, NULL), 0);
    room_destroy(room, 1);
    await_dead(&stray);
    assert_false(proc_is_alive(&shim));
    room_run(room, 0, 1);
}

/* Nobody is left who could have taken it in: its session is that of the main process. */
static void test_descendant_that_left_is_found_by_session_without_its_shim(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_leaver(room, "(LEAVE; sleep 100 & echo $! > stray); exec sleep 200");
    room_start_running(room, 1);
    struct proc_identity shim = room->result.shim, stray = written(room, "stray");
    assert_false(is_inside(room, &stray));
    assert_int_equal(proc_signal(&shim, SIGKILL, NULL), 0);
    room_run(room, 0, 1);
    assert_false(room->exit.known);
    await_dead(&stray);
    room_destroy(room, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make_on, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_main_process_that_left_ends_at_the_timeout),
        TEST(test_main_process_that_left_ends_without_a_daemon),
        TEST(test_end_of_a_main_process_that_left_is_true),
        TEST(test_descendants_that_left_are_ended_and_told_of),
        TEST(test_descendants_that_stay_are_ended_with_the_main_process),
        TEST(test_descendant_that_left_dies_with_a_shim_that_hangs),
        TEST(test_descendant_that_left_is_found_by_session_without_its_shim),
    };

    room_mode = cgroup_mode();
    int failed = cmocka_run_group_tests_name("strays", tests, NULL, NULL);
    return room_tries_v1() ? failed + cmocka_run_group_tests_name("strays on v1", tests, NULL, NULL)
                           : failed;
}
