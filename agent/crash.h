/*
 * Crash points: places at which a test can let the daemon die as if it were killed, or wait until
 * something else has died.
 *
 * They are before and after each commit, and before each effect, so between any two.
 * CAIRN_CRASH_AT=<n> in the environment makes the n-th point that is passed end the process by
 * SIGKILL, CAIRN_STOP_AT=<n> stops it there by SIGSTOP.  Without them a point costs one comparison.
 */
#ifndef CAIRN_AGENT_CRASH_H
#define CAIRN_AGENT_CRASH_H

#include <stdbool.h>
#include <stdint.h>

/* Of one node. */
struct crash {
    uint64_t passed; /* so many points */
    uint64_t at;     /* the one that is not just passed; 0: none */
    bool stops;      /* there, until somebody continues it, and does not die */
};

/* What the environment says; none if it says nothing, or no number. */
struct crash crash_of_environment(void);

void crash_point(struct crash *crash);

#endif
