/*
 * Going through a cgroup: its children and its processes; and killing by hand where the kernel has
 * no cgroup.kill (every v1 machine).
 *
 * Killing by hand: freeze, so that nobody forks or leaves while we look; signal each process that
 * a pidfd, opened first, proves to be a member (I-4); thaw, so that the signals arrive.
 */
#include "io/host/cgroup.h"

#include "io/host.h"
#include "io/host/part.h"
#include "io/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Looks at a freezer's state before it is called as frozen as it gets; each look also pushes the
 * v1 freezer on.  Some tens of microseconds are enough unless a process sleeps in the kernel. */
enum {
    FREEZE_LOOKS_MAX = 200,
    WALK_STEPS_MAX = 1 << 20,
};

/* The first child directory behind the one with inode AFTER; with 0, or when that one is gone, the
 * first of all. */
struct next_child {
    uint64_t after;
    bool passed;
    char name[NAME_MAX + 1]; /* "": none yet */
};

static int see_next(void *ctx, const char *name, unsigned char type, uint64_t inode)
{
    struct next_child *next = ctx;

    if (type != DT_DIR)
        return 0;
    if (next->after != 0 && !next->passed) {
        next->passed = inode == next->after;
        return 0;
    }
    check(text_copy(next->name, sizeof(next->name), name));
    return 1;
}

/* 1 and the name, 0 if there is none, or a negative errno. */
static int find_next(int fd, struct next_child *next, uint64_t after)
{
    *next = (struct next_child){.after = after};
    int code = entries_each(fd, see_next, next);
    if (code == 0 && after != 0 && !next->passed) {
        *next = (struct next_child){.after = 0};
        code = entries_each(fd, see_next, next);
    }
    return code == -ENOENT ? 0 : code; /* removed while we stand in it */
}

/* Stands on the child NAME, or on the parent "..", instead. */
static int step_to(int *fd, const char *name)
{
    int to = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (to < 0)
        return -errno;
    (void)close(*fd); /* only looked at */
    *fd = to;
    return 0;
}

/* Up to where there is a next child; 1 and its name, 0 at the end, or a negative errno. */
static int climb(int *fd, size_t *depth, struct next_child *next)
{
    struct stat status;

    while (*depth > 0) {
        int code = fstat(*fd, &status) != 0 ? -errno : step_to(fd, "..");

        --*depth;
        if (code == 0)
            code = find_next(*fd, next, status.st_ino);
        if (code != 0)
            return code;
    }
    return 0;
}

int cgroup_walk(int directory_fd, int (*cb)(void *ctx, int fd), void *ctx)
{
    scoped_fd int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct next_child next;
    size_t depth = 0;

    if (fd < 0)
        return -errno;
    for (size_t steps = 0; steps < WALK_STEPS_MAX; steps++) {
        int code = cb(ctx, fd);

        if (code == 0)
            code = find_next(fd, &next, 0);
        if (code == 0)
            code = climb(&fd, &depth, &next);
        if (code <= 0)
            return code;
        code = step_to(&fd, next.name);
        if (code == 0)
            depth++;
        else if (code != -ENOENT)
            return code;
    }
    return -EAGAIN; /* somebody makes them faster than we look */
}

/* Removes the child NAME, or stands on it if it has children of its own. */
static int remove_or_enter(int *fd, const char *name, size_t *depth)
{
    struct next_child below;

    if (unlinkat(*fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;
    int code = step_to(fd, name);
    if (code == -ENOENT)
        return 0;
    if (code != 0)
        return code;
    ++*depth;
    code = find_next(*fd, &below, 0);
    return code == 0 ? -EBUSY : code < 0 ? code : 0; /* without children, something lives in it */
}

int cgroup_remove_below(int directory_fd)
{
    scoped_fd int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct next_child child;
    size_t depth = 0;

    if (fd < 0)
        return -errno;
    for (size_t steps = 0; steps < WALK_STEPS_MAX; steps++) {
        int code = find_next(fd, &child, 0);

        if (code == 1)
            code = remove_or_enter(&fd, child.name, &depth);
        else if (code == 0 && depth-- > 0)
            code = step_to(&fd, "..");
        else
            return code;
        if (code != 0)
            return code;
    }
    return -EAGAIN;
}

int cgroup_walk_processes(int directory_fd, bool (*cb)(void *ctx, pid_t pid), void *ctx)
{
    char buffer[512];
    pid_t pid = 0;
    ssize_t got;
    scoped_fd int fd = openat(directory_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else {
                if (pid > 0 && !cb(ctx, pid))
                    return 0;
                pid = 0;
            }
        }
    }
    return got < 0 && errno != ENODEV ? -errno : 0;
}

int cgroup_each_process(enum cgroup_mode mode, const char *name, bool (*cb)(void *ctx, pid_t pid),
                        void *ctx, struct err *err)
{
    struct cgroup_path path;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;

    scoped_fd int fd = open(path.text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : cgroup_walk_processes(fd, cb, ctx);
    if (code != 0 && code != -ENOENT)
        return err_os(err, err_from_errno(-code), -code, "cannot list the cgroup %s", name);
    return 0;
}

struct children {
    bool (*cb)(void *ctx, const char *child);
    void *ctx;
};

/* 1: no more of them. */
static int see_child(void *ctx, const char *name, unsigned char type)
{
    const struct children *children = ctx;

    return type == DT_DIR && !children->cb(children->ctx, name) ? 1 : 0;
}

int cgroup_each_child(enum cgroup_mode mode, const char *name,
                      bool (*cb)(void *ctx, const char *child), void *ctx, struct err *err)
{
    struct children children = {cb, ctx};
    struct cgroup_path path;
    struct stat status;
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;
    if (stat(path.text, &status) == 0 && status.st_nlink == 2)
        return 0; /* a link from above and its own: none from below */

    scoped_fd int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : directory_each(fd, see_child, &children);
    if (code < 0 && code != -ENOENT)
        return err_os(err, err_from_errno(-code), -code, "cannot list the cgroup %s", name);
    return 0;
}

/* --- killing by hand --- */

enum membership { MEMBER_NOT, MEMBER, MEMBER_TOO_DEEP };

/* What is kept of a line of /proc/<pid>/cgroup: its end is of no interest, however deep it goes.
 * In a container the path may begin with what the container's own root is called outside. */
struct line {
    char text[3 * CGROUP_NAME_SIZE];
    size_t length;
};

static bool line_names(const struct line *line, enum cgroup_mode mode, const char *name)
{
    const char *path = strstr(line->text, mode == CGROUP_V1 ? ":freezer:" : "0::");
    size_t length = strlen(name);

    if (path == NULL)
        return false;
    for (const char *at = strstr(path, name); at != NULL; at = strstr(at + 1, name)) {
        if (at[-1] == '/' && (at[length] == '\0' || at[length] == '/'))
            return true;
    }
    return false;
}

static enum membership membership(enum cgroup_mode mode, const char *name, pid_t pid)
{
    char path[32], text[512];
    struct line line = {.length = 0};
    bool found = false;
    ssize_t got;

    (void)text_format(path, sizeof(path), "/proc/%d/cgroup", (int)pid); /* fits */
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return MEMBER_NOT;
    while (!found && (got = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < got && !found; i++) {
            if (text[i] == '\n') {
                found = line_names(&line, mode, name);
                line = (struct line){.length = 0};
            } else if (line.length < sizeof(line.text) - 1) {
                line.text[line.length++] = text[i];
            }
        }
    }
    if (found)
        return MEMBER;
    return got < 0 && errno == ENAMETOOLONG ? MEMBER_TOO_DEEP : MEMBER_NOT;
}

bool cgroup_has(enum cgroup_mode mode, const char *name, pid_t pid)
{
    return mode != CGROUP_NONE && membership(mode, name, pid) != MEMBER_NOT;
}

struct killing {
    enum cgroup_mode mode;
    const char *name;
    int fd; /* of the directory in which we are */
};

struct search {
    pid_t pid;
    bool found;
};

static bool compare(void *ctx, pid_t pid)
{
    struct search *search = ctx;

    search->found = pid == search->pid;
    return !search->found;
}

/* Where the kernel cannot say the path any more: PID is still listed, after its pidfd was opened.
 */
static bool is_listed(int fd, pid_t pid)
{
    struct search search = {.pid = pid};

    return cgroup_walk_processes(fd, compare, &search) == 0 && search.found;
}

static bool kill_member(void *ctx, pid_t pid)
{
    const struct killing *killing = ctx;
    scoped_fd int fd = pidfd_of(pid);
    enum membership is = fd < 0 ? MEMBER_NOT : membership(killing->mode, killing->name, pid);

    if (is == MEMBER || (is == MEMBER_TOO_DEEP && is_listed(killing->fd, pid)))
        (void)pidfd_signal(fd, SIGKILL); /* gone is what we want */
    return true;
}

static int kill_members(void *ctx, int fd)
{
    ((struct killing *)ctx)->fd = fd;
    return cgroup_walk_processes(fd, kill_member, ctx);
}

static void freeze(int fd, bool v1)
{
    char text[128];

    /* An empty cgroup, or a kernel without a freezer: the kill below is then all there is. */
    if (small_file_write(fd, v1 ? "freezer.state" : "cgroup.freeze", v1 ? "FROZEN" : "1") != 0)
        return;
    for (int i = 0; i < FREEZE_LOOKS_MAX; i++) {
        if (small_file_read(fd, v1 ? "freezer.state" : "cgroup.events", text, sizeof(text)) < 0)
            return;
        if (strstr(text, v1 ? "FROZEN" : "frozen 1") != NULL)
            return;
        (void)sched_yield(); /* always succeeds */
    }
}

int cgroup_kill_frozen(enum cgroup_mode mode, const char *name, const struct cgroup_path *path,
                       struct err *err)
{
    struct killing killing = {.mode = mode, .name = name, .fd = -1};
    bool v1 = mode == CGROUP_V1;
    scoped_fd int fd = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot kill the cgroup %s", name);

    freeze(fd, v1);
    int code = cgroup_walk(fd, kill_members, &killing);
    int thawed = small_file_write(fd, v1 ? "freezer.state" : "cgroup.freeze", v1 ? "THAWED" : "0");
    code = code != 0 ? code : thawed;
    if (code != 0 && code != -ENOENT && code != -ENODEV)
        return err_os(err, err_from_errno(-code), -code, "cannot kill the cgroup %s", name);
    return 0;
}
