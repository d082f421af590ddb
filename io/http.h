/*
 * HTTP out (libcurl, loaded at first use) and in (libwebsockets on our loop).
 *
 * Both are bounded: bodies, headers, connections, time.  Every request ends with exactly one
 * callback, a canceled one with ERR_CANCELED.
 */
#ifndef CAIRN_IO_HTTP_H
#define CAIRN_IO_HTTP_H

#include "base/base.h"
#include "io/loop.h"

#include <stddef.h>
#include <stdint.h>

/* --- out --- */

struct http_reply {
    int status;                 /* 0 when no answer came; then error says why */
    const char *body;           /* borrowed until the callback returns, NUL behind it */
    size_t body_length;
    const char *headers;        /* all header lines, borrowed likewise */
    struct err error;
};

struct http_call {
    const char *method;         /* "GET", "PUT", ... */
    const char *url;            /* http://host:port/path; with unix_socket the host is ignored */
    const char *unix_socket;    /* path of a UNIX socket, or NULL */
    const char *const *headers; /* "Name: value" lines, NULL-terminated, or NULL */
    const void *body;
    size_t body_length;
    uint64_t timeout_ms;        /* whole call; 0 is 60 s */
    size_t body_bytes_max;      /* of the reply; 0 is 64 MiB */
    /* When set, body bytes are handed over as they come and reply.body stays empty; returning
     * false ends the call with ERR_CANCELED. */
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http_reply *reply);
    void *ctx;
};

struct http_request;

/* Starts a call; strings and body are copied.  NULL only if libcurl cannot be loaded, with ERR. */
struct http_request *http_start(struct loop *loop, const struct http_call *call, struct err *err);
void http_cancel(struct http_request *request);

/* --- in --- */

struct http_server;
struct http_exchange; /* one request being answered */

struct http_listen {
    const char *address;            /* numeric address, or NULL with unix_socket */
    uint16_t port;                  /* 0: the system chooses; see http_server_port */
    const char *unix_socket;        /* path to listen on, or NULL */
    size_t body_bytes_max;          /* larger requests get 413 */
    uint32_t connections_max;
    /* A whole request has come.  The handler answers now or later, exactly once, with
     * http_respond or http_stream_begin. */
    void (*handle)(void *ctx, struct http_exchange *exchange);
    void *ctx;
};

struct http_server *http_server_new(struct loop *loop, const struct http_listen *listen,
                                    struct err *err);
void http_server_free(struct http_server *server); /* open exchanges are closed */
uint16_t http_server_port(const struct http_server *server);

/* Of the request, borrowed until the exchange has been answered. */
const char *http_method(const struct http_exchange *exchange);
const char *http_path(const struct http_exchange *exchange); /* decoded, without the query */
const char *http_query(const struct http_exchange *exchange, const char *name); /* NULL: absent */
const char *http_header(const struct http_exchange *exchange, const char *name); /* lower case */
const char *http_body(const struct http_exchange *exchange, size_t *ret_length);

/* CB is called when the peer goes away before the answer; nothing may be answered after it. */
void http_on_close(struct http_exchange *exchange, void (*cb)(void *ctx), void *ctx);

struct http_header_line {
    const char *name, *value;
};

/* Answers with a whole body, which is copied. */
void http_respond(struct http_exchange *exchange, int status, const char *content_type,
                  const struct http_header_line *headers, size_t headers_count, const void *body,
                  size_t length);

/* Answers piece by piece (chunked): begin, then any number of writes, then end.
 * http_stream_write copies; it returns the bytes queued and not yet taken by the peer, so that a
 * producer can pause (on_drain is called when the queue is empty again). */
void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type,
                       void (*on_drain)(void *ctx), void *ctx);
size_t http_stream_write(struct http_exchange *exchange, const void *bytes, size_t length);
void http_stream_end(struct http_exchange *exchange);

#endif
