/* What the files of the inspector share.  Private to inspect*.c, timeline*.c, cli_journal*.c. */
#ifndef CAIRN_INSPECT_PART_H
#define CAIRN_INSPECT_PART_H

#include "inspect/fields.h"
#include "inspect/inspect.h"

/*    flag         name          value       what */
#define INSPECT_FLAGS(X)                                                                           \
    X(DIR, "dir", "PATH",                                                                          \
      "the journal's directory or the data directory it is in;\n"                                  \
      "default: $CAIRN_DATA_DIR, or /var/lib/cairn")                                               \
    X(JSON, "json", NULL, "one JSON value on each line")                                           \
    X(HELP, "h", NULL, "this text")                                                                \
    X(KIND, "kind", "KIND", "only machines of this kind: alloc, task, volume, plugin")             \
    X(STATE, "state", "STATE", "only machines in this state; of events: that lead to it")          \
    X(ALLOC, "alloc", "ID", "only this alloc and what belongs to it; a prefix is enough")          \
    X(AGE, "age", "TIME", "only machines that have been in their state for so long, as 1h30m")     \
    X(EVENT, "event", "EVENT", "only events of this name, as EXITED")                              \
    X(SINCE, "since", "WHEN", "from this sequence number or time on")                              \
    X(UNTIL, "until", "WHEN", "up to this sequence number or time")                                \
    X(LINES, "n", "COUNT", "the last COUNT only")                                                  \
    X(FOLLOW, "f", NULL, "go on with what the daemon adds, until interrupted")                     \
    X(ALL, "all", NULL, "all fields: those that are zero, too, or of each machine")                \
    X(REVEAL, "reveal", NULL, "show values that may be secret")                                    \
    X(REDACT, "redact", NULL,                                                                      \
      "write *** for values that may be secret; such an export\n"                                  \
      "cannot be imported")                                                                        \
    X(OUT, "out", "FILE", "write to this new file, readable by its owner only")                    \
    X(HTML, "html", "FILE", "a page with everything in it, for any browser")                       \
    X(WIDTH, "width", "COLUMNS", "of the drawing; default: the terminal's")                        \
    X(REBOOTED, "rebooted", NULL, "as if the host had been booted since")                          \
    X(SERVERS, "servers", NULL, "as a client of servers, which have to be asked first")            \
    X(AFTER, "after", "TIME",                                                                      \
      "as if the daemon came back so long after the last event;\n"                                 \
      "default: now")
enum inspect_flag {
#define X(flag, name, value, text) FLAG_##flag,
    INSPECT_FLAGS(X)
#undef X
        FLAG_COUNT,
};

enum { INSPECT_ARGS_MAX = 2, ID_SHORT = 8 };

/* Where the log stands at one event. */
struct moment {
    uint64_t sequence, turn, now_ms;
    int64_t unix_ns;
};

struct inspect {
    FILE *out, *complain;
    const char *flags[FLAG_COUNT]; /* NULL: not given; "" for flags without a value */
    const char *args[INSPECT_ARGS_MAX];
    size_t args_count;
    char path[JOURNAL_PATH_SIZE]; /* of the journal */
    struct journal *journal;
    struct moment first, last; /* of the log; zeroes if it is empty */
    uint64_t damaged;          /* entries that could not be read */
    int kind;                  /* of -kind, -1: any */
};

/* As all commands end (cli.h). */
enum { STATUS_OK = 0, STATUS_WRONG = 1, STATUS_USAGE = 3 };

/* --- verbs --- */

int inspect_list(struct inspect *inspect);
int inspect_show(struct inspect *inspect);
int inspect_log(struct inspect *inspect);
int inspect_at(struct inspect *inspect);
int inspect_diff(struct inspect *inspect);
int inspect_verify_verb(struct inspect *inspect);
int inspect_timeline(struct inspect *inspect);
int inspect_restore(struct inspect *inspect);
int inspect_stats(struct inspect *inspect);
int inspect_export(struct inspect *inspect);
int inspect_import(struct inspect *inspect);
int inspect_compact(struct inspect *inspect);
int inspect_quarantine(struct inspect *inspect);

/* --- helpers (part.c) --- */

/* Prints "cairn journal: text" and returns STATUS_WRONG; _usage: STATUS_USAGE. */
int inspect_fail(struct inspect *inspect, const struct err *err);
int inspect_usage(struct inspect *inspect, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For all walks: reports a damaged entry and counts it.  CTX points to a struct whose first member
 * is the struct inspect pointer. */
void inspect_bad(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                 const char *reason);

/* For walks over what another walk reports. */
void inspect_ignore(void *ctx, const char *table, const char *key, const void *bytes, size_t length,
                    const char *reason);

bool inspect_flag(const struct inspect *inspect, enum inspect_flag flag);

/* Finds the journal that -dir or the environment names, opens it for MODE. */
int inspect_open(struct inspect *inspect, enum journal_mode mode, struct err *err);

/* --- moments (time.c) --- */

/* Reads the log's first and last event. */
int inspect_ends(struct inspect *inspect, struct err *err);

/* A sequence number, RFC 3339, 15:04:05 (UTC, on the day the log ends or the day before), -5m
 * (before the log's end), +5m (after its begin).  RET_SEQUENCE is the last event that was stored
 * by then; 0: none. */
int inspect_when(struct inspect *inspect, const char *text, uint64_t *ret_sequence,
                 struct err *err);
int inspect_time(const struct inspect *inspect, const char *text, int64_t *ret_unix_ns,
                 struct err *err);

/* -since and -until as sequences, both included. */
int inspect_range(struct inspect *inspect, uint64_t *ret_first, uint64_t *ret_last,
                  struct err *err);

/* "1.234s", "3m5s", "2h10m", "5d3h". */
enum { AGE_TEXT_SIZE = 32 };
void age_print(int64_t ns, char to[AGE_TEXT_SIZE]);

/* The wall clock when node time was MS, by the log's end. */
int64_t inspect_unix_ns(const struct inspect *inspect, uint64_t ms);

/* --- machines (part.c) --- */

/* True if -kind and -alloc let ID through. */
bool inspect_wants(const struct inspect *inspect, const struct machine_id *id);

/* True if ID belongs to the alloc whose id begins with PREFIX, or is it. */
bool id_in_alloc(const struct machine_id *id, const char *prefix);

/* The id as people want it: the alloc's first eight digits, and the name. */
enum { ID_TEXT_SIZE = MACHINE_ID_SIZE };
void id_print(const struct machine_id *id, char to[ID_TEXT_SIZE]);

/* One line about what a machine is: its job and group, driver, plugin. */
void record_summary(const struct machine *record, char *to, size_t size);

/* core_describe, with control characters replaced. */
void event_describe(const struct journal_event *event, char *to, size_t size);

/* Makes the values of "Env" objects and of members called "secret" ***, wherever they are. */
void spec_redact(json_t *value);

/* Finds the machine that TEXT names: an id or its begin, an alloc's before its parts. */
int inspect_find(struct inspect *inspect, const char *text, struct machine_id *ret_id,
                 struct err *err);

#endif
