/* The machines of this node, by id, and the flight recorder. */
#include "core/machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

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

static void blobs_free(struct blobs *blobs)
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

/* --- the machines --- */

struct core *core_new(const struct world *world)
{
    struct core *core = calloc(1, sizeof(*core));

    check(core != NULL);
    core->world = *world;
    core->scratch = calloc(1, FSM_RECORD_BYTES_MAX);
    core->flights = calloc(FLIGHT_SIZE, sizeof(*core->flights));
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
    free(core->touched);
    free(core->steps);
    free(core->origins);
    free(core->scratch);
    free(core->flights);
    free(core);
}

/* Of what an id says, and not of the zeros behind it. */
static unsigned hash_of(const struct machine_id *id)
{
    return (unsigned)hash_bytes(id->kind, id->text, strlen(id->text));
}

struct slot *slot_find(const struct core *core, const struct machine_id *id)
{
    struct slot *slot;

    HASH_FIND_BYHASHVALUE(hh, core->machines, id, sizeof(*id), hash_of(id), slot);
    return slot;
}

struct slot *slot_add(struct core *core, const struct machine_id *id)
{
    struct slot *slot = calloc(1, sizeof(*slot));

    check(slot != NULL);
    slot->id = *id;
    slot->serial = ++core->serials;
    slot->due_at = INDEX_NONE;
    HASH_ADD_BYHASHVALUE(hh, core->machines, id, sizeof(slot->id), hash_of(id), slot);
    DL_APPEND2(core->kinds[id->kind].first, slot, kind_prev, kind_next);
    return slot;
}

/* True if there is a machine, and not only the last record of one that has just ended. */
static bool is_there(const struct slot *slot)
{
    return slot->record != NULL && !fsm_is_final(slot->record);
}

void slot_commit(struct core *core, struct slot *slot, struct machine *record)
{
    struct kind_list *kind = &core->kinds[slot->id.kind];

    check(slot->record != record || record == NULL);
    kind->count -= is_there(slot);
    free(slot->record);
    slot->record = record;
    kind->count += is_there(slot);
    index_deadline(core, slot);
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

void core_each(const struct core *core, enum machine_kind kind, core_each_cb *cb, void *ctx)
{
    const struct slot *next;

    for (const struct slot *slot = core->kinds[kind].first; slot != NULL; slot = next) {
        next = slot->kind_next;
        if (is_there(slot) && !cb(ctx, &slot->id, slot->record))
            return;
    }
}

void core_each_of_job(const struct core *core, const char *namespace, const char *job,
                      core_each_cb *cb, void *ctx)
{
    const struct group_member *next;

    for (const struct group_member *member = index_job(core, namespace, job); member != NULL;
         member = next) {
        next = member->next;
        if (is_there(member->slot) && !cb(ctx, &member->slot->id, member->slot->record))
            return;
    }
}

size_t core_count(const struct core *core, enum machine_kind kind)
{
    return core->kinds[kind].count;
}

struct core_figures core_figures(const struct core *core)
{
    return core->figures;
}

/* --- flight recorder --- */

void flight_note(struct core *core, const struct journal_event *event)
{
    struct flight *flight = &core->flights[core->flights_count++ % FLIGHT_SIZE];

    *flight = (struct flight){
        .now_ms = event->now_ms,
        .sequence = (uint32_t)event->sequence,
        .ticket = event->event.ticket,
        .row = event->row,
        .kind = event->id.kind,
        .event = event->event.kind,
        .before = event->before,
        .after = event->after,
    };
    (void)text_copy(flight->id, sizeof(flight->id), event->id.text); /* cut: a hint is enough */
}

static void describe(const struct fsm_def *def, const char *id, uint16_t row, uint32_t ticket,
                     char *to, size_t size)
{
    const struct fsm_row *taken = &def->rows[row];

    (void)text_format(to, size, "%s %s %s -%s", def->name, id, fsm_state_name(def, taken->state),
                      fsm_event_name(def, taken->event));
    if (taken->guard != 0) {
        (void)text_append(to, size, "[");
        (void)text_append(to, size, fsm_guard_name(def, taken->guard));
        (void)text_append(to, size, "]");
    }
    (void)text_append(to, size, "-> ");
    (void)text_append(to, size, fsm_state_name(def, taken->next));
    for (int i = 0; i < FSM_EFFECTS_MAX && taken->effects[i] != 0; i++) {
        (void)text_append(to, size, " +");
        (void)text_append(to, size, fsm_effect_name(def, taken->effects[i]));
    }
    if (ticket != 0) {
        char number[24];
        (void)text_format(number, sizeof(number), " ticket=%u", ticket);
        (void)text_append(to, size, number);
    }
}

void core_describe(const struct journal_event *event, char *to, size_t size)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);

    check(event->row < def->rows_count);
    describe(def, event->id.text, event->row, event->event.ticket, to, size);
}

void core_flight_print(const struct core *core, fsm_print *print, void *ctx)
{
    uint64_t first = core->flights_count > FLIGHT_SIZE ? core->flights_count - FLIGHT_SIZE : 0;
    char line[512], text[440];

    for (uint64_t i = first; i < core->flights_count; i++) {
        const struct flight *flight = &core->flights[i % FLIGHT_SIZE];
        const struct fsm_def *def = fsm_definition((enum machine_kind)flight->kind);
        describe(def, flight->id, flight->row, flight->ticket, text, sizeof(text));
        (void)text_format(line, sizeof(line), "%u %llu.%03llu %s\n", flight->sequence,
                          (unsigned long long)(flight->now_ms / 1000),
                          (unsigned long long)(flight->now_ms % 1000), text);
        print(ctx, line);
    }
}

static void print_error(void *ctx, const char *text)
{
    (void)ctx; /* always to standard error: the process is about to end */
    (void)fputs(text, stderr);
}

void core_complain(const struct core *core, const struct machine_id *id,
                   const struct machine *record, const struct fsm_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)id->kind);

    core_flight_print(core, print_error, NULL);
    (void)fprintf(stderr, "%s %s in state %s got %s, which its table says can never come\n",
                  def->name, id->text,
                  record == NULL ? "(none)" : fsm_state_name(def, record->state),
                  fsm_event_name(def, event->kind));
}
