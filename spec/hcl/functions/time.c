/*
 * timeadd and formatdate, on RFC 3339 timestamps.  Arithmetic is done here on days since 1970, so
 * no time zone data and no locale has a say; the offset of the input is kept, as in cty.
 */
#include "spec/hcl/tree.h"

#include <stdio.h>
#include <string.h>

struct moment {
    int64_t seconds;        /* since 1970 UTC */
    int32_t offset_minutes; /* east of UTC */
};

struct calendar {
    int64_t year;
    int month, day, hour, minute, second, weekday; /* month and day from 1, Sunday is 0 */
};

/* Days since 1970-01-01 of a proleptic Gregorian date, and back (H. Hinnant's civil algorithms). */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct calendar calendar_of(const struct moment *moment)
{
    int64_t local = moment->seconds + moment->offset_minutes * 60;
    int64_t days = local / 86400, rest = local % 86400;

    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int64_t shifted = days + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * of_year + 2) / 153;
    struct calendar calendar = {
        .day = (int)(of_year - (153 * month + 2) / 5 + 1),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .hour = (int)(rest / 3600),
        .minute = (int)(rest / 60 % 60),
        .second = (int)(rest % 60),
        .weekday = (int)(((days % 7) + 11) % 7),
    };

    calendar.year = year_of_era + era * 400 + (calendar.month <= 2);
    return calendar;
}

static bool read_digits(const char **at, int count, int *ret_value)
{
    int value = 0;

    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        value = value * 10 + (**at - '0');
    }
    *ret_value = value;
    return true;
}

static bool read_byte(const char **at, char byte)
{
    if (**at != byte)
        return false;
    (*at)++;
    return true;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

/* YYYY-MM-DDThh:mm:ssZ or with +hh:mm; fractions are not kept. */
static bool parse_moment(const char *text, struct moment *ret_moment)
{
    int year, month, day, hour, minute, second, offset_hour = 0, offset_minute = 0, sign = 1;
    const char *at = text;

    if (!read_digits(&at, 4, &year) || !read_byte(&at, '-') || !read_digits(&at, 2, &month) ||
        !read_byte(&at, '-') || !read_digits(&at, 2, &day) || !read_byte(&at, 'T') ||
        !read_digits(&at, 2, &hour) || !read_byte(&at, ':') || !read_digits(&at, 2, &minute) ||
        !read_byte(&at, ':') || !read_digits(&at, 2, &second))
        return false;
    if (*at == '.') {
        at++;
        at += strspn(at, "0123456789");
    }
    if (!read_byte(&at, 'Z')) {
        sign = *at == '-' ? -1 : 1;
        if (!read_byte(&at, '+') && !read_byte(&at, '-'))
            return false;
        if (!read_digits(&at, 2, &offset_hour) || !read_byte(&at, ':') ||
            !read_digits(&at, 2, &offset_minute))
            return false;
    }
    if (*at != '\0' || month < 1 || month > 12 || day < 1 || day > month_days(year, month) ||
        hour > 23 || minute > 59 || second > 59 || offset_hour > 23 || offset_minute > 59)
        return false;
    ret_moment->offset_minutes = sign * (offset_hour * 60 + offset_minute);
    ret_moment->seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
                          ret_moment->offset_minutes * 60;
    return true;
}

static void zone_text(char *to, size_t size, int32_t offset_minutes, const char *utc, bool colon)
{
    int32_t minutes = offset_minutes < 0 ? -offset_minutes : offset_minutes;

    if (offset_minutes == 0 && utc != NULL)
        (void)text_copy(to, size, utc);
    else
        (void)text_format(to, size, "%c%02d%s%02d", offset_minutes < 0 ? '-' : '+', minutes / 60,
                          colon ? ":" : "", minutes % 60);
}

static bool read_moment(const struct hcl_call *call, size_t i, struct moment *ret_moment)
{
    json_t *keep;

    if (!hcl_argument_text(call, i, &keep))
        return false;
    bool valid = parse_moment(json_string_value(keep), ret_moment);
    if (!valid)
        (void)hcl_call_failed(call,
                              "needs a timestamp like 2006-01-02T15:04:05Z, but got \"%.40s\"",
                              json_string_value(keep));
    json_decref(keep);
    return valid;
}

static json_t *run_timeadd(const struct hcl_call *call)
{
    struct moment moment;
    char text[64], zone[8];
    json_t *keep;
    int64_t ns;

    if (!read_moment(call, 0, &moment) || !hcl_argument_text(call, 1, &keep))
        return NULL;
    bool valid = text_to_duration_ns(json_string_value(keep), &ns);
    if (!valid)
        (void)hcl_call_failed(call, "needs a duration like \"1h30m\", but got \"%.40s\"",
                              json_string_value(keep));
    json_decref(keep);
    if (!valid)
        return NULL;
    moment.seconds += ns / 1000000000 - (ns % 1000000000 < 0);
    struct calendar when = calendar_of(&moment);
    zone_text(zone, sizeof(zone), moment.offset_minutes, "Z", true);
    (void)text_format(text, sizeof(text), "%04lld-%02d-%02dT%02d:%02d:%02d%s", (long long)when.year,
                      when.month, when.day, when.hour, when.minute, when.second, zone);
    return json_string(text);
}

/* --- formatdate --- */

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

/* A run of COUNT times LETTER as text; false for one that means nothing. */
static bool date_part(char *to, size_t size, char letter, size_t count, const struct calendar *when,
                      int32_t offset)
{
    int half = when->hour % 12 == 0 ? 12 : when->hour % 12;
    int number;

    switch (letter) {
    case 'Y':
        if (count == 4)
            return text_format(to, size, "%04lld", (long long)when->year);
        return count == 2 && text_format(to, size, "%02lld", (long long)(when->year % 100));
    case 'E':
        return count >= 3 && count <= 4 &&
               text_format(to, size, count == 3 ? "%.3s" : "%s", weekdays[when->weekday]);
    case 'A':
        return count == 2 && text_copy(to, size, when->hour < 12 ? "AM" : "PM");
    case 'a':
        return count == 2 && text_copy(to, size, when->hour < 12 ? "am" : "pm");
    case 'Z':
        if (count == 3)
            zone_text(to, size, offset, "UTC", false);
        else
            zone_text(to, size, offset, count == 1 ? "Z" : NULL, count != 4);
        return count != 2 && count <= 5;
    case 'M':
        if (count == 3 || count == 4)
            return text_format(to, size, count == 3 ? "%.3s" : "%s", months[when->month - 1]);
        number = when->month;
        break;
    case 'D':
        number = when->day;
        break;
    case 'h':
        number = when->hour;
        break;
    case 'H':
        number = half;
        break;
    case 'm':
        number = when->minute;
        break;
    case 's':
        number = when->second;
        break;
    default:
        return false;
    }
    return count <= 2 && text_format(to, size, count == 2 ? "%02d" : "%d", number);
}

/* Text in single quotes stands for itself, '' in it for a quote.  Moves AT behind it. */
static bool quoted_part(const char **at, struct hcl_buffer *buffer)
{
    for ((*at)++; **at != '\0'; (*at)++) {
        if (**at == '\'' && (*at)[1] != '\'') {
            (*at)++;
            return true;
        }
        *at += **at == '\'';
        hcl_buffer_add(buffer, *at, 1);
    }
    return false;
}

static json_t *run_formatdate(const struct hcl_call *call)
{
    struct hcl_buffer buffer = {0};
    struct moment moment;
    json_t *keep, *value;
    bool valid = true;

    if (!read_moment(call, 1, &moment) || !hcl_argument_text(call, 0, &keep))
        return NULL;
    struct calendar when = calendar_of(&moment);
    for (const char *at = json_string_value(keep); *at != '\0' && valid;) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        size_t count = 0;
        char part[32];

        if (*at == '\'') {
            valid = quoted_part(&at, &buffer);
        } else if (!letter) {
            hcl_buffer_add(&buffer, at++, 1);
        } else {
            while (at[count] == *at)
                count++;
            valid = date_part(part, sizeof(part), *at, count, &when, moment.offset_minutes);
            if (valid)
                hcl_buffer_add(&buffer, part, strlen(part));
            at += count;
        }
    }
    json_decref(keep);
    value = hcl_buffer_take(&buffer);
    if (valid && value != NULL)
        return value;
    json_decref(value);
    return hcl_call_failed(call, "cannot read its format; text other than YYYY MM DD hh mm ss ... "
                                 "stands in single quotes");
}

const struct hcl_function_row hcl_time_functions[] = {
    {"formatdate", 2, 2, run_formatdate},
    {"timeadd", 2, 2, run_timeadd},
    {NULL, 0, 0, NULL},
};
