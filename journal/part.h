/*
 * What the files of the room share: the open journal, and how keys and values look.
 *
 *   log, quarantine   key: the number, eight bytes, big-endian, so that order is number order
 *   state, base       key: the kind, one byte, then the id's text
 *   spec, meta        key: the text
 *
 * A value is eight bytes of check, then its bytes.  The check is sealed with table and key.
 */
#ifndef CAIRN_JOURNAL_PART_H
#define CAIRN_JOURNAL_PART_H

#include "journal/codec.h"
#include "journal/journal.h"
#include "journal/store.h"

#include <sys/types.h>

struct journal {
    struct store *store;
    struct codec *codec;
    enum journal_mode mode;
    uint64_t next, first; /* sequences; kept while writing */
    int lock_fd;          /* -1: reading */
    int copy_fd;          /* a private copy that is read instead, or -1 */
    pid_t owner;          /* the process that opened it; a child's copy does not count */
    dev_t device;
    ino_t inode;
    struct journal *next_open; /* in this process */
};

/* Names in `meta` that are the journal's own. */
#define META_SCHEMA "journal/schema"
#define META_SEQUENCE "journal/sequence" /* at least the next one; written when trimming */

/* --- keys (keys.c) --- */

struct key {
    uint8_t bytes[JOURNAL_KEY_SIZE];
    size_t length;
};

struct key key_of_number(uint64_t number);
struct key key_of_machine(const struct machine_id *id);
struct key key_of_text(const char *text);
struct store_bytes key_bytes(const struct key *key);

/* False if BYTES are no such key. */
bool key_to_number(struct store_bytes bytes, uint64_t *ret_number);
bool key_to_machine(struct store_bytes bytes, struct machine_id *ret_id);
bool key_to_text(struct store_bytes bytes, char *to, size_t size);

/* As people see it: the number, "task/<id>", the text; "raw:<hex>" for what is no key of TABLE. */
void key_print(enum store_table table, struct store_bytes bytes, char *to, size_t size);

/* What values under this key are sealed with. */
uint64_t key_seal(enum store_table table, struct store_bytes key);

/* --- values that are plain bytes (keys.c) --- */

int value_put(struct store_txn *txn, enum store_table table, const struct key *key,
              const void *bytes, size_t length, struct err *err);

/* The bytes behind the check; false if they do not match it. */
bool value_open(enum store_table table, struct store_bytes key, struct store_bytes value,
                struct store_bytes *ret_bytes);

/* An entry of the quarantine, borrowed from VALUE; false if it is none (quarantine.c). */
bool quarantine_unpack(struct store_bytes key, struct store_bytes value,
                       struct journal_quarantined *item);

/* What was renamed or made in the directory PATH survives a loss of power (journal.c). */
int directory_sync(const char *path, struct err *err);

/* --- the log's ends (commit.c) --- */

/* The sequence of the first stored event and of the next new one. */
int log_ends(struct store_txn *txn, uint64_t *ret_first, uint64_t *ret_next, struct err *err);

#endif
