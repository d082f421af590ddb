/*
 * The tables of jobs, groups, tasks and their blocks: nomad v1.1.2, package api, with the fields
 * that versions up to 2.0 added.  FATE_REFUSED rows are the list of what is still to be made; an
 * issue that makes one changes its row here.
 */
#include "spec/schema/schema.h"

#include "spec/job.h"

#include <string.h>
#include <strings.h>

#define SECONDS(n) ((int64_t)(n)*1000000000)

enum { WHOLE_MAX = INT32_MAX };
#define DURATION_MAX ((int64_t)DURATION_MS_MAX * 1000000)

#define TEXT(hcl, json, fate)                                                                      \
    {                                                                                              \
        hcl, json, KIND_TEXT, fate, 0, 0, NULL, NULL                                               \
    }
#define TEXTS(hcl, json, fate)                                                                     \
    {                                                                                              \
        hcl, json, KIND_TEXTS, fate, 0, 0, NULL, NULL                                              \
    }
#define BOOL(hcl, json, fate)                                                                      \
    {                                                                                              \
        hcl, json, KIND_BOOL, fate, 0, 0, NULL, NULL                                               \
    }
#define MAP(hcl, json, fate)                                                                       \
    {                                                                                              \
        hcl, json, KIND_MAP, fate, 0, 0, NULL, NULL                                                \
    }
#define LISTS(hcl, json, fate)                                                                     \
    {                                                                                              \
        hcl, json, KIND_LISTS, fate, 0, 0, NULL, NULL                                              \
    }
#define WHOLE(hcl, json, fate, min, max)                                                           \
    {                                                                                              \
        hcl, json, KIND_WHOLE, fate, min, max, NULL, NULL                                          \
    }
#define DURATION(hcl, json, fate)                                                                  \
    {                                                                                              \
        hcl, json, KIND_DURATION, fate, 0, DURATION_MAX, NULL, NULL                                \
    }
#define BLOCK(hcl, json, fate, schema)                                                             \
    {                                                                                              \
        hcl, json, KIND_BLOCK, fate, 0, 0, schema, NULL                                            \
    }
#define BLOCKS(hcl, json, fate, schema)                                                            \
    {                                                                                              \
        hcl, json, KIND_BLOCKS, fate, 0, 0, schema, NULL                                           \
    }
#define NAMED(hcl, json, fate, schema)                                                             \
    {                                                                                              \
        hcl, json, KIND_NAMED, fate, 0, 0, schema, NULL                                            \
    }
#define OPERAND(hcl)                                                                               \
    {                                                                                              \
        hcl, NULL, KIND_OPERAND, FATE_PLACE, 0, 0, NULL, NULL                                      \
    }
#define SERVER(json)                                                                               \
    {                                                                                              \
        NULL, json, KIND_ANY, FATE_SERVER, 0, 0, NULL, NULL                                        \
    }
/* What a server adds to a job, or what only it can give; ADVICE is for jobs of this node's own. */
#define BLOCK_SERVED(json, schema, advice)                                                         \
    {                                                                                              \
        NULL, json, KIND_BLOCK, FATE_SERVED, 0, 0, schema, advice                                  \
    }
#define BLOCKS_SERVED(hcl, json, schema, advice)                                                   \
    {                                                                                              \
        hcl, json, KIND_BLOCKS, FATE_SERVED, 0, 0, schema, advice                                  \
    }
/* Kept and not acted on, unless it is empty; ADVICE says what happens instead. */
#define KEPT(hcl, json, kind, max, schema, advice)                                                 \
    {                                                                                              \
        hcl, json, KIND_##kind, FATE_KEPT, 0, max, schema, advice                                  \
    }
#define REFUSED(hcl, json, advice)                                                                 \
    {                                                                                              \
        hcl, json, KIND_ANY, FATE_REFUSED, 0, 0, NULL, advice                                      \
    }

#define SCHEMA(id, name, label, rows)                                                              \
    const struct jobspec_schema id = {name, label, rows, sizeof(rows) / sizeof((rows)[0])}

/* clang-format off */

#define ONE_NODE "this node is the only one"
/* What of an update block is acted on, of jobs that are to last, is FATE_PLACE in it. */
#define ROLLED                                                                                     \
    "max_parallel and health alone pace a rollout, as in Nomad 2, and only allocs of service and " \
    "system jobs are replaced step by step, those of system jobs without canaries"
#define NO_SERVER "this node is its own control plane and always in contact"
#define FOR_OTHERS NO_SERVER "; all but stop_on_client_after is for servers"
#define FOR_SERVERS "it is for servers, and this node has none"

/* --- blocks of placement and roll-out --- */

static const struct jobspec_field constraint_fields[] = {
    TEXT("attribute", "LTarget", FATE_PLACE),
    TEXT("operator", "Operand", FATE_PLACE),
    TEXT("value", "RTarget", FATE_PLACE),
    OPERAND("distinct_hosts"),
    OPERAND("distinct_property"),
    OPERAND("regexp"),
    OPERAND("semver"),
    OPERAND("set_contains"),
    OPERAND("set_contains_all"),
    OPERAND("set_contains_any"),
    OPERAND("version"),
};
SCHEMA(jobspec_constraint, "constraint", NULL, constraint_fields);

static const struct jobspec_field affinity_fields[] = {
    TEXT("attribute", "LTarget", FATE_KEPT),
    TEXT("operator", "Operand", FATE_KEPT),
    TEXT("value", "RTarget", FATE_KEPT),
    WHOLE("weight", "Weight", FATE_KEPT, -100, 100),
    OPERAND("regexp"),
    OPERAND("semver"),
    OPERAND("set_contains"),
    OPERAND("set_contains_all"),
    OPERAND("set_contains_any"),
    OPERAND("version"),
};
SCHEMA(jobspec_affinity, "affinity", NULL, affinity_fields);

static const struct jobspec_field spread_target_fields[] = {
    TEXT(NULL, "Value", FATE_KEPT),
    WHOLE("percent", "Percent", FATE_KEPT, 0, 100),
};
static SCHEMA(spread_target, "target", "Value", spread_target_fields);

static const struct jobspec_field spread_fields[] = {
    TEXT("attribute", "Attribute", FATE_KEPT),
    WHOLE("weight", "Weight", FATE_KEPT, 0, 100),
    BLOCKS("target", "SpreadTarget", FATE_KEPT, &spread_target),
};
SCHEMA(jobspec_spread, "spread", NULL, spread_fields);

static const struct jobspec_field update_fields[] = {
    DURATION("stagger", "Stagger", FATE_KEPT),
    WHOLE("max_parallel", "MaxParallel", FATE_PLACE, 0, WHOLE_MAX),
    TEXT("health_check", "HealthCheck", FATE_PLACE),
    DURATION("min_healthy_time", "MinHealthyTime", FATE_PLACE),
    DURATION("healthy_deadline", "HealthyDeadline", FATE_PLACE),
    DURATION("progress_deadline", "ProgressDeadline", FATE_PLACE),
    BOOL("auto_revert", "AutoRevert", FATE_PLACE),
    BOOL("auto_promote", "AutoPromote", FATE_PLACE),
    WHOLE("canary", "Canary", FATE_PLACE, 0, WHOLE_MAX),
};
SCHEMA(jobspec_update, "update", NULL, update_fields);

static const struct jobspec_field scaling_fields[] = {
    WHOLE("min", "Min", FATE_PLACE, 0, WHOLE_MAX),
    WHOLE("max", "Max", FATE_PLACE, 0, WHOLE_MAX),
    BOOL("enabled", "Enabled", FATE_PLACE),
    TEXT("type", "Type", FATE_PLACE),
    {"policy", "Policy", KIND_CONFIG, FATE_PLACE, 0, 0, NULL, NULL}, /* for whoever scales */
    SERVER("ID"),
    SERVER("Namespace"),
    SERVER("Target"),
    SERVER("CreateIndex"),
    SERVER("ModifyIndex"),
};
SCHEMA(jobspec_scaling, "scaling", NULL, scaling_fields);

static const struct jobspec_field reschedule_fields[] = {
    WHOLE("attempts", "Attempts", FATE_PLACE, 0, SPEC_RESCHEDULED_MAX),
    DURATION("interval", "Interval", FATE_PLACE),
    DURATION("delay", "Delay", FATE_PLACE),
    TEXT("delay_function", "DelayFunction", FATE_PLACE),
    DURATION("max_delay", "MaxDelay", FATE_PLACE),
    BOOL("unlimited", "Unlimited", FATE_PLACE),
};
SCHEMA(jobspec_reschedule, "reschedule", NULL, reschedule_fields);

static const struct jobspec_field migrate_fields[] = {
    WHOLE("max_parallel", "MaxParallel", FATE_KEPT, 0, WHOLE_MAX),
    TEXT("health_check", "HealthCheck", FATE_KEPT),
    DURATION("min_healthy_time", "MinHealthyTime", FATE_KEPT),
    DURATION("healthy_deadline", "HealthyDeadline", FATE_KEPT),
};
SCHEMA(jobspec_migrate, "migrate", NULL, migrate_fields);

static const struct jobspec_field disconnect_fields[] = {
    DURATION("lost_after", "LostAfter", FATE_KEPT),
    DURATION("stop_on_client_after", "StopOnClientAfter", FATE_KEPT),
    BOOL("replace", "Replace", FATE_KEPT),
    TEXT("reconcile", "Reconcile", FATE_KEPT),
};
SCHEMA(jobspec_disconnect, "disconnect", NULL, disconnect_fields);

static const struct jobspec_field link_fields[] = {
    TEXT("label", "Label", FATE_KEPT),
    TEXT("url", "URL", FATE_KEPT),
};
static SCHEMA(ui_link, "link", NULL, link_fields);

static const struct jobspec_field ui_fields[] = {
    TEXT("description", "Description", FATE_KEPT),
    BLOCKS("link", "Links", FATE_KEPT, &ui_link),
};
static SCHEMA(ui, "ui", NULL, ui_fields);

static const struct jobspec_field action_fields[] = {
    TEXT(NULL, "Name", FATE_RUN),
    TEXT("command", "Command", FATE_RUN),
    TEXTS("args", "Args", FATE_RUN),
};
static SCHEMA(action, "action", "Name", action_fields);

/* --- blocks that tasks run by --- */

static const struct jobspec_field restart_fields[] = {
    WHOLE("attempts", "Attempts", FATE_RUN, 0, 1000000),
    DURATION("interval", "Interval", FATE_RUN),
    DURATION("delay", "Delay", FATE_RUN),
    TEXT("mode", "Mode", FATE_RUN),
    KEPT("render_templates", "RenderTemplates", BOOL, 0, NULL,
         "templates are rendered before each start of their task in any case"),
};
SCHEMA(jobspec_restart, "restart", NULL, restart_fields);

static const struct jobspec_field port_fields[] = {
    TEXT(NULL, "Label", FATE_RUN),
    WHOLE("static", "Value", FATE_RUN, 0, UINT16_MAX),
    WHOLE("to", "To", FATE_RUN, -1, UINT16_MAX),
    TEXT("host_network", "HostNetwork", FATE_RUN),
    REFUSED("ignore_collision", "IgnoreCollision",
            "remove it: a port of this node is held by one alloc at a time"),
};
SCHEMA(jobspec_port, "port", "Label", port_fields);

#define OF_EXEC "tasks of raw_exec find names as the host does"

static const struct jobspec_field dns_fields[] = {
    {"servers", "Servers", KIND_TEXTS, FATE_RUN, 0, 0, NULL, OF_EXEC},
    {"searches", "Searches", KIND_TEXTS, FATE_RUN, 0, 0, NULL, OF_EXEC},
    {"options", "Options", KIND_TEXTS, FATE_RUN, 0, 0, NULL, OF_EXEC},
};
static SCHEMA(dns, "dns", NULL, dns_fields);

static const struct jobspec_field cni_fields[] = {
    MAP("args", "Args", FATE_RUN),
};
static SCHEMA(cni, "cni", NULL, cni_fields);

#define OF_THE_NODE "ports are on the addresses of the node"

#define OF_THE_GROUP "write it in the network block of the group"
#define NETWORK_FIELDS                                                                             \
    TEXT("mode", "Mode", FATE_RUN),                                                                \
    BLOCKS(NULL, "ReservedPorts", FATE_RUN, &jobspec_port),                                        \
    BLOCKS("port", "DynamicPorts", FATE_RUN, &jobspec_port),                                       \
    KEPT("mbits", "MBits", WHOLE, WHOLE_MAX, NULL, "it has no meaning since Nomad 0.12"),          \
    KEPT("device", "Device", TEXT, 0, NULL, OF_THE_NODE),                                          \
    KEPT("cidr", "CIDR", TEXT, 0, NULL, OF_THE_NODE),                                              \
    KEPT("ip", "IP", TEXT, 0, NULL, OF_THE_NODE)

static const struct jobspec_field network_fields[] = {
    NETWORK_FIELDS,
    TEXT("hostname", "Hostname", FATE_RUN),
    BLOCK("dns", "DNS", FATE_RUN, &dns),
    BLOCK("cni", "CNI", FATE_RUN, &cni),
};
SCHEMA(jobspec_network, "network", NULL, network_fields);

static const struct jobspec_field task_network_fields[] = {
    NETWORK_FIELDS,
    KEPT("hostname", "Hostname", TEXT, 0, NULL, "the name is that of the group's network"),
    REFUSED("dns", "DNS", OF_THE_GROUP),
    REFUSED("cni", "CNI", OF_THE_GROUP),
};
static SCHEMA(task_network, "network", NULL, task_network_fields);

static const struct jobspec_field mount_options_fields[] = {
    TEXT("fs_type", "FSType", FATE_RUN),
    TEXTS("mount_flags", "MountFlags", FATE_RUN),
};
static SCHEMA(mount_options, "mount_options", NULL, mount_options_fields);

static const struct jobspec_field volume_fields[] = {
    TEXT(NULL, "Name", FATE_RUN),
    TEXT("type", "Type", FATE_RUN),
    TEXT("source", "Source", FATE_RUN),
    BOOL("read_only", "ReadOnly", FATE_RUN),
    BOOL("per_alloc", "PerAlloc", FATE_RUN),
    TEXT("access_mode", "AccessMode", FATE_RUN),
    TEXT("attachment_mode", "AttachmentMode", FATE_RUN),
    BLOCK("mount_options", "MountOptions", FATE_RUN, &mount_options),
    BOOL("sticky", "Sticky", FATE_RUN), /* of type csi it is warned of: warn.c */
};
SCHEMA(jobspec_volume, "volume", "Name", volume_fields);

static const struct jobspec_field volume_mount_fields[] = {
    TEXT("volume", "Volume", FATE_RUN),
    TEXT("destination", "Destination", FATE_RUN),
    BOOL("read_only", "ReadOnly", FATE_RUN),
    TEXT("propagation_mode", "PropagationMode", FATE_RUN),
    KEPT("selinux_label", "SELinuxLabel", TEXT, 0, NULL,
         "what is mounted keeps the labels that it has on the host"),
};
SCHEMA(jobspec_volume_mount, "volume_mount", NULL, volume_mount_fields);

static const struct jobspec_field device_affinity_fields[] = {
    TEXT("attribute", "LTarget", FATE_RUN),
    TEXT("operator", "Operand", FATE_RUN),
    TEXT("value", "RTarget", FATE_RUN),
    WHOLE("weight", "Weight", FATE_RUN, -100, 100),
    OPERAND("regexp"),
    OPERAND("semver"),
    OPERAND("set_contains"),
    OPERAND("set_contains_all"),
    OPERAND("set_contains_any"),
    OPERAND("version"),
};
static SCHEMA(device_affinity, "affinity", NULL, device_affinity_fields);

static const struct jobspec_field device_constraint_fields[] = {
    TEXT("attribute", "LTarget", FATE_RUN),
    TEXT("operator", "Operand", FATE_RUN),
    TEXT("value", "RTarget", FATE_RUN),
    OPERAND("is_set"),
    OPERAND("is_not_set"),
    OPERAND("regexp"),
    OPERAND("semver"),
    OPERAND("set_contains"),
    OPERAND("set_contains_all"),
    OPERAND("set_contains_any"),
    OPERAND("version"),
};
static SCHEMA(device_constraint, "constraint", NULL, device_constraint_fields);

static const struct jobspec_field device_fields[] = {
    TEXT(NULL, "Name", FATE_RUN),
    WHOLE("count", "Count", FATE_RUN, 0, NODE_DEVICES_MAX),
    BLOCKS("constraint", "Constraints", FATE_RUN, &device_constraint),
    BLOCKS("affinity", "Affinities", FATE_RUN, &device_affinity),
};
static SCHEMA(device, "device", "Name", device_fields);

static const struct jobspec_field resources_fields[] = {
    WHOLE("cpu", "CPU", FATE_RUN, 0, WHOLE_MAX),
    WHOLE("cores", "Cores", FATE_RUN, 0, NODE_CORES_MAX),
    WHOLE("memory", "MemoryMB", FATE_RUN, 0, WHOLE_MAX),
    WHOLE("memory_max", "MemoryMaxMB", FATE_RUN, SPEC_MEMORY_UNLIMITED, WHOLE_MAX),
    BLOCKS("device", "Devices", FATE_RUN, &device),
    KEPT("disk", "DiskMB", WHOLE, WHOLE_MAX, NULL,
         "disk space is asked for by the group: ephemeral_disk { size = MB }"),
    KEPT("iops", "IOPS", WHOLE, WHOLE_MAX, NULL, "it has no meaning since Nomad 0.9"),
    BLOCKS("network", "Networks", FATE_RUN, &task_network),
    REFUSED("numa", "NUMA", "remove it: cairn places no tasks on NUMA nodes yet"),
    REFUSED("secrets", "SecretsMB", "remove it: the secrets directory has a fixed size"),
};
SCHEMA(jobspec_resources, "resources", NULL, resources_fields);

static const struct jobspec_field logs_fields[] = {
    WHOLE("max_files", "MaxFiles", FATE_RUN, 1, 1000000),
    WHOLE("max_file_size", "MaxFileSizeMB", FATE_RUN, 1, 1000000),
    BOOL("disabled", "Disabled", FATE_RUN),
    REFUSED("enabled", "Enabled", "logs are on unless you write disabled = true"),
};
SCHEMA(jobspec_logs, "logs", NULL, logs_fields);

static const struct jobspec_field lifecycle_fields[] = {
    TEXT("hook", "Hook", FATE_RUN),
    BOOL("sidecar", "Sidecar", FATE_RUN),
};
SCHEMA(jobspec_lifecycle, "lifecycle", NULL, lifecycle_fields);

static const struct jobspec_field csi_plugin_fields[] = {
    TEXT("id", "ID", FATE_RUN),
    TEXT("type", "Type", FATE_RUN),
    TEXT("mount_dir", "MountDir", FATE_RUN),
    TEXT("stage_publish_base_dir", "StagePublishBaseDir", FATE_RUN),
    DURATION("health_timeout", "HealthTimeout", FATE_RUN),
};
static SCHEMA(csi_plugin, "csi_plugin", NULL, csi_plugin_fields);

#define OWNED "what is fetched belongs to the user of the task in any case"

static const struct jobspec_field artifact_fields[] = {
    TEXT("source", "GetterSource", FATE_RUN),
    TEXT("destination", "RelativeDest", FATE_RUN),
    TEXT("mode", "GetterMode", FATE_RUN),
    BOOL("insecure", "GetterInsecure", FATE_RUN),
    MAP("options", "GetterOptions", FATE_RUN),
    MAP("headers", "GetterHeaders", FATE_RUN),
    KEPT("chown", "Chown", BOOL, 0, NULL, OWNED),
};
static SCHEMA(artifact, "artifact", NULL, artifact_fields);

static const struct jobspec_field wait_fields[] = {
    DURATION("min", "Min", FATE_RUN),
    DURATION("max", "Max", FATE_RUN),
};
static SCHEMA(template_wait, "wait", NULL, wait_fields);

static const struct jobspec_field script_fields[] = {
    TEXT("command", "Command", FATE_RUN),
    TEXTS("args", "Args", FATE_RUN),
    DURATION("timeout", "Timeout", FATE_RUN),
    BOOL("fail_on_error", "FailOnError", FATE_RUN),
    REFUSED("run_on_first_render", "RunOnFirstRender",
            "remove it: a script runs when its template says something else than at the start"),
};
static SCHEMA(template_script, "change_script", NULL, script_fields);

static const struct jobspec_field template_fields[] = {
    TEXT("source", "SourcePath", FATE_RUN),
    TEXT("destination", "DestPath", FATE_RUN),
    TEXT("data", "EmbeddedTmpl", FATE_RUN),
    TEXT("change_mode", "ChangeMode", FATE_RUN),
    TEXT("change_signal", "ChangeSignal", FATE_RUN),
    BLOCK("change_script", "ChangeScript", FATE_RUN, &template_script),
    BOOL("once", "Once", FATE_RUN),
    DURATION("splay", "Splay", FATE_RUN),
    BLOCK("wait", "Wait", FATE_RUN, &template_wait),
    TEXT("perms", "Perms", FATE_RUN),
    WHOLE("uid", "Uid", FATE_RUN, -1, WHOLE_MAX),
    WHOLE("gid", "Gid", FATE_RUN, -1, WHOLE_MAX),
    TEXT("left_delimiter", "LeftDelim", FATE_RUN),
    TEXT("right_delimiter", "RightDelim", FATE_RUN),
    BOOL("env", "Envvars", FATE_RUN),
    BOOL("error_on_missing_key", "ErrMissingKey", FATE_RUN),
    KEPT("vault_grace", "VaultGrace", DURATION, DURATION_MAX, NULL,
         "it has no meaning since Nomad 0.11"),
};
static SCHEMA(template, "template", NULL, template_fields);

static const struct jobspec_field disk_fields[] = {
    WHOLE("size", "SizeMB", FATE_RUN, 10, WHOLE_MAX),
    BOOL("sticky", "Sticky", FATE_RUN),
    BOOL("migrate", "Migrate", FATE_RUN),
};
SCHEMA(jobspec_disk, "ephemeral_disk", NULL, disk_fields);

static const struct jobspec_field dispatch_payload_fields[] = {
    TEXT("file", "File", FATE_RUN),
};
static SCHEMA(dispatch_payload, "dispatch_payload", NULL, dispatch_payload_fields);

/* What else is said of them is for servers, who sign them. */
#define IDENTITY                                                                                   \
    BOOL("env", "Env", FATE_SERVED), BOOL("file", "File", FATE_SERVED),                            \
        TEXT("filepath", "Filepath", FATE_SERVED)
static const struct jobspec_field identity_fields[] = {IDENTITY};
static SCHEMA(identity, "identity", NULL, identity_fields);

static const struct jobspec_field named_identity_fields[] = {
    IDENTITY,
    TEXT("name", "Name", FATE_SERVED),
    TEXT("change_mode", "ChangeMode", FATE_SERVED),
    TEXT("change_signal", "ChangeSignal", FATE_SERVED),
    DURATION("ttl", "TTL", FATE_SERVED),
};
static SCHEMA(named_identity, "identity", NULL, named_identity_fields);

static const struct jobspec_field parameterized_fields[] = {
    TEXT("payload", "Payload", FATE_PLACE),
    TEXTS("meta_required", "MetaRequired", FATE_PLACE),
    TEXTS("meta_optional", "MetaOptional", FATE_PLACE),
};
static SCHEMA(parameterized, "parameterized", NULL, parameterized_fields);

static const struct jobspec_field periodic_fields[] = {
    BOOL("enabled", "Enabled", FATE_PLACE),
    TEXT("cron", "Spec", FATE_PLACE),
    TEXTS("crons", "Specs", FATE_PLACE),
    TEXT(NULL, "SpecType", FATE_PLACE),
    BOOL("prohibit_overlap", "ProhibitOverlap", FATE_PLACE),
    TEXT("time_zone", "TimeZone", FATE_PLACE),
};
static SCHEMA(periodic, "periodic", NULL, periodic_fields);

/* --- services --- */

static const struct jobspec_field check_restart_fields[] = {
    WHOLE("limit", "Limit", FATE_RUN, 0, WHOLE_MAX),
    DURATION("grace", "Grace", FATE_RUN),
    BOOL("ignore_warnings", "IgnoreWarnings", FATE_RUN), /* of Consul's checks only */
};
SCHEMA(jobspec_check_restart, "check_restart", NULL, check_restart_fields);

static const struct jobspec_field check_fields[] = {
    TEXT("name", "Name", FATE_RUN),
    TEXT("type", "Type", FATE_RUN),
    TEXT("port", "PortLabel", FATE_RUN),
    TEXT("path", "Path", FATE_RUN),
    TEXT("method", "Method", FATE_RUN),
    TEXT("protocol", "Protocol", FATE_RUN),
    TEXT("body", "Body", FATE_RUN),
    LISTS("header", "Header", FATE_RUN),
    DURATION("interval", "Interval", FATE_RUN),
    DURATION("timeout", "Timeout", FATE_RUN),
    TEXT("address_mode", "AddressMode", FATE_RUN),
    TEXT("on_update", "OnUpdate", FATE_RUN),
    BOOL("tls_skip_verify", "TLSSkipVerify", FATE_RUN),
    TEXT("task", "TaskName", FATE_RUN),
    BLOCK("check_restart", "CheckRestart", FATE_RUN, &jobspec_check_restart),
    /* Of Consul's checks only; services.c says so of others. */
    TEXT("command", "Command", FATE_RUN),
    TEXTS("args", "Args", FATE_RUN),
    TEXT("grpc_service", "GRPCService", FATE_RUN),
    BOOL("grpc_use_tls", "GRPCUseTLS", FATE_RUN),
    TEXT("initial_status", "InitialStatus", FATE_RUN),
    TEXT("notes", "Notes", FATE_RUN),
    TEXT("tls_server_name", "TLSServerName", FATE_RUN),
    WHOLE("success_before_passing", "SuccessBeforePassing", FATE_RUN, 0, WHOLE_MAX),
    WHOLE("failures_before_critical", "FailuresBeforeCritical", FATE_RUN, 0, WHOLE_MAX),
    WHOLE("failures_before_warning", "FailuresBeforeWarning", FATE_RUN, 0, WHOLE_MAX),
    KEPT("advertise", "Advertise", TEXT, 0, NULL, "checks ask where their address_mode says"),
    {"expose", "Expose", KIND_BOOL, FATE_SERVED, 0, 0, NULL,
     "write an expose block into the proxy of its service"},
    SERVER("Id"),
};
SCHEMA(jobspec_service_check, "check", NULL, check_fields);

static const struct jobspec_field weights_fields[] = {
    WHOLE("passing", "Passing", FATE_RUN, 0, UINT16_MAX),
    WHOLE("warning", "Warning", FATE_RUN, 0, UINT16_MAX),
};
static SCHEMA(weights, "weights", NULL, weights_fields);

/* --- Connect --- */

#define OF_ENTERPRISE "remove it: namespaces and partitions are those of Consul Enterprise"
#define NO_GATEWAYS "remove it: gateways of Consul Connect are not supported yet"

static const struct jobspec_field mesh_gateway_fields[] = {
    TEXT("mode", "Mode", FATE_RUN),
};
static SCHEMA(mesh_gateway, "mesh_gateway", NULL, mesh_gateway_fields);

static const struct jobspec_field upstream_fields[] = {
    TEXT("destination_name", "DestinationName", FATE_RUN),
    TEXT("destination_peer", "DestinationPeer", FATE_RUN),
    TEXT("destination_type", "DestinationType", FATE_RUN),
    TEXT("datacenter", "Datacenter", FATE_RUN),
    WHOLE("local_bind_port", "LocalBindPort", FATE_RUN, 0, UINT16_MAX),
    TEXT("local_bind_address", "LocalBindAddress", FATE_RUN),
    TEXT("local_bind_socket_path", "LocalBindSocketPath", FATE_RUN),
    TEXT("local_bind_socket_mode", "LocalBindSocketMode", FATE_RUN),
    BLOCK("mesh_gateway", "MeshGateway", FATE_RUN, &mesh_gateway),
    {"config", "Config", KIND_CONFIG, FATE_RUN, 0, 0, NULL, NULL},
    REFUSED("destination_namespace", "DestinationNamespace", OF_ENTERPRISE),
    REFUSED("destination_partition", "DestinationPartition", OF_ENTERPRISE),
};
SCHEMA(jobspec_upstream, "upstreams", NULL, upstream_fields);

static const struct jobspec_field expose_path_fields[] = {
    TEXT("path", "Path", FATE_RUN),
    TEXT("protocol", "Protocol", FATE_RUN),
    WHOLE("local_path_port", "LocalPathPort", FATE_RUN, 0, UINT16_MAX),
    TEXT("listener_port", "ListenerPort", FATE_RUN),
};
SCHEMA(jobspec_expose_path, "path", NULL, expose_path_fields);

static const struct jobspec_field expose_fields[] = {
    BLOCKS("path", "Paths", FATE_RUN, &jobspec_expose_path),
    REFUSED(NULL, "Path", "write Paths"),
};
static SCHEMA(expose, "expose", NULL, expose_fields);

static const struct jobspec_field proxy_fields[] = {
    TEXT("local_service_address", "LocalServiceAddress", FATE_RUN),
    WHOLE("local_service_port", "LocalServicePort", FATE_RUN, 0, UINT16_MAX),
    BLOCKS("upstreams", "Upstreams", FATE_RUN, &jobspec_upstream),
    BLOCK("expose", "Expose", FATE_RUN, &expose),
    {"config", "Config", KIND_CONFIG, FATE_RUN, 0, 0, NULL, NULL},
    REFUSED(NULL, "ExposeConfig", "write Expose"),
    REFUSED("transparent_proxy", "TransparentProxy",
            "remove it: transparent proxies are not supported yet"),
};
static SCHEMA(proxy, "proxy", NULL, proxy_fields);

static const struct jobspec_field sidecar_service_fields[] = {
    TEXTS("tags", "Tags", FATE_RUN),
    TEXT("port", "Port", FATE_RUN),
    BLOCK("proxy", "Proxy", FATE_RUN, &proxy),
    BOOL("disable_default_tcp_check", "DisableDefaultTCPCheck", FATE_RUN),
    MAP("meta", "Meta", FATE_RUN),
};
SCHEMA(jobspec_sidecar_service, "sidecar_service", NULL, sidecar_service_fields);

/* What the task of the sidecar is otherwise than it would be: connect.c puts it there. */
static const struct jobspec_field sidecar_task_fields[] = {
    TEXT("name", "Name", FATE_PLACE),
    TEXT("driver", "Driver", FATE_PLACE),
    TEXT("user", "User", FATE_PLACE),
    {"config", "Config", KIND_CONFIG, FATE_PLACE, 0, 0, NULL, NULL},
    MAP("env", "Env", FATE_PLACE),
    BLOCK("resources", "Resources", FATE_PLACE, &jobspec_resources),
    MAP("meta", "Meta", FATE_PLACE),
    DURATION("kill_timeout", "KillTimeout", FATE_PLACE),
    BLOCK("logs", "LogConfig", FATE_PLACE, &jobspec_logs),
    DURATION("shutdown_delay", "ShutdownDelay", FATE_PLACE),
    TEXT("kill_signal", "KillSignal", FATE_PLACE),
    BLOCKS("volume_mount", "VolumeMounts", FATE_PLACE, &jobspec_volume_mount),
    REFUSED("identity", "Identities", "remove it: servers sign identities"),
};
SCHEMA(jobspec_sidecar_task, "sidecar_task", NULL, sidecar_task_fields);

static const struct jobspec_field connect_fields[] = {
    BOOL("native", "Native", FATE_RUN),
    BLOCK("sidecar_service", "SidecarService", FATE_RUN, &jobspec_sidecar_service),
    BLOCK("sidecar_task", "SidecarTask", FATE_PLACE, &jobspec_sidecar_task),
    REFUSED("gateway", "Gateway", NO_GATEWAYS),
};
SCHEMA(jobspec_connect, "connect", NULL, connect_fields);

/* --- services, again --- */

#define NO_IDENTITY                                                                                \
    "remove it: servers sign identities, and this node is its own control plane"

/* By what its token of Consul is had; all else of it is for servers (spec/served/job.c). */
static const struct jobspec_field service_identity_fields[] = {
    TEXT("name", "Name", FATE_SERVED),
};
static SCHEMA(service_identity, "identity", NULL, service_identity_fields);

static const struct jobspec_field service_fields[] = {
    TEXT("name", "Name", FATE_RUN),
    TEXT("provider", "Provider", FATE_RUN),
    TEXT("port", "PortLabel", FATE_RUN),
    TEXT("address", "Address", FATE_RUN),
    TEXT("address_mode", "AddressMode", FATE_RUN),
    TEXTS("tags", "Tags", FATE_RUN),
    TEXTS("canary_tags", "CanaryTags", FATE_RUN),
    TEXT("task", "TaskName", FATE_PLACE),      /* each check has its own */
    TEXT("on_update", "OnUpdate", FATE_PLACE), /* likewise */
    BLOCK("check_restart", "CheckRestart", FATE_PLACE, &jobspec_check_restart), /* likewise */
    BLOCKS("check", "Checks", FATE_RUN, &jobspec_service_check),
    MAP("meta", "Meta", FATE_RUN), /* as the next three of Consul's services only: warn.c */
    MAP("canary_meta", "CanaryMeta", FATE_RUN),
    BOOL("enable_tag_override", "EnableTagOverride", FATE_RUN),
    BLOCK("weights", "Weights", FATE_RUN, &weights),
    KEPT("tagged_addresses", "TaggedAddresses", MAP, 0, NULL, "a service has one address"),
    KEPT("kind", "Kind", TEXT, 0, NULL, "services of Consul are of no other kind"),
    TEXT("cluster", "Cluster", FATE_PLACE), /* there is one: connect.c */
    BLOCK("connect", "Connect", FATE_RUN, &jobspec_connect),
    {"identity", "Identity", KIND_BLOCK, FATE_SERVED, 0, 0, &service_identity, NO_IDENTITY},
    SERVER("Id"),
    SERVER("Namespace"),
};
SCHEMA(jobspec_service, "service", NULL, service_fields);

#define ONLY_DISPATCHED                                                                            \
    "submit the parameterized job without it, and dispatch that: cairn job dispatch"

/* --- task, group, job --- */

static const struct jobspec_field consul_fields[] = {
    TEXT("cluster", "Cluster", FATE_PLACE),
    REFUSED("namespace", "Namespace", OF_ENTERPRISE),
    REFUSED("partition", "Partition", OF_ENTERPRISE),
};
SCHEMA(jobspec_consul, "consul", NULL, consul_fields);

static const struct jobspec_field task_consul_fields[] = {
    TEXT("cluster", "Cluster", FATE_SERVED),
    REFUSED("namespace", "Namespace", OF_ENTERPRISE),
    REFUSED("partition", "Partition", OF_ENTERPRISE),
};
static SCHEMA(task_consul, "consul", NULL, task_consul_fields);

static const struct jobspec_field task_fields[] = {
    TEXT(NULL, "Name", FATE_RUN),
    TEXT("driver", "Driver", FATE_RUN),
    TEXT("user", "User", FATE_RUN),
    {"config", "Config", KIND_CONFIG, FATE_RUN, 0, 0, NULL, NULL},
    MAP("env", "Env", FATE_RUN),
    MAP("meta", "Meta", FATE_RUN),
    BLOCK("resources", "Resources", FATE_RUN, &jobspec_resources),
    BLOCK("restart", "RestartPolicy", FATE_RUN, &jobspec_restart),
    BLOCK("logs", "LogConfig", FATE_RUN, &jobspec_logs),
    BLOCK("lifecycle", "Lifecycle", FATE_RUN, &jobspec_lifecycle),
    BOOL("leader", "Leader", FATE_RUN),
    DURATION("kill_timeout", "KillTimeout", FATE_RUN),
    TEXT("kill_signal", "KillSignal", FATE_RUN),
    DURATION("shutdown_delay", "ShutdownDelay", FATE_RUN),
    BLOCKS("action", "Actions", FATE_RUN, &action),
    KEPT("affinity", "Affinities", BLOCKS, 0, &jobspec_affinity, ONE_NODE),
    BLOCKS("constraint", "Constraints", FATE_PLACE, &jobspec_constraint),
    BLOCKS("artifact", "Artifacts", FATE_RUN, &artifact),
    {"consul", "Consul", KIND_BLOCK, FATE_SERVED, 0, 0, &task_consul, NO_IDENTITY},
    BLOCK("csi_plugin", "CSIPluginConfig", FATE_RUN, &csi_plugin),
    BLOCK("dispatch_payload", "DispatchPayload", FATE_RUN, &dispatch_payload),
    BLOCKS_SERVED("identity", "Identities", &named_identity, NO_IDENTITY),
    BLOCK_SERVED("Identity", &identity, NO_IDENTITY),
    {NULL, "ConsulIdentity", KIND_BOOL, FATE_SERVED, 0, 0, NULL, NO_IDENTITY}, /* served/job.c */
    TEXT("kind", "Kind", FATE_RUN),
    REFUSED("scaling", "ScalingPolicies",
            "remove it: what a task asks for is not scaled (in Nomad that needs Enterprise)"),
    REFUSED("schedule", "Schedule", "remove it: tasks run all the time"),
    REFUSED("secret", "Secrets", "remove it: there are no secret providers yet"),
    BLOCKS("service", "Services", FATE_RUN, &jobspec_service),
    BLOCKS("template", "Templates", FATE_RUN, &template),
    REFUSED("vault", "Vault", "remove it: cairn does not talk to Vault yet"),
    BLOCKS("volume_mount", "VolumeMounts", FATE_RUN, &jobspec_volume_mount),
};
SCHEMA(jobspec_task, "task", "Name", task_fields);

static const struct jobspec_field group_fields[] = {
    TEXT(NULL, "Name", FATE_RUN),
    WHOLE("count", "Count", FATE_PLACE, 0, JOB_COUNT_MAX),
    MAP("meta", "Meta", FATE_RUN),
    BLOCK("restart", "RestartPolicy", FATE_PLACE, &jobspec_restart), /* each task has its own */
    BLOCK("ephemeral_disk", "EphemeralDisk", FATE_RUN, &jobspec_disk),
    DURATION("shutdown_delay", "ShutdownDelay", FATE_RUN),
    DURATION("max_run_duration", "MaxRunDuration", FATE_RUN),
    BLOCKS("task", "Tasks", FATE_RUN, &jobspec_task),
    KEPT("affinity", "Affinities", BLOCKS, 0, &jobspec_affinity, ONE_NODE),
    BLOCKS("constraint", "Constraints", FATE_PLACE, &jobspec_constraint),
    KEPT("spread", "Spreads", BLOCKS, 0, &jobspec_spread, ONE_NODE),
    KEPT("update", "Update", BLOCK, 0, &jobspec_update, ROLLED),
    BLOCK("reschedule", "ReschedulePolicy", FATE_PLACE, &jobspec_reschedule),
    BLOCK("scaling", "Scaling", FATE_PLACE, &jobspec_scaling),
    KEPT("migrate", "Migrate", BLOCK, 0, &jobspec_migrate, ONE_NODE),
    KEPT("disconnect", "Disconnect", BLOCK, 0, &jobspec_disconnect, FOR_OTHERS),
    KEPT("max_client_disconnect", "MaxClientDisconnect", DURATION, DURATION_MAX, NULL,
         FOR_SERVERS),
    KEPT("stop_after_client_disconnect", "StopAfterClientDisconnect", DURATION, DURATION_MAX, NULL,
         NO_SERVER),
    KEPT("prevent_reschedule_on_lost", "PreventRescheduleOnLost", BOOL, 0, NULL, FOR_SERVERS),
    BLOCK("consul", "Consul", FATE_PLACE, &jobspec_consul),
    BLOCKS("network", "Networks", FATE_RUN, &jobspec_network),
    BLOCKS("service", "Services", FATE_RUN, &jobspec_service),
    REFUSED("vault", NULL, "remove it: cairn does not talk to Vault yet"),
    NAMED("volume", "Volumes", FATE_RUN, &jobspec_volume),
};
SCHEMA(jobspec_group_schema, "group", "Name", group_fields);

static const struct jobspec_field job_fields[] = {
    TEXT("id", "ID", FATE_RUN),
    TEXT("name", "Name", FATE_RUN),
    TEXT("namespace", "Namespace", FATE_RUN),
    TEXT("region", "Region", FATE_RUN),
    TEXT("type", "Type", FATE_RUN),
    TEXT(NULL, "ParentID", FATE_RUN),
    WHOLE("priority", "Priority", FATE_PLACE, 1, 100),
    KEPT("all_at_once", "AllAtOnce", BOOL, 0, NULL, "what fits is placed, and the rest waits"),
    TEXTS("datacenters", "Datacenters", FATE_PLACE),
    TEXT("node_pool", "NodePool", FATE_PLACE),
    MAP("meta", "Meta", FATE_RUN),
    BLOCKS("group", "TaskGroups", FATE_RUN, &jobspec_group_schema),
    {"task", NULL, KIND_TASK, FATE_RUN, 0, 0, &jobspec_task, NULL},
    KEPT("affinity", "Affinities", BLOCKS, 0, &jobspec_affinity, ONE_NODE),
    BLOCKS("constraint", "Constraints", FATE_PLACE, &jobspec_constraint),
    KEPT("spread", "Spreads", BLOCKS, 0, &jobspec_spread, ONE_NODE),
    KEPT("update", "Update", BLOCK, 0, &jobspec_update, ROLLED),
    BLOCK("reschedule", "Reschedule", FATE_PLACE, &jobspec_reschedule),
    KEPT("migrate", "Migrate", BLOCK, 0, &jobspec_migrate, ONE_NODE),
    KEPT("ui", "UI", BLOCK, 0, &ui, "there is no web UI yet"),
    REFUSED("consul_token", "ConsulToken", "remove it: the agent has its own token"),
    REFUSED(NULL, "ConsulNamespace", OF_ENTERPRISE),
    REFUSED(NULL, "Dispatched", ONLY_DISPATCHED),
    REFUSED("multiregion", "Multiregion", "remove it: this node stands alone in its region"),
    BLOCK("parameterized", "ParameterizedJob", FATE_PLACE, &parameterized),
    REFUSED(NULL, "Payload", ONLY_DISPATCHED),
    BLOCK("periodic", "Periodic", FATE_PLACE, &periodic),
    REFUSED(NULL, "Stop", "submit the job without it; to stop a job use: cairn job stop"),
    REFUSED("vault", NULL, "remove it: cairn does not talk to Vault yet"),
    REFUSED("vault_token", "VaultToken", "remove it: cairn does not talk to Vault yet"),
    REFUSED(NULL, "VaultNamespace", "remove it: cairn does not talk to Vault yet"),
    SERVER("CreateIndex"),
    SERVER("DispatchIdempotencyToken"),
    SERVER("JobModifyIndex"),
    SERVER("ModifyIndex"),
    SERVER("NomadTokenID"),
    SERVER("Stable"),
    SERVER("Status"),
    SERVER("StatusDescription"),
    SERVER("SubmitTime"),
    SERVER("Version"),
    SERVER("VersionTag"),
    SERVER("NextPeriodicLaunch"), /* cairn's own, as Warnings */
    SERVER("Warnings"), /* cairn's own: what it answers can be submitted again */
};
SCHEMA(jobspec_job, "job", "ID", job_fields);

/* clang-format on */

const struct jobspec_field *jobspec_by_hcl(const struct jobspec_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++) {
        if (schema->fields[i].hcl != NULL && text_equal(schema->fields[i].hcl, name))
            return &schema->fields[i];
    }
    return NULL;
}

const struct jobspec_field *jobspec_by_json(const struct jobspec_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->count; i++) {
        if (schema->fields[i].json != NULL && strcasecmp(schema->fields[i].json, name) == 0)
            return &schema->fields[i];
    }
    return NULL;
}

const struct jobspec_schema *jobspec_home_of(const struct jobspec_schema *schema, const char *name)
{
    static const struct jobspec_schema *const all[] = {
        &jobspec_task,
        &jobspec_group_schema,
        &jobspec_job,
        &jobspec_resources,
        &jobspec_restart,
        &jobspec_logs,
        &jobspec_lifecycle,
        &jobspec_disk,
        &jobspec_update,
        &jobspec_reschedule,
        &jobspec_migrate,
        &jobspec_network,
        &jobspec_port,
        &jobspec_volume,
        &jobspec_volume_mount,
        &jobspec_service,
        &jobspec_service_check,
        &jobspec_connect,
        &jobspec_sidecar_service,
        &jobspec_sidecar_task,
        &jobspec_upstream,
        &jobspec_expose_path,
    };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i] != schema && jobspec_by_hcl(all[i], name) != NULL)
            return all[i];
    }
    return NULL;
}
