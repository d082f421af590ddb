/*
 * Crash points: places at which a test can let the daemon die as if it were killed.
 *
 * They are before and after each commit, and before each effect, so between any two.
 * CAIRN_CRASH_AT=<n> in the environment makes the n-th point that is passed end the process by
 * SIGKILL.  Without it a point costs one comparison.
 */
#ifndef CAIRN_AGENT_CRASH_H
#define CAIRN_AGENT_CRASH_H

#include <stdint.h>

/* Of one node. */
struct crash {
    uint64_t passed; /* so many points */
    uint64_t at;     /* the one that is not survived; 0: none */
};

/* What CAIRN_CRASH_AT says; 0 if it is absent or no number. */
uint64_t crash_at_of_environment(void);

void crash_point(struct crash *crash);

#endif
