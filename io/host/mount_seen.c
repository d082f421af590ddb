/*
 * Mounts of a process that sees others than we do.
 *
 * A namespace of mounts is entered by a thread that ends with its visit: what it had of its own,
 * root and working directory, never has to be found again, and no thread of ours is ever left in
 * somebody else's.
 */
#include "io/host.h"

#include "io/scope.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

struct visit {
    int namespace; /* to be entered */
    const char *path;
    int copy; /* a descriptor, or a negative errno; -ENOENT: nothing is mounted there */
};

static int copy_at(const char *path)
{
    scoped_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    scoped_fd int place = root < 0 ? -1 : beneath_open(root, path, O_PATH, 0);
    struct statx status;

    if (root < 0 || place < 0)
        return root < 0 ? -errno : place;
    if (statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &status) != 0)
        return -errno;
    if ((status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0)
        return -ENOENT;
    int copy = open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    return copy < 0 ? -errno : copy;
}

static void *visit_on_thread(void *ctx)
{
    struct visit *visit = ctx;

    if (unshare(CLONE_FS) != 0 || setns(visit->namespace, CLONE_NEWNS) != 0)
        visit->copy = -errno;
    else
        visit->copy = copy_at(visit->path);
    return NULL;
}

/* Its namespace of mounts; -1: it is ours. */
static int namespace_of(const struct proc_identity *process, int *ret_fd, struct err *err)
{
    char path[40];
    struct stat own, theirs;

    (void)text_format(path, sizeof(path), "/proc/%d/ns/mnt", (int)process->pid); /* fits */
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    /* Opened before it is asked for: the number may be somebody else's by now. */
    if (!proc_is_alive(process))
        return err_set(err, ERR_GONE, "the process is gone");
    if (fd < 0 || fstat(fd, &theirs) != 0 || stat("/proc/self/ns/mnt", &own) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot look at its mount namespace");
    *ret_fd = theirs.st_ino == own.st_ino ? -1 : take_fd(&fd);
    return 0;
}

int mount_seen_by(const struct proc_identity *process, const char *path, int *ret_fd,
                  struct err *err)
{
    scoped_fd int namespace = -1;
    int code = namespace_of(process, &namespace, err);
    struct visit visit = {.namespace = namespace, .path = path, .copy = -ENOENT};
    pthread_t thread;

    *ret_fd = -1;
    if (code != 0 || namespace < 0)
        return code;
    int failed = pthread_create(&thread, NULL, visit_on_thread, &visit);
    if (failed != 0)
        return err_os(err, ERR_AGAIN, failed, "cannot make a thread");
    check(pthread_join(thread, NULL) == 0);
    if (visit.copy < 0 && visit.copy != -ENOENT)
        return err_os(err, err_from_errno(-visit.copy), -visit.copy,
                      "cannot look at the mounts of process %d", (int)process->pid);
    *ret_fd = visit.copy < 0 ? -1 : visit.copy;
    return 0;
}
