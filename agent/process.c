#include "agent/process.h"

#include "agent/crash.h"
#include "agent/daemon.h"
#include "io/log.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

struct process {
    struct loop *loop;
    struct daemon *daemon; /* NULL while it is not whole */
};

static void on_signal(void *ctx, int signal)
{
    struct process *process = ctx;

    if (signal == SIGHUP) {
        int code = log_reopen();
        log_info("agent", "log reopened result=%d", code);
        return;
    }
    log_info("agent", "stopping; payloads run on signal=%d", signal);
    loop_stop(process->loop);
}

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

/* No core file with the environments of tasks in it.  Not by a limit, which tasks would inherit. */
static void hide_memory(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
}

int process_run(const struct config *config)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, 0};
    struct process process = {0};
    struct check_guard guard;
    struct err err = {0};
    int status = 0;

    struct daemon_process facts = {.crash_at = crash_at_of_environment(),
                                   .files_soft = raise_files()};
    set_heap();
    hide_memory();
    check_guard_push(&guard, on_check_failed, &process);
    process.loop = loop_new();
    loop_on_signals(process.loop, signals, on_signal, &process);
    process.daemon = daemon_new(config, process.loop, &facts, &err);
    if (process.daemon != NULL) {
        loop_run(process.loop);
        daemon_free(process.daemon);
        process.daemon = NULL;
    } else {
        log_error("agent", "cannot start error=%s", log_value(err.text));
        (void)fprintf(stderr, "cairn: %s\n", err.text);
        status = 1;
    }
    loop_free(process.loop);
    check_guard_pop(&guard);
    return status;
}
