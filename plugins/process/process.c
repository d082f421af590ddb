/*
 * A plugin's process from its launch to its end.
 *
 * What is waited for is a line in a file, or the end of a process that may be nobody's child of
 * ours: a change of the file and a descriptor of the process tell, and a timer when neither does.
 *
 * Invariant: while there is a `done`, exactly one step is under way; without one, none.
 */
#include "plugins/process/part.h"

#include "io/grpc.h"
#include "io/log.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE_LIMIT_MS = 55 * 1000, /* below that of its machine: it has the better reason */
    LOCKED_MS = 50,            /* until a lock is looked at again: a process is being made */
    SHUTDOWN_MS = 2000,        /* for it to answer, and then to end */
    TERM_MS = 2000,
    KILL_MS = 10 * 1000,
    LINE_BYTES_MAX = 4096,
    SOCKET_NAME_MAX = sizeof("/sockets/plugin4294967295"),
};

enum want { WANT_LAUNCHED, WANT_FOUND, WANT_ENDED };

enum step {
    STEP_NONE,
    STEP_LOCKED,   /* its record is locked by who is being made */
    STEP_LINE,     /* it is to say where it answers */
    STEP_SHUTDOWN, /* it was asked to end */
    STEP_TERM,
    STEP_KILL,
};

struct process {
    struct loop *loop;
    char *name, *directory, *program, *cgroup; /* owned */
    char **arguments;                          /* owned */
    uint64_t digest;
    enum cgroup_mode cgroup_mode;
    void (*on_exit)(void *ctx, const struct process_end *end);
    void *ctx;

    struct record record; /* as it is in the file */
    struct proc_identity identity;
    int pidfd; /* -1: none runs that is known */
    struct io_watch watch;
    struct log_tail tail;

    enum step step;
    uint32_t generation; /* of what is done */
    enum want want;
    process_done *done;
    void *done_ctx;
    struct io_timer timer;
    struct io_change change; /* of `out` */
    struct grpc_request *shutdown;
};

static char *copy(const char *text)
{
    char *copied = strdup(text);

    check(copied != NULL);
    return copied;
}

static char **copy_all(const char *const *texts)
{
    size_t count = 0;

    while (texts[count] != NULL)
        count++;
    char **copies = calloc(count + 1, sizeof(*copies));
    check(copies != NULL);
    for (size_t i = 0; i < count; i++)
        copies[i] = copy(texts[i]);
    return copies;
}

struct process *process_new(const struct process_config *config, struct err *err)
{
    if (strlen(config->directory) + SOCKET_NAME_MAX > PROCESS_SOCKET_MAX + 1) {
        (void)err_set(err, ERR_LIMIT, "the path of %s is too long for sockets in it",
                      config->directory); /* NULL says it */
        return NULL;
    }
    struct process *process = calloc(1, sizeof(*process));
    check(process != NULL);
    process->loop = config->loop;
    process->name = copy(config->name);
    process->directory = copy(config->directory);
    process->program = copy(config->program);
    process->cgroup = copy(config->cgroup);
    process->arguments = copy_all(config->arguments);
    process->digest = config->digest;
    process->cgroup_mode = config->cgroup_mode;
    process->on_exit = config->on_exit;
    process->ctx = config->ctx;
    process->pidfd = -1;
    process->tail = (struct log_tail){.name = process->name, .fd = -1};
    return process;
}

/* --- what is followed of it --- */

static void stop_waiting(struct process *process)
{
    io_timer_stop(&process->timer);
    io_change_stop(&process->change);
    if (process->shutdown != NULL) {
        struct grpc_request *shutdown = process->shutdown;

        process->shutdown = NULL;
        grpc_cancel(shutdown);
    }
    process->step = STEP_NONE;
}

static void let_go(struct process *process)
{
    io_watch_stop(&process->watch);
    if (process->pidfd >= 0)
        (void)close(process->pidfd); /* of a process, not of data */
    process->pidfd = -1;
    process->identity = (struct proc_identity){.pid = 0};
}

void process_free(struct process *process)
{
    if (process == NULL)
        return;
    process->done = NULL;
    stop_waiting(process);
    let_go(process);
    log_tail_stop(&process->tail);
    for (size_t i = 0; process->arguments[i] != NULL; i++)
        free(process->arguments[i]);
    free(process->arguments);
    free(process->name);
    free(process->directory);
    free(process->program);
    free(process->cgroup);
    free(process);
}

static void finish(struct process *process, const struct err *err)
{
    process_done *done = process->done;

    stop_waiting(process);
    process->done = NULL;
    if (done != NULL)
        done(process->done_ctx, err);
}

static void begin(struct process *process, enum want want, uint32_t generation, process_done *done,
                  void *ctx)
{
    check(done != NULL);
    if (process->done != NULL) { /* what is begun in its place is what is wanted now */
        struct err err;

        (void)err_set(&err, ERR_CANCELED, "something else is wanted of it by now");
        finish(process, &err);
    }
    stop_waiting(process);
    process->generation = generation;
    process->want = want;
    process->done = done;
    process->done_ctx = ctx;
}

static void fail(struct process *process, const struct err *err)
{
    struct err told = *err;

    if (process->want == WANT_FOUND) /* whatever it is: it is not the one that was launched */
        told.recoverable = true;
    finish(process, &told);
}

/* --- its record --- */

static int with_record(struct process *process, int *ret_fd, struct err *err)
{
    int code = directory_make_all(process->directory, 0700, err);

    return code == 0 ? record_open(process->directory, ret_fd, err) : code;
}

static void keep_record(struct process *process)
{
    struct err err = {0};
    scoped_fd int fd = -1;

    if (with_record(process, &fd, &err) == 0 && record_write(fd, &process->record, &err) == 0)
        return;
    log_warn("plugins", "%s plugin=%s", err.text, log_value(process->name));
}

/* Nothing is known of one any more but whether it leaves tasks. */
static void forget(struct process *process)
{
    uint8_t marks = process->record.marks & PROCESS_LEAVES_TASKS;

    memset(&process->record, 0, sizeof(process->record));
    process->record.version = RECORD_VERSION;
    process->record.marks = marks;
}

/* Nothing is left of it: neither what it has started, nor what it has made to listen on. */
static void clean_up(struct process *process)
{
    char path[PATH_SIZE];
    struct err err = {0};
    bool leaves = process_is(process, PROCESS_LEAVES_TASKS);

    forget(process);
    keep_record(process);
    check(path_join(path, process->directory, "sockets") == 0); /* process_new has looked */
    (void)sockets_clear(path, leaves, NULL); /* they are cleared again for the next one */
    if (leaves)
        return;
    if (cgroup_kill(process->cgroup_mode, process->cgroup, &err) != 0 ||
        cgroup_remove(process->cgroup_mode, process->cgroup, NULL) == ERR_IO)
        log_warn("plugins", "what it has started is not all ended plugin=%s error=%s",
                 log_value(process->name), log_value(err.text));
}

/* --- its end --- */

static void ended(struct process *process)
{
    siginfo_t info = {.si_pid = 0};
    struct process_end end = {.known = false};
    enum step step = process->step;
    struct err err;

    if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
        bool exited = info.si_code == CLD_EXITED;

        end = (struct process_end){.known = true,
                                   .code = exited ? info.si_status : 128 + info.si_status,
                                   .signal = exited ? 0 : info.si_status};
    }
    log_tail_read(&process->tail);
    end.said = process->tail.last;
    let_go(process);
    clean_up(process);
    if (step == STEP_LINE || (step != STEP_NONE && process->want == WANT_FOUND)) {
        if (step == STEP_LINE)
            (void)err_set(&err, ERR_IO,
                          "it ended with code %d before it said where it answers%s%.120s", end.code,
                          end.said[0] != '\0' ? ": " : "", end.said); /* only to be filled */
        else
            (void)err_set(&err, ERR_GONE,
                          "it was ended: its program or its configuration has "
                          "changed"); /* likewise */
        err.recoverable = true;
        finish(process, &err);
    } else if (step != STEP_NONE) {
        finish(process, NULL); /* as was wanted */
    } else {
        process->on_exit(process->ctx, &end);
    }
}

static void on_pidfd(struct io_watch *watch, int events)
{
    (void)events; /* there is one */
    ended(watch->ctx);
}

static void follow(struct process *process, bool begins)
{
    char path[PATH_SIZE];

    io_watch_start(process->loop, &process->watch, process->pidfd, IO_READABLE, on_pidfd, process);
    check(path_join(path, process->directory, "log") == 0); /* process_new has looked */
    log_tail_start(process->loop, &process->tail, path, begins);
}

static void next_step(struct process *process, enum step step);
static void go_on(struct process *process);

static void on_timer(struct io_timer *timer)
{
    struct process *process = timer->ctx;
    struct err err;

    switch (process->step) {
    case STEP_LOCKED:
        go_on(process);
        return;
    case STEP_LINE:
        (void)err_set(&err, ERR_TIMEOUT, "it has not said where it answers in %d s",
                      LINE_LIMIT_MS / 1000); /* only to be filled */
        err.recoverable = true;
        (void)proc_signal(&process->identity, SIGKILL,
                          NULL); /* it ends by itself, if not by that */
        fail(process, &err);
        return;
    case STEP_SHUTDOWN:
        next_step(process, STEP_TERM);
        return;
    case STEP_TERM:
        next_step(process, STEP_KILL);
        return;
    case STEP_KILL:
        (void)err_set(&err, ERR_TIMEOUT, "it does not end"); /* only to be filled */
        err.recoverable = true;
        fail(process, &err);
        return;
    case STEP_NONE:
        break;
    }
    unreachable("nothing is waited for");
}

static void wait_for(struct process *process, enum step step, uint64_t limit_ms)
{
    process->step = step;
    io_timer_start(process->loop, &process->timer, loop_now_ms() + limit_ms, on_timer, process);
}

static void on_shutdown(void *ctx, const struct grpc_reply *reply)
{
    struct process *process = ctx;

    (void)reply; /* whatever it says, or if it has ended first: its end is what counts */
    process->shutdown = NULL;
}

static void next_step(struct process *process, enum step step)
{
    static const uint64_t limits_ms[] = {
        [STEP_SHUTDOWN] = SHUTDOWN_MS, [STEP_TERM] = TERM_MS, [STEP_KILL] = KILL_MS};
    const struct grpc_call call = {
        .unix_socket = process->record.socket,
        .method = "/plugin.GRPCController/Shutdown",
        .message = "",
        .timeout_ms = SHUTDOWN_MS,
        .cb = on_shutdown,
        .ctx = process,
    };

    wait_for(process, step, limits_ms[step]);
    if (step != STEP_SHUTDOWN)
        (void)proc_signal(&process->identity, step == STEP_TERM ? SIGTERM : SIGKILL,
                          NULL); /* one that is gone is what is waited for */
    else
        process->shutdown = grpc_start(process->loop, &call, NULL);
}

/* --- what it says first --- */

/* Its first line; false: it has not come yet. */
static bool read_line(const struct process *process, char to[LINE_BYTES_MAX + 1])
{
    char path[PATH_SIZE];

    check(path_join(path, process->directory, "out") == 0); /* process_new has looked */
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd < 0 ? 0 : pread(fd, to, LINE_BYTES_MAX, 0);
    to[got > 0 ? got : 0] = '\0';
    char *end = strpbrk(to, "\n");
    if (end != NULL)
        *end = '\0';
    return end != NULL || got == LINE_BYTES_MAX;
}

static void look_at_line(struct process *process)
{
    char line[LINE_BYTES_MAX + 1];
    struct err err = {0};

    check(process->step == STEP_LINE);
    if (!read_line(process, line))
        return;
    if (handshake_read(line, process->record.socket, &err) == 0) {
        keep_record(process);
        finish(process, NULL);
        return;
    }
    (void)proc_signal(&process->identity, SIGKILL, NULL); /* ours, and of no use */
    fail(process, &err);
}

static void on_out(struct io_change *change)
{
    look_at_line(change->ctx);
}

static void await_line(struct process *process)
{
    char path[PATH_SIZE];

    wait_for(process, STEP_LINE, LINE_LIMIT_MS);
    check(path_join(path, process->directory, "out") == 0); /* process_new has looked */
    scoped_fd int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !io_change_start(process->loop, &process->change, fd, on_out, process)) {
        struct err err;

        (void)err_set(&err, ERR_LIMIT,
                      "nobody tells of what it prints "
                      "(fs.inotify.max_user_watches)"); /* only to be filled */
        err.recoverable = true;
        fail(process, &err);
        return;
    }
    look_at_line(process);
}

/* --- finding and launching --- */

/* The process that the record is about runs, and is watched from now on. */
static bool find(struct process *process)
{
    char boot_id[BOOT_ID_SIZE];

    if (process->pidfd >= 0)
        return true;
    if (process->record.identity.pid < 2 || proc_boot_id(boot_id, NULL) != 0 ||
        !text_equal(boot_id, process->record.boot_id) ||
        proc_open(&process->record.identity, &process->pidfd, NULL) != 0)
        return false;
    process->identity = process->record.identity;
    follow(process, false);
    return true;
}

/* Reads the record, and finds the process; false: there is nothing more to do now. */
static bool look(struct process *process, struct err *err)
{
    scoped_fd int fd = -1;
    int code = with_record(process, &fd, err);

    if (code == ERR_AGAIN) {
        wait_for(process, STEP_LOCKED, LOCKED_MS);
        return false;
    }
    if (code != 0) {
        fail(process, err);
        return false;
    }
    record_read(fd, &process->record);
    (void)find(process); /* whether there is one is what is asked next */
    return true;
}

static void recover(struct process *process)
{
    struct err err;

    if (process->pidfd < 0) {
        (void)err_set(&err, ERR_GONE, "it runs no more"); /* only to be filled */
        fail(process, &err);
    } else if (process->record.generation != process->generation ||
               process->record.digest != process->digest) {
        next_step(process, STEP_SHUTDOWN);
    } else if (process->record.socket[0] != '\0') {
        finish(process, NULL);
    } else {
        await_line(process);
    }
}

static int make(struct process *process, struct err *err)
{
    const struct making making = {
        .directory = process->directory,
        .program = process->program,
        .arguments = (const char *const *)process->arguments,
        .cgroup_mode = process->cgroup_mode,
        .cgroup = process->cgroup,
        .keeps_sockets = process_is(process, PROCESS_LEAVES_TASKS),
    };
    struct record *record = &process->record;
    scoped_fd int fd = -1;
    int code = with_record(process, &fd, err);

    if (code != 0)
        return code;
    forget(process);
    record->generation = process->generation;
    record->digest = process->digest;
    code = proc_boot_id(record->boot_id, err);
    if (code == 0)
        code = record_write(fd, record, err);
    if (code == 0)
        code = make_process(&making, fd, &process->identity, &process->pidfd, err);
    if (code != 0) {
        forget(process);
        (void)record_write(fd, record, NULL); /* whoever it names has ended */
        return code;
    }
    record->identity = process->identity;
    follow(process, true);
    return 0;
}

static void launch(struct process *process)
{
    struct err err = {0};

    if (process->pidfd >= 0 && process->record.generation != process->generation) {
        (void)err_set(&err, ERR_AGAIN, "an earlier one has not ended"); /* only to be filled */
        err.recoverable = true;
        (void)proc_signal(&process->identity, SIGKILL, NULL); /* it is told of, once it has */
        fail(process, &err);
        return;
    }
    if (process->pidfd < 0 && make(process, &err) != 0) {
        err.recoverable = true;
        fail(process, &err);
        return;
    }
    if (process->record.socket[0] != '\0')
        finish(process, NULL);
    else
        await_line(process);
}

static void end(struct process *process)
{
    if (process->pidfd >= 0) {
        next_step(process, process->record.socket[0] != '\0' ? STEP_SHUTDOWN : STEP_TERM);
        return;
    }
    clean_up(process);
    finish(process, NULL);
}

/* What is wanted begins when it is known what there is. */
static void go_on(struct process *process)
{
    static void (*const wanted[])(struct process * process) = {
        [WANT_LAUNCHED] = launch, [WANT_FOUND] = recover, [WANT_ENDED] = end};
    struct err err = {0};

    stop_waiting(process);
    if (look(process, &err))
        wanted[process->want](process);
}

void process_launch(struct process *process, uint32_t generation, process_done *done, void *ctx)
{
    begin(process, WANT_LAUNCHED, generation, done, ctx);
    go_on(process);
}

void process_recover(struct process *process, uint32_t generation, process_done *done, void *ctx)
{
    begin(process, WANT_FOUND, generation, done, ctx);
    go_on(process);
}

void process_end(struct process *process, process_done *done, void *ctx)
{
    begin(process, WANT_ENDED, 0, done, ctx);
    go_on(process);
}

/* --- what is known of it --- */

const char *process_socket(const struct process *process)
{
    return process->pidfd < 0 ? "" : process->record.socket;
}

const struct proc_identity *process_identity(const struct process *process)
{
    return &process->identity;
}

bool process_is(const struct process *process, enum process_mark mark)
{
    return (process->record.marks & mark) != 0;
}

void process_note(struct process *process, enum process_mark mark)
{
    if (process_is(process, mark))
        return;
    process->record.marks |= (uint8_t)mark;
    keep_record(process);
}
