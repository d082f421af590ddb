/*
 * Where a life is written down: the journal, or what stands for it.
 *
 * The daemon's is LMDB (store_of_journal), the laboratory's is in memory.  Calls, callbacks and
 * errors are those of journal/journal.h, which says more about each.
 */
#ifndef CAIRN_CORE_STORE_H
#define CAIRN_CORE_STORE_H

#include "journal/journal.h"

struct store {
    void *ctx;
    /* Makes the batch durable, whole or not at all. */
    int (*commit)(void *ctx, const struct journal_batch *batch, struct err *err);
    uint64_t (*first_sequence)(void *ctx);
    uint64_t (*next_sequence)(void *ctx);
    int (*each_record)(void *ctx, enum machine_kind kind, journal_record_cb *cb, journal_bad *bad,
                       void *cb_ctx, struct err *err);
    int (*each_event)(void *ctx, uint64_t first, journal_event_cb *cb, journal_bad *bad,
                      void *cb_ctx, struct err *err);
    /* The base record is owned by the caller. */
    int (*base_read)(void *ctx, const struct machine_id *id, struct machine **ret_base,
                     struct err *err);
    int (*each_spec)(void *ctx, const char *prefix, journal_blob_cb *cb, void *cb_ctx,
                     struct err *err);
    int (*each_bad_spec)(void *ctx, journal_bad *bad, void *cb_ctx, struct err *err);
    /* Both owned by the caller. */
    int (*spec_read)(void *ctx, const char *key, char **ret_bytes, size_t *ret_length,
                     struct err *err);
    int (*meta_read)(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                     struct err *err);
    /* Takes a damaged entry out of the way; NULL: the store is only looked at. */
    int (*quarantine)(void *ctx, const char *table, const char *key, const char *reason,
                      int64_t unix_ns, struct err *err);
};

/* JOURNAL as a store; it stays the caller's. */
struct store store_of_journal(struct journal *journal);

#endif
