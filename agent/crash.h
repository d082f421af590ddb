/*
 * Crash points: places at which a test can let the daemon die as if it were killed.
 *
 * CAIRN_CRASH_AT=<n> in the environment makes the n-th point that is passed end the process by
 * SIGKILL.  Without it a point costs one comparison.
 */
#ifndef CAIRN_AGENT_CRASH_H
#define CAIRN_AGENT_CRASH_H

#include <stdint.h>

enum crash_point {
    CRASH_BEFORE_COMMIT,
    CRASH_AFTER_COMMIT,
    CRASH_EFFECT, /* before each effect: between any two */
};

void crash_init(void);
void crash_point(enum crash_point point);
uint64_t crash_points_passed(void);

#endif
