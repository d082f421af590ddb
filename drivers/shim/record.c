#include "drivers/shim/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_VERSION = 1 };

_Static_assert(sizeof(struct record_head) == 24, "part of a format on disk");
_Static_assert(sizeof(struct started_record) == 112, "part of a format on disk");
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

static int write_at(int fd, const char *bytes, size_t length, off_t at)
{
    while (length > 0) {
        ssize_t put = pwrite(fd, bytes, length, at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        bytes += put;
        at += put;
        length -= (size_t)put;
    }
    return 0;
}

int task_file_begin(int fd, struct err *err)
{
    static const char begun[TASK_FILE_SIZE] = "begun\n";
    int code = write_at(fd, begun, sizeof(begun), 0);

    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot mark the task as begun");
    return 0;
}

/* The file and the way to it: the directory of all shims, and the state directory. */
static int sync_all(int fd)
{
    static const char *const directories[] = {".", ".."};

    if (fdatasync(fd) != 0)
        return -errno;
    for (size_t i = 0; i < COUNT_OF(directories); i++) {
        int directory = open(directories[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int code = directory < 0 || fsync(directory) != 0 ? -errno : 0;

        if (directory >= 0)
            (void)close(directory); /* nothing was written through it */
        if (code != 0)
            return code;
    }
    return 0;
}

int task_file_put(int fd, off_t at, const void *record, bool durable, struct err *err)
{
    const struct record_head *head = record;

    check(head->length <= TASK_RECORD_SIZE);
    check(record_is_sound(record, head->length, head->magic));
    int code = write_at(fd, record, head->length, at);
    if (code == 0 && durable)
        code = sync_all(fd);
    if (code != 0)
        return err_os(err, err_from_errno(-code), -code, "cannot write the task's file");
    return 0;
}

static void copy_record(const void *bytes, void *to, size_t size)
{
    size_t length = ((const struct record_head *)bytes)->length;

    memset(to, 0, size);
    memcpy(to, bytes, length < size ? length : size);
}

int task_file_get(int fd, off_t at, uint32_t magic, void *to, size_t size, struct err *err)
{
    _Alignas(8) char bytes[TASK_RECORD_SIZE];
    ssize_t got = pread(fd, bytes, sizeof(bytes), at);

    if (got < 0)
        return err_os(err, ERR_IO, errno, "cannot read the task's file");
    if (!record_is_sound(bytes, (size_t)got, magic))
        return err_set(err, ERR_GONE, "the task's file has no such record");

    copy_record(bytes, to, size);
    return 0;
}

bool task_file_runs(int fd, struct started_record *ret_started)
{
    _Alignas(8) char bytes[TASK_EXIT_AT - TASK_STARTED_AT + TASK_RECORD_SIZE];
    ssize_t got = pread(fd, bytes, sizeof(bytes), TASK_STARTED_AT);
    const size_t exit_at = TASK_EXIT_AT - TASK_STARTED_AT;

    if (got < (ssize_t)exit_at || !record_is_sound(bytes, exit_at, RECORD_MAGIC_STARTED) ||
        record_is_sound(bytes + exit_at, (size_t)got - exit_at, RECORD_MAGIC_EXIT))
        return false;
    copy_record(bytes, ret_started, sizeof(*ret_started));
    return true;
}

/* A shim of another version, or a disk, may have left no NUL. */
static void end_text(struct exit_record *record)
{
    record->message[sizeof(record->message) - 1] = '\0';
}

int exit_record_get(int fd, struct exit_record *to, struct err *err)
{
    int code = task_file_get(fd, TASK_EXIT_AT, RECORD_MAGIC_EXIT, to, sizeof(*to), err);

    if (code == 0)
        end_text(to);
    return code;
}

bool exit_record_take(const void *bytes, size_t length, struct exit_record *to)
{
    if (!record_is_sound(bytes, length, RECORD_MAGIC_EXIT))
        return false;
    copy_record(bytes, to, sizeof(*to));
    end_text(to);
    return true;
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

bool launch_bind_take(const char *bytes, uint32_t length, struct launch_bind *ret_bind)
{
    const char *host = bytes + sizeof(ret_bind->flags), *end = bytes + length;
    const char *inside;

    if (length <= sizeof(ret_bind->flags) || end[-1] != '\0')
        return false;
    inside = host + strlen(host) + 1;
    if (inside >= end || inside + strlen(inside) + 1 != end || *host == '\0' || *inside == '\0')
        return false;
    memcpy(&ret_bind->flags, bytes, sizeof(ret_bind->flags));
    ret_bind->host = host;
    ret_bind->inside = inside;
    return true;
}
