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
    snapshot->unswept = core->unswept;
}

/* --- back ---
 *
 * Whoever goes from state to state puts back what differs little from what is there: slots that are
 * in their order stay, with their groups, and what is the same is not copied.  Records that go are
 * freed last, since SNAPSHOT may speak of them. */

static bool is_same(const struct machine *one, const struct machine *other)
{
    if (one == NULL || other == NULL || one == other)
        return one == other;
    return fsm_record_size(one) == fsm_record_size(other) &&
           memcmp(one, other, fsm_record_size(one)) == 0;
}

static struct machine *copy_of(const struct machine *record)
{
    if (record == NULL)
        return NULL;
    uint32_t size = fsm_record_size(record);
    struct machine *copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, record, size);
    return copy;
}

static void exchange(struct core *core, struct slot *slot, struct machine *record)
{
    struct machine *old = slot_exchange(core, slot, record);

    if (old != NULL)
        *list_more(&core->replaced) = old;
}

/* SLOT can become MACHINE where it is: in the same groups, or in none any more. */
static bool keeps_place(const struct slot *slot, const struct core_machine *machine)
{
    if (slot->record == NULL || machine->record == NULL)
        return machine->record == NULL;
    return index_is_same(slot->record, machine->record);
}

static void change_machine(struct core *core, struct slot *slot, const struct core_machine *machine)
{
    check(slot->pending == NULL);
    memcpy(slot->lanes, machine->lanes, sizeof(slot->lanes));
    if (is_same(slot->record, machine->record))
        return;
    exchange(core, slot, copy_of(machine->record));
    if (machine->record == NULL)
        index_leave(core, slot);
}

static void add_machine(struct core *core, const struct core_machine *machine)
{
    struct slot *slot = slot_add(core, &machine->id);

    memcpy(slot->lanes, machine->lanes, sizeof(slot->lanes));
    if (machine->record == NULL)
        return;
    exchange(core, slot, copy_of(machine->record));
    index_join(core, slot);
}

/* Removes the slots from FROM to before BEHIND, NULL: to the last. */
static void cut(struct core *core, struct slot *from, const struct slot *behind)
{
    for (struct slot *slot = from, *next; slot != behind; slot = next) {
        next = slot->hh.next;
        exchange(core, slot, NULL);
        slot_remove(core, slot);
    }
}

/* What stays is the first part of both, in the same order; what is not in SNAPSHOT goes, and where
 * the order ends, the rest is made anew. */
static void put_machines(struct core *core, const struct core_snapshot *snapshot)
{
    struct slot *slot = core->machines;

    for (size_t i = 0; i < snapshot->machines.count; i++) {
        const struct core_machine *machine = &snapshot->machines.items[i];
        struct slot *found = slot;
        if (slot != NULL && !machine_id_equal(&slot->id, &machine->id))
            found = slot_find(core, &machine->id);
        if (found != NULL && keeps_place(found, machine)) {
            cut(core, slot, found);
            slot = found->hh.next;
            change_machine(core, found, machine);
        } else {
            cut(core, slot, NULL);
            slot = NULL;
            add_machine(core, machine);
        }
    }
    cut(core, slot, NULL);
}

static void put_event(struct core *core, const struct core_event *event)
{
    core->proposing = event->proposal;
    core_post(core, &event->id, &event->event);
    core->proposing = false;
}

void core_put(struct core *core, const struct core_snapshot *snapshot)
{
    struct queue queue = core->queue;

    check(!core->in_turn);
    check(!core->proposing);
    core->queue = core->spare;
    core->spare = queue; /* its payloads may be those of SNAPSHOT */
    put_machines(core, snapshot);
    for (size_t i = 0; i < snapshot->events.count; i++)
        put_event(core, &snapshot->events.items[i]);
    core->spare.count = core->spare.bytes_used = 0;
    while (core->replaced.count > 0)
        free(core->replaced.items[--core->replaced.count]);
    blobs_clear(&core->specs);
    blobs_clear(&core->metas);
    core->flights_count = 0;
    core->restored = core->turned = snapshot->begun;
    core->unswept = snapshot->unswept;
}

void core_snapshot_free(struct core_snapshot *snapshot)
{
    free(snapshot->machines.items);
    free(snapshot->events.items);
    *snapshot = (struct core_snapshot){0};
}
