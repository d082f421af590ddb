/*
 * The steps of a script: what the control plane and users want, and what goes wrong by itself.
 *
 * A step comes at its time, or around the commit that brings a machine into a state.  Faults are
 * not known any more to a world that has been healed.
 */
#include "sim/world/world.h"

#include "sim/script/words.h"

/* --- what is wanted --- */

static bool assign(struct sim *sim, const struct sim_step *step)
{
    sim_wish(sim, step->whom.alloc, WISH_RUN);
    return true;
}

static bool update(struct sim *sim, const struct sim_step *step)
{
    sim_update(sim, step->whom.alloc, (uint64_t)step->number);
    return true;
}

static bool stop(struct sim *sim, const struct sim_step *step)
{
    sim_wish(sim, step->whom.alloc, WISH_STOP);
    return true;
}

static bool hurry(struct sim *sim, const struct sim_step *step)
{
    sim_hurry(sim, step->whom.alloc);
    return true;
}

static bool forget(struct sim *sim, const struct sim_step *step)
{
    if (sim->script->server)
        sim_count_fault(sim, SIM_PURGE);
    sim_wish(sim, step->whom.alloc, WISH_GONE);
    return true;
}

/* The control plane tells nobody else. */
static bool say_health(struct sim *sim, const struct sim_step *step)
{
    const struct machine_id *id = sim_id(sim, &step->whom);
    const struct machine *record =
        sim->up && !sim->dying && sim->restored ? core_find(sim->core, id) : NULL;

    if (record == NULL || !alloc_of(record)->assign.watched)
        return false;
    core_tell(sim->core, id, step->action == SIM_DO_HEALTHY ? AE_HEALTHY : AE_UNHEALTHY, NULL);
    return true;
}

/* The control plane had not heard of it, and hears of it again. */
static bool reconnect(struct sim *sim, const struct sim_step *step)
{
    const struct machine_id *id = sim_id(sim, &step->whom);

    if (!sim->up || sim->dying || !sim->restored || core_find(sim->core, id) == NULL)
        return false;
    core_tell(sim->core, id, AE_RECONNECTED, NULL);
    return true;
}

/* By the node itself, which looks at those that run. */
static const struct machine_id *looked_at(struct sim *sim, const struct sim_step *step)
{
    const struct machine_id *id = sim_id(sim, &step->whom);
    bool here = sim->up && !sim->dying && sim->restored && core_find(sim->core, id) != NULL;

    return here ? id : NULL;
}

static bool find_checks(struct sim *sim, const struct sim_step *step)
{
    const struct machine_id *id = looked_at(sim, step);

    if (id == NULL)
        return false;
    uint64_t all = core_alloc(sim->core, id->text)->assign.checks;
    struct checked checked = {.ran = all, .pass = all & (uint64_t)step->number};
    core_tell(sim->core, id, AE_CHECKED, &checked);
    return true;
}

static bool fail_check(struct sim *sim, const struct sim_step *step)
{
    static const struct kill_order order = {.event = TASK_EVENT_RESTART_SIGNALED,
                                            .text = "healthcheck: check \"c\" unhealthy"};
    const struct machine_id *id = looked_at(sim, step);

    if (id != NULL)
        core_tell(sim->core, id, TE_UNWELL, &order);
    return id != NULL;
}

static bool say_of_task(struct sim *sim, const struct sim_step *step)
{
    static const struct kill_order note = {.event = TASK_EVENT_DRIVER, .text = "it comes along"};
    const struct machine_id *id = looked_at(sim, step);

    if (id != NULL)
        core_tell(sim->core, id, TE_NOTE, &note);
    return id != NULL;
}

static bool ask(struct sim *sim, const struct sim_step *step)
{
    static const uint8_t events[SIM_ACTION_COUNT] = {
        [SIM_DO_RESTART] = AE_RESTART, [SIM_DO_RESTART_TASK] = TE_RESTART,
        [SIM_DO_REPLAY] = AE_REPLAY,   [SIM_DO_SIGNAL] = TE_SIGNAL,
        [SIM_DO_DETACH] = VE_DETACH,   [SIM_DO_STOP_PLUGIN] = PE_STOP,
    };

    sim_ask(sim, &step->whom, events[step->action]);
    return true;
}

static bool stop_plugin(struct sim *sim, const struct sim_step *step)
{
    if (sim->healed)
        return true;
    sim_plugin_of(sim, &step->whom)->stop_asked = 1;
    return ask(sim, step);
}

static bool want_plugin(struct sim *sim, const struct sim_step *step)
{
    if (sim->healed)
        return true;
    sim_plugin_of(sim, &step->whom)->removed = step->action == SIM_DO_REMOVE;
    sim_define_plugins(sim);
    return true;
}

/* --- what happens by itself --- */

static struct sim_attempt *newest(struct sim *sim, const struct sim_whom *whom)
{
    int32_t at = sim_task_of(sim, whom)->newest;

    return at < 0 ? NULL : &sim->attempts.items[at];
}

static bool end_payload(struct sim *sim, const struct sim_step *step)
{
    struct sim_attempt *attempt = newest(sim, &step->whom);

    if (attempt == NULL || attempt->payload != PAYLOAD_RUNNING)
        return false;
    sim_payload_end(sim, attempt, (int32_t)step->number, 0);
    return true;
}

static bool change(struct sim *sim, const struct sim_step *step)
{
    struct sim_task_state *task = sim_task_of(sim, &step->whom);

    task->files[(uint64_t)step->number % COUNT_OF(task->files)]++;
    sim_templates_tell(sim, &step->whom);
    return true;
}

enum { DIED_MS = 1000 };

/* A daemon that dies in between has written it. */
static bool renew(struct sim *sim, const struct sim_step *step)
{
    uint64_t number = (uint64_t)step->number % (2 * CHANGE_SCRIPT);
    bool tells = number < CHANGE_SCRIPT || sim->healed;

    sim_tokens_renew(sim, &step->whom, (unsigned)(number % CHANGE_SCRIPT), tells);
    if (!tells)
        sim_die(sim, DIED_MS);
    return true;
}

static uint64_t length_ms(const struct sim_step *step)
{
    return step->number > 0 ? (uint64_t)step->number : 0;
}

/* The disk of a task is full, say. */
static bool keep_unrendered(struct sim *sim, const struct sim_step *step)
{
    sim_count_fault(sim, SIM_UNRENDERED);
    sim_task_of(sim, &step->whom)->unrendered_until_ms = sim->now_ms + length_ms(step);
    return true;
}

void sim_heal(struct sim *sim)
{
    if (sim->healed)
        return;
    sim_say(sim, "world is healed");
    sim->healed = true;
    sim->control.server = SIM_SERVER_UP;
    sim->commits_to_fail = 0;
    for (int p = 0; p < sim->plugins_count; p++)
        sim->plugins[p].removed = 0;
    for (int i = 0; i < sim->claims_count; i++)
        sim->claims[i].busy_until_ms = 0;
    for (int i = 0; i < sim->tasks_count; i++)
        sim->tasks[i].unrendered_until_ms = 0;
}

static bool heal(struct sim *sim, const struct sim_step *step)
{
    (void)step; /* it says nothing more */
    sim_heal(sim);
    return true;
}

/* --- faults: daemon and host --- */

static bool crash(struct sim *sim, const struct sim_step *step)
{
    bool was_up = sim->up && !sim->dying;

    sim_count_fault(sim, step->action == SIM_DO_TERM ? SIM_TERM : SIM_DOWN);
    if (step->action == SIM_DO_TERM)
        sim->term = true;
    sim_die(sim, length_ms(step));
    return was_up;
}

static bool copy_journal(struct sim *sim, const struct sim_step *step)
{
    (void)step; /* it says nothing more */
    sim_older_copy(sim);
    return true;
}

static bool put_older(struct sim *sim, const struct sim_step *step)
{
    if (!sim->copy.made)
        return false;
    sim_count_fault(sim, SIM_OLDER);
    if (sim->up)
        sim->copy.wanted = true;
    else
        sim_older_put(sim);
    sim_die(sim, length_ms(step));
    return true;
}

static bool boot(struct sim *sim, const struct sim_step *step)
{
    bool was_up = sim->up;
    uint64_t ms = length_ms(step);

    sim_count_fault(sim, SIM_BOOT);
    if (step->action == SIM_DO_SHUTDOWN) {
        sim_count_fault(sim, SIM_SHUTDOWN);
        sim_say(sim, "host is shut down");
        sim_processes_shutdown(sim);
    }
    sim_say(sim, "host goes down");
    sim->rebooting = true;
    sim->boot++;
    sim_processes_reboot(sim);
    sim_node_reboot(sim);
    sim->boot_at_ms = sim->now_ms + ms;
    sim->uptime_ms = 0;
    if (was_up)
        sim_die(sim, ms + 50);
    return true;
}

/* A plugin that works on what nobody waits for any more is done with it as the host wakes, and not
 * after the sleep as it was before: how long such a call may take is counted by a clock. */
static void wake_plugins(struct sim *sim)
{
    for (size_t i = 0; i < sim->calls.count; i++) {
        struct sim_call *call = &sim->calls.items[i];
        if (!call->used || !call->answered || !call->apply_left || !sim_is_node_call(call))
            continue;
        sim_apply(sim, call);
        call->apply_left = 0;
        sim_call_free(sim, call);
    }
}

/* Everything of this host stands still while its clocks go on. */
static bool sleep_all(struct sim *sim, const struct sim_step *step)
{
    uint64_t ms = length_ms(step);

    sim_count_fault(sim, SIM_SLEEP);
    for (size_t i = 0; i < sim->heap.count; i++)
        sim->heap.items[i].at_ms += ms;
    sim->now_ms += ms;
    sim->control.poll_at_ms += ms;
    wake_plugins(sim);
    return true;
}

static bool jump(struct sim *sim, const struct sim_step *step)
{
    sim_count_fault(sim, SIM_JUMP);
    sim->jump_ms += step->number;
    return true;
}

static bool fill_disk(struct sim *sim, const struct sim_step *step)
{
    sim->commits_to_fail = (uint32_t)length_ms(step);
    return true;
}

static bool tear(struct sim *sim, const struct sim_step *step)
{
    static const uint8_t hows[SIM_ACTION_COUNT] = {
        [SIM_DO_TORN_CUT] = SIM_TORN_CUT,
        [SIM_DO_TORN_ZERO] = SIM_TORN_ZERO,
        [SIM_DO_TORN_FLIP] = SIM_TORN_FLIP,
    };

    return sim_store_damage(sim, &step->whom, (enum sim_fault)hows[step->action]);
}

/* Noticed by who needs it next. */
static bool tear_spec(struct sim *sim, const struct sim_step *step)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, &step->whom);

    if (!alloc->specified)
        return false;
    sim_count_fault(sim, SIM_TORN_ZERO);
    alloc->specified = 0;
    alloc->damaged = 1;
    return true;
}

/* --- faults: processes, the server, what surrounds payloads --- */

static bool kill_shim(struct sim *sim, const struct sim_step *step)
{
    struct sim_attempt *attempt = newest(sim, &step->whom);

    if (attempt == NULL || (attempt->shim != SHIM_ALIVE && attempt->shim != SHIM_STARTING))
        return false;
    sim_count_fault(sim, SIM_SHIM);
    sim_count_fault(sim, SIM_LOGGER);
    sim_shim_die(sim, attempt);
    return true;
}

static bool lose_record(struct sim *sim, const struct sim_step *step)
{
    struct sim_attempt *attempt = newest(sim, &step->whom);

    if (attempt == NULL)
        return false;
    sim_count_fault(sim, SIM_RECORD_LOST);
    attempt->record_lost = 1;
    return true;
}

static bool kill_plugin(struct sim *sim, const struct sim_step *step)
{
    if (!sim_plugin_lives(sim, sim_plugin_of(sim, &step->whom)))
        return false;
    sim_count_fault(sim, SIM_PLUG);
    sim_plugin_die(sim, step->whom.member);
    return true;
}

static bool disturb_server(struct sim *sim, const struct sim_step *step)
{
    static const uint8_t faults[SIM_SERVER_COUNT] = {
        [SIM_SERVER_DOWN] = SIM_SRV_DOWN,   [SIM_SERVER_BLACKHOLE] = SIM_SRV_BLACKHOLE,
        [SIM_SERVER_STALE] = SIM_SRV_STALE, [SIM_SERVER_PARTIAL] = SIM_SRV_PARTIAL,
        [SIM_SERVER_SLOW] = SIM_SRV_SLOW,
    };

    sim->control.server = (uint8_t)step->number;
    if (sim->control.server != SIM_SERVER_UP)
        sim_count_fault(sim, (enum sim_fault)faults[sim->control.server]);
    return true;
}

static bool keep_busy(struct sim *sim, const struct sim_step *step)
{
    sim_count_fault(sim, SIM_BUSY);
    sim_claim_of(sim, &step->whom)->busy_until_ms = sim->now_ms + length_ms(step);
    return true;
}

static bool unmount(struct sim *sim, const struct sim_step *step)
{
    struct sim_claim_state *claim = sim_claim_of(sim, &step->whom);

    if (!claim->mounted)
        return false;
    sim_count_fault(sim, SIM_UNMOUNT);
    claim->mounted = 0;
    claim->counted--; /* by the plugin's own tool: only boots leave counts behind */
    claim->snatched = 1;
    return true;
}

static bool lose_directory(struct sim *sim, const struct sim_step *step)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, &step->whom);

    if (!alloc->directory || !sim->rebooting)
        return false; /* directories are lost with a reboot */
    sim_count_fault(sim, SIM_DIR_LOST);
    alloc->directory = alloc->disk = 0;
    for (int t = 0; t < alloc->tasks_count; t++)
        alloc->tasks[t].directory = 0;
    return true;
}

static bool lose_network(struct sim *sim, const struct sim_step *step)
{
    struct sim_alloc_state *alloc = sim_alloc_of(sim, &step->whom);

    if (!alloc->network)
        return false;
    sim_count_fault(sim, SIM_UNMOUNT);
    alloc->network = 0;
    alloc->netless = 1;
    return true;
}

static bool slow_sweeps(struct sim *sim, const struct sim_step *step)
{
    sim_count_fault(sim, SIM_SLOW);
    sim->sweep_ms = (uint64_t)step->number;
    return true;
}

/* --- steps --- */

/* Each returns false if there was nobody to whom it could happen.  A healed world does not know
 * faults any more. */
static const struct {
    bool (*make)(struct sim *sim, const struct sim_step *step);
    bool is_fault;
} actions[SIM_ACTION_COUNT] = {
    [SIM_DO_REGISTER] = {sim_jobs_step, false},
    [SIM_DO_COUNT] = {sim_jobs_step, false},
    [SIM_DO_TUNE] = {sim_jobs_step, false},
    [SIM_DO_DEREGISTER] = {sim_jobs_step, false},
    [SIM_DO_PURGE] = {sim_jobs_step, false},
    [SIM_DO_REPLACE] = {sim_jobs_step, false},
    [SIM_DO_GC] = {sim_jobs_step, false},
    [SIM_DO_TORN_JOB] = {sim_jobs_step, true},
    [SIM_DO_ASSIGN] = {assign, false},
    [SIM_DO_UPDATE] = {update, false},
    [SIM_DO_STOP] = {stop, false},
    [SIM_DO_HURRY] = {hurry, false},
    [SIM_DO_DESTROY] = {forget, false},
    [SIM_DO_RESTART] = {ask, false},
    [SIM_DO_REPLAY] = {ask, false},
    [SIM_DO_HEALTHY] = {say_health, false},
    [SIM_DO_UNHEALTHY] = {say_health, false},
    [SIM_DO_CHECK] = {find_checks, false},
    [SIM_DO_RECONNECT] = {reconnect, false},
    [SIM_DO_UNWELL] = {fail_check, false},
    [SIM_DO_RESTART_TASK] = {ask, false},
    [SIM_DO_SIGNAL] = {ask, false},
    [SIM_DO_DETACH] = {ask, false},
    [SIM_DO_STOP_PLUGIN] = {stop_plugin, false},
    [SIM_DO_REMOVE] = {want_plugin, false},
    [SIM_DO_INSTALL] = {want_plugin, false},
    [SIM_DO_EXIT] = {end_payload, false},
    [SIM_DO_CHANGE] = {change, false},
    [SIM_DO_RENEW] = {renew, false},
    [SIM_DO_SAYS] = {say_of_task, false},
    [SIM_DO_HEAL] = {heal, false},
    [SIM_DO_CRASH] = {crash, true},
    [SIM_DO_TERM] = {crash, true},
    [SIM_DO_COPY] = {copy_journal, false},
    [SIM_DO_OLDER] = {put_older, true},
    [SIM_DO_BOOT] = {boot, true},
    [SIM_DO_SHUTDOWN] = {boot, true},
    [SIM_DO_SLEEP] = {sleep_all, true},
    [SIM_DO_JUMP] = {jump, true},
    [SIM_DO_DISK] = {fill_disk, true},
    [SIM_DO_SWEEP] = {slow_sweeps, true},
    [SIM_DO_TORN_CUT] = {tear, true},
    [SIM_DO_TORN_ZERO] = {tear, true},
    [SIM_DO_TORN_FLIP] = {tear, true},
    [SIM_DO_TORN_SPEC] = {tear_spec, true},
    [SIM_DO_SHIM] = {kill_shim, true},
    [SIM_DO_RECORD_LOST] = {lose_record, true},
    [SIM_DO_PLUG] = {kill_plugin, true},
    [SIM_DO_SERVER] = {disturb_server, true},
    [SIM_DO_BUSY] = {keep_busy, true},
    [SIM_DO_UNRENDERED] = {keep_unrendered, true},
    [SIM_DO_UNMOUNT] = {unmount, true},
    [SIM_DO_DIR_LOST] = {lose_directory, true},
    [SIM_DO_NET_LOST] = {lose_network, true},
};

void sim_do_step(struct sim *sim, const struct sim_step *step)
{
    bool *did = &sim->told.stepped[step - sim->script->steps];

    check(step->action < SIM_ACTION_COUNT);
    check(actions[step->action].make != NULL);
    if (sim->print != NULL) {
        char what[SIM_LINE_BYTES];
        sim_step_what(sim->script, step, what, sizeof(what));
        sim_say(sim, "world: %s", what);
    }
    sim_mix(sim, step->action);
    bool over = actions[step->action].is_fault && sim->healed;
    struct sim_step meant = *step;
    if (sim_action_names_one(step->action) && step->whom.kind != MACHINE_KIND_COUNT) {
        meant.whom = sim_actor(sim, &step->whom);
        over |= meant.whom.kind == MACHINE_KIND_COUNT;
    }
    *did = !over && actions[step->action].make(sim, &meant);
}

/* --- steps that wait for a transition --- */

static uint32_t *entered_of(struct sim *sim, const struct sim_whom *whom)
{
    switch ((enum machine_kind)whom->kind) {
    case MACHINE_PLUGIN:
        return sim_plugin_of(sim, whom)->entered;
    case MACHINE_ALLOC:
        return sim_alloc_of(sim, whom)->entered;
    case MACHINE_TASK:
        return sim_task_of(sim, whom)->entered;
    case MACHINE_VOLUME:
        return sim_claim_of(sim, whom)->entered;
    case MACHINE_KIND_COUNT:
        break;
    }
    unreachable("a machine that is not in the script");
}

/* Steps that wait for a transition of BATCH; MOMENT says where we are with it. */
void sim_watch_transitions(struct sim *sim, const struct journal_event *events, size_t count,
                           enum sim_moment moment)
{
    for (size_t i = 0; i < count; i++) {
        if (events[i].before == events[i].after)
            continue;
        struct sim_whom whom = sim_find(sim, &events[i].id);
        if (whom.kind == MACHINE_KIND_COUNT)
            continue;
        whom = sim_role(sim, &whom);
        uint32_t *entered = entered_of(sim, &whom);
        if (moment == SIM_AFTER) {
            entered[events[i].after]++;
            sim_fact(sim, SIM_FACT_ENTERS, &whom, events[i].after);
        }
        uint32_t nth = entered[events[i].after] + (moment == SIM_BEFORE);
        for (unsigned s = 0; s < sim->script->steps_count; s++) {
            const struct sim_step *step = &sim->script->steps[s];
            if (step->moment == SIM_AT || step->state != events[i].after || step->nth != nth ||
                !sim_is_same(&step->when, &whom))
                continue;
            if (step->moment == SIM_BEFORE && sim->told.stepped[s])
                continue; /* it kept the commit from coming, which is tried again */
            if (step->moment == (uint8_t)moment)
                sim_do_step(sim, step);
            else if (step->moment == SIM_THEN && moment == SIM_AFTER)
                sim_later(sim, 0, SE_STEP, s, 0);
        }
    }
}
