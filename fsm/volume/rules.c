/*
 * The volume machine's rules.
 *
 * Whose turn it is comes in with the step (fsm_now.peers): the claim that has a call under way, or
 * is between two of its calls, holds the volume; all others wait in QUEUED or DRAINING until a TURN
 * wakes the first of them whom it leads on.  Everything here is pure.
 */
#include "fsm/volume/rules.h"

#include "fsm/alloc.h"
#include "fsm/csi.h"
#include "fsm/policy.h"

#include <string.h>

enum {
    RETRY_BACKOFF_MS = 1000,
    RETRY_BACKOFF_MS_MAX = 60000,
    RETRIES_MAX = 10,
    DOUBTS_MAX = 5,             /* what plugins say of anything is not asked for often */
    CLAIMS_MAX = 24 * 60,       /* others may have the volume for a day, as for nomad */
    LOOKS_MAX = 30,             /* about half an hour */
    MISSED_MAX = 100,           /* plugins that count are told as often that it is not published */
    MISSED_LOST = 8,            /* the same of a claim whose record was lost */
    LIES_MAX = 4,               /* a mount that is said to be gone is looked at for some seconds */
    LIES_BACKOFF_MS_MAX = 4000, /* who waits for the plugin to mean it waits in vain, as a rule */
    PLUGIN_WAIT_MS = 60000,     /* for the first placement */
    RESTORED_WAIT_MS = 1800000, /* plugins come back, too, and what runs is left alone; one whose
                                 * job is gone does not, and what it has mounted is let go */
    STRAY_MS = 45000, /* a call that was given up is called off: what its plugin still does is over
                       * by then */
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

bool volume_waits(const struct volume *volume)
{
    return volume->machine.state == V_QUEUED || volume->machine.state == V_DRAINING;
}

/* What the plugin calls it was lost with the record. */
static bool is_nameless(const struct volume *volume)
{
    return volume->external[0] == '\0';
}

bool volume_inherits(const struct volume *volume)
{
    uint8_t state = volume->machine.state;

    return state != V_ABSENT && state != V_RELEASING && state != V_GONE &&
           (!volume->staged || !volume->claimed || is_nameless(volume));
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
        state == V_UNSTAGING || other->undoes_until_ms != 0)
        peers |= PEERS_BUSY;
    /* Known to be staged, in this boot: anything else is staged again, which does no harm. */
    if (other->staged && (state == V_PUBLISHING || state == V_READY || state == V_UNPUBLISHING))
        peers |= PEERS_STAGED;
    return peers;
}

static void absorb_failure(struct volume *volume, const struct failure *failure)
{
    bool known = failure->verdict != CSI_DONE && failure->verdict < CSI_VERDICT_COUNT;

    volume->verdict = known ? failure->verdict : CSI_DONE;
    volume->recoverable = known ? failure->verdict != CSI_REFUSED : failure->recoverable;
    (void)text_copy(volume->failure, sizeof(volume->failure), failure->text); /* same size */
}

/* Whoever was at work on what was given up has ended, and does not go on with it. */
static void forget_strays(struct volume *volume, const struct fsm_now *now)
{
    if ((now->peers & PEERS_CALLS_OVER) != 0)
        volume->makes_until_ms = volume->undoes_until_ms = 0;
}

/* The call under way is given up, and may go on from here. */
static void note_stray(struct volume *volume, const struct fsm_now *now)
{
    uint8_t state = volume->machine.state;

    if (state == V_UNSTAGING || volume->undo == UNDO_BEGUN)
        volume->undoes_until_ms = now->ms + STRAY_MS;
    else if (state == V_STAGING || state == V_PUBLISHING)
        volume->makes_until_ms = now->ms + STRAY_MS;
}

/* A mount went away without its plugin, which counts one more when it is published again. */
static void note_missed(struct volume *volume)
{
    if (volume->missed < MISSED_MAX)
        volume->missed++;
}

static void absorb_restore(struct volume *volume, const struct restore *restore,
                           const struct fsm_now *now)
{
    if (restore->rebooted)
        volume->makes_until_ms = volume->undoes_until_ms = 0; /* no plugin has lived on */
    else if (volume->calls)
        note_stray(volume, now); /* however long ago it was made: the host may have slept since */
    if (volume->published && volume->machine.state < V_READY)
        note_missed(volume); /* it may have been, and nobody is going to look whether it still is */
    volume->calls = 0;
    volume->undo = UNDO_NOT;
    /* It waits for longer, once, and anew if its time has come while nobody would have seen one. */
    if (!volume->release_wanted &&
        (!volume->machine.restored || volume->plugin_until_ms <= now->ms))
        volume->plugin_until_ms = 0;
}

/* A call of the way back has failed: others may have their turn, this one pauses. */
static void pause_back(struct volume *volume, const struct fsm_now *now)
{
    uint64_t max_ms = volume->verdict == CSI_LIES ? LIES_BACKOFF_MS_MAX : RETRY_BACKOFF_MS_MAX;

    volume->failures++;
    volume->retry_at_ms =
        now->ms + policy_backoff_ms(RETRY_BACKOFF_MS, max_ms, volume->failures, now->seed);
}

static void forget_failures(struct volume *volume)
{
    volume->failures = 0;
    volume->retry_at_ms = 0;
}

static void absorb_node_failed(struct volume *volume, const struct failure *failure,
                               const struct fsm_now *now)
{
    uint8_t state = volume->machine.state;

    absorb_failure(volume, failure);
    volume->calls = 0;
    if (failure->may_run)
        note_stray(volume, now);
    if (state == V_STAGING || state == V_PUBLISHING)
        volume->tries++;
    if (state == V_UNPUBLISHING || state == V_UNSTAGING)
        pause_back(volume, now);
}

/* It waits for a plugin, and none has come in time. */
static bool misses_plugin(const struct volume *volume, uint64_t now_ms)
{
    return volume->machine.state == V_QUEUED && volume->plugin_until_ms != 0 &&
           volume->plugin_until_ms <= now_ms;
}

/* It is let go, and nobody has known its plugin for so long that none will come. */
static bool is_forsaken(const struct volume *volume, uint32_t peers, uint64_t now_ms)
{
    return volume->release_wanted && (peers & PEERS_PLUGIN_GONE) != 0 &&
           volume->plugin_until_ms != 0 && volume->plugin_until_ms <= now_ms;
}

/* What was waited for until a time that has come. */
static void absorb_timeout(struct volume *volume, const struct fsm_now *now)
{
    uint64_t *const times[] = {&volume->retry_at_ms, &volume->makes_until_ms,
                               &volume->undoes_until_ms};

    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (*times[i] <= now->ms)
            *times[i] = 0;
    }
    if (misses_plugin(volume, now->ms))
        (void)text_format(volume->failure, sizeof(volume->failure),
                          "plugin \"%.60s\" did not become ready in time",
                          volume->define.plugin); /* fits */
    if (is_forsaken(volume, now->peers, now->ms))
        (void)text_format(volume->failure, sizeof(volume->failure),
                          "plugin \"%.60s\" is gone: unmounted without it",
                          volume->define.plugin); /* fits */
}

/* It was staged by another claim, which may know more of it.  The server is told once more when
 * nothing is staged any more: it must not take the last claim that had it mounted for the end. */
static void absorb_inherit(struct volume *volume, const struct claim *from)
{
    volume->staged = volume->claimed = 1;
    if (is_nameless(volume))
        (void)text_copy(volume->external, sizeof(volume->external), from->external); /* same size */
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
        volume->missed = MISSED_LOST;
        volume->called_ms = now->ms;
        volume->makes_until_ms = now->ms + STRAY_MS;
        record->generation = 1;
        (void)text_copy(volume->failure, sizeof(volume->failure),
                        "its record in the journal was damaged"); /* fits */
        break;
    case VE_RELEASE:
        volume->release_wanted = 1;
        volume->plugin_until_ms = 0; /* on the way back another wait begins */
        break;
    case VE_PLUGIN_DOWN:
        if (volume->release_wanted)
            volume->plugin_until_ms = 0; /* it was known until now */
        break;
    case VE_CLAIMED:
        (void)text_copy(volume->external, sizeof(volume->external),
                        ((const struct claim *)event->payload)->external); /* same size */
        break;
    case VE_RELEASED:
        volume->claimed = 0;
        break;
    case VE_INHERIT:
        absorb_inherit(volume, event->payload);
        break;
    case VE_STAGED:
        volume->calls = 0;
        break;
    case VE_PUBLISHED:
    case VE_MOUNT_FOUND:
        volume->calls = 0;
        volume->looked_ms = now->ms;
        break;
    case VE_MOUNT_MISSING:
        note_missed(volume);
        break;
    case VE_UNPUBLISHED:
        volume->calls = 0;
        volume->published = volume->missed > 0;
        volume->missed -= volume->published;
        volume->undo = volume->undo == UNDO_NOT ? UNDO_NOT : UNDO_DONE;
        forget_failures(volume);
        break;
    case VE_UNSTAGED:
        volume->calls = 0;
        volume->staged = 0;
        forget_failures(volume);
        break;
    case VE_RPC_FAILED:
        absorb_failure(volume, event->payload);
        break;
    case VE_NODE_FAILED:
        absorb_node_failed(volume, event->payload, now);
        break;
    case VE_TIMEOUT:
        absorb_timeout(volume, now);
        break;
    case VE_RESTORE:
        absorb_restore(volume, event->payload, now);
        break;
    case VE_WANT:
    case VE_LOOK:
    case VE_TURN:
    case VE_PLUGIN_UP:
    case VE_DETACH:
    case VE_COUNT:
        break;
    }
    if (event->kind != VE_ADOPT) /* what the peers are was asked for a claim that was not there */
        forget_strays(volume, now);
}

/* --- enter --- */

/* The plugin is asked to do something, which ends by its answer or by its limit. */
static void note_call(struct volume *volume, uint8_t effect, const struct fsm_now *now)
{
    if (effect != VX_STAGE && effect != VX_PUBLISH && effect != VX_UNPUBLISH &&
        effect != VX_UNSTAGE)
        return;
    volume->calls = 1;
    volume->called_ms = now->ms;
}

/* A plugin is waited for as long as there is none; that others are called first costs nothing.
 * Whoever gave up and tries once more waits anew.  On the way back one that is known, be it unwell,
 * is waited for as long as it takes. */
static void note_plugin(struct volume *volume, const struct fsm_now *now)
{
    uint8_t state = volume->machine.state;
    bool drains = state == V_DRAINING, gone = (now->peers & PEERS_PLUGIN_GONE) != 0;
    bool patient = volume->machine.restored || drains;

    if ((now->peers & PEERS_PLUGIN_READY) != 0 || state == V_READY || state == V_BROKEN ||
        (drains && !gone))
        volume->plugin_until_ms = 0;
    else if ((state == V_QUEUED || drains) && volume->plugin_until_ms == 0)
        volume->plugin_until_ms = now->ms + (patient ? RESTORED_WAIT_MS : PLUGIN_WAIT_MS);
}

/* The plugin's answer has led to another call before what failed is called again. */
static void note_detour(struct volume *volume, uint8_t effect)
{
    if (effect == VX_STAGE)
        volume->restaged = 1;
    if (effect == VX_UNPUBLISH)
        volume->undo = UNDO_BEGUN;
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
    if (row->state == V_PUBLISHING && row->event == VE_NODE_FAILED && row->next == V_PUBLISHING)
        note_detour(volume, row->effects[0]);
    if (row->effects[0] == VX_UNMOUNT)
        volume->missed = 0; /* what the plugin counts matters no more */
    if (row->next == V_READY || row->state == V_IDLE)
        volume->tries = volume->restaged = volume->undo = 0;
    note_call(volume, row->effects[0], now);
    note_plugin(volume, now);
}

/* What was given up may go on for so long, if it still may. */
static bool is_making(const struct volume *volume, uint64_t now_ms)
{
    return volume->makes_until_ms > now_ms;
}

static bool is_straying(const struct volume *volume, uint64_t now_ms)
{
    return is_making(volume, now_ms) || volume->undoes_until_ms > now_ms;
}

uint64_t volume_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    bool calls = record->state == V_STAGING || record->state == V_PUBLISHING;

    return policy_backoff_ms(RETRY_BACKOFF_MS, RETRY_BACKOFF_MS_MAX,
                             calls ? volume_of(record)->tries : record->attempt, now->seed);
}

/* --- messages --- */

void volume_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx)
{
    const struct volume *volume = volume_of(record);
    struct member_news news = {.name = ""};
    struct claim left = {.external = ""};
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
    case VX_SEND_TROUBLE:
        message.event.kind = AE_VOLUME_TROUBLED;
        (void)text_copy(news.text, sizeof(news.text), volume->failure); /* same size */
        break;
    case VX_SEND_GONE:
        message.event.kind = AE_VOLUME_GONE;
        break;
    case VX_SEND_TURN:
        message.to = *self;
        /* One that is not the last user leaves the unstaging to those that stay (I-27).  Those of
         * them that step before they hear of it see its debt among their peers. */
        if (volume->staged && (record->state == V_RELEASING || record->state == V_GONE)) {
            message.audience = TO_VOLUME_HEIRS;
            message.event = (struct fsm_event){.kind = VE_INHERIT, .payload = &left};
            (void)text_copy(left.external, sizeof(left.external), volume->external); /* same size */
            send(ctx, &message);
        }
        message.audience = TO_VOLUME_NEXT;
        message.event = (struct fsm_event){.kind = VE_TURN};
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
    case VX_UNMOUNT:
    case VX_UNMOUNT_STAGING:
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
        uint64_t ms = now->ms;                                                                     \
        (void)event;                                                                               \
        (void)ms;                                                                                  \
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

/* Its turn to call the plugin on the way forward; what it has unpublished itself, to publish it as
 * it is to be, may have been given up. */
static bool may_make(const struct volume *volume, uint32_t peers)
{
    return our_turn(peers) && volume->undoes_until_ms == 0;
}

/* Its turn to call the plugin on the way back. */
static bool may_undo(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return our_turn(peers) && !is_nameless(volume) && !is_making(volume, ms);
}

/* To take a mount away without the plugin. */
static bool may_unmount(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return (peers & PEERS_BUSY) == 0 && !is_making(volume, ms) &&
           (is_nameless(volume) || is_forsaken(volume, peers, ms));
}

static bool unpublishes(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return volume->published && may_undo(volume, peers, ms);
}

static bool unstages(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return !volume->published && must_unstage(volume, peers) && may_undo(volume, peers, ms);
}

static bool unmounts(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return volume->published && may_unmount(volume, peers, ms);
}

static bool unmounts_staging(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    return !volume->published && must_unstage(volume, peers) && may_unmount(volume, peers, ms);
}

/* --- until when it waits --- */

/* On the way back, and nobody has to be waited for. */
static bool goes_on(const struct volume *volume, uint32_t peers, uint64_t ms)
{
    if (!must_undo(volume, peers))
        return !is_straying(volume, ms);
    return may_undo(volume, peers, ms) || may_unmount(volume, peers, ms);
}

/* What is waited for beside a time says so itself: the plugin, and other claims. */
uint64_t volume_deadline(const struct machine *record, const struct fsm_now *now)
{
    const struct volume *volume = volume_of(record);
    bool drains = record->state == V_DRAINING;

    check(volume_waits(volume));
    if (drains && is_making(volume, now->ms))
        return volume->makes_until_ms;
    if (volume->retry_at_ms != 0)
        return volume->retry_at_ms;
    if (drains && goes_on(volume, now->peers, now->ms))
        return now->ms;
    if (volume->undoes_until_ms != 0)
        return volume->undoes_until_ms;
    if (misses_plugin(volume, now->ms))
        return now->ms; /* its time was over before it came here */
    return volume->plugin_until_ms > now->ms ? volume->plugin_until_ms : 0;
}

/* --- whether it goes on as it is asked to --- */

/* Tries of what has failed that are left. */
static bool has_tries(const struct volume *volume)
{
    bool doubted = volume->verdict == CSI_DOUBT || volume->verdict == CSI_LIES;

    switch (volume->machine.state) {
    case V_CLAIMING:
        return volume->machine.attempt < CLAIMS_MAX;
    case V_VERIFYING:
        return volume->machine.attempt < LOOKS_MAX;
    default:
        return volume->tries < (doubted ? DOUBTS_MAX : RETRIES_MAX);
    }
}

/* clang-format off */
GUARD(volume_must_stage, may_make(volume, peers) && !is_staged(peers))
GUARD(volume_must_publish, may_make(volume, peers) && is_staged(peers))
GUARD(volume_plugin_missed, misses_plugin(volume, ms))
GUARD(volume_plugin_stages, (peers & PEERS_PLUGIN_STAGES) != 0)
GUARD(volume_calling, volume->machine.lane_effect[LANE_NODE] != 0)
GUARD(volume_retry, (volume->recoverable || volume->machine.state == V_VERIFYING) &&
                        has_tries(volume)) /* no look says that none will ever do */
GUARD(volume_retry_first, volume_retry(record, event, now) && volume->tries == 1)
GUARD(volume_stage_first, volume->verdict == CSI_STAGE_FIRST && !volume->restaged &&
                              (peers & PEERS_PLUGIN_STAGES) != 0)
GUARD(volume_undo_first, (volume->verdict == CSI_UNDO_FIRST || volume->verdict == CSI_LIES) &&
                             volume->undo == UNDO_NOT && volume->looked_ms == 0)
GUARD(volume_undoing, volume->undo == UNDO_BEGUN)
GUARD(volume_missed, volume->published)
GUARD(volume_lied, volume->verdict == CSI_LIES && volume->failures >= LIES_MAX)
GUARD(volume_back_unpublish, unpublishes(volume, peers, ms))
GUARD(volume_back_unstage, unstages(volume, peers, ms))
GUARD(volume_again_unpublish, unpublishes(volume, peers, ms) && volume->retry_at_ms == 0)
GUARD(volume_again_unstage, unstages(volume, peers, ms) && volume->retry_at_ms == 0)
GUARD(volume_back_unmount, unmounts(volume, peers, ms))
GUARD(volume_back_unmount_staging, unmounts_staging(volume, peers, ms))
GUARD(volume_again_unmount, unmounts(volume, peers, ms) && volume->retry_at_ms == 0)
GUARD(volume_again_unmount_staging, unmounts_staging(volume, peers, ms) &&
                                        volume->retry_at_ms == 0)
GUARD(volume_back_wait, must_undo(volume, peers) || is_straying(volume, ms))
GUARD(volume_back_claim, volume->claimed)
GUARD(volume_release_wanted, volume->release_wanted)
GUARD(volume_release_unpublish, volume->release_wanted && unpublishes(volume, peers, ms))
GUARD(volume_release_unstage, volume->release_wanted && unstages(volume, peers, ms))
GUARD(volume_release_wait, volume->release_wanted &&
                               (must_undo(volume, peers) || is_straying(volume, ms)))
GUARD(volume_straying, is_straying(volume, ms))
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
    if (volume->verdict >= CSI_VERDICT_COUNT || volume->undo > UNDO_DONE)
        return "a call that ended in no known way";
    return NULL;
}
