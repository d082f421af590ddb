/*
 * Room for those who come: in connections, and in memory for what they send and are sent.
 *
 * Some places stay free.  When they run short, the connection is closed that has had its time for
 * longest: idle, or without a request though it was made for one, or with one that does not come to
 * its end, or with an answer that its peer does not take.  Who waits for an answer is never closed:
 * how many may is for those to bound who let them wait.
 *
 * A request that is no longer than HTTP_SHORT_BYTES, and an answer that is not, have room at any
 * time; what is longer takes out of what all have together, and gives it back as it goes.
 */
#include "io/net/connection.h"

#include <string.h>

enum {
    FREE_ONE_IN = 16, /* places that are kept free */
    IDLE_MS = 1000,   /* one that answers come from quickly may be about to be used again */
    NEW_MS = 1000,
    ARRIVING_MS = 3000,
    TAKING_MS = 10 * 1000,
};

/* --- connections --- */

/* True if CONNECTION may be closed for another, from RET_AT_MS on. */
static bool may_go(const struct connection *connection, uint64_t *ret_at_ms)
{
    const struct http_exchange *exchange = connection->exchange;
    uint64_t time_ms = 0;

    if (connection->doomed || connection->condemned)
        return false;
    if (connection->idle || exchange == NULL)
        time_ms = connection->idle ? IDLE_MS : NEW_MS;
    else if (exchange->state == EXCHANGE_ARRIVING)
        time_ms = ARRIVING_MS;
    else if (exchange->state == EXCHANGE_ANSWERED)
        time_ms = TAKING_MS;
    else
        return false;
    *ret_at_ms = connection->since_ms + time_ms;
    return true;
}

/* The one that may be closed before all others, NULL: none. */
static struct connection *find_longest(const struct http_server *server, uint64_t *ret_at_ms)
{
    struct connection *first = NULL;
    uint64_t at_ms;

    for (struct connection *at = server->connections; at != NULL; at = at->next) {
        if (!may_go(at, &at_ms) || (first != NULL && at_ms >= *ret_at_ms))
            continue;
        first = at;
        *ret_at_ms = at_ms;
    }
    return first;
}

void server_close_longest(struct http_server *server)
{
    uint64_t at_ms;
    struct connection *longest = find_longest(server, &at_ms);

    if (longest != NULL && at_ms <= loop_now_ms())
        connection_doom(longest);
}

static void on_room(struct io_timer *timer)
{
    server_make_room(timer->ctx);
}

void server_make_room(struct http_server *server)
{
    unsigned max = server->connections_max;
    unsigned kept_free = max > 1 ? (max + FREE_ONE_IN - 1) / FREE_ONE_IN : 0;

    io_timer_stop(&server->room);
    while (server->connections_count - server->doomed_count > max - kept_free) {
        uint64_t first_ms;
        struct connection *first = find_longest(server, &first_ms);

        if (first == NULL)
            return; /* all wait for us; asked again as soon as one does not */
        if (first_ms > loop_now_ms()) {
            io_timer_start(server->loop, &server->room, first_ms, on_room, server);
            return;
        }
        connection_doom(first);
    }
}

/* --- memory --- */

/* Brings what one holds of what all may have, HELD, to what LENGTH bytes need; false if that is
 * not there.  One may always have it who is alone. */
static bool take(struct http_share *share, size_t *held, size_t length)
{
    size_t needed = length > HTTP_SHORT_BYTES ? length - HTTP_SHORT_BYTES : 0;
    size_t others = share->used - *held;

    if (needed > *held && others > 0 && (others > share->max || needed > share->max - others))
        return false;
    share->used = others + needed;
    *held = needed;
    return true;
}

bool exchange_take_body(struct http_exchange *exchange, size_t length)
{
    return take(&exchange->connection->server->bodies, &exchange->body_held, length);
}

bool exchange_take_answer(struct http_exchange *exchange, size_t length)
{
    return exchange->connection == NULL ||
           take(&exchange->connection->server->answers, &exchange->answer_held, length);
}

void exchange_give_body(struct http_exchange *exchange)
{
    buffer_close(&exchange->body);
    if (exchange->connection != NULL)
        (void)take(&exchange->connection->server->bodies, &exchange->body_held, 0); /* has room */
}

void exchange_give_all(struct http_exchange *exchange)
{
    if (exchange->connection == NULL)
        return;
    (void)take(&exchange->connection->server->bodies, &exchange->body_held, 0); /* have room */
    (void)take(&exchange->connection->server->answers, &exchange->answer_held, 0);
}
