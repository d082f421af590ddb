/*
 * The HTTP server: libmicrohttpd does the protocol, our loop does the waiting.
 *
 * The library polls its sockets in an epoll set of its own, which is one descriptor to our loop;
 * nothing in it is timed, so an idle server does not wake.  While an answer is awaited (or a
 * stream has nothing to send) the connection is suspended, which means that the library does not
 * look at it: a watch of ours does then, and so notices a peer that leaves.
 *
 * Invariants: an exchange belongs to its connection until the peer is gone, then on_close ends it
 * or, without one, the answer that comes too late.  A connection of which we have had enough is
 * doomed: its socket is shut down, and the library takes it apart at its next turn.  Chosen over
 * libwebsockets, which takes chunked bodies, negative lengths and malformed headers for something
 * else and binds every address where it was given 127.0.0.1.
 */
#include "io/http.h"

#include "io/buffer.h"
#include "io/listen.h"
#include "io/scope.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ARRIVE_DEFAULT_MS = 10 * 1000,
    IDLE_DEFAULT_MS = 5 * 60 * 1000,
    QUEUE_MAX = 16 << 20,   /* bytes queued on one stream */
    HEADERS_MAX = 32 << 10, /* bytes of a request's head: the library's memory for it */
    STREAM_BLOCK = 16 << 10,
};

enum exchange_state {
    EXCHANGE_ARRIVING,
    EXCHANGE_WAITING,   /* with the handler, not answered yet */
    EXCHANGE_STREAMING, /* begun, not ended */
    EXCHANGE_ANSWERED,  /* our part is done */
};

struct http_exchange {
    struct connection *connection; /* NULL: the peer is gone, nobody was told */
    enum exchange_state state;
    bool begun;  /* the library has shown us the head */
    int refusal; /* the status to answer with instead of asking the handler, or 0 */
    char method[16];
    char *path;                    /* owned */
    struct buffer body;            /* of the request; then of a stream what is queued */
    struct MHD_Response *response; /* owned until it is queued */
    int status;
    void (*on_drain)(void *ctx);
    void *on_drain_ctx;
    bool drained;
    void (*on_close)(void *ctx);
    void *on_close_ctx;
};

struct connection {
    struct http_server *server;
    struct MHD_Connection *mhd;
    int fd; /* the library's */
    bool idle, suspended, doomed;
    bool overflown; /* to be doomed at the next iteration */
    struct io_timer deadline;
    struct io_watch watch; /* while idle or suspended */
    struct http_exchange *exchange;
    struct connection *next, **link;
};

struct http_server {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    char *unix_socket; /* owned */
    uint16_t port;
    size_t body_bytes_max;
    uint64_t arrive_ms, idle_ms;
    void (*handle)(void *ctx, struct http_exchange *exchange);
    void *ctx;
    struct io_watch watch;
    struct io_timer again;
    bool running;
    bool place_free; /* a connection was closed: the library may accept again, if it is run */
    struct connection *connections;
};

/* --- exchanges and connections --- */

static void exchange_free(struct http_exchange *exchange)
{
    if (exchange->response != NULL)
        MHD_destroy_response(exchange->response);
    buffer_close(&exchange->body);
    free(exchange->path);
    free(exchange);
}

/* The library is done with the exchange of CONNECTION, or its peer is. */
static void exchange_finish(struct connection *connection)
{
    struct http_exchange *exchange = connection->exchange;

    connection->exchange = NULL;
    if (exchange == NULL)
        return;
    bool open = exchange->state == EXCHANGE_WAITING || exchange->state == EXCHANGE_STREAMING;
    if (open && exchange->on_close == NULL) {
        exchange->connection = NULL;
        return;
    }
    if (open)
        exchange->on_close(exchange->on_close_ctx);
    exchange_free(exchange);
}

static void on_again(struct io_timer *timer);

static void resume(struct connection *connection)
{
    struct http_server *server = connection->server;

    if (!connection->suspended)
        return;
    connection->suspended = false;
    io_watch_stop(&connection->watch);
    MHD_resume_connection(connection->mhd); /* at the library's next turn */
    if (!server->running)
        io_timer_start(server->loop, &server->again, 0, on_again, server);
}

static void doom(struct connection *connection)
{
    if (connection->doomed)
        return;
    connection->doomed = true;
    io_timer_stop(&connection->deadline);
    io_watch_stop(&connection->watch);
    (void)shutdown(connection->fd, SHUT_RDWR); /* fails if the peer was faster */
    exchange_finish(connection);
    resume(connection);
}

static void on_deadline(struct io_timer *timer)
{
    doom(timer->ctx);
}

static void set_deadline(struct connection *connection, uint64_t delay_ms)
{
    if (connection->doomed)
        return;
    io_timer_start(connection->server->loop, &connection->deadline,
                   connection->overflown ? 0 : loop_now_ms() + delay_ms, on_deadline, connection);
}

/* The first byte of a request on an idle connection. */
static void begin_request(struct connection *connection)
{
    if (!connection->idle)
        return;
    connection->idle = false;
    io_watch_stop(&connection->watch);
    set_deadline(connection, connection->server->arrive_ms);
}

static void on_readable(struct io_watch *watch, int events)
{
    struct connection *connection = watch->ctx;
    char byte;
    (void)events;

    if (connection->idle) {
        begin_request(connection);
        return;
    }
    ssize_t got = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        io_watch_stop(watch); /* the next request, early; from now on only writing can tell */
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        doom(connection);
}

static void watch_peer(struct connection *connection)
{
    if (!connection->doomed)
        io_watch_start(connection->server->loop, &connection->watch, connection->fd, IO_READABLE,
                       on_readable, connection);
}

static void suspend(struct connection *connection)
{
    check(!connection->suspended);
    connection->suspended = true;
    MHD_suspend_connection(connection->mhd);
    watch_peer(connection);
}

static struct connection *connection_of(struct MHD_Connection *mhd)
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
    connection->next = server->connections;
    connection->link = &server->connections;
    if (connection->next != NULL)
        connection->next->link = &connection->next;
    server->connections = connection;
    *context = connection;
    /* A stream to a machine that was switched off ends some day; UNIX sockets do not know it. */
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    set_deadline(connection, connection->server->arrive_ms);
}

static void connection_free(struct connection *connection)
{
    connection->doomed = true;
    exchange_finish(connection);
    io_timer_stop(&connection->deadline);
    io_watch_stop(&connection->watch);
    *connection->link = connection->next;
    if (connection->next != NULL)
        connection->next->link = connection->link;
    connection->server->place_free = true;
    free(connection);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_start(ctx, mhd, context);
    else if (*context != NULL)
        connection_free(*context);
}

static void on_completed(void *ctx, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct connection *connection = connection_of(mhd);
    (void)ctx;
    (void)code; /* the exchange's state says what there is to tell */

    *request = NULL;
    if (connection == NULL)
        return;
    exchange_finish(connection);
    if (connection->doomed)
        return;
    connection->idle = true;
    set_deadline(connection, connection->server->idle_ms);
    watch_peer(connection);
}

/* --- requests --- */

static int hex_digit(char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* True if what TARGET decodes to is UTF-8 without NUL: the library would end a text at "%00" and
 * leave "%zz" as it is, and nobody behind us expects anything but text. */
static bool is_valid_target(const char *target)
{
    size_t length = 0;
    scoped_text char *decoded = malloc(strlen(target) + 1);

    if (decoded == NULL || target[0] != '/')
        return false;
    for (const char *at = target; *at != '\0'; at++) {
        char byte = *at;

        if ((unsigned char)byte <= 0x20 || byte == 0x7f)
            return false;
        if (byte == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0)
                return false;
            byte = (char)(high * 16 + low);
            at += 2;
        }
        decoded[length++] = byte;
    }
    return text_is_utf8(decoded, length);
}

/* The library has read the first line; what is returned comes back as *request. */
static void *on_target(void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    struct http_exchange *exchange = calloc(1, sizeof(*exchange));
    (void)ctx;

    check(connection != NULL);
    check(exchange != NULL);
    check(connection->exchange == NULL);
    exchange->connection = connection;
    exchange->refusal = is_valid_target(target) ? 0 : MHD_HTTP_BAD_REQUEST;
    connection->exchange = exchange;
    begin_request(connection);
    return exchange;
}

struct head {
    unsigned lengths, encodings;
    uint64_t length;
    bool bad;
};

static enum MHD_Result see_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct head *head = ctx;
    (void)kind;

    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        head->lengths++;
        head->bad |= !text_to_u64(value, &head->length);
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        head->encodings++;
        head->bad |= value == NULL || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Where a body ends must not be a matter of opinion (RFC 9112, 6.3): one statement or none. */
static void inspect_head(struct http_exchange *exchange, struct MHD_Connection *mhd,
                         const char *method, const char *path)
{
    struct head head = {0};

    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, see_header, &head); /* their count */
    exchange->path = strdup(path);
    if (!text_copy(exchange->method, sizeof(exchange->method), method) || head.bad ||
        head.lengths + head.encodings > 1 || exchange->path == NULL)
        exchange->refusal = MHD_HTTP_BAD_REQUEST;
    else if (exchange->refusal == 0 && head.length > exchange->connection->server->body_bytes_max)
        exchange->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value); /* what it refuses is left out */
}

static enum MHD_Result refuse(struct http_exchange *exchange)
{
    const char *text = exchange->refusal == MHD_HTTP_BAD_REQUEST ? "malformed request\n"
                                                                 : "request body is too large\n";
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

    check(response != NULL);
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    /* Whatever follows on this connection is not to be trusted as a request. */
    add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    exchange->state = EXCHANGE_ANSWERED;
    enum MHD_Result result =
        MHD_queue_response(exchange->connection->mhd, (unsigned)exchange->refusal, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result queue_answer(struct http_exchange *exchange)
{
    enum MHD_Result result = MHD_queue_response(exchange->connection->mhd,
                                                (unsigned)exchange->status, exchange->response);

    MHD_destroy_response(exchange->response);
    exchange->response = NULL;
    set_deadline(exchange->connection, exchange->connection->server->idle_ms);
    return result;
}

static enum MHD_Result on_whole(struct http_exchange *exchange)
{
    struct connection *connection = exchange->connection;

    io_timer_stop(&connection->deadline);
    if (exchange->refusal != 0)
        return refuse(exchange);
    exchange->state = EXCHANGE_WAITING;
    connection->server->handle(connection->server->ctx, exchange);
    if (exchange->response != NULL)
        return queue_answer(exchange);
    suspend(connection);
    return MHD_YES;
}

/* Called with the head of a request, with each piece of its body, when all is there, and again
 * after each resume until an answer is queued. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *length, void **request)
{
    struct connection *connection = connection_of(mhd);
    struct http_exchange *exchange = connection == NULL ? NULL : connection->exchange;
    (void)ctx;
    (void)version;
    (void)request; /* the connection knows its exchange, and whether it still has one */

    if (exchange == NULL || connection->doomed)
        return MHD_NO;
    if (!exchange->begun) {
        exchange->begun = true;
        inspect_head(exchange, mhd, method, path);
        /* A body that is too large is read to its end within the time for arriving, so that the
         * peer gets to read the answer; one that asks first is told first. */
        bool asks =
            MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT) != NULL;
        bool at_once = exchange->refusal == MHD_HTTP_BAD_REQUEST || asks;
        return exchange->refusal != 0 && at_once ? refuse(exchange) : MHD_YES;
    }
    if (*length > 0) {
        if (exchange->refusal == 0 &&
            !buffer_append(&exchange->body, bytes, *length, connection->server->body_bytes_max))
            exchange->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        *length = 0;
        return MHD_YES;
    }
    if (exchange->state == EXCHANGE_ARRIVING)
        return on_whole(exchange);
    return exchange->response == NULL ? MHD_NO : queue_answer(exchange);
}

const char *http_method(const struct http_exchange *exchange)
{
    return exchange->method;
}

const char *http_path(const struct http_exchange *exchange)
{
    return exchange->path;
}

static const char *lookup(const struct http_exchange *exchange, enum MHD_ValueKind kind,
                          const char *name)
{
    const char *value = NULL;

    if (exchange->connection == NULL ||
        MHD_lookup_connection_value_n(exchange->connection->mhd, kind, name, strlen(name), &value,
                                      NULL) != MHD_YES)
        return NULL;
    return value == NULL ? "" : value; /* "?name" alone */
}

const char *http_query(const struct http_exchange *exchange, const char *name)
{
    return lookup(exchange, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    return lookup(exchange, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_exchange *exchange, size_t *ret_length)
{
    *ret_length = buffer_length(&exchange->body);
    return buffer_text(&exchange->body);
}

void http_on_close(struct http_exchange *exchange, void (*cb)(void *ctx), void *ctx)
{
    exchange->on_close = cb;
    exchange->on_close_ctx = ctx;
}

/* --- answers --- */

/* RESPONSE is moved into the exchange; the library takes it when the connection is resumed, or
 * when the handler returns. */
static void answer(struct http_exchange *exchange, int status, const char *content_type,
                   struct MHD_Response *response)
{
    check(exchange->state == EXCHANGE_WAITING);
    check(status >= 200 && status <= 599);
    check(response != NULL);

    if (content_type != NULL)
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    exchange->status = status;
    exchange->response = response;
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type,
                  const struct http_header_line *headers, size_t headers_count, const void *body,
                  size_t length)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        length, (void *)(uintptr_t)(body == NULL ? "" : body), MHD_RESPMEM_MUST_COPY);

    answer(exchange, status, content_type, response);
    for (size_t i = 0; i < headers_count; i++)
        add_header(response, headers[i].name, headers[i].value);
    exchange->state = EXCHANGE_ANSWERED;
    if (exchange->connection == NULL)
        exchange_free(exchange);
    else
        resume(exchange->connection);
}

static ssize_t on_stream_read(void *ctx, uint64_t position, char *to, size_t size)
{
    struct connection *connection = ctx;
    struct http_exchange *exchange = connection->exchange;
    (void)position;

    if (exchange == NULL || connection->doomed || connection->overflown)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t taken = buffer_take(&exchange->body, to, size);
    if (buffer_length(&exchange->body) > 0 || exchange->state == EXCHANGE_ANSWERED)
        set_deadline(connection, connection->server->idle_ms);
    else
        io_timer_stop(&connection->deadline); /* nothing to say may last as long as it likes */
    if (taken > 0) {
        exchange->drained = buffer_length(&exchange->body) == 0;
        return (ssize_t)taken;
    }
    if (exchange->state == EXCHANGE_ANSWERED)
        return MHD_CONTENT_READER_END_OF_STREAM;
    suspend(connection);
    return 0;
}

void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type,
                       void (*on_drain)(void *ctx), void *ctx)
{
    answer(exchange, status, content_type,
           MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream_read,
                                             exchange->connection, NULL));
    exchange->state = EXCHANGE_STREAMING;
    exchange->on_drain = on_drain;
    exchange->on_drain_ctx = ctx;
    buffer_close(&exchange->body); /* of the request; the stream's queue from now on */
    if (exchange->connection != NULL)
        resume(exchange->connection);
}

size_t http_stream_write(struct http_exchange *exchange, const void *bytes, size_t length)
{
    struct connection *connection = exchange->connection;

    check(exchange->state == EXCHANGE_STREAMING);
    if (connection == NULL || connection->overflown || length == 0)
        return buffer_length(&exchange->body);
    bool first = buffer_length(&exchange->body) == 0;
    if (!buffer_append(&exchange->body, bytes, length, QUEUE_MAX)) {
        /* Not from in here: the producer still holds the exchange.  Its on_close comes from the
         * loop. */
        buffer_close(&exchange->body);
        connection->overflown = true;
        set_deadline(connection, 0);
        return 0;
    }
    if (first)
        set_deadline(connection, connection->server->idle_ms);
    resume(connection);
    return buffer_length(&exchange->body);
}

void http_stream_end(struct http_exchange *exchange)
{
    check(exchange->state == EXCHANGE_STREAMING);

    exchange->state = EXCHANGE_ANSWERED;
    if (exchange->connection == NULL)
        exchange_free(exchange);
    else
        resume(exchange->connection);
}

/* --- the server --- */

static void call_on_drain(struct http_server *server)
{
    struct connection *next;

    for (struct connection *at = server->connections; at != NULL; at = next) {
        struct http_exchange *exchange = at->exchange;

        next = at->next; /* connections are freed in MHD_run only */
        if (exchange == NULL || !exchange->drained)
            continue;
        exchange->drained = false;
        if (exchange->on_drain != NULL && exchange->state == EXCHANGE_STREAMING)
            exchange->on_drain(exchange->on_drain_ctx);
    }
}

static void run(struct http_server *server)
{
    MHD_UNSIGNED_LONG_LONG delay_ms = 0;

    server->running = true;
    server->place_free = false;
    (void)MHD_run(server->daemon); /* fails only for a daemon that polls by itself */
    call_on_drain(server);
    server->running = false;
    if (MHD_get_timeout(server->daemon, &delay_ms) == MHD_YES || server->place_free)
        io_timer_start(server->loop, &server->again, loop_now_ms() + delay_ms, on_again, server);
    else
        io_timer_stop(&server->again);
}

static void on_again(struct io_timer *timer)
{
    run(timer->ctx);
}

static void on_sockets(struct io_watch *watch, int events)
{
    (void)events;
    run(watch->ctx);
}

static void on_panic(void *ctx, const char *file, unsigned line, const char *reason)
{
    (void)ctx;
    check_failed(file, (int)line, reason == NULL ? "libmicrohttpd" : reason);
}

static int start(struct http_server *server, const struct http_listen *listen, int fd,
                 struct err *err)
{
    MHD_set_panic_func(on_panic, NULL);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, listen->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_END);
    if (server->daemon == NULL)
        return err_os(err, ERR_LIMIT, errno, "cannot start the HTTP server");

    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    check(info != NULL);
    io_watch_start(server->loop, &server->watch, info->epoll_fd, IO_READABLE, on_sockets, server);
    return 0;
}

struct http_server *http_server_new(struct loop *loop, const struct http_listen *listen,
                                    struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int fd, code;

    check(server != NULL);
    check(listen->handle != NULL);
    check(listen->connections_max > 0);
    server->loop = loop;
    server->body_bytes_max = listen->body_bytes_max;
    server->arrive_ms = listen->arrive_ms == 0 ? ARRIVE_DEFAULT_MS : listen->arrive_ms;
    server->idle_ms = listen->idle_ms == 0 ? IDLE_DEFAULT_MS : listen->idle_ms;
    server->handle = listen->handle;
    server->ctx = listen->ctx;

    if (listen->unix_socket != NULL)
        code = listen_unix(listen->unix_socket, &fd, err);
    else
        code = listen_tcp(listen->address, listen->port, &fd, &server->port, err);
    if (code != 0 || start(server, listen, fd, err) != 0) {
        free(server);
        return NULL;
    }
    if (listen->unix_socket != NULL) {
        server->unix_socket = strdup(listen->unix_socket);
        check(server->unix_socket != NULL);
    }
    return server;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    check(!server->running);

    for (struct connection *at = server->connections; at != NULL; at = at->next)
        doom(at);
    io_watch_stop(&server->watch);
    io_timer_stop(&server->again);
    MHD_stop_daemon(server->daemon); /* closes the listening socket, too */
    check(server->connections == NULL);
    if (server->unix_socket != NULL)
        (void)unlink(server->unix_socket); /* somebody else may have done it */
    free(server->unix_socket);
    free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}
