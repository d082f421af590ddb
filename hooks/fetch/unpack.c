/*
 * What was downloaded becomes files.
 *
 * Only the formats that were announced are known to the library, and of an archive only plain
 * files, directories and links within it are taken: a name that is absolute or goes up, a link that
 * leads out, a device, more entries or bytes than there may be end it.  Who does this has only the
 * task's directory to see, and may do there what the task itself may.  Who unpacks a disk has
 * nothing but a directory of its own to see, and gives its files to whom they belonged.
 */
#include "hooks/fetch/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 256 * 1024,
    FILE_MODE = 0644,
    SAID_SIZE = 160,
    LAST_BITS = 0777, /* nobody gains by what an archive says of set-user-id */
    EXTRACT = ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_UNLINK |
              ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
              ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS,
};

static int library_failed(struct archive *archive, const char *doing, struct err *err)
{
    const char *text = archive_error_string(archive);
    int code = archive_errno(archive) == ENOSPC ? ERR_FULL : ERR_CORRUPT;

    code = err_set(err, code, "cannot %s: %.120s", doing, text == NULL ? "" : text);
    text_clean(err->text);
    text_whole(err->text);
    return code;
}

/* --- what an archive may say --- */

/* True if a link whose target is PATH, DEPTH directories below the top, leads to something below
 * the top.  It may go up at its begin only: what is above a name is not known if that is a link. */
static bool stays_below(const char *path, int depth)
{
    bool down = false;

    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        bool up = length == 2 && memcmp(path, "..", 2) == 0;

        if (up && (down || depth-- == 0))
            return false;
        down = down || (!up && length > 0 && !(length == 1 && *path == '.'));
        path += length + (path[length] == '/');
    }
    return true;
}

/* How many directories PATH lies below the top; it has no "..". */
static int depth_of(const char *path)
{
    int names = 0;

    while (*path != '\0') {
        size_t length = strcspn(path, "/");

        names += length > 0 && !(length == 1 && *path == '.');
        path += length + (path[length] == '/');
    }
    return names > 0 ? names - 1 : 0;
}

static int refuse(const char *path, const char *why, struct err *err)
{
    int code = err_set(err, ERR_REFUSED, "entry \"%.60s\" %s", path, why);

    text_clean(err->text);
    text_whole(err->text);
    return code;
}

/* A link of a disk is as its payload has made it, here as where it was: nothing is written through
 * it. */
static int check_entry(struct archive_entry *entry, bool of_disk, struct err *err)
{
    const char *path = archive_entry_pathname(entry), *link = archive_entry_symlink(entry);
    const char *other = archive_entry_hardlink(entry);
    mode_t type = archive_entry_filetype(entry);

    if (path == NULL || *path == '\0')
        return refuse("", "has no name", err);
    if (*path == '/' || text_goes_up(path))
        return refuse(path, "lies outside of the archive", err);
    if (other != NULL)
        return *other == '/' || text_goes_up(other)
                   ? refuse(path, "is a link that leads out of the archive", err)
                   : 0;
    if (type == AE_IFLNK)
        return link == NULL || (!of_disk && (*link == '/' || !stays_below(link, depth_of(path))))
                   ? refuse(path, "is a link that leads out of the archive", err)
                   : 0;
    if (type != AE_IFREG && type != AE_IFDIR)
        return refuse(path, "is no file, directory or link", err);
    return 0;
}

/* --- the part of it that is meant --- */

/* What PATH is called in the directory PART, "" if it is that itself, NULL if it lies elsewhere. */
static const char *name_in(const char *part, const char *path)
{
    for (;;) {
        while (*path == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == '\0')))
            path++;
        while (*part == '/' || (part[0] == '.' && (part[1] == '/' || part[1] == '\0')))
            part++;
        if (*part == '\0')
            return path;
        size_t length = strcspn(part, "/");
        if (strcspn(path, "/") != length || memcmp(path, part, length) != 0)
            return NULL;
        path += length;
        part += length;
    }
}

/* Names ENTRY as it is to be called; false if it does not lie in PART. */
static bool rename_entry(struct archive_entry *entry, const char *part)
{
    char path[URL_SIZE], other[URL_SIZE];
    const char *name = archive_entry_pathname(entry), *target = archive_entry_hardlink(entry);

    name = name == NULL ? NULL : name_in(part, name);
    if (name == NULL || !text_copy(path, sizeof(path), *name == '\0' ? "." : name))
        return false;
    if (target != NULL) { /* to something that is not taken: it will not be found */
        target = name_in(part, target);
        if (!text_copy(other, sizeof(other), target == NULL ? "" : target))
            return false;
        archive_entry_copy_hardlink(entry, other);
    }
    archive_entry_copy_pathname(entry, path);
    return true;
}

/* --- unpacking --- */

struct unpacking {
    const struct fetch *fetch;
    const char *part; /* of the archive; "": all of it */
    bool found;       /* something of it */
    struct archive *from, *to;
    uint64_t entries, bytes;
    struct err *err;
};

static int charge(struct unpacking *unpacking, uint64_t bytes)
{
    if (bytes > unpacking->fetch->unpacked_bytes_max ||
        unpacking->bytes > unpacking->fetch->unpacked_bytes_max - bytes)
        return err_set(unpacking->err, ERR_LIMIT, "more than %llu bytes when unpacked",
                       (unsigned long long)unpacking->fetch->unpacked_bytes_max);
    unpacking->bytes += bytes;
    return 0;
}

/* Its length, which a file is given, whatever there is of it: holes cost nothing to say. */
static int charge_length(struct unpacking *unpacking, struct archive_entry *entry,
                         uint64_t *ret_length)
{
    la_int64_t length = archive_entry_size(entry);

    *ret_length = length > 0 && archive_entry_filetype(entry) == AE_IFREG ? (uint64_t)length : 0;
    return charge(unpacking, *ret_length);
}

/* CHARGED bytes of it count already. */
static int copy_data(struct unpacking *unpacking, uint64_t charged)
{
    uint64_t end = 0;

    for (;;) {
        const void *block;
        size_t length;
        la_int64_t at;
        int answer = archive_read_data_block(unpacking->from, &block, &length, &at);

        if (answer == ARCHIVE_EOF)
            return 0;
        if (answer != ARCHIVE_OK)
            return library_failed(unpacking->from, "unpack", unpacking->err);
        if (at < 0 || (uint64_t)at < end)
            return err_set(unpacking->err, ERR_CORRUPT, "cannot unpack: its parts overlap");
        end = (uint64_t)at + length;
        int code = end > charged ? charge(unpacking, end - charged) : 0;
        if (code != 0)
            return code;
        charged = end > charged ? end : charged;
        if (archive_write_data_block(unpacking->to, block, length, at) != ARCHIVE_OK)
            return library_failed(unpacking->to, "write", unpacking->err);
    }
}

/* Whatever there is in the archive counts, also what is not taken. */
static int count_entry(struct unpacking *unpacking, struct archive_entry *entry,
                       uint64_t *ret_length)
{
    if (unpacking->entries++ >= unpacking->fetch->entries_max)
        return err_set(unpacking->err, ERR_LIMIT, "more than %llu files in the archive",
                       (unsigned long long)unpacking->fetch->entries_max);
    return charge_length(unpacking, entry, ret_length);
}

/* Names ENTRY as it is to be called and says whether it is one of those that are meant. */
static int choose_entry(struct unpacking *unpacking, struct archive_entry *entry, bool *ret_meant)
{
    const char *part = unpacking->part;

    *ret_meant = *part == '\0' || rename_entry(entry, part);
    unpacking->found = unpacking->found || *ret_meant;
    if (!*ret_meant)
        return 0;
    if (*part != '\0' && text_equal(archive_entry_pathname(entry), ".") &&
        archive_entry_filetype(entry) != AE_IFDIR)
        return err_set(unpacking->err, ERR_INVALID, "%.80s is no directory in it", part);
    return check_entry(entry, unpacking->fetch->snapshot != NULL, unpacking->err);
}

/* What the other side says of a disk that it could not pack. */
static int told_error(struct unpacking *unpacking)
{
    char text[SAID_SIZE];
    la_ssize_t length = archive_read_data(unpacking->from, text, sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    text_clean(text);
    text_whole(text);
    return err_set(unpacking->err, ERR_IO, "its node could not pack it: %s", text);
}

static bool is_error(const struct unpacking *unpacking, struct archive_entry *entry)
{
    const char *path = archive_entry_pathname(entry);
    char name[FILE_NAME_SIZE];

    return unpacking->fetch->snapshot != NULL && path != NULL &&
           text_format(name, sizeof(name), FETCH_SNAPSHOT_ERROR, unpacking->fetch->snapshot) &&
           text_equal(path, name);
}

static int take_entry(struct unpacking *unpacking, struct archive_entry *entry)
{
    uint64_t length = 0;
    bool meant = false;
    int code = count_entry(unpacking, entry, &length);

    if (code == 0 && is_error(unpacking, entry))
        return told_error(unpacking);
    if (code == 0)
        code = choose_entry(unpacking, entry, &meant);
    if (code != 0 || !meant)
        return code;
    archive_entry_set_perm(entry, archive_entry_perm(entry) & LAST_BITS);
    if (archive_write_header(unpacking->to, entry) != ARCHIVE_OK)
        return library_failed(unpacking->to, "write", unpacking->err);
    code = copy_data(unpacking, length);
    if (code == 0 && archive_write_finish_entry(unpacking->to) != ARCHIVE_OK)
        code = library_failed(unpacking->to, "write", unpacking->err);
    return code;
}

static struct archive *reader_of(const struct fetch *fetch, enum archive_kind kind)
{
    struct archive *from = archive_read_new();

    check(from != NULL);
    if (kind == ARCHIVE_ZIP) {
        (void)archive_read_support_format_zip_seekable(from); /* fails if it is unknown: at open */
    } else {
        if (kind == ARCHIVE_TAR)
            (void)archive_read_support_format_tar(from); /* likewise, and below */
        else
            (void)archive_read_support_format_raw(from);
        (void)archive_read_support_filter_gzip(from);
        (void)archive_read_support_filter_bzip2(from);
        (void)archive_read_support_filter_xz(from);
        (void)archive_read_support_filter_zstd(from);
    }
    (void)lseek(fetch->data, 0, SEEK_SET); /* a file */
    return from;
}

static int take_all(struct unpacking *unpacking)
{
    int code = 0;

    while (code == 0) {
        struct archive_entry *entry;
        int answer = archive_read_next_header(unpacking->from, &entry);

        if (answer == ARCHIVE_EOF)
            return unpacking->found || *unpacking->part == '\0'
                       ? 0
                       : err_set(unpacking->err, ERR_GONE, "there is no directory %.80s in it",
                                 unpacking->part);
        if (answer != ARCHIVE_OK && answer != ARCHIVE_WARN)
            return library_failed(unpacking->from, "unpack", unpacking->err);
        code = take_entry(unpacking, entry);
    }
    return code;
}

int fetch_unpack(const struct fetch *fetch, enum archive_kind kind, const char *part,
                 struct err *err)
{
    struct unpacking unpacking = {.fetch = fetch, .part = part, .err = err};
    int code = 0;

    if (kind == ARCHIVE_COMPRESSED)
        return err_set(err, ERR_INVALID,
                       "one compressed file is no directory: write mode = \"file\"");
    unpacking.from = reader_of(fetch, kind);
    unpacking.to = archive_write_disk_new();
    check(unpacking.to != NULL);
    (void)archive_write_disk_set_options(unpacking.to,
                                         EXTRACT | (fetch->snapshot != NULL && geteuid() == 0
                                                        ? ARCHIVE_EXTRACT_OWNER
                                                        : 0)); /* all are known */
    if (archive_read_open_fd(unpacking.from, fetch->data, BLOCK_BYTES) != ARCHIVE_OK)
        code = library_failed(unpacking.from, "unpack", err);
    if (code == 0)
        code = take_all(&unpacking);
    if (archive_write_close(unpacking.to) != ARCHIVE_OK && code == 0)
        code = library_failed(unpacking.to, "write", err); /* of directories, at the end */
    (void)archive_write_free(unpacking.to);
    (void)archive_read_free(unpacking.from);
    return code;
}

/* --- one file --- */

static int write_all(int fd, const char *bytes, size_t length, struct err *err)
{
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_os(err, err_from_errno(errno), errno, "cannot write the file");
        bytes += done;
        length -= (size_t)done;
    }
    return 0;
}

static int copy_plain(const struct fetch *fetch, int to, struct err *err)
{
    loff_t at = 0;

    for (;;) {
        ssize_t done = copy_file_range(fetch->data, &at, to, NULL, 1 << 30, 0);

        if (done == 0)
            return 0;
        if (done < 0)
            break; /* another file system, or one that cannot */
    }
    static char block[BLOCK_BYTES];
    for (;;) {
        ssize_t got = pread(fetch->data, block, sizeof(block), at);

        if (got <= 0)
            return got == 0 ? 0 : err_os(err, ERR_IO, errno, "cannot read what was downloaded");
        int code = write_all(to, block, (size_t)got, err);
        if (code != 0)
            return code;
        at += got;
    }
}

/* The one file that is in it. */
static int copy_only_entry(struct unpacking *unpacking, int to)
{
    struct archive_entry *entry;
    int code = 0;

    if (archive_read_next_header(unpacking->from, &entry) != ARCHIVE_OK)
        return library_failed(unpacking->from, "unpack", unpacking->err);
    if (archive_entry_filetype(entry) != AE_IFREG)
        return err_set(unpacking->err, ERR_INVALID, "the archive does not hold one file only");
    static char block[BLOCK_BYTES];
    while (code == 0) {
        la_ssize_t got = archive_read_data(unpacking->from, block, sizeof(block));

        if (got < 0)
            return library_failed(unpacking->from, "unpack", unpacking->err);
        if (got == 0)
            break;
        code = charge(unpacking, (uint64_t)got);
        if (code == 0)
            code = write_all(to, block, (size_t)got, unpacking->err);
    }
    if (code == 0 && archive_read_next_header(unpacking->from, &entry) != ARCHIVE_EOF)
        return err_set(unpacking->err, ERR_INVALID, "the archive does not hold one file only");
    return code;
}

static int fill(const struct fetch *fetch, enum archive_kind kind, int to, struct err *err)
{
    struct unpacking unpacking = {.fetch = fetch, .err = err};

    if (kind == ARCHIVE_NONE)
        return copy_plain(fetch, to, err);
    unpacking.from = reader_of(fetch, kind);
    int code = archive_read_open_fd(unpacking.from, fetch->data, BLOCK_BYTES) == ARCHIVE_OK
                   ? copy_only_entry(&unpacking, to)
                   : library_failed(unpacking.from, "unpack", err);
    (void)archive_read_free(unpacking.from);
    return code;
}

int fetch_unpack_file(const struct fetch *fetch, enum archive_kind kind, const char *name,
                      struct err *err)
{
    static const char unfinished[] = ".cairn-fetch"; /* of an earlier attempt: made anew */

    if (unlink(unfinished) != 0 && errno != ENOENT)
        return err_os(err, err_from_errno(errno), errno, "cannot write the file");
    int to = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (to < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot write the file");
    int code = fill(fetch, kind, to, err);
    if (close(to) != 0 && code == 0)
        code = err_os(err, err_from_errno(errno), errno, "cannot write the file");
    if (code == 0 && rename(unfinished, name) != 0)
        code = err_os(err, err_from_errno(errno), errno, "cannot write %.80s", name);
    if (code != 0)
        (void)unlink(unfinished); /* best effort: the next attempt begins with it */
    return code;
}
