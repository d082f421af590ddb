/* cairn-shim: the payload's output in rotated files, its own seclusion, and its socket. */
#include "test/drivers/room.h"

#include <elf.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

static void run_script(struct room *room, uint32_t generation, const char *script)
{
    int exits = room->exits;

    room_script(room, script);
    room_start_running(room, generation);
    room_run(room, 0, exits + 1);
}

static off_t size_of_log(const struct room *room, const char *name)
{
    char path[PATH_SIZE];
    struct stat status;

    assert_int_equal(path_join(path, room->logs, name), 0);
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* --- logs --- */

static void test_logs_rotate_at_line_ends_and_keep_the_newest(void **state)
{
    struct room *room = *state;
    char first[16];

    room_need_root();
    room_open(room);
    room->task.logs = (struct spec_logs){.max_files = 2, .max_file_size_mb = 1};
    run_script(room, 1, "seq 1 500000"); /* 3,388,895 bytes: files 0 to 3 */
    assert_int_equal(size_of_log(room, "web.stdout.0"), -1);
    assert_int_equal(size_of_log(room, "web.stdout.1"), -1);
    assert_int_equal(size_of_log(room, "web.stdout.4"), -1);
    assert_int_equal(size_of_log(room, "web.stderr.0"), 0);
    assert_in_range(size_of_log(room, "web.stdout.2"), (1 << 20) - 32768 - 8, 1 << 20);

    const char *text = log_file(room, "web.stdout.3");
    (void)text_copy(first, sizeof(first), text);
    first[strcspn(first, "\n")] = '\0';
    assert_true(text_ends_with(text, "\n499999\n500000\n"));
    text = log_file(room, "web.stdout.2");
    assert_true(text_ends_with(text, "\n"));
    ((char *)(uintptr_t)text)[strlen(text) - 1] = '\0';
    assert_int_equal(number_in(strrchr(text, '\n') + 1) + 1,
                     number_in(first)); /* nothing between them */
    room_destroy(room, 1);
}

static void test_line_longer_than_a_file_is_cut(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room->task.logs = (struct spec_logs){.max_files = 5, .max_file_size_mb = 1};
    run_script(room, 1, "head -c 2500000 /dev/zero | tr '[:cntrl:]' x >&2");
    assert_int_equal(size_of_log(room, "web.stderr.0"), 1 << 20);
    assert_int_equal(size_of_log(room, "web.stderr.1"), 1 << 20);
    assert_int_equal(size_of_log(room, "web.stderr.2"), 2500000 - (2 << 20));
    room_destroy(room, 1);
}

static void test_next_start_goes_on_with_the_newest_file(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE];
    struct stat status;

    room_need_root();
    room_open(room);
    room->task.logs = (struct spec_logs){.max_files = 3, .max_file_size_mb = 1};
    for (int i = 5; i <= 9; i++) { /* as limits that were higher left it */
        (void)text_format(path, sizeof(path), "%.3000s/web.stdout.%d", room->logs, i);
        assert_return_code(close(creat(path, 0600)), 0);
    }
    run_script(room, 1, "echo one");
    run_script(room, 2, "echo two; echo other >&2");
    assert_string_equal(log_file(room, "web.stdout.9"), "one\ntwo\n");
    assert_string_equal(log_file(room, "web.stderr.0"), "other\n");
    assert_int_equal(size_of_log(room, "web.stdout.6"), -1);
    assert_int_equal(size_of_log(room, "web.stdout.7"), 0);
    assert_int_equal(path_join(path, room->logs, "web.stderr.0"), 0);
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    room_destroy(room, 1);
    room_destroy(room, 2);
}

static void start_one(struct room *room)
{
    room_start_running(room, 1);
}

static void test_output_is_kept_while_no_daemon_is_there(void **state)
{
    struct room *room = *state;
    char go[PATH_SIZE];

    room_need_root();
    room_script(room, "echo before; while [ ! -e go ]; do sleep 0.01; done; seq 1 100000;"
                      "echo after; exit 6");
    in_crashing_daemon(room, start_one);
    assert_int_equal(path_join(go, room->task_dir, "go"), 0);
    assert_return_code(close(creat(go, 0644)), 0);
    await_exit_record(room, 1);
    room_open(room);
    assert_int_equal(room_recover(room, 1), DRIVER_EXITED);
    assert_int_equal(room->result.exit.code, 6);
    const char *text = log_file(room, "web.stdout.0");
    assert_int_equal(strlen(text), strlen("before\n") + 588895 + strlen("after\n"));
    assert_true(text_ends_with(text, "\n100000\nafter\n"));
    room_destroy(room, 1);
}

static void test_disabled_logs_go_nowhere(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room->task.logs.disabled = true;
    run_script(room, 1,
               "out=$(readlink /proc/$$/fd/1); err=$(readlink /proc/$$/fd/2);"
               "echo $out $err > seen; echo x; echo y >&2");
    assert_string_equal(task_file(room, "seen"), "/dev/null /dev/null\n");
    assert_int_equal(size_of_log(room, "web.stdout.0"), -1);
    room_destroy(room, 1);
}

static void test_full_disk_loses_output_but_not_the_task(void **state)
{
    struct room *room = *state;
    const struct mount_tmpfs wanted = {.size_bytes = 65536, .mode = 0755};
    struct err err = {0};

    room_need_root();
    room_open(room);
    if (mount_tmpfs(AT_FDCWD, room->logs, &wanted, &err) != 0) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
    run_script(room, 1, "seq 1 100000 && exit 8");
    assert_int_equal(room->exit.code, 8);
    assert_non_null(strstr(room->exit.message, "could not be written"));
    assert_in_range(size_of_log(room, "web.stdout.0"), 1, 65536);
    room_destroy(room, 1);
    assert_int_equal(mount_remove(AT_FDCWD, room->logs, &err), 0);
}

/* As root, who could have it all. */
static void test_disk_is_not_filled_to_its_last_block(void **state)
{
    struct room *room = *state;
    const struct mount_tmpfs wanted = {.size_bytes = 8 << 20, .mode = 0755};
    struct statvfs disk;
    struct err err = {0};

    room_need_root();
    room_open(room);
    if (mount_tmpfs(AT_FDCWD, room->logs, &wanted, &err) != 0) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
    run_script(room, 1, "seq 1 3000000 && exit 8");
    assert_int_equal(room->exit.code, 8);
    assert_non_null(strstr(room->exit.message, "could not be written"));
    assert_return_code(statvfs(room->logs, &disk), 0);
    assert_in_range(disk.f_bavail, disk.f_blocks / 50, disk.f_blocks / 25);
    room_destroy(room, 1);
    assert_int_equal(mount_remove(AT_FDCWD, room->logs, &err), 0);
}

static void test_missing_log_directory_is_no_reason_to_fail(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    assert_return_code(rmdir(room->logs), 0);
    run_script(room, 1, "seq 1 100000 && exit 8");
    assert_int_equal(room->exit.code, 8);
    assert_string_equal(room->exit.message, "");
    assert_int_equal(size_of_log(room, "web.stdout.0"), 588895); /* it was made again */
    room_destroy(room, 1);
}

static void test_log_directory_that_cannot_be_made_is_no_reason_to_fail(void **state)
{
    struct room *room = *state;
    struct err err = {0};

    room_need_root();
    room_open(room);
    assert_return_code(rmdir(room->logs), 0);
    assert_int_equal(file_write_durable(room->logs, "x", 1, 0644, &err), 0); /* in the way */
    run_script(room, 1, "seq 1 100000 && exit 8");
    assert_int_equal(room->exit.code, 8);
    assert_non_null(strstr(room->exit.message, "588895 bytes"));
    assert_return_code(unlink(room->logs), 0);
    assert_return_code(mkdir(room->logs, 0755), 0);
    room_destroy(room, 1);
}

static void test_links_and_pipes_in_the_log_directory_are_not_followed(void **state)
{
    struct room *room = *state;
    char target[PATH_SIZE], link[PATH_SIZE];

    room_need_root();
    room_open(room);
    assert_int_equal(path_join(target, room->path, "target"), 0);
    assert_int_equal(path_join(link, room->logs, "web.stdout.0"), 0);
    assert_return_code(close(creat(target, 0644)), 0);
    assert_return_code(symlink(target, link), 0);
    assert_int_equal(path_join(link, room->logs, "web.stderr.0"), 0);
    assert_return_code(mkfifo(link, 0666), 0); /* nobody reads it: opening it would block */
    run_script(room, 1, "echo out; echo err >&2; exit 8");
    assert_int_equal(room->exit.code, 8);
    assert_string_equal(content_of(target), "");
    room_destroy(room, 1);
}

static void test_grandchild_that_holds_the_pipe_delays_the_exit_only_so_long(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    run_script(room, 1, "(sleep 0.1; echo late; exec sleep 100) & echo early; exit 2");
    assert_int_equal(room->exit.code, 2);
    assert_string_equal(log_file(room, "web.stdout.0"), "early\nlate\n");
    room_destroy(room, 1);
}

/* Somebody who came by the pipe in another way than by birth, and keeps it. */
static void test_shim_waits_for_a_strangers_end_of_the_pipe_asleep(void **state)
{
    struct room *room = *state;
    struct driver_key key = room_key(room, 1);
    struct cgroup_stats usage = {0}, last;
    char path[64];

    room_need_root();
    room_open(room);
    room_script(room, "sleep 100 & echo x > ready; while :; do sleep 100; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    struct proc_identity shim = room->result.shim;
    (void)text_format(path, sizeof(path), "/proc/%d/fd/1", room->result.payload.pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_return_code(fd, 0);
    driver_stop(room->drivers, &key, "SIGKILL", 60000, room_on_done, room);
    room_run(room, room->completions + 1, 0);
    while (proc_is_alive(&shim) && proc_stats(&shim, &last, NULL) == 0) {
        usage = last;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_in_range(usage.cpu_user_us + usage.cpu_system_us, 0, 50000);
    assert_return_code(close(fd), 0);
    room_run(room, 0, 1);
    assert_int_equal(room->exit.signal, SIGKILL);
    room_destroy(room, 1);
}

/* --- seclusion --- */

/* Lowering it takes a capability that root may lack in a container. */
static const char *lowest_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    bool permitted = write(fd, "-999", 4) == 4;

    (void)!write(fd, "0", 1);
    assert_return_code(close(fd), 0);
    if (!permitted)
        print_message("not permitted to lower the OOM score here\n");
    return permitted ? "-999\n" : "0\n";
}

static void test_shim_is_out_of_reach_of_ordinary_signals(void **state)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGALRM, SIGXFSZ};
    struct room *room = *state;
    struct proc_identity shim;
    struct err err = {0};
    char path[64];

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);
    shim = room->result.shim;
    assert_int_equal(getsid(shim.pid), shim.pid);
    assert_int_not_equal(getpgid(room->result.payload.pid), shim.pid);
    (void)text_format(path, sizeof(path), "/proc/%d/oom_score_adj", shim.pid);
    assert_string_equal(content_of(path), lowest_oom_score());
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        assert_int_equal(proc_signal(&shim, signals[i], &err), 0);
    assert_int_equal(room_signal(room, 1, "SIGCONT"), DRIVER_DONE); /* it still answers */
    assert_true(proc_is_alive(&shim));
    room_destroy(room, 1);
}

/* As of a payload that a shutdown ends: all are told to, and its shim hears it, too. */
static void test_end_behind_that_of_the_host_says_so(void **state)
{
    struct room *room = *state;
    struct err err = {0};

    room_need_root();
    room_open(room);
    for (uint32_t told = 0; told < 2; told++) {
        room_script(room, "exec sleep 100");
        room_start_running(room, 1 + told);
        if (told != 0)
            assert_int_equal(proc_signal(&room->result.shim, SIGTERM, &err), 0);
        assert_int_equal(proc_signal(&room->result.payload, SIGTERM, &err), 0);
        room_await_exit(room);
        assert_int_equal(room->exit.signal, SIGTERM);
        assert_int_equal(room->exit.with_host, told);
        room_destroy(room, 1 + told);
    }
}

/* VALUE of the line NAME in /proc/<pid>/status. */
static int status_of(pid_t pid, const char *name)
{
    char path[64];

    (void)text_format(path, sizeof(path), "/proc/%d/status", (int)pid);
    const char *at = strstr(content_of(path), name);
    assert_non_null(at);
    return number_in(at + strlen(name));
}

static void test_shim_confines_itself_and_not_its_payload(void **state)
{
    struct room *room = *state;

    room_need_root();
    room_open(room);
    room_script(room, "ulimit -c unlimited; ulimit -c > cores; exec sleep 100");
    room_start_running(room, 1);
    await_task_file(room, "cores");
    assert_string_equal(task_file(room, "cores"), "unlimited\n");
    assert_int_equal(status_of(room->result.shim.pid, "\nSeccomp:"), 2);
    assert_int_equal(status_of(room->result.shim.pid, "\nNoNewPrivs:"), 1);
    assert_int_equal(status_of(room->result.payload.pid, "\nSeccomp:"),
                     status_of(getpid(), "\nSeccomp:"));
    assert_int_equal(status_of(room->result.payload.pid, "\nNoNewPrivs:"), 0);
    room_destroy(room, 1);
}

/* Position independent, and with nothing that the loader filled in left to write to. */
static void test_programs_are_linked_to_lie_anywhere(void **state)
{
    static const char *const names[] = {"cairn", "cairn-shim"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[PATH_SIZE];
        Elf64_Ehdr head;
        bool relro = false;

        beside_program(path, names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, &head, sizeof(head)), sizeof(head));
        assert_int_equal(head.e_type, ET_DYN);
        for (int j = 0; j < head.e_phnum; j++) {
            Elf64_Phdr part;
            off_t at = (off_t)(head.e_phoff + (Elf64_Off)j * sizeof(part));

            assert_int_equal(pread(fd, &part, sizeof(part), at), sizeof(part));
            relro |= part.p_type == PT_GNU_RELRO;
        }
        assert_true(relro);
        assert_return_code(close(fd), 0);
    }
}

static void test_secrets_are_gone_once_the_payload_runs(void **state)
{
    struct room *room = *state;
    char path[PATH_SIZE], target[PATH_SIZE] = "";

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);
    (void)text_format(path, sizeof(path), "/proc/%d/fd/%d", room->result.shim.pid, SHIM_FD_LAUNCH);
    assert_false(readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "cairn-launch"));
    (void)text_format(path, sizeof(path), "/proc/%d/maps", room->result.shim.pid);
    assert_null(strstr(content_of(path), "cairn-launch"));
    (void)text_format(path, sizeof(path), "/proc/%d/environ", room->result.shim.pid);
    assert_string_equal(content_of(path), "");
    assert_int_equal(path_join(path, room->state, "shim"), 0);
    struct stat status;
    assert_return_code(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    room_destroy(room, 1);
}

static void test_shim_started_by_hand_explains_itself(void **state)
{
    char *const argv[] = {(char[]){"cairn-shim"}, NULL};
    char *const envp[] = {NULL};
    struct room *room = *state;
    struct proc_spawn spawn = {.path = room->shim, .argv = argv, .envp = envp};
    struct err err = {0};
    int status;
    pid_t pid;

    assert_int_equal(proc_spawn(&spawn, &pid, NULL, &err), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
}

/* --- the socket --- */

static int connect_to(struct room *room)
{
    struct driver_key key = room_key(room, 1);
    struct err err = {0};
    char path[PATH_SIZE];
    int fd = -1;

    assert_int_equal(path_join(path, room->state, "shim"), 0);
    int shim_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (shim_connect(shim_fd, &key, &fd, &err) != 0)
        fail_msg("%s", err.text);
    assert_return_code(close(shim_fd), 0);
    return fd;
}

/* The next packet's size; 0 when the shim has hung up. */
static size_t receive(int fd, void *to, size_t size)
{
    struct pollfd watch = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&watch, 1, PATIENCE_MS), 1);
    ssize_t got = recv(fd, to, size, 0);
    return got > 0 ? (size_t)got : 0;
}

static void say(int fd, const void *message, size_t size)
{
    assert_int_equal(send(fd, message, size, MSG_NOSIGNAL), size);
}

static struct shim_state hello(int fd, uint16_t oldest, uint16_t newest)
{
    struct shim_hello message = {
        .head = {.kind = SHIM_HELLO, .ticket = 5}, .oldest = oldest, .newest = newest};
    struct shim_state state = {.phase = 0};

    say(fd, &message, sizeof(message));
    assert_int_equal(receive(fd, &state, sizeof(state)), sizeof(state));
    assert_int_equal(state.head.kind, SHIM_WELCOME);
    assert_int_equal(state.head.ticket, 5);
    return state;
}

static void test_client_that_breaks_the_protocol_is_hung_up_on(void **state)
{
    struct room *room = *state;
    struct shim_head status = {.kind = SHIM_STATUS}, stop = {.kind = SHIM_STOP};
    char byte;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);

    int fd = connect_to(room); /* a request before hello */
    say(fd, &status, sizeof(status));
    assert_int_equal(receive(fd, &byte, 1), 0);
    assert_return_code(close(fd), 0);
    fd = connect_to(room); /* less than a head */
    say(fd, "x", 1);
    assert_int_equal(receive(fd, &byte, 1), 0);
    assert_return_code(close(fd), 0);
    fd = connect_to(room); /* a stop without its body */
    (void)hello(fd, 1, 2);
    say(fd, &stop, sizeof(stop));
    assert_int_equal(receive(fd, &byte, 1), 0);
    assert_return_code(close(fd), 0);
    assert_int_equal(room->exits, 0);
    assert_int_equal(room_signal(room, 1, "SIGCONT"), DRIVER_DONE);
    room_destroy(room, 1);
}

static void test_versions_are_agreed_on_or_refused(void **state)
{
    struct room *room = *state;
    struct shim_head unknown = {.kind = 60, .ticket = 9};
    struct shim_state seen;
    struct shim_reply reply;
    char byte;

    room_need_root();
    room_open(room);
    room_script(room, "exec sleep 100");
    room_start_running(room, 1);

    int fd = connect_to(room); /* a daemon of the future */
    seen = hello(fd, 1, 999);
    assert_int_equal(seen.head.protocol, SHIM_PROTOCOL_NEWEST);
    assert_int_equal(seen.phase, SHIM_RUNNING);
    assert_int_equal(seen.payload_pid, room->result.payload.pid);
    assert_int_equal(seen.payload_ticks, room->result.payload.start_ticks);
    say(fd, &unknown, sizeof(unknown));
    assert_int_equal(receive(fd, &reply, sizeof(reply)), sizeof(reply));
    assert_int_equal(reply.head.ticket, 9);
    assert_int_equal(reply.code, ERR_UNSUPPORTED);
    assert_return_code(close(fd), 0);

    fd = connect_to(room); /* one that forgot what we speak */
    seen = hello(fd, 998, 999);
    assert_int_equal(seen.head.protocol, 0);
    assert_int_equal(receive(fd, &byte, 1), 0);
    assert_return_code(close(fd), 0);
    room_destroy(room, 1);
}

static void test_many_clients_do_not_cut_the_daemon_off_for_good(void **state)
{
    struct room *room = *state;
    int fds[6];

    room_need_root();
    room_open(room);
    room_script(room, "trap 'exit 11' INT; echo x > ready; while :; do sleep 0.01; done");
    room_start_running(room, 1);
    await_task_file(room, "ready");
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_to(room);
        (void)hello(fds[i], 1, 2);
    }
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        assert_return_code(close(fds[i]), 0);
    assert_int_equal(room_stop(room, 1, "", 60000), DRIVER_DONE);
    room_run(room, 0, 1);
    assert_true(room->exit.known);
    assert_int_equal(room->exit.code, 11);
    room_destroy(room, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, room_make, room_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_logs_rotate_at_line_ends_and_keep_the_newest),
        TEST(test_line_longer_than_a_file_is_cut),
        TEST(test_next_start_goes_on_with_the_newest_file),
        TEST(test_output_is_kept_while_no_daemon_is_there),
        TEST(test_disabled_logs_go_nowhere),
        TEST(test_full_disk_loses_output_but_not_the_task),
        TEST(test_disk_is_not_filled_to_its_last_block),
        TEST(test_missing_log_directory_is_no_reason_to_fail),
        TEST(test_log_directory_that_cannot_be_made_is_no_reason_to_fail),
        TEST(test_links_and_pipes_in_the_log_directory_are_not_followed),
        TEST(test_grandchild_that_holds_the_pipe_delays_the_exit_only_so_long),
        TEST(test_shim_waits_for_a_strangers_end_of_the_pipe_asleep),
        TEST(test_shim_is_out_of_reach_of_ordinary_signals),
        TEST(test_end_behind_that_of_the_host_says_so),
        TEST(test_shim_confines_itself_and_not_its_payload),
        TEST(test_programs_are_linked_to_lie_anywhere),
        TEST(test_secrets_are_gone_once_the_payload_runs),
        TEST(test_shim_started_by_hand_explains_itself),
        TEST(test_client_that_breaks_the_protocol_is_hung_up_on),
        TEST(test_versions_are_agreed_on_or_refused),
        TEST(test_many_clients_do_not_cut_the_daemon_off_for_good),
    };

    return cmocka_run_group_tests_name("shim", tests, NULL, NULL);
}
