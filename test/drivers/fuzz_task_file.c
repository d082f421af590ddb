/* The task's file after a crash: any bytes, and the same sealed, read as started and exit record.
 */
#include "test/fuzz.h"

#include "drivers/shim/record.h"

#include <sys/mman.h>

static void read_all(int fd)
{
    struct started_record started, again;
    struct exit_record ended;
    struct err err = {0};

    int code =
        task_file_get(fd, TASK_STARTED_AT, RECORD_MAGIC_STARTED, &started, sizeof(started), &err);
    check(code == 0 || err.text[0] != '\0');
    bool has_ended = exit_record_get(fd, &ended, &err) == 0;
    if (has_ended)
        check(memchr(ended.message, '\0', sizeof(ended.message)) != NULL);
    check(task_file_runs(fd, &again) == (code == 0 && !has_ended));
    check(code != 0 || has_ended || memcmp(&started, &again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[TASK_FILE_SIZE];
    static int fd = -1;
    struct exit_record ended;

    if (fd < 0)
        fd = memfd_create("task", MFD_CLOEXEC);
    check(fd >= 0);
    memset(file, 0, sizeof(file));
    memcpy(file + TASK_EXIT_AT, data, size < TASK_RECORD_SIZE ? size : TASK_RECORD_SIZE);
    memcpy(file + TASK_STARTED_AT, data, size < TASK_RECORD_SIZE ? size : TASK_RECORD_SIZE);
    for (int sealed = 0; sealed < 2; sealed++) {
        check(pwrite(fd, file, sizeof(file), 0) == sizeof(file));
        read_all(fd);
        if (exit_record_take(data, size, &ended))
            check(memchr(ended.message, '\0', sizeof(ended.message)) != NULL);
        if (size < sizeof(struct record_head))
            return 0;
        size_t length = size < TASK_RECORD_SIZE ? size : TASK_RECORD_SIZE;
        record_seal(file + TASK_EXIT_AT, RECORD_MAGIC_EXIT, length);
        record_seal(file + TASK_STARTED_AT, RECORD_MAGIC_STARTED, length);
    }
    return 0;
}
