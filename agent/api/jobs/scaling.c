/*
 * Scaling over HTTP: counts of groups, what was said of them, and the policies of those who choose
 * them (server/alone/scaling/scaling.c).
 *
 * Follows nomad v2.0.5 command/agent/job_endpoint.go jobScale and scaling_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

/* --- how a job is --- */

struct tally {
    const struct alone_job *job;
    json_t *groups; /* of the answer, by name */
};

static void add_one(json_t *group, const char *name)
{
    json_t *number = json_object_get(group, name);

    check(json_integer_set(number, json_integer_value(number) + 1) == 0);
}

/* Canaries are none of the count. */
static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct tally *tally = ctx;
    const struct alloc *alloc = alloc_of(record);
    json_t *group = json_object_get(tally->groups, alloc->assign.group);

    if (group == NULL || alloc->stop_wanted || alloc->client_status == CLIENT_COMPLETE ||
        alloc->client_status == CLIENT_FAILED ||
        alone_is_canary(tally->job, alloc->assign.group, id->text))
        return true;
    add_one(group, "Placed");
    if (alloc->client_status == CLIENT_RUNNING)
        add_one(group, "Running");
    if (alloc->health == HEALTH_HEALTHY)
        add_one(group, "Healthy");
    if (alloc->health == HEALTH_UNHEALTHY)
        add_one(group, "Unhealthy");
    return true;
}

void api_job_scale_status(struct api_request *request)
{
    struct api *api = request->api;
    const struct alone_job *job =
        alone_find(api->parts->alone, request->namespace, request->argument);
    struct tally tally = {job, json_object()};
    const json_t *group;
    size_t g;

    json_array_foreach(json_object_get(job == NULL ? NULL : job->job, "TaskGroups"), g, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));
        const json_t *events = alone_scaling_events(job, name);
        json_t *status =
            json_pack("{s:I, s:i, s:i, s:i, s:i, s:o}", "Desired",
                      json_integer_value(json_object_get(group, "Count")), "Placed", 0, "Running",
                      0, "Healthy", 0, "Unhealthy", 0, "Events",
                      events == NULL ? json_null() : json_incref((json_t *)(uintptr_t)events));

        check(json_object_set_new(tally.groups, name, status) == 0);
    }
    if (job == NULL) {
        json_decref(tally.groups);
        api_refuse(request, 404, "job not found");
        return;
    }
    core_each_of_job(api->parts->core, job->namespace, job->id, count_alloc, &tally);
    api_reply(request, json_pack("{s:s, s:s, s:I, s:I, s:b, s:o}", "JobID", job->id, "Namespace",
                                 job->namespace, "JobCreateIndex", (json_int_t)job->create_index,
                                 "JobModifyIndex", (json_int_t)job->modify_index, "JobStopped",
                                 job->stop, "TaskGroups", tally.groups));
}

/* --- changing it --- */

struct noted {
    uint64_t modify_index;
};

/* Of what only was said: nothing is evaluated. */
static json_t *make_noted(struct api *api, void *ctx)
{
    const struct noted *noted = ctx;

    return json_pack("{s:s, s:i, s:I, s:s, s:I}", "EvalID", "", "EvalCreateIndex", 0,
                     "JobModifyIndex", (json_int_t)noted->modify_index, "Warnings", "", "Index",
                     (json_int_t)api_index(api));
}

static void reply_noted(struct api_request *request)
{
    const struct alone_job *job =
        alone_find(request->api->parts->alone, request->namespace, request->argument);
    struct noted *noted = calloc(1, sizeof(*noted));

    check(noted != NULL);
    noted->modify_index = job == NULL ? 0 : job->modify_index;
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_noted, noted));
}

/* What is wrong with BODY by itself, NULL: nothing; in Nomad's words. */
static const char *fault_of(const struct api_request *request, const json_t *body)
{
    const json_t *target = json_object_get(body, "Target"), *count = json_object_get(body, "Count");
    const json_t *index = json_object_get(body, "JobModifyIndex");
    const char *namespace = json_string_value(json_object_get(target, "Namespace"));
    const char *job = json_string_value(json_object_get(target, "Job"));
    const char *group = json_string_value(json_object_get(target, "Group"));
    bool counts = count != NULL && !json_is_null(count);

    if (job != NULL && job[0] != '\0' && !text_equal(job, request->argument))
        return "job ID in payload did not match URL";
    if (namespace != NULL && namespace[0] != '\0' && !text_equal(namespace, request->namespace))
        return "namespace in payload did not match header";
    if (group == NULL || group[0] == '\0')
        return "missing task group name for scaling action";
    if (!api_field_is(body, "Count", JSON_INTEGER) ||
        !api_field_is(body, "JobModifyIndex", JSON_INTEGER) || json_integer_value(index) < 0)
        return "Count and JobModifyIndex must be whole numbers";
    if (!api_field_is(body, "Message", JSON_STRING) || !api_field_is(body, "Error", JSON_TRUE))
        return "Message must be a text, and Error true or false";
    if (counts && json_integer_value(count) < 0)
        return "scaling action count can't be negative";
    if (counts && json_is_true(json_object_get(body, "Error")))
        return "scaling action should not contain count if error is true";
    if (!api_field_is(body, "Meta", JSON_OBJECT))
        return "Meta must be an object";
    return NULL;
}

static void scale(struct api_request *request, const json_t *body)
{
    const json_t *count = json_object_get(body, "Count"), *meta = json_object_get(body, "Meta");
    const char *message = json_string_value(json_object_get(body, "Message"));
    struct alone_scaling scaling = {
        .group = json_string_value(json_object_get(json_object_get(body, "Target"), "Group")),
        .count = json_is_integer(count) ? json_integer_value(count) : -1,
        .index = (uint64_t)json_integer_value(json_object_get(body, "JobModifyIndex")),
        .message = message == NULL ? "" : message,
        .error = json_is_true(json_object_get(body, "Error")),
        .meta = json_is_object(meta) ? meta : NULL,
    };
    struct alone_evaluation evaluation;
    struct err err = {0};

    if (alone_scale(request->api->parts->alone, request->namespace, request->argument, &scaling,
                    &evaluation, &err) != 0)
        api_refuse_err(request, &err);
    else if (evaluation.id[0] == '\0')
        reply_noted(request);
    else
        api_reply_evaluation(request, &evaluation, "");
}

void api_job_scale(struct api_request *request)
{
    api_act(request, api_body(request, false), fault_of, scale);
}

/* --- policies --- */

/* What SCALING says of NAME, or null: a new reference. */
static json_t *said(const json_t *scaling, const char *name)
{
    json_t *value = json_object_get(scaling, name);

    return value == NULL ? json_null() : json_incref(value);
}

/* That of GROUP of JOB in Nomad's words, a new reference; WHOLE: with what it allows. */
static json_t *format_policy(const struct alone_job *job, const json_t *group, bool whole)
{
    const char *name = json_string_value(json_object_get(group, "Name"));
    const json_t *kept = alone_scaling_policy(job, name);
    const json_t *scaling = json_object_get(group, "Scaling");
    json_t *to;

    if (scaling == NULL || kept == NULL)
        return NULL;
    to = json_copy((json_t *)(uintptr_t)kept);
    check(to != NULL);
    check(json_object_update_new(
              to, json_pack("{s:o, s:o, s:{s:s, s:s, s:s}}", "Type", said(scaling, "Type"),
                            "Enabled", said(scaling, "Enabled"), "Target", "Namespace",
                            job->namespace, "Job", job->id, "Group", name)) == 0);
    if (whole)
        check(json_object_update_new(to, json_pack("{s:o, s:o, s:o}", "Min", said(scaling, "Min"),
                                                   "Max", said(scaling, "Max"), "Policy",
                                                   said(scaling, "Policy"))) == 0);
    return to;
}

struct listing {
    struct api_request *request;
    const char *job, *type; /* only of it, NULL: of all */
    json_t *list;
};

static bool is_asked_for(const char *asked, const char *is)
{
    return asked == NULL || asked[0] == '\0' || (is != NULL && text_equal(asked, is));
}

static bool list_policies(void *ctx, const struct alone_job *job)
{
    struct listing *listing = ctx;
    json_t *group, *policy;
    size_t g;

    if (!is_asked_for(listing->job, job->id) ||
        !api_namespace_matches(listing->request, job->namespace))
        return true;
    json_array_foreach(json_object_get(job->job, "TaskGroups"), g, group)
    {
        policy = format_policy(job, group, false);
        if (policy != NULL &&
            text_starts_with(json_string_value(json_object_get(policy, "ID")),
                             listing->request->prefix) &&
            is_asked_for(listing->type, json_string_value(json_object_get(policy, "Type"))))
            check(json_array_append(listing->list, policy) == 0);
        json_decref(policy);
    }
    return true;
}

void api_policies_list(struct api_request *request)
{
    struct listing listing = {.request = request,
                              .job = http_query(request->exchange, "job"),
                              .type = http_query(request->exchange, "type"),
                              .list = json_array()};

    alone_each(request->api->parts->alone, list_policies, &listing);
    api_reply(request, listing.list);
}

struct search {
    const char *id;
    json_t *found; /* a new reference */
};

static bool match_id(void *ctx, const struct alone_job *job)
{
    struct search *search = ctx;
    json_t *group;
    size_t g;

    json_array_foreach(json_object_get(job->job, "TaskGroups"), g, group)
    {
        const json_t *kept =
            alone_scaling_policy(job, json_string_value(json_object_get(group, "Name")));

        if (kept != NULL &&
            text_equal(json_string_value(json_object_get(kept, "ID")), search->id) &&
            search->found == NULL)
            search->found = format_policy(job, group, true);
    }
    return search->found == NULL;
}

void api_policy_get(struct api_request *request)
{
    struct search search = {.id = request->argument};

    alone_each(request->api->parts->alone, match_id, &search);
    if (search.found == NULL)
        api_refuse(request, 404, "policy not found");
    else
        api_reply(request, search.found);
}
