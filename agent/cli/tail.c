/*
 * The end of what the agent streams.
 *
 * The agent is asked for the last bytes; of them the last lines are shown.  While following, what
 * comes before the end is held back until as much as was asked for has come, or nothing has for a
 * moment.
 */
#include "agent/cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_DEFAULT = 10, LINE_BYTES = 256, TAIL_BYTES_MAX = 8 << 20, QUIET_MS = 500 };

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

static bool release(struct cli_tail *tail)
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
    struct cli_tail *tail = timer->ctx;

    if (!tail->passing)
        (void)release(tail); /* if it cannot be written, the next bytes tell */
}

static bool on_bytes(void *ctx, const char *bytes, size_t length)
{
    struct cli_tail *tail = ctx;

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

int cli_tail_read(const struct cli *cli, struct cli_tail *ret_tail)
{
    int64_t lines = LINES_DEFAULT, bytes = -1;

    if (cli_number(cli, "n", &lines) != 0 || cli_number(cli, "c", &bytes) != 0)
        return CLI_USAGE;
    bool by_lines = cli_text(cli, "n", NULL) != NULL, by_bytes = bytes >= 0;
    if (by_lines && by_bytes)
        return cli_fail(CLI_USAGE, "give -n or -c, not both");
    size_t wanted = by_bytes ? (size_t)bytes : (size_t)lines * LINE_BYTES;
    if ((!by_bytes && lines > TAIL_BYTES_MAX / LINE_BYTES) || wanted > TAIL_BYTES_MAX)
        return cli_fail(CLI_USAGE, "that many are not held: leave -tail, -n and -c away");
    *ret_tail = (struct cli_tail){
        .passing = !by_lines && !by_bytes && !cli_switch(cli, "tail"),
        .lines = by_bytes ? -1 : lines,
        .wanted = wanted,
    };
    return 0;
}

int cli_tail_stream(struct cli *cli, struct cli_tail *tail, const char *path)
{
    char whole[CLI_URL_SIZE];
    size_t offset = tail->passing ? 0 : tail->wanted;

    if (!text_format(whole, sizeof(whole), "%s&plain=true&follow=%s&origin=%s&offset=%zu", path,
                     cli_switch(cli, "f") ? "true" : "false", tail->passing ? "start" : "end",
                     offset))
        return cli_fail(CLI_USAGE, "the path is too long");
    tail->loop = cli->loop;
    int status = cli_stream(cli, whole, on_bytes, tail);
    io_timer_stop(&tail->quiet);
    if (!tail->passing && !release(tail) && status == 0)
        status = cli_fail(CLI_FAILED, "cannot write to standard output");
    return status;
}
