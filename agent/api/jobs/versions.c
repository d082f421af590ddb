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

/* Which of VERSIONS the query wants all to be compared with; false after refusing it. */
static bool find_reference(struct api_request *request, const json_t *versions,
                           size_t *ret_reference)
{
    const char *tag = http_query(request->exchange, "diff_tag");
    int64_t wanted = -1;
    const json_t *version;
    size_t i;

    *ret_reference = SIZE_MAX;
    if (tag != NULL && tag[0] != '\0') {
        api_refuse(request, 404, "tag \"%.60s\" not found: versions have no tags here", tag);
        return false;
    }
    if (!api_query_number(request, "diff_version", &wanted))
        return false;
    if (wanted < 0)
        return true;
    json_array_foreach(versions, i, version)
    {
        if (json_integer_value(json_object_get(version, "Version")) == wanted)
            *ret_reference = i;
    }
    if (*ret_reference == SIZE_MAX)
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
