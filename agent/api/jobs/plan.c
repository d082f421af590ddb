/*
 * What a job would come to if it were registered: PUT /v1/job/ID/plan.
 *
 * Follows nomad v1.1.2 nomad/job_endpoint.go (Plan); server/alone/plan.c answers.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "server/alone/alone.h"
#include "spec/cron.h"
#include "spec/job.h"

#include <stdlib.h>

/* What a plan reads of its request. */
struct planning {
    struct api_aside aside;
    const struct assign_plans *plans;
    struct alone_wanted wanted; /* its job is NULL if there is none: */
    json_t *problems;
    struct err err;
    bool diff;
};

static void run_planning(struct api_aside *aside)
{
    struct planning *to = (struct planning *)aside;
    json_t *body = api_aside_parse(aside, PARSE_OBJECT, NULL, &to->err);
    const json_t *job = json_object_get(body, "Job");

    if (body == NULL)
        return; /* err says why */
    to->diff = json_is_true(json_object_get(body, "Diff"));
    if (!api_field_is(body, "Diff", JSON_TRUE))
        (void)err_set(&to->err, ERR_INVALID, "Diff must be true or false"); /* kept there */
    else if (json_is_object(job))
        (void)alone_read_job(to->plans, job, &to->wanted, to->problems, &to->err); /* kept there */
    else
        (void)err_set(&to->err, ERR_INVALID, "Job required for plan"); /* kept likewise */
    json_decref(body);
}

static void free_planning(struct api_aside *aside)
{
    struct planning *planning = (struct planning *)aside;

    alone_wanted_free(&planning->wanted);
    json_decref(planning->problems);
    free(planning);
}

/* --- what is large --- */

/* The rest of an answer, which is made aside: it grows with the job. */
struct telling {
    struct api_aside aside;
    struct alone_plan plan;
    bool diff;
    json_t *answer; /* what is in it already */
    struct writer written;
};

static void run_telling(struct api_aside *aside)
{
    struct telling *to = (struct telling *)aside;
    char *warnings = jobspec_warnings(to->plan.after);

    check(json_object_set_new(to->answer, "Warnings", json_string(warnings)) == 0);
    check(json_object_set_new(to->answer, "Diff",
                              to->diff ? alone_plan_diff(&to->plan) : json_null()) == 0);
    put_json(&to->written, NULL, to->answer);
    free(warnings);
}

static void answer_telling(struct api_request *request, struct api_aside *aside)
{
    api_reply_written(request, &((struct telling *)aside)->written);
}

static void free_telling(struct api_aside *aside)
{
    struct telling *telling = (struct telling *)aside;

    alone_plan_free(&telling->plan);
    json_decref(telling->answer);
    free(telling->written.bytes);
    free(telling);
}

/* Tells PLAN, which is moved. */
static void tell(struct api_request *request, const struct alone_plan *plan, bool diff)
{
    const struct alone *alone = request->api->parts->alone;
    struct telling *telling = calloc(1, sizeof(*telling));
    int64_t next_s = alone_next_launch(alone, plan->after);
    char launch[API_TIME_SIZE];

    check(telling != NULL);
    telling->aside =
        (struct api_aside){.run = run_telling, .answer = answer_telling, .free = free_telling};
    telling->plan = *plan;
    telling->diff = diff;
    telling->written = api_writer(request);
    api_time(launch, next_s == CRON_NEVER ? 0 : next_s * 1000000000);
    /* There is no preemption, in the way Go says so. */
    telling->answer =
        json_pack("{s:{s:O, s:n}, s:o, s:I, s:n, s:s}", "Annotations", "DesiredTGUpdates",
                  plan->updates, "PreemptedAllocs", "FailedTGAllocs",
                  api_format_failed(plan->failed, alone_known(alone)), "JobModifyIndex",
                  (json_int_t)plan->job_modify_index, "CreatedEvals", "NextPeriodicLaunch", launch);
    check(telling->answer != NULL);
    api_aside_start(request, &telling->aside);
}

/* --- the route --- */

static void answer_planning(struct api_request *request, struct api_aside *aside)
{
    struct planning *planning = (struct planning *)aside;
    const char *id = json_string_value(json_object_get(planning->wanted.job, "ID"));
    struct alone_plan plan;

    if (planning->wanted.job == NULL)
        api_refuse_problems(request, planning->problems, &planning->err);
    else if (!text_equal(id, request->argument))
        api_refuse(request, 400, "Job ID does not match");
    else if (!api_must(request,
                       json_string_value(json_object_get(planning->wanted.job, "Namespace")),
                       request->route->need.any_of))
        return;
    else if (alone_plan(request->api->parts->alone, &planning->wanted, &plan, &planning->err) != 0)
        api_refuse_err(request, &planning->err);
    else
        tell(request, &plan, planning->diff);
}

void api_job_plan(struct api_request *request)
{
    struct planning *planning = calloc(1, sizeof(*planning));

    check(planning != NULL);
    planning->aside =
        (struct api_aside){.run = run_planning, .answer = answer_planning, .free = free_planning};
    planning->plans = alone_plans(request->api->parts->alone);
    planning->problems = json_array();
    api_aside_read(request, &planning->aside);
}
