/* What must never happen in a world, what must come about, and what a story expects. */
#ifndef CAIRN_SIM_WORLD_CHECK_CHECK_H
#define CAIRN_SIM_WORLD_CHECK_CHECK_H

#include "core/core.h"
#include "sim/script/script.h"
#include "sim/world/process.h"

struct sim;
struct sim_call;

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
/* A shim is about to start it: true if all of its volumes are mounted. */
bool sim_check_mounts(struct sim *sim, const struct sim_attempt *attempt);
bool sim_sees_mount(const struct journal_event *event); /* which is a volume's, and there */
void sim_check_effect(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);
void sim_check_exit(struct sim *sim, struct sim_attempt *attempt, const struct exited *exited);
void sim_check_push(struct sim *sim, int alloc, uint64_t digest, uint8_t status);

/* The record of ID that BATCH stores, NULL if it stores none.  Records are stored in the order of
 * their first events, so the next one is mostly wanted next; AT is where the last one was. */
const struct machine *sim_new_record(const struct journal_batch *batch, const struct machine_id *id,
                                     size_t *at);

/* --- commit.c: a batch that has been committed --- */

void sim_check_committed(struct sim *sim, const struct journal_batch *batch);

/* --- tries.c: the restart policy --- */

/* EVENT has been committed, and with it TASK. */
void sim_check_tries(struct sim *sim, const struct sim_whom *whom,
                     const struct journal_event *event, const struct task *task);
/* A start is performed. */
void sim_check_again(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);

/* A call is made, or has failed: who fails pauses before it tries again. */
void sim_check_call(struct sim *sim, const struct sim_call *call);
void sim_check_failed(struct sim *sim, const struct sim_call *call);

/* --- group.c: between the tasks of an alloc --- */

void sim_check_order(struct sim *sim, const struct sim_attempt *attempt); /* a payload begins */
void sim_check_stop(struct sim *sim, const struct effect *effect, const struct sim_whom *whom);
/* Why the group of alloc A has to end, or NULL. */
const char *sim_group_over(const struct sim *sim, int a);
/* It has ended: what it looks like from outside. */
void sim_check_outcome(struct sim *sim, const struct sim_whom *whom, const struct alloc *alloc);

/* --- health.c: the health of allocs for which somebody waits --- */

/* Its record, which BATCH is about to store; BEFORE may be NULL. */
void sim_check_health(struct sim *sim, const struct journal_batch *batch,
                      const struct sim_whom *whom, const struct alloc *before,
                      const struct alloc *after);
/* Which checks of an alloc pass behind EVENT, if BEFORE did: a newer version has others, and who
 * answered them before a boot is gone. */
uint64_t sim_checks_after(uint64_t before, const struct fsm_event *event);

/* ALLOC has ended, or goes on for ever: what is missing of its health, or NULL. */
const char *sim_health_missing(const struct alloc *alloc);

/* --- contact.c: allocs that end when the server does not hear of them --- */

/* EVENT has been committed, and with it RECORD, which may be NULL. */
void sim_check_contact(struct sim *sim, const struct sim_whom *whom,
                       const struct journal_event *event, const struct machine *record);
/* After a turn: nobody goes on who has to end. */
void sim_check_cut_off(struct sim *sim);

/* --- history.c: the log stays bounded and loses nothing --- */

/* BATCH is about to be stored. */
void sim_check_trim(struct sim *sim, const struct journal_batch *batch);
/* It was, and the log had EVENTS_BEFORE. */
void sim_check_bound(struct sim *sim, uint64_t events_before, const struct journal_batch *batch);
/* Bases and log give what is stored: from these alone. */
void sim_check_history(struct sim *sim);

/* --- expect.c: what a story expects --- */

void sim_judge(struct sim *sim);

/* --- settle.c: liveness --- */

bool sim_is_settled(struct sim *sim);
void sim_check_settled(struct sim *sim);
bool sim_is_empty(struct sim *sim);
void sim_check_empty(struct sim *sim);

#endif
