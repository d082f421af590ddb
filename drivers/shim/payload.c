/*
 * The payload: finding its program, starting it, signalling it, ending it.
 *
 * Follows nomad v1.1.2 drivers/shared/executor/executor.go: the command is looked up in local/, the
 * task's directory, as an absolute path and in PATH; the payload leads a process group of its own
 * and works in the task's directory.  Unlike there, a file is only made executable if it lies
 * below the task's directory: a job must not change the modes of the host's files.  What lies there
 * is looked at beneath it, for the payload may have put links there; they are the exec's to follow,
 * as the task's user.
 *
 * The child has the shim's memory until its exec (proc_become): copying it, and taking the copy
 * apart, costs more than all that the child does.  The shim answers nobody meanwhile, and a file
 * system that lets the exec wait lets the shim wait, which a daemon bounds by ending it.
 *
 * Invariant: whoever sees the lock free knows that every process of the payload is in its cgroup.
 * The child holds the lock until it has entered, and the shim until it ends.
 */
#include "drivers/shim/shim.h"

#include "io/host.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ISOLATED_PATH                                                                              \
    "/usr/local/bin:/usr/bin:/bin" /* whatever the environment says, as in Nomad */

/* What the child was doing when it failed. */
enum step {
    STEP_NONE, /* it runs */
    STEP_CGROUP,
    STEP_STREAMS,
    STEP_NETWORK,
    STEP_HOSTNAME,
    STEP_ROOT,
    STEP_FIND,
    STEP_USER,
    STEP_DIRECTORY,
    STEP_RUN
};

/* --- finding the program --- */

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* DIRECTORY/NAME into TO; false if that is no file. */
static bool try_path(char to[PATH_MAX], const char *directory, size_t directory_length,
                     const char *name)
{
    return directory_length > 0 && directory_length < PATH_MAX &&
           text_format(to, PATH_MAX, "%.*s/%s", (int)directory_length, directory, name) &&
           is_file(to);
}

/* Adds r-x for everyone, unless the file has another name, which may be somebody else's. */
static void make_executable(int place, const struct stat *status)
{
    if ((status->st_mode & 0555) != 0555 && status->st_nlink == 1)
        (void)place_chmod(place, (status->st_mode & 07777) | 0555); /* else the exec says why */
}

static bool has_own_root(const struct launch *launch)
{
    return (launch->isolation & LAUNCH_OWN_ROOT) != 0;
}

/* MIDDLE and the command in the task's directory, by its path into TO; false if that is no file.
 * Where a link leads out of it we do not look: the exec will, as the task's user. */
static bool try_task(char to[PATH_MAX], const struct launch *launch, int task_fd,
                     const char *middle)
{
    const char *task_dir = has_own_root(launch) ? "" : launch->task_dir;
    const char *command = launch->command + strspn(launch->command, "/");
    size_t length = strlen(task_dir) + 1;
    struct stat status;

    if (!text_format(to, PATH_MAX, "%s/%s%s", task_dir, middle, command))
        return false;
    scoped_fd int place = beneath_follow(task_fd, to + length, O_PATH);
    if (place < 0)
        return place == -EXDEV || place == -ELOOP;
    if (fstat(place, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    make_executable(place, &status);
    return true;
}

static bool find_in_path(char to[PATH_MAX], const struct launch *launch)
{
    const char *path = has_own_root(launch) ? ISOLATED_PATH : DEFAULT_PATH;

    for (char **variable = launch->envp; !has_own_root(launch) && *variable != NULL; variable++) {
        if (text_starts_with(*variable, "PATH="))
            path = *variable + strlen("PATH=");
    }
    while (*path != '\0') {
        size_t length = strcspn(path, ":");

        if (*path == '/' && try_path(to, path, length, launch->command) && access(to, X_OK) == 0)
            return true;
        path += length;
        path += *path == ':';
    }
    return false;
}

bool payload_find_program(struct launch *launch, int task_fd)
{
    const char *command = launch->command;
    char *to = launch->program;

    if (try_task(to, launch, task_fd, "local/") || try_task(to, launch, task_fd, ""))
        return true;
    if (*command == '/')
        return text_copy(to, PATH_MAX, command) && is_file(to);
    return find_in_path(to, launch);
}

/* --- the child, until its exec --- */

void payload_set_oom_score(uint64_t adjustment)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    char text[24];

    (void)text_format(text, sizeof(text), "%llu", (unsigned long long)adjustment); /* fits */
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text)); /* the shim's own is lower; raising is allowed */
        (void)close(fd);
    }
}

static bool has_limits(const struct launch *launch)
{
    const struct cgroup_limits *limits = &launch->limits;

    return limits->memory_bytes_max > 0 || limits->memory_bytes_low > 0 || limits->cpu_shares > 0 ||
           limits->cpus != NULL;
}

/* On v2 and hybrid it was born in the one that tracks it; those of controllers are there where
 * there is something to limit. */
static bool enter_cgroups(const struct shim *shim, const struct launch *launch)
{
    if (shim->cgroup[0] == '\0')
        return true;
    if (launch->share != NULL) /* else the daemon comes for it: drivers/share.c */
        (void)cgroup_enter_controllers(shim->cgroup_mode, launch->share, 0, NULL);
    if (shim->cgroup_mode == CGROUP_V1)
        return cgroup_enter(shim->cgroup_mode, shim->cgroup, 0, NULL) == 0;
    return !has_limits(launch) ||
           cgroup_enter_controllers(shim->cgroup_mode, shim->cgroup, 0, NULL) == 0;
}

/* Into the root of its own; TASK_FD is exchanged for it. */
static bool enter_root(const struct launch *launch, int *task_fd, char ret_what[STEP_TEXT_SIZE])
{
    int code = isolate_root(launch, ret_what);
    int root_fd = code == 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (code != 0)
        errno = -code;
    *task_fd = root_fd; /* the other ends with us */
    return root_fd >= 0;
}

/* A payload that asks for a network of its own never runs in ours. */
static bool enter_network(const struct launch *launch)
{
    int fd = launch->network == NULL ? -1 : open(launch->network, O_RDONLY | O_CLOEXEC);

    return launch->network == NULL || (fd >= 0 && setns(fd, CLONE_NEWNET) == 0);
}

static bool enter_directory(const struct launch *launch, int task_fd)
{
    return (launch->work_dir == NULL ? fchdir(task_fd) : chdir(launch->work_dir)) == 0;
}

/* What the child, which has our memory until its exec, is to become; and what came of it. */
struct birth {
    const struct shim *shim;
    struct launch *launch;
    const int *streams;
    int task_fd;
    struct payload_failure failure;
};

PROC_IN_CHILD static enum step become(struct birth *birth)
{
    const struct shim *shim = birth->shim;
    struct launch *launch = birth->launch;
    const int *streams = birth->streams;
    int null, task_fd = birth->task_fd;

    if (!enter_cgroups(shim, launch))
        return STEP_CGROUP;
    (void)close(shim->task_fd); /* only now: see the head of this file */
    (void)setpgid(0, 0);        /* cannot fail: it leads none, and no session */
    shim_reset_signals();
    payload_set_oom_score(launch->oom_score_adj);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(streams[0] < 0 ? null : streams[0], 1) < 0 ||
        dup2(streams[1] < 0 ? null : streams[1], 2) < 0)
        return STEP_STREAMS;
    if (!enter_network(launch))
        return STEP_NETWORK;
    if (launch->hostname != NULL && sethostname(launch->hostname, strlen(launch->hostname)) != 0)
        return STEP_HOSTNAME;
    if (has_own_root(launch)) {
        if (!enter_root(launch, &task_fd, birth->failure.what))
            return STEP_ROOT;
        if (!payload_find_program(launch, task_fd))
            return STEP_FIND;
    }
    int code = isolate_user(launch);
    if (code != 0) {
        errno = -code;
        return STEP_USER;
    }
    if (!enter_directory(launch, task_fd))
        return STEP_DIRECTORY;
    /* Everything is close-on-exec at birth; this costs nothing and makes it certain. */
    (void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    (void)execve(launch->program, launch->argv, launch->envp);
    return STEP_RUN;
}

PROC_IN_CHILD static void run_child(void *ctx)
{
    struct birth *birth = ctx;
    enum step step = become(birth); /* returns only to fail */

    birth->failure.os = step == STEP_FIND ? 0 : errno;
    birth->failure.step = (int)step;
}

/* --- the shim's side --- */

/* The pipes of both streams; without logs the payload writes to /dev/null. */
static int open_streams(struct shim *shim, int ret_write_fds[2], struct err *err)
{
    ret_write_fds[0] = ret_write_fds[1] = -1;
    if (shim->log.name[0] == '\0')
        return 0;
    for (int i = 0; i < 2; i++) {
        int fds[2];

        log_open(&shim->streams[i], &shim->log, i == 0 ? "stdout" : "stderr");
        if (pipe2(fds, O_CLOEXEC) != 0)
            return err_os(err, err_from_errno(errno), errno, "cannot make a pipe");
        (void)fcntl(fds[0], F_SETFL, O_NONBLOCK); /* our end only; cannot fail */
        shim->streams[i].pipe_fd = fds[0];
        ret_write_fds[i] = fds[1];
    }
    return 0;
}

uint64_t payload_namespaces(const struct launch *launch)
{
    return (has_own_root(launch) ? CLONE_NEWNS : 0u) |
           ((launch->isolation & LAUNCH_OWN_PIDS) != 0 ? CLONE_NEWPID : 0u) |
           ((launch->isolation & LAUNCH_OWN_IPC) != 0 ? CLONE_NEWIPC : 0u) |
           (launch->hostname != NULL ? CLONE_NEWUTS : 0u);
}

static int make_payload(struct shim *shim, struct launch *launch, int task_fd, const int streams[2],
                        struct err *err)
{
    char directory[CGROUP_NAME_SIZE + 64] = "";
    struct birth birth = {.shim = shim, .launch = launch, .streams = streams, .task_fd = task_fd};
    pid_t pid;

    if (shim->cgroup[0] != '\0')
        cgroup_directory(shim->cgroup_mode, shim->cgroup, directory, sizeof(directory));
    /* That of mounts is entered when what it needs of the host has been copied. */
    uint64_t namespaces = payload_namespaces(launch) & ~(uint64_t)CLONE_NEWNS;
    int code = proc_become(directory[0] == '\0' ? NULL : directory, namespaces, run_child, &birth,
                           &pid, err);
    if (launch->switch_user)
        shim_dump_nothing(); /* our memory may be dumped as the machine wishes it of such users */
    if (code != 0)
        return code;
    if (birth.failure.step != STEP_NONE) {
        (void)waitpid(pid, NULL, 0); /* it is ending or has ended */
        shim->failure = birth.failure;
        return 0;
    }
    shim->payload_pid = pid;
    code = proc_identify(pid, &shim->payload, err);
    check(code == 0); /* our child, not reaped */
    return 0;
}

int payload_open_task(const struct launch *launch, int *ret_fd, struct err *err)
{
    scoped_fd int alloc_fd = open(launch->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = alloc_fd < 0 ? -errno
                          : beneath_open(alloc_fd, launch->task_in_alloc, O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
        return err_os(err, err_from_errno(-fd), -fd, "cannot open the task's directory");
    *ret_fd = fd;
    return 0;
}

/* As far as it can be known before the payload has a root of its own. */
static int look_for_program(struct launch *launch, int task_fd, struct err *err)
{
    if (launch->command[0] == '\0')
        return err_set(err, ERR_INVALID, "there is no command");
    if (!has_own_root(launch) && !payload_find_program(launch, task_fd))
        return err_set(err, ERR_GONE, "command \"%s\" not found", launch->command);
    return 0;
}

int payload_start(struct shim *shim, struct launch *launch, struct err *err)
{
    scoped_fd int task_fd = -1;
    int streams[2];
    int code = payload_open_task(launch, &task_fd, err);

    if (code == 0)
        code = look_for_program(launch, task_fd, err);
    (void)text_copy(shim->command, sizeof(shim->command), launch->command); /* for messages */
    (void)text_copy(shim->user_name, sizeof(shim->user_name), launch->user_name);
    if (code == 0 && shim->cgroup[0] != '\0')
        code = cgroup_create(shim->cgroup_mode, shim->cgroup, err);
    if (code == 0 && shim->cgroup[0] != '\0')
        code = cgroup_limit(shim->cgroup_mode, shim->cgroup, &launch->limits, err);
    if (code != 0)
        return code;
    code = open_streams(shim, streams, err);

    /* From here on a payload may have existed, and whoever finds the lock free knows it. */
    if (code == 0)
        code = task_file_begin(shim->task_fd, err);
    if (code == 0)
        code = make_payload(shim, launch, task_fd, streams, err);
    for (int i = 0; i < 2; i++) {
        if (streams[i] >= 0)
            (void)close(streams[i]); /* the payload's ends */
    }
    return code;
}

bool payload_failed(const struct shim *shim, struct err *err)
{
    const struct payload_failure *failure = &shim->failure;
    const char *command = shim->command;

    switch ((enum step)failure->step) {
    case STEP_NONE:
        return false;
    case STEP_CGROUP:
        (void)err_os(err, err_from_errno(failure->os), failure->os, "cannot enter the cgroup %s",
                     shim->cgroup);
        break;
    case STEP_STREAMS:
        (void)err_os(err, err_from_errno(failure->os), failure->os, "cannot set up its streams");
        break;
    case STEP_NETWORK:
        (void)err_os(err, err_from_errno(failure->os), failure->os,
                     "cannot enter the network namespace of its alloc");
        break;
    case STEP_HOSTNAME:
        (void)err_os(err, err_from_errno(failure->os), failure->os, "cannot have its hostname");
        break;
    case STEP_ROOT:
        if (failure->os == ESTALE)
            (void)err_set(err, ERR_GONE, "a volume is not mounted any more: could not %s",
                          failure->what);
        else
            (void)err_os(err, err_from_errno(failure->os), failure->os,
                         "cannot make the task's root: could not %s", failure->what);
        break;
    case STEP_FIND:
        (void)err_set(err, ERR_GONE, "command \"%s\" not found in the task's root", command);
        break;
    case STEP_USER:
        (void)err_os(err, err_from_errno(failure->os), failure->os, "cannot switch to user \"%s\"",
                     shim->user_name);
        break;
    case STEP_DIRECTORY:
        (void)err_os(err, err_from_errno(failure->os), failure->os,
                     "cannot change to its working directory");
        break;
    case STEP_RUN:
        if (failure->os == ENOENT)
            (void)err_os(err, ERR_GONE, failure->os,
                         "cannot run command \"%s\": the interpreter it names is missing", command);
        else if (failure->os == EACCES && shim->user_name[0] != '\0')
            (void)err_os(err, ERR_REFUSED, failure->os,
                         "cannot run command \"%s\" as user \"%s\", who may not read or reach it",
                         command, shim->user_name);
        else
            (void)err_os(err, err_from_errno(failure->os), failure->os, "cannot run command \"%s\"",
                         command);
        break;
    }
    err->recoverable = failure->os == EAGAIN || failure->os == ENOMEM || failure->os == EMFILE ||
                       failure->os == ENFILE || failure->os == ETXTBSY || failure->os == ESTALE;
    return true;
}

int payload_signal(struct shim *shim, int signal)
{
    /* Our own child and not reaped, so the number is its own. */
    if (shim->payload_pid <= 1)
        return ERR_GONE;
    return kill(shim->payload_pid, signal) == 0 ? 0 : err_from_errno(errno);
}

void payload_kill_all(struct shim *shim)
{
    if (shim->cgroup[0] != '\0')
        (void)cgroup_kill(shim->cgroup_mode, shim->cgroup, NULL); /* done again if it failed */
    /* It may have left the cgroup, the group, or not have made its group yet. */
    if (shim->payload_pid > 1) {
        (void)kill(-shim->payload_pid, SIGKILL);
        (void)payload_signal(shim, SIGKILL);
    }
}

static bool is_stray(void *ctx, pid_t pid)
{
    const struct shim *shim = ctx;

    return shim->cgroup[0] != '\0' && !cgroup_has(shim->cgroup_mode, shim->cgroup, pid);
}

void payload_kill_rest(struct shim *shim)
{
    if (shim->cgroup[0] != '\0')
        (void)cgroup_kill(shim->cgroup_mode, shim->cgroup, NULL); /* done again if it failed */
    size_t strays = proc_kill_descendants(&shim->self, is_stray, shim);
    if (strays > shim->strays)
        shim->strays = strays; /* those of the last time may still be dying */
}

static void leave_child(void *ctx, pid_t pid)
{
    const struct shim *shim = ctx;

    (void)cgroup_enter(shim->cgroup_mode, shim->cgroup, pid, NULL); /* a zombie does not */
}

void payload_leave_rest(struct shim *shim)
{
    if (shim->cgroup[0] != '\0' && cgroup_create(shim->cgroup_mode, shim->cgroup, NULL) == 0)
        proc_each_child(shim->self.pid, leave_child, shim);
}
