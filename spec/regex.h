/*
 * Regular expressions as Go has them, for job files and constraints.
 *
 * By PCRE2, which is C and finds the leftmost match by the order of alternatives, as Go does (RE2
 * is C++, which no program of this tree links).  What Perl has and Go has not is refused:
 * back-references, looking around, possessive and atomic groups, verbs.  One difference stays: \s
 * takes a vertical tab, too.
 *
 * Patterns and texts come from outside and Perl's way of matching may take exponential time, so
 * both are bounded, and so are the steps of a match.
 */
#ifndef CAIRN_SPEC_REGEX_H
#define CAIRN_SPEC_REGEX_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    REGEX_PATTERN_MAX = 1000, /* bytes */
    REGEX_GROUPS_MAX = 60,
    REGEX_REPEAT_MAX = 1000, /* as in Go */
    REGEX_STEPS_MAX = 250000 /* of one match */
};

struct regex;

/* A part of a text; what took no part in a match begins at SIZE_MAX. */
struct regex_span {
    size_t begin, end;
};

/* LENGTH bytes of PATTERN, compiled; owned by the caller.  NULL: ERR is ERR_INVALID with what is
 * wrong with it, or ERR_LIMIT. */
struct regex *regex_new(const char *pattern, size_t length, struct err *err);
void regex_free(struct regex *regex);

/* A match takes at most STEPS, which are REGEX_STEPS_MAX where nothing else is said. */
void regex_limit(struct regex *regex, uint32_t steps);

size_t regex_groups(const struct regex *regex);

/* The number of the group NAME (of LENGTH bytes), 0: there is none. */
size_t regex_group(const struct regex *regex, const char *name, size_t length);

/* The name of GROUP (1 is the first), borrowed; NULL: it has none. */
const char *regex_name(const struct regex *regex, size_t group);

/* Looks for the first match in TEXT (UTF-8) that begins at byte FROM or later.  1: found, with the
 * whole in RET_SPANS[0] and its groups behind it; 0: there is none; ERR_LIMIT: it takes too long;
 * ERR_INVALID: TEXT is not UTF-8. */
int regex_find(struct regex *regex, const char *text, size_t length, size_t from,
               struct regex_span ret_spans[REGEX_GROUPS_MAX + 1], struct err *err);

/* What its matches took so far, about: for those who bound many of them together. */
uint64_t regex_steps(const struct regex *regex);

#endif
