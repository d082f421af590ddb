/* Calls of the peer: from the first byte of a stream that he has opened on. */
#ifndef CAIRN_IO_RPC_IN_H
#define CAIRN_IO_RPC_IN_H

#include "io/rpc/session.h"

/* STREAM is new.  CONFIG and SESSION outlive it. */
void rpc_in_begin(const struct rpc_config *config, struct session *session,
                  struct yamux_stream *stream);

#endif
