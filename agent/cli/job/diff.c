/* The difference between two jobs, in the style of nomad v1.1.2 command/job_plan.go. */
#include "agent/cli/cli.h"

#include <stdlib.h>

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

/* And the objects in them: as deep as jobs are. */
static void print_objects(const json_t *diff, int indent)
{
    json_t *object;
    size_t i;

    json_array_foreach(json_object_get(diff, "Objects"), i, object)
    {
        (void)printf("%*s%-4s%s {\n", indent, "", mark_of(object), cli_value(object, "Name"));
        print_fields(object, indent + 2);
        print_objects(object, indent + 2);
        (void)printf("%*s}\n", indent + 4, "");
    }
}

/* What is as a whole new, or gone, is not shown in its parts. */
static void print_parts(const json_t *diff, int indent, bool verbose)
{
    if (!text_equal(cli_value(diff, "Type"), "Edited") && !verbose)
        return;
    print_fields(diff, indent);
    print_objects(diff, indent);
}

static void print_group(const json_t *group, bool verbose)
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
    print_parts(group, 2, verbose);
    json_array_foreach(json_object_get(group, "Tasks"), i, task)
    {
        (void)printf("  %sTask: \"%s\"", mark_of(task), cli_value(task, "Name"));
        print_annotations(task);
        print_parts(task, 4, verbose);
    }
}

void cli_print_diff(const json_t *diff, bool verbose)
{
    json_t *group;
    size_t i;

    (void)printf("%sJob: \"%s\"\n", mark_of(diff), cli_value(diff, "ID"));
    print_parts(diff, 0, verbose);
    json_array_foreach(json_object_get(diff, "TaskGroups"), i, group)
    {
        (void)puts("");
        print_group(group, verbose);
    }
}
