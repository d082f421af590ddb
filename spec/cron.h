/*
 * When something is to happen, as a line of cron says it, in a time zone.
 *
 * Lines are those of hashicorp/cronexpr v1.1.3: five fields of crontab(5); a sixth one is the year,
 * and with seven of them the first is the second; @hourly and its like; L, W and # for days.  What
 * is meant are instants whose local time has all of the fields: a local time that a change of the
 * clock skips does not happen that day, and one that comes twice happens twice.  Unlike there, days
 * of a week that end with Sunday ("fri-sun") have it, and ranges that run backwards are refused.
 */
#ifndef CAIRN_SPEC_CRON_H
#define CAIRN_SPEC_CRON_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CRON_YEAR_FIRST = 1970,
    CRON_YEAR_LAST = 2099,
    CRON_YEARS = CRON_YEAR_LAST - CRON_YEAR_FIRST + 1,
    CRON_TEXT_SIZE = 256,
};

/* Bit N of each is the value N. */
struct cron {
    uint64_t seconds, minutes;
    uint32_t hours, months;
    uint32_t days, near_days; /* of the month; the working day that is nearest to one */
    bool any_day, last_day, last_working_day;
    uint32_t weekdays, last_weekdays; /* Sunday is 0; the last of its kind in a month */
    uint64_t nth_weekdays;            /* bit 7 * week + day, the first week is 0 */
    bool any_weekday;
    uint64_t years[(CRON_YEARS + 63) / 64]; /* since CRON_YEAR_FIRST */
};

/* ERR_INVALID, and what of TEXT is not understood. */
int cron_parse(const char *text, struct cron *ret_cron, struct err *err);

/* --- time zones --- */

struct zone;

enum { ZONE_NAME_SIZE = 64, ZONE_BYTES_MAX = 64 << 10 };

/* What is wrong with NAME as one of the IANA's, a path without ways out of it; NULL: nothing. */
const char *zone_name_fault(const char *name);

/* True if NAME is that of UTC, which needs no file. */
bool zone_is_utc(const char *name);

/* Reads the BYTES of a file of tzdata (RFC 8536); ERR_CORRUPT.  The caller owns RET_ZONE. */
int zone_parse(const void *bytes, size_t length, struct zone **ret_zone, struct err *err);
void zone_free(struct zone *zone);

/* How far ahead of UTC clocks are at UNIX_S, and until when: the first second that is different,
 * INT64_MAX: for ever.  ZONE NULL is UTC. */
int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *ret_until);

#define CRON_NEVER INT64_MAX

/* The first time after AFTER_UNIX_S that CRON means, CRON_NEVER: there is none. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_unix_s);

#endif
