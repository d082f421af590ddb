/*
 * Deployments over HTTP: how far the newest version of each job has come (server/alone/rollout.c).
 *
 * Of each job the newest one is known.  Follows nomad v2.0.5 command/agent/deployment_endpoint.go.
 */
#include "agent/api/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"

#include <string.h>

/* That of JOB in Nomad's words: a new reference, NULL: there is none. */
static json_t *format(struct api *api, const struct alone_job *job)
{
    json_t *to = alone_deployment(api->parts->alone, job), *groups, *group;
    const json_t *priority = json_object_get(job->job, "Priority");
    const char *name;

    if (to == NULL)
        return NULL;
    groups = json_object_get(to, "TaskGroups");
    json_object_foreach(groups, name, group)
    {
        json_t *rest = json_pack("{s:b, s:b, s:b, s:n, s:i, s:s}", "AutoRevert", 0, "AutoPromote",
                                 0, "Promoted", 0, "PlacedCanaries", "DesiredCanaries", 0,
                                 "RequireProgressBy", "0001-01-01T00:00:00Z");
        check(json_object_update_new(group, rest) == 0);
    }
    check(
        json_object_update_new(
            to, json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:I}", "Namespace", job->namespace,
                          "JobID", job->id, "JobModifyIndex", (json_int_t)job->job_modify_index,
                          "JobSpecModifyIndex", (json_int_t)job->job_modify_index, "JobCreateIndex",
                          (json_int_t)job->create_index, "IsMultiregion", 0, "EvalPriority",
                          json_is_integer(priority) ? json_integer_value(priority) : 50)) == 0);
    return to;
}

/* --- all of them, and one --- */

struct listing {
    struct api_request *request;
    json_t *list;
};

static bool list_deployment(void *ctx, const struct alone_job *job)
{
    struct listing *listing = ctx;
    json_t *deployment = NULL;

    if (text_starts_with(alone_deployment_id(job), listing->request->prefix) &&
        api_namespace_matches(listing->request, job->namespace))
        deployment = format(listing->request->api, job);
    if (deployment != NULL)
        check(json_array_append_new(listing->list, deployment) == 0);
    return true;
}

void api_deployments_list(struct api_request *request)
{
    struct listing listing = {request, json_array()};

    alone_each(request->api->parts->alone, list_deployment, &listing);
    api_reply(request, listing.list);
}

struct search {
    const char *id;
    const struct alone_job *found;
};

static bool match_id(void *ctx, const struct alone_job *job)
{
    struct search *search = ctx;

    if (text_equal(alone_deployment_id(job), search->id))
        search->found = job;
    return search->found == NULL;
}

/* The job of the deployment that the request names, or NULL after refusing the request. */
static const struct alone_job *find(struct api_request *request)
{
    struct search search = {.id = request->argument};

    alone_each(request->api->parts->alone, match_id, &search);
    if (search.found == NULL)
        api_refuse(request, 404, "deployment not found");
    return search.found;
}

void api_deployment_get(struct api_request *request)
{
    const struct alone_job *job = find(request);

    if (job != NULL)
        api_reply(request, format(request->api, job));
}

static bool keep_of_deployment(void *ctx, const char *id, const struct alloc *alloc)
{
    (void)id;
    return alone_in_deployment(ctx, alloc);
}

void api_deployed_allocs(struct api_request *request)
{
    const struct alone_job *job = find(request);

    if (job != NULL)
        api_reply_allocs(request, &(struct api_selection){.namespace = job->namespace,
                                                          .job = job->id,
                                                          .parts = API_ALLOC_TASK_STATES,
                                                          .keep = keep_of_deployment,
                                                          .ctx = (void *)(uintptr_t)job});
}

/* --- of one job --- */

static json_t *format_of_job(struct api_request *request)
{
    const struct alone_job *job =
        alone_find(request->api->parts->alone, request->namespace, request->argument);

    return job == NULL ? NULL : format(request->api, job);
}

void api_job_deployment(struct api_request *request)
{
    json_t *deployment = format_of_job(request);

    api_reply(request, deployment == NULL ? json_null() : deployment);
}

void api_job_deployments(struct api_request *request)
{
    json_t *deployment = format_of_job(request);

    api_reply(request, deployment == NULL ? json_array() : json_pack("[o]", deployment));
}
