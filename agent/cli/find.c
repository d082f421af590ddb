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

int cli_find_job(struct cli *cli, const char *prefix, json_t **ret_job)
{
    char path[CLI_URL_SIZE];
    json_t *list, *entry;
    const json_t *found = NULL;
    size_t at;

    int status = cli_get(cli, cli_path(cli, path, "/v1/jobs?prefix=%s", prefix), &list, NULL);
    if (status != 0)
        return status;
    json_array_foreach(list, at, entry)
    {
        if (json_array_size(list) == 1 || text_equal(cli_value(entry, "ID"), prefix))
            found = entry;
    }
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
