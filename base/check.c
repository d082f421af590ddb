#include "base/check.h"

#include <stdlib.h>

/* The one exception to "no globals": an assertion has no object to carry its hook. */
static void (*failure_hook)(const char *file, int line, const char *text);

void check_on_failure(void (*hook)(const char *file, int line, const char *text))
{
    failure_hook = hook;
}

void check_failed(const char *file, int line, const char *text)
{
    void (*hook)(const char *, int, const char *) = failure_hook;

    failure_hook = NULL; /* a hook that fails itself must not recurse */
    if (hook != NULL)
        hook(file, line, text);
    abort();
}
