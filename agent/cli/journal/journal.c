/*
 * `cairn journal VERB`: what people type, made into what the inspector is asked
 * (inspect/inspect.h).
 *
 * The exit status is 1 when the journal cannot be read, or when something in it cannot, or when
 * verify finds something wrong; what could be read has been shown then.
 */
#include "agent/cli/journal/journal.h"

#include "io/loop.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* --- flags --- */

/* clang-format off */
#define DIR      {"dir", FLAG_TEXT, "PATH", \
                  "the journal's directory or the data directory it is in;\n" \
                  "default: $CAIRN_DATA_DIR, or /var/lib/cairn"}
#define JSON     {"json", FLAG_SWITCH, NULL, "one JSON value on each line"}
#define KIND     {"kind", FLAG_TEXT, "KIND", \
                  "only machines of this kind: alloc, task, volume, plugin"}
#define STATE    {"state", FLAG_TEXT, "STATE", \
                  "only machines in this state; of events: that lead to it"}
#define ALLOC    {"alloc", FLAG_TEXT, "ID", \
                  "only this alloc and what belongs to it; a prefix is enough"}
#define SINCE    {"since", FLAG_TEXT, "WHEN", "from this sequence number or time on"}
#define UNTIL    {"until", FLAG_TEXT, "WHEN", "up to this sequence number or time"}
#define ALL      {"all", FLAG_SWITCH, NULL, \
                  "all fields: those that are zero, too, or of each machine"}
#define REVEAL   {"reveal", FLAG_SWITCH, NULL, "show values that may be secret"}
#define END      {NULL, FLAG_SWITCH, NULL, NULL}
/* clang-format on */

static const struct cli_flag common_flags[] = {DIR, JSON, END};

static const char when_help[] =
    "  A moment is a sequence number, 2026-01-31T15:04:05Z, 15:04:05 (UTC, on the day the log\n"
    "  ends), -5m (before the end of the log) or +90s (after its begin).";

/* --- list, show --- */

/* A length of time that is not negative; untouched if the flag was not given. */
static int read_duration(const struct cli *cli, const char *name, int64_t *ret_ns)
{
    const char *text = cli_text(cli, name, NULL);
    int64_t ns;

    if (text == NULL)
        return 0;
    if (!text_to_duration_ns(text, &ns) || ns < 0)
        return cli_fail(CLI_USAGE, "-%s: \"%.60s\" is no length of time, as 90s or 1h30m", name,
                        text);
    *ret_ns = ns;
    return 0;
}

static int run_list(struct cli *cli)
{
    struct session session = {0};
    int64_t age_ns = 0;
    int status = read_duration(cli, "age", &age_ns);

    if (status == 0)
        status = cli_journal_begin(cli, &session);
    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_list(session.inspect, age_ns, &session.err));
}

static const struct cli_flag list_flags[] = {
    DIR,
    JSON,
    KIND,
    STATE,
    ALLOC,
    {"age", FLAG_TEXT, "TIME", "only machines that have been in their state for so long, as 1h30m"},
    REVEAL,
    END,
};

const struct cli_verb cli_journal_list = {
    .group = "journal",
    .name = "list",
    .arguments = "",
    .is_local = true,
    .summary = "List the machines of the node, as their records are now",
    .help = "",
    .flags = list_flags,
    .run = run_list,
};

static int run_show(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session,
                           inspect_show(session.inspect, cli_argument(cli, 0), &session.err));
}

static const struct cli_flag show_flags[] = {DIR, JSON, KIND, ALL, REVEAL, END};

const struct cli_verb cli_journal_show = {
    .group = "journal",
    .name = "show",
    .arguments = "ID",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Show one machine: its record, what was asked for, its history",
    .help = "  ID is an id or its begin: 3f2a91c4 is the alloc, 3f2a91c4/web its task.",
    .flags = show_flags,
    .run = run_show,
};

/* --- log --- */

static int run_log(struct cli *cli)
{
    struct session session = {0};
    int64_t lines = 0;
    int status = cli_number(cli, "n", &lines);

    if (status == 0 && cli_given(cli, "n") != NULL && (lines == 0 || lines > INSPECT_LINES_MAX))
        status = cli_fail(CLI_USAGE, "-n: \"%.60s\" is not a number from 1 to %d",
                          cli_given(cli, "n"), INSPECT_LINES_MAX);
    if (status == 0)
        status = cli_journal_begin(cli, &session);
    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_log(session.inspect, (uint64_t)lines, &session.err));
}

static const struct cli_flag log_flags[] = {
    DIR,
    JSON,
    KIND,
    STATE,
    ALLOC,
    {"event", FLAG_TEXT, "EVENT", "only events of this name, as EXITED"},
    SINCE,
    UNTIL,
    {"n", FLAG_NUMBER, "COUNT", "the last COUNT only"},
    {"f", FLAG_SWITCH, NULL, "go on with what the daemon adds, until interrupted"},
    REVEAL,
    END,
};

const struct cli_verb cli_journal_log = {
    .group = "journal",
    .name = "log",
    .arguments = "",
    .is_local = true,
    .summary = "Print the events, one on each line",
    .help = when_help,
    .flags = log_flags,
    .run = run_log,
};

/* --- at, diff --- */

static int run_at(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session,
                           inspect_at(session.inspect, cli_argument(cli, 0), &session.err));
}

static const struct cli_flag at_flags[] = {DIR, JSON, KIND, STATE, ALLOC, ALL, REVEAL, END};

const struct cli_verb cli_journal_at = {
    .group = "journal",
    .name = "at",
    .arguments = "WHEN",
    .min = 1,
    .max = 1,
    .is_local = true,
    .takes_moments = true,
    .summary = "Show the whole node as it was then",
    .help = when_help,
    .flags = at_flags,
    .run = run_at,
};

static int run_diff(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_diff(session.inspect, cli_argument(cli, 0),
                                                  cli_argument(cli, 1), &session.err));
}

static const struct cli_flag diff_flags[] = {DIR, JSON, KIND, ALLOC, REVEAL, END};

const struct cli_verb cli_journal_diff = {
    .group = "journal",
    .name = "diff",
    .arguments = "WHEN WHEN",
    .min = 2,
    .max = 2,
    .is_local = true,
    .takes_moments = true,
    .summary = "Show what changed between two moments, field by field",
    .help = when_help,
    .flags = diff_flags,
    .run = run_diff,
};

/* --- verify --- */

static int run_verify(struct cli *cli)
{
    struct session session = {0};
    struct inspect_verdict verdict = {.bad = 0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    status = cli_journal_end(&session, inspect_findings(session.inspect, &verdict, &session.err));
    return status == CLI_OK && verdict.bad > 0 ? CLI_FAILED : status;
}

const struct cli_verb cli_journal_verify = {
    .group = "journal",
    .name = "verify",
    .arguments = "",
    .is_local = true,
    .summary = "Step every event again and compare all records",
    .help =
        "  Each record is compared with what its events give, and with what the records of its\n"
        "  alloc and tasks say of it: what a restart would not believe is told.\n"
        "  The exit status is 0 if nothing is wrong, else 1.",
    .flags = common_flags,
    .run = run_verify,
};

/* --- timeline --- */

static int run_timeline(struct cli *cli)
{
    struct inspect_drawing drawing = {.html = cli_text(cli, "html", NULL)};
    struct session session = {0};
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        drawing.columns = size.ws_col;
    int status = cli_number(cli, "width", &drawing.columns);
    if (status == 0)
        status = cli_journal_begin(cli, &session);
    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_timeline(session.inspect, &drawing, &session.err));
}

static const struct cli_flag timeline_flags[] = {
    DIR,
    JSON,
    KIND,
    ALLOC,
    SINCE,
    UNTIL,
    {"html", FLAG_TEXT, "FILE", "a page with everything in it, for any browser"},
    {"width", FLAG_NUMBER, "COLUMNS", "of the drawing; default: the terminal's"},
    END,
};

const struct cli_verb cli_journal_timeline = {
    .group = "journal",
    .name = "timeline",
    .arguments = "",
    .is_local = true,
    .summary = "Draw allocs, tasks, volumes, plugins and restarts over time",
    .help = when_help,
    .flags = timeline_flags,
    .run = run_timeline,
};

/* --- restore --- */

static int run_restore(struct cli *cli)
{
    struct inspect_restart restart = {
        .rebooted = cli_switch(cli, "rebooted"),
        .servers = cli_switch(cli, "servers"),
        .away_ns = -1,
    };
    struct session session = {0};
    int status = read_duration(cli, "after", &restart.away_ns);

    if (status == 0)
        status = cli_journal_begin(cli, &session);
    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_restore(session.inspect, &restart, &session.err));
}

static const struct cli_flag restore_flags[] = {
    DIR,
    JSON,
    {"rebooted", FLAG_SWITCH, NULL, "as if the host had been booted since"},
    {"servers", FLAG_SWITCH, NULL, "as a client of servers, which have to be asked first"},
    {"after", FLAG_TEXT, "TIME",
     "as if the daemon came back so long after the last event;\n"
     "default: now"},
    END,
};

const struct cli_verb cli_journal_restore = {
    .group = "journal",
    .name = "restore",
    .arguments = "",
    .is_local = true,
    .summary = "Show what a restart of the daemon would do now; performs nothing",
    .help = "",
    .flags = restore_flags,
    .run = run_restore,
};

/* --- stats, compact --- */

static int run_stats(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_stats(session.inspect, &session.err));
}

const struct cli_verb cli_journal_stats = {
    .group = "journal",
    .name = "stats",
    .arguments = "",
    .is_local = true,
    .summary = "Print figures: tables, sizes, rates, events by kind",
    .help = "",
    .flags = common_flags,
    .run = run_stats,
};

static int run_compact(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session,
                           inspect_compact(session.inspect, cli_argument(cli, 0), &session.err));
}

const struct cli_verb cli_journal_compact = {
    .group = "journal",
    .name = "compact",
    .arguments = "DIR",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Make a compact copy in the new directory DIR, of a live journal too",
    .help = "",
    .flags = common_flags,
    .run = run_compact,
};

/* --- export, import --- */

static int run_export(struct cli *cli)
{
    struct session session = {0};
    int status = cli_journal_begin(cli, &session);

    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_export(session.inspect, cli_text(cli, "out", NULL),
                                                    cli_switch(cli, "redact"), &session.err));
}

static const struct cli_flag export_flags[] = {
    DIR,
    {"redact", FLAG_SWITCH, NULL,
     "write *** for values that may be secret; such an export\n"
     "cannot be imported"},
    {"out", FLAG_TEXT, "FILE", "write to this new file, readable by its owner only"},
    END,
};

const struct cli_verb cli_journal_export = {
    .group = "journal",
    .name = "export",
    .arguments = "",
    .is_local = true,
    .summary = "Write everything as JSON Lines, which import reads",
    .help =
        "  An export holds the secrets of tasks, since it must give the same journal again: it\n"
        "  goes to a file that only its owner reads, to a pipe, or is redacted.",
    .flags = export_flags,
    .run = run_export,
};

static int run_import(struct cli *cli)
{
    const char *from = cli_argument(cli, 0), *to = cli_argument(cli, 1);
    struct err err = {0};
    uint64_t entries;

    if (inspect_import(text_equal(from, "-") ? NULL : from, to, &entries, &err) < 0)
        return cli_journal_fail(&err);
    (void)printf("%s: %" PRIu64 " entries\n", to, entries);
    return CLI_OK;
}

const struct cli_verb cli_journal_import = {
    .group = "journal",
    .name = "import",
    .arguments = "FILE DIR",
    .min = 2,
    .max = 2,
    .is_local = true,
    .summary = "Make the journal DIR from an export; - is standard input",
    .help = "",
    .run = run_import,
};

/* --- salvage --- */

static int run_salvage(struct cli *cli)
{
    const char *to = cli_argument(cli, 0);
    struct inspect_salvaged salvaged;
    struct err err = {0};

    if (inspect_salvage(cli_journal_path(cli), to, loop_now_unix_ns(), cli_journal_say, NULL,
                        &salvaged, &err) < 0)
        return cli_journal_fail(&err);
    (void)printf("%s: %" PRIu64 " machines, %" PRIu64 " events, %" PRIu64
                 " specifications and other texts; %" PRIu64 " machines lost\n",
                 to, salvaged.machines, salvaged.events, salvaged.texts, salvaged.lost);
    return salvaged.lost > 0 ? CLI_FAILED : CLI_OK;
}

static const struct cli_flag salvage_flags[] = {DIR, END};

const struct cli_verb cli_journal_salvage = {
    .group = "journal",
    .name = "salvage",
    .arguments = "DIR",
    .min = 1,
    .max = 1,
    .is_local = true,
    .summary = "Make a journal in the new directory DIR of what a refused one still holds",
    .help =
        "  The refused journal is only read.  Each entry is checked by itself; what cannot be\n"
        "  read, or may be old, is left behind and said.  The daemon does the same by itself at\n"
        "  its start, and keeps the refused data file beside the new one, as refused-N.mdb.\n"
        "  The exit status is 1 if a machine is lost.",
    .flags = salvage_flags,
    .run = run_salvage,
};

/* --- quarantine --- */

static int drop(const struct cli *cli, uint64_t number)
{
    struct err err = {0};

    if (inspect_quarantine_drop(cli_journal_path(cli), number, &err) < 0)
        return cli_journal_fail(&err);
    if (!cli_switch(cli, "json"))
        (void)printf("entry %" PRIu64 " is gone\n", number);
    return CLI_OK;
}

static int run_quarantine(struct cli *cli)
{
    const char *what = cli_argument(cli, 0), *which = cli_argument(cli, 1);
    bool list = text_equal(what, "list");
    struct session session = {0};
    uint64_t number = 0;

    if (!list && !text_equal(what, "show") && !text_equal(what, "drop"))
        return cli_fail(CLI_USAGE, "quarantine: \"%.60s\" is none of list, show, drop", what);
    if (list != (which == NULL) || (!list && (!text_to_u64(which, &number) || number == 0)))
        return cli_fail(CLI_USAGE, "usage: cairn journal quarantine list|show N|drop N");
    if (text_equal(what, "drop"))
        return drop(cli, number);
    int status = cli_journal_begin(cli, &session);
    if (status != 0)
        return status;
    return cli_journal_end(&session, inspect_quarantine(session.inspect, number, &session.err));
}

static const struct cli_flag quarantine_flags[] = {DIR, JSON, REVEAL, END};

const struct cli_verb cli_journal_quarantine = {
    .group = "journal",
    .name = "quarantine",
    .arguments = "list|show N|drop N",
    .min = 1,
    .max = 2,
    .is_local = true,
    .summary = "See, or drop, what could not be read and was put aside",
    .help = "",
    .flags = quarantine_flags,
    .run = run_quarantine,
};
