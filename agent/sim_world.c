/*
 * The simulated world: time, what happens in it, and the life of the daemon.
 *
 * The daemon here does what agent/daemon.c does around the turn (one turn before each sleep, a
 * commit retried after a second, load, continue, restore, sweep after the first commit), over the
 * world's models instead of LMDB and the rooms.  It can die at every crash point; then all that it
 * had in memory is gone, and journal and world stay as they are.
 */
#include "agent/sim_world.h"

#include "agent/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETRY_COMMIT_MS = 1000, /* as in daemon.c */
    TURNS_IN_A_ROW_MAX = 10000,
    HEALED_BUDGET_MS = 4 * 3600 * 1000,
    DELIVERIES_MAX = 200000,
    QUIET_MS = 3000, /* settled for so long: nothing late is to come */
};

/* --- chance --- */

uint64_t sim_chance(const struct sim *sim, uint64_t what, uint64_t which, uint64_t nth)
{
    struct rng rng = rng_init(hash_u64(hash_u64(sim->script->seed, what << 56 | which), nth));

    return rng_next(&rng);
}

uint64_t sim_below(uint64_t chance, uint64_t bound)
{
    return (uint64_t)(((__uint128_t)chance * bound) >> 64);
}

/* --- the story and the hash --- */

void sim_mix(struct sim *sim, uint64_t value)
{
    sim->result->hash = hash_u64(sim->result->hash, value);
}

void sim_say(struct sim *sim, const char *format, ...)
{
    char line[640];
    va_list arguments;

    if (sim->print == NULL)
        return;
    int used =
        snprintf(line, sizeof(line), "%7llu.%03llu  ", (unsigned long long)(sim->now_ms / 1000),
                 (unsigned long long)(sim->now_ms % 1000));
    va_start(arguments, format);
    (void)vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments); /* cut */
    va_end(arguments);
    (void)text_append(line, sizeof(line), "\n"); /* one byte was left for it */
    sim->print(sim->print_ctx, line);
}

void sim_count_fault(struct sim *sim, enum sim_fault fault)
{
    sim->result->faults[fault]++;
    sim_mix(sim, fault);
}

/* --- time --- */

int64_t sim_unix_ns(const struct sim *sim)
{
    return ((int64_t)SIM_UNIX_BASE_S * 1000 + (int64_t)sim->now_ms + sim->jump_ms) * 1000000;
}

uint64_t sim_node_ms(const struct sim *sim)
{
    return sim->now_ms - sim->boot_at_ms + sim->clock_offset_ms;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->sequence < b->sequence;
}

void sim_later(struct sim *sim, uint64_t delay_ms, enum sim_event_kind kind, size_t index,
               uint32_t stamp)
{
    struct sim_event event = {
        .at_ms = sim->now_ms + delay_ms,
        .sequence = ++sim->heap_sequence,
        .stamp = stamp,
        .index = (uint16_t)index,
        .kind = (uint8_t)kind,
    };

    check(index <= UINT16_MAX);
    if (sim->heap_count == sim->heap_room) {
        sim->heap_room = sim->heap_room == 0 ? 256 : sim->heap_room * 2;
        sim->heap = realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
        check(sim->heap != NULL);
    }
    size_t at = sim->heap_count++;
    while (at > 0 && is_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

static struct sim_event take_first(struct sim *sim)
{
    check(sim->heap_count > 0);
    struct sim_event first = sim->heap[0], last = sim->heap[--sim->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && is_before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!is_before(&sim->heap[child], &last))
            break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}

/* Everything of this host stands still while its clocks go on. */
static void sleep_all(struct sim *sim, uint64_t ms)
{
    for (size_t i = 0; i < sim->heap_count; i++)
        sim->heap[i].at_ms += ms;
    sim->now_ms += ms;
    sim->poll_at_ms += ms;
}

/* --- who is who --- */

struct sim_whom sim_find(const struct sim *sim, const struct machine_id *id)
{
    struct sim_whom whom = {.kind = id->kind, .alloc = -1, .member = -1};
    size_t length = strcspn(id->text, "/");

    if (id->kind == MACHINE_PLUGIN) {
        for (int8_t i = 0; i < sim->script->plugins_count; i++) {
            if (text_equal(sim->plugins[i].id.text, id->text)) {
                whom.member = i;
                return whom;
            }
        }
        return (struct sim_whom){.kind = MACHINE_KIND_COUNT};
    }
    for (int8_t a = 0; a < sim->script->allocs_count; a++) {
        const struct sim_alloc *alloc = &sim->script->allocs[a];
        if (strncmp(alloc->name, id->text, length) != 0 || alloc->name[length] != '\0')
            continue;
        whom.alloc = a;
        if (id->kind == MACHINE_ALLOC)
            return whom;
        const char *name = id->text + length + 1;
        for (int8_t i = 0; id->kind == MACHINE_TASK && i < alloc->tasks_count; i++) {
            if (text_equal(alloc->tasks[i].name, name))
                whom.member = i;
        }
        for (int8_t i = 0; id->kind == MACHINE_VOLUME && i < alloc->claims_count; i++) {
            if (text_equal(alloc->claims[i].name, name))
                whom.member = i;
        }
        if (whom.member >= 0)
            return whom;
    }
    return (struct sim_whom){.kind = MACHINE_KIND_COUNT};
}

const struct machine_id *sim_id(const struct sim *sim, const struct sim_whom *whom)
{
    switch ((enum machine_kind)whom->kind) {
    case MACHINE_PLUGIN:
        return &sim->plugins[(unsigned)whom->member].id;
    case MACHINE_ALLOC:
        return &sim->allocs[(unsigned)whom->alloc].id;
    case MACHINE_TASK:
        return &sim->allocs[(unsigned)whom->alloc].tasks[(unsigned)whom->member].id;
    case MACHINE_VOLUME:
        return &sim->allocs[(unsigned)whom->alloc].claims[(unsigned)whom->member].id;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("a machine that is not in the script");
}

const struct machine *sim_record(const struct sim *sim, const struct sim_whom *whom)
{
    const struct machine *record =
        sim->core == NULL ? NULL : agent_find(sim->core, sim_id(sim, whom));

    return record == NULL || fsm_is_final(record) ? NULL : record;
}

static uint32_t *entered_of(struct sim *sim, const struct sim_whom *whom)
{
    switch ((enum machine_kind)whom->kind) {
    case MACHINE_PLUGIN:
        return sim->plugins[(unsigned)whom->member].entered;
    case MACHINE_ALLOC:
        return sim->allocs[(unsigned)whom->alloc].entered;
    case MACHINE_TASK:
        return sim->allocs[(unsigned)whom->alloc].tasks[(unsigned)whom->member].entered;
    case MACHINE_VOLUME:
        return sim->allocs[(unsigned)whom->alloc].claims[(unsigned)whom->member].entered;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("a machine that is not in the script");
}

/* --- dying --- */

void sim_die(struct sim *sim, uint64_t down_ms)
{
    if (!sim->up || sim->dying)
        return;
    sim->dying = true;
    sim->down_ms = down_ms;
}

bool sim_point(struct sim *sim, enum sim_fault kind)
{
    check(sim_fault_place(kind) == SIM_PLACE_POINT);
    if (sim->dying)
        return true;
    if (!sim->up)
        return false;
    sim->points++;
    uint32_t number = sim->incarnation - 1;
    if (sim->healed || number >= SIM_CUTS_MAX || sim->script->cuts[number] != sim->points)
        return false;
    sim_count_fault(sim, kind);
    sim_say(sim, "%s, point %u", sim_fault_name(kind), sim->points);
    sim_die(sim, sim->script->cut_down_ms);
    return true;
}

/* What the daemon had in memory is gone. */
static void bury(struct sim *sim)
{
    uint32_t number = sim->incarnation - 1;

    sim_say(sim, "daemon is gone");
    sim_mix(sim, sim->points);
    if (number < SIM_CUTS_MAX)
        sim->result->points[number] = sim->points;
    sim_check_memory(sim);
    agent_free(sim->core);
    sim->core = NULL;
    sim->up = sim->dying = sim->term = false;
    sim->pushing = sim->first_answer = false;
    memset(sim->waits, 0, sizeof(sim->waits));
    sim->retry_at_ms = 0;
    sim_calls_cut(sim);
    for (uint32_t i = 0; i < SIM_REQUESTS_MAX; i++) {
        if (sim->requests[i].state == REQUEST_OPEN)
            sim->requests[i].state = REQUEST_LOST;
    }
    sim_later(sim, sim->down_ms, SE_START, 0, sim->incarnation);
}

static void boot(struct sim *sim, uint64_t ms)
{
    bool was_up = sim->up;

    sim_say(sim, "host goes down");
    sim->rebooting = true;
    sim->boot++;
    sim_processes_reboot(sim);
    sim_node_reboot(sim);
    sim->boot_at_ms = sim->now_ms + ms;
    if (was_up)
        sim_die(sim, ms + 50);
}

/* --- steps --- */

static void disturb_server(struct sim *sim, enum sim_server server)
{
    static const uint8_t faults[SIM_SERVER_COUNT] = {
        [SIM_SERVER_DOWN] = SIM_SRV_DOWN,   [SIM_SERVER_BLACKHOLE] = SIM_SRV_BLACKHOLE,
        [SIM_SERVER_STALE] = SIM_SRV_STALE, [SIM_SERVER_PARTIAL] = SIM_SRV_PARTIAL,
        [SIM_SERVER_SLOW] = SIM_SRV_SLOW,
    };

    sim->server = (uint8_t)server;
    if (server != SIM_SERVER_UP)
        sim_count_fault(sim, (enum sim_fault)faults[server]);
}

static struct sim_attempt *newest(struct sim *sim, const struct sim_whom *whom)
{
    int16_t at = sim->allocs[(unsigned)whom->alloc].tasks[(unsigned)whom->member].newest;

    return at < 0 ? NULL : &sim->attempts[at];
}

/* A fault of the script, which a healed world does not know any more. */
static void do_fault(struct sim *sim, const struct sim_step *step)
{
    uint64_t ms = step->number > 0 ? (uint64_t)step->number : 0;
    struct sim_attempt *attempt = step->whom.kind == MACHINE_TASK ? newest(sim, &step->whom) : NULL;

    switch ((enum sim_action)step->action) {
    case SIM_DO_CRASH:
        sim_count_fault(sim, SIM_DOWN);
        sim_die(sim, ms);
        break;
    case SIM_DO_TERM:
        sim_count_fault(sim, SIM_TERM);
        sim->term = true;
        sim_die(sim, ms);
        break;
    case SIM_DO_BOOT:
        sim_count_fault(sim, SIM_BOOT);
        boot(sim, ms);
        break;
    case SIM_DO_SHIM:
        if (attempt != NULL && (attempt->shim == SHIM_ALIVE || attempt->shim == SHIM_STARTING)) {
            sim_count_fault(sim, SIM_SHIM);
            sim_count_fault(sim, SIM_LOGGER);
            sim_shim_die(sim, attempt);
        }
        break;
    case SIM_DO_RECORD_LOST:
        if (attempt != NULL) {
            sim_count_fault(sim, SIM_RECORD_LOST);
            attempt->record_lost = 1;
        }
        break;
    case SIM_DO_PLUG:
        if (sim->plugins[(unsigned)step->whom.member].alive) {
            sim_count_fault(sim, SIM_PLUG);
            sim_plugin_die(sim, step->whom.member);
        }
        break;
    case SIM_DO_SERVER:
        disturb_server(sim, (enum sim_server)step->number);
        break;
    case SIM_DO_TORN_CUT:
        sim_store_damage(sim, &step->whom, SIM_TORN_CUT);
        break;
    case SIM_DO_TORN_ZERO:
        sim_store_damage(sim, &step->whom, SIM_TORN_ZERO);
        break;
    case SIM_DO_TORN_FLIP:
        sim_store_damage(sim, &step->whom, SIM_TORN_FLIP);
        break;
    case SIM_DO_BUSY:
        sim_count_fault(sim, SIM_BUSY);
        sim->allocs[(unsigned)step->whom.alloc].claims[(unsigned)step->whom.member].busy_until_ms =
            sim->now_ms + ms;
        break;
    case SIM_DO_UNMOUNT:
        sim_count_fault(sim, SIM_UNMOUNT);
        sim->allocs[(unsigned)step->whom.alloc].claims[(unsigned)step->whom.member].mounted = 0;
        sim->allocs[(unsigned)step->whom.alloc].claims[(unsigned)step->whom.member].snatched = 1;
        break;
    case SIM_DO_DIR_LOST:
        sim_count_fault(sim, SIM_DIR_LOST);
        sim->allocs[(unsigned)step->whom.alloc].directory = 0;
        for (int i = 0; i < SIM_TASKS_MAX; i++)
            sim->allocs[(unsigned)step->whom.alloc].tasks[i].directory = 0;
        break;
    case SIM_DO_SLEEP:
        sim_count_fault(sim, SIM_SLEEP);
        sleep_all(sim, ms);
        break;
    case SIM_DO_JUMP:
        sim_count_fault(sim, SIM_JUMP);
        sim->jump_ms += step->number;
        break;
    case SIM_DO_DISK:
        sim->commits_to_fail = (uint32_t)ms;
        break;
    case SIM_DO_ASSIGN:
    case SIM_DO_STOP:
    case SIM_DO_DESTROY:
    case SIM_DO_RESTART:
    case SIM_DO_RESTART_TASK:
    case SIM_DO_SIGNAL:
    case SIM_DO_DETACH:
    case SIM_DO_REMOVE:
    case SIM_DO_EXIT:
    case SIM_DO_HEAL:
    case SIM_ACTION_COUNT:
        unreachable("not a fault");
    }
}

static void heal(struct sim *sim)
{
    if (sim->healed)
        return;
    sim_say(sim, "world is healed");
    sim->healed = true;
    sim->server = SIM_SERVER_UP;
    sim->commits_to_fail = 0;
    for (int a = 0; a < SIM_ALLOCS_MAX; a++) {
        for (int i = 0; i < SIM_VOLUMES_MAX; i++)
            sim->allocs[a].claims[i].busy_until_ms = 0;
    }
}

static void do_step(struct sim *sim, const struct sim_step *step)
{
    struct sim_attempt *attempt = step->whom.kind == MACHINE_TASK ? newest(sim, &step->whom) : NULL;

    if (sim->print != NULL) {
        char name[2 * SIM_NAME_SIZE + 2] = "";
        if (sim_action_names_one(step->action))
            sim_whom_name(sim->script, &step->whom, name, sizeof(name));
        sim_say(sim, "world: %s %s %lld", sim_action_name(step->action), name,
                (long long)step->number);
    }
    sim_mix(sim, step->action);
    switch ((enum sim_action)step->action) {
    case SIM_DO_ASSIGN:
        sim_wish(sim, step->whom.alloc, WISH_RUN);
        break;
    case SIM_DO_STOP:
        sim_wish(sim, step->whom.alloc, WISH_STOP);
        break;
    case SIM_DO_DESTROY:
        if (sim->script->server)
            sim_count_fault(sim, SIM_PURGE);
        sim_wish(sim, step->whom.alloc, WISH_GONE);
        break;
    case SIM_DO_RESTART:
        sim_ask(sim, &step->whom, AE_RESTART);
        break;
    case SIM_DO_RESTART_TASK:
        sim_ask(sim, &step->whom, TE_RESTART);
        break;
    case SIM_DO_SIGNAL:
        sim_ask(sim, &step->whom, TE_SIGNAL);
        break;
    case SIM_DO_DETACH:
        sim_ask(sim, &step->whom, VE_DETACH);
        break;
    case SIM_DO_REMOVE:
        sim->plugins[(unsigned)step->whom.member].removed = 1;
        sim_define_plugins(sim);
        break;
    case SIM_DO_EXIT:
        if (attempt != NULL && attempt->payload == PAYLOAD_RUNNING)
            sim_payload_end(sim, attempt, (int32_t)step->number, 0);
        break;
    case SIM_DO_HEAL:
        heal(sim);
        break;
    case SIM_DO_CRASH:
    case SIM_DO_TERM:
    case SIM_DO_BOOT:
    case SIM_DO_SHIM:
    case SIM_DO_RECORD_LOST:
    case SIM_DO_PLUG:
    case SIM_DO_SERVER:
    case SIM_DO_TORN_CUT:
    case SIM_DO_TORN_ZERO:
    case SIM_DO_TORN_FLIP:
    case SIM_DO_BUSY:
    case SIM_DO_UNMOUNT:
    case SIM_DO_DIR_LOST:
    case SIM_DO_SLEEP:
    case SIM_DO_JUMP:
    case SIM_DO_DISK:
        if (!sim->healed)
            do_fault(sim, step);
        break;
    case SIM_ACTION_COUNT:
        unreachable("action");
    }
}

static bool is_same(const struct sim_whom *a, const struct sim_whom *b)
{
    return a->kind == b->kind && a->alloc == b->alloc && a->member == b->member;
}

/* Steps that wait for a transition of BATCH; MOMENT says where we are with it. */
static void watch_transitions(struct sim *sim, const struct journal_event *events, size_t count,
                              enum sim_moment moment)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].before == events[i].after)
            continue;
        struct sim_whom whom = sim_find(sim, &events[i].id);
        if (whom.kind == MACHINE_KIND_COUNT)
            continue;
        uint32_t *entered = entered_of(sim, &whom);
        if (moment == SIM_AFTER)
            entered[events[i].after]++;
        uint32_t nth = entered[events[i].after] + (moment == SIM_BEFORE);
        for (unsigned s = 0; s < sim->script->steps_count; s++) {
            const struct sim_step *step = &sim->script->steps[s];
            if (step->moment == SIM_AT || step->state != events[i].after || step->nth != nth ||
                !is_same(&step->when, &whom))
                continue;
            if (step->moment == (uint8_t)moment)
                do_step(sim, step);
            else if (step->moment == SIM_THEN && moment == SIM_AFTER)
                sim_later(sim, 0, SE_STEP, s, 0);
        }
    }
}

/* --- the seam --- */

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct sim *sim = ctx;

    if (sim->dying)
        return err_set(err, ERR_CANCELED, "the daemon is dead");
    sim_check_batch(sim, batch);
    watch_transitions(sim, batch->events, batch->events_count, SIM_BEFORE);
    if (sim_point(sim, SIM_KILL_BEFORE))
        return err_set(err, ERR_CANCELED, "the daemon is dead");
    int code = sim_store_commit(sim, batch, err);
    if (code < 0)
        return code;
    sim_check_committed(sim, batch);
    watch_transitions(sim, batch->events, batch->events_count, SIM_AFTER);
    (void)sim_point(sim, SIM_KILL_AFTER); /* what follows sees that it is dying */
    return 0;
}

static void trace(void *ctx, const struct journal_event *event)
{
    struct sim *sim = ctx;
    char line[512];

    sim->result->rows[event->id.kind][event->row / 64] |= (uint64_t)1 << event->row % 64;
    sim_mix(sim, event->digest);
    sim_mix(sim, event->sequence << 16 | event->row);
    if (sim->print == NULL)
        return;
    agent_describe(event, line, sizeof(line));
    sim_say(sim, "%s", line);
}

/* --- the daemon's life --- */

static void start(struct sim *sim)
{
    struct world world = {sim, commit, sim_perform, sim_refuse, sim_known, trace, sim_claim_known};
    struct sim_store *store = &sim->store;
    bool rebooted = store->node.boot != 0 && store->node.boot != sim->boot;

    check(!sim->up);
    sim->incarnation++;
    sim->result->incarnations = sim->incarnation;
    sim->up = true;
    sim->restored = sim->rebooting = false;
    sim->points = 0;
    sim_say(sim, "daemon starts, incarnation %u%s", sim->incarnation,
            rebooted ? ", after a reboot" : "");
    sim_mix(sim, sim->incarnation);

    struct clock_last last = {store->last_now_ms, store->last_unix_ns};
    sim->clock_offset_ms = clock_continue(store->node.clock_offset_ms, rebooted, &last,
                                          sim->now_ms - sim->boot_at_ms, sim_unix_ns(sim));
    sim->core = agent_new(&world);
    if (store->node.boot == 0)
        store->node.boot = sim->boot; /* the first start ever writes the node's identity at once */
    struct sim_node node = {sim->boot, sim->clock_offset_ms};
    if (node.boot != store->node.boot || node.clock_offset_ms != store->node.clock_offset_ms)
        agent_meta(sim->core, "node", &node, sizeof(node));
    sim_store_load(sim);
    agent_continue(sim->core, store->next_sequence, store->turn);
    agent_restore(sim->core, !sim->script->server, rebooted);
    for (int a = 0; a < sim->script->allocs_count; a++) {
        if (!store->specs[a] || agent_find(sim->core, &sim->allocs[a].id) != NULL)
            continue;
        sim->allocs[a].damaged = 1;
        agent_adopt(sim->core, sim->allocs[a].id.text);
    }
    sim_define_plugins(sim);
}

/* The first turn is over: only now is anything ended for belonging to nobody (I-1). */
static void have_restored(struct sim *sim)
{
    sim->restored = true;
    sim->restored_at_ms = sim->now_ms;
    sim_sweep(sim);
    sim_control_start(sim);
}

/* As daemon.c's turn(): until nothing is left to do.  False: wait for the clock. */
static bool turn(struct sim *sim)
{
    uint64_t node_ms = sim_node_ms(sim), deadline_ms = agent_deadline_ms(sim->core);
    bool due = deadline_ms != 0 && deadline_ms <= node_ms;
    struct err err;

    if (sim->retry_at_ms != 0 && sim->now_ms < sim->retry_at_ms)
        return false;
    sim->retry_at_ms = 0;
    if (!agent_has_work(sim->core) && !due) {
        if (!sim->restored)
            have_restored(sim);
        return false;
    }
    if (sim_point(sim, SIM_KILL_POSTED))
        return false;
    sim->in_turn = true;
    int code = agent_turn(sim->core, node_ms, sim_unix_ns(sim),
                          sim_chance(sim, LUCK_SEED, sim->incarnation, sim->turns++), &err);
    sim->in_turn = false;
    if (sim->dying)
        return false;
    if (code < 0) {
        sim_say(sim, "commit failed: %s", err.text);
        sim->retry_at_ms = sim->now_ms + RETRY_COMMIT_MS;
        sim_control_refused(sim);
        return false;
    }
    if (!sim->restored)
        have_restored(sim);
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
            do_step(sim, &sim->script->steps[event->index]);
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
    uint64_t deadline_ms = agent_deadline_ms(sim->core);
    if (agent_has_work(sim->core) || !sim->restored)
        at_ms = sim->now_ms;
    else if (deadline_ms != 0)
        at_ms = sim->now_ms + (deadline_ms > sim_node_ms(sim) ? deadline_ms - sim_node_ms(sim) : 0);
    return sim->retry_at_ms != 0 ? sim->retry_at_ms : at_ms;
}

/* Lets the next thing happen.  False: nothing will happen before UNTIL_MS. */
static bool advance(struct sim *sim, uint64_t until_ms)
{
    uint64_t daemon_ms = daemon_at_ms(sim);
    uint64_t event_ms = sim->heap_count > 0 ? sim->heap[0].at_ms : UINT64_MAX;
    uint64_t next_ms = daemon_ms < event_ms ? daemon_ms : event_ms;

    if (next_ms > until_ms)
        return false;
    if (next_ms > sim->now_ms)
        sim->now_ms = next_ms;
    uint64_t batch = 1;
    if (sim->script->batching)
        batch += sim_below(sim_chance(sim, LUCK_BATCH, 0, sim->deliveries), 4);
    for (uint64_t i = 0; i < batch && sim->heap_count > 0 && !sim->dying && !sim->over &&
                         sim->heap[0].at_ms <= sim->now_ms;
         i++) {
        struct sim_event event = take_first(sim);
        deliver(sim, &event);
        sim->deliveries++;
    }
    run_daemon(sim);
    return true;
}

/* --- a whole world --- */

static void reset(struct sim *sim, const struct sim_script *script)
{
    struct sim_event *heap = sim->heap;
    size_t heap_room = sim->heap_room;
    struct sim_attempt *attempts = sim->attempts;
    struct sim_store store = sim->store;
    struct replay *replay = sim->replay;

    agent_free(sim->core);
    replay_free(replay);
    memset(sim, 0, sizeof(*sim));
    sim->heap = heap;
    sim->heap_room = heap_room;
    sim->attempts = attempts;
    sim->store = store;
    sim->script = script;
    sim->replay = replay_new();
    sim->boot = 1;
    sim->next_pid = 1000;
    sim->server_index = 10;
    sim_store_reset(sim);
    for (unsigned a = 0; a < script->allocs_count; a++) {
        struct sim_whom whom = {.kind = MACHINE_ALLOC, .alloc = (int8_t)a, .member = -1};
        sim->allocs[a].id = sim_whom_id(script, &whom);
        whom.kind = MACHINE_TASK;
        for (whom.member = 0; whom.member < script->allocs[a].tasks_count; whom.member++) {
            struct sim_task_state *task = &sim->allocs[a].tasks[(unsigned)whom.member];
            task->id = sim_whom_id(script, &whom);
            task->newest = -1;
        }
        whom.kind = MACHINE_VOLUME;
        for (whom.member = 0; whom.member < script->allocs[a].claims_count; whom.member++)
            sim->allocs[a].claims[(unsigned)whom.member].id = sim_whom_id(script, &whom);
    }
    for (unsigned p = 0; p < script->plugins_count; p++) {
        struct sim_whom whom = {.kind = MACHINE_PLUGIN, .alloc = -1, .member = (int8_t)p};
        sim->plugins[p].id = sim_whom_id(script, &whom);
        sim->plugins[p].wanted = 1;
    }
    for (unsigned s = 0; s < script->steps_count; s++) {
        if (script->steps[s].moment == SIM_AT)
            sim_later(sim, script->steps[s].at_ms, SE_STEP, s, 0);
    }
}

/* An operator restarts the daemon for a plugin that was given up. */
static void revive_plugins(struct sim *sim)
{
    for (unsigned p = 0; p < sim->script->plugins_count && sim->up; p++) {
        const struct machine *record = agent_find(sim->core, &sim->plugins[p].id);
        if (record != NULL && record->state == P_REJECTED) {
            sim_say(sim, "operator restarts the daemon for %s", sim->plugins[p].id.text);
            sim_die(sim, 50);
        }
    }
    run_daemon(sim);
}

static void wish_all_gone(struct sim *sim)
{
    sim_say(sim, "all is to be gone");
    sim->draining = true;
    for (int a = 0; a < sim->script->allocs_count; a++) {
        if (sim->allocs[a].wish != WISH_NONE)
            sim_wish(sim, a, WISH_GONE);
    }
}

static bool is_over_budget(struct sim *sim, uint64_t begun_ms)
{
    return sim->now_ms > begun_ms + HEALED_BUDGET_MS || sim->deliveries > DELIVERIES_MAX;
}

/* Runs until CONDITION has held for a while, or never will. */
static void run_until(struct sim *sim, bool (*condition)(struct sim *sim))
{
    uint64_t begun_ms = sim->now_ms, since_ms = 0;
    bool holds = false;

    while (!sim->over && !is_over_budget(sim, begun_ms)) {
        revive_plugins(sim);
        bool now = condition(sim);
        if (now && !holds)
            since_ms = sim->now_ms;
        holds = now;
        if (!advance(sim, holds ? since_ms + QUIET_MS : UINT64_MAX - 1))
            return;
    }
}

static void remove_plugins(struct sim *sim)
{
    for (unsigned p = 0; p < sim->script->plugins_count; p++)
        sim->plugins[p].removed = 1;
    sim_define_plugins(sim);
}

static bool allocs_are_gone(struct sim *sim)
{
    return sim->up && agent_count(sim->core, MACHINE_ALLOC) == 0 &&
           agent_count(sim->core, MACHINE_VOLUME) == 0;
}

static void live(struct sim *sim)
{
    start(sim);
    run_daemon(sim);
    while (!sim->over && sim->now_ms < sim->script->heal_ms && advance(sim, sim->script->heal_ms)) {
        if (sim->deliveries > DELIVERIES_MAX)
            sim_violate(sim, 35, "the world does not come to rest");
    }
    if (sim->now_ms < sim->script->heal_ms)
        sim->now_ms = sim->script->heal_ms;
    heal(sim);
    run_until(sim, sim_is_settled);
    if (!sim->over)
        sim_check_settled(sim);
    if (sim->over)
        return;
    wish_all_gone(sim);
    run_until(sim, allocs_are_gone);
    remove_plugins(sim);
    run_until(sim, sim_is_empty);
    if (!sim->over)
        sim_check_empty(sim);
}

static struct sim *asserting; /* for the assertion hook, which has no context */

static void on_check_failed(const char *file, int line, const char *text)
{
    struct sim *sim = asserting;

    if (sim == NULL)
        return;
    sim->result->outcome = SIM_ASSERTION;
    (void)text_format(sim->result->text, sizeof(sim->result->text), "assertion %s:%d: %s", file,
                      line, text); /* cut if too long */
    longjmp(sim->failed, 1);
}

struct sim *sim_new(void)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    check(sim != NULL);
    sim->attempts = calloc(SIM_ATTEMPTS_MAX, sizeof(*sim->attempts));
    check(sim->attempts != NULL);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL)
        return;
    agent_free(sim->core);
    replay_free(sim->replay);
    sim_store_free(&sim->store);
    free(sim->attempts);
    free(sim->heap);
    free(sim);
}

void sim_run(struct sim *sim, const struct sim_script *script, fsm_print *print, void *ctx,
             struct sim_result *ret_result)
{
    *ret_result = (struct sim_result){.outcome = SIM_FINE};
    reset(sim, script);
    sim->print = print;
    sim->print_ctx = ctx;
    sim->result = ret_result;
    asserting = sim;
    check_on_failure(on_check_failed);
    if (setjmp(sim->failed) == 0)
        live(sim);
    check_on_failure(NULL);
    asserting = NULL;
    if (ret_result->outcome == SIM_ASSERTION) {
        sim_say(sim, "%s", ret_result->text);
        sim->core = NULL; /* in an unknown state: left alone, the process is about to end */
    }
    if (sim->core != NULL) {
        struct agent_figures figures = agent_figures(sim->core);
        ret_result->effects = figures.effects;
        if (sim->incarnation - 1 < SIM_CUTS_MAX)
            ret_result->points[sim->incarnation - 1] = sim->points;
    }
    ret_result->events = sim->store.next_sequence - 1;
    ret_result->turns = sim->store.turn;
    ret_result->simulated_ms = sim->now_ms;
}
