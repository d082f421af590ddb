/* Saying what went wrong.  It may be in an agent's words, or quote what somebody has named. */
#include "agent/cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* TEXT has lines, and nothing else that drives a terminal. */
static void clean_lines(char *text)
{
    for (char *line = text, *end; line != NULL; line = end) {
        end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        text_clean(line);
        if (end != NULL)
            *end++ = '\n';
    }
}

int cli_fail(enum cli_exit status, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    check(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    clean_lines(text);
    (void)fflush(stdout); /* so that both come in their order */
    (void)fprintf(stderr, "cairn: %s\n", text);
    free(text);
    return (int)status;
}
