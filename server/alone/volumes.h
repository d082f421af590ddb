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
#ifndef CAIRN_SERVER_ALONE_VOLUMES_H
#define CAIRN_SERVER_ALONE_VOLUMES_H

#include "fsm/policy.h"
#include "server/alone/alone.h"
#include "server/control.h"

/* Who answers for claims on them; it lives as long as ALONE. */
const struct control *alone_control(struct alone *alone);

/* --- looking --- */

struct alone_volume {
    const char *namespace, *id;
    /* Nomad's fields, without those that are secret; borrowed until the next change. */
    const json_t *json;
    enum registration_state state;
    bool has_mount_flags;  /* which are secret */
    const char *last_fail; /* of what the plugin was asked to make or delete; "": none */
};

const struct alone_volume *alone_find_volume(const struct alone *alone, const char *namespace,
                                             const char *id);

/* In the order of their names. */
typedef bool alone_volume_cb(void *ctx, const struct alone_volume *volume);
void alone_each_volume(struct alone *alone, alone_volume_cb *cb, void *ctx);

const char *registration_name(enum registration_state state);

/* What the node has of the plugin of VOLUME. */
void alone_plugin_of(const struct alone *alone, const struct alone_volume *volume,
                     struct control_plugin *ret_plugin);

/* True if somebody could claim it now, as far as the volume and its plugin are concerned. */
bool alone_is_schedulable(const struct alone *alone, const struct alone_volume *volume);

/* Who has VOLUME, or may have it: how many, and as what (0: nobody has it). */
struct alone_claims {
    size_t readers, writers;
    uint8_t access, attachment;
};

struct alone_claims alone_claims_of(const struct alone *alone, const struct alone_volume *volume);

/* The machine of each of them, in the order in which they came. */
void alone_each_claim(const struct alone *alone, const struct alone_volume *volume,
                      core_each_cb *cb, void *ctx);

/* --- asking --- */

/* CODE is 0 and ANSWER (may be NULL) what came of it, or ERR_* and ERR says why.  Once, and perhaps
 * before what was called returns. */
typedef void alone_volume_answer(void *ctx, int code, const struct err *err, const json_t *answer);

/* Registers the volume of REQUEST (Nomad's CSIVolume, borrowed), in NAMESPACE if it names none, or
 * changes what may be changed of one that is registered.  The answer is its JSON. */
void alone_register_volume(struct alone *alone, const char *namespace, const json_t *request,
                           alone_volume_answer *answer, void *ctx);

/* The same of one that its plugin makes first, by its name. */
void alone_create_volume(struct alone *alone, const char *namespace, const json_t *request,
                         alone_volume_answer *answer, void *ctx);

/* Has its plugin delete it, and forgets it.  SECRETS (borrowed, may be NULL) go with that, over
 * those of the volume. */
void alone_delete_volume(struct alone *alone, const char *namespace, const char *id,
                         const json_t *secrets, alone_volume_answer *answer, void *ctx);

/* Overwrites all texts in SECRETS (may be NULL) and gives up the reference, which is the last. */
void alone_wipe(json_t *secrets);

/* Forgets it; FORCE: also while allocs that have ended have claims on it. */
void alone_deregister_volume(struct alone *alone, const char *namespace, const char *id, bool force,
                             alone_volume_answer *answer, void *ctx);

/* Has its plugin take it off this node, if no alloc has it any more. */
void alone_detach_volume(struct alone *alone, const char *namespace, const char *id,
                         alone_volume_answer *answer, void *ctx);

/* --- what only passes through --- */

/* A snapshot of a registered volume: Nomad's CSISnapshot (borrowed), with the volume in NAMESPACE.
 * The answer is what Nomad's client of that call answers. */
void alone_create_snapshot(struct alone *alone, const char *namespace, const json_t *snapshot,
                           alone_volume_answer *answer, void *ctx);
void alone_delete_snapshot(struct alone *alone, const char *plugin, const char *id,
                           const json_t *secrets, alone_volume_answer *answer, void *ctx);

/* A page of what a plugin knows, {"Entries", "NextToken"}. */
struct alone_page { /* borrowed for the call */
    const char *plugin;
    bool snapshots;      /* not volumes */
    int64_t entries_max; /* 0: as the plugin likes */
    const char *token;   /* of the page before, "": the first */
    const json_t *secrets;
};

void alone_list_external(struct alone *alone, const struct alone_page *page,
                         alone_volume_answer *answer, void *ctx);

/* A storage plugin has come, gone, or changed: what waited for it is looked at.  ALONE may be NULL.
 */
void alone_plugins_changed(struct alone *alone);

#endif
