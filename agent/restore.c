/*
 * Restore: records as they were stored, RESTORE to each, then what damage makes necessary.
 *
 * Loading looks at nothing but the records (the world is asked by the effects of the RESTORE rows,
 * after the first commit).  Order: plugins, volumes, tasks, allocs.  A record that could not be
 * read costs one alloc (I-17): a lost task fails its alloc through the normal stop path; a lost
 * alloc is made again from its tasks, condemned, and brought to an end the same way (I-25).
 */
#include "agent/machines.h"

#include <stdlib.h>
#include <string.h>

void agent_load(struct agent *agent, const struct machine_id *id, const struct machine *record)
{
    uint32_t size = fsm_record_size(record);

    check(agent->figures.turns == 0 || !agent->in_turn);
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

/* Tasks that their alloc counts on and whose records are not there. */
static void report_lost_tasks(struct agent *agent, const struct slot *slot)
{
    const struct alloc *alloc = alloc_of(slot->record);

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct member_news news = {.text = "its record in the journal was damaged"};
        if (member->kind != MEMBER_TASK || member->run_state == TASK_RUN_DEAD ||
            agent_task(agent, slot->id.text, member->name) != NULL)
            continue;
        (void)text_copy(news.name, sizeof(news.name), member->name); /* same size */
        agent_tell(agent, &slot->id, AE_TASK_LOST, &news);
    }
}

static void add_member(struct alloc_assign *assign, const struct slot *slot)
{
    const struct task *task = task_of(slot->record);
    struct alloc_member *member = &assign->members[assign->members_count++];

    *member = (struct alloc_member){
        .kind = MEMBER_TASK,
        .lifecycle = task->define.lifecycle,
        .sidecar = task->define.sidecar,
        .leader = task->define.leader,
        .run_state = task->run_state,
        .failed = task->failed,
        .started = task->started_unix_ns != 0,
    };
    (void)text_copy(member->name, sizeof(member->name), machine_id_name(&slot->id)); /* fits */
}

/* Makes the alloc OWNER again from its tasks, in order to end it. */
static void condemn(struct agent *agent, const struct machine_id *owner)
{
    struct alloc_assign *assign =
        calloc(1, sizeof(*assign) + ALLOC_MEMBERS_MAX * sizeof(assign->members[0]));
    const struct slot *first = NULL;
    struct machine_id id = *owner;

    check(assign != NULL);
    assign->condemned = 1;
    assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    (void)text_copy(assign->description, sizeof(assign->description),
                    "the alloc's record in the journal was damaged"); /* fits */
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (slot->id.kind != MACHINE_TASK || assign->members_count == ALLOC_MEMBERS_MAX)
            continue;
        struct machine_id other = machine_id_owner(&slot->id);
        if (!machine_id_equal(&other, &id))
            continue;
        add_member(assign, slot);
        first = first == NULL ? slot : first;
    }
    if (agent->world.known != NULL)
        agent->world.known(agent->world.ctx, id.text, assign);
    agent_tell(agent, &id, AE_ASSIGN, assign);
    if (first != NULL) { /* one answer, in case all of them are dead already */
        struct task_changed changed = {
            .run_state = task_of(first->record)->run_state,
            .failed = task_of(first->record)->failed,
            .started = task_of(first->record)->started_unix_ns != 0,
        };
        (void)text_copy(changed.name, sizeof(changed.name), machine_id_name(&first->id)); /* fits */
        agent_tell(agent, &id, AE_TASK_CHANGED, &changed);
    }
    free(assign);
}

/* False if an earlier task of the same lost alloc has led to its condemnation already. */
static bool is_first_of_owner(const struct agent *agent, const struct slot *slot,
                              const struct machine_id *owner)
{
    for (const struct slot *other = agent->machines; other != slot; other = other->hh.next) {
        if (other->id.kind != MACHINE_TASK)
            continue;
        struct machine_id theirs = machine_id_owner(&other->id);
        if (machine_id_equal(&theirs, owner))
            return false;
    }
    return true;
}

/* Tasks and volumes whose alloc's record is not there. */
static void adopt_orphans(struct agent *agent)
{
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (slot->id.kind != MACHINE_TASK && slot->id.kind != MACHINE_VOLUME)
            continue;
        struct machine_id owner = machine_id_owner(&slot->id);
        if (slot_find(agent, &owner) != NULL)
            continue;
        if (slot->id.kind == MACHINE_VOLUME)
            agent_tell(agent, &slot->id, VE_RELEASE, NULL);
        else if (is_first_of_owner(agent, slot, &owner))
            condemn(agent, &owner);
    }
}

void agent_restore(struct agent *agent, bool authority, bool rebooted)
{
    struct restore restore = {.authority = authority, .rebooted = rebooted};

    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        restore_kind(agent, (enum machine_kind)kind, &restore);
    for (struct slot *slot = agent->machines; slot != NULL; slot = slot->hh.next) {
        if (slot->id.kind == MACHINE_ALLOC)
            report_lost_tasks(agent, slot);
    }
    adopt_orphans(agent);
}
