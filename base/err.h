/*
 * Errors.  Functions return 0 or a negative ERR_*; the list is by what the caller can do, not by
 * what went wrong.  Details travel in an optional `struct err`, on the caller's stack.
 */
#ifndef CAIRN_BASE_ERR_H
#define CAIRN_BASE_ERR_H

#include <stdbool.h>

/*    name        value  text                                   */
#define ERR_LIST(X)                                                                                \
    X(AGAIN, 1, "try again later")                                                                 \
    X(GONE, 2, "no such thing")                                                                    \
    X(REFUSED, 3, "refused")                                                                       \
    X(TIMEOUT, 4, "timed out")                                                                     \
    X(LIMIT, 5, "over a limit")                                                                    \
    X(CORRUPT, 6, "damaged data")                                                                  \
    X(IO, 7, "input or output failed")                                                             \
    X(CANCELED, 8, "canceled")                                                                     \
    X(INVALID, 9, "not valid")                                                                     \
    X(EXISTS, 10, "exists already")                                                                \
    X(UNSUPPORTED, 11, "not supported here")                                                       \
    X(FULL, 12, "no space left")

enum err_code {
    ERR_OK = 0,
#define X(name, value, text) ERR_##name = -(value),
    ERR_LIST(X)
#undef X
};

enum { ERR_TEXT_SIZE = 240 };

struct err {
    int code;                 /* ERR_*, 0 while nothing went wrong */
    int os;                   /* errno of the cause, 0 if none */
    bool recoverable;         /* the same attempt may succeed later (Nomad's restart decision) */
    char text[ERR_TEXT_SIZE]; /* one sentence, without the code's own text */
};

/* Fills ERR (may be NULL) with CODE and the formatted text; returns CODE, so that one line sets
 * and returns.  Text is cut at ERR_TEXT_SIZE - 1. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, with the os error NUMBER kept and its description appended. */
int err_os(struct err *err, int code, int number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "formatted: " before the text that ERR holds; returns ERR's code (ERR_IO for NULL). */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The fixed text of CODE; never NULL. */
const char *err_text(int code);

/* The best ERR_* for an errno value: ENOSPC is FULL, ENOENT is GONE, and so on. */
int err_from_errno(int number);

#endif
