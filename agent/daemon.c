/*
 * The daemon: its parts, from their making to their end.
 *
 * What runs between the two is in world.c, started by the loop.
 */
#include "agent/daemon.h"

#include "agent/api/api.h"
#include "agent/bootstrap.h"
#include "agent/consul/mesh.h"
#include "agent/consul/registrar.h"
#include "agent/consul/seeking.h"
#include "agent/devices.h"
#include "agent/limits.h"
#include "agent/node/disk.h"
#include "agent/node/home.h"
#include "agent/perform/controller.h"
#include "agent/perform/externals.h"
#include "agent/perform/hosted.h"
#include "agent/perform/perform.h"
#include "agent/perform/plugins.h"
#include "agent/perform/scripts.h"
#include "agent/perform/strays.h"
#include "agent/perform/volumes.h"
#include "agent/servers/servers.h"
#include "agent/services/catalogue.h"
#include "agent/services/facts.h"
#include "agent/settings.h"
#include "agent/tasks/tasks.h"
#include "agent/world.h"
#include "hooks/hosted/hosted.h"
#include "inspect/inspect.h"
#include "io/host.h"
#include "io/log.h"
#include "server/acl/lent.h"
#include "spec/cron.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

struct daemon {
    struct parts parts;
    struct home home;
    struct daemon_process process;
    struct world_loop *world;
    struct api *api;
    struct servers *servers;     /* NULL: there are none */
    struct seeking *seeking;     /* for them; NULL: they are those that the configuration names */
    struct registrar *registrar; /* the same, of Consul */
    char network_dir[PATH_SIZE];
    struct hooks_network network;
    struct hooks_fetch fetch;
    struct hooks_templates templates;
    struct hooks_signer signer;
    struct hooks_disks disks;
    struct hooks_plugins plugins;
    struct hooks_devices devices;
};

/* Room for some ten thousand events when the disk is full; and plugins of networks are programs
 * that are asked behind what tasks wait for. */
enum {
    RESERVE_BYTES = 8 << 20,
    FIND_PLUGINS_MS = 500,
    KNOWN_MS = 5000, /* all else that is looked at answers before, or does not */
};

/* --- parts --- */

static void say_salvaged(void *ctx, const char *text)
{
    (void)ctx; /* a process has one log */
    log_error("journal", "salvaging: %s", text);
}

/* The journal at PATH is refused, as ERR says: what can be read of it is brought over into a new
 * one.  Where nothing can be, ERR stays as it was, and says what else there is to do: an empty
 * journal would end all that runs. */
static int salvage(const char *path, struct journal **ret_journal, struct err *err)
{
    struct inspect_salvaged salvaged;
    char kept[JOURNAL_PATH_SIZE];
    struct err why;

    log_error("journal", "refused, what can be read of it is brought over error=%s",
              log_value(err->text));
    int code = inspect_salvage_in_place(path, loop_now_unix_ns(), say_salvaged, NULL, kept,
                                        &salvaged, &why);
    if (code < 0) {
        log_error("journal", "cannot be salvaged error=%s", log_value(why.text));
        return err_wrap(err, "put back a copy of the journal, or take it away, which ends all that "
                             "runs");
    }
    log_error("journal",
              "salvaged machines=%llu events=%llu texts=%llu lost=%llu left_behind=%llu kept=%s",
              (unsigned long long)salvaged.machines, (unsigned long long)salvaged.events,
              (unsigned long long)salvaged.texts, (unsigned long long)salvaged.lost,
              (unsigned long long)salvaged.doubtful, log_value(kept));
    return journal_open(path, JOURNAL_WRITE, ret_journal, err);
}

/* On a read-only file system: nothing can be kept, but what runs can be watched and stopped. */
static int watch_only(struct parts *parts, const char *path, struct err *err)
{
    log_error("journal",
              "cannot be written: nothing is started, and what happens now is forgotten with this "
              "daemon; what runs is watched and can be stopped error=%s",
              log_value(err->text));
    parts->is_volatile = true;
    return journal_open(path, JOURNAL_VOLATILE, &parts->journal, err);
}

static int open_journal(struct daemon *daemon, struct err *err)
{
    struct parts *parts = &daemon->parts;
    const struct config *config = parts->config;
    char path[PATH_SIZE];

    /* Tasks of any user walk through it to their own; it does not list. */
    int code = directory_make_all(config->data_dir, 0711, err);
    if (code == 0)
        code = directory_make_all(config->state_dir, 0700, err);
    if (code == 0)
        code = home_open(&daemon->home, config, err);
    if (code == 0)
        code = path_join(path, config->state_dir, "journal");
    if (code == 0)
        code = journal_open(path, JOURNAL_WRITE, &parts->journal, err);
    if (code == ERR_CORRUPT)
        code = salvage(path, &parts->journal, err);
    if (code == ERR_REFUSED && err->os == EROFS)
        code = watch_only(parts, path, err);
    if (code < 0)
        return code;
    if (!parts->is_volatile)
        journal_reserve(parts->journal, RESERVE_BYTES);
    journal_clear_readers(parts->journal);
    struct store store = store_of_journal(parts->journal);
    code = node_init(&parts->node, &store, &world_say, config, err);
    if (code == 0)
        code = health_read(&parts->health, &store, &world_say, loop_now_unix_ns(), err);
    return code == 0 ? home_take(&daemon->home, config, &parts->node, err) : code;
}

/* What an operator closed stays closed: but then it should be known what for. */
static void warn_of_closed(const struct config *config)
{
    char closed[PATH_SIZE];

    if (geteuid() == 0 && !directory_is_open(config->alloc_dir, closed))
        log_warn("agent",
                 "tasks that run as a user of their own cannot reach their directories: let others "
                 "enter (chmod o+x) directory=%s",
                 log_value(closed));
}

/* Drivers that work here are facts about the node, as its kernel is. */
static void note_drivers(struct parts *parts)
{
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(parts->drivers, infos, COUNT_OF(infos));

    for (size_t i = 0; i < count; i++)
        node_set_driver(&parts->node, &infos[i]);
}

static void note_health(struct parts *parts)
{
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(parts->drivers, infos, COUNT_OF(infos));

    health_note(&parts->health, parts->core, infos, count, loop_now_unix_ns());
}

/* Whoever decides what runs looks at the node again. */
static void node_changed(void *ctx)
{
    const struct parts *parts = ctx;

    alone_node_changed(parts->alone);
    nomad_node_changed(parts->nomad);
}

static void drivers_changed(void *ctx)
{
    struct parts *parts = ctx;

    note_drivers(parts);
    if (parts->alone != NULL) /* else it is noted when there is a life */
        note_health(parts);
    node_changed(parts);
}

static bool find_starting(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    *(bool *)ctx = task_is_on_its_way(task_of(record));
    return !*(bool *)ctx;
}

/* As hundreds of them do after a boot, and have the processors then. */
static bool tasks_start(void *ctx)
{
    const struct parts *parts = ctx;
    bool found = false;

    core_each(parts->core, MACHINE_TASK, find_starting, &found);
    return found;
}

static void plugins_found(void *ctx, const struct spec_pairs *versions)
{
    struct parts *parts = ctx;

    parts->has_asked_plugins = true;
    node_set_plugins(&parts->node, versions);
    node_changed(parts);
}

static void host_plugins_found(void *ctx, const struct spec_pairs *versions)
{
    struct parts *parts = ctx;

    node_set_host_plugins(&parts->node, versions);
    node_changed(parts);
}

/* Whether all has been looked at once that says what this node has, or for long enough. */
static bool is_known(void *ctx)
{
    const struct parts *parts = ctx;
    struct driver_info infos[DRIVERS_MAX];
    size_t count = drivers_list(parts->drivers, infos, COUNT_OF(infos));
    bool all = parts->has_asked_plugins && (parts->has_asked_consul || !parts->config->consul.used);

    for (size_t i = 0; i < count; i++)
        all &= infos[i].asked;
    return all || loop_now_ms() >= parts->known_at_ms;
}

static bool has_driver(void *ctx, const char *name)
{
    const struct parts *parts = ctx;

    return driver_is_healthy(parts->drivers, name);
}

static json_t *devices_of(void *ctx)
{
    return devices_list(ctx);
}

static bool has_network(void *ctx, const char *mode)
{
    const struct parts *parts = ctx;

    return hooks_has_network(parts->hooks, mode);
}

/* They are there as long as anybody is called. */
static void sign(void *ctx, const char *alloc, uint64_t index, const struct spec_bearer *bearers,
                 size_t count, spec_signed_cb *cb, void *cb_ctx)
{
    const struct parts *parts = ctx;

    nomad_sign(parts->nomad, alloc, index, bearers, count, cb, cb_ctx);
}

static void find_disk(void *ctx, const char *alloc, const char *previous, spec_disk_cb *cb,
                      void *cb_ctx)
{
    const struct parts *parts = ctx;

    nomad_find_disk(parts->nomad, alloc, previous, cb, cb_ctx);
}

static const struct spec_driver *kind_of_driver(void *ctx, const char *name)
{
    const struct parts *parts = ctx;

    return driver_kind(parts->drivers, name);
}

static int open_hooks(struct daemon *daemon, struct err *err)
{
    struct parts *parts = &daemon->parts;
    const struct config *config = parts->config;

    daemon->network = settings_of_networks(parts, daemon->network_dir);
    daemon->fetch = settings_of_artifacts(config);
    daemon->templates =
        (struct hooks_templates){.ctx = parts, .changed = perform_changed, .waits = perform_waits};
    daemon->signer = (struct hooks_signer){.ctx = parts, .sign = sign};
    parts->facts = facts_new(parts);
    daemon->disks = (struct hooks_disks){.ctx = parts,
                                         .find = find_disk,
                                         .region = config->region,
                                         .ca_file = config->tls_ca_file,
                                         .cert_file = config->tls_cert_file,
                                         .key_file = config->tls_key_file};
    struct hooks_config hooks = {
        .loop = parts->loop,
        .templates = &daemon->templates,
        .signer = config_has_servers(config) ? &daemon->signer : NULL,
        .disks = config_has_servers(config) ? &daemon->disks : NULL,
        .parser = config->parse_path,
        .fetch = &daemon->fetch,
        .network = &daemon->network,
        .plugins = &daemon->plugins,
        .devices = &daemon->devices,
        .alloc_dir = config->alloc_dir,
        .node = &parts->node.known,
        .environment = (const char *const *)environ,
        .user_denylist = config->user_denylist,
        .driver = kind_of_driver,
        .driver_ctx = parts,
        .volumes = config->host_volumes,
        .facts = facts_for_hooks(parts->facts),
    };

    if (path_join(daemon->network_dir, config->state_dir, "network") != 0)
        return err_set(err, ERR_LIMIT, "state_dir is too long");
    daemon->devices = (struct hooks_devices){.ctx = parts, .reserve = devices_reserve};
    parts->mesh = mesh_new(parts);
    int code = plugins_open(parts, &daemon->plugins, err);
    if (code != 0)
        return code;
    hooks.connect = mesh_connect(parts->mesh);
    parts->hooks = hooks_new(&hooks, err);
    return parts->hooks == NULL ? err->code : 0;
}

static int open_rooms(struct daemon *daemon, struct err *err)
{
    struct parts *parts = &daemon->parts;
    const struct config *config = parts->config;

    externals_open(parts);
    parts->devices = devices_new();
    struct drivers_config drivers = settings_of_drivers(parts);
    drivers.files_soft = daemon->process.files_soft;
    drivers.on_exit = perform_exit;
    drivers.on_said = perform_said;
    drivers.on_change = drivers_changed;
    drivers.ctx = parts;
    parts->drivers = drivers_new(&drivers, err);
    if (parts->drivers == NULL)
        return err->code;
    note_drivers(parts);
    if (!config->take_over && drivers_foreign(parts->drivers, err) != 0)
        return err->code;
    int code = open_hooks(daemon, err);
    if (code != 0)
        return code;
    parts->hosted = hosted_new(&(struct hosted_config){.loop = parts->loop,
                                                       .plugin_dir = config->host_plugin_dir,
                                                       .volumes_dir = config->host_volumes_dir,
                                                       .node_id = parts->node.identity.id,
                                                       .node_pool = parts->node.known.pool});
    parts->volumes = volumes_new(parts, err);
    if (parts->volumes == NULL)
        return err->code;
    parts->strays = strays_new(parts);
    warn_of_closed(config);
    parts->parse = parser_ask;
    parts->specs = specs_new(parts->journal);
    return 0;
}

static void new_id(void *ctx, char to[UUID_TEXT_SIZE])
{
    (void)ctx;
    host_draw_id(to);
}

static void placed(void *ctx, struct alloc_spec *spec)
{
    struct parts *parts = ctx;

    specs_placed(parts->specs, spec);
}

static struct alone_node node_for_jobs(const struct node *node, const struct config *config)
{
    return (struct alone_node){
        .known = {.id = node->known.id,
                  .name = node->known.name,
                  .datacenter = node->known.datacenter,
                  .class = node->known.class,
                  .pool = node->known.pool,
                  .attributes = &node->known.attributes,
                  .meta = &node->known.meta},
        .region = config->region,
        .room = node->room,
        .core_mhz = node->facts.cpu_mhz,
        .cores = node->cores,
        .addresses = node->addresses,
        .addresses_count = node->addresses_count,
        .volumes = config->host_volumes,
        .dynamic_ports = {config->min_dynamic_port, config->max_dynamic_port},
    };
}

static void plan_task(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                      struct task_define *define)
{
    hooks_plan_task(alloc, task, kind_of_driver(ctx, task->driver), define);
}

static int validate_task(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task,
                         struct err *err)
{
    const struct parts *parts = ctx;

    return driver_validate(parts->drivers, alloc, task, err);
}

/* NAME was looked at: it leads nowhere else. */
static int read_zone(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                     struct err *err)
{
    char path[sizeof("/usr/share/zoneinfo/") + ZONE_NAME_SIZE];

    (void)ctx;
    (void)text_format(path, sizeof(path), "/usr/share/zoneinfo/%s", name); /* it fits */
    return file_read(path, ZONE_BYTES_MAX, ret_bytes, ret_length, err);
}

static void measure_disk(void *ctx)
{
    const struct parts *parts = ctx;

    if (parts->disk != NULL) /* else it is measured soon anyhow */
        disk_watch_ask(parts->disk);
}

static struct assign_plans plans_of(struct parts *parts)
{
    return (struct assign_plans){
        .kill_timeout_max_ms = parts->config->max_kill_timeout_ms,
        .alloc = hooks_plan_alloc,
        .task = plan_task,
        .validate = validate_task,
        .ctx = parts,
    };
}

static int start_life(struct daemon *daemon, uint64_t seed, struct err *err)
{
    struct parts *parts = &daemon->parts;
    const struct config *config = parts->config;
    struct life_start start = {
        .last_turn = parts->node.identity.last_turn,
        .authority = !config_has_servers(config),
        .rebooted = parts->node.identity.rebooted,
    };

    parts->tally = tally_new();
    parts->catalogue = catalogue_new(parts);
    catalogue_on_change(parts->catalogue, facts_offered, parts->facts);
    daemon->world = world_begin(parts, seed);
    daemon->registrar = registrar_new(parts);
    parts->known_at_ms = loop_now_ms() + KNOWN_MS;
    struct alone_config alone = {
        .life = parts->life,
        .say = world_say,
        .ctx = parts,
        .new_id = new_id,
        .placed = placed,
        .has_driver = has_driver,
        .is_known = is_known,
        .has_network = has_network,
        .devices = devices_of,
        .node = node_for_jobs(&parts->node, config),
        .token_min_ns = (int64_t)config->token_min_ms * 1000000,
        .token_max_ns = (int64_t)config->token_max_ms * 1000000,
        .allocs_kept = config->gc_max_allocs,
        .disk_limits = {config->gc_disk_percent, config->gc_inode_percent},
        .collect_at_once = config->gc_parallel_destroys > 0 ? config->gc_parallel_destroys : 1,
        .disk_is_given = config->disk_total_mb > 0,
        .measure_disk = measure_disk,
        .read_zone = read_zone,
        .controller = controller_call,
        .topology = controller_topology,
        .host_plugin = hosted_ask_plugin,
        .has_host_plugin = hosted_has_plugin,
        .hosted_changed = hosted_changed,
        .jobs_elsewhere = config_has_servers(config),
        .plans = plans_of(parts),
    };
    parts->alone = alone_new(&alone);
    parts->storage = alone_storage(parts->alone);
    parts->host_volumes = alone_hosted(parts->alone);
    parts->control = storage_control(parts->storage);
    identity_keep(&parts->node.identity, parts->core);
    node_meta_begin(&parts->node.meta, parts->life, node_changed, parts);
    parts->disk = disk_watch_new(parts);
    note_health(parts);
    int code = life_start(parts->life, &start, err);
    if (code == 0) {
        plugins_define(parts);
        externals_define(parts);
    }
    if (code == 0)
        hooks_find_plugins(parts->hooks, FIND_PLUGINS_MS, tasks_start, plugins_found, parts);
    if (code == 0)
        hosted_look(parts->hosted, host_plugins_found, parts);
    return code;
}

static bool count_wanted(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    *(size_t *)ctx += record->state != T_DEAD;
    return true;
}

/* Nothing is open to the network for everybody. */
static int look_at_address(const struct config *config, struct err *err)
{
    if (config->bind_address[0] == '\0' || api_is_loopback(config->bind_address))
        return 0;
    if (!config->acl_enabled && !config->tls_verifies)
        return err_set(err, ERR_INVALID,
                       "whoever reaches %s could run programs here: enable tokens (acl { enabled = "
                       "true }) or certificates of clients (tls { verify_https_client = true }), "
                       "or listen on an address of loopback",
                       config->bind_address);
    if (config->tls_http)
        return 0;
    log_warn("agent",
             "tokens go over the network as they are: whoever listens there has them "
             "bind=%s",
             log_value(config->bind_address));
    return 0;
}

/* Too few descriptors are no reason not to start: what has one is looked after. */
static void count_files(const struct daemon *daemon)
{
    struct rlimit files;
    size_t tasks = 0;

    core_each(daemon->parts.core, MACHINE_TASK, count_wanted, &tasks);
    size_t wanted = limits_files(tasks, daemon->parts.config->tls_http);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < wanted)
        log_warn("agent",
                 "too few descriptors: raise the hard limit (ulimit -Hn, LimitNOFILE=) "
                 "limit=%llu wanted=%zu tasks=%zu",
                 (unsigned long long)files.rlim_cur, wanted, tasks);
}

static void close_parts(struct daemon *daemon)
{
    struct parts *parts = &daemon->parts;

    seeking_free(daemon->seeking);
    servers_free(daemon->servers);
    task_api_free(parts->task_api);
    parts->task_api = NULL;
    api_free(daemon->api);
    acl_lent_free(parts->lent); /* whom nobody answers any more, nor asks */
    if (parts->life != NULL)
        life_forget_callers(parts->life);
    disk_watch_free(parts->disk);
    controller_forget(parts);
    hosted_free(parts->hosted);
    hosted_forget(parts);
    registrar_free(daemon->registrar);
    catalogue_free(parts->catalogue);
    alone_free(parts->alone);
    scripts_forget(parts);
    drivers_free(parts->drivers);
    plugins_free(parts->programs);
    devices_free(parts->devices); /* who waits for one is the hooks' */
    mesh_free(parts->mesh);       /* likewise */
    parts->mesh = NULL;
    hooks_free(parts->hooks);
    facts_free(parts->facts);
    strays_free(parts->strays);
    volumes_free(parts->volumes);
    csi_plugins_free(parts->plugins);
    perform_forget(parts);
    specs_free(parts->specs);
    life_free(parts->life);
    parts->core = NULL; /* its recorder is gone, should the rest fail */
    world_end(daemon->world);
    daemon->world = NULL;
    node_free(&parts->node);
    health_free(&parts->health);
    tally_free(parts->tally);
    journal_close(parts->journal);
    home_close(&daemon->home);
}

/* --- the whole --- */

void daemon_tell(struct daemon *daemon)
{
    if (daemon->world != NULL)
        world_tell(daemon->world);
}

static void on_check_failed(void *ctx, const char *file, int line, const char *text)
{
    (void)file; /* whoever is told last says where it was */
    (void)line;
    (void)text;
    daemon_tell(ctx);
}

static int open_parts(struct daemon *daemon, struct err *err)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), 0) < 0)
        seed = (uint64_t)loop_now_unix_ns();
    int code = look_at_address(daemon->parts.config, err);
    if (code == 0)
        code = open_journal(daemon, err);
    if (code == 0)
        code = open_rooms(daemon, err);
    if (code == 0) {
        home_note(&daemon->home, daemon->parts.config);
        code = start_life(daemon, seed, err);
    }
    if (code == 0) /* before anybody can ask for another */
        code = bootstrap_ask(&daemon->parts, err);
    if (code == 0)
        code = api_new(&daemon->parts, &daemon->api, err);
    if (code < 0)
        return code;
    char advertised[API_ADDRESS_SIZE];
    api_advertised(daemon->api, advertised);
    registrar_advertise(daemon->registrar, advertised);
    struct assign_plans plans = plans_of(&daemon->parts);
    daemon->seeking = seeking_new(&daemon->parts);
    struct servers_seek seek = {daemon->seeking == NULL ? NULL : seeking_begin, daemon->seeking};
    daemon->servers = servers_new(&daemon->parts, daemon->api, &plans, &seek);
    if (daemon->parts.nomad != NULL)
        daemon->parts.control = nomad_control(daemon->parts.nomad);
    if (daemon->parts.nomad != NULL)
        code = task_api_new(&daemon->parts, daemon->api, &daemon->parts.task_api, err);
    count_files(daemon);
    return code;
}

struct daemon *daemon_new(const struct config *config, struct loop *loop,
                          const struct daemon_process *process, struct err *err)
{
    struct daemon *daemon = calloc(1, sizeof(*daemon));
    struct check_guard guard;

    check(daemon != NULL);
    daemon->home.lock_fd = -1;
    daemon->parts.config = config;
    daemon->parts.loop = loop;
    if (process != NULL)
        daemon->process = *process;
    daemon->parts.crash = daemon->process.crash;
    daemon->parts.listen_fd = daemon->process.listen_fd;
    check_guard_push(&guard, on_check_failed, daemon);
    int code = open_parts(daemon, err);
    check_guard_pop(&guard);
    if (code < 0) {
        daemon_free(daemon);
        return NULL;
    }
    log_info("agent", "started node=%s name=%s data_dir=%s http=%s socket=%s",
             daemon->parts.node.identity.id, log_value(config->name), log_value(config->data_dir),
             api_address(daemon->api), log_value(config->socket_path));
    return daemon;
}

void daemon_free(struct daemon *daemon)
{
    if (daemon == NULL)
        return;
    close_parts(daemon);
    free(daemon);
}

struct parts *daemon_parts(struct daemon *daemon)
{
    return &daemon->parts;
}

void daemon_renew(struct daemon *daemon)
{
    struct err err = {0};

    if (bootstrap_ask(&daemon->parts, &err) != 0)
        log_error("agent", "the first token cannot be made error=%s", log_value(err.text));
    if (!daemon->parts.config->tls_http)
        return;
    err = (struct err){0};
    if (api_renew(daemon->api, &err) == 0)
        log_info("agent", "certificates are read again");
    else
        log_error("agent", "certificates cannot be used, those before stay error=%s",
                  log_value(err.text));
}

const char *daemon_address(const struct daemon *daemon)
{
    return api_address(daemon->api);
}

static bool count_running(void *ctx, const struct machine_id *id, const struct machine *record)
{
    (void)id;
    *(size_t *)ctx += record->state == T_RUNNING;
    return true;
}

void daemon_describe(const struct daemon *daemon, char *to, size_t size)
{
    size_t running = 0;
    const char *trouble = life_trouble(daemon->parts.life);

    core_each(daemon->parts.core, MACHINE_TASK, count_running, &running);
    (void)text_format(to, size, "%zu %s; API at %s%s%s", running,
                      running == 1 ? "task runs" : "tasks run", daemon_address(daemon),
                      trouble != NULL ? "; " : "", trouble != NULL ? trouble : ""); /* may be cut */
}
