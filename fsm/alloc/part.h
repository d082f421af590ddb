/* Inside fsm/alloc/ only: what the rules of the alloc machine share. */
#ifndef CAIRN_FSM_ALLOC_PART_H
#define CAIRN_FSM_ALLOC_PART_H

#include "fsm/alloc/rules.h"
#include "fsm/task.h"

static inline struct alloc *alloc_mutable(struct machine *record)
{
    check(record->kind == MACHINE_ALLOC);
    return (struct alloc *)(void *)record;
}

/* --- members, as their alloc was told of them (members.c) --- */

/* NULL: there is none. */
struct alloc_member *member_find(struct alloc *alloc, enum alloc_member_kind kind,
                                 const char *name);

typedef bool member_pred(const struct alloc *alloc, const struct alloc_member *member);
member_pred member_is_live_poststop, member_is_unready;

/* Counts the members of KIND for which PRED holds. */
uint32_t members_count(const struct alloc *alloc, enum alloc_member_kind kind, member_pred *pred);

bool members_none_begun(const struct alloc *alloc);
bool members_any_running(const struct alloc *alloc);
bool members_any_failed(const struct alloc *alloc); /* a task */
bool members_hold_volumes(const struct alloc *alloc);

/* Of tasks: all but poststop ones that will run, and these, too. */
bool members_all_dead(const struct alloc *alloc);
bool members_every_dead(const struct alloc *alloc);

/* --- its health, if somebody waits to hear of it (health.c) --- */

/* Its set-up begins, and with it the time by which it has to be healthy. */
void alloc_begin_health(struct alloc *alloc, const struct fsm_now *now);

/* What is asked of its health is what NEWER says, and is asked anew. */
void alloc_renew_health(struct alloc *alloc, const struct alloc_assign *newer,
                        const struct fsm_now *now);

/* EVENT has been absorbed: gives the verdict if it is time, once. */
void alloc_judge_health(struct alloc *alloc, const struct fsm_event *event,
                        const struct fsm_now *now);

/* A user says that it is HEALTHY or not, which holds whatever was known before. */
void alloc_say_health(struct alloc *alloc, bool healthy, const struct fsm_now *now);

/* The node time at which it is time if nothing else happens, 0: never. */
uint64_t alloc_health_at_ms(const struct alloc *alloc);

const char *alloc_broken_health(const struct alloc *alloc); /* as fsm_def.broken */

/* --- hooks (guards.c) --- */

/* The first hook of PHASE from FIRST on, HOOK_NONE: none. */
uint8_t alloc_hook_from(const struct alloc *alloc, enum hook_phase phase, unsigned first);

#endif
