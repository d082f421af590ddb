/*
 * What users ask of a deployment: to pause and to go on, to fail, to promote its canaries; and what
 * they say of the health of its allocs.
 *
 * Each is one proposal, as in register.c; what follows from it is seen by the look behind its
 * commit (rollout.c).  Follows nomad v2.0.5 nomad/deployment_endpoint.go.
 */
#include "server/alone/part.h"

#include <string.h>

/* The job whose newest deployment is called ID, or NULL. */
static struct job *find(const struct alone *alone, const char *id)
{
    for (struct job *job = alone->jobs; job != NULL; job = job->hh.next) {
        if (text_equal(alone_deployment_id(&job->public), id))
            return job;
    }
    return NULL;
}

const struct alone_job *alone_job_of_deployment(const struct alone *alone, const char *id)
{
    const struct job *job = find(alone, id);

    return job == NULL ? NULL : &job->public;
}

static bool is_named(const json_t *names, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(names, i, one)
    {
        if (text_equal(json_string_value(one), name))
            return true;
    }
    return names == NULL;
}

static uint64_t healthy_ones(const struct alone *alone, const json_t *canaries)
{
    const json_t *id;
    uint64_t healthy = 0;
    size_t i;

    json_array_foreach(canaries, i, id)
    {
        const struct alloc *alloc =
            core_alloc(life_core(alone->config.life), json_string_value(id));
        healthy += alloc != NULL && alloc->health == HEALTH_HEALTHY && !alloc->stop_wanted;
    }
    return healthy;
}

/* Of the groups that ONLY names (NULL: of all), those that have canaries. */
static int check_promotion(const struct alone *alone, const struct job *job, const json_t *only,
                           struct err *err)
{
    json_t *groups = deployment_groups(job->json), *group;
    const char *name;
    bool any = false;

    json_object_foreach(groups, name, group)
    {
        uint64_t wanted = job_number(group, "DesiredCanaries");
        uint64_t healthy = healthy_ones(alone, json_object_get(group, "PlacedCanaries"));

        if (wanted == 0 || !is_named(only, name))
            continue;
        any = true;
        if (healthy < wanted)
            return err_set(err, ERR_INVALID, "Task group \"%s\" has %llu/%llu healthy allocations",
                           name, (unsigned long long)healthy, (unsigned long long)wanted);
    }
    return any ? 0 : err_set(err, ERR_INVALID, "no canaries to promote");
}

/* The active deployment ID, to be told to VERB; RET_JOB is its job. */
static int begin(const struct alone *alone, const char *id, const char *verb, struct job **ret_job,
                 struct err *err)
{
    *ret_job = find(alone, id);
    if (*ret_job == NULL)
        return err_set(err, ERR_GONE, "deployment not found");
    if (!deployment_is_active((*ret_job)->json))
        return err_set(err, ERR_INVALID, "can't %s terminal deployment", verb);
    return life_check_turn(alone->config.life, 0, err);
}

static struct alone_evaluation evaluation_of(const struct alone *alone, const struct job *job)
{
    struct alone_evaluation evaluation = evaluation_begin(alone, job, "deployment-watcher");

    (void)text_copy(evaluation.deployment_id, sizeof(evaluation.deployment_id),
                    alone_deployment_id(&job->public)); /* a UUID */
    return evaluation;
}

int alone_pause(struct alone *alone, const char *deployment_id, bool pause,
                struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job;
    int code = begin(alone, deployment_id, pause ? "pause" : "resume", &job, err);

    if (code < 0)
        return code;
    *ret_evaluation = evaluation_of(alone, job);
    if (pause == deployment_is_paused(job->json))
        return 0;
    struct change change = change_begin(alone, job);
    deployment_pause(alone, &change, pause);
    (void)change_end(alone, &change, 0); /* what 0 stays */
    evaluation_keep(alone, ret_evaluation);
    return 0;
}

int alone_promote(struct alone *alone, const char *deployment_id, const json_t *only,
                  struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job;
    int code = begin(alone, deployment_id, "promote", &job, err);

    if (code == 0)
        code = check_promotion(alone, job, only, err);
    if (code < 0)
        return code;
    *ret_evaluation = evaluation_of(alone, job);
    struct change change = change_begin(alone, job);
    deployment_promote(alone, &change, only);
    (void)change_end(alone, &change, 0); /* what 0 stays */
    evaluation_keep(alone, ret_evaluation);
    return 0;
}

/* Each of IDS is one of those that the deployment of JOB has placed. */
static int check_own(const struct alone *alone, const struct job *job, const json_t *ids,
                     struct err *err)
{
    const json_t *id;
    size_t i;

    json_array_foreach(ids, i, id)
    {
        const char *text = json_string_value(id);
        const struct alloc *alloc = text == NULL || !uuid_is_valid(text)
                                        ? NULL
                                        : core_alloc(life_core(alone->config.life), text);

        if (alloc == NULL)
            return err_set(err, ERR_INVALID, "unknown alloc \"%.40s\"", text == NULL ? "" : text);
        if (!alone_in_deployment(&job->public, alloc))
            return err_set(err, ERR_INVALID, "alloc \"%s\" is not part of deployment \"%s\"", text,
                           alone_deployment_id(&job->public));
    }
    return 0;
}

static void say_health(struct alone *alone, const json_t *ids, enum alloc_event_kind event)
{
    const json_t *one;
    size_t i;

    json_array_foreach(ids, i, one)
    {
        struct machine_id id = machine_id_make(MACHINE_ALLOC, json_string_value(one));

        core_tell(life_core(alone->config.life), &id, (uint8_t)event, NULL);
    }
}

int alone_say_health(struct alone *alone, const char *deployment_id, const json_t *healthy,
                     const json_t *unhealthy, struct alone_evaluation *ret_evaluation,
                     struct err *err)
{
    size_t count = json_array_size(healthy) + json_array_size(unhealthy);
    struct job *job;

    if (count == 0)
        return err_set(err, ERR_INVALID,
                       "must specify at least one healthy/unhealthy allocation ID");
    int code = begin(alone, deployment_id, "set health of allocations for a", &job, err);
    if (code == 0)
        code = check_own(alone, job, healthy, err);
    if (code == 0)
        code = check_own(alone, job, unhealthy, err);
    if (code == 0)
        code = life_check_turn(alone->config.life, count, err);
    if (code < 0)
        return code;
    *ret_evaluation = evaluation_of(alone, job);
    say_health(alone, healthy, AE_HEALTHY);
    say_health(alone, unhealthy, AE_UNHEALTHY);
    evaluation_keep(alone, ret_evaluation);
    return 0;
}

static bool wants_revert(const struct job *job)
{
    json_t *groups = deployment_groups(job->json), *group;
    const char *name;
    bool wants = false;

    json_object_foreach(groups, name, group) wants =
        wants || json_is_true(json_object_get(group, "AutoRevert"));
    return wants;
}

int alone_fail_deployment(struct alone *alone, const char *deployment_id,
                          struct alone_evaluation *ret_evaluation, int64_t *ret_reverted,
                          struct err *err)
{
    struct job *job;
    int code = begin(alone, deployment_id, "fail", &job, err);

    *ret_reverted = -1;
    if (code < 0)
        return code;
    struct gathering gathering = {.alone = alone, .job = job};
    *ret_evaluation = evaluation_of(alone, job);
    gathering_fill(&gathering);
    code = rollout_fail(alone, &gathering, "Deployment marked as failed", wants_revert(job),
                        ret_evaluation, ret_reverted, err);
    gathering_free(&gathering);
    if (code == 0 && *ret_reverted < 0)
        evaluation_keep(alone, ret_evaluation);
    return code;
}
