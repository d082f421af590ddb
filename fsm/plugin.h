/*
 * The plugin machine: one instance of a driver, device or CSI plugin.
 *
 * A CSI plugin's process is a task (supervised); a driver or device plugin's process is this
 * machine's own.  Either way it is probed, identified, watched, and its users hear when it comes
 * and goes.  A plugin that cannot be reattached is replaced (I-32).  Follows plugins.md section 9
 * and csi.md section 4.6.
 *
 * Of a supervised one DEFINE says that its task runs, EXITED that it has ended; to launch it is to
 * wait for its socket, and to end it is to forget it.  Its task is told how it is, and to start
 * again when it has been unwell for too long.
 */
#ifndef CAIRN_FSM_PLUGIN_H
#define CAIRN_FSM_PLUGIN_H

/* Lists are aligned by hand. */
/* clang-format off */

#include "fsm/fields.h"
#include "fsm/fsm.h"

/*    state        what it waits for                                                */
#define PLUGIN_STATES(X)                                                                           \
    X(ABSENT)      /* nothing exists */                                                            \
    X(LAUNCHING)   /* its process */                                                               \
    X(RECOVERING)  /* after a restart: the look at what is there */                                \
    X(PROBING)     /* its first answer */                                                          \
    X(IDENTIFYING) /* name, version, capabilities */                                               \
    X(READY)       /* nothing: in use, probed now and then */                                      \
    X(UNHEALTHY)   /* its recovery; the process lives */                                           \
    X(BACKOFF)     /* the pause before it is launched again */                                     \
    X(STOPPING)    /* the end of its process */                                                    \
    X(REJECTED)    /* an operator: it is not what was asked for */                                 \
    X(STOPPED)     /* its removal, or that its task runs again */                                  \
    X(GONE)        /* nothing: the record is deleted */
enum plugin_state {
#define X(name) P_##name,
    PLUGIN_STATES(X)
#undef X
        P_COUNT,
};

/*    event             class       payload  */
#define PLUGIN_EVENTS(X)                                                                           \
    X(DEFINE, MESSAGE, PLUGIN_DEFINE)                                                              \
    X(REMOVE, MESSAGE, NONE)               /* forget it, ending it first if need be */             \
    X(STOP, REQUEST, NONE)                                                                         \
    X(LAUNCHED, COMPLETION, STARTED)                                                               \
    X(LAUNCH_FAILED, COMPLETION, FAILURE)                                                          \
    X(RECOVERED, COMPLETION, STARTED)                                                              \
    X(LOST, COMPLETION, FAILURE)                                                                   \
    X(STOPPED, COMPLETION, NONE)                                                                   \
    X(STOP_FAILED, COMPLETION, FAILURE)                                                            \
    X(PROBED, COMPLETION, NONE)                                                                    \
    X(PROBE_FAILED, COMPLETION, FAILURE)                                                           \
    X(IDENTIFIED, COMPLETION, IDENTITY)                                                            \
    X(IDENTIFY_FAILED, COMPLETION, FAILURE)                                                        \
    X(EXITED, NEWS, EXIT)                                                                          \
    X(TIMEOUT, CLOCK, NONE)                                                                        \
    X(RESTORE, RESTORE, RESTORE)
enum plugin_event_kind {
#define X(name, class, payload) PE_##name,
    PLUGIN_EVENTS(X)
#undef X
        PE_COUNT,
};

/*    effect        lane    completions                                timeout_ms  */
#define PLUGIN_EFFECTS(X)                                                                          \
    X(LAUNCH, DRIVER, M(LAUNCHED) | M(LAUNCH_FAILED), 60000)                                       \
    X(RECOVER, DRIVER, M(RECOVERED) | M(LOST), 30000)                                              \
    X(TERMINATE, DRIVER, M(STOPPED) | M(STOP_FAILED), 30000)                                       \
    X(PROBE, NODE, M(PROBED) | M(PROBE_FAILED), 5000)                                              \
    X(IDENTIFY, NODE, M(IDENTIFIED) | M(IDENTIFY_FAILED), 30000)                                   \
    X(BACKOFF, CLOCK, 0, 0)                                                                        \
    X(TELL_NODE, TELL, 0, 0)            /* the node's fingerprint has changed */                   \
    X(REPLY_OK, TELL, 0, 0)                                                                        \
    X(SEND_UP, SEND, 0, 0)              /* to volumes that need it */                              \
    X(SEND_DOWN, SEND, 0, 0)            /* to volumes that need it */                              \
    X(SEND_HEALTH, SEND, 0, 0)          /* to its task, if it is news: users read of it */         \
    X(SEND_AILING, SEND, 0, 0)          /* to its task: why it is not healthy yet */               \
    X(SEND_UNWELL, SEND, 0, 0)          /* to its task: it was unwell for too long */
enum plugin_effect {
    PX_NONE,
#define X(name, lane, completions, timeout_ms) PX_##name,
    PLUGIN_EFFECTS(X)
#undef X
        PX_COUNT,
};

#define PLUGIN_FIELDS(X)                                                                           \
    X(U64, defined_ms, 0, "node time at which it came")                                            \
    X(U64, due_ms, 0, "node time by which it has to be healthy, 0: it is, or nothing runs")        \
    X(U64, ended_ms, 0, "supervised: node time at which its task was seen ended last, 0: never")   \
    X(U32, failures, 0, "in a row: launches that did not lead to READY; supervised: answers")      \
    X(FLAG, remove_wanted, 0, "")                                                                  \
    X(FLAG, permanent, 0, "the last failure will not go away by itself")                           \
    X(FLAG, told_healthy, 0, "what its task heard last")                                           \
    X(PAD, pad, 1, "")                                                                             \
    X(TEXT, failure, DESCRIPTION_SIZE, "the last one")
struct plugin {
    struct machine machine;
    PLUGIN_FIELDS(FIELD)
    struct plugin_define define;
    struct plugin_identity identity;
    struct started process;
};

extern const struct fsm_def plugin_def;

/* What a plugin may be used for; a driver or device plugin for neither. */
static inline bool plugin_serves_node(const struct plugin *plugin)
{
    return plugin->define.type == PLUGIN_CSI_NODE || plugin->define.type == PLUGIN_CSI_MONOLITH;
}

static inline bool plugin_serves_controller(const struct plugin *plugin)
{
    return plugin->define.type == PLUGIN_CSI_CONTROLLER ||
           plugin->define.type == PLUGIN_CSI_MONOLITH;
}

static inline const struct plugin *plugin_of(const struct machine *record)
{
    check(record->kind == MACHINE_PLUGIN);
    return (const struct plugin *)(const void *)record;
}

#endif
