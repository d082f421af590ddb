/*
 * Deleting a directory tree that a payload has had in its hands.
 *
 * Invariant (I-30): nothing outside the tree and nothing on another mount is ever deleted.  The
 * mount table is asked first, and if anything is mounted in the tree nothing is touched at all;
 * after that each directory is opened by name in its parent without following links and must lie
 * on the mount that the tree lies on, so that a mount or a link that comes in between is refused,
 * not entered.
 *
 * The walk holds at most DEPTH_MAX directories open.  A deeper one is moved up to the top of the
 * tree and meets its end there, so that no nesting exhausts descriptors or the small stack of a
 * worker.
 */
#include "io/host.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
    DEPTH_MAX = 24,
    PASSES_MAX = 16, /* over a directory in which somebody keeps making files */
};

struct level {
    DIR *stream;
    char name[NAME_SIZE]; /* in the level above */
    unsigned passes;
    bool raised; /* something was moved up into it since the pass began */
};

struct walk {
    const char *path; /* for messages */
    struct err *err;
    int parent_fd; /* the directory that holds the tree */
    uint64_t mount_id;
    uint64_t raised_count;
    unsigned depth;
    struct level levels[DEPTH_MAX];
};

static int level_fd(const struct walk *walk, unsigned depth)
{
    return depth == 0 ? walk->parent_fd : dirfd(walk->levels[depth - 1].stream);
}

static int fail(const struct walk *walk, int number, const char *doing, const char *name)
{
    int code = number == ENOTEMPTY ? ERR_AGAIN : err_from_errno(number);

    return err_os(walk->err, code, number, "cannot delete %s: %s %s", walk->path, doing, name);
}

static int refuse_mount(const struct walk *walk, const char *name)
{
    return err_set(walk->err, ERR_AGAIN, "cannot delete %s: something is mounted on %s", walk->path,
                   name);
}

/* Before Linux 5.8 there are no mount ids: the device has to do. */
static uint64_t mount_id_of(const struct statx *status)
{
    if ((status->stx_mask & STATX_MNT_ID) != 0)
        return status->stx_mnt_id;
    return ((uint64_t)status->stx_dev_major << 32) | status->stx_dev_minor;
}

/* A directory without its owner's bits can be neither read nor emptied, except by root. */
static int make_accessible(int fd, const struct statx *status)
{
    if ((status->stx_mode & S_IRWXU) == S_IRWXU || geteuid() == 0)
        return 0;
    return place_chmod(fd, (status->stx_mode & 07777u) | S_IRWXU);
}

/* Opens directory NAME at the next level and puts it on the stack. */
static int enter(struct walk *walk, const char *name)
{
    struct statx status;
    scoped_fd int place =
        openat(level_fd(walk, walk->depth), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (place < 0)
        return errno == ENOENT ? 0 : fail(walk, errno, "opening", name);
    if (statx(place, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &status) != 0)
        return fail(walk, errno, "looking at", name);
    if (mount_id_of(&status) != walk->mount_id)
        return refuse_mount(walk, name);
    int failed = make_accessible(place, &status);
    if (failed != 0)
        return fail(walk, -failed, "changing the mode of", name);

    /* From the directory that was looked at, not by its name again. */
    scoped_fd int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (stream == NULL)
        return fail(walk, errno, "reading", name);
    (void)take_fd(&fd); /* moved into the stream */

    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){.stream = stream};
    (void)text_copy(level->name, sizeof(level->name), name); /* NAME_MAX holds */
    return 0;
}

/* Moves a directory that lies too deep to the top of the tree, where it is found again.  Whatever
 * empty directory has that name already is lost a little earlier than it would be. */
static int raise_directory(struct walk *walk, const char *name)
{
    char raised[64];

    do {
        (void)text_format(raised, sizeof(raised), ".cairn-deleted-%llu", /* fits */
                          (unsigned long long)walk->raised_count++);
        if (renameat(level_fd(walk, walk->depth), name, level_fd(walk, 1), raised) == 0) {
            walk->levels[0].raised = true;
            return 0;
        }
    } while (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR);
    return fail(walk, errno, "moving", name);
}

static int delete_entry(struct walk *walk, const char *name)
{
    if (unlinkat(level_fd(walk, walk->depth), name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno == EBUSY)
        return refuse_mount(walk, name);
    if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM, Linux EISDIR, for a directory */
        return fail(walk, errno, "unlinking", name);

    int number = errno;
    struct stat status;
    if (fstatat(level_fd(walk, walk->depth), name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : fail(walk, errno, "looking at", name);
    if (!S_ISDIR(status.st_mode))
        return fail(walk, number, "unlinking", name);
    return walk->depth < DEPTH_MAX ? enter(walk, name) : raise_directory(walk, name);
}

/* The top level has been read to its end: delete it, or read it again if it filled up. */
static int leave(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth - 1];

    if (level->raised) { /* no sign of somebody else's files */
        level->raised = false;
        level->passes = 0;
        rewinddir(level->stream);
        return 0;
    }
    if (unlinkat(level_fd(walk, walk->depth - 1), level->name, AT_REMOVEDIR) != 0 &&
        errno != ENOENT) {
        if (errno == EBUSY)
            return refuse_mount(walk, level->name);
        if (errno != ENOTEMPTY || ++level->passes >= PASSES_MAX)
            return fail(walk, errno, "removing", level->name);
        rewinddir(level->stream);
        return 0;
    }
    (void)closedir(level->stream); /* was only read */
    walk->depth--;
    return 0;
}

static int step(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth - 1];

    errno = 0;
    const struct dirent *entry = readdir(level->stream);
    if (entry == NULL)
        return errno != 0 ? fail(walk, errno, "reading", level->name) : leave(walk);
    if (text_equal(entry->d_name, ".") || text_equal(entry->d_name, ".."))
        return 0;
    return delete_entry(walk, entry->d_name);
}

static bool found_mount(void *ctx, const char *point)
{
    return !text_copy(ctx, PATH_SIZE, point); /* one is enough */
}

static int refuse_if_mounted(const struct walk *walk, const char *name)
{
    char point[PATH_SIZE] = "";
    int code = mount_each_below(walk->parent_fd, name, found_mount, point, walk->err);

    return code == 0 && point[0] != '\0' ? refuse_mount(walk, point) : code;
}

int tree_remove(int directory_fd, const char *path, struct err *err)
{
    char name[NAME_SIZE];
    struct walk walk = {.path = path, .err = err};
    struct statx status;
    scoped_fd int parent_fd = -1;
    int code = place_find(directory_fd, path, name, &parent_fd, err);

    if (code != 0)
        return code == ERR_GONE ? 0 : code;
    walk.parent_fd = parent_fd;
    code = refuse_if_mounted(&walk, name);
    if (code != 0)
        return code;
    if (statx(parent_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0)
        return fail(&walk, errno, "looking at the directory of", name);
    walk.mount_id = mount_id_of(&status);

    code = delete_entry(&walk, name);
    while (code == 0 && walk.depth > 0)
        code = step(&walk);
    while (walk.depth > 0)
        (void)closedir(walk.levels[--walk.depth].stream); /* was only read */
    return code;
}
