/*
 * The agent about itself: configuration, health, membership of a cluster of one.
 *
 * Follows nomad v1.1.2 command/agent/agent_endpoint.go.  A stand-alone
 * agent is its own server, so it names itself where a server is asked for.
 */
#include "agent/api/format/format.h"
#include "agent/api/part.h"

#include "agent/version.h"
#include "server/alone/alone.h"
#include "server/nomad/nomad.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- itself --- */

static json_t *format_config(struct api *api)
{
    const struct config *config = api->parts->config;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:i}, s:{s:b, s:o, s:o, s:o, s:o}, s:{s:b}}", "Name",
        api_text(config->name), "Region", api_text(config->region), "Datacenter",
        api_text(config->datacenter), "DataDir", api_text(config->data_dir), "BindAddr",
        api_text(config->bind_address), "LogLevel", api_text(config->log_level), "Ports", "HTTP",
        (int)config->http_port, "Client", "Enabled", 1, "AllocDir", api_text(config->alloc_dir),
        "StateDir", api_text(config->state_dir), "NodeClass", api_text(config->node_class), "Meta",
        api_pairs(&config->meta), "Server", "Enabled", 0);
}

static json_t *format_member(struct api *api)
{
    const struct config *config = api->parts->config;
    const char *port = api->server == NULL ? "0" : strrchr(api->address, ':') + 1;
    char name[sizeof(config->name) + sizeof(config->region) + 1];
    uint64_t number = 0;

    (void)text_to_u64(port, &number);                                             /* we wrote it */
    (void)text_format(name, sizeof(name), "%s.%s", config->name, config->region); /* it fits */
    return json_pack(
        "{s:o, s:s, s:I, s:{s:o, s:o, s:s, s:s, s:s}, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "Name",
        api_text(name), "Addr", config->bind_address, "Port", (json_int_t)number, "Tags", "region",
        api_text(config->region), "dc", api_text(config->datacenter), "port", port, "role", "cairn",
        "build", CAIRN_VERSION, "Status", "alive", "ProtocolMin", 1, "ProtocolMax", 1,
        "ProtocolCur", 1, "DelegateMin", 1, "DelegateMax", 1, "DelegateCur", 1);
}

static void set_figure(json_t *to, const char *name, uint64_t figure)
{
    char text[24];

    (void)text_format(text, sizeof(text), "%" PRIu64, figure); /* it fits */
    check(json_object_set_new(to, name, json_string(text)) == 0);
}

/* "host:port,host:port", the one that is asked first. */
static json_t *known_servers(const struct api *api)
{
    char text[SERVERS_TEXT_SIZE] = "";
    struct nomad_standing standing = {.servers_count = 0};

    if (api->parts->nomad != NULL)
        nomad_describe(api->parts->nomad, &standing);
    for (size_t i = 0; i < standing.servers_count; i++) {
        (void)text_append(text, sizeof(text), i == 0 ? "" : ","); /* may be cut */
        (void)text_append(text, sizeof(text), nomad_server(api->parts->nomad, i));
    }
    return json_string(text);
}

/* How the session with servers is, if there is one. */
static void set_session(json_t *to, struct api *api)
{
    struct nomad_standing standing;

    if (api->parts->nomad == NULL)
        return;
    nomad_describe(api->parts->nomad, &standing);
    uint64_t since_ms = life_now_ms(api->parts->life) - standing.heard_ms;
    check(json_object_set_new(to, "registered",
                              json_string(standing.registered ? "true" : "false")) == 0);
    check(json_object_set_new(to, "synced", json_string(standing.synced ? "true" : "false")) == 0);
    check(json_object_set_new(to, "server_trouble", api_text(standing.trouble)) == 0);
    if (standing.heard_ms != 0)
        set_figure(to, "last_heartbeat_ms", since_ms);
    set_figure(to, "heartbeat_ttl_ms", standing.ttl_ms);
}

static json_t *format_stats(struct api *api)
{
    struct core *core = api->parts->core;
    struct core_figures figures = core_figures(core);
    json_t *client = json_object(), *runtime = json_object();

    check(json_object_set_new(client, "node_id", api_text(api->parts->node.identity.id)) == 0);
    check(json_object_set_new(client, "known_servers", known_servers(api)) == 0);
    set_session(client, api);
    set_figure(client, "num_allocations", core_count(core, MACHINE_ALLOC));
    set_figure(runtime, "pid", (uint64_t)getpid());
    set_figure(runtime, "turns", figures.turns);
    set_figure(runtime, "events", figures.events);
    set_figure(runtime, "effects", figures.effects);
    set_figure(runtime, "commits_failed", figures.commits_failed);
    set_figure(runtime, "sequence", figures.sequence);
    return json_pack("{s:o, s:o}", "client", client, "runtime", runtime);
}

void api_agent_self(struct api_request *request)
{
    api_reply(request, json_pack("{s:o, s:o, s:o}", "config", format_config(request->api), "member",
                                 format_member(request->api), "stats", format_stats(request->api)));
}

/* Not well is said with the status, too, as probes look at nothing else. */
void api_agent_health(struct api_request *request)
{
    const char *degraded = life_trouble(request->api->parts->life);
    json_t *client = json_pack("{s:b, s:o}", "ok", degraded == NULL, "message",
                               api_text(degraded == NULL ? "ok" : degraded));
    json_t *body = json_pack("{s:o}", "client", client);

    if (degraded == NULL) {
        api_reply(request, body);
        return;
    }
    char *text = json_dumps(body, JSON_COMPACT);
    check(text != NULL);
    api_refuse_text(request, 500, text);
    free(text);
    json_decref(body);
}

void api_agent_members(struct api_request *request)
{
    const struct config *config = request->api->parts->config;

    api_reply(request,
              json_pack("{s:o, s:o, s:o, s:[o]}", "ServerName", api_text(config->name),
                        "ServerRegion", api_text(config->region), "ServerDC",
                        api_text(config->datacenter), "Members", format_member(request->api)));
}

/* Of a node that stands alone there are none. */
void api_agent_servers(struct api_request *request)
{
    const struct nomad *session = request->api->parts->nomad;
    struct nomad_standing standing = {.servers_count = 0};
    json_t *list = json_array();

    if (session != NULL)
        nomad_describe(session, &standing);
    for (size_t i = 0; i < standing.servers_count; i++)
        check(json_array_append_new(list, json_string(nomad_server(session, i))) == 0);
    api_reply(request, list);
}

void api_agent_set_servers(struct api_request *request)
{
    struct nomad *session = request->api->parts->nomad;
    char places[NOMAD_SERVERS_MAX][NOMAD_ADDRESS_SIZE];
    const char *text;
    size_t count = 0;

    if (session == NULL) {
        api_refuse(request, 501, "This node has no servers: it is its own control plane");
        return;
    }
    for (; (text = http_query_again(request->exchange, "address", count)) != NULL; count++) {
        if (count == NOMAD_SERVERS_MAX) {
            api_refuse(request, 400, "More than %d servers", NOMAD_SERVERS_MAX);
            return;
        }
        if (!config_server(text, places[count])) {
            api_refuse(request, 400, "\"%.100s\" is no address, as in \"10.0.0.1:4647\"", text);
            return;
        }
    }
    if (count == 0) {
        api_refuse(request, 400, "Missing server address (address=HOST:PORT)");
        return;
    }
    nomad_set_servers(session, places, count);
    api_reply_nothing(request);
}

void api_status_leader(struct api_request *request)
{
    api_reply(request, json_string(request->api->address));
}

void api_status_peers(struct api_request *request)
{
    api_reply(request, json_pack("[s]", request->api->address));
}

void api_regions(struct api_request *request)
{
    api_reply(request, json_pack("[o]", api_text(request->api->parts->config->region)));
}

/* --- namespaces: those that jobs name --- */

static json_t *format_namespace(const char *name)
{
    return json_pack("{s:o, s:s, s:s, s:i, s:i}", "Name", api_text(name), "Description", "",
                     "Quota", "", "CreateIndex", 1, "ModifyIndex", 1);
}

static bool note_namespace(void *ctx, const struct alone_job *job)
{
    json_t *names = ctx;

    check(json_object_set_new(names, job->namespace, json_true()) == 0);
    return true;
}

static json_t *namespaces_of(struct api *api)
{
    json_t *names = json_pack("{s:b}", "default", 1);

    alone_each(api->parts->alone, note_namespace, names);
    return names;
}

void api_namespaces(struct api_request *request)
{
    json_t *names = namespaces_of(request->api), *list = json_array(), *value;
    const char *name;

    json_object_foreach(names, name, value)
    {
        if (text_starts_with(name, request->prefix) && acl_sees_namespace(request->rights, name))
            check(json_array_append_new(list, format_namespace(name)) == 0);
    }
    json_decref(names);
    api_reply(request, list);
}

void api_namespace_get(struct api_request *request)
{
    json_t *names = namespaces_of(request->api);

    if (!acl_sees_namespace(request->rights, request->argument))
        api_refuse(request, 403, "Permission denied");
    else if (json_object_get(names, request->argument) != NULL)
        api_reply(request, format_namespace(request->argument));
    else
        api_refuse(request, 404, "namespace not found");
    json_decref(names);
}
