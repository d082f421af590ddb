/*
 * The codec (codec.h): FlatBuffers on one side, the flat structs of fsm/ on the other.
 *
 * The only C++ in cairn, since Debian's FlatBuffers has no generator for C.  It uses the headers of
 * FlatBuffers and nothing of the C++ library, so that no program has to link that.
 *
 * The X-lists of fsm/ drive it: a field that is in a list and not in journal.fbs does not compile,
 * and the assertions on sizes below catch what is in no list.  What is read is never trusted:
 * check, FlatBuffers verifier, bounds of every text and list, and then the machine's own invariant.
 * Longer than a file should be, since there is to be one of its language only.
 */
#include <flatbuffers/flatbuffers.h>

#include "journal/journal_generated.h"

#include <new>
#include <stdlib.h>
#include <string.h>

/* Names that C allows and C++ does not.  The generator escapes in the same way, so that the lists
 * fit its accessors. */
#define _Noreturn [[noreturn]]
#define class class_
#define namespace namespace_
extern "C" {
#include "base/base.h"
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"
#include "journal/codec.h"
#include "journal/journal.h"
}
#undef class

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Vector;

/* --- memory --- */

static const size_t arena_bytes = 2 * CODEC_BYTES_MAX;

/* FlatBuffers' own allocator is never used, but its code refers to it.  A
 * fuzzer is itself written in C++, and needs them. */
#ifndef CODEC_BESIDE_CXX
void *operator new(size_t)
{
    unreachable("the codec has its own memory");
}
void *operator new[](size_t)
{
    unreachable("the codec has its own memory");
}
void operator delete(void *) noexcept
{
}
void operator delete(void *, size_t) noexcept
{
}
void operator delete[](void *) noexcept
{
}
void operator delete[](void *, size_t) noexcept
{
}
#endif

/* A builder writes downwards from the end, so that only the pages in use become resident. */
struct ArenaAllocator final : flatbuffers::Allocator {
    uint8_t *allocate(size_t size) override
    {
        check(size == arena_bytes);
        return arena;
    }
    void deallocate(uint8_t *, size_t) override
    {
    }
    uint8_t *reallocate_downward(uint8_t *, size_t, size_t, size_t, size_t) override
    {
        unreachable("a record or event is larger than CODEC_BYTES_MAX");
    }
    alignas(16) uint8_t arena[arena_bytes];
};

struct codec {
    ArenaAllocator allocator;
    FlatBufferBuilder builder{arena_bytes, &allocator};
    alignas(16) uint8_t scratch[CODEC_BYTES_MAX]; /* what is decoded, where it lies as it should */
};

struct codec *codec_new(void)
{
    void *place = malloc(sizeof(struct codec));

    check(place != nullptr);
    return new (place) codec;
}

void codec_free(struct codec *codec)
{
    if (codec == nullptr)
        return;
    codec->~codec();
    free(codec);
}

static FlatBufferBuilder &start(struct codec *codec)
{
    codec->builder.Clear();
    return codec->builder;
}

static const uint64_t check_seed = 0x636169726e2f3031; /* "cairn/01" */

uint64_t codec_check(const void *bytes, size_t length, uint64_t seal)
{
    return hash_bytes(check_seed, bytes, length) ^ seal;
}

template <typename Root>
static struct codec_value finish(FlatBufferBuilder &to, Offset<Root> root, const char *identifier,
                                 uint64_t seal)
{
    to.Finish(root, identifier);
    uint8_t *bytes = to.GetBufferPointer();
    const size_t length = to.GetSize();
    check(length + CODEC_CHECK_BYTES <= CODEC_BYTES_MAX);

    const uint64_t digest = codec_check(bytes, length, seal);
    bytes -= CODEC_CHECK_BYTES; /* free: the arena is larger than any value */
    memcpy(bytes, &digest, sizeof(digest));
    return {bytes, length + CODEC_CHECK_BYTES};
}

/* --- texts and bytes --- */

static bool is_zero(const void *bytes, size_t length)
{
    const uint8_t *at = static_cast<const uint8_t *>(bytes);

    return length == 0 || (at[0] == 0 && memcmp(at, at + 1, length - 1) == 0);
}

static Offset<String> put_text(FlatBufferBuilder &to, const char *text, size_t size)
{
    const size_t length = strnlen(text, size);

    check(length < size);
    check(is_zero(text + length, size - length)); /* equal texts are equal bytes */
    return length == 0 ? Offset<String>() : to.CreateString(text, length);
}

static bool take_text(const String *from, char *text, size_t size)
{
    if (from == nullptr)
        return true;
    if (from->size() >= size || memchr(from->data(), 0, from->size()) != nullptr)
        return false;
    memcpy(text, from->data(), from->size());
    return true;
}

static Offset<Vector<uint8_t>> put_bytes(FlatBufferBuilder &to, const uint8_t *bytes, size_t length)
{
    return length == 0 ? Offset<Vector<uint8_t>>() : to.CreateVector(bytes, length);
}

template <typename T> static size_t count_of(const Vector<T> *list)
{
    return list == nullptr ? 0 : list->size();
}

/* --- the lists: each kind of field, there and back --- */

#define JOIN_NOW(a, b) a##b
#define JOIN(a, b) JOIN_NOW(a, b)

/* Texts are built before the table that refers to them. */
#define BUILD(kind, name, size, doc) BUILD_##kind(name)
#define BUILD_U64(name)
#define BUILD_I64(name)
#define BUILD_U32(name)
#define BUILD_I32(name)
#define BUILD_U8(name)
#define BUILD_FLAG(name)
#define BUILD_TEXT(name)                                                                           \
    const Offset<String> JOIN(name, _at) = put_text(to, from.name, sizeof(from.name));
#define BUILD_NAME(name) BUILD_TEXT(name)
#define BUILD_PAD(name) check(is_zero(from.name, sizeof(from.name)));

#define ADD(kind, name, size, doc) ADD_##kind(name)
#define ADD_U64(name) JOIN(table.add_, name)(from.name);
#define ADD_I64(name) ADD_U64(name)
#define ADD_U32(name) ADD_U64(name)
#define ADD_I32(name) ADD_U64(name)
#define ADD_U8(name) ADD_U64(name)
#define ADD_FLAG(name) ADD_U64(name)
#define ADD_TEXT(name) JOIN(table.add_, name)(JOIN(name, _at));
#define ADD_NAME(name) ADD_TEXT(name)
#define ADD_PAD(name)

#define TAKE(kind, name, size, doc) TAKE_##kind(name)
#define TAKE_U64(name) to.name = from->name();
#define TAKE_I64(name) TAKE_U64(name)
#define TAKE_U32(name) TAKE_U64(name)
#define TAKE_I32(name) TAKE_U64(name)
#define TAKE_U8(name) TAKE_U64(name)
#define TAKE_FLAG(name) TAKE_U64(name)
#define TAKE_TEXT(name) whole = take_text(from->name(), to.name, sizeof(to.name)) && whole;
#define TAKE_NAME(name) TAKE_TEXT(name)
#define TAKE_PAD(name)

/* put() and take() of a struct that is its list and nothing else.  A table that is absent, since
 * an older cairn wrote the record, is all zeroes. */
#define PLAIN(type, FIELDS)                                                                        \
    static Offset<stored::type##_table> put(FlatBufferBuilder &to, const struct type &from)        \
    {                                                                                              \
        FIELDS(BUILD)                                                                              \
        stored::type##_tableBuilder table(to);                                                     \
        FIELDS(ADD)                                                                                \
        return table.Finish();                                                                     \
    }                                                                                              \
    static bool take(const stored::type##_table *from, struct type &to)                            \
    {                                                                                              \
        bool whole = true;                                                                         \
        if (from == nullptr)                                                                       \
            return true;                                                                           \
        FIELDS(TAKE)                                                                               \
        return whole;                                                                              \
    }

PLAIN(task_define, TASK_DEFINE_FIELDS)
PLAIN(alloc_member, ALLOC_MEMBER_FIELDS)
PLAIN(volume_define, VOLUME_DEFINE_FIELDS)
PLAIN(plugin_define, PLUGIN_DEFINE_FIELDS)
PLAIN(started, STARTED_FIELDS)
PLAIN(exited, EXITED_FIELDS)
PLAIN(failure, FAILURE_FIELDS)
PLAIN(kill_order, KILL_ORDER_FIELDS)
PLAIN(request, REQUEST_FIELDS)
PLAIN(restore, RESTORE_FIELDS)
PLAIN(task_changed, TASK_CHANGED_FIELDS)
PLAIN(member_news, MEMBER_NEWS_FIELDS)
PLAIN(claim, CLAIM_FIELDS)
PLAIN(plugin_identity, PLUGIN_IDENTITY_FIELDS)
PLAIN(ack, ACK_FIELDS)
PLAIN(checked, CHECKED_FIELDS)
PLAIN(task_event, TASK_EVENT_FIELDS)

/* --- structs with tails --- */

static Offset<stored::alloc_assign_table> put(FlatBufferBuilder &to,
                                              const struct alloc_assign &from)
{
    Offset<stored::alloc_member_table> members[ALLOC_MEMBERS_MAX];

    check(from.members_count <= ALLOC_MEMBERS_MAX);
    for (uint32_t i = 0; i < from.members_count; i++)
        members[i] = put(to, from.members[i]);
    const auto list = from.members_count == 0 ? Offset<Vector<Offset<stored::alloc_member_table>>>()
                                              : to.CreateVector(members, from.members_count);
    ALLOC_ASSIGN_FIELDS(BUILD)
    stored::alloc_assign_tableBuilder table(to);
    ALLOC_ASSIGN_FIELDS(ADD)
    table.add_members(list);
    return table.Finish();
}

static bool take(const stored::alloc_assign_table *from, struct alloc_assign &to)
{
    bool whole = true;

    if (from == nullptr)
        return true;
    ALLOC_ASSIGN_FIELDS(TAKE)
    if (to.members_count > ALLOC_MEMBERS_MAX || to.members_count != count_of(from->members())) {
        to.members_count = 0;
        return false;
    }
    memset(to.members, 0, to.members_count * sizeof(to.members[0]));
    for (uint32_t i = 0; i < to.members_count; i++)
        whole = take(from->members()->Get(i), to.members[i]) && whole;
    return whole;
}

static const uint32_t outcome_bytes_max = FSM_PAYLOAD_BYTES_MAX - sizeof(struct hook_outcome);

static Offset<stored::hook_outcome_table> put(FlatBufferBuilder &to,
                                              const struct hook_outcome &from)
{
    check(from.results_bytes <= outcome_bytes_max);
    const auto results = put_bytes(to, from.results, from.results_bytes);
    HOOK_OUTCOME_FIELDS(BUILD)
    stored::hook_outcome_tableBuilder table(to);
    HOOK_OUTCOME_FIELDS(ADD)
    table.add_results(results);
    return table.Finish();
}

static bool take(const stored::hook_outcome_table *from, struct hook_outcome &to)
{
    bool whole = true;

    if (from == nullptr)
        return true;
    HOOK_OUTCOME_FIELDS(TAKE)
    if (to.results_bytes > outcome_bytes_max || to.results_bytes != count_of(from->results()))
        return false;
    if (to.results_bytes > 0)
        memcpy(to.results, from->results()->data(), to.results_bytes);
    return results_valid(to.results, to.results_bytes) && whole;
}

/* --- records --- */

static_assert(sizeof(struct machine) == 3 * 8 + 3 * 4 + LANE_COUNT * 5 + 3,
              "struct machine has changed: put and take below, machine_table in journal.fbs");

static Offset<stored::machine_table> put(FlatBufferBuilder &to, const struct machine &from)
{
    const auto tickets = to.CreateVector(from.lane_ticket, LANE_COUNT);
    const auto effects = to.CreateVector(from.lane_effect, LANE_COUNT);

    stored::machine_tableBuilder table(to);
    table.add_revision(from.revision);
    table.add_entered_ms(from.entered_ms);
    table.add_deadline_ms(from.deadline_ms);
    table.add_generation(from.generation);
    table.add_tickets(from.tickets);
    table.add_attempt(from.attempt);
    table.add_lane_ticket(tickets);
    table.add_lane_effect(effects);
    table.add_state(from.state);
    table.add_restored(from.restored);
    return table.Finish();
}

static bool take(const stored::machine_table *from, struct machine &to)
{
    if (from == nullptr || count_of(from->lane_ticket()) > LANE_COUNT ||
        count_of(from->lane_effect()) > LANE_COUNT)
        return false;
    to.revision = from->revision();
    to.entered_ms = from->entered_ms();
    to.deadline_ms = from->deadline_ms();
    to.generation = from->generation();
    to.tickets = from->tickets();
    to.attempt = from->attempt();
    for (uint32_t i = 0; i < count_of(from->lane_ticket()); i++)
        to.lane_ticket[i] = from->lane_ticket()->Get(i);
    for (uint32_t i = 0; i < count_of(from->lane_effect()); i++)
        to.lane_effect[i] = from->lane_effect()->Get(i);
    to.state = from->state();
    to.restored = from->restored();
    return true;
}

/* Bytes of a struct that is its list, to see that nothing stands beside the lists. */
#define BYTES(kind, name, size, doc) +BYTES_##kind(size)
#define BYTES_U64(size) 8
#define BYTES_I64(size) 8
#define BYTES_U32(size) 4
#define BYTES_I32(size) 4
#define BYTES_U8(size) 1
#define BYTES_FLAG(size) 1
#define BYTES_TEXT(size) size
#define BYTES_NAME(size) size
#define BYTES_PAD(size) size

static_assert(sizeof(struct plugin) == sizeof(struct machine) + (0 PLUGIN_FIELDS(BYTES)) +
                                           sizeof(struct plugin_define) +
                                           sizeof(struct plugin_identity) + sizeof(struct started),
              "struct plugin has a member that the codec does not know");
static_assert(sizeof(struct volume) ==
                  sizeof(struct machine) + (0 VOLUME_FIELDS(BYTES)) + sizeof(struct volume_define),
              "struct volume has a member that the codec does not know");
static_assert(sizeof(struct alloc) ==
                  sizeof(struct machine) + (0 ALLOC_FIELDS(BYTES)) + sizeof(struct alloc_assign),
              "struct alloc has a member that the codec does not know");
static_assert(offsetof(struct task, results) ==
                  sizeof(struct machine) + (0 TASK_FIELDS(BYTES)) + sizeof(struct task_define) +
                      sizeof(struct started) + sizeof(struct exited) +
                      TASK_EVENTS_MAX * sizeof(struct task_event) + sizeof(uint32_t),
              "struct task has a member that the codec does not know");

static Offset<void> put(FlatBufferBuilder &to, const struct plugin &from)
{
    const auto machine = put(to, from.machine);
    const auto define = put(to, from.define);
    const auto identity = put(to, from.identity);
    const auto process = put(to, from.process);

    PLUGIN_FIELDS(BUILD)
    stored::plugin_tableBuilder table(to);
    PLUGIN_FIELDS(ADD)
    table.add_machine(machine);
    table.add_define(define);
    table.add_identity(identity);
    table.add_process(process);
    return table.Finish().Union();
}

static bool take(const stored::plugin_table *from, struct plugin &to)
{
    bool whole = take(from->machine(), to.machine);

    PLUGIN_FIELDS(TAKE)
    whole = take(from->define(), to.define) && whole;
    whole = take(from->identity(), to.identity) && whole;
    return take(from->process(), to.process) && whole;
}

static Offset<void> put(FlatBufferBuilder &to, const struct volume &from)
{
    const auto machine = put(to, from.machine);
    const auto define = put(to, from.define);

    VOLUME_FIELDS(BUILD)
    stored::volume_tableBuilder table(to);
    VOLUME_FIELDS(ADD)
    table.add_machine(machine);
    table.add_define(define);
    return table.Finish().Union();
}

static bool take(const stored::volume_table *from, struct volume &to)
{
    bool whole = take(from->machine(), to.machine);

    VOLUME_FIELDS(TAKE)
    return take(from->define(), to.define) && whole;
}

static Offset<void> put(FlatBufferBuilder &to, const struct task &from)
{
    Offset<stored::task_event_table> events[TASK_EVENTS_MAX];

    check(from.events_count <= TASK_EVENTS_MAX);
    check(from.results_bytes <= RESULTS_BYTES_MAX);
    check(is_zero(&from.events[from.events_count],
                  (TASK_EVENTS_MAX - from.events_count) * sizeof(from.events[0])));
    for (uint8_t i = 0; i < from.events_count; i++)
        events[i] = put(to, from.events[i]);
    const auto list = from.events_count == 0 ? Offset<Vector<Offset<stored::task_event_table>>>()
                                             : to.CreateVector(events, from.events_count);
    const auto results = put_bytes(to, from.results, from.results_bytes);
    const auto machine = put(to, from.machine);
    const auto define = put(to, from.define);
    const auto process = put(to, from.process);
    const auto exit = put(to, from.exit);

    TASK_FIELDS(BUILD)
    stored::task_tableBuilder table(to);
    TASK_FIELDS(ADD)
    table.add_machine(machine);
    table.add_define(define);
    table.add_process(process);
    table.add_exit(exit);
    table.add_events(list);
    table.add_results_bytes(from.results_bytes);
    table.add_results(results);
    return table.Finish().Union();
}

static bool take(const stored::task_table *from, struct task &to)
{
    bool whole = take(from->machine(), to.machine);

    TASK_FIELDS(TAKE)
    whole = take(from->define(), to.define) && whole;
    whole = take(from->process(), to.process) && whole;
    whole = take(from->exit(), to.exit) && whole;
    if (to.events_count > TASK_EVENTS_MAX || to.events_count != count_of(from->events()))
        return false;
    for (uint8_t i = 0; i < to.events_count; i++)
        whole = take(from->events()->Get(i), to.events[i]) && whole;

    to.results_bytes = from->results_bytes();
    if (to.results_bytes > RESULTS_BYTES_MAX || to.results_bytes != count_of(from->results()))
        return false;
    if (to.results_bytes > 0)
        memcpy(to.results, from->results()->data(), to.results_bytes);
    /* The size of the record is that of the struct with its padding, and the results. */
    memset(to.results + to.results_bytes, 0, sizeof(to) - offsetof(struct task, results));
    return whole;
}

static Offset<void> put(FlatBufferBuilder &to, const struct alloc &from)
{
    const auto machine = put(to, from.machine);
    const auto assign = put(to, from.assign);

    ALLOC_FIELDS(BUILD)
    stored::alloc_tableBuilder table(to);
    ALLOC_FIELDS(ADD)
    table.add_machine(machine);
    table.add_assign(assign);
    return table.Finish().Union();
}

static bool take(const stored::alloc_table *from, struct alloc &to)
{
    bool whole = take(from->machine(), to.machine);

    ALLOC_FIELDS(TAKE)
    return take(from->assign(), to.assign) && whole;
}

/*                   kind    struct  */
#define RECORD_LIST(X) X(PLUGIN, plugin) X(VOLUME, volume) X(TASK, task) X(ALLOC, alloc)

static const char record_identifier[] = "CREC";
static const char event_identifier[] = "CEVT";

struct codec_value codec_encode_record(struct codec *codec, const struct machine *record,
                                       uint64_t seal)
{
    FlatBufferBuilder &to = start(codec);
    stored::body type = stored::body_NONE;
    Offset<void> body;

    check(fsm_broken(record) == nullptr);
    switch (static_cast<enum machine_kind>(record->kind)) {
#define X(kind, type_name)                                                                         \
    case MACHINE_##kind:                                                                           \
        type = stored::body_##type_name##_table;                                                   \
        body = put(to, *type_name##_of(record));                                                   \
        break;
        RECORD_LIST(X)
#undef X
    case MACHINE_KIND_COUNT:
        break;
    }
    check(type != stored::body_NONE);
    return finish(to, stored::Createrecord_table(to, type, body), record_identifier, seal);
}

/* The FlatBuffer in BYTES, in memory that is aligned as it wants it, or NULL with the reason. */
static const uint8_t *open_value(struct codec *codec, const void *bytes, size_t length,
                                 uint64_t seal, size_t *ret_length, const char **ret_reason)
{
    uint64_t digest;

    *ret_reason = "too short";
    if (length < CODEC_CHECK_BYTES + 8)
        return nullptr;
    *ret_reason = "too long";
    if (length > CODEC_BYTES_MAX)
        return nullptr;
    const uint8_t *buffer = static_cast<const uint8_t *>(bytes) + CODEC_CHECK_BYTES;
    *ret_length = length - CODEC_CHECK_BYTES;
    memcpy(&digest, bytes, sizeof(digest));
    *ret_reason = "the bytes do not match their check";
    if (digest != codec_check(buffer, *ret_length, seal))
        return nullptr;

    *ret_reason = nullptr;
    if (reinterpret_cast<uintptr_t>(buffer) % 8 == 0)
        return buffer;
    memcpy(codec->scratch, buffer, *ret_length); /* LMDB aligns values to two bytes only */
    return codec->scratch;
}

const char *codec_decode_record(struct codec *codec, const void *bytes, size_t length,
                                uint64_t seal, struct machine *record)
{
    const char *reason;

    memset(record, 0, sizeof(*record));
    const uint8_t *buffer = open_value(codec, bytes, length, seal, &length, &reason);
    if (buffer == nullptr)
        return reason;
    flatbuffers::Verifier verifier(buffer, length);
    if (!verifier.VerifyBuffer<stored::record_table>(record_identifier))
        return "not a record";

    const stored::record_table *from = flatbuffers::GetRoot<stored::record_table>(buffer);
    bool known = false, whole = false;
#define X(kind_name, type_name)                                                                    \
    if (from->body_type() == stored::body_##type_name##_table && from->body() != nullptr) {        \
        known = true;                                                                              \
        memset(static_cast<void *>(record), 0, sizeof(struct type_name));                          \
        record->kind = MACHINE_##kind_name;                                                        \
        whole = take(from->body_as_##type_name##_table(),                                          \
                     *reinterpret_cast<struct type_name *>(record));                               \
    }
    RECORD_LIST(X)
#undef X
    if (!known)
        return "a record of an unknown kind";
    if (!whole)
        return "a text or list in the record does not fit";
    return fsm_broken(record);
}

/* --- events --- */

static_assert(sizeof(struct fsm_issue) == 8, "struct fsm_issue has changed");
static_assert(sizeof(stored::issue_table) == 8, "issues are stored as they are");
static_assert(sizeof(struct fsm_event) == 32, "struct fsm_event has changed");
static_assert(sizeof(struct journal_event) == 5 * 8 + 2 * 4 + sizeof(struct machine_id) +
                                                  sizeof(struct fsm_event) + 8 +
                                                  FSM_EFFECTS_MAX * sizeof(struct fsm_issue) + 8,
              "struct journal_event has changed: encode and decode below, event_table");

static Offset<void> put_payload(FlatBufferBuilder &to, enum fsm_payload kind, const void *payload,
                                stored::payload *ret_type)
{
    *ret_type = stored::payload_NONE;
    switch (kind) {
    case PAYLOAD_NONE:
        return 0;
#define X(kind_name, type_name)                                                                    \
    case PAYLOAD_##kind_name:                                                                      \
        check(payload != nullptr);                                                                 \
        *ret_type = stored::payload_##type_name##_table;                                           \
        return put(to, *static_cast<const struct type_name *>(payload)).Union();
        PAYLOAD_LIST(X)
#undef X
    case PAYLOAD_KIND_COUNT:
        break;
    }
    unreachable("payload kind");
}

/* The payload of KIND; a reason if the event carries another one or if it does not fit. */
static const char *take_payload(const stored::event_table *from, enum fsm_payload kind, void *to)
{
    bool right = false, whole = true;

    switch (kind) {
    case PAYLOAD_NONE:
        right = from->payload_type() == stored::payload_NONE;
        break;
#define X(kind_name, type_name)                                                                    \
    case PAYLOAD_##kind_name:                                                                      \
        right = from->payload_type() == stored::payload_##type_name##_table &&                     \
                from->payload() != nullptr;                                                        \
        if (right) {                                                                               \
            memset(to, 0, sizeof(struct type_name));                                               \
            whole = take(from->payload_as_##type_name##_table(),                                   \
                         *static_cast<struct type_name *>(to));                                    \
        }                                                                                          \
        break;
        PAYLOAD_LIST(X)
#undef X
    case PAYLOAD_KIND_COUNT:
        break;
    }
    if (!right)
        return "the payload is not of the event's kind";
    return whole ? nullptr : "a text or list in the payload does not fit";
}

struct codec_value codec_encode_event(struct codec *codec, const struct journal_event *event,
                                      uint64_t seal)
{
    FlatBufferBuilder &to = start(codec);
    const struct fsm_def *def = fsm_definition(static_cast<enum machine_kind>(event->id.kind));
    stored::payload type;
    stored::issue_table issues[FSM_EFFECTS_MAX];

    check(event->event.kind < def->events_count);
    check(event->issues_count <= FSM_EFFECTS_MAX);
    check(event->id.text[0] != '\0');
    const auto payload =
        put_payload(to, static_cast<enum fsm_payload>(def->events[event->event.kind].payload),
                    event->event.payload, &type);
    for (uint8_t i = 0; i < event->issues_count; i++) {
        const struct fsm_issue &issue = event->issues[i];
        issues[i] = stored::issue_table(issue.ticket, issue.effect, issue.lane);
    }
    const auto list = event->issues_count == 0
                          ? Offset<Vector<const stored::issue_table *>>()
                          : to.CreateVectorOfStructs(issues, event->issues_count);
    const auto id = put_text(to, event->id.text, sizeof(event->id.text));

    stored::event_tableBuilder table(to);
    table.add_sequence(event->sequence);
    table.add_turn(event->turn);
    table.add_seed(event->seed);
    table.add_now_ms(event->now_ms);
    table.add_unix_ns(event->unix_ns);
    table.add_digest(event->digest);
    table.add_peers(event->peers);
    table.add_ticket(event->event.ticket);
    table.add_generation(event->event.generation);
    table.add_machine_id(id);
    table.add_issues(list);
    table.add_payload(payload);
    table.add_guard(event->guard);
    table.add_machine_kind(event->id.kind);
    table.add_kind(event->event.kind);
    table.add_lane(event->event.lane);
    table.add_before(event->before);
    table.add_after(event->after);
    table.add_payload_type(type);
    return finish(to, table.Finish(), event_identifier, seal);
}

static const char *take_issues(const stored::event_table *from, const struct fsm_def *def,
                               struct journal_event *event)
{
    const size_t count = count_of(from->issues());

    if (count > FSM_EFFECTS_MAX)
        return "too many effects";
    event->issues_count = static_cast<uint8_t>(count);
    for (uint32_t i = 0; i < count; i++) {
        const stored::issue_table *issue = from->issues()->Get(i);
        if (issue->effect() == 0 || issue->effect() >= def->effects_count ||
            issue->lane() != def->effects[issue->effect()].lane)
            return "an effect that its machine does not have";
        event->issues[i].effect = issue->effect();
        event->issues[i].lane = issue->lane();
        event->issues[i].ticket = issue->ticket();
    }
    return nullptr;
}

const char *codec_decode_event(struct codec *codec, const void *bytes, size_t length, uint64_t seal,
                               struct journal_event *event, void *payload)
{
    const char *reason;

    memset(event, 0, sizeof(*event));
    const uint8_t *buffer = open_value(codec, bytes, length, seal, &length, &reason);
    if (buffer == nullptr)
        return reason;
    flatbuffers::Verifier verifier(buffer, length);
    if (!verifier.VerifyBuffer<stored::event_table>(event_identifier))
        return "not an event";

    const stored::event_table *from = flatbuffers::GetRoot<stored::event_table>(buffer);
    if (from->machine_kind() >= MACHINE_KIND_COUNT)
        return "an event of an unknown kind of machine";
    const struct fsm_def *def =
        fsm_definition(static_cast<enum machine_kind>(from->machine_kind()));
    event->id.kind = from->machine_kind();
    if (!take_text(from->machine_id(), event->id.text, sizeof(event->id.text)) ||
        event->id.text[0] == '\0')
        return "an event without a machine";
    if (from->kind() >= def->events_count || from->lane() >= LANE_COUNT ||
        from->before() >= def->states_count || from->after() >= def->states_count)
        return "an event that its machine does not have";

    event->sequence = from->sequence();
    event->turn = from->turn();
    event->seed = from->seed();
    event->now_ms = from->now_ms();
    event->unix_ns = from->unix_ns();
    event->peers = from->peers();
    event->event.kind = from->kind();
    event->event.lane = from->lane();
    event->event.ticket = from->ticket();
    event->event.generation = from->generation();
    event->row = fsm_row_marked(def, from->before(), from->kind(), from->guard());
    event->guard = from->guard();
    event->before = from->before();
    event->after = from->after();
    event->digest = from->digest();
    reason = take_issues(from, def, event);
    if (reason != nullptr)
        return reason;

    const auto kind = static_cast<enum fsm_payload>(def->events[from->kind()].payload);
    if (kind != PAYLOAD_NONE)
        event->event.payload = payload;
    return take_payload(from, kind, payload);
}

/* --- the door --- */

static void give(const struct codec_value &value, void **ret_bytes, size_t *ret_length)
{
    void *bytes = malloc(value.length);

    check(bytes != nullptr);
    memcpy(bytes, value.bytes, value.length);
    *ret_bytes = bytes;
    *ret_length = value.length;
}

void journal_encode_record(const struct machine *record, void **ret_bytes, size_t *ret_length)
{
    struct codec *codec = codec_new();

    give(codec_encode_record(codec, record, 0), ret_bytes, ret_length);
    codec_free(codec);
}

void journal_encode_event(const struct journal_event *event, void **ret_bytes, size_t *ret_length)
{
    struct codec *codec = codec_new();

    give(codec_encode_event(codec, event, 0), ret_bytes, ret_length);
    codec_free(codec);
}

int journal_decode_record(const void *bytes, size_t length, struct machine *record, struct err *err)
{
    struct codec *codec = codec_new();
    const char *reason = codec_decode_record(codec, bytes, length, 0, record);

    codec_free(codec);
    return reason == nullptr ? 0 : err_set(err, ERR_CORRUPT, "%s", reason);
}

int journal_decode_event(const void *bytes, size_t length, struct journal_event *event,
                         void *payload, struct err *err)
{
    struct codec *codec = codec_new();
    const char *reason = codec_decode_event(codec, bytes, length, 0, event, payload);

    codec_free(codec);
    return reason == nullptr ? 0 : err_set(err, ERR_CORRUPT, "%s", reason);
}
