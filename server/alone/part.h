/*
 * Inside server/alone/ only: jobs, and what the parts of the control plane share.
 *
 * alone.c makes it; jobs.c keeps jobs, stored.c says which are believed, kept.c what has ended,
 * evaluations.c what was decided; change.c takes changes back whose commit has failed; posted.c
 * knows what they do to allocs until then; register.c is what callers ask for, evaluate.c that a
 * job is looked at, and plan.c what would come of it; place.c makes and stops allocs, and
 * classify.c says which of them go on, by a newer version of their job; feasible.c says which may
 * be here, and in given/ is how much of a job is taken (limits.c), what allocs hold of the node
 * (room.c, ports.c, devices.c), and who takes over whose disk (disks.c); wait.c looks again at jobs
 * that miss one, for which reschedule.c says when; in rollout/ hold.c and rollout.c replace allocs
 * step by step, in deployments that deployments.c keeps and steer.c lets users steer, and go back
 * to what versions.c keeps, with what sources.c keeps of who wrote them; dispatch.c makes jobs of
 * parameterized ones, which tokens.c finds again, and periodic.c of those that times.c says are
 * launched at times; in scaling/ scaling.c changes counts, of which kept.c keeps what was said;
 * collect.c forgets what is over; standing.c says whether allocs may be placed here at all, and
 * drain.c ends them where the node is to be empty.  Volumes of storage plugins, and those of the
 * host that plugins make, are server/storage's; in volumes/ asked.c says whether an alloc may have
 * one, hosted.c the same of those of the host, and users.c who has one of these.
 */
#ifndef CAIRN_SERVER_ALONE_PART_H
#define CAIRN_SERVER_ALONE_PART_H

#include "base/list.h"
#include "fsm/policy.h"
#include "server/alone/alone.h"
#include "server/control.h"
#include "spec/devices.h"

#include <uthash.h>

struct jobspec_placement;

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

/* What will make others for allocs that have failed, all of them at once. */
struct follow_up {
    char id[UUID_TEXT_SIZE]; /* of its evaluation, "": there is none */
    int64_t due_ms;          /* node time */
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
    json_t *unmet;   /* by group, the constraint that this node does not fulfil, or null; NULL: not
                        looked at yet */
    bool forget;     /* once it is stopped and has no alloc left */
    bool looked_for; /* among alone.over */
    bool look;       /* is to be looked at by the next tidy: among alone.looks */
    bool queued;     /* something of it waits for room: among alone.queued */
    uint64_t look_at_ms;    /* and then, 0: never; among alone.timed while it is not */
    uint64_t look_again_ms; /* not before, 0: whenever */
    struct job *queued_prev, *queued_next, *timed_prev, *timed_next;
    size_t waiting;                  /* failed allocs whose time has not come */
    struct follow_up follow_up;      /* the last that was named for them */
    struct alone_evaluation blocked; /* while something is queued; id "": nothing is */
    bool periodic;                   /* is launched when it is time: among alone.periodic */
    bool away;                       /* and nobody has looked since the daemon began */
    bool told;                       /* that its times cannot be known */
    /* It is launched for no time of the wall clock until that, 0: there is none. */
    int64_t passed_s;
    /* Its first times after since_s, which its zone's file was read for; CRON_NEVER: it was not. */
    struct {
        int64_t since_s, due_s, then_s;
    } times;
    struct job *periodic_prev, *periodic_next;
    char *token; /* that it was dispatched with, and of what; NULL: none */
    UT_hash_handle hh, by_token;
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

/* Whether allocs may be placed here, as JSON: what is durable, and what the next commit decides,
 * NULL: nothing. */
struct standing {
    json_t *json, *next;
    uint64_t drain_at_ms;  /* the drain is looked at again, 0: when something has ended */
    uint64_t drained_past; /* the node time of the deadline that has been heeded */
};

struct alone {
    struct alone_config config;
    struct job *jobs;
    struct job *dispatched;     /* those with a token, by that */
    struct told *told;          /* allocs that are told to end, and the commit is to come */
    struct hold *holds;         /* what each alloc that runs has of the node */
    struct room used;           /* all of that */
    struct core_set cores;      /* and which cores */
    struct ports *ports;        /* which of them has which port */
    struct disks *disks;        /* and who takes over whose disk */
    struct users *users;        /* and who has which volume of the host */
    json_t *granted;            /* and which devices: by alloc, what it was given */
    bool grants_known;          /* of what is stored, too */
    struct disk_use disk;       /* of the allocs, as it was measured last */
    uint64_t disk_wanted_mb;    /* by one that waits for it, 0: none does */
    bool disk_given_up;         /* it is full, and nothing is left to be collected */
    bool disk_told;             /* and that was said */
    bool room_freed;            /* what waits for room is to be looked at */
    struct job_list looks;      /* to be looked at by the next tidy */
    struct job *queued, *timed; /* jobs that wait for room; that are looked at when it is time */
    uint64_t look_at_ms;        /* the first time that one is, 0: never */
    struct job *periodic;       /* jobs that are launched when it is time */
    uint64_t launch_at_ms;      /* the first time that one may be */
    /* What has to go from a full disk before more is collected for it. */
    struct disk_leaving leaving;
    bool jobs_unsorted;
    uint64_t revision;
    struct job_list unsaved; /* changed, and the commit is to come */
    struct job_list over;    /* may be without allocs now: to be looked at by the next tidy */
    struct kept *kept;       /* ended allocs, the longest ended first once they are sorted */
    bool kept_unsorted;
    size_t jobs_bytes, sources_bytes;
    struct demand taken; /* by the turn under way; its core does not count it yet */
    struct alone_evaluation *evaluations; /* ring; owns what has failed in each */
    uint64_t evaluations_count;
    struct standing standing;
    struct storage *storage;       /* volumes of storage plugins */
    struct storage *hosted;        /* host volumes that are not of the node's configuration */
    struct acl *acl;               /* policies and tokens */
    struct alone_evaluation shown; /* the last that was asked for and is in no ring */
};

/* --- jobs (jobs.c, change.c) --- */

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

/* What it says from now on, JSON (moved); how long that is; and both written down. */
void job_set(struct alone *alone, struct job *job, json_t *json);
void job_set_bytes(struct alone *alone, struct job *job, size_t bytes);
void job_save(struct alone *alone, struct job *job);

/* Why the job stored as JSON (may be NULL) under KEY cannot be believed, NULL: it can. */
const char *job_fault(const char *key, const json_t *json);

/* What ALLOC was placed by, owned by the caller; NULL: it cannot be read. */
struct alloc_spec *alone_read_spec(const struct alone *alone, const char *alloc);

/* True if the two say the same, apart from what registering adds. */
bool job_is_same(const json_t *a, const json_t *b);

/* The number NAME of a job or a group, 0 if there is none. */
uint64_t job_number(const json_t *object, const char *name);

/* That of a job as JSON; service, as in the defaults, if it says none. */
enum spec_job_type job_type(const json_t *job);

/* What of JOB waits to be placed: JSON numbers, group * JOB_COUNT_MAX + index; NULL: nothing. */
const json_t *job_queue(const struct job *job);

/* The group NAME of JOB, NULL: it has none; RET_NUMBER is which. */
const json_t *job_group(const struct job *job, const char *name, size_t *ret_number);

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

/* QUEUE (moved, an array) waits from now on; EVALUATION, which left it so, names who waits. */
void change_queue(struct alone *alone, struct change *change, json_t *queue, json_t *failed,
                  struct alone_evaluation *evaluation);

/* CODE below 0: nothing of it was ever posted, and a job that is new is freed.  Else it is what
 * the next commit decides.  Returns CODE. */
int change_end(struct alone *alone, struct change *change, int code);

/* --- what is posted (posted.c) --- */

/* The alloc ID is placed as number INDEX of GROUP; or it is told to end. */
void posted_place(struct job *job, const struct machine_id *id, const char *group, uint32_t index);
void posted_stop(struct alone *alone, struct job *job, const struct machine_id *id);

/* True if a change that is yet to be decided tells ALLOC to end. */
bool posted_to_end(const struct alone *alone, const char *alloc);

/* Only the first COUNT of JOB's stay: the others were taken back, or are decided. */
void posted_cut(struct alone *alone, struct job *job, size_t count);

/* --- limits (given/limits.c) --- */

/* All return 0; ERR_LIMIT and a sentence with the limit if there is no room on this node; or
 * ERR_AGAIN if nothing can be changed at the moment. */

/* May JOB (NULL: a new one) be stored with BYTES? */
int alone_check_job(const struct alone *alone, const struct job *job, size_t bytes,
                    struct err *err);

/* Takes DEMAND, if there is room, out of what the rest of this turn may have; what is taken back
 * before its commit gives it back by setting `taken` to what it was. */
int alone_take(struct alone *alone, const struct demand *demand, struct err *err);
int alone_take_spec(struct alone *alone, size_t bytes, struct err *err);

/* --- evaluations (evaluations.c) --- */

struct alone_evaluation evaluation_begin(const struct alone *alone, const struct job *job,
                                         const char *why);
void evaluation_keep(struct alone *alone, struct alone_evaluation *evaluation);
void alone_begin_evaluations(struct alone *alone);
void alone_free_evaluations(struct alone *alone);

/* --- what is over (kept.c, collect.c) --- */

/* life_control of a struct alone: after each turn in which something ended, ended allocs over the
 * configured bound are destroyed and jobs forgotten that were purged and have no alloc left. */

/* An ended alloc that was not told to go. */
struct kept {
    char id[UUID_TEXT_SIZE];
    int64_t ended_unix_ns;
    int64_t ended_ms; /* node time; below 0 if it was before there was any */
    /* Of one that has failed, by the policy that the job had at this index, 0: not decided. */
    uint64_t decided_index;
    bool again;        /* another is to be made for it, if nothing else takes its place */
    uint64_t delay_ms; /* after it has ended */
    uint64_t delay_ns;
    bool waits;                 /* for that time: it is not collected before */
    struct follow_up follow_up; /* which will make it, perhaps a little earlier */
    bool leads;                 /* it is the first for which that was named */
    UT_hash_handle hh;
};

/* NULL: ALLOC has not ended, or is going. */
struct kept *kept_find(const struct alone *alone, const char *alloc);
void kept_drop(struct alone *alone, struct kept *kept);

void alone_note_ended(void *ctx, const char *id, const struct alloc *alloc);
void alone_note_gone(void *ctx, const char *id, const struct alloc *alloc);
void alone_tidy(void *ctx);

void alone_free_over(struct alone *alone);

/* Marked so in the journal, and not only in a proposal. */
bool job_is_purged(const struct job *job);

/* What was over when the daemon died is looked at by the first tidying. */
void alone_resume_tidy(struct alone *alone);

/* --- volumes of storage plugins (volumes/asked.c) --- */

struct gathering;

/* What the claims of one alloc are on. */
struct claims {
    struct spec_volume volumes[SPEC_VOLUMES_MAX];
    char sources[SPEC_VOLUMES_MAX][SPEC_SOURCE_SIZE];
    struct spec_pair plugins[SPEC_VOLUMES_MAX]; /* by the volume's name in the group */
    size_t count;                               /* of plugins */
};

/* Those of the alloc INDEX of GROUP, of a job in NAMESPACE; borrowed from GROUP and ALONE. */
void claims_find(const struct alone *alone, const char *namespace, const json_t *group,
                 uint32_t index, struct claims *ret_claims);

/* How many an alloc of GROUP has. */
size_t claims_count(const json_t *group);

/* Why VOLUME of NAMESPACE is not to be had now, when those of GATHERING (may be NULL) are stopped
 * that are to be: a new reference; NULL: it is. */
json_t *claim_missing(const struct alone *alone, const char *namespace,
                      const struct gathering *gathering, const struct spec_volume *volume);

struct places;

/* The alloc for which a volume of the host is looked for, and those that are chosen before it. */
struct hosted_place {
    const struct alone *alone;
    const struct gathering *gathering;
    const struct places *places;
    size_t group;
    uint32_t index;
};

/* Why VOLUME of the host, which the group has as JSON, is not to be had by the one at PLACE: in
 * Nomad's words, a new reference; NULL: it is (volumes/hosted.c). */
json_t *hosted_missing(const struct hosted_place *place, const json_t *json,
                       const struct spec_volume *volume);

/* --- who has volumes of the host (volumes/users.c) --- */

void users_begin(struct alone *alone);
void users_end(struct alone *alone);

/* What the allocs have that the journal holds, but for those that have ended. */
void users_load(struct alone *alone);

/* The alloc of SPEC, which is placed, has what it asks for; ALLOC has ended, or is not to be. */
void users_keep(struct alone *alone, const struct alloc_spec *spec);
void users_release(struct alone *alone, const char *alloc);

/* Whoever has the volume NAME of NAMESPACE, as a list of ids: a new reference.  ONLY_WRITERS: that
 * may write to it, and is not going. */
json_t *users_of_volume(const struct alone *alone, const char *namespace, const char *name,
                        bool only_writers);

/* An alloc that is going and has what one more of GROUP cannot have before; or "". */
void claims_awaited(const struct alone *alone, const char *namespace, const json_t *group,
                    uint32_t index, char ret_alloc[UUID_TEXT_SIZE]);

/* The id of the plugin of the volume ID, borrowed until the next change of it; NULL: no such volume
 * is registered. */
const char *alone_volume_plugin(const struct alone *alone, const char *namespace, const char *id);

/* --- what may be placed here (feasible.c) --- */

/* What is not placed, and why: new references. */
struct refusal {
    json_t *queue;    /* as job_queue has it */
    json_t *failed;   /* as struct alone_evaluation has it */
    uint64_t disk_mb; /* for which ended allocs are to make room, 0: none */
};

struct gathering;
struct places;

/* True if this node is in one of the datacenters that JOB, as JSON, may be in. */
bool alone_in_datacenter(const struct alone *alone, const json_t *job);

/* The constraint of the group that is number GROUP of JOB which this node does not fulfil, in
 * Nomad's words, or NULL; borrowed from JOB. */
const char *alone_unmet(const struct alone *alone, struct job *job, size_t group);

/* Takes out of PLACES what may not be placed, or for which there is no room; the rest has its ports
 * from now on. */
void alone_choose(struct alone *alone, const struct gathering *gathering, struct places *places,
                  struct refusal *ret_refusal);

/* --- whether anything may be (standing.c, drain.c) --- */

int alone_load_standing(struct alone *alone, struct err *err);
void alone_free_standing(struct alone *alone);

/* The drain that is under way, of what is durable: {"Deadline", "IgnoreSystemJobs", "StartedAt",
 * "ForceAt", "ForceMs"}; NULL: there is none, or it is about to change. */
const json_t *standing_drain(const struct alone *alone);

/* It is complete; LATE: its deadline was over. */
void standing_drained(struct alone *alone, bool late);

/* Ends what the node that is drained has to end now; and the next time to look, 0: none. */
void drain_tidy(struct alone *alone);
uint64_t drain_deadline_ms(const struct alone *alone);

/* --- ports (given/ports.c) --- */

void ports_begin(struct alone *alone);
void ports_end(struct alone *alone);

/* What the allocs have that the journal holds. */
void ports_load(struct alone *alone);

/* ALLOC has ended, or was never placed: all that it had is free but for what others have, too, of
 * whom it was inherited. */
void ports_release(struct alone *alone, const char *alloc);

/* A host network that GROUP wants and the node has not, in Nomad's words: a new reference, or NULL.
 */
json_t *ports_missing(const struct alone *alone, const json_t *group);

enum { PORTS_WHY_SIZE = 384 };

struct port_ask {
    const json_t *group;
    uint32_t index;
    const struct gathering *gathering; /* those of this place that end let it inherit */
    uint64_t seed;                     /* other seeds lead to other numbers */
};

/* Finds what one alloc asks for, on networks of which none is missing, and keeps it from others
 * until it is returned or kept.  False: RET_WHY tells, in Nomad's words, and whose it is; nothing
 * is kept.  The caller owns RET_OFFER, which was empty and borrows from the group. */
bool ports_offer(struct alone *alone, const struct port_ask *ask, struct spec_ports *ret_offer,
                 char ret_why[PORTS_WHY_SIZE]);
void ports_return(struct alone *alone, struct spec_ports *offer);

/* Who may still listen on some of OFFER and is to be awaited, "": nobody; good until that has
 * ended.
 */
const char *ports_awaited(const struct alone *alone, const struct spec_ports *offer);

/* PLACEMENT is made and not begun before AWAITED ("": nobody) has ended: OFFER (moved) is its own.
 */
void ports_keep(struct alone *alone, const struct jobspec_placement *placement, const char *awaited,
                struct spec_ports *offer);

/* --- ephemeral disks that go on with the next alloc (given/disks.c) --- */

void disks_begin(struct alone *alone);
void disks_end(struct alone *alone);

/* What the journal holds of them. */
void disks_load(struct alone *alone);

/* Whose disk an alloc of GROUP, as JSON, takes over that comes in the place of PREVIOUS (NULL:
 * nobody's); "": it begins with an empty one.  Borrowed from PREVIOUS or from a record. */
const char *disks_source(const struct alone *alone, const json_t *group, const char *previous);

/* ALLOC, which is posted, takes over the disk of FROM; or was never placed, or is gone. */
void disks_keep(struct alone *alone, const char *alloc, const char *from);
void disks_release(struct alone *alone, const char *alloc);

/* True if somebody may still look for a disk in the directory of ALLOC; FORCED: an alloc that has
 * ended without it does not count, though another one may come in its place. */
bool disks_is_awaited(const struct alone *alone, const char *alloc, bool forced);

/* --- devices (given/devices.c) --- */

/* The alloc of SPEC, which is posted, has its devices, until it has ended or was never placed. */
void grants_keep(struct alone *alone, const struct alloc_spec *spec);
void grants_release(struct alone *alone, const char *alloc);

/* Who has which (devices_hold): a new reference. */
json_t *grants_held(struct alone *alone);

/* What one alloc of GROUP is given of what nobody has by HELD, to which it is added: by task, a new
 * reference.  NULL, and why: there are not so many; HELD is as it was. */
json_t *grants_pick(const struct alone *alone, const json_t *group, const char *alloc, json_t *held,
                    char ret_why[DEVICES_WHY_SIZE]);

/* One for each that is asked for, whichever: how many there are is asked later.  A new reference.
 */
json_t *grants_pretend(const json_t *group);

/* Why it can be given none, in Nomad's words and who has them: a new reference, and of what kind
 * that is.  NULL: it can, and they are added to HELD. */
json_t *grants_lack(const struct alone *alone, const json_t *group, json_t *held,
                    const char **ret_why);

/* --- allocs (place.c) --- */

/* What the node has for one alloc of GROUP, a group of a job as JSON. */
struct room alone_ask(const struct alone *alone, const json_t *group);

/* The cores that one alloc of GROUP, for which there is room, is given; texts are the group's. */
struct spec_cores alone_pick_cores(const struct alone *alone, const json_t *group,
                                   struct spec_core items[NODE_CORES_MAX]);

/* ALLOC holds ASK of the node, and CORES; or no more, which is as soon as it is told to end. */
void alone_hold(struct alone *alone, const char *alloc, const struct room *ask,
                const struct spec_cores *cores);
void alone_release(struct alone *alone, const char *alloc);
const struct room *alone_held(const struct alone *alone, const char *alloc);

/* True if the disk has no DISK_MB more, and may have them when ended allocs are collected: they are
 * when that is wanted (0: nothing is). */
bool alone_lacks_disk(const struct alone *alone, uint64_t disk_mb);
void alone_want_disk(struct alone *alone, uint64_t disk_mb);

/* All of it anew: what was posted was taken back, or the journal was read. */
void alone_count_room(struct alone *alone);
void alone_free_room(struct alone *alone);

/* JOB misses an alloc, or may have got room: the next tidy looks; or that at this node time; or it
 * waits for none any more. */
void alone_note_look(struct alone *alone, struct job *job);
void alone_look_later(struct alone *alone, struct job *job, uint64_t at_ms);
void alone_look_never(struct alone *alone, struct job *job);
enum {
    LOOK_AGAIN_MS = 1000,    /* after a commit that has failed */
    LOOK_ALLOCS_PER_MS = 32, /* of one job: a larger one is looked at the less often */
};

/* Places what is due: whatever waits for room and has it, and what failed and waited long enough.
 */
void alone_look(struct alone *alone);
uint64_t alone_look_deadline_ms(void *ctx);

/* Because what is an alloc that has failed replaced: what is wanted is said anew; somebody else's
 * end, or a user, has the job looked at; and a user who wants it whatever was tried before. */
enum evaluate { EVALUATE_NOT, EVALUATE_AS_IT_IS, EVALUATE_FORCED };

/* The allocs of a job as they are, or will be when what is posted is committed. */
struct gathering {
    struct alone *alone;
    struct job *job;
    const json_t *wanted; /* NULL: nothing */
    bool changed;         /* the job says something else than it did */
    bool begins;          /* it is to run from now on, or to run that: a deployment follows */
    enum evaluate evaluates;
    struct reconcile_alloc *allocs;
    struct machine_id *ids;
    int64_t *created_unix_ns;
    size_t count, size;
    size_t stored_count;       /* of them; those behind are to come with the next commit */
    struct compared *compared; /* each group that is wanted, once, and not for each alloc */
    size_t compared_count;
};

/* Fills GATHERING, whose job and wanted are set; its lists are freed by the caller. */
void gathering_fill(struct gathering *gathering);
void gathering_free(struct gathering *gathering);

/* True if nobody takes the place of ALLOC now, which has failed (reschedule.c). */
bool alone_awaits_next(const struct gathering *gathering, const struct alloc *alloc);

/* --- who goes on (classify.c) --- */

/* The groups that are wanted, before GATHERING is filled. */
void classify_begin(struct gathering *gathering);
void classify_end(struct gathering *gathering);

/* True if ALLOC of GROUP, or one of it that is posted, needs no other in its place. */
bool classify_goes_on(const struct gathering *gathering, const char *alloc, const char *group);
bool classify_goes_on_posted(const struct gathering *gathering, const char *group);

/* True if the alloc that is number A goes on by the job as it is wanted. */
bool classify_is_updated(const struct gathering *gathering, size_t a);

/* Where the job was changed: each alloc of GATHERING that lives and was not marked to stop goes on
 * by what the job says now. */
int alone_update(struct alone *alone, const struct gathering *gathering,
                 struct alone_evaluation *evaluation, struct err *err);

/* Tells one alloc of JOB to end, and HOW: ALONE_*. */
void alone_order_stop(struct alone *alone, struct job *job, const struct machine_id *id,
                      const char *why, unsigned how);

/* Brings the allocs of JOB to what its json wants; GATHERING holds them as they are. */
int alone_reconcile(struct alone *alone, struct change *change, struct gathering *gathering,
                    struct alone_evaluation *evaluation, struct err *err);

/* What a job is to have, group by group as its JSON has them, and which of the gathered allocs was
 * the last in each place. */
struct places {
    struct reconcile_group *groups;
    int **last;                /* for each group and index, -1: there was none */
    bool **tries;              /* for each group and index: what is placed is a canary beside it */
    struct spec_ports **ports; /* for each group and index: offered to what is placed there */
    size_t count;
};

void places_begin(struct places *places, const struct gathering *gathering);

/* What was offered and not placed is given back. */
void places_end(struct alone *alone, struct places *places);

/* Begins PLACES with all that the job of GATHERING is to have, whose allocs are marked to stop
 * where they are not that. */
void places_want(const struct alone *alone, struct gathering *gathering, struct places *places);

/* Places what PLACES wants as far as there is room; the rest is queued.  PARTLY: what one commit
 * cannot take is left for the next, and true is returned there. */
int alone_place(struct alone *alone, struct change *change, const struct gathering *gathering,
                struct places *places, struct alone_evaluation *evaluation, bool *partly,
                struct err *err);

/* --- deployments as they are kept (rollout/deployments.c) --- */

/* Of the newest deployment of JOB, a job as JSON: it is under way, be it paused; when it was
 * promoted or a user let it go on, node time, 0: it never was; its groups by name, or NULL. */
bool deployment_is_active(const json_t *job);
bool deployment_is_paused(const json_t *job);
uint64_t deployment_resumed_ms(const json_t *job);
json_t *deployment_groups(const json_t *job);

/* How many canaries GROUP waits for, 0: none, or they are promoted; and true if ALLOC is one. */
uint32_t deployment_canaries(const json_t *job, const char *group);
bool deployment_tries(const json_t *job, const char *group, const char *alloc);

/* It has failed, and ALLOC, which is its own, with it: nobody takes its place. */
bool deployment_gave_up(const struct job *job, const struct alloc *alloc);

/* Each goes with CHANGE.  GROUPS are moved; PLACED holds a list of ids for each group; ONLY is a
 * list of names, NULL: all groups. */
void deployment_begin(struct alone *alone, struct change *change, json_t *groups,
                      int64_t since_unix_ns, const char *id);
void deployment_end(struct alone *alone, struct change *change, const char *status,
                    const char *description);
void deployment_pause(struct alone *alone, struct change *change, bool pause);
void deployment_promote(struct alone *alone, struct change *change, const json_t *only);
void deployment_note_canaries(struct alone *alone, struct change *change, json_t *placed);

/* How many allocs of GROUP of JOB may be replaced before those are healthy, 0: all at once. */
uint64_t rollout_parallel(const json_t *job, const json_t *group);

/* True if nothing is waited for of group number G: as in Nomad, a system job has no alloc on a node
 * where it may not be, and that is no reason to wait. */
bool rollout_passes_over(const struct alone *alone, struct job *job, size_t g);

/* The deployment of JOB that watches an alloc of GROUP which is placed now, NULL: none does; and
 * the time before which none of its allocs is made, 0: there is none. */
const char *rollout_id(const struct job *job, const json_t *group);
int64_t rollout_began_unix_ns(const struct job *job);

/* The newest deployment of JOB, which has ended so if it was under way: a new reference, or NULL.
 */
json_t *rollout_ended(const struct alone *alone, const struct job *job, const char *status,
                      const char *description);

/* --- rolling updates (rollout/) --- */

/* Takes out of PLACES, which replace what has to be replaced, all beyond max_parallel; where there
 * are to be canaries, all but those, which come beside. */
void rollout_hold(struct gathering *gathering, struct places *places);

/* Something of what PLACES want has a deployment of its own from now on: it goes with CHANGE. */
void rollout_begin(struct alone *alone, struct change *change, const struct gathering *gathering,
                   const struct places *places, struct alone_evaluation *evaluation);

/* Goes on with the deployment of a job that is looked at: NEXT, PLACES have what is replaced now;
 * ENDED: that is posted, and nothing else. */
enum rollout { ROLLOUT_NOTHING, ROLLOUT_NEXT, ROLLOUT_ENDED };
enum rollout rollout_look(struct alone *alone, struct gathering *gathering, struct places *places);

/* The deployment of the job of GATHERING, which is active, fails.  REVERTS: the last version that
 * was good is registered again, if there is one, with EVALUATION, and RET_REVERTED is which. */
int rollout_fail(struct alone *alone, const struct gathering *gathering, const char *description,
                 bool reverts, struct alone_evaluation *evaluation, int64_t *ret_reverted,
                 struct err *err);

/* --- versions before the newest one (versions.c) --- */

/* 0, or ERR_LIMIT if those of JOB, as JSON, that must not be forgotten have more than ROOM bytes.
 */
int versions_check(const json_t *job, size_t room, struct err *err);

/* What the next version of JOB, as JSON, has behind it, of at most ROOM bytes: a new reference. */
json_t *versions_before_next(const json_t *job, size_t room);

/* JSON, a job, without what only its newest version has. */
void version_strip(json_t *json);

/* Borrowed from JOB, NULL: it is not kept; the newest one that was good, be it the newest. */
const json_t *versions_find(const struct alone_job *job, uint64_t version);
const json_t *versions_stable(const struct alone_job *job);

/* --- what is dispatched (tokens.c) --- */

/* JOB can be found by the token that it was dispatched with, if it has one; or not any more. */
void job_note_token(struct alone *alone, struct job *job);
void job_forget_token(struct alone *alone, struct job *job);

/* The job that was dispatched of PARENT with TOKEN, NULL: none was. */
const struct job *job_by_token(const struct alone *alone, const char *namespace, const char *parent,
                               const char *token);

/* --- periodic jobs (times.c, periodic.c) --- */

/* What a job keeps of when it was launched last, in seconds of the wall clock. */
#define PERIODIC_LAUNCHED "cairnLaunched"

int64_t periodic_now_s(const struct alone *alone);

/* The zone of the times of JSON, a job, owned by the caller, NULL: UTC. */
struct zone;
int periodic_zone(const struct alone *alone, const json_t *json, struct zone **ret_zone,
                  struct err *err);

/* ERR_INVALID: the time zone that JSON names is not known here. */
int periodic_check(const struct alone *alone, const json_t *json, struct err *err);

/* JSON, a job that is registered, is launched for times from now on. */
void periodic_stamp(const struct alone *alone, json_t *json);

/* JOB says what it says: it is launched when it is time, or not any more; or it is freed. */
void periodic_note(struct alone *alone, struct job *job);
void periodic_forget(struct alone *alone, struct job *job);

/* Nobody was there to look at those that the journal has. */
void periodic_resume(struct alone *alone);

/* Launches what is due; the next time to look, 0: none; and one that may be earlier. */
void periodic_tidy(struct alone *alone);
uint64_t periodic_deadline_ms(const struct alone *alone);
void periodic_look_at(struct alone *alone, uint64_t at_ms);

/* --- what is kept of scaling (scaling/kept.c) --- */

/* What JOB, as JSON, keeps of it: a new reference of its own; and ALL (moved) is that of JSON. */
json_t *scaling_kept(const json_t *job);
void scaling_put(json_t *json, json_t *all);

/* JSON keeps the policies that it has, and what was said of counts, as the job BEFORE it (NULL:
 * none) did. */
void scaling_carry(struct alone *alone, const json_t *before, json_t *json);

/* --- registering (register.c) --- */

/* How the deployment that is under way ends by a registration. */
struct outcome {
    const char *status, *description;
};

/* VERSION of JOB becomes its newest one, with what it was read of. */
int version_again(struct alone *alone, const struct alone_job *job, const json_t *version,
                  const struct outcome *outcome, const char *why,
                  struct alone_evaluation *ret_evaluation, struct err *err);

/* Registers JSON (moved), a job that was checked, and that was read of SOURCE (NULL: of nothing);
 * OUTCOME NULL: a newer version is what ends the deployment.  One that says Stop is stopped, and
 * stays so. */
int register_json(struct alone *alone, json_t *json, const json_t *source,
                  const struct outcome *outcome, const char *why,
                  struct alone_evaluation *ret_evaluation, struct err *err);

/* --- what people wrote (sources.c) --- */

/* That of the version NUMBER of JOB as it is stored: a new reference, NULL: there is none. */
json_t *source_read(const struct alone *alone, const struct alone_job *job, uint64_t number);

/* Takes the source away from WANTED, with a remark, if there is no room for it. */
void source_fit(const struct alone *alone, struct alone_wanted *wanted);

/* JSON, the newest version of JOB, which is another one if it has CHANGED, says that it has SOURCE
 * (NULL: none), or the one that it had already. */
void source_stamp(const struct job *job, json_t *json, bool changed, const json_t *source);

/* Writes SOURCE down for the newest version of JOB, and takes away those of versions that were kept
 * BEFORE (NULL: none) and are not any more. */
void source_keep(struct alone *alone, const struct job *job, const json_t *before,
                 const json_t *source);
void sources_drop(struct alone *alone, const struct job *job); /* all */

/* Takes away those of versions that are lost. */
int sources_sweep(struct alone *alone, struct err *err);

/* life_control of a struct alone. */
void alone_note_changed(void *ctx, const char *id, const struct alloc *alloc);

/* True if what has failed of GROUP is to be tried again at all. */
bool alone_may_reschedule(const json_t *group);

/* Decides about KEPT, which has failed, once, and again when the job has changed. */
void alone_decide(struct alone *alone, const struct job *job, const json_t *group,
                  struct kept *kept);

/* What the alloc that takes the place of failed ALLOC knows of those before it. */
struct rescheduled {
    struct spec_rescheduled *items;
    size_t count;
    struct alloc_spec *before; /* holds their texts */
};

void alone_history(struct alone *alone, const json_t *group, const char *alloc,
                   struct rescheduled *ret_rescheduled);
void rescheduled_free(struct rescheduled *rescheduled);

#endif
