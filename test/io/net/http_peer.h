/* Both ends of HTTP for the tests: a server that answers by path, a client of the room, and a raw
 * client that sends any bytes from a worker thread and collects what comes back. */
#ifndef CAIRN_TEST_IO_NET_HTTP_PEER_H
#define CAIRN_TEST_IO_NET_HTTP_PEER_H

#include "io/http.h"
#include "test/io/scratch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { BODY_MAX = 1000, TRACE_SIZE = 4096, LATE_MAX = 4 };

struct peer {
    struct loop *loop;
    struct http_server *server;
    char base[64]; /* "http://127.0.0.1:port" */
    char socket[PATH_SIZE];
    char trace[TRACE_SIZE]; /* what happened, in order */
    unsigned awaited;       /* loop_run ends when as many replies have come */
    struct http_exchange *late[LATE_MAX];
    unsigned late_count;
    unsigned late_seen;           /* ever */
    struct http_request *request; /* the last one asked */
    unsigned late_wanted;         /* loop_run ends when as many are with the handler */
    bool watch_close;
    void (*on_late)(struct peer *peer); /* called when a late one has been stored */
    int last_status;
    char last_body[TRACE_SIZE];
    char last_headers[TRACE_SIZE];
    struct err last_error;
    struct io_timer timer;
    struct scratch *scratch;
    unsigned descriptors; /* open before the test */
};

static inline unsigned count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static inline void note(struct peer *peer, const char *text)
{
    assert_true(text_append(peer->trace, sizeof(peer->trace), text));
}

static inline void on_peer_close(void *ctx)
{
    struct peer *peer = ctx;

    note(peer, "closed ");
    peer->late_count = 0;
    if (peer->awaited == 0)
        loop_stop(peer->loop);
}

/* /echo gives the request back, /late and /stream keep the exchange for the test. */
static inline void peer_handle(void *ctx, struct http_exchange *exchange)
{
    struct peer *peer = ctx;
    size_t length;
    const char *body = http_body(exchange, &length);

    if (text_starts_with(http_path(exchange), "/late") ||
        text_starts_with(http_path(exchange), "/stream")) {
        assert_true(peer->late_count < LATE_MAX);
        peer->late[peer->late_count++] = exchange;
        peer->late_seen++;
        if (peer->watch_close)
            http_on_close(exchange, on_peer_close, peer);
        if (http_path(exchange)[1] == 's')
            http_stream_begin(exchange, 200, "text/plain", NULL, 0, NULL, NULL);
        if (peer->on_late != NULL)
            peer->on_late(peer);
        if (peer->late_wanted > 0 && peer->late_count == peer->late_wanted)
            loop_stop(peer->loop);
        return;
    }
    if (text_equal(http_path(exchange), "/moved")) {
        const struct http_header_line location = {"Location", http_query(exchange, "to")};
        http_respond(exchange, 302, NULL, &location, 1, "elsewhere", 9);
        return;
    }
    char answer[2 * TRACE_SIZE];
    const char *query = http_query(exchange, "q"), *header = http_header(exchange, "x-test");
    (void)text_format(answer, sizeof(answer), "%s %s q=%s x=%s %zu:%.*s", http_method(exchange),
                      http_path(exchange), query == NULL ? "none" : query,
                      header == NULL ? "none" : header, length, (int)length, body);
    const struct http_header_line lines[] = {{"X-Index", "7"}, {"X-Bad", "a\r\nX-Forged: yes"}};
    http_respond(exchange, 200, "text/plain", lines, 2, answer, strlen(answer));
}

static inline void peer_replied(struct peer *peer)
{
    assert_true(peer->awaited > 0);
    if (--peer->awaited == 0)
        loop_stop(peer->loop);
}

static inline void on_reply(void *ctx, const struct http_reply *reply)
{
    struct peer *peer = ctx;

    peer->last_status = reply->status;
    peer->last_error = reply->error;
    (void)text_copy(peer->last_body, sizeof(peer->last_body), reply->body);
    (void)text_copy(peer->last_headers, sizeof(peer->last_headers), reply->headers);
    note(peer, reply->error.code == 0              ? "reply "
               : reply->error.code == ERR_CANCELED ? "canceled "
                                                   : "failed ");
    peer_replied(peer);
}

static inline struct http_request *ask(struct peer *peer, struct http_call call)
{
    char url[1024];
    struct err err = {0};

    (void)text_format(url, sizeof(url), "%s%s", call.url[0] == '/' ? peer->base : "", call.url);
    call.url = url; /* copied by the call */
    if (call.method == NULL)
        call.method = "GET";
    if (call.cb == NULL)
        call.cb = on_reply;
    call.ctx = peer;
    struct http_request *request = http_start(peer->loop, &call, &err);
    if (request == NULL)
        fail_msg("%s", err.text);
    peer->awaited++;
    peer->request = request;
    return request;
}

static inline void ask_and_wait(struct peer *peer, struct http_call call)
{
    peer->last_status = -1;
    (void)ask(peer, call);
    loop_run(peer->loop);
    assert_int_equal(peer->awaited, 0);
}

/* --- the raw client --- */

struct raw {
    struct io_work work;
    struct peer *peer;
    int fd;
    const char *bytes;
    size_t length;
    const char *until; /* stop reading when this has come; NULL: at the end of the connection */
    char got[65536];
};

static inline void raw_run(struct io_work *work)
{
    struct raw *raw = work->ctx;
    size_t used = strlen(raw->got);
    struct pollfd ready = {.fd = raw->fd, .events = POLLIN};

    if (send(raw->fd, raw->bytes, raw->length, MSG_NOSIGNAL) != (ssize_t)raw->length)
        return;
    while (used + 1 < sizeof(raw->got) && poll(&ready, 1, 4000) == 1) {
        ssize_t got = recv(raw->fd, raw->got + used, sizeof(raw->got) - 1 - used, 0);
        if (got <= 0) {
            (void)text_append(raw->got, sizeof(raw->got), "<end>");
            return;
        }
        used += (size_t)got;
        raw->got[used] = '\0';
        if (raw->until != NULL && strstr(raw->got, raw->until) != NULL)
            return;
    }
    (void)text_append(raw->got, sizeof(raw->got), "<nothing more>");
}

static inline void raw_done(struct io_work *work)
{
    struct raw *raw = work->ctx;

    note(raw->peer, "raw ");
    peer_replied(raw->peer);
}

static inline int raw_connect(struct peer *peer)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(http_server_port(peer->server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_return_code(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static inline void raw_send(struct peer *peer, struct raw *raw, const char *bytes,
                            const char *until)
{
    raw->peer = peer;
    if (raw->fd == 0)
        raw->fd = raw_connect(peer);
    raw->bytes = bytes;
    raw->length = strlen(bytes);
    raw->until = until;
    peer->awaited++;
    io_work_submit(peer->loop, &raw->work, raw_run, raw_done, raw);
}

/* Sends BYTES on a connection of its own; gives back all that came, until the next call. */
static inline const char *raw_talk(struct peer *peer, const char *bytes, const char *until)
{
    static struct raw raw;

    memset(&raw, 0, sizeof(raw));
    raw_send(peer, &raw, bytes, until);
    loop_run(peer->loop);
    close(raw.fd);
    return raw.got;
}

/* --- set-up --- */

static inline struct http_listen peer_listen(struct peer *peer)
{
    return (struct http_listen){.address = "127.0.0.1",
                                .body_bytes_max = BODY_MAX,
                                .connections_max = 64,
                                .handle = peer_handle,
                                .ctx = peer};
}

static inline void peer_start(struct peer *peer, const struct http_listen *listen)
{
    struct err err = {0};

    http_server_free(peer->server);
    peer->server = http_server_new(peer->loop, listen, &err);
    if (peer->server == NULL)
        fail_msg("%s", err.text);
    (void)text_format(peer->base, sizeof(peer->base), "http://127.0.0.1:%u",
                      http_server_port(peer->server));
}

static inline int peer_set_up(void **state)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    void *scratch;

    assert_non_null(peer);
    (void)scratch_make(&scratch);
    peer->scratch = scratch;
    peer->descriptors = count_descriptors();
    peer->loop = loop_new();
    const struct http_listen listen = peer_listen(peer);
    peer_start(peer, &listen);
    *state = peer;
    return 0;
}

static inline int peer_tear_down(void **state)
{
    struct peer *peer = *state;
    void *scratch = peer->scratch;
    unsigned before = peer->descriptors;

    http_server_free(peer->server);
    loop_free(peer->loop);
    free(peer);
    if (count_descriptors() != before)
        print_message("%u descriptors before, %u after\n", before, count_descriptors());
    return scratch_remove(&scratch) != 0 || count_descriptors() != before ? -1 : 0;
}

#endif
