/*
 * Inside server/alone/ only: jobs, and what the parts of the control plane share.
 *
 * alone.c makes it and keeps evaluations; jobs.c keeps jobs and takes changes back whose commit has
 * failed; register.c is what callers ask for; limits.c says how much of it is taken; place.c makes
 * and stops allocs; collect.c forgets what is over.
 */
#ifndef CAIRN_SERVER_ALONE_PART_H
#define CAIRN_SERVER_ALONE_PART_H

#include "base/list.h"
#include "fsm/policy.h"
#include "server/alone/alone.h"

#include <uthash.h>

/* What changes that no commit has decided yet do to one alloc. */
struct posted {
    struct machine_id id;
    char group[SPEC_NAME_SIZE];
    uint32_t index;
    bool stops; /* it is told to end; else it is placed */
};

struct posted_list {
    struct posted *items;
    size_t count, size;
};

struct job {
    char key[JOURNAL_KEY_SIZE]; /* "job/<namespace>/<id>" */
    struct alone_job public;
    char namespace[SPEC_NAMESPACE_SIZE], id[SPEC_NAME_SIZE];
    json_t *json;
    bool unsaved;   /* changed, and the commit is to come */
    json_t *before; /* what to go back to if it fails, NULL: nothing */
    struct posted_list posted;
    size_t bytes;    /* of its JSON as it is stored */
    bool forget;     /* once it is stopped and has no alloc left */
    bool looked_for; /* among alone.over */
    UT_hash_handle hh;
};

struct job_list {
    struct job **items;
    size_t count, size;
};

/* What a change of jobs makes. */
struct demand {
    size_t allocs, tasks, specs_bytes; /* new ones */
    size_t stops;
};

struct alone {
    struct alone_config config;
    struct job *jobs;
    bool jobs_unsorted;
    struct job_list unsaved; /* changed, and the commit is to come */
    struct job_list over;    /* may be without allocs now: to be looked at by the next tidy */
    struct kept *kept;       /* ended allocs, the longest ended first once they are sorted */
    bool kept_unsorted;
    size_t jobs_bytes;
    struct demand taken; /* by the turn under way; its core does not count it yet */
    struct alone_evaluation *evaluations; /* ring */
    uint64_t evaluations_count;
};

/* --- jobs (jobs.c) --- */

/* Reads the jobs of the journal. */
int alone_load_jobs(struct alone *alone, struct err *err);

/* NULL: there is none. */
struct job *job_find(const struct alone *alone, const char *namespace, const char *id);
struct job *job_add(struct alone *alone, const char *namespace, const char *id);
void job_free(struct alone *alone, struct job *job);

/* Frees it, and tells those who watch it. */
void job_forget(struct alone *alone, struct job *job);

/* What those watch who watch JOB; borrowed from it. */
struct life_subject job_subject(const struct job *job);

/* The number NAME of a job or a group, 0 if there is none. */
uint64_t job_number(const json_t *object, const char *name);

/* The next tidy looks whether JOB is over. */
void alone_note_over(struct alone *alone, struct job *job);

/* A change of one job: a proposal that the next commit makes true, or that is taken back whole. */
struct change {
    struct job *job;
    json_t *before; /* what the job said, NULL: it was not there */
    size_t posted;
    struct demand taken;
};

struct change change_begin(struct alone *alone, struct job *job);

/* JSON (moved) is what the job says from now on. */
void change_job(struct alone *alone, struct change *change, json_t *json);

/* CODE below 0: nothing of it was ever posted, and a job that is new is freed.  Else it is what
 * the next commit decides.  Returns CODE. */
int change_end(struct alone *alone, struct change *change, int code);

/* --- limits (limits.c) --- */

/* All return 0; ERR_LIMIT and a sentence with the limit if there is no room on this node; or
 * ERR_AGAIN if nothing can be changed at the moment. */

/* May JOB (NULL: a new one) be stored with BYTES? */
int alone_check_job(const struct alone *alone, const struct job *job, size_t bytes,
                    struct err *err);

/* May EVENTS more be posted in this turn? */
int alone_check_turn(const struct alone *alone, size_t events, struct err *err);

/* Takes DEMAND, if there is room, out of what the rest of this turn may have; what is taken back
 * before its commit gives it back by setting `taken` to what it was. */
int alone_take(struct alone *alone, const struct demand *demand, struct err *err);
int alone_take_spec(struct alone *alone, size_t bytes, struct err *err);

/* --- evaluations (alone.c) --- */

struct alone_evaluation evaluation_begin(const struct alone *alone, const struct job *job,
                                         const char *why);
void evaluation_keep(struct alone *alone, struct alone_evaluation *evaluation);

/* --- what is over (collect.c) --- */

/* life_control of a struct alone: after each turn in which something ended, ended allocs over the
 * configured bound are destroyed and jobs forgotten that were purged and have no alloc left. */
void alone_note_ended(void *ctx, const char *id, const struct alloc *alloc);
void alone_note_gone(void *ctx, const char *id, const struct alloc *alloc);
void alone_tidy(void *ctx);

void alone_free_over(struct alone *alone);

/* What was over when the daemon died, before anything ends anew. */
void alone_resume_tidy(struct alone *alone);

/* --- allocs (place.c) --- */

/* The allocs of a job as they are, or will be when what is posted is committed. */
struct gathering {
    struct alone *alone;
    struct job *job;
    const json_t *wanted; /* NULL: nothing */
    struct reconcile_alloc *allocs;
    struct machine_id *ids;
    size_t count;
};

/* Fills GATHERING, whose job and wanted are set; its lists are freed by the caller. */
void gathering_fill(struct gathering *gathering);
void gathering_free(struct gathering *gathering);

/* Tells one alloc of JOB to end, and to be removed then. */
void alone_order_stop(struct alone *alone, struct job *job, const struct machine_id *id,
                      const char *why, bool destroy);

/* Brings the allocs of JOB to what its json wants; GATHERING holds them as they are. */
int alone_reconcile(struct alone *alone, struct job *job, struct gathering *gathering,
                    struct alone_evaluation *evaluation, struct err *err);

#endif
