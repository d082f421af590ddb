/*
 * cairn job action: a command that a job's task offers by a name.
 *
 * Nomad's wants a group and a task, or an alloc; here they may be left away where the name says
 * enough.  Of several allocs the newest that runs is taken, where Nomad's takes any.
 */
#include "agent/cli/cli.h"

static const struct cli_flag action_flags[] = {
    {"job", FLAG_TEXT, "JOB", "of this one; has to be said"},
    {"alloc", FLAG_TEXT, "ALLOC", "in this one of its allocs"},
    {"group", FLAG_TEXT, "GROUP", "in an alloc of this one, if more than one has such an action"},
    {"task", FLAG_TEXT, "TASK", "in this task, likewise"},
    CLI_SESSION_FLAGS,
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static bool is_meant(const struct cli *cli, const json_t *action)
{
    return text_equal(cli_value(action, "Name"), cli_argument(cli, 0)) &&
           cli_is_asked_for(cli, "group", cli_value(action, "TaskGroupName")) &&
           cli_is_asked_for(cli, "task", cli_value(action, "TaskName"));
}

/* The only one of LIST that is meant, borrowed; NULL after saying what is wrong. */
static const json_t *choose(const struct cli *cli, const json_t *list)
{
    const json_t *action, *found = NULL;
    size_t i, count = 0;

    json_array_foreach(list, i, action)
    {
        if (!is_meant(cli, action))
            continue;
        found = action;
        count++;
    }
    if (count == 1)
        return found;
    (void)cli_fail(CLI_FAILED,
                   count == 0 ? "the job has no action \"%s\" there; these are its actions:"
                              : "more than one task has an action \"%s\": say -task and -group, of",
                   cli_argument(cli, 0));
    struct cli_table table = {0};
    cli_row(&table, "Name", "Task Group", "Task", "Command");
    json_array_foreach(list, i, action)
        cli_row(&table, cli_value(action, "Name"), cli_value(action, "TaskGroupName"),
                cli_value(action, "TaskName"), cli_value(action, "Command"));
    cli_table_print(&table, stderr);
    return NULL;
}

/* The newest alloc of GROUP that runs, borrowed from LIST, which has the newest first; NULL: none
 * does. */
static const json_t *running(const json_t *list, const char *group)
{
    const json_t *alloc;
    size_t i;

    json_array_foreach(list, i, alloc)
    {
        if (text_equal(cli_value(alloc, "TaskGroup"), group) &&
            text_equal(cli_value(alloc, "ClientStatus"), "running"))
            return alloc;
    }
    return NULL;
}

static int put_path(struct cli *cli, const char *job, const char *alloc, const json_t *action,
                    bool terminal, char path[CLI_URL_SIZE])
{
    (void)cli_path(cli, path, "/v1/job/%s/action?action=%s&allocID=%s&task=%s&tty=%s", job,
                   cli_value(action, "Name"), alloc, cli_value(action, "TaskName"),
                   terminal ? "true" : "false"); /* it is in PATH */
    return 0;
}

/* In the alloc that was named, or one of the action's group. */
static int in_alloc(struct cli *cli, const char *job, const json_t *action, bool terminal,
                    char path[CLI_URL_SIZE])
{
    const char *named = cli_text(cli, "alloc", NULL), *group = cli_value(action, "TaskGroupName");
    json_t *found;
    int status = named != NULL ? cli_find_alloc(cli, named, &found)
                               : cli_get(cli, cli_path(cli, path, "/v1/job/%s/allocations", job),
                                         &found, NULL);

    if (status != 0)
        return status;
    const json_t *alloc = named != NULL ? found : running(found, group);
    if (alloc == NULL)
        status = cli_fail(CLI_FAILED, "no alloc of group \"%s\" runs", group);
    else
        status = put_path(cli, job, cli_value(alloc, "ID"), action, terminal, path);
    json_decref(found);
    return status;
}

static int path_of_action(struct cli *cli, bool terminal, char path[CLI_URL_SIZE])
{
    json_t *job, *list;
    int status = cli_find_job(cli, cli_text(cli, "job", ""), &job);

    if (status != 0)
        return status;
    cli->namespace = cli_namespace_of(cli, job);
    status =
        cli_get(cli, cli_path(cli, path, "/v1/job/%s/actions", cli_value(job, "ID")), &list, NULL);
    if (status == 0) {
        const json_t *action = choose(cli, list);

        status = action == NULL ? CLI_FAILED
                                : in_alloc(cli, cli_value(job, "ID"), action, terminal, path);
        json_decref(list);
    }
    json_decref(job);
    return status;
}

static int run_action(struct cli *cli)
{
    if (cli_text(cli, "job", NULL) == NULL)
        return cli_fail(CLI_USAGE, "say of which job: -job JOB");
    return cli_session(cli, path_of_action);
}

const struct cli_verb cli_job_action = {
    .group = "job",
    .name = "action",
    .arguments = "NAME",
    .min = 1,
    .max = 1,
    .summary = "Run a command that a job's task offers by a name",
    .help =
        "  A task offers it with a block: action \"flush\" { command = \"/bin/flush\" }. It runs\n"
        "  as one of `alloc exec` does, in the newest alloc that runs, and the exit status is\n"
        "  the command's.\n\n"
        "    $ cairn job action -job web flush\n"
        "    $ cairn job action -job web -task cache -alloc 3f2a91c4 flush",
    .flags = action_flags,
    .run = run_action,
};
