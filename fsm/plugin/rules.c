/* The plugin machine's rules.  Everything here is pure. */
#include "fsm/plugin/rules.h"

#include "fsm/policy.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <string.h>

enum {
    LAUNCH_BACKOFF_MS = 5000, /* 5, 20, 80, 120, 120 ... s, as nomad's driver manager */
    LAUNCH_BACKOFF_MS_MAX = 120000,
    PROBE_BACKOFF_MS = 1000,
    PROBE_BACKOFF_MS_MAX = 5000,
    PROBE_LIMIT_MS = 5000,
    IDENTIFY_LIMIT_MS = 30000,
    HEALTH_TIMEOUT_MS = 30000, /* Nomad's, for who does not say */
    GRACE_MS = 10000,          /* after a restart of the daemon, to be looked at first */
};

static struct plugin *mutable_plugin(struct machine *record)
{
    check(record->kind == MACHINE_PLUGIN);
    return (struct plugin *)(void *)record;
}

/* What a process ended with is told by its parent alone. */
static void absorb_end(struct plugin *plugin, const struct exited *exit)
{
    const char *said = exit->message;

    (void)text_copy(plugin->failure, sizeof(plugin->failure), "plugin has ended");
    if (exit->known)
        (void)text_format(plugin->failure, sizeof(plugin->failure), "plugin exited with code %d",
                          (int)exit->code); /* fits */
    if (said[0] != '\0') {
        (void)text_append(plugin->failure, sizeof(plugin->failure), ": ");
        (void)text_append(plugin->failure, sizeof(plugin->failure), said); /* cut is enough */
    }
}

static void absorb_failure(struct plugin *plugin, const struct failure *failure)
{
    plugin->permanent = !failure->recoverable;
    (void)text_copy(plugin->failure, sizeof(plugin->failure), failure->text); /* same size */
}

void plugin_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct plugin *plugin = mutable_plugin(record);

    switch ((enum plugin_event_kind)event->kind) {
    case PE_DEFINE:
        if (record->state != P_ABSENT)
            break; /* its task runs again */
        plugin->define = *(const struct plugin_define *)event->payload;
        plugin->defined_ms = now->ms;
        break;
    case PE_REMOVE:
        plugin->remove_wanted = 1;
        break;
    case PE_LAUNCHED:
    case PE_RECOVERED:
        plugin->process = *(const struct started *)event->payload;
        break;
    case PE_LAUNCH_FAILED:
    case PE_LOST:
    case PE_STOP_FAILED:
    case PE_PROBE_FAILED:
    case PE_IDENTIFY_FAILED:
        absorb_failure(plugin, event->payload);
        break;
    case PE_IDENTIFIED:
        plugin->identity = *(const struct plugin_identity *)event->payload;
        plugin->failure[0] = '\0';
        memset(plugin->failure, 0, sizeof(plugin->failure));
        plugin->permanent = 0;
        plugin->failures = 0;
        break;
    case PE_EXITED: {
        const struct exited *exit = event->payload;
        if (plugin->define.supervised)
            plugin->ended_ms = now->ms;
        absorb_end(plugin, exit);
        break;
    }
    case PE_RESTORE:
        if (((const struct restore *)event->payload)->rebooted)
            plugin->identity.healthy = 0; /* it ended with the host */
        break;
    case PE_STOP:
    case PE_STOPPED:
    case PE_PROBED:
    case PE_TIMEOUT:
    case PE_COUNT:
        break;
    }
}

/* --- its health --- */

static bool is_overdue(const struct plugin *plugin, const struct fsm_now *now)
{
    return plugin->due_ms != 0 && now->ms >= plugin->due_ms;
}

/* Something runs, or is about to, that is not healthy and should become it.  How long the process
 * of a driver's plugin takes to be launched is the effect's own limit. */
static bool is_awaited(const struct plugin *plugin)
{
    switch ((enum plugin_state)plugin->machine.state) {
    case P_PROBING:
    case P_IDENTIFYING:
        return true;
    case P_LAUNCHING:
    case P_RECOVERING:
    case P_UNHEALTHY:
        return plugin->define.supervised;
    case P_ABSENT:
    case P_READY:
    case P_BACKOFF:
    case P_STOPPING:
    case P_REJECTED:
    case P_STOPPED:
    case P_GONE:
    case P_COUNT:
        return false;
    }
    unreachable("plugin state");
}

static bool has_effect(const struct fsm_row *row, enum plugin_effect effect)
{
    for (size_t i = 0; i < FSM_EFFECTS_MAX && row->effects[i] != 0; i++) {
        if (row->effects[i] == effect)
            return true;
    }
    return false;
}

static uint64_t health_timeout_ms(const struct plugin *plugin)
{
    return plugin->define.health_timeout_ms != 0 ? plugin->define.health_timeout_ms
                                                 : HEALTH_TIMEOUT_MS;
}

/* The time goes on from state to state and over restarts of the daemon, which looks once more all
 * the same before it is over.  It begins anew when the task was told, which may not have heard. */
static void enter_health(struct plugin *plugin, const struct fsm_row *row,
                         const struct fsm_now *now)
{
    bool awaited = is_awaited(plugin);

    if (!awaited)
        plugin->due_ms = 0;
    else if (plugin->due_ms == 0 || has_effect(row, PX_SEND_UNWELL))
        plugin->due_ms = now->ms + health_timeout_ms(plugin);
    else if (row->event == PE_RESTORE && plugin->due_ms < now->ms + GRACE_MS)
        plugin->due_ms = now->ms + GRACE_MS;
}

static uint64_t sooner(uint64_t a_ms, uint64_t b_ms)
{
    return b_ms == 0 || (a_ms != 0 && a_ms < b_ms) ? a_ms : b_ms;
}

uint64_t plugin_deadline(const struct machine *record, const struct fsm_now *now)
{
    const struct plugin *plugin = plugin_of(record);
    uint64_t limit_ms = record->state == P_LAUNCHING     ? 0
                        : record->state == P_IDENTIFYING ? now->ms + IDENTIFY_LIMIT_MS
                                                         : now->ms + PROBE_LIMIT_MS;

    return sooner(limit_ms, plugin->due_ms);
}

void plugin_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now)
{
    struct plugin *plugin = mutable_plugin(record);

    (void)event; /* everything of it has been absorbed */
    check(record->state == row->next);
    if (row->next == P_LAUNCHING)
        record->generation++;
    if (row->next == P_BACKOFF && row->state != P_BACKOFF)
        plugin->failures++;
    if (row->event == PE_IDENTIFY_FAILED && plugin->define.supervised)
        plugin->failures++;
    if (row->next == P_READY)
        plugin->identity.healthy = 1;
    if (row->next == P_LAUNCHING || row->next == P_UNHEALTHY || row->next == P_BACKOFF ||
        row->next == P_STOPPED)
        plugin->identity.healthy = 0;
    if (row->next == P_STOPPED) /* the task knows that it has ended */
        plugin->told_healthy = 0, plugin->failures = 0;
    enter_health(plugin, row, now);
}

uint64_t plugin_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    const struct plugin *plugin = plugin_of(record);

    if (record->state == P_BACKOFF)
        return policy_backoff_ms(LAUNCH_BACKOFF_MS, LAUNCH_BACKOFF_MS_MAX,
                                 plugin->failures < 1 ? 1 : plugin->failures, now->seed);
    /* One that listens, and cannot say who it is, comes here again and again. */
    uint32_t tries = record->attempt + (plugin->define.supervised ? plugin->failures : 0);
    uint64_t pause_ms = policy_backoff_ms(PROBE_BACKOFF_MS, PROBE_BACKOFF_MS_MAX, tries, now->seed);
    bool cut = plugin->due_ms > now->ms && plugin->due_ms < now->ms + pause_ms;
    return cut ? plugin->due_ms - now->ms : pause_ms;
}

/* --- messages --- */

static void tell_task(const struct machine_id *self, uint8_t kind, enum task_event_type type,
                      const char *text, fsm_send *send, void *ctx)
{
    struct kill_order order = {.event = (uint8_t)type};
    struct fsm_message message = {
        .audience = TO_MACHINE,
        .to = *self,
        .event = {.kind = kind, .payload = &order},
    };

    message.to.kind = MACHINE_TASK;
    (void)text_copy(order.text, sizeof(order.text), text); /* cut is enough */
    send(ctx, &message);
}

static void send_health(const struct machine_id *self, struct plugin *plugin, fsm_send *send,
                        void *ctx)
{
    bool healthy = plugin->identity.healthy;
    char text[DESCRIPTION_SIZE];

    if (!plugin->define.supervised || healthy == plugin->told_healthy)
        return;
    plugin->told_healthy = healthy;
    (void)text_format(text, sizeof(text), healthy ? "plugin: %s" : "Error: %s",
                      healthy ? plugin->define.plugin : plugin->failure); /* cut is enough */
    tell_task(self, TE_NOTE, healthy ? TASK_EVENT_PLUGIN_HEALTHY : TASK_EVENT_PLUGIN_UNHEALTHY,
              text, send, ctx);
}

/* Not at the first failure, which one that is about to be ready may have; and long before its time
 * is over, when whoever waits would hear of it only with its end. */
static bool is_ailing(const struct plugin *plugin)
{
    return plugin->machine.state == P_IDENTIFYING
               ? plugin->define.supervised && plugin->failures == 1
               : plugin->machine.attempt == 1;
}

static void send_ailing(const struct machine_id *self, struct plugin *plugin, fsm_send *send,
                        void *ctx)
{
    char text[DESCRIPTION_SIZE];

    if (!plugin->define.supervised)
        return;
    plugin->told_healthy = 0; /* it may have been healthy before its task was started again */
    (void)text_format(text, sizeof(text), "Error: %s", plugin->failure); /* cut is enough */
    tell_task(self, TE_NOTE, TASK_EVENT_PLUGIN_UNHEALTHY, text, send, ctx);
}

/* Nomad's words. */
static void send_unwell(const struct machine_id *self, struct plugin *plugin, fsm_send *send,
                        void *ctx)
{
    char text[DESCRIPTION_SIZE], timeout[32];

    check(plugin->define.supervised);
    plugin->told_healthy = 0;
    (void)text_format(text, sizeof(text), "Error: CSI plugin failed probe: %s",
                      plugin->failure[0] != '\0' ? plugin->failure
                                                 : "nobody listens on its socket");
    tell_task(self, TE_NOTE, TASK_EVENT_PLUGIN_UNHEALTHY, text, send, ctx);
    text_from_duration_ns(timeout, sizeof(timeout), (int64_t)health_timeout_ms(plugin) * 1000000);
    (void)text_format(text, sizeof(text),
                      "CSI plugin did not become healthy before configured %s health timeout",
                      timeout); /* fits */
    tell_task(self, TE_UNWELL, TASK_EVENT_RESTART_SIGNALED, text, send, ctx);
}

static void send_users(const struct machine_id *self, const struct plugin *plugin, bool up,
                       fsm_send *send, void *ctx)
{
    struct fsm_message message = {
        .audience = TO_PLUGIN_WAITING,
        .to = *self,
        .event = {.kind = up ? VE_PLUGIN_UP : VE_PLUGIN_DOWN,
                  .payload = up ? &plugin->identity : NULL},
    };

    check(implies(up, plugin->identity.healthy)); /* nobody is sent to one that does not answer */
    if (plugin_serves_node(plugin))
        send(ctx, &message);
}

void plugin_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx)
{
    struct plugin *plugin = mutable_plugin(record);

    (void)event; /* the news is the state, whatever led to it */
    if (effect == PX_SEND_HEALTH) {
        send_health(self, plugin, send, ctx);
        return;
    }
    if (effect == PX_SEND_AILING) {
        send_ailing(self, plugin, send, ctx);
        return;
    }
    if (effect == PX_SEND_UNWELL) {
        send_unwell(self, plugin, send, ctx);
        return;
    }
    check(effect == PX_SEND_UP || effect == PX_SEND_DOWN);
    send_users(self, plugin, effect == PX_SEND_UP, send, ctx);
}

uint32_t plugin_record_size(const struct machine *record)
{
    check(record->kind == MACHINE_PLUGIN);
    return (uint32_t)sizeof(struct plugin);
}

/* --- guards --- */

#define GUARD(function, condition)                                                                 \
    bool function(const struct machine *record, const struct fsm_event *event,                     \
                  const struct fsm_now *now)                                                       \
    {                                                                                              \
        const struct plugin *plugin = plugin_of(record);                                           \
        (void)event;                                                                               \
        (void)now;                                                                                 \
        return condition;                                                                          \
    }

/* clang-format off */
/* The task of a supervised one may start it again. */
GUARD(plugin_permanent, plugin->permanent && !plugin->define.supervised)
GUARD(plugin_remove_wanted, plugin->remove_wanted)
GUARD(plugin_supervised, plugin->define.supervised)
GUARD(plugin_healthy, plugin->identity.healthy)
GUARD(plugin_overdue, is_overdue(plugin, now))
GUARD(plugin_ailing, is_ailing(plugin))
GUARD(plugin_unwell, plugin->define.supervised && is_overdue(plugin, now))
/* clang-format on */

const char *plugin_broken(const struct machine *record)
{
    const struct plugin *plugin = plugin_of(record);

    if (plugin->define.type >= PLUGIN_TYPE_COUNT)
        return "unknown plugin type";
    if (!implies(record->state != P_ABSENT, record->generation > 0))
        return "a plugin without a generation";
    if (!implies(record->state == P_BACKOFF, record->deadline_ms != 0))
        return "backing off without a timer";
    return NULL;
}
