/*
 * Memory for what peers send and are sent.
 *
 * A request that is no longer than HTTP_SHORT_BYTES, and an answer that is not, have room at any
 * time; what is longer takes out of what all have together, and gives it back as it goes.
 */
#include "io/net/connection.h"

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
