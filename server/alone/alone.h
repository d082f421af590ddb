/*
 * The stand-alone control plane: jobs of this one node, without a server.
 *
 * Another source of the same ASSIGN and STOP events that a server would send; nothing else in the
 * program knows which of the two it is.  Jobs are kept as Nomad's JSON in the journal's `spec`
 * table under "job/<namespace>/<id>", their allocs under "alloc/<id>".
 *
 * What does not fit this node waits, and is placed when there is room; what has failed is placed
 * again when its group's reschedule block says so.  Both follow from what the journal holds: the
 * job says what is queued, a record when an alloc failed, a specification what was before it.
 */
#ifndef CAIRN_SERVER_ALONE_ALONE_H
#define CAIRN_SERVER_ALONE_ALONE_H

#include "core/life.h"
#include "fsm/policy.h"
#include "server/acl/acl.h"
#include "server/assign.h"
#include "server/control.h"
#include "server/storage/storage.h"
#include "spec/constraint.h"

#include <jansson.h>

struct alone;

/* An address of the node that ports are given out on; one that is in several host networks is there
 * several times. */
struct alone_address {
    char network[SPEC_PORT_LABEL_SIZE]; /* the host network: "default", or one of configuration */
    char ip[ADDRESS_SIZE];
    struct port_set reserved; /* given to nobody */
};

/* What this node is and has, for jobs that ask for something else or for more. */
struct alone_node {
    struct constraint_node known; /* borrowed, as is the region; see alone_node_changed */
    const char *region;
    struct room room;                      /* what it has for allocs */
    uint64_t core_mhz;                     /* of one core, for tasks that ask for cores */
    struct core_set cores;                 /* that they may have; the room has their number */
    const struct alone_address *addresses; /* borrowed, unchanging; of each network the first */
    size_t addresses_count;
    struct spec_node_volumes volumes; /* borrowed, unchanging */
    struct port_range dynamic_ports;  /* what is given to who does not say which */
};

struct alone_config {
    struct life *life; /* borrowed; it tells what ends and when to tidy from now on */
    struct say say;
    void *ctx;
    /* A fresh random UUID, of an alloc or an evaluation. */
    void (*new_id)(void *ctx, char to[UUID_TEXT_SIZE]);
    /* SPEC (moved) is what an alloc runs by that is about to be committed.  May be NULL. */
    void (*placed)(void *ctx, struct alloc_spec *spec);
    /* True if tasks of DRIVER can be placed here.  NULL: of every driver. */
    bool (*has_driver)(void *ctx, const char *driver);
    /* True if groups with networks of MODE can be placed here.  NULL: of every mode. */
    bool (*has_network)(void *ctx, const char *mode);
    /* The devices of this node (spec/devices.h): a new reference; NULL: it has none. */
    json_t *(*devices)(void *ctx);
    /* False as long as it is still being looked at what the node has: what runs already is believed
     * to be able to.  NULL: nothing has to be. */
    bool (*is_known)(void *ctx);
    struct alone_node node;
    int64_t token_min_ns, token_max_ns; /* that tokens last which end, 0: Nomad's defaults */
    bool jobs_elsewhere;                /* servers have them: those that are here are refused */
    size_t allocs_kept;                 /* ended ones; beyond them the oldest are destroyed */
    /* More are when their file system is too full: so many, and when they have gone it is measured
     * again. */
    struct disk_limits disk_limits;
    size_t collect_at_once;
    bool
        disk_is_given; /* the operator says how much there is: nothing waits for what is measured */
    /* Lets alone_disk_measured follow, soon.  May be NULL: nobody knows. */
    void (*measure_disk)(void *ctx);
    /* The bytes of the file of a time zone, owned by the caller; NULL: there is only UTC. */
    int (*read_zone)(void *ctx, const char *name, char **ret_bytes, size_t *ret_length,
                     struct err *err);
    struct assign_plans plans;
    /* Asks the controller of a storage plugin; for NULL there is none that is healthy. */
    control_call *controller;
    control_topology *topology;
    /* The same of plugins that make host volumes, and whether there is one.  NULL: there is none.
     */
    control_call *host_plugin;
    bool (*has_host_plugin)(void *ctx, const char *plugin);
    /* A host volume has come, gone, or is known not to be here.  May be NULL. */
    void (*hosted_changed)(void *ctx);
};

/* Before life_start, which then lets it read the jobs of the journal. */
struct alone *alone_new(const struct alone_config *config);
void alone_free(struct alone *alone);

/* The attributes of the node are something else, or the drivers it has: what waits is looked at
 * again.  What runs is left alone.  ALONE may be NULL. */
void alone_node_changed(struct alone *alone);

/* A storage plugin has come, gone, or changed: what waited for it is looked at.  ALONE may be NULL.
 */
void alone_plugins_changed(struct alone *alone);

/* Its volumes of storage plugins, and its host volumes; they live as long as ALONE. */
struct storage *alone_storage(const struct alone *alone);
struct storage *alone_hosted(const struct alone *alone);

/* Who of its allocs has the host volume NAME of NAMESPACE, or is about to: a new reference to a
 * list of ids. */
json_t *alone_hosted_users(void *ctx, const char *namespace, const char *name);

/* Its policies and tokens, likewise. */
struct acl *alone_acl(const struct alone *alone);

/* --- whether allocs may be placed here --- */

/* {"Eligibility": "eligible" or "ineligible", "Drain": null or {"Deadline", "IgnoreSystemJobs",
 * "StartedAt", "ForceAt" ...}, "LastDrain": null or {"StartedAt", "UpdatedAt", "Status", "Meta"},
 * "Events": [{"Time", "Subsystem", "Message", "Details"}]}: times of the wall clock in nanoseconds,
 * 0: none.  What is durable; borrowed until the next change. */
const json_t *alone_standing(const struct alone *alone);

/* False: nothing is placed, and what runs goes on.  Of what the next commit decides, too. */
bool alone_is_eligible(const struct alone *alone);

/* As alone_register, both are posted.  ERR_INVALID: eligible, while it is drained. */
int alone_set_eligible(struct alone *alone, bool eligible, struct err *err);

struct alone_drain {
    int64_t deadline_ns; /* by which all has ended; 0: there is none; below 0: at once */
    bool ignore_system;  /* allocs of system jobs stay */
    const json_t *meta;  /* texts by name, of who drains it; borrowed, may be NULL */
};

/* Nothing is placed any more, and what runs ends (fsm/policy.h).  ERR_INVALID: no such deadline. */
int alone_drain(struct alone *alone, const struct alone_drain *drain, struct err *err);

/* A drain that is under way is over; MARK_ELIGIBLE: allocs may be placed again.  META as above. */
int alone_end_drain(struct alone *alone, bool mark_eligible, const json_t *meta, struct err *err);

struct alone_evaluation {
    char id[UUID_TEXT_SIZE];
    char job_id[SPEC_NAME_SIZE];
    char namespace[SPEC_NAMESPACE_SIZE];
    char type[16];         /* of the job */
    char triggered_by[32]; /* as job-register, periodic-job, alloc-reschedule */
    char status[12];       /* complete; blocked: waits for room; pending: waits for its time */
    char blocked_id[UUID_TEXT_SIZE];    /* of the one that waits to place the rest, or "" */
    char deployment_id[UUID_TEXT_SIZE]; /* of the deployment that it began or went on with, or "" */
    uint64_t index;                     /* life_index of its commit */
    int64_t create_unix_ns;
    int64_t wait_until_unix_ns; /* pending: its time */
    uint32_t placed, stopped, updated;
    /* What could not be placed, NULL: nothing; an array of {"Group", "Count", "Why", "What"}, where
     * Why is "datacenter" (What: the job's datacenters), "constraint" (What: the one that this node
     * does not fulfil) or "exhausted" (What: of what there is too little), in Nomad's words.
     * Borrowed until the next change. */
    const json_t *failed;
};

/* A job that was read and found sound by itself; what is on the node has had no part in that. */
struct alone_wanted {
    json_t *job;    /* owned, canonical */
    size_t bytes;   /* of its JSON text */
    json_t *source; /* owned: what somebody wrote of which it was read; NULL: it is not kept */
    size_t source_bytes;
    char remark[ERR_TEXT_SIZE]; /* why it is not, though it was sent; "": it is */
};

/* What this node is to constraints; borrowed from ALONE. */
const struct constraint_node *alone_known(const struct alone *alone);

/* What of the node allocs have that have not ended and need not: more than there is, if the node
 * was configured anew.  Borrowed from ALONE. */
const struct room *alone_used(const struct alone *alone);

/* Which cores allocs have for themselves that have not ended and need not; borrowed from ALONE. */
const struct core_set *alone_cores(const struct alone *alone);

/* What the drivers of ALONE say about tasks; good for all its life. */
const struct assign_plans *alone_plans(const struct alone *alone);

/* Reads REQUEST (Nomad API JSON, borrowed); on any thread, as PLANS can be asked on any.  The time
 * it takes grows with the request.  ERR_INVALID: PROBLEMS (may be NULL) gets one string for each
 * thing that is wrong with the job.  The caller owns RET_WANTED. */
int alone_read_job(const struct assign_plans *plans, const json_t *request,
                   struct alone_wanted *ret_wanted, json_t *problems, struct err *err);
void alone_wanted_free(struct alone_wanted *wanted);

/* Reads SUBMISSION (Nomad API JSON, borrowed; NULL: none), the file and the values of which the job
 * of WANTED was read; on any thread.  ERR_INVALID: it is none. */
int alone_read_source(const json_t *submission, struct alone_wanted *wanted, struct err *err);

/* 0, or ERR_INVALID if JOB names a region, a namespace or a pool of nodes that is not there. */
int alone_check_names(struct alone *alone, const json_t *job, struct err *err);

/* As alone_register, of a job that was read; WANTED is moved. */
int alone_register_read(struct alone *alone, struct alone_wanted *wanted,
                        struct alone_evaluation *ret_evaluation, struct err *err);

/* What registering a job would do; all of it is owned. */
struct alone_plan {
    uint64_t job_modify_index; /* of the job as it is, 0: there is none */
    json_t *updates;        /* by group, in Nomad's words: how many allocs are placed, stopped... */
    json_t *failed;         /* as that of an evaluation */
    json_t *before, *after; /* the job as it is, NULL: there is none; and as it would be */
};

/* Nothing is changed; WANTED is moved.  ERR_INVALID as alone_register_read. */
int alone_plan(struct alone *alone, struct alone_wanted *wanted, struct alone_plan *ret_plan,
               struct err *err);
void alone_plan_free(struct alone_plan *plan);

/* What the job would say otherwise, and what its groups would come to: a new reference.  On any
 * thread, as nobody changes the JSON of a job that is registered; the time it takes grows with it.
 */
json_t *alone_plan_diff(const struct alone_plan *plan);

/* Registers JOB (Nomad API JSON, borrowed) or a new version of it: places what is missing, stops
 * what is not wanted any more.  On success the job and its allocs are posted and RET_EVALUATION
 * filled; they are durable when life_after_commit says so.  ERR_INVALID: PROBLEMS (may be NULL)
 * gets one string for each thing that is wrong with the job. */
int alone_register(struct alone *alone, const json_t *job, struct alone_evaluation *ret_evaluation,
                   json_t *problems, struct err *err);

/* What somebody says of the count of a group, or what is to be kept of that. */
struct alone_scaling {
    const char *group;
    int64_t count;  /* that it is to have; below 0: as it is */
    uint64_t index; /* the JobModifyIndex that the job must have; 0: any */
    const char *message;
    bool error;
    const json_t *meta; /* borrowed, NULL: none */
};

/* As alone_register; RET_EVALUATION has no id if there is no count.  ERR_GONE: no such job;
 * ERR_INVALID: it has no such group, its policy allows no such count, or a deployment is under way;
 * ERR_REFUSED: it has another index; ERR_LIMIT. */
int alone_scale(struct alone *alone, const char *namespace, const char *job_id,
                const struct alone_scaling *scaling, struct alone_evaluation *ret_evaluation,
                struct err *err);

/* What somebody dispatches of a parameterized job; all borrowed, texts may be "". */
struct alone_dispatch {
    const char *namespace, *job_id;
    const char *id_prefix; /* of what the new id has behind that of the job */
    const char *payload;   /* in base64 */
    json_t *meta;          /* by name, NULL: none */
    const char *token;     /* who dispatches with one again gets the job of the first time */
    int64_t priority;      /* 0: that of the job */
};

/* As alone_register; RET_EVALUATION names the job that is made, and has no id if it was made
 * before.  ERR_GONE: no such job; ERR_INVALID in Nomad's words; ERR_LIMIT, ERR_AGAIN. */
int alone_dispatch(struct alone *alone, const struct alone_dispatch *dispatch,
                   struct alone_evaluation *ret_evaluation, struct err *err);

/* Launches a periodic job now, whatever is launched of it already; as alone_dispatch. */
int alone_force(struct alone *alone, const char *namespace, const char *job_id,
                struct alone_evaluation *ret_evaluation, struct err *err);

/* When JOB, as JSON, is launched next, in seconds of the wall clock; CRON_NEVER (spec/cron.h). */
int64_t alone_next_launch(const struct alone *alone, const json_t *job);

/* Places what the job misses, as alone_register; FORCE: what has failed is replaced now, whatever
 * was tried, if its group is to be rescheduled at all.  ERR_GONE: no such job; ERR_INVALID: other
 * jobs are made of it. */
int alone_evaluate(struct alone *alone, const char *namespace, const char *job_id, bool force,
                   struct alone_evaluation *ret_evaluation, struct err *err);

/* How allocs are stopped: both may be. */
enum {
    ALONE_PURGE = 1,   /* the job is forgotten, and they are destroyed when they have ended */
    ALONE_AT_ONCE = 2, /* no shutdown_delay is waited for, be it under way already */
};

/* Stops all allocs of a job, HOW it is said. */
int alone_deregister(struct alone *alone, const char *namespace, const char *job_id, unsigned how,
                     struct alone_evaluation *ret_evaluation, struct err *err);

/* Stops one alloc, HOW it is said (ALONE_AT_ONCE); while its job is wanted another is placed for
 * it. ERR_GONE: no such alloc. */
int alone_stop_alloc(struct alone *alone, const char *alloc, unsigned how,
                     struct alone_evaluation *ret_evaluation, struct err *err);

/* Destroys every terminal alloc (system gc) and forgets dead jobs without allocs. */
void alone_collect(struct alone *alone);

/* The file system that holds the allocs is like that.  While it is too full, or has not what waits
 * to be placed, the allocs that ended first are destroyed; when there is none left it is as it is:
 * what waits is placed all the same, as Nomad does.  ALONE may be NULL. */
void alone_disk_measured(struct alone *alone, const struct disk_use *use);

/* True if another alloc is to take over the ephemeral disk of ALLOC, which is not to be destroyed
 * before. */
bool alone_disk_is_awaited(const struct alone *alone, const char *alloc);

struct alone_job {
    const char *namespace, *id;
    const json_t *job; /* as registered, canonical; borrowed until the next change */
    uint64_t version, create_index, modify_index, job_modify_index;
    int64_t submit_unix_ns;
    bool stop; /* desired: nothing runs */
};

const struct alone_job *alone_find(const struct alone *alone, const char *namespace,
                                   const char *job_id);
typedef bool alone_each_cb(void *ctx, const struct alone_job *job);
/* In the order of their keys. */
void alone_each(struct alone *alone, alone_each_cb *cb, void *ctx);

/* Another number whenever something may be another here that no commit tells of: what the next one
 * decides, what follows from the last, what goes back because it failed. */
uint64_t alone_revision(const struct alone *alone);

/* How many allocs of the group that is number GROUP of JOB wait to be placed. */
size_t alone_queued(const struct alone_job *job, size_t group);

/* True if another is to be made for ALLOC, which has failed; that evaluation into RET_EVALUATION.
 */
bool alone_follow_up(const struct alone *alone, const char *alloc,
                     struct alone_evaluation *ret_evaluation);

/* Of GROUP of JOB, borrowed until the next change: {"ID", "CreateIndex", "ModifyIndex"} of its
 * policy; and an array of what was said, the newest first, in Nomad's words.  Both may be NULL. */
const json_t *alone_scaling_policy(const struct alone_job *job, const char *group);
const json_t *alone_scaling_events(const struct alone_job *job, const char *group);

/* The newest deployment of JOB as it is kept, and what has come of it: a new reference; NULL: there
 * was none.  And all that are kept, the newest first. */
json_t *alone_deployment(const struct alone *alone, const struct alone_job *job);
json_t *alone_deployments(const struct alone *alone, const struct alone_job *job);

/* Its id, or ""; and the job whose newest deployment has ID, NULL: none. */
const char *alone_deployment_id(const struct alone_job *job);
const struct alone_job *alone_job_of_deployment(const struct alone *alone, const char *id);

/* True if the newest deployment of JOB placed ALLOC, which is its own; or the one of that id did.
 */
bool alone_in_deployment(const struct alone_job *job, const struct alloc *alloc);
bool alone_placed_by(const struct alone_job *job, const char *deployment_id,
                     const struct alloc *alloc);

/* True if ALLOC of GROUP is a canary that has yet to be promoted. */
bool alone_is_canary(const struct alone_job *job, const char *group, const char *alloc);

/* What users ask of a deployment; ERR_GONE: there is none, or it is not the newest of its job;
 * ERR_INVALID: it is over, or its canaries are not healthy yet.  As alone_register, what is
 * answered is posted.  ONLY (an array of names, borrowed) are the groups to be promoted, NULL: all.
 * RET_REVERTED is the version that the job goes back to, below 0: none. */
int alone_pause(struct alone *alone, const char *deployment_id, bool pause,
                struct alone_evaluation *ret_evaluation, struct err *err);
int alone_promote(struct alone *alone, const char *deployment_id, const json_t *only,
                  struct alone_evaluation *ret_evaluation, struct err *err);
/* HEALTHY and UNHEALTHY are arrays of ids (borrowed) of allocs that it has placed. */
int alone_say_health(struct alone *alone, const char *deployment_id, const json_t *healthy,
                     const json_t *unhealthy, struct alone_evaluation *ret_evaluation,
                     struct err *err);
int alone_fail_deployment(struct alone *alone, const char *deployment_id,
                          struct alone_evaluation *ret_evaluation, int64_t *ret_reverted,
                          struct err *err);

/* The NTH version of JOB, 0: the newest; false: it is not kept.  Borrowed as JOB is. */
bool alone_version(const struct alone_job *job, size_t nth, struct alone_job *ret_version);

/* A name for a version, by which it is found and kept. */
struct alone_tag {
    const char *namespace, *job_id;
    const char *name, *description; /* borrowed, "": none */
    uint64_t version;
    bool latest; /* whichever that is */
};

/* As alone_register; RET_TAG is owned, {"Name", "Description", "TaggedTime"}.  ERR_GONE: there is
 * no such version, or tag; ERR_INVALID: another one has that tag; ERR_LIMIT: too many have one. */
int alone_tag(struct alone *alone, const struct alone_tag *tag, json_t **ret_tag, struct err *err);
int alone_untag(struct alone *alone, const char *namespace, const char *job_id, const char *name,
                struct err *err);

/* What somebody wrote of which the version NUMBER of JOB was read, a Submission of the API with
 * whose it is: a new reference.  NULL: none is kept. */
json_t *alone_source(const struct alone *alone, const struct alone_job *job, uint64_t number);

/* Registers VERSION of JOB again, as its newest one.  ERR_INVALID: it is that; ERR_GONE: it is not
 * kept. */
int alone_revert(struct alone *alone, const struct alone_job *job, uint64_t version,
                 struct alone_evaluation *ret_evaluation, struct err *err);

/* pending, running or dead, from the job's allocs. */
const char *alone_job_status(const struct alone *alone, const struct alone_job *job);

/* Those that wait, and then the last 256 of this incarnation, newest first; NULL if unknown.
 * Borrowed until the next call. */
const struct alone_evaluation *alone_evaluation(struct alone *alone, const char *id_prefix);

/* The index of the commit that placed what EVALUATION_ID did; 0: it is not known any more. */
uint64_t alone_placed_at(const struct alone *alone, const char *evaluation_id);

typedef bool alone_evaluation_cb(void *ctx, const struct alone_evaluation *evaluation);
void alone_each_evaluation(struct alone *alone, alone_evaluation_cb *cb, void *ctx);

#endif
