/*
 * What a simulated world is made of and what happens in it, as plain values.
 *
 * A script is all a run depends on: equal scripts give equal runs, down to the trace's hash.  It
 * comes from a seed (draw.c), from a story or a file (text, read.c), or from shrinking
 * another script.  Its text form is read and printed here, so that whatever failed once can be
 * kept as a story:
 *
 *     mode server
 *     log 20
 *     alloc a batch
 *     task a/main runs 500 exits 3 attempts 2
 *     at 0 assign a
 *     when task a/main RUNNING after crash 200
 *     fate ERR task a/main HOOK 1
 *     expect state task a/main DEAD
 *     always starts a/main at_most 1
 */
#ifndef CAIRN_SIM_SCRIPT_SCRIPT_H
#define CAIRN_SIM_SCRIPT_SCRIPT_H

#include "base/base.h"
#include "fsm/fsm.h"

enum {
    SIM_NAME_SIZE = UUID_TEXT_SIZE,
    SIM_ALLOCS_MAX = 8,
    SIM_TASKS_MAX = 4,   /* of one alloc */
    SIM_VOLUMES_MAX = 2, /* claims of one alloc */
    SIM_PLUGINS_MAX = 2,
    SIM_JOBS_MAX = 2,
    SIM_COUNT_MAX = 4,  /* of one group */
    SIM_PORTS_MAX = 2,  /* of one alloc that was placed for a job */
    SIM_CHECKS_MAX = 3, /* of one alloc */
    SIM_DISKS_MAX = 4,  /* what claims are on */
    SIM_STEPS_MAX = 96,
    SIM_FATES_MAX = 96,
    SIM_CUTS_MAX = 8,
    SIM_EXPECTS_MAX = 48,
    SIM_TIMES_MAX = 15, /* of what is updated */
};

/* --- fault primitives: restore-failures.md section 1, by name --- */

enum sim_place {
    SIM_PLACE_POINT,  /* at a crash point: before and after commits, effects, completions */
    SIM_PLACE_STEP,   /* at a moment of its own */
    SIM_PLACE_COMMIT, /* by a commit */
    SIM_PLACE_CALL,   /* by a call that an effect makes: lanes HOOK, DRIVER, RPC, NODE */
};

/*    name           written             place   what it does */
#define SIM_FAULTS(X)                                                                              \
    X(KILL_BEFORE, "KILL@before-commit", POINT, "SIGKILL of the daemon before a commit")           \
    X(KILL_AFTER, "KILL@after-commit", POINT, "SIGKILL after a commit, before its first effect")   \
    X(KILL_EFFECT, "KILL@effect", POINT, "SIGKILL between two effects")                            \
    X(KILL_DONE, "KILL@done", POINT, "SIGKILL after an effect, before its completion is posted")   \
    X(KILL_POSTED, "KILL@posted", POINT, "SIGKILL after a completion, before its commit")          \
    X(TERM, "TERM", STEP, "orderly stop of the daemon")                                            \
    X(DOWN, "DOWN", STEP, "the daemon stays away for a while; the rest of the world goes on")      \
    X(SHIM, "SHIM", STEP, "SIGKILL of one shim; its payload lives on")                             \
    X(LOGGER, "LOGGER", STEP, "SIGKILL of what keeps a task's logs, which is its shim")            \
    X(PLUG, "PLUG", STEP, "SIGKILL of a plugin's process")                                         \
    X(BOOT, "BOOT", STEP, "reboot: every process and mount of ours is gone, another boot id")      \
    X(PIDREUSE, "PIDREUSE", STEP, "a foreign process sits at the journaled pid")                   \
    X(IO_FULL, "IO(ENOSPC)", COMMIT, "the commit fails: no space left")                            \
    X(IO_ERROR, "IO(EIO)", COMMIT, "the commit fails: input or output error")                      \
    X(IO_MAP, "IO(MAP)", COMMIT, "the commit fails: the map cannot grow")                          \
    X(TORN_CUT, "TORN(cut)", STEP, "a record is truncated")                                        \
    X(TORN_ZERO, "TORN(zero)", STEP, "a record is zeroed")                                         \
    X(TORN_FLIP, "TORN(flip)", STEP, "a bit of a record is flipped")                               \
    X(SRV_DOWN, "SRV(down)", STEP, "the server refuses connections")                               \
    X(SRV_BLACKHOLE, "SRV(blackhole)", STEP, "the server accepts and never answers")               \
    X(SRV_STALE, "SRV(stale)", STEP, "the server's answers are of an earlier index")               \
    X(SRV_PARTIAL, "SRV(partial)", STEP, "the server's answers miss some of the allocs")           \
    X(SRV_DROP, "SRV(drop-reply)", CALL, "the server does it, its reply is lost")                  \
    X(SRV_DENIED, "SRV(denied)", CALL, "the server refuses, for good")                             \
    X(SRV_SLOW, "SRV(slow)", STEP, "the server answers after seconds")                             \
    X(HANG, "HANG", CALL, "the call never returns; whoever bounds it reports a timeout")           \
    X(ERR, "ERR", CALL, "the call fails; trying again may help")                                   \
    X(ERR_HARD, "ERR(permanent)", CALL, "the call fails for good")                                 \
    X(LATE, "LATE", CALL, "the call reports a timeout and takes effect later")                     \
    X(DONE_ERR, "DONE+ERR", CALL, "the call takes effect and reports a failure")                   \
    X(LIE, "LIE", CALL, "the plugin reports success and has done nothing")                         \
    X(CLASH, "CLASH", CALL, "the plugin says that the target is there with other arguments")       \
    X(FORGOT, "FORGOT", CALL, "the plugin says that the volume is not staged")                     \
    X(DOUBT, "DOUBT", CALL, "the plugin fails with what plugins say of anything")                  \
    X(SLOW, "SLOW", CALL, "the call takes seconds")                                                \
    X(FORK, "FORK", CALL, "start: no process can be made")                                         \
    X(EXEC, "EXEC", CALL, "start: the program cannot be executed")                                 \
    X(BUSY, "BUSY", STEP, "a foreign process keeps a mount busy")                                  \
    X(SLEEP, "SLEEP", STEP, "everything is frozen, then the clocks have moved on")                 \
    X(JUMP, "JUMP", STEP, "the wall clock is set")                                                 \
    X(RECORD_LOST, "RECORD-LOST", STEP, "the shim dies after its payload, its record unwritten")   \
    X(DIR_LOST, "DIR-LOST", STEP, "an alloc's directory is gone (with a reboot)")                  \
    X(UNMOUNT, "UNMOUNT", STEP, "somebody unmounts a volume under us")                             \
    X(PURGE, "PURGE", STEP, "the server forgets an alloc")                                         \
    X(OLDER, "OLDER", STEP, "an older copy of the journal is put back")                            \
    X(UNRENDERED, "UNRENDERED", STEP, "a task's templates cannot be written for a while")          \
    X(SHUTDOWN, "SHUTDOWN", STEP, "all are told to end, and shims say how payloads did; then BOOT")
enum sim_fault {
    SIM_FAULT_NONE,
#define X(name, text, place, what) SIM_##name,
    SIM_FAULTS(X)
#undef X
        SIM_FAULT_COUNT,
};

const char *sim_fault_name(unsigned fault);
const char *sim_fault_what(unsigned fault);
enum sim_place sim_fault_place(unsigned fault);

/* --- what there is --- */

struct sim_task {
    char name[SIM_NAME_SIZE];
    uint64_t runs_ms; /* 0: until told to stop */
    uint64_t dies_ms; /* from the kill signal to the end */
    uint64_t interval_ms, backoff_ms, kill_ms, delay_ms;
    uint32_t attempts;
    uint32_t hooks[5];     /* masks: prestart, poststart, prekill, exited, stop */
    int32_t exits, signal; /* how it ends by itself */
    uint8_t lifecycle, sidecar, leader, mode_delay;
    uint8_t ignores_term; /* only SIGKILL ends it */
    uint8_t forks;        /* leaves descendants behind */
    uint8_t serves;       /* it is the process of that plugin, + 1; 0: of none */
    uint64_t health_ms;   /* of that one: its health_timeout */
};

struct sim_claim {
    char name[SIM_NAME_SIZE];
    uint8_t disk, plugin;
    uint8_t exclusive; /* the server lets nobody else have it */
};

struct sim_alloc {
    char name[SIM_NAME_SIZE];
    uint8_t batch;
    uint8_t after; /* alloc to wait for + 1, 0: none */
    uint8_t tasks_count, claims_count;
    uint64_t delay_ms;                            /* the group's shutdown_delay */
    uint64_t limit_ms;                            /* its max_run_duration, 0: none */
    uint64_t min_healthy_ms, healthy_deadline_ms; /* the latter 0: nobody asks for its health */
    uint64_t stop_after_ms;                       /* without contact to the server, 0: it goes on */
    uint8_t manual;                               /* that somebody hears it from a user only */
    uint8_t checks;    /* that pass before it is healthy; they do when it is said */
    uint8_t sticky;    /* it takes over the disk of the alloc before it */
    uint32_t hooks[4]; /* masks: prerun, prekill, postrun, destroy */
    struct sim_task tasks[SIM_TASKS_MAX];
    struct sim_claim claims[SIM_VOLUMES_MAX];
};

struct sim_plugin {
    char name[SIM_NAME_SIZE];
    uint8_t stages;
    uint8_t of; /* another instance of that plugin, an earlier one, + 1; 0: of its own */
};

/* Registered with the stand-alone control plane; its groups are what the script's allocs say. */
struct sim_job {
    char name[SIM_NAME_SIZE];
    uint8_t groups;   /* mask of allocs */
    uint8_t count;    /* of each group, to begin with */
    uint8_t again;    /* times that another alloc is made for one that has failed */
    uint8_t system;   /* of type system, or sysbatch: never rescheduled */
    uint8_t parallel; /* of a service: so many are replaced before they are healthy, 0: all */
};

/* --- what happens --- */

/*    name        takes                         what */
#define SIM_ACTIONS(X)                                                                             \
    X(ASSIGN, ALLOC, "assign")       /* the control plane wants it */                              \
    X(STOP, ALLOC, "stop")           /* wants it stopped */                                        \
    X(HURRY, ALLOC, "hurry")         /* and no shutdown_delay to be waited for */                  \
    X(DESTROY, ALLOC, "destroy")     /* wants it forgotten (server: purges it) */                  \
    X(RESTART, ALLOC, "restart")     /* a user restarts the alloc */                               \
    X(REPLAY, ALLOC, "replay")       /* all of its tasks, those that are over, too */              \
    X(HEALTHY, ALLOC, "say_healthy") /* a user says so, where somebody waits to hear it */         \
    X(UNHEALTHY, ALLOC, "say_unhealthy")                                                           \
    X(CHECK, ALLOC, "check")  /* its checks, run by the node, find so: bits of number pass */      \
    X(UNWELL, TASK, "unwell") /* one of its checks restarts it */                                  \
    X(RESTART_TASK, TASK, "restart_task")                                                          \
    X(SIGNAL, TASK, "signal")                                                                      \
    X(DETACH, CLAIM, "detach") /* the server asks for the unmount */                               \
    X(STOP_PLUGIN, PLUGIN, "stop_plugin")                                                          \
    X(REMOVE, PLUGIN, "remove")   /* the plugin is no longer wanted */                             \
    X(INSTALL, PLUGIN, "install") /* and is wanted again */                                        \
    X(CRASH, NONE, "crash")       /* DOWN after SIGKILL, for number ms */                          \
    X(TERM, NONE, "term")         /* DOWN after an orderly stop */                                 \
    X(BOOT, NONE, "boot")         /* reboot that takes number ms */                                \
    X(SHIM, TASK, "shim")                                                                          \
    X(EXIT, TASK, "exit")     /* the payload ends now with code number */                          \
    X(CHANGE, TASK, "change") /* what a template of its reads, by number: enum change_mode */      \
    X(RECORD_LOST, TASK, "record_lost")                                                            \
    X(PLUG, PLUGIN, "plug")                                                                        \
    X(SERVER, NONE, "server") /* number: enum sim_server */                                        \
    X(TORN_CUT, RECORD, "torn_cut")                                                                \
    X(TORN_ZERO, RECORD, "torn_zero")                                                              \
    X(TORN_FLIP, RECORD, "torn_flip")                                                              \
    X(BUSY, CLAIM, "busy") /* for number ms */                                                     \
    X(UNMOUNT, CLAIM, "unmount")                                                                   \
    X(DIR_LOST, ALLOC, "dir_lost")                                                                 \
    X(SLEEP, NONE, "sleep")          /* number ms */                                               \
    X(JUMP, NONE, "jump")            /* the wall clock moves by number ms, forth or back */        \
    X(DISK, NONE, "disk")            /* the next number commits fail (0: none) with ENOSPC */      \
    X(SWEEP, NONE, "sweep")          /* ending what belongs to nobody takes number ms */           \
    X(HEAL, NONE, "heal")            /* no fault from here on */                                   \
    X(UPDATE, ALLOC, "update")       /* the server has a newer version of it and wants the same:   \
                                      * all that it may say is number times what the script does,  \
                                      * 0: whatever is drawn */                                    \
    X(REGISTER, JOB, "register")     /* a user wants the job, as version number */                 \
    X(COUNT, JOB, "count")           /* wants number allocs of each group */                       \
    X(TUNE, JOB, "tune")             /* wants what is taken in place to be number times as long */ \
    X(DEREGISTER, JOB, "deregister") /* wants it stopped */                                        \
    X(PURGE, JOB, "purge")           /* wants it forgotten */                                      \
    X(REPLACE, JOB, "replace")       /* stops its alloc of index number */                         \
    X(GC, NONE, "gc")                /* wants all removed that is over */                          \
    X(TORN_JOB, JOB, "torn_job")     /* the job as stored is zeroed */                             \
    X(NET_LOST, ALLOC, "net_lost")   /* its network namespace is unmounted */                      \
    X(COPY, NONE, "copy")            /* of the journal is made */                                  \
    X(OLDER, NONE, "older")          /* DOWN after SIGKILL, for number ms; the copy is put back */ \
    X(UNRENDERED, TASK, "unrendered") /* for number ms its templates cannot be written */          \
    X(TORN_SPEC, ALLOC, "torn_spec")  /* its specification is zeroed */                            \
    X(SHUTDOWN, NONE, "shutdown")     /* reboot in order: all are told to end before */            \
    X(RENEW, TASK, "renew") /* its token of that mode is signed again, by number: change_mode, and \
                             * three more: the daemon dies before it tells of it */                \
    X(SAYS, TASK, "says")   /* its driver says something of it */                                  \
    X(RECONNECT, ALLOC, "reconnect") /* the server did not know what it was, and hears of it */
enum sim_action {
#define X(name, takes, text) SIM_DO_##name,
    SIM_ACTIONS(X)
#undef X
        SIM_ACTION_COUNT,
};
const char *sim_action_name(unsigned action);
bool sim_action_names_one(unsigned action); /* its whom has a meaning */

enum sim_server {
    SIM_SERVER_UP,
    SIM_SERVER_DOWN,
    SIM_SERVER_BLACKHOLE,
    SIM_SERVER_STALE,
    SIM_SERVER_PARTIAL,
    SIM_SERVER_SLOW,
    SIM_SERVER_COUNT,
};
const char *sim_server_name(unsigned server);

/* A machine of the script: KIND and where it is in it. */
struct sim_whom {
    uint8_t kind;   /* enum machine_kind */
    int16_t alloc;  /* -1: of none (plugin) */
    int16_t member; /* task, claim or plugin; -1: the alloc itself */
};

enum sim_moment {
    SIM_AT,     /* at a time */
    SIM_BEFORE, /* before the commit that brings the machine into the state */
    SIM_AFTER,  /* after that commit, before its effects */
    SIM_THEN,   /* after the turn */
};

struct sim_step {
    uint64_t at_ms; /* SIM_AT */
    int64_t number; /* argument of the action */
    struct sim_whom when, whom;
    uint8_t moment, state, nth; /* the NTH time it comes into STATE */
    uint8_t action;
};

/* The NTH call (0: every) that EFFECT of WHOM makes meets FAULT; WHOM of kind MACHINE_KIND_COUNT:
 * the NTH commit does. */
struct sim_fate {
    struct sim_whom whom;
    uint8_t effect, fault;
    uint16_t nth;
    uint32_t ms; /* SLOW: how long */
};

/* --- what is expected --- */

/* What happens and is kept in mind, to be counted or put in order.
 *    name         about   detail  written         one each time that */
#define SIM_FACTS(X)                                                                               \
    X(STARTS, TASK, NONE, "starts")             /* a payload begins to run */                      \
    X(ENDS, TASK, NONE, "ends")                 /* a payload ends */                               \
    X(ENTERS, RECORD, STATE, "enters")          /* a commit brings it into the state */            \
    X(PERFORMS, RECORD, EFFECT, "performs")     /* the daemon begins the effect */                 \
    X(NOTES, TASK, NOTE, "notes")               /* users are shown the task event */               \
    X(TOLD, ALLOC, STATUS, "told")              /* the server is told the client status */         \
    X(DONE, RECORD, EVENT, "done")              /* a request was granted */                        \
    X(REFUSED, RECORD, EVENT, "refused")        /* a request was refused */                        \
    X(QUARANTINED, RECORD, NONE, "quarantined") /* its record cannot be read */                    \
    X(HUPS, TASK, NONE, "hups")                 /* a payload gets a signal for its templates */    \
    X(SCRIPTS, TASK, NONE, "scripts")           /* a script of its templates begins in it */       \
    X(DAEMONS, NONE, NONE, "daemons")           /* the daemon starts */
enum sim_fact_kind {
#define X(name, about, detail, text) SIM_FACT_##name,
    SIM_FACTS(X)
#undef X
        SIM_FACT_COUNT,
};

struct sim_fact {
    struct sim_whom whom;
    uint8_t kind, detail;
};

/* What is asked at the end.
 *    name    about    written     answer */
#define SIM_QUESTIONS(X)                                                                           \
    X(COUNT, NONE, "")           /* FACT [at_most | at_least] NUMBER [since INCARNATION] */        \
    X(ORDER, NONE, "first")      /* FACT then FACT */                                              \
    X(STATE, RECORD, "state")    /* a state, "absent": no record */                                \
    X(EXIT, TASK, "exit")        /* the last payload's code as reported (128 + a signal),          \
                                  * "unknown" */                                                   \
    X(STATUS, ALLOC, "status")   /* client status, as the server knows it if there is one */       \
    X(HEALTH, ALLOC, "health")   /* unknown, healthy, unhealthy */                                 \
    X(ALIVE, TASK, "alive")      /* yes, no: processes of it */                                    \
    X(MOUNTED, CLAIM, "mounted") /* yes, no */                                                     \
    X(STAGED, CLAIM, "staged")   /* yes, no */                                                     \
    X(CLAIMED, CLAIM, "claimed") /* yes, no: at the server */                                      \
    X(LIVE, JOB, "live")         /* allocs of it that have not ended and are not told to */        \
    X(KEPT, JOB, "kept")         /* allocs of it that have ended */                                \
    X(JOB, JOB, "job")           /* the version that is stored, -1: none */
enum sim_question {
#define X(name, about, text) SIM_ASKS_##name,
    SIM_QUESTIONS(X)
#undef X
        SIM_QUESTION_COUNT,
};

enum sim_relation { SIM_EXACTLY, SIM_AT_MOST, SIM_AT_LEAST };

/* Judged when the healed world has settled, before all is told to go. */
struct sim_expect {
    struct sim_fact fact, then; /* COUNT, ORDER; others: fact.whom is who is asked about */
    int64_t number;             /* a count, state, code or status; 1: yes; -1: absent, unknown */
    uint8_t question, relation, since;
    uint8_t always; /* true with whatever crash points are added, too */
};

/* What happened to a node between its journal's last event and the restart that a world begins
 * with (start.h). */
enum sim_away {
    SIM_AWAY_NOTHING, /* payloads run on */
    SIM_AWAY_EXITS,   /* every payload has ended by itself */
    SIM_AWAY_REBOOT,  /* the host was booted */
    SIM_AWAY_DRAWN,   /* by the seed, for each payload, shim, plugin and mount */
    SIM_AWAY_COUNT,
};

/* Of fate_of_cut. */
enum { SIM_CUT_FATES = 3 };
extern const char *const sim_cut_words[SIM_CUT_FATES];

struct sim_start;
struct sim_script {
    uint64_t seed;                   /* of latencies, jitters and drawn fates */
    uint64_t heal_ms;                /* when all faults end */
    uint16_t rates[SIM_FAULT_COUNT]; /* of 1024: drawn fates of calls and commits */
    uint8_t server;                  /* 1: a server decides, 0: stand-alone */
    uint8_t latency;                 /* 0: each call takes 1 ms, 1: drawn */
    uint8_t batching;                /* 0: a turn for each thing that happens, 1: drawn */
    uint8_t fate_of_cut;             /* work under way at a crash: 0 drawn, 1 happens, 2 does not */
    const struct sim_start *start;   /* a journal: whose machines are meant; NULL: those below */
    uint8_t away;                    /* a world from a journal: enum sim_away */
    uint32_t cut_down_ms;            /* and for how long */
    uint8_t varied;                  /* crashes were added: only what is `always` so is judged */
    uint32_t cuts[SIM_CUTS_MAX];     /* crash point at which the n-th incarnation dies, 0: none */
    uint8_t allocs_count, plugins_count, steps_count, fates_count, expects_count;
    uint8_t jobs_count; /* 0: allocs are given to the core by hand */
    uint8_t kept;       /* ended allocs, by the control plane */
    uint16_t log_max;   /* events that the journal's log keeps, 0: drawn */
    struct sim_job jobs[SIM_JOBS_MAX];
    struct sim_alloc allocs[SIM_ALLOCS_MAX];
    struct sim_plugin plugins[SIM_PLUGINS_MAX];
    struct sim_step steps[SIM_STEPS_MAX];
    struct sim_fate fates[SIM_FATES_MAX];
    struct sim_expect expects[SIM_EXPECTS_MAX];
};

/* --- text form --- */

/* Reads TEXT; ERR_INVALID names the line. */
int sim_script_read(const char *text, struct sim_script *ret_script, struct err *err);
void sim_script_print(const struct sim_script *script, fsm_print *print, void *ctx);

/* The task that is the process of PLUGIN; false: the plugin has one of its own. */
bool sim_plugin_task(const struct sim_script *script, int plugin, struct sim_whom *ret_task);

/* The name of a machine or job, "a/main". */
void sim_whom_name(const struct sim_script *script, const struct sim_whom *whom, char *to,
                   size_t size);
struct machine_id sim_whom_id(const struct sim_script *script, const struct sim_whom *whom);

/* A task, alloc or plugin with the defaults of the text form. */
struct sim_task sim_task_default(const char *name);
struct sim_alloc sim_alloc_default(const char *name);

/* --- from a seed --- */

enum sim_profile { SIM_SMALL, SIM_LARGE, SIM_CONTROL };
void sim_draw(uint64_t seed, enum sim_profile profile, struct sim_script *ret_script);

#endif
