/* Inside fsm/task/ only: what the rules of the task machine share. */
#ifndef CAIRN_FSM_TASK_PART_H
#define CAIRN_FSM_TASK_PART_H

#include "fsm/task/rules.h"

/* --- what users read of it (notes.c) --- */

/* Adds a task event; the oldest goes when there are too many. */
struct task_event *task_note(struct task *task, const struct fsm_now *now,
                             enum task_event_type type, const char *text);

/* One that makes the task fail. */
void task_note_failing(struct task *task, const struct fsm_now *now, enum task_event_type type,
                       const char *text);

/* It starts again, in DELAY_MS, and users read so. */
void task_note_restarting(struct task *task, const struct fsm_now *now, uint64_t delay_ms,
                          const char *reason);

/* --- what is asked in more than one place (guards.c) --- */

/* True in the states in which a task only waits to start: there is nothing that could end. */
static inline bool task_state_waits(uint8_t state)
{
    return state == T_WAITING || state == T_PRESTART || state == T_LOOKING || state == T_HELD ||
           state == T_BACKOFF;
}

/* The first hook of PHASE, and the one that runs after HOOK (may be HOOK_NONE); HOOK_NONE: none. */
uint8_t task_hook_first(const struct task *task, enum hook_phase phase);
uint8_t task_hook_after(const struct task *task, enum hook_phase phase, uint8_t hook);

/* The driver could not look, which is no reason to touch what may run well (I-23).  Bounded, since
 * a payload that can never be looked at is lost to us. */
bool task_look_failed(const struct task *task, const struct failure *failure);

/* Of all the waits that DEFINE asks for. */
uint64_t task_longest_wait_ms(const struct task_define *define);

/* --- the decision after an attempt (restart.c) --- */

/* Sets the verdict: start again, later, or never. */
void task_decide(struct task *task, const struct fsm_now *now);

#endif
