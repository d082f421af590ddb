/*
 * See io/relay.h.  Names are looked up by the pool, one of a relay at a time, as they may take
 * their time; all else is done on the loop, so that a side that does not answer keeps nobody from
 * working.
 */
#include "io/relay.h"

#include "io/net/listen.h"
#include "io/scope.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <utlist.h>

enum { PIECE_SIZE = 16 << 10, TARGET_SIZE = 300, CONNECT_MS = 5000, AGAIN_MS = 100 };

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
    struct relay *relay;         /* NULL: it is closed, and the pool still looks the name up */
    bool looks;                  /* it does */
    int fds[SIDES];              /* -1: not there yet */
    struct addrinfo *found, *at; /* of the name; owned, and the one that is tried next */
    struct io_timer bound;       /* of that */
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
    bool looks; /* a name up: who comes meanwhile waits */
    struct io_watch watch;
    struct io_timer again; /* too few descriptors: later */
    struct pair *pairs;
};

/* --- a pair --- */

static void accept_begin(struct relay *relay);

static void pair_free(struct pair *pair)
{
    io_timer_stop(&pair->bound);
    if (pair->found != NULL)
        freeaddrinfo(pair->found);
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

/* --- the other side --- */

static void try_next(struct pair *pair);

static void join(struct pair *pair)
{
    io_timer_stop(&pair->bound);
    watch_sides(pair);
}

static void on_bound(struct io_timer *timer)
{
    try_next(timer->ctx);
}

/* The connection is there, or cannot be made. */
static void on_connected(struct io_watch *watch, int events)
{
    struct pair *pair = watch->ctx;
    socklen_t size = sizeof(int);
    int os = 0;

    (void)events;
    if (getsockopt(pair->fds[LED], SOL_SOCKET, SO_ERROR, &os, &size) == 0 && os == 0)
        join(pair);
    else
        try_next(pair);
}

/* True if the other side at ADDRESS is there, or may come; the pair goes on then. */
static bool try_one(struct pair *pair, const struct sockaddr *address, socklen_t length)
{
    struct loop *loop = pair->relay->loop;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    pair->fds[LED] = fd;
    if (fd < 0)
        return false;
    if (connect(fd, address, length) == 0) {
        join(pair);
        return true;
    }
    if (errno != EINPROGRESS)
        return false;
    io_watch_start(loop, &pair->watches[LED], fd, IO_WRITABLE, on_connected, pair);
    io_timer_start(loop, &pair->bound, loop_now_ms() + CONNECT_MS, on_bound, pair);
    return true;
}

/* The next address of its name; whoever came goes if there is none left. */
static void try_next(struct pair *pair)
{
    bool goes_on = false;

    while (pair->at != NULL && !goes_on) {
        const struct addrinfo *at = pair->at;

        io_watch_stop(&pair->watches[LED]);
        scope_close_fd(&pair->fds[LED]);
        pair->fds[LED] = -1;
        pair->at = at->ai_next;
        goes_on = try_one(pair, at->ai_addr, at->ai_addrlen);
    }
    if (!goes_on)
        end(pair);
}

static void lead_by_path(struct pair *pair, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!text_copy(address.sun_path, sizeof(address.sun_path), path) ||
        !try_one(pair, (const struct sockaddr *)&address, sizeof(address)))
        end(pair);
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

/* With FLAGS of getaddrinfo; false: it has no such name. */
static bool look_up(struct pair *pair, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    char text[TARGET_SIZE], *host, *port;

    (void)text_copy(text, sizeof(text), pair->target); /* of that size */
    if (!split(text, &host, &port) || getaddrinfo(host, port, &hints, &pair->found) != 0)
        pair->found = NULL;
    pair->at = pair->found;
    return pair->found != NULL;
}

static void on_pool(struct io_work *work)
{
    (void)look_up(work->ctx, 0); /* none: there is none to be tried */
}

static void on_looked_up(struct io_work *work)
{
    struct pair *pair = work->ctx;
    struct relay *relay = pair->relay;

    pair->looks = false;
    if (relay == NULL) {
        pair_free(pair);
        return;
    }
    relay->looks = false;
    try_next(pair);
    accept_begin(relay);
}

static void lead(struct pair *pair)
{
    static const char local[] = "unix:";

    if (text_starts_with(pair->target, local)) {
        lead_by_path(pair, pair->target + strlen(local));
    } else if (look_up(pair, AI_NUMERICHOST)) {
        try_next(pair);
    } else {
        pair->looks = pair->relay->looks = true;
        io_watch_stop(&pair->relay->watch);
        io_work_submit(pair->relay->loop, &pair->work, on_pool, on_looked_up, pair);
    }
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
    pair->bound.ctx = pair;
    pair->fds[CAME] = fd;
    pair->fds[LED] = -1;
    (void)text_copy(pair->target, sizeof(pair->target), relay->target); /* of that size */
    DL_APPEND(relay->pairs, pair);
    if (++relay->connections == relay->connections_max)
        io_watch_stop(&relay->watch);
    lead(pair);
}

static void accept_begin(struct relay *relay)
{
    if (relay->connections < relay->connections_max && !relay->looks)
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

/* The pool may still look a name up for one: that goes when it has. */
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
