/*
 * Shims and payloads, and the driver's calls on them.
 *
 * Follows drivers/drivers.h: everything is found by its key; a second start under a key finds what
 * the first one left; the exit record is written last, by the shim; the end of what was reported as
 * running is told once.  Shims and payloads live in the world and not in the daemon: what they are
 * about to do goes on when it dies.
 */
#include "agent/sim_world.h"
#include "fsm/policy.h"

#include <string.h>

enum {
    POLL_MS = 3,
    POLL_MS_MAX = 1000,
    LATE_START_MS = 5000, /* behind the bound of a start */
    SWEEP_MS = 6,
    EMPTY_MS = 4, /* from the kill of a cgroup to its being seen empty */
    SIGTERM_NUMBER = 15,
    SIGKILL_NUMBER = 9,
    SIGNAL_BASE = 128,
    EXEC_FAILED = 127,
};

/* Stages of driver calls. */
enum {
    DRIVER_LOOK,    /* what is there under the key */
    DRIVER_SPAWN,   /* make the shim */
    DRIVER_WAIT,    /* for the payload, or the shim's end */
    DRIVER_EMPTY,   /* the cgroup was killed: is it empty */
    DRIVER_REMOVE,  /* all is dead: remove what it leaves */
    DRIVER_GIVE_UP, /* the bound is reached */
};

/* --- attempts --- */

struct sim_attempt *sim_attempt(struct sim *sim, int alloc, int task, uint32_t generation)
{
    int32_t at = sim->allocs[alloc].tasks[task].newest;

    while (at >= 0 && sim->attempts[at].generation != generation)
        at = sim->attempts[at].next;
    return at < 0 ? NULL : &sim->attempts[at];
}

static size_t number_of(const struct sim *sim, const struct sim_attempt *attempt)
{
    return (size_t)(attempt - sim->attempts);
}

static struct sim_attempt *attempt_of(struct sim *sim, const struct sim_call *call)
{
    return sim_attempt(sim, call->whom.alloc, call->whom.member, call->generation);
}

static struct sim_attempt *new_attempt(struct sim *sim, const struct sim_call *call)
{
    struct sim_task_state *task = sim_task_of(sim, &call->whom);

    check(sim->attempts_count < sim->attempts_max);
    struct sim_attempt *attempt = &sim->attempts[sim->attempts_count];
    *attempt = (struct sim_attempt){
        .generation = call->generation,
        .alloc = call->whom.alloc,
        .task = call->whom.member,
        .next = task->newest,
    };
    task->newest = (int32_t)sim->attempts_count++;
    return attempt;
}

bool sim_attempt_lives(const struct sim_attempt *attempt)
{
    return attempt->payload == PAYLOAD_RUNNING || attempt->descendants;
}

bool sim_attempt_exists(const struct sim_attempt *attempt)
{
    return sim_attempt_lives(attempt) || attempt->begun || attempt->shim == SHIM_STARTING ||
           attempt->shim == SHIM_ALIVE;
}

bool sim_alloc_lives(const struct sim *sim, int alloc)
{
    for (int t = 0; t < sim->allocs[alloc].tasks_count; t++) {
        for (int32_t at = sim->allocs[alloc].tasks[t].newest; at >= 0;
             at = sim->attempts[at].next) {
            if (sim_attempt_lives(&sim->attempts[at]))
                return true;
        }
    }
    return false;
}

static const struct sim_task *task_of_attempt(const struct sim *sim,
                                              const struct sim_attempt *attempt)
{
    return sim->allocs[attempt->alloc].tasks[attempt->task].plan;
}

static const struct machine_id *id_of(const struct sim *sim, const struct sim_attempt *attempt)
{
    return &sim->allocs[attempt->alloc].tasks[attempt->task].id;
}

/* --- the payload's and the shim's life --- */

/* How long it runs by itself; 0: until it is told to stop.  In a healed world services last and
 * everything else succeeds. */
static uint64_t life_ms(const struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_alloc *alloc = sim->allocs[attempt->alloc].plan;
    const struct sim_task *task = task_of_attempt(sim, attempt);
    bool lasts = policy_restarts_on_success(alloc->batch, (enum spec_lifecycle)task->lifecycle,
                                            task->sidecar);

    return sim->healed && lasts ? 0 : task->runs_ms;
}

static void begin_payload(struct sim *sim, struct sim_attempt *attempt)
{
    uint64_t runs_ms = life_ms(sim, attempt);

    attempt->payload = PAYLOAD_RUNNING;
    attempt->shim = SHIM_ALIVE;
    attempt->starts++;
    attempt->pid = ++sim->next_pid;
    attempt->boot = sim->boot;
    sim_say(sim, "payload of %s generation %u runs", id_of(sim, attempt)->text,
            attempt->generation);
    sim_mix(sim, (uint64_t)attempt->pid);
    sim_check_payload(sim, attempt);
    if (runs_ms > 0)
        sim_later(sim, runs_ms, SE_EXIT, number_of(sim, attempt), attempt->epoch);
}

/* The daemon's driver sees a connection close, or a pidfd become readable. */
static void let_daemon_see(struct sim *sim, const struct sim_attempt *attempt, uint64_t delay_ms)
{
    if (attempt->reported != 0 && attempt->reported == sim->incarnation && sim->up)
        sim_later(sim, delay_ms, SE_WATCH, number_of(sim, attempt), sim->incarnation);
}

void sim_payload_end(struct sim *sim, struct sim_attempt *attempt, int32_t code, int32_t signal)
{
    check(attempt->payload == PAYLOAD_RUNNING);
    attempt->payload = PAYLOAD_ENDED;
    attempt->descendants = task_of_attempt(sim, attempt)->forks;
    attempt->epoch++;
    attempt->code = code;
    attempt->signal = signal;
    attempt->finished_unix_ns = sim_unix_ns(sim);
    sim_say(sim, "payload of %s generation %u ends: code %d", id_of(sim, attempt)->text,
            attempt->generation, (int)code);
    sim_mix(sim, (uint64_t)(uint32_t)code);
    if (attempt->shim != SHIM_ALIVE)
        return;
    if (attempt->record_lost)
        sim_shim_die(sim, attempt);
    else
        sim_later(sim, 1, SE_RECORD, number_of(sim, attempt), attempt->epoch);
}

void sim_shim_die(struct sim *sim, struct sim_attempt *attempt)
{
    check(attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING);
    attempt->shim = SHIM_ENDED;
    sim_say(sim, "shim of %s generation %u dies", id_of(sim, attempt)->text, attempt->generation);
    let_daemon_see(sim, attempt, 1);
}

static void kill_cgroup(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->payload == PAYLOAD_RUNNING)
        sim_payload_end(sim, attempt, SIGNAL_BASE + SIGKILL_NUMBER, SIGKILL_NUMBER);
    attempt->descendants = 0;
}

void sim_processes_reboot(struct sim *sim)
{
    for (size_t i = 0; i < sim->attempts_count; i++) {
        struct sim_attempt *attempt = &sim->attempts[i];
        attempt->epoch++;
        attempt->reported = 0;
        attempt->descendants = 0;
        if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
            attempt->shim = SHIM_ENDED;
        if (attempt->payload == PAYLOAD_RUNNING) {
            attempt->payload = PAYLOAD_ENDED;
            attempt->code = SIGNAL_BASE + SIGKILL_NUMBER;
            attempt->signal = SIGKILL_NUMBER;
            attempt->by_boot = 1;
        }
        /* The mark of a start is not synced (drivers/launch.c): the reboot may take it with it,
         * unless it was reported long ago. */
        if (attempt->begun && !attempt->answered && attempt->record == RECORD_NONE &&
            sim->script->fate_of_cut != 1 && (sim_chance(sim, LUCK_CUT, i, sim->boot) & 1) != 0) {
            attempt->begun = 0;
            attempt->starts = 0;
        }
    }
    sim->next_pid = 1000; /* the next boot's pids are those of the last one (PIDREUSE) */
    sim_count_fault(sim, SIM_PIDREUSE);
}

/* --- telling the core --- */

static struct started started_of(const struct sim_attempt *attempt)
{
    return (struct started){
        .payload_pid = attempt->pid,
        .payload_ticks = (uint64_t)attempt->boot << 32 | (uint32_t)attempt->pid,
        .shim_pid = attempt->pid - 1,
        .shim_ticks = (uint64_t)attempt->boot << 32 | (uint32_t)attempt->pid,
    };
}

static struct exited exited_of(const struct sim_attempt *attempt)
{
    bool known = attempt->record == RECORD_ENDED;
    struct exited exited = {
        .known = known,
        .code = known ? attempt->code : -1,
        .signal = known ? attempt->signal : 0,
        .finished_unix_ns = known ? attempt->finished_unix_ns : 0,
    };

    if (!known)
        (void)text_copy(exited.message, sizeof(exited.message),
                        "exit unknown: neither the shim nor an exit record was found"); /* fits */
    return exited;
}

static void tell_exit(struct sim *sim, struct sim_attempt *attempt)
{
    struct exited exited = exited_of(attempt);

    attempt->reported = 0;
    attempt->said = sim->incarnation;
    sim_check_exit(sim, attempt, &exited);
    agent_news(sim->core, id_of(sim, attempt), attempt->generation, TE_EXITED, &exited);
}

/* The end is sure: whoever was told that the payload runs is owed it. */
static void conclude(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->reported == sim->incarnation)
        tell_exit(sim, attempt);
}

static void answer_found(struct sim *sim, struct sim_call *call, struct sim_attempt *attempt,
                         bool ended)
{
    struct started started = started_of(attempt);
    uint8_t event = call->effect == TX_DRIVER_START ? TE_STARTED : TE_RECOVERED;

    sim_call_done(sim, call, event, &started);
    attempt->answered = 1;
    if (ended)
        tell_exit(sim, attempt);
    else
        attempt->reported = sim->incarnation;
}

static void answer_failed(struct sim *sim, struct sim_call *call, int code, bool recoverable,
                          const char *text)
{
    static const uint8_t events[TX_COUNT] = {
        [TX_DRIVER_START] = TE_START_FAILED,
        [TX_DRIVER_RECOVER] = TE_LOST,
        [TX_DRIVER_STOP] = TE_STOP_FAILED,
        [TX_DRIVER_DESTROY] = TE_REAP_FAILED,
    };
    struct failure failure = sim_failure(code, recoverable, text);

    failure.untouched = call->effect == TX_DRIVER_RECOVER && call->untouched;
    sim_call_done(sim, call, events[call->effect], &failure);
}

/* --- start and recover --- */

/* Somebody may still write under the key: wait.  Nobody will: the record decides, or nothing. */
static void look_for_payload(struct sim *sim, struct sim_call *call, struct sim_attempt *attempt)
{
    bool shim = attempt->shim == SHIM_STARTING || attempt->shim == SHIM_ALIVE;

    if (shim && attempt->payload == PAYLOAD_RUNNING) {
        answer_found(sim, call, attempt, false);
    } else if (shim && sim->now_ms >= call->limit_ms) {
        answer_failed(sim, call, ERR_TIMEOUT, true, "the program did not start in time");
    } else if (shim) {
        call->latency_ms = call->latency_ms < POLL_MS_MAX ? call->latency_ms * 2 + 1 : POLL_MS_MAX;
        sim_call_again(sim, call, call->latency_ms, DRIVER_WAIT);
    } else if (attempt->record == RECORD_ENDED) {
        answer_found(sim, call, attempt, true);
    } else if (attempt->record == RECORD_NOT_STARTED) {
        answer_failed(sim, call, ERR_INVALID, false, "the program cannot be executed");
    } else {
        kill_cgroup(sim, attempt);
        sim_call_again(sim, call, EMPTY_MS, DRIVER_EMPTY);
    }
}

static void look(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);
    bool begun = attempt != NULL && attempt->begun;

    if (begun) {
        look_for_payload(sim, call, attempt);
    } else if (call->effect == TX_DRIVER_RECOVER) {
        answer_failed(sim, call, ERR_GONE, false, "exit unknown: nothing is there");
    } else {
        attempt = attempt == NULL ? new_attempt(sim, call) : attempt;
        attempt->begun = 1;
        attempt->boot = sim->boot;
        attempt->shim = SHIM_NONE;
        attempt->record = RECORD_NONE;
        attempt->fork_fault = call->fault == SIM_FORK;
        attempt->exec_fault = call->fault == SIM_EXEC;
        sim_call_again(sim, call, 1, DRIVER_SPAWN);
    }
}

static void spawn(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);
    uint64_t start_ms = 1;

    check(attempt != NULL);
    if (attempt->fork_fault) {
        answer_failed(sim, call, ERR_AGAIN, true, "cannot make a process");
        return;
    }
    attempt->shim = SHIM_STARTING;
    if (call->fault == SIM_LATE || call->fault == SIM_HANG)
        start_ms = call->limit_ms - sim->now_ms + LATE_START_MS;
    if (call->fault != SIM_HANG)
        sim_later(sim, start_ms, SE_SPAWN, number_of(sim, attempt), attempt->epoch);
    sim_call_again(sim, call, POLL_MS, DRIVER_WAIT);
}

/* The cgroup was killed and is empty now. */
static void emptied(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);

    check(attempt != NULL);
    if (call->effect == TX_DRIVER_START) {
        answer_found(sim, call, attempt, true);
    } else if (call->effect == TX_DRIVER_RECOVER) {
        answer_failed(sim, call, ERR_GONE, false,
                      "exit unknown: neither the shim nor an exit record was found");
    } else {
        conclude(sim, attempt);
        sim_call_done(sim, call, TE_STOP_ACCEPTED, NULL);
    }
}

/* --- stop and destroy --- */

static void stop(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);
    const struct task *task = task_of(sim_record(sim, &call->whom));
    uint64_t node_ms = sim_node_ms(sim);

    if (attempt == NULL || !attempt->begun) {
        sim_call_done(sim, call, TE_STOP_ACCEPTED, NULL);
        return;
    }
    if (attempt->shim == SHIM_STARTING) {
        sim_call_again(sim, call, POLL_MS, DRIVER_LOOK);
        return;
    }
    if (attempt->shim != SHIM_ALIVE && attempt->record == RECORD_NONE) {
        kill_cgroup(sim, attempt);
        sim_call_again(sim, call, EMPTY_MS, DRIVER_EMPTY);
        return;
    }
    if (attempt->shim == SHIM_ALIVE && attempt->payload == PAYLOAD_RUNNING) {
        uint64_t left_ms = task->kill_at_ms > node_ms ? task->kill_at_ms - node_ms : 0;
        const struct sim_task *plan = task_of_attempt(sim, attempt);
        if (attempt->kill_at_ms == 0 || sim->now_ms + left_ms < attempt->kill_at_ms) {
            attempt->kill_at_ms = sim->now_ms + left_ms;
            sim_later(sim, left_ms, SE_KILL, number_of(sim, attempt), attempt->epoch);
        }
        if (!plan->ignores_term && !attempt->term_sent) {
            attempt->term_sent = 1;
            sim_later(sim, plan->dies_ms, SE_EXIT, number_of(sim, attempt), attempt->epoch);
        }
    }
    sim_call_done(sim, call, TE_STOP_ACCEPTED, NULL);
}

static void destroy(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);

    if (attempt == NULL || !sim_attempt_exists(attempt)) {
        sim_call_done(sim, call, TE_REAPED, NULL);
        return;
    }
    /* The shim is told to kill and writes the record; one that cannot is killed itself. */
    bool shim = attempt->shim == SHIM_ALIVE;
    kill_cgroup(sim, attempt);
    if (attempt->shim == SHIM_STARTING)
        sim_shim_die(sim, attempt);
    sim_call_again(sim, call, shim ? EMPTY_MS : 1, DRIVER_REMOVE);
}

static void remove_rest(struct sim_attempt *attempt)
{
    attempt->begun = attempt->record = 0;
    attempt->shim = SHIM_NONE;
    attempt->epoch++;
}

static void finish_destroy(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = attempt_of(sim, call);

    if (attempt->shim == SHIM_ALIVE || sim_attempt_lives(attempt)) {
        sim_call_again(sim, call, POLL_MS, DRIVER_LOOK); /* its record is not written yet */
        return;
    }
    conclude(sim, attempt);
    if (attempt->said == sim->incarnation)
        attempt->written = 0; /* a crash before that is committed loses it */
    remove_rest(attempt);
    sim_call_done(sim, call, TE_REAPED, NULL);
}

/* --- the calls --- */

void sim_driver_begin(struct sim *sim, struct sim_call *call, const struct effect *effect)
{
    struct sim_attempt *attempt = attempt_of(sim, call);

    call->untouched = attempt == NULL || !attempt->begun;
    if (effect->kind == TX_DRIVER_START)
        sim_check_start(sim, effect, &call->whom);
    if (call->fault == SIM_ERR || call->fault == SIM_ERR_HARD)
        sim_call_again(sim, call, call->latency_ms, DRIVER_GIVE_UP);
    else
        sim_call_again(sim, call, call->latency_ms, DRIVER_LOOK);
}

void sim_driver_event(struct sim *sim, struct sim_call *call)
{
    if (sim_point(sim, SIM_KILL_DONE))
        return;
    switch (call->stage) {
    case DRIVER_LOOK:
        if (call->effect == TX_DRIVER_STOP)
            stop(sim, call);
        else if (call->effect == TX_DRIVER_DESTROY)
            destroy(sim, call);
        else
            look(sim, call);
        return;
    case DRIVER_SPAWN:
        spawn(sim, call);
        return;
    case DRIVER_WAIT:
        look_for_payload(sim, call, attempt_of(sim, call));
        return;
    case DRIVER_EMPTY:
        emptied(sim, call);
        return;
    case DRIVER_REMOVE:
        finish_destroy(sim, call);
        return;
    case DRIVER_GIVE_UP:
        answer_failed(sim, call, ERR_IO, call->fault == SIM_ERR, "it failed");
        return;
    }
    unreachable("stage of a driver call");
}

void sim_driver_signal(struct sim *sim, const struct effect *effect)
{
    struct sim_whom whom = sim_find(sim, &effect->id);
    const struct sim_attempt *attempt =
        sim_attempt(sim, whom.alloc, whom.member, effect->generation);

    check(effect->request != NULL);
    sim_reply(sim, effect->reply,
              attempt != NULL && attempt->shim == SHIM_ALIVE &&
                  attempt->payload == PAYLOAD_RUNNING);
}

/* --- the sweep --- */

static bool is_owned(const struct sim *sim, const struct sim_attempt *attempt)
{
    struct sim_whom whom = {MACHINE_TASK, attempt->alloc, attempt->task};
    const struct machine *record = sim_record(sim, &whom);

    return record != NULL && record->generation == attempt->generation &&
           task_holds_work(task_of(record));
}

void sim_sweep(struct sim *sim)
{
    for (size_t i = 0; i < sim->attempts_count; i++) {
        struct sim_attempt *attempt = &sim->attempts[i];
        if (!sim_attempt_exists(attempt) || is_owned(sim, attempt))
            continue;
        sim_say(sim, "sweep: %s generation %u", id_of(sim, attempt)->text, attempt->generation);
        sim_later(sim, SWEEP_MS, SE_SWEEP, i, sim->incarnation);
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].alive && agent_find(sim->core, &sim->plugins[p].id) == NULL)
            sim_plugin_die(sim, p);
    }
    sim_later(sim, SWEEP_MS + 1, SE_SWEPT, 0, sim->incarnation);
}

static void sweep_one(struct sim *sim, struct sim_attempt *attempt)
{
    kill_cgroup(sim, attempt);
    if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
        attempt->shim = SHIM_ENDED;
    remove_rest(attempt);
}

/* --- what happens by itself --- */

/* The driver of the daemon has seen the shim go. */
static void see_end(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
        return; /* it lives again, under a later attempt to find it */
    if (attempt->record == RECORD_NONE && sim_attempt_lives(attempt)) {
        kill_cgroup(sim, attempt);
        sim_later(sim, EMPTY_MS, SE_WATCH, number_of(sim, attempt), sim->incarnation);
        return;
    }
    conclude(sim, attempt);
}

static void spawned(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->shim != SHIM_STARTING)
        return;
    if (!attempt->exec_fault) {
        begin_payload(sim, attempt);
        return;
    }
    attempt->record = RECORD_NOT_STARTED;
    attempt->code = EXEC_FAILED;
    attempt->shim = SHIM_ENDED;
}

void sim_process_event(struct sim *sim, const struct sim_event *event)
{
    if (event->kind == SE_SWEPT) {
        if (event->stamp == sim->incarnation && sim->up)
            agent_swept(sim->core);
        return;
    }
    struct sim_attempt *attempt = &sim->attempts[event->index];
    const struct sim_task *plan = task_of_attempt(sim, attempt);

    if (event->kind == SE_WATCH || event->kind == SE_SWEEP) {
        if (event->stamp != sim->incarnation || !sim->up)
            return;
        if (sim_point(sim, SIM_KILL_DONE))
            return;
        if (event->kind == SE_WATCH && attempt->reported == sim->incarnation)
            see_end(sim, attempt);
        if (event->kind == SE_SWEEP && sim_attempt_exists(attempt))
            sweep_one(sim, attempt);
        return;
    }
    if (event->stamp != attempt->epoch)
        return; /* of a life that is over */
    switch ((enum sim_event_kind)event->kind) {
    case SE_SPAWN:
        spawned(sim, attempt);
        return;
    case SE_EXIT:
        if (attempt->payload != PAYLOAD_RUNNING)
            return;
        if (attempt->term_sent)
            sim_payload_end(sim, attempt, SIGNAL_BASE + SIGTERM_NUMBER, SIGTERM_NUMBER);
        else if (sim->healed)
            sim_payload_end(sim, attempt, 0, 0);
        else
            sim_payload_end(sim, attempt,
                            plan->signal != 0 ? SIGNAL_BASE + plan->signal : plan->exits,
                            plan->signal);
        return;
    case SE_KILL:
        if (attempt->payload == PAYLOAD_RUNNING && attempt->shim == SHIM_ALIVE &&
            sim->now_ms >= attempt->kill_at_ms)
            kill_cgroup(sim, attempt);
        return;
    case SE_RECORD:
        if (attempt->shim != SHIM_ALIVE)
            return;
        attempt->record = RECORD_ENDED;
        attempt->written = 1;
        sim_later(sim, 1, SE_SHIM_END, event->index, attempt->epoch);
        return;
    case SE_SHIM_END:
        if (attempt->shim != SHIM_ALIVE)
            return;
        attempt->shim = SHIM_ENDED;
        let_daemon_see(sim, attempt, 1);
        return;
    case SE_STEP:
    case SE_START:
    case SE_CALL:
    case SE_WATCH:
    case SE_SWEEP:
    case SE_SWEPT:
    case SE_USER:
    case SE_POLL:
    case SE_ANSWER:
    case SE_PUSH:
    case SE_ACK:
        break;
    }
    unreachable("not of a process");
}
