/* The processors of this node that tasks may have for themselves. */
#include "agent/node/cores.h"

#include "spec/names.h"

#include <sched.h>
#include <string.h>

void node_find_cores(struct node *node, const struct config *config)
{
    struct core_set reserved = {{0}};
    cpu_set_t allowed;

    (void)config_cores(config->reserved_cores, &reserved); /* it was checked when it was read */
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return; /* then there is none to give away */
    node->cores_count = (size_t)CPU_COUNT(&allowed);
    for (uint16_t core = 0; core < NODE_CORES_MAX && core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && !core_set_has(&reserved, core))
            core_set_add(&node->cores, core);
    }
}

void cores_share(struct cores_shared *shared, const struct parts *parts)
{
    const struct core_set *held = alone_cores(parts->alone);
    const struct node *node = &parts->node;
    uint16_t ids[NODE_CORES_MAX];
    char text[CORES_TEXT_SIZE];
    size_t count = 0;

    if (shared->told && memcmp(&shared->held, held, sizeof(*held)) == 0)
        return;
    shared->told = true;
    shared->held = *held;
    for (int all = 0; all < 2 && count == 0; all++) {
        for (uint16_t core = 0; core < NODE_CORES_MAX; core++) {
            if (core_set_has(&node->cores, core) && (all == 1 || !core_set_has(held, core)))
                ids[count++] = core;
        }
    }
    spec_cores_text(ids, count, text);
    drivers_share_cores(parts->drivers, text, count < node->cores_count);
}
