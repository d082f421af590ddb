/* Saying what went wrong. */
#include "agent/cli/cli.h"

#include <stdarg.h>

int cli_fail(enum cli_exit status, const char *format, ...)
{
    va_list arguments;

    (void)fflush(stdout); /* so that both come in their order */
    (void)fputs("cairn: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    return (int)status;
}
