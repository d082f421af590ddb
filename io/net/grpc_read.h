/* What an answer of HTTP/2 says as one of gRPC. */
#ifndef CAIRN_IO_NET_GRPC_READ_H
#define CAIRN_IO_NET_GRPC_READ_H

#include "io/grpc.h"
#include "io/net/http2.h"

enum { GRPC_PREFIX_BYTES = 5 }; /* before a message: whether it is compressed, and its length */

/* What a peer says besides its status. */
struct grpc_words {
    char detail[GRPC_DETAIL_SIZE];
    uint8_t more[GRPC_DETAIL_SIZE];
};

/* Fills RET_REPLY, which borrows from HTTP and from WORDS. */
void grpc_read(const struct http2_reply *http, struct grpc_words *words,
               struct grpc_reply *ret_reply);

#endif
