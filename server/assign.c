#include "server/assign.h"

#include "core/lost.h"
#include "fsm/policy.h"

#include <stdlib.h>

static bool is_batch(const struct alloc_spec *spec)
{
    return text_equal(spec->job_type, "batch") || text_equal(spec->job_type, "sysbatch");
}

static size_t claims_of(const struct alloc_spec *spec)
{
    size_t count = 0;

    for (size_t i = 0; i < spec->volumes_count; i++)
        count += spec->volumes[i].type == VOLUME_CSI;
    return count;
}

/* To TASK of SPEC: it is to be, or is there and goes on by this version. */
static void tell_task(struct core *core, const struct assign_plans *plans,
                      const struct alloc_spec *spec, const struct task_spec *task, uint8_t event)
{
    uint64_t kill_max_ms = plans->kill_timeout_max_ms;
    struct task_define define = {
        .restart_interval_ms = task->restart.interval_ms,
        .restart_delay_ms = task->restart.delay_ms,
        .restart_attempts = task->restart.attempts,
        .restart_mode_delay = task->restart.mode_delay,
        .kill_timeout_ms =
            task->kill_timeout_ms < kill_max_ms ? task->kill_timeout_ms : kill_max_ms,
        .shutdown_delay_ms = task->shutdown_delay_ms,
        .lifecycle = (uint8_t)task->lifecycle,
        .sidecar = task->sidecar,
        .leader = task->leader,
        .may_start = 1,
        .mounts = claims_of(spec) > 0,
        .restart_on_success =
            policy_restarts_on_success(is_batch(spec), task->lifecycle, task->sidecar),
    };
    struct machine_id id = machine_id_join(MACHINE_TASK, spec->id, task->name);

    (void)text_copy(define.driver, sizeof(define.driver), task->driver);
    (void)text_copy(define.kill_signal, sizeof(define.kill_signal), task->kill_signal);
    plans->task(plans->ctx, spec, task, &define);
    core_tell(core, &id, event, &define);
}

/* Checks that have to pass before it is healthy, as bits by their order. */
static uint64_t checks_awaited(const struct alloc_spec *spec)
{
    uint64_t awaited = 0, bit = 1;

    for (size_t i = 0; i < spec->services_count && !spec->task_health; i++) {
        for (size_t j = 0; j < spec->services[i].checks_count; j++, bit <<= 1)
            awaited |= spec->services[i].checks[j].ready_only ? 0 : bit;
    }
    return awaited;
}

static struct alloc_assign *assign_of(const struct assign_plans *plans,
                                      const struct alloc_spec *spec, const char *awaited,
                                      const char *disk_from)
{
    struct alloc_assign *assign = calloc(
        1, sizeof(*assign) + (spec->tasks_count + claims_of(spec)) * sizeof(assign->members[0]));

    check(assign != NULL);
    assign->create_unix_ns = spec->create_time_unix_ns;
    assign->job_version = spec->job_version;
    assign->shutdown_delay_ms = spec->group_shutdown_delay_ms;
    assign->max_run_ms = spec->max_run_ms;
    assign->stop_after_ms = spec->stop_after_ms;
    assign->watched = spec->deployment_id[0] != '\0';
    assign->manual = spec->manual_health;
    assign->min_healthy_ms = spec->min_healthy_ms;
    assign->healthy_deadline_ms = spec->healthy_deadline_ms;
    assign->checks = checks_awaited(spec);
    assign->index = spec->index;
    assign->may_start = 1;
    assign->batch = is_batch(spec);
    (void)text_copy(assign->previous, sizeof(assign->previous), awaited); /* UUIDs or "" */
    (void)text_copy(assign->disk_from, sizeof(assign->disk_from), disk_from);
    (void)text_copy(assign->namespace, sizeof(assign->namespace), spec->namespace);
    (void)text_copy(assign->job_id, sizeof(assign->job_id), spec->job_id);
    (void)text_copy(assign->group, sizeof(assign->group), spec->group);
    for (size_t i = 0; i < spec->tasks_count; i++) {
        struct alloc_member *member = &assign->members[assign->members_count++];
        member->kind = MEMBER_TASK;
        member->lifecycle = (uint8_t)spec->tasks[i].lifecycle;
        member->sidecar = spec->tasks[i].sidecar;
        member->leader = spec->tasks[i].leader;
        (void)text_copy(member->name, sizeof(member->name), spec->tasks[i].name);
    }
    for (size_t i = 0; i < spec->volumes_count; i++) {
        if (spec->volumes[i].type != VOLUME_CSI)
            continue;
        struct alloc_member *member = &assign->members[assign->members_count++];
        member->kind = MEMBER_VOLUME;
        (void)text_copy(member->name, sizeof(member->name), spec->volumes[i].name);
    }
    plans->alloc(spec, assign);
    return assign;
}

/* Each volume of a storage plugin is a machine of its own. */
static void tell_claims(struct core *core, const struct alloc_spec *spec)
{
    for (size_t i = 0; i < spec->volumes_count; i++) {
        if (spec->volumes[i].type != VOLUME_CSI)
            continue;
        struct volume_define define = define_of_volume(spec, &spec->volumes[i]);
        struct machine_id id = machine_id_join(MACHINE_VOLUME, spec->id, spec->volumes[i].name);
        core_tell(core, &id, VE_DEFINE, &define);
    }
}

void assign_alloc(struct core *core, const struct assign_plans *plans,
                  const struct alloc_spec *spec, const char *awaited, const char *disk_from)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, spec->id);
    struct alloc_assign *assign = assign_of(plans, spec, awaited, disk_from);

    core_tell(core, &id, AE_ASSIGN, assign);
    free(assign);
    for (size_t i = 0; i < spec->tasks_count; i++)
        tell_task(core, plans, spec, &spec->tasks[i], TE_DEFINE);
    tell_claims(core, spec);
}

void update_alloc(struct core *core, const struct assign_plans *plans,
                  const struct alloc_spec *spec, int64_t deployed_unix_ns)
{
    struct machine_id id = machine_id_make(MACHINE_ALLOC, spec->id);
    struct alloc_assign *assign = assign_of(plans, spec, "", "");

    assign->deployed_unix_ns = deployed_unix_ns;
    core_tell(core, &id, AE_UPDATE, assign);
    free(assign);
    for (size_t i = 0; i < spec->tasks_count; i++)
        tell_task(core, plans, spec, &spec->tasks[i], TE_UPDATE);
}
