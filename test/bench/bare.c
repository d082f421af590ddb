/*
 * The raw limit of starting supervised payloads: COUNT static supervisors, each in a session of its
 * own with one payload, and nothing else.
 *
 *     bare COUNT PAYLOAD FIFO [ROOTS [plain]]   prints the milliseconds from the first spawn to the
 *                                               last byte
 *     bare - PAYLOAD FIFO [ROOT [plain]]        is one supervisor
 *
 * With ROOTS, an empty directory, and as root, each payload has what a task of the driver exec has
 * by the documents: the directories of its alloc and its own, a tmpfs for its secrets, files for
 * its output and its state, pipes for that output, a socket, a cgroup with the limits of its memory
 * and processors (one in each tree that knows some of it, where they are several), and namespaces
 * with a root and the mounts in it.  With `plain` it has what a task of raw_exec has: the same
 * without namespaces.  All is made by the calls that are the plainest for it, but for those that
 * stop every fork of the machine: payloads are born in their cgroup, and enter others by threads.
 * Nothing is kept that would find any of it again, and nothing reads what the payload says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* --- the root of a task of exec --- */

static int place(const char *path, int is_file)
{
    int fd = is_file ? open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0444) : -1;

    if (fd >= 0)
        (void)close(fd);
    return is_file ? fd < 0 : mkdir(path, 0755) != 0 && errno != EEXIST;
}

static int bind_mount(const char *from, const char *to, unsigned long flags, int is_file)
{
    return place(to, is_file) || mount(from, to, NULL, MS_BIND | MS_REC, NULL) != 0 ||
           (flags != 0 && mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | flags, NULL) != 0);
}

static int make(const char *type, const char *to, unsigned long flags, const char *options)
{
    return place(to, 0) || mount(type, to, type, flags, options) != 0;
}

static int isolate(char **argv)
{
    static const char *const host[] = {"bin", "etc", "lib", "lib32", "lib64", "sbin", "usr"};
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const fixed[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys"};
    static const char *const hidden[] = {"proc/kcore", "proc/keys", "proc/timer_list"};
    const unsigned long own = MS_NOSUID | MS_NODEV, quiet = own | MS_NOEXEC;
    char from[64];
    int failed = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
                 mount("task", "task", NULL, MS_BIND | MS_REC, NULL) != 0 || chdir("task") != 0;

    for (size_t i = 0; i < sizeof(host) / sizeof(*host) && !failed; i++) {
        (void)snprintf(from, sizeof(from), "/%s", host[i]);
        failed = access(from, F_OK) == 0 && bind_mount(from, host[i], own | MS_RDONLY, 0);
    }
    failed = failed || bind_mount(argv[2], "payload", MS_RDONLY, 1) ||
             bind_mount(argv[3], "fifo", 0, 1) || bind_mount("../alloc", "alloc", own, 0) ||
             make("proc", "proc", quiet, NULL) || make("sysfs", "sys", quiet | MS_RDONLY, NULL) ||
             make("tmpfs", "dev", quiet, "mode=755,size=64k") ||
             make("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666") ||
             make("tmpfs", "dev/shm", quiet, "mode=1777,size=65536k") ||
             make("mqueue", "dev/mqueue", quiet, NULL);
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices) && !failed; i++) {
        (void)snprintf(from, sizeof(from), "/dev/%s", devices[i]);
        failed = bind_mount(from, from + 1, MS_NOSUID | MS_NOEXEC, 1);
    }
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed) && !failed; i++)
        failed = bind_mount(fixed[i], fixed[i], quiet | MS_RDONLY, 0);
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden) && !failed; i++)
        failed =
            access(hidden[i], F_OK) == 0 && mount("/dev/null", hidden[i], NULL, MS_BIND, NULL) != 0;
    return failed || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ||
           chdir("/") != 0 || setgid(65534) != 0 || setuid(65534) != 0;
}

/* --- its cgroups --- */

/* Where there is one tree it has all controllers; else they have trees of their own. */
static const char *const trees[] = {"unified", "memory", "cpu"};
static const struct {
    int tree;
    const char *file, *file_of_one, *limit;
} limits[] = {
    {1, "memory.limit_in_bytes", "memory.max", "33554432"},
    {1, "memory.swappiness", "memory.swap.max", "0"},
    {2, "cpu.shares", "cpu.weight", "50"},
};
enum { TREES = sizeof(trees) / sizeof(*trees), LIMITS = sizeof(limits) / sizeof(*limits) };

static int is_one_tree(void)
{
    return access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0;
}

/* FILE of the cgroup that is named as ROOT is. */
static void name_in(char path[4096], const char *root, int tree, const char *file)
{
    (void)snprintf(path, 4096, "/sys/fs/cgroup/%s/bare%s/%s", is_one_tree() ? "." : trees[tree],
                   strrchr(root, '/') + 1, file);
}

static int tell_cgroup(const char *root, int tree, const char *file, const char *word)
{
    char path[4096];

    name_in(path, root, tree, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int failed = fd < 0 || write(fd, word, strlen(word)) < 0;
    if (fd >= 0)
        (void)close(fd);
    return failed;
}

/* Makes them, and opens the one that a payload is born in. */
static int make_cgroups(const char *root, int *ret_fd)
{
    char path[4096];
    int is_one = is_one_tree(), failed = 0;

    for (int i = 0; i < (is_one ? 1 : TREES) && !failed; i++) {
        name_in(path, root, i, "");
        failed = mkdir(path, 0755) != 0;
    }
    for (int i = 0; i < LIMITS && !failed; i++)
        failed = tell_cgroup(root, limits[i].tree, is_one ? limits[i].file_of_one : limits[i].file,
                             limits[i].limit);
    name_in(path, root, 0, "");
    *ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return failed || *ret_fd < 0;
}

static int enter_others(const char *root)
{
    int failed = 0;

    for (int i = 1; i < TREES && !is_one_tree() && !failed; i++)
        failed = tell_cgroup(root, i, "tasks", "0");
    return failed;
}

/* Whoever changes its user forgets that it should die with its parent. */
static void end_cgroups(const char *root)
{
    char path[4096];

    (void)tell_cgroup(root, 0, "cgroup.kill", "1");
    for (int i = 0; i < TREES; i++) {
        name_in(path, root, i, "");
        while (rmdir(path) != 0 && errno == EBUSY)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* it is dying */
    }
}

/* --- what a task has of either driver --- */

static int furnish(const char *root, int ret_output[2])
{
    static const char *const directories[] = {"alloc", "alloc/data", "alloc/logs", "alloc/tmp",
                                              "task",  "task/local", "task/tmp",   "task/secrets"};
    static const char *const files[] = {"state", "alloc/logs/stdout.0", "alloc/logs/stderr.0"};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const size_t count = sizeof(directories) / sizeof(*directories);
    int failed = mkdir(root, 0755) != 0 || chdir(root) != 0;

    for (size_t i = 0; i < count && !failed; i++)
        failed = place(directories[i], 0);
    failed = failed || mount("tmpfs", "task/secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                             "size=1m,mode=0700") != 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !failed; i++)
        failed = place(files[i], 1);
    for (int i = 0; i < 2 && !failed; i++) {
        int ends[2];

        failed = pipe2(ends, O_CLOEXEC) != 0;
        ret_output[i] = ends[1];
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return failed || fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
           listen(fd, 4) != 0;
}

static void clear_out(const char *root)
{
    char path[4096 + 32];

    (void)snprintf(path, sizeof(path), "%s/task/secrets", root);
    (void)umount2(path, MNT_DETACH);
    end_cgroups(root);
}

/* --- */

static void become(char **argv, const int output[2])
{
    int is_plain = argv[4] != NULL && argv[5] != NULL;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argv[4] != NULL && (enter_others(argv[4]) || dup2(output[0], 1) < 0 ||
                            dup2(output[1], 2) < 0 || (!is_plain && isolate(argv))))
        return;
    if (argv[4] != NULL && !is_plain)
        execl("/payload", "/payload", "/fifo", (char *)NULL);
    else
        execl(argv[2], argv[2], argv[3], (char *)NULL);
}

static int supervise(char **argv)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    int cgroup = -1, output[2] = {-1, -1};

    (void)setsid();
    if (argv[4] != NULL && (furnish(argv[4], output) || make_cgroups(argv[4], &cgroup)))
        return 1;
    if (argv[4] != NULL) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = (__u64)cgroup;
        args.flags |= argv[5] != NULL ? 0 : CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;
    }
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0) {
        become(argv, output);
        _exit(127);
    }
    return pid < 0 || waitpid(pid, NULL, 0) < 0;
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 6)
        return 2;
    if (strcmp(argv[1], "-") == 0)
        return supervise(argv);

    int count = (int)strtol(argv[1], NULL, 10), alive = 0, fifo = open(argv[3], O_RDWR);
    pid_t *pids = calloc((size_t)count, sizeof(*pids));
    if (count <= 0 || fifo < 0 || pids == NULL)
        return 1;
    double start = now_ms();
    for (int i = 0; i < count; i++) {
        char root[4096],
            *child[] = {
                argv[0], "-", argv[2], argv[3], argc > 4 ? root : NULL, argc > 5 ? argv[5] : NULL,
                NULL};

        if (argc > 4)
            (void)snprintf(root, sizeof(root), "%s/%d", argv[4], i);
        if (posix_spawn(&pids[i], "/proc/self/exe", NULL, NULL, child, environ) != 0)
            return 1;
    }
    while (alive < count) {
        char bytes[512];
        ssize_t got = read(fifo, bytes, sizeof(bytes));
        if (got <= 0)
            return 1;
        alive += (int)got;
    }
    (void)printf("%.3f\n", now_ms() - start);
    for (int i = 0; i < count; i++)
        (void)kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++)
        (void)waitpid(pids[i], NULL, 0);
    for (int i = 0; i < count && argc > 4; i++) {
        char root[4096];

        (void)snprintf(root, sizeof(root), "%s/%d", argv[4], i);
        clear_out(root);
    }
    return 0;
}
