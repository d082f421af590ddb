/*
 * Files and directories.
 *
 * Invariant: what file_write_durable replaced is whole after a crash, the old or the new.  Paths
 * may lie in directories that a payload can write to, so the last part of a path is never
 * followed when it is written, and only regular files are read.
 */
#include "io/host.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int path_join(char to[PATH_SIZE], const char *directory, const char *name)
{
    size_t length = strlen(directory);

    while (length > 1 && directory[length - 1] == '/')
        length--;
    while (*name == '/')
        name++;
    bool slash = length > 0 && directory[length - 1] != '/' && *name != '\0';
    if (length + (slash ? 1 : 0) + strlen(name) >= PATH_SIZE)
        return ERR_LIMIT;

    memmove(to, directory, length);
    to[length] = '\0';
    if (slash)
        (void)text_append(to, PATH_SIZE, "/"); /* fits, as counted above */
    (void)text_append(to, PATH_SIZE, name);    /* the same */
    return 0;
}

int path_split(const char *path, char directory[PATH_SIZE], char name[NAME_SIZE], struct err *err)
{
    size_t end = strlen(path);

    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t length = end - start;

    if (start >= PATH_SIZE || length >= NAME_SIZE)
        return err_set(err, ERR_LIMIT, "path is too long");
    if (length == 0 || (length == 1 && path[start] == '.') ||
        (length == 2 && path[start] == '.' && path[start + 1] == '.'))
        return err_set(err, ERR_INVALID, "path %s names nothing in a directory", path);

    memcpy(name, path + start, length);
    name[length] = '\0';
    memcpy(directory, path, start);
    directory[start] = '\0';
    if (start == 0)
        memcpy(directory, ".", sizeof("."));
    return 0;
}

/* --- reading --- */

static int read_to_end(int fd, size_t expected, size_t bytes_max, char **ret_bytes,
                       size_t *ret_length)
{
    size_t capacity = expected < bytes_max ? expected : bytes_max, length = 0;
    scoped_string char *bytes = malloc(capacity + 2); /* a byte too much shows, and the NUL */

    for (;;) {
        if (bytes == NULL)
            return -ENOMEM;
        ssize_t got = read(fd, bytes + length, capacity + 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        length += (size_t)got;
        if (got == 0)
            break;
        if (length <= capacity)
            continue;
        if (capacity >= bytes_max)
            return -EFBIG;
        capacity = capacity < 2048 ? 4096 : capacity * 2;
        if (capacity > bytes_max)
            capacity = bytes_max;
        char *larger = realloc(bytes, capacity + 2);
        if (larger == NULL)
            return -ENOMEM;
        bytes = larger;
    }
    bytes[length] = '\0';
    *ret_bytes = bytes;
    *ret_length = length;
    bytes = NULL; /* moved */
    return 0;
}

int file_read(const char *path, size_t bytes_max, char **ret_bytes, size_t *ret_length,
              struct err *err)
{
    struct stat status;

    /* Non-blocking: opening a FIFO that a payload put there must not wait for its writer. */
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    if (fstat(fd, &status) != 0)
        return err_os(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_INVALID, "%s is not a regular file", path);

    size_t expected = status.st_size > 0 ? (size_t)status.st_size : 0;
    int failed = read_to_end(fd, expected, bytes_max, ret_bytes, ret_length);
    if (failed == -EFBIG)
        return err_set(err, ERR_LIMIT, "%s is longer than %zu bytes", path, bytes_max);
    if (failed != 0)
        return err_os(err, err_from_errno(-failed), -failed, "cannot read %s", path);
    return 0;
}

/* --- writing --- */

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* The new content, synced, under the name TEMPORARY; a negative errno otherwise. */
static int write_beside(int directory_fd, const char *temporary, const void *bytes, size_t length,
                        mode_t mode)
{
    /* What an earlier attempt left, or what somebody put there for us to follow. */
    if (unlinkat(directory_fd, temporary, 0) != 0 && errno != ENOENT)
        return -errno;
    scoped_fd int fd =
        openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;

    int failed = write_all(fd, bytes, length);
    if (failed == 0 && fchmod(fd, mode) != 0)
        failed = -errno;
    if (failed == 0 && fsync(fd) != 0)
        failed = -errno;
    if (failed == 0 && close(take_fd(&fd)) != 0)
        failed = -errno;
    return failed;
}

int file_write_durable(const char *path, const void *bytes, size_t length, mode_t mode,
                       struct err *err)
{
    char directory[PATH_SIZE], name[NAME_SIZE], temporary[NAME_SIZE];
    int code = path_split(path, directory, name, err);

    if (code != 0)
        return code;
    if (!text_format(temporary, sizeof(temporary), "%s.new", name))
        return err_set(err, ERR_LIMIT, "name of %s is too long", path);
    scoped_fd int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open directory %s", directory);

    int failed = write_beside(fd, temporary, bytes, length, mode);
    if (failed == 0 && renameat(fd, temporary, fd, name) != 0)
        failed = -errno;
    if (failed != 0) {
        (void)unlinkat(fd, temporary, 0); /* the first failure is the one to tell */
        return err_os(err, err_from_errno(-failed), -failed, "cannot write %s", path);
    }
    if (fsync(fd) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot sync directory %s", directory);
    return 0;
}

/* --- directories --- */

int directory_make(const char *path, mode_t mode, uid_t uid, gid_t gid, struct err *err)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return err_os(err, err_from_errno(errno), errno, "cannot make directory %s", path);
    scoped_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_os(err, errno == ENOTDIR || errno == ELOOP ? ERR_EXISTS : err_from_errno(errno),
                      errno, "cannot use %s as a directory", path);

    bool chown_wanted = uid != (uid_t)-1 || gid != (gid_t)-1;
    if (chown_wanted && fchown(fd, uid, gid) != 0)
        return err_os(err, err_from_errno(errno), errno, "cannot give directory %s away", path);
    if (fchmod(fd, mode) != 0) /* after the owner: a new owner clears bits; umask was in the way */
        return err_os(err, err_from_errno(errno), errno, "cannot set the mode of %s", path);
    return 0;
}

static int make_part(const char *path, mode_t mode, struct err *err)
{
    struct stat status;

    if (mkdir(path, mode) == 0) {
        if (chmod(path, mode) == 0)
            return 0;
    } else if (errno == EEXIST && stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return 0;
        errno = ENOTDIR;
    }
    return err_os(err, err_from_errno(errno), errno, "cannot make directory %s", path);
}

int directory_make_all(const char *path, mode_t mode, struct err *err)
{
    char part[PATH_SIZE];

    if (!text_copy(part, sizeof(part), path))
        return err_set(err, ERR_LIMIT, "path is too long");
    for (char *at = part + 1; part[0] != '\0'; at++) {
        char here = *at;

        if (here != '/' && here != '\0')
            continue;
        *at = '\0';
        if (at[-1] != '/') {
            int code = make_part(part, mode, err);
            if (code != 0)
                return code;
        }
        if (here == '\0')
            return 0;
        *at = here;
    }
    return err_set(err, ERR_INVALID, "path is empty");
}
