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
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Looks at a freezer's state before it is called as frozen as it gets; each look also pushes the
 * v1 freezer on.  Some tens of microseconds are enough unless a process sleeps in the kernel. */
enum { FREEZE_LOOKS_MAX = 200 };

struct walk {
    int fd, depth;
    int (*cb)(void *ctx, int fd, const char *name);
    void *ctx;
};

static int walk_named(struct walk *walk, const char *name);

static int walk_child(void *ctx, const char *name, unsigned char type)
{
    const struct walk *above = ctx;

    if (type != DT_DIR)
        return 0;
    scoped_fd int fd = openat(above->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct walk walk = {fd, above->depth + 1, above->cb, above->ctx};
    int code = fd < 0 ? -errno : walk_named(&walk, name);
    return code == -ENOENT ? 0 : code;
}

static int walk_named(struct walk *walk, const char *name)
{
    if (walk->depth >= CGROUP_DEPTH_MAX)
        return -ELOOP;
    int code = directory_each(walk->fd, walk_child, walk);
    if (code != 0 && code != -ENOENT)
        return code;
    return walk->cb(walk->ctx, walk->fd, name);
}

int cgroup_walk(int directory_fd, int (*cb)(void *ctx, int fd, const char *name), void *ctx)
{
    return walk_named(&(struct walk){directory_fd, 0, cb, ctx}, "");
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
    int code = cgroup_path_of(mode, name, &path, err);

    if (code != 0 || mode == CGROUP_NONE)
        return code;

    scoped_fd int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    code = fd < 0 ? -errno : directory_each(fd, see_child, &children);
    if (code < 0 && code != -ENOENT)
        return err_os(err, err_from_errno(-code), -code, "cannot list the cgroup %s", name);
    return 0;
}

/* --- killing by hand --- */

struct killing {
    enum cgroup_mode mode;
    const char *name;
    size_t name_length;
};

/* True if PID is in the cgroup we kill or below.  In a container the line of /proc/<pid>/cgroup may
 * begin with what the container's own root is called outside. */
static bool is_member(const struct killing *killing, pid_t pid)
{
    char path[32], text[2048];

    (void)text_format(path, sizeof(path), "/proc/%d/cgroup", (int)pid); /* fits */
    if (small_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return false;

    char *line = strstr(text, killing->mode == CGROUP_V1 ? ":freezer:" : "0::");
    if (line == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = strstr(line, killing->name); at != NULL; at = strstr(at + 1, killing->name)) {
        char end = at[killing->name_length];

        if (at[-1] == '/' && (end == '\0' || end == '/'))
            return true;
    }
    return false;
}

static bool kill_member(void *ctx, pid_t pid)
{
    scoped_fd int fd = pidfd_of(pid);

    if (fd >= 0 && is_member(ctx, pid))
        (void)pidfd_signal(fd, SIGKILL); /* gone is what we want */
    return true;
}

static int kill_members(void *ctx, int fd, const char *name)
{
    (void)name;
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
    struct killing killing = {.mode = mode, .name = name, .name_length = strlen(name)};
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
