/*
 * The node as Nomad's JSON.
 *
 * Follows nomad v1.1.2 api/nodes.go.  The command-line tool follows pointers in it without looking
 * (Resources, Reserved): they are never null.
 */
#include "agent/api/format/format.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

static json_t *format_drivers(const struct api_node_view *view)
{
    json_t *drivers = json_object();
    char since[API_TIME_SIZE], attribute[160];

    for (size_t i = 0; i < view->drivers_count; i++) {
        const struct driver_info *info = &view->drivers[i];
        json_t *attributes = json_object();

        api_time(since, info->since_unix_ns);
        (void)text_format(attribute, sizeof(attribute), "driver.%s", info->name); /* it fits */
        if (info->detected)
            api_set_text(attributes, attribute, "true");
        for (size_t a = 0; a < info->attributes_count; a++)
            api_set_text(attributes, info->attributes[a].name, info->attributes[a].value);
        check(info->more == NULL ||
              json_object_update(attributes, (json_t *)(uintptr_t)info->more) == 0);
        api_set(drivers, info->name,
                json_pack("{s:o, s:b, s:b, s:o, s:s}", "Attributes", attributes, "Detected",
                          info->detected, "Healthy", info->healthy, "HealthDescription",
                          api_text(info->description), "UpdateTime", since));
    }
    return drivers;
}

/* As Nomad's clients tell of a volume. */
static json_t *volume_details(const json_t *event)
{
    json_t *error = json_object_get(event, "error");
    bool failed = json_string_value(error)[0] != '\0';
    json_t *details = json_pack("{s:O, s:s}", "volume_id", json_object_get(event, "volume"),
                                "success", failed ? "false" : "true");

    if (failed)
        check(json_object_set(details, "error", error) == 0);
    return details;
}

static json_t *time_of(const json_t *object, const char *name)
{
    char time[API_TIME_SIZE];

    api_time(time, json_integer_value(json_object_get(object, name)));
    return json_string(time);
}

/* What became of a driver, or of a volume. */
json_t *api_format_node_event(const json_t *event)
{
    json_t *driver = json_object_get(event, "driver");
    json_t *details = driver != NULL ? json_pack("{s:O}", "driver", driver) : volume_details(event);

    return json_pack("{s:O, s:s, s:o, s:o, s:i}", "Message", json_object_get(event, "message"),
                     "Subsystem", driver != NULL ? "Driver" : "Storage", "Details", details,
                     "Timestamp", time_of(event, "time"), "CreateIndex", 0);
}

static json_t *said_event(const json_t *event)
{
    return json_pack("{s:O, s:O, s:O, s:o, s:i}", "Message", json_object_get(event, "Message"),
                     "Subsystem", json_object_get(event, "Subsystem"), "Details",
                     json_object_get(event, "Details"), "Timestamp", time_of(event, "Time"),
                     "CreateIndex", 0);
}

/* What was seen and what an operator has said, in the order in which it was. */
static json_t *format_node_events(const struct api_node_view *view)
{
    const json_t *said = json_object_get(view->standing, "Events");
    size_t told = 0, count = json_array_size(said);
    json_t *to = json_array();
    const json_t *event;
    size_t i;

    json_array_foreach(view->events, i, event)
    {
        json_int_t time = json_integer_value(json_object_get(event, "time"));

        for (; told < count &&
               json_integer_value(json_object_get(json_array_get(said, told), "Time")) <= time;
             told++)
            check(json_array_append_new(to, said_event(json_array_get(said, told))) == 0);
        check(json_array_append_new(to, api_format_node_event(event)) == 0);
    }
    for (; told < count; told++)
        check(json_array_append_new(to, said_event(json_array_get(said, told))) == 0);
    return to;
}

const char *api_eligibility(const json_t *standing)
{
    const char *eligibility = json_string_value(json_object_get(standing, "Eligibility"));

    return eligibility != NULL ? eligibility : "eligible";
}

static json_t *format_drain(const json_t *drain)
{
    if (!json_is_object(drain))
        return json_null();
    return json_pack("{s:O, s:O, s:o, s:o}", "Deadline", json_object_get(drain, "Deadline"),
                     "IgnoreSystemJobs", json_object_get(drain, "IgnoreSystemJobs"),
                     "ForceDeadline", time_of(drain, "ForceAt"), "StartedAt",
                     time_of(drain, "StartedAt"));
}

static json_t *format_last_drain(const json_t *last)
{
    if (!json_is_object(last))
        return json_null();
    return json_pack("{s:o, s:o, s:O, s:s, s:O}", "StartedAt", time_of(last, "StartedAt"),
                     "UpdatedAt", time_of(last, "UpdatedAt"), "Status",
                     json_object_get(last, "Status"), "AccessorID", "", "Meta",
                     json_object_get(last, "Meta"));
}

/* MBITS: servers up to 1.1 place no task that asks for more. */
static json_t *format_network(const char *device, const char *ip, uint32_t mbits)
{
    json_t *cidr = json_sprintf(strchr(ip, ':') != NULL ? "%s/128" : "%s/32", ip);

    return json_pack("{s:s, s:o, s:o, s:o, s:I}", "Mode", "host", "Device", api_text(device),
                     "CIDR", cidr, "IP", api_text(ip), "MBits", (json_int_t)mbits);
}

/* Each address of the host network "default"; of a node that has none, what it is known by. */
static json_t *format_networks(const struct node *node)
{
    json_t *list = json_array();

    for (size_t i = 0; i < node->addresses_count; i++) {
        if (text_equal(node->addresses[i].network, "default"))
            check(json_array_append_new(list,
                                        format_network(node->interfaces[i], node->addresses[i].ip,
                                                       node->mbits[i])) == 0);
    }
    if (json_array_size(list) == 0)
        check(json_array_append_new(list, format_network(node->facts.network_interface,
                                                         node->facts.ip_address, 1000)) == 0);
    return list;
}

/* The ports that are given to nobody on the addresses of NETWORK. */
static const char *reserved_of(const struct api_node_view *view, const char *network)
{
    const struct config *config = view->config;

    for (size_t i = 0; i < config->host_networks_count; i++) {
        if (text_equal(config->host_networks[i].name, network))
            return config->host_networks[i].reserved_ports;
    }
    return "";
}

/* By interface, as Nomad has them. */
static json_t *format_node_networks(const struct api_node_view *view)
{
    const struct node *node = view->node;
    json_t *list = json_array(), *by_interface = json_object();

    for (size_t i = 0; i < node->addresses_count; i++) {
        const struct alone_address *address = &node->addresses[i];
        json_t *one = json_object_get(by_interface, node->interfaces[i]);

        if (one == NULL) {
            one = json_pack("{s:s, s:o, s:s, s:I, s:[]}", "Mode", "host", "Device",
                            api_text(node->interfaces[i]), "MacAddress", "", "Speed",
                            (json_int_t)node->mbits[i], "Addresses");
            check(json_object_set(by_interface, node->interfaces[i], one) == 0);
            check(json_array_append_new(list, one) == 0);
        }
        check(json_array_append_new(
                  json_object_get(one, "Addresses"),
                  json_pack("{s:s, s:o, s:s, s:o, s:s}", "Family",
                            strchr(address->ip, ':') != NULL ? "ipv6" : "ipv4", "Alias",
                            api_text(address->network), "Address", address->ip, "ReservedPorts",
                            api_text(reserved_of(view, address->network)), "Gateway", "")) == 0);
    }
    json_decref(by_interface);
    return list;
}

static json_t *format_cores(const struct core_set *set)
{
    json_t *ids = json_array();

    for (uint16_t core = 0; core < NODE_CORES_MAX; core++) {
        if (core_set_has(set, core))
            check(json_array_append_new(ids, json_integer(core)) == 0);
    }
    return ids;
}

static json_t *list_or_none(json_t *list)
{
    return list != NULL ? json_incref(list) : json_array();
}

static json_t *format_node_resources(const struct api_node_view *view)
{
    const struct room *whole = &view->node->whole;

    return json_pack(
        "{s:{s:I, s:I, s:o}, s:{s:I}, s:{s:I}, s:o, s:o, s:i, s:i, s:o}", "Cpu", "CpuShares",
        (json_int_t)whole->cpu_mhz, "TotalCpuCores", (json_int_t)view->node->room.cores,
        "ReservableCpuCores", format_cores(&view->node->cores), "Memory", "MemoryMB",
        (json_int_t)whole->memory_mb, "Disk", "DiskMB", (json_int_t)whole->disk_mb, "Networks",
        format_networks(view->node), "NodeNetworks", format_node_networks(view), "MinDynamicPort",
        view->config->min_dynamic_port, "MaxDynamicPort", view->config->max_dynamic_port, "Devices",
        list_or_none(view->devices));
}

static json_t *format_reserved(const struct config *config)
{
    struct core_set reserved = {{0}};

    (void)config_cores(config->reserved_cores, &reserved); /* it was checked when it was read */
    return json_pack("{s:{s:I, s:o}, s:{s:I}, s:{s:I}, s:{s:o}}", "Cpu", "CpuShares",
                     (json_int_t)config->reserved_cpu_mhz, "ReservedCpuCores",
                     format_cores(&reserved), "Memory", "MemoryMB",
                     (json_int_t)config->reserved_memory_mb, "Disk", "DiskMB",
                     (json_int_t)config->reserved_disk_mb, "Networks", "ReservedHostPorts",
                     api_text(config->reserved_ports));
}

/* As the operator wrote them. */
static json_t *format_host_networks(const struct config *config)
{
    json_t *networks = json_object();

    for (size_t i = 0; i < config->host_networks_count; i++) {
        const struct host_network *network = &config->host_networks[i];

        api_set(networks, network->name,
                json_pack("{s:s, s:o, s:o, s:o}", "Name", network->name, "CIDR",
                          api_text(network->cidr), "Interface", api_text(network->interface),
                          "ReservedPorts", api_text(network->reserved_ports)));
    }
    return networks;
}

static bool add_host_volume(void *ctx, const struct storage_volume *volume)
{
    const char *name = json_string_value(json_object_get(volume->json, "Name"));

    if (storage_hosted_is_here(volume))
        api_set(ctx, name,
                json_pack("{s:s, s:s, s:O, s:b}", "ID", volume->id, "Name", name, "Path",
                          json_object_get(volume->json, "HostPath"), "ReadOnly", false));
    return true;
}

/* Those that were made come in the place of those of the configuration. */
static json_t *format_host_volumes(const struct config *config, struct storage *host_volumes)
{
    json_t *volumes = json_object();

    for (size_t i = 0; i < config->host_volumes.count; i++) {
        const struct spec_node_volume *volume = &config->host_volumes.items[i];

        api_set(volumes, volume->name,
                json_pack("{s:s, s:s, s:o, s:b}", "ID", "", "Name", volume->name, "Path",
                          api_text(volume->path), "ReadOnly", volume->read_only));
    }
    if (host_volumes != NULL)
        storage_each_volume(host_volumes, add_host_volume, volumes);
    return volumes;
}

/* "" if the node has none of that NAME. */
static const char *attribute_of(const struct node *node, const char *name)
{
    const struct spec_pairs *attributes = &node->known.attributes;

    for (size_t i = 0; i < attributes->count; i++) {
        if (text_equal(attributes->items[i].key, name))
            return attributes->items[i].value;
    }
    return "";
}

json_t *api_format_node_stub(const struct api_node_view *view, unsigned parts)
{
    const struct node *node = view->node;
    json_t *to = json_object();

    api_set_text(to, "ID", node->identity.id);
    api_set_text(to, "Address", node->facts.ip_address);
    api_set_text(to, "Datacenter", node->known.datacenter);
    api_set_text(to, "Name", node->known.name);
    api_set_text(to, "NodeClass", node->known.class);
    api_set_text(to, "NodePool", node->known.pool);
    api_set_text(to, "Version", attribute_of(node, "nomad.version"));
    api_set(to, "Drain", json_boolean(json_is_object(json_object_get(view->standing, "Drain"))));
    api_set_text(to, "SchedulingEligibility", api_eligibility(view->standing));
    api_set_text(to, "Status", "ready");
    api_set_text(to, "StatusDescription", view->description);
    api_set(to, "Drivers", format_drivers(view));
    api_set(to, "HostVolumes", format_host_volumes(view->config, view->host_volumes));
    api_set(to, "LastDrain", format_last_drain(json_object_get(view->standing, "LastDrain")));
    api_set_number(to, "CreateIndex", 1);
    api_set_number(to, "ModifyIndex", view->index);
    if ((parts & API_NODE_RESOURCES) != 0) {
        api_set(to, "NodeResources", format_node_resources(view));
        api_set(to, "ReservedResources", format_reserved(view->config));
    }
    if ((parts & API_NODE_OS) != 0)
        api_set(to, "Attributes",
                json_pack("{s:o}", "os.name", api_text(attribute_of(node, "os.name"))));
    return to;
}

static json_t *plugins_or_none(json_t *plugins)
{
    return plugins != NULL ? json_incref(plugins) : json_object();
}

json_t *api_format_node(const struct api_node_view *view)
{
    const struct room *whole = &view->node->whole;
    const struct config *config = view->config;
    json_t *to = api_format_node_stub(view, API_NODE_RESOURCES);

    (void)json_object_del(to, "Address"); /* was just made; lists have it, the node has not */
    (void)json_object_del(to, "Version");
    api_set_text(to, "HTTPAddr", view->http_address);
    api_set(to, "TLSEnabled", json_boolean(view->config->tls_http));
    api_set(to, "Attributes", api_pairs(&view->node->known.attributes));
    api_set(to, "Meta", api_pairs(&view->node->known.meta));
    api_set(to, "Links", json_object());
    api_set(to, "Resources",
            json_pack("{s:I, s:I, s:I, s:I, s:o}", "CPU", (json_int_t)whole->cpu_mhz, "MemoryMB",
                      (json_int_t)whole->memory_mb, "DiskMB", (json_int_t)whole->disk_mb, "IOPS",
                      (json_int_t)0, "Networks", format_networks(view->node)));
    api_set(to, "HostNetworks", format_host_networks(view->config));
    api_set(to, "CairnPlugins", plugins_or_none(view->programs));
    api_set(to, "Reserved",
            json_pack("{s:I, s:I, s:I, s:i, s:n}", "CPU", (json_int_t)config->reserved_cpu_mhz,
                      "MemoryMB", (json_int_t)config->reserved_memory_mb, "DiskMB",
                      (json_int_t)config->reserved_disk_mb, "IOPS", 0, "Networks"));
    api_set(to, "DrainStrategy", format_drain(json_object_get(view->standing, "Drain")));
    api_set(to, "StatusUpdatedAt", json_integer((json_int_t)(view->since_unix_ns / 1000000000)));
    api_set(to, "Events", format_node_events(view));
    api_set(to, "CSIControllerPlugins", plugins_or_none(view->controller_plugins));
    api_set(to, "CSINodePlugins", plugins_or_none(view->node_plugins));
    return to;
}

static json_t *format_cpus(const struct host_stats *stats, double mhz)
{
    json_t *list = json_array();
    char name[24];

    for (unsigned i = 0; i < stats->cpus_count; i++) {
        const struct host_cpu *cpu = &stats->cpus[i];

        (void)text_format(name, sizeof(name), "cpu%u", cpu->number); /* fits */
        json_t *one =
            json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "CPU", name, "User", cpu->user,
                      "System", cpu->system, "Idle", cpu->idle, "Total", cpu->total, "TotalPercent",
                      cpu->total, "TotalTicks", cpu->total / 100 * mhz);
        check(json_array_append_new(list, one) == 0);
    }
    return list;
}

json_t *api_format_host_stats(const struct host_stats *stats, const struct host_facts *facts,
                              const char *device, json_t *device_stats, int64_t unix_ns)
{
    uint64_t usable = stats->disk_used + stats->disk_available; /* the rest is root's */
    double disk = usable > 0 ? 100.0 * (double)stats->disk_used / (double)usable : 0;
    double inodes =
        stats->inodes > 0 ? 100.0 * (double)stats->inodes_used / (double)stats->inodes : 0;
    double ticks = stats->cpu.total / 100 * (double)facts->cpu_cores * facts->cpu_mhz;
    json_t *to = json_object();

    api_set(to, "Memory",
            json_pack("{s:I, s:I, s:I, s:I}", "Total", (json_int_t)stats->memory_total, "Available",
                      (json_int_t)stats->memory_available, "Used", (json_int_t)stats->memory_used,
                      "Free", (json_int_t)stats->memory_free));
    api_set(to, "CPU", format_cpus(stats, facts->cpu_mhz));
    json_t *space =
        json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:f}", "Device", api_text(device), "Mountpoint",
                  facts->disk_mountpoint, "Size", (json_int_t)stats->disk_size, "Used",
                  (json_int_t)stats->disk_used, "Available", (json_int_t)stats->disk_available,
                  "UsedPercent", disk, "InodesUsedPercent", inodes);
    api_set(to, "DiskStats", json_pack("[O]", space));
    api_set(to, "AllocDirStats", space);
    api_set(to, "DeviceStats", json_incref(device_stats));
    api_set_number(to, "Uptime", stats->uptime_s);
    api_set(to, "Timestamp", json_integer((json_int_t)unix_ns));
    api_set(to, "CPUTicksConsumed", json_real(ticks));
    return to;
}
