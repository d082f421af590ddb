/*
 * Connections of the HTTP server.
 *
 * While an answer is awaited, or a stream has nothing to send, the connection is suspended: the
 * library does not look at it, a watch of ours does, and so notices a peer that leaves.
 *
 * Some places stay free.  When they run short, the connection is closed that has had its time for
 * longest: idle, or without a request though it was made for one, or with one that does not come to
 * its end, or with an answer that its peer does not take.  Who waits for an answer is never closed:
 * how many may is for those to bound who let them wait.
 *
 * Invariants: an exchange belongs to its connection until the peer is gone, then on_close ends it
 * or, without one, the answer that comes too late.  A connection of which we have had enough is
 * doomed: its socket is shut down, and the library takes it apart at its next turn.
 */
#include "io/net/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    FREE_ONE_IN = 16, /* places that are kept free */
    IDLE_MS = 1000,   /* one that answers come from quickly may be about to be used again */
    NEW_MS = 1000,
    ARRIVING_MS = 3000,
    TAKING_MS = 10 * 1000,
};

void exchange_free(struct http_exchange *exchange)
{
    if (exchange->response != NULL)
        MHD_destroy_response(exchange->response);
    buffer_close(&exchange->body);
    free(exchange->path);
    free(exchange);
}

void connection_finish_exchange(struct connection *connection)
{
    struct http_exchange *exchange = connection->exchange;

    connection->exchange = NULL;
    if (exchange == NULL)
        return;
    exchange_forget_drained(exchange);
    exchange_give_all(exchange);
    bool open = exchange->state == EXCHANGE_WAITING || exchange->state == EXCHANGE_STREAMING;
    if (exchange->state == EXCHANGE_TUNNEL && !exchange->ending)
        exchange->tunnel.on_close(exchange->tunnel.ctx);
    if (open && exchange->on_close == NULL) {
        exchange->connection = NULL;
        return;
    }
    if (open)
        exchange->on_close(exchange->on_close_ctx);
    exchange_free(exchange);
}

void connection_resume(struct connection *connection)
{
    if (!connection->suspended)
        return;
    connection->suspended = false;
    io_watch_stop(&connection->watch);
    MHD_resume_connection(connection->mhd); /* at the library's next turn */
    server_run_soon(connection->server);
}

/* The library is told that a connection that was handed over is over. */
static void close_upgraded(struct connection *connection)
{
    struct MHD_UpgradeResponseHandle *upgraded = connection->upgraded;

    if (upgraded == NULL)
        return;
    connection->upgraded = NULL;
    io_watch_stop(&connection->watch);
    (void)MHD_upgrade_action(upgraded, MHD_UPGRADE_ACTION_CLOSE); /* fails if it was done before */
    server_run_soon(connection->server);
}

void connection_doom(struct connection *connection)
{
    if (connection->doomed)
        return;
    connection->doomed = true;
    connection->server->doomed_count++;
    io_timer_stop(&connection->deadline);
    io_watch_stop(&connection->watch);
    (void)shutdown(connection->fd, SHUT_RDWR); /* fails if the peer was faster */
    connection_finish_exchange(connection);
    close_upgraded(connection);
    connection_resume(connection);
}

static void on_deadline(struct io_timer *timer)
{
    connection_doom(timer->ctx);
}

void connection_set_deadline(struct connection *connection, uint64_t delay_ms)
{
    if (connection->doomed)
        return;
    io_timer_start(connection->server->loop, &connection->deadline,
                   connection->condemned ? 0 : loop_now_ms() + delay_ms, on_deadline, connection);
}

void connection_begin_request(struct connection *connection)
{
    if (!connection->idle)
        return;
    connection->idle = false;
    connection->since_ms = loop_now_ms();
    io_watch_stop(&connection->watch);
    connection_set_deadline(connection, connection->server->arrive_ms);
}

static void on_readable(struct io_watch *watch, int events)
{
    struct connection *connection = watch->ctx;
    char byte;
    (void)events;

    if (connection->idle) {
        connection_begin_request(connection);
        return;
    }
    ssize_t got = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        io_watch_stop(watch); /* the next request, early; from now on only writing can tell */
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        connection_doom(connection);
}

static void watch_peer(struct connection *connection)
{
    if (!connection->doomed)
        io_watch_start(connection->server->loop, &connection->watch, connection->fd, IO_READABLE,
                       on_readable, connection);
}

void connection_suspend(struct connection *connection)
{
    check(!connection->suspended);
    connection->suspended = true;
    MHD_suspend_connection(connection->mhd);
    watch_peer(connection);
}

/* --- room for others --- */

/* True if CONNECTION may be closed for another, from RET_AT_MS on. */
static bool may_go(const struct connection *connection, uint64_t *ret_at_ms)
{
    const struct http_exchange *exchange = connection->exchange;
    uint64_t time_ms = 0;

    if (connection->doomed || connection->condemned)
        return false;
    if (connection->idle || exchange == NULL)
        time_ms = connection->idle ? IDLE_MS : NEW_MS;
    else if (exchange->state == EXCHANGE_ARRIVING)
        time_ms = ARRIVING_MS;
    else if (exchange->state == EXCHANGE_ANSWERED)
        time_ms = TAKING_MS;
    else
        return false;
    *ret_at_ms = connection->since_ms + time_ms;
    return true;
}

/* The one that may be closed before all others, NULL: none. */
static struct connection *find_longest(const struct http_server *server, uint64_t *ret_at_ms)
{
    struct connection *first = NULL;
    uint64_t at_ms;

    for (struct connection *at = server->connections; at != NULL; at = at->next) {
        if (!may_go(at, &at_ms) || (first != NULL && at_ms >= *ret_at_ms))
            continue;
        first = at;
        *ret_at_ms = at_ms;
    }
    return first;
}

void server_close_longest(struct http_server *server)
{
    uint64_t at_ms;
    struct connection *longest = find_longest(server, &at_ms);

    if (longest != NULL && at_ms <= loop_now_ms())
        connection_doom(longest);
}

static void on_room(struct io_timer *timer)
{
    server_make_room(timer->ctx);
}

void server_make_room(struct http_server *server)
{
    unsigned max = server->connections_max;
    unsigned kept_free = max > 1 ? (max + FREE_ONE_IN - 1) / FREE_ONE_IN : 0;

    io_timer_stop(&server->room);
    while (server->connections_count - server->doomed_count > max - kept_free) {
        uint64_t first_ms;
        struct connection *first = find_longest(server, &first_ms);

        if (first == NULL)
            return; /* all wait for us; asked again as soon as one does not */
        if (first_ms > loop_now_ms()) {
            io_timer_start(server->loop, &server->room, first_ms, on_room, server);
            return;
        }
        connection_doom(first);
    }
}

struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static void connection_start(struct http_server *server, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = calloc(1, sizeof(*connection));
    const int on = 1;

    check(info != NULL);
    check(connection != NULL);
    connection->server = server;
    connection->mhd = mhd;
    connection->fd = info->connect_fd;
    connection->door = server->through;
    if (connection->door != NULL)
        connection->door->connections_count++;
    connection->next = server->connections;
    connection->link = &server->connections;
    if (connection->next != NULL)
        connection->next->link = &connection->next;
    server->connections = connection;
    *context = connection;
    /* A stream to a machine that was switched off ends some day; UNIX sockets do not know it. */
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    connection_set_deadline(connection, connection->server->arrive_ms);
    connection->since_ms = loop_now_ms();
    server->connections_count++;
    server_make_room(server);
}

static void connection_free(struct connection *connection)
{
    struct http_server *server = connection->server;

    server->connections_count--;
    if (connection->door != NULL)
        connection->door->connections_count--;
    if (connection->doomed)
        server->doomed_count--;
    connection->doomed = true;
    connection_finish_exchange(connection);
    io_timer_stop(&connection->deadline);
    io_watch_stop(&connection->watch);
    *connection->link = connection->next;
    if (connection->next != NULL)
        connection->next->link = connection->link;
    server_run_soon(server); /* a place is free: it may accept again */
    free(connection);
}

void connection_on_notify(void *ctx, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_start(ctx, mhd, context);
    else if (*context != NULL)
        connection_free(*context);
}

void connection_on_completed(void *ctx, struct MHD_Connection *mhd, void **request,
                             enum MHD_RequestTerminationCode code)
{
    struct connection *connection = connection_of(mhd);
    (void)ctx;
    (void)code; /* the exchange's state says what there is to tell */

    *request = NULL;
    if (connection == NULL)
        return;
    connection_finish_exchange(connection);
    if (connection->doomed)
        return;
    connection->idle = true;
    connection->since_ms = loop_now_ms();
    connection_set_deadline(connection, connection->server->idle_ms);
    watch_peer(connection);
    server_make_room(connection->server);
}
