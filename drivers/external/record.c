/* What is written down of a task of a plugin, in its file. */
#include "drivers/external/external.h"

#include "io/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int external_put_first(struct external *external, struct err *err)
{
    int code = run_put_first(external->run, &external->record, RECORD_MAGIC_EXTERNAL,
                             sizeof(external->record), err);

    external->recorded = code == 0;
    return code;
}

void external_put(struct external *external)
{
    run_put(external->run, TASK_STARTED_AT, &external->record, RECORD_MAGIC_EXTERNAL,
            sizeof(external->record));
}

void external_put_end(struct external *external)
{
    run_put(external->run, TASK_EXIT_AT, &external->end, RECORD_MAGIC_EXIT, sizeof(external->end));
}

/* The handle first: a record that names one has it. */
int external_put_handle(struct external *external, const char *handle, size_t length,
                        struct err *err)
{
    struct external_record *record = &external->record;
    scoped_fd int fd = run_file(external->run);

    if (fd < 0 || pwrite(fd, handle, length, HANDLE_AT) != (ssize_t)length)
        return err_os(err, err_from_errno(errno), errno, "cannot write the task's handle down");
    record->stage = STAGE_STARTED;
    record->handle_length = (uint32_t)length;
    record->handle_digest = hash_bytes(0, handle, length);
    record_seal(record, RECORD_MAGIC_EXTERNAL, sizeof(*record));
    return task_file_put(fd, TASK_STARTED_AT, record, false, err);
}

int external_get_handle(const struct external *external, char **ret_handle, struct err *err)
{
    const struct external_record *record = &external->record;
    size_t length = record->handle_length;
    scoped_fd int fd = run_file(external->run);

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
