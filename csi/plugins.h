/*
 * The instances of storage plugins on this node.
 *
 * An instance is a task with a csi_plugin block, or a process that somebody else runs and the
 * node's configuration names: its socket, a client of it, its directories.  Any number of them may
 * have the same plugin id, of which the newest that is ready is the one to use. What state each is
 * in, and what it has said of itself, is in the record of its machine (fsm/plugin.h), which is
 * asked for whenever it matters; here is what a record cannot hold.
 *
 *   <state_dir>/csi/plugins/<alloc>/csi.sock    where the instance of ALLOC answers
 *   <state_dir>/csi/node/<plugin>/              where its volumes are staged and published: one
 * root <state_dir>/csi/controller/<plugin>/        for all instances, so that a newer version finds
 *                                               what the older one has mounted
 *
 * The first is removed with its task, the others are what all of a plugin's volumes are below, and
 * stay.
 */
#ifndef CAIRN_CSI_PLUGINS_H
#define CAIRN_CSI_PLUGINS_H

#include "csi/csi.h"
#include "fsm/plugin.h"
#include "io/host.h"

struct csi_plugins;

struct csi_plugins_config {
    struct loop *loop;
    const char *state_dir; /* absolute; copied */
    /* The committed record of an instance's machine, NULL: there is none. */
    const struct plugin *(*record)(void *ctx, const char *alloc, const char *task);
    void *ctx;
};

/* NULL with ERR_LIMIT if state_dir is too long.  Touches nothing. */
struct csi_plugins *csi_plugins_new(const struct csi_plugins_config *config, struct err *err);

/* Forgets all; nobody who waits is told any more. */
void csi_plugins_free(struct csi_plugins *plugins);

/* --- which there are --- */

enum csi_role { CSI_ROLE_NODE = 1, CSI_ROLE_CONTROLLER = 2 };

/* Borrowed until the next turn of the loop. */
struct csi_instance {
    const char *plugin, *alloc, *task;
    struct csi_client *client;
    unsigned roles; /* of enum csi_role */
    uint32_t plugin_capabilities, node_capabilities, controller_capabilities;
    const char *node_id;     /* the plugin's own id of this node */
    const char *host_root;   /* where stage and publish directories are, on the host */
    const char *plugin_root; /* the same directory as the plugin sees it */
    struct csi_map topology; /* where its volumes can be reached from; empty: anywhere */
    const struct plugin *record;
};

/* The newest READY instance of PLUGIN that has ROLE; NULL: none. */
const struct csi_instance *csi_plugins_find(struct csi_plugins *plugins, const char *plugin,
                                            enum csi_role role);

/* The instance of ALLOC's TASK, ready or not; NULL: it is not known here. */
const struct csi_instance *csi_plugins_of(struct csi_plugins *plugins, const char *alloc,
                                          const char *task);

/* --- an instance --- */

struct csi_paths {
    char root[PATH_SIZE];      /* on the host: <state_dir>/csi/node/<plugin> */
    char directory[PATH_SIZE]; /* of its socket */
    char socket[PATH_SIZE];
};

/* Where an instance in ALLOC has everything.  ERR_INVALID: ALLOC or PLUGIN cannot be the name of a
 * directory, ERR_LIMIT. */
int csi_plugins_paths(const struct csi_plugins *plugins, const char *alloc, const char *plugin,
                      enum plugin_type type, struct csi_paths *ret_paths, struct err *err);

/* What a task is as a plugin; copied. */
struct csi_place {
    const char *plugin, *alloc, *task;
    enum plugin_type type;
    const char *inside; /* where its root file system has the root; NULL: it is the host's */
    const char *socket; /* NULL: in the directory of ALLOC */
};

/* Makes the instance known; nothing is asked of it.  One that is known stays as it is. */
int csi_plugins_add(struct csi_plugins *plugins, const struct csi_place *place, struct err *err);

/* Its process has ended: whoever waits for an answer of it hears of a failure. */
void csi_plugins_ended(struct csi_plugins *plugins, const char *alloc, const char *task);

/* The same, and it is forgotten. */
void csi_plugins_drop(struct csi_plugins *plugins, const char *alloc, const char *task);

/* ERR is NULL if it went well; IDENTITY is set of csi_plugins_identify alone. */
typedef void csi_asked(void *ctx, const struct plugin_identity *identity, const struct err *err);

/* CB comes exactly once, unless the plugins are freed first, and maybe before the call returns; of
 * an instance that is not known it comes with ERR_GONE.  One question at a time. */

/* Waits for somebody to listen on its socket, for as long as it takes; beside another question. */
void csi_plugins_await(struct csi_plugins *plugins, const char *alloc, const char *task,
                       csi_asked *cb, void *ctx);

/* Asks whether it is ready. */
void csi_plugins_probe(struct csi_plugins *plugins, const char *alloc, const char *task,
                       csi_asked *cb, void *ctx);

/* Asks who it is and what it can do, as far as its type has it. */
void csi_plugins_identify(struct csi_plugins *plugins, const char *alloc, const char *task,
                          csi_asked *cb, void *ctx);

#endif
