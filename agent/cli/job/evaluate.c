/*
 * cairn job eval, and cairn job start: a job is looked at again; one that was stopped runs again.
 *
 * Follows nomad v2.0.5 command/job_eval.go and job_start.go.
 */
#include "agent/cli/cli.h"

/* What ANSWER says was begun for JOB: followed, or only named. */
static int tell(struct cli *cli, const json_t *job, const json_t *answer, const char *done)
{
    const char *id = cli_value(answer, "EvalID");

    if (cli->json) {
        cli_print_json(answer);
        return CLI_OK;
    }
    if (id[0] != '\0' && !cli_switch(cli, "detach"))
        return cli_follow(cli, id, cli_value(job, "ID"), cli->namespace, false);
    (void)puts(done);
    if (id[0] != '\0')
        (void)printf("Evaluation ID: %s\n", id);
    return CLI_OK;
}

/* --- eval --- */

static const struct cli_flag eval_flags[] = {
    {"force-reschedule", FLAG_SWITCH, NULL, "what has failed is replaced now, whatever was tried"},
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int evaluate(struct cli *cli, json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *answer;
    json_t *body = json_pack("{s:s, s:{s:b}}", "JobID", cli_value(job, "ID"), "EvalOptions",
                             "ForceReschedule", cli_switch(cli, "force-reschedule"));

    check(body != NULL);
    int status = cli_put(cli, cli_path(cli, path, "/v1/job/%s/evaluate", cli_value(job, "ID")),
                         body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    status = tell(cli, job, answer, "Evaluation created");
    json_decref(answer);
    return status;
}

static int run_eval(struct cli *cli)
{
    return cli_with_job(cli, evaluate);
}

const struct cli_verb cli_job_eval = {
    .group = "job",
    .name = "eval",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Place what a job misses, and with a flag what has failed of it",
    .help = "  What has failed comes back by itself when its reschedule block says so. With\n"
            "  -force-reschedule it does now, whatever was tried, if its group is to be\n"
            "  rescheduled at all and its deployment has not failed.\n\n"
            "    $ cairn job eval -force-reschedule web",
    .flags = eval_flags,
    .run = run_eval,
};

/* --- start --- */

static const struct cli_flag start_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int start(struct cli *cli, json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *answer, *body;

    if (!json_is_true(json_object_get(job, "Stop")))
        return cli_fail(CLI_FAILED, "job \"%s\" has not been stopped, it is %s",
                        cli_value(job, "ID"), cli_value(job, "Status"));
    check(json_object_set_new(job, "Stop", json_false()) == 0);
    body = json_pack("{s:O, s:b, s:I}", "Job", job, "EnforceIndex", 1, "JobModifyIndex",
                     json_integer_value(json_object_get(job, "JobModifyIndex")));
    check(body != NULL);
    int status = cli_put(cli, cli_path(cli, path, "/v1/jobs"), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    cli_print_warnings(answer);
    status = tell(cli, job, answer, "Job start successful");
    json_decref(answer);
    return status;
}

static int run_start(struct cli *cli)
{
    return cli_with_job(cli, start);
}

const struct cli_verb cli_job_start = {
    .group = "job",
    .name = "start",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Run a job again that was stopped, as it was",
    .help = "    $ cairn job start web",
    .flags = start_flags,
    .run = run_start,
};
