/*
 * The store: tables of bytes in one LMDB environment.
 *
 * It knows transactions, the growing of the map, and what must happen after LMDB has failed; it
 * knows nothing of records and events.  Above it no transaction outlives a function, nothing is
 * written while something is being read, and the process that opened it is the one that uses it.
 */
#ifndef CAIRN_JOURNAL_STORE_H
#define CAIRN_JOURNAL_STORE_H

#include "base/base.h"

struct MDB_cursor;
struct MDB_txn;
struct store;

/*    table        name          */
#define STORE_TABLES(X)                                                                            \
    X(LOG, "log")                                                                                  \
    X(STATE, "state")                                                                              \
    X(BASE, "base")                                                                                \
    X(SPEC, "spec")                                                                                \
    X(META, "meta")                                                                                \
    X(QUARANTINE, "quarantine")

enum store_table {
#define X(table, name) STORE_##table,
    STORE_TABLES(X)
#undef X
        STORE_TABLE_COUNT,
};

const char *store_table_name(enum store_table table);

struct store_options {
    const char *path; /* the directory, or the data file if is_file */
    bool write;
    bool is_file; /* a private copy: no directory, no locks */
    bool no_lock; /* reading where LMDB's lock file cannot be used */
};

/* ERR_CORRUPT: not a store of ours, or damaged; ERR_GONE: no tables in it (reading only). */
int store_open(const struct store_options *options, struct store **ret_store, struct err *err);
void store_close(struct store *store);

/* --- transactions --- */

struct store_txn {
    struct store *store;
    struct MDB_txn *txn;
    bool map_full;
    uint32_t entries; /* written */
};

struct store_bytes {
    const void *bytes; /* borrowed until the transaction ends or changes something */
    size_t length;
};

/* Runs WRITER in a transaction and commits it with sync; when the map is full, again after growing
 * it.  Nothing has changed unless 0 is returned: the code is that of the writer, or ERR_FULL,
 * ERR_REFUSED or ERR_IO. */
typedef int store_writer(struct store_txn *txn, void *ctx, struct err *err);
int store_write(struct store *store, store_writer *writer, void *ctx, struct err *err);

int store_read_begin(struct store *store, struct store_txn *ret_txn, struct err *err);
void store_read_end(struct store_txn *txn);

/* Until store_thaw all reads see this moment. */
int store_freeze(struct store *store, struct err *err);
void store_thaw(struct store *store);

/* --- entries; ERR_GONE: no such key --- */

int store_get(struct store_txn *txn, enum store_table table, struct store_bytes key,
              struct store_bytes *ret_value, struct err *err);
int store_put(struct store_txn *txn, enum store_table table, struct store_bytes key,
              struct store_bytes value, struct err *err);
/* Room for LENGTH bytes under KEY, to be filled at once. */
int store_reserve(struct store_txn *txn, enum store_table table, struct store_bytes key,
                  size_t length, void **ret_bytes, struct err *err);
int store_delete(struct store_txn *txn, enum store_table table, struct store_bytes key,
                 struct err *err);

struct store_cursor {
    struct store_txn *txn;
    struct MDB_cursor *cursor;
};

int store_cursor_open(struct store_txn *txn, enum store_table table,
                      struct store_cursor *ret_cursor, struct err *err);
void store_cursor_close(struct store_cursor *cursor);
/* The first entry whose key is not below KEY; an empty KEY is the first of all. */
int store_cursor_seek(struct store_cursor *cursor, struct store_bytes key,
                      struct store_bytes *ret_key, struct store_bytes *ret_value, struct err *err);
int store_cursor_next(struct store_cursor *cursor, struct store_bytes *ret_key,
                      struct store_bytes *ret_value, struct err *err);
int store_cursor_last(struct store_cursor *cursor, struct store_bytes *ret_key,
                      struct store_bytes *ret_value, struct err *err);
int store_cursor_previous(struct store_cursor *cursor, struct store_bytes *ret_key,
                          struct store_bytes *ret_value, struct err *err);
int store_cursor_delete(struct store_cursor *cursor, struct err *err);
/* Adds behind the last key; where KEY is not behind it, puts it in its place. */
int store_cursor_append(struct store_cursor *cursor, struct store_bytes key,
                        struct store_bytes value, struct err *err);

/* --- figures, and upkeep --- */

struct store_figures {
    uint64_t entries[STORE_TABLE_COUNT];
    uint64_t bytes_used, bytes_map, bytes_file;
    uint32_t readers;
};

int store_figures(struct store *store, struct store_figures *ret_figures, struct err *err);
void store_clear_readers(struct store *store);

/* As journal_reserve and journal_is_tight. */
void store_reserve_room(struct store *store, uint64_t bytes);
bool store_is_tight(struct store *store);
void store_release_memory(struct store *store);
int store_copy(struct store *store, const char *path, struct err *err);

/* The commits after the next AFTER fail, COUNT of them, as if the disk had said OS_ERROR. */
void store_inject(struct store *store, int os_error, uint32_t after, uint32_t count);

#endif
