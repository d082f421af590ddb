/*
 * The inspector: `cairn journal ...`, what happened on a node, from its journal alone.
 *
 * Works on a live, stopped or copied journal without the daemon, and changes nothing except where
 * its verb says so (quarantine drop, import).  What cannot be read is reported and skipped; the
 * rest is shown.  Values that may be secret (environment, data of hooks) print as *** unless asked
 * for with -reveal, and go into exports only where nobody else can read them.
 */
#ifndef CAIRN_AGENT_INSPECT_H
#define CAIRN_AGENT_INSPECT_H

#include "agent/agent.h"

#include <stdio.h>

/* Runs `cairn journal VERB ...`; ARGV[0] is the verb.  Returns the exit status: 0, 1 when something
 * is wrong with the journal or it cannot be read, 2 when the command line is not understood. */
int cli_journal(int argc, char **argv);

/* The same with other streams, for tests. */
int inspect_run(int argc, char **argv, FILE *out, FILE *complain);

/* --- verify, for other programs too --- */

/*    finding         bad  what                                                                  */
#define FINDING_LIST(X)                                                                            \
    X(DAMAGED_EVENT, 1, "an event of the log cannot be read")                                      \
    X(DAMAGED_RECORD, 1, "the record of a machine cannot be read")                                 \
    X(DAMAGED_BASE, 1, "a base record cannot be read")                                             \
    X(GAP, 1, "events are missing from the log")                                                   \
    X(TIME_BACK, 1, "node time or turn numbers go back")                                           \
    X(MISSING_BASE, 1, "a history begins in mid-life and has no base record")                      \
    X(NO_ROW, 1, "an event that the tables have no transition for")                                \
    X(OTHER_ROW, 1, "another transition was stored than the tables give")                          \
    X(DIGEST, 1, "the record that followed is not what the transition gives")                      \
    X(ASSERTION, 1, "stepping the event breaks an assertion")                                      \
    X(STATE_DIFFERS, 1, "the stored record is not what its history gives")                         \
    X(STATE_MISSING, 1, "a machine that lives by its history has no record")                       \
    X(STATE_STRAY, 1, "a record whose history does not lead to it")                                \
    X(ORPHAN, 1, "a task or volume without its alloc")                                             \
    X(LOST_MEMBER, 1, "an alloc counts on a machine that is not there")                            \
    X(NO_SPEC, 1, "a live alloc has no specification")                                             \
    X(STRAY_SPEC, 0, "the specification of an alloc that is not there")                            \
    X(QUARANTINED, 0, "entries that an earlier start put into quarantine")
enum finding_kind {
#define X(name, bad, text) FINDING_##name,
    FINDING_LIST(X)
#undef X
        FINDING_COUNT,
};
const char *finding_name(enum finding_kind kind);

struct finding {
    enum finding_kind kind;
    bool bad;              /* false: worth knowing, nothing is wrong */
    uint64_t sequence;     /* of the event, 0: none */
    struct machine_id id;  /* text "" if it is about no machine */
    const char *what;      /* fixed text of the kind */
    char where[256];       /* table and key, or the transition */
    char details[512];     /* what was found and what was expected */
    const char *cost;      /* what it means for the node */
    const char *advice;    /* what to do */
};

typedef void inspect_finding_cb(void *ctx, const struct finding *finding);

struct inspect_verdict {
    uint64_t events, machines, first, last; /* sequences */
    uint64_t bad, notes;                    /* findings */
    uint64_t suppressed; /* events of machines whose history was found wrong before */
};

/* Steps every event from its base, compares each result, then the records as they are now.
 * Memory grows with the machines that live at the same time, not with the log.  Findings go to CB;
 * fails only if the journal cannot be walked at all. */
int inspect_verify(struct journal *journal, inspect_finding_cb *cb, void *ctx,
                   struct inspect_verdict *ret_verdict, struct err *err);

#endif
