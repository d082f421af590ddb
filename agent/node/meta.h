/*
 * The node's metadata: that of the configuration, and over it what an operator has said since, in
 * the journal's meta under "metadata".
 *
 * What is said holds from the commit on that has it, over restarts and whatever the configuration
 * says then.  Follows nomad v2.0.5 client/meta_endpoint.go and nomad/structs/node.go
 * (NodeMetaApplyRequest); the bounds are those of fsm/limits.h.
 */
#ifndef CAIRN_AGENT_NODE_META_H
#define CAIRN_AGENT_NODE_META_H

#include "core/life.h"
#include "spec/spec.h"

#include <jansson.h>

struct node_meta {
    const struct spec_pairs *configured; /* borrowed */
    struct spec_pairs *merged; /* what holds; the place is borrowed, what is in it owned */
    json_t *said;              /* key -> text; null: the configuration's is taken away */
    json_t *next;              /* what the next commit decides, if it is posted */
    bool untold;               /* there is less of it than the journal has */
    struct life *life;         /* borrowed */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Reads what STORE holds; META knows where to find the configuration's and where to merge them, and
 * is zero else.  What is damaged is put into quarantine, and begun anew. */
int node_meta_read(struct node_meta *meta, const struct store *store, const struct say *log,
                   int64_t now_unix_ns, struct err *err);
void node_meta_free(struct node_meta *meta);

/* Before LIFE begins; CHANGED (may be NULL) is called when something else holds. */
void node_meta_begin(struct node_meta *meta, struct life *life, void (*changed)(void *ctx),
                     void *ctx);

/* Each key of CHANGES gets the text there, or none if it is null, from the next commit on; or
 * nothing changes: ERR_INVALID, ERR_LIMIT or ERR_AGAIN, and ERR says why. */
int node_meta_apply(struct node_meta *meta, const json_t *changes, struct err *err);

#endif
