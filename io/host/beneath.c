/*
 * Opening what lies in a directory that payloads write to.
 *
 * Root works in trees in which a payload may exchange any name for a link at any moment, between
 * any two calls.  A path is therefore walked by the kernel in one call that refuses links and ways
 * out (openat2), and what was opened is used by its descriptor.  A kernel that lacks the call, or a
 * filter that hides it, gets the same walk by hand: name by name, each opened in the directory
 * before it, as a place and without following.
 */
#include "io/host.h"

#include "io/host/part.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NAMES_MAX = PATH_SIZE / 2, /* one letter and a slash each */
    TRIES_MAX = 64,            /* of a walk while somebody moves directories */
};

/* --- by hand --- */

static bool is_link(int directory_fd, const char *name)
{
    struct stat status;

    return fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(status.st_mode);
}

/* Opens NAME in DIRECTORY_FD.  A link is refused as such: a place could be opened of it, and a
 * directory of it would only be said to be none. */
static int open_name(int directory_fd, const char *name, int flags, mode_t mode)
{
    scoped_fd int fd = openat(directory_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    struct stat status;

    if (fd < 0)
        return errno == ENOTDIR && is_link(directory_fd, name) ? -ELOOP : -errno;
    if (fstat(fd, &status) != 0)
        return -errno;
    return S_ISLNK(status.st_mode) ? -ELOOP : take_fd(&fd);
}

/* Takes the next name of the path *AT into TO: 1, 0 when there is none left, or a negative errno.
 */
static int next_name(const char **at, char to[NAME_SIZE])
{
    const char *name = *at + strspn(*at, "/");
    size_t length = strcspn(name, "/");

    if (length >= NAME_SIZE)
        return -ENAMETOOLONG;
    memcpy(to, name, length);
    to[length] = '\0';
    *at = name + length;
    if (text_equal(to, ".."))
        return -EXDEV;
    return length > 0 ? 1 : 0;
}

static int walk(int root_fd, const char *path, int flags, mode_t mode)
{
    scoped_fd int above = -1;
    char name[NAME_SIZE] = ".", next[NAME_SIZE];
    int more = next_name(&path, name);

    if (more == 0)
        (void)text_copy(name, sizeof(name), "."); /* the root itself */
    for (unsigned names = 0; more > 0; names++) {
        more = next_name(&path, next);
        if (more <= 0)
            break;
        if (names >= NAMES_MAX)
            return -ENAMETOOLONG;
        int fd = open_name(above < 0 ? root_fd : above, name, O_PATH | O_DIRECTORY, 0);
        if (fd < 0)
            return fd;
        scope_close_fd(&above);
        above = fd;
        memcpy(name, next, sizeof(name));
    }
    return more < 0 ? more : open_name(above < 0 ? root_fd : above, name, flags, mode);
}

/* --- by the kernel --- */

static int resolve(int root_fd, const char *path, int flags, mode_t mode, uint64_t how_to_resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) != 0 ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | how_to_resolve,
    };
    long fd = -1;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    if (fd >= 0)
        return (int)fd;
    /* EPERM: so do filters of system calls answer that are older than the call. */
    return errno == ENOSYS || errno == EPERM ? walk(root_fd, path, flags, mode) : -errno;
}

static const char *relative(const char *path)
{
    path += strspn(path, "/");
    return path[0] == '\0' ? "." : path;
}

int beneath_open(int root_fd, const char *path, int flags, mode_t mode)
{
    return resolve(root_fd, relative(path), flags, mode, RESOLVE_NO_SYMLINKS);
}

int beneath_follow(int root_fd, const char *path, int flags)
{
    check((flags & O_CREAT) == 0);
    return resolve(root_fd, relative(path), flags, 0, 0);
}

/* --- places --- */

int place_find(int directory_fd, const char *path, char name[NAME_SIZE], int *ret_fd,
               struct err *err)
{
    char directory[PATH_SIZE];
    int code = path_split(path, directory, name, err);

    if (code != 0)
        return code;
    int fd = directory_fd == AT_FDCWD
                 ? open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC)
                 : beneath_open(directory_fd, directory, O_PATH | O_DIRECTORY, 0);
    int number = directory_fd == AT_FDCWD ? errno : -fd;
    if (fd < 0)
        return err_os(err, number == ENOTDIR ? ERR_GONE : err_from_errno(number), number,
                      "cannot open the directory of %s", path);
    *ret_fd = fd;
    return 0;
}

void place_path(int fd, char to[PLACE_PATH_SIZE])
{
    check(text_format(to, PLACE_PATH_SIZE, "/proc/self/fd/%d", fd));
}

int place_open(int fd, int flags)
{
    char path[PLACE_PATH_SIZE];

    place_path(fd, path);
    int opened = open(path, flags | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
}

int place_chmod(int fd, mode_t mode)
{
    char path[PLACE_PATH_SIZE];

    place_path(fd, path); /* fchmod refuses a descriptor that is only a place */
    return chmod(path, mode) == 0 ? 0 : -errno;
}
