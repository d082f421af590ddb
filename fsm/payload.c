/* What events carry: names and sizes of payloads, from the list in fields.h. */
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#define X(name, type)                                                                              \
    _Static_assert(sizeof(struct type) <= FSM_PAYLOAD_BYTES_MAX, #type " is within the bound");
PAYLOAD_LIST(X)
#undef X

const char *fsm_payload_name(enum fsm_payload kind)
{
    switch (kind) {
    case PAYLOAD_NONE:
        return "none";
#define X(name, type)                                                                              \
    case PAYLOAD_##name:                                                                           \
        return #type;
        PAYLOAD_LIST(X)
#undef X
    case PAYLOAD_KIND_COUNT:
        break;
    }
    return "?";
}

uint32_t fsm_payload_size(enum fsm_payload kind, const void *payload)
{
    check(implies(kind != PAYLOAD_NONE, payload != NULL));
    switch (kind) {
    case PAYLOAD_NONE:
    case PAYLOAD_KIND_COUNT:
        return 0;
    case PAYLOAD_ALLOC_ASSIGN: {
        const struct alloc_assign *assign = payload;
        check(assign->members_count <= ALLOC_MEMBERS_MAX);
        return (uint32_t)(sizeof(*assign) + assign->members_count * sizeof(assign->members[0]));
    }
    case PAYLOAD_HOOK: {
        const struct hook_outcome *outcome = payload;
        check(outcome->results_bytes <= FSM_PAYLOAD_BYTES_MAX - sizeof(*outcome));
        return (uint32_t)sizeof(*outcome) + outcome->results_bytes;
    }
#define SIMPLE(name, type)                                                                         \
    case PAYLOAD_##name:                                                                           \
        return (uint32_t)sizeof(struct type);
        SIMPLE(TASK_DEFINE, task_define)
        SIMPLE(VOLUME_DEFINE, volume_define)
        SIMPLE(PLUGIN_DEFINE, plugin_define)
        SIMPLE(STARTED, started)
        SIMPLE(EXIT, exited)
        SIMPLE(FAILURE, failure)
        SIMPLE(KILL, kill_order)
        SIMPLE(REQUEST, request)
        SIMPLE(RESTORE, restore)
        SIMPLE(TASK_CHANGED, task_changed)
        SIMPLE(MEMBER, member_news)
        SIMPLE(CLAIM, claim)
        SIMPLE(IDENTITY, plugin_identity)
        SIMPLE(ACK, ack)
        SIMPLE(CHECKED, checked)
#undef SIMPLE
    }
    unreachable("payload kind");
}
