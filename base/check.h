/* Assertions that stay on in every build, for our own mistakes only (style page 3.8). */
#ifndef CAIRN_BASE_CHECK_H
#define CAIRN_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tells the guards of the calling thread, then aborts.  Never returns. */
_Noreturn void check_failed(const char *file, int line, const char *text);

/*
 * Who is told of a failed check: guards, a stack of them for each thread, so that an assertion
 * finds whose work it broke however many nodes, worlds and inspections share the process.
 *
 *     struct check_guard guard;
 *     check_guard_push(&guard, on_failure, node);
 *     ... what may break an assertion ...
 *     check_guard_pop(&guard);
 *
 * The innermost guard is told first and is off the stack by then: on_failure may longjmp to where
 * it was pushed, and a check that fails within it is the next one's.  When it returns, the next one
 * is told; when none is left, the process aborts.
 */
struct check_guard {
    void (*on_failure)(void *ctx, const char *file, int line, const char *text);
    void *ctx;
    struct check_guard *outer; /* private */
};

/* GUARD is borrowed until it is popped, by the same thread.  Popping takes it off with whatever a
 * jump has left above it, and is fine when it was told meanwhile. */
void check_guard_push(struct check_guard *guard,
                      void (*on_failure)(void *ctx, const char *file, int line, const char *text),
                      void *ctx);
void check_guard_pop(struct check_guard *guard);

/* Our own mistake if CONDITION does not hold. */
#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)

#define unreachable(why) check_failed(__FILE__, __LINE__, "unreachable: " why)

static inline bool implies(bool a, bool b)
{
    return !a || b;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
