#include "agent/process.h"

#include "agent/crash.h"
#include "agent/daemon.h"
#include "io/log.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES_AT_ONCE = 8192 }; /* 64 KiB of the kernel's memory */

struct process {
    struct loop *loop;
    struct daemon *daemon; /* NULL while it is not whole */
    const struct service *service;
    struct io_timer alive;
    char status[SERVICE_TEXT_SIZE / 2]; /* told last */
};

/* --- who manages this process --- */

/* STATE with a status, if it is another one than was told last. */
static void tell(struct process *process, const char *state)
{
    char status[sizeof(process->status)];

    daemon_describe(process->daemon, status, sizeof(status));
    text_clean(status);
    bool same = text_equal(status, process->status);
    (void)text_copy(process->status, sizeof(process->status), status); /* fits */
    if (!service_tell(process->service, "%s%s%s", state,
                      same ? "" : "\nSTATUS=", same ? "" : status))
        process->status[0] = '\0'; /* again next time */
}

/* A loop that is stuck comes here no more, and is killed: payloads do not notice, and the next
 * daemon goes on. */
static void on_alive(struct io_timer *timer)
{
    struct process *process = timer->ctx;

    tell(process, "WATCHDOG=1");
    io_timer_start(process->loop, timer, loop_now_ms() + process->service->watchdog_ms / 2,
                   on_alive, process);
}

static void reload(const struct process *process)
{
    (void)service_tell_reloading(process->service); /* who is not told waits for nothing */
    int code = log_reopen();
    log_info("agent", "log reopened result=%d", code);
    if (process->daemon != NULL)
        daemon_renew(process->daemon);
    (void)service_tell(process->service, "READY=1"); /* the same */
}

static void on_signal(void *ctx, int signal)
{
    struct process *process = ctx;

    if (signal == SIGHUP) {
        reload(process);
        return;
    }
    log_info("agent", "stopping; payloads run on signal=%d", signal);
    (void)service_tell(process->service, "STOPPING=1\nSTATUS=payloads run on"); /* the same */
    loop_stop(process->loop);
}

/* Whoever waits for us to be ready begins what needs the API. */
static void begin(struct process *process)
{
    tell(process, "READY=1");
    if (process->service->watchdog_ms > 0)
        io_timer_start(process->loop, &process->alive, 0, on_alive, process);
}

/* --- the process --- */

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    struct process *process = ctx;

    if (process->daemon != NULL)
        daemon_tell(process->daemon);
    (void)fprintf(stderr, "cairn: assertion failed: %s:%d: %s\n", file, line, text);
}

static void set_heap(void)
{
    /* One for the loop, which never waits for a thread that reads a large job, one for each of the
     * pool, whose memory is given back when it has done (api/aside.c). */
    (void)mallopt(M_ARENA_MAX, 5);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

/* All that this process may have: a payload costs one, a client two.  What the soft limit was is
 * what payloads get: programs that use select(2) rely on a low one. */
static uint64_t raise_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 0;
    uint64_t soft = files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* else it stays as it is; the daemon counts */
    return soft;
}

/* The kernel's table of descriptors doubles when it is full, and once there are threads each time
 * waits until all processors have let go of the old one: some ms, in the midst of a start or of a
 * restore.  So it gets its size while there is one thread; it never shrinks. */
static void widen_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    int size = files.rlim_cur < FILES_AT_ONCE ? (int)files.rlim_cur : FILES_AT_ONCE;
    int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, size - 1);
    if (last >= 0) /* else it doubles */
        (void)close(last);
}

/* No core file with the environments of tasks in it.  Not by a limit, which tasks would inherit. */
static void hide_memory(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
}

int process_run(const struct config *config, struct service *service)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, 0};
    struct process process = {.service = service};
    struct check_guard guard;
    struct err err = {0};
    int status = 0;

    struct daemon_process facts = {.crash = crash_of_environment(),
                                   .files_soft = raise_files(),
                                   .listen_fd = service->listen_fd > 0 ? service->listen_fd : 0};
    widen_files();
    set_heap();
    hide_memory();
    check_guard_push(&guard, on_check_failed, &process);
    process.loop = loop_new();
    loop_on_signals(process.loop, signals, on_signal, &process);
    process.daemon = daemon_new(config, process.loop, &facts, &err);
    if (process.daemon != NULL) {
        service->listen_fd = -1; /* the API has it */
        begin(&process);
        loop_run(process.loop);
        io_timer_stop(&process.alive);
        daemon_free(process.daemon);
        process.daemon = NULL;
    } else {
        log_error("agent", "cannot start error=%s", log_value(err.text));
        (void)fprintf(stderr, "cairn: %s\n", err.text);
        (void)service_tell(service, "STATUS=cannot start: %s", err.text); /* it ends anyhow */
        status = 1;
    }
    loop_free(process.loop);
    check_guard_pop(&guard);
    return status;
}
