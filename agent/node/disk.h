/* The file system that holds the allocs, measured for the control plane: when that asks for it, and
 * every gc_interval. */
#ifndef CAIRN_AGENT_NODE_DISK_H
#define CAIRN_AGENT_NODE_DISK_H

#include "agent/parts.h"

struct disk_watch;

/* PARTS is borrowed. */
struct disk_watch *disk_watch_new(struct parts *parts);
void disk_watch_free(struct disk_watch *watch);

/* alone_disk_measured follows in a moment, once for all who ask until then. */
void disk_watch_ask(struct disk_watch *watch);

#endif
