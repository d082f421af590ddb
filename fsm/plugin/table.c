/*
 * The plugin machine's table.  Only rows here; what guards and events mean is in rules.c.
 */
#include "fsm/plugin/rules.h"

#define M(event) ((uint64_t)1 << PE_##event)
#define ALL (((uint64_t)1 << PE_COUNT) - 1)
#define STATE(name, flags, limit_ms, ignored, never)                                               \
    [P_##name] = {#name, limit_ms, ignored, never, flags}
#define ROW(state, event, guard, next, ...)                                                        \
    {P_##state, PE_##event, PG_##guard, P_##next, {__VA_ARGS__}}

_Static_assert((int)PE_COUNT <= (int)FSM_EVENTS_MAX, "events fit a mask");

/* clang-format off */

/* Completions by lane. */
#define PROCESS (M(LAUNCHED)|M(LAUNCH_FAILED)|M(RECOVERED)|M(LOST)|M(STOPPED)|M(STOP_FAILED))
#define CALLS   (M(PROBED)|M(PROBE_FAILED)|M(IDENTIFIED)|M(IDENTIFY_FAILED))

#define ENDING(s)                                                                                  \
    ROW(s, REMOVE, ALWAYS, STOPPING, PX_TERMINATE, PX_TELL_NODE, PX_SEND_DOWN),                    \
    ROW(s, STOP,   ALWAYS, STOPPING, PX_TERMINATE, PX_TELL_NODE, PX_SEND_DOWN, PX_REPLY_OK)

/* Its process has ended.  A task is started again by others. */
#define ENDED(s, ...)                                                                              \
    ROW(s, EXITED, SUPERVISED, STOPPED, PX_TELL_NODE, ##__VA_ARGS__),                              \
    ROW(s, EXITED, ALWAYS,     BACKOFF, PX_BACKOFF, PX_TELL_NODE, ##__VA_ARGS__)

static const struct fsm_state plugin_states[P_COUNT] = {
/*    state        flags         limit_ms         ignored: late or repeated            never: our own mistake */
STATE(ABSENT,      FSM_INITIAL,  0,               0,                                   ALL & ~M(DEFINE)),
STATE(LAUNCHING,   0,            FSM_LIMIT_RULES, M(DEFINE)|CALLS|M(RECOVERED)|M(LOST)|M(STOPPED)|M(STOP_FAILED), 0),
STATE(RECOVERING,  0,            0,               M(DEFINE)|CALLS|M(LAUNCHED)|M(LAUNCH_FAILED)|M(STOPPED)|M(STOP_FAILED), M(TIMEOUT)),
STATE(PROBING,     0,            FSM_LIMIT_RULES, M(DEFINE)|PROCESS|M(IDENTIFIED)|M(IDENTIFY_FAILED), 0),
STATE(IDENTIFYING, 0,            FSM_LIMIT_RULES, M(DEFINE)|PROCESS|M(PROBED)|M(PROBE_FAILED), 0),
STATE(READY,       FSM_RESTING,  30000,           M(DEFINE)|PROCESS|M(IDENTIFIED)|M(IDENTIFY_FAILED), 0),
STATE(UNHEALTHY,   0,            FSM_LIMIT_RULES, M(DEFINE)|PROCESS|M(IDENTIFIED)|M(IDENTIFY_FAILED), 0),
STATE(BACKOFF,     0,            0,               M(DEFINE)|PROCESS|CALLS|M(EXITED),   0),
STATE(STOPPING,    0,            0,               M(DEFINE)|CALLS|M(LAUNCHED)|M(LAUNCH_FAILED)|M(RECOVERED)|M(LOST)|M(EXITED), 0),
STATE(REJECTED,    FSM_RESTING,  0,               M(DEFINE)|PROCESS|CALLS|M(EXITED),   M(TIMEOUT)),
STATE(STOPPED,     FSM_RESTING,  0,               PROCESS|CALLS|M(EXITED),             M(TIMEOUT)),
STATE(GONE,        FSM_FINAL,    0,               0,                                   ALL),
};

static const struct fsm_row plugin_rows[] = {
/*  state        event            guard          next         effects, in order, after the commit */
ROW(ABSENT,      DEFINE,          ALWAYS,        LAUNCHING,   PX_LAUNCH),

ENDING(LAUNCHING),
ROW(LAUNCHING,   LAUNCHED,        ALWAYS,        PROBING,     PX_PROBE),
ROW(LAUNCHING,   LAUNCH_FAILED,   PERMANENT,     REJECTED,    PX_TELL_NODE),
ROW(LAUNCHING,   LAUNCH_FAILED,   ALWAYS,        BACKOFF,     PX_BACKOFF, PX_TELL_NODE),
ENDED(LAUNCHING),
ROW(LAUNCHING,   TIMEOUT,         UNWELL,        LAUNCHING,   PX_SEND_UNWELL),
ROW(LAUNCHING,   TIMEOUT,         ALWAYS,        LAUNCHING),
ROW(LAUNCHING,   RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(RECOVERING),
ROW(RECOVERING,  RECOVERED,       ALWAYS,        PROBING,     PX_PROBE),
ROW(RECOVERING,  LOST,            ALWAYS,        LAUNCHING,   PX_LAUNCH),
ROW(RECOVERING,  EXITED,          SUPERVISED,    STOPPED,     PX_TELL_NODE),
ROW(RECOVERING,  EXITED,          ALWAYS,        LAUNCHING,   PX_LAUNCH),
ROW(RECOVERING,  RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(PROBING),
ROW(PROBING,     PROBED,          ALWAYS,        IDENTIFYING, PX_IDENTIFY),
ROW(PROBING,     PROBE_FAILED,    HEALTHY,       UNHEALTHY,   PX_TELL_NODE, PX_SEND_HEALTH),
ROW(PROBING,     PROBE_FAILED,    UNWELL,        PROBING,     PX_BACKOFF, PX_SEND_UNWELL),
ROW(PROBING,     PROBE_FAILED,    OVERDUE,       BACKOFF,     PX_TERMINATE, PX_BACKOFF, PX_TELL_NODE),
ROW(PROBING,     PROBE_FAILED,    AILING,        PROBING,     PX_BACKOFF, PX_TELL_NODE, PX_SEND_AILING),
ROW(PROBING,     PROBE_FAILED,    ALWAYS,        PROBING,     PX_BACKOFF),
ENDED(PROBING),
ROW(PROBING,     TIMEOUT,         UNWELL,        PROBING,     PX_PROBE, PX_SEND_UNWELL),
ROW(PROBING,     TIMEOUT,         OVERDUE,       BACKOFF,     PX_TERMINATE, PX_BACKOFF, PX_TELL_NODE),
ROW(PROBING,     TIMEOUT,         ALWAYS,        PROBING,     PX_PROBE),
ROW(PROBING,     RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(IDENTIFYING),
ROW(IDENTIFYING, IDENTIFIED,      ALWAYS,        READY,       PX_TELL_NODE, PX_SEND_UP, PX_SEND_HEALTH),
ROW(IDENTIFYING, IDENTIFY_FAILED, PERMANENT,     REJECTED,    PX_TERMINATE, PX_TELL_NODE),
ROW(IDENTIFYING, IDENTIFY_FAILED, HEALTHY,       UNHEALTHY,   PX_TELL_NODE, PX_SEND_HEALTH),
ROW(IDENTIFYING, IDENTIFY_FAILED, AILING,        PROBING,     PX_BACKOFF, PX_TELL_NODE, PX_SEND_AILING),
ROW(IDENTIFYING, IDENTIFY_FAILED, ALWAYS,        PROBING,     PX_BACKOFF),
ENDED(IDENTIFYING),
ROW(IDENTIFYING, TIMEOUT,         ALWAYS,        PROBING,     PX_PROBE),
ROW(IDENTIFYING, RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(READY),
ROW(READY,       PROBED,          ALWAYS,        READY),
ROW(READY,       PROBE_FAILED,    ALWAYS,        UNHEALTHY,   PX_TELL_NODE, PX_SEND_DOWN, PX_SEND_HEALTH),
ENDED(READY, PX_SEND_DOWN),
ROW(READY,       TIMEOUT,         ALWAYS,        READY,       PX_PROBE),
ROW(READY,       RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(UNHEALTHY),
ROW(UNHEALTHY,   PROBED,          ALWAYS,        IDENTIFYING, PX_IDENTIFY),
ROW(UNHEALTHY,   PROBE_FAILED,    UNWELL,        UNHEALTHY,   PX_BACKOFF, PX_SEND_UNWELL),
ROW(UNHEALTHY,   PROBE_FAILED,    ALWAYS,        UNHEALTHY,   PX_BACKOFF),
ENDED(UNHEALTHY),
ROW(UNHEALTHY,   TIMEOUT,         UNWELL,        UNHEALTHY,   PX_PROBE, PX_SEND_UNWELL),
ROW(UNHEALTHY,   TIMEOUT,         ALWAYS,        UNHEALTHY,   PX_PROBE),
ROW(UNHEALTHY,   RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ENDING(BACKOFF),
ROW(BACKOFF,     TIMEOUT,         ALWAYS,        LAUNCHING,   PX_LAUNCH),
ROW(BACKOFF,     RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ROW(STOPPING,    REMOVE,          ALWAYS,        STOPPING),
ROW(STOPPING,    STOP,            ALWAYS,        STOPPING,    PX_REPLY_OK),
ROW(STOPPING,    STOPPED,         REMOVE_WANTED, GONE,        PX_SEND_DOWN),
ROW(STOPPING,    STOPPED,         ALWAYS,        STOPPED,     PX_TELL_NODE),
ROW(STOPPING,    STOP_FAILED,     ALWAYS,        STOPPING,    PX_BACKOFF),
ROW(STOPPING,    TIMEOUT,         ALWAYS,        STOPPING,    PX_TERMINATE),
ROW(STOPPING,    RESTORE,         PAUSING,       STOPPING),
ROW(STOPPING,    RESTORE,         ALWAYS,        STOPPING,    PX_TERMINATE),

ENDING(REJECTED),
ROW(REJECTED,    RESTORE,         ALWAYS,        RECOVERING,  PX_RECOVER),

ROW(STOPPED,     DEFINE,          SUPERVISED,    LAUNCHING,   PX_LAUNCH),
ROW(STOPPED,     DEFINE,          ALWAYS,        STOPPED),
ROW(STOPPED,     REMOVE,          SUPERVISED,    STOPPING,    PX_TERMINATE, PX_TELL_NODE),
ROW(STOPPED,     REMOVE,          ALWAYS,        GONE,        PX_SEND_DOWN),
ROW(STOPPED,     STOP,            ALWAYS,        STOPPED,     PX_REPLY_OK),
ROW(STOPPED,     RESTORE,         ALWAYS,        STOPPED),
};

/* clang-format on */

static const struct fsm_event_def plugin_events[PE_COUNT] = {
#define X(name, class, payload) [PE_##name] = {#name, FSM_##class, PAYLOAD_##payload},
    PLUGIN_EVENTS(X)
#undef X
};

static const struct fsm_effect_def plugin_effects[PX_COUNT] = {
    [PX_NONE] = {"NONE", LANE_TELL, 0, 0},
#define X(name, lane, completions, timeout_ms)                                                     \
    [PX_##name] = {#name, LANE_##lane, completions, timeout_ms},
    PLUGIN_EFFECTS(X)
#undef X
};

static const struct fsm_guard_def plugin_guards[PG_COUNT] = {
    [PG_ALWAYS] = {"ALWAYS", NULL},
#define X(name, function) [PG_##name] = {#name, function},
    PLUGIN_GUARDS(X)
#undef X
};

const struct fsm_def plugin_def = {
    .name = "plugin",
    .kind = MACHINE_PLUGIN,
    .states = plugin_states,
    .states_count = P_COUNT,
    .rows = plugin_rows,
    .rows_count = COUNT_OF(plugin_rows),
    .events = plugin_events,
    .events_count = PE_COUNT,
    .effects = plugin_effects,
    .effects_count = PX_COUNT,
    .guards = plugin_guards,
    .guards_count = PG_COUNT,
    .paced = (uint64_t)1 << PG_SUPERVISED, /* that its task runs again is said once for each run */
    .timeout_event = PE_TIMEOUT,
    .restore_event = PE_RESTORE,
    .record_bytes = sizeof(struct plugin),
    .absorb = plugin_absorb,
    .enter = plugin_enter,
    .deadline = plugin_deadline,
    .backoff_ms = plugin_backoff_ms,
    .send = plugin_send,
    .record_size = plugin_record_size,
    .broken = plugin_broken,
};
