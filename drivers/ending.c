/*
 * A run from the end of its payload, or of its shim, to nothing.
 *
 * Order of things, which I-2 and I-7 rest on: the shim is seen to be gone (pidfd, then the free
 * lock); then the exit record is read; without one the cgroup is killed and seen empty; only then
 * is the end told.  A destroy goes through the same steps and removes what they leave.
 */
#include "drivers/part.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* --- telling --- */

static struct driver_exit exit_of(const struct exit_record *record)
{
    struct driver_exit exit = {.known = false};

    if (record == NULL) {
        (void)text_copy(exit.message, sizeof(exit.message),
                        "the task's supervisor was lost, and with it how the task ended");
        return exit;
    }
    exit = (struct driver_exit){
        .known = record->kind == EXIT_ENDED,
        .code = record->code,
        .signal = record->signal,
        .oom_killed = record->oom_killed != 0,
        .with_host = record->with_host != 0,
        .finished_unix_ns = record->finished_unix_ns,
    };
    (void)text_copy(exit.message, sizeof(exit.message), record->message);
    if (exit.oom_killed)
        (void)text_format(exit.message, sizeof(exit.message), "OOM Killed%s%s",
                          record->message[0] == '\0' ? "" : "; ", record->message); /* fits */
    return exit;
}

static void tell_call(struct run *run, struct call *call, const struct exit_record *record,
                      const struct driver_exit *exit)
{
    struct err err = {0};

    call->result.exit = *exit;
    switch (call->kind) {
    case CALL_START:
    case CALL_RECOVER:
        if (record != NULL && record->kind == EXIT_NOT_STARTED) {
            (void)err_set(&err, record->error_code < 0 ? record->error_code : ERR_IO, "%s",
                          record->message);
            err.os = record->error_os;
            err.recoverable = record->error_recoverable != 0;
            call->result.error = err;
            call_finish(run->drivers, call,
                        call->kind == CALL_RECOVER ? DRIVER_NOT_STARTED : DRIVER_FAILED);
        } else {
            call_finish(run->drivers, call,
                        record == NULL && call->kind == CALL_RECOVER ? DRIVER_LOST : DRIVER_EXITED);
        }
        return;
    case CALL_STOP:
        call_finish(run->drivers, call, DRIVER_DONE);
        return;
    case CALL_SIGNAL:
        (void)err_set(&err, ERR_GONE, "the task is not running");
        call_fail(run->drivers, call, &err);
        return;
    case CALL_DESTROY:
        calls_add(&run->calls, call); /* not before all is gone */
        return;
    case CALL_EXIT:
        break;
    }
    unreachable("a call that nobody makes");
}

void run_conclude(struct run *run, const struct exit_record *record)
{
    struct driver_exit exit = exit_of(record);
    struct call_list calls = run->calls;

    run->ended = true;
    if (calls.first != NULL) {
        calls_init(&run->calls);
        for (struct call *call; (call = calls_take(&calls)) != NULL;)
            tell_call(run, call, record, &exit);
    }
    if (run->reported) {
        struct call *owed = call_new(CALL_EXIT, NULL, NULL);

        run->reported = false;
        owed->key = run->key;
        owed->result.exit = exit;
        call_finish(run->drivers, owed, DRIVER_EXITED);
    }
}

void run_go_on(struct run *run)
{
    if (run_has(run, CALL_DESTROY))
        run_empty(run);
    else
        run_free(run);
}

/* --- the shim's end --- */

static void gone(struct run *run)
{
    bool asked = false;

    run_off_watch(run);
    io_timer_stop(&run->timer);
    run->shim = (struct proc_identity){.pid = 0};
    run->shim_killed = run->stop_sent = false;
    for (const struct call *call = run->calls.first; call != NULL; call = call->next)
        asked |= call->kind != CALL_DESTROY;
    if (!run->ended || asked)
        run_attach(run); /* the lock is free, or soon will be: the record decides */
    else
        run_go_on(run);
}

static void on_gone(struct io_watch *watch, int events)
{
    (void)events;
    gone(watch->ctx);
}

static void on_obstinate_shim(struct io_timer *timer)
{
    run_kill_shim(timer->ctx);
}

static void on_hung_up(struct io_timer *timer)
{
    run_attach(timer->ctx); /* it lives, so it may be spoken to again */
}

static void arm_leaving(struct run *run)
{
    if (run->shim_killed)
        run_at(run, DIE_BOUND_MS, on_obstinate_shim);
    else if (!run->ended)
        run_at(run, HANG_UP_BOUND_MS, on_hung_up);
    else if (run_has(run, CALL_DESTROY))
        run_at(run, OBEY_BOUND_MS, on_obstinate_shim);
}

void run_leave(struct run *run)
{
    int pidfd = -1;

    run_off_watch(run);
    io_timer_stop(&run->timer);
    run->phase = RUN_LEAVING;
    for (struct call *call = run->calls.first; call != NULL; call = call->next)
        call->ticket = 0;     /* asked again if there is still somebody to ask */
    if (run->shim.pid <= 1) { /* it never said who it is */
        arm_leaving(run);
        if (run->timer.slot == 0)
            run_at(run, HANG_UP_BOUND_MS, on_hung_up);
        return;
    }
    if (proc_open(&run->shim, &pidfd, NULL) != 0) {
        gone(run);
        return;
    }
    run_on_watch(run, pidfd, IO_READABLE, on_gone);
    arm_leaving(run);
}

void run_kill_shim(struct run *run)
{
    struct proc_identity shim = run->shim;
    struct err err = {0};

    if (run->shim_killed) {
        (void)err_set(&err, ERR_TIMEOUT, "the task's supervisor does not end");
        err.recoverable = true;
        run_fail_all(run, &err);
        run->shim_killed = false;
        return; /* its end is still watched for */
    }
    if (shim.start_ticks == 0 && shim_find(run->drivers, &run->key, &shim, &err) != 0) {
        err.recoverable = true;
        run_fail_all(run, &err);
        if (run->reported)
            run_leave(run); /* its end is owed */
        else
            run_free(run);
        return;
    }
    /* What left the cgroup can be found as long as the shim lives, which takes in orphans. */
    (void)proc_kill_descendants(&shim, NULL, NULL);
    (void)proc_signal(&shim, SIGKILL, NULL); /* gone is what we want, and is seen next */
    run->shim = shim;
    run->shim_killed = true;
    run_leave(run);
}

/* --- the payload's end --- */

static void look(struct run *run);

static void on_empty_event(struct io_watch *watch, int events)
{
    char text[128];

    (void)events;
    (void)!pread(watch->fd, text, sizeof(text), 0); /* takes the event back; look() decides */
    look(watch->ctx);
}

static void on_look_again(struct io_timer *timer)
{
    look(timer->ctx);
}

/* The main process where there may be no cgroup: as the shim told us, or as it wrote in this boot
 * (I-5). */
static void find_payload(struct run *run)
{
    struct started_record started;

    if (run->payload.pid == 0 && started_read(run->drivers->shim_fd, &run->key, &started) == 0 &&
        started.key_digest == run->digest &&
        memcmp(started.boot_id, run->drivers->boot_id, BOOT_ID_SIZE) == 0)
        run->payload = (struct proc_identity){started.payload_pid, started.payload_ticks};
}

/* Removes what is left of the key and answers the destroyers. */
static void remove_rest(struct run *run)
{
    struct drivers *drivers = run->drivers;
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};

    key_cgroup(drivers, &run->key, false, cgroup);
    int code = cgroup_remove(run->drivers->config.cgroup_mode, cgroup, &err);
    if (code == ERR_AGAIN && loop_now_ms() < run->bound_ms) {
        run_at(run, run->retry_ms, on_look_again);
        return;
    }
    if (code == 0)
        code = key_remove_files(drivers->shim_fd, &run->key, &err);
    if (code == 0) {
        generations_gone(drivers, &run->key);
        images_leave(drivers, &run->key);
    }
    for (struct call *call; (call = calls_take(&run->calls)) != NULL;) {
        if (code != 0) {
            err.recoverable = true;
            call_fail(drivers, call, &err);
        } else if (call->kind == CALL_DESTROY || call->kind == CALL_STOP) {
            call_finish(drivers, call, DRIVER_DONE);
        } else {
            struct err late = {0};

            (void)err_set(&late, ERR_GONE, "the task was destroyed");
            call_fail(drivers, call, &late);
        }
    }
    run_free(run);
}

static void emptied(struct run *run)
{
    run_off_watch(run);
    io_timer_stop(&run->timer);
    if (!run->ended)
        run_conclude(run, NULL);
    if (run_has(run, CALL_DESTROY))
        remove_rest(run);
    else
        run_free(run);
}

/* 1 while something of the payload lives, 0, or ERR_*. */
static int is_alive(struct run *run, const char *cgroup, struct err *err)
{
    int populated = cgroup_populated(run->drivers->config.cgroup_mode, cgroup, err);

    return populated == 0 && run->payload.pid != 0 && proc_is_alive(&run->payload) ? 1 : populated;
}

static void give_up(struct run *run, const struct err *err)
{
    run_fail_all(run, err);
    if (!run->reported) {
        run_free(run);
        return;
    }
    /* The end of what was reported as running may only be told when it is one.  Rare, and slow. */
    run->bound_ms = UINT64_MAX;
    run_at(run, KILL_REPEAT_MS, on_look_again);
}

/* Kills, and looks whether all is dead; comes again by itself until it is. */
static void look(struct run *run)
{
    char cgroup[CGROUP_NAME_SIZE];
    struct err err = {0};

    key_cgroup(run->drivers, &run->key, false, cgroup);
    int alive = is_alive(run, cgroup, &err);
    if (alive == 1) {
        /* By the living main process first: its session is known for as long as it lives. */
        if (run->payload.pid != 0)
            (void)proc_kill_session(&run->payload, NULL); /* gone is what we want */
        int code = cgroup_kill(run->drivers->config.cgroup_mode, cgroup, &err);

        alive = code != 0 ? code : is_alive(run, cgroup, &err);
    }
    if (alive == 0) {
        emptied(run);
    } else if (alive < 0 || loop_now_ms() >= run->bound_ms) {
        if (alive > 0)
            (void)err_set(&err, ERR_TIMEOUT, "some of the task's processes do not end");
        err.recoverable = true;
        give_up(run, &err);
    } else {
        /* Where the cgroup tells, this is only for processes that were forking as we killed. */
        run_at(run, run->fd >= 0 ? KILL_REPEAT_MS : run->retry_ms, on_look_again);
        if (run->retry_ms * 2 <= RETRY_LONGEST_MS)
            run->retry_ms *= 2;
    }
}

void run_empty(struct run *run)
{
    char cgroup[CGROUP_NAME_SIZE], text[128];
    int fd = -1;

    run_off_watch(run);
    run->phase = RUN_EMPTYING;
    run->bound_ms = loop_now_ms() + EMPTY_BOUND_MS;
    run->retry_ms = RETRY_FIRST_MS;
    if (run->ended)
        run->payload = (struct proc_identity){.pid = 0}; /* its main process is surely gone */
    else
        find_payload(run);
    key_cgroup(run->drivers, &run->key, false, cgroup);
    if (cgroup_populated(run->drivers->config.cgroup_mode, cgroup, NULL) == 1 &&
        cgroup_events_open(run->drivers->config.cgroup_mode, cgroup, &fd, NULL) == 0) {
        (void)!pread(fd, text, sizeof(text), 0); /* events from here on */
        run_on_watch(run, fd, IO_URGENT, on_empty_event);
    }
    look(run);
}
