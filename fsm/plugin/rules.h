/* What the guards and events of the plugin table mean.  Private to the room. */
#ifndef CAIRN_FSM_PLUGIN_RULES_H
#define CAIRN_FSM_PLUGIN_RULES_H

#include "fsm/plugin.h"

/*    guard          function                 holds when */
#define PLUGIN_GUARDS(X)                                                                           \
    X(PERMANENT, plugin_permanent) /* trying again will not help */                                \
    X(REMOVE_WANTED, plugin_remove_wanted)                                                         \
    X(SUPERVISED, plugin_supervised) /* its process is a task */                                   \
    X(HEALTHY, plugin_healthy)       /* it was, before the daemon came back */                     \
    X(OVERDUE, plugin_overdue)       /* it has not become healthy in its time */                   \
    X(UNWELL, plugin_unwell)         /* so, and its process is a task */                           \
    X(AILING, plugin_ailing)         /* it fails for the second time in a row */                   \
    X(PAUSING, fsm_pausing)          /* a pause before the next try is under way */
enum plugin_guard {
    PG_ALWAYS,
#define X(name, function) PG_##name,
    PLUGIN_GUARDS(X)
#undef X
        PG_COUNT,
};

#define X(name, function)                                                                          \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now);
PLUGIN_GUARDS(X)
#undef X

void plugin_absorb(struct machine *record, const struct fsm_event *event,
                   const struct fsm_now *now);
void plugin_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now);
uint64_t plugin_deadline(const struct machine *record, const struct fsm_now *now);
uint64_t plugin_backoff_ms(const struct machine *record, const struct fsm_now *now);
void plugin_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx);
uint32_t plugin_record_size(const struct machine *record);
const char *plugin_broken(const struct machine *record);

#endif
