/*
 * Stepping that survives what was never meant to be stepped.
 *
 * Assertions guard against our own mistakes and end the process.  A forged or incomplete journal
 * makes others' mistakes: an event that breaks an assertion there is a finding, not our end.
 * Stepping is pure, it holds nothing that a jump out of it could leak.
 */
#include "inspect/step.h"

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

bool inspect_attempt(void (*run)(void *ctx), void *ctx, char ret_broken[ERR_TEXT_SIZE])
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

struct stepping {
    struct replay *replay;
    const struct journal_event *event;
    enum replay_result result;
};

static void step(void *ctx)
{
    struct stepping *stepping = ctx;

    stepping->result = replay_step(stepping->replay, stepping->event);
}

bool inspect_step(struct replay *replay, const struct journal_event *event,
                  enum replay_result *ret_result, char ret_broken[ERR_TEXT_SIZE])
{
    struct stepping stepping = {replay, event, REPLAY_SAME};

    if (!inspect_attempt(step, &stepping, ret_broken))
        return false;
    *ret_result = stepping.result;
    return true;
}
