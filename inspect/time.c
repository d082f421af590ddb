/*
 * Moments: the ends of the log, and sequence numbers for what people write.
 *
 * Times of day and relative ones count from the log's own ends, so that last night's copy answers
 * as the live journal did.
 */
#include "inspect/part.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* --- the ends of the log --- */

struct looking {
    struct inspect *inspect;
    struct moment found;
};

static bool take_moment(void *ctx, const struct journal_event *event)
{
    struct looking *looking = ctx;

    looking->found = (struct moment){
        .sequence = event->sequence,
        .turn = event->turn,
        .now_ms = event->now_ms,
        .unix_ns = event->unix_ns,
    };
    return false;
}

static bool take_last(void *ctx, const struct journal_event *event)
{
    (void)take_moment(ctx, event);
    return true;
}

/* The first event at or behind SEQUENCE; sequence 0 in RET if there is none. */
static int moment_at(struct inspect *inspect, uint64_t sequence, struct moment *ret,
                     struct err *err)
{
    struct looking looking = {.inspect = inspect};
    int code =
        journal_each_event(inspect->journal, sequence, take_moment, inspect_ignore, &looking, err);

    if (code == 0)
        *ret = looking.found;
    return code;
}

int inspect_ends(struct inspect *inspect, struct err *err)
{
    struct looking looking = {.inspect = inspect};
    uint64_t next = journal_next_sequence(inspect->journal);
    uint64_t first = journal_first_sequence(inspect->journal);
    int code = moment_at(inspect, first, &inspect->first, err);

    /* The last one may be damaged: further and further back until one can be read. */
    for (uint64_t back = 1; code == 0 && looking.found.sequence == 0 && back < next; back *= 2) {
        uint64_t from = next > first + back ? next - back : first;
        code = journal_each_event(inspect->journal, from, take_last, inspect_ignore, &looking, err);
        if (from == first)
            break;
    }
    inspect->last = looking.found;
    return code;
}

/* --- times --- */

static bool read_rfc3339(const char *text, int64_t *ret_unix_ns)
{
    struct tm parts = {0};
    int64_t fraction = 0, scale = 100000000;
    int offset_hours, offset_minutes, used = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);

    if (rest == NULL)
        rest = strptime(text, "%Y-%m-%d %H:%M:%S", &parts);
    if (rest == NULL)
        return false;
    if (*rest == '.') {
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
            fraction += (*rest - '0') * scale;
    }
    int64_t seconds = (int64_t)timegm(&parts);
    if ((*rest == '+' || *rest == '-') &&
        sscanf(rest + 1, "%2d:%2d%n", &offset_hours, &offset_minutes, &used) == 2) {
        int64_t offset = (int64_t)offset_hours * 3600 + (int64_t)offset_minutes * 60;
        seconds += *rest == '-' ? offset : -offset;
        rest += 1 + used;
    } else if (*rest == 'Z') {
        rest++;
    }
    if (*rest != '\0')
        return false;
    *ret_unix_ns = seconds * 1000000000 + fraction;
    return true;
}

/* A time of day: on the day on which the log ends, or the day before if it did not come to it. */
static bool read_time_of_day(const struct inspect *inspect, const char *text, int64_t *ret_unix_ns)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%H:%M:%S", &parts);
    const int64_t day_s = 24 * 60 * 60;

    if (rest == NULL || *rest != '\0')
        return false;
    int64_t end_s = inspect->last.unix_ns / 1000000000;
    int64_t at_s = end_s - end_s % day_s + parts.tm_hour * 3600 + parts.tm_min * 60 + parts.tm_sec;
    if (at_s > end_s)
        at_s -= day_s;
    *ret_unix_ns = at_s * 1000000000;
    return true;
}

static int read_time(const struct inspect *inspect, const char *text, int64_t *ret_unix_ns,
                     struct err *err)
{
    int64_t duration_ns;

    if ((text[0] == '-' || text[0] == '+') && text_to_duration_ns(text + 1, &duration_ns)) {
        *ret_unix_ns = text[0] == '-' ? inspect->last.unix_ns - duration_ns
                                      : inspect->first.unix_ns + duration_ns;
        return 0;
    }
    if (read_rfc3339(text, ret_unix_ns) || read_time_of_day(inspect, text, ret_unix_ns))
        return 0;
    return err_set(err, ERR_INVALID,
                   "\"%s\" is neither a sequence number nor a time: 2026-01-31T15:04:05Z, 15:04:05 "
                   "(UTC), -5m (before the end), +90s (after the begin)",
                   text);
}

/* The last event that is not later than UNIX_NS; 0: none.  Halving, so a wall clock that was set
 * back in between gives one of the possible answers. */
static int last_by(struct inspect *inspect, int64_t unix_ns, uint64_t *ret_sequence,
                   struct err *err)
{
    uint64_t low = inspect->first.sequence, high = inspect->last.sequence, found = 0;

    while (low != 0 && low <= high) {
        uint64_t middle = low + (high - low) / 2;
        struct moment at = {0};
        int code = moment_at(inspect, middle, &at, err);
        if (code < 0)
            return code;
        if (at.sequence != 0 && at.unix_ns <= unix_ns) {
            found = at.sequence;
            low = at.sequence + 1;
        } else {
            high = middle - 1;
        }
    }
    *ret_sequence = found;
    return 0;
}

int inspect_when(struct inspect *inspect, const char *text, uint64_t *ret_sequence, struct err *err)
{
    int64_t unix_ns;

    if (text_to_u64(text, ret_sequence))
        return 0;
    int code = read_time(inspect, text, &unix_ns, err);
    return code < 0 ? code : last_by(inspect, unix_ns, ret_sequence, err);
}

int inspect_range(struct inspect *inspect, uint64_t *ret_first, uint64_t *ret_last, struct err *err)
{
    const char *since = inspect->options.since, *until = inspect->options.until;
    uint64_t first = inspect->first.sequence, last = UINT64_MAX;
    int64_t unix_ns;
    int code = 0;

    if (since != NULL && !text_to_u64(since, &first)) {
        code = read_time(inspect, since, &unix_ns, err);
        if (code == 0)
            code = last_by(inspect, unix_ns - 1, &first, err);
        first++;
    }
    if (code == 0 && until != NULL)
        code = inspect_when(inspect, until, &last, err);
    if (code < 0)
        return code;
    *ret_first = first;
    *ret_last = last;
    return 0;
}

int64_t inspect_unix_ns(const struct inspect *inspect, uint64_t ms)
{
    return inspect->last.unix_ns - (int64_t)(inspect->last.now_ms - ms) * 1000000;
}
