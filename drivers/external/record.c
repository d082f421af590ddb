/* What is written down of a task of a plugin, in its file. */
#include "drivers/external/external.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_file(const struct external *external)
{
    const struct run *run = external->run;
    char name[KEY_NAME_SIZE];

    check(key_name(&run->key, name, NULL) == 0);
    return openat(run->drivers->shim_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static void seal(struct external *external)
{
    record_seal(&external->record, RECORD_MAGIC_EXTERNAL, sizeof(external->record));
}

int external_put_first(struct external *external, struct err *err)
{
    char block[TASK_FILE_SIZE] = "begun\n";

    seal(external);
    memcpy(block + TASK_STARTED_AT, &external->record, sizeof(external->record));
    scoped_fd int fd = open_file(external);
    if (fd >= 0 && pwrite(fd, block, sizeof(block), 0) == (ssize_t)sizeof(block) &&
        fdatasync(fd) == 0) {
        external->recorded = true;
        return 0;
    }
    int os = errno;
    if (fd >= 0 && ftruncate(fd, 0) != 0)
        os = errno; /* else nothing is in it, and nothing was asked for */
    (void)err_os(err, err_from_errno(os), os, "cannot write the task's file");
    err->recoverable = true;
    return err->code;
}

void external_put(struct external *external)
{
    scoped_fd int fd = open_file(external);

    seal(external);
    if (fd >= 0) /* else who comes next asks the plugin, which is asked in any case */
        (void)task_file_put(fd, TASK_STARTED_AT, &external->record, false, NULL);
}

void external_put_end(struct external *external)
{
    scoped_fd int fd = open_file(external);

    record_seal(&external->end, RECORD_MAGIC_EXIT, sizeof(external->end));
    if (fd >= 0) /* likewise */
        (void)task_file_put(fd, TASK_EXIT_AT, &external->end, false, NULL);
}

/* The handle first: a record that names one has it. */
int external_put_handle(struct external *external, const char *handle, size_t length,
                        struct err *err)
{
    struct external_record *record = &external->record;
    scoped_fd int fd = open_file(external);

    if (fd < 0 || pwrite(fd, handle, length, HANDLE_AT) != (ssize_t)length)
        return err_os(err, err_from_errno(errno), errno, "cannot write the task's handle down");
    record->stage = STAGE_STARTED;
    record->handle_length = (uint32_t)length;
    record->handle_digest = hash_bytes(0, handle, length);
    seal(external);
    return task_file_put(fd, TASK_STARTED_AT, record, false, err);
}

int external_get_handle(const struct external *external, char **ret_handle, struct err *err)
{
    const struct external_record *record = &external->record;
    size_t length = record->handle_length;
    scoped_fd int fd = open_file(external);

    if (fd < 0 || length > HANDLE_BYTES_MAX)
        return err_set(err, ERR_GONE, "the task's handle is gone");
    char *handle = malloc(length + 1);
    check(handle != NULL);
    if (pread(fd, handle, length, HANDLE_AT) == (ssize_t)length &&
        hash_bytes(0, handle, length) == record->handle_digest) {
        *ret_handle = handle;
        return 0;
    }
    free(handle);
    return err_set(err, ERR_GONE, "the task's handle is not whole");
}
