/*
 * The stand-alone control plane: jobs of this one node, without a server.
 *
 * Another source of the same ASSIGN and STOP events that a server would send; nothing else in the
 * program knows which of the two it is.  Jobs are kept as Nomad's JSON in the journal's `spec`
 * table under "job/<namespace>/<id>", their allocs under "alloc/<id>".
 */
#ifndef CAIRN_SERVER_ALONE_ALONE_H
#define CAIRN_SERVER_ALONE_ALONE_H

#include "agent/daemon.h"

#include <jansson.h>

struct standalone *standalone_new(struct daemon *daemon);
void standalone_free(struct standalone *standalone);

/* Reads the jobs of the journal, once its allocs are there; before the first turn. */
int standalone_load(struct standalone *standalone, struct err *err);

struct standalone_evaluation {
    char id[UUID_TEXT_SIZE];
    char job_id[SPEC_NAME_SIZE];
    char namespace[SPEC_NAMESPACE_SIZE];
    char type[16];         /* of the job */
    char triggered_by[32]; /* job-register, job-deregister */
    uint64_t index;        /* daemon_index of its commit */
    int64_t create_unix_ns;
    uint32_t placed, stopped;
};

/* Registers JOB (Nomad API JSON, borrowed) or a new version of it: places what is missing, stops
 * what is not wanted any more.  On success the job and its allocs are posted and RET_EVALUATION
 * filled; they are durable when daemon_after_commit says so.  ERR_INVALID: PROBLEMS (may be NULL)
 * gets one string for each thing that is wrong with the job. */
int standalone_register(struct standalone *standalone, const json_t *job,
                        struct standalone_evaluation *ret_evaluation, json_t *problems,
                        struct err *err);

/* Stops all allocs of a job; PURGE forgets the job and destroys them when they have ended. */
int standalone_deregister(struct standalone *standalone, const char *namespace, const char *job_id,
                          bool purge, struct standalone_evaluation *ret_evaluation,
                          struct err *err);

/* Stops one alloc; while its job is wanted another is placed for it.  ERR_GONE: no such alloc. */
int standalone_stop_alloc(struct standalone *standalone, const char *alloc,
                          struct standalone_evaluation *ret_evaluation, struct err *err);

/* Destroys every terminal alloc (system gc) and forgets dead jobs without allocs. */
void standalone_collect(struct standalone *standalone);

/* An alloc has ended or gone: the next standalone_tidy has something to look at. */
void standalone_alloc_ended(struct standalone *standalone);

/* Once after each turn: destroys ended allocs over the configured bound, forgets jobs that were
 * purged and have no alloc left.  What it posts is work for the next turn. */
void standalone_tidy(struct standalone *standalone);

struct standalone_job {
    const char *namespace, *id;
    const json_t *job; /* as registered, canonical; borrowed until the next change */
    uint64_t version, create_index, modify_index, job_modify_index;
    int64_t submit_unix_ns;
    bool stop; /* desired: nothing runs */
};

const struct standalone_job *standalone_find(const struct standalone *standalone,
                                             const char *namespace, const char *job_id);
typedef bool standalone_each_cb(void *ctx, const struct standalone_job *job);
void standalone_each(const struct standalone *standalone, standalone_each_cb *cb, void *ctx);

/* pending, running or dead, from the job's allocs. */
const char *standalone_job_status(const struct standalone *standalone,
                                  const struct standalone_job *job);

/* The last 256 evaluations of this incarnation, newest first; NULL if unknown. */
const struct standalone_evaluation *standalone_evaluation(const struct standalone *standalone,
                                                          const char *id_prefix);
typedef bool standalone_evaluation_cb(void *ctx, const struct standalone_evaluation *evaluation);
void standalone_each_evaluation(const struct standalone *standalone, standalone_evaluation_cb *cb,
                                void *ctx);

#endif
