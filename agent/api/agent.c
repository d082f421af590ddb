/*
 * The agent about itself: configuration, health, membership of a cluster of one, figures.
 *
 * Follows nomad v1.1.2 command/agent/agent_endpoint.go and metrics_endpoint.go.  A stand-alone
 * agent is its own server, so it names itself where a server is asked for.
 */
#include "agent/api/format.h"
#include "agent/api/part.h"

#include "agent/version.h"
#include "server/alone/alone.h"

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
    const char *port = strrchr(api->address, ':') + 1;
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

static json_t *format_stats(struct api *api)
{
    struct core *core = api->parts->core;
    struct core_figures figures = core_figures(core);
    json_t *client = json_object(), *runtime = json_object();

    check(json_object_set_new(client, "node_id", api_text(api->parts->node.identity.id)) == 0);
    check(json_object_set_new(client, "known_servers", json_string("")) == 0);
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

/* There are no servers to join, and none to be told of. */
void api_agent_servers(struct api_request *request)
{
    api_reply(request, json_array());
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
        if (text_starts_with(name, request->prefix))
            check(json_array_append_new(list, format_namespace(name)) == 0);
    }
    json_decref(names);
    api_reply(request, list);
}

void api_namespace_get(struct api_request *request)
{
    json_t *names = namespaces_of(request->api);

    if (json_object_get(names, request->argument) != NULL)
        api_reply(request, format_namespace(request->argument));
    else
        api_refuse(request, 404, "namespace not found");
    json_decref(names);
}

/* --- metrics --- */

enum { GAUGES_MAX = 24 };

struct gauge {
    const char *name;
    double value;
};

static bool count_status(void *ctx, const struct machine_id *id, const struct machine *record)
{
    uint32_t *counts = ctx; /* pending, running, terminal */
    (void)id;

    switch ((enum client_status)alloc_of(record)->client_status) {
    case CLIENT_PENDING:
        counts[0]++;
        break;
    case CLIENT_RUNNING:
        counts[1]++;
        break;
    case CLIENT_COMPLETE:
    case CLIENT_FAILED:
        counts[2]++;
        break;
    }
    return true;
}

/* Resident memory of this process in bytes, 0 if it cannot be read. */
static uint64_t resident_bytes(void)
{
    char *text;
    size_t length;
    uint64_t pages = 0;

    if (file_read("/proc/self/statm", 256, &text, &length, NULL) != 0)
        return 0;
    char *second = strchr(text, ' ');
    if (second != NULL) {
        second[1 + strcspn(second + 1, " \n")] = '\0';
        (void)text_to_u64(second + 1, &pages); /* 0 otherwise */
    }
    free(text);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t read_gauges(struct api *api, const struct api_host_view *view,
                          struct gauge gauges[GAUGES_MAX])
{
    struct core *core = api->parts->core;
    struct core_figures figures = core_figures(core);
    const struct host_facts *facts = &api->parts->node.facts;
    struct journal_figures journal = {0};
    const struct host_stats host = view->stats != NULL ? *view->stats : (struct host_stats){0};
    uint32_t counts[3] = {0};
    size_t count = 0;

    core_each(core, MACHINE_ALLOC, count_status, counts);
    (void)journal_figures(api->parts->journal, &journal, NULL); /* else 0 */
    struct gauge found[] = {
        {"nomad.client.allocations.pending", counts[0]},
        {"nomad.client.allocations.running", counts[1]},
        {"nomad.client.allocations.terminal", counts[2]},
        {"nomad.client.host.memory.total", (double)host.memory_total},
        {"nomad.client.host.memory.available", (double)host.memory_available},
        {"nomad.client.host.memory.used", (double)host.memory_used},
        {"nomad.client.host.cpu.total_percent", host.cpu_total_percent},
        {"nomad.client.host.disk.size", (double)host.disk_size},
        {"nomad.client.host.disk.available", (double)host.disk_available},
        {"nomad.client.uptime", (double)host.uptime_s},
        {"cairn.host.age_seconds", (double)view->age_ms / 1000},
        {"nomad.runtime.resident_bytes", (double)resident_bytes()},
        {"cairn.machines.allocs", (double)core_count(core, MACHINE_ALLOC)},
        {"cairn.machines.tasks", (double)core_count(core, MACHINE_TASK)},
        {"cairn.turns", (double)figures.turns},
        {"cairn.events", (double)figures.events},
        {"cairn.effects", (double)figures.effects},
        {"cairn.commits_failed", (double)figures.commits_failed},
        {"cairn.journal.events", (double)journal.events},
        {"cairn.journal.bytes_used", (double)journal.bytes_used},
        {"cairn.journal.quarantined", (double)journal.quarantined},
        {"cairn.degraded", life_trouble(api->parts->life) != NULL ? 1 : 0},
        {"cairn.cpu_cores", facts->cpu_cores},
    };

    check(COUNT_OF(found) <= GAUGES_MAX);
    for (; count < COUNT_OF(found); count++)
        gauges[count] = found[count];
    return count;
}

static void reply_prometheus(struct api_request *request, const struct gauge *gauges, size_t count)
{
    enum { TEXT_SIZE = 16 << 10 };
    char text[TEXT_SIZE] = "", line[256], name[64];

    for (size_t i = 0; i < count; i++) {
        (void)text_copy(name, sizeof(name), gauges[i].name); /* it fits */
        for (char *at = name; *at != '\0'; at++)
            *at = *at == '.' ? '_' : *at;
        (void)text_format(line, sizeof(line), "# TYPE %s gauge\n%s{node_id=\"%s\"} %.17g\n", name,
                          name, request->api->parts->node.identity.id, gauges[i].value);
        (void)text_append(text, sizeof(text), line); /* 24 lines fit */
    }
    http_respond(request->exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
                 api_safe_headers, API_SAFE_HEADERS, text, strlen(text));
}

static void give_metrics(struct api_request *request, const struct api_host_view *view)
{
    const char *form = http_query(request->exchange, "format");
    struct gauge gauges[GAUGES_MAX];
    size_t count = read_gauges(request->api, view, gauges);
    json_t *list;
    char now[API_TIME_SIZE];

    if (form != NULL && text_equal(form, "prometheus")) {
        reply_prometheus(request, gauges, count);
        return;
    }
    list = json_array();
    for (size_t i = 0; i < count; i++)
        check(json_array_append_new(list, json_pack("{s:s, s:f, s:{s:s}}", "Name", gauges[i].name,
                                                    "Value", gauges[i].value, "Labels", "node_id",
                                                    request->api->parts->node.identity.id)) == 0);
    api_time(now, loop_now_unix_ns());
    api_reply(request, json_pack("{s:s, s:o, s:[], s:[], s:[]}", "Timestamp", now, "Gauges", list,
                                 "Points", "Counters", "Samples"));
}

void api_metrics(struct api_request *request)
{
    api_host_ask(request, give_metrics);
}
