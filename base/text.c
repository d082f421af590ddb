#include "base/text.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool text_copy(char *to, size_t size, const char *text)
{
    check(to != NULL);
    check(size > 0);

    const char *from = text == NULL ? "" : text;
    size_t length = strlen(from);
    bool whole = length < size;

    if (!whole) {
        length = size - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0u) == 0x80u)
            length--; /* do not leave half a character */
    }
    memmove(to, from, length);
    memset(to + length, 0, size - length);
    return whole;
}

bool text_append(char *to, size_t size, const char *text)
{
    size_t used = strnlen(to, size);

    check(used < size);
    return text_copy(to + used, size - used, text);
}

bool text_format(char *to, size_t size, const char *format, ...)
{
    va_list args;

    check(size > 0);
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    check(length >= 0);
    size_t used = strnlen(to, size);
    memset(to + used, 0, size - used);
    return (size_t)length < size;
}

bool text_equal(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool text_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool text_ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);

    return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

bool text_lists(const char *list, const char *name)
{
    size_t length = strlen(name);

    while (*list != '\0') {
        size_t part = strcspn(list, ",");
        size_t from = strspn(list, " "), to = part;

        while (to > from && list[to - 1] == ' ')
            to--;
        if (from < part && to - from == length && strncmp(list + from, name, length) == 0)
            return true;
        list += part + (list[part] == ',');
    }
    return false;
}

bool text_goes_up(const char *text)
{
    while (*text != '\0') {
        size_t length = 0;

        while (text[length] != '\0' && text[length] != '/')
            length++;
        if (length == 2 && memcmp(text, "..", 2) == 0)
            return true;
        text += length + (text[length] == '/');
    }
    return false;
}

bool text_to_u64(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text == NULL || *text == '\0')
        return false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool text_to_i64(const char *text, int64_t *ret_value)
{
    uint64_t magnitude;
    bool negative = text != NULL && *text == '-';

    if (text == NULL || !text_to_u64(text + (negative ? 1 : 0), &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1u : 0u))
        return false;
    *ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static bool unit_of(const char *at, size_t length, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"ns", 1},       {"us", 1000},      {"\xc2\xb5s", 1000},      {"\xce\xbcs", 1000},
        {"ms", 1000000}, {"s", 1000000000}, {"m", 60LL * 1000000000}, {"h", 3600LL * 1000000000},
    };

    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strlen(units[i].name) == length && memcmp(units[i].name, at, length) == 0) {
            *ret_ns = units[i].ns;
            return true;
        }
    }
    return false;
}

bool text_to_duration_ns(const char *text, int64_t *ret_ns)
{
    if (text == NULL)
        return false;

    bool negative = *text == '-';
    const char *at = text + (*text == '-' || *text == '+' ? 1 : 0);
    int64_t total = 0;

    if (strcmp(at, "0") == 0) {
        *ret_ns = 0;
        return true;
    }
    if (*at == '\0')
        return false;
    while (*at != '\0') {
        int64_t whole = 0, fraction = 0, scale = 1, unit, part;
        const char *start = at;

        for (; *at >= '0' && *at <= '9'; at++) {
            if (__builtin_mul_overflow(whole, 10, &whole) ||
                __builtin_add_overflow(whole, *at - '0', &whole))
                return false;
        }
        size_t digits = (size_t)(at - start);
        if (*at == '.') {
            for (at++; *at >= '0' && *at <= '9'; at++, digits++) {
                if (scale < 1000000000) {
                    fraction = fraction * 10 + (*at - '0');
                    scale *= 10;
                }
            }
        }
        if (digits == 0)
            return false;
        const char *name = at;
        while (*at != '\0' && *at != '.' && !(*at >= '0' && *at <= '9'))
            at++;
        if (!unit_of(name, (size_t)(at - name), &unit))
            return false;
        if (__builtin_mul_overflow(whole, unit, &part) ||
            __builtin_add_overflow(total, part, &total) ||
            __builtin_add_overflow(
                total, (int64_t)((double)fraction / (double)scale * (double)unit + 0.5), &total))
            return false;
    }
    *ret_ns = negative ? -total : total;
    return true;
}

/* "1.5" from 1500 thousandths: VALUE in units of 1/SCALE, trailing zeros dropped. */
static void decimal(char *to, size_t size, uint64_t value, uint64_t scale)
{
    char digits[24];
    uint64_t whole = value / scale, rest = value % scale;

    (void)text_format(to, size, "%llu", (unsigned long long)whole);
    if (rest == 0)
        return;
    size_t count = 0;
    for (uint64_t step = scale / 10; step > 0 && rest > 0; step /= 10) {
        digits[count++] = (char)('0' + rest / step);
        rest %= step;
    }
    digits[count] = '\0';
    (void)text_append(to, size, ".");
    (void)text_append(to, size, digits);
}

void text_from_duration_ns(char *to, size_t size, int64_t ns)
{
    char number[48];
    uint64_t value = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    (void)text_copy(to, size, ns < 0 ? "-" : "");
    if (value == 0) {
        (void)text_append(to, size, "0s");
        return;
    }
    if (value < 1000000000u) {
        uint64_t scale = value < 1000u ? 1u : value < 1000000u ? 1000u : 1000000u;
        decimal(number, sizeof(number), value, scale);
        (void)text_append(to, size, number);
        (void)text_append(to, size, scale == 1u ? "ns" : scale == 1000u ? "\xc2\xb5s" : "ms");
        return;
    }
    uint64_t minutes = value / 60000000000u, hours = minutes / 60u;
    if (hours > 0) {
        (void)text_format(number, sizeof(number), "%lluh", (unsigned long long)hours);
        (void)text_append(to, size, number);
    }
    if (minutes > 0) {
        (void)text_format(number, sizeof(number), "%llum", (unsigned long long)(minutes % 60u));
        (void)text_append(to, size, number);
    }
    decimal(number, sizeof(number), value % 60000000000u, 1000000000u);
    (void)text_append(to, size, number);
    (void)text_append(to, size, "s");
}

void text_whole(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0';) {
        size_t length = 1;

        while ((unsigned char)at[0] >= 0xC0u && length < 4 &&
               ((unsigned char)at[length] & 0xC0u) == 0x80u)
            length++;
        if (text_is_utf8(at, length)) {
            memmove(to, at, length);
            to += length;
        }
        at += length;
    }
    *to = '\0';
}

/* How many of LENGTH bytes at AT are ASCII and no NUL, as far as eight of them are. */
static size_t plain_length(const unsigned char *at, size_t length)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t plain = 0;
    uint64_t word;

    for (; plain + sizeof(word) <= length; plain += sizeof(word)) {
        memcpy(&word, at + plain, sizeof(word));
        if ((((word - ones) | word) & ones << 7) != 0) /* a NUL borrows */
            break;
    }
    return plain;
}

bool text_is_utf8(const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;

    while (at < end) {
        at += plain_length(at, (size_t)(end - at));
        if (at == end)
            break;
        unsigned char lead = *at++;
        int more = lead < 0x80u ? 0 : lead >= 0xF0u ? 3 : lead >= 0xE0u ? 2 : 1;
        uint32_t point = lead;

        if (lead == 0 || (lead >= 0x80u && lead < 0xC2u) || lead > 0xF4u)
            return false;
        if (more > 0)
            point = lead & (0x3Fu >> more);
        if (end - at < more)
            return false;
        for (int i = 0; i < more; i++, at++) {
            if ((*at & 0xC0u) != 0x80u)
                return false;
            point = (point << 6) | (*at & 0x3Fu);
        }
        if ((more == 2 && (point < 0x800u || (point >= 0xD800u && point <= 0xDFFFu))) ||
            (more == 3 && (point < 0x10000u || point > 0x10FFFFu)))
            return false;
    }
    return true;
}

void text_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        bool wide = at[0] == 0xC2u && at[1] >= 0x80u && at[1] < 0xA0u; /* U+0080 to U+009F */

        if (wide)
            *at++ = '?';
        if (wide || *at < 0x20u || *at == 0x7Fu)
            *at = '?';
    }
}
