#include "agent/api/format/write.h"

#include "agent/api/format/values.h"
#include "base/base.h"
#include "base/list.h"

#include <string.h>

/* --- bytes --- */

/* Room for LENGTH more bytes; what is written there is counted by the caller. */
static char *room(struct writer *to, size_t length)
{
    to->bytes = list_room(to->bytes, &to->size, to->used + length, 1);
    return to->bytes + to->used;
}

static void bytes(struct writer *to, const char *from, size_t length)
{
    memcpy(room(to, length), from, length);
    to->used += length;
}

static void new_line(struct writer *to)
{
    enum { INDENT = 4 };
    size_t length = 1 + (size_t)INDENT * to->depth;
    char *at = room(to, length);

    at[0] = '\n';
    memset(at + 1, ' ', length - 1);
    to->used += length;
}

/* --- strings --- */

/* The letter behind the backslash, 0 if BYTE stands for itself, 'u' if only its number can. */
static char escape_of(unsigned char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return byte < 0x20 ? 'u' : '\0';
    }
}

static char *put_escape(char *at, unsigned char byte, char escape)
{
    static const char digits[] = "0123456789ABCDEF";

    *at++ = '\\';
    *at++ = escape;
    if (escape != 'u')
        return at;
    *at++ = '0';
    *at++ = '0';
    *at++ = digits[byte >> 4];
    *at++ = digits[byte & 15];
    return at;
}

/* How many bytes at TEXT stand for themselves whatever follows: no escape, nothing but ASCII. Eight
 * at a time: a byte below 0x20 borrows from its highest bit, which it does not have itself, and so
 * does one that is 0 once it is compared. */
static size_t plain_length(const char *text, size_t length)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    static const uint64_t highest = UINT64_C(0x8080808080808080);
    size_t at = 0;

    for (; at + sizeof(uint64_t) <= length; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, text + at, sizeof(word));
        uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
        uint64_t borrows = (word - ones * 0x20) | (quote - ones) | (slash - ones);
        if (((borrows | word) & highest) != 0)
            break;
    }
    while (at < length && (unsigned char)text[at] < 0x80 && escape_of((unsigned char)text[at]) == 0)
        at++;
    return at;
}

/* TEXT in quotes; there is room for as many escapes as it can have. */
static char *put_quoted(char *at, const char *text, size_t length)
{
    size_t plain = plain_length(text, length);
    bool sound = plain == length || text_is_utf8(text + plain, length - plain);

    *at++ = '"';
    memcpy(at, text, plain);
    at += plain;
    for (size_t i = plain; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        char escape = escape_of(byte);

        if (escape != '\0')
            at = put_escape(at, byte, escape);
        else
            *at++ = byte >= 0x80 && !sound ? '?' : (char)byte;
    }
    *at++ = '"';
    return at;
}

enum { ESCAPE_BYTES_MAX = 6 };

static void put_string(struct writer *to, const char *text)
{
    size_t length = strlen(text);
    char *begin = room(to, ESCAPE_BYTES_MAX * length + 2);

    to->used += (size_t)(put_quoted(begin, text, length) - begin);
}

/* --- values in their place --- */

/* Everything in front of a value. */
static void begin_value(struct writer *to, const char *name)
{
    check((name != NULL) == (to->depth > 0 && (to->arrays >> (to->depth - 1) & 1) == 0));
    if (to->filled)
        bytes(to, ",", 1);
    if (to->pretty && to->depth > 0)
        new_line(to);
    to->filled = true;
    if (name == NULL)
        return;
    size_t length = strlen(name);
    char *begin = room(to, ESCAPE_BYTES_MAX * length + 4);
    char *at = put_quoted(begin, name, length);
    *at++ = ':';
    if (to->pretty)
        *at++ = ' ';
    to->used += (size_t)(at - begin);
}

static void begin_inner(struct writer *to, const char *name, bool array)
{
    begin_value(to, name);
    check(to->depth < WRITE_DEPTH_MAX);
    bytes(to, array ? "[" : "{", 1);
    to->arrays = (to->arrays & ~(1ull << to->depth)) | (uint64_t)array << to->depth;
    to->depth++;
    to->filled = false;
}

void put_object(struct writer *to, const char *name)
{
    begin_inner(to, name, false);
}

void put_array(struct writer *to, const char *name)
{
    begin_inner(to, name, true);
}

void put_end(struct writer *to)
{
    check(to->depth > 0);
    to->depth--;
    if (to->pretty && to->filled)
        new_line(to);
    bytes(to, (to->arrays >> to->depth & 1) != 0 ? "]" : "}", 1);
    to->filled = true;
}

void put_text(struct writer *to, const char *name, const char *text)
{
    begin_value(to, name);
    put_string(to, text == NULL ? "" : text);
}

void put_number(struct writer *to, const char *name, int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

    begin_value(to, name);
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        digits[--at] = '-';
    bytes(to, digits + at, sizeof(digits) - at);
}

void put_bool(struct writer *to, const char *name, bool value)
{
    begin_value(to, name);
    bytes(to, value ? "true" : "false", value ? 4 : 5);
}

void put_null(struct writer *to, const char *name)
{
    begin_value(to, name);
    bytes(to, "null", 4);
}

void put_time(struct writer *to, const char *name, int64_t unix_ns)
{
    char text[API_TIME_SIZE];

    api_time(text, unix_ns);
    put_text(to, name, text);
}

/* --- trees --- */

static int append(const char *from, size_t length, void *ctx)
{
    struct writer *to = ctx;

    for (size_t i = 0; to->pretty && i < length; i++) {
        /* Of the indentation: those of strings are escaped. */
        if (from[i] == '\n')
            new_line(to);
        else
            bytes(to, from + i, 1);
    }
    if (!to->pretty)
        bytes(to, from, length);
    return 0;
}

/* Numbers with a fraction, and what lies deeper than we write ourselves. */
static void dump(struct writer *to, const char *name, const json_t *value)
{
    size_t flags = JSON_ENCODE_ANY | (to->pretty ? JSON_INDENT(4) : JSON_COMPACT);

    begin_value(to, name);
    check(json_dump_callback(value, append, to, flags) == 0); /* trees hold valid UTF-8 */
}

void put_json(struct writer *to, const char *name, json_t *value)
{
    bool is_deep = to->depth == WRITE_DEPTH_MAX;
    const char *key;
    json_t *item;
    size_t at;

    if (json_is_string(value)) {
        put_text(to, name, json_string_value(value));
    } else if (json_is_integer(value)) {
        put_number(to, name, json_integer_value(value));
    } else if (json_is_boolean(value)) {
        put_bool(to, name, json_is_true(value));
    } else if (json_is_null(value)) {
        put_null(to, name);
    } else if (json_is_object(value) && !is_deep) {
        put_object(to, name);
        json_object_foreach(value, key, item) put_json(to, key, item);
        put_end(to);
    } else if (json_is_array(value) && !is_deep) {
        put_array(to, name);
        json_array_foreach(value, at, item) put_json(to, NULL, item);
        put_end(to);
    } else {
        dump(to, name, value);
    }
}

void put_json_new(struct writer *to, const char *name, json_t *value)
{
    check(value != NULL);
    put_json(to, name, value);
    json_decref(value);
}
