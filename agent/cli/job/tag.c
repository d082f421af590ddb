/* cairn job tag: names for versions of a job, by which they are kept and found. */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_flag tag_flags[] = {
    {"name", FLAG_TEXT, "NAME", "the tag"},
    {"description", FLAG_TEXT, "TEXT", "with apply: what there is to say of it"},
    {"version", FLAG_NUMBER, "N", "with apply: of this version; default: of the newest"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static const char *tag_path(struct cli *cli, char path[CLI_URL_SIZE], const json_t *job)
{
    return cli_path(cli, path, "/v1/job/%s/versions/%s/tag", cli_value(job, "ID"),
                    cli_text(cli, "name", ""));
}

static int apply(struct cli *cli, const json_t *job)
{
    json_t *answer, *version = json_object_get(job, "Version");
    char path[CLI_URL_SIZE];
    int64_t number = json_integer_value(version);

    if (cli_number(cli, "version", &number) != 0)
        return CLI_USAGE;
    json_t *body = json_pack("{s:I, s:s}", "Version", (json_int_t)number, "Description",
                             cli_text(cli, "description", ""));
    if (body == NULL)
        return cli_fail(CLI_USAGE, "the description is no UTF-8");
    int status = cli_put(cli, tag_path(cli, path, job), body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(answer);
    else
        (void)printf("Job version %lld tagged with name \"%s\"\n", (long long)number,
                     cli_text(cli, "name", ""));
    json_decref(answer);
    return CLI_OK;
}

static int unset(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    struct cli_reply reply;
    int status = cli_call(cli, "DELETE", tag_path(cli, path, job), NULL, &reply);

    if (status != 0)
        return status;
    free(reply.body);
    (void)printf("Tag \"%s\" removed from job \"%s\"\n", cli_text(cli, "name", ""),
                 cli_value(job, "ID"));
    return CLI_OK;
}

static int run_tag(struct cli *cli)
{
    const char *name = cli_text(cli, "name", "");
    bool applies = text_equal(cli_argument(cli, 0), "apply");
    json_t *job;

    if (!applies && !text_equal(cli_argument(cli, 0), "unset"))
        return cli_fail(CLI_USAGE, "a tag can be told to: apply, unset");
    if (name[0] == '\0' || strchr(name, '/') != NULL)
        return cli_fail(CLI_USAGE, "-name says which tag: any text without a slash");
    int status = cli_find_job(cli, cli_argument(cli, 1), &job);
    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = applies ? apply(cli, job) : unset(cli, job);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_tag = {
    .group = "job",
    .name = "tag",
    .arguments = "apply|unset ID",
    .min = 2,
    .max = 2,
    .summary = "Give a version of a job a name, by which it is kept and found; or take it away",
    .help = "  A version with a tag is kept whatever comes after it, and `job revert` and\n"
            "  `job history -p -diff-tag` take the name.\n\n"
            "    $ cairn job tag apply -name golden -version 3 web\n"
            "    $ cairn job revert web golden\n"
            "    $ cairn job tag unset -name golden web",
    .flags = tag_flags,
    .run = run_tag,
};
