/*
 * cairn-shim: one per task, between the daemon, which may die at any time, and the payload, which
 * must not notice.
 *
 * It is made by the nursery in the directory of all shims with the task's file, locked, as
 * descriptor 3, a socket to the daemon that wants it as 4, and the launch record as 5.  It starts
 * the payload in a cgroup of its own, keeps its output, answers daemons, and at the end writes down
 * how it ended. Order of that end, which restore relies on: pipes and logs closed, socket closed,
 * exit record, EXIT to the daemons, lock released by ending.
 *
 * Invariants: it lives in a session and cgroup that is neither the daemon's nor the payload's
 * (I-6); asleep it has no timer and needs no memory but a few pages; it ends only after the
 * payload's main process and all that came of it, wherever that went: what does not die even then
 * is put back into the cgroup.
 */
#include "drivers/shim/network.h"
#include "drivers/shim/reader.h"
#include "drivers/shim/session.h"
#include "drivers/shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longer than any kill timeout makes sense, and far from overflow. */
#define TIMEOUT_MS_MAX (1000ull * 60 * 60 * 24 * 366)

enum { TRIM_AFTER_MS = 1000, EXIT_USAGE = 2, KILLED_BASE = 128 };

static char boot_id[BOOT_ID_SIZE]; /* read before the first fork, for all shims */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    check(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t shim_now_ms(void)
{
    return clock_ns(CLOCK_BOOTTIME) / 1000000u; /* counts sleep (I-36) */
}

/* --- how it ends --- */

static void not_started(struct shim *shim, const struct err *err)
{
    shim->exit = (struct exit_record){
        .kind = EXIT_NOT_STARTED,
        .error_code = err->code,
        .error_os = err->os,
        .error_recoverable = err->recoverable,
        .finished_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME),
    };
    (void)text_copy(shim->exit.message, sizeof(shim->exit.message), err->text);
    shim->finished = true;
}

static void main_process_ended(struct shim *shim, const siginfo_t *info)
{
    bool by_signal = info->si_code != CLD_EXITED;

    shim->exit = (struct exit_record){
        .kind = EXIT_ENDED,
        .code = by_signal ? KILLED_BASE + info->si_status : info->si_status,
        .signal = by_signal ? info->si_status : 0,
        .oom_killed = shim->cgroup[0] != '\0' && cgroup_oom_killed(shim->cgroup_mode, shim->cgroup),
        .with_host = shim->host_ends,
        .finished_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME),
    };
    /* Without a cgroup now is the last moment at which the group's number is surely its own.  After
     * a stop nothing of it may stay anyway.  Else the rest has time to say its last words. */
    if (shim->cgroup[0] == '\0' || shim->stop_asked)
        payload_kill_all(shim);
    shim->kill_at_ms = 0;
    shim->phase = SHIM_ENDING;
    shim->drain_at_ms = shim_now_ms() + DRAIN_MS;
}

/* Adds to what is told beside the code. */
static void remark(struct exit_record *record, const char *what, uint64_t count)
{
    size_t length = strlen(record->message);

    (void)text_format(record->message + length, sizeof(record->message) - length, "%s%llu %s",
                      length > 0 ? "; " : "", (unsigned long long)count, what); /* fits */
}

/* The last steps, in the order that restore relies on. */
static _Noreturn void finish(struct shim *shim)
{
    struct exit_record *record = &shim->exit;
    uint64_t lost = 0;

    for (int i = 0; i < 2; i++) {
        lost += shim->streams[i].bytes_lost;
        log_close(&shim->streams[i]);
    }
    record->log_bytes_lost = lost;
    if (record->kind == EXIT_ENDED && lost > 0)
        remark(record, "bytes of its output could not be written", lost);
    if (record->kind == EXIT_ENDED && shim->strays > 0)
        remark(record, "processes had left its cgroup and were killed", shim->strays);
    if (shim->rest_at_ms != 0 && !shim->childless)
        payload_leave_rest(shim);
    if (shim->listen_fd >= 0)
        (void)close(shim->listen_fd); /* before the record: a fast restart binds anew */
    if (shim->socket[0] != '\0')
        (void)unlink(shim->socket); /* else the daemon's destroy does it */

    /* A daemon that listens commits the exit to its journal, which is synced; only when nobody does
     * is this record the one copy, and must survive the machine as well. */
    record_seal(record, RECORD_MAGIC_EXIT, sizeof(*record));
    (void)task_file_put(shim->task_fd, TASK_EXIT_AT, record, !clients_any(shim),
                        NULL); /* nobody to tell: then the exit is unknown, which is no success */
    clients_tell_exit(shim);
    _exit(0);
}

/* --- while it runs --- */

static void started(struct shim *shim)
{
    struct started_record record = {
        .shim_pid = shim->self.pid,
        .shim_ticks = shim->self.start_ticks,
        .payload_pid = shim->payload.pid,
        .payload_ticks = shim->payload.start_ticks,
        .started_unix_ns = shim->started_unix_ns,
        .key_digest = shim->key_digest,
        .protocol_oldest = SHIM_PROTOCOL_OLDEST,
        .protocol_newest = SHIM_PROTOCOL_NEWEST,
    };

    shim->phase = SHIM_RUNNING;
    memcpy(record.boot_id, boot_id, sizeof(boot_id));
    record_seal(&record, RECORD_MAGIC_STARTED, sizeof(record));
    /* A broken disk is no reason to end a payload that runs: daemons ask the socket first. */
    (void)task_file_put(shim->task_fd, TASK_STARTED_AT, &record, false, NULL);
}

/* A child's says only that it is time to look.  The other one is what a shutdown sends to all that
 * still runs, us and our payload (systemd-shutdown, killall5): we go on until we are killed, and
 * whatever ends meanwhile has not failed.  The kernel sends it to all before anybody's end can be
 * heard of. */
static void take_signals(struct shim *shim)
{
    struct signalfd_siginfo signal;

    while (read(shim->signal_fd, &signal, sizeof(signal)) == sizeof(signal))
        shim->host_ends |= signal.ssi_signo == SIGTERM && signal.ssi_uid == 0;
}

/* Takes in every child that ended: the main process, and orphans of the payload that the kernel
 * gave us as their subreaper. */
static void reap(struct shim *shim)
{
    take_signals(shim);
    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            shim->childless = errno == ECHILD;
            return;
        }
        if (info.si_pid == 0)
            return;
        if (info.si_pid == shim->payload_pid) {
            main_process_ended(shim, &info);
            shim->payload_pid = 0;
        }
        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG); /* was just there */
    }
}

void shim_stop(struct shim *shim, int signal, uint64_t timeout_ms)
{
    uint64_t at_ms = shim_now_ms() + (timeout_ms < TIMEOUT_MS_MAX ? timeout_ms : TIMEOUT_MS_MAX);

    if (shim->phase == SHIM_ENDING)
        return;
    if (!shim->stop_asked) {
        shim->stop_asked = true;
        (void)payload_signal(shim, signal); /* gone already: then its end is on the way */
    }
    if (shim->kill_at_ms == 0 || at_ms < shim->kill_at_ms)
        shim->kill_at_ms = at_ms;
}

static void pass_output(struct shim *shim, struct log_stream *stream)
{
    ssize_t got = read(stream->pipe_fd, shim->log_buffer, LOG_BUFFER_BYTES);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        log_close(stream);
        return;
    }
    log_write(stream, &shim->log, shim->log_buffer, (size_t)got, shim_now_ms());
    if (shim->trim_at_ms == 0)
        shim->trim_at_ms = shim_now_ms() + TRIM_AFTER_MS;
}

static bool has_output(const struct shim *shim)
{
    return shim->streams[0].pipe_fd >= 0 || shim->streams[1].pipe_fd >= 0;
}

/* The main process has ended.  What it leaves behind ends, too, once there is no output any more to
 * wait for: in its cgroup a daemon would find it, outside only we do, and only while we live. */
static void end_rest(struct shim *shim, uint64_t now_ms)
{
    if (!has_output(shim) || now_ms >= shim->drain_at_ms)
        shim->drain_at_ms = 0;
    if (shim->childless)
        shim->kill_at_ms = shim->rest_at_ms = 0; /* else they would wake us for nothing */
    if (shim->childless || (shim->drain_at_ms != 0 && !shim->stop_asked))
        return;
    if (shim->rest_at_ms == 0) {
        shim->rest_at_ms = now_ms + REST_MS;
        shim->rest_again_ms = REST_AGAIN_MS;
        shim->kill_at_ms = now_ms;
    }
    if (now_ms < shim->kill_at_ms)
        return;
    payload_kill_rest(shim);
    shim->kill_at_ms = now_ms + shim->rest_again_ms;
    shim->rest_again_ms *= 2;
}

/* What has come due. */
static void look_at_clock(struct shim *shim)
{
    uint64_t now_ms = shim_now_ms();

    if (shim->phase == SHIM_ENDING) {
        end_rest(shim, now_ms);
    } else if (shim->kill_at_ms != 0 && now_ms >= shim->kill_at_ms) {
        payload_kill_all(shim);
        shim->kill_at_ms = now_ms + KILL_AGAIN_MS; /* until the main process is gone */
    }
    if (shim->trim_at_ms != 0 && now_ms >= shim->trim_at_ms) {
        (void)madvise(shim->log_buffer, LOG_BUFFER_BYTES, MADV_DONTNEED); /* only a saving */
        shim->trim_at_ms = 0;
        for (int i = 0; i < 2; i++) {
            if (shim->streams[i].pipe_fd >= 0)
                log_look(&shim->streams[i], &shim->log, now_ms);
        }
    }
}

static void set_timer(struct shim *shim)
{
    const uint64_t deadlines[] = {shim->kill_at_ms, shim->drain_at_ms, shim->rest_at_ms,
                                  shim->trim_at_ms};
    struct itimerspec spec = {0};
    uint64_t first_ms = 0;

    for (size_t i = 0; i < COUNT_OF(deadlines); i++) {
        if (deadlines[i] != 0 && (first_ms == 0 || deadlines[i] < first_ms))
            first_ms = deadlines[i];
    }
    if (first_ms == shim->timer_set_ms)
        return;
    shim->timer_set_ms = first_ms;
    spec.it_value.tv_sec = (time_t)(first_ms / 1000);
    spec.it_value.tv_nsec = (long)(first_ms % 1000 * 1000000);
    check(timerfd_settime(shim->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

static bool is_finished(struct shim *shim)
{
    if (shim->finished || shim->phase != SHIM_ENDING)
        return shim->finished;
    return (shim->childless && shim->drain_at_ms == 0) ||
           (shim->rest_at_ms != 0 && shim_now_ms() >= shim->rest_at_ms);
}

enum { AT_SIGNAL, AT_TIMER, AT_OUT, AT_ERR, AT_LISTEN, AT_CLIENTS };

/* One wait and what it brought.  A descriptor of -1 is passed over by the kernel. */
static void turn(struct shim *shim)
{
    struct pollfd fds[AT_CLIENTS + CLIENTS_MAX] = {
        [AT_SIGNAL] = {.fd = shim->signal_fd},       [AT_TIMER] = {.fd = shim->timer_fd},
        [AT_OUT] = {.fd = shim->streams[0].pipe_fd}, [AT_ERR] = {.fd = shim->streams[1].pipe_fd},
        [AT_LISTEN] = {.fd = shim->listen_fd},
    };
    uint64_t expirations;

    for (int i = 0; i < CLIENTS_MAX; i++)
        fds[AT_CLIENTS + i].fd = shim->clients[i].fd;
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        fds[i].events = POLLIN;
    set_timer(shim);
    if (poll(fds, COUNT_OF(fds), -1) < 0)
        return; /* interrupted */

    if (fds[AT_SIGNAL].revents != 0)
        reap(shim);
    if (fds[AT_TIMER].revents != 0) {
        (void)!read(shim->timer_fd, &expirations, sizeof(expirations)); /* the clock says more */
        shim->timer_set_ms = 0;
    }
    for (int i = 0; i < 2; i++) {
        if (fds[AT_OUT + i].revents != 0 && shim->streams[i].pipe_fd >= 0)
            pass_output(shim, &shim->streams[i]);
    }
    look_at_clock(shim);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (fds[AT_CLIENTS + i].revents != 0 && shim->clients[i].fd == fds[AT_CLIENTS + i].fd)
            clients_receive(shim, &shim->clients[i]);
    }
    if (fds[AT_LISTEN].revents != 0)
        clients_accept(shim);
}

/* --- how it begins --- */

/* Nothing that happens to the daemon, its terminal or its service may reach us. */
static const int unwanted[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGTERM, SIGALRM, SIGUSR1,
                               SIGUSR2, SIGXFSZ, SIGXCPU, SIGTSTP, SIGTTIN, SIGTTOU};

void shim_reset_signals(void)
{
    sigset_t none;

    for (size_t i = 0; i < COUNT_OF(unwanted); i++)
        (void)signal(unwanted[i], SIG_DFL); /* cannot fail for these */
    check(sigemptyset(&none) == 0);
    check(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
}

void shim_dump_nothing(void)
{
    if (geteuid() == 0)
        (void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
}

void shim_withdraw(void)
{
    for (size_t i = 0; i < COUNT_OF(unwanted); i++)
        (void)signal(unwanted[i], SIG_IGN); /* cannot fail for these */
    (void)umask(022);

    /* No core file with a payload's output or environment in it.  Not by a limit, which the payload
     * would inherit; and not as another user, since then the daemon could not look at our
     * descriptors, by which it finds us (shim_find). */
    shim_dump_nothing();

    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "-999", 4); /* when permitted */
        (void)close(fd);
    }
}

void shim_stand_alone(void)
{
    (void)setsid(); /* the nursery's child leads no group; another helper has done it already */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* the payload's orphans are ours to reap */
}

static int open_own(struct shim *shim, struct err *err)
{
    sigset_t heard;

    check(sigemptyset(&heard) == 0);
    check(sigaddset(&heard, SIGCHLD) == 0);
    check(sigaddset(&heard, SIGTERM) == 0); /* ignored as it is: one that is blocked is kept */
    check(sigprocmask(SIG_BLOCK, &heard, NULL) == 0);
    shim->signal_fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    shim->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (shim->signal_fd < 0 || shim->timer_fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open its own descriptors");
    shim->log_buffer =
        mmap(NULL, LOG_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shim->log_buffer == MAP_FAILED)
        return err_os(err, err_from_errno(errno), errno, "no memory for output");
    return 0;
}

static void take_settings(struct shim *shim, const struct launch *launch)
{
    shim->key_digest = launch->key_digest;
    shim->cgroup_mode = (enum cgroup_mode)launch->cgroup_mode;
    if (shim->cgroup_mode != CGROUP_NONE)
        (void)text_copy(shim->cgroup, sizeof(shim->cgroup), launch->cgroup);
    shim->log.files_max = launch->log_files_max > 0 ? launch->log_files_max : 1;
    shim->log.bytes_max = launch->log_bytes_max > 0 ? launch->log_bytes_max : 1;
    if (launch->log_name != NULL) {
        (void)text_copy(shim->log.name, sizeof(shim->log.name), launch->log_name);
        (void)text_copy(shim->log.directory, sizeof(shim->log.directory), launch->logs_in_alloc);
        shim->log.alloc_fd = open(launch->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
}

static int begin(struct shim *shim, struct launch *launch, struct err *err)
{
    int code = launch_open(launch, err);

    if (code != 0)
        return code;
    take_settings(shim, launch);
    /* Elsewhere we are born in it. */
    if (shim->cgroup_mode == CGROUP_V1)
        code = cgroup_enter(shim->cgroup_mode, launch->shim_cgroup, 0, err);
    cgroup_enter_unit(shim->cgroup_mode, launch->shim_cgroup);
    if (code == 0)
        code = open_own(shim, err);
    if (code == 0)
        code = clients_listen(shim, err);
    if (code == 0)
        code = payload_start(shim, launch, err);
    shim_confine();
    if (code == 0)
        shim->started_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME);
    else if (code == ERR_LIMIT || code == ERR_FULL || code == ERR_AGAIN)
        err->recoverable = true; /* the machine is out of something */
    return code;
}

static const struct shim nothing_yet = {
    .task_fd = SHIM_FD_TASK,
    .signal_fd = -1,
    .timer_fd = -1,
    .listen_fd = -1,
    .clients = {{.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}},
    .phase = SHIM_STARTING,
    .log = {.alloc_fd = -1},
    .streams = {{.pipe_fd = -1, .file_fd = -1}, {.pipe_fd = -1, .file_fd = -1}}};

_Static_assert(CLIENTS_MAX == 4, "each has its -1 here");

void shim_not_made(int fd, int os)
{
    struct shim shim = nothing_yet;
    char hello[SHIM_MESSAGE_MAX];
    struct err err = {0};

    (void)!recv(fd, hello, sizeof(hello), MSG_DONTWAIT); /* unread it would undo what we say */
    (void)err_os(&err, err_from_errno(os), os, "cannot make a process"); /* told below */
    err.recoverable = true;
    not_started(&shim, &err);
    record_seal(&shim.exit, RECORD_MAGIC_EXIT, sizeof(shim.exit));
    shim.clients[0] = (struct client){.fd = fd, .protocol = SHIM_PROTOCOL_OLDEST};
    clients_tell_exit(&shim);
}

int main(int argc, char **argv)
{
    struct shim shim = nothing_yet;
    struct launch launch = {0};
    struct err err = {0};

    if (argc > 0 && text_equal(argv[0], SESSION_PROGRAM))
        session_main();
    if (argc > 0 && text_equal(argv[0], NETWORK_PROGRAM))
        network_main();
    if (argc > 0 && text_equal(argv[0], READER_PROGRAM))
        reader_main(argc, argv);
    if (argc != 2 || !text_equal(argv[0], NURSERY_PROGRAM)) {
        static const char usage[] = "cairn-shim " SHIM_VERSION " is started by the cairn daemon\n";

        (void)!write(STDERR_FILENO, usage, sizeof(usage) - 1); /* for a curious person */
        return EXIT_USAGE;
    }
    (void)proc_boot_id(boot_id, NULL); /* without one no record is believed by anybody */
    nursery_main(argv);
    shim_stand_alone();
    clients_add(&shim, SHIM_FD_CONTROL);
    if (proc_identify(getpid(), &shim.self, &err) != 0 || begin(&shim, &launch, &err) != 0 ||
        payload_failed(&shim, &err)) {
        not_started(&shim, &err);
        for (int i = 0; i < CLIENTS_MAX; i++) {
            if (shim.clients[i].fd >= 0)
                clients_receive(&shim, &shim.clients[i]); /* its hello, to know how to tell it */
        }
    } else {
        started(&shim);
    }
    launch_close(&launch);
    (void)close(SHIM_FD_NOTHING); /* the payload has begun, or never will */
    while (!is_finished(&shim))
        turn(&shim);
    finish(&shim);
}
