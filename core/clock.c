#include "core/clock.h"

#include "base/base.h"
#include "fsm/limits.h"

uint64_t clock_continue(uint64_t offset_ms, bool rebooted, const struct clock_last *last,
                        uint64_t since_boot_ms, int64_t unix_ns)
{
    int64_t away_ns = wall_since(last->unix_ns, unix_ns);
    uint64_t away_ms = away_ns > 0 ? (uint64_t)away_ns / 1000000u : 0;

    if (last->now_ms == 0)
        return 0;
    if (rebooted)
        offset_ms = last->now_ms + away_ms - since_boot_ms;
    else if (since_boot_ms + offset_ms > NUMBER_BEGIN_MAX) /* an offset may be less than nothing */
        offset_ms = 0;                                     /* nobody's */
    if (since_boot_ms + offset_ms < last->now_ms)          /* never back, whatever happened */
        offset_ms = last->now_ms - since_boot_ms;
    return offset_ms;
}
