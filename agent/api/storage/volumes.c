/*
 * Volumes of storage plugins over HTTP.
 *
 * The control plane (server/storage/storage.h) decides; here is only what Nomad's routes make of
 * it. Nothing that is secret is ever in an answer.  Follows nomad v2.0.5
 * command/agent/csi_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/storage/storage.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct storage_volume *volume, const char *name)
{
    return json_string_value(json_object_get(volume->json, name)); /* NULL is written as "" */
}

/* A new reference; null if it says nothing of it. */
static json_t *field_of(const struct storage_volume *volume, const char *name)
{
    json_t *value = json_object_get(volume->json, name);

    return value == NULL ? json_null() : json_incref(value);
}

/* --- reading --- */

/* What a list and a whole volume have in common. */
static void put_volume(struct writer *to, struct api *api, const struct storage_volume *volume)
{
    static const char *const numbers[] = {"CreateIndex", "ModifyIndex", "CreateTime", "ModifyTime"};
    struct storage *storage = api->parts->storage;
    struct storage_claims claims = storage_claims_of(storage, volume);
    struct control_plugin plugin;

    storage_plugin_of(storage, volume, &plugin);
    put_text(to, "ID", volume->id);
    put_text(to, "Namespace", volume->namespace);
    put_text(to, "Name", text_of(volume, "Name"));
    put_text(to, "ExternalID", text_of(volume, "ExternalID"));
    put_json_new(to, "Topologies", field_of(volume, "Topologies"));
    put_text(to, "AccessMode", spec_access_name((enum csi_access)claims.access));
    put_text(to, "AttachmentMode", spec_attachment_name((enum csi_attachment)claims.attachment));
    put_bool(to, "Schedulable", storage_is_schedulable(storage, volume));
    put_text(to, "PluginID", text_of(volume, "PluginID"));
    put_text(to, "Provider", text_of(volume, "Provider"));
    put_bool(to, "ControllerRequired",
             json_is_true(json_object_get(volume->json, "ControllerRequired")));
    put_number(to, "ControllersHealthy", plugin.controller_ready);
    put_number(to, "ControllersExpected", plugin.has_controller);
    put_number(to, "NodesHealthy", plugin.node_ready);
    put_number(to, "NodesExpected", plugin.has_node);
    put_text(to, "ResourceExhausted", "0001-01-01T00:00:00Z");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        put_number(to, numbers[i], json_integer_value(json_object_get(volume->json, numbers[i])));
    put_number(to, "CurrentReaders", (int64_t)claims.readers);
    put_number(to, "CurrentWriters", (int64_t)claims.writers);
}

struct listing {
    struct api_request *request;
    struct writer to;
};

static bool list_volume(void *ctx, const struct storage_volume *volume)
{
    struct listing *listing = ctx;
    struct api_request *request = listing->request;
    const char *plugin = http_query(request->exchange, "plugin_id");
    const char *node = http_query(request->exchange, "node_id");
    const struct storage_claims claims = storage_claims_of(request->api->parts->storage, volume);

    if (!text_starts_with(volume->id, request->prefix) ||
        !api_namespace_matches(request, volume->namespace) ||
        !api_may(request, volume->namespace,
                 ACL_BIT(ACL_CSI_LIST_VOLUME) | ACL_BIT(ACL_CSI_READ_VOLUME)) ||
        (plugin != NULL && plugin[0] != '\0' && !text_equal(plugin, text_of(volume, "PluginID"))))
        return true;
    /* Those that some alloc of this node has; there is no other node. */
    if (node != NULL && node[0] != '\0' &&
        (!text_starts_with(request->api->parts->node.identity.id, node) ||
         claims.readers + claims.writers == 0))
        return true;
    put_object(&listing->to, NULL);
    put_volume(&listing->to, request->api, volume);
    put_end(&listing->to);
    return true;
}

void api_volumes_list(struct api_request *request)
{
    const char *type = http_query(request->exchange, "type");

    if (type != NULL && text_equal(type, "host")) {
        api_host_volumes_list(request);
        return;
    }
    struct listing listing = {request, api_writer(request)};

    put_array(&listing.to, NULL);
    if (type == NULL || type[0] == '\0' || text_equal(type, "csi"))
        storage_each_volume(request->api->parts->storage, list_volume, &listing);
    put_end(&listing.to);
    api_reply_written(request, &listing.to);
}

/* Who has a volume: allocs by what they do with it, and each of them as lists of allocs show it. */
struct users {
    struct api *api;
    struct writer *to;
    enum { USERS_READ, USERS_WRITE, USERS_ALL } which;
};

static bool put_user(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct users *users = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(users->api->parts->core, owner.text);
    bool reads = volume_of(record)->define.read_only;

    if (users->which == USERS_ALL && alloc != NULL)
        api_put_alloc(users->to, users->api, owner.text, alloc, API_ALLOC_TASK_STATES);
    else if (users->which != USERS_ALL && reads == (users->which == USERS_READ))
        put_null(users->to, owner.text);
    return true;
}

/* What keeps it from being let go. */
static bool put_failure(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct users *users = ctx;

    if (volume_of(record)->failures > 0)
        put_text(users->to, machine_id_owner(id).text, volume_of(record)->failure);
    return true;
}

static void put_users(struct writer *to, struct api *api, const struct storage_volume *volume)
{
    struct users users = {api, to, USERS_READ};

    put_object(to, "ReadAllocs");
    storage_each_claim(api->parts->storage, volume, put_user, &users);
    put_end(to);
    users.which = USERS_WRITE;
    put_object(to, "WriteAllocs");
    storage_each_claim(api->parts->storage, volume, put_user, &users);
    put_end(to);
    users.which = USERS_ALL;
    put_array(to, "Allocations");
    storage_each_claim(api->parts->storage, volume, put_user, &users);
    put_end(to);
    put_object(to, "CairnFailures");
    storage_each_claim(api->parts->storage, volume, put_failure, &users);
    put_end(to);
}

/* That there are mount flags may be known, which they are may not. */
static json_t *mount_options(const struct storage_volume *volume)
{
    json_t *options = json_deep_copy(json_object_get(volume->json, "MountOptions"));

    if (options == NULL)
        return json_null();
    check(json_object_set_new(options, "MountFlags",
                              volume->has_mount_flags ? json_pack("[s]", "[REDACTED]")
                                                      : json_null()) == 0);
    return options;
}

static void put_whole(struct writer *to, struct api *api, const struct storage_volume *volume)
{
    static const char *const kept[] = {"RequestedTopologies",
                                       "Parameters",
                                       "Context",
                                       "Capacity",
                                       "RequestedCapacityMin",
                                       "RequestedCapacityMax",
                                       "RequestedCapabilities",
                                       "CloneID",
                                       "SnapshotID"};

    put_object(to, NULL);
    put_volume(to, api, volume);
    put_text(to, "ProviderVersion", text_of(volume, "ProviderVersion"));
    put_json_new(to, "MountOptions", mount_options(volume));
    put_null(to, "Secrets");
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        put_json_new(to, kept[i], field_of(volume, kept[i]));
    put_users(to, api, volume);
    put_text(to, "CairnState", registration_name(volume->state));
    put_text(to, "CairnFailure", volume->last_fail);
    put_end(to);
}

/* One request about one volume, while the control plane works on it. */
struct asking {
    char namespace[SPEC_NAMESPACE_SIZE], id[SPEC_SOURCE_SIZE];
    json_t *stats; /* of its plugin */
};

static struct api_deferred *defer(struct api_request *request, const char *namespace,
                                  const char *id, json_t *(*make)(struct api *api, void *ctx))
{
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    (void)text_copy(asking->namespace, sizeof(asking->namespace), namespace);
    (void)text_copy(asking->id, sizeof(asking->id), id); /* longer ones are refused */
    return api_defer(request, make, asking);
}

static json_t *whole(struct api *api, const struct storage_volume *volume)
{
    struct writer to = {.pretty = false};

    put_whole(&to, api, volume);
    json_t *json = json_loadb(to.bytes, to.used, 0, NULL);
    check(json != NULL);
    free(to.bytes);
    return json;
}

static const struct storage_volume *asked_volume(struct api *api, const struct asking *asking)
{
    return storage_find_volume(api->parts->storage, asking->namespace, asking->id);
}

static json_t *make_with_stats(struct api *api, void *ctx)
{
    struct asking *asking = ctx;
    json_t *json = whole(api, asked_volume(api, asking)); /* it is there, as tell_stats has seen */

    check(json_object_set_new(json, "CairnStats", asking->stats) == 0);
    return json;
}

/* What its plugin has to say, or why it says nothing: the volume is shown all the same. */
static void tell_stats(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct api_deferred *deferred = ctx;
    struct asking *asking = deferred->ctx;
    bool is_gone = asked_volume(deferred->api, asking) == NULL;
    const struct err gone = {.code = ERR_GONE, .text = "volume not found"};

    if (deferred->exchange != NULL && !is_gone) /* else nobody takes it */
        asking->stats = api_passed(code, err, answer);
    api_deferred_answer(deferred, is_gone ? ERR_GONE : 0, is_gone ? &gone : NULL);
}

void api_volume_get(struct api_request *request)
{
    struct storage *storage = request->api->parts->storage;
    const struct storage_volume *volume =
        storage_find_volume(storage, request->namespace, request->argument);
    bool stats = false;

    if (volume == NULL) {
        api_refuse(request, 404, "volume not found");
        return;
    }
    if (!api_query_bool(request, "stats", &stats))
        return;
    if (stats) {
        storage_volume_stats(
            storage, request->namespace, request->argument, tell_stats,
            defer(request, request->namespace, request->argument, make_with_stats));
        return;
    }
    struct writer to = api_writer(request);
    put_whole(&to, request->api, volume);
    api_reply_written(request, &to);
}

/* --- changing --- */

/* The volume as it is now, which whoever changed it is told, as Nomad does. */
static json_t *make_volumes(struct api *api, void *ctx)
{
    const struct storage_volume *volume = asked_volume(api, ctx);
    const char *warning = volume == NULL ? "" : volume->last_fail;
    json_t *list = json_array();

    if (volume != NULL)
        check(json_array_append_new(list, whole(api, volume)) == 0);
    return json_pack("{s:o, s:s, s:I}", "Volumes", list, "Warnings", warning, "Index",
                     (json_int_t)api_index(api));
}

static void answered(void *ctx, int code, const struct err *err, const json_t *answer)
{
    (void)answer; /* it is looked at when it is told */
    api_deferred_answer(ctx, code, err);
}

typedef void volume_ask(struct storage *storage, const char *namespace, const json_t *request,
                        storage_volume_answer *answer, void *ctx);

/* Nomad's clients send a list of one. */
static void put_one(struct api_request *request, volume_ask *ask)
{
    json_t *body = api_body(request, false);
    json_t *volume = json_array_get(json_object_get(body, "Volumes"), 0);
    const char *namespace = json_string_value(json_object_get(volume, "Namespace"));

    if (body == NULL)
        return;
    if (namespace == NULL || namespace[0] == '\0')
    namespace = request->namespace;
    if (!json_is_object(volume) || json_array_size(json_object_get(body, "Volumes")) != 1)
        api_refuse(request, 400, "missing volume definition");
    else if (api_must(request, namespace, request->route->need.any_of))
        ask(request->api->parts->storage, request->namespace, volume, answered,
            defer(request, namespace, json_string_value(json_object_get(volume, "ID")),
                  make_volumes));
    json_decref(body);
}

void api_volume_register(struct api_request *request)
{
    put_one(request, storage_register_volume);
}

void api_volume_create(struct api_request *request)
{
    put_one(request, storage_create_volume);
}

void api_volume_forget(struct api_request *request)
{
    bool force = false;

    if (api_query_bool(request, "force", &force))
        storage_deregister_volume(request->api->parts->storage, request->namespace,
                                  request->argument, force, answered,
                                  defer(request, request->namespace, request->argument, NULL));
}

/* "key=value,key=value" of Nomad's header: what is no pair is passed over, as Nomad does. */
static json_t *header_secrets(const struct api_request *request)
{
    const char *header = http_header(request->exchange, "X-Nomad-CSI-Secrets");
    char *copy = strdup(header == NULL ? "" : header), *rest = copy, *pair;
    json_t *secrets = json_object();

    check(copy != NULL);
    while ((pair = strsep(&rest, ",")) != NULL) {
        char *value = strchr(pair, '=');
        if (value == NULL)
            continue;
        *value++ = '\0';
        (void)json_object_set_new(secrets, pair, json_string(value)); /* no UTF-8: none */
    }
    explicit_bzero(copy, strlen(header == NULL ? "" : header));
    free(copy);
    return secrets;
}

void api_volume_delete(struct api_request *request)
{
    json_t *secrets = header_secrets(request);

    storage_delete_volume(request->api->parts->storage, request->namespace, request->argument,
                          secrets, answered,
                          defer(request, request->namespace, request->argument, NULL));
    storage_wipe(secrets);
}

/* There is this node alone. */
void api_volume_detach(struct api_request *request)
{
    const char *node = http_query(request->exchange, "node");

    if (node == NULL || node[0] == '\0')
        api_refuse(request, 400, "detach requires node ID");
    else if (!text_equal(node, request->api->parts->node.identity.id))
        api_refuse(request, 404, "node not found: this is %s, and there is no other",
                   request->api->parts->node.identity.id);
    else
        storage_detach_volume(request->api->parts->storage, request->namespace, request->argument,
                              answered,
                              defer(request, request->namespace, request->argument, NULL));
}

/* --- what plugins know --- */

/* What came of a question that only passes through. */
struct passing {
    json_t *answer;
    const char *list; /* what Nomad calls its entries; NULL: there is no list */
};

static json_t *make_list(struct api *api, void *ctx)
{
    struct passing *passing = ctx;
    json_t *entries = json_object_get(passing->answer, "Entries");
    json_t *token = json_object_get(passing->answer, "NextToken");
    json_t *body = json_pack("{s:O, s:O, s:I}", passing->list, entries, "NextToken", token, "Index",
                             (json_int_t)api_index(api));

    json_decref(passing->answer);
    return body;
}

static json_t *make_snapshot(struct api *api, void *ctx)
{
    struct passing *passing = ctx;

    return json_pack("{s:[o], s:I}", "Snapshots", passing->answer, "Index",
                     (json_int_t)api_index(api));
}

static void passed(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct api_deferred *deferred = ctx;
    struct passing *passing = deferred->ctx;

    if (deferred->exchange != NULL) /* else nobody takes it */
        passing->answer = json_incref((json_t *)(uintptr_t)answer);
    api_deferred_answer(deferred, code, err);
}

static struct api_deferred *defer_passing(struct api_request *request, const char *list,
                                          json_t *(*make)(struct api *api, void *ctx))
{
    struct passing *passing = calloc(1, sizeof(*passing));

    check(passing != NULL);
    passing->list = list;
    return api_defer(request, make, passing);
}

static void list_external(struct api_request *request, bool snapshots)
{
    const char *plugin = http_query(request->exchange, "plugin_id");
    const char *token = http_query(request->exchange, "next_token");
    json_t *secrets = header_secrets(request);
    int64_t entries_max = 0;

    if (plugin == NULL || plugin[0] == '\0') {
        api_refuse(request, 400, "plugin_id is required");
    } else if (api_query_number(request, "per_page", &entries_max)) {
        const struct storage_page page = {.plugin = plugin,
                                          .snapshots = snapshots,
                                          .entries_max = entries_max < 0 ? 0 : entries_max,
                                          .token = token == NULL ? "" : token,
                                          .secrets = secrets};
        storage_list_external(
            request->api->parts->storage, &page, passed,
            defer_passing(request, snapshots ? "Snapshots" : "Volumes", make_list));
    }
    storage_wipe(secrets);
}

void api_volumes_external(struct api_request *request)
{
    list_external(request, false);
}

void api_snapshots_list(struct api_request *request)
{
    list_external(request, true);
}

void api_snapshot_create(struct api_request *request)
{
    json_t *body = api_body(request, false);
    const json_t *snapshots = json_object_get(body, "Snapshots");

    if (body == NULL)
        return;
    if (json_array_size(snapshots) != 1 || !json_is_object(json_array_get(snapshots, 0)))
        api_refuse(request, 400, "snapshot cannot be nil");
    else
        storage_create_snapshot(request->api->parts->storage, request->namespace,
                                json_array_get(snapshots, 0), passed,
                                defer_passing(request, NULL, make_snapshot));
    json_decref(body);
}

void api_snapshot_delete(struct api_request *request)
{
    const char *plugin = http_query(request->exchange, "plugin_id");
    const char *id = http_query(request->exchange, "snapshot_id");
    json_t *secrets = header_secrets(request);

    if (plugin == NULL || plugin[0] == '\0' || id == NULL || id[0] == '\0')
        api_refuse(request, 400, "plugin_id and snapshot_id are required");
    else
        storage_delete_snapshot(request->api->parts->storage, plugin, id, secrets, answered,
                                defer(request, request->namespace, "", NULL));
    storage_wipe(secrets);
}
