/*
 * Versions of a job over HTTP: those that are kept, what they were read of, how they differ, and
 * the way back to one.
 *
 * Follows nomad v2.0.5 command/agent/job_endpoint.go (jobVersions) and nomad/job_endpoint.go
 * (GetJobVersions, Revert).
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"
#include "spec/job.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- how they differ --- */

/* The answer, which is made aside: what is compared may be large. */
struct telling {
    struct api_aside aside;
    json_t *versions; /* the newest first */
    size_t reference; /* each is compared with this one, SIZE_MAX: with the one before it */
    struct writer written;
};

static void run_telling(struct api_aside *aside)
{
    struct telling *to = (struct telling *)aside;
    size_t count = json_array_size(to->versions);
    bool to_one = to->reference != SIZE_MAX;
    json_t *diffs = count > 1 || to_one ? json_array() : json_null();

    for (size_t i = 0; i < (to_one ? count : count - 1); i++) {
        const json_t *before = json_array_get(to->versions, to_one ? to->reference : i + 1);
        check(json_array_append_new(
                  diffs, jobspec_version_diff(before, json_array_get(to->versions, i))) == 0);
    }
    put_json_new(&to->written, NULL,
                 json_pack("{s:O, s:o}", "Versions", to->versions, "Diffs", diffs));
}

static void answer_telling(struct api_request *request, struct api_aside *aside)
{
    api_reply_written(request, &((struct telling *)aside)->written);
}

static void free_telling(struct api_aside *aside)
{
    struct telling *telling = (struct telling *)aside;

    json_decref(telling->versions);
    free(telling->written.bytes);
    free(telling);
}

/* VERSIONS (moved) with their differences. */
static void tell(struct api_request *request, json_t *versions, size_t reference)
{
    struct telling *telling = calloc(1, sizeof(*telling));

    check(telling != NULL);
    *telling = (struct telling){
        .aside = {.run = run_telling, .answer = answer_telling, .free = free_telling},
        .versions = versions,
        .reference = reference,
        .written = api_writer(request)};
    api_aside_start(request, &telling->aside);
}

static bool is_called(const json_t *version, const char *tag)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(version, "VersionTag"), "Name"));

    return name != NULL && text_equal(name, tag);
}

/* Which of VERSIONS the query wants all to be compared with; false after refusing it. */
static bool find_reference(struct api_request *request, const json_t *versions,
                           size_t *ret_reference)
{
    const char *tag = http_query(request->exchange, "diff_tag");
    int64_t wanted = -1;
    const json_t *version;
    size_t i;

    *ret_reference = SIZE_MAX;
    bool named = tag != NULL && tag[0] != '\0';
    if (!api_query_number(request, "diff_version", &wanted))
        return false;
    if (!named && wanted < 0)
        return true;
    json_array_foreach(versions, i, version)
    {
        if (named ? is_called(version, tag)
                  : json_integer_value(json_object_get(version, "Version")) == wanted)
            *ret_reference = i;
    }
    if (*ret_reference == SIZE_MAX && named)
        api_refuse(request, 404, "tag \"%.60s\" not found", tag);
    else if (*ret_reference == SIZE_MAX)
        api_refuse(request, 404, "version %" PRId64 " not found", wanted);
    return *ret_reference != SIZE_MAX;
}

/* --- the routes --- */

/* As many as are kept, the newest first. */
void api_job_versions(struct api_request *request)
{
    const struct alone_job *job = api_find_job(request);
    struct alone_job version;
    bool diffs = false;
    size_t reference;

    if (job == NULL || !api_query_bool(request, "diffs", &diffs))
        return;
    json_t *list = json_array();
    for (size_t i = 0; alone_version(job, i, &version); i++) {
        struct api_job_view view = {.job = &version,
                                    .status = alone_job_status(request->api->parts->alone, job)};

        check(json_array_append_new(list, api_format_job(&view)) == 0);
    }
    if (!diffs)
        api_reply(request, json_pack("{s:o, s:n}", "Versions", list, "Diffs"));
    else if (find_reference(request, list, &reference))
        tell(request, list, reference);
    else
        json_decref(list);
}

/* Nomad's words (v2.0.5 command/agent/job_endpoint.go jobSubmissionCRUD). */
void api_job_submission(struct api_request *request)
{
    struct alone *alone = request->api->parts->alone;
    const struct alone_job *job = alone_find(alone, request->namespace, request->argument);
    const char *text = http_query(request->exchange, "version");
    uint64_t version = 0;

    if (text == NULL || !text_to_u64(text, &version)) {
        api_refuse(request, 400, "Unable to parse job submission version parameter");
        return;
    }
    json_t *source = job == NULL ? NULL : alone_source(alone, job, version);
    if (source == NULL)
        api_refuse(request, 404, "job source not found");
    else
        api_reply(request, source);
}

/* --- tags --- */

/* Of the path ".../versions/<tag>/tag", which the route has seen to. */
static void tag_of_path(const struct api_request *request, char to[API_ARGUMENT_SIZE])
{
    const char *path = http_path(request->exchange), *end = path + strlen(path) - strlen("/tag");
    const char *begin = end;

    while (begin[-1] != '/')
        begin--;
    (void)text_format(to, API_ARGUMENT_SIZE, "%.*s", (int)(end - begin), begin);
}

static json_t *make_tagged(struct api *api, void *ctx)
{
    json_t *tag = json_loads(ctx, 0, NULL);

    check(json_object_set_new(tag, "Index", json_integer((json_int_t)api_index(api))) == 0);
    return tag;
}

/* TAG (moved), once it is true. */
static void reply_tagged(struct api_request *request, json_t *tag)
{
    char *text = json_dumps(tag, JSON_COMPACT);

    check(text != NULL);
    json_decref(tag);
    life_after_commit(request->api->parts->life, api_deferred_answer,
                      api_defer(request, make_tagged, text));
}

static void apply_tag(struct api_request *request, const char *name)
{
    json_t *body = api_body(request, true), *tag = NULL;
    const char *description = json_string_value(json_object_get(body, "Description"));
    json_int_t version = json_integer_value(json_object_get(body, "Version"));
    struct alone_tag wanted = {.namespace = request->namespace,
                               .job_id = request->argument,
                               .name = name,
                               .description = description == NULL ? "" : description,
                               .version = (uint64_t)version,
                               .latest = json_is_true(json_object_get(body, "Latest"))};
    struct err err = {0};

    if (body == NULL)
        return;
    if (!api_field_is(body, "Description", JSON_STRING) || !api_field_is(body, "Latest", JSON_TRUE))
        api_refuse(request, 400, "Description must be a text, and Latest true or false");
    else if (!api_field_is(body, "Version", JSON_INTEGER) || version < 0)
        api_refuse(request, 400, "Version must be a whole number, and not below 0");
    else if (wanted.latest && version > 0)
        api_refuse(request, 400, "version must be zero when tagging latest, got: %lld",
                   (long long)version);
    else if (alone_tag(request->api->parts->alone, &wanted, &tag, &err) != 0)
        api_refuse_err(request, &err);
    else
        reply_tagged(request, tag);
    json_decref(body);
}

/* Nomad's words (v2.0.5 nomad/job_endpoint.go TagVersion). */
void api_job_tag(struct api_request *request)
{
    char name[API_ARGUMENT_SIZE];
    struct err err = {0};

    tag_of_path(request, name);
    if (!text_equal(http_method(request->exchange), "DELETE"))
        apply_tag(request, name);
    else if (alone_untag(request->api->parts->alone, request->namespace, request->argument, name,
                         &err) != 0)
        api_refuse_err(request, &err);
    else
        reply_tagged(request,
                     json_pack("{s:s, s:s, s:i}", "Name", "", "Description", "", "TaggedTime", 0));
}

/* --- the way back --- */

/* Nomad's words (v2.0.5 nomad/job_endpoint.go Revert). */
void api_job_revert(struct api_request *request)
{
    const struct alone_job *job = api_find_job(request);
    json_t *body = job == NULL ? NULL : api_body(request, false);
    const char *id = json_string_value(json_object_get(body, "JobID"));
    const json_t *prior = json_object_get(body, "EnforcePriorVersion");
    const json_t *version = json_object_get(body, "JobVersion");
    struct alone_evaluation evaluation = {0};
    struct err err = {0};

    if (body == NULL)
        return;
    if (id == NULL || id[0] == '\0')
        api_refuse(request, 400, "JobID must be specified");
    else if (!text_equal(id, request->argument))
        api_refuse(request, 400, "Job ID does not match");
    else if (!api_field_is(body, "EnforcePriorVersion", JSON_INTEGER))
        api_refuse(request, 400, "EnforcePriorVersion must be a whole number");
    else if (json_is_integer(prior) && (uint64_t)json_integer_value(prior) != job->version)
        api_refuse(request, 400, "Current job has version %" PRIu64 "; enforcing version %lld",
                   job->version, (long long)json_integer_value(prior));
    else if (!json_is_integer(version) || json_integer_value(version) < 0)
        api_refuse(request, 400, "JobVersion must be specified");
    else if (alone_revert(request->api->parts->alone, job, (uint64_t)json_integer_value(version),
                          &evaluation, &err) != 0)
        api_refuse_err(request, &err);
    else
        api_reply_evaluation(request, &evaluation, "");
    json_decref(body);
}
