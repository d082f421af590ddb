/*
 * The inspector: `cairn journal ...`, what happened on a node, from its journal alone.
 *
 * Works on a live, stopped or copied journal without the daemon, and changes nothing except where
 * its verb says so (quarantine drop, import).  What cannot be read is reported and skipped; the
 * rest is shown.  Values that may be secret (environment, data of hooks) print as *** unless asked
 * for with -reveal, and go into exports only where nobody else can read them.
 */
#ifndef CAIRN_INSPECT_INSPECT_H
#define CAIRN_INSPECT_INSPECT_H

#include "core/core.h"

#include <stdio.h>

/* Runs `cairn journal VERB ...`; ARGV[0] is the verb.  Returns the exit status: 0, 1 when something
 * is wrong with the journal or it cannot be read, 3 when the command line is not understood. */
int cli_journal(int argc, char **argv);

/* The same with other streams, for tests. */
int inspect_run(int argc, char **argv, FILE *out, FILE *complain);

/* --- verify, for other programs too --- */

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
const char *finding_name(enum finding_kind kind);

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

#endif
