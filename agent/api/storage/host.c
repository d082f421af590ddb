/*
 * Host volumes over HTTP: those that plugins of the host make, or that are registered.
 *
 * The control plane (server/storage/storage.h) decides; here is only what Nomad's routes make of
 * it.  Follows nomad v2.0.5 command/agent/host_volume_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/storage/storage.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const struct storage_volume *volume, const char *name)
{
    return json_string_value(json_object_get(volume->json, name)); /* NULL is written as "" */
}

static void put_number_of(struct writer *to, const struct storage_volume *volume, const char *name,
                          const char *stored)
{
    put_number(to, name, json_integer_value(json_object_get(volume->json, stored)));
}

/* What a list and a whole volume have in common. */
static void put_volume(struct writer *to, const struct storage_volume *volume)
{
    static const char *const numbers[] = {"CreateIndex", "CreateTime", "ModifyIndex", "ModifyTime"};

    put_text(to, "Namespace", volume->namespace);
    put_text(to, "ID", volume->id);
    put_text(to, "Name", text_of(volume, "Name"));
    put_text(to, "PluginID", text_of(volume, "PluginID"));
    put_text(to, "NodePool", text_of(volume, "NodePool"));
    put_text(to, "NodeID", text_of(volume, "NodeID"));
    put_number_of(to, volume, "CapacityBytes", "Capacity");
    put_text(to, "State", storage_hosted_state(volume));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        put_number_of(to, volume, numbers[i], numbers[i]);
}

static void put_users(struct writer *to, struct api *api, const struct storage_volume *volume)
{
    json_t *users =
        alone_hosted_users(api->parts->alone, volume->namespace, text_of(volume, "Name"));
    const json_t *id;
    size_t i;

    put_array(to, "Allocations");
    json_array_foreach(users, i, id)
    {
        const char *text = json_string_value(id);
        const struct alloc *alloc = core_alloc(api->parts->core, text);

        if (alloc != NULL)
            api_put_alloc(to, api, text, alloc, API_ALLOC_TASK_STATES);
    }
    put_end(to);
    json_decref(users);
}

static json_t *field_of(const struct storage_volume *volume, const char *name)
{
    json_t *value = json_object_get(volume->json, name);

    return value == NULL ? json_null() : json_incref(value);
}

static void put_whole(struct writer *to, struct api *api, const struct storage_volume *volume)
{
    put_object(to, NULL);
    put_volume(to, volume);
    put_number_of(to, volume, "RequestedCapacityMinBytes", "RequestedCapacityMinBytes");
    put_number_of(to, volume, "RequestedCapacityMaxBytes", "RequestedCapacityMaxBytes");
    put_json_new(to, "RequestedCapabilities", field_of(volume, "RequestedCapabilities"));
    put_json_new(to, "Constraints", field_of(volume, "Constraints"));
    put_json_new(to, "Parameters", field_of(volume, "Parameters"));
    put_text(to, "HostPath", text_of(volume, "HostPath"));
    put_users(to, api, volume);
    put_text(to, "CairnState", registration_name(volume->state));
    put_text(to, "CairnFailure", volume->last_fail);
    put_end(to);
}

struct listing {
    struct api_request *request;
    struct writer to;
};

static bool list_volume(void *ctx, const struct storage_volume *volume)
{
    struct listing *listing = ctx;
    struct api_request *request = listing->request;
    const char *node = http_query(request->exchange, "node_id");
    const char *pool = http_query(request->exchange, "node_pool");

    if ((!text_starts_with(volume->id, request->prefix) &&
         !text_starts_with(text_of(volume, "Name"), request->prefix)) ||
        !api_namespace_matches(request, volume->namespace) ||
        !api_may(request, volume->namespace, ACL_BIT(ACL_HOST_VOLUME_READ)) ||
        (node != NULL && node[0] != '\0' && !text_equal(node, text_of(volume, "NodeID"))) ||
        (pool != NULL && pool[0] != '\0' && !text_equal(pool, text_of(volume, "NodePool"))))
        return true;
    put_object(&listing->to, NULL);
    put_volume(&listing->to, volume);
    put_end(&listing->to);
    return true;
}

void api_host_volumes_list(struct api_request *request)
{
    struct listing listing = {request, api_writer(request)};

    put_array(&listing.to, NULL);
    storage_each_volume(request->api->parts->host_volumes, list_volume, &listing);
    put_end(&listing.to);
    api_reply_written(request, &listing.to);
}

void api_host_volume_get(struct api_request *request)
{
    const struct storage_volume *volume = storage_find_volume(
        request->api->parts->host_volumes, request->namespace, request->argument);

    if (volume == NULL) {
        api_refuse(request, 404, "volume not found");
        return;
    }
    struct writer to = api_writer(request);
    put_whole(&to, request->api, volume);
    api_reply_written(request, &to);
}

/* --- changing --- */

/* Whose answer it is: the volume as it is when it is told. */
struct asking {
    char namespace[SPEC_NAMESPACE_SIZE], id[UUID_TEXT_SIZE];
};

static json_t *make_volume(struct api *api, void *ctx)
{
    const struct asking *asking = ctx;
    const struct storage_volume *volume =
        storage_find_volume(api->parts->host_volumes, asking->namespace, asking->id);
    json_t *json = NULL;

    if (volume != NULL) {
        struct writer to = {.pretty = false};
        put_whole(&to, api, volume);
        json = json_loadb(to.bytes, to.used, 0, NULL);
        free(to.bytes);
    }
    return json_pack("{s:o*, s:s, s:I}", "Volume", json, "Warnings", "", "Index",
                     (json_int_t)api_index(api));
}

/* A new one is called what its answer says. */
static void answered(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct api_deferred *deferred = ctx;
    struct asking *asking = deferred->ctx;
    const char *id = json_string_value(json_object_get(answer, "ID"));
    const char *namespace = json_string_value(json_object_get(answer, "Namespace"));

    if (id != NULL && namespace != NULL && deferred->exchange != NULL) { /* else nobody takes it */
        (void)text_copy(asking->id, sizeof(asking->id), id);             /* a UUID */
        (void)text_copy(asking->namespace, sizeof(asking->namespace), namespace); /* bounded */
    }
    api_deferred_answer(deferred, code, err);
}

static struct api_deferred *defer(struct api_request *request,
                                  json_t *(*make)(struct api *api, void *ctx))
{
    struct asking *asking = calloc(1, sizeof(*asking));

    check(asking != NULL);
    return api_defer(request, make, asking);
}

typedef void hosted_request(struct storage *storage, const char *namespace, const json_t *request,
                            storage_volume_answer *answer, void *ctx);

static void put_one(struct api_request *request, hosted_request *ask)
{
    json_t *body = api_body(request, false);
    const json_t *volume = json_object_get(body, "Volume");

    if (body == NULL)
        return;
    const char *in = storage_hosted_namespace(volume, request->namespace);
    if (!json_is_object(volume))
        api_refuse(request, 400, "missing volume definition");
    else if (api_must(request, in, request->route->need.any_of))
        ask(request->api->parts->host_volumes, in, volume, answered, defer(request, make_volume));
    json_decref(body);
}

void api_host_volume_create(struct api_request *request)
{
    put_one(request, storage_create_volume);
}

void api_host_volume_register(struct api_request *request)
{
    put_one(request, storage_register_volume);
}

static json_t *make_index(struct api *api, void *ctx)
{
    (void)ctx;
    return json_pack("{s:I}", "Index", (json_int_t)api_index(api));
}

/* What force is for in Nomad, a node that is gone, cannot be here: this is the only one. */
void api_host_volume_delete(struct api_request *request)
{
    bool force = false;

    if (api_query_bool(request, "force", &force))
        storage_delete_volume(request->api->parts->host_volumes, request->namespace,
                              request->argument, NULL, answered, defer(request, make_index));
}
