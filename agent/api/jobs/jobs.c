/*
 * Jobs over HTTP: registering, reading, stopping; job files to JSON.
 *
 * The control plane (server/alone/alone.h) decides; here is only what Nomad's routes make of it.
 * Follows nomad v1.1.2 command/agent/job_endpoint.go.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "base/list.h"
#include "server/alone/alone.h"
#include "spec/cron.h"
#include "spec/job.h"
#include "spec/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *status_of(struct api *api, const struct alone_job *job)
{
    return alone_job_status(api->parts->alone, job);
}

const struct alone_job *api_find_job(struct api_request *request)
{
    const struct alone_job *job =
        alone_find(request->api->parts->alone, request->namespace, request->argument);

    if (job == NULL)
        api_refuse(request, 404, "job not found");
    return job;
}

/* --- counts --- */

static struct api_job_counts *group_of(struct api_counting *counting, const char *name)
{
    for (size_t i = 0; i < counting->count; i++) {
        if (text_equal(counting->groups[i].group, name))
            return &counting->groups[i];
    }
    return NULL;
}

static bool count_alloc(void *ctx, const struct machine_id *id, const struct machine *record)
{
    const struct alloc *alloc = alloc_of(record);
    struct api_job_counts *group = group_of(ctx, alloc->assign.group);
    (void)id;

    if (group == NULL)
        return true; /* of an older version of the job */
    switch ((enum client_status)alloc->client_status) {
    case CLIENT_PENDING:
        group->starting++;
        break;
    case CLIENT_RUNNING:
        group->running++;
        break;
    case CLIENT_COMPLETE:
        group->complete++;
        break;
    case CLIENT_FAILED:
        group->failed++;
        break;
    }
    return true;
}

void api_count_job(struct api *api, const struct alone_job *job, struct api_counting *counting)
{
    json_t *groups = json_object_get(job->job, "TaskGroups"), *group;
    size_t at;

    counting->count = 0;
    counting->groups = list_room(counting->groups, &counting->size, json_array_size(groups),
                                 sizeof(*counting->groups));
    json_array_foreach(groups, at, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));
        counting->groups[counting->count++] = (struct api_job_counts){
            .group = name == NULL ? "" : name, .queued = (uint32_t)alone_queued(job, at)};
    }
    core_each_of_job(api->parts->core, job->namespace, job->id, count_alloc, counting);
}

/* --- reading --- */

struct listing {
    struct api_request *request;
    struct writer to;
    struct api_counting counting;
    struct api_family *families;
    bool meta; /* is shown */
};

static bool list_job(void *ctx, const struct alone_job *job)
{
    struct listing *listing = ctx;
    struct api *api = listing->request->api;

    if (!text_starts_with(job->id, listing->request->prefix) ||
        !api_namespace_matches(listing->request, job->namespace))
        return true;
    api_count_job(api, job, &listing->counting);
    api_format_job_stub(&listing->to, job, status_of(api, job), listing->counting.groups,
                        listing->counting.count, api_children(listing->families, job),
                        listing->meta);
    return true;
}

void api_jobs_list(struct api_request *request)
{
    struct listing listing = {.request = request};

    if (!api_query_bool(request, "meta", &listing.meta))
        return;
    listing.to = api_writer(request);
    listing.families = api_families(request->api, NULL);
    put_array(&listing.to, NULL);
    alone_each(request->api->parts->alone, list_job, &listing);
    put_end(&listing.to);
    api_reply_written(request, &listing.to);
    free(listing.counting.groups);
    api_families_free(listing.families);
}

void api_job_get(struct api_request *request)
{
    if (api_reply_kept(request))
        return;
    const struct alone_job *job = api_find_job(request);
    if (job == NULL)
        return;
    struct writer to = api_writer(request);
    struct api_job_view view = {.job = job, .status = status_of(request->api, job)};
    int64_t next_s = alone_next_launch(request->api->parts->alone, job->job);
    if (next_s != CRON_NEVER)
        view.launch_unix_ns = next_s * 1000000000;
    api_put_job(&to, NULL, &view);
    if (next_s == CRON_NEVER)
        api_reply_and_keep(request, &to);
    else
        api_reply_written(request, &to); /* time goes by */
}

/* Those of TASK of GROUP, as Nomad lists them. */
static void add_actions(json_t *list, const char *group, const json_t *task)
{
    const json_t *action;
    size_t i;

    json_array_foreach(json_object_get(task, "Actions"), i, action)
    {
        json_t *args = json_object_get(action, "Args");

        check(json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:O, s:s}", "Name",
                                                    json_object_get(action, "Name"), "Command",
                                                    json_object_get(action, "Command"), "Args",
                                                    json_is_array(args) ? args : json_null(),
                                                    "TaskName", json_object_get(task, "Name"),
                                                    "TaskGroupName", group)) == 0);
    }
}

void api_job_actions(struct api_request *request)
{
    const struct alone_job *job = api_find_job(request);
    json_t *list;
    const json_t *group, *task;
    size_t g, t;

    if (job == NULL)
        return;
    list = json_array();
    json_array_foreach(json_object_get(job->job, "TaskGroups"), g, group)
    {
        json_array_foreach(json_object_get(group, "Tasks"), t, task)
            add_actions(list, text_of(group, "Name"), task);
    }
    api_reply(request, list);
}

void api_job_allocations(struct api_request *request)
{
    api_reply_allocs(request, &(struct api_selection){.namespace = request->namespace,
                                                      .job = request->argument,
                                                      .parts = API_ALLOC_TASK_STATES});
}

void api_job_summary(struct api_request *request)
{
    const struct alone_job *job = api_find_job(request);
    struct api_counting counting = {0};

    if (job == NULL)
        return;
    struct writer to = api_writer(request);
    struct api_family *families = api_families(request->api, job);
    api_count_job(request->api, job, &counting);
    api_format_summary(&to, NULL, job, counting.groups, counting.count,
                       api_children(families, job));
    api_families_free(families);
    api_reply_written(request, &to);
    free(counting.groups);
}

/* --- registering --- */

struct registered {
    struct alone_evaluation evaluation;
    char remark[ERR_TEXT_SIZE];
};

static json_t *make_registered(struct api *api, void *ctx)
{
    const struct registered *registered = ctx;
    const struct alone_evaluation *asked = &registered->evaluation;
    struct alone *alone = api->parts->alone;
    const struct alone_job *job = alone_find(alone, asked->namespace, asked->job_id);
    bool evaluated = asked->id[0] != '\0'; /* a parameterized job is not */
    const struct alone_evaluation *now = evaluated ? alone_evaluation(alone, asked->id) : NULL;
    json_int_t index = (json_int_t)(now != NULL ? now->index : evaluated ? api_index(api) : 0);
    char *warnings = job != NULL && !job->stop ? jobspec_warnings(job->job) : NULL;
    json_t *told = json_sprintf("%s%s%s", warnings != NULL ? warnings : "",
                                warnings != NULL && registered->remark[0] != '\0' ? "\n" : "",
                                registered->remark);

    free(warnings);
    return json_pack("{s:s, s:I, s:I, s:o, s:I}", "EvalID", asked->id, "EvalCreateIndex", index,
                     "JobModifyIndex",
                     (json_int_t)(job != NULL ? job->job_modify_index : api_index(api)), "Warnings",
                     told, "Index", (json_int_t)api_index(api));
}

void api_reply_evaluation(struct api_request *request, const struct alone_evaluation *evaluation,
                          const char *remark)
{
    struct registered *registered = malloc(sizeof(*registered));

    check(registered != NULL);
    registered->evaluation = *evaluation;
    (void)text_copy(registered->remark, sizeof(registered->remark), remark);
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_registered, registered));
}

/* What registering a job reads of its request. */
struct registration {
    struct api_aside aside;
    const struct assign_plans *plans;
    struct alone_wanted wanted; /* its job is NULL if there is none: */
    json_t *problems;
    struct err err;
    bool enforce_index, preserve_counts;
    json_int_t expected_index;
};

static void run_registration(struct api_aside *aside)
{
    struct registration *to = (struct registration *)aside;
    json_t *body = api_aside_parse(aside, PARSE_OBJECT, NULL, &to->err);
    const json_t *job = json_object_get(body, "Job");

    if (body == NULL)
        return; /* err says why */
    to->enforce_index = json_is_true(json_object_get(body, "EnforceIndex"));
    to->preserve_counts = json_is_true(json_object_get(body, "PreserveCounts"));
    to->expected_index = json_integer_value(json_object_get(body, "JobModifyIndex"));
    const char *unserved = api_unserved_field(body);
    if (unserved != NULL)
        (void)err_set(&to->err, ERR_INVALID, "%s is not available here in this release",
                      unserved); /* kept there, as what follows */
    else if (!api_field_is(body, "EnforceIndex", JSON_TRUE) ||
             !api_field_is(body, "PreserveCounts", JSON_TRUE) ||
             !api_field_is(body, "JobModifyIndex", JSON_INTEGER))
        (void)err_set(&to->err, ERR_INVALID,
                      "EnforceIndex and PreserveCounts must be true or false, and JobModifyIndex a "
                      "whole number");
    else if (!json_is_object(job))
        (void)err_set(&to->err, ERR_INVALID, "Job must be specified");
    else if (alone_read_job(to->plans, job, &to->wanted, to->problems, &to->err) == 0 &&
             alone_read_source(json_object_get(body, "Submission"), &to->wanted, &to->err) != 0)
        alone_wanted_free(&to->wanted);
    json_decref(body);
}

static void free_registration(struct api_aside *aside)
{
    struct registration *registration = (struct registration *)aside;

    alone_wanted_free(&registration->wanted);
    json_decref(registration->problems);
    free(registration);
}

/* True unless the request wants another job to be there than is. */
static bool index_is_expected(struct api_request *request, const struct registration *registration)
{
    const json_t *job = registration->wanted.job;
    json_int_t expected = registration->expected_index;

    if (!registration->enforce_index)
        return true;
    const struct alone_job *old =
        alone_find(request->api->parts->alone, json_string_value(json_object_get(job, "Namespace")),
                   json_string_value(json_object_get(job, "ID")));
    if (old == NULL && expected == 0)
        return true;
    if (old != NULL && expected > 0 && old->job_modify_index == (uint64_t)expected)
        return true;
    if (old == NULL)
        api_refuse(request, 409, "Enforcing job modify index %lld: job does not exist",
                   (long long)expected);
    else if (expected == 0)
        api_refuse(request, 409, "Enforcing job modify index 0: job already exists");
    else
        api_refuse(request, 409,
                   "Enforcing job modify index %lld: job exists with conflicting job modify "
                   "index: %" PRIu64,
                   (long long)expected, old->job_modify_index);
    return false;
}

void api_refuse_problems(struct api_request *request, const json_t *problems, const struct err *err)
{
    size_t size = 256, at;
    json_t *problem;
    char *text;

    json_array_foreach(problems, at, problem) size += json_string_length(problem) + 1;
    text = calloc(1, size);
    check(text != NULL);
    json_array_foreach(problems, at, problem)
    {
        (void)text_append(text, size, at > 0 ? "\n" : ""); /* there is room for all of them */
        (void)text_append(text, size, json_string_value(problem));
    }
    if (text[0] == '\0')
        (void)text_copy(text, size, err->text); /* err's text is shorter than size */
    api_refuse_text(request, api_status_of(request->api, err->code), text);
    free(text);
}

/* PreserveCounts: groups that are there keep their counts. */
static void keep_counts(struct api_request *request, const struct registration *registration)
{
    const json_t *job = registration->wanted.job;
    const struct alone_job *old =
        alone_find(request->api->parts->alone, json_string_value(json_object_get(job, "Namespace")),
                   json_string_value(json_object_get(job, "ID")));
    json_t *group;
    size_t at;

    json_array_foreach(
        old == NULL || !registration->preserve_counts ? NULL : json_object_get(job, "TaskGroups"),
        at, group)
    {
        const char *name = json_string_value(json_object_get(group, "Name"));
        const json_t *before = jobspec_group(old->job, name);

        if (before != NULL)
            check(json_object_set(group, "Count", json_object_get(before, "Count")) == 0);
    }
}

static void answer_registration(struct api_request *request, struct api_aside *aside)
{
    struct registration *registration = (struct registration *)aside;
    const char *id = json_string_value(json_object_get(registration->wanted.job, "ID"));
    struct alone_evaluation evaluation = {0};

    if (registration->wanted.job == NULL) {
        api_refuse_problems(request, registration->problems, &registration->err);
        return;
    }
    if (request->argument[0] != '\0' && !text_equal(id, request->argument)) {
        api_refuse(request, 400, "Job ID does not match name");
        return;
    }
    if (!api_may_register(request, registration->wanted.job) ||
        !index_is_expected(request, registration))
        return;
    keep_counts(request, registration);
    if (alone_register_read(request->api->parts->alone, &registration->wanted, &evaluation,
                            &registration->err) != 0)
        api_refuse_err(request, &registration->err);
    else
        api_reply_evaluation(request, &evaluation, registration->wanted.remark);
}

void api_jobs_register(struct api_request *request)
{
    struct registration *registration = calloc(1, sizeof(*registration));

    check(registration != NULL);
    registration->aside = (struct api_aside){
        .run = run_registration, .answer = answer_registration, .free = free_registration};
    registration->plans = alone_plans(request->api->parts->alone);
    registration->problems = json_array();
    api_aside_read(request, &registration->aside);
}

void api_job_update(struct api_request *request)
{
    api_jobs_register(request); /* which compares the names */
}

void api_job_delete(struct api_request *request)
{
    struct alone_evaluation evaluation = {0};
    struct err err = {0};
    bool purge = false, at_once = false;

    if (!api_query_bool(request, "purge", &purge) ||
        !api_query_bool(request, "no_shutdown_delay", &at_once))
        return;
    if (purge &&
        !api_must(request, request->namespace, ACL_BIT(ACL_SUBMIT_JOB) | ACL_BIT(ACL_PURGE_JOB)))
        return;
    unsigned how = (purge ? ALONE_PURGE : 0) | (at_once ? ALONE_AT_ONCE : 0);
    if (alone_deregister(request->api->parts->alone, request->namespace, request->argument, how,
                         &evaluation, &err) != 0)
        api_refuse_err(request, &err);
    else
        api_reply_evaluation(request, &evaluation, "");
}

/* --- job files --- */

/* What is read to be told what is in it; nothing is changed. */
struct inspection {
    struct api_aside aside;
    struct writer answer; /* of 200 */
    char *refusal;        /* what is wrong with the file */
    struct err err;       /* else */
};

static void run_inspection(struct api_aside *aside)
{
    struct inspection *to = (struct inspection *)aside;
    json_t *job = api_aside_parse(aside, PARSE_JOB, &to->refusal, &to->err);

    if (job != NULL)
        put_json_new(&to->answer, NULL, job);
}

static void answer_inspection(struct api_request *request, struct api_aside *aside)
{
    struct inspection *inspection = (struct inspection *)aside;

    if (inspection->answer.bytes != NULL)
        api_reply_written(request, &inspection->answer);
    else if (inspection->refusal != NULL)
        api_refuse_text(request, 400, inspection->refusal);
    else
        api_refuse_err(request, &inspection->err);
}

static void free_inspection(struct api_aside *aside)
{
    struct inspection *inspection = (struct inspection *)aside;

    free(inspection->answer.bytes);
    free(inspection->refusal);
    free(inspection);
}

void api_jobs_parse(struct api_request *request)
{
    struct inspection *inspection = calloc(1, sizeof(*inspection));

    check(inspection != NULL);
    inspection->aside = (struct api_aside){
        .run = run_inspection, .answer = answer_inspection, .free = free_inspection};
    inspection->answer = api_writer(request);
    api_aside_read(request, &inspection->aside);
}

/* A job that is read to be told what is wrong with it. */
struct validation {
    struct api_aside aside;
    const struct assign_plans *plans;
    struct alone_wanted wanted; /* its job is NULL if there is none: */
    json_t *errors;             /* NULL: it is not even JSON, and */
    struct err err;             /* says why */
    char *warnings;             /* NULL: none */
};

static void run_validation(struct api_aside *aside)
{
    struct validation *to = (struct validation *)aside;
    json_t *body = api_aside_parse(aside, PARSE_OBJECT, NULL, &to->err);

    if (body == NULL)
        return;
    to->errors = json_array();
    if (alone_read_job(to->plans, body, &to->wanted, to->errors, &to->err) == 0)
        to->warnings = jobspec_warnings(to->wanted.job);
    else if (json_array_size(to->errors) == 0)
        check(json_array_append_new(to->errors, api_text(to->err.text)) == 0);
    json_decref(body);
}

static void answer_validation(struct api_request *request, struct api_aside *aside)
{
    struct validation *validation = (struct validation *)aside;
    json_t *errors = validation->errors;

    if (errors == NULL) {
        api_refuse_err(request, &validation->err);
        return;
    }
    if (validation->wanted.job != NULL &&
        alone_check_names(request->api->parts->alone, validation->wanted.job, &validation->err) !=
            0)
        check(json_array_append_new(errors, api_text(validation->err.text)) == 0);
    const char *first = json_string_value(json_array_get(errors, 0));
    api_reply(request,
              json_pack("{s:b, s:O, s:s, s:s}", "DriverConfigValidated", 1, "ValidationErrors",
                        errors, "Error", first != NULL ? first : "", "Warnings",
                        validation->warnings != NULL ? validation->warnings : ""));
}

static void free_validation(struct api_aside *aside)
{
    struct validation *validation = (struct validation *)aside;

    alone_wanted_free(&validation->wanted);
    json_decref(validation->errors);
    free(validation->warnings);
    free(validation);
}

void api_validate_job(struct api_request *request)
{
    struct validation *validation = calloc(1, sizeof(*validation));

    check(validation != NULL);
    validation->aside = (struct api_aside){
        .run = run_validation, .answer = answer_validation, .free = free_validation};
    validation->plans = alone_plans(request->api->parts->alone);
    api_aside_read(request, &validation->aside);
}
