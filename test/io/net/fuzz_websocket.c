/*
 * The bytes of a WebSocket, in pieces: the first byte says of which side and how they are cut.
 *
 * Nothing longer than the bound is heard, nothing after the end, and what is sent in answer is what
 * the other side takes.
 */
#include "test/fuzz.h"

#include "io/websocket.h"

enum { MESSAGE_MAX = 4096, ANSWERS_MAX = 1 << 16 };

struct side {
    bool over;
    char answers[ANSWERS_MAX];
    size_t length;
};

static void on_send(void *ctx, const void *bytes, size_t length)
{
    struct side *side = ctx;

    if (length > ANSWERS_MAX - side->length)
        length = ANSWERS_MAX - side->length;
    memcpy(side->answers + side->length, bytes, length);
    side->length += length;
}

static void on_message(void *ctx, const char *bytes, size_t length)
{
    const struct side *side = ctx;

    check(!side->over);
    check(length <= ANSWERS_MAX);
    check(strnlen(bytes, length) <= length); /* all of it may be read */
}

int LLVMFuzzerInitialize(int *arguments_count, char ***arguments)
{
    (void)arguments_count;
    (void)arguments;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct side side, other;
    const struct websocket_calls calls = {on_send, on_message, &side};
    const struct websocket_calls back = {on_send, on_message, &other};
    char reason[WEBSOCKET_REASON_SIZE];

    if (size == 0)
        return 0;
    side = other = (struct side){.over = false};
    bool is_client = (data[0] & 1) != 0;
    size_t step = (size_t)(data[0] >> 1) + 1;
    struct websocket *socket = websocket_new(is_client, MESSAGE_MAX, &calls);
    struct websocket *peer = websocket_new(!is_client, ANSWERS_MAX, &back);
    for (size_t at = 1; at < size && !side.over; at += step)
        side.over =
            !websocket_take(socket, (const char *)data + at, size - at < step ? size - at : step);
    side.over = false;
    (void)websocket_closed_with(socket, reason);
    check(memchr(reason, '\0', sizeof(reason)) != NULL);
    websocket_close(socket, WEBSOCKET_NORMAL, "");
    if (side.length < ANSWERS_MAX)
        (void)websocket_take(peer, side.answers, side.length);
    check(other.length > 0 || side.length == ANSWERS_MAX); /* he has answered the close */
    websocket_free(socket);
    websocket_free(peer);
    return 0;
}
