/*
 * Reading (journal.h).
 *
 * What cannot be read is handed to the caller's `bad` and passed over: one bad record costs one
 * machine, never the walk (I-17).  Where the caller gave none, the walk goes to its end and then
 * returns ERR_CORRUPT with the first reason.
 */
#include "journal/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One walk over a table: who is told what. */
struct walk {
    struct journal *journal;
    enum store_table table;
    journal_bad *bad;
    void *ctx;
    bool failed; /* something was bad and nobody wanted to know */
    char reason[ERR_TEXT_SIZE];
};

static void tell_bad(struct walk *walk, struct store_bytes key, struct store_bytes value,
                     const char *reason)
{
    char name[JOURNAL_KEY_SIZE];

    key_print(walk->table, key, name, sizeof(name));
    if (walk->bad != NULL) {
        walk->bad(walk->ctx, store_table_name(walk->table), name, value.bytes, value.length,
                  reason);
        return;
    }
    if (!walk->failed)
        text_format(walk->reason, sizeof(walk->reason), "%s %s: %s", store_table_name(walk->table),
                    name, reason);
    walk->failed = true;
}

/* Takes one entry; false ends the walk. */
typedef bool take_entry(struct walk *walk, struct store_bytes key, struct store_bytes value,
                        void *state);

static int walk_table(struct walk *walk, struct store_bytes from, take_entry *take, void *state,
                      struct err *err)
{
    struct store_txn txn;
    struct store_cursor cursor;
    struct store_bytes key, value;

    check(walk->table < STORE_TABLE_COUNT);
    int code = store_read_begin(walk->journal->store, &txn, err);
    if (code < 0)
        return code;
    code = store_cursor_open(&txn, walk->table, &cursor, err);
    if (code == 0) {
        code = store_cursor_seek(&cursor, from, &key, &value, err);
        while (code == 0 && take(walk, key, value, state))
            code = store_cursor_next(&cursor, &key, &value, err);
        store_cursor_close(&cursor);
    }
    store_read_end(&txn);
    if (code < 0 && code != ERR_GONE)
        return code;
    return walk->failed ? err_set(err, ERR_CORRUPT, "%s", walk->reason) : 0;
}

/* --- records --- */

struct records {
    uint8_t kind;
    journal_record_cb *cb;
    struct machine *record;
};

static bool take_record(struct walk *walk, struct store_bytes key, struct store_bytes value,
                        void *state)
{
    const struct records *records = state;
    const uint8_t *kind = key.bytes;
    struct machine_id id;

    /* Behind the last kind come keys that are none; somebody has to report them. */
    if (key.length > 0 && *kind != records->kind && *kind < MACHINE_KIND_COUNT)
        return false;
    if (!key_to_machine(key, &id)) {
        bool last = records->kind == MACHINE_KIND_COUNT - 1;
        if (last || (key.length > 0 && *kind == records->kind))
            tell_bad(walk, key, value, "the key is damaged");
        return last || *kind == records->kind;
    }
    const char *reason = codec_decode_record(walk->journal->codec, value.bytes, value.length,
                                             key_seal(walk->table, key), records->record);
    if (reason == NULL)
        reason = fsm_senseless(&id, records->record);
    if (reason != NULL) {
        tell_bad(walk, key, value, reason);
        return true;
    }
    check(records->record->kind == records->kind);
    return records->cb(walk->ctx, &id, records->record);
}

static int each_record(struct journal *journal, enum store_table table, enum machine_kind kind,
                       journal_record_cb *cb, journal_bad *bad, void *ctx, struct err *err)
{
    struct walk walk = {.journal = journal, .table = table, .bad = bad, .ctx = ctx};
    struct records records = {.kind = (uint8_t)kind, .cb = cb};

    check((unsigned)kind < MACHINE_KIND_COUNT);
    check(cb != NULL);
    records.record = malloc(FSM_RECORD_BYTES_MAX);
    check(records.record != NULL);
    int code = walk_table(&walk, (struct store_bytes){.bytes = &records.kind, .length = 1},
                          take_record, &records, err);
    free(records.record);
    return code;
}

int journal_each_record(struct journal *journal, enum machine_kind kind, journal_record_cb *cb,
                        journal_bad *bad, void *ctx, struct err *err)
{
    return each_record(journal, STORE_STATE, kind, cb, bad, ctx, err);
}

int journal_each_base(struct journal *journal, enum machine_kind kind, journal_record_cb *cb,
                      journal_bad *bad, void *ctx, struct err *err)
{
    return each_record(journal, STORE_BASE, kind, cb, bad, ctx, err);
}

int journal_base_read(struct journal *journal, const struct machine_id *id,
                      struct machine **ret_record, struct err *err)
{
    struct key key = key_of_machine(id);
    struct store_txn txn;
    struct store_bytes value;

    int code = store_read_begin(journal->store, &txn, err);
    if (code < 0)
        return code;
    struct machine *record = malloc(FSM_RECORD_BYTES_MAX);
    check(record != NULL);
    code = store_get(&txn, STORE_BASE, key_bytes(&key), &value, err);
    if (code == 0) {
        const char *reason = codec_decode_record(journal->codec, value.bytes, value.length,
                                                 key_seal(STORE_BASE, key_bytes(&key)), record);
        if (reason == NULL)
            reason = fsm_senseless(id, record);
        if (reason != NULL)
            code = err_set(err, ERR_CORRUPT, "base of %s: %s", id->text, reason);
    }
    store_read_end(&txn);
    if (code < 0) {
        free(record);
        return code;
    }
    *ret_record = record;
    return 0;
}

/* --- events --- */

struct events {
    journal_event_cb *cb;
    void *payload;
};

static bool take_event(struct walk *walk, struct store_bytes key, struct store_bytes value,
                       void *state)
{
    const struct events *events = state;
    struct journal_event event;
    uint64_t sequence;
    const char *reason = NULL;

    if (!key_to_number(key, &sequence))
        reason = "the key is damaged";
    if (reason == NULL)
        reason = codec_decode_event(walk->journal->codec, value.bytes, value.length,
                                    key_seal(STORE_LOG, key), &event, events->payload);
    if (reason == NULL && event.sequence != sequence)
        reason = "an event with another number than its key says";
    if (reason == NULL &&
        (event.sequence > NUMBER_MAX || event.turn > NUMBER_MAX || event.now_ms > NUMBER_MAX))
        reason = "its number, turn or time is more than anything ever counted";
    if (reason != NULL) {
        tell_bad(walk, key, value, reason);
        return true;
    }
    return events->cb(walk->ctx, &event);
}

int journal_each_event(struct journal *journal, uint64_t first, journal_event_cb *cb,
                       journal_bad *bad, void *ctx, struct err *err)
{
    struct walk walk = {.journal = journal, .table = STORE_LOG, .bad = bad, .ctx = ctx};
    struct events events = {.cb = cb};
    struct key from = key_of_number(first);

    check(cb != NULL);
    events.payload = malloc(FSM_PAYLOAD_BYTES_MAX);
    check(events.payload != NULL);
    int code = walk_table(&walk, key_bytes(&from), take_event, &events, err);
    free(events.payload);
    return code;
}

/* --- blobs --- */

struct blobs {
    journal_blob_cb *cb;
    const char *prefix;
};

static bool take_blob(struct walk *walk, struct store_bytes key, struct store_bytes value,
                      void *state)
{
    const struct blobs *blobs = state;
    char name[JOURNAL_KEY_SIZE];
    struct store_bytes bytes;
    size_t length = strlen(blobs->prefix);

    if (key.length < length || memcmp(key.bytes, blobs->prefix, length) != 0)
        return false;
    if (!key_to_text(key, name, sizeof(name)) || !value_open(walk->table, key, value, &bytes)) {
        tell_bad(walk, key, value, "the bytes do not match their check");
        return true;
    }
    return blobs->cb(walk->ctx, name, bytes.bytes, bytes.length);
}

static int each_blob(struct journal *journal, enum store_table table, const char *prefix,
                     journal_blob_cb *cb, journal_bad *bad, void *ctx, struct err *err)
{
    struct walk walk = {.journal = journal, .table = table, .bad = bad, .ctx = ctx};
    struct blobs blobs = {.cb = cb, .prefix = prefix};

    check(cb != NULL);
    return walk_table(&walk, (struct store_bytes){.bytes = prefix, .length = strlen(prefix)},
                      take_blob, &blobs, err);
}

int journal_each_spec(struct journal *journal, const char *prefix, journal_blob_cb *cb, void *ctx,
                      struct err *err)
{
    return each_blob(journal, STORE_SPEC, prefix, cb, NULL, ctx, err);
}

int journal_each_meta(struct journal *journal, journal_blob_cb *cb, void *ctx, struct err *err)
{
    return each_blob(journal, STORE_META, "", cb, NULL, ctx, err);
}

static bool pass_over(void *ctx, const char *key, const void *bytes, size_t length)
{
    (void)ctx; /* it can be read, which is all that was asked */
    (void)key;
    (void)bytes;
    (void)length;
    return true;
}

int journal_each_bad_spec(struct journal *journal, journal_bad *bad, void *ctx, struct err *err)
{
    return each_blob(journal, STORE_SPEC, "", pass_over, bad, ctx, err);
}

static int read_blob(struct journal *journal, enum store_table table, const char *name,
                     char **ret_bytes, size_t *ret_length, struct err *err)
{
    struct key key;
    struct store_txn txn;
    struct store_bytes value, bytes;
    char *copy = NULL;

    if (name[0] == '\0' || strnlen(name, JOURNAL_KEY_SIZE) == JOURNAL_KEY_SIZE)
        return err_set(err, ERR_GONE, "%s: no such entry", store_table_name(table));
    key = key_of_text(name);
    int code = store_read_begin(journal->store, &txn, err);
    if (code < 0)
        return code;
    code = store_get(&txn, table, key_bytes(&key), &value, err);
    if (code == 0 && !value_open(table, key_bytes(&key), value, &bytes))
        code = err_set(err, ERR_CORRUPT, "the bytes do not match their check");
    if (code == 0) {
        copy = malloc(bytes.length + 1);
        check(copy != NULL);
        memcpy(copy, bytes.bytes, bytes.length);
        copy[bytes.length] = '\0';
        *ret_bytes = copy;
        *ret_length = bytes.length;
    }
    store_read_end(&txn);
    return code < 0 ? (err_wrap(err, "%s %s", store_table_name(table), name), code) : 0;
}

int journal_spec_read(struct journal *journal, const char *key, char **ret_bytes,
                      size_t *ret_length, struct err *err)
{
    return read_blob(journal, STORE_SPEC, key, ret_bytes, ret_length, err);
}

int journal_meta_read(struct journal *journal, const char *name, char **ret_bytes,
                      size_t *ret_length, struct err *err)
{
    return read_blob(journal, STORE_META, name, ret_bytes, ret_length, err);
}
