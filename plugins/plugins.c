/*
 * Which plugins there are, and their processes.
 */
#include "plugins/part.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

struct plugins *plugins_new(const struct plugins_config *config)
{
    struct plugins *plugins = calloc(1, sizeof(*plugins));
    const char *parent = config->cgroup_parent;

    check(plugins != NULL);
    plugins->loop = config->loop;
    plugins->cgroup_mode = config->cgroup_mode;
    plugins->cores = config->cores;
    plugins->core_mhz = config->core_mhz;
    plugins->on_exit = config->on_exit;
    plugins->on_devices = config->on_devices;
    plugins->on_driver = config->on_driver;
    plugins->on_task_event = config->on_task_event;
    plugins->driver_fault = config->driver_fault;
    plugins->ctx = config->ctx;
    (void)path_join(plugins->directory, config->state_dir, "plugins"); /* plugins_add looks */
    check(text_format(plugins->cgroup, sizeof(plugins->cgroup), "%.100s/%s-plugins",
                      parent == NULL || parent[0] == '\0' ? "cairn" : parent, config->node_mark));
    return plugins;
}

static void held_free(struct plugin_held *plugin)
{
    struct reserving *reserving;

    DL_DELETE(plugin->plugins->held, plugin);
    DL_FOREACH(plugin->reserving, reserving)
    reserving->cb = NULL;
    plugin->question.cb = NULL;
    plugin->process_question.cb = NULL;
    question_end(&plugin->question, NULL, NULL); /* nobody hears it */
    plugin_unfollow(plugin);
    plugin_break_off(plugin);
    drives_free(plugin);
    process_free(plugin->process);
    json_decref(plugin->config);
    json_decref(plugin->devices);
    json_decref(plugin->stats);
    free(plugin);
}

void plugins_free(struct plugins *plugins)
{
    if (plugins == NULL)
        return;
    plugins->on_devices = NULL;
    plugins->on_driver = NULL;
    while (plugins->held != NULL)
        held_free(plugins->held);
    free(plugins);
}

/* --- one that there is --- */

/* Nobody waits for it any more. */
static void stop_asking(struct plugin_held *plugin, const char *why)
{
    struct err err;

    (void)err_set(&err, ERR_GONE, "%s", why); /* only to be filled */
    err.recoverable = true;
    question_end(&plugin->question, NULL, &err);
}

static void on_exit_of(void *ctx, const struct process_end *end)
{
    struct plugin_held *plugin = ctx;
    struct exited exited = {
        .known = end->known, .code = (int32_t)end->code, .signal = (int32_t)end->signal};

    (void)text_copy(exited.message, sizeof(exited.message), end->said); /* cut is enough */
    plugin_unfollow(plugin);
    plugin_break_off(plugin);
    plugin_forget(plugin);
    stop_asking(plugin, "it has ended");
    plugin->plugins->on_exit(plugin->plugins->ctx, plugin->name, plugin->generation, &exited);
}

/* Of all that makes it what it is: another program, other words to it, and it is another. */
static uint64_t digest_of(const struct plugin_place *place)
{
    struct stat status = {0};
    char *config = place->config == NULL
                       ? NULL
                       : json_dumps(place->config, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    uint64_t digest = hash_bytes(0, place->program, strlen(place->program));

    if (stat(place->program, &status) == 0) {
        digest = hash_u64(digest, (uint64_t)status.st_ino);
        digest = hash_u64(digest, (uint64_t)status.st_size);
        digest = hash_u64(digest, (uint64_t)status.st_mtim.tv_sec);
        digest = hash_u64(digest, (uint64_t)status.st_mtim.tv_nsec);
    }
    for (size_t i = 0; place->arguments[i] != NULL; i++)
        digest = hash_bytes(digest, place->arguments[i], strlen(place->arguments[i]) + 1);
    if (config != NULL)
        digest = hash_bytes(digest, config, strlen(config));
    free(config);
    return digest;
}

int plugins_add(struct plugins *plugins, const struct plugin_place *place, struct err *err)
{
    char cgroup[CGROUP_NAME_SIZE];

    if (held_find(plugins, place->name) != NULL)
        return 0;
    struct plugin_held *plugin = calloc(1, sizeof(*plugin));
    check(plugin != NULL);
    plugin->plugins = plugins;
    plugin->question.plugin = plugin;
    plugin->process_question.plugin = plugin;
    bool fits = text_copy(plugin->name, sizeof(plugin->name), place->name) &&
                path_join(plugin->directory, plugins->directory, place->name) == 0 &&
                text_format(cgroup, sizeof(cgroup), "%s/%s", plugins->cgroup, place->name);
    const struct process_config process = {
        .loop = plugins->loop,
        .name = plugin->name,
        .directory = plugin->directory,
        .program = place->program,
        .arguments = place->arguments,
        .digest = digest_of(place),
        .cgroup_mode = plugins->cgroup_mode,
        .cgroup = cgroup,
        .on_exit = on_exit_of,
        .ctx = plugin,
    };
    if (fits)
        plugin->process = process_new(&process, err);
    else
        (void)err_set(err, ERR_LIMIT, "its name is too long"); /* NULL says it */
    if (plugin->process == NULL) {
        free(plugin);
        return err->code;
    }
    plugin->config = place->config == NULL ? NULL : json_deep_copy(place->config);
    DL_APPEND(plugins->held, plugin);
    drives_recall(plugin);
    return 0;
}

void plugins_drop(struct plugins *plugins, const char *name)
{
    struct plugin_held *plugin = held_find(plugins, name);
    char directory[PATH_SIZE];

    bool leaves = plugin != NULL && process_is(plugin->process, PROCESS_LEAVES_TASKS);
    if (plugin != NULL)
        held_free(plugin);
    if (!leaves && path_join(directory, plugins->directory, name) == 0)
        (void)tree_remove(AT_FDCWD, directory, NULL); /* what stays is found and used again */
}

/* --- its process --- */

/* The one that QUESTION is to be about, ready to be asked; NULL, and CB was told: there is none. */
static struct plugin_held *turn_to(struct plugins *plugins, const char *name, plugin_asked *cb,
                                   void *ctx)
{
    struct plugin_held *plugin = held_find(plugins, name);
    struct err err;

    if (plugin != NULL)
        return plugin;
    (void)err_set(&err, ERR_GONE, "there is no plugin \"%.100s\"", name); /* only to be filled */
    err.recoverable = true;
    cb(ctx, NULL, NULL, &err);
    return NULL;
}

static void begin_process(struct plugin_held *plugin, uint32_t generation, plugin_asked *cb,
                          void *ctx)
{
    plugin->process_question.cb = cb;
    plugin->process_question.ctx = ctx;
    plugin->generation = generation;
}

static void runs(void *ctx, const struct err *err)
{
    struct plugin_held *plugin = ctx;
    const struct proc_identity *identity = process_identity(plugin->process);
    const struct started started = {.payload_pid = identity->pid,
                                    .payload_ticks = identity->start_ticks};

    question_end(&plugin->process_question, &started, err);
}

static void is_found(void *ctx, const struct err *err)
{
    if (err == NULL)
        plugin_recall(ctx);
    runs(ctx, err);
}

static void is_ended(void *ctx, const struct err *err)
{
    struct plugin_held *plugin = ctx;

    question_end(&plugin->process_question, NULL, err);
}

void plugins_launch(struct plugins *plugins, const char *name, uint32_t generation,
                    plugin_asked *cb, void *ctx)
{
    struct plugin_held *plugin = turn_to(plugins, name, cb, ctx);

    if (plugin == NULL)
        return;
    plugin_forget(plugin);
    begin_process(plugin, generation, cb, ctx);
    process_launch(plugin->process, generation, runs, plugin);
}

void plugins_recover(struct plugins *plugins, const char *name, uint32_t generation,
                     plugin_asked *cb, void *ctx)
{
    struct plugin_held *plugin = turn_to(plugins, name, cb, ctx);

    if (plugin == NULL)
        return;
    begin_process(plugin, generation, cb, ctx);
    process_recover(plugin->process, generation, is_found, plugin);
}

void plugins_end(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx)
{
    struct plugin_held *plugin = turn_to(plugins, name, cb, ctx);

    if (plugin == NULL)
        return;
    stop_asking(plugin, "it is to end");
    plugin_unfollow(plugin);
    plugin_break_off(plugin);
    plugin_forget(plugin);
    begin_process(plugin, plugin->generation, cb, ctx);
    process_end(plugin->process, is_ended, plugin);
}

/* --- devices --- */

const json_t *plugins_devices(const struct plugins *plugins, const char *name)
{
    const struct plugin_held *plugin = held_find(plugins, name);

    return plugin == NULL ? NULL : plugin->devices;
}

const json_t *plugins_stats(const struct plugins *plugins, const char *name)
{
    const struct plugin_held *plugin = held_find(plugins, name);

    return plugin == NULL ? NULL : plugin->stats;
}
