/*
 * Evaluations (what the control plane decided when), searches, and what this node has none of.
 *
 * An evaluation is decided at once, and complete when it is seen, but for those that wait: for
 * room ("blocked"), or for the time to make another alloc ("pending").
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"
#include "server/storage/storage.h"
#include "spec/job.h"

#include <string.h>

enum { SEARCH_MATCHES_MAX = 20, SEARCH_CONTEXTS = 8, RELATED_MAX = 20 };

json_t *api_evaluation(struct api *api, const struct alone_evaluation *evaluation)
{
    const struct alone_job *job =
        alone_find(api->parts->alone, evaluation->namespace, evaluation->job_id);
    const json_t *priority = job != NULL ? json_object_get(job->job, "Priority") : NULL;

    return api_format_evaluation(evaluation,
                                 json_is_integer(priority) ? json_integer_value(priority) : 50,
                                 alone_known(api->parts->alone));
}

struct listing {
    struct api_request *request;
    struct writer to;
    const char *job, *status; /* NULL: all */
};

static bool list_evaluation(void *ctx, const struct alone_evaluation *evaluation)
{
    struct listing *listing = ctx;

    if (text_starts_with(evaluation->id, listing->request->prefix) &&
        api_namespace_matches(listing->request, evaluation->namespace) &&
        (listing->job == NULL || text_equal(listing->job, evaluation->job_id)) &&
        (listing->status == NULL || text_equal(listing->status, evaluation->status)))
        put_json_new(&listing->to, NULL, api_evaluation(listing->request->api, evaluation));
    return true;
}

static void reply_list(struct api_request *request, const char *job, const char *status)
{
    struct listing listing = {
        .request = request, .to = api_writer(request), .job = job, .status = status};

    put_array(&listing.to, NULL);
    alone_each_evaluation(request->api->parts->alone, list_evaluation, &listing);
    put_end(&listing.to);
    api_reply_written(request, &listing.to);
}

void api_evals_list(struct api_request *request)
{
    reply_list(request, api_query_text(request, "job"), api_query_text(request, "status"));
}

void api_job_evaluations(struct api_request *request)
{
    reply_list(request, request->argument, NULL);
}

static const struct alone_evaluation *find(struct api_request *request)
{
    const struct alone_evaluation *evaluation =
        uuid_is_valid(request->argument)
            ? alone_evaluation(request->api->parts->alone, request->argument)
            : NULL;

    if (evaluation == NULL)
        api_refuse(request, 404, "eval not found");
    return evaluation;
}

/* What waits behind EVALUATION, and behind that; in short, as lists have it. */
static json_t *related(struct api *api, const struct alone_evaluation *evaluation)
{
    static const char *const not_in_short[] = {"FailedTGAllocs", "QueuedAllocations",
                                               "JobModifyIndex", "Wait"};
    json_t *list = json_array();

    while (evaluation->blocked_id[0] != '\0' && json_array_size(list) < RELATED_MAX) {
        evaluation = alone_evaluation(api->parts->alone, evaluation->blocked_id);
        if (evaluation == NULL)
            break; /* it is so old that it was forgotten */
        json_t *entry = api_evaluation(api, evaluation);
        for (size_t i = 0; i < COUNT_OF(not_in_short); i++)
            (void)json_object_del(entry, not_in_short[i]); /* it was just made with it */
        check(json_array_append_new(list, entry) == 0);
    }
    return list;
}

void api_eval_get(struct api_request *request)
{
    const struct alone_evaluation *evaluation = find(request);
    bool wants_related = false;

    if (evaluation == NULL || !api_query_bool(request, "related", &wants_related))
        return;
    json_t *to = api_evaluation(request->api, evaluation);
    if (wants_related)
        api_set(to, "RelatedEvals", related(request->api, evaluation));
    api_reply(request, to);
}

static bool keep_of_evaluation(void *ctx, const char *id, const struct alloc *alloc)
{
    const struct api_request *request = ctx;
    const struct alloc_stub *stub = specs_stub(request->api->parts->specs, id);
    (void)alloc;

    return stub != NULL && text_equal(stub->eval_id, request->argument);
}

void api_eval_allocations(struct api_request *request)
{
    const struct alone_evaluation *evaluation = find(request);

    if (evaluation != NULL)
        api_reply_allocs(request, &(struct api_selection){.namespace = evaluation->namespace,
                                                          .job = evaluation->job_id,
                                                          .parts = API_ALLOC_TASK_STATES,
                                                          .keep = keep_of_evaluation,
                                                          .ctx = request});
}

/* --- asking for one --- */

/* What is wrong with BODY, NULL: nothing; in Nomad's words. */
static const char *fault_of(const struct api_request *request, const json_t *body)
{
    const char *id = json_string_value(json_object_get(body, "JobID"));

    if (json_object_size(body) == 0)
        return NULL; /* older clients send none */
    if (id == NULL || id[0] == '\0')
        return "Job ID must be specified";
    if (!text_equal(id, request->argument))
        return "JobID not same as job name";
    if (!api_field_is(body, "EvalOptions", JSON_OBJECT) ||
        !api_field_is(json_object_get(body, "EvalOptions"), "ForceReschedule", JSON_TRUE))
        return "EvalOptions must be an object, and its ForceReschedule true or false";
    return NULL;
}

void api_job_evaluate(struct api_request *request)
{
    json_t *body = api_body(request, true);
    const json_t *options = json_object_get(body, "EvalOptions");
    const char *fault = body == NULL ? NULL : fault_of(request, body);
    struct alone_evaluation evaluation = {0};
    struct err err = {0};

    if (body == NULL)
        return;
    if (fault != NULL)
        api_refuse(request, 400, "%s", fault);
    else if (alone_evaluate(request->api->parts->alone, request->namespace, request->argument,
                            json_is_true(json_object_get(options, "ForceReschedule")), &evaluation,
                            &err) != 0)
        api_refuse_err(request, &err);
    else
        api_reply_evaluation(request, &evaluation, "");
    json_decref(body);
}

/* --- what there is none of --- */

/* What Nomad has and this release has not is said so, not "not found". */
void api_unavailable(struct api_request *request)
{
    api_refuse(request, 501, "%s is not available in this release", http_path(request->exchange));
}

/* --- search --- */

struct search {
    const struct api_request *request;
    const char *prefix;
    json_t *matches, *truncations;
    const char *context; /* being searched */
};

static void match(struct search *search, const char *id)
{
    json_t *found = json_object_get(search->matches, search->context);

    if (!text_starts_with(id, search->prefix))
        return;
    if (json_array_size(found) == SEARCH_MATCHES_MAX)
        check(json_object_set_new(search->truncations, search->context, json_true()) == 0);
    else
        check(json_array_append_new(found, api_text(id)) == 0);
}

static bool may_see(const struct search *search, const char *namespace)
{
    return api_may(search->request, namespace, ACL_BIT(ACL_READ_JOB));
}

static bool match_job(void *ctx, const struct alone_job *job)
{
    if (may_see(ctx, job->namespace))
        match(ctx, job->id);
    return true;
}

static bool match_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    if (may_see(ctx, alloc_of(record)->assign.namespace))
        match(ctx, id->text);
    return true;
}

static void match_plugin(void *ctx, const char *id)
{
    match(ctx, id);
}

static bool match_volume(void *ctx, const struct storage_volume *volume)
{
    const struct search *search = ctx;

    if (api_may(search->request, volume->namespace,
                ACL_BIT(ACL_CSI_LIST_VOLUME) | ACL_BIT(ACL_CSI_READ_VOLUME)))
        match(ctx, volume->id);
    return true;
}

static bool match_host_volume(void *ctx, const struct storage_volume *volume)
{
    const struct search *search = ctx;

    if (api_may(search->request, volume->namespace, ACL_BIT(ACL_HOST_VOLUME_READ)))
        match(ctx, volume->id);
    return true;
}

static bool match_evaluation(void *ctx, const struct alone_evaluation *evaluation)
{
    if (may_see(ctx, evaluation->namespace))
        match(ctx, evaluation->id);
    return true;
}

static bool match_deployments(void *ctx, const struct alone_job *job)
{
    struct search *search = ctx;
    const json_t *deployment;
    size_t i;

    if (alone_deployment_id(job)[0] == '\0' || !may_see(search, job->namespace))
        return true;
    json_t *list = alone_deployments(search->request->api->parts->alone, job);
    json_array_foreach(list, i, deployment)
        match(search, json_string_value(json_object_get(deployment, "ID")));
    json_decref(list);
    return true;
}

static void search_context(struct search *search, const char *context)
{
    const struct acl_rights *rights = search->request->rights;
    struct api *api = search->request->api;
    struct alone *alone = api->parts->alone;

    search->context = context;
    check(json_object_set_new(search->matches, context, json_array()) == 0);
    check(json_object_set_new(search->truncations, context, json_false()) == 0);
    if (text_equal(context, "jobs"))
        alone_each(alone, match_job, search);
    else if (text_equal(context, "allocs"))
        core_each(api->parts->core, MACHINE_ALLOC, match_alloc, search);
    else if (text_equal(context, "deployment"))
        alone_each(alone, match_deployments, search);
    else if (text_equal(context, "evals"))
        alone_each_evaluation(alone, match_evaluation, search);
    else if (text_equal(context, "plugins") && acl_allows_area(rights, ACL_PLUGIN, ACL_LIST))
        api_each_plugin(api, match_plugin, search);
    else if (text_equal(context, "nodes") && acl_allows_area(rights, ACL_NODE, ACL_READ))
        match(search, api->parts->node.identity.id);
    else if (text_equal(context, "volumes"))
        storage_each_volume(api->parts->storage, match_volume, search);
    else if (text_equal(context, "host_volumes"))
        storage_each_volume(api->parts->host_volumes, match_host_volume, search);
}

static const char *const contexts[SEARCH_CONTEXTS] = {
    "allocs", "deployment", "evals", "host_volumes", "jobs", "nodes", "plugins", "volumes"};

static bool is_all(const char *context)
{
    return context == NULL || context[0] == '\0' || text_equal(context, "all");
}

static const char *fault_of_search(const struct api_request *request, const json_t *body)
{
    const json_t *prefix = json_object_get(body, "Prefix"),
                 *context = json_object_get(body, "Context");
    const char *wanted = json_string_value(context);
    bool known = is_all(wanted);
    (void)request;

    if ((prefix != NULL && !json_is_string(prefix)) ||
        (context != NULL && !json_is_string(context)))
        return "Prefix and Context must be texts";
    for (size_t i = 0; i < COUNT_OF(contexts) && !known; i++)
        known = text_equal(wanted, contexts[i]);
    return known ? NULL
                 : "context must be one of allocs, deployment, evals, host_volumes, jobs, nodes, "
                   "plugins and volumes, or 'all' for all contexts";
}

static void act_on_search(struct api_request *request, const json_t *body)
{
    const char *prefix = json_string_value(json_object_get(body, "Prefix"));
    const char *wanted = json_string_value(json_object_get(body, "Context"));
    struct search search = {
        .request = request,
        .prefix = prefix == NULL ? "" : prefix,
        .matches = json_object(),
        .truncations = json_object(),
    };

    for (size_t i = 0; i < COUNT_OF(contexts); i++) {
        if (is_all(wanted) || text_equal(wanted, contexts[i]))
            search_context(&search, contexts[i]);
    }
    api_reply(request, json_pack("{s:o, s:o, s:I}", "Matches", search.matches, "Truncations",
                                 search.truncations, "Index", (json_int_t)api_index(request->api)));
}

void api_search(struct api_request *request)
{
    api_act(request, api_body(request, false), fault_of_search, act_on_search);
}
