/*
 * A service in the mesh of Consul, as its agent is told of it: nomad v2.0.6
 * command/agent/consul/connect.go.
 *
 * The agent makes a second service of the sidecar, with the id of the first one and
 * "-sidecar-proxy" behind it, which goes with the first.
 */
#include "hooks/services/part.h"

#include <string.h>

enum { NESTING_MAX = 32 };

struct connecting {
    const struct alloc_spec *alloc;
    const struct hooks_service *service;
    const struct spec_connect *spec;
    services_expand *expand;
    void *ctx;
    struct err *err;
};

/* --- interpolation --- */

/* FIELD of TO is what TEXT says, if it says anything. */
static int put(const struct connecting *connecting, json_t *to, const char *field, const char *text)
{
    const char *expanded;
    int code = connecting->expand(connecting->ctx, text, &expanded);

    if (code == 0 && *expanded != '\0')
        check(json_object_set_new(to, field, json_string(expanded)) == 0);
    return code;
}

static void put_number(json_t *to, const char *field, int number)
{
    if (number != 0)
        check(json_object_set_new(to, field, json_integer(number)) == 0);
}

/* VALUE with all texts in it interpolated; RET_VALUE is a new reference. */
static int expand_value(const struct connecting *connecting, json_t *value, int depth,
                        json_t **ret_value)
{
    json_t *made, *item, *inner;
    const char *text, *key;
    int code = 0;
    size_t i;

    if (depth == NESTING_MAX)
        return err_set(connecting->err, ERR_LIMIT, "the config of a proxy is nested too deep");
    if (json_is_string(value)) {
        code = connecting->expand(connecting->ctx, json_string_value(value), &text);
        made = code == 0 ? json_string(text) : NULL;
    } else if (json_is_object(value)) {
        made = json_object();
        json_object_foreach(value, key, item)
        {
            if (code == 0 && (code = expand_value(connecting, item, depth + 1, &inner)) == 0)
                check(json_object_set_new(made, key, inner) == 0);
        }
    } else if (json_is_array(value)) {
        made = json_array();
        json_array_foreach(value, i, item)
        {
            if (code == 0 && (code = expand_value(connecting, item, depth + 1, &inner)) == 0)
                check(json_array_append_new(made, inner) == 0);
        }
    } else {
        made = json_incref(value);
    }
    if (code != 0) {
        json_decref(made);
        return code;
    }
    check(made != NULL);
    *ret_value = made;
    return 0;
}

static int expand_config(const struct connecting *connecting, const char *text, json_t **ret_config)
{
    json_t *config = json_loads(text, 0, NULL);

    check(config != NULL); /* decoding has made it */
    int code = expand_value(connecting, config, 0, ret_config);
    json_decref(config);
    return code;
}

/* --- ports --- */

static const struct spec_port *find_port(const struct connecting *connecting, const char *label)
{
    const struct spec_ports *ports = &connecting->alloc->ports;

    for (size_t i = 0; i < ports->count; i++) {
        if (ports->items[i].task[0] == '\0' && text_equal(ports->items[i].label, label))
            return &ports->items[i];
    }
    (void)err_set(connecting->err, ERR_INVALID, "no port of label \"%.80s\" defined",
                  label); /* NULL says it */
    return NULL;
}

/* That of the sidecar; one that the job does not name was added to it. */
static const struct spec_port *sidecar_port(const struct connecting *connecting)
{
    char label[SPEC_SERVICE_TEXT_SIZE];
    const char *given;

    if (connecting->expand(connecting->ctx, connecting->spec->port, &given) != 0)
        return NULL;
    (void)text_format(label, sizeof(label), "connect-proxy-%s",
                      connecting->service->name); /* a label of DNS */
    return find_port(connecting, *given == '\0' ? label : given);
}

/* --- the proxy --- */

/* By these the proxy's counters are told from those of others. */
static void put_stats_tags(const struct connecting *connecting, json_t *config)
{
    const struct spec_pair tags[] = {{"nomad.alloc_id=", connecting->alloc->id},
                                     {"nomad.group=", connecting->alloc->group},
                                     {"nomad.job=", connecting->alloc->job_id},
                                     {"nomad.namespace=", connecting->alloc->namespace}};
    json_t *list = json_object_get(config, "envoy_stats_tags"), *own;
    size_t given = json_array_size(list), i;

    if (given == 0) {
        list = json_array();
        check(json_object_set_new(config, "envoy_stats_tags", list) == 0);
    }
    for (size_t t = 0; t < COUNT_OF(tags); t++) {
        bool has = tags[t].value[0] == '\0';

        json_array_foreach(list, i, own) has |=
            json_is_string(own) && text_starts_with(json_string_value(own), tags[t].key);
        if (!has)
            check(json_array_append_new(list, json_sprintf("%s%s", tags[t].key, tags[t].value)) ==
                  0);
    }
}

static int put_config(const struct connecting *connecting, const struct spec_port *port,
                      json_t *proxy)
{
    json_t *config;
    int code = expand_config(connecting, connecting->spec->config_json, &config);

    if (code != 0)
        return code;
    if (json_object_get(config, "bind_address") == NULL)
        check(json_object_set_new(config, "bind_address", json_string("0.0.0.0")) == 0);
    check(json_object_set_new(config, "bind_port",
                              json_integer(port->to > 0 ? port->to : port->value)) == 0);
    put_stats_tags(connecting, config);
    check(json_object_set_new(proxy, "Config", config) == 0);
    return 0;
}

static int put_upstream(const struct connecting *connecting, const struct spec_upstream *from,
                        json_t *to)
{
    const struct {
        const char *field, *text;
    } texts[] = {
        {"DestinationName", from->name},
        {"DestinationPeer", from->peer},
        {"DestinationType", from->type},
        {"Datacenter", from->datacenter},
        {"LocalBindAddress", from->address},
        {"LocalBindSocketPath", from->socket},
        {"LocalBindSocketMode", from->socket_mode},
    };
    json_t *gateway = json_object(), *config;
    int code = 0;

    check(json_object_set_new(to, "MeshGateway", gateway) == 0);
    for (size_t i = 0; code == 0 && i < COUNT_OF(texts); i++)
        code = put(connecting, to, texts[i].field, texts[i].text);
    if (code == 0)
        code = put(connecting, gateway, "Mode", from->mesh_gateway);
    if (code == 0)
        code = expand_config(connecting, from->config_json, &config);
    if (code != 0)
        return code;
    put_number(to, "LocalBindPort", from->port);
    if (json_object_size(config) > 0)
        check(json_object_set(to, "Config", config) == 0);
    json_decref(config);
    return 0;
}

static int put_exposed(const struct connecting *connecting, const struct spec_exposed *from,
                       json_t *to)
{
    const char *label;
    int code = connecting->expand(connecting->ctx, from->listener, &label);
    const struct spec_port *port = code == 0 ? find_port(connecting, label) : NULL;

    if (port == NULL)
        return connecting->err->code;
    put_number(to, "ListenerPort", port->value);
    put_number(to, "LocalPathPort", from->port);
    code = put(connecting, to, "Path", from->path);
    return code == 0 ? put(connecting, to, "Protocol", from->protocol) : code;
}

static int put_proxy(const struct connecting *connecting, const struct spec_port *port,
                     json_t *sidecar)
{
    const struct spec_connect *spec = connecting->spec;
    json_t *proxy = json_object(), *upstreams = json_array(), *paths = json_array();
    int code = put(connecting, proxy, "LocalServiceAddress", spec->service_address);

    check(json_object_set_new(sidecar, "Proxy", proxy) == 0);
    put_number(proxy, "LocalServicePort", spec->service_port);
    if (code == 0)
        code = put_config(connecting, port, proxy);
    for (size_t i = 0; code == 0 && i < spec->upstreams_count; i++) {
        json_t *one = json_object();

        check(json_array_append_new(upstreams, one) == 0);
        code = put_upstream(connecting, &spec->upstreams[i], one);
    }
    for (size_t i = 0; code == 0 && i < spec->exposed_count; i++) {
        json_t *one = json_object();

        check(json_array_append_new(paths, one) == 0);
        code = put_exposed(connecting, &spec->exposed[i], one);
    }
    check(json_object_set_new(proxy, "Upstreams", upstreams) == 0 &&
          json_object_set_new(proxy, "Expose", json_pack("{s:o}", "Paths", paths)) == 0);
    return code;
}

/* --- the sidecar --- */

/* It is as well as its service, and listens. */
static void put_checks(const struct connecting *connecting, const struct spec_port *port,
                       json_t *sidecar)
{
    const char *id = connecting->service->id;
    json_t *checks = json_pack("[{s:o, s:s}]", "Name",
                               json_sprintf("Connect Sidecar Aliasing %s", id), "AliasService", id);
    bool six = strchr(port->host_ip, ':') != NULL;

    check(checks != NULL);
    if (!connecting->spec->no_tcp_check)
        check(json_array_append_new(checks, json_pack("{s:s, s:o, s:s}", "Name",
                                                      "Connect Sidecar Listening", "TCP",
                                                      json_sprintf(six ? "[%s]:%d" : "%s:%d",
                                                                   port->host_ip, (int)port->value),
                                                      "Interval", "10s")) == 0);
    check(json_object_set_new(sidecar, "Checks", checks) == 0);
}

static int put_about(const struct connecting *connecting, json_t *sidecar)
{
    const struct spec_connect *spec = connecting->spec;
    json_t *tags = json_array(), *meta = json_object();
    const char *text;
    int code = 0;

    for (size_t i = 0; code == 0 && i < spec->tags.count; i++) {
        code = connecting->expand(connecting->ctx, spec->tags.items[i], &text);
        if (code == 0)
            check(json_array_append_new(tags, json_string(text)) == 0);
    }
    for (size_t i = 0; code == 0 && i < spec->meta.count; i++) {
        code = connecting->expand(connecting->ctx, spec->meta.items[i].key, &text);
        if (code == 0)
            code = put(connecting, meta, text, spec->meta.items[i].value);
    }
    if (json_array_size(tags) > 0)
        check(json_object_set(sidecar, "Tags", tags) == 0);
    if (json_object_size(meta) > 0)
        check(json_object_set(sidecar, "Meta", meta) == 0);
    json_decref(tags);
    json_decref(meta);
    return code;
}

int services_register_connect(const struct alloc_spec *alloc, struct hooks_service *service,
                              services_expand *expand, void *ctx, struct err *err)
{
    const struct connecting connecting = {
        .alloc = alloc,
        .service = service,
        .spec = service->spec->connect,
        .expand = expand,
        .ctx = ctx,
        .err = err,
    };
    json_t *connect = json_object(), *sidecar = json_object();

    if (connecting.spec != NULL)
        check(json_object_set(service->registration, "Connect", connect) == 0);
    if (connecting.spec != NULL && connecting.spec->native)
        check(json_object_set_new(connect, "Native", json_true()) == 0);
    else if (connecting.spec != NULL)
        check(json_object_set(connect, "SidecarService", sidecar) == 0);
    json_decref(sidecar);
    json_decref(connect);
    if (connecting.spec == NULL || connecting.spec->native)
        return 0;
    const struct spec_port *port = sidecar_port(&connecting);
    if (port == NULL)
        return err->code;
    put_number(sidecar, "Port", port->value);
    check(json_object_set_new(sidecar, "Address", json_string(port->host_ip)) == 0);
    put_checks(&connecting, port, sidecar);
    int code = put_about(&connecting, sidecar);
    return code == 0 ? put_proxy(&connecting, port, sidecar) : code;
}
