/*
 * The volume machine's table.  Only rows here; what guards and events mean is in rules.c.
 *
 * Forward: CLAIMING, QUEUED, STAGING, PUBLISHING, READY.  Back, from wherever forward ended:
 * UNPUBLISHING, UNSTAGING, RELEASING, with DRAINING as the waiting room.  A call that failed or
 * was cut off may have happened, so the way back undoes everything that was ever begun; a publish
 * that failed is tried again from the stage on, which may be what is missing (I-28).
 *
 * The plugin is not trusted to keep calls apart.  One that was given up may go on in it, and is
 * waited out before its opposite; what it says of a mount is believed for a few times, and then the
 * mount is taken away without it.  So it is when no instance of it is known any more for a while, as
 * when its job was purged.
 */
#include "fsm/volume/rules.h"

#define M(event) ((uint64_t)1 << VE_##event)
#define ALL (((uint64_t)1 << VE_COUNT) - 1)
#define STATE(name, flags, limit_ms, ignored, never)                                               \
    [V_##name] = {#name, limit_ms, ignored, never, flags}
#define ROW(state, event, guard, next, ...)                                                        \
    {V_##state, VE_##event, VG_##guard, V_##next, {__VA_ARGS__}}

_Static_assert((int)VE_COUNT <= (int)FSM_EVENTS_MAX, "events fit a mask");

/* clang-format off */

/* Completions by lane. */
#define RPC  (M(CLAIMED)|M(RELEASED)|M(RPC_FAILED))
#define UP   (M(STAGED)|M(PUBLISHED))
#define DOWN (M(UNPUBLISHED)|M(UNSTAGED))
#define LOOKS (M(MOUNT_FOUND)|M(MOUNT_MISSING))
#define NODE (UP|DOWN|LOOKS|M(NODE_FAILED))
#define MADE (M(DEFINE)|M(ADOPT))
#define ASKED (M(WANT)|M(LOOK)) /* what it does already, or did before its alloc let go */
#define WAKES (M(TURN)|M(PLUGIN_UP)|M(PLUGIN_DOWN))

/* One step forward, as far as it is our turn. */
#define FORWARD(s, e, ...)                                                                         \
    ROW(s, e, MUST_STAGE,      STAGING,      VX_STAGE),                                            \
    ROW(s, e, MUST_PUBLISH,    PUBLISHING,   VX_PUBLISH),                                          \
    ROW(s, e, ALWAYS,          QUEUED, ##__VA_ARGS__)

/* One step back: undo what was begun, newest first.  A claim that was wanted once is held. */
#define BACK(s, e, ...)                                                                            \
    ROW(s, e, BACK_UNPUBLISH,  UNPUBLISHING, VX_UNPUBLISH, ##__VA_ARGS__),                         \
    BACK_UNPUBLISHED(s, e, ##__VA_ARGS__)
#define BACK_UNPUBLISHED(s, e, ...)                                                                \
    ROW(s, e, BACK_UNSTAGE,    UNSTAGING,    VX_UNSTAGE, ##__VA_ARGS__),                           \
    ROW(s, e, BACK_WAIT,       DRAINING,     VX_SEND_TURN, ##__VA_ARGS__),                         \
    ROW(s, e, ALWAYS,          RELEASING,    VX_UNCLAIM, VX_SEND_TURN, ##__VA_ARGS__)

/* Of a claim whose record was lost nobody knows what its plugin calls the volume; and a plugin whose
 * job is gone calls nothing. */
#define BACK_NAMELESS(s, e)                                                                        \
    ROW(s, e, BACK_UNMOUNT,    UNPUBLISHING, VX_UNMOUNT),                                          \
    BACK_NAMELESS_UNPUBLISHED(s, e)
#define BACK_NAMELESS_UNPUBLISHED(s, e)                                                            \
    ROW(s, e, BACK_UNMOUNT_STAGING, UNSTAGING, VX_UNMOUNT_STAGING)

/* The same from the waiting room.  Going on waiting changes nothing for others: two that wait would
 * wake each other for ever.  One whose call has failed pauses, whoever wakes it: two whose calls
 * fail would, too. */
#define DRAIN(e, ...)                                                                              \
    ROW(DRAINING, e, AGAIN_UNMOUNT, UNPUBLISHING, VX_UNMOUNT),                                     \
    ROW(DRAINING, e, AGAIN_UNMOUNT_STAGING, UNSTAGING, VX_UNMOUNT_STAGING),                        \
    ROW(DRAINING, e, AGAIN_UNPUBLISH, UNPUBLISHING, VX_UNPUBLISH),                                 \
    ROW(DRAINING, e, AGAIN_UNSTAGE, UNSTAGING, VX_UNSTAGE),                                        \
    ROW(DRAINING, e, BACK_WAIT,    DRAINING, ##__VA_ARGS__),                                       \
    ROW(DRAINING, e, BACK_CLAIM,   RELEASING,  VX_UNCLAIM, VX_SEND_TURN),                          \
    ROW(DRAINING, e, ALWAYS,       GONE,       VX_SEND_GONE, VX_SEND_TURN)

/* The outcome that a RELEASE had to wait for has come; between two tries it waits for none.  Of a
 * volume that is published, or may be. */
#define BACK_IF_RELEASED(s, e)                                                                     \
    ROW(s, e, RELEASE_UNPUBLISH, UNPUBLISHING, VX_UNPUBLISH),                                      \
    ROW(s, e, RELEASE_WANTED,  DRAINING,     VX_SEND_TURN)

/* The same while it is staged: it may be published from before a restart. */
#define BACK_IF_RELEASED_STAGING(e)                                                                \
    ROW(STAGING, e, RELEASE_UNPUBLISH, UNPUBLISHING, VX_UNPUBLISH),                                \
    BACK_IF_RELEASED_UNPUBLISHED(STAGING, e)

/* And when it is not. */
#define BACK_IF_RELEASED_UNPUBLISHED(s, e)                                                         \
    ROW(s, e, RELEASE_UNSTAGE, UNSTAGING,    VX_UNSTAGE),                                          \
    ROW(s, e, RELEASE_WAIT,    DRAINING,     VX_SEND_TURN),                                        \
    ROW(s, e, RELEASE_WANTED,  RELEASING,    VX_UNCLAIM, VX_SEND_TURN)

/* A call has failed: try again, or give up and wait for the alloc to let go. */
#define ATTEMPT(s, failed)                                                                         \
    ROW(s, failed, RETRY,      s,            VX_BACKOFF),                                          \
    ROW(s, failed, ALWAYS,     BROKEN,       VX_SEND_FAILED, VX_SEND_TURN)

/* The same of a call to the plugin: who has waited so far without a reason hears of the first. */
#define ATTEMPT_CALL(s)                                                                            \
    ROW(s, NODE_FAILED, RETRY_FIRST, s,      VX_BACKOFF, VX_SEND_TROUBLE),                         \
    ATTEMPT(s, NODE_FAILED)

#define BUSY(s)     ROW(s, DETACH, ALWAYS, s, VX_REPLY_BUSY)
#define CLEAR(s)    ROW(s, DETACH, ALWAYS, s, VX_REPLY_OK)
#define NOTED(s, e) ROW(s, e, ALWAYS, s)

static const struct fsm_state volume_states[V_COUNT] = {
/*    state         flags         limit_ms         ignored: late or repeated             never: our own mistake */
STATE(ABSENT,       FSM_INITIAL,  0,               0,                                    ALL & ~MADE),
STATE(IDLE,         FSM_RESTING,  0,               MADE|M(LOOK)|WAKES,                      RPC|NODE|M(TIMEOUT)),
STATE(CLAIMING,     0,            60000,           MADE|ASKED|WAKES,              NODE|M(RELEASED)),
STATE(QUEUED,       FSM_RESTING,  FSM_LIMIT_RECORD, MADE|ASKED|RPC,               NODE),
STATE(STAGING,      0,            0,               MADE|ASKED|WAKES|RPC,          DOWN|LOOKS|M(PUBLISHED)),
STATE(PUBLISHING,   0,            0,               MADE|ASKED|WAKES|RPC,          M(UNSTAGED)|LOOKS),
STATE(READY,        FSM_RESTING,  0,               MADE|M(WANT)|WAKES|RPC|M(STAGED)|M(UNPUBLISHED)|M(NODE_FAILED), M(UNSTAGED)|LOOKS|M(PUBLISHED)|M(TIMEOUT)),
STATE(VERIFYING,    0,            10000,           MADE|ASKED|WAKES|RPC,          UP|DOWN),
STATE(BROKEN,       FSM_RESTING,  0,               MADE|M(WANT)|WAKES|RPC,          NODE|M(TIMEOUT)),
STATE(DRAINING,     FSM_RESTING,  FSM_LIMIT_RECORD, MADE|ASKED|M(RELEASE)|RPC|UP|M(UNPUBLISHED)|M(NODE_FAILED), M(UNSTAGED)|LOOKS),
STATE(UNPUBLISHING, 0,            120000,          MADE|ASKED|M(RELEASE)|WAKES|RPC|UP|LOOKS, M(UNSTAGED)),
STATE(UNSTAGING,    0,            120000,          MADE|ASKED|M(RELEASE)|WAKES|RPC|UP|LOOKS, M(UNPUBLISHED)),
STATE(RELEASING,    0,            60000,           MADE|ASKED|M(RELEASE)|WAKES|M(INHERIT)|M(CLAIMED)|UP|M(UNPUBLISHED)|M(NODE_FAILED), M(UNSTAGED)|LOOKS),
STATE(GONE,         FSM_FINAL,    0,               0,                                    ALL),
};

static const struct fsm_row volume_rows[] = {
/*  state         event          guard           next          effects, in order, after the commit */
ROW(ABSENT,       DEFINE,        ALWAYS,         IDLE),
ROW(ABSENT,       ADOPT,         ALWAYS,         BROKEN,       VX_SEND_FAILED),

ROW(IDLE,         WANT,          ALWAYS,         CLAIMING,     VX_CLAIM),
ROW(IDLE,         RELEASE,       BACK_UNSTAGE,   UNSTAGING,    VX_UNSTAGE),
ROW(IDLE,         RELEASE,       BACK_WAIT,      DRAINING,     VX_SEND_TURN),
ROW(IDLE,         RELEASE,       BACK_CLAIM,     RELEASING,    VX_UNCLAIM, VX_SEND_TURN), /* inherited */
ROW(IDLE,         RELEASE,       ALWAYS,         GONE,         VX_SEND_GONE, VX_SEND_TURN),
NOTED(IDLE,       INHERIT),
CLEAR(IDLE),
ROW(IDLE,         RESTORE,       ALWAYS,         IDLE),

BACK(CLAIMING,    RELEASE),
NOTED(CLAIMING,   INHERIT),
BUSY(CLAIMING),
FORWARD(CLAIMING, CLAIMED),
ATTEMPT(CLAIMING, RPC_FAILED),
ROW(CLAIMING,     TIMEOUT,       ALWAYS,         CLAIMING,     VX_CLAIM),
ROW(CLAIMING,     RESTORE,       PAUSING,        CLAIMING),
ROW(CLAIMING,     RESTORE,       ALWAYS,         CLAIMING,     VX_CLAIM),

BACK(QUEUED,      RELEASE),
FORWARD(QUEUED,   TURN),
FORWARD(QUEUED,   INHERIT),
FORWARD(QUEUED,   PLUGIN_UP),
NOTED(QUEUED,     PLUGIN_DOWN),
BUSY(QUEUED),
ROW(QUEUED,       TIMEOUT,       PLUGIN_MISSED,  BROKEN,       VX_SEND_FAILED, VX_SEND_TURN),
FORWARD(QUEUED,   TIMEOUT,       VX_SEND_TURN),
ROW(QUEUED,       RESTORE,       ALWAYS,         CLAIMING,     VX_CLAIM, VX_SEND_TURN),

ROW(STAGING,      RELEASE,       CALLING,        STAGING),
BACK(STAGING,     RELEASE),
NOTED(STAGING,    INHERIT),
BUSY(STAGING),
BACK_IF_RELEASED_STAGING(STAGED),
ROW(STAGING,      STAGED,        ALWAYS,         PUBLISHING,   VX_PUBLISH),
BACK_IF_RELEASED_STAGING(NODE_FAILED),
ATTEMPT_CALL(STAGING),
ROW(STAGING,      TIMEOUT,       ALWAYS,         STAGING,      VX_STAGE),
ROW(STAGING,      RESTORE,       RELEASE_WANTED, DRAINING,     VX_SEND_TURN),
ROW(STAGING,      RESTORE,       ALWAYS,         CLAIMING,     VX_CLAIM, VX_SEND_TURN),

ROW(PUBLISHING,   RELEASE,       CALLING,        PUBLISHING),
ROW(PUBLISHING,   RELEASE,       BACK_UNPUBLISH, UNPUBLISHING, VX_UNPUBLISH),
ROW(PUBLISHING,   RELEASE,       ALWAYS,         DRAINING,     VX_SEND_TURN),
NOTED(PUBLISHING, INHERIT),
BUSY(PUBLISHING),
BACK_IF_RELEASED(PUBLISHING, STAGED),
ROW(PUBLISHING,   STAGED,        ALWAYS,         PUBLISHING,   VX_PUBLISH),
BACK_IF_RELEASED(PUBLISHING, PUBLISHED),
ROW(PUBLISHING,   PUBLISHED,     ALWAYS,         READY,        VX_SEND_READY, VX_SEND_TURN),
BACK_IF_RELEASED_UNPUBLISHED(PUBLISHING, UNPUBLISHED),
ROW(PUBLISHING,   UNPUBLISHED,   ALWAYS,         PUBLISHING,   VX_PUBLISH),
BACK_IF_RELEASED(PUBLISHING, NODE_FAILED),
ROW(PUBLISHING,   NODE_FAILED,   UNDOING,        BROKEN,       VX_SEND_FAILED, VX_SEND_TURN),
ROW(PUBLISHING,   NODE_FAILED,   STAGE_FIRST,    PUBLISHING,   VX_STAGE, VX_SEND_TROUBLE),
ROW(PUBLISHING,   NODE_FAILED,   UNDO_FIRST,     PUBLISHING,   VX_UNPUBLISH, VX_SEND_TROUBLE),
ATTEMPT_CALL(PUBLISHING),
ROW(PUBLISHING,   TIMEOUT,       PLUGIN_STAGES,  PUBLISHING,   VX_STAGE),
ROW(PUBLISHING,   TIMEOUT,       ALWAYS,         PUBLISHING,   VX_PUBLISH),
ROW(PUBLISHING,   RESTORE,       RELEASE_WANTED, DRAINING,     VX_SEND_TURN),
ROW(PUBLISHING,   RESTORE,       ALWAYS,         CLAIMING,     VX_CLAIM, VX_SEND_TURN),

ROW(READY,        RELEASE,       BACK_UNPUBLISH, UNPUBLISHING, VX_UNPUBLISH),
ROW(READY,        RELEASE,       ALWAYS,         DRAINING,     VX_SEND_TURN),
NOTED(READY,      INHERIT),
BUSY(READY),
ROW(READY,        RESTORE,       ALWAYS,         VERIFYING,    VX_LOOK),
ROW(READY,        LOOK,          ALWAYS,         VERIFYING,    VX_LOOK),

NOTED(VERIFYING,  RELEASE),
NOTED(VERIFYING,  INHERIT),
BUSY(VERIFYING),
BACK_IF_RELEASED(VERIFYING, MOUNT_FOUND),
ROW(VERIFYING,    MOUNT_FOUND,   ALWAYS,         READY,        VX_SEND_READY),
BACK_IF_RELEASED(VERIFYING, MOUNT_MISSING),
ROW(VERIFYING,    MOUNT_MISSING, ALWAYS,         CLAIMING,     VX_CLAIM),
BACK_IF_RELEASED(VERIFYING, NODE_FAILED),
ATTEMPT(VERIFYING, NODE_FAILED),
ROW(VERIFYING,    TIMEOUT,       ALWAYS,         VERIFYING,    VX_LOOK),
ROW(VERIFYING,    RESTORE,       PAUSING,        VERIFYING),
ROW(VERIFYING,    RESTORE,       ALWAYS,         VERIFYING,    VX_LOOK),

BACK_NAMELESS(BROKEN, RELEASE),
BACK(BROKEN,      RELEASE),
NOTED(BROKEN,     INHERIT),
BUSY(BROKEN),
ROW(BROKEN,       RESTORE,       ALWAYS,         BROKEN,       VX_SEND_FAILED),
ROW(BROKEN,       LOOK,          ALWAYS,         VERIFYING,    VX_LOOK), /* one more try */

DRAIN(TURN),
DRAIN(INHERIT),
DRAIN(PLUGIN_UP),
NOTED(DRAINING,   PLUGIN_DOWN),
BUSY(DRAINING),
DRAIN(TIMEOUT,    VX_SEND_TURN), /* what was given up is over: others may have waited for that */
ROW(DRAINING,     RESTORE,       BACK_WAIT,      DRAINING), /* no plugin is ready yet */
ROW(DRAINING,     RESTORE,       BACK_CLAIM,     RELEASING,    VX_UNCLAIM, VX_SEND_TURN),
ROW(DRAINING,     RESTORE,       ALWAYS,         GONE,         VX_SEND_GONE, VX_SEND_TURN),

NOTED(UNPUBLISHING, INHERIT),
BUSY(UNPUBLISHING),
ROW(UNPUBLISHING, UNPUBLISHED,   MISSED,         UNPUBLISHING, VX_UNPUBLISH),
BACK_NAMELESS_UNPUBLISHED(UNPUBLISHING, UNPUBLISHED),
BACK_UNPUBLISHED(UNPUBLISHING, UNPUBLISHED),
ROW(UNPUBLISHING, NODE_FAILED,   LIED,           UNPUBLISHING, VX_UNMOUNT),
ROW(UNPUBLISHING, NODE_FAILED,   ALWAYS,         DRAINING,     VX_SEND_TURN),
ROW(UNPUBLISHING, TIMEOUT,       ALWAYS,         UNPUBLISHING, VX_UNPUBLISH),
ROW(UNPUBLISHING, RESTORE,       ALWAYS,         DRAINING,     VX_SEND_TURN),

NOTED(UNSTAGING,  INHERIT),
BUSY(UNSTAGING),
ROW(UNSTAGING,    UNSTAGED,      STRAYING,       DRAINING),
ROW(UNSTAGING,    UNSTAGED,      BACK_CLAIM,     RELEASING,    VX_UNCLAIM, VX_SEND_TURN),
ROW(UNSTAGING,    UNSTAGED,      ALWAYS,         GONE,         VX_SEND_GONE, VX_SEND_TURN),
ROW(UNSTAGING,    NODE_FAILED,   LIED,           UNSTAGING,    VX_UNMOUNT_STAGING),
ROW(UNSTAGING,    NODE_FAILED,   ALWAYS,         DRAINING,     VX_SEND_TURN),
ROW(UNSTAGING,    TIMEOUT,       ALWAYS,         UNSTAGING,    VX_UNSTAGE),
ROW(UNSTAGING,    RESTORE,       ALWAYS,         DRAINING,     VX_SEND_TURN),

CLEAR(RELEASING),
ROW(RELEASING,    RELEASED,      ALWAYS,         GONE,         VX_SEND_GONE),
ROW(RELEASING,    RPC_FAILED,    ALWAYS,         RELEASING,    VX_BACKOFF),
ROW(RELEASING,    TIMEOUT,       ALWAYS,         RELEASING,    VX_UNCLAIM),
ROW(RELEASING,    RESTORE,       PAUSING,        RELEASING),
ROW(RELEASING,    RESTORE,       ALWAYS,         RELEASING,    VX_UNCLAIM),
};

/* clang-format on */

static const struct fsm_event_def volume_events[VE_COUNT] = {
#define X(name, class, payload) [VE_##name] = {#name, FSM_##class, PAYLOAD_##payload},
    VOLUME_EVENTS(X)
#undef X
};

static const struct fsm_effect_def volume_effects[VX_COUNT] = {
    [VX_NONE] = {"NONE", LANE_TELL, 0, 0},
#define X(name, lane, completions, timeout_ms)                                                     \
    [VX_##name] = {#name, LANE_##lane, completions, timeout_ms},
    VOLUME_EFFECTS(X)
#undef X
};

static const struct fsm_guard_def volume_guards[VG_COUNT] = {
    [VG_ALWAYS] = {"ALWAYS", NULL},
#define X(name, function) [VG_##name] = {#name, function},
    VOLUME_GUARDS(X)
#undef X
};

const struct fsm_def volume_def = {
    .name = "volume",
    .kind = MACHINE_VOLUME,
    .states = volume_states,
    .states_count = V_COUNT,
    .rows = volume_rows,
    .rows_count = COUNT_OF(volume_rows),
    .events = volume_events,
    .events_count = VE_COUNT,
    .effects = volume_effects,
    .effects_count = VX_COUNT,
    .guards = volume_guards,
    .guards_count = VG_COUNT,
    .after_sweep = (uint64_t)1 << VX_UNPUBLISH | (uint64_t)1 << VX_UNSTAGE |
                   (uint64_t)1 << VX_UNMOUNT | (uint64_t)1 << VX_UNMOUNT_STAGING |
                   (uint64_t)1 << VX_UNCLAIM, /* nothing is let go under a process */
    .paced = (uint64_t)1 << VG_AGAIN_UNPUBLISH | (uint64_t)1 << VG_AGAIN_UNSTAGE |
             (uint64_t)1 << VG_AGAIN_UNMOUNT | (uint64_t)1 << VG_AGAIN_UNMOUNT_STAGING |
             (uint64_t)1 << VG_STAGE_FIRST | (uint64_t)1 << VG_UNDO_FIRST |
             (uint64_t)1 << VG_LIED | /* these three: once for each way forward, or call */
             (uint64_t)1 << VG_MISSED, /* once for each time that a mount was missing */
    .paced_events = M(LOOK), /* once for each start of a task, which its own table paces */
    .timeout_event = VE_TIMEOUT,
    .restore_event = VE_RESTORE,
    .record_bytes = sizeof(struct volume),
    .absorb = volume_absorb,
    .enter = volume_enter,
    .deadline = volume_deadline,
    .backoff_ms = volume_backoff_ms,
    .send = volume_send,
    .record_size = volume_record_size,
    .broken = volume_broken,
};
