/* cairn node status. */
#include "agent/cli/cli.h"

#include "io/loop.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_flag node_flags[] = {
    {"self", FLAG_SWITCH, NULL, "the node of the agent that answers"},
    {"verbose", FLAG_SWITCH, NULL,
     "whole ids, plugins and devices, host volumes and networks, attributes and meta"},
    {"stats", FLAG_SWITCH, NULL, "all that was measured of what the host uses"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* --- one node --- */

static uint64_t figure(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

/* nomad v2.0.5 command/node_status.go formatDrain. */
static const char *drain_of(const json_t *node)
{
    const json_t *drain = json_object_get(node, "DrainStrategy");
    const char *force_at = cli_value(drain, "ForceDeadline");
    bool forced = json_integer_value(json_object_get(drain, "Deadline")) < 0;
    bool limited = !text_starts_with(force_at, "0001-");

    if (!json_is_object(drain))
        return cli_value(node, "Drain");
    return cli_format(
        "true; %s%s%s",
        forced    ? "force drain"
        : limited ? force_at
                  : "no deadline",
        !forced && limited ? " deadline" : "",
        json_is_true(json_object_get(drain, "IgnoreSystemJobs")) ? "; ignoring system jobs" : "");
}

static void print_basics(const json_t *node, const json_t *stats)
{
    struct cli_table table = {0};
    char drivers[256] = "", volumes[256] = "", uptime[40];
    const char *name;
    json_t *driver, *volume;

    json_object_foreach(json_object_get(node, "Drivers"), name, driver)
    {
        if (!json_is_true(json_object_get(driver, "Detected")))
            continue;
        (void)text_append(drivers, sizeof(drivers), drivers[0] != '\0' ? "," : ""); /* a cut */
        (void)text_append(drivers, sizeof(drivers), name); /* list is enough */
        if (!json_is_true(json_object_get(driver, "Healthy")))
            (void)text_append(drivers, sizeof(drivers), " (unhealthy)");
    }
    json_object_foreach(json_object_get(node, "HostVolumes"), name, volume)
    {
        (void)text_append(volumes, sizeof(volumes), volumes[0] != '\0' ? "," : ""); /* the same */
        (void)text_append(volumes, sizeof(volumes), name);
    }
    text_from_duration_ns(uptime, sizeof(uptime), (int64_t)figure(stats, "Uptime") * 1000000000);
    cli_row(&table, "ID", cli_value(node, "ID"));
    cli_row(&table, "Name", cli_value(node, "Name"));
    cli_row(&table, "Class", cli_value(node, "NodeClass"));
    cli_row(&table, "DC", cli_value(node, "Datacenter"));
    cli_row(&table, "Drain", drain_of(node));
    cli_row(&table, "Eligibility", cli_value(node, "SchedulingEligibility"));
    cli_row(&table, "Status", cli_value(node, "Status"));
    cli_row(&table, "Status Description", cli_value(node, "StatusDescription"));
    cli_row(&table, "Uptime", uptime);
    if (volumes[0] != '\0')
        cli_row(&table, "Host Volumes", volumes);
    cli_row(&table, "Driver Status", drivers);
    cli_table_print_pairs(&table, stdout);
}

/* The newest first. */
static void print_events(const struct cli *cli, const json_t *node)
{
    const json_t *events = json_object_get(node, "Events");
    struct cli_table table = {0};

    if (json_array_size(events) == 0)
        return;
    cli_heading(cli, "Node Events");
    cli_row(&table, "Time", "Subsystem", "Message");
    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *event = json_array_get(events, i - 1);
        const json_t *details = json_object_get(event, "Details");
        const char *driver = cli_value(details, "driver"), *error = cli_value(details, "error");
        const char *volume = cli_value(details, "volume_id");
        char message[512];

        if (driver[0] != '\0')
            (void)text_format(message, sizeof(message), "%s: %s", driver,
                              cli_value(event, "Message")); /* a cut one is enough */
        else
            (void)text_format(message, sizeof(message), "%s%s%s%s%s", cli_value(event, "Message"),
                              volume[0] != '\0' ? " " : "", volume, error[0] != '\0' ? ": " : "",
                              error); /* likewise */
        cli_row(&table, cli_value(event, "Timestamp"), cli_value(event, "Subsystem"), message);
    }
    cli_table_print(&table, stdout);
}

/* What of NAME the node has for allocs. */
static uint64_t usable(const json_t *node, const char *name)
{
    uint64_t all = figure(json_object_get(node, "Resources"), name);
    uint64_t reserved = figure(json_object_get(node, "Reserved"), name);

    return all > reserved ? all - reserved : 0;
}

/* What running allocs have asked for, beside what there is for them. */
static void print_allocated(const struct cli *cli, const json_t *node, const json_t *allocs)
{
    const char *mhz = cli_value(json_object_get(node, "Attributes"), "cpu.usablecompute");
    struct cli_table table = {0};
    uint64_t cpu = 0, memory = 0, disk = 0;
    json_t *alloc;
    size_t at;

    json_array_foreach(allocs, at, alloc)
    {
        const json_t *wanted = json_object_get(alloc, "Resources");

        if (!text_equal(cli_value(alloc, "ClientStatus"), "running"))
            continue;
        cpu += figure(wanted, "CPU");
        memory += figure(wanted, "MemoryMB");
        disk += figure(wanted, "DiskMB");
    }
    cli_heading(cli, "Allocated Resources");
    cli_row(&table, "CPU", "Memory", "Disk");
    cli_row(&table, cli_format("%llu/%s MHz", (unsigned long long)cpu, mhz[0] != '\0' ? mhz : "?"),
            cli_format("%s/%s", cli_bytes(memory << 20), cli_bytes(usable(node, "MemoryMB") << 20)),
            cli_format("%s/%s", cli_bytes(disk << 20), cli_bytes(usable(node, "DiskMB") << 20)));
    cli_table_print(&table, stdout);
}

/* nomad v2.0.5 command/node_status.go printCpuStats, printMemoryStats, printDiskStats. */
static void print_measured(const struct cli *cli, const json_t *stats)
{
    static const char *const sizes[] = {"Total", "Available", "Used", "Free"};
    static const char *const shares[] = {"User", "System", "Idle"};
    const json_t *memory = json_object_get(stats, "Memory"), *item;
    struct cli_table table = {0};
    size_t at;

    json_array_foreach(json_object_get(stats, "CPU"), at, item)
    {
        cli_heading(cli, at == 0 ? "CPU Stats" : "");
        cli_row(&table, "CPU", cli_value(item, "CPU"));
        for (size_t i = 0; i < COUNT_OF(shares); i++)
            cli_row(&table, shares[i],
                    cli_format("%.2f%%", json_number_value(json_object_get(item, shares[i]))));
        cli_table_print_pairs(&table, stdout);
    }
    cli_heading(cli, "Memory Stats");
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        cli_row(&table, sizes[i], cli_bytes(figure(memory, sizes[i])));
    cli_table_print_pairs(&table, stdout);
    json_array_foreach(json_object_get(stats, "DiskStats"), at, item)
    {
        cli_heading(cli, at == 0 ? "Disk Stats" : "");
        cli_row(&table, "Device", cli_value(item, "Device"));
        cli_row(&table, "MountPoint", cli_value(item, "Mountpoint"));
        cli_row(&table, "Size", cli_bytes(figure(item, "Size")));
        cli_row(&table, "Used", cli_bytes(figure(item, "Used")));
        cli_row(&table, "Available", cli_bytes(figure(item, "Available")));
        cli_row(&table, "Used Percent",
                cli_format("%.2f%%", json_number_value(json_object_get(item, "UsedPercent"))));
        cli_row(
            &table, "Inodes Percent",
            cli_format("%.2f%%", json_number_value(json_object_get(item, "InodesUsedPercent"))));
        cli_table_print_pairs(&table, stdout);
    }
}

static void print_host(const struct cli *cli, const json_t *node, const json_t *stats)
{
    const json_t *memory = json_object_get(stats, "Memory");
    const json_t *disk = json_array_get(json_object_get(stats, "DiskStats"), 0);
    struct cli_table table = {0};

    cli_heading(cli, "Host Resource Utilization");
    cli_row(&table, "CPU", "Memory", "Disk");
    cli_row(
        &table,
        cli_format("%.0f/%s MHz", json_number_value(json_object_get(stats, "CPUTicksConsumed")),
                   cli_value(json_object_get(node, "Resources"), "CPU")),
        cli_format("%s/%s", cli_bytes(figure(memory, "Used")), cli_bytes(figure(memory, "Total"))),
        cli_format("%s/%s", cli_bytes(figure(disk, "Used")), cli_bytes(figure(disk, "Size"))));
    cli_table_print(&table, stdout);
}

static void print_pairs(const struct cli *cli, const json_t *node, const char *name)
{
    struct cli_table table = {0};
    const json_t *pairs = json_object_get(node, name);
    const char *key;
    json_t *value;

    if (json_object_size(pairs) == 0)
        return;
    cli_heading(cli, name);
    json_object_foreach((json_t *)pairs, key, value)
    {
        cli_row(&table, key, json_string_value(value));
    }
    cli_table_print_pairs(&table, stdout);
}

/* nomad v2.0.5 command/node_status.go printHostNetworkInfo, and what ports there are. */
static void print_networks(const struct cli *cli, const json_t *node)
{
    const json_t *resources = json_object_get(node, "NodeResources"), *network, *address;
    const json_t *reserved =
        json_object_get(json_object_get(node, "ReservedResources"), "Networks");
    struct cli_table table = {0};
    size_t at, inner;

    cli_heading(cli, "Host Networks");
    cli_row(&table, "Name", "Interface", "Address", "ReservedPorts");
    json_array_foreach(json_object_get(resources, "NodeNetworks"), at, network)
    {
        json_array_foreach(json_object_get(network, "Addresses"), inner, address)
            cli_row(&table, cli_value(address, "Alias"), cli_value(network, "Device"),
                    cli_value(address, "Address"), cli_value(address, "ReservedPorts"));
    }
    cli_table_print(&table, stdout);
    cli_heading(cli, "Ports");
    cli_row(&table, "Dynamic",
            cli_format("%s-%s", cli_value(resources, "MinDynamicPort"),
                       cli_value(resources, "MaxDynamicPort")));
    cli_row(&table, "Reserved", cli_value(reserved, "ReservedHostPorts"));
    cli_table_print_pairs(&table, stdout);
}

static void print_volumes(const struct cli *cli, const json_t *node)
{
    json_t *volumes = json_object_get(node, "HostVolumes"), *volume;
    struct cli_table table = {0};
    const char *name;

    if (json_object_size(volumes) == 0)
        return;
    cli_heading(cli, "Host Volumes");
    cli_row(&table, "Name", "ReadOnly", "Source");
    json_object_foreach(volumes, name, volume)
    {
        cli_row(&table, name, cli_value(volume, "ReadOnly"), cli_value(volume, "Path"));
    }
    cli_table_print(&table, stdout);
}

static int show_node(struct cli *cli, const char *id)
{
    char path[CLI_URL_SIZE];
    json_t *node = NULL, *allocs = NULL, *stats = NULL;

    int status = cli_get(cli, cli_path(cli, path, "/v1/node/%s", id), &node, NULL);
    if (status == 0 && cli->json) {
        cli_print_json(node);
        json_decref(node);
        return CLI_OK;
    }
    if (status == 0)
        status = cli_get(cli, cli_path(cli, path, "/v1/node/%s/allocations", id), &allocs, NULL);
    if (status == 0)
        status = cli_get(cli, cli_path(cli, path, "/v1/client/stats?node_id=%s", id), &stats, NULL);
    if (status == 0) {
        print_basics(node, stats);
        print_allocated(cli, node, allocs);
        print_host(cli, node, stats);
        if (cli_is_on(cli, "stats"))
            print_measured(cli, stats);
        if (cli_is_on(cli, "stats"))
            cli_print_device_stats(cli, stats);
        print_events(cli, node);
        cli_heading(cli, "Allocations");
        cli_print_allocs(cli, allocs);
    }
    if (status == 0 && cli_switch(cli, "verbose")) {
        cli_print_plugins(cli, node);
        cli_print_devices(cli, node);
        print_volumes(cli, node);
        print_networks(cli, node);
        print_pairs(cli, node, "Attributes");
        print_pairs(cli, node, "Meta");
    }
    json_decref(node);
    json_decref(allocs);
    json_decref(stats);
    return status;
}

/* --- nodes --- */

static void print_nodes(const struct cli *cli, const json_t *nodes)
{
    struct cli_table table = {0};
    json_t *node;
    size_t at;

    cli_row(&table, "ID", "DC", "Name", "Class", "Drain", "Eligibility", "Status");
    json_array_foreach(nodes, at, node)
    {
        cli_row(&table, cli_short(cli, cli_value(node, "ID")), cli_value(node, "Datacenter"),
                cli_value(node, "Name"), cli_value(node, "NodeClass"), cli_value(node, "Drain"),
                cli_value(node, "SchedulingEligibility"), cli_value(node, "Status"));
    }
    cli_table_print(&table, stdout);
}

static int run_node_status(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    const char *prefix = cli_argument(cli, 0);
    json_t *nodes;

    int status =
        cli_get(cli, cli_path(cli, path, "/v1/nodes?prefix=%s", prefix != NULL ? prefix : ""),
                &nodes, NULL);
    if (status != 0)
        return status;
    bool one = prefix != NULL || cli_switch(cli, "self");
    if (one && json_array_size(nodes) == 0)
        status = cli_fail(CLI_FAILED, "no node has an id that begins with \"%s\"", prefix);
    else if (one)
        status = show_node(cli, cli_value(json_array_get(nodes, 0), "ID"));
    else if (cli->json)
        cli_print_json(nodes);
    else
        print_nodes(cli, nodes);
    json_decref(nodes);
    return status;
}

const struct cli_verb cli_node_status = {
    .group = "node",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "List nodes, or show one with its allocs and what they use",
    .help = "    $ cairn node status\n"
            "    $ cairn node status -self",
    .flags = node_flags,
    .run = run_node_status,
};
