#include "agent/crash.h"

#include "base/base.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct crash crash_of_environment(void)
{
    struct crash crash = {0};

    if (!text_to_u64(getenv("CAIRN_CRASH_AT"), &crash.at)) /* otherwise it stays 0 */
        crash.stops = text_to_u64(getenv("CAIRN_STOP_AT"), &crash.at);
    return crash;
}

void crash_point(struct crash *crash)
{
    if (++crash->passed == crash->at)
        (void)kill(getpid(), crash->stops ? SIGSTOP : SIGKILL); /* cannot fail for ourselves */
}
