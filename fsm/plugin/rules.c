/* The plugin machine's rules.  Everything here is pure. */
#include "fsm/plugin/rules.h"

#include "fsm/policy.h"
#include "fsm/volume.h"

#include <string.h>

enum {
    LAUNCH_BACKOFF_MS = 5000, /* 5, 20, 80, 120, 120 ... s, as nomad's driver manager */
    LAUNCH_BACKOFF_MS_MAX = 120000,
    PROBE_BACKOFF_MS = 1000,
    PROBE_BACKOFF_MS_MAX = 5000,
    PROBES_MAX = 12, /* about the 30 s that Nomad gives a CSI plugin to become healthy */
};

static struct plugin *mutable_plugin(struct machine *record)
{
    check(record->kind == MACHINE_PLUGIN);
    return (struct plugin *)(void *)record;
}

static void absorb_failure(struct plugin *plugin, const struct failure *failure)
{
    plugin->permanent = !failure->recoverable;
    (void)text_copy(plugin->failure, sizeof(plugin->failure), failure->text); /* same size */
}

void plugin_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct plugin *plugin = mutable_plugin(record);

    (void)now; /* nothing here depends on time */
    switch ((enum plugin_event_kind)event->kind) {
    case PE_DEFINE:
        check(record->state == P_ABSENT);
        plugin->define = *(const struct plugin_define *)event->payload;
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
        (void)text_format(plugin->failure, sizeof(plugin->failure), "plugin exited with code %d",
                          (int)exit->code); /* fits */
        break;
    }
    case PE_STOP:
    case PE_STOPPED:
    case PE_PROBED:
    case PE_TIMEOUT:
    case PE_RESTORE:
    case PE_COUNT:
        break;
    }
}

void plugin_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                  const struct fsm_now *now)
{
    struct plugin *plugin = mutable_plugin(record);

    (void)event; /* everything of it has been absorbed */
    (void)now;
    check(record->state == row->next);
    if (row->next == P_LAUNCHING)
        record->generation++;
    if (row->next == P_BACKOFF && row->state != P_BACKOFF)
        plugin->failures++;
    if (row->next == P_READY)
        plugin->identity.healthy = 1;
    if (row->next == P_UNHEALTHY || row->next == P_BACKOFF)
        plugin->identity.healthy = 0;
}

uint64_t plugin_backoff_ms(const struct machine *record, const struct fsm_now *now)
{
    const struct plugin *plugin = plugin_of(record);

    if (record->state == P_BACKOFF)
        return policy_backoff_ms(LAUNCH_BACKOFF_MS, LAUNCH_BACKOFF_MS_MAX,
                                 plugin->failures < 1 ? 1 : plugin->failures, now->seed);
    return policy_backoff_ms(PROBE_BACKOFF_MS, PROBE_BACKOFF_MS_MAX, record->attempt, now->seed);
}

void plugin_send(const struct machine_id *self, struct machine *record, uint8_t effect,
                 const struct fsm_event *event, fsm_send *send, void *ctx)
{
    const struct plugin *plugin = plugin_of(record);
    bool up = effect == PX_SEND_UP;
    struct fsm_message message = {
        .audience = TO_PLUGIN_USERS,
        .to = *self,
        .event = {.kind = up ? VE_PLUGIN_UP : VE_PLUGIN_DOWN,
                  .payload = up ? &plugin->identity : NULL},
    };

    (void)event; /* the news is the state, whatever led to it */
    check(effect == PX_SEND_UP || effect == PX_SEND_DOWN);
    check(implies(up, plugin->identity.healthy)); /* nobody is sent to one that does not answer */
    send(ctx, &message);
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
GUARD(plugin_permanent, plugin->permanent)
GUARD(plugin_remove_wanted, plugin->remove_wanted)
GUARD(plugin_probes_left, plugin->machine.attempt < PROBES_MAX)
/* clang-format on */

const char *plugin_broken(const struct machine *record)
{
    const struct plugin *plugin = plugin_of(record);

    if (plugin->define.type > PLUGIN_CSI_CONTROLLER)
        return "unknown plugin type";
    if (!implies(record->state != P_ABSENT, record->generation > 0))
        return "a plugin without a generation";
    if (!implies(record->state == P_BACKOFF, record->deadline_ms != 0))
        return "backing off without a timer";
    return NULL;
}
