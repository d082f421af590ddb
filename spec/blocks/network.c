/*
 * Networks of groups and tasks, and the ports they ask for.
 *
 * Follows nomad v2.0.5: jobspec2/parse_job.go (normalizeNetworkPorts), nomad/structs
 * (NetworkResource.Canonicalize, TaskGroup.validateNetworks).  A task's own network is what jobs
 * before 0.12 had; its ports are given out on the host network "default" as the group's are.
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"
#include "spec/names.h"

#include <string.h>

static const char *const kinds[] = {"ReservedPorts", "DynamicPorts"};

/* --- defaults --- */

/* In job files a port is static because it says which. */
static void sort_ports(json_t *network)
{
    json_t *dynamic = json_array(), *reserved = json_array(), *port;
    size_t i;

    json_array_foreach(jobspec_list(network, "DynamicPorts"), i, port)
    {
        bool is_static = json_integer_value(json_object_get(port, "Value")) > 0;

        check(json_array_append(is_static ? reserved : dynamic, port) == 0);
    }
    check(json_object_set_new(network, "DynamicPorts", dynamic) == 0);
    check(json_object_set_new(network, "ReservedPorts", reserved) == 0);
}

static void default_port(json_t *port)
{
    static const char *const numbers[] = {"Value", "To"};

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (json_object_get(port, numbers[i]) == NULL)
            check(json_object_set_new(port, numbers[i], json_integer(0)) == 0);
    }
    if (*text_of(port, "HostNetwork") == '\0')
        check(json_object_set_new(port, "HostNetwork", json_string("default")) == 0);
}

void jobspec_default_networks(const struct jobspec_work *work, json_t *object)
{
    json_t *network, *port;
    size_t n, i;

    if (json_array_size(json_object_get(object, "Networks")) == 0)
        (void)json_object_del(object, "Networks"); /* missing is fine */
    json_array_foreach(jobspec_list(object, "Networks"), n, network)
    {
        if (work->file != NULL)
            sort_ports(network);
        if (json_object_get(network, "Mode") == NULL)
            check(json_object_set_new(network, "Mode", json_string("")) == 0);
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            json_array_foreach(jobspec_list(network, kinds[k]), i, port) default_port(port);
            if (json_array_size(json_object_get(network, kinds[k])) == 0)
                (void)json_object_del(network, kinds[k]); /* missing is fine */
        }
    }
}

/* --- what one alloc asks for --- */

struct asking {
    struct spec_port *ports;
    size_t count;
    bool sound;
};

/* Of a canonical job all of this holds; what is stored may be damaged. */
static void ask(struct asking *asking, const json_t *json, const char *task, bool is_static)
{
    const char *label = json_string_value(json_object_get(json, "Label"));
    const char *host_network = json_string_value(json_object_get(json, "HostNetwork"));
    json_int_t value = json_integer_value(json_object_get(json, "Value"));
    json_int_t to = json_integer_value(json_object_get(json, "To"));

    if (label == NULL || spec_port_label_fault(label) != NULL || host_network == NULL ||
        strlen(host_network) >= SPEC_PORT_LABEL_SIZE || value < 0 || value > UINT16_MAX ||
        (value > 0) != is_static || to < -1 || to > UINT16_MAX || asking->count == SPEC_PORTS_MAX) {
        asking->sound = false;
        return;
    }
    asking->ports[asking->count++] = (struct spec_port){
        .label = label,
        .task = task,
        .host_network = host_network,
        .host_ip = "",
        .value = (uint16_t)value,
        .to = (int32_t)to,
        .is_static = is_static,
    };
}

static void ask_all(struct asking *asking, const json_t *object, const char *task, bool is_static)
{
    const json_t *network = json_array_get(json_object_get(object, "Networks"), 0), *port;
    size_t i;

    json_array_foreach(json_object_get(network, kinds[is_static ? 0 : 1]), i, port)
        ask(asking, port, task, is_static);
}

bool jobspec_ports(const json_t *group, struct spec_port ret_ports[SPEC_PORTS_MAX],
                   size_t *ret_count)
{
    struct asking asking = {.ports = ret_ports, .sound = true};
    const json_t *task;
    size_t i;

    for (int pass = 0; pass < 2; pass++) {
        ask_all(&asking, group, "", pass == 0);
        json_array_foreach(json_object_get(group, "Tasks"), i, task)
            ask_all(&asking, json_object_get(task, "Resources"), text_of(task, "Name"), pass == 0);
    }
    *ret_count = asking.count;
    return asking.sound;
}

/* --- what one alloc was given --- */

/* As Nomad has it: ports of the group in a list of their own, those of a task in its network. */
void jobspec_add_ports(json_t *alloc, const struct spec_ports *ports)
{
    for (size_t i = 0; i < ports->count; i++) {
        const struct spec_port *port = &ports->items[i];
        json_t *all = jobspec_member(alloc, "AllocatedResources", json_object), *list;
        json_t *given = json_pack("{s:s, s:i, s:i}", "Label", port->label, "Value", port->value,
                                  "To", port->to == -1 ? port->value : port->to);

        check(given != NULL);
        if (*port->task == '\0') {
            check(json_object_set_new(given, "HostIP", json_string(port->host_ip)) == 0);
            list = jobspec_member(jobspec_member(all, "Shared", json_object), "Ports", json_array);
        } else {
            json_t *task =
                jobspec_member(jobspec_member(all, "Tasks", json_object), port->task, json_object);
            json_t *networks = jobspec_member(task, "Networks", json_array);

            if (json_array_size(networks) == 0)
                check(json_array_append_new(networks, json_pack("{s:s}", "IP", port->host_ip)) ==
                      0);
            list = jobspec_member(json_array_get(networks, 0), kinds[port->is_static ? 0 : 1],
                                  json_array);
        }
        check(json_array_append_new(list, given) == 0);
    }
}

/* --- rules --- */

/* What is no mode is told once, and nothing is made of it. */
static bool is_host(const json_t *network)
{
    const char *mode = text_of(network, "Mode");

    return *mode == '\0' || text_equal(mode, "host") || spec_network_mode_fault(mode) != NULL;
}

static void check_arguments(struct jobspec_work *work, const json_t *cni)
{
    json_t *value;
    const char *key;

    json_object_foreach(json_object_get(cni, "Args"), key, value)
    {
        if (strchr(key, ';') != NULL || strchr(json_string_value(value), ';') != NULL)
            jobspec_complain(work, cni, "Args", NULL,
                             "an argument of CNI may have no \";\" in it, \"%.60s\" has", key);
    }
}

/* Where the group has a network of its own, its ports are the only way in. */
static void check_mode(struct jobspec_work *work, const json_t *network)
{
    const char *fault = spec_network_mode_fault(text_of(network, "Mode"));

    if (fault != NULL)
        jobspec_complain(work, network, "Mode", NULL, "the mode of a network %s, not \"%.40s\"",
                         fault, text_of(network, "Mode"));
    check_arguments(work, json_object_get(network, "CNI"));
}

/* With a variable in it, it is looked at when the alloc is there. */
static void check_hostname(struct jobspec_work *work, const json_t *network)
{
    const char *hostname = text_of(network, "Hostname"), *mode = text_of(network, "Mode");
    bool has_variables =
        strstr(hostname, "${") != NULL && strlen(hostname) < SPEC_HOSTNAME_TEXT_SIZE;
    const char *fault = has_variables ? NULL : spec_hostname_fault(hostname);

    if (*hostname == '\0' || spec_network_mode_fault(mode) != NULL)
        return;
    if (is_host(network))
        jobspec_complain(work, network, "Hostname", "remove it, or give the group such a network",
                         "only networks of mode bridge, none and cni/NAME have a hostname");
    else if (fault != NULL)
        jobspec_complain(work, network, "Hostname", NULL, "a hostname %s, not \"%.70s\"", fault,
                         hostname);
}

/* The network of a task is where its ports are on the host, and no more. */
static void check_of_task(struct jobspec_work *work, const json_t *group, const json_t *object)
{
    const json_t *network = json_array_get(jobspec_list(object, "Networks"), 0);
    const json_t *shared = json_array_get(jobspec_list(group, "Networks"), 0);

    if (network == NULL)
        return;
    if (!is_host(network))
        jobspec_complain(work, network, "Mode", "write the network block in the group",
                         "the tasks of a group share one network, a task has none of its own");
    else if (shared != NULL && !is_host(shared))
        jobspec_complain(work, network, "", "write its ports in the network block of the group",
                         "ports of a task do not lead into the network of its group");
}

static void check_port(struct jobspec_work *work, const json_t *port, bool is_static)
{
    json_int_t value = json_integer_value(json_object_get(port, "Value"));
    const char *label = text_of(port, "Label"), *fault = spec_port_label_fault(label);

    if (fault != NULL)
        jobspec_complain(work, port, "", NULL, "the label of a port %s", fault);
    if (strlen(text_of(port, "HostNetwork")) >= SPEC_PORT_LABEL_SIZE)
        jobspec_complain(work, port, "HostNetwork", NULL,
                         "the name of a host network is too long, it may have %d bytes",
                         SPEC_PORT_LABEL_SIZE - 1);
    if (is_static && value == 0)
        jobspec_complain(work, port, "Value", NULL, "port \"%.60s\": 0 is the number of no port",
                         label);
    if (!is_static && value != 0)
        jobspec_complain(work, port, "Value", "ports with a number are ReservedPorts",
                         "port \"%.60s\" is one of DynamicPorts and has a number, %lld", label,
                         (long long)value);
}

/* A label is given once, and so is a number on one host network. */
static void check_beside(struct jobspec_work *work, const json_t *const *ports, size_t at)
{
    json_int_t value = json_integer_value(json_object_get(ports[at], "Value"));
    const char *label = text_of(ports[at], "Label");

    for (size_t i = 0; i < at; i++) {
        if (text_equal(text_of(ports[i], "Label"), label)) {
            jobspec_complain(work, ports[at], "", NULL, "a second port \"%.60s\"", label);
            return;
        }
        if (value > 0 && json_integer_value(json_object_get(ports[i], "Value")) == value &&
            text_equal(text_of(ports[i], "HostNetwork"), text_of(ports[at], "HostNetwork"))) {
            jobspec_complain(work, ports[at], "Value", NULL,
                             "port %lld is asked for twice, as \"%.60s\" and \"%.60s\"",
                             (long long)value, text_of(ports[i], "Label"), label);
            return;
        }
    }
}

struct checking {
    const json_t *ports[SPEC_PORTS_MAX];
    size_t count; /* of all, also of those for which there is no room */
};

static void check_networks(struct jobspec_work *work, struct checking *checking,
                           const json_t *object)
{
    const json_t *networks = jobspec_list(object, "Networks"), *network = NULL, *port;
    size_t i;

    if (json_array_size(networks) > 1)
        jobspec_complain(work, json_array_get(networks, 1), "", "put all ports into one of them",
                         "there may be one network");
    network = json_array_get(networks, 0);
    if (network == NULL)
        return;
    check_mode(work, network);
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        json_array_foreach(jobspec_list(network, kinds[k]), i, port)
        {
            check_port(work, port, k == 0);
            if (checking->count++ >= SPEC_PORTS_MAX)
                continue;
            checking->ports[checking->count - 1] = port;
            check_beside(work, checking->ports, checking->count - 1);
        }
    }
}

void jobspec_check_networks(struct jobspec_work *work, const json_t *group)
{
    struct checking checking = {.count = 0};
    const json_t *task;
    size_t i;

    check_hostname(work, json_array_get(jobspec_list(group, "Networks"), 0));
    check_networks(work, &checking, group);
    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        check_of_task(work, group, json_object_get(task, "Resources"));
        check_networks(work, &checking, json_object_get(task, "Resources"));
    }
    if (checking.count > SPEC_PORTS_MAX)
        jobspec_complain(work, group, "Networks", NULL,
                         "%zu ports of the group and its tasks, there may be %d", checking.count,
                         SPEC_PORTS_MAX);
}
