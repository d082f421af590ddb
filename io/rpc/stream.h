/* Streaming calls of the peer: from the head byte of their stream on. */
#ifndef CAIRN_IO_RPC_STREAM_H
#define CAIRN_IO_RPC_STREAM_H

#include "io/rpc/session.h"

enum { RPC_HEAD_CALL = 1, RPC_HEAD_STREAM = 5 }; /* the first byte of each stream */

enum { RPC_BEGIN_MS = 10 * 1000 }; /* for the peer to say what he has opened a stream for */

/* STREAM is the peer's, BYTES have come behind its head byte.  CONFIG and SESSION outlive it. */
void rpc_stream_begin(const struct rpc_config *config, struct session *session,
                      struct yamux_stream *stream, const char *bytes, size_t length);

#endif
