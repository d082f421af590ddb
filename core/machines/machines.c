/* The machines of this node: by id, by kind, and their going. */
#include "core/machines/part.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct core *core_new(const struct world *world)
{
    struct core *core = calloc(1, sizeof(*core));

    check(core != NULL);
    core->world = *world;
    core->scratch = calloc(1, FSM_RECORD_BYTES_MAX);
    core->flights = malloc(FLIGHT_SIZE * sizeof(*core->flights)); /* none is read unwritten */
    check(core->scratch != NULL);
    check(core->flights != NULL);
    return core;
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    struct slot *slot, *next;
    HASH_ITER(hh, core->machines, slot, next)
    slot_remove(core, slot);
    blobs_free(&core->specs);
    blobs_free(&core->metas);
    free(core->due.items);
    free(core->queue.items);
    free(core->queue.bytes);
    free(core->spare.items);
    free(core->spare.bytes);
    free(core->touched.items);
    free(core->aside.items);
    free(core->steps.items);
    free(core->origins.items);
    free(core->replaced.items);
    free(core->scratch);
    free(core->flights);
    free(core);
}

struct slot *slot_find(const struct core *core, const struct machine_id *id)
{
    struct slot *slot;

    HASH_FIND_BYHASHVALUE(hh, core->machines, id, sizeof(*id), machine_id_hash(id), slot);
    return slot;
}

struct slot *slot_add(struct core *core, const struct machine_id *id)
{
    struct slot *slot = calloc(1, sizeof(*slot));

    check(slot != NULL);
    slot->id = *id;
    slot->serial = ++core->serials;
    slot->due_at = INDEX_NONE;
    HASH_ADD_BYHASHVALUE(hh, core->machines, id, sizeof(slot->id), machine_id_hash(id), slot);
    DL_APPEND2(core->kinds[id->kind].first, slot, kind_prev, kind_next);
    return slot;
}

/* True if there is a machine, and not only the last record of one that has just ended. */
static bool is_there(const struct slot *slot)
{
    return slot->record != NULL && !fsm_is_final(slot->record);
}

struct machine *slot_exchange(struct core *core, struct slot *slot, struct machine *record)
{
    struct kind_list *kind = &core->kinds[slot->id.kind];
    struct machine *old = slot->record;

    check(slot->record != record || record == NULL);
    check(record == NULL || record->kind == slot->id.kind);
    kind->count -= is_there(slot);
    slot->record = record;
    kind->count += is_there(slot);
    index_deadline(core, slot);
    index_note(core, slot);
    return old;
}

void slot_commit(struct core *core, struct slot *slot, struct machine *record)
{
    free(slot_exchange(core, slot, record));
}

void slot_remove(struct core *core, struct slot *slot)
{
    slot_commit(core, slot, NULL);
    index_leave(core, slot);
    DL_DELETE2(core->kinds[slot->id.kind].first, slot, kind_prev, kind_next);
    HASH_DEL(core->machines, slot);
    free(slot->pending);
    free(slot);
}

void slot_retire(struct core *core, struct slot *slot)
{
    bool busy = false;

    check(slot->pending == NULL);
    slot_commit(core, slot, NULL);
    index_leave(core, slot);
    for (int number = 0; number < LANE_COUNT; number++) {
        struct lane *lane = &slot->lanes[number];
        lane->next_effect = 0;
        lane->orphaned = lane->effect != 0;
        busy = busy || lane->orphaned;
    }
    if (!busy)
        slot_remove(core, slot);
}

const struct machine *core_find(const struct core *core, const struct machine_id *id)
{
    const struct slot *slot = slot_find(core, id);

    return slot == NULL ? NULL : slot->record;
}

const struct task *core_task(const struct core *core, const char *alloc, const char *task)
{
    if (strlen(alloc) >= UUID_TEXT_SIZE || strlen(task) >= SPEC_NAME_SIZE)
        return NULL;
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, task);
    const struct machine *record = core_find(core, &id);

    return record == NULL ? NULL : task_of(record);
}

const struct alloc *core_alloc(const struct core *core, const char *alloc)
{
    if (strlen(alloc) >= UUID_TEXT_SIZE)
        return NULL;
    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);
    const struct machine *record = core_find(core, &id);

    return record == NULL ? NULL : alloc_of(record);
}

const struct volume *core_volume(const struct core *core, const char *alloc, const char *name)
{
    if (strlen(alloc) >= UUID_TEXT_SIZE || strlen(name) >= SPEC_NAME_SIZE)
        return NULL;
    struct machine_id id = machine_id_join(MACHINE_VOLUME, alloc, name);
    const struct machine *record = core_find(core, &id);

    return record == NULL ? NULL : volume_of(record);
}

void core_disk_owners(const struct core *core, const struct alloc *alloc,
                      const char *ret_owners[DISK_OWNERS_MAX + 1])
{
    size_t count = 0;

    while (alloc != NULL && alloc->assign.disk_from[0] != '\0' && count < DISK_OWNERS_MAX) {
        ret_owners[count++] = alloc->assign.disk_from;
        alloc = core_alloc(core, alloc->assign.disk_from);
        if (alloc != NULL && alloc->disk == DISK_HERE)
            break;
    }
    ret_owners[count] = NULL;
}

void core_each(const struct core *core, enum machine_kind kind, core_each_cb *cb, void *ctx)
{
    const struct slot *next;

    for (const struct slot *slot = core->kinds[kind].first; slot != NULL; slot = next) {
        next = slot->kind_next;
        if (is_there(slot) && !cb(ctx, &slot->id, slot->record))
            return;
    }
}

static void each_of_group(const struct group_member *first, core_each_cb *cb, void *ctx)
{
    const struct group_member *next;

    for (const struct group_member *member = first; member != NULL; member = next) {
        next = member->next;
        if (is_there(member->slot) && !cb(ctx, &member->slot->id, member->slot->record))
            return;
    }
}

void core_each_of_job(const struct core *core, const char *namespace, const char *job,
                      core_each_cb *cb, void *ctx)
{
    each_of_group(index_job(core, namespace, job), cb, ctx);
}

void core_each_of_volume(const struct core *core, const struct volume_define *volume,
                         core_each_cb *cb, void *ctx)
{
    struct volume probe = {.define = *volume};

    each_of_group(index_volume(core, &probe), cb, ctx);
}

void core_each_of_plugin(const struct core *core, const char *plugin, core_each_cb *cb, void *ctx)
{
    each_of_group(index_plugin(core, plugin), cb, ctx);
}

size_t core_count(const struct core *core, enum machine_kind kind)
{
    return core->kinds[kind].count;
}

struct core_figures core_figures(const struct core *core)
{
    return core->figures;
}
