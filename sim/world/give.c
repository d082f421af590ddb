/*
 * Giving allocs and plugins to the core, as server/alone/place.c does, and what specifications know
 * of an alloc whose records are lost.
 */
#include "core/lost.h"
#include "sim/world/world.h"

#include "fsm/policy.h"

#include <string.h>

/* What a newer version says otherwise: longer, shorter, never or at once. */
static uint64_t vary(uint64_t ms, uint64_t version, unsigned what)
{
    static const uint8_t quarters[] = {4, 1, 8, 2, 4, 0, 5, 16};
    uint64_t times = version % (SIM_TIMES_MAX + 1);

    if (version == 0 || times != 0)
        return version == 0 ? ms : ms * times;
    return ms * quarters[(hash_u64(version, what) >> 7) % COUNT_OF(quarters)] / 4;
}

static struct task_define define_of(const struct sim_alloc_state *alloc,
                                    const struct sim_task *task, uint64_t version)
{
    uint32_t supervisor = task->serves != 0 ? 1u << TASK_HOOK_CSI_PLUGIN : 0;
    struct task_define define = {
        .restart_interval_ms = vary(task->interval_ms, version, 0),
        .restart_delay_ms = vary(task->backoff_ms, version, 1),
        .restart_attempts = (uint32_t)vary(task->attempts, version, 2),
        .restart_mode_delay = task->mode_delay,
        .kill_timeout_ms = vary(task->kill_ms, version, 3),
        .shutdown_delay_ms = vary(task->delay_ms, version, 4),
        .hooks_prestart = task->hooks[0] | supervisor,
        .hooks_poststart = task->hooks[1] | supervisor,
        .hooks_prekill = task->hooks[2],
        .hooks_exited = task->hooks[3] | supervisor,
        .hooks_stop = task->hooks[4] | supervisor,
        .lifecycle = task->lifecycle,
        .sidecar = task->sidecar,
        .leader = task->leader,
        .may_start = 1,
        .mounts = alloc->claims_count > 0,
        .restart_on_success = policy_restarts_on_success(
            alloc->plan->batch, (enum spec_lifecycle)task->lifecycle, task->sidecar),
        .driver = "raw_exec",
    };

    if (vary(1, version, 7) > 1)
        (void)text_copy(define.kill_signal, sizeof(define.kill_signal), "SIGINT"); /* fits */
    return define;
}

static bool has_member(const struct alloc_assign *assign, enum alloc_member_kind kind,
                       const char *name)
{
    for (uint32_t i = 0; i < assign->members_count; i++) {
        if (assign->members[i].kind == kind && text_equal(assign->members[i].name, name))
            return true;
    }
    return false;
}

/* The tasks that ASSIGN lacks. */
static void add_tasks(const struct sim_alloc_state *alloc, struct alloc_assign *assign)
{
    for (int t = 0; t < alloc->tasks_count; t++) {
        const struct sim_task *plan = alloc->tasks[t].plan;
        const char *name = machine_id_name(&alloc->tasks[t].id);
        if (has_member(assign, MEMBER_TASK, name) || assign->members_count == ALLOC_MEMBERS_MAX)
            continue;
        struct alloc_member *member = &assign->members[assign->members_count++];
        *member = (struct alloc_member){
            .kind = MEMBER_TASK,
            .lifecycle = plan->lifecycle,
            .sidecar = plan->sidecar,
            .leader = plan->leader,
        };
        (void)text_copy(member->name, sizeof(member->name), name); /* fits */
    }
}

/* Specifications say which volume a claim is on, except of what was damaged in the journal that the
 * world began from. */
static bool is_specified(const struct sim *sim, const struct sim_claim_state *claim)
{
    const struct volume_define *past = sim->disks[claim->disk].past;

    return past == NULL || past->volume[0] != '\0';
}

static void add_claims(const struct sim *sim, const struct sim_alloc_state *alloc,
                       struct alloc_assign *assign)
{
    for (int c = 0; c < alloc->claims_count; c++) {
        const char *name = machine_id_name(&alloc->claims[c].id);
        if (has_member(assign, MEMBER_VOLUME, name) || !is_specified(sim, &alloc->claims[c]) ||
            assign->members_count == ALLOC_MEMBERS_MAX)
            continue;
        struct alloc_member *member = &assign->members[assign->members_count++];
        *member = (struct alloc_member){.kind = MEMBER_VOLUME};
        (void)text_copy(member->name, sizeof(member->name), name); /* fits */
    }
}

static struct volume_define claim_define(const struct sim *sim, const struct sim_claim_state *claim)
{
    struct volume_define define = {.access_mode = 1};

    if (sim->disks[claim->disk].past != NULL)
        return *sim->disks[claim->disk].past;
    (void)text_copy(define.plugin, sizeof(define.plugin),
                    sim->plugins[claim->plugin].name); /* fits */
    (void)text_copy(define.namespace, sizeof(define.namespace), "default");
    (void)text_format(define.volume, sizeof(define.volume), "disk%d",
                      sim->disks[claim->disk].number); /* fits */
    return define;
}

static void name_job(const struct sim_alloc_state *alloc, struct alloc_assign *assign)
{
    (void)text_copy(assign->namespace, sizeof(assign->namespace), "default");
    (void)text_copy(assign->job_id, sizeof(assign->job_id), alloc->id.text); /* fits */
    (void)text_copy(assign->group, sizeof(assign->group), "group");
}

union assign_place {
    struct alloc_assign assign;
    unsigned char
        room[sizeof(struct alloc_assign) + ALLOC_MEMBERS_MAX * sizeof(struct alloc_member)];
};

static void assign_of(const struct sim *sim, const struct sim_alloc_state *alloc, uint64_t version,
                      union assign_place *place)
{
    const struct sim_alloc *plan = alloc->plan;
    struct alloc_assign *assign = &place->assign;

    place->assign = (struct alloc_assign){0};
    assign->create_unix_ns = sim_unix_ns(sim);
    assign->job_version = alloc->first_version + version;
    assign->shutdown_delay_ms = vary(plan->delay_ms, version, 5);
    assign->max_run_ms = vary(plan->limit_ms, version, 6);
    assign->stop_after_ms = vary(plan->stop_after_ms, version, 8);
    assign->watched = plan->healthy_deadline_ms != 0;
    assign->deployed_unix_ns = version % 2 == 0 ? (int64_t)version : 0; /* else of the first one */
    assign->manual = plan->manual;
    assign->checks = ((uint64_t)1 << plan->checks) - 1;
    assign->min_healthy_ms = plan->min_healthy_ms;
    assign->healthy_deadline_ms = plan->healthy_deadline_ms;
    assign->hooks_prerun = plan->hooks[0];
    assign->hooks_prekill = plan->hooks[1];
    assign->hooks_postrun = plan->hooks[2];
    assign->hooks_destroy = plan->hooks[3];
    assign->may_start = 1;
    assign->batch = plan->batch;
    if (alloc->after != 0)
        (void)text_copy(plan->sticky ? assign->disk_from : assign->previous,
                        sizeof(assign->previous), sim->allocs[alloc->after - 1].id.text); /* fits */
    if (assign->disk_from[0] != '\0')
        assign->hooks_prerun |= 1u << ALLOC_HOOK_MIGRATE_DISK;
    name_job(alloc, assign);
    add_tasks(alloc, assign);
    add_claims(sim, alloc, assign);
}

/* To the alloc and each of its tasks. */
static void tell_version(struct sim *sim, const struct sim_alloc_state *alloc, uint64_t version,
                         bool newer)
{
    union assign_place place;
    char key[JOURNAL_KEY_SIZE];

    assign_of(sim, alloc, version, &place);
    (void)text_format(key, sizeof(key), "alloc/%s", alloc->id.text); /* fits */
    core_spec(sim->core, key, "{}", 2);
    core_tell(sim->core, &alloc->id, newer ? AE_UPDATE : AE_ASSIGN, &place.assign);
    for (int t = 0; t < alloc->tasks_count; t++) {
        struct task_define define = define_of(alloc, alloc->tasks[t].plan, version);
        core_tell(sim->core, &alloc->tasks[t].id, newer ? TE_UPDATE : TE_DEFINE, &define);
    }
}

void sim_give_newer(struct sim *sim, int number, uint64_t version)
{
    tell_version(sim, &sim->allocs[number], version, true);
}

bool sim_runs_by(const struct sim_alloc_state *alloc, int task, const struct task_define *define,
                 uint64_t job_version)
{
    struct task_define asked =
        define_of(alloc, alloc->tasks[task].plan, job_version - alloc->first_version);

    asked.mounts = define->mounts; /* a claim may have been lost */
    return memcmp(&asked, define, sizeof(asked)) == 0;
}

void sim_give(struct sim *sim, int number, uint64_t version)
{
    struct sim_alloc_state *alloc = &sim->allocs[number];

    tell_version(sim, alloc, version, false);
    for (int c = 0; c < alloc->claims_count; c++) {
        struct volume_define define = claim_define(sim, &alloc->claims[c]);
        core_tell(sim->core, &alloc->claims[c].id, VE_DEFINE, &define);
    }
    const struct alloc *previous =
        alloc->after == 0 ? NULL : core_alloc(sim->core, sim->allocs[alloc->after - 1].id.text);
    alloc->follows = previous != NULL && previous->ended_unix_ns == 0;
}

/* The alloc of which a specification is left, or NULL. */
static const struct sim_alloc_state *specified(const struct sim *sim, const char *alloc)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);
    struct sim_whom whom = sim_find(sim, &id);

    return whom.kind == MACHINE_ALLOC && sim_alloc_of(sim, &whom)->specified
               ? sim_alloc_of(sim, &whom)
               : NULL;
}

void sim_known(void *ctx, const char *alloc, struct alloc_assign *assign)
{
    const struct sim *sim = ctx;
    const struct sim_alloc_state *left = specified(sim, alloc);

    if (left == NULL)
        return;
    if (left->spec != NULL) {
        lost_alloc_text(left->spec, left->spec_length, assign); /* as the daemon reads it */
    } else if (sim->start == NULL) {
        name_job(left, assign);
        add_tasks(left, assign);
    }
    add_claims(sim, left, assign);
}

bool sim_claim_known(void *ctx, const char *alloc, const char *name,
                     struct volume_define *ret_define)
{
    const struct sim *sim = ctx;
    const struct sim_alloc_state *left = specified(sim, alloc);

    for (int c = 0; left != NULL && c < left->claims_count; c++) {
        if (text_equal(machine_id_name(&left->claims[c].id), name) &&
            is_specified(sim, &left->claims[c])) {
            *ret_define = claim_define(sim, &left->claims[c]);
            return true;
        }
    }
    return false;
}

/* By its place, which is that of its volume. */
bool sim_claim_found(void *ctx, const char *alloc, unsigned nth, struct volume_define *ret_define)
{
    const struct sim *sim = ctx;
    struct machine_id id = machine_id_make(MACHINE_ALLOC, alloc);
    struct sim_whom whom = sim_find(sim, &id);
    const struct sim_alloc_state *state =
        whom.kind == MACHINE_ALLOC ? sim_alloc_of(sim, &whom) : NULL;

    for (int c = 0; state != NULL && c < state->claims_count; c++) {
        const struct sim_claim_state *claim = &state->claims[c];
        if (!claim->mounted || core_find(sim->core, &claim->id) != NULL || nth-- > 0)
            continue;
        *ret_define = claim_define(sim, claim);
        return true;
    }
    return false;
}

void sim_define_plugins(struct sim *sim)
{
    for (int p = 0; p < sim->plugins_count && sim->up && !sim->dying; p++) {
        struct sim_plugin_state *plugin = &sim->plugins[p];
        if (plugin->task != NULL)
            continue; /* its hooks say so */
        bool there = core_find(sim->core, &plugin->id) != NULL;
        struct plugin_define define = {.type = PLUGIN_CSI_NODE};

        (void)text_copy(define.plugin, sizeof(define.plugin),
                        sim->plugins[plugin->serves].name); /* fits */
        if (plugin->past != NULL)
            define = plugin->past->define;
        if (!there && !plugin->removed)
            core_tell(sim->core, &plugin->id, PE_DEFINE, &define);
        if (there && plugin->removed)
            core_tell(sim->core, &plugin->id, PE_REMOVE, NULL);
    }
}
