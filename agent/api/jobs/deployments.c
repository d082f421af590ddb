/*
 * Deployments over HTTP: how far the newest versions of jobs have come, and what users want of them
 * (server/alone/rollout/steer.c).
 *
 * Of each job the newest few are known.  Follows nomad v2.0.5 command/agent/deployment_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

/* What Nomad says besides of DEPLOYMENT, one of JOB. */
static void add_rest(const struct alone_job *job, json_t *deployment)
{
    json_t *groups = json_object_get(deployment, "TaskGroups"), *group;
    const json_t *priority = json_object_get(job->job, "Priority");
    const char *name;

    json_object_foreach(groups, name, group)
    {
        char by[API_TIME_SIZE];

        api_time(by, json_integer_value(json_object_get(group, "RequireProgressBy")));
        json_t *rest = json_pack("{s:s}", "RequireProgressBy", by);
        if (json_array_size(json_object_get(group, "PlacedCanaries")) == 0)
            check(json_object_set_new(rest, "PlacedCanaries", json_null()) == 0);
        check(json_object_update_new(group, rest) == 0);
    }
    check(json_object_update_new(
              deployment,
              json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:I}", "Namespace", job->namespace, "JobID",
                        job->id, "JobModifyIndex", (json_int_t)job->job_modify_index,
                        "JobSpecModifyIndex", (json_int_t)job->job_modify_index, "JobCreateIndex",
                        (json_int_t)job->create_index, "IsMultiregion", 0, "EvalPriority",
                        json_is_integer(priority) ? json_integer_value(priority) : 50)) == 0);
}

json_t *api_deployments(const struct api *api, const struct alone_job *job)
{
    json_t *list = alone_deployments(api->parts->alone, job), *deployment;
    size_t i;

    json_array_foreach(list, i, deployment) add_rest(job, deployment);
    return list;
}

/* --- all of them, and one --- */

struct listing {
    struct api_request *request;
    json_t *list;
};

static bool list_deployments(void *ctx, const struct alone_job *job)
{
    struct listing *listing = ctx;
    json_t *list, *deployment;
    size_t i;

    if (alone_deployment_id(job)[0] == '\0' ||
        !api_namespace_matches(listing->request, job->namespace))
        return true;
    list = api_deployments(listing->request->api, job);
    json_array_foreach(list, i, deployment)
    {
        const char *id = json_string_value(json_object_get(deployment, "ID"));

        if (text_starts_with(id, listing->request->prefix))
            check(json_array_append(listing->list, deployment) == 0);
    }
    json_decref(list);
    return true;
}

void api_deployments_list(struct api_request *request)
{
    struct listing listing = {request, json_array()};

    alone_each(request->api->parts->alone, list_deployments, &listing);
    api_reply(request, listing.list);
}

struct search {
    const struct api *api;
    const char *id;
    const struct alone_job *job; /* of the one that was found */
    json_t *found;               /* a new reference */
};

static bool match_id(void *ctx, const struct alone_job *job)
{
    struct search *search = ctx;
    json_t *list, *deployment;
    size_t i;

    if (alone_deployment_id(job)[0] == '\0')
        return true;
    list = api_deployments(search->api, job);
    json_array_foreach(list, i, deployment)
    {
        if (!text_equal(json_string_value(json_object_get(deployment, "ID")), search->id))
            continue;
        search->job = job;
        search->found = json_incref(deployment);
    }
    json_decref(list);
    return search->found == NULL;
}

/* The deployment that the request names, a new reference, and its job; or NULL after refusing the
 * request. */
static json_t *find(struct api_request *request, const struct alone_job **ret_job)
{
    struct search search = {.api = request->api, .id = request->argument};

    alone_each(request->api->parts->alone, match_id, &search);
    if (search.found == NULL) {
        api_refuse(request, 404, "deployment not found");
    } else if (!api_must(request, search.job->namespace, request->route->need.any_of)) {
        json_decref(search.found);
        search.found = NULL;
    }
    *ret_job = search.job;
    return search.found;
}

void api_deployment_get(struct api_request *request)
{
    const struct alone_job *job;
    json_t *deployment = find(request, &job);

    if (deployment != NULL)
        api_reply(request, deployment);
}

struct placed_by {
    const struct alone_job *job;
    const char *id;
};

static bool keep_of_deployment(void *ctx, const char *id, const struct alloc *alloc)
{
    const struct placed_by *by = ctx;

    (void)id;
    return alone_placed_by(by->job, by->id, alloc);
}

void api_deployed_allocs(struct api_request *request)
{
    struct placed_by by = {.id = request->argument};
    json_t *deployment = find(request, &by.job);

    if (deployment == NULL)
        return;
    api_reply_allocs(request, &(struct api_selection){.namespace = by.job->namespace,
                                                      .job = by.job->id,
                                                      .parts = API_ALLOC_TASK_STATES,
                                                      .keep = keep_of_deployment,
                                                      .ctx = &by});
    json_decref(deployment);
}

/* --- what users want of one --- */

struct steered {
    char eval_id[UUID_TEXT_SIZE];
    int64_t reverted; /* below 0: it goes on by no other version */
};

static json_t *make_steered(struct api *api, void *ctx)
{
    const struct steered *steered = ctx;
    json_int_t index = (json_int_t)api_index(api);

    return json_pack("{s:s, s:I, s:I, s:o, s:I}", "EvalID", steered->eval_id, "EvalCreateIndex",
                     index, "DeploymentModifyIndex", index, "RevertedJobVersion",
                     steered->reverted < 0 ? json_null() : json_integer(steered->reverted), "Index",
                     index);
}

/* After CODE, which ERR explains. */
static void reply_steered(struct api_request *request, int code, const struct err *err,
                          const struct alone_evaluation *evaluation, int64_t reverted)
{
    struct steered *steered;

    if (code < 0) {
        api_refuse_err(request, err);
        return;
    }
    steered = calloc(1, sizeof(*steered));
    check(steered != NULL);
    (void)text_copy(steered->eval_id, sizeof(steered->eval_id), evaluation->id); /* a UUID */
    steered->reverted = reverted;
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_steered, steered));
}

/* The body of a request about the deployment that its path names, a new reference; or NULL after
 * refusing it. */
static json_t *body_of(struct api_request *request)
{
    json_t *body = api_body(request, false);
    const char *id = json_string_value(json_object_get(body, "DeploymentID"));

    if (body == NULL || (id != NULL && text_equal(id, request->argument)))
        return body;
    json_decref(body);
    api_refuse(request, 400, "%s",
               id == NULL || id[0] == '\0' ? "DeploymentID must be specified"
                                           : "Deployment ID does not match");
    return NULL;
}

void api_deployed_pause(struct api_request *request)
{
    struct alone_evaluation evaluation;
    json_t *body = body_of(request);
    struct err err;

    if (body == NULL)
        return;
    if (!api_field_is(body, "Pause", JSON_TRUE)) {
        api_refuse(request, 400, "Pause must be true or false");
    } else {
        int code = alone_pause(request->api->parts->alone, request->argument,
                               json_is_true(json_object_get(body, "Pause")), &evaluation, &err);
        reply_steered(request, code, &err, &evaluation, -1);
    }
    json_decref(body);
}

void api_deployed_promote(struct api_request *request)
{
    struct alone_evaluation evaluation;
    json_t *body = body_of(request);
    struct err err;

    if (body == NULL)
        return;
    const json_t *only = json_object_get(body, "Groups");
    bool all = json_is_true(json_object_get(body, "All"));
    if (!api_field_is(body, "All", JSON_TRUE) || !api_field_is(body, "Groups", JSON_ARRAY)) {
        api_refuse(request, 400, "All must be true or false, and Groups a list");
    } else if (!all && json_array_size(only) == 0) {
        api_refuse(request, 400, "no canaries to promote: say All, or the Groups");
    } else {
        int code = alone_promote(request->api->parts->alone, request->argument, all ? NULL : only,
                                 &evaluation, &err);
        reply_steered(request, code, &err, &evaluation, -1);
    }
    json_decref(body);
}

void api_deployed_health(struct api_request *request)
{
    struct alone_evaluation evaluation;
    json_t *body = body_of(request);
    struct err err;

    if (body == NULL)
        return;
    int code = alone_say_health(request->api->parts->alone, request->argument,
                                json_object_get(body, "HealthyAllocationIDs"),
                                json_object_get(body, "UnhealthyAllocationIDs"), &evaluation, &err);
    json_decref(body);
    reply_steered(request, code, &err, &evaluation, -1);
}

void api_deployed_fail(struct api_request *request)
{
    struct alone_evaluation evaluation;
    int64_t reverted;
    struct err err;
    int code = alone_fail_deployment(request->api->parts->alone, request->argument, &evaluation,
                                     &reverted, &err);

    reply_steered(request, code, &err, &evaluation, reverted);
}

/* Only what waits for other regions can be unblocked, and there is one. */
void api_deployed_unblock(struct api_request *request)
{
    const struct alone_job *job;
    json_t *deployment = find(request, &job);
    const char *status = json_string_value(json_object_get(deployment, "Status"));

    if (deployment == NULL)
        return;
    api_refuse(request, 400, "can't unblock %s deployment",
               text_equal(status, "running") || text_equal(status, "paused") ? status : "terminal");
    json_decref(deployment);
}

/* --- of one job --- */

static json_t *format_of_job(struct api_request *request)
{
    const struct alone_job *job =
        alone_find(request->api->parts->alone, request->namespace, request->argument);

    return job == NULL ? json_array() : api_deployments(request->api, job);
}

void api_job_deployment(struct api_request *request)
{
    json_t *list = format_of_job(request), *newest = json_incref(json_array_get(list, 0));

    json_decref(list);
    api_reply(request, newest == NULL ? json_null() : newest);
}

void api_job_deployments(struct api_request *request)
{
    api_reply(request, format_of_job(request));
}
