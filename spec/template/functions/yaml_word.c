/* What words mean in YAML, as gopkg.in/yaml.v2 has it (v2.4.0 resolve.go). */
#include "spec/template/functions/yaml.h"

#include "spec/decimal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

static const struct word {
    const char *text;
    enum yaml_meaning meaning;
    bool is;
} words[] = {
    {"y", YAML_IS_BOOL, true},         {"Y", YAML_IS_BOOL, true},
    {"yes", YAML_IS_BOOL, true},       {"Yes", YAML_IS_BOOL, true},
    {"YES", YAML_IS_BOOL, true},       {"true", YAML_IS_BOOL, true},
    {"True", YAML_IS_BOOL, true},      {"TRUE", YAML_IS_BOOL, true},
    {"on", YAML_IS_BOOL, true},        {"On", YAML_IS_BOOL, true},
    {"ON", YAML_IS_BOOL, true},        {"n", YAML_IS_BOOL, false},
    {"N", YAML_IS_BOOL, false},        {"no", YAML_IS_BOOL, false},
    {"No", YAML_IS_BOOL, false},       {"NO", YAML_IS_BOOL, false},
    {"false", YAML_IS_BOOL, false},    {"False", YAML_IS_BOOL, false},
    {"FALSE", YAML_IS_BOOL, false},    {"off", YAML_IS_BOOL, false},
    {"Off", YAML_IS_BOOL, false},      {"OFF", YAML_IS_BOOL, false},
    {"", YAML_IS_NULL, false},         {"~", YAML_IS_NULL, false},
    {"null", YAML_IS_NULL, false},     {"Null", YAML_IS_NULL, false},
    {"NULL", YAML_IS_NULL, false},     {".nan", YAML_IS_STRANGE, false},
    {".NaN", YAML_IS_STRANGE, false},  {".NAN", YAML_IS_STRANGE, false},
    {".inf", YAML_IS_STRANGE, false},  {".Inf", YAML_IS_STRANGE, false},
    {".INF", YAML_IS_STRANGE, false},  {"+.inf", YAML_IS_STRANGE, false},
    {"+.Inf", YAML_IS_STRANGE, false}, {"+.INF", YAML_IS_STRANGE, false},
    {"-.inf", YAML_IS_STRANGE, false}, {"-.Inf", YAML_IS_STRANGE, false},
    {"-.INF", YAML_IS_STRANGE, false},
};

/* --- times --- */

/* A number of one digit or two at *AT, at least LEAST and at most MOST. */
static bool take_number(const char **at, unsigned least, unsigned most, unsigned *ret_number)
{
    size_t length = strspn(*at, digits);
    unsigned number = 0;

    length = length > 2 ? 2 : length;
    for (size_t i = 0; i < length; i++)
        number = number * 10 + (unsigned)((*at)[i] - '0');
    *at += length;
    *ret_number = number;
    return length > 0 && number >= least && number <= most;
}

static bool take(const char **at, char c)
{
    bool is = **at == c;

    *at += is;
    return is;
}

/* "Z", or by how many hours and minutes. */
static bool take_zone(const char **at)
{
    const char *zone = *at;

    if (take(at, 'Z'))
        return true;
    bool good = (zone[0] == '+' || zone[0] == '-') && strspn(zone + 1, digits) == 2 &&
                zone[3] == ':' && strspn(zone + 4, digits) >= 2 &&
                (zone[1] - '0') * 10 + (zone[2] - '0') <= 24 &&
                (zone[4] - '0') * 10 + (zone[5] - '0') <= 60;
    *at += good ? 6 : 0;
    return good;
}

static bool is_time(const char *text)
{
    unsigned month, day, number;
    const char *at = text + 5;

    if (strspn(text, digits) != 4 || text[4] != '-')
        return false;
    unsigned year = (unsigned)strtoul(text, NULL, 10);
    bool leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (!take_number(&at, 1, 12, &month) || !take(&at, '-'))
        return false;
    unsigned last = month == 2 ? (leaps ? 29 : 28) : 30 + (month + (month > 7)) % 2;
    if (!take_number(&at, 1, last, &day))
        return false;
    if (*at == '\0')
        return true;
    bool has_zone = take(&at, 'T') || take(&at, 't');
    if (!has_zone && !take(&at, ' '))
        return false;
    while (!has_zone && take(&at, ' ')) /* a space of a layout is as many as there are */
        ;
    if (!take_number(&at, 0, 23, &number) || !take(&at, ':') || !take_number(&at, 0, 59, &number) ||
        !take(&at, ':') || !take_number(&at, 0, 59, &number))
        return false;
    if ((*at == '.' || *at == ',') && strspn(at + 1, digits) > 0)
        at += 1 + strspn(at + 1, digits);
    return (!has_zone || take_zone(&at)) && *at == '\0';
}

/* --- numbers --- */

/* As Go's ParseInt and ParseUint with the base that TEXT says. */
static enum yaml_meaning whole_of(const char *text, json_t **ret_value)
{
    const char *number = text + (*text == '+' || *text == '-');
    static const char hexadecimal[] = "0123456789abcdefABCDEF";
    const char *in_base = digits;
    int base = 10;

    if (*number == '0' && number[1] != '\0') {
        char letter = number[1];

        base = letter == 'x' || letter == 'X' ? 16 : letter == 'b' || letter == 'B' ? 2 : 8;
        number += base != 8 || letter == 'o' || letter == 'O' ? 2 : 1;
        in_base = base == 16 ? hexadecimal : base == 2 ? "01" : "01234567";
    }
    if (*number == '\0' || number[strspn(number, in_base)] != '\0')
        return YAML_IS_TEXT;
    errno = 0;
    unsigned long long size = strtoull(number, NULL, base);
    bool below = *text == '-';
    if (errno != 0 || (below && size > (unsigned long long)INT64_MAX + 1) ||
        (size > INT64_MAX && *text == '+'))
        return YAML_IS_TEXT;
    if (size > INT64_MAX && !below)
        return YAML_IS_STRANGE; /* which Go has, and JSON's values here have not */
    *ret_value = json_integer(below ? (json_int_t)-size : (json_int_t)size);
    return YAML_IS_WHOLE;
}

static enum yaml_meaning real_of(const char *text, json_t **ret_value)
{
    double number = decimal_is(text) ? strtod(text, NULL) : INFINITY;

    if (!isfinite(number))
        return YAML_IS_TEXT;
    *ret_value = json_real(number);
    return YAML_IS_REAL;
}

static enum yaml_meaning number_of(const char *text, json_t **ret_value)
{
    char *plain = strdup(text), *to = plain;

    check(plain != NULL);
    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '_')
            *to++ = *from;
    }
    *to = '\0';
    enum yaml_meaning meaning = whole_of(plain, ret_value);
    if (meaning == YAML_IS_TEXT)
        meaning = real_of(plain, ret_value);
    free(plain);
    return meaning;
}

enum yaml_meaning yaml_resolve(const char *text, json_t **ret_value)
{
    *ret_value = NULL;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!text_equal(words[i].text, text))
            continue;
        if (words[i].meaning != YAML_IS_STRANGE)
            *ret_value = words[i].meaning == YAML_IS_NULL ? json_null() : json_boolean(words[i].is);
        return words[i].meaning;
    }
    if (*text == '.')
        return real_of(text, ret_value);
    if (*text != '+' && *text != '-' && (*text < '0' || *text > '9'))
        return YAML_IS_TEXT;
    return is_time(text) ? YAML_IS_TIME : number_of(text, ret_value);
}
