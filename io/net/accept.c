/*
 * Taking connections: as long as there are places for them, and descriptors.
 *
 * The library would ask for one without end while there is no descriptor left, so the listening
 * socket is ours.  Without a descriptor the one that is kept in reserve lets one peer in at a time,
 * who still gets his answer; and whoever does nothing with his connection is closed for others.
 */
#include "io/net/connection.h"

#include "io/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 64, AGAIN_MS = 200 };

static void on_connections(struct io_watch *watch, int events);

static void listen_on(struct http_server *server)
{
    if (server->listen_fd >= 0)
        io_watch_start(server->loop, &server->listening, server->listen_fd, IO_READABLE,
                       on_connections, server);
}

static void on_accept_again(struct io_timer *timer)
{
    listen_on(timer->ctx);
}

static void wait_a_while(struct http_server *server)
{
    io_watch_stop(&server->listening);
    io_timer_start(server->loop, &server->accept_again, loop_now_ms() + AGAIN_MS, on_accept_again,
                   server);
}

/* Something is used up; FAILED says what. */
static void run_short(struct http_server *server, int failed)
{
    if (!server->short_of_descriptors)
        log_warn("io", "no connection can be taken, trying on: error=%s connections=%u",
                 log_value(strerror(failed)), server->connections_count);
    server->short_of_descriptors = true;
    server_close_longest(server);
    wait_a_while(server);
}

static int accept_one(struct http_server *server, int listen_fd, struct sockaddr_storage *address,
                      socklen_t *length)
{
    struct sockaddr *to = (struct sockaddr *)address;
    int fd = accept4(listen_fd, to, length, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0 || errno != EMFILE || server->reserve_fd < 0)
        return fd;
    (void)close(server->reserve_fd); /* nothing was written to it */
    server->reserve_fd = -1;
    return accept4(listen_fd, to, length, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static bool add(struct http_server *server, int fd, const struct sockaddr_storage *address,
                socklen_t length)
{
    /* The library closes what it does not take. */
    if (MHD_add_connection(server->daemon, fd, (const struct sockaddr *)address, length) !=
        MHD_YES) {
        run_short(server, errno);
        return false;
    }
    server_run_soon(server);
    return true;
}

/* One more, if there is one; false: not now. */
static bool take_one(struct http_server *server, int listen_fd)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    int fd = accept_one(server, listen_fd, &address, &length);

    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
        return true; /* it has gone already; there may be others */
    if (fd < 0 && errno != EAGAIN) {
        run_short(server, errno);
        return false;
    }
    if (fd < 0)
        return false;
    if (server->reserve_fd >= 0)
        server->short_of_descriptors = false;
    if (server->tls == NULL)
        return add(server, fd, &address, length);
    tls_take(server, fd);
    return true;
}

static bool is_full(const struct http_server *server, const struct http_door *door)
{
    return server->connections_count + server->handshakes >= server->connections_max ||
           (door != NULL && door->connections_count >= door->connections_max);
}

/* Takes what there is on FD; false: no more before one is closed. */
static bool take(struct http_server *server, int fd, struct http_door *door)
{
    bool more = true;

    server->through = door;
    for (int taken = 0; more && taken < AT_ONCE && !is_full(server, door); taken++)
        more = take_one(server, fd);
    server->through = NULL;
    return !is_full(server, door);
}

static void on_connections(struct io_watch *watch, int events)
{
    struct http_server *server = watch->ctx;
    (void)events;

    if (!take(server, server->listen_fd, NULL))
        io_watch_stop(watch); /* until one is closed */
}

static void on_door(struct io_watch *watch, int events)
{
    struct http_door *door = watch->ctx;
    (void)events;

    if (!take(door->server, door->fd, door))
        io_watch_stop(watch); /* likewise */
}

void door_accept_begin(struct http_door *door)
{
    io_watch_start(door->server->loop, &door->watch, door->fd, IO_READABLE, on_door, door);
}

/* Connections may have been closed: there are places and descriptors. */
static void accept_again(struct http_server *server)
{
    if (server->reserve_fd < 0)
        server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* or later */
    if (server->listening.events == 0 && server->accept_again.slot == 0)
        listen_on(server);
    for (struct http_door *door = server->doors; door != NULL; door = door->next) {
        if (door->watch.events == 0)
            door_accept_begin(door);
    }
}

bool server_accept_begin(struct http_server *server)
{
    server->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server->after_turn = accept_again;
    server->add = add;
    listen_on(server);
    return server->reserve_fd >= 0;
}

void server_accept_end(struct http_server *server)
{
    io_watch_stop(&server->listening);
    io_timer_stop(&server->accept_again);
    if (server->listen_fd >= 0)
        (void)close(server->listen_fd); /* nothing was written to either */
    if (server->reserve_fd >= 0)
        (void)close(server->reserve_fd);
    server->listen_fd = server->reserve_fd = -1;
}
