/* What the guards and events of the alloc table mean.  Private to the room. */
#ifndef CAIRN_FSM_ALLOC_RULES_H
#define CAIRN_FSM_ALLOC_RULES_H

#include "fsm/alloc.h"

/*    guard               function                     holds when */
#define ALLOC_GUARDS(X)                                                                            \
    X(CONDEMNED, alloc_condemned)                 /* its record was damaged */                     \
    X(CONDEMNED_LIVE, alloc_condemned_live)       /* and a task of it lives */                     \
    X(CONDEMNED_VOLUMES, alloc_condemned_volumes) /* and it holds volumes */                       \
    X(HAS_PREVIOUS, alloc_has_previous)                                                            \
    X(HOOKS_LEFT, alloc_hooks_left) /* the phase has another hook */                               \
    X(HAS_VOLUMES, alloc_has_volumes)                                                              \
    X(VOLUMES_READY, alloc_volumes_ready)                                                          \
    X(VOLUMES_GONE, alloc_volumes_gone)                                                            \
    X(HAS_PREKILL, alloc_has_prekill) /* hooks, and tasks that have run */                         \
    X(HAS_DELAY, alloc_has_delay)     /* a shutdown_delay not served, tasks that run */            \
    X(AT_ONCE, alloc_at_once)         /* and nobody is to wait for one */                          \
    X(ALL_DEAD, alloc_all_dead)       /* every task but poststop ones that will run */             \
    X(ALL_DEAD_POSTSTOP, alloc_all_dead_poststop) /* and there are such */                         \
    X(ALL_DEAD_VOLUMES, alloc_all_dead_volumes)   /* or else there are volumes */                  \
    X(EVERY_DEAD, alloc_every_dead)               /* poststop tasks too */                         \
    X(EVERY_DEAD_VOLUMES, alloc_every_dead_volumes)                                                \
    X(FAILING, alloc_failing) /* a task's end means the end of the group */                        \
    X(FAILING_PREKILL, alloc_failing_prekill)                                                      \
    X(FAILING_DELAY, alloc_failing_delay)                                                          \
    X(SETUP_FAILED, alloc_setup_failed) /* nothing more of it is started */                        \
    X(ANY_RUNNING, alloc_any_running)                                                              \
    X(REWOUND, alloc_rewound)       /* each task waits for its turn in the lifecycle again */      \
    X(ANY_FAILED, alloc_any_failed) /* a task: the end of the group is on its way */               \
    X(DESTROY_WANTED, alloc_destroy_wanted)                                                        \
    X(MAY_RUN_ON, alloc_may_run_on)   /* its max_run_duration is not over */                       \
    X(HAS_NETWORK, alloc_has_network) /* of its own, which its last hooks remove */                \
    X(PAUSING, fsm_pausing)           /* a pause before the next try is under way */
enum alloc_guard {
    AG_ALWAYS,
#define X(name, function) AG_##name,
    ALLOC_GUARDS(X)
#undef X
        AG_COUNT,
};

#define X(name, function)                                                                          \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now);
ALLOC_GUARDS(X)
#undef X

void alloc_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now);
void alloc_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                 const struct fsm_now *now);
uint64_t alloc_deadline(const struct machine *record, const struct fsm_now *now);
uint64_t alloc_backoff_ms(const struct machine *record, const struct fsm_now *now);
void alloc_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                const struct fsm_event *event, fsm_send *send, void *ctx);
uint32_t alloc_record_size(const struct machine *record);
const char *alloc_broken(const struct machine *record);
const char *alloc_mistimed(const struct machine *record);

#endif
