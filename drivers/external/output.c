/*
 * Who reads what the driver of a task writes: drivers/shim/reader.c, a process that outlives us.
 *
 * It is found again by what it writes into the task's file before it begins, with the file's lock
 * held until then: nobody looks while somebody is being made, and never are there two.  If it is
 * killed another one is made; meanwhile we have the pipes open, so that nobody who writes is hurt.
 */
#include "drivers/external/external.h"

#include "drivers/shim/reader.h"
#include "io/log.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBER_SIZE = 24 };

#define LOGS "alloc/logs"

_Static_assert((int)OUTPUTS == (int)READER_STREAMS, "it reads all of them");
_Static_assert(READER_AT + sizeof(struct proc_identity) <= HANDLE_AT, "it has its place");

void output_name(const struct driver_key *key, size_t stream, char to[OUTPUT_NAME_SIZE])
{
    check(text_format(to, OUTPUT_NAME_SIZE, "%016llx.%s", (unsigned long long)key_digest(key),
                      stream == 0 ? "out" : "err")); /* key_remove_files removes them */
}

/* The pipes, made if they are not there, and open in both directions. */
static int open_pipes(const struct external *external, int to[OUTPUTS], struct err *err)
{
    const struct run *run = external->run;
    int shim_fd = run->drivers->shim_fd;

    for (size_t i = 0; i < OUTPUTS; i++) {
        char name[OUTPUT_NAME_SIZE];
        struct stat status;

        output_name(&run->key, i, name);
        if (mkfifoat(shim_fd, name, 0600) != 0 && errno != EEXIST)
            return err_os(err, err_from_errno(errno), errno, "cannot make a pipe for its output");
        to[i] = openat(shim_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (to[i] < 0 || fstat(to[i], &status) != 0 || !S_ISFIFO(status.st_mode))
            return err_os(err, err_from_errno(errno), errno, "cannot open a pipe of its output");
    }
    return 0;
}

static void close_pipes(int fds[OUTPUTS])
{
    for (size_t i = 0; i < OUTPUTS; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]); /* whoever reads has another */
        fds[i] = -1;
    }
}

static int spawn(const struct external *external, int task_fd, const int pipes[OUTPUTS],
                 pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
    struct drivers *drivers = external->run->drivers;
    const struct external_record *record = &external->record;
    char shims[CGROUP_NAME_SIZE], cgroup[CGROUP_NAME_SIZE + 64], files[NUMBER_SIZE],
        bytes[NUMBER_SIZE];
    char *const argv[] = {(char[]){READER_PROGRAM},
                          (char *)(uintptr_t)record->alloc_dir,
                          (char[]){LOGS},
                          (char *)(uintptr_t)external->run->key.task,
                          files,
                          bytes,
                          NULL},
                *const envp[] = {NULL};

    check(text_format(files, sizeof(files), "%llu", (unsigned long long)record->log_files_max));
    check(text_format(bytes, sizeof(bytes), "%llu", (unsigned long long)record->log_bytes_max));
    shims_cgroup(drivers, shims);
    cgroup_directory(drivers->config.cgroup_mode, shims, cgroup, sizeof(cgroup));
    const struct proc_spawn how = {.path = drivers->shim_path,
                                   .argv = argv,
                                   .envp = envp,
                                   .directory = drivers->shim_dir,
                                   .fds = pipes,
                                   .fds_count = OUTPUTS,
                                   .cgroup = cgroup[0] == '\0' ? NULL : cgroup,
                                   .note_fd = task_fd,
                                   .note_at = READER_AT};
    int code = proc_spawn(&how, ret_pid, ret_pidfd, err);
    if (code == ERR_GONE && cgroup_create(drivers->config.cgroup_mode, shims, NULL) == 0) {
        *err = (struct err){0}; /* somebody tidied up our cgroup */
        code = proc_spawn(&how, ret_pid, ret_pidfd, err);
    }
    if (code == 0 && how.cgroup == NULL) /* else it was born in it */
        (void)cgroup_enter(drivers->config.cgroup_mode, shims, *ret_pid, NULL);
    return code;
}

static void on_gone(struct io_watch *watch, int events);

/* What is written stays in the pipes, whatever becomes of who reads. */
static void keep_pipes(struct external *external)
{
    const struct run *run = external->run;

    for (size_t i = 0; i < OUTPUTS; i++) {
        char name[OUTPUT_NAME_SIZE];

        output_name(&run->key, i, name);
        if (external->pipe_fds[i] < 0)
            external->pipe_fds[i] =
                openat(run->drivers->shim_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    }
}

static void watch_it(struct external *external, const struct proc_identity *reader, int pidfd)
{
    external->reader = *reader;
    external->reader_fd = pidfd;
    keep_pipes(external);
    io_watch_start(external->run->drivers->config.loop, &external->reader_watch, pidfd,
                   IO_READABLE | IO_CROWD, on_gone, external);
}

/* The one that the file names, if it lives. */
static bool find(struct external *external, int task_fd)
{
    struct proc_identity reader;
    int pidfd;

    if (pread(task_fd, &reader, sizeof(reader), READER_AT) != (ssize_t)sizeof(reader) ||
        reader.pid < 2 || !proc_is_alive(&reader) || proc_open(&reader, &pidfd, NULL) != 0)
        return false;
    watch_it(external, &reader, pidfd);
    return true;
}

void output_find(struct external *external)
{
    const struct run *run = external->run;
    char name[KEY_NAME_SIZE];

    check(key_name(&run->key, name, NULL) == 0);
    scoped_fd int task_fd = openat(run->drivers->shim_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (task_fd >= 0 && external->reader_fd < 0)
        (void)find(external, task_fd); /* none: it has ended */
}

int output_begin(struct external *external, struct err *err)
{
    const struct run *run = external->run;
    char name[KEY_NAME_SIZE];
    int pipes[OUTPUTS] = {-1, -1}, pidfd;
    pid_t pid;

    if (external->record.log_bytes_max == 0 || external->reader_fd >= 0)
        return 0;
    check(key_name(&run->key, name, NULL) == 0);
    scoped_fd int task_fd = openat(run->drivers->shim_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (task_fd < 0 || flock(task_fd, LOCK_EX | LOCK_NB) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot lock the task's file");
    if (find(external, task_fd))
        return 0;
    int code = open_pipes(external, pipes, err);
    if (code == 0)
        code = spawn(external, task_fd, pipes, &pid, &pidfd, err);
    if (code == 0) {
        struct proc_identity reader = {.pid = pid};

        (void)proc_identify(pid, &reader, NULL); /* our child, a zombie at worst */
        watch_it(external, &reader, pidfd);
    }
    close_pipes(pipes);
    return code;
}

void output_see(struct external *external)
{
    struct err err = {0};

    if (output_begin(external, &err) != 0)
        log_warn("drivers", "nobody reads the output task=%s/%s error=%s", external->run->key.alloc,
                 external->run->key.task, log_value(err.text));
}

static void on_gone(struct io_watch *watch, int events)
{
    struct external *external = watch->ctx;
    void (*on_drained)(struct external * external) = external->on_drained;
    siginfo_t info;
    (void)events;

    (void)waitid(P_PIDFD, (id_t)external->reader_fd, &info, WEXITED | WNOHANG); /* ours, or not */
    io_watch_stop(watch);
    (void)close(external->reader_fd); /* of a process, not of data */
    external->reader_fd = -1;
    if (on_drained != NULL)
        on_drained(external);
    else if (!external->has_ended)
        output_see(external);
}

void output_drain(struct external *external, void (*on_drained)(struct external *external))
{
    external->on_drained = on_drained;
    if (external->reader_fd >= 0)
        (void)proc_signal(&external->reader, READER_END, NULL); /* gone: that is seen next */
}

bool output_is_open(const struct external *external)
{
    return external->reader_fd >= 0;
}

void output_let_go(struct external *external)
{
    io_watch_stop(&external->reader_watch);
    if (external->reader_fd >= 0)
        (void)close(external->reader_fd); /* likewise */
    external->reader_fd = -1;
    close_pipes(external->pipe_fds);
}
