/* Identity, signals to exactly one process, and spawning: what the child has and has not. */
#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char *const no_environment[] = {NULL};

/* A child that sleeps until it is signalled; the caller reaps it. */
static pid_t make_sleeper(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)pause();
    }
    return pid;
}

static int reap(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_identity_of_wrong_start_time_is_never_signalled(void **state)
{
    struct proc_identity identity;
    struct err err = {0};
    int fd = -1;
    pid_t pid = make_sleeper();

    (void)state;
    assert_int_equal(proc_identify(pid, &identity, &err), 0);
    assert_true(proc_is_alive(&identity));
    identity.start_ticks += 1; /* the same number, another process */
    assert_false(proc_is_alive(&identity));
    assert_int_equal(proc_signal(&identity, SIGKILL, &err), ERR_GONE);
    assert_int_equal(proc_kill_session(&identity, &err), ERR_GONE);
    assert_int_equal(proc_open(&identity, &fd, &err), ERR_GONE);
    assert_int_equal(fd, -1);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* it lives */

    identity.start_ticks -= 1;
    assert_int_equal(proc_signal(&identity, SIGKILL, &err), 0);
    assert_int_equal(WTERMSIG(reap(pid)), SIGKILL);
    assert_int_equal(proc_signal(&identity, SIGKILL, &err), ERR_GONE);
}

static void test_what_a_process_was_begun_with_is_seen_whole(void **state)
{
    char *const argv[] = {"yes", NULL};
    char *const envp[] = {"FIRST=one", "SECOND=two", "EMPTY=", NULL};
    struct proc_spawn spawn = {.path = "/usr/bin/yes", .argv = argv, .envp = envp};
    struct proc_identity identity;
    struct err err = {0};
    int pipe_fds[2];
    char byte;
    pid_t pid;

    (void)state;
    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    spawn.out_fd = pipe_fds[1];
    assert_int_equal(proc_spawn(&spawn, &pid, NULL, &err), 0);
    assert_return_code(close(pipe_fds[1]), 0);
    /* The kernel lets a spawn return before it has put down what the program begins with. */
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    assert_int_equal(proc_identify(pid, &identity, &err), 0);
    assert_true(proc_has_variable(&identity, "FIRST=one"));
    assert_true(proc_has_variable(&identity, "SECOND=two"));
    assert_true(proc_has_variable(&identity, "EMPTY="));
    assert_false(proc_has_variable(&identity, "FIRST=on"));
    assert_false(proc_has_variable(&identity, "FIRST"));
    assert_false(proc_has_variable(&identity, "IRST=one"));
    identity.start_ticks += 1; /* the same number, another process */
    assert_false(proc_has_variable(&identity, "FIRST=one"));
    assert_return_code(kill(pid, SIGKILL), 0);
    (void)reap(pid);
    assert_return_code(close(pipe_fds[0]), 0);
}

static void test_signal_to_pids_of_one_and_less_is_refused(void **state)
{
    struct err err = {0};

    (void)state;
    for (int32_t pid = -2; pid <= 1; pid++) {
        struct proc_identity identity = {.pid = pid};
        int fd = -1;

        assert_int_equal(proc_signal(&identity, SIGTERM, &err), ERR_INVALID);
        assert_int_equal(proc_kill_session(&identity, &err), ERR_INVALID);
        assert_int_equal(proc_open(&identity, &fd, &err), ERR_INVALID);
    }
}

static void test_zombie_is_not_alive_but_can_be_identified(void **state)
{
    struct proc_identity identity;
    struct err err = {0};
    siginfo_t info;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_identify(pid, &identity, &err), 0);
    assert_false(proc_is_alive(&identity));
    assert_int_equal(proc_signal(&identity, SIGTERM, &err), ERR_GONE);
    (void)reap(pid);
    assert_int_equal(proc_identify(pid, &identity, &err), ERR_GONE);
}

static void test_open_gives_a_descriptor_that_tells_of_the_end(void **state)
{
    struct proc_identity identity;
    struct err err = {0};
    int fd = -1;
    pid_t pid = make_sleeper();

    (void)state;
    assert_int_equal(proc_identify(pid, &identity, &err), 0);
    assert_int_equal(proc_open(&identity, &fd, &err), 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    struct pollfd watch = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&watch, 1, 0), 0);
    assert_int_equal(proc_signal(&identity, SIGKILL, &err), 0);
    assert_int_equal(poll(&watch, 1, 5000), 1);
    assert_return_code(close(fd), 0);
    (void)reap(pid);
}

/* A process that leads a session, with what DESCEND makes of it, which all hold the write end;
 * returns when DESCEND has written a byte through each. */
static pid_t make_family(void (*descend)(int fd), int writers, int *ret_read_fd)
{
    int pipe_fds[2];
    char byte;

    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)setsid();
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        descend(pipe_fds[1]);
        for (;;)
            (void)pause();
    }
    for (int i = 0; i < writers; i++)
        assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    assert_return_code(close(pipe_fds[1]), 0);
    *ret_read_fd = pipe_fds[0];
    return pid;
}

static void linger(int fd)
{
    if (write(fd, "x", 1) < 0)
        _exit(1);
    for (;;)
        (void)pause();
}

static void assert_closed(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 0); /* the last of them is gone */
    assert_return_code(close(fd), 0);
}

/* The ancestor itself was spared, and is the last that holds it. */
static void assert_closed_but_for(int fd, pid_t ancestor)
{
    struct proc_identity identity;

    assert_int_equal(proc_identify(ancestor, &identity, NULL), 0);
    assert_true(proc_is_alive(&identity));
    assert_return_code(kill(ancestor, SIGKILL), 0);
    (void)reap(ancestor);
    assert_closed(fd);
}

static void other_groups(int fd)
{
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            (void)setpgid(0, 0);
            (void)signal(SIGTERM, SIG_IGN);
            linger(fd);
        }
    }
}

static void test_kill_session_takes_every_group(void **state)
{
    struct proc_identity leader;
    struct err err = {0};
    int fd;
    pid_t pid = make_family(other_groups, 3, &fd), bystander = make_sleeper();

    (void)state;
    assert_int_equal(proc_identify(pid, &leader, &err), 0);
    assert_int_equal(proc_kill_session(&leader, &err), 0);
    assert_int_equal(WTERMSIG(reap(pid)), SIGKILL);
    assert_closed(fd);
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    assert_return_code(kill(bystander, SIGKILL), 0);
    (void)reap(bystander);
}

static void test_kill_session_spares_our_own(void **state)
{
    struct proc_identity identity;
    struct err err = {0};
    pid_t pid = make_sleeper(), bystander = make_sleeper();

    (void)state;
    assert_int_equal(proc_identify(pid, &identity, &err), 0);
    assert_int_equal(proc_kill_session(&identity, &err), 0);
    assert_int_equal(WTERMSIG(reap(pid)), SIGKILL);
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    assert_return_code(kill(bystander, SIGKILL), 0);
    (void)reap(bystander);
}

/* Each generation leaves the session of the one before; one of them has ended before the next is
 * told of. */
static void scattered(int fd)
{
    for (int i = 0; i < 6; i++) {
        pid_t parent = getpid();

        if (fork() != 0) {
            if (i == 3)
                _exit(0); /* an orphan's parent */
            if (i > 0)
                linger(fd);
            return;
        }
        (void)setsid();
        while (i == 3 && getppid() == parent)
            (void)sched_yield();
    }
    linger(fd);
}

static bool count_all(void *ctx, pid_t pid)
{
    *(int *)ctx += pid > 1;
    return true;
}

static void test_kill_descendants_takes_every_session_and_orphans(void **state)
{
    struct proc_identity ancestor;
    struct err err = {0};
    int fd, asked = 0;
    pid_t pid = make_family(scattered, 5, &fd);

    (void)state;
    assert_int_equal(proc_identify(pid, &ancestor, &err), 0);
    assert_int_equal(proc_kill_descendants(&ancestor, count_all, &asked), 5);
    assert_int_equal(asked, 5);
    assert_closed_but_for(fd, pid);
}

static void test_kill_descendants_of_a_number_passed_on_touches_nobody(void **state)
{
    struct proc_identity ancestor;
    struct err err = {0};
    int fd;
    pid_t pid = make_family(other_groups, 3, &fd);

    (void)state;
    assert_int_equal(proc_identify(pid, &ancestor, &err), 0);
    ancestor.start_ticks++;
    assert_int_equal(proc_kill_descendants(&ancestor, NULL, NULL), 0);
    ancestor.start_ticks--;
    assert_int_equal(proc_kill_descendants(&ancestor, NULL, NULL), 3);
    assert_closed_but_for(fd, pid);
}

static void test_signal_names_go_both_ways(void **state)
{
    char name[SIGNAL_NAME_SIZE];

    (void)state;
    assert_int_equal(proc_signal_number("SIGTERM"), SIGTERM);
    assert_int_equal(proc_signal_number("TERM"), SIGTERM);
    assert_int_equal(proc_signal_number("15"), SIGTERM);
    assert_int_equal(proc_signal_number("SIGIOT"), SIGABRT);
    assert_int_equal(proc_signal_number("64"), 64);
    assert_int_equal(proc_signal_number("65"), 0);
    assert_int_equal(proc_signal_number("0"), 0);
    assert_int_equal(proc_signal_number(""), 0);
    assert_int_equal(proc_signal_number("-9"), 0);
    assert_int_equal(proc_signal_number("SIGWHAT"), 0);
    assert_string_equal(proc_signal_name(SIGABRT, name), "SIGABRT");
    assert_string_equal(proc_signal_name(SIGHUP, name), "SIGHUP");
    assert_string_equal(proc_signal_name(77, name), "signal 77");
}

static void test_boot_id_is_an_id(void **state)
{
    char boot_id[BOOT_ID_SIZE];
    struct err err = {0};

    (void)state;
    assert_int_equal(proc_boot_id(boot_id, &err), 0);
    assert_true(uuid_is_valid(boot_id));
}

/* Runs SCRIPT in a spawned shell whose descriptor 3 is a pipe to us; returns what it wrote there.
 */
static void spawn_shell(const char *script, const char *directory, char *to, size_t size)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)script, NULL};
    struct err err = {0};
    int pipe_fds[2], status;
    size_t used = 0;
    ssize_t got;
    pid_t pid;

    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    struct proc_spawn spawn = {.path = "/bin/sh",
                               .argv = argv,
                               .envp = no_environment,
                               .directory = directory,
                               .fds = &pipe_fds[1],
                               .fds_count = 1};
    if (proc_spawn(&spawn, &pid, NULL, &err) != 0)
        fail_msg("%s", err.text);
    assert_return_code(close(pipe_fds[1]), 0);
    while ((got = read(pipe_fds[0], to + used, size - 1 - used)) > 0)
        used += (size_t)got;
    to[used] = '\0';
    assert_return_code(close(pipe_fds[0]), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_spawn_gives_only_the_descriptors_named(void **state)
{
    char text[4096];
    int leak = open("/dev/null", O_RDONLY); /* on purpose not close-on-exec */

    (void)state;
    assert_true(leak >= 0);
    spawn_shell("readlink /proc/self/fd/0 /proc/self/fd/2 >&3; exec ls /proc/self/fd >&3", NULL,
                text, sizeof(text));
    /* 4 is the directory that ls reads. */
    assert_string_equal(text, "/dev/null\n/dev/null\n0\n1\n2\n3\n4\n");
    assert_return_code(close(leak), 0);
}

/* Both ends of a pipe at numbers that spawn does not hand out. */
static void make_pipe_high(int to[2])
{
    int low[2];

    assert_return_code(pipe2(low, O_CLOEXEC), 0);
    for (int i = 0; i < 2; i++) {
        to[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 20);
        assert_true(to[i] >= 20);
        assert_return_code(close(low[i]), 0);
    }
}

static void test_spawn_orders_descriptors_that_overlap_their_places(void **state)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"printf a >&3; printf b >&4"},
                          NULL};
    int first[2], second[2], fds[] = {4, 3};
    struct proc_spawn spawn = {
        .path = "/bin/sh", .argv = argv, .envp = no_environment, .fds = fds, .fds_count = 2};
    struct err err = {0};
    char byte;
    pid_t pid;

    (void)state;
    make_pipe_high(first);
    make_pipe_high(second);
    assert_int_equal(dup3(first[1], 4, O_CLOEXEC), 4); /* 4 goes to 3, and 3 to 4 */
    assert_int_equal(dup3(second[1], 3, O_CLOEXEC), 3);
    assert_int_equal(proc_spawn(&spawn, &pid, NULL, &err), 0);
    assert_int_equal(reap(pid), 0);
    assert_int_equal(read(first[0], &byte, 1), 1);
    assert_int_equal(byte, 'a');
    assert_int_equal(read(second[0], &byte, 1), 1);
    assert_int_equal(byte, 'b');
    for (int i = 0; i < 2; i++) {
        assert_return_code(close(first[i]), 0);
        assert_return_code(close(second[i]), 0);
        assert_return_code(close(fds[i]), 0);
    }
}

static void test_spawn_resets_session_signals_umask_and_directory(void **state)
{
    char text[4096], expected[128];
    sigset_t blocked, before;

    (void)state;
    assert_return_code(sigemptyset(&blocked), 0);
    assert_return_code(sigaddset(&blocked, SIGUSR1), 0);
    assert_return_code(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    mode_t mask = umask(0);
    spawn_shell("pwd >&3; umask >&3; grep -E '^Sig(Blk|Ign)' /proc/self/status >&3;"
                "cut -d' ' -f1,6 /proc/$$/stat >&3; echo $$ $$ >&3",
                "/proc/sys", text, sizeof(text));
    (void)umask(mask);
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
    assert_return_code(sigprocmask(SIG_SETMASK, &before, NULL), 0);

    (void)text_format(expected, sizeof(expected),
                      "/proc/sys\n0022\nSigBlk:\t%016d\nSigIgn:\t%016d\n", 0, 0);
    assert_true(text_starts_with(text, expected));
    char *session = text + strlen(expected), *own = strchr(session, '\n');
    assert_non_null(own);
    *own++ = '\0';
    own[strcspn(own, "\n")] = '\0';
    assert_string_equal(session, own); /* pid and session are one number */
}

static void test_spawn_lowers_only_the_soft_limit_of_descriptors(void **state)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"},
                          (char[]){"echo $(ulimit -Sn) $(ulimit -Hn) >&3"}, NULL};
    char text[64] = "", expected[64];
    struct rlimit own;
    int pipes[2];
    struct err err = {0};
    pid_t pid;

    (void)state;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &own), 0);
    assert_return_code(pipe2(pipes, O_CLOEXEC), 0);
    struct proc_spawn spawn = {.path = "/bin/sh",
                               .argv = argv,
                               .envp = no_environment,
                               .fds = &pipes[1],
                               .fds_count = 1,
                               .files_soft = 77};
    assert_int_equal(proc_spawn(&spawn, &pid, NULL, &err), 0);
    assert_int_equal(reap(pid), 0);
    assert_true(read(pipes[0], text, sizeof(text) - 1) > 0);
    (void)text_format(expected, sizeof(expected), "77 %llu\n", (unsigned long long)own.rlim_max);
    assert_string_equal(text, expected);
    struct rlimit after;
    assert_return_code(getrlimit(RLIMIT_NOFILE, &after), 0);
    assert_int_equal(after.rlim_cur, own.rlim_cur);
    assert_return_code(close(pipes[0]), 0);
    assert_return_code(close(pipes[1]), 0);
}

static void test_spawn_of_missing_program_says_so_and_leaves_nothing(void **state)
{
    struct proc_spawn spawn = {
        .path = "/nowhere/program", .argv = no_environment, .envp = no_environment};
    struct err err = {0};
    int pidfd = -1;
    pid_t pid = 0;

    (void)state;
    assert_int_equal(proc_spawn(&spawn, &pid, &pidfd, &err), ERR_GONE);
    assert_int_equal(err.os, ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/program"));
    assert_int_equal(pid, 0);
    assert_int_equal(pidfd, -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);

    spawn.path = "/bin/true";
    spawn.directory = "/nowhere";
    assert_int_equal(proc_spawn(&spawn, &pid, &pidfd, &err), ERR_GONE);
    assert_non_null(strstr(err.text, "directory"));
}

static void test_spawn_returns_a_pidfd_of_the_child(void **state)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    struct proc_spawn spawn = {.path = "/bin/true", .argv = argv, .envp = no_environment};
    struct err err = {0};
    siginfo_t info = {0};
    int pidfd = -1;
    pid_t pid = 0;

    (void)state;
    assert_int_equal(proc_spawn(&spawn, &pid, &pidfd, &err), 0);
    assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
    assert_int_equal(info.si_pid, pid);
    assert_return_code(close(pidfd), 0);
}

struct becoming {
    const char *program; /* NULL: it does not become anything */
    pid_t parent;
    int failed;
};

PROC_IN_CHILD static void become(void *ctx)
{
    struct becoming *becoming = ctx;
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 7"}, NULL};

    becoming->parent = getppid();
    if (becoming->program != NULL)
        (void)execve(becoming->program, argv, no_environment);
    becoming->failed = becoming->program != NULL ? errno : EPERM;
}

static void test_child_that_becomes_a_program_tells_in_our_memory_how_it_went(void **state)
{
    struct becoming program = {.program = "/bin/sh"}, missing = {.program = "/nowhere/program"},
                    none = {.program = NULL};
    const struct {
        struct becoming *becoming;
        int failed, code;
    } cases[] = {{&program, 0, 7}, {&missing, ENOENT, 127}, {&none, EPERM, 127}};
    struct err err = {0};
    pid_t pid = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(proc_become(NULL, 0, become, cases[i].becoming, &pid, &err), 0);
        assert_int_equal(cases[i].becoming->parent, getpid()); /* we waited for it */
        assert_int_equal(cases[i].becoming->failed, cases[i].failed);
        assert_int_equal(reap(pid), cases[i].code << 8);
    }
    pid = 0;
    assert_int_equal(proc_become("/nowhere", 0, become, &none, &pid, &err), ERR_GONE);
    assert_int_equal(pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_of_wrong_start_time_is_never_signalled),
        cmocka_unit_test(test_what_a_process_was_begun_with_is_seen_whole),
        cmocka_unit_test(test_signal_to_pids_of_one_and_less_is_refused),
        cmocka_unit_test(test_zombie_is_not_alive_but_can_be_identified),
        cmocka_unit_test(test_open_gives_a_descriptor_that_tells_of_the_end),
        cmocka_unit_test(test_kill_session_takes_every_group),
        cmocka_unit_test(test_kill_session_spares_our_own),
        cmocka_unit_test(test_kill_descendants_takes_every_session_and_orphans),
        cmocka_unit_test(test_kill_descendants_of_a_number_passed_on_touches_nobody),
        cmocka_unit_test(test_signal_names_go_both_ways),
        cmocka_unit_test(test_boot_id_is_an_id),
        cmocka_unit_test(test_spawn_gives_only_the_descriptors_named),
        cmocka_unit_test(test_spawn_orders_descriptors_that_overlap_their_places),
        cmocka_unit_test(test_spawn_resets_session_signals_umask_and_directory),
        cmocka_unit_test(test_spawn_lowers_only_the_soft_limit_of_descriptors),
        cmocka_unit_test(test_spawn_of_missing_program_says_so_and_leaves_nothing),
        cmocka_unit_test(test_spawn_returns_a_pidfd_of_the_child),
        cmocka_unit_test(test_child_that_becomes_a_program_tells_in_our_memory_how_it_went),
    };

    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
