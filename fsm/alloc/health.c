/*
 * The health of an alloc that a deployment waits for, decided once for each of them.
 *
 * It is healthy when all of its tasks have run for min_healthy_time, without one of them having
 * ended; unhealthy when one has failed, when the group ends by itself, or when healthy_deadline is
 * over before.  One that is told to end before either has no health (nomad v2.0.5
 * client/allochealth/tracker.go).
 *
 * Both times are node time in the record.  The daemon's own absence counts: payloads that were
 * alive at both ends of it have run.  What has not been found yet after a restart is doubted, and
 * no verdict comes from a doubt; a payload that a reboot ended starts its time anew.  The deadline
 * goes on in any case, from the begin of the set-up: what it waited for another alloc is not its
 * own.
 *
 * Where only a user is to say it, nothing of this decides (health_check "manual"); of any alloc
 * that is watched he may say it, whatever was said before, and that holds.
 *
 * Checks of its services count as its tasks do: min_healthy_time begins when all have passed that a
 * deployment waits for, and anew with the first that fails.  What they found last holds over a
 * restart of the daemon, which runs them again, and not over a reboot.
 *
 * A newer version that it takes in place asks anew: another deployment knows nothing of it, and
 * both times begin with the version; who is ending by himself by then does not come to be healthy.
 *
 * When the time has come its tasks are asked, and their answers, in the same turn, are the verdict:
 * a daemon that was late may have the end of one of them in that turn, too.  Pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"

/* Somebody does not know yet, and nobody has told it to end. */
static bool is_asked_for(const struct alloc *alloc)
{
    return alloc->assign.watched && !alloc->assign.condemned && alloc->health == HEALTH_UNKNOWN &&
           !alloc->stop_wanted && !alloc->destroy_wanted && !alloc->ran_out && !alloc->cut_off;
}

static bool is_awaited(const struct alloc *alloc)
{
    return is_asked_for(alloc) && !alloc_state_ends(alloc->machine.state);
}

static bool is_watched(const struct alloc *alloc)
{
    return is_awaited(alloc) && !alloc->assign.manual;
}

/* Before its deadline, if nothing happens. */
static bool is_hopeful(const struct alloc *alloc, enum group_health group)
{
    return (group == GROUP_STEADY || group == GROUP_DOUBTED) && alloc->healthy_at_ms != 0 &&
           alloc->healthy_at_ms <= alloc->unhealthy_at_ms;
}

static void doubt(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->up == MEMBER_UP)
            member->up = MEMBER_ASKED;
    }
}

void alloc_begin_health(struct alloc *alloc, const struct fsm_now *now)
{
    if (is_awaited(alloc)) /* where a user decides it only says when it began */
        alloc->unhealthy_at_ms = now->ms + alloc->assign.healthy_deadline_ms;
}

static void forget_health(struct alloc *alloc)
{
    alloc->verdict_told = alloc_state_ends(alloc->machine.state); /* its tasks have their reasons */
    alloc->health = HEALTH_UNKNOWN;
    alloc->health_unix_ns = 0;
    alloc->health_said = 0;
    alloc->status_revision++;
}

void alloc_renew_health(struct alloc *alloc, const struct alloc_assign *newer,
                        const struct fsm_now *now)
{
    struct alloc_assign *assign = &alloc->assign;
    bool another =
        assign->watched != newer->watched || assign->deployed_unix_ns != newer->deployed_unix_ns;

    assign->watched = newer->watched;
    assign->manual = newer->manual;
    assign->min_healthy_ms = newer->min_healthy_ms;
    assign->healthy_deadline_ms = newer->healthy_deadline_ms;
    assign->deployed_unix_ns = newer->deployed_unix_ns;
    assign->checks = newer->checks;
    alloc->checks_ran = alloc->checks_pass = 0; /* others are asked for, in another order */
    if (another)
        forget_health(alloc);
    if (alloc->health != HEALTH_UNKNOWN)
        return;
    alloc->healthy_at_ms = alloc->unhealthy_at_ms = 0;
    alloc->confirming = 0;
    if (alloc->machine.state != A_WAITING) /* else its set-up begins it */
        alloc_begin_health(alloc, now);
}

uint64_t alloc_health_at_ms(const struct alloc *alloc)
{
    enum group_health group = policy_group_health(alloc);

    if (!is_watched(alloc))
        return 0;
    if (!is_hopeful(alloc, group))
        return alloc->unhealthy_at_ms;
    return group == GROUP_DOUBTED ? 0 : alloc->healthy_at_ms;
}

static void decide(struct alloc *alloc, enum alloc_health health, const struct fsm_now *now)
{
    alloc->health = (uint8_t)health;
    alloc->health_unix_ns = now->unix_ns;
    alloc->modify_unix_ns = now->unix_ns;
    alloc->status_revision++;
    alloc->confirming = 0;
}

/* The group goes on, and the time has come: healthy if all answer that they run. */
static void confirm(struct alloc *alloc)
{
    doubt(alloc);
    alloc->confirming = 1;
}

void alloc_judge_health(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    if (event->kind == AE_UPDATE && is_asked_for(alloc) && !alloc->assign.manual &&
        alloc_state_ends(alloc->machine.state))
        decide(alloc, HEALTH_UNHEALTHY, now);
    if (!is_watched(alloc))
        return;
    if (event->kind == AE_RESTORE) {
        doubt(alloc);
        return;
    }
    enum group_health group = policy_group_health(alloc);
    uint64_t at_ms = alloc_health_at_ms(alloc);
    bool due = event->kind == AE_TIMEOUT && at_ms != 0 && now->ms >= at_ms;

    if (group == GROUP_BROKEN || (due && !is_hopeful(alloc, group))) {
        decide(alloc, HEALTH_UNHEALTHY, now);
    } else if (due) {
        confirm(alloc);
    } else if (group == GROUP_UNSETTLED) {
        alloc->healthy_at_ms = 0;
        alloc->confirming = 0;
    } else if (group == GROUP_STEADY && alloc->confirming) {
        decide(alloc, HEALTH_HEALTHY, now);
    } else if (group == GROUP_STEADY && alloc->healthy_at_ms == 0) {
        alloc->healthy_at_ms = now->ms + alloc->assign.min_healthy_ms;
    }
}

void alloc_say_health(struct alloc *alloc, bool healthy, const struct fsm_now *now)
{
    enum alloc_health said = healthy ? HEALTH_HEALTHY : HEALTH_UNHEALTHY;

    if (!alloc->assign.watched || alloc->health == said)
        return;
    if (healthy)
        alloc->healthy_at_ms = now->ms;
    decide(alloc, said, now);
    alloc->health_said = 1;
    alloc->verdict_told = 1; /* its tasks have done nothing */
}

const char *alloc_broken_health(const struct alloc *alloc)
{
    bool known = alloc->health != HEALTH_UNKNOWN;

    if (alloc->health >= HEALTH_COUNT)
        return "neither healthy nor unhealthy";
    if (!implies(known || alloc->unhealthy_at_ms != 0 || alloc->healthy_at_ms != 0,
                 alloc->assign.watched))
        return "the health of an alloc that nobody watches";
    if (!implies(alloc->health == HEALTH_HEALTHY, alloc->healthy_at_ms != 0))
        return "healthy, and its tasks have never run";
    if (!implies(alloc->health_said, known))
        return "a user said something of its health, and it is not known";
    if (!implies(alloc->checks_pass != 0, (alloc->checks_pass & ~alloc->checks_ran) == 0))
        return "a check has passed that has not run";
    if (!implies(alloc->health_unix_ns != 0, known))
        return "its health was known before it is";
    return NULL;
}
