/* Jobs and allocs by the beginning of their id; and allocs in a list, when it was of several. */
#include "agent/cli/cli.h"

#include "io/loop.h"

/* By the time of creation the newest first, as the API lists them. */
void cli_print_allocs(const struct cli *cli, const json_t *allocs)
{
    struct cli_table table = {0};
    int64_t now = loop_now_unix_ns();
    json_t *alloc;
    size_t at;

    if (json_array_size(allocs) == 0) {
        (void)puts("No allocations placed");
        return;
    }
    cli_row(&table, "ID", "Node ID", "Task Group", "Version", "Desired", "Status", "Created",
            "Modified");
    json_array_foreach(allocs, at, alloc)
    {
        const char *version = cli_value(alloc, "JobVersion");

        if (version[0] == '\0')
            version = cli_value(json_object_get(alloc, "Job"), "Version");
        cli_row(&table, cli_short(cli, cli_value(alloc, "ID")),
                cli_short(cli, cli_value(alloc, "NodeID")), cli_value(alloc, "TaskGroup"), version,
                cli_value(alloc, "DesiredStatus"), cli_value(alloc, "ClientStatus"),
                cli_ago(json_integer_value(json_object_get(alloc, "CreateTime")), now),
                cli_ago(json_integer_value(json_object_get(alloc, "ModifyTime")), now));
    }
    cli_table_print(&table, stdout);
}

int cli_find_alloc(struct cli *cli, const char *prefix, json_t **ret_alloc)
{
    char path[CLI_URL_SIZE];
    json_t *list;
    const char *given = cli->namespace;

    /* An alloc's id says enough: it is looked for in all namespaces. */
    cli->namespace = "*";
    int status =
        cli_get(cli, cli_path(cli, path, "/v1/allocations?task_states=false&prefix=%s", prefix),
                &list, NULL);
    cli->namespace = given;
    if (status != 0)
        return status;
    size_t count = json_array_size(list);
    if (count == 1) {
        const char *id = cli_value(json_array_get(list, 0), "ID");
        status = cli_get(cli, cli_path(cli, path, "/v1/allocation/%s", id), ret_alloc, NULL);
    } else if (count == 0) {
        status = cli_fail(CLI_FAILED,
                          "no alloc has an id that begins with \"%s\"; "
                          "`cairn job status JOB` lists those of a job",
                          prefix);
    } else {
        status =
            cli_fail(CLI_FAILED, "%zu allocs have an id that begins with \"%s\":", count, prefix);
        (void)fflush(stdout);
        cli_print_allocs(cli, list);
    }
    json_decref(list);
    return status;
}

json_t *cli_choose(const json_t *list, const char *prefix)
{
    json_t *entry;
    size_t at;

    json_array_foreach(list, at, entry)
    {
        if (json_array_size(list) == 1 || text_equal(cli_value(entry, "ID"), prefix))
            return entry;
    }
    return NULL;
}

int cli_find_job(struct cli *cli, const char *prefix, json_t **ret_job)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry;
    size_t at;

    int status = cli_get(cli, cli_path(cli, path, "/v1/jobs?prefix=%s", prefix), &list, NULL);
    if (status != 0)
        return status;
    const json_t *found = cli_choose(list, prefix);
    if (found != NULL) {
        const char *given = cli->namespace;

        cli->namespace = cli_value(found, "Namespace");
        status =
            cli_get(cli, cli_path(cli, path, "/v1/job/%s", cli_value(found, "ID")), ret_job, NULL);
        cli->namespace = given;
    } else if (json_array_size(list) == 0) {
        status = cli_fail(CLI_FAILED,
                          "no job has an id that begins with \"%s\" in namespace %s; "
                          "`cairn job status` lists all",
                          prefix, cli->namespace);
    } else {
        status =
            cli_fail(CLI_FAILED,
                     "%zu jobs have an id that begins with \"%s\":", json_array_size(list), prefix);
        json_array_foreach(list, at, entry)
        {
            (void)fprintf(stderr, "  %s\n", cli_value(entry, "ID"));
        }
    }
    json_decref(list);
    return status;
}

const char *cli_namespace_of(const struct cli *cli, const json_t *job)
{
    const char *name = cli_value(job, "Namespace");

    return name[0] != '\0' ? name : cli->namespace;
}

int cli_find_one(struct cli *cli, const char *group, const char *things, const char *prefix,
                 json_t **ret_one)
{
    char path[CLI_URL_SIZE];
    const char *given = cli->namespace;
    json_t *list;

    cli->namespace = "*"; /* its id says enough */
    int status = cli_get(cli, cli_path(cli, path, "/v1/%s?prefix=%s", things, prefix), &list, NULL);
    cli->namespace = given;
    if (status != 0)
        return status;
    size_t count = json_array_size(list);
    if (count == 1)
        *ret_one = json_incref(json_array_get(list, 0));
    else
        status = cli_fail(CLI_FAILED,
                          "%zu %s have an id that begins with \"%s\"; `cairn %s list` shows all",
                          count, things, prefix, group);
    json_decref(list);
    return status;
}

int cli_with_job(struct cli *cli, int (*act)(struct cli *cli, json_t *job))
{
    json_t *job;
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status = act(cli, job);
    json_decref(job);
    return status;
}

int cli_find_meant(struct cli *cli, json_t **ret_alloc)
{
    char path[CLI_URL_SIZE];
    json_t *job, *list, *entry;
    const json_t *meant = NULL;
    size_t at;

    if (!cli_switch(cli, "job"))
        return cli_find_alloc(cli, cli_argument(cli, 0), ret_alloc);
    int status = cli_find_job(cli, cli_argument(cli, 0), &job);
    if (status != 0)
        return status;
    const char *given = cli->namespace, *id = cli_value(job, "ID");
    cli->namespace = cli_value(job, "Namespace");
    status = cli_get(cli, cli_path(cli, path, "/v1/job/%s/allocations", id), &list, NULL);
    cli->namespace = given;
    if (status != 0) {
        json_decref(job);
        return status;
    }
    json_array_foreach(list, at, entry)
    {
        bool runs = text_equal(cli_value(entry, "ClientStatus"), "running");

        if (meant == NULL || (runs && !text_equal(cli_value(meant, "ClientStatus"), "running")))
            meant = entry;
    }
    status = meant != NULL ? cli_find_alloc(cli, cli_value(meant, "ID"), ret_alloc)
                           : cli_fail(CLI_FAILED, "job \"%s\" has no allocs", id);
    json_decref(list);
    json_decref(job);
    return status;
}

const char *cli_find_task(const struct cli *cli, const json_t *alloc, const char *asked)
{
    json_t *states = json_object_get(alloc, "TaskStates");
    const char *name, *only = NULL;
    char names[512] = "";
    json_t *state;

    if (asked == NULL)
        asked = cli_text(cli, "task", NULL);
    if (asked != NULL && json_object_get(states, asked) != NULL)
        return asked;
    json_object_foreach(states, name, state)
    {
        only = name;
        (void)text_append(names, sizeof(names), names[0] != '\0' ? ", " : ""); /* a cut list */
        (void)text_append(names, sizeof(names), name);                         /* is enough */
    }
    if (asked != NULL)
        (void)cli_fail(CLI_USAGE, "the alloc has no task \"%.60s\", only: %s", asked, names);
    else if (json_object_size(states) != 1)
        (void)cli_fail(CLI_USAGE, "name one of the alloc's tasks: %s", names);
    else
        return only;
    return NULL;
}
