/*
 * When the HTTP library runs: as one of its sockets has news, or we have something for it that no
 * descriptor would tell, or it asks for the time itself.  Producers whose queue it has emptied are
 * called after it, never from within.
 */
#include "io/net/connection.h"

void exchange_note_drained(struct http_exchange *exchange)
{
    struct http_server *server = exchange->connection->server;

    if (exchange->drained_link != NULL)
        return;
    exchange->drained_next = server->drained;
    exchange->drained_link = &server->drained;
    if (exchange->drained_next != NULL)
        exchange->drained_next->drained_link = &exchange->drained_next;
    server->drained = exchange;
}

void exchange_forget_drained(struct http_exchange *exchange)
{
    if (exchange->drained_link == NULL)
        return;
    *exchange->drained_link = exchange->drained_next;
    if (exchange->drained_next != NULL)
        exchange->drained_next->drained_link = exchange->drained_link;
    exchange->drained_link = NULL;
}

static void call_on_drain(struct http_server *server)
{
    while (server->drained != NULL) {
        struct http_exchange *exchange = server->drained;

        exchange_forget_drained(exchange);
        if (exchange->on_drain != NULL && exchange->state == EXCHANGE_STREAMING)
            exchange->on_drain(exchange->on_drain_ctx);
    }
}

static void on_again(struct io_timer *timer);

static void run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG delay_ms;

    server->running = true;
    server->more = false;
    (void)MHD_run(server->daemon); /* fails only for a daemon that polls by itself */
    call_on_drain(server);
    server->running = false;
    server->after_turn(server);
    if (server->more)
        io_timer_start(server->loop, &server->again, 0, on_again, server);
    else if (MHD_get_timeout(server->daemon, &delay_ms) == MHD_YES)
        io_timer_start(server->loop, &server->again, delay_ms == 0 ? 0 : loop_now_ms() + delay_ms,
                       on_again, server);
    else
        io_timer_stop(&server->again);
}

static void on_again(struct io_timer *timer)
{
    run(timer->ctx);
}

void server_run_soon(struct http_server *server)
{
    server->more = true;
    if (!server->running)
        io_timer_start(server->loop, &server->again, 0, on_again, server);
}

static void on_sockets(struct io_watch *watch, int events)
{
    (void)events;
    run(watch->ctx);
}

void server_turns_begin(struct http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    check(info != NULL);
    io_watch_start(server->loop, &server->watch, info->epoll_fd, IO_READABLE, on_sockets, server);
}

void server_turns_end(struct http_server *server)
{
    io_watch_stop(&server->watch);
    io_timer_stop(&server->again);
}
