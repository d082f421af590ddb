/*
 * What only passes through to plugins: snapshots, lists of what a plugin knows, how full volumes
 * are, and how much a plugin has left for more.
 *
 * Nothing of that is kept here, as in Nomad: a snapshot is made by its name, so that who was not
 * told can ask for it again.  Follows nomad v2.0.5 nomad/csi_endpoint.go, but for the last two,
 * which Nomad asks of no plugin.
 */
#include "server/storage/part.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* A plugin that hangs keeps so many of its calls for those who want to know how full volumes are
 * and what is left, and all others for those who have to mount some. */
enum { FIGURES_MAX = 16 };

/* One question to a plugin; a snapshot has its turn at the volume. */
struct passing {
    struct lane_task task;
    struct passing *prev, *next;                               /* all that are under way */
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE]; /* of the volume */
    char plugin[PLUGIN_NAME_SIZE];
    enum csi_call call;
    json_t *request, *secrets; /* the latter come over those of the volume */
    storage_volume_answer *answer;
    void *ctx;
};

static void passing_free(struct passing *passing)
{
    DL_DELETE(passing->task.storage->passing, passing);
    json_decref(passing->request);
    storage_wipe(passing->secrets);
    free(passing);
}

/* Behind the lanes: those that are in one went with it. */
void passing_forget(struct storage *storage)
{
    while (storage->passing != NULL)
        passing_free(storage->passing);
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
        {CSI_GET_CAPACITY, CSI_CONTROLLER_HAS_CAPACITY,
         "plugin does not tell how much it has left"},
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

    if (passing->call != CSI_NODE_STATS && !has_controller(passing))
        return;
    if (json_object_size(passing->secrets) > 0)
        check(json_object_set(passing->request, "Secrets", passing->secrets) == 0);
    storage->config.controller(storage->config.controller_ctx, passing->plugin, passing->call,
                               passing->request, passed, passing);
}

static struct passing *passing_new(struct storage *storage, enum csi_call call, const char *plugin,
                                   const json_t *secrets, storage_volume_answer *answer, void *ctx)
{
    struct passing *passing = calloc(1, sizeof(*passing));

    check(passing != NULL);
    DL_APPEND(storage->passing, passing);
    passing->task.storage = storage;
    passing->call = call;
    passing->answer = answer;
    passing->ctx = ctx;
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
                    json_object_get(snapshot, "Secrets"), answer, ctx);

    passing->task.begin = begin_snapshot;
    passing->task.drop = drop_passing;
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
    struct passing *passing =
        passing_new(storage, CSI_DELETE_SNAPSHOT, plugin, secrets, answer, ctx);

    check(json_object_set_new(passing->request, "ID", json_string(id)) == 0);
    pass(passing);
}

/* --- lists --- */

void storage_list_external(struct storage *storage, const struct storage_page *page,
                           storage_volume_answer *answer, void *ctx)
{
    struct passing *passing =
        passing_new(storage, page->snapshots ? CSI_LIST_SNAPSHOTS : CSI_LIST_VOLUMES, page->plugin,
                    page->secrets, answer, ctx);

    check(json_object_set_new(passing->request, "MaxEntries", json_integer(page->entries_max)) ==
          0);
    check(json_object_set_new(passing->request, "StartingToken", json_string(page->token)) == 0);
    pass(passing);
}

/* --- how full, how much is left --- */

static bool find_ready(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct machine_id *found = ctx;

    if (record->state == V_READY)
        *found = *id;
    return record->state != V_READY;
}

static int check_figures(const struct storage *storage, struct err *err)
{
    const struct passing *passing;
    unsigned count = 0;

    DL_FOREACH(storage->passing, passing)
    count += passing->call == CSI_NODE_STATS || passing->call == CSI_GET_CAPACITY;
    return count < FIGURES_MAX
               ? 0
               : err_set(err, ERR_AGAIN, "plugins are asked this %d times already", FIGURES_MAX);
}

/* Of one who has it: all of them have the same. */
void storage_volume_stats(struct storage *storage, const char *namespace, const char *id,
                          storage_volume_answer *answer, void *ctx)
{
    const struct registered *volume = registry_find(storage, namespace, id);
    struct machine_id user = {.text = ""};
    struct err err = {0};

    if (volume != NULL)
        storage_each_claim(storage, &volume->public, find_ready, &user);
    if (volume == NULL)
        (void)err_set(&err, ERR_GONE, "no such volume \"%s\"", id);
    else if (user.text[0] != '\0')
        (void)check_figures(storage, &err); /* told below */
    if (err.code != 0 || user.text[0] == '\0') {
        answer(ctx, err.code, err.code == 0 ? NULL : &err, NULL);
        return;
    }
    struct passing *passing = passing_new(
        storage, CSI_NODE_STATS, registry_text(volume->json, "PluginID"), NULL, answer, ctx);
    json_decref(passing->request);
    passing->request =
        json_pack("{s:s, s:s, s:s, s:{s:s}}", "VolumeID", volume->id, "VolumeNamespace",
                  volume->namespace, "ExternalID", registry_remote_id(volume->json), "Claim",
                  "AllocationID", machine_id_owner(&user).text);
    check(passing->request != NULL);
    pass(passing);
}

void storage_plugin_capacity(struct storage *storage, const char *plugin,
                             storage_volume_answer *answer, void *ctx)
{
    struct err err = {0};

    if (check_figures(storage, &err) != 0)
        answer(ctx, err.code, &err, NULL);
    else
        pass(passing_new(storage, CSI_GET_CAPACITY, plugin, NULL, answer, ctx));
}
