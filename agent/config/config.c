/* The agent's configuration: defaults, files and directories, and what must hold of the whole. */
#include "agent/config/part.h"

#include "agent/config/pairs.h"
#include "core/retention.h"
#include "drivers/drivers.h"
#include "io/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 256, JOURNAL_EVENTS_LEAST = 100 };

/* --- files --- */

static int is_configuration(const struct dirent *entry)
{
    return entry->d_name[0] != '.' &&
           (text_ends_with(entry->d_name, ".hcl") || text_ends_with(entry->d_name, ".json"));
}

static int read_directory(struct config *config, const char *path, struct err *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_configuration, alphasort);
    int code = 0;

    if (count < 0)
        return err_os(err, err_from_errno(errno), errno, "configuration: cannot read %s", path);
    if (count > FILES_MAX)
        code = err_set(err, ERR_LIMIT, "configuration: more than %d files in %s", FILES_MAX, path);
    for (int i = 0; i < count; i++) {
        char file[PATH_SIZE];

        if (code == 0)
            code = path_join(file, path, entries[i]->d_name);
        if (code == 0)
            code = config_read_file(config, file, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

/* --- the door --- */

void config_defaults(struct config *config)
{
    *config = (struct config){
        .bind_address = "127.0.0.1",
        .socket_mode = "0600",
        .token_min_ms = 60 * 1000,
        .token_ttl_ms = 30 * 1000,
        .policy_ttl_ms = 30 * 1000,
        .role_ttl_ms = 30 * 1000,
        .token_max_ms = 24 * 60 * 60 * 1000,
        .tls_min_version = "tls12",
        .http_port = 4646,
        .region = "global",
        .datacenter = "dc1",
        .node_pool = "default",
        .log_level = "INFO",
        .user_denylist = "root,Administrator",
        .exec_enabled = true,
        .raw_exec_enabled = true,
        .exec_allow_caps = driver_default_capabilities,
        .java_enabled = true,
        .java_allow_caps = driver_default_capabilities,
        .docker_allow_caps = driver_default_capabilities,
        .docker_pull_timeout_ms = 5 * 60 * 1000,
        .docker_pull_activity_timeout_ms = 2 * 60 * 1000,
        .docker_collects_images = true,
        .docker_image_delay_ms = 3 * 60 * 1000,
        .docker_dangling_removed = true,
        .docker_dangling_period_ms = 5 * 60 * 1000,
        .docker_endpoint = "unix:///var/run/docker.sock",
        .docker_runtimes = "runc,nvidia",
        .gc_interval_ms = 60 * 1000,
        .gc_max_allocs = 50,
        .journal_max_events = RETENTION_EVENTS_MAX,
        .gc_disk_percent = 95,
        .artifact_timeout_ms = 30 * 60 * 1000, /* Nomad's, as the next three */
        .artifact_bytes_max = 100000000000,
        .artifact_unpacked_max = 100000000000,
        .artifact_entries_max = 4096,
        .gc_inode_percent = 95,
        .gc_parallel_destroys = 2,
        .max_kill_timeout_ms = 30 * 1000,
        .min_dynamic_port = 20000,
        .max_dynamic_port = 32000,
        .cni_path = "/opt/cni/bin:/usr/libexec/cni:/usr/lib/cni",
        .cni_config_dir = "/opt/cni/config",
        .bridge_name = "nomad",
        .bridge_subnet = "172.26.64.0/20",
        .bind_wildcard = true,
        .publishes_node = true,
        .publishes_prometheus = true,
        .consul = {.verify_ssl = true, /* Nomad's, all of them */
                   .service_auth_method = "nomad-workloads",
                   .task_auth_method = "nomad-workloads",
                   .share_ssl = true,
                   .timeout_ms = 5000},
    };
}

int config_read(struct config *config, const char *path, struct err *err)
{
    struct stat found;

    if (stat(path, &found) != 0)
        return err_os(err, err_from_errno(errno), errno, "configuration: cannot read %s", path);
    return S_ISDIR(found.st_mode) ? read_directory(config, path, err)
                                  : config_read_file(config, path, err);
}

static int make_absolute(char path[PATH_SIZE], struct err *err)
{
    char here[PATH_SIZE], whole[PATH_SIZE];

    if (path[0] == '\0' || path[0] == '/')
        return 0;
    if (getcwd(here, sizeof(here)) == NULL)
        return err_os(err, ERR_IO, errno, "cannot tell the current directory");
    if (path_join(whole, here, path) != 0)
        return err_set(err, ERR_LIMIT, "path is too long: %.100s...", path);
    (void)text_copy(path, PATH_SIZE, whole); /* of the same size */
    return 0;
}

/* PATH may be "credential:NAME": the file of that name that the service manager has passed to this
 * process, and to no task. */
static int find_secret(char path[PATH_SIZE], const char *key, struct err *err)
{
    static const char scheme[] = "credential:";
    const char *directory = getenv("CREDENTIALS_DIRECTORY"), *name = path + strlen(scheme);
    char whole[PATH_SIZE];

    if (!text_starts_with(path, scheme))
        return make_absolute(path, err);
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
        return err_set(err, ERR_INVALID, "%s: \"%.100s\" names no credential", key, path);
    if (directory == NULL || directory[0] != '/')
        return err_set(err, ERR_INVALID,
                       "%s is \"%.100s\", and no service manager has passed credentials: have "
                       "LoadCredential=%.100s:PATH in the unit",
                       key, path, name);
    if (path_join(whole, directory, name) != 0)
        return err_set(err, ERR_LIMIT, "%s: the path of \"%.100s\" is too long", key, path);
    (void)text_copy(path, PATH_SIZE, whole); /* of the same size */
    return 0;
}

/* Fills PATH, if it is empty, with NAME below data_dir. */
static int derive(const struct config *config, char path[PATH_SIZE], const char *name,
                  struct err *err)
{
    if (path[0] != '\0')
        return make_absolute(path, err);
    if (path_join(path, config->data_dir, name) != 0)
        return err_set(err, ERR_LIMIT, "data_dir is too long");
    return 0;
}

static int find_shim(struct config *config, struct err *err)
{
    char here[PATH_SIZE];

    if (config->shim_path[0] != '\0')
        return make_absolute(config->shim_path, err);
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    if (length <= 0)
        return err_os(err, ERR_IO, errno, "cannot tell where this program is");
    here[length] = '\0';
    *strrchr(here, '/') = '\0';
    if (path_join(config->shim_path, here[0] == '\0' ? "/" : here, "cairn-shim") != 0)
        return err_set(err, ERR_LIMIT, "the path of this program is too long");
    return 0;
}

/* The other programs are where the shim is. */
static int find_others(struct config *config, struct err *err)
{
    char directory[PATH_SIZE], name[NAME_SIZE];
    int code = path_split(config->shim_path, directory, name, err);

    if (code == 0 && (path_join(config->fetch_path, directory, "cairn-fetch") != 0 ||
                      path_join(config->parse_path, directory, "cairn-parse") != 0))
        code = err_set(err, ERR_LIMIT, "the path of the shim is too long");
    return code;
}

/* --- the whole --- */

static int compare_values(const void *a, const void *b)
{
    const struct spec_pair *left = a, *right = b;

    return strcmp(left->value, right->value);
}

/* What tasks with a root of their own see of the host (nomad v2.0.5 client/config/config.go), and
 * each place before those in it. */
static int finish_chroot(struct spec_pairs *chroot, struct err *err)
{
    static const char *const usual[] = {
        "/bin",  "/etc", "/lib", "/lib32", "/lib64", "/run/resolvconf", "/run/systemd/resolve",
        "/sbin", "/usr",
    };

    for (size_t i = 0; i < chroot->count; i++) {
        const struct spec_pair *pair = &chroot->items[i];

        if (pair->key[0] != '/' || pair->value[0] != '/')
            return err_set(err, ERR_INVALID,
                           "client.chroot_env: \"%s\" = \"%s\": both have to be absolute paths",
                           pair->key, pair->value);
    }
    if (chroot->count == 0) {
        for (size_t i = 0; i < COUNT_OF(usual); i++)
            pairs_set(chroot, usual[i], usual[i]);
    }
    qsort(chroot->items, chroot->count, sizeof(*chroot->items), compare_values);
    return 0;
}

static int check_volumes(const struct spec_node_volumes *volumes, struct err *err)
{
    for (size_t i = 0; i < volumes->count; i++) {
        const struct spec_node_volume *volume = &volumes->items[i];

        if (volume->path[0] != '/' || strpbrk(volume->path, "\t\n") != NULL)
            return err_set(err, ERR_INVALID,
                           "client.host_volume \"%s\": path \"%.100s\" must be an absolute path "
                           "without tabs and line ends",
                           volume->name, volume->path);
    }
    return 0;
}

static int check_plugins(const struct config_csi_plugins *plugins, struct err *err)
{
    for (size_t i = 0; i < plugins->count; i++) {
        const struct config_csi_plugin *plugin = &plugins->items[i];
        enum plugin_type type;

        if (!spec_plugin_type(plugin->type, &type))
            return err_set(err, ERR_INVALID,
                           "client.csi_plugin \"%s\": type \"%s\" must be node, controller or "
                           "monolith",
                           plugin->id, plugin->type);
        if (plugin->socket[0] != '/')
            return err_set(err, ERR_INVALID,
                           "client.csi_plugin \"%s\": socket \"%.60s\" must be an absolute path",
                           plugin->id, plugin->socket);
        if (plugin->base_dir[0] != '\0' && plugin->base_dir[0] != '/')
            return err_set(err, ERR_INVALID,
                           "client.csi_plugin \"%s\": stage_publish_base_dir \"%.60s\" must be an "
                           "absolute path",
                           plugin->id, plugin->base_dir);
    }
    return 0;
}

int config_finish(struct config *config, struct err *err)
{
    enum log_level level;
    int code;

    if (config->data_dir[0] == '\0')
        return err_set(err, ERR_INVALID,
                       "no data directory: give -data-dir DIR, or data_dir in a -config file");
    code = config_finish_addresses(config, err);
    if (code != 0)
        return code;
    if (config->token_min_ms == 0 || config->token_min_ms > config->token_max_ms ||
        config->token_max_ms > DURATION_MS_MAX)
        return err_set(err, ERR_INVALID,
                       "acl: token_min_expiration_ttl to token_max_expiration_ttl is no range of "
                       "durations");
    if (config->bootstrap_secret_file[0] != '\0' && !config->acl_enabled)
        return err_set(err, ERR_INVALID,
                       "acl.bootstrap_secret_file is for agents that ask for tokens: acl.enabled");
    if (!log_level_from_text(config->log_level, &level))
        return err_set(err, ERR_INVALID,
                       "log_level \"%s\" is none of ERROR, WARN, INFO, DEBUG and TRACE",
                       config->log_level);
    if (config->min_dynamic_port == 0 || config->min_dynamic_port > config->max_dynamic_port)
        return err_set(err, ERR_INVALID,
                       "client: min_dynamic_port %u to max_dynamic_port %u is no range of ports",
                       config->min_dynamic_port, config->max_dynamic_port);
    if (config->journal_max_events < JOURNAL_EVENTS_LEAST)
        return err_set(err, ERR_INVALID,
                       "client.journal_max_events %u is less than %d, which is not history",
                       config->journal_max_events, JOURNAL_EVENTS_LEAST);
    if (config->name[0] == '\0' && gethostname(config->name, sizeof(config->name) - 1) != 0)
        return err_os(err, ERR_IO, errno, "cannot tell the host's name: give one as name");
    if ((code = make_absolute(config->data_dir, err)) != 0 ||
        (code = derive(config, config->alloc_dir, "alloc", err)) != 0 ||
        (code = derive(config, config->state_dir, "client", err)) != 0 ||
        (code = derive(config, config->host_plugin_dir, "host_volume_plugins", err)) != 0 ||
        (code = derive(config, config->plugin_dir, "plugins", err)) != 0 ||
        (code = derive(config, config->host_volumes_dir, "host_volumes", err)) != 0 ||
        (code = make_absolute(config->log_file, err)) != 0 ||
        (code = find_secret(config->tls_ca_file, "tls.ca_file", err)) != 0 ||
        (code = find_secret(config->tls_cert_file, "tls.cert_file", err)) != 0 ||
        (code = find_secret(config->tls_key_file, "tls.key_file", err)) != 0 ||
        (code = find_secret(config->bootstrap_secret_file, "acl.bootstrap_secret_file", err)) !=
            0 ||
        (code = find_secret(config->consul.token_file, "consul.token_file", err)) != 0 ||
        (code = find_secret(config->consul.ca_file, "consul.ca_file", err)) != 0 ||
        (code = find_secret(config->consul.cert_file, "consul.cert_file", err)) != 0 ||
        (code = find_secret(config->consul.key_file, "consul.key_file", err)) != 0 ||
        (code = find_secret(config->consul.grpc_ca_file, "consul.grpc_ca_file", err)) != 0 ||
        (code = find_shim(config, err)) != 0 || (code = find_others(config, err)) != 0)
        return code;
    code = config_finish_servers(config, err);
    if (code == 0)
        code = config_finish_consul(config, err);
    if (code == 0)
        code = check_volumes(&config->host_volumes, err);
    if (code == 0)
        code = check_plugins(&config->csi_plugins, err);
    if (code != 0)
        return code;
    return finish_chroot(&config->chroot_env, err);
}

void config_free(struct config *config)
{
    pairs_free(&config->meta);
    pairs_free(&config->chroot_env);
    free(config->host_volumes.items);
    config->host_volumes = (struct spec_node_volumes){0};
    config_free_plugins(config);
    free(config->csi_plugins.items);
    config->csi_plugins = (struct config_csi_plugins){0};
    explicit_bzero(config->consul.token, sizeof(config->consul.token));
}
