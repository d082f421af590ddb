#include "spec/parser/part.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

_Noreturn void parser_end(int code)
{
    for (;;)
        (void)syscall(SYS_exit_group, code); /* does not come back */
}

size_t parser_read(void *to, size_t length)
{
    ssize_t got;

    do
        got = read(PARSER_SOCKET, to, length);
    while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : (size_t)got;
}

bool parser_write(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    while (length > 0) {
        ssize_t done = write(PARSER_SOCKET, at, length);

        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? done : 0;
        length -= done > 0 ? (size_t)done : 0;
    }
    return true;
}
