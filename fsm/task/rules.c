/*
 * The task machine's rules: what events and transitions do to the record.
 *
 * absorb() takes an event's payload into the record and, where an attempt is over, lets it be
 * decided what follows (restart.c); guards then only read (guards.c).  enter() does what
 * a transition means to users: states, times, task events (notes.c).  Everything here is pure.
 */
#include "fsm/task/part.h"

#include "fsm/alloc.h"
#include "fsm/policy.h"

#include <string.h>

enum { CLEANUP_BACKOFF_MS = 1000, CLEANUP_BACKOFF_MS_MAX = 120000 };

static struct task *mutable_task(struct machine *record)
{
    check(record->kind == MACHINE_TASK);
    return (struct task *)(void *)record;
}

static void note_terminated(struct task *task, const struct fsm_now *now)
{
    struct task_event *event = task_note(task, now, TASK_EVENT_TERMINATED, task->exit.message);

    event->number = task->exit.code;
    event->signal = task->exit.signal;
    event->oom_killed = task->exit.oom_killed;
    event->unknown = !task->exit.known;
}

/* --- hooks --- */

static void begin_phase(struct task *task, enum hook_phase phase)
{
    task->phase = (uint8_t)phase;
    task->hook = task_hook_first(task, phase);
}

/* True if HOOK has left something for later starts. */
static bool has_results_of(const struct task *task, uint8_t hook)
{
    struct result result;

    for (uint32_t at = 0; results_next(task->results, task->results_bytes, &at, &result);) {
        if (result.hook == hook)
            return true;
    }
    return false;
}

static void next_hook(struct task *task)
{
    task->hook = task_hook_after(task, (enum hook_phase)task->phase, task->hook);
}

/* Users read of the hook that may take long; what it has done once it finds done. */
static void note_next_hook(struct task *task, const struct fsm_now *now)
{
    if (task->machine.state == T_PRESTART && task->hook == TASK_HOOK_ARTIFACTS &&
        !has_results_of(task, TASK_HOOK_ARTIFACTS))
        task_note(task, now, TASK_EVENT_DOWNLOADING, "");
}

static void absorb_hook_done(struct task *task, const struct fsm_event *event,
                             const struct fsm_now *now)
{
    const struct hook_outcome *outcome = event->payload;

    /* What it left before the start holds until the next one, whatever it does behind it. */
    if (outcome->hook < TASK_HOOK_COUNT && task->phase == PHASE_PRESTART) {
        struct results results = {task->results, task->results_bytes, RESULTS_BYTES_MAX};
        int code = results_take(&results, outcome->hook, outcome->results, outcome->results_bytes);
        check(code == 0); /* whoever ran it has looked whether there is room */
        task->results_bytes = results.used;
    }
    if (task->machine.state == T_CLEANUP && outcome->hook < TASK_HOOK_COUNT)
        task->owed &= ~(1u << outcome->hook);
    next_hook(task);
    note_next_hook(task, now);
    if (task->machine.state == T_EXITED && task->hook == HOOK_NONE)
        task_decide(task, now);
}

static void note_hook_failed(struct task *task, const struct fsm_now *now, const char *what,
                             const struct hook_outcome *outcome)
{
    char text[TASK_EVENT_TEXT_SIZE];

    (void)text_format(text, sizeof(text), "%s%s: %s", what, task_hook_name(outcome->hook),
                      outcome->text); /* cut if too long */
    task_note(task, now, TASK_EVENT_HOOK_FAILED, text);
}

static void absorb_hook_failed(struct task *task, const struct fsm_event *event,
                               const struct fsm_now *now)
{
    const struct hook_outcome *outcome = event->payload;
    bool starting = task->machine.state == T_PRESTART;

    if (task->machine.state == T_CLEANUP && task->owed_passes == 0) /* told once, tried for ever */
        note_hook_failed(task, now, "not cleaned up, tried again until it is: ", outcome);
    if (starting && outcome->hook == TASK_HOOK_ARTIFACTS)
        task_note(task, now, TASK_EVENT_DOWNLOAD_FAILED, outcome->text);
    else if (starting)
        note_hook_failed(task, now, "", outcome);
    if (starting) {
        task->start_failed = 1;
        task->unrecoverable = !outcome->recoverable;
    }
    next_hook(task);
    if (starting || (task->machine.state == T_EXITED && task->hook == HOOK_NONE))
        task_decide(task, now);
}

/* --- templates --- */

/* The next script is the one under way: one at a time, so that no change is overtaken. */
static void next_script(struct task *task)
{
    task->script = 0;
    if (task->scripts_owed == 0)
        return;
    int number = __builtin_ctzll(task->scripts_owed);
    task->scripts_owed &= task->scripts_owed - 1;
    task->script = (uint8_t)(number + 1);
}

static void absorb_scripted(struct task *task, const struct failure *said,
                            const struct fsm_now *now)
{
    if (said->text[0] != '\0')
        task_note(task, now, said->code == 0 ? TASK_EVENT_HOOK_MESSAGE : TASK_EVENT_HOOK_FAILED,
                  said->text);
    next_script(task);
    if (said->code == 0 || said->recoverable)
        return;
    task->script_failed = task->kill_wanted = 1;
    task->restart_wanted = 0;
    task_note_failing(task, now, TASK_EVENT_KILLING,
                      "Template script failed, task is being killed");
}

/* --- templates and identities --- */

static void note_restart(struct task *task, const struct hook_outcome *outcome,
                         const struct fsm_now *now)
{
    char text[TASK_EVENT_TEXT_SIZE] = "Template with change_mode restart re-rendered";

    if (outcome->hook == TASK_HOOK_IDENTITY)
        (void)text_format(text, sizeof(text), "Identity[%s]: new token acquired",
                          outcome->text); /* cut if too long */
    task_note(task, now, TASK_EVENT_RESTART_SIGNALED, text);
}

/* What its templates say now, or its new tokens, told once: what they differ from goes with it. */
static void absorb_changed(struct task *task, const struct hook_outcome *outcome,
                           const struct fsm_now *now)
{
    struct results results = {task->results, task->results_bytes, RESULTS_BYTES_MAX};
    const struct hook_outcome crowded = {.hook = outcome->hook,
                                         .text = "what it leaves is too long"};
    struct rendered_change change;

    if (task->machine.state != T_RUNNING || task_hook_first(task, PHASE_POSTSTART) == HOOK_NONE)
        return; /* it ends, and its next start renders, and signs */
    if (!results_have_room(&results, outcome->hook, outcome->results_bytes)) {
        note_hook_failed(task, now, "", &crowded);
        return;
    }
    policy_change(outcome->hook, task->results, task->results_bytes, outcome->results,
                  outcome->results_bytes, &change);
    int code = results_take(&results, outcome->hook, outcome->results, outcome->results_bytes);
    check(code == 0); /* there is room */
    task->results_bytes = results.used;
    if (change.restarts) {
        task->restart_wanted = 1;
        note_restart(task, outcome, now);
        return;
    }
    task->scripts_owed |= change.scripts;
    if (task->script == 0)
        next_script(task);
    if (change.signals == 0)
        return;
    task->changes++;
    task->signals_owed |= change.signals;
    task_note(task, now, TASK_EVENT_SIGNALING, outcome->text)->number =
        outcome->hook == TASK_HOOK_IDENTITY ? SIGNALED_BY_IDENTITY : SIGNALED_BY_TEMPLATE;
}

/* --- absorb --- */

static void absorb_define(struct task *task, const struct fsm_event *event,
                          const struct fsm_now *now)
{
    const struct task_define *define = event->payload;

    check(task->machine.state == T_ABSENT);
    task->define = *define;
    task->may_start = define->may_start;
    task->interval_ms = now->ms;
    task_note(task, now, TASK_EVENT_RECEIVED, "");
}

static uint64_t longer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a newer version may say otherwise.  A wait that has begun goes on as it was asked for; the
 * next one, the next signal and the next end go by the newer version. */
static void absorb_update(struct task *task, const struct fsm_event *event)
{
    const struct task_define *newer = event->payload;
    struct task_define *define = &task->define;

    check(task->machine.state != T_ABSENT);
    task->older_wait_ms = longer(task->older_wait_ms, task_longest_wait_ms(define));
    define->restart_interval_ms = newer->restart_interval_ms;
    define->restart_delay_ms = newer->restart_delay_ms;
    define->restart_attempts = newer->restart_attempts;
    define->restart_mode_delay = newer->restart_mode_delay;
    define->kill_timeout_ms = newer->kill_timeout_ms;
    define->shutdown_delay_ms = newer->shutdown_delay_ms;
    memcpy(define->kill_signal, newer->kill_signal, sizeof(define->kill_signal));
}

static void absorb_kill(struct task *task, const struct fsm_event *event, const struct fsm_now *now)
{
    const struct kill_order *order = event->payload;

    if (task->machine.state == T_CLEANUP) {
        task->rewind_wanted = 0; /* it ends already, and for good */
        return;
    }
    if (order->at_once)
        task->at_once = 1;
    if (task->kill_wanted)
        return; /* repeated after a restart of the daemon, or to be at once */
    task->kill_wanted = 1;
    task->restart_wanted = task->rewind_wanted = 0;
    if (order->event != TASK_EVENT_NONE && order->fails)
        task_note_failing(task, now, (enum task_event_type)order->event, order->text);
    else if (order->event != TASK_EVENT_NONE)
        task_note(task, now, (enum task_event_type)order->event, order->text);
    if (!order->fails)
        task_note(task, now, TASK_EVENT_KILLING, order->event == TASK_EVENT_NONE ? order->text : "")
            ->number = (int64_t)task->define.kill_timeout_ms * 1000000;
}

static void absorb_restart_order(struct task *task, const struct request *request,
                                 const struct fsm_now *now)
{
    if (task->machine.state != T_RUNNING)
        return; /* its row refuses it */
    task->restart_wanted = 1;
    task_note(task, now, TASK_EVENT_RESTART_SIGNALED, request->text);
}

/* Users ask for no reason; whoever else does has just given one. */
static bool was_told_why(const struct task *task)
{
    return task->events_count > 0 &&
           task->events[task->events_count - 1].type == TASK_EVENT_RESTART_SIGNALED;
}

/* Its alloc runs all of its tasks again.  One that has failed does not: its group ends with it. */
static void absorb_rewind(struct task *task, bool dead, const struct fsm_now *now)
{
    if (task->rewind_wanted || task->kill_wanted || task->failed)
        return; /* or repeated after a restart of the daemon */
    if (dead != (task->run_state == TASK_RUN_DEAD))
        return; /* its alloc will be told what it is */
    task->rewind_wanted = 1;
    task->restart_wanted = 0;
    if (!task_state_waits(task->machine.state) && !was_told_why(task))
        task_note(task, now, TASK_EVENT_RESTART_SIGNALED, policy_replayed);
}

/* What its plugin or its alloc says of it. */
static void absorb_plugin(struct task *task, const struct kill_order *said, bool unwell,
                          const struct fsm_now *now)
{
    check(said->event != TASK_EVENT_NONE);
    if (unwell)
        task->unwell = 1;
    task_note(task, now, (enum task_event_type)said->event, said->text);
}

static void absorb_start_failed(struct task *task, const struct failure *failure,
                                const struct fsm_now *now)
{
    task->start_failed = 1;
    task->unrecoverable = !failure->recoverable;
    task_note(task, now, TASK_EVENT_DRIVER_FAILURE, failure->text);
}

/* What it needs cannot be mounted: as when a hook before the start fails. */
static void absorb_unmounted(struct task *task, const struct failure *failure,
                             const struct fsm_now *now)
{
    check(task->machine.state == T_LOOKING || task->machine.state == T_HELD);
    task->start_failed = 1;
    task->unrecoverable = 0;
    task_note(task, now, TASK_EVENT_HOOK_FAILED, failure->text);
    task_decide(task, now);
}

/* Tried again until it works; told when it begins, and when the reason is another one. */
static void absorb_reap_failed(struct task *task, const struct failure *failure,
                               const struct fsm_now *now)
{
    const struct task_event *last =
        task->events_count > 0 ? &task->events[task->events_count - 1] : NULL;
    char text[TASK_EVENT_TEXT_SIZE];

    (void)text_format(text, sizeof(text),
                      "Failed to end what is left of the task, trying again: %s",
                      failure->text); /* cut if too long */
    if (last == NULL || last->type != TASK_EVENT_DRIVER_FAILURE || !text_equal(last->text, text))
        task_note(task, now, TASK_EVENT_DRIVER_FAILURE, text);
}

static void absorb_exit(struct task *task, const struct exited *exit, const struct fsm_now *now)
{
    if (task->exit_seen)
        return;
    task->exit = *exit;
    task->exit_seen = 1;
    note_terminated(task, now);
}

static void absorb_unknown_exit(struct task *task, const char *why, const struct fsm_now *now)
{
    struct exited exit = {.code = -1, .known = 0};

    (void)text_copy(exit.message, sizeof(exit.message), why); /* cut if too long */
    absorb_exit(task, &exit, now);
}

static void absorb_lost(struct task *task, const struct fsm_event *event, const struct fsm_now *now)
{
    const struct failure *failure = event->payload;

    if (task_look_failed(task, failure))
        return;
    if (failure->untouched && !task->ran) {
        task->start_failed = 0;
        return;
    }
    task->ran = 1;
    absorb_unknown_exit(task, failure->text[0] != '\0' ? failure->text : "exit unknown", now);
}

static void absorb_restore(struct task *task, const struct fsm_event *event)
{
    const struct restore *restore = event->payload;

    check(task->machine.state != T_ABSENT); /* only what was stored can be restored */
    task->may_start = restore->authority && !task->define.mounts;
    if (restore->rebooted && task_holds_work(task))
        task->rebooted = 1;
    if (restore->rebooted && task->machine.state == T_PRESTART)
        begin_phase(task, PHASE_PRESTART); /* "done" holds for one boot (I-22) */
    switch ((enum task_state)task->machine.state) {
    case T_PREKILL:
        task->resume = RESUME_PREKILL;
        break;
    case T_DELAYING:
        task->resume = RESUME_DELAYING;
        break;
    case T_STOPPING:
    case T_REAPING:
        task->resume = RESUME_STOPPING;
        break;
    case T_RECOVERING:
        break; /* as it was noted when RECOVERING began */
    case T_ABSENT:
    case T_WAITING:
    case T_PRESTART:
    case T_STARTING:
    case T_RUNNING:
    case T_HELD:
    case T_EXITED:
    case T_BACKOFF:
    case T_CLEANUP:
    case T_DEAD:
    case T_OWING:
    case T_GONE:
    case T_LOOKING:
    case T_COUNT:
        task->resume = RESUME_NOTHING;
        break;
    }
}

void task_absorb(struct machine *record, const struct fsm_event *event, const struct fsm_now *now)
{
    struct task *task = mutable_task(record);

    switch ((enum task_event_kind)event->kind) {
    case TE_DEFINE:
        absorb_define(task, event, now);
        break;
    case TE_KILL:
        absorb_kill(task, event, now);
        break;
    case TE_AUTHORIZED:
        task->may_start = 1;
        break;
    case TE_REMOVE:
        task->remove_wanted = 1;
        break;
    case TE_RESTART:
        absorb_restart_order(task, event->payload, now);
        break;
    case TE_SIGNAL:
        if (record->state == T_RUNNING || record->state == T_PREKILL ||
            record->state == T_DELAYING || record->state == T_STOPPING)
            task_note(task, now, TASK_EVENT_SIGNALING,
                      ((const struct request *)event->payload)->signal);
        break;
    case TE_HOOK_DONE:
        absorb_hook_done(task, event, now);
        break;
    case TE_HOOK_FAILED:
        absorb_hook_failed(task, event, now);
        break;
    case TE_STARTED:
    case TE_RECOVERED:
        task->process = *(const struct started *)event->payload;
        break;
    case TE_START_FAILED:
        absorb_start_failed(task, event->payload, now);
        break;
    case TE_LOST:
        absorb_lost(task, event, now);
        break;
    case TE_REAPED:
        if (task->ran && !task->exit_seen)
            absorb_unknown_exit(task, "exit unknown: killed, and nobody saw the end", now);
        if (task_hook_first(task, PHASE_EXITED) == HOOK_NONE)
            task_decide(task, now);
        break;
    case TE_REAP_FAILED:
        absorb_reap_failed(task, event->payload, now);
        break;
    case TE_EXITED:
        absorb_exit(task, event->payload, now);
        break;
    case TE_RESTORE:
        absorb_restore(task, event);
        break;
    case TE_REWIND:
    case TE_REVIVE:
        absorb_rewind(task, event->kind == TE_REVIVE, now);
        break;
    case TE_UPDATE:
        absorb_update(task, event);
        break;
    case TE_REPORT:
        task->report_wanted = 1; /* by what comes next, or at once */
        break;
    case TE_CHANGED:
        absorb_changed(task, event->payload, now);
        break;
    case TE_NOTIFIED:
        task->signals_owed = 0;
        break;
    case TE_SCRIPTED:
        absorb_scripted(task, event->payload, now);
        break;
    case TE_NOTE:
    case TE_UNWELL:
    case TE_TOLD:
        absorb_plugin(task, event->payload, event->kind == TE_UNWELL, now);
        break;
    case TE_UNMOUNTED:
        absorb_unmounted(task, event->payload, now);
        break;
    case TE_START:
    case TE_MOUNTED:
    case TE_STOP_ACCEPTED:
    case TE_STOP_FAILED:
    case TE_TIMEOUT:
    case TE_COUNT:
        break;
    }
}

/* --- enter --- */

static void enter_starting(struct task *task)
{
    task->machine.generation++;
    task->ran = 0;
    task->exit_seen = 0;
    task->start_failed = 0;
    task->unrecoverable = 0;
    task->restart_wanted = 0;
    task->unwell = 0;
    task->rebooted = 0;
    task->signals_owed = 0;
    task->scripts_owed = 0;
    task->script = 0;
    task->machine.lane_effect[LANE_NODE] = 0; /* what came of one of the last attempt is no news */
    task->delay_until_ms = 0;
    task->kill_at_ms = 0;
    task->resume = RESUME_NOTHING;
    task->verdict = TASK_UNDECIDED;
    memset(&task->process, 0, sizeof(task->process));
    memset(&task->exit, 0, sizeof(task->exit));
}

/* The payload of this generation is seen alive for the first time. */
static void first_seen_running(struct task *task, const struct fsm_now *now)
{
    if (task->ran)
        return;
    task->ran = 1;
    task->rewound = 0;
    task->run_state = TASK_RUN_RUNNING;
    task->started_unix_ns = now->unix_ns;
    task_note(task, now, TASK_EVENT_STARTED, "");
}

static void enter_delaying(struct task *task, const struct fsm_now *now)
{
    task->delay_until_ms = now->ms + task->define.shutdown_delay_ms;
    task_note(task, now, TASK_EVENT_SHUTDOWN_DELAY, "")->number =
        (int64_t)task->define.shutdown_delay_ms * 1000000;
}

static void enter_stopping(struct task *task, const struct fsm_now *now)
{
    if (task->kill_at_ms != 0)
        return; /* found again on its way there */
    task->kill_at_ms = now->ms + task->define.kill_timeout_ms;
    if (task->at_once && task->define.shutdown_delay_ms > 0 && task->delay_until_ms == 0)
        task_note(task, now, TASK_EVENT_SKIPPING_DELAY, "")->number =
            (int64_t)task->define.shutdown_delay_ms * 1000000;
}

static void enter_pending(struct task *task)
{
    if (task->run_state == TASK_RUN_RUNNING) {
        task->run_state = TASK_RUN_PENDING;
        task->status_revision++;
    }
}

/* Its turn comes again.  What had not begun waits on, which is nothing to tell users. */
static void enter_rewound(struct task *task, const struct fsm_row *row, const struct fsm_now *now)
{
    task->rewind_wanted = 0;
    task->rewound = 1;
    task->rebooted = 0;
    task->finished_unix_ns = 0;
    if (task_state_waits(row->state))
        return;
    task->run_state = TASK_RUN_PENDING;
    task->status_revision++;
    task_note_restarting(task, now, 0, "");
}

static void enter_dead(struct task *task, const struct fsm_now *now)
{
    if (task->run_state == TASK_RUN_DEAD)
        return; /* again after a restart of the daemon */
    task->run_state = TASK_RUN_DEAD;
    if (task->finished_unix_ns == 0)
        task->finished_unix_ns = task->exit_seen && task->exit.finished_unix_ns != 0
                                     ? task->exit.finished_unix_ns
                                     : now->unix_ns;
    task->status_revision++;
}

static void enter_cleanup(struct task *task, const struct fsm_row *row, const struct fsm_now *now)
{
    if (row->state != T_OWING)
        task->owed = task->define.hooks_stop;
    if (row->state == T_DEAD)
        task->owed_passes = 0; /* they had all succeeded */
    begin_phase(task, PHASE_STOP);
    if (row->event != TE_RESTORE && row->state != T_OWING && task->kill_wanted && !task->failed)
        task_note(task, now, TASK_EVENT_KILLED, "");
}

/* It is over for all who ask; what is left behind it is tried again. */
static void enter_owing(struct task *task, const struct fsm_now *now)
{
    enter_dead(task, now);
    task->owed_passes++;
    task->owed_at_ms = now->ms + policy_backoff_ms(CLEANUP_BACKOFF_MS, CLEANUP_BACKOFF_MS_MAX,
                                                   task->owed_passes, now->seed);
}

void task_enter(struct machine *record, const struct fsm_row *row, const struct fsm_event *event,
                const struct fsm_now *now)
{
    struct task *task = mutable_task(record);
    bool same = row->next == row->state;

    (void)event; /* everything of it has been absorbed */
    check(record->state == row->next);
    if (row->event == TE_STARTED || row->event == TE_RECOVERED ||
        (row->event == TE_EXITED && row->state == T_STARTING))
        first_seen_running(task, now);

    switch ((enum task_state)row->next) {
    case T_PRESTART:
        if (same && row->event != TE_HOOK_FAILED)
            break; /* the next hook, or the same one after a restart */
        if (task->started_unix_ns == 0 && row->state == T_WAITING)
            task_note(task, now, TASK_EVENT_TASK_SETUP, "Building Task Directory");
        if (row->state == T_RECOVERING || row->state == T_HELD)
            task->rebooted = 0; /* nothing had run that the reboot could end */
        begin_phase(task, PHASE_PRESTART);
        enter_pending(task);
        break;
    case T_STARTING:
        if (row->state == T_PRESTART || row->state == T_LOOKING)
            enter_starting(task); /* from RECOVERING it is the same attempt, never begun */
        break;
    case T_RUNNING:
        if (!same)
            begin_phase(task, PHASE_POSTSTART);
        task->resume = RESUME_NOTHING;
        break;
    case T_PREKILL:
        if (!same)
            begin_phase(task, PHASE_PREKILL);
        break;
    case T_DELAYING:
        if (task->delay_until_ms == 0)
            enter_delaying(task, now);
        break;
    case T_STOPPING:
        enter_stopping(task, now);
        break;
    case T_EXITED:
        if (!same)
            begin_phase(task, PHASE_EXITED);
        break;
    case T_BACKOFF:
    case T_HELD:
        enter_pending(task);
        break;
    case T_CLEANUP:
        if (!same || row->event == TE_RESTORE)
            enter_cleanup(task, row, now);
        break;
    case T_OWING:
        if (!same)
            enter_owing(task, now);
        break;
    case T_DEAD:
    case T_GONE:
        enter_dead(task, now);
        break;
    case T_WAITING:
        if (task->rewind_wanted)
            enter_rewound(task, row, now);
        break;
    case T_ABSENT:
    case T_RECOVERING:
    case T_REAPING:
    case T_LOOKING:
    case T_COUNT:
        break;
    }
}

/* --- messages --- */

void task_send(const struct machine_id *self, struct machine *record, uint8_t effect,
               const struct fsm_event *event, fsm_send *send, void *ctx)
{
    struct task *task = mutable_task(record);
    struct machine_id alloc = machine_id_owner(self);
    struct task_changed changed = {
        .run_state = task->run_state,
        .failed = task->failed,
        .started = task_has_started(task),
        /* What it says while it is on its way is of an earlier time, and no answer to the last. */
        .rewound = task_is_rewound(task) && task_state_waits(record->state),
        .quiet = task->told_revision == task->status_revision,
        .up = record->state == T_RUNNING,
        .answers = task->report_wanted,
    };
    struct fsm_message message = {
        .audience = TO_MACHINE,
        .to = alloc,
        .event = {.kind = AE_TASK_CHANGED, .payload = &changed},
    };

    if (effect == TX_SEND_LOOK) {
        if (!task->define.mounts)
            return; /* there is nothing to look at */
        struct member_news news = {.text = ""};
        check(text_copy(news.name, sizeof(news.name), machine_id_name(self)));
        if (record->state == T_HELD) /* it does not wait for the answer: only to be let go */
            (void)text_copy(news.text, sizeof(news.text), "held"); /* fits */
        message.event = (struct fsm_event){.kind = AE_LOOK, .payload = &news};
        send(ctx, &message);
        return;
    }
    check(effect == TX_SEND_CHANGED);
    /* Where nothing that anybody sees is new, a restart of the daemon says nothing (I-39); but its
     * alloc waits for each task to come back to its turn, and asks whether it runs. */
    if (changed.quiet && event->kind != TE_REWIND && !task->report_wanted)
        return;
    task->told_revision = task->status_revision;
    task->report_wanted = 0;
    check(text_copy(changed.name, sizeof(changed.name), machine_id_name(self)));
    send(ctx, &message);
}

uint32_t task_record_size(const struct machine *record)
{
    const struct task *task = task_of(record);

    return (uint32_t)sizeof(*task) + task->results_bytes;
}
