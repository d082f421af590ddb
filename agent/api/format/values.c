#include "agent/api/format/values.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

json_t *api_text(const char *text)
{
    json_t *value = json_string(text == NULL ? "" : text);

    if (value != NULL)
        return value;
    char *clean = strdup(text);
    check(clean != NULL);
    for (unsigned char *at = (unsigned char *)clean; *at != '\0'; at++)
        *at = *at >= 0x80 ? '?' : *at;
    value = json_string(clean);
    check(value != NULL);
    free(clean);
    return value;
}

/* NUMBER, of so many digits. */
static char *put_digits(char *at, int64_t number, unsigned digits)
{
    for (unsigned i = digits; i > 0; i--) {
        at[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return at + digits;
}

/* Days since 1970 as a date: of eras of 400 years, which are all alike, and years that begin in
 * March, so that the day that is not always there is the last. */
static void date_of(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
    enum { ERA = 146097, TO_MARCH_0 = 719468 };
    int64_t from_0 = days + TO_MARCH_0, era = from_0 / ERA, in_era = from_0 % ERA;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153; /* 0 is March */

    *ret_day = in_year - (153 * month + 2) / 5 + 1;
    *ret_month = month < 10 ? month + 3 : month - 9;
    *ret_year = 400 * era + year + (*ret_month <= 2);
}

/* Written by hand: a fifth of what an alloc costs would be gmtime and printf. */
void api_time(char to[API_TIME_SIZE], int64_t unix_ns)
{
    int64_t seconds = unix_ns / 1000000000, in_day = seconds % 86400, year, month, day;
    char *at = to;

    if (unix_ns <= 0) {
        (void)text_copy(to, API_TIME_SIZE, "0001-01-01T00:00:00Z"); /* it fits */
        return;
    }
    date_of(seconds / 86400, &year, &month, &day);
    const struct {
        int64_t number;
        unsigned digits;
        char behind;
    } fields[] = {
        {year, 4, '-'},
        {month, 2, '-'},
        {day, 2, 'T'},
        {in_day / 3600, 2, ':'},
        {in_day / 60 % 60, 2, ':'},
        {in_day % 60, 2, '.'},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        at = put_digits(at, fields[i].number, fields[i].digits);
        *at++ = fields[i].behind;
    }
    at = put_digits(at, unix_ns % 1000000000, 9);
    while (at[-1] == '0')
        at--;
    if (at[-1] == '.')
        at--;
    *at++ = 'Z';
    memset(at, 0, (size_t)(to + API_TIME_SIZE - at));
}

json_t *api_pairs(const struct spec_pairs *pairs)
{
    json_t *object = json_object();

    for (size_t i = 0; i < pairs->count; i++)
        (void)json_object_set_new_nocheck(object, pairs->items[i].key,
                                          api_text(pairs->items[i].value)); /* memory only */
    return object;
}

void api_set(json_t *object, const char *name, json_t *value)
{
    check(json_object_set_new(object, name, value) == 0);
}

void api_set_text(json_t *object, const char *name, const char *text)
{
    api_set(object, name, api_text(text));
}

void api_set_number(json_t *object, const char *name, uint64_t number)
{
    api_set(object, name, json_integer((json_int_t)number));
}
