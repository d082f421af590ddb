#include "agent/settings.h"

#include "agent/parts.h"
#include "io/host.h"

#include <string.h>

enum { PULL_REPORT_MS = 2 * 60 * 1000 }; /* between two events of a pull */

static struct drivers_docker docker_of(const struct parts *parts)
{
    const struct config *config = parts->config;

    return (struct drivers_docker){
        .socket = config->docker_endpoint + strlen("unix://"),
        .auth_config = config->docker_auth_config,
        .auth_helper = config->docker_auth_helper,
        .allow_privileged = config->docker_privileged,
        .volumes_enabled = config->docker_volumes,
        .logs_disabled = config->docker_no_logs,
        .allowed_capabilities = config->docker_allow_caps,
        .allowed_runtimes = config->docker_runtimes,
        .pids_limit = config->docker_pids_limit,
        .pull_timeout_ms = config->docker_pull_timeout_ms,
        .pull_activity_timeout_ms = config->docker_pull_activity_timeout_ms,
        .usable_mhz = parts->node.room.cpu_mhz,
        .cores = parts->node.facts.cpu_cores,
        .pull_report_ms = PULL_REPORT_MS,
        .collects_images = config->docker_collects_images,
        .image_delay_ms = config->docker_image_delay_ms,
        .strays = {.are_left = !config->docker_dangling_removed,
                   .are_only_said = config->docker_dangling_said,
                   .period_ms = config->docker_dangling_period_ms,
                   .grace_ms = config->docker_dangling_grace_ms},
    };
}

struct drivers_config settings_of_drivers(const struct parts *parts)
{
    const struct config *config = parts->config;

    return (struct drivers_config){
        .loop = parts->loop,
        .state_dir = config->state_dir,
        .node_mark = parts->node.mark,
        .cgroup_parent = config->cgroup_parent,
        .shim_path = config->shim_path,
        .allowlist = config->driver_allowlist,
        .denylist = config->driver_denylist,
        .raw_exec_enabled = config->raw_exec_enabled,
        .cgroup_mode = cgroup_mode(),
        .raw_exec_no_cgroups = config->raw_exec_no_cgroups,
        .raw_exec_denied = {config->raw_exec_denied_uids, config->raw_exec_denied_gids},
        .raw_exec_denied_env = config->raw_exec_denied_env,
        .exec = {.denied = {config->exec_denied_uids, config->exec_denied_gids},
                 .disabled = !config->exec_enabled,
                 .allowed_capabilities = config->exec_allow_caps,
                 .shares_pids = config->exec_host_pids,
                 .shares_ipc = config->exec_host_ipc,
                 .root = config->chroot_env},
        .java = {.disabled = !config->java_enabled,
                 .allowed_capabilities = config->java_allow_caps,
                 .shares_pids = config->java_host_pids,
                 .shares_ipc = config->java_host_ipc,
                 .root = config->chroot_env},
        .mock = {.enabled = config->mock_enabled,
                 .shuts_down = config->mock_shuts_down,
                 .shutdown_after_ms = config->mock_shutdown_after_ms},
        .docker = docker_of(parts),
        .plugins = parts->programs,
        .node_name = parts->node.known.name,
        .node_id = parts->node.known.id,
        .node_mhz = parts->node.facts.cpu_mhz * parts->node.facts.cpu_cores,
    };
}

struct hooks_network settings_of_networks(const struct parts *parts, const char *state_dir)
{
    const struct config *config = parts->config;

    return (struct hooks_network){
        .state_dir = state_dir,
        .run_dir = "/run/netns",
        .mark = parts->node.mark,
        .cni_path = config->cni_path,
        .cni_config_dir = config->cni_config_dir,
        .bridge_name = config->bridge_name,
        .bridge_subnet = config->bridge_subnet,
        .bridge_subnet_ipv6 = config->bridge_subnet_ipv6,
        .bridge_hairpin = config->bridge_hairpin,
        .maps_host_ip = !config->bind_wildcard || config->host_networks_count > 0,
    };
}

struct hooks_fetch settings_of_artifacts(const struct config *config)
{
    return (struct hooks_fetch){
        .program = config->fetch_path,
        .variables = config->artifact_variables,
        .timeout_ms = config->artifact_timeout_ms,
        .bytes_max = config->artifact_bytes_max,
        .unpacked_bytes_max = config->artifact_unpacked_max,
        .entries_max = config->artifact_entries_max,
    };
}
