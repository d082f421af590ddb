/*
 * Digests of records, as the journal keeps one with each event.
 *
 * What a version before this one has digested is digested to the same number by this one, though
 * its records have got fields since: a digest is a sum over the fields that are not zero, and each
 * goes by its name.  So fields may be added, moved and made wider; one that is renamed or means
 * something else makes older journals wrong.  test/fsm/test_digest.c holds what was digested once.
 *
 * A name becomes a number when this is compiled; a number of a field is multiplied by it, a text
 * seeded with it.  Not against adversaries, as all of base/hash.h.
 */
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <string.h>

enum { NAME_BYTES_MAX = 32 };

/* The character I of a literal, 0 behind its end; eight of them; up to four times eight. */
#define LETTER(text, i)                                                                            \
    ((uint64_t)(uint8_t)(text)[(size_t)(i) < sizeof(text) ? (size_t)(i) : sizeof(text) - 1])
#define WORD(text, i)                                                                              \
    (LETTER(text, i) | LETTER(text, i + 1) << 8 | LETTER(text, i + 2) << 16 |                      \
     LETTER(text, i + 3) << 24 | LETTER(text, i + 4) << 32 | LETTER(text, i + 5) << 40 |           \
     LETTER(text, i + 6) << 48 | LETTER(text, i + 7) << 56)
#define SPELLED(text)                                                                              \
    (WORD(text, 0) * 0x9e3779b97f4a7c15u + WORD(text, 8) * 0xbf58476d1ce4e5b9u +                   \
     WORD(text, 16) * 0x94d049bb133111ebu + WORD(text, 24) * 0xd6e8feb86659fd93u)
/* Odd, so that no two values of a field have the same product. */
#define TAG(text) (((SPELLED(text) ^ SPELLED(text) >> 32) * 0xff51afd7ed558ccdu) | 1u)

/* Adds VALUE, which goes by NAME: nothing if it is 0. */
#define ADD_NUMBER(name, value)                                                                    \
    do {                                                                                           \
        static const uint64_t tag = TAG(name);                                                     \
        _Static_assert(sizeof(name) <= NAME_BYTES_MAX + 1, "a name with more letters than count"); \
        sum += tag * (uint64_t)(value);                                                            \
    } while (0)

/* The same of a struct inside, whose fields come to VALUE. */
#define ADD_INSIDE(name, value)                                                                    \
    do {                                                                                           \
        static const uint64_t tag = TAG(name);                                                     \
        uint64_t inside = (value);                                                                 \
        sum += inside == 0 ? 0 : hash_u64(tag, inside);                                            \
    } while (0)

/* And of the element INDEX of a list, whose length is a field. */
#define ADD_ELEMENT(name, index, value)                                                            \
    do {                                                                                           \
        static const uint64_t tag = TAG(name);                                                     \
        uint64_t element = (value);                                                                \
        sum += element == 0 ? 0 : hash_u64(tag + (index), element);                                \
    } while (0)

#define ADD_BYTES(name, bytes, length)                                                             \
    do {                                                                                           \
        static const uint64_t tag = TAG(name);                                                     \
        if ((length) > 0)                                                                          \
            sum += hash_bytes(tag, bytes, length);                                                 \
    } while (0)

#define SUM(kind, name, size, doc) SUM_##kind(name)
#define SUM_U64(name) ADD_NUMBER(#name, from->name);
#define SUM_I64(name) SUM_U64(name)
#define SUM_U32(name) SUM_U64(name)
#define SUM_I32(name) SUM_U64(name) /* negative ones as 64 bits have them */
#define SUM_U8(name) SUM_U64(name)
#define SUM_FLAG(name) SUM_U64(name)
#define SUM_TEXT(name) ADD_BYTES(#name, from->name, strnlen(from->name, sizeof(from->name)));
#define SUM_NAME(name) SUM_TEXT(name)
#define SUM_PAD(name)

#define SUMMED(type, FIELDS)                                                                       \
    static uint64_t type##_fields(const struct type *from)                                         \
    {                                                                                              \
        uint64_t sum = 0;                                                                          \
        FIELDS(SUM)                                                                                \
        return sum;                                                                                \
    }
SUMMED(task_define, TASK_DEFINE_FIELDS)
SUMMED(started, STARTED_FIELDS)
SUMMED(exited, EXITED_FIELDS)
SUMMED(task_event, TASK_EVENT_FIELDS)
SUMMED(task, TASK_FIELDS)
SUMMED(alloc_member, ALLOC_MEMBER_FIELDS)
SUMMED(alloc_assign, ALLOC_ASSIGN_FIELDS)
SUMMED(alloc, ALLOC_FIELDS)
SUMMED(volume_define, VOLUME_DEFINE_FIELDS)
SUMMED(volume, VOLUME_FIELDS)
SUMMED(plugin_define, PLUGIN_DEFINE_FIELDS)
SUMMED(plugin_identity, PLUGIN_IDENTITY_FIELDS)
SUMMED(plugin, PLUGIN_FIELDS)

_Static_assert(sizeof(struct machine) == 3 * 8 + 3 * 4 + LANE_COUNT * 5 + 3,
               "struct machine has changed: machine_fields below");

static uint64_t machine_fields(const struct machine *from)
{
    uint64_t sum = 0;

    SUM_U64(revision)
    SUM_U64(entered_ms)
    SUM_U64(deadline_ms)
    SUM_U32(generation)
    SUM_U32(tickets)
    SUM_U32(attempt)
    for (unsigned lane = 0; lane < LANE_COUNT; lane++) {
        ADD_ELEMENT("lane_ticket", lane, from->lane_ticket[lane]);
        ADD_ELEMENT("lane_effect", lane, from->lane_effect[lane]);
    }
    SUM_U8(state)
    SUM_FLAG(restored)
    return sum;
}

static uint64_t of_task(const struct task *task)
{
    uint64_t sum = task_fields(task);

    check(task->events_count <= TASK_EVENTS_MAX);
    ADD_INSIDE("define", task_define_fields(&task->define));
    ADD_INSIDE("process", started_fields(&task->process));
    ADD_INSIDE("exit", exited_fields(&task->exit));
    for (unsigned i = 0; i < task->events_count; i++)
        ADD_ELEMENT("events", i, task_event_fields(&task->events[i]));
    ADD_BYTES("results", task->results, task->results_bytes);
    return sum;
}

static uint64_t of_alloc(const struct alloc *alloc)
{
    uint64_t sum = alloc_fields(alloc), assign = alloc_assign_fields(&alloc->assign);

    ADD_INSIDE("assign", assign);
    for (unsigned i = 0; i < alloc->assign.members_count; i++)
        ADD_ELEMENT("members", i, alloc_member_fields(&alloc->assign.members[i]));
    return sum;
}

static uint64_t of_volume(const struct volume *volume)
{
    uint64_t sum = volume_fields(volume);

    ADD_INSIDE("define", volume_define_fields(&volume->define));
    return sum;
}

static uint64_t of_plugin(const struct plugin *plugin)
{
    uint64_t sum = plugin_fields(plugin);

    ADD_INSIDE("define", plugin_define_fields(&plugin->define));
    ADD_INSIDE("identity", plugin_identity_fields(&plugin->identity));
    ADD_INSIDE("process", started_fields(&plugin->process));
    return sum;
}

uint64_t fsm_digest(const struct machine *record)
{
    uint64_t sum = 0;

    check(fsm_record_size(record) >= sizeof(*record)); /* what its tail counts lies inside */
    ADD_INSIDE("machine", machine_fields(record));
    switch ((enum machine_kind)record->kind) {
    case MACHINE_TASK:
        sum += of_task(task_of(record));
        break;
    case MACHINE_ALLOC:
        sum += of_alloc(alloc_of(record));
        break;
    case MACHINE_VOLUME:
        sum += of_volume(volume_of(record));
        break;
    case MACHINE_PLUGIN:
        sum += of_plugin(plugin_of(record));
        break;
    case MACHINE_KIND_COUNT:
        unreachable("no kind of machine");
    }
    return hash_u64(record->kind, sum);
}
