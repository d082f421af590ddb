/*
 * Copies a data file that a stranger may be writing to (copy.h).
 *
 * Without a reader's slot nothing keeps the writer from using pages again.  But the writer of
 * transaction N+2 is the first that may overwrite pages which N can still reach, and it begins
 * after N+1 was committed.  So a copy is whole if the newest commit is the same before and after.
 */
#include "journal/copy.h"

#include "journal/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COPY_TRIES = 20, CHUNK_BYTES = 1 << 20 };

static int write_all(int fd, const char *bytes, size_t length, off_t at, struct err *err)
{
    while (length > 0) {
        ssize_t count = pwrite(fd, bytes, length, at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_os(err, err_from_errno(errno), errno, "copy the journal into memory");
        bytes += count;
        length -= (size_t)count;
        at += count;
    }
    return 0;
}

static int copy_bytes(int from, int to, uint64_t length, char *chunk, struct err *err)
{
    uint64_t at = 0;
    int code = 0;

    while (code == 0 && at < length) {
        ssize_t count = pread(from, chunk, CHUNK_BYTES, (off_t)at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return err_os(err, ERR_IO, errno, "read the data file");
        if (count == 0)
            break; /* pages at the end that were never written; pages_check knows */
        code = write_all(to, chunk, (size_t)count, (off_t)at, err);
        at += (uint64_t)count;
    }
    return code;
}

static int copy_moment(int from, int to, char *chunk, struct err *err)
{
    struct pages_head before, after;

    for (int i = 0; i < COPY_TRIES; i++) {
        int code = pages_head(from, &before, err);
        if (code == 0)
            code = copy_bytes(from, to, (before.last_page + 1) * before.page_bytes, chunk, err);
        if (code == 0)
            code = pages_head(from, &after, err);
        if (code < 0)
            return code;
        if (before.transaction == after.transaction)
            return 0;
    }
    return err_set(err, ERR_AGAIN, "the journal is written faster than it can be copied");
}

int copy_private(const char *directory, int *ret_fd, struct err *err)
{
    char path[PATH_MAX];

    if (!text_format(path, sizeof(path), "%s/data.mdb", directory))
        return err_set(err, ERR_LIMIT, "the path is too long");
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0)
        return err_os(err, err_from_errno(errno), errno, "open the data file");
    int to = memfd_create("cairn-journal", MFD_CLOEXEC);
    if (to < 0) {
        int code = err_os(err, ERR_IO, errno, "make a file in memory");
        (void)close(from); /* only read from */
        return code;
    }

    char *chunk = malloc(CHUNK_BYTES);
    check(chunk != NULL);
    int code = copy_moment(from, to, chunk, err);
    free(chunk);
    (void)close(from); /* only read from */
    if (code < 0) {
        (void)close(to); /* given up */
        return code;
    }
    *ret_fd = to;
    return 0;
}

void copy_path(int fd, char *to, size_t size)
{
    text_format(to, size, "/proc/self/fd/%d", fd);
}
