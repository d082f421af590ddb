/*
 * The form of a state: what the core and the world hold, as numbers, and back.
 *
 * Two states are the same when nothing that follows can tell them apart.  What nobody asks for any
 * more is left out (reduce.c), and what matters by comparison only is ranked (tickets,
 * generations).  What is loaded is a record as any other, valid in itself.
 */
#include "sim/search/part.h"

#include "base/list.h"

#include <stdlib.h>
#include <string.h>

/* --- shelves --- */

enum { SHELF_TABLE_MIN = 1024 };

static uint64_t hash_of(const struct search_shelf *shelf, uint32_t number)
{
    size_t start = shelf->starts[number];

    return hash_bytes(0, shelf->bytes + start, shelf->starts[number + 1] - start);
}

static void shelf_insert(struct search_shelf *shelf, uint32_t number, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (shelf->table_size - 1);

    while (shelf->table[at] != 0)
        at = (at + 1) & (shelf->table_size - 1);
    shelf->table[at] = number;
}

static void shelf_grow(struct search_shelf *shelf, size_t length)
{
    shelf->starts = list_room(shelf->starts, &shelf->starts_size, (size_t)shelf->count + 3,
                              sizeof(*shelf->starts));
    if (shelf->count == 0)
        shelf->starts[0] = shelf->starts[1] = 0;
    shelf->bytes = list_room(shelf->bytes, &shelf->size, shelf->used + length, 1);
    if (shelf->count * 2 < shelf->table_size)
        return;
    free(shelf->table);
    shelf->table_size = shelf->table_size == 0 ? SHELF_TABLE_MIN : shelf->table_size * 2;
    shelf->table = calloc(shelf->table_size, sizeof(*shelf->table));
    check(shelf->table != NULL);
    for (uint32_t number = 1; number <= shelf->count; number++)
        shelf_insert(shelf, number, hash_of(shelf, number));
}

static uint32_t shelf_put(struct search_shelf *shelf, const void *bytes, size_t length)
{
    if (length == 0)
        return 0;
    shelf_grow(shelf, length);
    uint64_t hash = hash_bytes(0, bytes, length);
    for (uint32_t at = (uint32_t)hash; shelf->table[at & (shelf->table_size - 1)] != 0; at++) {
        uint32_t number = shelf->table[at & (shelf->table_size - 1)];
        size_t start = shelf->starts[number];
        if (shelf->starts[number + 1] - start == length &&
            memcmp(shelf->bytes + start, bytes, length) == 0)
            return number;
    }
    uint32_t number = ++shelf->count;
    memcpy(shelf->bytes + shelf->used, bytes, length);
    shelf->used += length;
    shelf->starts[number + 1] = shelf->used;
    shelf_insert(shelf, number, hash);
    return number;
}

static const unsigned char *shelf_get(const struct search_shelf *shelf, uint32_t number,
                                      size_t *ret_length)
{
    if (number == 0) {
        *ret_length = 0;
        return NULL;
    }
    check(number <= shelf->count);
    *ret_length = shelf->starts[number + 1] - shelf->starts[number];
    return shelf->bytes + shelf->starts[number];
}

void search_shelf_free(struct search_shelf *shelf)
{
    free(shelf->bytes);
    free(shelf->starts);
    free(shelf->table);
    *shelf = (struct search_shelf){0};
}

/* --- a state, while its form is made --- */

/* An event that waits. */
struct posted {
    uint8_t who, kind, lane, proposal;
    uint32_t ticket, generation, reply, size, pad; /* the payload's bytes follow */
};
_Static_assert(sizeof(struct posted) % sizeof(uint64_t) == 0, "payloads lie as they have to");

struct busy_lane {
    uint8_t who, number, effect, phase, hook, next_effect, orphaned, pad;
    uint32_t ticket, generation, next_ticket;
};

enum {
    RECORD_ROOM = 16 * 1024,
    QUEUE_ROOM = 32 * 1024,
    POSTED_MAX = 32,
    LANES_MAX = WHO_COUNT * LANE_COUNT,
    NUMBERS_MAX = 2 * LANE_COUNT + POSTED_MAX + LANE_COUNT + SEARCH_ATTEMPTS + 2,
};

/* A state outside of the core, as it is taken out or put back. */
struct search_draft {
    unsigned char records[WHO_COUNT][RECORD_ROOM] __attribute__((aligned(16)));
    uint32_t sizes[WHO_COUNT]; /* 0: there is none */
    struct busy_lane lanes[LANES_MAX];
    uint32_t lanes_count;
    unsigned char queue[QUEUE_ROOM] __attribute__((aligned(16)));
    uint32_t queue_bytes;
    struct search_world world;
};

/* Payloads begin where any of their fields may. */
static uint32_t padded(uint32_t size)
{
    return (size + 15u) & ~15u;
}

static struct machine *draft_record(struct search_draft *draft, unsigned who)
{
    return draft->sizes[who] == 0 ? NULL : (struct machine *)(void *)draft->records[who];
}

/* --- ranking --- */

struct numbers {
    uint32_t *at[NUMBERS_MAX];
    size_t count;
};

static void number_add(struct numbers *numbers, uint32_t *at)
{
    if (*at == 0)
        return;
    check(numbers->count < NUMBERS_MAX);
    numbers->at[numbers->count++] = at;
}

/* Replaces each number by its rank; returns how many different ones there are. */
static uint32_t rank(struct numbers *numbers)
{
    uint32_t ranks[NUMBERS_MAX], different[NUMBERS_MAX], highest = 0;
    size_t count = 0;

    for (size_t i = 0; i < numbers->count; i++) {
        size_t k = 0;
        while (k < count && different[k] != *numbers->at[i])
            k++;
        if (k == count)
            different[count++] = *numbers->at[i];
    }
    for (size_t i = 0; i < numbers->count; i++) {
        ranks[i] = 1;
        for (size_t k = 0; k < count; k++)
            ranks[i] += different[k] < *numbers->at[i];
        highest = ranks[i] > highest ? ranks[i] : highest;
    }
    for (size_t i = 0; i < numbers->count; i++)
        *numbers->at[i] = ranks[i];
    return highest;
}

static struct posted *posted_next(struct search_draft *draft, struct posted *posted)
{
    unsigned char *at =
        posted == NULL ? draft->queue : (unsigned char *)(posted + 1) + padded(posted->size);

    return at >= draft->queue + draft->queue_bytes ? NULL : (struct posted *)(void *)at;
}

static void rank_tickets(struct search_draft *draft, unsigned who)
{
    struct machine *record = draft_record(draft, who);
    struct numbers tickets = {.count = 0};

    for (int lane = 0; record != NULL && lane < LANE_COUNT; lane++)
        number_add(&tickets, &record->lane_ticket[lane]);
    for (uint32_t i = 0; i < draft->lanes_count; i++) {
        if (draft->lanes[i].who == who) {
            number_add(&tickets, &draft->lanes[i].ticket);
            number_add(&tickets, &draft->lanes[i].next_ticket);
        }
    }
    for (struct posted *item = posted_next(draft, NULL); item != NULL;
         item = posted_next(draft, item)) {
        if (item->who == who)
            number_add(&tickets, &item->ticket);
    }
    uint32_t highest = rank(&tickets);
    if (record != NULL)
        record->tickets = highest;
}

static void rank_generations(struct search_draft *draft, unsigned who)
{
    struct machine *record = draft_record(draft, who);
    struct numbers generations = {.count = 0};

    if (record != NULL)
        number_add(&generations, &record->generation);
    for (uint32_t i = 0; i < draft->lanes_count; i++) {
        if (draft->lanes[i].who == who)
            number_add(&generations, &draft->lanes[i].generation);
    }
    for (struct posted *item = posted_next(draft, NULL); item != NULL;
         item = posted_next(draft, item)) {
        if (item->who == who)
            number_add(&generations, &item->generation);
    }
    if (who == WHO_TASK_A || who == WHO_TASK_B) {
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++)
            number_add(&generations, &draft->world.tasks[who_task(who)].attempts[i].generation);
    }
    if (who == WHO_PLUGIN && record != NULL)
        number_add(&generations, &draft->world.plugin_generation);
    (void)rank(&generations); /* the record's own is the highest, so that the next one is new */
}

/* --- taking out --- */

static void draft_machine(struct search_draft *draft, const struct core_machine *machine,
                          unsigned who)
{
    if (machine->record != NULL) {
        uint32_t size = fsm_record_size(machine->record);
        check(size <= RECORD_ROOM);
        memcpy(draft->records[who], machine->record, size);
        draft->sizes[who] = size;
    }
    for (uint8_t number = 0; number < LANE_COUNT; number++) {
        const struct lane *lane = &machine->lanes[number];
        if (lane->effect == 0 && lane->next_effect == 0)
            continue;
        bool runs = lane->effect != 0, hook = runs && number == LANE_HOOK;
        draft->lanes[draft->lanes_count++] = (struct busy_lane){
            .who = (uint8_t)who,
            .number = number,
            .effect = lane->effect,
            .phase = hook ? lane->phase : 0,
            .hook = hook ? lane->hook : 0,
            .next_effect = lane->next_effect,
            .orphaned = lane->orphaned,
            .ticket = runs ? lane->ticket : 0,
            .generation = runs ? lane->generation : 0,
            .next_ticket = lane->next_effect == 0 ? 0 : lane->next_ticket,
        };
    }
}

static void draft_event(struct search_draft *draft, const struct core_event *from, unsigned who)
{
    const struct fsm_event *event = &from->event;
    const struct fsm_def *def = fsm_definition((enum machine_kind)from->id.kind);
    enum fsm_payload kind = (enum fsm_payload)def->events[event->kind].payload;
    uint32_t size = fsm_payload_size(kind, event->payload), room = padded(size);
    struct posted *posted = (struct posted *)(void *)(draft->queue + draft->queue_bytes);

    draft->queue_bytes += (uint32_t)sizeof(*posted) + room;
    check(draft->queue_bytes <= QUEUE_ROOM);
    memset(posted, 0, sizeof(*posted) + room);
    *posted = (struct posted){
        .who = (uint8_t)who,
        .kind = event->kind,
        .lane = event->lane,
        .proposal = from->proposal,
        .ticket = event->ticket,
        .generation = event->generation,
        .reply = (uint32_t)event->reply,
        .size = size,
    };
    if (size > 0)
        memcpy(posted + 1, event->payload, size);
}

/* All that there is, in the order of who. */
static void take_out(const struct search *search, struct search_draft *draft)
{
    const struct core_snapshot *seen = &search->seen;

    memset(draft->sizes, 0, sizeof(draft->sizes));
    draft->lanes_count = draft->queue_bytes = 0;
    draft->world = search->world;
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        const struct core_machine *machine = search_machine(search, who);
        if (machine != NULL)
            draft_machine(draft, machine, who);
    }
    check(seen->events.count <= POSTED_MAX);
    for (size_t i = 0; i < seen->events.count; i++)
        draft_event(draft, &seen->events.items[i], search_who(search, &seen->events.items[i].id));
}

/* Task events are reported only: their room is not kept. */
static uint32_t cut_events(unsigned char *record, uint32_t size)
{
    uint32_t from = offsetof(struct task, events), behind = offsetof(struct task, results_bytes);

    memmove(record + from, record + behind, size - behind);
    return size - (behind - from);
}

/* Most of a state is as in the one that it came from: looked at first, since hashing is dearer. */
static uint32_t put_part(struct search *search, unsigned part, const void *bytes, size_t length)
{
    struct search_shelf *shelf = &search->shelves[part];
    uint32_t loaded = search->loaded.parts[part];
    size_t loaded_length;
    const unsigned char *before = shelf_get(shelf, loaded, &loaded_length);

    if (length > 0 && length == loaded_length && memcmp(before, bytes, length) == 0)
        return loaded;
    return shelf_put(shelf, bytes, length);
}

struct search_form search_form(struct search *search)
{
    struct search_draft *draft = search->draft;
    struct machine *records[WHO_COUNT];
    struct search_form form;

    take_out(search, draft);
    for (unsigned who = 0; who < WHO_COUNT; who++)
        records[who] = draft_record(draft, who);
    struct search_rules rules = {
        .server = search->asked->server,
        .may_boot = draft->world.left[SIM_BOUND_BOOT] > 0,
        .queued = draft->queue_bytes > 0,
    };
    search_reduce(records, &draft->world, &rules);
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        rank_tickets(draft, who);
        rank_generations(draft, who);
    }
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        uint32_t size = draft->sizes[who];
        if (size > 0 && (who == WHO_TASK_A || who == WHO_TASK_B))
            size = cut_events(draft->records[who], size);
        form.parts[PART_RECORDS + who] =
            put_part(search, PART_RECORDS + who, draft->records[who], size);
    }
    form.parts[PART_LANES] =
        put_part(search, PART_LANES, draft->lanes, draft->lanes_count * sizeof(draft->lanes[0]));
    form.parts[PART_QUEUE] = put_part(search, PART_QUEUE, draft->queue, draft->queue_bytes);
    form.parts[PART_WORLD] = put_part(search, PART_WORLD, &draft->world, sizeof(draft->world));
    return form;
}

/* --- putting back --- */

static struct core_machine *machine_for(struct search *search, unsigned who)
{
    struct core_machine *machine = search_machine(search, who);

    if (machine == NULL) {
        machine = list_more(&search->seen.machines);
        *machine = (struct core_machine){.id = search->ids[who]};
        search->places[who] = (uint8_t)search->seen.machines.count;
    }
    return machine;
}

static void load_record(struct search *search, unsigned who, const unsigned char *bytes,
                        size_t length)
{
    unsigned char *record = search->draft->records[who];
    uint32_t from = offsetof(struct task, events), behind = offsetof(struct task, results_bytes);
    bool task = who == WHO_TASK_A || who == WHO_TASK_B;

    if (task) {
        memcpy(record, bytes, from);
        memset(record + from, 0, behind - from);
        memcpy(record + behind, bytes + from, length - from);
    } else {
        memcpy(record, bytes, length);
    }
    machine_for(search, who)->record = (struct machine *)(void *)record;
}

static void load_lanes(struct search *search, const unsigned char *bytes, size_t length)
{
    struct busy_lane busy;

    for (size_t at = 0; at < length; at += sizeof(busy)) {
        memcpy(&busy, bytes + at, sizeof(busy));
        machine_for(search, busy.who)->lanes[busy.number] = (struct lane){
            .ticket = busy.ticket,
            .generation = busy.generation,
            .next_ticket = busy.next_ticket,
            .effect = busy.effect,
            .phase = busy.phase,
            .hook = busy.hook,
            .next_effect = busy.next_effect,
            .orphaned = busy.orphaned,
        };
    }
}

static void load_queue(struct search *search, const unsigned char *bytes, size_t length)
{
    struct search_draft *draft = search->draft;

    if (length > 0)
        memcpy(draft->queue, bytes, length);
    draft->queue_bytes = (uint32_t)length;
    for (struct posted *posted = posted_next(draft, NULL); posted != NULL;
         posted = posted_next(draft, posted)) {
        *list_more(&search->seen.events) = (struct core_event){
            .id = search->ids[posted->who],
            .event = {.kind = posted->kind,
                      .lane = posted->lane,
                      .ticket = posted->ticket,
                      .generation = posted->generation,
                      .reply = posted->reply,
                      .payload = posted->size == 0 ? NULL : posted + 1},
            .proposal = posted->proposal,
        };
    }
}

void search_load(struct search *search, const struct search_form *form)
{
    const unsigned char *bytes;
    size_t length;

    search->loaded = *form;
    search->seen.machines.count = search->seen.events.count = 0;
    memset(search->places, 0, sizeof(search->places));
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        bytes = shelf_get(&search->shelves[PART_RECORDS + who], form->parts[PART_RECORDS + who],
                          &length);
        if (length > 0)
            load_record(search, who, bytes, length);
    }
    bytes = shelf_get(&search->shelves[PART_LANES], form->parts[PART_LANES], &length);
    load_lanes(search, bytes, length);
    bytes = shelf_get(&search->shelves[PART_QUEUE], form->parts[PART_QUEUE], &length);
    load_queue(search, bytes, length);
    bytes = shelf_get(&search->shelves[PART_WORLD], form->parts[PART_WORLD], &length);
    check(length == sizeof(search->world));
    memcpy(&search->world, bytes, length);
    search->seen.begun = search->world.up;
    search->seen.unswept = search->world.unswept;
    search_put(search);
}

struct search_draft *search_draft_new(void)
{
    struct search_draft *draft = calloc(1, sizeof(*draft));

    check(draft != NULL);
    return draft;
}
