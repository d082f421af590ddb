/*
 * What the table asks of an alloc: its guards, and what always holds of its record.  Nothing here
 * changes one.  Pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"

#include <string.h>

/* --- hooks --- */

static uint32_t hooks_of(const struct alloc *alloc, enum hook_phase phase)
{
    switch (phase) {
    case PHASE_PRERUN:
        return alloc->assign.hooks_prerun;
    case PHASE_PREKILL:
        return alloc->assign.hooks_prekill;
    case PHASE_POSTRUN:
        return alloc->assign.hooks_postrun;
    case PHASE_DESTROY:
        return alloc->assign.hooks_destroy;
    case PHASE_PRESTART:
    case PHASE_POSTSTART:
    case PHASE_EXITED:
    case PHASE_STOP:
    case PHASE_COUNT:
        break;
    }
    unreachable("alloc hook phase");
}

uint8_t alloc_hook_from(const struct alloc *alloc, enum hook_phase phase, unsigned first)
{
    uint32_t mask = hooks_of(alloc, phase);

    for (unsigned hook = first; hook < ALLOC_HOOK_COUNT; hook++) {
        if ((mask >> hook & 1u) != 0)
            return (uint8_t)hook;
    }
    return ALLOC_HOOK_COUNT;
}

/* --- guards --- */

#define GUARD(function, condition)                                                                 \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now)                                                       \
    {                                                                                              \
        const struct alloc *alloc = alloc_of(record);                                              \
        (void)event;                                                                               \
        (void)now;                                                                                 \
        return condition;                                                                          \
    }

static bool has_prekill(const struct alloc *alloc)
{
    return alloc_hook_from(alloc, PHASE_PREKILL, 0) != ALLOC_HOOK_COUNT &&
           members_any_running(alloc);
}

static bool has_delay(const struct alloc *alloc)
{
    return alloc->assign.shutdown_delay_ms > 0 && alloc->delay_until_ms == 0 &&
           members_any_running(alloc);
}

static bool failing(const struct alloc *alloc)
{
    const char *cause;

    return policy_kill_reason(alloc, &cause) != TASK_EVENT_NONE || alloc->setup_failed;
}

/* clang-format off */
GUARD(alloc_condemned, alloc->assign.condemned)
GUARD(alloc_condemned_live, alloc->assign.condemned && !members_every_dead(alloc))
GUARD(alloc_condemned_volumes, alloc->assign.condemned && members_hold_volumes(alloc))
GUARD(alloc_has_previous, alloc->assign.previous[0] != '\0')
GUARD(alloc_hooks_left, alloc->hook != ALLOC_HOOK_COUNT)
GUARD(alloc_has_volumes, members_hold_volumes(alloc))
GUARD(alloc_volumes_ready, members_count(alloc, MEMBER_VOLUME, member_is_unready) == 0)
GUARD(alloc_volumes_gone, !members_hold_volumes(alloc))
GUARD(alloc_has_prekill, has_prekill(alloc))
GUARD(alloc_has_delay, has_delay(alloc))
GUARD(alloc_all_dead, members_all_dead(alloc))
GUARD(alloc_all_dead_poststop,
      members_all_dead(alloc) && members_count(alloc, MEMBER_TASK, member_is_live_poststop) > 0)
GUARD(alloc_all_dead_volumes, members_all_dead(alloc) && members_hold_volumes(alloc))
GUARD(alloc_every_dead, members_every_dead(alloc))
GUARD(alloc_every_dead_volumes, members_every_dead(alloc) && members_hold_volumes(alloc))
GUARD(alloc_failing, failing(alloc))
GUARD(alloc_failing_prekill, failing(alloc) && has_prekill(alloc))
GUARD(alloc_failing_delay, failing(alloc) && has_delay(alloc))
GUARD(alloc_setup_failed, alloc->setup_failed)
GUARD(alloc_any_running, members_any_running(alloc))
GUARD(alloc_destroy_wanted, alloc->destroy_wanted)
/* clang-format on */

/* --- the invariant, and the validator for records from disk --- */

static bool is_text(const char *text, size_t size)
{
    return memchr(text, 0, size) != NULL;
}

const char *alloc_broken(const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);

    if (alloc->assign.members_count > ALLOC_MEMBERS_MAX)
        return "too many members";
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind > MEMBER_VOLUME || member->lifecycle > LIFECYCLE_POSTSTOP ||
            member->run_state > TASK_RUN_DEAD || member->told > ORDER_KILL ||
            !is_text(member->name, sizeof(member->name)) || member->name[0] == '\0')
            return "malformed member";
    }
    if (!is_text(alloc->assign.previous, sizeof(alloc->assign.previous)) ||
        !is_text(alloc->assign.namespace, sizeof(alloc->assign.namespace)) ||
        !is_text(alloc->assign.job_id, sizeof(alloc->assign.job_id)) ||
        !is_text(alloc->assign.group, sizeof(alloc->assign.group)) ||
        !is_text(alloc->kill_text, sizeof(alloc->kill_text)) ||
        !is_text(alloc->desired_description, sizeof(alloc->desired_description)) ||
        !is_text(alloc->failure, sizeof(alloc->failure)))
        return "unterminated text";
    if (alloc->phase >= PHASE_COUNT || alloc->hook > ALLOC_HOOK_COUNT ||
        alloc->client_status > CLIENT_FAILED || alloc->kill_event >= TASK_EVENT_TYPE_COUNT)
        return "unknown phase, hook, status or event";
    if (!implies(record->state == A_DELAYING, alloc->delay_until_ms != 0))
        return "delaying without a deadline";
    if (!implies(record->state == A_RELEASING || record->state == A_POSTRUN ||
                     record->state == A_TERMINAL || record->state == A_DESTROYING,
                 members_every_dead(alloc)))
        return "being torn down while a task lives";
    if (!implies(record->state == A_POSTSTOP, members_all_dead(alloc)))
        return "running poststop tasks while another task lives";
    if (alloc->acked_revision > alloc->status_revision)
        return "a status was confirmed that was never reported";
    return NULL;
}
