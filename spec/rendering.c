#include "spec/rendering.h"

#include "base/base.h"
#include "base/text.h"

#include <string.h>

void rendering_head(uint8_t to[RENDERING_HEAD_SIZE], char kind, size_t length)
{
    check(length <= UINT32_MAX);
    to[0] = (uint8_t)kind;
    for (unsigned i = 0; i < 4; i++)
        to[i + 1] = (uint8_t)(length >> (8 * i));
}

char rendering_head_read(const uint8_t from[RENDERING_HEAD_SIZE], size_t *ret_length)
{
    *ret_length = 0;
    for (unsigned i = 0; i < 4; i++)
        *ret_length |= (size_t)from[i + 1] << (8 * i);
    return (char)from[0];
}

size_t rendering_failure(uint8_t to[RENDERING_FAILURE_SIZE], struct err *err)
{
    text_whole(err->text);
    size_t length = strlen(err->text);
    check(err->code < 0 && length < RENDERING_FAILURE_SIZE);
    to[0] = (uint8_t)-err->code;
    memcpy(to + 1, err->text, length);
    return 1 + length;
}

int rendering_failure_read(const uint8_t *from, size_t length, struct err *err)
{
    static const uint8_t codes[] = {
#define X(name, value, text) value,
        ERR_LIST(X)
#undef X
    };

    if (length < 2 || length > RENDERING_FAILURE_SIZE ||
        memchr(codes, from[0], sizeof(codes)) == NULL ||
        memchr(from + 1, '\0', length - 1) != NULL ||
        !text_is_utf8((const char *)from + 1, length - 1))
        return err_set(err, ERR_CORRUPT, "the renderer gave no reason that can be shown");
    (void)err_set(err, -from[0], "%.*s", (int)length - 1, (const char *)from + 1); /* its code */
    text_clean(err->text);
    return err->code;
}
