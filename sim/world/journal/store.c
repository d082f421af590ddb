/*
 * The journal in memory: records as their bytes, whole batches or nothing.
 *
 * It keeps what LMDB would keep for the core (records, which specs there are, a few meta values),
 * fails as a disk fails, and can be damaged.  Each event is stepped again as it is stored, from
 * what was stored before (core/replay.h), so that a journal which would not verify is found in the
 * turn that wrote it.
 */
#include "base/list.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

/* Where ID is, or would be. */
static size_t place(const struct sim_store *store, const struct machine_id *id, bool *ret_there)
{
    size_t low = 0, high = store->count;

    *ret_there = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = machine_id_order(&store->items[middle]->id, id);
        if (order == 0) {
            *ret_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct machine *sim_store_find(const struct sim_store *store, const struct machine_id *id)
{
    bool there;
    size_t at = place(store, id, &there);

    return there && !store->items[at]->damaged ? store->items[at]->record : NULL;
}

bool sim_store_has(const struct sim_store *store, const struct machine_id *id)
{
    bool there;

    (void)place(store, id, &there);
    return there;
}

void sim_store_put(struct sim_store *store, const struct machine_id *id,
                   const struct machine *record)
{
    uint32_t size = record == NULL ? 0 : fsm_record_size(record);
    bool there;
    size_t at = place(store, id, &there);

    if (!there) {
        struct sim_stored *item = store->spare.count > 0 ? store->spare.items[--store->spare.count]
                                                         : calloc(1, sizeof(*item));
        check(item != NULL);
        (void)list_more(store); /* the rest moves up into it */
        memmove(&store->items[at + 1], &store->items[at],
                (store->count - 1 - at) * sizeof(*store->items));
        store->items[at] = item;
        item->id = *id;
    }
    struct sim_stored *item = store->items[at];
    if (item->room < size) {
        item->room = size + size / 2;
        item->record = realloc(item->record, item->room);
        check(item->record != NULL);
    }
    item->size = size;
    item->damaged = record == NULL;
    if (record == NULL)
        return;
    memcpy(item->record, record, size);
}

void sim_store_drop(struct sim_store *store, const struct machine_id *id)
{
    bool there;
    size_t at = place(store, id, &there);

    if (!there)
        return;
    *list_more(&store->spare) = store->items[at];
    store->count--;
    memmove(&store->items[at], &store->items[at + 1], (store->count - at) * sizeof(*store->items));
}

void sim_store_reset(struct sim *sim)
{
    struct sim_store *store = &sim->store;

    while (store->count > 0)
        *list_more(&store->spare) = store->items[--store->count];
    store->head.next_sequence = sim->first_sequence = 1;
    store->head.turn = store->head.last_now_ms = 0;
    store->head.node = (struct sim_node){0};
    store->head.last_unix_ns = store->head.last_jump_ms = 0;
    store->head.last_at_ms = 0;
    store->head.server_index = 0;
    sim_history_reset(sim, store->head.next_sequence);
}

void sim_store_free(struct sim_store *store)
{
    for (size_t i = 0; i < store->count + store->spare.count; i++) {
        struct sim_stored *item =
            i < store->count ? store->items[i] : store->spare.items[i - store->count];
        free(item->record);
        free(item);
    }
    free(store->items);
    free(store->spare.items);
    sim_history_free(&store->history);
}

/* --- commit --- */

/* The fault that this commit meets, or none. */
static enum sim_fault fate_of(struct sim *sim)
{
    static const enum sim_fault kinds[] = {SIM_IO_FULL, SIM_IO_ERROR, SIM_IO_MAP};
    uint32_t number = sim->commits++;

    if (sim->healed)
        return SIM_FAULT_NONE;
    if (sim->commits_to_fail > 0) {
        sim->commits_to_fail--;
        return SIM_IO_FULL;
    }
    for (unsigned i = 0; i < sim->script->fates_count; i++) {
        const struct sim_fate *fate = &sim->script->fates[i];
        if (fate->whom.kind == MACHINE_KIND_COUNT && fate->nth == number + 1) {
            sim->told.struck[i] = true;
            return (enum sim_fault)fate->fault;
        }
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        uint16_t rate = sim->script->rates[kinds[i]];
        if (rate > 0 && sim_below(sim_chance(sim, LUCK_COMMIT, kinds[i], number), 1024) < rate) {
            struct sim_fate drawn = {.whom = {MACHINE_KIND_COUNT, -1, -1},
                                     .fault = (uint8_t)kinds[i],
                                     .nth = (uint16_t)(number + 1)};
            sim_note_fate(sim, &drawn);
            return kinds[i];
        }
    }
    return SIM_FAULT_NONE;
}

static void store_blobs(struct sim *sim, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->specs_count; i++) {
        const char *key = batch->specs[i].key;
        if (sim->script->jobs_count > 0 && !text_starts_with(key, "alloc/"))
            continue; /* a job */
        check(text_starts_with(key, "alloc/"));
        struct machine_id id = machine_id_make(MACHINE_ALLOC, key + strlen("alloc/"));
        struct sim_whom whom = sim_find(sim, &id);
        if (whom.kind == MACHINE_ALLOC)
            sim_alloc_of(sim, &whom)->specified = batch->specs[i].bytes != NULL;
    }
    for (size_t i = 0; i < batch->metas_count; i++) {
        const struct journal_blob *meta = &batch->metas[i];
        if (text_equal(meta->key, "server_index") && meta->length == sizeof(uint64_t))
            memcpy(&sim->store.head.server_index, meta->bytes, sizeof(uint64_t));
        if (text_equal(meta->key, "node") && meta->length == sizeof(struct sim_node))
            memcpy(&sim->store.head.node, meta->bytes, sizeof(struct sim_node));
    }
}

static void step_again(struct sim *sim, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->events_count; i++) {
        enum replay_result result = replay_step(sim->replay, &batch->events[i]);
        if (result != REPLAY_SAME) {
            char line[256];
            core_describe(&batch->events[i], line, sizeof(line));
            sim_violate(sim, 15, "the journal does not replay: %s: %s", replay_result_name(result),
                        line);
            return;
        }
    }
    for (size_t i = 0; i < batch->records_count; i++) {
        const struct journal_record *stored = &batch->records[i];
        const struct machine *again = replay_find(sim->replay, &stored->id);
        bool same = stored->record == NULL || again == NULL
                        ? stored->record == again
                        : fsm_record_size(stored->record) == fsm_record_size(again) &&
                              memcmp(stored->record, again, fsm_record_size(again)) == 0;
        if (!same)
            sim_violate(sim, 15, "replay of %s gives other bytes than were stored",
                        stored->id.text);
    }
}

int sim_store_commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    struct sim *sim = ctx;
    struct sim_store *store = &sim->store;
    enum sim_fault fault = fate_of(sim);

    if (fault != SIM_FAULT_NONE) {
        sim_count_fault(sim, fault);
        return err_set(err, fault == SIM_IO_ERROR ? ERR_IO : ERR_FULL, "%s", sim_fault_what(fault));
    }
    for (size_t i = 0; i < batch->records_count; i++) {
        if (batch->records[i].record == NULL)
            sim_store_drop(store, &batch->records[i].id);
        else
            sim_store_put(store, &batch->records[i].id, batch->records[i].record);
    }
    store_blobs(sim, batch);
    step_again(sim, batch);
    sim_history_commit(sim, batch);
    sim_write(sim, batch);
    store->head.turn++;
    if (batch->events_count > 0) {
        const struct journal_event *last = &batch->events[batch->events_count - 1];
        if (batch->events[0].sequence != store->head.next_sequence)
            sim_violate(sim, 15, "the journal has a gap at %llu",
                        (unsigned long long)store->head.next_sequence);
        store->head.next_sequence = last->sequence + 1;
        store->head.turn = last->turn;
        store->head.last_now_ms = last->now_ms;
        store->head.last_unix_ns = last->unix_ns;
        store->head.last_at_ms = sim->now_ms;
        store->head.last_jump_ms = sim->jump_ms;
    }
    return 0;
}

/* --- damage --- */

bool sim_store_damage(struct sim *sim, const struct sim_whom *whom, enum sim_fault how)
{
    struct sim_store *store = &sim->store;
    bool there;
    size_t at = place(store, sim_id(sim, whom), &there);

    if (!there)
        return false;
    struct sim_stored *item = store->items[at];
    sim_count_fault(sim, how);
    if (!item->damaged)
        item->digest = hash_bytes(item->id.kind, item->record, item->size);
    item->damaged = true;
    if (how == SIM_TORN_CUT)
        item->size /= 2;
    else if (how == SIM_TORN_ZERO)
        memset(item->record, 0, item->size);
    else
        ((unsigned char *)item->record)[item->size / 3] ^= 0x10;
    sim_say(sim, "%s of %s %s", sim_fault_name(how),
            machine_kind_name((enum machine_kind)item->id.kind), item->id.text);
    return true;
}

bool sim_store_is_sound(const struct sim_stored *item)
{
    if (!item->damaged)
        return true;
    return item->size >= sizeof(struct machine) && item->record->kind == item->id.kind &&
           item->record->state < fsm_definition((enum machine_kind)item->id.kind)->states_count &&
           hash_bytes(item->id.kind, item->record, item->size) == item->digest;
}
