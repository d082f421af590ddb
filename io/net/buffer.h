/* Bytes that come from outside in pieces: a growing buffer with a bound. */
#ifndef CAIRN_IO_NET_BUFFER_H
#define CAIRN_IO_NET_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *bytes; /* owned; NULL while nothing was ever put in, else a NUL follows the content */
    size_t start, end, capacity;
};

/* Appends; false, and nothing is changed, if the content would exceed BYTES_MAX or memory is out.
 */
bool buffer_append(struct buffer *buffer, const void *bytes, size_t length, size_t bytes_max);

/* Moves up to SIZE bytes from the front to TO; returns how many. */
size_t buffer_take(struct buffer *buffer, void *to, size_t size);

/* Forgets LENGTH bytes of the front. */
void buffer_drop(struct buffer *buffer, size_t length);

size_t buffer_length(const struct buffer *buffer);
const char *buffer_text(const struct buffer *buffer); /* "" if empty */
void buffer_close(struct buffer *buffer);

#endif
