/* Text from outside, made harmless for one line of a log or a terminal. */
#ifndef CAIRN_BASE_QUOTE_H
#define CAIRN_BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_VALUE_SIZE = 256 };

/* Appends TEXT to TO with what is no printable UTF-8 as \xNN, and a backslash before each byte of
 * QUOTED; at most SIZE - 1 bytes and never half of anything.  False if it had to be cut. */
bool text_append_clean(char *to, size_t size, const char *text, const char *quoted);

/* TEXT as one word of a line: itself if it is one, else in quotes with escapes, cut at
 * TEXT_VALUE_SIZE.  Returns TO. */
const char *text_quote(char to[TEXT_VALUE_SIZE], const char *text);

/* The same, living as long as the block around it. */
#define text_value(text) text_quote((char[TEXT_VALUE_SIZE]){0}, text)

#endif
