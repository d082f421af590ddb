/*
 * The 40 invariants of restore-failures.md section 3, as far as a simulated world can see them.
 *
 * Three places to look from: a batch before it is stored (what the core is about to decide), an
 * effect as it is performed (what it is about to do to the world), and the whole after a turn and
 * at the end.  sim/invariants.c lists for each number where it is checked, or why it cannot be.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <string.h>

enum { TASKS_OF_A_LOOK = 64, RESTORES_LOOKED_BACK = 256 };

static const char *state_name(const struct machine *record)
{
    return record == NULL
               ? "absent"
               : fsm_state_name(fsm_definition((enum machine_kind)record->kind), record->state);
}

/* --- a batch, before it is stored --- */

/* I-36: what counts and what is timed goes on over a restart. */
static void check_restored_task(struct sim *sim, const struct task *before,
                                const struct task *after, const char *name)
{
    if (before->interval_ms != after->interval_ms ||
        before->restart_count != after->restart_count || before->restarts != after->restarts ||
        before->restart_at_ms != after->restart_at_ms ||
        before->delay_until_ms != after->delay_until_ms || before->kill_at_ms != after->kill_at_ms)
        sim_violate(sim, 36, "a restart changed the counters or deadlines of %s", name);
    if (after->machine.state == T_BACKOFF &&
        after->machine.deadline_ms != before->machine.deadline_ms)
        sim_violate(sim, 36, "a restart moved the restart delay of %s", name);
}

/* I-36: a restart of the daemon is no failed try, and no reason to try earlier. */
static void check_pause(struct sim *sim, const struct machine *before, const struct machine *after,
                        const char *name)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)before->kind);
    /* What follows from the record may, of what is doubted after a restart, wait for an answer. */
    bool paused = fsm_pausing(before, NULL, NULL) && after->state == before->state &&
                  def->states[before->state].limit_ms != FSM_LIMIT_RECORD;

    if (after->state == before->state && after->attempt != before->attempt)
        sim_violate(sim, 36, "a restart counts as a failed try of %s", name);
    if (paused && after->deadline_ms != before->deadline_ms)
        sim_violate(sim, 36, "a restart moved the pause of %s", name);
    if (paused && !fsm_pausing(after, NULL, NULL))
        sim_violate(sim, 36, "a restart cut the pause of %s short", name);
}

/* I-7, I-8: an attempt is over when nothing of it lives, and its end is known to be known. */
static void check_decision(struct sim *sim, const struct sim_whom *whom, const struct task *task)
{
    struct sim_attempt *attempt =
        sim_attempt(sim, whom->alloc, whom->member, task->machine.generation);
    const char *name = sim_id(sim, whom)->text;

    if (attempt == NULL)
        return;
    if (sim_attempt_lives(attempt))
        sim_violate(sim, 7, "the attempt of %s is over, but its processes live", name);
    if (task->ran && !task->exit_seen)
        sim_violate(sim, 8, "the payload of %s ran, and its end is not reported", name);
    bool again = task->verdict == TASK_RESTART_NOW || task->verdict == TASK_REWINDS;
    if (attempt->by_boot && !task->kill_wanted && task->ran && !task->start_failed && !again)
        sim_violate(sim, 36, "the reboot that ended %s counts as its own failure", name);
}

static void check_exit_record(struct sim *sim, const struct sim_whom *whom,
                              const struct task *before, const struct task *after)
{
    bool was = before != NULL && before->exit_seen &&
               before->machine.generation == after->machine.generation;
    const char *name = sim_id(sim, whom)->text;

    if (!after->exit_seen || was)
        return;
    struct sim_attempt *attempt =
        sim_attempt(sim, whom->alloc, whom->member, after->machine.generation);
    if (attempt == NULL) {
        sim_violate(sim, 8, "%s reports an end of what never was", name);
        return;
    }
    bool unseen = !after->exit.known && sim_attempt_is_given_up(attempt, after);
    if (attempt->unfit && !unseen)
        sim_violate(sim, 8, "%s could not be started and is reported with an end", name);
    if (attempt->told)
        sim_violate(sim, 8, "the end of %s generation %u is reported twice", name,
                    attempt->generation);
    if (after->exit.known &&
        (after->exit.code != attempt->code || after->exit.signal != attempt->signal))
        sim_violate(sim, 8, "%s ended with %d and is reported with %d", name, (int)attempt->code,
                    (int)after->exit.code);
    if (!after->exit.known && after->exit.code == 0)
        sim_violate(sim, 8, "an unknown end of %s is reported as success", name);
    if (!after->exit.known && attempt->written && !unseen)
        sim_violate(sim, 8, "the exit record of %s was there and was not read", name);
    check(sim->attempts.ending_count < (size_t)sim->tasks_count);
    sim->attempts.ending[sim->attempts.ending_count++] = attempt;
}

/* I-36: the two deadlines of an end are fixed when it begins. */
static void check_deadlines(struct sim *sim, const struct task *before, const struct task *after,
                            const char *name)
{
    if (before->machine.generation != after->machine.generation)
        return;
    if ((before->kill_at_ms != 0 && before->kill_at_ms != after->kill_at_ms) ||
        (before->delay_until_ms != 0 && before->delay_until_ms != after->delay_until_ms))
        sim_violate(sim, 36, "the end of %s was put off", name);
    if (before->at_once && after->machine.state == T_DELAYING)
        sim_violate(sim, 13, "%s begins a delay that it was told to skip", name);
}

static void check_alloc_record(struct sim *sim, const struct alloc *before,
                               const struct alloc *after, const char *name)
{
    if (before == NULL)
        return;
    if ((before->stop_wanted && !after->stop_wanted) ||
        (before->destroy_wanted && !after->destroy_wanted))
        sim_violate(sim, 13, "the desired state of %s went backwards", name);
    if (before->at_once && !after->at_once)
        sim_violate(sim, 13, "%s waits again for delays that it was told to skip", name);
    if (before->at_once && before->machine.state != A_DELAYING &&
        after->machine.state == A_DELAYING)
        sim_violate(sim, 13, "%s begins a delay that it was told to skip", name);
    if (before->ended_unix_ns != 0 && after->ended_unix_ns != before->ended_unix_ns)
        sim_violate(sim, 10, "%s ended twice", name);
    if (after->acked_revision < before->acked_revision ||
        after->status_revision < before->status_revision)
        sim_violate(sim, 39, "the status of %s went backwards", name);
}

static void check_record(struct sim *sim, const struct journal_batch *batch,
                         const struct journal_record *item)
{
    const struct machine *before = core_find(sim->core, &item->id);
    struct sim_whom whom = sim_find(sim, &item->id);

    if (whom.kind == MACHINE_KIND_COUNT) {
        sim_violate(sim, 19, "a record of %s, which nobody asked for", item->id.text);
        return;
    }
    if (before == NULL && item->record != NULL && whom.alloc >= 0 && sim_alloc_of(sim, &whom)->gone)
        sim_violate(sim, 19, "a record of %s is made again after its removal", item->id.text);
    if (before != NULL && item->record != NULL && before->revision == item->record->revision)
        sim_violate(sim, 15, "%s has not changed and is stored", item->id.text);
    if (item->record == NULL)
        return;
    if (whom.kind == MACHINE_TASK)
        check_exit_record(sim, &whom, before == NULL ? NULL : task_of(before),
                          task_of(item->record));
    if (whom.kind == MACHINE_TASK && before != NULL)
        check_deadlines(sim, task_of(before), task_of(item->record), item->id.text);
    if (whom.kind == MACHINE_ALLOC) {
        const struct alloc *alloc = before == NULL ? NULL : alloc_of(before);
        check_alloc_record(sim, alloc, alloc_of(item->record), item->id.text);
        sim_check_health(sim, batch, &whom, alloc, alloc_of(item->record));
    }
}

const struct machine *sim_new_record(const struct journal_batch *batch, const struct machine_id *id,
                                     size_t *at)
{
    for (size_t i = 0; i < batch->records_count; i++) {
        size_t place = (*at + i) % batch->records_count;
        if (machine_id_equal(&batch->records[place].id, id)) {
            *at = place;
            return batch->records[place].record;
        }
    }
    return NULL;
}

static bool is_restore(const struct journal_event *event)
{
    return event->event.kind == fsm_definition((enum machine_kind)event->id.kind)->restore_event;
}

/* I-36, I-32: RESTORE events come first in an incarnation, in order of kinds, and move no clock. */
static void check_restore(struct sim *sim, const struct journal_batch *batch, size_t at,
                          size_t *record_at)
{
    const struct journal_event *event = &batch->events[at];
    const struct machine *before = core_find(sim->core, &event->id);
    const struct machine *after = sim_new_record(batch, &event->id, record_at);

    for (size_t i = at; i-- > 0 && at - i <= RESTORES_LOOKED_BACK;) {
        const struct journal_event *earlier = &batch->events[i];
        if (!is_restore(earlier))
            continue;
        if (event->id.kind < earlier->id.kind)
            sim_violate(sim, 32, "%s is restored after a machine that builds on it",
                        event->id.text);
        if (event->id.kind != earlier->id.kind)
            break; /* all that are before it are of kinds that come before */
        if (machine_id_equal(&event->id, &earlier->id))
            sim_violate(sim, 9, "%s is restored twice", event->id.text);
    }
    if (before != NULL && after != NULL && after->revision == before->revision + 1)
        check_pause(sim, before, after, event->id.text);
    if (event->id.kind == MACHINE_TASK && before != NULL && after != NULL &&
        after->revision == before->revision + 1)
        check_restored_task(sim, task_of(before), task_of(after), event->id.text);
}

bool sim_sees_mount(const struct journal_event *event)
{
    return event->id.kind == MACHINE_VOLUME &&
           (event->event.kind == VE_MOUNT_FOUND || event->event.kind == VE_PUBLISHED);
}

/* I-31: each volume was looked at after the task had come to wait for that, and it goes from there
 * to its start. */
static void check_looked(struct sim *sim, const struct journal_batch *batch,
                         const struct journal_event *start)
{
    struct sim_whom whom = sim_find(sim, &start->id);
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, &whom);
    uint64_t asked_turn = sim_task_of(sim, &whom)->looking_turn;

    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        if (event->after == T_LOOKING && event->before != T_LOOKING &&
            machine_id_equal(&event->id, &start->id))
            asked_turn = event->turn;
    }
    for (int c = 0; c < alloc->claims_count; c++) {
        uint64_t seen_turn = alloc->claims[c].seen_turn;
        for (size_t i = 0; i < batch->events_count; i++) {
            const struct journal_event *event = &batch->events[i];
            if (sim_sees_mount(event) && machine_id_equal(&event->id, &alloc->claims[c].id))
                seen_turn = event->turn;
        }
        if (start->before != T_LOOKING || seen_turn < asked_turn)
            sim_violate(sim, 31, "%s is started without a look at its volume %s", start->id.text,
                        alloc->claims[c].id.text);
    }
}

static void check_task_event(struct sim *sim, const struct journal_batch *batch, size_t at,
                             size_t *record_at)
{
    const struct journal_event *event = &batch->events[at];
    struct sim_whom whom = sim_find(sim, &event->id);
    const struct machine *after = sim_new_record(batch, &event->id, record_at);
    bool begins = event->after == T_STARTING && event->before != T_STARTING;
    bool decides = (event->before == T_REAPING || event->before == T_EXITED) &&
                   event->after != event->before && event->after != T_EXITED &&
                   event->after != T_RECOVERING;

    if (whom.kind == MACHINE_KIND_COUNT)
        return;
    const struct sim_task_state *task = sim_task_of(sim, &whom);
    if (decides && after != NULL)
        check_decision(sim, &whom, task_of(after));
    if (task->dead && event->before != T_WAITING &&
        (begins || event->after == T_PRESTART || event->after == T_RUNNING))
        sim_violate(sim, 10, "%s was dead and comes back", event->id.text);
    if (begins)
        check_looked(sim, batch, event);
    for (size_t i = 0; begins && i < at; i++) {
        if (batch->events[i].event.kind == TE_KILL &&
            machine_id_equal(&batch->events[i].id, &event->id))
            sim_violate(sim, 11, "%s is started although it was just told to end", event->id.text);
    }
}

void sim_check_batch(struct sim *sim, const struct journal_batch *batch)
{
    size_t restored = 0, record_at = 0;

    sim->attempts.ending_count = 0;
    if (batch->events_count + batch->specs_count + batch->metas_count == 0)
        sim_violate(sim, 15, "a commit without any change");
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];
        if (event->now_ms < sim->store.head.last_now_ms)
            sim_violate(sim, 36, "node time went back from %llu to %llu",
                        (unsigned long long)sim->store.head.last_now_ms,
                        (unsigned long long)event->now_ms);
        if (is_restore(event)) {
            check_restore(sim, batch, i, &record_at);
            restored++;
        }
        if (event->id.kind == MACHINE_TASK)
            check_task_event(sim, batch, i, &record_at);
    }
    if (restored > 0 && restored != sim->store.count)
        sim_violate(sim, 9, "%zu machines are restored, %zu were stored", restored,
                    sim->store.count);
    for (size_t i = 0; i < batch->records_count; i++)
        check_record(sim, batch, &batch->records[i]);
}

/* --- an effect, as it is performed --- */

/* I-23: what runs well is ended only because somebody wants it to end. */
static void check_ending(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    const struct task *task = task_of(effect->record);
    const struct sim_attempt *attempt =
        sim_attempt(sim, whom->alloc, whom->member, effect->generation);

    if (effect->kind == TX_DRIVER_STOP)
        sim_check_stop(sim, effect, whom);
    if (attempt == NULL || attempt->payload != PAYLOAD_RUNNING || attempt->shim != SHIM_ALIVE)
        return;
    bool given_up = !task->exit.known && sim_attempt_is_given_up(attempt, task);
    bool asked = task->kill_wanted || task->restart_wanted || task->rewind_wanted || task->unwell;
    if (!asked && !task->start_failed && !given_up)
        sim_violate(sim, 23, "the payload of %s runs well and is ended", effect->id.text);
}

/* The hooks that have left something for later starts. */
static uint32_t results_of(const struct task *task)
{
    struct result result;
    uint32_t hooks = 0;

    for (uint32_t at = 0; results_next(task->results, task->results_bytes, &at, &result);)
        hooks |= 1u << result.hook;
    return hooks;
}

void sim_check_start(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    const struct task *task = task_of(effect->record);
    const struct sim_alloc_state *alloc = sim_alloc_of(sim, whom);
    struct sim_task_state *state = sim_task_of(sim, whom);
    const struct machine *stored = sim_store_find(&sim->store, &effect->id);
    uint32_t wanted = task->define.hooks_prestart;

    bool intends = stored == NULL
                       ? sim_store_has(&sim->store, &effect->id) /* damaged since */
                       : stored->state == T_STARTING && stored->generation == effect->generation;
    if (!intends)
        sim_violate(sim, 3, "%s is started without a durable intent", effect->id.text);
    if (!sim->looked)
        sim_violate(sim, 2, "%s is started before anybody has looked for what still runs of it",
                    effect->id.text);
    if (sim->script->server && alloc->fresh != sim->incarnation)
        sim_violate(sim, 12, "%s is started before the server has said so", effect->id.text);
    if (!state->hooked && (state->prestarted & wanted) != wanted)
        sim_violate(sim, 22, "%s is started without all of its hooks", effect->id.text);
    if ((wanted & ~state->past_hooks & ~results_of(task)) != 0) /* those may have left nothing */
        sim_violate(sim, 22, "%s is started without what its hooks have left", effect->id.text);
    sim_check_again(sim, effect, whom);
    state->hooked = 1; /* the same attempt may be begun again */
    state->prestarted = 0;
    uint8_t copy[RESULTS_BYTES_MAX];
    struct results rest = {copy, task->results_bytes, sizeof(copy)};
    if (task->results_bytes > 0)
        memcpy(copy, task->results, task->results_bytes);
    results_clear(&rest, TASK_HOOK_TEMPLATE); /* those say what they say now */
    results_clear(&rest, TASK_HOOK_IDENTITY); /* and those are renewed: */
    bool has_tokens = (wanted & ~state->past_hooks & 1u << TASK_HOOK_IDENTITY) != 0;
    if (has_tokens && !sim->copy.made && !sim_tokens_are_told(state, task)) /* else it is older */
        sim_violate(sim, 22, "%s starts with other tokens than its files have", effect->id.text);
    uint64_t digest = hash_bytes(1, rest.bytes, rest.used);
    if (state->first_results == 0)
        state->first_results = digest;
    else if (state->first_results != digest)
        sim_violate(sim, 22, "%s starts with other hook results than at first", effect->id.text);
}

/* True if OTHER was not there when it was decided to unstage CLAIM, which begins later when the
 * node still looks for what runs: it waits for its turn. */
static bool came_later(const struct sim_claim_state *claim, const struct sim_claim_state *other,
                       const struct machine *record)
{
    if (other->made_turn == claim->unstaging_turn)
        return record->state == V_IDLE;
    return other->made_turn > claim->unstaging_turn && record->state <= V_QUEUED;
}

/* I-26, I-27, I-29: who may unmount, unstage and let go, and when. */
static void check_volume(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    const struct sim_claim_state *claim = sim_claim_of(sim, whom);
    const struct sim_disk_state *disk = &sim->disks[claim->disk];
    bool unstages = effect->kind == VX_UNSTAGE || effect->kind == VX_UNMOUNT_STAGING;
    bool down = unstages || effect->kind == VX_UNPUBLISH || effect->kind == VX_UNMOUNT;
    bool mutates = down || effect->kind == VX_STAGE || effect->kind == VX_PUBLISH;
    bool used = false, known = false; /* known: and it was when this was decided */

    if (mutates && disk->calls > 0)
        sim_violate(sim, 29, "a second call for the volume of %s", effect->id.text);
    if ((down || effect->kind == VX_UNCLAIM) && sim_alloc_lives(sim, whom->alloc))
        sim_violate(sim, 26, "%s of %s while a process of its alloc lives",
                    volume_def.effects[effect->kind].name, effect->id.text);
    for (int i = 0; i < sim->claims_count; i++) {
        const struct sim_claim_state *other = &sim->claims[i];
        const struct machine *record =
            other == claim || other->disk != claim->disk ? NULL : core_find(sim->core, &other->id);
        if (record == NULL || fsm_is_final(record) || record->state == V_RELEASING)
            continue;
        used = true;
        known |= !came_later(claim, other, record);
    }
    if (unstages && known)
        sim_violate(sim, 27, "%s unstages what another alloc uses or may use", effect->id.text);
    if (effect->kind == VX_UNCLAIM && claim->mounted)
        sim_violate(sim, 26, "%s is released while it is mounted", effect->id.text);
    if (effect->kind == VX_UNCLAIM && disk->staged && !used)
        sim_violate(sim, 26, "%s is released by its last user while it is staged", effect->id.text);
}

/* I-32: what an instance has left under its key is not taken for its successor's. */
static void check_launch(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    struct sim_plugin_state *plugin = sim_plugin_of(sim, whom);

    if (effect->generation <= plugin->launched)
        sim_violate(sim, 32, "plugin %s is launched as generation %u again", effect->id.text,
                    effect->generation);
    plugin->launched = effect->generation;
}

void sim_check_effect(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    const struct machine *stored = sim_store_find(&sim->store, &effect->id);
    const struct sim_alloc_state *alloc = whom->alloc < 0 ? NULL : sim_alloc_of(sim, whom);

    bool final = fsm_is_final(effect->record);
    if (sim->in_turn && sim->commit_failed)
        sim_violate(sim, 18, "%s performs %s although the commit failed", effect->id.text,
                    fsm_effect_name(fsm_definition((enum machine_kind)whom->kind), effect->kind));
    if ((stored == NULL && !final && !sim_store_has(&sim->store, &effect->id)) ||
        (stored != NULL && stored->revision != effect->record->revision))
        sim_violate(sim, 16, "%s performs %s before it is durable", effect->id.text,
                    fsm_effect_name(fsm_definition((enum machine_kind)whom->kind), effect->kind));
    if (effect->lane < LANE_COUNT && effect->record->lane_effect[effect->lane] != effect->kind)
        sim_violate(sim, 11, "%s performs %s, which was superseded when it was decided",
                    effect->id.text,
                    fsm_effect_name(fsm_definition((enum machine_kind)whom->kind), effect->kind));
    if (whom->kind == MACHINE_ALLOC && effect->kind == AX_HOOK && alloc->ended &&
        alloc_of(effect->record)->phase == PHASE_PRERUN)
        sim_violate(sim, 10, "%s was terminal and runs its first hooks", effect->id.text);
    if (whom->kind == MACHINE_TASK) {
        const struct task *task = task_of(effect->record);
        bool starts = effect->kind == TX_DRIVER_START ||
                      (effect->kind == TX_HOOK && task->phase == PHASE_PRESTART);
        if (starts && (alloc->ended || sim_task_of(sim, whom)->dead))
            sim_violate(sim, 10, "%s was dead and is started", effect->id.text);
        if (effect->kind == TX_DRIVER_DESTROY || effect->kind == TX_DRIVER_STOP)
            check_ending(sim, effect, whom);
    }
    if (whom->kind == MACHINE_VOLUME)
        check_volume(sim, effect, whom);
    if (whom->kind == MACHINE_PLUGIN && effect->kind == PX_LAUNCH)
        check_launch(sim, effect, whom);
}

static bool same_place(const struct sim_alloc_state *a, const struct sim_alloc_state *b)
{
    return a->job == b->job && a->group == b->group && a->index == b->index;
}

static int64_t created_unix_ns(const struct sim *sim, const struct sim_alloc_state *alloc)
{
    const struct machine *record = sim_store_find(&sim->store, &alloc->id);

    return record == NULL ? INT64_MAX : alloc_of(record)->assign.create_unix_ns;
}

/* True if whose disk it takes over was lost with the record of one between the two. */
static bool chain_is_broken(const struct sim *sim, const struct sim_alloc_state *first,
                            const struct sim_alloc_state *last)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *between = &sim->allocs[a];
        if (between->damaged && same_place(between, last) &&
            created_unix_ns(sim, between) >= created_unix_ns(sim, first) &&
            created_unix_ns(sim, between) <= created_unix_ns(sim, last))
            return true;
    }
    return false;
}

/* Nobody before ALLOC in its place has the disk still that it was to take over. */
static void check_disk(struct sim *sim, const struct sim_alloc_state *alloc)
{
    int64_t now_unix_ns = created_unix_ns(sim, alloc);

    for (int a = 0; a < sim->allocs_count && now_unix_ns != INT64_MAX; a++) {
        const struct sim_alloc_state *other = &sim->allocs[a];
        const struct machine *before = sim_store_find(&sim->store, &other->id);
        if (other->disk && other->ended && same_place(other, alloc) && before != NULL &&
            !alloc_of(before)->destroy_wanted && created_unix_ns(sim, other) < now_unix_ns &&
            !chain_is_broken(sim, other, alloc))
            sim_violate(sim, 22, "%s runs, and its disk is still with %s", alloc->id.text,
                        other->id.text);
    }
}

/* A shim looks at what it is to bind. */
bool sim_check_mounts(struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_alloc_state *alloc = &sim->allocs[attempt->alloc];
    bool mounted = true;

    for (int i = 0; i < alloc->claims_count; i++) {
        const struct sim_claim_state *claim = &alloc->claims[i];
        if (!claim->mounted && !claim->snatched)
            sim_violate(sim, 31, "%s is started without its volume %s",
                        alloc->tasks[attempt->task].id.text, claim->id.text);
        mounted = mounted && claim->mounted;
    }
    return mounted;
}

/* A payload begins to run. */
void sim_check_payload(struct sim *sim, const struct sim_attempt *attempt)
{
    const struct sim_alloc_state *alloc = &sim->allocs[attempt->alloc];
    const struct sim_task_state *task = &alloc->tasks[attempt->task];

    if (attempt->starts > 1)
        sim_violate(sim, 2, "%s generation %u is started twice", task->id.text,
                    attempt->generation);
    for (int32_t at = task->newest; at >= 0; at = sim->attempts.items[at].next) {
        const struct sim_attempt *other = &sim->attempts.items[at];
        if (other != attempt && sim_attempt_lives(other))
            sim_violate(sim, 2, "two payloads of %s live: generations %u and %u", task->id.text,
                        other->generation, attempt->generation);
    }
    for (int i = 0; i < alloc->claims_count; i++) {
        if (!alloc->claims[i].mounted)
            sim_violate(sim, 31, "%s runs without its volume %s", task->id.text,
                        alloc->claims[i].id.text);
    }
    /* What an older journal takes for set up may have been removed since. */
    if (!alloc->directory && alloc->plan->hooks[0] != 0 && !alloc->older)
        sim_violate(sim, 22, "%s runs without its alloc's directory", task->id.text);
    if (alloc->plan->sticky && alloc->job >= 0)
        check_disk(sim, alloc);
    if (!alloc->network && sim_has_network(alloc) && !alloc->older)
        sim_violate(sim, 33, "%s runs outside its alloc's network", task->id.text);
    if (alloc->follows && sim_alloc_lives(sim, alloc->after - 1))
        sim_violate(sim, 9, "%s runs while the alloc it waits for lives", task->id.text);
    sim_check_order(sim, attempt);
}

/* I-17: what could be read is there, whatever could not. */
void sim_check_loaded(struct sim *sim)
{
    for (size_t i = 0; i < sim->store.count; i++) {
        const struct machine_id *id = &sim->store.items[i]->id;
        if (core_find(sim->core, id) == NULL)
            sim_violate(sim, 17, "%s could be read and was not restored", id->text);
    }
}

/* The core is told of an end. */
void sim_check_exit(struct sim *sim, struct sim_attempt *attempt, const struct exited *exited)
{
    if (attempt->payload == PAYLOAD_RUNNING || (attempt->descendants && !exited->known))
        sim_violate(sim, 7, "an end is told while the payload lives");
}

/* --- after a turn --- */

static void check_task(struct sim *sim, int a, int t)
{
    const struct sim_task_state *state = &sim->allocs[a].tasks[t];
    const struct machine *record = core_find(sim->core, &state->id);

    if (record == NULL || record->state != T_RUNNING)
        return;
    const struct task *task = task_of(record);
    const struct sim_attempt *attempt = sim_attempt(sim, a, t, record->generation);
    if (attempt == NULL || attempt->starts == 0)
        sim_violate(sim, 8, "%s is shown running and was never started", state->id.text);
    else if (task->process.payload_ticks >> 32 != attempt->process.payload_ticks >> 32)
        sim_violate(sim, 5, "%s is believed to live on from another boot", state->id.text);
    else if (task->process.payload_pid != attempt->process.payload_pid ||
             task->process.payload_ticks != attempt->process.payload_ticks)
        sim_violate(sim, 4, "%s has the identity of another process", state->id.text);
}

/* I-1: what lives belongs to a machine, once the sweep is over. */
static void check_owners(struct sim *sim)
{
    if (!sim->restored || !sim->swept)
        return;
    for (size_t i = 0; i < sim->attempts.count; i++) {
        const struct sim_attempt *attempt = &sim->attempts.items[i];
        struct sim_whom whom = {MACHINE_TASK, attempt->alloc, attempt->task};
        if (!sim_attempt_lives(attempt))
            continue;
        const struct machine *record = sim_record(sim, &whom);
        if (record == NULL || record->generation != attempt->generation ||
            !task_holds_work(task_of(record)))
            sim_violate(sim, 1, "%s generation %u lives and belongs to nobody (task is %s)",
                        sim_id(sim, &whom)->text, attempt->generation, state_name(record));
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        const struct machine *record = core_find(sim->core, &sim->plugins[p].id);
        if (sim->plugins[p].alive && (record == NULL || record->state == P_STOPPED))
            sim_violate(sim, 1, "plugin %s lives and belongs to nobody", sim->plugins[p].id.text);
    }
}

/* A node of thousands is looked at as often as its size allows; small worlds after each turn. */
static bool is_looked_at(const struct sim *sim)
{
    return sim->turns % (1 + (uint32_t)sim->tasks_count / TASKS_OF_A_LOOK) == 0;
}

void sim_check_turn(struct sim *sim)
{
    if (!is_looked_at(sim))
        return;
    for (int a = 0; a < sim->allocs_count; a++) {
        for (int t = 0; t < sim->allocs[a].tasks_count; t++)
            check_task(sim, a, t);
    }
    check_owners(sim);
    sim_check_cut_off(sim);
}

struct comparison {
    struct sim *sim;
    size_t count;
};

static bool compare(void *ctx, const struct machine_id *id, const struct machine *record)
{
    struct comparison *comparison = ctx;
    const struct machine *stored = sim_store_find(&comparison->sim->store, id);
    uint32_t size = fsm_record_size(record);
    bool damaged = stored == NULL && sim_store_has(&comparison->sim->store, id);

    comparison->count++;
    if (!damaged &&
        (stored == NULL || fsm_record_size(stored) != size || memcmp(stored, record, size) != 0))
        sim_violate(comparison->sim, 15, "%s in memory is not as in the journal", id->text);
    return true;
}

void sim_check_memory(struct sim *sim)
{
    struct comparison comparison = {.sim = sim};

    if (sim->core == NULL)
        return;
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++)
        core_each(sim->core, (enum machine_kind)kind, compare, &comparison);
    sim_check_history(sim);
    if (comparison.count != sim->store.count)
        sim_violate(sim, 15, "%zu machines in memory, %zu in the journal", comparison.count,
                    sim->store.count);
    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->accepted && !alloc->gone && !alloc->damaged &&
            !sim_store_has(&sim->store, &alloc->id))
            sim_violate(sim, 14, "%s was accepted and is lost", alloc->id.text);
    }
}

/* A status is about to be sent. */
void sim_check_push(struct sim *sim, int number, uint64_t digest, uint8_t status)
{
    const struct sim_alloc_state *alloc = &sim->allocs[number];
    bool was_over =
        alloc->reported_status == CLIENT_COMPLETE || alloc->reported_status == CLIENT_FAILED;

    if (digest == alloc->acked_digest && !alloc->damaged)
        sim_violate(sim, 39, "%s is reported again although nothing has changed", alloc->id.text);
    if (was_over && !alloc->damaged && !alloc->older &&
        (status == CLIENT_PENDING || status == CLIENT_RUNNING))
        sim_violate(sim, 39, "%s was reported %s and now %s", alloc->id.text,
                    client_status_name(alloc->reported_status), client_status_name(status));
}
