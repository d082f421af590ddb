/*
 * The life of a container, as docker.h has it.
 *
 *   IMAGE -> PULL -> NETWORK -> CREATE -> START -> LOOK -> WAIT -> LOOK -> DRAIN -> its end is told
 *                        \________\________/______/^  \-- it has not started: that is told
 *
 * LOOK is where all roads meet: after a request whose answer is lost, after a crash, after the
 * Engine was away.  Nothing else says that a container runs or has ended, but for one thing: a
 * process that is seen to live, by its number and the time of its start, runs.
 *
 * An Engine that was not there when a container ended says 255 of it, whatever it was.  So that
 * counts only from one that has told of the end while we were listening.
 */
#include "drivers/docker/docker.h"

#include "io/log.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RETRY_SHORTEST_MS = 100,
    RETRY_SLOWEST_MS = 10000,
    SIGNAL_AGAIN_MS = 1000,
    DRAIN_BOUND_MS = 10000,
    REMOVE_BOUND_MS = 60000,
    UNWITNESSED_CODE = 255,
    PATH_QUERY_SIZE = CONTAINER_NAME_SIZE + 64,
};

static void look(struct container *container);
static void later(struct container *container);
static void remove_it(struct container *container);
static void send_signals(struct container *container);

/* --- asking --- */

void container_ask(struct container *container, enum container_step step, const char *method,
                   const char *name, const char *more, const json_t *body,
                   void (*cb)(void *, const struct http_reply *))
{
    char path[PATH_QUERY_SIZE];
    struct err err = {0};

    check(text_format(path, sizeof(path), "/containers/%s%s", name, more));
    const struct engine_ask asked = {.method = method,
                                     .path = path,
                                     .body = body,
                                     .lasts = step == STEP_WAIT,
                                     .secret = body != NULL,
                                     .cb = cb,
                                     .ctx = container};
    check(container->request == NULL);
    container->step = step;
    container->request = engine_ask(container->run->drivers, &asked, &err);
    if (container->request == NULL)
        later(container);
}

static void ask(struct container *container, enum container_step step, const char *method,
                const char *more, void (*cb)(void *, const struct http_reply *))
{
    container_ask(container, step, method, container->name, more, NULL, cb);
}

static void on_later(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    look(run->container);
}

static void later(struct container *container)
{
    container->step = STEP_LATER;
    run_retry(container->run, RETRY_SHORTEST_MS, RETRY_SLOWEST_MS, on_later);
}

/* --- its end --- */

/* What is told of it is written down first.  May free the run. */
static void conclude(struct container *container)
{
    struct run *run = container->run;

    container_forget_request(container);
    logs_close(container);
    io_timer_stop(&container->kill);
    if (container->signal_call != NULL) {
        struct err err = {0};

        (void)err_set(&err, ERR_GONE, "the task is not running");
        call_fail(run->drivers, container->signal_call, &err);
        container->signal_call = NULL;
    }
    run_put(run, TASK_EXIT_AT, &container->end, RECORD_MAGIC_EXIT, sizeof(container->end));
    run_conclude(run, &container->end);
    if (run_has(run, CALL_DESTROY))
        remove_it(container);
    else
        run_free(run);
}

static void on_drained(struct container *container)
{
    if (container->step == STEP_DRAIN)
        conclude(container);
}

static void on_undrained(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    log_warn("drivers", "the last output of a container does not come task=%s/%s", run->key.alloc,
             run->key.task);
    conclude(run->container);
}

/* What it has said last is fetched before its end is told, as long as the Engine gives it. */
static void end(struct container *container, const struct exit_record *record)
{
    container->end = *record;
    container->has_ended = true;
    container->step = STEP_DRAIN;
    io_timer_stop(&container->kill);
    if (record->kind == EXIT_ENDED)
        logs_follow(container, on_drained);
    if (!logs_are_open(container)) {
        conclude(container);
        return;
    }
    run_at(container->run, DRAIN_BOUND_MS, on_undrained);
}

static void end_unknown(struct container *container, const char *why)
{
    struct exit_record record = {.kind = EXIT_UNKNOWN};

    (void)text_copy(record.message, sizeof(record.message), why); /* may be cut */
    end(container, &record);
}

/* As the Engine says it. */
static void end_as(struct container *container, const struct container_state *state)
{
    struct exit_record record = {.kind = EXIT_ENDED,
                                 .code = (int32_t)(state->code & 255),
                                 .oom_killed = state->oom_killed,
                                 .finished_unix_ns = state->finished_unix_ns};

    if (state->code == UNWITNESSED_CODE && !container->end_seen) {
        record.kind = EXIT_UNKNOWN;
        (void)text_copy(record.message, sizeof(record.message),
                        "exit unknown: the Docker Engine was away when it ended"); /* fits */
    } else {
        (void)text_copy(record.message, sizeof(record.message), state->error); /* may be cut */
    }
    end(container, &record);
}

void container_fail(struct container *container)
{
    struct run *run = container->run;
    struct err failed = container->failed;

    check(failed.code != 0);
    container_forget_request(container);
    if (!container->recorded) {
        images_leave(run->drivers, &run->key);
        run_fail_calls(run, &failed);
        run_empty(run); /* nothing was made: this ends at once */
        return;
    }
    container->end = (struct exit_record){.kind = EXIT_NOT_STARTED,
                                          .error_code = failed.code,
                                          .error_os = failed.os,
                                          .error_recoverable = failed.recoverable};
    (void)text_copy(container->end.message, sizeof(container->end.message),
                    failed.text); /* of the same size */
    container->has_ended = true;
    conclude(container);
}

/* --- how it is --- */

static void on_waited(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL)
        return;
    json_t *body = json_loadb(reply->body, reply->body_length, 0, NULL);
    container->end_seen =
        reply->status == 200 && json_is_integer(json_object_get(body, "StatusCode"));
    json_decref(body);
    if (container->end_seen)
        look(container);
    else
        later(container);
}

/* The process PID is its first one, and is known by when it began from now on. */
static void note_process(struct container *container, pid_t pid)
{
    struct container_record *record = &container->record;
    struct proc_identity payload;

    if (pid <= 1 || proc_identify(pid, &payload, NULL) != 0)
        return; /* it has just ended, and that is told soon */
    container_cgroup_of(container->run->drivers, pid, container->cgroup);
    container->run->payload = payload;
    if (record->payload_pid == (uint32_t)payload.pid &&
        record->payload_ticks == payload.start_ticks)
        return;
    record->payload_pid = (uint32_t)payload.pid;
    record->payload_ticks = payload.start_ticks;
    container_put(container);
}

static void tell_running(struct container *container)
{
    container->told_running = true;
    run_tell_running(container->run);
    send_signals(container);
}

static void now_runs(struct container *container, const struct container_state *state)
{
    container->run->retry_ms = 0;
    container->has_started = true;
    container->state = *state;
    json_decref(container->wanted);
    container->wanted = NULL;
    logs_follow(container, on_drained);
    ask(container, STEP_WAIT, "POST", "/wait?condition=not-running", on_waited);
    tell_running(container);
}

static void on_started(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL)
        return;
    container->start_asked = true;
    if (reply->status != 0 && reply->status / 100 != 2 && reply->status != 304)
        (void)engine_fault(reply, &container->failed);
    look(container);
}

/* It was made, and nobody has started it. */
static void on_unstarted(struct container *container)
{
    bool same_boot = text_equal(container->record.boot_id, container->run->drivers->boot_id);

    if (!container->start_asked) /* it was made, whatever the Engine has said of that */
        container->failed = (struct err){0};
    if (container->failed.code == 0 && container->record.stop_ms != 0)
        (void)err_set(&container->failed, ERR_CANCELED, "the task was stopped before it started");
    if (container->failed.code == 0 && !same_boot) { /* what it mounts is made anew */
        (void)err_set(&container->failed, ERR_GONE, "the host was booted before the task started");
        container->failed.recoverable = true;
    }
    if (container->failed.code != 0)
        container_fail(container);
    else
        ask(container, STEP_START, "POST", "/start", on_started);
}

/* There is none. */
static void on_absent(struct container *container)
{
    if (container->has_started) {
        end_unknown(container,
                    "exit unknown: somebody has removed the container, and with it how it ended");
        return;
    }
    if (container->failed.code == 0) {
        (void)err_set(&container->failed, ERR_GONE, "the container was not made");
        container->failed.recoverable = true;
    }
    container_fail(container);
}

static void on_state(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;
    struct container_state state;

    container->request = NULL;
    if (container->run == NULL)
        return;
    struct run *run = container->run;
    if (reply->status == 404) {
        on_absent(container);
        return;
    }
    if (reply->status != 200 ||
        !engine_read_state(reply, run->drivers->node_mark, &run->key, &state)) {
        later(container);
        return;
    }
    if (!state.ours && container->has_started) {
        on_absent(container);
    } else if (!state.ours) {
        (void)err_set(&container->failed, ERR_EXISTS, "a container \"%.100s\" exists already",
                      container->name);
        container_fail(container);
    } else if (state.runs) {
        note_process(container, state.pid);
        if (!container->is_swept)
            container_sessions_sweep(run, reply);
        container->is_swept = true;
        now_runs(container, &state);
    } else if (!state.was_started) {
        on_unstarted(container);
    } else {
        container->has_started = true;
        container->state = state;
        end_as(container, &state);
    }
}

static void look(struct container *container)
{
    ask(container, STEP_LOOK, "GET", "/json", on_state);
}

/* --- making --- */

static void on_created(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;

    container->request = NULL;
    if (container->run == NULL)
        return;
    json_decref(container->wanted);
    container->wanted = NULL;
    if (run_has(container->run, CALL_DESTROY)) {
        remove_it(container);
        return;
    }
    if (reply->status / 100 == 4 && reply->status != 409) { /* 409: it was made before */
        (void)engine_fault(reply, &container->failed);
        container->failed.recoverable |= reply->status == 404; /* the image has just gone */
    } else if (reply->status / 100 == 5) {
        (void)engine_fault(reply, &container->failed);
    }
    if (reply->status / 100 == 4 && reply->status != 409)
        container_fail(container);
    else
        look(container);
}

void container_create(struct container *container)
{
    char more[PATH_QUERY_SIZE];

    check(text_format(more, sizeof(more), "?name=%s", container->name));
    container_ask(container, STEP_CREATE, "POST", "create", more, container->wanted, on_created);
}

void container_make(struct container *container)
{
    struct container_record *record = &container->record;

    check(json_object_set_new(container->wanted, "Image", json_string(record->image)) == 0);
    if (container->sharer != NULL)
        check(json_object_set_new(container->sharer, "Image", json_string(record->image)) == 0);
    record->has_network = container->sharer != NULL;
    record->begun_unix_ns = loop_now_unix_ns();
    logs_find_first(container);
    if (run_put_first(container->run, record, RECORD_MAGIC_CONTAINER, sizeof(*record),
                      &container->failed) != 0) {
        container_fail(container);
        return;
    }
    container->recorded = true;
    if (container->sharer != NULL)
        network_share(container);
    else
        container_create(container);
}

/* --- signals --- */

static void on_kill_time(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    send_signals(run->container);
}

static void answer_signal(struct container *container, const struct http_reply *reply)
{
    struct call *call = container->signal_call;
    struct err err = {0};

    container->signal_call = NULL;
    if (reply->status / 100 == 2) {
        if (call->once != 0) {
            container->record.once = call->once;
            container_put(container);
        }
        call_finish(container->run->drivers, call, DRIVER_DONE);
        return;
    }
    if (reply->status == 404 || reply->status == 409)
        (void)err_set(&err, ERR_GONE, "the task is not running");
    else
        (void)engine_fault(reply, &err);
    call_fail(container->run->drivers, call, &err);
}

static void on_signaled(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;
    bool arrived = reply->status / 100 == 2 || reply->status == 404 || reply->status == 409;

    container->signaling = NULL;
    if (container->run == NULL)
        return;
    if (container->signal_call != NULL) {
        answer_signal(container, reply);
    } else if (arrived && !container->killed) {
        container->record.stop_sent = 1;
        container_put(container);
    } else { /* a kill is repeated until the end is seen */
        io_timer_start(container->run->drivers->config.loop, &container->kill,
                       loop_now_ms() + SIGNAL_AGAIN_MS, on_kill_time, container->run);
        return;
    }
    send_signals(container);
}

static void send_signal(struct container *container, int signal)
{
    char path[PATH_QUERY_SIZE];
    struct err err = {0};

    check(
        text_format(path, sizeof(path), "/containers/%s/kill?signal=%d", container->name, signal));
    const struct engine_ask asked = {
        .method = "POST", .path = path, .cb = on_signaled, .ctx = container};
    container->signaling = engine_ask(container->run->drivers, &asked, &err);
    if (container->signaling != NULL)
        return;
    if (container->signal_call != NULL)
        call_fail(container->run->drivers, container->signal_call, &err);
    container->signal_call = NULL;
    io_timer_start(container->run->drivers->config.loop, &container->kill,
                   loop_now_ms() + SIGNAL_AGAIN_MS, on_kill_time, container->run);
}

static struct call *take_signal(struct run *run)
{
    struct call_list calls = run->calls;
    struct call *found = NULL;

    if (calls.first == NULL)
        return NULL;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (found == NULL && call->kind == CALL_SIGNAL)
            found = call;
        else
            calls_add(&run->calls, call);
    }
    return found;
}

/* The next that is due: a kill, a stop, a signal; of one that runs, as the Engine has said, too. */
static void send_signals(struct container *container)
{
    struct container_record *record = &container->record;
    struct run *run = container->run;
    uint64_t now_ms = loop_now_ms();
    int image_says = container->state.stop_signal;

    if (container->signaling != NULL || !container->told_running || container->has_ended ||
        container->state.id[0] == '\0')
        return;
    container->killed = record->stop_ms != 0 && now_ms >= record->kill_ms;
    if (container->killed) {
        send_signal(container, SIGKILL);
        return;
    }
    if (record->stop_ms != 0 && record->stop_sent == 0) {
        send_signal(container, record->stop_signal != 0 ? record->stop_signal
                               : image_says != 0        ? image_says
                                                        : SIGTERM);
        return;
    }
    if (record->stop_ms != 0)
        io_timer_start(run->drivers->config.loop, &container->kill, record->kill_ms, on_kill_time,
                       run);
    for (struct call *call; (call = take_signal(run)) != NULL;) {
        if (call->once != 0 && call->once == record->once) { /* it was sent before a crash */
            call_finish(run->drivers, call, DRIVER_DONE);
            continue;
        }
        container->signal_call = call;
        send_signal(container, call->signal);
        return;
    }
}

static void note_stop(struct container *container, const struct call *call)
{
    struct container_record *record = &container->record;

    if (record->stop_ms == 0) {
        record->stop_ms = loop_now_ms();
        record->stop_signal = call->signal;
        record->kill_ms = call->at_ms;
    } else if (call->at_ms < record->kill_ms) {
        record->kill_ms = call->at_ms;
    }
    if (container->recorded)
        container_put(container);
}

/* --- removing --- */

static void on_remove_again(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    remove_it(run->container);
}

static void on_removed(void *ctx, const struct http_reply *reply)
{
    struct container *container = ctx;
    struct err err = {0};

    container->request = NULL;
    if (container->run == NULL)
        return;
    struct run *run = container->run;
    bool is_gone = reply->status / 100 == 2 || reply->status == 404;
    if (is_gone && !container->is_removed && container->record.has_network != 0) {
        container->is_removed = true;
        remove_it(container);
        return;
    }
    if (is_gone) {
        if (!container->has_ended)
            run_conclude(run, NULL);
        run->ended = true;
        run_empty(run);
        return;
    }
    if (reply->status == 409 && loop_now_ms() < run->bound_ms) { /* it is being removed already */
        run_at(run, SIGNAL_AGAIN_MS, on_remove_again);
        return;
    }
    (void)engine_fault(reply, &err);
    err.recoverable = true;
    run_fail_all(run, &err);
    if (!run->reported)
        run_free(run);
    else
        later(container); /* its end is owed */
}

/* With force: whatever of it runs is killed.  What shares its network goes last. */
static void remove_it(struct container *container)
{
    struct run *run = container->run;
    char name[SHARER_NAME_SIZE];

    container_forget_request(container);
    logs_close(container);
    io_timer_stop(&container->kill);
    if (container->step != STEP_REMOVE)
        run->bound_ms = loop_now_ms() + REMOVE_BOUND_MS;
    if (container->is_removed)
        sharer_name(&run->key, name);
    else
        check(text_copy(name, sizeof(name), container->name));
    container_ask(container, STEP_REMOVE, "DELETE", name, "?force=1&v=1", NULL, on_removed);
}

/* --- calls --- */

/* Answers what can be answered now. */
static void answer_calls(struct container *container)
{
    struct run *run = container->run;
    struct call_list calls = run->calls;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->kind != CALL_STOP) {
            calls_add(&run->calls, call);
            continue;
        }
        note_stop(container, call);
        call_finish(run->drivers, call, DRIVER_DONE);
    }
    if (container->told_running && !container->has_ended)
        run_tell_running(run);
    send_signals(container);
}

void container_advance(struct run *run)
{
    struct container *container = run->container;

    answer_calls(container);
    if (container->step == STEP_DRAIN) {
        if (run_has(run, CALL_DESTROY))
            conclude(container); /* which removes it */
    } else if (run_has(run, CALL_DESTROY) && container->recorded) {
        if (container->step != STEP_NETWORK && container->step != STEP_CREATE &&
            container->step != STEP_REMOVE) /* else it follows */
            remove_it(container);
    } else if (!container->recorded &&
               (run_has(run, CALL_DESTROY) || container->record.stop_ms != 0)) {
        (void)err_set(&container->failed, ERR_CANCELED,
                      "the task was stopped before its image was there");
        container_fail(container);
    }
}

bool container_is_running(const struct run *run)
{
    return run->container->told_running && !run->container->has_ended;
}

const char *container_cgroup(const struct run *run)
{
    return run->container->cgroup;
}

/* --- beginning, and coming back --- */

static void take(struct run *run, struct container *container)
{
    container_name(&run->key, container->name);
    container->run = run;
    run->container = container;
    run->phase = RUN_CONTAINED;
}

void container_begin(struct run *run, struct container *container)
{
    take(run, container);
    container->is_swept = true;
    image_look(container);
}

/* Of another boot only what it was counts, not its times and numbers. */
static void forget_boot(struct container *container)
{
    struct container_record *record = &container->record;

    if (text_equal(record->boot_id, container->run->drivers->boot_id))
        return;
    record->payload_pid = 0;
    record->payload_ticks = record->stop_ms = record->kill_ms = 0;
    record->stop_sent = 0;
}

bool container_take_up(struct run *run, int task_fd)
{
    struct container *container = calloc(1, sizeof(*container));

    check(container != NULL);
    if (task_file_get(task_fd, TASK_STARTED_AT, RECORD_MAGIC_CONTAINER, &container->record,
                      sizeof(container->record), NULL) != 0) {
        container_free(container);
        return false;
    }
    struct container_record *record = &container->record;
    record->alloc_dir[sizeof(record->alloc_dir) - 1] = '\0';
    record->boot_id[sizeof(record->boot_id) - 1] = '\0';
    record->image[sizeof(record->image) - 1] = '\0';
    take(run, container);
    container->recorded = true;
    container->has_started = record->payload_pid != 0;
    forget_boot(container);
    if (exit_record_get(task_fd, &container->end, NULL) == 0) {
        container->has_ended = true;
        conclude(container);
        return true;
    }
    struct proc_identity payload = {(pid_t)record->payload_pid, record->payload_ticks};
    if (record->payload_pid > 1 && proc_is_alive(&payload)) {
        run->payload = payload;
        container_cgroup_of(run->drivers, payload.pid, container->cgroup);
        tell_running(container);
    }
    answer_calls(container);
    if (run_has(run, CALL_DESTROY))
        remove_it(container);
    else
        look(container);
    return true;
}
