/*
 * Effects in the simulated world: each becomes a call that takes time and may meet a fault.
 *
 * A simple call (hooks, server, plugins) does its work half-way and is answered at its end; the
 * daemon may die in between.  What a fault means is the same for all of them and decided here; what
 * the work is, is in node.c, and what starting and ending processes takes in process.c.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include "sim/script/words.h"

enum {
    LATE_MS_MAX = 20000,
    SLOW_MS_MAX = 9000,
};

_Static_assert((int)TX_COUNT <= SIM_EFFECTS_MAX, "effects are counted");
_Static_assert((int)AX_COUNT <= SIM_EFFECTS_MAX, "effects are counted");
_Static_assert((int)VX_COUNT <= SIM_EFFECTS_MAX, "effects are counted");
_Static_assert((int)PX_COUNT <= SIM_EFFECTS_MAX, "effects are counted");

static uint16_t *calls_of(struct sim *sim, const struct sim_whom *whom)
{
    switch ((enum machine_kind)whom->kind) {
    case MACHINE_TASK:
        return sim_task_of(sim, whom)->calls;
    case MACHINE_ALLOC:
        return sim_alloc_of(sim, whom)->calls;
    case MACHINE_VOLUME:
        return sim_claim_of(sim, whom)->calls;
    case MACHINE_PLUGIN:
        return sim_plugin_of(sim, whom)->calls;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

/* What a draw is for: this call, whatever else there is in the world. */
static uint64_t which(const struct sim_call *call)
{
    uint64_t high = call->whom.alloc < 0 ? 0 : (uint64_t)call->whom.alloc >> 8;

    return high << 32 | (uint64_t)call->whom.kind << 24 |
           (uint64_t)(uint8_t)call->whom.alloc << 16 | (uint64_t)(uint8_t)call->whom.member << 8 |
           call->effect;
}

static enum sim_fault drawn_fate(const struct sim *sim, const struct sim_call *call, uint16_t nth)
{
    uint64_t luck = sim_below(sim_chance(sim, LUCK_FATE, which(call), nth), 1024);

    for (unsigned fault = 1; fault < SIM_FAULT_COUNT; fault++) {
        uint16_t rate = sim->script->rates[fault];
        if (rate == 0 || !sim_can_meet(call->whom.kind, call->effect, fault))
            continue;
        if (luck < rate)
            return (enum sim_fault)fault;
        luck -= rate;
    }
    return SIM_FAULT_NONE;
}

static void draw(struct sim *sim, struct sim_call *call)
{
    struct sim_whom role = sim_role(sim, &call->whom);
    uint16_t nth = ++calls_of(sim, &role)[call->effect];
    uint64_t luck = sim_chance(sim, LUCK_LATENCY, which(call), nth);

    call->latency_ms = 1;
    if (sim->script->latency)
        call->latency_ms = (uint32_t)sim_below(luck, (luck & 7) == 0 ? 80 : 6);
    if (sim->healed)
        return;
    call->fault = (uint8_t)drawn_fate(sim, call, nth);
    uint32_t slow_ms = 100 + (uint32_t)sim_below(luck << 8, SLOW_MS_MAX);
    for (unsigned i = 0; i < sim->script->fates_count; i++) {
        const struct sim_fate *fate = &sim->script->fates[i];
        if (fate->whom.kind != role.kind || fate->whom.alloc != role.alloc ||
            fate->whom.member != role.member || fate->effect != call->effect ||
            (fate->nth != 0 && fate->nth != nth))
            continue;
        sim->told.struck[i] = true;
        call->fault = fate->fault;
        slow_ms = fate->ms != 0 ? fate->ms : slow_ms;
    }
    if (call->fault != SIM_FAULT_NONE) {
        struct sim_fate met = {role, call->effect, call->fault, nth, slow_ms};
        sim_note_fate(sim, &met);
        sim_count_fault(sim, (enum sim_fault)call->fault);
    }
    if (call->fault == SIM_SLOW)
        call->latency_ms = slow_ms;
}

/* --- the life of a call --- */

/* What a fault does to a simple call. */
static const struct meaning {
    int code; /* it is answered with, 0: as its work came out */
    bool hard;
    bool idle;       /* its work is not done */
    bool timeout;    /* it is answered when its bound is reached */
    uint8_t verdict; /* of a plugin's call: enum csi_verdict */
    const char *text;
} meanings[SIM_FAULT_COUNT] = {
    [SIM_ERR] = {.code = ERR_IO, .idle = true, .text = "it failed"},
    [SIM_ERR_HARD] = {.code = ERR_INVALID,
                      .hard = true,
                      .idle = true,
                      .text = "it failed for good"},
    [SIM_SRV_DENIED] = {.code = ERR_REFUSED, .hard = true, .idle = true, .text = "it was denied"},
    [SIM_LIE] = {.idle = true, .text = ""},
    [SIM_CLASH] = {.code = ERR_EXISTS,
                   .idle = true,
                   .verdict = CSI_UNDO_FIRST,
                   .text = "it is there with other arguments"},
    [SIM_FORGOT] = {.code = ERR_REFUSED,
                    .idle = true,
                    .verdict = CSI_STAGE_FIRST,
                    .text = "it is not staged"},
    [SIM_DOUBT] = {.code = ERR_IO, .idle = true, .verdict = CSI_DOUBT, .text = "internal error"},
    [SIM_HANG] = {.code = ERR_TIMEOUT, .idle = true, .timeout = true, .text = "it timed out"},
    [SIM_LATE] = {.code = ERR_TIMEOUT, .timeout = true, .text = "it timed out"},
};

static void refuse_unserved(struct sim *sim, struct sim_call *call)
{
    sim_call_fail(call, ERR_AGAIN, false, "the plugin does not answer");
    sim_call_again(sim, call, call->latency_ms, STAGE_ANSWER);
}

/* A simple call: when its work is done, when it is answered, and with what. */
static void plan(struct sim *sim, struct sim_call *call)
{
    struct meaning meaning = meanings[call->fault];
    uint64_t bound_ms = call->limit_ms - sim->now_ms;

    if (sim_is_node_call(call) && sim_plugin_is_task(&sim->plugins[call->server]) &&
        !sim_plugin_lives(sim, &sim->plugins[call->server])) {
        refuse_unserved(sim, call);
        return;
    }
    if (!meaning.idle && call->latency_ms >= bound_ms)
        meaning = meanings[SIM_LATE];
    if (meaning.code != 0)
        sim_call_fail(call, meaning.code, meaning.hard, meaning.text);
    if (sim_is_node_call(call))
        call->verdict = meaning.verdict;
    call->apply_left = !meaning.idle;
    if (meaning.timeout)
        sim_call_again(sim, call, bound_ms, STAGE_ANSWER);
    else if (call->apply_left)
        sim_call_again(sim, call, call->latency_ms / 2, STAGE_APPLY);
    else
        sim_call_again(sim, call, call->latency_ms, STAGE_ANSWER);
}

static void find_owners(struct sim *sim, const struct alloc *alloc, struct sim_call *call)
{
    const char *owners[DISK_OWNERS_MAX + 1];

    core_disk_owners(sim->core, alloc, owners);
    for (size_t i = 0; i < COUNT_OF(call->owners); i++)
        call->owners[i] = -1;
    for (size_t i = 0; i < COUNT_OF(call->owners) && owners[i] != NULL; i++) {
        struct machine_id id = machine_id_make(MACHINE_ALLOC, owners[i]);
        call->owners[i] = sim_find(sim, &id).alloc;
    }
}

static void begin(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    struct sim_call *call = sim_call_new(sim, effect, whom);

    if (effect->lane == LANE_HOOK) {
        bool task = whom->kind == MACHINE_TASK;
        call->phase = task ? task_of(effect->record)->phase : alloc_of(effect->record)->phase;
        call->hook = task ? task_of(effect->record)->hook : alloc_of(effect->record)->hook;
        if (!task)
            find_owners(sim, alloc_of(effect->record), call);
    }
    sim_check_call(sim, call);
    draw(sim, call);
    if (call->fault != SIM_FAULT_NONE)
        sim_say(sim, "fate of the %s of %s: %s",
                fsm_definition(whom->kind)->effects[call->effect].name, sim_id(sim, whom)->text,
                sim_fault_name(call->fault));
    if (sim_is_driver_call(call)) {
        sim_driver_begin(sim, call, effect);
        return;
    }
    if (sim_is_node_call(call)) {
        sim_disk_of(sim, whom)->calls++;
        call->server = (int16_t)sim_plugin_called(sim, sim_claim_of(sim, whom)->plugin);
    }
    sim_meet(sim, call);
    plan(sim, call);
}

/* Nobody waits any more for the hook of WHOM: what a daemon can end of it ends now, and
 * not what hangs.  What it had not done is not done. */
static void abort_hook(struct sim *sim, const struct sim_whom *whom)
{
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *call = &sim->calls.items[i];
        bool is_it = call->used && !call->answered && call->lane == LANE_HOOK &&
                     call->incarnation == sim->incarnation && sim_is_same(&call->whom, whom);

        if (!is_it || call->fault == SIM_HANG)
            continue;
        if (call->apply_left) {
            call->apply_left = 0;
            sim_call_fail(call, ERR_AGAIN, false, "it was called off");
        }
        call->serial = ++sim->calls.made; /* the moment that was set for it is none */
        sim_call_again(sim, call, 1, STAGE_ANSWER);
    }
}

void sim_perform(void *ctx, const struct effect *effect)
{
    struct sim *sim = ctx;
    struct sim_whom whom = sim_find(sim, &effect->id);

    if (sim_point(sim, SIM_KILL_EFFECT))
        return;
    check(whom.kind != MACHINE_KIND_COUNT);
    sim_fact(sim, SIM_FACT_PERFORMS, &whom, effect->kind);
    sim_check_effect(sim, effect, &whom);
    sim_mix(sim, (uint64_t)effect->lane << 8 | effect->kind);
    if (whom.kind == MACHINE_ALLOC && effect->kind == AX_TELL_STATUS)
        sim_status_changed(sim);
    if (life_perform(sim->life, effect))
        return;
    if (whom.kind == MACHINE_TASK && effect->kind == TX_DRIVER_SIGNAL)
        sim_driver_signal(sim, effect);
    else if (whom.kind == MACHINE_TASK
                 ? effect->kind == TX_HOOK_ABORT
                 : whom.kind == MACHINE_ALLOC && effect->kind == AX_HOOK_ABORT)
        abort_hook(sim, &whom);
    else if (effect->lane < LANE_COUNT)
        begin(sim, effect, &whom);
}

static void apply(struct sim *sim, struct sim_call *call)
{
    call->apply_left = 0;
    if (call->answered) { /* late: what it would have said is of no interest */
        sim_apply(sim, call);
        sim_call_free_if_over(sim, call);
        return;
    }
    sim_apply(sim, call);
    if (call->fault == SIM_DONE_ERR && call->code == 0)
        sim_call_fail(call, ERR_IO, false, "it was done, and failed");
    if (call->fault == SIM_SRV_DROP) {
        sim_call_fail(call, ERR_TIMEOUT, false, "the reply was lost");
        sim_call_again(sim, call, call->limit_ms > sim->now_ms ? call->limit_ms - sim->now_ms : 0,
                       STAGE_ANSWER);
        return;
    }
    sim_call_again(sim, call, call->latency_ms - call->latency_ms / 2, STAGE_ANSWER);
}

void sim_call_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_call *call = &sim->calls.items[event->index];

    if (!call->used || call->serial != event->stamp)
        return;
    if (sim_is_driver_call(call)) {
        sim_driver_event(sim, call);
        return;
    }
    if (call->stage == STAGE_APPLY) {
        apply(sim, call);
        return;
    }
    check(!call->answered);
    if (sim_point(sim, SIM_KILL_DONE))
        return;
    if (call->apply_left) /* late: it is answered, and done some time after that */
        sim_call_again(
            sim, call,
            1 + sim_below(sim_chance(sim, LUCK_SPLIT, which(call), call->serial), LATE_MS_MAX),
            STAGE_APPLY);
    sim_answer(sim, call);
}

/* True if work under way when its caller died happens all the same. */
static bool happens(const struct sim *sim, const struct sim_call *call)
{
    sim->result->decided++;
    if (sim->script->fate_of_cut != 0)
        return sim->script->fate_of_cut == 1;
    return (sim_chance(sim, LUCK_CUT, which(call), call->serial) & 1) != 0;
}

void sim_calls_cut(struct sim *sim)
{
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *call = &sim->calls.items[i];
        if (!call->used || call->answered)
            continue;
        sim_call_end(sim, call);
        bool left =
            call->apply_left && !sim_is_driver_call(call) && !sim->rebooting && happens(sim, call);
        if (left && (call->lane == LANE_HOOK || call->lane == LANE_DRIVER)) {
            sim_apply(sim, call); /* our own thread was just done with it */
            left = false;
        } else if (left && call->stage == STAGE_ANSWER) {
            sim_call_again(
                sim, call,
                1 + sim_below(sim_chance(sim, LUCK_SPLIT, which(call), call->serial), LATE_MS_MAX),
                STAGE_APPLY);
        }
        call->apply_left = left;
        sim_call_free_if_over(sim, call);
    }
}
