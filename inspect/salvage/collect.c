/* Takes every entry that journal_salvage finds, and puts the events in order. */
#include "inspect/salvage/salvage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void salvage_say(struct salvage *salvage, const char *format, ...)
{
    char line[512];
    va_list arguments;

    if (salvage->say == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* cut if too long */
    va_end(arguments);
    text_clean(line);
    salvage->say(salvage->say_ctx, line);
}

static void *copy_of(const void *bytes, size_t length)
{
    char *copy = malloc(length + 1);

    check(copy != NULL);
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

/* --- machines --- */

struct found_machine *salvage_machine(const struct salvage *salvage, const struct machine_id *id)
{
    struct found_machine *machine;

    HASH_FIND(hh, salvage->machines, id, sizeof(*id), machine);
    return machine;
}

static struct found_machine *machine_of(struct salvage *salvage, const struct machine_id *id)
{
    struct found_machine *machine = salvage_machine(salvage, id);

    if (machine != NULL)
        return machine;
    machine = calloc(1, sizeof(*machine));
    check(machine != NULL);
    machine->id = *id;
    HASH_ADD(hh, salvage->machines, id, sizeof(machine->id), machine);
    return machine;
}

static void take_record(void *ctx, enum journal_trust trust, bool base, const struct machine_id *id,
                        const struct machine *record)
{
    struct found_machine *machine = machine_of(ctx, id);
    uint64_t digest = fsm_digest(record);

    for (size_t i = 0; i < machine->records.count; i++) {
        struct found_record *known = &machine->records.items[i];
        if (known->base == base && known->digest == digest) {
            known->trust = trust > known->trust ? trust : known->trust;
            return;
        }
    }
    *list_more(&machine->records) = (struct found_record){
        .trust = trust,
        .base = base,
        .digest = digest,
        .record = copy_of(record, fsm_record_size(record)),
    };
}

/* --- events --- */

static void take_event(void *ctx, enum journal_trust trust, const struct journal_event *event)
{
    struct salvage *salvage = ctx;
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    struct found_event found = {
        .sequence = event->sequence,
        .digest = event->digest,
        .id = event->id,
        .trust = trust,
        .initial = (def->states[event->before].flags & FSM_INITIAL) != 0,
        .final = (def->states[event->after].flags & FSM_FINAL) != 0,
    };

    journal_encode_event(event, &found.bytes, &found.length);
    *list_more(&salvage->events) = found;
}

void salvage_event(const struct found_event *found, struct journal_event *event, void *payload)
{
    memset(payload, 0, FSM_PAYLOAD_BYTES_MAX);
    check(journal_decode_event(found->bytes, found->length, event, payload, NULL) == 0);
}

/* By number; of one number the best first. */
static int by_sequence(const void *left, const void *right)
{
    const struct found_event *a = left, *b = right;

    if (a->sequence != b->sequence)
        return a->sequence < b->sequence ? -1 : 1;
    return (int)b->trust - (int)a->trust;
}

static bool same_event(const struct found_event *a, const struct found_event *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Leaves one event of each number; none where two are as good and differ: a commit that failed may
 * have left the one, and the next one the other. */
static void order_events(struct salvage *salvage)
{
    struct found_event *items = salvage->events.items;
    size_t count = salvage->events.count, kept = 0;

    if (count > 0)
        qsort(items, count, sizeof(*items), by_sequence);
    for (size_t at = 0, next; at < count; at = next) {
        bool clear = true;
        for (next = at + 1; next < count && items[next].sequence == items[at].sequence; next++) {
            clear = clear &&
                    (items[next].trust < items[at].trust || same_event(&items[next], &items[at]));
            free(items[next].bytes);
        }
        if (clear)
            items[kept++] = items[at];
        else
            free(items[at].bytes);
    }
    salvage->events.count = kept;
}

static void note_last_events(struct salvage *salvage)
{
    for (size_t i = 0; i < salvage->events.count; i++) {
        const struct found_event *event = &salvage->events.items[i];
        struct found_machine *machine = machine_of(salvage, &event->id);
        machine->has_event = true;
        machine->ended = event->final;
        machine->digest = event->digest;
    }
}

/* --- texts --- */

struct found_blob *salvage_blob(const struct salvage *salvage, char kind, const char *key)
{
    char name[1 + JOURNAL_KEY_SIZE];
    struct found_blob *blob;

    if (!text_format(name, sizeof(name), "%c%s", kind, key))
        return NULL;
    HASH_FIND_STR(salvage->blobs, name, blob);
    return blob;
}

/* Jobs say how often they were changed, the node how long its clock has gone on. */
static uint64_t age_of(const char *bytes, size_t length)
{
    json_t *json = json_loadb(bytes, length, 0, NULL);
    json_int_t changes = json_integer_value(json_object_get(json, "JobModifyIndex"));
    json_int_t clock = json_integer_value(json_object_get(json, "clock_offset_ms"));

    json_decref(json);
    return (uint64_t)(changes > clock ? changes : clock);
}

static void take_blob(void *ctx, enum journal_trust trust, bool meta, const char *key,
                      const void *bytes, size_t length)
{
    struct salvage *salvage = ctx;
    struct found_blob *blob = salvage_blob(salvage, meta ? 'm' : 's', key);
    uint64_t age = age_of(bytes, length);

    if (blob == NULL) {
        blob = calloc(1, sizeof(*blob));
        check(blob != NULL);
        (void)text_format(blob->key, sizeof(blob->key), "%c%s", meta ? 'm' : 's', key); /* fits */
        HASH_ADD_STR(salvage->blobs, key, blob);
    } else if (blob->trust > trust || (blob->trust == trust && blob->age >= age)) {
        return;
    }
    free(blob->bytes);
    blob->trust = trust;
    blob->age = age;
    blob->bytes = copy_of(bytes, length);
    blob->length = length;
}

static void take_put_aside(void *ctx, enum journal_trust trust,
                           const struct journal_quarantined *item)
{
    struct salvage *salvage = ctx;

    if (trust == JOURNAL_DOUBTFUL)
        return; /* dropped, perhaps, and of interest to nobody but people */
    for (size_t i = 0; i < salvage->put_aside.count; i++) {
        if (salvage->put_aside.items[i].item.number == item->number)
            return;
    }
    struct found_item *found = list_more(&salvage->put_aside);
    found->item = *item;
    found->item.bytes = copy_of(item->bytes, item->length);
}

/* --- a commit that was never whole --- */

static bool has_jobs(const struct salvage *salvage)
{
    const struct found_blob *blob = salvage->blobs;

    while (blob != NULL && !text_starts_with(blob->key, "sjob/"))
        blob = blob->hh.next;
    return blob != NULL;
}

/* EVENT gives an alloc to the node, and the job that it is of is nowhere. */
static bool lacks_its_job(const struct salvage *salvage, const struct journal_event *event)
{
    const struct alloc_assign *assign = event->event.payload;
    char key[JOURNAL_KEY_SIZE];

    return event->id.kind == MACHINE_ALLOC && event->event.kind == AE_ASSIGN &&
           text_format(key, sizeof(key), "job/%s/%s", assign->namespace, assign->job_id) &&
           salvage_blob(salvage, 's', key) == NULL;
}

/* Where the head of the last commit is not known, the newest events may be of one that the power
 * has cut short: some of its pages are there, and others are not.  Nobody has had an answer to it,
 * and nothing of it was begun: if what came with an alloc is missing, it has not been. */
static void drop_half(struct salvage *salvage)
{
    size_t at = salvage->events.count;
    struct journal_event event;
    uint64_t turn = 0;
    bool is_half = false;

    if (salvage->file.certain || !has_jobs(salvage))
        return; /* of servers' allocs no job is kept */
    void *payload = malloc(FSM_PAYLOAD_BYTES_MAX);
    check(payload != NULL);
    for (; at > 0; at--) {
        salvage_event(&salvage->events.items[at - 1], &event, payload);
        if (turn != 0 && event.turn != turn)
            break;
        turn = event.turn;
        is_half |= lacks_its_job(salvage, &event);
    }
    free(payload);
    if (!is_half)
        return;
    salvage_say(salvage, "half of the last commit is there: it is left out, %zu events",
                salvage->events.count - at);
    salvage->file.next = salvage->events.items[at].sequence;
    for (size_t i = at; i < salvage->events.count; i++)
        free(salvage->events.items[i].bytes);
    salvage->events.count = at;
}

/* --- all of it --- */

int salvage_collect(struct salvage *salvage, const char *path, struct err *err)
{
    const struct journal_salvaging to = {
        .ctx = salvage,
        .event = take_event,
        .record = take_record,
        .blob = take_blob,
        .quarantined = take_put_aside,
    };
    int code = journal_salvage(path, &to, &salvage->file, err);

    if (code < 0)
        return code;
    order_events(salvage);
    drop_half(salvage);
    note_last_events(salvage);
    return 0;
}

void salvage_free(struct salvage *salvage)
{
    struct found_machine *machine, *machine_next;
    struct found_blob *blob, *blob_next;

    HASH_ITER(hh, salvage->machines, machine, machine_next)
    {
        HASH_DEL(salvage->machines, machine);
        for (size_t i = 0; i < machine->records.count; i++)
            free(machine->records.items[i].record);
        free(machine->records.items);
        free(machine->state);
        free(machine->base);
        free(machine);
    }
    HASH_ITER(hh, salvage->blobs, blob, blob_next)
    {
        HASH_DEL(salvage->blobs, blob);
        free(blob->bytes);
        free(blob);
    }
    for (size_t i = 0; i < salvage->events.count; i++)
        free(salvage->events.items[i].bytes);
    free(salvage->events.items);
    for (size_t i = 0; i < salvage->put_aside.count; i++)
        free((void *)(uintptr_t)salvage->put_aside.items[i].item.bytes); /* our own copy */
    free(salvage->put_aside.items);
}
