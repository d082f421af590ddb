/*
 * cairn job scale, and cairn job scaling-events: another count for a group of a job, and what was
 * said of its counts.
 *
 * Follows nomad v2.0.5 command/job_scale.go and job_scaling_events.go.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int get_status(struct cli *cli, const json_t *job, json_t **ret_status)
{
    char path[CLI_URL_SIZE];

    return cli_get(cli, cli_path(cli, path, "/v1/job/%s/scale", cli_value(job, "ID")), ret_status,
                   NULL);
}

/* --- scaling --- */

static const struct cli_flag scale_flags[] = {
    {"check-index", FLAG_NUMBER, "N", "only if the job is at this modify index; 0: at any"},
    {"detach", FLAG_SWITCH, NULL, "do not wait for the allocs to run"},
    {"verbose", FLAG_SWITCH, NULL, "whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

/* The group that is named, or the only one; NULL after saying why not. */
static const char *group_of(const struct cli *cli, const json_t *groups)
{
    const char *named = cli_argument(cli, 2) == NULL ? NULL : cli_argument(cli, 1);

    if (named == NULL && json_object_size(groups) == 1)
        return json_object_iter_key(json_object_iter((json_t *)(uintptr_t)groups));
    if (named == NULL)
        (void)cli_fail(CLI_USAGE, "group name required: the job has %zu groups",
                       json_object_size(groups)); /* NULL says so */
    else if (json_object_get(groups, named) == NULL)
        (void)cli_fail(CLI_FAILED, "group %s not found within job", named); /* likewise */
    else
        return named;
    return NULL;
}

static int scale_group(struct cli *cli, const json_t *job, const char *group, int64_t count,
                       int64_t index)
{
    char path[CLI_URL_SIZE];
    json_t *answer = NULL;
    json_t *body = json_pack("{s:I, s:{s:s, s:s}, s:s, s:I}", "Count", (json_int_t)count, "Target",
                             "Job", cli_value(job, "ID"), "Group", group, "Message",
                             "submitted using the cairn CLI", "JobModifyIndex", (json_int_t)index);

    check(body != NULL);
    int status =
        cli_put(cli, cli_path(cli, path, "/v1/job/%s/scale", cli_value(job, "ID")), body, &answer);
    json_decref(body);
    if (status == 0 && cli->json)
        cli_print_json(answer);
    else if (status == 0 && cli_switch(cli, "detach"))
        (void)printf("Job scale successful\nEvaluation ID: %s\n", cli_value(answer, "EvalID"));
    else if (status == 0)
        status = cli_follow(cli, cli_value(answer, "EvalID"), cli_value(job, "ID"), cli->namespace,
                            false);
    json_decref(answer);
    return status;
}

static int run_scale(struct cli *cli)
{
    const char *text = cli_argument(cli, cli_argument(cli, 2) == NULL ? 1 : 2);
    int64_t count, index = 0;
    json_t *job, *scale;

    if (!text_to_i64(text, &count))
        return cli_fail(CLI_USAGE, "the count is a number, not \"%.60s\"", text);
    if (cli_number(cli, "check-index", &index) != 0)
        return CLI_USAGE;
    if (index < 0)
        return cli_fail(CLI_USAGE, "-check-index is no index: %lld", (long long)index);
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = get_status(cli, job, &scale);
    if (status == 0) {
        const char *group = group_of(cli, json_object_get(scale, "TaskGroups"));
        status = group == NULL ? CLI_FAILED : scale_group(cli, job, group, count, index);
        json_decref(scale);
    }
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_scale = {
    .group = "job",
    .name = "scale",
    .arguments = "ID [GROUP] COUNT",
    .min = 2,
    .max = 3,
    .summary = "Change how many allocs a group of a job has",
    .help = "  Without GROUP it is the only group of the job. The scaling block of the group\n"
            "  says between which counts, and nothing is scaled during a deployment.\n\n"
            "    $ cairn job scale web 5\n"
            "    $ cairn job scale -check-index 42 shop web 5",
    .flags = scale_flags,
    .run = run_scale,
};

/* --- events --- */

static const struct cli_flag events_flags[] = {
    {"verbose", FLAG_SWITCH, NULL, "what was said, and whole ids"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

struct event {
    const char *group;
    const json_t *event;
};

static int newest_first(const void *a, const void *b)
{
    const struct event *left = a, *right = b;
    json_int_t left_time = json_integer_value(json_object_get(left->event, "Time"));
    json_int_t right_time = json_integer_value(json_object_get(right->event, "Time"));

    return left_time < right_time ? 1 : left_time > right_time ? -1 : 0;
}

/* Those of all GROUPS, the newest first; owned by the caller. */
static struct event *events_of(json_t *groups, size_t *ret_count)
{
    json_t *group, *event;
    struct event *events;
    const char *name;
    size_t count = 0, at;

    json_object_foreach(groups, name, group) count +=
        json_array_size(json_object_get(group, "Events"));
    events = calloc(count + 1, sizeof(*events));
    check(events != NULL);
    count = 0;
    json_object_foreach(groups, name, group)
    {
        json_array_foreach(json_object_get(group, "Events"), at, event) events[count++] =
            (struct event){name, event};
    }
    qsort(events, count, sizeof(*events), newest_first);
    *ret_count = count;
    return events;
}

static void print_events(const struct cli *cli, json_t *groups)
{
    struct cli_table table = {0};
    size_t count;
    struct event *events = events_of(groups, &count);
    bool verbose = cli_switch(cli, "verbose");

    if (count == 0)
        (void)puts("No events found");
    else if (verbose)
        cli_row(&table, "Task Group", "Count", "PrevCount", "Error", "Message", "Eval ID", "Date");
    else
        cli_row(&table, "Task Group", "Count", "PrevCount", "Date");
    for (size_t i = 0; i < count; i++) {
        const json_t *event = events[i].event;
        const char *date = cli_time(json_integer_value(json_object_get(event, "Time")));

        if (verbose)
            cli_row(&table, events[i].group, cli_value(event, "Count"),
                    cli_value(event, "PreviousCount"), cli_value(event, "Error"),
                    cli_value(event, "Message"), cli_value(event, "EvalID"), date);
        else
            cli_row(&table, events[i].group, cli_value(event, "Count"),
                    cli_value(event, "PreviousCount"), date);
    }
    cli_table_print(&table, stdout);
    free(events);
}

static int run_events(struct cli *cli)
{
    json_t *job, *scale;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = get_status(cli, job, &scale);
    if (status == 0) {
        if (cli->json)
            cli_print_json(scale);
        else
            print_events(cli, json_object_get(scale, "TaskGroups"));
        json_decref(scale);
    }
    json_decref(job);
    return status;
}

const struct cli_verb cli_job_scaling_events = {
    .group = "job",
    .name = "scaling-events",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .summary = "List what was said and done about the counts of a job",
    .help = "  Of each group the newest twenty are kept.\n\n"
            "    $ cairn job scaling-events -verbose web",
    .flags = events_flags,
    .run = run_events,
};
