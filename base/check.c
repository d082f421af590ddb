#include "base/check.h"

#include <stdlib.h>

/* The one exception to "no globals": an assertion has nothing that could carry its guards. */
static _Thread_local struct check_guard *innermost;

void check_guard_push(struct check_guard *guard,
                      void (*on_failure)(void *ctx, const char *file, int line, const char *text),
                      void *ctx)
{
    check(on_failure != NULL);
    *guard = (struct check_guard){.on_failure = on_failure, .ctx = ctx, .outer = innermost};
    innermost = guard;
}

void check_guard_pop(struct check_guard *guard)
{
    innermost = guard->outer;
}

void check_failed(const char *file, int line, const char *text)
{
    while (innermost != NULL) {
        struct check_guard *guard = innermost;

        innermost = guard->outer;
        guard->on_failure(guard->ctx, file, line, text);
    }
    abort();
}
