/*
 * What a handler sees of an exchange, and how it answers: at once or late, whole or as a stream.
 *
 * A stream's bytes wait in a queue until the library asks for them; when it is empty the
 * connection is suspended.  The queue is bounded: a producer that does not hold back loses its
 * peer, not our memory.
 */
#include "io/net/connection.h"

#include <string.h>

enum {
    QUEUE_MAX = 16 << 20,    /* bytes queued on one stream */
    STREAM_BLOCK = 16 << 10, /* asked for at a time */
};

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
    if (exchange->guest != NULL)
        return guest_query(exchange->guest, name, 0);
    return lookup(exchange, MHD_GET_ARGUMENT_KIND, name);
}

struct again {
    const char *name, *value;
    size_t left;
};

static enum MHD_Result see_again(void *ctx, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct again *again = ctx;
    (void)kind;

    if (!text_equal(name, again->name) || again->left-- > 0)
        return MHD_YES;
    again->value = value == NULL ? "" : value;
    return MHD_NO;
}

const char *http_query_again(const struct http_exchange *exchange, const char *name, size_t count)
{
    struct again again = {.name = name, .left = count};

    if (exchange->guest != NULL)
        return guest_query(exchange->guest, name, count);
    if (exchange->connection != NULL)
        (void)MHD_get_connection_values(exchange->connection->mhd, MHD_GET_ARGUMENT_KIND, see_again,
                                        &again); /* their count */
    return again.value;
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
    if (exchange->guest != NULL)
        return guest_header(exchange->guest, name);
    return lookup(exchange, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_exchange *exchange, size_t *ret_length)
{
    *ret_length = buffer_length(&exchange->body);
    return buffer_text(&exchange->body);
}

char *http_take_body(struct http_exchange *exchange, size_t *ret_length)
{
    struct buffer body = exchange->body;

    check(exchange->state == EXCHANGE_WAITING);
    check(body.start == 0);
    exchange->body = (struct buffer){0};
    exchange_give_body(exchange);
    *ret_length = body.end;
    return body.bytes;
}

void http_on_close(struct http_exchange *exchange, void (*cb)(void *ctx), void *ctx)
{
    exchange->on_close = cb;
    exchange->on_close_ctx = ctx;
}

/* --- answers --- */

void response_add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value); /* what it refuses is left out */
}

/* RESPONSE is moved into the exchange; the library takes it when the connection is resumed, or
 * when the handler returns. */
static void answer(struct http_exchange *exchange, int status, const char *content_type,
                   struct MHD_Response *response)
{
    check(exchange->state == EXCHANGE_WAITING);
    check(status >= 200 && status <= 599);
    check(response != NULL);

    if (content_type != NULL)
        response_add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    exchange->status = status;
    exchange->response = response;
}

static void add_headers(struct http_exchange *exchange, const struct http_header_line *headers,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        response_add_header(exchange->response, headers[i].name, headers[i].value);
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type,
                  const struct http_header_line *headers, size_t headers_count, const void *body,
                  size_t length)
{
    static const char no_room[] = "too many large answers are on their way: try again\n";

    if (exchange->guest != NULL) {
        guest_respond(exchange, status, body, length);
        return;
    }
    if (!exchange_take_answer(exchange, length)) {
        status = MHD_HTTP_SERVICE_UNAVAILABLE;
        content_type = "text/plain";
        body = no_room;
        length = strlen(no_room);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(
        length, (void *)(uintptr_t)(body == NULL ? "" : body), MHD_RESPMEM_MUST_COPY);

    answer(exchange, status, content_type, response);
    add_headers(exchange, headers, headers_count);
    exchange->state = EXCHANGE_ANSWERED;
    if (exchange->connection == NULL)
        exchange_free(exchange);
    else
        connection_resume(exchange->connection);
}

static ssize_t on_stream_read(void *ctx, uint64_t position, char *to, size_t size)
{
    struct connection *connection = ctx;
    struct http_exchange *exchange = connection->exchange;
    (void)position;

    if (exchange == NULL || connection->doomed || connection->condemned)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t taken = buffer_take(&exchange->body, to, size);
    connection->since_ms = loop_now_ms();
    if (buffer_length(&exchange->body) > 0 || exchange->state == EXCHANGE_ANSWERED)
        connection_set_deadline(connection, connection->server->idle_ms);
    else
        io_timer_stop(&connection->deadline); /* nothing to say may last as long as it likes */
    if (taken > 0) {
        if (buffer_length(&exchange->body) == 0)
            exchange_note_drained(exchange);
        return (ssize_t)taken;
    }
    if (exchange->state == EXCHANGE_ANSWERED)
        return MHD_CONTENT_READER_END_OF_STREAM;
    connection_suspend(connection);
    return 0;
}

void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type,
                       const struct http_header_line *headers, size_t headers_count,
                       void (*on_drain)(void *ctx), void *ctx)
{
    exchange->on_drain = on_drain;
    exchange->on_drain_ctx = ctx;
    if (exchange->guest != NULL) {
        exchange->state = EXCHANGE_STREAMING;
        guest_begin(exchange, status);
        return;
    }
    answer(exchange, status, content_type,
           MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream_read,
                                             exchange->connection, NULL));
    add_headers(exchange, headers, headers_count);
    exchange->state = EXCHANGE_STREAMING;
    exchange_give_body(exchange); /* the stream's queue from now on */
    if (exchange->connection != NULL)
        connection_resume(exchange->connection);
}

size_t http_stream_write(struct http_exchange *exchange, const void *bytes, size_t length)
{
    struct connection *connection = exchange->connection;

    check(exchange->state == EXCHANGE_STREAMING);
    if (exchange->guest != NULL)
        return guest_write(exchange, bytes, length);
    if (connection == NULL || connection->condemned || length == 0)
        return buffer_length(&exchange->body);
    bool first = buffer_length(&exchange->body) == 0;
    if (!buffer_append(&exchange->body, bytes, length, QUEUE_MAX)) {
        /* Not from in here: the producer still holds the exchange.  Its on_close comes from the
         * loop. */
        buffer_close(&exchange->body);
        http_disconnect(exchange);
        return 0;
    }
    if (first)
        connection_set_deadline(connection, connection->server->idle_ms);
    connection_resume(connection);
    return buffer_length(&exchange->body);
}

void http_disconnect(struct http_exchange *exchange)
{
    if (exchange->connection == NULL)
        return;
    exchange->connection->condemned = true;
    connection_set_deadline(exchange->connection, 0);
}

void http_stream_end(struct http_exchange *exchange)
{
    check(exchange->state == EXCHANGE_STREAMING);

    if (exchange->guest != NULL) {
        guest_end(exchange);
        return;
    }
    exchange->state = EXCHANGE_ANSWERED;
    if (exchange->connection == NULL)
        exchange_free(exchange);
    else
        connection_resume(exchange->connection);
}
