/* A growing buffer.  Memory that outsiders ask for may be refused: the request fails, not us. */
#include "io/net/buffer.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

size_t buffer_length(const struct buffer *buffer)
{
    return buffer->end - buffer->start;
}

const char *buffer_text(const struct buffer *buffer)
{
    return buffer->bytes == NULL ? "" : buffer->bytes + buffer->start;
}

static bool make_room(struct buffer *buffer, size_t length)
{
    size_t used = buffer_length(buffer), capacity = buffer->capacity;

    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;
    }
    while (capacity < used + length + 1)
        capacity = capacity == 0 ? 512 : capacity * 2;
    char *larger = realloc(buffer->bytes, capacity);
    if (larger == NULL)
        return false;
    buffer->bytes = larger;
    buffer->capacity = capacity;
    return true;
}

bool buffer_append(struct buffer *buffer, const void *bytes, size_t length, size_t bytes_max)
{
    if (length > bytes_max || buffer_length(buffer) > bytes_max - length)
        return false;
    if (length == 0)
        return true;
    if (buffer->capacity - buffer->end < length + 1 && !make_room(buffer, length))
        return false;

    memcpy(buffer->bytes + buffer->end, bytes, length);
    buffer->end += length;
    buffer->bytes[buffer->end] = '\0';
    check(buffer->end < buffer->capacity);
    return true;
}

size_t buffer_take(struct buffer *buffer, void *to, size_t size)
{
    size_t length = buffer_length(buffer) < size ? buffer_length(buffer) : size;

    if (length > 0)
        memcpy(to, buffer->bytes + buffer->start, length);
    buffer->start += length;
    if (buffer->start == buffer->end)
        buffer_close(buffer); /* an idle stream holds nothing */
    return length;
}

void buffer_drop(struct buffer *buffer, size_t length)
{
    check(length <= buffer_length(buffer));
    buffer->start += length;
    if (buffer->start == buffer->end)
        buffer_close(buffer);
}

void buffer_close(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
