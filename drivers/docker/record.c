/* What is written down of a container, in its task's file. */
#include "drivers/docker/docker.h"

void container_put(struct container *container)
{
    run_put(container->run, TASK_STARTED_AT, &container->record, RECORD_MAGIC_CONTAINER,
            sizeof(container->record));
}
