/* This node: who it is and what it says about itself (fingerprint). */
#ifndef CAIRN_AGENT_NODE_NODE_H
#define CAIRN_AGENT_NODE_NODE_H

#include "agent/config/config.h"
#include "agent/node/meta.h"
#include "core/identity.h"
#include "drivers/drivers.h"
#include "hooks/hooks.h"
#include "io/host.h"
#include "server/alone/alone.h"

enum { MARK_SIZE = 9 }; /* 8 hex digits */

struct node {
    struct identity identity;
    char mark[MARK_SIZE]; /* what our cgroups are found by */
    struct host_facts facts;
    struct hooks_node known; /* what tasks may know; attributes and meta owned */
    struct node_meta meta;   /* where that is from */
    struct alone_address addresses[NODE_ADDRESSES_MAX]; /* that ports are given out on */
    char interfaces[NODE_ADDRESSES_MAX][32];            /* of each */
    uint32_t mbits[NODE_ADDRESSES_MAX];                 /* of each of these */
    size_t addresses_count;
    struct core_set cores; /* that a task may have for itself */
    size_t cores_count;    /* with those that none may */
    struct room whole;     /* what it has; 0: nobody knows */
    struct room room;      /* what of it is for allocs; UINT64_MAX: nobody knows */
};

/* Takes the identity from STORE (core/identity.h), and the metadata, and reads the host's facts.
 * NODE is zeroed: most of it nobody ever touches, and so it is no memory.  The mark is the
 * beginning of the first id this data directory had; it is kept in a file, so that who loses the
 * journal still finds what runs (I-17). */
int node_init(struct node *node, const struct store *store, const struct say *say,
              const struct config *config, struct err *err);
void node_free(struct node *node);

/* Finds the addresses of NODE, whose facts are known, by CONFIG.  ERR_INVALID: what it names is not
 * there (networks.c). */
int node_find_addresses(struct node *node, const struct config *config, struct err *err);

/* Finds the cores that we may run on, but for those that CONFIG reserves (cores.c). */
void node_find_cores(struct node *node, const struct config *config);

/* Finds the room of NODE, whose facts and cores are known, by CONFIG (room.c). */
void node_find_room(struct node *node, const struct config *config);

/* Notes the CNI plugins that are here, with their versions, and those of host volumes. */
void node_set_plugins(struct node *node, const struct spec_pairs *versions);
void node_set_host_plugins(struct node *node, const struct spec_pairs *versions);

/* What the agent of Consul says; false: nothing of it is new. */
bool node_set_consul(struct node *node, const struct spec_pairs *attributes);

/* The attributes of a driver, which it has while it works on this node. */
void node_set_driver(struct node *node, const struct driver_info *driver);

#endif
