/*
 * This node: who it is, what time it is, what it says about itself (fingerprint).
 *
 * Node time counts milliseconds, sleep included, and never goes back: within a boot it is
 * CLOCK_BOOTTIME plus an offset kept in the journal; after a reboot the offset is chosen so that it
 * goes on from the last event by as much as the wall clock has moved forward (I-36).
 */
#ifndef CAIRN_AGENT_NODE_H
#define CAIRN_AGENT_NODE_H

#include "agent/config.h"
#include "core/clock.h"
#include "core/core.h"
#include "hooks/hooks.h"
#include "io/host.h"

struct journal;

enum { MARK_SIZE = 9 }; /* 8 hex digits */

struct node {
    char id[UUID_TEXT_SIZE];
    char secret[UUID_TEXT_SIZE];
    char boot_id[UUID_TEXT_SIZE];
    char mark[MARK_SIZE];     /* what our cgroups are found by */
    bool rebooted;            /* another boot id than the journal remembers */
    uint64_t clock_offset_ms; /* node time = CLOCK_BOOTTIME + this (modulo 2^64) */
    uint64_t last_turn;       /* of the journal */
    bool changed;             /* boot id or offset are not as the journal has them */
    struct host_facts facts;
    struct hooks_node known; /* what tasks may know; attributes and meta owned */
};

/* Reads id and secret from the journal, or makes them where there are none or they are damaged;
 * then they are written before anything else happens (I-34).  The mark is the beginning of the
 * first id this data directory had; it is kept in a file, so that who loses the journal still finds
 * what runs (I-17).  Reads the host's facts. */
int node_init(struct node *node, struct journal *journal, const struct config *config,
              struct err *err);
/* What JOURNAL knows of the node that wrote it, as it was then: id, secret, boot id, clock offset,
 * turn, and the newest event; nothing else is set.  ERR_GONE: no identity was ever stored. */
int node_recall(struct node *node, struct journal *journal, struct clock_last *ret_last,
                struct err *err);

/* The entry "node" of the journal's meta, owned by the caller. */
char *node_encode(const struct node *node);

/* Lets the next commit of CORE, which must be that of the restore, take the boot id and the clock
 * along.  Not before: a daemon that died in between would forget that the host was rebooted, and a
 * full disk would keep it from starting at all. */
void node_keep(const struct node *node, struct core *core);

void node_free(struct node *node);

#endif
