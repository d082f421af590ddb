/*
 * Stepping that survives what was never meant to be stepped.
 *
 * Assertions guard against our own mistakes and end the process.  A forged or incomplete journal
 * makes others' mistakes: an event that breaks an assertion there is a finding, not our end.
 * Stepping is pure, it holds nothing that a jump out of it could leak.
 */
#include "inspect/step.h"

#include <setjmp.h>

static jmp_buf *landing; /* of the attempt under way; assertions have no context of their own */
static char broken[ERR_TEXT_SIZE];

static void on_assertion(const char *file, int line, const char *text)
{
    (void)text_format(broken, sizeof(broken), "%s:%d: %s", file, line, text); /* may be cut */
    longjmp(*landing, 1);
}

const char *inspect_assertion(void)
{
    return broken;
}

bool inspect_attempt(void (*run)(void *ctx), void *ctx)
{
    jmp_buf place;

    check(landing == NULL); /* attempts do not nest */
    landing = &place;
    if (_setjmp(place) != 0) {
        landing = NULL; /* the hook has been taken back before it was called */
        return false;
    }
    check_on_failure(on_assertion);
    run(ctx);
    check_on_failure(NULL);
    landing = NULL;
    return true;
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
                  enum replay_result *ret_result)
{
    struct stepping stepping = {replay, event, REPLAY_SAME};

    if (!inspect_attempt(step, &stepping))
        return false;
    *ret_result = stepping.result;
    return true;
}
