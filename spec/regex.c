/* Regular expressions (spec/regex.h). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "spec/regex.h"

#include "base/base.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAP_KIB_MAX = 4096, NESTING_MAX = 100, STEPS_MIN = 400, STEPS_FACTOR = 8 };

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *bounds;
    uint32_t steps_max; /* of a match */
    uint64_t steps;     /* that matches took so far */
    uint32_t groups, names, name_bytes;
    PCRE2_SPTR name_table; /* entries of name_bytes: two bytes of a number, a name */
};

/* --- what Go knows --- */

/* Where in a pattern we are. */
struct reading {
    const char *at, *end;
    const char *fault;                  /* in Go's words */
    enum { NONE, REPEATED, LAZY } last; /* what stands behind the last thing */
};

static bool starts(const struct reading *reading, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(reading->end - reading->at) >= length && memcmp(reading->at, text, length) == 0;
}

/* Behind a backslash, in a class or not. */
static void read_escape(struct reading *reading, bool in_class)
{
    static const char known[] = "afnrtvdDsSwWpPx0";
    char letter = reading->at < reading->end ? *reading->at : '\0';
    bool plain = letter != '\0' && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789",
                                          letter) == NULL;

    if (letter == '\0')
        reading->fault = "trailing backslash at end of expression";
    else if (!plain && strchr(known, letter) == NULL &&
             (in_class || strchr("bBAz", letter) == NULL))
        reading->fault = "invalid escape sequence";
    reading->at++;
}

static void read_class(struct reading *reading)
{
    reading->at++;
    if (starts(reading, "^"))
        reading->at++;
    if (starts(reading, "]"))
        reading->at++; /* the first is a member */
    while (reading->fault == NULL && reading->at < reading->end && *reading->at != ']') {
        if (starts(reading, "[:")) {
            const char *close = memmem(reading->at, (size_t)(reading->end - reading->at), ":]", 2);

            reading->at = close == NULL ? reading->at + 1 : close + 1;
        } else if (starts(reading, "[.") || starts(reading, "[=")) {
            reading->fault = "invalid character class";
        }
        if (*reading->at++ == '\\')
            read_escape(reading, true);
    }
    reading->at++;
}

static void read_group(struct reading *reading)
{
    reading->at++;
    if (starts(reading, "*"))
        reading->fault = "missing argument to repetition operator";
    if (!starts(reading, "?"))
        return;
    reading->at++;
    if (starts(reading, "P<") ||
        (starts(reading, "<") && !starts(reading, "<=") && !starts(reading, "<!")))
        return;
    size_t flags = strspn(reading->at, "imsU-");
    reading->at += flags;
    if (!starts(reading, ":") && (flags == 0 || !starts(reading, ")")))
        reading->fault = "invalid or unsupported Perl syntax";
    else
        reading->at++;
}

/* At a brace; true if it repeats something. */
static bool read_counts(struct reading *reading)
{
    char *behind = NULL;
    unsigned long least, most;

    if (reading->at[1] < '0' || reading->at[1] > '9')
        return false;
    least = most = strtoul(reading->at + 1, &behind, 10);
    if (*behind == ',') {
        behind++;
        if (*behind >= '0' && *behind <= '9')
            most = strtoul(behind, &behind, 10);
    }
    if (*behind != '}')
        return false;
    if (least > REGEX_REPEAT_MAX || most > REGEX_REPEAT_MAX)
        reading->fault = "invalid repeat count";
    reading->at = behind + 1;
    return true;
}

/* True if what stands here repeats what stands before it. */
static bool read_repeat(struct reading *reading)
{
    if (*reading->at == '?' && reading->last == REPEATED) {
        reading->last = LAZY;
        reading->at++;
        return true;
    }
    if (*reading->at == '{') {
        if (!read_counts(reading))
            return false;
    } else if (strchr("*+?", *reading->at) != NULL) {
        reading->at++;
    } else {
        return false;
    }
    if (reading->last != NONE)
        reading->fault = "invalid nested repetition operator";
    reading->last = REPEATED;
    return true;
}

/* NULL, or what of PATTERN Go does not know and PCRE2 does; PATTERN ends with a NUL. */
static const char *find_foreign(const char *pattern, size_t length)
{
    struct reading reading = {.at = pattern, .end = pattern + length};

    while (reading.fault == NULL && reading.at < reading.end) {
        if (read_repeat(&reading))
            continue;
        reading.last = NONE;
        if (starts(&reading, "\\Q")) {
            const char *close = memmem(reading.at, (size_t)(reading.end - reading.at), "\\E", 2);
            reading.at = close == NULL ? reading.end : close + 2;
        } else if (*reading.at == '\\') {
            reading.at++;
            read_escape(&reading, false);
        } else if (*reading.at == '[') {
            read_class(&reading);
        } else if (*reading.at == '(') {
            read_group(&reading);
        } else {
            reading.at++;
        }
    }
    return reading.fault;
}

/* --- compiling --- */

static pcre2_code *compile(const char *pattern, size_t length, struct err *err)
{
    pcre2_compile_context *how = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR reason[120];
    PCRE2_SIZE where;
    int number;

    check(how != NULL);
    (void)pcre2_set_newline(how, PCRE2_NEWLINE_LF); /* a known value */
    (void)pcre2_set_parens_nest_limit(how, NESTING_MAX);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, length,
                                     PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                     &number, &where, how);
    pcre2_compile_context_free(how);
    if (code != NULL)
        return code;
    (void)pcre2_get_error_message(number, reason, sizeof(reason)); /* cut if it is long */
    (void)err_set(err, ERR_INVALID, "%s at byte %zu", (const char *)reason, where);
    return NULL;
}

static struct regex *wrap(pcre2_code *code)
{
    struct regex *regex = calloc(1, sizeof(*regex));

    check(regex != NULL);
    regex->code = code;
    regex->steps_max = REGEX_STEPS_MAX;
    regex->data = pcre2_match_data_create_from_pattern(code, NULL);
    regex->bounds = pcre2_match_context_create(NULL);
    check(regex->data != NULL);
    check(regex->bounds != NULL);
    (void)pcre2_set_heap_limit(regex->bounds, HEAP_KIB_MAX);                 /* cannot fail */
    (void)pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &regex->groups); /* known questions */
    (void)pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &regex->names);
    (void)pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &regex->name_bytes);
    (void)pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &regex->name_table);
    return regex;
}

struct regex *regex_new(const char *pattern, size_t length, struct err *err)
{
    char copy[REGEX_PATTERN_MAX + 1];
    const char *foreign;
    pcre2_code *code;

    if (length > REGEX_PATTERN_MAX) {
        (void)err_set(err, ERR_LIMIT, "patterns have at most %d bytes", REGEX_PATTERN_MAX);
        return NULL;
    }
    memcpy(copy, pattern, length);
    copy[length] = '\0';
    foreign = find_foreign(copy, length);
    if (foreign != NULL) {
        (void)err_set(err, ERR_INVALID, "%s", foreign);
        return NULL;
    }
    code = compile(copy, length, err);
    if (code == NULL)
        return NULL;
    struct regex *regex = wrap(code);
    if (regex->groups > REGEX_GROUPS_MAX) {
        (void)err_set(err, ERR_LIMIT, "patterns have at most %d groups", REGEX_GROUPS_MAX);
        regex_free(regex);
        return NULL;
    }
    return regex;
}

void regex_free(struct regex *regex)
{
    if (regex == NULL)
        return;
    pcre2_match_context_free(regex->bounds);
    pcre2_match_data_free(regex->data);
    pcre2_code_free(regex->code);
    free(regex);
}

void regex_limit(struct regex *regex, uint32_t steps)
{
    regex->steps_max = steps;
}

/* --- groups --- */

size_t regex_groups(const struct regex *regex)
{
    return regex->groups;
}

static size_t number_of(PCRE2_SPTR entry)
{
    return (size_t)(entry[0] << 8 | entry[1]);
}

size_t regex_group(const struct regex *regex, const char *name, size_t length)
{
    for (uint32_t i = 0; i < regex->names; i++) {
        PCRE2_SPTR entry = regex->name_table + i * regex->name_bytes;

        if (strlen((const char *)entry + 2) == length && memcmp(entry + 2, name, length) == 0)
            return number_of(entry);
    }
    return 0;
}

const char *regex_name(const struct regex *regex, size_t group)
{
    for (uint32_t i = 0; i < regex->names; i++) {
        PCRE2_SPTR entry = regex->name_table + i * regex->name_bytes;

        if (number_of(entry) == group)
            return (const char *)entry + 2;
    }
    return NULL;
}

/* --- matching --- */

/* Most matches take few steps, and what they took is not told: the bound grows from few to many,
 * and what it was is what they are said to have taken. */
int regex_find(struct regex *regex, const char *text, size_t length, size_t from,
               struct regex_span ret_spans[REGEX_GROUPS_MAX + 1], struct err *err)
{
    uint32_t options = from > 0 ? PCRE2_NO_UTF_CHECK : 0; /* it was looked at from 0 on */
    int found = PCRE2_ERROR_MATCHLIMIT;

    for (uint32_t steps = STEPS_MIN; found == PCRE2_ERROR_MATCHLIMIT && steps <= regex->steps_max;
         steps *= STEPS_FACTOR) {
        (void)pcre2_set_match_limit(regex->bounds, steps); /* cannot fail */
        regex->steps += steps;
        found = pcre2_match(regex->code, (PCRE2_SPTR)text, length, from, options, regex->data,
                            regex->bounds);
    }
    if (found == PCRE2_ERROR_NOMATCH)
        return 0;
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_HEAPLIMIT)
        return err_set(err, ERR_LIMIT, "to match it takes too many steps");
    if (found < 0)
        return err_set(err, ERR_INVALID, "the text is not UTF-8");
    const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(regex->data);
    for (uint32_t i = 0; i <= regex->groups; i++)
        ret_spans[i] = (struct regex_span){spans[2 * i], spans[2 * i + 1]}; /* unset: SIZE_MAX */
    return 1;
}

uint64_t regex_steps(const struct regex *regex)
{
    return regex->steps;
}
