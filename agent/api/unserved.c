/*
 * What Nomad's agents take from a query, or from a body, and this one does not act on: refused by
 * name, so that nobody takes an answer for one to what he has asked.
 *
 * Names that no agent knows are passed over, as there.  So is per_page, with which Nomad's command
 * line looks for each job: a list is one page, behind which no other follows.  Follows nomad v2.0.5
 * command/agent/.
 */
#include "agent/api/part.h"

#include "agent/config/config.h"
#include "server/nomad/nomad.h"

#include <string.h>

enum { ROUTES_MAX = 9 };

/* Those of lists, which are given whole. */
#define LISTS                                                                                      \
    {                                                                                              \
        "/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/nodes", "/v1/deployments",          \
            "/v1/volumes", "/v1/acl/tokens", "/v1/service/*"                                       \
    }

/* What Nomad says first of a list that it cannot make so; who hears it makes do with the whole one
 * (the command line: the jobs that can be dispatched, or are periodic). */
#define NO_PAGES "failed to create result paginator: "

static const struct {
    const char *name;
    uint8_t methods;
    const char *routes[ROUTES_MAX];
    const char *first; /* of the refusal */
} unserved[] = {
    {"filter", API_GET, LISTS, NO_PAGES},
    {"next_token", API_GET, LISTS, NO_PAGES},
    {"reverse", API_GET, LISTS, NO_PAGES},
    {"log_include_location", API_GET, {"/v1/agent/monitor"}, ""},
    {"eval_priority", API_DELETE, {"/v1/job/*"}, ""},
    {"reschedule", API_PUT, {"/v1/allocation/*/stop"}, ""},
};

/* What says the same as nothing. */
static bool is_nothing(const char *text)
{
    static const char *const words[] = {"", "0", "f", "F", "false", "FALSE", "False"};

    for (size_t i = 0; text != NULL && i < COUNT_OF(words); i++) {
        if (text_equal(text, words[i]))
            return true;
    }
    return text == NULL;
}

static bool is_among(const char *const routes[ROUTES_MAX], const char *path)
{
    for (size_t i = 0; i < ROUTES_MAX && routes[i] != NULL; i++) {
        if (text_equal(routes[i], path))
            return true;
    }
    return false;
}

bool api_is_served(struct api_request *request)
{
    const struct api_route *route = request->route;

    for (size_t i = 0; i < COUNT_OF(unserved); i++) {
        if ((unserved[i].methods & route->methods) == 0 ||
            !is_among(unserved[i].routes, route->path) ||
            is_nothing(http_query(request->exchange, unserved[i].name)))
            continue;
        api_refuse(request, 400, "%s%s is not available here in this release", unserved[i].first,
                   unserved[i].name);
        return false;
    }
    return true;
}

/* Of all else a client of servers knows nothing that they do not know better. */
static const char *const of_clients[] = {
    "/v1/agent/*", "/v1/client/*", "/v1/allocations", "/v1/allocation/*", "/v1/nodes",
    "/v1/node/*",  "/v1/metrics",  "/v1/regions",     "/v1/status/*",     "/v1/event/stream",
};

static bool is_of_clients(const char *path)
{
    for (size_t i = 0; i < COUNT_OF(of_clients); i++) {
        size_t length = strcspn(of_clients[i], "*");

        if (strncmp(path, of_clients[i], length) == 0 &&
            (of_clients[i][length] == '*' || path[length] == '\0'))
            return true;
    }
    return false;
}

bool api_is_decided_here(struct api_request *request)
{
    const struct nomad *session = request->api->parts->nomad;
    const struct api_route *route = request->route;
    bool changes = (route->methods & API_GET) == 0 &&
                   !text_starts_with(route->path, "/v1/client/") &&
                   !text_equal(route->path, "/v1/agent/servers");
    struct nomad_standing standing;

    if (session == NULL || (is_of_clients(route->path) && !changes))
        return true;
    nomad_describe(session, &standing);
    api_refuse(request, 501,
               "This node is a client of servers (%s), who decide that: ask one of them, as with "
               "NOMAD_ADDR=http://HOST:4646",
               standing.server[0] == '\0' ? "none is known yet" : standing.server);
    return false;
}

bool api_names_this_node(struct api_request *request, const char *id)
{
    if (id == NULL || id[0] == '\0' || text_starts_with(request->api->parts->node.identity.id, id))
        return true;
    api_refuse(request, 404, "Unknown node %.40s", id);
    return false;
}

bool api_is_of_this_agent(struct api_request *request)
{
    const struct parts *parts = request->api->parts;
    const char *server = http_query(request->exchange, "server_id");
    char name[sizeof(parts->config->name) + sizeof(parts->config->region) + 1];

    if (!api_names_this_node(request, http_query(request->exchange, "node_id")))
        return false;
    (void)text_format(name, sizeof(name), "%s.%s", parts->config->name,
                      parts->config->region); /* it fits; as members say it */
    if (server == NULL || server[0] == '\0' || text_equal(server, "leader") ||
        text_equal(server, name) || text_equal(server, parts->config->name) ||
        text_equal(server, parts->node.identity.id))
        return true;
    api_refuse(request, 404, "unknown Nomad server %.100s", server);
    return false;
}

const char *api_unserved_field(const json_t *body)
{
    static const char *const fields[] = {"EvalPriority", "PreserveResources"};

    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        const json_t *value = json_object_get(body, fields[i]);

        if (json_is_true(value) || (json_is_integer(value) && json_integer_value(value) != 0))
            return fields[i];
    }
    return NULL;
}
