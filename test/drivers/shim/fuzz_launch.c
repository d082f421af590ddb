/* The launch record, sealed as by a daemon that went wrong, read as the shim reads it. */
#include "test/fuzz.h"

#include "drivers/shim/shim.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct launch launch = {0};
    struct err err = {0};
    size_t length = sizeof(struct record_head) + size;

    if (size < 1 || size > 1 << 16)
        return 0;
    void *record = calloc(1, length);
    check(record != NULL);
    memcpy((char *)record + sizeof(struct record_head), data, size);
    record_seal(record, RECORD_MAGIC_LAUNCH, length);
    int fd = memfd_create("launch", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, record, length) == (ssize_t)length);
    check(dup2(fd, SHIM_FD_LAUNCH) == SHIM_FD_LAUNCH);
    if (fd != SHIM_FD_LAUNCH)
        (void)close(fd);
    free(record);
    if (launch_open(&launch, &err) == 0) {
        check(launch.argv != NULL && launch.argv[0] != NULL && launch.command != NULL);
        for (char **argument = launch.argv; *argument != NULL; argument++)
            check(strlen(*argument) < length);
        for (char **variable = launch.envp; *variable != NULL; variable++)
            check(strlen(*variable) < length);
        for (size_t i = 0; i < launch.binds_count; i++)
            check(strlen(launch.binds[i].host) + strlen(launch.binds[i].inside) < length);
    } else {
        check(err.text[0] != '\0');
    }
    launch_close(&launch);
    return 0;
}
