/*
 * Records and events made from a seed: every field of every list filled, every invariant of fsm/
 * kept, all of it sensible (fsm_senseless).  Each test program includes this once.
 */
#ifndef CAIRN_TEST_JOURNAL_MAKE_H
#define CAIRN_TEST_JOURNAL_MAKE_H

#include "base/base.h"
#include "fsm/alloc.h"
#include "fsm/fsm.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"
#include "journal/journal.h"

#include <stdio.h>
#include <string.h>

/* A random text that fits SIZE; empty now and then, filling its place now and then. */
static inline void make_text(struct rng *rng, char *to, size_t size)
{
    size_t length = rng_chance(rng, 1, 4)   ? 0
                    : rng_chance(rng, 1, 8) ? size - 1
                                            : 1 + rng_below(rng, size - 1);

    memset(to, 0, size);
    for (size_t i = 0; i < length; i++)
        to[i] = (char)('a' + rng_below(rng, 26));
}

#define MAKE(kind, name, size, doc) MAKE_##kind(to->name)
#define MAKE_U64(field) field = rng_chance(rng, 1, 4) ? 0 : rng_next(rng) >> 12;
#define MAKE_I64(field) field = rng_chance(rng, 1, 4) ? 0 : (int64_t)rng_next(rng);
#define MAKE_U32(field) field = rng_chance(rng, 1, 4) ? 0 : (uint32_t)rng_next(rng) >> 1;
#define MAKE_I32(field) field = rng_chance(rng, 1, 4) ? 0 : (int32_t)rng_next(rng);
#define MAKE_U8(field) field = (uint8_t)rng_below(rng, 3);
#define MAKE_FLAG(field) field = (uint8_t)rng_below(rng, 2);
#define MAKE_TEXT(field) make_text(rng, field, sizeof(field));
#define MAKE_NAME(field) MAKE_TEXT(field)
#define MAKE_PAD(field) memset(field, 0, sizeof(field));

/* make_<struct>: the fields of its list, not what stands beside it. */
#define MAKER(type, FIELDS)                                                                        \
    static inline void make_##type(struct rng *rng, struct type *to)                               \
    {                                                                                              \
        FIELDS(MAKE)                                                                               \
    }
MAKER(task_define, TASK_DEFINE_FIELDS)
MAKER(alloc_member, ALLOC_MEMBER_FIELDS)
MAKER(alloc_assign, ALLOC_ASSIGN_FIELDS)
MAKER(volume_define, VOLUME_DEFINE_FIELDS)
MAKER(plugin_define, PLUGIN_DEFINE_FIELDS)
MAKER(hook_outcome, HOOK_OUTCOME_FIELDS)
MAKER(started, STARTED_FIELDS)
MAKER(exited, EXITED_FIELDS)
MAKER(failure, FAILURE_FIELDS)
MAKER(kill_order, KILL_ORDER_FIELDS)
MAKER(request, REQUEST_FIELDS)
MAKER(restore, RESTORE_FIELDS)
MAKER(task_changed, TASK_CHANGED_FIELDS)
MAKER(member_news, MEMBER_NEWS_FIELDS)
MAKER(claim, CLAIM_FIELDS)
MAKER(plugin_identity, PLUGIN_IDENTITY_FIELDS)
MAKER(ack, ACK_FIELDS)
MAKER(checked, CHECKED_FIELDS)
MAKER(task_event, TASK_EVENT_FIELDS)
MAKER(plugin, PLUGIN_FIELDS)
MAKER(volume, VOLUME_FIELDS)
MAKER(task, TASK_FIELDS)
MAKER(alloc, ALLOC_FIELDS)

static inline uint32_t make_results(struct rng *rng, uint8_t *bytes, uint32_t size)
{
    struct results results = {.bytes = bytes, .size = size};
    unsigned char value[600];
    char key[40];

    memset(bytes, 0, size);
    uint64_t count = rng_below(rng, 6);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t length = (uint32_t)rng_below(rng, sizeof(value));
        for (uint32_t j = 0; j < length; j++)
            value[j] = (unsigned char)rng_next(rng);
        make_text(rng, key, sizeof(key));
        (void)results_set(&results, (uint8_t)rng_below(rng, 3),
                          (enum result_kind)rng_below(rng, RESULT_KIND_COUNT), key, value,
                          length); /* what does not fit stays out */
    }
    return results.used;
}

static inline void make_members(struct rng *rng, struct alloc_assign *assign)
{
    assign->members_count = (uint32_t)rng_below(rng, ALLOC_MEMBERS_MAX + 1);
    for (uint32_t i = 0; i < assign->members_count; i++) {
        struct alloc_member *member = &assign->members[i];
        make_alloc_member(rng, member);
        member->kind = (uint8_t)rng_below(rng, 2);
        member->name[0] = (char)('A' + i % 26); /* no two are of one name */
        member->name[1] = (char)('A' + i / 26);
    }
}

/* The payload KIND with its tail into TO, which has room for FSM_PAYLOAD_BYTES_MAX bytes. */
static inline void make_payload(struct rng *rng, enum fsm_payload kind, void *bytes)
{
    memset(bytes, 0, FSM_PAYLOAD_BYTES_MAX);
    switch (kind) {
    case PAYLOAD_NONE:
    case PAYLOAD_KIND_COUNT:
        return;
    case PAYLOAD_ALLOC_ASSIGN:
        make_alloc_assign(rng, bytes);
        make_members(rng, bytes);
        return;
    case PAYLOAD_HOOK: {
        struct hook_outcome *outcome = bytes;
        make_hook_outcome(rng, outcome);
        outcome->results_bytes = make_results(rng, outcome->results, RESULTS_BYTES_MAX);
        return;
    }
#define SIMPLE(name, type)                                                                         \
    case PAYLOAD_##name:                                                                           \
        make_##type(rng, bytes);                                                                   \
        return;
        SIMPLE(TASK_DEFINE, task_define)
        SIMPLE(VOLUME_DEFINE, volume_define)
        SIMPLE(PLUGIN_DEFINE, plugin_define)
        SIMPLE(STARTED, started)
        SIMPLE(EXIT, exited)
        SIMPLE(FAILURE, failure)
        SIMPLE(KILL, kill_order)
        SIMPLE(REQUEST, request)
        SIMPLE(RESTORE, restore)
        SIMPLE(TASK_CHANGED, task_changed)
        SIMPLE(MEMBER, member_news)
        SIMPLE(CLAIM, claim)
        SIMPLE(IDENTITY, plugin_identity)
        SIMPLE(ACK, ack)
        SIMPLE(CHECKED, checked)
#undef SIMPLE
    }
}

static inline void make_machine(struct rng *rng, const struct fsm_def *def, struct machine *to)
{
    MAKE_U64(to->revision)
    to->entered_ms = 1 + rng_below(rng, 1u << 30);
    to->generation = 1 + (uint32_t)rng_below(rng, 1000);
    to->tickets = 1 + (uint32_t)rng_below(rng, 1u << 20);
    MAKE_U32(to->attempt)
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        uint8_t effect = (uint8_t)rng_below(rng, def->effects_count);
        if (effect != 0 && def->effects[effect].lane == lane)
            to->lane_effect[lane] = effect;
        to->lane_ticket[lane] = (uint32_t)rng_below(rng, to->tickets);
    }
    to->kind = def->kind;
    do
        to->state = (uint8_t)rng_below(rng, def->states_count);
    while ((def->states[to->state].flags & (FSM_INITIAL | FSM_FINAL)) != 0);
    const struct fsm_state *state = &def->states[to->state];
    bool waits = ((state->never | state->ignored) >> def->timeout_event & 1u) == 0;
    if (waits && (state->limit_ms != 0 || rng_chance(rng, 1, 2)))
        to->deadline_ms = 1 + rng_below(rng, 1u << 30);
    to->restored = (uint8_t)rng_below(rng, 2);
}

/* What waits for its time waits for the time that it was asked for. */
static inline void make_task_times(struct rng *rng, struct task *task)
{
    struct machine *machine = &task->machine;
    uint64_t *lengths[] = {&task->define.restart_interval_ms, &task->define.restart_delay_ms,
                           &task->define.kill_timeout_ms, &task->define.shutdown_delay_ms};

    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        *lengths[i] = rng_below(rng, 100000);
    task->older_wait_ms = rng_below(rng, 300000);
    task->interval_ms = rng_below(rng, machine->entered_ms + 1);
    task->restart_at_ms = machine->entered_ms + rng_below(rng, *lengths[1] + 1);
    task->kill_at_ms = machine->entered_ms + rng_below(rng, *lengths[2] + 1);
    task->delay_until_ms = machine->entered_ms + rng_below(rng, *lengths[3] + 1);
    if (machine->state == T_BACKOFF)
        machine->deadline_ms = task->restart_at_ms;
    if (machine->state == T_DELAYING)
        machine->deadline_ms = task->delay_until_ms;
    if (machine->state == T_STOPPING)
        machine->deadline_ms = task->kill_at_ms + 10000; /* the grace of fsm/task/guards.c */
}

/* Hooks of the phase that the state is there for, all of them. */
static inline void make_task_state(struct rng *rng, struct task *task)
{
    static const uint8_t phases[T_COUNT] = {
        [T_RUNNING] = PHASE_POSTSTART,
        [T_PREKILL] = PHASE_PREKILL,
        [T_EXITED] = PHASE_EXITED,
        [T_CLEANUP] = PHASE_STOP,
    };
    uint8_t state = task->machine.state;
    bool over = state == T_CLEANUP || state == T_DEAD,
         alive =
             state == T_RUNNING || state == T_PREKILL || state == T_DELAYING || state == T_STOPPING;
    bool either = state == T_RECOVERING || state == T_REAPING || state == T_EXITED;

    task->phase = phases[state];
    task->define.hooks_prestart = task->define.hooks_poststart = 7;
    task->define.hooks_prekill = task->define.hooks_exited = task->define.hooks_stop = 7;
    task->hook = (uint8_t)rng_below(rng, TASK_HOOK_COUNT + 1);
    task->hook = task->hook == TASK_HOOK_COUNT ? HOOK_NONE : task->hook;
    task->run_state = over                                 ? TASK_RUN_DEAD
                      : alive || (either && task->ran > 0) ? TASK_RUN_RUNNING
                                                           : TASK_RUN_PENDING;
    task->ran = task->ran > 0 || alive;
    task->remove_wanted = state == T_CLEANUP && task->remove_wanted;
    task->told_revision = rng_below(rng, task->status_revision + 1);
}

static inline void make_health(struct rng *rng, struct alloc *alloc)
{
    uint64_t entered_ms = alloc->machine.entered_ms;

    alloc->assign.watched = 1;
    alloc->checks_pass &= alloc->checks_ran;
    alloc->assign.min_healthy_ms = rng_below(rng, 100000);
    alloc->assign.healthy_deadline_ms = rng_below(rng, 100000);
    alloc->unhealthy_at_ms = entered_ms + rng_below(rng, alloc->assign.healthy_deadline_ms + 1);
    alloc->healthy_at_ms = entered_ms + rng_below(rng, alloc->assign.min_healthy_ms + 1);
    alloc->health = (uint8_t)rng_below(rng, HEALTH_COUNT);
    if (alloc->health == HEALTH_UNKNOWN)
        alloc->health_unix_ns = 0;
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        member->up = member->run_state == TASK_RUN_RUNNING
                         ? (uint8_t)rng_below(rng, MEMBER_UP_COUNT)
                         : (uint8_t)MEMBER_DOWN;
    }
}

static inline void make_alloc_state(struct rng *rng, struct alloc *alloc)
{
    static const uint8_t phases[A_COUNT] = {
        [A_PREPARING] = PHASE_PRERUN,
        [A_PREKILL] = PHASE_PREKILL,
        [A_POSTRUN] = PHASE_POSTRUN,
        [A_DESTROYING] = PHASE_DESTROY,
    };
    struct machine *machine = &alloc->machine;

    alloc->phase = phases[machine->state];
    alloc->assign.hooks_prerun = alloc->assign.hooks_prekill = 1;
    alloc->assign.hooks_postrun = alloc->assign.hooks_destroy = 1;
    alloc->hook = (uint8_t)rng_below(rng, ALLOC_HOOK_COUNT + 1);
    alloc->hook = alloc->hook == ALLOC_HOOK_COUNT ? HOOK_NONE : alloc->hook;
    alloc->status_revision = rng_below(rng, 1000);
    alloc->acked_revision = rng_below(rng, alloc->status_revision + 1);
    alloc->assign.shutdown_delay_ms = rng_below(rng, 100000);
    alloc->assign.max_run_ms = rng_below(rng, 100000);
    alloc->delay_until_ms =
        machine->entered_ms + rng_below(rng, alloc->assign.shutdown_delay_ms + 1);
    make_health(rng, alloc);
    alloc->assign.stop_after_ms = 1 + rng_below(rng, 100000);
    alloc->contact_ms = machine->entered_ms + rng_below(rng, 100000);
    alloc->cut_off = alloc->cut_off && alloc_state_ends(machine->state);
    if (alloc_def.states[machine->state].limit_ms < 0)
        machine->deadline_ms = alloc_def.deadline(machine, NULL);
    alloc->prepared = alloc->prepared || machine->state == A_RUNNING;
    if (machine->state < A_POSTRUN)
        alloc->ended_unix_ns = 0;
    for (uint32_t i = 0; machine->state >= A_RELEASING && i < alloc->assign.members_count; i++) {
        alloc->assign.members[i].run_state = TASK_RUN_DEAD;
        alloc->assign.members[i].up = MEMBER_DOWN;
    }
}

static inline void make_fields(struct rng *rng, enum machine_kind kind, struct machine *record)
{
    struct plugin *plugin = (struct plugin *)(void *)record;
    struct volume *volume = (struct volume *)(void *)record;
    struct task *task = (struct task *)(void *)record;
    struct alloc *alloc = (struct alloc *)(void *)record;

    switch (kind) {
    case MACHINE_PLUGIN:
        make_plugin(rng, plugin);
        make_plugin_define(rng, &plugin->define);
        make_plugin_identity(rng, &plugin->identity);
        make_started(rng, &plugin->process);
        return;
    case MACHINE_VOLUME:
        make_volume(rng, volume);
        make_volume_define(rng, &volume->define);
        return;
    case MACHINE_TASK:
        make_task(rng, task);
        make_task_define(rng, &task->define);
        make_started(rng, &task->process);
        make_exited(rng, &task->exit);
        task->events_count = (uint8_t)rng_below(rng, TASK_EVENTS_MAX + 1);
        for (int i = 0; i < task->events_count; i++) {
            make_task_event(rng, &task->events[i]);
            task->events[i].type = (uint8_t)(1 + rng_below(rng, TASK_EVENT_TYPE_COUNT - 1));
        }
        task->results_bytes = make_results(rng, task->results, RESULTS_BYTES_MAX);
        make_task_times(rng, task);
        make_task_state(rng, task);
        return;
    case MACHINE_ALLOC:
        make_alloc(rng, alloc);
        make_alloc_assign(rng, &alloc->assign);
        make_members(rng, &alloc->assign);
        make_alloc_state(rng, alloc);
        return;
    case MACHINE_KIND_COUNT:
        return;
    }
}

/* A valid record of KIND into RECORD, which has room for FSM_RECORD_BYTES_MAX bytes.  Draws until
 * it makes sense; of tasks one in thirty does. */
static inline void make_record(struct rng *rng, enum machine_kind kind, struct machine *record)
{
    struct machine_id id =
        machine_id_make(kind, kind == MACHINE_ALLOC ? "3f2a91c4" : "3f2a91c4/web");

    for (int i = 0; i < 1000; i++) {
        memset(record, 0, FSM_RECORD_BYTES_MAX);
        make_machine(rng, fsm_definition(kind), record);
        make_fields(rng, kind, record);
        if (fsm_senseless(&id, record) == NULL)
            return;
    }
    unreachable("no valid record in 1000 draws");
}

/* A valid event number SEQUENCE of a machine of KIND, with the event EVENT_KIND. */
static inline void make_event(struct rng *rng, uint64_t sequence, enum machine_kind kind,
                              uint8_t event_kind, void *payload, struct journal_event *event)
{
    const struct fsm_def *def = fsm_definition(kind);
    char text[MACHINE_ID_SIZE];

    memset(event, 0, sizeof(*event));
    event->sequence = sequence;
    event->turn = rng_next(rng) >> 12;
    event->seed = rng_next(rng);
    event->now_ms = rng_next(rng) >> 12;
    event->unix_ns = (int64_t)rng_next(rng);
    event->peers = (uint32_t)rng_next(rng);
    text_format(text, sizeof(text), "3f2a91c4-0b7d-4e5c-9a86-%012llx/web",
                (unsigned long long)rng_below(rng, 1ull << 48));
    event->id = machine_id_make(kind, text);
    event->event.kind = event_kind;
    event->event.lane = (uint8_t)rng_below(rng, LANE_COUNT);
    event->event.ticket = (uint32_t)rng_next(rng);
    event->event.generation = (uint32_t)rng_below(rng, 10);
    event->before = (uint8_t)rng_below(rng, def->states_count);
    event->guard = fsm_guard_mark(def, (unsigned)rng_below(rng, def->guards_count));
    event->row = fsm_row_marked(def, event->before, event_kind, event->guard);
    event->after = (uint8_t)rng_below(rng, def->states_count);
    event->issues_count = (uint8_t)rng_below(rng, FSM_EFFECTS_MAX + 1);
    for (int i = 0; i < event->issues_count; i++) {
        uint8_t effect = (uint8_t)(1 + rng_below(rng, (uint64_t)def->effects_count - 1));
        event->issues[i].effect = effect;
        event->issues[i].lane = def->effects[effect].lane;
        event->issues[i].ticket = (uint32_t)rng_next(rng);
    }
    event->digest = rng_next(rng);
    make_payload(rng, (enum fsm_payload)def->events[event_kind].payload, payload);
    if (def->events[event_kind].payload != PAYLOAD_NONE)
        event->event.payload = payload;
}

#endif
