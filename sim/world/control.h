/* The control plane: a server or the node itself, users, and the client's end of it. */
#ifndef CAIRN_SIM_WORLD_CONTROL_H
#define CAIRN_SIM_WORLD_CONTROL_H

#include "core/core.h"
#include "sim/script/script.h"
#include "sim/world/things.h"
#include "sim/world/time.h"

struct sim;

enum sim_request_state { REQUEST_OPEN, REQUEST_DONE, REQUEST_REFUSED, REQUEST_LOST };

struct sim_request {
    struct sim *sim;
    struct sim_whom whom;
    uint8_t event, state;
    uint8_t at_once; /* a stop, without delays */
    uint32_t incarnation;
};

struct sim_control {
    struct sim_request *requests;
    uint32_t requests_count, requests_max; /* token = number + 1, modulo the size */
    uint8_t server;                        /* enum sim_server */
    uint64_t server_index;
    uint64_t posted_index; /* of an answer whose commit is to come, 0: none is */
    bool first_answer;     /* the server has answered this incarnation */
    bool pushing;
    uint64_t poll_at_ms; /* when the client asks next */
};

/* --- control.c --- */

void sim_control_event(struct sim *sim, const struct sim_event *event);
void sim_control_start(struct sim *sim);
void sim_control_refused(struct sim *sim); /* a commit failed, and proposals with it */
void sim_wish(struct sim *sim, int alloc, enum sim_wish wish);
/* ALLOC is to end, without its delays. */
void sim_hurry(struct sim *sim, int alloc);
/* There is a newer version of the alloc, in which nothing is wished anew; TIMES as in a script. */
void sim_update(struct sim *sim, int alloc, uint64_t times);
void sim_ask(struct sim *sim, const struct sim_whom *whom, uint8_t event);
void sim_status_changed(struct sim *sim);

/* --- give.c: what the core is told of allocs and plugins --- */

/* As its version VERSION, 0: the first; or it has it, and goes on by that one. */
void sim_give(struct sim *sim, int alloc, uint64_t version);
void sim_give_newer(struct sim *sim, int alloc, uint64_t version);
/* DEFINE is what that version of ALLOC says of its task that is number TASK. */
bool sim_runs_by(const struct sim_alloc_state *alloc, int task, const struct task_define *define,
                 uint64_t job_version);
void sim_define_plugins(struct sim *sim);
void sim_known(void *ctx, const char *alloc, struct alloc_assign *assign);
bool sim_claim_known(void *ctx, const char *alloc, const char *name,
                     struct volume_define *ret_define);
bool sim_claim_found(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define);

#endif
