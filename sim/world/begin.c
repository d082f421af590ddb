/*
 * A world that begins from a journal (sim/start.h).
 *
 * The records say what the daemon had decided and what it had heard; the world is made so that all
 * of it is true.  Where an effect was on its way when the journal ends, its work is done or not;
 * then the time until the restart passes, in which payloads may end and hosts may be booted.
 */
#include "sim/script/started.h"
#include "sim/world/world.h"

#include <string.h>

enum {
    AWAY_MS = 1000,
    AWAY_MS_MAX = 3600000,
    UNKNOWN_GENERATION = 1, /* of a task whose record cannot be read */
    SIGKILL_CODE = SIGNAL_BASE + SIGKILL_NUMBER,
};

/* --- chance --- */

enum luck { ABOUT_WORK, ABOUT_START, ABOUT_AWAY, ABOUT_CODE, ABOUT_TIME };

static uint64_t luck(const struct sim *sim, const char *name, enum luck about)
{
    return sim_chance(sim, LUCK_BEGIN, hash_bytes(about, name, strlen(name)) >> 8, about);
}

/* True if the effect that ID waited for has done its work. */
static bool happened(const struct sim *sim, const struct machine_id *id)
{
    sim->result->decided++;
    if (sim->script->fate_of_cut != 0)
        return sim->script->fate_of_cut == 1;
    return (luck(sim, id->text, ABOUT_WORK) & 1) != 0;
}

/* --- payloads --- */

static void end_payload(struct sim *sim, struct sim_attempt *attempt, int32_t code, int32_t signal,
                        enum sim_record record)
{
    attempt->payload = PAYLOAD_ENDED;
    attempt->shim = SHIM_ENDED;
    attempt->record = (uint8_t)record;
    attempt->written = record == RECORD_ENDED;
    attempt->code = code;
    attempt->signal = signal;
    attempt->finished_unix_ns = sim_unix_ns(sim);
    attempt->epoch++;
}

/* The start was on its way: nothing but a mark is there, or a shim, or all is over already. */
static void begin_unseen(struct sim *sim, const struct sim_whom *whom, const struct task *task)
{
    const struct machine_id *id = sim_id(sim, whom);
    struct sim_attempt *attempt = sim_attempt_new(sim, whom, task->machine.generation);
    bool failed = task->machine.state == T_REAPING;
    uint64_t kind = sim->script->fate_of_cut != 0 ? 0 : luck(sim, id->text, ABOUT_START) % 4;

    attempt->mark = MARK_BEGUN;
    attempt->boot = sim->boot;
    if (kind == 1 || (failed && kind == 0))
        return;
    if (kind == 0) {
        attempt->shim = SHIM_STARTING;
        sim_later(sim, 0, SE_SPAWN, sim_attempt_number(sim, attempt), attempt->epoch);
    } else if (kind == 2 && !failed) {
        attempt->starts = 1;
        attempt->process = sim_process_new(sim);
        end_payload(sim, attempt, 0, 0, RECORD_ENDED);
    } else {
        attempt->record = RECORD_NOT_STARTED;
        attempt->shim = SHIM_ENDED;
    }
}

/* A signal was sent, or the order to send it was on its way. */
static void begin_stopping(struct sim *sim, struct sim_attempt *attempt, const struct task *task,
                           uint64_t node_ms)
{
    const struct sim_task *plan = sim_attempt_plan(sim, attempt);
    uint64_t left_ms = task->kill_at_ms > node_ms ? task->kill_at_ms - node_ms : 0;
    size_t number = sim_attempt_number(sim, attempt);

    attempt->kill_at_ms = sim->now_ms + left_ms;
    attempt->term_sent = 1;
    sim_later(sim, left_ms, SE_KILL, number, attempt->epoch);
    sim_later(sim, plan->dies_ms, SE_EXIT, number, attempt->epoch);
}

static void begin_seen(struct sim *sim, const struct sim_whom *whom, const struct task *task,
                       uint64_t node_ms)
{
    struct sim_attempt *attempt = sim_attempt_new(sim, whom, task->machine.generation);
    bool reaping = task->machine.state == T_REAPING;
    bool acted = happened(sim, sim_id(sim, whom));
    uint64_t runs_ms = sim_attempt_plan(sim, attempt)->runs_ms;

    attempt->mark = MARK_BEGUN;
    attempt->answered = 1;
    attempt->starts = 1;
    attempt->boot = sim->boot;
    attempt->process = task->process;
    if (task->exit_seen) {
        end_payload(sim, attempt, task->exit.known ? task->exit.code : SIGKILL_CODE,
                    task->exit.known ? task->exit.signal : SIGKILL_NUMBER,
                    task->exit.known ? RECORD_ENDED : RECORD_NONE);
        attempt->told = 1;
        if (reaping && acted)
            sim_attempt_remove(attempt);
        return;
    }
    if (reaping && acted) {
        end_payload(sim, attempt, SIGKILL_CODE, SIGKILL_NUMBER, RECORD_ENDED);
        return;
    }
    attempt->payload = PAYLOAD_RUNNING;
    attempt->shim = SHIM_ALIVE;
    if (task->machine.state == T_STOPPING && acted)
        begin_stopping(sim, attempt, task, node_ms);
    else if (runs_ms > 0)
        sim_later(sim, runs_ms, SE_EXIT, sim_attempt_number(sim, attempt), attempt->epoch);
}

/* Nobody knows which attempt it was; if something of it lives, the sweep ends it. */
static void begin_lost(struct sim *sim, const struct sim_whom *whom)
{
    if (!happened(sim, sim_id(sim, whom)))
        return;
    struct sim_attempt *attempt = sim_attempt_new(sim, whom, UNKNOWN_GENERATION);
    attempt->mark = MARK_BEGUN;
    attempt->answered = 1;
    attempt->starts = 1;
    attempt->boot = sim->boot;
    attempt->process = sim_process_new(sim);
    attempt->payload = PAYLOAD_RUNNING;
    attempt->shim = SHIM_ALIVE;
}

/* --- tasks --- */

/* The bits of WANTED below that of HOOK, which may be none: then all. */
static uint32_t bits_before(uint32_t wanted, uint8_t hook)
{
    return wanted & (uint32_t)(((uint64_t)1 << hook) - 1);
}

/* Prestart hooks that have run, for the attempt under way or for an earlier one. */
static uint32_t hooks_run(const struct task *task)
{
    uint32_t wanted = task->define.hooks_prestart;

    if (task->machine.state == T_PRESTART && task->phase == PHASE_PRESTART &&
        task->started_unix_ns == 0)
        return bits_before(wanted, task->hook);
    return task->started_unix_ns != 0 || task_holds_work(task) ? wanted : 0;
}

/* Of hooks that run one after the other: those before the one under way, or all when it is over. */
static uint32_t hooks_before(uint32_t wanted, uint8_t hook, bool over)
{
    return over ? wanted : bits_before(wanted, hook);
}

/* What the job's author is promised about tries goes on, too. */
static struct sim_tries tries_of(const struct task *task)
{
    return (struct sim_tries){
        .define = task->define,
        .known = true,
        .begun_ms = task->interval_ms,
        .used = task->restart_count,
        .again_at_ms = task->machine.state == T_BACKOFF ? task->restart_at_ms : 0,
        .asked = task->restart_wanted ? task->machine.generation : 0,
    };
}

static void begin_task(struct sim *sim, const struct sim_whom *whom, uint64_t node_ms)
{
    struct sim_task_state *state = sim_task_of(sim, whom);

    if (state->past == NULL) {
        if (sim_store_has(&sim->store, &state->id))
            begin_lost(sim, whom);
        return;
    }
    const struct task *task = state->past;
    bool prestarts = task->machine.state == T_PRESTART && task->phase == PHASE_PRESTART;
    state->dead = task->machine.state == T_DEAD || task->machine.state == T_OWING;
    state->tries = tries_of(task);
    if (state->dead || task->machine.state == T_CLEANUP)
        state->stopped = task->define.hooks_stop & ~task->owed;
    state->past_hooks = hooks_run(task);
    state->hooked = task_holds_work(task);
    if (prestarts)
        state->prestarted = hooks_before(task->define.hooks_prestart, task->hook, false);
    else if (task_holds_work(task) && !task->ran)
        state->prestarted = task->define.hooks_prestart;
    if (!task_holds_work(task))
        return;
    if (task->ran)
        begin_seen(sim, whom, task, node_ms);
    else if (happened(sim, &state->id))
        begin_unseen(sim, whom, task);
}

/* --- allocs --- */

/* A member's record was lost in an earlier life, and its alloc brought to an end for it. */
static bool has_lost(const struct sim_alloc_state *alloc)
{
    for (int t = 0; t < alloc->tasks_count; t++) {
        if (alloc->tasks[t].past == NULL)
            return true;
    }
    return false;
}

/* Only tasks are left of it, which its removal has reached: there is nothing to bring back. */
static bool is_removed(const struct sim_alloc_state *alloc)
{
    for (int t = 0; t < alloc->tasks_count; t++) {
        if (alloc->tasks[t].past == NULL || !alloc->tasks[t].past->remove_wanted)
            return false;
    }
    return !alloc->specified && alloc->tasks_count > 0 && alloc->claims_count == 0;
}

static bool has_directory(const struct sim *sim, const struct alloc *alloc,
                          const struct machine_id *id)
{
    uint32_t bit = 1u << ALLOC_HOOK_ALLOC_DIR;
    uint8_t state = alloc->machine.state;

    if ((alloc->assign.hooks_prerun & bit) == 0 || (alloc->assign.hooks_destroy & bit) == 0)
        return alloc->assign.condemned;
    if (state == A_WAITING)
        return false;
    if (state == A_PREPARING && alloc->hook <= ALLOC_HOOK_ALLOC_DIR)
        return happened(sim, id);
    return state != A_DESTROYING || !happened(sim, id);
}

static bool has_network(const struct sim *sim, const struct alloc *alloc,
                        const struct machine_id *id)
{
    uint8_t state = alloc->machine.state;

    if (state == A_WAITING || state > A_POSTRUN || alloc->assign.condemned)
        return false;
    if ((state == A_PREPARING || state == A_POSTRUN) && alloc->hook <= ALLOC_HOOK_NETWORK)
        return happened(sim, id) == (state == A_PREPARING);
    return state != A_POSTRUN;
}

static void begin_alloc(struct sim *sim, int number)
{
    struct sim_alloc_state *state = &sim->allocs[number];
    const struct machine *record = sim_store_find(&sim->store, &state->id);
    enum sim_wish wish = WISH_RUN;

    state->accepted = 1;
    if (record == NULL) {
        state->gone = is_removed(state);
        state->damaged = state->directory = !state->gone;
        wish = state->gone ? WISH_GONE : WISH_RUN;
    } else {
        const struct alloc *alloc = alloc_of(record);
        const struct sim_alloc_state *previous =
            state->after == 0 ? NULL : &sim->allocs[state->after - 1];
        const struct machine *earlier =
            previous == NULL ? NULL : sim_store_find(&sim->store, &previous->id);
        state->damaged = alloc->assign.condemned || has_lost(state);
        state->reported_status = alloc->client_status;
        state->first_version = alloc->assign.job_version;
        state->ended = record->state == A_TERMINAL || record->state == A_DESTROYING;
        state->directory = has_directory(sim, alloc, &state->id);
        state->disk = state->directory && alloc->disk == DISK_HERE;
        state->network = sim_has_network(state) && has_network(sim, alloc, &state->id);
        if (state->ended || record->state == A_POSTRUN)
            state->torn =
                (uint8_t)hooks_before(alloc->assign.hooks_postrun, alloc->hook, state->ended);
        state->follows =
            record->state == A_WAITING && earlier != NULL && alloc_of(earlier)->ended_unix_ns == 0;
        wish = alloc->destroy_wanted ? WISH_GONE : alloc->stop_wanted ? WISH_STOP : WISH_RUN;
    }
    state->wish = (uint8_t)wish;
    state->wished_index[WISH_RUN] = state->wished_index[wish] = 1;
}

/* --- volumes and plugins --- */

/* What a record says may be so is so if the work was done. */
static void begin_claim(struct sim *sim, struct sim_claim_state *claim)
{
    const struct machine *record = sim_store_find(&sim->store, &claim->id);
    bool acted = happened(sim, &claim->id);

    if (record == NULL)
        return; /* a lost one is on a disk of its own: nobody would undo it */
    const struct volume *volume = volume_of(record);
    enum volume_state state = (enum volume_state)record->state;
    bool sure = state == V_READY || state == V_VERIFYING;
    bool mounted = state == V_UNPUBLISHING ? !acted : sure || acted;
    bool staged = state == V_UNSTAGING
                      ? !acted
                      : sure || state == V_PUBLISHING || state == V_UNPUBLISHING || acted;

    claim->mounted = volume->published && mounted;
    claim->counted = (uint8_t)(volume->missed + claim->mounted);
    if ((volume->staged && staged) || (claim->mounted && sim->plugins[claim->plugin].stages))
        sim->disks[claim->disk].staged = 1;
    bool undecided = state == V_CLAIMING && !volume->staged && !volume->published;
    claim->held = volume->claimed && (state == V_RELEASING ? !acted : !undecided || acted);
}

static void begin_plugin(struct sim *sim, struct sim_plugin_state *state)
{
    const struct machine *record = sim_store_find(&sim->store, &state->id);

    if (record == NULL)
        return;
    state->generation = record->generation;
    state->removed = plugin_of(record)->remove_wanted;
    switch ((enum plugin_state)record->state) {
    case P_PROBING:
    case P_IDENTIFYING:
    case P_READY:
    case P_UNHEALTHY:
        state->alive = 1;
        return;
    case P_LAUNCHING:
    case P_RECOVERING:
        state->alive = happened(sim, &state->id);
        return;
    case P_STOPPING:
        state->alive = !happened(sim, &state->id);
        state->stop_asked = 1;
        return;
    case P_STOPPED:
        state->stop_asked = 1;
        return;
    case P_ABSENT:
    case P_BACKOFF:
    case P_REJECTED:
    case P_GONE:
    case P_COUNT:
        return;
    }
}

/* --- until the restart --- */

static void pass_payload(struct sim *sim, struct sim_attempt *attempt)
{
    const char *name = sim_attempt_id(sim, attempt)->text;
    uint64_t what = luck(sim, name, ABOUT_AWAY) % 8;
    int32_t code = luck(sim, name, ABOUT_CODE) % 4 == 0;

    if (attempt->payload != PAYLOAD_RUNNING)
        return;
    if (sim->script->away == SIM_AWAY_EXITS || what < 2) {
        end_payload(sim, attempt, code, 0, RECORD_ENDED);
    } else if (what == 2) {
        attempt->shim = SHIM_ENDED;
        sim_count_fault(sim, SIM_SHIM);
    } else if (what == 3) {
        end_payload(sim, attempt, 1, 0, RECORD_NONE);
        sim_count_fault(sim, SIM_RECORD_LOST);
    }
}

static void pass_others(struct sim *sim)
{
    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].alive && luck(sim, sim->plugins[p].id.text, ABOUT_AWAY) % 5 == 0) {
            sim->plugins[p].alive = 0;
            sim_count_fault(sim, SIM_PLUG);
        }
    }
    for (int c = 0; c < sim->claims_count; c++) {
        struct sim_claim_state *claim = &sim->claims[c];
        if (claim->mounted && luck(sim, claim->id.text, ABOUT_AWAY) % 10 == 0) {
            claim->mounted = 0;
            claim->counted--;
            claim->snatched = 1;
            sim_count_fault(sim, SIM_UNMOUNT);
        }
    }
}

static void pass_boot(struct sim *sim)
{
    sim_count_fault(sim, SIM_BOOT);
    sim->boot++;
    sim->uptime_ms = 0;
    sim_processes_reboot(sim);
    sim_node_reboot(sim);
}

static void pass_time(struct sim *sim)
{
    uint8_t away = sim->script->away;
    bool drawn = away == SIM_AWAY_DRAWN;

    if (away == SIM_AWAY_EXITS || drawn) {
        for (size_t i = 0; i < sim->attempts.count; i++)
            pass_payload(sim, &sim->attempts.items[i]);
    }
    if (drawn)
        pass_others(sim);
    if (away == SIM_AWAY_REBOOT || (drawn && luck(sim, "", ABOUT_AWAY) % 4 == 0))
        pass_boot(sim);
}

/* --- all of it --- */

static void begin_store(struct sim *sim, const struct sim_start *start)
{
    struct sim_store *store = &sim->store;

    sim_history_reset(sim, start->next_sequence);
    for (size_t i = 0; i < start->kept.count; i++) {
        const struct sim_past *kept = &start->kept.items[i];
        sim_store_put(store, &kept->id, kept->record);
        if (kept->record != NULL)
            replay_base(sim->replay, &kept->id, kept->record);
        if (kept->record != NULL)
            sim_history_base(sim, &kept->id, kept->record);
    }
    store->head.next_sequence = sim->first_sequence = start->next_sequence;
    store->head.turn = sim->first_turn = start->turn;
    store->head.last_now_ms = start->last.now_ms;
    store->head.last_unix_ns = start->last.unix_ns;
    store->head.server_index = start->server_index;
    if (start->known)
        store->head.node = (struct sim_node){sim->boot, start->clock_offset_ms};
    if (start->server_index > sim->control.server_index)
        sim->control.server_index = start->server_index;
}

/* The clocks go on from the journal's newest event.  Returns what node time it is. */
static uint64_t begin_clocks(struct sim *sim, const struct sim_start *start)
{
    uint64_t away_ms = AWAY_MS;

    if (sim->script->away == SIM_AWAY_DRAWN)
        away_ms = sim_below(luck(sim, "", ABOUT_TIME), AWAY_MS_MAX);
    if (start->last.now_ms == 0)
        return 0;
    sim->jump_ms =
        start->last.unix_ns / 1000000 + (int64_t)away_ms - (int64_t)SIM_UNIX_BASE_S * 1000;
    sim->uptime_ms = start->last.now_ms + away_ms - start->clock_offset_ms;
    return start->last.now_ms + away_ms;
}

void sim_begin(struct sim *sim)
{
    const struct sim_start *start = sim->start;

    begin_store(sim, start);
    uint64_t node_ms = begin_clocks(sim, start);
    sim_say(sim, "the world begins from a journal, behind event %llu",
            (unsigned long long)start->next_sequence - 1);
    sim_mix(sim, start->next_sequence);
    for (int p = 0; p < sim->plugins_count; p++)
        begin_plugin(sim, &sim->plugins[p]);
    for (int c = 0; c < sim->claims_count; c++)
        begin_claim(sim, &sim->claims[c]);
    for (int a = 0; a < sim->allocs_count; a++) {
        begin_alloc(sim, a);
        for (int t = 0; t < sim->allocs[a].tasks_count; t++) {
            struct sim_whom whom = {MACHINE_TASK, (int16_t)a, (int16_t)t};
            begin_task(sim, &whom, node_ms);
        }
    }
    pass_time(sim);
}
