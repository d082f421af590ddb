/*
 * What device plugins say: devices and their state, reservations, statistics.  Inside the room
 * only.
 *
 * Devices and statistics become what Nomad's API has of them (NodeDeviceResource,
 * DeviceGroupStats), since that is all that anybody does with them.
 */
#ifndef CAIRN_PLUGINS_DEVICE_DEVICE_H
#define CAIRN_PLUGINS_DEVICE_DEVICE_H

#include "plugins/plugins.h"
#include "spec/devices.h"

enum { DEVICE_GROUPS_MAX = 64 };

/* The groups of a fingerprint: a new reference, in the order of their names.  NULL with ERR_*. */
json_t *device_read_groups(const void *bytes, size_t length, struct err *err);

/* The groups of statistics: a new reference, NULL with ERR_*. */
json_t *device_read_stats(const void *bytes, size_t length, struct err *err);

/* A request for IDS (texts); owned by the caller (free). */
char *device_ask_reserve(const json_t *ids, size_t *ret_length);

/* What a task gets for a reservation; in ARENA. */
int device_read_reservation(const void *bytes, size_t length, struct arena *arena,
                            struct spec_reservation *ret_reservation, struct err *err);

#endif
