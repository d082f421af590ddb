/*
 * A program of ours beside this one, which is asked over a socket and has no privileges: it reads
 * what strangers wrote.
 *
 * Nothing of it is believed, and nobody waits for it longer than was said before.  All of it blocks
 * until then, and so is for the pool.
 */
#ifndef CAIRN_IO_HELPER_H
#define CAIRN_IO_HELPER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How one ends that cannot do what it is there for. */
enum { HELPER_EXIT_USAGE = 2, HELPER_EXIT_WALLS = 3 };

struct helper {
    const char *name; /* for what is told of it */
    pid_t pid;
    int pidfd, socket;
    uint64_t until_ms; /* as long as it is waited for, by loop_now_ms */
};

/* Starts PROGRAM, whose socket is its descriptor 3, with an ARGUMENT or none (NULL), and waits for
 * it until UNTIL_MS.  NAME is borrowed until it has ended. */
int helper_start(const char *program, const char *name, const char *argument, uint64_t until_ms,
                 struct helper *ret_helper, struct err *err);

/* All of BYTES; false: it does not listen any more, or not in time, as helper_end tells. */
bool helper_send(const struct helper *helper, const void *bytes, size_t length);
void helper_send_end(const struct helper *helper); /* nothing more comes */

/* What comes next, up to LENGTH bytes: how many, 0: nothing more, or not in time. */
size_t helper_receive(const struct helper *helper, void *to, size_t length);

/* Its end, which it comes to by itself in time, or, if nobody AWAITS that, is brought to.
 * ERR_TIMEOUT is recoverable unless it was at work all the time. */
int helper_end(struct helper *helper, bool awaits, struct err *err);

#endif
