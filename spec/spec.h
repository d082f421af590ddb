/*
 * What was asked for: one alloc, its group and its tasks, as plain values.
 *
 * Made by spec/alloc/decode.c from the normalised JSON that the journal's `spec` table holds, read
 * by the hooks and drivers that carry it out.  The machines never see it: what they decide by
 * (restart policy, roles, limits) reaches them as the payload of their first event.
 *
 * Every pointer is owned by the arena the spec was decoded into and lives as long as it.
 * Durations are milliseconds, sizes say their unit.  Texts are never NULL; "" means "not given".
 */
#ifndef CAIRN_SPEC_SPEC_H
#define CAIRN_SPEC_SPEC_H

#include "base/err.h"
#include "fsm/csi.h"
#include "fsm/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct spec_pair {
    const char *key;
    const char *value;
};

struct spec_pairs {
    struct spec_pair *items;
    size_t count;
};

struct spec_texts {
    const char **items;
    size_t count;
};

/* Nomad's restart block; modes "fail" and "delay". */
struct spec_restart {
    uint32_t attempts;
    uint64_t interval_ms;
    uint64_t delay_ms;
    bool mode_delay;
};

enum { SPEC_MEMORY_UNLIMITED = -1 };

struct spec_resources {
    uint32_t cpu_mhz; /* also that of its cores, if it was given any */
    uint32_t memory_mb;
    int32_t memory_max_mb; /* 0: no more than memory_mb; or SPEC_MEMORY_UNLIMITED */
    uint32_t cores;
    const uint16_t *core_ids; /* those that it was given, in order; so many */
};

/* A processor that a task is given for itself. */
struct spec_core {
    const char *task;
    uint16_t id;
};

struct spec_cores {
    struct spec_core *items; /* those of one task together, in order */
    size_t count;
    uint64_t mhz; /* of each */
};

struct spec_logs {
    uint32_t max_files;        /* default 10 */
    uint32_t max_file_size_mb; /* default 10 */
    bool disabled;
};

/* One time that an alloc before this one had failed and another was made for it. */
struct spec_rescheduled {
    int64_t unix_ns;
    uint64_t delay_ns;    /* that was waited */
    const char *alloc_id; /* which had failed */
};

/* What a payload sees of the host's files (Nomad's FSIsolation). */
enum spec_isolation {
    ISOLATION_NONE,   /* all: its directories have the host's paths */
    ISOLATION_CHROOT, /* a tree of its own on the host, with the host's environment */
    ISOLATION_IMAGE,  /* nothing of the host */
};

/* What a driver is to those who make its tasks ready; its own definition says it. */
struct spec_driver {
    const char *name;
    enum spec_isolation isolation;
    bool checks_user;    /* the denylist of users applies: Nomad's user.checked_drivers */
    const char *user;    /* whose a task is that names none; "": the daemon's own */
    bool mounts;         /* its tasks can be given mounts: Nomad's MountConfigs */
    bool enters_network; /* of its alloc, if that is not the host's: Nomad's NetIsolationModes */
    bool signals;        /* its tasks can be sent signals, besides the one that ends them */
    bool runs_commands;  /* beside what its tasks run: Nomad's Exec */
};

/* Whether what is mounted later comes through a mount of a task: nothing, what the host mounts,
 * or what either of them does. */
enum spec_propagation { PROPAGATION_PRIVATE, PROPAGATION_HOST_TO_TASK, PROPAGATION_BIDIRECTIONAL };

/* Whose a volume is: of the node's configuration, or of a storage plugin. */
enum spec_volume_type { VOLUME_HOST, VOLUME_CSI };

/* A volume that the group asks for. */
struct spec_volume {
    enum spec_volume_type type;
    const char *name;   /* that the group gives it */
    const char *source; /* that it has on the node, or its id, with the alloc's index if each has
                           its own */
    bool read_only;     /* asked for */
    /* Of type csi only. */
    enum csi_access access;
    enum csi_attachment attachment;
    const char *fs_type;           /* "": as the volume says */
    struct spec_texts mount_flags; /* of a decoded alloc only; may be secret: not to be shown */
    bool has_mount_flags;          /* false: as the volume says */
    const char *plugin;            /* given: whose it is; "" before, or a server has not said it */
};

/* A directory or a file of the node that its configuration gives a name. */
struct spec_node_volume {
    char name[SPEC_NAME_SIZE];
    char path[1024]; /* absolute */
    bool read_only;  /* for every task */
};

struct spec_node_volumes {
    struct spec_node_volume *items;
    size_t count, size;
};

/* What a task is that is a storage plugin. */
struct spec_csi_plugin {
    const char *id;
    enum plugin_type type;
    const char *mount_dir;              /* where it makes its socket, in a root of its own */
    const char *stage_publish_base_dir; /* where it has its volumes, in the same way */
    uint64_t health_timeout_ms;
};

/* Where a task wants to have a volume. */
struct spec_volume_mount {
    const char *volume;      /* its name in the group */
    const char *destination; /* not yet interpolated */
    bool read_only;
    enum spec_propagation propagation;
};

/* What an artifact becomes. */
enum spec_artifact_mode {
    ARTIFACT_ANY,       /* what an archive holds, in the directory; of all else one file in it */
    ARTIFACT_FILE,      /* the file at the destination */
    ARTIFACT_DIRECTORY, /* what an archive holds, in the directory */
};

/* Something that is fetched before a task starts.  Texts are not yet interpolated. */
struct spec_artifact {
    const char *source;
    const char *destination; /* in the task's directory */
    enum spec_artifact_mode mode;
    bool insecure;                      /* whoever answers is believed */
    struct spec_pairs options, headers; /* may be secret: not to be shown */
};

/* What a task is told of a template that says something else while it runs. */
enum spec_change { SPEC_CHANGE_NOOP, SPEC_CHANGE_SIGNAL, SPEC_CHANGE_RESTART, SPEC_CHANGE_SCRIPT };

/* A command that runs in the task. */
struct spec_script {
    uint8_t number; /* among those of its task, below SPEC_SCRIPTS_MAX */
    const char *command;
    struct spec_texts arguments;
    uint64_t timeout_ms;
    bool fails_task; /* where it cannot be run, takes too long, or exits with another code than 0 */
};

/* A file that is rendered before each start of a task, and again when what it reads changes. */
struct spec_template {
    const char *source, *data; /* the file or the text that it is; one is "" */
    const char *destination;   /* source and it are in the task's directory, not interpolated yet */
    const char *left, *right;  /* delimiters */
    uint32_t mode;
    int64_t uid, gid; /* -1: those of the task's user */
    bool env;         /* its lines are variables of the task's environment, too */
    bool strict;      /* a map without a key is an error */
    bool once;        /* before starts only */
    enum spec_change change;
    const char *signal;                /* of that change */
    struct spec_script script;         /* likewise */
    uint64_t splay_ms;                 /* the longest that it waits to be told */
    uint64_t wait_min_ms, wait_max_ms; /* for what it reads to settle, 0: the default */
};

/* What of the host a task is given to see; whoever made it so, drivers mount it. */
struct spec_mount {
    const char *host;   /* absolute path of a directory or a file */
    const char *inside; /* where the task has it: absolute, plain (spec/names.h) */
    bool read_only;
    enum spec_propagation propagation;
    bool is_mount;    /* HOST is one, of a volume: without that it is only the place for it */
    bool is_node;     /* HOST is a device, to be used */
    bool has_devices; /* in HOST are the host's devices, to be used: for whoever may mount */
};

/* Something of the host that a task gets with devices that it was given. */
struct spec_reserved {
    const char *host, *inside; /* absolute paths */
    const char *permissions;   /* of a device's node: of "rwm"; NULL: it is a directory or a file */
    bool read_only;            /* of these */
};

struct spec_reservation {
    struct spec_pairs envs; /* variables for it */
    struct spec_reserved *items;
    size_t count;
};

struct spec_mounts {
    struct spec_mount *items; /* none is below a later one */
    size_t count;
};

/* A port of the host that a group or one of its tasks asks for, and then has. */
struct spec_port {
    const char *label;
    const char *task;         /* whose resources ask for it; "": the group's network does */
    const char *host_network; /* asked for: one that the node's configuration names */
    const char *host_ip;      /* given: the address it is on, "" before */
    uint16_t value;           /* the number; asked for: 0 is any */
    int32_t to;               /* of the network namespace, as the job says; 0: none, -1: value */
    bool is_static;           /* the job says which */
};

struct spec_ports {
    struct spec_port *items;
    size_t count; /* at most SPEC_PORTS_MAX */
};

/* How a service, or one of its checks, comes to the address that it has. */
enum spec_address_mode { ADDRESS_AUTO, ADDRESS_HOST, ADDRESS_ALLOC };

/* What is asked of who offers a service, again and again; texts are not yet interpolated. */
enum spec_check_type { CHECK_HTTP, CHECK_TCP, CHECK_GRPC, CHECK_SCRIPT };

struct spec_check {
    enum spec_check_type type;
    const char *name;
    const char *task; /* of a group's service: whose it is; "": nobody's */
    const char *port; /* a label of a port of the group, or a number; "": the service's */
    enum spec_address_mode address_mode;
    bool has_address_mode;                       /* the job says it */
    const char *path, *method, *protocol, *body; /* of type http */
    struct spec_pairs headers;                   /* a name comes once for each value that it has */
    bool tls_skip_verify;
    uint64_t interval_ms, timeout_ms;
    bool ready_only;        /* no deployment waits for it */
    uint32_t restart_limit; /* of check_restart, 0: it restarts nobody */
    uint64_t restart_grace_ms;

    /* Of services of Consul only, whose agent asks, but for scripts. */
    bool warnings_pass;            /* to a deployment: on_update is "ignore_warnings" */
    bool restart_ignores_warnings; /* of its check_restart */
    const char *command;           /* of type script */
    struct spec_texts arguments;
    const char *grpc_service; /* of type grpc */
    bool grpc_tls;
    const char *initial_status, *notes, *tls_server_name; /* "": not given */
    uint32_t before_passing, before_critical, before_warning;
};

/* What a sidecar reaches for its tasks, at an address of theirs.  Texts are not yet interpolated.
 */
struct spec_upstream {
    const char *name, *peer, *type, *datacenter; /* of the service there */
    const char *address;                         /* "": loopback */
    uint16_t port;                               /* 0: it is a socket */
    const char *socket, *socket_mode;
    const char *mesh_gateway; /* the mode, "": as Consul's configuration has it */
    const char *config_json;  /* an object */
};

/* A path of a service that its sidecar lets anybody ask for. */
struct spec_exposed {
    const char *path, *protocol;
    const char *listener; /* the label of a port of the group */
    uint16_t port;        /* that the service has it at */
};

/* How a service of Consul takes part in the mesh.  Texts are not yet interpolated. */
struct spec_connect {
    bool native;      /* the task does all itself; else it has a sidecar, and all below */
    const char *port; /* the label of its port */
    struct spec_texts tags;
    struct spec_pairs meta;
    bool no_tcp_check;
    const char *service_address; /* where the sidecar reaches the service, "": loopback */
    uint16_t service_port;       /* 0: the service's own */
    const char *config_json;     /* an object */
    struct spec_upstream *upstreams;
    size_t upstreams_count;
    struct spec_exposed *exposed;
    size_t exposed_count;
};

/* What a task is to a service of its group that is in the mesh. */
enum spec_connect_kind { CONNECT_NOTHING, CONNECT_NATIVE, CONNECT_PROXY };

/* Where a service is registered. */
enum spec_provider { PROVIDER_NOMAD, PROVIDER_CONSUL };

/* What a group, or one of its tasks, offers to others under a name. */
struct spec_service {
    enum spec_provider provider;
    const char *task; /* whose it is; "": the group's */
    const char *name;
    const char *port;    /* a label of a port of the group, or a number, "": none */
    const char *address; /* that the job gives, "": by the mode */
    enum spec_address_mode address_mode;
    struct spec_texts tags, canary_tags;
    struct spec_pairs meta, canary_meta;     /* of Consul only, as the rest */
    bool tag_override;                       /* enable_tag_override */
    uint32_t weight_passing, weight_warning; /* 0: not given */
    const struct spec_connect *connect;      /* NULL: it takes no part in the mesh */
    const char *identity; /* that gets it a token of Consul, by which it is registered; "": none */
    struct spec_check *checks;
    size_t checks_count; /* at most SPEC_CHECKS_MAX of an alloc */
};

/* The token by which a task is known to servers, and how it comes to see it. */
struct spec_identity {
    const char *token; /* a secret: never printed, "": none that it sees */
    bool env;          /* as NOMAD_TOKEN */
    const char *file;  /* beneath the task's directory, "": in none */
};

/* The name of that by which a task gets a token of Consul. */
#define SPEC_CONSUL_IDENTITY "consul_default"

/* An identity that has a name: its token is signed when it is asked for, and for a time. */
struct spec_named_identity {
    const char *name;
    bool env;                /* as NOMAD_TOKEN_<name> */
    const char *file;        /* as of spec_identity */
    enum spec_change change; /* what the task is told of a new one */
    const char *signal;      /* of that change */
    uint64_t ttl_ms;         /* how long one is good for, 0: for ever */
};

/* Whose token is asked for: an identity of a task, or of a service. */
struct spec_bearer {
    const char *identity; /* its name */
    const char *workload; /* that of the task; or of the service, as its job has it */
    const char *service;  /* as it is offered, interpolated; NULL: it is a task's */
};

struct spec_signed {
    const char *token;       /* a secret */
    int64_t expires_unix_ns; /* 0: never */
};

/* TOKENS are those of the bearers that were asked for, in their order, borrowed for the call; NULL:
 * ERR says why, and whether asking again may help. */
typedef void spec_signed_cb(void *ctx, const struct spec_signed *tokens, const struct err *err);

/* Where the disk of an alloc is that was on another node; borrowed for the call.  Texts are never
 * NULL. */
struct spec_disk_place {
    const char *node, *address; /* of its API: "host:port", as the servers have it */
    bool tls;
    const char *token; /* by which it knows who may have it: a secret; "": none */
};

/* PLACE is NULL with an ERR. */
typedef void spec_disk_cb(void *ctx, const struct spec_disk_place *place, const struct err *err);

/* A command that users run in the task by its name. */
struct spec_action {
    const char *name, *command;
    struct spec_texts arguments;
};

struct task_spec {
    const char *name;
    const char *driver;
    const char *user;
    const char *config_json; /* the driver's own block, an object, not yet interpolated */
    struct spec_pairs env;   /* not yet interpolated */
    struct spec_pairs meta;  /* job, group and task meta merged, the task winning */
    struct spec_restart restart;
    struct spec_resources resources;
    const char *devices_json; /* that it was given: an array (spec/devices.h); NULL: none */
    struct spec_logs logs;
    struct spec_volume_mount *volume_mounts;
    size_t volume_mounts_count;         /* at most SPEC_MOUNTS_MAX */
    struct spec_csi_plugin *csi_plugin; /* NULL: it is none */
    enum spec_connect_kind connect;
    const char *connect_service; /* the name of that service, not interpolated */
    const char *payload_file;    /* in `local`, for the alloc's payload; "": nowhere */
    struct spec_identity identity;
    struct spec_named_identity *identities;
    size_t identities_count; /* at most SPEC_IDENTITIES_MAX */
    bool has_consul_token;   /* it gets one by its identity SPEC_CONSUL_IDENTITY */
    struct spec_template *templates;
    size_t templates_count; /* at most SPEC_TEMPLATES_MAX */
    struct spec_artifact *artifacts;
    size_t artifacts_count; /* at most SPEC_ARTIFACTS_MAX */
    struct spec_action *actions;
    size_t actions_count;     /* at most SPEC_ACTIONS_MAX */
    const char *kill_signal;  /* "SIGTERM", or "" for the driver's default */
    uint64_t kill_timeout_ms; /* default 5 s */
    uint64_t shutdown_delay_ms;
    enum spec_lifecycle lifecycle;
    bool sidecar;
    bool leader;
};

struct alloc_spec {
    const char *id;   /* UUID */
    const char *name; /* job.group[index] */
    const char *eval_id;
    const char *namespace;
    const char *job_id;
    const char *job_name;
    const char *job_parent_id;
    const char *job_type; /* service, batch, system, sysbatch */
    const char *payload;  /* that the job was dispatched with, in base64; "": none */
    uint64_t job_version;
    const char *region;
    const char *datacenter; /* of the node it was placed on */
    const char *group;
    uint32_t index;
    struct spec_pairs meta; /* of job and group merged, the group winning */
    uint64_t group_shutdown_delay_ms;
    uint64_t max_run_ms;    /* the group's max_run_duration, 0: none */
    uint64_t stop_after_ms; /* without a word of its servers it ends then, 0: never */
    uint32_t ephemeral_disk_mb;
    bool disk_sticky, disk_migrate; /* either: it takes over that of the alloc before it */
    int64_t create_time_unix_ns;
    uint64_t create_index;       /* of the commit that placed it, 0: not known */
    uint64_t modify_index;       /* of the one that stored its newest version, 0: it has one only */
    const char *previous_id;     /* of the alloc whose place it takes, or "" */
    struct spec_texts preempted; /* ids of those that it made give way, whose end it waits for */
    const char *deployment_id;   /* which waits to hear whether it is healthy, or "" */
    bool canary; /* of a server's deployment: those of this node's own it knows itself */
    uint64_t min_healthy_ms, healthy_deadline_ms; /* by which it is, of one in a deployment */
    bool manual_health;                           /* and only a user says so */
    bool task_health; /* and only its tasks do, the checks of its services do not */
    struct spec_rescheduled *rescheduled; /* the newest of them, the oldest first */
    size_t rescheduled_count;
    bool has_network;         /* the group says something about it */
    const char *network_mode; /* "" or "host": that of the host; "bridge", "none", "cni/NAME" */
    /* None of these is interpolated yet. */
    const char *hostname; /* of a network of its own */
    struct spec_pairs cni_args;
    bool has_dns; /* the job says how tasks find names */
    struct spec_texts dns_servers, dns_searches, dns_options;
    struct spec_ports ports; /* static ones first, the group's before its tasks' */
    struct spec_volume *volumes;
    size_t volumes_count;          /* at most SPEC_VOLUMES_MAX */
    struct spec_service *services; /* the group's before its tasks' */
    size_t services_count;         /* at most SPEC_SERVICES_MAX */
    struct task_spec *tasks;
    size_t tasks_count;
};

/* True if ALLOC has a network of its own, and not the host's. */
static inline bool spec_has_namespace(const struct alloc_spec *alloc)
{
    return alloc->network_mode[0] != '\0' && strcmp(alloc->network_mode, "host") != 0;
}

#endif
