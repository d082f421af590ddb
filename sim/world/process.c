/*
 * Shims and payloads, and the driver's calls on them.
 *
 * Follows drivers/drivers.h: everything is found by its key; a second start under a key finds what
 * the first one left; the exit record is written last, by the shim; the end of what was reported as
 * running is told once.  Shims and payloads live in the world and not in the daemon: what they are
 * about to do goes on when it dies.
 */
#include "fsm/policy.h"
#include "sim/answer.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"

enum {
    POLL_MS = 3,
    POLL_MS_MAX = 1000,
    LATE_START_MS = 5000, /* behind the bound of a start */
    SWEEP_MS = 6,
    SWEEP_MS_MAX = 60,
    SWEEP_OF_THE_SLOW_MS_MAX = 20000, /* something does not end by itself */
    EMPTY_MS = 4,                     /* from the kill of a cgroup to its being seen empty */
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
    DRIVER_SENT,    /* the shim has answered */
    DRIVER_RAN,     /* the script has ended */
};

/* --- the payload's and the shim's life --- */

/* How long it runs by itself; 0: until it is told to stop.  In a healed world services last and
 * everything else succeeds. */
static uint64_t life_ms(const struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_alloc *alloc = sim->allocs[attempt->alloc].plan;
    const struct sim_task *task = sim_attempt_plan(sim, attempt);
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
    attempt->boot = sim->boot;
    attempt->began_ms = sim->now_ms;
    attempt->process = sim_process_new(sim);
    sim_attempt_note(sim, SIM_FACT_STARTS, attempt);
    sim_say(sim, "payload of %s generation %u runs", sim_attempt_id(sim, attempt)->text,
            attempt->generation);
    sim_mix(sim, (uint64_t)attempt->process.payload_pid);
    sim_check_payload(sim, attempt);
    if (runs_ms > 0)
        sim_later(sim, runs_ms, SE_EXIT, sim_attempt_number(sim, attempt), attempt->epoch);
}

/* The daemon's driver sees a connection close, or a pidfd become readable. */
static void let_daemon_see(struct sim *sim, const struct sim_attempt *attempt, uint64_t delay_ms)
{
    if (attempt->reported != 0 && attempt->reported == sim->incarnation && sim->up)
        sim_later(sim, delay_ms, SE_WATCH, sim_attempt_number(sim, attempt), sim->incarnation);
}

/* What it is at work on, if it is a plugin, ends with it. */
static void break_calls(struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_task_state *task = &sim->allocs[attempt->alloc].tasks[attempt->task];

    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].task == task)
            sim_calls_break(sim, p);
    }
}

void sim_payload_end(struct sim *sim, struct sim_attempt *attempt, int32_t code, int32_t signal)
{
    check(attempt->payload == PAYLOAD_RUNNING);
    break_calls(sim, attempt);
    attempt->payload = PAYLOAD_ENDED;
    attempt->descendants = sim_attempt_plan(sim, attempt)->forks;
    attempt->epoch++;
    attempt->code = code;
    attempt->signal = signal;
    attempt->finished_unix_ns = sim_unix_ns(sim);
    sim_attempt_note(sim, SIM_FACT_ENDS, attempt);
    sim_say(sim, "payload of %s generation %u ends: code %d", sim_attempt_id(sim, attempt)->text,
            attempt->generation, (int)code);
    sim_mix(sim, (uint64_t)(uint32_t)code);
    if (attempt->shim != SHIM_ALIVE)
        return;
    if (attempt->record_lost)
        sim_shim_die(sim, attempt);
    else
        sim_later(sim, 1, SE_RECORD, sim_attempt_number(sim, attempt), attempt->epoch);
}

void sim_shim_die(struct sim *sim, struct sim_attempt *attempt)
{
    check(attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING);
    /* Between its mark and the payload: nobody can know that there was none. */
    if (attempt->shim == SHIM_STARTING &&
        (sim_chance(sim, LUCK_MARK, sim_attempt_number(sim, attempt), attempt->epoch) & 1) != 0)
        attempt->mark = MARK_BEGUN;
    attempt->shim = SHIM_ENDED;
    sim_say(sim, "shim of %s generation %u dies", sim_attempt_id(sim, attempt)->text,
            attempt->generation);
    let_daemon_see(sim, attempt, 1);
}

static void kill_cgroup(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->payload == PAYLOAD_RUNNING)
        sim_payload_end(sim, attempt, SIGNAL_BASE + SIGKILL_NUMBER, SIGKILL_NUMBER);
    attempt->descendants = 0;
}

/* --- telling the core --- */

static struct exited exited_of(const struct sim_attempt *attempt)
{
    bool known = attempt->record == RECORD_ENDED;
    struct exited exited = {
        .known = known,
        .code = known ? attempt->code : -1,
        .signal = known ? attempt->signal : 0,
        .with_host = known && attempt->with_host,
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
    core_news(sim->core, sim_attempt_id(sim, attempt), attempt->generation, TE_EXITED, &exited);
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
    uint8_t event = call->effect == TX_DRIVER_START ? TE_STARTED : TE_RECOVERED;

    sim_call_done(sim, call, event, &attempt->process);
    attempt->answered = 1;
    if (ended)
        tell_exit(sim, attempt);
    else
        attempt->reported = sim->incarnation;
}

static void answer_failed(struct sim *sim, struct sim_call *call, int code, bool recoverable,
                          const char *text)
{
    struct failure failure = sim_failed(code, recoverable, text);

    if (call->effect == TX_DRIVER_RECOVER) {
        struct sim_attempt *attempt = sim_attempt_of(sim, call);
        failure.untouched = call->untouched;
        if (attempt != NULL && (!recoverable || attempt->blind < UINT8_MAX))
            attempt->blind = recoverable ? (uint8_t)(attempt->blind + 1) : 0;
    }
    sim_call_done(sim, call, sim_driver_failure(call->effect), &failure);
}

/* The record says so, whoever asks. */
static void answer_not_started(struct sim *sim, struct sim_call *call, bool unmounted)
{
    struct failure failure = unmounted
                                 ? sim_failed(ERR_GONE, true, "a volume is not mounted any more")
                                 : sim_failed(ERR_INVALID, false, "the program cannot be executed");

    sim_call_done(sim, call, TE_START_FAILED, &failure);
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
    } else if (attempt->record == RECORD_NOT_STARTED || attempt->record == RECORD_NOT_MOUNTED) {
        answer_not_started(sim, call, attempt->record == RECORD_NOT_MOUNTED);
    } else {
        kill_cgroup(sim, attempt);
        sim_call_again(sim, call, EMPTY_MS, DRIVER_EMPTY);
    }
}

static void look(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);

    if (attempt != NULL && sim_attempt_was_begun(attempt)) {
        look_for_payload(sim, call, attempt);
    } else if (call->effect == TX_DRIVER_RECOVER) {
        if (attempt != NULL)
            attempt->mark = MARK_NONE; /* the file of a shim that was never made */
        answer_failed(sim, call, ERR_GONE, false, "exit unknown: nothing is there");
    } else {
        attempt = attempt == NULL ? sim_attempt_new(sim, &call->whom, call->generation) : attempt;
        attempt->mark = MARK_FILE;
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
    struct sim_attempt *attempt = sim_attempt_of(sim, call);
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
        sim_later(sim, start_ms, SE_SPAWN, sim_attempt_number(sim, attempt), attempt->epoch);
    sim_call_again(sim, call, POLL_MS, DRIVER_WAIT);
}

/* The cgroup was killed and is empty now. */
static void emptied(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);

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
    struct sim_attempt *attempt = sim_attempt_of(sim, call);
    const struct task *task = task_of(sim_record(sim, &call->whom));
    uint64_t node_ms = sim_node_ms(sim);

    if (attempt == NULL || !sim_attempt_was_begun(attempt)) {
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
        const struct sim_task *plan = sim_attempt_plan(sim, attempt);
        if (attempt->kill_at_ms == 0 || sim->now_ms + left_ms < attempt->kill_at_ms) {
            attempt->kill_at_ms = sim->now_ms + left_ms;
            sim_later(sim, left_ms, SE_KILL, sim_attempt_number(sim, attempt), attempt->epoch);
        }
        if (!plan->ignores_term && !attempt->term_sent) {
            attempt->term_sent = 1;
            sim_later(sim, plan->dies_ms, SE_EXIT, sim_attempt_number(sim, attempt),
                      attempt->epoch);
        }
    }
    sim_call_done(sim, call, TE_STOP_ACCEPTED, NULL);
}

static void destroy(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);

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

static void finish_destroy(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);

    if (attempt->shim == SHIM_ALIVE || sim_attempt_lives(attempt)) {
        sim_call_again(sim, call, POLL_MS, DRIVER_LOOK); /* its record is not written yet */
        return;
    }
    conclude(sim, attempt);
    if (attempt->said == sim->incarnation)
        attempt->written = 0; /* a crash before that is committed loses it */
    sim_attempt_remove(attempt);
    sim_call_done(sim, call, TE_REAPED, NULL);
}

/* --- signals that templates ask for --- */

/* The shim knows the number that it sent one under last. */
static void notify(struct sim *sim, struct sim_call *call)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);
    const struct task *task = task_of(sim_record(sim, &call->whom));
    struct sim_task_state *state = sim_task_of(sim, &call->whom);

    if (attempt != NULL && attempt->shim == SHIM_ALIVE && attempt->payload == PAYLOAD_RUNNING &&
        attempt->hup != task->changes) {
        attempt->hup = task->changes;
        state->hups++;
        sim_fact(sim, SIM_FACT_HUPS, &call->whom, 0);
        bool sure = !sim->copy.made && !sim_alloc_of(sim, &call->whom)->damaged;
        uint32_t changes = state->files[CHANGE_SIGNAL] + state->signings[CHANGE_SIGNAL];
        if (sure && state->hups > changes)
            sim_violate(sim, 16, "%s is told %u times of what changed %u times",
                        sim_id(sim, &call->whom)->text, state->hups, changes);
    }
    sim_call_again(sim, call, 1, DRIVER_SENT);
}

/* --- scripts of templates --- */

/* One ends with the daemon, and is run again by the next one. */
static void run_script(struct sim *sim, struct sim_call *call)
{
    const struct sim_attempt *attempt = sim_attempt_of(sim, call);
    struct sim_task_state *state = sim_task_of(sim, &call->whom);

    if (attempt != NULL && attempt->shim == SHIM_ALIVE && attempt->payload == PAYLOAD_RUNNING) {
        state->scripts++;
        sim_fact(sim, SIM_FACT_SCRIPTS, &call->whom, 0);
        bool sure = !sim->copy.made && !sim_alloc_of(sim, &call->whom)->damaged;
        if (sure && state->scripts > state->files[CHANGE_SCRIPT] + sim->incarnation)
            sim_violate(sim, 16, "%s runs %u scripts for %u changes in %u lives of the daemon",
                        sim_id(sim, &call->whom)->text, state->scripts, state->files[CHANGE_SCRIPT],
                        sim->incarnation);
    }
    sim_call_again(sim, call, call->latency_ms, DRIVER_RAN);
}

/* --- the calls --- */

bool sim_is_driver_call(const struct sim_call *call)
{
    return call->whom.kind == MACHINE_TASK &&
           (call->lane == LANE_DRIVER || call->lane == LANE_NODE);
}

void sim_driver_begin(struct sim *sim, struct sim_call *call, const struct effect *effect)
{
    struct sim_attempt *attempt = sim_attempt_of(sim, call);

    call->untouched = attempt == NULL || !sim_attempt_was_begun(attempt);
    if (effect->kind == TX_DRIVER_START)
        sim_check_start(sim, effect, &call->whom);
    if (call->fault == SIM_ERR || call->fault == SIM_ERR_HARD)
        sim_call_again(sim, call, call->latency_ms, DRIVER_GIVE_UP);
    else if (effect->kind == TX_SCRIPT)
        sim_call_again(sim, call, 1, DRIVER_LOOK); /* it is begun at once, and lasts */
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
        else if (call->effect == TX_DRIVER_NOTIFY)
            notify(sim, call);
        else if (call->effect == TX_SCRIPT)
            run_script(sim, call);
        else
            look(sim, call);
        return;
    case DRIVER_SPAWN:
        spawn(sim, call);
        return;
    case DRIVER_WAIT:
        look_for_payload(sim, call, sim_attempt_of(sim, call));
        return;
    case DRIVER_EMPTY:
        emptied(sim, call);
        return;
    case DRIVER_REMOVE:
        finish_destroy(sim, call);
        return;
    case DRIVER_SENT:
        sim_call_done(sim, call, TE_NOTIFIED, NULL);
        return;
    case DRIVER_RAN: {
        struct failure well = {0};
        (void)text_copy(well.text, sizeof(well.text), "a script ran"); /* fits */
        sim_call_done(sim, call, TE_SCRIPTED, &well);
        return;
    }
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
    bool lives =
        attempt != NULL && attempt->shim == SHIM_ALIVE && attempt->payload == PAYLOAD_RUNNING;
    life_reply(sim->life, effect->reply, lives ? 0 : ERR_REFUSED, NULL);
}

/* --- the sweep --- */

static bool is_owned(const struct sim *sim, const struct sim_attempt *attempt)
{
    struct sim_whom whom = {MACHINE_TASK, attempt->alloc, attempt->task};
    const struct machine *record = sim_record(sim, &whom);

    return record != NULL && record->generation == attempt->generation &&
           task_holds_work(task_of(record));
}

static bool is_stray(const struct sim *sim, const struct sim_attempt *attempt)
{
    return sim_attempt_exists(attempt) && !is_owned(sim, attempt);
}

static uint64_t sweep_ms(const struct sim *sim)
{
    uint64_t luck = sim_chance(sim, LUCK_SWEEP, sim->incarnation, sim->now_ms);
    size_t strays = 0;

    for (size_t i = 0; i < sim->attempts.count; i++)
        strays += is_stray(sim, &sim->attempts.items[i]);
    if (sim->healed || (sim->sweep_ms == 0 && !sim->script->latency))
        return strays == 0 ? 0 : SWEEP_MS;
    if (sim->sweep_ms != 0)
        return sim->sweep_ms;
    return sim_below(luck, (luck >> 32 & 7) == 0 ? SWEEP_OF_THE_SLOW_MS_MAX : SWEEP_MS_MAX);
}

void sim_sweep(struct sim *sim)
{
    uint64_t takes_ms = sweep_ms(sim);

    sim->swept = false;
    for (size_t i = 0; i < sim->attempts.count; i++) {
        struct sim_attempt *attempt = &sim->attempts.items[i];
        if (!is_stray(sim, attempt))
            continue;
        sim_say(sim, "sweep: %s generation %u", sim_attempt_id(sim, attempt)->text,
                attempt->generation);
        if (attempt->shim == SHIM_STARTING)
            sim_shim_die(sim, attempt); /* all are told at once; what lives may take its time */
        sim_later(sim, takes_ms, SE_SWEEP, i, sim->incarnation);
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].alive && core_find(sim->core, &sim->plugins[p].id) == NULL)
            sim_plugin_die(sim, p);
    }
    sim_later(sim, takes_ms, SE_SWEPT, 0, sim->incarnation);
}

static void sweep_one(struct sim *sim, struct sim_attempt *attempt)
{
    kill_cgroup(sim, attempt);
    if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
        attempt->shim = SHIM_ENDED;
    sim_attempt_remove(attempt);
}

/* Of allocs that nobody knows. */
static void sweep_networks(struct sim *sim)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        struct sim_alloc_state *alloc = &sim->allocs[a];

        if (alloc->network && core_find(sim->core, &alloc->id) == NULL)
            alloc->network = 0;
    }
}

/* --- what happens by itself --- */

/* The driver of the daemon has seen the shim go. */
static void see_end(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)
        return; /* it lives again, under a later attempt to find it */
    if (attempt->record == RECORD_NONE && sim_attempt_lives(attempt)) {
        kill_cgroup(sim, attempt);
        sim_later(sim, EMPTY_MS, SE_WATCH, sim_attempt_number(sim, attempt), sim->incarnation);
        return;
    }
    conclude(sim, attempt);
}

static void spawned(struct sim *sim, struct sim_attempt *attempt)
{
    if (attempt->shim != SHIM_STARTING)
        return;
    attempt->mark = MARK_BEGUN;
    bool mounted = sim_check_mounts(sim, attempt); /* the shim binds nothing but mounts */
    if (!attempt->exec_fault && mounted) {
        begin_payload(sim, attempt);
        return;
    }
    attempt->record = mounted ? RECORD_NOT_STARTED : RECORD_NOT_MOUNTED;
    attempt->unfit = 1;
    attempt->code = EXEC_FAILED;
    attempt->shim = SHIM_ENDED;
}

static void end_as_planned(struct sim *sim, struct sim_attempt *attempt)
{
    const struct sim_task *plan = sim_attempt_plan(sim, attempt);

    if (attempt->term_sent)
        sim_payload_end(sim, attempt, SIGNAL_BASE + SIGTERM_NUMBER, SIGTERM_NUMBER);
    else if (sim->healed)
        sim_payload_end(sim, attempt, 0, 0);
    else
        sim_payload_end(sim, attempt, sim_planned_code(plan), plan->signal);
}

void sim_process_event(struct sim *sim, const struct sim_event *event)
{
    if (event->kind == SE_SWEPT) {
        if (event->stamp == sim->incarnation && sim->up) {
            sim->looked = sim->swept = true;
            sweep_networks(sim);
            life_swept(sim->life, true);
        }
        return;
    }
    struct sim_attempt *attempt = &sim->attempts.items[event->index];
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
        if (attempt->payload == PAYLOAD_RUNNING)
            end_as_planned(sim, attempt);
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
    case SE_RENDER:
    case SE_WATCH:
    case SE_SWEEP:
    case SE_SWEPT:
    case SE_USER:
    case SE_POLL:
    case SE_ANSWER:
    case SE_PUSH:
    case SE_ACK:
    case SE_BEAT:
        break;
    }
    unreachable("not of a process");
}

/* --- plugins --- */

bool sim_plugin_lives(const struct sim *sim, const struct sim_plugin_state *plugin)
{
    if (plugin->task == NULL)
        return plugin->alive;
    return plugin->task->newest >= 0 &&
           sim->attempts.items[plugin->task->newest].payload == PAYLOAD_RUNNING;
}

bool sim_plugin_is_task(const struct sim_plugin_state *plugin)
{
    return plugin->task != NULL || (plugin->past != NULL && plugin->past->define.supervised);
}

/* The newest that is ready, or one that lives, if none is; 0: not even that. */
static uint64_t rank_of(const struct sim *sim, const struct sim_plugin_state *plugin)
{
    const struct machine *record = core_find(sim->core, &plugin->id);

    if (record != NULL && record->state == P_READY)
        return 2 + plugin_of(record)->defined_ms;
    return sim_plugin_lives(sim, plugin) ? 1 : 0;
}

int sim_plugin_called(const struct sim *sim, uint16_t plugin)
{
    int called = plugin;

    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].serves == sim->plugins[plugin].serves &&
            rank_of(sim, &sim->plugins[p]) > rank_of(sim, &sim->plugins[called]))
            called = p;
    }
    return called;
}

bool sim_plugin_is_served(const struct sim *sim, uint16_t plugin)
{
    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].serves == sim->plugins[plugin].serves &&
            sim_plugin_lives(sim, &sim->plugins[p]))
            return true;
    }
    return false;
}

void sim_plugin_die(struct sim *sim, int number)
{
    struct sim_plugin_state *plugin = &sim->plugins[number];
    struct exited exited = {.known = 1, .code = 1};

    plugin->alive = 0;
    if (sim_plugin_is_task(plugin))
        sim_calls_break(sim, number);
    sim_say(sim, "plugin %s dies", plugin->id.text);
    if (plugin->task != NULL) {
        sim_payload_end(sim, &sim->attempts.items[plugin->task->newest], 1, 0);
        return; /* its hooks say so */
    }
    if (sim->up && !sim->dying)
        core_news(sim->core, &plugin->id, plugin->generation, PE_EXITED, &exited);
}
