/*
 * Jobs of a world: what users want of the stand-alone control plane, what it has placed, and what
 * the journal holds of both.
 */
#ifndef CAIRN_SIM_WORLD_JOBS_H
#define CAIRN_SIM_WORLD_JOBS_H

#include "journal/journal.h"
#include "sim/plane.h"
#include "sim/script/script.h"
#include "sim/world/things.h"

#include <jansson.h>

enum sim_job_wish { JOB_WISH_NONE, JOB_WISH_RUN, JOB_WISH_STOP, JOB_WISH_GONE };

struct sim_job_state {
    struct sim *sim;
    uint8_t wish; /* enum sim_job_wish */
    int64_t version;
    uint32_t count;        /* of each group */
    uint64_t times;        /* as long as the script says, what is taken in place is */
    uint32_t wished;       /* number of the newest wish */
    uint32_t asked;        /* of the one that the open request is about */
    uint32_t acknowledged; /* of the newest one whose request was granted */
    bool open;             /* a request is not answered yet */
    char *stored;          /* as the journal has it, NULL: it is not there */
    size_t stored_length;
    json_t *json; /* the same, read; NULL: it cannot be, or is not there */
    bool damaged; /* what is stored cannot be read */
    bool lost;    /* and was put aside, since the newest wish was granted */
};

struct sim_jobs {
    const struct sim_plane *plane; /* NULL: no world has jobs */
    void *now;                     /* that of this incarnation, NULL: none */
    struct sim_job_state states[SIM_JOBS_MAX];
    uint64_t ids; /* drawn so far */
    struct {
        int *items; /* allocs that the batch under way places */
        size_t count, size;
    } placing;
    struct {
        char **items; /* specifications of what was placed */
        size_t count, size;
    } specs;
};

/* --- jobs.c --- */

void sim_jobs_reset(struct sim *sim);
void sim_jobs_free(struct sim *sim);

/* A life begins, or ends. */
void sim_jobs_begin(struct sim *sim);
void sim_jobs_end(struct sim *sim);

/* --- what users want --- */

/* A step of the script.  False: there was nobody to ask, or nothing to ask for. */
bool sim_jobs_step(struct sim *sim, const struct sim_step *step);
/* A user asks, and asks again until it is so.  True: it is. */
bool sim_job_has_its_wish(struct sim *sim, size_t job);
/* All is to be gone. */
void sim_jobs_wish_all_gone(struct sim *sim);

/* --- place.c: what is placed and stored --- */

/* Before BATCH is looked at: allocs that it places come to be. */
void sim_jobs_bind(struct sim *sim, const struct journal_batch *batch);
/* It was not committed. */
void sim_jobs_unbind(struct sim *sim);
/* It was. */
void sim_jobs_committed(struct sim *sim, const struct journal_batch *batch);
void sim_jobs_each(struct sim *sim, journal_blob_cb *cb, void *ctx);
void sim_jobs_each_bad(struct sim *sim, journal_bad *bad, void *ctx);
void sim_jobs_quarantine(struct sim *sim, const char *key);
/* Nothing is stored of JOB. */
void sim_job_forget(struct sim_job_state *job);

/* The job that an alloc was placed for has it among what should run. */
bool sim_placed_lives(const struct sim *sim, const struct sim_alloc_state *alloc);

/* --- check/jobs.c --- */

/* BATCH has been committed. */
void sim_check_jobs_committed(struct sim *sim, const struct journal_batch *batch);
/* A user was told that JOB is as wished. */
void sim_check_job_granted(struct sim *sim, const struct sim_job_state *job);
/* What is not so yet in a world that should have come to rest, or NULL. */
const char *sim_jobs_unsettled(struct sim *sim, const char **ret_name);
size_t sim_job_live(const struct sim *sim, int job);
size_t sim_job_kept(const struct sim *sim, int job);
/* The version that is stored, -1: none. */
int64_t sim_job_version(const struct sim *sim, int job);

#endif
