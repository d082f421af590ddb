/*
 * Making processes: spawn (a program of ours, from the daemon), become (a payload, from its shim)
 * and fork (a command in a task, from its helper, which listens meanwhile).
 *
 * The first two are a vfork by hand: the child borrows our memory until its exec, so that a start
 * costs the same from a daemon of any size, and it is born in its cgroup (clone3,
 * CLONE_INTO_CGROUP), so that there is no instant at which it shares the daemon's and no
 * migration, which stops every fork on the machine.  The child runs on our stack below our frame
 * while we wait, and reports trouble through the memory we share.
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNEL_SIGNALS = 64, KERNEL_SIGSET_BYTES = 8 };

struct plan {
    const struct proc_spawn *spawn;
    const char *volatile failed_at; /* written by the child, NULL if all went well */
    volatile int failed_os;
    struct rlimit files;
};

/* By hand, because the library refuses its two internal signals, which we might inherit ignored. */
PROC_IN_CHILD static void reset_signals(void)
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

/* Gives the child 0..2 as /dev/null or what it is to write to, and its own descriptors from 3 on.
 * They are first moved above the places they go to, so that none is overwritten before it was
 * copied. */
PROC_IN_CHILD static const char *arrange_fds(const struct proc_spawn *spawn)
{
    int count = (int)spawn->fds_count, moved[PROC_SPAWN_FDS_MAX];
    int standard[3] = {-1, spawn->out_fd > 0 ? spawn->out_fd : -1,
                       spawn->err_fd > 0 ? spawn->err_fd : -1};

    for (int i = 0; i < count; i++) {
        moved[i] = fcntl(spawn->fds[i], F_DUPFD, 3 + count);
        if (moved[i] < 0)
            return "copy a descriptor";
    }
    for (int i = 1; i < 3; i++) {
        if (standard[i] >= 0 && (standard[i] = fcntl(standard[i], F_DUPFD, 3 + count)) < 0)
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
        if (standard[i] < 0 ? null != i && dup2(null, i) < 0 : dup2(standard[i], i) < 0)
            return "place /dev/null";
    }
    if (syscall(SYS_close_range, 3 + count, ~0u, 0) != 0)
        return "close descriptors";
    return NULL;
}

PROC_IN_CHILD static const char *enter_cgroup(const char *directory)
{
    int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int procs = root < 0 ? -1 : openat(root, "cgroup.procs", O_WRONLY | O_CLOEXEC);

    return procs < 0 || write(procs, "0", 1) != 1 ? "enter its cgroup" : NULL;
}

/* Who we are is known to whoever looks before we are anything. */
PROC_IN_CHILD static const char *leave_note(const struct proc_spawn *spawn)
{
    struct proc_identity self = {.pid = 0};

    return proc_identify((pid_t)syscall(SYS_getpid), &self, NULL) == 0 &&
                   pwrite(spawn->note_fd, &self, sizeof(self), spawn->note_at) == sizeof(self)
               ? NULL
               : "write down who it is";
}

PROC_IN_CHILD static const char *carry_out(const struct plan *plan)
{
    const struct proc_spawn *spawn = plan->spawn;
    const char *failed = NULL;

    reset_signals();
    (void)umask(022); /* a thread of the pool has none; cannot fail */
    if (setsid() < 0)
        failed = "make a session";
    if (failed == NULL && spawn->ends_with_us &&
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        failed = "be ended with who made it";
    if (failed == NULL && spawn->note_fd > 0)
        failed = leave_note(spawn);
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

PROC_IN_CHILD static void run_plan(void *ctx)
{
    struct plan *plan = ctx;

    plan->failed_at = carry_out(plan);
    plan->failed_os = errno;
}

/* What a child does, in the cgroup of that directory first, unless it was born there: NULL. */
struct child {
    void (*run)(void *ctx);
    void *ctx;
    const char *cgroup;
    volatile int lost; /* why it could not enter the cgroup, written by the child */
};

PROC_IN_CHILD static void child_run(struct child *child)
{
    if (child->cgroup != NULL && enter_cgroup(child->cgroup) != NULL)
        child->lost = errno;
    else
        child->run(child->ctx);
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

PROC_IN_CHILD static long start_new(struct child *child, struct clone_args *args)
{
    long pid = call_here(SYS_clone3, (long)args, sizeof(*args), 0);

    if (pid == 0)
        child_run(child);
    return pid;
}

PROC_IN_CHILD static long start_old(struct child *child, const struct clone_args *args)
{
    long flags = (long)((args->flags & ~(__u64)CLONE_INTO_CGROUP) | SIGCHLD);
    long pid = call_here(SYS_clone, flags, 0, (long)args->pidfd);

    if (pid == 0)
        child_run(child);
    return pid;
}

static int open_cgroup(const char *directory, int *ret_fd, struct err *err)
{
    *ret_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0
               ? 0
               : err_os(err, err_from_errno(errno), errno, "cannot open the cgroup %s", directory);
}

/* The machine is out of something, for now. */
static int no_process(struct err *err, int os)
{
    int code = err_os(err, err_from_errno(os), os, "cannot make a process");

    if (err != NULL)
        err->recoverable = true;
    return code;
}

/* Returns when CHILD has become another program or ends.  A kernel (or its system call filter, as
 * in containers) without clone3 gets the old call, and the child enters CGROUP by itself. */
static int start(struct child *child, struct clone_args *args, const char *cgroup, pid_t *ret_pid,
                 struct err *err)
{
    scoped_fd int cgroup_fd = -1;
    int code = cgroup == NULL ? 0 : open_cgroup(cgroup, &cgroup_fd, err);

    if (code != 0)
        return code;
    args->exit_signal = SIGCHLD;
    args->flags |= CLONE_VM | CLONE_VFORK | (cgroup == NULL ? 0 : CLONE_INTO_CGROUP);
    args->cgroup = cgroup_fd < 0 ? 0 : (__u64)cgroup_fd;
    long pid = start_new(child, args);
    if (pid == -ENOSYS || pid == -EOPNOTSUPP) {
        child->cgroup = cgroup;
        pid = start_old(child, args);
    }
    if (pid < 0)
        return no_process(err, (int)-pid);
    *ret_pid = (pid_t)pid;
    return 0;
}

int proc_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
    int pidfd = -1;
    pid_t pid;
    sigset_t all, before;

    check(spawn->fds_count <= PROC_SPAWN_FDS_MAX);
    check(spawn->path[0] == '/');

    struct plan plan = {.spawn = spawn};
    struct child child = {.run = run_plan, .ctx = &plan};
    check(getrlimit(RLIMIT_NOFILE, &plan.files) == 0);
    if (spawn->files_soft != 0 && spawn->files_soft < plan.files.rlim_max)
        plan.files.rlim_cur = spawn->files_soft;
    struct clone_args args = {
        .flags = ret_pidfd == NULL ? 0 : CLONE_PIDFD,
        .pidfd = (__u64)(uintptr_t)&pidfd,
    };
    check(sigfillset(&all) == 0);
    check(sigprocmask(SIG_BLOCK, &all, &before) == 0); /* no handler of ours runs in the child */
    int code = start(&child, &args, spawn->cgroup, &pid, err);
    check(sigprocmask(SIG_SETMASK, &before, NULL) == 0);

    if (code != 0)
        return code;
    if (child.lost != 0)
        plan.failed_at = "enter its cgroup";
    if (plan.failed_at != NULL) {
        int os = child.lost != 0 ? child.lost : plan.failed_os;

        (void)waitpid(pid, NULL, 0); /* it is ending or has ended */
        if (pidfd >= 0)
            (void)close(pidfd); /* of a process that is gone */
        return err_os(err, err_from_errno(os), os, "cannot start %s: could not %s", spawn->path,
                      plan.failed_at);
    }
    *ret_pid = pid;
    if (ret_pidfd != NULL)
        *ret_pidfd = pidfd;
    return 0;
}

int proc_become(const char *cgroup, uint64_t namespaces, void (*run)(void *ctx), void *ctx,
                pid_t *ret_pid, struct err *err)
{
    struct child child = {.run = run, .ctx = ctx};
    struct clone_args args = {.flags = namespaces};
    pid_t pid;
    int code = start(&child, &args, cgroup, &pid, err);

    if (code != 0)
        return code;
    if (child.lost == 0) {
        *ret_pid = pid;
        return 0;
    }
    (void)waitpid(pid, NULL, 0); /* it is ending or has ended */
    return err_os(err, err_from_errno(child.lost), child.lost, "cannot enter the cgroup %s",
                  cgroup);
}

int proc_fork(const char *cgroup, uint64_t namespaces, pid_t *ret_pid, struct err *err)
{
    scoped_fd int cgroup_fd = -1;
    struct clone_args args = {.flags = namespaces, .exit_signal = SIGCHLD};

    if (cgroup != NULL) {
        int code = open_cgroup(cgroup, &cgroup_fd, err);
        if (code != 0)
            return code;
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
