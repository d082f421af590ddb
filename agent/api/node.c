/*
 * The node over HTTP: the only one there is.  Follows nomad v1.1.2 command/agent/node_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"
#include "agent/devices.h"

#include "server/alone/alone.h"

#include <string.h>

void api_advertised(const struct api *api, char to[API_ADDRESS_SIZE])
{
    const char *bound = api->parts->config->bind_address;
    const char *port = strrchr(api->address, ':');

    if (api->server == NULL)
        to[0] = '\0'; /* nobody does */
    else if (text_equal(bound, "0.0.0.0") || text_equal(bound, "::"))
        (void)text_format(to, API_ADDRESS_SIZE, "%s%s", api->parts->node.facts.ip_address,
                          port); /* it fits */
    else
        (void)text_copy(to, API_ADDRESS_SIZE, api->address); /* of that size */
}

json_t *api_node(struct api *api, unsigned parts)
{
    struct driver_info drivers[DRIVERS_MAX];
    char address[API_ADDRESS_SIZE];
    const char *degraded = life_trouble(api->parts->life);
    struct api_node_view view = {
        .node = &api->parts->node,
        .config = api->parts->config,
        .http_address = address,
        .description = degraded != NULL ? degraded : "",
        .drivers = drivers,
        .drivers_count = drivers_list(api->parts->drivers, drivers, COUNT_OF(drivers)),
        .events = json_object_get(api->parts->health.json, "events"),
        .standing = alone_standing(api->parts->alone),
        .host_volumes = api->parts->host_volumes,
        .since_unix_ns = api->started_unix_ns,
        .index = 1,
    };

    for (size_t i = 0; i < view.drivers_count; i++)
        drivers[i].since_unix_ns = health_since(&api->parts->health, &drivers[i]);
    api_advertised(api, address);
    view.devices = devices_list(api->parts);
    if ((parts & API_NODE_WHOLE) == 0) {
        json_t *stub = api_format_node_stub(&view, parts);

        json_decref(view.devices);
        return stub;
    }
    view.programs = devices_plugins(api->parts);
    view.node_plugins = api_node_plugins(api, CSI_ROLE_NODE);
    view.controller_plugins = api_node_plugins(api, CSI_ROLE_CONTROLLER);
    json_t *to = api_format_node(&view);
    json_decref(view.devices);
    json_decref(view.programs);
    json_decref(view.node_plugins);
    json_decref(view.controller_plugins);
    return to;
}

/* Since when a plugin is as it is: for servers that is a time, not a text. */
static void wire_times(json_t *plugins)
{
    const char *name;
    json_t *plugin;

    json_object_foreach(plugins, name, plugin)
    {
        const char *text = json_string_value(json_object_get(plugin, "UpdateTime"));

        if (text != NULL)
            check(json_object_set_new(plugin, "UpdateTime", api_wire_time(text)) == 0);
    }
}

/* Modes of networks that groups of it can have besides that of the host. */
static void add_networks(struct api *api, json_t *resources)
{
    json_t *modes = hooks_network_modes(api->parts->hooks), *mode;
    size_t i;

    json_array_foreach(modes, i, mode)
    {
        json_t *network = json_pack("{s:O}", "Mode", mode), *of_node = json_deep_copy(network);

        check(of_node != NULL);
        if (text_equal(json_string_value(mode), "bridge"))
            api_set_text(of_node, "Device", api->parts->config->bridge_name);
        check(json_array_append_new(json_object_get(resources, "Networks"), network) == 0);
        check(json_array_append_new(json_object_get(resources, "NodeNetworks"), of_node) == 0);
    }
    json_decref(modes);
}

json_t *api_describe_node(struct api *api)
{
    static const char *const theirs[] = {
        "Drain",       "DrainStrategy",     "LastDrain",
        "Events",      "StatusDescription", "StatusUpdatedAt",
        "CreateIndex", "ModifyIndex",       "SchedulingEligibility",
        "CairnPlugins"};
    json_t *node = api_node(api, API_NODE_WHOLE);

    for (size_t i = 0; i < COUNT_OF(theirs); i++)
        (void)json_object_del(node, theirs[i]); /* of a node that stands alone */
    wire_times(json_object_get(node, "Drivers"));
    wire_times(json_object_get(node, "CSINodePlugins"));
    wire_times(json_object_get(node, "CSIControllerPlugins"));
    add_networks(api, json_object_get(node, "NodeResources"));
    return node;
}

json_t *api_describe_events(const json_t *events)
{
    json_t *list = json_array();
    const json_t *event;
    size_t i;

    check(list != NULL);
    json_array_foreach(events, i, event)
    {
        json_t *told = api_format_node_event(event);
        json_t *time = api_wire_time(json_string_value(json_object_get(told, "Timestamp")));

        check(json_object_set_new(told, "Timestamp", time) == 0);
        check(json_array_append_new(list, told) == 0);
    }
    return list;
}

void api_nodes_list(struct api_request *request)
{
    bool resources = false, os = false;
    json_t *list;

    if (!api_query_bool(request, "resources", &resources) || !api_query_bool(request, "os", &os))
        return;
    unsigned parts = (resources ? API_NODE_RESOURCES : 0) | (os ? API_NODE_OS : 0);
    list = json_array();
    if (text_starts_with(request->api->parts->node.identity.id, request->prefix))
        check(json_array_append_new(list, api_node(request->api, parts)) == 0);
    api_reply(request, list);
}

/* True if the request is about this node; else it is refused. */
static bool is_this_node(struct api_request *request, const char *id)
{
    if (text_equal(id, request->api->parts->node.identity.id))
        return true;
    api_refuse(request, 404, "node not found");
    return false;
}

void api_node_get(struct api_request *request)
{
    if (is_this_node(request, request->argument))
        api_reply(request, api_node(request->api, API_NODE_WHOLE));
}

/* --- whether allocs may be placed here --- */

static json_t *make_said(struct api *api, void *ctx)
{
    json_int_t index = (json_int_t)api_index(api);

    (void)ctx; /* the node says the rest */
    return json_pack("{s:[], s:I, s:I, s:I}", "EvalIDs", "EvalCreateIndex", (json_int_t)0,
                     "NodeModifyIndex", index, "Index", index);
}

static void answer_said(struct api_request *request, int code, const struct err *err)
{
    if (code != 0)
        api_refuse_err(request, err);
    else
        life_after_commit(request->api->parts->life, api_deferred_answer,
                          api_defer(request, make_said, NULL));
}

void api_node_eligibility(struct api_request *request)
{
    json_t *body = is_this_node(request, request->argument) ? api_body(request, false) : NULL;
    const char *asked = json_string_value(json_object_get(body, "Eligibility"));
    const char *id = json_string_value(json_object_get(body, "NodeID"));
    struct err err = {0};

    if (body == NULL)
        return;
    if (id != NULL && id[0] != '\0' && !text_equal(id, request->argument))
        api_refuse(request, 400, "the NodeID is that of another node than the path's");
    else if (asked == NULL || (!text_equal(asked, "eligible") && !text_equal(asked, "ineligible")))
        api_refuse(request, 400, "invalid scheduling eligibility \"%.64s\"",
                   asked != NULL ? asked : "");
    else
        answer_said(
            request,
            alone_set_eligible(request->api->parts->alone, text_equal(asked, "eligible"), &err),
            &err);
    json_decref(body);
}

static bool is_meta(const json_t *meta)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)meta, name, value)
    {
        if (!json_is_string(value))
            return false;
    }
    return meta == NULL || json_is_null(meta) || json_is_object(meta);
}

/* What the drain in BODY (NULL: it ends) says. */
static void drain(struct api_request *request, const json_t *body, const json_t *spec)
{
    const json_t *meta = json_object_get(body, "Meta"),
                 *deadline = json_object_get(spec, "Deadline");
    struct alone *alone = request->api->parts->alone;
    struct alone_drain asked = {
        .deadline_ns = json_integer_value(deadline),
        .ignore_system = json_is_true(json_object_get(spec, "IgnoreSystemJobs")),
        .meta = meta,
    };
    struct err err = {0};

    if (!is_meta(meta))
        api_refuse(request, 400, "Meta must be an object of texts");
    else if (deadline != NULL && !json_is_integer(deadline))
        api_refuse(request, 400, "the Deadline must be a number of nanoseconds");
    else if (!api_field_is(body, "MarkEligible", JSON_TRUE) ||
             !api_field_is(spec, "IgnoreSystemJobs", JSON_TRUE))
        api_refuse(request, 400, "MarkEligible and IgnoreSystemJobs must be true or false");
    else if (spec != NULL)
        answer_said(request, alone_drain(alone, &asked, &err), &err);
    else
        answer_said(
            request,
            alone_end_drain(alone, json_is_true(json_object_get(body, "MarkEligible")), meta, &err),
            &err);
}

void api_node_drain(struct api_request *request)
{
    json_t *body = is_this_node(request, request->argument) ? api_body(request, false) : NULL;
    const json_t *spec = json_object_get(body, "DrainSpec");

    if (body == NULL)
        return;
    if (!api_field_is(body, "DrainSpec", JSON_OBJECT))
        api_refuse(request, 400, "the DrainSpec must be an object");
    else
        drain(request, body, json_is_object(spec) ? spec : NULL);
    json_decref(body);
}

void api_node_allocations(struct api_request *request)
{
    if (is_this_node(request, request->argument))
        api_reply_allocs(request,
                         &(struct api_selection){.namespace = "*", .parts = API_ALLOC_FULL});
}

const char *api_device(const struct api *api)
{
    const struct spec_pairs *attributes = &api->parts->node.known.attributes;

    for (size_t i = 0; i < attributes->count; i++) {
        if (text_equal(attributes->items[i].key, "unique.storage.volume"))
            return attributes->items[i].value;
    }
    return "";
}

static void give_stats(struct api_request *request, const struct api_host_view *view)
{
    struct api *api = request->api;

    if (view->stats == NULL) {
        api_refuse_err(request, view->err);
        return;
    }
    /* Its Timestamp says when it was so: the present, but for a file system that does not answer.
     */
    json_t *device_stats = devices_stats(api->parts);
    api_reply(request, api_format_host_stats(view->stats, &api->parts->node.facts, api_device(api),
                                             device_stats, view->unix_ns));
    json_decref(device_stats);
}

void api_client_stats(struct api_request *request)
{
    const char *asked = http_query(request->exchange, "node_id");

    if (asked == NULL || asked[0] == '\0' || is_this_node(request, asked))
        api_host_ask(request, give_stats);
}
