#include "core/attempt.h"

#include <setjmp.h>

struct attempt {
    jmp_buf place;
    char *broken; /* of ERR_TEXT_SIZE */
};

static void on_assertion(void *ctx, const char *file, int line, const char *text)
{
    struct attempt *attempt = ctx;

    (void)text_format(attempt->broken, ERR_TEXT_SIZE, "%s:%d: %s", file, line, text); /* cut */
    longjmp(attempt->place, 1);
}

bool core_attempt(void (*run)(void *ctx), void *ctx, char ret_broken[ERR_TEXT_SIZE])
{
    struct attempt attempt = {.broken = ret_broken};
    struct check_guard guard;

    check_guard_push(&guard, on_assertion, &attempt);
    bool whole = _setjmp(attempt.place) == 0;
    if (whole)
        run(ctx);
    check_guard_pop(&guard);
    return whole;
}
