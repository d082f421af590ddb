/*
 * Connections that another protocol takes over (RFC 9110, 7.8).
 *
 * The library sends the 101 and hands its socket over, which stays its own to close; from then on
 * our loop reads and writes it.  What the peer is slow to take is queued as a stream's bytes are.
 */
#include "io/net/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { QUEUE_MAX = 16 << 20, READ_SIZE = 16 << 10, END_MS = 5000 };

static void on_socket(struct io_watch *watch, int events);

static void watch_socket(struct connection *connection)
{
    const struct http_exchange *exchange = connection->exchange;
    int events = (exchange->held && !exchange->ending ? 0 : IO_READABLE) |
                 (buffer_length(&exchange->body) > 0 ? IO_WRITABLE : 0);

    if (connection->upgraded == NULL || connection->doomed)
        return;
    if (events == 0)
        io_watch_stop(&connection->watch);
    else
        io_watch_start(connection->server->loop, &connection->watch, connection->fd, events,
                       on_socket, connection);
}

/* Sends what is queued; false if the peer is gone. */
static bool flush(struct connection *connection)
{
    struct buffer *queue = &connection->exchange->body;

    while (buffer_length(queue) > 0) {
        ssize_t sent = send(connection->fd, buffer_text(queue), buffer_length(queue), MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN;
        buffer_drop(queue, (size_t)sent);
        connection_set_deadline(connection, connection->server->idle_ms);
    }
    io_timer_stop(&connection->deadline);
    return true;
}

/* Nothing is left to send of what is to end: the peer is told, and goes. */
static void end_if_sent(struct connection *connection)
{
    if (buffer_length(&connection->exchange->body) > 0)
        return;
    (void)shutdown(connection->fd, SHUT_WR); /* fails if the peer was faster */
    connection_set_deadline(connection, END_MS);
}

static void take(struct connection *connection)
{
    struct http_exchange *exchange = connection->exchange;
    char bytes[READ_SIZE];
    ssize_t got = recv(connection->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        connection_doom(connection);
    else if (!exchange->ending)
        exchange->tunnel.on_bytes(exchange->tunnel.ctx, bytes, (size_t)got);
}

static void on_socket(struct io_watch *watch, int events)
{
    struct connection *connection = watch->ctx;
    struct http_exchange *exchange = connection->exchange;

    if ((events & IO_WRITABLE) != 0 && buffer_length(&exchange->body) > 0) {
        if (!flush(connection)) {
            connection_doom(connection);
            return;
        }
        watch_socket(connection);
        bool drained = buffer_length(&exchange->body) == 0;
        if (exchange->ending)
            end_if_sent(connection);
        else if (drained && exchange->tunnel.on_drain != NULL)
            exchange->tunnel.on_drain(exchange->tunnel.ctx);
    }
    if ((events & IO_READABLE) != 0 && !connection->doomed && connection->exchange == exchange &&
        (!exchange->held || exchange->ending))
        take(connection);
}

/* The library has sent the 101: EXTRA is what came behind the request. */
static void on_upgraded(void *ctx, struct MHD_Connection *mhd, void *request, const char *extra,
                        size_t extra_length, MHD_socket fd,
                        struct MHD_UpgradeResponseHandle *handle)
{
    struct connection *connection = connection_of(mhd);
    struct http_exchange *exchange = connection == NULL ? NULL : connection->exchange;
    (void)ctx;
    (void)request;

    check(connection != NULL);
    check(connection->fd == fd);
    connection->upgraded = handle;
    io_timer_stop(&connection->deadline);
    if (exchange == NULL || connection->doomed || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) != 0) {
        connection_set_deadline(connection, 0);
        return;
    }
    connection->idle = false;
    watch_socket(connection);
    if (exchange->ending)
        end_if_sent(connection);
    else if (extra_length > 0)
        exchange->tunnel.on_bytes(exchange->tunnel.ctx, extra, extra_length);
}

void http_tunnel_begin(struct http_exchange *exchange, const struct http_header_line *headers,
                       size_t headers_count, const struct http_tunnel *tunnel)
{
    check(exchange->state == EXCHANGE_WAITING);
    if (exchange->guest != NULL) {
        exchange->state = EXCHANGE_TUNNEL;
        exchange->tunnel = *tunnel;
        guest_begin(exchange, MHD_HTTP_SWITCHING_PROTOCOLS);
        return;
    }
    exchange->response = MHD_create_response_for_upgrade(on_upgraded, NULL);
    check(exchange->response != NULL);
    for (size_t i = 0; i < headers_count; i++)
        response_add_header(exchange->response, headers[i].name, headers[i].value);
    exchange_give_body(exchange); /* the tunnel's queue from now on */
    exchange->status = MHD_HTTP_SWITCHING_PROTOCOLS;
    exchange->state = EXCHANGE_TUNNEL;
    exchange->tunnel = *tunnel;
    if (exchange->connection != NULL)
        connection_resume(exchange->connection);
}

size_t http_tunnel_write(struct http_exchange *exchange, const void *bytes, size_t length)
{
    struct connection *connection = exchange->connection;

    check(exchange->state == EXCHANGE_TUNNEL);
    if (exchange->guest != NULL)
        return guest_write(exchange, bytes, length);
    if (connection == NULL || connection->condemned || length == 0)
        return buffer_length(&exchange->body);
    if (!buffer_append(&exchange->body, bytes, length, QUEUE_MAX) ||
        (connection->upgraded != NULL && !flush(connection))) {
        http_disconnect(exchange); /* not from in here: the caller still holds the exchange */
        return 0;
    }
    watch_socket(connection);
    return buffer_length(&exchange->body);
}

void http_tunnel_hold(struct http_exchange *exchange, bool hold)
{
    exchange->held = hold;
    if (exchange->connection != NULL)
        watch_socket(exchange->connection);
}

void http_tunnel_end(struct http_exchange *exchange)
{
    struct connection *connection = exchange->connection;

    check(exchange->state == EXCHANGE_TUNNEL);
    exchange->ending = true;
    if (exchange->guest != NULL) {
        guest_end(exchange);
        return;
    }
    if (connection != NULL && connection->upgraded != NULL) {
        watch_socket(connection);
        end_if_sent(connection);
    }
}
