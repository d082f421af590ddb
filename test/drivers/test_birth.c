/* The nursery: shims do not depend on it, nothing of a task stays in it, and it ends with its
 * daemon. */
#include "test/drivers/room.h"

#include <dirent.h>

/* Ends with 21 when it is interrupted, from when it says so. */
#define INTERRUPTIBLE "trap 'exit 21' INT; echo x > ready; while :; do sleep 0.01; done"

static struct driver_start start_of(struct room *room, const char *task)
{
    struct driver_start start = room_start_of(room, 1);

    (void)text_copy(start.key.task, sizeof(start.key.task), task); /* fits */
    return start;
}

/* What is interrupted next is not the shell that has not got to its trap yet. */
static void start_running(struct room *room, const char *task)
{
    struct driver_start start = start_of(room, task);
    char ready[PATH_SIZE];

    assert_int_equal(path_join(ready, room->task_dir, "ready"), 0);
    assert_true(unlink(ready) == 0 || errno == ENOENT);
    driver_start(room->drivers, &start, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    if (room->result.outcome != DRIVER_RUNNING)
        fail_msg("%s", room->result.error.text);
    await_file(ready);
}

static void stop_and_destroy(struct room *room, const char *task, int code)
{
    struct driver_key key = start_of(room, task).key;
    int exits = room->exits + 1;

    driver_stop(room->drivers, &key, "SIGINT", 60000, room_on_done, room);
    room_run(room, room->completions + 1, exits);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, code);
    driver_destroy(room->drivers, &key, room_on_done, room);
    room_run(room, room->completions + 1, 0);
}

static void test_shims_outlive_a_nursery_and_another_is_made(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, INTERRUPTIBLE);
    start_running(room, "first");
    struct proc_identity shim = room->result.shim, nursery = room->drivers->nursery.process;
    assert_true(proc_is_alive(&nursery));
    assert_int_equal(proc_signal(&nursery, SIGKILL, NULL), 0);
    await_dead(&nursery);
    assert_true(proc_is_alive(&shim));

    start_running(room, "second");
    assert_false(room->drivers->nursery.process.pid == nursery.pid);
    stop_and_destroy(room, "first", 21);
    stop_and_destroy(room, "second", 21);
}

/* Neither the nursery nor the shim of another task. */
static void assert_opens_nothing_of(pid_t pid, const char *task)
{
    char path[64], target[PATH_SIZE];

    (void)text_format(path, sizeof(path), "/proc/%d/maps", (int)pid); /* fits */
    assert_null(strstr(content_of(path), "cairn-launch"));
    (void)text_format(path, sizeof(path), "/proc/%d/environ", (int)pid); /* fits */
    assert_string_equal(content_of(path), "");
    (void)text_format(path, sizeof(path), "/proc/%d/fd", (int)pid); /* fits */
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

        if (length < 0)
            continue; /* "." and ".." */
        target[length] = '\0';
        if (strstr(target, task) != NULL || strstr(target, "cairn-launch") != NULL)
            fail_msg("%s is %s", entry->d_name, target);
    }
    (void)closedir(directory);
}

static void test_nothing_of_a_task_stays_in_the_nursery_or_another_shim(void **state)
{
    struct room *room = *state;
    char path[64], name[KEY_NAME_SIZE];

    room_need_root();
    room_open(room);
    room_script(room, INTERRUPTIBLE);
    start_running(room, "first");
    start_running(room, "second");
    assert_opens_nothing_of(room->result.shim.pid, "first");
    assert_opens_nothing_of(room->drivers->nursery.process.pid, ".first");
    assert_opens_nothing_of(room->drivers->nursery.process.pid, ".second");

    struct driver_key key = start_of(room, "second").key; /* ps tells whose it is */
    assert_int_equal(key_name(&key, name, NULL), 0);
    (void)text_format(path, sizeof(path), "/proc/%d/cmdline", room->result.shim.pid);
    const char *words = content_of(path);
    assert_string_equal(words, "cairn-shim");
    assert_string_equal(words + sizeof("cairn-shim"), name);
    (void)text_format(path, sizeof(path), "/proc/%d/comm", room->result.shim.pid);
    assert_string_equal(content_of(path), "cairn-shim\n");
    stop_and_destroy(room, "first", 21);
    stop_and_destroy(room, "second", 21);
}

static bool count(void *ctx, pid_t pid)
{
    (void)pid;
    ++*(unsigned *)ctx;
    return true;
}

static unsigned helpers(const struct room *room)
{
    char shims[CGROUP_NAME_SIZE];
    unsigned found = 0;

    assert_true(
        text_format(shims, sizeof(shims), CGROUP_PARENT_DEFAULT "/%s/shims", room->node_mark));
    assert_int_equal(cgroup_each_process(room->cgroup_mode, shims, count, &found, NULL), 0);
    return found;
}

static void start_one(struct room *room)
{
    room_start_running(room, 1);
    assert_int_equal(helpers(room), 2);
}

static void test_nursery_ends_with_its_daemon(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_script(room, INTERRUPTIBLE);
    in_crashing_daemon(room, start_one);
    for (int i = 0; i < PATIENCE_MS && helpers(room) > 1; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(helpers(room), 1); /* the shim */
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    room_destroy(room, 1);
    room_close(room);
    assert_int_equal(helpers(room), 0);
}

#define FEW "/sys/fs/cgroup/pids/cairn-test-birth"

static void write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_return_code(close(fd), 0);
}

static void test_shim_that_cannot_be_forked_is_told_with_the_reason(void **state)
{
    struct room *room = *state;
    char nursery[16];

    room_need_root();
    if (access("/sys/fs/cgroup/pids/cgroup.procs", W_OK) != 0)
        skip(); /* there is no other way to keep it from forking */
    room_open(room);
    room_script(room, INTERRUPTIBLE);
    start_running(room, "first");
    (void)text_format(nursery, sizeof(nursery), "%d",
                      room->drivers->nursery.process.pid); /* fits */
    assert_true(mkdir(FEW, 0755) == 0 || errno == EEXIST);
    write_to(FEW "/pids.max", "0");
    write_to(FEW "/cgroup.procs", nursery);

    struct driver_start start = start_of(room, "second");
    driver_start(room->drivers, &start, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    assert_int_equal(room->result.outcome, DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "cannot make a process"));
    assert_true(room->result.error.recoverable);
    driver_destroy(room->drivers, &start.key, room_on_done, room);
    room_run(room, room->completions + 1, 0);

    write_to("/sys/fs/cgroup/pids/cgroup.procs", nursery);
    assert_return_code(rmdir(FEW), 0);
    start_running(room, "second");
    stop_and_destroy(room, "first", 21);
    stop_and_destroy(room, "second", 21);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_shims_outlive_a_nursery_and_another_is_made),
        TEST(test_nothing_of_a_task_stays_in_the_nursery_or_another_shim),
        TEST(test_nursery_ends_with_its_daemon),
        TEST(test_shim_that_cannot_be_forked_is_told_with_the_reason),
    };

    return cmocka_run_group_tests_name("birth", tests, NULL, NULL);
}
