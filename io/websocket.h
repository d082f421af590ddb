/*
 * WebSockets (RFC 6455): messages over a connection that HTTP handed over, of either side.
 *
 * A codec without a descriptor: bytes go in and out by calls.  Text and binary messages are one
 * thing; pings are answered, extensions are not spoken.  libwslay does the frames.
 */
#ifndef CAIRN_IO_WEBSOCKET_H
#define CAIRN_IO_WEBSOCKET_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEBSOCKET_KEY_SIZE = 32,
    WEBSOCKET_REASON_SIZE = 124,
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_REFUSED = 1008,  /* the peer may not, or asked for what cannot be */
    WEBSOCKET_INTERNAL = 1011, /* it failed on our side */
};

struct websocket;

struct websocket_calls {
    void (*send)(void *ctx, const void *bytes, size_t length); /* on to the peer, in this order */
    void (*on_message)(void *ctx, const char *bytes, size_t length); /* borrowed for the call */
    void *ctx;
};

/* MESSAGE_BYTES_MAX: of one that comes; a longer one ends it all. */
struct websocket *websocket_new(bool is_client, size_t message_bytes_max,
                                const struct websocket_calls *calls);
void websocket_free(struct websocket *socket); /* not from its calls */

/* Bytes of the peer.  False: nothing more comes, because he said so (what he said is answered), or
 * because he broke the rules. */
bool websocket_take(struct websocket *socket, const char *bytes, size_t length);

void websocket_send(struct websocket *socket, const char *text, size_t length);

/* The last that is sent; REASON is cut to WEBSOCKET_REASON_SIZE - 1 bytes. */
void websocket_close(struct websocket *socket, uint16_t status, const char *reason);

/* What the peer has closed with: 1005 if he did not say, 1006 if he has not closed. */
uint16_t websocket_closed_with(const struct websocket *socket,
                               char ret_reason[WEBSOCKET_REASON_SIZE]);

/* A new Sec-WebSocket-Key; and the Sec-WebSocket-Accept that answers KEY, false if it is none. */
void websocket_key(char to[WEBSOCKET_KEY_SIZE]);
bool websocket_accept(const char *key, char to[WEBSOCKET_KEY_SIZE]);

#endif
