/* What a process was begun with, as far as it has not changed that itself. */
#include "io/proc.h"

#include "io/host.h"
#include "io/scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 256 << 10 };

bool proc_has_variable(const struct proc_identity *identity, const char *variable)
{
    size_t size = strlen(variable) + 1, used = 0; /* with the end of it */
    char path[PLACE_PATH_SIZE];
    /* Behind an end of its own, so that each variable is between two. */
    scoped_string char *bytes = malloc(1 + ENVIRONMENT_MAX);
    scoped_string char *wanted = malloc(1 + size);

    check(bytes != NULL && wanted != NULL);
    check(text_format(path, sizeof(path), "/proc/%d/environ", (int)identity->pid));
    scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    bytes[used++] = '\0';
    for (ssize_t got = 1; fd >= 0 && got > 0 && used < 1 + ENVIRONMENT_MAX; used += (size_t)got) {
        got = read(fd, bytes + used, 1 + ENVIRONMENT_MAX - used);
        if (got < 0)
            break;
    }
    wanted[0] = '\0';
    memcpy(wanted + 1, variable, size);
    bool found = memmem(bytes, used, wanted, 1 + size) != NULL;
    explicit_bzero(bytes, used);
    return found && proc_is_alive(identity);
}
