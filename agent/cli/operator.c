/* cairn operator metrics. */
#include "agent/cli/cli.h"

#include <stdlib.h>

static const struct cli_flag metrics_flags[] = {
    {"format", FLAG_TEXT, "FORMAT", "json, the default, or prometheus"},
    {"pretty", FLAG_SWITCH, NULL, "JSON with lines and indentation"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_metrics(struct cli *cli)
{
    const char *format = cli_text(cli, "format", "json");
    bool prometheus = text_equal(format, "prometheus");
    bool pretty = cli_switch(cli, "pretty") || cli->json;
    struct cli_reply reply;

    if (!prometheus && !text_equal(format, "json"))
        return cli_fail(CLI_USAGE, "-format is json or prometheus, not \"%.40s\"", format);
    int status = cli_call(cli, "GET",
                          prometheus ? "/v1/metrics?format=prometheus"
                          : pretty   ? "/v1/metrics?pretty=true"
                                     : "/v1/metrics",
                          NULL, &reply);
    if (status != 0)
        return status;
    bool whole = fwrite(reply.body, 1, reply.length, stdout) == reply.length &&
                 (reply.length == 0 || reply.body[reply.length - 1] == '\n' || puts("") >= 0);
    free(reply.body);
    return whole ? CLI_OK : cli_fail(CLI_FAILED, "cannot write to standard output");
}

const struct cli_verb cli_operator_metrics = {
    .group = "operator",
    .name = "metrics",
    .arguments = "",
    .min = 0,
    .max = 0,
    .summary = "Print what the agent measures of itself, its host, its allocs and tasks",
    .help = "    $ cairn operator metrics -pretty\n"
            "    $ cairn operator metrics -format prometheus",
    .flags = metrics_flags,
    .run = run_metrics,
};
