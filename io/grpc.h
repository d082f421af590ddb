/*
 * gRPC out: one request or a stream of them, and one answer or a stream, over HTTP/2 to a UNIX
 * socket.
 *
 * It is HTTP with rules: a message has five bytes before it, the result is in the trailers, and a
 * deadline travels with the call.  Everything is bounded: messages, headers, time.  Every call ends
 * with exactly one callback, a canceled one with ERR_CANCELED from inside grpc_cancel.
 *
 * Each call has a connection of its own, so that a peer that reads nothing of one is in no other's
 * way; more than GRPC_CALLS_MAX wait for one within their deadline.  Those that may last for hours
 * are not among them.
 */
#ifndef CAIRN_IO_GRPC_H
#define CAIRN_IO_GRPC_H

#include "base/base.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*    name  value  what a caller can do    */
#define GRPC_STATUS_LIST(X)                                                                        \
    X(OK, 0, OK)                                                                                   \
    X(CANCELLED, 1, IO)                                                                            \
    X(UNKNOWN, 2, IO)                                                                              \
    X(INVALID_ARGUMENT, 3, INVALID)                                                                \
    X(DEADLINE_EXCEEDED, 4, TIMEOUT)                                                               \
    X(NOT_FOUND, 5, GONE)                                                                          \
    X(ALREADY_EXISTS, 6, EXISTS)                                                                   \
    X(PERMISSION_DENIED, 7, REFUSED)                                                               \
    X(RESOURCE_EXHAUSTED, 8, FULL)                                                                 \
    X(FAILED_PRECONDITION, 9, REFUSED)                                                             \
    X(ABORTED, 10, AGAIN)                                                                          \
    X(OUT_OF_RANGE, 11, INVALID)                                                                   \
    X(UNIMPLEMENTED, 12, UNSUPPORTED)                                                              \
    X(INTERNAL, 13, IO)                                                                            \
    X(UNAVAILABLE, 14, AGAIN)                                                                      \
    X(DATA_LOSS, 15, CORRUPT)                                                                      \
    X(UNAUTHENTICATED, 16, REFUSED)

enum grpc_status {
#define X(name, value, code) GRPC_##name = (value),
    GRPC_STATUS_LIST(X)
#undef X
        GRPC_STATUS_COUNT,
};

/* "NOT_FOUND"; STATUS is one of the list. */
const char *grpc_status_name(int status);

enum { GRPC_MESSAGE_MAX = 4 << 20, GRPC_DETAIL_SIZE = 4096, GRPC_CALLS_MAX = 256 };

struct grpc_reply;

struct grpc_call {
    const char *unix_socket; /* its path, at most 107 bytes */
    const char *method;      /* "/package.Service/Method" */
    const void *message;     /* may be empty */
    size_t message_length;   /* at most GRPC_MESSAGE_MAX */
    /* Of a stream of requests: others come behind it, by grpc_send, until grpc_send_end.  ON_SENT,
     * which may be NULL: all that was given is on its way. */
    bool sends_more;
    void (*on_sent)(void *ctx);
    uint64_t timeout_ms;     /* the whole call, 1 to 99,999,999: told to the peer, and kept here;
                                0, of a stream: as long as the peer goes on */
    bool lasts;              /* for hours, maybe: it is in no other call's way */
    size_t answer_bytes_max; /* of each message; 0: GRPC_MESSAGE_MAX */
    /* Set: a stream.  Each message is handed over as it comes, borrowed; false ends the call with
     * GRPC_CANCELLED, which is how to cancel from inside.  Its end is told by cb, as of a call with
     * an empty answer.
     */
    bool (*on_message)(void *ctx, const void *message, size_t length);
    void (*cb)(void *ctx, const struct grpc_reply *reply);
    void *ctx;
};

/* What is borrowed is so until the callback returns. */
struct grpc_reply {
    enum grpc_status status; /* the peer's, or what gRPC calls the way the call has failed */
    /* The peer has said so: what was asked for is not under way any more.  Of
     * GRPC_DEADLINE_EXCEEDED never: who says that has waited for it, as we have, and may be heard
     * before we give up. */
    bool answered;
    bool sent;          /* false: the peer has heard nothing of it */
    const char *detail; /* the peer's own words, borrowed: UTF-8, cut, "" if there are none */
    const void *more;   /* a google.rpc.Status that came with an error, borrowed; NULL: none */
    size_t more_length;
    const void *message; /* borrowed; NULL unless the status is GRPC_OK; empty of a stream */
    size_t message_length;
    struct err error; /* of the status; names neither socket nor method, for which the caller has a
                         better name */
};

struct grpc_request;

/* Starts a call; all is copied, and the copy of the message is wiped afterwards.  NULL with ERR:
 * ERR_LIMIT if the message is too long, ERR_INVALID for a path of a socket that is too long. */
struct grpc_request *grpc_start(struct loop *loop, const struct grpc_call *call, struct err *err);

/* Another message of a call that sends more; it is copied, and the copy wiped.  Returns the bytes
 * that wait to be sent: past 1 MiB nobody should send any, and what does not fit is lost. */
size_t grpc_send(struct grpc_request *request, const void *message, size_t length);

/* That was the last one. */
void grpc_send_end(struct grpc_request *request);

/* Nothing more is read of a stream, and its peer waits, until it is said that there may be; what
 * was read already may still come. */
void grpc_hold(struct grpc_request *request, bool hold);

/* Ends a call: its callback comes now, before this returns.  The peer hears of it, which undoes
 * nothing of what it has done. */
void grpc_cancel(struct grpc_request *request);

#endif
