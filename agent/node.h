/* This node: who it is, and what it says about itself (fingerprint). */
#ifndef CAIRN_AGENT_NODE_H
#define CAIRN_AGENT_NODE_H

#include "agent/config.h"
#include "hooks/hooks.h"
#include "io/host.h"

struct journal;

struct node {
    char id[UUID_TEXT_SIZE];
    char secret[UUID_TEXT_SIZE];
    char boot_id[UUID_TEXT_SIZE];
    bool rebooted;                  /* another boot id than the journal remembers */
    struct host_facts facts;
    struct hooks_node known;        /* what tasks may know; attributes and meta owned */
};

/* Reads id and secret from the journal, or makes them; they are written, in one record with the
 * boot id, before anything else happens (I-34).  Reads the host's facts. */
int node_init(struct node *node, struct journal *journal, const struct config *config,
              struct err *err);
void node_free(struct node *node);

#endif
