/*
 * Sense: whether a record that was read could have been written under these tables.
 *
 * The codec has seen to it that the bytes are whole, fsm_broken that the fields agree.  What is
 * left is what no step checks, because no step makes it: counters without room to count on, times
 * that no clock shows, flags that are neither, names that are no text, ids that name no machine.
 * Each is found from the lists that the structs are made of (fields.h).  Pure.
 */
#include "fsm/alloc.h"
#include "fsm/plugin.h"
#include "fsm/task.h"
#include "fsm/volume.h"

#include <string.h>

/* Of the smaller counters: as much again until it would not fit. */
#define COUNT_MAX ((uint32_t)1 << 31)

/* --- texts --- */

/* Ended within SIZE, and zeroes from there on. */
static bool is_text(const char *text, size_t size)
{
    const char *end = memchr(text, 0, size);

    for (const char *at = end; at != NULL && at < text + size; at++) {
        if (*at != '\0')
            return false;
    }
    return end != NULL;
}

static bool is_name(const char *text, size_t size)
{
    if (!is_text(text, size) || !text_is_utf8(text, strlen(text)))
        return false;
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20u || *at == 0x7f)
            return false;
    }
    return true;
}

/* --- structs: the first field that makes no sense, NULL: all do --- */

#define SENSE(kind, name, size, doc) SENSE_##kind(name)
#define SENSE_U64(name)                                                                            \
    if (from->name > NUMBER_MAX)                                                                   \
        return #name " is more than anything ever counted";
#define SENSE_U32(name)                                                                            \
    if (from->name >= COUNT_MAX)                                                                   \
        return #name " is more than anything ever counted";
#define SENSE_I64(name) /* wall clocks and what payloads say: decides nothing */
#define SENSE_I32(name)
#define SENSE_U8(name) /* enums are looked at by the machine's own invariant */
#define SENSE_FLAG(name)                                                                           \
    if (from->name > 1)                                                                            \
        return #name " is neither 0 nor 1";
#define SENSE_TEXT(name)                                                                           \
    if (!is_text(from->name, sizeof(from->name)))                                                  \
        return #name " is not a text";
#define SENSE_NAME(name)                                                                           \
    if (!is_name(from->name, sizeof(from->name)))                                                  \
        return #name " is not a name";
#define SENSE_PAD(name)                                                                            \
    for (size_t i = 0; i < sizeof(from->name); i++) {                                              \
        if (from->name[i] != 0)                                                                    \
            return "there is something between the fields";                                        \
    }

#define SENSIBLE(type, FIELDS)                                                                     \
    static const char *type##_fields(const struct type *from)                                      \
    {                                                                                              \
        FIELDS(SENSE)                                                                              \
        return NULL;                                                                               \
    }
SENSIBLE(task_define, TASK_DEFINE_FIELDS)
SENSIBLE(started, STARTED_FIELDS)
SENSIBLE(exited, EXITED_FIELDS)
SENSIBLE(task_event, TASK_EVENT_FIELDS)
SENSIBLE(task, TASK_FIELDS)
SENSIBLE(alloc_member, ALLOC_MEMBER_FIELDS)
SENSIBLE(alloc_assign, ALLOC_ASSIGN_FIELDS)
SENSIBLE(alloc, ALLOC_FIELDS)
SENSIBLE(volume_define, VOLUME_DEFINE_FIELDS)
SENSIBLE(volume, VOLUME_FIELDS)
SENSIBLE(plugin_define, PLUGIN_DEFINE_FIELDS)
SENSIBLE(plugin_identity, PLUGIN_IDENTITY_FIELDS)
SENSIBLE(plugin, PLUGIN_FIELDS)

/* WHY unless it is NULL. */
#define FAIL_IF(why)                                                                               \
    do {                                                                                           \
        const char *why_ = (why);                                                                  \
        if (why_ != NULL)                                                                          \
            return why_;                                                                           \
    } while (0)

static const char *whole_task(const struct task *task)
{
    FAIL_IF(task_fields(task));
    FAIL_IF(task_define_fields(&task->define));
    FAIL_IF(started_fields(&task->process));
    FAIL_IF(exited_fields(&task->exit));
    for (size_t i = 0; i < TASK_EVENTS_MAX; i++)
        FAIL_IF(task_event_fields(&task->events[i]));
    return NULL;
}

/* One part of a path, that nobody else's can be. */
static bool is_part(const char *text, size_t size)
{
    return text[0] != '\0' && text[0] != '.' && strlen(text) < size && strchr(text, '/') == NULL &&
           !text_equal(text, "alloc");
}

static bool has_twins(const struct alloc_assign *assign)
{
    for (uint32_t i = 0; i < assign->members_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (assign->members[i].kind == assign->members[k].kind &&
                text_equal(assign->members[i].name, assign->members[k].name))
                return true;
        }
    }
    return false;
}

static const char *whole_alloc(const struct alloc *alloc)
{
    FAIL_IF(alloc_fields(alloc));
    FAIL_IF(alloc_assign_fields(&alloc->assign));
    if (alloc->assign.job_id[0] != '\0' && alloc->assign.namespace[0] == '\0')
        return "its job is in no namespace";
    if (alloc->assign.members_count == 0 && !alloc_state_ends(alloc->machine.state))
        return "it has no tasks, and waits for them"; /* whoever stops it would wait for ever */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        FAIL_IF(alloc_member_fields(&alloc->assign.members[i]));
        if (!is_part(alloc->assign.members[i].name, SPEC_NAME_SIZE))
            return "no member has such a name";
    }
    return has_twins(&alloc->assign) ? "two members of one name" : NULL;
}

static const char *whole_volume(const struct volume *volume)
{
    FAIL_IF(volume_fields(volume));
    return volume_define_fields(&volume->define);
}

static const char *whole_plugin(const struct plugin *plugin)
{
    FAIL_IF(plugin_fields(plugin));
    FAIL_IF(plugin_define_fields(&plugin->define));
    FAIL_IF(plugin_identity_fields(&plugin->identity));
    return started_fields(&plugin->process);
}

/* --- heads and ids --- */

static const char *whole_head(const struct machine *record)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)record->kind);
    const struct machine *from = record;

    SENSE_U64(revision)
    SENSE_U64(entered_ms)
    SENSE_U64(deadline_ms)
    SENSE_U32(generation)
    SENSE_U32(tickets)
    SENSE_U32(attempt)
    SENSE_FLAG(restored)
    if ((def->states[record->state].flags & (FSM_INITIAL | FSM_FINAL)) != 0)
        return "no record is ever stored in this state";
    return def->mistimed == NULL ? NULL : def->mistimed(record);
}

/* What names a directory must not lead out of where it is. */
static bool is_alloc_id(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        bool letter = text[i] >= 'a' && text[i] <= 'z', digit = text[i] >= '0' && text[i] <= '9';
        if (!letter && !digit && text[i] != '-')
            return false;
    }
    return length > 0 && length < UUID_TEXT_SIZE;
}

bool machine_id_is_sound(const struct machine_id *id)
{
    if (id->kind >= MACHINE_KIND_COUNT || !is_name(id->text, sizeof(id->text)))
        return false;
    if (id->kind == MACHINE_ALLOC)
        return is_alloc_id(id->text);
    if (strchr(id->text, '/') == NULL)
        return false;
    if (id->kind == MACHINE_PLUGIN)
        return id->text[0] != '/' && is_part(machine_id_name(id), PLUGIN_NAME_SIZE);
    struct machine_id owner = machine_id_owner(id);
    return is_alloc_id(owner.text) && is_part(machine_id_name(id), SPEC_NAME_SIZE);
}

const char *fsm_senseless(const struct machine_id *id, const struct machine *record)
{
    FAIL_IF(fsm_broken(record));
    if (id->kind != record->kind)
        return "a record of another kind than its id says";
    if (!machine_id_is_sound(id))
        return "no machine has such an id";
    FAIL_IF(whole_head(record));
    switch ((enum machine_kind)record->kind) {
    case MACHINE_PLUGIN:
        return whole_plugin(plugin_of(record));
    case MACHINE_VOLUME:
        return whole_volume(volume_of(record));
    case MACHINE_TASK:
        return whole_task(task_of(record));
    case MACHINE_ALLOC:
        return whole_alloc(alloc_of(record));
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}
