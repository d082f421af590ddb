#include "agent/perform/externals.h"

#include "agent/devices.h"
#include "agent/perform/calls.h"
#include "io/log.h"

#include <dirent.h>
#include <sys/stat.h>

static const char kind[] = "device";

/* --- what its machine wants --- */

static const struct {
    uint8_t well, failed;
} completions[PX_COUNT] = {
    [PX_LAUNCH] = {PE_LAUNCHED, PE_LAUNCH_FAILED},       [PX_RECOVER] = {PE_RECOVERED, PE_LOST},
    [PX_TERMINATE] = {PE_STOPPED, PE_STOP_FAILED},       [PX_PROBE] = {PE_PROBED, PE_PROBE_FAILED},
    [PX_IDENTIFY] = {PE_IDENTIFIED, PE_IDENTIFY_FAILED},
};

static const struct config_plugin *configured(const struct parts *parts, const char *name)
{
    const struct config_plugins *plugins = &parts->config->plugins;

    for (size_t i = 0; i < plugins->count; i++) {
        if (text_equal(plugins->items[i].name, name))
            return &plugins->items[i];
    }
    return NULL;
}

/* One that nobody names any more is known by its name alone: enough to find it, and to end it. */
static int make_known(const struct parts *parts, const char *name, struct err *err)
{
    static char *const nothing[] = {NULL};
    const struct config_plugin *from = configured(parts, name);
    char program[PATH_SIZE];

    if (path_join(program, parts->config->plugin_dir, name) != 0)
        return err_set(err, ERR_LIMIT, "the path of plugin_dir is too long");
    const struct plugin_place place = {
        .name = name,
        .program = program,
        .arguments = (const char *const *)(from == NULL ? nothing : from->arguments),
        .config = from == NULL ? NULL : from->config,
    };
    return plugins_add(parts->programs, &place, err);
}

static void answered(void *ctx, const struct started *started,
                     const struct plugin_identity *identity, const struct err *err)
{
    struct perform_call *call = ctx;
    struct parts *parts = call->parts;
    const struct machine *record = core_find(parts->core, &call->id);
    bool forgets = err == NULL && call->effect == PX_TERMINATE && record != NULL &&
                   plugin_of(record)->remove_wanted;
    char name[PLUGIN_NAME_SIZE];

    check(text_copy(name, sizeof(name), machine_id_name(&call->id)));
    if (err != NULL) {
        struct failure failure = {.code = err->code, .recoverable = err->recoverable};

        (void)text_copy(failure.text, sizeof(failure.text), err->text); /* cut if too long */
        text_whole(failure.text);
        perform_call_end(call, completions[call->effect].failed, &failure);
    } else {
        perform_call_end(call, completions[call->effect].well,
                         call->effect == PX_IDENTIFY ? (const void *)identity
                         : started != NULL           ? (const void *)started
                                                     : NULL);
    }
    if (forgets)
        plugins_drop(parts->programs, name);
}

/* How it is, as far as it is news. */
static void log_state(const struct effect *effect)
{
    const struct plugin *plugin = plugin_of(effect->record);
    const char *name = machine_id_name(&effect->id);

    if (plugin->machine.state == P_READY)
        log_info("plugins", "is ready plugin=%s name=%s version=%s pid=%d", log_value(name),
                 log_value(plugin->identity.provider), log_value(plugin->identity.version),
                 (int)plugin->process.payload_pid);
    else if (plugin->machine.state == P_REJECTED)
        log_error("plugins", "is not used until the agent is started again plugin=%s error=%s",
                  log_value(name), log_value(plugin->failure));
    else if (plugin->failure[0] != '\0')
        log_warn("plugins", "is not well plugin=%s error=%s", log_value(name),
                 log_value(plugin->failure));
}

void externals_perform(struct parts *parts, const struct effect *effect)
{
    struct plugins *plugins = parts->programs;
    const char *name = machine_id_name(&effect->id);
    uint32_t generation = effect->record->generation;
    struct err err = {0};

    if (effect->kind == PX_TELL_NODE) {
        log_state(effect);
        devices_changed(parts);
        return;
    }
    struct perform_call *call = perform_call_new(parts, effect);
    if (make_known(parts, name, &err) != 0) {
        answered(call, NULL, NULL, &err);
        return;
    }
    switch ((enum plugin_effect)effect->kind) {
    case PX_LAUNCH:
        plugins_launch(plugins, name, generation, answered, call);
        return;
    case PX_RECOVER:
        plugins_recover(plugins, name, generation, answered, call);
        return;
    case PX_TERMINATE:
        plugins_end(plugins, name, answered, call);
        return;
    case PX_PROBE:
        plugins_probe(plugins, name, answered, call);
        return;
    case PX_IDENTIFY:
        plugins_identify(plugins, name, answered, call);
        return;
    case PX_TELL_NODE:
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

static void has_exited(void *ctx, const char *name, uint32_t generation,
                       const struct exited *exited)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_PLUGIN, kind, name);

    log_warn("plugins", "has ended plugin=%s code=%d%s%s", log_value(name), (int)exited->code,
             exited->message[0] != '\0' ? " said=" : "",
             exited->message[0] != '\0' ? log_value(exited->message) : "");
    core_news(parts->core, &id, generation, PE_EXITED, exited);
}

/* --- the beginning and the end --- */

/* What its driver says of a task is read of the task. */
static void note_task_event(void *ctx, const struct plugin_task_event *event)
{
    struct machine_id id = machine_id_join(MACHINE_TASK, event->alloc, event->task);

    log_info("plugins", "says of a task driver=%s task=%s/%s text=%s", event->driver, event->alloc,
             event->task, log_value(event->text));
    perform_note(ctx, &id, TASK_EVENT_DRIVER, event->text);
}

static void tell_devices(void *ctx, const char *name)
{
    (void)name;
    devices_changed(ctx);
}

static void driver_changed(void *ctx, const char *driver)
{
    const struct parts *parts = ctx;

    if (parts->drivers != NULL) /* else they are asked soon */
        drivers_plugin_changed(parts->drivers, driver);
}

static const char *driver_fault(void *ctx, const char *driver)
{
    (void)ctx;
    return driver_is_own(driver) ? "it is one of the agent's own" : NULL;
}

void externals_open(struct parts *parts)
{
    const struct plugins_config config = {
        .loop = parts->loop,
        .state_dir = parts->config->state_dir,
        .cgroup_parent = parts->config->cgroup_parent,
        .node_mark = parts->node.mark,
        .cgroup_mode = cgroup_mode(),
        .cores = parts->node.facts.cpu_cores,
        .core_mhz = parts->node.facts.cpu_mhz,
        .on_exit = has_exited,
        .on_devices = tell_devices,
        .on_driver = driver_changed,
        .on_task_event = note_task_event,
        .driver_fault = driver_fault,
        .ctx = parts,
    };

    parts->programs = plugins_new(&config);
}

static bool remove_unnamed(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct parts *parts = ctx;

    if (plugin_of(record)->define.type == PLUGIN_DEVICE &&
        configured(parts, machine_id_name(id)) == NULL)
        core_tell(parts->core, id, PE_REMOVE, NULL);
    return true;
}

/* As Nomad since 1.7: a program is run that the configuration names. */
static void warn_of_unnamed(const struct parts *parts)
{
    DIR *directory = opendir(parts->config->plugin_dir);
    char path[PATH_SIZE];
    struct stat status;

    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        if (path_join(path, parts->config->plugin_dir, entry->d_name) != 0 ||
            stat(path, &status) != 0 || !S_ISREG(status.st_mode) || (status.st_mode & 0111) == 0 ||
            configured(parts, entry->d_name) != NULL)
            continue;
        log_warn("plugins",
                 "is not run: no block plugin \"NAME\" of the configuration names it "
                 "program=%s",
                 log_value(path));
    }
    if (directory != NULL)
        (void)closedir(directory); /* of reading alone */
}

void externals_define(struct parts *parts)
{
    const struct config_plugins *plugins = &parts->config->plugins;
    struct plugin_define define = {.type = PLUGIN_DEVICE};

    warn_of_unnamed(parts);
    core_each(parts->core, MACHINE_PLUGIN, remove_unnamed, parts);
    for (size_t i = 0; i < plugins->count; i++) {
        struct machine_id id = machine_id_join(MACHINE_PLUGIN, kind, plugins->items[i].name);

        check(text_copy(define.plugin, sizeof(define.plugin), plugins->items[i].name));
        if (core_find(parts->core, &id) == NULL)
            core_tell(parts->core, &id, PE_DEFINE, &define);
    }
}
