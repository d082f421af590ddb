/* See io/relay.h.  The other side is looked for by the pool, as names may take their time. */
#include "io/relay.h"

#include "io/net/listen.h"
#include "io/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

enum { PIECE_SIZE = 16 << 10, TARGET_SIZE = 300, CONNECT_S = 5, AGAIN_MS = 100 };

/* One direction. */
struct flow {
    char bytes[PIECE_SIZE];
    size_t from, until; /* what of them is to be written */
    bool ended;         /* nothing more is read */
    bool told;          /* and the other side knows */
};

enum side { CAME, LED, SIDES };

/* Whoever came, and where he was led. */
struct pair {
    struct relay *relay; /* NULL: it is closed, and the pool still looks for the other side */
    bool looks;          /* it does */
    int fds[SIDES];      /* -1: not there yet */
    struct io_watch watches[SIDES];
    struct flow flows[SIDES]; /* from that side to the other */
    struct io_work work;
    char target[TARGET_SIZE];
    struct pair *prev, *next;
};

struct relay {
    struct loop *loop;
    int fd;
    char target[TARGET_SIZE];
    unsigned connections_max, connections;
    struct io_watch watch;
    struct io_timer again; /* too few descriptors: later */
    struct pair *pairs;
};

/* --- the other side, on the pool --- */

static int connect_to(int family, const struct sockaddr *address, socklen_t length)
{
    const struct timeval limit = {.tv_sec = CONNECT_S};
    scoped_fd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
        connect(fd, address, length) != 0)
        return -1;
    return take_fd(&fd);
}

static int connect_by_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!text_copy(address.sun_path, sizeof(address.sun_path), path))
        return -1;
    return connect_to(AF_UNIX, (const struct sockaddr *)&address, sizeof(address));
}

/* "host:1", "[::1]:1": HOST and PORT are parts of TEXT then. */
static bool split(char *text, char **ret_host, char **ret_port)
{
    char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);

    if (length == 0)
        return false;
    *colon = '\0';
    *ret_port = colon + 1;
    *ret_host = text;
    if (text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        *ret_host = text + 1;
    }
    return true;
}

static int connect_by_name(char *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    char *host, *port;
    int fd = -1;

    if (!split(text, &host, &port) || getaddrinfo(host, port, &hints, &found) != 0)
        return -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = connect_to(at->ai_family, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return fd;
}

static void on_pool(struct io_work *work)
{
    static const char local[] = "unix:";
    struct pair *pair = work->ctx;

    pair->fds[LED] = text_starts_with(pair->target, local)
                         ? connect_by_path(pair->target + strlen(local))
                         : connect_by_name(pair->target);
}

/* --- a pair --- */

static void accept_begin(struct relay *relay);

static void pair_free(struct pair *pair)
{
    for (int i = 0; i < SIDES; i++) {
        io_watch_stop(&pair->watches[i]);
        scope_close_fd(&pair->fds[i]);
    }
    free(pair);
}

static void end(struct pair *pair)
{
    struct relay *relay = pair->relay;

    DL_DELETE(relay->pairs, pair);
    relay->connections--;
    pair_free(pair);
    accept_begin(relay);
}

/* Writes what it has; false: the other side takes nothing any more. */
static bool push(struct flow *flow, int to)
{
    while (flow->from < flow->until) {
        ssize_t put = send(to, flow->bytes + flow->from, flow->until - flow->from, MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN;
        flow->from += (size_t)put;
    }
    flow->from = flow->until = 0;
    if (flow->ended && !flow->told) {
        flow->told = true;
        (void)shutdown(to, SHUT_WR); /* it may have gone */
    }
    return true;
}

/* Reads a piece where there is room; false: whoever writes it is broken. */
static bool pull(struct flow *flow, int from)
{
    if (flow->ended || flow->until > 0)
        return true;
    ssize_t got = recv(from, flow->bytes, sizeof(flow->bytes), 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    flow->ended = got == 0;
    flow->until = (size_t)got;
    return true;
}

static void on_side(struct io_watch *watch, int events);

static void watch_sides(struct pair *pair)
{
    for (int i = 0; i < SIDES; i++) {
        const struct flow *out = &pair->flows[i], *in = &pair->flows[SIDES - 1 - i];
        int events =
            (!out->ended && out->until == 0 ? IO_READABLE : 0) | (in->until > 0 ? IO_WRITABLE : 0);

        if (events == 0)
            io_watch_stop(&pair->watches[i]);
        else
            io_watch_start(pair->relay->loop, &pair->watches[i], pair->fds[i], events, on_side,
                           pair);
    }
}

static void on_side(struct io_watch *watch, int events)
{
    struct pair *pair = watch->ctx;
    bool alive = true;

    (void)events; /* both directions are tried: what is not ready says so */
    for (int i = 0; i < SIDES && alive; i++)
        alive =
            pull(&pair->flows[i], pair->fds[i]) && push(&pair->flows[i], pair->fds[SIDES - 1 - i]);
    if (!alive || (pair->flows[CAME].told && pair->flows[LED].told))
        end(pair);
    else
        watch_sides(pair);
}

static void on_led(struct io_work *work)
{
    struct pair *pair = work->ctx;

    pair->looks = false;
    if (pair->relay == NULL)
        pair_free(pair);
    else if (pair->fds[LED] < 0 || fcntl(pair->fds[LED], F_SETFL, O_NONBLOCK) != 0)
        end(pair);
    else
        watch_sides(pair);
}

/* --- who comes --- */

static void on_again(struct io_timer *timer)
{
    accept_begin(timer->ctx);
}

static void on_come(struct io_watch *watch, int events)
{
    struct relay *relay = watch->ctx;
    int fd = accept4(relay->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            io_watch_stop(&relay->watch);
            io_timer_start(relay->loop, &relay->again, loop_now_ms() + AGAIN_MS, on_again, relay);
        }
        return;
    }
    struct pair *pair = calloc(1, sizeof(*pair));
    check(pair != NULL);
    pair->relay = relay;
    pair->looks = true;
    pair->fds[CAME] = fd;
    pair->fds[LED] = -1;
    (void)text_copy(pair->target, sizeof(pair->target), relay->target); /* of that size */
    DL_APPEND(relay->pairs, pair);
    if (++relay->connections == relay->connections_max)
        io_watch_stop(&relay->watch);
    io_work_submit(relay->loop, &pair->work, on_pool, on_led, pair);
}

static void accept_begin(struct relay *relay)
{
    if (relay->connections < relay->connections_max)
        io_watch_start(relay->loop, &relay->watch, relay->fd, IO_READABLE, on_come, relay);
}

/* --- the door --- */

int relay_open(struct loop *loop, int directory_fd, const char *name,
               const struct http_admission *admits, const char *target, unsigned connections_max,
               struct relay **ret_relay, struct err *err)
{
    int fd;
    int code = listen_unix_in(directory_fd, name, admits, &fd, err);

    if (code != 0)
        return code;
    struct relay *relay = calloc(1, sizeof(*relay));
    check(relay != NULL && connections_max > 0);
    relay->loop = loop;
    relay->fd = fd;
    relay->connections_max = connections_max;
    relay_aim(relay, target);
    accept_begin(relay);
    *ret_relay = relay;
    return 0;
}

void relay_aim(struct relay *relay, const char *target)
{
    check(text_copy(relay->target, sizeof(relay->target), target));
}

/* The pool may still look for the other side of some: they go when it has. */
void relay_close(struct relay *relay)
{
    struct pair *pair, *next;

    if (relay == NULL)
        return;
    io_watch_stop(&relay->watch);
    io_timer_stop(&relay->again);
    (void)close(relay->fd); /* nothing was written to it */
    DL_FOREACH_SAFE(relay->pairs, pair, next)
    {
        DL_DELETE(relay->pairs, pair);
        pair->relay = NULL;
        if (!pair->looks)
            pair_free(pair);
    }
    free(relay);
}
