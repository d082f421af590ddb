/*
 * The volume machine: one alloc's claim on one volume, from the definition to the release.
 *
 * It holds a claim with the server, stages the volume on this node when the plugin asks for it,
 * publishes it for the alloc, and undoes all three in reverse.  Calls for one volume are
 * serialised over all its claims (I-29), it is unstaged only by its last user (I-27), and a claim
 * is released only when nothing is mounted any more (I-26).  Follows csi.md sections 3 and 4.
 */
#ifndef CAIRN_FSM_VOLUME_H
#define CAIRN_FSM_VOLUME_H

/* Lists are aligned by hand. */
/* clang-format off */

#include "fsm/fields.h"
#include "fsm/fsm.h"

/*    state         what it waits for                                               */
#define VOLUME_STATES(X)                                                                           \
    X(ABSENT)       /* nothing exists */                                                           \
    X(IDLE)         /* its alloc to want it; it counts as a user from here on */                   \
    X(CLAIMING)     /* the server's claim */                                                       \
    X(QUEUED)       /* the plugin to be ready, other claims' calls to end */                       \
    X(STAGING)      /* the plugin */                                                               \
    X(PUBLISHING)   /* the plugin */                                                               \
    X(READY)        /* nothing: mounted and in use */                                              \
    X(VERIFYING)    /* the look at the mount table, after a restart or before a start */           \
    X(BROKEN)       /* its alloc to give up */                                                     \
    X(DRAINING)     /* the plugin and other claims, on the way back */                             \
    X(UNPUBLISHING) /* the plugin */                                                               \
    X(UNSTAGING)    /* the plugin */                                                               \
    X(RELEASING)    /* the server's confirmation */                                                \
    X(GONE)         /* nothing: the record is deleted */
enum volume_state {
#define X(name) V_##name,
    VOLUME_STATES(X)
#undef X
        V_COUNT,
};

/*    event             class       payload  */
#define VOLUME_EVENTS(X)                                                                           \
    X(DEFINE, MESSAGE, VOLUME_DEFINE)                                                              \
    X(ADOPT, MESSAGE, VOLUME_DEFINE)       /* restore: its record is gone, it may be anything */   \
    X(WANT, MESSAGE, NONE)                 /* its alloc: be mounted */                             \
    X(RELEASE, MESSAGE, NONE)              /* its alloc: no process uses you any more */           \
    X(TURN, MESSAGE, NONE)                 /* another claim's call has ended */                    \
    X(INHERIT, MESSAGE, CLAIM)             /* and it leaves the volume staged, to those left */    \
    X(PLUGIN_UP, MESSAGE, IDENTITY)                                                                \
    X(PLUGIN_DOWN, MESSAGE, NONE)                                                                  \
    X(DETACH, REQUEST, NONE)               /* the server: unmount it */                            \
    X(CLAIMED, COMPLETION, CLAIM)                                                                  \
    X(RELEASED, COMPLETION, NONE)                                                                  \
    X(RPC_FAILED, COMPLETION, FAILURE)                                                             \
    X(STAGED, COMPLETION, NONE)                                                                    \
    X(PUBLISHED, COMPLETION, NONE)                                                                 \
    X(UNPUBLISHED, COMPLETION, NONE)                                                               \
    X(UNSTAGED, COMPLETION, NONE)                                                                  \
    X(MOUNT_FOUND, COMPLETION, NONE)                                                               \
    X(MOUNT_MISSING, COMPLETION, NONE)                                                             \
    X(NODE_FAILED, COMPLETION, FAILURE)                                                            \
    X(TIMEOUT, CLOCK, NONE)                                                                        \
    X(RESTORE, RESTORE, RESTORE)                                                                   \
    X(LOOK, MESSAGE, NONE)                 /* its alloc: a task is about to start on you */
enum volume_event_kind {
#define X(name, class, payload) VE_##name,
    VOLUME_EVENTS(X)
#undef X
        VE_COUNT,
};

/*    effect           lane  completions                               timeout_ms  */
#define VOLUME_EFFECTS(X)                                                                          \
    X(CLAIM, RPC, M(CLAIMED) | M(RPC_FAILED), 60000)                                               \
    X(UNCLAIM, RPC, M(RELEASED) | M(RPC_FAILED), 60000)                                            \
    X(STAGE, NODE, M(STAGED) | M(NODE_FAILED), 120000)                                             \
    X(PUBLISH, NODE, M(PUBLISHED) | M(NODE_FAILED), 120000)                                        \
    X(UNPUBLISH, NODE, M(UNPUBLISHED) | M(NODE_FAILED), 120000)                                    \
    X(UNSTAGE, NODE, M(UNSTAGED) | M(NODE_FAILED), 120000)                                         \
    X(LOOK, NODE, M(MOUNT_FOUND) | M(MOUNT_MISSING) | M(NODE_FAILED), 10000)                       \
    X(BACKOFF, CLOCK, 0, 0)                                                                        \
    X(REPLY_OK, TELL, 0, 0)                                                                        \
    X(REPLY_BUSY, TELL, 0, 0)                                                                      \
    X(SEND_READY, SEND, 0, 0)           /* to its alloc */                                         \
    X(SEND_FAILED, SEND, 0, 0)          /* to its alloc */                                         \
    X(SEND_GONE, SEND, 0, 0)            /* to its alloc */                                         \
    X(SEND_TURN, SEND, 0, 0)            /* to who of the other claims on the volume can go on */   \
    X(UNMOUNT, NODE, M(UNPUBLISHED) | M(NODE_FAILED), 30000)      /* by ourselves, no plugin */    \
    X(UNMOUNT_STAGING, NODE, M(UNSTAGED) | M(NODE_FAILED), 30000) /* is asked or told */          \
    X(SEND_TROUBLE, SEND, 0, 0)         /* to its alloc: it takes longer, and why */
enum volume_effect {
    VX_NONE,
#define X(name, lane, completions, timeout_ms) VX_##name,
    VOLUME_EFFECTS(X)
#undef X
        VX_COUNT,
};

/* What the core knows of the other claims on the same volume and of the plugin, in fsm_now.peers;
 * gathered by volume_add_peer from the records as they are at the step. */
enum {
    PEERS_USERS = 0xFFFF,           /* claims beside this one that count as users */
    PEERS_BUSY = 1 << 16,           /* one of them has a call under way */
    PEERS_STAGED = 1 << 17,         /* one of them has staged the volume */
    PEERS_PLUGIN_READY = 1 << 18,
    PEERS_PLUGIN_STAGES = 1 << 19,  /* the plugin wants volumes staged */
    PEERS_DEBT = 1 << 20,           /* one that leaves has left it staged */
    PEERS_PLUGIN_GONE = 1 << 21,    /* no instance of it is known, in whatever state */
    PEERS_CALLS_OVER = 1 << 22,     /* all who could be at work on a call of it have ended */
};

/* Of a target that is published with other arguments: it is undone once, then published. */
enum volume_undo { UNDO_NOT, UNDO_BEGUN, UNDO_DONE };

/* A call that was given up, by its limit or with a daemon, may go on in the plugin for a while: its
 * opposite waits for the end of that, and so does the claim before it is let go.  The end of the
 * plugin's task is the end of all its calls. */
#define VOLUME_FIELDS(X)                                                                           \
    X(U64, retry_at_ms, 0, "DRAINING after a failure: node time of the next try, 0: no pause")     \
    X(U64, plugin_until_ms, 0, "node time by which a plugin must be ready (QUEUED) or known (on "  \
                               "the way back), 0: one is")                                         \
    X(U64, makes_until_ms, 0, "until then a stage or publish that was given up may go on")         \
    X(U64, undoes_until_ms, 0, "until then an unstage that was given up may go on, 0: none")       \
    X(U64, looked_ms, 0, "node time at which the mount was seen last")                             \
    X(U64, called_ms, 0, "node time at which the plugin was called last, 0: it never was")         \
    X(U32, failures, 0, "calls on the way back that have failed since one succeeded")              \
    X(U32, tries, 0, "stages and publishes that have failed since it was wanted or mounted")       \
    X(FLAG, staged, 0, "this claim has staged it, or may have (I-28)")                             \
    X(FLAG, published, 0, "published for this alloc, or may be")                                   \
    X(FLAG, claimed, 0, "the server holds a claim, or may")                                        \
    X(FLAG, release_wanted, 0, "its alloc has let go")                                             \
    X(FLAG, recoverable, 0, "the last failure may go away by itself")                              \
    X(U8, verdict, 0, "of the last call of the plugin that failed: enum csi_verdict")              \
    X(FLAG, restaged, 0, "publishing has led back to the stage once")                              \
    X(U8, undo, 0, "what published it otherwise is undone: enum volume_undo")                      \
    X(FLAG, calls, 0, "a call of the plugin is under way")                                         \
    X(U8, missed, 0, "publishes whose mount went away without an unpublish")                       \
    X(PAD, pad, 6, "")                                                                             \
    X(TEXT, external, VOLUME_NAME_SIZE, "the storage provider's id")                               \
    X(TEXT, failure, DESCRIPTION_SIZE, "the last one")
struct volume {
    struct machine machine;
    VOLUME_FIELDS(FIELD)
    struct volume_define define;
};

extern const struct fsm_def volume_def;

static inline const struct volume *volume_of(const struct machine *record)
{
    check(record->kind == MACHINE_VOLUME);
    return (const struct volume *)(const void *)record;
}

/* True if both claim the same volume on this node. */
bool volume_is_same(const struct volume *a, const struct volume *b);

/* True if it waits in QUEUED or DRAINING, and goes on when the plugin or other claims say so. */
bool volume_waits(const struct volume *volume);

/* True if it stays when others leave, and does not know yet all that the last user must know. */
bool volume_inherits(const struct volume *volume);

/* Adds what OTHER, a claim on the same volume, means for a step of another claim to PEERS. */
uint32_t volume_add_peer(uint32_t peers, const struct volume *other);

#endif
