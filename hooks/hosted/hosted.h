/*
 * Plugins that make host volumes: directories, or whatever is mounted there, that outlive allocs.
 *
 * There is one inside, "mkdir", which makes a directory; the others are programs of the node's
 * operator in one directory, called by Nomad's protocol: what is wanted is their argument and in
 * their environment, what came of it is JSON on their standard output.  All calls can be repeated.
 *
 * Each call runs on the pool, of programs a few at once: what waits, waits here.  Follows nomad
 * v2.0.5 client/hostvolumemanager/host_volume_plugin.go.
 */
#ifndef CAIRN_HOOKS_HOSTED_HOSTED_H
#define CAIRN_HOOKS_HOSTED_HOSTED_H

#include "base/base.h"
#include "fsm/fields.h"
#include "io/loop.h"
#include "spec/spec.h"

struct hosted;

struct hosted_config { /* borrowed for the life of what is made */
    struct loop *loop;
    const char *plugin_dir;  /* absolute: the programs are in it; it need not be there */
    const char *volumes_dir; /* absolute: volumes are made in it; made when one is */
    const char *node_id, *node_pool;
};

struct hosted *hosted_new(const struct hosted_config *config);

/* Nobody is told any more of what is under way; programs that run are ended. */
void hosted_free(struct hosted *hosted);

/* --- who is there --- */

/* VERSIONS, by the names of plugins, without the one inside; borrowed for the call. */
typedef void hosted_found(void *ctx, const struct spec_pairs *versions);

/* Asks each program for its version; FOUND follows on the loop. */
void hosted_look(struct hosted *hosted, hosted_found *found, void *ctx);

/* True if PLUGIN is the one inside, or a program is there that is called so. */
bool hosted_has(const struct hosted *hosted, const char *plugin);

/* The version of the one inside. */
extern const char hosted_mkdir_version[];

/* --- volumes --- */

struct hosted_ask {
    bool deletes;       /* else makes */
    const char *plugin; /* "", to make one: it is looked whether the path is there */
    const char *id, *name, *namespace;
    const char *path; /* as its plugin has called it */
    int64_t bytes_min, bytes_max;
    const char *parameters; /* as JSON: texts by name */
};

struct hosted_answer {
    int code;      /* 0: it is so; else text says why not */
    bool is_known; /* what came of it: else it was ended, or had not begun */
    bool is_odd;   /* it was made, and nobody can tell what */
    const char *path;
    int64_t bytes;
    const char *text;
};

/* ANSWER is borrowed for the call. */
typedef void hosted_done(void *ctx, const struct hosted_answer *answer);

/* DONE follows on the loop, exactly once, never from inside the call; ASK is borrowed. */
void hosted_call(struct hosted *hosted, const struct hosted_ask *ask, hosted_done *done, void *ctx);

#endif
