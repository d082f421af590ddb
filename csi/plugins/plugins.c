/*
 * Which instances of plugins there are, and which of them is to be used.
 */
#include "csi/plugins/part.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct csi_plugins *csi_plugins_new(const struct csi_plugins_config *config, struct err *err)
{
    struct csi_plugins *plugins = calloc(1, sizeof(*plugins));

    check(plugins != NULL);
    plugins->config = *config;
    if (text_copy(plugins->state_dir, sizeof(plugins->state_dir), config->state_dir))
        return plugins;
    (void)err_set(err, ERR_LIMIT, "state_dir is too long"); /* NULL says it */
    free(plugins);
    return NULL;
}

static void instance_free(struct instance *instance)
{
    io_timer_stop(&instance->timer);
    if (instance->client != NULL)
        csi_client_free(instance->client);
    if (instance->directory_fd >= 0)
        (void)close(instance->directory_fd); /* nothing was written */
    arena_free(&instance->arena);
    free(instance);
}

void csi_plugins_free(struct csi_plugins *plugins)
{
    struct instance *instance, *next;

    if (plugins == NULL)
        return;
    for (instance = plugins->instances; instance != NULL; instance = next) {
        next = instance->next;
        csi_instance_silence(instance, NULL);
        instance_free(instance);
    }
    free(plugins);
}

/* --- which there are --- */

static unsigned roles_of(enum plugin_type type)
{
    switch (type) {
    case PLUGIN_CSI_NODE:
        return CSI_ROLE_NODE;
    case PLUGIN_CSI_CONTROLLER:
        return CSI_ROLE_CONTROLLER;
    case PLUGIN_CSI_MONOLITH:
        return CSI_ROLE_NODE | CSI_ROLE_CONTROLLER;
    case PLUGIN_DRIVER:
    case PLUGIN_DEVICE:
    case PLUGIN_TYPE_COUNT:
        break;
    }
    unreachable("a plugin of CSI has a type of CSI");
}

int csi_plugins_add(struct csi_plugins *plugins, const struct csi_place *place, struct err *err)
{
    struct csi_paths paths;

    if (csi_instance_find(plugins, place->alloc, place->task) != NULL)
        return 0;
    int code = csi_plugins_paths(plugins, place->alloc, place->plugin, place->type, &paths, err);
    if (code != 0)
        return code;
    struct instance *instance = calloc(1, sizeof(*instance));
    check(instance != NULL);
    instance->plugins = plugins;
    instance->paths = paths;
    instance->directory_fd = -1;
    if (!text_copy(instance->plugin, sizeof(instance->plugin), place->plugin) ||
        !text_copy(instance->alloc, sizeof(instance->alloc), place->alloc) ||
        !text_copy(instance->task, sizeof(instance->task), place->task) ||
        (place->inside != NULL &&
         !text_copy(instance->inside, sizeof(instance->inside), place->inside)) ||
        (place->socket != NULL && !text_copy(instance->paths.socket, PATH_SIZE, place->socket))) {
        free(instance);
        return err_set(err, ERR_LIMIT, "plugin %.100s: a name or a directory of it is too long",
                       place->plugin);
    }
    instance->shown = (struct csi_instance){
        .plugin = instance->plugin,
        .alloc = instance->alloc,
        .task = instance->task,
        .roles = roles_of(place->type),
        .host_root = instance->paths.root,
        .plugin_root = place->inside != NULL ? instance->inside : instance->paths.root,
    };
    instance->next = plugins->instances;
    plugins->instances = instance;
    return 0;
}

void csi_plugins_drop(struct csi_plugins *plugins, const char *alloc, const char *task)
{
    struct instance **link = &plugins->instances, *instance;

    csi_plugins_ended(plugins, alloc, task);
    while (*link != NULL &&
           (!text_equal((*link)->alloc, alloc) || !text_equal((*link)->task, task)))
        link = &(*link)->next;
    instance = *link;
    if (instance == NULL)
        return;
    *link = instance->next;
    instance_free(instance);
}

/* As its record says that it is now; false: there is none. */
static bool show(struct instance *instance)
{
    const struct csi_plugins_config *config = &instance->plugins->config;
    struct csi_instance *shown = &instance->shown;

    shown->record = config->record(config->ctx, instance->alloc, instance->task);
    shown->client = instance->client;
    if (shown->record == NULL)
        return false;
    shown->plugin_capabilities = shown->record->identity.plugin_capabilities;
    shown->node_capabilities = shown->record->identity.node_capabilities;
    shown->controller_capabilities = shown->record->identity.controller_capabilities;
    shown->node_id = shown->record->identity.node;
    return true;
}

static bool is_newer(const struct instance *instance, const struct instance *other)
{
    return other == NULL || instance->shown.record->defined_ms > other->shown.record->defined_ms ||
           (instance->shown.record->defined_ms == other->shown.record->defined_ms &&
            strcmp(instance->alloc, other->alloc) > 0);
}

const struct csi_instance *csi_plugins_find(struct csi_plugins *plugins, const char *plugin,
                                            enum csi_role role)
{
    struct instance *instance, *newest = NULL;

    for (instance = plugins->instances; instance != NULL; instance = instance->next) {
        if ((instance->shown.roles & role) != 0 && text_equal(instance->plugin, plugin) &&
            instance->client != NULL && show(instance) &&
            instance->shown.record->machine.state == P_READY && is_newer(instance, newest))
            newest = instance;
    }
    return newest == NULL ? NULL : &newest->shown;
}

const struct csi_instance *csi_plugins_of(struct csi_plugins *plugins, const char *alloc,
                                          const char *task)
{
    struct instance *instance = csi_instance_find(plugins, alloc, task);

    return instance != NULL && show(instance) ? &instance->shown : NULL;
}
