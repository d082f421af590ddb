/*
 * The raw limit of starting supervised payloads: COUNT static supervisors, each in a session of its
 * own with one payload, and nothing else.
 *
 *     bare COUNT PAYLOAD FIFO [ROOTS [plain]]   prints the milliseconds from the first spawn to the
 *                                               last byte
 *     bare - PAYLOAD FIFO [ROOT [plain]]        is one supervisor
 *
 * With ROOTS, an empty directory, and as root: each payload has the cgroups, a root below ROOTS
 * and the namespaces and mounts that a task of the driver exec has, made in the oldest and plainest
 * way.  With `plain` it has what a task of raw_exec has in its place: the directories of an alloc,
 * a tmpfs, files for its output and its state, a socket, and a cgroup.
 */
#include <errno.h>
#include <fcntl.h>
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

/* --- a root as a task of exec has --- */

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
                 mount(argv[4], argv[4], NULL, MS_BIND, NULL) != 0 || chdir(argv[4]) != 0;

    for (size_t i = 0; i < sizeof(host) / sizeof(*host) && !failed; i++) {
        (void)snprintf(from, sizeof(from), "/%s", host[i]);
        failed = access(from, F_OK) == 0 && bind_mount(from, host[i], own | MS_RDONLY, 0);
    }
    failed = failed || bind_mount(argv[2], "payload", MS_RDONLY, 1) ||
             bind_mount(argv[3], "fifo", 0, 1) || make("tmpfs", "alloc", own, NULL) ||
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

/* Where there is one tree it has all controllers; else they have trees of their own. */
static const struct {
    const char *tree, *file, *limit;
} cgroups[] = {
    {"unified", NULL, NULL},
    {"memory", "memory.limit_in_bytes", "33554432"},
    {"cpu", "cpu.shares", "50"},
};
enum { TREES = sizeof(cgroups) / sizeof(*cgroups) };

/* FILE of the cgroup that is named as ROOT is. */
static void name_in(char path[4096], const char *root, int tree, const char *file)
{
    int is_one = access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0;

    (void)snprintf(path, 4096, "/sys/fs/cgroup/%s/bare%s/%s", is_one ? "." : cgroups[tree].tree,
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

static int enter_cgroups(const char *root, int trees)
{
    char path[4096];
    int failed = 0;

    for (int i = 0; i < trees && !failed; i++) {
        name_in(path, root, i, "");
        if (mkdir(path, 0755) == 0)
            failed = tell_cgroup(root, i, "cgroup.procs", "0") ||
                     (cgroups[i].file != NULL &&
                      tell_cgroup(root, i, cgroups[i].file, cgroups[i].limit));
        else
            failed = errno != EEXIST; /* all are one */
    }
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

/* --- what a task of raw_exec has --- */

static int furnish(const char *root)
{
    static const char *const directories[] = {"alloc", "alloc/data", "alloc/logs", "alloc/tmp",
                                              "task",  "task/local", "task/tmp",   "task/secrets"};
    static const char *const files[] = {"state", "alloc/logs/stdout.0", "alloc/logs/stderr.0"};
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const size_t count = sizeof(directories) / sizeof(*directories);
    int failed = chdir(root) != 0;

    for (size_t i = 0; i < count && !failed; i++)
        failed = place(directories[i], 0);
    failed = failed || mount("tmpfs", "task/secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                             "size=1m,mode=0700") != 0;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !failed; i++)
        failed = place(files[i], 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return failed || fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
           listen(fd, 4) != 0;
}

static void clear_out(const char *root)
{
    char path[4096 + 32];

    (void)snprintf(path, sizeof(path), "%s/task/secrets", root);
    (void)umount2(path, MNT_DETACH);
}

/* --- */

static int supervise(char **argv)
{
    int is_plain = argv[4] != NULL && argv[5] != NULL;
    unsigned long flags =
        argv[4] == NULL || is_plain ? 0 : CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC;

    (void)setsid();
    if (argv[4] != NULL && (mkdir(argv[4], 0755) != 0 || (is_plain && furnish(argv[4]))))
        return 1;
    pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, NULL, NULL, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (argv[4] == NULL)
            execl(argv[2], argv[2], argv[3], (char *)NULL);
        else if (is_plain && !enter_cgroups(argv[4], 1))
            execl(argv[2], argv[2], argv[3], (char *)NULL);
        else if (!is_plain && !enter_cgroups(argv[4], TREES) && !isolate(argv))
            execl("/payload", "/payload", "/fifo", (char *)NULL);
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
        if (argc > 5)
            clear_out(root);
        end_cgroups(root);
    }
    return 0;
}
