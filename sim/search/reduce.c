/*
 * What is left out of a state of the search, because nothing that follows depends on it.
 *
 * First what is only ever reported: task events, texts, client status, wall-clock times, revisions.
 * Then what is set again before it is read, in the state the machine is in: the outcome of an
 * attempt that is over, an order that has been obeyed.  This must follow the rules of the machines;
 * test/sim/test_search.c walks with and without it and compares.  Times become "set" or "not set".
 */
#include "sim/search/part.h"

#include <string.h>

static uint64_t set_or_not(uint64_t at_ms)
{
    return at_ms == 0 ? 0 : SEARCH_FAR_MS;
}

static void reduce_head(struct machine *record)
{
    record->revision = 0;
    record->entered_ms = 0;
    record->attempt = 0; /* few or exhausted: HOW_LAST */
    record->deadline_ms = set_or_not(record->deadline_ms);
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        if (record->lane_effect[lane] == 0)
            record->lane_ticket[lane] = 0;
    }
}

/* --- tasks --- */

/* An order to end decides by itself what follows; no attempt will be judged or begun. */
static void reduce_killed(struct task *task)
{
    task->restart_count = 0;
    task->rebooted = task->may_start = 0;
    memset(&task->exit, 0, sizeof(task->exit));
}

static bool is_dead(uint8_t state)
{
    return state == T_DEAD || state == T_OWING;
}

static void reduce_ended(struct task *task)
{
    reduce_killed(task);
    task->kill_at_ms = task->delay_until_ms = 0;
    task->ran = task->exit_seen = task->start_failed = task->unrecoverable = 0;
    task->resume = task->kill_wanted = task->restart_wanted = task->script_failed = 0;
    if (is_dead(task->machine.state))
        task->rewound = 0;
    if (is_dead(task->machine.state) && task->told_revision == task->status_revision) {
        task->failed = 0; /* its alloc knows */
        task->started_unix_ns = 0;
    }
}

static void reduce_exit(struct task *task)
{
    bool well = task->exit.known && task->exit.code == 0 && task->exit.signal == 0;
    uint8_t known = task->exit.known;

    memset(&task->exit, 0, sizeof(task->exit));
    task->exit.known = known;
    task->exit.code = task->exit_seen && !well;
}

static bool runs_hooks(uint8_t state)
{
    return state == T_PRESTART || state == T_RUNNING || state == T_PREKILL || state == T_EXITED ||
           state == T_CLEANUP;
}

/* True where it may still be asked whether there is a shutdown_delay to be waited for. */
static bool delay_counts(uint8_t state)
{
    return state == T_STARTING || state == T_RECOVERING || state == T_PREKILL ||
           state == T_DELAYING;
}

static void reduce_task(struct task *task)
{
    uint8_t state = task->machine.state;

    task->interval_ms = SEARCH_NOW_MS; /* it never ends */
    task->older_wait_ms = 0;           /* all versions ask for the same */
    task->restart_at_ms = state == T_BACKOFF ? SEARCH_FAR_MS : 0;
    task->owed_at_ms = state == T_OWING ? SEARCH_FAR_MS : 0;
    task->owed_passes = task->owed_passes != 0; /* whether users were told */
    if (state != T_CLEANUP && state != T_OWING)
        task->owed = task->owed_passes = 0;
    task->delay_until_ms = set_or_not(task->delay_until_ms);
    task->kill_at_ms = set_or_not(task->kill_at_ms);
    task->started_unix_ns = task->started_unix_ns != 0;
    task->finished_unix_ns = task->last_restart_unix_ns = 0;
    task->restarts = 0;
    task->verdict = TASK_UNDECIDED; /* of the step that asks */
    if (!runs_hooks(state))
        task->phase = task->hook = 0;
    memset(&task->process, 0, sizeof(task->process));
    memset(task->events, 0, sizeof(task->events));
    task->events_count = 0;
    task->machine.restored = 0;
    reduce_exit(task);
    if (task->kill_wanted) {
        reduce_killed(task);
        task->failed = 0; /* its alloc ends, whatever it says */
    }
    if (state != T_RECOVERING && state != T_STARTING)
        task->resume = RESUME_NOTHING; /* noted again by each restart */
    if (state == T_REAPING && task->exit_seen)
        task->kill_at_ms = 0;
    if (!delay_counts(state))
        task->at_once = 0;
    if (state == T_CLEANUP || is_dead(state))
        reduce_ended(task);
    task->status_revision = task->status_revision != task->told_revision;
    task->told_revision = 0;
}

/* --- allocs --- */

/* The group ends, and nothing but its poststop tasks, if it has any, will start. */
static void reduce_ending(struct alloc *alloc)
{
    bool poststop = false;

    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        poststop |= member->kind == MEMBER_TASK && member->lifecycle == LIFECYCLE_POSTSTOP &&
                    member->run_state != TASK_RUN_DEAD;
    }
    alloc->stop_wanted = 1; /* as good as */
    alloc->kill_event = TASK_EVENT_NONE;
    memset(alloc->kill_text, 0, sizeof(alloc->kill_text));
    for (uint32_t i = 0; i < alloc->assign.members_count; i++) {
        struct alloc_member *member = &alloc->assign.members[i];
        bool dead = member->kind == MEMBER_TASK && member->run_state == TASK_RUN_DEAD;
        member->started = 0;
        if (member->kind == MEMBER_TASK)
            member->failed = 0;
        if (alloc->machine.state != A_POSTSTOP)
            member->looks = 0;
        if (dead || (alloc->machine.state != A_POSTSTOP && member->told == ORDER_START))
            member->told = ORDER_NONE;
        if (!poststop && member->kind == MEMBER_VOLUME)
            member->ready = member->failed = 0;
    }
    if (alloc->machine.state > A_KILLING)
        alloc->at_once = 0; /* what is killed now has no delay ahead */
    if (!poststop)
        alloc->may_start = alloc->setup_failed = alloc->prepared = alloc->ran_out = 0;
}

static void reduce_alloc(struct alloc *alloc)
{
    uint8_t state = alloc->machine.state;
    bool hooks =
        state == A_PREPARING || state == A_PREKILL || state == A_POSTRUN || state == A_DESTROYING;

    alloc->delay_until_ms = set_or_not(alloc->delay_until_ms);
    alloc->run_until_ms = set_or_not(alloc->run_until_ms);
    alloc->assigned_ms = alloc->contact_ms = 0;
    alloc->checks_ran = alloc->checks_pass = 0; /* nobody waits for them */
    for (uint32_t i = 0; i < alloc->assign.members_count; i++)
        alloc->assign.members[i].up = MEMBER_DOWN; /* nobody waits for its health */
    alloc->status_revision = alloc->acked_revision = 0;
    alloc->modify_unix_ns = alloc->ended_unix_ns = 0;
    alloc->client_status = 0;
    alloc->machine.restored = 0;
    if (!hooks)
        alloc->phase = alloc->hook = 0;
    if (alloc->kill_event != TASK_EVENT_NONE)
        memset(alloc->kill_text, 0, sizeof(alloc->kill_text));
    memset(alloc->desired_description, 0, sizeof(alloc->desired_description));
    memset(alloc->failure, 0, sizeof(alloc->failure));
    if (alloc_state_ends(state))
        reduce_ending(alloc);
}

/* --- volumes and plugins --- */

static void reduce_volume(struct volume *volume)
{
    volume->recoverable = volume->verdict = 0; /* of the step that asks */
    volume->failures = volume->tries = 0;      /* how long it pauses */
    volume->missed = volume->missed > 0;       /* it is told once more, however often that is */
    volume->looked_ms = 0;                     /* it always was a while ago */
    volume->called_ms = 0;                     /* no plugin of a search is a task */
    volume->retry_at_ms = set_or_not(volume->retry_at_ms);
    volume->plugin_until_ms = set_or_not(volume->plugin_until_ms);
    volume->makes_until_ms = set_or_not(volume->makes_until_ms);
    volume->undoes_until_ms = set_or_not(volume->undoes_until_ms);
    memset(volume->failure, 0, sizeof(volume->failure));
    if (volume->release_wanted)
        volume->machine.restored = 0; /* it is not queued any more */
}

static void reduce_plugin(struct plugin *plugin)
{
    plugin->failures = 0;
    plugin->defined_ms = plugin->ended_ms = 0;
    plugin->due_ms = set_or_not(plugin->due_ms);
    plugin->permanent = 0; /* of the step that asks */
    plugin->machine.restored = 0;
    memset(&plugin->process, 0, sizeof(plugin->process));
    memset(plugin->failure, 0, sizeof(plugin->failure));
    if (plugin->machine.state != P_READY)
        memset(&plugin->identity, 0, sizeof(plugin->identity));
}

static void reduce_record(struct machine *record)
{
    reduce_head(record);
    switch ((enum machine_kind)record->kind) {
    case MACHINE_TASK:
        reduce_task((struct task *)(void *)record);
        return;
    case MACHINE_ALLOC:
        reduce_alloc((struct alloc *)(void *)record);
        return;
    case MACHINE_VOLUME:
        reduce_volume((struct volume *)(void *)record);
        return;
    case MACHINE_PLUGIN:
        reduce_plugin((struct plugin *)(void *)record);
        return;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

/* --- the world --- */

static void reduce_attempt(struct search_attempt *attempt, const struct machine *record,
                           const struct search_rules *rules)
{
    bool asked = record != NULL && record->generation == attempt->generation &&
                 task_holds_work(task_of(record));

    bool newest = record != NULL && record->generation == attempt->generation &&
                  record->state != T_CLEANUP && !is_dead(record->state);
    if (!search_exists(attempt) && !asked) /* all that counts is whether its key was used */
        *attempt = (struct search_attempt){
            .generation = newest ? attempt->generation : 0,
            .starts = newest ? attempt->starts : 0,
        };
    if (!rules->may_boot)
        attempt->answered = 0; /* only a reboot asks */
    if (attempt->payload == PAYLOAD_HAS_ENDED && attempt->record != RECORD_OF_END && !rules->queued)
        attempt->end = 0; /* nobody will know */
    if (attempt->payload == PAYLOAD_HAS_ENDED)
        attempt->stopping = 0;
}

static void reduce_processes(struct search_task *task, const struct machine *record,
                             const struct search_rules *rules)
{
    bool over = record == NULL || record->state == T_CLEANUP || is_dead(record->state);
    bool begins = record != NULL && (record->state == T_STARTING || record->state == T_RECOVERING);

    for (unsigned i = 0; i < SEARCH_ATTEMPTS; i++)
        reduce_attempt(&task->attempts[i], record, rules);
    if (over)
        task->prestarted = 0;
    if (!begins)
        task->hooked = 0;
    if (record == NULL || record->state != T_RECOVERING)
        task->untouched = 0;
    if (record == NULL || !task_holds_work(task_of(record)))
        task->unseen = 0;
}

void search_reduce(struct machine *const *records, struct search_world *world,
                   const struct search_rules *rules)
{
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        if (records[who] != NULL)
            reduce_record(records[who]);
    }
    for (unsigned t = 0; t < SEARCH_TASKS; t++)
        reduce_processes(&world->tasks[t], records[WHO_TASK_A + t], rules);
    if (records[WHO_ALLOC] == NULL && records[WHO_VOLUME] == NULL && records[WHO_TASK_A] == NULL &&
        records[WHO_TASK_B] == NULL && world->gone)
        world->torn = 0;
    if (world->mounted || (records[WHO_VOLUME] == NULL && !world->torn))
        world->snatched = 0;
    if (!rules->server)
        world->fresh = 0;
}
