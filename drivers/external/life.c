/*
 * The life of a task of a plugin, as external.h has it.
 *
 *   AWAIT -> START -> WAIT -> its end is told   a start, by a plugin that is there
 *   AWAIT -> RECOVER -> WAIT                    one that was started: by this plugin or one before
 *   AWAIT -> INSPECT -> ...                     one whose answer was lost, or how it has ended
 *
 * All roads come back to AWAIT when the plugin goes: what it was asked then is asked again of the
 * next one, from what is written down.
 */
#include "drivers/external/external.h"

#include "io/log.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GIVE_UP_MS = 60 * 1000, /* a start for which there is no plugin, as after a boot */
    RETRY_SHORTEST_MS = 250,
    RETRY_SLOWEST_MS = 10000,
    LOOKS_MAX = 5, /* for a start that may still be under way in the plugin */
    LOOK_AGAIN_MS = 2000,
    FORCE_AFTER_MS = 20 * 1000, /* what a driver was told to stop, and has not */
    FORCE_AGAIN_MS = 5000,
    DRAIN_BOUND_MS = 5000,
};

static void go_on(struct external *external);
static void send_requests(struct external *external);

/* --- waiting --- */

static void on_time(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    go_on(run->external);
}

static void later(struct external *external, uint64_t delay_ms)
{
    external->step = STEP_AWAIT;
    run_at(external->run, delay_ms, on_time);
}

/* Something is asked again, less and less often. */
static void try_again(struct external *external)
{
    external->step = STEP_AWAIT;
    run_retry(external->run, RETRY_SHORTEST_MS, RETRY_SLOWEST_MS, on_time);
}

/* The answer to what the step waits for has come; false: nobody waits for it any more. */
static bool is_awaited(struct external *external)
{
    external->request = NULL;
    return external->run != NULL;
}

/* REQUEST is what STEP waits for; if nobody can be asked, later. */
static void begin(struct external *external, enum external_step step, struct grpc_request *request)
{
    external->step = step;
    external->request = request;
    if (request == NULL)
        try_again(external);
}

/* --- its end --- */

/* What is told of it is written down first.  May free the run. */
static void conclude(struct external *external)
{
    struct run *run = external->run;

    external_forget_request(external);
    io_timer_stop(&external->kill);
    external->step = STEP_AWAIT;
    run_conclude(run, &external->end);
    if (run_has(run, CALL_DESTROY))
        go_on(external);
    else
        run_free(run);
}

static void on_drained(struct external *external)
{
    if (external->step == STEP_DRAIN)
        conclude(external);
}

static void on_undrained(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    log_warn("drivers", "the last output of a task is not written task=%s/%s", run->key.alloc,
             run->key.task);
    conclude(run->external);
}

static void end(struct external *external, const struct exit_record *record)
{
    struct call *call = external->signal_call;
    struct err err = {0};

    external_forget_request(external);
    external_cancel(&external->measuring);
    external->end = *record;
    external->has_ended = true;
    external->step = STEP_DRAIN;
    external_put_end(external);
    external->signal_call = NULL;
    if (call != NULL) {
        (void)err_set(&err, ERR_GONE, "the task is not running");
        call_fail(external->run->drivers, call, &err);
    }
    run_at(external->run, DRAIN_BOUND_MS, on_undrained);
    output_drain(external, on_drained);
    if (!output_is_open(external))
        conclude(external);
}

__attribute__((format(printf, 2, 3))) static void end_unknown(struct external *external,
                                                              const char *format, ...)
{
    struct exit_record record = {.kind = EXIT_UNKNOWN};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(record.message, sizeof(record.message), format, arguments); /* may be cut */
    va_end(arguments);
    end(external, &record);
}

/* As the plugin says it. */
static void end_as(struct external *external, const struct external_status *status)
{
    const struct exit_record record = {.kind = EXIT_ENDED,
                                       .code = status->code,
                                       .signal = status->signal,
                                       .oom_killed = status->oom_killed,
                                       .finished_unix_ns = status->finished_unix_ns != 0
                                                               ? status->finished_unix_ns
                                                               : loop_now_unix_ns()};

    end(external, &record);
}

/* A start, as `failed` says. */
static void fail_start(struct external *external)
{
    struct run *run = external->run;
    const struct err failed = external->failed;

    check(failed.code != 0);
    external_forget_request(external);
    if (!external->recorded) {
        run_fail_calls(run, &failed);
        run_empty(run); /* nothing was asked for: this ends at once */
        return;
    }
    struct exit_record record = {.kind = EXIT_NOT_STARTED,
                                 .error_code = failed.code,
                                 .error_os = failed.os,
                                 .error_recoverable = failed.recoverable};
    (void)text_copy(record.message, sizeof(record.message), failed.text); /* of the same size */
    end(external, &record);
}

/* --- how it is --- */

static void tell_running(struct external *external)
{
    external->told_running = true;
    external->run->retry_ms = 0;
    usage_begin(external);
    run_tell_running(external->run);
    send_requests(external);
}

static bool on_wait_message(void *ctx, const void *message, size_t length)
{
    struct external *external = ctx;
    struct err err = {0};

    external->was_waited = external_read_wait(message, length, &external->waited, &err) == 0;
    if (!external->was_waited)
        log_warn("drivers", "driver %s says nothing that can be read of an end: %s",
                 external->record.driver, err.text);
    return true; /* its end comes by itself, after the one message that there is */
}

static void inspect(struct external *external);

static void on_waited(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;

    if (!is_awaited(external))
        return;
    if (external->was_waited && external->waited.has_result)
        end_as(external, &external->waited);
    else if (external->was_waited || reply->answered)
        inspect(external); /* it was waited for before, or there is none */
    else
        later(external, RETRY_SHORTEST_MS); /* the plugin is gone, and not the task */
}

static void wait_for_end(struct external *external)
{
    struct err err = {0};

    external->was_waited = false;
    external->waited = (struct external_status){0};
    begin(external, STEP_WAIT, external_ask_wait(external, on_wait_message, on_waited, &err));
    if (external->step == STEP_WAIT)
        tell_running(external);
}

/* --- one that may be there --- */

static void on_forced(void *ctx, const struct grpc_reply *reply);

/* It runs, and nothing is known by which a plugin that does not know it would find it. */
static void end_orphan(struct external *external)
{
    struct err err = {0};

    if (external->failed.code == 0) {
        (void)err_set(&external->failed, ERR_GONE,
                      "the answer to its start was lost, and it was ended");
        external->failed.recoverable = true;
    }
    begin(external, STEP_INSPECT, external_ask_destroy(external, on_forced, &err));
}

static void on_forced(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;

    if (!is_awaited(external))
        return;
    if (reply->status == GRPC_OK || external_is_unknown(reply))
        fail_start(external);
    else
        try_again(external);
}

/* The plugin knows no such task. */
static void on_absent(struct external *external)
{
    if (external->record.stage == STAGE_STARTED) {
        end_unknown(external, "exit unknown: driver %s knows nothing of it any more",
                    external->record.driver);
        return;
    }
    if (!external->start_sent && external->looks++ < LOOKS_MAX) { /* it may be busy with it */
        later(external, LOOK_AGAIN_MS);
        return;
    }
    if (external->failed.code == 0) {
        (void)err_set(&external->failed, ERR_GONE,
                      "the plugin was lost before it started the task");
        external->failed.recoverable = true;
    }
    external_end_orphans(external);
    fail_start(external);
}

static void on_inspected(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;
    struct external_status status;
    struct err err = {0};

    if (!is_awaited(external))
        return;
    if (external_is_unknown(reply)) {
        on_absent(external);
    } else if (reply->status != GRPC_OK ||
               external_read_status(reply->message, reply->message_length, &status, &err) != 0) {
        try_again(external);
    } else if (status.has_ended && status.has_result) {
        end_as(external, &status);
    } else if (external->record.stage == STAGE_ASKED && !status.has_ended) {
        end_orphan(external);
    } else if (status.runs && external->told_running) {
        later(external, LOOK_AGAIN_MS); /* and is not to be waited for just now */
    } else if (status.runs) {
        wait_for_end(external);
    } else {
        end_unknown(external, "exit unknown: driver %s%s%s", external->record.driver,
                    external->waited.error[0] != '\0' ? ": " : " does not know how it ended",
                    external->waited.error);
    }
}

static void inspect(struct external *external)
{
    struct err err = {0};

    begin(external, STEP_INSPECT, external_ask(external, "InspectTask", 0, on_inspected, &err));
}

static void on_recovered(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;
    struct err err = {0};

    if (!is_awaited(external))
        return;
    if (reply->status == GRPC_OK) {
        wait_for_end(external);
    } else if (reply->answered) {
        external_fault(reply, external->record.driver, &err);
        end_unknown(external, "exit unknown: driver %s could not find it again: %s",
                    external->record.driver, err.text);
    } else {
        try_again(external);
    }
}

static void recover(struct external *external)
{
    struct err err = {0};
    char *handle;

    if (external_get_handle(external, &handle, &err) != 0) {
        inspect(external); /* a plugin that has lived on knows it without */
        return;
    }
    begin(external, STEP_RECOVER, external_ask_recover(external, handle, on_recovered, &err));
    explicit_bzero(handle, external->record.handle_length);
    free(handle);
}

/* --- starting --- */

static void on_started(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;
    char *handle;
    size_t length;

    if (!is_awaited(external))
        return;
    if (!reply->answered) { /* it may run, or not, or not yet */
        external->start_sent = reply->sent;
        external_fault(reply, external->record.driver, &external->failed);
        try_again(external);
        return;
    }
    if (reply->status != GRPC_OK) {
        external_fault(reply, external->record.driver, &external->failed);
        fail_start(external);
        return;
    }
    if (external_read_handle(reply->message, reply->message_length, &handle, &length,
                             &external->failed) != 0) {
        end_orphan(external);
        return;
    }
    int code = external_put_handle(external, handle, length, &external->failed);
    explicit_bzero(handle, length);
    free(handle);
    if (code != 0) {
        external->failed.recoverable = true;
        end_orphan(external);
        return;
    }
    external->failed = (struct err){0};
    wait_for_end(external);
}

/* True if the task can be started now; else its plugin is waited for, or the start has failed. */
static bool is_ready(struct external *external)
{
    const struct plugins *plugins = external->run->drivers->config.plugins;
    struct plugin_driver driver;
    bool known = plugins != NULL && plugins_find_driver(plugins, external->record.driver, &driver);
    uint64_t now_ms = loop_now_ms();

    if (known && driver.answers && driver.detected)
        return true;
    if (now_ms < external->give_up_ms) {
        run_at(external->run, external->give_up_ms - now_ms, on_time); /* or when it changes */
        return false;
    }
    (void)err_set(&external->failed, ERR_GONE, "driver %s cannot be used: %s",
                  external->record.driver, known ? driver.description : "no plugin has it");
    external->failed.recoverable = true;
    fail_start(external);
    return false;
}

static void start(struct external *external)
{
    const struct plugins *plugins = external->run->drivers->config.plugins;
    struct err *failed = &external->failed;
    char *config;
    size_t length;

    if (!is_ready(external))
        return;
    if (plugins_encode_task(plugins, external->record.driver, external->config, &config, &length,
                            failed) != 0) {
        (void)err_wrap(failed, "driver %s", external->record.driver);
        fail_start(external);
        return;
    }
    external->record.begun_unix_ns = loop_now_unix_ns();
    external->record.stage = STAGE_ASKED;
    if (external_put_first(external, failed) != 0 || output_begin(external, failed) != 0) {
        failed->recoverable = true;
        fail_start(external);
    } else {
        external->start_sent = true;
        begin(external, STEP_START,
              external_ask_start(external, config, length, on_started, failed));
        if (external->request == NULL && !failed->recoverable)
            fail_start(external); /* too large to be sent */
    }
    explicit_bzero(config, length);
    free(config);
}

/* --- removing --- */

static void gone(struct external *external)
{
    struct run *run = external->run;

    if (!external->has_ended)
        run_conclude(run, NULL);
    run->ended = true;
    output_let_go(external);
    run_empty(run);
}

static void on_read_out(struct external *external)
{
    if (external->step == STEP_DESTROY)
        gone(external);
}

static void on_not_read_out(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    (void)proc_signal(&run->external->reader, SIGKILL, NULL); /* nothing more comes */
    gone(run->external);
}

static void on_destroyed(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;
    struct err err = {0};

    if (!is_awaited(external))
        return;
    struct run *run = external->run;
    if (reply->status == GRPC_OK || external_is_unknown(reply)) {
        output_find(external); /* an earlier life of ours may have told it nothing */
        output_drain(external, on_read_out);
        run_at(run, DRAIN_BOUND_MS, on_not_read_out);
        if (!output_is_open(external))
            gone(external);
        return;
    }
    external_fault(reply, external->record.driver, &err);
    err.recoverable = true;
    run_fail_all(run, &err);
    if (run->reported)
        try_again(external); /* its end is owed */
    else
        run_free(run);
}

/* What the plugin has of it goes, and whatever of it runs is ended. */
static void destroy(struct external *external)
{
    struct run *run = external->run;
    struct err err = {0};

    if (!text_equal(external->record.boot_id, run->drivers->boot_id)) {
        gone(external); /* with its boot */
        return;
    }
    external->step = STEP_DESTROY;
    external->request = external_ask_destroy(external, on_destroyed, &err);
    if (external->request != NULL)
        return;
    err.recoverable = true;
    run_fail_all(run, &err);
    if (run->reported)
        try_again(external);
    else
        run_free(run);
}

/* --- what comes next --- */

static void go_on(struct external *external)
{
    struct run *run = external->run;
    bool is_of_boot = text_equal(external->record.boot_id, run->drivers->boot_id);

    io_timer_stop(&run->timer);
    if (external->recorded && !external->has_ended && is_of_boot)
        output_see(external);
    if (external->recorded && run_has(run, CALL_DESTROY))
        destroy(external);
    else if (!external->recorded && external->task != NULL)
        start(external);
    else if (external->has_ended)
        conclude(external);
    else if (!is_of_boot)
        end_unknown(external, "exit unknown: the host was booted while it ran");
    else if (external->record.stage == STAGE_STARTED)
        recover(external);
    else
        inspect(external);
}

/* --- signals --- */

static void on_force_time(struct io_timer *timer);

static void force_at(struct external *external, uint64_t at_ms)
{
    io_timer_start(external->run->drivers->config.loop, &external->kill, at_ms, on_force_time,
                   external);
}

/* How it has ended is what its wait says. */
static void on_stopped(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;

    (void)reply; /* if it goes on all the same, it is ended by force */
    external->stopping = NULL;
}

static void on_force_time(struct io_timer *timer)
{
    struct external *external = timer->ctx;
    struct err err = {0};

    if (external->has_ended)
        return;
    external_cancel(&external->stopping);
    if (external->step == STEP_WAIT)
        external->stopping = external_ask_destroy(external, on_stopped, &err);
    force_at(external, loop_now_ms() + FORCE_AGAIN_MS);
}

/* Its time may have become shorter. */
static void send_stop(struct external *external)
{
    const struct external_record *record = &external->record;
    uint64_t now_ms = loop_now_ms();
    uint64_t left_ms = record->kill_ms > now_ms ? record->kill_ms - now_ms : 0;
    struct err err = {0};

    external_cancel(&external->stopping);
    external->stopping = external_ask_stop(external, left_ms, on_stopped, &err);
    force_at(external, record->kill_ms > UINT64_MAX - FORCE_AFTER_MS
                           ? UINT64_MAX
                           : now_ms + left_ms + FORCE_AFTER_MS);
}

static void note_stop(struct external *external, const struct call *call)
{
    struct external_record *record = &external->record;

    if (record->stop_ms == 0) {
        record->stop_ms = loop_now_ms();
        record->stop_signal = call->signal;
        record->kill_ms = call->at_ms;
    } else if (call->at_ms < record->kill_ms) {
        record->kill_ms = call->at_ms;
    } else {
        return;
    }
    if (external->recorded)
        external_put(external);
    if (external->step == STEP_WAIT)
        send_stop(external);
}

static void on_signaled(void *ctx, const struct grpc_reply *reply)
{
    struct external *external = ctx;
    struct call *call = external->signal_call;
    struct err err = {0};

    external->signaling = NULL;
    if (external->run == NULL || call == NULL)
        return;
    external->signal_call = NULL;
    if (reply->status == GRPC_OK) {
        if (call->once != 0) {
            external->record.once = call->once;
            external_put(external);
        }
        call_finish(external->run->drivers, call, DRIVER_DONE);
    } else {
        external_fault(reply, external->record.driver, &err);
        call_fail(external->run->drivers, call, &err);
    }
    send_requests(external);
}

static void send_signal(struct external *external, struct call *call)
{
    struct err err = {0};

    external->signal_call = call;
    external->signaling = external_ask_signal(external, call->signal, on_signaled, &err);
    if (external->signaling != NULL)
        return;
    external->signal_call = NULL;
    call_fail(external->run->drivers, call, &err);
}

/* Stops are noted, in whatever state it is; signals are sent to what runs, one after another. */
static void send_requests(struct external *external)
{
    struct run *run = external->run;
    struct call_list calls = run->calls;

    if (external->step == STEP_WAIT && external->record.stop_ms != 0 && external->stopping == NULL)
        send_stop(external); /* of one that was told so before its plugin was lost */
    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->kind == CALL_STOP) {
            note_stop(external, call);
            call_finish(run->drivers, call, DRIVER_DONE);
        } else if (call->kind == CALL_SIGNAL && call->once != 0 &&
                   call->once == external->record.once) {
            call_finish(run->drivers, call, DRIVER_DONE); /* it was sent before a crash */
        } else if (call->kind == CALL_SIGNAL && external->step == STEP_WAIT &&
                   external->signal_call == NULL) {
            send_signal(external, call);
        } else {
            calls_add(&run->calls, call);
        }
    }
}

/* --- calls --- */

void external_advance(struct run *run)
{
    struct external *external = run->external;

    send_requests(external);
    if (external->told_running && !external->has_ended)
        run_tell_running(run);
    if (!external->recorded && (run_has(run, CALL_DESTROY) || external->record.stop_ms != 0)) {
        (void)err_set(&external->failed, ERR_CANCELED,
                      "the task was stopped before its plugin was there");
        fail_start(external);
    } else if (run_has(run, CALL_DESTROY) && external->step != STEP_DESTROY) {
        external_forget_request(external);
        if (external->has_ended)
            conclude(external); /* which removes it */
        else
            go_on(external);
    }
}

void external_plugin_changed(struct run *run, const char *driver)
{
    struct external *external = run->external;

    if (external->step == STEP_AWAIT && text_equal(external->record.driver, driver))
        go_on(external);
}

bool external_is_running(const struct run *run)
{
    return run->external->told_running && !run->external->has_ended;
}

/* --- beginning, and coming back --- */

static void take(struct run *run, struct external *external)
{
    external->run = run;
    run->external = external;
    run->phase = RUN_EXTERNAL;
}

void external_begin(struct run *run, struct external *external)
{
    take(run, external);
    external->give_up_ms = loop_now_ms() + GIVE_UP_MS;
    later(external, 0); /* when the lock of its file is free: who reads its output takes it */
}

/* Texts of a record that somebody else may have written have an end. */
static void end_texts(struct external_record *record)
{
    record->boot_id[sizeof(record->boot_id) - 1] = '\0';
    record->driver[sizeof(record->driver) - 1] = '\0';
    record->id[sizeof(record->id) - 1] = '\0';
    record->alloc_dir[sizeof(record->alloc_dir) - 1] = '\0';
}

bool external_take_up(struct run *run, int task_fd)
{
    struct external *external = calloc(1, sizeof(*external));

    check(external != NULL);
    external->reader_fd = external->pipe_fds[0] = external->pipe_fds[1] = -1;
    if (task_file_get(task_fd, TASK_STARTED_AT, RECORD_MAGIC_EXTERNAL, &external->record,
                      sizeof(external->record), NULL) != 0) {
        external_free(external);
        return false;
    }
    end_texts(&external->record);
    take(run, external);
    external->recorded = true;
    external->has_ended = exit_record_get(task_fd, &external->end, NULL) == 0;
    send_requests(external);
    later(external, 0); /* likewise */
    return true;
}
