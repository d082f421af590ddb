/*
 * The mesh of Consul: what the job leaves to whoever places it, and what is wrong.
 *
 * The sidecar of a service is a task of its group, with a port of its own, which servers add to the
 * jobs that they place; here it is added to those of this node's own.  Such a job may come back
 * with it, which changes nothing.  Follows nomad v2.0.6 nomad/job_endpoint_hook_connect.go and
 * nomad/structs/services.go (ConsulConnect.Validate, SidecarTask.MergeIntoTask).
 */
#include "spec/blocks/blocks.h"
#include "spec/json.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KIND_SIZE = 2 * SPEC_SERVICE_TEXT_SIZE };

static const char proxy_kind[] = "connect-proxy", native_kind[] = "connect-native";

#define SECONDS(n) ((json_int_t)(n)*1000000000)

/* --- what is added --- */

static const json_t *connect_of(const json_t *service)
{
    return json_object_get(service, "Connect");
}

static bool has_sidecar(const json_t *service)
{
    return json_is_object(json_object_get(connect_of(service), "SidecarService"));
}

static bool is_native(const json_t *service)
{
    return json_is_true(json_object_get(connect_of(service), "Native"));
}

/* The kind of a task that is PREFIX of SERVICE. */
static void kind_of(const char *prefix, const json_t *service, char to[KIND_SIZE])
{
    (void)text_format(to, KIND_SIZE, "%s:%s", prefix, text_of(service, "Name")); /* names are cut */
}

static json_t *find_kind(const json_t *group, const char *kind)
{
    json_t *task;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        if (text_equal(text_of(task, "Kind"), kind))
            return task;
    }
    return NULL;
}

static bool uses_driver(const json_t *group, const char *driver)
{
    const json_t *task;
    size_t i;

    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        if (text_equal(text_of(task, "Driver"), driver))
            return true;
    }
    return false;
}

/* The sidecar of a service called NAME, as Nomad has it: borrowed from GROUP, whose it is now. */
static json_t *add_sidecar(json_t *group, const char *name, const char *kind)
{
    bool podman = uses_driver(group, "podman") && !uses_driver(group, "docker");
    char task_name[KIND_SIZE];

    (void)text_format(task_name, sizeof(task_name), "%s-%s", proxy_kind, name); /* likewise */
    json_t *task =
        json_pack("{s:s, s:s, s:s, s:I, s:{s:i, s:i}, s:{s:i, s:i}, s:{s:s, s:b}}", "Name",
                  task_name, "Kind", kind, "Driver", podman ? "podman" : "docker", "ShutdownDelay",
                  SECONDS(5), "LogConfig", "MaxFiles", 2, "MaxFileSizeMB", 2, "Resources", "CPU",
                  250, "MemoryMB", 128, "Lifecycle", "Hook", "prestart", "Sidecar", 1);
    json_t *config = json_pack(
        "{s:s, s:[s, s, s, s, s, s, s]}", "image", "${meta.connect.sidecar_image}", "args", "-c",
        "${NOMAD_SECRETS_DIR}/envoy_bootstrap.json", "-l", "${meta.connect.log_level}",
        "--concurrency", "${meta.connect.proxy_concurrency}", "--disable-hot-restart");
    json_t *constraints =
        json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "LTarget", "${attr.consul.version}",
                  "Operand", "semver", "RTarget", ">= 1.8.0", "LTarget", "${attr.consul.grpc}",
                  "Operand", ">", "RTarget", "0");

    if (task == NULL) { /* the name is no text, which is told */
        json_decref(config);
        json_decref(constraints);
        return NULL;
    }
    check(json_object_set_new(task, "Config", config) == 0 &&
          json_object_set_new(task, "Constraints", constraints) == 0);
    check(json_array_append_new(jobspec_member(group, "Tasks", json_array), task) == 0);
    return task;
}

/* What is given in FIELD goes into that of TASK, as far as both are objects. */
static void merge(json_t *task, const char *field, json_t *given)
{
    json_t *own = json_object_get(task, field);

    if (json_is_object(own) && json_is_object(given))
        check(json_object_update(own, given) == 0);
    else
        check(json_object_set(task, field, given) == 0);
}

static void merge_sidecar_task(json_t *task, const json_t *wanted)
{
    static const char *const merged[] = {"Env", "Meta", "Resources", "LogConfig"};
    static const char *const taken[] = {"Name",          "User",       "KillTimeout",
                                        "ShutdownDelay", "KillSignal", "VolumeMounts"};
    json_t *config = json_object_get(wanted, "Config");
    const char *driver = text_of(wanted, "Driver");

    if (*driver != '\0' && !text_equal(driver, text_of(task, "Driver"))) {
        check(json_object_set(task, "Driver", json_object_get(wanted, "Driver")) == 0);
        (void)json_object_del(task, "Config"); /* which was for the other one */
    }
    if (config != NULL)
        merge(task, "Config", config);
    for (size_t i = 0; i < COUNT_OF(merged); i++) {
        json_t *given = json_object_get(wanted, merged[i]);

        if (!jobspec_is_empty(given))
            merge(task, merged[i], given);
    }
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        json_t *given = json_object_get(wanted, taken[i]);

        if (given != NULL && (json_is_integer(given) || !jobspec_is_empty(given)))
            check(json_object_set(task, taken[i], given) == 0);
    }
}

static bool has_port(const json_t *network, const char *label)
{
    static const char *const kinds[] = {"ReservedPorts", "DynamicPorts"};
    const json_t *port;
    size_t i;

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        json_array_foreach(jobspec_list(network, kinds[k]), i, port)
        {
            if (text_equal(text_of(port, "Label"), label))
                return true;
        }
    }
    return false;
}

/* A port of the host that leads to the same number in the network of the group. */
static void add_port(json_t *group, const json_t *service)
{
    const char *port = text_of(json_object_get(connect_of(service), "SidecarService"), "Port");
    json_t *network = json_array_get(jobspec_list(group, "Networks"), 0);
    char label[KIND_SIZE];

    (void)text_format(label, sizeof(label), "%s-%s", proxy_kind, text_of(service, "Name"));
    if (*port == '\0')
        port = label;
    if (has_port(network, port))
        return;
    json_t *made = json_pack("{s:s, s:i}", "Label", port, "To", -1);
    if (made != NULL) /* else it is no text, which is told */
        check(json_array_append_new(jobspec_member(network, "DynamicPorts", json_array), made) ==
              0);
}

static void default_sidecar(json_t *group, json_t *service)
{
    const json_t *wanted = json_object_get(connect_of(service), "SidecarTask");
    char kind[KIND_SIZE];

    kind_of(proxy_kind, service, kind);
    json_t *task = find_kind(group, kind);
    if (task == NULL)
        task = add_sidecar(group, text_of(service, "Name"), kind);
    if (task != NULL && wanted != NULL)
        merge_sidecar_task(task, wanted);
    add_port(group, service);
}

/* It is the task that it names, or the only one; else nobody's, which is told. */
static void default_native(json_t *group, json_t *service)
{
    const json_t *tasks = jobspec_list(group, "Tasks");
    const char *name = text_of(service, "TaskName");
    json_t *task, *found = NULL;
    char kind[KIND_SIZE];
    size_t i;

    kind_of(native_kind, service, kind);
    json_array_foreach(tasks, i, task)
    {
        if (text_equal(text_of(task, "Name"), name) || json_array_size(tasks) == 1)
            found = task;
    }
    json_t *text = found == NULL ? NULL : json_string(kind);
    if (text == NULL)
        return;
    check(json_object_set_new(found, "Kind", text) == 0);
    check(json_object_set(service, "TaskName", json_object_get(found, "Name")) == 0);
}

void jobspec_default_connect(const struct jobspec_work *work, json_t *group)
{
    const json_t *networks = jobspec_list(group, "Networks");
    json_t *service;
    size_t i;

    json_array_foreach(jobspec_list(group, "Services"), i, service)
    {
        if (work->served)
            continue;
        if (is_native(service))
            default_native(group, service);
        else if (has_sidecar(service) && json_array_size(networks) == 1)
            default_sidecar(group, service);
    }
}

/* --- rules --- */

struct looking {
    struct jobspec_work *work;
    const json_t *group, *service;
};

/* A problem with OBJECT, or with FIELD of it. */
static void complain(const struct looking *looking, const json_t *object, const char *field,
                     const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void complain(const struct looking *looking, const json_t *object, const char *field,
                     const char *hint, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut if long */
    va_end(args);
    jobspec_complain(looking->work, object, json_object_get(object, field) != NULL ? field : "",
                     hint, "service \"%.64s\": %s", text_of(looking->service, "Name"), text);
}

static bool is_lower(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (isupper((unsigned char)*at))
            return false;
    }
    return true;
}

/* One line that its record has room for. */
static void check_text(const struct looking *looking, const json_t *object, const char *field)
{
    const char *text = text_of(object, field);
    bool fits = strlen(text) < SPEC_SERVICE_TEXT_SIZE;

    for (const char *at = text; *at != '\0'; at++)
        fits &= (unsigned char)*at >= 0x20u && *at != 0x7f;
    if (!fits)
        complain(looking, object, field, NULL, "%s must be one line of at most %d bytes", field,
                 SPEC_SERVICE_TEXT_SIZE - 1);
}

static void check_config(const struct looking *looking, const json_t *object)
{
    json_t *config = json_object_get(object, "Config");

    if (config != NULL && json_dumpb(config, NULL, 0, JSON_COMPACT) >= SPEC_PROXY_CONFIG_SIZE)
        complain(looking, object, "Config", NULL, "the config of a proxy may have %d bytes as JSON",
                 SPEC_PROXY_CONFIG_SIZE - 1);
}

static void check_upstream(const struct looking *looking, const json_t *upstream)
{
    static const char *const texts[] = {
        "DestinationName",  "DestinationPeer",     "DestinationType",    "Datacenter",
        "LocalBindAddress", "LocalBindSocketPath", "LocalBindSocketMode"};
    static const char *const modes[] = {"", "none", "local", "remote"};
    const json_t *gateway = json_object_get(upstream, "MeshGateway");
    json_int_t port = json_integer_value(json_object_get(upstream, "LocalBindPort"));
    bool is_socket = *text_of(upstream, "LocalBindSocketPath") != '\0', known = false;

    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_text(looking, upstream, texts[i]);
    if (*text_of(upstream, "DestinationName") == '\0')
        complain(looking, upstream, "DestinationName", NULL,
                 "an upstream needs a destination_name");
    if ((port == 0) != is_socket)
        complain(looking, upstream, "LocalBindPort", NULL,
                 "an upstream has either a local_bind_port or a local_bind_socket_path");
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        known |= text_equal(text_of(gateway, "Mode"), modes[i]);
    if (!known)
        complain(looking, gateway, "Mode", NULL,
                 "the mode of a mesh_gateway must be \"none\", \"local\" or \"remote\", not "
                 "\"%.40s\"",
                 text_of(gateway, "Mode"));
    check_config(looking, upstream);
}

static void check_exposed(const struct looking *looking, const json_t *exposed)
{
    const json_t *network = json_array_get(jobspec_list(looking->group, "Networks"), 0);
    const char *protocol = text_of(exposed, "Protocol"), *port = text_of(exposed, "ListenerPort");

    check_text(looking, exposed, "Path");
    if (text_of(exposed, "Path")[0] != '/')
        complain(looking, exposed, "Path", NULL, "a path that is exposed must begin with \"/\"");
    if (*protocol != '\0' && !text_equal(protocol, "http") && !text_equal(protocol, "http2"))
        complain(looking, exposed, "Protocol", NULL,
                 "the protocol of a path must be \"http\" or \"http2\", not \"%.40s\"", protocol);
    if (!has_port(network, port))
        complain(looking, exposed, "ListenerPort", NULL,
                 "listener_port \"%.60s\" is no port of the group's network", port);
    if (json_integer_value(json_object_get(exposed, "LocalPathPort")) == 0)
        complain(looking, exposed, "LocalPathPort", NULL,
                 "a path that is exposed needs a local_path_port");
}

static void check_proxy(const struct looking *looking, const json_t *proxy)
{
    const json_t *upstreams = jobspec_list(proxy, "Upstreams"), *one;
    const json_t *paths = jobspec_list(json_object_get(proxy, "Expose"), "Paths");
    size_t i;

    check_text(looking, proxy, "LocalServiceAddress");
    check_config(looking, proxy);
    if (json_array_size(upstreams) > SPEC_UPSTREAMS_MAX)
        complain(looking, proxy, "Upstreams", NULL, "%zu upstreams, there may be %d",
                 json_array_size(upstreams), SPEC_UPSTREAMS_MAX);
    if (json_array_size(paths) > SPEC_EXPOSED_MAX)
        complain(looking, proxy, "Expose", NULL, "%zu paths, there may be %d",
                 json_array_size(paths), SPEC_EXPOSED_MAX);
    json_array_foreach(upstreams, i, one) check_upstream(looking, one);
    json_array_foreach(paths, i, one) check_exposed(looking, one);
}

static void check_sidecar(const struct looking *looking)
{
    const json_t *sidecar = json_object_get(connect_of(looking->service), "SidecarService");
    const json_t *networks = jobspec_list(looking->group, "Networks");
    const char *mode = text_of(json_array_get(networks, 0), "Mode");
    char kind[KIND_SIZE];

    if (json_array_size(networks) != 1 ||
        (!text_equal(mode, "bridge") && strncmp(mode, "cni/", 4) != 0)) {
        complain(looking, looking->service, "Connect", "write network { mode = \"bridge\" }",
                 "a sidecar needs a group whose network is of mode \"bridge\" or \"cni/NAME\"");
        return;
    }
    if (!is_lower(text_of(looking->service, "Name")) || !is_lower(text_of(looking->group, "Name")))
        complain(looking, looking->service, "Name", NULL,
                 "it and its group must not have uppercase letters in their names, as it has a "
                 "sidecar");
    kind_of(proxy_kind, looking->service, kind);
    if (find_kind(looking->group, kind) == NULL)
        complain(looking, looking->service, "Connect", NULL,
                 "its group has no task of kind \"%.90s\"", kind);
    if (json_array_size(jobspec_list(sidecar, "Tags")) > SPEC_TAGS_MAX ||
        json_object_size(json_object_get(sidecar, "Meta")) > SPEC_SERVICE_META_MAX)
        complain(looking, sidecar, "Tags", NULL,
                 "a sidecar may have %d tags and %d entries of meta", SPEC_TAGS_MAX,
                 SPEC_SERVICE_META_MAX);
    check_text(looking, sidecar, "Port");
    check_proxy(looking, json_object_get(sidecar, "Proxy"));
}

/* Who listens on the same address of the tasks. */
static void check_listeners(const struct looking *looking)
{
    struct {
        const json_t *items[SPEC_SERVICES_MAX * 2];
        size_t count;
    } seen = {.count = 0};
    const json_t *service, *upstream;
    size_t i, j;

    json_array_foreach(jobspec_list(looking->group, "Services"), i, service)
    {
        const json_t *sidecar = json_object_get(connect_of(service), "SidecarService");

        json_array_foreach(jobspec_list(json_object_get(sidecar, "Proxy"), "Upstreams"), j,
                           upstream)
        {
            static const char *const fields[] = {"LocalBindAddress", "LocalBindPort",
                                                 "LocalBindSocketPath"};

            for (size_t k = 0; k < seen.count; k++) {
                bool same = true;

                for (size_t f = 0; f < COUNT_OF(fields); f++)
                    same &= text_equal(text_of(seen.items[k], fields[f]),
                                       text_of(upstream, fields[f])) &&
                            json_integer_value(json_object_get(seen.items[k], fields[f])) ==
                                json_integer_value(json_object_get(upstream, fields[f]));
                if (same)
                    jobspec_complain(looking->work, upstream, "", "give each its own port",
                                     "two upstreams have the same address");
            }
            if (seen.count < COUNT_OF(seen.items))
                seen.items[seen.count++] = upstream;
        }
    }
}

static void check_connect(const struct looking *looking)
{
    const json_t *connect = connect_of(looking->service);
    char kind[KIND_SIZE];

    if (connect == NULL)
        return;
    if (!text_equal(text_of(looking->service, "Provider"), "consul"))
        complain(looking, looking->service, "Connect", "remove it, or the provider",
                 "only services of Consul are in its mesh");
    else if (is_native(looking->service) == has_sidecar(looking->service))
        complain(looking, looking->service, "Connect", NULL,
                 "its connect block must be either native or have a sidecar_service");
    else if (has_sidecar(looking->service))
        check_sidecar(looking);
    else {
        kind_of(native_kind, looking->service, kind);
        if (find_kind(looking->group, kind) == NULL)
            complain(looking, looking->service, "Connect", "write task = \"NAME\"",
                     "a native service needs the task that offers it");
    }
}

/* A task is what its kind says to a service of its group, which says the same. */
static void check_kind(const struct looking *looking, const json_t *task)
{
    static const char *const gateways[] = {
        "connect-ingress:", "connect-terminating:", "connect-mesh:"};
    const char *kind = text_of(task, "Kind");
    const json_t *service;
    char of[KIND_SIZE];
    size_t i;

    if (*kind == '\0')
        return;
    for (i = 0; i < COUNT_OF(gateways); i++) {
        if (!text_starts_with(kind, gateways[i]))
            continue;
        looking->work->refused = true;
        jobspec_complain(
            looking->work, task, "Kind", NULL,
            "gateways of Consul Connect are not supported yet: a task of kind \"%.60s\"", kind);
        return;
    }
    json_array_foreach(jobspec_list(looking->group, "Services"), i, service)
    {
        kind_of(has_sidecar(service) ? proxy_kind : native_kind, service, of);
        if (connect_of(service) != NULL && text_equal(kind, of))
            return;
    }
    jobspec_complain(looking->work, task, "Kind", NULL,
                     "no service of the group says so of a task of kind \"%.60s\"", kind);
}

static void check_cluster(struct jobspec_work *work, const json_t *object)
{
    const char *cluster = text_of(object, "Cluster");

    if (*cluster == '\0' || text_equal(cluster, "default"))
        return;
    work->refused = true;
    jobspec_complain(work, object, "Cluster", "remove it",
                     "there is one cluster of Consul, \"default\", and not \"%.60s\"", cluster);
}

void jobspec_check_connect(struct jobspec_work *work, const json_t *group)
{
    struct looking looking = {.work = work, .group = group};
    const json_t *task, *service;
    size_t i, s;

    check_cluster(work, json_object_get(group, "Consul"));
    json_array_foreach(jobspec_list(group, "Services"), i, service)
    {
        looking.service = service;
        check_cluster(work, service);
        check_connect(&looking);
    }
    check_listeners(&looking);
    json_array_foreach(jobspec_list(group, "Tasks"), i, task)
    {
        check_cluster(work, json_object_get(task, "Consul"));
        check_kind(&looking, task);
        json_array_foreach(jobspec_list(task, "Services"), s, service)
        {
            looking.service = service;
            check_cluster(work, service);
            if (connect_of(service) != NULL)
                complain(&looking, service, "Connect", "write the service in the group",
                         "only services of a group are in the mesh of Consul");
        }
    }
}
