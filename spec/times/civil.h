/* Inside spec/times/ only: days since 1970 and what the calendar calls them. */
#ifndef CAIRN_SPEC_TIMES_CIVIL_H
#define CAIRN_SPEC_TIMES_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

enum { DAY_S = 86400, HOUR_S = 3600, MINUTE_S = 60, WEEK_DAYS = 7, YEAR_MONTHS = 12 };

struct civil {
    int64_t year;
    int month, day; /* both from 1 */
};

static inline bool civil_is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static inline int civil_month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && civil_is_leap(year) ? 29 : days[month - 1];
}

/* Days from 1970-01-01 to the first of January of YEAR, which is not before 1970. */
static inline int64_t civil_year_start(int64_t year)
{
    int64_t past = year - 1;

    return (year - 1970) * 365 + past / 4 - past / 100 + past / 400 -
           (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static inline int64_t civil_days(const struct civil *civil)
{
    int64_t days = civil_year_start(civil->year) + civil->day - 1;

    for (int month = 1; month < civil->month; month++)
        days += civil_month_days(civil->year, month);
    return days;
}

/* Of a day that is not before 1970. */
static inline struct civil civil_of(int64_t days)
{
    struct civil civil = {.year = 1970 + days / 366, .month = 1};

    while (civil_year_start(civil.year + 1) <= days)
        civil.year++;
    days -= civil_year_start(civil.year);
    while (days >= civil_month_days(civil.year, civil.month))
        days -= civil_month_days(civil.year, civil.month++);
    civil.day = (int)days + 1;
    return civil;
}

/* Sunday is 0. */
static inline int civil_weekday(int64_t days)
{
    return (int)((days + 4) % WEEK_DAYS);
}

#endif
