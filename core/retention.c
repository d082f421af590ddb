#include "core/retention.h"

#include "core/replay.h"

#include <stdlib.h>
#include <string.h>

enum { TRIM_MAX = 4096, TRIM_EXTRA = 64 };

struct base_list {
    struct journal_record *items;
    size_t count, size;
};

struct retention {
    const struct store *store;
    const struct say *say;
    struct replay *replay;  /* of the entries being trimmed, over their bases; NULL: none yet */
    struct base_list bases; /* of the machines that they belong to */
    uint64_t limit, trim_below, left;
    bool extending, failed;
};

struct retention *retention_new(const struct store *store, const struct say *say)
{
    struct retention *retention = calloc(1, sizeof(*retention));

    check(retention != NULL);
    retention->store = store;
    retention->say = say;
    retention->limit = RETENTION_EVENTS_MAX;
    return retention;
}

void retention_free(struct retention *retention)
{
    if (retention == NULL)
        return;
    replay_free(retention->replay);
    free(retention->bases.items);
    free(retention);
}

void retention_limit(struct retention *retention, uint64_t events)
{
    check(events > 0);
    retention->limit = events;
}

static void note_damage(void *ctx, const char *table, const char *key, const void *bytes,
                        size_t length, const char *reason)
{
    struct retention *retention = ctx;

    (void)bytes;
    (void)length;
    say(retention->say, SAY_WARN, "journal",
        "history is not trimmed beyond a damaged entry table=%s key=%s reason=%s", table,
        text_value(key), text_value(reason));
    retention->failed = true;
}

/* The machine as it was before EVENT, the oldest of the log.  An event from the initial state
 * begins a machine, whatever was there under its id: one that has ended since its base was stored,
 * or one whose record was put aside for damage and whose history broke off. */
static void load_base(struct retention *retention, const struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)event->id.kind);
    const struct store *store = retention->store;
    bool begins = (def->states[event->before].flags & FSM_INITIAL) != 0;
    bool known = replay_find(retention->replay, &event->id) != NULL;
    struct machine *base = NULL;

    if (!known)
        *list_more(&retention->bases) = (struct journal_record){.id = event->id};
    if (begins)
        replay_forget(retention->replay, &event->id);
    else if (!known && store->base_read(store->ctx, &event->id, &base, NULL) == 0)
        replay_base(retention->replay, &event->id, base);
    free(base);
}

/* An event that nobody's tables gave must not end the node that wants to forget it. */
static bool replays(struct replay *replay, const struct journal_event *event)
{
    enum replay_result result;
    char broken[ERR_TEXT_SIZE];

    return replay_try(replay, event, &result, broken) && result == REPLAY_SAME;
}

static bool take_away(void *ctx, const struct journal_event *event)
{
    struct retention *retention = ctx;

    if (retention->failed || retention->left == 0)
        return false;
    load_base(retention, event);
    if (!replays(retention->replay, event)) {
        say(retention->say, SAY_ERROR, "journal",
            "history is not trimmed: it does not replay sequence=%llu",
            (unsigned long long)event->sequence);
        retention->failed = true;
        retention->bases.count = 0; /* the machine's is no longer what it was before the entry */
        retention->trim_below = 0;
        return false;
    }
    retention->trim_below = event->sequence + 1;
    retention->left--;
    return true;
}

static int order(const void *a, const void *b)
{
    const struct journal_record *first = a, *second = b;

    return machine_id_order(&first->id, &second->id);
}

/* One base for each machine: one that has ended and begun again is listed twice. */
static void fill_bases(struct retention *retention)
{
    struct base_list *bases = &retention->bases;
    size_t kept = 0;

    if (bases->count > 0)
        qsort(bases->items, bases->count, sizeof(*bases->items), order);
    for (size_t i = 0; i < bases->count; i++) {
        if (kept > 0 && machine_id_equal(&bases->items[kept - 1].id, &bases->items[i].id))
            continue;
        bases->items[kept] = bases->items[i];
        bases->items[kept].record = replay_find(retention->replay, &bases->items[kept].id);
        kept++;
    }
    bases->count = kept;
}

void retention_extend(struct retention *retention, struct journal_batch *batch)
{
    const struct store *store = retention->store;
    uint64_t first = store->first_sequence(store->ctx);
    uint64_t count = store->next_sequence(store->ctx) - first + batch->events_count;
    struct err err;

    check(!retention->extending); /* the batch before has been settled */
    retention->extending = true;
    if (count <= retention->limit || retention->failed)
        return;
    if (retention->replay == NULL)
        retention->replay = replay_new();
    retention->left = count - retention->limit;
    if (retention->left > batch->events_count + TRIM_EXTRA)
        retention->left = batch->events_count + TRIM_EXTRA;
    if (retention->left > TRIM_MAX)
        retention->left = TRIM_MAX;
    if (store->each_event(store->ctx, first, take_away, note_damage, retention, &err) < 0)
        retention->failed = true;
    fill_bases(retention);
    check(implies(retention->trim_below != 0, retention->trim_below > first));
    check(retention->trim_below <= store->next_sequence(store->ctx));
    batch->bases = retention->bases.items;
    batch->bases_count = retention->bases.count;
    batch->trim_below = retention->trim_below;
}

void retention_settle(struct retention *retention)
{
    check(retention->extending);
    if (retention->replay != NULL)
        replay_clear(retention->replay);
    retention->bases.count = 0;
    retention->trim_below = 0;
    retention->extending = false;
}
