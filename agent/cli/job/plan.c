/* cairn job plan: what submitting a job would do, in the style of nomad v1.1.2 command/job_plan.go.
 */
#include "agent/cli/cli.h"

#include <string.h>

/* --- what would come of it --- */

static bool changes_allocs(const json_t *answer)
{
    static const char *const kinds[] = {"Place", "Stop", "DestructiveUpdate"};
    const json_t *annotations = json_object_get(answer, "Annotations");
    const char *group;
    json_t *update;
    bool changes = false;

    json_object_foreach(json_object_get(annotations, "DesiredTGUpdates"), group, update)
    {
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            changes |= json_integer_value(json_object_get(update, kinds[i])) > 0;
    }
    return changes;
}

static void print_dry_run(const struct cli *cli, const json_t *answer)
{
    json_t *failed = json_object_get(answer, "FailedTGAllocs"), *metrics;
    const char *group;

    cli_heading(cli, "Scheduler dry-run");
    if (json_object_size(failed) == 0)
        (void)puts("- All tasks would be placed.");
    else
        (void)puts("- Some allocations would have to wait.");
    json_object_foreach(failed, group, metrics) cli_print_failed(group, metrics);
}

static void print_plan(const struct cli *cli, const json_t *answer)
{
    const char *index = cli_value(answer, "JobModifyIndex");

    cli_print_diff(json_object_get(answer, "Diff"), cli_switch(cli, "verbose"));
    print_dry_run(cli, answer);
    (void)puts("");
    cli_print_warnings(answer);
    (void)printf("Job Modify Index: %s\n"
                 "To submit the job only if it is still as it was when this was planned:\n\n"
                 "cairn job run -check-index %s %s\n",
                 index, index, cli_argument(cli, 0));
}

static int run_plan(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    json_t *job, *answer;
    int status = cli_read_job(cli, &job, NULL);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    const char *where = cli_path(cli, path, "/v1/job/%s/plan", cli_value(job, "ID"));
    json_t *body = json_pack("{s:o, s:b}", "Job", job, "Diff", 1);
    check(body != NULL);
    status = cli_put(cli, where, body, &answer);
    json_decref(body);
    if (status != 0)
        return status;
    if (cli->json)
        cli_print_json(answer);
    else
        print_plan(cli, answer);
    status = changes_allocs(answer) ? CLI_CHANGES : CLI_OK;
    json_decref(answer);
    return status;
}

static const struct cli_flag plan_flags[] = {
    {"var", FLAG_TEXT, "NAME=VALUE", "a variable of the job file; may be repeated"},
    {"var-file", FLAG_TEXT, "FILE", "variables, as name = value in HCL or JSON; may be repeated"},
    {"verbose", FLAG_SWITCH, NULL, "also what is in groups and tasks that are new or gone"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

const struct cli_verb cli_job_plan = {
    .group = "job",
    .name = "plan",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .summary = "Show what submitting a job would change, without submitting it",
    .help = "  FILE is as for job run. Shows what the job says otherwise than the one that is\n"
            "  registered, how many allocs would be placed, updated in place, replaced and\n"
            "  stopped, and what would have to wait, and why. The exit status is 5 if allocs would "
            "be placed or\n"
            "  stopped, and 0 if none would.\n\n"
            "    $ cairn job plan web.nomad\n"
            "    $ cairn job plan -var image=v2 web.nomad",
    .flags = plan_flags,
    .run = run_plan,
};
