/*
 * Users of the stand-alone control plane.
 *
 * A user wants a job to run, to stop, or to be forgotten, asks for it, and asks again until the
 * request was granted; what they were told is looked up in the journal (check/jobs.c).
 */
#include "sim/world/jobs.h"

#include "sim/world/check/check.h"
#include "sim/world/world.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const struct sim_job *plan_of(const struct sim *sim, size_t job)
{
    return &sim->script->jobs[job];
}

/* --- a job as users write it --- */

static json_t *masks_json(const uint32_t *masks, size_t count)
{
    char text[128] = "", number[16];

    for (size_t i = 0; i < count; i++) {
        (void)text_format(number, sizeof(number), "%u ", masks[i]); /* fits */
        (void)text_append(text, sizeof(text), number);              /* fits */
    }
    return json_string(text);
}

static json_t *task_json(const struct sim_alloc *alloc, const struct sim_task *task,
                         const struct sim_job_state *job)
{
    static const char *const lifecycles[] = {
        [LIFECYCLE_PRESTART] = "prestart",
        [LIFECYCLE_POSTSTART] = "poststart",
        [LIFECYCLE_POSTSTOP] = "poststop",
    };
    const json_int_t ms = 1000000;
    const uint64_t times = job->times;
    json_t *json = json_pack(
        "{s:s, s:s, s:{s:s, s:[o]}, s:b, s:I, s:I, s:{s:I, s:I, s:I, s:s}, s:{s:o, s:o}}", "Name",
        task->name, "Driver", "raw_exec", "Config", "command", "/bin/task", "args",
        json_sprintf("%lld", (long long)job->version), "Leader", task->leader, "KillTimeout",
        (json_int_t)(task->kill_ms * times) * ms, "ShutdownDelay",
        (json_int_t)(task->delay_ms * times) * ms, "RestartPolicy", "Attempts",
        (json_int_t)(task->attempts * times), "Interval", (json_int_t)task->interval_ms * ms,
        "Delay", (json_int_t)task->backoff_ms * ms, "Mode", task->mode_delay ? "delay" : "fail",
        "Meta", "hooks", masks_json(task->hooks, COUNT_OF(task->hooks)), "alloc_hooks",
        masks_json(alloc->hooks, COUNT_OF(alloc->hooks)));

    check(json != NULL);
    if (task->lifecycle != LIFECYCLE_MAIN)
        (void)json_object_set_new(
            json, "Lifecycle",
            json_pack("{s:s, s:b}", "Hook", lifecycles[task->lifecycle], "Sidecar", task->sidecar));
    return json;
}

/* Few times, each soon, within longer than any world lives. */
static json_t *reschedule_json(uint8_t again)
{
    return json_pack("{s:i, s:b, s:I, s:I, s:s}", "Attempts", again, "Unlimited", 0, "Interval",
                     (json_int_t)365 * 24 * 3600 * 1000000000, "Delay", (json_int_t)5000000000,
                     "DelayFunction", "constant");
}

/* Rolled out as its alloc says when it is healthy; never too late. */
static json_t *update_json(const struct sim_alloc *alloc, uint8_t parallel)
{
    const json_int_t ms = 1000000;

    return json_pack("{s:i, s:I, s:I, s:I, s:I}", "MaxParallel", parallel, "Stagger",
                     (json_int_t)30000 * ms, "MinHealthyTime",
                     (json_int_t)alloc->min_healthy_ms * ms, "HealthyDeadline",
                     (json_int_t)alloc->healthy_deadline_ms * ms, "ProgressDeadline",
                     (json_int_t)24 * 3600 * 1000 * ms);
}

/* True if each group of the job that is NUMBER always has one alloc. */
static bool is_single(const struct sim *sim, size_t number)
{
    for (int s = 0; s < sim->script->steps_count; s++) {
        const struct sim_step *step = &sim->script->steps[s];
        if (step->action == SIM_DO_COUNT && step->whom.member == (int)number)
            return false;
    }
    return plan_of(sim, number)->count == 1;
}

/* Any port, and where there is one alloc at a time always the same one, too: it goes from one alloc
 * to the next. */
static json_t *network_json(const struct sim *sim, size_t number, int group)
{
    json_t *network = json_pack("{s:[{s:s}]}", "DynamicPorts", "Label", "any");

    check(network != NULL);
    if (is_single(sim, number))
        (void)json_object_set_new(
            network, "ReservedPorts",
            json_pack("[{s:s, s:I}]", "Label", "own", "Value",
                      (json_int_t)(1000 + number * SIM_ALLOCS_MAX + (size_t)group)));
    return json_pack("[o]", network);
}

static json_t *group_json(const struct sim *sim, size_t number, int index)
{
    const struct sim_alloc *alloc = &sim->script->allocs[index];
    const struct sim_job_state *job = &sim->jobs.states[number];
    const struct sim_job *plan = plan_of(sim, number);
    json_t *tasks = json_array(), *group;

    for (int t = 0; t < alloc->tasks_count; t++)
        (void)json_array_append_new(tasks, task_json(alloc, &alloc->tasks[t], job));
    group =
        json_pack("{s:s, s:I, s:I, s:o, s:o}", "Name", alloc->name, "Count", (json_int_t)job->count,
                  "ShutdownDelay", (json_int_t)(alloc->delay_ms * job->times) * 1000000, "Networks",
                  network_json(sim, number, index), "Tasks", tasks);
    if (alloc->sticky)
        check(json_object_set_new(group, "EphemeralDisk", json_pack("{s:b}", "Sticky", 1)) == 0);
    if (alloc->limit_ms != 0)
        check(json_object_set_new(
                  group, "MaxRunDuration",
                  json_integer((json_int_t)(alloc->limit_ms * job->times) * 1000000)) == 0);
    if (plan->parallel > 0)
        check(json_object_set_new(group, "Update", update_json(alloc, plan->parallel)) == 0);
    if (!plan->system)
        check(json_object_set_new(group, "ReschedulePolicy", reschedule_json(plan->again)) == 0);
    return group;
}

/* Versions differ in what their tasks are called with. */
static char *job_text(const struct sim *sim, size_t number)
{
    const struct sim_job *plan = plan_of(sim, number);
    static const char *const types[2][2] = {{"service", "batch"}, {"system", "sysbatch"}};
    json_t *groups = json_array();
    bool batch = false;

    for (int a = 0; a < sim->script->allocs_count; a++) {
        if ((plan->groups >> a & 1u) == 0)
            continue;
        batch |= sim->script->allocs[a].batch;
        (void)json_array_append_new(groups, group_json(sim, number, a));
    }
    json_t *json =
        json_pack("{s:s, s:s, s:[s], s:o}", "ID", plan->name, "Type", types[plan->system][batch],
                  "Datacenters", "dc1", "TaskGroups", groups);
    check(json != NULL);
    char *text = json_dumps(json, JSON_COMPACT);
    check(text != NULL);
    json_decref(json);
    return text;
}

/* --- what hooks and drivers plan of it --- */

static void read_masks(const struct task_spec *task, const char *key, uint32_t *masks, size_t count)
{
    for (size_t i = 0; i < task->meta.count; i++) {
        const char *at = task->meta.items[i].value;
        if (!text_equal(task->meta.items[i].key, key))
            continue;
        for (size_t n = 0; n < count; n++) {
            char *end;
            masks[n] = (uint32_t)strtoul(at, &end, 10);
            at = end;
        }
    }
}

static void plan_alloc(const struct alloc_spec *spec, struct alloc_assign *assign)
{
    uint32_t hooks[4] = {0};

    read_masks(&spec->tasks[0], "alloc_hooks", hooks, COUNT_OF(hooks));
    assign->hooks_prerun = hooks[0];
    if (assign->disk_from[0] != '\0')
        assign->hooks_prerun |= 1u << ALLOC_HOOK_MIGRATE_DISK;
    assign->hooks_prekill = hooks[1];
    assign->hooks_postrun = hooks[2];
    assign->hooks_destroy = hooks[3];
}

static void plan_task(void *ctx, const struct alloc_spec *spec, const struct task_spec *task,
                      struct task_define *define)
{
    (void)ctx; /* all of it is in the specification */
    uint32_t hooks[5] = {0};

    (void)spec;
    read_masks(task, "hooks", hooks, COUNT_OF(hooks));
    define->hooks_prestart = hooks[0];
    define->hooks_poststart = hooks[1];
    define->hooks_prekill = hooks[2];
    define->hooks_exited = hooks[3];
    define->hooks_stop = hooks[4];
}

/* --- life --- */

void sim_jobs_free(struct sim *sim)
{
    struct sim_jobs *jobs = &sim->jobs;

    for (size_t i = 0; i < COUNT_OF(jobs->states); i++)
        sim_job_forget(&jobs->states[i]);
    for (size_t i = 0; i < jobs->specs.count; i++)
        free(jobs->specs.items[i]);
    free(jobs->specs.items);
    free(jobs->placing.items);
    *jobs = (struct sim_jobs){.plane = jobs->plane};
}

void sim_jobs_reset(struct sim *sim)
{
    sim_jobs_free(sim);
    for (size_t i = 0; i < sim->script->jobs_count; i++)
        sim->jobs.states[i] =
            (struct sim_job_state){.sim = sim, .count = plan_of(sim, i)->count, .times = 1};
}

static void new_id(void *ctx, char to[UUID_TEXT_SIZE])
{
    struct sim *sim = ctx;
    uint64_t nth = sim->jobs.ids++;

    uuid_format(to, sim_chance(sim, LUCK_ID, 0, nth), sim_chance(sim, LUCK_ID, 1, nth));
}

void sim_jobs_begin(struct sim *sim)
{
    if (sim->script->jobs_count == 0)
        return;
    check(sim->jobs.plane != NULL); /* it has to be handed in */
    sim->jobs.now = sim->jobs.plane->begin(&(struct sim_plane_world){
        .life = sim->life,
        .ctx = sim,
        .new_id = new_id,
        .plan_alloc = plan_alloc,
        .plan_task = plan_task,
        .allocs_kept = sim->script->kept,
    });
}

void sim_jobs_end(struct sim *sim)
{
    if (sim->jobs.now != NULL)
        sim->jobs.plane->end(sim->jobs.now);
    sim->jobs.now = NULL;
    for (size_t i = 0; i < COUNT_OF(sim->jobs.states); i++)
        sim->jobs.states[i].open = false;
}

/* --- what users want --- */

static bool is_there(const struct sim *sim)
{
    return sim->up && !sim->dying && sim->restored && sim->jobs.now != NULL;
}

static void wish(struct sim *sim, size_t number, enum sim_job_wish wish)
{
    struct sim_job_state *job = &sim->jobs.states[number];

    job->wish = (uint8_t)wish;
    job->wished++;
    sim_later(sim, 0, SE_USER, (size_t)sim->allocs_count + number, 0);
}

/* What a user was told of one alloc or of a collection is not believed, and not asked for again. */
static void heard(void *ctx, int code, const struct err *err)
{
    (void)ctx;
    (void)code;
    (void)err;
}

static bool replace(struct sim *sim, int job, int64_t index)
{
    struct err err;

    for (int a = 0; a < sim->allocs_count && is_there(sim); a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->job != job || alloc->index != index || !sim_placed_lives(sim, alloc))
            continue;
        if (sim->jobs.plane->stop_alloc(sim->jobs.now, alloc->id.text, &err) < 0)
            return false;
        life_after_commit(sim->life, heard, NULL);
        return true;
    }
    return false;
}

static bool collect(struct sim *sim)
{
    if (!is_there(sim))
        return false;
    sim->jobs.plane->collect(sim->jobs.now);
    return true;
}

static bool tear(struct sim *sim, struct sim_job_state *job)
{
    if (job->stored == NULL)
        return false;
    sim_count_fault(sim, SIM_TORN_ZERO);
    job->damaged = true;
    return true;
}

bool sim_jobs_step(struct sim *sim, const struct sim_step *step)
{
    size_t number = (size_t)step->whom.member;
    struct sim_job_state *job = step->action == SIM_DO_GC ? NULL : &sim->jobs.states[number];

    switch ((int)step->action) {
    case SIM_DO_REGISTER:
        job->version = step->number;
        wish(sim, number, JOB_WISH_RUN);
        return true;
    case SIM_DO_COUNT:
        job->count = (uint32_t)step->number;
        if (job->wish == JOB_WISH_RUN)
            wish(sim, number, JOB_WISH_RUN);
        return true;
    case SIM_DO_TUNE:
        job->times = step->number == 0 ? 1 : (uint64_t)step->number;
        if (job->wish == JOB_WISH_RUN)
            wish(sim, number, JOB_WISH_RUN);
        return true;
    case SIM_DO_DEREGISTER:
        wish(sim, number, JOB_WISH_STOP);
        return true;
    case SIM_DO_PURGE:
        wish(sim, number, JOB_WISH_GONE);
        return true;
    case SIM_DO_REPLACE:
        return replace(sim, (int)number, step->number);
    case SIM_DO_GC:
        return collect(sim);
    case SIM_DO_TORN_JOB:
        return tear(sim, job);
    default:
        break;
    }
    unreachable("not about a job");
}

static void answered(void *ctx, int code, const struct err *err)
{
    struct sim_job_state *job = ctx;
    struct sim *sim = job->sim;
    const char *name = plan_of(sim, (size_t)(job - sim->jobs.states))->name;

    (void)err;
    if (sim->dying || !job->open)
        return;
    job->open = false;
    sim_say(sim, "answer about job %s: %s", name, code == 0 ? "done" : "refused");
    sim_mix(sim, (uint64_t)(code == 0));
    if (code < 0)
        return;
    job->acknowledged = job->asked;
    job->lost = false;
    sim_check_job_granted(sim, job);
}

static int ask(struct sim *sim, size_t number, struct err *err)
{
    const struct sim_plane *plane = sim->jobs.plane;
    const struct sim_job_state *job = &sim->jobs.states[number];
    const char *name = plan_of(sim, number)->name;

    if (job->wish != JOB_WISH_RUN)
        return plane->deregister(sim->jobs.now, name, job->wish == JOB_WISH_GONE, err);
    char *text = job_text(sim, number);
    int code = plane->register_job(sim->jobs.now, text, err);
    free(text);
    return code;
}

/* Now and then two users want the same at once. */
static bool asks_twice(const struct sim *sim, const struct sim_job_state *job)
{
    return sim->script->batching && (sim_chance(sim, LUCK_TWICE, job->wished, sim->turns) & 3) == 0;
}

/* Also what no job answers for any more. */
static bool has_removed_all(struct sim *sim)
{
    if (is_there(sim) && core_count(sim->core, MACHINE_ALLOC) == 0)
        return true;
    (void)collect(sim);
    return false;
}

bool sim_job_has_its_wish(struct sim *sim, size_t number)
{
    struct sim_job_state *job = &sim->jobs.states[number];
    struct err err = {0};

    if (job->wish == JOB_WISH_NONE)
        return true;
    if (job->acknowledged == job->wished && !job->lost)
        return !sim->draining || has_removed_all(sim);
    if (!is_there(sim) || job->open)
        return false;
    int code = ask(sim, number, &err);
    if (code == 0 && asks_twice(sim, job))
        code = ask(sim, number, &err);
    if (code == ERR_GONE) { /* there is no such job to be stopped */
        job->acknowledged = job->wished;
        job->lost = false;
        return !sim->draining || has_removed_all(sim);
    }
    if (code < 0) {
        sim_say(sim, "request about job %s: %s", plan_of(sim, number)->name, err.text);
        if (code != ERR_AGAIN)
            sim_violate(sim, 0, "job %s is refused: %s", plan_of(sim, number)->name, err.text);
        return false;
    }
    job->open = true;
    job->asked = job->wished;
    life_after_commit(sim->life, answered, job);
    return false;
}

void sim_jobs_wish_all_gone(struct sim *sim)
{
    for (size_t i = 0; i < sim->script->jobs_count; i++) {
        if (sim->jobs.states[i].wish != JOB_WISH_NONE)
            wish(sim, i, JOB_WISH_GONE);
    }
}
