/*
 * What stays open to a plugin: its devices, what it says of them, and what it prints; of a driver
 * the rest is drives.c's.
 */
#include "plugins/part.h"

#include "io/log.h"
#include "io/scope.h"
#include "plugins/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#define DEVICE "/hashicorp.nomad.plugins.device.DevicePlugin/"

enum {
    RESERVE_MS = 30 * 1000,
    STATS_S = 10, /* between two of them */
};

/* --- devices --- */

static void tell(struct plugin_held *plugin)
{
    if (plugin->plugins->on_devices != NULL)
        plugin->plugins->on_devices(plugin->plugins->ctx, plugin->name);
}

static void set_devices(struct plugin_held *plugin, json_t *devices)
{
    bool same = (devices == NULL) == (plugin->devices == NULL) &&
                (devices == NULL || json_equal(devices, plugin->devices));

    json_decref(plugin->devices);
    plugin->devices = devices;
    if (!same)
        tell(plugin);
}

void plugin_recall(struct plugin_held *plugin)
{
    char path[PATH_SIZE], *bytes;
    size_t length;

    if (!plugin_path(plugin, "devices", path) ||
        file_read(path, PLUGIN_SET_BYTES_MAX, &bytes, &length, NULL) != 0)
        return;
    json_t *devices = device_read_groups(bytes, length, NULL);
    if (devices != NULL)
        set_devices(plugin, devices);
    free(bytes);
}

void plugin_forget(struct plugin_held *plugin)
{
    char path[PATH_SIZE];

    if (plugin_path(plugin, "devices", path))
        (void)unlink(path); /* one that stays is of no process that can be found */
    json_decref(plugin->stats);
    plugin->stats = NULL;
    plugin->untold = (struct err){0};
    set_devices(plugin, NULL);
}

static bool on_devices(void *ctx, const void *message, size_t length)
{
    struct plugin_held *plugin = ctx;
    json_t *devices = device_read_groups(message, length, &plugin->untold);

    if (devices == NULL)
        return false;
    plugin_keep(plugin, "devices", message, length);
    set_devices(plugin, devices);
    return true;
}

static void on_devices_end(void *ctx, const struct grpc_reply *reply)
{
    struct plugin_held *plugin = ctx;

    if (plugin->fingerprint == NULL)
        return; /* it was ended by us */
    plugin->fingerprint = NULL;
    plugin_note_silence(plugin, reply, "its devices");
    set_devices(plugin, NULL);
}

/* --- statistics --- */

static bool on_stats(void *ctx, const void *message, size_t length)
{
    struct plugin_held *plugin = ctx;
    struct err err = {0};
    json_t *stats = device_read_stats(message, length, &err);

    if (stats == NULL)
        log_warn("plugins", "its statistics cannot be read plugin=%s error=%s",
                 log_value(plugin->name), log_value(err.text));
    json_decref(plugin->stats);
    plugin->stats = stats;
    return stats != NULL;
}

static void on_stats_end(void *ctx, const struct grpc_reply *reply)
{
    struct plugin_held *plugin = ctx;

    (void)reply; /* nobody needs them so much */
    plugin->statistics = NULL;
    json_decref(plugin->stats);
    plugin->stats = NULL;
}

/* --- what it prints: it would wait for who reads it --- */

static bool on_print(void *ctx, const void *message, size_t length)
{
    (void)ctx;
    (void)message;
    (void)length;
    return true;
}

static void on_print_end(void *ctx, const struct grpc_reply *reply)
{
    struct plugin_held *plugin = ctx;

    plugin->prints = NULL;
    plugin->prints_nothing = reply->status == GRPC_UNIMPLEMENTED; /* of a very old one */
}

/* --- all of them --- */

void plugin_follow(struct plugin_held *plugin)
{
    static const char interval[] = {'\n', 2, '\b', STATS_S}; /* a duration of so many seconds */

    plugin->untold = (struct err){0};
    if (!plugin->prints_nothing)
        plugin_open_stream(plugin, &plugin->prints, "/plugin.GRPCStdio/StreamStdio", "", 0,
                           on_print, on_print_end);
    if (plugin->drives != NULL) {
        drives_follow(plugin);
        return;
    }
    if (plugin->fingerprint == NULL && plugin->devices == NULL)
        plugin_recall(plugin); /* it tells of a change alone, whoever has lost what was before */
    plugin_open_stream(plugin, &plugin->fingerprint, DEVICE "Fingerprint", "", 0, on_devices,
                       on_devices_end);
    plugin_open_stream(plugin, &plugin->statistics, DEVICE "Stats", interval, sizeof(interval),
                       on_stats, on_stats_end);
}

void plugin_unfollow(struct plugin_held *plugin)
{
    plugin_close_stream(&plugin->fingerprint);
    plugin_close_stream(&plugin->statistics);
    plugin_close_stream(&plugin->prints);
    drives_unfollow(plugin);
    plugin->prints_nothing = false;
}

/* --- reservations --- */

static void end_reserving(struct reserving *reserving, const struct spec_reservation *reservation,
                          const struct err *err)
{
    struct plugin_held *plugin = reserving->plugin;

    DL_DELETE(plugin->reserving, reserving);
    if (reserving->cb != NULL)
        reserving->cb(reserving->ctx, reservation, err);
    free(reserving);
}

static void on_reserved(void *ctx, const struct grpc_reply *reply)
{
    struct reserving *reserving = ctx;
    struct spec_reservation reservation;
    struct arena arena = {0};
    struct err err = reply->error;

    if (reply->status == GRPC_OK)
        (void)device_read_reservation(reply->message, reply->message_length, &arena, &reservation,
                                      &err);
    end_reserving(reserving, err.code == 0 ? &reservation : NULL, err.code == 0 ? NULL : &err);
    arena_free(&arena);
}

void plugin_break_off(struct plugin_held *plugin)
{
    while (plugin->reserving != NULL)
        grpc_cancel(plugin->reserving->call);
}

void plugins_reserve(struct plugins *plugins, const char *name, const json_t *ids,
                     plugin_reserved *cb, void *ctx)
{
    struct plugin_held *plugin = held_find(plugins, name);
    struct err err = {0};
    size_t length;

    if (plugin == NULL || process_socket(plugin->process)[0] == '\0') {
        (void)err_set(&err, ERR_GONE, "plugin \"%.100s\" does not run", name); /* to be filled */
        err.recoverable = true;
        cb(ctx, NULL, &err);
        return;
    }
    struct reserving *reserving = calloc(1, sizeof(*reserving));
    check(reserving != NULL);
    *reserving = (struct reserving){.plugin = plugin, .cb = cb, .ctx = ctx};
    char *message = device_ask_reserve(ids, &length);
    const struct grpc_call call = {
        .unix_socket = process_socket(plugin->process),
        .method = DEVICE "Reserve",
        .message = message,
        .message_length = length,
        .timeout_ms = RESERVE_MS,
        .cb = on_reserved,
        .ctx = reserving,
    };
    DL_APPEND(plugin->reserving, reserving);
    reserving->call = grpc_start(plugins->loop, &call, &err);
    free(message);
    if (reserving->call == NULL)
        end_reserving(reserving, NULL, &err);
}
