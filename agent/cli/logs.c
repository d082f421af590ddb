/*
 * cairn alloc logs.
 *
 * With -tail the agent is asked for the last bytes; of them the last lines are shown.  While
 * following, what comes before the end is held back until as much as was asked for has come, or
 * nothing has for a moment.
 */
#include "agent/cli/cli.h"

#include "io/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_DEFAULT = 10, LINE_BYTES = 256, TAIL_BYTES_MAX = 8 << 20, QUIET_MS = 500 };

static const struct cli_flag logs_flags[] = {
    {"f", FLAG_SWITCH, NULL, "go on with what is written from now on"},
    {"stderr", FLAG_SWITCH, NULL, "standard error instead of standard output"},
    {"tail", FLAG_SWITCH, NULL, "only the end: 10 lines, or -n"},
    {"n", FLAG_NUMBER, "LINES", "how many lines of the end; means -tail"},
    {"c", FLAG_NUMBER, "BYTES", "how many bytes of the end; means -tail"},
    {NULL, FLAG_SWITCH, NULL, NULL},
};

struct tail {
    char *held; /* owned */
    size_t used, size, wanted;
    int64_t lines; /* -1: bytes were asked for */
    bool passing;  /* the end has been reached: nothing is held any more */
    struct io_timer quiet;
    struct loop *loop;
};

static bool print(const char *bytes, size_t length)
{
    return fwrite(bytes, 1, length, stdout) == length && fflush(stdout) == 0;
}

/* Where the last LINES lines of LENGTH bytes begin. */
static size_t last_lines(const char *bytes, size_t length, int64_t lines)
{
    size_t at = length;

    if (lines <= 0)
        return length;
    if (at > 0 && bytes[at - 1] == '\n')
        at--; /* ends the last line, does not begin one */
    while (at > 0) {
        if (bytes[at - 1] == '\n' && --lines == 0)
            return at;
        at--;
    }
    return 0;
}

static bool release(struct tail *tail)
{
    size_t from = tail->lines >= 0 ? last_lines(tail->held, tail->used, tail->lines) : 0;
    bool good = print(tail->held + from, tail->used - from);

    tail->passing = true;
    free(tail->held);
    tail->held = NULL;
    return good;
}

static void on_quiet(struct io_timer *timer)
{
    struct tail *tail = timer->ctx;

    if (!tail->passing)
        (void)release(tail); /* if it cannot be written, the next bytes tell */
}

static bool on_bytes(void *ctx, const char *bytes, size_t length)
{
    struct tail *tail = ctx;

    if (tail->passing)
        return print(bytes, length);
    tail->held = list_room(tail->held, &tail->size, tail->used + length, 1);
    memcpy(tail->held + tail->used, bytes, length);
    tail->used += length;
    if (tail->used >= tail->wanted)
        return release(tail);
    io_timer_start(tail->loop, &tail->quiet, loop_now_ms() + QUIET_MS, on_quiet, tail);
    return true;
}

/* The task of ALLOC that is meant if none is named: its only one. */
static const char *find_task(const struct cli *cli, const json_t *alloc)
{
    json_t *states = json_object_get(alloc, "TaskStates");
    const char *asked = cli_argument(cli, 1), *name, *only = NULL;
    char names[512] = "";
    json_t *state;

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

static int read_wishes(const struct cli *cli, struct tail *tail)
{
    int64_t lines = LINES_DEFAULT, bytes = -1;

    if (cli_number(cli, "n", &lines) != 0 || cli_number(cli, "c", &bytes) != 0)
        return CLI_USAGE;
    bool by_lines = cli_text(cli, "n", NULL) != NULL, by_bytes = bytes >= 0;
    if (by_lines && by_bytes)
        return cli_fail(CLI_USAGE, "give -n or -c, not both");
    tail->passing = !by_lines && !by_bytes && !cli_switch(cli, "tail");
    tail->lines = by_bytes ? -1 : lines;
    tail->wanted = by_bytes ? (size_t)bytes : (size_t)lines * LINE_BYTES;
    if ((!by_bytes && lines > TAIL_BYTES_MAX / LINE_BYTES) || tail->wanted > TAIL_BYTES_MAX)
        return cli_fail(CLI_USAGE, "that many are not held: leave -tail, -n and -c away");
    return 0;
}

static int run_logs(struct cli *cli)
{
    char path[CLI_URL_SIZE];
    struct tail tail = {0};
    json_t *alloc;
    int status = read_wishes(cli, &tail);

    if (status == 0)
        status = cli_find_alloc(cli, cli_argument(cli, 0), &alloc);
    if (status != 0)
        return status;
    const char *task = find_task(cli, alloc);
    status = task == NULL ? CLI_USAGE : CLI_OK;
    tail.loop = cli->loop;
    if (status == 0)
        status = cli_stream(
            cli,
            cli_path(cli, path,
                     "/v1/client/fs/logs/%s?plain=true&task=%s&type=%s&follow=%s&origin=%s&"
                     "offset=%s",
                     cli_value(alloc, "ID"), task, cli_switch(cli, "stderr") ? "stderr" : "stdout",
                     cli_switch(cli, "f") ? "true" : "false", tail.passing ? "start" : "end",
                     cli_format("%zu", tail.passing ? (size_t)0 : tail.wanted)),
            on_bytes, &tail);
    io_timer_stop(&tail.quiet);
    if (!tail.passing && !release(&tail) && status == 0)
        status = cli_fail(CLI_FAILED, "cannot write to standard output");
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
            "    $ cairn alloc logs -f -n 20 -stderr 3f2a91c4 web",
    .flags = logs_flags,
    .run = run_logs,
};
