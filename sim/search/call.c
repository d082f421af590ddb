/*
 * Calls in the world of the search: hooks, the server, the plugin.
 *
 * A call is what a lane of the core says is under way; it ends when a move says so.  What it finds
 * is decided here, as sim/world/node.c decides it in the seeded worlds: calls repeat without harm,
 * publish wants a staged volume, a call that goes on in spite of its caller's end goes on beside
 * the next one.
 */
#include "sim/search/part.h"

#define BIT(effect) (1u << (effect))
#define NODE_CALLS (BIT(VX_STAGE) | BIT(VX_PUBLISH) | BIT(VX_UNPUBLISH) | BIT(VX_UNSTAGE))
#define RPC_CALLS (BIT(VX_CLAIM) | BIT(VX_UNCLAIM))

_Static_assert((int)VX_UNSTAGE < 8, "calls of a volume fit a mask");

/* --- what a call does --- */

static int apply_alloc(struct search *search, const struct lane *lane)
{
    struct search_world *world = &search->world;

    if (lane->hook != ALLOC_HOOK_ALLOC_DIR)
        return 0;
    if (lane->phase == PHASE_PRERUN)
        world->directory = 1;
    if (lane->phase == PHASE_DESTROY) {
        if (world->mounted)
            search_violate(search, SIM_SAFETY, 30,
                           "the alloc's directory is deleted through a mount");
        if (search_alloc_lives(search))
            search_violate(search, SIM_SAFETY, 30,
                           "the alloc's directory is deleted under a live payload");
        world->directory = 0;
    }
    return 0;
}

static int apply_task(struct search *search, unsigned task, const struct lane *lane)
{
    if (lane->phase != PHASE_PRESTART || lane->hook != TASK_HOOK_TASK_DIR)
        return 0;
    if (!search->world.directory)
        return ERR_GONE;
    search->world.tasks[task].prestarted = 1;
    return 0;
}

static bool stages(const struct search *search)
{
    return search->asked->shape != SIM_SHAPE_SIDECAR;
}

static int apply_volume(struct search *search, uint8_t effect)
{
    struct search_world *world = &search->world;

    if ((BIT(effect) & NODE_CALLS) != 0 && world->plugin_generation == 0)
        return ERR_AGAIN;
    switch ((enum volume_effect)effect) {
    case VX_CLAIM:
        world->claimed = 1;
        return 0;
    case VX_UNCLAIM:
        world->claimed = 0;
        return 0;
    case VX_STAGE:
        world->staged = 1;
        return 0;
    case VX_PUBLISH:
        if (!world->staged && stages(search))
            return ERR_REFUSED;
        world->mounted = 1;
        world->snatched = 0;
        return 0;
    case VX_UNPUBLISH:
    case VX_UNMOUNT:
        world->mounted = 0;
        return 0;
    case VX_UNSTAGE:
    case VX_UNMOUNT_STAGING:
        if (world->mounted)
            return ERR_AGAIN;
        world->staged = 0;
        return 0;
    case VX_LOOK:
    case VX_NONE:
    case VX_BACKOFF:
    case VX_REPLY_OK:
    case VX_REPLY_BUSY:
    case VX_SEND_READY:
    case VX_SEND_FAILED:
    case VX_SEND_GONE:
    case VX_SEND_TROUBLE:
    case VX_SEND_TURN:
    case VX_COUNT:
        return 0;
    }
    unreachable("volume effect");
}

static int apply_plugin(struct search *search, const struct lane *lane)
{
    struct search_world *world = &search->world;
    bool ours = world->plugin_generation == lane->generation;

    switch ((enum plugin_effect)lane->effect) {
    case PX_LAUNCH: /* an older instance with our mark makes way */
        world->plugin_generation = lane->generation;
        return 0;
    case PX_RECOVER:
        return ours ? 0 : ERR_GONE;
    case PX_TERMINATE:
        world->plugin_generation = 0;
        return 0;
    case PX_PROBE:
    case PX_IDENTIFY:
        return ours ? 0 : ERR_AGAIN;
    case PX_NONE:
    case PX_BACKOFF:
    case PX_TELL_NODE:
    case PX_REPLY_OK:
    case PX_SEND_UP:
    case PX_SEND_DOWN:
    case PX_SEND_HEALTH:
    case PX_SEND_AILING:
    case PX_SEND_UNWELL:
    case PX_COUNT:
        return 0;
    }
    unreachable("plugin effect");
}

static int apply(struct search *search, unsigned who, const struct lane *lane)
{
    switch ((enum search_who)who) {
    case WHO_PLUGIN:
        return apply_plugin(search, lane);
    case WHO_VOLUME:
        return apply_volume(search, lane->effect);
    case WHO_TASK_A:
    case WHO_TASK_B:
        return apply_task(search, who_task(who), lane);
    case WHO_ALLOC:
        return apply_alloc(search, lane);
    case WHO_COUNT:
        break;
    }
    unreachable("machine of the search");
}

/* --- what it is answered with --- */

static void answer_hook(struct search *search, unsigned who, const struct lane *lane, int code,
                        bool hard)
{
    bool task = who != WHO_ALLOC;
    struct hook_outcome outcome = {.code = code, .hook = lane->hook, .recoverable = !hard};
    uint8_t event =
        code == 0 ? (task ? TE_HOOK_DONE : AE_HOOK_DONE) : (task ? TE_HOOK_FAILED : AE_HOOK_FAILED);

    core_done(search->core, &search->ids[who], LANE_HOOK, event, &outcome);
}

static void answer_volume(struct search *search, const struct lane *lane, int code, bool hard)
{
    struct failure failure = sim_failed(code, !hard, "it failed");
    struct claim claim = {.external = "external"};
    bool rpc = (BIT(lane->effect) & RPC_CALLS) != 0;
    const void *payload = lane->effect == VX_CLAIM ? &claim : NULL;

    failure.may_run = (search->world.late & BIT(lane->effect) & NODE_CALLS) != 0;
    if (code != 0)
        payload = &failure;
    core_done(search->core, &search->ids[WHO_VOLUME], rpc ? LANE_RPC : LANE_NODE,
              sim_volume_answer(lane->effect, code, search->world.mounted), payload);
}

static void answer_plugin(struct search *search, const struct lane *lane, int code, bool hard)
{
    enum fsm_lane number =
        (enum fsm_lane)fsm_definition(MACHINE_PLUGIN)->effects[lane->effect].lane;
    struct failure failure = sim_failed(code, !hard, "it failed");
    struct started started = {.payload_pid = 77};
    struct plugin_identity identity = {.staging = stages(search), .healthy = 1, .version = "1.0"};
    const void *payload = NULL;

    if (code != 0)
        payload = &failure;
    else if (lane->effect == PX_LAUNCH || lane->effect == PX_RECOVER)
        payload = &started;
    else if (lane->effect == PX_IDENTIFY)
        payload = &identity;
    core_done(search->core, &search->ids[WHO_PLUGIN], number, sim_plugin_answer(lane->effect, code),
              payload);
}

static void answer(struct search *search, unsigned who, const struct lane *lane, int code,
                   bool hard)
{
    switch ((enum search_who)who) {
    case WHO_PLUGIN:
        answer_plugin(search, lane, code, hard);
        return;
    case WHO_VOLUME:
        answer_volume(search, lane, code, hard);
        return;
    case WHO_TASK_A:
    case WHO_TASK_B:
    case WHO_ALLOC:
        answer_hook(search, who, lane, code, hard);
        return;
    case WHO_COUNT:
        break;
    }
    unreachable("machine of the search");
}

/* --- moves --- */

bool search_call_ready(const struct search *search, unsigned who, enum fsm_lane number)
{
    /* The server takes the calls of one claim in the order in which they were sent. */
    return who != WHO_VOLUME || number != LANE_RPC || (search->world.late & RPC_CALLS) == 0;
}

void search_call_done(struct search *search, unsigned who, enum fsm_lane number)
{
    struct lane lane = *search_lane(search, who, number); /* the core goes on to the next one */
    int code = apply(search, who, &lane);

    answer(search, who, &lane, code, who != WHO_VOLUME && code == ERR_GONE);
}

unsigned search_call_fails(const struct search *search, unsigned who, enum fsm_lane number)
{
    static const uint8_t volume[VX_COUNT] = {
        [VX_CLAIM] = BIT(HOW_AGAIN) | BIT(HOW_HARD) | BIT(HOW_LATE),
        [VX_UNCLAIM] = BIT(HOW_AGAIN) | BIT(HOW_LATE),
        [VX_STAGE] = BIT(HOW_AGAIN) | BIT(HOW_HARD) | BIT(HOW_LATE),
        [VX_PUBLISH] = BIT(HOW_AGAIN) | BIT(HOW_HARD) | BIT(HOW_LATE),
        [VX_UNPUBLISH] = BIT(HOW_AGAIN) | BIT(HOW_LATE),
        [VX_UNSTAGE] = BIT(HOW_AGAIN) | BIT(HOW_LATE),
        [VX_LOOK] = BIT(HOW_AGAIN),
        [VX_UNMOUNT] = BIT(HOW_AGAIN),
        [VX_UNMOUNT_STAGING] = BIT(HOW_AGAIN),
    };
    static const uint8_t plugin[PX_COUNT] = {
        [PX_LAUNCH] = BIT(HOW_AGAIN) | BIT(HOW_HARD) | BIT(HOW_LATE),
        [PX_RECOVER] = BIT(HOW_AGAIN),
        [PX_TERMINATE] = BIT(HOW_AGAIN) | BIT(HOW_LATE),
        [PX_PROBE] = BIT(HOW_AGAIN) | BIT(HOW_LAST),
        [PX_IDENTIFY] = BIT(HOW_AGAIN) | BIT(HOW_HARD),
    };
    static const uint8_t driver[TX_COUNT] = {
        [TX_DRIVER_START] = BIT(HOW_AGAIN) | BIT(HOW_HARD) | BIT(HOW_LATE),
        [TX_DRIVER_RECOVER] = BIT(HOW_AGAIN) | BIT(HOW_LAST),
        [TX_DRIVER_STOP] = BIT(HOW_AGAIN),
        [TX_DRIVER_DESTROY] = BIT(HOW_AGAIN),
    };
    const struct lane *lane = search_lane(search, who, number);
    bool behind = who == WHO_VOLUME && !search_call_ready(search, who, number);

    switch ((enum search_who)who) {
    case WHO_PLUGIN:
        return plugin[lane->effect];
    case WHO_VOLUME: /* what waits behind another operation is not begun */
        return volume[lane->effect] & (behind ? BIT(HOW_AGAIN) : ~0u);
    case WHO_TASK_A:
    case WHO_TASK_B:
        if (number == LANE_DRIVER)
            return driver[lane->effect];
        return lane->phase == PHASE_PRESTART ? BIT(HOW_AGAIN) | BIT(HOW_HARD) : BIT(HOW_AGAIN);
    case WHO_ALLOC:
        return lane->hook == HOOK_NONE ? 0 : BIT(HOW_AGAIN) | BIT(HOW_LATE);
    case WHO_COUNT:
        break;
    }
    unreachable("machine of the search");
}

void search_call_fail(struct search *search, unsigned who, enum fsm_lane number,
                      enum search_how how)
{
    struct lane lane = *search_lane(search, who, number);

    if (how == HOW_LATE && who == WHO_VOLUME)
        search->world.late |= (uint8_t)BIT(lane.effect);
    else if (how == HOW_LATE)
        (void)apply(search, who, &lane); /* it was done, whatever is said of it */
    answer(search, who, &lane, how == HOW_HARD ? ERR_INVALID : ERR_IO, how == HOW_HARD);
}

/* --- death in mid-call --- */

static const struct lane *cut_lane(const struct search *search, unsigned who)
{
    const struct lane *hook = search_lane(search, who, LANE_HOOK);
    const struct lane *driver = search_lane(search, who, LANE_DRIVER);

    if (who == WHO_PLUGIN && (driver->effect == PX_LAUNCH || driver->effect == PX_TERMINATE))
        return driver;
    bool alloc = who == WHO_ALLOC && hook->hook == ALLOC_HOOK_ALLOC_DIR &&
                 (hook->phase == PHASE_PRERUN || hook->phase == PHASE_DESTROY);
    bool task = (who == WHO_TASK_A || who == WHO_TASK_B) && hook->hook == TASK_HOOK_TASK_DIR &&
                hook->phase == PHASE_PRESTART;
    return hook->effect != 0 && (alloc || task) ? hook : NULL;
}

bool search_call_is_open(const struct search *search, unsigned who)
{
    return cut_lane(search, who) != NULL;
}

void search_call_cut(struct search *search, unsigned who)
{
    const struct lane *lane = cut_lane(search, who);

    if (lane != NULL)
        (void)apply(search, who, lane); /* its answer has nobody to go to */
}

void search_calls_orphan(struct search *search)
{
    const struct lane *rpc = search_lane(search, WHO_VOLUME, LANE_RPC);
    const struct lane *node = search_lane(search, WHO_VOLUME, LANE_NODE);
    unsigned late = search->world.late;

    if (rpc->effect != 0)
        late |= BIT(rpc->effect);
    if ((BIT(node->effect) & NODE_CALLS) != 0)
        late |= BIT(node->effect);
    search->world.late = (uint8_t)late;
}

void search_call_late(struct search *search, uint8_t effect)
{
    check((search->world.late & BIT(effect)) != 0);
    (void)apply_volume(search, effect); /* what it says is heard by nobody */
    search->world.late &= (uint8_t)~BIT(effect);
}
