/*
 * Bounds of different rooms that must fit together; those that follow from each other within one
 * room are asserted there (fsm/limits.h begins the derivation).
 */
#include "agent/limits.h"

#include "agent/api/part.h"
#include "agent/tasks/tasks.h"
#include "journal/journal.h"
#include "spec/job.h"

enum {
    FILES_MAX = 65536,  /* descriptors that the unit allows (cairn.service) */
    FILES_OTHERS = 512, /* the journal, the log, the loop, what is open for one call */
};

/* Every payload has one descriptor and, with servers, one of a socket by which it asks them; every
 * connection two: its own and a file that it reads; by TLS two more, of the pair that it is passed
 * on by. */
size_t limits_files(size_t payloads, bool tls)
{
    size_t doors = payloads < TASK_DOORS_MAX ? payloads : TASK_DOORS_MAX;

    return payloads + doors + (tls ? 4u : 2u) * API_CONNECTIONS_MAX + FILES_OTHERS;
}

_Static_assert(NODE_MEMBERS_MAX + TASK_DOORS_MAX + 4 * API_CONNECTIONS_MAX + FILES_OTHERS <=
                   FILES_MAX,
               "a full node has descriptors left");

/* Those who wait long leave connections for those who do not.  Only these are never closed for
 * others (io/net/connection.c), but for those that wait for a commit, which is decided soon. */
_Static_assert(API_PARKED_MAX + API_FOLLOWERS_MAX + API_READS_MAX + API_ASIDES_MAX +
                       API_SESSIONS_MAX <=
                   API_CONNECTIONS_MAX * 7 / 8,
               "an eighth of the connections answers at once");

/* What requests, and what is made of one of them, take of memory at most (README, Limits): each
 * connection a short body, all a share of long ones, which double as they grow, and as much again
 * that waits to be read. */
enum {
    PARSED_A_BYTE = 32, /* jansson, for the shortest values there are */
    BODIES_MAX =
        2 * (API_CONNECTIONS_MAX * HTTP_SHORT_BYTES + API_BODIES_BYTES_MAX) + API_BODIES_BYTES_MAX,
};
_Static_assert(BODIES_MAX + PARSED_A_BYTE * API_BODY_MAX <= 512 << 20,
               "no more than half a GiB, whatever is sent");
_Static_assert((int)API_SHORT_BODY_MAX <= (int)HTTP_SHORT_BYTES,
               "short ones have room at any time");

/* Each request that waits for the daemon asks at most every task of one alloc. */
_Static_assert(CALLERS_MAX >= API_DEFERRED_MAX * SPEC_TASKS_MAX,
               "who may wait is not refused for the number of answers that wait");
_Static_assert(TURN_ASKED_A_MACHINE *NODE_MACHINES_MAX >= (int)CALLERS_MAX,
               "nor for the number of events");

/* What a request may bring fits what it is stored in, or is refused by name (server/alone). */
_Static_assert((int)API_BODY_MAX >= (int)JOURNAL_VALUE_BYTES_MAX, "a whole job fits a request");
_Static_assert((int)TURN_SPECS_BYTES_MAX >= (int)JOURNAL_VALUE_BYTES_MAX * 4,
               "a commit takes the largest specification, not only once");
