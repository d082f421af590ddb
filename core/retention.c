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
    struct replay *replay; /* bases of the machines touched by the entries being trimmed */
    struct base_list bases;
    uint64_t limit, trim_below, left;
    bool failed;
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
    retention_settle(retention);
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

static void note_base(struct retention *retention, const struct machine_id *id)
{
    for (size_t i = 0; i < retention->bases.count; i++) {
        if (machine_id_equal(&retention->bases.items[i].id, id))
            return;
    }
    *list_more(&retention->bases) = (struct journal_record){.id = *id};
}

static bool take_away(void *ctx, const struct journal_event *event)
{
    struct retention *retention = ctx;
    const struct store *store = retention->store;

    if (retention->failed || retention->left == 0)
        return false;
    bool known = replay_find(retention->replay, &event->id) != NULL;
    struct machine *base = NULL;
    if (!known && store->base_read(store->ctx, &event->id, &base, NULL) == 0)
        replay_base(retention->replay, &event->id, base);
    free(base);
    if (replay_step(retention->replay, event) != REPLAY_SAME) {
        say(retention->say, SAY_ERROR, "journal",
            "history is not trimmed: it does not replay sequence=%llu",
            (unsigned long long)event->sequence);
        retention->failed = true;
        return false;
    }
    note_base(retention, &event->id);
    retention->trim_below = event->sequence + 1;
    retention->left--;
    return true;
}

void retention_extend(struct retention *retention, struct journal_batch *batch)
{
    const struct store *store = retention->store;
    uint64_t first = store->first_sequence(store->ctx);
    uint64_t count = store->next_sequence(store->ctx) - first + batch->events_count;
    struct err err;

    check(retention->replay == NULL); /* the batch before has been settled */
    if (count <= retention->limit || retention->failed)
        return;
    retention->left = count - retention->limit;
    if (retention->left > batch->events_count + TRIM_EXTRA)
        retention->left = batch->events_count + TRIM_EXTRA;
    if (retention->left > TRIM_MAX)
        retention->left = TRIM_MAX;
    retention->replay = replay_new();
    if (store->each_event(store->ctx, first, take_away, note_damage, retention, &err) < 0)
        retention->failed = true;
    for (size_t i = 0; i < retention->bases.count; i++)
        retention->bases.items[i].record =
            replay_find(retention->replay, &retention->bases.items[i].id);
    check(implies(retention->trim_below != 0, retention->trim_below > first));
    check(retention->trim_below <= store->next_sequence(store->ctx));
    batch->bases = retention->bases.items;
    batch->bases_count = retention->bases.count;
    batch->trim_below = retention->trim_below;
}

void retention_settle(struct retention *retention)
{
    replay_free(retention->replay);
    free(retention->bases.items);
    retention->replay = NULL;
    retention->bases = (struct base_list){0};
    retention->trim_below = 0;
}
