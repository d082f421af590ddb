/*
 * Who decides what should run: a stand-alone control plane with its users, or a server with the
 * client's end of the line to it.
 *
 * The client's end is a model of what server/ will be: the first answer of an incarnation must be a
 * consistent one, an older index than the newest known changes nothing, absence counts only in a
 * complete answer, statuses are sent until they are acknowledged.  What it posts to the core is
 * what the real one will post.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

enum {
    USER_RETRY_MS = 250,
    POLL_WAIT_MS = 30000, /* a blocking query that nothing wakes */
    POLL_RETRY_MS = 500,
    BLACKHOLE_MS = 5000,
    PUSH_BATCH_MS = 200,
    PUSH_RETRY_MS = 1000,
    SLOW_MS = 3000,
    BEAT_MS = 2000,
};

/* --- requests --- */

/* I-26: whoever asked for the unmount may give the volume to another node now. */
static void check_detached(struct sim *sim, const struct sim_request *request)
{
    if (request->whom.kind == MACHINE_VOLUME && request->event == VE_DETACH &&
        sim_claim_of(sim, &request->whom)->mounted)
        sim_violate(sim, 26, "the detach of %s is agreed to while it is mounted",
                    sim_id(sim, &request->whom)->text);
}

static void check_durable(struct sim *sim, const struct sim_request *request)
{
    const struct machine *stored = sim_store_find(&sim->store, sim_id(sim, &request->whom));

    if (request->whom.kind != MACHINE_ALLOC || stored == NULL)
        return;
    const struct alloc *alloc = alloc_of(stored);
    if ((request->event == AE_STOP && (!alloc->stop_wanted || alloc->at_once < request->at_once)) ||
        (request->event == AE_DESTROY && !alloc->destroy_wanted))
        sim_violate(sim, 14, "%s of %s was acknowledged and is not in the journal",
                    fsm_event_name(&alloc_def, request->event), sim_id(sim, &request->whom)->text);
}

static void answered(void *ctx, int code, const struct err *err)
{
    struct sim_request *request = ctx;
    struct sim *sim = request->sim;

    (void)err; /* the model of a user does not read */
    if (sim->dying)
        return;
    if (code == 0) {
        check_durable(sim, request);
        check_detached(sim, request);
    }
    if (request->state != REQUEST_OPEN) {
        sim_violate(sim, 14, "a request is answered twice");
        return;
    }
    request->state = code == 0 ? REQUEST_DONE : REQUEST_REFUSED;
    sim_fact(sim, code == 0 ? SIM_FACT_DONE : SIM_FACT_REFUSED, &request->whom, request->event);
    sim_say(sim, "answer to %s of %s: %s",
            fsm_event_name(fsm_definition((enum machine_kind)request->whom.kind), request->event),
            sim_id(sim, &request->whom)->text, code == 0 ? "done" : "refused");
    sim_mix(sim, request->state);
}

void sim_ask(struct sim *sim, const struct sim_whom *whom, uint8_t event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)whom->kind);
    uint32_t number = sim->control.requests_count++;
    struct sim_request *request = &sim->control.requests[number % sim->control.requests_max];
    bool stop = whom->kind == MACHINE_ALLOC && event == AE_STOP;
    struct request asked = {.signal = "SIGHUP",
                            .text = "asked for",
                            .at_once = stop && sim->allocs[whom->alloc].hurried};
    bool empty = def->events[event].payload == PAYLOAD_NONE;

    *request = (struct sim_request){
        .sim = sim,
        .whom = *whom,
        .event = event,
        .at_once = asked.at_once,
        .incarnation = sim->incarnation,
    };
    if (!sim->up || sim->dying || !sim->restored) {
        request->state = REQUEST_LOST; /* connection refused */
        return;
    }
    life_ask(sim->life, sim_id(sim, whom), event, empty ? NULL : &asked, answered, request);
}

static bool is_asked(const struct sim *sim, int alloc, uint8_t event)
{
    for (uint32_t i = 0; i < sim->control.requests_max && i < sim->control.requests_count; i++) {
        const struct sim_request *request = &sim->control.requests[i];
        if (request->state == REQUEST_OPEN && request->whom.kind == MACHINE_ALLOC &&
            request->whom.alloc == alloc && request->event == event)
            return true;
    }
    return false;
}

/* --- wishes --- */

/* Told to end, and as soon as it is wanted. */
static bool is_stopped(const struct sim_alloc_state *state, const struct alloc *alloc)
{
    return alloc->stop_wanted && (alloc->at_once || !state->hurried);
}

/* The query that blocks at the server is answered. */
static void wake_poll(struct sim *sim)
{
    if (!sim->up || !sim->restored)
        return;
    sim->control.poll_at_ms = sim->now_ms + 1;
    sim_later(sim, 1, SE_POLL, 0, sim->incarnation);
}

void sim_wish(struct sim *sim, int number, enum sim_wish wish)
{
    struct sim_alloc_state *alloc = &sim->allocs[number];

    if (alloc->wish >= wish && !alloc->damaged)
        return;
    alloc->wish = (uint8_t)wish;
    alloc->wished_index[wish] = ++sim->control.server_index;
    if (!sim->script->server)
        sim_later(sim, 0, SE_USER, (size_t)number, 0);
    else
        wake_poll(sim);
}

void sim_hurry(struct sim *sim, int number)
{
    struct sim_alloc_state *alloc = &sim->allocs[number];

    alloc->hurried = 1;
    if (alloc->wish < WISH_STOP)
        sim_wish(sim, number, WISH_STOP);
    else if (!sim->script->server)
        sim_later(sim, 0, SE_USER, (size_t)number, 0);
    else
        wake_poll(sim);
}

void sim_update(struct sim *sim, int number, uint64_t times)
{
    struct sim_alloc_state *alloc = &sim->allocs[number];

    if (!sim->script->server || alloc->wish == WISH_NONE || alloc->wish == WISH_GONE)
        return;
    check(times <= SIM_TIMES_MAX);
    alloc->updated_index = ++sim->control.server_index;
    alloc->updated_times = (uint8_t)times;
    wake_poll(sim);
}

static const struct alloc *record_of(const struct sim *sim, int number)
{
    return core_alloc(sim->core, sim->allocs[number].id.text);
}

/* What a user was told is looked up in the journal (has_its_wish), not believed. */
static void given(void *ctx, int code, const struct err *err)
{
    (void)ctx;
    (void)code;
    (void)err;
}

/* A user wants something of one alloc, and tries again until it is so.  True: it is. */
static bool has_its_wish(struct sim *sim, int number)
{
    struct sim_alloc_state *state = &sim->allocs[number];
    const struct alloc *alloc = record_of(sim, number);
    struct sim_whom whom = {MACHINE_ALLOC, (int16_t)number, -1};

    switch ((enum sim_wish)state->wish) {
    case WISH_NONE:
        return true;
    case WISH_RUN:
        if (alloc != NULL || state->accepted) {
            state->accepted = 1;
            return true;
        }
        core_propose(sim->core, true);
        sim_give(sim, number, 0);
        core_propose(sim->core, false);
        life_after_commit(sim->life, given, &state->id);
        return false;
    case WISH_STOP:
        if (alloc == NULL || is_stopped(&sim->allocs[number], alloc))
            return true;
        if (!is_asked(sim, number, AE_STOP))
            sim_ask(sim, &whom, AE_STOP);
        return false;
    case WISH_GONE:
        if (alloc == NULL || alloc->destroy_wanted)
            return true;
        if (!is_asked(sim, number, AE_DESTROY))
            sim_ask(sim, &whom, AE_DESTROY);
        return false;
    }
    unreachable("wish");
}

/* --- the client's end of the line --- */

static void poll_in(struct sim *sim, uint64_t delay_ms)
{
    sim->control.poll_at_ms = sim->now_ms + delay_ms;
    sim_later(sim, delay_ms, SE_POLL, 0, sim->incarnation);
}

/* What the server wished of an alloc at INDEX. */
static enum sim_wish wished_at(const struct sim_alloc_state *alloc, uint64_t index)
{
    for (int wish = WISH_GONE; wish > WISH_NONE; wish--) {
        if (alloc->wished_index[wish] != 0 && alloc->wished_index[wish] <= index)
            return (enum sim_wish)wish;
    }
    return WISH_NONE;
}

static bool is_newer(const struct sim_alloc_state *alloc, uint64_t index)
{
    return alloc->updated_index <= index && alloc->updated_index > alloc->seen_index;
}

/* The newest version that the server knew at INDEX, or the first: those between are known to
 * nobody.  Its number says what it says otherwise (give.c). */
static uint64_t version_at(const struct sim_alloc_state *alloc, uint64_t index)
{
    return alloc->updated_index <= index
               ? alloc->updated_index * (SIM_TIMES_MAX + 1) + alloc->updated_times
               : 0;
}

static void apply_one(struct sim *sim, int number, uint64_t index, bool complete)
{
    enum sim_wish wish = wished_at(&sim->allocs[number], index);
    struct sim_alloc_state *state = &sim->allocs[number];
    const struct alloc *alloc = record_of(sim, number);
    struct request why = {.text = "the server wants it stopped", .at_once = state->hurried};

    if (wish == WISH_RUN && alloc == NULL) {
        sim_give(sim, number, version_at(state, index));
        return;
    }
    if ((wish == WISH_RUN || wish == WISH_STOP) && alloc != NULL &&
        alloc->assign.job_version < state->first_version + version_at(state, index))
        sim_give_newer(sim, number, version_at(state, index));
    if (wish == WISH_STOP && alloc != NULL && !is_stopped(state, alloc))
        core_tell(sim->core, &state->id, AE_STOP, &why);
    state->offered_index = index;
    if ((wish == WISH_RUN || wish == WISH_STOP) && alloc != NULL &&
        (state->fresh != sim->incarnation || is_newer(state, index)))
        core_tell(sim->core, &state->id, AE_AUTHORIZED, NULL);
    if ((wish == WISH_GONE || wish == WISH_NONE) && complete && alloc != NULL &&
        !alloc->destroy_wanted)
        core_tell(sim->core, &state->id, AE_DESTROY, NULL);
}

static void index_decided(void *ctx, int code, const struct err *err)
{
    struct sim *sim = ctx;

    (void)code; /* it is stored, or the server is asked again */
    (void)err;
    sim->control.posted_index = 0;
}

/* The newest index that is known, be its commit still to come. */
static uint64_t known_index(const struct sim *sim)
{
    uint64_t stored = sim->store.head.server_index, posted = sim->control.posted_index;

    return posted > stored ? posted : stored;
}

static void take_answer(struct sim *sim)
{
    uint64_t index = sim->control.server_index, known = known_index(sim);
    bool stale = sim->control.server == SIM_SERVER_STALE,
         partial = sim->control.server == SIM_SERVER_PARTIAL;
    uint64_t luck = sim_chance(sim, LUCK_SPLIT, 1u << 30, sim->deliveries);

    if (stale)
        index -= 1 + (luck & 3);
    if (index < known || (stale && !sim->control.first_answer)) {
        sim_say(sim, "server answers, index %llu: too old", (unsigned long long)index);
        poll_in(sim, POLL_RETRY_MS);
        return;
    }
    sim_say(sim, "server answers, index %llu%s", (unsigned long long)index,
            partial ? ", not all of it" : "");
    core_propose(sim->core, true); /* if it cannot be stored, the server is asked again */
    for (int a = 0; a < sim->allocs_count; a++) {
        if (!partial || (luck >> a % 64 & 1u) == 0)
            apply_one(sim, a, index, !partial);
    }
    if (index > known)
        core_meta(sim->core, "server_index", &index, sizeof(index));
    core_propose(sim->core, false);
    if (index > known) {
        sim->control.posted_index = index;
        life_after_commit(sim->life, index_decided, sim);
    }
    sim->control.first_answer |= !partial;
    poll_in(sim, partial || stale ? POLL_RETRY_MS : POLL_WAIT_MS);
}

static void poll(struct sim *sim)
{
    uint64_t latency_ms = 1 + (sim->control.server == SIM_SERVER_SLOW ? SLOW_MS : 0);

    if (sim->control.server == SIM_SERVER_DOWN)
        poll_in(sim, POLL_RETRY_MS);
    else if (sim->control.server == SIM_SERVER_BLACKHOLE)
        poll_in(sim, BLACKHOLE_MS);
    else
        sim_later(sim, latency_ms, SE_ANSWER, 0, sim->incarnation);
}

/* --- statuses --- */

/* What users can see of an alloc. */
static uint64_t visible(const struct sim *sim, int number)
{
    const struct alloc *alloc = record_of(sim, number);
    uint64_t digest =
        hash_u64(alloc->client_status, (uint64_t)alloc->stop_wanted << 1 | alloc->destroy_wanted);

    digest = hash_u64(digest, alloc->health);
    digest = hash_u64(digest, (uint64_t)alloc->assign.deployed_unix_ns); /* who is told so */
    digest = hash_u64(digest, (uint64_t)alloc->health_unix_ns); /* a user says this, that, this */
    for (int t = 0; t < sim->allocs[number].tasks_count; t++) {
        const struct machine *record = core_find(sim->core, &sim->allocs[number].tasks[t].id);
        if (record == NULL)
            continue;
        const struct task *task = task_of(record);
        digest = hash_u64(digest, (uint64_t)task->run_state << 8 | task->failed);
        digest = hash_u64(digest, task->restarts);
        digest = hash_bytes(digest, task->events, task->events_count * sizeof(task->events[0]));
    }
    return digest;
}

/* True if users may see of a task what it has not told its alloc yet. */
static bool lags(const struct sim *sim, int number)
{
    for (int t = 0; t < sim->allocs[number].tasks_count; t++) {
        const struct machine *record = core_find(sim->core, &sim->allocs[number].tasks[t].id);
        if (record != NULL && task_of(record)->told_revision != task_of(record)->status_revision)
            return true;
    }
    return false;
}

static bool is_unsent(const struct alloc *alloc)
{
    return alloc != NULL && alloc->status_revision > alloc->acked_revision;
}

void sim_status_changed(struct sim *sim)
{
    if (!sim->script->server || sim->control.pushing)
        return;
    sim->control.pushing = true;
    sim_later(sim, PUSH_BATCH_MS, SE_PUSH, 0, sim->incarnation);
}

static void push(struct sim *sim)
{
    bool any = false;

    if (sim->control.server == SIM_SERVER_DOWN || sim->control.server == SIM_SERVER_BLACKHOLE) {
        sim_later(sim, PUSH_RETRY_MS, SE_PUSH, 0, sim->incarnation);
        return;
    }
    for (int a = 0; a < sim->allocs_count; a++) {
        struct sim_alloc_state *state = &sim->allocs[a];
        const struct alloc *alloc = record_of(sim, a);
        if (!is_unsent(alloc))
            continue;
        sim_check_push(sim, a, visible(sim, a), alloc->client_status);
        state->pushed_digest = lags(sim, a) ? 0 : visible(sim, a);
        state->pushed_revision = alloc->status_revision;
        state->reported_status = alloc->client_status;
        state->reported_health = alloc->health;
        struct sim_whom whom = {MACHINE_ALLOC, (int8_t)a, -1};
        sim_fact(sim, SIM_FACT_TOLD, &whom, alloc->client_status);
        any = true;
    }
    if (any)
        sim_later(sim, 2, SE_ACK, 0, sim->incarnation);
    else
        sim->control.pushing = false;
}

static void acknowledge(struct sim *sim)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        struct sim_alloc_state *state = &sim->allocs[a];
        const struct alloc *alloc = record_of(sim, a);
        struct ack ack = {.status_revision = state->pushed_revision};
        if (!is_unsent(alloc) || ack.status_revision <= alloc->acked_revision)
            continue;
        state->confirmed_digest = state->pushed_digest;
        core_tell(sim->core, &state->id, AE_STATUS_ACKED, &ack);
    }
    sim->control.pushing = false;
    sim_status_changed(sim); /* whatever came meanwhile goes next; nothing: it ends there */
}

/* --- heartbeats --- */

/* Nobody has to hear of one where no alloc minds. */
static void beat(struct sim *sim)
{
    bool heard =
        sim->control.server != SIM_SERVER_DOWN && sim->control.server != SIM_SERVER_BLACKHOLE;

    for (int a = 0; heard && a < sim->allocs_count; a++) {
        const struct alloc *alloc = record_of(sim, a);
        if (alloc != NULL && alloc->assign.stop_after_ms != 0 &&
            !alloc_state_ends(alloc->machine.state))
            core_tell(sim->core, &sim->allocs[a].id, AE_CONTACT, NULL);
    }
    sim_later(sim, BEAT_MS, SE_BEAT, 0, sim->incarnation);
}

static bool anybody_minds(const struct sim *sim)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        if (sim->allocs[a].plan->stop_after_ms != 0)
            return true;
    }
    return false;
}

/* --- what happens --- */

void sim_control_start(struct sim *sim)
{
    if (!sim->script->server)
        return;
    poll_in(sim, 1);
    sim_status_changed(sim);
    if (anybody_minds(sim))
        sim_later(sim, 2, SE_BEAT, 0, sim->incarnation);
}

void sim_control_refused(struct sim *sim)
{
    if (sim->script->server && sim->control.first_answer)
        poll_in(sim, POLL_RETRY_MS);
}

void sim_control_event(struct sim *sim, const struct sim_event *event)
{
    if (event->kind == SE_USER && event->index >= (uint32_t)sim->allocs_count) {
        if (!sim_job_has_its_wish(sim, event->index - (size_t)sim->allocs_count))
            sim_later(sim, USER_RETRY_MS, SE_USER, event->index, 0);
        return;
    }
    if (event->kind == SE_USER) {
        if (!sim->up || sim->dying || !sim->restored || !has_its_wish(sim, (int)event->index))
            sim_later(sim, USER_RETRY_MS, SE_USER, event->index, 0);
        return;
    }
    if (!sim->up || sim->dying || event->stamp != sim->incarnation)
        return;
    switch ((enum sim_event_kind)event->kind) {
    case SE_POLL:
        if (sim->control.poll_at_ms == sim->now_ms)
            poll(sim);
        return;
    case SE_ANSWER:
        take_answer(sim);
        return;
    case SE_PUSH:
        push(sim);
        return;
    case SE_ACK:
        acknowledge(sim);
        return;
    case SE_BEAT:
        beat(sim);
        return;
    case SE_STEP:
    case SE_START:
    case SE_CALL:
    case SE_RENDER:
    case SE_SPAWN:
    case SE_EXIT:
    case SE_KILL:
    case SE_RECORD:
    case SE_SHIM_END:
    case SE_WATCH:
    case SE_SWEEP:
    case SE_SWEPT:
    case SE_USER:
        break;
    }
    unreachable("not of the control plane");
}
