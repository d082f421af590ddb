/*
 * A session of yamux over a channel, on the loop: what the machine of streams wants is sent, what
 * the peer says is handed to it, pings are asked and awaited, and one end comes of it all.
 */
#ifndef CAIRN_IO_RPC_SESSION_H
#define CAIRN_IO_RPC_SESSION_H

#include "io/rpc/channel.h"
#include "io/rpc/yamux.h"

struct session;

struct session_calls {
    void (*on_opened)(void *ctx, struct yamux_stream *stream); /* as in yamux.h */
    void (*on_leaving)(void *ctx);                     /* the peer takes no new streams; once */
    void (*on_over)(void *ctx, const struct err *why); /* after the end of all streams; once */
    void (*on_gone)(void *ctx); /* after session_close, when nothing of it is under way; the last */
    void *ctx;
};

/* FIRST is the byte that says what the connection is for.  CALLS is copied. */
struct session *session_open(struct loop *loop, const char *address, const struct rpc_tls *tls,
                             char first, const struct session_calls *calls, struct err *err);

/* Ends all streams from inside, calls nothing else any more but on_gone; from calls of the session,
 * too. */
void session_close(struct session *session);

struct loop *session_loop(const struct session *session);
struct yamux *session_yamux(const struct session *session);

/* Something is to be sent, or to be told: soon. */
void session_wake(struct session *session);

/* True while it may be used: it is up; it is over, and this is why (NULL: it is not). */
bool session_is_up(const struct session *session);
const struct err *session_why(const struct session *session);

/* A place in what is sent, and whether it was reached: bytes queued since then may have gone. */
uint64_t session_mark(const struct session *session);
bool session_has_sent(const struct session *session, uint64_t mark);

#endif
