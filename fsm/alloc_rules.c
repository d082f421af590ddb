/*
 * The alloc machine's rules: what events do to the record, what guards ask of it, which orders go
 * to the members.  Everything here is pure.
 */
#include "fsm/alloc_rules.h"

#include "fsm/policy.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <string.h>

enum { TEARDOWN_BACKOFF_MS = 1000, TEARDOWN_BACKOFF_MS_MAX = 120000 };

static struct alloc *mutable_alloc(struct machine *record)
{
    check(record->kind == MACHINE_ALLOC);
    return (struct alloc *)(void *)record;
}

static struct alloc_member *find(struct alloc *alloc, enum alloc_member_kind kind, const char *name)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == kind && text_equal(member->name, name))
            return member;
    }
    return NULL;
}

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

static uint8_t hook_from(const struct alloc *alloc, enum hook_phase phase, unsigned first)
{
    uint32_t mask = hooks_of(alloc, phase);

    for (unsigned hook = first; hook < ALLOC_HOOK_COUNT; hook++) {
        if ((mask >> hook & 1u) != 0)
            return (uint8_t)hook;
    }
    return ALLOC_HOOK_COUNT;
}

static void begin_phase(struct alloc *alloc, enum hook_phase phase)
{
    alloc->phase = (uint8_t)phase;
    alloc->hook = hook_from(alloc, phase, 0);
}

/* --- who is there --- */

/* Counts the members of KIND for which PRED holds (all of them for NULL). */
static uint32_t count(const struct alloc *alloc, enum alloc_member_kind kind,
                      bool (*pred)(const struct alloc *, const struct alloc_member *))
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == kind && (pred == NULL || pred(alloc, member)))
            found++;
    }
    return found;
}

static bool is_running(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return member->run_state == TASK_RUN_RUNNING;
}

static bool is_live(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return member->run_state != TASK_RUN_DEAD;
}

static bool is_live_poststop(const struct alloc *alloc, const struct alloc_member *member)
{
    return is_live(alloc, member) && member->lifecycle == LIFECYCLE_POSTSTOP;
}

/* Live, and not merely a poststop task that waits for the others. */
static bool holds_end(const struct alloc *alloc, const struct alloc_member *member)
{
    return is_live(alloc, member) &&
           (member->lifecycle != LIFECYCLE_POSTSTOP || !policy_runs_poststop(alloc));
}

static bool is_unready(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return !member->ready;
}

static bool is_held(const struct alloc *alloc, const struct alloc_member *member)
{
    (void)alloc; /* the member knows */
    return !member->gone;
}

static bool any_running(const struct alloc *alloc)
{
    return count(alloc, MEMBER_TASK, is_running) > 0;
}

static bool has_volumes(const struct alloc *alloc)
{
    return count(alloc, MEMBER_VOLUME, is_held) > 0;
}

static bool all_dead(const struct alloc *alloc)
{
    return count(alloc, MEMBER_TASK, holds_end) == 0;
}

static bool every_dead(const struct alloc *alloc)
{
    return count(alloc, MEMBER_TASK, is_live) == 0;
}

/* --- absorb --- */

static void refresh_status(struct alloc *alloc, const struct fsm_now *now)
{
    const char *description;

    /* There is no way back from failed: whoever was told so may have replaced it (I-39). */
    if (alloc->client_status != CLIENT_FAILED)
        alloc->client_status = (uint8_t)policy_client_status(alloc, &description);
    alloc->status_revision++;
    alloc->modify_unix_ns = now->unix_ns;
}

static void absorb_assign(struct alloc *alloc, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct alloc_assign *assign = event->payload;

    memcpy(&alloc->assign, assign, fsm_payload_size(PAYLOAD_ALLOC_ASSIGN, assign));
    alloc->may_start = assign->may_start;
    alloc->modify_unix_ns = assign->create_unix_ns;
    if (assign->condemned) {
        (void)text_copy(alloc->failure, sizeof(alloc->failure), assign->description); /* fits */
        refresh_status(alloc, now);
    }
}

static void explain_kill(struct alloc *alloc, enum task_event_type event, const char *text)
{
    if (alloc->kill_event != TASK_EVENT_NONE || alloc->kill_text[0] != '\0')
        return; /* the first reason stands */
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
 * those that do not can never start. */
static void note_missing_volume(struct alloc *alloc, const struct fsm_now *now)
{
    uint8_t state = alloc->machine.state;
    bool starts = state == A_RUNNING ||
                  (state > A_RUNNING && state <= A_POSTSTOP && policy_runs_poststop(alloc) &&
                   count(alloc, MEMBER_TASK, is_live_poststop) > 0);

    if (!starts || alloc->setup_failed || any_running(alloc) || every_dead(alloc))
        return;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_VOLUME && member->failed && !member->gone)
            fail_setup(alloc, now, "volume", member->name);
    }
}

static void absorb_task(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    const struct task_changed *changed = event->payload;
    struct alloc_member *member = find(alloc, MEMBER_TASK, changed->name);

    check(member != NULL); /* tasks are made together with their alloc */
    member->run_state = changed->run_state;
    member->failed = changed->failed;
    member->started = changed->started;
    refresh_status(alloc, now);
    note_missing_volume(alloc, now);
}

static void absorb_member_lost(struct alloc *alloc, const struct fsm_event *event,
                               const struct fsm_now *now)
{
    const struct member_news *news = event->payload;
    struct alloc_member *task = find(alloc, MEMBER_TASK, news->name);
    struct alloc_member *volume = find(alloc, MEMBER_VOLUME, news->name);

    if (task != NULL) {
        task->run_state = TASK_RUN_DEAD;
        task->failed = 1;
        explain_kill(alloc, TASK_EVENT_SIBLING_FAILED, news->name);
        refresh_status(alloc, now);
    } else if (volume != NULL) {
        volume->failed = 1;
        fail_setup(alloc, now, "volume", news->text);
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
    alloc->hook = hook_from(alloc, (enum hook_phase)alloc->phase, (unsigned)alloc->hook + 1);
}

static void absorb_volume(struct alloc *alloc, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct member_news *news = event->payload;
    struct alloc_member *member = find(alloc, MEMBER_VOLUME, news->name);
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
    note_missing_volume(alloc, now);
}

static void absorb_stop(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now)
{
    bool stop = event->kind == AE_STOP;

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
}

/* Each volume is looked at and says again that it is ready. */
static void forget_mounts(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].ready = 0;
}

static void forget_orders(struct alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].told = ORDER_NONE;
}

void alloc_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct alloc *alloc = mutable_alloc(record);

    switch ((enum alloc_event_kind)event->kind) {
    case AE_ASSIGN:
        absorb_assign(alloc, event, now);
        break;
    case AE_AUTHORIZED:
        alloc->may_start = 1;
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
        alloc->may_start = restore->authority;
        forget_mounts(alloc);
        forget_orders(alloc); /* orders are repeated; who has obeyed ignores them */
        break;
    }
    case AE_RESTART:
    case AE_PREVIOUS_ENDED:
    case AE_TIMEOUT:
    case AE_COUNT:
        break;
    }
}

/* --- enter --- */

void alloc_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                 const struct fsm_now *now)
{
    struct alloc *alloc = mutable_alloc(record);
    const char *cause;

    (void)event; /* everything of it has been absorbed */
    if (row->next == row->state)
        return;
    if (row->state == A_RUNNING && row->event == AE_TASK_CHANGED) {
        enum task_event_type reason = policy_kill_reason(alloc, &cause);
        if (reason != TASK_EVENT_NONE)
            explain_kill(alloc, reason, cause);
    }
    switch ((enum alloc_state)row->next) {
    case A_PREPARING:
        begin_phase(alloc, PHASE_PRERUN);
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

uint64_t alloc_deadline(const struct machine *record, const struct fsm_now *now)
{
    const struct alloc *alloc = alloc_of(record);

    (void)now; /* fixed when the delay began, and outlives restarts */
    check(record->state == A_DELAYING);
    return alloc->delay_until_ms;
}

uint64_t alloc_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    return policy_backoff_ms(TEARDOWN_BACKOFF_MS, TEARDOWN_BACKOFF_MS_MAX, record->attempt,
                             now->seed);
}

/* --- messages --- */

static void tell(const struct machine_id *self, const struct alloc_member *member, uint8_t event,
                 const void *payload, fsm_send *send, void *ctx)
{
    enum machine_kind kind = member->kind == MEMBER_TASK ? MACHINE_TASK : MACHINE_VOLUME;
    struct fsm_message message = {
        .audience = TO_MACHINE,
        .to = machine_id_join(kind, self->text, member->name),
        .event = {.kind = event, .payload = payload},
    };

    send(ctx, &message);
}

static void send_to_all(const struct machine_id *self, const struct alloc *alloc,
                        enum alloc_member_kind kind, uint8_t event, fsm_send *send, void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        if (alloc->assign.members[i].kind == kind)
            tell(self, &alloc->assign.members[i], event, NULL, send, ctx);
    }
}

static void send_start(const struct machine_id *self, struct alloc *alloc, fsm_send *send,
                       void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        bool wanted = alloc->machine.state == A_POSTSTOP || member->lifecycle != LIFECYCLE_POSTSTOP;
        if (member->kind != MEMBER_TASK || member->told != ORDER_NONE || !wanted ||
            member->run_state == TASK_RUN_DEAD || !policy_may_start(alloc, member))
            continue;
        member->told = ORDER_START;
        tell(self, member, TE_START, NULL, send, ctx);
    }
}

/* The desired state is fresh and the volumes are mounted (I-12, I-31).  An alloc that is to end
 * starts its poststop tasks only. */
static void send_authorized(const struct machine_id *self, const struct alloc *alloc,
                            fsm_send *send, void *ctx)
{
    bool ends = alloc->stop_wanted || alloc->destroy_wanted || alloc->machine.state > A_RUNNING;

    if (!alloc->may_start || count(alloc, MEMBER_VOLUME, is_unready) > 0)
        return;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && member->run_state != TASK_RUN_DEAD &&
            (!ends || member->lifecycle == LIFECYCLE_POSTSTOP))
            tell(self, member, TE_AUTHORIZED, NULL, send, ctx);
    }
}

static void send_kill(const struct machine_id *self, struct alloc *alloc, fsm_send *send, void *ctx)
{
    struct kill_order order = {
        .event = alloc->kill_event,
        .fails = alloc->kill_event == TASK_EVENT_SETUP_FAILURE,
    };

    (void)text_copy(order.text, sizeof(order.text), alloc->kill_text); /* same size */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind != MEMBER_TASK || member->told == ORDER_KILL ||
            !policy_must_kill(alloc, member))
            continue;
        member->told = ORDER_KILL;
        tell(self, member, TE_KILL, &order, send, ctx);
    }
}

static void send_restart(const struct machine_id *self, const struct alloc *alloc,
                         const struct fsm_event *event, fsm_send *send, void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && member->run_state == TASK_RUN_RUNNING)
            tell(self, member, TE_RESTART, event->payload, send, ctx);
    }
}

void alloc_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                const struct fsm_event *event, fsm_send *send, void *ctx)
{
    struct alloc *alloc = mutable_alloc(record);

    switch ((enum alloc_effect)effect) {
    case AX_SEND_START:
        send_start(self, alloc, send, ctx);
        return;
    case AX_SEND_KILL:
        send_kill(self, alloc, send, ctx);
        return;
    case AX_SEND_RESTART:
        send_restart(self, alloc, event, send, ctx);
        return;
    case AX_SEND_AUTHORIZED:
        send_authorized(self, alloc, send, ctx);
        return;
    case AX_SEND_REMOVE:
        send_to_all(self, alloc, MEMBER_TASK, TE_REMOVE, send, ctx);
        return;
    case AX_SEND_WANT:
        send_to_all(self, alloc, MEMBER_VOLUME, VE_WANT, send, ctx);
        return;
    case AX_SEND_RELEASE:
        send_to_all(self, alloc, MEMBER_VOLUME, VE_RELEASE, send, ctx);
        return;
    case AX_NONE:
    case AX_HOOK:
    case AX_WATCH_PREVIOUS:
    case AX_BACKOFF:
    case AX_TELL_STATUS:
    case AX_TELL_ENDED:
    case AX_REPLY_OK:
    case AX_REPLY_NOT_RUNNING:
    case AX_COUNT:
        break;
    }
    unreachable("not a message");
}

uint32_t alloc_record_size(const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);

    return (uint32_t)(sizeof(*alloc) +
                      alloc->assign.members_count * sizeof(alloc->assign.members[0]));
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
    return hook_from(alloc, PHASE_PREKILL, 0) != ALLOC_HOOK_COUNT && any_running(alloc);
}

static bool has_delay(const struct alloc *alloc)
{
    return alloc->assign.shutdown_delay_ms > 0 && alloc->delay_until_ms == 0 && any_running(alloc);
}

static bool failing(const struct alloc *alloc)
{
    const char *cause;

    return policy_kill_reason(alloc, &cause) != TASK_EVENT_NONE || alloc->setup_failed;
}

/* clang-format off */
GUARD(alloc_condemned, alloc->assign.condemned)
GUARD(alloc_condemned_live, alloc->assign.condemned && !every_dead(alloc))
GUARD(alloc_condemned_volumes, alloc->assign.condemned && has_volumes(alloc))
GUARD(alloc_has_previous, alloc->assign.previous[0] != '\0')
GUARD(alloc_hooks_left, alloc->hook != ALLOC_HOOK_COUNT)
GUARD(alloc_has_volumes, has_volumes(alloc))
GUARD(alloc_volumes_ready, count(alloc, MEMBER_VOLUME, is_unready) == 0)
GUARD(alloc_volumes_gone, !has_volumes(alloc))
GUARD(alloc_has_prekill, has_prekill(alloc))
GUARD(alloc_has_delay, has_delay(alloc))
GUARD(alloc_all_dead, all_dead(alloc))
GUARD(alloc_all_dead_poststop, all_dead(alloc) && count(alloc, MEMBER_TASK, is_live_poststop) > 0)
GUARD(alloc_all_dead_volumes, all_dead(alloc) && has_volumes(alloc))
GUARD(alloc_every_dead, every_dead(alloc))
GUARD(alloc_every_dead_volumes, every_dead(alloc) && has_volumes(alloc))
GUARD(alloc_failing, failing(alloc))
GUARD(alloc_failing_prekill, failing(alloc) && has_prekill(alloc))
GUARD(alloc_failing_delay, failing(alloc) && has_delay(alloc))
GUARD(alloc_setup_failed, alloc->setup_failed)
GUARD(alloc_any_running, any_running(alloc))
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
                 every_dead(alloc)))
        return "being torn down while a task lives";
    if (!implies(record->state == A_POSTSTOP, all_dead(alloc)))
        return "running poststop tasks while another task lives";
    if (alloc->acked_revision > alloc->status_revision)
        return "a status was confirmed that was never reported";
    return NULL;
}
