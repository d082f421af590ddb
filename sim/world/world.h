/*
 * The simulated world from the inside.  Private to sim/.
 *
 * Time is one number, the milliseconds since the world began.  What will happen is a heap ordered
 * by (time, sequence); chance is a hash of the script's seed and of what it is drawn for, so that
 * taking one thing out of a script leaves the luck of all others as it was.
 */
#ifndef CAIRN_SIM_WORLD_WORLD_H
#define CAIRN_SIM_WORLD_WORLD_H

#include "core/life.h"
#include "core/replay.h"
#include "sim/script/started.h"
#include "sim/sim.h"

#include <setjmp.h>

enum {
    SIM_EFFECTS_MAX = 16, /* of one machine */
    SIM_FACTS_MAX = 8192, /* kept in mind for what a story expects */
    SIM_UNIX_BASE_S = 1700000000,
    SIM_FIRST_BOOT = 1, /* also of a journal to begin from */
};

/* --- what will happen --- */

enum sim_event_kind {
    SE_STEP,     /* a step of the script; index: which */
    SE_START,    /* the daemon is started */
    SE_CALL,     /* a call gets on; index: call, stamp: its serial */
    SE_SPAWN,    /* a shim starts its payload; index: attempt */
    SE_EXIT,     /* a payload ends; stamp: the attempt's epoch */
    SE_KILL,     /* a shim's kill timeout */
    SE_RECORD,   /* a shim writes the exit record */
    SE_SHIM_END, /* and ends */
    SE_WATCH,    /* the daemon's driver sees an end; stamp: incarnation */
    SE_SWEEP,    /* the driver destroys what nobody owns; stamp: incarnation */
    SE_SWEPT,    /* and has done so; stamp: incarnation */
    SE_USER,     /* a user, or the stand-alone control plane, tries again; index: alloc */
    SE_POLL,     /* the client asks the server; stamp: incarnation */
    SE_ANSWER,   /* the server has answered; stamp: incarnation */
    SE_PUSH,     /* the client reports statuses; stamp: incarnation */
    SE_ACK,      /* the server has taken them; stamp: incarnation */
};

struct sim_event {
    uint64_t at_ms;
    uint32_t sequence;
    uint32_t stamp;
    uint32_t index;
    uint8_t kind;
};

/* --- the journal --- */

struct sim_stored {
    struct machine_id id;
    struct machine *record; /* its bytes, as committed */
    uint32_t size, room;
    uint64_t digest; /* of the bytes, to see damage */
    bool damaged;    /* since it was stored */
};

struct sim_node {
    uint64_t boot, clock_offset_ms;
};

struct sim_store {
    struct sim_stored **items; /* in order of kind and id */
    struct sim_stored **spare; /* to be used again */
    size_t count, spare_count, room;
    uint64_t next_sequence, turn;
    uint64_t last_now_ms; /* of the newest event */
    int64_t last_unix_ns;
    uint64_t last_at_ms; /* and of the world, then */
    int64_t last_jump_ms;
    struct sim_node node;  /* meta: as the node stored it, boot 0: never */
    uint64_t server_index; /* meta: of the newest desired state that was applied */
};

/* --- processes --- */

enum sim_shim { SHIM_NONE, SHIM_STARTING, SHIM_ALIVE, SHIM_ENDED };
enum sim_payload { PAYLOAD_NOT_STARTED, PAYLOAD_RUNNING, PAYLOAD_ENDED };
/* The task's file: made and locked by the daemon, marked by the shim before a payload can be. */
enum sim_mark { MARK_NONE, MARK_FILE, MARK_BEGUN };
enum sim_record { RECORD_NONE, RECORD_ENDED, RECORD_NOT_STARTED };

/* What exists under one key (alloc, task, generation), and what has. */
struct sim_attempt {
    uint32_t generation;
    uint32_t epoch;      /* of the payload's timers */
    uint32_t starts;     /* of the payload: never more than one */
    uint32_t reported;   /* incarnation that was told RUNNING and is owed the end */
    uint32_t said;       /* incarnation that was told of the end */
    uint64_t boot;       /* in which it was begun */
    uint64_t kill_at_ms; /* shim: 0 is no stop asked for */
    int64_t finished_unix_ns;
    struct started process;
    int32_t code, signal; /* how the payload ended, in truth */
    int32_t next;         /* older attempt of the task, -1: none */
    int16_t alloc, task;
    uint8_t mark; /* enum sim_mark: how far a start under this key got */
    uint8_t shim, payload, record;
    uint8_t descendants; /* what the payload left in its cgroup lives */
    uint8_t fork_fault, exec_fault, record_lost;
    uint8_t told;    /* its end is in the journal */
    uint8_t written; /* its exit record was there, and not removed by one who had told of it */
    uint8_t term_sent;
    uint8_t by_boot;  /* a reboot ended it */
    uint8_t answered; /* the core was told that it runs, or ran */
};

/* --- calls --- */

/* Stages of a simple call; driver calls have their own (process.c). */
enum sim_stage { STAGE_APPLY, STAGE_ANSWER };

struct sim_call {
    struct sim_whom whom;
    uint32_t serial, incarnation, generation;
    uint64_t limit_ms; /* when whoever bounds it reports a timeout */
    uint32_t latency_ms;
    uint8_t used;
    uint8_t lane, effect, fault, stage;
    uint8_t phase, hook; /* of a hook */
    uint8_t answered;    /* or nobody is left to be answered */
    uint8_t apply_left;  /* its work in the world is still to come */
    uint8_t untouched;   /* recover: nothing was there when we began to look */
    uint8_t hard;        /* it failed, and trying again will not help */
    int32_t code;        /* what became of it, ERR_* */
    const char *text;    /* and why */
};

/* --- what there is --- */

/* What a task has used of its restart policy. */
struct sim_tries {
    uint64_t begun_ms;    /* node time: the interval */
    uint64_t again_at_ms; /* node time: not before */
    uint32_t used;        /* in the interval */
    uint32_t asked;       /* generation that somebody asked to be restarted */
    bool known;           /* since it was defined */
};

struct sim_task_state {
    struct machine_id id;
    const struct sim_task *plan;
    const struct task *past; /* a world from a journal: its record there, if it can be read */
    uint32_t past_hooks;     /* prestart hooks that had run by then */
    int32_t newest;          /* attempt, -1: none */
    uint8_t directory;       /* its directory is there */
    uint8_t dead;            /* it was dead once */
    uint8_t hooked;          /* the attempt under way has had its hooks */
    uint32_t prestarted;     /* prestart hooks that have run since the last start */
    uint32_t stopped;        /* stop hooks that were begun */
    struct sim_tries tries;
    uint64_t first_results; /* digest of the hooks' results at the first start, 0: none yet */
    uint32_t entered[T_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
};

struct sim_claim_state {
    struct machine_id id;
    uint16_t plugin, disk; /* where in the world's */
    uint8_t exclusive;     /* the server lets nobody else have it */
    uint8_t mounted;
    uint8_t held;     /* the server's claim */
    uint8_t snatched; /* somebody else unmounted it */
    uint64_t made_turn;
    uint64_t busy_until_ms;
    uint32_t entered[V_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
};

enum sim_wish { WISH_NONE, WISH_RUN, WISH_STOP, WISH_GONE };

struct sim_alloc_state {
    struct machine_id id;
    const struct sim_alloc *plan; /* of the group; its members have their own */
    struct sim_task_state *tasks; /* among the world's */
    struct sim_claim_state *claims;
    uint16_t tasks_count, claims_count;
    uint16_t after;    /* alloc to wait for + 1, 0: none */
    uint8_t specified; /* "alloc/<id>" is in the journal */
    const char *spec;  /* a world from a journal: what it says, NULL if it cannot be read */
    size_t spec_length;
    uint8_t wish;     /* of the control plane: enum sim_wish */
    uint8_t accepted; /* the node has said so: it must not be lost */
    uint8_t directory;
    uint8_t torn;    /* postrun hooks that have succeeded */
    uint8_t ended;   /* it was terminal once */
    uint8_t gone;    /* it was removed */
    uint8_t follows; /* the alloc it waits for was there when it came */
    uint8_t damaged; /* a record of it was, so promises about it are off */
    uint32_t fresh;  /* incarnation that has applied a fresh desired state to it */
    uint32_t entered[A_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
    /* As the server knows it. */
    uint64_t wished_index[WISH_GONE + 1]; /* at which it came to wish so, 0: never */
    uint64_t updated_index;               /* of its newest version, 0: there is one only */
    uint64_t offered_index, seen_index;   /* of the version the node is told, has applied */
    uint8_t reported_status;
    uint64_t pushed_digest, pushed_revision, confirmed_digest, acked_digest;
};

struct sim_plugin_state {
    struct machine_id id;
    const struct plugin *past; /* as of a task */
    uint8_t stages;
    uint8_t alive, removed;
    uint8_t stop_asked;
    uint32_t launched; /* newest generation that was, since it was defined */
    uint32_t generation;
    uint64_t boot;
    uint32_t entered[P_COUNT];
    uint16_t calls[SIM_EFFECTS_MAX]; /* made so far, by effect */
};

struct sim_disk_state {
    uint16_t plugin, number;          /* the number of it among its plugin's */
    const struct volume_define *past; /* a world from a journal: what claims on it say */
    uint8_t staged;
    uint8_t calls; /* of this incarnation, under way */
};

enum sim_request_state { REQUEST_OPEN, REQUEST_DONE, REQUEST_REFUSED, REQUEST_LOST };

struct sim_request {
    struct sim *sim;
    struct sim_whom whom;
    uint8_t event, state;
    uint32_t incarnation;
};

/* What happened, and in which incarnation. */
struct sim_noted {
    struct sim_fact fact;
    uint32_t incarnation;
};

struct sim {
    const struct sim_script *script;
    const struct sim_start *start; /* journal to begin from, or NULL */
    fsm_print *print;
    void *print_ctx;
    struct sim_result *result;
    jmp_buf failed; /* an assertion comes back here */

    uint64_t now_ms;
    uint64_t boot_at_ms, boot; /* this boot's beginning and number */
    uint64_t uptime_ms;        /* of the host at that time */
    int64_t jump_ms;           /* of the wall clock */
    struct sim_event *heap;
    size_t heap_count, heap_room;
    uint32_t heap_sequence;

    struct sim_store store;
    struct journal *sink;                /* commits go there, too; NULL: nowhere */
    uint32_t sink_incarnations;          /* of so many incarnations, 0: of all */
    uint64_t first_sequence, first_turn; /* what the world's own events begin at */
    struct replay *replay;

    /* The daemon.  What is here dies with it. */
    struct life *life;
    struct core *core;    /* of the life */
    uint32_t incarnation; /* 1, 2, ... */
    bool up, dying, restored, in_turn;
    bool commit_failed;       /* that of the turn under way, or of the last one */
    bool term;                /* it was told to stop, orderly */
    uint64_t clock_offset_ms; /* node time - time since boot */
    uint64_t restored_at_ms;
    uint64_t down_ms; /* for how long it will be away when it has died */
    bool rebooting;
    bool first_answer; /* the server has answered this incarnation */
    bool pushing;
    uint64_t poll_at_ms; /* when the client asks next */

    /* What there is; its size is decided when the world begins. */
    struct sim_alloc_state *allocs;
    struct sim_task_state *tasks;
    struct sim_claim_state *claims;
    struct sim_plugin_state *plugins;
    struct sim_disk_state *disks;
    int allocs_count, tasks_count, claims_count, plugins_count, disks_count;
    struct sim_whom *names; /* by digest of the id */
    size_t names_max;       /* a power of two */
    struct sim_attempt *attempts;
    size_t attempts_count, attempts_max;
    struct sim_call *calls; /* under way, late, or free; all below calls_free are not */
    size_t calls_count, calls_free, calls_max;
    uint32_t calls_made, calls_awaited; /* awaited: by this incarnation */
    struct sim_request *requests;
    uint32_t requests_count, requests_max; /* token = number + 1, modulo the size */
    void *room;                            /* of all these arrays, kept for the next world */
    size_t room_bytes;
    int32_t next_pid;

    /* The server. */
    uint8_t server; /* enum sim_server */
    uint64_t server_index;

    /* Faults. */
    bool healed, draining;
    int unsettled; /* alloc that was found so last */
    uint64_t quiet_since_ms;
    uint32_t points; /* crash points that this incarnation has passed */
    uint32_t commits_to_fail;
    uint32_t commits;
    struct sim_fate met[SIM_FATES_MAX]; /* drawn or scripted; cut at the bound */
    size_t met_count;
    uint32_t turns;
    uint64_t deliveries, deliveries_max;
    bool over;

    /* What a story expects (expect.c). */
    struct sim_noted *facts;
    size_t facts_count;
    bool stepped[SIM_STEPS_MAX], struck[SIM_FATES_MAX]; /* they have come about */

    /* Attempts whose end the batch under way reports; at most one of each task. */
    struct sim_attempt **ending;
    size_t ending_count;
};

static inline struct sim_alloc_state *sim_alloc_of(const struct sim *sim,
                                                   const struct sim_whom *whom)
{
    check(whom->alloc >= 0 && whom->alloc < sim->allocs_count);
    return &sim->allocs[whom->alloc];
}

static inline struct sim_task_state *sim_task_of(const struct sim *sim, const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);

    check(whom->kind == MACHINE_TASK && whom->member >= 0 && whom->member < alloc->tasks_count);
    return &alloc->tasks[whom->member];
}

static inline struct sim_claim_state *sim_claim_of(const struct sim *sim,
                                                   const struct sim_whom *whom)
{
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);

    check(whom->kind == MACHINE_VOLUME && whom->member >= 0 && whom->member < alloc->claims_count);
    return &alloc->claims[whom->member];
}

static inline struct sim_plugin_state *sim_plugin_of(const struct sim *sim,
                                                     const struct sim_whom *whom)
{
    check(whom->kind == MACHINE_PLUGIN && whom->member >= 0 && whom->member < sim->plugins_count);
    return &sim->plugins[whom->member];
}

static inline struct sim_disk_state *sim_disk_of(const struct sim *sim, const struct sim_whom *whom)
{
    return &sim->disks[sim_claim_of(sim, whom)->disk];
}

/* --- plan.c: what there is, and who is who --- */

/* Makes everything that the script names, or the journal to begin from, as it is before the first
 * start. */
void sim_plan(struct sim *sim);

/* Where ID is in this world; kind MACHINE_KIND_COUNT if it is not of it. */
struct sim_whom sim_find(const struct sim *sim, const struct machine_id *id);
const struct machine_id *sim_id(const struct sim *sim, const struct sim_whom *whom);
/* As scripts call it. */
const char *sim_name(const struct sim *sim, const struct sim_whom *whom);
const struct machine *sim_record(const struct sim *sim, const struct sim_whom *whom);

/* --- chance --- */

enum {
    LUCK_LATENCY = 1,
    LUCK_FATE,
    LUCK_COMMIT,
    LUCK_BATCH,
    LUCK_CUT,
    LUCK_SPLIT,
    LUCK_SEED,
    LUCK_MARK,
    LUCK_BEGIN
};

/* --- begin.c: from a journal --- */

/* Makes journal, host and clocks as sim->start says. */
void sim_begin(struct sim *sim);

/* --- time.c: chance, the story, time, names --- */

/* A number that depends on the seed and on what it is drawn for. */
uint64_t sim_chance(const struct sim *sim, uint64_t what, uint64_t which, uint64_t nth);
uint64_t sim_below(uint64_t chance, uint64_t bound);

void sim_later(struct sim *sim, uint64_t delay_ms, enum sim_event_kind kind, size_t index,
               uint32_t stamp);
int64_t sim_unix_ns(const struct sim *sim);
uint64_t sim_node_ms(const struct sim *sim);
uint64_t sim_since_boot_ms(const struct sim *sim);

void sim_say(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_mix(struct sim *sim, uint64_t value);
void sim_count_fault(struct sim *sim, enum sim_fault fault);
/* A call or commit meets a fate; what was met so far stays in sim->met, for shrinking. */
void sim_note_fate(struct sim *sim, const struct sim_fate *fate);

/* Keeps in mind that WHOM (NULL: nobody) did what the fact says, if a story expects something. */
void sim_fact(struct sim *sim, enum sim_fact_kind kind, const struct sim_whom *whom,
              unsigned detail);

/* The first of what will happen, taken out; there must be one. */
struct sim_event sim_next(struct sim *sim);

/* --- step.c: steps of the script --- */

/* sim->stepped says whether it came about. */
void sim_do_step(struct sim *sim, const struct sim_step *step);
/* Steps that wait for a transition among EVENTS, before (SIM_BEFORE) or after (SIM_AFTER) their
 * commit. */
void sim_watch_transitions(struct sim *sim, const struct journal_event *events, size_t count,
                           enum sim_moment moment);
void sim_heal(struct sim *sim);

/* --- dying.c --- */

/* A place at which the daemon may die.  True if it does: nothing more happens in it. */
bool sim_point(struct sim *sim, enum sim_fault kind);

/* The daemon dies before it does anything else, for DOWN_MS. */
void sim_die(struct sim *sim, uint64_t down_ms);

/* --- store.c: the journal in memory --- */

void sim_store_reset(struct sim *sim);
/* Stores RECORD, or, if it is NULL, something that cannot be read. */
void sim_store_put(struct sim_store *store, const struct machine_id *id,
                   const struct machine *record);
void sim_store_free(struct sim_store *store);
int sim_store_commit(void *ctx, const struct journal_batch *batch, struct err *err);
/* The record as it was stored, NULL if there is none or it was damaged. */
const struct machine *sim_store_find(const struct sim_store *store, const struct machine_id *id);
bool sim_store_has(const struct sim_store *store, const struct machine_id *id);
/* False: there is no such record. */
bool sim_store_damage(struct sim *sim, const struct sim_whom *whom, enum sim_fault how);
/* False: damage has come over it. */
bool sim_store_is_sound(const struct sim_stored *item);
void sim_store_drop(struct sim_store *store, const struct machine_id *id);

/* --- journal.c: the same as a life sees it --- */

struct store sim_store_of(struct sim *sim);

/* --- write.c: the same journal in a directory --- */

/* What is stored, if it is to be written: a commit, the node's identity at its first start, a
 * record that was put aside. */
void sim_write(struct sim *sim, const struct journal_batch *batch);
void sim_write_identity(struct sim *sim);
void sim_write_quarantine(struct sim *sim, const struct machine_id *id);

/* --- perform.c: effects --- */

void sim_perform(void *ctx, const struct effect *effect);
void sim_call_event(struct sim *sim, const struct sim_event *event);
/* The daemon has died: calls of it are answered to nobody, their work may still happen. */
void sim_calls_cut(struct sim *sim);

/* --- call.c: calls under way --- */

struct sim_call *sim_call_new(struct sim *sim, const struct effect *effect,
                              const struct sim_whom *whom);
/* One that the plugin of a volume works on. */
bool sim_is_node_call(const struct sim_call *call);
void sim_call_fail(struct sim_call *call, int code, bool hard, const char *text);
/* Whoever made CALL has its answer, or is not there any more. */
void sim_call_end(struct sim *sim, struct sim_call *call);
/* Ends CALL with the machine's completion EVENT. */
void sim_call_done(struct sim *sim, struct sim_call *call, uint8_t event, const void *payload);
/* CALL gets on at STAGE after DELAY_MS. */
void sim_call_again(struct sim *sim, struct sim_call *call, uint64_t delay_ms, unsigned stage);
/* Nobody waits for CALL, and nothing of it is left to be done. */
void sim_call_free(struct sim *sim, struct sim_call *call);
void sim_call_free_if_over(struct sim *sim, struct sim_call *call);
struct failure sim_failure(int code, bool recoverable, const char *text);

/* --- attempt.c: what exists under the keys of tasks --- */

struct sim_attempt *sim_attempt(struct sim *sim, int alloc, int task, uint32_t generation);
struct sim_attempt *sim_attempt_of(struct sim *sim, const struct sim_call *call);
struct sim_attempt *sim_attempt_new(struct sim *sim, const struct sim_whom *whom,
                                    uint32_t generation);
size_t sim_attempt_number(const struct sim *sim, const struct sim_attempt *attempt);
const struct sim_task *sim_attempt_plan(const struct sim *sim, const struct sim_attempt *attempt);
const struct machine_id *sim_attempt_id(const struct sim *sim, const struct sim_attempt *attempt);
bool sim_attempt_lives(const struct sim_attempt *attempt);
/* Anything of the attempt, dead or alive, is still there. */
/* A payload may have been started, or may be yet. */
bool sim_attempt_was_begun(const struct sim_attempt *attempt);
bool sim_attempt_exists(const struct sim_attempt *attempt);
bool sim_alloc_lives(const struct sim *sim, int alloc);
void sim_processes_reboot(struct sim *sim);
/* Nothing of it is left: its directory is removed. */
void sim_attempt_remove(struct sim_attempt *attempt);
/* For what a story expects. */
void sim_attempt_note(struct sim *sim, enum sim_fact_kind kind, const struct sim_attempt *attempt);
/* The identity of a payload and shim that are made now. */
struct started sim_process_new(struct sim *sim);

/* --- process.c: shims and payloads --- */

void sim_driver_begin(struct sim *sim, struct sim_call *call, const struct effect *effect);
void sim_driver_event(struct sim *sim, struct sim_call *call);
void sim_driver_signal(struct sim *sim, const struct effect *effect);
void sim_process_event(struct sim *sim, const struct sim_event *event);
void sim_sweep(struct sim *sim);
void sim_shim_die(struct sim *sim, struct sim_attempt *attempt);
void sim_payload_end(struct sim *sim, struct sim_attempt *attempt, int32_t code, int32_t signal);

/* --- node.c: hooks, plugins, mounts, claims --- */

/* The work of CALL in the world; sets its code. */
void sim_apply(struct sim *sim, struct sim_call *call);
/* Tells the core what became of CALL. */
void sim_answer(struct sim *sim, struct sim_call *call);
/* What CALL finds as it begins: a server that is away, an operation that is pending. */
void sim_meet(struct sim *sim, struct sim_call *call);
void sim_plugin_die(struct sim *sim, int plugin);
void sim_node_reboot(struct sim *sim);

/* --- control.c: server, users, the client's end of it --- */

void sim_control_event(struct sim *sim, const struct sim_event *event);
void sim_control_start(struct sim *sim);
void sim_control_refused(struct sim *sim); /* a commit failed, and proposals with it */
void sim_wish(struct sim *sim, int alloc, enum sim_wish wish);
/* There is a newer version of the alloc, in which nothing is wished anew. */
void sim_update(struct sim *sim, int alloc);
void sim_ask(struct sim *sim, const struct sim_whom *whom, uint8_t event);
void sim_status_changed(struct sim *sim);

/* --- give.c: what the core is told of allocs and plugins --- */

void sim_give(struct sim *sim, int alloc);
void sim_define_plugins(struct sim *sim);
void sim_known(void *ctx, const char *alloc, struct alloc_assign *assign);
bool sim_claim_known(void *ctx, const char *alloc, const char *name,
                     struct volume_define *ret_define);

/* --- violate.c --- */

/* The first violation stands and ends the world.  INVARIANT 0: by the words of TEXT alone. */
void sim_violate(struct sim *sim, unsigned invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_stuck(struct sim *sim, unsigned invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- check.c: the invariants --- */

void sim_check_batch(struct sim *sim, const struct journal_batch *batch); /* not yet stored */
void sim_check_turn(struct sim *sim);
void sim_check_loaded(struct sim *sim);
void sim_check_memory(struct sim *sim); /* journal, replay and memory are the same */
void sim_check_start(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);
void sim_check_payload(struct sim *sim, const struct sim_attempt *attempt);
void sim_check_effect(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);
void sim_check_exit(struct sim *sim, struct sim_attempt *attempt, const struct exited *exited);
void sim_check_push(struct sim *sim, int alloc, uint64_t digest, uint8_t status);

/* The record of ID that BATCH stores, NULL if it stores none.  Records are stored in the order of
 * their first events, so the next one is mostly wanted next; AT is where the last one was. */
const struct machine *sim_new_record(const struct journal_batch *batch, const struct machine_id *id,
                                     size_t *at);

/* --- check_commit.c: a batch that has been committed --- */

void sim_check_committed(struct sim *sim, const struct journal_batch *batch);

/* --- check_tries.c: the restart policy --- */

/* EVENT has been committed, and with it TASK. */
void sim_check_tries(struct sim *sim, const struct sim_whom *whom,
                     const struct journal_event *event, const struct task *task);
/* A start is performed. */
void sim_check_again(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);

/* --- check_group.c: between the tasks of an alloc --- */

void sim_check_order(struct sim *sim, const struct sim_attempt *attempt); /* a payload begins */
void sim_check_stop(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);
/* Why the group of alloc A has to end, or NULL. */
const char *sim_group_over(const struct sim *sim, int a);
/* It has ended: what it looks like from outside. */
void sim_check_outcome(struct sim *sim, const struct sim_whom *whom, const struct alloc *alloc);

/* --- expect.c: what a story expects --- */

void sim_judge(struct sim *sim);

/* --- settle.c: liveness --- */

bool sim_is_settled(struct sim *sim);
void sim_check_settled(struct sim *sim);
bool sim_is_empty(struct sim *sim);
void sim_check_empty(struct sim *sim);

#endif
