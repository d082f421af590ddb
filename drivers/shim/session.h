/*
 * What daemon and session helper say to each other, over a SOCK_SEQPACKET socket: one message a
 * packet.  Both are of one version: a session ends with the daemon that asked for it.
 *
 * The helper is cairn-shim under the name cairn-session, with the descriptors below; the launch
 * record says what to run, as for a shim, with the task's cgroup as its cgroup.  It makes a cgroup
 * of its own below that, runs the program in it and in the namespaces of the task's main process,
 * and ends all of it when the program has ended, the task, or the daemon, whose end of the socket
 * tells.
 */
#ifndef CAIRN_DRIVERS_SHIM_SESSION_H
#define CAIRN_DRIVERS_SHIM_SESSION_H

#include "base/base.h"

#include <stdint.h>

#define SESSION_PROGRAM "cairn-session"
#define SESSION_CGROUP_PREFIX "session-" /* and a number; below the task's */

/* What it inherits: a pidfd of the task's main process, its end of the socket, the record. */
enum { SESSION_FD_TASK = 3, SESSION_FD_CONTROL = 4, SESSION_FD_LAUNCH = 5 };

enum session_message {
    SESSION_RUNS = 1,   /* with descriptors: a terminal, or the ends of stdin, stdout, stderr */
    SESSION_FAILED = 2, /* it could not be run */
    SESSION_ENDED = 3,
};

struct session_said {
    uint32_t kind;
    int32_t code, signal; /* ENDED: exit status or 128 + signal; FAILED: ERR_* and errno */
    uint32_t is_gone;     /* ENDED: because the task has */
    char message[ERR_TEXT_SIZE];
};

#endif
