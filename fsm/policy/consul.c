/*
 * What is told to Consul, and when: one question for each service that is wanted or there.
 *
 * Nothing is remembered of what was told before: what is there is read, and what is wanted follows
 * from the records, so that an answer that was lost, a crash, or a Consul that has forgotten all
 * are the same case.
 */
#include "fsm/policy.h"

enum {
    PROBATION_MS = 60 * 1000, /* Nomad's */
    SYNC_MS = 30 * 1000,      /* likewise */
    WATCH_MS = 1000,          /* likewise, of checks */
    AGAIN_MS = 1000,          /* more after each failure */
    AGAIN_MS_MAX = 10 * 1000, /* Nomad's is 30 s: but it is one small question to the same host */
};

enum consul_call policy_consul_call(const struct consul_entry *entry, uint64_t up_ms)
{
    if (entry->wanted)
        return entry->there && entry->same && entry->ours ? CONSUL_LEAVE : CONSUL_REGISTER;
    if (!entry->there || !entry->ours || entry->of_another)
        return CONSUL_LEAVE;
    return entry->known || up_ms >= PROBATION_MS ? CONSUL_DEREGISTER : CONSUL_LEAVE;
}

uint64_t policy_consul_after_ms(unsigned failures, bool watched)
{
    if (failures == 0)
        return watched ? WATCH_MS : SYNC_MS;
    return failures < AGAIN_MS_MAX / AGAIN_MS ? (uint64_t)failures * AGAIN_MS : AGAIN_MS_MAX;
}

bool policy_consul_passes(enum consul_status status, bool warnings)
{
    return status == CONSUL_PASSING || (status == CONSUL_WARNING && warnings);
}

bool policy_consul_restarts(struct check_count *count, uint32_t limit, uint64_t interval_ms,
                            bool passes, uint64_t now_ms)
{
    if (passes || limit == 0) {
        count->since_ms = 0;
        return false;
    }
    if (now_ms < count->grace_until_ms)
        return false;
    if (count->since_ms == 0)
        count->since_ms = now_ms;
    return now_ms - count->since_ms >= interval_ms * (limit - 1);
}
