/*
 * One output stream of a payload into numbered files of bounded size.
 *
 * Follows nomad v1.1.2 client/lib/../logging/rotator.go: <task>.<stdout|stderr>.<n>, counted from
 * 0, mode 0644; a restart goes on with the newest; the oldest are deleted beyond max_files; a file
 * is changed at the end of a line if there is one.  Invariant: writing never fails as far as the
 * payload can tell.  What the disk does not take is counted and forgotten, and the next chunk is
 * tried again.
 *
 * The directory belongs to the payload as much as to us, and we may be root: each file is opened in
 * what is the log directory at that moment, reached from the alloc's own without a link, and what
 * lies there and is no file, or has another name elsewhere, is not written to.
 */
#include "drivers/shim/shim.h"

#include "io/host.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_NAME_SIZE = SPEC_NAME_SIZE + 40, LINE_SCAN_BYTES = 32768 };

/* Numbers above this are not ours: there is room to count on from here. */
#define INDEX_MAX (UINT64_MAX / 4)

static void file_name(char to[FILE_NAME_SIZE], const struct log_settings *settings,
                      const struct log_stream *stream, uint64_t index)
{
    check(text_format(to, FILE_NAME_SIZE, "%s.%s.%llu", settings->name, stream->suffix,
                      (unsigned long long)index));
}

struct scan {
    int fd;
    char prefix[FILE_NAME_SIZE];
    uint64_t delete_below, newest;
    bool found;
};

static int scan_entry(void *ctx, const char *name, unsigned char type)
{
    struct scan *scan = ctx;
    uint64_t index;

    (void)type; /* a file's kind is looked at when it is opened */
    if (!text_starts_with(name, scan->prefix) ||
        !text_to_u64(name + strlen(scan->prefix), &index) || index > INDEX_MAX)
        return 0;
    if (index < scan->delete_below)
        (void)unlinkat(scan->fd, name, 0); /* an old file too many is no reason to fail */
    if (!scan->found || index > scan->newest)
        scan->newest = index;
    scan->found = true;
    return 0;
}

/* Goes through the files of STREAM.  Deletes those below DELETE_BELOW; RET_NEWEST is the highest
 * number seen; false if there is no file. */
static bool scan(const struct log_stream *stream, const struct log_settings *settings,
                 uint64_t delete_below, uint64_t *ret_newest)
{
    scoped_fd int fd =
        beneath_open(settings->alloc_fd, settings->directory, O_RDONLY | O_DIRECTORY, 0);
    struct scan scan = {.fd = fd, .delete_below = delete_below};

    if (fd < 0)
        return false;
    check(text_format(scan.prefix, sizeof(scan.prefix), "%s.%s.", settings->name, stream->suffix));
    (void)directory_each(fd, scan_entry, &scan); /* what cannot be listed is as good as absent */
    if (scan.found)
        *ret_newest = scan.newest;
    return scan.found;
}

static void delete_old(const struct log_stream *stream, const struct log_settings *settings)
{
    uint64_t newest;

    if (stream->index >= settings->files_max)
        (void)scan(stream, settings, stream->index - settings->files_max + 1, &newest);
}

/* Opens the file of the present number; leaves file_fd at -1 if that is not possible now. */
static void open_file(struct log_stream *stream, const struct log_settings *settings)
{
    char name[FILE_NAME_SIZE], last;
    struct stat status;

    file_name(name, settings, stream, stream->index);
    scoped_fd int directory =
        beneath_open(settings->alloc_fd, settings->directory, O_PATH | O_DIRECTORY, 0);
    if (directory < 0)
        return;
    scoped_fd int fd =
        beneath_open(directory, name, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1)
        return;
    stream->file_fd = take_fd(&fd);
    stream->size = (uint64_t)status.st_size;
    stream->at_line_start = status.st_size == 0 ||
                            pread(stream->file_fd, &last, 1, status.st_size - 1) != 1 ||
                            last == '\n';
}

static void rotate(struct log_stream *stream, const struct log_settings *settings)
{
    if (stream->file_fd >= 0)
        (void)close(stream->file_fd); /* an error now concerns bytes counted as written */
    stream->file_fd = -1;
    stream->index++;
    stream->size = 0;
    open_file(stream, settings);
    delete_old(stream, settings);
}

void log_open(struct log_stream *stream, const struct log_settings *settings, const char *suffix)
{
    *stream = (struct log_stream){.suffix = suffix, .pipe_fd = -1, .file_fd = -1};
    (void)scan(stream, settings, 0, &stream->index); /* none: number 0 */
    open_file(stream, settings);
    delete_old(stream, settings);
}

/* How many of LENGTH bytes go into the present file, which has room for SPACE; what is left over
 * starts the next one.  Far from the file's end that is all.  Near it, whole lines: the beginning
 * of a line would be torn off by a later chunk.  A line that began in this file, or that fits in
 * no file, is cut. */
static size_t share(const struct log_stream *stream, const struct log_settings *settings,
                    const char *bytes, size_t length, uint64_t space)
{
    uint64_t margin =
        settings->bytes_max / 16 < LINE_SCAN_BYTES ? settings->bytes_max / 16 : LINE_SCAN_BYTES;
    size_t fits = length < space ? length : space;

    if (length + margin <= space)
        return length;

    const char *line_end = memrchr(bytes, '\n', fits);
    if (line_end != NULL)
        return (size_t)(line_end - bytes) + 1;
    if (stream->at_line_start && stream->size > 0)
        return 0;
    return fits;
}

/* Writes what the disk takes of it; the rest is lost. */
static void put(struct log_stream *stream, const char *bytes, size_t length)
{
    size_t done = 0;

    while (stream->file_fd >= 0 && done < length) {
        ssize_t put = write(stream->file_fd, bytes + done, length - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            break; /* full or broken: tried again with the next chunk */
        done += (size_t)put;
    }
    if (done > 0)
        stream->at_line_start = bytes[done - 1] == '\n';
    stream->size += done;
    stream->bytes_written += done;
    stream->bytes_lost += length - done;
}

void log_write(struct log_stream *stream, const struct log_settings *settings, const char *bytes,
               size_t length)
{
    if (stream->file_fd < 0)
        open_file(stream, settings); /* the directory may be back, the disk have room again */
    while (length > 0) {
        uint64_t space =
            stream->size < settings->bytes_max ? settings->bytes_max - stream->size : 0;
        size_t part = stream->file_fd < 0 ? length : share(stream, settings, bytes, length, space);

        if (part > 0)
            put(stream, bytes, part);
        bytes += part;
        length -= part;
        if (length > 0)
            rotate(stream, settings);
    }
}

void log_close(struct log_stream *stream)
{
    if (stream->pipe_fd >= 0)
        (void)close(stream->pipe_fd); /* only read from */
    if (stream->file_fd >= 0)
        (void)close(stream->file_fd); /* nobody left to tell of an error */
    stream->pipe_fd = stream->file_fd = -1;
}
