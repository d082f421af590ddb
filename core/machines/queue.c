/*
 * What waits for the next turn: events with their payloads, and what is stored beside records.
 *
 * Everything is copied.  What was posted as a proposal is dropped whole if its commit fails.
 */
#include "core/machines/part.h"

#include <stdlib.h>
#include <string.h>

/* --- events --- */

uint8_t queue_payload_kind(const struct machine_id *id, uint8_t event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);

    check(event < def->events_count);
    return def->events[event].payload;
}

void queue_add(struct core *core, const struct machine_id *id, const struct fsm_event *event,
               bool root)
{
    struct queue *queue = &core->queue;
    enum fsm_payload kind = (enum fsm_payload)queue_payload_kind(id, event->kind);
    size_t bytes = fsm_payload_size(kind, event->payload);

    check(implies(kind != PAYLOAD_NONE, event->payload != NULL));
    struct queued *item = list_more(queue);
    *item = (struct queued){
        .id = *id,
        .event = *event,
        .root = root,
        .proposal = core->proposing,
        .payload_at = SIZE_MAX,
    };
    item->event.payload = NULL;
    if (bytes > 0) {
        size_t aligned = (bytes + 15) & ~(size_t)15;
        queue->bytes = list_room(queue->bytes, &queue->bytes_size, queue->bytes_used + aligned, 1);
        memcpy(queue->bytes + queue->bytes_used, event->payload, bytes);
        item->payload_at = queue->bytes_used;
        item->payload_size = bytes;
        queue->bytes_used += aligned;
    }
}

/* --- parts of a turn --- */

size_t queue_begun(const struct core *core)
{
    size_t begun = 0;

    for (size_t i = 0; i < core->queue.count; i++)
        begun += !core->queue.items[i].proposal;
    return begun;
}

static void add_again(struct core *core, const struct queue *from, const struct queued *item)
{
    struct fsm_event event = item->event;

    event.payload = queue_payload(from, item);
    queue_add(core, &item->id, &event, item->root);
    core->queue.items[core->queue.count - 1].proposal = item->proposal;
}

static void queue_free(struct queue *queue)
{
    free(queue->items);
    free(queue->bytes);
    *queue = (struct queue){0};
}

/* Those of FROM whose place among what is no proposal is below PART, or the others. */
static void add_part(struct core *core, const struct queue *from, size_t part, bool below)
{
    for (size_t i = 0, place = 0; i < from->count; i++) {
        const struct queued *item = &from->items[i];
        bool stays = item->proposal || place < part;
        place += !item->proposal;
        if (stays == below && (below || item->root))
            add_again(core, from, item);
    }
}

void queue_hold(struct core *core, size_t part)
{
    struct queue all = core->queue;

    check(core->held.count == 0);
    core->queue = core->held;
    add_part(core, &all, part, false);
    core->held = core->queue;
    core->queue = (struct queue){0};
    add_part(core, &all, part, true);
    queue_free(&all);
}

void queue_resume(struct core *core)
{
    struct queue held = core->held;

    core->held = (struct queue){0};
    for (size_t i = 0; i < held.count; i++)
        add_again(core, &held, &held.items[i]);
    queue_free(&held);
}

/* --- events and their payloads --- */

const void *queue_payload(const struct queue *queue, const struct queued *item)
{
    return item->payload_at == SIZE_MAX ? NULL : queue->bytes + item->payload_at;
}

void core_post(struct core *core, const struct machine_id *id, const struct fsm_event *event)
{
    queue_add(core, id, event, true);
}

void core_propose(struct core *core, bool on)
{
    check(core->proposing != on);
    core->proposing = on;
    core->before = (struct proposal_mark){core->queue.count, core->queue.bytes_used,
                                          core->specs.count, core->metas.count};
}

void core_abandon(struct core *core)
{
    const struct proposal_mark *before = &core->before;

    check(core->proposing);
    check(!core->in_turn); /* the queue is still the one that the proposal began in */
    core->queue.count = before->events;
    core->queue.bytes_used = before->bytes;
    blobs_cut(&core->specs, before->specs);
    blobs_cut(&core->metas, before->metas);
    core->proposing = false;
}

void core_tell(struct core *core, const struct machine_id *id, uint8_t event, const void *payload)
{
    core_ask(core, id, event, payload, 0);
}

void core_ask(struct core *core, const struct machine_id *id, uint8_t event, const void *payload,
              uint64_t reply)
{
    struct fsm_event posted = {.kind = event, .payload = payload, .reply = reply};

    core_post(core, id, &posted);
}

void core_news(struct core *core, const struct machine_id *id, uint32_t generation, uint8_t event,
               const void *payload)
{
    struct fsm_event posted = {.kind = event, .payload = payload, .generation = generation};

    core_post(core, id, &posted);
}

/* --- how much there may be --- */

/* What callers post is bounded before it is posted.  What a journal brings back is not ours to
 * refuse, so bounds grow with the machines that there are. */
static size_t machines_of(const struct core *core)
{
    size_t machines = HASH_COUNT(core->machines);

    return machines < NODE_MACHINES_MAX ? NODE_MACHINES_MAX : machines;
}

size_t core_room(const struct core *core)
{
    size_t events = machines_of(core) * TURN_ASKED_A_MACHINE;

    return core->queue.count < events ? events - core->queue.count : 0;
}

size_t queue_events_max(const struct core *core)
{
    return machines_of(core) * TURN_EVENTS_A_MACHINE;
}

bool core_has_work(const struct core *core)
{
    return core->queue.count > 0 || core->specs.count > 0 || core->metas.count > 0;
}

static void release_queue(struct queue *queue)
{
    if (queue->count == 0)
        queue_free(queue);
}

static void release_blobs(struct blobs *blobs)
{
    if (blobs->count > 0)
        return;
    blobs_free(blobs);
    *blobs = (struct blobs){0};
}

void core_release_memory(struct core *core)
{
    check(!core->in_turn);
    release_queue(&core->queue);
    release_queue(&core->spare);
    release_queue(&core->held);
    release_blobs(&core->specs);
    release_blobs(&core->metas);
    list_release(&core->touched);
    list_release(&core->aside);
    list_release(&core->steps);
    list_release(&core->origins);
    list_release(&core->replaced);
}

/* --- blobs that go with the next commit --- */

static void blob_free(struct journal_blob *blob)
{
    free((void *)(uintptr_t)blob->bytes); /* our own copy, const only for readers */
}

void blobs_cut(struct blobs *blobs, size_t count)
{
    check(count <= blobs->count);
    while (blobs->count > count)
        blob_free(&blobs->items[--blobs->count]);
}

void blobs_clear(struct blobs *blobs)
{
    blobs_cut(blobs, 0);
}

void blobs_free(struct blobs *blobs)
{
    blobs_clear(blobs);
    free(blobs->items);
    free(blobs->proposed);
}

void blobs_drop_proposed(struct blobs *blobs)
{
    size_t kept = 0;

    for (size_t i = 0; i < blobs->count; i++) {
        if (blobs->proposed[i]) {
            blob_free(&blobs->items[i]);
        } else {
            blobs->items[kept] = blobs->items[i];
            blobs->proposed[kept++] = false;
        }
    }
    blobs->count = kept;
}

static void blob_add(struct blobs *blobs, bool proposed, const char *key, const void *bytes,
                     size_t length)
{
    if (blobs->count == blobs->size) {
        blobs->size = blobs->size == 0 ? 16 : blobs->size * 2;
        blobs->items = realloc(blobs->items, blobs->size * sizeof(*blobs->items));
        blobs->proposed = realloc(blobs->proposed, blobs->size * sizeof(*blobs->proposed));
        check(blobs->items != NULL);
        check(blobs->proposed != NULL);
    }
    struct journal_blob *blob = &blobs->items[blobs->count];
    blobs->proposed[blobs->count++] = proposed;
    bool whole = text_copy(blob->key, sizeof(blob->key), key);
    check(whole); /* keys are built from bounded names */
    blob->bytes = NULL;
    blob->length = length;
    if (bytes != NULL) {
        void *copy = malloc(length + 1);
        check(copy != NULL);
        memcpy(copy, bytes, length);
        blob->bytes = copy;
    }
}

void core_spec(struct core *core, const char *key, const void *bytes, size_t length)
{
    blob_add(&core->specs, core->proposing, key, bytes, length);
}

void core_meta(struct core *core, const char *key, const void *bytes, size_t length)
{
    blob_add(&core->metas, core->proposing, key, bytes, length);
}
