/* What came of a call that has failed. */
#include "hooks/hosted/part.h"

#include <stdarg.h>
#include <stdio.h>

void hosted_fail(struct hosted_result *result, int code, bool is_known, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(result->text, sizeof(result->text), format, arguments); /* cut is enough */
    va_end(arguments);
    text_whole(result->text);
    text_clean(result->text);
    result->answer.code = code;
    result->answer.is_known = is_known;
}
