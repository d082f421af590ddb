/*
 * Storage plugins as volumes see them: what of each is here, and how it is, by the records of its
 * instances; what it can do is handed in.
 */
#include "server/alone/registry.h"

static bool count_instance(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct control_plugin *found = ctx;
    const struct plugin *plugin = plugin_of(record);
    bool ready = record->state == P_READY;

    (void)id;
    if (record->state == P_STOPPED || record->state == P_GONE)
        return true;
    if (plugin->define.type == PLUGIN_CSI_NODE) {
        found->has_node = true;
        found->node_ready |= ready;
        if (plugin->identity.node[0] != '\0')
            found->node_id = plugin->identity.node;
    }
    if (plugin->define.type == PLUGIN_CSI_CONTROLLER) {
        found->has_controller = true;
        found->controller_ready |= ready;
    }
    return true;
}

bool registry_plugin(const struct alone *alone, const char *plugin,
                     struct control_plugin *ret_plugin)
{
    *ret_plugin = (struct control_plugin){.provider = "", .version = "", .node_id = ""};
    core_each_of_plugin(life_core(alone->config.life), plugin, count_instance, ret_plugin);
    ret_plugin->needs_controller = ret_plugin->has_controller;
    return ret_plugin->has_node || ret_plugin->has_controller;
}

void alone_plugin_of(const struct alone *alone, const struct alone_volume *volume,
                     struct control_plugin *ret_plugin)
{
    (void)registry_plugin(alone, registry_text(volume->json, "PluginID"), ret_plugin);
}

bool alone_is_schedulable(const struct alone *alone, const struct alone_volume *volume)
{
    struct control_plugin plugin;

    alone_plugin_of(alone, volume, &plugin);
    return volume->state == REGISTRATION_READY && plugin.node_ready &&
           (plugin.controller_ready ||
            !json_is_true(json_object_get(volume->json, "ControllerRequired")));
}
