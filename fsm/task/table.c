/*
 * The task machine's table.  Only rows here; what events mean is in rules.c, what guards
 * ask in guards.c.
 *
 * Two ways lead to an end.  An order (KILL) goes through PREKILL, DELAYING, STOPPING; the payload's
 * own end starts at REAPING.  Both meet in REAPING, which makes sure that nothing of the attempt is
 * alive, and in the decision behind it: start again, or CLEANUP and DEAD.
 *
 * Right before each start the volumes of its alloc are looked at, and mounted again where they are
 * not any more; an alloc without volumes passes no state for it.  So they are when a task is held:
 * it may be for one of them that will never come.
 */
#include "fsm/task.h"
#include "fsm/task/rules.h"

#define M(event) ((uint64_t)1 << TE_##event)
#define ALL (((uint64_t)1 << TE_COUNT) - 1)
#define STATE(name, flags, limit_ms, ignored, never)                                               \
    [T_##name] = {#name, limit_ms, ignored, never, flags}
#define ROW(state, event, guard, next, ...)                                                        \
    {T_##state, TE_##event, TG_##guard, T_##next, {__VA_ARGS__}}

_Static_assert((int)TE_COUNT <= (int)FSM_EVENTS_MAX, "events fit a mask");

/* clang-format off */

/* Which completions can still be on their way, by lane. */
#define HOOKS (M(HOOK_DONE) | M(HOOK_FAILED))
#define START (M(STARTED) | M(START_FAILED))
#define FIND  (M(RECOVERED) | M(LOST)) /* or START_FAILED */
#define STOP  (M(STOP_ACCEPTED) | M(STOP_FAILED))
#define REAP  (M(REAPED) | M(REAP_FAILED))

/* Of templates of one that runs, to who does not run any more or is being looked for. */
#define CHANGES (M(CHANGED) | M(NOTIFIED) | M(SCRIPTED))

/* Its plugin says of one that runs how it is, and repeats what has to be heard. */
#define PLUGIN (M(NOTE) | M(UNWELL))
#define SAID   (PLUGIN | M(TOLD)) /* to who is on the way to another state, or was not meant */

/* To who has looked, and does not wait to start any more. */
#define LOOKS  (M(MOUNTED) | M(UNMOUNTED))

/* The next step of an end that was ordered. */
#define BEGIN_KILL(s, e, ...)                                                                      \
    ROW(s, e, HAS_PREKILL,  PREKILL,  TX_HOOK, ##__VA_ARGS__),                                     \
    ROW(s, e, HAS_DELAY,    DELAYING, ##__VA_ARGS__),                                              \
    ROW(s, e, ALWAYS,       STOPPING, TX_DRIVER_STOP, ##__VA_ARGS__)

/* A pass over the stop hooks is over.  Those that failed are owed: the task is dead to its alloc,
 * which goes on, and they are tried again until they succeed, or the alloc's directory is gone with
 * all that was mounted in it. */
#define SETTLE(s, e)                                                                               \
    ROW(s, e, REMOVE_WANTED, GONE),                                                                \
    ROW(s, e, REWINDS,      WAITING,  TX_SEND_CHANGED),                                            \
    ROW(s, e, OWES,         OWING,    TX_SEND_CHANGED),                                            \
    ROW(s, e, ALWAYS,       DEAD,     TX_SEND_CHANGED)

/* An attempt is over and nothing of it is left: again, later, or never.  What asks for an attempt
 * at once is done with when the next one is set up. */
#define DECIDE_SETUP(s, e)                                                                         \
    ROW(s, e, RESTART_LATER,BACKOFF,  TX_SEND_CHANGED),                                            \
    ROW(s, e, ALWAYS,       CLEANUP,  TX_HOOK, TX_SEND_CHANGED)
#define DECIDE(s, e)                                                                               \
    ROW(s, e, REWINDS,      WAITING,  TX_SEND_CHANGED),                                            \
    ROW(s, e, RESTART_HELD, HELD,     TX_SEND_CHANGED, TX_SEND_LOOK),                              \
    ROW(s, e, RESTART_NOW,  PRESTART, TX_HOOK, TX_SEND_CHANGED),                                   \
    DECIDE_SETUP(s, e)

/* Its turn will come again, and nothing of the attempt is left but what the next one sets up. */
#define REWIND(s)                                                                                  \
    ROW(s, REWIND, REWINDS, WAITING, TX_SEND_CHANGED),                                             \
    ROW(s, REWIND, ALWAYS,  s)

/* The same of one that is dead, as its alloc knows: what ended by itself and was not told yet when
 * its alloc spoke is told again. */
#define REVIVE(s)                                                                                  \
    ROW(s, REVIVE, REWINDS, WAITING, TX_SEND_CHANGED),                                             \
    ROW(s, REVIVE, ALWAYS,  s)

#define REFUSED(s, e)   ROW(s, e, ALWAYS, s, TX_REPLY_NOT_RUNNING)
#define NOTED(s, e)     ROW(s, e, ALWAYS, s)

static const struct fsm_state task_states[T_COUNT] = {
/*    state       flags         limit_ms         ignored: late or repeated         never: our own mistake */
STATE(ABSENT,     FSM_INITIAL,  0,               0,                                ALL & ~M(DEFINE)),
STATE(WAITING,    FSM_RESTING,  0,               M(DEFINE)|LOOKS|CHANGES|PLUGIN|M(REPORT)|M(REVIVE)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, M(TIMEOUT)|M(REMOVE)),
STATE(PRESTART,   0,            0,               M(DEFINE)|LOOKS|CHANGES|M(UNWELL)|M(REPORT)|M(REVIVE)|M(START)|M(EXITED)|START|STOP|FIND|REAP, M(TIMEOUT)|M(REMOVE)),
STATE(STARTING,   0,            0,               M(DEFINE)|LOOKS|CHANGES|M(UNWELL)|M(REPORT)|M(REVIVE)|M(START)|HOOKS,         FIND|STOP|REAP|M(TIMEOUT)|M(REMOVE)),
STATE(RUNNING,    FSM_RESTING,  0,               M(DEFINE)|LOOKS|M(REVIVE)|M(START)|START|FIND,    STOP|REAP|M(TIMEOUT)|M(REMOVE)),
STATE(RECOVERING, 0,            0,               M(DEFINE)|LOOKS|CHANGES|M(UNWELL)|M(TOLD)|M(REVIVE)|M(START),               HOOKS|M(STARTED)|STOP|REAP|M(REMOVE)),
STATE(HELD,       FSM_RESTING,  0,               M(DEFINE)|M(MOUNTED)|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, M(TIMEOUT)|M(REMOVE)),
STATE(PREKILL,    0,            0,               M(DEFINE)|LOOKS|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|START|FIND,    STOP|REAP|M(TIMEOUT)|M(REMOVE)),
STATE(DELAYING,   0,            FSM_LIMIT_RULES, M(DEFINE)|LOOKS|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|HOOKS|START|FIND, STOP|REAP|M(REMOVE)),
STATE(STOPPING,   0,            FSM_LIMIT_RULES, M(DEFINE)|LOOKS|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|HOOKS|START|FIND|M(STOP_ACCEPTED), REAP|M(REMOVE)),
STATE(REAPING,    0,            0,               M(DEFINE)|LOOKS|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|HOOKS|START|STOP|FIND, M(REMOVE)),
STATE(EXITED,     0,            0,               M(DEFINE)|LOOKS|CHANGES|SAID|M(REPORT)|M(REVIVE)|M(START)|M(EXITED)|START|STOP|FIND|REAP, M(TIMEOUT)|M(REMOVE)),
STATE(BACKOFF,    0,            FSM_LIMIT_RULES, M(DEFINE)|LOOKS|CHANGES|PLUGIN|M(REPORT)|M(REVIVE)|M(START)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, M(REMOVE)),
STATE(CLEANUP,    0,            0,               M(DEFINE)|LOOKS|CHANGES|PLUGIN|M(REPORT)|M(START)|M(AUTHORIZED)|M(EXITED)|START|STOP|FIND|REAP, M(TIMEOUT)),
STATE(DEAD,       FSM_RESTING,  0,               M(DEFINE)|LOOKS|CHANGES|PLUGIN|M(REPORT)|M(REWIND)|M(START)|M(KILL)|M(AUTHORIZED)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, M(TIMEOUT)),
STATE(OWING,      0,            FSM_LIMIT_RULES, M(DEFINE)|LOOKS|CHANGES|PLUGIN|M(REPORT)|M(REWIND)|M(START)|M(KILL)|M(AUTHORIZED)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, 0),
STATE(GONE,       FSM_FINAL,    0,               0,                                ALL),
STATE(LOOKING,    FSM_RESTING,  0,               M(DEFINE)|CHANGES|PLUGIN|M(REPORT)|M(REVIVE)|M(START)|M(EXITED)|HOOKS|START|STOP|FIND|REAP, M(TIMEOUT)|M(REMOVE)),
};

static const struct fsm_row task_rows[] = {
/*  state       event          guard          next        effects, in order, after the commit */
ROW(ABSENT,     DEFINE,        ALWAYS,        WAITING),

ROW(WAITING,    START,         MAY_START,     PRESTART,   TX_HOOK),
ROW(WAITING,    START,         ALWAYS,        HELD,       TX_SEND_LOOK),
ROW(WAITING,    KILL,          ALWAYS,        CLEANUP,    TX_HOOK),
NOTED(WAITING,  AUTHORIZED),
REFUSED(WAITING, RESTART),
REFUSED(WAITING, SIGNAL),
ROW(WAITING,    RESTORE,       ALWAYS,        WAITING),
REWIND(WAITING),
NOTED(WAITING,  UPDATE),
ROW(WAITING,    TOLD,          ALWAYS,        WAITING,    TX_SEND_CHANGED),

ROW(PRESTART,   KILL,          ALWAYS,        CLEANUP,    TX_HOOK_ABORT, TX_HOOK),
NOTED(PRESTART, AUTHORIZED),
REFUSED(PRESTART, RESTART),
REFUSED(PRESTART, SIGNAL),
ROW(PRESTART,   HOOK_DONE,     HOOKS_LEFT,    PRESTART,   TX_HOOK),
ROW(PRESTART,   HOOK_DONE,     HAS_MOUNTS,    LOOKING,    TX_SEND_LOOK),
ROW(PRESTART,   HOOK_DONE,     ALWAYS,        STARTING,   TX_DRIVER_START),
DECIDE_SETUP(PRESTART, HOOK_FAILED),
ROW(PRESTART,   RESTORE,       MAY_START,     PRESTART,   TX_HOOK),
ROW(PRESTART,   RESTORE,       ALWAYS,        HELD,       TX_SEND_LOOK),
REWIND(PRESTART),
NOTED(PRESTART, UPDATE),
ROW(PRESTART,   NOTE,          ALWAYS,        PRESTART,   TX_SEND_CHANGED),
ROW(PRESTART,   TOLD,          ALWAYS,        PRESTART,   TX_SEND_CHANGED),

NOTED(STARTING, KILL),
NOTED(STARTING, AUTHORIZED),
REFUSED(STARTING, RESTART),
REFUSED(STARTING, SIGNAL),
ROW(STARTING,   STARTED,       KILL_PREKILL,  PREKILL,    TX_HOOK, TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       KILL_DELAY,    DELAYING,   TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       KILL_WANTED,   STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       REWIND_PREKILL, PREKILL,   TX_HOOK, TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       REWINDS,       STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       HAS_POSTSTART, RUNNING,    TX_HOOK, TX_SEND_CHANGED),
ROW(STARTING,   STARTED,       ALWAYS,        RUNNING,    TX_SEND_CHANGED),
ROW(STARTING,   START_FAILED,  ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(STARTING,   EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(STARTING,   RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
NOTED(STARTING, REWIND),
NOTED(STARTING, UPDATE),
ROW(STARTING,   NOTE,          ALWAYS,        STARTING,   TX_SEND_CHANGED),
ROW(STARTING,   TOLD,          ALWAYS,        STARTING,   TX_SEND_CHANGED),

BEGIN_KILL(RUNNING, KILL, TX_SEND_CHANGED),
NOTED(RUNNING,  AUTHORIZED),
ROW(RUNNING,    RESTART,       HAS_PREKILL,   PREKILL,    TX_HOOK, TX_REPLY_OK, TX_SEND_CHANGED),
ROW(RUNNING,    RESTART,       ALWAYS,        STOPPING,   TX_DRIVER_STOP, TX_REPLY_OK, TX_SEND_CHANGED),
ROW(RUNNING,    SIGNAL,        ALWAYS,        RUNNING,    TX_DRIVER_SIGNAL, TX_SEND_CHANGED),
ROW(RUNNING,    HOOK_DONE,     HOOKS_LEFT,    RUNNING,    TX_HOOK),
NOTED(RUNNING,  HOOK_DONE),
ROW(RUNNING,    HOOK_FAILED,   HOOKS_LEFT,    RUNNING,    TX_HOOK),
NOTED(RUNNING,  HOOK_FAILED),
ROW(RUNNING,    EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(RUNNING,    RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
ROW(RUNNING,    REWIND,        REWIND_PREKILL, PREKILL,   TX_HOOK, TX_SEND_CHANGED),
ROW(RUNNING,    REWIND,        REWINDS,       STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
NOTED(RUNNING,  REWIND),
NOTED(RUNNING,  UPDATE),
ROW(RUNNING,    REPORT,        ALWAYS,        RUNNING,    TX_SEND_CHANGED),
ROW(RUNNING,    NOTE,          ALWAYS,        RUNNING,    TX_SEND_CHANGED),
ROW(RUNNING,    UNWELL,        HAS_PREKILL,   PREKILL,    TX_HOOK, TX_SEND_CHANGED),
ROW(RUNNING,    UNWELL,        ALWAYS,        STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RUNNING,    TOLD,          ALWAYS,        RUNNING,    TX_SEND_CHANGED),
ROW(RUNNING,    CHANGED,       CHANGE_PREKILL, PREKILL,   TX_HOOK, TX_SEND_CHANGED),
ROW(RUNNING,    CHANGED,       CHANGE_RESTARTS, STOPPING, TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RUNNING,    CHANGED,       OWES_BOTH,     RUNNING,    TX_DRIVER_NOTIFY, TX_SCRIPT, TX_SEND_CHANGED),
ROW(RUNNING,    CHANGED,       OWES_SIGNAL,   RUNNING,    TX_DRIVER_NOTIFY, TX_SEND_CHANGED),
ROW(RUNNING,    CHANGED,       OWES_SCRIPT,   RUNNING,    TX_SCRIPT),
NOTED(RUNNING,  CHANGED),
NOTED(RUNNING,  NOTIFIED),
ROW(RUNNING,    SCRIPTED,      KILL_PREKILL,  PREKILL,    TX_HOOK, TX_SEND_CHANGED),
ROW(RUNNING,    SCRIPTED,      KILL_DELAY,    DELAYING,   TX_SEND_CHANGED),
ROW(RUNNING,    SCRIPTED,      KILL_WANTED,   STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RUNNING,    SCRIPTED,      OWES_SCRIPT,   RUNNING,    TX_SCRIPT, TX_SEND_CHANGED),
ROW(RUNNING,    SCRIPTED,      ALWAYS,        RUNNING,    TX_SEND_CHANGED),

NOTED(RECOVERING, KILL),
NOTED(RECOVERING, AUTHORIZED),
REFUSED(RECOVERING, RESTART),
REFUSED(RECOVERING, SIGNAL),
ROW(RECOVERING, START_FAILED,  ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     RESUME_STOP,   STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     RESUME_DELAY,  DELAYING,   TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     RESUME_PREKILL,PREKILL,    TX_HOOK, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     KILL_PREKILL,  PREKILL,    TX_HOOK, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     KILL_DELAY,    DELAYING,   TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     KILL_WANTED,   STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     REWIND_PREKILL, PREKILL,   TX_HOOK, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     REWINDS,       STOPPING,   TX_DRIVER_STOP, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     OWES_BOTH,     RUNNING,    TX_HOOK, TX_DRIVER_NOTIFY, TX_SCRIPT, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     OWES_SCRIPT,   RUNNING,    TX_HOOK, TX_SCRIPT, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     OWES_SIGNAL,   RUNNING,    TX_HOOK, TX_DRIVER_NOTIFY, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     HAS_POSTSTART, RUNNING,    TX_HOOK, TX_SEND_CHANGED),
ROW(RECOVERING, RECOVERED,     ALWAYS,        RUNNING,    TX_SEND_CHANGED),
ROW(RECOVERING, LOST,          LOOK_AGAIN,    RECOVERING, TX_BACKOFF),
ROW(RECOVERING, LOST,          NEVER_BEGUN_KILL, CLEANUP, TX_HOOK, TX_SEND_CHANGED),
ROW(RECOVERING, LOST,          NEVER_BEGUN_REWIND, WAITING, TX_SEND_CHANGED),
ROW(RECOVERING, LOST,          NEVER_BEGUN_ANEW, PRESTART, TX_HOOK),
ROW(RECOVERING, LOST,          NEVER_BEGUN_MAY, STARTING, TX_DRIVER_START),
ROW(RECOVERING, LOST,          NEVER_BEGUN,   HELD,       TX_SEND_CHANGED, TX_SEND_LOOK),
ROW(RECOVERING, LOST,          ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(RECOVERING, EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(RECOVERING, TIMEOUT,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
ROW(RECOVERING, RESTORE,       PAUSING,       RECOVERING),
ROW(RECOVERING, RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
NOTED(RECOVERING, REWIND),
NOTED(RECOVERING, UPDATE),
NOTED(RECOVERING, REPORT),
NOTED(RECOVERING, NOTE),

ROW(HELD,       KILL,          ALWAYS,        CLEANUP,    TX_HOOK, TX_SEND_CHANGED),
ROW(HELD,       AUTHORIZED,    ALWAYS,        PRESTART,   TX_HOOK, TX_SEND_CHANGED),
REFUSED(HELD,   RESTART),
REFUSED(HELD,   SIGNAL),
ROW(HELD,       RESTORE,       MAY_START,     PRESTART,   TX_HOOK),
ROW(HELD,       RESTORE,       ALWAYS,        HELD,       TX_SEND_LOOK),
REWIND(HELD),
NOTED(HELD,     UPDATE),
DECIDE_SETUP(HELD, UNMOUNTED),

NOTED(PREKILL,  KILL),
NOTED(PREKILL,  AUTHORIZED),
REFUSED(PREKILL, RESTART),
ROW(PREKILL,    SIGNAL,        ALWAYS,        PREKILL,    TX_DRIVER_SIGNAL, TX_SEND_CHANGED),
ROW(PREKILL,    HOOK_DONE,     HOOKS_LEFT,    PREKILL,    TX_HOOK),
ROW(PREKILL,    HOOK_DONE,     KILL_DELAY,    DELAYING,   TX_SEND_CHANGED),
ROW(PREKILL,    HOOK_DONE,     ALWAYS,        STOPPING,   TX_DRIVER_STOP),
ROW(PREKILL,    HOOK_FAILED,   HOOKS_LEFT,    PREKILL,    TX_HOOK),
ROW(PREKILL,    HOOK_FAILED,   KILL_DELAY,    DELAYING,   TX_SEND_CHANGED),
ROW(PREKILL,    HOOK_FAILED,   ALWAYS,        STOPPING,   TX_DRIVER_STOP),
ROW(PREKILL,    EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(PREKILL,    RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
NOTED(PREKILL,  REWIND),
NOTED(PREKILL,  UPDATE),

ROW(DELAYING,   KILL,          AT_ONCE,       STOPPING,   TX_DRIVER_STOP),
NOTED(DELAYING, KILL),
NOTED(DELAYING, AUTHORIZED),
REFUSED(DELAYING, RESTART),
ROW(DELAYING,   SIGNAL,        ALWAYS,        DELAYING,   TX_DRIVER_SIGNAL, TX_SEND_CHANGED),
ROW(DELAYING,   EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(DELAYING,   TIMEOUT,       ALWAYS,        STOPPING,   TX_DRIVER_STOP),
ROW(DELAYING,   RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
NOTED(DELAYING, REWIND),
NOTED(DELAYING, UPDATE),

NOTED(STOPPING, KILL),
NOTED(STOPPING, AUTHORIZED),
REFUSED(STOPPING, RESTART),
ROW(STOPPING,   SIGNAL,        ALWAYS,        STOPPING,   TX_DRIVER_SIGNAL, TX_SEND_CHANGED),
ROW(STOPPING,   STOP_FAILED,   ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(STOPPING,   EXITED,        ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(STOPPING,   TIMEOUT,       ALWAYS,        REAPING,    TX_DRIVER_DESTROY, TX_SEND_CHANGED),
ROW(STOPPING,   RESTORE,       ALWAYS,        RECOVERING, TX_DRIVER_RECOVER),
NOTED(STOPPING, REWIND),
NOTED(STOPPING, UPDATE),

NOTED(REAPING,  KILL),
NOTED(REAPING,  AUTHORIZED),
REFUSED(REAPING, RESTART),
REFUSED(REAPING, SIGNAL),
ROW(REAPING,    REAPED,        HAS_EXITED,    EXITED,     TX_HOOK),
DECIDE(REAPING, REAPED),
ROW(REAPING,    REAP_FAILED,   ALWAYS,        REAPING,    TX_BACKOFF, TX_SEND_CHANGED),
NOTED(REAPING,  EXITED),
ROW(REAPING,    TIMEOUT,       ALWAYS,        REAPING,    TX_DRIVER_DESTROY),
ROW(REAPING,    RESTORE,       EXIT_UNSEEN,   RECOVERING, TX_DRIVER_RECOVER),
ROW(REAPING,    RESTORE,       PAUSING,       REAPING),
ROW(REAPING,    RESTORE,       ALWAYS,        REAPING,    TX_DRIVER_DESTROY),
NOTED(REAPING,  REWIND),
NOTED(REAPING,  UPDATE),

NOTED(EXITED,   KILL),
NOTED(EXITED,   AUTHORIZED),
REFUSED(EXITED, RESTART),
REFUSED(EXITED, SIGNAL),
ROW(EXITED,     HOOK_DONE,     HOOKS_LEFT,    EXITED,     TX_HOOK),
DECIDE(EXITED,  HOOK_DONE),
ROW(EXITED,     HOOK_FAILED,   HOOKS_LEFT,    EXITED,     TX_HOOK),
DECIDE(EXITED,  HOOK_FAILED),
ROW(EXITED,     RESTORE,       ALWAYS,        EXITED,     TX_HOOK),
NOTED(EXITED,   REWIND),
NOTED(EXITED,   UPDATE),

ROW(BACKOFF,    KILL,          ALWAYS,        CLEANUP,    TX_HOOK, TX_SEND_CHANGED),
NOTED(BACKOFF,  AUTHORIZED),
REFUSED(BACKOFF, RESTART),
REFUSED(BACKOFF, SIGNAL),
ROW(BACKOFF,    TIMEOUT,       MAY_START,     PRESTART,   TX_HOOK),
ROW(BACKOFF,    TIMEOUT,       ALWAYS,        HELD,       TX_SEND_LOOK),
ROW(BACKOFF,    RESTORE,       ALWAYS,        BACKOFF),
REWIND(BACKOFF),
NOTED(BACKOFF,  UPDATE),
ROW(BACKOFF,    TOLD,          ALWAYS,        BACKOFF,    TX_SEND_CHANGED),

NOTED(CLEANUP,  KILL),
NOTED(CLEANUP,  REMOVE),
REFUSED(CLEANUP, RESTART),
REFUSED(CLEANUP, SIGNAL),
ROW(CLEANUP,    HOOK_DONE,     HOOKS_LEFT,    CLEANUP,    TX_HOOK),
SETTLE(CLEANUP, HOOK_DONE),
ROW(CLEANUP,    HOOK_FAILED,   HOOKS_LEFT,    CLEANUP,    TX_HOOK),
ROW(CLEANUP,    HOOK_FAILED,   REMOVE_WANTED, GONE),
ROW(CLEANUP,    HOOK_FAILED,   REWINDS,       WAITING,    TX_SEND_CHANGED),
ROW(CLEANUP,    HOOK_FAILED,   ALWAYS,        OWING,      TX_SEND_CHANGED),
ROW(CLEANUP,    RESTORE,       ALWAYS,        CLEANUP,    TX_HOOK),
NOTED(CLEANUP,  REWIND),
REVIVE(CLEANUP),
NOTED(CLEANUP,  UPDATE),
ROW(CLEANUP,    TOLD,          ALWAYS,        CLEANUP,    TX_SEND_CHANGED),

ROW(DEAD,       REMOVE,        ALWAYS,        GONE),
REFUSED(DEAD,   RESTART),
REFUSED(DEAD,   SIGNAL),
ROW(DEAD,       RESTORE,       ALWAYS,        CLEANUP,    TX_HOOK),
REVIVE(DEAD),
NOTED(DEAD,     UPDATE),
ROW(DEAD,       TOLD,          ALWAYS,        DEAD,       TX_SEND_CHANGED),

ROW(OWING,      REMOVE,        ALWAYS,        GONE),
REFUSED(OWING,  RESTART),
REFUSED(OWING,  SIGNAL),
ROW(OWING,      TIMEOUT,       ALWAYS,        CLEANUP,    TX_HOOK),
ROW(OWING,      RESTORE,       ALWAYS,        OWING),
REVIVE(OWING),
NOTED(OWING,    UPDATE),
ROW(OWING,      TOLD,          ALWAYS,        OWING,      TX_SEND_CHANGED),

ROW(LOOKING,    KILL,          ALWAYS,        CLEANUP,    TX_HOOK),
NOTED(LOOKING,  AUTHORIZED),
REFUSED(LOOKING, RESTART),
REFUSED(LOOKING, SIGNAL),
ROW(LOOKING,    RESTORE,       ALWAYS,        HELD,       TX_SEND_LOOK), /* all are looked at, and its hooks run again */
REWIND(LOOKING),
NOTED(LOOKING,  UPDATE),
ROW(LOOKING,    TOLD,          ALWAYS,        LOOKING,    TX_SEND_CHANGED),
ROW(LOOKING,    MOUNTED,       ALWAYS,        STARTING,   TX_DRIVER_START),
DECIDE_SETUP(LOOKING, UNMOUNTED),
};

/* clang-format on */

static const struct fsm_event_def task_events[TE_COUNT] = {
#define X(name, class, payload) [TE_##name] = {#name, FSM_##class, PAYLOAD_##payload},
    TASK_EVENTS(X)
#undef X
};

static const struct fsm_effect_def task_effects[TX_COUNT] = {
    [TX_NONE] = {"NONE", LANE_TELL, 0, 0},
#define X(name, lane, completions, timeout_ms)                                                     \
    [TX_##name] = {#name, LANE_##lane, completions, timeout_ms},
    TASK_EFFECTS(X)
#undef X
};

static const struct fsm_guard_def task_guards[TG_COUNT] = {
    [TG_ALWAYS] = {"ALWAYS", NULL},
#define X(name, function) [TG_##name] = {#name, function},
    TASK_GUARDS(X)
#undef X
};

const struct fsm_def task_def = {
    .name = "task",
    .kind = MACHINE_TASK,
    .states = task_states,
    .states_count = T_COUNT,
    .rows = task_rows,
    .rows_count = COUNT_OF(task_rows),
    .events = task_events,
    .events_count = TE_COUNT,
    .effects = task_effects,
    .effects_count = TX_COUNT,
    .guards = task_guards,
    .guards_count = TG_COUNT,
    .after_sweep = (uint64_t)1 << TX_DRIVER_START, /* an attempt that this journal does not know */
    .paced = (uint64_t)1 << TG_HOOKS_LEFT | (uint64_t)1 << TG_RESTART_NOW |
             (uint64_t)1 << TG_RESTART_HELD | (uint64_t)1 << TG_REWINDS |
             (uint64_t)1 << TG_REWIND_PREKILL | (uint64_t)1 << TG_OWES_SCRIPT |
             (uint64_t)1 << TG_NEVER_BEGUN_REWIND, /* each reason is good for one decision */
    .timeout_event = TE_TIMEOUT,
    .restore_event = TE_RESTORE,
    .record_bytes = sizeof(struct task),
    .absorb = task_absorb,
    .enter = task_enter,
    .deadline = task_deadline,
    .backoff_ms = task_backoff_ms,
    .send = task_send,
    .record_size = task_record_size,
    .broken = task_broken,
    .mistimed = task_mistimed,
};
