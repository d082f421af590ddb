/*
 * LMDB, as the store uses it (store.h).  The only file that includes lmdb.h.
 *
 * Commits are durable: no NOSYNC, NOMETASYNC or WRITEMAP, so a wild pointer cannot reach the data
 * either.  What a failed commit leaves: LMDB aborts the transaction, and where even the head page
 * could not be written it refuses all further work (MDB_PANIC).  The next transaction then closes
 * the environment and opens it again; pages that an earlier, failed sync has left in doubt are
 * written anew by that transaction, since it starts from the last good head.
 *
 * What binds us (lmdb.h, caveats): once per process, never across a fork, no read transaction that
 * outlives a function (a frozen reader excepted: tools only), local file systems.  Longer than a
 * file should be, since what knows LMDB is to be in one place.
 */
#include "journal/store.h"

#include "journal/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lmdb.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const size_t MAP_BYTES_FIRST = (size_t)64 << 20;
static const size_t MAP_BYTES_MAX = PAGES_BYTES_MAX;

enum {
    SNAPSHOT_TRIES = 50,
    CLEAR_READERS_EVERY = 64, /* commits */
    CROWD_ENTRIES = 256,      /* of one transaction: about as many pages */
};

struct store {
    MDB_env *env; /* NULL after a failure that made it useless */
    MDB_dbi tables[STORE_TABLE_COUNT];
    char *path;
    bool can_write, is_file, no_lock;
    pid_t owner;
    uint32_t reads;  /* transactions open in this process */
    uint32_t writes; /* since it was opened */
    bool crowded;    /* LMDB keeps a buffer for each page of its largest transaction */
    MDB_txn *frozen;
    struct {
        uint64_t bytes; /* wanted behind the last page; 0: none */
        uint64_t until; /* the data file has all its blocks up to here */
        bool tight;     /* and gets no more */
    } reserve;
    struct {
        int os_error;
        uint32_t after, count;
    } inject;
};

const char *store_table_name(enum store_table table)
{
    switch (table) {
#define X(table_name, name)                                                                        \
    case STORE_##table_name:                                                                       \
        return name;
        STORE_TABLES(X)
#undef X
    case STORE_TABLE_COUNT:
        break;
    }
    return "?";
}

/* --- errors --- */

static bool disk_is_full(const struct store *store)
{
    struct statvfs about;

    return statvfs(store->path, &about) == 0 && about.f_bavail == 0;
}

/* Error of LMDB call DOING; RC is an errno or one of LMDB's own codes. */
static int fail(const struct store *store, int rc, struct err *err, const char *doing)
{
    int code = ERR_IO;

    if (rc > 0) {
        if (rc == EIO && disk_is_full(store))
            rc = ENOSPC; /* LMDB calls every short write EIO */
        code = err_os(err, err_from_errno(rc), rc, "%s", doing);
    } else if (rc == MDB_NOTFOUND) {
        code = err_set(err, ERR_GONE, "%s: no such entry", doing);
    } else if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID ||
               rc == MDB_VERSION_MISMATCH || rc == MDB_INCOMPATIBLE) {
        code = err_set(err, ERR_CORRUPT, "%s: %s", doing, mdb_strerror(rc));
    } else if (rc == MDB_TXN_FULL || rc == MDB_BAD_VALSIZE) {
        code = err_set(err, ERR_LIMIT, "%s: %s", doing, mdb_strerror(rc));
    } else if (rc == MDB_MAP_FULL) {
        code = err_set(err, ERR_FULL, "%s: the map is full", doing);
    } else {
        code = err_set(err, ERR_IO, "%s: %s", doing, mdb_strerror(rc));
    }
    if (err != NULL)
        err->recoverable = code == ERR_FULL || code == ERR_IO || code == ERR_REFUSED;
    return code;
}

static int fail_txn(struct store_txn *txn, int rc, struct err *err, const char *doing)
{
    if (rc == MDB_MAP_FULL)
        txn->map_full = true;
    return fail(txn->store, rc, err, doing);
}

/* --- opening --- */

static int data_file_open(const struct store *store)
{
    char name[PATH_MAX];

    if (store->is_file)
        return open(store->path, O_RDONLY | O_CLOEXEC);
    if (!text_format(name, sizeof(name), "%s/data.mdb", store->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* LMDB maps its lock file as it is, and on a full disk a hole in it kills whoever touches it: so it
 * gets its blocks before. */
static int lock_file_fill(const struct store *store, struct err *err)
{
    enum { LOCK_FILE_BYTES = 8192 }; /* of 126 readers, LMDB's default */
    char name[PATH_MAX];

    if (!text_format(name, sizeof(name), "%s/lock.mdb", store->path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (store->can_write ? O_CREAT : 0), 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "open LMDB's lock file");
    int rc = posix_fallocate(fd, 0, LOCK_FILE_BYTES);
    (void)close(fd); /* LMDB has not opened it yet, so no lock of ours is lost */
    return rc == 0 ? 0 : fail(store, rc, err, "make room for LMDB's lock file");
}

/* Opens the environment with a map of at least MAP_BYTES (0: as large as the file says). */
static int env_open(struct store *store, size_t map_bytes, struct err *err)
{
    unsigned flags = MDB_NOTLS;
    MDB_env *env;
    int fd;

    check(store->env == NULL);
    if (!store->is_file && !store->no_lock) {
        int code = lock_file_fill(store, err);
        if (code < 0)
            return code;
    }
    if (!store->can_write)
        flags |= MDB_RDONLY;
    if (store->is_file)
        flags |= MDB_NOSUBDIR;
    if (store->is_file || store->no_lock)
        flags |= MDB_NOLOCK;

    int rc = mdb_env_create(&env);
    if (rc != 0)
        return fail(store, rc, err, "create the environment");
    rc = mdb_env_set_maxdbs(env, STORE_TABLE_COUNT);
    if (rc == 0 && map_bytes != 0)
        rc = mdb_env_set_mapsize(env, map_bytes);
    if (rc == 0)
        rc = mdb_env_open(env, store->path, flags, 0600);
    if (rc == 0)
        rc = mdb_env_get_fd(env, &fd);
    if (rc == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) /* the one descriptor LMDB leaves open */
        rc = errno;
    if (rc != 0) {
        mdb_env_close(env); /* also after a failed mdb_env_open, says lmdb.h */
        return fail(store, rc, err, "open the data file");
    }
    store->env = env;
    return 0;
}

static bool is_empty(MDB_txn *txn)
{
    MDB_dbi main_table;
    MDB_stat about;

    return mdb_dbi_open(txn, NULL, 0, &main_table) == 0 && mdb_stat(txn, main_table, &about) == 0 &&
           about.ms_entries == 0;
}

/* Opens the tables; makes them in a new store. */
static int tables_open(struct store *store, struct err *err)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(store->env, NULL, store->can_write ? 0 : MDB_RDONLY, &txn);

    if (rc != 0)
        return fail(store, rc, err, "open the tables");
    bool empty = is_empty(txn);
    for (unsigned i = 0; rc == 0 && i < STORE_TABLE_COUNT; i++)
        rc = mdb_dbi_open(txn, store_table_name((enum store_table)i),
                          store->can_write && empty ? MDB_CREATE : 0, &store->tables[i]);
    if (rc != 0) {
        mdb_txn_abort(txn);
        if (rc == MDB_NOTFOUND && empty)
            return err_set(err, ERR_GONE, "the journal is empty");
        if (rc == MDB_NOTFOUND || rc == MDB_INCOMPATIBLE)
            return err_set(err, ERR_CORRUPT, "an LMDB data file, but not a journal");
        return fail(store, rc, err, "open the tables");
    }
    rc = mdb_txn_commit(txn);
    return rc == 0 ? 0 : fail(store, rc, err, "open the tables");
}

static void env_close(struct store *store)
{
    check(store->reads == 0);
    if (store->env != NULL)
        mdb_env_close(store->env);
    store->env = NULL;
    store->crowded = false;
}

/* Looks over the pages: a writer before it maps the file, a reader under a transaction that keeps
 * them from being used again. */
static int look_over(struct store *store, int fd, struct err *err)
{
    int code = ERR_AGAIN;

    if (store->env == NULL)
        return pages_check(fd, 0, err);
    for (int i = 0; i < SNAPSHOT_TRIES && code == ERR_AGAIN; i++) {
        MDB_txn *txn;
        int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
        if (rc == MDB_MAP_RESIZED)
            rc = mdb_env_set_mapsize(store->env, 0);
        else if (rc == 0) {
            code = pages_check(fd, mdb_txn_id(txn), err);
            mdb_txn_abort(txn);
        }
        if (rc != 0)
            return fail(store, rc, err, "read the data file");
    }
    return code;
}

static int open_checked(struct store *store, struct err *err)
{
    struct pages_head head = {0};
    struct stat about;
    int code = 0, fd = data_file_open(store);

    if (fd < 0 && (errno != ENOENT || !store->can_write))
        return err_os(err, err_from_errno(errno), errno, "open the data file");
    bool fresh = fd < 0 || (fstat(fd, &about) == 0 && about.st_size == 0);
    if (fresh && !store->can_write)
        code = err_set(err, ERR_GONE, "the journal is empty");
    if (code == 0 && !fresh)
        code = pages_head(fd, &head, err);
    if (code == 0 && !fresh && (store->can_write || store->is_file || store->no_lock))
        code = look_over(store, fd, err);
    if (code == 0) {
        size_t map_bytes = store->can_write ? MAP_BYTES_FIRST : 0;
        code = env_open(store, map_bytes > head.map_bytes ? map_bytes : head.map_bytes, err);
    }
    if (code == 0 && !store->can_write && !store->is_file && !store->no_lock)
        code = look_over(store, fd, err);
    if (code == 0)
        code = tables_open(store, err);
    if (fd >= 0)
        (void)close(fd); /* only read from; LMDB's locks are on another file */
    return code;
}

int store_open(const struct store_options *options, struct store **ret_store, struct err *err)
{
    struct store *store = calloc(1, sizeof(*store));

    check(store != NULL);
    store->path = strdup(options->path);
    check(store->path != NULL);
    store->can_write = options->write;
    store->is_file = options->is_file;
    store->no_lock = options->no_lock;
    store->owner = getpid();

    int code = open_checked(store, err);
    if (code < 0) {
        store_close(store);
        return code;
    }
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    check(store->owner == getpid());
    store_thaw(store);
    env_close(store);
    free(store->path);
    free(store);
}

/* Opens the environment again where it was closed. */
static int ready(struct store *store, struct err *err)
{
    check(store->owner == getpid()); /* never used after a fork */
    if (store->env != NULL)
        return 0;
    int code = env_open(store, store->can_write ? MAP_BYTES_FIRST : 0, err);
    if (code == 0)
        code = tables_open(store, err);
    if (code < 0)
        env_close(store);
    return code;
}

/* Begins a transaction, after whatever has to be mended first; each cure is tried once, but that of
 * a map that another process has made larger, again and again, to twice its size each time. */
static int begin(struct store *store, unsigned flags, MDB_txn **ret_txn, struct err *err)
{
    int rc = MDB_PANIC;

    for (int resized = 0, panics = 0, crowds = 0;;) {
        int code = ready(store, err);
        if (code < 0)
            return code;
        rc = mdb_txn_begin(store->env, NULL, flags, ret_txn);
        bool alone = store->reads == 0; /* else the map must stay where it is */
        if (rc == MDB_PANIC && alone && panics++ == 0) {
            env_close(store);
        } else if (rc == MDB_READERS_FULL && crowds++ == 0) {
            store_clear_readers(store);
        } else if (rc == MDB_MAP_RESIZED && alone && resized++ < 64) {
            rc = mdb_env_set_mapsize(store->env, 0);
            if (rc != 0)
                return fail(store, rc, err, "follow the map as it grows");
        } else {
            break;
        }
    }
    return rc == 0 ? 0 : fail(store, rc, err, "begin a transaction");
}

/* --- writing --- */

static int grow(struct store *store, struct err *err)
{
    MDB_envinfo about;
    int rc = mdb_env_info(store->env, &about);

    if (rc != 0)
        return fail(store, rc, err, "grow the map");
    if (about.me_mapsize > MAP_BYTES_MAX / 2)
        return err_set(err, ERR_FULL, "the journal has reached its greatest size, %zu GiB",
                       MAP_BYTES_MAX >> 30);
    rc = mdb_env_set_mapsize(store->env, about.me_mapsize * 2);
    if (rc == 0)
        return 0;
    env_close(store); /* without a map it cannot be used; the next call opens it as it was */
    return err_os(err, ERR_FULL, rc, "grow the map");
}

/* --- room in reserve ---
 *
 * A file put by, to be deleted when the disk is full, would not do: whoever fills the disk takes
 * what it leaves.  Blocks of the data file itself, behind its end, are nobody else's, and LMDB goes
 * on into them. */

static void keep_reserve(struct store *store)
{
    uint64_t bytes = store->reserve.bytes;
    MDB_envinfo about;
    MDB_stat stat;
    int fd;

    if (bytes == 0 || store->env == NULL || mdb_env_info(store->env, &about) != 0 ||
        mdb_env_stat(store->env, &stat) != 0 || mdb_env_get_fd(store->env, &fd) != 0)
        return;
    uint64_t end = ((uint64_t)about.me_last_pgno + 1) * stat.ms_psize;
    if (!store->reserve.tight && store->reserve.until >= end + bytes - bytes / 8)
        return;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)(end + bytes)) == 0) {
        store->reserve.until = end + bytes;
        store->reserve.tight = false;
    } else if (errno == ENOSPC || errno == EDQUOT) {
        store->reserve.tight = true;
    } else if (errno != EINTR) {
        store->reserve.bytes = 0; /* this file system gives none in advance */
        store->reserve.tight = false;
    }
}

void store_reserve_room(struct store *store, uint64_t bytes)
{
    enum { SHARE = 16 }; /* of a small file system */
    struct statvfs about;

    if (statvfs(store->path, &about) == 0 &&
        (uint64_t)about.f_blocks * about.f_frsize / SHARE < bytes)
        bytes = (uint64_t)about.f_blocks * about.f_frsize / SHARE;
    store->reserve.bytes = bytes;
    store->reserve.until = 0;
    keep_reserve(store);
}

bool store_is_tight(struct store *store)
{
    if (store->reserve.tight)
        keep_reserve(store);
    return store->reserve.tight;
}

static int commit(struct store_txn *txn, struct err *err)
{
    struct store *store = txn->store;

    if (store->inject.count > 0 && store->inject.after > 0) {
        store->inject.after--;
    } else if (store->inject.count > 0) {
        store->inject.count--;
        mdb_txn_abort(txn->txn);
        return fail(store, store->inject.os_error, err, "commit");
    }
    int rc = mdb_txn_commit(txn->txn);
    return rc == 0 ? 0 : fail_txn(txn, rc, err, "commit");
}

int store_write(struct store *store, store_writer *writer, void *ctx, struct err *err)
{
    check(store->can_write);
    check(store->reads == 0); /* the map could not grow */
    if (++store->writes % CLEAR_READERS_EVERY == 0)
        store_clear_readers(store); /* one that died reading keeps all later pages from reuse */
    for (;;) {
        struct store_txn txn = {.store = store};
        int code = begin(store, 0, &txn.txn, err);
        if (code < 0)
            return code;
        code = writer(&txn, ctx, err);
        store->crowded |= txn.entries > CROWD_ENTRIES;
        check(store->reads == 0); /* nothing that it began to read is left open */
        if (code == 0)
            code = commit(&txn, err);
        else
            mdb_txn_abort(txn.txn);
        keep_reserve(store);
        if (code == 0 || !txn.map_full)
            return code;
        code = grow(store, err);
        if (code < 0)
            return code;
    }
}

void store_inject(struct store *store, int os_error, uint32_t after, uint32_t count)
{
    check(os_error > 0);
    store->inject.os_error = os_error;
    store->inject.after = after;
    store->inject.count = count;
}

/* --- reading --- */

int store_read_begin(struct store *store, struct store_txn *ret_txn, struct err *err)
{
    struct store_txn txn = {.store = store, .txn = store->frozen};

    if (txn.txn == NULL) {
        int code = begin(store, MDB_RDONLY, &txn.txn, err);
        if (code < 0)
            return code;
    }
    store->reads++;
    *ret_txn = txn;
    return 0;
}

void store_read_end(struct store_txn *txn)
{
    struct store *store = txn->store;

    check(store->reads > 0);
    check(txn->txn != NULL);
    store->reads--;
    if (txn->txn != store->frozen)
        mdb_txn_abort(txn->txn);
    txn->txn = NULL;
}

int store_freeze(struct store *store, struct err *err)
{
    check(!store->can_write); /* a held transaction keeps old pages: not in the daemon */
    check(store->frozen == NULL);
    check(store->reads == 0);
    return begin(store, MDB_RDONLY, &store->frozen, err);
}

void store_thaw(struct store *store)
{
    check(store->reads == 0);
    if (store->frozen != NULL)
        mdb_txn_abort(store->frozen);
    store->frozen = NULL;
}

/* --- entries --- */

static MDB_val val_of(struct store_bytes bytes)
{
    return (MDB_val){.mv_size = bytes.length, .mv_data = (void *)(uintptr_t)bytes.bytes};
}

static struct store_bytes bytes_of(MDB_val val)
{
    return (struct store_bytes){.bytes = val.mv_data, .length = val.mv_size};
}

int store_get(struct store_txn *txn, enum store_table table, struct store_bytes key,
              struct store_bytes *ret_value, struct err *err)
{
    check(txn->txn != NULL);
    check(table < STORE_TABLE_COUNT);
    MDB_val at = val_of(key), value;
    int rc = mdb_get(txn->txn, txn->store->tables[table], &at, &value);

    if (rc != 0)
        return fail_txn(txn, rc, err, "read an entry");
    *ret_value = bytes_of(value);
    return 0;
}

int store_put(struct store_txn *txn, enum store_table table, struct store_bytes key,
              struct store_bytes value, struct err *err)
{
    check(txn->store->can_write);
    check(key.length > 0);
    check(value.length > 0); /* each begins with its check */
    MDB_val at = val_of(key), to = val_of(value);
    int rc = mdb_put(txn->txn, txn->store->tables[table], &at, &to, 0);

    txn->entries++;
    return rc == 0 ? 0 : fail_txn(txn, rc, err, "write an entry");
}

int store_reserve(struct store_txn *txn, enum store_table table, struct store_bytes key,
                  size_t length, void **ret_bytes, struct err *err)
{
    check(txn->store->can_write);
    check(key.length > 0);
    MDB_val at = val_of(key), to = {.mv_size = length};
    int rc = mdb_put(txn->txn, txn->store->tables[table], &at, &to, MDB_RESERVE);

    txn->entries++;
    if (rc != 0)
        return fail_txn(txn, rc, err, "write an entry");
    *ret_bytes = to.mv_data;
    return 0;
}

int store_delete(struct store_txn *txn, enum store_table table, struct store_bytes key,
                 struct err *err)
{
    check(txn->store->can_write);
    check(key.length > 0);
    MDB_val at = val_of(key);
    int rc = mdb_del(txn->txn, txn->store->tables[table], &at, NULL);

    return rc == 0 ? 0 : fail_txn(txn, rc, err, "delete an entry");
}

int store_cursor_open(struct store_txn *txn, enum store_table table,
                      struct store_cursor *ret_cursor, struct err *err)
{
    check(txn->txn != NULL); /* no cursor outlives its transaction */
    check(table < STORE_TABLE_COUNT);
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(txn->txn, txn->store->tables[table], &cursor);

    if (rc != 0)
        return fail_txn(txn, rc, err, "read a table");
    *ret_cursor = (struct store_cursor){.txn = txn, .cursor = cursor};
    return 0;
}

void store_cursor_close(struct store_cursor *cursor)
{
    check(cursor->txn->txn != NULL);
    mdb_cursor_close(cursor->cursor);
    cursor->cursor = NULL;
}

static int cursor_get(struct store_cursor *cursor, MDB_val key, MDB_cursor_op op,
                      struct store_bytes *ret_key, struct store_bytes *ret_value, struct err *err)
{
    check(cursor->cursor != NULL);
    MDB_val value;
    int rc = mdb_cursor_get(cursor->cursor, &key, &value, op);

    if (rc != 0)
        return fail_txn(cursor->txn, rc, err, "read a table");
    *ret_key = bytes_of(key);
    *ret_value = bytes_of(value);
    return 0;
}

int store_cursor_seek(struct store_cursor *cursor, struct store_bytes key,
                      struct store_bytes *ret_key, struct store_bytes *ret_value, struct err *err)
{
    return cursor_get(cursor, val_of(key), key.length == 0 ? MDB_FIRST : MDB_SET_RANGE, ret_key,
                      ret_value, err);
}

int store_cursor_next(struct store_cursor *cursor, struct store_bytes *ret_key,
                      struct store_bytes *ret_value, struct err *err)
{
    return cursor_get(cursor, (MDB_val){0}, MDB_NEXT, ret_key, ret_value, err);
}

int store_cursor_last(struct store_cursor *cursor, struct store_bytes *ret_key,
                      struct store_bytes *ret_value, struct err *err)
{
    return cursor_get(cursor, (MDB_val){0}, MDB_LAST, ret_key, ret_value, err);
}

int store_cursor_previous(struct store_cursor *cursor, struct store_bytes *ret_key,
                          struct store_bytes *ret_value, struct err *err)
{
    return cursor_get(cursor, (MDB_val){0}, MDB_PREV, ret_key, ret_value, err);
}

int store_cursor_delete(struct store_cursor *cursor, struct err *err)
{
    check(cursor->txn->store->can_write);
    int rc = mdb_cursor_del(cursor->cursor, 0);

    return rc == 0 ? 0 : fail_txn(cursor->txn, rc, err, "delete an entry");
}

int store_cursor_append(struct store_cursor *cursor, struct store_bytes key,
                        struct store_bytes value, struct err *err)
{
    check(cursor->txn->store->can_write);
    check(key.length > 0);
    MDB_val at = val_of(key), to = val_of(value);
    int rc = mdb_cursor_put(cursor->cursor, &at, &to, MDB_APPEND);

    cursor->txn->entries++;
    if (rc == MDB_KEYEXIST) /* not behind the last one */
        rc = mdb_cursor_put(cursor->cursor, &at, &to, 0);
    return rc == 0 ? 0 : fail_txn(cursor->txn, rc, err, "write an entry");
}

/* --- figures, and upkeep --- */

static int count_line(const char *line, void *ctx)
{
    uint32_t *lines = ctx;

    (void)line; /* only their number matters */
    (*lines)++;
    return 0;
}

int store_figures(struct store *store, struct store_figures *ret_figures, struct err *err)
{
    struct store_figures figures = {0};
    struct store_txn txn;
    uint32_t lines = 0;
    MDB_envinfo about;
    struct stat file;
    uint64_t pages = 0;
    MDB_stat stat = {0};
    int fd;

    int code = ready(store, err);
    if (code < 0)
        return code;
    (void)mdb_reader_list(store->env, count_line, &lines); /* a heading, then a line for each */
    code = store_read_begin(store, &txn, err);
    if (code < 0)
        return code;
    int rc = mdb_env_info(store->env, &about);
    if (rc == 0)
        rc = mdb_env_get_fd(store->env, &fd);
    if (rc == 0 && fstat(fd, &file) != 0)
        rc = errno;
    for (unsigned i = 0; rc == 0 && i < STORE_TABLE_COUNT; i++) {
        rc = mdb_stat(txn.txn, store->tables[i], &stat);
        figures.entries[i] = stat.ms_entries;
        pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    }
    store_read_end(&txn);
    if (rc != 0)
        return fail(store, rc, err, "read the figures");
    figures.bytes_used = pages * stat.ms_psize;
    figures.bytes_map = about.me_mapsize;
    figures.bytes_file = (uint64_t)file.st_size;
    figures.readers = lines > 0 ? lines - 1 : 0;
    *ret_figures = figures;
    return 0;
}

void store_clear_readers(struct store *store)
{
    int dead;

    if (store->env != NULL && !store->no_lock && !store->is_file)
        (void)mdb_reader_check(store->env, &dead); /* a slot that stays only costs space */
}

/* Where the data file is mapped; LMDB does not say. */
static void *map_find(const struct stat *file, size_t *ret_length)
{
    char line[PATH_MAX + 128];
    void *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");

    if (maps == NULL)
        return NULL;
    while (found == NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long begin, end, inode;
        unsigned major_number, minor_number;
        if (sscanf(line, "%lx-%lx %*s %*x %x:%x %lu", &begin, &end, &major_number, &minor_number,
                   &inode) == 5 &&
            inode == file->st_ino && makedev(major_number, minor_number) == file->st_dev) {
            found = (void *)begin;
            *ret_length = end - begin;
        }
    }
    (void)fclose(maps); /* only read from */
    return found;
}

void store_release_memory(struct store *store)
{
    struct stat file;
    size_t length;
    int fd;

    if (store->env == NULL || store->reads > 0 || store->frozen != NULL)
        return;
    if (store->crowded && store->can_write) { /* its buffers go with the environment only */
        env_close(store);
        (void)malloc_trim(0); /* before lists that are hardly touched get their place */
        if (ready(store, NULL) < 0)
            return; /* the next call tries, and says it */
    }
    if (mdb_env_get_fd(store->env, &fd) != 0 || fstat(fd, &file) != 0)
        return;
    /* A shared map of a file: what is dropped here is read again from the page cache. */
    void *map = map_find(&file, &length);
    if (map != NULL)
        (void)madvise(map, length, MADV_DONTNEED); /* a hint */
}

/* LMDB would make the file readable by others, where the directory lets them in. */
int store_copy(struct store *store, const char *path, struct err *err)
{
    char name[PATH_MAX];

    int code = ready(store, err);
    if (code < 0)
        return code;
    if (!text_format(name, sizeof(name), "%s/data.mdb", path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "make the copy %s", name);
    int rc = mdb_env_copyfd2(store->env, fd, MDB_CP_COMPACT);
    if (rc == 0 && fsync(fd) != 0)
        rc = errno;
    if (close(fd) != 0 && rc == 0)
        rc = errno;
    if (rc == 0)
        return 0;
    (void)unlink(name); /* half a copy is none */
    return fail(store, rc, err, "copy the data file");
}
