/* A core's state, taken out and put back. */
#include "core/snapshot.h"

#include "base/list.h"
#include "core/machines/part.h"

#include <stdlib.h>
#include <string.h>

/* --- out --- */

static void save_machine(const struct slot *slot, struct core_machine *machine)
{
    check(slot->pending == NULL);
    machine->id = slot->id;
    machine->record = slot->record;
    memcpy(machine->lanes, slot->lanes, sizeof(slot->lanes));
}

static void save_event(const struct queue *queue, const struct queued *item,
                       struct core_event *event)
{
    check(item->root);
    event->id = item->id;
    event->event = item->event;
    event->event.payload = item->payload_at == SIZE_MAX ? NULL : queue->bytes + item->payload_at;
    event->proposal = item->proposal;
}

void core_save(const struct core *core, struct core_snapshot *snapshot)
{
    check(!core->in_turn);
    check(!core->proposing);
    snapshot->machines.count = snapshot->events.count = 0;
    for (const struct slot *slot = core->machines; slot != NULL; slot = slot->hh.next)
        save_machine(slot, list_more(&snapshot->machines));
    for (size_t i = 0; i < core->queue.count; i++)
        save_event(&core->queue, &core->queue.items[i], list_more(&snapshot->events));
    snapshot->begun = core->turned;
}

/* --- back --- */

static void put_machine(struct core *core, const struct core_machine *machine)
{
    struct slot *slot = slot_add(core, &machine->id);

    memcpy(slot->lanes, machine->lanes, sizeof(slot->lanes));
    if (machine->record == NULL)
        return;
    uint32_t size = fsm_record_size(machine->record);
    struct machine *copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, machine->record, size);
    slot_commit(core, slot, copy);
    index_join(core, slot);
}

static void put_event(struct core *core, const struct core_event *event)
{
    core->proposing = event->proposal;
    core_post(core, &event->id, &event->event);
    core->proposing = false;
}

void core_put(struct core *core, const struct core_snapshot *snapshot)
{
    struct core old = {.machines = core->machines, .groups = core->groups, .due = core->due};
    struct slot *slot, *next;
    struct queue queue = core->queue;

    check(!core->in_turn);
    check(!core->proposing);
    memcpy(old.kinds, core->kinds, sizeof(old.kinds));
    memset(core->kinds, 0, sizeof(core->kinds));
    core->machines = NULL;
    core->groups = NULL;
    core->due = (struct due_list){0};
    core->queue = core->spare;
    core->spare = queue; /* its payloads may be those of SNAPSHOT */
    for (size_t i = 0; i < snapshot->machines.count; i++)
        put_machine(core, &snapshot->machines.items[i]);
    for (size_t i = 0; i < snapshot->events.count; i++)
        put_event(core, &snapshot->events.items[i]);
    core->spare.count = core->spare.bytes_used = 0;
    HASH_ITER(hh, old.machines, slot, next)
    slot_remove(&old, slot);
    free(old.due.items);
    blobs_clear(&core->specs);
    blobs_clear(&core->metas);
    core->flights_count = 0;
    core->restored = core->turned = snapshot->begun;
}

void core_snapshot_free(struct core_snapshot *snapshot)
{
    free(snapshot->machines.items);
    free(snapshot->events.items);
    *snapshot = (struct core_snapshot){0};
}
