/*
 * The turn: events in, one commit, effects out.
 *
 * Only this file and replay.c call fsm_step.  Records are stepped in a scratch buffer and kept as
 * pending copies beside the committed ones until the commit has succeeded, so that a failed commit
 * leaves no trace.  An effect that a later event of the same turn has superseded on its lane is
 * never begun.
 */
#include "core/attempt.h"
#include "core/core.h"
#include "core/machines/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- messages between machines --- */

struct sender {
    struct core *core;
    const struct machine *record;
    struct fsm_event next; /* for TO_VOLUME_NEXT, sent when the sender's step is kept */
    bool relays;
};

static void send_to_group(struct core *core, const struct group_member *member,
                          const struct fsm_message *message)
{
    for (; member != NULL; member = member->next) {
        bool itself = machine_id_equal(&member->slot->id, &message->to);
        if (slot_now(member->slot) != NULL && !itself)
            queue_add(core, &member->slot->id, &message->event, false);
    }
}

static void send_message(void *ctx, const struct fsm_message *message)
{
    struct sender *sender = ctx;
    struct core *core = sender->core;

    switch ((enum fsm_audience)message->audience) {
    case TO_MACHINE:
        queue_add(core, &message->to, &message->event, false);
        return;
    case TO_VOLUME_NEXT:
        sender->next = message->event;
        sender->relays = true;
        return;
    case TO_VOLUME_HEIRS:
        send_to_group(core, index_volume_heirs(core, volume_of(sender->record)), message);
        return;
    case TO_PLUGIN_WAITING:
        send_to_group(core, index_plugin_waiting(core, plugin_of(sender->record)->define.plugin),
                      message);
        return;
    }
    unreachable("audience");
}

/* What VOLUME must know of its plugin: several instances may serve it, and the newest that is ready
 * is the one that is called.  Which one that was is not known of a call, so that all must have
 * ended since, and be tasks, whose ends are seen. */
static uint32_t peers_of_plugin(const struct core *core, const struct volume *volume)
{
    const struct group_member *member = index_plugin(core, volume->define.plugin);
    uint32_t peers = PEERS_PLUGIN_GONE;
    bool over = true;

    for (; member != NULL; member = member->next) {
        const struct machine *instance = slot_now(member->slot);
        if (instance == NULL || fsm_is_final(instance) ||
            plugin_of(instance)->define.type == PLUGIN_CSI_CONTROLLER)
            continue;
        over = over && plugin_of(instance)->define.supervised &&
               plugin_of(instance)->ended_ms > volume->called_ms;
        peers &= ~(uint32_t)PEERS_PLUGIN_GONE;
        if (instance->state != P_READY)
            continue;
        peers = PEERS_PLUGIN_READY;
        if (plugin_of(instance)->identity.staging)
            peers |= PEERS_PLUGIN_STAGES;
    }
    return over && (peers & PEERS_PLUGIN_GONE) == 0 ? peers | PEERS_CALLS_OVER : peers;
}

/* What a step of the volume in SLOT must know of other machines; 0 for other kinds. */
static uint32_t peers_of(const struct core *core, const struct slot *slot,
                         const struct machine *record)
{
    if (record->kind != MACHINE_VOLUME)
        return 0;
    const struct volume *volume = volume_of(record);
    return index_peers(core, slot, volume) | peers_of_plugin(core, volume);
}

/* Tells EVENT to the first of those that wait for the volume of the claim in SLOT whom it leads on.
 * What is told to all would cost each of them an event whenever one of them has had its turn. */
static void relay(struct core *core, const struct slot *slot, const struct fsm_event *event,
                  const struct fsm_now *now)
{
    const struct fsm_def *def = fsm_definition(MACHINE_VOLUME);
    const struct volume *volume = volume_of(slot_now(slot));
    const struct group_member *member = index_volume_waiting(core, volume);

    for (; member != NULL; member = member->next) {
        const struct machine *record = slot_now(member->slot);
        struct fsm_now then = *now;
        if (member->slot == slot || member->slot->forsaken)
            continue;
        then.peers = peers_of(core, member->slot, record);
        if (!fsm_leads_on(def, record, event, &then))
            continue;
        queue_add(core, &member->slot->id, event, false);
        core->queue.items[core->queue.count - 1].relayed = true;
        return;
    }
}

/* --- stepping one event --- */

static void load_scratch(struct core *core, const struct fsm_def *def, const struct machine *record)
{
    if (record == NULL) {
        memset(core->scratch, 0, core->scratch_used);
        fsm_absent(def, core->scratch);
        core->scratch_used = def->record_bytes;
        return;
    }
    uint32_t size = fsm_record_size(record);
    memcpy(core->scratch, record, size);
    if (core->scratch_used > size)
        memset((char *)core->scratch + size, 0, core->scratch_used - size);
    core->scratch_used = size;
}

static void keep_scratch(struct core *core, struct slot *slot)
{
    uint32_t size = fsm_record_size(core->scratch);

    check(size <= FSM_RECORD_BYTES_MAX);
    check(core->scratch->kind == slot->id.kind);
    if (size > core->scratch_used)
        core->scratch_used = size;
    slot->pending = realloc(slot->pending, size);
    check(slot->pending != NULL);
    memcpy(slot->pending, core->scratch, size);
    index_note(core, slot);
    if (!slot->touched) {
        slot->touched = true;
        *list_more(&core->touched) = slot;
    }
}

/* Nobody missed the record of a dead task, until its alloc wants the task again. */
static void miss_task(struct core *core, const struct machine_id *id)
{
    struct machine_id owner = machine_id_owner(id);
    struct member_news news = {.text = "its record in the journal was damaged"};
    struct fsm_event lost = {.kind = AE_MEMBER_LOST, .payload = &news};

    (void)text_copy(news.name, sizeof(news.name), machine_id_name(id)); /* fits: a member's name */
    queue_add(core, &owner, &lost, false);
}

/* Nobody is there: harmless, except that a caller must not wait for ever, nor an alloc. */
static void post_to_nobody(struct core *core, struct queued *item)
{
    struct err err;

    core->figures.unknown++;
    if (item->id.kind == MACHINE_TASK && item->event.kind == TE_REVIVE) {
        struct machine_id id = item->id; /* the queue may move */
        miss_task(core, &id);
        return;
    }
    if (item->event.reply == 0)
        return;
    (void)err_set(&err, ERR_GONE, "no %s %s on this node",
                  machine_kind_name((enum machine_kind)item->id.kind), item->id.text);
    core->world.refuse(core->world.ctx, item->event.reply, &err);
    item->event.reply = 0; /* it has its answer, also if this turn's commit fails */
    item->root = false;
}

/* What one call of fsm_step needs and gives. */
struct stepping {
    const struct fsm_def *def;
    const struct queued *item;
    struct sender sender;
    const struct fsm_now *now;
    enum fsm_verdict verdict;
    struct fsm_step done;
};

static void step_once(void *ctx)
{
    struct stepping *stepping = ctx;

    stepping->verdict = fsm_step(stepping->def, &stepping->item->id, stepping->sender.core->scratch,
                                 &stepping->item->event, stepping->now, send_message,
                                 &stepping->sender, &stepping->done);
}

/* The machine in SLOT contradicts itself: what it was up to now is kept, nothing of this event. */
static void forsake(struct core *core, struct slot *slot, struct queued *item, const char *why)
{
    struct aside *aside = list_more(&core->aside);
    struct err err;

    aside->id = slot->id;
    (void)text_copy(aside->why, sizeof(aside->why), why); /* same size */
    slot->forsaken = true;
    core->scratch_used = FSM_RECORD_BYTES_MAX; /* nobody knows how far the step came */
    if (item->event.reply == 0)
        return;
    (void)err_set(&err, ERR_CORRUPT, "the record of %s contradicts itself and is put aside",
                  slot->id.text);
    core->world.refuse(core->world.ctx, item->event.reply, &err);
    item->event.reply = 0;
    item->root = false;
}

/* False: the machine has been forsaken. */
static bool attempt_step(struct core *core, struct slot *slot, size_t number,
                         struct stepping *stepping)
{
    size_t count = core->queue.count, bytes = core->queue.bytes_used;
    char broken[ERR_TEXT_SIZE];

    if (slot == NULL || !slot->read || core->world.put_aside == NULL) {
        step_once(stepping);
        return true;
    }
    bool whole = core_attempt(step_once, stepping, broken);
    if (whole && stepping->verdict != FSM_NEVER)
        return true;
    if (whole)
        (void)text_format(broken, sizeof(broken), "%s never comes in state %s",
                          fsm_event_name(stepping->def, stepping->item->event.kind),
                          fsm_state_name(stepping->def, slot_now(slot)->state)); /* fits */
    core->queue.count = count; /* what it sent is not sent */
    core->queue.bytes_used = bytes;
    forsake(core, slot, &core->queue.items[number], broken);
    return false;
}

/* True of what is made in place of a lost record, from others that were read. */
static bool replaces_lost(const struct queued *item)
{
    if (item->id.kind == MACHINE_VOLUME)
        return item->event.kind == VE_ADOPT;
    return item->id.kind == MACHINE_ALLOC && item->event.kind == AE_ASSIGN &&
           ((const struct alloc_assign *)item->event.payload)->condemned;
}

/* The machine has moved: its record waits for the commit, its event is written down. */
static void keep_step(struct core *core, struct slot *slot, size_t number,
                      const struct stepping *stepping)
{
    const struct fsm_def *def = stepping->def;
    const struct fsm_step *done = &stepping->done;

    check(done->row >= def->rows);
    check(done->row < def->rows + def->rows_count);
    check(done->after == core->scratch->state);
    if (slot == NULL)
        slot = slot_add(core, &stepping->item->id);
    slot->read |= replaces_lost(stepping->item);
    bool first = slot_now(slot) == NULL;
    keep_scratch(core, slot);
    if (first)
        index_join(core, slot);
    struct journal_event *event = list_more(&core->steps);
    *event = (struct journal_event){
        .sequence = core->figures.sequence + core->steps.count,
        .turn = core->figures.turns + 1,
        .seed = stepping->now->seed,
        .now_ms = stepping->now->ms,
        .unix_ns = stepping->now->unix_ns,
        .peers = stepping->now->peers,
        .id = stepping->item->id,
        .event = stepping->item->event,
        .row = (uint16_t)(done->row - def->rows),
        .guard = fsm_guard_mark(def, done->row->guard),
        .before = done->before,
        .after = done->after,
        .issues_count = done->issues_count,
        .digest = fsm_digest(core->scratch),
    };
    memcpy(event->issues, done->issues, sizeof(event->issues));
    /* Payloads live in the queue, which may still move; they are pointed to before the commit. */
    event->event.payload = NULL;
    *list_more(&core->origins) = number;
}

/* True if the machine has moved; RET_SENDER holds what it has to say to whom can go on now. */
static bool step_machine(struct core *core, size_t number, struct fsm_now *now, struct rng *rng,
                         struct sender *ret_sender)
{
    struct queued item = core->queue.items[number]; /* the queue may move while we step */
    const struct fsm_def *def = fsm_definition((enum machine_kind)item.id.kind);
    struct slot *slot = slot_find(core, &item.id);
    const struct machine *record = slot == NULL ? NULL : slot_now(slot);
    unsigned char payload[FSM_PAYLOAD_BYTES_MAX] __attribute__((aligned(16)));

    load_scratch(core, def, record);
    uint64_t bit = (uint64_t)1 << item.event.kind;
    bool ended = record != NULL && (slot->forsaken || fsm_is_final(record)); /* this turn */
    if (ended || (record == NULL && (def->states[core->scratch->state].never & bit) != 0)) {
        post_to_nobody(core, &core->queue.items[number]);
        return false;
    }
    if (item.payload_at != SIZE_MAX) {
        check(item.payload_size <= sizeof(payload));
        memcpy(payload, queue_payload(&core->queue, &item), item.payload_size);
        item.event.payload = payload;
    }
    now->seed = rng_next(rng);
    now->peers = peers_of(core, slot, core->scratch);
    struct stepping stepping = {
        .def = def, .item = &item, .sender = {.core = core, .record = core->scratch}, .now = now};
    if (!attempt_step(core, slot, number, &stepping))
        return false;
    enum fsm_verdict verdict = stepping.verdict;
    core->figures.ignored += verdict == FSM_IGNORED;
    core->figures.stale += verdict == FSM_STALE;
    if (verdict == FSM_NEVER) {
        core_complain(core, &item.id, record, &item.event);
        unreachable("an event that its state declares never");
    }
    if (verdict != FSM_MOVED)
        return false;
    keep_step(core, slot, number, &stepping);
    *ret_sender = stepping.sender;
    return true;
}

/* Whoever was told to go on passes that on, whatever came of it: it may have ended meanwhile. */
static void step(struct core *core, size_t number, struct fsm_now *now, struct rng *rng)
{
    struct queued item = core->queue.items[number];
    struct sender sender = {.relays = false};
    bool moved = step_machine(core, number, now, rng, &sender);

    if (moved && sender.relays)
        relay(core, slot_find(core, &item.id), &sender.next, now);
    else if (item.relayed)
        relay(core, slot_find(core, &item.id), &item.event, now);
}

static void post_timer(struct core *core, struct slot *slot)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)slot->id.kind);
    struct fsm_event timeout = {.kind = def->timeout_event};

    queue_add(core, &slot->id, &timeout, false); /* asked for again by every turn */
}

uint64_t core_deadline_ms(const struct core *core)
{
    return core->due.count == 0 ? 0 : core->due.items[0].at_ms;
}

/* --- commit --- */

/* The specification of an alloc goes in the commit that removes its record: a crash between the two
 * would leave one that nobody looks for, or that looks like an alloc whose record was lost. */
static void drop_specs_of_gone(struct core *core)
{
    char key[JOURNAL_KEY_SIZE];

    for (size_t i = 0; i < core->touched.count; i++) {
        const struct slot *slot = core->touched.items[i];
        if (slot->id.kind != MACHINE_ALLOC || !fsm_is_final(slot->pending))
            continue;
        (void)text_format(key, sizeof(key), "alloc/%s", slot->id.text); /* fits */
        core_spec(core, key, NULL, 0);
    }
}

static int commit(struct core *core, struct err *err)
{
    size_t count = core->touched.count, specs_before = core->specs.count;
    struct journal_record *records = calloc(count + 1, sizeof(*records));

    check(core->steps.count == core->origins.count);
    check(implies(core->steps.count > 0, count > 0)); /* who moved has a record to be stored */
    check(records != NULL);
    drop_specs_of_gone(core);
    for (size_t i = 0; i < count; i++) {
        const struct slot *slot = core->touched.items[i];
        records[i].id = slot->id;
        records[i].record = fsm_is_final(slot->pending) ? NULL : slot->pending;
    }
    for (size_t i = 0; i < core->steps.count; i++)
        core->steps.items[i].event.payload =
            queue_payload(&core->queue, &core->queue.items[core->origins.items[i]]);
    struct journal_batch batch = {
        .events = core->steps.items,
        .events_count = core->steps.count,
        .records = records,
        .records_count = count,
        .specs = core->specs.items,
        .specs_count = core->specs.count,
        .metas = core->metas.items,
        .metas_count = core->metas.count,
    };
    int code = core->world.commit(core->world.ctx, &batch, err);
    if (code < 0)
        core->specs.count = specs_before; /* the allocs are still there */
    free(records);
    return code;
}

/* Forgets what the turn would have changed; keeps what came from outside for the next one. */
static void roll_back(struct core *core, const struct err *err)
{
    struct queue old = core->queue;

    core->figures.commits_failed++;
    for (size_t i = 0; i < core->touched.count; i++) {
        struct slot *slot = core->touched.items[i];
        free(slot->pending);
        slot->pending = NULL;
        slot->touched = false;
        index_note(core, slot);
        if (slot->record == NULL)
            slot_retire(core, slot);
    }
    core->queue = (struct queue){0};
    for (size_t i = 0; i < old.count; i++) {
        struct queued *item = &old.items[i];
        if (!item->root || item->proposal)
            continue;
        if (item->event.reply != 0) {
            core->world.refuse(core->world.ctx, item->event.reply, err);
            continue;
        }
        item->event.payload = queue_payload(&old, item);
        queue_add(core, &item->id, &item->event, true);
    }
    free(old.items);
    free(old.bytes);
    blobs_drop_proposed(&core->specs);
    blobs_drop_proposed(&core->metas);
    core->touched.count = 0;
    core->steps.count = core->origins.count = 0;
}

static void accept_records(struct core *core)
{
    for (size_t i = 0; i < core->touched.count; i++) {
        struct slot *slot = core->touched.items[i];
        struct machine *record = slot->pending;
        check(slot->touched);
        check(record != NULL);
        slot->pending = NULL;
        slot->touched = false;
        slot_commit(core, slot, record);
    }
    blobs_clear(&core->specs);
    blobs_clear(&core->metas);
}

/* --- effects --- */

static void perform_all(struct core *core, const struct queue *done)
{
    for (size_t i = 0; i < core->steps.count; i++) {
        struct journal_event *event = &core->steps.items[i];
        const struct queued *item = &done->items[core->origins.items[i]];
        event->event.payload = queue_payload(done, item);
        bool asked = queue_payload_kind(&event->id, event->event.kind) == PAYLOAD_REQUEST;
        const struct request *request = asked ? event->event.payload : NULL;
        check(event->sequence <= core->figures.sequence); /* it is committed */
        flight_note(core, event);
        if (core->world.trace != NULL)
            core->world.trace(core->world.ctx, event);
        for (uint8_t k = 0; k < event->issues_count; k++) {
            /* Found each time: performing one effect may complete another machine's. */
            struct slot *slot = slot_find(core, &event->id);
            check(slot != NULL);
            lane_issue(core, slot, &event->issues[k], item->event.reply, request);
        }
    }
}

/* What contradicted itself in this turn is put aside when that is committed. */
static void put_forsaken_aside(struct core *core)
{
    struct aside_list aside = core->aside;

    core->aside = (struct aside_list){0};
    for (size_t i = 0; i < aside.count; i++)
        core_put_aside(core, &aside.items[i].id, aside.items[i].why);
    free(aside.items);
}

/* The commit has failed: they are as they were. */
static void forgive(struct core *core)
{
    for (size_t i = 0; i < core->aside.count; i++)
        slot_find(core, &core->aside.items[i].id)->forsaken = false;
    core->aside.count = 0;
}

static void remove_finished(struct core *core)
{
    for (size_t i = 0; i < core->touched.count; i++) {
        if (fsm_is_final(core->touched.items[i]->record))
            slot_retire(core, core->touched.items[i]);
    }
    core->touched.count = 0;
}

bool core_in_parts(const struct core *core)
{
    return core->part != 0;
}

/* What was held back comes before whatever is posted now. */
static void part_done(struct core *core)
{
    if (core->held.count == 0)
        core->part = 0;
    queue_resume(core);
}

/* The commit of a turn that began with BEGUN events was too large; what is queued now is what it
 * is to be tried with again. */
static void divide(struct core *core, size_t begun, struct err *err)
{
    bool whole = core->held.count == 0;

    if (begun > 1) {
        core->part = begun / 2;
    } else if (core->queue.count == 1) {
        const struct queued *item = &core->queue.items[0];
        const struct fsm_def *def = fsm_definition((enum machine_kind)item->id.kind);
        (void)err_wrap(err, "%s of %s %s is too large to be stored and is given up",
                       fsm_event_name(def, item->event.kind), def->name, item->id.text);
        core->queue.count = 0;
        core->queue.bytes_used = 0;
        core->part = whole ? 0 : 1;
    } else {
        core->part = 0; /* a timer, which comes again, or nothing but a proposal, which is gone */
    }
}

int core_turn(struct core *core, uint64_t now_ms, int64_t unix_ns, uint64_t seed, struct err *err)
{
    struct fsm_now now = {.ms = now_ms, .unix_ns = unix_ns};
    struct rng rng = rng_init(seed);

    check(!core->in_turn);
    core->in_turn = true;
    if (core->turned) /* the first is RESTORE's: what came due meanwhile comes after it */
        index_each_due(core, now_ms, post_timer);
    core->turned = true;
    if (core->part != 0)
        queue_hold(core, core->part);
    size_t begun = queue_begun(core);
    for (size_t i = 0; i < core->queue.count; i++) {
        check(i < queue_events_max(core)); /* else machines feed each other */
        step(core, i, &now, &rng);
        core->figures.events++;
    }
    if (core->steps.count == 0 && core->specs.count == 0 && core->metas.count == 0) {
        core->queue.count = 0;
        core->queue.bytes_used = 0;
        part_done(core);
        core->in_turn = false;
        put_forsaken_aside(core);
        return 0; /* unchanged state commits nothing (I-15) */
    }

    int code = commit(core, err);
    if (code < 0) {
        forgive(core);
        roll_back(core, err);
        if (code == ERR_LIMIT)
            divide(core, begun, err);
        queue_resume(core);
        core->in_turn = false;
        return code;
    }
    core->figures.turns++;
    core->figures.sequence += core->steps.count;
    accept_records(core);

    /* Effects may post events: those go to a fresh queue, for the next turn. */
    struct queue done = core->queue;
    core->queue = core->spare;
    core->spare = (struct queue){0};
    part_done(core);
    perform_all(core, &done);
    remove_finished(core);
    core->steps.count = core->origins.count = 0;
    done.count = 0;
    done.bytes_used = 0;
    core->spare = done;
    core->in_turn = false;
    put_forsaken_aside(core);
    return 0;
}
