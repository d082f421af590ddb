/*
 * cairn scaling policy: between which counts groups may be scaled, and what is to be known for it.
 *
 * Follows nomad v2.0.5 command/scaling_policy_list.go and scaling_policy_info.go.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const char *target_of(const json_t *policy)
{
    const json_t *target = json_object_get(policy, "Target");

    return cli_format("Namespace:%s,Job:%s,Group:%s", cli_value(target, "Namespace"),
                      cli_value(target, "Job"), cli_value(target, "Group"));
}

static void print_policies(const struct cli *cli, const json_t *list)
{
    struct cli_table table = {0};
    const json_t *policy;
    size_t at;

    if (json_array_size(list) == 0) {
        (void)puts("No policies found");
        return;
    }
    cli_row(&table, "ID", "Enabled", "Type", "Target");
    json_array_foreach(list, at, policy)
        cli_row(&table, cli_short(cli, cli_value(policy, "ID")), cli_value(policy, "Enabled"),
                cli_value(policy, "Type"), target_of(policy));
    cli_table_print(&table, stdout);
}

/* Those whose ids begin with PREFIX. */
static int get_list(struct cli *cli, const char *prefix, json_t **ret_list)
{
    char path[CLI_URL_SIZE];

    return cli_get(cli,
                   cli_path(cli, path, "/v1/scaling/policies?prefix=%s&job=%s&type=%s", prefix,
                            cli_text(cli, "job", ""), cli_text(cli, "type", "")),
                   ret_list, NULL);
}

static int list_policies(struct cli *cli)
{
    json_t *list;
    int status = get_list(cli, "", &list);

    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(list);
    else
        print_policies(cli, list);
    json_decref(list);
    return CLI_OK;
}

static void print_policy(const struct cli *cli, const json_t *policy)
{
    const json_t *said = json_object_get(policy, "Policy");
    struct cli_table facts = {0};

    if (cli->json) {
        cli_print_json(policy);
        return;
    }
    cli_row(&facts, "ID", cli_short(cli, cli_value(policy, "ID")));
    cli_row(&facts, "Enabled", cli_value(policy, "Enabled"));
    cli_row(&facts, "Target", target_of(policy));
    cli_row(&facts, "Min", cli_value(policy, "Min"));
    cli_row(&facts, "Max", cli_value(policy, "Max"));
    cli_table_print_pairs(&facts, stdout);
    (void)puts("\nPolicy:");
    if (json_object_size(said) == 0)
        (void)puts("<empty>");
    else
        cli_print_json(said);
}

static int show_policy(struct cli *cli, const char *prefix)
{
    char path[CLI_URL_SIZE];
    json_t *list, *policy;

    cli->namespace = "*"; /* its id says enough */
    int status = get_list(cli, prefix, &list);
    if (status != 0)
        return status;
    size_t count = json_array_size(list);
    if (count == 1) {
        const char *id = cli_value(json_array_get(list, 0), "ID");
        status = cli_get(cli, cli_path(cli, path, "/v1/scaling/policy/%s", id), &policy, NULL);
    } else {
        status = cli_fail(CLI_FAILED,
                          "%zu scaling policies have an id that begins with \"%s\"; "
                          "`cairn scaling policy list` shows all",
                          count, prefix);
    }
    json_decref(list);
    if (status != 0)
        return status;
    print_policy(cli, policy);
    json_decref(policy);
    return CLI_OK;
}

static const struct cli_flag policy_flags[] = {
    {"job", FLAG_TEXT, "ID", "list: only those of this job"},
    {"type", FLAG_TEXT, "TYPE", "list: only those of this type"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_policy(struct cli *cli)
{
    const char *what = cli_argument(cli, 0), *id = cli_argument(cli, 1);

    if (text_equal(what, "list") && id == NULL)
        return list_policies(cli);
    if (text_equal(what, "info") && id != NULL)
        return show_policy(cli, id);
    return cli_fail(CLI_USAGE, "write scaling policy list, or scaling policy info ID");
}

const struct cli_verb cli_scaling_policy = {
    .group = "scaling",
    .name = "policy",
    .arguments = "list | info ID",
    .min = 1,
    .max = 2,
    .summary = "List and show the scaling policies of groups",
    .help = "  They are kept for whoever scales: cairn itself only sees to their min and max.\n\n"
            "    $ cairn scaling policy list -job web\n"
            "    $ cairn scaling policy info 5cb3a1f0",
    .flags = policy_flags,
    .run = run_policy,
};
