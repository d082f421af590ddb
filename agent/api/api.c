/* How a request finds its handler, or waits for a change first. */
#include "agent/api/part.h"

#include "io/log.h"
#include "server/alone/alone.h"

#include <stdlib.h>
#include <string.h>

static uint8_t method_of(const struct http_exchange *exchange)
{
    const char *method = http_method(exchange);

    if (text_equal(method, "GET"))
        return api_is_by_program(exchange) ? API_GET | API_GET_CHANGES : API_GET;
    if (text_equal(method, "PUT") || text_equal(method, "POST"))
        return API_PUT;
    return text_equal(method, "DELETE") ? API_DELETE : 0;
}

/* --- blocking queries --- */

struct api_parked {
    struct api *api;
    struct http_exchange *exchange;
    const struct api_route *route;
    struct io_timer timer;
    struct api_parked *next, **link;
    struct life_subject subject; /* its names are these: */
    char namespace[SPEC_NAMESPACE_SIZE], id[SPEC_NAME_SIZE];
    char argument[API_ARGUMENT_SIZE];
};

enum { WAIT_DEFAULT_MS = 5 * 60 * 1000, WAIT_MAX_MS = 10 * 60 * 1000 };

/* A query waits as one watcher. */
_Static_assert((int)API_PARKED_MAX <= (int)WATCHERS_MAX, "all that are parked can watch");

static struct life_subject job_subject(const char *namespace, const char *id)
{
    if (text_equal(namespace, "*") || strlen(namespace) >= SPEC_NAMESPACE_SIZE ||
        strlen(id) >= SPEC_NAME_SIZE)
        return (struct life_subject){LIFE_EVERYTHING, NULL, NULL};
    return (struct life_subject){LIFE_JOB, namespace, id};
}

struct life_subject api_subject(const struct api_request *request, const struct api_route *route)
{
    const struct life_subject everything = {LIFE_EVERYTHING, NULL, NULL};
    const struct alone_evaluation *evaluation;

    switch (route->blocks) {
    case BLOCKS_NOT:
    case BLOCKS:
    case BLOCKS_IF_TOKENS:
        return everything;
    case BLOCKS_ON_JOB:
        return job_subject(request->namespace, request->argument);
    case BLOCKS_ON_ALLOC:
        if (!uuid_is_valid(request->argument))
            return everything;
        return (struct life_subject){LIFE_ALLOC, NULL, request->argument};
    case BLOCKS_ON_EVAL:
        evaluation = uuid_is_valid(request->argument)
                         ? alone_evaluation(request->api->parts->alone, request->argument)
                         : NULL;
        return evaluation == NULL ? everything
                                  : job_subject(evaluation->namespace, evaluation->job_id);
    }
    unreachable("what a route blocks on");
}

static struct api_request request_of(struct api *api, struct http_exchange *exchange,
                                     const struct api_route *route, const char *argument)
{
    const char *namespace = http_query(exchange, "namespace");
    const char *prefix = http_query(exchange, "prefix");
    struct api_request request = {
        .api = api,
        .exchange = exchange,
        .route = route,
        .argument = argument,
        .namespace = namespace != NULL && namespace[0] != '\0' ? namespace : "default",
        .prefix = prefix != NULL ? prefix : "",
    };

    request.subject = api_subject(&request, route);
    return request;
}

static void on_changed(void *ctx);

static void unpark(struct api_parked *parked)
{
    io_timer_stop(&parked->timer);
    life_unwatch(parked->api->parts->life, &parked->subject, on_changed, parked);
    *parked->link = parked->next;
    if (parked->next != NULL)
        parked->next->link = parked->link;
    parked->api->parked_count--;
}

static void on_parked_closed(void *ctx)
{
    unpark(ctx);
    free(ctx);
}

static void resume(struct api_parked *parked)
{
    struct api_request request =
        request_of(parked->api, parked->exchange, parked->route, parked->argument);

    unpark(parked);
    http_on_close(parked->exchange, NULL, NULL);
    if (!api_knocks(&request, api_serve) && api_is_allowed(&request)) /* still */
        parked->route->handle(&request);
    free(parked);
}

static void on_parked_timeout(struct io_timer *timer)
{
    resume(timer->ctx);
}

static void on_changed(void *ctx)
{
    resume(ctx);
}

/* Who needs no token waits only where there are none, or if he shows one: others would take the
 * places of those who may. */
static bool may_wait(const struct api_request *request)
{
    const struct api_route *route = request->route;
    bool tokens = request->api->parts->config->acl_enabled;

    if (!tokens)
        return route->blocks != BLOCKS_IF_TOKENS;
    return route->need.scope != NEEDS_NOTHING || api_token(request) != NULL;
}

/* Parks the exchange until what it asks for changes, if it knows its present index.  False if it
 * knows another one (an older one, or one of before a restart): then it is answered with what there
 * is.  If too many wait already it is refused; an answer would have it ask again at once. */
static bool park(struct api_request *request)
{
    struct api *api = request->api;
    struct http_exchange *exchange = request->exchange;
    const char *index_text = http_query(exchange, "index"), *wait = http_query(exchange, "wait");
    uint64_t index = 0, wait_ms = WAIT_DEFAULT_MS;
    int64_t wait_ns = 0;

    if (index_text == NULL || !text_to_u64(index_text, &index) || index != api_index_of(request) ||
        !may_wait(request))
        return false;
    if (api->parked_count == API_PARKED_MAX) {
        api_refuse(request, 503,
                   "%d requests wait for changes already: try again, or without index",
                   API_PARKED_MAX);
        return true;
    }
    if (wait != NULL && text_to_duration_ns(wait, &wait_ns) && wait_ns > 0)
        wait_ms = (uint64_t)wait_ns / 1000000;
    if (wait_ms > WAIT_MAX_MS)
        wait_ms = WAIT_MAX_MS;
    struct api_parked *parked = calloc(1, sizeof(*parked));
    check(parked != NULL);
    parked->api = api;
    parked->exchange = exchange;
    parked->route = request->route;
    (void)text_copy(parked->argument, sizeof(parked->argument), request->argument); /* these fit: */
    if (request->subject.namespace != NULL) /* names of subjects are bounded */
        (void)text_copy(parked->namespace, sizeof(parked->namespace), request->subject.namespace);
    if (request->subject.id != NULL)
        (void)text_copy(parked->id, sizeof(parked->id), request->subject.id);
    parked->subject = (struct life_subject){request->subject.kind, parked->namespace, parked->id};
    parked->next = api->parked;
    parked->link = &api->parked;
    if (parked->next != NULL)
        parked->next->link = &parked->next;
    api->parked = parked;
    api->parked_count++;
    http_on_close(exchange, on_parked_closed, parked);
    life_watch(api->parts->life, &parked->subject, on_changed, parked);
    io_timer_start(api->parts->loop, &parked->timer, loop_now_ms() + wait_ms, on_parked_timeout,
                   parked);
    return true;
}

/* True if index and wait, where given, are what they should be. */
static bool wait_is_valid(const struct http_exchange *exchange, const char **ret_fault)
{
    const char *index = http_query(exchange, "index"), *wait = http_query(exchange, "wait");
    uint64_t number;
    int64_t ns;

    *ret_fault = "Invalid wait time";
    if (wait != NULL && wait[0] != '\0' && !text_to_duration_ns(wait, &ns))
        return false;
    *ret_fault = "Invalid index";
    return index == NULL || index[0] == '\0' || text_to_u64(index, &number);
}

/* --- one request --- */

static bool is_of_other_region(const struct api *api, const struct http_exchange *exchange)
{
    const char *region = http_query(exchange, "region");

    return region != NULL && region[0] != '\0' && !text_equal(region, api->parts->config->region);
}

static bool route_changes(const struct api_route *route)
{
    return (route->methods & ~(unsigned)API_GET) != 0;
}

static void on_request(void *ctx, struct http_exchange *exchange)
{
    struct api *api = ctx;
    struct api_request request = {.api = api, .exchange = exchange};
    char argument[API_ARGUMENT_SIZE];
    const char *path = http_path(exchange), *fault;
    const struct api_route *route = api_route_of(path, method_of(exchange), argument);

    log_debug("api", "request method=%s path=%s", http_method(exchange), log_value(path));
    if (api_is_foreign(api, exchange)) {
        api_refuse(&request, 403,
                   "Requests of web pages from elsewhere are refused, and those that call this "
                   "agent by a name it does not know (allowed_hosts in its configuration)");
    } else if (route == NULL && api_find_route(path, argument) != NULL) {
        bool gets = (api_find_route(path, argument)->methods & API_GET_CHANGES) != 0;
        api_refuse(&request, 405,
                   gets ? "Invalid method: use PUT; a GET that may be a browser's could be any web "
                          "page's"
                        : "Invalid method");
    } else if (route == NULL && strlen(path) >= API_ARGUMENT_SIZE) {
        api_refuse(&request, 414, "This path is too long: what it names has %d bytes at most",
                   API_ARGUMENT_SIZE - 1);
    } else if (route == NULL) {
        api_refuse(&request, 404, "There is no such path in this API");
    } else if (route->blocks != BLOCKS_NOT && !wait_is_valid(exchange, &fault)) {
        api_refuse(&request, 400, "%s", fault);
    } else {
        request = request_of(api, exchange, route, argument);
        if (is_of_other_region(api, exchange))
            api_refuse(&request, 404, "No path to region");
        else if (!api_is_decided_here(&request) || api_knocks(&request, api_serve) ||
                 !api_is_allowed(&request))
            return; /* it was refused, or comes again */
        else if (api->deferred_count >= API_DEFERRED_MAX && route_changes(route))
            api_refuse(&request, 503, "%d changes wait to be stored already: try again",
                       API_DEFERRED_MAX);
        else if (api_is_served(&request) && (route->blocks == BLOCKS_NOT || !park(&request)))
            route->handle(&request);
    }
}

void api_serve(struct api *api, struct http_exchange *exchange)
{
    on_request(api, exchange);
}

/* --- the door --- */

/* A SHARE of what all that listens has together, in eighths. */
static struct http_listen listen_with(struct api *api, unsigned share)
{
    return (struct http_listen){
        .body_bytes_max = API_BODY_MAX,
        .bodies_bytes_max = API_BODIES_BYTES_MAX / 8 * share,
        .answers_bytes_max = API_ANSWERS_BYTES_MAX / 8 * share,
        .connections_max = API_CONNECTIONS_MAX / 8 * share,
        .handle = on_request,
        .ctx = api,
    };
}

enum { SHARE_ALL = 8, SHARE_HALF = 4 };

static int serve(struct api *api, const struct http_listen *listen, struct http_server **ret_server,
                 struct err *err)
{
    *ret_server = http_server_new(api->parts->loop, listen, err);
    if (*ret_server != NULL)
        return 0;
    return err != NULL && err->code != 0 ? err->code : ERR_IO;
}

static int listen_local(struct api *api, const struct config *config, struct err *err)
{
    bool both = config->bind_address[0] != '\0';
    struct http_listen listen = listen_with(api, both ? SHARE_HALF : SHARE_ALL);

    if (config->socket_path[0] == '\0')
        return 0;
    int code = config_admission(config, &listen.admits, err);
    if (code != 0)
        return code;
    listen.unix_socket = config->socket_path;
    (void)text_format(api->address, sizeof(api->address), "unix://%s",
                      config->socket_path); /* so */
    return serve(api, &listen, &api->local, err);
}

static int listen_network(struct api *api, const struct config *config, struct err *err)
{
    struct http_listen listen = listen_with(api, api->local != NULL ? SHARE_HALF : SHARE_ALL);
    bool v6 = strchr(config->bind_address, ':') != NULL;
    struct http_tls tls;

    if (config->bind_address[0] == '\0')
        return 0;
    listen.address = config->bind_address;
    listen.port = config->http_port;
    listen.passed_fd = api->parts->listen_fd;
    if (config_tls(config, &tls))
        listen.tls = &tls;
    int code = serve(api, &listen, &api->server, err);
    if (code == 0)
        (void)text_format(api->address, sizeof(api->address), v6 ? "[%s]:%u" : "%s:%u",
                          config->bind_address, http_server_port(api->server)); /* it fits */
    return code;
}

int api_new(struct parts *parts, struct api **ret_api, struct err *err)
{
    const struct config *config = parts->config;
    struct api *api = calloc(1, sizeof(*api));

    check(api != NULL);
    api->parts = parts;
    api->started_unix_ns = loop_now_unix_ns();
    api->host.read = host_read_stats;
    int code = listen_local(api, config, err);
    if (code == 0)
        code = listen_network(api, config, err);
    if (code != 0) {
        http_server_free(api->local);
        free(api);
        return code;
    }
    *ret_api = api;
    return 0;
}

void api_free(struct api *api)
{
    if (api == NULL)
        return;
    api_monitors_close(api);
    api_events_close(api);
    http_server_free(api->server); /* closes what is parked and what streams */
    http_server_free(api->local);
    check(api->parked == NULL && api->streams == NULL);
    io_timer_stop(&api->left_timer);
    api_snapshots_close(api);
    api_sessions_close(api);
    api_asides_close(api);
    api_host_close(api);
    api_deferred_close(api);
    api_kept_close(api);
    free(api);
}

int api_renew(struct api *api, struct err *err)
{
    struct http_tls tls;

    check(config_tls(api->parts->config, &tls));
    return api->server == NULL ? 0 : http_server_renew(api->server, &tls, err);
}

const char *api_address(const struct api *api)
{
    return api->address;
}
