/*
 * Restore: records as they were stored, RESTORE to each, then what damage makes necessary.
 *
 * Loading looks at nothing but the records (the world is asked by the effects of the RESTORE rows,
 * after the first commit).  Order: plugins, volumes, tasks, allocs.  A record that could not be
 * read costs one alloc (I-17): a lost task or volume fails its alloc through the normal stop path;
 * a lost alloc is made again from its members and its specification, condemned, and brought to an
 * end the same way (I-25).  Records that contradict each other count as damaged, too: which of them
 * is decided by alloc_believe, before anything is restored.
 */
#include "core/machines/part.h"

#include <stdlib.h>
#include <string.h>

void core_load(struct core *core, const struct machine_id *id, const struct machine *record)
{
    uint32_t size = fsm_record_size(record);

    check(!core->restored);
    check(!core->turned);
    check(slot_find(core, id) == NULL);
    check(fsm_broken(record) == NULL);
    struct slot *slot = slot_add(core, id);
    slot->read = true;
    struct machine *copy = malloc(size);
    check(copy != NULL);
    memcpy(copy, record, size);
    slot_commit(core, slot, copy);
    index_join(core, slot);
}

void core_continue(struct core *core, uint64_t next_sequence, uint64_t turn)
{
    check(next_sequence > 0);
    check(!core->turned);
    core->figures.sequence = next_sequence - 1;
    core->figures.turns = turn;
}

static void restore_kind(struct core *core, enum machine_kind kind, const struct restore *restore)
{
    for (struct slot *slot = core->kinds[kind].first; slot != NULL; slot = slot->kind_next)
        core_tell(core, &slot->id, fsm_definition(kind)->restore_event, restore);
}

/* --- members whose records are not there --- */

static const char nameless_text[] =
    "its record in the journal was damaged, and nothing says what it has mounted: look for it";

/* By the specification. */
static bool is_specified(const struct core *core, const char *alloc, const char *name,
                         struct volume_define *ret_define)
{
    return core->world.claim != NULL &&
           core->world.claim(core->world.ctx, alloc, name, ret_define) &&
           ret_define->plugin[0] != '\0' && ret_define->volume[0] != '\0';
}

/* What is lost of a volume can be undone if the specification says which one it was, or the place
 * of one that is mounted, FOUND of which others have been given.  False: neither does, and somebody
 * may have to look for what is left. */
static bool adopt_volume(struct core *core, const char *alloc, const char *name, unsigned *found)
{
    struct machine_id id = machine_id_join(MACHINE_VOLUME, alloc, name);
    struct machine_id owner = machine_id_make(MACHINE_ALLOC, alloc);
    struct volume_define define = {0};
    struct member_news news = {0};

    bool known = is_specified(core, alloc, name, &define);
    if (!known && core->world.place != NULL &&
        core->world.place(core->world.ctx, alloc, *found, &define)) {
        known = true;
        (*found)++;
    }
    if (known) {
        core_tell(core, &id, VE_ADOPT, &define);
        return true;
    }
    (void)text_copy(news.name, sizeof(news.name), name); /* fits: a member's name */
    core_tell(core, &owner, AE_VOLUME_GONE, &news);
    return false;
}

/* A slot without a record only waits for work under way. */
static bool is_there(const struct core *core, const struct machine_id *id)
{
    const struct slot *slot = slot_find(core, id);

    return slot != NULL && slot->record != NULL;
}

static bool is_lost(const struct core *core, const struct machine_id *alloc,
                    const struct alloc_member *member)
{
    bool task = member->kind == MEMBER_TASK;
    struct machine_id id =
        machine_id_join(task ? MACHINE_TASK : MACHINE_VOLUME, alloc->text, member->name);
    bool over = task ? member->run_state == TASK_RUN_DEAD : member->gone;

    return !over && !is_there(core, &id);
}

/* Members of KIND that their alloc counts on and whose records are not there. */
static void report_lost(struct core *core, const struct slot *slot, enum alloc_member_kind kind)
{
    const struct alloc *alloc = alloc_of(slot->record);
    unsigned found = 0;

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        struct member_news news = {.text = "its record in the journal was damaged",
                                   .volume = kind == MEMBER_VOLUME};
        if (member->kind != kind || !is_lost(core, &slot->id, member))
            continue;
        if (kind == MEMBER_VOLUME && !adopt_volume(core, slot->id.text, member->name, &found))
            (void)text_copy(news.text, sizeof(news.text), nameless_text); /* fits */
        (void)text_copy(news.name, sizeof(news.name), member->name);      /* same size */
        core_tell(core, &slot->id, AE_MEMBER_LOST, &news);
    }
}

static void report_all_lost(struct core *core, enum alloc_member_kind kind)
{
    for (struct slot *slot = core->kinds[MACHINE_ALLOC].first; slot != NULL;
         slot = slot->kind_next) {
        if (slot->record != NULL && !fsm_is_final(slot->record))
            report_lost(core, slot, kind);
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
            .started = task_has_started(task),
            .rewound = task_is_rewound(task),
        };
    }
    (void)text_copy(member->name, sizeof(member->name), machine_id_name(&slot->id)); /* fits */
}

static bool is_member_of(const struct slot *slot, const struct machine_id *alloc)
{
    if (slot->record == NULL || (slot->id.kind != MACHINE_TASK && slot->id.kind != MACHINE_VOLUME))
        return false;
    struct machine_id owner = machine_id_owner(&slot->id);
    return machine_id_equal(&owner, alloc);
}

/* Makes the alloc ID again from what is left of it, in order to end it. */
static void condemn(struct core *core, const struct machine_id *id)
{
    struct alloc_assign *assign =
        calloc(1, sizeof(*assign) + ALLOC_MEMBERS_MAX * sizeof(assign->members[0]));

    check(assign != NULL);
    assign->condemned = 1;
    assign->hooks_postrun = 1u << ALLOC_HOOK_NETWORK; /* if it has one */
    assign->hooks_destroy = 1u << ALLOC_HOOK_ALLOC_DIR;
    (void)text_copy(assign->description, sizeof(assign->description),
                    "the alloc's record in the journal was damaged"); /* fits */
    for (struct slot *slot = core->machines; slot != NULL; slot = slot->hh.next) {
        if (is_member_of(slot, id) && assign->members_count < ALLOC_MEMBERS_MAX)
            add_member(assign, slot);
    }
    uint32_t there = assign->members_count;
    unsigned found = 0;
    if (core->world.known != NULL)
        core->world.known(core->world.ctx, id->text, assign);
    core_tell(core, id, AE_ASSIGN, assign);
    for (uint32_t i = there; i < assign->members_count; i++) {
        if (assign->members[i].kind == MEMBER_VOLUME)
            (void)adopt_volume(core, id->text, assign->members[i].name,
                               &found); /* its spec has named it */
    }
    free(assign);
}

/* True for what needs an alloc to come to an end.  A task that its alloc told to be gone does not:
 * that alloc was removed, and is not made again (I-19). */
static bool is_orphan(const struct core *core, const struct slot *slot)
{
    if (slot->record == NULL || (slot->id.kind != MACHINE_TASK && slot->id.kind != MACHINE_VOLUME))
        return false;
    struct machine_id owner = machine_id_owner(&slot->id);
    bool removed = slot->id.kind == MACHINE_TASK && task_of(slot->record)->remove_wanted;
    return !removed && slot_find(core, &owner) == NULL;
}

static void condemn_owners(struct core *core)
{
    for (const struct slot *slot = core->machines; slot != NULL; slot = slot->hh.next) {
        if (!is_orphan(core, slot))
            continue;
        struct machine_id owner = machine_id_owner(&slot->id);
        const struct slot *first = core->machines;
        while (first != slot && !(is_orphan(core, first) && is_member_of(first, &owner)))
            first = first->hh.next;
        if (first == slot) /* an earlier one has led to it already */
            condemn(core, &owner);
    }
}

void core_adopt(struct core *core, const char *alloc)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);

    check(core->restored);
    if (slot_find(core, &id) != NULL)
        return;
    for (const struct slot *slot = core->machines; slot != NULL; slot = slot->hh.next) {
        if (is_member_of(slot, &id))
            return; /* it has been condemned for them, or is being removed */
    }
    condemn(core, &id);
}

/* --- records that contradict --- */

/* Tells the owner of a volume that it must do without. */
static void miss_volume(struct core *core, const struct machine_id *id)
{
    struct machine_id owner = machine_id_owner(id);
    struct member_news news = {.text = "its record in the journal contradicted itself",
                               .volume = 1};
    unsigned found = 0;

    if (!is_there(core, &owner))
        return;
    if (!adopt_volume(core, owner.text, machine_id_name(id), &found))
        (void)text_copy(news.text, sizeof(news.text), nameless_text);   /* fits */
    (void)text_copy(news.name, sizeof(news.name), machine_id_name(id)); /* fits: a sound id */
    core_tell(core, &owner, AE_MEMBER_LOST, &news);
}

void core_put_aside(struct core *core, const struct machine_id *id, const char *why)
{
    struct slot *slot = slot_find(core, id);

    if (slot == NULL || slot->record == NULL)
        return; /* it went in the same turn */
    core->world.put_aside(core->world.ctx, id, why);
    slot->forsaken = false;
    slot_retire(core, slot);
    if (id->kind == MACHINE_ALLOC)
        condemn(core, id);
    if (id->kind == MACHINE_VOLUME)
        miss_volume(core, id);
    /* A task is missed by its alloc after the sweep, a plugin by nobody. */
}

static void note_aside(struct core *core, const struct machine_id *id, const char *why)
{
    for (size_t i = 0; i < core->aside.count; i++) {
        if (machine_id_equal(&core->aside.items[i].id, id))
            return;
    }
    struct aside *aside = list_more(&core->aside);
    aside->id = *id;
    (void)text_copy(aside->why, sizeof(aside->why), why); /* fits */
}

/* Tasks and their allocs that do not tell the same story. */
static void compare_tasks(struct core *core)
{
    const char *why;

    for (const struct slot *slot = core->kinds[MACHINE_TASK].first; slot != NULL;
         slot = slot->kind_next) {
        struct machine_id owner = machine_id_owner(&slot->id);
        const struct slot *alloc = slot_find(core, &owner);
        enum alloc_belief belief =
            alloc == NULL ? BELIEVE_BOTH
                          : alloc_believe(alloc_of(alloc->record), machine_id_name(&slot->id),
                                          task_of(slot->record), &why);
        if (belief == BELIEVE_ALLOC || belief == BELIEVE_NEITHER)
            note_aside(core, &slot->id, why);
        if (belief == BELIEVE_TASK || belief == BELIEVE_NEITHER)
            note_aside(core, &owner, why);
    }
}

/* None of them has been told of the restart yet, so nothing of them is under way. */
static void drop_contradictions(struct core *core)
{
    if (core->world.put_aside == NULL)
        return;
    compare_tasks(core);
    for (size_t i = 0; i < core->aside.count; i++) {
        const struct aside *aside = &core->aside.items[i];
        core->world.put_aside(core->world.ctx, &aside->id, aside->why);
        slot_remove(core, slot_find(core, &aside->id));
    }
    core->aside.count = 0;
}

/* A volume that its alloc has done with, or has never heard of, is let go. */
static void release_strays(struct core *core)
{
    for (const struct slot *slot = core->kinds[MACHINE_VOLUME].first; slot != NULL;
         slot = slot->kind_next) {
        struct machine_id owner = machine_id_owner(&slot->id);
        const struct slot *alloc = slot_find(core, &owner);
        bool wanted = alloc == NULL;

        for (uint32_t i = 0; !wanted && i < alloc_of(alloc->record)->assign.members_count; i++) {
            const struct alloc_member *member = &alloc_of(alloc->record)->assign.members[i];
            wanted = member->kind == MEMBER_VOLUME && !member->gone &&
                     text_equal(member->name, machine_id_name(&slot->id));
        }
        if (!wanted)
            core_tell(core, &slot->id, VE_RELEASE, NULL);
    }
}

/* A plugin whose task is not known any more has nobody who would say that it is over. */
static void remove_strays(struct core *core)
{
    for (const struct slot *slot = core->kinds[MACHINE_PLUGIN].first; slot != NULL;
         slot = slot->kind_next) {
        struct machine_id task = slot->id;

        task.kind = MACHINE_TASK;
        if (plugin_of(slot->record)->define.supervised && slot_find(core, &task) == NULL)
            core_tell(core, &slot->id, PE_REMOVE, NULL);
    }
}

void core_restore(struct core *core, bool authority, bool rebooted)
{
    struct restore restore = {.authority = authority, .rebooted = rebooted};

    check(!core->restored);
    check(!core->turned);
    core->restored = core->unswept = true;
    drop_contradictions(core);
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        restore_kind(core, (enum machine_kind)kind, &restore);
    release_strays(core);
    remove_strays(core);
    report_all_lost(core, MEMBER_VOLUME);
    condemn_owners(core);
}

void core_swept(struct core *core, bool done)
{
    check(core->restored);
    check(!core->in_turn);
    if (core->unswept) {
        core->unswept = false;
        lanes_open(core);
    }
    if (done)
        report_all_lost(core, MEMBER_TASK);
}
