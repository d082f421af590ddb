/*
 * `cairn journal VERB`: the command line of the inspector.
 *
 * One row for each verb says which flags it takes and how the journal is opened; flags may stand
 * before and behind arguments, with one dash or two, with "=" or a blank before the value.
 */
#include "agent/cli/cli.h"
#include "inspect/part.h"

#include <stdlib.h>
#include <string.h>

enum opening {
    OPEN_READ,   /* one moment of the journal, however much the daemon writes */
    OPEN_FOLLOW, /* the journal as it goes on */
    OPEN_NOT,    /* by the verb itself */
};

struct verb {
    const char *name, *arguments, *summary, *notes;
    int (*run)(struct inspect *inspect);
    uint8_t args_min, args_max;
    uint8_t opening;
    uint32_t flags;
};

#define F(flag) ((uint32_t)1 << FLAG_##flag)
#define COMMON (F(DIR) | F(JSON) | F(HELP))
#define FILTER (F(KIND) | F(STATE) | F(ALLOC))
#define RANGE (F(SINCE) | F(UNTIL))

#define WHEN_NOTES                                                                                 \
    "A moment is a sequence number, 2026-01-31T15:04:05Z, 15:04:05 (UTC, on the day the log\n"     \
    "ends), -5m (before the end of the log) or +90s (after its begin).\n"
#define ID_NOTES "ID is an id or its begin: 3f2a91c4 is the alloc, 3f2a91c4/web its task.\n"
#define EXPORT_NOTES                                                                               \
    "An export holds the secrets of tasks, since it must give the same journal again: it goes\n"   \
    "to a file that only its owner reads, to a pipe, or is redacted.\n"

/* clang-format off */
/* X(verb, arguments, summary, notes, function, arguments at least and at most, opening, flags) */
#define VERBS(X) \
    X(list, "", "List the machines of the node, as their records are now", NULL, \
      inspect_list, 0, 0, OPEN_READ, COMMON | FILTER | F(AGE) | F(REVEAL)) \
    X(show, "ID", "Show one machine: its record, what was asked for, its history", ID_NOTES, \
      inspect_show, 1, 1, OPEN_READ, COMMON | F(KIND) | F(ALL) | F(REVEAL)) \
    X(log, "", "Print the events, one on each line", WHEN_NOTES, \
      inspect_log, 0, 0, OPEN_FOLLOW, \
      COMMON | FILTER | RANGE | F(EVENT) | F(LINES) | F(FOLLOW) | F(REVEAL)) \
    X(at, "WHEN", "Show the whole node as it was then", WHEN_NOTES, \
      inspect_at, 1, 1, OPEN_READ, COMMON | FILTER | F(ALL) | F(REVEAL)) \
    X(diff, "WHEN WHEN", "Show what changed between two moments, field by field", WHEN_NOTES, \
      inspect_diff, 2, 2, OPEN_READ, COMMON | F(KIND) | F(ALLOC) | F(REVEAL)) \
    X(verify, "", "Step every event again and compare all records", \
      "The exit status is 0 if nothing is wrong, else 1.\n", \
      inspect_verify_verb, 0, 0, OPEN_READ, COMMON) \
    X(timeline, "", "Draw allocs, tasks, volumes, plugins and restarts over time", WHEN_NOTES, \
      inspect_timeline, 0, 0, OPEN_READ, COMMON | F(KIND) | F(ALLOC) | RANGE | F(HTML) | F(WIDTH)) \
    X(restore, "", "Show what a restart of the daemon would do now; performs nothing", NULL, \
      inspect_restore, 0, 0, OPEN_READ, COMMON | F(REBOOTED) | F(SERVERS) | F(AFTER)) \
    X(stats, "", "Print figures: tables, sizes, rates, events by kind", NULL, \
      inspect_stats, 0, 0, OPEN_READ, COMMON) \
    X(export, "", "Write everything as JSON Lines, which import reads", EXPORT_NOTES, \
      inspect_export, 0, 0, OPEN_READ, F(DIR) | F(HELP) | F(OUT) | F(REDACT)) \
    X(import, "FILE DIR", "Make the journal DIR from an export; - is standard input", NULL, \
      inspect_import, 2, 2, OPEN_NOT, F(HELP)) \
    X(compact, "DIR", "Make a compact copy in the new directory DIR, of a live journal too", NULL, \
      inspect_compact, 1, 1, OPEN_READ, COMMON) \
    X(quarantine, "list|show N|drop N", \
      "See, or drop, what could not be read and was put aside", NULL, \
      inspect_quarantine, 1, 2, OPEN_NOT, COMMON | F(REVEAL))

static const struct verb verbs[] = {
#define X(name, arguments, summary, notes, run, min, max, opening, flags) \
    {#name, arguments, summary, notes, run, min, max, opening, flags},
    VERBS(X)
#undef X
};

/* Their entries in the table of all commands, which hands them over unread. */
#define X(name_, arguments_, summary_, notes_, run_, min_, max_, opening_, flags_) \
    const struct cli_verb cli_journal_##name_ = { \
        .group = "journal", .name = #name_, .arguments = arguments_, .is_local = true, \
        .summary = summary_, .help = "", .run_raw = cli_journal};
VERBS(X)
#undef X

static const struct {
    const char *name, *value, *text;
} flags[FLAG_COUNT] = {
#define X(flag, name, value, text) [FLAG_##flag] = {name, value, text},
    INSPECT_FLAGS(X)
#undef X
};
/* clang-format on */

_Static_assert((int)FLAG_COUNT <= 32, "flags fit a mask");

/* --- help --- */

static void help_flag(FILE *to, size_t number)
{
    char head[64];
    const char *text = flags[number].text, *end;

    (void)text_format(head, sizeof(head), "-%s%s%s", flags[number].name,
                      flags[number].value == NULL ? "" : " ",
                      flags[number].value == NULL ? "" : flags[number].value); /* fits */
    while ((end = strchr(text, '\n')) != NULL) {
        (void)fprintf(to, "  %-16s %.*s\n", head, (int)(end - text), text);
        head[0] = '\0';
        text = end + 1;
    }
    (void)fprintf(to, "  %-16s %s\n", head, text);
}

static void help_verb(FILE *to, const struct verb *verb)
{
    (void)fprintf(to, "Usage: cairn journal %s%s%s [FLAGS]\n\n  %s.\n\n", verb->name,
                  verb->arguments[0] == '\0' ? "" : " ", verb->arguments, verb->summary);
    if (verb->notes != NULL)
        (void)fprintf(to, "%s\n", verb->notes);
    (void)fputs("Flags:\n", to);
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((verb->flags >> i & 1u) != 0)
            help_flag(to, i);
    }
}

/* --- reading the command line --- */

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (text_equal(verbs[i].name, name))
            return &verbs[i];
    }
    return NULL;
}

/* "-5m" is a moment, not a flag. */
static bool is_flag(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && (text[1] < '0' || text[1] > '9');
}

static size_t flag_number(const struct verb *verb, const char *name, size_t length)
{
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((verb->flags >> i & 1u) != 0 && strlen(flags[i].name) == length &&
            strncmp(flags[i].name, name, length) == 0)
            return i;
    }
    return FLAG_COUNT;
}

/* Takes ARGV[*AT], and the value behind it. */
static int take_flag(struct inspect *inspect, const struct verb *verb, int argc, char **argv,
                     int *at)
{
    const char *name = argv[*at] + (text_starts_with(argv[*at], "--") ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t length = equals == NULL ? strlen(name) : (size_t)(equals - name);
    size_t number = length == 4 && strncmp(name, "help", length) == 0
                        ? (size_t)FLAG_HELP
                        : flag_number(verb, name, length);

    if (number == FLAG_COUNT)
        return inspect_usage(inspect, "%s has no flag %s; see: cairn journal %s -h", verb->name,
                             argv[*at], verb->name);
    if (flags[number].value == NULL) {
        if (equals != NULL)
            return inspect_usage(inspect, "-%s takes no value", flags[number].name);
        inspect->flags[number] = "";
        return 0;
    }
    if (equals == NULL && *at + 1 >= argc)
        return inspect_usage(inspect, "-%s needs %s", flags[number].name, flags[number].value);
    inspect->flags[number] = equals != NULL ? equals + 1 : argv[++*at];
    return 0;
}

static int take_arguments(struct inspect *inspect, const struct verb *verb, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (is_flag(argv[i])) {
            int status = take_flag(inspect, verb, argc, argv, &i);
            if (status != 0)
                return status;
            continue;
        }
        if (inspect->args_count == verb->args_max)
            return inspect_usage(inspect, "%s: \"%s\" is too much; see: cairn journal %s -h",
                                 verb->name, argv[i], verb->name);
        inspect->args[inspect->args_count++] = argv[i];
    }
    if (inspect_flag(inspect, FLAG_HELP))
        return 0;
    if (inspect->args_count < verb->args_min)
        return inspect_usage(inspect, "usage: cairn journal %s %s", verb->name, verb->arguments);
    return 0;
}

static int take_kind(struct inspect *inspect)
{
    const char *name = inspect->flags[FLAG_KIND];

    inspect->kind = -1;
    for (int kind = 0; name != NULL && kind < MACHINE_KIND_COUNT; kind++) {
        if (text_equal(machine_kind_name((enum machine_kind)kind), name))
            inspect->kind = kind;
    }
    if (name != NULL && inspect->kind < 0)
        return inspect_usage(inspect, "-kind: \"%s\" is none of alloc, task, volume, plugin", name);
    return 0;
}

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

static int check_names(struct inspect *inspect)
{
    const char *state = inspect->flags[FLAG_STATE], *event = inspect->flags[FLAG_EVENT];

    if (state != NULL && !is_name(fsm_state_name, state))
        return inspect_usage(inspect, "-state: no machine has a state \"%s\"; see: cairn fsm show",
                             state);
    if (event != NULL && !is_name(fsm_event_name, event))
        return inspect_usage(inspect, "-event: no machine has an event \"%s\"; see: cairn fsm show",
                             event);
    return 0;
}

/* --- running --- */

static int open_for(struct inspect *inspect, const struct verb *verb, struct err *err)
{
    if (verb->opening == OPEN_NOT)
        return 0;
    int code = inspect_open(inspect, JOURNAL_READ, err);
    if (code == 0 && verb->opening == OPEN_READ)
        code = journal_freeze(inspect->journal, err);
    if (code == 0)
        code = inspect_ends(inspect, err);
    return code;
}

static int run_verb(struct inspect *inspect, const struct verb *verb)
{
    struct err err = {0};

    if (open_for(inspect, verb, &err) < 0)
        return inspect_fail(inspect, &err);
    int status = verb->run(inspect);
    if (fflush(inspect->out) != 0 || ferror(inspect->out)) {
        (void)err_set(&err, ERR_IO, "the output could not be written");
        return inspect_fail(inspect, &err);
    }
    if (inspect->damaged > 0 && status == STATUS_OK) {
        (void)fprintf(
            inspect->complain,
            "cairn journal: %llu damaged entries were skipped; see: cairn journal verify\n",
            (unsigned long long)inspect->damaged);
        return STATUS_WRONG;
    }
    return status;
}

int inspect_run(int argc, char **argv, FILE *out, FILE *complain)
{
    struct inspect inspect = {.out = out, .complain = complain};

    if (argc < 1)
        return inspect_usage(&inspect, "no verb; see: cairn journal -h");
    const struct verb *verb = find_verb(argv[0]);
    if (verb == NULL)
        return inspect_usage(&inspect, "no verb \"%s\"; see: cairn journal -h", argv[0]);
    int status = take_arguments(&inspect, verb, argc, argv);
    if (status == 0 && inspect_flag(&inspect, FLAG_HELP)) {
        help_verb(out, verb);
        return STATUS_OK;
    }
    if (status == 0)
        status = take_kind(&inspect);
    if (status == 0)
        status = check_names(&inspect);
    if (status == 0)
        status = run_verb(&inspect, verb);
    journal_close(inspect.journal);
    return status;
}

int cli_journal(int argc, char **argv)
{
    return inspect_run(argc, argv, stdout, stderr);
}
