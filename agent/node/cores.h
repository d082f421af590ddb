/* Processors that tasks have for themselves, and what is left to the others. */
#ifndef CAIRN_AGENT_NODE_CORES_H
#define CAIRN_AGENT_NODE_CORES_H

#include "agent/parts.h"

/* What the drivers were told last; zeroed first. */
struct cores_shared {
    bool told;
    struct core_set held;
};

/* Tells them what tasks share that ask for none, if it has changed: all that no alloc has, and all
 * if none is left. */
void cores_share(struct cores_shared *shared, const struct parts *parts);

#endif
