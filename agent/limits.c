/*
 * Bounds of different rooms that must fit together; those that follow from each other within one
 * room are asserted there (fsm/limits.h begins the derivation).
 */
#include "agent/api/part.h"
#include "journal/journal.h"
#include "spec/job.h"

enum {
    FILES_MAX = 65536,  /* descriptors that the unit allows (cairn.service) */
    FILES_OTHERS = 512, /* the journal, the log, the loop, what is open for one call */
};

/* Every payload has one descriptor, every connection two: its own and a file that it reads. */
_Static_assert(NODE_MEMBERS_MAX + 2 * API_CONNECTIONS_MAX + FILES_OTHERS <= FILES_MAX,
               "a full node has descriptors left");

/* Those who wait long leave connections for those who do not. */
_Static_assert(API_PARKED_MAX + API_STREAMS_MAX <= API_CONNECTIONS_MAX * 3 / 4,
               "a quarter of the connections answers at once");

/* Each connection has one request, which asks at most every task of one alloc. */
_Static_assert(CALLERS_MAX >= API_CONNECTIONS_MAX * SPEC_TASKS_MAX,
               "who is connected is not refused for the number of answers that wait");
_Static_assert(TURN_ASKED_A_MACHINE *NODE_MACHINES_MAX >= (int)CALLERS_MAX,
               "nor for the number of events");

/* What a request may bring fits what it is stored in, or is refused by name (server/alone). */
_Static_assert((int)API_BODY_MAX >= (int)JOURNAL_VALUE_BYTES_MAX, "a whole job fits a request");
_Static_assert((int)TURN_SPECS_BYTES_MAX >= (int)JOURNAL_VALUE_BYTES_MAX * 4,
               "a commit takes the largest specification, not only once");
