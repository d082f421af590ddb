/*
 * Inside server/storage/: what its parts share.
 *
 * registry/ keeps them (registry.c), reads what callers send and says what of what is stored is
 * believed (read.c), says what may be changed (merge.c) and who makes them (plugin.c); lanes.c has
 * one thing done after the other to a volume; claims.c says who may have one; provision.c is what
 * callers ask for, operation.c the steps of that, growth.c how they grow, and passing.c what is
 * only passed on.  storage.c makes it.  Host volumes stand on the same registry, lanes and
 * operations: hosted.c is what callers ask of them, hosted_read.c reads them.
 */
#ifndef CAIRN_SERVER_STORAGE_PART_H
#define CAIRN_SERVER_STORAGE_PART_H

#include "base/list.h"
#include "server/storage/storage.h"
#include "spec/spec.h"

#include <uthash.h>

struct lane_task;
struct operation;
struct passing;
struct registered;

/* What volumes of storage plugins and host volumes do not have in common. */
struct storage_kind {
    const char *prefix; /* of their keys: "<prefix>/<namespace>/<id>" */
    bool has_names;     /* no two of them are called the same */
    /* Why what is stored as JSON (may be NULL) under KEY cannot be believed, NULL: it can. */
    const char *(*fault)(const char *key, const json_t *json);
    /* What a caller asks for who sends REQUEST, as it begins in its turn; ERR_INVALID: all that is
     * wrong with it. */
    int (*read)(struct storage *storage, const char *namespace, const json_t *request, bool creates,
                struct operation **ret_operation, struct err *err);
    /* TASK, an operation, waits for its turn at VOLUME (NULL: there is none). */
    void (*enter)(struct lane_task *task, const json_t *volume);
    void (*begin_delete)(struct lane_task *task);
    void (*keep)(struct operation *operation);        /* its plugin does not delete it */
    bool (*is_open)(const struct registered *volume); /* something of it has to be gone on with */
    void (*resume)(struct lane_task *task);           /* goes on with it, in its turn */
};

struct storage {
    struct storage_config config;
    const struct storage_kind *kind;
    struct registered *volumes;
    struct registered *by_name; /* those whose kind has names */
    bool volumes_unsorted;
    struct change_of_volume *volume_changes; /* that the next commit decides */
    uint64_t provision_at_ms;                /* when a plugin is asked again, 0: never */
    struct lane *lanes;      /* what is done to volumes, one thing after the other */
    struct grant *grants;    /* claims that machines have not heard of yet */
    struct passing *passing; /* questions to plugins */
    struct control control;
};

/* --- volumes (registry/registry.c) --- */

enum { REGISTRY_ID_SIZE = SPEC_SOURCE_SIZE }; /* of a volume, as jobs name it */

struct registered {
    char key[JOURNAL_KEY_SIZE]; /* "volume/<namespace>/<id>" */
    struct storage_volume public;
    char namespace[SPEC_NAMESPACE_SIZE], id[REGISTRY_ID_SIZE];
    char *name; /* owned; NULL: it is found by none */
    json_t *json;
    uint64_t retry_at_ms;   /* node time at which its plugin is asked again, 0: nothing is open */
    uint32_t failures;      /* in a row, of this incarnation */
    bool resumes;           /* that is under way */
    bool is_here, is_asked; /* of a host volume, since this daemon began: its plugin has said so,
                               and has been asked */
    UT_hash_handle hh, by_name;
};

int registry_load(struct storage *storage, struct err *err);
void registry_free(struct storage *storage);

/* NULL: there is none. */
struct registered *registry_find(const struct storage *storage, const char *namespace,
                                 const char *id);

/* The same, of a kind that has names. */
const struct registered *registry_named(const struct storage *storage, const char *name);

/* What of VOLUME is secret: {"Secrets": {...}, "MountFlags": [...]}, each only if there are some; a
 * new reference, which is wiped.  NULL: it cannot be read. */
json_t *registry_secret(const struct storage *storage, const struct registered *volume);

/* The volume ID says JSON (moved) from now on, NULL: it is forgotten; and SECRET (borrowed), NULL:
 * what was.  THEN hears when that is durable, and seen by all, or that it is not to be. */
void registry_store(struct storage *storage, const char *namespace, const char *id, json_t *json,
                    const json_t *secret, life_answer *then, void *ctx);

void registry_forget_changes(
    struct storage *storage); /* the daemon ends, and nobody hears of them */

/* --- volumes of storage plugins (provision.c), as storage_kind has it --- */

int provision_read(struct storage *storage, const char *namespace, const json_t *request,
                   bool creates, struct operation **ret_operation, struct err *err);
void provision_enter(struct lane_task *task, const json_t *volume);
void provision_begin_delete(struct lane_task *task);
void provision_keep(struct operation *operation);
void provision_resume(struct lane_task *task);

/* --- plugins (registry/plugin.c) --- */

/* What the node has of PLUGIN; false: it has none. */
bool registry_plugin(const struct storage *storage, const char *plugin,
                     struct control_plugin *ret_plugin);

/* Says of one that has_stopped why it is not there. */
int registry_plugin_stopped(const char *plugin, struct err *err);

/* Says so of one that runs and is not ready. */
int registry_no_controller(const char *plugin, struct err *err);

/* --- host volumes (hosted.c, hosted_read.c) --- */

extern const struct storage_kind hosted_kind;

/* Of REQUEST what a host volume has: owned by the caller.  ERR_INVALID: all that is wrong with it.
 */
int hosted_read(const json_t *request, const char *namespace, bool registers, json_t **ret_volume,
                struct err *err);

/* As registry_fault. */
#define HOSTED_PREFIX "host-volume"
const char *hosted_fault(const char *key, const json_t *json);

/* --- what is read (registry/read.c) --- */

/* Of REQUEST what a volume has, in RET_VOLUME, and what of it is secret, in RET_SECRET: both owned
 * by the caller.  ERR_INVALID: all that is wrong with it. */
int registry_read(const json_t *request, const char *namespace, json_t **ret_volume,
                  json_t **ret_secret, struct err *err);

/* Why the volume stored as JSON (may be NULL) under KEY cannot be believed, NULL: it can. */
#define REGISTRY_PREFIX "volume"
const char *registry_fault(const char *key, const json_t *json);

/* True if JSON is stored under KEY, which begins with PREFIX, as its names say, and says how far it
 * has come. */
bool registry_is_stored_as(const char *key, const char *prefix, const json_t *json);

/* True if VALUE is texts by name, or nothing. */
bool registry_is_map(const json_t *value);

/* What VOLUME was registered for; at most REGISTRY_TERMS_MAX. */
enum { REGISTRY_TERMS_MAX = 16 };
size_t registry_terms(const json_t *volume, struct claim_terms ret_terms[REGISTRY_TERMS_MAX]);

/* The text NAME of a volume, "" if it has none. */
const char *registry_text(const json_t *volume, const char *name);

/* Somebody has been asked to make VOLUME larger, and has not finished; and it is the node's turn.
 */
bool registry_grows(const json_t *volume);
bool registry_grows_on_node(const json_t *volume);

/* By what claims on VOLUME are found: its names, and no mode. */
struct volume_define registry_define(const json_t *volume);

/* What its plugin calls it. */
const char *registry_remote_id(const json_t *volume);

/* --- one after the other (lanes.c) --- */

/* Something that is done to a volume; the first member of what it works on. */
struct lane_task {
    struct storage *storage;
    void (*begin)(struct lane_task *task); /* it has its turn: it ends with lane_leave */
    void (*drop)(struct lane_task *task);  /* the daemon ends: free what it works on */
    struct lane *lane;                     /* private, as what follows; zeroed at first */
    bool has_begun;
    struct lane_task *prev, *next;
};

/* TASK has its turn now, or when all that came before it have left. */
void lane_enter(struct lane_task *task, const char *namespace, const char *id);

/* TASK is over, and can be freed behind this. */
void lane_leave(struct lane_task *task);
void lanes_free(struct storage *storage);

/* --- what passes through (passing.c) --- */

void passing_forget(struct storage *storage); /* the daemon ends: nobody is told any more */

/* --- claims (claims.c) --- */

/* Those who have a volume or may have it, but not the machine BUT (may be NULL), and nobody whose
 * alloc the caller knows to go. */
struct claim_list {
    struct claim_terms *items;
    size_t count, size;
};

void claims_list(const struct storage *storage, const json_t *volume, const struct machine_id *but,
                 struct claim_list *list);

/* True if a claim on VOLUME is being given back, by one who may never have heard that it had it:
 * what its controller was asked may be so until then. */
bool claims_are_given_back(const struct storage *storage, const json_t *volume);

/* How DEFINE wants a volume. */
struct claim_terms claims_terms(const struct volume_define *define);
void claims_begin(struct storage *storage);
void claims_free(struct storage *storage);

#endif
