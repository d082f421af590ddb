/*
 * How often and when a task is tried again, as the author of its job expects it.
 *
 * A count of the simulator's own follows what is committed, over all incarnations of the daemon, so
 * that a count or a delay that a restart has lost shows (I-36).  Who asked for a restart is noted,
 * too: what was acknowledged is done (I-14), and what has ended by itself is not begun again for no
 * reason (I-10).
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

enum {
    PAUSE_MS_MIN = 100,
    HASTY_MAX = 2, /* somebody may have asked for it in between */
};

/* One more try of TASK at NOW_MS: of this interval, or the first of the next one. */
static void count_try(struct sim_tries *tries, uint64_t now_ms)
{
    if (now_ms > tries->begun_ms + tries->define.restart_interval_ms) {
        tries->begun_ms = now_ms;
        tries->used = 0;
    }
    tries->used++;
}

static void check_later(struct sim *sim, const struct journal_event *event, const struct task *task,
                        struct sim_tries *tries)
{
    const struct task_define *define = &tries->define;
    uint64_t least_ms = event->now_ms + define->restart_delay_ms;
    uint64_t most_ms = least_ms + define->restart_delay_ms / 4;

    count_try(tries, event->now_ms);
    bool beyond = tries->used > define->restart_attempts;
    if (beyond && (!define->restart_mode_delay || define->restart_attempts == 0))
        sim_violate(sim, 36, "%s is tried again, %u times in an interval that allows %u",
                    event->id.text, tries->used, define->restart_attempts);
    if (beyond)
        least_ms = most_ms = tries->begun_ms + define->restart_interval_ms;
    if (task->machine.state != T_BACKOFF)
        return; /* it was told to end in the same turn */
    tries->again_at_ms = task->restart_at_ms;
    if (task->restart_at_ms < least_ms || task->restart_at_ms > most_ms)
        sim_violate(sim, 36, "%s is tried again at %llu, and should be from %llu to %llu",
                    event->id.text, (unsigned long long)task->restart_at_ms,
                    (unsigned long long)least_ms, (unsigned long long)most_ms);
}

static void check_never(struct sim *sim, const struct journal_event *event, const struct task *task,
                        struct sim_tries *tries)
{
    const struct task_define *define = &tries->define;
    bool success = task->exit_seen && task->exit.known && task->exit.code == 0 &&
                   task->exit.signal == 0 && !task->start_failed;
    bool hopeless = task->start_failed && task->unrecoverable;

    if (task->kill_wanted)
        return;
    count_try(tries, event->now_ms); /* good for all that its alloc has run again, too */
    if (hopeless || (success && !define->restart_on_success))
        return;
    if (define->restart_attempts > 0 &&
        (define->restart_mode_delay || tries->used <= define->restart_attempts))
        sim_violate(sim, 36, "%s is given up after %u tries in an interval that allows %u",
                    event->id.text, tries->used - 1, define->restart_attempts);
}

void sim_check_tries(struct sim *sim, const struct sim_whom *whom,
                     const struct journal_event *event, const struct task *task)
{
    struct sim_tries *tries = &sim_task_of(sim, whom)->tries;
    bool over = event->before == T_REAPING || event->before == T_EXITED ||
                (event->before == T_PRESTART && event->event.kind == TE_HOOK_FAILED) ||
                (event->before == T_LOOKING && event->event.kind == TE_UNMOUNTED);

    if (event->before == T_ABSENT)
        *tries = (struct sim_tries){.known = true, .begun_ms = event->now_ms};
    if (event->event.kind == TE_DEFINE || event->event.kind == TE_UPDATE)
        tries->define = *(const struct task_define *)event->event.payload;
    if (event->event.kind == TE_REWIND && task->rewind_wanted) {
        tries->asked = task->machine.generation;
        if (event->before != T_RECOVERING) /* told once more after a restart */
            tries->in_turn = event->before == T_RUNNING && event->turn > tries->ran_turn;
    }
    if (event->after == T_RUNNING && event->before != T_RUNNING)
        tries->ran_turn = event->turn;
    if (!tries->known || event->before == event->after)
        return;
    if (event->event.kind == TE_RESTART || event->event.kind == TE_CHANGED)
        tries->asked = task->machine.generation;
    if (event->after == T_WAITING)
        tries->again_at_ms = 0; /* who has all of an alloc run again waits for no delay */
    if (event->after == T_WAITING && !over)
        tries->asked = 0; /* there was nothing that could end */
    if (!over || event->after == T_EXITED || event->after == T_RECOVERING)
        return;
    bool asked = tries->asked == task->machine.generation && tries->asked != 0;
    tries->asked = 0;
    bool at_once =
        event->after == T_PRESTART || event->after == T_HELD || event->after == T_WAITING;
    if (asked && !at_once && !task->kill_wanted)
        sim_violate(sim, 14, "the restart of %s was acknowledged and is not done", event->id.text);
    bool by_itself = task->exit_seen && task->exit.known && !task->exit.with_host;
    if (at_once && !asked && by_itself)
        sim_violate(sim, 10, "%s has ended by itself and is begun again at once", event->id.text);
    if (event->after == T_BACKOFF)
        check_later(sim, event, task, tries);
    if (event->after == T_CLEANUP)
        check_never(sim, event, task, tries);
}

/* --- calls --- */

static struct sim_failing *failing_of(struct sim *sim, const struct sim_call *call)
{
    const struct sim_whom *whom = &call->whom;

    switch ((enum machine_kind)whom->kind) {
    case MACHINE_TASK:
        return &sim_task_of(sim, whom)->failing[call->effect];
    case MACHINE_ALLOC:
        return &sim_alloc_of(sim, whom)->failing[call->effect];
    case MACHINE_VOLUME:
        return &sim_claim_of(sim, whom)->failing[call->effect];
    case MACHINE_PLUGIN:
        return &sim_plugin_of(sim, whom)->failing[call->effect];
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("machine kind");
}

/* The pauses between starts, and the hooks before them, are those of the job. */
static bool is_paced_by_job(const struct sim_call *call)
{
    return call->whom.kind == MACHINE_TASK &&
           (call->effect == TX_DRIVER_START || call->effect == TX_HOOK);
}

void sim_check_failed(struct sim *sim, const struct sim_call *call)
{
    struct sim_failing *failing = failing_of(sim, call);

    failing->at_ms = sim->now_ms;
    failing->incarnation = sim->incarnation;
}

void sim_check_call(struct sim *sim, const struct sim_call *call)
{
    struct sim_failing *failing = failing_of(sim, call);
    bool hasty =
        failing->incarnation == sim->incarnation && sim->now_ms < failing->at_ms + PAUSE_MS_MIN;

    failing->hasty = hasty && !is_paced_by_job(call) ? failing->hasty + 1 : 0;
    failing->incarnation = 0;
    if (failing->hasty > HASTY_MAX)
        sim_violate(
            sim, 35, "%s fails and is called again at once, again and again, by %s",
            fsm_effect_name(fsm_definition((enum machine_kind)call->whom.kind), call->effect),
            sim_id(sim, &call->whom)->text);
}

void sim_check_again(struct sim *sim, const struct effect *effect, const struct sim_whom *whom)
{
    struct sim_tries *tries = &sim_task_of(sim, whom)->tries;

    if (tries->again_at_ms > sim_node_ms(sim))
        sim_violate(sim, 36, "%s is started before its restart delay is over", effect->id.text);
}
