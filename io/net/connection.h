/* What the parts of the HTTP server share: a connection and the exchange it carries. */
#ifndef CAIRN_IO_NET_CONNECTION_H
#define CAIRN_IO_NET_CONNECTION_H

#include "io/http.h"
#include "io/net/buffer.h"

#include <microhttpd.h>
#include <sys/socket.h>

enum exchange_state {
    EXCHANGE_ARRIVING,
    EXCHANGE_WAITING,   /* with the handler, not answered yet */
    EXCHANGE_STREAMING, /* begun, not ended */
    EXCHANGE_ANSWERED,  /* our part is done */
    EXCHANGE_TUNNEL,    /* another protocol has the connection, or will in a moment */
};

struct guest;

struct http_exchange {
    struct connection *connection; /* NULL: the peer is gone, nobody was told */
    struct guest *guest;           /* who has asked in place of one; NULL: nobody */
    enum exchange_state state;
    bool begun;  /* the library has shown us the head */
    int refusal; /* the status to answer with instead of asking the handler, or 0 */
    char method[16];
    char *path;                    /* owned */
    struct buffer body;            /* of the request; then of a stream what is queued */
    size_t body_held, answer_held; /* of what all have together (share.c) */
    struct MHD_Response *response; /* owned until it is queued */
    int status;
    void (*on_drain)(void *ctx);
    void *on_drain_ctx;
    struct http_exchange *drained_next, **drained_link; /* NULL: not on the server's list */
    void (*on_close)(void *ctx);
    void *on_close_ctx;
    struct http_tunnel tunnel; /* EXCHANGE_TUNNEL */
    bool held, ending;         /* likewise */
};

struct connection {
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd; /* the library's */
    bool idle, suspended, doomed;
    bool condemned;    /* to be doomed at the next iteration */
    uint64_t since_ms; /* it is new, idle, has a request that arrives, an answer; or moved last */
    struct io_timer deadline;
    struct io_watch watch;                      /* while idle, suspended or handed over */
    struct MHD_UpgradeResponseHandle *upgraded; /* to another protocol; the library's */
    struct http_exchange *exchange;
    struct http_door *door; /* by which it came; NULL: by none, or it is closed */
    struct connection *next, **link;
};

struct http_door {
    struct http_server *server;
    int fd; /* owned */
    struct io_watch watch;
    unsigned connections_count, connections_max;
    struct http_door *next, **link;
};

/* Memory that all connections have together, beyond the little that each may have. */
struct http_share {
    size_t used, max;
};

struct http_server {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct tls *tls;        /* NULL: plain */
    struct tls_peer *peers; /* who speaks it */
    unsigned handshakes;    /* of them, that are no connections of the library yet */
    char *unix_socket;      /* owned */
    uint16_t port;
    size_t body_bytes_max;
    struct http_share bodies, answers;
    uint64_t arrive_ms, idle_ms;
    void (*handle)(void *ctx, struct http_exchange *exchange);
    void *ctx;
    int listen_fd;             /* owned */
    int reserve_fd;            /* owned; -1: used up */
    bool short_of_descriptors; /* and somebody was told */
    struct io_watch listening;
    struct io_timer accept_again;
    struct io_watch watch;
    struct io_timer again;
    void (*after_turn)(struct http_server *server); /* of the library */
    /* Hands FD (moved) to the library; false: it is closed, nothing more can be taken. */
    bool (*add)(struct http_server *server, int fd, const struct sockaddr_storage *address,
                socklen_t length);
    bool running;
    bool more; /* the library has something to do that none of its descriptors will tell */
    struct connection *connections;
    struct http_door *doors;
    struct http_door *through;     /* whose connection is being handed to the library */
    struct http_exchange *drained; /* streams whose queue this turn has emptied */
    unsigned connections_count, connections_max;
    unsigned doomed_count; /* of them */
    struct io_timer room;  /* the next may be closed for others */
};

/* The connection that the library's MHD belongs to; NULL before its start. */
struct connection *connection_of(struct MHD_Connection *mhd);

/* Tells whoever holds the exchange of CONNECTION, if one is open, and ends it. */
void connection_finish_exchange(struct connection *connection);
void exchange_free(struct http_exchange *exchange);

/* Takes CONNECTION from the library until connection_resume; a peer that leaves dooms it. */
void connection_suspend(struct connection *connection);
void connection_resume(struct connection *connection);

/* Shuts the socket down, ends the exchange, and lets the library find out. */
void connection_doom(struct connection *connection);

/* Dooms CONNECTION after DELAY_MS, instead of the deadline it had. */
void connection_set_deadline(struct connection *connection, uint64_t delay_ms);

/* The first byte of a request has come on what may have been an idle connection. */
void connection_begin_request(struct connection *connection);

/* Closes connections until there is room for others, now or as soon as one may be closed. */
void server_make_room(struct http_server *server);

/* Closes the one that has had its time for longest, however many there are. */
void server_close_longest(struct http_server *server);

/* Callbacks of the library: a connection was made or closed, an exchange is over. */
void connection_on_notify(void *ctx, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code);
void connection_on_completed(void *ctx, struct MHD_Connection *mhd, void **request,
                             enum MHD_RequestTerminationCode code);

/* Adds a line to RESPONSE unless HTTP cannot carry it. */
void response_add_header(struct MHD_Response *response, const char *name, const char *value);

/* --- guest.c --- */

const char *guest_query(const struct guest *guest, const char *name, size_t count);
const char *guest_header(const struct guest *guest, const char *name);
void guest_respond(struct http_exchange *exchange, int status, const void *body, size_t length);
void guest_begin(struct http_exchange *exchange, int status);
size_t guest_write(struct http_exchange *exchange, const void *bytes, size_t length);
void guest_end(struct http_exchange *exchange);

/* --- tls.c --- */

struct tls;

/* Reads what FILES names; the caller holds it. */
int tls_read(const struct http_tls *files, struct tls **ret_tls, struct err *err);
void tls_release(struct tls *tls); /* NULL is fine */

/* FD (moved) speaks TLS: what is in it becomes a connection of the library as soon as hands are
 * shaken. */
void tls_take(struct http_server *server, int fd);

/* All of them go. */
void tls_end(struct http_server *server);

/* --- accept.c --- */

/* Takes connections from now on, with the listening socket that the server has; false if there is
 * no descriptor to begin with.  The end closes the socket. */
bool server_accept_begin(struct http_server *server);
void server_accept_end(struct http_server *server);

/* The same of DOOR. */
void door_accept_begin(struct http_door *door);

/* --- share.c --- */

/* Memory for a body or an answer of LENGTH bytes; false: there is none, nothing has changed. */
bool exchange_take_body(struct http_exchange *exchange, size_t length);
bool exchange_take_answer(struct http_exchange *exchange, size_t length);

/* Forgets the body.  Gives back what is held; before the connection is gone. */
void exchange_give_body(struct http_exchange *exchange);
void exchange_give_all(struct http_exchange *exchange);

/* --- http_turn.c --- */

/* The library has taken all that the stream had queued: its producer is called after the turn,
 * unless the exchange is over by then. */
void exchange_note_drained(struct http_exchange *exchange);
void exchange_forget_drained(struct http_exchange *exchange);

/* Lets the library take its turns, and no more of them. */
void server_turns_begin(struct http_server *server);
void server_turns_end(struct http_server *server);

/* Lets it take one in the next iteration. */
void server_run_soon(struct http_server *server);

#endif
