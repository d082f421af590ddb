/*
 * Rolling updates: a newer version of a service takes the place of the older one so many allocs at
 * a time as max_parallel of their group says, and goes on when those are healthy.
 *
 * A deployment is kept with its job, in the same commit as what it begins or ends; how far it has
 * come is what the records say.  An alloc is its own that is watched and was made since it began:
 * create times of a job's allocs only grow, whatever the clock does (place.c).  One that goes on
 * by the newer version, in place, is as good as it was, and is not waited for.
 *
 * One that fails ends there: what it has not replaced yet goes on by the older version.
 */
#include "server/alone/part.h"

#include <stdlib.h>
#include <string.h>

static const char running[] = "running";

/* --- as it is kept --- */

static const json_t *deployment_of(const json_t *job)
{
    return json_object_get(job, "cairnDeployment");
}

static bool is_running(const json_t *job)
{
    const char *status = json_string_value(json_object_get(deployment_of(job), "Status"));

    return status != NULL && text_equal(status, running);
}

/* How many allocs of GROUP of JOB may be replaced before those are healthy, 0: all at once. */
static uint64_t parallel_of(const json_t *job, const json_t *group)
{
    return job_type(job) == JOB_SERVICE
               ? job_number(json_object_get(group, "Update"), "MaxParallel")
               : 0;
}

const char *rollout_id(const struct job *job, const json_t *group)
{
    return is_running(job->json) && parallel_of(job->json, group) > 0
               ? json_string_value(json_object_get(deployment_of(job->json), "ID"))
               : NULL;
}

int64_t rollout_began_unix_ns(const struct job *job)
{
    return is_running(job->json) ? (int64_t)job_number(deployment_of(job->json), "CreateTime") : 0;
}

const char *alone_deployment_id(const struct alone_job *job)
{
    const char *id = json_string_value(json_object_get(deployment_of(job->job), "ID"));

    return id == NULL ? "" : id;
}

bool alone_in_deployment(const struct alone_job *job, const struct alloc *alloc)
{
    const json_t *deployment = deployment_of(job->job);

    return deployment != NULL && alloc->assign.watched &&
           alloc->assign.create_unix_ns >= (int64_t)job_number(deployment, "CreateTime");
}

/* --- what has come of it --- */

struct tally {
    const struct alone_job *job;
    json_t *groups; /* of the deployment; those of its own are counted there */
};

static void add_one(json_t *group, const char *name)
{
    check(json_object_set_new(group, name, json_integer((json_int_t)job_number(group, name) + 1)) ==
          0);
}

static bool count_own(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct tally *tally = ctx;
    const struct alloc *alloc = alloc_of(record);
    json_t *group = json_object_get(tally->groups, alloc->assign.group);

    (void)id;
    if (group == NULL || !alone_in_deployment(tally->job, alloc))
        return true;
    add_one(group, "PlacedAllocs");
    if (alloc->health == HEALTH_HEALTHY)
        add_one(group, "HealthyAllocs");
    if (alloc->health == HEALTH_UNHEALTHY)
        add_one(group, "UnhealthyAllocs");
    return true;
}

json_t *alone_deployment(const struct alone *alone, const struct alone_job *job)
{
    json_t *copy = json_deep_copy(deployment_of(job->job));
    struct tally tally = {job, json_object_get(copy, "TaskGroups")};

    if (is_running(job->job))
        core_each_of_job(life_core(alone->config.life), job->namespace, job->id, count_own, &tally);
    return copy;
}

/* --- its begin and its end --- */

static void set_status(const struct alone *alone, json_t *deployment, const char *status,
                       const char *description)
{
    json_int_t index = (json_int_t)core_figures(life_core(alone->config.life)).sequence + 1;

    check(json_object_set_new(deployment, "Status", json_string(status)) == 0);
    check(json_object_set_new(deployment, "StatusDescription", json_string(description)) == 0);
    check(json_object_set_new(deployment, "ModifyIndex", json_integer(index)) == 0);
    check(json_object_set_new(deployment, "ModifyTime",
                              json_integer(life_unix_ns(alone->config.life))) == 0);
}

json_t *rollout_ended(const struct alone *alone, const struct job *job, const char *status,
                      const char *description)
{
    json_t *deployment;

    if (!is_running(job->json))
        return json_incref((json_t *)(uintptr_t)deployment_of(job->json));
    deployment = alone_deployment(alone, &job->public);
    set_status(alone, deployment, status, description);
    return deployment;
}

/* Of PLACES, which hold what is wanted: their groups that are rolled out. */
static json_t *begin_groups(const struct gathering *gathering, const struct places *places)
{
    const json_t *job = gathering->job->json, *list = json_object_get(job, "TaskGroups");
    json_t *groups = json_object();
    bool any = false;

    for (size_t g = 0; g < places->count; g++) {
        const json_t *group = json_array_get(list, g);
        const json_t *update = json_object_get(group, "Update");

        if (parallel_of(job, group) == 0)
            continue;
        for (uint32_t i = 0; i < places->groups[g].count; i++)
            any = any || places->groups[g].place[i];
        check(json_object_set_new(groups, places->groups[g].name,
                                  json_pack("{s:I, s:I, s:i, s:i, s:i}", "DesiredTotal",
                                            (json_int_t)places->groups[g].count, "ProgressDeadline",
                                            (json_int_t)job_number(update, "ProgressDeadline"),
                                            "PlacedAllocs", 0, "HealthyAllocs", 0,
                                            "UnhealthyAllocs", 0)) == 0);
    }
    if (any)
        return groups;
    json_decref(groups);
    return NULL;
}

void rollout_begin(struct alone *alone, struct change *change, const struct gathering *gathering,
                   const struct places *places, struct alone_evaluation *evaluation)
{
    json_int_t index = (json_int_t)core_figures(life_core(alone->config.life)).sequence + 1;
    json_t *groups = begin_groups(gathering, places), *deployment, *json;
    int64_t now_unix_ns = life_unix_ns(alone->config.life);

    if (groups == NULL)
        return;
    for (size_t a = 0; a < gathering->count; a++) {
        if (gathering->created_unix_ns[a] >= now_unix_ns)
            now_unix_ns = wall_add(gathering->created_unix_ns[a], 1);
    }
    alone->config.new_id(alone->config.ctx, evaluation->deployment_id);
    deployment = json_pack("{s:s, s:I, s:I, s:I, s:o}", "ID", evaluation->deployment_id,
                           "JobVersion", (json_int_t)change->job->public.version, "CreateIndex",
                           index, "CreateTime", (json_int_t)now_unix_ns, "TaskGroups", groups);
    json = json_copy(change->job->json);
    check(deployment != NULL);
    check(json != NULL);
    set_status(alone, deployment, running, "Deployment is running");
    check(json_object_set_new(json, "cairnDeployment", deployment) == 0);
    change_job(alone, change, json);
}

/* --- how far it may go --- */

void rollout_hold(struct gathering *gathering, struct places *places)
{
    const json_t *job = gathering->job->json, *list = json_object_get(job, "TaskGroups");

    for (size_t g = 0; g < places->count; g++) {
        struct reconcile_group *group = &places->groups[g];
        uint64_t parallel = parallel_of(job, json_array_get(list, g)), taken = 0;

        for (uint32_t i = 0; i < group->count && parallel > 0; i++) {
            int last = places->last[g][i];
            taken += group->place[i] && (last < 0 || !gathering->allocs[last].stop);
        }
        for (uint32_t i = 0; i < group->count && parallel > 0; i++) {
            int last = places->last[g][i];
            if (!group->place[i] || last < 0 || !gathering->allocs[last].stop || taken++ < parallel)
                continue;
            gathering->allocs[last].stop = false;
            group->place[i] = false;
        }
    }
}

/* What there is in one place. */
enum place_state {
    PLACE_OLD,    /* to be replaced */
    PLACE_BEGUN,  /* not healthy yet, or it waits for an alloc */
    PLACE_FAILED, /* unhealthy, and no other is made in time */
    PLACE_GOOD,
};

/* Where all of them have come to. */
struct progress {
    bool done, failed;
    uint64_t deadline_ms; /* node time by which another one is to be healthy, 0: not known yet */
};

static enum place_state state_of_own(const struct alone *alone, const struct alloc *alloc,
                                     const char *id, uint64_t deadline_ms)
{
    const struct kept *kept = kept_find(alone, id);
    bool over = alloc->machine.state == A_TERMINAL;
    /* What ends is decided about when it has (wait.c). */
    bool ends = !over && policy_group_health(alloc) == GROUP_BROKEN;
    bool again = ends || (kept != NULL && kept->again);

    if (alloc->stop_wanted)
        return PLACE_BEGUN; /* another one waits for room */
    if (alloc->health == HEALTH_HEALTHY)
        return over && again ? PLACE_BEGUN : PLACE_GOOD;
    if (alloc->health == HEALTH_UNKNOWN && !over)
        return PLACE_BEGUN;
    return deadline_ms > 0 && again ? PLACE_BEGUN : PLACE_FAILED;
}

/* Of the place that has the alloc LAST of GATHERING, below 0: none, though one was there or is to
 * be placed. */
static enum place_state state_of(const struct gathering *gathering, int last, uint64_t deadline_ms)
{
    const struct alone *alone = gathering->alone;
    const struct alone_job *job = &gathering->job->public;
    const char *id = last < 0 ? NULL : gathering->ids[last].text;
    const struct alloc *alloc = id == NULL ? NULL : core_alloc(life_core(alone->config.life), id);

    if (alloc == NULL)
        return PLACE_OLD;
    if (alone_in_deployment(job, alloc))
        return state_of_own(alone, alloc, id, deadline_ms);
    return alloc->ended_unix_ns != 0 || alloc->assign.job_version < job->version ? PLACE_OLD
                                                                                 : PLACE_GOOD;
}

/* The deadline of a group after which nothing has become healthy since ALLOC did, or was begun. */
static void note_deadline(const struct alloc *alloc, uint64_t deadline_ms, uint64_t *last_ms,
                          bool *waits)
{
    uint64_t begun_ms = alloc->unhealthy_at_ms - alloc->assign.healthy_deadline_ms;
    uint64_t at_ms = alloc->health == HEALTH_HEALTHY ? alloc->healthy_at_ms : begun_ms;

    *waits = *waits || (alloc->unhealthy_at_ms == 0 && alloc->health == HEALTH_UNKNOWN);
    if (alloc->unhealthy_at_ms != 0 && at_ms + deadline_ms > *last_ms)
        *last_ms = at_ms + deadline_ms;
}

/* When the group that is number G is too late, 0: never, or an alloc of it is not begun yet. */
static uint64_t deadline_of(const struct gathering *gathering, const struct places *places,
                            size_t g, uint64_t deadline_ms)
{
    const struct core *core = life_core(gathering->alone->config.life);
    uint64_t last_ms = 0;
    bool waits = false;

    for (uint32_t i = 0; i < places->groups[g].count && deadline_ms > 0; i++) {
        int last = places->last[g][i];
        const struct alloc *alloc = last < 0 ? NULL : core_alloc(core, gathering->ids[last].text);

        if (alloc != NULL && alone_in_deployment(&gathering->job->public, alloc))
            note_deadline(alloc, deadline_ms, &last_ms, &waits);
    }
    return waits ? 0 : last_ms;
}

/* Looks at each place of the group that is number G, and marks what is to be replaced now. */
static bool roll_group(struct gathering *gathering, struct places *places, size_t g,
                       struct progress *progress)
{
    const json_t *job = gathering->job->json;
    const json_t *json = json_array_get(json_object_get(job, "TaskGroups"), g);
    const json_t *update = json_object_get(json, "Update");
    uint64_t deadline_ms = job_number(update, "ProgressDeadline") / 1000000;
    uint64_t parallel = parallel_of(job, json), taken = 0;
    struct reconcile_group *group = &places->groups[g];
    bool done = true, any = false;

    for (uint32_t i = 0; i < group->count; i++) {
        enum place_state state = state_of(gathering, places->last[g][i], deadline_ms);

        done = done && state == PLACE_GOOD && !group->place[i];
        progress->failed |= state == PLACE_FAILED;
        taken += state == PLACE_BEGUN || state == PLACE_FAILED || group->place[i];
    }
    for (uint32_t i = 0; i < group->count && taken < parallel; i++) {
        int last = places->last[g][i];

        if (group->place[i] || state_of(gathering, last, deadline_ms) != PLACE_OLD)
            continue;
        if (last >= 0)
            gathering->allocs[last].stop = gathering->allocs[last].live;
        group->place[i] = any = true;
        taken++;
    }
    progress->done &= done;
    uint64_t late_ms = done ? 0 : deadline_of(gathering, places, g, deadline_ms);
    if (late_ms != 0 && (progress->deadline_ms == 0 || late_ms < progress->deadline_ms))
        progress->deadline_ms = late_ms;
    return any;
}

static void end(struct alone *alone, struct job *job, const char *status, const char *description)
{
    struct change change = change_begin(alone, job);
    json_t *json = json_copy(job->json);

    check(json != NULL);
    check(json_object_set_new(json, "cairnDeployment",
                              rollout_ended(alone, job, status, description)) == 0);
    change_job(alone, &change, json);
    (void)change_end(alone, &change, 0); /* what 0 stays */
    say(&alone->config.say, SAY_INFO, "server", "deployment %s job=%s version=%llu", status,
        text_value(job->id), (unsigned long long)job->public.version);
}

enum rollout rollout_look(struct alone *alone, struct gathering *gathering, struct places *places)
{
    struct job *job = gathering->job;
    const json_t *list = json_object_get(job->json, "TaskGroups");
    struct progress progress = {.done = true};
    bool any = false;

    if (!is_running(job->json))
        return ROLLOUT_NOTHING;
    for (size_t g = 0; g < places->count; g++) {
        if (parallel_of(job->json, json_array_get(list, g)) > 0)
            any = roll_group(gathering, places, g, &progress) || any;
    }
    bool late =
        progress.deadline_ms != 0 && progress.deadline_ms <= life_now_ms(alone->config.life);
    if (progress.done || progress.failed || late) {
        if (alone_check_turn(alone, 0, NULL) < 0) {
            alone_look_later(alone, job, life_now_ms(alone->config.life) + LOOK_AGAIN_MS);
            return ROLLOUT_ENDED;
        }
        end(alone, job, progress.done ? "successful" : "failed",
            progress.done     ? "Deployment completed successfully"
            : progress.failed ? "Failed due to unhealthy allocations"
                              : "Failed due to progress deadline");
        return ROLLOUT_ENDED;
    }
    if (progress.deadline_ms != 0)
        alone_look_later(alone, job, progress.deadline_ms);
    return any ? ROLLOUT_NEXT : ROLLOUT_NOTHING;
}

void alone_note_changed(void *ctx, const char *id, const struct alloc *alloc)
{
    struct alone *alone = ctx;
    struct job *job = alloc->assign.watched
                          ? job_find(alone, alloc->assign.namespace, alloc->assign.job_id)
                          : NULL;

    (void)id;
    if (job != NULL && is_running(job->json))
        alone_note_look(alone, job);
}
