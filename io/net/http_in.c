/*
 * The HTTP server: libmicrohttpd does the protocol, our loop does the waiting.
 *
 * The library polls its sockets in an epoll set of its own, which is one descriptor to our loop;
 * nothing in it is timed, so an idle server does not wake.  It is told to be strict, and where its
 * mercy would leave open what a request means (two lengths, "%00" in a path), we refuse first.
 *
 * Chosen over libwebsockets, which takes chunked bodies, negative lengths and malformed headers for
 * something else and listens on every address where it was given 127.0.0.1.
 */
#include "io/net/connection.h"
#include "io/net/listen.h"
#include "io/scope.h"

#include <errno.h>
#include <string.h>

enum {
    ARRIVE_DEFAULT_MS = 10 * 1000,
    IDLE_DEFAULT_MS = 5 * 60 * 1000,
    HEADERS_MAX = 32 << 10, /* bytes of a request's head: the library's memory for it */
};

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
    scoped_string char *decoded = malloc(strlen(target) + 1);

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
    connection_begin_request(connection);
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

/* From now on it is for the peer to take the answer. */
static void answered(struct connection *connection)
{
    connection->since_ms = loop_now_ms();
    connection_set_deadline(connection, connection->server->idle_ms);
    server_make_room(connection->server);
}

static enum MHD_Result refuse(struct http_exchange *exchange)
{
    const char *text = exchange->refusal == MHD_HTTP_BAD_REQUEST ? "malformed request\n"
                       : exchange->refusal == MHD_HTTP_CONTENT_TOO_LARGE
                           ? "request body is too large\n"
                           : "too many large requests arrive at once: try again\n";
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

    check(response != NULL);
    response_add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    /* Whatever follows on this connection is not to be trusted as a request. */
    response_add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    exchange->state = EXCHANGE_ANSWERED;
    enum MHD_Result result =
        MHD_queue_response(exchange->connection->mhd, (unsigned)exchange->refusal, response);
    MHD_destroy_response(response);
    answered(exchange->connection);
    return result;
}

static enum MHD_Result queue_answer(struct http_exchange *exchange)
{
    enum MHD_Result result = MHD_queue_response(exchange->connection->mhd,
                                                (unsigned)exchange->status, exchange->response);

    MHD_destroy_response(exchange->response);
    exchange->response = NULL;
    answered(exchange->connection);
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
    connection_suspend(connection);
    return MHD_YES;
}

/* A piece of the body.  Of one that is refused nothing is kept. */
static void take_piece(struct http_exchange *exchange, const char *bytes, size_t length)
{
    size_t bytes_max = exchange->connection->server->body_bytes_max;

    if (exchange->refusal != 0)
        return;
    if (!exchange_take_body(exchange, buffer_length(&exchange->body) + length))
        exchange->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
    else if (!buffer_append(&exchange->body, bytes, length, bytes_max))
        exchange->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
    if (exchange->refusal != 0)
        exchange_give_body(exchange);
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
        take_piece(exchange, bytes, *length);
        *length = 0;
        return MHD_YES;
    }
    if (exchange->state == EXCHANGE_ARRIVING)
        return on_whole(exchange);
    return exchange->response == NULL ? MHD_NO : queue_answer(exchange);
}

/* --- the server --- */

static void on_panic(void *ctx, const char *file, unsigned line, const char *reason)
{
    (void)ctx;
    check_failed(file, (int)line, reason == NULL ? "libmicrohttpd" : reason);
}

static int start(struct http_server *server, const struct http_listen *listen, struct err *err)
{
    MHD_set_panic_func(on_panic, NULL);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_UPGRADE | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request,
        server, MHD_OPTION_CONNECTION_LIMIT, listen->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, connection_on_notify, server, MHD_OPTION_NOTIFY_COMPLETED,
        connection_on_completed, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_END);
    if (server->daemon == NULL)
        return err_os(err, ERR_LIMIT, errno, "cannot start the HTTP server");
    server_turns_begin(server);
    if (server_accept_begin(server))
        return 0;
    int code = err_os(err, ERR_LIMIT, errno, "cannot start the HTTP server");
    MHD_stop_daemon(server->daemon);
    server_turns_end(server);
    return code;
}

/* What is left when the library does not run, or not any more. */
static void server_free(struct http_server *server)
{
    server_accept_end(server);
    if (server->unix_socket != NULL)
        (void)unlink(server->unix_socket); /* somebody else may have done it */
    free(server->unix_socket);
    tls_release(server->tls);
    free(server);
}

struct http_server *http_server_new(struct loop *loop, const struct http_listen *listen,
                                    struct err *err)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int code;

    check(server != NULL);
    server->listen_fd = server->reserve_fd = -1;
    check(listen->handle != NULL);
    check(listen->connections_max > 0);
    server->loop = loop;
    server->body_bytes_max = listen->body_bytes_max;
    server->bodies.max = listen->bodies_bytes_max == 0 ? SIZE_MAX : listen->bodies_bytes_max;
    server->answers.max = listen->answers_bytes_max == 0 ? SIZE_MAX : listen->answers_bytes_max;
    server->connections_max = listen->connections_max;
    server->arrive_ms = listen->arrive_ms == 0 ? ARRIVE_DEFAULT_MS : listen->arrive_ms;
    server->idle_ms = listen->idle_ms == 0 ? IDLE_DEFAULT_MS : listen->idle_ms;
    server->handle = listen->handle;
    server->ctx = listen->ctx;

    code = listen->tls == NULL ? 0 : tls_read(listen->tls, &server->tls, err);
    if (code == 0 && listen->passed_fd > 0) {
        server->listen_fd = listen->passed_fd;
        server->port = listen->port;
    } else if (code == 0 && listen->unix_socket != NULL) {
        code = listen_unix(listen->unix_socket, &listen->admits, &server->listen_fd, err);
    } else if (code == 0 && listen->address != NULL) {
        code = listen_tcp(listen->address, listen->port, &server->listen_fd, &server->port, err);
    }
    if (code == 0 && listen->unix_socket != NULL) {
        server->unix_socket = strdup(listen->unix_socket);
        check(server->unix_socket != NULL);
    }
    if (code == 0)
        code = start(server, listen, err);
    if (code != 0) {
        server_free(server);
        return NULL;
    }
    return server;
}

void http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    check(!server->running);

    check(server->doors == NULL);
    server_accept_end(server);
    for (struct connection *at = server->connections; at != NULL; at = at->next)
        connection_doom(at);
    io_watch_stop(&server->watch);
    MHD_stop_daemon(server->daemon);
    tls_end(server);
    io_timer_stop(&server->room);
    server_turns_end(server);
    check(server->connections == NULL);
    server_free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

int http_server_renew(struct http_server *server, const struct http_tls *tls, struct err *err)
{
    struct tls *renewed;

    check(server->tls != NULL);
    int code = tls_read(tls, &renewed, err);
    if (code != 0)
        return code;
    tls_release(server->tls);
    server->tls = renewed;
    return 0;
}

bool http_is_guest(const struct http_exchange *exchange)
{
    return exchange->guest != NULL;
}

bool http_is_local(const struct http_exchange *exchange)
{
    return exchange->guest != NULL ||
           (exchange->connection != NULL && (exchange->connection->door != NULL ||
                                             exchange->connection->server->unix_socket != NULL));
}
