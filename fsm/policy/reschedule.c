/*
 * Rescheduling: whether and when another alloc is made for one that has failed.
 *
 * A pure function of the group's policy, of when the alloc failed, and of what was rescheduled on
 * the way to it, all of which the journal holds: the answer after a crash is that before it.
 * Follows nomad v1.1.2 nomad/structs/structs.go (NextRescheduleTime, NextDelay, RescheduleEligible)
 * and scheduler/generic_sched.go (updateRescheduleTracker).
 */
#include "fsm/policy.h"

static bool is_within(int64_t unix_ns, int64_t now_unix_ns, uint64_t interval_ns)
{
    return now_unix_ns < unix_ns || (uint64_t)now_unix_ns - (uint64_t)unix_ns < interval_ns;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX / 4 || b > UINT64_MAX / 4 ? UINT64_MAX / 2 : a + b;
}

/* By the last delays, before any bound. */
static uint64_t next_of(const struct reschedule_policy *policy,
                        const struct reschedule_event *events, size_t count)
{
    uint64_t last_ns = events[count - 1].delay_ns;

    switch (policy->function) {
    case RESCHEDULE_CONSTANT:
        return policy->delay_ns;
    case RESCHEDULE_EXPONENTIAL:
        return add(last_ns, last_ns);
    case RESCHEDULE_FIBONACCI:
        if (count < 2)
            return policy->delay_ns;
        /* The bound was met and the series began anew. */
        if (events[count - 2].delay_ns == policy->max_delay_ns && last_ns == policy->delay_ns)
            return last_ns;
        return add(last_ns, events[count - 2].delay_ns);
    }
    unreachable("reschedule function");
}

static uint64_t delay_of(const struct reschedule_input *input)
{
    const struct reschedule_policy *policy = input->policy;

    if (input->events_count == 0 || policy->function == RESCHEDULE_CONSTANT)
        return policy->delay_ns;
    uint64_t delay_ns = next_of(policy, input->events, input->events_count);
    if (policy->max_delay_ns == 0 || delay_ns <= policy->max_delay_ns)
        return delay_ns;
    /* It ran for longer than it would have to wait: the series begins anew. */
    int64_t last_unix_ns = input->events[input->events_count - 1].unix_ns;
    bool ran_long = input->failed_unix_ns > last_unix_ns &&
                    !is_within(last_unix_ns, input->failed_unix_ns, policy->max_delay_ns + 1);
    return ran_long ? policy->delay_ns : policy->max_delay_ns;
}

void policy_reschedule(const struct reschedule_input *input,
                       struct reschedule_decision *ret_decision)
{
    const struct reschedule_policy *policy = input->policy;
    uint64_t delay_ns = delay_of(input);
    uint32_t attempted = 0;

    check(implies(input->events_count > 0, input->events != NULL));
    for (size_t i = 0; i < input->events_count; i++)
        attempted +=
            is_within(input->events[i].unix_ns, input->failed_unix_ns, policy->interval_ns);
    bool again = policy->unlimited || attempted < policy->attempts;
    if (!policy->unlimited && input->events_count > 0)
        again = again && delay_ns < policy->interval_ns;
    *ret_decision = (struct reschedule_decision){again, delay_ns, attempted};
}

size_t policy_reschedule_kept(const struct reschedule_policy *policy,
                              const struct reschedule_event *events, size_t count,
                              int64_t now_unix_ns)
{
    size_t kept = 0;

    if (policy->attempts == 0)
        return count < RESCHEDULE_EVENTS_KEPT ? count : RESCHEDULE_EVENTS_KEPT;
    while (kept < count &&
           is_within(events[count - 1 - kept].unix_ns, now_unix_ns, add(policy->interval_ns, 1)))
        kept++;
    return kept;
}
