/*
 * Snappy's block format, which Nomad's servers have payloads of dispatches in: unpacking only.
 *
 * A length, then elements: bytes as they are, and repetitions of what came out before.  Each says
 * how long it is, so nothing is written beyond what was promised, and nothing read before the
 * first.  Follows google/snappy format_description.txt.  Debian's library would do it too, and
 * bring the one of C++ into the daemon: 1.2 MB of memory for a payload now and then.
 */
#include "spec/served/part.h"

#include <stdlib.h>
#include <string.h>

struct unpacking {
    const uint8_t *at, *end;
    uint8_t *to;
    size_t length, size; /* that came out, and that must */
};

/* A number of COUNT bytes, the lowest first; false: there are not so many. */
static bool take_number(struct unpacking *unpacking, size_t count, size_t *ret_number)
{
    size_t number = 0;

    if ((size_t)(unpacking->end - unpacking->at) < count)
        return false;
    for (size_t i = 0; i < count; i++)
        number |= (size_t)unpacking->at[i] << (8 * i);
    unpacking->at += count;
    *ret_number = number;
    return true;
}

/* Seven bits of each byte, the lowest first; the highest bit says that there is another. */
static bool take_size(struct unpacking *unpacking)
{
    for (unsigned shift = 0; shift < 32; shift += 7) {
        size_t byte;

        if (!take_number(unpacking, 1, &byte))
            return false;
        unpacking->size |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/* Up to 60 bytes their number is in TAG, else in the one to four bytes behind it. */
static bool take_literal(struct unpacking *unpacking, size_t tag)
{
    size_t length = tag >> 2;

    if (length >= 60 && !take_number(unpacking, length - 59, &length))
        return false;
    length++;
    if (length > (size_t)(unpacking->end - unpacking->at) ||
        length > unpacking->size - unpacking->length)
        return false;
    memcpy(unpacking->to + unpacking->length, unpacking->at, length);
    unpacking->at += length;
    unpacking->length += length;
    return true;
}

/* What is repeated may be longer than what there is of it: then it repeats itself. */
static bool take_copy(struct unpacking *unpacking, size_t tag)
{
    size_t kind = tag & 3, offset, length = kind == 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;

    if (!take_number(unpacking, kind == 3 ? 4 : kind, &offset))
        return false;
    if (kind == 1)
        offset |= (tag >> 5) << 8;
    if (offset == 0 || offset > unpacking->length || length > unpacking->size - unpacking->length)
        return false;
    for (size_t i = 0; i < length; i++, unpacking->length++)
        unpacking->to[unpacking->length] = unpacking->to[unpacking->length - offset];
    return true;
}

bool jobspec_unpack(const uint8_t *bytes, size_t length, size_t max, uint8_t **ret_bytes,
                    size_t *ret_length)
{
    struct unpacking unpacking = {.at = bytes, .end = bytes + length};
    bool good = take_size(&unpacking) && unpacking.size <= max;
    size_t tag;

    if (!good)
        return false;
    unpacking.to = malloc(unpacking.size + 1);
    check(unpacking.to != NULL);
    while (good && unpacking.at < unpacking.end) {
        good = take_number(&unpacking, 1, &tag) &&
               ((tag & 3) == 0 ? take_literal(&unpacking, tag) : take_copy(&unpacking, tag));
        check(unpacking.length <= unpacking.size);
    }
    if (!good || unpacking.length != unpacking.size) {
        free(unpacking.to);
        return false;
    }
    *ret_bytes = unpacking.to;
    *ret_length = unpacking.length;
    return true;
}
