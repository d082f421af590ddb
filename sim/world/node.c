/*
 * What surrounds payloads: directories, plugins, mounts, and the server's claims.
 *
 * The plugin behaves as csi.md 2.7 to 2.10 says: calls repeat without harm, publish wants a staged
 * volume, unstage wants none published.  It does not keep calls apart: an operation that goes on in
 * spite of its caller's end goes on beside the next one.  The adapter looks at the mount table
 * after each call that changes it, so that a plugin which lies is found out (I-31).
 */
#include "sim/answer.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"

enum { RENDER_MS = 250, RENDER_MS_MAX = 60000 }; /* as hooks/render/watch.c */

enum { SLOW_SERVER_MS = 3000 };

/* --- what a call meets --- */

/* The server takes the calls of one claim in the order in which they were sent. */
static void settle_earlier(struct sim *sim, const struct sim_call *call)
{
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *other = &sim->calls.items[i];
        if (!other->used || !other->answered || !other->apply_left || other->lane != LANE_RPC ||
            sim_id(sim, &other->whom) != sim_id(sim, &call->whom))
            continue;
        sim_apply(sim, other);
        other->apply_left = 0;
        sim_call_free(sim, other);
    }
}

/* As agent/perform/plugins.c: what the hooks of a task say of the plugin that it is, as they begin;
 * whether they succeed is another matter. */
static void tell_plugin(struct sim *sim, const struct sim_call *call)
{
    const struct sim_task_state *task = sim_task_of(sim, &call->whom);
    int p = task->plan->serves - 1;
    const struct machine_id *id = &sim->plugins[p].id;
    const struct machine *record = core_find(sim->core, id);
    struct plugin_define define = {
        .type = PLUGIN_CSI_NODE, .supervised = 1, .health_timeout_ms = task->plan->health_ms};
    struct exited exited = {0};

    (void)text_copy(define.plugin, sizeof(define.plugin),
                    sim->plugins[sim->plugins[p].serves].name); /* fits */
    if (call->phase == PHASE_POSTSTART)
        core_tell(sim->core, id, PE_DEFINE, &define);
    if (call->phase == PHASE_EXITED && record != NULL)
        core_news(sim->core, id, record->generation, PE_EXITED, &exited);
    if (call->phase == PHASE_STOP)
        core_tell(sim->core, id, PE_REMOVE, NULL);
}

void sim_meet(struct sim *sim, struct sim_call *call)
{
    bool of_task = call->whom.kind == MACHINE_TASK && call->lane == LANE_HOOK;

    if (of_task && call->hook == TASK_HOOK_CSI_PLUGIN &&
        sim_task_of(sim, &call->whom)->plan->serves != 0)
        tell_plugin(sim, call);
    if (call->lane != LANE_RPC)
        return;
    settle_earlier(sim, call);
    if (!sim->script->server)
        return;
    if (sim->control.server == SIM_SERVER_DOWN)
        call->fault = SIM_ERR;
    else if (sim->control.server == SIM_SERVER_BLACKHOLE)
        call->fault = SIM_HANG;
    else if (sim->control.server == SIM_SERVER_SLOW)
        call->latency_ms += SLOW_SERVER_MS;
}

/* --- hooks --- */

static void apply_network(struct sim *sim, const struct sim_call *call)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, &call->whom);

    if (call->phase == PHASE_PRERUN || call->phase == PHASE_PRESTART) {
        alloc->network = sim_has_network(alloc);
        alloc->netless = 0;
    }
    if (call->phase != PHASE_POSTRUN)
        return;
    if (sim_alloc_lives(sim, call->whom.alloc))
        sim_violate(sim, 33, "the network of %s is removed under a live payload", alloc->id.text);
    alloc->network = alloc->netless = 0;
}

/* One that cannot be looked at is not known to be lost. */
static void answer_check(struct sim *sim, struct sim_call *call)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, &call->whom);
    struct failure failure = sim_failed(ERR_GONE, false, "it was taken away");
    bool lost = call->code == 0 && alloc->netless;

    sim_call_done(sim, call, lost ? AE_NETWORK_LOST : AE_NETWORK_SOUND, lost ? &failure : NULL);
}

static void take_disk(struct sim *sim, struct sim_call *call)
{
    struct sim_alloc_state *heir = sim_alloc_of(sim, &call->whom);

    if (!heir->directory) {
        sim_call_fail(call, ERR_GONE, true, "the alloc's directory is gone");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(call->owners) && !heir->disk; i++) {
        struct sim_alloc_state *owner = call->owners[i] < 0 ? NULL : &sim->allocs[call->owners[i]];
        if (owner != NULL && owner->disk) {
            if (sim_alloc_lives(sim, call->owners[i]))
                sim_violate(sim, 22, "the disk of %s is taken over while it runs", owner->id.text);
            owner->disk = 0;
            heir->disk = 1;
        }
    }
    heir->disk = 1; /* or that which was made with the directory */
}

/* True if what is stored of HEIR lets it look for its disk with the alloc ID. */
static bool looks_at(const struct sim *sim, const struct sim_alloc_state *heir, const char *id)
{
    const struct machine *record = sim_store_find(&sim->store, &heir->id);

    while (record != NULL && alloc_of(record)->disk != DISK_HERE) {
        const char *from = alloc_of(record)->assign.disk_from;
        if (text_equal(from, id))
            return true;
        struct machine_id owner = machine_id_make(MACHINE_ALLOC, from);
        record = sim_store_find(&sim->store, &owner);
    }
    return false;
}

/* No alloc that wants to run still has to take over the disk that goes with the directory. */
static void check_disk(struct sim *sim, const struct sim_alloc_state *owner)
{
    for (int a = 0; a < sim->allocs_count && owner->disk; a++) {
        const struct sim_alloc_state *heir = &sim->allocs[a];
        if (heir->job >= 0 && !heir->damaged && sim_placed_lives(sim, heir) &&
            looks_at(sim, heir, owner->id.text))
            sim_violate(sim, 22, "the directory of %s is deleted, and %s takes over its disk",
                        owner->id.text, heir->id.text);
    }
}

static void remove_directory(struct sim *sim, int number)
{
    struct sim_alloc_state *alloc = &sim->allocs[number];

    for (int i = 0; i < alloc->claims_count; i++) {
        if (alloc->claims[i].mounted)
            sim_violate(sim, 30, "the directory of %s is deleted through the mount of %s",
                        alloc->id.text, alloc->claims[i].id.text);
    }
    if (sim_alloc_lives(sim, number))
        sim_violate(sim, 30, "the directory of %s is deleted under a live payload", alloc->id.text);
    check_disk(sim, alloc);
    alloc->directory = alloc->disk = 0;
    for (int i = 0; i < alloc->tasks_count; i++)
        alloc->tasks[i].directory = 0;
}

static void apply_alloc_hook(struct sim *sim, struct sim_call *call)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, &call->whom);

    if (call->hook == ALLOC_HOOK_ALLOC_DIR && call->phase == PHASE_PRERUN) {
        if (!alloc->directory)
            alloc->disk = call->owners[0] < 0;
        alloc->directory = 1;
    } else if (call->hook == ALLOC_HOOK_ALLOC_DIR && call->phase == PHASE_DESTROY) {
        remove_directory(sim, call->whom.alloc);
    } else if (call->hook == ALLOC_HOOK_MIGRATE_DISK && call->phase == PHASE_PRERUN) {
        take_disk(sim, call);
    } else if (call->hook == ALLOC_HOOK_NETWORK) {
        apply_network(sim, call);
    }
}

static void apply_task_hook(struct sim *sim, struct sim_call *call)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, &call->whom);
    struct sim_task_state *task = sim_task_of(sim, &call->whom);

    if (call->phase != PHASE_PRESTART)
        return;
    if (call->hook != TASK_HOOK_VALIDATE && !alloc->directory) {
        sim_call_fail(call, ERR_GONE, true, "the alloc's directory is gone");
        return;
    }
    if (call->hook == TASK_HOOK_TEMPLATE && task->unrendered_until_ms > sim->now_ms) {
        sim_call_fail(call, ERR_IO, false, "a template cannot be written");
        return;
    }
    if (call->hook == TASK_HOOK_TASK_DIR)
        task->directory = 1;
    if (call->hook == TASK_HOOK_NETWORK)
        apply_network(sim, call);
    if (call->hook < TASK_HOOK_COUNT)
        task->prestarted |= 1u << call->hook;
}

/* --- templates --- */

static int leave_rendered(const struct sim_task_state *task, struct results *results)
{
    struct rendered said[COUNT_OF(task->files)] = {{0}};

    for (uint8_t mode = 0; mode < COUNT_OF(said); mode++) {
        said[mode] = (struct rendered){.mode = mode, .number = 1};
        memcpy(said[mode].digest, &task->files[mode], sizeof(task->files[mode]));
    }
    return results_set(results, TASK_HOOK_TEMPLATE, RESULT_DATA, RENDERED_KEY, said, sizeof(said));
}

/* The templates of the task say something else than its machine knows. */
static bool says_otherwise(const struct sim_task_state *state, const struct task *task)
{
    uint8_t bytes[256];
    struct results results = {bytes, 0, sizeof(bytes)};
    struct rendered_change change;
    int code = leave_rendered(state, &results);

    check(code == 0); /* fits */
    policy_change(TASK_HOOK_TEMPLATE, task->results, task->results_bytes, bytes, results.used,
                  &change);
    return change.restarts || change.signals != 0 || change.scripts != 0;
}

bool sim_is_told(const struct sim_task_state *state, const struct task *task)
{
    return !says_otherwise(state, task) && task->signals_owed == 0 && task->script == 0;
}

/* As hooks/render/watch.c: after a pause that grows, for as long as the watch is there. */
static void render_later(struct sim *sim, struct sim_task_state *state)
{
    if (state->retrying == sim->incarnation)
        return;
    state->retrying = sim->incarnation;
    state->unrendered++;
    sim_later(sim, policy_backoff_ms(RENDER_MS, RENDER_MS_MAX, state->unrendered, sim->now_ms),
              SE_RENDER, (size_t)(state - sim->tasks), sim->incarnation);
}

void sim_templates_event(struct sim *sim, const struct sim_event *event)
{
    struct sim_task_state *state = &sim->tasks[event->index];
    const struct sim_whom whom = sim_find(sim, &state->id);
    const struct machine *record = sim_record(sim, &whom);

    if (event->stamp != sim->incarnation)
        return;
    state->retrying = 0;
    if (record != NULL && says_otherwise(state, task_of(record)))
        sim_templates_tell(sim, &whom);
}

void sim_templates_tell(struct sim *sim, const struct sim_whom *whom)
{
    struct sim_task_state *state = sim_task_of(sim, whom);
    const struct machine *record = sim_record(sim, whom);
    uint8_t room[sizeof(struct hook_outcome) + 512] __attribute__((aligned(8))) = {0};
    struct hook_outcome *outcome = (struct hook_outcome *)(void *)room;
    struct results results = {outcome->results, 0, 512};

    if (!sim->up || sim->dying || state->watched != sim->incarnation || record == NULL)
        return;
    if (state->unrendered_until_ms > sim->now_ms) {
        render_later(sim, state);
        return;
    }
    state->unrendered = 0;
    outcome->hook = TASK_HOOK_TEMPLATE;
    int code = results_set(&results, TASK_HOOK_TEMPLATE, RESULT_ENV,
                           task_hook_name(TASK_HOOK_TEMPLATE), "made", 4);
    if (code == 0)
        code = leave_rendered(state, &results);
    check(code == 0); /* fits */
    outcome->results_bytes = results.used;
    core_news(sim->core, &state->id, record->generation, TE_CHANGED, outcome);
}

/* A hook that runs again makes what it made before. */
static void leave_results(struct sim *sim, const struct sim_whom *whom, uint8_t hook,
                          struct hook_outcome *outcome)
{
    const struct sim_task_state *task = sim_task_of(sim, whom);
    struct results results = {outcome->results, 0, RESULTS_BYTES_MAX};
    struct result result;
    uint32_t at = 0;
    int code = 0;

    if ((task->past_hooks >> hook & 1u) == 0) {
        code = results_set(&results, hook, RESULT_ENV, task_hook_name(hook), "made", 4);
        if (code == 0 && hook == TASK_HOOK_TEMPLATE)
            code = leave_rendered(task, &results);
        if (code == 0 && hook == TASK_HOOK_IDENTITY)
            code = sim_tokens_leave(sim, whom, &results);
    } else {
        while (code == 0 &&
               results_next(task->past->results, task->past->results_bytes, &at, &result)) {
            if (result.hook == hook)
                code = results_set(&results, hook, (enum result_kind)result.kind, result.key,
                                   result.value, result.value_length);
        }
    }
    check(code == 0); /* it was as much once */
    outcome->results_bytes = results.used;
}

static void answer_hook(struct sim *sim, struct sim_call *call)
{
    bool task = call->whom.kind == MACHINE_TASK;
    uint8_t room[sizeof(struct hook_outcome) + RESULTS_BYTES_MAX] __attribute__((aligned(8)));
    struct hook_outcome *outcome = (struct hook_outcome *)(void *)room;

    *outcome = (struct hook_outcome){
        .code = call->code,
        .hook = call->hook,
        .recoverable = !call->hard,
    };
    (void)text_copy(outcome->text, sizeof(outcome->text), call->text); /* fits */
    if (call->code == 0 && task && call->phase == PHASE_PRESTART && call->hook < TASK_HOOK_COUNT)
        leave_results(sim, &call->whom, call->hook, outcome);
    if (call->code == 0 && task && call->phase == PHASE_STOP && call->hook < TASK_HOOK_COUNT)
        sim_task_of(sim, &call->whom)->stopped |= 1u << call->hook;
    if (call->code == 0 && !task && call->phase == PHASE_POSTRUN && call->hook < ALLOC_HOOK_COUNT)
        sim_alloc_of(sim, &call->whom)->torn |= (uint8_t)(1u << call->hook);
    bool follows = call->code == 0 && task && call->hook < TASK_HOOK_COUNT &&
                   (sim_task_of(sim, &call->whom)->past_hooks >> call->hook & 1u) == 0;
    bool templates = follows && call->hook == TASK_HOOK_TEMPLATE;
    bool tokens = follows && call->hook == TASK_HOOK_IDENTITY;
    uint32_t until = call->phase == PHASE_POSTSTART ? sim->incarnation : 0;
    struct sim_whom whom = call->whom;
    if (templates)
        sim_task_of(sim, &whom)->watched = until;
    if (tokens)
        sim_task_of(sim, &whom)->renewed = until;
    uint8_t event = call->code == 0 ? (task ? TE_HOOK_DONE : AE_HOOK_DONE)
                                    : (task ? TE_HOOK_FAILED : AE_HOOK_FAILED);
    sim_call_done(sim, call, event, outcome);
    const struct machine *record = sim_record(sim, &whom);
    if (templates && record != NULL && says_otherwise(sim_task_of(sim, &whom), task_of(record)))
        sim_templates_tell(sim, &whom);
    if (tokens)
        sim_tokens_begin(sim, &whom);
}

/* --- claims and mounts --- */

bool sim_claim_is_taken(const struct sim *sim, const struct sim_claim_state *mine)
{
    for (int i = 0; i < sim->claims_count; i++) {
        const struct sim_claim_state *other = &sim->claims[i];
        if (other != mine && other->disk == mine->disk && other->held &&
            (mine->exclusive || other->exclusive))
            return true;
    }
    return false;
}

static bool is_published(const struct sim *sim, uint16_t disk)
{
    for (int i = 0; i < sim->claims_count; i++) {
        if (sim->claims[i].mounted && sim->claims[i].disk == disk)
            return true;
    }
    return false;
}

/* One that counts goes by its count alone, over reboots, too. */
static bool is_counted(const struct sim *sim, uint16_t disk)
{
    for (int i = 0; i < sim->claims_count; i++) {
        if (sim->claims[i].counted > 0 && sim->claims[i].disk == disk)
            return true;
    }
    return false;
}

static void apply_unstage(struct sim *sim, struct sim_call *call)
{
    uint16_t disk = sim_claim_of(sim, &call->whom)->disk;

    if (is_published(sim, disk)) {
        if (!call->answered) /* late ones are the plugin's own doing */
            sim_violate(sim, 27, "unstage by %s while the volume is published",
                        sim_id(sim, &call->whom)->text);
        sim_call_fail(call, ERR_AGAIN, false, "it is still published");
        return;
    }
    if (call->effect == VX_UNSTAGE && is_counted(sim, disk)) {
        sim_call_fail(call, ERR_AGAIN, false, "it is still published, says the plugin's count");
        return;
    }
    sim->disks[disk].staged = 0;
}

static void apply_publish(struct sim_claim_state *claim)
{
    if (!claim->mounted)
        claim->counted++;
    claim->mounted = 1;
    claim->snatched = 0;
}

static void apply_unpublish(struct sim_claim_state *claim)
{
    if (claim->counted > 0)
        claim->counted--;
    claim->mounted = 0;
}

static void apply_volume(struct sim *sim, struct sim_call *call)
{
    struct sim_claim_state *claim = sim_claim_of(sim, &call->whom);
    struct sim_disk_state *disk = &sim->disks[claim->disk];
    const struct sim_plugin_state *plugin = &sim->plugins[claim->plugin];

    if (sim_is_node_call(call) && !sim_plugin_is_served(sim, claim->plugin)) {
        sim_call_fail(call, ERR_AGAIN, false, "the plugin does not answer");
        return;
    }
    switch ((enum volume_effect)call->effect) {
    case VX_CLAIM:
        if (sim_claim_is_taken(sim, claim))
            sim_call_fail(call, ERR_AGAIN, false, "max claims reached");
        else
            claim->held = 1;
        return;
    case VX_UNCLAIM:
        claim->held = 0;
        return;
    case VX_STAGE:
        disk->staged = 1;
        return;
    case VX_PUBLISH:
        if (plugin->stages && !disk->staged)
            sim_call_refuse(call, CSI_STAGE_FIRST, "it is not staged");
        else
            apply_publish(claim);
        return;
    case VX_UNPUBLISH:
        if (claim->mounted && claim->busy_until_ms > sim->now_ms)
            sim_call_fail(call, ERR_AGAIN, false, "the mount is busy");
        else
            apply_unpublish(claim);
        return;
    case VX_UNMOUNT:
        if (claim->mounted && claim->busy_until_ms > sim->now_ms)
            sim_call_fail(call, ERR_AGAIN, false, "the mount is busy");
        else
            claim->mounted = claim->counted = 0; /* what a plugin that is gone counts is its own */
        return;
    case VX_UNSTAGE:
    case VX_UNMOUNT_STAGING:
        apply_unstage(sim, call);
        return;
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
        return;
    }
}

static void answer_volume(struct sim *sim, struct sim_call *call)
{
    struct sim_claim_state *claim = sim_claim_of(sim, &call->whom);
    struct claim taken = {.external = "external"};
    const void *payload = call->effect == VX_CLAIM ? &taken : NULL;

    if (call->effect == VX_UNPUBLISH && call->fault == SIM_LIE && !claim->mounted)
        apply_unpublish(claim); /* a lie is about a mount, and there is none */
    /* What the plugin says is believed when the mount table says the same. */
    if (call->code == 0 && call->effect == VX_PUBLISH && !claim->mounted)
        sim_call_refuse(call, CSI_LIES, "it was published, and is not mounted");
    if (call->code == 0 && call->effect == VX_UNPUBLISH && claim->mounted)
        sim_call_refuse(call, CSI_LIES, "it was unpublished, and is still mounted");
    if (call->code == 0 && call->effect == VX_UNSTAGE && sim->disks[claim->disk].staged)
        sim_call_refuse(call, CSI_LIES, "it was unstaged, and is still mounted");
    struct failure failure = sim_failed(call->code, !call->hard, call->text);
    failure.verdict = call->verdict;
    failure.may_run =
        sim_is_node_call(call) && (call->code == ERR_TIMEOUT || call->code == ERR_GONE);
    if (call->code != 0)
        payload = &failure;
    sim_call_done(sim, call, sim_volume_answer(call->effect, call->code, claim->mounted), payload);
}

/* --- plugins --- */

static void apply_plugin(struct sim *sim, struct sim_call *call)
{
    struct sim_plugin_state *plugin = sim_plugin_of(sim, &call->whom);
    bool ours = sim_plugin_lives(sim, plugin) &&
                (plugin->task != NULL || plugin->generation == call->generation);

    switch ((enum plugin_effect)call->effect) {
    case PX_LAUNCH: /* an older instance with our mark makes way; that of a task is waited for */
        if (plugin->task != NULL && !ours)
            sim_call_fail(call, ERR_AGAIN, false, "nobody listens");
        plugin->alive = plugin->task == NULL;
        plugin->generation = call->generation;
        return;
    case PX_RECOVER:
        if (!ours && plugin->task == NULL)
            sim_call_fail(call, ERR_GONE, false, "there is no such process");
        return;
    case PX_TERMINATE:
        plugin->alive = 0;
        return;
    case PX_PROBE:
    case PX_IDENTIFY:
        if (!ours)
            sim_call_fail(call, ERR_AGAIN, false, "the plugin does not answer");
        return;
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
        return;
    }
}

static void answer_plugin(struct sim *sim, struct sim_call *call)
{
    struct failure failure = sim_failed(call->code, !call->hard, call->text);
    struct started started = {.payload_pid = 77, .payload_ticks = call->generation};
    struct plugin_identity identity = {
        .staging = sim_plugin_of(sim, &call->whom)->stages,
        .healthy = 1,
        .version = "1.0",
    };
    const void *payload = NULL;

    if (call->code != 0)
        payload = &failure;
    else if (call->effect == PX_LAUNCH || call->effect == PX_RECOVER)
        payload = &started;
    else if (call->effect == PX_IDENTIFY)
        payload = &identity;
    sim_call_done(sim, call, sim_plugin_answer(call->effect, call->code), payload);
}

/* --- all of them --- */

void sim_apply(struct sim *sim, struct sim_call *call)
{
    sim_mix(sim, (uint64_t)call->whom.kind << 32 | (uint64_t)call->effect << 8 | call->answered);
    if (call->answered)
        sim_say(sim, "late: %s of %s",
                fsm_definition((enum machine_kind)call->whom.kind)->effects[call->effect].name,
                sim_id(sim, &call->whom)->text);
    switch ((enum machine_kind)call->whom.kind) {
    case MACHINE_ALLOC:
        if (call->lane == LANE_HOOK)
            apply_alloc_hook(sim, call);
        return;
    case MACHINE_TASK:
        apply_task_hook(sim, call);
        return;
    case MACHINE_VOLUME:
        apply_volume(sim, call);
        return;
    case MACHINE_PLUGIN:
        apply_plugin(sim, call);
        return;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

void sim_answer(struct sim *sim, struct sim_call *call)
{
    switch ((enum machine_kind)call->whom.kind) {
    case MACHINE_ALLOC:
        if (call->lane == LANE_NODE)
            answer_check(sim, call);
        else
            answer_hook(sim, call);
        return;
    case MACHINE_TASK:
        answer_hook(sim, call);
        return;
    case MACHINE_VOLUME:
        answer_volume(sim, call);
        return;
    case MACHINE_PLUGIN:
        answer_plugin(sim, call);
        return;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

void sim_node_reboot(struct sim *sim)
{
    for (int p = 0; p < sim->plugins_count; p++)
        sim->plugins[p].alive = 0;
    for (int d = 0; d < sim->disks_count; d++)
        sim->disks[d].staged = 0;
    for (int i = 0; i < sim->claims_count; i++)
        sim->claims[i].mounted = 0;
    for (int a = 0; a < sim->allocs_count; a++)
        sim->allocs[a].network = sim->allocs[a].netless = 0;
    /* What hooks leave in memory file systems is gone, too. */
    for (int t = 0; t < sim->tasks_count; t++)
        sim->tasks[t].prestarted = 0;
    /* The plugin's operations die with it; the server's go on. */
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *call = &sim->calls.items[i];
        if (call->used && call->answered && call->lane != LANE_RPC)
            sim_call_free(sim, call);
    }
}
