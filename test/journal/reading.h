/*
 * Reading all of a journal that may be damaged: whatever was not refused when it was opened can be
 * walked to its end, and what is bad in it is handed out.
 */
#ifndef CAIRN_TEST_JOURNAL_READING_H
#define CAIRN_TEST_JOURNAL_READING_H

#include "journal/journal.h"

static inline bool any_record(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)ctx, (void)id;
    check(fsm_broken(record) == NULL);
    return true;
}

static inline bool any_event(void *ctx, const struct journal_event *event)
{
    (void)ctx;
    check(event->id.kind < MACHINE_KIND_COUNT);
    return true;
}

static inline bool any_blob(void *ctx, const char *key, const void *bytes, size_t length)
{
    (void)ctx, (void)key;
    check(hash_bytes(0, bytes, length) != 1); /* all of it can be read */
    return true;
}

static inline void any_bad(void *ctx, const char *table, const char *key, const void *bytes,
                           size_t length, const char *reason)
{
    unsigned *bad = ctx;

    (void)table, (void)key, (void)reason;
    check(hash_bytes(0, bytes, length) != 1);
    (*bad)++;
}

/* Walks everything; the number of bad entries. */
static inline unsigned read_all(struct journal *journal)
{
    unsigned bad = 0;
    struct err err;

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        check(journal_each_record(journal, (enum machine_kind)kind, any_record, any_bad, &bad,
                                  &err) == 0);
        check(journal_each_base(journal, (enum machine_kind)kind, any_record, any_bad, &bad,
                                &err) == 0);
    }
    check(journal_each_event(journal, 0, any_event, any_bad, &bad, &err) == 0);
    int specs = journal_each_spec(journal, "", any_blob, NULL, &err);
    int metas = journal_each_meta(journal, any_blob, NULL, &err);
    check(specs == 0 || specs == ERR_CORRUPT);
    check(metas == 0 || metas == ERR_CORRUPT);
    return bad + (specs != 0 ? 1u : 0u) + (metas != 0 ? 1u : 0u);
}

#endif
