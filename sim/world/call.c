/*
 * Calls under way: where they are kept, and how each gets on, fails and ends.
 *
 * A call belongs to the incarnation that made it.  When that has its answer, or is gone, the call
 * stays for as long as its work in the world is still to come.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

enum { DRIVER_BOUND_MS = 30000 }; /* as drivers/run.c bounds a start */

bool sim_is_node_call(const struct sim_call *call)
{
    bool ours =
        call->effect == VX_LOOK || call->effect == VX_UNMOUNT || call->effect == VX_UNMOUNT_STAGING;

    return call->whom.kind == MACHINE_VOLUME && call->lane == LANE_NODE && !ours;
}

struct sim_call *sim_call_new(struct sim *sim, const struct effect *effect,
                              const struct sim_whom *whom)
{
    size_t at = sim->calls.free;

    while (at < sim->calls.count && sim->calls.items[at].used)
        at++;
    check(at < sim->calls.max);
    sim->calls.free = at + 1;
    if (at == sim->calls.count)
        sim->calls.count++;
    sim->calls.items[at] = (struct sim_call){
        .used = 1,
        .whom = *whom,
        .serial = ++sim->calls.made,
        .incarnation = sim->incarnation,
        .generation = effect->generation,
        .limit_ms = sim->now_ms + (effect->timeout_ms != 0 ? effect->timeout_ms : DRIVER_BOUND_MS),
        .lane = effect->lane,
        .effect = effect->kind,
        .text = "",
    };
    sim->calls.awaited++;
    return &sim->calls.items[at];
}

void sim_call_free(struct sim *sim, struct sim_call *call)
{
    size_t at = (size_t)(call - sim->calls.items);

    check(call->used && call->answered);
    call->used = 0;
    if (at < sim->calls.free)
        sim->calls.free = at;
}

void sim_call_end(struct sim *sim, struct sim_call *call)
{
    call->answered = 1;
    sim->calls.awaited--;
    if (sim_is_node_call(call))
        sim_disk_of(sim, &call->whom)->calls--;
}

void sim_call_again(struct sim *sim, struct sim_call *call, uint64_t delay_ms, unsigned stage)
{
    call->stage = (uint8_t)stage;
    sim_later(sim, delay_ms, SE_CALL, (size_t)(call - sim->calls.items), call->serial);
}

void sim_call_free_if_over(struct sim *sim, struct sim_call *call)
{
    if (call->answered && !call->apply_left)
        sim_call_free(sim, call);
}

void sim_call_done(struct sim *sim, struct sim_call *call, uint8_t event, const void *payload)
{
    const struct machine_id *id = sim_id(sim, &call->whom);
    enum fsm_lane lane = (enum fsm_lane)call->lane;
    const struct fsm_def *def = fsm_definition((enum machine_kind)call->whom.kind);
    struct sim_call ended = *call;
    bool hook = def->events[event].payload == PAYLOAD_HOOK;
    bool failed = hook ? call->code != 0 : def->events[event].payload == PAYLOAD_FAILURE;

    check(call->used);
    check(!call->answered);
    check(call->incarnation == sim->incarnation);
    sim_call_end(sim, call);
    sim_call_free_if_over(sim, call);
    sim_mix(sim, event);
    if (failed)
        sim_check_failed(sim, &ended);
    core_done(sim->core, id, lane, event, payload);
}

void sim_call_fail(struct sim_call *call, int code, bool hard, const char *text)
{
    call->code = code;
    call->hard = hard;
    call->text = text;
}

void sim_call_refuse(struct sim_call *call, enum csi_verdict verdict, const char *text)
{
    sim_call_fail(call, ERR_REFUSED, verdict == CSI_REFUSED, text);
    call->verdict = (uint8_t)verdict;
}

void sim_calls_break(struct sim *sim, int server)
{
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *call = &sim->calls.items[i];
        if (!call->used || !sim_is_node_call(call) || call->server != server)
            continue;
        bool done = call->stage == STAGE_ANSWER && !call->apply_left && call->code == 0;
        call->apply_left = 0;
        if (call->answered) {
            sim_call_free(sim, call);
        } else if (!done) {
            sim_call_fail(call, ERR_GONE, false, "the plugin went in mid-call");
            call->serial = ++sim->calls.made; /* the moment that was set for it is none */
            sim_call_again(sim, call, 1, STAGE_ANSWER);
        }
    }
}
