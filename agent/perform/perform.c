/*
 * Effects to the real world.
 *
 * Each kind of effect has one function here, which calls a room and turns the room's answer into
 * the machine's event.  Nothing is decided: what an answer means is up to the tables.
 */
#include "agent/perform/perform.h"

#include "agent/launch.h"
#include "agent/perform/calls.h"
#include "agent/perform/externals.h"
#include "agent/perform/hosted.h"
#include "agent/perform/plugins.h"
#include "agent/perform/scripts.h"
#include "agent/perform/strays.h"
#include "agent/perform/volumes.h"
#include "io/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- hooks --- */

/* Those that others count, too: before the tasks of an alloc, and before a start of a task. */
static void count_hook(const struct perform_call *call, const struct hook_outcome *outcome)
{
    struct parts *parts = call->parts;
    bool task = call->id.kind == MACHINE_TASK;
    struct machine_id owner = task ? machine_id_owner(&call->id) : call->id;
    const struct alloc *alloc = core_alloc(parts->core, owner.text);

    if (alloc != NULL && outcome->hook != HOOK_NONE &&
        call->phase == (task ? PHASE_PRESTART : PHASE_PRERUN))
        tally_note_hook(parts->tally, alloc->assign.namespace, task, outcome->hook,
                        (double)(loop_now_us() - call->begun_us) / 1000, outcome->code != 0);
}

static void hook_answered(void *ctx, const struct hook_outcome *outcome)
{
    struct perform_call *call = ctx;
    bool task = call->id.kind == MACHINE_TASK;
    uint8_t event = outcome->code == 0 ? (task ? TE_HOOK_DONE : AE_HOOK_DONE)
                                       : (task ? TE_HOOK_FAILED : AE_HOOK_FAILED);

    if (outcome->code != 0)
        log_warn("hooks", "hook failed %s=%s hook=%s error=%s",
                 machine_kind_name((enum machine_kind)call->id.kind), call->id.text,
                 task ? task_hook_name(outcome->hook) : alloc_hook_name(outcome->hook),
                 log_value(outcome->text));
    else if (outcome->text[0] != '\0')
        log_warn("hooks", "%s=%s hook=%s: %s", machine_kind_name((enum machine_kind)call->id.kind),
                 call->id.text,
                 task ? task_hook_name(outcome->hook) : alloc_hook_name(outcome->hook),
                 outcome->text);
    count_hook(call, outcome);
    core_done(call->parts->core, &call->id, LANE_HOOK, event, outcome);
    perform_call_free(call);
}

static struct perform_call *hook_call(struct parts *parts, const struct effect *effect,
                                      uint8_t phase)
{
    struct perform_call *call = perform_call_new(parts, effect);

    call->phase = phase;
    return call;
}

static void hook_refused(struct parts *parts, const struct effect *effect, uint8_t phase,
                         uint8_t hook, const struct err *err)
{
    struct hook_outcome outcome = {
        .hook = hook, .code = err->code, .recoverable = err->recoverable};

    (void)text_copy(outcome.text, sizeof(outcome.text), err->text); /* cut if too long */
    hook_answered(hook_call(parts, effect, phase), &outcome);
}

static const struct task_spec *task_spec_of(struct parts *parts, const struct machine_id *id,
                                            const struct alloc_spec **ret_alloc, struct err *err)
{
    struct machine_id owner = machine_id_owner(id);
    const struct alloc_spec *spec = specs_find(parts->specs, owner.text, err);

    if (spec == NULL)
        return NULL;
    const struct task_spec *task = launch_task(spec, machine_id_name(id));
    if (task == NULL)
        (void)err_set(err, ERR_CORRUPT, "the specification does not name this task");
    *ret_alloc = spec;
    return task;
}

/* The last of OWNERS, if nothing is known of it here: it was on another node, or is gone. */
static const char *last_elsewhere(const struct parts *parts, const char *const *owners)
{
    const char *last = NULL;

    for (; *owners != NULL; owners++)
        last = *owners;
    return last != NULL && core_alloc(parts->core, last) == NULL ? last : NULL;
}

static void alloc_hook_abort(struct parts *parts, const struct effect *effect)
{
    hooks_abort(parts->hooks, effect->id.text, "");
}

static void alloc_hook(struct parts *parts, const struct effect *effect)
{
    const struct alloc *alloc = alloc_of(effect->record);
    struct alloc_spec nameless = {.id = effect->id.text};
    struct err err = {0};
    const struct alloc_spec *spec = specs_find(parts->specs, effect->id.text, &err);

    if (spec == NULL && alloc->phase == PHASE_PRERUN) {
        hook_refused(parts, effect, alloc->phase, alloc->hook, &err);
        return;
    }
    /* Teardown needs the alloc's id only, and must not fail because its spec is lost (I-24). */
    const char *disk_from[DISK_OWNERS_MAX + 1];
    struct hook_run run = {
        .phase = (enum hook_phase)alloc->phase,
        .hook = alloc->hook,
        .alloc = spec != NULL ? spec : &nameless,
        .disk_from = disk_from,
    };

    core_disk_owners(parts->core, alloc, disk_from);
    run.disk_elsewhere = last_elsewhere(parts, disk_from);
    hook_run(parts->hooks, &run, hook_answered, hook_call(parts, effect, alloc->phase));
}

/* Of what cannot be looked at nobody knows that it is lost. */
static void network_checked(void *ctx, const struct hook_outcome *outcome)
{
    struct perform_call *call = ctx;
    bool lost = outcome->code == ERR_GONE;
    struct failure failure = {.code = outcome->code};

    (void)text_copy(failure.text, sizeof(failure.text), outcome->text); /* cut if too long */
    if (outcome->text[0] != '\0')
        log_warn("hooks", "alloc=%s network: %s", call->id.text, outcome->text);
    core_done(call->parts->core, &call->id, LANE_NODE, lost ? AE_NETWORK_LOST : AE_NETWORK_SOUND,
              lost ? &failure : NULL);
    perform_call_free(call);
}

static void check_network(struct parts *parts, const struct effect *effect)
{
    hooks_check_network(parts->hooks, effect->id.text, network_checked,
                        perform_call_new(parts, effect));
}

static void task_hook(struct parts *parts, const struct effect *effect)
{
    static const struct hosted_wait wait = {.again = task_hook, .failed = hook_refused};
    const struct task *task = task_of(effect->record);
    struct machine_id owner = machine_id_owner(&effect->id);
    struct task_spec nameless_task = {.name = machine_id_name(&effect->id)};
    struct alloc_spec nameless = {.id = owner.text};
    const struct alloc_spec *alloc = &nameless;
    struct err err = {0};
    const struct task_spec *spec = task_spec_of(parts, &effect->id, &alloc, &err);

    if (spec == NULL && task->phase != PHASE_STOP && task->phase != PHASE_EXITED) {
        hook_refused(parts, effect, task->phase, task->hook, &err);
        return;
    }
    struct volumes_mounted mounted = {.count = 0};
    if (spec != NULL && task->hook == TASK_HOOK_VOLUMES && task->phase == PHASE_PRESTART) {
        if (hosted_holds(parts, effect, alloc, &wait))
            return;
        volumes_find_mounted(parts, alloc, &mounted);
        hosted_find_mounted(parts, alloc, &mounted);
    }
    struct hook_run run = {
        .phase = (enum hook_phase)task->phase,
        .hook = task->hook,
        .alloc = spec != NULL ? alloc : &nameless,
        .task = spec != NULL ? spec : &nameless_task,
        .claims = mounted.claims,
        .claims_count = mounted.count,
        .results = task->results,
        .results_bytes = task->results_bytes,
    };
    hook_run(parts->hooks, &run, hook_answered, hook_call(parts, effect, task->phase));
}

static void task_hook_abort(struct parts *parts, const struct effect *effect)
{
    struct machine_id owner = machine_id_owner(&effect->id);

    hosted_abort(parts, &effect->id);
    hooks_abort(parts->hooks, owner.text, machine_id_name(&effect->id));
}

void perform_changed(void *ctx, const char *alloc, const char *task,
                     const struct hook_outcome *rendered)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, task);
    const struct task *record = core_task(parts->core, alloc, task);

    if (rendered->code != 0)
        log_warn("hooks", "%s are left as they are task=%s error=%s",
                 rendered->hook == TASK_HOOK_TEMPLATE ? "templates" : "identities", id.text,
                 log_value(rendered->text));
    else if (record != NULL)
        core_news(parts->core, &id, record->machine.generation, TE_CHANGED, rendered);
}

void perform_waits(void *ctx, const char *alloc, const char *task, const char *text)
{
    struct machine_id id = machine_id_join(MACHINE_TASK, alloc, task);

    perform_note(ctx, &id, TASK_EVENT_TEMPLATE, text);
}

/* --- drivers --- */

static struct driver_key key_of_task(const struct machine_id *id, const struct task *task,
                                     uint32_t generation)
{
    struct driver_key key = {.generation = generation};
    struct machine_id owner = machine_id_owner(id);

    (void)text_copy(key.alloc, sizeof(key.alloc), owner.text);            /* a UUID */
    (void)text_copy(key.task, sizeof(key.task), machine_id_name(id));     /* bounded */
    (void)text_copy(key.driver, sizeof(key.driver), task->define.driver); /* same size */
    return key;
}

static struct driver_key key_of(const struct effect *effect)
{
    return key_of_task(&effect->id, task_of(effect->record), effect->generation);
}

static struct started started_of(const struct driver_result *result)
{
    return (struct started){
        .payload_pid = result->payload.pid,
        .payload_ticks = result->payload.start_ticks,
        .shim_pid = result->shim.pid,
        .shim_ticks = result->shim.start_ticks,
    };
}

static struct failure failure_of(const struct driver_result *result)
{
    struct failure failure = {
        .code = result->error.code,
        .recoverable = result->error.recoverable,
    };

    (void)text_copy(failure.text, sizeof(failure.text), result->error.text); /* cut if too long */
    return failure;
}

static struct exited exited_of(const struct driver_exit *exit)
{
    struct exited exited = {
        .known = exit->known,
        .code = exit->known ? exit->code : -1,
        .signal = exit->signal,
        .oom_killed = exit->oom_killed,
        .with_host = exit->with_host,
        .finished_unix_ns = exit->finished_unix_ns,
    };

    (void)text_copy(exited.message, sizeof(exited.message), exit->message); /* cut if too long */
    if (!exit->known && exited.message[0] == '\0')
        (void)text_copy(exited.message, sizeof(exited.message),
                        "exit unknown: neither the shim nor an exit record was found"); /* fits */
    return exited;
}

/* The payload runs, or ran and has ended: EVENT, and the end as news behind it. */
static void payload_found(struct perform_call *call, const struct driver_result *result,
                          uint8_t event)
{
    struct core *core = call->parts->core;
    struct started started = started_of(result);

    core_done(core, &call->id, LANE_DRIVER, event, &started);
    if (result->outcome == DRIVER_EXITED) {
        struct exited exited = exited_of(&result->exit);
        core_news(core, &call->id, call->generation, TE_EXITED, &exited);
    }
}

static void start_answered(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;

    if (result->outcome == DRIVER_RUNNING || result->outcome == DRIVER_EXITED) {
        payload_found(call, result, TE_STARTED);
    } else {
        struct failure failure = failure_of(result);
        core_done(call->parts->core, &call->id, LANE_DRIVER, TE_START_FAILED, &failure);
    }
    perform_call_free(call);
}

static void task_start(struct parts *parts, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    const struct alloc_spec *alloc;
    struct driver_result failed = {.outcome = DRIVER_FAILED};
    struct launch launch;
    struct perform_call *call = perform_call_new(parts, effect);
    const struct task_spec *spec = task_spec_of(parts, &effect->id, &alloc, &failed.error);

    if (parts->is_volatile) { /* nobody would know of it after this process */
        (void)err_set(&failed.error, ERR_REFUSED, "nothing is started: %s",
                      life_restriction(parts->life));
        start_answered(call, &failed);
        return;
    }
    if (spec == NULL || launch_open(parts, alloc, spec, task, &launch, &failed.error) < 0) {
        start_answered(call, &failed);
        return;
    }
    launch.start.key.generation = effect->generation;
    driver_start(parts->drivers, &launch.start, start_answered, call);
    launch_close(&launch);
}

static void recover_answered(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;

    if (result->outcome == DRIVER_RUNNING || result->outcome == DRIVER_EXITED) {
        payload_found(call, result, TE_RECOVERED);
    } else if (result->outcome == DRIVER_NOT_STARTED) {
        struct failure failure = failure_of(result);
        core_done(call->parts->core, &call->id, LANE_DRIVER, TE_START_FAILED, &failure);
    } else {
        struct failure failure = failure_of(result);
        failure.untouched = call->untouched;
        if (failure.text[0] == '\0')
            (void)text_copy(failure.text, sizeof(failure.text),
                            "exit unknown: neither the shim nor an exit record was found");
        core_done(call->parts->core, &call->id, LANE_DRIVER, TE_LOST, &failure);
    }
    perform_call_free(call);
}

/* What ran has surely been begun. */
static void recover(struct perform_call *call, const struct task *task,
                    const struct driver_key *key)
{
    call->untouched = !task->ran && !driver_was_begun(call->parts->drivers, key);
    driver_recover(call->parts->drivers, key, recover_answered, call);
}

/* A task without its secrets is one that runs all the same. */
static void secrets_mended(void *ctx, const struct hook_outcome *outcome)
{
    struct perform_call *call = ctx;
    struct machine_id owner = machine_id_owner(&call->id);
    const struct task *task = core_task(call->parts->core, owner.text, machine_id_name(&call->id));
    const struct driver_key key = key_of_task(&call->id, task, call->generation);

    if (outcome->code != 0)
        log_warn("hooks", "task=%s has lost its secrets error=%s", call->id.text,
                 log_value(outcome->text));
    else if (outcome->text[0] != '\0')
        log_warn("hooks", "task=%s %s", call->id.text, outcome->text);
    recover(call, task, &key);
}

static void task_recover(struct parts *parts, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    const struct proc_identity payload = {task->process.payload_pid, task->process.payload_ticks};
    const struct driver_key key = key_of(effect);
    const struct alloc_spec *alloc;
    struct err err = {0};
    struct perform_call *call = perform_call_new(parts, effect);
    struct machine_id owner = machine_id_owner(&effect->id);
    bool has_secrets = hooks_has_secrets(parts->hooks, owner.text, machine_id_name(&effect->id));
    const struct task_spec *spec = !has_secrets && proc_is_alive(&payload)
                                       ? task_spec_of(parts, &effect->id, &alloc, &err)
                                       : NULL;

    if (spec == NULL) /* who ended needs no secrets, and those of no specification are unknown */
        recover(call, task, &key);
    else
        hooks_mend_secrets(parts->hooks, alloc, spec, &payload, secrets_mended, call);
}

static void stop_answered(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;
    struct failure failure = failure_of(result);
    bool done = result->outcome == DRIVER_DONE;

    core_done(call->parts->core, &call->id, LANE_DRIVER, done ? TE_STOP_ACCEPTED : TE_STOP_FAILED,
              done ? NULL : &failure);
    perform_call_free(call);
}

static void task_stop(struct parts *parts, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    struct driver_key key = key_of(effect);
    uint64_t now_ms = life_now_ms(parts->life);
    uint64_t left_ms = task->kill_at_ms > now_ms ? task->kill_at_ms - now_ms : 0;

    driver_stop(parts->drivers, &key, task->define.kill_signal, left_ms, stop_answered,
                perform_call_new(parts, effect));
}

static void destroy_answered(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;
    struct failure failure = failure_of(result);
    bool done = result->outcome == DRIVER_DONE;

    if (!done)
        log_warn(
            "drivers",
            "could not end what is left of a task, trying again task=%s generation=%u error=%s",
            call->id.text, call->generation, log_value(failure.text));
    core_done(call->parts->core, &call->id, LANE_DRIVER, done ? TE_REAPED : TE_REAP_FAILED,
              done ? NULL : &failure);
    perform_call_free(call);
}

static void task_destroy(struct parts *parts, const struct effect *effect)
{
    struct driver_key key = key_of(effect);

    driver_destroy(parts->drivers, &key, destroy_answered, perform_call_new(parts, effect));
}

static void signal_answered(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;

    life_reply(call->parts->life, call->reply, result->outcome == DRIVER_DONE ? 0 : ERR_REFUSED,
               &result->error);
    perform_call_free(call);
}

static void task_signal(struct parts *parts, const struct effect *effect)
{
    struct driver_key key = key_of(effect);

    check(effect->request != NULL);
    driver_signal(parts->drivers, &key, effect->request->signal, 0, signal_answered,
                  perform_call_new(parts, effect));
}

/* The last of them has been sent, or could not be: it runs no more, which is told by itself. */
static void notified(void *ctx, const struct driver_result *result)
{
    struct perform_call *call = ctx;

    if (result->outcome != DRIVER_DONE)
        log_warn("drivers", "a task could not be told of a template task=%s error=%s",
                 call->id.text, log_value(result->error.text));
    perform_call_end(call, TE_NOTIFIED, NULL);
}

static void noticed(void *ctx, const struct driver_result *result)
{
    (void)result; /* the last one says what there is to say */
    perform_call_free(ctx);
}

static void task_notify(struct parts *parts, const struct effect *effect)
{
    const struct task *task = task_of(effect->record);
    struct driver_key key = key_of(effect);
    uint64_t left = task->signals_owed;

    check(left != 0);
    for (unsigned number = 1; left != 0; number++, left >>= 1) {
        char name[16];

        if ((left & 1) == 0)
            continue;
        (void)text_format(name, sizeof(name), "%u", number); /* fits */
        driver_signal(parts->drivers, &key, name, task->changes, left == 1 ? notified : noticed,
                      perform_call_new(parts, effect));
    }
}

/* --- plugins that are no tasks: every call fails, for good --- */

static void no_adapter(struct parts *parts, const struct effect *effect)
{
    const struct fsm_def *def = fsm_definition((enum machine_kind)effect->id.kind);
    struct failure failure = {.code = ERR_UNSUPPORTED, .recoverable = 0};

    if (effect->lane >= LANE_COUNT)
        return; /* nobody waits for news of them */
    (void)text_copy(failure.text, sizeof(failure.text),
                    "plugins that are no tasks are not available in this release"); /* fits */
    for (uint8_t event = 0; event < def->events_count; event++) {
        bool ends = (def->effects[effect->kind].completions >> event & 1u) != 0;
        if (ends && def->events[event].payload == PAYLOAD_FAILURE) {
            core_done(parts->core, &effect->id, (enum fsm_lane)effect->lane, event, &failure);
            return;
        }
    }
    unreachable("an effect that cannot fail");
}

/* --- the table --- */

typedef void perform_function(struct parts *parts, const struct effect *effect);

static perform_function *const task_functions[TX_COUNT] = {
    [TX_HOOK] = task_hook,
    [TX_HOOK_ABORT] = task_hook_abort,
    [TX_DRIVER_START] = task_start,
    [TX_DRIVER_RECOVER] = task_recover,
    [TX_DRIVER_STOP] = task_stop,
    [TX_DRIVER_NOTIFY] = task_notify,
    [TX_SCRIPT] = scripts_perform,
    [TX_DRIVER_DESTROY] = task_destroy,
    [TX_DRIVER_SIGNAL] = task_signal,
};

static perform_function *const alloc_functions[AX_COUNT] = {
    [AX_HOOK] = alloc_hook,
    [AX_HOOK_ABORT] = alloc_hook_abort,
    [AX_CHECK_NETWORK] = check_network,
};

static bool serves_storage(const struct plugin *plugin)
{
    return plugin_serves_node(plugin) || plugin_serves_controller(plugin);
}

void perform_effect(void *ctx, const struct effect *effect)
{
    struct parts *parts = ctx;
    perform_function *function = no_adapter;

    crash_point(&parts->crash);
    if (life_perform(parts->life, effect))
        return;
    if (effect->id.kind == MACHINE_TASK)
        function = task_functions[effect->kind];
    else if (effect->id.kind == MACHINE_ALLOC)
        function = alloc_functions[effect->kind];
    else if (effect->id.kind == MACHINE_PLUGIN && serves_storage(plugin_of(effect->record)))
        function = plugins_perform;
    else if (effect->id.kind == MACHINE_PLUGIN &&
             plugin_of(effect->record)->define.type == PLUGIN_DEVICE)
        function = externals_perform;
    else if (effect->id.kind == MACHINE_VOLUME)
        function = volumes_perform;
    check(function != NULL);
    function(parts, effect);
}

void perform_exit(void *ctx, const struct driver_key *key, const struct driver_exit *exit)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_TASK, key->alloc, key->task);
    struct exited exited = exited_of(exit);

    core_news(parts->core, &id, key->generation, TE_EXITED, &exited);
}

void perform_said(void *ctx, const struct driver_key *key, const char *text)
{
    struct parts *parts = ctx;
    struct machine_id id = machine_id_join(MACHINE_TASK, key->alloc, key->task);
    const struct task *task = core_task(parts->core, key->alloc, key->task);

    if (task != NULL && task->machine.generation == key->generation)
        perform_note(parts, &id, TASK_EVENT_DRIVER, text);
}

/* --- the sweep --- */

static bool is_owned(void *ctx, const struct driver_key *key)
{
    struct parts *parts = ctx;
    const struct task *task = core_task(parts->core, key->alloc, key->task);

    return task != NULL && task->machine.generation == key->generation && task_holds_work(task);
}

static void stripped(void *ctx, const struct hook_outcome *outcome)
{
    if (outcome->code == 0)
        return;
    log_error("agent", "could not remove secrets that belong to no alloc, trying again error=%s",
              log_value(outcome->text));
    life_swept(((struct parts *)ctx)->life, false);
}

/* POINT is <alloc_dir>/<alloc>/<task>/secrets, or of no concern. */
static bool strip_stray(void *ctx, const char *point)
{
    struct parts *parts = ctx;
    char path[PATH_SIZE];
    char *names[3]; /* alloc, task, secrets */

    if (!text_copy(path, sizeof(path), point))
        return true;
    for (int i = 2; i >= 0; i--) {
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return true;
        *slash = '\0';
        names[i] = slash + 1;
    }
    if (!text_equal(names[2], "secrets") || !uuid_is_valid(names[0]) ||
        core_alloc(parts->core, names[0]) != NULL)
        return true;
    log_warn("agent",
             "the journal does not know an alloc: its directory is kept, its secrets are "
             "not alloc=%s task=%s",
             names[0], log_value(names[1]));
    struct alloc_spec alloc = {.id = names[0]};
    struct task_spec task = {.name = names[1]};
    struct hook_run run = {
        .phase = PHASE_STOP, .hook = TASK_HOOK_TASK_DIR, .alloc = &alloc, .task = &task};
    hook_run(parts->hooks, &run, stripped, parts);
    return true;
}

static void torn_down(void *ctx, const struct hook_outcome *outcome)
{
    if (outcome->code == 0)
        return;
    log_error("agent", "could not remove a network that belongs to no alloc, trying again error=%s",
              log_value(outcome->text));
    life_swept(((struct parts *)ctx)->life, false);
}

/* Allocs that are known remove theirs by themselves. */
static void remove_stray(void *ctx, const char *alloc_id)
{
    struct parts *parts = ctx;

    if (core_alloc(parts->core, alloc_id) != NULL)
        return;
    log_warn("agent", "the journal does not know an alloc: its network is removed alloc=%s",
             alloc_id);
    struct alloc_spec alloc = {.id = alloc_id};
    struct hook_run run = {.phase = PHASE_POSTRUN, .hook = ALLOC_HOOK_NETWORK, .alloc = &alloc};
    hook_run(parts->hooks, &run, torn_down, parts);
}

static void swept(void *ctx, const struct driver_result *result)
{
    struct parts *parts = ctx;
    struct err err = {0};

    if (result->outcome == DRIVER_DONE) {
        life_swept(parts->life, true);
        strays_swept(parts);
        if (mount_each_below(AT_FDCWD, parts->config->alloc_dir, strip_stray, parts, &err) != 0)
            log_error("agent", "cannot look for secrets of unknown allocs error=%s",
                      log_value(err.text));
        if (hooks_each_network(parts->hooks, remove_stray, parts, &err) != 0)
            log_error("agent", "cannot look for networks of unknown allocs error=%s",
                      log_value(err.text));
        return;
    }
    log_error("agent",
              "could not end what belongs to no task, trying again; tasks are started meanwhile, "
              "each when nothing is left of its own error=%s",
              log_value(result->error.text));
    life_swept(parts->life, false);
}

void perform_sweep(void *ctx)
{
    struct parts *parts = ctx;

    drivers_sweep(parts->drivers, is_owned, parts, swept, parts);
}
