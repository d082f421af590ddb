/*
 * Jobs that are dispatched of parameterized ones.
 *
 * What is made is a job like any other, registered in one commit with its allocs; that it was
 * dispatched, and by whom it may be asked for again, is in what the journal holds of it.  It is
 * forgotten when the last of its allocs is.  Follows nomad v2.0.5 nomad/job_endpoint.go Dispatch.
 */
#include "server/alone/part.h"

#include "spec/job.h"

#include <stdlib.h>
#include <string.h>

/* What was dispatched before with the token of DISPATCH, NULL: nothing. */
static const struct job *made_before(const struct alone *alone,
                                     const struct alone_dispatch *dispatch)
{
    return dispatch->token[0] == '\0'
               ? NULL
               : job_by_token(alone, dispatch->namespace, dispatch->job_id, dispatch->token);
}

static int make_id(struct alone *alone, const struct alone_dispatch *dispatch,
                   char ret_id[SPEC_NAME_SIZE], struct err *err)
{
    int64_t unix_s = life_unix_ns(alone->config.life) / 1000000000;
    char uuid[UUID_TEXT_SIZE];

    alone->config.new_id(alone->config.ctx, uuid);
    if (!jobspec_dispatched_id(dispatch->job_id, dispatch->id_prefix, unix_s, uuid, ret_id))
        return err_set(err, ERR_INVALID,
                       "the id of the dispatched job would be longer than %d "
                       "bytes: give it a shorter prefix",
                       SPEC_NAME_SIZE - 1);
    if (job_find(alone, dispatch->namespace, ret_id) != NULL)
        return err_set(err, ERR_AGAIN, "job \"%s\" is there already: try again", ret_id);
    return 0;
}

/* A job as JSON, a new reference, that is to be registered as any other. */
static int make_job(struct alone *alone, const struct job *job,
                    const struct alone_dispatch *dispatch, json_t **ret_json, struct err *err)
{
    char id[SPEC_NAME_SIZE];
    int code = make_id(alone, dispatch, id, err);
    const struct jobspec_dispatch said = {
        .id = id,
        .payload = dispatch->payload,
        .meta = dispatch->meta,
        .token = dispatch->token,
        .priority = dispatch->priority,
    };

    if (code == 0)
        code = jobspec_dispatch(job->json, &said, ret_json, err);
    if (code < 0)
        return code;
    version_strip(*ret_json);
    return 0;
}

int alone_dispatch(struct alone *alone, const struct alone_dispatch *dispatch,
                   struct alone_evaluation *ret_evaluation, struct err *err)
{
    const struct job *job = job_find(alone, dispatch->namespace, dispatch->job_id), *before;
    json_t *json;

    if (job == NULL || json_object_get(job->json, "cairnPurge") != NULL)
        return err_set(err, ERR_GONE, "parameterized job not found");
    if (!jobspec_is_parameterized(job->json))
        return err_set(err, ERR_INVALID, "Specified job \"%s\" is not a parameterized job",
                       job->id);
    if (job->public.stop)
        return err_set(err, ERR_INVALID, "Specified job \"%s\" is stopped", job->id);
    int code = make_job(alone, job, dispatch, &json, err);
    if (code < 0)
        return code;
    before = made_before(alone, dispatch);
    if (before == NULL)
        return register_json(alone, json, NULL, NULL, "job-register", ret_evaluation, err);
    json_decref(json);
    *ret_evaluation = (struct alone_evaluation){.index = before->public.modify_index};
    (void)text_copy(ret_evaluation->job_id, sizeof(ret_evaluation->job_id), before->id);
    (void)text_copy(ret_evaluation->namespace, sizeof(ret_evaluation->namespace),
                    before->namespace); /* of one size */
    return 0;
}
