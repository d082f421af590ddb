/* The journal as a store: each call as journal/journal.h has it. */
#include "core/store.h"

static int commit(void *ctx, const struct journal_batch *batch, struct err *err)
{
    return journal_commit(ctx, batch, err);
}

static uint64_t first_sequence(void *ctx)
{
    return journal_first_sequence(ctx);
}

static uint64_t next_sequence(void *ctx)
{
    return journal_next_sequence(ctx);
}

static int each_record(void *ctx, enum machine_kind kind, journal_record_cb *cb, journal_bad *bad,
                       void *cb_ctx, struct err *err)
{
    return journal_each_record(ctx, kind, cb, bad, cb_ctx, err);
}

static int each_event(void *ctx, uint64_t first, journal_event_cb *cb, journal_bad *bad,
                      void *cb_ctx, struct err *err)
{
    return journal_each_event(ctx, first, cb, bad, cb_ctx, err);
}

static int base_read(void *ctx, const struct machine_id *id, struct machine **ret_base,
                     struct err *err)
{
    return journal_base_read(ctx, id, ret_base, err);
}

static int each_spec(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                     struct err *err)
{
    return journal_each_spec(ctx, prefix, cb, cb_ctx, err);
}

static int each_bad_spec(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err)
{
    return journal_each_bad_spec(ctx, bad, cb_ctx, err);
}

static int spec_read(void *ctx, const char *key, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    return journal_spec_read(ctx, key, ret_bytes, ret_length, err);
}

static int meta_read(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    return journal_meta_read(ctx, name, ret_bytes, ret_length, err);
}

static int quarantine(void *ctx, const char *table, const char *key, const char *reason,
                      int64_t unix_ns, struct err *err)
{
    return journal_quarantine(ctx, table, key, reason, unix_ns, err);
}

struct store store_of_journal(struct journal *journal)
{
    return (struct store){
        .ctx = journal,
        .commit = commit,
        .first_sequence = first_sequence,
        .next_sequence = next_sequence,
        .each_record = each_record,
        .each_event = each_event,
        .base_read = base_read,
        .each_spec = each_spec,
        .each_bad_spec = each_bad_spec,
        .spec_read = spec_read,
        .meta_read = meta_read,
        .quarantine = quarantine,
    };
}
