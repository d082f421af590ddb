/*
 * Deployments as they are kept: with their job, in the same commit as what they begin or end.
 *
 * How far one has come is what the records say.  An alloc is its own that is watched and was made,
 * or taken on in place, since it began: create times of a job's allocs and of its deployments only
 * grow, whatever the clock does (place.c, hold.c).
 * Which of them are canaries, and whether these are promoted, it says itself.
 *
 * The newest one may be under way; a few before it are kept to be looked at.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPLOYMENTS_KEPT = 4, /* before the newest one */
    CANARIES_KEPT = 64,   /* of each of them: of more it is not kept who they were */
};

/* What the daemon alone needs to know of one: node time. */
static const char resumed[] = "cairnResumedMs"; /* or promoted */

/* --- reading --- */

static const json_t *deployment_of(const json_t *job)
{
    return json_object_get(job, "cairnDeployment");
}

static bool has_status(const json_t *deployment, const char *status)
{
    const char *is = json_string_value(json_object_get(deployment, "Status"));

    return is != NULL && text_equal(is, status);
}

bool deployment_is_paused(const json_t *job)
{
    return has_status(deployment_of(job), "paused");
}

bool deployment_is_active(const json_t *job)
{
    return has_status(deployment_of(job), "running") || deployment_is_paused(job);
}

uint64_t deployment_resumed_ms(const json_t *job)
{
    return job_number(deployment_of(job), resumed);
}

json_t *deployment_groups(const json_t *job)
{
    return json_object_get(deployment_of(job), "TaskGroups");
}

uint32_t deployment_canaries(const json_t *job, const char *group)
{
    const json_t *state = json_object_get(deployment_groups(job), group);

    return json_is_true(json_object_get(state, "Promoted"))
               ? 0
               : (uint32_t)job_number(state, "DesiredCanaries");
}

/* The newest deployment of JOB, over or not, has placed ALLOC beside the one in its place. */
static bool is_placed_beside(const json_t *job, const char *group, const char *alloc)
{
    const json_t *canaries =
        json_object_get(json_object_get(deployment_groups(job), group), "PlacedCanaries");
    const json_t *id;
    size_t i;

    json_array_foreach(canaries, i, id)
    {
        if (text_equal(json_string_value(id), alloc))
            return true;
    }
    return false;
}

bool deployment_tries(const json_t *job, const char *group, const char *alloc)
{
    return deployment_is_active(job) && deployment_canaries(job, group) > 0 &&
           is_placed_beside(job, group, alloc);
}

uint64_t rollout_parallel(const json_t *job, const json_t *group)
{
    enum spec_job_type type = job_type(job);

    return type == JOB_SERVICE || type == JOB_SYSTEM
               ? job_number(json_object_get(group, "Update"), "MaxParallel")
               : 0;
}

bool rollout_passes_over(const struct alone *alone, struct job *job, size_t g)
{
    return job_type(job->json) == JOB_SYSTEM &&
           (!alone_in_datacenter(alone, job->json) || alone_unmet(alone, job, g) != NULL);
}

const char *rollout_id(const struct job *job, const json_t *group)
{
    return deployment_is_active(job->json) && rollout_parallel(job->json, group) > 0
               ? alone_deployment_id(&job->public)
               : NULL;
}

int64_t rollout_began_unix_ns(const struct job *job)
{
    return deployment_is_active(job->json)
               ? (int64_t)job_number(deployment_of(job->json), "CreateTime")
               : 0;
}

const char *alone_deployment_id(const struct alone_job *job)
{
    const char *id = json_string_value(json_object_get(deployment_of(job->job), "ID"));

    return id == NULL ? "" : id;
}

bool alone_is_canary(const struct alone_job *job, const char *group, const char *alloc)
{
    const json_t *own = json_object_get(deployment_groups(job->job), group);

    return !json_is_true(json_object_get(own, "Promoted")) &&
           is_placed_beside(job->job, group, alloc);
}

bool alone_in_deployment(const struct alone_job *job, const struct alloc *alloc)
{
    const json_t *deployment = deployment_of(job->job);

    return deployment != NULL && alloc->assign.watched &&
           alloc_deployed_unix_ns(alloc) >= (int64_t)job_number(deployment, "CreateTime");
}

bool deployment_gave_up(const struct job *job, const struct alloc *alloc)
{
    return has_status(deployment_of(job->json), "failed") &&
           alone_in_deployment(&job->public, alloc);
}

bool alone_placed_by(const struct alone_job *job, const char *deployment_id,
                     const struct alloc *alloc)
{
    const json_t *older = json_object_get(job->job, "cairnDeployments"), *one;
    int64_t until_ns = (int64_t)job_number(deployment_of(job->job), "CreateTime");
    int64_t made_ns = alloc_deployed_unix_ns(alloc);
    size_t i;

    if (text_equal(alone_deployment_id(job), deployment_id))
        return alone_in_deployment(job, alloc);
    json_array_foreach(older, i, one)
    {
        int64_t since_ns = (int64_t)job_number(one, "CreateTime");

        if (text_equal(json_string_value(json_object_get(one, "ID")), deployment_id))
            return alloc->assign.watched && made_ns >= since_ns && made_ns < until_ns;
        until_ns = since_ns;
    }
    return false;
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

/* By when GROUP is to have another healthy alloc, of the wall clock: so long after SINCE. */
static void note_progress(json_t *group, int64_t since_unix_ns)
{
    json_int_t deadline_ns = (json_int_t)job_number(group, "ProgressDeadline");
    json_int_t by_ns = wall_add(since_unix_ns, deadline_ns);

    if (deadline_ns > 0 && by_ns > (json_int_t)job_number(group, "RequireProgressBy"))
        check(json_object_set_new(group, "RequireProgressBy", json_integer(by_ns)) == 0);
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
    note_progress(group, alloc->health == HEALTH_HEALTHY ? alloc->health_unix_ns
                                                         : alloc_deployed_unix_ns(alloc));
    if (alloc->health == HEALTH_HEALTHY)
        add_one(group, "HealthyAllocs");
    if (alloc->health == HEALTH_UNHEALTHY)
        add_one(group, "UnhealthyAllocs");
    return true;
}

/* Where a user has promoted it, or let it go on, that time begins anew. */
static void note_resumed(const json_t *job, json_t *groups)
{
    int64_t resumed_ns = (int64_t)job_number(deployment_of(job), "ModifyTime");
    const char *name;
    json_t *group;

    json_object_foreach(deployment_resumed_ms(job) == 0 ? NULL : groups, name, group)
    {
        if (job_number(group, "PlacedAllocs") > 0)
            note_progress(group, resumed_ns);
    }
}

json_t *alone_deployment(const struct alone *alone, const struct alone_job *job)
{
    json_t *copy = json_deep_copy(deployment_of(job->job));
    struct tally tally = {job, json_object_get(copy, "TaskGroups")};

    if (!deployment_is_active(job->job))
        return copy;
    core_each_of_job(life_core(alone->config.life), job->namespace, job->id, count_own, &tally);
    note_resumed(job->job, tally.groups);
    return copy;
}

json_t *alone_deployments(const struct alone *alone, const struct alone_job *job)
{
    const json_t *older = json_object_get(job->job, "cairnDeployments"), *one;
    json_t *all = json_array(), *newest = alone_deployment(alone, job);
    size_t i;

    if (newest != NULL)
        check(json_array_append_new(all, newest) == 0);
    json_array_foreach(older, i, one) check(json_array_append_new(all, json_deep_copy(one)) == 0);
    json_array_foreach(all, i, newest)(void) json_object_del(newest, resumed); /* may be missing */
    return all;
}

/* --- what a job comes to --- */

static bool count_live(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);

    (void)id;
    *(size_t *)ctx +=
        alloc->client_status == CLIENT_PENDING || alloc->client_status == CLIENT_RUNNING;
    return true;
}

const char *alone_job_status(const struct alone *alone, const struct alone_job *job)
{
    const struct job *own = job_find(alone, job->namespace, job->id);
    struct job_standing standing = {
        .type = job_type(job->job),
        .makes_jobs = jobspec_makes_jobs(job->job),
        .stop = job->stop,
        .deploys = deployment_is_active(job->job),
        .waits = own != NULL && (own->waiting > 0 || job_queue(own) != NULL),
    };

    core_each_of_job(life_core(alone->config.life), job->namespace, job->id, count_live,
                     &standing.live);
    return job_status_name(policy_job_status(&standing));
}

/* --- writing --- */

/* DEPLOYMENT (moved, its own copy) is the newest one of the job that JSON is. */
static void put(json_t *json, json_t *deployment)
{
    check(json_object_set_new(json, "cairnDeployment", deployment) == 0);
}

static void set_status(const struct alone *alone, json_t *deployment, const char *status,
                       const char *description)
{
    json_int_t index = (json_int_t)life_next_index(alone->config.life);

    check(json_object_set_new(deployment, "Status", json_string(status)) == 0);
    check(json_object_set_new(deployment, "StatusDescription", json_string(description)) == 0);
    check(json_object_set_new(deployment, "ModifyIndex", json_integer(index)) == 0);
    check(json_object_set_new(deployment, "ModifyTime",
                              json_integer(life_unix_ns(alone->config.life))) == 0);
}

/* What is said of one that runs whose groups are GROUPS. */
static const char *running_description(json_t *groups)
{
    bool tries = false, promotes = true;
    const char *name;
    json_t *group;

    json_object_foreach(groups, name, group)
    {
        bool waits = job_number(group, "DesiredCanaries") > 0 &&
                     !json_is_true(json_object_get(group, "Promoted"));

        tries = tries || waits;
        promotes = promotes && (!waits || json_is_true(json_object_get(group, "AutoPromote")));
    }
    return !tries     ? "Deployment is running"
           : promotes ? "Deployment is running pending automatic promotion"
                      : "Deployment is running but requires manual promotion";
}

json_t *rollout_ended(const struct alone *alone, const struct job *job, const char *status,
                      const char *description)
{
    json_t *deployment;

    if (!deployment_is_active(job->json))
        return json_incref((json_t *)(uintptr_t)deployment_of(job->json));
    deployment = alone_deployment(alone, &job->public);
    set_status(alone, deployment, status, description);
    return deployment;
}

/* Nobody asks for the canaries of one that is over, but to see who they were. */
static void drop_many_canaries(json_t *groups)
{
    const char *name;
    json_t *group;
    size_t count = 0;

    json_object_foreach(groups, name, group) count +=
        json_array_size(json_object_get(group, "PlacedCanaries"));
    json_object_foreach(count <= CANARIES_KEPT ? NULL : groups, name, group)
        check(json_object_set_new(group, "PlacedCanaries", json_array()) == 0);
}

/* The newest deployment of the job that JSON is has another one before it from now on. */
static void keep_older(json_t *json)
{
    const json_t *before = json_object_get(json, "cairnDeployments"), *one;
    json_t *newest = json_deep_copy(json_object_get(json, "cairnDeployment")), *list;
    size_t i;

    if (newest == NULL)
        return;
    drop_many_canaries(json_object_get(newest, "TaskGroups"));
    list = json_pack("[o]", newest);
    check(list != NULL);
    json_array_foreach(before, i, one)
    {
        if (json_array_size(list) < DEPLOYMENTS_KEPT)
            check(json_array_append(list, (json_t *)(uintptr_t)one) == 0);
    }
    check(json_object_set_new(json, "cairnDeployments", list) == 0);
}

void deployment_begin(struct alone *alone, struct change *change, json_t *groups,
                      int64_t since_unix_ns, const char *id)
{
    json_int_t index = (json_int_t)life_next_index(alone->config.life);
    json_t *json = json_copy(change->job->json);
    json_t *deployment = json_pack("{s:s, s:I, s:I, s:I, s:o}", "ID", id, "JobVersion",
                                   (json_int_t)change->job->public.version, "CreateIndex", index,
                                   "CreateTime", (json_int_t)since_unix_ns, "TaskGroups", groups);

    check(json != NULL);
    check(deployment != NULL);
    set_status(alone, deployment, "running", running_description(groups));
    keep_older(json);
    put(json, deployment);
    change_job(alone, change, json);
}

void deployment_end(struct alone *alone, struct change *change, const char *status,
                    const char *description)
{
    json_t *json = json_copy(change->job->json);

    check(json != NULL);
    put(json, rollout_ended(alone, change->job, status, description));
    if (text_equal(status, "successful"))
        check(json_object_set_new(json, "Stable", json_true()) == 0);
    change_job(alone, change, json);
}

/* What it waited for was no fault of its allocs: progress_deadline begins anew. */
static void note_now(const struct alone *alone, json_t *deployment)
{
    json_int_t now_ms = (json_int_t)life_now_ms(alone->config.life);

    check(json_object_set_new(deployment, resumed, json_integer(now_ms)) == 0);
}

void deployment_pause(struct alone *alone, struct change *change, bool pause)
{
    json_t *json = json_copy(change->job->json);
    json_t *deployment = json_deep_copy(deployment_of(json));

    check(json != NULL);
    check(deployment != NULL); /* it is active */
    if (!pause)
        note_now(alone, deployment);
    set_status(alone, deployment, pause ? "paused" : "running",
               pause ? "Deployment is paused"
                     : running_description(json_object_get(deployment, "TaskGroups")));
    put(json, deployment);
    change_job(alone, change, json);
}

static bool is_among(const json_t *names, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(names, i, one)
    {
        if (text_equal(json_string_value(one), name))
            return true;
    }
    return false;
}

void deployment_promote(struct alone *alone, struct change *change, const json_t *only)
{
    json_t *json = json_copy(change->job->json);
    json_t *deployment = json_deep_copy(deployment_of(json)), *group;
    const char *name;

    check(json != NULL);
    check(deployment != NULL); /* it is active */
    json_object_foreach(json_object_get(deployment, "TaskGroups"), name, group)
    {
        if (job_number(group, "DesiredCanaries") > 0 && (only == NULL || is_among(only, name)))
            check(json_object_set_new(group, "Promoted", json_true()) == 0);
    }
    note_now(alone, deployment);
    if (!deployment_is_paused(json))
        set_status(alone, deployment, "running",
                   running_description(json_object_get(deployment, "TaskGroups")));
    put(json, deployment);
    change_job(alone, change, json);
}

void deployment_note_canaries(struct alone *alone, struct change *change, json_t *placed)
{
    json_t *json, *deployment, *ids;
    const char *name;

    if (json_object_size(placed) == 0)
        return;
    json = json_copy(change->job->json);
    deployment = json_deep_copy(deployment_of(json));
    check(json != NULL);
    check(deployment != NULL); /* it is active */
    json_object_foreach(placed, name, ids)
    {
        json_t *group = json_object_get(json_object_get(deployment, "TaskGroups"), name);

        check(json_array_extend(json_object_get(group, "PlacedCanaries"), ids) == 0);
    }
    put(json, deployment);
    change_job(alone, change, json);
}
