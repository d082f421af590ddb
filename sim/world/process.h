/* Shims and payloads: what exists under the keys of tasks, and the driver's calls on it. */
#ifndef CAIRN_SIM_WORLD_PROCESS_H
#define CAIRN_SIM_WORLD_PROCESS_H

#include "core/core.h"
#include "sim/script/script.h"
#include "sim/world/time.h"

struct sim;
struct sim_call;

/* What a payload ends by, and its exit code is more by SIGNAL_BASE. */
enum { SIGTERM_NUMBER = 15, SIGKILL_NUMBER = 9, SIGNAL_BASE = 128 };

enum sim_shim { SHIM_NONE, SHIM_STARTING, SHIM_ALIVE, SHIM_ENDED };
enum sim_payload { PAYLOAD_NOT_STARTED, PAYLOAD_RUNNING, PAYLOAD_ENDED };
/* The task's file: made and locked by the daemon, marked by the shim before a payload can be. */
enum sim_mark { MARK_NONE, MARK_FILE, MARK_BEGUN };
enum sim_record { RECORD_NONE, RECORD_ENDED, RECORD_NOT_STARTED, RECORD_NOT_MOUNTED };

/* What exists under one key (alloc, task, generation), and what has. */
struct sim_attempt {
    uint32_t generation;
    uint32_t epoch;      /* of the payload's timers */
    uint32_t starts;     /* of the payload: never more than one */
    uint32_t reported;   /* incarnation that was told RUNNING and is owed the end */
    uint32_t said;       /* incarnation that was told of the end */
    uint64_t boot;       /* in which it was begun */
    uint64_t kill_at_ms; /* shim: 0 is no stop asked for */
    uint64_t began_ms;   /* when the payload began to run, 0: before the world did */
    int64_t finished_unix_ns;
    struct started process;
    int32_t code, signal; /* how the payload ended, in truth */
    int32_t next;         /* older attempt of the task, -1: none */
    int16_t alloc, task;
    uint8_t mark; /* enum sim_mark: how far a start under this key got */
    uint8_t shim, payload, record;
    uint8_t descendants; /* what the payload left in its cgroup lives */
    uint8_t fork_fault, exec_fault, record_lost;
    uint8_t forgotten; /* an older journal came back: its number may be used again */
    uint8_t unfit;     /* its record said that it could not be started */
    uint8_t blind;     /* looks for it that failed, one after the other */
    uint8_t told;      /* its end is in the journal */
    uint8_t written;   /* its exit record was there, and not removed by one who had told of it */
    uint8_t term_sent;
    uint32_t hup;      /* the number of the last signal for its templates */
    uint8_t by_boot;   /* a reboot ended it */
    uint8_t with_host; /* in order: its shim says so */
    uint8_t answered;  /* the core was told that it runs, or ran */
};

struct sim_attempts {
    struct sim_attempt *items;
    size_t count, max;
    int32_t next_pid;
    /* Those whose end the batch under way reports; at most one of each task. */
    struct sim_attempt **ending;
    size_t ending_count;
};

/* --- attempt.c --- */

/* The exit code of the end that is planned. */
int32_t sim_planned_code(const struct sim_task *plan);
struct sim_attempt *sim_attempt(struct sim *sim, int alloc, int task, uint32_t generation);
struct sim_attempt *sim_attempt_of(struct sim *sim, const struct sim_call *call);
struct sim_attempt *sim_attempt_new(struct sim *sim, const struct sim_whom *whom,
                                    uint32_t generation);
size_t sim_attempt_number(const struct sim *sim, const struct sim_attempt *attempt);
const struct sim_task *sim_attempt_plan(const struct sim *sim, const struct sim_attempt *attempt);
const struct machine_id *sim_attempt_id(const struct sim *sim, const struct sim_attempt *attempt);
/* Nobody could look at it. */
bool sim_attempt_is_given_up(const struct sim_attempt *attempt, const struct task *task);
bool sim_attempt_lives(const struct sim_attempt *attempt);
/* A payload may have been started, or may be yet. */
bool sim_attempt_was_begun(const struct sim_attempt *attempt);
/* Anything of the attempt, dead or alive, is still there. */
bool sim_attempt_exists(const struct sim_attempt *attempt);
bool sim_alloc_lives(const struct sim *sim, int alloc);
/* All are told to end, and do. */
void sim_processes_shutdown(struct sim *sim);
void sim_processes_reboot(struct sim *sim);
/* Nothing of it is left: its directory is removed. */
void sim_attempt_remove(struct sim_attempt *attempt);
/* For what a story expects. */
void sim_attempt_note(struct sim *sim, enum sim_fact_kind kind, const struct sim_attempt *attempt);
/* The identity of a payload and shim that are made now. */
struct started sim_process_new(struct sim *sim);

/* --- process.c --- */

/* One that is made here: of a task, and no hook. */
bool sim_is_driver_call(const struct sim_call *call);
void sim_driver_begin(struct sim *sim, struct sim_call *call, const struct effect *effect);
void sim_driver_event(struct sim *sim, struct sim_call *call);
void sim_driver_signal(struct sim *sim, const struct effect *effect);
void sim_process_event(struct sim *sim, const struct sim_event *event);
void sim_sweep(struct sim *sim);
void sim_shim_die(struct sim *sim, struct sim_attempt *attempt);
void sim_payload_end(struct sim *sim, struct sim_attempt *attempt, int32_t code, int32_t signal);

/* --- plugins --- */

struct sim_plugin_state;

/* It can be called; one that is a task lives as long as its payload. */
bool sim_plugin_lives(const struct sim *sim, const struct sim_plugin_state *plugin);
/* Its process is a task, whose end its machine hears of. */
bool sim_plugin_is_task(const struct sim_plugin_state *plugin);
/* As csi/plugins/: which of all that serve the same is called. */
int sim_plugin_called(const struct sim *sim, uint16_t plugin);
/* One of all that serve the same lives. */
bool sim_plugin_is_served(const struct sim *sim, uint16_t plugin);
void sim_plugin_die(struct sim *sim, int plugin);

#endif
