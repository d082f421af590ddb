/*
 * Storage plugins over HTTP: what the node says of those that run on it, and what all jobs make of
 * them.
 *
 * The records of the instances are read as they were last committed; of several of one plugin the
 * node tells of the one that is used, the newest that is ready, or else the newest.  Follows nomad
 * v2.0.5 nomad/structs/node.go CSIInfo, nomad/structs/csi.go CSIPlugin and
 * command/agent/csi_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/alone/alone.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* --- one instance --- */

static bool serves(const struct plugin *plugin, enum csi_role role)
{
    return role == CSI_ROLE_NODE ? plugin_serves_node(plugin) : plugin_serves_controller(plugin);
}

/* It has said who it is, and is not on its way out. */
static bool is_shown(const struct plugin *plugin)
{
    return plugin->identity.provider[0] != '\0' && plugin->machine.state != P_STOPPING;
}

static json_t *node_info(struct api *api, const struct machine_id *id, const struct plugin *plugin)
{
    const struct plugin_identity *identity = &plugin->identity;
    struct machine_id owner = machine_id_owner(id);
    const struct csi_instance *instance =
        csi_plugins_of(api->parts->plugins, owner.text, machine_id_name(id));
    size_t count = instance == NULL ? 0 : instance->topology.count;
    json_t *topology = json_null();

    if (count > 0)
        topology = json_pack("{s:{}}", "Segments");
    for (size_t i = 0; i < count; i++)
        check(json_object_set_new(json_object_get(topology, "Segments"),
                                  instance->topology.pairs[i].key,
                                  api_text(instance->topology.pairs[i].value)) == 0);
    return json_pack(
        "{s:o, s:I, s:o, s:b, s:b, s:b, s:b}", "ID", api_text(identity->node), "MaxVolumes",
        (json_int_t)(identity->volumes_max > 0 ? identity->volumes_max : INT64_MAX),
        "AccessibleTopology", topology, "RequiresNodeStageVolume", identity->staging,
        "SupportsStats", (identity->node_capabilities & CSI_NODE_HAS_STATS) != 0, "SupportsExpand",
        (identity->node_capabilities & CSI_NODE_EXPANDS) != 0, "SupportsCondition",
        (identity->node_capabilities & CSI_NODE_HAS_CONDITION) != 0);
}

static json_t *controller_info(const struct plugin *plugin)
{
    static const struct {
        const char *name;
        uint32_t capability;
    } rows[] = {
        {"SupportsCreateDelete", CSI_CONTROLLER_CREATES},
        {"SupportsAttachDetach", CSI_CONTROLLER_PUBLISHES},
        {"SupportsListVolumes", CSI_CONTROLLER_LISTS},
        {"SupportsGetCapacity", CSI_CONTROLLER_HAS_CAPACITY},
        {"SupportsCreateDeleteSnapshot", CSI_CONTROLLER_SNAPSHOTS},
        {"SupportsListSnapshots", CSI_CONTROLLER_LISTS_SNAPSHOTS},
        {"SupportsClone", CSI_CONTROLLER_CLONES},
        {"SupportsReadOnlyAttach", CSI_CONTROLLER_PUBLISHES_READONLY},
        {"SupportsExpand", CSI_CONTROLLER_EXPANDS},
        {"SupportsListVolumesAttachedNodes", CSI_CONTROLLER_LISTS_NODES},
        {"SupportsCondition", CSI_CONTROLLER_HAS_CONDITION},
        {"SupportsGet", CSI_CONTROLLER_GETS},
    };
    json_t *to = json_object();

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check(json_object_set_new(to, rows[i].name,
                                  json_boolean((plugin->identity.controller_capabilities &
                                                rows[i].capability) != 0)) == 0);
    return to;
}

static json_t *description_of(const struct plugin *plugin)
{
    char text[DESCRIPTION_SIZE + 64];

    if (plugin->identity.healthy || plugin->failure[0] == '\0')
        return json_string(plugin->identity.healthy ? "healthy" : "unhealthy");
    (void)text_format(text, sizeof(text), "failed fingerprinting with error: %s",
                      plugin->failure); /* it fits */
    return api_text(text);
}

/* What the node says of an instance as one that has ROLE. */
static json_t *info_of(struct api *api, const struct machine_id *id, const struct plugin *plugin,
                       enum csi_role role)
{
    const struct plugin_identity *identity = &plugin->identity;
    struct machine_id owner = machine_id_owner(id);
    char since[API_TIME_SIZE];
    struct life *life = api->parts->life;
    uint64_t ago_ms = life_now_ms(life) - plugin->machine.entered_ms;
    json_t *to;

    api_time(since, life_unix_ns(life) - (int64_t)ago_ms * 1000000);
    to = json_pack(
        "{s:o, s:s, s:b, s:o, s:s, s:o, s:o, s:b, s:b}", "PluginID",
        api_text(plugin->define.plugin), "AllocID", plugin->define.supervised ? owner.text : "",
        "Healthy", identity->healthy, "HealthDescription", description_of(plugin), "UpdateTime",
        since, "Provider", api_text(identity->provider), "ProviderVersion",
        api_text(identity->version), "RequiresControllerPlugin",
        (identity->plugin_capabilities & CSI_PLUGIN_HAS_CONTROLLER) != 0, "RequiresTopologies",
        (identity->plugin_capabilities & CSI_PLUGIN_HAS_TOPOLOGY) != 0);
    check(to != NULL);
    check(json_object_set_new(to, role == CSI_ROLE_NODE ? "NodeInfo" : "ControllerInfo",
                              role == CSI_ROLE_NODE ? node_info(api, id, plugin)
                                                    : controller_info(plugin)) == 0);
    return to;
}

/* --- all of one role --- */

struct best {
    struct machine_id id;
    const struct plugin *plugin;
};

struct bests {
    struct best *items;
    size_t count, size;
    enum csi_role role;
};

static bool is_better(const struct plugin *plugin, const struct plugin *than)
{
    if (plugin->identity.healthy != than->identity.healthy)
        return plugin->identity.healthy;
    return plugin->defined_ms > than->defined_ms;
}

static bool note_instance(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct plugin *plugin = plugin_of(record);
    struct bests *bests = ctx;
    size_t i = 0;

    if (!serves(plugin, bests->role) || !is_shown(plugin))
        return true;
    while (i < bests->count &&
           !text_equal(bests->items[i].plugin->define.plugin, plugin->define.plugin))
        i++;
    if (i == bests->count)
        *list_more(bests) = (struct best){*id, plugin};
    else if (is_better(plugin, bests->items[i].plugin))
        bests->items[i] = (struct best){*id, plugin};
    return true;
}

json_t *api_node_plugins(struct api *api, enum csi_role role)
{
    struct bests bests = {.role = role};
    json_t *to = json_object();

    core_each(api->parts->core, MACHINE_PLUGIN, note_instance, &bests);
    for (size_t i = 0; i < bests.count; i++)
        check(json_object_set_new(to, bests.items[i].plugin->define.plugin,
                                  info_of(api, &bests.items[i].id, bests.items[i].plugin, role)) ==
              0);
    free(bests.items);
    return to;
}

/* --- all plugins: those that run, and those that jobs want --- */

struct shown_plugin {
    const char *id;
    const json_t *node, *controller; /* what the node says of it, NULL: nothing */
    int64_t nodes_expected, controllers_expected;
    uint64_t create_index, modify_index; /* of the jobs that want it */
    int64_t create_unix_ns, modify_unix_ns;
};

struct shown {
    struct shown_plugin *items;
    size_t count, size;
    json_t *nodes, *controllers;
};

static struct shown_plugin *need(struct shown *shown, const char *id)
{
    for (size_t i = 0; i < shown->count; i++) {
        if (text_equal(shown->items[i].id, id))
            return &shown->items[i];
    }
    struct shown_plugin *more = list_more(shown);
    *more = (struct shown_plugin){.id = id};
    return more;
}

static void expect(struct shown *shown, const struct alone_job *job, const json_t *group,
                   const json_t *plugin)
{
    const char *id = json_string_value(json_object_get(plugin, "ID"));
    const char *type = json_string_value(json_object_get(plugin, "Type"));
    const char *job_type = json_string_value(json_object_get(job->job, "Type"));
    bool of_nodes = text_equal(job_type, "system") || text_equal(job_type, "sysbatch");
    int64_t count = of_nodes ? 1 : (int64_t)json_integer_value(json_object_get(group, "Count"));
    struct shown_plugin *to = need(shown, id);

    if (!text_equal(type, "controller"))
        to->nodes_expected += count;
    if (!text_equal(type, "node"))
        to->controllers_expected += count;
    if (to->create_index == 0 || job->create_index < to->create_index)
        to->create_index = job->create_index;
    if (job->modify_index > to->modify_index)
        to->modify_index = job->modify_index;
    if (to->create_unix_ns == 0 || job->submit_unix_ns < to->create_unix_ns)
        to->create_unix_ns = job->submit_unix_ns;
    if (job->submit_unix_ns > to->modify_unix_ns)
        to->modify_unix_ns = job->submit_unix_ns;
}

static bool expect_job(void *ctx, const struct alone_job *job)
{
    const json_t *group, *task;
    size_t i, k;

    if (job->stop)
        return true;
    json_array_foreach(json_object_get(job->job, "TaskGroups"), i, group)
    {
        json_array_foreach(json_object_get(group, "Tasks"), k, task)
        {
            const json_t *plugin = json_object_get(task, "CSIPluginConfig");

            if (plugin != NULL)
                expect(ctx, job, group, plugin);
        }
    }
    return true;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct shown_plugin *)a)->id, ((const struct shown_plugin *)b)->id);
}

/* One that the configuration names, which no job does. */
static bool expect_configured(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct plugin *plugin = plugin_of(record);

    (void)id;
    if (plugin->define.supervised ||
        !(plugin_serves_node(plugin) || plugin_serves_controller(plugin)))
        return true;
    struct shown_plugin *to = need(ctx, plugin->define.plugin);
    to->nodes_expected += plugin_serves_node(plugin);
    to->controllers_expected += plugin_serves_controller(plugin);
    return true;
}

static void look(struct api *api, struct shown *shown)
{
    const char *id;
    json_t *info;

    *shown = (struct shown){.nodes = api_node_plugins(api, CSI_ROLE_NODE),
                            .controllers = api_node_plugins(api, CSI_ROLE_CONTROLLER)};
    alone_each(api->parts->alone, expect_job, shown);
    core_each(api->parts->core, MACHINE_PLUGIN, expect_configured, shown);
    json_object_foreach(shown->nodes, id, info) need(shown, id)->node = info;
    json_object_foreach(shown->controllers, id, info) need(shown, id)->controller = info;
    if (shown->count > 0)
        qsort(shown->items, shown->count, sizeof(shown->items[0]), by_id);
}

static void look_away(struct shown *shown)
{
    free(shown->items);
    json_decref(shown->nodes);
    json_decref(shown->controllers);
}

static bool is_true(const json_t *info, const char *field)
{
    return json_is_true(json_object_get(info, field));
}

/* What a list and a whole plugin have in common. */
static void put_plugin(struct writer *to, const struct shown_plugin *plugin)
{
    const json_t *any = plugin->node != NULL ? plugin->node : plugin->controller;

    put_text(to, "ID", plugin->id);
    put_text(to, "Provider", json_string_value(json_object_get(any, "Provider")));
    put_bool(to, "ControllerRequired", is_true(any, "RequiresControllerPlugin"));
    put_number(to, "ControllersHealthy", is_true(plugin->controller, "Healthy"));
    put_number(to, "ControllersExpected", plugin->controllers_expected);
    put_number(to, "NodesHealthy", is_true(plugin->node, "Healthy"));
    put_number(to, "NodesExpected", plugin->nodes_expected);
    put_number(to, "CreateIndex", (int64_t)plugin->create_index);
    put_number(to, "ModifyIndex", (int64_t)plugin->modify_index);
}

void api_plugins_list(struct api_request *request)
{
    const char *type = http_query(request->exchange, "type");
    struct shown shown;

    if (type != NULL && !text_equal(type, "csi")) {
        api_reply(request, json_null()); /* as Nomad, which knows no other type either */
        return;
    }
    struct writer to = api_writer(request);
    put_array(&to, NULL);
    if (type != NULL) {
        look(request->api, &shown);
        for (size_t i = 0; i < shown.count; i++) {
            if (!text_starts_with(shown.items[i].id, request->prefix))
                continue;
            put_object(&to, NULL);
            put_plugin(&to, &shown.items[i]);
            put_end(&to);
        }
        look_away(&shown);
    }
    put_end(&to);
    api_reply_written(request, &to);
}

/* --- one plugin --- */

static void put_infos(struct writer *to, const struct api *api, const char *name,
                      const json_t *info)
{
    put_object(to, name);
    if (info != NULL)
        put_json_new(to, api->parts->node.identity.id, json_deep_copy(info));
    put_end(to);
}

struct allocs {
    struct api *api;
    const char *plugin;
    struct writer *to;
};

static bool put_alloc_of(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct allocs *allocs = ctx;
    struct machine_id owner = machine_id_owner(id);
    const struct alloc *alloc = core_alloc(allocs->api->parts->core, owner.text);

    if (alloc != NULL && text_equal(plugin_of(record)->define.plugin, allocs->plugin))
        api_put_alloc(allocs->to, allocs->api, owner.text, alloc, API_ALLOC_TASK_STATES);
    return true;
}

/* Why an instance has never said who it is: the node says nothing of such a one, as Nomad's.  The
 * newest one's. */
struct trouble {
    const char *plugin;
    const struct plugin *found;
};

static bool find_trouble(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct trouble *trouble = ctx;
    const struct plugin *plugin = plugin_of(record);

    (void)id;
    if (text_equal(plugin->define.plugin, trouble->plugin) && !is_shown(plugin) &&
        (trouble->found == NULL || plugin->defined_ms > trouble->found->defined_ms))
        trouble->found = plugin;
    return true;
}

/* All of the plugin ID, with CAPACITY (may be NULL); false: there is none. */
static bool put_whole(struct writer *to, struct api *api, const char *id, json_t *capacity)
{
    const struct shown_plugin *found = NULL;
    struct shown shown;

    look(api, &shown);
    for (size_t i = 0; i < shown.count && found == NULL; i++)
        found = text_equal(shown.items[i].id, id) ? &shown.items[i] : NULL;
    if (found == NULL) {
        look_away(&shown);
        return false;
    }
    const json_t *any = found->node != NULL ? found->node : found->controller;
    struct allocs allocs = {api, found->id, to};
    struct trouble trouble = {.plugin = found->id};
    core_each(api->parts->core, MACHINE_PLUGIN, find_trouble, &trouble);
    put_object(to, NULL);
    put_plugin(to, found);
    put_text(to, "Version", json_string_value(json_object_get(any, "ProviderVersion")));
    put_number(to, "CreateTime", found->create_unix_ns);
    put_number(to, "ModifyTime", found->modify_unix_ns);
    put_infos(to, api, "Controllers", found->controller);
    put_infos(to, api, "Nodes", found->node);
    put_array(to, "Allocations");
    core_each(api->parts->core, MACHINE_PLUGIN, put_alloc_of, &allocs);
    put_end(to);
    put_text(to, "CairnFailure", trouble.found == NULL ? "" : trouble.found->failure);
    if (capacity != NULL)
        put_json_new(to, "CairnCapacity", json_incref(capacity));
    put_end(to);
    look_away(&shown);
    return true;
}

/* A plugin that says how much it has left. */
struct asking {
    json_t *capacity;
    char id[PLUGIN_NAME_SIZE];
};

static json_t *make_with_capacity(struct api *api, void *ctx)
{
    struct asking *asking = ctx;
    struct writer to = {.pretty = false};
    json_t *json = json_null(); /* it has gone meanwhile */

    if (put_whole(&to, api, asking->id, asking->capacity))
        json = json_loadb(to.bytes, to.used, 0, NULL);
    check(json != NULL);
    free(to.bytes);
    json_decref(asking->capacity);
    return json;
}

json_t *api_passed(int code, const struct err *err, const json_t *answer)
{
    if (code == 0)
        return answer == NULL ? json_null() : json_incref((json_t *)(uintptr_t)answer);
    return json_pack("{s:o}", "Error", api_text(err->text));
}

static void tell_capacity(void *ctx, int code, const struct err *err, const json_t *answer)
{
    struct api_deferred *deferred = ctx;
    struct asking *asking = deferred->ctx;

    if (deferred->exchange != NULL) /* else nobody takes it */
        asking->capacity = api_passed(code, err, answer);
    api_deferred_answer(deferred, 0, NULL);
}

void api_plugin_get(struct api_request *request)
{
    struct writer to = api_writer(request);
    bool capacity = false;

    if (!api_query_bool(request, "capacity", &capacity))
        return;
    if (!put_whole(&to, request->api, request->argument, NULL)) {
        api_refuse(request, 404, "plugin not found");
        return;
    }
    if (!capacity) {
        api_reply_written(request, &to);
        return;
    }
    free(to.bytes);
    struct asking *asking = calloc(1, sizeof(*asking));
    check(asking != NULL);
    check(text_copy(asking->id, sizeof(asking->id), request->argument)); /* that of a plugin */
    storage_plugin_capacity(request->api->parts->storage, asking->id, tell_capacity,
                            api_defer(request, make_with_capacity, asking));
}

/* --- a search --- */

void api_each_plugin(struct api *api, void (*cb)(void *ctx, const char *id), void *ctx)
{
    struct shown shown;

    look(api, &shown);
    for (size_t i = 0; i < shown.count; i++)
        cb(ctx, shown.items[i].id);
    look_away(&shown);
}
