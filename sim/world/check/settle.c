/*
 * Liveness: where a healed world must come to, and what must be left of it at the end.
 *
 * Settled: all that is wanted runs, all that is not has ended, and everybody has heard.  Empty:
 * nothing is left of anything.  Both are asked after each thing that happens; what is missing at
 * the end of the budget is the report.
 */
#include "sim/world/check/check.h"
#include "sim/world/world.h"

struct finding {
    char text[SIM_VIOLATION_SIZE - 64];
    unsigned invariant;
};

static bool miss(struct finding *finding, unsigned invariant, const char *what, const char *name,
                 const char *state)
{
    if (finding != NULL) {
        finding->invariant = invariant;
        (void)text_format(finding->text, sizeof(finding->text), "%s %s: %s", what, name,
                          state); /* cut if too long */
    }
    return false;
}

static const char *state_name(const struct machine *record)
{
    return record == NULL
               ? "absent"
               : fsm_state_name(fsm_definition((enum machine_kind)record->kind), record->state);
}

/* A volume was taken from under a payload and cannot be mounted again.  The payload is left alone
 * (I-23); what does not run waits for its end. */
static bool waits_for_broken(const struct sim *sim, int a)
{
    for (int c = 0; c < sim->allocs[a].claims_count; c++) {
        const struct machine *record = core_find(sim->core, &sim->allocs[a].claims[c].id);
        if (record != NULL && record->state == V_BROKEN)
            return sim_alloc_lives(sim, a);
    }
    return false;
}

/* A volume is not mounted, and the task that would be its plugin has ended for good: while a
 * sibling runs, each start waits for a plugin and gives up, as often as there are starts. */
static bool waits_for_plugin(const struct sim *sim, int a)
{
    for (int c = 0; c < sim->allocs[a].claims_count; c++) {
        const struct sim_claim_state *claim = &sim->allocs[a].claims[c];
        const struct machine *record = core_find(sim->core, &claim->id);
        if (record != NULL && record->state != V_READY && !sim_plugin_is_served(sim, claim->plugin))
            return sim_alloc_lives(sim, a);
    }
    return false;
}

/* Another alloc has what it wants, for as long as that runs. */
static bool waits_for_claim(const struct sim *sim, int a)
{
    for (int c = 0; c < sim->allocs[a].claims_count; c++) {
        if (sim_claim_is_taken(sim, &sim->allocs[a].claims[c]))
            return true;
    }
    return false;
}

static bool task_is_settled(struct sim *sim, int a, int t, struct finding *finding)
{
    const struct machine_id *id = &sim->allocs[a].tasks[t].id;
    const struct machine *record = core_find(sim->core, id);
    uint8_t lifecycle = sim->allocs[a].tasks[t].plan->lifecycle;

    if (record == NULL)
        return miss(finding, 25, "task", id->text, "is not there");
    if (record->state == T_HELD && waits_for_broken(sim, a))
        return true;
    bool tries =
        record->state == T_HELD || record->state == T_LOOKING || record->state == T_BACKOFF;
    if (tries && waits_for_plugin(sim, a))
        return true;
    if (record->state == T_DEAD || (record->state == T_WAITING && lifecycle == LIFECYCLE_POSTSTOP))
        return true;
    if (record->state != T_RUNNING)
        return miss(finding, 9, "task", id->text, state_name(record));
    const struct sim_attempt *attempt = sim_attempt(sim, a, t, record->generation);
    if (attempt == NULL || attempt->payload != PAYLOAD_RUNNING)
        return miss(finding, 8, "task", id->text, "is shown running, and its payload is not");
    if (attempt->reported != sim->incarnation)
        return miss(finding, 8, "task", id->text, "runs, and nobody would see its end");
    if (sim->allocs[a].tasks[t].watched == sim->incarnation &&
        !sim_is_told(&sim->allocs[a].tasks[t], task_of(record)))
        return miss(finding, 16, "task", id->text, "is not told of its templates");
    if (sim->allocs[a].tasks[t].renewed == sim->incarnation &&
        !sim_tokens_are_told(&sim->allocs[a].tasks[t], task_of(record)))
        return miss(finding, 16, "task", id->text, "is not told of its tokens");
    return true;
}

static bool running_is_settled(struct sim *sim, int a, struct finding *finding)
{
    for (int t = 0; t < sim->allocs[a].tasks_count; t++) {
        if (!task_is_settled(sim, a, t, finding))
            return false;
    }
    const char *over = sim->allocs[a].damaged ? NULL : sim_group_over(sim, a);
    if (over != NULL)
        return miss(finding, 9, "alloc", sim->allocs[a].id.text, over);
    for (int c = 0; c < sim->allocs[a].claims_count; c++) {
        const struct machine_id *id = &sim->allocs[a].claims[c].id;
        const struct machine *record = core_find(sim->core, id);
        if (record != NULL && record->state == V_BROKEN && sim_alloc_lives(sim, a))
            continue;
        if (waits_for_plugin(sim, a))
            continue;
        if (record == NULL || record->state != V_READY)
            return miss(finding, 31, "volume", id->text, state_name(record));
    }
    return true;
}

static bool previous_lives(const struct sim *sim, int a)
{
    uint16_t after = sim->allocs[a].after;
    const struct alloc *previous =
        after == 0 ? NULL : core_alloc(sim->core, sim->allocs[after - 1].id.text);

    return previous != NULL && previous->ended_unix_ns == 0;
}

static bool alloc_is_settled(struct sim *sim, int a, struct finding *finding)
{
    const struct sim_alloc_state *state = &sim->allocs[a];
    const struct machine *record = core_find(sim->core, &state->id);
    const char *name = state->id.text;

    switch ((enum sim_wish)state->wish) {
    case WISH_NONE:
        return true;
    case WISH_RUN:
        if (state->damaged)
            return record == NULL || record->state == A_TERMINAL || record->state == A_RUNNING ||
                   miss(finding, 25, "damaged alloc", name, state_name(record));
        if (record == NULL)
            return miss(finding, 14, "alloc", name, "is wanted and not there");
        if (record->state == A_RUNNING && sim_health_missing(alloc_of(record)) != NULL)
            return miss(finding, 39, "alloc", name, sim_health_missing(alloc_of(record)));
        if (record->state == A_RUNNING)
            return running_is_settled(sim, a, finding);
        return record->state == A_TERMINAL ||
               (record->state == A_WAITING && previous_lives(sim, a)) ||
               (record->state == A_MOUNTING && waits_for_claim(sim, a)) ||
               miss(finding, 9, "alloc", name, state_name(record));
    case WISH_STOP:
        return record == NULL || record->state == A_TERMINAL ||
               miss(finding, 9, "stopped alloc", name, state_name(record));
    case WISH_GONE:
        return record == NULL || (state->damaged && record->state == A_TERMINAL) ||
               miss(finding, 9, "removed alloc", name, state_name(record));
    }
    unreachable("wish");
}

static bool status_is_settled(struct sim *sim, int a, struct finding *finding)
{
    const struct sim_alloc_state *state = &sim->allocs[a];
    const struct alloc *alloc = core_alloc(sim->core, state->id.text);

    if (alloc == NULL)
        return true;
    if (alloc->status_revision > alloc->acked_revision)
        return miss(finding, 39, "status of", state->id.text, "is not acknowledged");
    /* An older copy of the journal knows nothing of what was told since, and tells what changes. */
    if (state->older)
        return true;
    if (alloc->health != state->reported_health)
        return miss(finding, 39, "health of", state->id.text, "is not what was reported");
    return alloc->client_status == state->reported_status ||
           miss(finding, 39, "status of", state->id.text, "is not what was reported");
}

static bool is_settled(struct sim *sim, struct finding *finding)
{
    if (!sim->up || !sim->restored)
        return miss(finding, 35, "daemon", "", "is not up");
    if (!sim->swept)
        return miss(finding, 1, "daemon", "", "has not ended what belongs to nobody");
    if (core_has_work(sim->core))
        return miss(finding, 35, "daemon", "", "has work it does not do");
    for (int i = 0; i < sim->allocs_count; i++) {
        /* What was missing last is asked first: it mostly is what is missing still. */
        int a = (sim->unsettled + i) % sim->allocs_count;
        if (!alloc_is_settled(sim, a, finding) ||
            (sim->script->server && !status_is_settled(sim, a, finding))) {
            sim->unsettled = a;
            return false;
        }
    }
    const char *name, *what = sim_jobs_unsettled(sim, &name);
    if (what != NULL)
        return miss(finding, 14, "job", name, what);
    for (int p = 0; p < sim->plugins_count; p++) {
        const struct machine *record = core_find(sim->core, &sim->plugins[p].id);
        bool wanted = sim->plugins[p].task != NULL ? sim_plugin_lives(sim, &sim->plugins[p])
                                                   : !sim->plugins[p].removed;
        if (wanted && (record == NULL || record->state != P_READY))
            return miss(finding, 32, "plugin", sim->plugins[p].id.text, state_name(record));
    }
    for (uint32_t i = 0; i < sim->control.requests_max && i < sim->control.requests_count; i++) {
        if (sim->control.requests[i].state == REQUEST_OPEN)
            return miss(finding, 14, "a request to",
                        sim_id(sim, &sim->control.requests[i].whom)->text, "is not answered");
    }
    if (sim->calls.awaited > 0)
        return miss(finding, 35, "a call", "", "is not answered");
    return true;
}

bool sim_is_settled(struct sim *sim)
{
    return is_settled(sim, NULL);
}

void sim_check_settled(struct sim *sim)
{
    struct finding finding = {.text = ""};

    sim_check_memory(sim);
    if (!is_settled(sim, &finding))
        sim_stuck(sim, finding.invariant, "healed, but %s", finding.text);
}

/* --- nothing is left --- */

static bool machines_are_gone(struct sim *sim, struct finding *finding)
{
    if (sim->store.count > 0)
        return miss(finding, 24, "record of", sim->store.items[0]->id.text, "is left");
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        if (core_count(sim->core, (enum machine_kind)kind) > 0)
            return miss(finding, 24, "a machine", machine_kind_name((enum machine_kind)kind),
                        "is in memory only");
    }
    return true;
}

static bool world_is_empty(struct sim *sim, struct finding *finding)
{
    for (size_t i = 0; i < sim->attempts.count; i++) {
        const struct sim_attempt *attempt = &sim->attempts.items[i];
        struct sim_whom whom = {MACHINE_TASK, attempt->alloc, attempt->task};
        if (sim_attempt_lives(attempt))
            return miss(finding, 1, "payload of", sim_id(sim, &whom)->text, "lives");
        if (sim_attempt_exists(attempt))
            return miss(finding, 37, "shim directory of", sim_id(sim, &whom)->text, "is left");
    }
    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        bool stays = alloc->damaged || alloc->unknown ||
                     (alloc->plan->hooks[3] >> ALLOC_HOOK_ALLOC_DIR & 1u) == 0;
        if (alloc->directory && !stays)
            return miss(finding, 24, "directory of", alloc->id.text, "is left");
        if (alloc->network)
            return miss(finding, 33, "network of", alloc->id.text, "is left");
        if (alloc->specified)
            return miss(finding, 19, "specification of", alloc->id.text, "is left");
        for (int c = 0; c < alloc->claims_count; c++) {
            if (alloc->claims[c].mounted)
                return miss(finding, 24, "mount of", alloc->claims[c].id.text, "is left");
            if (alloc->claims[c].held)
                return miss(finding, 26, "claim of", alloc->claims[c].id.text, "is left");
        }
    }
    for (size_t j = 0; j < sim->script->jobs_count; j++) {
        if (sim->jobs.states[j].stored != NULL)
            return miss(finding, 19, "job", sim->script->jobs[j].name, "is left");
    }
    for (int p = 0; p < sim->plugins_count; p++) {
        if (sim->plugins[p].alive)
            return miss(finding, 1, "plugin", sim->plugins[p].id.text, "lives");
    }
    for (int d = 0; d < sim->disks_count; d++) {
        if (sim->disks[d].staged)
            return miss(finding, 28, "volume of plugin", sim->plugins[sim->disks[d].plugin].id.text,
                        "is left staged");
    }
    return true;
}

static bool is_empty(struct sim *sim, struct finding *finding)
{
    return (sim->up || miss(finding, 35, "daemon", "", "is not up")) &&
           machines_are_gone(sim, finding) && world_is_empty(sim, finding);
}

bool sim_is_empty(struct sim *sim)
{
    return is_empty(sim, NULL);
}

void sim_check_empty(struct sim *sim)
{
    struct finding finding = {.text = ""};

    sim_check_memory(sim);
    if (!is_empty(sim, &finding))
        sim_stuck(sim, finding.invariant, "all was to be gone, but the %s", finding.text);
}
