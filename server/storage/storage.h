/*
 * Volumes of storage plugins, as the stand-alone control plane has them.
 *
 * A volume is registered under "volume/<namespace>/<id>" in the journal's `spec` table, as Nomad's
 * JSON; its secrets, and the flags that it is mounted with, are apart from that, under
 * "secret/volume/...", and in memory only while a plugin is asked.  Who has claims on it is not
 * stored a second time: that are the volume machines of the core.
 *
 * What a plugin is asked to make or to delete is stored before it is asked, and again when it has
 * answered.  Nobody knows what became of a call in which the daemon, or the plugin, died: it is
 * made again until there is an answer (fsm/policy.h).
 */
#ifndef CAIRN_SERVER_STORAGE_STORAGE_H
#define CAIRN_SERVER_STORAGE_STORAGE_H

#include "core/life.h"
#include "fsm/policy.h"
#include "server/control.h"
#include "spec/constraint.h"

#include <jansson.h>

struct storage;

struct storage_config {
    struct life *life; /* borrowed */
    struct say say;
    /* Asks the controller of a storage plugin; for NULL there is none that is healthy. */
    control_call *controller;
    control_topology *topology; /* NULL: no plugin has said one */
    void *controller_ctx;       /* of both */
    /* Of host volumes only: the node, how new ids are made, whether there is a PLUGIN, and who of
     * its allocs has the volume NAME of NAMESPACE, or is about to: a new reference to a list of
     * ids. */
    const struct constraint_node *node; /* borrowed */
    void (*new_id)(void *ctx, char to[UUID_TEXT_SIZE]);
    bool (*has_plugin)(void *ctx, const char *plugin);
    json_t *(*users)(void *ctx, const char *namespace, const char *name);
    void *hosted_ctx; /* of the three */
    /* Somebody may have a volume now who could not before. */
    void (*freed)(void *ctx);
    void *freed_ctx;
};

struct storage *storage_new(const struct storage_config *config);
void storage_free(struct storage *storage);

/* Reads the volumes of the journal. */
int storage_load(struct storage *storage, struct err *err);

/* Goes on with what is not known to be made, deleted or expanded, where it is time; and the next
 * tidy does so where that had to wait for a plugin, as plugins have come, gone or changed. */
void storage_tidy(struct storage *storage);
void storage_resume(struct storage *storage);

/* The node time of the next such tidy, 0: none is due. */
uint64_t storage_deadline_ms(const struct storage *storage);

/* Who answers for claims on them; it lives as long as STORAGE. */
const struct control *storage_control(struct storage *storage);

/* --- looking --- */

struct storage_volume {
    const char *namespace, *id;
    /* Nomad's fields, without those that are secret; borrowed until the next change. */
    const json_t *json;
    enum registration_state state;
    bool has_mount_flags;  /* which are secret */
    const char *last_fail; /* of what the plugin was asked to make or delete; "": none */
};

const struct storage_volume *storage_find_volume(const struct storage *storage,
                                                 const char *namespace, const char *id);

/* In the order of their names. */
typedef bool storage_volume_cb(void *ctx, const struct storage_volume *volume);
void storage_each_volume(struct storage *storage, storage_volume_cb *cb, void *ctx);

const char *registration_name(enum registration_state state);

/* What the node has of the plugin of VOLUME. */
void storage_plugin_of(const struct storage *storage, const struct storage_volume *volume,
                       struct control_plugin *ret_plugin);

/* True if somebody could claim it now, as far as the volume and its plugin are concerned. */
bool storage_is_schedulable(const struct storage *storage, const struct storage_volume *volume);

/* True if VOLUME can be reached from this node, as far as it and its plugin say. */
bool storage_is_reachable(const struct storage *storage, const struct storage_volume *volume);

/* Who has VOLUME, or may have it: how many, and as what (0: nobody has it). */
struct storage_claims {
    size_t readers, writers;
    uint8_t access, attachment;
};

struct storage_claims storage_claims_of(const struct storage *storage,
                                        const struct storage_volume *volume);

/* The machine of each of them, in the order in which they came. */
void storage_each_claim(const struct storage *storage, const struct storage_volume *volume,
                        core_each_cb *cb, void *ctx);

/* --- asking --- */

/* CODE is 0 and ANSWER (may be NULL) what came of it, or ERR_* and ERR says why.  Once, and perhaps
 * before what was called returns. */
typedef void storage_volume_answer(void *ctx, int code, const struct err *err,
                                   const json_t *answer);

/* Registers the volume of REQUEST (Nomad's CSIVolume, borrowed), in NAMESPACE if it names none, or
 * changes what may be changed of one that is registered.  The answer is its JSON. */
void storage_register_volume(struct storage *storage, const char *namespace, const json_t *request,
                             storage_volume_answer *answer, void *ctx);

/* The same of one that its plugin makes first, by its name. */
void storage_create_volume(struct storage *storage, const char *namespace, const json_t *request,
                           storage_volume_answer *answer, void *ctx);

/* Has its plugin delete it, and forgets it.  SECRETS (borrowed, may be NULL) go with that, over
 * those of the volume. */
void storage_delete_volume(struct storage *storage, const char *namespace, const char *id,
                           const json_t *secrets, storage_volume_answer *answer, void *ctx);

/* Overwrites all texts in SECRETS (may be NULL) and gives up the reference, which is the last. */
void storage_wipe(json_t *secrets);

/* Forgets it; FORCE: also while allocs that have ended have claims on it. */
void storage_deregister_volume(struct storage *storage, const char *namespace, const char *id,
                               bool force, storage_volume_answer *answer, void *ctx);

/* Has its plugin take it off this node, if no alloc has it any more. */
void storage_detach_volume(struct storage *storage, const char *namespace, const char *id,
                           storage_volume_answer *answer, void *ctx);

/* --- what only passes through --- */

/* A snapshot of a registered volume: Nomad's CSISnapshot (borrowed), with the volume in NAMESPACE.
 * The answer is what Nomad's client of that call answers. */
void storage_create_snapshot(struct storage *storage, const char *namespace, const json_t *snapshot,
                             storage_volume_answer *answer, void *ctx);
void storage_delete_snapshot(struct storage *storage, const char *plugin, const char *id,
                             const json_t *secrets, storage_volume_answer *answer, void *ctx);

/* A page of what a plugin knows, {"Entries", "NextToken"}. */
struct storage_page { /* borrowed for the call */
    const char *plugin;
    bool snapshots;      /* not volumes */
    int64_t entries_max; /* 0: as the plugin likes */
    const char *token;   /* of the page before, "": the first */
    const json_t *secrets;
};

void storage_list_external(struct storage *storage, const struct storage_page *page,
                           storage_volume_answer *answer, void *ctx);

/* How full the volume is, as its plugin says now, if an alloc has it mounted: as CSI_NODE_STATS of
 * server/control.h, or NULL, nobody has. */
void storage_volume_stats(struct storage *storage, const char *namespace, const char *id,
                          storage_volume_answer *answer, void *ctx);

/* How much PLUGIN has left for volumes, as it says now: as CSI_GET_CAPACITY of server/control.h. */
void storage_plugin_capacity(struct storage *storage, const char *plugin,
                             storage_volume_answer *answer, void *ctx);

/* --- host volumes ---
 *
 * They are a storage of their own, with their plugins in the place of controllers:
 * config.controller is asked to create and to delete them by Nomad's names of fields.  Of the calls
 * above those to look at volumes, to load, tidy and resume are for them, too, and those to create,
 * register and delete them: a request is Nomad's HostVolume, goes where storage_hosted_namespace
 * says, and changes the volume whose ID it names.  To register is for one whose path somebody else
 * has made.  No two have one name.
 *
 * After each start their plugins are asked again to make what is there: what one mounts may not
 * have outlived the host. */

struct storage *storage_new_hosted(const struct storage_config *config);

/* That of the NAME; NULL: there is none. */
const struct storage_volume *storage_find_hosted(const struct storage *storage, const char *name);

/* Where the volume of REQUEST is to be, which may be anything: where it says, or in NAMESPACE if it
 * says nothing.  Borrowed. */
const char *storage_hosted_namespace(const json_t *request, const char *namespace);

/* In Nomad's words, "pending", "ready", "unavailable". */
const char *storage_hosted_state(const struct storage_volume *volume);

/* True if VOLUME can be mounted from where it is; and if that is being found out for the first
 * time since the daemon began. */
bool storage_hosted_is_here(const struct storage_volume *volume);
bool storage_hosted_settles(const struct storage_volume *volume);

#endif
