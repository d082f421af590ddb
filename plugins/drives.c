/*
 * A plugin that is a driver: what it can do, how it is, and what it says of its tasks.
 *
 * What it has said stays known while it is away, since jobs name it and tasks of it live on: it
 * only cannot be asked then.
 */
#include "plugins/part.h"

#include "plugins/protocol/plugin.pb-c.h"
#include "plugins/protocol/read.h"
#include "plugins/protocol/schema.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#define DRIVER "/hashicorp.nomad.plugins.drivers.proto.Driver/"

enum { METHOD_SIZE = sizeof(DRIVER) + 32, KNOWN_BYTES_MAX = 256 << 10 };

static void tell(const struct plugin_held *plugin)
{
    if (plugin->plugins->on_driver != NULL)
        plugin->plugins->on_driver(plugin->plugins->ctx, plugin->drives->name);
}

/* --- how it is --- */

static bool on_state(void *ctx, const void *message, size_t length)
{
    struct plugin_held *plugin = ctx;
    struct plugin_drives *drives = plugin->drives;
    struct driver_state state;

    if (driver_read_state(message, length, drives->name, &state, &plugin->untold) != 0)
        return false;
    json_decref(drives->state.attributes);
    drives->state = state;
    drives->has_told = true;
    tell(plugin);
    return true;
}

static void on_state_end(void *ctx, const struct grpc_reply *reply)
{
    struct plugin_held *plugin = ctx;

    if (plugin->fingerprint == NULL)
        return; /* it was ended by us */
    plugin->fingerprint = NULL;
    plugin_note_silence(plugin, reply, "how its driver is");
    plugin->drives->has_told = false;
    tell(plugin);
}

/* --- what it says of its tasks --- */

static bool on_event(void *ctx, const void *message, size_t length)
{
    struct plugin_held *plugin = ctx;
    struct arena arena = {0};
    struct err err = {0};
    struct reading from = reading_begin(&arena, &err);
    const Wire__TaskEvent *said =
        reading_unpack(&from, &wire__task_event__descriptor, message, length);

    if (said != NULL) {
        json_t *words = reading_words(said->text);
        const struct plugin_task_event event = {
            .driver = plugin->drives->name,
            .alloc = reading_text(&from, said->alloc, UUID_TEXT_SIZE - 1, "the id of an alloc"),
            .task = reading_text(&from, said->task, SPEC_NAME_SIZE - 1, "the name of a task"),
            .text = json_string_value(words),
        };

        if (from.code == 0 && plugin->plugins->on_task_event != NULL)
            plugin->plugins->on_task_event(plugin->plugins->ctx, &event);
        json_decref(words);
    }
    arena_free(&arena);
    return from.code == 0;
}

static void on_events_end(void *ctx, const struct grpc_reply *reply)
{
    struct plugin_held *plugin = ctx;

    (void)reply; /* it is opened again with the others */
    plugin->drives->events = NULL;
}

/* --- all of it --- */

void drives_follow(struct plugin_held *plugin)
{
    struct plugin_drives *drives = plugin->drives;

    plugin_open_stream(plugin, &plugin->fingerprint, DRIVER "Fingerprint", "", 0, on_state,
                       on_state_end);
    plugin_open_stream(plugin, &drives->events, DRIVER "TaskEvents", "", 0, on_event,
                       on_events_end);
    drives->answers = true;
    tell(plugin);
}

void drives_unfollow(struct plugin_held *plugin)
{
    struct plugin_drives *drives = plugin->drives;

    if (drives == NULL)
        return;
    plugin_close_stream(&drives->events);
    bool news = drives->answers;
    drives->answers = drives->has_told = false;
    if (news)
        tell(plugin);
}

void drives_begin(struct plugin_held *plugin, const struct plugin_identity *identity)
{
    struct plugin_drives *drives = plugin->drives;

    plugin->is_known = true;
    if (drives == NULL) {
        drives = plugin->drives = calloc(1, sizeof(*drives));
        check(drives != NULL);
    }
    check(text_copy(drives->name, sizeof(drives->name), identity->provider));
    check(text_copy(drives->version, sizeof(drives->version), identity->version));
}

void drives_free(struct plugin_held *plugin)
{
    struct plugin_drives *drives = plugin->drives;

    if (drives == NULL)
        return;
    plugin->drives = NULL;
    json_decref(drives->state.attributes);
    free(drives->schema);
    free(drives);
}

void drives_forget(struct plugin_held *plugin)
{
    char path[PATH_SIZE];

    if (plugin_path(plugin, "driver", path))
        (void)unlink(path); /* usually there is none */
    drives_free(plugin);
}

/* --- what is kept --- */

static ProtobufCBinaryData data(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *)(uintptr_t)bytes};
}

void drives_keep(const struct plugin_held *plugin, const void *capabilities, size_t length)
{
    const struct plugin_drives *drives = plugin->drives;
    Wire__KnownDriver known = WIRE__KNOWN_DRIVER__INIT;

    known.name = data(drives->name, strlen(drives->name));
    known.version = data(drives->version, strlen(drives->version));
    known.capabilities = data(capabilities, length);
    known.schema = data(drives->schema, drives->schema_length);
    size_t size = wire__known_driver__get_packed_size(&known);
    uint8_t *bytes = malloc(size + 1);
    check(bytes != NULL);
    check(wire__known_driver__pack(&known, bytes) == size);
    plugin_keep(plugin, "driver", bytes, size);
    free(bytes);
}

static int take_known(struct plugin_held *plugin, const char *bytes, size_t length)
{
    struct arena arena = {0};
    struct err err = {0};
    struct reading from = reading_begin(&arena, &err);
    const Wire__KnownDriver *known =
        reading_unpack(&from, &wire__known_driver__descriptor, bytes, length);
    struct plugin_identity identity = {0};
    struct plugin_capabilities capabilities = {0};

    if (known != NULL) {
        (void)text_copy(identity.provider, sizeof(identity.provider),
                        reading_text(&from, known->name, SPEC_DRIVER_SIZE - 1, "its name"));
        (void)text_copy(identity.version, sizeof(identity.version),
                        reading_text(&from, known->version, sizeof(identity.version) - 1,
                                     "its version")); /* both are bounded */
    }
    if (from.code == 0 && driver_name_is_good(identity.provider) &&
        driver_read_capabilities(known->capabilities.data, known->capabilities.len, &capabilities,
                                 &err) == 0) {
        drives_begin(plugin, &identity);
        plugin->drives->capabilities = capabilities;
        plugin->drives->schema = malloc(known->schema.len + 1);
        check(plugin->drives->schema != NULL);
        if (known->schema.len > 0)
            memcpy(plugin->drives->schema, known->schema.data, known->schema.len);
        plugin->drives->schema_length = known->schema.len;
    }
    arena_free(&arena);
    return err.code;
}

void drives_recall(struct plugin_held *plugin)
{
    char path[PATH_SIZE], *bytes;
    size_t length;

    if (!plugin_path(plugin, "driver", path) ||
        file_read(path, KNOWN_BYTES_MAX, &bytes, &length, NULL) != 0)
        return;
    if (take_known(plugin, bytes, length) == 0 && plugin->drives != NULL)
        tell(plugin);
    free(bytes);
}

/* --- what is asked from above --- */

static struct plugin_driver describe(const struct plugin_held *plugin)
{
    const struct plugin_drives *drives = plugin->drives;
    const struct driver_state *state = &drives->state;
    bool told = drives->has_told;

    return (struct plugin_driver){
        .name = drives->name,
        .plugin = plugin->name,
        .version = drives->version,
        .answers = drives->answers,
        .detected = told && state->detected,
        .healthy = told && state->healthy,
        .description = told                       ? state->description
                       : plugin->untold.code != 0 ? plugin->untold.text
                                                  : "its plugin has not said how it is",
        .attributes = told ? state->attributes : NULL,
        .capabilities = drives->capabilities,
    };
}

bool plugins_next_driver(const struct plugins *plugins, size_t *at,
                         struct plugin_driver *ret_driver)
{
    size_t i = 0;
    const struct plugin_held *plugin;

    DL_FOREACH(plugins->held, plugin)
    {
        if (plugin->drives == NULL || plugin->drives->schema == NULL || i++ < *at)
            continue;
        ++*at;
        *ret_driver = describe(plugin);
        return true;
    }
    return false;
}

static const struct plugin_held *find(const struct plugins *plugins, const char *name)
{
    const struct plugin_held *plugin;

    DL_FOREACH(plugins->held, plugin)
    {
        if (plugin->drives != NULL && plugin->drives->schema != NULL &&
            text_equal(plugin->drives->name, name))
            return plugin;
    }
    return NULL;
}

bool plugins_find_driver(const struct plugins *plugins, const char *name,
                         struct plugin_driver *ret_driver)
{
    const struct plugin_held *plugin = find(plugins, name);

    if (plugin == NULL)
        return false;
    *ret_driver = describe(plugin);
    return true;
}

bool plugins_cgroup(const struct plugins *plugins, const char *name, char to[CGROUP_NAME_SIZE])
{
    const struct plugin_held *plugin = find(plugins, name);

    return plugin != NULL &&
           text_format(to, CGROUP_NAME_SIZE, "%s/%s", plugins->cgroup, plugin->name);
}

bool plugins_may_have_more(const struct plugins *plugins)
{
    const struct plugin_held *plugin;

    DL_FOREACH(plugins->held, plugin)
    {
        if (!plugin->is_known)
            return true;
    }
    return false;
}

int plugins_encode_task(const struct plugins *plugins, const char *driver, const json_t *config,
                        char **ret_bytes, size_t *ret_length, struct err *err)
{
    const struct plugin_held *plugin = find(plugins, driver);

    if (plugin == NULL)
        return err_set(err, ERR_GONE, "no plugin has driver \"%.64s\"", driver);
    if (plugin->drives->schema_length > 0)
        return schema_encode(plugin->drives->schema, plugin->drives->schema_length, config,
                             ret_bytes, ret_length, err);
    if (json_object_size(config) > 0)
        return err_set(err, ERR_INVALID, "tasks of driver \"%.64s\" take no configuration", driver);
    *ret_bytes = strdup("\x80"); /* a map without anything */
    check(*ret_bytes != NULL);
    *ret_length = 1;
    return 0;
}

struct grpc_request *plugins_ask(struct plugins *plugins, const char *driver, const char *method,
                                 const struct grpc_call *call, struct err *err)
{
    const struct plugin_held *plugin = find(plugins, driver);
    struct grpc_call asked = *call;
    char whole[METHOD_SIZE];

    if (plugin == NULL || !plugin->drives->answers) {
        (void)err_set(err, ERR_GONE, "the plugin of driver \"%.64s\" does not run", driver);
        err->recoverable = true;
        return NULL;
    }
    check(text_format(whole, sizeof(whole), DRIVER "%s", method));
    asked.unix_socket = process_socket(plugin->process);
    asked.method = whole;
    return grpc_start(plugins->loop, &asked, err);
}
