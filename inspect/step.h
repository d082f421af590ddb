/* Stepping that survives assertions. */
#ifndef CAIRN_INSPECT_STEP_H
#define CAIRN_INSPECT_STEP_H

#include "core/attempt.h"
#include "core/replay.h"

/* replay_step, as an attempt. */
bool inspect_step(struct replay *replay, const struct journal_event *event,
                  enum replay_result *ret_result, char ret_broken[ERR_TEXT_SIZE]);

#endif
