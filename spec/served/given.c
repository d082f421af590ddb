/*
 * What a server has given an alloc: processors, memory, and addresses for its ports.
 *
 * It wins over what the job asks for, since a server may give less (no memory beyond what is asked
 * for where oversubscription is off).  Follows nomad v2.0.5 nomad/structs/structs.go
 * AllocatedResources; servers before 0.9 had it in other fields, which Allocation.Canonicalize
 * moves.
 */
#include "spec/json.h"
#include "spec/names.h"
#include "spec/served/part.h"

#include <stdlib.h>
#include <string.h>

static json_int_t whole_of(const json_t *object, const char *field)
{
    return json_integer_value(json_object_get(object, field));
}

/* --- where it is said --- */

static json_t *list_or_none(const json_t *from, const char *field)
{
    json_t *list = json_object_get(from, field);

    return json_is_array(list) ? json_incref(list) : json_array();
}

/* The fields of servers before 0.9 as those of later ones. */
static json_t *from_legacy(const json_t *alloc)
{
    const json_t *shared = json_object_get(alloc, "SharedResources"), *own;
    json_t *tasks = json_object();
    const char *name;

    json_object_foreach(json_object_get(alloc, "TaskResources"), name, own)
    {
        json_t *task = json_pack(
            "{s:{s:I}, s:{s:I}, s:o}", "Cpu", "CpuShares", whole_of(own, "CPU"), "Memory",
            "MemoryMB", whole_of(own, "MemoryMB"), "Networks", list_or_none(own, "Networks"));

        check(json_object_set_new(tasks, name, task) == 0);
    }
    json_t *given =
        json_pack("{s:o, s:{s:o, s:I}}", "Tasks", tasks, "Shared", "Networks",
                  list_or_none(shared, "Networks"), "DiskMB", whole_of(shared, "DiskMB"));
    check(given != NULL);
    return given;
}

json_t *jobspec_given(const json_t *alloc)
{
    json_t *given = json_object_get(alloc, "AllocatedResources");

    return json_is_object(given) ? json_incref(given) : from_legacy(alloc);
}

/* --- processors and memory --- */

void jobspec_put_given(json_t *resources, const json_t *task)
{
    const json_t *cpu = json_object_get(task, "Cpu"), *memory = json_object_get(task, "Memory");
    size_t cores = json_array_size(json_object_get(cpu, "ReservedCores"));
    json_int_t shares = whole_of(cpu, "CpuShares"), memory_mb = whole_of(memory, "MemoryMB");

    if (cores > 0) {
        check(json_object_set_new(resources, "Cores", json_integer((json_int_t)cores)) == 0);
        check(json_object_set_new(resources, "CPU", json_integer(0)) == 0);
    } else if (shares > 0 && whole_of(resources, "Cores") == 0) {
        check(json_object_set_new(resources, "CPU", json_integer(shares)) == 0);
    }
    if (memory_mb <= 0)
        return;
    check(json_object_set_new(resources, "MemoryMB", json_integer(memory_mb)) == 0);
    check(json_object_set_new(resources, "MemoryMaxMB",
                              json_integer(whole_of(memory, "MemoryMaxMB"))) == 0);
}

static int compare_cores(const void *a, const void *b)
{
    const json_int_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* LIST in order; what is no number of a core stays what decoding refuses.  A new reference. */
static json_t *in_order(const json_t *list)
{
    size_t count = json_array_size(list);
    json_int_t *ids = calloc(count, sizeof(*ids));
    json_t *ordered = json_array();

    check(ids != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(list, i);

        ids[i] = json_is_integer(id) ? json_integer_value(id) : -1;
    }
    qsort(ids, count, sizeof(*ids), compare_cores);
    for (size_t i = 0; i < count; i++)
        check(json_array_append_new(ordered, json_integer(ids[i])) == 0);
    free(ids);
    return ordered;
}

void jobspec_add_given_cores(json_t *alloc, const json_t *given)
{
    json_t *tasks = json_object_get(given, "Tasks"), *task;
    const char *name;

    json_object_foreach(tasks, name, task)
    {
        const json_t *cpu = json_object_get(task, "Cpu");
        const json_t *list = json_object_get(cpu, "ReservedCores");
        json_int_t shares = whole_of(cpu, "CpuShares");

        if (json_array_size(list) == 0 || json_array_size(list) > NODE_CORES_MAX)
            continue; /* so many are refused by whoever decodes it */
        json_t *all = jobspec_member(alloc, "AllocatedResources", json_object);
        json_t *own = jobspec_member(jobspec_member(all, "Tasks", json_object), name, json_object);
        shares = shares > INT32_MAX ? INT32_MAX : shares;
        check(json_object_set_new(own, "Cpu",
                                  json_pack("{s:o, s:I}", "ReservedCores", in_order(list),
                                            "CpuShares", shares)) == 0);
    }
}

/* --- ports --- */

/* Of LIST the port LABEL, or NULL. */
static const json_t *port_of(const json_t *list, const char *label)
{
    const json_t *port;
    size_t i;

    json_array_foreach(list, i, port)
    {
        if (text_equal(text_of(port, "Label"), label))
            return port;
    }
    return NULL;
}

/* Of NETWORKS, with the address of the one that it is in. */
static const json_t *port_in_networks(const json_t *networks, const char *label,
                                      const char **ret_ip)
{
    const json_t *network, *port = NULL;
    size_t i;

    json_array_foreach(networks, i, network)
    {
        if (port == NULL)
            port = port_of(json_object_get(network, "ReservedPorts"), label);
        if (port == NULL)
            port = port_of(json_object_get(network, "DynamicPorts"), label);
        if (port != NULL) {
            *ret_ip = text_of(network, "IP");
            return port;
        }
    }
    return NULL;
}

/* Since 0.12 the ports of a group are in a list of their own, before they were in its network. */
static const json_t *find_port(const json_t *given, const struct spec_port *port,
                               const char **ret_ip)
{
    const json_t *shared = json_object_get(given, "Shared");
    const json_t *networks = json_object_get(shared, "Networks"), *found;

    if (*port->task != '\0')
        return port_in_networks(
            json_object_get(json_object_get(json_object_get(given, "Tasks"), port->task),
                            "Networks"),
            port->label, ret_ip);
    found = port_of(json_object_get(shared, "Ports"), port->label);
    if (found == NULL)
        return port_in_networks(networks, port->label, ret_ip);
    *ret_ip = text_of(found, "HostIP");
    if (**ret_ip == '\0')
        *ret_ip = text_of(json_array_get(networks, 0), "IP");
    return found;
}

int jobspec_take_ports(const json_t *given, struct spec_ports *ports, struct err *err)
{
    for (size_t i = 0; i < ports->count; i++) {
        struct spec_port *port = &ports->items[i];
        const char *ip = "";
        const json_t *found = find_port(given, port, &ip);
        json_int_t value = whole_of(found, "Value"), to = whole_of(found, "To");

        if (found == NULL || value < 1 || value > UINT16_MAX || to < -1 || to > UINT16_MAX)
            return err_set(err, ERR_CORRUPT, "the server gave the alloc no port \"%.60s\"",
                           port->label);
        port->host_ip = ip;
        port->value = (uint16_t)value;
        port->to = (int32_t)to;
    }
    return 0;
}
