/*
 * Restore: records as they were stored, RESTORE to each, then what damage makes necessary.
 *
 * Loading looks at nothing but the records (the world is asked by the effects of the RESTORE rows,
 * after the first commit).  Order: plugins, volumes, tasks, allocs.  A record that could not be
 * read costs one alloc (I-17): a lost task or volume fails its alloc through the normal stop path;
 * a lost alloc is made again from its members and its specification, condemned, and brought to an
 * end the same way (I-25).
 */
#include "core/machines.h"

#include <stdlib.h>
#include <string.h>

void agent_load(struct agent *agent, const struct machine_id *id, const struct machine *record)
{
    uint32_t size = fsm_record_size(record);

    check(!agent->restored);
    check(!agent->turned);
    check(slot_find(agent, id) == NULL);
    check(fsm_broken(record) == NULL);
    struct slot *slot = slot_add(agent, id);
    slot->record = malloc(size);
    check(slot->record != NULL);
    memcpy(slot->record, record, size);
}

void agent_continue(struct agent *agent, uint64_t next_sequence, uint64_t turn)
{
    check(next_sequence > 0);
    check(!agent->turned);
    agent->figures.sequence = next_sequence - 1;
    agent->figures.turns = turn;
}

static void restore_kind(struct agent *agent, enum machine_kind kind, const struct restore *restore)
{
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (slot->id.kind == kind)
            agent_tell(agent, &slot->id, fsm_definition(kind)->restore_event, restore);
    }
}

/* --- members whose records are not there --- */

/* What is lost of a volume can be undone if the specification says which one it was. */
static void adopt_volume(struct agent *agent, const char *alloc, const char *name)
{
    struct machine_id id = machine_id_join(MACHINE_VOLUME, alloc, name);
    struct machine_id owner = machine_id_make(MACHINE_ALLOC, alloc);
    struct volume_define define = {0};
    struct member_news news = {0};

    if (agent->world.claim != NULL && agent->world.claim(agent->world.ctx, alloc, name, &define)) {
        agent_tell(agent, &id, VE_ADOPT, &define);
        return;
    }
    (void)text_copy(news.name, sizeof(news.name), name); /* fits: a member's name */
    agent_tell(agent, &owner, AE_VOLUME_GONE, &news);
}

static bool is_lost(const struct agent *agent, const struct machine_id *alloc,
                    const struct alloc_member *member)
{
    bool task = member->kind == MEMBER_TASK;
    struct machine_id id =
        machine_id_join(task ? MACHINE_TASK : MACHINE_VOLUME, alloc->text, member->name);
    bool over = task ? member->run_state == TASK_RUN_DEAD : member->gone;

    return !over && slot_find(agent, &id) == NULL;
}

/* Members of KIND that their alloc counts on and whose records are not there. */
static void report_lost(struct agent *agent, const struct slot *slot, enum alloc_member_kind kind)
{
    const struct alloc *alloc = alloc_of(slot->record);

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct member_news news = {.text = "its record in the journal was damaged"};
        if (member->kind != kind || !is_lost(agent, &slot->id, member))
            continue;
        if (kind == MEMBER_VOLUME)
            adopt_volume(agent, slot->id.text, member->name);
        (void)text_copy(news.name, sizeof(news.name), member->name); /* same size */
        agent_tell(agent, &slot->id, AE_MEMBER_LOST, &news);
    }
}

static void report_all_lost(struct agent *agent, enum alloc_member_kind kind)
{
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (slot->id.kind == MACHINE_ALLOC && slot->record != NULL && !fsm_is_final(slot->record))
            report_lost(agent, slot, kind);
    }
}

/* --- allocs whose records are not there --- */

static void add_member(struct alloc_assign *assign, const struct slot *slot)
{
    struct alloc_member *member = &assign->members[assign->members_count++];

    *member = (struct alloc_member){.kind = MEMBER_VOLUME};
    if (slot->id.kind == MACHINE_TASK) {
        const struct task *task = task_of(slot->record);
        *member = (struct alloc_member){
            .kind = MEMBER_TASK,
            .lifecycle = task->define.lifecycle,
            .sidecar = task->define.sidecar,
            .leader = task->define.leader,
            .run_state = task->run_state,
            .failed = task->failed,
            .started = task->started_unix_ns != 0,
        };
    }
    (void)text_copy(member->name, sizeof(member->name), machine_id_name(&slot->id)); /* fits */
}

static bool is_member_of(const struct slot *slot, const struct machine_id *alloc)
{
    if (slot->id.kind != MACHINE_TASK && slot->id.kind != MACHINE_VOLUME)
        return false;
    struct machine_id owner = machine_id_owner(&slot->id);
    return machine_id_equal(&owner, alloc);
}

/* Makes the alloc ID again from what is left of it, in order to end it. */
static void condemn(struct agent *agent, const struct machine_id *id)
{
    struct alloc_assign *assign =
        calloc(1, sizeof(*assign) + ALLOC_MEMBERS_MAX * sizeof(assign->members[0]));

    check(assign != NULL);
    assign->condemned = 1;
    assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    (void)text_copy(assign->description, sizeof(assign->description),
                    "the alloc's record in the journal was damaged"); /* fits */
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (is_member_of(slot, id) && assign->members_count < ALLOC_MEMBERS_MAX)
            add_member(assign, slot);
    }
    uint32_t found = assign->members_count;
    if (agent->world.known != NULL)
        agent->world.known(agent->world.ctx, id->text, assign);
    agent_tell(agent, id, AE_ASSIGN, assign);
    for (uint32_t i = found; i < assign->members_count; i++) {
        if (assign->members[i].kind == MEMBER_VOLUME)
            adopt_volume(agent, id->text, assign->members[i].name);
    }
    free(assign);
}

/* True for what needs an alloc to come to an end.  A task that its alloc told to be gone does not:
 * that alloc was removed, and is not made again (I-19). */
static bool is_orphan(const struct agent *agent, const struct slot *slot)
{
    if (slot->id.kind != MACHINE_TASK && slot->id.kind != MACHINE_VOLUME)
        return false;
    struct machine_id owner = machine_id_owner(&slot->id);
    bool removed = slot->id.kind == MACHINE_TASK && task_of(slot->record)->remove_wanted;
    return !removed && slot_find(agent, &owner) == NULL;
}

static void condemn_owners(struct agent *agent)
{
    for (const struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (!is_orphan(agent, slot))
            continue;
        struct machine_id owner = machine_id_owner(&slot->id);
        const struct slot *first = agent->machines;
        while (first != slot && !(is_orphan(agent, first) && is_member_of(first, &owner)))
            first = first->hh.next;
        if (first == slot) /* an earlier one has led to it already */
            condemn(agent, &owner);
    }
}

void agent_adopt(struct agent *agent, const char *alloc)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);

    check(agent->restored);
    if (slot_find(agent, &id) != NULL)
        return;
    for (const struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (is_member_of(slot, &id))
            return; /* it has been condemned for them, or is being removed */
    }
    condemn(agent, &id);
}

void agent_restore(struct agent *agent, bool authority, bool rebooted)
{
    struct restore restore = {.authority = authority, .rebooted = rebooted};

    check(!agent->restored);
    check(!agent->turned);
    agent->restored = true;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        restore_kind(agent, (enum machine_kind)kind, &restore);
    report_all_lost(agent, MEMBER_VOLUME);
    condemn_owners(agent);
}

void agent_swept(struct agent *agent)
{
    check(agent->restored);
    report_all_lost(agent, MEMBER_TASK);
}
