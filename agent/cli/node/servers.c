/*
 * cairn node config: which servers the agent takes its work from.  Follows nomad v2.0.6
 * command/node_config.go.
 */
#include "agent/cli/cli.h"

static int show_servers(struct cli *cli)
{
    json_t *answer, *one;
    int status = cli_get(cli, "/v1/agent/servers", &answer, NULL);
    size_t i;

    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(answer);
    else
        json_array_foreach(answer, i, one)
        {
            (void)puts(json_string_value(one));
        }
    json_decref(answer);
    return CLI_OK;
}

static int set_servers(struct cli *cli)
{
    char path[CLI_URL_SIZE] = "/v1/agent/servers";
    const char *address;
    json_t *answer;

    for (uint8_t i = 0; (address = cli_argument(cli, i)) != NULL; i++) {
        if (!cli_query(path, "address", address))
            return cli_fail(CLI_USAGE, "these are too many servers");
    }
    int status = cli_put(cli, path, NULL, &answer);
    if (status != 0)
        return status;
    json_decref(answer);
    if (!cli->json)
        (void)puts("The agent asks these servers now.  A restart begins with those of its "
                   "configuration.");
    return CLI_OK;
}

static int run_config(struct cli *cli)
{
    bool shows = cli_given(cli, "servers"), sets = cli_given(cli, "update-servers");

    if (shows == sets || shows == (cli_argument(cli, 0) != NULL))
        return cli_fail(CLI_USAGE, "give -servers, or -update-servers with HOST[:PORT]...");
    return shows ? show_servers(cli) : set_servers(cli);
}

static const struct cli_flag config_flags[] = {
    {"servers", FLAG_SWITCH, NULL, "show which servers the agent knows, the one it asks first"},
    {"update-servers", FLAG_SWITCH, NULL, "from now on they are these"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_node_config = {
    .group = "node",
    .name = "config",
    .arguments = "-servers | -update-servers HOST[:PORT]...",
    .max = UINT8_MAX,
    .summary = "Show or change the servers of an agent that is a client of some",
    .help = "  For when all that it knows have moved: they say who the others are as soon as one\n"
            "  answers.  The port is 4647 if none is given.\n\n"
            "    $ cairn node config -servers\n"
            "    $ cairn node config -update-servers 10.0.0.7 10.0.0.8:4647",
    .flags = config_flags,
    .run = run_config,
};
