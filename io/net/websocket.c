/* The codec around libwslay: its callbacks read from what was handed in and write to who sends. */
#include "io/websocket.h"

#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

enum { NONCE_SIZE = 16, NONCE_TEXT = 24 };

struct websocket {
    struct websocket_calls calls;
    wslay_event_context_ptr wslay;
    const char *bytes; /* while they are taken */
    size_t length;
    uint16_t closed_with;
    char reason[WEBSOCKET_REASON_SIZE];
};

/* --- what the library asks for --- */

static ssize_t on_recv(wslay_event_context_ptr wslay, uint8_t *to, size_t size, int flags,
                       void *ctx)
{
    struct websocket *socket = ctx;
    size_t length = socket->length < size ? socket->length : size;
    (void)flags;

    if (length == 0) {
        wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, socket->bytes, length);
    socket->bytes += length;
    socket->length -= length;
    return (ssize_t)length;
}

static ssize_t on_send(wslay_event_context_ptr wslay, const uint8_t *bytes, size_t length,
                       int flags, void *ctx)
{
    struct websocket *socket = ctx;
    (void)wslay;
    (void)flags;

    socket->calls.send(socket->calls.ctx, bytes, length);
    return (ssize_t)length;
}

static int on_mask(wslay_event_context_ptr wslay, uint8_t *to, size_t length, void *ctx)
{
    (void)wslay;
    (void)ctx;
    return getrandom(to, length, 0) == (ssize_t)length ? 0 : -1;
}

static void on_message(wslay_event_context_ptr wslay,
                       const struct wslay_event_on_msg_recv_arg *message, void *ctx)
{
    struct websocket *socket = ctx;
    (void)wslay;

    if (message->opcode == WSLAY_TEXT_FRAME || message->opcode == WSLAY_BINARY_FRAME) {
        socket->calls.on_message(socket->calls.ctx,
                                 message->msg_length == 0 ? "" : (const char *)message->msg,
                                 message->msg_length);
    } else if (message->opcode == WSLAY_CONNECTION_CLOSE) {
        size_t length = message->msg_length > 2 ? message->msg_length - 2 : 0;

        if (length >= sizeof(socket->reason))
            length = sizeof(socket->reason) - 1;
        socket->closed_with = message->msg_length >= 2 ? message->status_code : 1005;
        if (length > 0)
            memcpy(socket->reason, message->msg + 2, length);
        socket->reason[length] = '\0';
    }
}

/* --- the door --- */

struct websocket *websocket_new(bool is_client, size_t message_bytes_max,
                                const struct websocket_calls *calls)
{
    const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_msg_recv_callback = on_message,
    };
    struct websocket *socket = calloc(1, sizeof(*socket));

    check(socket != NULL);
    socket->calls = *calls;
    socket->closed_with = WSLAY_CODE_ABNORMAL_CLOSURE;
    int code = is_client ? wslay_event_context_client_init(&socket->wslay, &callbacks, socket)
                         : wslay_event_context_server_init(&socket->wslay, &callbacks, socket);
    check(code == 0);
    wslay_event_config_set_max_recv_msg_length(socket->wslay, message_bytes_max);
    return socket;
}

void websocket_free(struct websocket *socket)
{
    if (socket == NULL)
        return;
    wslay_event_context_free(socket->wslay);
    free(socket);
}

static void flush(struct websocket *socket)
{
    (void)wslay_event_send(socket->wslay); /* on_send takes all, and never fails */
}

bool websocket_take(struct websocket *socket, const char *bytes, size_t length)
{
    socket->bytes = bytes;
    socket->length = length;
    int code = wslay_event_recv(socket->wslay);
    flush(socket); /* pongs, and the answer to a close */
    socket->bytes = NULL;
    socket->length = 0;
    return code == 0 && wslay_event_want_read(socket->wslay) == 1;
}

void websocket_send(struct websocket *socket, const char *text, size_t length)
{
    const struct wslay_event_msg message = {
        .opcode = WSLAY_TEXT_FRAME, .msg = (const uint8_t *)text, .msg_length = length};

    /* After a close nothing is sent any more, which it says. */
    if (wslay_event_queue_msg(socket->wslay, &message) == 0)
        flush(socket);
}

void websocket_close(struct websocket *socket, uint16_t status, const char *reason)
{
    size_t length = strlen(reason);

    if (length >= WEBSOCKET_REASON_SIZE)
        length = WEBSOCKET_REASON_SIZE - 1;
    while (length > 0 && !text_is_utf8(reason, length))
        length--; /* a character may be cut */
    if (wslay_event_queue_close(socket->wslay, status, (const uint8_t *)reason, length) == 0)
        flush(socket);
}

uint16_t websocket_closed_with(const struct websocket *socket,
                               char ret_reason[WEBSOCKET_REASON_SIZE])
{
    memcpy(ret_reason, socket->reason, WEBSOCKET_REASON_SIZE);
    return socket->closed_with;
}

void websocket_key(char to[WEBSOCKET_KEY_SIZE])
{
    uint8_t nonce[NONCE_SIZE];

    check(getrandom(nonce, sizeof(nonce), 0) == (ssize_t)sizeof(nonce));
    base64_encode_raw(to, sizeof(nonce), nonce);
    to[BASE64_ENCODE_RAW_LENGTH(sizeof(nonce))] = '\0';
}

bool websocket_accept(const char *key, char to[WEBSOCKET_KEY_SIZE])
{
    static const char told[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* by the RFC */
    struct sha1_ctx sha1;
    uint8_t digest[SHA1_DIGEST_SIZE];

    if (strlen(key) != NONCE_TEXT || key[NONCE_TEXT - 1] != '=' || key[NONCE_TEXT - 2] != '=')
        return false;
    sha1_init(&sha1);
    sha1_update(&sha1, NONCE_TEXT, (const uint8_t *)key);
    sha1_update(&sha1, sizeof(told) - 1, (const uint8_t *)told);
    sha1_digest(&sha1, sizeof(digest), digest);
    base64_encode_raw(to, sizeof(digest), digest);
    to[BASE64_ENCODE_RAW_LENGTH(sizeof(digest))] = '\0';
    return true;
}
