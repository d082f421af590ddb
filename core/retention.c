#include "core/retention.h"

#include "core/replay.h"
#include "io/log.h"

#include <stdlib.h>
#include <string.h>

enum { TRIM_MAX = 4096, TRIM_EXTRA = 64 };

struct retention {
    struct journal *journal;
    struct replay *replay; /* bases of the machines touched by the entries being trimmed */
    struct journal_record *bases;
    size_t bases_count;
    uint64_t limit, trim_below, left;
    bool failed;
};

struct retention *retention_new(struct journal *journal)
{
    struct retention *retention = calloc(1, sizeof(*retention));

    check(retention != NULL);
    retention->journal = journal;
    retention->limit = RETENTION_EVENTS_MAX;
    return retention;
}

void retention_free(struct retention *retention)
{
    if (retention == NULL)
        return;
    retention_settle(retention, false);
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
    log_warn("journal", "history is not trimmed beyond a damaged entry table=%s key=%s reason=%s",
             table, log_value(key), log_value(reason));
    retention->failed = true;
}

static void note_base(struct retention *retention, const struct machine_id *id)
{
    for (size_t i = 0; i < retention->bases_count; i++) {
        if (machine_id_equal(&retention->bases[i].id, id))
            return;
    }
    retention->bases =
        realloc(retention->bases, (retention->bases_count + 1) * sizeof(*retention->bases));
    check(retention->bases != NULL);
    retention->bases[retention->bases_count++] = (struct journal_record){.id = *id};
}

static bool take_away(void *ctx, const struct journal_event *event)
{
    struct retention *retention = ctx;

    if (retention->failed || retention->left == 0)
        return false;
    bool known = replay_find(retention->replay, &event->id) != NULL;
    struct machine *base = NULL;
    if (!known && journal_base_read(retention->journal, &event->id, &base, NULL) == 0)
        replay_base(retention->replay, &event->id, base);
    free(base);
    if (replay_step(retention->replay, event) != REPLAY_SAME) {
        log_error("journal", "history is not trimmed: it does not replay sequence=%llu",
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
    uint64_t first = journal_first_sequence(retention->journal);
    uint64_t count = journal_next_sequence(retention->journal) - first + batch->events_count;
    struct err err;

    if (count <= retention->limit || retention->failed)
        return;
    retention->left = count - retention->limit;
    if (retention->left > batch->events_count + TRIM_EXTRA)
        retention->left = batch->events_count + TRIM_EXTRA;
    if (retention->left > TRIM_MAX)
        retention->left = TRIM_MAX;
    retention->replay = replay_new();
    if (journal_each_event(retention->journal, first, take_away, note_damage, retention, &err) < 0)
        retention->failed = true;
    for (size_t i = 0; i < retention->bases_count; i++)
        retention->bases[i].record = replay_find(retention->replay, &retention->bases[i].id);
    batch->bases = retention->bases;
    batch->bases_count = retention->bases_count;
    batch->trim_below = retention->trim_below;
}

void retention_settle(struct retention *retention, bool committed)
{
    (void)committed; /* what was not trimmed is found again by the next commit */
    replay_free(retention->replay);
    free(retention->bases);
    retention->replay = NULL;
    retention->bases = NULL;
    retention->bases_count = 0;
    retention->trim_below = 0;
}
