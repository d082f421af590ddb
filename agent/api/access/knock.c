/*
 * Requests that show tokens of servers: those are asked first, and the request waits meanwhile as
 * it came.
 *
 * Once a token has been settled for a request it stays so for that one, which may wait for a
 * change, or for a thread that reads its body; what waits for a change knocks again when it comes.
 */
#include "agent/api/part.h"

#include "server/acl/lent.h"

#include <stdlib.h>

struct knock {
    struct api *api;
    struct http_exchange *exchange;
    struct acl_lent_wait *wait;
    api_again *again;
};

static void on_closed(void *ctx)
{
    struct knock *knock = ctx;

    acl_lent_leave(knock->wait);
    knock->api->knocks_count--;
    free(knock);
}

static void on_answered(void *ctx)
{
    struct knock *knock = ctx;
    struct api *api = knock->api;
    struct http_exchange *exchange = knock->exchange;
    api_again *again = knock->again;

    http_on_close(exchange, NULL, NULL);
    api->knocks_count--;
    free(knock);
    again(api, exchange);
}

bool api_knocks(struct api_request *request, api_again *again)
{
    struct api *api = request->api;
    struct acl_lent *lent = api->parts->lent;
    const char *secret = api_token(request);
    const struct acl_rights *rights;
    struct err err = {0};

    if (lent == NULL || http_is_guest(request->exchange) ||
        request->route->need.scope == NEEDS_MIGRATION ||
        (request->route->need.scope == NEEDS_NOTHING && secret == NULL) ||
        acl_lent_find(lent, secret, false, &rights, &err) != ERR_AGAIN)
        return false;
    struct knock *knock = calloc(1, sizeof(*knock));
    check(knock != NULL);
    *knock = (struct knock){.api = api, .exchange = request->exchange, .again = again};
    if (api->knocks_count < API_KNOCKS_MAX) {
        api->knocks_count++;
        http_on_close(request->exchange, on_closed, knock);
        if (acl_lent_ask(lent, secret, on_answered, knock, &knock->wait, &err) == 0)
            return true;
        http_on_close(request->exchange, NULL, NULL);
        api->knocks_count--;
    } else {
        (void)err_set(&err, ERR_LIMIT, "%d requests wait for the servers already: try again",
                      API_KNOCKS_MAX);
    }
    free(knock);
    api_refuse(request, 503, "%s", err.text);
    return true;
}
