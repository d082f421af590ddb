/*
 * Policies: what should happen, as pure functions over plain values.  Guards and absorbers of the
 * machines call them; so does the control plane.
 */
#ifndef CAIRN_FSM_POLICY_H
#define CAIRN_FSM_POLICY_H

#include "fsm/alloc.h"
#include "fsm/task.h"

/* --- restart (client-behaviour 2.5; nomad v1.1.2 client/allocrunner/taskrunner/restarts) --- */

enum restart_answer { RESTART_AGAIN, RESTART_DELAYED, RESTART_SUCCEEDED, RESTART_EXHAUSTED };

struct restart_input {
    const struct task_define *define;
    uint64_t now_ms;
    uint64_t interval_ms;       /* node time at which the current interval began */
    uint64_t seed;              /* for the jitter of the delay */
    uint32_t count;             /* restarts used in the current interval */
    bool success;               /* exit code 0, no signal, known */
    bool unrecoverable;         /* a start error that trying again will not mend */
};

struct restart_decision {
    enum restart_answer answer;
    uint64_t delay_ms;
    uint64_t interval_ms;       /* to be stored for the next decision, as count is */
    uint32_t count;
    char reason[TASK_EVENT_TEXT_SIZE];
};

void policy_restart(const struct restart_input *input, struct restart_decision *ret_decision);

/* Pause before try ATTEMPT (1, 2, ...) of something that must succeed: base * 4^n up to cap, with
 * up to a quarter of jitter. */
uint64_t policy_backoff_ms(uint64_t base_ms, uint64_t cap_ms, uint32_t attempt, uint64_t seed);

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

/* Client status as servers and users see it, and its fixed description. */
enum client_status policy_client_status(const struct alloc *alloc, const char **ret_description);

#endif
