/* timestamp, by Go's layouts: a layout shows how the second of January 2006 at 15:04:05 is to be
 * written.  Follows Go's time/format.go; times are UTC's. */
#include "spec/template/functions/part.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum what { YEAR, MONTH, DAY, YEAR_DAY, HOUR, HOUR_OF_12, MINUTE, SECOND, WHATS };

enum names { NO_NAMES, MONTH_NAMES, DAY_NAMES, HALVES, HALVES_IN_LOWER, ITSELF };

/* A part of a layout: a number, filled to WIDTH, the begin of a name (WIDTH bytes, 0: all of it),
 * or what is the same for all times. */
struct part {
    const char *layout;
    const char *before;
    enum what what;
    enum names names;
    unsigned width;
    char fill;
    bool ends; /* there is no lower case letter behind it */
};

/* By what comes first where several fit. */
static const struct part parts[] = {
    {.layout = "January", .names = MONTH_NAMES},
    {.layout = "Jan", .names = MONTH_NAMES, .width = 3, .ends = true},
    {.layout = "Monday", .names = DAY_NAMES},
    {.layout = "Mon", .names = DAY_NAMES, .width = 3, .ends = true},
    {.layout = "MST", .names = ITSELF, .before = "UTC"},
    {.layout = "01", .what = MONTH, .width = 2, .fill = '0'},
    {.layout = "02", .what = DAY, .width = 2, .fill = '0'},
    {.layout = "03", .what = HOUR_OF_12, .width = 2, .fill = '0'},
    {.layout = "04", .what = MINUTE, .width = 2, .fill = '0'},
    {.layout = "05", .what = SECOND, .width = 2, .fill = '0'},
    {.layout = "06", .what = YEAR, .width = 2, .fill = '0'},
    {.layout = "002", .what = YEAR_DAY, .width = 3, .fill = '0'},
    {.layout = "15", .what = HOUR, .width = 2, .fill = '0'},
    {.layout = "1", .what = MONTH},
    {.layout = "2006", .what = YEAR, .width = 4, .fill = '0'},
    {.layout = "2", .what = DAY},
    {.layout = "_2006", .what = YEAR, .width = 4, .fill = '0', .before = "_"},
    {.layout = "_2", .what = DAY, .width = 2, .fill = ' '},
    {.layout = "__2", .what = YEAR_DAY, .width = 3, .fill = ' '},
    {.layout = "3", .what = HOUR_OF_12},
    {.layout = "4", .what = MINUTE},
    {.layout = "5", .what = SECOND},
    {.layout = "PM", .names = HALVES},
    {.layout = "pm", .names = HALVES_IN_LOWER},
    {.layout = "-070000", .names = ITSELF, .before = "+000000"},
    {.layout = "-07:00:00", .names = ITSELF, .before = "+00:00:00"},
    {.layout = "-0700", .names = ITSELF, .before = "+0000"},
    {.layout = "-07:00", .names = ITSELF, .before = "+00:00"},
    {.layout = "-07", .names = ITSELF, .before = "+00"},
    {.layout = "Z070000", .names = ITSELF, .before = "Z"},
    {.layout = "Z07:00:00", .names = ITSELF, .before = "Z"},
    {.layout = "Z0700", .names = ITSELF, .before = "Z"},
    {.layout = "Z07:00", .names = ITSELF, .before = "Z"},
    {.layout = "Z07", .names = ITSELF, .before = "Z"},
};

struct moment {
    unsigned numbers[WHATS];
    unsigned week_day, nanoseconds;
};

static struct moment moment_of(int64_t unix_ns)
{
    int64_t below = unix_ns % 1000000000;
    time_t seconds = (time_t)(unix_ns / 1000000000 - (below < 0));
    struct tm tm;

    check(gmtime_r(&seconds, &tm) != NULL);
    return (struct moment){
        .numbers = {[YEAR] = (unsigned)(tm.tm_year + 1900),
                    [MONTH] = (unsigned)tm.tm_mon + 1,
                    [DAY] = (unsigned)tm.tm_mday,
                    [YEAR_DAY] = (unsigned)tm.tm_yday + 1,
                    [HOUR] = (unsigned)tm.tm_hour,
                    [HOUR_OF_12] = tm.tm_hour % 12 == 0 ? 12 : (unsigned)tm.tm_hour % 12,
                    [MINUTE] = (unsigned)tm.tm_min,
                    [SECOND] = (unsigned)tm.tm_sec},
        .week_day = (unsigned)tm.tm_wday,
        .nanoseconds = (unsigned)(below < 0 ? below + 1000000000 : below),
    };
}

static void add_number(struct growing *to, unsigned number, unsigned width, char fill)
{
    char digits[16];

    (void)text_format(digits, sizeof(digits), "%u", number); /* fits */
    for (size_t i = strlen(digits); i < width; i++)
        growing_add(to, &fill, 1);
    growing_add(to, digits, strlen(digits));
}

static const char *name_of(const struct part *part, const struct moment *moment)
{
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
    bool late = moment->numbers[HOUR] >= 12;

    switch (part->names) {
    case MONTH_NAMES:
        return months[moment->numbers[MONTH] - 1];
    case DAY_NAMES:
        return days[moment->week_day];
    case HALVES:
        return late ? "PM" : "AM";
    case HALVES_IN_LOWER:
        return late ? "pm" : "am";
    case NO_NAMES:
    case ITSELF:
        break;
    }
    return "";
}

static void add_part(struct growing *to, const struct part *part, const struct moment *moment)
{
    const char *name = name_of(part, moment);
    unsigned number = moment->numbers[part->what];

    if (part->before != NULL)
        growing_add(to, part->before, strlen(part->before));
    if (part->names == NO_NAMES)
        add_number(to, part->what == YEAR && part->width == 2 ? number % 100 : number, part->width,
                   part->fill);
    else
        growing_add(to, name, part->width > 0 ? part->width : strlen(name));
}

/* ".000" or ",999" at AT, which is that long; 0: there is none. */
static size_t fraction_length(const char *at)
{
    if ((at[0] != '.' && at[0] != ',') || (at[1] != '0' && at[1] != '9'))
        return 0;
    size_t length = 1 + strspn(at + 1, at[1] == '0' ? "0" : "9");
    return at[length] >= '0' && at[length] <= '9' ? 0 : length;
}

/* Nines leave out what is zero. */
static void add_fraction(struct growing *to, const char *at, size_t length, unsigned nanoseconds)
{
    size_t wanted = (length - 1) & 0xfff; /* as there */
    bool trims = at[1] == '9';
    char digits[16];

    (void)text_format(digits, sizeof(digits), "%c%09u", at[0], nanoseconds); /* fits */
    size_t shown = 1 + (wanted < 9 ? wanted : 9);
    while (trims && shown > 1 && digits[shown - 1] == '0')
        shown--;
    if (!trims || shown > 1)
        growing_add(to, digits, shown);
}

static const struct part *find_part(const char *at)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const char *behind = at + strlen(parts[i].layout);

        if (text_starts_with(at, parts[i].layout) &&
            !(parts[i].ends && *behind >= 'a' && *behind <= 'z'))
            return &parts[i];
    }
    return NULL;
}

static void add_time(struct growing *to, const char *layout, int64_t unix_ns)
{
    struct moment moment = moment_of(unix_ns);

    while (*layout != '\0' && !to->full) {
        const struct part *part = find_part(layout);
        size_t length = fraction_length(layout);

        if (part != NULL) {
            add_part(to, part, &moment);
            layout += strlen(part->layout);
        } else if (length > 0) {
            add_fraction(to, layout, length, moment.nanoseconds);
            layout += length;
        } else {
            growing_add(to, layout++, 1);
        }
    }
}

static json_t *run_timestamp(const struct call *call)
{
    const struct template_world *world = call->evaluating->world;
    const char *layout = call->count == 1 ? call_text(call, 0) : "2006-01-02T15:04:05Z07:00";
    char seconds[24];
    struct growing made = {0};

    if (!call_charge(call, 4 * strlen(layout)))
        return NULL;
    if (world->asks_time != NULL)
        *world->asks_time = true;
    if (text_equal(layout, "unix")) {
        (void)text_format(seconds, sizeof(seconds), "%lld", /* fits */
                          (long long)(world->now_unix_ns / 1000000000));
        return call_give_text(call, seconds);
    }
    add_time(&made, layout, world->now_unix_ns);
    return call_give_grown(call, &made);
}

const struct function template_time_functions[] = {
    {"timestamp", 0, 1, run_timestamp},
    {NULL, 0, 0, NULL},
};
