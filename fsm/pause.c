/* The pause before a next try.  In a file of its own: tables ask for it, and the engine for tables.
 */
#include "fsm/fsm.h"

bool fsm_pausing(const struct machine *record, const struct fsm_event *event,
                 const struct fsm_now *now)
{
    bool awaits = false;

    (void)event;
    (void)now;
    for (int lane = 0; lane < LANE_COUNT; lane++)
        awaits |= record->lane_effect[lane] != 0;
    return record->deadline_ms != 0 && !awaits;
}
