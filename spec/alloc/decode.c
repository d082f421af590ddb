/*
 * One alloc's JSON, fresh or as the journal kept it, to struct alloc_spec.
 *
 * The journal's may be damaged: every field is checked for its type and range before it is used,
 * and names again for what could lead out of a directory.  One arena holds the spec and all it
 * points to.
 */
#include "fsm/fields.h"
#include "spec/alloc/decoding.h"
#include "spec/names.h"
#include "spec/template.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

void alloc_spec_free(struct alloc_spec *spec)
{
    struct holder *holder = (struct holder *)spec;

    if (holder == NULL)
        return;
    arena_free(&holder->arena);
    free(holder);
}

/* --- task --- */

/* How much memory a task may have beyond what it asks for. */
static int32_t get_memory_max(struct decoding *decoding, const json_t *resources)
{
    if (json_integer_value(json_object_get(resources, "MemoryMaxMB")) == SPEC_MEMORY_UNLIMITED)
        return SPEC_MEMORY_UNLIMITED;
    return (int32_t)decoding_u32(decoding, resources, "MemoryMaxMB");
}

static void decode_restart(struct decoding *decoding, const json_t *from, struct spec_restart *to)
{
    const char *mode = decoding_text(decoding, from, "Mode", 8);

    to->attempts = decoding_u32(decoding, from, "Attempts");
    to->interval_ms = decoding_ms(decoding, from, "Interval");
    to->delay_ms = decoding_ms(decoding, from, "Delay");
    to->mode_delay = text_equal(mode, "delay");
    if (!to->mode_delay && !text_equal(mode, "fail"))
        decoding_damaged(decoding, "Mode", "a restart mode");
}

static void decode_lifecycle(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    static const struct {
        const char *hook;
        enum spec_lifecycle lifecycle;
    } hooks[] = {{"prestart", LIFECYCLE_PRESTART},
                 {"poststart", LIFECYCLE_POSTSTART},
                 {"poststop", LIFECYCLE_POSTSTOP}};

    task->lifecycle = LIFECYCLE_MAIN;
    if (json_object_get(from, "Lifecycle") == NULL)
        return;
    const json_t *block = decoding_object(decoding, from, "Lifecycle");
    const char *hook = decoding_text(decoding, block, "Hook", 16);
    for (size_t i = 0; i < COUNT_OF(hooks); i++) {
        if (text_equal(hook, hooks[i].hook))
            task->lifecycle = hooks[i].lifecycle;
    }
    if (task->lifecycle == LIFECYCLE_MAIN)
        decoding_damaged(decoding, "Hook", "a lifecycle hook");
    task->sidecar = decoding_bool(decoding, block, "Sidecar");
}

static const char *decode_config(struct decoding *decoding, const json_t *from)
{
    const json_t *config = json_object_get(from, "Config");

    if (config == NULL)
        return "{}";
    if (!json_is_object(config)) {
        decoding_damaged(decoding, "Config", "an object");
        return "{}";
    }
    char *text = json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
    check(text != NULL);
    const char *kept = arena_text(&decoding->holder->arena, text);
    free(text);
    return kept;
}

static void decode_mounts(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    const json_t *list = json_object_get(from, "VolumeMounts"), *mount;
    size_t count = json_array_size(list), i;

    if (count > SPEC_MOUNTS_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "VolumeMounts", "a list of mounts");
        return;
    }
    if (count == 0)
        return;
    task->volume_mounts = arena_new(&decoding->holder->arena, count * sizeof(*task->volume_mounts));
    task->volume_mounts_count = count;
    json_array_foreach(list, i, mount)
    {
        struct spec_volume_mount *to = &task->volume_mounts[i];

        to->volume = decoding_name(decoding, mount, "Volume", spec_group_name_fault);
        to->destination = decoding_text(decoding, mount, "Destination", SPEC_PLACE_SIZE);
        to->read_only = decoding_bool(decoding, mount, "ReadOnly");
        if (!spec_propagation(decoding_text(decoding, mount, "PropagationMode", 16),
                              &to->propagation))
            decoding_damaged(decoding, "PropagationMode", "a mode of propagation");
    }
}

static void decode_artifacts(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    const json_t *list = json_object_get(from, "Artifacts"), *artifact;
    size_t count = json_array_size(list), i;

    if (count > SPEC_ARTIFACTS_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Artifacts", "a list of artifacts");
        return;
    }
    if (count == 0)
        return;
    task->artifacts = arena_new(&decoding->holder->arena, count * sizeof(*task->artifacts));
    task->artifacts_count = count;
    json_array_foreach(list, i, artifact)
    {
        struct spec_artifact *to = &task->artifacts[i];
        const json_t *options[] = {json_object_get(artifact, "GetterOptions")};
        const json_t *headers[] = {json_object_get(artifact, "GetterHeaders")};

        to->source = decoding_text(decoding, artifact, "GetterSource", SPEC_SOURCE_URL_SIZE);
        to->destination = decoding_text(decoding, artifact, "RelativeDest", SPEC_PLACE_SIZE);
        if (!spec_artifact_mode(decoding_text(decoding, artifact, "GetterMode", 8), &to->mode))
            decoding_damaged(decoding, "GetterMode", "a mode of an artifact");
        to->insecure = decoding_bool(decoding, artifact, "GetterInsecure");
        to->options = decoding_pairs(decoding, options, 1, "GetterOptions");
        to->headers = decoding_pairs(decoding, headers, 1, "GetterHeaders");
    }
}

static void decode_actions(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    const json_t *list = json_object_get(from, "Actions"), *action;
    size_t count = json_array_size(list), i;

    if (count > SPEC_ACTIONS_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Actions", "a list of actions");
        return;
    }
    if (count == 0)
        return;
    task->actions = arena_new(&decoding->holder->arena, count * sizeof(*task->actions));
    task->actions_count = count;
    json_array_foreach(list, i, action)
    {
        struct spec_action *to = &task->actions[i];

        to->name = decoding_text(decoding, action, "Name", SPEC_ACTION_NAME_SIZE);
        to->command = decoding_text(decoding, action, "Command", SPEC_PLACE_SIZE);
        to->arguments = decoding_texts(decoding, action, "Args");
        if (to->arguments.count >= SPEC_SCRIPT_ARGUMENTS_MAX)
            decoding_damaged(decoding, "Args", "the arguments of an action");
    }
}

/* An id of a user or a group; missing is -1. */
static int64_t get_id(struct decoding *decoding, const json_t *from, const char *field)
{
    const json_t *value = json_object_get(from, field);

    if (value == NULL || json_is_null(value) || json_integer_value(value) == -1)
        return -1;
    return (int64_t)decoding_whole(decoding, from, field, INT32_MAX);
}

static void decode_script(struct decoding *decoding, const json_t *template, struct spec_script *to)
{
    const json_t *script = json_object_get(template, "ChangeScript");

    to->command = decoding_text(decoding, script, "Command", SPEC_PLACE_SIZE);
    to->arguments = decoding_texts(decoding, script, "Args");
    to->timeout_ms = decoding_ms(decoding, script, "Timeout");
    to->fails_task = decoding_bool(decoding, script, "FailOnError");
    if (*to->command == '\0' || to->arguments.count >= SPEC_SCRIPT_ARGUMENTS_MAX)
        decoding_damaged(decoding, "ChangeScript", "a command");
}

static void decode_change(struct decoding *decoding, const json_t *template,
                          struct spec_template *to)
{
    const json_t *wait = json_object_get(template, "Wait");

    to->once = decoding_bool(decoding, template, "Once");
    to->signal = decoding_text(decoding, template, "ChangeSignal", 32);
    to->splay_ms = decoding_ms(decoding, template, "Splay");
    if (!spec_change(decoding_text(decoding, template, "ChangeMode", 16), &to->change))
        decoding_damaged(decoding, "ChangeMode", "a mode of a change");
    if (to->change == SPEC_CHANGE_SCRIPT)
        decode_script(decoding, template, &to->script);
    if (json_is_object(wait)) {
        to->wait_min_ms = decoding_ms(decoding, wait, "Min");
        to->wait_max_ms = decoding_ms(decoding, wait, "Max");
    }
}

static void decode_templates(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    const json_t *list = json_object_get(from, "Templates"), *template;
    size_t count = json_array_size(list), scripts = 0, i;

    if (count > SPEC_TEMPLATES_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Templates", "a list of templates");
        return;
    }
    if (count == 0)
        return;
    task->templates = arena_new(&decoding->holder->arena, count * sizeof(*task->templates));
    task->templates_count = count;
    json_array_foreach(list, i, template)
    {
        struct spec_template *to = &task->templates[i];

        to->source = decoding_text(decoding, template, "SourcePath", SPEC_PLACE_SIZE);
        to->data = decoding_text(decoding, template, "EmbeddedTmpl", TEMPLATE_BYTES_MAX + 1);
        to->destination = decoding_text(decoding, template, "DestPath", SPEC_PLACE_SIZE);
        to->left = decoding_text(decoding, template, "LeftDelim", SPEC_NAME_SIZE);
        to->right = decoding_text(decoding, template, "RightDelim", SPEC_NAME_SIZE);
        if (!spec_mode(decoding_text(decoding, template, "Perms", 8), &to->mode))
            decoding_damaged(decoding, "Perms", "a mode of a file");
        to->uid = get_id(decoding, template, "Uid");
        to->gid = get_id(decoding, template, "Gid");
        to->env = decoding_bool(decoding, template, "Envvars");
        to->strict = decoding_bool(decoding, template, "ErrMissingKey");
        decode_change(decoding, template, to);
        if (to->change == SPEC_CHANGE_SCRIPT && scripts == SPEC_SCRIPTS_MAX)
            decoding_damaged(decoding, "Templates", "a list of so many scripts");
        else if (to->change == SPEC_CHANGE_SCRIPT)
            to->script.number = (uint8_t)scripts++;
    }
}

static void decode_csi_plugin(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    char place[SPEC_PLACE_SIZE];

    if (json_object_get(from, "CSIPluginConfig") == NULL)
        return;
    const json_t *block = decoding_object(decoding, from, "CSIPluginConfig");
    struct spec_csi_plugin *to = arena_new(&decoding->holder->arena, sizeof(*to));
    to->id = decoding_name(decoding, block, "ID", spec_plugin_fault);
    if (!spec_plugin_type(decoding_text(decoding, block, "Type", 16), &to->type))
        decoding_damaged(decoding, "Type", "a type of plugins");
    to->mount_dir = decoding_text(decoding, block, "MountDir", SPEC_PLACE_SIZE);
    to->stage_publish_base_dir =
        decoding_text(decoding, block, "StagePublishBaseDir", SPEC_PLACE_SIZE);
    if (spec_place(to->mount_dir, place) != NULL ||
        spec_place(to->stage_publish_base_dir, place) != NULL)
        decoding_damaged(decoding, "MountDir", "a directory");
    to->health_timeout_ms = decoding_ms(decoding, block, "HealthTimeout");
    task->csi_plugin = to;
}

static void decode_payload_file(struct decoding *decoding, const json_t *from,
                                struct task_spec *task)
{
    const json_t *block = json_object_get(from, "DispatchPayload");

    task->payload_file = decoding_text(decoding, block, "File", SPEC_PLACE_SIZE);
    if (*task->payload_file != '\0' && spec_payload_fault(task->payload_file) != NULL)
        decoding_damaged(decoding, "DispatchPayload", "a file of the task");
}

static void decode_task(struct decoding *decoding, const json_t *from, const json_t *job_meta,
                        const json_t *group_meta, struct task_spec *task)
{
    const json_t *metas[] = {job_meta, group_meta, json_object_get(from, "Meta")};
    const json_t *envs[] = {json_object_get(from, "Env")};
    const json_t *resources = decoding_object(decoding, from, "Resources");
    const json_t *logs = decoding_object(decoding, from, "LogConfig");

    task->name = decoding_name(decoding, from, "Name", spec_task_name_fault);
    task->driver = decoding_text(decoding, from, "Driver", SPEC_DRIVER_SIZE);
    if (spec_group_name_fault(task->driver) != NULL)
        decoding_damaged(decoding, "Driver", "a driver");
    task->user = decoding_text(decoding, from, "User", SPEC_NAME_SIZE);
    task->config_json = decode_config(decoding, from);
    task->env = decoding_pairs(decoding, envs, COUNT_OF(envs), "Env");
    task->meta = decoding_pairs(decoding, metas, COUNT_OF(metas), "Meta");
    decode_restart(decoding, decoding_object(decoding, from, "RestartPolicy"), &task->restart);
    task->resources = (struct spec_resources){
        .cpu_mhz = decoding_u32(decoding, resources, "CPU"),
        .cores = decoding_u32(decoding, resources, "Cores"),
        .memory_mb = decoding_u32(decoding, resources, "MemoryMB"),
        .memory_max_mb = get_memory_max(decoding, resources),
    };
    task->logs = (struct spec_logs){
        .max_files = decoding_u32(decoding, logs, "MaxFiles"),
        .max_file_size_mb = decoding_u32(decoding, logs, "MaxFileSizeMB"),
        .disabled = decoding_bool(decoding, logs, "Disabled"),
    };
    if (task->logs.max_files == 0 || task->logs.max_file_size_mb == 0)
        decoding_damaged(decoding, "LogConfig", "a limit of logs");
    decode_mounts(decoding, from, task);
    task->kill_signal = decoding_text(decoding, from, "KillSignal", 32);
    if (*task->kill_signal != '\0' && spec_group_name_fault(task->kill_signal) != NULL)
        decoding_damaged(decoding, "KillSignal", "a signal");
    task->kill_timeout_ms = decoding_ms(decoding, from, "KillTimeout");
    task->shutdown_delay_ms = decoding_ms(decoding, from, "ShutdownDelay");
    task->leader = decoding_bool(decoding, from, "Leader");
    decode_lifecycle(decoding, from, task);
    decode_csi_plugin(decoding, from, task);
    decode_artifacts(decoding, from, task);
    decode_actions(decoding, from, task);
    decode_templates(decoding, from, task);
    decode_payload_file(decoding, from, task);
    decode_kind(decoding, from, task);
}

/* --- ports --- */

/* What the alloc was given for PORT, or NULL; RET_IP is the text of its address, or NULL. */
static const json_t *find_given(const json_t *allocated, const struct spec_port *port,
                                const json_t **ret_ip)
{
    const json_t *task = json_object_get(json_object_get(allocated, "Tasks"), port->task);
    const json_t *network = json_array_get(json_object_get(task, "Networks"), 0);
    const json_t *list =
        *port->task == '\0'
            ? json_object_get(json_object_get(allocated, "Shared"), "Ports")
            : json_object_get(network, port->is_static ? "ReservedPorts" : "DynamicPorts");
    const json_t *given;
    size_t i;

    json_array_foreach(list, i, given)
    {
        const char *label = json_string_value(json_object_get(given, "Label"));

        if (label == NULL || !text_equal(label, port->label))
            continue;
        *ret_ip =
            *port->task == '\0' ? json_object_get(given, "HostIP") : json_object_get(network, "IP");
        return given;
    }
    return NULL;
}

static bool is_address(const char *text)
{
    struct in6_addr address;

    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

/* PORT as it was given; nothing that was asked for may be missing. */
static void decode_port(struct decoding *decoding, const json_t *allocated, struct spec_port *port)
{
    struct arena *arena = &decoding->holder->arena;
    const json_t *ip = NULL, *given = find_given(allocated, port, &ip);
    json_int_t value = json_integer_value(json_object_get(given, "Value"));
    json_int_t to = json_integer_value(json_object_get(given, "To"));

    if (value < 1 || value > UINT16_MAX || (port->is_static && value != port->value) || to < -1 ||
        to > UINT16_MAX || !json_is_string(ip) || !is_address(json_string_value(ip))) {
        decoding_damaged(decoding, "AllocatedResources", "what the group asks for of ports");
        return;
    }
    *port = (struct spec_port){
        .label = arena_text(arena, port->label),
        .task = arena_text(arena, port->task),
        .host_network = arena_text(arena, port->host_network),
        .host_ip = arena_text(arena, json_string_value(ip)),
        .value = (uint16_t)value,
        .to = (int32_t)to,
        .is_static = port->is_static,
    };
}

/* What of a network is not that of the host. */
static void decode_own_network(struct decoding *decoding, const json_t *network,
                               struct alloc_spec *spec)
{
    const json_t *dns = json_object_get(network, "DNS");
    const json_t *args = json_object_get(json_object_get(network, "CNI"), "Args");

    if (spec_network_mode_fault(spec->network_mode) != NULL)
        decoding_damaged(decoding, "Mode", "a mode of networks");
    spec->hostname = decoding_text(decoding, network, "Hostname", SPEC_HOSTNAME_TEXT_SIZE);
    spec->has_dns = json_is_object(dns);
    spec->dns_servers = decoding_texts(decoding, dns, "Servers");
    spec->dns_searches = decoding_texts(decoding, dns, "Searches");
    spec->dns_options = decoding_texts(decoding, dns, "Options");
    spec->cni_args = decoding_pairs(decoding, (const json_t *[]){args}, 1, "Args");
}

static void decode_ports(struct decoding *decoding, const json_t *alloc, const json_t *group,
                         struct alloc_spec *spec)
{
    const json_t *allocated = json_object_get(alloc, "AllocatedResources");
    const json_t *networks = json_object_get(group, "Networks");
    const json_t *network = json_array_get(networks, 0);
    struct spec_port ports[SPEC_PORTS_MAX];
    size_t count;

    if (networks != NULL && !json_is_object(network))
        decoding_damaged(decoding, "Networks", "a list of networks");
    spec->has_network = network != NULL;
    spec->network_mode = decoding_text(decoding, network, "Mode", SPEC_NAME_SIZE);
    decode_own_network(decoding, network, spec);
    if (!jobspec_ports(group, ports, &count)) {
        decoding_damaged(decoding, "Networks", "a list of networks with their ports");
        return;
    }
    for (size_t i = 0; i < count && decoding->code == 0; i++) {
        decode_port(decoding, allocated, &ports[i]);
        for (size_t j = 0; j < i && decoding->code == 0; j++) {
            if (ports[i].value == ports[j].value && text_equal(ports[i].host_ip, ports[j].host_ip))
                decoding_damaged(decoding, "AllocatedResources",
                                 "ports of which none is given twice");
        }
    }
    if (decoding->code != 0 || count == 0)
        return;
    spec->ports.items = arena_new(&decoding->holder->arena, count * sizeof(*ports));
    spec->ports.count = count;
    memcpy(spec->ports.items, ports, count * sizeof(*ports));
}

/* --- cores --- */

/* None is missing, and none is given twice. */
static void decode_cores(struct decoding *decoding, const json_t *alloc, struct alloc_spec *spec)
{
    const json_t *allocated = json_object_get(alloc, "AllocatedResources");
    const json_t *tasks = json_object_get(allocated, "Tasks");
    bool given[NODE_CORES_MAX] = {false};

    for (size_t t = 0; t < spec->tasks_count; t++) {
        struct task_spec *task = &spec->tasks[t];
        const json_t *cpu = json_object_get(json_object_get(tasks, task->name), "Cpu"), *id;
        const json_t *list = json_object_get(cpu, "ReservedCores");
        size_t count = json_array_size(list), i;
        uint16_t *ids;

        if (count != task->resources.cores || count > NODE_CORES_MAX) {
            decoding_damaged(decoding, "ReservedCores", "what the task asks for of cores");
            return;
        }
        if (count == 0)
            continue;
        ids = arena_new(&decoding->holder->arena, count * sizeof(*ids));
        task->resources.core_ids = ids;
        task->resources.cpu_mhz = decoding_u32(decoding, cpu, "CpuShares");
        json_array_foreach(list, i, id)
        {
            json_int_t core = json_integer_value(id);
            bool sound = json_is_integer(id) && core >= 0 && core < NODE_CORES_MAX;

            if (!sound || given[core] || (i > 0 && core < ids[i - 1])) {
                decoding_damaged(decoding, "ReservedCores", "a list of cores in order");
                return;
            }
            given[core] = true;
            ids[i] = (uint16_t)core;
        }
    }
}

/* --- devices --- */

/* Each request has been given something. */
static void decode_devices(struct decoding *decoding, const json_t *alloc, const json_t *group,
                           struct alloc_spec *spec)
{
    const json_t *tasks = json_object_get(json_object_get(alloc, "AllocatedResources"), "Tasks");

    for (size_t t = 0; t < spec->tasks_count; t++) {
        const json_t *asked = json_object_get(
            json_object_get(json_array_get(json_object_get(group, "Tasks"), t), "Resources"),
            "Devices");
        const json_t *list =
            json_object_get(json_object_get(tasks, spec->tasks[t].name), "Devices");
        char *text = jobspec_devices_text(list);

        if (text == NULL || json_array_size(asked) != json_array_size(list))
            decoding_damaged(decoding, "Devices", "what the task asks for of devices");
        else if (*text != '\0')
            spec->tasks[t].devices_json = arena_text(&decoding->holder->arena, text);
        free(text);
    }
}

/* --- volumes --- */

/* Which plugin a volume of type csi is of was found out when it was placed; null is written where a
 * server placed it, and has not said it yet. */
static const char *decode_plugin(struct decoding *decoding, const json_t *plugins, const char *name)
{
    const char *plugin;

    if (json_is_null(json_object_get(plugins, name)))
        return "";
    plugin = decoding_text(decoding, plugins, name, PLUGIN_NAME_SIZE);
    if (*plugin == '\0' || strchr(plugin, '/') != NULL)
        decoding_damaged(decoding, "VolumePlugins", "a plugin for each volume of type csi");
    return plugin;
}

/* What only a volume of type csi has. */
static void decode_claim(struct decoding *decoding, const json_t *group, const json_t *plugins,
                         struct spec_volume *volume)
{
    const json_t *block = json_object_get(json_object_get(group, "Volumes"), volume->name);
    const json_t *options = json_object_get(block, "MountOptions");

    volume->fs_type = decoding_text(decoding, options, "FSType", SPEC_NAME_SIZE);
    volume->mount_flags = decoding_texts(decoding, options, "MountFlags");
    volume->plugin = decode_plugin(decoding, plugins, volume->name);
}

static void decode_volumes(struct decoding *decoding, const json_t *alloc, const json_t *group,
                           struct alloc_spec *spec)
{
    const json_t *plugins = json_object_get(alloc, "VolumePlugins");
    struct arena *arena = &decoding->holder->arena;
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    size_t count;

    if (!jobspec_volumes(group, spec->index, volumes, sources, &count)) {
        decoding_damaged(decoding, "Volumes", "volumes by their names");
        return;
    }
    if (count == 0)
        return;
    spec->volumes = arena_new(arena, count * sizeof(*volumes));
    spec->volumes_count = count;
    for (size_t i = 0; i < count; i++) {
        struct spec_volume *volume = &spec->volumes[i];

        *volume = volumes[i];
        volume->name = arena_text(arena, volumes[i].name);
        volume->source = arena_text(arena, volumes[i].source);
        if (volume->type == VOLUME_CSI)
            decode_claim(decoding, group, plugins, volume);
    }
}

/* --- alloc --- */

static void decode_payload(struct decoding *decoding, const json_t *job, struct alloc_spec *spec)
{
    size_t length;
    uint8_t *bytes;

    spec->payload = decoding_text(decoding, job, "Payload", 2 * SPEC_PAYLOAD_BYTES_MAX);
    if (!jobspec_payload(spec->payload, &bytes, &length))
        decoding_damaged(decoding, "Payload", "a payload");
    else
        free(bytes);
}

static void decode_job(struct decoding *decoding, const json_t *job, struct alloc_spec *spec)
{
    const char *type = decoding_text(decoding, job, "Type", 16);
    enum spec_job_type known;

    spec->job_id = decoding_name(decoding, job, "ID", spec_job_id_fault);
    spec->job_name = decoding_text(decoding, job, "Name", SPEC_NAME_SIZE);
    spec->job_parent_id = decoding_text(decoding, job, "ParentID", SPEC_NAME_SIZE);
    spec->job_type = type;
    if (!spec_job_type(type, &known))
        decoding_damaged(decoding, "Type", "a job's type");
    spec->job_version = decoding_whole(decoding, job, "Version", NUMBER_MAX);
    spec->namespace = decoding_text(decoding, job, "Namespace", SPEC_NAMESPACE_SIZE);
    if (*spec->namespace != '\0' && spec_group_name_fault(spec->namespace) != NULL)
        decoding_damaged(decoding, "Namespace", "a namespace");
    spec->region = decoding_text(decoding, job, "Region", SPEC_NAMESPACE_SIZE);
    decode_payload(decoding, job, spec);
}

static void decode_group(struct decoding *decoding, const json_t *group, const json_t *job_meta,
                         struct alloc_spec *spec)
{
    const json_t *tasks = json_object_get(group, "Tasks"), *disk, *task;
    const json_t *metas[] = {job_meta, json_object_get(group, "Meta")};
    size_t count = json_array_size(tasks), i;

    spec->group = decoding_name(decoding, group, "Name", spec_group_name_fault);
    spec->group_shutdown_delay_ms = decoding_ms(decoding, group, "ShutdownDelay");
    spec->max_run_ms = decoding_ms(decoding, group, "MaxRunDuration");
    spec->meta = decoding_pairs(decoding, metas, COUNT_OF(metas), "Meta");
    disk = decoding_object(decoding, group, "EphemeralDisk");
    spec->ephemeral_disk_mb = decoding_u32(decoding, disk, "SizeMB");
    spec->disk_sticky = decoding_bool(decoding, disk, "Sticky");
    spec->disk_migrate = decoding_bool(decoding, disk, "Migrate");
    if (count == 0 || count > SPEC_TASKS_MAX) {
        decoding_damaged(decoding, "Tasks", "a list of tasks");
        return;
    }
    spec->tasks = arena_new(&decoding->holder->arena, count * sizeof(*spec->tasks));
    spec->tasks_count = count;
    json_array_foreach(tasks, i, task)
    {
        decode_task(decoding, task, job_meta, metas[1], &spec->tasks[i]);
        for (size_t j = 0; j < i; j++) {
            if (text_equal(spec->tasks[i].name, spec->tasks[j].name))
                decoding_damaged(decoding, "Tasks", "a list of tasks with names of their own");
        }
    }
}

static void decode_history(struct decoding *decoding, const json_t *alloc, struct alloc_spec *spec)
{
    const json_t *tracker = json_object_get(alloc, "RescheduleTracker"), *event;
    const json_t *events = json_object_get(tracker, "Events");
    size_t count = json_array_size(events), i;

    spec->previous_id = decoding_text(decoding, alloc, "PreviousAllocation", UUID_TEXT_SIZE);
    if (*spec->previous_id != '\0' && !uuid_is_valid(spec->previous_id))
        decoding_damaged(decoding, "PreviousAllocation", "an id");
    spec->preempted = decoding_texts(decoding, alloc, "PreemptedAllocations");
    for (i = 0; i < spec->preempted.count; i++) {
        if (!uuid_is_valid(spec->preempted.items[i]))
            decoding_damaged(decoding, "PreemptedAllocations", "a list of ids");
    }
    spec->deployment_id = decoding_text(decoding, alloc, "DeploymentID", UUID_TEXT_SIZE);
    if (*spec->deployment_id != '\0' && !uuid_is_valid(spec->deployment_id))
        decoding_damaged(decoding, "DeploymentID", "an id");
    spec->canary = decoding_bool(decoding, alloc, "Canary");
    spec->min_healthy_ms = decoding_ms(decoding, alloc, "MinHealthyTime");
    spec->healthy_deadline_ms = decoding_ms(decoding, alloc, "HealthyDeadline");
    spec->manual_health = decoding_bool(decoding, alloc, "ManualHealth");
    spec->task_health = decoding_bool(decoding, alloc, "TaskHealth");
    if (count > SPEC_RESCHEDULED_MAX) {
        decoding_damaged(decoding, "RescheduleTracker", "a list of bounded length");
        return;
    }
    if (count == 0)
        return;
    spec->rescheduled = arena_new(&decoding->holder->arena, count * sizeof(*spec->rescheduled));
    spec->rescheduled_count = count;
    json_array_foreach(events, i, event)
    {
        struct spec_rescheduled *one = &spec->rescheduled[i];
        const json_t *time = json_object_get(event, "RescheduleTime");

        if (!json_is_integer(time))
            decoding_damaged(decoding, "RescheduleTime", "a time");
        one->unix_ns = json_integer_value(time);
        one->delay_ns = decoding_whole(decoding, event, "Delay", INT64_MAX);
        one->alloc_id = decoding_text(decoding, event, "PrevAllocID", UUID_TEXT_SIZE);
    }
}

static void decode_alloc(struct decoding *decoding, const json_t *alloc, struct alloc_spec *spec)
{
    const json_t *job = decoding_object(decoding, alloc, "Job");
    const json_t *group = decoding_object(decoding, alloc, "Group");
    const json_t *created = json_object_get(alloc, "CreateTime");
    char name[SPEC_ALLOC_NAME_SIZE];

    if (json_integer_value(json_object_get(alloc, "Schema")) != 1)
        decoding_damaged(decoding, "Schema", "one that this version reads");
    spec->id = decoding_text(decoding, alloc, "ID", UUID_TEXT_SIZE);
    spec->eval_id = decoding_text(decoding, alloc, "EvalID", UUID_TEXT_SIZE);
    if (!uuid_is_valid(spec->id) || (*spec->eval_id != '\0' && !uuid_is_valid(spec->eval_id)))
        decoding_damaged(decoding, "ID", "an id");
    spec->index = decoding_u32(decoding, alloc, "Index");
    spec->datacenter = decoding_text(decoding, alloc, "Datacenter", SPEC_NAMESPACE_SIZE);
    if (!json_is_integer(created))
        decoding_damaged(decoding, "CreateTime", "a time");
    spec->create_time_unix_ns = json_integer_value(created);
    spec->create_index = decoding_whole(decoding, alloc, "CreateIndex", NUMBER_MAX);
    spec->modify_index = decoding_whole(decoding, alloc, "ModifyIndex", NUMBER_MAX);
    spec->stop_after_ms = decoding_whole(decoding, alloc, "StopAfterLost", INT64_MAX) / 1000000;
    decode_history(decoding, alloc, spec);
    decode_job(decoding, job, spec);
    decode_group(decoding, group, json_object_get(job, "Meta"), spec);
    decode_identities(decoding, alloc, group, spec);
    decode_ports(decoding, alloc, group, spec);
    decode_volumes(decoding, alloc, group, spec);
    decode_services(decoding, group, spec);
    decode_cores(decoding, alloc, spec);
    decode_devices(decoding, alloc, group, spec);
    spec_alloc_name(name, spec->job_id, spec->group, spec->index);
    spec->name = arena_text(&decoding->holder->arena, name);
}

int jobspec_decode_value(const json_t *alloc, struct alloc_spec **ret_spec, struct err *err)
{
    struct holder *holder = calloc(1, sizeof(*holder));
    struct decoding decoding = {.holder = holder, .err = err};

    check(holder != NULL);
    decode_alloc(&decoding, alloc, &holder->spec);
    if (decoding.code != 0) {
        alloc_spec_free(&holder->spec);
        return decoding.code;
    }
    *ret_spec = &holder->spec;
    return 0;
}

int jobspec_decode_alloc(const char *text, size_t length, struct alloc_spec **ret_spec,
                         struct err *err)
{
    json_error_t error;

    if (length > JOBSPEC_ALLOC_BYTES_MAX)
        return err_set(err, ERR_CORRUPT, "specification of an alloc has %zu bytes", length);
    json_t *alloc = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (alloc == NULL)
        return err_set(err, ERR_CORRUPT, "specification of an alloc: %s at byte %d", error.text,
                       error.position);
    int code = jobspec_decode_value(alloc, ret_spec, err);
    json_decref(alloc);
    return code;
}
