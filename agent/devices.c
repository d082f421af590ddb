/*
 * The devices of this node: what plugins say of them, put together, and what tasks get with those
 * that they were given.
 */
#include "agent/devices.h"

#include "io/log.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

/* How long a task waits for a plugin that has the devices that it was given, and is not there yet,
 * as after a boot. */
enum { AWAIT_MS = 60 * 1000 };

/* A task that waits for what it gets with its devices. */
struct wanting {
    struct parts *parts;
    struct io_timer timer;
    json_t *device; /* as it was given; owned */
    bool asked;     /* the plugin; only its answer is waited for */
    hooks_devices_reserved *done;
    void *ctx;
    struct wanting *next, *prev;
};

struct devices {
    struct wanting *wanting;
};

/* --- what they say of their devices --- */

/* Calls CB with each plugin that can be used. */
struct each_usable {
    const struct parts *parts;
    void (*cb)(void *ctx, const char *name);
    void *ctx;
};

static bool visit(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct each_usable *each = ctx;
    const struct plugin *plugin = plugin_of(record);

    if (plugin->define.type == PLUGIN_DEVICE && plugin->identity.healthy)
        each->cb(each->ctx, machine_id_name(id));
    return true;
}

static void each_usable(const struct parts *parts, void (*cb)(void *ctx, const char *name),
                        void *ctx)
{
    struct each_usable each = {parts, cb, ctx};

    core_each(parts->core, MACHINE_PLUGIN, visit, &each);
}

struct gathering {
    const struct parts *parts;
    json_t *list;
};

static bool is_same_group(const json_t *one, const json_t *other)
{
    static const char *const fields[] = {"Vendor", "Type", "Name"};

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (!json_equal(json_object_get(one, fields[i]), json_object_get(other, fields[i])))
            return false;
    }
    return true;
}

static bool has_group(const json_t *list, const json_t *group)
{
    const json_t *other;
    size_t i;

    json_array_foreach(list, i, other)
    {
        if (is_same_group(group, other))
            return true;
    }
    return false;
}

/* What two plugins call the same is the first one's. */
static void gather_devices(void *ctx, const char *name)
{
    struct gathering *to = ctx;
    const json_t *groups = plugins_devices(to->parts->programs, name);
    json_t *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        if (!has_group(to->list, group))
            check(json_array_append(to->list, group) == 0);
        else
            log_warn("plugins", "another plugin has devices of that name plugin=%s type=%s",
                     log_value(name), log_value(json_string_value(json_object_get(group, "Type"))));
    }
}

json_t *devices_list(const struct parts *parts)
{
    struct gathering to = {parts, json_array()};

    each_usable(parts, gather_devices, &to);
    return to.list;
}

static void gather_stats(void *ctx, const char *name)
{
    struct gathering *to = ctx;
    const json_t *groups = plugins_stats(to->parts->programs, name);

    if (groups != NULL)
        check(json_array_extend(to->list, (json_t *)(uintptr_t)groups) == 0);
}

json_t *devices_stats(const struct parts *parts)
{
    struct gathering to = {parts, json_array()};

    each_usable(parts, gather_stats, &to);
    return to.list;
}

static bool list_one(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct plugin *plugin = plugin_of(record);

    if (plugin->define.type == PLUGIN_DEVICE)
        check(json_object_set_new(
                  ctx, machine_id_name(id),
                  json_pack("{s:s, s:b, s:s, s:s, s:s, s:i}", "State",
                            plugin_def.states[record->state].name, "Healthy",
                            (int)plugin->identity.healthy, "Description",
                            plugin->identity.healthy ? "" : plugin->failure, "Name",
                            plugin->identity.provider, "Version", plugin->identity.version, "Pid",
                            plugin->identity.healthy ? (int)plugin->process.payload_pid : 0)) == 0);
    return true;
}

json_t *devices_plugins(const struct parts *parts)
{
    json_t *list = json_object();

    core_each(parts->core, MACHINE_PLUGIN, list_one, list);
    return list;
}

/* --- what a task gets with them --- */

static void end_wanting(struct wanting *wanting, const struct spec_reservation *reservation,
                        const struct err *err)
{
    DL_DELETE(wanting->parts->devices->wanting, wanting);
    io_timer_stop(&wanting->timer);
    if (wanting->done != NULL)
        wanting->done(wanting->ctx, reservation, err);
    json_decref(wanting->device);
    free(wanting);
}

static void reserved(void *ctx, const struct spec_reservation *reservation, const struct err *err)
{
    end_wanting(ctx, reservation, err);
}

/* Which plugin has the devices that are wanted. */
struct owner {
    const struct wanting *wanting;
    char name[PLUGIN_NAME_SIZE]; /* "": none */
};

static bool has_instance(const json_t *group, const json_t *id)
{
    const json_t *instance;
    size_t i;

    json_array_foreach(json_object_get(group, "Instances"), i, instance)
    {
        if (json_equal(json_object_get(instance, "ID"), id))
            return true;
    }
    return false;
}

static bool has_all(const json_t *group, const json_t *device)
{
    const json_t *id;
    size_t i;

    json_array_foreach(json_object_get(device, "DeviceIDs"), i, id)
    {
        if (!has_instance(group, id))
            return false;
    }
    return is_same_group(group, device);
}

static void find_owner(void *ctx, const char *name)
{
    struct owner *owner = ctx;
    const json_t *groups = plugins_devices(owner->wanting->parts->programs, name), *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        if (owner->name[0] == '\0' && has_all(group, owner->wanting->device))
            check(text_copy(owner->name, sizeof(owner->name), name));
    }
}

static void try_wanting(struct wanting *wanting)
{
    struct owner owner = {.wanting = wanting, .name = ""};

    each_usable(wanting->parts, find_owner, &owner);
    if (owner.name[0] == '\0' || wanting->asked)
        return;
    wanting->asked = true;
    io_timer_stop(&wanting->timer);
    plugins_reserve(wanting->parts->programs, owner.name,
                    json_object_get(wanting->device, "DeviceIDs"), reserved, wanting);
}

void devices_changed(struct parts *parts)
{
    static const struct life_subject everything = {.kind = LIFE_EVERYTHING};
    struct wanting *wanting, *next;

    alone_node_changed(parts->alone);
    nomad_node_changed(parts->nomad);
    if (parts->life != NULL)
        life_changed(parts->life, &everything);
    DL_FOREACH_SAFE(parts->devices->wanting, wanting, next)
    try_wanting(wanting);
}

static void on_late(struct io_timer *timer)
{
    struct wanting *wanting = timer->ctx;
    const json_t *device = wanting->device;
    struct err err;

    (void)err_set(&err, ERR_GONE, "no plugin has %s/%s/%s, or not all that were given of it",
                  json_string_value(json_object_get(device, "Vendor")),
                  json_string_value(json_object_get(device, "Type")),
                  json_string_value(json_object_get(device, "Name"))); /* only to be filled */
    err.recoverable = true;
    end_wanting(wanting, NULL, &err);
}

void devices_reserve(void *ctx, const json_t *device, hooks_devices_reserved *done, void *done_ctx)
{
    struct parts *parts = ctx;
    struct wanting *wanting = calloc(1, sizeof(*wanting));

    check(wanting != NULL);
    wanting->parts = parts;
    wanting->device = json_deep_copy(device);
    wanting->done = done;
    wanting->ctx = done_ctx;
    DL_APPEND(parts->devices->wanting, wanting);
    io_timer_start(parts->loop, &wanting->timer, loop_now_ms() + AWAIT_MS, on_late, wanting);
    try_wanting(wanting);
}

/* --- the beginning and the end --- */

struct devices *devices_new(void)
{
    struct devices *devices = calloc(1, sizeof(*devices));

    check(devices != NULL);
    return devices;
}

void devices_free(struct devices *devices)
{
    struct wanting *wanting, *next;

    if (devices == NULL)
        return;
    DL_FOREACH_SAFE(devices->wanting, wanting, next)
    {
        wanting->done = NULL; /* whoever waited is gone */
        end_wanting(wanting, NULL, NULL);
    }
    free(devices);
}
