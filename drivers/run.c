/*
 * A run from its key to its payload: finding the shim, or having it made, and talking with it.
 *
 * Follows DESIGN section 4: the shim is found by key, never by chance.  The lock decides first, the
 * exit record second; a pid from a file decides nothing.
 */
#include "drivers/part.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_start_bound(struct io_timer *timer);

/* --- talking --- */

/* A message that cannot be sent gets no answer: then the connection's end, or the bound of waiting
 * for the answer, decides.  An end may be on its way with an EXIT before it. */
static void tell(struct run *run, void *message, size_t size, uint16_t kind, uint32_t ticket)
{
    struct shim_head *head = message;

    *head = (struct shim_head){.kind = kind, .protocol = run->protocol, .ticket = ticket};
    (void)send(run->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT); /* see above */
}

static void on_no_reply(struct io_timer *timer)
{
    struct run *run = timer->ctx;
    struct err err = {0};

    if (run_has(run, CALL_DESTROY)) {
        run_kill_shim(run);
        return;
    }
    (void)err_set(&err, ERR_TIMEOUT, "the task's supervisor does not answer");
    err.recoverable = true;
    run_fail_calls(run, &err);
}

/* An older shim that cannot pass on a signal: we send it ourselves, to the very process that the
 * shim named (I-4). */
static void signal_payload(struct run *run, struct call *call)
{
    struct err err = {0};

    if (run->phase != RUN_RUNNING)
        (void)err_set(&err, ERR_GONE, "the task is not running");
    else if (proc_signal(&run->payload, call->signal, &err) == 0) {
        call_finish(run->drivers, call, DRIVER_DONE);
        return;
    }
    call_fail(run->drivers, call, &err);
}

static void send_request(struct run *run, struct call *call)
{
    uint64_t now_ms = loop_now_ms();

    call->ticket = ++run->next_ticket;
    if (call->kind == CALL_STOP) {
        struct shim_stop stop = {.signal = call->signal,
                                 .timeout_ms = call->at_ms > now_ms ? call->at_ms - now_ms : 0};

        tell(run, &stop, sizeof(stop), SHIM_STOP, call->ticket);
    } else {
        struct shim_signal signal = {.signal = call->signal, .once = call->once};

        tell(run, &signal, sizeof(signal), SHIM_SIGNAL, call->ticket);
    }
}

/* Sends what waits for a connection: stops, signals, a destroyer's kill. */
static void send_requests(struct run *run)
{
    struct call_list calls = run->calls;
    bool waiting = false;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        bool is_request = call->kind == CALL_STOP || call->kind == CALL_SIGNAL;

        if (call->kind == CALL_SIGNAL && run->protocol == 1) {
            signal_payload(run, call);
            continue;
        }
        if (is_request && call->ticket == 0)
            send_request(run, call);
        waiting |= is_request;
        calls_add(&run->calls, call);
    }
    if (run_has(run, CALL_DESTROY) && !run->stop_sent) {
        struct shim_stop stop = {.signal = SIGKILL, .timeout_ms = 0};

        run->stop_sent = true;
        tell(run, &stop, sizeof(stop), SHIM_STOP, 0);
        run_at(run, OBEY_BOUND_MS, on_no_reply);
    } else if (waiting && !run->stop_sent) {
        run_at(run, ANSWER_BOUND_MS, on_no_reply);
    }
}

static void on_reply(struct run *run, const struct shim_reply *reply)
{
    struct call_list calls = run->calls;
    bool waiting = false;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->ticket == 0 || call->ticket != reply->head.ticket) {
            waiting |= call->ticket != 0;
            calls_add(&run->calls, call);
        } else if (reply->code == 0) {
            call_finish(run->drivers, call, DRIVER_DONE);
        } else if (reply->code == ERR_UNSUPPORTED && call->kind == CALL_SIGNAL) {
            signal_payload(run, call);
        } else {
            struct err err = {0};

            (void)err_set(&err, reply->code, "the task is not running");
            call_fail(run->drivers, call, &err);
        }
    }
    if (waiting || run_has(run, CALL_DESTROY))
        return;
    if (run->phase == RUN_STARTING)
        run_at(run, START_BOUND_MS, on_start_bound);
    else
        io_timer_stop(&run->timer);
}

bool run_is_running(const struct run *run)
{
    switch (run->phase) {
    case RUN_RUNNING:
    case RUN_FOUND:
    case RUN_HELD:
        return true;
    case RUN_CONTAINED:
        return container_is_running(run);
    case RUN_EXTERNAL:
        return external_is_running(run);
    case RUN_CONNECTING:
    case RUN_HELLO:
        return run->reported;
    case RUN_NEW:
    case RUN_STARTING:
    case RUN_LEAVING:
    case RUN_EMPTYING:
        break;
    }
    return false;
}

void run_tell_running(struct run *run)
{
    struct call_list calls = run->calls;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->kind == CALL_START || call->kind == CALL_RECOVER) {
            call->result.shim = run->shim;
            call->result.payload = run->payload;
            run->reported = true;
            call_finish(run->drivers, call, DRIVER_RUNNING);
        } else {
            calls_add(&run->calls, call);
        }
    }
}

static void now_running(struct run *run)
{
    run->phase = RUN_RUNNING;
    if (!run->stop_sent)
        io_timer_stop(&run->timer); /* else it bounds the shim's obedience */
    found_sweep(run);
    plan_free(run->plan);
    run->plan = NULL;
    run_tell_running(run);
    send_requests(run);
}

/* There is a shim, but no speaking with it.  A destroy kills it; of what was reported as running
 * the end is owed, so that we try again, as long as it takes; anything else is found by key when
 * somebody asks again. */
static void without_answer(struct run *run, const struct err *err)
{
    run_fail_calls(run, err);
    if (run_has(run, CALL_DESTROY))
        run_kill_shim(run);
    else if (run->reported)
        run_leave(run);
    else
        run_free(run);
}

static void on_start_bound(struct io_timer *timer)
{
    struct err err = {0};

    (void)err_set(&err, ERR_TIMEOUT, "the task's program did not start within %d s",
                  START_BOUND_MS / 1000);
    err.recoverable = true;
    without_answer(timer->ctx, &err);
}

static void on_state(struct run *run, const struct shim_state *state)
{
    struct err err = {0};

    if (state->key_digest != run->digest || state->head.protocol == 0) {
        (void)err_set(&err, ERR_UNSUPPORTED,
                      "the task's supervisor (%.15s, protocol %u to %u) does not understand us",
                      state->version, state->oldest, state->newest);
        without_answer(run, &err);
        return;
    }
    birth_over(run);
    run->protocol = state->head.protocol;
    run->shim = (struct proc_identity){state->shim_pid, state->shim_ticks};
    run->payload = (struct proc_identity){state->payload_pid, state->payload_ticks};
    if (state->phase != SHIM_STARTING) {
        if (run->phase != RUN_RUNNING)
            now_running(run);
    } else if (run->phase == RUN_HELLO) {
        run->phase = RUN_STARTING;
        run_at(run, START_BOUND_MS, on_start_bound);
        send_requests(run);
    }
}

static void on_message(struct io_watch *watch, int events)
{
    struct run *run = watch->ctx;
    _Alignas(8) char message[SHIM_MESSAGE_MAX];
    const struct shim_head *head = (const void *)message;
    ssize_t got = recv(run->fd, message, sizeof(message), MSG_DONTWAIT);
    size_t size = got > 0 ? (size_t)got : 0;

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size >= sizeof(*head)) {
        struct exit_record exit;

        /* A message of a kind we do not know comes from a newer shim and is not meant for us. */
        if ((head->kind == SHIM_WELCOME || head->kind == SHIM_STARTED ||
             head->kind == SHIM_STATE) &&
            size >= sizeof(struct shim_state)) {
            on_state(run, (const void *)message);
            return;
        }
        if (head->kind == SHIM_REPLY && size >= sizeof(struct shim_reply)) {
            on_reply(run, (const void *)message);
            return;
        }
        if (head->kind == SHIM_EXIT &&
            exit_record_take(message + sizeof(*head), size - sizeof(*head), &exit)) {
            run_conclude(run, &exit);
        } else if (head->kind != SHIM_EXIT) {
            return;
        }
    }
    run_leave(run);
}

/* --- finding --- */

static void on_no_hello(struct io_timer *timer)
{
    struct err err = {0};

    (void)err_set(&err, ERR_TIMEOUT, "the task's supervisor does not answer");
    err.recoverable = true;
    without_answer(timer->ctx, &err);
}

static void hello(struct run *run, int fd)
{
    run->phase = RUN_HELLO;
    run_on_watch(run, fd, IO_READABLE, on_message);
    run_at(run, run_has(run, CALL_DESTROY) ? OBEY_BOUND_MS : ANSWER_BOUND_MS, on_no_hello);
}

static void on_retry(struct io_timer *timer)
{
    struct run *run = timer->ctx;

    if (run->phase == RUN_CONNECTING && loop_now_ms() >= run->bound_ms)
        on_no_hello(timer);
    else
        run_attach(run);
}

/* The lock is held: somebody is there, or will be in a moment, or is just ending. */
static void connect_to_shim(struct run *run)
{
    int fd = -1;

    if (shim_connect(run->drivers->shim_fd, &run->key, &fd, NULL) == 0) {
        if (shim_greet(fd)) {
            run->is_found |= !run->reported;
            hello(run, fd);
            return;
        }
        (void)close(fd); /* hung up on us already */
    }
    if (run->phase != RUN_CONNECTING) {
        run->phase = RUN_CONNECTING;
        run->bound_ms =
            loop_now_ms() + (run_has(run, CALL_DESTROY) ? OBEY_BOUND_MS : CONNECT_BOUND_MS);
        run->retry_ms = RETRY_FIRST_MS;
    }
    run_at(run, run->retry_ms, on_retry);
    run->retry_ms = run->retry_ms * 2 < RETRY_LONGEST_MS ? run->retry_ms * 2 : RETRY_LONGEST_MS;
}

/* --- making --- */

/* Fails all starts, each with its own reason if it has one (a config that is not valid). */
static void fail_starts(struct run *run, const struct err *err)
{
    struct call_list calls = run->calls;

    if (calls.first == NULL)
        return;
    calls_init(&run->calls);
    for (struct call *call; (call = calls_take(&calls)) != NULL;) {
        if (call->kind != CALL_START)
            calls_add(&run->calls, call);
        else
            call_fail(run->drivers, call, call->result.error.code != 0 ? &call->result.error : err);
    }
}

/* What PLAN asks for, whose file is TASK_FD. */
static int begin(struct run *run, struct plan *plan, int task_fd, struct err *err)
{
    struct mock *mock = plan->mock;
    int fd;

    plan->mock = NULL;
    if (mock != NULL)
        return held_begin(run, mock, task_fd, err);
    int code = birth_begin(run, plan, task_fd, &fd, err);
    if (code != 0)
        return code;
    hello(run, fd);
    run_at(run, START_BOUND_MS, on_start_bound);
    return 0;
}

/* The lock is free or there is none: nobody will write for this key any more. */
static void settle(struct run *run, int task_fd, bool begun)
{
    struct plan *plan = run->plan;
    struct exit_record record;
    struct err err = {0};

    run->plan = NULL;
    if (begun && (container_take_up(run, task_fd) || external_take_up(run, task_fd))) {
        /* it goes on, or is over */
    } else if (begun && exit_record_get(task_fd, &record, NULL) == 0) {
        run_conclude(run, &record);
        run_go_on(run);
    } else if (begun && held_take_up(run, task_fd)) {
        /* it goes on */
    } else if (begun || !run_has(run, CALL_START)) {
        if (!begun && task_fd >= 0)
            (void)key_remove_files(run->drivers->shim_fd, &run->key, &err); /* else: the sweep */
        run_empty(run);
    } else if (plan != NULL && plan->container != NULL && !run_has(run, CALL_DESTROY)) {
        struct container *container = plan->container;

        plan->container = NULL;
        container_begin(run, container);
    } else if (plan != NULL && plan->external != NULL && !run_has(run, CALL_DESTROY)) {
        struct external *external = plan->external;

        plan->external = NULL;
        external_begin(run, external);
    } else if (plan == NULL || run_has(run, CALL_DESTROY) || begin(run, plan, task_fd, &err) != 0) {
        if (err.code == 0) {
            (void)err_set(&err, ERR_GONE, "the task's supervisor ended before it started anything");
            err.recoverable = true;
        }
        fail_starts(run, &err);
        run_empty(run); /* nothing was started: this ends at once */
    }
    plan_free(plan);
}

void run_attach(struct run *run)
{
    enum lock_state state;
    int task_fd = -1;
    bool begun = false;
    struct err err = {0};

    run_off_watch(run);
    io_timer_stop(&run->timer);
    int code = key_lock_take(run->drivers->shim_fd, &run->key, run->plan != NULL, &state, &task_fd,
                             &begun, &err);
    if (code != 0) {
        err.recoverable = true;
        run_fail_all(run, &err);
        if (run->reported)
            run_at(run, KILL_REPEAT_MS,
                   on_retry); /* out of descriptors, perhaps: its end is owed */
        else
            run_free(run);
        return;
    }
    if (state != LOCK_HELD)
        settle(run, task_fd, begun); /* may free the run */
    else if (!found_take_up(run, task_fd))
        connect_to_shim(run);
    if (task_fd >= 0)
        (void)close(task_fd); /* a shim that was made has it now */
}

void run_advance(struct run *run)
{
    bool destroy = run_has(run, CALL_DESTROY);

    switch (run->phase) {
    case RUN_NEW: /* it attaches soon, when its look-up is back and its turn has come */
    case RUN_EMPTYING:
        break;
    case RUN_CONNECTING:
        if (destroy)
            run->bound_ms = loop_now_ms() + OBEY_BOUND_MS;
        break;
    case RUN_HELLO:
        if (destroy)
            run_at(run, OBEY_BOUND_MS, on_no_hello);
        break;
    case RUN_STARTING:
        send_requests(run);
        break;
    case RUN_RUNNING:
        now_running(run);
        break;
    case RUN_FOUND:
        found_advance(run);
        break;
    case RUN_HELD:
        held_advance(run);
        break;
    case RUN_CONTAINED:
        container_advance(run);
        break;
    case RUN_EXTERNAL:
        external_advance(run);
        break;
    case RUN_LEAVING:
        if (destroy && run->ended)
            run_at(run, OBEY_BOUND_MS, on_no_reply);
        break;
    }
}
