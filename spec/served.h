/*
 * What a Nomad server says of an alloc, as what an alloc of cairn runs by.
 *
 *   Allocation with its Job (nomad/structs, decoded from the wire) -> struct served_alloc, for who
 *                                                                    places it
 *                                                                 -> one JSON text (the journal's
 *                                                                    `spec` table) and alloc_spec
 *
 * The text is the one that jobspec_make_alloc gives of the same job, so that all behind it needs no
 * word of servers: whoever decided that an alloc runs, it runs by the same text.  What only servers
 * act on (constraints, counts, scaling, periodic, ...) was judged there and is nobody's business
 * here.  What an alloc would run by and cairn does not do is refused by the words of
 * spec/schema/schema.c, and so is what newer servers say that this version has not heard of, unless
 * it is zero, as most of what Go sends.
 *
 * Values are of jansson: a time is {"$time": unix nanoseconds or null}, bytes that are no text are
 * {"$bytes": base64}, durations are nanoseconds.  Follows nomad v2.0.5 nomad/structs/structs.go
 * Allocation and Job, and its Canonicalize for what older servers (from v1.1.2) leave out.
 */
#ifndef CAIRN_SPEC_SERVED_H
#define CAIRN_SPEC_SERVED_H

#include "base/base.h"
#include "spec/spec.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this node adds; borrowed for the call. */
struct served_node {
    const char *datacenter;
    /* Of volumes of type csi, by their names in the group, the ids of their plugins, which no alloc
     * says: a server does when the volume is claimed (Volume.PluginID).  Of those that are not in
     * it RET_SPEC has the plugin "", and nothing can be mounted by it: whoever places the alloc
     * finds them out and reads it again. */
    struct spec_pairs plugins;
};

enum served_desire { SERVED_RUN, SERVED_STOP, SERVED_EVICT };

enum served_health { SERVED_HEALTH_UNKNOWN, SERVED_HEALTHY, SERVED_UNHEALTHY };

/* What else is said of it, for whoever places it or hears that it changed; all texts are borrowed
 * from the JSON that it was read from, never NULL, and "" where it says nothing. */
struct served_alloc {
    const char *id, *name;
    const char *namespace, *job_id, *group;
    const char *node_id, *eval_id;
    const json_t *tasks;        /* of its group: array of objects with a Name; borrowed; NULL */
    enum served_desire desired; /* as Nomad: words that are not known are SERVED_RUN */
    const char *desired_status, *desired_description; /* in the server's words */
    const char *client_status;  /* what the server knows: "pending", ..., "unknown" */
    bool client_terminal;       /* that is "complete", "failed" or "lost" */
    bool client_unknown;        /* or "unknown": nothing was heard of the node for too long */
    bool no_shutdown_delay;     /* when it is stopped, nothing waits */
    bool migrate;               /* it is stopped since its node is drained */
    const char *previous_id;    /* whose place, and sticky disk, it takes */
    const json_t *preempted;    /* array of ids (texts), whose ends it waits for; borrowed; NULL */
    const char *deployment_id;  /* which waits to hear of its health */
    enum served_health health;  /* what the server has heard of that */
    bool canary;                /* its services have canary_tags: also in the text and the spec */
    int64_t stop_after_lost_ns; /* without a server for so long it is to be stopped; -1: never */
    uint64_t create_index;
    uint64_t modify_index; /* of the alloc, not of what clients say of it: AllocModifyIndex */
};

/* Reads ALLOC, a structs.Allocation with its Job, as this node is to run it.
 *
 * RET_ALLOC is filled whenever ALLOC has an id, also after a failure; else its id is "".  What it
 * points to lives as long as ALLOC.  RET_TEXT, RET_LENGTH and RET_SPEC as of jobspec_make_alloc:
 * owned by the caller (free, alloc_spec_free), untouched after a failure.  Their create_index and
 * modify_index are those of the server (the latter 0 as long as they are the same), so that what
 * the journal keeps says which version of the alloc it is.
 *
 * ERR_UNSUPPORTED: it asks for what cairn does not do; ERR_INVALID: a rule forbids it; of both ERR
 * names all of it, as far as there is room, in one sentence for the operator who reads it as what
 * became of the alloc.  ERR_LIMIT: it is too large.  ERR_CORRUPT: it is no alloc, or what was given
 * to it is not what its job asks for.  Texts of templates are not read here: whoever renders them
 * does, and tells. */
int served_alloc_read(const json_t *alloc, const struct served_node *node,
                      struct served_alloc *ret_alloc, char **ret_text, size_t *ret_length,
                      struct alloc_spec **ret_spec, struct err *err);

/* Only the first of it: what whoever compares versions wants to know.  ERR_CORRUPT: it has no id.
 */
int served_alloc_peek(const json_t *alloc, struct served_alloc *ret_alloc, struct err *err);

/* True if an alloc that runs by BEFORE goes on by AFTER as it is (update_alloc); false: something
 * of it would have to be made again, or one of them is damaged.  Servers send nothing of the kind
 * of an alloc that runs: they make another one. */
bool served_alloc_in_place(const char *before, size_t before_length, const char *after,
                           size_t after_length);

#endif
