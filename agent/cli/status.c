/* cairn status: whatever an id belongs to is shown by the verb that shows such. */
#include "agent/cli/cli.h"

static const struct cli_flag status_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {"short", FLAG_SWITCH, NULL, "without details"},
    {"self", FLAG_SWITCH, NULL, "the node of the agent that answers"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* What the argument names: the kind with an exact match, or the only one with any. */
static const char *find_context(const json_t *matches, const char *id)
{
    const char *context, *found = NULL;
    json_t *list, *entry;
    size_t at, kinds = 0;

    json_object_foreach((json_t *)matches, context, list)
    {
        json_array_foreach(list, at, entry)
        {
            if (text_equal(json_string_value(entry), id))
                return context;
        }
        if (json_array_size(list) > 0) {
            found = context;
            kinds++;
        }
    }
    return kinds == 1 ? found : NULL;
}

/* Who shows what a search has found in CONTEXT. */
static const struct cli_verb *verb_of(const char *context)
{
    static const struct {
        const char *context;
        const struct cli_verb *verb;
    } verbs[] = {
        {"allocs", &cli_alloc_status},   {"deployment", &cli_deployment_status},
        {"evals", &cli_eval_status},     {"host_volumes", &cli_volume_status},
        {"nodes", &cli_node_status},     {"plugins", &cli_plugin_status},
        {"volumes", &cli_volume_status},
    };

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (text_equal(context, verbs[i].context))
            return verbs[i].verb;
    }
    return &cli_job_status;
}

/* VERB, which has flags of its own, of which none but those of status were given. */
static int run_as(struct cli *cli, const struct cli_verb *verb)
{
    cli->verb = verb;
    return verb->run(cli);
}

static int run_status(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    const char *id = cli_argument(cli, 0);
    json_t *answer;

    if (id == NULL)
        return cli_switch(cli, "self") ? cli_node_status.run(cli) : cli_job_status.run(cli);
    json_t *body = json_pack("{s:s, s:s}", "Prefix", id, "Context", "all");
    if (body == NULL)
        return cli_fail(CLI_USAGE, "the id is no UTF-8");
    int status = cli_put(cli, cli_path(cli, path, "/v1/search"), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    const char *context = find_context(json_object_get(answer, "Matches"), id);
    if (context == NULL)
        status = cli_fail(CLI_FAILED,
                          "\"%s\" is not the beginning of exactly one id of a job, alloc, node, "
                          "evaluation, deployment, plugin or volume: try job status and the like",
                          id);
    else
        status = run_as(cli, verb_of(context));
    json_decref(answer);
    return status;
}

const struct cli_verb cli_status = {
    .group = "",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "List jobs, or show whatever an id belongs to",
    .help = "    $ cairn status\n"
            "    $ cairn status 3f2a91c4",
    .flags = status_flags,
    .run = run_status,
};
