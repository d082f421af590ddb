/* Stepping that survives assertions. */
#ifndef CAIRN_INSPECT_STEP_H
#define CAIRN_INSPECT_STEP_H

#include "core/replay.h"

/* Runs RUN; false if an assertion broke in it, whose text is then in RET_BROKEN.  It was left where
 * it stood: whatever it was working on is good for nothing but being freed. */
bool inspect_attempt(void (*run)(void *ctx), void *ctx, char ret_broken[ERR_TEXT_SIZE]);

/* replay_step, as an attempt. */
bool inspect_step(struct replay *replay, const struct journal_event *event,
                  enum replay_result *ret_result, char ret_broken[ERR_TEXT_SIZE]);

#endif
