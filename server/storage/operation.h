/*
 * Inside server/storage/ only: one thing that a caller asks of a volume, from its turn at it to its
 * answer (operation.c).  What the steps are is provision.c's.
 */
#ifndef CAIRN_SERVER_STORAGE_OPERATION_H
#define CAIRN_SERVER_STORAGE_OPERATION_H

#include "server/storage/part.h"

enum { OPERATION_RETRY_MS = 1000 };

struct operation {
    struct lane_task task;
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE];
    json_t *wanted; /* the volume of a request */
    json_t *secret; /* and what of it is secret, or what goes with a deletion */
    json_t *volume; /* what is stored next */
    json_t *hidden; /* all secrets that the plugin is given */
    json_t *grown;  /* claims that have been asked for; of growth.c */
    bool creates;   /* not only registers */
    bool force;
    bool is_new;
    struct err err; /* told to the caller when what is known has been stored */
    void (*stored)(struct operation *operation);
    storage_volume_answer *answer; /* NULL: nobody waits for it */
    void *ctx;
};

/* Begins with BEGIN when it is entered into its lane and has its turn. */
struct operation *operation_new(struct storage *storage, const char *namespace, const char *id,
                                void (*begin)(struct lane_task *task));

/* Tells the caller ANSWER (may be NULL), or the error if there is one, and frees it. */
void operation_finish(struct operation *operation, const json_t *answer);

/* Ends OPERATION with its error, whose code is CODE: false. */
bool operation_refused(struct operation *operation, int code);

/* --- storing: operation->volume, NULL: the volume is forgotten --- */

/* Of a volume of a storage plugin: that is to be asked, or has been and nobody knows what came of
 * it. */
bool operation_is_open(const struct registered *volume);

/* When it was made and changed, in which STATE it is, and the error if there is one. */
void operation_stamp(struct operation *operation, enum registration_state state);

/* Goes on with STORED when it is durable; SECRET as in registry_store.  When it cannot be stored
 * the volume is as it was, the caller hears of it, and what is open of it is tried again. */
void operation_store(struct operation *operation, const json_t *secret,
                     void (*stored)(struct operation *operation));
void operation_store_as(struct operation *operation, enum registration_state state,
                        const json_t *secret, void (*stored)(struct operation *operation));

/* What was asked for has come about, or has failed for good: it ends. */
void operation_done(struct operation *operation);

/* There is no such volume any more: that is stored, and it ends. */
void operation_forget(struct operation *operation);

/* A plugin was asked to delete the volume of CTX, an operation. */
void operation_deleted(void *ctx, const struct control_answer *answer);

/* It is stored that nobody knows: it ends, and the plugin is asked again after a pause. */
void operation_doubt(struct operation *operation);

/* It goes well, and is not over: it ends for whoever asked, and goes on after a pause. */
void operation_later(struct operation *operation);

/* At AT_MS, or before, a plugin is to be asked again. */
void operation_retry_at(struct storage *storage, uint64_t at_ms);

/* --- plugins --- */

/* True if the plugin of VOLUME is there, and its controller if it has one; else it has ended. */
bool operation_has_plugin(struct operation *operation, const json_t *volume,
                          struct control_plugin *ret_plugin);

/* True if PLUGIN has the CAPABILITY; else it has ended, LACK says why. */
bool operation_can(struct operation *operation, const struct control_plugin *plugin,
                   uint32_t capability, const char *lack);
void operation_note_plugin(json_t *volume, const struct control_plugin *plugin);

/* The secrets that are stored, and those of the request, which come over them, into hidden; else it
 * has ended. */
bool operation_gather_secrets(struct operation *operation, const struct registered *volume);

/* Asks the controller; REQUEST is moved, and the secrets go with it. */
void operation_call(struct operation *operation, enum csi_call which, json_t *request,
                    control_answer_cb *answered);

/* The registered VOLUME as operation->wanted changes it, into operation->volume; ERR_INVALID, and
 * the operation's error: it may not be changed so (registry/merge.c). */
int operation_merge(struct operation *operation, const struct registered *volume);

/* --- growing (growth.c) --- */

/* The volume is asked to have so much: RET_CALLS, and its plugin has to be asked for that. */
int growth_plan(struct operation *operation, bool *ret_calls);

/* Asks whoever is next to make it so, up to the end; OPERATION->volume is stored. */
void growth_begin(struct operation *operation);

#endif
