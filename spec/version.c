/* Versions (spec/version.h). */
#include "spec/version.h"

#include "base/base.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_SIZE = 128, NUMBERS_MAX = 16 };

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct version {
    int64_t numbers[NUMBERS_MAX]; /* at least three */
    size_t count, given;          /* numbers, and those that were written */
    char before[VERSION_SIZE];    /* of which release: "rc.1" */
    char whole[2 * VERSION_SIZE]; /* of numbers, pre-release and metadata */
};

/* --- reading --- */

/* Parts of letters, digits, - and ~ with points between them, none of them empty; false if there is
 * no such text at AT. */
static bool read_parts(const char **at, char to[VERSION_SIZE])
{
    size_t length = 0, part;

    while ((part = strspn(*at + length, DIGITS LETTERS "-~")) > 0) {
        length += part;
        if ((*at)[length] != '.' || strspn(*at + length + 1, DIGITS LETTERS "-~") == 0)
            break;
        length++;
    }
    (void)text_format(to, VERSION_SIZE, "%.*s", (int)length, *at); /* the whole text fits */
    *at += length;
    return length > 0;
}

static bool read_numbers(struct version *version, const char **at)
{
    char digits[24];

    while (version->count < NUMBERS_MAX) {
        size_t length = strspn(*at, DIGITS);
        if (length == 0 || length >= sizeof(digits))
            return false;
        (void)text_format(digits, sizeof(digits), "%.*s", (int)length, *at); /* fits */
        if (!text_to_i64(digits, &version->numbers[version->count++]))
            return false;
        *at += length;
        if ((*at)[0] != '.' || strspn(*at + 1, DIGITS) == 0)
            break;
        (*at)++;
    }
    version->given = version->count;
    while (version->count < 3)
        version->numbers[version->count++] = 0;
    return true;
}

/* Go has two forms of it: what begins with a digit needs a hyphen, what begins with a letter, a
 * hyphen or ~ needs none, but for semver. */
static bool read_before(enum version_kind kind, struct version *version, const char **at)
{
    const char *hyphen = *at;

    if (**at == '-') {
        (*at)++;
        if (read_parts(at, version->before) || kind == VERSION_SEMVER)
            return version->before[0] != '\0';
        *at = hyphen; /* it is itself such a letter */
        return read_parts(at, version->before);
    }
    if (kind == VERSION_LOOSE && **at != '\0' && strchr(LETTERS "~", **at) != NULL)
        return read_parts(at, version->before);
    return true;
}

static bool read_version(enum version_kind kind, const char *text, struct version *ret_version)
{
    struct version version = {.count = 0};
    char beside[VERSION_SIZE] = "", number[24];
    const char *at = text;

    if (strlen(text) >= VERSION_SIZE)
        return false;
    at += *at == 'v';
    if (!read_numbers(&version, &at) || !read_before(kind, &version, &at))
        return false;
    if (*at == '+') {
        at++;
        if (!read_parts(&at, beside))
            return false;
    }
    if (*at != '\0')
        return false;
    for (size_t i = 0; i < version.count; i++) {
        (void)text_format(number, sizeof(number), "%s%lld", i > 0 ? "." : "",
                          (long long)version.numbers[i]);
        (void)text_append(version.whole, sizeof(version.whole), number); /* all of them fit */
    }
    (void)text_append(version.whole, sizeof(version.whole), version.before[0] != '\0' ? "-" : "");
    (void)text_append(version.whole, sizeof(version.whole), version.before);
    (void)text_append(version.whole, sizeof(version.whole), beside[0] != '\0' ? "+" : "");
    (void)text_append(version.whole, sizeof(version.whole), beside);
    *ret_version = version;
    return true;
}

/* --- comparing --- */

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Go's comparePart: numbers come before words, and nothing before words but behind numbers is
 * decided by the other. */
static int compare_part(const char *a, const char *b)
{
    int64_t left = 0, right = 0;
    bool left_is = text_to_i64(a, &left), right_is = text_to_i64(b, &right);

    if (text_equal(a, b))
        return 0;
    if (a[0] == '\0')
        return right_is ? -1 : 1;
    if (b[0] == '\0')
        return left_is ? 1 : -1;
    if (left_is != right_is)
        return left_is ? -1 : 1;
    if (left_is)
        return left > right ? 1 : -1;
    return strcmp(a, b) > 0 ? 1 : -1;
}

/* The part of TEXT before its next point, copied; TEXT goes behind it. */
static const char *next_part(const char **text, char to[VERSION_SIZE])
{
    size_t length = strcspn(*text, ".");

    (void)text_format(to, VERSION_SIZE, "%.*s", (int)length, *text); /* fits */
    *text += length + ((*text)[length] == '.');
    return to;
}

static int compare_before(const char *a, const char *b)
{
    char left[VERSION_SIZE], right[VERSION_SIZE];
    int result = 0;

    if (a[0] == '\0' || b[0] == '\0')
        return (a[0] == '\0') - (b[0] == '\0');
    while (result == 0 && (*a != '\0' || *b != '\0'))
        result = compare_part(next_part(&a, left), next_part(&b, right));
    return result;
}

static bool same_numbers(const struct version *a, const struct version *b)
{
    return a->count == b->count &&
           memcmp(a->numbers, b->numbers, a->count * sizeof(a->numbers[0])) == 0;
}

static int compare(const struct version *a, const struct version *b)
{
    size_t count = a->count > b->count ? a->count : b->count;

    if (text_equal(a->whole, b->whole))
        return 0;
    if (same_numbers(a, b))
        return compare_before(a->before, b->before);
    for (size_t i = 0; i < count; i++) { /* numbers that are not there are 0 */
        int result = order(a->numbers[i], b->numbers[i]);
        if (result != 0)
            return result;
    }
    return 0;
}

/* --- constraints --- */

struct wanted {
    char operator[3];
    struct version version;
};

/* A pre-release fulfils only what names a pre-release of the same numbers. */
static bool may_be_compared(const struct version *version, const struct version *wanted)
{
    return version->before[0] == '\0' ||
           (wanted->before[0] != '\0' && same_numbers(version, wanted));
}

/* ~>: at least that, and the same but for the last number that was written. */
static bool is_near(const struct version *version, const struct version *wanted)
{
    if ((wanted->before[0] != '\0' && version->before[0] == '\0') || compare(version, wanted) < 0 ||
        wanted->count > version->count)
        return false;
    for (size_t i = 0; i + 1 < wanted->given; i++) {
        if (version->numbers[i] != wanted->numbers[i])
            return false;
    }
    return wanted->numbers[wanted->count - 1] <= version->numbers[wanted->count - 1];
}

static bool fulfils(enum version_kind kind, const struct version *version,
                    const struct wanted *wanted)
{
    const char *operator= wanted->operator;
    int result = compare(version, &wanted->version);

    if (text_equal(operator, "") || text_equal(operator, "="))
        return result == 0;
    if (text_equal(operator, "!="))
        return result != 0;
    if (kind == VERSION_LOOSE && !may_be_compared(version, &wanted->version))
        return false;
    if (text_equal(operator, "~>"))
        return is_near(version, &wanted->version);
    if (operator[1] == '=' && result == 0)
        return true;
    return operator[0] == '>' ? result > 0 : result<0;
}

/* TEXT is one constraint. */
static bool read_wanted(enum version_kind kind, const char *text, struct wanted *ret_wanted)
{
    static const char *const operators[] = {"<=", ">=", "!=", "~>", "<", ">", "="};
    static const char blank[] = " \t\n\f\r";
    char version[VERSION_SIZE];
    size_t i = 0;

    text += strspn(text, blank);
    while (i < COUNT_OF(operators) && !text_starts_with(text, operators[i]))
        i++;
    *ret_wanted = (struct wanted){.operator= "" };
    if (i < COUNT_OF(operators)) {
        (void)text_copy(ret_wanted->operator, sizeof(ret_wanted->operator), operators[i]);
        text += strlen(operators[i]);
    }
    if (kind == VERSION_SEMVER && text_equal(ret_wanted->operator, "~>"))
        return false;
    text += strspn(text, blank);
    size_t length = strcspn(text, blank);
    return text[length + strspn(text + length, blank)] == '\0' &&
           text_format(version, sizeof(version), "%.*s", (int)length, text) &&
           read_version(kind, version, &ret_wanted->version);
}

/* Copies the constraint at AT and goes behind it and its comma; false behind the last (AT is NULL
 * then), or if it is too long to be one. */
static bool next_wanted(const char **at, char to[VERSION_SIZE], bool *ret_long)
{
    size_t length;

    if (*at == NULL)
        return false;
    length = strcspn(*at, ",");
    *ret_long = !text_format(to, VERSION_SIZE, "%.*s", (int)length, *at);
    *at = (*at)[length] == ',' ? *at + length + 1 : NULL;
    return !*ret_long;
}

int version_check(enum version_kind kind, const char *wanted, struct err *err)
{
    struct wanted one;
    char text[VERSION_SIZE];
    bool is_long = false;

    while (next_wanted(&wanted, text, &is_long)) {
        if (!read_wanted(kind, text, &one))
            return err_set(err, ERR_INVALID, "malformed constraint: \"%s\"", text);
    }
    return is_long ? err_set(err, ERR_INVALID, "versions have less than %d bytes", VERSION_SIZE)
                   : 0;
}

bool version_matches(enum version_kind kind, const char *wanted, const char *text)
{
    struct version version;
    struct wanted one;
    char part[VERSION_SIZE];
    bool is_long = false;

    /* A node's own version is read loosely in both. */
    if (!read_version(VERSION_LOOSE, text, &version))
        return false;
    while (next_wanted(&wanted, part, &is_long)) {
        if (!read_wanted(kind, part, &one) || !fulfils(kind, &version, &one))
            return false;
    }
    return !is_long;
}
