/* cairn job: status, inspect. */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* --- status --- */

static const struct cli_flag status_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "whole ids, and the evaluations"},
    {"short", FLAG_SWITCH, NULL, "the job alone, without its allocs"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* True if JOB, whole or of a list, is there to be dispatched. */
static bool is_parameterized(const json_t *job)
{
    const json_t *block = json_object_get(job, "ParameterizedJob");

    return json_is_true(block) ||
           (json_is_object(block) && !json_is_true(json_object_get(job, "Dispatched")));
}

/* True if JOB, whole or of a list, is launched at times. */
static bool is_periodic(const json_t *job)
{
    const json_t *block = json_object_get(job, "Periodic");

    return json_is_true(block) || json_is_object(block);
}

static const char *type_of(const json_t *job)
{
    return cli_format("%s%s", cli_value(job, "Type"),
                      is_parameterized(job) ? "/parameterized"
                      : is_periodic(job)    ? "/periodic"
                                            : "");
}

static int list_jobs(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    struct cli_table table = {0};
    json_t *list, *job;
    size_t at;

    int status = cli_get(cli, cli_path(cli, path, "/v1/jobs"), &list, NULL);
    if (status != 0)
        return status;
    if (cli->json) {
        cli_print_json(list);
    } else if (json_array_size(list) == 0) {
        (void)puts("No jobs");
    } else {
        cli_row(&table, "ID", "Type", "Priority", "Status", "Submit Date");
        json_array_foreach(list, at, job)
        {
            bool stopped = json_is_true(json_object_get(job, "Stop"));

            cli_row(&table, cli_value(job, "ID"), type_of(job), cli_value(job, "Priority"),
                    cli_format("%s%s", cli_value(job, "Status"), stopped ? " (stopped)" : ""),
                    cli_time(json_integer_value(json_object_get(job, "SubmitTime"))));
        }
        cli_table_print(&table, stdout);
    }
    json_decref(list);
    return CLI_OK;
}

static void print_summary(const struct cli *cli, const json_t *summary)
{
    struct cli_table table = {0};
    const char *name;
    json_t *group;

    cli_heading(cli, "Summary");
    cli_row(&table, "Task Group", "Queued", "Starting", "Running", "Failed", "Complete", "Lost");
    json_object_foreach(json_object_get(summary, "Summary"), name, group)
    {
        cli_row(&table, name, cli_value(group, "Queued"), cli_value(group, "Starting"),
                cli_value(group, "Running"), cli_value(group, "Failed"),
                cli_value(group, "Complete"), cli_value(group, "Lost"));
    }
    cli_table_print(&table, stdout);
}

static void print_evaluations(const struct cli *cli, const json_t *list)
{
    struct cli_table table = {0};
    json_t *evaluation;
    size_t at;

    cli_heading(cli, "Evaluations");
    cli_row(&table, "ID", "Priority", "Triggered By", "Status");
    json_array_foreach(list, at, evaluation)
    {
        cli_row(&table, cli_short(cli, cli_value(evaluation, "ID")),
                cli_value(evaluation, "Priority"), cli_value(evaluation, "TriggeredBy"),
                cli_value(evaluation, "Status"));
    }
    cli_table_print(&table, stdout);
}

static void print_job(const json_t *job)
{
    struct cli_table table = {0};
    char datacenters[256] = "";
    json_t *datacenter;
    size_t at;
    bool stopped = json_is_true(json_object_get(job, "Stop"));
    const char *next = cli_value(job, "NextPeriodicLaunch");

    json_array_foreach(json_object_get(job, "Datacenters"), at, datacenter)
    {
        (void)text_append(datacenters, sizeof(datacenters), at > 0 ? "," : ""); /* a cut list */
        (void)text_append(datacenters, sizeof(datacenters), json_string_value(datacenter)); /* is */
    } /* enough */
    cli_row(&table, "ID", cli_value(job, "ID"));
    cli_row(&table, "Name", cli_value(job, "Name"));
    cli_row(&table, "Submit Date",
            cli_time(json_integer_value(json_object_get(job, "SubmitTime"))));
    cli_row(&table, "Type", type_of(job));
    cli_row(&table, "Priority", cli_value(job, "Priority"));
    cli_row(&table, "Datacenters", datacenters);
    cli_row(&table, "Namespace", cli_value(job, "Namespace"));
    cli_row(&table, "Version", cli_value(job, "Version"));
    cli_row(&table, "Status",
            cli_format("%s%s", cli_value(job, "Status"), stopped ? " (stopped)" : ""));
    if (is_periodic(job))
        cli_row(&table, "Periodic", cli_value(json_object_get(job, "Periodic"), "Enabled"));
    if (is_periodic(job) && !stopped)
        cli_row(&table, "Next Periodic Launch", *next == '\0' ? "none" : next);
    cli_table_print_pairs(&table, stdout);
}

static void print_warnings(const struct cli *cli, const json_t *job)
{
    const char *warnings = cli_value(job, "Warnings");

    if (warnings[0] == '\0')
        return;
    cli_heading(cli, "Warnings");
    (void)puts(warnings);
}

void cli_print_failed(const char *group, const json_t *failed)
{
    static const struct {
        const char *field, *before, *behind;
    } parts[] = {
        {"ClassFiltered", "Class", ": 1 nodes excluded by filter"},
        {"ConstraintFiltered", "Constraint", ": 1 nodes excluded by filter"},
        {"ClassExhausted", "Class", " exhausted on 1 nodes"},
        {"DimensionExhausted", "Dimension", " exhausted on 1 nodes"},
    };
    json_int_t count = 1 + json_integer_value(json_object_get(failed, "CoalescedFailures"));
    const char *name;
    json_t *value;

    (void)printf("Task Group \"%s\" (failed to place %lld allocation%s):\n", group,
                 (long long)count, count == 1 ? "" : "s");
    if (json_integer_value(json_object_get(failed, "NodesEvaluated")) == 0)
        (void)puts("    * No nodes were eligible for evaluation");
    json_object_foreach(json_object_get(failed, "NodesAvailable"), name, value)
    {
        if (json_integer_value(value) == 0)
            (void)printf("    * No nodes are available in datacenter \"%s\"\n", name);
    }
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        json_object_foreach(json_object_get(failed, parts[i].field), name, value)(void)
            printf("    * %s \"%s\"%s\n", parts[i].before, name, parts[i].behind);
    }
}

/* DEPLOYMENT: null if there was none. */
static void print_deployment(const struct cli *cli, const json_t *deployment)
{
    if (!json_is_object(deployment))
        return;
    cli_heading(cli, "Latest Deployment");
    cli_print_deployment(cli, deployment);
}

/* True if an evaluation says more: why, or until when. */
static bool something_waits(const json_t *summary, const json_t *allocs)
{
    const json_t *alloc;
    json_t *group;
    const char *name;
    bool waits = false;
    size_t at;

    json_object_foreach(json_object_get(summary, "Summary"), name, group) waits |=
        json_integer_value(json_object_get(group, "Queued")) > 0;
    json_array_foreach(allocs, at, alloc) waits |=
        *cli_value(alloc, "FollowupEvalID") != '\0' && *cli_value(alloc, "NextAllocation") == '\0';
    return waits;
}

/* Why something waits, or until when. */
static void print_waiting(const struct cli *cli, const json_t *evaluations)
{
    struct cli_table table = {0};
    const char *group;
    json_t *evaluation, *failed;
    size_t at;

    json_array_foreach(evaluations, at, evaluation)
    {
        const char *status = cli_value(evaluation, "Status");

        if (text_equal(status, "blocked")) {
            cli_heading(cli, "Placement Failure");
            json_object_foreach(json_object_get(evaluation, "FailedTGAllocs"), group, failed)
                cli_print_failed(group, failed);
        }
        if (!text_equal(status, "pending"))
            continue;
        if (table.count == 0)
            cli_row(&table, "Eval ID", "Triggered By", "Eval Time");
        cli_row(&table, cli_short(cli, cli_value(evaluation, "ID")),
                cli_value(evaluation, "TriggeredBy"), cli_value(evaluation, "WaitUntil"));
    }
    if (table.count == 0)
        return;
    cli_heading(cli, "Future Rescheduling Attempts");
    cli_table_print(&table, stdout);
}

/* "a, b" of LIST, or "<none>". */
static const char *join(const json_t *list)
{
    char text[512] = "";
    const json_t *item;
    size_t at;

    json_array_foreach(list, at, item)
    {
        (void)text_append(text, sizeof(text), at > 0 ? ", " : ""); /* cut is enough */
        (void)text_append(text, sizeof(text), json_string_value(item));
    }
    return cli_format("%s", at == 0 ? "<none>" : text);
}

/* What was made of JOB, whose ids have WORD behind that of JOB. */
static int show_children(struct cli *cli, const json_t *job, const json_t *summary,
                         const char *word, const char *heading, const char *none)
{
    const json_t *children = json_object_get(summary, "Children");
    struct cli_table table = {0};
    char path[CLI_URL_SIZE];
    json_t *list, *child;
    size_t at;
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/jobs?prefix=%s/%s-", cli_value(job, "ID"), word),
                &list, NULL);

    if (status != 0)
        return status;
    cli_row(&table, "Pending", "Running", "Dead");
    cli_row(&table, cli_value(children, "Pending"), cli_value(children, "Running"),
            cli_value(children, "Dead"));
    cli_table_print(&table, stdout);
    cli_heading(cli, heading);
    if (json_array_size(list) == 0)
        (void)puts(none);
    else
        cli_row(&table, "ID", "Status");
    json_array_foreach(list, at, child)
        cli_row(&table, cli_value(child, "ID"), cli_value(child, "Status"));
    cli_table_print(&table, stdout);
    json_decref(list);
    return 0;
}

/* What a parameterized job asks for, and what was dispatched of it. */
static int show_parameterized(struct cli *cli, const json_t *job, const json_t *summary)
{
    const json_t *block = json_object_get(job, "ParameterizedJob");
    struct cli_table table = {0};

    cli_heading(cli, "Parameterized Job");
    cli_row(&table, "Payload", cli_value(block, "Payload"));
    cli_row(&table, "Required Metadata", join(json_object_get(block, "MetaRequired")));
    cli_row(&table, "Optional Metadata", join(json_object_get(block, "MetaOptional")));
    cli_table_print_pairs(&table, stdout);
    cli_heading(cli, "Parameterized Job Summary");
    return show_children(cli, job, summary, "dispatch", "Dispatched Jobs",
                         "No dispatched instances found");
}

/* What was launched of a periodic job. */
static int show_periodic(struct cli *cli, const json_t *job, const json_t *summary)
{
    cli_heading(cli, "Children Job Summary");
    return show_children(cli, job, summary, "periodic", "Previously Launched Jobs",
                         "No instances of periodic job found");
}

int cli_show_job(struct cli *cli, const json_t *job)
{
    char path[CLI_URL_SIZE];
    const char *id = cli_value(job, "ID");
    json_t *summary = NULL, *allocs = NULL, *evaluations = NULL, *deployment = NULL;
    bool verbose = cli_switch(cli, "verbose");

    cli->namespace = cli_value(job, "Namespace");
    print_job(job);
    print_warnings(cli, job);
    int status = cli_get(cli, cli_path(cli, path, "/v1/job/%s/summary", id), &summary, NULL);
    if (status == 0 && (is_parameterized(job) || is_periodic(job))) {
        status = is_periodic(job) ? show_periodic(cli, job, summary)
                                  : show_parameterized(cli, job, summary);
        json_decref(summary);
        return status;
    }
    if (status == 0)
        status = cli_get(cli, cli_path(cli, path, "/v1/job/%s/allocations", id), &allocs, NULL);
    if (status == 0 && text_equal(cli_value(job, "Type"), "service"))
        status = cli_get(cli, cli_path(cli, path, "/v1/job/%s/deployment", id), &deployment, NULL);
    if (status == 0 && (verbose || something_waits(summary, allocs)))
        status =
            cli_get(cli, cli_path(cli, path, "/v1/job/%s/evaluations", id), &evaluations, NULL);
    if (status == 0) {
        print_summary(cli, summary);
        print_waiting(cli, evaluations);
        if (verbose)
            print_evaluations(cli, evaluations);
        print_deployment(cli, deployment);
        cli_heading(cli, "Allocations");
        cli_print_allocs(cli, allocs);
    }
    json_decref(summary);
    json_decref(allocs);
    json_decref(evaluations);
    json_decref(deployment);
    return status;
}

static int run_status(struct cli *cli)
{
    json_t *job;

    if (cli_argument(cli, 0) == NULL)
        return list_jobs(cli);
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(job);
    else if (cli_switch(cli, "short"))
        print_job(job);
    else
        status = cli_show_job(cli, job);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_status = {
    .group = "job",
    .name = "status",
    .arguments = "[ID]",
    .max = 1,
    .summary = "List jobs, or show one with its allocs",
    .help = "  The beginning of an id is enough.\n\n"
            "    $ cairn job status\n"
            "    $ cairn job status web",
    .flags = status_flags,
    .run = run_status,
};

/* --- inspect --- */

static const struct cli_flag inspect_flags[] = {
    {"version", FLAG_NUMBER, "N", "an older version that is kept"},
    {"hcl", FLAG_SWITCH, NULL, "the file that it was read of, as somebody submitted it"},
    {"with-vars", FLAG_SWITCH, NULL, "with -hcl: the values of its variables, too"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* TEXT within the quotes of a shell. */
static void print_quoted(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fputc(*text, out);
    }
}

/* On standard error: standard output is the file. */
static void print_values(const json_t *source)
{
    json_t *flags = json_object_get(source, "VariableFlags"), *value;
    const char *files = cli_value(source, "Variables"), *name;

    (void)fflush(stdout);
    (void)fprintf(stderr, "\nIt was submitted with:\n");
    json_object_foreach(flags, name, value)
    {
        (void)fputs("-var '", stderr);
        print_quoted(stderr, name);
        (void)fputc('=', stderr);
        print_quoted(stderr, cli_value(flags, name));
        (void)fputs("'\n", stderr);
    }
    if (files[0] != '\0')
        (void)fprintf(stderr, "-var-file:\n%s", files);
}

static int inspect_source(struct cli *cli, const json_t *job, int64_t number)
{
    char path[CLI_URL_SIZE];
    json_t *source;

    if (number < 0)
        number = json_integer_value(json_object_get(job, "Version"));
    int status = cli_get(cli,
                         cli_path(cli, path, "/v1/job/%s/submission?version=%s",
                                  cli_value(job, "ID"), cli_format("%lld", (long long)number)),
                         &source, NULL);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(source);
    else
        (void)fputs(cli_value(source, "Source"), stdout);
    if (cli_switch(cli, "with-vars") && !cli->json)
        print_values(source);
    json_decref(source);
    return 0;
}

static int inspect_job(struct cli *cli, json_t *job, int64_t number)
{
    json_t *shown = NULL;
    int status = 0;

    if (number < 0)
        shown = json_incref(job);
    else
        status = cli_find_version(cli, job, number, &shown);
    if (status != 0)
        return status;
    json_t *wrapped = json_pack("{s:o}", "Job", shown);
    cli_print_json(wrapped);
    json_decref(wrapped);
    return 0;
}

static int run_inspect(struct cli *cli)
{
    json_t *job;
    int64_t number = -1;

    if (cli_number(cli, "version", &number) != 0)
        return CLI_USAGE;
    if (cli_switch(cli, "with-vars") && !cli_switch(cli, "hcl"))
        return cli_fail(CLI_USAGE, "-with-vars goes with -hcl");
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status =
        cli_switch(cli, "hcl") ? inspect_source(cli, job, number) : inspect_job(cli, job, number);
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_inspect = {
    .group = "job",
    .name = "inspect",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "Print a job as the agent keeps it, in JSON, or the file that it was read of",
    .help = "  The file is that of whoever submitted the version; one that was scaled has none.\n"
            "  With -json all that is kept of it is printed.\n\n"
            "    $ cairn job inspect web\n"
            "    $ cairn job inspect -version 3 web\n"
            "    $ cairn job inspect -hcl web > web.nomad",
    .flags = inspect_flags,
    .run = run_inspect,
};
