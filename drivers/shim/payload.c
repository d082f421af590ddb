/*
 * The payload: finding its program, starting it, signalling it, ending it.
 *
 * Follows nomad v1.1.2 drivers/shared/executor/executor.go: the command is looked up in local/, the
 * task's directory, as an absolute path and in PATH; the payload leads a process group of its own
 * and works in the task's directory.  Unlike there, a file is only made executable if it lies
 * below the task's directory: a job must not change the modes of the host's files.
 *
 * Invariant: whoever sees the lock free knows that every process of the payload is in its cgroup.
 * The child holds the lock until it has entered, and the shim until it ends.
 */
#include "drivers/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child was doing when it failed. */
enum step { STEP_CGROUP = 1, STEP_STREAMS, STEP_USER, STEP_DIRECTORY, STEP_RUN };

struct failure {
    int32_t step, os;
};

/* --- finding the program --- */

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* DIRECTORY/[MIDDLE/]NAME into TO; false if that is no file. */
static bool try_path(char to[PATH_MAX], const char *directory, size_t directory_length,
                     const char *middle, const char *name)
{
    return directory_length > 0 && directory_length < PATH_MAX &&
           text_format(to, PATH_MAX, "%.*s/%s%s", (int)directory_length, directory, middle, name) &&
           is_file(to);
}

static bool find_in_path(char to[PATH_MAX], const struct launch *launch)
{
    const char *path = DEFAULT_PATH;

    for (char **variable = launch->envp; *variable != NULL; variable++) {
        if (text_starts_with(*variable, "PATH="))
            path = *variable + strlen("PATH=");
    }
    while (*path != '\0') {
        size_t length = strcspn(path, ":");

        if (*path == '/' && try_path(to, path, length, "", launch->command) &&
            access(to, X_OK) == 0)
            return true;
        path += length;
        path += *path == ':';
    }
    return false;
}

/* Adds r-x for everyone to TASK_DIR/RELATIVE, never through a link, never outside.  If that does
 * not work out, the exec will say why. */
static void make_executable(const char *task_dir, const char *relative)
{
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    struct stat status;
    int directory = open(task_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = (int)syscall(SYS_openat2, directory, relative, &how, sizeof(how));

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & 0555) != 0555)
        (void)fchmod(fd, (status.st_mode & 07777) | 0555); /* see above */
    if (fd >= 0)
        (void)close(fd); /* only looked at */
    if (directory >= 0)
        (void)close(directory);
}

static int find_program(struct launch *launch, struct err *err)
{
    const char *task_dir = launch->task_dir, *command = launch->command;
    char *to = launch->program;
    size_t length = strlen(task_dir);

    if (*command == '\0')
        return err_set(err, ERR_INVALID, "there is no command");
    if (try_path(to, task_dir, length, "local/", command) ||
        try_path(to, task_dir, length, "", command)) {
        make_executable(task_dir, to + length + 1);
        return 0;
    }
    if (*command == '/' && text_copy(to, PATH_MAX, command) && is_file(to))
        return 0;
    if (*command != '/' && find_in_path(to, launch))
        return 0;
    return err_set(err, ERR_GONE, "command \"%s\" not found", command);
}

/* --- the child, from fork to exec --- */

static int switch_user(const struct launch *launch)
{
    if (!launch->switch_user)
        return 0;
    if (setgroups(launch->groups_count, launch->groups) != 0 ||
        setresgid(launch->group_id, launch->group_id, launch->group_id) != 0 ||
        setresuid(launch->user_id, launch->user_id, launch->user_id) != 0)
        return -1;
    return 0;
}

static void set_oom_score(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "0", 1); /* the shim's own is lower; raising it is always allowed */
        (void)close(fd);
    }
}

static enum step become(const struct shim *shim, const struct launch *launch, const int streams[2])
{
    int null;

    if (shim->cgroup[0] != '\0' && shim->cgroup_mode == CGROUP_V1 &&
        cgroup_enter(shim->cgroup_mode, shim->cgroup, 0, NULL) != 0)
        return STEP_CGROUP;
    (void)close(shim->task_fd); /* only now: see the head of this file */
    (void)setpgid(0, 0);        /* the parent does it, too; one of us is first */
    proc_reset_signals();
    set_oom_score();
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(streams[0] < 0 ? null : streams[0], 1) < 0 ||
        dup2(streams[1] < 0 ? null : streams[1], 2) < 0)
        return STEP_STREAMS;
    if (switch_user(launch) != 0)
        return STEP_USER;
    if (chdir(launch->task_dir) != 0)
        return STEP_DIRECTORY;
    /* Everything is close-on-exec at birth; this costs nothing and makes it certain. */
    (void)syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    (void)execve(launch->program, launch->argv, launch->envp);
    return STEP_RUN;
}

static _Noreturn void run_child(const struct shim *shim, const struct launch *launch,
                                const int streams[2], int report_fd)
{
    struct failure failure = {.step = (int32_t)become(shim, launch, streams)};

    failure.os = errno;
    (void)!write(report_fd, &failure, sizeof(failure)); /* a pipe of ours: fits, one reader */
    _exit(127);
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

static int fork_payload(struct shim *shim, const struct launch *launch, const int streams[2],
                        struct err *err)
{
    char directory[CGROUP_NAME_SIZE + 64] = "";
    int report[2];
    pid_t pid;

    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot make a pipe");
    if (shim->cgroup[0] != '\0')
        cgroup_directory(shim->cgroup_mode, shim->cgroup, directory, sizeof(directory));
    int code = proc_fork(directory[0] == '\0' ? NULL : directory, &pid, err);
    if (code == 0 && pid == 0)
        run_child(shim, launch, streams, report[1]);
    (void)close(report[1]); /* the child's copy is what counts */
    if (code != 0) {
        (void)close(report[0]);
        return code;
    }
    (void)setpgid(pid, pid); /* fails if the child was first and has run its program */
    shim->exec_fd = report[0];
    shim->payload_pid = pid;
    code = proc_identify(pid, &shim->payload, err);
    check(code == 0); /* our child, not reaped */
    return 0;
}

int payload_start(struct shim *shim, struct launch *launch, struct err *err)
{
    int streams[2];
    int code = find_program(launch, err);

    (void)text_copy(shim->command, sizeof(shim->command), launch->command); /* for messages */
    (void)text_copy(shim->user_name, sizeof(shim->user_name), launch->user_name);
    if (code == 0 && shim->cgroup[0] != '\0')
        code = cgroup_create(shim->cgroup_mode, shim->cgroup, err);
    if (code != 0)
        return code;
    code = open_streams(shim, streams, err);

    /* From here on a payload may have existed, and whoever finds the lock free knows it. */
    if (code == 0)
        code = task_file_begin(shim->task_fd, err);
    if (code == 0)
        code = fork_payload(shim, launch, streams, err);
    for (int i = 0; i < 2; i++) {
        if (streams[i] >= 0)
            (void)close(streams[i]); /* the payload's ends */
    }
    return code;
}

bool payload_failed(struct shim *shim, struct err *err)
{
    struct failure failure;
    ssize_t got = read(shim->exec_fd, &failure, sizeof(failure));
    const char *command = shim->command;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    (void)close(shim->exec_fd); /* has told what it had to tell */
    shim->exec_fd = -1;
    if (got != (ssize_t)sizeof(failure))
        return false; /* closed by the exec */

    switch ((enum step)failure.step) {
    case STEP_CGROUP:
        (void)err_os(err, err_from_errno(failure.os), failure.os, "cannot enter the cgroup %s",
                     shim->cgroup);
        break;
    case STEP_STREAMS:
        (void)err_os(err, err_from_errno(failure.os), failure.os, "cannot set up its streams");
        break;
    case STEP_USER:
        (void)err_os(err, err_from_errno(failure.os), failure.os, "cannot switch to user \"%s\"",
                     shim->user_name);
        break;
    case STEP_DIRECTORY:
        (void)err_os(err, err_from_errno(failure.os), failure.os,
                     "cannot change to the task's directory");
        break;
    case STEP_RUN:
        if (failure.os == ENOENT)
            (void)err_os(err, ERR_GONE, failure.os,
                         "cannot run command \"%s\": the interpreter it names is missing", command);
        else
            (void)err_os(err, err_from_errno(failure.os), failure.os, "cannot run command \"%s\"",
                         command);
        break;
    }
    err->recoverable = failure.os == EAGAIN || failure.os == ENOMEM || failure.os == EMFILE ||
                       failure.os == ENFILE || failure.os == ETXTBSY;
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
    if (shim->cgroup[0] != '\0' && cgroup_kill(shim->cgroup_mode, shim->cgroup, NULL) == 0)
        return;
    if (shim->payload_pid > 1 && kill(-shim->payload_pid, SIGKILL) != 0)
        (void)payload_signal(shim, SIGKILL); /* it had not made its group yet */
}
