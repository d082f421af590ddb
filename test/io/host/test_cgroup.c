/*
 * Cgroups in every kind this machine has: the same tests on the hybrid (or v2) hierarchy and on the
 * v1 freezer, with real processes that fork, change their session and ignore signals.
 */
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static enum cgroup_mode machine; /* what there is really */
static enum cgroup_mode tested;  /* what this group of tests runs on */
static char parent[64];          /* a parent of our own, different in each run */

static const char *name_of(const char *child)
{
    static char name[CGROUP_NAME_SIZE];

    (void)text_format(name, sizeof(name), "%s/%s", parent, child);
    return name;
}

static int use_machine(void **state)
{
    (void)state;
    tested = machine;
    return 0;
}

static int use_v1(void **state)
{
    (void)state;
    tested = CGROUP_V1;
    return 0;
}

static void need_cgroups(void)
{
    bool there = tested == CGROUP_V1 ? access("/sys/fs/cgroup/freezer/cgroup.procs", W_OK) == 0
                                     : tested != CGROUP_NONE;

    if (!there || geteuid() != 0) {
        print_message("skipped: needs root and cgroups of kind %s\n", cgroup_mode_name(tested));
        skip();
    }
}

/* A process in NAME whose descendant in a session of its own ignores all it can; descriptor 1 of
 * the returned pipe stays open until the last of them is dead. */
static int start_family(const char *name)
{
    int pipe_fds[2];
    char byte;
    struct err err = {0};

    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (cgroup_enter(tested, name, 0, &err) != 0)
            _exit(1);
        if (fork() == 0) {
            (void)setsid();
            (void)signal(SIGTERM, SIG_IGN);
            (void)signal(SIGHUP, SIG_IGN);
            if (fork() == 0 && write(pipe_fds[1], "x", 1) != 1)
                _exit(1);
        }
        for (;;)
            (void)pause();
    }
    assert_return_code(close(pipe_fds[1]), 0);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    return pipe_fds[0];
}

static void assert_family_dead(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 0);
    assert_return_code(close(fd), 0);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

/* Kills until it is empty, as users of cgroup_kill do, with a bound. */
static void empty(const char *name)
{
    struct err err = {0};
    struct pollfd events = {.fd = -1, .events = POLLPRI};
    char text[64];

    if (tested != CGROUP_V1)
        assert_int_equal(cgroup_events_open(tested, name, &events.fd, &err), 0);
    for (int i = 0; i < 500 && cgroup_populated(tested, name, &err) == 1; i++) {
        assert_int_equal(cgroup_kill(tested, name, &err), 0);
        (void)poll(&events, 1, 10);
        if (events.fd >= 0) /* else it stays readable, and the next poll does not wait */
            assert_true(pread(events.fd, text, sizeof(text), 0) > 0);
    }
    assert_int_equal(cgroup_populated(tested, name, &err), 0);
    if (events.fd >= 0)
        (void)close(events.fd);
}

static void test_cgroup_create_and_remove_may_be_repeated(void **state)
{
    struct err err = {0};
    const char *name = name_of("repeat");

    (void)state;
    need_cgroups();
    assert_int_equal(cgroup_remove(tested, name, &err), 0); /* nothing there yet */
    assert_int_equal(cgroup_populated(tested, name, &err), 0);
    assert_int_equal(cgroup_kill(tested, name, &err), 0);
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_int_equal(cgroup_populated(tested, name, &err), 0);
    assert_int_equal(cgroup_kill(tested, name, &err), 0);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static void test_cgroup_names_that_leave_the_hierarchy_are_refused(void **state)
{
    static const char *const bad[] = {"", "/cairn", "cairn/../../etc", "a\nb"};
    struct err err = {0};

    (void)state;
    need_cgroups();
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(cgroup_create(tested, bad[i], &err), ERR_INVALID);
        assert_int_equal(cgroup_kill(tested, bad[i], &err), ERR_INVALID);
        assert_int_equal(cgroup_remove(tested, bad[i], &err), ERR_INVALID);
    }
}

static void test_cgroup_kill_reaches_grandchildren_in_other_sessions(void **state)
{
    struct err err = {0};
    const char *name = name_of("family");

    (void)state;
    need_cgroups();
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    int fd = start_family(name);
    assert_int_equal(cgroup_populated(tested, name, &err), 1);
    assert_int_equal(cgroup_remove(tested, name, &err), ERR_AGAIN);
    empty(name);
    assert_family_dead(fd);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static void test_cgroup_kill_and_remove_go_below(void **state)
{
    char below[CGROUP_NAME_SIZE];
    struct err err = {0};
    const char *name = name_of("above");

    (void)state;
    need_cgroups();
    (void)text_format(below, sizeof(below), "%s/a/b", name);
    assert_int_equal(cgroup_create(tested, below, &err), 0);
    int fd = start_family(below);
    assert_int_equal(cgroup_populated(tested, name, &err), 1);
    assert_int_equal(cgroup_remove(tested, name, &err), ERR_AGAIN);
    empty(name);
    assert_family_dead(fd);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
    assert_int_equal(cgroup_populated(tested, below, &err), 0);
}

/* Makes LEVELS cgroups below NAME, each in the one before and each with an empty one beside it,
 * with a process in every EACH-th and in the last; all hold the write end of RET_READ_FD. */
static void nest(const char *name, int name_length, int levels, int each, int *ret_read_fd)
{
    char directory[CGROUP_NAME_SIZE + 64], child[256];
    int pipe_fds[2];

    cgroup_directory(tested == CGROUP_V1 ? CGROUP_HYBRID : tested, name, directory,
                     sizeof(directory));
    if (tested == CGROUP_V1)
        (void)text_format(directory, sizeof(directory), "/sys/fs/cgroup/freezer/%s", name);
    memset(child, 'n', (size_t)name_length);
    child[name_length] = '\0';
    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 1; i <= levels; i++) {
        assert_return_code(mkdirat(fd, "beside", 0755), 0);
        assert_return_code(mkdirat(fd, child, 0755), 0);
        int below = openat(fd, child, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_return_code(below, 0);
        assert_return_code(close(fd), 0);
        fd = below;
        if (i % each != 0 && i != levels)
            continue;
        pid_t pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;)
                (void)pause();
        }
        int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        assert_true(dprintf(procs, "%d", (int)pid) > 0);
        assert_return_code(close(procs), 0);
    }
    assert_return_code(close(fd), 0);
    assert_return_code(close(pipe_fds[1]), 0);
    *ret_read_fd = pipe_fds[0];
}

/* NAME_LENGTH and LEVELS decide whether the path of the deepest is one that the kernel can say. */
static void assert_nest_goes(int name_length, int levels, int each)
{
    const char *name = name_of("nest");
    struct err err = {0};
    struct cgroup_stats stats;
    int fd;

    assert_int_equal(cgroup_create(tested, name, &err), 0);
    nest(name, name_length, levels, each, &fd);
    assert_int_equal(cgroup_populated(tested, name, &err), 1);
    assert_int_equal(cgroup_stats(tested, name, &stats, &err), 0);
    assert_int_equal(stats.processes, (levels + each - 1) / each);
    assert_int_equal(cgroup_remove(tested, name, &err), ERR_AGAIN);
    empty(name);
    assert_family_dead(fd);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
    assert_int_equal(cgroup_events_open(CGROUP_HYBRID, name, &fd, &err), ERR_GONE);
}

static void test_cgroup_goes_however_deep_it_is_nested(void **state)
{
    (void)state;
    need_cgroups();
    assert_nest_goes(1, 17, 17);
    assert_nest_goes(1, 400, 50);
    assert_nest_goes(200, 40, 7); /* longer than a path may be */
}

static void test_cgroup_kill_beats_a_process_that_keeps_forking(void **state)
{
    struct err err = {0};
    const char *name = name_of("forks");
    int pipe_fds[2];
    char byte;

    (void)state;
    need_cgroups();
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    if (fork() == 0) {
        if (cgroup_enter(tested, name, 0, &err) != 0)
            _exit(1);
        if (write(pipe_fds[1], "x", 1) != 1)
            _exit(1);
        for (;;) { /* one at a time, each the parent of the next */
            pid_t pid = fork();

            if (pid > 0)
                _exit(0);
        }
    }
    assert_return_code(close(pipe_fds[1]), 0);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    empty(name);
    assert_family_dead(pipe_fds[0]);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static bool count_child(void *ctx, const char *child)
{
    (*(int *)ctx)++;
    return !text_equal(child, "never");
}

static bool count_process(void *ctx, pid_t pid)
{
    (*(int *)ctx)++;
    return pid > 0;
}

static void test_cgroup_lists_children_and_processes(void **state)
{
    struct err err = {0};
    char name[CGROUP_NAME_SIZE];
    int children = 0, processes = 0;

    (void)state;
    need_cgroups();
    (void)text_copy(name, sizeof(name), name_of("one"));
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_int_equal(cgroup_create(tested, name_of("two"), &err), 0);
    int fd = start_family(name);
    assert_int_equal(cgroup_each_child(tested, parent, count_child, &children, &err), 0);
    assert_int_equal(children, 2);
    assert_int_equal(cgroup_each_process(tested, name, count_process, &processes, &err), 0);
    assert_int_equal(processes, 3);
    children = processes = 0;
    assert_int_equal(cgroup_each_child(tested, name_of("none"), count_child, &children, &err), 0);
    assert_int_equal(cgroup_each_process(tested, name_of("none"), count_process, &processes, &err),
                     0);
    assert_int_equal(children + processes, 0);
    empty(name);
    assert_family_dead(fd);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
    assert_int_equal(cgroup_remove(tested, name_of("two"), &err), 0);
}

static void test_cgroup_stats_sum_the_processes(void **state)
{
    struct cgroup_stats stats;
    struct err err = {0};
    const char *name = name_of("stats");

    (void)state;
    need_cgroups();
    assert_int_equal(cgroup_stats(tested, name, &stats, &err), ERR_GONE);
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    int fd = start_family(name);
    assert_int_equal(cgroup_stats(tested, name, &stats, &err), 0);
    assert_int_equal(stats.processes, 3);
    assert_true(stats.memory_rss_bytes > 0);
    assert_true(stats.memory_usage_bytes >= stats.memory_rss_bytes);
    assert_true(stats.memory_usage_bytes_max >= stats.memory_usage_bytes);
    assert_false(stats.oom_killed);
    empty(name);
    assert_family_dead(fd);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static void test_cgroup_memory_limit_kills_and_tells(void **state)
{
    struct cgroup_limits limits = {
        .memory_bytes_max = 4u << 20, .cpu_shares = 100, .cpu_weight = 17};
    struct err err = {0};
    const char *name = name_of("limit");
    int status;

    (void)state;
    need_cgroups();
    if (tested == CGROUP_V2 ? access("/sys/fs/cgroup/memory.stat", F_OK) != 0
                            : access("/sys/fs/cgroup/memory/memory.oom_control", F_OK) != 0) {
        print_message("skipped: no memory controller\n");
        skip();
    }
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_int_equal(cgroup_limit(tested, name, &limits, &err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (cgroup_enter(tested, name, 0, &err) != 0)
            _exit(1);
        for (;;) {
            volatile char *pages = malloc(1 << 20); /* volatile: a write that must happen */

            if (pages == NULL)
                _exit(2);
            for (int i = 0; i < 1 << 20; i += 1024)
                pages[i] = 1;
        }
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(cgroup_oom_killed(tested, name));
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static void test_cgroup_bounds_the_processors_of_all_in_it(void **state)
{
    struct cgroup_limits limits = {.cpus = "0"};
    struct err err = {0};
    const char *name = name_of("cpus/of/one");
    int status;

    (void)state;
    need_cgroups();
    if (access(tested == CGROUP_V2 ? "/sys/fs/cgroup/cpuset.cpus.effective"
                                   : "/sys/fs/cgroup/cpuset/cpuset.cpus",
               F_OK) != 0 ||
        sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        print_message("skipped: no cpuset controller, or one processor only\n");
        skip();
    }
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_int_equal(cgroup_limit(tested, name, &limits, &err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t allowed;

        if (cgroup_enter(tested, name, 0, &err) != 0 ||
            sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
            _exit(1);
        _exit(CPU_COUNT(&allowed) == 1 && CPU_ISSET(0, &allowed) ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    limits.cpus = "4096";
    assert_true(cgroup_limit(tested, name, &limits, &err) < 0); /* there is no such */
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

static void test_spawn_is_born_in_its_cgroup(void **state)
{
    char directory[CGROUP_NAME_SIZE + 64], text[1024] = "";
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"cat /proc/self/cgroup >&3"},
                          NULL};
    char *const no_environment[] = {NULL};
    struct err err = {0};
    const char *name = name_of("born");
    int pipe_fds[2];
    pid_t pid;

    (void)state;
    need_cgroups();
    cgroup_directory(tested, name, directory, sizeof(directory));
    if (tested == CGROUP_V1) {
        assert_string_equal(directory, "");
        return;
    }
    assert_int_equal(cgroup_create(tested, name, &err), 0);
    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    struct proc_spawn spawn = {.path = "/bin/sh",
                               .argv = argv,
                               .envp = no_environment,
                               .fds = &pipe_fds[1],
                               .fds_count = 1,
                               .cgroup = directory};
    assert_int_equal(proc_spawn(&spawn, &pid, NULL, &err), 0);
    assert_return_code(close(pipe_fds[1]), 0);
    for (ssize_t got, used = 0;
         (got = read(pipe_fds[0], text + used, sizeof(text) - 1 - (size_t)used)) > 0;)
        used += got;
    assert_return_code(close(pipe_fds[0]), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_non_null(strstr(text, name));
    empty(name);
    assert_int_equal(cgroup_remove(tested, name, &err), 0);
}

/* What a process of the cgroup BEFORE that has entered the unit above NAME, if there is one, says
 * of its cgroups. */
static void say_after_entering(const char *before, const char *name, char *ret_text, size_t size)
{
    int pipe_fds[2], status;
    size_t used = 0;

    assert_return_code(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(before, O_WRONLY);
        if (write(fd, "0", 1) != 1)
            _exit(1);
        cgroup_enter_unit(tested, name);
        (void)dup2(pipe_fds[1], 1);
        (void)execl("/bin/cat", "cat", "/proc/self/cgroup", NULL);
        _exit(1);
    }
    assert_return_code(close(pipe_fds[1]), 0);
    for (ssize_t got; (got = read(pipe_fds[0], ret_text + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    ret_text[used] = '\0';
    assert_return_code(close(pipe_fds[0]), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_cgroups_that_systemd_has_made_are_entered(void **state)
{
    static const char *const made[] = {"devices", "memory", "systemd"};
    char unit[64], below[80], before[128], path[128], text[4096];

    (void)state;
    need_cgroups();
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        (void)text_format(path, sizeof(path), "/sys/fs/cgroup/%s/cgroup.procs", made[i]);
        if (tested == CGROUP_V2 || access(path, W_OK) != 0) {
            print_message("skipped: needs hierarchies of version 1, systemd's among them\n");
            skip();
        }
    }
    (void)text_format(unit, sizeof(unit), "cairn-test-%d", (int)getpid());
    (void)text_format(below, sizeof(below), "%s.service/node/shims", unit);
    (void)text_format(before, sizeof(before), "/sys/fs/cgroup/devices/%s/tasks", unit);
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        (void)text_format(path, sizeof(path), "/sys/fs/cgroup/%s/%s%s", made[i], unit,
                          i == 0 ? "" : ".service");
        assert_return_code(mkdir(path, 0755), errno);
        say_after_entering(before, below, text, sizeof(text));
        (void)text_format(path, sizeof(path), ":devices:/%s\n", unit);
        assert_int_equal(strstr(text, path) != NULL, i < 2); /* until there is systemd's */
    }
    assert_non_null(strstr(text, ":devices:/\n"));
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        (void)text_format(path, sizeof(path), "%s:/%s.service\n", i == 2 ? "name=systemd" : made[i],
                          unit);
        assert_int_equal(strstr(text, path) != NULL, i > 0);
        (void)text_format(path, sizeof(path), "/sys/fs/cgroup/%s/%s%s", made[i], unit,
                          i == 0 ? "" : ".service");
        assert_return_code(rmdir(path), errno);
    }
}

static void test_mode_none_finds_nothing_and_succeeds(void **state)
{
    struct cgroup_stats stats;
    struct err err = {0};
    char directory[CGROUP_NAME_SIZE + 64];
    int fd = -1;

    (void)state;
    assert_int_equal(cgroup_create(CGROUP_NONE, "cairn/x", &err), 0);
    assert_int_equal(cgroup_enter(CGROUP_NONE, "cairn/x", 0, &err), 0);
    assert_int_equal(cgroup_populated(CGROUP_NONE, "cairn/x", &err), 0);
    assert_int_equal(cgroup_kill(CGROUP_NONE, "cairn/x", &err), 0);
    assert_int_equal(cgroup_remove(CGROUP_NONE, "cairn/x", &err), 0);
    assert_int_equal(cgroup_stats(CGROUP_NONE, "cairn/x", &stats, &err), ERR_UNSUPPORTED);
    assert_int_equal(cgroup_events_open(CGROUP_NONE, "cairn/x", &fd, &err), ERR_UNSUPPORTED);
    cgroup_directory(CGROUP_NONE, "cairn/x", directory, sizeof(directory));
    assert_string_equal(directory, "");
}

#define TESTS                                                                                      \
    cmocka_unit_test(test_cgroup_create_and_remove_may_be_repeated),                               \
        cmocka_unit_test(test_cgroup_names_that_leave_the_hierarchy_are_refused),                  \
        cmocka_unit_test(test_cgroup_kill_reaches_grandchildren_in_other_sessions),                \
        cmocka_unit_test(test_cgroup_kill_and_remove_go_below),                                    \
        cmocka_unit_test(test_cgroup_goes_however_deep_it_is_nested),                              \
        cmocka_unit_test(test_cgroup_kill_beats_a_process_that_keeps_forking),                     \
        cmocka_unit_test(test_cgroup_lists_children_and_processes),                                \
        cmocka_unit_test(test_cgroup_stats_sum_the_processes),                                     \
        cmocka_unit_test(test_cgroup_memory_limit_kills_and_tells),                                \
        cmocka_unit_test(test_cgroup_bounds_the_processors_of_all_in_it),                          \
        cmocka_unit_test(test_spawn_is_born_in_its_cgroup),                                        \
        cmocka_unit_test(test_cgroups_that_systemd_has_made_are_entered)

/* Removing the last child removes the parent: no trace of a run. */
static int assert_parent_gone(void **state)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                        "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/memory",
                                        "/sys/fs/cgroup/cpu"};
    char path[256];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        (void)text_format(path, sizeof(path), "%s/%s", roots[i], parent);
        if (access(path, F_OK) == 0) {
            print_message("left behind: %s\n", path);
            return -1;
        }
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest on_machine[] = {
        TESTS, cmocka_unit_test(test_mode_none_finds_nothing_and_succeeds)};
    const struct CMUnitTest on_v1[] = {TESTS};

    (void)text_format(parent, sizeof(parent), "cairn/test%08d", (int)getpid());
    machine = cgroup_mode();
    int failed = cmocka_run_group_tests_name("cgroup", on_machine, use_machine, assert_parent_gone);
    if (machine == CGROUP_V1)
        return failed;
    return failed + cmocka_run_group_tests_name("cgroup v1", on_v1, use_v1, assert_parent_gone);
}
