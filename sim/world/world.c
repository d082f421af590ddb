/*
 * The simulated world as a whole: the life of the daemon in it, from the first start to the end.
 *
 * The daemon here is the life of core/life.h, run as agent/world.c runs it (one turn before each
 * sleep), over the world's models instead of LMDB and the rooms.  It can die at every crash point;
 * then all that it had in memory is gone, and journal and world stay as they are.
 */
#include "sim/world/world.h"
#include "sim/world/check/check.h"

#include "core/clock.h"
#include "sim/start.h"

#include <stdlib.h>

enum {
    TURNS_IN_A_ROW_MAX = 10000,
    HEALED_BUDGET_MS = 4 * 3600 * 1000,
    DELIVERIES_MIN = 200000, /* that many are normal in any world */
    DELIVERIES_OF_MACHINE = 500,
    BATCH_MAX = 4, /* things that happen before one turn, and for how many tasks */
    TASKS_OF_A_BATCH = 256,
    QUIET_MS = 3000, /* settled for so long: nothing late is to come */
};

/* --- dying --- */

/* What the daemon had in memory is gone. */
static void bury(struct sim *sim)
{
    uint32_t number = sim->incarnation - 1;

    sim_say(sim, "daemon is gone");
    sim_mix(sim, sim->points);
    if (number < SIM_CUTS_MAX)
        sim->result->points[number] = sim->points;
    sim_check_memory(sim);
    sim_jobs_end(sim);
    life_free(sim->life);
    sim->life = NULL;
    sim->core = NULL;
    sim->up = sim->dying = sim->term = false;
    sim->control.pushing = sim->control.first_answer = false;
    sim->control.posted_index = 0;
    sim_calls_cut(sim);
    for (uint32_t i = 0; i < sim->control.requests_max && i < sim->control.requests_count; i++) {
        if (sim->control.requests[i].state == REQUEST_OPEN)
            sim->control.requests[i].state = REQUEST_LOST;
    }
    if (sim->copy.wanted)
        sim_older_put(sim);
    sim_later(sim, sim->down_ms, SE_START, 0, sim->incarnation);
}

/* --- the world under its life --- */

static void trace(void *ctx, const struct journal_event *event)
{
    struct sim *sim = ctx;
    char line[512];

    check(event->row < SIM_ROWS_MAX);
    sim->result->rows[event->id.kind][event->row / 64] |= (uint64_t)1 << event->row % 64;
    sim_mix(sim, event->digest);
    /* Not the row's number: the same behaviour has the same hash wherever its row stands. */
    sim_mix(sim, event->sequence << 24 | (uint64_t)event->event.kind << 16 |
                     (uint64_t)event->before << 8 | event->after);
    if (sim->print == NULL)
        return;
    core_describe(event, line, sizeof(line));
    sim_say(sim, "%s", line);
}

static uint64_t now(void *ctx, int64_t *ret_unix_ns)
{
    *ret_unix_ns = sim_unix_ns(ctx);
    return sim_node_ms(ctx);
}

static uint64_t draw(void *ctx)
{
    struct sim *sim = ctx;

    return sim_chance(sim, LUCK_SEED, sim->incarnation, sim->turns++);
}

/* The first turn is over: only now is anything ended for belonging to nobody (I-1). */
static void sweep(void *ctx)
{
    struct sim *sim = ctx;

    if (sim->dying)
        return;
    sim->restored = true;
    sim_sweep(sim);
    sim_control_start(sim);
}

static int loaded(void *ctx, struct err *err)
{
    (void)err; /* what is wrong is a violation */
    sim_check_loaded(ctx);
    return 0;
}

static void settled(void *ctx, int code, const struct err *err)
{
    struct sim *sim = ctx;

    if (code == 0 || sim->dying)
        return;
    sim_say(sim, "commit failed: %s", err->text);
    sim_control_refused(sim);
}

/* --- the daemon's life --- */

static void begin_life(struct sim *sim)
{
    struct life_world world = {
        .ctx = sim,
        .store = sim_store_of(sim),
        .events_max = sim->store.history.limit,
        .now = now,
        .random = draw,
        .perform = sim_perform,
        .trace = trace,
        .sweep = sweep,
        .known = sim_known,
        .claim = sim_claim_known,
        .place = sim_claim_found,
    };

    sim->life = life_new(&world);
    sim->core = life_core(sim->life);
    if (sim->script->jobs_count > 0)
        sim_jobs_begin(sim);
    else
        life_control(sim->life,
                     &(struct life_control){.ctx = sim, .load = loaded, .settled = settled});
}

/* Node time goes on where the journal was written last. */
static void set_clock(struct sim *sim, bool rebooted)
{
    const struct sim_store *store = &sim->store;
    struct clock_last last = {store->head.last_now_ms, store->head.last_unix_ns};

    sim->clock_offset_ms = clock_continue(store->head.node.clock_offset_ms, rebooted, &last,
                                          sim_since_boot_ms(sim), sim_unix_ns(sim));
    if (store->head.last_at_ms != 0 && store->head.last_jump_ms == sim->jump_ms &&
        sim_node_ms(sim) - store->head.last_now_ms != sim->now_ms - store->head.last_at_ms)
        sim_violate(sim, 36, "the daemon was away for %llu ms and counts %llu",
                    (unsigned long long)(sim->now_ms - store->head.last_at_ms),
                    (unsigned long long)(sim_node_ms(sim) - store->head.last_now_ms));
}

static void start(struct sim *sim)
{
    struct sim_store *store = &sim->store;
    bool rebooted = store->head.node.boot != 0 && store->head.node.boot != sim->boot;
    struct life_start how = {
        .last_turn = store->head.turn, .authority = !sim->script->server, .rebooted = rebooted};
    struct err err;

    check(!sim->up);
    sim->incarnation++;
    sim->result->incarnations = sim->incarnation;
    sim->up = true;
    sim_fact(sim, SIM_FACT_DAEMONS, NULL, 0);
    sim->restored = sim->looked = sim->swept = sim->rebooting = false;
    sim->points = 0;
    sim_say(sim, "daemon starts, incarnation %u%s", sim->incarnation,
            rebooted ? ", after a reboot" : "");
    sim_mix(sim, sim->incarnation);
    set_clock(sim, rebooted);
    begin_life(sim);
    if (store->head.node.boot == 0) { /* the first start ever writes the node's identity at once */
        store->head.node.boot = sim->boot;
        sim_write_identity(sim);
    }
    struct sim_node node = {sim->boot, sim->clock_offset_ms};
    if (node.boot != store->head.node.boot ||
        node.clock_offset_ms != store->head.node.clock_offset_ms)
        core_meta(sim->core, "node", &node, sizeof(node));
    int code = life_start(sim->life, &how, &err);
    check(code == 0); /* reading what is in memory cannot fail */
    if (sim->script->jobs_count > 0)
        sim_check_loaded(sim);
    sim_define_plugins(sim);
}

/* Until nothing is left to do.  False: wait for the clock. */
static bool turn(struct sim *sim)
{
    bool steps = life_has_work(sim->life);

    if (steps && sim_point(sim, SIM_KILL_POSTED))
        return false;
    sim->in_turn = steps;
    sim->commit_failed = false;
    (void)life_turn(sim->life); /* it is asked again while it has work */
    sim->in_turn = false;
    if (!steps || sim->dying || sim->commit_failed)
        return false;
    sim_check_turn(sim);
    return true;
}

static void run_daemon(struct sim *sim)
{
    int turns = 0;

    while (sim->up && !sim->dying && !sim->over && turn(sim))
        check(++turns < TURNS_IN_A_ROW_MAX); /* machines that feed each other for ever */
    if (sim->dying)
        bury(sim);
}

/* --- what happens --- */

static void deliver(struct sim *sim, const struct sim_event *event)
{
    switch ((enum sim_event_kind)event->kind) {
    case SE_STEP:
        if (!sim->draining) /* the host slept, and the end came before */
            sim_do_step(sim, &sim->script->steps[event->index]);
        break;
    case SE_START:
        if (!sim->up && event->stamp == sim->incarnation && sim->now_ms >= sim->boot_at_ms)
            start(sim);
        else if (!sim->up && event->stamp == sim->incarnation)
            sim_later(sim, sim->boot_at_ms - sim->now_ms + 50, SE_START, 0, event->stamp);
        break;
    case SE_CALL:
        sim_call_event(sim, event);
        break;
    case SE_RENDER:
        sim_templates_event(sim, event);
        break;
    case SE_SPAWN:
    case SE_EXIT:
    case SE_KILL:
    case SE_RECORD:
    case SE_SHIM_END:
    case SE_WATCH:
    case SE_SWEEP:
    case SE_SWEPT:
        sim_process_event(sim, event);
        break;
    case SE_USER:
    case SE_POLL:
    case SE_ANSWER:
    case SE_PUSH:
    case SE_ACK:
    case SE_BEAT:
        sim_control_event(sim, event);
        break;
    }
}

/* When the daemon wants to do something by itself; UINT64_MAX: never. */
static uint64_t daemon_at_ms(struct sim *sim)
{
    uint64_t at_ms = UINT64_MAX;

    if (!sim->up)
        return at_ms;
    uint64_t deadline_ms = life_deadline_ms(sim->life), node_ms = sim_node_ms(sim);
    if (life_has_work(sim->life))
        at_ms = sim->now_ms;
    else if (deadline_ms != 0)
        at_ms = sim->now_ms + (deadline_ms > node_ms ? deadline_ms - node_ms : 0);
    else if (!sim->restored)
        at_ms = sim->now_ms;
    return at_ms;
}

/* Where much happens, much of it happens at once. */
static uint64_t batch_max(const struct sim *sim)
{
    return BATCH_MAX * (1 + (uint64_t)sim->tasks_count / TASKS_OF_A_BATCH);
}

/* Lets the next thing happen.  False: nothing will happen before UNTIL_MS. */
static bool advance(struct sim *sim, uint64_t until_ms)
{
    uint64_t daemon_ms = daemon_at_ms(sim);
    uint64_t event_ms = sim->heap.count > 0 ? sim->heap.items[0].at_ms : UINT64_MAX;
    uint64_t next_ms = daemon_ms < event_ms ? daemon_ms : event_ms;

    if (next_ms > until_ms)
        return false;
    if (next_ms > sim->now_ms)
        sim->now_ms = next_ms;
    uint64_t batch = 1;
    if (sim->script->batching)
        batch += sim_below(sim_chance(sim, LUCK_BATCH, 0, sim->deliveries), batch_max(sim));
    for (uint64_t i = 0; i < batch && sim->heap.count > 0 && !sim->dying && !sim->over &&
                         sim->heap.items[0].at_ms <= sim->now_ms;
         i++) {
        struct sim_event event = sim_next(sim);
        deliver(sim, &event);
        sim->deliveries++;
    }
    run_daemon(sim);
    return true;
}

/* --- a whole world --- */

/* What an earlier world has left is its memory only. */
static void reset(struct sim *sim, const struct sim_script *script)
{
    sim_jobs_end(sim);
    life_free(sim->life);
    replay_free(sim->replay);
    *sim = (struct sim){
        .script = script,
        .start = sim->start,
        .heap = {.items = sim->heap.items, .size = sim->heap.size},
        .store = sim->store,
        .copy = sim->copy,
        .jobs = sim->jobs,
        .sink = sim->sink,
        .told = {.facts = sim->told.facts},
        .room = sim->room,
        .room_bytes = sim->room_bytes,
        .replay = replay_new(),
        .boot = SIM_FIRST_BOOT,
        .attempts = {.next_pid = 1000},
        .control = {.server_index = 10},
    };
    sim->copy.made = sim->copy.wanted = sim->copy.was_put = false;
    sim_store_reset(sim);
    sim_jobs_reset(sim);
    sim_plan(sim);
    sim->deliveries_max =
        DELIVERIES_MIN + DELIVERIES_OF_MACHINE *
                             (uint64_t)(sim->allocs_count + sim->tasks_count + sim->claims_count);
    for (unsigned s = 0; s < script->steps_count; s++) {
        if (script->steps[s].moment == SIM_AT)
            sim_later(sim, script->steps[s].at_ms, SE_STEP, s, 0);
    }
}

/* What an operator does about plugins in a healed world: restarts the daemon for one that was given
 * up, installs one again that was stopped or removed. */
static bool tend_plugins(struct sim *sim)
{
    bool tended = false;

    for (int p = 0; p < sim->plugins_count && sim->up && sim->restored; p++) {
        const struct machine *record = core_find(sim->core, &sim->plugins[p].id);
        if (sim->plugins[p].removed || sim->plugins[p].task != NULL)
            continue;
        bool rejected = record != NULL && record->state == P_REJECTED;
        bool stopped = record != NULL && record->state == P_STOPPED;
        tended |= record == NULL || rejected || stopped;
        if (stopped && !sim->plugins[p].stop_asked)
            sim_violate(sim, 32, "plugin %s was stopped, and nobody asked for it",
                        sim->plugins[p].id.text);
        if (record == NULL)
            sim_define_plugins(sim);
        if (stopped)
            core_tell(sim->core, &sim->plugins[p].id, PE_REMOVE, NULL);
        if (rejected) {
            sim_say(sim, "operator restarts the daemon for %s", sim->plugins[p].id.text);
            sim_die(sim, 50);
        }
    }
    run_daemon(sim);
    return tended;
}

static void wish_all_gone(struct sim *sim)
{
    sim_say(sim, "all is to be gone");
    sim->draining = true;
    sim_jobs_wish_all_gone(sim);
    for (int a = 0; a < sim->allocs_count && sim->script->jobs_count == 0; a++) {
        if (sim->allocs[a].wish != WISH_NONE)
            sim_wish(sim, a, WISH_GONE);
    }
}

static bool is_over_budget(struct sim *sim, uint64_t begun_ms)
{
    return sim->now_ms > begun_ms + HEALED_BUDGET_MS || sim->deliveries > sim->deliveries_max;
}

/* Runs until CONDITION has held for a while, or never will. */
static void run_until(struct sim *sim, bool (*condition)(struct sim *sim))
{
    uint64_t begun_ms = sim->now_ms, since_ms = 0;
    bool holds = false;

    while (!sim->over && !is_over_budget(sim, begun_ms)) {
        bool tended = tend_plugins(sim), now = condition(sim);
        if (now && !holds)
            since_ms = sim->now_ms;
        holds = now;
        if (!advance(sim, holds ? since_ms + QUIET_MS : UINT64_MAX - 1) && !tended)
            return;
    }
}

static void remove_plugins(struct sim *sim)
{
    for (int p = 0; p < sim->plugins_count; p++)
        sim->plugins[p].removed = 1;
    sim_define_plugins(sim);
}

static bool allocs_are_gone(struct sim *sim)
{
    const struct sim_store *store = &sim->store;

    /* Allocs come last among the records; counting is dear on a large node. */
    if (store->count > 0 && store->items[store->count - 1]->id.kind == MACHINE_ALLOC)
        return false;
    return sim->up && core_count(sim->core, MACHINE_ALLOC) == 0 &&
           core_count(sim->core, MACHINE_VOLUME) == 0;
}

static void live(struct sim *sim)
{
    if (sim->start != NULL)
        sim_begin(sim);
    start(sim);
    run_daemon(sim);
    while (!sim->over && sim->now_ms < sim->script->heal_ms && advance(sim, sim->script->heal_ms)) {
        if (sim->deliveries > sim->deliveries_max)
            sim_violate(sim, 35, "the world does not come to rest");
    }
    if (sim->now_ms < sim->script->heal_ms)
        sim->now_ms = sim->script->heal_ms;
    sim_heal(sim);
    run_until(sim, sim_is_settled);
    if (!sim->over)
        sim_check_settled(sim);
    sim_judge(sim);
    if (sim->over)
        return;
    wish_all_gone(sim);
    run_until(sim, allocs_are_gone);
    remove_plugins(sim);
    run_until(sim, sim_is_empty);
    if (!sim->over)
        sim_check_empty(sim);
}

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    struct sim *sim = ctx;

    sim->result->outcome = SIM_ASSERTION;
    (void)text_format(sim->result->text, sizeof(sim->result->text), "assertion %s:%d: %s", file,
                      line, text); /* cut if too long */
    longjmp(sim->failed, 1);
}

struct sim *sim_new(void)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    check(sim != NULL);
    sim->told.facts = calloc(SIM_FACTS_MAX, sizeof(*sim->told.facts));
    check(sim->told.facts != NULL);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL)
        return;
    sim_jobs_end(sim);
    life_free(sim->life);
    sim_jobs_free(sim);
    replay_free(sim->replay);
    sim_store_free(&sim->store);
    sim_older_free(sim);
    free(sim->room);
    free(sim->told.facts);
    free(sim->heap.items);
    free(sim);
}

void sim_set_plane(struct sim *sim, const struct sim_plane *plane)
{
    sim->jobs.plane = plane;
}

void sim_set_start(struct sim *sim, const struct sim_start *start)
{
    sim->start = start;
}

void sim_run(struct sim *sim, const struct sim_script *script, fsm_print *print, void *ctx,
             struct sim_result *ret_result)
{
    struct check_guard guard;

    *ret_result = (struct sim_result){.outcome = SIM_FINE};
    reset(sim, script);
    sim->print = print;
    sim->print_ctx = ctx;
    sim->result = ret_result;
    check_guard_push(&guard, on_check_failed, sim);
    if (setjmp(sim->failed) == 0)
        live(sim);
    check_guard_pop(&guard);
    if (ret_result->outcome == SIM_ASSERTION) {
        sim_say(sim, "%s", ret_result->text);
        sim->jobs.now = NULL;
        sim->life = NULL; /* in an unknown state: left alone, the process is about to end */
        sim->core = NULL;
    }
    if (sim->core != NULL) {
        struct core_figures figures = core_figures(sim->core);
        ret_result->effects = figures.effects;
        if (sim->incarnation - 1 < SIM_CUTS_MAX)
            ret_result->points[sim->incarnation - 1] = sim->points;
    }
    ret_result->events = sim->store.head.next_sequence - sim->first_sequence;
    ret_result->turns = sim->store.head.turn - sim->first_turn;
    ret_result->simulated_ms = sim->now_ms;
}
