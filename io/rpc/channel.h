/*
 * A connection out, as bytes: a name becomes addresses (on the pool), one of them is connected to,
 * TLS is begun in it if wanted.
 *
 * TLS begins as the peer expects it: with a byte of its own before the handshake, in plain.  What
 * is said above that is nobody's business here.
 */
#ifndef CAIRN_IO_RPC_CHANNEL_H
#define CAIRN_IO_RPC_CHANNEL_H

#include "io/loop.h"
#include "io/rpc.h"

#include <stddef.h>

struct channel;

struct channel_calls {
    void (*on_up)(void *ctx);
    void (*on_failed)(void *ctx, const struct err *why); /* instead */
    void (*on_ready)(void *ctx);                         /* what channel_wait waits for holds */
    void *ctx;
};

/* ADDRESS and TLS as in io/rpc.h. */
struct channel *channel_open(struct loop *loop, const char *address, const struct rpc_tls *tls,
                             const struct channel_calls *calls, struct err *err);
void channel_close(struct channel *channel); /* NULL is fine; calls nobody, from its calls too */

/* --- while it is up --- */

/* Waits for IO_READABLE, IO_WRITABLE, both or (0) nothing. */
void channel_wait(struct channel *channel, int events);

/* RET_LENGTH bytes were sent or have come; 0 came: the peer has ended.  ERR_AGAIN: none now, and
 * whoever sends goes on with the same bytes, as many or more, and whoever reads does so until this.
 * ERR_REFUSED: the peer does not like our certificate; ERR_IO: the connection is lost. */
int channel_send(struct channel *channel, const void *bytes, size_t length, size_t *ret_length,
                 struct err *err);
int channel_recv(struct channel *channel, void *bytes, size_t size, size_t *ret_length,
                 struct err *err);

#endif
