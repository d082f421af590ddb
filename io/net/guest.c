/*
 * Requests that have not come by HTTP: a handler sees an exchange like any other, and what it
 * answers goes to callbacks.
 */
#include "io/net/connection.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct guest {
    struct http_guest asked; /* its lists are owned */
};

static struct http_pair *copy_pairs(const struct http_pair *pairs, size_t count)
{
    struct http_pair *copy = calloc(count + 1, sizeof(*copy));

    check(copy != NULL);
    for (size_t i = 0; i < count; i++) {
        copy[i].name = strdup(pairs[i].name);
        copy[i].value = strdup(pairs[i].value);
        check(copy[i].name != NULL);
        check(copy[i].value != NULL);
    }
    return copy;
}

static void free_pairs(const struct http_pair *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)pairs[i].name);
        free((char *)(uintptr_t)pairs[i].value);
    }
    free((struct http_pair *)(uintptr_t)pairs);
}

struct http_exchange *http_guest_begin(const struct http_guest *asked)
{
    struct http_exchange *exchange = calloc(1, sizeof(*exchange));
    struct guest *guest = calloc(1, sizeof(*guest));

    check(exchange != NULL);
    check(guest != NULL);
    guest->asked = *asked;
    guest->asked.query = copy_pairs(asked->query, asked->query_count);
    guest->asked.headers = copy_pairs(asked->headers, asked->headers_count);
    exchange->guest = guest;
    exchange->state = EXCHANGE_WAITING;
    exchange->path = strdup(asked->path);
    check(exchange->path != NULL);
    check(text_copy(exchange->method, sizeof(exchange->method), asked->method));
    check(buffer_append(&exchange->body, asked->body, asked->body_length, SIZE_MAX));
    return exchange;
}

static void drop(struct http_exchange *exchange)
{
    struct guest *guest = exchange->guest;

    free_pairs(guest->asked.query, guest->asked.query_count);
    free_pairs(guest->asked.headers, guest->asked.headers_count);
    free(guest);
    exchange_free(exchange);
}

/* --- for the handler --- */

const char *guest_query(const struct guest *guest, const char *name, size_t count)
{
    for (size_t i = 0; i < guest->asked.query_count; i++) {
        if (text_equal(guest->asked.query[i].name, name) && count-- == 0)
            return guest->asked.query[i].value;
    }
    return NULL;
}

const char *guest_header(const struct guest *guest, const char *name)
{
    for (size_t i = 0; i < guest->asked.headers_count; i++) {
        if (strcasecmp(guest->asked.headers[i].name, name) == 0)
            return guest->asked.headers[i].value;
    }
    return NULL;
}

void guest_begin(struct http_exchange *exchange, int status)
{
    struct guest *guest = exchange->guest;

    exchange_give_body(exchange);
    guest->asked.on_begin(guest->asked.ctx, status);
}

size_t guest_write(struct http_exchange *exchange, const void *bytes, size_t length)
{
    struct guest *guest = exchange->guest;

    return guest->asked.on_bytes(guest->asked.ctx, bytes, length);
}

void guest_end(struct http_exchange *exchange)
{
    struct guest *guest = exchange->guest;

    exchange->state = EXCHANGE_ANSWERED;
    guest->asked.on_end(guest->asked.ctx);
    drop(exchange);
}

void guest_respond(struct http_exchange *exchange, int status, const void *body, size_t length)
{
    guest_begin(exchange, status);
    if (length > 0)
        (void)guest_write(exchange, body, length); /* there is no more to hold back */
    guest_end(exchange);
}

/* --- for whoever asked --- */

void http_guest_drained(struct http_exchange *exchange)
{
    if (exchange->state == EXCHANGE_TUNNEL && exchange->tunnel.on_drain != NULL)
        exchange->tunnel.on_drain(exchange->tunnel.ctx);
    else if (exchange->state == EXCHANGE_STREAMING && exchange->on_drain != NULL)
        exchange->on_drain(exchange->on_drain_ctx);
}

void http_guest_send(struct http_exchange *exchange, const void *bytes, size_t length)
{
    if (exchange->state == EXCHANGE_TUNNEL && !exchange->ending)
        exchange->tunnel.on_bytes(exchange->tunnel.ctx, bytes, length);
}

static size_t hear_bytes(void *ctx, const void *bytes, size_t length)
{
    (void)ctx;
    (void)bytes;
    (void)length;
    return 0;
}

static void hear_begin(void *ctx, int status)
{
    (void)ctx;
    (void)status;
}

static void hear_end(void *ctx)
{
    (void)ctx;
}

void http_guest_leave(struct http_exchange *exchange)
{
    struct guest *guest = exchange->guest;
    bool open = exchange->state == EXCHANGE_WAITING || exchange->state == EXCHANGE_STREAMING;

    guest->asked.on_begin = hear_begin;
    guest->asked.on_bytes = hear_bytes;
    guest->asked.on_end = hear_end;
    if (open && exchange->on_close == NULL)
        return; /* it stays until it is answered, to nobody */
    if (exchange->state == EXCHANGE_TUNNEL && !exchange->ending)
        exchange->tunnel.on_close(exchange->tunnel.ctx);
    if (open)
        exchange->on_close(exchange->on_close_ctx);
    drop(exchange);
}
