/*
 * Lines of cron: what they say, and the next time that they mean.
 *
 * A line is sets of numbers; the next time is looked for month by month in local time, within each
 * stretch of time in which the zone's offset stays the same.  So a change of clocks needs no rule
 * of its own.  Follows hashicorp/cronexpr v1.1.3.
 */
#include "spec/cron.h"

#include "base/check.h"
#include "base/text.h"
#include "spec/times/civil.h"

#include <ctype.h>
#include <string.h>

enum { FIELDS_MAX = 7, ENTRY_SIZE = 64, NAME_LETTERS = 3, WEEK_LAST = 5 };

/* --- reading --- */

struct field {
    const char *name;
    int min, max;
    const char *const *words; /* names of the numbers from MIN on, NULL: they have none */
    size_t words_count;
};

static const char *const month_words[] = {"january",   "february", "march",    "april",
                                          "may",       "june",     "july",     "august",
                                          "september", "october",  "november", "december"};
static const char *const day_words[] = {"sunday",   "monday", "tuesday", "wednesday",
                                        "thursday", "friday", "saturday"};

static const struct field field_second = {"second", 0, 59, NULL, 0};
static const struct field field_minute = {"minute", 0, 59, NULL, 0};
static const struct field field_hour = {"hour", 0, 23, NULL, 0};
static const struct field field_day = {"day-of-month", 1, 31, NULL, 0};
static const struct field field_month = {"month", 1, 12, month_words, COUNT_OF(month_words)};
static const struct field field_weekday = {"day-of-week", 0, 7, day_words, COUNT_OF(day_words)};
static const struct field field_year = {"year", CRON_YEAR_FIRST, CRON_YEAR_LAST, NULL, 0};

/* One entry of a field. */
struct entry {
    const struct field *field;
    int first, last, step;
    bool any;
};

static int refuse(const struct field *field, const char *entry, struct err *err)
{
    return err_set(err, ERR_INVALID, "syntax error in %s field: '%.60s'", field->name, entry);
}

/* Takes up to DIGITS of a number off TEXT. */
static bool take_digits(const char **text, size_t digits, int *ret_value)
{
    size_t count = strspn(*text, "0123456789");
    int value = 0;

    if (count == 0 || count > digits)
        return false;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + (*text)[i] - '0';
    *text += count;
    *ret_value = value;
    return true;
}

/* A value of FIELD: a number, or a name, whole or its first three letters. */
static bool take_value(const struct field *field, const char **text, int *ret_value)
{
    size_t letters = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

    if (take_digits(text, field->max >= CRON_YEAR_FIRST ? 4 : 2, ret_value))
        return *ret_value >= field->min && *ret_value <= field->max;
    for (size_t i = 0; i < field->words_count; i++) {
        const char *word = field->words[i];
        size_t length = letters >= strlen(word) ? strlen(word) : NAME_LETTERS;

        if (letters < NAME_LETTERS || strncmp(*text, word, length) != 0 ||
            (letters > length && (*text)[length] != 'l'))
            continue; /* "fril" is the last Friday */
        *text += length;
        *ret_value = field->min + (int)i;
        return true;
    }
    return false;
}

/* What is behind the first value of an entry, or behind "*". */
static int read_rest(struct entry *entry, const char *text, const char *whole, struct err *err)
{
    const struct field *field = entry->field;
    int most = field == &field_weekday ? 6 : field->max;

    if (!entry->any && *text == '-') {
        text++;
        if (!take_value(field, &text, &entry->last))
            return refuse(field, whole, err);
        if (field == &field_weekday && entry->last == 0 && entry->first > 0)
            entry->last = 7; /* Sunday ends a week as well as it begins one */
        if (entry->last < entry->first)
            return err_set(err, ERR_INVALID, "a range of the %s field runs backwards: '%.60s'",
                           field->name, whole);
    } else if (!entry->any) {
        entry->last = *text == '/' ? most : entry->first;
    }
    if (*text == '\0')
        return 0;
    if (*text++ != '/')
        return refuse(field, whole, err);
    entry->any = false;
    if (!take_digits(&text, 4, &entry->step) || *text != '\0')
        return refuse(field, whole, err);
    if (entry->step < 1 || entry->step > most)
        return err_set(err, ERR_INVALID, "invalid interval %.60s", whole);
    return 0;
}

/* An entry of numbers: a value, a range, all of them, or every so many of these. */
static int read_entry(const struct field *field, const char *text, struct entry *ret_entry,
                      struct err *err)
{
    struct entry entry = {.field = field, .step = 1, .first = field->min};
    const char *rest = text;

    entry.last = field == &field_weekday ? 6 : field->max;
    if (*text == '*' || *text == '?') {
        entry.any = true;
        rest++;
        if (*text == '?' && *rest != '\0')
            return refuse(field, text, err);
    } else if (!take_value(field, &rest, &entry.first)) {
        return refuse(field, text, err);
    }
    if (field == &field_weekday)
        entry.first %= WEEK_DAYS;
    int code = read_rest(&entry, rest, text, err);
    *ret_entry = entry;
    return code;
}

static void add(uint64_t *bits, int from, const struct entry *entry)
{
    for (int value = entry->first; value <= entry->last; value += entry->step)
        bits[(value - from) / 64] |= UINT64_C(1) << ((value - from) % 64);
}

/* Entries that only days know.  False: TEXT is none. */
static bool read_day(const char *text, struct cron *cron)
{
    int value;

    if (text_equal(text, "l"))
        cron->last_day = true;
    else if (text_equal(text, "lw"))
        cron->last_working_day = true;
    else if (take_value(&field_day, &text, &value) && text_equal(text, "w"))
        cron->near_days |= UINT32_C(1) << value;
    else
        return false;
    return true;
}

static bool read_weekday(const char *text, struct cron *cron)
{
    int value, week;

    if (!take_value(&field_weekday, &text, &value))
        return false;
    value %= WEEK_DAYS;
    if (text_equal(text, "l")) {
        cron->last_weekdays |= UINT32_C(1) << value;
        return true;
    }
    if (*text++ != '#' || !take_digits(&text, 1, &week) || *text != '\0' || week < 1 ||
        week > WEEK_LAST)
        return false;
    cron->nth_weekdays |= UINT64_C(1) << (WEEK_DAYS * (week - 1) + value);
    return true;
}

/* Each entry of TEXT, in lower case, which is cut up. */
static int read_field(const struct field *field, char *text, uint64_t *bits, struct cron *cron,
                      bool *ret_any, struct err *err)
{
    char *rest = text, *part;
    bool some = false;

    while ((part = strsep(&rest, ",")) != NULL) {
        struct entry entry = {0};

        if (*part == '\0')
            continue;
        some = true;
        if ((field == &field_day && read_day(part, cron)) ||
            (field == &field_weekday && read_weekday(part, cron)))
            continue;
        int code = read_entry(field, part, &entry, err);
        if (code < 0)
            return code;
        *ret_any |= entry.any;
        add(bits, field->max >= CRON_YEAR_FIRST ? field->min : 0, &entry);
    }
    return some ? 0 : err_set(err, ERR_INVALID, "%s field: missing directive", field->name);
}

/* TEXT with its first word put in the place of a name like @daily. */
static bool expand(const char *text, char *to, size_t size)
{
    static const struct {
        const char *name, *line;
    } names[] = {
        {"@yearly", "0 0 0 1 1 * *"}, {"@annually", "0 0 0 1 1 * *"}, {"@monthly", "0 0 0 1 * * *"},
        {"@weekly", "0 0 0 * * 0 *"}, {"@daily", "0 0 0 * * * *"},    {"@hourly", "0 0 * * * * *"},
    };

    text += strspn(text, " \t\r\n\f\v");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (text_starts_with(text, names[i].name))
            return text_format(to, size, "%s%s", names[i].line, text + strlen(names[i].name));
    }
    return text_copy(to, size, text);
}

static size_t split(char *text, char *fields[FIELDS_MAX])
{
    char *rest = text, *field;
    size_t count = 0;

    for (char *at = text; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    while ((field = strsep(&rest, " \t\r\n\f\v")) != NULL) {
        if (*field != '\0' && count < FIELDS_MAX)
            fields[count++] = field; /* those beyond the seventh are left out, as there */
    }
    return count;
}

int cron_parse(const char *text, struct cron *ret_cron, struct err *err)
{
    char line[CRON_TEXT_SIZE + sizeof("0 0 0 1 1 * *")], *fields[FIELDS_MAX];
    char every_second[] = "0", every_year[] = "*";
    struct cron cron = {.seconds = 0};
    uint64_t hours = 0, months = 0, days = 0, weekdays = 0;
    bool ignored = false;
    int code = 0;

    if (strlen(text) >= CRON_TEXT_SIZE || !expand(text, line, sizeof(line)))
        return err_set(err, ERR_INVALID, "it has more than %d bytes", CRON_TEXT_SIZE - 1);
    size_t count = split(line, fields);
    if (count < 5)
        return err_set(err, ERR_INVALID, "missing field(s)");
    char **field = count == FIELDS_MAX ? &fields[1] : fields;
    const struct {
        const struct field *field;
        char *text;
        uint64_t *bits;
        bool *any;
    } parts[] = {
        {&field_second, count == FIELDS_MAX ? fields[0] : every_second, &cron.seconds, &ignored},
        {&field_minute, field[0], &cron.minutes, &ignored},
        {&field_hour, field[1], &hours, &ignored},
        {&field_day, field[2], &days, &cron.any_day},
        {&field_month, field[3], &months, &ignored},
        {&field_weekday, field[4], &weekdays, &cron.any_weekday},
        {&field_year, count > 5 ? field[5] : every_year, cron.years, &ignored},
    };
    for (size_t i = 0; i < COUNT_OF(parts) && code == 0; i++)
        code = read_field(parts[i].field, parts[i].text, parts[i].bits, &cron, parts[i].any, err);
    if (code < 0)
        return code;
    cron.hours = (uint32_t)hours;
    cron.months = (uint32_t)months;
    cron.days = (uint32_t)days;
    cron.weekdays = (uint32_t)(weekdays | weekdays >> WEEK_DAYS) & 0x7f; /* 7 is Sunday, too */
    *ret_cron = cron;
    return 0;
}

/* --- the next time --- */

/* The working day that is nearest to DAY and in its month. */
static int near_working_day(int64_t month_start, int day, int days)
{
    int weekday = civil_weekday(month_start + day - 1);

    if (weekday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < days ? day + 1 : day - 2;
    return day;
}

/* Days of one month, bit N is day N: those that either of its two fields names; all if neither
 * restricts them. */
static uint32_t days_of(const struct cron *cron, int64_t month_start, int days)
{
    uint32_t found = 0, all = ((UINT32_C(1) << days) - 1) << 1;

    if (cron->any_day && cron->any_weekday)
        return all;
    if (!cron->any_day) {
        found |= cron->days;
        if (cron->last_day)
            found |= UINT32_C(1) << days;
        if (cron->last_working_day)
            found |= UINT32_C(1) << near_working_day(month_start, days, days);
    }
    for (int day = 1; day <= days; day++) {
        uint32_t weekday = (uint32_t)civil_weekday(month_start + day - 1);
        uint32_t nth = WEEK_DAYS * (uint32_t)((day - 1) / WEEK_DAYS) + weekday;

        if (!cron->any_day && (cron->near_days >> day & 1) != 0)
            found |= UINT32_C(1) << near_working_day(month_start, day, days);
        if (!cron->any_weekday &&
            ((cron->weekdays >> weekday & 1) != 0 || (cron->nth_weekdays >> nth & 1) != 0 ||
             (day + WEEK_DAYS > days && (cron->last_weekdays >> weekday & 1) != 0)))
            found |= UINT32_C(1) << day;
    }
    return found & all;
}

/* The first bit of BITS from FROM on, below 0: there is none. */
static int first_bit(uint64_t bits, int from)
{
    if (from > 63 || bits >> from == 0)
        return -1;
    return from + __builtin_ctzll(bits >> from);
}

/* The first second of a day from FROM on, below 0: there is none. */
static int64_t time_of_day(const struct cron *cron, int64_t from)
{
    int hour = (int)(from / HOUR_S), minute = (int)(from % HOUR_S / MINUTE_S);
    int second = first_bit(cron->seconds, (int)(from % MINUTE_S));

    if (second < 0) {
        minute++;
        second = first_bit(cron->seconds, 0);
    }
    int at_hour = first_bit(cron->hours, hour);
    int at_minute = at_hour == hour ? first_bit(cron->minutes, minute) : -1;
    if (at_minute != minute || at_hour != hour)
        second = first_bit(cron->seconds, 0);
    if (at_minute < 0) {
        at_hour = at_hour == hour ? first_bit(cron->hours, hour + 1) : at_hour;
        at_minute = first_bit(cron->minutes, 0);
    }
    return at_hour < 0 ? -1 : (int64_t)at_hour * HOUR_S + at_minute * MINUTE_S + second;
}

static bool has_year(const struct cron *cron, int64_t year)
{
    uint64_t bit = (uint64_t)(year - CRON_YEAR_FIRST);

    return (cron->years[bit / 64] >> (bit % 64) & 1) != 0;
}

/* The first local second from FROM on, which is not before 1970, if it is before UNTIL;
 * CRON_NEVER. */
static int64_t next_local(const struct cron *cron, int64_t from, int64_t until)
{
    struct civil at = civil_of(from / DAY_S);
    int64_t time = from % DAY_S;

    while (at.year <= CRON_YEAR_LAST) {
        bool wanted = has_year(cron, at.year) && (cron->months >> at.month & 1) != 0;
        int64_t start = civil_days(&(struct civil){at.year, at.month, 1});
        uint32_t days = wanted ? days_of(cron, start, civil_month_days(at.year, at.month)) : 0;
        int day = first_bit(days, at.day);
        int64_t found = day < 0 ? -1 : time_of_day(cron, day == at.day ? time : 0);

        if (found < 0 && day == at.day) {
            day = first_bit(days, at.day + 1); /* it is too late that day */
            found = day < 0 ? -1 : time_of_day(cron, 0);
        }
        if (found >= 0)
            found += (start + day - 1) * DAY_S;
        if (found >= until || start * DAY_S >= until)
            break;
        if (found >= 0)
            return found;
        at = at.month == YEAR_MONTHS ? (struct civil){at.year + 1, 1, 1}
                                     : (struct civil){at.year, at.month + 1, 1};
        time = 0;
    }
    return CRON_NEVER;
}

int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_unix_s)
{
    int64_t from = after_unix_s < 0 ? DAY_S : after_unix_s + 1; /* no zone is a day off */

    check(cron->seconds != 0 && cron->minutes != 0 && cron->hours != 0);
    while (from / DAY_S < civil_year_start(CRON_YEAR_LAST + 2)) {
        int64_t until, offset = zone_offset(zone, from, &until);
        int64_t local = from + offset < 0 ? 0 : from + offset;
        int64_t found =
            next_local(cron, local, until > INT64_MAX - DAY_S * 2 ? INT64_MAX : until + offset);

        check(until > from);
        if (found != CRON_NEVER)
            return found - offset;
        if (until == INT64_MAX)
            return CRON_NEVER;
        from = until;
    }
    return CRON_NEVER;
}
