/*
 * Policies: what should happen, as pure functions over plain values.  Guards and absorbers of the
 * machines call them; so does the control plane.
 */
#ifndef CAIRN_FSM_POLICY_H
#define CAIRN_FSM_POLICY_H

#include "fsm/alloc.h"
#include "fsm/csi.h"
#include "fsm/task.h"
#include "fsm/volume.h"

/* --- restart (client-behaviour 2.5; nomad v1.1.2 client/allocrunner/taskrunner/restarts) --- */

enum restart_answer { RESTART_AGAIN, RESTART_DELAYED, RESTART_SUCCEEDED, RESTART_EXHAUSTED };

struct restart_input {
    const struct task_define *define;
    uint64_t now_ms;
    uint64_t interval_ms; /* node time at which the current interval began */
    uint64_t seed;        /* for the jitter of the delay */
    uint32_t count;       /* restarts used in the current interval */
    bool success;         /* exit code 0, no signal, known */
    bool unrecoverable;   /* a start error that trying again will not mend */
};

struct restart_decision {
    enum restart_answer answer;
    uint64_t delay_ms;
    uint64_t interval_ms; /* to be stored for the next decision, as count is */
    uint32_t count;
    char reason[TASK_EVENT_TEXT_SIZE];
};

void policy_restart(const struct restart_input *input, struct restart_decision *ret_decision);

/* Pause before try ATTEMPT (1, 2, ...) of something that must succeed: base * 4^n up to cap, with
 * up to a quarter of jitter. */
uint64_t policy_backoff_ms(uint64_t base_ms, uint64_t cap_ms, uint32_t attempt, uint64_t seed);

/* --- templates that are rendered again, and identities that are signed again (nomad v2.0.5
 * taskrunner/template handleTemplateRerenders, taskrunner watchIdentity) --- */

enum change_mode { CHANGE_NOOP, CHANGE_SIGNAL, CHANGE_RESTART, CHANGE_SCRIPT, CHANGE_MODE_COUNT };

/* What a task's templates said when they were last rendered: of each, in their order, one of these
 * under this key, as data of hook template.  The same of its identities, of hook identity. */
#define RENDERED_KEY "rendered"
struct rendered {
    uint8_t mode;       /* enum change_mode */
    uint8_t number;     /* of mode signal the signal, of mode script which of the task's scripts */
    uint8_t digest[14]; /* of the text, or of the token */
};

struct rendered_change {
    uint64_t signals; /* bit n - 1 for signal n */
    uint64_t scripts; /* bit n for script n */
    bool restarts;    /* which goes before all others */
};

/* What is asked for where results AFTER of HOOK say otherwise than BEFORE; nothing where these say
 * nothing yet, or not of as many. */
void policy_change(uint8_t hook, const uint8_t *before, uint32_t before_bytes, const uint8_t *after,
                   uint32_t after_bytes, struct rendered_change *ret_change);

/* When to have tokens signed again, of which the first expires at EXPIRES_UNIX_NS: the time from
 * now on.  They are as good as gone: at once.  After TRIES in a row that have failed: when to try
 * again. */
uint64_t policy_renew_after_ms(int64_t expires_unix_ns, int64_t now_unix_ns, uint64_t draw);
uint64_t policy_renew_again_ms(uint32_t tries, uint64_t draw);

/* True if a task may start with a token that expires then (0: never). */
bool policy_token_lasts(int64_t expires_unix_ns, int64_t now_unix_ns);

/* --- a group of tasks (client-behaviour 1.4 to 1.8) --- */

/* True if MEMBER, a task, may start now: the lifecycle has reached its class. */
bool policy_may_start(const struct alloc *alloc, const struct alloc_member *member);

/* True if MEMBER, a task, must be told to end now, while its alloc is being killed: the leader
 * first, then mains, then sidecars; poststop tasks only when they are not to run at all. */
bool policy_must_kill(const struct alloc *alloc, const struct alloc_member *member);

/* True if the poststop tasks of ALLOC will run when its other tasks have ended. */
bool policy_runs_poststop(const struct alloc *alloc);

/* Why the whole group must end, as the task event that tells the others; TASK_EVENT_NONE if it
 * need not.  RET_NAME is the task that caused it (borrowed from ALLOC), "" if none. */
enum task_event_type policy_kill_reason(const struct alloc *alloc, const char **ret_name);

/* What is said of an alloc that was ended because its max_run_duration was over. */
extern const char policy_ran_out[];

/* What its tasks are told when all of them are to run again, in Nomad's words. */
extern const char policy_replayed[];

/* True if MEMBER, a task, must be told now to end and to wait for its turn again, while its alloc
 * is replayed: those that run in the order of a kill, all others at once.  Poststop tasks are left
 * as they are. */
bool policy_must_rewind(const struct alloc *alloc, const struct alloc_member *member);

/* True if MEMBER is dead and will not stay so: it is told to begin again, and answers in the same
 * turn. */
bool policy_comes_back(const struct alloc *alloc, const struct alloc_member *member);

/* True if each of them waits for its turn. */
bool policy_is_rewound(const struct alloc *alloc);

/* Client status as servers and users see it, and its fixed description. */
enum client_status policy_client_status(const struct alloc *alloc, const char **ret_description);

/* --- health of a group of tasks (client-behaviour 1.9; nomad v2.0.5 client/allochealth) --- */

enum group_health {
    GROUP_UNSETTLED, /* a task has yet to start, or to start again */
    GROUP_DOUBTED,   /* all run, if those that ran before a restart of the daemon still do */
    GROUP_STEADY,    /* all run that are to */
    GROUP_BROKEN,    /* one failed or is over that was to go on: it will never be healthy */
};

/* Prestart and poststart tasks that have ended well are not missed, poststop tasks do not count. */
enum group_health policy_group_health(const struct alloc *alloc);

/* True if all checks of its services pass that a deployment waits for. */
bool policy_checks_pass(const struct alloc *alloc);

/* Why MEMBER, a task, has made ALLOC unhealthy, into TO in Nomad's words; false: it has not. */
bool policy_unhealthy_reason(const struct alloc *alloc, const struct alloc_member *member, char *to,
                             size_t size);

/* --- services (services-identity 1.10, 1.12, 2; nomad v2.0.5 client/serviceregistration) --- */

/* True if what the group of ALLOC offers is to be found: from when its tasks may start to when it
 * is told to end.  It is nowhere written down: it follows from the record, and does so again after
 * a restart. */
bool policy_group_offers(const struct alloc *alloc);

/* The same of TASK, which is one of ALLOC's: while its payload runs and is not being ended. */
bool policy_task_offers(const struct alloc *alloc, const struct task *task);

/* True if tasks of an alloc in STATE may run that reach Consul by sockets in their alloc. */
bool policy_has_mesh(uint8_t state);

/* A check that restarts whoever fails it too often, since it began to be looked at. */
struct check_count {
    uint64_t grace_until_ms; /* until when failures do not count */
    uint32_t failures;       /* since the last time that it passed */
    uint64_t since_ms;       /* since when it fails, of a check of Consul; 0: it does not */
};

/* It has found something at NOW_MS: true if it is time to restart, as it has failed LIMIT times in
 * a row (0: never).  Nomad polls, and counts by the time that so many take. */
bool policy_check_restarts(struct check_count *count, uint32_t limit, bool passes, uint64_t now_ms);

/* True if MEMBER is a task that such a check restarts, of a service of TASK: that one, or of the
 * group's ("") all. */
bool policy_check_is_of(const struct alloc_member *member, const char *task);

/* --- Consul (services-identity 1, 6; nomad v2.0.5 command/agent/consul) --- */

/* A service that is to be in Consul's agent, or is, and what is known of it. */
struct consul_entry {
    bool wanted;     /* it is offered here */
    bool there;      /* the agent has one of its id ... */
    bool same;       /* ... which says what is wanted, with the checks that are */
    bool ours;       /* ... and which this node has registered */
    bool known;      /* its alloc is in the journal */
    bool of_another; /* Consul itself has made it beside another service */
};

enum consul_call { CONSUL_LEAVE, CONSUL_REGISTER, CONSUL_DEREGISTER };

/* What is to be done about ENTRY at UP_MS, which counts from when the daemon began.  What is not
 * ours is never taken away; what is ours and nobody here knows, as after a loss of the journal, is
 * on probation first.  Nomad takes whatever is called as its own. */
enum consul_call policy_consul_call(const struct consul_entry *entry, uint64_t up_ms);

/* When to look at Consul again: after the FAILURES-th vain attempt in a row; after one that was
 * not (0), WATCHED while somebody waits for what its checks find. */
uint64_t policy_consul_after_ms(unsigned failures, bool watched);

enum consul_status { CONSUL_PASSING, CONSUL_WARNING, CONSUL_CRITICAL };

/* True if STATUS is as good as passing to who lets WARNINGS pass. */
bool policy_consul_passes(enum consul_status status, bool warnings);

/* As policy_check_restarts, for checks that somebody else runs every INTERVAL_MS and that are only
 * looked at: it is time when it has failed for as long as LIMIT of them take. */
bool policy_consul_restarts(struct check_count *count, uint32_t limit, uint64_t interval_ms,
                            bool passes, uint64_t now_ms);

/* --- servers (nomad-rpc 1.8, 3.4, 6.3; nomad v2.0.5 client/client.go) ---
 *
 * DRAW is 64 random bits: nodes that lose their servers together do not come back together. */

/* What keeps a claim on a volume from being had or given back; all but the last two may go away by
 * themselves. */
enum claim_trouble {
    CLAIM_TROUBLE_SERVERS, /* none answers, or none leads */
    CLAIM_TROUBLE_PASSES,  /* others have the volume, its plugin is away, ... */
    CLAIM_TROUBLE_GONE,    /* there is no such volume, or no such alloc to have a claim */
    CLAIM_TROUBLE_STAYS,
};

/* CODE is ERR_REFUSED and TEXT a server's own words, or any other and it may not have heard. */
enum claim_trouble policy_claim_trouble(int code, const char *text);

/* What a refusal says of the node that has called. */
enum node_trouble {
    NODE_TROUBLE_NONE,
    NODE_TROUBLE_UNKNOWN, /* they do not know it, or another one by its id: it registers anew */
    NODE_TROUBLE_DENIED,  /* nobody whom they know may say that, as of a node that was purged */
};

/* CODE and TEXT as of policy_claim_trouble. */
enum node_trouble policy_node_trouble(int code, const char *text);

/* True if what was to be withdrawn is not there: as good as withdrawn. */
bool policy_is_withdrawn(int code, const char *text);

/* True if servers that said this, or nothing, may answer later: they look for a leader. */
bool policy_may_answer_later(int code, const char *text);

/* True if they are too old, or too new, for such a question. */
bool policy_is_not_asked(int code, const char *text);

/* True if servers have refused a token that is none, or not any more: they have answered. */
bool policy_is_denied(int code, const char *text);

/* True if a task in STATE (enum task_state) has a socket to ask servers by: its payload may run,
 * and its secrets are where they belong. */
bool policy_has_task_api(uint8_t state);

/* How long the servers may be asked whose volumes a new alloc has before it is given up. */
uint64_t policy_find_volumes_ms(void);

/* How long they may be asked where the disk is that an alloc takes over before it begins without.
 */
uint64_t policy_find_disk_ms(void);

/* True if other servers are looked for when TRIES in a row have failed and KNOWN are known. */
bool policy_seeks_servers(uint32_t tries, size_t known);

/* How long is waited to register again after TRIES in a row have failed. */
uint64_t policy_register_again_ms(uint32_t tries, uint64_t draw);

struct heartbeat {
    uint64_t heard_ms; /* node time of the last one that was answered, 0: none was */
    uint64_t ttl_ms;   /* that it was good for */
    bool leaderless;   /* the servers have no leader at the moment */
};

/* For how long a heartbeat is good that servers say is for TTL_NS: a second at least. */
uint64_t policy_beat_every_ms(int64_t ttl_ns);

/* How long one server may take for a heartbeat, so that others can be tried before it is due. */
uint64_t policy_beat_limit_ms(const struct heartbeat *last);

/* How long is waited at NOW_MS to try again one that has failed. */
uint64_t policy_beat_again_ms(const struct heartbeat *last, uint64_t now_ms, uint64_t draw);

/* The same of a question for allocs; it is asked at once when the servers are heard of. */
uint64_t policy_ask_again_ms(uint64_t draw);

/* True if who waits for the end of an alloc need not any more that servers say has this client
 * status: it has ended, or nobody knows, as its node is away, which they wait for no longer. */
bool policy_is_over_for_others(const char *client_status);

/* The same of a question for it that failed, CODE and TEXT as of policy_claim_trouble: there is no
 * such alloc any more, or this node may not know. */
bool policy_awaits_in_vain(int code, const char *text);

/* How long is waited to ask again for one that servers did not tell of. */
uint64_t policy_await_again_ms(uint64_t draw);

/* How long is waited to ask again for what a template wants to know, after TRIES in vain; and
 * whether so many REFUSALS mean that it will not be told. */
uint64_t policy_fact_again_ms(uint32_t tries, uint64_t draw);
bool policy_fact_is_refused(uint32_t refusals);

/* How long changes of the node are gathered before they are told; of one that has just begun
 * (IS_NEW), which finds out what it has, not for long. */
uint64_t policy_tell_node_ms(bool is_new, uint64_t draw);

/* How long is waited to hand over statuses again that could not be. */
uint64_t policy_push_again_ms(uint64_t draw);

/* How soon the servers hear of an alloc: at once of what they decide by, of all else later and with
 * whatever there is by then. */
enum status_haste { STATUS_URGENT, STATUS_LAZY };
uint64_t policy_push_after_ms(enum status_haste haste);

/* What servers want of an alloc. */
struct wanted {
    bool run;       /* neither stopped nor evicted */
    bool over;      /* they know how it has ended */
    bool unknown;   /* they have not heard of it for so long that they do not know what it is */
    uint64_t index; /* of this version of it */
};

enum wanted_order {
    WANTED_IGNORED,
    WANTED_ASSIGN,    /* it is new */
    WANTED_GO_ON,     /* as it is */
    WANTED_UPDATE,    /* by this version */
    WANTED_RECONNECT, /* the same, and it is to say that it is heard of again */
    WANTED_STOP,
};

/* What is to be done with ALLOC, NULL: it is not known here, which goes by version HAVE. */
enum wanted_order policy_wanted(const struct alloc *alloc, uint64_t have,
                                const struct wanted *wanted);

/* --- stand-alone control plane --- */

/* True if a task of such a lifecycle starts again after it ended well: services and sidecars do,
 * batch tasks and those that run beside the mains only once do not (client-behaviour 2.5). */
bool policy_restarts_on_success(bool batch, enum spec_lifecycle lifecycle, bool sidecar);

struct reconcile_alloc {
    const char *group;
    uint32_t index; /* in its group */
    bool live;      /* neither ended nor told to end */
    bool ended;     /* by itself */
    bool succeeded; /* and completely */
    bool awaited;   /* its successor is, and does not come now */
    bool current;   /* made from a definition as good as the wanted one */
    bool canary;    /* it is tried beside the one in its place, and left alone here */
    bool stop;      /* out: must be told to end */
};

struct reconcile_group {
    const char *name;
    uint32_t count; /* wanted */
    bool *place;    /* out: for each index, whether an alloc must be made */
};

/* What must be stopped and placed so that each group has its count of current allocs.  An alloc of
 * a batch job that has succeeded counts as there, and one of a sysbatch job that has ended; and
 * where nobody else is, one whose successor is awaited. */
void policy_reconcile(enum spec_job_type type, struct reconcile_alloc *allocs, size_t allocs_count,
                      struct reconcile_group *groups, size_t groups_count);

/* Status "pending", "running" or "dead" of a job, of which LIVE allocs are not over; WAITS: another
 * one is to be placed when there is room, or when it is time; DEPLOYS: a deployment of it is under
 * way.  A system job runs until it is stopped, and so does one of which other jobs are made
 * (MAKES_JOBS); one that deploys runs though nothing of it does (nomad v2.0.5 nomad/state,
 * getJobStatus). */
enum job_status { JOB_PENDING, JOB_RUNNING, JOB_DEAD };
struct job_standing {
    enum spec_job_type type;
    bool makes_jobs, stop, deploys, waits;
    size_t live;
};
enum job_status policy_job_status(const struct job_standing *standing);
const char *job_status_name(enum job_status status);

/* --- draining a node --- */

struct drain_alloc {
    enum spec_job_type type;
    bool plugin; /* a storage plugin is among its tasks */
    bool live;   /* neither ended nor told to end */
    bool ended;
    bool stop; /* out: is to be told to end now */
};

struct drain {
    bool over; /* nothing is waited for any more */
    bool ignore_system;
};

/* Which of ALLOCS a node that is drained ends now.  True: nothing is left that it waits for, and
 * with those that end now the drain is complete. */
bool policy_drain(const struct drain *drain, struct drain_alloc *allocs, size_t count);

/* --- launching periodic jobs: all in seconds of the wall clock --- */

#define LAUNCH_NEVER INT64_MAX

/* A clock that is set back by more than this was wrong before, as for cron(8). */
enum { LAUNCH_AHEAD_MAX_S = 3 * 3600 };

struct periodic {
    int64_t due_s;  /* the first time to launch it after the last one, or LAUNCH_NEVER */
    int64_t then_s; /* and the one after that */
    int64_t now_s;
    bool away; /* nobody was there to look since the last time */
    bool prohibits_overlap;
    bool goes_on; /* what was launched before */
};

enum launching { LAUNCH_LATER, LAUNCH_SKIPPED, LAUNCH_NOW };

/* RET_AT_S: the time for which it is launched, or skipped, or at which to ask again.  More times
 * than one that were missed, or any while nobody was there, come to one launch, at NOW_S. */
enum launching policy_launch(const struct periodic *periodic, int64_t *ret_at_s);

/* Since when to look for a time to launch, where LAUNCHED_S was the last one. */
int64_t policy_launched_since(int64_t launched_s, int64_t now_s);

/* True if ALLOC, whose place another one takes, is told to end though it has: it has failed, and is
 * not wanted any more.  One of a node's own never is, as it does not come back by itself (nomad
 * v2.0.5 scheduler_system.go). */
bool policy_is_relieved(enum spec_job_type type, const struct alloc *alloc);

/* What is known of who takes the place of an alloc that has failed. */
struct succession {
    bool queued;      /* whoever it is waits for room, and not for a time */
    bool gave_up;     /* the deployment that made the alloc has failed */
    bool forced;      /* a user asks for others in the places of those that have failed */
    bool reschedules; /* its group says that others are made */
};

/* True if nobody takes that place now, but perhaps when it is time: the alloc is left as it is. */
bool policy_awaits_next(const struct succession *succession);

/* How many of ENDED allocs, oldest first, are to be destroyed so that at most KEPT stay. */
size_t policy_collect(size_t ended, size_t kept);

/* A file system as it is; all 0: not known.  Bytes are free that users may take. */
struct disk_use {
    uint64_t bytes_used, bytes_free;
    uint64_t inodes_used, inodes_free;
};

/* How full it may be, percent. */
struct disk_limits {
    uint32_t bytes_percent, inodes_percent;
};

/* What of it is used beyond its limit, "disk" or "inode"; NULL: nothing. */
const char *policy_too_full(const struct disk_use *use, const struct disk_limits *limits);

/* Ended allocs that have to go from it, and when the last one went or they were chosen, ms. */
struct disk_leaving {
    size_t allocs;
    uint64_t since_ms;
};

/* True while what they leave free is to be measured before more are chosen: until all have gone, or
 * none has for a while, since one that cannot be destroyed is not to keep a disk full. */
bool policy_awaits_leaving(const struct disk_leaving *leaving, uint64_t now_ms);

/* --- rescheduling: another alloc for one that has failed (nomad v1.1.2 nomad/structs) --- */

enum reschedule_function { RESCHEDULE_CONSTANT, RESCHEDULE_EXPONENTIAL, RESCHEDULE_FIBONACCI };

/* The group's reschedule block.  Neither attempts nor unlimited: never. */
struct reschedule_policy {
    uint32_t attempts;    /* within interval_ns */
    bool unlimited;       /* then attempts do not count */
    uint64_t interval_ns; /* all below 2^63 */
    uint64_t delay_ns;
    uint64_t max_delay_ns; /* 0: none */
    enum reschedule_function function;
};

/* One that was made, by the wall clock. */
struct reschedule_event {
    int64_t unix_ns;
    uint64_t delay_ns; /* that it had waited */
};

enum { RESCHEDULE_EVENTS_KEPT = 5 }; /* of one that has no limit */

struct reschedule_input {
    const struct reschedule_policy *policy;
    const struct reschedule_event *events; /* of the failed alloc, the oldest first */
    size_t events_count;
    int64_t failed_unix_ns;
};

struct reschedule_decision {
    bool again;
    uint64_t delay_ns; /* after it has failed; also if there is none */
    uint32_t attempted;
};

void policy_reschedule(const struct reschedule_input *input,
                       struct reschedule_decision *ret_decision);

/* How many of the newest EVENTS the next alloc, which is made now, goes on to count. */
size_t policy_reschedule_kept(const struct reschedule_policy *policy,
                              const struct reschedule_event *events, size_t count,
                              int64_t now_unix_ns);

/* --- rolling updates (nomad v2.0.5 nomad/deploymentwatcher, scheduler/reconciler) --- */

/* One alloc of a group that is rolled out. */
enum rollout_who {
    ROLLOUT_NOBODY, /* and nobody was */
    ROLLOUT_OLDER,  /* one that is to be replaced, whether it lives or not */
    ROLLOUT_KEPT,   /* one that goes on by the newer version as it is */
    ROLLOUT_OWN,    /* one that the deployment has placed; all below is about such */
};
struct rollout_alloc {
    uint8_t who;            /* enum rollout_who */
    uint8_t health;         /* enum alloc_health */
    bool stopped;           /* it was told to end, and another one waits for room */
    bool over;              /* it has ended */
    bool again;             /* another one is made for it when it has */
    uint64_t begun_ms;      /* node time at which its set-up began, 0: it has not */
    uint64_t healthy_at_ms; /* node time since which it is healthy */
};

/* One place of such a group. */
struct rollout_place {
    struct rollout_alloc last;   /* who was placed there last */
    struct rollout_alloc canary; /* who is tried beside it: nobody, or an own one */
    bool filled;                 /* somebody is placed there by this look anyhow */
    bool crowded;                /* an older one runs there as well, and is told to end now */
    bool replace;                /* out: another one takes the place now */
    bool try;                    /* out: a canary is placed beside it now */
};

struct rollout_group {
    uint32_t parallel;    /* so many are replaced before those are healthy */
    uint32_t canaries;    /* so many are tried before anybody is replaced, 0: it is promoted */
    uint64_t progress_ms; /* within which another one is to be healthy, 0: one failure is the end */
    bool auto_promote, auto_revert;
    struct rollout_place *places;
    size_t count;
};

struct rollout_input {
    struct rollout_group *groups;
    size_t count;
    uint64_t now_ms;
    uint64_t resumed_ms; /* node time at which it was promoted or a user let it go on, 0: never */
    bool paused;
};

enum rollout_answer {
    ROLLOUT_GOES_ON,
    ROLLOUT_SUCCEEDS,
    ROLLOUT_PROMOTES,
    ROLLOUT_UNHEALTHY, /* it fails: an alloc has, and none is made for it in time */
    ROLLOUT_LATE,      /* it fails: nothing has become healthy in time */
};

struct rollout_decision {
    enum rollout_answer answer;
    bool reverts;        /* it fails by a group that wants the last good version back */
    bool awaits;         /* it waits for its promotion and for nothing else */
    uint64_t look_at_ms; /* node time at which it is late, 0: never, or not known yet */
};

/* What is to be done next.  Where it goes on, INPUT says what is placed; who is in the place of a
 * replaced one is told to end. */
void policy_rollout(struct rollout_input *input, struct rollout_decision *ret_decision);

/* --- placement: what one node has room for (nomad v1.1.2 nomad/structs/funcs.go) --- */

struct room {
    uint64_t cpu_mhz, memory_mb, disk_mb;
    uint64_t cores;          /* that one task has for itself */
    uint64_t memory_most_mb; /* up to which tasks may go; that needs not be there */
};

void room_add(struct room *to, const struct room *more);
void room_drop(struct room *from, const struct room *less); /* that is a part of it */

/* Processors by their numbers, empty when zeroed. */
struct core_set {
    uint64_t bits[NODE_CORES_MAX / 64];
};

bool core_set_has(const struct core_set *set, uint16_t core);
void core_set_add(struct core_set *set, uint16_t core);
void core_set_drop(struct core_set *set, uint16_t core);
size_t core_set_count(const struct core_set *set);

/* What the tasks of one group ask for, added up one by one from zero. */
struct room_sum {
    struct room mains, sidecars;
    struct room before, after; /* what runs before and after the mains, and not beside them */
};

void policy_ask_task(struct room_sum *sum, enum spec_lifecycle lifecycle, bool sidecar,
                     const struct room *task);

/* What one alloc of such a group asks for at most, at any time of its life. */
struct room policy_ask(const struct room_sum *sum, uint64_t disk_mb);

/* What of TOTAL is not there for ASK besides what is USED, in Nomad's words: cpu, memory, disk;
 * NULL: all of it is there. */
const char *policy_exhausted(const struct room *total, const struct room *used,
                             const struct room *ask);

/* Ports of one address of the host: 8 KiB, empty when zeroed. */
struct port_set {
    uint64_t bits[(UINT16_MAX + 1) / 64];
};

bool port_set_has(const struct port_set *set, uint16_t port);
void port_set_add(struct port_set *set, uint16_t port);
void port_set_drop(struct port_set *set, uint16_t port); /* one that is not there, too */

struct port_range {
    uint16_t first, last; /* both of it */
};

/* A port of RANGE that is not TAKEN, 0: there is none.  Each is as likely as SEED is: what has just
 * been given back is not the next to be given out. */
uint16_t policy_pick_port(const struct port_set *taken, const struct port_range *range,
                          uint64_t seed);

/* --- volumes of storage plugins --- */

/* How a volume can be claimed, or is. */
struct claim_terms {
    uint8_t access;     /* enum csi_access */
    uint8_t attachment; /* enum csi_attachment */
    bool read_only;     /* of a claim */
};

enum claim_verdict {
    CLAIM_FITS,
    CLAIM_NOT_CAPABLE,        /* the volume was not registered for that */
    CLAIM_OTHERWISE_ATTACHED, /* others have it as a device, or as a file system */
    CLAIM_NOT_WRITABLE,       /* those who have it, or who asks, only read */
    CLAIM_READERS_EXHAUSTED,
    CLAIM_WRITERS_EXHAUSTED,
};

/* May who asks for a volume have it, that was registered for all of VOLUME, beside those who have
 * it, the first of them first? */
enum claim_verdict policy_claim(const struct claim_terms *volume, size_t volume_count,
                                const struct claim_terms *claims, size_t claims_count,
                                const struct claim_terms *asked);

/* What a claim that is wanted waits for, and what is to be done about it, for people: true, and TO
 * says it, unless it has what it wants. */
bool policy_claim_waits(const struct volume *volume, char *to, size_t size);

/* What is known of a volume at its plugin. */
enum registration_state {
    REGISTRATION_READY,
    REGISTRATION_CREATING, /* it may be there */
    REGISTRATION_DELETING, /* it may not be there any more */
    REGISTRATION_STATE_COUNT,
};

enum registration_step {
    REGISTRATION_BECOMES_READY,
    REGISTRATION_IS_FORGOTTEN, /* there is no such volume */
    REGISTRATION_CALLS_AGAIN,  /* the same, after a pause: nobody knows what has come of it */
    REGISTRATION_CALLS_NEXT,   /* it is known now that there is something to delete */
};

/* True if it is known what came of a call, and of the same call before: nothing of it goes on.
 * ANSWERED: the plugin has said so. */
bool policy_is_settled(const struct csi_outcome *outcome, bool answered);

/* What becomes of a volume in STATE when CALL has ended like that.  One that is READY stays so:
 * what its plugin was asked to make of it comes about, or is forgotten. */
enum registration_step policy_registration(enum registration_state state, enum csi_call call,
                                           const struct csi_outcome *outcome, bool answered);

/* True if NAME is what PATTERN says, in which * is any text: names of datacenters. */
bool policy_matches(const char *pattern, const char *name);

#endif
