/*
 * The steps of a script: what the control plane and users want, and what goes wrong by itself.
 *
 * A step comes at its time, or around the commit that brings a machine into a state.  Faults are
 * not known any more to a world that has been healed.
 */
#include "sim/world/world.h"

#include "sim/script/words.h"

/* Everything of this host stands still while its clocks go on. */
static void sleep_all(struct sim *sim, uint64_t ms)
{
    for (size_t i = 0; i < sim->heap.count; i++)
        sim->heap.items[i].at_ms += ms;
    sim->now_ms += ms;
    sim->control.poll_at_ms += ms;
}

static void boot(struct sim *sim, uint64_t ms)
{
    bool was_up = sim->up;

    sim_say(sim, "host goes down");
    sim->rebooting = true;
    sim->boot++;
    sim_processes_reboot(sim);
    sim_node_reboot(sim);
    sim->boot_at_ms = sim->now_ms + ms;
    sim->uptime_ms = 0;
    if (was_up)
        sim_die(sim, ms + 50);
}

static void disturb_server(struct sim *sim, enum sim_server server)
{
    static const uint8_t faults[SIM_SERVER_COUNT] = {
        [SIM_SERVER_DOWN] = SIM_SRV_DOWN,   [SIM_SERVER_BLACKHOLE] = SIM_SRV_BLACKHOLE,
        [SIM_SERVER_STALE] = SIM_SRV_STALE, [SIM_SERVER_PARTIAL] = SIM_SRV_PARTIAL,
        [SIM_SERVER_SLOW] = SIM_SRV_SLOW,
    };

    sim->control.server = (uint8_t)server;
    if (server != SIM_SERVER_UP)
        sim_count_fault(sim, (enum sim_fault)faults[server]);
}

static struct sim_attempt *newest(struct sim *sim, const struct sim_whom *whom)
{
    int32_t at = sim_task_of(sim, whom)->newest;

    return at < 0 ? NULL : &sim->attempts.items[at];
}

static void lose_directory(struct sim_alloc_state *alloc)
{
    alloc->directory = 0;
    for (int t = 0; t < alloc->tasks_count; t++)
        alloc->tasks[t].directory = 0;
}

/* A fault of the script, which a healed world does not know any more.  False: there was nobody whom
 * it could strike. */
static bool do_fault(struct sim *sim, const struct sim_step *step)
{
    uint64_t ms = step->number > 0 ? (uint64_t)step->number : 0;
    struct sim_attempt *attempt = step->whom.kind == MACHINE_TASK ? newest(sim, &step->whom) : NULL;
    bool was_up = sim->up && !sim->dying;

    switch ((enum sim_action)step->action) {
    case SIM_DO_CRASH:
        sim_count_fault(sim, SIM_DOWN);
        sim_die(sim, ms);
        return was_up;
    case SIM_DO_TERM:
        sim_count_fault(sim, SIM_TERM);
        sim->term = true;
        sim_die(sim, ms);
        return was_up;
    case SIM_DO_BOOT:
        sim_count_fault(sim, SIM_BOOT);
        boot(sim, ms);
        break;
    case SIM_DO_SHIM:
        if (attempt == NULL || (attempt->shim != SHIM_ALIVE && attempt->shim != SHIM_STARTING))
            return false;
        sim_count_fault(sim, SIM_SHIM);
        sim_count_fault(sim, SIM_LOGGER);
        sim_shim_die(sim, attempt);
        break;
    case SIM_DO_RECORD_LOST:
        if (attempt == NULL)
            return false;
        sim_count_fault(sim, SIM_RECORD_LOST);
        attempt->record_lost = 1;
        break;
    case SIM_DO_PLUG:
        if (!sim_plugin_of(sim, &step->whom)->alive)
            return false;
        sim_count_fault(sim, SIM_PLUG);
        sim_plugin_die(sim, step->whom.member);
        break;
    case SIM_DO_SERVER:
        disturb_server(sim, (enum sim_server)step->number);
        break;
    case SIM_DO_TORN_CUT:
        return sim_store_damage(sim, &step->whom, SIM_TORN_CUT);
    case SIM_DO_TORN_ZERO:
        return sim_store_damage(sim, &step->whom, SIM_TORN_ZERO);
    case SIM_DO_TORN_FLIP:
        return sim_store_damage(sim, &step->whom, SIM_TORN_FLIP);
    case SIM_DO_BUSY:
        sim_count_fault(sim, SIM_BUSY);
        sim_claim_of(sim, &step->whom)->busy_until_ms = sim->now_ms + ms;
        break;
    case SIM_DO_UNMOUNT:
        if (!sim_claim_of(sim, &step->whom)->mounted)
            return false;
        sim_count_fault(sim, SIM_UNMOUNT);
        sim_claim_of(sim, &step->whom)->mounted = 0;
        sim_claim_of(sim, &step->whom)->snatched = 1;
        break;
    case SIM_DO_DIR_LOST:
        if (!sim_alloc_of(sim, &step->whom)->directory)
            return false;
        sim_count_fault(sim, SIM_DIR_LOST);
        lose_directory(sim_alloc_of(sim, &step->whom));
        break;
    case SIM_DO_SLEEP:
        sim_count_fault(sim, SIM_SLEEP);
        sleep_all(sim, ms);
        break;
    case SIM_DO_JUMP:
        sim_count_fault(sim, SIM_JUMP);
        sim->jump_ms += step->number;
        break;
    case SIM_DO_DISK:
        sim->commits_to_fail = (uint32_t)ms;
        break;
    case SIM_DO_ASSIGN:
    case SIM_DO_UPDATE:
    case SIM_DO_STOP:
    case SIM_DO_DESTROY:
    case SIM_DO_RESTART:
    case SIM_DO_RESTART_TASK:
    case SIM_DO_SIGNAL:
    case SIM_DO_DETACH:
    case SIM_DO_STOP_PLUGIN:
    case SIM_DO_REMOVE:
    case SIM_DO_INSTALL:
    case SIM_DO_EXIT:
    case SIM_DO_HEAL:
    case SIM_ACTION_COUNT:
        unreachable("not a fault");
    }
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
}

void sim_do_step(struct sim *sim, const struct sim_step *step)
{
    struct sim_attempt *attempt = step->whom.kind == MACHINE_TASK ? newest(sim, &step->whom) : NULL;
    bool *did = &sim->told.stepped[step - sim->script->steps];

    if (sim->print != NULL) {
        char what[SIM_LINE_BYTES];
        sim_step_what(sim->script, step, what, sizeof(what));
        sim_say(sim, "world: %s", what);
    }
    sim_mix(sim, step->action);
    *did = true;
    switch ((enum sim_action)step->action) {
    case SIM_DO_ASSIGN:
        sim_wish(sim, step->whom.alloc, WISH_RUN);
        break;
    case SIM_DO_UPDATE:
        sim_update(sim, step->whom.alloc);
        break;
    case SIM_DO_STOP:
        sim_wish(sim, step->whom.alloc, WISH_STOP);
        break;
    case SIM_DO_DESTROY:
        if (sim->script->server)
            sim_count_fault(sim, SIM_PURGE);
        sim_wish(sim, step->whom.alloc, WISH_GONE);
        break;
    case SIM_DO_RESTART:
        sim_ask(sim, &step->whom, AE_RESTART);
        break;
    case SIM_DO_RESTART_TASK:
        sim_ask(sim, &step->whom, TE_RESTART);
        break;
    case SIM_DO_SIGNAL:
        sim_ask(sim, &step->whom, TE_SIGNAL);
        break;
    case SIM_DO_DETACH:
        sim_ask(sim, &step->whom, VE_DETACH);
        break;
    case SIM_DO_STOP_PLUGIN:
        if (sim->healed)
            break;
        sim_plugin_of(sim, &step->whom)->stop_asked = 1;
        sim_ask(sim, &step->whom, PE_STOP);
        break;
    case SIM_DO_REMOVE:
    case SIM_DO_INSTALL:
        if (sim->healed)
            break;
        sim_plugin_of(sim, &step->whom)->removed = step->action == SIM_DO_REMOVE;
        sim_define_plugins(sim);
        break;
    case SIM_DO_EXIT:
        *did = attempt != NULL && attempt->payload == PAYLOAD_RUNNING;
        if (*did)
            sim_payload_end(sim, attempt, (int32_t)step->number, 0);
        break;
    case SIM_DO_HEAL:
        sim_heal(sim);
        break;
    case SIM_DO_CRASH:
    case SIM_DO_TERM:
    case SIM_DO_BOOT:
    case SIM_DO_SHIM:
    case SIM_DO_RECORD_LOST:
    case SIM_DO_PLUG:
    case SIM_DO_SERVER:
    case SIM_DO_TORN_CUT:
    case SIM_DO_TORN_ZERO:
    case SIM_DO_TORN_FLIP:
    case SIM_DO_BUSY:
    case SIM_DO_UNMOUNT:
    case SIM_DO_DIR_LOST:
    case SIM_DO_SLEEP:
    case SIM_DO_JUMP:
    case SIM_DO_DISK:
        *did = !sim->healed && do_fault(sim, step);
        break;
    case SIM_ACTION_COUNT:
        unreachable("action");
    }
}

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

static bool is_same(const struct sim_whom *a, const struct sim_whom *b)
{
    return a->kind == b->kind && a->alloc == b->alloc && a->member == b->member;
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
        uint32_t *entered = entered_of(sim, &whom);
        if (moment == SIM_AFTER) {
            entered[events[i].after]++;
            sim_fact(sim, SIM_FACT_ENTERS, &whom, events[i].after);
        }
        uint32_t nth = entered[events[i].after] + (moment == SIM_BEFORE);
        for (unsigned s = 0; s < sim->script->steps_count; s++) {
            const struct sim_step *step = &sim->script->steps[s];
            if (step->moment == SIM_AT || step->state != events[i].after || step->nth != nth ||
                !is_same(&step->when, &whom))
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
