/* Bounded text: every call knows the size of its destination and always terminates it. */
#ifndef CAIRN_BASE_TEXT_H
#define CAIRN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies TEXT (NULL counts as "") into TO of SIZE bytes, cutting between UTF-8 characters, and
 * zeroes the rest so that equal texts are equal bytes.  True if nothing was cut. */
bool text_copy(char *to, size_t size, const char *text);

/* Appends TEXT to the text in TO of SIZE bytes; true if nothing was cut. */
bool text_append(char *to, size_t size, const char *text);

/* Formats into TO like snprintf, zeroing the rest as text_copy does; true if nothing was cut. */
bool text_format(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool text_equal(const char *a, const char *b);
bool text_starts_with(const char *text, const char *prefix);
bool text_ends_with(const char *text, const char *suffix);

/* True if a part of the path TEXT is "..". */
bool text_goes_up(const char *text);

/* True if NAME stands in LIST, between commas and spaces around them. */
bool text_lists(const char *list, const char *name);

/* Reads a decimal number that is all of TEXT; false on anything else, RET_VALUE untouched. */
bool text_to_u64(const char *text, uint64_t *ret_value);
bool text_to_i64(const char *text, int64_t *ret_value);

/* A Go duration ("1h30m", "250ms", "5s", "-1.5h") in nanoseconds; false if it is none. */
bool text_to_duration_ns(const char *text, int64_t *ret_ns);

/* Prints NS the way Go prints a time.Duration: "2.300269983s", "1m30s", "0s". */
void text_from_duration_ns(char *to, size_t size, int64_t ns);

/* True if BYTES of LENGTH are well-formed UTF-8 without NUL. */
bool text_is_utf8(const char *bytes, size_t length);

/* Drops the halves of characters that "%.60s" and a full buffer leave of UTF-8, in place. */
void text_whole(char *text);

/* Puts '?' for what a terminal could take for a command: control characters of one byte or two. */
void text_clean(char *text);

#endif
