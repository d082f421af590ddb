/*
 * The driver docker, and what a job may say of its tasks.
 *
 * Follows nomad v2.0.6 drivers/docker/config.go.  What depends on the node, and not on the job
 * alone, is looked at when a task is started: another node may allow it.
 */
#include "drivers/docker/docker.h"

#include <stddef.h>
#include <string.h>

#define KEY(name, kind, member)                                                                    \
    {                                                                                              \
        name, kind, offsetof(struct command, member), NULL                                         \
    }
#define REFUSE(name, why)                                                                          \
    {                                                                                              \
        name, CONFIG_REFUSED, 0, why                                                               \
    }

static const struct config_key keys[] = {
    KEY("image", CONFIG_TEXT, docker.image),
    KEY("command", CONFIG_TEXT, program),
    KEY("args", CONFIG_TEXTS, arguments),
    KEY("entrypoint", CONFIG_TEXTS, docker.entrypoint),
    KEY("work_dir", CONFIG_TEXT, work_dir),
    KEY("hostname", CONFIG_TEXT, docker.hostname),
    KEY("labels", CONFIG_MAP, docker.labels),
    KEY("load", CONFIG_TEXT, docker.load),
    KEY("force_pull", CONFIG_BOOL, docker.force_pull),
    KEY("image_pull_timeout", CONFIG_DURATION, docker.pull_timeout_ms),
    KEY("auth", CONFIG_BLOCK, docker.has_auth),
    KEY("auth.username", CONFIG_TEXT, docker.auth_username),
    KEY("auth.password", CONFIG_TEXT, docker.auth_password),
    KEY("auth.server_address", CONFIG_TEXT, docker.auth_server),
    REFUSE("auth.email", "registries do not ask for it any more"),
    KEY("auth_soft_fail", CONFIG_BOOL, docker.auth_soft_fail),
    KEY("ports", CONFIG_TEXTS, docker.ports),
    KEY("network_mode", CONFIG_TEXT, docker.network_mode),
    KEY("network_aliases", CONFIG_TEXTS, docker.network_aliases),
    KEY("ipv4_address", CONFIG_TEXT, docker.ipv4_address),
    KEY("ipv6_address", CONFIG_TEXT, docker.ipv6_address),
    KEY("mac_address", CONFIG_TEXT, docker.mac_address),
    KEY("dns_servers", CONFIG_TEXTS, docker.dns_servers),
    KEY("dns_search_domains", CONFIG_TEXTS, docker.dns_searches),
    KEY("dns_options", CONFIG_TEXTS, docker.dns_options),
    KEY("extra_hosts", CONFIG_TEXTS, docker.extra_hosts),
    KEY("volumes", CONFIG_TEXTS, docker.volumes),
    KEY("volume_driver", CONFIG_TEXT, docker.volume_driver),
    KEY("mount", CONFIG_BLOCKS, docker.mount),
    KEY("mounts", CONFIG_BLOCKS, docker.mounts),
    KEY("devices", CONFIG_BLOCKS, docker.devices),
    KEY("cap_add", CONFIG_TEXTS, cap_add),
    KEY("cap_drop", CONFIG_TEXTS, cap_drop),
    KEY("privileged", CONFIG_BOOL, docker.privileged),
    KEY("security_opt", CONFIG_TEXTS, docker.security_opt),
    KEY("readonly_rootfs", CONFIG_BOOL, docker.readonly_rootfs),
    KEY("group_add", CONFIG_TEXTS, docker.group_add),
    KEY("cgroupns", CONFIG_TEXT, docker.cgroupns),
    KEY("ipc_mode", CONFIG_TEXT, ipc_mode),
    KEY("pid_mode", CONFIG_TEXT, pid_mode),
    KEY("uts_mode", CONFIG_TEXT, docker.uts_mode),
    KEY("userns_mode", CONFIG_TEXT, docker.userns_mode),
    KEY("runtime", CONFIG_TEXT, docker.runtime),
    KEY("init", CONFIG_BOOL, docker.init),
    KEY("interactive", CONFIG_BOOL, docker.interactive),
    KEY("tty", CONFIG_BOOL, docker.tty),
    KEY("sysctl", CONFIG_MAP, docker.sysctl),
    KEY("ulimit", CONFIG_MAP, docker.ulimit),
    KEY("storage_opt", CONFIG_MAP, docker.storage_opt),
    KEY("shm_size", CONFIG_NUMBER, docker.shm_size),
    KEY("pids_limit", CONFIG_NUMBER, docker.pids_limit),
    KEY("cpu_hard_limit", CONFIG_BOOL, docker.cpu_hard_limit),
    KEY("cpu_cfs_period", CONFIG_NUMBER, docker.cpu_period_us),
    KEY("memory_hard_limit", CONFIG_NUMBER, docker.memory_hard_limit),
    KEY("oom_score_adj", CONFIG_NUMBER, oom_score_adj),
    KEY("healthchecks", CONFIG_BLOCK, docker.has_healthchecks),
    KEY("healthchecks.disable", CONFIG_BOOL, docker.no_healthchecks),
    KEY("logging", CONFIG_BLOCK, docker.has_logging),
    KEY("logging.type", CONFIG_TEXT, docker.logging_type),
    KEY("logging.driver", CONFIG_TEXT, docker.logging_driver),
    KEY("logging.config", CONFIG_MAP, docker.logging_config),
    REFUSE("port_map", "use \"ports\", and \"to\" of the group's ports"),
    REFUSE("cpuset_cpus", "ask for \"cores\" of the task's resources"),
    REFUSE("isolation", "it is of Windows"),
    REFUSE("advertise_ipv6_address", "services name the addresses of the node"),
    REFUSE("container_exists_attempts", "each attempt has a name of its own"),
};

/* --- blocks --- */

const char *block_text(const json_t *block, const char *name)
{
    const char *text = json_string_value(json_object_get(block, name));

    return text == NULL ? "" : text;
}

int64_t block_number(const json_t *block, const char *name)
{
    const json_t *value = json_object_get(block, name);
    int64_t number = json_integer_value(value);

    if (json_is_string(value) && !text_to_i64(json_string_value(value), &number))
        return -1;
    return number;
}

bool block_is(const json_t *block, const char *name)
{
    return json_is_true(json_object_get(block, name)) ||
           text_equal(block_text(block, name), "true");
}

const json_t *block_inner(const json_t *block, const char *name)
{
    const json_t *inner = json_object_get(block, name);

    return json_is_array(inner) ? json_array_get(inner, 0) : inner;
}

enum inner_kind { INNER_TEXT, INNER_NUMBER, INNER_BOOL, INNER_BLOCK, INNER_MAP, INNER_REFUSED };

/* What the blocks of CONFIG_BLOCKS, and those in them, may say. */
static const struct inner_key {
    const char *block, *name;
    enum inner_kind kind;
} inner_keys[] = {
    {"mount", "type", INNER_TEXT},
    {"mount", "target", INNER_TEXT},
    {"mount", "source", INNER_TEXT},
    {"mount", "readonly", INNER_BOOL},
    {"mount", "bind_options", INNER_BLOCK},
    {"mount", "tmpfs_options", INNER_BLOCK},
    {"mount", "volume_options", INNER_BLOCK},
    {"bind_options", "propagation", INNER_TEXT},
    {"tmpfs_options", "size", INNER_NUMBER},
    {"tmpfs_options", "mode", INNER_NUMBER},
    {"volume_options", "no_copy", INNER_BOOL},
    {"volume_options", "labels", INNER_MAP},
    {"volume_options", "driver_config", INNER_BLOCK},
    {"driver_config", "name", INNER_TEXT},
    {"driver_config", "options", INNER_MAP},
    {"devices", "host_path", INNER_TEXT},
    {"devices", "container_path", INNER_TEXT},
    {"devices", "cgroup_permissions", INNER_TEXT},
};

static bool is_open(const struct command *command, const json_t *value)
{
    return json_is_string(value) && config_is_open(command, json_string_value(value));
}

static bool is_map(const json_t *value)
{
    const json_t *map = json_is_array(value) ? json_array_get(value, 0) : value;
    const char *name;
    json_t *item;

    if (!json_is_object(map) || (json_is_array(value) && json_array_size(value) != 1))
        return false;
    json_object_foreach((json_t *)(uintptr_t)map, name, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return true;
}

static bool is_good(const struct command *command, enum inner_kind kind, const json_t *value)
{
    if (is_open(command, value))
        return true;
    switch (kind) {
    case INNER_TEXT:
        return json_is_string(value);
    case INNER_NUMBER: {
        int64_t number;

        return json_is_integer(value)
                   ? json_integer_value(value) >= 0
                   : json_is_string(value) && text_to_i64(json_string_value(value), &number) &&
                         number >= 0;
    }
    case INNER_BOOL:
        return json_is_boolean(value) ||
               (json_is_string(value) && (text_equal(json_string_value(value), "true") ||
                                          text_equal(json_string_value(value), "false")));
    case INNER_BLOCK:
        return json_is_object(json_is_array(value) ? json_array_get(value, 0) : value) &&
               (!json_is_array(value) || json_array_size(value) == 1);
    case INNER_MAP:
        return is_map(value);
    case INNER_REFUSED:
        break;
    }
    return false;
}

static enum inner_kind kind_of(const char *block, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(inner_keys); i++) {
        if (text_equal(inner_keys[i].block, block) && text_equal(inner_keys[i].name, name))
            return inner_keys[i].kind;
    }
    return INNER_REFUSED;
}

/* BLOCKS are in each other three deep at most, as the keys say. */
static int check_block(const struct command *command, const char *kind, json_t *block,
                       struct err *err)
{
    const char *name;
    json_t *value;
    int code = 0;

    json_object_foreach(block, name, value)
    {
        enum inner_kind inner = kind_of(kind, name);

        if (inner == INNER_REFUSED)
            return err_set(err, ERR_INVALID, "docker: \"%s\" has no key \"%.60s\"", kind, name);
        if (!is_good(command, inner, value))
            return err_set(err, ERR_INVALID, "docker: \"%s\" of \"%s\" must be %s", name, kind,
                           inner == INNER_TEXT     ? "a string"
                           : inner == INNER_NUMBER ? "a whole number, not below 0"
                           : inner == INNER_BOOL   ? "true or false"
                           : inner == INNER_BLOCK  ? "a block, once"
                                                   : "a map of strings");
        if (inner == INNER_BLOCK)
            code = check_block(command, name,
                               json_is_array(value) ? json_array_get(value, 0) : value, err);
        if (code != 0)
            return code;
    }
    return 0;
}

static int check_mount(const struct command *command, const json_t *mount, struct err *err)
{
    const char *type = block_text(mount, "type"), *target = block_text(mount, "target");
    const char *other = block_inner(mount, "tmpfs_options") != NULL ? "tmpfs" : NULL;

    if (config_is_open(command, type))
        return 0;
    if (*type == '\0')
        type = "volume";
    if (!text_equal(type, "bind") && !text_equal(type, "volume") && !text_equal(type, "tmpfs"))
        return err_set(err, ERR_INVALID,
                       "docker: a mount's \"type\" must be \"bind\", \"volume\" or \"tmpfs\", not "
                       "\"%.60s\"",
                       type);
    if (*target == '\0')
        return err_set(err, ERR_INVALID, "docker: a mount needs a \"target\"");
    if (text_equal(type, "bind") && *block_text(mount, "source") == '\0')
        return err_set(err, ERR_INVALID, "docker: a mount of type \"bind\" needs a \"source\"");
    if (block_inner(mount, "bind_options") != NULL)
        other = text_equal(type, "bind") ? other : "bind";
    if (block_inner(mount, "volume_options") != NULL)
        other = text_equal(type, "volume") ? other : "volume";
    if (other != NULL && !text_equal(other, type))
        return err_set(err, ERR_INVALID, "docker: %s_options is not of a mount of type \"%s\"",
                       other, type);
    return 0;
}

static int check_blocks(const struct command *command, const char *kind, const json_t *blocks,
                        struct err *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < json_array_size(blocks); i++) {
        json_t *block = json_array_get(blocks, i);

        code = check_block(command, kind, block, err);
        if (code == 0 && text_equal(kind, "mount"))
            code = check_mount(command, block, err);
        if (code == 0 && text_equal(kind, "devices") && *block_text(block, "host_path") == '\0')
            code = err_set(err, ERR_INVALID, "docker: \"devices\" needs a \"host_path\"");
    }
    return code;
}

/* --- the rest --- */

/* "soft[:hard]". */
static int check_ulimits(const struct command *command, struct err *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(command->docker.ulimit, name, value)
    {
        const char *text = json_string_value(value), *colon = strchr(text, ':');
        char soft[24];
        int64_t number;

        if (config_is_open(command, text))
            continue;
        (void)text_format(soft, sizeof(soft), "%.*s",
                          colon == NULL ? (int)strlen(text) : (int)(colon - text), text);
        if (!text_to_i64(soft, &number) || (colon != NULL && !text_to_i64(colon + 1, &number)))
            return err_set(err, ERR_INVALID,
                           "docker: \"ulimit\" of %.60s must be as in \"1024\" or \"1024:2048\"",
                           name);
    }
    return 0;
}

static int check_volumes(const struct command *command, struct err *err)
{
    const struct texts *volumes = &command->docker.volumes;

    for (size_t i = 0; i < volumes->count; i++) {
        const char *text = volumes->items[i], *colon = strchr(text, ':');
        size_t parts = 1;

        for (const char *at = colon; at != NULL; at = strchr(at + 1, ':'))
            parts++;
        if (parts < 2 || parts > 3 || colon == text || colon[1] == '\0')
            return err_set(err, ERR_INVALID,
                           "docker: \"volumes\" must be as in \"local/data:/data\", not \"%.80s\"",
                           text);
    }
    return 0;
}

static int check_numbers(const struct docker_config *docker, struct err *err)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"shm_size", docker->shm_size},
        {"pids_limit", docker->pids_limit},
        {"memory_hard_limit", docker->memory_hard_limit},
    };

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (numbers[i].value < 0 || numbers[i].value > (int64_t)1 << 40)
            return err_set(err, ERR_INVALID, "docker: \"%s\" must not be below 0, nor beyond 2^40",
                           numbers[i].name);
    }
    return 0;
}

static int check_processors(const struct docker_config *docker, struct err *err)
{
    int64_t period_us = docker->cpu_period_us;

    if (period_us != 0 && !docker->cpu_hard_limit)
        return err_set(err, ERR_INVALID, "docker: \"cpu_cfs_period\" is of \"cpu_hard_limit\"");
    if (period_us != 0 && (period_us < CPU_PERIOD_LEAST_US || period_us > CPU_PERIOD_MOST_US))
        return err_set(err, ERR_INVALID,
                       "docker: \"cpu_cfs_period\" must be 1000 to 1000000 microseconds");
    return 0;
}

static int check_load(const struct command *command, struct err *err)
{
    const char *load = command->docker.load;

    if (load != NULL && !config_is_open(command, load) && text_goes_up(load))
        return err_set(err, ERR_INVALID, "docker: \"load\" leads out of the task's directory");
    return 0;
}

static int check_capabilities(const char *key, const struct texts *names, struct err *err)
{
    uint64_t set;

    for (size_t i = 0; i < names->count; i++) {
        if (!driver_capability(names->items[i], &set))
            return err_set(err, ERR_INVALID,
                           "docker: %s: this machine knows no capability \"%.40s\"", key,
                           names->items[i]);
    }
    return 0;
}

/* Others would need what Nomad's client lends to its own tasks. */
static int check_network(const struct command *command, struct err *err)
{
    const struct docker_config *docker = &command->docker;

    if (docker->network_mode != NULL && text_starts_with(docker->network_mode, "container:"))
        return err_set(
            err, ERR_INVALID,
            "docker: \"network_mode\" cannot be another container's: it may be gone after "
            "a restart");
    return 0;
}

static int check_config(const struct command *command, struct err *err)
{
    const struct docker_config *docker = &command->docker;
    char repository[IMAGE_NAME_SIZE], tag[IMAGE_NAME_SIZE];
    int code = 0;

    if (docker->image == NULL || docker->image[0] == '\0')
        return err_set(err, ERR_INVALID, "docker: \"image\" is required");
    if (!config_is_open(command, docker->image) && !image_split(docker->image, repository, tag))
        return err_set(err, ERR_INVALID, "docker: \"%.100s\" is no name of an image",
                       docker->image);
    code = check_blocks(command, "mount", docker->mount, err);
    if (code == 0)
        code = check_blocks(command, "mount", docker->mounts, err);
    if (code == 0)
        code = check_blocks(command, "devices", docker->devices, err);
    if (code == 0)
        code = check_ulimits(command, err);
    if (code == 0)
        code = check_volumes(command, err);
    if (code == 0)
        code = check_numbers(docker, err);
    if (code == 0)
        code = check_processors(docker, err);
    if (code == 0)
        code = check_load(command, err);
    if (code == 0)
        code = check_capabilities("cap_add", &command->cap_add, err);
    if (code == 0)
        code = check_capabilities("cap_drop", &command->cap_drop, err);
    return code == 0 ? check_network(command, err) : code;
}

/* --- what the node has to say --- */

static int refuse(struct err *err, const char *what, const char *setting)
{
    return err_set(err, ERR_REFUSED,
                   "docker: this node does not allow %s (%s of plugin \"docker\")", what, setting);
}

static int prepare(const struct drivers *drivers, const struct driver_probed *probed,
                   struct command *command, struct err *err)
{
    const struct drivers_docker *node = &drivers->config.docker;
    const struct docker_config *docker = &command->docker;
    const struct {
        const char *name, *mode;
    } modes[] = {{"ipc_mode", command->ipc_mode},
                 {"pid_mode", command->pid_mode},
                 {"uts_mode", docker->uts_mode},
                 {"userns_mode", docker->userns_mode}};
    (void)probed;

    if (docker->privileged && !node->allow_privileged)
        return refuse(err, "\"privileged\"", "allow_privileged");
    for (size_t i = 0; i < COUNT_OF(modes) && !node->allow_privileged; i++) {
        if (modes[i].mode != NULL && modes[i].mode[0] != '\0')
            return refuse(err, modes[i].name, "allow_privileged");
    }
    if (docker->runtime != NULL && docker->runtime[0] != '\0' &&
        !text_lists(node->allowed_runtimes, docker->runtime))
        return refuse(err, "the runtime", "allow_runtimes");
    if (docker->volume_driver != NULL && docker->volume_driver[0] != '\0' && !node->volumes_enabled)
        return refuse(err, "\"volume_driver\"", "volumes");
    if (node->pids_limit > 0 && docker->pids_limit > node->pids_limit)
        return refuse(err, "so many \"pids_limit\"", "pids_limit");
    return 0;
}

const struct driver docker_driver = {
    .kind = {.name = "docker",
             .isolation = ISOLATION_IMAGE,
             .user = "",
             .mounts = true,
             .signals = true,
             .enters_network = true,
             .runs_commands = true},
    .stop_signal = "", /* what the image says */
    .keys = keys,
    .keys_count = COUNT_OF(keys),
    .validate = check_config,
    .prepare = prepare,
    .look = docker_look,
    .probe = docker_probe,
    .way = WAY_CONTAINED,
};
