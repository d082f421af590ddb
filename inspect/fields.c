/* The shapes, each from its list (fields.h). */
#include "inspect/fields.h"

#include <string.h>

#define DESCRIBE(kind, name, size, doc)                                                            \
    {#name, doc, offsetof(struct OWNER, name), size, VALUE_##kind},

/* The head has no list of its own; the assertion below finds a field that is missing here. */
#define MACHINE_FIELDS(X)                                                                          \
    X(U64, revision, 0, "events applied so far")                                                   \
    X(U64, entered_ms, 0, "node time at which the state was entered")                              \
    X(U64, deadline_ms, 0, "node time of the next TIMEOUT, 0: none")                               \
    X(U32, generation, 0, "of the outside work")                                                   \
    X(U32, tickets, 0, "tickets issued so far")                                                    \
    X(U32, attempt, 0, "failed tries since the state was entered")                                 \
    X(U8, restored, 0, "was brought back since it was defined")
_Static_assert(sizeof(struct machine) == 3 * 8 + 3 * 4 + 4 * LANE_COUNT + LANE_COUNT + 3,
               "MACHINE_FIELDS, the lanes, kind and state are the whole head");

#define OWNER machine
static const struct field machine_fields[] = {MACHINE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER task_define
static const struct field task_define_fields[] = {TASK_DEFINE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER alloc_member
static const struct field alloc_member_fields[] = {ALLOC_MEMBER_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER alloc_assign
static const struct field alloc_assign_fields[] = {ALLOC_ASSIGN_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER volume_define
static const struct field volume_define_fields[] = {VOLUME_DEFINE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER plugin_define
static const struct field plugin_define_fields[] = {PLUGIN_DEFINE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER hook_outcome
static const struct field hook_outcome_fields[] = {HOOK_OUTCOME_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER started
static const struct field started_fields[] = {STARTED_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER exited
static const struct field exited_fields[] = {EXITED_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER failure
static const struct field failure_fields[] = {FAILURE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER kill_order
static const struct field kill_order_fields[] = {KILL_ORDER_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER request
static const struct field request_fields[] = {REQUEST_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER restore
static const struct field restore_fields[] = {RESTORE_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER task_changed
static const struct field task_changed_fields[] = {TASK_CHANGED_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER member_news
static const struct field member_news_fields[] = {MEMBER_NEWS_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER claim
static const struct field claim_fields[] = {CLAIM_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER plugin_identity
static const struct field plugin_identity_fields[] = {PLUGIN_IDENTITY_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER ack
static const struct field ack_fields[] = {ACK_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER checked
static const struct field checked_fields[] = {CHECKED_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER task_event
static const struct field task_event_fields[] = {TASK_EVENT_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER task
static const struct field task_fields[] = {TASK_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER alloc
static const struct field alloc_fields[] = {ALLOC_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER volume
static const struct field volume_fields[] = {VOLUME_FIELDS(DESCRIBE)};
#undef OWNER
#define OWNER plugin
static const struct field plugin_fields[] = {PLUGIN_FIELDS(DESCRIBE)};
#undef OWNER

#define PLAIN(type)                                                                                \
    static const struct shape type##_shape = {                                                     \
        #type, type##_fields, NULL, COUNT_OF(type##_fields), 0, sizeof(struct type)};
#define WITH_PARTS(type)                                                                           \
    static const struct shape type##_shape = {#type,                                               \
                                              type##_fields,                                       \
                                              type##_parts,                                        \
                                              COUNT_OF(type##_fields),                             \
                                              COUNT_OF(type##_parts),                              \
                                              sizeof(struct type)};
#define ONE(type, name, shape_name)                                                                \
    {                                                                                              \
#name, &shape_name##_shape, offsetof(struct type, name), 0, 1, PART_ONE                    \
    }
#define RESULTS(type)                                                                              \
    {                                                                                              \
        "results", NULL, offsetof(struct type, results), offsetof(struct type, results_bytes),     \
            RESULTS_BYTES_MAX, PART_RESULTS                                                        \
    }

PLAIN(machine)
PLAIN(task_define)
PLAIN(alloc_member)
PLAIN(volume_define)
PLAIN(plugin_define)
PLAIN(started)
PLAIN(exited)
PLAIN(failure)
PLAIN(kill_order)
PLAIN(request)
PLAIN(restore)
PLAIN(task_changed)
PLAIN(member_news)
PLAIN(claim)
PLAIN(plugin_identity)
PLAIN(ack)
PLAIN(checked)
PLAIN(task_event)

static const struct part alloc_assign_parts[] = {
    {"members", &alloc_member_shape, offsetof(struct alloc_assign, members),
     offsetof(struct alloc_assign, members_count), ALLOC_MEMBERS_MAX, PART_U32},
};
WITH_PARTS(alloc_assign)

static const struct part hook_outcome_parts[] = {RESULTS(hook_outcome)};
WITH_PARTS(hook_outcome)

static const struct part task_parts[] = {
    ONE(task, define, task_define),
    ONE(task, process, started),
    ONE(task, exit, exited),
    {"events", &task_event_shape, offsetof(struct task, events),
     offsetof(struct task, events_count), TASK_EVENTS_MAX, PART_U8},
    RESULTS(task),
};
WITH_PARTS(task)

static const struct part alloc_parts[] = {ONE(alloc, assign, alloc_assign)};
WITH_PARTS(alloc)

static const struct part volume_parts[] = {ONE(volume, define, volume_define)};
WITH_PARTS(volume)

static const struct part plugin_parts[] = {
    ONE(plugin, define, plugin_define),
    ONE(plugin, identity, plugin_identity),
    ONE(plugin, process, started),
};
WITH_PARTS(plugin)

const struct shape *shape_of_head(void)
{
    return &machine_shape;
}

const struct shape *shape_of_record(enum machine_kind kind)
{
    switch (kind) {
    case MACHINE_PLUGIN:
        return &plugin_shape;
    case MACHINE_VOLUME:
        return &volume_shape;
    case MACHINE_TASK:
        return &task_shape;
    case MACHINE_ALLOC:
        return &alloc_shape;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

const struct shape *shape_of_payload(enum fsm_payload kind)
{
    switch (kind) {
#define X(name, type)                                                                              \
    case PAYLOAD_##name:                                                                           \
        return &type##_shape;
        PAYLOAD_LIST(X)
#undef X
    case PAYLOAD_NONE:
    case PAYLOAD_KIND_COUNT:
        break;
    }
    return NULL;
}

uint32_t shape_part_length(const struct part *part, const void *base)
{
    const uint8_t *at = (const uint8_t *)base + part->count_at;
    uint32_t number = 1;

    switch ((enum part_count)part->count) {
    case PART_ONE:
        break;
    case PART_U8:
        number = *at;
        break;
    case PART_U32:
    case PART_RESULTS:
        memcpy(&number, at, sizeof(number));
        break;
    }
    check(number <= part->max); /* fsm_broken has seen the record, the codec the payload */
    return number;
}

uint64_t shape_number(const struct field *field, const void *base, bool *ret_signed)
{
    const uint8_t *at = (const uint8_t *)base + field->offset;
    uint64_t wide;
    uint32_t narrow;

    *ret_signed = field->kind == VALUE_I64 || field->kind == VALUE_I32;
    switch ((enum value_kind)field->kind) {
    case VALUE_U64:
    case VALUE_I64:
        memcpy(&wide, at, sizeof(wide));
        return wide;
    case VALUE_U32:
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
    case VALUE_I32:
        memcpy(&narrow, at, sizeof(narrow));
        return (uint64_t)(int64_t)(int32_t)narrow;
    case VALUE_U8:
        return *at;
    case VALUE_TEXT:
    case VALUE_PAD:
        break;
    }
    unreachable("a value that is no number");
}
