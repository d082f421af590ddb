#include "agent/api/format/write.h"

#include "agent/api/format/values.h"
#include "base/base.h"
#include "base/list.h"

#include <string.h>

/* --- bytes --- */

enum { INDENT = 4, ESCAPE_BYTES_MAX = 6 };

/* Room for LENGTH more bytes; what is written there is counted by the caller (wrote). */
static inline char *room(struct writer *to, size_t length)
{
    to->bytes = list_room(to->bytes, &to->size, to->used + length, 1);
    return to->bytes + to->used;
}

/* All up to END is text now. */
static void wrote(struct writer *to, const char *end)
{
    to->used = (size_t)(end - to->bytes);
}

static char *put_bytes(char *at, const char *from, size_t length)
{
    memcpy(at, from, length);
    return at + length;
}

/* What put_new_line writes. */
static size_t new_line_length(const struct writer *to)
{
    return 1 + (size_t)INDENT * to->depth;
}

static char *put_new_line(const struct writer *to, char *at)
{
    size_t length = new_line_length(to);

    at[0] = '\n';
    memset(at + 1, ' ', length - 1);
    return at + length;
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

/* True if each of the eight bytes of WORD stands for itself whatever follows: no escape, nothing
 * but ASCII.  One below 0x20 borrows from its highest bit, which it does not have itself, and so
 * does one that is 0 once it is compared. */
static inline bool are_plain(uint64_t word)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    static const uint64_t highest = UINT64_C(0x8080808080808080);
    uint64_t quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    uint64_t borrows = (word - ones * 0x20) | (quote - ones) | (slash - ones);

    return ((borrows | word) & highest) == 0;
}

static inline bool is_plain(char byte)
{
    return (unsigned char)byte >= 0x20 && (unsigned char)byte < 0x80 && byte != '"' && byte != '\\';
}

/* The halves of a text of 4 to 7 bytes, or of 2 or 3, which overlap: they are copied, and with
 * spaces for what there is none of they are a word. */
static inline uint64_t copy_short(char *at, const char *text, size_t length)
{
    if (length >= sizeof(uint32_t)) {
        uint32_t first, last;

        memcpy(&first, text, sizeof(first));
        memcpy(&last, text + length - sizeof(last), sizeof(last));
        memcpy(at, &first, sizeof(first));
        memcpy(at + length - sizeof(last), &last, sizeof(last));
        return (uint64_t)first << 32 | last;
    }
    uint16_t first, last;

    memcpy(&first, text, sizeof(first));
    memcpy(&last, text + length - sizeof(last), sizeof(last));
    memcpy(at, &first, sizeof(first));
    memcpy(at + length - sizeof(last), &last, sizeof(last));
    return UINT64_C(0x2020202000000000) | (uint64_t)first << 16 | last;
}

/* Copies up to the first byte of TEXT that is not plain, and returns how many these are.  Eight at
 * a time, the last of them once more; what is written behind the end is written over, or is in the
 * room that escapes would have had. */
static inline size_t put_plain(char *at, const char *text, size_t length)
{
    size_t count = 0;
    uint64_t word;

    for (; count + sizeof(word) <= length; count += sizeof(word)) {
        memcpy(&word, text + count, sizeof(word));
        memcpy(at + count, &word, sizeof(word));
        if (!are_plain(word))
            break;
    }
    if (length >= sizeof(word) && count + sizeof(word) > length) {
        memcpy(&word, text + length - sizeof(word), sizeof(word));
        memcpy(at + length - sizeof(word), &word, sizeof(word));
        if (are_plain(word))
            return length;
    } else if (length >= 2 && length < sizeof(word) && are_plain(copy_short(at, text, length))) {
        return length;
    }
    for (; count < length && is_plain(text[count]); count++)
        at[count] = text[count];
    return count;
}

/* The first byte of TEXT and what belongs to it, none of which is plain; RET_LENGTH is how many
 * they were. */
static char *put_odd(char *at, const char *text, size_t length, bool sound, size_t *ret_length)
{
    char escape = escape_of((unsigned char)text[0]);
    size_t count = 0;

    if (escape != '\0') {
        *ret_length = 1;
        return put_escape(at, (unsigned char)text[0], escape);
    }
    for (; count < length && (unsigned char)text[count] >= 0x80; count++)
        at[count] = sound ? text[count] : '?';
    *ret_length = count;
    return at + count;
}

/* The rest of TEXT, whose first byte is not plain. */
static char *put_rest(char *at, const char *text, size_t length)
{
    bool sound = text_is_utf8(text, length);

    for (size_t count = 0; count < length;) {
        size_t odd, plain;

        at = put_odd(at, text + count, length - count, sound, &odd);
        plain = put_plain(at, text + count + odd, length - count - odd);
        at += plain;
        count += odd + plain;
    }
    return at;
}

/* TEXT in quotes; there is room for as many escapes as it can have. */
static inline char *put_quoted(char *at, const char *text, size_t length)
{
    *at++ = '"';
    size_t count = put_plain(at, text, length);
    at += count;
    if (count < length)
        at = put_rest(at, text + count, length - count);
    *at++ = '"';
    return at;
}

/* The most that TEXT of so many bytes comes to, in quotes. */
static size_t quoted_length_max(size_t length)
{
    return ESCAPE_BYTES_MAX * length + 2;
}

/* --- values in their place --- */

/* Everything in front of a value, and room for MORE bytes where that begins. */
static inline char *begin_value(struct writer *to, const char *name, size_t more)
{
    size_t length = name == NULL ? 0 : strlen(name);

    check((name != NULL) == (to->depth > 0 && (to->arrays >> (to->depth - 1) & 1) == 0));
    char *at = room(to, 1 + new_line_length(to) + quoted_length_max(length) + 2 + more);
    if (to->filled)
        *at++ = ',';
    if (to->pretty && to->depth > 0)
        at = put_new_line(to, at);
    to->filled = true;
    if (name == NULL)
        return at;
    at = put_quoted(at, name, length);
    *at++ = ':';
    if (to->pretty)
        *at++ = ' ';
    return at;
}

static void begin_inner(struct writer *to, const char *name, bool array)
{
    char *at = begin_value(to, name, 1);

    check(to->depth < WRITE_DEPTH_MAX);
    *at++ = array ? '[' : '{';
    wrote(to, at);
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
    char *at = room(to, new_line_length(to) + 1);
    if (to->pretty && to->filled)
        at = put_new_line(to, at);
    *at++ = (to->arrays >> to->depth & 1) != 0 ? ']' : '}';
    wrote(to, at);
    to->filled = true;
}

void put_text(struct writer *to, const char *name, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);
    char *at = begin_value(to, name, quoted_length_max(length));

    wrote(to, put_quoted(at, text == NULL ? "" : text, length));
}

enum { DIGITS_MAX = 24 };

static char *put_digits(char *at, int64_t number)
{
    char digits[DIGITS_MAX];
    size_t first = sizeof(digits);
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

    do {
        digits[--first] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        digits[--first] = '-';
    return put_bytes(at, digits + first, sizeof(digits) - first);
}

void put_number(struct writer *to, const char *name, int64_t number)
{
    char *at = begin_value(to, name, DIGITS_MAX);

    if (number < 0 || number > 9)
        at = put_digits(at, number);
    else
        *at++ = (char)('0' + number); /* as most of them */
    wrote(to, at);
}

void put_number_text(struct writer *to, const char *name, int64_t number)
{
    char *at = begin_value(to, name, DIGITS_MAX + 2);

    *at++ = '"';
    at = put_digits(at, number);
    *at++ = '"';
    wrote(to, at);
}

void put_bool(struct writer *to, const char *name, bool value)
{
    char *at = begin_value(to, name, strlen("false"));

    wrote(to, value ? put_bytes(at, "true", 4) : put_bytes(at, "false", 5));
}

void put_null(struct writer *to, const char *name)
{
    wrote(to, put_bytes(begin_value(to, name, 4), "null", 4));
}

void put_time(struct writer *to, const char *name, int64_t unix_ns)
{
    char text[API_TIME_SIZE];

    if (!to->wired) {
        api_time(text, unix_ns);
        put_text(to, name, text);
        return;
    }
    put_object(to, name);
    if (unix_ns == 0)
        put_null(to, "$time");
    else
        put_number(to, "$time", unix_ns);
    put_end(to);
}

/* --- trees --- */

static int append(const char *from, size_t length, void *ctx)
{
    struct writer *to = ctx;

    char *at = room(to, length);

    if (!to->pretty)
        at = put_bytes(at, from, length);
    for (size_t i = 0; to->pretty && i < length; i++) {
        /* Of the indentation: those of strings are escaped. */
        if (from[i] == '\n') {
            wrote(to, at);
            at = put_new_line(to, room(to, new_line_length(to) + length));
        } else {
            *at++ = from[i];
        }
    }
    wrote(to, at);
    return 0;
}

/* Numbers with a fraction, and what lies deeper than we write ourselves. */
static void dump(struct writer *to, const char *name, const json_t *value)
{
    size_t flags = JSON_ENCODE_ANY | (to->pretty ? JSON_INDENT(4) : JSON_COMPACT);

    wrote(to, begin_value(to, name, 0));
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
