/*
 * One turn becomes one transaction (journal.h).
 *
 * The writer below is run again when the map had to grow, so it changes nothing but the store.
 */
#include "journal/part.h"

#include <stdio.h>
#include <string.h>

struct turn {
    struct journal *journal;
    const struct journal_batch *batch;
};

static int put_events(struct store_txn *txn, const struct turn *turn, struct err *err)
{
    const struct journal_batch *batch = turn->batch;
    struct store_cursor cursor;
    int code;

    if (batch->events_count == 0)
        return 0;
    code = store_cursor_open(txn, STORE_LOG, &cursor, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < batch->events_count && code == 0; i++) {
        const struct journal_event *event = &batch->events[i];
        check(event->sequence == turn->journal->next + i);
        check(event->issues_count <= FSM_EFFECTS_MAX);
        struct key key = key_of_number(event->sequence);
        struct codec_value value =
            codec_encode_event(turn->journal->codec, event, key_seal(STORE_LOG, key_bytes(&key)));
        code = store_cursor_append(
            &cursor, key_bytes(&key),
            (struct store_bytes){.bytes = value.bytes, .length = value.length}, err);
    }
    store_cursor_close(&cursor);
    return code;
}

/* Deleting what is not there is no error: nothing needs to be known before. */
static int put_or_delete(struct store_txn *txn, enum store_table table, const struct key *key,
                         const struct codec_value *value, struct err *err)
{
    if (value != NULL)
        return store_put(txn, table, key_bytes(key),
                         (struct store_bytes){.bytes = value->bytes, .length = value->length}, err);
    int code = store_delete(txn, table, key_bytes(key), err);
    return code == ERR_GONE ? 0 : code;
}

static int put_records(struct store_txn *txn, struct codec *codec, enum store_table table,
                       const struct journal_record *records, size_t count, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        const struct machine *record = records[i].record;
        struct key key = key_of_machine(&records[i].id);
        struct codec_value value;

        if (record != NULL) {
            check(record->kind == records[i].id.kind);
            value = codec_encode_record(codec, record, key_seal(table, key_bytes(&key)));
        }
        code = put_or_delete(txn, table, &key, record != NULL ? &value : NULL, err);
    }
    return code;
}

static int put_blobs(struct store_txn *txn, enum store_table table,
                     const struct journal_blob *blobs, size_t count, struct err *err)
{
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        struct key key = key_of_text(blobs[i].key);
        check(table != STORE_META || !text_starts_with(blobs[i].key, "journal/"));
        if (blobs[i].bytes != NULL)
            code = value_put(txn, table, &key, blobs[i].bytes, blobs[i].length, err);
        else
            code = put_or_delete(txn, table, &key, NULL, err);
    }
    return code;
}

static int trim(struct store_txn *txn, uint64_t below, uint64_t next, struct err *err)
{
    struct key name = key_of_text(META_SEQUENCE);
    struct store_cursor cursor;
    struct store_bytes key, value;
    uint64_t number;
    char text[24];

    /* The numbers go on even when no event is left to count from. */
    text_format(text, sizeof(text), "%llu", (unsigned long long)next);
    int code = value_put(txn, STORE_META, &name, text, strlen(text), err);
    if (code == 0)
        code = store_cursor_open(txn, STORE_LOG, &cursor, err);
    if (code < 0)
        return code;
    code = store_cursor_seek(&cursor, (struct store_bytes){0}, &key, &value, err);
    while (code == 0 && (!key_to_number(key, &number) || number < below)) {
        code = store_cursor_delete(&cursor, err);
        if (code == 0)
            code = store_cursor_next(&cursor, &key, &value, err);
    }
    store_cursor_close(&cursor);
    return code == ERR_GONE ? 0 : code;
}

static int write_turn(struct store_txn *txn, void *ctx, struct err *err)
{
    const struct turn *turn = ctx;
    const struct journal_batch *batch = turn->batch;
    struct codec *codec = turn->journal->codec;

    check(txn->store == turn->journal->store);
    int code = put_events(txn, turn, err);
    if (code == 0)
        code = put_records(txn, codec, STORE_STATE, batch->records, batch->records_count, err);
    if (code == 0)
        code = put_records(txn, codec, STORE_BASE, batch->bases, batch->bases_count, err);
    if (code == 0)
        code = put_blobs(txn, STORE_SPEC, batch->specs, batch->specs_count, err);
    if (code == 0)
        code = put_blobs(txn, STORE_META, batch->metas, batch->metas_count, err);
    if (code == 0 && batch->trim_below > turn->journal->first)
        code = trim(txn, batch->trim_below, turn->journal->next + batch->events_count, err);
    return code;
}

static int check_sizes(const struct journal_blob *blobs, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (blobs[i].bytes != NULL && blobs[i].length > JOURNAL_VALUE_BYTES_MAX)
            return err_set(err, ERR_LIMIT, "%s has %zu bytes, a value may have %d", blobs[i].key,
                           blobs[i].length, JOURNAL_VALUE_BYTES_MAX);
    }
    return 0;
}

int journal_commit(struct journal *journal, const struct journal_batch *batch, struct err *err)
{
    struct turn turn = {.journal = journal, .batch = batch};
    uint64_t trim_below = batch->trim_below > journal->first ? batch->trim_below : 0;

    check(journal->mode == JOURNAL_WRITE);
    check(journal->first <= journal->next);
    check(implies(batch->events_count > 0, batch->events != NULL));
    check(implies(batch->records_count > 0, batch->records != NULL));
    check(implies(batch->bases_count > 0, batch->bases != NULL));
    if (batch->events_count == 0 && batch->records_count == 0 && batch->specs_count == 0 &&
        batch->metas_count == 0 && batch->bases_count == 0 && trim_below == 0)
        return 0;
    int code = check_sizes(batch->specs, batch->specs_count, err);
    if (code == 0)
        code = check_sizes(batch->metas, batch->metas_count, err);
    if (code < 0)
        return code;
    code = store_write(journal->store, write_turn, &turn, err);
    if (code < 0) {
        bool said = code == ERR_FULL || code == ERR_REFUSED || code == ERR_LIMIT;
        if (!said && err != NULL)
            err->code = ERR_IO;
        return said ? code : ERR_IO;
    }
    journal->next += batch->events_count;
    if (trim_below != 0)
        journal->first = trim_below < journal->next ? trim_below : journal->next;
    check(journal->first <= journal->next);
    return 0;
}

/* --- the ends of the log --- */

/* True for an event that the log may go on behind. */
static bool is_sound(struct store_bytes key, struct store_bytes value, uint64_t *ret_number)
{
    struct store_bytes bytes;

    return key_to_number(key, ret_number) && *ret_number <= NUMBER_BEGIN_MAX &&
           value_open(STORE_LOG, key, value, &bytes);
}

static int last_sequence(struct store_txn *txn, uint64_t *ret_sequence, struct err *err)
{
    struct key name = key_of_text(META_SEQUENCE);
    struct store_bytes value, text;
    char number[24] = "";

    int code = store_get(txn, STORE_META, key_bytes(&name), &value, err);
    if (code == ERR_GONE)
        return 0;
    if (code < 0)
        return code;
    if (!value_open(STORE_META, key_bytes(&name), value, &text) || text.length >= sizeof(number))
        return 0; /* the log itself still tells, unless it is empty */
    memcpy(number, text.bytes, text.length);
    uint64_t sequence;
    if (text_to_u64(number, &sequence) && sequence > 0 && sequence <= NUMBER_BEGIN_MAX)
        *ret_sequence = sequence; /* otherwise as above */
    return 0;
}

int log_ends(struct store_txn *txn, uint64_t *ret_first, uint64_t *ret_next, struct err *err)
{
    struct store_cursor cursor;
    struct store_bytes key, value;
    uint64_t first = 0, last = 0, next = 1;

    int code = last_sequence(txn, &next, err);
    if (code == 0)
        code = store_cursor_open(txn, STORE_LOG, &cursor, err);
    if (code < 0)
        return code;
    /* A damaged key must not decide where the log goes on: its value would not match it. */
    code = store_cursor_last(&cursor, &key, &value, err);
    while (code == 0 && !is_sound(key, value, &last))
        code = store_cursor_previous(&cursor, &key, &value, err);
    if (code == 0) {
        code = store_cursor_seek(&cursor, (struct store_bytes){0}, &key, &value, err);
        while (code == 0 && !is_sound(key, value, &first))
            code = store_cursor_next(&cursor, &key, &value, err);
    } else if (code == ERR_GONE) {
        last = 0;
    }
    store_cursor_close(&cursor);
    if (code < 0 && code != ERR_GONE)
        return code;
    next = last + 1 > next ? last + 1 : next;
    *ret_next = next;
    *ret_first = code == ERR_GONE ? next : first;
    return 0;
}

static uint64_t read_end(struct journal *journal, bool of_next)
{
    struct store_txn txn;
    uint64_t first = 0, next = 0;

    if (store_read_begin(journal->store, &txn, NULL) < 0)
        return 0;
    int code = log_ends(&txn, &first, &next, NULL);
    store_read_end(&txn);
    return code < 0 ? 0 : of_next ? next : first;
}

uint64_t journal_next_sequence(struct journal *journal)
{
    return journal->mode == JOURNAL_WRITE ? journal->next : read_end(journal, true);
}

uint64_t journal_first_sequence(struct journal *journal)
{
    return journal->mode == JOURNAL_WRITE ? journal->first : read_end(journal, false);
}
