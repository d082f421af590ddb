/* The parent of all cgroups of a node: what runs under one is never looked for under another. */
#include "test/drivers/room.h"

static void assert_refused(struct room *room, const char *parent, int code, const char *text)
{
    struct err err = {0};

    room->cgroup_parent = parent;
    assert_int_equal(room_try(room, &err), code);
    assert_non_null(strstr(err.text, text));
}

static bool cgroup_is_there(const struct room *room, const char *parent)
{
    char name[CGROUP_NAME_SIZE], directory[CGROUP_NAME_SIZE + 64];

    assert_true(text_format(name, sizeof(name), "%s/%s", parent, room->node_mark));
    cgroup_directory(room->cgroup_mode, name, directory, sizeof(directory));
    return access(directory, F_OK) == 0;
}

static void test_what_names_no_cgroup_is_refused(void **state)
{
    struct room *room = *state;

    room_need_root();
    assert_refused(room, "/cairn", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "cairn/", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "cairn/../../etc", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "cairn.slice/tasks", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "tasks/cairn", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "cgroup.procs", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "a\nb", ERR_INVALID, "is not the name of a cgroup");
    assert_refused(room, "cairn-5678901234567890123456789012345678/", ERR_INVALID, "at most 39");
    assert_refused(room, "cairn-567890123456789012345678901234567890", ERR_INVALID, "at most 39");
}

static void test_a_parent_that_cannot_be_read_is_no_reason_to_take_another(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    room_need_root();
    room_open(room);
    room_close(room);
    assert_int_equal(path_join(path, room->state, "cgroup"), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_return_code(close(fd), errno);
    assert_refused(room, NULL, ERR_CORRUPT, "is damaged");
    assert_return_code(unlink(path), errno);
}

static void test_what_runs_holds_its_parent(void **state)
{
    struct room *room = *state;
    struct err err = {0};

    room_need_root();
    if (room->cgroup_mode == CGROUP_NONE)
        skip();
    room->cgroup_parent = "cairn-test.slice/node";
    room_open(room);
    room_script(room, "exec sleep 1000");
    room_start_running(room, 1);
    struct proc_identity payload = room->result.payload;
    room_close(room);

    assert_refused(room, NULL, ERR_REFUSED, "what runs is in the cgroup cairn-test.slice/node/");
    assert_refused(room, "cairn-test.slice", ERR_REFUSED, "end it before");
    assert_true(proc_is_alive(&payload));
    room->cgroup_parent = "cairn-test.slice/node";
    assert_int_equal(room_try(room, &err), 0);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room->result.payload.pid, payload.pid);
    assert_int_equal(room_stop(room, 1, "", 1000), DRIVER_DONE);
    room_await_exit(room);
    room_destroy(room, 1);
    room_close(room);

    room->cgroup_parent = NULL;
    assert_int_equal(room_try(room, &err), 0);
    assert_false(cgroup_is_there(room, "cairn-test.slice/node"));
    assert_true(cgroup_is_there(room, "cairn"));
    room_close(room);
    room->cgroup_parent = NULL; /* and it is kept */
    room_open(room);
    room_close(room);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)
    const struct CMUnitTest tests[] = {
        T(test_what_names_no_cgroup_is_refused),
        T(test_a_parent_that_cannot_be_read_is_no_reason_to_take_another),
        T(test_what_runs_holds_its_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
