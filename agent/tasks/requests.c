/*
 * Whoever has come by a door: the servers say who that is, by the token that he shows, before
 * anything is looked for, also where they ask nobody else for tokens.
 *
 * What they decide they are asked as him.  What this node knows itself, and what it may be told to
 * do, is only for those who may do all: no task is to reach others by the node that runs it.
 */
#include "agent/tasks/part.h"

#include "io/log.h"
#include "server/nomad/nomad.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utlist.h>

enum { REQUESTS_MAX = 128, TOKEN_MAX = 16 << 10 };

/* --- who it is --- */

static const char *token_of(const struct http_exchange *exchange)
{
    static const char bearer[] = "Bearer ";
    const char *token = http_header(exchange, "x-nomad-token");
    const char *authorization = http_header(exchange, "authorization");

    if (token != NULL && token[0] != '\0')
        return token;
    if (authorization == NULL || strncasecmp(authorization, bearer, strlen(bearer)) != 0)
        return NULL;
    return authorization + strlen(bearer);
}

static bool manages(const json_t *identity)
{
    const json_t *token = json_object_get(identity, "ACLToken");
    const char *type = json_string_value(json_object_get(token, "Type"));

    return type != NULL && text_equal(type, "management");
}

static void serve(struct task_request *request, const json_t *identity)
{
    struct api *api = request->tasks->api;

    if (request->forward != NULL) {
        forward_begin(request);
        return;
    }
    if (!manages(identity)) {
        request_refuse(request, 403, "Permission denied");
        return;
    }
    struct http_exchange *exchange = request_take(request);
    api_serve(api, exchange);
}

static void known(void *ctx, const json_t *reply, const struct err *err)
{
    struct task_request *request = ctx;
    const json_t *identity = json_object_get(reply, "Identity");
    bool is_somebody = json_is_object(json_object_get(identity, "ACLToken")) ||
                       json_is_object(json_object_get(identity, "Claims"));

    if (request->exchange == NULL) {
        request_forget(request);
    } else if (reply == NULL && !policy_is_denied(err->code, err->text)) {
        log_debug("api", "a token cannot be verified error=%s", log_value(err->text));
        request_refuse(request, 500, "Server error authenticating request\n");
    } else if (!is_somebody) {
        request_refuse(request, 403, "Forbidden");
    } else {
        serve(request, identity);
    }
}

static void closed(void *ctx)
{
    struct task_request *request = ctx;

    request->exchange = NULL; /* an answer of the servers is awaited */
    if (request->tasks->ended)
        request_forget(request);
}

/* --- the door --- */

static bool is_of_region(const struct task_api *tasks, const struct http_exchange *exchange)
{
    const char *region = http_query(exchange, "region");

    return region == NULL || region[0] == '\0' || text_equal(region, tasks->parts->config->region);
}

void requests_handle(void *ctx, struct http_exchange *exchange)
{
    struct task_api *tasks = ctx;
    const char *token = token_of(exchange);

    log_debug("api", "request of a task method=%s path=%s", http_method(exchange),
              log_value(http_path(exchange)));
    if (token == NULL || token[0] == '\0') {
        request_respond(exchange, 401, "Unauthorized");
    } else if (strlen(token) > TOKEN_MAX) {
        request_respond(exchange, 403, "Forbidden");
    } else if (!is_of_region(tasks, exchange)) {
        request_respond(exchange, 404, "No path to region");
    } else if (tasks->requests_count == REQUESTS_MAX) {
        request_respond(exchange, 503,
                        "too many requests of tasks wait for the servers: try again\n");
    } else {
        struct task_request *request = calloc(1, sizeof(*request));

        check(request != NULL);
        *request = (struct task_request){.tasks = tasks,
                                         .exchange = exchange,
                                         .forward = forward_find(exchange),
                                         .token = strdup(token)};
        check(request->token != NULL);
        DL_APPEND(tasks->requests, request);
        tasks->requests_count++;
        http_on_close(exchange, closed, request);
        nomad_ask(tasks->parts->nomad, "ACL.WhoAmI", json_object(), request->token, 0, known,
                  request);
    }
}

void requests_end(struct task_api *tasks)
{
    while (tasks->requests != NULL)
        request_forget(tasks->requests);
}
