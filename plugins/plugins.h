/*
 * Plugins that are programs of their own: those of go-plugin's protocol, as Nomad has them for
 * devices and for drivers.
 *
 * A program of plugin_dir that the configuration names is launched, says where it answers, is
 * asked who it is, and given its configuration by the schema that it has; then it is followed: its
 * devices and their statistics, or how its driver is and what that says of its tasks, are streams
 * that stay open.  What state each is in is in the record of its machine (fsm/plugin.h); here is
 * what a record cannot hold.  What tasks want of a driver is asked from above (drivers/external).
 *
 *   <state_dir>/plugins/<name>/     all of one: process/process.h, and
 *     devices                       the last set that it has told, since one that is found again
 *                                   after a restart tells it only when it changes
 *     driver                        the driver that it is, what that can do, and the schema of its
 *                                   tasks: jobs name it, and tasks of it live, before it answers
 *
 * A plugin may be wrong or hostile: what it says is bounded and checked, and costs an error that
 * names the plugin.  Its configuration may hold secrets and is in no text.
 *
 * Everything is called on the loop's thread.
 */
#ifndef CAIRN_PLUGINS_PLUGINS_H
#define CAIRN_PLUGINS_PLUGINS_H

#include "fsm/fields.h"
#include "io/loop.h"
#include "io/proc.h"
#include "spec/arena.h"
#include "spec/spec.h"

#include <jansson.h>

struct plugins;

struct plugin_task_event {
    const char *driver, *alloc, *task, *text;
};

struct plugins_config {
    struct loop *loop;
    const char *state_dir;        /* absolute */
    const char *cgroup_parent;    /* below which each has a cgroup; NULL or "": "cairn" */
    const char *node_mark;        /* in the names of cgroups */
    enum cgroup_mode cgroup_mode; /* what the machine offers */
    uint32_t cores, core_mhz;     /* and has: what drivers reckon with */
    /* A process that ran has ended; TEXT is why, as far as it is known. */
    void (*on_exit)(void *ctx, const char *name, uint32_t generation, const struct exited *exited);
    /* The devices of NAME are others than before, or nobody knows them any more. */
    void (*on_devices)(void *ctx, const char *name);
    /* A driver is another than before, or can be asked again, or no more. */
    void (*on_driver)(void *ctx, const char *driver);
    /* What its driver says of a task; all is borrowed, text is plain. */
    void (*on_task_event)(void *ctx, const struct plugin_task_event *event);
    /* Why DRIVER is no name for the driver of a plugin, NULL: it is. */
    const char *(*driver_fault)(void *ctx, const char *driver);
    void *ctx;
};

/* Copies all of CONFIG.  Touches nothing. */
struct plugins *plugins_new(const struct plugins_config *config);

/* Processes go on, for the next daemon to find; nobody who waits is told any more. */
void plugins_free(struct plugins *plugins);

/* One that there is. */
struct plugin_place {
    const char *name;             /* of its file */
    const char *program;          /* absolute */
    const char *const *arguments; /* NULL-terminated */
    const json_t *config;         /* an object, as HCL's blocks have it; NULL: none */
};

/* Makes it known, all of it copied; nothing is asked of it.  One that is known stays as it is.
 * ERR_LIMIT: the path of state_dir is too long. */
int plugins_add(struct plugins *plugins, const struct plugin_place *place, struct err *err);

/* It is forgotten, and its files are removed; it has ended.  Those of a driver stay: by what tasks
 * that it has left have there they are found when it is named again. */
void plugins_drop(struct plugins *plugins, const char *name);

/* --- what its machine wants --- */

/* ERR is NULL if it went well; then STARTED is of plugins_launch and plugins_recover, IDENTITY of
 * plugins_identify. */
typedef void plugin_asked(void *ctx, const struct started *started,
                          const struct plugin_identity *identity, const struct err *err);

/* CB comes exactly once, unless the plugins are freed first, and maybe before the call returns; of
 * one that is not known it comes with ERR_GONE.  GENERATION names what is launched. */
void plugins_launch(struct plugins *plugins, const char *name, uint32_t generation,
                    plugin_asked *cb, void *ctx);
void plugins_recover(struct plugins *plugins, const char *name, uint32_t generation,
                     plugin_asked *cb, void *ctx);
void plugins_end(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx);

/* Whether it answers, and goes on telling of its devices. */
void plugins_probe(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx);

/* Who it is; and it is configured, and followed from then on. */
void plugins_identify(struct plugins *plugins, const char *name, plugin_asked *cb, void *ctx);

/* --- devices --- */

/* The groups of devices of NAME as it has told last, an array as Nomad's API has it
 * (NodeDeviceResource), borrowed until the loop goes on; NULL: it has not. */
const json_t *plugins_devices(const struct plugins *plugins, const char *name);

/* What it says of them, in the same way (DeviceGroupStats); NULL: nothing. */
const json_t *plugins_stats(const struct plugins *plugins, const char *name);

typedef void plugin_reserved(void *ctx, const struct spec_reservation *reservation,
                             const struct err *err);

/* Asks NAME what a task gets that is given the devices IDS (an array of texts).  CB as above; the
 * reservation is borrowed until it returns. */
void plugins_reserve(struct plugins *plugins, const char *name, const json_t *ids,
                     plugin_reserved *cb, void *ctx);

/* --- drivers --- */

/* What a driver can do. */
struct plugin_capabilities {
    bool signals, runs_commands;
    bool makes_network; /* for each alloc, and enters no other */
    bool enters_network;
    bool keeps_output; /* of its tasks itself */
    enum spec_isolation isolation;
};

/* The driver that a plugin is, as it has told last; borrowed until the loop goes on. */
struct plugin_driver {
    const char *name, *plugin, *version;
    bool answers; /* it can be asked */
    bool detected, healthy;
    const char *description;
    const json_t *attributes; /* of the node: texts by their names; NULL: none */
    struct plugin_capabilities capabilities;
};

/* Steps through all that are known; *AT is 0 first. */
bool plugins_next_driver(const struct plugins *plugins, size_t *at,
                         struct plugin_driver *ret_driver);
bool plugins_find_driver(const struct plugins *plugins, const char *name,
                         struct plugin_driver *ret_driver);

/* The cgroup that whatever the plugin of driver NAME starts begins in; false: there is no such. */
bool plugins_cgroup(const struct plugins *plugins, const char *name, char to[CGROUP_NAME_SIZE]);

/* True if there is a plugin that has not said yet what it is. */
bool plugins_may_have_more(const struct plugins *plugins);

/* The configuration of a task (an object), by the schema of DRIVER: schema_encode(). */
int plugins_encode_task(const struct plugins *plugins, const char *driver, const json_t *config,
                        char **ret_bytes, size_t *ret_length, struct err *err);

/* Asks DRIVER METHOD, the last part of its name; all else of CALL is the caller's.  NULL and
 * ERR_GONE: it cannot be asked now. */
struct grpc_call;
struct grpc_request *plugins_ask(struct plugins *plugins, const char *driver, const char *method,
                                 const struct grpc_call *call, struct err *err);

#endif
