/*
 * Of `node status`: plugins that are programs, the devices that they tell of, and how these are.
 *
 * nomad v2.0.5 command/node_status.go and helper.go (getDeviceResources, printDeviceStats), whose
 * list of devices says less.
 */
#include "agent/cli/cli.h"

#include <string.h>

void cli_print_plugins(const struct cli *cli, const json_t *node)
{
    json_t *plugins = json_object_get(node, "CairnPlugins"), *plugin;
    struct cli_table table = {0};
    const char *name;

    if (json_object_size(plugins) == 0)
        return;
    cli_heading(cli, "Plugins");
    cli_row(&table, "Program", "Name", "Version", "State", "Pid", "Description");
    json_object_foreach(plugins, name, plugin)
    {
        cli_row(&table, name, cli_value(plugin, "Name"), cli_value(plugin, "Version"),
                cli_value(plugin, "State"), cli_value(plugin, "Pid"),
                cli_value(plugin, "Description"));
    }
    cli_table_print(&table, stdout);
}

/* What a device or a statistic says, with its unit: of ATTRIBUTE by one set of names, of a
 * statistic by the other. */
static const char *value_of(const json_t *value)
{
    static const char *const names[] = {"Int",       "Float",           "String",
                                        "Bool",      "IntNumeratorVal", "FloatNumeratorVal",
                                        "StringVal", "BoolVal"};
    static const char *const below[] = {"IntDenominatorVal", "FloatDenominatorVal"};
    const char *unit = json_string_value(json_object_get(value, "Unit"));

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const json_t *part = json_object_get(value, names[i]);
        const char *whole = NULL;

        if (part == NULL || json_is_null(part))
            continue;
        for (size_t b = 0; b < COUNT_OF(below) && whole == NULL; b++)
            whole = json_object_get(value, below[b]) == NULL ? NULL : cli_value(value, below[b]);
        return cli_format("%s%s%s%s%s", cli_value(value, names[i]), whole == NULL ? "" : " / ",
                          whole == NULL ? "" : whole, unit == NULL || *unit == '\0' ? "" : " ",
                          unit == NULL ? "" : unit);
    }
    return "<none>";
}

static const char *group_name(const json_t *group)
{
    return cli_format("%s/%s/%s", cli_value(group, "Vendor"), cli_value(group, "Type"),
                      cli_value(group, "Name"));
}

void cli_print_devices(const struct cli *cli, const json_t *node)
{
    const json_t *groups = json_object_get(json_object_get(node, "NodeResources"), "Devices");
    const json_t *group, *instance;
    json_t *attribute;
    struct cli_table table = {0};
    const char *name;
    size_t at, inner;

    if (json_array_size(groups) == 0)
        return;
    cli_heading(cli, "Devices");
    cli_row(&table, "Device", "ID", "Health", "Description");
    json_array_foreach(groups, at, group)
    {
        json_array_foreach(json_object_get(group, "Instances"), inner, instance)
            cli_row(&table, group_name(group), cli_value(instance, "ID"),
                    json_is_true(json_object_get(instance, "Healthy")) ? "healthy" : "unhealthy",
                    cli_value(instance, "HealthDescription"));
    }
    cli_table_print(&table, stdout);
    json_array_foreach(groups, at, group)
    {
        cli_heading(cli, at == 0 ? "Device Group Attributes" : "");
        cli_row(&table, "Device Group", group_name(group));
        json_object_foreach(json_object_get(group, "Attributes"), name, attribute)
        {
            cli_row(&table, name, value_of(attribute));
        }
        cli_table_print_pairs(&table, stdout);
    }
}

/* STATS (an object of statistics) below PREFIX. */
static void add_stats(struct cli_table *table, const json_t *stats, const char *prefix)
{
    json_t *value;
    const char *name;

    json_object_foreach(json_object_get(stats, "Attributes"), name, value)
    {
        cli_row(table, cli_format("%s%s", prefix, name), value_of(value));
    }
    json_object_foreach(json_object_get(stats, "Nested"), name, value)
    {
        char longer[512];

        (void)text_format(longer, sizeof(longer), "%s%s.", prefix, name); /* cut is enough */
        add_stats(table, value, longer);
    }
}

void cli_print_device_stats(const struct cli *cli, const json_t *stats)
{
    const json_t *group;
    json_t *instance;
    struct cli_table table = {0};
    const char *id, *heading = "Device Stats";
    size_t at;

    json_array_foreach(json_object_get(stats, "DeviceStats"), at, group)
    {
        json_object_foreach(json_object_get(group, "InstanceStats"), id, instance)
        {
            cli_heading(cli, heading);
            heading = "";
            cli_row(&table, "Device", cli_format("%s[%s]", group_name(group), id));
            cli_row(&table, "Summary", value_of(json_object_get(instance, "Summary")));
            add_stats(&table, json_object_get(instance, "Stats"), "");
            cli_table_print_pairs(&table, stdout);
        }
    }
}
