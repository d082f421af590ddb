/*
 * The digest of a record, by what its fields are called and what is in them.
 *
 * A field counts by its name and that of the struct it stands in, not by its place, and one that is
 * zero or empty does not count at all.  So a version with more fields finds in a record of an older
 * one, where these are zero, the digest that the older one has journaled, and what was journaled
 * can be verified for as long as fields keep their names.  What a field is called is part of the
 * journal's format, and so is how it is mixed: test/fsm/test_digest.c holds the numbers.
 */
#include "fsm/fsm.h"

#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <stddef.h>
#include <string.h>

enum { KEY_SIZE = 32 };

struct digest {
    uint64_t sum;   /* over the fields, in any order */
    uint64_t place; /* of the struct that they stand in */
};

/* Folded by the compiler: KEY is the name, filled up with zeros. */
static inline uint64_t key_of(const char key[KEY_SIZE])
{
    uint64_t words[KEY_SIZE / sizeof(uint64_t)];

    memcpy(words, key, sizeof(words));
    return words[0] * 0x9e3779b97f4a7c15u + words[1] * 0xbf58476d1ce4e5b9u +
           words[2] * 0x94d049bb133111ebu + words[3] * 0xd6e8feb86659fd93u;
}

static inline void add_number(struct digest *to, uint64_t key, uint64_t value)
{
    if (value != 0)
        to->sum += hash_u64(to->place + key, value);
}

static inline void add_bytes(struct digest *to, uint64_t key, const void *bytes, size_t length)
{
    if (length > 0)
        to->sum += hash_bytes(to->place + key, bytes, length);
}

/* What follows stands in the struct KEY of the record, in its item INDEX. */
static inline void enter(struct digest *to, uint64_t key, size_t index)
{
    to->place = hash_u64(key, index);
}

/* --- by the lists --- */

#define WITH_KEY(name, call)                                                                       \
    {                                                                                              \
        static const char key[KEY_SIZE] = name;                                                    \
        _Static_assert(sizeof(name) <= sizeof(key), "the name fits");                              \
        call;                                                                                      \
    }

#define ADD(kind, name, size, doc) ADD_##kind(name)
#define ADD_NUMBER(name) WITH_KEY(#name, add_number(to, key_of(key), (uint64_t)from->name))
#define ADD_U64(name) ADD_NUMBER(name)
#define ADD_I64(name) ADD_NUMBER(name)
#define ADD_U32(name) ADD_NUMBER(name)
#define ADD_I32(name) ADD_NUMBER(name)
#define ADD_U8(name) ADD_NUMBER(name)
#define ADD_FLAG(name) ADD_NUMBER(name)
#define ADD_TEXT(name) WITH_KEY(#name, add_bytes(to, key_of(key), from->name, strlen(from->name)))
#define ADD_NAME(name) ADD_TEXT(name)
#define ADD_PAD(name)
#define ENTER(name, index) WITH_KEY(#name, enter(to, key_of(key), index))

#define OF_LIST(type, FIELDS)                                                                      \
    static void add_##type(struct digest *to, const struct type *from)                             \
    {                                                                                              \
        FIELDS(ADD)                                                                                \
    }

OF_LIST(started, STARTED_FIELDS)
OF_LIST(exited, EXITED_FIELDS)
OF_LIST(task_event, TASK_EVENT_FIELDS)
OF_LIST(task_define, TASK_DEFINE_FIELDS)
OF_LIST(alloc_member, ALLOC_MEMBER_FIELDS)
OF_LIST(alloc_assign, ALLOC_ASSIGN_FIELDS)
OF_LIST(volume_define, VOLUME_DEFINE_FIELDS)
OF_LIST(plugin_define, PLUGIN_DEFINE_FIELDS)
OF_LIST(plugin_identity, PLUGIN_IDENTITY_FIELDS)

/* A member that is forgotten here is one that the codec forgets, too, which has an assertion of
 * its own for each record. */
static void add_machine(struct digest *to, const struct machine *from)
{
    ENTER(machine, 0)
    ADD_NUMBER(revision)
    ADD_NUMBER(entered_ms)
    ADD_NUMBER(deadline_ms)
    ADD_NUMBER(generation)
    ADD_NUMBER(tickets)
    ADD_NUMBER(attempt)
    ADD_NUMBER(state)
    ADD_NUMBER(restored)
    for (size_t lane = 0; lane < LANE_COUNT; lane++) {
        ENTER(lane, lane)
        ADD_NUMBER(lane_ticket[lane])
        ADD_NUMBER(lane_effect[lane])
    }
}

static void add_task(struct digest *to, const struct task *from)
{
    ENTER(task, 0)
    TASK_FIELDS(ADD)
    WITH_KEY("results", add_bytes(to, key_of(key), from->results, from->results_bytes))
    ENTER(define, 0)
    add_task_define(to, &from->define);
    ENTER(process, 0)
    add_started(to, &from->process);
    ENTER(exit, 0)
    add_exited(to, &from->exit);
    for (size_t i = 0; i < from->events_count; i++) {
        ENTER(events, i)
        add_task_event(to, &from->events[i]);
    }
}

static void add_alloc(struct digest *to, const struct alloc *from)
{
    ENTER(alloc, 0)
    ALLOC_FIELDS(ADD)
    ENTER(assign, 0)
    add_alloc_assign(to, &from->assign);
    for (size_t i = 0; i < from->assign.members_count; i++) {
        ENTER(members, i)
        add_alloc_member(to, &from->assign.members[i]);
    }
}

static void add_volume(struct digest *to, const struct volume *from)
{
    ENTER(volume, 0)
    VOLUME_FIELDS(ADD)
    ENTER(define, 0)
    add_volume_define(to, &from->define);
}

static void add_plugin(struct digest *to, const struct plugin *from)
{
    ENTER(plugin, 0)
    PLUGIN_FIELDS(ADD)
    ENTER(define, 0)
    add_plugin_define(to, &from->define);
    ENTER(identity, 0)
    add_plugin_identity(to, &from->identity);
    ENTER(process, 0)
    add_started(to, &from->process);
}

uint64_t fsm_digest(const struct machine *record)
{
    struct digest digest = {0};

    add_machine(&digest, record);
    switch ((enum machine_kind)record->kind) {
    case MACHINE_TASK:
        add_task(&digest, task_of(record));
        break;
    case MACHINE_ALLOC:
        add_alloc(&digest, alloc_of(record));
        break;
    case MACHINE_VOLUME:
        add_volume(&digest, volume_of(record));
        break;
    case MACHINE_PLUGIN:
        add_plugin(&digest, plugin_of(record));
        break;
    case MACHINE_KIND_COUNT:
        unreachable("kind of machine");
    }
    return hash_u64(record->kind, digest.sum);
}
