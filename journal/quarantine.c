/*
 * Quarantine (journal.h): what could not be read is moved, never thrown away.
 *
 * A quarantined value is the time, then table, key and reason as texts with their NULs, then the
 * bytes as they were found.
 */
#include "journal/part.h"

#include <stdlib.h>
#include <string.h>

static bool table_of_name(const char *name, enum store_table *ret_table)
{
    for (unsigned i = 0; i < STORE_TABLE_COUNT; i++) {
        if (text_equal(name, store_table_name((enum store_table)i))) {
            *ret_table = (enum store_table)i;
            return true;
        }
    }
    return false;
}

/* --- in --- */

struct move {
    enum store_table table;
    const char *key;
    const char *reason;
    int64_t unix_ns;
};

/* The entry that shows itself as TEXT: by walking, since a damaged key can be reached in no other
 * way. */
static int find(struct store_cursor *cursor, enum store_table table, const char *text,
                struct store_bytes *ret_value, struct err *err)
{
    char name[JOURNAL_KEY_SIZE];
    struct store_bytes key;

    int code = store_cursor_seek(cursor, (struct store_bytes){0}, &key, ret_value, err);
    while (code == 0) {
        key_print(table, key, name, sizeof(name));
        if (text_equal(name, text))
            return 0;
        code = store_cursor_next(cursor, &key, ret_value, err);
    }
    return code;
}

static int next_number(struct store_txn *txn, uint64_t *ret_number, struct err *err)
{
    struct store_cursor cursor;
    struct store_bytes key, value;
    uint64_t last;

    int code = store_cursor_open(txn, STORE_QUARANTINE, &cursor, err);
    if (code < 0)
        return code;
    code = store_cursor_last(&cursor, &key, &value, err);
    while (code == 0 && !(key_to_number(key, &last) && last <= NUMBER_BEGIN_MAX))
        code = store_cursor_previous(&cursor, &key, &value, err);
    store_cursor_close(&cursor);
    if (code < 0 && code != ERR_GONE)
        return code;
    *ret_number = code == 0 ? last + 1 : 1;
    return 0;
}

static size_t append(char *to, const void *bytes, size_t length)
{
    memcpy(to, bytes, length);
    return length;
}

static int store_item(struct store_txn *txn, const struct move *move, const char *bytes,
                      size_t length, struct err *err)
{
    const char *table = store_table_name(move->table);
    char reason[ERR_TEXT_SIZE];
    uint64_t number;

    text_copy(reason, sizeof(reason), move->reason);
    int code = next_number(txn, &number, err);
    if (code < 0)
        return code;
    size_t bytes_wanted =
        sizeof(move->unix_ns) + strlen(table) + strlen(move->key) + strlen(reason) + 3 + length;
    char *item = malloc(bytes_wanted);
    check(item != NULL);
    size_t used = append(item, &move->unix_ns, sizeof(move->unix_ns));
    used += append(item + used, table, strlen(table) + 1);
    used += append(item + used, move->key, strlen(move->key) + 1);
    used += append(item + used, reason, strlen(reason) + 1);
    used += append(item + used, bytes, length);
    check(used == bytes_wanted);
    struct key key = key_of_number(number);
    code = value_put(txn, STORE_QUARANTINE, &key, item, used, err);
    free(item);
    return code;
}

static int write_move(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct move *move = ctx;

    check(move->table != STORE_QUARANTINE); /* there is no further place */
    struct store_cursor cursor;
    struct store_bytes value;
    char *copy = NULL;
    size_t length = 0;

    int code = store_cursor_open(txn, move->table, &cursor, err);
    if (code < 0)
        return code;
    code = find(&cursor, move->table, move->key, &value, err);
    if (code == 0) {
        length = value.length; /* copied: the next write may move the page it is on */
        copy = malloc(length + 1);
        check(copy != NULL);
        memcpy(copy, value.bytes, length);
        code = store_cursor_delete(&cursor, err);
    }
    store_cursor_close(&cursor);
    if (code == 0)
        code = store_item(txn, move, copy, length, err);
    free(copy);
    return code;
}

int journal_quarantine(struct journal *journal, const char *table, const char *key,
                       const char *reason, int64_t unix_ns, struct err *err)
{
    struct move move = {.key = key, .reason = reason, .unix_ns = unix_ns};

    if (journal->mode != JOURNAL_WRITE)
        return err_set(err, ERR_REFUSED, "the journal is open for reading only");
    if (!table_of_name(table, &move.table) || move.table == STORE_QUARANTINE ||
        strnlen(key, JOURNAL_KEY_SIZE) == JOURNAL_KEY_SIZE)
        return err_set(err, ERR_GONE, "%s: no such entry", table);
    int code = store_write(journal->store, write_move, &move, err);
    return code < 0 ? (err_wrap(err, "set %s %s aside", table, key), code) : 0;
}

/* --- out --- */

/* A text with its NUL at *AT, which moves behind it; false if there is none that fits. */
static bool take_text(struct store_bytes item, size_t *at, char *to, size_t size)
{
    const char *text = (const char *)item.bytes + *at;
    size_t length = strnlen(text, item.length - *at);

    if (length == item.length - *at || length >= size)
        return false;
    text_copy(to, size, text);
    *at += length + 1;
    return true;
}

bool quarantine_unpack(struct store_bytes key, struct store_bytes value,
                       struct journal_quarantined *item)
{
    struct store_bytes bytes;
    size_t at = sizeof(item->unix_ns);

    if (!key_to_number(key, &item->number) || !value_open(STORE_QUARANTINE, key, value, &bytes) ||
        bytes.length < at)
        return false;
    memcpy(&item->unix_ns, bytes.bytes, at);
    if (!take_text(bytes, &at, item->table, sizeof(item->table)) ||
        !take_text(bytes, &at, item->key, sizeof(item->key)) ||
        !take_text(bytes, &at, item->reason, sizeof(item->reason)))
        return false;
    item->bytes = (const char *)bytes.bytes + at;
    item->length = bytes.length - at;
    return true;
}

int journal_each_quarantined(struct journal *journal, journal_quarantined_cb *cb, void *ctx,
                             struct err *err)
{
    struct store_txn txn;
    struct store_cursor cursor;
    struct store_bytes key, value;
    bool more = true;

    int code = store_read_begin(journal->store, &txn, err);
    if (code < 0)
        return code;
    code = store_cursor_open(&txn, STORE_QUARANTINE, &cursor, err);
    if (code == 0) {
        code = store_cursor_seek(&cursor, (struct store_bytes){0}, &key, &value, err);
        while (code == 0 && more) {
            struct journal_quarantined item = {0};
            if (!quarantine_unpack(key, value,
                                   &item)) { /* shown as it is: there is no further place for it */
                text_copy(item.table, sizeof(item.table), "quarantine");
                key_print(STORE_QUARANTINE, key, item.key, sizeof(item.key));
                text_copy(item.reason, sizeof(item.reason), "damaged after it was set aside");
                item.bytes = value.bytes;
                item.length = value.length;
            }
            more = cb(ctx, &item);
            if (more)
                code = store_cursor_next(&cursor, &key, &value, err);
        }
        store_cursor_close(&cursor);
    }
    store_read_end(&txn);
    return code == ERR_GONE ? 0 : code;
}

static int write_drop(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct key *key = ctx;

    return store_delete(txn, STORE_QUARANTINE, key_bytes(key), err);
}

int journal_quarantine_drop(struct journal *journal, uint64_t number, struct err *err)
{
    struct key key = key_of_number(number);

    if (journal->mode != JOURNAL_WRITE)
        return err_set(err, ERR_REFUSED, "the journal is open for reading only");
    return store_write(journal->store, write_drop, &key, err);
}
