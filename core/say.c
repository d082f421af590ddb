#include "core/say.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_SIZE = 2048 };

void say(const struct say *say, enum say_level level, const char *room, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;

    if (say->line == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments); /* cut: a line of a log */
    va_end(arguments);
    say->line(say->ctx, level, room, line);
}
