/*
 * The inspector: what happened on a node, from its journal alone.
 *
 * A library: a journal is opened, then each call prints one thing that was asked about it.  Works
 * on a live, stopped or copied journal without the daemon, and changes nothing but where its call
 * says so (inspect_import, inspect_quarantine_drop).  What cannot be read is said, counted and
 * skipped; the rest is shown.  Values that may be secret (environment, headers of artifacts, texts
 * of templates, data of hooks) print as *** unless they are to be revealed, and go into exports
 * only where nobody else can read them.
 *
 * A moment is a text: a sequence number, 2026-01-31T15:04:05Z, 15:04:05 (UTC, on the day the log
 * ends or the day before), -5m (before the end of the log) or +90s (after its begin).
 */
#ifndef CAIRN_INSPECT_INSPECT_H
#define CAIRN_INSPECT_INSPECT_H

#include "core/core.h"

#include <stdio.h>

enum { INSPECT_LINES_MAX = 100000 };

/* TEXT is one line without its end, safe for a terminal. */
typedef void inspect_say_cb(void *ctx, const char *text);

/* What is wanted and how it is printed; what is 0 or NULL is as usual. */
struct inspect_options {
    FILE *out;                 /* what was asked for; never NULL, stays the caller's */
    inspect_say_cb *say;       /* told beside it: damage, what was left out; NULL: to nobody */
    void *say_ctx;             /* handed to SAY */
    int64_t now_unix_ns;       /* the wall clock */
    bool json;                 /* one JSON value on each line */
    bool reveal;               /* values that may be secret */
    bool all;                  /* all fields: those that are zero, too, or of each machine */
    bool follow;               /* the journal as it goes on; else one moment of it */
    unsigned kinds;            /* only machines of these kinds, 1 << enum machine_kind; 0: all */
    const char *alloc;         /* only this alloc and what belongs to it; a prefix is enough */
    const char *state;         /* only machines in this state; of events: that lead to it */
    const char *event;         /* only events of this name */
    const char *since, *until; /* only events from this moment on, up to it */
};

struct inspect;

/* Opens the journal that PATH names (journal_locate) for reading.  OPTIONS are copied, the texts in
 * them borrowed until inspect_close.  Errors: of journal_locate, journal_open, the log's ends. */
int inspect_open(const char *path, const struct inspect_options *options,
                 struct inspect **ret_inspect, struct err *err);
void inspect_close(struct inspect *inspect); /* NULL is fine */

/* Entries that could not be read so far and were skipped. */
uint64_t inspect_damaged(const struct inspect *inspect);

/* --- what can be asked; each call prints to OUT --- */

/* The machines as their records are now, those that have been in their state for AGE_NS. */
int inspect_list(struct inspect *inspect, int64_t age_ns, struct err *err);

/* One machine: its record, what was asked for, its history.  NAME is an id or its begin, an alloc's
 * before those of its parts; ERR_GONE: there is none, ERR_INVALID: there are several. */
int inspect_show(struct inspect *inspect, const char *name, struct err *err);

/* The events; with LINES not 0 (up to INSPECT_LINES_MAX) only so many of the last ones.  Ends with
 * FOLLOW only at UNTIL or when OUT cannot be written. */
int inspect_log(struct inspect *inspect, uint64_t lines, struct err *err);

/* The whole node as it was at a moment; what changed between two, field by field. */
int inspect_at(struct inspect *inspect, const char *moment, struct err *err);
int inspect_diff(struct inspect *inspect, const char *from, const char *to, struct err *err);

struct inspect_drawing {
    const char *html; /* a page is written to this file instead; NULL: none */
    int64_t columns;  /* of a line of text; 0: as usual */
};
int inspect_timeline(struct inspect *inspect, const struct inspect_drawing *drawing,
                     struct err *err);

struct inspect_restart {
    bool rebooted;   /* as if the host had been booted since */
    bool servers;    /* as a client of servers, which have to be asked first */
    int64_t away_ns; /* since the last event; -1: until now */
};
/* What a restart of the daemon would do; performs nothing. */
int inspect_restore(struct inspect *inspect, const struct inspect_restart *restart,
                    struct err *err);

/* Figures: tables, sizes, rates, events by kind. */
int inspect_stats(struct inspect *inspect, struct err *err);

/* A compact copy in the new directory PATH, of a live journal too. */
int inspect_compact(struct inspect *inspect, const char *path, struct err *err);

/* What could not be read and was put aside: entry NUMBER, 0: all of them. */
int inspect_quarantine(struct inspect *inspect, uint64_t number, struct err *err);

/* Drops entry NUMBER of the journal that PATH names, which must not be in use. */
int inspect_quarantine_drop(const char *path, uint64_t number, struct err *err);

/* --- transfer --- */

/* Everything as JSON Lines, to the new file PATH, readable by its owner only, or to OUT (PATH
 * NULL), which must not be readable by others then: ERR_REFUSED.  REDACT writes *** for values that
 * may be secret; such an export cannot be imported. */
int inspect_export(struct inspect *inspect, const char *path, bool redact, struct err *err);

/* Makes the journal TO, which must not be there or be an empty directory, from the export in the
 * file FROM, NULL: standard input.  On failure nothing is left of it. */
int inspect_import(const char *from, const char *to, uint64_t *ret_entries, struct err *err);

/* --- salvage --- */

struct inspect_salvaged {
    uint64_t machines, events, texts; /* brought over */
    uint64_t lost;                    /* machines that were there and cannot be read */
    uint64_t doubtful;                /* left behind: what may be old, or was deleted */
};

/* Makes the journal TO, which must not be there or be an empty directory, of what the one that FROM
 * names still holds though it is refused; SAY is told what is lost, a line each.  FROM is only
 * read, and nobody may be using it.  ERR_GONE: nothing in it can be read. */
int inspect_salvage(const char *from, const char *to, int64_t now_unix_ns, inspect_say_cb *say,
                    void *say_ctx, struct inspect_salvaged *ret_salvaged, struct err *err);

/* The same for the journal in the directory PATH, in whose place the new one is put; the old data
 * file is kept beside it, as RET_KEPT says.  Where this fails, the old one is untouched. */
int inspect_salvage_in_place(const char *path, int64_t now_unix_ns, inspect_say_cb *say,
                             void *say_ctx, char ret_kept[JOURNAL_PATH_SIZE],
                             struct inspect_salvaged *ret_salvaged, struct err *err);

/* --- verify --- */

/*    finding, bad, what it is, what it costs, what to do */
#define FINDING_LIST(X)                                                                            \
    X(DAMAGED_EVENT, 1, "an event of the log cannot be read",                                      \
      "the history has a hole; a restart does not read it, so the node is not in danger",          \
      "keep a copy (cairn journal compact DIR), then look for the cause: disk, memory")            \
    X(DAMAGED_RECORD, 1, "the record of a machine cannot be read",                                 \
      "the next start puts it into quarantine and brings its alloc to an end",                     \
      "stop the job before the daemon is restarted, or see what would happen: "                    \
      "cairn journal restore")                                                                     \
    X(DAMAGED_BASE, 1, "a base record cannot be read",                                             \
      "the history of this machine cannot be checked; a restart does not read it",                 \
      "nothing; it goes when the machine does")                                                    \
    X(DAMAGED_SPEC, 1, "a specification cannot be read",                                           \
      "a task of the alloc cannot be started again; those that run are not touched",               \
      "submit the job again, so that its alloc is replaced")                                       \
    X(DAMAGED_META, 1, "an entry of the node's own cannot be read",                                \
      "the daemon may refuse to start, or take another node id",                                   \
      "keep a copy before the daemon is started again")                                            \
    X(GAP, 1, "events are missing from the log",                                                   \
      "what came after them cannot be checked; a restart does not read the log",                   \
      "find out who changed the journal: the daemon writes events without gaps")                   \
    X(TIME_BACK, 1, "node time or turn numbers go back", "timers may have fired late or early",    \
      "report it with a copy of the journal (cairn journal export -redact)")                       \
    X(MISSING_BASE, 1, "a history begins in mid-life and has no base record",                      \
      "the history of this machine cannot be checked; a restart does not read it",                 \
      "find out who changed the journal: bases are written when the log is trimmed")               \
    X(NO_ROW, 1, "an event that the tables have no transition for",                                \
      "the record may be wrong, and a restart goes on from the record",                            \
      "if this is another version of cairn than the one that wrote it, do not upgrade; else "      \
      "report it")                                                                                 \
    X(OTHER_ROW, 1, "another transition was stored than the tables give",                          \
      "the record may be wrong, and a restart goes on from the record",                            \
      "if this is another version of cairn than the one that wrote it, do not upgrade; else "      \
      "report it")                                                                                 \
    X(DIGEST, 1, "the record that followed is not what the transition gives",                      \
      "the record may be wrong, and a restart goes on from the record",                            \
      "if this is another version of cairn than the one that wrote it, do not upgrade; else "      \
      "report it")                                                                                 \
    X(ASSERTION, 1, "stepping the event breaks an assertion",                                      \
      "a daemon that got this event would end itself",                                             \
      "report it with a copy of the journal (cairn journal export -redact)")                       \
    X(STATE_DIFFERS, 1, "the stored record is not what its history gives",                         \
      "a restart goes on from the stored record: it may start, stop or forget the wrong thing",    \
      "see cairn journal restore; if in doubt, stop the job before the daemon is restarted")       \
    X(STATE_MISSING, 1, "a machine that lives by its history has no record",                       \
      "a restart does not know it: what it left outside is found only by the sweep for orphans",   \
      "look whether its processes still run; submit its job again")                                \
    X(STATE_STRAY, 1, "a record that no history leads to", "a restart takes it up as it is",       \
      "see cairn journal restore")                                                                 \
    X(ORPHAN, 1, "a task or volume without its alloc",                                             \
      "a restart ends it, in order, together with what is left of its alloc",                      \
      "submit the job again afterwards")                                                           \
    X(LOST_MEMBER, 1, "an alloc counts on a machine that is not there",                            \
      "a restart fails the alloc and ends its other tasks", "submit the job again afterwards")     \
    X(MEMBER_ASIDE, 0, "an alloc counts on a machine that is in quarantine",                       \
      "the next start fails the alloc and ends its other tasks",                                   \
      "submit the job again afterwards")                                                           \
    X(CONTRADICTION, 1, "an alloc and its task do not tell the same story",                        \
      "a restart puts what it does not believe into quarantine, ends what runs of it, and the "    \
      "alloc with it unless that is over already",                                                 \
      "see cairn journal restore; stop the job before the daemon is restarted")                    \
    X(NO_SPEC, 1, "a live alloc has no specification",                                             \
      "its tasks run on, but cannot be started again",                                             \
      "submit the job again, so that the alloc is replaced")                                       \
    X(STRAY_SPEC, 0, "the specification of an alloc that is not there", "nothing but its bytes",   \
      "nothing")                                                                                   \
    X(QUARANTINED, 0, "an earlier start has put an entry into quarantine",                         \
      "what it was then: one alloc at most", "see cairn journal quarantine list")
enum finding_kind {
#define X(name, bad, what, cost, advice) FINDING_##name,
    FINDING_LIST(X)
#undef X
        FINDING_COUNT,
};
const char *inspect_finding_name(enum finding_kind kind);

struct finding {
    enum finding_kind kind;
    bool bad;             /* false: worth knowing, nothing is wrong */
    uint64_t sequence;    /* of the event, 0: none */
    struct machine_id id; /* text "" if it is about no machine */
    const char *what, *cost, *advice;
    char where[512];   /* table and key, or the transition */
    char details[512]; /* what was found and what was expected */
};

typedef void inspect_finding_cb(void *ctx, const struct finding *finding);

struct inspect_verdict {
    uint64_t events, first, last; /* stepped or not; sequences */
    uint64_t machines;            /* with a record */
    uint64_t bad, notes;          /* findings */
    uint64_t unchecked;           /* events of machines whose history was found wrong before */
};

/* Steps every event from its base, compares each result, then the records as they are now.
 * Memory grows with the machines that live at the same time, not with the log.  Findings go to CB;
 * fails only if the journal cannot be walked at all. */
int inspect_verify(struct journal *journal, inspect_finding_cb *cb, void *ctx,
                   struct inspect_verdict *ret_verdict, struct err *err);

/* The same, printed. */
int inspect_findings(struct inspect *inspect, struct inspect_verdict *ret_verdict, struct err *err);

#endif
