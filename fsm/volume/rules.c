/*
 * The volume machine's rules.
 *
 * Whose turn it is comes in with the step (fsm_now.peers): the claim that has a call under way, or
 * is between two of its calls, holds the volume; all others wait in QUEUED or DRAINING until a TURN
 * wakes them.  Everything here is pure.
 */
#include "fsm/volume/rules.h"

#include "fsm/alloc.h"
#include "fsm/policy.h"

#include <string.h>

enum {
    RETRY_BACKOFF_MS = 1000,
    RETRY_BACKOFF_MS_MAX = 60000,
    RETRIES_MAX = 10,
    PLUGIN_WAIT_MS =
        60000,             /* for the first placement; a restored claim waits as long as it takes */
    DRAIN_RETRY_MS = 5000, /* somebody's TURN may have been lost with a daemon */
};

static struct volume *mutable_volume(struct machine *record)
{
    check(record->kind == MACHINE_VOLUME);
    return (struct volume *)(void *)record;
}

bool volume_is_same(const struct volume *a, const struct volume *b)
{
    return text_equal(a->define.volume, b->define.volume) &&
           text_equal(a->define.namespace, b->define.namespace) &&
           text_equal(a->define.plugin, b->define.plugin);
}

uint32_t volume_add_peer(uint32_t peers, const struct volume *other)
{
    uint8_t state = other->machine.state;

    check(state < V_COUNT);
    if (state == V_ABSENT)
        return peers;
    if (state == V_GONE || state == V_RELEASING)
        return other->staged ? peers | PEERS_DEBT : peers;
    if ((peers & PEERS_USERS) < PEERS_USERS)
        peers++;
    if (state == V_STAGING || state == V_PUBLISHING || state == V_UNPUBLISHING ||
        state == V_UNSTAGING)
        peers |= PEERS_BUSY;
    /* Known to be staged, in this boot: anything else is staged again, which does no harm. */
    if (other->staged && (state == V_PUBLISHING || state == V_READY || state == V_UNPUBLISHING))
        peers |= PEERS_STAGED;
    return peers;
}

static void absorb_failure(struct volume *volume, const struct failure *failure)
{
    volume->recoverable = failure->recoverable;
    (void)text_copy(volume->failure, sizeof(volume->failure), failure->text); /* same size */
}

/* A call of the way back has failed: others may have their turn, this one pauses. */
static void pause_back(struct volume *volume, const struct fsm_now *now)
{
    volume->failures++;
    volume->retry_at_ms = now->ms + policy_backoff_ms(RETRY_BACKOFF_MS, RETRY_BACKOFF_MS_MAX,
                                                      volume->failures, now->seed);
}

static void forget_failures(struct volume *volume)
{
    volume->failures = 0;
    volume->retry_at_ms = 0;
}

void volume_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct volume *volume = mutable_volume(record);

    switch ((enum volume_event_kind)event->kind) {
    case VE_DEFINE:
        check(record->state == V_ABSENT);
        volume->define = *(const struct volume_define *)event->payload;
        break;
    case VE_ADOPT: /* nothing is known, so everything may have been done (I-28) */
        check(record->state == V_ABSENT);
        volume->define = *(const struct volume_define *)event->payload;
        volume->claimed = volume->staged = volume->published = 1;
        record->generation = 1;
        (void)text_copy(volume->failure, sizeof(volume->failure),
                        "its record in the journal was damaged"); /* fits */
        break;
    case VE_RELEASE:
        volume->release_wanted = 1;
        break;
    case VE_CLAIMED:
        (void)text_copy(volume->external, sizeof(volume->external),
                        ((const struct claim *)event->payload)->external); /* same size */
        break;
    case VE_RELEASED:
        volume->claimed = 0;
        break;
    case VE_INHERIT:
        volume->staged = 1;
        break;
    case VE_UNPUBLISHED:
        volume->published = 0;
        forget_failures(volume);
        break;
    case VE_UNSTAGED:
        volume->staged = 0;
        forget_failures(volume);
        break;
    case VE_RPC_FAILED:
    case VE_NODE_FAILED:
        absorb_failure(volume, event->payload);
        if (record->state == V_UNPUBLISHING || record->state == V_UNSTAGING)
            pause_back(volume, now);
        break;
    case VE_TIMEOUT:
        volume->retry_at_ms = 0; /* a pause is over */
        if (record->state == V_QUEUED)
            (void)text_format(volume->failure, sizeof(volume->failure),
                              "plugin \"%.60s\" did not become ready in time",
                              volume->define.plugin); /* fits */
        break;
    case VE_WANT:
    case VE_TURN:
    case VE_PLUGIN_UP:
    case VE_PLUGIN_DOWN:
    case VE_DETACH:
    case VE_STAGED:
    case VE_PUBLISHED:
    case VE_MOUNT_FOUND:
    case VE_MOUNT_MISSING:
    case VE_RESTORE:
    case VE_COUNT:
        break;
    }
}

void volume_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now)
{
    struct volume *volume = mutable_volume(record);

    (void)event; /* everything of it has been absorbed */
    check(record->state == row->next);
    if (row->next != row->state && row->next == V_CLAIMING && record->generation == 0)
        record->generation = 1;
    /* Marked when the call is about to be made, not when it has answered (I-28). */
    if (row->next == V_CLAIMING)
        volume->claimed = 1;
    if (row->next == V_STAGING)
        volume->staged = 1;
    if (row->next == V_PUBLISHING) {
        volume->published = 1;
        if ((now->peers & PEERS_PLUGIN_STAGES) != 0)
            volume->staged = 1; /* also when another claim staged it: the last user unstages */
    }
}

uint64_t volume_deadline(const struct machine *record, const struct fsm_now *now)
{
    if (record->state == V_QUEUED)
        return record->restored ? 0 : now->ms + PLUGIN_WAIT_MS;
    check(record->state == V_DRAINING);
    if (volume_of(record)->retry_at_ms != 0)
        return volume_of(record)->retry_at_ms;
    return now->ms + policy_backoff_ms(DRAIN_RETRY_MS, RETRY_BACKOFF_MS_MAX, 1, now->seed);
}

uint64_t volume_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    return policy_backoff_ms(RETRY_BACKOFF_MS, RETRY_BACKOFF_MS_MAX, record->attempt, now->seed);
}

/* --- messages --- */

void volume_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx)
{
    const struct volume *volume = volume_of(record);
    struct member_news news = {.name = ""};
    struct fsm_message message = {.audience = TO_MACHINE, .to = machine_id_owner(self)};

    (void)event; /* the news is the state, whatever led to it */
    check(text_copy(news.name, sizeof(news.name), machine_id_name(self)));
    check(message.to.kind == MACHINE_ALLOC);
    message.event.payload = &news;
    switch ((enum volume_effect)effect) {
    case VX_SEND_READY:
        message.event.kind = AE_VOLUME_READY;
        break;
    case VX_SEND_FAILED:
        message.event.kind = AE_VOLUME_FAILED;
        (void)text_copy(news.text, sizeof(news.text), volume->failure); /* same size */
        break;
    case VX_SEND_GONE:
        message.event.kind = AE_VOLUME_GONE;
        break;
    case VX_SEND_TURN:
        message.audience = TO_VOLUME_PEERS;
        message.to = *self;
        message.event = (struct fsm_event){.kind = VE_TURN};
        /* One that is not the last user leaves the unstaging to those that stay (I-27).  Those of
         * them that step before they hear of it see its debt among their peers. */
        if (volume->staged && (record->state == V_RELEASING || record->state == V_GONE))
            message.event.kind = VE_INHERIT;
        break;
    case VX_NONE:
    case VX_CLAIM:
    case VX_UNCLAIM:
    case VX_STAGE:
    case VX_PUBLISH:
    case VX_UNPUBLISH:
    case VX_UNSTAGE:
    case VX_LOOK:
    case VX_BACKOFF:
    case VX_REPLY_OK:
    case VX_REPLY_BUSY:
    case VX_COUNT:
        unreachable("not a message");
    }
    send(ctx, &message);
}

uint32_t volume_record_size(const struct machine *record)
{
    check(record->kind == MACHINE_VOLUME);
    return (uint32_t)sizeof(struct volume);
}

/* --- guards --- */

#define GUARD(function, condition)                                                                 \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now)                                                       \
    {                                                                                              \
        const struct volume *volume = volume_of(record);                                           \
        uint32_t peers = now->peers;                                                               \
        (void)event;                                                                               \
        (void)volume;                                                                              \
        (void)peers;                                                                               \
        return condition;                                                                          \
    }

/* Nobody else has a call under way, and there is somebody to call. */
static bool our_turn(uint32_t peers)
{
    return (peers & PEERS_BUSY) == 0 && (peers & PEERS_PLUGIN_READY) != 0;
}

static bool is_staged(uint32_t peers)
{
    return (peers & PEERS_STAGED) != 0 || (peers & PEERS_PLUGIN_STAGES) == 0;
}

static bool last_user(uint32_t peers)
{
    return (peers & PEERS_USERS) == 0;
}

static bool must_unstage(const struct volume *volume, uint32_t peers)
{
    return (volume->staged || (peers & PEERS_DEBT) != 0) && last_user(peers);
}

static bool must_undo(const struct volume *volume, uint32_t peers)
{
    return volume->published || must_unstage(volume, peers);
}

/* clang-format off */
GUARD(volume_must_stage, our_turn(peers) && !is_staged(peers))
GUARD(volume_must_publish, our_turn(peers) && is_staged(peers))
GUARD(volume_plugin_stages, (peers & PEERS_PLUGIN_STAGES) != 0)
GUARD(volume_calling, volume->machine.lane_effect[LANE_NODE] != 0)
GUARD(volume_retry, volume->recoverable && volume->machine.attempt < RETRIES_MAX)
GUARD(volume_back_unpublish, volume->published && our_turn(peers))
GUARD(volume_back_unstage, !volume->published && must_unstage(volume, peers) && our_turn(peers))
GUARD(volume_again_unpublish, volume->published && our_turn(peers) && volume->retry_at_ms == 0)
GUARD(volume_again_unstage, !volume->published && must_unstage(volume, peers) &&
                                our_turn(peers) && volume->retry_at_ms == 0)
GUARD(volume_back_wait, must_undo(volume, peers))
GUARD(volume_back_claim, volume->claimed)
GUARD(volume_release_wanted, volume->release_wanted)
GUARD(volume_release_unpublish, volume->release_wanted && volume->published && our_turn(peers))
GUARD(volume_release_unstage, volume->release_wanted && !volume->published &&
                                  must_unstage(volume, peers) && our_turn(peers))
GUARD(volume_release_wait, volume->release_wanted && must_undo(volume, peers))
/* clang-format on */

const char *volume_broken(const struct machine *record)
{
    const struct volume *volume = volume_of(record);

    if (record->state != V_ABSENT &&
        (volume->define.plugin[0] == '\0' || volume->define.volume[0] == '\0'))
        return "a claim on nothing";
    if (!implies(record->state >= V_CLAIMING && record->state <= V_BROKEN, volume->claimed))
        return "wanted, but not claimed";
    if (!implies(record->state >= V_PUBLISHING && record->state <= V_VERIFYING, volume->published))
        return "in use, but not published";
    if (!implies(record->state == V_RELEASING, !volume->published && volume->release_wanted))
        return "being released while still published or wanted";
    if (!implies(record->state == V_DRAINING || record->state == V_UNPUBLISHING ||
                     record->state == V_UNSTAGING,
                 volume->release_wanted))
        return "on the way back, but nobody has let go";
    if (!implies(record->state == V_DRAINING, record->deadline_ms != 0))
        return "draining without a timer";
    return NULL;
}
