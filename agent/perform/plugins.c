#include "agent/perform/plugins.h"

#include "agent/perform/calls.h"
#include "io/log.h"

/* How the machine hears of an answer. */
static const struct {
    uint8_t well, failed;
} completions[PX_COUNT] = {
    [PX_LAUNCH] = {PE_LAUNCHED, PE_LAUNCH_FAILED},
    [PX_RECOVER] = {PE_RECOVERED, PE_LOST},
    [PX_PROBE] = {PE_PROBED, PE_PROBE_FAILED},
    [PX_IDENTIFY] = {PE_IDENTIFIED, PE_IDENTIFY_FAILED},
};

static struct failure failure_of(const struct err *err)
{
    struct failure failure = {.code = err->code, .recoverable = 1};

    (void)text_copy(failure.text, sizeof(failure.text), err->text); /* cut if too long */
    text_whole(failure.text);
    return failure;
}

static void answered(void *ctx, const struct plugin_identity *identity, const struct err *err)
{
    struct perform_call *call = ctx;
    static const struct started elsewhere; /* the process is the task's */

    if (err != NULL) {
        struct failure failure = failure_of(err);
        perform_call_end(call, completions[call->effect].failed, &failure);
        return;
    }
    perform_call_end(call, completions[call->effect].well,
                     call->lane == LANE_DRIVER ? (const void *)&elsewhere : identity);
}

static const struct task_spec *spec_of(struct parts *parts, const struct machine_id *id,
                                       struct err *err)
{
    struct machine_id owner = machine_id_owner(id);
    const struct alloc_spec *alloc = specs_find(parts->specs, owner.text, err);

    for (size_t i = 0; alloc != NULL && i < alloc->tasks_count; i++) {
        if (text_equal(alloc->tasks[i].name, machine_id_name(id)) &&
            alloc->tasks[i].csi_plugin != NULL)
            return &alloc->tasks[i];
    }
    if (alloc != NULL)
        (void)err_set(err, ERR_CORRUPT, "the specification names no such plugin");
    return NULL;
}

/* That the machine ID stands for; NULL: the configuration names no such. */
static const struct config_csi_plugin *configured(const struct parts *parts,
                                                  const struct machine_id *id)
{
    const struct config_csi_plugins *plugins = &parts->config->csi_plugins;
    struct machine_id owner = machine_id_owner(id);

    for (size_t i = 0; i < plugins->count; i++) {
        if (text_equal(plugins->items[i].type, owner.text) &&
            text_equal(plugins->items[i].id, machine_id_name(id)))
            return &plugins->items[i];
    }
    return NULL;
}

/* One that somebody else runs.  Its directory is there before anybody is to be mounted below it. */
static int make_configured_known(struct parts *parts, const struct effect *effect, struct err *err)
{
    const struct config_csi_plugin *from = configured(parts, &effect->id);
    struct machine_id owner = machine_id_owner(&effect->id);
    struct csi_paths paths;

    if (from == NULL)
        return err_set(err, ERR_GONE, "the configuration names no such plugin any more");
    const struct csi_place place = {
        .plugin = from->id,
        .alloc = owner.text,
        .task = from->id,
        .type = (enum plugin_type)plugin_of(effect->record)->define.type,
        .inside = from->base_dir[0] != '\0' ? from->base_dir : NULL,
        .socket = from->socket,
    };
    int code =
        csi_plugins_paths(parts->plugins, place.alloc, place.plugin, place.type, &paths, err);
    if (code == 0)
        code = directory_make_all(paths.root, 0700, err);
    return code == 0 ? csi_plugins_add(parts->plugins, &place, err) : code;
}

/* What the instance is, once for each life of the daemon. */
static int make_known(struct parts *parts, const struct effect *effect, struct err *err)
{
    const struct plugin *plugin = plugin_of(effect->record);
    struct machine_id owner = machine_id_owner(&effect->id);
    const char *task = machine_id_name(&effect->id);

    if (csi_plugins_of(parts->plugins, owner.text, task) != NULL)
        return 0;
    if (!plugin->define.supervised)
        return make_configured_known(parts, effect, err);
    const struct task_spec *spec = spec_of(parts, &effect->id, err);
    if (spec == NULL)
        return err->code;
    const struct spec_driver *kind = driver_kind(parts->drivers, spec->driver);
    bool own_root = kind != NULL && kind->isolation != ISOLATION_NONE;
    const struct csi_place place = {
        .plugin = plugin->define.plugin,
        .alloc = owner.text,
        .task = task,
        .type = (enum plugin_type)plugin->define.type,
        .inside = own_root ? spec->csi_plugin->stage_publish_base_dir : NULL,
    };
    return csi_plugins_add(parts->plugins, &place, err);
}

/* How it is, as far as it is news; what it is stopped or started for is said by others. */
static void log_health(const struct effect *effect)
{
    const struct plugin *plugin = plugin_of(effect->record);
    const char *name = plugin->define.plugin, *version = plugin->identity.version;

    if (plugin->machine.state == P_READY)
        log_info("volumes", "a storage plugin is ready plugin=%s instance=%s version=%s",
                 log_value(name), log_value(effect->id.text), log_value(version));
    else if (plugin->machine.state == P_PROBING || plugin->machine.state == P_UNHEALTHY ||
             plugin->machine.state == P_BACKOFF)
        log_warn("volumes", "a storage plugin is not healthy plugin=%s instance=%s error=%s",
                 log_value(name), log_value(effect->id.text), log_value(plugin->failure));
}

static void tell_node(struct parts *parts, const struct effect *effect)
{
    static const struct life_subject everything = {.kind = LIFE_EVERYTHING};

    log_health(effect);
    alone_plugins_changed(parts->alone);
    nomad_node_changed(parts->nomad);
    life_changed(parts->life, &everything);
}

static void ask(struct parts *parts, const struct effect *effect,
                void (*begin)(struct csi_plugins *plugins, const char *alloc, const char *task,
                              csi_asked *cb, void *ctx))
{
    struct machine_id owner = machine_id_owner(&effect->id);
    struct perform_call *call = perform_call_new(parts, effect);
    struct err err = {0};

    if (make_known(parts, effect, &err) != 0)
        answered(call, NULL, &err);
    else if (begin == NULL)
        answered(call, NULL, NULL);
    else
        begin(parts->plugins, owner.text, machine_id_name(&effect->id), answered, call);
}

static void forget(struct parts *parts, const struct effect *effect)
{
    struct machine_id owner = machine_id_owner(&effect->id);

    csi_plugins_drop(parts->plugins, owner.text, machine_id_name(&effect->id));
    core_done(parts->core, &effect->id, (enum fsm_lane)effect->lane, PE_STOPPED, NULL);
}

void plugins_perform(struct parts *parts, const struct effect *effect)
{
    switch ((enum plugin_effect)effect->kind) {
    case PX_LAUNCH:
        ask(parts, effect, csi_plugins_await);
        return;
    case PX_RECOVER: /* whether its process runs is the task's to find out */
        ask(parts, effect, NULL);
        return;
    case PX_TERMINATE:
        forget(parts, effect);
        return;
    case PX_PROBE:
        ask(parts, effect, csi_plugins_probe);
        return;
    case PX_IDENTIFY:
        ask(parts, effect, csi_plugins_identify);
        return;
    case PX_TELL_NODE:
        tell_node(parts, effect);
        return;
    case PX_NONE:
    case PX_BACKOFF:
    case PX_REPLY_OK:
    case PX_SEND_UP:
    case PX_SEND_DOWN:
    case PX_SEND_HEALTH:
    case PX_SEND_AILING:
    case PX_SEND_UNWELL:
    case PX_COUNT:
        break;
    }
    unreachable("an effect of plugins that is the core's own");
}

/* --- what hooks tell --- */

static int place(void *ctx, const char *alloc, const struct spec_csi_plugin *plugin, char *ret_root,
                 char *ret_directory, struct err *err)
{
    struct parts *parts = ctx;
    struct csi_paths paths;
    int code = csi_plugins_paths(parts->plugins, alloc, plugin != NULL ? plugin->id : "any",
                                 plugin != NULL ? plugin->type : PLUGIN_CSI_NODE, &paths, err);

    if (code == 0 && plugin != NULL)
        check(text_copy(ret_root, PATH_SIZE, paths.root));
    if (code == 0)
        check(text_copy(ret_directory, PATH_SIZE, paths.directory));
    return code;
}

static void started(void *ctx, const struct alloc_spec *alloc, const struct task_spec *task)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_PLUGIN, alloc->id, task->name);
    struct plugin_define define = {
        .type = (uint8_t)task->csi_plugin->type,
        .supervised = 1,
        .health_timeout_ms = task->csi_plugin->health_timeout_ms,
    };

    check(text_copy(define.plugin, sizeof(define.plugin), task->csi_plugin->id));
    core_tell(parts->core, &id, PE_DEFINE, &define);
}

static void ended(void *ctx, const char *alloc, const char *task)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_PLUGIN, alloc, task);
    const struct machine *record = core_find(parts->core, &id);
    struct exited exited = {0};

    csi_plugins_ended(parts->plugins, alloc, task);
    if (record != NULL)
        core_news(parts->core, &id, record->generation, PE_EXITED, &exited);
}

/* Who looks for volumes that nobody can unmount any more. */
struct finding_mounted {
    struct parts *parts;
    const char *plugin;
    size_t count;
};

static bool find_mounted(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct finding_mounted *finding = ctx;
    const struct volume *volume = volume_of(record);
    char why[256];

    (void)id;
    if (!(volume->staged || volume->published) ||
        !text_equal(volume->define.plugin, finding->plugin))
        return true;
    finding->count++;
    (void)text_format(why, sizeof(why),
                      "plugin %s has ended: it stays mounted until one runs again",
                      finding->plugin); /* fits */
    health_note_volume(&finding->parts->health, volume->define.volume, "Plugin is gone", why,
                       loop_now_unix_ns());
    return true;
}

/* What it has mounted stays so, and claimed, unless another serves it; that is no reason to keep a
 * task from being stopped, but one to say so. */
static void tell_mounted(struct parts *parts, const char *alloc, const char *plugin)
{
    const struct csi_instance *other = csi_plugins_find(parts->plugins, plugin, CSI_ROLE_NODE);
    struct finding_mounted finding = {.parts = parts, .plugin = plugin};

    if (other != NULL && !text_equal(other->alloc, alloc))
        return;
    core_each(parts->core, MACHINE_VOLUME, find_mounted, &finding);
    health_tell(&parts->health, parts->core);
    if (finding.count > 0)
        log_warn("volumes",
                 "a storage plugin ends while volumes are mounted: they stay so, and claimed, "
                 "until one runs again plugin=%s volumes=%zu",
                 log_value(plugin), finding.count);
}

static void removed(void *ctx, const char *alloc, const char *task)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_PLUGIN, alloc, task);
    const struct machine *record = core_find(parts->core, &id);

    if (record != NULL && plugin_serves_node(plugin_of(record)))
        tell_mounted(parts, alloc, plugin_of(record)->define.plugin);
    core_tell(parts->core, &id, PE_REMOVE, NULL);
}

/* --- what the configuration tells --- */

static bool remove_unnamed(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct parts *parts = ctx;

    const struct plugin *plugin = plugin_of(record);

    if ((plugin_serves_node(plugin) || plugin_serves_controller(plugin)) &&
        !plugin->define.supervised && configured(parts, id) == NULL)
        core_tell(parts->core, id, PE_REMOVE, NULL);
    return true;
}

void plugins_define(struct parts *parts)
{
    const struct config_csi_plugins *plugins = &parts->config->csi_plugins;

    core_each(parts->core, MACHINE_PLUGIN, remove_unnamed, parts);
    for (size_t i = 0; i < plugins->count; i++) {
        const struct config_csi_plugin *plugin = &plugins->items[i];
        struct machine_id id = machine_id_join(MACHINE_PLUGIN, plugin->type, plugin->id);
        struct plugin_define define = {.type = PLUGIN_CSI_NODE};
        enum plugin_type type;

        check(spec_plugin_type(plugin->type, &type)); /* config_finish() has looked */
        define.type = (uint8_t)type;
        check(text_copy(define.plugin, sizeof(define.plugin), plugin->id)); /* same size */
        if (core_find(parts->core, &id) == NULL)
            core_tell(parts->core, &id, PE_DEFINE, &define);
    }
}

/* --- the beginning --- */

static const struct plugin *record_of(void *ctx, const char *alloc, const char *task)
{
    const struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_PLUGIN, alloc, task);
    const struct machine *record = core_find(parts->core, &id);

    return record == NULL ? NULL : plugin_of(record);
}

int plugins_open(struct parts *parts, struct hooks_plugins *ret_hooks, struct err *err)
{
    const struct csi_plugins_config config = {
        .loop = parts->loop,
        .state_dir = parts->config->state_dir,
        .record = record_of,
        .ctx = parts,
    };

    *ret_hooks = (struct hooks_plugins){
        .ctx = parts, .place = place, .started = started, .ended = ended, .removed = removed};
    parts->plugins = csi_plugins_new(&config, err);
    return parts->plugins == NULL ? err->code : 0;
}
