/*
 * Packs what goes on with the next alloc of an ended one's ephemeral disk: `alloc/data` and `local`
 * of each task, as a tar, as in nomad v2.0.6 client/allocdir Snapshot.
 *
 * The directory of the alloc is its root here, and it may read there whatever payloads have made of
 * it, and nothing else: it has no network and writes to nobody but who has started it.  No link is
 * followed, and what somebody has mounted there is not the alloc's.  Sockets, pipes and devices are
 * left out.  What cannot be read is the end of it: then the last file is one that tells so, by
 * which the other side knows that it has not got all.
 */
#include "hooks/fetch/fetch.h"

#include "io/host.h"
#include "io/scope.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 256 * 1024,
    DEPTH_MAX = 512, /* directories in each other: each is a descriptor */
    READABLE = O_RDONLY | O_NOFOLLOW | O_CLOEXEC,
    ERROR_MODE = 0644,
};

struct packing {
    struct archive *to;
    char path[PATH_SIZE]; /* from the alloc's directory on */
    dev_t device;
    unsigned depth;
    bool is_cut; /* who is to get it takes no more */
    struct err *err;
};

static int cannot(const struct packing *packing, int number, const char *doing)
{
    int code = err_os(packing->err, err_from_errno(number), number, "cannot %s %.120s", doing,
                      packing->path);

    text_clean(packing->err->text);
    text_whole(packing->err->text);
    return code;
}

/* --- entries --- */

static int told(struct packing *packing, la_ssize_t answer)
{
    if (answer >= ARCHIVE_WARN)
        return 0;
    packing->is_cut = true;
    return err_set(packing->err, ERR_IO, "nobody takes it any more");
}

static int put_header(struct packing *packing, const struct stat *status, const char *link)
{
    struct archive_entry *entry = archive_entry_new();

    check(entry != NULL);
    archive_entry_copy_stat(entry, status);
    archive_entry_copy_pathname(entry, packing->path);
    if (link != NULL)
        archive_entry_copy_symlink(entry, link);
    int code = told(packing, archive_write_header(packing->to, entry));
    archive_entry_free(entry);
    return code;
}

static int pack_link(struct packing *packing, int parent, const char *name,
                     const struct stat *status)
{
    char link[PATH_SIZE];
    ssize_t length = readlinkat(parent, name, link, sizeof(link) - 1);

    if (length < 0)
        return cannot(packing, errno, "read the link");
    link[length] = '\0';
    return put_header(packing, status, link);
}

/* As many bytes as were promised: fewer cannot be told from such as are 0. */
static int copy(struct packing *packing, int fd, uint64_t length)
{
    static char block[BLOCK_BYTES];

    while (length > 0) {
        size_t wanted = length < sizeof(block) ? (size_t)length : sizeof(block);
        ssize_t got = read(fd, block, wanted);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return cannot(packing, got < 0 ? errno : EIO, got < 0 ? "read" : "read all of");
        int code = told(packing, archive_write_data(packing->to, block, (size_t)got));
        if (code != 0)
            return code;
        length -= (uint64_t)got;
    }
    return 0;
}

static int pack_file(struct packing *packing, int parent, const char *name)
{
    scoped_fd int fd = openat(parent, name, READABLE | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return cannot(packing, errno, "open");
    if (!S_ISREG(status.st_mode))
        return cannot(packing, EIO, "open");
    int code = put_header(packing, &status, NULL);
    return code == 0 ? copy(packing, fd, (uint64_t)status.st_size) : code;
}

static int pack(struct packing *packing, int parent, const char *name);

static int pack_entries(struct packing *packing, DIR *directory)
{
    const struct dirent *entry;
    int code = 0;

    while (code == 0 && (errno = 0, entry = readdir(directory)) != NULL) {
        if (!text_equal(entry->d_name, ".") && !text_equal(entry->d_name, ".."))
            code = pack(packing, dirfd(directory), entry->d_name);
    }
    return code == 0 && errno != 0 ? cannot(packing, errno, "list") : code;
}

static int pack_directory(struct packing *packing, int parent, const char *name)
{
    scoped_fd int fd = openat(parent, name, READABLE | O_DIRECTORY);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0)
        return cannot(packing, errno, "open");
    if (packing->depth == DEPTH_MAX)
        return cannot(packing, ENAMETOOLONG, "look below");
    int code = put_header(packing, &status, NULL);
    if (code != 0 || status.st_dev != packing->device)
        return code;
    DIR *directory = fdopendir(fd);
    if (directory == NULL)
        return cannot(packing, errno, "list");
    (void)take_fd(&fd); /* its */
    packing->depth++;
    code = pack_entries(packing, directory);
    packing->depth--;
    (void)closedir(directory); /* only read from */
    return code;
}

static int pack_one(struct packing *packing, int parent, const char *name)
{
    struct stat status;

    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : cannot(packing, errno, "look at");
    if (S_ISLNK(status.st_mode))
        return pack_link(packing, parent, name, &status);
    if (S_ISDIR(status.st_mode))
        return pack_directory(packing, parent, name);
    return S_ISREG(status.st_mode) ? pack_file(packing, parent, name) : 0;
}

/* NAME in the directory PARENT, which is at PACKING->path ("": the alloc's). */
static int pack(struct packing *packing, int parent, const char *name)
{
    size_t before = strlen(packing->path);

    if (!text_append(packing->path, sizeof(packing->path), before == 0 ? "" : "/") ||
        !text_append(packing->path, sizeof(packing->path), name))
        return cannot(packing, ENAMETOOLONG, "go below");
    int code = pack_one(packing, parent, name);
    if (code == 0)
        packing->path[before] = '\0'; /* else it says where */
    return code;
}

/* The directory NAME of the one ABOVE, which is the alloc's alone; neither has to be there. */
static int pack_part(struct packing *packing, int root, const char *above, const char *name)
{
    scoped_fd int parent = openat(root, above, READABLE | O_DIRECTORY);

    if (!text_copy(packing->path, sizeof(packing->path), above))
        return err_set(packing->err, ERR_LIMIT, "the name of a task is too long");
    if (parent < 0)
        return errno == ENOENT ? 0 : cannot(packing, errno, "open");
    return pack(packing, parent, name);
}

/* As Nomad's clients know it, of a time that no file has. */
static void put_error(struct packing *packing, const char *alloc)
{
    const struct stat status = {
        .st_mode = S_IFREG | ERROR_MODE, .st_size = 0, .st_mtime = FETCH_SNAPSHOT_ERROR_TIME};
    struct stat whole = status;
    char text[ERR_TEXT_SIZE + 32];

    (void)text_format(text, sizeof(text), "Error snapshotting: %s",
                      packing->err->text); /* it fits */
    (void)text_format(packing->path, sizeof(packing->path), FETCH_SNAPSHOT_ERROR,
                      alloc); /* it fits */
    whole.st_size = (off_t)strlen(text);
    /* A file that was begun is filled up; whoever takes no more hears nothing of this, either. */
    if (put_header(packing, &whole, NULL) == 0)
        (void)told(packing, archive_write_data(packing->to, text, strlen(text)));
}

/* --- the whole of it --- */

/* The directory at PATH becomes the only one there is. */
static int enter(const char *path, int *ret_root, struct err *err)
{
    scoped_fd int root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (root < 0)
        return err_os(err, errno == ENOENT ? ERR_GONE : ERR_IO, errno, "cannot open it");
    if (geteuid() == 0 && (unshare(CLONE_NEWNET) != 0 || fchdir(root) != 0 || chroot(".") != 0 ||
                           fetch_keep_capabilities(1u << CAP_DAC_READ_SEARCH) != 0))
        return err_os(err, ERR_IO, errno, "cannot lay down privileges");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_os(err, ERR_IO, errno, "cannot lay down privileges");
    *ret_root = take_fd(&root);
    return 0;
}

static int pack_all(struct packing *packing, int root, char *const *tasks)
{
    struct stat status;

    if (fstat(root, &status) != 0)
        return cannot(packing, errno, "look at");
    packing->device = status.st_dev;
    int code = pack_part(packing, root, "alloc", "data");
    for (; code == 0 && *tasks != NULL; tasks++)
        code = pack_part(packing, root, *tasks, "local");
    return code;
}

int fetch_pack(const char *path, const char *alloc, char *const *tasks)
{
    struct err err = {0};
    static struct packing packing;
    scoped_fd int root = -1;
    int code = enter(path, &root, &err);

    if (code != 0)
        return code == ERR_GONE ? FETCH_EXIT_GONE : EXIT_FAILURE;
    packing = (struct packing){.to = archive_write_new(), .err = &err};
    check(packing.to != NULL);
    (void)archive_write_set_format_gnutar(packing.to); /* known; names are bytes in it */
    if (archive_write_open_fd(packing.to, FETCH_PACKED) != ARCHIVE_OK)
        return EXIT_FAILURE;
    if (pack_all(&packing, root, tasks) != 0 && !packing.is_cut)
        put_error(&packing, alloc);
    bool is_whole = archive_write_close(packing.to) == ARCHIVE_OK && !packing.is_cut;
    (void)archive_write_free(packing.to);
    return is_whole ? EXIT_SUCCESS : EXIT_FAILURE;
}
