/*
 * Making directories that payloads may write to.
 *
 * Invariant: nothing is followed, changed or given away that is not the directory meant.  A place
 * is opened by name in its parent without following links, and owner and mode are set through
 * that descriptor: a payload that puts a link to /etc where its `local` was gains nothing.
 *
 * A new directory has no mode bits until it is whole: owner first, mode last.  So the next attempt
 * after a crash knows a half-made one, and a whole one is left alone: a payload that narrowed the
 * mode of its `local` (PostgreSQL insists on 0700) finds it so at its next start.  One that is to
 * be the daemon's own is born whole where no umask cuts its mode.
 */
#include "hooks/directory.h"

#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACE = O_PATH | O_DIRECTORY };

/* Space, memory and descriptors come back; what else can go wrong here stays wrong. */
static int fail(struct err *err, int number, const char *doing, const char *shown)
{
    int code = err_os(err, err_from_errno(number), number, "cannot %s %s", doing, shown);

    err->recoverable = code == ERR_FULL || code == ERR_AGAIN || number == EMFILE ||
                       number == ENFILE || number == ENOMEM || number == EIO;
    return code;
}

int hooks_open_parent(const struct hook_request *request, int *ret_fd, struct err *err)
{
    int fd = open(request->alloc_dir, PLACE | O_CLOEXEC); /* the operator may have linked it */

    if (fd < 0)
        return fail(err, errno, "open", request->alloc_dir);
    *ret_fd = fd;
    return 0;
}

int hooks_open_root(const struct hook_request *request, int *ret_fd, struct err *err)
{
    scoped_fd int parent = -1;
    int code = hooks_open_parent(request, &parent, err);

    if (code != 0 && err->os != ENOENT)
        return code;
    int fd = parent < 0 ? -ENOENT : beneath_open(parent, request->alloc, PLACE, 0);
    if (fd >= 0) {
        *ret_fd = fd;
        return 0;
    }
    if (fd != -ENOENT)
        return fail(err, -fd, "open", "the alloc directory");
    return err_set(err, ERR_GONE, "alloc directory is gone: %s/%s", request->alloc_dir,
                   request->alloc);
}

int hooks_directory_open(int parent_fd, const char *name, const char *shown, int *ret_fd,
                         struct err *err)
{
    int fd = beneath_open(parent_fd, name, PLACE, 0);

    if (fd == -ENOTDIR || fd == -ELOOP)
        return err_set(err, ERR_EXISTS, "%s is not a directory", shown);
    if (fd < 0)
        return fail(err, -fd, "open", shown);
    *ret_fd = fd;
    return 0;
}

static int finish(int fd, mode_t mode, const struct host_user *owner)
{
    if (owner != NULL && fchownat(fd, "", owner->uid, owner->gid, AT_EMPTY_PATH) != 0)
        return -errno;
    return place_chmod(fd, mode);
}

/* True of what STATUS tells: nothing about it has to be changed. */
static bool is_whole(const struct stat *status, mode_t mode, const struct host_user *owner)
{
    return S_ISDIR(status->st_mode) && (status->st_mode & 07777) == mode &&
           (owner == NULL || (status->st_uid == owner->uid && status->st_gid == owner->gid));
}

/* Whoever makes it owns it, but for a group that the file system may hand down. */
static bool is_own(const struct host_user *owner)
{
    return owner == NULL || (owner->uid == geteuid() && owner->gid == getegid());
}

int hooks_directory_make(int parent_fd, const char *name, mode_t mode,
                         const struct host_user *owner, const char *shown, int *ret_fd,
                         struct err *err)
{
    mode_t at_birth = io_work_is_unmasked() && is_own(owner) ? mode : 0;
    bool made = mkdirat(parent_fd, name, at_birth) == 0;
    struct stat status;
    scoped_fd int fd = -1;

    if (!made && errno != EEXIST)
        return fail(err, errno, "make", shown);
    if (made && ret_fd == NULL && fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_whole(&status, mode, owner))
        return 0;
    int code = hooks_directory_open(parent_fd, name, shown, &fd, err);
    if (code != 0)
        return code;
    if (fstat(fd, &status) != 0)
        return fail(err, errno, "look at", shown);
    if (made ? !is_whole(&status, mode, owner) : (status.st_mode & 0777) == 0) {
        int failed = finish(fd, mode, owner);
        if (failed != 0)
            return fail(err, -failed, "set owner and mode of", shown);
    }
    if (ret_fd != NULL)
        *ret_fd = take_fd(&fd);
    return 0;
}
