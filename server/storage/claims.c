/*
 * Claims on volumes of storage plugins: who may have one, and what its controller is asked then.
 *
 * Who has one say the volume machines of the core.  Beside them only what they do not say yet is
 * remembered: a claim that is being answered, or whose answer no machine has heard.  After a crash
 * both are asked for again, and nobody has used what nobody was told.
 */
#include "server/storage/operation.h"

#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* A claim that may be had though its machine has not heard so. */
struct grant {
    struct machine_id id;
    struct grant *prev, *next;
};

static struct grant *find_grant(const struct storage *storage, const struct machine_id *id)
{
    struct grant *grant;

    DL_FOREACH(storage->grants, grant)
    {
        if (machine_id_equal(&grant->id, id))
            return grant;
    }
    return NULL;
}

static void add_grant(struct storage *storage, const struct machine_id *id)
{
    struct grant *grant = find_grant(storage, id);

    if (grant != NULL)
        return;
    grant = calloc(1, sizeof(*grant));
    check(grant != NULL);
    grant->id = *id;
    DL_APPEND(storage->grants, grant);
}

static void drop_grant(struct storage *storage, struct grant *grant)
{
    if (grant == NULL)
        return;
    DL_DELETE(storage->grants, grant);
    free(grant);
}

/* Those that machines know of by now, or whose machines have gone. */
static void tidy_grants(struct storage *storage)
{
    struct grant *grant, *next;

    DL_FOREACH_SAFE(storage->grants, grant, next)
    {
        const struct machine *record = core_find(life_core(storage->config.life), &grant->id);
        if (record == NULL || volume_of(record)->external[0] != '\0')
            drop_grant(storage, grant);
    }
}

/* --- who has a volume --- */

static bool is_held(const struct storage *storage, const struct machine_id *id,
                    const struct volume *volume)
{
    return volume->claimed && (volume->external[0] != '\0' || find_grant(storage, id) != NULL);
}

struct claim_terms claims_terms(const struct volume_define *define)
{
    return (struct claim_terms){.access = define->access_mode,
                                .attachment = define->attachment_mode == CSI_ATTACHMENT_UNKNOWN
                                                  ? CSI_FILE_SYSTEM
                                                  : define->attachment_mode,
                                .read_only = define->read_only};
}

struct listing_claims {
    const struct storage *storage;
    const struct machine_id *but;
    struct claim_list *list;
};

static bool list_claim(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct listing_claims *listing = ctx;
    const struct volume *volume = volume_of(record);

    if (is_held(listing->storage, id, volume) &&
        (listing->but == NULL || !machine_id_equal(listing->but, id)))
        *list_more(listing->list) = claims_terms(&volume->define);
    return true;
}

void claims_list(const struct storage *storage, const json_t *volume, const struct machine_id *but,
                 struct claim_list *list)
{
    struct listing_claims listing = {storage, but, list};
    struct volume_define define = registry_define(volume);

    core_each_of_volume(life_core(storage->config.life), &define, list_claim, &listing);
}

struct each_claim {
    const struct storage *storage;
    core_each_cb *cb;
    void *ctx;
};

static bool give_claim(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct each_claim *each = ctx;

    return !is_held(each->storage, id, volume_of(record)) || each->cb(each->ctx, id, record);
}

void storage_each_claim(const struct storage *storage, const struct storage_volume *volume,
                        core_each_cb *cb, void *ctx)
{
    struct each_claim each = {storage, cb, ctx};
    struct volume_define define = registry_define(volume->json);

    core_each_of_volume(life_core(storage->config.life), &define, give_claim, &each);
}

struct storage_claims storage_claims_of(const struct storage *storage,
                                        const struct storage_volume *volume)
{
    struct storage_claims claims = {0};
    struct claim_list list = {0};

    claims_list(storage, volume->json, NULL, &list);
    for (size_t i = 0; i < list.count; i++) {
        claims.readers += list.items[i].read_only;
        claims.writers += !list.items[i].read_only;
    }
    if (list.count > 0) {
        claims.access = list.items[0].access;
        claims.attachment = list.items[0].attachment;
    }
    free(list.items);
    return claims;
}

static bool find_given_back(void *ctx, const struct machine_id *id, const struct machine *record)
{
    bool *found = ctx;

    (void)id; /* any of them is enough */
    *found |= record->state == V_RELEASING && volume_of(record)->claimed;
    return !*found;
}

bool claims_are_given_back(const struct storage *storage, const json_t *volume)
{
    struct volume_define define = registry_define(volume);
    bool found = false;

    core_each_of_volume(life_core(storage->config.life), &define, find_given_back, &found);
    return found;
}

/* --- claiming --- */

/* One that is asked for or given back, while it waits for its turn and for the controller. */
struct claiming {
    struct lane_task task;
    struct machine_id id;
    struct volume_define define;
    char external[sizeof(((struct claim *)0)->external)];
    char node_id[sizeof(((struct plugin_identity *)0)->node)];
    control_claimed_cb *claimed;
    control_released_cb *released;
    void *ctx;
    json_t *secret, *volume; /* while the controller is asked */
};

static void claiming_free(struct claiming *claiming)
{
    storage_wipe(claiming->secret);
    json_decref(claiming->volume);
    free(claiming);
}

static void drop_claiming(struct lane_task *task)
{
    claiming_free((struct claiming *)(void *)task);
}

static void refuse(struct claiming *claiming, int code, bool recoverable, const char *text)
{
    struct failure failure = {.code = code, .recoverable = recoverable};

    (void)text_copy(failure.text, sizeof(failure.text), text); /* cut if too long */
    lane_leave(&claiming->task);
    if (claiming->claimed != NULL)
        claiming->claimed(claiming->ctx, NULL, &failure);
    else
        claiming->released(claiming->ctx, &failure);
    claiming_free(claiming);
}

/* What is so will be so. */
static void refuse_for_good(struct claiming *claiming, const char *what, const char *which)
{
    char line[DESCRIPTION_SIZE];

    (void)text_format(line, sizeof(line), "%s: %s", what, which); /* cut if too long */
    refuse(claiming, ERR_REFUSED, false, line);
}

/* MAP as pairs that borrow its texts; the list is the caller's. */
static struct spec_pairs pairs_of(json_t *map)
{
    struct spec_pairs pairs = {.items = calloc(json_object_size(map) + 1, sizeof(*pairs.items))};
    const char *name;
    json_t *value;

    check(pairs.items != NULL);
    json_object_foreach(map, name, value)
    {
        pairs.items[pairs.count++] = (struct spec_pair){name, json_string_value(value)};
    }
    return pairs;
}

/* Whoever has mounted it then may have it larger. */
static void expect_growth(const struct claiming *claiming)
{
    const struct volume_define *define = &claiming->define;
    struct storage *storage = claiming->task.storage;
    struct registered *volume = registry_find(storage, define->namespace, define->volume);

    if (volume == NULL || !registry_grows_on_node(volume->json) || volume->resumes ||
        volume->retry_at_ms != 0)
        return;
    volume->retry_at_ms = life_now_ms(storage->config.life) + OPERATION_RETRY_MS;
    operation_retry_at(storage, volume->retry_at_ms);
}

/* CB hears what VOLUME takes. */
static void tell_terms(const json_t *volume, const json_t *secret, json_t *publish_context,
                       control_claimed_cb *cb, void *ctx)
{
    json_t *flags = json_object_get(secret, "MountFlags"), *flag;
    struct control_claimed claimed = {
        .external = registry_remote_id(volume),
        .plugin = registry_text(volume, "PluginID"),
        .fs_type = registry_text(json_object_get(volume, "MountOptions"), "FSType"),
        .volume_context = pairs_of(json_object_get(volume, "Context")),
        .publish_context = pairs_of(publish_context),
        .secrets = pairs_of(json_object_get(secret, "Secrets")),
    };
    const char **texts = calloc(json_array_size(flags) + 1, sizeof(*texts));
    size_t i;

    check(texts != NULL);
    json_array_foreach(flags, i, flag) texts[claimed.flags_count++] = json_string_value(flag);
    claimed.flags = texts;
    cb(ctx, &claimed, NULL);
    free(texts);
    free(claimed.volume_context.items);
    free(claimed.publish_context.items);
    free(claimed.secrets.items);
}

static void grant_claim(struct claiming *claiming, json_t *publish_context)
{
    expect_growth(claiming);
    lane_leave(&claiming->task);
    tell_terms(claiming->volume, claiming->secret, publish_context, claiming->claimed,
               claiming->ctx);
    claiming_free(claiming);
}

static const char *verdict_text(enum claim_verdict verdict)
{
    switch (verdict) {
    case CLAIM_FITS:
        break;
    case CLAIM_NOT_CAPABLE:
        return "volume was not registered with this access mode and attachment mode";
    case CLAIM_OTHERWISE_ATTACHED:
        return "cannot change attachment mode of claimed volume";
    case CLAIM_NOT_WRITABLE:
        return "volume is currently unschedulable, who has it only reads";
    case CLAIM_READERS_EXHAUSTED:
    case CLAIM_WRITERS_EXHAUSTED:
        return "volume max claims reached";
    }
    unreachable("a refusal");
}

/* True if CLAIMING may have its volume; else it was refused. */
static bool is_allowed(struct claiming *claiming)
{
    struct storage *storage = claiming->task.storage;
    struct claim_terms terms[REGISTRY_TERMS_MAX], asked = claims_terms(&claiming->define);
    size_t terms_count = registry_terms(claiming->volume, terms);
    struct claim_list list = {0};
    char line[DESCRIPTION_SIZE];

    claims_list(storage, claiming->volume, &claiming->id, &list);
    enum claim_verdict verdict = policy_claim(terms, terms_count, list.items, list.count, &asked);
    free(list.items);
    if (verdict == CLAIM_FITS)
        return true;
    if (verdict == CLAIM_NOT_CAPABLE) {
        refuse_for_good(claiming, verdict_text(verdict), claiming->define.volume);
        return false;
    }
    (void)text_format(line, sizeof(line), "%s: %s", verdict_text(verdict), claiming->define.volume);
    refuse(claiming, ERR_AGAIN, true, line); /* others go */
    return false;
}

static void published(void *ctx, const struct control_answer *answer)
{
    struct claiming *claiming = ctx;
    bool again = answer->outcome.verdict == CSI_REPEAT || answer->outcome.verdict == CSI_DOUBT;

    if (answer->answer != NULL) {
        grant_claim(claiming, json_object_get(answer->answer, "PublishContext"));
        return;
    }
    /* If it is attached all the same, the machine's way back detaches it. */
    drop_grant(claiming->task.storage, find_grant(claiming->task.storage, &claiming->id));
    refuse(claiming, answer->error.code, again, answer->error.text);
}

/* What the controller is asked; the volume's own mount options only, as Nomad does it. */
static json_t *attach_request(const struct claiming *claiming)
{
    const struct claim_terms terms = claims_terms(&claiming->define);
    json_t *flags = json_object_get(claiming->secret, "MountFlags");
    json_t *secrets = json_object_get(claiming->secret, "Secrets");
    json_t *request = json_pack(
        "{s:s, s:s, s:s, s:s, s:{s:s}, s:b, s:O}", "VolumeID", registry_remote_id(claiming->volume),
        "ClientCSINodeID", claiming->node_id, "AttachmentMode",
        spec_attachment_name((enum csi_attachment)terms.attachment), "AccessMode",
        spec_access_name((enum csi_access)terms.access), "MountOptions", "Filesystem",
        registry_text(json_object_get(claiming->volume, "MountOptions"), "FSType"), "ReadOnly",
        terms.read_only, "VolumeContext", json_object_get(claiming->volume, "Context"));

    check(request != NULL);
    if (flags != NULL)
        check(json_object_set(json_object_get(request, "MountOptions"), "MountFlags", flags) == 0);
    if (secrets != NULL)
        check(json_object_set(request, "Secrets", secrets) == 0);
    return request;
}

/* True if its plugin's controller attaches volumes to nodes; of one that is not there what was
 * known of it when the volume was registered. */
static bool attaches(const struct storage *storage, const char *plugin, const json_t *volume,
                     struct control_plugin *ret_plugin)
{
    registry_plugin(storage, plugin, ret_plugin);
    if (ret_plugin->controller_ready)
        return (ret_plugin->controller_capabilities & CSI_CONTROLLER_PUBLISHES) != 0;
    return json_is_true(json_object_get(volume, "cairnAttaches"));
}

static void know_node(struct claiming *claiming, const struct control_plugin *plugin)
{
    if (claiming->node_id[0] == '\0')
        (void)text_copy(claiming->node_id, sizeof(claiming->node_id), plugin->node_id);
}

static void attach(struct claiming *claiming)
{
    struct storage *storage = claiming->task.storage;
    const char *id = registry_text(claiming->volume, "PluginID");
    struct control_plugin plugin;

    if (!attaches(storage, id, claiming->volume, &plugin)) {
        grant_claim(claiming, NULL);
        return;
    }
    know_node(claiming, &plugin);
    if (!plugin.controller_ready || claiming->node_id[0] == '\0') {
        drop_grant(storage, find_grant(storage, &claiming->id));
        refuse(claiming, ERR_AGAIN, true,
               plugin.controller_ready
                   ? "its node plugin has not told the id of this node yet"
                   : "no healthy controller of its plugin is here to attach it");
        return;
    }
    json_t *request = attach_request(claiming);
    storage->config.controller(storage->config.controller_ctx, id, CSI_CONTROLLER_PUBLISH, request,
                               published, claiming);
    json_decref(request);
}

static void begin_claim(struct lane_task *task)
{
    struct claiming *claiming = (struct claiming *)(void *)task;
    struct storage *storage = task->storage;
    const struct volume_define *define = &claiming->define;
    const struct registered *volume = registry_find(storage, define->namespace, define->volume);

    tidy_grants(storage);
    if (volume == NULL) {
        refuse_for_good(claiming, "volume not found", define->volume);
        return;
    }
    if (volume->public.state != REGISTRATION_READY) {
        refuse(claiming, ERR_AGAIN, true, "the volume is being made or deleted");
        return;
    }
    if (!text_equal(define->plugin, registry_text(volume->json, "PluginID"))) {
        refuse_for_good(claiming, "the volume is one of another plugin now",
                        registry_text(volume->json, "PluginID"));
        return;
    }
    claiming->volume = json_incref(volume->json);
    if (!is_allowed(claiming))
        return;
    claiming->secret = registry_secret(storage, volume);
    if (claiming->secret == NULL) {
        refuse(claiming, ERR_CORRUPT, true, "the volume's secrets cannot be read");
        return;
    }
    add_grant(storage, &claiming->id);
    attach(claiming);
}

/* --- giving back --- */

static void give_back(struct claiming *claiming)
{
    struct storage *storage = claiming->task.storage;

    drop_grant(storage, find_grant(storage, &claiming->id));
    storage->config.freed(storage->config.freed_ctx); /* somebody may wait for the volume */
    lane_leave(&claiming->task);
    claiming->released(claiming->ctx, NULL);
    claiming_free(claiming);
}

static void detached(void *ctx, const struct control_answer *answer)
{
    struct claiming *claiming = ctx;

    if (answer->answer != NULL || answer->outcome.verdict == CSI_DONE)
        give_back(claiming);
    else
        refuse(claiming, answer->error.code, true, answer->error.text);
}

/* Whoever else has something of the volume on this node, or may have: what it inherited, too. */
struct finding_user {
    const struct machine_id *but;
    bool found;
};

static bool find_user(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_user *finding = ctx;
    const struct volume *volume = volume_of(record);

    finding->found |= record->state != V_GONE && !machine_id_equal(finding->but, id) &&
                      (volume->claimed || volume->staged || volume->published);
    return !finding->found;
}

/* True if the volume has to stay attached. */
static bool stays_attached(const struct claiming *claiming)
{
    struct finding_user finding = {.but = &claiming->id};

    core_each_of_volume(life_core(claiming->task.storage->config.life), &claiming->define,
                        find_user, &finding);
    return finding.found;
}

static void detach(struct claiming *claiming)
{
    struct storage *storage = claiming->task.storage;
    json_t *secrets = json_object_get(claiming->secret, "Secrets");
    json_t *request = json_pack("{s:s, s:s}", "VolumeID", claiming->external, "ClientCSINodeID",
                                claiming->node_id);

    check(request != NULL);
    if (secrets != NULL)
        check(json_object_set(request, "Secrets", secrets) == 0);
    storage->config.controller(storage->config.controller_ctx, claiming->define.plugin,
                               CSI_CONTROLLER_UNPUBLISH, request, detached, claiming);
    json_decref(request);
}

static void begin_unclaim(struct lane_task *task)
{
    struct claiming *claiming = (struct claiming *)(void *)task;
    struct storage *storage = task->storage;
    const struct volume_define *define = &claiming->define;
    const struct registered *volume = registry_find(storage, define->namespace, define->volume);
    const json_t *json = volume == NULL ? NULL : volume->json;
    struct control_plugin plugin;

    tidy_grants(storage);
    if (claiming->external[0] == '\0') /* its answer was lost, if it was attached */
        (void)text_copy(claiming->external, sizeof(claiming->external), registry_remote_id(json));
    if (!attaches(storage, define->plugin, json, &plugin) || claiming->external[0] == '\0' ||
        stays_attached(claiming)) {
        give_back(claiming);
        return;
    }
    know_node(claiming, &plugin);
    if (!plugin.controller_ready || claiming->node_id[0] == '\0') {
        refuse(claiming, ERR_AGAIN, true,
               "no healthy controller of its plugin is here to detach it");
        return;
    }
    claiming->secret = volume == NULL ? NULL : registry_secret(storage, volume);
    detach(claiming);
}

/* --- the door --- */

static void enter(struct storage *storage, const struct control_claim *claim,
                  const struct claiming *callback, void (*begin)(struct lane_task *task))
{
    struct claiming *claiming = calloc(1, sizeof(*claiming));

    check(claiming != NULL);
    *claiming = *callback;
    claiming->task = (struct lane_task){.storage = storage, .begin = begin, .drop = drop_claiming};
    claiming->id = machine_id_join(MACHINE_VOLUME, claim->alloc, claim->name);
    claiming->define = *claim->define;
    (void)text_copy(claiming->external, sizeof(claiming->external), claim->external);
    (void)text_copy(claiming->node_id, sizeof(claiming->node_id), claim->node_id); /* bounded */
    lane_enter(&claiming->task, claim->define->namespace, claim->define->volume);
}

static void ask_claim(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                      void *cb_ctx)
{
    enter(ctx, claim, &(struct claiming){.claimed = cb, .ctx = cb_ctx}, begin_claim);
}

static void ask_unclaim(void *ctx, const struct control_claim *claim, control_released_cb *cb,
                        void *cb_ctx)
{
    enter(ctx, claim, &(struct claiming){.released = cb, .ctx = cb_ctx}, begin_unclaim);
}

static void recall(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                   void *cb_ctx)
{
    struct storage *storage = ctx;
    const struct registered *volume =
        registry_find(storage, claim->define->namespace, claim->define->volume);
    json_t *secret = volume == NULL ? NULL : registry_secret(storage, volume);

    if (secret != NULL)
        tell_terms(volume->json, secret, NULL, cb, cb_ctx);
    storage_wipe(secret);
}

void claims_begin(struct storage *storage)
{
    storage->control = (struct control){
        .ctx = storage, .claim = ask_claim, .unclaim = ask_unclaim, .recall = recall};
}

void claims_free(struct storage *storage)
{
    while (storage->grants != NULL)
        drop_grant(storage, storage->grants);
}

const struct control *storage_control(struct storage *storage)
{
    return &storage->control;
}
