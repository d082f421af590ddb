/*
 * Dispatching and launching over HTTP, and how the jobs are that were made so.
 *
 * Follows nomad v2.0.5 command/agent/job_endpoint.go jobDispatchRequest and
 * periodicForceRequest.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"
#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>

/* Meta beside a payload in base64. */
enum { DISPATCH_BODY_MAX = HTTP_SHORT_BYTES };
_Static_assert(2 * SPEC_PAYLOAD_BYTES_MAX <= DISPATCH_BODY_MAX, "a payload fits a request");

/* --- children --- */

enum { FAMILY_KEY_SIZE = SPEC_NAMESPACE_SIZE + SPEC_NAME_SIZE };

struct api_family {
    char key[FAMILY_KEY_SIZE]; /* the parent's namespace, a slash, its id */
    struct api_job_children children;
    UT_hash_handle hh;
};

struct counting {
    struct api *api;
    const struct alone_job *parent;
    struct api_family *families;
};

static struct api_family *family_of(struct counting *counting, const char *key)
{
    struct api_family *family;

    HASH_FIND_STR(counting->families, key, family);
    if (family == NULL) {
        family = calloc(1, sizeof(*family));
        check(family != NULL);
        (void)text_copy(family->key, sizeof(family->key), key); /* of that size */
        HASH_ADD_STR(counting->families, key, family);
    }
    return family;
}

static bool count_child(void *ctx, const struct alone_job *job)
{
    struct counting *counting = ctx;
    const char *parent = json_string_value(json_object_get(job->job, "ParentID")), *status;
    char key[FAMILY_KEY_SIZE];

    if (parent == NULL || !jobspec_is_child(job->job)) /* most have none */
        return true;
    if (counting->parent != NULL && (!text_equal(counting->parent->id, parent) ||
                                     !text_equal(counting->parent->namespace, job->namespace)))
        return true;
    (void)text_format(key, sizeof(key), "%s/%s", job->namespace, parent); /* bounded names */
    struct api_job_children *children = &family_of(counting, key)->children;
    status = alone_job_status(counting->api->parts->alone, job);
    children->pending += text_equal(status, "pending");
    children->running += text_equal(status, "running");
    children->dead += text_equal(status, "dead");
    return true;
}

struct api_family *api_families(struct api *api, const struct alone_job *parent)
{
    struct counting counting = {.api = api, .parent = parent};

    if (parent == NULL || jobspec_makes_jobs(parent->job))
        alone_each(api->parts->alone, count_child, &counting);
    return counting.families;
}

void api_families_free(struct api_family *families)
{
    struct api_family *family, *next;

    HASH_ITER(hh, families, family, next)
    {
        HASH_DEL(families, family);
        free(family);
    }
}

struct api_job_children api_children(const struct api_family *families, const struct alone_job *job)
{
    const struct api_family *family;
    char key[FAMILY_KEY_SIZE];

    if (families == NULL)
        return (struct api_job_children){0};
    (void)text_format(key, sizeof(key), "%s/%s", job->namespace, job->id); /* bounded names */
    HASH_FIND_STR(families, key, family);
    return family == NULL ? (struct api_job_children){0} : family->children;
}

/* --- dispatching --- */

static json_t *make_dispatched(struct api *api, void *ctx)
{
    const struct alone_evaluation *made = ctx;
    struct alone *alone = api->parts->alone;
    const struct alone_job *job = alone_find(alone, made->namespace, made->job_id);
    const struct alone_evaluation *now =
        made->id[0] == '\0' ? NULL : alone_evaluation(alone, made->id);
    json_int_t index = (json_int_t)(job != NULL ? job->create_index : api_index(api));

    return json_pack("{s:s, s:s, s:I, s:I, s:I}", "DispatchedJobID", made->job_id, "EvalID",
                     made->id, "EvalCreateIndex", (json_int_t)(now != NULL ? now->index : 0),
                     "JobCreateIndex", index, "Index", (json_int_t)api_index(api));
}

/* What of BODY is not what it has to be, or NULL. */
static const char *fault_of(const struct api_request *request, const json_t *body)
{
    static const char *const texts[] = {"JobID", "Payload", "IdPrefixTemplate"};
    const json_t *meta = json_object_get(body, "Meta"), *value;
    const json_t *priority = json_object_get(body, "Priority");

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        value = json_object_get(body, texts[i]);
        if (value != NULL && !json_is_null(value) && !json_is_string(value))
            return "JobID, Payload and IdPrefixTemplate are texts, and Payload is one in base64";
    }
    if (meta != NULL && !json_is_null(meta) && !json_is_object(meta))
        return "Meta must be an object";
    if (priority != NULL && !json_is_null(priority) && !json_is_integer(priority))
        return "Priority must be a whole number";
    value = json_object_get(body, "JobID");
    if (json_string_length(value) > 0 && !text_equal(json_string_value(value), request->argument))
        return "Job ID does not match";
    return NULL;
}

static const char *said(const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));

    return text == NULL ? "" : text;
}

static void dispatch(struct api_request *request, const json_t *body)
{
    json_t *meta = json_object_get(body, "Meta");
    const char *token = http_query(request->exchange, "idempotency_token");
    const struct alone_dispatch asked = {
        .namespace = request->namespace,
        .job_id = request->argument,
        .id_prefix = said(body, "IdPrefixTemplate"),
        .payload = said(body, "Payload"),
        .meta = json_is_object(meta) ? meta : NULL,
        .token = token == NULL ? "" : token,
        .priority = json_integer_value(json_object_get(body, "Priority")),
    };
    struct alone_evaluation *made = calloc(1, sizeof(*made));
    struct err err = {0};

    check(made != NULL);
    if (alone_dispatch(request->api->parts->alone, &asked, made, &err) != 0) {
        free(made);
        api_refuse_err(request, &err);
        return;
    }
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_dispatched, made));
}

void api_job_dispatch(struct api_request *request)
{
    api_act(request, api_long_body(request, true, DISPATCH_BODY_MAX), fault_of, dispatch);
}

/* --- launching --- */

static json_t *make_launched(struct api *api, void *ctx)
{
    const struct alone_evaluation *made = ctx, *now = alone_evaluation(api->parts->alone, made->id);
    json_int_t index = (json_int_t)(now != NULL ? now->index : api_index(api));

    return json_pack("{s:s, s:I, s:I}", "EvalID", made->id, "EvalCreateIndex", index, "Index",
                     (json_int_t)api_index(api));
}

void api_job_force(struct api_request *request)
{
    struct alone_evaluation *made = calloc(1, sizeof(*made));
    struct err err = {0};

    check(made != NULL);
    if (alone_force(request->api->parts->alone, request->namespace, request->argument, made,
                    &err) != 0) {
        free(made);
        api_refuse_err(request, &err);
        return;
    }
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_launched, made));
}
