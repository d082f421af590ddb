/* cairn job plan: what submitting a job would do, in the style of nomad v1.1.2 command/job_plan.go.
 */
#include "agent/cli/cli.h"

#include <string.h>

/* --- the difference --- */

static const char *mark_of(const json_t *diff)
{
    const char *type = cli_value(diff, "Type");

    return text_equal(type, "Added")     ? "+ "
           : text_equal(type, "Deleted") ? "- "
           : text_equal(type, "Edited")  ? "+/- "
                                         : "";
}

/* " (forces create)", or nothing. */
static void print_annotations(const json_t *diff)
{
    const json_t *annotations = json_object_get(diff, "Annotations");
    json_t *annotation;
    size_t i;

    json_array_foreach(annotations, i, annotation)(void)
        printf(" (%s)", json_string_value(annotation));
    (void)puts("");
}

/* Values are shown as a program could read them: with their quotes, on one line. */
static void print_value(const json_t *diff, const char *name)
{
    char *text = json_dumps(json_object_get(diff, name), JSON_ENCODE_ANY);

    (void)printf("%s", text == NULL ? "" : text);
    free(text);
}

static void print_fields(const json_t *diff, int indent)
{
    json_t *field;
    size_t i;

    json_array_foreach(json_object_get(diff, "Fields"), i, field)
    {
        const char *type = cli_value(field, "Type");

        (void)printf("%*s%-4s%s: ", indent, "", mark_of(field), cli_value(field, "Name"));
        if (!text_equal(type, "Added"))
            print_value(field, "Old");
        if (text_equal(type, "Edited"))
            (void)printf(" => ");
        if (text_equal(type, "Added") || text_equal(type, "Edited"))
            print_value(field, "New");
        print_annotations(field);
    }
}

static void print_objects(const json_t *diff, int indent)
{
    json_t *object;
    size_t i;

    json_array_foreach(json_object_get(diff, "Objects"), i, object)
    {
        (void)printf("%*s%-4s%s {\n", indent, "", mark_of(object), cli_value(object, "Name"));
        print_fields(object, indent + 2);
        (void)printf("%*s}\n", indent + 4, "");
    }
}

/* What is as a whole new, or gone, is not shown in its parts. */
static void print_parts(const struct cli *cli, const json_t *diff, int indent)
{
    if (!text_equal(cli_value(diff, "Type"), "Edited") && !cli_switch(cli, "verbose"))
        return;
    print_fields(diff, indent);
    print_objects(diff, indent);
}

static void print_group(const struct cli *cli, const json_t *group)
{
    const char *kind, *before = " (";
    json_t *count, *task;
    size_t i;

    (void)printf("%sTask Group: \"%s\"", mark_of(group), cli_value(group, "Name"));
    json_object_foreach(json_object_get(group, "Updates"), kind, count)
    {
        (void)printf("%s%lld %s", before, (long long)json_integer_value(count), kind);
        before = ", ";
    }
    (void)puts(before[0] == ',' ? ")" : "");
    print_parts(cli, group, 2);
    json_array_foreach(json_object_get(group, "Tasks"), i, task)
    {
        (void)printf("  %sTask: \"%s\"", mark_of(task), cli_value(task, "Name"));
        print_annotations(task);
        print_parts(cli, task, 4);
    }
}

static void print_diff(const struct cli *cli, const json_t *diff)
{
    json_t *group;
    size_t i;

    (void)printf("%sJob: \"%s\"\n", mark_of(diff), cli_value(diff, "ID"));
    print_parts(cli, diff, 0);
    json_array_foreach(json_object_get(diff, "TaskGroups"), i, group)
    {
        (void)puts("");
        print_group(cli, group);
    }
}

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

    print_diff(cli, json_object_get(answer, "Diff"));
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
    int status = cli_read_job(cli, &job);

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
