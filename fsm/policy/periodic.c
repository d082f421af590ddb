/* When a periodic job is launched: nomad v2.0.5 nomad/periodic.go dispatch, and nomad/leader.go
 * restorePeriodicDispatcher for what was missed. */
#include "fsm/policy.h"

int64_t policy_launched_since(int64_t launched_s, int64_t now_s)
{
    return launched_s > now_s && launched_s - now_s > LAUNCH_AHEAD_MAX_S ? now_s : launched_s;
}

enum launching policy_launch(const struct periodic *periodic, int64_t *ret_at_s)
{
    bool missed = periodic->away || periodic->then_s <= periodic->now_s;

    check(periodic->then_s > periodic->due_s || periodic->due_s == LAUNCH_NEVER);
    *ret_at_s = periodic->due_s;
    if (periodic->due_s > periodic->now_s)
        return LAUNCH_LATER;
    *ret_at_s = missed ? periodic->now_s : periodic->due_s;
    return periodic->prohibits_overlap && periodic->goes_on ? LAUNCH_SKIPPED : LAUNCH_NOW;
}
