/* What the verbs of `cairn journal` share (part.c). */
#ifndef CAIRN_AGENT_CLI_JOURNAL_JOURNAL_H
#define CAIRN_AGENT_CLI_JOURNAL_JOURNAL_H

#include "agent/cli/cli.h"
#include "inspect/inspect.h"

/* One journal and what it is asked. */
struct session {
    struct inspect *inspect;
    struct err err; /* of the call that was made */
};

/* The journal that -dir or the environment names. */
const char *cli_journal_path(const struct cli *cli);

/* Opens it with what the flags want; an exit status, said. */
int cli_journal_begin(const struct cli *cli, struct session *session);

/* The exit status for CODE, which the inspector returned with the session's err; closes. */
int cli_journal_end(struct session *session, int code);

/* An inspect_say_cb: "cairn journal: ..." on standard error. */
void cli_journal_say(void *ctx, const char *text);

/* Says "cairn journal: ..."; CLI_FAILED. */
int cli_journal_fail(struct err *err);

#endif
