/*
 * What callers ask of volumes: to be registered, made, changed, deleted, forgotten.
 *
 * Each is done in its turn at the volume (lanes.c), in steps: what is wanted is stored; then the
 * plugin is asked; then what it answered is stored, and the caller told.  A daemon that comes back
 * between two steps, or a plugin that dies in the second, leaves a volume that says what is open,
 * and the second step is made again: its calls can be repeated (csi.md 2.10).
 *
 * Follows nomad v2.0.5 nomad/csi_endpoint.go, whose words are used.
 */
#include "server/storage/operation.h"

#include <stdlib.h>
#include <string.h>

/* --- registering --- */

static void validated(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL) {
        operation->err = answer->error;
        operation_finish(operation, NULL);
        return;
    }
    operation_store_as(operation, REGISTRATION_READY, operation->secret, operation_done);
}

static json_t *mount_options(const struct operation *operation)
{
    json_t *options =
        json_pack("{s:s}", "Filesystem",
                  registry_text(json_object_get(operation->volume, "MountOptions"), "FSType"));
    json_t *flags = json_object_get(operation->hidden, "MountFlags");

    if (flags != NULL)
        check(json_object_set(options, "MountFlags", flags) == 0);
    return options;
}

/* What is registered is what the plugin confirms; one without a controller is believed. */
static void validate(struct operation *operation)
{
    const json_t *volume = operation->volume;

    if (!json_is_true(json_object_get(volume, "ControllerRequired"))) {
        operation_store_as(operation, REGISTRATION_READY, operation->secret, operation_done);
        return;
    }
    operation_call(operation, CSI_VALIDATE,
                   json_pack("{s:s, s:O, s:o, s:O, s:O}", "VolumeID", registry_remote_id(volume),
                             "VolumeCapabilities", json_object_get(volume, "RequestedCapabilities"),
                             "MountOptions", mount_options(operation), "Parameters",
                             json_object_get(volume, "Parameters"), "Context",
                             json_object_get(volume, "Context")),
                   validated);
}

static void change(struct operation *operation, const struct registered *volume,
                   const struct control_plugin *plugin)
{
    bool calls;

    if (operation_merge(operation, volume) < 0 || growth_plan(operation, &calls) < 0) {
        operation_finish(operation, NULL);
        return;
    }
    operation_note_plugin(operation->volume, plugin);
    if (!calls) {
        validate(operation);
        return;
    }
    if (operation_can(operation, plugin, CSI_CONTROLLER_EXPANDS,
                      "unable to update volume: expand is not implemented by this controller "
                      "plugin"))
        operation_store_as(operation, REGISTRATION_READY, operation->secret, growth_begin);
}

/* --- creating --- */

static bool learn(struct operation *operation, const json_t *answer)
{
    const char *external = registry_text(answer, "ExternalVolumeID");
    json_t *topologies = json_object_get(answer, "Topologies");
    json_t *context = json_object_get(answer, "VolumeContext");
    json_t *bytes = json_object_get(answer, "CapacityBytes");

    check(json_object_set_new(operation->volume, "ExternalID", json_string(external)) == 0);
    (void)json_object_del(operation->volume, "cairnNameless"); /* missing is fine */
    if (context != NULL)
        check(json_object_set(operation->volume, "Context", context) == 0);
    if (json_array_size(topologies) > 0)
        check(json_object_set(operation->volume, "Topologies", topologies) == 0);
    check(json_object_set_new(operation->volume, "Capacity",
                              json_integer(json_integer_value(bytes))) == 0);
    if (external[0] != '\0' && strlen(external) < sizeof(((struct claim *)0)->external))
        return true;
    (void)err_set(&operation->err, ERR_UNSUPPORTED,
                  "the plugin gives the volume an id that no claim can hold: it is deleted again");
    return false;
}

static void call_delete(struct operation *operation);

static void created(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;
    bool deletes = text_equal(registry_text(operation->volume, "cairnState"), "deleting");
    enum registration_state state = deletes ? REGISTRATION_DELETING : REGISTRATION_CREATING;
    bool learned = answer->answer == NULL || learn(operation, answer->answer);

    if (answer->answer == NULL)
        operation->err = answer->error;
    switch (policy_registration(state, CSI_CREATE_VOLUME, &answer->outcome, answer->answered)) {
    case REGISTRATION_BECOMES_READY:
        if (learned)
            operation_store_as(operation, REGISTRATION_READY, NULL, operation_done);
        else
            operation_store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
        return;
    case REGISTRATION_CALLS_NEXT:
        operation_store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
        return;
    case REGISTRATION_IS_FORGOTTEN:
        if (deletes)
            operation->err = (struct err){0}; /* there is nothing to delete */
        operation_forget(operation);
        return;
    case REGISTRATION_CALLS_AGAIN:
        operation_store_as(operation, state, NULL, operation_doubt);
        return;
    }
    unreachable("a step of a registration");
}

static void call_create(struct operation *operation)
{
    static const char *const kept[] = {"Name", "Parameters", "SnapshotID", "CloneID",
                                       "RequestedTopologies"};
    const json_t *volume = operation->volume;
    json_t *request = json_pack("{s:O, s:O, s:O, s:o}", "VolumeCapabilities",
                                json_object_get(volume, "RequestedCapabilities"), "CapacityMin",
                                json_object_get(volume, "RequestedCapacityMin"), "CapacityMax",
                                json_object_get(volume, "RequestedCapacityMax"), "MountOptions",
                                mount_options(operation));

    for (size_t i = 0; i < COUNT_OF(kept); i++)
        check(json_object_set(request, kept[i], json_object_get(volume, kept[i])) == 0);
    operation_call(operation, CSI_CREATE_VOLUME, request, created);
}

/* A new one, or one of which nobody knows yet whether it was made as another request wanted it. */
static void create(struct operation *operation, const struct registered *before,
                   const struct control_plugin *plugin)
{
    static const char *const kept[] = {"CreateIndex", "CreateTime"};

    if (!operation_can(operation, plugin, CSI_CONTROLLER_CREATES,
                       "plugin does not support creating volumes"))
        return;
    operation->volume = json_incref(operation->wanted);
    if (registry_text(operation->volume, "Name")[0] == '\0')
        check(json_object_set_new(operation->volume, "Name", json_string(operation->id)) == 0);
    for (size_t i = 0; before != NULL && i < COUNT_OF(kept); i++)
        check(json_object_set(operation->volume, kept[i], json_object_get(before->json, kept[i])) ==
              0);
    operation_note_plugin(operation->volume, plugin);
    operation_store_as(operation, REGISTRATION_CREATING, operation->secret, call_create);
}

static void enlist(struct operation *operation, const struct control_plugin *plugin)
{
    json_t *topologies = json_object_get(operation->wanted, "RequestedTopologies");
    json_t *required = json_object_get(topologies, "Required");

    operation->volume = json_incref(operation->wanted);
    if (json_array_size(required) > 0)
        check(json_object_set(operation->volume, "Topologies", required) == 0);
    operation_note_plugin(operation->volume, plugin);
    validate(operation);
}

static void begin_register(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (volume == NULL && HASH_COUNT(task->storage->volumes) >= NODE_VOLUMES_MAX) {
        (void)operation_refused(operation, err_set(&operation->err, ERR_LIMIT,
                                                   "there may be %d volumes, and so many there are",
                                                   NODE_VOLUMES_MAX));
        return;
    }
    if (!operation_has_plugin(operation, operation->wanted, &plugin) ||
        !operation_gather_secrets(operation, volume))
        return;
    if (volume != NULL && volume->public.state == REGISTRATION_READY)
        change(operation, volume, &plugin);
    else if (volume != NULL &&
             !(operation->creates && volume->public.state == REGISTRATION_CREATING))
        (void)operation_refused(
            operation, err_set(&operation->err, ERR_AGAIN, "the volume is being %s",
                               volume->public.state == REGISTRATION_CREATING ? "made" : "deleted"));
    else if (operation->creates)
        create(operation, volume, &plugin);
    else
        enlist(operation, &plugin);
}

void provision_enter(struct lane_task *task, const json_t *volume)
{
    const struct operation *operation = (struct operation *)(void *)task;

    (void)volume; /* the operation names it */
    lane_enter(task, operation->namespace, operation->id);
}

int provision_read(struct storage *storage, const char *namespace, const json_t *request,
                   bool creates, struct operation **ret_operation, struct err *err)
{
    json_t *wanted, *secret;
    int code = registry_read(request, namespace, &wanted, &secret, err);

    (void)creates; /* both say the same */
    if (code < 0)
        return code;
    *ret_operation = operation_new(storage, registry_text(wanted, "Namespace"),
                                   registry_text(wanted, "ID"), begin_register);
    (*ret_operation)->wanted = wanted;
    (*ret_operation)->secret = secret;
    return 0;
}

/* --- deleting --- */

void provision_keep(struct operation *operation)
{
    operation_store_as(operation, REGISTRATION_READY, NULL, operation_done);
}

static void call_delete(struct operation *operation)
{
    if (json_is_true(json_object_get(operation->volume, "cairnNameless"))) {
        call_create(operation); /* its answer says what there is to delete */
        return;
    }
    operation_call(operation, CSI_DELETE_VOLUME,
                   json_pack("{s:s}", "ExternalVolumeID", registry_remote_id(operation->volume)),
                   operation_deleted);
}

static bool is_there(struct operation *operation, const struct registered *volume)
{
    return volume != NULL ||
           operation_refused(operation, err_set(&operation->err, ERR_GONE, "volume not found: %s",
                                                operation->id));
}

static bool is_in_use(struct operation *operation, const struct registered *volume)
{
    const struct storage_claims claims =
        storage_claims_of(operation->task.storage, &volume->public);
    bool held = claims.readers + claims.writers > 0;

    if (!held && !claims_are_given_back(operation->task.storage, volume->json))
        return false;
    (void)operation_refused(
        operation, err_set(&operation->err, ERR_REFUSED, "volume in use: %s%s", operation->id,
                           held ? "" : "; an alloc that has ended has yet to let go"));
    return true;
}

/* What is deleted is gone for all who have registered it: Nomad looks at one name only. */
static bool is_in_use_by_another_name(struct operation *operation, const struct registered *volume)
{
    const struct storage *storage = operation->task.storage;

    for (const struct registered *other = storage->volumes; other != NULL; other = other->hh.next) {
        const struct storage_claims claims = storage_claims_of(storage, &other->public);

        if (other == volume || claims.readers + claims.writers == 0 ||
            !text_equal(registry_remote_id(other->json), registry_remote_id(volume->json)) ||
            !text_equal(registry_text(other->json, "PluginID"),
                        registry_text(volume->json, "PluginID")))
            continue;
        (void)operation_refused(operation,
                                err_set(&operation->err, ERR_REFUSED,
                                        "volume in use: %s is registered as %s in namespace %s, "
                                        "too",
                                        operation->id, other->id, other->namespace));
        return true;
    }
    return false;
}

void provision_begin_delete(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (!is_there(operation, volume))
        return;
    if (is_in_use(operation, volume) || is_in_use_by_another_name(operation, volume) ||
        !operation_has_plugin(operation, volume->json, &plugin) ||
        !operation_can(operation, &plugin, CSI_CONTROLLER_CREATES,
                       "plugin does not support deleting volumes") ||
        !operation_gather_secrets(operation, volume))
        return;
    operation->volume = json_deep_copy(volume->json);
    if (volume->public.state == REGISTRATION_CREATING)
        check(json_object_set_new(operation->volume, "cairnNameless", json_true()) == 0);
    operation_store_as(operation, REGISTRATION_DELETING, operation->hidden, call_delete);
}

/* --- forgetting --- */

struct finding_live {
    const struct core *core;
    bool lets_go; /* whoever does is not meant */
    bool found;
};

static bool find_live(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_live *finding = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(finding->core, owner.text);

    (void)record;
    finding->found |= alloc != NULL && alloc->ended_unix_ns == 0 &&
                      !(finding->lets_go && alloc_state_lets_go(alloc->machine.state));
    return !finding->found;
}

static void begin_deregister(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);
    struct finding_live finding = {.core = life_core(task->storage->config.life), .lets_go = true};

    if (!is_there(operation, volume))
        return;
    if (operation->force)
        storage_each_claim(task->storage, &volume->public, find_live, &finding);
    if (operation->force && !finding.found)
        operation_forget(operation);
    else if (!is_in_use(operation, volume))
        operation_forget(operation);
}

void storage_deregister_volume(struct storage *storage, const char *namespace, const char *id,
                               bool force, storage_volume_answer *answer, void *ctx)
{
    struct operation *operation = operation_new(storage, namespace, id, begin_deregister);

    operation->force = force;
    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, namespace, id);
}

/* --- taking off the node --- */

static void detached(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;

    if (answer->answer == NULL && answer->outcome.verdict != CSI_DONE)
        operation->err = answer->error;
    operation_finish(operation, NULL);
}

static void begin_detach(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);
    struct finding_live finding = {.core = life_core(task->storage->config.life)};
    struct control_plugin plugin;

    if (!is_there(operation, volume))
        return;
    storage_each_claim(task->storage, &volume->public, find_live, &finding);
    if (finding.found) {
        (void)operation_refused(operation,
                                err_set(&operation->err, ERR_REFUSED,
                                        "volume in use: %s; stop the allocs that have it first",
                                        operation->id));
        return;
    }
    const struct storage_claims claims = storage_claims_of(task->storage, &volume->public);
    if (claims.readers + claims.writers > 0) {
        (void)operation_refused(
            operation, err_set(&operation->err, ERR_AGAIN,
                               "volume %s is still being unmounted after its allocs have ended",
                               operation->id));
        return;
    }
    (void)registry_plugin(task->storage, registry_text(volume->json, "PluginID"), &plugin);
    if (!plugin.controller_ready || plugin.node_id[0] == '\0' ||
        (plugin.controller_capabilities & CSI_CONTROLLER_PUBLISHES) == 0) {
        operation_finish(operation, NULL); /* nobody attaches it to nodes, or could take it off */
        return;
    }
    if (!operation_gather_secrets(operation, volume))
        return;
    operation->volume = json_incref(volume->json);
    operation_call(operation, CSI_CONTROLLER_UNPUBLISH,
                   json_pack("{s:s, s:s}", "VolumeID", registry_remote_id(volume->json),
                             "ClientCSINodeID", plugin.node_id),
                   detached);
}

void storage_detach_volume(struct storage *storage, const char *namespace, const char *id,
                           storage_volume_answer *answer, void *ctx)
{
    struct operation *operation = operation_new(storage, namespace, id, begin_detach);

    operation->answer = answer;
    operation->ctx = ctx;
    lane_enter(&operation->task, namespace, id);
}

/* --- going on --- */

/* Whoever had his turn before may have seen to it. */
void provision_resume(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    struct registered *volume = registry_find(task->storage, operation->namespace, operation->id);
    struct control_plugin plugin;

    if (volume == NULL || !operation_is_open(volume)) {
        operation_finish(operation, NULL);
        return;
    }
    registry_plugin(task->storage, registry_text(volume->json, "PluginID"), &plugin);
    bool nodes_turn =
        volume->public.state == REGISTRATION_READY && registry_grows_on_node(volume->json);
    if (nodes_turn ? !plugin.node_ready : !plugin.controller_ready) {
        operation_finish(operation, NULL); /* storage_resume follows when it is */
        return;
    }
    if (!operation_gather_secrets(operation, volume))
        return;
    operation->volume = json_deep_copy(volume->json);
    if (volume->public.state == REGISTRATION_CREATING)
        call_create(operation);
    else if (volume->public.state == REGISTRATION_DELETING)
        call_delete(operation);
    else
        growth_begin(operation);
}

void storage_tidy(struct storage *storage)
{
    struct registered *volume, *next;
    uint64_t now_ms = life_now_ms(storage->config.life);

    if (storage->provision_at_ms == 0 || storage->provision_at_ms > now_ms)
        return;
    storage->provision_at_ms = 0;
    HASH_ITER(hh, storage->volumes, volume, next)
    {
        if (volume->retry_at_ms == 0 || volume->resumes)
            continue;
        if (volume->retry_at_ms > now_ms) {
            operation_retry_at(storage, volume->retry_at_ms);
            continue;
        }
        volume->retry_at_ms = 0;
        volume->resumes = true;
        struct operation *operation =
            operation_new(storage, volume->namespace, volume->id, storage->kind->resume);
        storage->kind->enter(&operation->task, volume->json);
    }
}

/* What is open is looked at by the next tidy. */
void storage_resume(struct storage *storage)
{
    for (struct registered *volume = storage->volumes; volume != NULL; volume = volume->hh.next) {
        if (!storage->kind->is_open(volume) || volume->resumes)
            continue;
        volume->retry_at_ms = 1;
        operation_retry_at(storage, 1);
    }
}

uint64_t storage_deadline_ms(const struct storage *storage)
{
    return storage->provision_at_ms;
}
