#include "drivers/shim/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_VERSION = 1, RECORD_NAME_SIZE = 32 };

_Static_assert(sizeof(struct record_head) == 24, "part of a format on disk");
_Static_assert(sizeof(struct started_record) == 104, "part of a format on disk");
_Static_assert(sizeof(struct exit_record) == 312, "part of a format on disk");

static uint64_t body_digest(const struct record_head *head)
{
    return hash_bytes(head->magic, (const char *)head + sizeof(*head),
                      head->length - sizeof(*head));
}

void record_seal(void *record, uint32_t magic, size_t length)
{
    struct record_head *head = record;

    check(length >= sizeof(*head));
    check(length <= LAUNCH_SIZE_MAX);
    *head =
        (struct record_head){.magic = magic, .version = RECORD_VERSION, .length = (uint32_t)length};
    head->digest = body_digest(head);
}

bool record_is_sound(const void *bytes, size_t length, uint32_t magic)
{
    const struct record_head *head = bytes;

    return length >= sizeof(*head) && head->magic == magic && head->length >= sizeof(*head) &&
           head->length <= length && head->digest == body_digest(head);
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

static void temporary_name(char to[RECORD_NAME_SIZE], const char *name)
{
    check(text_format(to, RECORD_NAME_SIZE, "%s" RECORD_TEMPORARY, name));
}

int record_reserve(int directory_fd, const char *name, size_t length, struct err *err)
{
    static const char zeros[sizeof(struct exit_record)];
    char temporary[RECORD_NAME_SIZE];

    check(length <= sizeof(zeros));
    temporary_name(temporary, name);
    int fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot create %s", temporary);
    int code = write_all(fd, zeros, length);
    if (close(fd) != 0 && code == 0)
        code = -errno;
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot make room for %s", name);
    return 0;
}

/* A directory that was opened for its path only cannot be synced. */
static int sync_directory(int directory_fd)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) != 0 ? -errno : 0;

    if (fd >= 0)
        (void)close(fd); /* nothing was written through it */
    return code;
}

int record_write(int directory_fd, const char *name, const void *record, bool durable,
                 struct err *err)
{
    const struct record_head *head = record;
    char temporary[RECORD_NAME_SIZE];

    check(record_is_sound(record, head->length, head->magic));
    temporary_name(temporary, name);
    /* Not truncated: what was reserved is written over in place.  A longer rest does no harm, the
     * record knows its own length. */
    int fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot create %s", temporary);
    int code = write_all(fd, record, head->length);
    if (code == 0 && durable && fdatasync(fd) != 0)
        code = -errno;
    if (close(fd) != 0 && code == 0)
        code = -errno;
    if (code == 0 && renameat(directory_fd, temporary, directory_fd, name) != 0)
        code = -errno;
    if (code == 0 && durable)
        code = sync_directory(directory_fd);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot write %s", name);
    return 0;
}

int record_read(int directory_fd, const char *name, uint32_t magic, void *to, size_t size,
                struct err *err)
{
    _Alignas(8) char bytes[RECORD_SIZE_MAX];
    size_t used = 0;
    ssize_t got = 1;
    int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return err_os(err, err_from_errno(errno), errno, "cannot read %s", name);
    while (got > 0 && used < sizeof(bytes)) {
        got = read(fd, bytes + used, sizeof(bytes) - used);
        used += got > 0 ? (size_t)got : 0;
    }
    int os = errno;
    (void)close(fd); /* only read from */
    if (got < 0)
        return err_os(err, ERR_IO, os, "cannot read %s", name);
    if (!record_is_sound(bytes, used, magic))
        return err_set(err, ERR_CORRUPT, "%s is damaged", name);

    size_t length = ((struct record_head *)(void *)bytes)->length;
    memset(to, 0, size);
    memcpy(to, bytes, length < size ? length : size);
    return 0;
}

int launch_next(const void *record, size_t *at, uint16_t *ret_tag, const char **ret_bytes,
                uint32_t *ret_length)
{
    const struct record_head *head = record;
    struct launch_field field;

    if (*at == head->length)
        return 0;
    if (*at < sizeof(*head) || *at > head->length || head->length - *at < sizeof(field))
        return ERR_CORRUPT;
    memcpy(&field, (const char *)record + *at, sizeof(field));
    *at += sizeof(field);
    if (field.length > head->length - *at)
        return ERR_CORRUPT;
    *ret_tag = field.tag;
    *ret_bytes = (const char *)record + *at;
    *ret_length = field.length;
    *at += field.length;
    return 1;
}
