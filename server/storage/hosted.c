/*
 * What callers ask of host volumes: to be made, registered, changed, deleted.
 *
 * Each is done in its turn at the volume's name (lanes.c), in steps: what is wanted is stored; then
 * the plugin is asked; then what it answered is stored, and the caller told.  A daemon that comes
 * back between two steps asks again, as it does of all volumes that it finds: what a plugin mounts
 * may be gone since the host went down.
 *
 * Follows nomad v2.0.5 nomad/host_volume_endpoint.go, whose words are used, and
 * client/hostvolumemanager/host_volumes.go.
 */
#include "server/storage/operation.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NODE_POOL "default"

/* --- looking --- */

static const struct registered *of_public(const struct storage_volume *volume)
{
    return (const struct registered *)(const void *)((const char *)volume -
                                                     offsetof(struct registered, public));
}

const struct storage_volume *storage_find_hosted(const struct storage *storage, const char *name)
{
    const struct registered *volume = registry_named(storage, name);

    return volume == NULL ? NULL : &volume->public;
}

bool storage_hosted_is_here(const struct storage_volume *volume)
{
    return volume->state == REGISTRATION_READY && of_public(volume)->is_here;
}

bool storage_hosted_settles(const struct storage_volume *volume)
{
    return volume->state == REGISTRATION_READY && !of_public(volume)->is_asked;
}

const char *storage_hosted_state(const struct storage_volume *volume)
{
    if (volume->state != REGISTRATION_READY || storage_hosted_settles(volume))
        return "pending";
    return of_public(volume)->is_here ? "ready" : "unavailable";
}

/* --- one after the other --- */

static void enter(struct lane_task *task, const json_t *volume)
{
    lane_enter(task, "", registry_text(volume, "Name"));
}

/* --- asking the plugin --- */

static void call_delete(struct operation *operation);

/* What the plugin is asked to make of the volume of OPERATION. */
static const json_t *wanted_of(const struct operation *operation)
{
    const json_t *change = json_object_get(operation->volume, "cairnChange");

    return change != NULL ? change : operation->volume;
}

/* It is as it is wanted. */
static void learn(struct operation *operation, const json_t *answer)
{
    json_t *change = json_object_get(operation->volume, "cairnChange");

    if (change != NULL)
        check(json_object_update(operation->volume, change) == 0);
    (void)json_object_del(operation->volume, "cairnChange");  /* missing is fine */
    (void)json_object_del(operation->volume, "cairnFailure"); /* likewise */
    check(json_object_update(operation->volume, (json_t *)(uintptr_t)answer) == 0);
}

static void note_here(struct operation *operation, bool is_here)
{
    struct registered *volume =
        registry_find(operation->task.storage, operation->namespace, operation->id);

    check(volume != NULL); /* it has its turn until it ends */
    volume->is_asked = true;
    volume->is_here = is_here;
}

static void arrived(struct operation *operation)
{
    struct storage *storage = operation->task.storage;

    note_here(operation, true);
    storage->config.freed(storage->config.freed_ctx);
    operation_done(operation);
}

/* A plugin that will not have it again, or does not know: it is asked again after a pause. */
static void doubt(struct operation *operation)
{
    struct storage *storage = operation->task.storage;

    note_here(operation, false);
    storage->config.freed(storage->config.freed_ctx); /* whoever waited hears that it is not here */
    operation_doubt(operation);
}

/* One that was here goes on as it was. */
static void unchanged(struct operation *operation)
{
    const struct registered *volume =
        registry_find(operation->task.storage, operation->namespace, operation->id);

    if (volume != NULL && volume->is_here)
        operation_done(operation);
    else
        doubt(operation);
}

static void made(void *ctx, const struct control_answer *answer)
{
    struct operation *operation = ctx;
    const struct registered *volume =
        registry_find(operation->task.storage, operation->namespace, operation->id);
    enum registration_state state = volume->public.state;

    /* What is stored is what the operation has had stored. */
    json_decref(operation->volume);
    operation->volume = json_deep_copy(volume->json);
    if (answer->answer == NULL)
        operation->err = answer->error;
    switch (policy_registration(state, CSI_CREATE_VOLUME, &answer->outcome, answer->answered)) {
    case REGISTRATION_BECOMES_READY:
        learn(operation, answer->answer);
        if (state == REGISTRATION_READY && json_equal(operation->volume, volume->json))
            arrived(operation);
        else
            operation_store_as(operation, REGISTRATION_READY, NULL, arrived);
        return;
    case REGISTRATION_CALLS_NEXT:
        operation_store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
        return;
    case REGISTRATION_IS_FORGOTTEN:
        if (state != REGISTRATION_READY) {
            operation_forget(operation);
            return;
        }
        (void)json_object_del(operation->volume, "cairnChange"); /* missing is fine */
        operation_store_as(operation, state, NULL, unchanged);
        return;
    case REGISTRATION_CALLS_AGAIN:
        operation_store_as(operation, state, NULL, doubt);
        return;
    }
    unreachable("a step of a host volume");
}

static json_t *request_of(const struct operation *operation, const json_t *from)
{
    static const char *const kept[] = {"RequestedCapacityMinBytes", "RequestedCapacityMaxBytes",
                                       "Parameters"};
    const json_t *volume = operation->volume;
    json_t *request = json_pack("{s:s, s:s, s:s, s:s, s:b}", "ID", operation->id, "Name",
                                registry_text(volume, "Name"), "Namespace", operation->namespace,
                                "HostPath", registry_text(from, "HostPath"), "Registered",
                                json_is_true(json_object_get(from, "cairnRegistered")));

    for (size_t i = 0; i < COUNT_OF(kept); i++)
        check(json_object_set(request, kept[i], json_object_get(from, kept[i])) == 0);
    return request;
}

static void call_create(struct operation *operation)
{
    operation_call(operation, CSI_CREATE_VOLUME, request_of(operation, wanted_of(operation)), made);
}

/* It was never told where one is that a plugin has made and not named. */
static void keep(struct operation *operation)
{
    if (registry_text(operation->volume, "HostPath")[0] == '\0')
        operation_store_as(operation, REGISTRATION_DELETING, NULL, operation_doubt);
    else
        operation_store_as(operation, REGISTRATION_READY, NULL, unchanged);
}

static void call_delete(struct operation *operation)
{
    if (registry_text(operation->volume, "PluginID")[0] == '\0')
        operation_forget(operation); /* whoever has made it may keep it */
    else
        operation_call(operation, CSI_DELETE_VOLUME, request_of(operation, operation->volume),
                       operation_deleted);
}

/* --- making, registering, changing --- */

/* Those who have the volume, as a list of ids; owned by the caller, NULL: nobody has it. */
static char *users_of(const struct operation *operation, const struct registered *volume)
{
    const struct storage_config *config = &operation->task.storage->config;
    json_t *users = config->users(config->hosted_ctx, operation->namespace,
                                  registry_text(volume->json, "Name"));
    char *list = json_array_size(users) == 0 ? NULL : json_dumps(users, JSON_COMPACT);

    json_decref(users);
    return list;
}

/* True if it may lie here: this is the only node there is. */
static bool fits_node(struct operation *operation)
{
    const struct storage_config *config = &operation->task.storage->config;
    const json_t *wanted = operation->wanted, *constraint;
    const char *node = registry_text(wanted, "NodeID"), *pool = registry_text(wanted, "NodePool");
    const char *plugin = registry_text(wanted, "PluginID"), *name = registry_text(wanted, "Name");
    size_t i;

    if (node[0] != '\0' && !text_equal(node, config->node->id))
        (void)err_set(&operation->err, ERR_INVALID, "node \"%s\" does not exist", node);
    else if (pool[0] != '\0' && !text_equal(pool, NODE_POOL))
        (void)err_set(&operation->err, ERR_INVALID, "node pool \"%.60s\" does not exist", pool);
    else if (operation->creates && !config->has_plugin(config->hosted_ctx, plugin))
        (void)err_set(&operation->err, ERR_INVALID,
                      "could not place volume \"%s\": this node has no host volume plugin \"%s\"",
                      name, plugin);
    json_array_foreach(json_object_get(wanted, "Constraints"), i, constraint)
    {
        if (operation->err.code == 0 && !constraint_holds(config->node, constraint))
            (void)err_set(&operation->err, ERR_INVALID,
                          "could not place volume \"%s\": no node meets constraints", name);
    }
    return operation->err.code == 0;
}

static bool may_change(struct operation *operation, const struct registered *volume)
{
    const json_t *wanted = operation->wanted;
    json_int_t most = json_integer_value(json_object_get(wanted, "RequestedCapacityMaxBytes"));
    json_int_t has = json_integer_value(json_object_get(volume->json, "Capacity"));
    char *users = users_of(operation, volume);

    if (volume->public.state != REGISTRATION_READY)
        (void)err_set(&operation->err, ERR_AGAIN, "the volume is being %s",
                      volume->public.state == REGISTRATION_CREATING ? "made" : "deleted");
    else if (!text_equal(registry_text(wanted, "Name"), registry_text(volume->json, "Name")))
        (void)err_set(&operation->err, ERR_INVALID,
                      "validating volume \"%s\" update failed: name cannot be updated",
                      operation->id);
    else if (most > 0 && most < has)
        (void)err_set(&operation->err, ERR_INVALID,
                      "validating volume \"%s\" update failed: capacity_max (%lld) cannot be less "
                      "than existing provisioned capacity (%lld)",
                      operation->id, (long long)most, (long long)has);
    else if (users != NULL)
        (void)err_set(&operation->err, ERR_INVALID,
                      "validating volume \"%s\" update failed: cannot update a volume in use: "
                      "claimed by allocs %s",
                      operation->id, users);
    free(users);
    return operation->err.code == 0;
}

/* What its plugin is to make of it is stored beside what it is. */
static void change(struct operation *operation, const struct registered *volume)
{
    static const char *const fixed[] = {"ID", "Namespace", "NodePool", "NodeID", "Constraints"};
    json_t *wanted = json_deep_copy(operation->wanted);

    for (size_t i = 0; i < COUNT_OF(fixed); i++)
        (void)json_object_del(wanted, fixed[i]); /* missing is fine */
    if (registry_text(wanted, "PluginID")[0] == '\0')
        check(json_object_set(wanted, "PluginID", json_object_get(volume->json, "PluginID")) == 0);
    if (operation->creates)
        check(json_object_set(wanted, "HostPath", json_object_get(volume->json, "HostPath")) == 0);
    check(json_object_set_new(wanted, "cairnRegistered", json_boolean(!operation->creates)) == 0);
    operation->volume = json_deep_copy(volume->json);
    check(json_object_set_new(operation->volume, "cairnChange", wanted) == 0);
    operation_store_as(operation, REGISTRATION_READY, NULL, call_create);
}

static void begin_anew(struct operation *operation)
{
    const struct storage_config *config = &operation->task.storage->config;
    json_t *volume = json_incref(operation->wanted);

    check(json_object_set_new(volume, "ID", json_string(operation->id)) == 0);
    check(json_object_set_new(volume, "NodeID", json_string(config->node->id)) == 0);
    check(json_object_set_new(volume, "NodePool", json_string(NODE_POOL)) == 0);
    check(json_object_set_new(volume, "cairnRegistered", json_boolean(!operation->creates)) == 0);
    operation->volume = volume;
    operation_store_as(operation, REGISTRATION_CREATING, NULL, call_create);
}

static bool is_refused_new(struct operation *operation)
{
    struct storage *storage = operation->task.storage;

    if (operation->is_new && HASH_COUNT(storage->volumes) >= NODE_HOST_VOLUMES_MAX)
        (void)err_set(&operation->err, ERR_LIMIT,
                      "there may be %d host volumes, and so many there are", NODE_HOST_VOLUMES_MAX);
    else if (operation->is_new &&
             storage_find_hosted(storage, registry_text(operation->wanted, "Name")) != NULL)
        (void)err_set(&operation->err, ERR_INVALID,
                      "volume name already exists on this node; it is changed by a file that has "
                      "its id");
    return operation->err.code != 0;
}

static void begin_hosted(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);

    if (!operation->is_new && volume == NULL)
        (void)err_set(&operation->err, ERR_INVALID,
                      "cannot update volume \"%s\": volume does not exist", operation->id);
    if (operation->err.code != 0 || is_refused_new(operation) || !fits_node(operation) ||
        (volume != NULL && !may_change(operation, volume)))
        operation_finish(operation, NULL);
    else if (volume != NULL)
        change(operation, volume);
    else
        begin_anew(operation);
}

static int read_request(struct storage *storage, const char *namespace, const json_t *request,
                        bool creates, struct operation **ret_operation, struct err *err)
{
    char id[UUID_TEXT_SIZE];
    json_t *wanted;
    int code = hosted_read(request, namespace, !creates, &wanted, err);

    if (code < 0)
        return code;
    if (!creates && registry_text(wanted, "NodeID")[0] == '\0')
        code = err_set(err, ERR_INVALID,
                       "cannot register volume: node ID is required (node_id, as `cairn node "
                       "status -self` has it)");
    else if (!creates && registry_text(wanted, "HostPath")[0] == '\0')
        code = err_set(err, ERR_INVALID, "cannot register volume: host path is required");
    if (code < 0) {
        json_decref(wanted);
        return code;
    }
    bool is_new = registry_text(wanted, "ID")[0] == '\0';
    if (is_new)
        storage->config.new_id(storage->config.hosted_ctx, id);
    else
        (void)text_copy(id, sizeof(id), registry_text(wanted, "ID")); /* a UUID */
    if (is_new && creates && registry_text(wanted, "PluginID")[0] == '\0')
        check(json_object_set_new(wanted, "PluginID", json_string("default")) == 0);
    *ret_operation = operation_new(storage, registry_text(wanted, "Namespace"), id, begin_hosted);
    (*ret_operation)->wanted = wanted;
    (*ret_operation)->is_new = is_new;
    return 0;
}

/* --- deleting --- */

static void begin_delete(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);

    if (volume == NULL) {
        (void)operation_refused(
            operation, err_set(&operation->err, ERR_GONE, "no such volume: %s", operation->id));
        return;
    }
    char *users = users_of(operation, volume);
    if (users != NULL) {
        (void)err_set(&operation->err, ERR_REFUSED, "volume %s in use by allocations: %s",
                      operation->id, users);
        free(users);
        operation_finish(operation, NULL);
        return;
    }
    operation->volume = json_deep_copy(volume->json);
    (void)json_object_del(operation->volume, "cairnChange"); /* missing is fine */
    operation_store_as(operation, REGISTRATION_DELETING, NULL, call_delete);
}

/* --- going on --- */

static bool is_open(const struct registered *volume)
{
    return volume->public.state != REGISTRATION_READY || !volume->is_here ||
           json_object_get(volume->json, "cairnChange") != NULL;
}

/* Whoever had his turn before may have seen to it. */
static void resume(struct lane_task *task)
{
    struct operation *operation = (struct operation *)(void *)task;
    const struct registered *volume =
        registry_find(task->storage, operation->namespace, operation->id);

    if (volume == NULL || !is_open(volume)) {
        operation_finish(operation, NULL);
        return;
    }
    operation->volume = json_deep_copy(volume->json);
    if (volume->public.state == REGISTRATION_DELETING)
        call_delete(operation);
    else
        call_create(operation);
}

const struct storage_kind hosted_kind = {.prefix = HOSTED_PREFIX,
                                         .has_names = true,
                                         .fault = hosted_fault,
                                         .read = read_request,
                                         .enter = enter,
                                         .begin_delete = begin_delete,
                                         .keep = keep,
                                         .is_open = is_open,
                                         .resume = resume};
