/*
 * The invariants of restore-failures.md section 3, in each state of the search.
 *
 * As in sim/world/check/check.c there are three places to look from: a batch before it is stored,
 * an effect as it is performed, and the state that a move has led to.  What only time could show
 * (I-36, I-38), what only an adapter does (I-4, I-6) and what takes more than one alloc is left to
 * the seeded worlds.
 */
#include "sim/search/part.h"

#include <string.h>

#define VIOLATE(invariant, ...) search_violate(search, SIM_SAFETY, invariant, __VA_ARGS__)

static const char *state_name(const struct machine *record)
{
    return record == NULL
               ? "absent"
               : fsm_state_name(fsm_definition((enum machine_kind)record->kind), record->state);
}

static const char *effect_name(unsigned kind, unsigned effect)
{
    return fsm_effect_name(fsm_definition((enum machine_kind)kind), effect);
}

/* --- a batch, before it is stored --- */

/* I-7, I-8: an attempt is over when nothing of it lives, and its end is known to be known. */
static void check_decision(struct search *search, unsigned who, const struct task *task,
                           uint8_t next)
{
    const struct search_attempt *attempt =
        search_attempt(search, who_task(who), task->machine.generation);
    const char *name = search->ids[who].text;

    if (task->verdict != TASK_ENDS && next == T_CLEANUP)
        VIOLATE(9, "%s is to start again, and is ended", name);
    if (task->verdict == TASK_ENDS && next != T_CLEANUP)
        VIOLATE(10, "%s is over, and starts again", name);
    if (attempt == NULL)
        return;
    if (attempt->payload == PAYLOAD_LIVES)
        VIOLATE(7, "the attempt of %s is over, but its payload lives", name);
    if (task->ran && !task->exit_seen)
        VIOLATE(8, "the payload of %s ran, and its end is not reported", name);
    bool again = task->verdict == TASK_RESTART_NOW || task->verdict == TASK_REWINDS;
    if (attempt->by_boot && !task->kill_wanted && task->ran && !task->start_failed && !again)
        VIOLATE(36, "the reboot that ended %s counts as its own failure", name);
}

static void check_exit(struct search *search, unsigned who, const struct task *before,
                       const struct task *after)
{
    static const int32_t codes[SEARCH_ENDS] = {0, 1, 137};
    bool was = before != NULL && before->exit_seen &&
               before->machine.generation == after->machine.generation;
    const char *name = search->ids[who].text;

    if (!after->exit_seen || was)
        return;
    struct search_attempt *attempt =
        search_attempt(search, who_task(who), after->machine.generation);
    if (attempt == NULL)
        VIOLATE(8, "%s reports an end of what never was", name);
    if (attempt->unfit && !search->world.tasks[who_task(who)].unseen)
        VIOLATE(8, "%s could not be started and is reported with an end", name);
    if (attempt->told)
        VIOLATE(8, "the end of %s is reported twice", name);
    if (after->exit.known && after->exit.code != codes[attempt->end])
        VIOLATE(8, "%s ended with %d and is reported with %d", name, (int)codes[attempt->end],
                (int)after->exit.code);
    if (!after->exit.known && after->exit.code == 0)
        VIOLATE(8, "an unknown end of %s is reported as success", name);
    if (!after->exit.known && attempt->record == RECORD_OF_END &&
        !search->world.tasks[who_task(who)].unseen)
        VIOLATE(8, "the exit record of %s was there and was not read", name);
    search->ends[who_task(who)] = attempt;
}

static void check_task(struct search *search, unsigned who, const struct task *before,
                       const struct task *after)
{
    check_exit(search, who, before, after);
    if (before != NULL && before->kill_wanted && !after->kill_wanted)
        VIOLATE(11, "the order to end is taken back from %s", search->ids[who].text);
}

static void check_alloc(struct search *search, const struct alloc *before,
                        const struct alloc *after)
{
    if (before == NULL)
        return;
    if ((before->stop_wanted && !after->stop_wanted) ||
        (before->destroy_wanted && !after->destroy_wanted))
        VIOLATE(13, "the desired state of the alloc went backwards");
}

static void check_record(struct search *search, const struct journal_record *item)
{
    const struct machine *before = core_find(search->core, &item->id);
    unsigned who = search_who(search, &item->id);

    if (before != NULL && item->record != NULL && before->revision == item->record->revision)
        VIOLATE(15, "%s has not changed and is stored", item->id.text);
    if (item->record == NULL)
        return;
    if (before == NULL && who != WHO_PLUGIN && search->world.gone)
        VIOLATE(19, "a record of %s is made again after its removal", item->id.text);
    if (who == WHO_TASK_A || who == WHO_TASK_B)
        check_task(search, who, before == NULL ? NULL : task_of(before), task_of(item->record));
    if (who == WHO_ALLOC)
        check_alloc(search, before == NULL ? NULL : alloc_of(before), alloc_of(item->record));
}

static const struct machine *new_record(const struct journal_batch *batch,
                                        const struct machine_id *id)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        if (machine_id_equal(&batch->records[i].id, id))
            return batch->records[i].record;
    }
    return NULL;
}

/* I-36: what counts goes on over a restart. */
static void check_restored(struct search *search, unsigned who, const struct task *after)
{
    const struct machine *record = search_record(search, who);
    const struct task *before = record == NULL ? NULL : task_of(record);

    if (before != NULL && after != NULL &&
        (before->restart_count != after->restart_count ||
         before->interval_ms != after->interval_ms || before->kill_at_ms != after->kill_at_ms))
        VIOLATE(36, "a restart changed the counters or deadlines of %s", search->ids[who].text);
}

/* The volume was found mounted, in this turn. */
static bool is_seen(const struct search *search, const struct journal_batch *batch)
{
    bool seen = false;

    for (size_t i = 0; i < batch->events_count; i++)
        seen |= machine_id_equal(&batch->events[i].id, &search->ids[WHO_VOLUME]) &&
                (batch->events[i].event.kind == VE_MOUNT_FOUND ||
                 batch->events[i].event.kind == VE_PUBLISHED);
    return seen;
}

static void check_task_event(struct search *search, const struct journal_batch *batch, size_t at)
{
    const struct journal_event *event = &batch->events[at];
    unsigned who = search_who(search, &event->id);
    const struct machine *after = new_record(batch, &event->id);
    bool begins = event->after == T_STARTING && event->before != T_STARTING;
    bool decides = (event->before == T_REAPING || event->before == T_EXITED) &&
                   event->after != event->before && event->after != T_EXITED &&
                   event->after != T_RECOVERING;

    if (decides && after != NULL)
        check_decision(search, who, task_of(after), event->after);
    if (event->event.kind == TE_RESTORE)
        check_restored(search, who, after == NULL ? NULL : task_of(after));
    if (search->world.tasks[who_task(who)].dead && event->before != T_WAITING &&
        (begins || event->after == T_PRESTART || event->after == T_RUNNING))
        VIOLATE(10, "%s was dead and comes back", event->id.text);
    if (begins && (event->before != T_LOOKING || !is_seen(search, batch)))
        VIOLATE(31, "%s is started without a look at its volume", event->id.text);
    for (size_t i = 0; begins && i < at; i++) {
        if (batch->events[i].event.kind == TE_KILL &&
            machine_id_equal(&batch->events[i].id, &event->id))
            VIOLATE(11, "%s is started although it was just told to end", event->id.text);
    }
}

void search_check_batch(struct search *search, const struct journal_batch *batch)
{
    memset(search->ends, 0, sizeof(search->ends));
    if (batch->events_count + batch->specs_count + batch->metas_count == 0)
        VIOLATE(15, "a commit without any change");
    for (size_t i = 0; i < batch->events_count; i++) {
        if (batch->events[i].id.kind == MACHINE_TASK)
            check_task_event(search, batch, i);
    }
    for (size_t i = 0; i < batch->records_count; i++)
        check_record(search, &batch->records[i]);
}

/* What has been committed, for later judgement. */
void search_check_committed(struct search *search, const struct journal_batch *batch)
{
    struct search_world *world = &search->world;

    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        if (search->ends[t] != NULL)
            search->ends[t]->told = 1;
    }
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        unsigned who = search_who(search, &event->id);
        if (event->id.kind == MACHINE_TASK) {
            struct search_task *task = &world->tasks[who_task(who)];
            task->dead = event->after != T_WAITING &&
                         (task->dead || event->after == T_DEAD || event->after == T_OWING);
            if (event->after == T_STARTING && event->before == T_LOOKING)
                task->hooked = task->unseen = 0;
        }
        if (event->id.kind != MACHINE_ALLOC)
            continue;
        uint8_t kind = event->event.kind;
        world->ended |= event->after == A_TERMINAL;
        world->gone |= event->after == A_GONE;
        world->assigned |= kind == AE_ASSIGN;
        world->fresh |= kind == AE_ASSIGN || kind == AE_AUTHORIZED || kind == AE_STOP;
    }
}

/* --- an effect, as it is performed --- */

static void check_start(struct search *search, const struct effect *effect, unsigned who)
{
    struct search_task *task = &search->world.tasks[who_task(who)];

    if (effect->record->state != T_STARTING || effect->generation == 0)
        VIOLATE(3, "%s is started without a durable intent", effect->id.text);
    if (search->asked->server && !search->world.fresh)
        VIOLATE(12, "%s is started before the server has said so", effect->id.text);
    if (!task->hooked && !task->prestarted)
        VIOLATE(22, "%s is started without its hooks", effect->id.text);
    task->hooked = 1; /* the same attempt may be begun again */
    task->prestarted = 0;
}

/* I-23: what runs well is ended only because somebody wants it to end, or nobody can look at it. */
static void check_ending(struct search *search, const struct effect *effect, unsigned who)
{
    const struct task *task = task_of(effect->record);
    const struct search_attempt *attempt =
        search_attempt(search, who_task(who), effect->generation);

    if (attempt == NULL || attempt->payload != PAYLOAD_LIVES || attempt->shim != SHIM_IS_ALIVE)
        return;
    if (!task->kill_wanted && !task->restart_wanted && !task->rewind_wanted &&
        !task->start_failed && !search->world.tasks[who_task(who)].unseen)
        VIOLATE(23, "the payload of %s runs well and is ended", effect->id.text);
}

static void check_task_effect(struct search *search, const struct effect *effect, unsigned who)
{
    const struct task *task = task_of(effect->record);
    bool starts = effect->kind == TX_DRIVER_START ||
                  (effect->kind == TX_HOOK && task->phase == PHASE_PRESTART);

    if (starts && (search->world.ended || search->world.tasks[who_task(who)].dead))
        VIOLATE(10, "%s was dead and is started", effect->id.text);
    if (effect->kind == TX_DRIVER_START)
        check_start(search, effect, who);
    if (effect->kind == TX_DRIVER_START && search->world.unswept)
        VIOLATE(2, "%s is started before anybody has looked for what still runs of it",
                effect->id.text);
    if (effect->kind == TX_DRIVER_DESTROY || effect->kind == TX_DRIVER_STOP)
        check_ending(search, effect, who);
}

/* I-26: nothing is unmounted or let go under a process, nothing let go that is mounted. */
static void check_volume_effect(struct search *search, const struct effect *effect)
{
    bool unstages = effect->kind == VX_UNSTAGE || effect->kind == VX_UNMOUNT_STAGING;
    bool down = unstages || effect->kind == VX_UNPUBLISH || effect->kind == VX_UNMOUNT;

    if ((down || effect->kind == VX_UNCLAIM) && search_alloc_lives(search))
        VIOLATE(26, "%s of the volume while a process of its alloc lives",
                effect_name(MACHINE_VOLUME, effect->kind));
    if (effect->kind == VX_UNCLAIM && search->world.mounted)
        VIOLATE(26, "the volume is released while it is mounted");
    if (effect->kind == VX_UNCLAIM && search->world.staged)
        VIOLATE(26, "the volume is released by its last user while it is staged");
    if (unstages && search->world.mounted)
        VIOLATE(27, "the volume is unstaged while it is mounted");
}

void search_check_effect(struct search *search, const struct effect *effect, unsigned who)
{
    bool final = (search->finals >> who & 1u) != 0;

    /* Outside of a turn it is what waited for its lane, and the core holds nothing else. */
    if (search->in_turn &&
        (!search->committed || (!final && effect->record->revision != search->revisions[who])))
        VIOLATE(16, "%s performs %s before it is durable", effect->id.text,
                effect_name(effect->id.kind, effect->kind));
    if (effect->id.kind == MACHINE_TASK)
        check_task_effect(search, effect, who);
    if (effect->id.kind == MACHINE_VOLUME)
        check_volume_effect(search, effect);
    if (effect->id.kind == MACHINE_ALLOC && effect->kind == AX_HOOK && search->world.ended &&
        alloc_of(effect->record)->phase == PHASE_PRERUN)
        VIOLATE(10, "the alloc was terminal and runs its first hooks");
}

/* --- the world --- */

/* A shim looks at what it is to bind. */
bool search_check_mount(struct search *search, unsigned task)
{
    if (!search->world.mounted && !search->world.snatched)
        VIOLATE(31, "%s is started without its volume", search->ids[WHO_TASK_A + task].text);
    return search->world.mounted;
}

/* A payload begins to run. */
void search_check_payload(struct search *search, unsigned task,
                          const struct search_attempt *attempt)
{
    const char *name = search->ids[WHO_TASK_A + task].text;

    if (attempt->starts > 1)
        VIOLATE(2, "%s is started twice under one key", name);
    for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
        const struct search_attempt *other = &search->world.tasks[task].attempts[i];
        if (other != attempt && other->payload == PAYLOAD_LIVES)
            VIOLATE(2, "two payloads of %s live", name);
    }
    if (!search->world.directory)
        VIOLATE(22, "%s runs without its alloc's directory", name);
}

/* What belongs to nobody is ended: nobody may have forgotten that it is his. */
void search_check_sweep(struct search *search, unsigned task, const struct search_attempt *attempt)
{
    const struct machine *record = search_record(search, WHO_TASK_A + task);

    if (record != NULL && !task_of(record)->kill_wanted && attempt->shim == SHIM_IS_ALIVE &&
        attempt->payload == PAYLOAD_LIVES)
        VIOLATE(23, "the payload of %s runs well and is swept away",
                search->ids[WHO_TASK_A + task].text);
}

void search_check_state(struct search *search)
{
    const struct search_world *world = &search->world;

    for (unsigned t = 0; world->up && !world->unswept && t < SEARCH_TASKS; t++) {
        const struct machine *record = search_record(search, WHO_TASK_A + t);
        const char *name = search->ids[WHO_TASK_A + t].text;
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            const struct search_attempt *attempt = &search->world.tasks[t].attempts[i];
            if (attempt->payload == PAYLOAD_LIVES &&
                (record == NULL || record->generation != attempt->generation ||
                 !task_holds_work(task_of(record))))
                VIOLATE(1, "a payload of %s lives and belongs to nobody (the task is %s)", name,
                        state_name(record));
        }
        const struct search_attempt *current =
            record == NULL ? NULL : search_attempt(search, t, record->generation);
        if (record != NULL && record->state == T_RUNNING &&
            (current == NULL || current->starts == 0))
            VIOLATE(8, "%s is shown running and was never started", name);
    }
}

/* --- at rest --- */

struct rest {
    const char *why;
    unsigned invariant;
};

static bool miss(struct rest *rest, unsigned invariant, const char *why)
{
    rest->why = why;
    rest->invariant = invariant;
    return false;
}

static bool no_calls(const struct search *search)
{
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        for (int lane = 0; lane < LANE_COUNT; lane++) {
            if (search_lane(search, who, (enum fsm_lane)lane)->effect != 0)
                return false;
        }
    }
    return true;
}

/* What is lost of a task that had ended already is nothing. */
static bool is_counted_dead(const struct search *search, unsigned who)
{
    const struct alloc *alloc = alloc_of(search_record(search, WHO_ALLOC));

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        const struct alloc_member *member = &alloc->assign.members[i];
        if (member->kind == MEMBER_TASK && member->run_state == TASK_RUN_DEAD &&
            text_equal(member->name, machine_id_name(&search->ids[who])))
            return true;
    }
    return false;
}

static bool task_rests(struct search *search, unsigned who, struct rest *rest)
{
    const struct machine *record = search_record(search, who);
    const struct machine *volume = search_record(search, WHO_VOLUME);
    bool broken = volume != NULL && volume->state == V_BROKEN && search_alloc_lives(search);

    if (record == NULL)
        return is_counted_dead(search, who) || miss(rest, 25, "a task is not there");
    if (record->state == T_DEAD || (record->state == T_HELD && broken))
        return true;
    if (record->state == T_WAITING && task_of(record)->define.lifecycle == LIFECYCLE_POSTSTOP)
        return true;
    if (record->state != T_RUNNING)
        return miss(rest, 9, "a task does not get on");
    const struct search_attempt *attempt =
        search_attempt(search, who_task(who), record->generation);
    if (attempt == NULL || attempt->payload != PAYLOAD_LIVES)
        return miss(rest, 8, "a task is shown running, and its payload is not");
    return attempt->reported || miss(rest, 8, "a payload runs, and nobody would see its end");
}

static bool running_rests(struct search *search, struct rest *rest)
{
    const struct machine *volume = search_record(search, WHO_VOLUME);
    bool broken = volume != NULL && volume->state == V_BROKEN && search_alloc_lives(search);

    if (!task_rests(search, WHO_TASK_A, rest) || !task_rests(search, WHO_TASK_B, rest))
        return false;
    return broken || (volume != NULL && volume->state == V_READY) ||
           miss(rest, 31, "the volume does not get ready");
}

/* Nothing but what an ended alloc keeps until it is removed. */
static bool is_clean(struct search *search, struct rest *rest)
{
    const struct search_world *world = &search->world;

    for (unsigned t = 0; t < SEARCH_TASKS; t++) {
        for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++) {
            if (search_exists(&world->tasks[t].attempts[i]))
                return miss(rest, 1, "something of a payload is left");
        }
    }
    if (search_record(search, WHO_VOLUME) != NULL)
        return miss(rest, 24, "the volume's record is left");
    if (world->mounted || world->staged)
        return miss(rest, 24, "a mount is left");
    return !world->claimed || miss(rest, 26, "the claim is left");
}

static bool is_empty(struct search *search, struct rest *rest)
{
    if (!is_clean(search, rest))
        return false;
    if (search_record(search, WHO_TASK_A) != NULL || search_record(search, WHO_TASK_B) != NULL)
        return miss(rest, 24, "a task's record is left");
    if (search->world.spec)
        return miss(rest, 19, "the specification is left");
    return !search->world.directory || miss(rest, 24, "the alloc's directory is left");
}

static bool alloc_rests(struct search *search, struct rest *rest)
{
    const struct machine *record = search_record(search, WHO_ALLOC);

    if (record == NULL)
        return is_empty(search, rest);
    const struct alloc *alloc = alloc_of(record);
    if (record->state == A_TERMINAL && !alloc->destroy_wanted)
        return is_clean(search, rest);
    if (record->state == A_RUNNING && !alloc->stop_wanted && !alloc->destroy_wanted)
        return running_rests(search, rest);
    return miss(rest, 9,
                alloc->destroy_wanted ? "the alloc is not removed"
                : alloc->stop_wanted  ? "the alloc does not end"
                                      : "the alloc does not get on");
}

/* Whatever waits for such a plugin waits for an operator. */
static bool is_given_up(const struct machine *plugin)
{
    return plugin == NULL || plugin->state == P_REJECTED || plugin->state == P_STOPPED;
}

static bool waits_for_plugin(const struct search *search)
{
    const struct machine *volume = search_record(search, WHO_VOLUME);

    return volume != NULL && (volume->state == V_QUEUED || volume->state == V_STAGING ||
                              volume->state == V_PUBLISHING || volume->state == V_DRAINING);
}

static bool plugin_rests(const struct search *search, struct rest *rest)
{
    const struct machine *plugin = search_record(search, WHO_PLUGIN);

    if (plugin == NULL && search->world.plugin_generation != 0)
        return miss(rest, 1, "the plugin was removed, and its process lives");
    return is_given_up(plugin) || plugin->state == P_READY ||
           miss(rest, 32, "the plugin does not get ready");
}

bool search_at_rest(struct search *search, const char **ret_why, unsigned *ret_invariant)
{
    const struct machine *plugin = search_record(search, WHO_PLUGIN);
    struct rest rest = {"", 0};
    bool at_rest = false;

    if (!search->world.up || search->world.unswept || core_has_work(search->core))
        (void)miss(&rest, 35, "the daemon has work that it does not do");
    else if (is_given_up(plugin) && waits_for_plugin(search))
        at_rest = true;
    else
        at_rest = alloc_rests(search, &rest);
    if (at_rest && !no_calls(search))
        at_rest = miss(&rest, 35, "a call is not answered");
    if (at_rest && search->world.late != 0)
        at_rest = miss(&rest, 28, "a call that nobody waits for is open");
    at_rest = at_rest && plugin_rests(search, &rest);
    *ret_why = rest.why;
    *ret_invariant = rest.invariant;
    return at_rest;
}
