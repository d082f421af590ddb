/* Running one program to its end: bounded in time and in what it may say. */
#ifndef CAIRN_IO_PROGRAM_H
#define CAIRN_IO_PROGRAM_H

#include "io/host.h"

enum { PROGRAM_OUTPUT_MAX = 256 * 1024, PROGRAM_COMPLAINT_MAX = 1024 };

struct program_call {
    const char *program; /* absolute path */
    char *const *argv;   /* NULL-terminated, as environment */
    char *const *environment;
    const char *input; /* its standard input */
    int lock_fd;       /* which it holds open for as long as anything of it lives, -1: none */
    int cancel_fd;     /* readable: it is ended; -1: nobody ends it */
    uint64_t limit_ms;
    bool ends_with_us; /* when the daemon does: it changes nothing */
    bool together;     /* its standard error goes where its output does */
};

struct program_answer {
    int status;                            /* of its exit; 128 and more: it was killed */
    char *output;                          /* its standard output, NUL behind; owned */
    char complaint[PROGRAM_COMPLAINT_MAX]; /* the begin of its standard error, one line */
};

/* 0 when it has ended by itself, whatever its status; RET_ANSWER is to be closed then. ERR_TIMEOUT,
 * ERR_LIMIT and ERR_CANCELED: it was killed, with its session.  Blocks: for the pool. */
int program_run(const struct program_call *call, struct program_answer *ret_answer,
                struct err *err);
void program_close(struct program_answer *answer); /* wiped; one of nothing but 0 is fine */

/* NAME in the directories of PATH (colons between), as an absolute path; false: it is in none. */
bool program_find(const char *path, const char *name, char to[PATH_SIZE]);

#endif
