/*
 * Time zones, as the files of tzdata have them (RFC 8536).
 *
 * What a file says of the time behind its last change (a rule, as POSIX writes it in TZ) becomes
 * changes like the others, for the years that anything here asks for.
 */
#include "base/check.h"
#include "base/list.h"
#include "base/text.h"
#include "spec/cron.h"
#include "spec/times/civil.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHANGES_MAX = 4096,
    TYPES_MAX = 256,
    HEADER_BYTES = 44,
    TYPE_BYTES = 6,
    OFFSET_MAX_S = 26 * HOUR_S, /* RFC 8536, 3.2 */
    RULE_HOURS_MAX = 167,
};

struct change {
    int64_t at;
    int32_t offset;
};

struct zone {
    int32_t offset; /* before the first change */
    struct change *items;
    size_t count, size;
};

const char *zone_name_fault(const char *name)
{
    if (name[0] == '\0')
        return "is empty";
    if (strlen(name) >= ZONE_NAME_SIZE)
        return "is too long";
    if (name[0] == '/' || text_goes_up(name) ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_+-")] !=
            '\0')
        return "is none of the IANA time zone database";
    return NULL;
}

bool zone_is_utc(const char *name)
{
    return name[0] == '\0' || text_equal(name, "UTC");
}

void zone_free(struct zone *zone)
{
    if (zone == NULL)
        return;
    free(zone->items);
    free(zone);
}

int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *ret_until)
{
    size_t low = 0, high = zone == NULL ? 0 : zone->count;

    while (low < high) { /* the first change behind UNIX_S */
        size_t middle = low + (high - low) / 2;

        if (zone->items[middle].at <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_until = zone == NULL || low == zone->count ? INT64_MAX : zone->items[low].at;
    return zone == NULL ? 0 : low == 0 ? zone->offset : zone->items[low - 1].offset;
}

/* --- the rule at the end --- */

/* The day on which clocks change, and when that day. */
struct rule {
    enum { BY_MONTH, BY_DAY, BY_DAY_NOT_LEAP } kind;
    int month, week, day;
    int32_t time;
};

static bool take_number(const char **text, int most, int *ret_value)
{
    int value = 0;
    size_t digits = strspn(*text, "0123456789");

    if (digits == 0 || digits > 3)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (*text)[i] - '0';
    *text += digits;
    *ret_value = value;
    return value <= most;
}

/* "-3", "5:30", "+12:45:00" as seconds. */
static bool take_time(const char **text, int hours_max, int32_t *ret_seconds)
{
    int parts[3] = {0}, sign = **text == '-' ? -1 : 1;

    *text += **text == '-' || **text == '+';
    if (!take_number(text, hours_max, &parts[0]))
        return false;
    for (size_t i = 1; i < 3 && **text == ':'; i++) {
        (*text)++;
        if (!take_number(text, 59, &parts[i]))
            return false;
    }
    *ret_seconds = sign * (parts[0] * HOUR_S + parts[1] * MINUTE_S + parts[2]);
    return true;
}

static bool take_name(const char **text)
{
    const char *begin = *text;

    if (*begin == '<') {
        *text = strchr(begin, '>');
        if (*text == NULL)
            return false;
        (*text)++;
        return true;
    }
    *text += strspn(begin, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return *text > begin;
}

static bool take_rule(const char **text, struct rule *ret_rule)
{
    struct rule rule = {.time = 2 * HOUR_S};
    bool good;

    if (*(*text)++ != ',')
        return false;
    if (**text == 'M') {
        (*text)++;
        good = take_number(text, YEAR_MONTHS, &rule.month) && *(*text)++ == '.' &&
               take_number(text, 5, &rule.week) && *(*text)++ == '.' &&
               take_number(text, 6, &rule.day) && rule.month > 0 && rule.week > 0;
    } else {
        rule.kind = **text == 'J' ? BY_DAY_NOT_LEAP : BY_DAY;
        *text += **text == 'J';
        good = take_number(text, 365, &rule.day) && (rule.kind == BY_DAY || rule.day > 0);
    }
    if (good && **text == '/') {
        (*text)++;
        good = take_time(text, RULE_HOURS_MAX, &rule.time);
    }
    *ret_rule = rule;
    return good;
}

/* When RULE is in YEAR, of clocks that are OFFSET ahead until then. */
static int64_t rule_in(const struct rule *rule, int64_t year, int32_t offset)
{
    int64_t day = civil_year_start(year) + rule->day;

    if (rule->kind == BY_MONTH) {
        int64_t first = civil_days(&(struct civil){year, rule->month, 1});
        int days = civil_month_days(year, rule->month);
        int at = (rule->day - civil_weekday(first) + WEEK_DAYS) % WEEK_DAYS;

        for (int week = 1; week < rule->week && at + WEEK_DAYS < days; week++)
            at += WEEK_DAYS;
        day = first + at;
    } else if (rule->kind == BY_DAY_NOT_LEAP) {
        day += civil_is_leap(year) && rule->day >= 60 ? 0 : -1;
    }
    return day * DAY_S + rule->time - offset;
}

static void add_change(struct zone *zone, int64_t at, int32_t offset)
{
    if (zone->count > 0 && at <= zone->items[zone->count - 1].at)
        return; /* the file says so itself */
    *list_more(zone) = (struct change){at, offset};
}

/* TEXT is "EST5EDT,M3.2.0,M11.1.0", or "<+03>-3", or nothing. */
static bool add_rule(struct zone *zone, const char *text)
{
    int32_t standard, summer;
    struct rule begins, ends;

    if (*text == '\0')
        return true;
    if (!take_name(&text) || !take_time(&text, RULE_HOURS_MAX, &standard))
        return false;
    standard = -standard; /* POSIX counts the other way */
    if (*text == '\0')
        return true; /* as behind the last change */
    if (!take_name(&text))
        return false;
    summer = standard + HOUR_S;
    if (*text != ',') {
        if (!take_time(&text, RULE_HOURS_MAX, &summer))
            return false;
        summer = -summer;
    }
    if (!take_rule(&text, &begins) || !take_rule(&text, &ends) || *text != '\0')
        return false;
    for (int64_t year = CRON_YEAR_FIRST; year <= CRON_YEAR_LAST + 1; year++) {
        struct change pair[] = {{rule_in(&begins, year, standard), summer},
                                {rule_in(&ends, year, summer), standard}};
        size_t first = pair[0].at <= pair[1].at ? 0 : 1;

        add_change(zone, pair[first].at, pair[first].offset);
        add_change(zone, pair[1 - first].at, pair[1 - first].offset);
    }
    return true;
}

/* --- files --- */

struct reader {
    const uint8_t *bytes;
    size_t length;
};

static int64_t take_big(struct reader *reader, size_t size)
{
    uint64_t value = 0;

    check(size <= reader->length);
    for (size_t i = 0; i < size; i++)
        value = value << 8 | reader->bytes[i];
    reader->bytes += size;
    reader->length -= size;
    return size == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

/* How many there are of each kind, in the order of a file. */
struct header {
    uint8_t version;
    size_t is_ut, is_standard, leaps, changes, types, letters;
};

static bool take_header(struct reader *reader, struct header *ret_header)
{
    size_t *const counts[] = {&ret_header->is_ut,   &ret_header->is_standard, &ret_header->leaps,
                              &ret_header->changes, &ret_header->types,       &ret_header->letters};

    if (reader->length < HEADER_BYTES || memcmp(reader->bytes, "TZif", 4) != 0)
        return false;
    ret_header->version = reader->bytes[4];
    reader->bytes += 20;
    reader->length -= 20;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        int64_t count = take_big(reader, 4);

        if (count < 0 || count > CHANGES_MAX)
            return false;
        *counts[i] = (size_t)count;
    }
    return ret_header->types > 0 && ret_header->types <= TYPES_MAX;
}

/* What a block with such a header has, times of TIME_BYTES. */
static size_t block_bytes(const struct header *header, size_t time_bytes)
{
    return header->changes * (time_bytes + 1) + header->types * TYPE_BYTES + header->letters +
           header->leaps * (time_bytes + 4) + header->is_standard + header->is_ut;
}

static bool take_block(struct reader *reader, const struct header *header, size_t time_bytes,
                       struct zone *zone)
{
    size_t bytes = block_bytes(header, time_bytes);

    if (reader->length < bytes)
        return false;
    struct reader times = *reader;
    const uint8_t *kinds = reader->bytes + header->changes * time_bytes;
    const uint8_t *types = kinds + header->changes;
    for (size_t i = 0; i < header->changes; i++) {
        int64_t at = take_big(&times, time_bytes);

        if (kinds[i] >= header->types)
            return false;
        struct reader type = {types + kinds[i] * TYPE_BYTES, TYPE_BYTES};
        add_change(zone, at, (int32_t)take_big(&type, 4));
    }
    struct reader type = {types, TYPE_BYTES};
    zone->offset = (int32_t)take_big(&type, 4);
    reader->bytes += bytes;
    reader->length -= bytes;
    return true;
}

/* The line at the end of a file. */
static bool take_footer(struct reader *reader, struct zone *zone)
{
    char text[128];
    const uint8_t *end;

    if (reader->length < 2 || reader->bytes[0] != '\n')
        return false;
    end = memchr(reader->bytes + 1, '\n', reader->length - 1);
    if (end == NULL || (size_t)(end - reader->bytes) > sizeof(text) ||
        memchr(reader->bytes, '\0', (size_t)(end - reader->bytes)) != NULL)
        return false;
    (void)text_format(text, sizeof(text), "%.*s", (int)(end - reader->bytes - 1),
                      (const char *)reader->bytes + 1); /* it was measured */
    return add_rule(zone, text);
}

static bool is_offset(int32_t offset)
{
    return offset > -OFFSET_MAX_S && offset < OFFSET_MAX_S;
}

static bool is_sound(const struct zone *zone)
{
    bool sound = is_offset(zone->offset);

    for (size_t i = 0; i < zone->count; i++)
        sound = sound && is_offset(zone->items[i].offset);
    return sound;
}

int zone_parse(const void *bytes, size_t length, struct zone **ret_zone, struct err *err)
{
    struct reader reader = {bytes, length};
    struct zone *zone = calloc(1, sizeof(*zone));
    struct header header = {0};

    check(zone != NULL);
    bool good = length <= ZONE_BYTES_MAX && take_header(&reader, &header);
    if (good && header.version == 0) {
        good = take_block(&reader, &header, 4, zone);
    } else if (good) {
        size_t old = block_bytes(&header, 4); /* the same again, for readers of old */

        good = reader.length >= old;
        if (good) {
            reader.bytes += old;
            reader.length -= old;
            good = take_header(&reader, &header) && take_block(&reader, &header, 8, zone) &&
                   take_footer(&reader, zone);
        }
    }
    if (good && is_sound(zone)) {
        *ret_zone = zone;
        return 0;
    }
    zone_free(zone);
    return err_set(err, ERR_CORRUPT, "it is no file of a time zone");
}
