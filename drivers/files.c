/* The file of a task that has no shim: what those who look after it write down themselves. */
#include "drivers/part.h"

#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int run_file(const struct run *run)
{
    char name[KEY_NAME_SIZE];

    check(key_name(&run->key, name, NULL) == 0);
    return openat(run->drivers->shim_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

int run_put_first(const struct run *run, void *record, uint32_t magic, size_t length,
                  struct err *err)
{
    char block[TASK_FILE_SIZE] = "begun\n";
    scoped_fd int fd = run_file(run);

    record_seal(record, magic, length);
    memcpy(block + TASK_STARTED_AT, record, length);
    if (fd >= 0 && pwrite(fd, block, sizeof(block), 0) == (ssize_t)sizeof(block) &&
        fdatasync(fd) == 0)
        return 0;
    int os = errno;
    if (fd >= 0 && ftruncate(fd, 0) != 0)
        os = errno; /* else nothing is in it, and nothing was asked for */
    (void)err_os(err, err_from_errno(os), os, "cannot write the task's file");
    err->recoverable = true;
    return err->code;
}

void run_put(const struct run *run, off_t at, void *record, uint32_t magic, size_t length)
{
    scoped_fd int fd = run_file(run);

    record_seal(record, magic, length);
    if (fd >= 0) /* else who comes next asks those who have the task, who are asked in any case */
        (void)task_file_put(fd, at, record, false, NULL);
}
