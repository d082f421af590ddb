/*
 * The alloc machine's table.  Only rows here; what events mean is in rules.c, what guards
 * ask in guards.c.
 *
 * Set-up runs forward WAITING, PREPARING, MOUNTING, RUNNING.  Every way to an end (a stop, a failed
 * set-up, a failed task, all tasks done) goes backward through the same states, so that whatever
 * was begun in any incarnation is undone (I-24, I-25): KILLING, POSTSTOP, RELEASING, POSTRUN.
 *
 * TIMEOUT of a state in which tasks may still start or run is the end of its max_run_duration, the
 * time at which its health is decided (health.c), or that until which it goes on without contact to
 * its control plane, whichever comes first.  The last ends it as a stop does.
 *
 * After a restart of the daemon the network is looked at in which tasks run that nobody will start.
 * What is lost of it only comes back to who starts again: all tasks do, as if a user had asked.
 *
 * UPDATE moves nothing: each state takes the newer version, and what it says holds for what begins
 * from then on.  A hook that has to act on it gets a phase of its own, in the rows of RUNNING.
 */
#include "fsm/alloc.h"
#include "fsm/alloc/rules.h"

#define M(event) ((uint64_t)1 << AE_##event)
#define ALL (((uint64_t)1 << AE_COUNT) - 1)
#define STATE(name, flags, limit_ms, ignored, never)                                               \
    [A_##name] = {#name, limit_ms, ignored, never, flags}
#define ROW(state, event, guard, next, ...)                                                        \
    {A_##state, AE_##event, AG_##guard, A_##next, {__VA_ARGS__}}

_Static_assert((int)AE_COUNT <= (int)FSM_EVENTS_MAX, "events fit a mask");

/* clang-format off */

#define HOOKS   (M(HOOK_DONE) | M(HOOK_FAILED))
#define VOLUMES (M(VOLUME_READY) | M(VOLUME_FAILED) | M(VOLUME_GONE) | M(VOLUME_TROUBLED))
/* What is known of a network at a restart is for those whose tasks are to run on in it. */
#define NETWORK (M(NETWORK_SOUND) | M(NETWORK_LOST))
/* For who is on its way to an end. */
#define IN_VAIN (M(ASSIGN) | M(CONTACT) | M(PREVIOUS_ENDED) | M(LOOK) | M(VOLUME_TROUBLED) |       \
                 M(CHECKED) | NETWORK)

/* An end begins while tasks may live. */
#define BEGIN_KILL(s, e, ...)                                                                      \
    ROW(s, e, HAS_PREKILL,  PREKILL,  AX_HOOK, AX_TELL_STATUS, ##__VA_ARGS__),                     \
    ROW(s, e, HAS_DELAY,    DELAYING, AX_TELL_STATUS, ##__VA_ARGS__),                              \
    ROW(s, e, ALWAYS,       KILLING,  AX_SEND_KILL, AX_TELL_STATUS, ##__VA_ARGS__)

/* The same before any task was started, or behind the last but poststop ones: there is nothing to
 * warn and nothing to wait for. */
#define BEGIN_KILL_EARLY(s, e, ...)                                                                \
    ROW(s, e, ALWAYS,       KILLING,  AX_SEND_KILL, AX_TELL_STATUS, ##__VA_ARGS__)

/* No task but poststop ones is left. */
#define BEGIN_END(s, e, guard, ...)                                                                \
    ROW(s, e, guard##_POSTSTOP, POSTSTOP,  AX_SEND_START, AX_TELL_STATUS, ##__VA_ARGS__),          \
    ROW(s, e, guard##_VOLUMES,  RELEASING, AX_SEND_RELEASE, AX_TELL_STATUS, ##__VA_ARGS__),        \
    ROW(s, e, guard,            POSTRUN,   AX_HOOK, AX_TELL_STATUS, ##__VA_ARGS__)

/* A task's end is the end of the group. */
#define FAIL(s)                                                                                    \
    ROW(s, TASK_CHANGED, FAILING_PREKILL, PREKILL,  AX_HOOK, AX_TELL_STATUS, AX_SEND_VERDICT),     \
    ROW(s, TASK_CHANGED, FAILING_DELAY,   DELAYING, AX_TELL_STATUS, AX_SEND_VERDICT),              \
    ROW(s, TASK_CHANGED, FAILING,         KILLING,  AX_SEND_KILL, AX_TELL_STATUS, AX_SEND_VERDICT)

/* A member's record could not be read: the group ends, with whoever is left. */
#define LOSE(s)                                                                                    \
    BEGIN_END(s, MEMBER_LOST, ALL_DEAD),                                                           \
    BEGIN_KILL(s, MEMBER_LOST)

/* The same before any task was started: poststop tasks follow only what has begun. */
#define LOSE_EARLY(s, ...)                                                                         \
    ROW(s, MEMBER_LOST, ALL_DEAD_VOLUMES, RELEASING, ##__VA_ARGS__, AX_SEND_RELEASE,               \
        AX_TELL_STATUS),                                                                           \
    ROW(s, MEMBER_LOST, ALL_DEAD,         POSTRUN,   ##__VA_ARGS__, AX_HOOK, AX_TELL_STATUS),      \
    BEGIN_KILL_EARLY(s, MEMBER_LOST, ##__VA_ARGS__)

/* Nothing of the alloc's set-up is left. */
#define END(s, e)                                                                                  \
    ROW(s, e, DESTROY_WANTED, DESTROYING, AX_HOOK, AX_TELL_STATUS, AX_TELL_ENDED),                 \
    ROW(s, e, ALWAYS,         TERMINAL,   AX_TELL_STATUS, AX_TELL_ENDED)

/* It was the time at which its health is decided, and not one at which it ends. */
#define JUDGED(s, ...)                                                                             \
    ROW(s, TIMEOUT, MAY_RUN_ON, s, AX_TELL_STATUS, AX_SEND_VERDICT, ##__VA_ARGS__)

/* What every state takes note of. */
#define NOTED(s, e)     ROW(s, e, ALWAYS, s)
#define REFUSED(s, e)   ROW(s, e, ALWAYS, s, AX_REPLY_NOT_RUNNING)
/* A volume is there (again): tasks may start that waited for it. */
#define MOUNTED(s, ...) ROW(s, VOLUME_READY, ALWAYS, s, AX_SEND_AUTHORIZED, ##__VA_ARGS__)
#define AGREED(s, e)    ROW(s, e, ALWAYS, s, AX_REPLY_OK, AX_TELL_STATUS)
/* What a user says of its health is what the deployment goes by, wherever it is by then. */
#define JUDGED_BY_USER(s)                                                                          \
    ROW(s, HEALTHY,   ALWAYS, s, AX_TELL_STATUS),                                                  \
    ROW(s, UNHEALTHY, ALWAYS, s, AX_TELL_STATUS)

/* It is known again what it is: its tasks tell so, whatever they do. */
#define RECONNECTED(s) ROW(s, RECONNECTED, ALWAYS, s, AX_SEND_RECONNECTED, AX_TELL_STATUS)

/* A newer version in place: what was said of its health may not be any more. */
#define RENEWED(s, ...) ROW(s, UPDATE, ALWAYS, s, AX_TELL_STATUS, ##__VA_ARGS__)

static const struct fsm_state alloc_states[A_COUNT] = {
/*    state       flags         limit_ms         ignored: late or repeated            never: our own mistake */
STATE(ABSENT,     FSM_INITIAL,  0,               0,                                   ALL & ~M(ASSIGN)),
STATE(WAITING,    0,            FSM_LIMIT_RECORD, M(ASSIGN)|M(LOOK)|M(CHECKED)|NETWORK|HOOKS|VOLUMES, 0),
STATE(PREPARING,  0,            FSM_LIMIT_RECORD, M(ASSIGN)|M(LOOK)|M(CHECKED)|NETWORK|M(PREVIOUS_ENDED)|VOLUMES, 0),
STATE(MOUNTING,   FSM_RESTING,  FSM_LIMIT_RECORD, M(ASSIGN)|M(LOOK)|M(CHECKED)|NETWORK|M(PREVIOUS_ENDED)|HOOKS, 0),
STATE(RUNNING,    FSM_RESTING,  FSM_LIMIT_RECORD, M(ASSIGN)|M(PREVIOUS_ENDED)|HOOKS, 0),
STATE(PREKILL,    0,            0,               IN_VAIN,                             M(TIMEOUT)),
STATE(DELAYING,   0,            FSM_LIMIT_RECORD, IN_VAIN|HOOKS,                      0),
STATE(KILLING,    FSM_RESTING,  0,               IN_VAIN|HOOKS,                       M(TIMEOUT)),
STATE(POSTSTOP,   FSM_RESTING,  FSM_LIMIT_RECORD, (IN_VAIN & ~(M(LOOK)|M(VOLUME_TROUBLED)))|HOOKS, 0),
STATE(RELEASING,  FSM_RESTING,  0,               IN_VAIN|HOOKS|M(VOLUME_READY)|M(VOLUME_FAILED), M(TIMEOUT)),
STATE(POSTRUN,    0,            0,               IN_VAIN|VOLUMES,                     0),
STATE(TERMINAL,   FSM_RESTING,  0,               IN_VAIN|M(AUTHORIZED)|HOOKS|VOLUMES, M(TIMEOUT)),
STATE(DESTROYING, 0,            0,               IN_VAIN|M(AUTHORIZED)|M(RECONNECTED)|VOLUMES,       0),
STATE(GONE,       FSM_FINAL,    0,               0,                                   ALL),
STATE(REPLAYING,  FSM_RESTING,  FSM_LIMIT_RECORD, M(ASSIGN)|M(LOOK)|NETWORK|M(PREVIOUS_ENDED)|M(VOLUME_TROUBLED)|HOOKS, 0),
};

static const struct fsm_row alloc_rows[] = {
/*  state       event           guard            next        effects, in order, after the commit */
ROW(ABSENT,     ASSIGN,         CONDEMNED_LIVE,  KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
ROW(ABSENT,     ASSIGN,         CONDEMNED_VOLUMES, RELEASING, AX_SEND_RELEASE, AX_TELL_STATUS),
ROW(ABSENT,     ASSIGN,         CONDEMNED,       POSTRUN,    AX_HOOK, AX_TELL_STATUS),
ROW(ABSENT,     ASSIGN,         HAS_PREVIOUS,    WAITING,    AX_WATCH_PREVIOUS),
ROW(ABSENT,     ASSIGN,         ALWAYS,          PREPARING,  AX_HOOK),

ROW(WAITING,    AUTHORIZED,     ALWAYS,          WAITING,    AX_SEND_AUTHORIZED),
NOTED(WAITING,  TASK_CHANGED),
LOSE_EARLY(WAITING),
NOTED(WAITING,  STATUS_ACKED),
BEGIN_KILL_EARLY(WAITING, STOP, AX_REPLY_OK),
REFUSED(WAITING, RESTART),
BEGIN_KILL_EARLY(WAITING, DESTROY, AX_REPLY_OK),
ROW(WAITING,    PREVIOUS_ENDED, ALWAYS,          PREPARING,  AX_HOOK),
BEGIN_KILL_EARLY(WAITING, TIMEOUT),
ROW(WAITING,    RESTORE,        ALWAYS,          WAITING,    AX_WATCH_PREVIOUS),
REFUSED(WAITING, REPLAY),
RENEWED(WAITING),
NOTED(WAITING,  CONTACT),
JUDGED_BY_USER(WAITING),
RECONNECTED(WAITING),

ROW(PREPARING,  AUTHORIZED,     ALWAYS,          PREPARING,  AX_SEND_AUTHORIZED),
NOTED(PREPARING, TASK_CHANGED),
LOSE_EARLY(PREPARING, AX_HOOK_ABORT),
NOTED(PREPARING, STATUS_ACKED),
BEGIN_KILL_EARLY(PREPARING, STOP, AX_HOOK_ABORT, AX_REPLY_OK),
REFUSED(PREPARING, RESTART),
BEGIN_KILL_EARLY(PREPARING, DESTROY, AX_HOOK_ABORT, AX_REPLY_OK),
ROW(PREPARING,  HOOK_DONE,      HOOKS_LEFT,      PREPARING,  AX_SEND_REMARK, AX_HOOK),
ROW(PREPARING,  HOOK_DONE,      HAS_VOLUMES,     MOUNTING,   AX_SEND_REMARK, AX_SEND_WANT),
ROW(PREPARING,  HOOK_DONE,      ALWAYS,          RUNNING,    AX_SEND_REMARK, AX_SEND_START),
BEGIN_KILL_EARLY(PREPARING, HOOK_FAILED),
JUDGED(PREPARING),
BEGIN_KILL_EARLY(PREPARING, TIMEOUT, AX_HOOK_ABORT),
ROW(PREPARING,  RESTORE,        ALWAYS,          PREPARING,  AX_HOOK),
REFUSED(PREPARING, REPLAY),
RENEWED(PREPARING),
NOTED(PREPARING, CONTACT),
JUDGED_BY_USER(PREPARING),
RECONNECTED(PREPARING),

ROW(MOUNTING,   AUTHORIZED,     ALWAYS,          MOUNTING,   AX_SEND_AUTHORIZED),
ROW(MOUNTING,   TASK_CHANGED,   ALWAYS,          MOUNTING,   AX_TELL_STATUS),
LOSE_EARLY(MOUNTING),
ROW(MOUNTING,   VOLUME_READY,   VOLUMES_READY,   RUNNING,    AX_SEND_AUTHORIZED, AX_SEND_START),
NOTED(MOUNTING, VOLUME_READY),
BEGIN_KILL_EARLY(MOUNTING, VOLUME_FAILED),
BEGIN_KILL_EARLY(MOUNTING, VOLUME_GONE),
NOTED(MOUNTING, STATUS_ACKED),
BEGIN_KILL_EARLY(MOUNTING, STOP, AX_REPLY_OK),
REFUSED(MOUNTING, RESTART),
BEGIN_KILL_EARLY(MOUNTING, DESTROY, AX_REPLY_OK),
JUDGED(MOUNTING),
BEGIN_KILL_EARLY(MOUNTING, TIMEOUT),
ROW(MOUNTING,   RESTORE,        ALWAYS,          MOUNTING,   AX_SEND_WANT),
REFUSED(MOUNTING, REPLAY),
RENEWED(MOUNTING),
NOTED(MOUNTING, CONTACT),
JUDGED_BY_USER(MOUNTING),
ROW(MOUNTING,   VOLUME_TROUBLED, ALWAYS,         MOUNTING,   AX_SEND_TROUBLE),
RECONNECTED(MOUNTING),

ROW(RUNNING,    AUTHORIZED,     ALWAYS,          RUNNING,    AX_SEND_AUTHORIZED),
BEGIN_END(RUNNING, TASK_CHANGED, ALL_DEAD, AX_SEND_VERDICT),
FAIL(RUNNING),
ROW(RUNNING,    TASK_CHANGED,   ALWAYS,          RUNNING,    AX_SEND_START, AX_TELL_STATUS, AX_SEND_VERDICT),
LOSE(RUNNING),
MOUNTED(RUNNING, AX_SEND_MOUNTS),
ROW(RUNNING,    VOLUME_FAILED,  ANY_RUNNING,     RUNNING,    AX_SEND_MOUNTS),
ROW(RUNNING,    VOLUME_FAILED,  ALWAYS,          KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
NOTED(RUNNING,  VOLUME_GONE),
NOTED(RUNNING,  STATUS_ACKED),
BEGIN_KILL(RUNNING, STOP, AX_REPLY_OK),
ROW(RUNNING,    RESTART,        ANY_RUNNING,     RUNNING,    AX_SEND_RESTART, AX_REPLY_OK),
REFUSED(RUNNING, RESTART),
BEGIN_KILL(RUNNING, DESTROY, AX_REPLY_OK),
JUDGED(RUNNING, AX_SEND_REPORT),
BEGIN_KILL(RUNNING, TIMEOUT),
ROW(RUNNING,    RESTORE,        HAS_NETWORK,     RUNNING,    AX_SEND_START, AX_SEND_REPORT, AX_CHECK_NETWORK),
ROW(RUNNING,    RESTORE,        ALWAYS,          RUNNING,    AX_SEND_START, AX_SEND_REPORT),
ROW(RUNNING,    REPLAY,         ANY_FAILED,      RUNNING,    AX_REPLY_NOT_RUNNING),
ROW(RUNNING,    REPLAY,         ALWAYS,          REPLAYING,  AX_SEND_REWIND, AX_REPLY_OK, AX_TELL_STATUS),
RENEWED(RUNNING, AX_SEND_VERDICT),
NOTED(RUNNING,  CONTACT),
NOTED(RUNNING,  NETWORK_SOUND),
ROW(RUNNING,    NETWORK_LOST,   ANY_FAILED,      RUNNING),
ROW(RUNNING,    NETWORK_LOST,   ANY_RUNNING,     REPLAYING,  AX_SEND_NOTE, AX_SEND_REWIND, AX_TELL_STATUS),
NOTED(RUNNING,  NETWORK_LOST),
ROW(RUNNING,    LOOK,           ALWAYS,          RUNNING,    AX_SEND_LOOK),
JUDGED_BY_USER(RUNNING),
ROW(RUNNING,    VOLUME_TROUBLED, ALWAYS,         RUNNING,    AX_SEND_TROUBLE),
NOTED(RUNNING,  CHECKED),
RECONNECTED(RUNNING),

ROW(PREKILL,    AUTHORIZED,     ALWAYS,          PREKILL,    AX_SEND_AUTHORIZED),
ROW(PREKILL,    TASK_CHANGED,   ALWAYS,          PREKILL,    AX_TELL_STATUS),
NOTED(PREKILL,  MEMBER_LOST),
MOUNTED(PREKILL),
NOTED(PREKILL,  VOLUME_FAILED),
NOTED(PREKILL,  VOLUME_GONE),
NOTED(PREKILL,  STATUS_ACKED),
AGREED(PREKILL, STOP),
REFUSED(PREKILL, RESTART),
AGREED(PREKILL, DESTROY),
ROW(PREKILL,    HOOK_DONE,      HOOKS_LEFT,      PREKILL,    AX_HOOK),
ROW(PREKILL,    HOOK_DONE,      HAS_DELAY,       DELAYING),
BEGIN_END(PREKILL, HOOK_DONE, ALL_DEAD),
ROW(PREKILL,    HOOK_DONE,      ALWAYS,          KILLING,    AX_SEND_KILL),
ROW(PREKILL,    HOOK_FAILED,    HOOKS_LEFT,      PREKILL,    AX_HOOK),
ROW(PREKILL,    HOOK_FAILED,    HAS_DELAY,       DELAYING),
BEGIN_END(PREKILL, HOOK_FAILED, ALL_DEAD),
ROW(PREKILL,    HOOK_FAILED,    ALWAYS,          KILLING,    AX_SEND_KILL),
ROW(PREKILL,    RESTORE,        ALWAYS,          PREKILL,    AX_HOOK),
REFUSED(PREKILL, REPLAY),
RENEWED(PREKILL),
JUDGED_BY_USER(PREKILL),
RECONNECTED(PREKILL),

ROW(DELAYING,   AUTHORIZED,     ALWAYS,          DELAYING,   AX_SEND_AUTHORIZED),
ROW(DELAYING,   TASK_CHANGED,   ALWAYS,          DELAYING,   AX_TELL_STATUS),
NOTED(DELAYING, MEMBER_LOST),
MOUNTED(DELAYING),
NOTED(DELAYING, VOLUME_FAILED),
NOTED(DELAYING, VOLUME_GONE),
NOTED(DELAYING, STATUS_ACKED),
AGREED(DELAYING, STOP),
REFUSED(DELAYING, RESTART),
AGREED(DELAYING, DESTROY),
BEGIN_END(DELAYING, TIMEOUT, ALL_DEAD),
ROW(DELAYING,   TIMEOUT,        ALWAYS,          KILLING,    AX_SEND_KILL),
NOTED(DELAYING, RESTORE),
REFUSED(DELAYING, REPLAY),
RENEWED(DELAYING),
JUDGED_BY_USER(DELAYING),
RECONNECTED(DELAYING),

ROW(KILLING,    AUTHORIZED,     ALWAYS,          KILLING,    AX_SEND_AUTHORIZED),
BEGIN_END(KILLING, TASK_CHANGED, ALL_DEAD),
ROW(KILLING,    TASK_CHANGED,   ALWAYS,          KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
BEGIN_END(KILLING, MEMBER_LOST, ALL_DEAD),
ROW(KILLING,    MEMBER_LOST,    ALWAYS,          KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
MOUNTED(KILLING),
NOTED(KILLING,  VOLUME_FAILED),
NOTED(KILLING,  VOLUME_GONE),
NOTED(KILLING,  STATUS_ACKED),
ROW(KILLING,    STOP,           AT_ONCE,         KILLING,    AX_SEND_KILL, AX_REPLY_OK, AX_TELL_STATUS),
AGREED(KILLING, STOP),
REFUSED(KILLING, RESTART),
AGREED(KILLING, DESTROY),
BEGIN_END(KILLING, RESTORE, ALL_DEAD),
ROW(KILLING,    RESTORE,        ALWAYS,          KILLING,    AX_SEND_KILL),
REFUSED(KILLING, REPLAY),
RENEWED(KILLING),
JUDGED_BY_USER(KILLING),
RECONNECTED(KILLING),

ROW(POSTSTOP,   AUTHORIZED,     ALWAYS,          POSTSTOP,   AX_SEND_AUTHORIZED),
ROW(POSTSTOP,   TASK_CHANGED,   EVERY_DEAD_VOLUMES, RELEASING, AX_SEND_RELEASE, AX_TELL_STATUS),
ROW(POSTSTOP,   TASK_CHANGED,   EVERY_DEAD,      POSTRUN,    AX_HOOK, AX_TELL_STATUS),
ROW(POSTSTOP,   TASK_CHANGED,   SETUP_FAILED,    KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
ROW(POSTSTOP,   TASK_CHANGED,   ALWAYS,          POSTSTOP,   AX_SEND_START, AX_TELL_STATUS),
ROW(POSTSTOP,   MEMBER_LOST,    EVERY_DEAD_VOLUMES, RELEASING, AX_SEND_RELEASE, AX_TELL_STATUS),
ROW(POSTSTOP,   MEMBER_LOST,    EVERY_DEAD,      POSTRUN,    AX_HOOK, AX_TELL_STATUS),
ROW(POSTSTOP,   MEMBER_LOST,    SETUP_FAILED,    KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
NOTED(POSTSTOP, MEMBER_LOST),
MOUNTED(POSTSTOP, AX_SEND_MOUNTS),
ROW(POSTSTOP,   VOLUME_FAILED,  ANY_RUNNING,     POSTSTOP,   AX_SEND_MOUNTS),
ROW(POSTSTOP,   VOLUME_FAILED,  ALWAYS,          KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
NOTED(POSTSTOP, VOLUME_GONE),
NOTED(POSTSTOP, STATUS_ACKED),
AGREED(POSTSTOP, STOP),
REFUSED(POSTSTOP, RESTART),
ROW(POSTSTOP,   DESTROY,        ALWAYS,          KILLING,    AX_SEND_KILL, AX_REPLY_OK, AX_TELL_STATUS),
BEGIN_KILL_EARLY(POSTSTOP, TIMEOUT),
ROW(POSTSTOP,   RESTORE,        ALWAYS,          POSTSTOP,   AX_SEND_START),
REFUSED(POSTSTOP, REPLAY),
RENEWED(POSTSTOP),
ROW(POSTSTOP,   LOOK,           ALWAYS,          POSTSTOP,   AX_SEND_LOOK),
JUDGED_BY_USER(POSTSTOP),
ROW(POSTSTOP,   VOLUME_TROUBLED, ALWAYS,         POSTSTOP,   AX_SEND_TROUBLE),
RECONNECTED(POSTSTOP),

ROW(RELEASING,  AUTHORIZED,     ALWAYS,          RELEASING,  AX_SEND_AUTHORIZED),
ROW(RELEASING,  TASK_CHANGED,   ALWAYS,          RELEASING,  AX_TELL_STATUS),
NOTED(RELEASING, MEMBER_LOST),
ROW(RELEASING,  VOLUME_GONE,    VOLUMES_GONE,    POSTRUN,    AX_HOOK),
NOTED(RELEASING, VOLUME_GONE),
NOTED(RELEASING, STATUS_ACKED),
AGREED(RELEASING, STOP),
REFUSED(RELEASING, RESTART),
AGREED(RELEASING, DESTROY),
ROW(RELEASING,  RESTORE,        VOLUMES_GONE,    POSTRUN,    AX_HOOK),
ROW(RELEASING,  RESTORE,        ALWAYS,          RELEASING,  AX_SEND_RELEASE),
REFUSED(RELEASING, REPLAY),
RENEWED(RELEASING),
JUDGED_BY_USER(RELEASING),
RECONNECTED(RELEASING),

ROW(POSTRUN,    AUTHORIZED,     ALWAYS,          POSTRUN,    AX_SEND_AUTHORIZED),
ROW(POSTRUN,    TASK_CHANGED,   ALWAYS,          POSTRUN,    AX_TELL_STATUS),
NOTED(POSTRUN,  MEMBER_LOST),
NOTED(POSTRUN,  STATUS_ACKED),
AGREED(POSTRUN, STOP),
REFUSED(POSTRUN, RESTART),
AGREED(POSTRUN, DESTROY),
ROW(POSTRUN,    HOOK_DONE,      HOOKS_LEFT,      POSTRUN,    AX_HOOK),
END(POSTRUN,    HOOK_DONE),
ROW(POSTRUN,    HOOK_FAILED,    ALWAYS,          POSTRUN,    AX_BACKOFF),
ROW(POSTRUN,    TIMEOUT,        ALWAYS,          POSTRUN,    AX_HOOK),
ROW(POSTRUN,    RESTORE,        PAUSING,         POSTRUN),
ROW(POSTRUN,    RESTORE,        ALWAYS,          POSTRUN,    AX_HOOK),
REFUSED(POSTRUN, REPLAY),
RENEWED(POSTRUN),
JUDGED_BY_USER(POSTRUN),
RECONNECTED(POSTRUN),

ROW(TERMINAL,   TASK_CHANGED,   ALWAYS,          TERMINAL,   AX_TELL_STATUS),
NOTED(TERMINAL, MEMBER_LOST),
NOTED(TERMINAL, STATUS_ACKED),
AGREED(TERMINAL, STOP),
REFUSED(TERMINAL, RESTART),
ROW(TERMINAL,   DESTROY,        ALWAYS,          DESTROYING, AX_HOOK, AX_REPLY_OK, AX_TELL_STATUS),
ROW(TERMINAL,   RESTORE,        ALWAYS,          POSTRUN,    AX_HOOK),
REFUSED(TERMINAL, REPLAY),
RENEWED(TERMINAL),
JUDGED_BY_USER(TERMINAL),
RECONNECTED(TERMINAL),

ROW(DESTROYING, TASK_CHANGED,   ALWAYS,          DESTROYING, AX_TELL_STATUS),
NOTED(DESTROYING, MEMBER_LOST),
NOTED(DESTROYING, STATUS_ACKED),
AGREED(DESTROYING, STOP),
REFUSED(DESTROYING, RESTART),
AGREED(DESTROYING, DESTROY),
ROW(DESTROYING, HOOK_DONE,      HOOKS_LEFT,      DESTROYING, AX_HOOK),
ROW(DESTROYING, HOOK_DONE,      ALWAYS,          GONE,       AX_SEND_REMOVE),
ROW(DESTROYING, HOOK_FAILED,    ALWAYS,          DESTROYING, AX_BACKOFF),
ROW(DESTROYING, TIMEOUT,        ALWAYS,          DESTROYING, AX_HOOK),
ROW(DESTROYING, RESTORE,        PAUSING,         DESTROYING),
ROW(DESTROYING, RESTORE,        ALWAYS,          DESTROYING, AX_HOOK),
REFUSED(DESTROYING, REPLAY),
RENEWED(DESTROYING),
JUDGED_BY_USER(DESTROYING),

ROW(REPLAYING,  AUTHORIZED,     ALWAYS,          REPLAYING,  AX_SEND_AUTHORIZED),
BEGIN_END(REPLAYING, TASK_CHANGED, ALL_DEAD, AX_SEND_VERDICT),
FAIL(REPLAYING),
ROW(REPLAYING,  TASK_CHANGED,   REWOUND,         RUNNING,    AX_SEND_AUTHORIZED, AX_SEND_START, AX_TELL_STATUS),
ROW(REPLAYING,  TASK_CHANGED,   ALWAYS,          REPLAYING,  AX_SEND_REWIND, AX_TELL_STATUS),
LOSE(REPLAYING),
MOUNTED(REPLAYING),
ROW(REPLAYING,  VOLUME_FAILED,  ANY_RUNNING,     REPLAYING),
ROW(REPLAYING,  VOLUME_FAILED,  ALWAYS,          KILLING,    AX_SEND_KILL, AX_TELL_STATUS),
NOTED(REPLAYING, VOLUME_GONE),
NOTED(REPLAYING, STATUS_ACKED),
BEGIN_KILL(REPLAYING, STOP, AX_REPLY_OK),
AGREED(REPLAYING, RESTART),
BEGIN_KILL(REPLAYING, DESTROY, AX_REPLY_OK),
JUDGED(REPLAYING),
BEGIN_KILL(REPLAYING, TIMEOUT),
ROW(REPLAYING,  RESTORE,        ALWAYS,          REPLAYING,  AX_SEND_REWIND),
AGREED(REPLAYING, REPLAY),
RENEWED(REPLAYING, AX_SEND_VERDICT),
NOTED(REPLAYING, CONTACT),
JUDGED_BY_USER(REPLAYING),
NOTED(REPLAYING, CHECKED),
RECONNECTED(REPLAYING),
};

/* clang-format on */

static const struct fsm_event_def alloc_events[AE_COUNT] = {
#define X(name, class, payload) [AE_##name] = {#name, FSM_##class, PAYLOAD_##payload},
    ALLOC_EVENTS(X)
#undef X
};

static const struct fsm_effect_def alloc_effects[AX_COUNT] = {
    [AX_NONE] = {"NONE", LANE_TELL, 0, 0},
#define X(name, lane, completions, timeout_ms)                                                     \
    [AX_##name] = {#name, LANE_##lane, completions, timeout_ms},
    ALLOC_EFFECTS(X)
#undef X
};

static const struct fsm_guard_def alloc_guards[AG_COUNT] = {
    [AG_ALWAYS] = {"ALWAYS", NULL},
#define X(name, function) [AG_##name] = {#name, function},
    ALLOC_GUARDS(X)
#undef X
};

const struct fsm_def alloc_def = {
    .name = "alloc",
    .kind = MACHINE_ALLOC,
    .states = alloc_states,
    .states_count = A_COUNT,
    .rows = alloc_rows,
    .rows_count = COUNT_OF(alloc_rows),
    .events = alloc_events,
    .events_count = AE_COUNT,
    .effects = alloc_effects,
    .effects_count = AX_COUNT,
    .guards = alloc_guards,
    .guards_count = AG_COUNT,
    .after_sweep = (uint64_t)1 << AX_HOOK | /* directories are deleted under nobody */
                   (uint64_t)1 << AX_CHECK_NETWORK, /* nor are networks mended under strangers */
    .paced = (uint64_t)1 << AG_HOOKS_LEFT,
    .timeout_event = AE_TIMEOUT,
    .restore_event = AE_RESTORE,
    .record_bytes = sizeof(struct alloc),
    .absorb = alloc_absorb,
    .enter = alloc_enter,
    .deadline = alloc_deadline,
    .backoff_ms = alloc_backoff_ms,
    .send = alloc_send,
    .record_size = alloc_record_size,
    .broken = alloc_broken,
    .mistimed = alloc_mistimed,
};
