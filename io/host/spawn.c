/*
 * Making processes: spawn (a program of ours, from the daemon) and fork (a payload, from its shim).
 *
 * Spawn is a vfork by hand: the child borrows our memory until its exec, so that a start costs the
 * same from a daemon of any size, and it is born in its cgroup (clone3, CLONE_INTO_CGROUP), so that
 * there is no instant at which it shares the daemon's and no migration, which stops every
 * fork on the machine.  The child runs on our stack below our frame while we wait; it only makes
 * system calls, and reports trouble through the memory we share.
 */
#include "io/proc.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child never returns into instrumented frames to clean their shadow: it must leave none. */
#define IN_CHILD __attribute__((noinline, no_sanitize("address", "undefined")))

enum { KERNEL_SIGNALS = 64, KERNEL_SIGSET_BYTES = 8 };

struct plan {
    const struct proc_spawn *spawn;
    const char *volatile failed_at; /* written by the child, NULL if all went well */
    volatile int failed_os;
    bool enter_cgroup; /* not born there */
    struct rlimit files;
};

/* By hand, because the library refuses its two internal signals, which we might inherit ignored. */
IN_CHILD static void reset_signals(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags, restorer, mask;
    } default_action = {.handler = SIG_DFL};
    unsigned long none = 0;

    for (int number = 1; number <= KERNEL_SIGNALS; number++)
        (void)syscall(SYS_rt_sigaction, number, &default_action, NULL,
                      KERNEL_SIGSET_BYTES); /* KILL and STOP refuse, rightly */
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL,
                  KERNEL_SIGSET_BYTES); /* cannot fail */
}

/* Gives the child 0..2 as /dev/null and its own descriptors from 3 on.  They are first moved above
 * the places they go to, so that none is overwritten before it was copied. */
IN_CHILD static const char *arrange_fds(const struct proc_spawn *spawn)
{
    int count = (int)spawn->fds_count, moved[PROC_SPAWN_FDS_MAX];

    for (int i = 0; i < count; i++) {
        moved[i] = fcntl(spawn->fds[i], F_DUPFD, 3 + count);
        if (moved[i] < 0)
            return "copy a descriptor";
    }
    for (int i = 0; i < count; i++) {
        if (dup2(moved[i], 3 + i) < 0)
            return "place a descriptor";
    }
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        return "open /dev/null";
    for (int i = 0; i < 3; i++) {
        if (null != i && dup2(null, i) < 0)
            return "place /dev/null";
    }
    if (syscall(SYS_close_range, 3 + count, ~0u, 0) != 0)
        return "close descriptors";
    return NULL;
}

IN_CHILD static const char *enter_cgroup(const char *directory)
{
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int procs = root < 0 ? -1 : openat(root, "cgroup.procs", O_WRONLY | O_CLOEXEC);

    return procs < 0 || write(procs, "0", 1) != 1 ? "enter its cgroup" : NULL;
}

IN_CHILD static const char *become(const struct plan *plan)
{
    const struct proc_spawn *spawn = plan->spawn;
    const char *failed = NULL;

    reset_signals();
    (void)umask(022); /* a thread of the pool has none; cannot fail */
    if (plan->enter_cgroup)
        failed = enter_cgroup(spawn->cgroup);
    if (failed == NULL && setsid() < 0)
        failed = "make a session";
    if (failed == NULL)
        failed = arrange_fds(spawn);
    if (failed == NULL && spawn->files_soft != 0 &&
        syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &plan->files, NULL) != 0)
        failed = "limit its descriptors";
    if (failed == NULL && spawn->directory != NULL && chdir(spawn->directory) != 0)
        failed = "change to its directory";
    if (failed == NULL) {
        (void)execve(spawn->path, spawn->argv, spawn->envp); /* returns only to fail */
        failed = "run it";
    }
    return failed;
}

IN_CHILD static void child_run(struct plan *plan)
{
    plan->failed_at = become(plan);
    plan->failed_os = errno;
    for (;;)
        (void)syscall(SYS_exit_group, 127); /* ends us without the library's farewell */
}

/* The child comes back here on our own stack, so nothing may be pushed between the two returns:
 * the call instruction itself is part of our frame. */
__attribute__((always_inline)) static inline long call_here(long number, long a, long b, long c)
{
#if defined(__x86_64__)
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#else
#error "say how this machine calls its kernel"
#endif
}

/* Returns the pid, or a negative errno.  A kernel (or its system call filter, as in containers)
 * without clone3 gets the old call, and the child enters its cgroup by itself. */
IN_CHILD static long start_child(struct plan *plan, struct clone_args *args)
{
    long pid = call_here(SYS_clone3, (long)args, sizeof(*args), 0);

    if (pid == 0)
        child_run(plan);
    return pid;
}

IN_CHILD static long start_child_old(struct plan *plan, struct clone_args *args)
{
    long flags = (long)((args->flags & ~(__u64)CLONE_INTO_CGROUP) | SIGCHLD);
    long pid = call_here(SYS_clone, flags, 0, (long)args->pidfd);

    if (pid == 0)
        child_run(plan);
    return pid;
}

/* The machine is out of something, for now. */
static int no_process(struct err *err, int os)
{
    int code = err_os(err, err_from_errno(os), os, "cannot make a process");

    if (err != NULL)
        err->recoverable = true;
    return code;
}

int proc_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
    scoped_fd int cgroup_fd = -1;
    int pidfd = -1;
    sigset_t all, before;

    check(spawn->fds_count <= PROC_SPAWN_FDS_MAX);
    check(spawn->path[0] == '/');
    if (spawn->cgroup != NULL) {
        cgroup_fd = open(spawn->cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cgroup_fd < 0)
            return err_os(err, err_from_errno(errno), errno, "cannot open the cgroup %s",
                          spawn->cgroup);
    }

    struct plan plan = {.spawn = spawn};
    check(getrlimit(RLIMIT_NOFILE, &plan.files) == 0);
    if (spawn->files_soft != 0 && spawn->files_soft < plan.files.rlim_max)
        plan.files.rlim_cur = spawn->files_soft;
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | (ret_pidfd == NULL ? 0 : CLONE_PIDFD) |
                 (spawn->cgroup == NULL ? 0 : CLONE_INTO_CGROUP),
        .pidfd = (__u64)(uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
        .cgroup = cgroup_fd < 0 ? 0 : (__u64)cgroup_fd,
    };
    check(sigfillset(&all) == 0);
    check(sigprocmask(SIG_BLOCK, &all, &before) == 0); /* no handler of ours runs in the child */
    long pid = start_child(&plan, &args);
    if (pid == -ENOSYS || pid == -EOPNOTSUPP) {
        plan.enter_cgroup = spawn->cgroup != NULL;
        pid = start_child_old(&plan, &args);
    }
    check(sigprocmask(SIG_SETMASK, &before, NULL) == 0);

    if (pid < 0)
        return no_process(err, (int)-pid);
    if (plan.failed_at != NULL) {
        int os = plan.failed_os;

        (void)waitpid((pid_t)pid, NULL, 0); /* it is ending or has ended */
        if (pidfd >= 0)
            (void)close(pidfd); /* of a process that is gone */
        return err_os(err, err_from_errno(os), os, "cannot start %s: could not %s", spawn->path,
                      plan.failed_at);
    }
    *ret_pid = (pid_t)pid;
    if (ret_pidfd != NULL)
        *ret_pidfd = pidfd;
    return 0;
}

int proc_fork(const char *cgroup, uint64_t namespaces, pid_t *ret_pid, struct err *err)
{
    scoped_fd int cgroup_fd = -1;
    struct clone_args args = {.flags = namespaces, .exit_signal = SIGCHLD};

    if (cgroup != NULL) {
        cgroup_fd = open(cgroup, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (cgroup_fd < 0)
            return err_os(err, err_from_errno(errno), errno, "cannot open the cgroup %s", cgroup);
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (__u64)cgroup_fd;
    }
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) {
        pid = syscall(SYS_clone, namespaces | SIGCHLD, 0, NULL, NULL, 0);
        if (pid == 0 && cgroup != NULL && enter_cgroup(cgroup) != NULL)
            _exit(127);
    }
    if (pid < 0)
        return no_process(err, errno);
    *ret_pid = (pid_t)pid;
    return 0;
}
