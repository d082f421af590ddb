/*
 * The calls of CSI, and what is to be done when one has ended.
 *
 * A plugin's answer is a number of gRPC; what it means depends on the call.  Follows the tables of
 * errors in the CSI specification 1.12, and what real plugins were seen to answer.
 */
#ifndef CAIRN_FSM_CSI_H
#define CAIRN_FSM_CSI_H

#include <stdbool.h>

/* Access modes, as CSI numbers them. */
enum csi_access {
    CSI_ACCESS_UNKNOWN, /* in answers only */
    CSI_SINGLE_NODE_WRITER,
    CSI_SINGLE_NODE_READER,
    CSI_MULTI_NODE_READER,
    CSI_MULTI_NODE_SINGLE_WRITER,
    CSI_MULTI_NODE_MULTI_WRITER,
    CSI_SINGLE_NODE_SINGLE_WRITER,
    CSI_SINGLE_NODE_MULTI_WRITER,
    CSI_ACCESS_COUNT,
};

/* How who claims a volume has it. */
enum csi_attachment {
    CSI_ATTACHMENT_UNKNOWN,
    CSI_FILE_SYSTEM, /* a directory */
    CSI_BLOCK_DEVICE,
    CSI_ATTACHMENT_COUNT,
};

/* What a plugin, its controller and its node service can do: 1 << number of the specification. */
enum { CSI_PLUGIN_HAS_CONTROLLER = 1 << 1, CSI_PLUGIN_HAS_TOPOLOGY = 1 << 2 };
enum {
    CSI_CONTROLLER_CREATES = 1 << 1,
    CSI_CONTROLLER_PUBLISHES = 1 << 2,
    CSI_CONTROLLER_LISTS = 1 << 3,
    CSI_CONTROLLER_HAS_CAPACITY = 1 << 4,
    CSI_CONTROLLER_SNAPSHOTS = 1 << 5,
    CSI_CONTROLLER_LISTS_SNAPSHOTS = 1 << 6,
    CSI_CONTROLLER_CLONES = 1 << 7,
    CSI_CONTROLLER_PUBLISHES_READONLY = 1 << 8,
    CSI_CONTROLLER_EXPANDS = 1 << 9,
    CSI_CONTROLLER_LISTS_NODES = 1 << 10,
    CSI_CONTROLLER_HAS_CONDITION = 1 << 11,
    CSI_CONTROLLER_GETS = 1 << 12,
};
enum {
    CSI_NODE_STAGES = 1 << 1,
    CSI_NODE_HAS_STATS = 1 << 2,
    CSI_NODE_EXPANDS = 1 << 3,
    CSI_NODE_HAS_CONDITION = 1 << 4,
};

/* What a call does to the world. */
enum csi_kind {
    CSI_ASKS,
    CSI_MAKES,
    CSI_UNDOES,
    CSI_KIND_COUNT,
};

/*    call                     service     method                       kind   limit, ms  */
#define CSI_CALLS(X)                                                                               \
    X(PLUGIN_INFO, Identity, GetPluginInfo, ASKS, 5000)                                            \
    X(PLUGIN_CAPABILITIES, Identity, GetPluginCapabilities, ASKS, 5000)                            \
    X(PROBE, Identity, Probe, ASKS, 5000)                                                          \
    X(CREATE_VOLUME, Controller, CreateVolume, MAKES, 120000)                                      \
    X(DELETE_VOLUME, Controller, DeleteVolume, UNDOES, 120000)                                     \
    X(CONTROLLER_PUBLISH, Controller, ControllerPublishVolume, MAKES, 120000)                      \
    X(CONTROLLER_UNPUBLISH, Controller, ControllerUnpublishVolume, UNDOES, 120000)                 \
    X(VALIDATE, Controller, ValidateVolumeCapabilities, ASKS, 120000)                              \
    X(LIST_VOLUMES, Controller, ListVolumes, ASKS, 120000)                                         \
    X(GET_CAPACITY, Controller, GetCapacity, ASKS, 10000)                                          \
    X(CONTROLLER_CAPABILITIES, Controller, ControllerGetCapabilities, ASKS, 5000)                  \
    X(CREATE_SNAPSHOT, Controller, CreateSnapshot, MAKES, 120000)                                  \
    X(DELETE_SNAPSHOT, Controller, DeleteSnapshot, UNDOES, 120000)                                 \
    X(LIST_SNAPSHOTS, Controller, ListSnapshots, ASKS, 120000)                                     \
    X(CONTROLLER_EXPAND, Controller, ControllerExpandVolume, MAKES, 120000)                        \
    X(NODE_STAGE, Node, NodeStageVolume, MAKES, 120000)                                            \
    X(NODE_UNSTAGE, Node, NodeUnstageVolume, UNDOES, 120000)                                       \
    X(NODE_PUBLISH, Node, NodePublishVolume, MAKES, 120000)                                        \
    X(NODE_UNPUBLISH, Node, NodeUnpublishVolume, UNDOES, 120000)                                   \
    X(NODE_STATS, Node, NodeGetVolumeStats, ASKS, 5000)                                            \
    X(NODE_EXPAND, Node, NodeExpandVolume, MAKES, 120000)                                          \
    X(NODE_CAPABILITIES, Node, NodeGetCapabilities, ASKS, 5000)                                    \
    X(NODE_INFO, Node, NodeGetInfo, ASKS, 5000)

enum csi_call {
#define X(name, service, method, kind, limit_ms) CSI_##name,
    CSI_CALLS(X)
#undef X
        CSI_CALL_COUNT,
};

enum { CSI_STATUS_COUNT = 17 }; /* of gRPC's statuses, 0 is OK */

enum csi_verdict {
    CSI_DONE,   /* as it was asked for, or there was nothing to undo */
    CSI_REPEAT, /* it may go away: the same call after a growing pause; a list from its front */
    CSI_DOUBT,  /* likewise, but not often: plugins say this of anything */
    CSI_STAGE_FIRST, /* publishing: the volume is not staged any more */
    CSI_UNDO_FIRST,  /* it is there with other arguments: undo it, then once more */
    CSI_REFUSED,     /* the same call would end the same way */
    CSI_LIES,        /* it said OK, and the mount table says otherwise; whoever looks finds it */
    CSI_VERDICT_COUNT,
};

struct csi_outcome {
    enum csi_verdict verdict;
    bool may_run; /* inside the plugin, still: its opposite may be answered with ABORTED; of a call
                     that only asks it does not matter */
};

/* What to do after CALL has ended with STATUS.  SENT: the plugin has heard of it; ANSWERED: the
 * status is its own word. */
struct csi_outcome policy_csi_outcome(enum csi_call call, unsigned status, bool sent,
                                      bool answered);

#endif
