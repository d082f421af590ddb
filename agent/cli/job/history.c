/* cairn job history, and cairn job revert: the versions of a job that are kept, and how they
 * differ. */
#include "agent/cli/cli.h"

#include <string.h>

static const struct cli_flag history_flags[] = {
    {"p", FLAG_SWITCH, NULL, "how each version differs from the one before it"},
    {"diff-version", FLAG_NUMBER, "N", "with -p: from this one"},
    {"diff-tag", FLAG_TEXT, "NAME", "with -p: from the one with this tag"},
    {"version", FLAG_NUMBER, "N", "this one only"},
    {"full", FLAG_SWITCH, NULL, "each version as JSON"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* True if VERSION is shown, when only ONLY is, or below 0 all are. */
static bool is_shown(const json_t *version, int64_t only)
{
    return only < 0 || json_integer_value(json_object_get(version, "Version")) == only;
}

static const char *tag_of(const json_t *version)
{
    return cli_value(json_object_get(version, "VersionTag"), "Name");
}

static void print_table(const json_t *versions, int64_t only)
{
    struct cli_table table = {0};
    json_t *version;
    size_t at;

    cli_row(&table, "Version", "Stable", "Submit Date", "Tag");
    json_array_foreach(versions, at, version)
    {
        if (is_shown(version, only))
            cli_row(&table, cli_value(version, "Version"), cli_value(version, "Stable"),
                    cli_time(json_integer_value(json_object_get(version, "SubmitTime"))),
                    tag_of(version));
    }
    cli_table_print(&table, stdout);
}

/* One after another, each with its difference, if it has one. */
static void print_differences(const json_t *versions, const json_t *diffs, int64_t only)
{
    struct cli_table table = {0};
    const char *between = "";
    json_t *version;
    size_t at;

    json_array_foreach(versions, at, version)
    {
        const json_t *diff = json_array_get(diffs, at);

        if (!is_shown(version, only))
            continue;
        (void)printf("%s", between);
        between = "\n";
        cli_row(&table, "Version", cli_value(version, "Version"));
        cli_row(&table, "Stable", cli_value(version, "Stable"));
        cli_row(&table, "Submit Date",
                cli_time(json_integer_value(json_object_get(version, "SubmitTime"))));
        if (tag_of(version)[0] != '\0')
            cli_row(&table, "Tag", tag_of(version));
        cli_table_print_pairs(&table, stdout);
        if (diff != NULL && !text_equal(cli_value(diff, "Type"), "None")) {
            (void)puts("Diff        =");
            cli_print_diff(diff, false);
        }
    }
}

static void print_versions(const json_t *versions, int64_t only)
{
    json_t *shown = json_array(), *version;
    size_t at;

    json_array_foreach(versions, at, version)
    {
        if (is_shown(version, only))
            check(json_array_append(shown, version) == 0);
    }
    cli_print_json(shown);
    json_decref(shown);
}

/* The answer about the versions of JOB, of which one is ONLY, or below 0 whichever; that it has no
 * such version is said.  With DIFFS, how they differ from REFERENCE, a version or a tag, "": each
 * from the one before. */
static int ask_versions(struct cli *cli, const json_t *job, int64_t only, bool diffs,
                        const char *reference, bool is_tag, json_t **ret_answer)
{
    char path[CLI_URL_SIZE];
    const char *id = cli_value(job, "ID");
    json_t *answer, *version;
    size_t at;
    int status = cli_get(cli,
                         cli_path(cli, path, "/v1/job/%s/versions?diffs=%s&diff_%s=%s", id,
                                  diffs ? "true" : "false", is_tag ? "tag" : "version", reference),
                         &answer, NULL);

    if (status != 0)
        return status;
    *ret_answer = answer;
    json_array_foreach(json_object_get(answer, "Versions"), at, version)
    {
        if (is_shown(version, only))
            return 0;
    }
    json_decref(answer);
    return cli_fail(CLI_FAILED, "job \"%s\" has no version %lld: `cairn job history %s` lists them",
                    id, (long long)only, id);
}

int cli_find_version(struct cli *cli, const json_t *job, int64_t number, json_t **ret_version)
{
    json_t *answer, *version;
    size_t at;
    int status = ask_versions(cli, job, number, false, "", false, &answer);

    if (status != 0)
        return status;
    json_array_foreach(json_object_get(answer, "Versions"), at, version)
    {
        if (is_shown(version, number))
            *ret_version = json_incref(version);
    }
    json_decref(answer);
    return 0;
}

static int show_versions(struct cli *cli, json_t *job)
{
    const char *reference = cli_text(cli, "diff-version", ""), *tag = cli_text(cli, "diff-tag", "");
    bool diffs = cli_switch(cli, "p");
    int64_t only = -1, unused;
    json_t *answer;

    if (cli_number(cli, "version", &only) != 0 || cli_number(cli, "diff-version", &unused) != 0)
        return CLI_USAGE;
    if ((reference[0] != '\0' || tag[0] != '\0') && !diffs)
        return cli_fail(CLI_USAGE, "-diff-version and -diff-tag go with -p");
    if (reference[0] != '\0' && tag[0] != '\0')
        return cli_fail(CLI_USAGE, "either -diff-version or -diff-tag");
    int status = ask_versions(cli, job, only, diffs, tag[0] != '\0' ? tag : reference,
                              tag[0] != '\0', &answer);
    if (status != 0)
        return status;
    const json_t *versions = json_object_get(answer, "Versions");
    if (cli->json || cli_switch(cli, "full"))
        print_versions(versions, only);
    else if (diffs)
        print_differences(versions, json_object_get(answer, "Diffs"), only);
    else
        print_table(versions, only);
    json_decref(answer);
    return CLI_OK;
}

static int run_history(struct cli *cli)
{
    return cli_with_job(cli, show_versions);
}

const struct cli_verb cli_job_history = {
    .group = "job",
    .name = "history",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "List the versions of a job that are kept",
    .help = "  A version is stable once its deployment has succeeded.\n\n"
            "    $ cairn job history web\n"
            "    $ cairn job history -p -version 3 web",
    .flags = history_flags,
    .run = run_history,
};

static const struct cli_flag revert_flags[] = {
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* The version of JOB that TEXT means: its number, or its tag. */
static int find_number(struct cli *cli, const json_t *job, const char *text, int64_t *ret_number)
{
    json_t *answer, *version;
    bool found = false;
    size_t at;

    if (text_to_i64(text, ret_number) && *ret_number >= 0)
        return 0;
    int status = ask_versions(cli, job, -1, false, "", false, &answer);
    if (status != 0)
        return status;
    json_array_foreach(json_object_get(answer, "Versions"), at, version)
    {
        if (!text_equal(tag_of(version), text))
            continue;
        *ret_number = json_integer_value(json_object_get(version, "Version"));
        found = true;
    }
    json_decref(answer);
    return found ? 0
                 : cli_fail(CLI_USAGE,
                            "\"%s\" is no version and no tag: `cairn job history %s` lists them",
                            text, cli_value(job, "ID"));
}

static int revert(struct cli *cli, json_t *job)
{
    char path[CLI_URL_SIZE];
    json_t *answer = NULL;
    int64_t version;
    int status = find_number(cli, job, cli_argument(cli, 1), &version);

    if (status != 0)
        return status;
    json_t *body =
        json_pack("{s:s, s:I}", "JobID", cli_value(job, "ID"), "JobVersion", (json_int_t)version);
    check(body != NULL);
    status =
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
    return cli_with_job(cli, revert);
}

const struct cli_verb cli_job_revert = {
    .group = "job",
    .name = "revert",
    .arguments = "ID VERSION|TAG",
    .min = 2,
    .max = 2,
    .summary = "Run an older version of a job again, as its newest one",
    .help = "    $ cairn job history web\n"
            "    $ cairn job revert web 3",
    .flags = revert_flags,
    .run = run_revert,
};
