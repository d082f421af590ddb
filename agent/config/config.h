/*
 * The agent's configuration, in the shape Nomad users know.
 *
 * Files in HCL or JSON, a directory of them in name order, then flags; the later wins.  Every
 * unknown key is an error with file, line and column.
 */
#ifndef CAIRN_AGENT_CONFIG_CONFIG_H
#define CAIRN_AGENT_CONFIG_CONFIG_H

#include "base/base.h"
#include "fsm/policy.h"
#include "io/host.h"
#include "io/http.h"
#include "server/nomad/nomad.h"
#include "spec/names.h"
#include "spec/spec.h"

#include <jansson.h>

enum { SERVERS_TEXT_SIZE = 4096 };

enum {
    PORTS_TEXT_SIZE = 512,
    HOST_NETWORKS_MAX = 32,
    HOST_VOLUMES_MAX = 1024,
    CSI_PLUGINS_MAX = 64,
    PLUGINS_MAX = 64,
    SOCKET_PATH_SIZE = 108, /* of a socket's address */
    CORES_TEXT_MAX = 256
};

/* A client.host_network block: addresses of this node under one name. */
struct host_network {
    char name[SPEC_PORT_LABEL_SIZE];
    char cidr[256];     /* which addresses, "" is any: networks with commas between */
    char interface[32]; /* of which interface, "": of any */
    char reserved_ports[PORTS_TEXT_SIZE];
};

/* A client.csi_plugin block: a storage plugin that somebody else runs, and where it answers. */
struct config_csi_plugin {
    char id[PLUGIN_NAME_SIZE];
    char type[16]; /* as in a job's block */
    char socket[SOCKET_PATH_SIZE];
    char base_dir[SPEC_PLACE_SIZE]; /* stage_publish_base_dir, "": as the host has it */
};

struct config_csi_plugins {
    struct config_csi_plugin *items;
    size_t count, size;
};

/* The consul block: the agent of Consul that services are registered with. */
struct config_consul {
    bool used;                     /* there is such a block */
    char address[256];             /* "127.0.0.1:8500", "https://HOST:PORT" or "unix:///PATH" */
    char url[300];                 /* of that, derived */
    char socket[SOCKET_PATH_SIZE]; /* the same, "": it is asked over the network */
    char token[256]; /* "": none; from token_file or CONSUL_HTTP_TOKEN if it is not given */
    char token_file[PATH_SIZE];
    bool ssl, verify_ssl;
    char ca_file[PATH_SIZE], cert_file[PATH_SIZE], key_file[PATH_SIZE], grpc_ca_file[PATH_SIZE];
    char grpc_address[256]; /* HOST:PORT or "unix:///PATH", "": its port at the host of address */
    /* By which identities of services and of tasks get tokens. */
    char service_auth_method[256], task_auth_method[256];
    bool client_auto_join; /* servers are looked for there when none is known that answers */
    char server_service_name[256]; /* that they are registered by, default "nomad" */
    bool auto_advertise; /* this node's API is registered there, by these names: Nomad's */
    char client_service_name[256], client_http_check_name[256];
    bool share_ssl;      /* tasks that are native in the mesh get the files of TLS */
    uint64_t timeout_ms; /* of one call, default 5 s */
};

/* A plugin block of a program of its own, in plugin_dir. */
struct config_plugin {
    char name[PLUGIN_NAME_SIZE]; /* of its file */
    char **arguments;            /* NULL-terminated; owned */
    json_t *config;              /* its config block, NULL: none; owned, may be secret */
};

struct config_plugins {
    struct config_plugin *items;
    size_t count, size;
};

struct config {
    char data_dir[PATH_SIZE];
    char alloc_dir[PATH_SIZE]; /* default <data_dir>/alloc */
    char state_dir[PATH_SIZE]; /* default <data_dir>/client; journal/ and shim/ are in it */
    char shim_path[PATH_SIZE]; /* default: cairn-shim beside this program */
    char bind_address[64];     /* default 127.0.0.1; "": only the UNIX socket */
    char http_address[64];     /* addresses.http: in place of that, which is for all in Nomad */
    bool has_addresses;        /* it was given */
    bool tls_http;             /* tls.http: the API on the network speaks TLS */
    bool tls_verifies;         /* tls.verify_https_client */
    char tls_ca_file[PATH_SIZE], tls_cert_file[PATH_SIZE], tls_key_file[PATH_SIZE];
    char tls_min_version[8];                /* "tls12", the default, or "tls13" */
    char socket_path[108];                  /* the UNIX socket in it, "": none */
    char socket_user[64], socket_group[64]; /* unix_sockets: names or ids; "": the agent's */
    char socket_mode[8];                    /* of it: "0660", default "0600" */
    uint16_t http_port;                     /* default 4646 */
    char allowed_hosts[512]; /* names that requests may call us, with spaces between */
    char name[256];          /* default: host name */
    char region[64];         /* default global */
    char datacenter[64];     /* default dc1 */
    char node_class[64];
    char node_pool[129]; /* of the servers that the node joins; default, and alone: "default" */
    /* client.servers, or server_join { retry_join }: "host:port" of each, commas between; "": the
     * node stands alone.  A port that is not said is 4647. */
    char servers[SERVERS_TEXT_SIZE];
    bool tls_rpc;             /* tls.rpc: servers are spoken to by TLS, default false */
    bool tls_verifies_server; /* tls.verify_server_hostname: by their name, too */
    char cgroup_parent[64];   /* client.cgroup_parent, default "cairn" */
    char log_level[16];       /* default INFO */
    char log_file[PATH_SIZE]; /* default: standard error */
    bool log_json;
    char driver_allowlist[512]; /* client.options "driver.allowlist": names, commas between */
    char driver_denylist[512];  /* "driver.denylist" */
    char user_denylist[512];    /* "user.denylist", default Nomad's: root,Administrator */
    bool exec_enabled;          /* plugin "exec" { config { enabled } }: default true */
    bool raw_exec_enabled;      /* plugin "raw_exec" { config { enabled } }: default true here */
    bool raw_exec_no_cgroups;
    char raw_exec_denied_env[2048]; /* its denied_envvars, commas between */
    char raw_exec_denied_uids[512], raw_exec_denied_gids[512]; /* its denied_host_uids, _gids */
    char exec_denied_uids[512], exec_denied_gids[512];
    uint64_t exec_allow_caps; /* plugin "exec" { config { allow_caps } }: bits, default Nomad's */
    bool exec_host_pids, exec_host_ipc; /* its default_pid_mode, default_ipc_mode are "host" */
    bool java_enabled;                  /* plugin "java": as of exec */
    uint64_t java_allow_caps;
    bool java_host_pids, java_host_ipc;
    /* plugin "docker" { config { ... } }, each as it is there. */
    char docker_endpoint[128];          /* default unix:///var/run/docker.sock */
    char docker_auth_config[PATH_SIZE]; /* auth { config }: credentials for registries, "": none */
    char docker_auth_helper[64];        /* auth { helper }: docker-credential-<this>, "": none */
    char docker_runtimes[512];          /* allow_runtimes, commas between; default runc,nvidia */
    uint64_t docker_allow_caps;
    uint64_t docker_pull_timeout_ms, docker_pull_activity_timeout_ms;
    uint32_t docker_pids_limit; /* 0: none */
    bool docker_privileged, docker_volumes, docker_no_logs;
    bool docker_collects_images;    /* gc { image }, default true */
    uint64_t docker_image_delay_ms; /* gc { image_delay } */
    /* gc { dangling_containers { enabled, dry_run, period, creation_grace } } */
    bool docker_dangling_removed, docker_dangling_said;
    uint64_t docker_dangling_period_ms, docker_dangling_grace_ms;
    bool mock_enabled;    /* plugin "mock_driver" { config { enabled } }: default false */
    bool mock_shuts_down; /* its shutdown_periodic_after */
    uint64_t mock_shutdown_after_ms; /* its shutdown_periodic_duration */
    struct spec_pairs chroot_env;    /* client.chroot_env, default Nomad's; owned */
    uint64_t gc_interval_ms;         /* client.gc_interval: the disk is measured, default 1 min */
    uint32_t gc_max_allocs;          /* terminal allocs kept, client.gc_max_allocs, default 50 */
    /* client.gc_{disk,inode}_usage_threshold: fewer are kept beyond that.  Default 95: Nomad's are
     * 80 and 70, but there the servers still know what a client has collected. */
    uint32_t gc_disk_percent, gc_inode_percent;
    uint32_t journal_max_events;             /* client: that the history keeps, default 1,000,000 */
    uint32_t gc_parallel_destroys;           /* client: so many at once then, default 2 */
    uint64_t max_kill_timeout_ms;            /* client.max_kill_timeout, default 30 s */
    uint32_t cpu_total_compute;              /* client: MHz in place of what was found, 0: that */
    uint32_t memory_total_mb, disk_total_mb; /* the same */
    struct spec_pairs meta;                  /* client.meta; owned */
    char network_interface[32];              /* client; default: that of the default route */
    uint16_t min_dynamic_port, max_dynamic_port; /* client; default 20000 to 32000 */
    char reserved_ports[PORTS_TEXT_SIZE];        /* client.reserved: "22,8000-8080" */
    char reserved_cores[CORES_TEXT_MAX];         /* the same: "0,2-3", given to no task */
    uint32_t reserved_cpu_mhz, reserved_memory_mb,
        reserved_disk_mb; /* the same: cpu, memory, disk */
    struct host_network host_networks[HOST_NETWORKS_MAX];
    size_t host_networks_count;
    struct spec_node_volumes host_volumes; /* client.host_volume; owned */
    char host_plugin_dir[PATH_SIZE];  /* client.host_volume_plugin_dir: programs that make volumes,
                                         default <data_dir>/host_volume_plugins */
    char host_volumes_dir[PATH_SIZE]; /* client.host_volumes_dir: where they make them, default
                                         <data_dir>/host_volumes */
    struct config_csi_plugins csi_plugins;     /* client.csi_plugin; owned */
    char plugin_dir[PATH_SIZE];                /* default <data_dir>/plugins */
    struct config_plugins plugins;             /* plugin, of programs in it; owned */
    char cni_path[PATH_SIZE];                  /* client: where CNI plugins are, colons between */
    char cni_config_dir[PATH_SIZE];            /* client: files of networks for mode "cni/NAME" */
    char bridge_name[16];                      /* client.bridge_network_name, default "nomad" */
    char bridge_subnet[ADDRESS_SIZE + 4];      /* client.bridge_network_subnet, default Nomad's */
    char bridge_subnet_ipv6[ADDRESS_SIZE + 4]; /* "": none */
    bool bridge_hairpin;                       /* client.bridge_network_hairpin_mode */
    bool bind_wildcard;         /* client.bind_wildcard_default_host_network, default true */
    char fetch_path[PATH_SIZE]; /* cairn-fetch, beside the shim */
    char parse_path[PATH_SIZE]; /* cairn-parse, likewise */
    /* client.artifact: http_read_timeout, http_max_size, decompression_size_limit and
     * decompression_file_count_limit, set_environment_variables. */
    uint64_t artifact_timeout_ms, artifact_bytes_max, artifact_unpacked_max;
    uint32_t artifact_entries_max;
    char artifact_variables[1024];
    /* acl.token_min_expiration_ttl and _max_: of tokens that end; default Nomad's. */
    uint64_t token_min_ms, token_max_ms;
    /* acl.token_ttl and so on: how long is believed what servers say of tokens, their policies and
     * roles, which is asked all at once: the shortest counts.  Default 30 s each. */
    uint64_t token_ttl_ms, policy_ttl_ms, role_ttl_ms;
    char bootstrap_secret_file[PATH_SIZE]; /* acl: of the first token, "": who asks first has it */
    bool acl_enabled;                      /* acl.enabled: requests need tokens, default false */
    bool publishes_node;                   /* telemetry.publish_node_metrics, default true */
    bool publishes_allocs;     /* telemetry.publish_allocation_metrics: of each task that runs */
    bool hides_hooks;          /* telemetry.disable_allocation_hook_metrics, default false */
    bool hides_dispatched;     /* telemetry.disable_dispatched_job_summary_metrics, default false */
    bool publishes_prometheus; /* telemetry.prometheus_metrics, default true */
    struct config_consul consul;
    bool take_over, new_node; /* flags only: what a copied directory is to be (home.h) */
};

void config_defaults(struct config *config);

/* Reads a file or a directory of *.hcl and *.json. */
int config_read(struct config *config, const char *path, struct err *err);

/* Makes paths absolute, fills in what is derived, checks what must hold. */
int config_finish(struct config *config, struct err *err);
void config_free(struct config *config);

/* True if the node takes its work from servers. */
bool config_has_servers(const struct config *config);

/* The servers of CONFIG, each "host:port": how many, at most NOMAD_SERVERS_MAX of one that is
 * finished.  RET_SERVERS points into RET_TEXT. */
size_t config_servers(const struct config *config, char ret_text[SERVERS_TEXT_SIZE],
                      const char *ret_servers[NOMAD_SERVERS_MAX]);

/* SERVER, which is "host", "host:port", "v6", "[v6]" or "[v6]:port", with its port; false: it is
 * none of these. */
bool config_server(const char *server, char to[NOMAD_ADDRESS_SIZE]);

/* What of tls is for the HTTP server, borrowed from CONFIG; false: it speaks plain HTTP. */
bool config_tls(const struct config *config, struct http_tls *ret_tls);

/* Whose the UNIX socket is to be, and who may connect; ERR_INVALID: nobody is called so. */
int config_admission(const struct config *config, struct http_admission *ret_admits,
                     struct err *err);

/* Adds the ports of TEXT, as in "22,8000-8080", to SET.  NULL, or why TEXT is none. */
const char *config_ports(const char *text, struct port_set *set);

/* Adds the cores of TEXT, as in "0,2-3", to SET.  NULL, or why TEXT is none. */
const char *config_cores(const char *text, struct core_set *set);

/* True if one of the networks of CIDR, as in "10.0.0.0/8,fd00::/8", holds the address IP. */
bool config_cidr_holds(const char *cidr, const char *ip);

#endif
