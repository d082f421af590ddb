#include "agent/api/format/values.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* Written by hand: a tenth of what an alloc costs would be printf. */
void api_time(char to[API_TIME_SIZE], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    char *at = to;

    if (unix_ns <= 0) {
        (void)text_copy(to, API_TIME_SIZE, "0001-01-01T00:00:00Z"); /* it fits */
        return;
    }
    (void)gmtime_r(&seconds, &parts); /* of times within our range: always succeeds */
    const struct {
        int number;
        unsigned digits;
        char behind;
    } fields[] = {
        {parts.tm_year + 1900, 4, '-'}, {parts.tm_mon + 1, 2, '-'}, {parts.tm_mday, 2, 'T'},
        {parts.tm_hour, 2, ':'},        {parts.tm_min, 2, ':'},     {parts.tm_sec, 2, '.'},
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

json_t *api_wire_time(const char *text)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    int64_t ns = 0, unit = 100000000;

    if (rest == NULL || timegm(&parts) <= 0)
        return json_pack("{s:n}", "$time");
    for (rest += *rest == '.'; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
        ns += (*rest - '0') * unit;
    return json_pack("{s:I}", "$time", (json_int_t)(timegm(&parts) * INT64_C(1000000000) + ns));
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
