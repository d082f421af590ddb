/* cairn plugin status.  Follows nomad v2.0.5 command/plugin_status_csi.go, but for its list of what
 * a controller can do, where one word leads to all that follow it. */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_flag plugin_flags[] = {
    {"type", FLAG_TEXT, "TYPE", "only plugins of this type: there is \"csi\""},
    {"short", FLAG_SWITCH, NULL, "without allocations, and without asking it what it has left"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids, what it can do, where its volumes can be reached"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* --- one plugin --- */

struct capability {
    const char *field, *name;
};

static const struct capability of_controllers[] = {
    {"SupportsReadOnlyAttach", "ATTACH_READONLY"},
    {"SupportsClone", "CLONE_VOLUME"},
    {"SupportsAttachDetach", "CONTROLLER_ATTACH_DETACH"},
    {"SupportsCreateDeleteSnapshot", "CREATE_DELETE_SNAPSHOT"},
    {"SupportsCreateDelete", "CREATE_DELETE_VOLUME"},
    {"SupportsExpand", "EXPAND_VOLUME"},
    {"SupportsGetCapacity", "GET_CAPACITY"},
    {"SupportsGet", "GET_VOLUME"},
    {"SupportsListSnapshots", "LIST_SNAPSHOTS"},
    {"SupportsListVolumes", "LIST_VOLUMES"},
    {"SupportsListVolumesAttachedNodes", "LIST_VOLUMES_PUBLISHED_NODES"},
    {"SupportsCondition", "VOLUME_CONDITION"},
};

static const struct capability of_nodes[] = {
    {"SupportsExpand", "EXPAND_VOLUME"},
    {"SupportsStats", "GET_VOLUME_STATS"},
    {"RequiresNodeStageVolume", "STAGE_UNSTAGE_VOLUME"},
    {"RequiresTopologies", "VOLUME_ACCESSIBILITY_CONSTRAINTS"},
    {"SupportsCondition", "VOLUME_CONDITION"},
};

/* Of INFO, a controller's or a node's, and of its PART. */
static void print_capabilities(const struct cli *cli, const char *heading, const json_t *info,
                               const char *part, const struct capability *capabilities,
                               size_t count)
{
    const json_t *own = json_object_get(info, part);
    bool headed = false;

    for (size_t i = 0; i < count; i++) {
        if (!json_is_true(json_object_get(own, capabilities[i].field)) &&
            !json_is_true(json_object_get(info, capabilities[i].field)))
            continue;
        if (!headed)
            cli_heading(cli, heading);
        headed = true;
        (void)printf("  %s\n", capabilities[i].name);
    }
}

static void print_topology(const struct cli *cli, const char *node, const json_t *info)
{
    const json_t *topology = json_object_get(info, "AccessibleTopology");
    const char *segments = cli_segments(topology);
    struct cli_table table = {0};

    if (segments[0] == '\0')
        return;
    cli_heading(cli, "Accessible Topologies");
    cli_row(&table, "Node ID", "Accessible Topology");
    cli_row(&table, cli_short(cli, node), segments);
    cli_table_print(&table, stdout);
}

/* There is one node at most. */
static const json_t *only_info(const json_t *plugin, const char *role, const char **ret_node)
{
    json_t *infos = json_object_get(plugin, role), *info;
    const char *node;

    json_object_foreach(infos, node, info)
    {
        *ret_node = node;
        return info;
    }
    return NULL;
}

static void print_details(const struct cli *cli, const json_t *plugin)
{
    const char *node = "";
    const json_t *controller = only_info(plugin, "Controllers", &node);
    const json_t *info = only_info(plugin, "Nodes", &node);

    print_capabilities(cli, "Controller Capabilities", controller, "ControllerInfo", of_controllers,
                       COUNT_OF(of_controllers));
    print_capabilities(cli, "Node Capabilities", info, "NodeInfo", of_nodes, COUNT_OF(of_nodes));
    print_topology(cli, node, json_object_get(info, "NodeInfo"));
}

/* Why it is not healthy, which Nomad's tables leave out. */
static void print_trouble(const json_t *plugin)
{
    static const char *const roles[] = {"Controllers", "Nodes"};
    const char *last = "", *node;
    json_t *info;

    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        json_object_foreach(json_object_get(plugin, roles[i]), node, info)
        {
            const char *why = cli_value(info, "HealthDescription");
            if (json_is_true(json_object_get(info, "Healthy")) || text_equal(why, last))
                continue;
            (void)printf("\n%s\n", why);
            last = why;
        }
    }
    if (cli_value(plugin, "CairnFailure")[0] != '\0') /* it has never said who it is */
        (void)printf("\n%s\n", cli_value(plugin, "CairnFailure"));
    else if (cli_value(plugin, "Provider")[0] == '\0')
        (void)puts("\nIt has not said yet who it is");
}

/* What it has left for volumes, if its controller tells that. */
static void print_capacity(struct cli_table *table, const json_t *plugin)
{
    const json_t *capacity = json_object_get(plugin, "CairnCapacity");
    const json_t *bytes = json_object_get(capacity, "AvailableBytes");
    const char *node = "";
    const json_t *controller = only_info(plugin, "Controllers", &node);

    if (!json_is_true(
            json_object_get(json_object_get(controller, "ControllerInfo"), "SupportsGetCapacity")))
        return;
    cli_row(table, "Available",
            bytes != NULL ? cli_bytes((uint64_t)json_integer_value(bytes))
                          : cli_format("not known: %s", cli_value(capacity, "Error")));
}

static int show_plugin(struct cli *cli, const char *id)
{
    static const char *const rows[][2] = {
        {"ID", "ID"},
        {"Provider", "Provider"},
        {"Version", "Version"},
        {"Controllers Healthy", "ControllersHealthy"},
        {"Controllers Expected", "ControllersExpected"},
        {"Nodes Healthy", "NodesHealthy"},
        {"Nodes Expected", "NodesExpected"},
    };
    struct cli_table table = {0};
    char path[CLI_URL_SIZE];
    json_t *plugin;

    const char *format =
        cli_switch(cli, "short") ? "/v1/plugin/csi/%s" : "/v1/plugin/csi/%s?capacity=true";
    int status = cli_get(cli, cli_path(cli, path, format, id), &plugin, NULL);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(plugin);
        json_decref(plugin);
        return CLI_OK;
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        cli_row(&table, rows[i][0], cli_value(plugin, rows[i][1]));
    if (!cli_switch(cli, "short"))
        print_capacity(&table, plugin);
    cli_table_print_pairs(&table, stdout);
    print_trouble(plugin);
    if (cli_switch(cli, "verbose"))
        print_details(cli, plugin);
    if (!cli_switch(cli, "short")) {
        cli_heading(cli, "Allocations");
        cli_print_allocs(cli, json_object_get(plugin, "Allocations"));
    }
    json_decref(plugin);
    return CLI_OK;
}

/* --- plugins --- */

static void print_plugins(const struct cli *cli, const json_t *plugins)
{
    struct cli_table table = {0};
    json_t *plugin;
    size_t at;

    cli_title(cli, "Container Storage Interface");
    if (json_array_size(plugins) == 0) {
        (void)puts("No CSI plugins");
        return;
    }
    cli_row(&table, "ID", "Provider", "Controllers Healthy/Expected", "Nodes Healthy/Expected");
    json_array_foreach(plugins, at, plugin)
    {
        cli_row(&table, cli_value(plugin, "ID"), cli_value(plugin, "Provider"),
                cli_format("%s/%s", cli_value(plugin, "ControllersHealthy"),
                           cli_value(plugin, "ControllersExpected")),
                cli_format("%s/%s", cli_value(plugin, "NodesHealthy"),
                           cli_value(plugin, "NodesExpected")));
    }
    cli_table_print(&table, stdout);
}

/* The one that has the whole id PREFIX, or that alone begins with it; NULL: none, or more. */
static const json_t *pick(const json_t *plugins, const char *prefix)
{
    const json_t *plugin;
    size_t at;

    json_array_foreach(plugins, at, plugin)
    {
        if (text_equal(cli_value(plugin, "ID"), prefix))
            return plugin;
    }
    return json_array_size(plugins) == 1 ? json_array_get(plugins, 0) : NULL;
}

static int run_plugin_status(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    const char *prefix = cli_argument(cli, 0), *type = cli_text(cli, "type", "csi");
    json_t *plugins;

    if (!text_equal(type, "csi"))
        return cli_fail(CLI_USAGE, "there are no plugins of type \"%s\", only \"csi\"", type);
    int status = cli_get(
        cli, cli_path(cli, path, "/v1/plugins?type=csi&prefix=%s", prefix != NULL ? prefix : ""),
        &plugins, NULL);
    if (status != 0)
        return status;
    const json_t *one = prefix == NULL ? NULL : pick(plugins, prefix);
    if (one != NULL)
        status = show_plugin(cli, cli_value(one, "ID"));
    else if (prefix != NULL && json_array_size(plugins) == 0)
        status = cli_fail(CLI_FAILED, "no plugin has an id that begins with \"%s\"", prefix);
    else if (cli->json)
        cli_print_json(plugins);
    else
        print_plugins(cli, plugins);
    if (one == NULL && prefix != NULL && json_array_size(plugins) > 1)
        status = cli_fail(CLI_FAILED, "more than one plugin begins with \"%s\"", prefix);
    json_decref(plugins);
    return status;
}

const struct cli_verb cli_plugin_status = {
    .group = "plugin",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "List storage plugins, or show one with its allocs",
    .help = "    $ cairn plugin status\n"
            "    $ cairn plugin status -verbose hostpath\n"
            "\n"
            "  A plugin is a task with a csi_plugin block.  It is healthy when it answers on its\n"
            "  socket, and says that it is ready, every 30 s.",
    .flags = plugin_flags,
    .run = run_plugin_status,
};
