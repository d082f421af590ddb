/* What the verbs of `cairn journal` share: opening what the flags name, telling how it went. */
#include "agent/cli/journal/journal.h"

#include "io/loop.h"

#include <inttypes.h>
#include <stdlib.h>

static const char default_path[] = "/var/lib/cairn";

/* --- what went wrong --- */

void cli_journal_say(void *ctx, const char *text)
{
    (void)ctx;
    (void)fflush(stdout); /* so that both come in their order */
    (void)fprintf(stderr, "cairn journal: %s\n", text);
}

int cli_journal_fail(struct err *err)
{
    text_clean(err->text);
    cli_journal_say(NULL, err->text);
    return CLI_FAILED;
}

/* --- reading flags --- */

typedef const char *name_of(const struct fsm_def *def, unsigned number);

/* True if some machine has a state or event called TEXT. */
static bool is_name(name_of *name, const char *text)
{
    for (int kind = 0; kind < MACHINE_KIND_COUNT; kind++) {
        const struct fsm_def *def = fsm_definition((enum machine_kind)kind);
        for (unsigned i = 0; i < FSM_EVENTS_MAX; i++) {
            if (text_equal(name(def, i), text))
                return true;
        }
    }
    return false;
}

static int read_kind(const char *name, unsigned *ret_kinds)
{
    for (int kind = 0; name != NULL && kind < MACHINE_KIND_COUNT; kind++) {
        if (text_equal(machine_kind_name((enum machine_kind)kind), name))
            *ret_kinds = 1u << kind;
    }
    if (name != NULL && *ret_kinds == 0)
        return cli_fail(CLI_USAGE, "-kind: \"%.60s\" is none of alloc, task, volume, plugin", name);
    return 0;
}

static int read_options(const struct cli *cli, struct inspect_options *ret_options)
{
    struct inspect_options options = {
        .out = stdout,
        .say = cli_journal_say,
        .now_unix_ns = loop_now_unix_ns(),
        .json = cli_is_on(cli, "json"),
        .reveal = cli_is_on(cli, "reveal"),
        .all = cli_is_on(cli, "all"),
        .follow = cli_is_on(cli, "f"),
        .alloc = cli_given(cli, "alloc"),
        .state = cli_given(cli, "state"),
        .event = cli_given(cli, "event"),
        .since = cli_given(cli, "since"),
        .until = cli_given(cli, "until"),
    };

    if (read_kind(cli_given(cli, "kind"), &options.kinds) != 0)
        return CLI_USAGE;
    if (options.state != NULL && !is_name(fsm_state_name, options.state))
        return cli_fail(CLI_USAGE,
                        "-state: no machine has a state \"%.60s\"; see: cairn fsm show NAME",
                        options.state);
    if (options.event != NULL && !is_name(fsm_event_name, options.event))
        return cli_fail(CLI_USAGE,
                        "-event: no machine has an event \"%.60s\"; see: cairn fsm show NAME",
                        options.event);
    *ret_options = options;
    return 0;
}

const char *cli_journal_path(const struct cli *cli)
{
    const char *path = cli_given(cli, "dir");

    if (path == NULL)
        path = getenv("CAIRN_DATA_DIR");
    return path == NULL || path[0] == '\0' ? default_path : path;
}

/* --- a session: one journal, one question --- */

int cli_journal_begin(const struct cli *cli, struct session *session)
{
    struct inspect_options options;
    int status = read_options(cli, &options);

    if (status == 0 &&
        inspect_open(cli_journal_path(cli), &options, &session->inspect, &session->err) < 0)
        status = cli_journal_fail(&session->err);
    return status;
}

/* CODE is what the inspector returned. */
int cli_journal_end(struct session *session, int code)
{
    int status = CLI_OK;

    if (code < 0) {
        status = cli_journal_fail(&session->err);
    } else if (inspect_damaged(session->inspect) > 0) {
        char line[96];
        (void)text_format(line, sizeof(line),
                          "%" PRIu64 " damaged entries were skipped; see: cairn journal verify",
                          inspect_damaged(session->inspect)); /* fits */
        cli_journal_say(NULL, line);
        status = CLI_FAILED;
    }
    inspect_close(session->inspect);
    return status;
}
