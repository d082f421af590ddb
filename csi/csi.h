/*
 * CSI: calls to storage plugins.
 *
 * A client speaks to one plugin through its socket.  What is asked is checked before it is sent,
 * what is answered before anybody sees it; whatever is wrong is an error that names the plugin and
 * the call.  Whose turn it is on a volume is decided elsewhere (fsm/volume.h), and so is what to do
 * when a call has failed (fsm/csi.h).
 *
 * A plugin has so many calls to work on at once, and others wait until one of them has ended, in
 * the order in which they came: a volume has one call at a time, so that none comes twice before
 * another has come once.  What a plugin is asked of itself never waits: it is not unwell for having
 * much to do.
 *
 * Texts are UTF-8 without NUL.  Paths are those of the plugin's own root.  Secrets have a type of
 * their own, are wiped when they are not needed any more, and are in no text of an error.
 */
#ifndef CAIRN_CSI_CSI_H
#define CAIRN_CSI_CSI_H

#include "base/base.h"
#include "fsm/csi.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes, as the specification bounds them where it does. */
enum {
    CSI_STRING_MAX = 128,
    CSI_ID_MAX = 256, /* of a volume, a snapshot, a node: drivers of clouds need more */
    CSI_PLUGIN_NAME_MAX = 63,
    CSI_MAP_BYTES_MAX = 4096, /* keys and values together */
    CSI_PATH_MAX = 4095,
    CSI_TOKEN_MAX = 4096,
    CSI_TEXT_MAX = 1024, /* words for people */
    CSI_CAPABILITIES_MAX = 16,
    CSI_TOPOLOGIES_MAX = 64,
    CSI_ENTRIES_MAX = 16384, /* of one page of a list */
    CSI_SOCKET_MAX = 107,
};

/* One that hangs leaves half of all connections to the others (csi/client/client.c). */
enum { CSI_PARALLEL_MAX = 128 };

/* --- secrets --- */

struct csi_secrets;

struct csi_secrets *csi_secrets_new(void);

/* Copies KEY and VALUE.  ERR_INVALID if the key is not of letters, digits and "-_.", ERR_LIMIT
 * beyond CSI_MAP_BYTES_MAX. */
int csi_secrets_add(struct csi_secrets *secrets, const char *key, const char *value,
                    struct err *err);
void csi_secrets_free(struct csi_secrets *secrets); /* wipes; NULL is fine */

/* --- what is asked --- */

struct csi_pair {
    const char *key, *value;
};

struct csi_map {
    const struct csi_pair *pairs;
    size_t count;
};

struct csi_capability {
    enum csi_access access;
    bool block;               /* a device instead of a file system; then nothing below is said */
    const char *fs_type;      /* NULL: the plugin's own choice */
    const char *const *flags; /* of mount; may be secret: never printed */
    size_t flags_count;
};

/* What its plugin knows of a volume besides what a call carries: it is never sent, and in no words
 * of the answer either. */
struct csi_hidden {
    const struct csi_secrets *secrets;
    const char *const *flags; /* of mount */
    size_t flags_count;
};

/* Each call has some of these; NULL, 0 and empty are "not said".  A call that lacks what it needs,
 * or is given what it does not have, is ERR_INVALID. */
struct csi_request {
    enum csi_call call;
    const char *volume_id;
    const char *name; /* of the volume or snapshot to be made */
    const char *node_id;
    const char *snapshot_id;      /* what a volume is made from, too */
    const char *source_volume_id; /* what a volume or snapshot is made from */
    const char *staging_path;
    const char *target_path; /* also of a volume that is measured or expanded */
    const struct csi_capability *capabilities;
    size_t capabilities_count;
    bool readonly;
    struct csi_map publish_context, volume_context, parameters;
    const struct csi_secrets *secrets;
    struct csi_hidden hidden;     /* of any call */
    int64_t bytes_min, bytes_max; /* capacity */
    int32_t entries_max;
    const char *token;
    const struct csi_map *required, *preferred; /* topologies */
    size_t required_count, preferred_count;
};

/* --- what is answered --- */

struct csi_condition {
    bool known, abnormal;
    const char *text;
};

struct csi_volume {
    const char *id;
    int64_t bytes; /* 0: not known */
    struct csi_map context;
    const char *snapshot_id, *source_volume_id; /* what it was made from, or NULL */
    const struct csi_map *topologies;
    size_t topologies_count;
    const char *const *node_ids; /* where it is published; of a list */
    size_t node_ids_count;
    struct csi_condition condition;
};

struct csi_snapshot {
    const char *id, *source_volume_id;
    int64_t bytes;
    int64_t made_unix_s;
    bool ready;
};

struct csi_usage {
    int64_t available, total, used;
    bool inodes; /* not bytes */
};

/* Texts are "" where the plugin said nothing, unless it is said otherwise. */
struct csi_answer {
    const char *name, *version;           /* PLUGIN_INFO */
    uint32_t capabilities;                /* the three that ask for them: CSI_PLUGIN_HAS_... */
    bool expands_online, expands_offline; /* PLUGIN_CAPABILITIES */
    bool ready;                           /* PROBE */
    const char *node_id;                  /* NODE_INFO, with the two below */
    int64_t volumes_max;                  /* 0: no bound */
    struct csi_map topology;
    const struct csi_volume *volumes; /* CREATE_VOLUME one, LIST_VOLUMES */
    size_t volumes_count;
    const struct csi_snapshot *snapshots; /* CREATE_SNAPSHOT one, LIST_SNAPSHOTS */
    size_t snapshots_count;
    const char *next_token;         /* of a list; "": this was the last page */
    struct csi_map publish_context; /* CONTROLLER_PUBLISH */
    bool confirmed;                 /* VALIDATE, with the two below */
    const struct csi_capability *capabilities_confirmed;
    size_t capabilities_confirmed_count;
    const char *text;              /* VALIDATE: why not */
    int64_t bytes;                 /* GET_CAPACITY, CONTROLLER_EXPAND, NODE_EXPAND */
    bool node_expands;             /* CONTROLLER_EXPAND: NODE_EXPAND has to follow */
    const struct csi_usage *usage; /* NODE_STATS */
    size_t usage_count;
    struct csi_condition condition; /* NODE_STATS */
};

struct csi_result {
    enum csi_call call;
    const struct csi_answer *answer; /* borrowed until the callback returns; NULL: error says why */
    unsigned status;                 /* of gRPC; of an answer that cannot be read 13, INTERNAL */
    bool answered;                   /* that is the plugin's own word */
    struct csi_outcome outcome;
    struct err error; /* "plugin hp: NodeStageVolume: NOT_FOUND: ..." */
};

/* --- calls --- */

const char *csi_call_name(enum csi_call call); /* "NodeStageVolume" */

struct csi_client;
struct csi_operation;

/* A client for the plugin NAME, which answers on SOCKET; both are copied.  Connects to nothing.
 * NULL with ERR_INVALID if either is too long. */
struct csi_client *csi_client_new(struct loop *loop, const char *name, const char *socket,
                                  struct err *err);

/* Cancels what is under way, with callbacks. */
void csi_client_free(struct csi_client *client);

struct csi_load {
    unsigned calls;   /* that the plugin works on, but for those about itself */
    unsigned waiting; /* for one of these to end */
    unsigned gave_up; /* that have waited in vain, ever */
};

void csi_client_load(const struct csi_client *client, struct csi_load *ret_load);

/* Starts a call; all of REQUEST is copied.  CB comes once, later, within the call's limit
 * (CSI_CALLS), of which it may wait for the half: then it has failed, and the plugin has heard
 * nothing of it.  NULL, and no CB, if it cannot be made: ERR_INVALID, ERR_LIMIT. */
struct csi_operation *csi_start(struct csi_client *client, const struct csi_request *request,
                                void (*cb)(void *ctx, const struct csi_result *result), void *ctx,
                                struct err *err);

/* Ends a call: its callback comes now with ERR_CANCELED.  Whatever the plugin does, it goes on
 * doing: to undo is another call. */
void csi_cancel(struct csi_operation *operation);

#endif
