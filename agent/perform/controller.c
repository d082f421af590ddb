/*
 * Calls to controllers of storage plugins, and some to their node services: requests and answers as
 * Nomad's servers name their fields, where they ask for such a thing, to csi/csi.h and back.
 *
 * Nothing is decided: what an answer means for a volume is up to who asked.
 */
#include "agent/perform/controller.h"

#include "agent/perform/answers.h"
#include "agent/perform/volumes.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* --- what is asked --- */

/* A request, and the lists that it borrows. */
struct building {
    struct csi_request request;
    struct csi_capability capabilities[CSI_CAPABILITIES_MAX];
    void *lists[2 * CSI_TOPOLOGIES_MAX + 8]; /* to be freed */
    size_t lists_count;
    struct csi_secrets *secrets;
    char staging[PATH_SIZE], target[PATH_SIZE];
};

static void *list_new(struct building *building, size_t count, size_t bytes)
{
    void *list = calloc(count + 1, bytes);

    check(list != NULL);
    check(building->lists_count < COUNT_OF(building->lists));
    building->lists[building->lists_count++] = list;
    return list;
}

static void building_end(struct building *building)
{
    for (size_t i = 0; i < building->lists_count; i++)
        free(building->lists[i]);
    csi_secrets_free(building->secrets);
}

/* The text NAME, NULL if it is empty. */
static const char *text_or_null(const json_t *request, const char *name)
{
    const char *text = json_string_value(json_object_get(request, name));

    return text == NULL || text[0] == '\0' ? NULL : text;
}

static struct csi_map map_of(struct building *building, json_t *object)
{
    struct csi_pair *pairs = list_new(building, json_object_size(object), sizeof(*pairs));
    struct csi_map map = {.pairs = pairs};
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        if (json_is_string(value))
            pairs[map.count++] = (struct csi_pair){name, json_string_value(value)};
    }
    return map;
}

static struct csi_map map_named(struct building *building, const json_t *request, const char *name)
{
    return map_of(building, json_object_get(request, name));
}

static const struct csi_map *topologies_of(struct building *building, const json_t *list,
                                           size_t *ret_count)
{
    struct csi_map *maps = list_new(building, json_array_size(list), sizeof(*maps));
    const json_t *item;
    size_t i;

    *ret_count = 0;
    json_array_foreach(list, i, item)
    {
        if (*ret_count < CSI_TOPOLOGIES_MAX)
            maps[(*ret_count)++] = map_named(building, item, "Segments");
    }
    return maps;
}

/* One more that the volume is to be capable of: the modes of ITEM, mounted by OPTIONS. */
static void add_capability(struct building *building, const json_t *item, const json_t *options)
{
    const json_t *flags = json_object_get(options, "MountFlags"), *flag;
    struct csi_capability *to = &building->capabilities[building->request.capabilities_count];
    enum csi_attachment attachment;
    const char **texts;
    size_t i;

    if (building->request.capabilities_count == CSI_CAPABILITIES_MAX ||
        !spec_access(json_string_value(json_object_get(item, "AccessMode")), &to->access) ||
        !spec_attachment(json_string_value(json_object_get(item, "AttachmentMode")), &attachment))
        return; /* the call lacks it then, and says so */
    building->request.capabilities_count++;
    to->block = attachment == CSI_BLOCK_DEVICE;
    if (to->block)
        return;
    to->fs_type = text_or_null(options, "Filesystem");
    texts = list_new(building, json_array_size(flags), sizeof(*texts));
    to->flags = texts;
    json_array_foreach(flags, i, flag) texts[to->flags_count++] = json_string_value(flag);
}

static void add_capabilities(struct building *building, const json_t *request, size_t max)
{
    const json_t *list = json_object_get(request, "VolumeCapabilities"), *item;
    const json_t *options = json_object_get(request, "MountOptions");
    size_t i;

    building->request.capabilities = building->capabilities;
    if (list == NULL)
        add_capability(building, request, options);
    json_array_foreach(list, i, item)
    {
        if (i < max)
            add_capability(building, item, options);
    }
}

static int add_secrets(struct building *building, const json_t *request, struct err *err)
{
    json_t *secrets = json_object_get(request, "Secrets"), *value;
    const char *name;
    int code = 0;

    building->secrets = csi_secrets_new();
    building->request.secrets = building->secrets;
    json_object_foreach(secrets, name, value)
    {
        if (code == 0)
            code = csi_secrets_add(building->secrets, name, json_string_value(value), err);
    }
    return code;
}

static int64_t number_of(const json_t *request, const char *name)
{
    return json_integer_value(json_object_get(request, name));
}

static void ask_create(struct building *building, const json_t *from)
{
    const json_t *topologies = json_object_get(from, "RequestedTopologies");
    struct csi_request *to = &building->request;

    to->name = text_or_null(from, "Name");
    to->bytes_min = number_of(from, "CapacityMin");
    to->bytes_max = number_of(from, "CapacityMax");
    to->parameters = map_named(building, from, "Parameters");
    to->snapshot_id = text_or_null(from, "SnapshotID");
    to->source_volume_id = text_or_null(from, "CloneID");
    to->required =
        topologies_of(building, json_object_get(topologies, "Required"), &to->required_count);
    to->preferred =
        topologies_of(building, json_object_get(topologies, "Preferred"), &to->preferred_count);
    add_capabilities(building, from, CSI_CAPABILITIES_MAX);
}

static void ask_publish(struct building *building, const json_t *from,
                        const struct csi_instance *instance)
{
    struct csi_request *to = &building->request;

    to->volume_id = text_or_null(from, "VolumeID");
    to->node_id = text_or_null(from, "ClientCSINodeID");
    to->volume_context = map_named(building, from, "VolumeContext");
    /* Whoever cannot do that is not asked; the node mounts it so all the same. */
    to->readonly = json_is_true(json_object_get(from, "ReadOnly")) &&
                   (instance->controller_capabilities & CSI_CONTROLLER_PUBLISHES_READONLY) != 0;
    add_capabilities(building, from, 1);
}

static void ask_validate(struct building *building, const json_t *from)
{
    building->request.volume_id = text_or_null(from, "VolumeID");
    building->request.volume_context = map_named(building, from, "Context");
    building->request.parameters = map_named(building, from, "Parameters");
    add_capabilities(building, from, CSI_CAPABILITIES_MAX);
}

static void ask_expand(struct building *building, const json_t *from)
{
    const json_t *range = json_object_get(from, "CapacityRange");

    building->request.volume_id = text_or_null(from, "ExternalVolumeID");
    building->request.bytes_min = number_of(range, "RequiredBytes");
    building->request.bytes_max = number_of(range, "LimitBytes");
    add_capabilities(building, from, 1);
}

/* The claim of one alloc on a volume. */
struct finding_claim {
    const char *alloc;
    struct volume_define define; /* that it is on; then the claim's own */
    struct machine_id id;        /* "": there is none */
};

static bool find_claim(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_claim *finding = ctx;
    struct machine_id owner = machine_id_owner(id);

    if (!text_equal(owner.text, finding->alloc))
        return true;
    finding->id = *id;
    finding->define = volume_of(record)->define;
    return false;
}

/* The volume that the alloc of FROM has mounted: what its plugin calls it, and where it is. */
static int ask_mounted(struct building *building, struct parts *parts, const json_t *from,
                       const struct csi_instance *instance, struct volume_define *ret_define,
                       struct err *err)
{
    const char *alloc = text_or_null(json_object_get(from, "Claim"), "AllocationID");
    const char *volume = text_or_null(from, "VolumeID");
    struct csi_request *to = &building->request;
    struct finding_claim finding = {.alloc = alloc == NULL ? "" : alloc};

    if (volume == NULL ||
        !text_copy(finding.define.volume, sizeof(finding.define.volume), volume) ||
        !text_copy(finding.define.namespace, sizeof(finding.define.namespace),
                   json_string_value(json_object_get(from, "VolumeNamespace"))) ||
        !text_copy(finding.define.plugin, sizeof(finding.define.plugin), instance->plugin))
        return err_set(err, ERR_INVALID, "no claim is on such a volume");
    core_each_of_volume(life_core(parts->life), &finding.define, find_claim, &finding);
    if (finding.id.text[0] == '\0')
        return err_set(err, ERR_GONE, "alloc %s has no claim on volume %s", finding.alloc, volume);
    const struct csi_claim claim = {.alloc = finding.alloc,
                                    .name = machine_id_name(&finding.id),
                                    .define = &finding.define,
                                    .external = ""};
    int code =
        csi_volume_seen(instance->plugin_root, &claim, building->staging, building->target, err);
    to->volume_id = text_or_null(from, "ExternalID");
    to->target_path = building->target;
    volumes_hide(parts, claim.alloc, claim.name, to);
    if ((instance->node_capabilities & CSI_NODE_STAGES) != 0)
        to->staging_path = building->staging;
    *ret_define = finding.define;
    return code;
}

static int ask_node_expand(struct building *building, struct parts *parts, const json_t *from,
                           const struct csi_instance *instance, struct err *err)
{
    const json_t *range = json_object_get(from, "Capacity");
    struct csi_request *to = &building->request;
    struct volume_define define;

    if ((instance->node_capabilities & CSI_NODE_EXPANDS) == 0)
        return err_set(err, ERR_REFUSED, "plugin %s cannot expand what a node has mounted",
                       instance->plugin);
    int code = ask_mounted(building, parts, from, instance, &define, err);
    if (code != 0)
        return code;
    building->capabilities[0] =
        (struct csi_capability){.access = (enum csi_access)define.access_mode,
                                .block = define.attachment_mode == CSI_BLOCK_DEVICE};
    to->capabilities = building->capabilities;
    to->capabilities_count = 1;
    to->bytes_min = number_of(range, "RequiredBytes");
    to->bytes_max = number_of(range, "LimitBytes");
    return 0;
}

static int ask_node_stats(struct building *building, struct parts *parts, const json_t *from,
                          const struct csi_instance *instance, struct err *err)
{
    struct volume_define define;

    if ((instance->node_capabilities & CSI_NODE_HAS_STATS) == 0)
        return err_set(err, ERR_REFUSED, "plugin %s does not tell how full a volume is",
                       instance->plugin);
    return ask_mounted(building, parts, from, instance, &define, err);
}

static void ask_snapshot(struct building *building, const json_t *from)
{
    building->request.source_volume_id = text_or_null(from, "ExternalSourceVolumeID");
    building->request.name = text_or_null(from, "Name");
    building->request.parameters = map_named(building, from, "Parameters");
}

static void ask_list(struct building *building, const json_t *from)
{
    building->request.entries_max = (int32_t)number_of(from, "MaxEntries");
    building->request.token = text_or_null(from, "StartingToken");
}

/* What only looks has no secrets, but for a list of snapshots. */
static bool takes_secrets(enum csi_call call)
{
    return call != CSI_LIST_VOLUMES && call != CSI_GET_CAPACITY && call != CSI_NODE_STATS;
}

static int build(struct building *building, struct parts *parts, enum csi_call call,
                 const json_t *from, const struct csi_instance *instance, struct err *err)
{
    int code = 0;

    building->request.call = call;
    if (call == CSI_CREATE_VOLUME) {
        ask_create(building, from);
    } else if (call == CSI_DELETE_VOLUME) {
        building->request.volume_id = text_or_null(from, "ExternalVolumeID");
    } else if (call == CSI_CONTROLLER_PUBLISH) {
        ask_publish(building, from, instance);
    } else if (call == CSI_CONTROLLER_UNPUBLISH) {
        building->request.volume_id = text_or_null(from, "VolumeID");
        building->request.node_id = text_or_null(from, "ClientCSINodeID");
    } else if (call == CSI_VALIDATE) {
        ask_validate(building, from);
    } else if (call == CSI_CONTROLLER_EXPAND) {
        ask_expand(building, from);
    } else if (call == CSI_NODE_EXPAND) {
        code = ask_node_expand(building, parts, from, instance, err);
    } else if (call == CSI_NODE_STATS) {
        code = ask_node_stats(building, parts, from, instance, err);
    } else if (call == CSI_CREATE_SNAPSHOT) {
        ask_snapshot(building, from);
    } else if (call == CSI_DELETE_SNAPSHOT) {
        building->request.snapshot_id = text_or_null(from, "ID");
    } else if (call != CSI_GET_CAPACITY) { /* which is of all that its plugin has */
        check(call == CSI_LIST_VOLUMES || call == CSI_LIST_SNAPSHOTS);
        ask_list(building, from);
    }
    return takes_secrets(call) && code == 0 ? add_secrets(building, from, err) : code;
}

/* --- calls --- */

struct asking {
    control_answer_cb *cb; /* NULL: nobody waits */
    void *ctx;
    struct parts *parts;
    struct asking *prev, *next;    /* all that are under way */
    struct csi_capability *wanted; /* to be confirmed; its texts are not, but for: */
    size_t wanted_count;
    char fs_type[CSI_STRING_MAX + 1];
    char volume[VOLUME_NAME_SIZE]; /* whose condition is asked for; "": none is */
};

static void asking_free(struct asking *asking)
{
    DL_DELETE(asking->parts->asked, asking);
    free(asking->wanted);
    free(asking);
}

/* True if one of what the plugin confirms is as WANTED; whoever leaves something open confirms it.
 */
static bool is_confirmed(const struct asking *asking, const struct csi_capability *wanted,
                         const struct csi_answer *answer)
{
    for (size_t i = 0; i < answer->capabilities_confirmed_count; i++) {
        const struct csi_capability *confirmed = &answer->capabilities_confirmed[i];

        if ((confirmed->access == CSI_ACCESS_UNKNOWN || confirmed->access == wanted->access) &&
            confirmed->block == wanted->block &&
            (wanted->block || confirmed->fs_type == NULL || confirmed->fs_type[0] == '\0' ||
             text_equal(confirmed->fs_type, asking->fs_type)))
            return true;
    }
    return false;
}

/* A plugin that confirms nothing has not said no (csi.md 3.10, as Nomad reads it). */
static int check_confirmed(const struct asking *asking, const struct csi_result *result,
                           struct err *err)
{
    const struct csi_answer *answer = result->answer;

    if (answer == NULL || result->call != CSI_VALIDATE || !answer->confirmed ||
        answer->capabilities_confirmed_count == 0)
        return 0;
    for (size_t i = 0; i < asking->wanted_count; i++) {
        if (!is_confirmed(asking, &asking->wanted[i], answer))
            return err_set(err, ERR_INVALID,
                           "the plugin does not confirm access mode %s with attachment mode %s%s%s",
                           spec_access_name(asking->wanted[i].access),
                           asking->wanted[i].block ? "block-device" : "file-system",
                           answer->text[0] != '\0' ? ": " : "", answer->text);
    }
    return 0;
}

/* The node's event, when the volume's plugin says something else of it than before. */
static void note_condition(const struct asking *asking, const struct csi_answer *answer)
{
    struct parts *parts = asking->parts;

    if (asking->volume[0] == '\0' || answer == NULL || !answer->condition.known)
        return;
    health_note_condition(&parts->health, asking->volume, answer->condition.abnormal,
                          answer->condition.text, loop_now_unix_ns());
    health_tell(&parts->health, parts->core);
}

static void answered(void *ctx, const struct csi_result *result)
{
    struct asking *asking = ctx;
    struct control_answer answer = {
        .outcome = result->outcome, .answered = result->answered, .error = result->error};
    json_t *json = NULL;

    if (check_confirmed(asking, result, &answer.error) < 0)
        answer.outcome = (struct csi_outcome){.verdict = CSI_REFUSED};
    else if (result->answer != NULL)
        json = answers_format(result->call, result->answer);
    answer.answer = json;
    note_condition(asking, result->answer);
    if (asking->cb != NULL)
        asking->cb(asking->ctx, &answer);
    json_decref(json);
    asking_free(asking);
}

static struct asking *asking_new(struct parts *parts, const struct building *building,
                                 control_answer_cb *cb, void *ctx)
{
    const struct csi_request *request = &building->request;
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    *asking = (struct asking){.cb = cb, .ctx = ctx, .parts = parts};
    DL_APPEND(parts->asked, asking);
    if (request->call != CSI_VALIDATE)
        return asking;
    asking->wanted = calloc(request->capabilities_count + 1, sizeof(*asking->wanted));
    check(asking->wanted != NULL);
    for (size_t i = 0; i < request->capabilities_count; i++) {
        const struct csi_capability *from = &request->capabilities[i];

        asking->wanted[asking->wanted_count++] =
            (struct csi_capability){.access = from->access, .block = from->block};
        if (from->fs_type != NULL)
            (void)text_copy(asking->fs_type, sizeof(asking->fs_type), from->fs_type);
    }
    return asking;
}

/* The call was never made. */
static void refuse(control_answer_cb *cb, void *ctx, enum csi_verdict verdict,
                   const struct err *err)
{
    cb(ctx, &(struct control_answer){.outcome = {.verdict = verdict}, .error = *err});
}

void controller_call(void *ctx, const char *plugin, enum csi_call call, const json_t *request,
                     control_answer_cb *cb, void *cb_ctx)
{
    struct parts *parts = ctx;
    bool of_node = call == CSI_NODE_EXPAND || call == CSI_NODE_STATS;
    const struct csi_instance *instance =
        csi_plugins_find(parts->plugins, plugin, of_node ? CSI_ROLE_NODE : CSI_ROLE_CONTROLLER);
    struct building building = {.lists_count = 0};
    struct err err = {0};

    if (instance == NULL) {
        (void)err_set(&err, ERR_AGAIN, "no healthy %s for CSI plugin: %s",
                      of_node ? "node service" : "controllers", plugin); /* refuse tells it */
        refuse(cb, cb_ctx, CSI_REPEAT, &err);
        return;
    }
    struct asking *asking = NULL;
    if (build(&building, parts, call, request, instance, &err) == 0) {
        asking = asking_new(parts, &building, cb, cb_ctx);
        if (call == CSI_NODE_STATS) /* there is a claim on it */
            check(text_copy(asking->volume, sizeof(asking->volume),
                            text_or_null(request, "VolumeID")));
        if (csi_start(instance->client, &building.request, answered, asking, &err) == NULL) {
            asking_free(asking);
            asking = NULL;
        }
    }
    building_end(&building);
    if (asking == NULL)
        refuse(cb, cb_ctx, CSI_REFUSED, &err);
}

json_t *controller_topology(void *ctx, const char *plugin)
{
    struct parts *parts = ctx;
    const struct csi_instance *instance = csi_plugins_find(parts->plugins, plugin, CSI_ROLE_NODE);

    return instance == NULL || instance->topology.count == 0 ? NULL
                                                             : answers_map(&instance->topology);
}

void controller_forget(struct parts *parts)
{
    struct asking *asking;

    DL_FOREACH(parts->asked, asking)
    asking->cb = NULL;
}
