/*
 * Inside server/alone/ only: jobs, and what the parts of the control plane share.
 *
 * alone.c makes it and keeps evaluations; jobs.c keeps jobs and takes changes back whose commit has
 * failed; register.c is what callers ask for; place.c makes and stops allocs;
 * collect.c forgets what is over.
 */
#ifndef CAIRN_SERVER_ALONE_PART_H
#define CAIRN_SERVER_ALONE_PART_H

#include "fsm/policy.h"
#include "server/alone/alone.h"

#include <uthash.h>

struct job {
    char key[JOURNAL_KEY_SIZE]; /* "job/<namespace>/<id>" */
    struct alone_job public;
    char namespace[SPEC_NAMESPACE_SIZE], id[SPEC_NAME_SIZE];
    json_t *json;
    bool unsaved;   /* registered by the turn under way */
    json_t *before; /* what to go back to if its commit fails, NULL: nothing */
    UT_hash_handle hh;
};

struct alone {
    struct alone_config config;
    struct job *jobs;
    struct alone_evaluation *evaluations; /* ring */
    uint64_t evaluations_count;
    bool tidy_wanted;
    bool forget_stopped; /* system gc was asked for, and some job still has allocs */
};

/* --- jobs (jobs.c) --- */

/* life_control of a struct alone: reads the jobs of the journal. */
int alone_load_jobs(void *ctx, struct err *err);

/* NULL: there is none. */
struct job *job_find(const struct alone *alone, const char *namespace, const char *id);
struct job *job_add(struct alone *alone, const char *namespace, const char *id);
void job_free(struct alone *alone, struct job *job);

/* The number NAME of a job or a group, 0 if there is none. */
uint64_t job_number(const json_t *object, const char *name);

/* JSON (moved) is what JOB says from now on, if the next commit succeeds; else it is as before. */
void job_begin_change(struct alone *alone, struct job *job, json_t *json);

/* --- evaluations (alone.c) --- */

struct alone_evaluation evaluation_begin(const struct alone *alone, const struct job *job,
                                         const char *why);
void evaluation_keep(struct alone *alone, struct alone_evaluation *evaluation);

/* --- what is over (collect.c) --- */

/* life_control of a struct alone.  After each turn in which something ended, ended allocs over the
 * configured bound are destroyed and jobs forgotten that were purged and have no alloc left. */
void alone_note_ended(void *ctx);
void alone_tidy(void *ctx);

/* --- allocs (place.c) --- */

/* The allocs of a job as they are. */
struct gathering {
    struct alone *alone;
    const struct job *job;
    const json_t *wanted; /* NULL: nothing */
    struct reconcile_alloc *allocs;
    struct machine_id *ids;
    size_t count;
};

/* Fills GATHERING, whose job and wanted are set; its lists are freed by the caller. */
void gathering_fill(struct gathering *gathering);
void gathering_free(struct gathering *gathering);

/* Tells one alloc to end, and to be removed then. */
void alone_order_stop(struct alone *alone, const struct machine_id *id, const char *why,
                      bool destroy);

/* Brings the allocs of JOB to what its json wants; GATHERING holds them as they are. */
int alone_reconcile(struct alone *alone, const struct job *job, struct gathering *gathering,
                    struct alone_evaluation *evaluation, struct err *err);

#endif
