/*
 * cairn eval: what the control plane has decided lately, and what waits to be decided.
 *
 * Follows nomad v2.0.5 command/eval_list.go and eval_status.go.
 */
#include "agent/cli/cli.h"

#include <string.h>

/* How many of all groups could not be placed, "" if the evaluation says nothing of that. */
static const char *failures_of(const json_t *evaluation)
{
    json_t *failed = json_object_get(evaluation, "FailedTGAllocs");

    return text_equal(cli_value(evaluation, "Status"), "blocked") ? "N/A - In Progress"
           : json_object_size(failed) > 0                         ? "true"
                                                                  : "false";
}

/* --- list --- */

static const struct cli_flag list_flags[] = {
    {"job", FLAG_TEXT, "JOB", "only those of this one, by its whole id"},
    {"status", FLAG_TEXT, "STATUS", "only complete, blocked or pending ones"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static bool is_meant(const struct cli *cli, const json_t *evaluation)
{
    const char *job = cli_text(cli, "job", NULL), *status = cli_text(cli, "status", NULL);

    return (job == NULL || text_equal(job, cli_value(evaluation, "JobID"))) &&
           (status == NULL || text_equal(status, cli_value(evaluation, "Status")));
}

static void print_list(const struct cli *cli, const json_t *list)
{
    struct cli_table table = {0};
    json_t *evaluation;
    size_t at;

    if (json_array_size(list) == 0) {
        (void)puts("No evals found");
        return;
    }
    cli_row(&table, "ID", "Priority", "Triggered By", "Job ID", "Namespace", "Status",
            "Placement Failures");
    json_array_foreach(list, at, evaluation)
    {
        cli_row(&table, cli_short(cli, cli_value(evaluation, "ID")),
                cli_value(evaluation, "Priority"), cli_value(evaluation, "TriggeredBy"),
                cli_value(evaluation, "JobID"), cli_value(evaluation, "Namespace"),
                cli_value(evaluation, "Status"), failures_of(evaluation));
    }
    cli_table_print(&table, stdout);
}

static int run_list(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *all, *list, *evaluation;
    size_t at;
    int status = cli_get(cli, cli_path(cli, path, "/v1/evaluations"), &all, NULL);

    if (status != 0)
        return status;
    list = json_array();
    json_array_foreach(all, at, evaluation)
    {
        if (is_meant(cli, evaluation))
            check(json_array_append(list, evaluation) == 0);
    }
    if (cli->json)
        cli_print_json(list);
    else
        print_list(cli, list);
    json_decref(list);
    json_decref(all);
    return CLI_OK;
}

const struct cli_verb cli_eval_list = {
    .group = "eval",
    .name = "list",
    .summary = "List what was decided lately, and what waits to be decided",
    .help = "  The newest 256 since the agent began are known.\n\n"
            "    $ cairn eval list -job web",
    .flags = list_flags,
    .run = run_list,
};

/* --- status --- */

static const struct cli_flag status_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static void print_evaluation(const struct cli *cli, const json_t *evaluation)
{
    json_t *groups = json_object_get(evaluation, "FailedTGAllocs"), *failed;
    const char *why = cli_value(evaluation, "StatusDescription"), *name;
    struct cli_table facts = {0};

    cli_row(&facts, "ID", cli_short(cli, cli_value(evaluation, "ID")));
    cli_row(&facts, "Create Time",
            cli_time(json_integer_value(json_object_get(evaluation, "CreateTime"))));
    cli_row(&facts, "Status", cli_value(evaluation, "Status"));
    cli_row(&facts, "Status Description", why[0] != '\0' ? why : cli_value(evaluation, "Status"));
    cli_row(&facts, "Type", cli_value(evaluation, "Type"));
    cli_row(&facts, "TriggeredBy", cli_value(evaluation, "TriggeredBy"));
    cli_row(&facts, "Job ID", cli_value(evaluation, "JobID"));
    cli_row(&facts, "Namespace", cli_value(evaluation, "Namespace"));
    cli_row(&facts, "Priority", cli_value(evaluation, "Priority"));
    cli_row(&facts, "Placement Failures", failures_of(evaluation));
    if (*cli_value(evaluation, "BlockedEval") != '\0')
        cli_row(&facts, "Blocked Eval", cli_short(cli, cli_value(evaluation, "BlockedEval")));
    if (text_equal(cli_value(evaluation, "Status"), "pending"))
        cli_row(&facts, "Wait Until", cli_value(evaluation, "WaitUntil"));
    cli_table_print_pairs(&facts, stdout);
    if (json_object_size(groups) > 0)
        cli_heading(cli, "Failed Placements");
    json_object_foreach(groups, name, failed) cli_print_failed(name, failed);
}

static int run_status(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *evaluation = NULL, *allocs;

    if (cli_argument(cli, 0) == NULL)
        return run_list(cli);
    int status = cli_find_one(cli, "eval", "evaluations", cli_argument(cli, 0), &evaluation);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(evaluation);
        json_decref(evaluation);
        return CLI_OK;
    }
    status = cli_get(
        cli, cli_path(cli, path, "/v1/evaluation/%s/allocations", cli_value(evaluation, "ID")),
        &allocs, NULL);
    if (status == 0) {
        print_evaluation(cli, evaluation);
        cli_heading(cli, "Allocations");
        cli_print_allocs(cli, allocs);
        json_decref(allocs);
    }
    json_decref(evaluation);
    return status;
}

const struct cli_verb cli_eval_status = {
    .group = "eval",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "Show what an evaluation has placed, and what it could not",
    .help = "    $ cairn eval status 3f2a91c4",
    .flags = status_flags,
    .run = run_status,
};
