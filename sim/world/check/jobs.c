/*
 * What the stand-alone control plane promises: a job is stored with all its allocs or not at all
 * (I-14, I-15), nothing is placed twice, a stopped job has nothing that should run, what is over is
 * kept as far as configured, and in a healed world each job comes to what its users want.
 */
#include "sim/world/jobs.h"
#include "sim/world/check/check.h"
#include "sim/world/world.h"
#include "spec/job.h"

#include <jansson.h>
#include <string.h>

static bool is_kept(const struct sim *sim, const struct sim_alloc_state *alloc)
{
    const struct machine *record = sim_store_find(&sim->store, &alloc->id);

    return record != NULL && record->state == A_TERMINAL;
}

size_t sim_job_live(const struct sim *sim, int job)
{
    size_t live = 0;

    for (int a = 0; a < sim->allocs_count; a++)
        live += sim->allocs[a].job == job && sim_placed_lives(sim, &sim->allocs[a]);
    return live;
}

size_t sim_job_kept(const struct sim *sim, int job)
{
    size_t kept = 0;

    for (int a = 0; a < sim->allocs_count; a++)
        kept += sim->allocs[a].job == job && is_kept(sim, &sim->allocs[a]);
    return kept;
}

int64_t sim_job_version(const struct sim *sim, int job)
{
    const json_t *json = sim->jobs.states[job].json;

    return json == NULL ? -1 : json_integer_value(json_object_get(json, "Version"));
}

/* Records that cannot be read take promises with them. */
static bool is_damaged(const struct sim *sim, int job)
{
    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->job == job &&
            (alloc->damaged || (sim_store_has(&sim->store, &alloc->id) &&
                                sim_store_find(&sim->store, &alloc->id) == NULL)))
            return true;
    }
    return false;
}

/* --- places: a job, a group and an index --- */

struct placed {
    size_t live;
    bool ended;      /* one ended by itself */
    bool just_ended; /* by the newest commit */
};

static struct placed look(const struct sim *sim, int job, int group, unsigned index)
{
    struct placed placed = {0};

    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->job != job || alloc->group != group || alloc->index != index)
            continue;
        placed.live += sim_placed_lives(sim, alloc);
        placed.ended |= alloc->unasked;
        placed.just_ended |= alloc->ended && alloc->ended_turn == sim->store.head.turn;
    }
    return placed;
}

static bool has_group(const struct sim *sim, int job, int group)
{
    return (sim->script->jobs[job].groups >> group & 1u) != 0;
}

static unsigned wanted_count(const json_t *json, const char *group_name)
{
    const json_t *group;
    size_t g;

    json_array_foreach(json_object_get(json, "TaskGroups"), g, group)
    {
        if (text_equal(json_string_value(json_object_get(group, "Name")), group_name))
            return (unsigned)json_integer_value(json_object_get(group, "Count"));
    }
    return 0;
}

/* True if the place waits: the port that it is to have is of an alloc that the same commit places
 * and tells to end, of whom nobody inherits. */
static bool is_queued(const json_t *json, const char *group_name, unsigned index)
{
    const json_t *group, *place;
    size_t g, i;

    json_array_foreach(json_object_get(json, "TaskGroups"), g, group)
    {
        if (!text_equal(json_string_value(json_object_get(group, "Name")), group_name))
            continue;
        json_array_foreach(json_object_get(json, "cairnQueued"), i, place)
        {
            if ((size_t)json_integer_value(place) == g * JOB_COUNT_MAX + index)
                return true;
        }
    }
    return false;
}

/* --- a batch that has been committed --- */

static bool has_deployment(const json_t *json, const char *status)
{
    const json_t *deployment = json_object_get(json, "cairnDeployment");
    const char *is = json_string_value(json_object_get(deployment, "Status"));

    return is != NULL && text_equal(is, status);
}

/* True if the end of its deployment is what has stored it: nothing is placed then, and an alloc may
 * be over. */
static bool is_stored_by_an_end(const json_t *json)
{
    const json_t *deployment = json_object_get(json, "cairnDeployment");

    return json_integer_value(json_object_get(deployment, "ModifyIndex")) >
           json_integer_value(json_object_get(json, "ModifyIndex"));
}

/* A registration goes with all that it places, a stop with all that it stops. */
static void check_whole(struct sim *sim, int job, const json_t *json)
{
    bool stop = json_is_true(json_object_get(json, "Stop")), over = is_stored_by_an_end(json);
    const char *name = sim->script->jobs[job].name;

    for (int group = 0; group < sim->script->allocs_count; group++) {
        unsigned count = stop ? 0 : wanted_count(json, sim->script->allocs[group].name);
        bool batch = sim->script->allocs[group].batch;
        for (unsigned index = 0; index < SIM_COUNT_MAX && has_group(sim, job, group); index++) {
            struct placed placed = look(sim, job, group, index);
            bool there = placed.live == 1 || placed.just_ended ||
                         ((batch || over) && placed.ended) ||
                         is_queued(json, sim->script->allocs[group].name, index);
            if (index < count && !there)
                sim_violate(sim, 15, "job %s is stored without alloc %s[%u]", name,
                            sim->script->allocs[group].name, index);
            if (index >= count && placed.live > 0)
                sim_violate(sim, 15, "job %s is stored, and alloc %s[%u] is not told to end", name,
                            sim->script->allocs[group].name, index);
        }
    }
}

static void check_nothing_twice(struct sim *sim, int job)
{
    for (int group = 0; group < sim->script->allocs_count; group++) {
        for (unsigned index = 0; index < SIM_COUNT_MAX; index++) {
            if (look(sim, job, group, index).live > 1)
                sim_violate(sim, 14, "alloc %s[%u] of job %s is placed twice",
                            sim->script->allocs[group].name, index, sim->script->jobs[job].name);
        }
    }
}

/* An alloc that should run has a job that says so. */
static void check_owned(struct sim *sim, int job)
{
    const struct sim_job_state *state = &sim->jobs.states[job];

    if (state->stored == NULL && !state->lost && sim_job_live(sim, job) > 0)
        sim_violate(sim, 15, "allocs of job %s are to run, and it is not stored",
                    sim->script->jobs[job].name);
}

/* True if a process of ALLOC may listen: it was begun, and has not ended. */
static bool may_listen(const struct sim *sim, const struct sim_alloc_state *alloc)
{
    const struct machine *record =
        alloc->begun && !alloc->damaged ? sim_store_find(&sim->store, &alloc->id) : NULL;

    return record != NULL && alloc_of(record)->ended_unix_ns == 0;
}

static bool have_one_port(const struct sim_alloc_state *one, const struct sim_alloc_state *other)
{
    for (size_t i = 0; i < SIM_PORTS_MAX * SIM_PORTS_MAX; i++) {
        uint16_t port = one->ports[i / SIM_PORTS_MAX];

        if (port != 0 && port == other->ports[i % SIM_PORTS_MAX])
            return true;
    }
    return false;
}

/* A port goes from one alloc to another when the first has ended: who inherits it waits for that.
 */
static void check_ports(struct sim *sim, const struct journal_batch *batch)
{
    for (size_t i = 0; i < batch->events_count; i++) {
        const struct journal_event *event = &batch->events[i];

        if (event->id.kind != MACHINE_ALLOC || event->after != A_PREPARING ||
            event->before == A_PREPARING)
            continue;
        struct sim_whom whom = sim_find(sim, &event->id);
        if (whom.kind != MACHINE_ALLOC)
            continue;
        struct sim_alloc_state *one = sim_alloc_of(sim, &whom);
        one->begun = 1;
        for (int a = 0; a < sim->allocs_count && may_listen(sim, one); a++) {
            const struct sim_alloc_state *other = &sim->allocs[a];

            if (other != one && may_listen(sim, other) && have_one_port(one, other))
                sim_violate(sim, 14, "alloc %s is begun, and alloc %s, which lives, has its port",
                            one->id.text, other->id.text);
        }
    }
}

/* What SPEC says of the tasks of ALLOC that is taken in place is what they go by. */
static bool are_told(const struct sim *sim, const struct sim_alloc_state *alloc,
                     const struct alloc_spec *spec)
{
    for (size_t t = 0; t < spec->tasks_count; t++) {
        struct machine_id id = machine_id_join(MACHINE_TASK, alloc->id.text, spec->tasks[t].name);
        const struct machine *record = sim_store_find(&sim->store, &id);
        const struct task_define *define = record == NULL ? NULL : &task_of(record)->define;
        if (define != NULL && (define->shutdown_delay_ms != spec->tasks[t].shutdown_delay_ms ||
                               define->restart_attempts != spec->tasks[t].restart.attempts))
            return false;
    }
    return true;
}

/* Who goes on when a job is changed does so by its new version: its record, its tasks and its
 * specification say so with the job itself.  While it is rolled out, or when that has failed,
 * others go on by the version that they had. */
static void check_versions(struct sim *sim, int job, const json_t *json)
{
    uint64_t version = (uint64_t)json_integer_value(json_object_get(json, "Version"));
    bool partly = has_deployment(json, "running") || has_deployment(json, "paused") ||
                  has_deployment(json, "failed");
    struct alloc_spec *spec;
    struct err err;

    for (int a = 0; a < sim->allocs_count; a++) {
        const struct sim_alloc_state *alloc = &sim->allocs[a];
        if (alloc->job != job || !sim_placed_lives(sim, alloc))
            continue;
        const struct machine *record = sim_store_find(&sim->store, &alloc->id);
        if (jobspec_decode_alloc(alloc->spec, alloc->spec_length, &spec, &err) < 0) {
            sim_violate(sim, 15, "the specification of %s cannot be read: %s", alloc->id.text,
                        err.text);
            return;
        }
        uint64_t own = alloc_of(record)->assign.job_version;
        if ((partly ? own > version : own != version) || spec->job_version != own ||
            !are_told(sim, alloc, spec))
            sim_violate(sim, 15, "job %s is stored, and alloc %s goes on by another version",
                        sim->script->jobs[job].name, alloc->id.text);
        alloc_spec_free(spec);
    }
}

static bool stores_job(const struct journal_batch *batch, const char *name)
{
    for (size_t i = 0; i < batch->specs_count; i++) {
        if (text_starts_with(batch->specs[i].key, "job/default/") &&
            text_equal(batch->specs[i].key + strlen("job/default/"), name))
            return batch->specs[i].bytes != NULL;
    }
    return false;
}

void sim_check_jobs_committed(struct sim *sim, const struct journal_batch *batch)
{
    if (sim->script->jobs_count > 0)
        check_ports(sim, batch);
    for (int job = 0; job < sim->script->jobs_count; job++) {
        const struct sim_job_state *state = &sim->jobs.states[job];
        if (is_damaged(sim, job))
            continue;
        check_nothing_twice(sim, job);
        check_owned(sim, job);
        if (!stores_job(batch, sim->script->jobs[job].name) || state->lost)
            continue;
        check_whole(sim, job, state->json);
        check_versions(sim, job, state->json);
    }
}

/* --- what users are told --- */

void sim_check_job_granted(struct sim *sim, const struct sim_job_state *job)
{
    bool stop = json_is_true(json_object_get(job->json, "Stop"));
    const char *name = sim->script->jobs[job - sim->jobs.states].name;
    bool newest = job->asked == job->wished;

    if (newest && job->wish == JOB_WISH_RUN && (job->json == NULL || stop))
        sim_violate(sim, 14, "the registration of job %s was granted and is not in the journal",
                    name);
    if (newest && job->wish != JOB_WISH_RUN && job->json != NULL && !stop)
        sim_violate(sim, 14, "the stop of job %s was granted and is not in the journal", name);
}

/* --- a world at rest --- */

static const char *unsettled_run(const struct sim *sim, int job)
{
    const struct sim_job_state *state = &sim->jobs.states[job];

    for (int group = 0; group < sim->script->allocs_count; group++) {
        for (unsigned index = 0; index < SIM_COUNT_MAX && has_group(sim, job, group); index++) {
            struct placed placed = look(sim, job, group, index);
            if (index < state->count && placed.live != 1 && !placed.ended)
                return "has fewer allocs than it is to have";
            if (index >= state->count && placed.live > 0)
                return "has more allocs than it is to have";
        }
    }
    if (state->stored == NULL)
        return "is not stored";
    return has_deployment(state->json, "running") ? "is rolled out no further" : NULL;
}

static const char *unsettled_job(const struct sim *sim, int job)
{
    const struct sim_job_state *state = &sim->jobs.states[job];

    switch ((enum sim_job_wish)state->wish) {
    case JOB_WISH_NONE:
        return NULL;
    case JOB_WISH_RUN:
        return is_damaged(sim, job) ? NULL : unsettled_run(sim, job);
    case JOB_WISH_STOP:
        return sim_job_live(sim, job) > 0 ? "is stopped and has an alloc that runs" : NULL;
    case JOB_WISH_GONE:
        if (state->stored != NULL)
            return "was purged and is stored";
        /* With the job's record goes what was wished of it: its allocs end, and are kept. */
        bool is_known = !is_damaged(sim, job);
        if (sim_job_live(sim, job) > 0 || (is_known && sim_job_kept(sim, job) > 0))
            return "was purged and has allocs";
        return NULL;
    }
    unreachable("wish");
}

const char *sim_jobs_unsettled(struct sim *sim, const char **ret_name)
{
    size_t kept = 0;

    for (int job = 0; job < sim->script->jobs_count; job++) {
        const struct sim_job_state *state = &sim->jobs.states[job];
        *ret_name = sim->script->jobs[job].name;
        if (state->wish != JOB_WISH_NONE && (state->acknowledged != state->wished || state->lost))
            return "is not as its users were told";
        const char *what = unsettled_job(sim, job);
        if (what != NULL)
            return what;
        kept += sim_job_kept(sim, job);
    }
    return kept > sim->script->kept ? "ended, and more allocs are kept than configured" : NULL;
}
