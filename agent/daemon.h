/*
 * The daemon: a whole node, a life bound to LMDB, processes, files and HTTP.
 *
 * It is no process: several live on one loop, each with a configuration and directories of its own,
 * and know nothing of each other.  The API (api/) reads machines through the core and changes them
 * only by asking: life_ask for one machine, server/alone/alone.h for jobs.
 */
#ifndef CAIRN_AGENT_DAEMON_H
#define CAIRN_AGENT_DAEMON_H

#include "agent/parts.h"

struct daemon;

/* What the process adds that the daemon lives in. */
struct daemon_process {
    struct crash crash;  /* for tests */
    uint64_t files_soft; /* soft limit of descriptors that payloads get, 0: the process' own */
    int listen_fd;       /* a socket that listens where CONFIG says already, moved; 0: none */
};

/* Takes up the node of CONFIG where its journal left it, and answers requests; the rest happens as
 * LOOP runs.  CONFIG and LOOP are borrowed for its life.  PROCESS may be NULL.  NULL with ERR,
 * which says what is in the way, and nothing has changed but directories that were made. */
struct daemon *daemon_new(const struct config *config, struct loop *loop,
                          const struct daemon_process *process, struct err *err);

/* Payloads live on, and the next daemon of these directories finds them.  LOOP finishes what is on
 * its pool, for nobody.  Not from a callback of the API. */
void daemon_free(struct daemon *daemon);

/* Borrowed for its life. */
struct parts *daemon_parts(struct daemon *daemon);

/* Reads its certificates again, if it has any. */
void daemon_renew(struct daemon *daemon);

/* Where its API listens, as api_address. */
const char *daemon_address(const struct daemon *daemon);

/* What it does, in one line: for whoever manages its process. */
void daemon_describe(const struct daemon *daemon, char *to, size_t size);

/* An assertion failed while it was at work: prints what it did last to standard error, once. */
void daemon_tell(struct daemon *daemon);

#endif
