/* Schemas (migrate.h).  The version is text under its name in `meta`; that may never change. */
#include "journal/migrate.h"

#include <stdio.h>
#include <string.h>

/* Schema 1 is the first. */
const struct migrations migrations_known = {.rows = NULL, .count = 0};

int schema_read(struct store_txn *txn, uint32_t *ret_schema, struct err *err)
{
    struct key key = key_of_text(META_SCHEMA);
    struct store_bytes value, text;
    char number[24] = "";
    uint64_t schema;

    int code = store_get(txn, STORE_META, key_bytes(&key), &value, err);
    if (code < 0)
        return code;
    if (!value_open(STORE_META, key_bytes(&key), value, &text) || text.length >= sizeof(number))
        return err_set(err, ERR_CORRUPT, "the journal's schema version is damaged");
    memcpy(number, text.bytes, text.length);
    if (!text_to_u64(number, &schema) || schema > UINT32_MAX)
        return err_set(err, ERR_CORRUPT, "the journal's schema version is damaged");
    *ret_schema = (uint32_t)schema;
    return 0;
}

int schema_write(struct store_txn *txn, uint32_t schema, struct err *err)
{
    struct key key = key_of_text(META_SCHEMA);
    char number[24];

    text_format(number, sizeof(number), "%u", schema);
    return value_put(txn, STORE_META, &key, number, strlen(number), err);
}

static int run_row(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct migration *row = ctx;

    int code = row->run(txn, err);
    return code < 0 ? code : schema_write(txn, row->to, err);
}

int migrate(struct store *store, uint32_t schema, const struct migrations *known, struct err *err)
{
    for (size_t i = 0; i < known->count && schema < JOURNAL_SCHEMA; i++) {
        struct migration row = known->rows[i];
        if (row.from != schema)
            continue;
        check(row.to > row.from);
        check(row.to <= JOURNAL_SCHEMA);
        check(row.run != NULL);
        int code = store_write(store, run_row, &row, err);
        if (code < 0)
            return err_wrap(err, "bring the journal from schema %u to %u", row.from, row.to);
        schema = row.to;
        i = SIZE_MAX; /* start over: rows are few and in any order */
    }
    if (schema != JOURNAL_SCHEMA)
        return err_set(err, ERR_UNSUPPORTED,
                       "the journal has schema %u, and no way leads from there to schema %d",
                       schema, JOURNAL_SCHEMA);
    return 0;
}
