/* A process that fetches what one task needs, or the disk of its alloc: cairn-fetch, from its start
 * to its end. */
#ifndef CAIRN_HOOKS_FETCHING_H
#define CAIRN_HOOKS_FETCHING_H

#include "hooks/part.h"

#include "io/host.h"

/* What it is told, and what is known of it.  Zeroed before first use, but for the descriptors. */
struct hooks_fetching {
    int order, place, shared; /* owned; -1: none.  What is asked for, and the directories of the
                               * task and of its alloc; or that for the disk */
    const char *failing;      /* begins what is said of it if it cannot say that itself */
    uid_t uid;                /* whose its files are */
    gid_t gid;
    bool is_needed; /* false: all that is asked for is there */

    pid_t pid; /* 0: it does not run */
    int pidfd, report;
    struct io_watch watch;
    void (*done)(void *ctx, const struct err *err); /* on the loop, exactly once */
    void *ctx;
};

void fetching_init(struct hooks_fetching *fetching);

/* What it is to do, as a file of memory: it may hold what no command line is to show. */
int fetching_order(struct hooks_fetching *fetching, const char *text, struct err *err);

/* Starts it.  DONE comes when it has ended: ERR is what went wrong, code 0: nothing. */
int fetching_start(struct hooks_fetching *fetching, const struct hooks *hooks,
                   void (*done)(void *ctx, const struct err *err), void *ctx, struct err *err);

/* Ends it; DONE follows. */
void fetching_stop(const struct hooks_fetching *fetching);

/* Ends it if it runs, and DONE does not follow. */
void fetching_close(struct hooks_fetching *fetching);

#endif
