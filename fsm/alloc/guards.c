/*
 * What the table asks of an alloc: its guards, its time, and what always holds of its record.
 * Nothing here changes one.  Pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"

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
    return HOOK_NONE;
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
    return alloc_hook_from(alloc, PHASE_PREKILL, 0) != HOOK_NONE && members_any_running(alloc);
}

static bool has_delay(const struct alloc *alloc)
{
    return alloc->assign.shutdown_delay_ms > 0 && alloc->delay_until_ms == 0 && !alloc->at_once &&
           members_any_running(alloc);
}

static bool has_previous(const struct alloc *alloc)
{
    return alloc->assign.previous[0] != '\0' || alloc->assign.disk_from[0] != '\0';
}

bool alloc_takes_disk(const struct alloc_assign *assign)
{
    return assign->disk_from[0] != '\0' &&
           (assign->hooks_prerun >> ALLOC_HOOK_MIGRATE_DISK & 1u) != 0;
}

static bool failing(const struct alloc *alloc)
{
    const char *cause;

    return policy_kill_reason(alloc, &cause) != TASK_EVENT_NONE || alloc->setup_failed;
}

static bool may_run_on(const struct alloc *alloc, const struct fsm_now *now)
{
    uint64_t cut_off_ms = alloc_cut_off_at_ms(alloc);

    return (alloc->run_until_ms == 0 || now->ms < alloc->run_until_ms) &&
           (cut_off_ms == 0 || now->ms < cut_off_ms);
}

/* clang-format off */
GUARD(alloc_condemned, alloc->assign.condemned)
GUARD(alloc_condemned_live, alloc->assign.condemned && !members_every_dead(alloc))
GUARD(alloc_condemned_volumes, alloc->assign.condemned && members_hold_volumes(alloc))
GUARD(alloc_has_previous, has_previous(alloc))
GUARD(alloc_hooks_left, alloc->hook != HOOK_NONE)
GUARD(alloc_has_volumes, members_hold_volumes(alloc))
GUARD(alloc_volumes_ready, members_count(alloc, MEMBER_VOLUME, member_is_unready) == 0)
GUARD(alloc_volumes_gone, !members_hold_volumes(alloc))
GUARD(alloc_has_prekill, has_prekill(alloc))
GUARD(alloc_has_delay, has_delay(alloc))
GUARD(alloc_at_once, alloc->at_once)
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
GUARD(alloc_rewound, policy_is_rewound(alloc))
GUARD(alloc_any_failed, members_any_failed(alloc))
GUARD(alloc_destroy_wanted, alloc->destroy_wanted)
GUARD(alloc_may_run_on, may_run_on(alloc, now))
GUARD(alloc_has_network, (alloc->assign.hooks_postrun >> ALLOC_HOOK_NETWORK & 1u) != 0)
/* clang-format on */

/* --- the invariant, and the validator for records from disk --- */

#define IN(state) ((uint32_t)1 << A_##state)

static bool is_in(const struct alloc *alloc, uint32_t states)
{
    return (states >> alloc->machine.state & 1u) != 0;
}

static const char *broken_members(const struct alloc *alloc)
{
    if (alloc->assign.members_count > ALLOC_MEMBERS_MAX)
        return "too many members";
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind > MEMBER_VOLUME || member->lifecycle > LIFECYCLE_POSTSTOP ||
            member->run_state > TASK_RUN_DEAD || member->told >= ORDER_COUNT ||
            member->up >= MEMBER_UP_COUNT || member->name[0] == '\0')
            return "malformed member";
        if (!implies(member->up != MEMBER_DOWN, member->run_state == TASK_RUN_RUNNING))
            return "a task runs that does not";
    }
    return NULL;
}

static const char *broken_names(const struct alloc *alloc)
{
    static const uint8_t phases[A_COUNT] = {
        [A_PREPARING] = 1 + PHASE_PRERUN,
        [A_PREKILL] = 1 + PHASE_PREKILL,
        [A_POSTRUN] = 1 + PHASE_POSTRUN,
        [A_DESTROYING] = 1 + PHASE_DESTROY,
    };
    uint8_t phase = phases[alloc->machine.state];

    if (alloc->phase >= PHASE_COUNT ||
        (alloc->hook >= ALLOC_HOOK_COUNT && alloc->hook != HOOK_NONE) ||
        alloc->client_status > CLIENT_FAILED || alloc->kill_event >= TASK_EVENT_TYPE_COUNT)
        return "unknown phase, hook, status or event";
    if (phase != 0 && alloc->phase != phase - 1)
        return "running hooks of another phase than its state's";
    if (phase != 0 && alloc->hook < ALLOC_HOOK_COUNT &&
        (hooks_of(alloc, (enum hook_phase)alloc->phase) >> alloc->hook & 1u) == 0)
        return "running a hook that it does not have";
    if (alloc->assign.shutdown_delay_ms > DURATION_MS_MAX ||
        alloc->assign.max_run_ms > DURATION_MS_MAX ||
        alloc->assign.min_healthy_ms > DURATION_MS_MAX ||
        alloc->assign.healthy_deadline_ms > DURATION_MS_MAX ||
        alloc->assign.stop_after_ms > DURATION_MS_MAX)
        return "a length of time that no job may ask for";
    return NULL;
}

/* What its state says of its members. */
static const char *broken_group(const struct alloc *alloc)
{
    const uint32_t early = IN(WAITING) | IN(PREPARING) | IN(MOUNTING);
    const uint32_t torn_down = IN(RELEASING) | IN(POSTRUN) | IN(TERMINAL) | IN(DESTROYING);

    if (!implies(is_in(alloc, early), members_none_begun(alloc)))
        return "its tasks were begun before it was set up";
    if (!implies(is_in(alloc, IN(RUNNING) | IN(REPLAYING)),
                 alloc->assign.members_count == 0 || !members_all_dead(alloc)))
        return "running, and all of its tasks are dead";
    if (is_in(alloc, IN(REPLAYING)) && policy_is_rewound(alloc))
        return "replaying, and each of its tasks waits to start again";
    if (!implies(is_in(alloc, torn_down), members_every_dead(alloc)))
        return "being torn down while a task lives";
    if (!implies(is_in(alloc, IN(POSTSTOP)), members_all_dead(alloc)))
        return "running poststop tasks while another task lives";
    if (!implies(is_in(alloc, IN(POSTSTOP)), !members_every_dead(alloc)))
        return "running poststop tasks where there are none";
    if (!implies(is_in(alloc, IN(MOUNTING)), members_hold_volumes(alloc)))
        return "mounting where there is nothing to be mounted";
    if (!implies(is_in(alloc, IN(RUNNING) | IN(REPLAYING) | IN(POSTSTOP)), alloc->prepared))
        return "running without having been set up";
    if (!implies(is_in(alloc, IN(MOUNTING) | IN(RUNNING)), alloc->disk == DISK_HERE))
        return "running without the disk that it takes over";
    return NULL;
}

/* What others are told of it. */
static const char *broken_status(const struct alloc *alloc)
{
    const uint32_t ended = IN(POSTRUN) | IN(TERMINAL) | IN(DESTROYING) | IN(GONE);

    if (!implies(alloc->client_status == CLIENT_COMPLETE, members_every_dead(alloc)))
        return "complete while a task lives";
    if (!implies(alloc->ended_unix_ns != 0, is_in(alloc, ended)))
        return "ended before its end";
    if (alloc->acked_revision > alloc->status_revision)
        return "a status was confirmed that was never reported";
    return NULL;
}

static const char *broken_waits(const struct alloc *alloc)
{
    if (!implies(is_in(alloc, IN(DELAYING)),
                 alloc->delay_until_ms != 0 && alloc->machine.deadline_ms != 0))
        return "delaying without a deadline";
    if (!implies(alloc->at_once, alloc->stop_wanted))
        return "delays are skipped, and nobody has stopped it";
    if (!implies(is_in(alloc, IN(WAITING)), has_previous(alloc)))
        return "waiting for nobody";
    if (alloc->disk >= DISK_COUNT ||
        !implies(alloc->disk != DISK_HERE, alloc->assign.disk_from[0] != '\0'))
        return "taking over a disk of nobody";
    if (!implies(alloc->run_until_ms != 0, alloc->assign.max_run_ms != 0) ||
        !implies(alloc->contact_ms != 0, alloc->assign.stop_after_ms != 0) ||
        !implies(alloc->ran_out || alloc->cut_off, alloc_state_ends(alloc->machine.state)))
        return "at the end of a time that it does not have";
    return NULL;
}

const char *alloc_broken(const struct machine *record)
{
    static const char *(*const looks[])(const struct alloc *) = {
        broken_members, broken_names, broken_group,
        broken_status,  broken_waits, alloc_broken_health,
    };
    const struct alloc *alloc = alloc_of(record);
    const char *why = NULL;

    for (size_t i = 0; i < COUNT_OF(looks) && why == NULL; i++)
        why = looks[i](alloc);
    return why;
}

/* --- times --- */

uint64_t alloc_cut_off_at_ms(const struct alloc *alloc)
{
    bool minds = alloc->contact_ms != 0 && !alloc_state_ends(alloc->machine.state);

    return minds ? alloc->contact_ms + alloc->assign.stop_after_ms : 0;
}

/* Of two times, 0: never. */
static uint64_t earlier(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms == 0 || (b_ms != 0 && b_ms < a_ms) ? b_ms : a_ms;
}

uint64_t alloc_deadline(const struct machine *record, const struct fsm_now *now)
{
    const struct alloc *alloc = alloc_of(record);

    (void)now; /* each was fixed when its wait began, and outlives restarts */
    if (record->state == A_DELAYING) {
        check(alloc->delay_until_ms != 0);
        return alloc->delay_until_ms;
    }
    return earlier(alloc_health_at_ms(alloc),
                   earlier(alloc->run_until_ms, alloc_cut_off_at_ms(alloc)));
}

/* Each time was fixed when its wait began, at the latest when the state was entered; those of its
 * health begin anew when a task does, and with each newer version. */
const char *alloc_mistimed(const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);
    const uint32_t limited = IN(WAITING) | IN(PREPARING) | IN(MOUNTING) | IN(RUNNING) |
                             IN(REPLAYING) | IN(DELAYING) | IN(POSTSTOP);
    uint64_t at_ms = alloc->delay_until_ms;

    if (at_ms > record->entered_ms && at_ms - record->entered_ms > alloc->assign.shutdown_delay_ms)
        return "a wait is longer than was asked for";
    if (alloc->run_until_ms > record->entered_ms &&
        alloc->run_until_ms - record->entered_ms > alloc->assign.max_run_ms)
        return "it may run for longer than was asked for";
    if (is_in(alloc, limited) && record->deadline_ms != alloc_deadline(record, NULL))
        return "its timer is set to another time than it waits for";
    return NULL;
}
