#include "hooks/file.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { DIRECTORY_MODE = 0755 };

int hooks_file_enter(int place, const char *path, const struct host_user *owner,
                     char ret_name[NAME_SIZE], int *ret_fd, struct err *err)
{
    scoped_fd int at = dup(place);

    for (;;) {
        size_t length = strcspn(path, "/");

        if (length == 0 || length >= NAME_SIZE)
            return err_set(err, ERR_INVALID, "the destination names no file");
        (void)text_format(ret_name, NAME_SIZE, "%.*s", (int)length, path); /* fits */
        path += length + strspn(path + length, "/");
        if (*path == '\0')
            break;
        bool made = mkdirat(at, ret_name, DIRECTORY_MODE) == 0;
        int next = beneath_open(at, ret_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (next < 0)
            return err_os(err, err_from_errno(-next), -next, "cannot enter %.80s", ret_name);
        (void)close(at);
        at = next;
        if (made && owner != NULL && fchown(at, owner->uid, owner->gid) != 0)
            return err_os(err, err_from_errno(errno), errno, "cannot give away %.80s", ret_name);
    }
    *ret_fd = take_fd(&at);
    return 0;
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);

        if (done < 0 && errno != EINTR)
            return -1;
        bytes += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int hooks_file_replace(int directory, const char *name, const void *bytes, size_t length,
                       const struct stat *wanted, bool gives, struct err *err)
{
    char unfinished[48]; /* of its own: several are written at once */
    int failed = 0;

    (void)text_format(unfinished, sizeof(unfinished), ".cairn-unfinished-%016llx",
                      (unsigned long long)hash_bytes(1, name, strlen(name))); /* it fits */
    (void)unlinkat(directory, unfinished, 0); /* of an earlier attempt; else the next call fails */
    scoped_fd int fd =
        openat(directory, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || write_all(fd, bytes, length) != 0 ||
        (gives && fchown(fd, wanted->st_uid, wanted->st_gid) != 0) ||
        fchmod(fd, wanted->st_mode) != 0 || renameat(directory, unfinished, directory, name) != 0)
        failed = errno;
    if (failed == 0)
        return 0;
    (void)unlinkat(directory, unfinished, 0); /* likewise */
    int code = err_os(err, err_from_errno(failed), failed, "cannot write %.80s", name);
    err->recoverable = code == ERR_FULL;
    return code;
}
