/*
 * Mounts, read from /proc/self/mountinfo.
 *
 * Read by hand rather than with libmount: one field of a line is wanted, and the library brings
 * more resident memory than the daemon has to give.  Invariant: what is said about a path is said
 * about the path itself, with the links in its directory resolved (or refused, beneath a
 * directory) and its last part untouched, as the kernel prints it; and what is mounted or unmounted
 * is what has that name in that directory at that moment, wherever links lead by then.
 */
#include "io/host.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

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

/* PATH as mountinfo prints it: ERR_GONE if its directory does not exist. */
static int resolve(int directory_fd, const char *path, char to[PATH_SIZE], struct err *err)
{
    char name[NAME_SIZE], link[PLACE_PATH_SIZE], resolved[PATH_SIZE];
    scoped_fd int fd = -1;

    if (directory_fd == AT_FDCWD && path[0] == '/' && path[strspn(path, "/")] == '\0') {
        (void)text_copy(to, PATH_SIZE, "/"); /* fits */
        return 0;
    }
    int code = place_find(directory_fd, path, name, &fd, err);
    if (code != 0)
        return code;
    place_path(fd, link);
    ssize_t length = readlink(link, resolved, sizeof(resolved) - 1);
    if (length < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot resolve the directory of %s",
                      path);
    resolved[length] = '\0';
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

/* --- the table --- */

/* What was read last, good until the kernel says that the table has changed: it tells who has it
 * open.  Without this, removing many directories on a machine with many mounts is the product of
 * the two, as each has to be seen to hold none. */
static struct {
    pthread_mutex_t lock;
    int fd;       /* of mountinfo, -1: not open yet */
    ino_t of;     /* the namespace that it is about */
    pid_t owner;  /* a child would hear of changes in our stead */
    char *text;   /* owned; with a NUL behind it; NULL: not read */
    size_t bytes; /* room for it */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void forget_table(void)
{
    free(table.text);
    table.text = NULL;
    table.bytes = 0;
}

/* Opens the table of the namespace that we are in. */
static int open_table(struct err *err)
{
    struct stat namespace;

    if (stat("/proc/self/ns/mnt", &namespace) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at the mount namespace");
    if (table.fd >= 0 && table.of == namespace.st_ino && table.owner == getpid())
        return 0;
    if (table.fd >= 0)
        (void)close(table.fd); /* only read from */
    forget_table();
    table.of = namespace.st_ino;
    table.owner = getpid();
    table.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (table.fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot read the mount table");
    return 0;
}

static int read_table(struct err *err)
{
    enum { LINE_ESTIMATE = 4096 };
    size_t used = 0;

    for (;;) {
        table.text = list_room(table.text, &table.bytes, used + LINE_ESTIMATE, 1);
        ssize_t got = pread(table.fd, table.text + used, table.bytes - used - 1, (off_t)used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int number = errno;

            forget_table();
            return err_os(err, err_from_errno(number), number, "cannot read the mount table");
        }
        used += (size_t)got;
        table.text[used] = '\0';
        if (got == 0)
            return 0;
    }
}

/* Makes the table's text that of now.  The question comes before the reading: what changes while
 * it is read is asked about the next time. */
static int refresh_table(struct err *err)
{
    int code = open_table(err);
    struct pollfd changed = {.fd = table.fd, .events = POLLPRI};

    if (code != 0)
        return code;
    if (poll(&changed, 1, 0) != 0) /* also if it cannot be asked */
        forget_table();
    return table.text == NULL ? read_table(err) : 0;
}

static int take_points(const char *path, struct points *points, struct err *err)
{
    char line[PATH_SIZE * 2];
    size_t lines = 0;

    for (const char *at = table.text; *at != '\0'; lines++) {
        size_t length = strcspn(at, "\n");
        struct point point;

        if (length >= sizeof(line))
            length = sizeof(line) - 1; /* options; the point comes before them */
        memcpy(line, at, length);
        line[length] = '\0';
        if (!parse_line(line, &point))
            return err_set(err, ERR_CORRUPT, "cannot understand line %zu of the mount table",
                           lines + 1);
        if (lines >= MOUNTS_MAX)
            return err_set(err, ERR_LIMIT, "the mount table has more than %d lines", MOUNTS_MAX);
        if (is_at_or_below(point.path, path))
            points_add(points, &point);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return 0;
}

static int read_points(const char *path, struct points *points, struct err *err)
{
    check(pthread_mutex_lock(&table.lock) == 0);
    int code = refresh_table(err);
    if (code == 0)
        code = take_points(path, points, err);
    check(pthread_mutex_unlock(&table.lock) == 0);
    return code;
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

/* How the caller calls what is at RESOLVED: by PATH, and what lies below it by that and the rest.
 */
struct naming {
    const char *path;
    size_t path_length, resolved_length; /* without the last slash */
    bool (*cb)(void *ctx, const char *point);
    void *ctx;
};

static bool tell(const struct naming *naming, const char *point)
{
    char name[PATH_SIZE];
    const char *rest = point + naming->resolved_length;

    if (naming->path_length == 0)
        return naming->cb(naming->ctx, point);
    if (!text_format(name, sizeof(name), "%.*s%s", (int)naming->path_length, naming->path, rest))
        return true; /* longer than a path can be: nobody could do anything with it */
    return naming->cb(naming->ctx, name);
}

/* Calls CB for each point, none before those mounted on it.  Backwards through the table, which
 * is in the order of mounting, takes the mount on top of a point before what it hides; only a
 * mount that was moved onto a younger one needs another pass. */
static void hand_out(struct points *points, const struct naming *naming)
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
            stopped = !tell(naming, point->path);
        }
    }
    free(by_id);
}

static size_t length_without_slash(const char *path)
{
    size_t length = strlen(path);

    while (length > 0 && path[length - 1] == '/')
        length--;
    return length;
}

int mount_each_below(int directory_fd, const char *path, bool (*cb)(void *ctx, const char *point),
                     void *ctx, struct err *err)
{
    __attribute__((cleanup(points_close))) struct points points = {0};
    char resolved[PATH_SIZE];
    int code = resolve(directory_fd, path, resolved, err);

    if (code == ERR_GONE)
        return 0;
    if (code == 0)
        code = read_points(resolved, &points, err);
    if (code != 0)
        return code;
    const struct naming naming = {
        .path = path,
        .path_length = length_without_slash(path),
        .resolved_length = length_without_slash(resolved),
        .cb = cb,
        .ctx = ctx,
    };
    hand_out(&points, &naming);
    return 0;
}

struct search {
    const char *path;
    size_t length;
    bool found;
};

static bool find_path(void *ctx, const char *point)
{
    struct search *search = ctx;

    search->found =
        strlen(point) == search->length && memcmp(point, search->path, search->length) == 0;
    return !search->found;
}

static int search_table(int directory_fd, const char *path, struct err *err)
{
    struct search search = {.path = path, .length = length_without_slash(path)};
    int code = mount_each_below(directory_fd, path, find_path, &search, err);

    return code != 0 ? code : search.found ? 1 : 0;
}

/* 1 or 0 as the kernel tells since Linux 5.8, else a negative errno. */
static int ask_kernel(int directory_fd, const char *path)
{
    struct statx status;

    if (statx(directory_fd, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, 0,
              &status) != 0)
        return -errno;
    if ((status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0)
        return -ENOSYS;
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0 ? 1 : 0;
}

bool mount_is_point_at_once(const char *path)
{
    return ask_kernel(AT_FDCWD, path) == 1;
}

int mount_is_point(int directory_fd, const char *path, struct err *err)
{
    scoped_fd int fd = -1;
    char name[NAME_SIZE];
    bool beneath = directory_fd != AT_FDCWD;
    int code = beneath ? place_find(directory_fd, path, name, &fd, err) : 0;

    if (code != 0)
        return code == ERR_GONE ? 0 : code;
    int told = ask_kernel(beneath ? fd : AT_FDCWD, beneath ? name : path);
    if (told == -ENOENT || told == -ENOTDIR)
        return 0;
    /* A mount whose server is gone fails here and is still in the table. */
    return told >= 0 ? told : search_table(directory_fd, path, err);
}

static bool is_tmpfs(int directory_fd, const char *name)
{
    scoped_fd int fd = openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct statfs status;

    return fd >= 0 && fstatfs(fd, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

/* --- mounting --- */

enum { NUMBER_SIZE = 24 };

/* A tmpfs as WANTED that is mounted nowhere: its descriptor, or a negative errno. */
static int make_tmpfs(const struct mount_tmpfs *wanted)
{
    char size[NUMBER_SIZE], mode[NUMBER_SIZE], uid[NUMBER_SIZE], gid[NUMBER_SIZE];
    const struct mount_option options[] = {
        {"source", "tmpfs"}, {"size", size}, {"mode", mode},
        {"uid", uid},        {"gid", gid},   {"noswap", NULL}, /* came with Linux 6.4 */
        {NULL, NULL},
    };

    (void)text_format(size, sizeof(size), "%llu", (unsigned long long)wanted->size_bytes); /* all */
    (void)text_format(mode, sizeof(mode), "%04o", (unsigned)wanted->mode & 07777u); /* of them */
    (void)text_format(uid, sizeof(uid), "%u", (unsigned)wanted->uid);               /* fit */
    (void)text_format(gid, sizeof(gid), "%u", (unsigned)wanted->gid);
    return mount_make("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* The same before Linux 5.2, where a mount has a target from its birth: the very directory that was
 * opened, wherever it is by then.  If that is not NAME any more, the mount goes again, through the
 * directory below it. */
static int mount_on_place(int directory_fd, const char *name, const struct mount_tmpfs *wanted)
{
    scoped_fd int place = openat(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char options[128], path[PLACE_PATH_SIZE];

    if (place < 0)
        return -errno;
    (void)text_format(options, sizeof(options), "size=%llu,mode=%04o,uid=%u,gid=%u", /* fits */
                      (unsigned long long)wanted->size_bytes, (unsigned)wanted->mode & 07777u,
                      (unsigned)wanted->uid, (unsigned)wanted->gid);
    place_path(place, path);
    if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0)
        return -errno;
    if (is_tmpfs(directory_fd, name) && mount_is_point(directory_fd, name, NULL) == 1)
        return 0;
    (void)umount2(path, MNT_DETACH); /* what is mounted on it, which is ours */
    return -EBUSY;
}

/* A mount appears under NAME or not at all: the kernel looks the name up, follows no link, and
 * attaches in one step. */
static int attach_tmpfs(int directory_fd, const char *name, const struct mount_tmpfs *wanted)
{
    int made = make_tmpfs(wanted);

    if (made == -ENOSYS || made == -EPERM) /* a filter that is older than the call */
        return mount_on_place(directory_fd, name, wanted);
    if (made < 0)
        return made;
    int code = move_mount(made, "", directory_fd, name, MOVE_MOUNT_F_EMPTY_PATH) == 0 ? 0 : -errno;
    (void)close(made); /* if it is mounted nowhere it ends here */
    return code;
}

int mount_tmpfs(int directory_fd, const char *path, const struct mount_tmpfs *wanted,
                struct err *err)
{
    scoped_fd int fd = -1;
    char name[NAME_SIZE];
    int code = place_find(directory_fd, path, name, &fd, err);

    if (code != 0)
        return code;
    int mounted = mount_is_point(fd, name, err);
    if (mounted < 0)
        return mounted;
    if (mounted == 1)
        return is_tmpfs(fd, name) ? 0
                                  : err_set(err, ERR_EXISTS, "another file system is on %s", path);
    int failed = attach_tmpfs(fd, name, wanted);
    return failed == 0
               ? 0
               : err_os(err, err_from_errno(-failed), -failed, "cannot mount a tmpfs on %s", path);
}

int mount_attach(int fd, int directory_fd, const char *path, struct err *err)
{
    scoped_fd int place = -1;
    char name[NAME_SIZE];
    int code = place_find(directory_fd, path, name, &place, err);

    if (code != 0 || move_mount(fd, "", place, name, MOVE_MOUNT_F_EMPTY_PATH) == 0)
        return code;
    return err_os(err, err_from_errno(errno), errno, "cannot mount it on %s", path);
}

/* By its name in its directory, whose descriptor does not make it busy as one of its own would. */
int mount_remove(int directory_fd, const char *path, struct err *err)
{
    scoped_fd int fd = -1;
    char name[NAME_SIZE], link[PLACE_PATH_SIZE], point[PLACE_PATH_SIZE + NAME_SIZE];
    int code = place_find(directory_fd, path, name, &fd, err);

    if (code != 0)
        return code == ERR_GONE ? 0 : code;
    place_path(fd, link);
    (void)text_format(point, sizeof(point), "%s/%s", link, name); /* fits */
    for (int i = 0; i < STACKED_MAX; i++) {
        if (umount2(point, UMOUNT_NOFOLLOW) == 0)
            continue;
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        /* EINVAL says "not a mount point", among other things: the table decides. */
        if (errno == EINVAL && mount_is_point(fd, name, NULL) == 0)
            return 0;
        return err_os(err, err_from_errno(errno), errno, "cannot unmount %s", path);
    }
    return err_set(err, ERR_LIMIT, "more than %d mounts on %s", STACKED_MAX, path);
}
