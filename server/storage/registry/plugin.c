/*
 * Storage plugins as volumes see them: what of each is here, and how it is, by the records of its
 * instances; what it can do is handed in.
 */
#include "server/storage/part.h"

struct gathering_plugin {
    struct control_plugin *found;
    const struct plugin *newest; /* that is ready; its word counts */
};

static bool count_instance(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct gathering_plugin *gathering = ctx;
    struct control_plugin *found = gathering->found;
    const struct plugin *plugin = plugin_of(record);
    bool both = plugin->define.type == PLUGIN_CSI_MONOLITH, ready = record->state == P_READY;

    (void)id;
    found->has_stopped |= record->state == P_STOPPED;
    if (record->state == P_STOPPED || record->state == P_GONE)
        return true;
    if (both || plugin->define.type == PLUGIN_CSI_NODE) {
        found->has_node = true;
        found->node_ready |= ready;
        if (ready || found->node_id[0] == '\0')
            found->node_id = plugin->identity.node;
        if (ready)
            found->volumes_max = plugin->identity.volumes_max;
    }
    if (both || plugin->define.type == PLUGIN_CSI_CONTROLLER) {
        found->has_controller = true;
        found->controller_ready |= ready;
        if (ready)
            found->controller_capabilities = plugin->identity.controller_capabilities;
    }
    if (ready || gathering->newest == NULL)
        gathering->newest = plugin;
    return true;
}

bool registry_plugin(const struct storage *storage, const char *plugin,
                     struct control_plugin *ret_plugin)
{
    struct gathering_plugin gathering = {.found = ret_plugin};

    *ret_plugin = (struct control_plugin){.provider = "", .version = "", .node_id = ""};
    core_each_of_plugin(life_core(storage->config.life), plugin, count_instance, &gathering);
    if (gathering.newest == NULL)
        return false;
    const struct plugin_identity *identity = &gathering.newest->identity;
    ret_plugin->has_stopped = false;
    ret_plugin->provider = identity->provider;
    ret_plugin->version = identity->version;
    /* What it says counts, once it has said something. */
    ret_plugin->needs_controller =
        gathering.newest->machine.state == P_READY
            ? (identity->plugin_capabilities & CSI_PLUGIN_HAS_CONTROLLER) != 0
            : ret_plugin->has_controller;
    return true;
}

int registry_plugin_stopped(const char *plugin, struct err *err)
{
    return err_set(err, ERR_AGAIN,
                   "CSI plugin %s does not run now: its job starts it again, or says why not",
                   plugin);
}

int registry_no_controller(const char *plugin, struct err *err)
{
    return err_set(err, ERR_AGAIN,
                   "no healthy controllers for CSI plugin: %s; `cairn plugin status %s` says why",
                   plugin, plugin);
}

void storage_plugin_of(const struct storage *storage, const struct storage_volume *volume,
                       struct control_plugin *ret_plugin)
{
    (void)registry_plugin(storage, registry_text(volume->json, "PluginID"), ret_plugin);
}

bool storage_is_schedulable(const struct storage *storage, const struct storage_volume *volume)
{
    struct control_plugin plugin;

    storage_plugin_of(storage, volume, &plugin);
    return volume->state == REGISTRATION_READY && plugin.node_ready &&
           (plugin.controller_ready ||
            !json_is_true(json_object_get(volume->json, "ControllerRequired")));
}

/* True if HERE is in the part of the world that SEGMENTS name. */
static bool is_within(const json_t *here, json_t *segments)
{
    const char *name;
    json_t *value;

    json_object_foreach(segments, name, value)
    {
        if (!json_equal(json_object_get(here, name), value))
            return false;
    }
    return true;
}

/* Follows nomad v2.0.5 scheduler/feasible/feasible.go: who says nothing is nowhere. */
bool storage_is_reachable(const struct storage *storage, const struct storage_volume *volume)
{
    const json_t *topologies = json_object_get(volume->json, "Topologies"), *topology;
    bool found = json_array_size(topologies) == 0;
    size_t i;

    if (found || storage->config.topology == NULL)
        return found;
    json_t *here = storage->config.topology(storage->config.controller_ctx,
                                            registry_text(volume->json, "PluginID"));
    json_array_foreach(topologies, i, topology) found |=
        here != NULL && is_within(here, json_object_get(topology, "Segments"));
    json_decref(here);
    return found;
}
