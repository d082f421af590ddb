/*
 * The task machine: one task of an alloc, from its definition to its removal.
 *
 * It owns the payload: at most one is alive at any time (I-2).  A start is an attempt with a
 * generation of its own; the next one begins only after the previous one's cgroup has been seen
 * empty (REAPING).  Behaviour follows Nomad 1.1.2 client/allocrunner/taskrunner, with the fixes of
 * later releases and of restore-failures.md.
 */
#ifndef CAIRN_FSM_TASK_H
#define CAIRN_FSM_TASK_H

/* Lists are aligned by hand. */
/* clang-format off */

#include "fsm/fields.h"
#include "fsm/fsm.h"
#include "fsm/results.h"

/*    state        what it waits for                                              */
#define TASK_STATES(X)                                                                             \
    X(ABSENT)     /* nothing exists */                                                             \
    X(WAITING)    /* its turn in the group's lifecycle */                                          \
    X(PRESTART)   /* hooks before the start, one at a time */                                      \
    X(STARTING)   /* the driver; the intent is durable, the payload may or may not exist */        \
    X(RUNNING)    /* the payload's end */                                                          \
    X(RECOVERING) /* after a restart: the driver's look at what is there */                        \
    X(HELD)       /* after a restart: a fresh desired state, before anything new is started */     \
    X(PREKILL)    /* hooks before the kill signal */                                               \
    X(DELAYING)   /* shutdown_delay */                                                             \
    X(STOPPING)   /* the payload's end, signal sent, kill timeout running */                       \
    X(REAPING)    /* the driver: cgroup killed and seen empty, shim gone */                        \
    X(EXITED)     /* hooks after the payload's end */                                              \
    X(BACKOFF)    /* the restart delay */                                                          \
    X(CLEANUP)    /* stop hooks, after which nothing of the task is left */                        \
    X(DEAD)       /* its alloc's removal */                                                        \
    X(OWING)      /* the pause before stop hooks that failed are tried again; else it is dead */   \
    X(GONE)       /* nothing: the record is deleted */                                             \
    X(LOOKING)    /* the look at its alloc's mounts, right before each start */
enum task_state {
#define X(name) T_##name,
    TASK_STATES(X)
#undef X
        T_COUNT,
};

/*    event             class       payload  */
#define TASK_EVENTS(X)                                                                             \
    X(DEFINE, MESSAGE, TASK_DEFINE)        /* the control plane: this task shall be */             \
    X(START, MESSAGE, NONE)                /* its alloc: the lifecycle has reached you */          \
    X(KILL, MESSAGE, KILL)                 /* its alloc: end */                                    \
    X(AUTHORIZED, MESSAGE, NONE)           /* its alloc: a fresh desired state still wants you */  \
    X(REMOVE, MESSAGE, NONE)               /* its alloc: be forgotten */                           \
    X(RESTART, REQUEST, REQUEST)           /* a user, a check, a template */                       \
    X(SIGNAL, REQUEST, REQUEST)                                                                    \
    X(HOOK_DONE, COMPLETION, HOOK)                                                                 \
    X(HOOK_FAILED, COMPLETION, HOOK)                                                               \
    X(STARTED, COMPLETION, STARTED)                                                                \
    X(START_FAILED, COMPLETION, FAILURE)   /* now, or as a look finds it recorded */               \
    X(RECOVERED, COMPLETION, STARTED)                                                              \
    X(LOST, COMPLETION, FAILURE)           /* neither payload nor exit record */                   \
    X(STOP_ACCEPTED, COMPLETION, NONE)                                                             \
    X(STOP_FAILED, COMPLETION, FAILURE)                                                            \
    X(REAPED, COMPLETION, NONE)                                                                    \
    X(REAP_FAILED, COMPLETION, FAILURE)                                                            \
    X(EXITED, NEWS, EXIT)                  /* the payload has ended, once per generation */        \
    X(TIMEOUT, CLOCK, NONE)                                                                        \
    X(RESTORE, RESTORE, RESTORE)                                                                   \
    X(REWIND, MESSAGE, NONE)               /* its alloc: end, and wait for your turn again */      \
    X(REVIVE, MESSAGE, NONE)               /* its alloc: you are dead; wait for it again */        \
    X(UPDATE, MESSAGE, TASK_DEFINE)        /* the control plane: go on by this newer version */    \
    X(REPORT, MESSAGE, NONE)               /* its alloc: say whether you run, be it no news */     \
    X(NOTE, MESSAGE, KILL)                 /* its plugin, alloc, driver, hook: to be read */       \
    X(UNWELL, MESSAGE, KILL)               /* its plugin: you have failed, start again */          \
    X(TOLD, MESSAGE, KILL)                 /* its alloc: what you have to do with its verdict */   \
    X(MOUNTED, MESSAGE, NONE)              /* its alloc: all volumes were seen just now */         \
    X(UNMOUNTED, MESSAGE, FAILURE)         /* its alloc: one cannot be mounted (again) */          \
    X(CHANGED, NEWS, HOOK)                 /* its templates say something else, or its tokens are  \
                                            * others; and they are written */                      \
    X(NOTIFIED, COMPLETION, NONE)          /* its payload has been sent the signals, or is gone */ \
    X(SCRIPTED, COMPLETION, FAILURE)       /* what came of a script, and users read of it; code 0: \
                                            * well, not recoverable: the task is to fail by it */
enum task_event_kind {
#define X(name, class, payload) TE_##name,
    TASK_EVENTS(X)
#undef X
        TE_COUNT,
};

/*    effect          lane     completions                                          timeout_ms  */
#define TASK_EFFECTS(X)                                                                            \
    X(HOOK, HOOK, M(HOOK_DONE) | M(HOOK_FAILED), 300000)    /* the hook of record.phase, .hook */  \
    X(DRIVER_START, DRIVER, M(STARTED) | M(START_FAILED), 0)                                       \
    X(DRIVER_RECOVER, DRIVER, M(RECOVERED) | M(LOST) | M(START_FAILED), 0)                         \
    X(DRIVER_STOP, DRIVER, M(STOP_ACCEPTED) | M(STOP_FAILED), 0)                                   \
    X(DRIVER_DESTROY, DRIVER, M(REAPED) | M(REAP_FAILED), 0)                                       \
    X(BACKOFF, CLOCK, 0, 0)                                                                        \
    X(DRIVER_SIGNAL, TELL, 0, 0)        /* answers the request itself */                           \
    X(REPLY_OK, TELL, 0, 0)                                                                        \
    X(REPLY_NOT_RUNNING, TELL, 0, 0)                                                               \
    X(SEND_CHANGED, SEND, 0, 0)         /* to its alloc */                                         \
    X(HOOK_ABORT, TELL, 0, 0)           /* nobody waits any more for the hook under way */         \
    X(SEND_LOOK, SEND, 0, 0)            /* to its alloc */                                         \
    X(DRIVER_NOTIFY, DRIVER, M(NOTIFIED), 0) /* record.signals_owed; told once for                \
                                              * record.changes */                                  \
    X(SCRIPT, NODE, M(SCRIPTED), 0) /* record.script in the task, until it ends or its time does */
enum task_effect {
    TX_NONE,
#define X(name, lane, completions, timeout_ms) TX_##name,
    TASK_EFFECTS(X)
#undef X
        TX_COUNT,
};

/* Hooks; a phase runs those whose bit is set in its mask.  Their numbers are in journals: a new one
 * is the last.  What each does is in hooks/table.c.  Order and names follow nomad v2.0.6
 * task_runner_hooks.go initHooks. */
#define TASK_HOOKS(X)                                                                              \
    X(VALIDATE, "validate") X(TASK_DIR, "task_dir") X(LOGS, "logmon") X(VOLUMES, "volumes")        \
    X(NETWORK, "network") X(CSI_PLUGIN, "csi_plugin_supervisor") X(ARTIFACTS, "artifacts")         \
    X(TEMPLATE, "template") X(DEVICES, "devices") X(IDENTITY, "identity")                          \
    X(SI_TOKEN, "consul_si_token") X(ENVOY_VERSION, "envoy_version")                               \
    X(ENVOY_BOOTSTRAP, "envoy_bootstrap") X(CONNECT_NATIVE, "connect_native")                      \
    X(CONSUL, "consul_task")
#define TASK_HOOKS_IN_ORDER(X)                                                                     \
    X(VALIDATE) X(TASK_DIR) X(IDENTITY) X(CONSUL) X(LOGS) X(VOLUMES) X(NETWORK) X(CSI_PLUGIN)      \
    X(ARTIFACTS) X(TEMPLATE) X(DEVICES) X(SI_TOKEN) X(ENVOY_VERSION) X(ENVOY_BOOTSTRAP)            \
    X(CONNECT_NATIVE)
enum task_hook {
#define X(name, text) TASK_HOOK_##name,
    TASK_HOOKS(X)
#undef X
        TASK_HOOK_COUNT,
};
const char *task_hook_name(unsigned hook);

#define HOOK_PHASES(X)                                                                             \
    X(PRESTART, "prestart")   /* task: before each start */                                        \
    X(POSTSTART, "poststart") /* task: once the payload runs */                                    \
    X(PREKILL, "prekill")     /* task, alloc: before the kill signal */                            \
    X(EXITED, "exited")       /* task: after each end of the payload */                            \
    X(STOP, "stop")           /* task: when it is over for good */                                 \
    X(PRERUN, "prerun")       /* alloc: before its tasks */                                        \
    X(POSTRUN, "postrun")     /* alloc: after its tasks */                                         \
    X(DESTROY, "destroy")     /* alloc: when it is removed */
enum hook_phase {
#define X(name, text) PHASE_##name,
    HOOK_PHASES(X)
#undef X
        PHASE_COUNT,
};
const char *hook_phase_name(unsigned phase);

/* --- task events, as Nomad's API shows them (client-behaviour 2.8) --- */

/*    type                  Nomad's Type                 */
#define TASK_EVENT_TYPES(X)                                                                        \
    X(RECEIVED, "Received")                                                                        \
    X(TASK_SETUP, "Task Setup")                                                                    \
    X(SETUP_FAILURE, "Setup Failure")                                                              \
    X(FAILED_VALIDATION, "Failed Validation")                                                      \
    X(DRIVER_FAILURE, "Driver Failure")                                                            \
    X(STARTED, "Started")                                                                          \
    X(TERMINATED, "Terminated")                                                                    \
    X(RESTARTING, "Restarting")                                                                    \
    X(NOT_RESTARTING, "Not Restarting")                                                            \
    X(KILLING, "Killing")                                                                          \
    X(KILLED, "Killed")                                                                            \
    X(SIGNALING, "Signaling")                                                                      \
    X(RESTART_SIGNALED, "Restart Signaled")                                                        \
    X(SIBLING_FAILED, "Sibling Task Failed")                                                       \
    X(LEADER_DEAD, "Leader Task Dead")                                                             \
    X(MAIN_DEAD, "Main Tasks Dead")                                                                \
    X(RESTORE_FAILED, "Failed Restoring Task")                                                     \
    X(HOOK_FAILED, "Task hook failed")                                                             \
    X(SHUTDOWN_DELAY, "Waiting for shutdown delay")                                                \
    X(ALLOC_UNHEALTHY, "Alloc Unhealthy")                                                          \
    X(PLUGIN_HEALTHY, "Plugin became healthy")                                                     \
    X(PLUGIN_UNHEALTHY, "Plugin became unhealthy")                                                 \
    X(DOWNLOADING, "Downloading Artifacts")                                                        \
    X(DOWNLOAD_FAILED, "Failed Artifact Download")                                                 \
    X(SKIPPING_DELAY, "Skipping shutdown delay")                                                   \
    X(HOOK_MESSAGE, "Task hook message")                                                           \
    X(DRIVER, "Driver")                                                                            \
    X(TEMPLATE, "Template")                                                                        \
    X(RECONNECTED, "Reconnected")
enum task_event_type {
    TASK_EVENT_NONE,
#define X(name, text) TASK_EVENT_##name,
    TASK_EVENT_TYPES(X)
#undef X
        TASK_EVENT_TYPE_COUNT,
};
const char *task_event_type_name(unsigned type);

enum { TASK_EVENTS_MAX = 10, TASK_EVENT_TEXT_SIZE = 164 };
/* Numbers of such an event. */
enum { SIGNALED_BY_USER, SIGNALED_BY_TEMPLATE, SIGNALED_BY_IDENTITY };

#define TASK_EVENT_FIELDS(X)                                                                       \
    X(I64, time_unix_ns, 0, "")                                                                    \
    X(I64, number, 0, "by type: exit code, delay (ns), kill timeout (ns), why it is signaled")     \
    X(I32, signal, 0, "of a terminated payload")                                                   \
    X(U8, type, 0, "enum task_event_type")                                                         \
    X(FLAG, fails, 0, "the event that made the task fail")                                         \
    X(FLAG, oom_killed, 0, "")                                                                     \
    X(FLAG, unknown, 0, "terminated: the exit code could not be known")                            \
    X(TEXT, text, TASK_EVENT_TEXT_SIZE, "reason, error or message, by type")
struct task_event {
    TASK_EVENT_FIELDS(FIELD)
};

/* DisplayMessage of EVENT, Nomad's words. */
void task_event_message(const struct task_event *event, char *to, size_t size);

/* --- the record --- */

enum task_verdict {
    TASK_UNDECIDED,
    TASK_RESTART_NOW,
    TASK_RESTART_LATER,
    TASK_ENDS,
    TASK_REWINDS,
};
enum task_resume { RESUME_NOTHING, RESUME_PREKILL, RESUME_DELAYING, RESUME_STOPPING };

#define TASK_FIELDS(X)                                                                             \
    X(U64, interval_ms, 0, "node time at which the restart interval began")                        \
    X(U64, restart_at_ms, 0, "node time at which BACKOFF ends")                                    \
    X(U64, delay_until_ms, 0, "node time at which shutdown_delay ends, 0: not begun")              \
    X(U64, kill_at_ms, 0, "node time at which the payload is killed, 0: no signal sent")           \
    X(U64, owed_at_ms, 0, "node time at which OWING ends")                                         \
    X(U64, older_wait_ms, 0, "longest wait that a version before this one asked for")              \
    X(U64, signals_owed, 0, "that changes ask for and nobody sent, bit n - 1 for n")               \
    X(U64, scripts_owed, 0, "that changes ask for behind the one under way, bit n for n")          \
    X(I64, started_unix_ns, 0, "")                                                                 \
    X(I64, finished_unix_ns, 0, "")                                                                \
    X(I64, last_restart_unix_ns, 0, "")                                                            \
    X(U64, status_revision, 0, "grows with every change that users see")                           \
    X(U64, told_revision, 0, "the newest one that its alloc was told of")                          \
    X(U32, restart_count, 0, "restarts used in this interval")                                     \
    X(U32, restarts, 0, "restarts in all")                                                         \
    X(U32, owed, 0, "stop hooks that have not succeeded yet, a bit each")                          \
    X(U32, owed_passes, 0, "passes over the stop hooks after which some were owed")                \
    X(U32, changes, 0, "of templates and tokens, that signals were owed for")          \
    X(U8, phase, 0, "enum hook_phase of the hook under way or next")                               \
    X(U8, hook, 0, "enum task_hook, HOOK_NONE: none left")                                         \
    X(U8, run_state, 0, "enum task_run_state, as users see it")                                    \
    X(FLAG, failed, 0, "")                                                                         \
    X(FLAG, kill_wanted, 0, "latched: nothing is started any more")                                \
    X(FLAG, restart_wanted, 0, "the end under way was asked for in order to start again")          \
    X(FLAG, may_start, 0, "this incarnation has a fresh desired state")                            \
    X(FLAG, ran, 0, "the payload of this generation was seen running")                             \
    X(FLAG, start_failed, 0, "this attempt did not get as far as a payload")                       \
    X(FLAG, unrecoverable, 0, "and trying again will not help")                                    \
    X(FLAG, exit_seen, 0, "exit below is that of this generation")                                 \
    X(U8, verdict, 0, "enum task_verdict of the last decision")                                    \
    X(U8, resume, 0, "enum task_resume: where the kill path stood at the restart")                 \
    X(FLAG, rebooted, 0, "the payload died with the host, not by its own doing")                   \
    X(FLAG, remove_wanted, 0, "its alloc is gone: forget the task when the stop hooks have run")   \
    X(FLAG, rewind_wanted, 0, "what is under way leads back to its turn in the lifecycle")         \
    X(FLAG, rewound, 0, "it was sent back there, and has not run since")                           \
    X(FLAG, report_wanted, 0, "its alloc is told of the next change, be it no news")               \
    X(FLAG, unwell, 0, "the attempt has failed, however its payload ends")                         \
    X(U8, events_count, 0, "")                                                                     \
    X(FLAG, at_once, 0, "its end was asked for without its shutdown_delay")                        \
    X(U8, script, 0, "of templates, the number of the one that runs plus 1, 0: none does")         \
    X(FLAG, script_failed, 0, "and has set kill_wanted: its alloc has not told it to end")         \
    X(PAD, pad, 5, "")
struct task {
    struct machine machine;
    TASK_FIELDS(FIELD)
    struct task_define define;
    struct started process;         /* of the running generation */
    struct exited exit;
    struct task_event events[TASK_EVENTS_MAX]; /* oldest first */
    uint32_t results_bytes;
    uint8_t results[];              /* tail: what hooks left for later starts, results.h */
};

extern const struct fsm_def task_def;

/* True if something of the current generation may exist outside: a shim, a cgroup, a payload. */
bool task_holds_work(const struct task *task);

/* True if its start, or what a restore makes of it, is under way: neither a pause of its own nor
 * other tasks are waited for. */
bool task_is_on_its_way(const struct task *task);

static inline const struct task *task_of(const struct machine *record)
{
    check(record->kind == MACHINE_TASK);
    return (const struct task *)(const void *)record;
}

/* True if it waits for its turn again, or is about to start, and not on its way back there. */
static inline bool task_is_rewound(const struct task *task)
{
    return task->rewound && !task->rewind_wanted;
}

/* True if it has run, since its alloc was last replayed if it ever was. */
static inline bool task_has_started(const struct task *task)
{
    return task->started_unix_ns != 0 && !task->rewound;
}

#endif
