#include "plugins/protocol/read.h"

static void *bounded_alloc(void *ctx, size_t size)
{
    struct reading *from = ctx;

    if (size > from->bytes_left) {
        from->bytes_left = 0; /* and nothing smaller either */
        return NULL;
    }
    from->bytes_left -= size;
    return arena_new(from->arena, size);
}

static void bounded_free(void *ctx, void *memory)
{
    (void)ctx; /* goes with the arena */
    (void)memory;
}

struct reading reading_begin(struct arena *arena, struct err *err)
{
    return (struct reading){.arena = arena, .err = err, .bytes_left = READ_BYTES_MAX};
}

const void *reading_unpack(struct reading *from, const ProtobufCMessageDescriptor *descriptor,
                           const void *bytes, size_t length)
{
    ProtobufCAllocator allocator = {bounded_alloc, bounded_free, from};

    if (from->code != 0)
        return NULL;
    const void *message = protobuf_c_message_unpack(descriptor, &allocator, length,
                                                    length == 0 ? (const void *)"" : bytes);
    if (message == NULL && from->bytes_left == 0)
        from->code = err_set(from->err, ERR_LIMIT, "its answer is larger than is taken");
    else if (message == NULL)
        from->code = err_set(from->err, ERR_CORRUPT, "its answer is no message of plugins");
    return message;
}

void reading_refuse(struct reading *from, int code, const char *what, const char *why)
{
    if (from->code == 0)
        from->code = err_set(from->err, code, "its answer is not valid: %s %s", what, why);
}

bool reading_may_have(struct reading *from, size_t count, size_t count_max, const char *what)
{
    if (count > count_max)
        reading_refuse(from, ERR_LIMIT, what, "are more than are taken");
    return count <= count_max;
}

const char *reading_text(struct reading *from, ProtobufCBinaryData bytes, size_t bytes_max,
                         const char *what)
{
    if (bytes.len > bytes_max)
        reading_refuse(from, ERR_LIMIT, what, "is longer than is allowed");
    else if (bytes.len > 0 && !text_is_utf8((const char *)bytes.data, bytes.len))
        reading_refuse(from, ERR_INVALID, what, "is not UTF-8 without NUL");
    else if (bytes.len > 0)
        return arena_copy(from->arena, (const char *)bytes.data, bytes.len);
    return "";
}

const char *reading_needed(struct reading *from, ProtobufCBinaryData bytes, size_t bytes_max,
                           const char *what)
{
    if (bytes.len == 0)
        reading_refuse(from, ERR_INVALID, what, "is missing");
    return reading_text(from, bytes, bytes_max, what);
}
