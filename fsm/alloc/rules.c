/*
 * The alloc machine's rules: what events and transitions do to the record.
 *
 * Guards only read (guards.c), orders go to the members (orders.c).  Everything here is
 * pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"

#include <string.h>

enum { TEARDOWN_BACKOFF_MS = 1000, TEARDOWN_BACKOFF_MS_MAX = 120000 };

/* --- hooks --- */

/* The hooks from FROM on; whoever looks for the disk knows from now on that it may be moved. */
static void go_to_hook(struct alloc *alloc, unsigned from)
{
    alloc->hook = alloc_hook_from(alloc, (enum hook_phase)alloc->phase, from);
    if (alloc->phase == PHASE_PRERUN && alloc->hook == ALLOC_HOOK_MIGRATE_DISK &&
        alloc->disk == DISK_AWAY)
        alloc->disk = DISK_MOVING;
}

static void begin_phase(struct alloc *alloc, enum hook_phase phase)
{
    alloc->phase = (uint8_t)phase;
    go_to_hook(alloc, 0);
}

/* --- absorb --- */

static void refresh_status(struct alloc *alloc, const struct fsm_now *now)
{
    const char *description;

    /* There is no way back from failed: whoever was told so may have replaced it (I-39). */
    if (alloc->client_status != CLIENT_FAILED)
        alloc->client_status = (uint8_t)policy_client_status(alloc, &description);
    check(alloc->client_status <= CLIENT_FAILED);
    alloc->status_revision++;
    alloc->modify_unix_ns = now->unix_ns;
}

/* Counted from when it was assigned, whichever version says how long it may run. */
static void set_run_limit(struct alloc *alloc)
{
    const struct alloc_assign *assign = &alloc->assign;

    alloc->run_until_ms =
        assign->max_run_ms != 0 && !assign->condemned ? alloc->assigned_ms + assign->max_run_ms : 0;
}

/* The control plane is there; what counts from now on is its absence, the daemon's own included. */
static void note_contact(struct alloc *alloc, const struct fsm_now *now)
{
    bool minds = alloc->assign.stop_after_ms != 0 && !alloc->assign.condemned;

    alloc->contact_ms = minds ? now->ms : 0;
}

static void absorb_assign(struct alloc *alloc, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct alloc_assign *assign = event->payload;

    check(alloc->machine.state == A_ABSENT);
    memcpy(&alloc->assign, assign, fsm_payload_size(PAYLOAD_ALLOC_ASSIGN, assign));
    alloc->may_start = assign->may_start;
    alloc->modify_unix_ns = assign->create_unix_ns;
    alloc->assigned_ms = now->ms;
    if (alloc_takes_disk(assign) && !assign->condemned)
        alloc->disk = DISK_AWAY;
    set_run_limit(alloc);
    note_contact(alloc, now);
    if (assign->condemned) {
        (void)text_copy(alloc->failure, sizeof(alloc->failure), assign->description); /* fits */
        refresh_status(alloc, now);
    }
}

/* What a newer version may say otherwise; all else of it is what the alloc is already, or another
 * one would have been placed.  Who is being ended takes it, too: its record names the version that
 * its specification is of. */
static void absorb_update(struct alloc *alloc, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct alloc_assign *newer = event->payload;

    check(alloc->machine.state != A_ABSENT);
    alloc->assign.job_version = newer->job_version;
    if (alloc->delay_until_ms == 0) /* else it has begun, and is paid once */
        alloc->assign.shutdown_delay_ms = newer->shutdown_delay_ms;
    if (alloc->assigned_ms == 0)
        alloc->assigned_ms = now->ms;
    if (alloc->assign.max_run_ms != newer->max_run_ms) {
        alloc->assign.max_run_ms = newer->max_run_ms;
        set_run_limit(alloc);
    }
    alloc->assign.stop_after_ms = newer->stop_after_ms;
    note_contact(alloc, now);
    alloc_renew_health(alloc, newer, now);
    alloc->modify_unix_ns = now->unix_ns;
}

static void explain_kill(struct alloc *alloc, enum task_event_type event, const char *text)
{
    if (alloc->kill_event != TASK_EVENT_NONE || alloc->kill_text[0] != '\0')
        return; /* the first reason stands */
    check(event < TASK_EVENT_TYPE_COUNT);
    alloc->kill_event = (uint8_t)event;
    (void)text_copy(alloc->kill_text, sizeof(alloc->kill_text), text); /* cut if too long */
}

static void fail_setup(struct alloc *alloc, const struct fsm_now *now, const char *what,
                       const char *why)
{
    alloc->setup_failed = 1;
    (void)text_format(alloc->failure, sizeof(alloc->failure), "failed to setup alloc: %s: %s", what,
                      why); /* cut if too long */
    explain_kill(alloc, TASK_EVENT_SETUP_FAILURE, alloc->failure);
    refresh_status(alloc, now);
}

/* A volume that could not be mounted again after a restart: tasks that run are left alone (I-23),
 * those that do not can never start.  NEWS, or NULL, says why of one of them. */
static void note_missing_volume(struct alloc *alloc, const struct member_news *news,
                                const struct fsm_now *now)
{
    uint8_t state = alloc->machine.state;
    bool starts = state == A_RUNNING || state == A_REPLAYING ||
                  (state > A_RUNNING && state <= A_POSTSTOP && policy_runs_poststop(alloc) &&
                   members_count(alloc, MEMBER_TASK, member_is_live_poststop) > 0);

    if (!starts || alloc->setup_failed || members_any_running(alloc) || members_every_dead(alloc))
        return;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        char what[sizeof(member->name) + 16];
        if (member->kind != MEMBER_VOLUME || !member->failed || member->gone)
            continue;
        (void)text_format(what, sizeof(what), "volume \"%s\"", member->name); /* fits */
        bool told = news != NULL && text_equal(news->name, member->name);
        fail_setup(alloc, now, what, told ? news->text : "it is not mounted any more");
    }
}

static void absorb_task(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    const struct task_changed *changed = event->payload;
    struct alloc_member *member = member_find(alloc, MEMBER_TASK, changed->name);

    check(member != NULL); /* tasks are made together with their alloc */
    check(changed->run_state <= TASK_RUN_DEAD);
    if (changed->run_state == TASK_RUN_DEAD && member->run_state != TASK_RUN_DEAD &&
        member->told == ORDER_REWIND)
        member->told = ORDER_NONE; /* it had ended by itself before it was told */
    member->run_state = changed->run_state;
    member->failed = changed->failed;
    member->started = changed->started;
    member->rewound = changed->rewound;
    if (!changed->up)
        member->up = MEMBER_DOWN;
    else if (member->up != MEMBER_ASKED || changed->answers)
        member->up = MEMBER_UP; /* else it had said so before it was asked */
    if (!changed->quiet)
        refresh_status(alloc, now);
    note_missing_volume(alloc, NULL, now);
}

static void absorb_member_lost(struct alloc *alloc, const struct fsm_event *event,
                               const struct fsm_now *now)
{
    const struct member_news *news = event->payload;
    /* Older versions did not say which: then a task is meant, where there is one of that name. */
    struct alloc_member *task = news->volume ? NULL : member_find(alloc, MEMBER_TASK, news->name);
    struct alloc_member *volume = member_find(alloc, MEMBER_VOLUME, news->name);
    char what[sizeof(news->name) + 16];

    if (task != NULL) {
        task->run_state = TASK_RUN_DEAD;
        task->failed = 1;
        task->up = MEMBER_DOWN;
        explain_kill(alloc, TASK_EVENT_SIBLING_FAILED, news->name);
        refresh_status(alloc, now);
    } else if (volume != NULL) {
        volume->failed = 1;
        (void)text_format(what, sizeof(what), "volume \"%s\"", news->name); /* fits */
        fail_setup(alloc, now, what, news->text);
    }
}

static void absorb_hook(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    const struct hook_outcome *outcome = event->payload;
    char what[64];

    if (event->kind == AE_HOOK_FAILED && alloc->machine.state == A_PREPARING) {
        (void)text_format(what, sizeof(what), "pre-run hook \"%s\" failed",
                          alloc_hook_name(outcome->hook)); /* fits */
        fail_setup(alloc, now, what, outcome->text);
        return;
    }
    if (event->kind == AE_HOOK_FAILED &&
        (alloc->machine.state == A_POSTRUN || alloc->machine.state == A_DESTROYING))
        return; /* the same hook again, until it succeeds (I-24) */
    if (alloc->machine.state == A_PREPARING && outcome->hook == ALLOC_HOOK_MIGRATE_DISK)
        alloc->disk = DISK_HERE;
    go_to_hook(alloc, (unsigned)alloc->hook + 1);
}

static void absorb_volume(struct alloc *alloc, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct member_news *news = event->payload;
    struct alloc_member *member = member_find(alloc, MEMBER_VOLUME, news->name);
    char what[sizeof(news->name) + 16];

    if (member == NULL)
        return;
    member->ready = event->kind == AE_VOLUME_READY;
    member->failed = event->kind == AE_VOLUME_FAILED;
    member->gone = event->kind == AE_VOLUME_GONE;
    if (alloc->machine.state == A_MOUNTING && !member->ready) {
        (void)text_format(what, sizeof(what), "volume \"%s\"", news->name); /* fits */
        fail_setup(alloc, now, what, news->text);
    }
    note_missing_volume(alloc, news, now);
}

/* That of the group which is under way is over; those of tasks are theirs to skip. */
static void skip_delay(struct alloc *alloc, const struct fsm_now *now)
{
    alloc->at_once = 1;
    if (alloc->machine.state == A_DELAYING && alloc->delay_until_ms > now->ms)
        alloc->delay_until_ms = now->ms;
}

static void absorb_stop(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    bool stop = event->kind == AE_STOP;

    if (stop && ((const struct request *)event->payload)->at_once)
        skip_delay(alloc, now);
    if (stop ? alloc->stop_wanted : alloc->destroy_wanted)
        return; /* asked again: nothing is new */
    if (stop) {
        const struct request *request = event->payload;
        alloc->stop_wanted = 1;
        (void)text_copy(alloc->desired_description, sizeof(alloc->desired_description),
                        request->text); /* cut if too long */
    } else {
        alloc->destroy_wanted = 1;
    }
    alloc->status_revision++;
    alloc->modify_unix_ns = now->unix_ns;
    check(alloc->stop_wanted || alloc->destroy_wanted);
}

/* Its max_run_duration is over while a task is left, be it that others are already being ended.
 * Once they have ended it is complete (nomad v2.0.5 client/allocrunner), if it was not failed. */
static void note_ran_out(struct alloc *alloc, const struct fsm_event *event,
                         const struct fsm_now *now)
{
    uint8_t state = alloc->machine.state;
    bool ending = state > A_RUNNING && state < A_POSTSTOP;
    bool over = alloc_state_ends(state) && state > A_POSTSTOP;

    if (alloc->run_until_ms == 0 || now->ms < alloc->run_until_ms || alloc->ran_out || over ||
        !(ending || event->kind == AE_TIMEOUT))
        return;
    alloc->ran_out = 1;
    explain_kill(alloc, TASK_EVENT_NONE, policy_ran_out);
}

/* Whoever does not hear of it may have replaced it by now. */
static void note_cut_off(struct alloc *alloc, const struct fsm_event *event,
                         const struct fsm_now *now)
{
    uint64_t at_ms = alloc_cut_off_at_ms(alloc);

    if (event->kind != AE_TIMEOUT || at_ms == 0 || now->ms < at_ms || alloc->ran_out)
        return;
    alloc->cut_off = 1;
    explain_kill(alloc, TASK_EVENT_NONE, "no contact to servers for stop_on_client_after");
}

/* Each volume is looked at, and says again that it is ready. */
static void forget_mounts(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].ready = 0;
}

/* What was seen before counts no more. */
static void absorb_look(struct alloc *alloc, const struct member_news *news)
{
    struct alloc_member *member = member_find(alloc, MEMBER_TASK, news->name);

    check(member != NULL); /* tasks are made together with their alloc */
    if (news->text[0] == '\0')
        member->looks = 1; /* one that is held is let go when all are ready, and looks again */
    forget_mounts(alloc);
}

static void forget_orders(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].told = ORDER_NONE, alloc->assign.members[i].looks = 0;
}

/* Each task, whatever it does, is to say that it waits for its turn again. */
static void begin_replay(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].rewound = 0;
    forget_orders(alloc);
}

void alloc_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct alloc *alloc = alloc_mutable(record);

    note_ran_out(alloc, event, now);
    note_cut_off(alloc, event, now);
    switch ((enum alloc_event_kind)event->kind) {
    case AE_ASSIGN:
        absorb_assign(alloc, event, now);
        break;
    case AE_AUTHORIZED:
        alloc->may_start = 1;
        note_contact(alloc, now);
        break;
    case AE_CONTACT:
        note_contact(alloc, now);
        break;
    case AE_TASK_CHANGED:
        absorb_task(alloc, event, now);
        break;
    case AE_MEMBER_LOST:
        absorb_member_lost(alloc, event, now);
        break;
    case AE_VOLUME_READY:
    case AE_VOLUME_FAILED:
    case AE_VOLUME_GONE:
        absorb_volume(alloc, event, now);
        break;
    case AE_UPDATE:
        absorb_update(alloc, event, now);
        break;
    case AE_STATUS_ACKED: {
        const struct ack *ack = event->payload;
        if (ack->status_revision > alloc->acked_revision)
            alloc->acked_revision = ack->status_revision;
        break;
    }
    case AE_STOP:
    case AE_DESTROY:
        absorb_stop(alloc, event, now);
        break;
    case AE_HOOK_DONE:
    case AE_HOOK_FAILED:
        absorb_hook(alloc, event, now);
        break;
    case AE_RESTORE: {
        const struct restore *restore = event->payload;
        check(record->state != A_ABSENT); /* only what was stored can be restored */
        alloc->may_start = restore->authority;
        if (restore->rebooted) /* whoever answered them is gone */
            alloc->checks_ran = alloc->checks_pass = 0;
        forget_mounts(alloc);
        forget_orders(alloc); /* orders are repeated; who has obeyed ignores them */
        break;
    }
    case AE_LOOK:
        absorb_look(alloc, event->payload);
        break;
    case AE_HEALTHY:
    case AE_UNHEALTHY:
        alloc_say_health(alloc, event->kind == AE_HEALTHY, now);
        break;
    case AE_CHECKED: {
        const struct checked *checked = event->payload;
        alloc->checks_ran = checked->ran;
        alloc->checks_pass = checked->pass;
        break;
    }
    case AE_RESTART:
    case AE_REPLAY:
    case AE_PREVIOUS_ENDED:
    case AE_TIMEOUT:
    case AE_NETWORK_SOUND:
    case AE_NETWORK_LOST:
    case AE_VOLUME_TROUBLED:
    case AE_RECONNECTED:
    case AE_COUNT:
        break;
    }
    alloc_judge_health(alloc, event, now);
}

/* --- enter --- */

void alloc_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                 const struct fsm_now *now)
{
    struct alloc *alloc = alloc_mutable(record);
    const char *cause;

    (void)event; /* everything of it has been absorbed */
    check(record->state == row->next);
    if (row->next == row->state)
        return;
    if ((row->state == A_RUNNING || row->state == A_REPLAYING) && row->event == AE_TASK_CHANGED) {
        enum task_event_type reason = policy_kill_reason(alloc, &cause);
        if (reason != TASK_EVENT_NONE)
            explain_kill(alloc, reason, cause);
    }
    switch ((enum alloc_state)row->next) {
    case A_PREPARING:
        begin_phase(alloc, PHASE_PRERUN);
        alloc_begin_health(alloc, now);
        break;
    case A_PREKILL:
        begin_phase(alloc, PHASE_PREKILL);
        break;
    case A_DELAYING:
        if (alloc->delay_until_ms == 0)
            alloc->delay_until_ms = now->ms + alloc->assign.shutdown_delay_ms;
        break;
    case A_POSTRUN:
        begin_phase(alloc, PHASE_POSTRUN);
        break;
    case A_TERMINAL:
        if (alloc->ended_unix_ns == 0)
            alloc->ended_unix_ns = now->unix_ns;
        break;
    case A_DESTROYING:
        if (alloc->ended_unix_ns == 0)
            alloc->ended_unix_ns = now->unix_ns; /* it was never terminal: those who wait go on */
        begin_phase(alloc, PHASE_DESTROY);
        break;
    case A_RUNNING:
        alloc->prepared = 1;
        if (row->state == A_REPLAYING)
            forget_orders(alloc); /* to start, they wait for another one */
        break;
    case A_REPLAYING:
        begin_replay(alloc);
        break;
    case A_ABSENT:
    case A_WAITING:
    case A_MOUNTING:
    case A_KILLING:
    case A_POSTSTOP:
    case A_RELEASING:
    case A_GONE:
    case A_COUNT:
        break;
    }
}

uint64_t alloc_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    return policy_backoff_ms(TEARDOWN_BACKOFF_MS, TEARDOWN_BACKOFF_MS_MAX, record->attempt,
                             now->seed);
}

uint32_t alloc_record_size(const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);

    return (uint32_t)(sizeof(*alloc) +
                      alloc->assign.members_count * sizeof(alloc->assign.members[0]));
}
