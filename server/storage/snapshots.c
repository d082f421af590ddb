/*
 * What only passes through to plugins: snapshots, and lists of what a plugin knows.
 *
 * Nothing of that is kept here, as in Nomad: a snapshot is made by its name, so that who was not
 * told can ask for it again.  Follows nomad v2.0.5 nomad/csi_endpoint.go.
 */
#include "server/storage/part.h"

#include <stdlib.h>
#include <string.h>

/* One question to a controller, in its turn at a volume if it is about one. */
struct passing {
    struct lane_task task;
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE]; /* of the volume */
    char plugin[PLUGIN_NAME_SIZE];
    enum csi_call call;
    json_t *request, *secrets; /* the latter come over those of the volume */
    storage_volume_answer *answer;
    void *ctx;
};

static void passing_free(struct passing *passing)
{
    json_decref(passing->request);
    storage_wipe(passing->secrets);
    free(passing);
}

static void drop_passing(struct lane_task *task)
{
    passing_free((struct passing *)(void *)task);
}

static void finish(struct passing *passing, const struct err *err, const json_t *answer)
{
    if (passing->task.lane != NULL)
        lane_leave(&passing->task);
    passing->answer(passing->ctx, err == NULL ? 0 : err->code, err, answer);
    passing_free(passing);
}

static void passed(void *ctx, const struct control_answer *answer)
{
    struct passing *passing = ctx;
    bool undone = passing->call == CSI_DELETE_SNAPSHOT && answer->outcome.verdict == CSI_DONE;

    finish(passing, answer->answer == NULL && !undone ? &answer->error : NULL, answer->answer);
}

/* The controller of its plugin, if it is there and can do that; else PASSING has ended. */
static bool has_controller(struct passing *passing)
{
    static const struct {
        enum csi_call call;
        uint32_t capability;
        const char *lack;
    } needs[] = {
        {CSI_LIST_VOLUMES, CSI_CONTROLLER_LISTS, "unimplemented for this plugin"},
        {CSI_CREATE_SNAPSHOT, CSI_CONTROLLER_SNAPSHOTS, "plugin does not support snapshot"},
        {CSI_DELETE_SNAPSHOT, CSI_CONTROLLER_SNAPSHOTS, "plugin does not support snapshot"},
        {CSI_LIST_SNAPSHOTS, CSI_CONTROLLER_LISTS_SNAPSHOTS,
         "plugin does not support listing snapshots"},
    };
    struct control_plugin plugin;
    struct err err = {0};

    if (!registry_plugin(passing->task.storage, passing->plugin, &plugin))
        (void)(plugin.has_stopped
                   ? registry_plugin_stopped(passing->plugin, &err)
                   : err_set(&err, ERR_GONE, "no such plugin \"%s\"", passing->plugin));
    else if (!plugin.controller_ready)
        (void)registry_no_controller(passing->plugin, &err);
    for (size_t i = 0; err.code == 0 && i < COUNT_OF(needs); i++) {
        if (needs[i].call == passing->call &&
            (plugin.controller_capabilities & needs[i].capability) == 0)
            (void)err_set(&err, ERR_REFUSED, "%s", needs[i].lack);
    }
    if (err.code == 0)
        return true;
    finish(passing, &err, NULL);
    return false;
}

static void pass(struct passing *passing)
{
    struct storage *storage = passing->task.storage;

    if (!has_controller(passing))
        return;
    if (json_object_size(passing->secrets) > 0)
        check(json_object_set(passing->request, "Secrets", passing->secrets) == 0);
    storage->config.controller(storage->config.controller_ctx, passing->plugin, passing->call,
                               passing->request, passed, passing);
}

static struct passing *passing_new(struct storage *storage, enum csi_call call, const char *plugin,
                                   const json_t *secrets)
{
    struct passing *passing = calloc(1, sizeof(*passing));

    check(passing != NULL);
    passing->task.storage = storage;
    passing->call = call;
    passing->request = json_object();
    passing->secrets = secrets == NULL ? json_object() : json_deep_copy(secrets);
    (void)text_copy(passing->plugin, sizeof(passing->plugin),
                    plugin); /* no plugin is called more */
    return passing;
}

/* --- snapshots --- */

static void begin_snapshot(struct lane_task *task)
{
    struct passing *passing = (struct passing *)(void *)task;
    const struct registered *volume = registry_find(task->storage, passing->namespace, passing->id);
    struct err err = {0};

    if (volume == NULL) {
        (void)err_set(&err, ERR_GONE, "no such volume \"%s\"", passing->id);
        finish(passing, &err, NULL);
        return;
    }
    json_t *stored = registry_secret(task->storage, volume);
    json_t *secrets = json_object_get(stored, "Secrets");
    if (secrets != NULL)
        check(json_object_update_missing_new(passing->secrets, json_deep_copy(secrets)) == 0);
    storage_wipe(stored);
    if (passing->plugin[0] == '\0')
        (void)text_copy(passing->plugin, sizeof(passing->plugin),
                        registry_text(volume->json, "PluginID"));
    check(json_object_set_new(passing->request, "ExternalSourceVolumeID",
                              json_string(registry_remote_id(volume->json))) == 0);
    pass(passing);
}

void storage_create_snapshot(struct storage *storage, const char *namespace, const json_t *snapshot,
                             storage_volume_answer *answer, void *ctx)
{
    const char *id = registry_text(snapshot, "SourceVolumeID");
    const char *const kept[] = {"Name", "Parameters"};
    struct passing *passing =
        passing_new(storage, CSI_CREATE_SNAPSHOT, registry_text(snapshot, "PluginID"),
                    json_object_get(snapshot, "Secrets"));

    passing->task.begin = begin_snapshot;
    passing->task.drop = drop_passing;
    passing->answer = answer;
    passing->ctx = ctx;
    (void)text_copy(passing->namespace, sizeof(passing->namespace), namespace);
    (void)text_copy(passing->id, sizeof(passing->id), id); /* no volume has a longer one */
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        json_t *value = json_object_get(snapshot, kept[i]);
        if (value != NULL)
            check(json_object_set(passing->request, kept[i], value) == 0);
    }
    lane_enter(&passing->task, passing->namespace, passing->id);
}

void storage_delete_snapshot(struct storage *storage, const char *plugin, const char *id,
                             const json_t *secrets, storage_volume_answer *answer, void *ctx)
{
    struct passing *passing = passing_new(storage, CSI_DELETE_SNAPSHOT, plugin, secrets);

    passing->answer = answer;
    passing->ctx = ctx;
    check(json_object_set_new(passing->request, "ID", json_string(id)) == 0);
    pass(passing);
}

/* --- lists --- */

void storage_list_external(struct storage *storage, const struct storage_page *page,
                           storage_volume_answer *answer, void *ctx)
{
    struct passing *passing =
        passing_new(storage, page->snapshots ? CSI_LIST_SNAPSHOTS : CSI_LIST_VOLUMES, page->plugin,
                    page->secrets);

    passing->answer = answer;
    passing->ctx = ctx;
    check(json_object_set_new(passing->request, "MaxEntries", json_integer(page->entries_max)) ==
          0);
    check(json_object_set_new(passing->request, "StartingToken", json_string(page->token)) == 0);
    pass(passing);
}
