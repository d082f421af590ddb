/* The clocks of loop.h, for those who need no loop: the log writes before there is one. */
#include "io/loop.h"

#include "base/base.h"

#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    check(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t loop_now_ms(void)
{
    return clock_ns(CLOCK_BOOTTIME) / 1000000u;
}

uint64_t loop_now_us(void)
{
    return clock_ns(CLOCK_BOOTTIME) / 1000u;
}

int64_t loop_now_unix_ns(void)
{
    return (int64_t)clock_ns(CLOCK_REALTIME);
}
