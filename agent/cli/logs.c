/* cairn alloc logs. */
#include "agent/cli/cli.h"

static const struct cli_flag logs_flags[] = {
    {"f", FLAG_SWITCH, NULL, "go on with what is written from now on"},
    {"stderr", FLAG_SWITCH, NULL, "standard error instead of standard output"},
    {"stdout", FLAG_SWITCH, NULL, "standard output, as without it"},
    {"tail", FLAG_SWITCH, NULL, "only the end: 10 lines, or -n"},
    {"n", FLAG_NUMBER, "LINES", "how many lines of the end; means -tail"},
    {"c", FLAG_NUMBER, "BYTES", "how many bytes of the end; means -tail"},
    {"task", FLAG_TEXT, "TASK", "of this one, as the second argument"},
    {"job", FLAG_SWITCH, NULL, "ID is a job's: of its newest alloc that runs"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

static int run_logs(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    struct cli_tail tail;
    json_t *alloc;
    int status = cli_tail_read(cli, &tail);

    if (status == 0)
        status = cli_find_meant(cli, &alloc);
    if (status != 0)
        return status;
    const char *task = cli_find_task(cli, alloc, cli_argument(cli, 1));
    status = task == NULL ? CLI_USAGE : CLI_OK;
    if (status == 0)
        status = cli_tail_stream(cli, &tail,
                                 cli_path(cli, path, "/v1/client/fs/logs/%s?task=%s&type=%s",
                                          cli_value(alloc, "ID"), task,
                                          cli_switch(cli, "stderr") ? "stderr" : "stdout"));
    json_decref(alloc);
    return status;
}

const struct cli_verb cli_alloc_logs = {
    .group = "alloc",
    .name = "logs",
    .arguments = "ID [TASK]",
    .min = 1,
    .max = 2,
    .summary = "Print what a task has written",
    .help = "  The task may be left away if the alloc has only one.\n\n"
            "    $ cairn alloc logs 3f2a91c4 web\n"
            "    $ cairn alloc logs -f -n 20 -stderr 3f2a91c4 web\n"
            "    $ cairn alloc logs -f -job website",
    .flags = logs_flags,
    .run = run_logs,
};
