/*
 * The orders an alloc gives to its tasks and volumes.
 *
 * To start and to kill go to each task once, when its turn has come, and are remembered; after a
 * restart of the daemon they are repeated, and who has obeyed ignores them.  Pure.
 */
#include "fsm/alloc/part.h"

#include "fsm/policy.h"
#include "fsm/volume.h"

static void tell(const struct machine_id *self, const struct alloc_member *member, uint8_t event,
                 const void *payload, fsm_send *send, void *ctx)
{
    enum machine_kind kind = member->kind == MEMBER_TASK ? MACHINE_TASK : MACHINE_VOLUME;
    struct fsm_message message = {
        .audience = TO_MACHINE,
        .to = machine_id_join(kind, self->text, member->name),
        .event = {.kind = event, .payload = payload},
    };

    check(member->kind == MEMBER_TASK || member->kind == MEMBER_VOLUME);
    check(self->kind == MACHINE_ALLOC);
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
    bool ends =
        alloc->stop_wanted || alloc->destroy_wanted || alloc_state_ends(alloc->machine.state);

    if (!alloc->may_start || members_count(alloc, MEMBER_VOLUME, member_is_unready) > 0)
        return;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && member->run_state != TASK_RUN_DEAD &&
            (!ends || member->lifecycle == LIFECYCLE_POSTSTOP))
            tell(self, member, TE_AUTHORIZED, NULL, send, ctx);
    }
}

/* Whoever is about to start is told when the last of them was seen; that one is not there, whoever
 * may be held for it, too. */
static void send_mounts(const struct machine_id *self, struct alloc *alloc,
                        const struct fsm_event *event, fsm_send *send, void *ctx)
{
    const struct member_news *news = event->payload;
    struct failure failure = {.code = ERR_GONE, .recoverable = 1};
    bool failed = event->kind == AE_VOLUME_FAILED;

    if (!failed && members_count(alloc, MEMBER_VOLUME, member_is_unready) > 0)
        return;
    (void)text_format(failure.text, sizeof(failure.text), "volume \"%s\" is not mounted: %s",
                      news->name, news->text); /* cut if too long */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (!member->looks &&
            (!failed || member->kind != MEMBER_TASK || member->run_state == TASK_RUN_DEAD))
            continue;
        member->looks = 0;
        tell(self, member, failed ? TE_UNMOUNTED : TE_MOUNTED, failed ? &failure : NULL, send, ctx);
    }
}

/* Whoever waits for that volume, before the first start or before the next. */
static void send_trouble(const struct machine_id *self, const struct alloc *alloc,
                         const struct member_news *news, fsm_send *send, void *ctx)
{
    struct kill_order order = {.event = TASK_EVENT_HOOK_FAILED};

    (void)text_format(order.text, sizeof(order.text), "volume \"%s\" is not mounted yet: %s",
                      news->name, news->text); /* cut if too long */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        bool waits = alloc->machine.state == A_MOUNTING || member->looks;
        if (member->kind == MEMBER_TASK && member->run_state != TASK_RUN_DEAD && waits)
            tell(self, member, TE_TOLD, &order, send, ctx);
    }
}

static void send_kill(const struct machine_id *self, struct alloc *alloc, fsm_send *send, void *ctx)
{
    struct kill_order order = {
        .event = alloc->kill_event,
        .fails = alloc->kill_event == TASK_EVENT_SETUP_FAILURE,
        .at_once = alloc->at_once,
    };
    uint8_t told = alloc->at_once ? ORDER_KILL_AT_ONCE : ORDER_KILL;

    check(text_copy(order.text, sizeof(order.text), alloc->kill_text)); /* same size */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind != MEMBER_TASK || member->told == told || !policy_must_kill(alloc, member))
            continue;
        member->told = told;
        tell(self, member, TE_KILL, &order, send, ctx);
    }
}

static void send_rewind(const struct machine_id *self, struct alloc *alloc, fsm_send *send,
                        void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind != MEMBER_TASK || member->told == ORDER_REWIND ||
            !policy_must_rewind(alloc, member))
            continue;
        member->told = ORDER_REWIND;
        tell(self, member, member->run_state == TASK_RUN_DEAD ? TE_REVIVE : TE_REWIND, NULL, send,
             ctx);
    }
}

static void send_report(const struct machine_id *self, const struct alloc *alloc, fsm_send *send,
                        void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->up == MEMBER_ASKED)
            tell(self, member, TE_REPORT, NULL, send, ctx);
    }
}

/* What only a restart mends. */
static void send_note(const struct machine_id *self, const struct alloc *alloc,
                      const struct fsm_event *event, fsm_send *send, void *ctx)
{
    const struct failure *lost = event->payload;
    struct kill_order note = {.event = TASK_EVENT_RESTART_SIGNALED};

    check(event->kind == AE_NETWORK_LOST);
    (void)text_format(note.text, sizeof(note.text), "The network of the allocation was lost: %s",
                      lost->text); /* cut if too long */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && member->run_state == TASK_RUN_RUNNING)
            tell(self, member, TE_NOTE, &note, send, ctx);
    }
}

static void send_told(const struct machine_id *self, const struct alloc *alloc,
                      const struct kill_order *order, fsm_send *send, void *ctx)
{
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK)
            tell(self, member, TE_TOLD, order, send, ctx);
    }
}

/* What it has gone on without is the tasks', too: they begin with less than they were to have. */
static void send_remark(const struct machine_id *self, const struct alloc *alloc,
                        const struct hook_outcome *outcome, fsm_send *send, void *ctx)
{
    struct kill_order remark = {.event = TASK_EVENT_HOOK_MESSAGE};

    (void)text_copy(remark.text, sizeof(remark.text), outcome->text); /* cut if too long */
    if (outcome->text[0] != '\0')
        send_told(self, alloc, &remark, send, ctx);
}

static void send_reconnected(const struct machine_id *self, const struct alloc *alloc,
                             fsm_send *send, void *ctx)
{
    const struct kill_order order = {.event = TASK_EVENT_RECONNECTED, .text = ""};

    send_told(self, alloc, &order, send, ctx);
}

/* Nomad's words, of each task that is not as it should be (v2.0.5 client/allochealth). */
static void send_verdict(const struct machine_id *self, struct alloc *alloc, fsm_send *send,
                         void *ctx)
{
    if (alloc->health != HEALTH_UNHEALTHY || alloc->verdict_told)
        return;
    alloc->verdict_told = 1;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct kill_order order = {.event = TASK_EVENT_ALLOC_UNHEALTHY};

        if (member->kind == MEMBER_TASK &&
            policy_unhealthy_reason(alloc, member, order.text, sizeof(order.text)))
            tell(self, member, TE_TOLD, &order, send, ctx);
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
    struct alloc *alloc = alloc_mutable(record);

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
    case AX_SEND_REWIND:
        send_rewind(self, alloc, send, ctx);
        return;
    case AX_SEND_REPORT:
        send_report(self, alloc, send, ctx);
        return;
    case AX_SEND_VERDICT:
        send_verdict(self, alloc, send, ctx);
        return;
    case AX_SEND_NOTE:
        send_note(self, alloc, event, send, ctx);
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
    case AX_SEND_LOOK:
        send_to_all(self, alloc, MEMBER_VOLUME, VE_LOOK, send, ctx);
        return;
    case AX_SEND_MOUNTS:
        send_mounts(self, alloc, event, send, ctx);
        return;
    case AX_SEND_TROUBLE:
        send_trouble(self, alloc, event->payload, send, ctx);
        return;
    case AX_SEND_REMARK:
        send_remark(self, alloc, event->payload, send, ctx);
        return;
    case AX_SEND_RECONNECTED:
        send_reconnected(self, alloc, send, ctx);
        return;
    case AX_NONE:
    case AX_HOOK:
    case AX_WATCH_PREVIOUS:
    case AX_BACKOFF:
    case AX_TELL_STATUS:
    case AX_TELL_ENDED:
    case AX_REPLY_OK:
    case AX_REPLY_NOT_RUNNING:
    case AX_CHECK_NETWORK:
    case AX_HOOK_ABORT:
    case AX_COUNT:
        break;
    }
    unreachable("not a message");
}
