/* cairn job history, and cairn job revert: the versions of a job that are kept. */
#include "agent/cli/cli.h"

#include <string.h>

static const struct cli_flag history_flags[] = {
    {"full", FLAG_SWITCH, NULL, "each version as JSON"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int show_versions(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *answer, *version;
    size_t at;
    const char *url = cli_path(cli, path, "/v1/job/%s/versions", cli_value(job, "ID"));
    int status = cli_get(cli, url, &answer, NULL);

    if (status != 0)
        return status;
    if (cli->json || cli_switch(cli, "full")) {
        cli_print_json(json_object_get(answer, "Versions"));
        json_decref(answer);
        return CLI_OK;
    }
    cli_row(&table, "Version", "Stable", "Submit Date");
    json_array_foreach(json_object_get(answer, "Versions"), at, version)
    {
        cli_row(&table, cli_value(version, "Version"), cli_value(version, "Stable"),
                cli_time(json_integer_value(json_object_get(version, "SubmitTime"))));
    }
    cli_table_print(&table, stdout);
    json_decref(answer);
    return CLI_OK;
}

static int run_history(struct cli *cli)
{
    json_t *job;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = show_versions(cli, job);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_history = {
    .group = "job",
    .name = "history",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "List the versions of a job that are kept",
    .help = "  A version is stable once its deployment has succeeded.\n\n"
            "    $ cairn job history web",
    .flags = history_flags,
    .run = run_history,
};

static const struct cli_flag revert_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int revert(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *answer = NULL;
    int64_t version;

    if (!text_to_i64(cli_argument(cli, 1), &version) || version < 0)
        return cli_fail(CLI_USAGE, "\"%s\" is no version: `cairn job history %s` lists them",
                        cli_argument(cli, 1), cli_value(job, "ID"));
    json_t *body =
        json_pack("{s:s, s:I}", "JobID", cli_value(job, "ID"), "JobVersion", (json_int_t)version);
    check(body != NULL);
    int status =
        cli_put(cli, cli_path(cli, path, "/v1/job/%s/revert", cli_value(job, "ID")), body, &answer);
    json_decref(body);
    if (status == 0 && cli->json)
        cli_print_json(answer);
    else if (status == 0 && cli_switch(cli, "detach"))
        (void)printf("Evaluation ID: %s\n", cli_value(answer, "EvalID"));
    else if (status == 0)
        status = cli_follow(cli, cli_value(answer, "EvalID"), cli_value(job, "ID"), cli->namespace,
                            false);
    json_decref(answer);
    return status;
}

static int run_revert(struct cli *cli)
{
    json_t *job;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = revert(cli, job);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_revert = {
    .group = "job",
    .name = "revert",
    .arguments = "ID VERSION",
    .min = 2,
    .max = 2,
    .summary = "Run an older version of a job again, as its newest one",
    .help = "    $ cairn job history web\n"
            "    $ cairn job revert web 3",
    .flags = revert_flags,
    .run = run_revert,
};
