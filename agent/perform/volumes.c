/*
 * Volumes of storage plugins.
 *
 * A volume machine's claims go to the control plane, and what it asks of the node to csi/volumes.h;
 * here each answer becomes the machine's event.  What the control plane says of a claim, secrets
 * too, is handed on at once and kept nowhere else.
 */
#include "agent/perform/volumes.h"

#include "agent/perform/calls.h"
#include "io/log.h"

#include <stdlib.h>

struct volumes {
    struct parts *parts;
    struct csi_volumes *csi;
    struct io_timer tells; /* the node's events to the journal */
};

/* For so long what becomes of volumes is gathered, to be one write. */
enum { TELL_MS = 200 };

/* --- birth and end --- */

static bool find_node(void *ctx, const char *plugin, struct csi_node *ret_node)
{
    struct parts *parts = ctx;
    const struct csi_instance *instance = csi_plugins_find(parts->plugins, plugin, CSI_ROLE_NODE);

    if (instance == NULL)
        return false;
    *ret_node = (struct csi_node){
        .client = instance->client,
        .root = instance->plugin_root,
        .stages = (instance->node_capabilities & CSI_NODE_STAGES) != 0,
    };
    return true;
}

struct volumes *volumes_new(struct parts *parts, struct err *err)
{
    char root[PATH_SIZE], marks[PATH_SIZE];

    if (!text_format(root, sizeof(root), "%s/csi/node", parts->config->state_dir) ||
        !text_format(marks, sizeof(marks), "%s/csi/mounted", parts->config->state_dir)) {
        (void)err_set(err, ERR_LIMIT, "state_dir is too long"); /* NULL says it */
        return NULL;
    }
    if (directory_make_all(marks, 0700, err) != 0)
        return NULL;
    struct volumes *volumes = calloc(1, sizeof(*volumes));
    struct csi_volumes_config config = {
        .loop = parts->loop, .root = root, .marks = marks, .find = find_node, .ctx = parts};

    check(volumes != NULL);
    volumes->parts = parts;
    volumes->csi = csi_volumes_new(&config);
    return volumes;
}

void volumes_free(struct volumes *volumes)
{
    if (volumes == NULL)
        return;
    io_timer_stop(&volumes->tells);
    csi_volumes_free(volumes->csi);
    free(volumes);
}

/* --- what a machine is --- */

/* Borrowed from ID and RECORD. */
static struct csi_claim claim_of(const struct machine_id *id, const struct volume *record,
                                 struct machine_id *owner)
{
    *owner = machine_id_owner(id);
    return (struct csi_claim){
        .alloc = owner->text,
        .name = machine_id_name(id),
        .define = &record->define,
        .external = record->external,
    };
}

/* What the job says of the volume NAME of ALLOC; NULL: its specification is lost. */
static const struct spec_volume *asked_for(struct parts *parts, const char *alloc, const char *name)
{
    struct err err;
    const struct alloc_spec *spec = specs_find(parts->specs, alloc, &err);

    for (size_t i = 0; spec != NULL && i < spec->volumes_count; i++) {
        if (spec->volumes[i].type == VOLUME_CSI && text_equal(spec->volumes[i].name, name))
            return &spec->volumes[i];
    }
    return NULL;
}

/* --- claims --- */

/* The pairs as another room has them; owned by the caller, what they point to is borrowed. */
static struct csi_map map_of(const struct spec_pairs *pairs)
{
    struct csi_pair *items = calloc(pairs->count + 1, sizeof(*items));

    check(items != NULL);
    for (size_t i = 0; i < pairs->count; i++)
        items[i] = (struct csi_pair){pairs->items[i].key, pairs->items[i].value};
    return (struct csi_map){items, pairs->count};
}

static void map_free(const struct csi_map *map)
{
    free((struct csi_pair *)(uintptr_t)map->pairs);
}

static int secrets_of(const struct spec_pairs *pairs, struct csi_secrets **ret_secrets,
                      struct err *err)
{
    struct csi_secrets *secrets = csi_secrets_new();
    int code = 0;

    for (size_t i = 0; i < pairs->count && code == 0; i++)
        code = csi_secrets_add(secrets, pairs->items[i].key, pairs->items[i].value, err);
    if (code == 0)
        *ret_secrets = secrets;
    else
        csi_secrets_free(secrets);
    return code;
}

/* What is known from now on of the claim ID: the job's word on how it is mounted comes over the
 * volume's. */
static int know(struct volumes *volumes, const struct machine_id *id, const struct volume *record,
                const struct control_claimed *claimed, bool recalled, struct err *err)
{
    struct machine_id owner;
    struct csi_claim claim = claim_of(id, record, &owner);
    const struct spec_volume *asked = asked_for(volumes->parts, claim.alloc, claim.name);
    struct csi_terms terms = {
        .fs_type = claimed->fs_type,
        .flags = claimed->flags,
        .flags_count = claimed->flags_count,
        .recalled = recalled,
    };
    int code = secrets_of(&claimed->secrets, &terms.secrets, err);

    if (code != 0)
        return err_wrap(err, "secrets of volume \"%s\"", record->define.volume);
    if (asked != NULL && asked->fs_type[0] != '\0')
        terms.fs_type = asked->fs_type;
    if (asked != NULL && asked->has_mount_flags) {
        terms.flags = asked->mount_flags.items;
        terms.flags_count = asked->mount_flags.count;
    }
    terms.publish_context = map_of(&claimed->publish_context);
    terms.volume_context = map_of(&claimed->volume_context);
    csi_volumes_know(volumes->csi, &claim, &terms);
    map_free(&terms.publish_context);
    map_free(&terms.volume_context);
    return 0;
}

static void claim_failed(struct perform_call *call, const struct failure *failure)
{
    log_warn("volumes", "claim failed volume=%s error=%s", call->id.text, log_value(failure->text));
    perform_call_end(call, VE_RPC_FAILED, failure);
}

static void claimed(void *ctx, const struct control_claimed *claimed, const struct failure *failed)
{
    struct perform_call *call = ctx;
    const struct machine *record = core_find(call->parts->core, &call->id);
    struct claim claim = {.external = ""};
    struct failure failure = {.code = ERR_CORRUPT};
    struct err err = {0};

    if (record == NULL) { /* it went meanwhile: nobody waits */
        perform_call_free(call);
        return;
    }
    if (claimed == NULL) {
        claim_failed(call, failed);
        return;
    }
    if (know(call->parts->volumes, &call->id, volume_of(record), claimed, false, &err) != 0) {
        failure.code = err.code;
        (void)text_copy(failure.text, sizeof(failure.text), err.text); /* cut is enough */
        claim_failed(call, &failure);
        return;
    }
    if (!text_copy(claim.external, sizeof(claim.external), claimed->external)) {
        (void)text_copy(failure.text, sizeof(failure.text),
                        "the plugin's id of the volume is too long"); /* fits */
        claim_failed(call, &failure);
        return;
    }
    perform_call_end(call, VE_CLAIMED, &claim);
}

struct recalling {
    struct volumes *volumes;
    const struct machine_id *id;
    const struct volume *record;
};

static void recalled(void *ctx, const struct control_claimed *claimed,
                     const struct failure *failure)
{
    struct recalling *recalling = ctx;
    struct err err;
    (void)failure;

    if (know(recalling->volumes, recalling->id, recalling->record, claimed, true, &err) != 0)
        log_warn("volumes", "nothing is hidden in what its plugin says volume=%s error=%s",
                 recalling->id->text, log_value(err.text));
}

/* What a claim takes that an earlier life of the daemon was told: it is to be hidden again. */
static void recall(const struct parts *parts, const struct machine_id *id,
                   const struct volume *record)
{
    struct machine_id owner;
    const struct csi_claim claim = claim_of(id, record, &owner);
    const struct control_claim asked = {.alloc = claim.alloc,
                                        .name = claim.name,
                                        .define = claim.define,
                                        .external = claim.external,
                                        .node_id = ""};
    struct recalling recalling = {parts->volumes, id, record};

    if (!csi_volumes_knows(parts->volumes->csi, &claim))
        parts->control->recall(parts->control->ctx, &asked, recalled, &recalling);
}

static void released(void *ctx, const struct failure *failure)
{
    struct perform_call *call = ctx;

    if (failure == NULL) {
        perform_call_end(call, VE_RELEASED, NULL);
        return;
    }
    log_warn("volumes", "release failed, trying again volume=%s error=%s", call->id.text,
             log_value(failure->text));
    perform_call_end(call, VE_RPC_FAILED, failure);
}

/* --- steps --- */

static struct failure failure_of(const struct csi_step_result *result)
{
    struct failure failure = {
        .code = result->code,
        .recoverable = result->error.recoverable,
        .verdict = (uint8_t)result->outcome.verdict,
        .may_run = result->outcome.may_run,
    };

    (void)text_copy(failure.text, sizeof(failure.text), result->error.text); /* cut is enough */
    text_whole(failure.text);
    return failure;
}

static const struct {
    enum csi_step_kind kind;
    uint8_t event; /* when it is done */
} steps[VX_COUNT] = {
    [VX_STAGE] = {CSI_STEP_STAGE, VE_STAGED},
    [VX_PUBLISH] = {CSI_STEP_PUBLISH, VE_PUBLISHED},
    [VX_UNPUBLISH] = {CSI_STEP_UNPUBLISH, VE_UNPUBLISHED},
    [VX_UNSTAGE] = {CSI_STEP_UNSTAGE, VE_UNSTAGED},
    [VX_LOOK] = {CSI_STEP_LOOK, VE_MOUNT_FOUND},
    [VX_UNMOUNT] = {CSI_STEP_UNMOUNT, VE_UNPUBLISHED},
    [VX_UNMOUNT_STAGING] = {CSI_STEP_UNMOUNT_STAGING, VE_UNSTAGED},
};

static void tell_events(struct io_timer *timer)
{
    struct parts *parts = timer->ctx;

    health_tell(&parts->health, parts->core);
}

/* The node's event, as Nomad has it: once mounted, once not any more, and whenever that fails. */
static void note_event(struct perform_call *call, const struct csi_step_result *result)
{
    struct parts *parts = call->parts;
    const struct machine *record = core_find(parts->core, &call->id);
    bool makes = call->effect == VX_STAGE || call->effect == VX_PUBLISH;
    bool ends =
        call->effect == VX_PUBLISH || call->effect == VX_UNPUBLISH || call->effect == VX_UNMOUNT;
    bool gathers = parts->health.untold;

    if (record == NULL || call->effect == VX_LOOK || (result->code == 0 && !ends))
        return;
    health_note_volume(&parts->health, volume_of(record)->define.volume,
                       makes ? "Mount volume" : "Unmount volume",
                       result->code == 0 ? "" : result->error.text, loop_now_unix_ns());
    if (!gathers)
        io_timer_start(parts->loop, &parts->volumes->tells, loop_now_ms() + TELL_MS, tell_events,
                       parts);
}

static void stepped(void *ctx, const struct csi_step_result *result)
{
    struct perform_call *call = ctx;
    const char *what = fsm_effect_name(&volume_def, call->effect);
    uint8_t event = steps[call->effect].event;

    note_event(call, result);
    if (result->code != 0) {
        struct failure failure = failure_of(result);
        log_warn("volumes", "%s failed volume=%s error=%s", what, call->id.text,
                 log_value(result->error.text));
        perform_call_end(call, VE_NODE_FAILED, &failure);
        return;
    }
    if (result->remark != NULL)
        log_warn("volumes", "%s volume=%s: %s", what, call->id.text, result->remark);
    if (event == VE_MOUNT_FOUND && !result->is_mounted)
        event = VE_MOUNT_MISSING;
    perform_call_end(call, event, NULL);
}

static void step(struct parts *parts, const struct effect *effect, const struct csi_claim *claim)
{
    struct csi_step step = {
        .kind = steps[effect->kind].kind,
        .claim = *claim,
        .fresh = !effect->record->restored && effect->record->attempt == 0,
    };

    csi_volume_step(parts->volumes->csi, &step, stepped, perform_call_new(parts, effect));
}

/* --- effects --- */

void volumes_perform(struct parts *parts, const struct effect *effect)
{
    struct volumes *volumes = parts->volumes;
    const struct volume *record = volume_of(effect->record);
    struct machine_id owner;
    const struct csi_claim claim = claim_of(&effect->id, record, &owner);
    const struct csi_instance *instance =
        csi_plugins_find(parts->plugins, record->define.plugin, CSI_ROLE_NODE);
    const struct control_claim asked = {
        .alloc = claim.alloc,
        .name = claim.name,
        .define = claim.define,
        .external = claim.external,
        .node_id = instance == NULL ? "" : instance->node_id,
    };

    switch ((enum volume_effect)effect->kind) {
    case VX_CLAIM:
        parts->control->claim(parts->control->ctx, &asked, claimed,
                              perform_call_new(parts, effect));
        break;
    case VX_UNCLAIM:
        csi_volumes_forget(volumes->csi, &claim);
        parts->control->unclaim(parts->control->ctx, &asked, released,
                                perform_call_new(parts, effect));
        break;
    case VX_UNPUBLISH:
    case VX_UNSTAGE:
        recall(parts, &effect->id, record);
        step(parts, effect, &claim);
        break;
    case VX_STAGE:
    case VX_PUBLISH:
    case VX_LOOK:
    case VX_UNMOUNT:
    case VX_UNMOUNT_STAGING:
        step(parts, effect, &claim);
        break;
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
        unreachable("not of the world");
    }
}

void volumes_hide(const struct parts *parts, const char *alloc, const char *name,
                  struct csi_request *request)
{
    struct machine_id id = machine_id_join(MACHINE_VOLUME, alloc, name);
    const struct machine *record = core_find(parts->core, &id);

    if (record != NULL)
        recall(parts, &id, volume_of(record));
    csi_volumes_hide(parts->volumes->csi, alloc, name, request);
}

void volumes_unmount(struct parts *parts, const struct csi_found *found, csi_step_done *done,
                     void *ctx)
{
    csi_volumes_unmount(parts->volumes->csi, found, done, ctx);
}

/* --- for tasks --- */

void volumes_find_mounted(const struct parts *parts, const struct alloc_spec *alloc,
                          struct volumes_mounted *ret_mounted)
{
    size_t count = 0;

    for (size_t i = 0; i < alloc->volumes_count && count < ALLOC_CLAIMS_MAX; i++) {
        const struct spec_volume *volume = &alloc->volumes[i];
        struct machine_id id, owner;
        struct err err;

        if (volume->type != VOLUME_CSI)
            continue;
        id = machine_id_join(MACHINE_VOLUME, alloc->id, volume->name);
        const struct machine *record = core_find(parts->core, &id);
        if (record == NULL)
            continue; /* the hook says that it is missing */
        const struct csi_claim claim = claim_of(&id, volume_of(record), &owner);
        if (csi_volume_target(parts->volumes->csi, &claim, ret_mounted->paths[count], &err) != 0)
            continue;
        ret_mounted->claims[count] =
            (struct hook_claim){.volume = volume->name, .path = ret_mounted->paths[count]};
        count++;
    }
    ret_mounted->count = count;
}
