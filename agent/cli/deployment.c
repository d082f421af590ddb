/*
 * cairn deployment: list, status, and what its users want of one: promote, pause, resume, fail.
 *
 * Follows nomad v2.0.5 command/deployment_*.go.
 */
#include "agent/cli/cli.h"

#include <string.h>

/* --- showing --- */

static bool has_canaries(const json_t *groups)
{
    json_t *group;
    const char *name;
    bool any = false;

    json_object_foreach((json_t *)(uintptr_t)groups, name, group) any =
        any || json_integer_value(json_object_get(group, "DesiredCanaries")) > 0;
    return any;
}

/* By when GROUP is to have come further, to the second. */
static const char *progress_of(const json_t *group)
{
    const char *by = cli_value(group, "RequireProgressBy");

    return by[0] == '\0' || text_starts_with(by, "0001-") ? "N/A" : cli_format("%.19sZ", by);
}

void cli_print_deployment(const struct cli *cli, const json_t *deployment)
{
    json_t *groups = json_object_get(deployment, "TaskGroups"), *group;
    struct cli_table facts = {0}, table = {0};
    bool canaries = has_canaries(groups);
    const char *name;

    cli_row(&facts, "ID", cli_short(cli, cli_value(deployment, "ID")));
    cli_row(&facts, "Status", cli_value(deployment, "Status"));
    cli_row(&facts, "Description", cli_value(deployment, "StatusDescription"));
    cli_table_print_pairs(&facts, stdout);
    cli_heading(cli, "Deployed");
    if (canaries)
        cli_row(&table, "Task Group", "Promoted", "Desired", "Canaries", "Placed", "Healthy",
                "Unhealthy", "Progress Deadline");
    else
        cli_row(&table, "Task Group", "Desired", "Placed", "Healthy", "Unhealthy",
                "Progress Deadline");
    json_object_foreach(groups, name, group)
    {
        const char *desired = cli_value(group, "DesiredTotal");
        const char *placed = cli_value(group, "PlacedAllocs");
        const char *healthy = cli_value(group, "HealthyAllocs");
        const char *unhealthy = cli_value(group, "UnhealthyAllocs");

        if (canaries)
            cli_row(&table, name, cli_value(group, "Promoted"), desired,
                    cli_value(group, "DesiredCanaries"), placed, healthy, unhealthy,
                    progress_of(group));
        else
            cli_row(&table, name, desired, placed, healthy, unhealthy, progress_of(group));
    }
    cli_table_print(&table, stdout);
}

static const struct cli_flag show_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_list(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *list, *deployment;
    size_t at;
    int status = cli_get(cli, cli_path(cli, path, "/v1/deployments"), &list, NULL);

    if (status != 0)
        return status;
    if (cli->json || json_array_size(list) == 0) {
        if (cli->json)
            cli_print_json(list);
        else
            (void)puts("No deployments found");
        json_decref(list);
        return CLI_OK;
    }
    cli_row(&table, "ID", "Job ID", "Job Version", "Status", "Description");
    json_array_foreach(list, at, deployment)
    {
        cli_row(&table, cli_short(cli, cli_value(deployment, "ID")), cli_value(deployment, "JobID"),
                cli_value(deployment, "JobVersion"), cli_value(deployment, "Status"),
                cli_value(deployment, "StatusDescription"));
    }
    cli_table_print(&table, stdout);
    json_decref(list);
    return CLI_OK;
}

const struct cli_verb cli_deployment_list = {
    .group = "deployment",
    .name = "list",
    .summary = "List the newest deployments of each job",
    .help = "    $ cairn deployment list",
    .flags = show_flags,
    .run = run_list,
};

static int run_status(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *deployment, *allocs;

    if (cli_argument(cli, 0) == NULL)
        return run_list(cli);
    int status = cli_find_one(cli, "deployment", "deployments", cli_argument(cli, 0), &deployment);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(deployment);
    } else {
        cli_print_deployment(cli, deployment);
        status = cli_get(
            cli, cli_path(cli, path, "/v1/deployment/allocations/%s", cli_value(deployment, "ID")),
            &allocs, NULL);
    }
    if (!cli->json && status == 0) {
        cli_heading(cli, "Allocations");
        cli_print_allocs(cli, allocs);
        json_decref(allocs);
    }
    json_decref(deployment);
    return status;
}

const struct cli_verb cli_deployment_status = {
    .group = "deployment",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "Show how far a deployment is, and what it has placed",
    .help = "  The beginning of an id is enough; without one all are listed.\n\n"
            "    $ cairn deployment status 8ad1b9ac",
    .flags = show_flags,
    .run = run_status,
};

/* --- steering --- */

/* Asks VERB of the deployment ID with BODY (moved). */
static int steer(struct cli *cli, const char *verb, const char *id, json_t *body)
{
    char path[CLI_URL_SIZE];
    json_t *answer = NULL;

    check(body != NULL);
    check(json_object_set_new(body, "DeploymentID", json_string(id)) == 0);
    int status = cli_put(cli, cli_path(cli, path, "/v1/deployment/%s/%s", verb, id), body, &answer);
    if (status == 0 && cli->json)
        cli_print_json(answer);
    else if (status == 0)
        (void)printf("Deployment \"%s\": %s\n", cli_short(cli, id),
                     text_equal(verb, "pause") && !json_is_true(json_object_get(body, "Pause"))
                         ? "resumed"
                     : text_equal(verb, "pause")   ? "paused"
                     : text_equal(verb, "promote") ? "promoted"
                                                   : "failed");
    const json_t *reverted = json_object_get(answer, "RevertedJobVersion");
    if (status == 0 && !cli->json && json_is_integer(reverted))
        (void)printf("The job goes back to version %lld\n",
                     (long long)json_integer_value(reverted));
    json_decref(body);
    json_decref(answer);
    return status;
}

static int steer_named(struct cli *cli, const char *verb, json_t *body)
{
    json_t *deployment;
    int status = cli_find_one(cli, "deployment", "deployments", cli_argument(cli, 0), &deployment);

    if (status != 0) {
        json_decref(body);
        return status;
    }
    status = steer(cli, verb, cli_value(deployment, "ID"), body);
    json_decref(deployment);
    return status;
}

/* All of its groups, or those of the flag. */
static json_t *promotion(const struct cli *cli)
{
    json_t *groups = json_array();
    const char *name;

    for (size_t i = 0; (name = cli_text_again(cli, "group", i)) != NULL; i++)
        check(json_array_append_new(groups, json_string(name)) == 0);
    return json_array_size(groups) > 0 ? json_pack("{s:b, s:o}", "All", 0, "Groups", groups)
                                       : json_pack("{s:b, s:o}", "All", 1, "Groups", groups);
}

static const struct cli_flag promote_flags[] = {
    {"group", FLAG_TEXT, "NAME", "only this group; may be repeated"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_promote(struct cli *cli)
{
    return steer_named(cli, "promote", promotion(cli));
}

const struct cli_verb cli_deployment_promote = {
    .group = "deployment",
    .name = "promote",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Let healthy canaries take the place of older allocs, and go on with the rest",
    .help = "    $ cairn deployment promote 8ad1b9ac\n"
            "    $ cairn deployment promote -group web 8ad1b9ac",
    .flags = promote_flags,
    .run = run_promote,
};

static int run_job_promote(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *job, *deployment = NULL;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = cli_get(cli, cli_path(cli, path, "/v1/job/%s/deployment", cli_value(job, "ID")),
                     &deployment, NULL);
    if (status == 0 && json_is_object(deployment))
        status = steer(cli, "promote", cli_value(deployment, "ID"), promotion(cli));
    else if (status == 0)
        status =
            cli_fail(CLI_FAILED, "job \"%s\" has no deployment to promote", cli_value(job, "ID"));
    json_decref(deployment);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_promote = {
    .group = "job",
    .name = "promote",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Promote the canaries of a job's newest deployment",
    .help = "    $ cairn job promote web",
    .flags = promote_flags,
    .run = run_job_promote,
};

static int run_pause(struct cli *cli)
{
    return steer_named(cli, "pause", json_pack("{s:b}", "Pause", 1));
}

const struct cli_verb cli_deployment_pause = {
    .group = "deployment",
    .name = "pause",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Replace nobody else until it is resumed",
    .help = "    $ cairn deployment pause 8ad1b9ac",
    .run = run_pause,
};

static int run_resume(struct cli *cli)
{
    return steer_named(cli, "pause", json_pack("{s:b}", "Pause", 0));
}

const struct cli_verb cli_deployment_resume = {
    .group = "deployment",
    .name = "resume",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Go on with a deployment that was paused",
    .help = "    $ cairn deployment resume 8ad1b9ac",
    .run = run_resume,
};

static int run_fail(struct cli *cli)
{
    return steer_named(cli, "fail", json_object());
}

const struct cli_verb cli_deployment_fail = {
    .group = "deployment",
    .name = "fail",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "End a deployment as failed; with auto_revert its job goes back",
    .help = "  What is not replaced yet stays as it is. Where a group of the job says\n"
            "  auto_revert, the last version whose deployment succeeded is run again.\n\n"
            "    $ cairn deployment fail 8ad1b9ac",
    .run = run_fail,
};
