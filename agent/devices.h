/*
 * The devices of this node: what plugins say of them, put together, and what tasks get with those
 * that they were given.
 */
#ifndef CAIRN_AGENT_DEVICES_H
#define CAIRN_AGENT_DEVICES_H

#include "agent/parts.h"

struct devices *devices_new(void);

/* Nobody who waits is told any more; plugins are gone by then. */
void devices_free(struct devices *devices);

/* All that there are as Nomad's API has them (NodeResources.Devices), and what plugins say of them
 * (DeviceStats): new references. */
json_t *devices_list(const struct parts *parts);
json_t *devices_stats(const struct parts *parts);

/* Each plugin by its name, and how it is, for who looks at the node: a new reference. */
json_t *devices_plugins(const struct parts *parts);

/* They may be others than before: whoever decides what runs, and who waits for one, looks again. */
void devices_changed(struct parts *parts);

/* For hooks_devices.  A plugin that is not there yet is waited for, a limited time. */
void devices_reserve(void *ctx, const json_t *device, hooks_devices_reserved *done, void *done_ctx);

#endif
