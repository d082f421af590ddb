/*
 * What the Engine is asked to make, from what the task's job and its hooks say.
 *
 * Follows nomad v2.0.6 drivers/docker/driver.go createContainerConfig.  Limits of memory and
 * capabilities are said in full, so that nothing depends on what an Engine gives by default.
 *
 * The paths below a task's directory are the payload's to exchange, and the Engine follows links as
 * root: a path that leads over one is not given to it.
 */
#include "drivers/docker/docker.h"

#include "drivers/shim/network.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>

enum {
    PATH_TEXT_SIZE = 4096,
    SHARES_LEAST = 2,
    SHARES_MOST = 262144,
    PROFILE_BYTES_MAX = 1 << 20,
};

struct builder {
    const struct drivers *drivers;
    const struct driver_start *start;
    const struct command *command;
    json_t *body, *host; /* HostConfig, borrowed of the body */
    struct err *err;
};

/* --- small things --- */

static void set(json_t *object, const char *name, json_t *value)
{
    check(json_object_set_new(object, name, value) == 0);
}

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        set(object, name, json_string(text));
}

static json_t *list_of(const struct texts *texts)
{
    json_t *list = json_array();

    for (size_t i = 0; i < texts->count; i++)
        check(json_array_append_new(list, json_string(texts->items[i])) == 0);
    return list;
}

static void set_list(json_t *object, const char *name, const struct texts *texts)
{
    if (texts->count > 0)
        set(object, name, list_of(texts));
}

static void set_map(json_t *object, const char *name, json_t *map)
{
    if (map != NULL && json_object_size(map) > 0)
        check(json_object_set(object, name, map) == 0);
}

static void add(json_t *list, json_t *item)
{
    check(json_array_append_new(list, item) == 0);
}

/* --- what runs --- */

static void add_command(struct builder *build)
{
    const struct command *command = build->command;
    json_t *line = list_of(&command->arguments);

    if (command->program != NULL && *command->program != '\0')
        check(json_array_insert_new(line, 0, json_string(command->program)) == 0);
    if (json_array_size(line) > 0)
        set(build->body, "Cmd", line);
    else
        json_decref(line);
    set_list(build->body, "Entrypoint", &command->docker.entrypoint);
}

static void add_environment(struct builder *build)
{
    const struct spec_pairs *env = &build->start->env;
    json_t *list = json_array();

    for (size_t i = 0; i < env->count; i++)
        add(list, json_sprintf("%s=%s", env->items[i].key, env->items[i].value));
    set(build->body, "Env", list);
}

static void add_labels(struct builder *build)
{
    json_t *labels = container_labels(build->drivers->node_mark, &build->start->key);

    if (build->command->docker.labels != NULL) /* none of which is one of ours */
        check(json_object_update_missing(labels, build->command->docker.labels) == 0);
    set(build->body, "Labels", labels);
}

/* --- limits --- */

static int add_memory(struct builder *build)
{
    const struct spec_resources *resources = &build->start->task->resources;
    int64_t hard = build->command->docker.memory_hard_limit, most = resources->memory_max_mb;
    int64_t limit, reserved = 0, asked = resources->memory_mb;

    if (most == SPEC_MEMORY_UNLIMITED) {
        limit = 0;
        reserved = asked;
    } else if (hard == 0 && most == 0) {
        limit = asked;
    } else {
        limit = hard > most ? hard : most;
        reserved = asked;
    }
    if (limit > 0 && reserved > limit)
        return err_set(build->err, ERR_INVALID,
                       "docker: the task asks for more memory than its \"memory_hard_limit\"");
    set(build->host, "Memory", json_integer(limit << 20));
    set(build->host, "MemoryReservation", json_integer(reserved << 20));
    set(build->host, "MemorySwap", json_integer(limit << 20)); /* none beside it */
    return 0;
}

/* Follows nomad v2.0.6 drivers/docker/driver.go: the kernel's time is that of one processor. */
int64_t cpu_quota_us(uint64_t mhz, uint64_t usable_mhz, uint32_t cores, int64_t period_us)
{
    double part = (double)mhz / (double)usable_mhz;

    return (int64_t)(part * (double)period_us) * (int64_t)cores;
}

static int add_hard_limit(struct builder *build)
{
    const struct drivers_docker *node = &build->drivers->config.docker;
    const struct docker_config *docker = &build->command->docker;
    int64_t period_us = docker->cpu_period_us != 0 ? docker->cpu_period_us : CPU_PERIOD_US;

    if (!docker->cpu_hard_limit)
        return 0;
    if (node->usable_mhz == 0)
        return err_set(
            build->err, ERR_REFUSED,
            "docker: \"cpu_hard_limit\": it is not known how much this node's processors "
            "can do (client.cpu_total_compute says it)");
    set(build->host, "CpuPeriod", json_integer(period_us));
    set(build->host, "CpuQuota",
        json_integer(cpu_quota_us(build->start->task->resources.cpu_mhz, node->usable_mhz,
                                  node->cores, period_us)));
    return 0;
}

static void add_processors(struct builder *build)
{
    const struct spec_resources *resources = &build->start->task->resources;
    int64_t shares = resources->cpu_mhz;
    char cpus[CORES_TEXT_SIZE];

    shares = shares < SHARES_LEAST ? SHARES_LEAST : shares > SHARES_MOST ? SHARES_MOST : shares;
    set(build->host, "CpuShares", json_integer(shares));
    if (resources->cores > 0) {
        spec_cores_text(resources->core_ids, resources->cores, cpus);
        set_text(build->host, "CpusetCpus", cpus);
    } else if (build->drivers->share.restricted) {
        set_text(build->host, "CpusetCpus", build->drivers->share.cpus);
    }
}

static void add_ulimits(struct builder *build)
{
    json_t *list = json_array(), *value;
    const char *name;

    json_object_foreach(build->command->docker.ulimit, name, value)
    {
        const char *text = json_string_value(value), *colon = strchr(text, ':');
        long long soft = strtoll(text, NULL, 10); /* checked before */
        long long hard = colon == NULL ? soft : strtoll(colon + 1, NULL, 10);

        add(list, json_pack("{s:s, s:I, s:I}", "Name", name, "Soft", (json_int_t)soft, "Hard",
                            (json_int_t)hard));
    }
    set(build->host, "Ulimits", list);
}

/* --- rights --- */

static void add_names(json_t *list, uint64_t set_of)
{
    for (cap_value_t value = 0; value < cap_max_bits(); value++) {
        if ((set_of >> value & 1) == 0)
            continue;
        char *name = cap_to_name(value);
        check(name != NULL);
        for (char *at = name; *at != '\0'; at++)
            *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
        add(list, json_string(name));
        (void)cap_free(name);
    }
}

static uint64_t sum(const struct texts *names)
{
    uint64_t all = 0, one;

    for (size_t i = 0; i < names->count; i++)
        all |= driver_capability(names->items[i], &one) ? one : 0;
    return all;
}

/* What is dropped is dropped, and what is added comes on top; the node allows it, or none. */
static int add_capabilities(struct builder *build)
{
    const struct command *command = build->command;
    uint64_t allowed = build->drivers->config.docker.allowed_capabilities;
    uint64_t added = sum(&command->cap_add), dropped = sum(&command->cap_drop);
    uint64_t usual = driver_default_capabilities | (uint64_t)1 << CAP_NET_RAW;
    json_t *list = json_array();

    if (command->docker.privileged) {
        json_decref(list);
        set(build->host, "Privileged", json_true());
        return 0;
    }
    add_names(list, added & ~allowed);
    if (json_array_size(list) > 0) {
        int code = err_set(build->err, ERR_REFUSED,
                           "docker: this node does not allow the capability %s (allow_caps of "
                           "plugin \"docker\")",
                           json_string_value(json_array_get(list, 0)));
        json_decref(list);
        return code;
    }
    add_names(list, (usual & allowed & ~dropped) | added);
    set(build->host, "CapDrop", json_pack("[s]", "ALL"));
    set(build->host, "CapAdd", list);
    return 0;
}

/* OPTION, "seccomp=PATH", with what is in that file of the host in its place. */
static int add_profile(struct builder *build, json_t *list, const char *path)
{
    scoped_string char *bytes = NULL;
    size_t length;

    if (path[0] != '/')
        return err_set(build->err, ERR_INVALID,
                       "docker: \"security_opt\": a seccomp profile is named by its absolute path, "
                       "not \"%.80s\"",
                       path);
    if (file_read(path, PROFILE_BYTES_MAX, &bytes, &length, build->err) != 0)
        return err_wrap(build->err, "docker: \"security_opt\": seccomp profile");
    json_t *profile = json_loadb(bytes, length, 0, NULL);
    scoped_string char *text = json_is_object(profile) ? json_dumps(profile, JSON_COMPACT) : NULL;
    json_decref(profile);
    if (text == NULL)
        return err_set(build->err, ERR_INVALID,
                       "docker: \"security_opt\": %.100s is no seccomp profile, which is JSON",
                       path);
    add(list, json_sprintf("seccomp=%s", text));
    return 0;
}

static int add_security(struct builder *build)
{
    const struct texts *options = &build->command->docker.security_opt;
    json_t *list = json_array();
    int code = 0;

    for (size_t i = 0; code == 0 && i < options->count; i++) {
        const char *option = options->items[i], *value = strpbrk(option, "=:");
        bool is_profile = text_starts_with(option, "seccomp") && value == option + 7 &&
                          !text_equal(value + 1, "unconfined");

        if (is_profile)
            code = add_profile(build, list, value + 1);
        else
            add(list, json_string(option));
    }
    if (json_array_size(list) > 0)
        set(build->host, "SecurityOpt", list);
    else
        json_decref(list);
    return code;
}

/* --- files --- */

static void bind_in(json_t *mounts, const char *from, const char *to, bool read_only,
                    const char *propagation)
{
    add(mounts, json_pack("{s:s, s:s, s:s, s:b, s:{s:s}}", "Type", "bind", "Source", from, "Target",
                          to, "ReadOnly", read_only, "BindOptions", "Propagation", propagation));
}

static void add_bind(struct builder *build, const char *from, const char *to, bool read_only,
                     const char *propagation)
{
    bind_in(json_object_get(build->host, "Mounts"), from, to, read_only, propagation);
}

static int add_own(struct builder *build, const char *root, const char *name, const char *to,
                   bool read_only)
{
    char path[PATH_TEXT_SIZE];

    if (!text_format(path, sizeof(path), "%s/%s", root, name))
        return err_set(build->err, ERR_LIMIT, "the alloc's path is too long");
    add_bind(build, path, to, read_only, "rprivate");
    return 0;
}

static int add_given(struct builder *build)
{
    const struct spec_mounts *mounts = &build->start->mounts;

    for (size_t i = 0; i < mounts->count; i++) {
        const struct spec_mount *mount = &mounts->items[i];

        if (mount->is_node)
            continue; /* the Engine is told of it as of a device: add_devices */
        if (mount->is_mount && !mount_is_point_at_once(mount->host))
            return err_set(build->err, ERR_GONE, "nothing is mounted on %.100s any more",
                           mount->host);
        add_bind(build, mount->host, mount->inside, mount->read_only,
                 mount->propagation == PROPAGATION_BIDIRECTIONAL  ? "rshared"
                 : mount->propagation == PROPAGATION_HOST_TO_TASK ? "rslave"
                                                                  : "rprivate");
    }
    return 0;
}

/* Where FROM of a job's text is on the host: itself, or in the task's directory, and then not over
 * a link. */
static int resolve(struct builder *build, const char *from, char to[PATH_TEXT_SIZE])
{
    const struct driver_start *start = build->start;
    bool is_inside = from[0] != '/' || text_starts_with(from, start->alloc_dir);

    if (from[0] == '/')
        is_inside &= text_copy(to, PATH_TEXT_SIZE, from) && from[strlen(start->alloc_dir)] == '/';
    else if (!text_format(to, PATH_TEXT_SIZE, "%s/%s", start->task_dir, from))
        return err_set(build->err, ERR_LIMIT, "docker: a path to mount is too long");
    if (!is_inside && !build->drivers->config.docker.volumes_enabled)
        return err_set(build->err, ERR_REFUSED,
                       "docker: this node does not allow to mount \"%.80s\" (volumes of plugin "
                       "\"docker\")",
                       from);
    if (!is_inside)
        return 0;
    if (text_goes_up(to))
        return err_set(build->err, ERR_REFUSED, "docker: \"%.80s\" leads out of the alloc", from);
    scoped_fd int root = open(start->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    scoped_fd int fd = root < 0 ? -1 : beneath_open(root, to + strlen(start->alloc_dir), O_PATH, 0);
    if (fd == -ELOOP || fd == -EXDEV || fd == -ENOTDIR)
        return err_set(build->err, ERR_REFUSED, "docker: \"%.80s\" leads over a link", from);
    return 0;
}

/* "from:to[:options]". */
static int add_volumes(struct builder *build)
{
    const struct docker_config *docker = &build->command->docker;
    json_t *binds = json_array();
    int code = 0;

    for (size_t i = 0; code == 0 && i < docker->volumes.count; i++) {
        scoped_string char *from = strdup(docker->volumes.items[i]);
        char path[PATH_TEXT_SIZE];

        check(from != NULL);
        char *to = strchr(from, ':'); /* checked before */
        *to++ = '\0';
        if (docker->volume_driver != NULL && *docker->volume_driver != '\0')
            check(text_copy(path, sizeof(path), from));
        else
            code = resolve(build, from, path);
        if (code == 0)
            add(binds, json_sprintf("%s:%s", path, to));
    }
    set(build->host, "Binds", binds);
    set_text(build->host, "VolumeDriver", docker->volume_driver);
    return code;
}

static json_t *map_of(const json_t *block, const char *name)
{
    const json_t *map = block_inner(block, name);

    return map == NULL ? json_object() : json_deep_copy(map);
}

static int add_mount(struct builder *build, const json_t *mount)
{
    const char *type = block_text(mount, "type"), *source = block_text(mount, "source");
    const json_t *bind = block_inner(mount, "bind_options");
    const json_t *tmpfs = block_inner(mount, "tmpfs_options");
    const json_t *volume = block_inner(mount, "volume_options");
    const json_t *driver = block_inner(volume, "driver_config");
    char path[PATH_TEXT_SIZE] = "";
    int code = 0;

    type = *type == '\0' ? "volume" : type;
    if (text_equal(type, "bind"))
        code = resolve(build, source, path);
    else if (!text_copy(path, sizeof(path), source))
        code = err_set(build->err, ERR_LIMIT, "docker: the source of a mount is too long");
    if (driver != NULL && !build->drivers->config.docker.volumes_enabled)
        code = err_set(build->err, ERR_REFUSED,
                       "docker: this node does not allow drivers of volumes (volumes of plugin "
                       "\"docker\")");
    if (code != 0)
        return code;
    json_t *made = json_pack("{s:s, s:s, s:b}", "Type", type, "Target", block_text(mount, "target"),
                             "ReadOnly", block_is(mount, "readonly"));
    check(made != NULL);
    set_text(made, "Source", path);
    if (bind != NULL)
        set(made, "BindOptions",
            json_pack("{s:s}", "Propagation", block_text(bind, "propagation")));
    if (tmpfs != NULL)
        set(made, "TmpfsOptions",
            json_pack("{s:I, s:I}", "SizeBytes", (json_int_t)block_number(tmpfs, "size"), "Mode",
                      (json_int_t)block_number(tmpfs, "mode")));
    if (volume != NULL)
        set(made, "VolumeOptions",
            json_pack("{s:b, s:o}", "NoCopy", block_is(volume, "no_copy"), "Labels",
                      map_of(volume, "labels")));
    if (driver != NULL)
        set(json_object_get(made, "VolumeOptions"), "DriverConfig",
            json_pack("{s:s, s:o}", "Name", block_text(driver, "name"), "Options",
                      map_of(driver, "options")));
    add(json_object_get(build->host, "Mounts"), made);
    return 0;
}

static int add_mounts(struct builder *build, const json_t *mounts)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < json_array_size(mounts); i++)
        code = add_mount(build, json_array_get(mounts, i));
    return code;
}

static int add_files(struct builder *build)
{
    const struct driver_start *start = build->start;
    int code;

    set(build->host, "Mounts", json_array());
    code = add_own(build, start->alloc_dir, "alloc", "/alloc", false);
    if (code == 0) /* which we write */
        code = add_own(build, start->alloc_dir, "alloc/logs", "/alloc/logs", true);
    if (code == 0)
        code = add_own(build, start->task_dir, "local", "/local", false);
    if (code == 0)
        code = add_own(build, start->task_dir, "secrets", "/secrets", false);
    if (code == 0)
        code = add_given(build);
    if (code == 0)
        code = add_volumes(build);
    if (code == 0)
        code = add_mounts(build, build->command->docker.mount);
    if (code == 0)
        code = add_mounts(build, build->command->docker.mounts);
    return code;
}

static void add_devices(struct builder *build)
{
    const json_t *devices = build->command->docker.devices;
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *inside = block_text(device, "container_path");
        const char *rights = block_text(device, "cgroup_permissions");

        add(list,
            json_pack("{s:s, s:s, s:s}", "PathOnHost", block_text(device, "host_path"),
                      "PathInContainer", *inside == '\0' ? block_text(device, "host_path") : inside,
                      "CgroupPermissions", *rights == '\0' ? "rwm" : rights));
    }
    for (size_t i = 0; i < build->start->mounts.count; i++) {
        const struct spec_mount *mount = &build->start->mounts.items[i];

        if (mount->is_node) /* of those that the task was given */
            add(list,
                json_pack("{s:s, s:s, s:s}", "PathOnHost", mount->host, "PathInContainer",
                          mount->inside, "CgroupPermissions", mount->read_only ? "r" : "rwm"));
    }
    set(build->host, "Devices", list);
}

/* --- network --- */

static const struct spec_port *find_port(const struct driver_start *start, const char *label)
{
    const struct spec_port *found = NULL;

    for (size_t i = 0; i < start->ports.count; i++) {
        const struct spec_port *port = &start->ports.items[i];

        if (text_equal(port->label, label) &&
            (port->task[0] == '\0' || text_equal(port->task, start->key.task)))
            found = port;
    }
    return found;
}

static int add_ports(struct builder *build)
{
    const struct docker_config *docker = &build->command->docker;
    static const char *const protocols[] = {"tcp", "udp"};
    json_t *bindings = json_object(), *exposed = json_object();

    set(build->host, "PortBindings", bindings);
    set(build->body, "ExposedPorts", exposed);
    for (size_t i = 0; i < docker->ports.count; i++) {
        const struct spec_port *port = find_port(build->start, docker->ports.items[i]);

        if (port == NULL)
            return err_set(build->err, ERR_INVALID,
                           "docker: port \"%.60s\" of \"ports\" is none of the group's network",
                           docker->ports.items[i]);
        for (size_t j = 0; j < COUNT_OF(protocols); j++) {
            char inside[24], outside[8];

            check(text_format(inside, sizeof(inside), "%d/%s",
                              port->to > 0 ? port->to : (int)port->value, protocols[j]));
            check(text_format(outside, sizeof(outside), "%u", port->value));
            if (json_object_get(bindings, inside) == NULL)
                set(bindings, inside, json_array());
            add(json_object_get(bindings, inside),
                json_pack("{s:s, s:s}", "HostIp", port->host_ip, "HostPort", outside));
            set(exposed, inside, json_object());
        }
    }
    return 0;
}

/* True if START's task is in a network of its alloc.  Follows Nomad: "network_mode" of the job is
 * one of the Engine's in any case. */
static bool is_shared(const struct driver_start *start, const struct command *command)
{
    const char *mode = command->docker.network_mode;

    return start->network != NULL && *start->network != '\0' && (mode == NULL || *mode == '\0');
}

/* How names are found, of whoever has a network: a task that shares one shares that, too. */
static void add_names_found(const struct docker_config *docker, json_t *host)
{
    set_list(host, "ExtraHosts", &docker->extra_hosts);
    set_list(host, "Dns", &docker->dns_servers);
    set_list(host, "DnsSearch", &docker->dns_searches);
    set_list(host, "DnsOptions", &docker->dns_options);
}

static json_t *endpoint_of(const struct docker_config *docker)
{
    json_t *endpoint = json_object(), *addresses = json_object();

    set_list(endpoint, "Aliases", &docker->network_aliases);
    set_text(addresses, "IPv4Address", docker->ipv4_address);
    set_text(addresses, "IPv6Address", docker->ipv6_address);
    if (json_object_size(addresses) > 0)
        check(json_object_set(endpoint, "IPAMConfig", addresses) == 0);
    json_decref(addresses);
    return endpoint;
}

static void add_engines_network(struct builder *build)
{
    const struct docker_config *docker = &build->command->docker;
    const char *mode = docker->network_mode == NULL || *docker->network_mode == '\0'
                           ? "default"
                           : docker->network_mode;
    json_t *endpoint = endpoint_of(docker);

    set_text(build->host, "NetworkMode", mode);
    add_names_found(docker, build->host);
    set_text(build->body, "Hostname", docker->hostname);
    set_text(build->body, "MacAddress", docker->mac_address);
    if (json_object_size(endpoint) > 0)
        set(build->body, "NetworkingConfig",
            json_pack("{s:{s:O}}", "EndpointsConfig", mode, endpoint));
    json_decref(endpoint);
}

static int share_network(struct builder *build)
{
    const struct docker_config *docker = &build->command->docker;
    char name[SHARER_NAME_SIZE];
    json_t *endpoint = endpoint_of(docker);
    bool is_of_engines = json_object_size(endpoint) > 0 ||
                         (docker->mac_address != NULL && *docker->mac_address != '\0');

    json_decref(endpoint);
    if (is_of_engines)
        return err_set(build->err, ERR_INVALID,
                       "docker: \"mac_address\", \"network_aliases\" and addresses are of the "
                       "Engine's networks, and the task is in that of its group");
    if (build->start->hosts != NULL && *build->start->hosts != '\0' &&
        docker->extra_hosts.count > 0)
        return err_set(build->err, ERR_INVALID,
                       "docker: \"extra_hosts\" cannot be beside a \"hostname\" of the group's "
                       "network, which gives the task another /etc/hosts");
    sharer_name(&build->start->key, name);
    set(build->host, "NetworkMode", json_sprintf("container:%s", name));
    /* Published by plugins, not by the Engine. */
    (void)json_object_del(build->host, "PortBindings");
    (void)json_object_del(build->body, "ExposedPorts");
    if (build->start->hosts != NULL && *build->start->hosts != '\0')
        add_bind(build, build->start->hosts, "/etc/hosts", true, "rprivate");
    return 0;
}

static int add_network(struct builder *build)
{
    const char *resolv = build->start->resolv;
    int code = 0;

    if (is_shared(build->start, build->command))
        code = share_network(build);
    else
        add_engines_network(build);
    if (code == 0 && resolv != NULL && *resolv != '\0') {
        add_bind(build, resolv, "/etc/resolv.conf", true, "rprivate");
        (void)json_object_del(build->host, "Dns");
        (void)json_object_del(build->host, "DnsSearch");
        (void)json_object_del(build->host, "DnsOptions");
    }
    return code;
}

json_t *create_sharer(const struct drivers *drivers, const struct driver_start *start,
                      const struct command *command)
{
    const struct docker_config *docker = &command->docker;
    json_t *host, *body;

    if (!is_shared(start, command))
        return NULL;
    /* Its root is the image's, of which it uses nothing; it may enter namespaces, and that only. */
    host = json_pack("{s:s, s:[s], s:[s], s:b, s:s, s:s, s:[s], s:{s:s}, s:[]}", "NetworkMode",
                     "none", "CapDrop", "ALL", "CapAdd", "SYS_ADMIN", "ReadonlyRootfs", true,
                     "UsernsMode", "host", "Runtime", "runc", "SecurityOpt", "label=disable",
                     "LogConfig", "Type", "none", "Mounts");
    body = json_pack("{s:s, s:s, s:[s], s:[], s:{s:[s]}, s:o, s:o}", "User", "0:0", "WorkingDir",
                     "/", "Entrypoint", NETWORK_PROGRAM, "Env", "Healthcheck", "Test", "NONE",
                     "Labels", sharer_labels(drivers->node_mark, &start->key), "HostConfig", host);
    check(host != NULL && body != NULL);
    bind_in(json_object_get(host, "Mounts"), drivers->shim_path, NETWORK_PROGRAM, true, "rprivate");
    bind_in(json_object_get(host, "Mounts"), start->network, NETWORK_NAMESPACE, true, "rprivate");
    add_names_found(docker, host);
    set_text(body, "Hostname",
             docker->hostname != NULL && *docker->hostname != '\0' ? docker->hostname
                                                                   : start->hostname);
    return body;
}

/* --- all of it --- */

/* As Nomad's default: what the Engine keeps of the output is bounded, and is ours for the reading.
 */
static void add_logging(struct builder *build)
{
    const struct docker_config *docker = &build->command->docker;
    const char *type = docker->logging_type != NULL && *docker->logging_type != '\0'
                           ? docker->logging_type
                           : docker->logging_driver;
    json_t *config = json_object();

    if (docker->has_logging) {
        set_map(config, "Config", docker->logging_config);
        set_text(config, "Type", type);
    } else {
        set_text(config, "Type", "json-file");
        set(config, "Config", json_pack("{s:s, s:s}", "max-file", "2", "max-size", "2m"));
    }
    set(build->host, "LogConfig", config);
}

static void add_rest(struct builder *build)
{
    const struct command *command = build->command;
    const struct docker_config *docker = &command->docker;
    int64_t pids =
        docker->pids_limit > 0 ? docker->pids_limit : build->drivers->config.docker.pids_limit;

    set_text(build->body, "User", build->start->task->user);
    set_text(build->body, "WorkingDir", command->work_dir);
    set(build->body, "Tty", json_boolean(docker->tty));
    set(build->body, "OpenStdin", json_boolean(docker->interactive));
    if (docker->no_healthchecks)
        set(build->body, "Healthcheck", json_pack("{s:[s]}", "Test", "NONE"));
    set_text(build->host, "CgroupnsMode", docker->cgroupns);
    set_text(build->host, "IpcMode", command->ipc_mode);
    set_text(build->host, "PidMode", command->pid_mode);
    set_text(build->host, "UTSMode", docker->uts_mode);
    set_text(build->host, "UsernsMode", docker->userns_mode);
    set_text(build->host, "Runtime", docker->runtime);
    set_list(build->host, "GroupAdd", &docker->group_add);
    set(build->host, "ReadonlyRootfs", json_boolean(docker->readonly_rootfs));
    set(build->host, "PidsLimit", json_integer(pids > 0 ? pids : -1));
    if (docker->init)
        set(build->host, "Init", json_true());
    if (command->oom_score_adj != 0)
        set(build->host, "OomScoreAdj", json_integer(command->oom_score_adj));
    if (docker->shm_size > 0)
        set(build->host, "ShmSize", json_integer(docker->shm_size));
    set_map(build->host, "Sysctls", docker->sysctl);
    set_map(build->host, "StorageOpt", docker->storage_opt);
}

json_t *create_body(const struct drivers *drivers, const struct driver_start *start,
                    const struct command *command, struct err *err)
{
    struct builder build = {.drivers = drivers,
                            .start = start,
                            .command = command,
                            .body = json_object(),
                            .host = json_object(),
                            .err = err};
    int code;

    set(build.body, "HostConfig", build.host);
    add_command(&build);
    add_environment(&build);
    add_labels(&build);
    add_processors(&build);
    add_ulimits(&build);
    add_devices(&build);
    add_logging(&build);
    add_rest(&build);
    code = add_memory(&build);
    if (code == 0)
        code = add_hard_limit(&build);
    if (code == 0)
        code = add_capabilities(&build);
    if (code == 0)
        code = add_security(&build);
    if (code == 0)
        code = add_files(&build);
    if (code == 0)
        code = add_ports(&build);
    if (code == 0)
        code = add_network(&build);
    if (code == 0)
        return build.body;
    json_decref(build.body);
    return NULL;
}
