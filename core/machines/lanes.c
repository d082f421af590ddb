/*
 * Lanes: effects of one machine on one lane run one at a time, in the order of issue.
 *
 * A newer effect supersedes an older one's completion but waits until the older call has really
 * ended; issuing work that is under way already only renews its ticket.  What is under way is known
 * only here, in memory: it ends with the process, and RESTORE rows issue again what is needed.
 *
 * What starts something waits on its lane in the same way until the first sweep after a restart has
 * answered: the journal may be an older copy, and something of the same key, which it has never
 * heard of, may still run.
 */
#include "core/machines/part.h"

#include <string.h>

static struct effect describe_effect(const struct slot *slot, uint8_t kind, uint8_t lane)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)slot->id.kind);

    return (struct effect){
        .id = slot->id,
        .kind = kind,
        .lane = lane,
        .generation = slot->record->generation,
        .timeout_ms = def->effects[kind].timeout_ms,
        .record = slot->record,
    };
}

static bool is_wanted(const struct slot *slot, uint8_t lane, uint8_t effect, uint32_t ticket)
{
    return slot->record->lane_effect[lane] == effect && slot->record->lane_ticket[lane] == ticket;
}

static void hook_of(const struct machine *record, uint8_t *ret_phase, uint8_t *ret_hook)
{
    *ret_phase = *ret_hook = 0;
    if (record->kind == MACHINE_TASK) {
        *ret_phase = task_of(record)->phase;
        *ret_hook = task_of(record)->hook;
    } else if (record->kind == MACHINE_ALLOC) {
        *ret_phase = alloc_of(record)->phase;
        *ret_hook = alloc_of(record)->hook;
    }
}

static bool is_same_work(const struct lane *lane, const struct machine *record, uint8_t number,
                         uint8_t effect)
{
    uint8_t phase, hook;

    if (lane->orphaned || lane->effect != effect || lane->generation != record->generation)
        return false;
    if (number != LANE_HOOK)
        return true;
    hook_of(record, &phase, &hook);
    return lane->phase == phase && lane->hook == hook;
}

static bool waits_for_sweep(const struct core *core, const struct slot *slot, uint8_t effect)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)slot->id.kind);

    return core->unswept && (def->after_sweep >> effect & 1u) != 0;
}

static void let_wait(struct lane *lane, uint8_t kind, uint32_t ticket)
{
    lane->next_effect = kind;
    lane->next_ticket = ticket;
}

/* Nothing is under way on the lane. */
static void begin(struct core *core, struct slot *slot, uint8_t number, uint8_t kind,
                  uint32_t ticket)
{
    struct lane *lane = &slot->lanes[number];
    struct effect effect = describe_effect(slot, kind, number);

    check(number < LANE_COUNT);
    check(kind != 0);
    check(lane->effect == 0);
    check(is_wanted(slot, number, kind, ticket));
    if (waits_for_sweep(core, slot, kind)) {
        let_wait(lane, kind, ticket);
        return;
    }
    lane->next_effect = 0; /* superseded while it waited */
    lane->effect = kind;
    lane->ticket = ticket;
    lane->generation = slot->record->generation;
    hook_of(slot->record, &lane->phase, &lane->hook);
    core->figures.effects++;
    core->world.perform(core->world.ctx, &effect);
}

void lane_issue(struct core *core, struct slot *slot, const struct fsm_issue *issue, uint64_t reply,
                const struct request *request)
{
    check(slot->record != NULL);
    check(issue->effect != 0);
    if (issue->lane >= LANE_COUNT) {
        struct effect effect = describe_effect(slot, issue->effect, issue->lane);
        effect.reply = reply;
        effect.request = request;
        core->figures.effects++;
        core->world.perform(core->world.ctx, &effect);
        return;
    }
    if (!is_wanted(slot, issue->lane, issue->effect, issue->ticket))
        return; /* a later event of the same turn has superseded it */

    struct lane *lane = &slot->lanes[issue->lane];
    if (lane->effect == 0) {
        begin(core, slot, issue->lane, issue->effect, issue->ticket);
    } else if (is_same_work(lane, slot->record, issue->lane, issue->effect)) {
        lane->ticket = issue->ticket;
        lane->next_effect = 0;
    } else {
        let_wait(lane, issue->effect, issue->ticket);
    }
}

/* Begins what waits on the lane, which is free. */
static void begin_next(struct core *core, struct slot *slot, uint8_t number)
{
    struct lane *lane = &slot->lanes[number];
    uint8_t next = lane->next_effect;

    lane->next_effect = 0;
    if (next != 0 && is_wanted(slot, number, next, lane->next_ticket))
        begin(core, slot, number, next, lane->next_ticket);
}

void lanes_open(struct core *core)
{
    for (struct slot *slot = core->machines; slot != NULL; slot = slot->hh.next) {
        for (uint8_t number = 0; number < LANE_COUNT && slot->record != NULL; number++) {
            if (slot->lanes[number].effect == 0)
                begin_next(core, slot, number);
        }
    }
}

void core_done(struct core *core, const struct machine_id *id, enum fsm_lane number, uint8_t event,
               const void *payload)
{
    struct slot *slot = slot_find(core, id);

    check(number < LANE_COUNT);
    if (slot == NULL || slot->lanes[number].effect == 0)
        return; /* the machine has gone while the call was under way */

    struct lane *lane = &slot->lanes[number];
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);
    check((def->effects[lane->effect].completions >> event & 1u) != 0);
    struct fsm_event done = {
        .kind = event,
        .lane = (uint8_t)number,
        .ticket = lane->ticket,
        .payload = payload,
    };
    if (!lane->orphaned)
        core_post(core, id, &done);
    lane->effect = 0;
    lane->orphaned = false;
    if (slot->record != NULL)
        begin_next(core, slot, (uint8_t)number);
    else if (slot->pending == NULL)
        slot_retire(core, slot);
}
