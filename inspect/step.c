#include "inspect/step.h"

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

    if (!core_attempt(step, &stepping, ret_broken))
        return false;
    *ret_result = stepping.result;
    return true;
}
