/* What is written down of a container, in its task's file. */
#include "drivers/docker/docker.h"

#include "io/scope.h"

#include <fcntl.h>
#include <unistd.h>

void container_put_at(const struct container *container, off_t at, void *record, uint32_t magic,
                      size_t length)
{
    const struct run *run = container->run;
    char name[KEY_NAME_SIZE];

    check(key_name(&run->key, name, NULL) == 0);
    scoped_fd int fd =
        openat(run->drivers->shim_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    record_seal(record, magic, length);
    if (fd >= 0) /* else who comes next asks the Engine, which is asked in any case */
        (void)task_file_put(fd, at, record, false, NULL);
}

void container_put(struct container *container)
{
    container_put_at(container, TASK_STARTED_AT, &container->record, RECORD_MAGIC_CONTAINER,
                     sizeof(container->record));
}
