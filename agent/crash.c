#include "agent/crash.h"

#include "base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t passed, crash_at;

void crash_init(void)
{
    passed = 0;
    crash_at = 0;
    (void)text_to_u64(getenv("CAIRN_CRASH_AT"), &crash_at); /* absent or not a number: never */
}

void crash_point(enum crash_point point)
{
    (void)point; /* which kind it is shows in the order */
    if (++passed == crash_at)
        (void)kill(getpid(), SIGKILL); /* cannot fail for ourselves */
}

uint64_t crash_points_passed(void)
{
    return passed;
}
