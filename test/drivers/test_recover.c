/*
 * Restore: what a daemon finds after it, its shims, or the machine have died, on every kind of
 * cgroup this machine has.  The daemon that dies is a real process killed with SIGKILL.
 */
#include "test/drivers/room.h"

#include <netinet/in.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void kill_shim(const struct proc_identity *shim)
{
    struct err err = {0};

    assert_int_equal(proc_signal(shim, SIGKILL, &err), 0);
}

/* The shim of a task that another daemon started. */
static struct proc_identity find_shim(const struct room *room, uint32_t generation)
{
    struct drivers drivers = {.config.cgroup_mode = room->cgroup_mode, .cgroup_parent = "cairn"};
    struct driver_key key = room_key(room, generation);
    struct proc_identity shim = {0};
    struct err err = {0};
    char path[PATH_SIZE];

    assert_int_equal(path_join(path, room->state, "shim"), 0);
    (void)text_copy(drivers.node_mark, sizeof(drivers.node_mark), room->node_mark); /* fits */
    drivers.shim_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (shim_find(&drivers, &key, &shim, &err) != 0)
        fail_msg("%s", err.text);
    assert_return_code(close(drivers.shim_fd), 0);
    return shim;
}

static void start_one(struct room *room)
{
    room_start_running(room, 1);
}

/* As a daemon that dies once it has asked for the shim, before it hears anything. */
static void start_and_hear_nothing(struct room *room)
{
    struct driver_start start = room_start_of(room, 1);

    driver_start(room->drivers, &start, room_on_done, room);
}

/* --- the daemon dies --- */

static void test_payload_survives_the_daemon_and_is_found_again(void **state)
{
    struct room *room = *state;
    struct proc_identity payload;

    room_need_root();
    room_script(room, "trap 'exit 21' INT; echo $$ > ready; while :; do sleep 0.01; done");
    in_crashing_daemon(room, start_one);
    await_task_file(room, "ready");

    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    payload = room->result.payload;
    assert_int_equal(payload.pid, number_in(task_file(room, "ready")));
    assert_true(proc_is_alive(&payload));
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING); /* already known */
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 21);
    room_destroy(room, 1);
    assert_int_equal(room->exits, 1);
}

/* What is in its file is enough, and no shim is woken for it. */
static void test_payload_of_a_shim_that_does_not_answer_is_found(void **state)
{
    struct room *room = *state;
    struct proc_identity shim;
    struct err err = {0};

    room_need_root();
    room_script(room, "trap 'exit 21' INT; echo $$ > ready; while :; do sleep 0.01; done");
    in_crashing_daemon(room, start_one);
    await_task_file(room, "ready");
    shim = find_shim(room, 1);
    assert_int_equal(proc_signal(&shim, SIGSTOP, &err), 0);

    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room->result.shim.pid, shim.pid);
    assert_int_equal(room->result.payload.pid, number_in(task_file(room, "ready")));
    assert_int_equal(proc_signal(&shim, SIGCONT, &err), 0);
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_int_equal(room->exit.code, 21);
    room_destroy(room, 1);
    assert_int_equal(room->exits, 1);
}

/* Nobody is connected to its shim yet. */
static void test_end_right_after_it_was_found_is_told(void **state)
{
    struct room *room = *state;
    struct err err = {0};

    room_need_root();
    room_script(room, "trap 'exit 21' INT; echo $$ > ready; while :; do sleep 0.01; done");
    in_crashing_daemon(room, start_one);
    await_task_file(room, "ready");

    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(proc_signal(&room->result.payload, SIGINT, &err), 0);
    await_dead(&room->result.shim);
    room_run(room, 0, 1);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, 21);
    room_destroy(room, 1);
    assert_int_equal(room->exits, 1);
}

static void test_exit_while_nobody_watches_keeps_its_code(void **state)
{
    static const struct {
        const char *script;
        int code, signal;
    } cases[] = {{"exit 0", 0, 0}, {"exit 3", 3, 0}, {"kill -9 $$", 137, SIGKILL}};
    struct room *room = *state;
    char script[256], go[PATH_SIZE];

    room_need_root();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(text_format(script, sizeof(script),
                                "while [ ! -e go ]; do sleep 0.01; done; %s", cases[i].script));
        room_script(room, script);
        in_crashing_daemon(room, start_one);
        assert_int_equal(path_join(go, room->task_dir, "go"), 0);
        assert_return_code(close(creat(go, 0644)), 0);
        await_exit_record(room, 1);

        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
        assert_true(room->result.exit.known);
        assert_int_equal(room->result.exit.code, cases[i].code);
        assert_int_equal(room->result.exit.signal, cases[i].signal);
        assert_int_equal(room_recover(room, 1), DRIVER_EXITED); /* and again, until destroyed */
        assert_int_equal(room->exits, 0);                       /* told once, as a result */
        room_destroy(room, 1);
        room_close(room);
        assert_return_code(unlink(go), 0);
    }
}

static void test_start_that_failed_while_nobody_watched_tells_its_reason(void **state)
{
    struct room *room = *state;

    room_need_root();
    room->task.config_json = "{\"command\": \"/etc/passwd\"}";
    in_crashing_daemon(room, start_and_hear_nothing);
    await_exit_record(room, 1);

    for (int i = 0; i < 2; i++) { /* and again, until destroyed */
        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_NOT_STARTED);
        assert_non_null(strstr(room->result.error.text, "Permission denied"));
        assert_false(room->result.error.recoverable);
        room_close(room);
    }
    room_open(room);
    assert_int_equal(room_start(room, 1), DRIVER_FAILED);
    assert_non_null(strstr(room->result.error.text, "Permission denied"));
    room_destroy(room, 1);
    assert_int_equal(room->exits, 0); /* what never ran has no end */
}

static void test_start_issued_again_after_a_crash_finds_the_first(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_script(room, "echo x >> started; exec sleep 100");
    for (uint32_t i = 0; i < 5; i++) {
        in_crashing_daemon(room, i % 2 == 0 ? start_and_hear_nothing : start_one);
        room_open(room);
        room_start_running(room, 1);
        assert_true(proc_is_alive(&room->result.payload));
        await_task_file(room, "started");
        assert_string_equal(task_file(room, "started"), "x\n");
        room_close(room);
    }
    room_open(room);
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "started"), "x\n");
}

static void test_kill_timeout_is_kept_when_the_daemon_dies(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_script(room, "trap '' INT; echo x > ready; while :; do sleep 100; done");
    in_crashing_daemon(room, room_stop_and_die);
    await_exit_record(room, 1);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_int_equal(room->result.exit.signal, SIGKILL);
    room_destroy(room, 1);
}

static void test_payload_survives_the_death_of_the_daemons_cgroup(void **state)
{
    struct room *room = *state;
    struct err err = {0};
    char cgroup[CGROUP_NAME_SIZE];
    int status;

    room_need_root();
    room_script(room, "echo $$ > ready; exec sleep 100");
    assert_true(text_format(cgroup, sizeof(cgroup), "cairn-daemon-%s", room->node_mark));
    assert_int_equal(cgroup_create(room->cgroup_mode, cgroup, &err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (cgroup_enter(room->cgroup_mode, cgroup, 0, &err) != 0)
            _exit(1);
        room_open(room);
        room_start_running(room, 1);
        for (;;)
            (void)pause();
    }
    await_task_file(room, "ready");
    do {
        assert_int_equal(cgroup_kill(room->cgroup_mode, cgroup, &err), 0);
    } while (waitpid(pid, &status, WNOHANG) == 0);
    assert_true(WIFSIGNALED(status));
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room->result.payload.pid, number_in(task_file(room, "ready")));
    room_destroy(room, 1);
    int removed = cgroup_remove(room->cgroup_mode, cgroup, &err);
    for (int i = 0; i < PATIENCE_MS && removed != 0; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* its last is still dying */
        removed = cgroup_remove(room->cgroup_mode, cgroup, &err);
    }
    assert_int_equal(removed, 0);
}

static int count_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    assert_return_code(closedir(directory), 0);
    return count;
}

static void test_restarts_do_not_leak_descriptors(void **state)
{
    struct room *room = *state;
    struct proc_identity shim;
    char path[64];
    int first = 0, shim_first = 0;

    room_need_root();
    room_script(room, "exec sleep 100");
    in_crashing_daemon(room, start_one);
    shim = find_shim(room, 1);
    (void)text_format(path, sizeof(path), "/proc/%d/fd", shim.pid);
    for (int i = 0; i < 20; i++) {
        struct stat status;

        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
        assert_return_code(stat(path, &status), 0); /* its size is the number of descriptors */
        if (i == 4) {
            first = count_fds();
            shim_first = (int)status.st_size;
        }
        assert_true(i < 4 || count_fds() == first);
        assert_true(i < 4 || status.st_size <= shim_first + 1); /* one may just be dying */
        room_close(room);
    }
    room_open(room);
    room_destroy(room, 1);
}

/* --- the shim dies --- */

/* Ignores what it can, and has a child that its process group does not reach. */
static const char *const stubborn = "trap '' TERM INT HUP PIPE; setsid sleep 1000 & "
                                    "echo $$ > ready; while :; do sleep 100; done";

static void test_shim_killed_while_the_daemon_runs_kills_first_then_tells(void **state)
{
    struct room *room = *state;
    struct proc_identity payload;
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};

    room_need_root();
    room_open(room);
    room_script(room, stubborn);
    room_start_running(room, 1);
    payload = room->result.payload;
    await_task_file(room, "ready");
    kill_shim(&room->result.shim);
    room_run(room, 1, 1);
    assert_false(room->exit.known);
    assert_int_not_equal(room->exit.message[0], '\0');
    assert_false(proc_is_alive(&payload));
    room_cgroup(room, 1, cgroup);
    assert_int_equal(cgroup_populated(room->cgroup_mode, cgroup, &err), 0);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    assert_int_equal(room_start(room, 1), DRIVER_EXITED); /* never a second payload */
    assert_false(room->result.exit.known);
    room_destroy(room, 1);
    assert_int_equal(room->exits, 1);
}

static void test_shim_killed_while_the_daemon_is_down_is_lost(void **state)
{
    struct room *room = *state;
    struct proc_identity shim, payload;
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};

    room_need_root();
    room_script(room, stubborn);
    in_crashing_daemon(room, start_one);
    await_task_file(room, "ready");
    assert_int_equal(proc_identify(number_in(task_file(room, "ready")), &payload, &err), 0);
    shim = find_shim(room, 1);
    kill_shim(&shim);
    await_dead(&shim);
    assert_true(proc_is_alive(&payload));

    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    assert_false(proc_is_alive(&payload)); /* before it was told */
    room_cgroup(room, 1, cgroup);
    assert_int_equal(cgroup_populated(room->cgroup_mode, cgroup, &err), 0);
    assert_int_equal(room->exits, 0);
    room_destroy(room, 1);
}

/* It has started the payload and dies before anybody could know which. */
static void test_shim_killed_before_it_wrote_what_it_started(void **state)
{
    static const char nothing[TASK_RECORD_SIZE];
    struct room *room = *state;
    struct proc_identity shim, payload;
    struct err err = {0};
    char path[PATH_SIZE];

    room_need_root();
    room_script(room, stubborn);
    in_crashing_daemon(room, start_and_hear_nothing);
    await_task_file(room, "ready");
    assert_int_equal(proc_identify(number_in(task_file(room, "ready")), &payload, &err), 0);
    shim = find_shim(room, 1);
    kill_shim(&shim);
    await_dead(&shim);
    room_task_file(room, 1, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, nothing, sizeof(nothing), TASK_STARTED_AT), sizeof(nothing));
    assert_return_code(close(fd), 0);

    room_open(room);
    assert_int_equal(room_start(room, 1), DRIVER_EXITED); /* never a second payload */
    assert_false(room->result.exit.known);
    assert_false(proc_is_alive(&payload)); /* before it was told */
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    room_destroy(room, 1);
}

static void test_port_of_a_lost_payload_is_free_when_the_loss_is_told(void **state)
{
    struct room *room = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char command[PATH_SIZE + 256], program[PATH_SIZE];

    room_need_root();
    if (access("/usr/bin/python3", X_OK) != 0) {
        print_message("skipped: needs python3 to listen with\n");
        skip();
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_return_code(close(fd), 0);
    assert_int_equal(path_join(program, room->task_dir, "listen.py"), 0);
    assert_true(text_format(command, sizeof(command),
                            "import signal, socket\nsignal.signal(15, signal.SIG_IGN)\n"
                            "s = socket.socket()\ns.bind(('127.0.0.1', %u))\ns.listen()\n"
                            "open('ready', 'w').write('x')\nsignal.pause()\n",
                            ntohs(address.sin_port)));
    int file = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(file, command, strlen(command)), strlen(command));
    assert_return_code(close(file), 0);
    room_script(room, "exec /usr/bin/python3 listen.py");
    room_open(room);
    room_start_running(room, 1);
    await_task_file(room, "ready");
    kill_shim(&room->result.shim);
    room_run(room, 1, 1);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_return_code(close(fd), 0);
    room_destroy(room, 1);
}

static void test_lost_payload_without_a_cgroup_is_killed_by_identity(void **state)
{
    struct room *room = *state;
    struct proc_identity payload, child;
    struct err err = {0};

    room_need_root();
    room->no_cgroups = true;
    room_script(room, "trap '' TERM; sleep 100 & echo $! > child; echo $$ > ready; wait");
    in_crashing_daemon(room, start_one);
    await_task_file(room, "ready");
    assert_int_equal(proc_identify(number_in(task_file(room, "ready")), &payload, &err), 0);
    assert_int_equal(proc_identify(number_in(task_file(room, "child")), &child, &err), 0);
    struct proc_identity shim = find_shim(room, 1);
    kill_shim(&shim);
    await_dead(&shim);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    assert_false(proc_is_alive(&payload));
    await_dead(&child);
    room_destroy(room, 1);
}

static void test_destroy_ends_a_shim_that_does_not_answer(void **state)
{
    struct room *room = *state;
    struct proc_identity shim, payload;
    struct err err = {0};

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);
    shim = room->result.shim;
    payload = room->result.payload;
    assert_int_equal(proc_signal(&shim, SIGSTOP, &err), 0);
    room_destroy(room, 1);
    assert_false(proc_is_alive(&shim));
    assert_false(proc_is_alive(&payload));
    room_run(room, 0, 1);
    assert_false(room->exit.known);
}

/* --- other generations --- */

static void start_the_third(struct room *room)
{
    room_start_running(room, 3);
    await_task_file(room, "ready");
}

/* As with an older copy of the journal, which knows of no third generation. */
static void test_start_ends_other_generations_first(void **state)
{
    struct room *room = *state;
    struct proc_identity shim, payload;
    char path[PATH_SIZE];

    room_need_root();
    for (int deleted = 0; deleted < 2; deleted++) {
        room_script(room, stubborn);
        in_crashing_daemon(room, start_the_third);
        assert_int_equal(proc_identify(number_in(task_file(room, "ready")), &payload, NULL), 0);
        shim = find_shim(room, 3);
        assert_int_equal(proc_signal(&shim, SIGSTOP, NULL), 0);
        room_task_file(room, 3, path);
        if (deleted) /* found by its cgroup alone */
            assert_return_code(unlink(path), 0);
        room_open(room);
        room_script(room, "exec sleep 100");
        room_start_running(room, 2);
        assert_false(proc_is_alive(&payload));
        if (deleted)
            (void)proc_signal(&shim, SIGKILL, NULL); /* of no file any more: the sweep's affair */
        await_dead(&shim);
        assert_return_code(access(path, F_OK) + 1, 0);
        room_destroy(room, 2);
        room_run(room, 0, 1);
        room_close(room);
        assert_int_equal(path_join(path, room->task_dir, "ready"), 0);
        assert_return_code(unlink(path), 0);
    }
}

static void test_start_waits_for_the_destroy_before_it(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);
    struct proc_identity first = room->result.payload;
    struct driver_start start = room_start_of(room, 1);
    driver_destroy(room->drivers, &key, room_on_done, room);
    driver_start(room->drivers, &start, room_on_done, room);
    room_run(room, room->completions + 2, 1);
    assert_int_equal(room->result.outcome, DRIVER_RUNNING);
    assert_int_not_equal(room->result.payload.pid, first.pid);
    assert_false(proc_is_alive(&first));
    room_destroy(room, 1);
    room_run(room, 0, 2);
}

/* --- files that lie --- */

static void test_torn_exit_record_counts_as_none(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE], go[PATH_SIZE];

    room_need_root();
    for (int damage = 0; damage < 3; damage++) {
        char byte;

        room_script(room, "while [ ! -e go ]; do sleep 0.01; done; exit 3");
        in_crashing_daemon(room, start_one);
        struct proc_identity shim = find_shim(room, 1);
        assert_int_equal(path_join(go, room->task_dir, "go"), 0);
        assert_return_code(close(creat(go, 0644)), 0);
        await_dead(&shim);
        await_exit_record(room, 1); /* it was whole */
        room_task_file(room, 1, path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (damage == 0) {
            assert_return_code(ftruncate(fd, TASK_EXIT_AT + 100), 0);
        } else if (damage == 1) {
            assert_int_equal(pread(fd, &byte, 1, TASK_EXIT_AT + 40), 1);
            byte ^= 4;
            assert_int_equal(pwrite(fd, &byte, 1, TASK_EXIT_AT + 40), 1);
        } else {
            assert_return_code(ftruncate(fd, 0), 0);
        }
        assert_return_code(close(fd), 0);
        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_LOST);
        assert_false(room->result.exit.known);
        room_destroy(room, 1);
        room_close(room);
        assert_return_code(unlink(go), 0);
    }
}

enum flaw { SOUND, OTHER_BOOT, OTHER_KEY, NO_PROTOCOL, NEWER_PROTOCOL, ENDED, FLAWS };

/* A directory as somebody else's generation left it: begun, and started with this payload. */
static void write_started(struct room *room, const struct proc_identity *payload, enum flaw flaw)
{
    struct driver_key key = room_key(room, 1);
    struct started_record record = {.shim_pid = payload->pid,
                                    .shim_ticks = payload->start_ticks,
                                    .payload_pid = payload->pid,
                                    .payload_ticks = payload->start_ticks,
                                    .key_digest = key_digest(&key) + (flaw == OTHER_KEY),
                                    .protocol_oldest = SHIM_PROTOCOL_OLDEST,
                                    .protocol_newest = SHIM_PROTOCOL_NEWEST};
    char path[PATH_SIZE];
    struct err err = {0};

    assert_int_equal(proc_boot_id(record.boot_id, &err), 0);
    if (flaw == OTHER_BOOT)
        record.boot_id[0] = record.boot_id[0] == '0' ? '1' : '0';
    if (flaw == NO_PROTOCOL)
        record.protocol_oldest = record.protocol_newest = 0;
    if (flaw == NEWER_PROTOCOL)
        record.protocol_oldest = record.protocol_newest = SHIM_PROTOCOL_NEWEST + 1;
    record_seal(&record, RECORD_MAGIC_STARTED, sizeof(record));
    assert_int_equal(path_join(path, room->state, "shim"), 0);
    assert_int_equal(directory_make_all(path, 0700, &err), 0);
    room_task_file(room, 1, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(task_file_begin(fd, &err), 0);
    assert_int_equal(task_file_put(fd, TASK_STARTED_AT, &record, false, &err), 0);
    struct exit_record exit = {.kind = EXIT_ENDED};
    record_seal(&exit, RECORD_MAGIC_EXIT, sizeof(exit));
    if (flaw == ENDED)
        assert_int_equal(task_file_put(fd, TASK_EXIT_AT, &exit, false, &err), 0);
    assert_return_code(close(fd), 0);
}

static void test_reused_pid_is_never_signalled(void **state)
{
    struct room *room = *state;
    struct err err = {0};

    room_need_root();
    for (int i = 0; i < 2; i++) {
        struct proc_identity foreign, written;
        pid_t pid = fork();

        if (pid == 0) {
            (void)setpgid(0, 0);
            for (;;)
                (void)pause();
        }
        (void)setpgid(pid, pid);
        assert_int_equal(proc_identify(pid, &foreign, &err), 0);
        written = foreign;
        if (i == 0)
            written.start_ticks -= 5; /* this boot, but the number was somebody else's then */
        write_started(room, &written, i == 0 ? SOUND : OTHER_BOOT);
        room_open(room);
        assert_int_equal(room_recover(room, 1), DRIVER_LOST);
        room_destroy(room, 1);
        assert_true(proc_is_alive(&foreign));
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        room_close(room);
        assert_int_equal(proc_signal(&foreign, SIGKILL, &err), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}

/* Somebody has the lock, and does not say who it is: this process. */
static void test_file_alone_is_believed_only_if_it_is_of_such_a_shim(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);
    struct proc_identity self;
    char path[PATH_SIZE];
    struct err err = {0};

    assert_int_equal(proc_identify(getpid(), &self, &err), 0);
    for (enum flaw flaw = SOUND; flaw < FLAWS; flaw++) {
        write_started(room, &self, flaw);
        room_task_file(room, 1, path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_return_code(flock(fd, LOCK_EX | LOCK_NB), errno);
        room_open(room);
        driver_recover(room->drivers, &key, room_on_done, room);
        assert_int_equal(run_find(room->drivers, &key)->phase,
                         flaw == SOUND ? RUN_FOUND : RUN_CONNECTING);
        room_close(room);
        assert_return_code(close(fd), errno);
        assert_return_code(unlink(path), errno);
    }
}

/* As a daemon leaves it that died before it had made the shim. */
static void open_with_empty_task_file(struct room *room, char path[PATH_SIZE])
{
    struct err err = {0};

    assert_int_equal(path_join(path, room->state, "shim"), 0);
    assert_int_equal(directory_make_all(path, 0700, &err), 0);
    room_task_file(room, 1, path);
    assert_return_code(close(creat(path, 0600)), 0);
    room_open(room);
}

static void test_start_after_an_attempt_that_began_nothing_is_a_first_start(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    room_need_root();
    open_with_empty_task_file(room, path);
    room_script(room, "echo x >> started; exec sleep 100");
    room_start_running(room, 1);
    await_task_file(room, "started");
    room_destroy(room, 1);
    assert_string_equal(task_file(room, "started"), "x\n");
}

static void test_recover_of_an_attempt_that_began_nothing_leaves_no_file(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];

    room_need_root();
    open_with_empty_task_file(room, path);
    assert_int_equal(room_recover(room, 1), DRIVER_LOST);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(errno, ENOENT);
}

/* What cannot be looked at may have been begun: it must not be taken for a first start. */
static void test_without_descriptors_nothing_is_known_to_be_unbegun(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);
    struct rlimit files, none;

    room_open(room);
    assert_false(driver_was_begun(room->drivers, &key));
    assert_return_code(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = files.rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool begun = driver_was_begun(room->drivers, &key);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(begun);
}

/* The last ones are for what ends things, however few there are. */
static void test_last_descriptors_are_no_payloads(void **state)
{
    struct rlimit files, few;

    (void)state;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &files), 0);
    few = (struct rlimit){.rlim_cur = 40, .rlim_max = files.rlim_max};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &few), 0);
    bool kept[] = {fd_is_kept_back(10, 24), fd_is_kept_back(10, 25), fd_is_kept_back(10, 39)};
    few.rlim_cur = files.rlim_max < 1024 ? files.rlim_max : 1024;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &few), 0);
    bool many[] = {fd_is_kept_back(10, (int)few.rlim_cur - FILES_KEPT - 1),
                   fd_is_kept_back(10, (int)few.rlim_cur - FILES_KEPT)};
    assert_return_code(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_false(kept[0]);
    assert_true(kept[1] && kept[2]);
    assert_false(many[0]);
    assert_true(many[1]);
}

/* --- an older shim --- */

static void start_old(struct room *room)
{
    char old[PATH_SIZE], new[PATH_SIZE];

    (void)text_copy(new, sizeof(new), room->shim);
    beside_program(old, "cairn-shim-old");
    room_close(room);
    (void)text_copy(room->shim, sizeof(room->shim), old);
    room_open(room);
    room_start_running(room, 1);
}

static void test_older_shim_is_served_with_what_it_knows(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_script(room, "trap 'echo got > signalled' USR1; trap 'exit 4' INT; echo x > ready;"
                      "while :; do sleep 0.01; done");
    in_crashing_daemon(room, start_old);
    await_task_file(room, "ready");
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    assert_int_equal(room_signal(room, 1, "SIGUSR1"), DRIVER_DONE);
    await_task_file(room, "signalled");
    assert_int_equal(run_find(room->drivers,
                              &(struct driver_key){.alloc = ALLOC, .task = "web", .generation = 1})
                         ->protocol,
                     1);
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, 4);
    room_destroy(room, 1);
}

/* --- sweep --- */

static void start_four(struct room *room)
{
    for (uint32_t i = 1; i <= 4; i++)
        room_start_running(room, i);
}

static bool keep_the_first(void *ctx, const struct driver_key *key)
{
    (void)ctx;
    return key->generation == 1 && text_equal(key->alloc, ALLOC) && text_equal(key->task, "web");
}

static void test_sweep_ends_what_is_unknown_and_keeps_the_rest(void **state)
{
    struct room *room = *state;
    struct proc_identity shims[5], payload;
    char cgroup[CGROUP_NAME_SIZE], path[PATH_SIZE];
    struct err err = {0};

    room_need_root();
    room_script(room, stubborn);
    in_crashing_daemon(room, start_four);
    for (uint32_t i = 1; i <= 4; i++)
        shims[i] = find_shim(room, i);
    kill_shim(&shims[3]); /* a payload without a shim */
    room_task_file(room, 4, path);
    assert_return_code(unlink(path), 0); /* a shim without a file */
    assert_true(text_format(cgroup, sizeof(cgroup), "cairn/%s/stranger", room->node_mark));
    assert_int_equal(cgroup_create(room->cgroup_mode, cgroup, &err),
                     0); /* something in our place */

    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_RUNNING);
    payload = room->result.payload;
    drivers_sweep(room->drivers, keep_the_first, NULL, room_on_done, room);
    room_run(room, 2, 0);
    assert_int_equal(room->result.outcome, DRIVER_DONE);
    assert_true(proc_is_alive(&payload));
    assert_true(proc_is_alive(&shims[1]));
    for (uint32_t i = 2; i <= 4; i++) {
        await_dead(&shims[i]);
        room_cgroup(room, i, cgroup);
        assert_int_equal(cgroup_populated(room->cgroup_mode, cgroup, &err), 0);
        room_task_file(room, i, path);
        assert_int_equal(access(path, F_OK), -1);
    }
    drivers_sweep(room->drivers, keep_the_first, NULL, room_on_done, room); /* nothing to do */
    room_run(room, 3, 0);
    assert_int_equal(room->result.outcome, DRIVER_DONE);
    assert_int_equal(room->exits, 0);
    room_destroy(room, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make_on, room_remove)

/* These depend on the kind of cgroups. */
#define ON_CGROUPS                                                                                 \
    TEST(test_payload_survives_the_daemon_and_is_found_again),                                     \
        TEST(test_end_right_after_it_was_found_is_told),                                           \
        TEST(test_start_that_failed_while_nobody_watched_tells_its_reason),                        \
        TEST(test_start_issued_again_after_a_crash_finds_the_first),                               \
        TEST(test_kill_timeout_is_kept_when_the_daemon_dies),                                      \
        TEST(test_payload_survives_the_death_of_the_daemons_cgroup),                               \
        TEST(test_shim_killed_while_the_daemon_runs_kills_first_then_tells),                       \
        TEST(test_shim_killed_while_the_daemon_is_down_is_lost),                                   \
        TEST(test_shim_killed_before_it_wrote_what_it_started),                                    \
        TEST(test_lost_payload_without_a_cgroup_is_killed_by_identity),                            \
        TEST(test_sweep_ends_what_is_unknown_and_keeps_the_rest)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_CGROUPS,
        TEST(test_payload_of_a_shim_that_does_not_answer_is_found),
        TEST(test_exit_while_nobody_watches_keeps_its_code),
        TEST(test_restarts_do_not_leak_descriptors),
        TEST(test_port_of_a_lost_payload_is_free_when_the_loss_is_told),
        TEST(test_destroy_ends_a_shim_that_does_not_answer),
        TEST(test_start_ends_other_generations_first),
        TEST(test_start_waits_for_the_destroy_before_it),
        TEST(test_torn_exit_record_counts_as_none),
        TEST(test_reused_pid_is_never_signalled),
        TEST(test_file_alone_is_believed_only_if_it_is_of_such_a_shim),
        TEST(test_start_after_an_attempt_that_began_nothing_is_a_first_start),
        TEST(test_recover_of_an_attempt_that_began_nothing_leaves_no_file),
        TEST(test_without_descriptors_nothing_is_known_to_be_unbegun),
        cmocka_unit_test(test_last_descriptors_are_no_payloads),
        TEST(test_older_shim_is_served_with_what_it_knows),
    };
    const struct CMUnitTest on_v1[] = {ON_CGROUPS};

    room_mode = cgroup_mode();
    int failed = cmocka_run_group_tests_name("recover", tests, NULL, NULL);
    return room_tries_v1()
               ? failed + cmocka_run_group_tests_name("recover on v1", on_v1, NULL, NULL)
               : failed;
}
