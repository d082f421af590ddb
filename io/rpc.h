/*
 * RPC over one connection, both ways: what a server of a cluster is called with, and what it calls.
 *
 * A session is a TCP connection, TLS inside it if wanted, and in it streams (yamux): one for each
 * call that is under way, ours or the peer's.  A message is two msgpack objects, which are values
 * of jansson here:
 *
 *   {"$time": N}    a time, in nanoseconds since 1970; null: the zero time of Go
 *   {"$bytes": S}   bytes that are no text (not UTF-8, or with a NUL), in base64
 *
 * Everything is bounded: objects, streams, what waits to be sent, time.  A peer that breaks the
 * rules ends the session and no more.  What is said here is never logged: arguments hold tokens.
 *
 * Callbacks come from the loop, never from inside the call that causes them, but for what rpc_close
 * and rpc_cancel say.  Any of them may call anything here, rpc_close too.
 */
#ifndef CAIRN_IO_RPC_H
#define CAIRN_IO_RPC_H

#include "base/base.h"
#include "io/loop.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RPC_CALLS_MAX = 256,         /* of ours under way in one session; more get ERR_LIMIT */
    RPC_MESSAGE_MAX = 32 << 20,  /* bytes of an object, sent or received */
    RPC_ARGS_MAX = 256 << 10,    /* bytes of an object of the peer's own calls */
    RPC_METHOD_SIZE = 128,       /* with the NUL; longer ones there are none */
    RPC_STREAM_FULL = 256 << 10, /* bytes that wait in a stream: send no more until there is room */
    RPC_STREAM_MAX = 4 << 20,    /* who does nevertheless loses the stream */
    RPC_CONNECT_MS = 10 * 1000,  /* to resolve and to connect; as much again for TLS */
    RPC_PING_MS = 30 * 1000,     /* between pings of ours */
    RPC_PONG_MS = 10 * 1000,     /* for the answer */
    RPC_STALL_MS = 10 * 1000,    /* in which the peer has to take something that is sent */
};

struct rpc;        /* a session with one server */
struct rpc_call;   /* a call of ours, until its callback */
struct rpc_called; /* a call of the peer's, until it is answered */
struct rpc_stream; /* a streaming call of the peer's, while it lasts */

/* Certificates in PEM, read by rpc_open. */
struct rpc_tls {
    const char *ca_file, *cert_file, *key_file;
    const char *server_name; /* NULL: the chain is verified, and no name */
};

struct rpc_config {
    struct loop *loop;
    const char *address;       /* "host:port", "[v6]:port"; host may be a name */
    const struct rpc_tls *tls; /* NULL: none */

    /* The peer calls METHOD: to be answered by rpc_answer or rpc_refuse, from inside or later,
     * exactly once, even if the session is over or closed by then.  ARGS is borrowed.  NULL: all
     * are refused. */
    void (*called)(void *ctx, struct rpc_called *called, const char *method, const json_t *args);

    /* True if METHOD is a streaming call that is known here; NULL: none is. */
    bool (*streams)(void *ctx, const char *method);
    /* The peer opens a streaming call of such a METHOD.  rpc_stream_take (or rpc_stream_end) has to
     * be called from inside.  ARGS is borrowed. */
    void (*opened)(void *ctx, struct rpc_stream *stream, const char *method, const json_t *args);

    /* The session is over: once, and not after rpc_close.  All calls under way have had their
     * callback, all streams their end.  What is left to do is rpc_close, now or later.  WHY:
     * ERR_AGAIN: it was never connected, or the peer takes no more calls; ERR_TIMEOUT: no
     * connection, no pong, or nothing was taken in time; ERR_REFUSED: certificates; ERR_CORRUPT:
     * the peer has broken the rules; ERR_IO: the connection is lost. */
    void (*ended)(void *ctx, const struct err *why);
    void *ctx;
};

/* Connects in the background; calls may be made at once, and wait for it.  What CONFIG holds is
 * copied.  NULL with ERR_INVALID for an address that is none, or certificates that are none, and
 * with what file_read says of their files. */
struct rpc *rpc_open(const struct rpc_config *config, struct err *err);

/* Calls under way have their callbacks with ERR_CANCELED, streams their end, from inside: none of
 * them may call again.  `ended` is not called any more.  NULL is fine. */
void rpc_close(struct rpc *rpc);

/* True while the peer is connected and takes calls: TLS is done, and it has not said goodbye. */
bool rpc_is_up(const struct rpc *rpc);

/* True if it is connected and no call is under way, of ours or of the peer's, and nothing waits to
 * be sent: closed now, it loses nothing. */
bool rpc_is_idle(const struct rpc *rpc);

/* --- calls of ours --- */

/* REPLY is borrowed, and NULL if the call has failed:
 *   ERR_REFUSED   the peer says so; err->text is its own words (cut)
 *   ERR_AGAIN     the session has ended, or takes no calls, and nothing of this was sent
 *   ERR_IO        it has ended when some of it was sent: the peer may have acted
 *   ERR_TIMEOUT   no answer in time; the peer may have acted, or not have been reached
 *   ERR_CORRUPT   the answer was none
 *   ERR_LIMIT     too many calls, or ARGS are too long: nothing was sent
 *   ERR_CANCELED  rpc_close, rpc_cancel */
typedef void rpc_reply_cb(void *ctx, const json_t *reply, const struct err *err);

/* METHOD ("Status.Ping", at most RPC_METHOD_SIZE - 1 bytes) and ARGS (borrowed; NULL: {}) are
 * copied.  TIMEOUT_MS is of it all, waiting for the connection too.  Never NULL; gone when CB
 * returns, which is called once. */
struct rpc_call *rpc_call(struct rpc *rpc, const char *method, const json_t *args,
                          uint64_t timeout_ms, rpc_reply_cb *cb, void *ctx);

/* Ends a call: its callback comes now, before this returns, with ERR_CANCELED.  The peer may act
 * nevertheless. */
void rpc_cancel(struct rpc_call *call);

/* --- calls of the peer's --- */

/* REPLY is borrowed; NULL: {}.  Where the peer does not wait any more, nothing is sent. */
void rpc_answer(struct rpc_called *called, const json_t *reply);

/* TEXT is what the peer shows, not empty. */
void rpc_refuse(struct rpc_called *called, const char *text);

/* As for a method that is not known here: "rpc: can't find method X.Y". */
void rpc_refuse_unknown(struct rpc_called *called);

/* --- streaming calls of the peer's --- */

struct rpc_stream_calls {
    /* The peer sends OBJECT (borrowed); NULL: what it sends is read and dropped. */
    void (*on_input)(void *ctx, const json_t *object);
    /* There is room again, after rpc_stream_send has said that there is none; or NULL. */
    void (*on_room)(void *ctx);
    /* The peer has left, or the session is over: the last that is called, and STREAM is gone.  Not
     * called after rpc_stream_end. */
    void (*on_end)(void *ctx);
    void *ctx;
};

/* Whom to tell; CALLS is copied. */
void rpc_stream_take(struct rpc_stream *stream, const struct rpc_stream_calls *calls);

/* Queues OBJECT (borrowed).  False: RPC_STREAM_FULL bytes or more wait by now, and whoever sends
 * waits for on_room.  Beyond RPC_STREAM_MAX the stream is reset, and on_end comes. */
bool rpc_stream_send(struct rpc_stream *stream, const json_t *object);

/* While HELD nothing is read (on_input is not called) and the peer, in the end, has to wait. */
void rpc_stream_hold(struct rpc_stream *stream, bool held);

/* All that was queued is sent, then the end.  STREAM is gone. */
void rpc_stream_end(struct rpc_stream *stream);

#endif
