/*
 * Volumes of storage plugins on this node: what a claim asks of its plugin, and what the mount
 * table says of it.
 *
 * A step is one effect of a volume machine (fsm/volume.h): directories are made ready, the plugin
 * is called, and then the mount table is looked at, because plugins say OK too early, or of
 * nothing. What follows from how a step has ended is decided there; whose turn it is, too.  Below
 * the root of a plugin, which it sees under a name of its own, there are
 *
 *     staging/<namespace>/<volume>                     one for each volume, as CSI wants it
 *     per-alloc/<alloc>/<volume>/<usage>               one for each claim, made by the plugin
 *
 * and in all of it no link is followed.  How a volume is mounted, and with which secrets, is known
 * in memory only, from when it was claimed until the claim is given back: whoever undoes needs none
 * of it, but to keep it out of what plugins say.
 * Everything is called on the loop's thread.
 */
#ifndef CAIRN_CSI_VOLUMES_H
#define CAIRN_CSI_VOLUMES_H

#include "csi/csi.h"
#include "fsm/fields.h"
#include "io/host.h"

struct csi_volumes;

/* The plugin that a call goes to. */
struct csi_node {
    struct csi_client *client; /* borrowed; who frees it has its calls called back */
    const char *root;          /* what is here the directory of the plugin, as it sees it */
    bool stages;               /* it wants volumes staged */
};

struct csi_volumes_config {
    struct loop *loop;
    const char *root;  /* absolute: <root>/<plugin> is the directory of one; copied */
    const char *marks; /* absolute, and there: which mount each claim has; copied */
    /* The plugin of that id, borrowed until the next turn; false: none answers. */
    bool (*find)(void *ctx, const char *plugin, struct csi_node *ret_node);
    void *ctx;
};

struct csi_volumes *csi_volumes_new(const struct csi_volumes_config *config);

/* What is under way is cancelled, and nobody is told; secrets are wiped. */
void csi_volumes_free(struct csi_volumes *volumes);

/* A claim, as its machine knows it.  Texts are borrowed for the call. */
struct csi_claim {
    const char *alloc, *name;
    const struct volume_define *define;
    const char *external; /* what the plugin calls the volume; "": nobody knows any more */
};

/* --- what is known of a claim that was granted --- */

struct csi_terms {       /* borrowed for the call, and copied */
    const char *fs_type; /* "": the plugin's own choice */
    const char *const *flags;
    size_t flags_count;
    struct csi_map publish_context, volume_context;
    struct csi_secrets *secrets; /* moved; NULL: none */
    bool recalled;               /* enough to be hidden in answers, not to mount with */
};

/* In the place of what was known. */
void csi_volumes_know(struct csi_volumes *volumes, const struct csi_claim *claim,
                      const struct csi_terms *terms);
void csi_volumes_forget(struct csi_volumes *volumes, const struct csi_claim *claim);

/* False: since this daemon began the claim was neither granted nor recalled. */
bool csi_volumes_knows(const struct csi_volumes *volumes, const struct csi_claim *claim);

/* What is known of the claim NAME of ALLOC is to be in no answer to REQUEST; borrowed, until
 * something else is known. */
void csi_volumes_hide(const struct csi_volumes *volumes, const char *alloc, const char *name,
                      struct csi_request *request);

/* --- steps --- */

enum csi_step_kind {
    CSI_STEP_STAGE,
    CSI_STEP_PUBLISH,
    CSI_STEP_UNPUBLISH,
    CSI_STEP_UNSTAGE,
    /* The others need no plugin, and tell none. */
    CSI_STEP_UNMOUNT,         /* what is published, whatever the plugin says of it */
    CSI_STEP_UNMOUNT_STAGING, /* what is staged, the same */
    CSI_STEP_LOOK,            /* is it published, and is that what was? */
};

struct csi_step {
    enum csi_step_kind kind;
    struct csi_claim claim;
    bool fresh; /* publishing: nothing was ever begun, so nothing can be there */
};

struct csi_step_result {
    int code;                   /* 0: as it was asked for; else error says why not */
    bool is_mounted;            /* of a look */
    struct csi_outcome outcome; /* of a call that has failed; CSI_DONE: none was made */
    struct err error;
    const char *remark; /* done, and what somebody should know of it all the same; or NULL */
};

/* RESULT is borrowed for the call. */
typedef void csi_step_done(void *ctx, const struct csi_step_result *result);

/* DONE follows once, on the loop, within the limit of the call and a few seconds.  STEP is borrowed
 * for the call. */
void csi_volume_step(struct csi_volumes *volumes, const struct csi_step *step, csi_step_done *done,
                     void *ctx);

/* Where the volume of CLAIM is on this node when it is published.  ERR_INVALID if what it says can
 * be no path. */
int csi_volume_target(const struct csi_volumes *volumes, const struct csi_claim *claim,
                      char to[PATH_SIZE], struct err *err);

/* What its place says of a volume that is mounted: all but the namespace if it is published, all
 * but how it is used if it is staged. */
struct csi_found {
    const char *alloc; /* NULL: it is staged */
    struct volume_define define;
};

/* Each volume that the mount table has below ROOT, as csi_volumes_config has it, in an order in
 * which they can be unmounted; CB returns false to end that.  Touches none of them. */
int csi_volumes_each_mounted(const char *root, bool (*cb)(void *ctx, const struct csi_found *found),
                             void *ctx, struct err *err);

/* Unmounts what was FOUND and belongs to no claim, without its plugin; whoever wants to mount the
 * volume meanwhile waits for the end of that.  DONE as of csi_volume_step. */
void csi_volumes_unmount(struct csi_volumes *volumes, const struct csi_found *found,
                         csi_step_done *done, void *ctx);

/* Where the plugin has it, as it sees what is here its directory as ROOT. */
int csi_volume_seen(const char *root, const struct csi_claim *claim, char staging[PATH_SIZE],
                    char target[PATH_SIZE], struct err *err);

#endif
