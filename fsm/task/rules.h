/* What the guards and events of the task table mean.  Private to the room. */
#ifndef CAIRN_FSM_TASK_RULES_H
#define CAIRN_FSM_TASK_RULES_H

#include "fsm/task.h"

/*    guard              function                   holds when */
#define TASK_GUARDS(X)                                                                             \
    X(MAY_START, task_may_start)   /* nothing has to be asked before a start */                    \
    X(HOOKS_LEFT, task_hooks_left) /* the phase has another hook */                                \
    X(HAS_MOUNTS, task_has_mounts) /* its alloc has volumes */                                     \
    X(HAS_PREKILL, task_has_prekill)                                                               \
    X(HAS_DELAY, task_has_delay) /* a shutdown_delay that has not been served */                   \
    X(AT_ONCE, task_at_once)     /* and is not to be */                                            \
    X(HAS_POSTSTART, task_has_poststart)                                                           \
    X(HAS_EXITED, task_has_exited)                                                                 \
    X(KILL_WANTED, task_kill_wanted)                                                               \
    X(KILL_PREKILL, task_kill_prekill) /* and hooks come first */                                  \
    X(KILL_DELAY, task_kill_delay)     /* and the delay comes first */                             \
    X(RESUME_STOP, task_resume_stop)   /* the kill path stood there when we went down */           \
    X(RESUME_DELAY, task_resume_delay)                                                             \
    X(RESUME_PREKILL, task_resume_prekill)                                                         \
    X(LOOK_AGAIN, task_look_again)   /* the look failed and says nothing about the payload */      \
    X(NEVER_BEGUN, task_never_begun) /* the intent was stored, the start never made */             \
    X(NEVER_BEGUN_ANEW, task_never_begun_anew) /* and what was made or seen before it counts no    \
                                                * more */                                          \
    X(NEVER_BEGUN_MAY, task_never_begun_may)                                                       \
    X(NEVER_BEGUN_KILL, task_never_begun_kill)                                                     \
    X(NEVER_BEGUN_REWIND, task_never_begun_rewind)                                                 \
    X(EXIT_UNSEEN, task_exit_unseen) /* it ran, and how it ended is not known yet */               \
    X(RESTART_HELD, task_restart_held)                                                             \
    X(RESTART_NOW, task_restart_now)                                                               \
    X(RESTART_LATER, task_restart_later)                                                           \
    X(REWINDS, task_rewinds)               /* its turn in the lifecycle comes again */             \
    X(REWIND_PREKILL, task_rewind_prekill) /* and hooks come first */                              \
    X(REMOVE_WANTED, task_remove_wanted)                                                           \
    X(OWES, task_owes)               /* a stop hook has not succeeded yet */                       \
    X(OWES_SIGNAL, task_owes_signal) /* its payload is to be told of a change */                   \
    X(OWES_SCRIPT, task_owes_script) /* a script is to run, and none does */                       \
    X(OWES_BOTH, task_owes_both)                                                                   \
    X(CHANGE_RESTARTS, task_change_restarts)                                                       \
    X(CHANGE_PREKILL, task_change_prekill) /* and hooks come first */                              \
    X(PAUSING, fsm_pausing)                /* a pause before the next try is under way */
enum task_guard {
    TG_ALWAYS,
#define X(name, function) TG_##name,
    TASK_GUARDS(X)
#undef X
        TG_COUNT,
};

#define X(name, function)                                                                          \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now);
TASK_GUARDS(X)
#undef X

void task_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now);
void task_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                const struct fsm_now *now);
uint64_t task_deadline(const struct machine *record, const struct fsm_now *now);
uint64_t task_backoff_ms(const struct machine *record, const struct fsm_now *now);
void task_send(const struct machine_id *self, struct machine *record, uint8_t effect,
               const struct fsm_event *event, fsm_send *send, void *ctx);
uint32_t task_record_size(const struct machine *record);
const char *task_broken(const struct machine *record);
const char *task_mistimed(const struct machine *record);

#endif
