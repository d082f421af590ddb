/*
 * HTTP out (libcurl, loaded at first use) and in (libmicrohttpd on our loop).
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
#include <sys/types.h>

/* --- out --- */

struct http_reply {
    int status;       /* 0 when no whole answer came; then error says why */
    const char *body; /* borrowed until the callback returns, NUL behind it */
    size_t body_length;
    const char *headers; /* all header lines, each with its \r\n, borrowed likewise */
    /* ERR_AGAIN: not connected, nothing was sent; ERR_TIMEOUT; ERR_LIMIT: body or headers too
     * large; ERR_INVALID: no such request can be made; ERR_CANCELED; ERR_REFUSED: the peer's
     * certificate; ERR_IO: all else, the peer may have acted.  Recoverable if a repetition may
     * succeed. */
    struct err error;
};

/* At once; calls beyond them wait. */
enum { HTTP_CONNECTIONS_MAX = 256, HTTP_LASTING_MAX = 8192 };

/* Of https: whom to believe, and who we are; each may be NULL. */
struct http_trust {
    const char *ca_file, *ca_path;    /* certificates of authorities, else those of the system */
    const char *cert_file, *key_file; /* ours */
    bool insecure;                    /* whoever answers is believed */
};

struct http_call {
    const char *method;      /* "GET", "PUT", ... */
    const char *url;         /* http(s)://host:port/path; with unix_socket the host is ignored */
    const char *unix_socket; /* path of a UNIX socket, at most 107 bytes, or NULL */
    const struct http_trust *trust; /* NULL: the system's; borrowed until the callback */
    const char *const *headers;     /* "Name: value" lines, NULL-terminated, or NULL */
    const void *body;               /* or NULL */
    size_t body_length;
    uint64_t timeout_ms;    /* whole call; 0 is 60 s */
    size_t body_bytes_max;  /* of the reply, streamed or not; 0 is 64 MiB, SIZE_MAX any */
    uint32_t redirects_max; /* followed, http and https only; 0: a 3xx is the answer */
    bool lasts;  /* on a UNIX socket, for hours: another bound of connections than all others */
    bool secret; /* the copy of the body is wiped when it is not needed any more */
    /* When set, the body of a 2xx answer is handed over as it comes and reply.body stays empty
     * (any other answer's body is in reply.body); returning false ends the call with
     * ERR_CANCELED. */
    bool (*on_data)(void *ctx, const char *bytes, size_t length);
    void (*cb)(void *ctx, const struct http_reply *reply);
    void *ctx;
};

struct http_request;

/* Starts a call; strings and body are copied.  NULL only if libcurl cannot be loaded, with ERR.
 * Proxies of the environment are used, but never for UNIX sockets and loopback.  The request is
 * freed when its callback returns. */
struct http_request *http_start(struct loop *loop, const struct http_call *call, struct err *err);

/* Ends a call: its callback comes now, before this returns, with ERR_CANCELED. */
void http_cancel(struct http_request *request);

/* Copies the value of header NAME (any case) of REPLY; false if it is absent or was cut. */
bool http_reply_header(const struct http_reply *reply, const char *name, char *to, size_t size);

/* --- out, a connection as it is --- */

struct http_line;

/* Connects where CALL (url, unix_socket, trust) says, and waits for it: for programs that have
 * nothing else to do.  ERR_AGAIN: nobody listens; what else can be wrong as in http_reply. */
int http_line_open(const struct http_call *call, struct http_line **ret_line, struct err *err);

/* To wait for; what has come may be more than it tells, so that it is read until ERR_AGAIN. */
int http_line_fd(const struct http_line *line);

/* RET_LENGTH bytes were sent or have come, 0: the peer has ended.  ERR_AGAIN: none now, and whoever
 * sends goes on with the same bytes, as many or more; ERR_IO: the connection is lost. */
int http_line_send(struct http_line *line, const void *bytes, size_t length, size_t *ret_length);
int http_line_recv(struct http_line *line, void *bytes, size_t size, size_t *ret_length);
void http_line_close(struct http_line *line);

/* --- in --- */

struct http_server;
struct http_exchange; /* one request being answered */

enum { HTTP_SHORT_BYTES = 64 << 10 }; /* for so much of each there is room at any time */

/* Who may connect to a UNIX socket: its mode and whose it is.  Zeroed: the daemon's user alone. */
struct http_admission {
    mode_t mode;
    bool gives;
    uid_t uid;
    gid_t gid;
};

/* Certificates of a server, in PEM.  With CA_FILE clients have to show one that it has signed. */
struct http_tls {
    const char *cert_file, *key_file;
    const char *ca_file; /* NULL: clients show none */
    bool only_13;        /* TLS 1.3 and nothing older; else 1.2, too */
};

struct http_listen {
    const char *address;     /* numeric address; NULL: there is a unix_socket, or doors alone */
    uint16_t port;           /* 0: the system chooses; see http_server_port */
    int passed_fd;           /* a socket that listens there already, moved; 0: none */
    const char *unix_socket; /* path to listen on, or NULL */
    struct http_admission admits;
    const struct http_tls *tls; /* NULL: plain HTTP */
    size_t body_bytes_max;      /* larger requests get 413 */
    size_t
        bodies_bytes_max; /* of all requests that are longer than HTTP_SHORT_BYTES: 503; 0: any */
    size_t answers_bytes_max; /* of all answers likewise: 503 instead of them; 0: any */
    /* Some are kept free: who uses his least is closed for others.  If all are in use, more wait in
     * the kernel's queue. */
    uint32_t connections_max;
    uint64_t arrive_ms; /* for a request to arrive whole; 0: 10 s */
    uint64_t idle_ms;   /* of a connection; to take what is queued; 0: 5 min */
    /* A whole request has come.  The handler answers now or later, exactly once, with
     * http_respond or http_stream_begin. */
    void (*handle)(void *ctx, struct http_exchange *exchange);
    void *ctx;
};

/* ERR_EXISTS with one clear sentence if the address is in use; what LISTEN holds is copied. */
struct http_server *http_server_new(struct loop *loop, const struct http_listen *listen,
                                    struct err *err);

/* Not from a callback of this server.  Open exchanges are closed, their on_close is called. */
void http_server_free(struct http_server *server);
uint16_t http_server_port(const struct http_server *server);

/* --- doors: UNIX sockets by which others come to a server, too --- */

struct http_door;

/* Listens on NAME in the directory that DIRECTORY_FD (borrowed) is, which may be in other hands: no
 * link is followed.  Up to CONNECTIONS_MAX come by it at once, and more wait.  ERR_EXISTS: what is
 * there is no socket, or somebody listens on it. */
int http_door_open(struct http_server *server, int directory_fd, const char *name,
                   const struct http_admission *admits, unsigned connections_max,
                   struct http_door **ret_door, struct err *err);

/* Who has come by it is disconnected.  The name stays.  Not from a callback of the server, and
 * before the server is freed.  NULL is fine. */
void http_door_close(struct http_door *door);

/* Reads its certificates again, as TLS says: who connects from now on is shown these.  If they
 * cannot be used those that there are stay. */
int http_server_renew(struct http_server *server, const struct http_tls *tls, struct err *err);

/* True if the request has come by a UNIX socket, or is of a guest. */
bool http_is_local(const struct http_exchange *exchange);
bool http_is_guest(const struct http_exchange *exchange);

/* Of the request, borrowed until the exchange has been answered. */
const char *http_method(const struct http_exchange *exchange);
const char *http_path(const struct http_exchange *exchange); /* decoded UTF-8, without the query */
const char *http_query(const struct http_exchange *exchange, const char *name);  /* NULL: absent */
const char *http_header(const struct http_exchange *exchange, const char *name); /* any case */

/* The value of NAME in the query that COUNT others of that name come before; NULL: there is none.
 */
const char *http_query_again(const struct http_exchange *exchange, const char *name, size_t count);

const char *http_body(const struct http_exchange *exchange, size_t *ret_length); /* NUL behind */

/* Hands the body over (free), NULL if there is none; it is gone from the exchange, and does not
 * count any more among those of all requests. */
char *http_take_body(struct http_exchange *exchange, size_t *ret_length);

/* CB is called when the peer goes away before the answer is complete (http_respond called or
 * http_stream_end); the exchange is freed then and nothing may be answered after it.  An exchange
 * without CB stays until it is answered, to nobody, with its query and headers gone. */
void http_on_close(struct http_exchange *exchange, void (*cb)(void *ctx), void *ctx);

struct http_header_line {
    const char *name, *value; /* a line that HTTP cannot carry (newlines) is left out */
};

/* Answers with a whole body, which is copied.  The exchange is gone for the caller. */
void http_respond(struct http_exchange *exchange, int status, const char *content_type,
                  const struct http_header_line *headers, size_t headers_count, const void *body,
                  size_t length);

/* Answers piece by piece (chunked): begin, then any number of writes, then end.
 * http_stream_write copies; it returns the bytes queued and not yet taken by the peer, so that a
 * producer can pause (ON_DRAIN, may be NULL, is called from the loop when the queue is empty
 * again).  A peer that lets 16 MiB pile up is disconnected.  After the end the exchange is gone
 * for the caller. */
void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type,
                       const struct http_header_line *headers, size_t headers_count,
                       void (*on_drain)(void *ctx), void *ctx);
size_t http_stream_write(struct http_exchange *exchange, const void *bytes, size_t length);
void http_stream_end(struct http_exchange *exchange);

/* --- guests: requests that have not come by HTTP --- */

struct http_pair {
    const char *name, *value;
};

/* What a handler is asked, and who hears its answer; copied but for CTX. */
struct http_guest {
    const char *method, *path;
    const struct http_pair *query, *headers; /* names of headers in any case */
    size_t query_count, headers_count;
    const void *body;
    size_t body_length;

    /* The answer begins with STATUS; then come its BYTES, piece by piece, and its end, after which
     * the exchange is gone.  on_bytes returns how many are queued and not yet taken by whoever
     * reads: a producer holds back, and goes on after http_guest_drained.  Callbacks come from
     * inside what the handler calls, which may be from inside http_guest_begin's caller. */
    void (*on_begin)(void *ctx, int status);
    size_t (*on_bytes)(void *ctx, const void *bytes, size_t length);
    void (*on_end)(void *ctx);
    void *ctx;
};

/* An exchange for GUEST, to be given to a handler at once. */
struct http_exchange *http_guest_begin(const struct http_guest *guest);

/* All that was queued has been taken. */
void http_guest_drained(struct http_exchange *exchange);

/* BYTES for an exchange that is a tunnel; dropped if it is none. */
void http_guest_send(struct http_exchange *exchange, const void *bytes, size_t length);

/* Whoever asked does not wait any more: no callback of his comes, and the exchange is gone. */
void http_guest_leave(struct http_exchange *exchange);

/* --- connections handed over to another protocol (101) --- */

struct http_tunnel {
    void (*on_bytes)(void *ctx, const char *bytes, size_t length); /* borrowed for the call */
    void (*on_drain)(void *ctx); /* the queue is empty again; may be NULL */
    void (*on_close)(void *ctx); /* the peer is gone, and the exchange with him */
    void *ctx;
};

/* Answers 101 with HEADERS; from then on there are only bytes, told by what TUNNEL (copied) says,
 * in place of http_on_close.  The calls below are as those of streams: what was written before the
 * end is still sent, and after it the exchange is gone for the caller. */
void http_tunnel_begin(struct http_exchange *exchange, const struct http_header_line *headers,
                       size_t headers_count, const struct http_tunnel *tunnel);
size_t http_tunnel_write(struct http_exchange *exchange, const void *bytes, size_t length);
void http_tunnel_hold(struct http_exchange *exchange, bool hold); /* reads nothing meanwhile */
void http_tunnel_end(struct http_exchange *exchange);

/* Lets the peer go in the next iteration, who does not take what is queued; on_close comes then. */
void http_disconnect(struct http_exchange *exchange);

#endif
