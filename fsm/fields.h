/*
 * Fields: the structs that the journal stores, as lists.
 *
 * One X-list per struct yields the C struct here, its encoder and decoder (journal/codec.cc), its
 * JSON form and its comparison; nothing about a field is written twice.  A list entry is
 * X(kind, name, size, what it is).  Lists are ordered so that no padding arises (-Wpadded is an
 * error below): equal values are equal bytes.
 *
 * Texts are NUL-terminated and zero-filled to their size; a NAME is one that others go by, UTF-8
 * without control characters.  A FLAG is 0 or 1, a U8 an enum or a small count.  Times: _ms is node
 * time or a length, _unix_ns the wall clock.
 */
#ifndef CAIRN_FSM_FIELDS_H
#define CAIRN_FSM_FIELDS_H

/* Lists are aligned by hand. */
/* clang-format off */

#include "base/base.h"
#include "fsm/limits.h"

#define FIELD(kind, name, size, doc) FIELD_##kind(name, size)
#define FIELD_U64(name, size) uint64_t name;
#define FIELD_I64(name, size) int64_t name;
#define FIELD_U32(name, size) uint32_t name;
#define FIELD_I32(name, size) int32_t name;
#define FIELD_U8(name, size) uint8_t name;
#define FIELD_FLAG(name, size) uint8_t name;
#define FIELD_TEXT(name, size) char name[size];
#define FIELD_NAME(name, size) char name[size];
#define FIELD_PAD(name, size) uint8_t name[size]; /* always zero, never stored */

/* In place of a hook: none is left.  As many fit a mask, so that it stays the same, in what was
 * stored too, whatever hooks there come to be. */
enum { HOOK_NONE = 32 };

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* --- payloads of events --- */

/*       name           struct                 */
#define PAYLOAD_LIST(X)                                                                            \
    X(TASK_DEFINE, task_define)                                                                    \
    X(ALLOC_ASSIGN, alloc_assign)                                                                  \
    X(VOLUME_DEFINE, volume_define)                                                                \
    X(PLUGIN_DEFINE, plugin_define)                                                                \
    X(HOOK, hook_outcome)                                                                          \
    X(STARTED, started)                                                                            \
    X(EXIT, exited)                                                                                \
    X(FAILURE, failure)                                                                            \
    X(KILL, kill_order)                                                                            \
    X(REQUEST, request)                                                                            \
    X(RESTORE, restore)                                                                            \
    X(TASK_CHANGED, task_changed)                                                                  \
    X(MEMBER, member_news)                                                                         \
    X(CLAIM, claim)                                                                                \
    X(IDENTITY, plugin_identity)                                                                   \
    X(ACK, ack)                                                                                    \
    X(CHECKED, checked)

enum fsm_payload {
    PAYLOAD_NONE,
#define X(name, type) PAYLOAD_##name,
    PAYLOAD_LIST(X)
#undef X
        PAYLOAD_KIND_COUNT,
};

/* What a task is, as far as decisions need it. */
#define TASK_DEFINE_FIELDS(X)                                                                      \
    X(U64, restart_interval_ms, 0, "restart policy: length of an interval")                        \
    X(U64, restart_delay_ms, 0, "restart policy: pause before a restart")                          \
    X(U64, kill_timeout_ms, 0, "from the kill signal to the kill")                                 \
    X(U64, shutdown_delay_ms, 0, "from deregistration to the kill signal")                         \
    X(U32, restart_attempts, 0, "restart policy: restarts allowed in an interval")                 \
    X(U32, hooks_prestart, 0, "bit mask of the hooks to run, by phase")                            \
    X(U32, hooks_poststart, 0, "")                                                                 \
    X(U32, hooks_prekill, 0, "")                                                                   \
    X(U32, hooks_exited, 0, "")                                                                    \
    X(U32, hooks_stop, 0, "")                                                                      \
    X(FLAG, restart_mode_delay, 0, "1: mode delay, 0: mode fail")                                  \
    X(FLAG, restart_on_success, 0, "1: an exit with code 0 is restarted too")                      \
    X(U8, lifecycle, 0, "enum spec_lifecycle")                                                     \
    X(FLAG, sidecar, 0, "")                                                                        \
    X(FLAG, leader, 0, "")                                                                         \
    X(FLAG, may_start, 0, "the desired state is fresh: nothing has to be asked first")             \
    X(FLAG, mounts, 0, "its alloc has volumes: after a restart they are looked at first")          \
    X(PAD, pad, 1, "")                                                                             \
    X(NAME, driver, SPEC_DRIVER_SIZE, "")                                                          \
    X(NAME, kill_signal, 32, "empty: the driver's default")
struct task_define {
    TASK_DEFINE_FIELDS(FIELD)
};

enum alloc_member_kind { MEMBER_TASK, MEMBER_VOLUME };
enum task_run_state { TASK_RUN_PENDING, TASK_RUN_RUNNING, TASK_RUN_DEAD };

/* A task or volume of an alloc, and what the alloc knows of it. */
#define ALLOC_MEMBER_FIELDS(X)                                                                     \
    X(U8, kind, 0, "enum alloc_member_kind")                                                       \
    X(U8, lifecycle, 0, "task: enum spec_lifecycle")                                               \
    X(FLAG, sidecar, 0, "task")                                                                    \
    X(FLAG, leader, 0, "task")                                                                     \
    X(U8, run_state, 0, "task: enum task_run_state")                                               \
    X(FLAG, failed, 0, "task or volume")                                                           \
    X(FLAG, started, 0, "task: has run, since its alloc was last replayed")                        \
    X(U8, told, 0, "last order sent: enum member_order")                                           \
    X(FLAG, ready, 0, "volume: published")                                                         \
    X(FLAG, gone, 0, "volume: released")                                                           \
    X(FLAG, rewound, 0, "task: waits for its turn again, or has not run since")                    \
    X(U8, up, 0, "task: enum member_up")                                                           \
    X(FLAG, looks, 0, "task: about to start, waits for what the volumes say")                      \
    X(PAD, pad, 3, "")                                                                             \
    X(NAME, name, SPEC_NAME_SIZE, "")
struct alloc_member {
    ALLOC_MEMBER_FIELDS(FIELD)
};

enum { ALLOC_MEMBERS_MAX = SPEC_TASKS_MAX + ALLOC_CLAIMS_MAX };
enum { DESCRIPTION_SIZE = 136 };

/* What an alloc is.  A tail of members_count members follows. */
#define ALLOC_ASSIGN_FIELDS(X)                                                                     \
    X(I64, create_unix_ns, 0, "")                                                                  \
    X(U64, job_version, 0, "")                                                                     \
    X(U64, shutdown_delay_ms, 0, "the group's")                                                    \
    X(U64, max_run_ms, 0, "from when it was assigned to its end, 0: as long as it wants")          \
    X(U64, min_healthy_ms, 0, "for which all of its tasks run before it is healthy")               \
    X(U64, healthy_deadline_ms, 0, "from the begin of its set-up, by which it has to be")          \
    X(U64, stop_after_ms, 0, "after which, not heard of by its control plane, it ends, 0: never")  \
    X(U32, index, 0, "of the alloc in its group")                                                  \
    X(U32, hooks_prerun, 0, "bit mask of the hooks to run, by phase")                              \
    X(U32, hooks_prekill, 0, "")                                                                   \
    X(U32, hooks_postrun, 0, "")                                                                   \
    X(U32, hooks_destroy, 0, "")                                                                   \
    X(U32, members_count, 0, "")                                                                   \
    X(FLAG, may_start, 0, "the desired state is fresh: nothing has to be asked first")             \
    X(FLAG, condemned, 0, "1: its record was damaged; it is only brought to an end")               \
    X(FLAG, batch, 0, "job type batch or sysbatch")                                                \
    X(FLAG, watched, 0, "somebody waits to hear whether it is healthy: a deployment")              \
    X(FLAG, manual, 0, "and only a user says so")                                                  \
    X(PAD, pad, 3, "")                                                                             \
    X(NAME, previous, 40, "alloc to wait for, or empty")                                           \
    X(NAME, disk_from, 40, "alloc to wait for whose ephemeral disk it takes over, or empty")       \
    X(NAME, namespace, SPEC_NAMESPACE_SIZE, "")                                                    \
    X(NAME, job_id, SPEC_NAME_SIZE, "")                                                            \
    X(NAME, group, SPEC_NAME_SIZE, "")                                                             \
    X(TEXT, description, DESCRIPTION_SIZE, "why it was condemned")                                 \
    X(I64, deployed_unix_ns, 0, "when the deployment took it that watches it, 0: it was made")     \
    X(U64, checks, 0, "that have to pass before it is healthy: bits, by their order in the job")
struct alloc_assign {
    ALLOC_ASSIGN_FIELDS(FIELD)
    struct alloc_member members[];
};

/* Ids of CSI have up to 128 bytes, but for that of a node, 256, and volume ids of real plugins. */
enum { PLUGIN_NAME_SIZE = 128, VOLUME_NAME_SIZE = 264, PLUGIN_NODE_SIZE = 264 };

/* A volume that an alloc wants: one claim on it. */
#define VOLUME_DEFINE_FIELDS(X)                                                                    \
    X(FLAG, read_only, 0, "")                                                                      \
    X(U8, access_mode, 0, "as CSI numbers them")                                                   \
    X(U8, attachment_mode, 0, "enum csi_attachment; 0: a file system, of an older version")        \
    X(PAD, pad, 5, "")                                                                             \
    X(NAME, plugin, PLUGIN_NAME_SIZE, "plugin id")                                                 \
    X(NAME, namespace, SPEC_NAMESPACE_SIZE, "")                                                    \
    X(NAME, volume, VOLUME_NAME_SIZE, "volume id")
struct volume_define {
    VOLUME_DEFINE_FIELDS(FIELD)
};

#define PLUGIN_DEFINE_FIELDS(X)                                                                    \
    X(U64, health_timeout_ms, 0, "for which it may be unwell, 0: the default")                     \
    X(U8, type, 0, "enum plugin_type")                                                             \
    X(FLAG, supervised, 0, "1: its process belongs to a task, 0: to this machine")                 \
    X(PAD, pad, 6, "")                                                                             \
    X(NAME, plugin, PLUGIN_NAME_SIZE, "plugin id")
struct plugin_define {
    PLUGIN_DEFINE_FIELDS(FIELD)
};

/* One hook has ended.  A tail of results_bytes bytes follows (results.h). */
#define HOOK_OUTCOME_FIELDS(X)                                                                     \
    X(I32, code, 0, "0, or ERR_* of the failure")                                                  \
    X(U32, results_bytes, 0, "")                                                                   \
    X(U8, hook, 0, "number of the hook")                                                           \
    X(FLAG, recoverable, 0, "the restart policy may try again")                                    \
    X(PAD, pad, 6, "")                                                                             \
    X(TEXT, text, DESCRIPTION_SIZE, "why it failed")
struct hook_outcome {
    HOOK_OUTCOME_FIELDS(FIELD)
    uint8_t results[];
};

/* A payload runs. */
#define STARTED_FIELDS(X)                                                                          \
    X(U64, payload_ticks, 0, "start time of the payload's main process")                           \
    X(U64, shim_ticks, 0, "")                                                                      \
    X(I32, payload_pid, 0, "")                                                                     \
    X(I32, shim_pid, 0, "")
struct started {
    STARTED_FIELDS(FIELD)
};

/* A payload has ended. */
#define EXITED_FIELDS(X)                                                                           \
    X(I64, finished_unix_ns, 0, "0: unknown")                                                      \
    X(I32, code, 0, "exit status, or 128 + signal")                                                \
    X(I32, signal, 0, "0: exited by itself")                                                       \
    X(FLAG, known, 0, "0: neither shim nor exit record; counts as failure")                        \
    X(FLAG, oom_killed, 0, "")                                                                     \
    X(FLAG, with_host, 0, "1: its supervisor had been told to end, as all are by a shutdown")      \
    X(PAD, pad, 5, "")                                                                             \
    X(TEXT, message, DESCRIPTION_SIZE, "")
struct exited {
    EXITED_FIELDS(FIELD)
};

#define FAILURE_FIELDS(X)                                                                          \
    X(I32, code, 0, "ERR_*")                                                                       \
    X(FLAG, recoverable, 0, "trying again may help")                                               \
    X(FLAG, untouched, 0, "the world is as it was: nothing was begun under this key")              \
    X(U8, verdict, 0, "of a call to a CSI plugin: enum csi_verdict, 0: it was none")               \
    X(FLAG, may_run, 0, "a plugin may still work on the call, which nobody waits for any more")    \
    X(TEXT, text, DESCRIPTION_SIZE, "")
struct failure {
    FAILURE_FIELDS(FIELD)
};

/* An order to end a task. */
#define KILL_ORDER_FIELDS(X)                                                                       \
    X(U8, event, 0, "enum task_event_type to append first, 0: none")                               \
    X(FLAG, fails, 0, "the task counts as failed")                                                 \
    X(FLAG, at_once, 0, "its shutdown_delay is not waited for")                                    \
    X(PAD, pad, 5, "")                                                                             \
    X(TEXT, text, DESCRIPTION_SIZE, "")
struct kill_order {
    KILL_ORDER_FIELDS(FIELD)
};

/* What somebody outside asks of a machine. */
#define REQUEST_FIELDS(X)                                                                          \
    X(FLAG, at_once, 0, "of a stop: no shutdown_delay is waited for")                              \
    X(PAD, pad, 7, "")                                                                             \
    X(TEXT, signal, 32, "of a signal request")                                                     \
    X(TEXT, text, DESCRIPTION_SIZE, "why, for the task event or the desired description")
struct request {
    REQUEST_FIELDS(FIELD)
};

#define RESTORE_FIELDS(X)                                                                          \
    X(FLAG, authority, 0, "1: the journal decides what should run (no server to be asked)")        \
    X(FLAG, rebooted, 0, "1: another boot id than when the record was last written")               \
    X(PAD, pad, 6, "")
struct restore {
    RESTORE_FIELDS(FIELD)
};

#define TASK_CHANGED_FIELDS(X)                                                                     \
    X(U8, run_state, 0, "enum task_run_state")                                                     \
    X(FLAG, failed, 0, "")                                                                         \
    X(FLAG, started, 0, "has run, since its alloc was last replayed")                              \
    X(FLAG, rewound, 0, "waits for its turn again, or has not run since")                          \
    X(FLAG, quiet, 0, "nothing that users see is new")                                             \
    X(FLAG, up, 0, "its payload runs, as far as is known, and is not being ended")                 \
    X(FLAG, answers, 0, "its alloc has asked it whether it does")                                  \
    X(PAD, pad, 1, "")                                                                             \
    X(NAME, name, SPEC_NAME_SIZE, "")
struct task_changed {
    TASK_CHANGED_FIELDS(FIELD)
};

/* What the checks of an alloc's services have found. */
#define CHECKED_FIELDS(X)                                                                          \
    X(U64, ran, 0, "bits of those that have run, by their order in the job")                       \
    X(U64, pass, 0, "of those that passed the last time")
struct checked {
    CHECKED_FIELDS(FIELD)
};

#define MEMBER_NEWS_FIELDS(X)                                                                      \
    X(NAME, name, SPEC_NAME_SIZE, "of the volume or task")                                         \
    X(TEXT, text, DESCRIPTION_SIZE, "what is wrong with it, or empty")                             \
    X(FLAG, volume, 0, "lost: it is a volume, and no task of that name")
struct member_news {
    MEMBER_NEWS_FIELDS(FIELD)
};

#define CLAIM_FIELDS(X)                                                                            \
    X(TEXT, external, VOLUME_NAME_SIZE, "the storage provider's id of the volume")
struct claim {
    CLAIM_FIELDS(FIELD)
};

#define PLUGIN_IDENTITY_FIELDS(X)                                                                  \
    X(I64, volumes_max, 0, "that it can have on this node, 0: no bound")                           \
    X(U32, plugin_capabilities, 0, "bits as csi/csi.h names them")                                 \
    X(U32, node_capabilities, 0, "")                                                               \
    X(U32, controller_capabilities, 0, "")                                                         \
    X(FLAG, staging, 0, "volumes are staged before they are published")                            \
    X(FLAG, healthy, 0, "")                                                                        \
    X(PAD, pad, 2, "")                                                                             \
    X(TEXT, provider, 64, "the name that the plugin has for itself")                               \
    X(TEXT, version, 64, "")                                                                       \
    X(TEXT, node, PLUGIN_NODE_SIZE, "the plugin's own id of this node")
struct plugin_identity {
    PLUGIN_IDENTITY_FIELDS(FIELD)
};

#define ACK_FIELDS(X) X(U64, status_revision, 0, "the newest one the server has confirmed")
struct ack {
    ACK_FIELDS(FIELD)
};

#pragma GCC diagnostic pop

const char *fsm_payload_name(enum fsm_payload kind);

/* Bytes of the payload KIND at PAYLOAD with its tail; 0 for PAYLOAD_NONE. */
uint32_t fsm_payload_size(enum fsm_payload kind, const void *payload);

#endif
