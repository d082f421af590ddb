/*
 * journal: the store.  One LMDB environment, one writing process, one transaction a turn.
 *
 *   log         sequence           event record: what came, what it led to, digest of the record
 *   state       kind + id          the machine's record as it is now
 *   base        kind + id          the machine's record where its history in `log` begins
 *   spec        key                what was asked for ("alloc/<id>", "job/<namespace>/<id>")
 *   meta        name               schema version, node id, boot id, clock, counters, metadata
 *   quarantine  sequence           whatever could not be read, with the reason
 *
 * Records are FlatBuffers, verified before they are read; FlatBuffers types do not leave the room
 * (codec.cc).  Stepping the log from the bases gives the states again, byte for byte; `base` exists
 * so that history can be trimmed without losing that.
 *
 * What binds us (lmdb.h, caveats): the environment is opened once in a process and never used
 * after a fork; no read transaction outlives a function; the directory is on a local file system.
 * Other processes may read while the daemon writes.
 */
#ifndef CAIRN_JOURNAL_JOURNAL_H
#define CAIRN_JOURNAL_JOURNAL_H

#include "base/base.h"
#include "fsm/fsm.h"

enum {
    JOURNAL_SCHEMA = 1,
    JOURNAL_KEY_SIZE = 256, /* of specs and meta, NUL included */
    JOURNAL_VALUE_BYTES_MAX = 4 << 20,
    JOURNAL_PATH_SIZE = 4096, /* of its directory, NUL included */
};

struct journal;

enum journal_mode {
    JOURNAL_WRITE, /* the daemon: creates what is missing, holds the lock */
    JOURNAL_READ,  /* tools: live, stopped or copied journal; changes nothing */
    /* The daemon, where the file system is read-only: what it writes stays in memory. */
    JOURNAL_VOLATILE,
};

/* Opens the journal in the directory PATH.  ERR_EXISTS: another daemon holds it, ERR names its pid;
 * ERR_UNSUPPORTED: a newer schema, untouched; ERR_CORRUPT: not a journal or not readable at all;
 * ERR_GONE: reading, and there is none or it was never used; ERR_FULL, ERR_REFUSED, ERR_IO: as of
 * journal_commit.  An older schema is migrated when writing, and read through the same migration
 * when reading.  The same journal is opened once in a process. */
int journal_open(const char *path, enum journal_mode mode, struct journal **ret_journal,
                 struct err *err);
void journal_close(struct journal *journal);

/* The directory of the journal that PATH names: that directory itself, a data directory, or the
 * data file in it.  ERR_GONE: there is none; ERR_REFUSED: it may not be read by this user;
 * ERR_INVALID: PATH is some other file. */
int journal_locate(const char *path, char ret_path[JOURNAL_PATH_SIZE], struct err *err);

/* --- one turn --- */

struct journal_event {
    uint64_t sequence; /* assigned by the turn: previous + 1 */
    uint64_t turn;
    uint64_t seed; /* fsm_now of the step */
    uint64_t now_ms;
    int64_t unix_ns;
    uint32_t peers;
    uint32_t guard; /* of the row taken: fsm_guard_mark() */
    struct machine_id id;
    struct fsm_event event; /* reply is not stored; payload borrowed for the call */
    uint16_t row;           /* as fsm_row_marked() finds it here */
    uint8_t before, after;  /* states */
    uint8_t issues_count;
    struct fsm_issue issues[FSM_EFFECTS_MAX];
    uint64_t digest; /* of the record after the step */
};

struct journal_record {
    struct machine_id id;
    const struct machine *record; /* NULL: delete it */
};

struct journal_blob {
    char key[JOURNAL_KEY_SIZE];
    const void *bytes; /* NULL: delete it */
    size_t length;
};

/* All of it, or nothing, is on the disk when journal_commit returns 0. */
struct journal_batch {
    const struct journal_event *events;
    size_t events_count;
    const struct journal_record *records;
    size_t records_count;
    const struct journal_blob *specs;
    size_t specs_count;
    const struct journal_blob *metas;
    size_t metas_count;
    const struct journal_record *bases; /* retention: where histories begin now */
    size_t bases_count;
    uint64_t trim_below; /* and which events it made unnecessary; 0: none */
};

/* ERR_FULL (disk or quota), ERR_IO, ERR_REFUSED (read-only file system): nothing has changed, and
 * the same batch may be committed again later.  A full map is grown and does not show. */
int journal_commit(struct journal *journal, const struct journal_batch *batch, struct err *err);

/* --- reading ---
 *
 * Pointers given to callbacks are borrowed until the callback returns.  A callback may read the
 * journal, but not write it or close it.  Each call sees one moment of the journal. */

/* Until journal_thaw all reads see the same moment, however much the daemon writes: for tools that
 * compare tables.  Reading mode only, and not for long: the daemon keeps all pages meanwhile. */
int journal_freeze(struct journal *journal, struct err *err);
void journal_thaw(struct journal *journal);

/* The sequence the next event gets, and the lowest one still stored. */
uint64_t journal_next_sequence(struct journal *journal);
uint64_t journal_first_sequence(struct journal *journal);

/* What a reader does with something that cannot be read: called instead of the normal callback.
 * TABLE and KEY name it as journal_quarantine takes it, BYTES are as stored.  Where a walk has no
 * such callback (NULL, or none in its list) it passes over what is bad, goes on to its end, and
 * then returns ERR_CORRUPT with the first reason. */
typedef void journal_bad(void *ctx, const char *table, const char *key, const void *bytes,
                         size_t length, const char *reason);

/* The machine that KEY, "task/<id>", names where it stands for a record or base; false if it names
 * none, as a key that could not be read. */
bool journal_id_of_key(const char *key, struct machine_id *ret_id);
void journal_key_of_id(const struct machine_id *id, char ret_key[JOURNAL_KEY_SIZE]);

/* Each record of KIND in id order.  A callback that returns false ends the walk. */
typedef bool journal_record_cb(void *ctx, const struct machine_id *id,
                               const struct machine *record);
int journal_each_record(struct journal *journal, enum machine_kind kind, journal_record_cb *cb,
                        journal_bad *bad, void *ctx, struct err *err);
int journal_each_base(struct journal *journal, enum machine_kind kind, journal_record_cb *cb,
                      journal_bad *bad, void *ctx, struct err *err);

/* One base into a new buffer of FSM_RECORD_BYTES_MAX bytes owned by the caller; ERR_GONE if there
 * is none, ERR_CORRUPT if it cannot be read. */
int journal_base_read(struct journal *journal, const struct machine_id *id,
                      struct machine **ret_record, struct err *err);

/* Events from FIRST on, in order, in constant memory; *event.payload is decoded. */
typedef bool journal_event_cb(void *ctx, const struct journal_event *event);
int journal_each_event(struct journal *journal, uint64_t first, journal_event_cb *cb,
                       journal_bad *bad, void *ctx, struct err *err);

/* One blob into a new buffer owned by the caller (a NUL behind it); ERR_GONE if there is none. */
int journal_spec_read(struct journal *journal, const char *key, char **ret_bytes,
                      size_t *ret_length, struct err *err);
int journal_meta_read(struct journal *journal, const char *name, char **ret_bytes,
                      size_t *ret_length, struct err *err);

typedef bool journal_blob_cb(void *ctx, const char *key, const void *bytes, size_t length);
int journal_each_spec(struct journal *journal, const char *prefix, journal_blob_cb *cb, void *ctx,
                      struct err *err);
int journal_each_meta(struct journal *journal, journal_blob_cb *cb, void *ctx, struct err *err);

/* Each spec that cannot be read: to put it into quarantine, after the walk. */
int journal_each_bad_spec(struct journal *journal, journal_bad *bad, void *ctx, struct err *err);

/* --- quarantine --- */

struct journal_quarantined {
    uint64_t number;
    int64_t unix_ns;
    char table[16];
    char key[JOURNAL_KEY_SIZE];
    char reason[ERR_TEXT_SIZE];
    const void *bytes;
    size_t length;
};

/* Moves an entry of TABLE out of the way, in a transaction of its own; ERR_GONE: there is no such
 * entry; ERR_REFUSED: open for reading; else as of journal_commit. */
int journal_quarantine(struct journal *journal, const char *table, const char *key,
                       const char *reason, int64_t unix_ns, struct err *err);

typedef bool journal_quarantined_cb(void *ctx, const struct journal_quarantined *item);
int journal_each_quarantined(struct journal *journal, journal_quarantined_cb *cb, void *ctx,
                             struct err *err);
int journal_quarantine_drop(struct journal *journal, uint64_t number, struct err *err);

/* --- for imports: what another journal held, beside what journal_commit stores --- */

/* The next event gets the number NEXT: where a log begins in mid-life, or has a hole.  ERR_INVALID:
 * that number is taken. */
int journal_continue(struct journal *journal, uint64_t next, struct err *err);

/* Puts ITEM, copied, under its own number. */
int journal_quarantine_put(struct journal *journal, const struct journal_quarantined *item,
                           struct err *err);

/* --- salvage: what a data file that is refused still holds --- */

/* How an entry was found. */
enum journal_trust {
    JOURNAL_DOUBTFUL, /* somewhere: it may be an older one, or deleted since */
    JOURNAL_REACHED,  /* where it belongs, but perhaps not in the last commit */
    JOURNAL_CURRENT,  /* in the last commit */
};

/* Who is told of each entry that is whole, in no order and perhaps twice; all is borrowed. */
struct journal_salvaging {
    void *ctx;
    void (*event)(void *ctx, enum journal_trust trust, const struct journal_event *event);
    void (*record)(void *ctx, enum journal_trust trust, bool base, const struct machine_id *id,
                   const struct machine *record);
    void (*blob)(void *ctx, enum journal_trust trust, bool meta, const char *key, const void *bytes,
                 size_t length);
    void (*quarantined)(void *ctx, enum journal_trust trust,
                        const struct journal_quarantined *item);
};

struct journal_salvaged {
    uint64_t entries;                        /* that are whole, each time they were found */
    uint64_t damaged_pages, damaged_entries; /* that trees led to, and more pages */
    uint64_t next;                           /* sequence: no event of it or behind it was found */
    uint32_t schema;                         /* 0: not found */
    bool certain;                            /* the last commit is known */
    bool has_tail;                           /* no event is missing behind the newest one */
};

/* Reads the data file in the directory PATH without LMDB, whatever is wrong with it; nobody may be
 * writing.  ERR_GONE: there is none, or nothing in it can be read; ERR_UNSUPPORTED: it is of a
 * newer schema. */
int journal_salvage(const char *path, const struct journal_salvaging *to,
                    struct journal_salvaged *ret_result, struct err *err);

/* Holds the lock of the journal in PATH without opening it, until *RET_FD is closed.  ERR_EXISTS:
 * somebody else does. */
int journal_hold(const char *path, int *ret_fd, struct err *err);

/* True if somebody does, or has it open for writing. */
bool journal_is_held(const char *path);

/* Puts the data file of the journal in FROM in the place of that of PATH, which somebody who calls
 * this holds.  The old one stays beside it, as RET_KEPT says.  At each moment one of them is in
 * its place. */
int journal_replace(const char *path, const char *from, char ret_kept[JOURNAL_PATH_SIZE],
                    struct err *err);

/* --- figures, and upkeep --- */

struct journal_figures {
    uint64_t events, states, bases, specs, quarantined;
    uint64_t bytes_used, bytes_map, bytes_file;
    uint32_t readers;
    uint32_t schema;
};

int journal_figures(struct journal *journal, struct journal_figures *ret_figures, struct err *err);

/* Keeps BYTES of room behind what is written, in blocks that the data file has already, or less on
 * a small file system: so a disk that others have filled to the last block still takes the commits
 * that end things.  Nothing where the file system cannot give blocks in advance. */
void journal_reserve(struct journal *journal, uint64_t bytes);

/* True while that room is being used up since the disk is full; looks whether it still is. */
bool journal_is_tight(struct journal *journal);

/* Clears the slots of readers that died; at start.  Commits do so every now and then. */
void journal_clear_readers(struct journal *journal);

/* Gives back memory that the last commits made resident; cheap, keeps the daemon small. */
void journal_release_memory(struct journal *journal);

/* A compact copy in the empty or new directory PATH. */
int journal_copy(struct journal *journal, const char *path, struct err *err);

/* --- the codec, for tools and tests --- */

/* Encodes into a new buffer owned by the caller. */
void journal_encode_record(const struct machine *record, void **ret_bytes, size_t *ret_length);
void journal_encode_event(const struct journal_event *event, void **ret_bytes, size_t *ret_length);

/* Decodes into RECORD, which has room for FSM_RECORD_BYTES_MAX bytes, of which those behind its
 * fsm_record_size are not touched; ERR_CORRUPT if the bytes are not a whole, valid record
 * (fsm_broken included).  For bytes that journal_encode_record made; those in the tables are sealed
 * with their key. */
int journal_decode_record(const void *bytes, size_t length, struct machine *record,
                          struct err *err);

/* Decodes into EVENT; its payload goes to PAYLOAD, which has room for FSM_PAYLOAD_BYTES_MAX bytes
 * and is not touched behind the payload's own. */
int journal_decode_event(const void *bytes, size_t length, struct journal_event *event,
                         void *payload, struct err *err);

/* --- fault injection, for tests: the n-th write fails with the given errno --- */

void journal_inject(struct journal *journal, int os_error, uint32_t after_commits, uint32_t count);

#endif
