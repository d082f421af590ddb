/*
 * A POST over HTTP/2 to a UNIX socket, without asking first, on a connection of its own (nghttp2).
 *
 * Both sides may say something at any time.  Headers and body of the answer are bounded, and so is
 * what waits to be sent; time is the caller's.  Every call ends with exactly one callback, never
 * from inside http2_start, and does not exist for the caller after it.
 *
 * It is not libcurl's, which knows no call that both sides stream: of one that is not told the end
 * of what it sends 7.88 loses an answer that comes with RST_STREAM.
 */
#ifndef CAIRN_IO_NET_HTTP2_H
#define CAIRN_IO_NET_HTTP2_H

#include "base/base.h"
#include "io/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a call has ended. */
enum http2_end {
    HTTP2_WHOLE,       /* its answer is whole */
    HTTP2_UNCONNECTED, /* nobody takes the connection: nothing was sent; error.os says why */
    HTTP2_BROKEN_OFF,  /* the connection went in mid-call */
    HTTP2_RESET,       /* the peer ended this call; how is error's text */
    HTTP2_NOT_TAKEN,   /* the peer has not begun with it, by what is error's text */
    HTTP2_STRANGE,     /* what came is no HTTP/2 */
    HTTP2_UNRULY,      /* it is, but breaks the rule that is error's text */
    HTTP2_OURS,        /* ERR_CANCELED; ERR_LIMIT: headers or body too large */
};

/* What is borrowed is so until the callback returns. */
struct http2_reply {
    enum http2_end end;
    int status;          /* of a whole answer, three digits of any kind */
    const char *headers; /* "name: value" lines with their \r\n, trailers behind them; borrowed */
    const char *body;    /* borrowed, NUL behind it */
    size_t body_length;
    struct err error; /* code 0 if the answer is whole */
};

struct http2_header {
    const char *name, *value; /* the name in small letters */
};

/* At once, for each loop, of calls that last for hours and of those that do not; more wait. */
enum { HTTP2_CALLS_MAX = 256, HTTP2_LASTING_MAX = 8192 };

enum { HTTP2_HEADERS_MAX = 64 << 10 }; /* of an answer, bytes */

struct http2_call {
    const char *unix_socket; /* its path, at most 107 bytes */
    const char *path;
    const struct http2_header *headers;
    size_t headers_count; /* at most 8 */
    const void *body;
    size_t body_length;
    /* The body goes on behind that, by http2_send, until http2_send_end.  ON_SENT, which may be
     * NULL: all that was given is on its way. */
    bool sends_more;
    void (*on_sent)(void *ctx);
    size_t body_bytes_max; /* of the answer, streamed or not */
    bool lasts;
    /* Set: the body of an answer with a status of 2xx is handed over as it comes, and is not in the
     * reply; false ends the call with ERR_CANCELED. */
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http2_reply *reply);
    void *ctx;
};

struct http2_request;

/* Starts a call; all is copied, and the copy of the body wiped when it is sent. */
struct http2_request *http2_start(struct loop *loop, const struct http2_call *call);

enum { HTTP2_SEND_MAX = 2 << 20 };

/* More of the body of a call that sends more; returns the bytes that wait to be sent, at most
 * HTTP2_SEND_MAX: what would be more is lost as a whole. */
size_t http2_send(struct http2_request *request, const void *bytes, size_t length);

/* That was all of it. */
void http2_send_end(struct http2_request *request);

/* Nothing more is read from the peer, who waits then, until it is said that there may be. */
void http2_hold(struct http2_request *request, bool hold);

/* Ends a call: its callback comes now, before this returns, and the connection is closed. */
void http2_cancel(struct http2_request *request);

#endif
