/*
 * The alloc machine: a group of tasks and volumes that live and die together.
 *
 * It starts nothing by itself: it runs the hooks around the group and gives orders to its members,
 * which answer with what has become of them.  Behaviour follows Nomad 1.1.2 client/allocrunner and
 * the lifecycle coordinator of 2.x; client status is a pure function of the members.
 */
#ifndef CAIRN_FSM_ALLOC_H
#define CAIRN_FSM_ALLOC_H

/* Lists are aligned by hand. */
/* clang-format off */

#include "fsm/fields.h"
#include "fsm/fsm.h"

/*    state         what it waits for                                                  */
#define ALLOC_STATES(X)                                                                            \
    X(ABSENT)     /* nothing exists */                                                             \
    X(WAITING)    /* the end of the alloc it replaces */                                           \
    X(PREPARING)  /* hooks before the tasks, one at a time */                                      \
    X(MOUNTING)   /* its volumes */                                                                \
    X(RUNNING)    /* its tasks, which start and end in lifecycle order */                          \
    X(PREKILL)    /* hooks before the kill */                                                      \
    X(DELAYING)   /* the group's shutdown_delay */                                                 \
    X(KILLING)    /* the end of its tasks: leader, mains, sidecars */                              \
    X(POSTSTOP)   /* its poststop tasks */                                                         \
    X(RELEASING)  /* its volumes to be unmounted and released */                                   \
    X(POSTRUN)    /* hooks after the tasks */                                                      \
    X(TERMINAL)   /* its removal; the outcome stands */                                            \
    X(DESTROYING) /* hooks that remove its directory */                                            \
    X(GONE)       /* nothing: the record is deleted */                                             \
    X(REPLAYING)  /* the end of its tasks, which then start again in lifecycle order */
enum alloc_state {
#define X(name) A_##name,
    ALLOC_STATES(X)
#undef X
        A_COUNT,
};

/*    event             class       payload  */
#define ALLOC_EVENTS(X)                                                                            \
    X(ASSIGN, MESSAGE, ALLOC_ASSIGN)       /* the control plane: this alloc shall run here */      \
    X(AUTHORIZED, MESSAGE, NONE)           /* the control plane: a fresh answer is here */     \
    X(TASK_CHANGED, MESSAGE, TASK_CHANGED)                                                         \
    X(MEMBER_LOST, MESSAGE, MEMBER)        /* restore: the record of a task or volume is gone */   \
    X(VOLUME_READY, MESSAGE, MEMBER)                                                               \
    X(VOLUME_FAILED, MESSAGE, MEMBER)                                                              \
    X(VOLUME_GONE, MESSAGE, MEMBER)                                                                \
    X(STATUS_ACKED, MESSAGE, ACK)          /* the server has confirmed a status */                 \
    X(STOP, REQUEST, REQUEST)              /* desired status stop or evict, or a user */           \
    X(RESTART, REQUEST, REQUEST)           /* all running tasks */                                 \
    X(DESTROY, REQUEST, NONE)              /* garbage collection, or unknown to the server */      \
    X(HOOK_DONE, COMPLETION, HOOK)                                                                 \
    X(HOOK_FAILED, COMPLETION, HOOK)                                                               \
    X(PREVIOUS_ENDED, COMPLETION, NONE)                                                            \
    X(TIMEOUT, CLOCK, NONE)                                                                        \
    X(RESTORE, RESTORE, RESTORE)                                                                   \
    X(REPLAY, REQUEST, NONE)               /* all tasks again, those that are over, too */         \
    X(UPDATE, MESSAGE, ALLOC_ASSIGN)       /* the control plane: go on by this newer version */    \
    X(CONTACT, MESSAGE, NONE)              /* the control plane was heard of; for allocs that have \
                                            * a stop_after_ms */                                   \
    X(NETWORK_SOUND, COMPLETION, NONE)     /* it is as it was made, or mended, or not known */     \
    X(NETWORK_LOST, COMPLETION, FAILURE)   /* only who starts again gets one */                    \
    X(LOOK, MESSAGE, MEMBER)               /* that task is to start: are all volumes there */      \
    X(HEALTHY, MESSAGE, NONE)              /* a user says so of one that is in a deployment, */    \
    X(UNHEALTHY, MESSAGE, NONE)            /* and what he says last holds */                       \
    X(VOLUME_TROUBLED, MESSAGE, MEMBER)    /* it is tried again, and this is why */                \
    X(CHECKED, MESSAGE, CHECKED)           /* checks of its services find another thing */         \
    X(RECONNECTED, MESSAGE, NONE)          /* the control plane, which did not know what it was */
enum alloc_event_kind {
#define X(name, class, payload) AE_##name,
    ALLOC_EVENTS(X)
#undef X
        AE_COUNT,
};

/*    effect            lane  completions                         timeout_ms  */
#define ALLOC_EFFECTS(X)                                                                           \
    X(HOOK, HOOK, M(HOOK_DONE) | M(HOOK_FAILED), 300000)    /* the hook of record.phase, .hook */  \
    X(WATCH_PREVIOUS, WAIT, M(PREVIOUS_ENDED), 0)                                                  \
    X(BACKOFF, CLOCK, 0, 0)                                                                        \
    X(TELL_STATUS, TELL, 0, 0)          /* client status may have changed: push it */              \
    X(TELL_ENDED, TELL, 0, 0)           /* wakes whoever waits for this alloc, offers it to GC */  \
    X(REPLY_OK, TELL, 0, 0)                                                                        \
    X(REPLY_NOT_RUNNING, TELL, 0, 0)                                                               \
    X(SEND_START, SEND, 0, 0)           /* to tasks whose turn has come */                         \
    X(SEND_KILL, SEND, 0, 0)            /* to tasks whose turn has come */                         \
    X(SEND_RESTART, SEND, 0, 0)         /* to running tasks */                                     \
    X(SEND_AUTHORIZED, SEND, 0, 0)      /* to tasks */                                             \
    X(SEND_REMOVE, SEND, 0, 0)          /* to tasks */                                             \
    X(SEND_WANT, SEND, 0, 0)            /* to volumes */                                           \
    X(SEND_RELEASE, SEND, 0, 0)         /* to volumes */                                           \
    X(SEND_REWIND, SEND, 0, 0)          /* to tasks whose turn has come */                         \
    X(SEND_REPORT, SEND, 0, 0)          /* to tasks of which nobody knows whether they run */      \
    X(CHECK_NETWORK, NODE, M(NETWORK_SOUND) | M(NETWORK_LOST), 300000) /* and mend it */          \
    X(SEND_NOTE, SEND, 0, 0)            /* to running tasks: why they are about to restart */      \
    X(SEND_VERDICT, SEND, 0, 0)         /* to tasks that have made it unhealthy, once */           \
    X(SEND_LOOK, SEND, 0, 0)            /* to volumes */                                           \
    X(SEND_MOUNTS, SEND, 0, 0)          /* to tasks about to start: are all volumes there */       \
    X(SEND_TROUBLE, SEND, 0, 0)         /* to tasks that wait for a volume: why it takes longer */ \
    X(HOOK_ABORT, TELL, 0, 0)           /* nobody waits any more for the hook under way */         \
    X(SEND_REMARK, SEND, 0, 0)          /* to tasks: what the hook has gone on without */          \
    X(SEND_RECONNECTED, SEND, 0, 0)     /* to tasks: it is known again what they are */
enum alloc_effect {
    AX_NONE,
#define X(name, lane, completions, timeout_ms) AX_##name,
    ALLOC_EFFECTS(X)
#undef X
        AX_COUNT,
};

/* Hooks in their order, as in task.h.  Names follow nomad v1.1.2 alloc_runner_hooks.go. */
#define ALLOC_HOOKS(X)                                                                             \
    X(ALLOC_DIR, "alloc_dir")                                                                      \
    X(MIGRATE_DISK, "migrate_disk")                                                              \
    X(NETWORK, "network")                                                                          \
    X(SERVICES, "group_services")                                                                  \
    X(CONSUL, "consul")
enum alloc_hook {
#define X(name, text) ALLOC_HOOK_##name,
    ALLOC_HOOKS(X)
#undef X
        ALLOC_HOOK_COUNT,
};
const char *alloc_hook_name(unsigned hook);

enum member_order {
    ORDER_NONE,
    ORDER_START,
    ORDER_KILL,
    ORDER_REWIND,
    ORDER_KILL_AT_ONCE,
    ORDER_COUNT,
};

/* Where the disk is that an alloc takes over: here (or there is none to be taken over), with the
 * one before it, or on its way. */
enum alloc_disk { DISK_HERE, DISK_AWAY, DISK_MOVING, DISK_COUNT };

/* What an alloc knows of the payload of a task; one that is watched asks after a restart of the
 * daemon, and before it says that it is healthy. */
enum member_up { MEMBER_DOWN, MEMBER_UP, MEMBER_ASKED, MEMBER_UP_COUNT };

/* What is said of a watched alloc, once for each deployment, but for what a user says. */
enum alloc_health { HEALTH_UNKNOWN, HEALTH_HEALTHY, HEALTH_UNHEALTHY, HEALTH_COUNT };

enum client_status { CLIENT_PENDING, CLIENT_RUNNING, CLIENT_COMPLETE, CLIENT_FAILED };
const char *client_status_name(enum client_status status);

#define ALLOC_FIELDS(X)                                                                            \
    X(U64, delay_until_ms, 0, "node time at which the group's shutdown_delay ends, 0: not begun")  \
    X(U64, assigned_ms, 0, "node time at which it was assigned, 0: an older version did not say")  \
    X(U64, run_until_ms, 0, "node time at which its max_run_duration is over, 0: it has none")     \
    X(U64, contact_ms, 0, "node time at which it was last heard of, 0: it never minds")            \
    X(U64, healthy_at_ms, 0, "node time at which it is healthy if all goes on so, 0: not all run") \
    X(U64, unhealthy_at_ms, 0, "node time at which its healthy_deadline is over, 0: not begun")    \
    X(U64, status_revision, 0, "grows when the client status or a task's outcome changes")         \
    X(U64, acked_revision, 0, "the newest one the server has confirmed")                           \
    X(I64, modify_unix_ns, 0, "of the last such change")                                           \
    X(I64, ended_unix_ns, 0, "when it became terminal")                                            \
    X(I64, health_unix_ns, 0, "when its health became known")                                      \
    X(U8, phase, 0, "enum hook_phase of the hook under way or next")                               \
    X(U8, hook, 0, "enum alloc_hook, HOOK_NONE: none left")                                        \
    X(FLAG, stop_wanted, 0, "desired status is stop")                                              \
    X(FLAG, destroy_wanted, 0, "remove it once it has ended")                                      \
    X(FLAG, may_start, 0, "this incarnation has a fresh desired state")                            \
    X(FLAG, setup_failed, 0, "a hook or volume before the tasks failed")                           \
    X(U8, client_status, 0, "enum client_status")                                                  \
    X(U8, kill_event, 0, "enum task_event_type that explains the kill to the tasks, 0: none")      \
    X(FLAG, prepared, 0, "its set-up was complete once: its tasks may have run")                   \
    X(FLAG, ran_out, 0, "it was not over by then: ended, without its poststop tasks")              \
    X(FLAG, cut_off, 0, "it was not heard of for stop_after_ms: ended")                            \
    X(U8, disk, 0, "enum alloc_disk")                                                              \
    X(U8, health, 0, "enum alloc_health")                                                          \
    X(FLAG, confirming, 0, "its time has come, and its tasks are asked, in this turn")             \
    X(FLAG, verdict_told, 0, "its tasks know that they have made it unhealthy")                    \
    X(FLAG, at_once, 0, "who stopped it wants no shutdown_delay to be waited for")                 \
    X(FLAG, health_said, 0, "its health is what a user said")                                      \
    X(PAD, pad, 7, "")                                                                             \
    X(TEXT, kill_text, DESCRIPTION_SIZE, "and its text")                                           \
    X(TEXT, desired_description, DESCRIPTION_SIZE, "why it was stopped")                           \
    X(TEXT, failure, DESCRIPTION_SIZE, "why it could not be set up, or why it was condemned")      \
    X(U64, checks_ran, 0, "of its services: those that have run")                                  \
    X(U64, checks_pass, 0, "and passed the last time")
struct alloc {
    struct machine machine;
    ALLOC_FIELDS(FIELD)
    struct alloc_assign assign;     /* its members are the tail of the record */
};

extern const struct fsm_def alloc_def;

/* True if an alloc assigned so takes over the disk of another one. */
bool alloc_takes_disk(const struct alloc_assign *assign);

/* The node time at which ALLOC ends if it is not heard of before, 0: it goes on. */
uint64_t alloc_cut_off_at_ms(const struct alloc *alloc);

/* Since when it is watched by whoever waits to hear of its health. */
static inline int64_t alloc_deployed_unix_ns(const struct alloc *alloc)
{
    int64_t taken_unix_ns = alloc->assign.deployed_unix_ns;

    return taken_unix_ns != 0 ? taken_unix_ns : alloc->assign.create_unix_ns;
}

/* True in the states of an alloc that is on its way to its end, or there. */
static inline bool alloc_state_ends(uint8_t state)
{
    return state > A_RUNNING && state <= A_GONE;
}

/* True in those of one whose tasks are over, poststop's too, and that has to let go at most. */
static inline bool alloc_state_lets_go(uint8_t state)
{
    return state >= A_RELEASING && state <= A_GONE;
}

/* The same, and it has let go of its volumes. */
static inline bool alloc_state_has_released(uint8_t state)
{
    return state >= A_POSTRUN && state <= A_GONE;
}

struct task;

/* Which of two records that were read is what was written. */
enum alloc_belief {
    BELIEVE_BOTH,
    BELIEVE_ALLOC,   /* it is over: whatever runs under the task's name must end */
    BELIEVE_TASK,    /* it holds work, and is ended as its own record says */
    BELIEVE_NEITHER,
};

/* Compares ALLOC with TASK, the record of its task NAME; RET_WHY says why not both. */
enum alloc_belief alloc_believe(const struct alloc *alloc, const char *name,
                                const struct task *task, const char **ret_why);

static inline const struct alloc *alloc_of(const struct machine *record)
{
    check(record->kind == MACHINE_ALLOC);
    return (const struct alloc *)(const void *)record;
}

#endif
