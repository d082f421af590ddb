/*
 * What this node asks of whoever decides what runs, and what that one asks of plugins here.
 *
 * A claim is a right to a volume: asked for by the machine that is to have it (fsm/volume.h), and
 * given back when nothing of it is mounted any more.  The stand-alone control plane answers here
 * (server/storage/storage.h), or Nomad's servers (server/nomad/nomad.h).
 *
 * The other way, calls to controllers of storage plugins, and those about what is mounted, have the
 * names and fields that Nomad's servers give them (ClientCSI...), whoever makes one.
 * CSI_GET_CAPACITY and CSI_NODE_STATS, which those never make, have {} and {"VolumeID",
 * "VolumeNamespace", "ExternalID", "Claim": {"AllocationID"}}; the answers are {"AvailableBytes"}
 * and {"Bytes": {"Total", "Used", "Available"}, "Inodes": the same, "IsAbnormal", "Status"}, of
 * which any may be missing.
 */
#ifndef CAIRN_SERVER_CONTROL_H
#define CAIRN_SERVER_CONTROL_H

#include "base/base.h"
#include "fsm/csi.h"
#include "fsm/fsm.h"
#include "fsm/volume.h"
#include "spec/spec.h"

#include <jansson.h>

/* --- claims --- */

struct control_claim {        /* texts borrowed for the call */
    const char *alloc, *name; /* the machine */
    const struct volume_define *define;
    const char *external; /* given back: the volume's id at its plugin, "" if it was never told */
    const char *node_id;  /* the plugin's own id of this node, "" if it is not known */
};

struct control_claimed { /* borrowed for the callback */
    const char *external, *plugin;
    /* The volume's own: what the job says comes over them (spec_volume). */
    const char *fs_type; /* "": the plugin's choice */
    const char *const *flags;
    size_t flags_count;
    struct spec_pairs volume_context, publish_context;
    struct spec_pairs secrets; /* wiped after the callback */
};

/* CLAIMED, or NULL and FAILURE says why. */
typedef void control_claimed_cb(void *ctx, const struct control_claimed *claimed,
                                const struct failure *failure);

/* FAILURE is NULL: it is given back. */
typedef void control_released_cb(void *ctx, const struct failure *failure);

/* Each call has its callback exactly once, from the loop, and perhaps before it returns.  Asking
 * again for what one has is fine, as is giving back what one never had. */
struct control {
    void *ctx;
    void (*claim)(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                  void *cb_ctx);
    void (*unclaim)(void *ctx, const struct control_claim *claim, control_released_cb *cb,
                    void *cb_ctx);
    /* What a claim takes that was granted long ago, without its publish_context: at once, or, if
     * that is not known here, never; nothing is changed by it. */
    void (*recall)(void *ctx, const struct control_claim *claim, control_claimed_cb *cb,
                   void *cb_ctx);
};

/* --- plugins --- */

/* What is here of one storage plugin, all its instances together. */
struct control_plugin {
    bool has_node, has_controller; /* one that offers this is registered */
    bool node_ready, controller_ready;
    bool has_stopped;                 /* none runs, and one that did may again */
    bool needs_controller;            /* it says that there is one */
    uint32_t controller_capabilities; /* CSI_CONTROLLER_* */
    int64_t volumes_max;              /* on this node, 0: any number */
    const char *provider, *version;   /* borrowed until the next turn */
    const char *node_id;              /* its own id of this node, "" if it has told none */
};

struct control_answer {
    const json_t *answer;       /* borrowed; NULL: error says why */
    struct csi_outcome outcome; /* what is to be done then */
    bool answered;              /* it is the plugin's own word */
    struct err error;
};

typedef void control_answer_cb(void *ctx, const struct control_answer *answer);

/* Makes CALL, one of the controller's or CSI_NODE_EXPAND or CSI_NODE_STATS, to the plugin of that
 * id; REQUEST, in which there may be secrets, is borrowed.  CB comes exactly once, perhaps before
 * this returns. */
typedef void control_call(void *ctx, const char *plugin, enum csi_call call, const json_t *request,
                          control_answer_cb *cb, void *cb_ctx);

/* From where on this node volumes of PLUGIN can be reached, {"zone": "a"}: a new reference; NULL:
 * it has not said. */
typedef json_t *control_topology(void *ctx, const char *plugin);

#endif
