/*
 * Opening and closing (journal.h).
 *
 * A writer takes the lock file, looks over the pages, brings an older schema up to date.  A reader
 * changes nothing: it uses LMDB's own lock file where there is one that it may write to, so that
 * the daemon keeps the pages it reads; else it reads without, and where somebody is writing, or the
 * schema is an older one, it reads a private copy in memory.
 */
#include "journal/copy.h"
#include "journal/lock.h"
#include "journal/migrate.h"
#include "journal/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- once per process --- */

/* LMDB's locks belong to the process: opened twice, the first close drops those of both.  That is
 * why this is known to the process, however many nodes live in it. */
static struct journal *opened;

static int enter(struct journal *journal, const char *path, struct err *err)
{
    struct stat about;

    check(journal->owner == 0);
    if (stat(path, &about) != 0)
        return err_os(err, err_from_errno(errno), errno, "open the journal in %s", path);
    for (const struct journal *other = opened; other != NULL; other = other->next_open) {
        if (other->owner == getpid() && other->device == about.st_dev &&
            other->inode == about.st_ino)
            return err_set(err, ERR_EXISTS, "this process, %d, has the journal in %s open already",
                           (int)getpid(), path);
    }
    journal->owner = getpid();
    journal->device = about.st_dev;
    journal->inode = about.st_ino;
    journal->next_open = opened;
    opened = journal;
    return 0;
}

static void leave(struct journal *journal)
{
    struct journal **at = &opened;

    if (journal->owner == 0)
        return; /* it never came in */
    while (*at != journal) {
        check(*at != NULL);
        at = &(*at)->next_open;
    }
    *at = journal->next_open;
    journal->owner = 0;
}

/* --- the directory --- */

int directory_sync(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0) {
        int code = err_os(err, ERR_IO, errno, "sync the directory %s", path);
        if (fd >= 0)
            (void)close(fd); /* only read from */
        return code;
    }
    (void)close(fd); /* synced */
    return 0;
}

static int make_directory(const char *path, struct err *err)
{
    char parent[PATH_MAX];

    if (mkdir(path, 0700) != 0) {
        if (errno == EEXIST)
            return 0;
        return err_os(err, err_from_errno(errno), errno, "make the directory %s", path);
    }
    if (!text_format(parent, sizeof(parent), "%s/..", path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    return directory_sync(parent, err);
}

static int refuse_network(const char *path, struct err *err)
{
    static const unsigned long network[] = {NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, 0xFF534D42 /* CIFS */,
                                            0xFE534D42 /* SMB2 */};
    struct statfs about;

    if (statfs(path, &about) != 0)
        return err_os(err, err_from_errno(errno), errno, "look at the file system of %s", path);
    for (size_t i = 0; i < COUNT_OF(network); i++) {
        if ((unsigned long)about.f_type == network[i])
            return err_set(err, ERR_UNSUPPORTED,
                           "%s is on a network file system; a journal needs "
                           "a local one",
                           path);
    }
    return 0;
}

/* --- schema --- */

static int newer_schema(uint32_t schema, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED,
                   "the journal was written by a newer cairn: it has schema %u, this one knows %d; "
                   "nothing was changed, run the newer cairn",
                   schema, JOURNAL_SCHEMA);
}

static int read_schema(struct store *store, uint32_t *ret_schema, struct err *err)
{
    struct store_txn txn;
    int code = store_read_begin(store, &txn, err);

    if (code < 0)
        return code;
    code = schema_read(&txn, ret_schema, err);
    store_read_end(&txn);
    return code;
}

static int write_first(struct store_txn *txn, void *ctx, struct err *err)
{
    (void)ctx; /* nothing but the version to write */
    return schema_write(txn, JOURNAL_SCHEMA, err);
}

/* Its file has its name for good before anything is in it: of one that has been written to, nobody
 * need make sure again. */
static int start_new(struct store *store, const char *path, struct err *err)
{
    struct store_figures figures;

    int code = store_figures(store, &figures, err);
    if (code < 0)
        return code;
    for (unsigned i = 0; i < STORE_TABLE_COUNT; i++) {
        if (figures.entries[i] != 0)
            return err_set(err, ERR_CORRUPT, "the journal has lost its schema version");
    }
    code = directory_sync(path, err);
    return code < 0 ? code : store_write(store, write_first, NULL, err);
}

/* --- opening --- */

static int open_write(struct journal *journal, const char *path, const struct migrations *known,
                      struct err *err)
{
    struct store_options options = {.path = path, .write = true};
    struct store_txn txn;
    uint32_t schema;

    int code = refuse_network(path, err);
    if (code == 0)
        code = lock_take(path, &journal->lock_fd, err);
    if (code == 0)
        code = store_open(&options, &journal->store, err);
    if (code < 0)
        return code;
    code = read_schema(journal->store, &schema, err);
    if (code == ERR_GONE)
        code = start_new(journal->store, path, err);
    else if (code == 0 && schema > JOURNAL_SCHEMA)
        code = newer_schema(schema, err);
    else if (code == 0 && schema < JOURNAL_SCHEMA)
        code = migrate(journal->store, schema, known, err);
    if (code == 0)
        code = store_read_begin(journal->store, &txn, err);
    if (code < 0)
        return code;
    code = log_ends(&txn, &journal->first, &journal->next, err);
    store_read_end(&txn);
    store_clear_readers(journal->store);
    return code;
}

static int open_copy(struct journal *journal, const char *path, bool write, struct err *err)
{
    char name[64];
    struct store_options options = {.path = name, .write = write, .is_file = true};

    if (journal->copy_fd < 0) {
        int code = copy_private(path, &journal->copy_fd, err);
        if (code < 0)
            return code;
    }
    copy_path(journal->copy_fd, name, sizeof(name));
    return store_open(&options, &journal->store, err);
}

static void close_store(struct journal *journal)
{
    store_close(journal->store);
    journal->store = NULL;
}

/* A copy that is written to like the journal itself, and gone with the process. */
static int open_volatile(struct journal *journal, const char *path, struct err *err)
{
    struct store_txn txn;
    uint32_t schema;

    int code = lock_share(path, &journal->lock_fd, err);
    if (code == 0)
        code = open_copy(journal, path, true, err);
    if (code == 0)
        code = read_schema(journal->store, &schema, err);
    if (code == 0 && schema != JOURNAL_SCHEMA)
        code = err_set(err, ERR_UNSUPPORTED, "it has schema %u, this cairn writes %d", schema,
                       JOURNAL_SCHEMA);
    if (code == 0)
        code = store_read_begin(journal->store, &txn, err);
    if (code < 0)
        return code;
    code = log_ends(&txn, &journal->first, &journal->next, err);
    store_read_end(&txn);
    journal->mode = JOURNAL_WRITE;
    return code;
}

static int read_through_migration(struct journal *journal, const char *path, uint32_t schema,
                                  const struct migrations *known, struct err *err)
{
    close_store(journal);
    int code = open_copy(journal, path, true, err);
    if (code == 0)
        code = migrate(journal->store, schema, known, err);
    if (code < 0)
        return code;
    close_store(journal);
    return open_copy(journal, path, false, err);
}

/* With LMDB's locks where they can be had.  That they may be written to does not say so: an error
 * makes a file system read-only without a word, and a full one may have no room for them. */
static int open_any_way(struct journal *journal, const char *path, struct err *err)
{
    struct store_options options = {.path = path};
    char locks[PATH_MAX];

    if (!text_format(locks, sizeof(locks), "%s/lock.mdb", path))
        return err_set(err, ERR_LIMIT, "the path is too long");
    if (access(locks, R_OK | W_OK) == 0) {
        int code = store_open(&options, &journal->store, err);
        if (code != ERR_REFUSED && code != ERR_FULL && code != ERR_IO)
            return code;
    }
    options.no_lock = true;
    return lock_is_held(path) ? open_copy(journal, path, false, err)
                              : store_open(&options, &journal->store, err);
}

static int open_read(struct journal *journal, const char *path, const struct migrations *known,
                     struct err *err)
{
    uint32_t schema;
    int code = open_any_way(journal, path, err);

    if (code == 0)
        code = read_schema(journal->store, &schema, err);
    if (code == ERR_GONE)
        return err_set(err, ERR_GONE, "there is no journal in it, or it was never used");
    if (code < 0)
        return code;
    if (schema > JOURNAL_SCHEMA)
        return newer_schema(schema, err);
    return schema == JOURNAL_SCHEMA ? 0 : read_through_migration(journal, path, schema, known, err);
}

int journal_open_with(const char *path, enum journal_mode mode, const struct migrations *known,
                      struct journal **ret_journal, struct err *err)
{
    struct err local;
    struct journal *journal = calloc(1, sizeof(*journal));

    check(journal != NULL);
    journal->mode = mode;
    journal->codec = codec_new();
    journal->lock_fd = -1;
    journal->copy_fd = -1;
    err = err == NULL ? &local : err;

    int code = mode == JOURNAL_WRITE ? make_directory(path, err) : 0;
    if (code == 0)
        code = enter(journal, path, err);
    if (code == 0) {
        code = mode == JOURNAL_WRITE      ? open_write(journal, path, known, err)
               : mode == JOURNAL_VOLATILE ? open_volatile(journal, path, err)
                                          : open_read(journal, path, known, err);
        if (code < 0 && code != ERR_EXISTS)
            code = err_wrap(err, "open the journal in %s", path);
    }
    if (code < 0) {
        journal_close(journal);
        return code;
    }
    *ret_journal = journal;
    return 0;
}

int journal_open(const char *path, enum journal_mode mode, struct journal **ret_journal,
                 struct err *err)
{
    return journal_open_with(path, mode, &migrations_known, ret_journal, err);
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    leave(journal);
    close_store(journal);
    if (journal->copy_fd >= 0)
        (void)close(journal->copy_fd); /* memory only */
    if (journal->lock_fd >= 0)
        lock_release(journal->lock_fd);
    codec_free(journal->codec);
    free(journal);
}

/* --- upkeep --- */

int journal_figures(struct journal *journal, struct journal_figures *ret_figures, struct err *err)
{
    struct store_figures store;
    uint32_t schema;

    int code = store_figures(journal->store, &store, err);
    if (code == 0)
        code = read_schema(journal->store, &schema, err);
    if (code < 0)
        return code;
    *ret_figures = (struct journal_figures){
        .events = store.entries[STORE_LOG],
        .states = store.entries[STORE_STATE],
        .bases = store.entries[STORE_BASE],
        .specs = store.entries[STORE_SPEC],
        .quarantined = store.entries[STORE_QUARANTINE],
        .bytes_used = store.bytes_used,
        .bytes_map = store.bytes_map,
        .bytes_file = store.bytes_file,
        .readers = store.readers,
        .schema = schema,
    };
    return 0;
}

void journal_clear_readers(struct journal *journal)
{
    store_clear_readers(journal->store);
}

void journal_release_memory(struct journal *journal)
{
    store_release_memory(journal->store);
}

void journal_reserve(struct journal *journal, uint64_t bytes)
{
    check(journal->mode == JOURNAL_WRITE);
    store_reserve_room(journal->store, bytes);
}

bool journal_is_tight(struct journal *journal)
{
    return store_is_tight(journal->store);
}

void journal_inject(struct journal *journal, int os_error, uint32_t after_commits, uint32_t count)
{
    store_inject(journal->store, os_error, after_commits, count);
}

int journal_freeze(struct journal *journal, struct err *err)
{
    check(journal->mode == JOURNAL_READ);
    return store_freeze(journal->store, err);
}

void journal_thaw(struct journal *journal)
{
    store_thaw(journal->store);
}

static bool is_empty_directory(const char *path)
{
    DIR *directory = opendir(path);
    bool empty = directory != NULL;

    if (directory == NULL)
        return false;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (!text_equal(entry->d_name, ".") && !text_equal(entry->d_name, ".."))
            empty = false;
    }
    (void)closedir(directory); /* only read from */
    return empty;
}

int journal_copy(struct journal *journal, const char *path, struct err *err)
{
    int code = make_directory(path, err);
    if (code < 0)
        return code;
    if (!is_empty_directory(path))
        return err_set(err, ERR_EXISTS, "%s is not an empty directory", path);
    code = store_copy(journal->store, path, err);
    return code < 0 ? code : directory_sync(path, err);
}
