/*
 * The record of a plugin's process: written before it begins, by its maker, and by itself.
 *
 * Its lock is handed to the process that is being made, which gives it up when its program begins:
 * whoever has the lock knows that nobody else is about to write.
 */
#include "plugins/process/part.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int record_open(const char *directory, int *ret_fd, struct err *err)
{
    char path[PATH_SIZE];

    if (path_join(path, directory, "process") != 0)
        return err_set(err, ERR_LIMIT, "state_dir is too long");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int os = errno;

        (void)close(fd); /* nothing was written */
        return err_os(err, os == EWOULDBLOCK ? ERR_AGAIN : err_from_errno(os), os, "cannot lock %s",
                      path);
    }
    *ret_fd = fd;
    return 0;
}

void record_read(int fd, struct record *ret_record)
{
    struct record record;
    bool whole = pread(fd, &record, sizeof(record), 0) == sizeof(record);

    if (whole && record.version == RECORD_VERSION &&
        memchr(record.boot_id, '\0', sizeof(record.boot_id)) != NULL &&
        memchr(record.socket, '\0', sizeof(record.socket)) != NULL)
        *ret_record = record;
    else
        memset(ret_record, 0, sizeof(*ret_record));
}

/* Not synced: what a host that ends takes with it, it takes the process with, too. */
int record_write(int fd, const struct record *record, struct err *err)
{
    ssize_t written = pwrite(fd, record, sizeof(*record), 0);

    return written == sizeof(*record)
               ? 0
               : err_os(err, ERR_IO, written < 0 ? errno : ENOSPC, "cannot write down who it is");
}
