/*
 * The API's routes, and how a request finds its handler.
 *
 * Follows the routes of nomad v1.1.2 command/agent/http.go.  The more special path stands first,
 * because a job's id may contain slashes.
 */
#include "agent/api/part.h"

#include "io/log.h"
#include "server/alone/alone.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* clang-format off */
const struct api_route api_routes[] = {
    /* path                              methods              flags         handler */
    {"/v1/jobs",                         API_GET,             API_BLOCKING, api_jobs_list},
    {"/v1/jobs",                         API_PUT,             0,            api_jobs_register},
    {"/v1/jobs/parse",                   API_PUT,             0,            api_jobs_parse},
    {"/v1/validate/job",                 API_PUT,             0,            api_validate_job},
    {"/v1/job/*/allocations",            API_GET,             API_BLOCKING, api_job_allocations},
    {"/v1/job/*/evaluations",            API_GET,             API_BLOCKING, api_job_evaluations},
    {"/v1/job/*/summary",                API_GET,             API_BLOCKING, api_job_summary},
    {"/v1/job/*/versions",               API_GET,             API_BLOCKING, api_job_versions},
    {"/v1/job/*/deployments",            API_GET,             0,            api_job_deployments},
    {"/v1/job/*/deployment",             API_GET,             0,            api_job_deployment},
    {"/v1/job/*/plan",                   API_PUT,             0,            api_job_plan},
    {"/v1/job/*/evaluate",               API_ANY,             0,            api_unavailable},
    {"/v1/job/*/dispatch",               API_ANY,             0,            api_unavailable},
    {"/v1/job/*/revert",                 API_ANY,             0,            api_unavailable},
    {"/v1/job/*/stable",                 API_ANY,             0,            api_unavailable},
    {"/v1/job/*/scale",                  API_ANY,             0,            api_unavailable},
    {"/v1/job/*/periodic/force",         API_ANY,             0,            api_unavailable},
    {"/v1/job/*",                        API_GET,             API_BLOCKING, api_job_get},
    {"/v1/job/*",                        API_PUT,             0,            api_job_update},
    {"/v1/job/*",                        API_DELETE,          0,            api_job_delete},
    {"/v1/allocations",                  API_GET,             API_BLOCKING, api_allocs_list},
    {"/v1/allocation/*/stop",            API_PUT,             0,            api_alloc_stop},
    {"/v1/allocation/*",                 API_GET,             API_BLOCKING, api_alloc_get},
    {"/v1/evaluations",                  API_GET,             API_BLOCKING, api_evals_list},
    {"/v1/evaluation/*/allocations",     API_GET,             API_BLOCKING, api_eval_allocations},
    {"/v1/evaluation/*",                 API_GET,             API_BLOCKING, api_eval_get},
    {"/v1/nodes",                        API_GET,             API_BLOCKING, api_nodes_list},
    {"/v1/node/*/allocations",           API_GET,             API_BLOCKING, api_node_allocations},
    {"/v1/node/*/drain",                 API_ANY,             0,            api_unavailable},
    {"/v1/node/*/eligibility",           API_ANY,             0,            api_unavailable},
    {"/v1/node/*/evaluate",              API_ANY,             0,            api_unavailable},
    {"/v1/node/*/purge",                 API_ANY,             0,            api_unavailable},
    {"/v1/node/*",                       API_GET,             API_BLOCKING, api_node_get},
    {"/v1/client/stats",                 API_GET,             0,            api_client_stats},
    {"/v1/client/gc",                    API_GET | API_PUT,   0,            api_client_gc},
    {"/v1/client/allocation/*/stats",    API_GET,             0,            api_alloc_stats},
    {"/v1/client/allocation/*/restart",  API_PUT,             0,            api_alloc_restart},
    {"/v1/client/allocation/*/signal",   API_PUT,             0,            api_alloc_signal},
    {"/v1/client/allocation/*/gc",       API_GET | API_PUT,   0,            api_alloc_gc},
    {"/v1/client/allocation/*/exec",     API_ANY,             0,            api_unavailable},
    {"/v1/client/allocation/*/snapshot", API_ANY,             0,            api_unavailable},
    {"/v1/client/fs/ls/*",               API_GET,             0,            api_fs_list},
    {"/v1/client/fs/stat/*",             API_GET,             0,            api_fs_stat},
    {"/v1/client/fs/cat/*",              API_GET,             0,            api_fs_cat},
    {"/v1/client/fs/readat/*",           API_GET,             0,            api_fs_readat},
    {"/v1/client/fs/stream/*",           API_GET,             0,            api_fs_stream},
    {"/v1/client/fs/logs/*",             API_GET,             0,            api_fs_logs},
    {"/v1/agent/self",                   API_GET,             0,            api_agent_self},
    {"/v1/agent/health",                 API_GET,             0,            api_agent_health},
    {"/v1/agent/members",                API_GET,             0,            api_agent_members},
    {"/v1/agent/servers",                API_GET,             0,            api_agent_servers},
    {"/v1/agent/monitor",                API_GET,             0,            api_agent_monitor},
    {"/v1/status/leader",                API_GET,             0,            api_status_leader},
    {"/v1/status/peers",                 API_GET,             0,            api_status_peers},
    {"/v1/regions",                      API_GET,             0,            api_regions},
    {"/v1/namespaces",                   API_GET,             0,            api_namespaces},
    {"/v1/namespace/*",                  API_GET,             0,            api_namespace_get},
    {"/v1/system/gc",                    API_PUT,             0,            api_system_gc},
    {"/v1/metrics",                      API_GET,             0,            api_metrics},
    {"/v1/search",                       API_PUT,             0,            api_search},
    {"/v1/deployments",                  API_GET,             0,            api_empty_list},
    {"/v1/deployment/*",                 API_GET,             0,            api_deployment_get},
    {"/v1/volumes",                      API_GET,             0,            api_empty_list},
    {"/v1/plugins",                      API_GET,             0,            api_empty_list},
    {"/v1/scaling/policies",             API_GET,             0,            api_empty_list},
    {"/v1/volume/*",                     API_ANY,             0,            api_unavailable},
    {"/v1/event/stream",                 API_ANY,             0,            api_unavailable},
    {"/v1/acl/*",                        API_ANY,             0,            api_unavailable},
    {"/v1/operator/*",                   API_ANY,             0,            api_unavailable},
    {"/v1/search/fuzzy",                 API_ANY,             0,            api_unavailable},
    {"/v1/agent/join",                   API_ANY,             0,            api_unavailable},
    {"/v1/agent/force-leave",            API_ANY,             0,            api_unavailable},
    {"/v1/agent/host",                   API_ANY,             0,            api_unavailable},
};
/* clang-format on */

const size_t api_routes_count = COUNT_OF(api_routes);

/* True if PATH is PATTERN; what stands for its * is copied. */
static bool path_matches(const char *pattern, const char *path, char argument[API_ARGUMENT_SIZE])
{
    const char *star = strchr(pattern, '*');

    argument[0] = '\0';
    if (star == NULL)
        return text_equal(pattern, path);
    size_t before = (size_t)(star - pattern), after = strlen(star + 1), length = strlen(path);
    if (length <= before + after || strncmp(pattern, path, before) != 0 ||
        !text_ends_with(path, star + 1))
        return false;
    length -= before + after;
    if (length >= API_ARGUMENT_SIZE)
        return false;
    memcpy(argument, path + before, length);
    argument[length] = '\0';
    return true;
}

static const struct api_route *find_route(const char *path, uint8_t method,
                                          char argument[API_ARGUMENT_SIZE])
{
    for (size_t i = 0; i < api_routes_count; i++) {
        if ((api_routes[i].methods & method) != 0 &&
            path_matches(api_routes[i].path, path, argument))
            return &api_routes[i];
    }
    return NULL;
}

const struct api_route *api_find_route(const char *path, char ret_argument[API_ARGUMENT_SIZE])
{
    return find_route(path, UINT8_MAX, ret_argument);
}

static uint8_t method_of(const struct http_exchange *exchange)
{
    const char *method = http_method(exchange);

    if (text_equal(method, "GET"))
        return API_GET;
    if (text_equal(method, "PUT") || text_equal(method, "POST"))
        return API_PUT;
    return text_equal(method, "DELETE") ? API_DELETE : 0;
}

/* --- pages in a browser --- */

/* True if AUTHORITY ("host", "host:port", "[v6]:port") names this machine by address or as
 * localhost, and not by a name that somebody else's DNS may have pointed here. */
static bool is_own_name(const struct api *api, const char *authority)
{
    char host[256];
    struct in6_addr address;

    if (!text_copy(host, sizeof(host), authority[0] == '[' ? authority + 1 : authority))
        return false;
    char *end = authority[0] == '[' ? strchr(host, ']') : strrchr(host, ':');
    if (end != NULL)
        *end = '\0';
    return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &address) == 1 ||
           inet_pton(AF_INET6, host, &address) == 1 ||
           strcasecmp(host, api->parts->config->name) == 0;
}

/* True if the request comes from a web page that this agent has not served: it has served none.
 * Without this every page an operator looks at could start programs here (there are no tokens). */
static bool is_foreign(const struct api *api, const struct http_exchange *exchange)
{
    const char *host = http_header(exchange, "host");
    const char *origin = http_header(exchange, "origin");

    if (origin != NULL)
        return true;
    return text_starts_with(api->parts->config->bind_address, "127.") && host != NULL &&
           !is_own_name(api, host);
}

/* --- blocking queries --- */

struct api_parked {
    struct api *api;
    struct http_exchange *exchange;
    api_handler *handle;
    struct io_timer timer;
    struct api_parked *next, **link;
    char argument[API_ARGUMENT_SIZE];
};

enum { WAIT_DEFAULT_MS = 5 * 60 * 1000, WAIT_MAX_MS = 10 * 60 * 1000 };

static void run_handler(struct api *api, struct http_exchange *exchange, api_handler *handle,
                        const char *argument)
{
    const char *namespace = http_query(exchange, "namespace");
    const char *prefix = http_query(exchange, "prefix");
    struct api_request request = {
        .api = api,
        .exchange = exchange,
        .argument = argument,
        .namespace = namespace != NULL && namespace[0] != '\0' ? namespace : "default",
        .prefix = prefix != NULL ? prefix : "",
    };

    handle(&request);
}

static void unpark(struct api_parked *parked)
{
    io_timer_stop(&parked->timer);
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
    unpark(parked);
    http_on_close(parked->exchange, NULL, NULL);
    run_handler(parked->api, parked->exchange, parked->handle, parked->argument);
    free(parked);
}

static void on_parked_timeout(struct io_timer *timer)
{
    resume(timer->ctx);
}

static void on_changed(void *ctx)
{
    struct api *api = ctx;

    while (api->parked != NULL)
        resume(api->parked);
}

/* Parks the exchange until something changes, if it knows the present index.  False if it knows
 * another one (an older one, or one of before a restart), or if too many wait already: then it is
 * answered with what there is. */
static bool park(struct api *api, struct http_exchange *exchange, api_handler *handle,
                 const char *argument)
{
    const char *index_text = http_query(exchange, "index"), *wait = http_query(exchange, "wait");
    uint64_t index = 0, wait_ms = WAIT_DEFAULT_MS;
    int64_t wait_ns = 0;

    if (index_text == NULL || !text_to_u64(index_text, &index) || index != api_index(api) ||
        api->parked_count == API_PARKED_MAX)
        return false;
    if (wait != NULL && text_to_duration_ns(wait, &wait_ns) && wait_ns > 0)
        wait_ms = (uint64_t)wait_ns / 1000000;
    if (wait_ms > WAIT_MAX_MS)
        wait_ms = WAIT_MAX_MS;
    struct api_parked *parked = calloc(1, sizeof(*parked));
    check(parked != NULL);
    parked->api = api;
    parked->exchange = exchange;
    parked->handle = handle;
    (void)text_copy(parked->argument, sizeof(parked->argument), argument); /* of that size */
    parked->next = api->parked;
    parked->link = &api->parked;
    if (parked->next != NULL)
        parked->next->link = &parked->next;
    api->parked = parked;
    api->parked_count++;
    http_on_close(exchange, on_parked_closed, parked);
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

static void on_request(void *ctx, struct http_exchange *exchange)
{
    struct api *api = ctx;
    struct api_request request = {.api = api, .exchange = exchange};
    char argument[API_ARGUMENT_SIZE];
    const char *path = http_path(exchange), *fault;
    const struct api_route *route = find_route(path, method_of(exchange), argument);

    log_debug("api", "request method=%s path=%s", http_method(exchange), log_value(path));
    if (is_foreign(api, exchange)) {
        api_refuse(&request, 403, "Requests of web pages from elsewhere are refused");
    } else if (route == NULL && api_find_route(path, argument) != NULL) {
        api_refuse(&request, 405, "Invalid method");
    } else if (route == NULL) {
        api_refuse(&request, 404, "There is no such path in this API");
    } else if ((route->flags & API_BLOCKING) == 0) {
        run_handler(api, exchange, route->handle, argument);
    } else if (!wait_is_valid(exchange, &fault)) {
        api_refuse(&request, 400, "%s", fault);
    } else if (!park(api, exchange, route->handle, argument)) {
        run_handler(api, exchange, route->handle, argument);
    }
}

/* --- the door --- */

int api_new(struct parts *parts, struct api **ret_api, struct err *err)
{
    const struct config *config = parts->config;
    struct api *api = calloc(1, sizeof(*api));

    check(api != NULL);
    api->parts = parts;
    api->started_unix_ns = loop_now_unix_ns();
    struct http_listen listen = {
        .address = config->bind_address,
        .port = config->http_port,
        .body_bytes_max = API_BODY_MAX,
        .connections_max = API_CONNECTIONS_MAX,
        .handle = on_request,
        .ctx = api,
    };
    api->server = http_server_new(parts->loop, &listen, err);
    if (api->server == NULL) {
        free(api);
        return err != NULL && err->code != 0 ? err->code : ERR_IO;
    }
    bool v6 = strchr(config->bind_address, ':') != NULL;
    (void)text_format(api->address, sizeof(api->address), v6 ? "[%s]:%u" : "%s:%u",
                      config->bind_address, http_server_port(api->server)); /* it fits */
    life_watch(parts->life, on_changed, api);
    *ret_api = api;
    return 0;
}

void api_free(struct api *api)
{
    if (api == NULL)
        return;
    life_unwatch(api->parts->life, on_changed, api);
    api_monitors_close(api);
    http_server_free(api->server); /* closes what is parked and what streams */
    check(api->parked == NULL);
    api_deferred_close(api);
    free(api);
}

const char *api_address(const struct api *api)
{
    return api->address;
}
