/*
 * What daemon and shim say to each other, over a SOCK_SEQPACKET socket: one message a packet.
 *
 * The client speaks first: HELLO names the versions it knows, WELCOME the one both use from then
 * on and how things stand.  Requests carry a ticket that their REPLY repeats.  STARTED and EXIT
 * come by themselves to every client that was welcomed.  A shim outlives many daemons, so both
 * sides take older partners: a request that the shim does not know is answered UNSUPPORTED, and a
 * message may be longer than a reader knows, never shorter.
 *
 * Versions: 1 is the first.  2 adds SIGNAL.
 */
#ifndef CAIRN_DRIVERS_SHIM_PROTOCOL_H
#define CAIRN_DRIVERS_SHIM_PROTOCOL_H

#include "drivers/shim/record.h"

#include <stdint.h>

enum { SHIM_PROTOCOL_OLDEST = 1, SHIM_MESSAGE_MAX = 512 };

/* The tests build a second shim that stops at an older version. */
#ifndef SHIM_PROTOCOL_NEWEST
#define SHIM_PROTOCOL_NEWEST 2
#endif

#define SHIM_VERSION "0.1.0"

/* What a shim inherits from the daemon that has it made. */
enum { SHIM_FD_TASK = 3, SHIM_FD_CONTROL = 4, SHIM_FD_LAUNCH = 5, SHIM_FDS = 3 };

/* The nursery is cairn-shim under this name, with a SOCK_SEQPACKET socket as its descriptor: a
 * packet is the name of a shim that it is to make, with the descriptors that this one inherits.
 * There is no answer: the shim speaks for itself, and where it cannot be made the nursery says so
 * in its place.  Daemon and nursery are of one version, for it ends with the daemon. */
#define NURSERY_PROGRAM "cairn-nursery"
enum { NURSERY_FD = 3, NURSERY_NAME_MAX = 256 };

/* What a shim inherits from the nursery (nothing.c), behind the places of what is sent to it. */
enum { SHIM_FD_NOTHING = NURSERY_FD + SHIM_FDS + 1 };

enum shim_message {
    /* to the shim */
    SHIM_HELLO = 1,  /* struct shim_hello */
    SHIM_STATUS = 2, /* struct shim_head; answered by STATE */
    SHIM_STOP = 3,   /* struct shim_stop */
    SHIM_BYE = 4,    /* struct shim_head; not answered */
    SHIM_SIGNAL = 5, /* struct shim_signal, version 2 */

    /* from the shim */
    SHIM_WELCOME = 64, /* struct shim_state; protocol 0: no common version */
    SHIM_STATE = 65,   /* struct shim_state */
    SHIM_REPLY = 66,   /* struct shim_reply */
    SHIM_STARTED = 67, /* struct shim_state; of shims that say WELCOME before they have started */
    SHIM_EXIT = 68,    /* struct shim_exit */
};

struct shim_head {
    uint16_t kind;
    uint16_t protocol; /* that the sender speaks here */
    uint32_t ticket;   /* of a request and its reply, else 0 */
};

struct shim_hello {
    struct shim_head head;
    uint16_t oldest, newest;
    uint32_t zero;
};

struct shim_stop {
    struct shim_head head;
    int32_t signal; /* for the main process; the first request's counts */
    uint32_t zero;
    uint64_t timeout_ms; /* from now until everything is killed; can only shorten */
};

struct shim_signal {
    struct shim_head head;
    int32_t signal;
    uint32_t once; /* the same number again sends nothing, 0: it does; older shims do not look */
};

struct shim_reply {
    struct shim_head head;
    int32_t code; /* 0 or ERR_* */
    int32_t os;
};

enum shim_phase {
    SHIM_STARTING = 1, /* no payload yet, or not known to run */
    SHIM_RUNNING = 2,
    SHIM_ENDING = 3, /* the main process has ended, EXIT follows */
};

struct shim_state {
    struct shim_head head;
    uint16_t oldest, newest; /* that the shim knows */
    uint32_t phase;          /* enum shim_phase */
    uint64_t key_digest;     /* whose shim this is */
    int32_t shim_pid, payload_pid;
    uint64_t shim_ticks, payload_ticks;
    int64_t started_unix_ns;
    uint64_t log_bytes_written, log_bytes_lost;
    char version[16];
};

struct shim_exit {
    struct shim_head head;
    struct exit_record record;
};

_Static_assert(sizeof(struct shim_exit) <= SHIM_MESSAGE_MAX, "a message fits its buffer");
_Static_assert(sizeof(struct shim_state) == 88, "part of a protocol");

#endif
