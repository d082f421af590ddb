/* The log of a world's journal (history.h): it does what it is told, check/history.c judges. */
#include "base/list.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIMIT_MIN = 4,
    LIMIT_SPREAD = 60,
    RING_MIN = 64,
};

static struct sim_logged *logged(const struct sim_history *history, uint64_t sequence)
{
    check(sequence >= history->first);
    check(sequence - history->first < history->size);
    return &history->items[sequence & (history->size - 1)];
}

/* Of the worlds whose script does not say, half keep so few events that even a small one trims; the
 * others keep as many as a node does, of which nobody reads any: then none is kept. */
static uint64_t limit_of(const struct sim *sim)
{
    if (sim->script->log_max != 0)
        return sim->script->log_max;
    if (sim_below(sim_chance(sim, LUCK_RETENTION, 0, 0), 2) == 0)
        return 0;
    return LIMIT_MIN + sim_below(sim_chance(sim, LUCK_RETENTION, 0, 1), LIMIT_SPREAD);
}

void sim_history_reset(struct sim *sim, uint64_t first)
{
    struct sim_history *history = &sim->store.history;

    history->first = history->next = history->begin = first;
    history->limit = limit_of(sim);
    history->aside.count = 0;
    if (history->bases == NULL) {
        history->bases = replay_new();
        history->again = replay_new();
    }
    replay_clear(history->bases);
}

void sim_history_free(struct sim_history *history)
{
    for (size_t i = 0; i < history->size; i++)
        free(history->items[i].payload);
    free(history->items);
    free(history->goes.items);
    free(history->aside.items);
    replay_free(history->bases);
    replay_free(history->again);
}

void sim_history_base(struct sim *sim, const struct machine_id *id, const struct machine *record)
{
    replay_base(sim->store.history.bases, id, record);
}

const struct journal_event *sim_history_at(const struct sim_history *history, uint64_t at)
{
    check(at < history->next);
    return &logged(history, at < history->first ? history->first : at)->event;
}

void sim_history_aside(struct sim *sim, const struct machine_id *id)
{
    *list_more(&sim->store.history.aside) = *id;
}

/* Room for one event more; those that are there keep their places in the order. */
static void grow(struct sim_history *history)
{
    struct sim_history larger = *history;

    if (history->next - history->first < history->size)
        return;
    larger.size = history->size < RING_MIN ? RING_MIN : history->size * 2;
    larger.items = calloc(larger.size, sizeof(*larger.items));
    check(larger.items != NULL);
    for (uint64_t at = history->first; at < history->next; at++)
        *logged(&larger, at) = *logged(history, at);
    free(history->items);
    *history = larger;
}

static void add(struct sim_history *history, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    enum fsm_payload kind = (enum fsm_payload)def->events[event->event.kind].payload;
    size_t bytes = fsm_payload_size(kind, event->event.payload);

    grow(history);
    history->next++;
    struct sim_logged *place = logged(history, history->next - 1);
    if (place->room < bytes) {
        place->payload = realloc(place->payload, bytes);
        check(place->payload != NULL);
        place->room = bytes;
    }
    place->event = *event;
    place->event.event.payload = bytes == 0 ? NULL : place->payload;
    if (bytes > 0)
        memcpy(place->payload, event->event.payload, bytes);
}

void sim_history_commit(struct sim *sim, const struct journal_batch *batch)
{
    struct sim_history *history = &sim->store.history;

    if (history->limit == 0)
        history->next += batch->events_count;
    for (size_t i = 0; i < batch->events_count && history->limit != 0; i++)
        add(history, &batch->events[i]);
    for (size_t i = 0; i < batch->bases_count; i++) {
        if (batch->bases[i].record == NULL)
            replay_forget(history->bases, &batch->bases[i].id);
        else
            replay_base(history->bases, &batch->bases[i].id, batch->bases[i].record);
    }
    if (batch->trim_below > history->first)
        history->first = batch->trim_below < history->next ? batch->trim_below : history->next;
}
