/*
 * cairn job periodic force: launches a periodic job now.
 *
 * Follows nomad v2.0.5 command/job_periodic_force.go.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_flag periodic_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int force(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *answer, *evaluation;

    cli->namespace = cli_namespace_of(cli, job);
    int status = cli_put(
        cli, cli_path(cli, path, "/v1/job/%s/periodic/force", cli_value(job, "ID")), NULL, &answer);
    if (status != 0)
        return status;
    const char *id = cli_value(answer, "EvalID");
    if (cli->json) {
        cli_print_json(answer);
    } else if (cli_switch(cli, "detach")) {
        (void)printf("Force periodic successful\nEvaluation ID: %s\n", id);
    } else {
        status = cli_get(cli, cli_path(cli, path, "/v1/evaluation/%s", id), &evaluation, NULL);
        if (status == 0) {
            status = cli_follow(cli, id, cli_value(evaluation, "JobID"), cli->namespace, false);
            json_decref(evaluation);
        }
    }
    json_decref(answer);
    return status;
}

static int run_periodic(struct cli *cli)
{
    json_t *job;

    if (!text_equal(cli_argument(cli, 0), "force"))
        return cli_fail(CLI_USAGE, "a periodic job can be told to: force");
    int status = cli_find_job(cli, cli_argument(cli, 1), &job);
    if (status != 0)
        return status;
    status = force(cli, job);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_periodic = {
    .group = "job",
    .name = "periodic",
    .arguments = "force ID",
    .min = 2,
    .max = 2,
    .summary = "Launch a periodic job now, be it time or not",
    .help = "  What is launched is a job of its own, also while others of it run.  Waits as\n"
            "  `job run` does.\n\n"
            "    $ cairn job periodic force backup",
    .flags = periodic_flags,
    .run = run_periodic,
};
