/*
 * Schemas: how a journal that an older cairn wrote becomes one of today.
 *
 * Each row of the table leads from one version to a later one, in a transaction of its own that
 * also writes the new version: a crash between two rows goes on with the second.
 */
#ifndef CAIRN_JOURNAL_MIGRATE_H
#define CAIRN_JOURNAL_MIGRATE_H

#include "journal/part.h"

struct migration {
    uint32_t from, to;
    int (*run)(struct store_txn *txn, struct err *err);
};

struct migrations {
    const struct migration *rows;
    size_t count;
};

/* What leads to JOURNAL_SCHEMA. */
extern const struct migrations migrations_known;

/* ERR_GONE: the journal has none, as it was never used. */
int schema_read(struct store_txn *txn, uint32_t *ret_schema, struct err *err);
int schema_write(struct store_txn *txn, uint32_t schema, struct err *err);

/* Brings STORE, which is open for writing, from SCHEMA to JOURNAL_SCHEMA.  ERR_UNSUPPORTED: no way
 * leads there. */
int migrate(struct store *store, uint32_t schema, const struct migrations *known, struct err *err);

/* journal_open with another table of migrations: for tests. */
int journal_open_with(const char *path, enum journal_mode mode, const struct migrations *known,
                      struct journal **ret_journal, struct err *err);

#endif
