/* Assertions that stay on in every build, for our own mistakes only (style page 3.8). */
#ifndef CAIRN_BASE_CHECK_H
#define CAIRN_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints "file:line: text" through the failure hook, then aborts.  Never returns. */
_Noreturn void check_failed(const char *file, int line, const char *text);

/* Called with the message before the abort: the agent prints its flight recorder there.
 * HOOK is borrowed for the life of the process; NULL restores the default (nothing). */
void check_on_failure(void (*hook)(const char *file, int line, const char *text));

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
