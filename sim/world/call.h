/* Calls under way: what effects of the core become, and what surrounds payloads answers. */
#ifndef CAIRN_SIM_WORLD_CALL_H
#define CAIRN_SIM_WORLD_CALL_H

#include "core/core.h"
#include "fsm/csi.h"
#include "sim/script/script.h"
#include "sim/world/time.h"

struct sim;
struct sim_claim_state;

/* Stages of a simple call; driver calls have their own (process.c). */
enum sim_stage { STAGE_APPLY, STAGE_ANSWER };

enum { SIM_DISK_OWNERS_MAX = 16 }; /* enough for the few that a world has in one place */

struct sim_call {
    struct sim_whom whom;
    uint32_t serial, incarnation, generation;
    uint64_t limit_ms; /* when whoever bounds it reports a timeout */
    uint32_t latency_ms;
    uint8_t used;
    uint8_t lane, effect, fault, stage;
    uint8_t phase, hook;                 /* of a hook */
    int16_t owners[SIM_DISK_OWNERS_MAX]; /* of the disk it takes over: allocs, -1: no more */
    uint8_t answered;                    /* or nobody is left to be answered */
    uint8_t apply_left;                  /* its work in the world is still to come */
    uint8_t untouched;                   /* recover: nothing was there when we began to look */
    uint8_t hard;                        /* it failed, and trying again will not help */
    uint8_t verdict;                     /* of a call to a plugin that failed: enum csi_verdict */
    int16_t server;                      /* of a call to a plugin: the instance that works on it */
    int32_t code;                        /* what became of it, ERR_* */
    const char *text;                    /* and why */
};

struct sim_calls {
    struct sim_call *items; /* under way, late, or unused; all below FREE are not */
    size_t count, free, max;
    uint32_t made, awaited; /* awaited: by this incarnation */
};

/* --- call.c: the life of a call --- */

struct sim_call *sim_call_new(struct sim *sim, const struct effect *effect,
                              const struct sim_whom *whom);
/* One that the plugin of a volume works on. */
bool sim_is_node_call(const struct sim_call *call);
void sim_call_fail(struct sim_call *call, int code, bool hard, const char *text);
/* The plugin's own word. */
void sim_call_refuse(struct sim_call *call, enum csi_verdict verdict, const char *text);
/* Whoever made CALL has its answer, or is not there any more. */
void sim_call_end(struct sim *sim, struct sim_call *call);
/* Ends CALL with the machine's completion EVENT. */
void sim_call_done(struct sim *sim, struct sim_call *call, uint8_t event, const void *payload);
/* CALL gets on at STAGE after DELAY_MS. */
void sim_call_again(struct sim *sim, struct sim_call *call, uint64_t delay_ms, unsigned stage);
/* Nobody waits for CALL, and nothing of it is left to be done. */
void sim_call_free(struct sim *sim, struct sim_call *call);
void sim_call_free_if_over(struct sim *sim, struct sim_call *call);
/* The task that the plugin SERVER is has ended: what it was at work on does not happen any more. */
void sim_calls_break(struct sim *sim, int server);

/* --- perform.c: effects, and what calls meet --- */

void sim_perform(void *ctx, const struct effect *effect);
void sim_call_event(struct sim *sim, const struct sim_event *event);
/* The daemon has died: calls of it are answered to nobody, their work may still happen. */
void sim_calls_cut(struct sim *sim);

/* --- node.c: hooks, plugins, mounts, claims --- */

/* The work of CALL in the world; sets its code. */
void sim_apply(struct sim *sim, struct sim_call *call);
/* Tells the core what became of CALL. */
void sim_answer(struct sim *sim, struct sim_call *call);
/* What CALL finds as it begins: a server that is away, an operation that is pending. */
void sim_meet(struct sim *sim, struct sim_call *call);
/* The server does not give MINE while another one has the volume. */
bool sim_claim_is_taken(const struct sim *sim, const struct sim_claim_state *mine);
void sim_node_reboot(struct sim *sim);

/* Whoever looks at what the templates of a task read tells its machine of what it does not know. */
struct sim_task_state;
void sim_templates_tell(struct sim *sim, const struct sim_whom *whom);
void sim_templates_event(struct sim *sim, const struct sim_event *event);
bool sim_is_told(const struct sim_task_state *state, const struct task *task);

/* --- tokens.c --- */

/* What hook identity leaves for a start: what it has left, or new ones. */
int sim_tokens_leave(struct sim *sim, const struct sim_whom *whom, struct results *results);

/* The one of MODE is signed again and written, while the task runs; TELLS: its machine is told. */
void sim_tokens_renew(struct sim *sim, const struct sim_whom *whom, unsigned mode, bool tells);

/* Whoever begins to renew looks at the files: all are renewed if they are others. */
void sim_tokens_begin(struct sim *sim, const struct sim_whom *whom);

/* False: the files have others than its machine knows. */
bool sim_tokens_are_told(const struct sim_task_state *state, const struct task *task);

#endif
