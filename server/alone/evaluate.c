/*
 * A job is looked at because a user asks: what it misses is placed.
 *
 * What has failed comes back when it is time, and not because of that; unless it is forced to, in
 * whichever try it is, where its group is to be rescheduled at all.  Follows nomad v2.0.5
 * nomad/job_endpoint.go Evaluate.
 */
#include "server/alone/part.h"

#include "spec/job.h"

static int check_job(const struct job *job, const char *job_id, struct err *err)
{
    if (job == NULL)
        return err_set(err, ERR_GONE, "job \"%s\" not found", job_id);
    if (jobspec_is_periodic(job->json))
        return err_set(err, ERR_INVALID, "can't evaluate periodic job");
    if (jobspec_is_parameterized(job->json))
        return err_set(err, ERR_INVALID, "can't evaluate parameterized job");
    return 0;
}

int alone_evaluate(struct alone *alone, const char *namespace, const char *job_id, bool force,
                   struct alone_evaluation *ret_evaluation, struct err *err)
{
    struct job *job = job_find(alone, namespace, job_id);
    int code = check_job(job, job_id, err);

    if (code == 0)
        code = life_check_turn(alone->config.life, 0, err);
    if (code < 0)
        return code;
    struct gathering gathering = {.alone = alone,
                                  .job = job,
                                  .wanted = job->json,
                                  .evaluates = force ? EVALUATE_FORCED : EVALUATE_AS_IT_IS};
    struct change change = change_begin(alone, job);
    *ret_evaluation = evaluation_begin(alone, job, "job-register"); /* as Nomad calls it */
    gathering_fill(&gathering);
    if (!job->public.stop)
        code = alone_reconcile(alone, &change, &gathering, ret_evaluation, err);
    code = change_end(alone, &change, code);
    gathering_free(&gathering);
    if (code < 0)
        return code;
    evaluation_keep(alone, ret_evaluation);
    say(&alone->config.say, SAY_INFO, "server", "job evaluated job=%s placed=%u stopped=%u",
        text_value(job->id), ret_evaluation->placed, ret_evaluation->stopped);
    return 0;
}
