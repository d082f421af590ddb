/*
 * One output stream of a payload into numbered files of bounded size.
 *
 * Follows nomad v1.1.2 client/lib/../logging/rotator.go: <task>.<stdout|stderr>.<n>, counted from
 * 0, mode 0644; a restart goes on with the newest; the oldest are deleted beyond max_files; a file
 * is changed at the end of a line if there is one.  Invariant: writing never fails as far as the
 * payload can tell.  What cannot be written is counted and forgotten, by lines where there are any;
 * each chunk is tried anew, and the first one that goes is preceded by a line that says how much is
 * missing there, and why.
 *
 * As root we could fill a disk to its last block, and a node whose disk is full cannot even be told
 * to stop the task that filled it: a part of every disk is left free.
 *
 * Somebody may remove a log file, or the whole directory, under us.  Where the file should be is
 * looked at beside the writing, and what went to a file that is gone counts as missing.
 *
 * The directory belongs to the payload as much as to us, and we may be root: each file is opened in
 * what is the log directory at that moment, reached from the alloc's own without a link, and what
 * lies there and is no file, or has another name elsewhere, is not written to.
 */
#include "drivers/shim/numbers.h"
#include "drivers/shim/shim.h"

#include "io/host.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    FILE_NAME_SIZE = SPEC_NAME_SIZE + 40,
    LINE_SCAN_BYTES = 32768,
    LOOK_AGAIN_MS = 1000, /* at where the file should be */

    /* What is left of a disk: a part of it, at most so much. */
    RESERVE_PART = 50,
    RESERVE_BYTES_MAX = 64 * 1024 * 1024,

    DIRECTORY_MODE = 0777, /* as hooks/logs.c makes it */
};

static const char disk_is_full[] = "the disk is nearly full";
static const char file_was_removed[] = "the log file was removed";
static const char no_file[] = "the log file could not be opened";
static const char write_failed[] = "it could not be written";

static void file_name(char to[FILE_NAME_SIZE], const struct log_settings *settings,
                      const struct log_stream *stream, uint64_t index)
{
    check(text_format(to, FILE_NAME_SIZE, "%s.%s.%llu", settings->name, stream->suffix,
                      (unsigned long long)index));
}

/* As numbers_scan(), of the files of STREAM in the log directory. */
static void scan(const struct log_stream *stream, const struct log_settings *settings,
                 int directory, uint64_t delete_below, uint64_t *ret_newest)
{
    char prefix[FILE_NAME_SIZE];

    check(text_format(prefix, sizeof(prefix), "%s.%s.", settings->name, stream->suffix));
    (void)numbers_scan(directory, prefix, delete_below, ret_newest); /* none: as it was */
}

static void delete_old(const struct log_stream *stream, const struct log_settings *settings,
                       int directory)
{
    uint64_t newest;

    if (stream->index >= settings->files_max)
        scan(stream, settings, directory, stream->index - settings->files_max + 1, &newest);
}

/* The log directory, or a negative errno.  One that cannot be listed may still be written to. */
static int open_directory(const struct log_settings *settings)
{
    int fd = beneath_open(settings->alloc_fd, settings->directory, O_RDONLY | O_DIRECTORY, 0);

    return fd != -EACCES
               ? fd
               : beneath_open(settings->alloc_fd, settings->directory, O_PATH | O_DIRECTORY, 0);
}

/* Somebody has removed it.  It is open to every task of the alloc, as it was. */
static void make_directory(const struct log_settings *settings)
{
    char parent[sizeof(settings->directory)];

    check(text_copy(parent, sizeof(parent), settings->directory));
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return;
    *slash = '\0';
    scoped_fd int fd = beneath_open(settings->alloc_fd, parent, O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return;
    mode_t mask = umask(0);
    (void)mkdirat(fd, slash + 1,
                  DIRECTORY_MODE); /* the open that follows says whether it is there */
    (void)umask(mask);             /* cannot fail */
}

/* As open_directory(), and makes it where it is not there. */
static int find_directory(const struct log_settings *settings)
{
    int fd = open_directory(settings);

    if (fd != -ENOENT)
        return fd;
    make_directory(settings);
    return open_directory(settings);
}

/* Opens the file of the present number in DIRECTORY, which may be none; leaves file_fd at -1 if
 * that is not possible now. */
static void open_file(struct log_stream *stream, const struct log_settings *settings, int directory)
{
    char name[FILE_NAME_SIZE], last;
    struct stat status;

    file_name(name, settings, stream, stream->index);
    if (directory < 0)
        return;
    scoped_fd int fd =
        beneath_open(directory, name, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1)
        return;
    stream->file_fd = take_fd(&fd);
    stream->unproven = 0;
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
    scoped_fd int directory = find_directory(settings);
    open_file(stream, settings, directory);
    delete_old(stream, settings, directory);
}

void log_open(struct log_stream *stream, const struct log_settings *settings, const char *suffix)
{
    *stream = (struct log_stream){.suffix = suffix, .pipe_fd = -1, .file_fd = -1};
    scoped_fd int directory = find_directory(settings);
    scan(stream, settings, directory, 0, &stream->index); /* none: number 0 */
    open_file(stream, settings, directory);
    delete_old(stream, settings, directory);
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

/* --- what is missing --- */

static void lose(struct log_stream *stream, const char *bytes, size_t length, const char *why)
{
    if (length == 0)
        return;
    stream->why_missing = why;
    stream->bytes_lost += length;
    stream->missing_bytes += length;
    stream->missing_end = bytes[length - 1] != '\n';
    for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + length - at))) != NULL;
         at++)
        stream->missing_lines++;
}

/* How much of BYTES is the rest of a line whose beginning is missing, and goes with it.  A line
 * without an end in sight is cut. */
static size_t rest_of_line(const struct log_stream *stream, const char *bytes, size_t length)
{
    const char *end = stream->missing_end ? memchr(bytes, '\n', length) : NULL;

    if (end != NULL)
        return (size_t)(end - bytes) + 1;
    return stream->missing_end && length < LINE_SCAN_BYTES ? length : 0;
}

/* A line of ours in the payload's output.  If even that does not go, it is said later. */
static void tell_missing(struct log_stream *stream)
{
    char text[256];

    check(text_format(text, sizeof(text),
                      "%scairn: %llu bytes of output (%llu lines) are missing here: %s\n",
                      stream->at_line_start ? "" : "\n", (unsigned long long)stream->missing_bytes,
                      (unsigned long long)stream->missing_lines, stream->why_missing));
    ssize_t put = write(stream->file_fd, text, strlen(text));
    if (put <= 0)
        return;
    stream->size += (uint64_t)put;
    stream->at_line_start = text[put - 1] == '\n';
    stream->missing_bytes = stream->missing_lines = 0;
    stream->missing_end = false;
}

/* Whether the disk has LENGTH bytes for us.  After it had not, a little more must be free, or each
 * line would be followed by one about the next. */
static bool has_room(const struct log_stream *stream, size_t length)
{
    struct statvfs disk;

    if (fstatvfs(stream->file_fd, &disk) != 0 || disk.f_blocks == 0)
        return true; /* it does not tell: the write will */
    uint64_t reserve = disk.f_blocks / RESERVE_PART * disk.f_frsize;
    if (reserve > RESERVE_BYTES_MAX)
        reserve = RESERVE_BYTES_MAX;
    if (stream->missing_bytes > 0)
        reserve += reserve / 4;
    return disk.f_bavail * disk.f_frsize >= reserve + length;
}

/* --- writing --- */

/* True if our file is still the one that bears its name. */
static bool is_in_place(const struct log_stream *stream, const struct log_settings *settings,
                        const struct stat *ours)
{
    char name[FILE_NAME_SIZE];
    struct stat there;

    file_name(name, settings, stream, stream->index);
    scoped_fd int directory = open_directory(settings);
    return directory >= 0 && fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           there.st_dev == ours->st_dev && there.st_ino == ours->st_ino;
}

void log_look(struct log_stream *stream, const struct log_settings *settings, uint64_t now_ms)
{
    struct stat ours;

    stream->look_at_ms = now_ms + LOOK_AGAIN_MS;
    if (stream->file_fd >= 0 && fstat(stream->file_fd, &ours) == 0) {
        if (is_in_place(stream, settings, &ours)) {
            stream->unproven = 0;
            return;
        }
        if (ours.st_nlink == 0 && stream->unproven > 0) { /* else it was moved, with all of it */
            stream->bytes_lost += stream->unproven;
            stream->bytes_written -= stream->unproven;
            stream->missing_bytes += stream->unproven;
            stream->why_missing = file_was_removed;
        }
        (void)close(stream->file_fd); /* nobody would find what is in it */
        stream->file_fd = -1;
    }
    scoped_fd int directory = find_directory(settings);
    open_file(stream, settings, directory);
    if (stream->file_fd >= 0 && stream->missing_bytes > 0 && !stream->missing_end &&
        has_room(stream, 0))
        tell_missing(stream);
}

/* Writes what the disk takes of it; the rest is missing. */
static void put(struct log_stream *stream, const char *bytes, size_t length)
{
    const char *why = no_file;
    size_t done = 0;

    while (stream->file_fd >= 0 && done < length) {
        ssize_t put = write(stream->file_fd, bytes + done, length - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            why = put < 0 && errno != ENOSPC ? write_failed : disk_is_full;
            break;
        }
        done += (size_t)put;
    }
    if (done > 0)
        stream->at_line_start = bytes[done - 1] == '\n';
    stream->size += done;
    stream->unproven += done;
    stream->bytes_written += done;
    lose(stream, bytes + done, length - done, why);
}

static void write_files(struct log_stream *stream, const struct log_settings *settings,
                        const char *bytes, size_t length)
{
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

void log_write(struct log_stream *stream, const struct log_settings *settings, const char *bytes,
               size_t length, uint64_t now_ms)
{
    if (stream->file_fd < 0 || now_ms >= stream->look_at_ms)
        log_look(stream, settings, now_ms);
    if (stream->file_fd < 0) {
        lose(stream, bytes, length, no_file);
        return;
    }
    if (!has_room(stream, length)) {
        lose(stream, bytes, length, disk_is_full);
        return;
    }
    if (stream->missing_bytes > 0) {
        size_t rest = rest_of_line(stream, bytes, length);

        lose(stream, bytes, rest, stream->why_missing);
        bytes += rest;
        length -= rest;
        if (length > 0)
            tell_missing(stream);
    }
    write_files(stream, settings, bytes, length);
}

void log_close(struct log_stream *stream)
{
    if (stream->file_fd >= 0 && stream->missing_bytes > 0 && has_room(stream, 0))
        tell_missing(stream); /* there is no next line that could be preceded */
    if (stream->pipe_fd >= 0)
        (void)close(stream->pipe_fd); /* only read from */
    if (stream->file_fd >= 0)
        (void)close(stream->file_fd); /* nobody left to tell of an error */
    stream->pipe_fd = stream->file_fd = -1;
}
