/* Stepping that survives assertions.  Private to inspect*.c. */
#ifndef CAIRN_INSPECT_STEP_H
#define CAIRN_INSPECT_STEP_H

#include "core/replay.h"

/* Runs RUN; false if an assertion broke in it, which was left where it stood.  Whatever it was
 * working on is then good for nothing but being freed.  Attempts do not nest, and the program's own
 * hook of check.h is lost. */
bool inspect_attempt(void (*run)(void *ctx), void *ctx);

/* The text of the last assertion that broke. */
const char *inspect_assertion(void);

/* replay_step, as an attempt. */
bool inspect_step(struct replay *replay, const struct journal_event *event,
                  enum replay_result *ret_result);

#endif
