/*
 * One configuration file.
 *
 * One table says which keys there are, where they stand and where their values go; HCL and JSON
 * are walked by the same rules.  Nothing is ignored: a key that Nomad knows and this release does
 * not is refused by name, any other with its place and what was probably meant.
 */
#include "agent/config/read.h"

#include "agent/config/pairs.h"
#include "base/list.h"
#include "spec/names.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20, PAIRS_MAX = 256 };

/* --- what there is --- */

enum section {
    IN_ROOT,
    IN_ACL,
    IN_ADDRESSES,
    IN_UNIX_SOCKETS,
    IN_TLS,
    IN_PORTS,
    IN_SERVER,
    IN_CLIENT,
    IN_META,
    IN_CHROOT_ENV,
    IN_OPTIONS,
    IN_RESERVED,
    IN_HOST_NETWORKS, /* each by its name */
    IN_HOST_NETWORK,
    IN_HOST_VOLUMES, /* each by its name */
    IN_HOST_VOLUME,
    IN_CSI_PLUGINS, /* each by its id */
    IN_CSI_PLUGIN,
    IN_ARTIFACT,
    IN_SERVER_JOIN,
    IN_PLUGIN,
    IN_RAW_EXEC,
    IN_RAW_EXEC_CONFIG,
    IN_EXEC,
    IN_EXEC_CONFIG,
    IN_JAVA,
    IN_JAVA_CONFIG,
    IN_MOCK,
    IN_MOCK_CONFIG,
    IN_DOCKER,
    IN_DOCKER_CONFIG,
    IN_DOCKER_AUTH,
    IN_DOCKER_GC,
    IN_DOCKER_DANGLING,
    IN_DOCKER_VOLUMES,
    IN_TELEMETRY,
    IN_CONSUL,
    SECTION_COUNT,
};

static const char *refuse_server(const json_t *value)
{
    return json_is_true(value)
               ? "cairn is no server: it joins them (client.servers), or is its own "
                 "control plane. Remove the server block"
               : NULL;
}

static const char *require_client(const json_t *value)
{
    return json_is_true(value) ? NULL : "an agent that is no client would run nothing: remove it";
}

static const char *require_no_isolation(const json_t *value)
{
    return json_is_string(value) && text_equal(json_string_value(value), "none")
               ? NULL
               : "fs_isolation must be \"none\": a task of mock_driver has no files to isolate";
}

/* What has only one value here may be said: files are often made for nodes of both. */
static const char *require_true(const json_t *value)
{
    return json_is_true(value) ? NULL : "only true is available in this release";
}

static const char *require_false(const json_t *value)
{
    return json_is_false(value) ? NULL : "only false is available in this release";
}

static const char *require_socket(const json_t *value)
{
    return json_is_string(value) && text_starts_with(json_string_value(value), "unix:///")
               ? NULL
               : "the Docker Engine is spoken with by a UNIX socket, as in "
                 "\"unix:///var/run/docker.sock\"";
}

static const char *require_helper(const json_t *value)
{
    const char *name = json_string_value(value);

    return name != NULL && strchr(name, '/') == NULL
               ? NULL
               : "it must be the end of a program's name, as in \"ecr-login\" of "
                 "docker-credential-ecr-login";
}

static const char *require_second(const json_t *value)
{
    int64_t ns;

    return json_is_string(value) && text_to_duration_ns(json_string_value(value), &ns) &&
                   ns < 1000000000
               ? "it must be \"1s\" or more"
               : NULL;
}

static const char *require_default_cluster(const json_t *value)
{
    return json_is_string(value) && text_equal(json_string_value(value), "default")
               ? NULL
               : "there is one cluster of Consul, \"default\", in this release";
}

#define NETWORK_FIELD(member)                                                                      \
    offsetof(struct host_network, member), sizeof(((struct host_network *)NULL)->member)
#define VOLUME_FIELD(member)                                                                       \
    offsetof(struct spec_node_volume, member), sizeof(((struct spec_node_volume *)NULL)->member)
#define PLUGIN_FIELD(member)                                                                       \
    offsetof(struct config_csi_plugin, member), sizeof(((struct config_csi_plugin *)NULL)->member)
#define FIELD_OF(member) offsetof(struct config, member), sizeof(((struct config *)NULL)->member)

/* clang-format off */
static const struct key keys[] = {
    {IN_ROOT, "name", KEY_TEXT, FIELD_OF(name), NULL},
    {IN_ROOT, "region", KEY_TEXT, FIELD_OF(region), NULL},
    {IN_ROOT, "datacenter", KEY_TEXT, FIELD_OF(datacenter), NULL},
    {IN_ROOT, "data_dir", KEY_TEXT, FIELD_OF(data_dir), NULL},
    {IN_ROOT, "bind_addr", KEY_TEXT, FIELD_OF(bind_address), NULL},
    {IN_ROOT, "allowed_hosts", KEY_TEXT, FIELD_OF(allowed_hosts), NULL},
    {IN_ROOT, "plugin_dir", KEY_TEXT, FIELD_OF(plugin_dir), NULL},
    {IN_ROOT, "log_level", KEY_TEXT, FIELD_OF(log_level), NULL},
    {IN_ROOT, "log_file", KEY_TEXT, FIELD_OF(log_file), NULL},
    {IN_ROOT, "log_json", KEY_BOOL, FIELD_OF(log_json), NULL},
    {IN_ROOT, "disable_anonymous_signature", KEY_RULE, 0, 0, require_true},
    {IN_ROOT, "disable_update_check", KEY_RULE, 0, 0, require_true},
    {IN_ROOT, "enable_debug", KEY_RULE, 0, 0, require_false},
    {IN_ROOT, "enable_syslog", KEY_RULE, 0, 0, require_false},
    {IN_ROOT, "leave_on_interrupt", KEY_RULE, 0, 0, require_false},
    {IN_ROOT, "leave_on_terminate", KEY_RULE, 0, 0, require_false},
    {IN_ROOT, "log_include_location", KEY_RULE, 0, 0, require_false},
    {IN_ACL, "enabled", KEY_BOOL, FIELD_OF(acl_enabled), NULL},
    {IN_ACL, "bootstrap_secret_file", KEY_TEXT, FIELD_OF(bootstrap_secret_file), NULL},
    {IN_ACL, "token_min_expiration_ttl", KEY_DURATION, FIELD_OF(token_min_ms), NULL},
    {IN_ACL, "token_max_expiration_ttl", KEY_DURATION, FIELD_OF(token_max_ms), NULL},
    {IN_ACL, "token_ttl", KEY_DURATION, FIELD_OF(token_ttl_ms), NULL},
    {IN_ACL, "policy_ttl", KEY_DURATION, FIELD_OF(policy_ttl_ms), NULL},
    {IN_ACL, "role_ttl", KEY_DURATION, FIELD_OF(role_ttl_ms), NULL},
    {IN_ADDRESSES, "http", KEY_ADDRESSES, 0, 0, NULL},
    {IN_UNIX_SOCKETS, "user", KEY_TEXT, FIELD_OF(socket_user), NULL},
    {IN_UNIX_SOCKETS, "group", KEY_TEXT, FIELD_OF(socket_group), NULL},
    {IN_UNIX_SOCKETS, "mode", KEY_TEXT, FIELD_OF(socket_mode), NULL},
    {IN_TLS, "http", KEY_BOOL, FIELD_OF(tls_http), NULL},
    {IN_TLS, "rpc", KEY_BOOL, FIELD_OF(tls_rpc), NULL},
    {IN_TLS, "verify_server_hostname", KEY_BOOL, FIELD_OF(tls_verifies_server), NULL},
    {IN_TLS, "ca_file", KEY_TEXT, FIELD_OF(tls_ca_file), NULL},
    {IN_TLS, "cert_file", KEY_TEXT, FIELD_OF(tls_cert_file), NULL},
    {IN_TLS, "key_file", KEY_TEXT, FIELD_OF(tls_key_file), NULL},
    {IN_TLS, "verify_https_client", KEY_BOOL, FIELD_OF(tls_verifies), NULL},
    {IN_TLS, "tls_min_version", KEY_TEXT, FIELD_OF(tls_min_version), NULL},
    {IN_PORTS, "http", KEY_PORT, FIELD_OF(http_port), NULL},
    {IN_SERVER, "enabled", KEY_RULE, 0, 0, refuse_server},
    {IN_CLIENT, "enabled", KEY_RULE, 0, 0, require_client},
    {IN_CLIENT, "servers", KEY_NAMES, FIELD_OF(servers), NULL},
    {IN_SERVER_JOIN, "retry_join", KEY_NAMES, FIELD_OF(servers), NULL},
    {IN_CLIENT, "alloc_dir", KEY_TEXT, FIELD_OF(alloc_dir), NULL},
    {IN_CLIENT, "state_dir", KEY_TEXT, FIELD_OF(state_dir), NULL},
    {IN_CLIENT, "host_volume_plugin_dir", KEY_TEXT, FIELD_OF(host_plugin_dir), NULL},
    {IN_CLIENT, "host_volumes_dir", KEY_TEXT, FIELD_OF(host_volumes_dir), NULL},
    {IN_CLIENT, "cgroup_parent", KEY_TEXT, FIELD_OF(cgroup_parent), NULL},
    {IN_CLIENT, "node_class", KEY_TEXT, FIELD_OF(node_class), NULL},
    {IN_CLIENT, "node_pool", KEY_TEXT, FIELD_OF(node_pool), NULL},
    {IN_CLIENT, "no_host_uuid", KEY_RULE, 0, 0, require_true},
    {IN_CLIENT, "disable_remote_exec", KEY_RULE, 0, 0, require_false},
    {IN_CLIENT, "default_ineligible", KEY_RULE, 0, 0, require_false},
    {IN_CLIENT, "gc_interval", KEY_DURATION, FIELD_OF(gc_interval_ms), NULL},
    {IN_CLIENT, "gc_max_allocs", KEY_COUNT, FIELD_OF(gc_max_allocs), NULL},
    {IN_CLIENT, "journal_max_events", KEY_COUNT, FIELD_OF(journal_max_events), NULL},
    {IN_CLIENT, "gc_disk_usage_threshold", KEY_PERCENT, FIELD_OF(gc_disk_percent), NULL},
    {IN_CLIENT, "gc_inode_usage_threshold", KEY_PERCENT, FIELD_OF(gc_inode_percent), NULL},
    {IN_CLIENT, "gc_parallel_destroys", KEY_COUNT, FIELD_OF(gc_parallel_destroys), NULL},
    {IN_CLIENT, "cpu_total_compute", KEY_COUNT, FIELD_OF(cpu_total_compute), NULL},
    {IN_CLIENT, "memory_total_mb", KEY_COUNT, FIELD_OF(memory_total_mb), NULL},
    {IN_CLIENT, "disk_total_mb", KEY_COUNT, FIELD_OF(disk_total_mb), NULL},
    {IN_CLIENT, "max_kill_timeout", KEY_DURATION, FIELD_OF(max_kill_timeout_ms), NULL},
    {IN_CLIENT, "network_interface", KEY_TEXT, FIELD_OF(network_interface), NULL},
    {IN_CLIENT, "cni_path", KEY_TEXT, FIELD_OF(cni_path), NULL},
    {IN_CLIENT, "cni_config_dir", KEY_TEXT, FIELD_OF(cni_config_dir), NULL},
    {IN_CLIENT, "bridge_network_name", KEY_TEXT, FIELD_OF(bridge_name), NULL},
    {IN_CLIENT, "bridge_network_subnet", KEY_SUBNET, FIELD_OF(bridge_subnet), NULL},
    {IN_CLIENT, "bridge_network_subnet_ipv6", KEY_SUBNET_IPV6, FIELD_OF(bridge_subnet_ipv6),
        NULL},
    {IN_CLIENT, "bridge_network_hairpin_mode", KEY_BOOL, FIELD_OF(bridge_hairpin), NULL},
    {IN_CLIENT, "bind_wildcard_default_host_network", KEY_BOOL, FIELD_OF(bind_wildcard), NULL},
    {IN_CLIENT, "min_dynamic_port", KEY_PORT, FIELD_OF(min_dynamic_port), NULL},
    {IN_CLIENT, "max_dynamic_port", KEY_PORT, FIELD_OF(max_dynamic_port), NULL},
    {IN_RESERVED, "reserved_ports", KEY_PORTS, FIELD_OF(reserved_ports), NULL},
    {IN_RESERVED, "cores", KEY_CORES, FIELD_OF(reserved_cores), NULL},
    {IN_RESERVED, "cpu", KEY_COUNT, FIELD_OF(reserved_cpu_mhz), NULL},
    {IN_RESERVED, "disk", KEY_COUNT, FIELD_OF(reserved_disk_mb), NULL},
    {IN_RESERVED, "memory", KEY_COUNT, FIELD_OF(reserved_memory_mb), NULL},
    {IN_HOST_NETWORK, "cidr", KEY_NETWORKS, NETWORK_FIELD(cidr), NULL},
    {IN_HOST_NETWORK, "interface", KEY_TEXT, NETWORK_FIELD(interface), NULL},
    {IN_HOST_NETWORK, "reserved_ports", KEY_PORTS, NETWORK_FIELD(reserved_ports), NULL},
    {IN_HOST_VOLUME, "path", KEY_TEXT, VOLUME_FIELD(path), NULL},
    {IN_HOST_VOLUME, "read_only", KEY_BOOL, VOLUME_FIELD(read_only), NULL},
    {IN_CSI_PLUGIN, "type", KEY_TEXT, PLUGIN_FIELD(type), NULL},
    {IN_CSI_PLUGIN, "socket", KEY_TEXT, PLUGIN_FIELD(socket), NULL},
    {IN_CSI_PLUGIN, "stage_publish_base_dir", KEY_TEXT, PLUGIN_FIELD(base_dir), NULL},
    {IN_ARTIFACT, "http_read_timeout", KEY_DURATION, FIELD_OF(artifact_timeout_ms), NULL},
    {IN_ARTIFACT, "http_max_size", KEY_SIZE, FIELD_OF(artifact_bytes_max), NULL},
    {IN_ARTIFACT, "decompression_size_limit", KEY_SIZE, FIELD_OF(artifact_unpacked_max), NULL},
    {IN_ARTIFACT, "decompression_file_count_limit", KEY_COUNT, FIELD_OF(artifact_entries_max),
        NULL},
    {IN_ARTIFACT, "set_environment_variables", KEY_TEXT, FIELD_OF(artifact_variables), NULL},
    {IN_OPTIONS, "driver.raw_exec.enable", KEY_BOOL, FIELD_OF(raw_exec_enabled), NULL},
    {IN_OPTIONS, "driver.raw_exec.no_cgroups", KEY_BOOL, FIELD_OF(raw_exec_no_cgroups), NULL},
    {IN_OPTIONS, "driver.allowlist", KEY_TEXT, FIELD_OF(driver_allowlist), NULL},
    {IN_OPTIONS, "driver.denylist", KEY_TEXT, FIELD_OF(driver_denylist), NULL},
    {IN_OPTIONS, "user.denylist", KEY_TEXT, FIELD_OF(user_denylist), NULL},
    {IN_EXEC_CONFIG, "enabled", KEY_BOOL, FIELD_OF(exec_enabled), NULL},
    {IN_RAW_EXEC_CONFIG, "enabled", KEY_BOOL, FIELD_OF(raw_exec_enabled), NULL},
    {IN_RAW_EXEC_CONFIG, "no_cgroups", KEY_BOOL, FIELD_OF(raw_exec_no_cgroups), NULL},
    {IN_RAW_EXEC_CONFIG, "denied_envvars", KEY_NAMES, FIELD_OF(raw_exec_denied_env), NULL},
    {IN_RAW_EXEC_CONFIG, "denied_host_uids", KEY_IDS, FIELD_OF(raw_exec_denied_uids), NULL},
    {IN_RAW_EXEC_CONFIG, "denied_host_gids", KEY_IDS, FIELD_OF(raw_exec_denied_gids), NULL},
    {IN_EXEC_CONFIG, "denied_host_uids", KEY_IDS, FIELD_OF(exec_denied_uids), NULL},
    {IN_EXEC_CONFIG, "denied_host_gids", KEY_IDS, FIELD_OF(exec_denied_gids), NULL},
    {IN_EXEC_CONFIG, "allow_caps", KEY_CAPABILITIES, FIELD_OF(exec_allow_caps), NULL},
    {IN_EXEC_CONFIG, "default_pid_mode", KEY_MODE, FIELD_OF(exec_host_pids), NULL},
    {IN_EXEC_CONFIG, "default_ipc_mode", KEY_MODE, FIELD_OF(exec_host_ipc), NULL},
    {IN_JAVA_CONFIG, "enabled", KEY_BOOL, FIELD_OF(java_enabled), NULL},
    {IN_JAVA_CONFIG, "allow_caps", KEY_CAPABILITIES, FIELD_OF(java_allow_caps), NULL},
    {IN_JAVA_CONFIG, "default_pid_mode", KEY_MODE, FIELD_OF(java_host_pids), NULL},
    {IN_JAVA_CONFIG, "default_ipc_mode", KEY_MODE, FIELD_OF(java_host_ipc), NULL},
    {IN_TELEMETRY, "publish_node_metrics", KEY_BOOL, FIELD_OF(publishes_node), NULL},
    {IN_TELEMETRY, "publish_allocation_metrics", KEY_BOOL, FIELD_OF(publishes_allocs), NULL},
    {IN_TELEMETRY, "disable_allocation_hook_metrics", KEY_BOOL, FIELD_OF(hides_hooks), NULL},
    {IN_TELEMETRY, "disable_dispatched_job_summary_metrics", KEY_BOOL, FIELD_OF(hides_dispatched),
     NULL},
    {IN_TELEMETRY, "prometheus_metrics", KEY_BOOL, FIELD_OF(publishes_prometheus), NULL},
    {IN_CONSUL, "address", KEY_TEXT, FIELD_OF(consul.address), NULL},
    {IN_CONSUL, "token", KEY_TEXT, FIELD_OF(consul.token), NULL},
    {IN_CONSUL, "token_file", KEY_TEXT, FIELD_OF(consul.token_file), NULL},
    {IN_CONSUL, "ssl", KEY_BOOL, FIELD_OF(consul.ssl), NULL},
    {IN_CONSUL, "verify_ssl", KEY_BOOL, FIELD_OF(consul.verify_ssl), NULL},
    {IN_CONSUL, "ca_file", KEY_TEXT, FIELD_OF(consul.ca_file), NULL},
    {IN_CONSUL, "cert_file", KEY_TEXT, FIELD_OF(consul.cert_file), NULL},
    {IN_CONSUL, "key_file", KEY_TEXT, FIELD_OF(consul.key_file), NULL},
    {IN_CONSUL, "grpc_address", KEY_TEXT, FIELD_OF(consul.grpc_address), NULL},
    {IN_CONSUL, "grpc_ca_file", KEY_TEXT, FIELD_OF(consul.grpc_ca_file), NULL},
    {IN_CONSUL, "service_auth_method", KEY_TEXT, FIELD_OF(consul.service_auth_method), NULL},
    {IN_CONSUL, "task_auth_method", KEY_TEXT, FIELD_OF(consul.task_auth_method), NULL},
    {IN_CONSUL, "share_ssl", KEY_BOOL, FIELD_OF(consul.share_ssl), NULL},
    {IN_CONSUL, "timeout", KEY_DURATION, FIELD_OF(consul.timeout_ms), NULL},
    {IN_CONSUL, "name", KEY_RULE, 0, 0, require_default_cluster},
    {IN_CONSUL, "auto_advertise", KEY_BOOL, FIELD_OF(consul.auto_advertise), NULL},
    {IN_CONSUL, "client_service_name", KEY_TEXT, FIELD_OF(consul.client_service_name), NULL},
    {IN_CONSUL, "client_http_check_name", KEY_TEXT, FIELD_OF(consul.client_http_check_name), NULL},
    {IN_CONSUL, "client_auto_join", KEY_BOOL, FIELD_OF(consul.client_auto_join), NULL},
    {IN_CONSUL, "server_service_name", KEY_TEXT, FIELD_OF(consul.server_service_name), NULL},
    {IN_CONSUL, "server_auto_join", KEY_RULE, 0, 0, require_false},
    {IN_DOCKER_CONFIG, "endpoint", KEY_TEXT, FIELD_OF(docker_endpoint), require_socket},
    {IN_DOCKER_CONFIG, "allow_privileged", KEY_BOOL, FIELD_OF(docker_privileged), NULL},
    {IN_DOCKER_CONFIG, "allow_caps", KEY_CAPABILITIES, FIELD_OF(docker_allow_caps), NULL},
    {IN_DOCKER_CONFIG, "allow_runtimes", KEY_NAMES, FIELD_OF(docker_runtimes), NULL},
    {IN_DOCKER_CONFIG, "pids_limit", KEY_COUNT, FIELD_OF(docker_pids_limit), NULL},
    {IN_DOCKER_CONFIG, "image_pull_timeout", KEY_DURATION, FIELD_OF(docker_pull_timeout_ms), NULL},
    {IN_DOCKER_CONFIG, "pull_activity_timeout", KEY_DURATION,
        FIELD_OF(docker_pull_activity_timeout_ms), NULL},
    {IN_DOCKER_CONFIG, "disable_log_collection", KEY_BOOL, FIELD_OF(docker_no_logs), NULL},
    {IN_DOCKER_AUTH, "config", KEY_TEXT, FIELD_OF(docker_auth_config), NULL},
    {IN_DOCKER_AUTH, "helper", KEY_TEXT, FIELD_OF(docker_auth_helper), require_helper},
    {IN_DOCKER_GC, "image", KEY_BOOL, FIELD_OF(docker_collects_images), NULL},
    {IN_DOCKER_GC, "image_delay", KEY_DURATION, FIELD_OF(docker_image_delay_ms), NULL},
    {IN_DOCKER_GC, "container", KEY_RULE, 0, 0, require_true},
    {IN_DOCKER_DANGLING, "enabled", KEY_BOOL, FIELD_OF(docker_dangling_removed), NULL},
    {IN_DOCKER_DANGLING, "dry_run", KEY_BOOL, FIELD_OF(docker_dangling_said), NULL},
    {IN_DOCKER_DANGLING, "period", KEY_DURATION, FIELD_OF(docker_dangling_period_ms),
        require_second},
    {IN_DOCKER_DANGLING, "creation_grace", KEY_DURATION, FIELD_OF(docker_dangling_grace_ms), NULL},
    {IN_DOCKER_VOLUMES, "enabled", KEY_BOOL, FIELD_OF(docker_volumes), NULL},
    {IN_MOCK_CONFIG, "enabled", KEY_BOOL, FIELD_OF(mock_enabled), NULL},
    {IN_MOCK_CONFIG, "fs_isolation", KEY_RULE, 0, 0, require_no_isolation},
    {IN_MOCK_CONFIG, "shutdown_periodic_after", KEY_BOOL, FIELD_OF(mock_shuts_down), NULL},
    {IN_MOCK_CONFIG, "shutdown_periodic_duration", KEY_DURATION,
        FIELD_OF(mock_shutdown_after_ms), NULL},
};

static const struct {
    enum section section;
    const char *name;
    enum section inside;
} blocks[] = {
    {IN_ROOT, "acl", IN_ACL},
    {IN_ROOT, "addresses", IN_ADDRESSES},
    {IN_ROOT, "unix_sockets", IN_UNIX_SOCKETS},
    {IN_ROOT, "tls", IN_TLS},
    {IN_ROOT, "ports", IN_PORTS},
    {IN_ROOT, "server", IN_SERVER},
    {IN_ROOT, "client", IN_CLIENT},
    {IN_ROOT, "plugin", IN_PLUGIN},
    {IN_ROOT, "telemetry", IN_TELEMETRY},
    {IN_ROOT, "consul", IN_CONSUL},
    {IN_CLIENT, "meta", IN_META},
    {IN_CLIENT, "chroot_env", IN_CHROOT_ENV},
    {IN_CLIENT, "options", IN_OPTIONS},
    {IN_CLIENT, "reserved", IN_RESERVED},
    {IN_CLIENT, "host_network", IN_HOST_NETWORKS},
    {IN_CLIENT, "host_volume", IN_HOST_VOLUMES},
    {IN_CLIENT, "csi_plugin", IN_CSI_PLUGINS},
    {IN_CLIENT, "artifact", IN_ARTIFACT},
    {IN_CLIENT, "server_join", IN_SERVER_JOIN},
    {IN_PLUGIN, "raw_exec", IN_RAW_EXEC},
    {IN_PLUGIN, "exec", IN_EXEC},
    {IN_PLUGIN, "java", IN_JAVA},
    {IN_PLUGIN, "docker", IN_DOCKER},
    {IN_PLUGIN, "mock_driver", IN_MOCK},
    {IN_RAW_EXEC, "config", IN_RAW_EXEC_CONFIG},
    {IN_EXEC, "config", IN_EXEC_CONFIG},
    {IN_JAVA, "config", IN_JAVA_CONFIG},
    {IN_DOCKER, "config", IN_DOCKER_CONFIG},
    {IN_DOCKER_CONFIG, "auth", IN_DOCKER_AUTH},
    {IN_DOCKER_CONFIG, "gc", IN_DOCKER_GC},
    {IN_DOCKER_GC, "dangling_containers", IN_DOCKER_DANGLING},
    {IN_DOCKER_CONFIG, "volumes", IN_DOCKER_VOLUMES},
    {IN_MOCK, "config", IN_MOCK_CONFIG},
};
/* clang-format on */

/* Keys of Nomad's agent configuration that mean something there and nothing here yet. */
static const struct {
    enum section section;
    const char *name;
} unavailable[] = {
    {IN_ROOT, "advertise"},
    {IN_ROOT, "audit"},
    {IN_ROOT, "autopilot"},
    {IN_ROOT, "eventlog"},
    {IN_ROOT, "http_api_response_headers"},
    {IN_ROOT, "keyring"},
    {IN_ROOT, "limits"},
    {IN_ROOT, "log_rotate_bytes"},
    {IN_ROOT, "log_rotate_duration"},
    {IN_ROOT, "log_rotate_max_files"},
    {IN_ROOT, "reporting"},
    {IN_ROOT, "rpc"},
    {IN_ROOT, "sentinel"},
    {IN_ROOT, "syslog_facility"},
    {IN_ROOT, "ui"},
    {IN_ROOT, "vault"},
    {IN_ACL, "replication_token"},
    {IN_TLS, "rpc_upgrade_mode"},
    {IN_TLS, "tls_cipher_suites"},
    {IN_TLS, "tls_prefer_server_cipher_suites"},
    {IN_ADDRESSES, "rpc"},
    {IN_ADDRESSES, "serf"},
    {IN_PORTS, "rpc"},
    {IN_PORTS, "serf"},
    {IN_ARTIFACT, "disable_artifact_inspection"},
    {IN_ARTIFACT, "disable_filesystem_isolation"},
    {IN_ARTIFACT, "filesystem_isolation_extra_paths"},
    {IN_ARTIFACT, "gcs_timeout"},
    {IN_ARTIFACT, "git_timeout"},
    {IN_ARTIFACT, "hg_timeout"},
    {IN_ARTIFACT, "s3_timeout"},
    {IN_CLIENT, "alloc_mounts_dir"},
    {IN_CLIENT, "client_max_port"},
    {IN_CLIENT, "client_min_port"},
    {IN_CLIENT, "common_plugin_dir"},
    {IN_CLIENT, "cpu_disable_dmidecode"},
    {IN_CLIENT, "disk_free_mb"},
    {IN_CLIENT, "drain_on_shutdown"},
    {IN_CLIENT, "fingerprint"},
    {IN_CLIENT, "gc_volumes_on_node_gc"},
    {IN_CLIENT, "host_volume_plugin_dir"},
    {IN_CLIENT, "host_volumes_dir"},
    {IN_CLIENT, "log_file"},
    {IN_CLIENT, "network_speed"},
    {IN_CLIENT, "node_max_allocs"},
    {IN_CLIENT, "nomad_service_discovery"},
    {IN_CLIENT, "preferred_address_family"},
    {IN_CLIENT, "reservable_cores"},
    {IN_SERVER_JOIN, "retry_interval"},
    {IN_SERVER_JOIN, "retry_max"},
    {IN_SERVER_JOIN, "start_join"},
    {IN_CLIENT, "template"},
    {IN_CLIENT, "users"},
    {IN_DOCKER_CONFIG, "allowed_modes"},
    {IN_DOCKER_CONFIG, "container_exists_attempts"},
    {IN_DOCKER_CONFIG, "extra_labels"},
    {IN_DOCKER_CONFIG, "infra_image"},
    {IN_DOCKER_CONFIG, "infra_image_pull_timeout"},
    {IN_DOCKER_CONFIG, "logging"},
    {IN_DOCKER_CONFIG, "nvidia_runtime"},
    {IN_DOCKER_CONFIG, "oom_score_adj"},
    {IN_DOCKER_CONFIG, "tls"},
    {IN_DOCKER_CONFIG, "windows_allow_insecure_container_admin"},
    {IN_DOCKER_VOLUMES, "selinuxlabel"},
    {IN_EXEC_CONFIG, "no_pivot_root"},
    {IN_CONSUL, "allow_unauthenticated"},
    {IN_CONSUL, "auth"},
    {IN_CONSUL, "checks_use_advertise"},
    {IN_CONSUL, "client_failures_before_critical"},
    {IN_CONSUL, "client_failures_before_warning"},
    {IN_CONSUL, "namespace"},
    {IN_CONSUL, "server_failures_before_critical"},
    {IN_CONSUL, "server_failures_before_warning"},
    {IN_CONSUL, "server_http_check_name"},
    {IN_CONSUL, "server_rpc_check_name"},
    {IN_CONSUL, "server_serf_check_name"},
    {IN_CONSUL, "service_identity"},
    {IN_CONSUL, "tags"},
    {IN_CONSUL, "task_identity"},
    {IN_TELEMETRY, "allowed_metadata_keys_in_metrics"},
    {IN_TELEMETRY, "circonus_api_app"},
    {IN_TELEMETRY, "circonus_api_token"},
    {IN_TELEMETRY, "circonus_api_url"},
    {IN_TELEMETRY, "circonus_broker_id"},
    {IN_TELEMETRY, "circonus_broker_select_tag"},
    {IN_TELEMETRY, "circonus_check_display_name"},
    {IN_TELEMETRY, "circonus_check_force_metric_activation"},
    {IN_TELEMETRY, "circonus_check_id"},
    {IN_TELEMETRY, "circonus_check_instance_id"},
    {IN_TELEMETRY, "circonus_check_search_tag"},
    {IN_TELEMETRY, "circonus_check_tags"},
    {IN_TELEMETRY, "circonus_submission_interval"},
    {IN_TELEMETRY, "circonus_submission_url"},
    {IN_TELEMETRY, "collection_interval"},
    {IN_TELEMETRY, "datadog_address"},
    {IN_TELEMETRY, "datadog_tags"},
    {IN_TELEMETRY, "disable_hostname"},
    {IN_TELEMETRY, "disable_quota_utilization_metrics"},
    {IN_TELEMETRY, "disable_rpc_rate_metrics_labels"},
    {IN_TELEMETRY, "filter_default"},
    {IN_TELEMETRY, "in_memory_collection_interval"},
    {IN_TELEMETRY, "in_memory_retention_period"},
    {IN_TELEMETRY, "include_alloc_metadata_in_metrics"},
    {IN_TELEMETRY, "prefix_filter"},
    {IN_TELEMETRY, "statsd_address"},
    {IN_TELEMETRY, "statsite_address"},
    {IN_TELEMETRY, "use_node_name"},
};

static const char *const section_names[SECTION_COUNT] = {
    [IN_ROOT] = "the configuration",
    [IN_ACL] = "acl",
    [IN_ADDRESSES] = "addresses",
    [IN_UNIX_SOCKETS] = "unix_sockets",
    [IN_TLS] = "tls",
    [IN_PORTS] = "ports",
    [IN_SERVER] = "server",
    [IN_CLIENT] = "client",
    [IN_META] = "client.meta",
    [IN_CHROOT_ENV] = "client.chroot_env",
    [IN_OPTIONS] = "client.options",
    [IN_RESERVED] = "client.reserved",
    [IN_HOST_NETWORKS] = "client.host_network",
    [IN_HOST_NETWORK] = "client.host_network",
    [IN_HOST_VOLUMES] = "client.host_volume",
    [IN_HOST_VOLUME] = "client.host_volume",
    [IN_CSI_PLUGINS] = "client.csi_plugin",
    [IN_CSI_PLUGIN] = "client.csi_plugin",
    [IN_ARTIFACT] = "client.artifact",
    [IN_SERVER_JOIN] = "client.server_join",
    [IN_PLUGIN] = "plugin",
    [IN_RAW_EXEC] = "plugin \"raw_exec\"",
    [IN_RAW_EXEC_CONFIG] = "plugin \"raw_exec\" config",
    [IN_EXEC] = "plugin \"exec\"",
    [IN_EXEC_CONFIG] = "plugin \"exec\" config",
    [IN_JAVA] = "plugin \"java\"",
    [IN_JAVA_CONFIG] = "plugin \"java\" config",
    [IN_DOCKER] = "plugin \"docker\"",
    [IN_DOCKER_CONFIG] = "plugin \"docker\" config",
    [IN_DOCKER_AUTH] = "plugin \"docker\" config.auth",
    [IN_DOCKER_GC] = "plugin \"docker\" config.gc",
    [IN_DOCKER_DANGLING] = "plugin \"docker\" config.gc.dangling_containers",
    [IN_DOCKER_VOLUMES] = "plugin \"docker\" config.volumes",
    [IN_MOCK] = "plugin \"mock_driver\"",
    [IN_MOCK_CONFIG] = "plugin \"mock_driver\" config",
    [IN_TELEMETRY] = "telemetry",
    [IN_CONSUL] = "consul",
};

static const struct hcl_place nowhere = {0};

static int complain_unknown(struct reader *reader, enum section section, const char *name,
                            struct hcl_place place)
{
    const char *names[COUNT_OF(keys) + COUNT_OF(blocks)];
    size_t count = 0;
    char hint[ERR_TEXT_SIZE] = "";

    for (size_t i = 0; i < COUNT_OF(unavailable); i++) {
        if (unavailable[i].section == section && text_equal(unavailable[i].name, name))
            return reader_complain(reader, place, "remove it",
                                   "%s is not available in this release", name);
    }
    if (section == IN_SERVER)
        return reader_complain(reader, place, "remove the server block",
                               "server.%s is not available: cairn is no server", name);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (keys[i].section == section)
            names[count++] = keys[i].name;
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        if (blocks[i].section == section)
            names[count++] = blocks[i].name;
    }
    const char *closest = hcl_closest(name, names, count);
    if (closest != NULL)
        (void)text_format(hint, sizeof(hint), "did you mean %s?", closest);
    return reader_complain(reader, place, hint, "%s has no key \"%s\"", section_names[section],
                           name);
}

static void *field_of(struct reader *reader, const struct key *key)
{
    void *block = reader->config;

    if (key->section == IN_HOST_NETWORK)
        block = reader->host_network;
    if (key->section == IN_HOST_VOLUME)
        block = reader->host_volume;
    if (key->section == IN_CSI_PLUGIN)
        block = reader->csi_plugin;
    return (char *)block + key->offset;
}

/* Where a block of free names puts its pairs; NULL for blocks of keys. */
static struct spec_pairs *pairs_of(struct reader *reader, enum section section)
{
    return section == IN_META         ? &reader->config->meta
           : section == IN_CHROOT_ENV ? &reader->config->chroot_env
                                      : NULL;
}

static int set_pair(struct reader *reader, enum section section, const char *name,
                    struct hcl_place place, json_t *value)
{
    json_t *text = hcl_convert(value, HCL_STRING);
    int code = 0;

    if (text == NULL || !json_is_string(text))
        code = reader_complain(reader, place, NULL, "%s.%s must be a string, not %s",
                               section_names[section], name, hcl_type_text(value));
    else if (pairs_of(reader, section)->count == PAIRS_MAX)
        code = reader_complain(reader, place, NULL, "%s has more than %d entries",
                               section_names[section], PAIRS_MAX);
    else
        pairs_set(pairs_of(reader, section), name, json_string_value(text));
    json_decref(text);
    return code;
}

static bool find_block(enum section section, const char *name, enum section *ret_inside)
{
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        if (blocks[i].section == section && text_equal(blocks[i].name, name)) {
            *ret_inside = blocks[i].inside;
            return true;
        }
    }
    return false;
}

/* One that says something by being there. */
static void note_block(struct reader *reader, enum section section)
{
    if (section == IN_CONSUL)
        reader->config->consul.used = true;
}

static int read_value(struct reader *reader, enum section section, const char *name,
                      struct hcl_place place, json_t *value);

/* Each entry of an object, or of each object in an array: JSON writes blocks in both ways. */
static int read_object(struct reader *reader, enum section section, struct hcl_place place,
                       json_t *value)
{
    const char *name;
    json_t *inside;
    size_t at;
    int code = 0;

    if (json_is_array(value)) {
        json_array_foreach(value, at, inside)
        {
            if (code == 0)
                code = read_object(reader, section, place, inside);
        }
        return code;
    }
    if (!json_is_object(value))
        return reader_complain(reader, place, NULL, "%s must be a block, not %s",
                               section_names[section], hcl_type_text(value));
    json_object_foreach(value, name, inside)
    {
        if (code == 0)
            code = read_value(reader, section, name, place, inside);
    }
    return code;
}

/* The host network NAME is read from now on; given twice, in two files, it is one. */
static int begin_host_network(struct reader *reader, const char *name, struct hcl_place place)
{
    struct config *config = reader->config;
    const char *fault = spec_port_label_fault(name); /* shown where labels of ports are */
    size_t at = 0;

    while (at < config->host_networks_count && !text_equal(config->host_networks[at].name, name))
        at++;
    if (fault != NULL)
        return reader_complain(reader, place, NULL, "the name of a host_network %s", fault);
    if (text_equal(name, "default"))
        return reader_complain(reader, place, "network_interface says which interface that is",
                               "the host_network \"default\" is there already");
    if (at == HOST_NETWORKS_MAX)
        return reader_complain(reader, place, NULL, "more than %d blocks host_network",
                               HOST_NETWORKS_MAX);
    reader->host_network = &config->host_networks[at];
    if (at == config->host_networks_count) {
        *reader->host_network = (struct host_network){.name = ""};
        (void)text_copy(reader->host_network->name, SPEC_PORT_LABEL_SIZE, name); /* checked */
        config->host_networks_count++;
    }
    return 0;
}

/* The host volume NAME is read from now on; given twice, in two files, it is the later one. */
static int begin_host_volume(struct reader *reader, const char *name, struct hcl_place place)
{
    struct spec_node_volumes *volumes = &reader->config->host_volumes;
    const char *fault = spec_volume_name_fault(name);
    size_t at = 0;

    while (at < volumes->count && !text_equal(volumes->items[at].name, name))
        at++;
    if (fault != NULL)
        return reader_complain(reader, place, NULL, "the name of a host_volume %s", fault);
    if (at == HOST_VOLUMES_MAX)
        return reader_complain(reader, place, NULL, "more than %d blocks host_volume",
                               HOST_VOLUMES_MAX);
    reader->host_volume = at < volumes->count ? &volumes->items[at] : list_more(volumes);
    *reader->host_volume = (struct spec_node_volume){.path = ""};
    (void)text_copy(reader->host_volume->name, SPEC_NAME_SIZE, name); /* checked */
    return 0;
}

/* The storage plugin ID is read from now on; given twice, in two files, it is the later one. */
static int begin_csi_plugin(struct reader *reader, const char *id, struct hcl_place place)
{
    struct config_csi_plugins *plugins = &reader->config->csi_plugins;
    const char *fault = id[0] == '\0' ? "must not be empty" : spec_plugin_fault(id);
    size_t at = 0;

    while (at < plugins->count && !text_equal(plugins->items[at].id, id))
        at++;
    if (fault != NULL)
        return reader_complain(reader, place, NULL, "the id of a csi_plugin %s", fault);
    if (at == CSI_PLUGINS_MAX)
        return reader_complain(reader, place, NULL, "more than %d blocks csi_plugin",
                               CSI_PLUGINS_MAX);
    reader->csi_plugin = at < plugins->count ? &plugins->items[at] : list_more(plugins);
    *reader->csi_plugin = (struct config_csi_plugin){.type = ""};
    (void)text_copy(reader->csi_plugin->id, PLUGIN_NAME_SIZE, id); /* checked */
    return 0;
}

/* Blocks with names of their own: RET_INSIDE is where the keys of the one called NAME are; false:
 * SECTION holds no such. */
static bool begin_named(struct reader *reader, enum section section, const char *name,
                        struct hcl_place place, enum section *ret_inside, int *ret_code)
{
    static const struct {
        enum section section, inside;
        int (*begin)(struct reader *reader, const char *name, struct hcl_place place);
    } named[] = {{IN_HOST_NETWORKS, IN_HOST_NETWORK, begin_host_network},
                 {IN_HOST_VOLUMES, IN_HOST_VOLUME, begin_host_volume},
                 {IN_CSI_PLUGINS, IN_CSI_PLUGIN, begin_csi_plugin}};

    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (named[i].section != section)
            continue;
        *ret_inside = named[i].inside;
        *ret_code = named[i].begin(reader, name, place);
        return true;
    }
    return false;
}

static int read_value(struct reader *reader, enum section section, const char *name,
                      struct hcl_place place, json_t *value)
{
    enum section inside;
    int begun;

    if (begin_named(reader, section, name, place, &inside, &begun))
        return begun != 0 ? begun : read_object(reader, inside, place, value);

    if (pairs_of(reader, section) != NULL)
        return set_pair(reader, section, name, place, value);
    if (find_block(section, name, &inside)) {
        note_block(reader, inside);
        return read_object(reader, inside, place, value);
    }
    if (section == IN_PLUGIN) /* it is no driver of ours: a program */
        return reader_plugin(reader, name, place, NULL, value);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        if (keys[i].section == section && text_equal(keys[i].name, name))
            return key_set(reader, &keys[i], field_of(reader, &keys[i]), place, value);
    }
    return complain_unknown(reader, section, name, place);
}

static int read_body(struct reader *reader, enum section section, const struct hcl_body *body);

static int read_block(struct reader *reader, enum section section, const struct hcl_block *block)
{
    enum section inside;
    int begun;

    if (!find_block(section, block->type, &inside))
        return complain_unknown(reader, section, block->type, block->place);
    note_block(reader, inside);
    const char *example = inside == IN_PLUGIN          ? "as in plugin \"raw_exec\" { ... }"
                          : inside == IN_HOST_NETWORKS ? "as in host_network \"public\" { ... }"
                          : inside == IN_HOST_VOLUMES  ? "as in host_volume \"data\" { ... }"
                          : inside == IN_CSI_PLUGINS   ? "as in csi_plugin \"disks\" { ... }"
                                                       : NULL;
    size_t labels = example == NULL ? 0 : 1;
    if (block->labels_count != labels)
        return reader_complain(reader, block->place, example, "%s takes %s", block->type,
                               labels == 1 ? "one name" : "no name");
    if (labels == 1 && begin_named(reader, inside, block->labels[0], block->place, &inside, &begun))
        return begun != 0 ? begun : read_body(reader, inside, &block->body);
    if (labels == 1 && !find_block(inside, block->labels[0], &inside))
        return reader_plugin(reader, block->labels[0], block->place, &block->body, NULL);
    return read_body(reader, inside, &block->body);
}

static int read_body(struct reader *reader, enum section section, const struct hcl_body *body)
{
    int code = 0;

    for (size_t i = 0; i < body->attributes_count && code == 0; i++) {
        const struct hcl_attribute *attribute = &body->attributes[i];
        struct hcl_error error = {0};
        json_t *value = NULL;

        if (hcl_evaluate(reader->context, NULL, attribute->value, &value, &error) != 0)
            return reader_take_error(reader, &error);
        code = read_value(reader, section, attribute->name, attribute->place, value);
        json_decref(value);
    }
    for (size_t i = 0; i < body->blocks_count && code == 0; i++)
        code = read_block(reader, section, &body->blocks[i]);
    return code;
}

static int read_hcl(struct reader *reader, const char *text, size_t length)
{
    struct hcl_options options = {0};
    struct hcl_error error = {0};
    int code;

    if (hcl_parse_config(reader->name, text, length, &reader->file, &error) != 0)
        return reader_take_error(reader, &error);
    if (hcl_context_new(reader->file, &options, &reader->context, &error) != 0)
        code = reader_take_error(reader, &error);
    else
        code = read_body(reader, IN_ROOT, hcl_root(reader->file));
    hcl_context_free(reader->context);
    hcl_free(reader->file);
    return code;
}

/* What begins at AT is behind a comma, and ends an object or a list. */
static bool ends_here(const char *at)
{
    at += strspn(at, " \t\r\n");
    return *at == '}' || *at == ']';
}

/* Commas behind the last of a list, which Nomad lets pass, become blanks. */
static void drop_last_commas(char *text)
{
    bool quoted = false;

    for (char *at = text; *at != '\0'; at++) {
        if (quoted && *at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (*at == ',' && !quoted && ends_here(at + 1))
            *at = ' ';
    }
}

static int read_json(struct reader *reader, char *text, size_t length)
{
    json_error_t error;

    drop_last_commas(text);
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    int code;

    if (value == NULL) {
        struct hcl_place place = {.line = (uint32_t)(error.line > 0 ? error.line : 0),
                                  .column = (uint32_t)(error.column > 0 ? error.column : 0)};

        return reader_complain(reader, place, NULL, "%s", error.text);
    }
    code = read_object(reader, IN_ROOT, nowhere, value);
    json_decref(value);
    return code;
}

int config_read_file(struct config *config, const char *path, struct err *err)
{
    struct reader reader = {.config = config, .name = path, .err = err};
    char *text;
    size_t length;
    int code = file_read(path, CONFIG_BYTES_MAX, &text, &length, err);

    if (code != 0)
        return err_wrap(err, "configuration");
    code = text_ends_with(path, ".json") || text[strspn(text, " \t\r\n")] == '{'
               ? read_json(&reader, text, length)
               : read_hcl(&reader, text, length);
    free(text);
    return code;
}
