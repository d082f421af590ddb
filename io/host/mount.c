/*
 * Mounts, read from /proc/self/mountinfo.
 *
 * Read by hand rather than with libmount: one field of a line is wanted, and the library brings
 * more resident memory than the daemon has to give.  Invariant: what is said about a path is said
 * about the path itself, with the links in its directory resolved and its last part untouched,
 * as the kernel prints it.
 */
#include "io/host.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum {
    MOUNTS_MAX = 100000, /* the kernel's own default, fs.mount-max */
    STACKED_MAX = 64,    /* mounts on one point that mount_remove takes away */
};

struct point {
    char *path; /* owned */
    uint64_t id, parent;
    size_t children; /* mounts on it that have not been handed out */
    bool handed_out;
};

struct points {
    struct point *items; /* in the order of the table */
    size_t count, size;
};

static void points_close(struct points *points)
{
    for (size_t i = 0; i < points->count; i++)
        free(points->items[i].path);
    free(points->items);
}

static void points_add(struct points *points, const struct point *point)
{
    struct point *added = list_more(points);

    *added = *point;
    added->path = strdup(point->path);
    check(added->path != NULL);
}

/* PATH as mountinfo would print it: ERR_GONE if its directory does not exist. */
static int resolve(const char *path, char to[PATH_SIZE], struct err *err)
{
    char directory[PATH_SIZE], name[NAME_SIZE], resolved[PATH_SIZE];
    int code;

    if (path[0] == '/' && path[strspn(path, "/")] == '\0') {
        (void)text_copy(to, PATH_SIZE, "/"); /* fits */
        return 0;
    }
    code = path_split(path, directory, name, err);
    if (code != 0)
        return code;
    if (realpath(directory, resolved) == NULL)
        return err_os(err, errno == ENOTDIR ? ERR_GONE : err_from_errno(errno), errno,
                      "cannot resolve %s", directory);
    if (path_join(to, resolved, name) != 0)
        return err_set(err, ERR_LIMIT, "path is too long");
    return 0;
}

/* Undoes the kernel's escapes (\040 and the like) in place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
            from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Takes "36 35 98:0 /root /point ..." apart, in place; the path is borrowed from LINE. */
static bool parse_line(char *line, struct point *ret_point)
{
    char *fields[5];

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        fields[i] = strsep(&line, " ");
        if (fields[i] == NULL)
            return false;
    }
    *ret_point = (struct point){.path = fields[4]};
    unescape(ret_point->path);
    return text_to_u64(fields[0], &ret_point->id) && text_to_u64(fields[1], &ret_point->parent);
}

static bool is_at_or_below(const char *point, const char *path)
{
    size_t length = text_equal(path, "/") ? 0 : strlen(path);

    return strncmp(point, path, length) == 0 && (point[length] == '\0' || point[length] == '/');
}

static int read_points(const char *path, struct points *points, struct err *err)
{
    scoped_file FILE *file = fopen("/proc/self/mountinfo", "re");
    scoped_string char *line = NULL;
    size_t size = 0;

    if (file == NULL)
        return err_os(err, err_from_errno(errno), errno, "cannot read the mount table");
    for (size_t lines = 0; getline(&line, &size, file) >= 0; lines++) {
        struct point point;

        if (!parse_line(line, &point))
            return err_set(err, ERR_CORRUPT, "cannot understand line %zu of the mount table",
                           lines + 1);
        if (lines >= MOUNTS_MAX)
            return err_set(err, ERR_LIMIT, "the mount table has more than %d lines", MOUNTS_MAX);
        if (is_at_or_below(point.path, path))
            points_add(points, &point);
    }
    if (ferror(file))
        return err_set(err, ERR_IO, "cannot read the mount table");
    return 0;
}

static int compare_id(const void *a, const void *b)
{
    const struct point *const *left = a, *const *right = b;

    return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id ? 1 : 0;
}

/* The mount that POINT is mounted on, or NULL if it is not among those in BY_ID. */
static struct point *parent_of(const struct point *point, struct point **by_id, size_t count)
{
    const struct point wanted = {.id = point->parent}, *key = &wanted;
    struct point **found = bsearch(&key, by_id, count, sizeof(struct point *), compare_id);

    return found == NULL || *found == point ? NULL : *found;
}

/* Calls CB for each point, none before those mounted on it.  Backwards through the table, which
 * is in the order of mounting, takes the mount on top of a point before what it hides; only a
 * mount that was moved onto a younger one needs another pass. */
static void hand_out(struct points *points, bool (*cb)(void *ctx, const char *point), void *ctx)
{
    struct point **by_id = reallocarray(NULL, points->count + 1, sizeof(struct point *));
    bool more = points->count > 0;

    check(by_id != NULL);
    for (size_t i = 0; i < points->count; i++)
        by_id[i] = &points->items[i];
    qsort(by_id, points->count, sizeof(struct point *), compare_id);
    for (size_t i = 0; i < points->count; i++) {
        struct point *parent = parent_of(&points->items[i], by_id, points->count);
        if (parent != NULL)
            parent->children++;
    }

    for (bool stopped = false; more && !stopped;) {
        more = false;
        for (size_t i = points->count; i > 0 && !stopped; i--) {
            struct point *point = &points->items[i - 1];

            if (point->handed_out || point->children > 0)
                continue;
            struct point *parent = parent_of(point, by_id, points->count);
            if (parent != NULL)
                parent->children--;
            point->handed_out = true;
            more = true;
            stopped = !cb(ctx, point->path);
        }
    }
    free(by_id);
}

int mount_each_below(const char *path, bool (*cb)(void *ctx, const char *point), void *ctx,
                     struct err *err)
{
    __attribute__((cleanup(points_close))) struct points points = {0};
    char resolved[PATH_SIZE];
    int code = resolve(path, resolved, err);

    if (code == ERR_GONE)
        return 0;
    if (code == 0)
        code = read_points(resolved, &points, err);
    if (code == 0)
        hand_out(&points, cb, ctx);
    return code;
}

struct search {
    const char *path;
    bool found;
};

static bool find_path(void *ctx, const char *point)
{
    struct search *search = ctx;

    search->found = text_equal(point, search->path);
    return !search->found;
}

static int search_table(const char *path, struct err *err)
{
    char resolved[PATH_SIZE];
    struct search search = {.path = resolved};
    int code = resolve(path, resolved, err);

    if (code == ERR_GONE)
        return 0;
    if (code == 0)
        code = mount_each_below(resolved, find_path, &search, err);
    return code != 0 ? code : search.found ? 1 : 0;
}

int mount_is_point(const char *path, struct err *err)
{
    struct statx status;

    /* The kernel can tell at once since Linux 5.8.  A mount whose server is gone fails here and
     * is still in the table. */
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0,
              &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
    } else if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
        return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ? 1 : 0;
    }
    return search_table(path, err);
}

static bool is_tmpfs(const char *path)
{
    struct statfs status;

    return statfs(path, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

int mount_tmpfs(const char *path, uint64_t size_bytes, mode_t mode, struct err *err)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    char options[96];
    int mounted = mount_is_point(path, err);

    if (mounted < 0)
        return mounted;
    if (mounted == 1)
        return is_tmpfs(path) ? 0 : err_set(err, ERR_EXISTS, "another file system is on %s", path);

    (void)text_format(options, sizeof(options), "size=%llu,mode=%04o,noswap", /* fits */
                      (unsigned long long)size_bytes, (unsigned)mode & 07777u);
    if (mount("tmpfs", path, "tmpfs", flags, options) == 0)
        return 0;
    if (errno == EINVAL) { /* noswap came with Linux 6.4 */
        *strrchr(options, ',') = '\0';
        if (mount("tmpfs", path, "tmpfs", flags, options) == 0)
            return 0;
    }
    return err_os(err, err_from_errno(errno), errno, "cannot mount a tmpfs on %s", path);
}

int mount_remove(const char *path, struct err *err)
{
    for (int i = 0; i < STACKED_MAX; i++) {
        if (umount2(path, UMOUNT_NOFOLLOW) == 0)
            continue;
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        /* EINVAL says "not a mount point", among other things: the table decides. */
        if (errno == EINVAL && mount_is_point(path, NULL) == 0)
            return 0;
        return err_os(err, err_from_errno(errno), errno, "cannot unmount %s", path);
    }
    return err_set(err, ERR_LIMIT, "more than %d mounts on %s", STACKED_MAX, path);
}
