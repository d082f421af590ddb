/* How services take part in the mesh of Consul, in one alloc's JSON, as decode.c has all of it. */
#include "spec/alloc/decoding.h"

#include <stdlib.h>
#include <string.h>

/* The object FIELD of FROM as a text; missing is an empty one. */
static const char *decode_config(struct decoding *decoding, const json_t *from)
{
    const json_t *config = json_object_get(from, "Config");
    char *text = json_is_object(config) ? json_dumps(config, JSON_COMPACT) : NULL;
    const char *kept = "{}";

    if (config != NULL && (text == NULL || strlen(text) >= SPEC_PROXY_CONFIG_SIZE))
        decoding_damaged(decoding, "Config", "the config of a proxy");
    else if (text != NULL)
        kept = arena_text(&decoding->holder->arena, text);
    free(text);
    return kept;
}

static uint16_t decode_port(struct decoding *decoding, const json_t *from, const char *field)
{
    return (uint16_t)decoding_whole(decoding, from, field, UINT16_MAX);
}

static const char *line(struct decoding *decoding, const json_t *from, const char *field)
{
    return decoding_text(decoding, from, field, SPEC_SERVICE_TEXT_SIZE);
}

static void decode_upstreams(struct decoding *decoding, const json_t *proxy,
                             struct spec_connect *to)
{
    const json_t *list = json_object_get(proxy, "Upstreams"), *from;
    size_t count = json_array_size(list), i;

    if (count > SPEC_UPSTREAMS_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Upstreams", "a list of so many upstreams");
        return;
    }
    to->upstreams = arena_new(&decoding->holder->arena, (count + 1) * sizeof(*to->upstreams));
    to->upstreams_count = count;
    json_array_foreach(list, i, from) to->upstreams[i] = (struct spec_upstream){
        .name = line(decoding, from, "DestinationName"),
        .peer = line(decoding, from, "DestinationPeer"),
        .type = line(decoding, from, "DestinationType"),
        .datacenter = line(decoding, from, "Datacenter"),
        .address = line(decoding, from, "LocalBindAddress"),
        .port = decode_port(decoding, from, "LocalBindPort"),
        .socket = line(decoding, from, "LocalBindSocketPath"),
        .socket_mode = line(decoding, from, "LocalBindSocketMode"),
        .mesh_gateway = line(decoding, json_object_get(from, "MeshGateway"), "Mode"),
        .config_json = decode_config(decoding, from),
    };
}

static void decode_exposed(struct decoding *decoding, const json_t *proxy, struct spec_connect *to)
{
    const json_t *list = json_object_get(json_object_get(proxy, "Expose"), "Paths"), *from;
    size_t count = json_array_size(list), i;

    if (count > SPEC_EXPOSED_MAX || (list != NULL && !json_is_array(list))) {
        decoding_damaged(decoding, "Expose", "a list of so many paths");
        return;
    }
    to->exposed = arena_new(&decoding->holder->arena, (count + 1) * sizeof(*to->exposed));
    to->exposed_count = count;
    json_array_foreach(list, i, from) to->exposed[i] = (struct spec_exposed){
        .path = line(decoding, from, "Path"),
        .protocol = line(decoding, from, "Protocol"),
        .listener = line(decoding, from, "ListenerPort"),
        .port = decode_port(decoding, from, "LocalPathPort"),
    };
}

const struct spec_connect *decode_connect(struct decoding *decoding, const json_t *service)
{
    const json_t *block = json_object_get(service, "Connect");
    const json_t *sidecar = json_object_get(block, "SidecarService");
    const json_t *proxy = json_object_get(sidecar, "Proxy");
    const json_t *meta = json_object_get(sidecar, "Meta");

    if (block == NULL)
        return NULL;
    struct spec_connect *to = arena_new(&decoding->holder->arena, sizeof(*to));
    to->native = decoding_bool(decoding, block, "Native");
    if (to->native == json_is_object(sidecar))
        decoding_damaged(decoding, "Connect", "either native or with a sidecar");
    to->port = line(decoding, sidecar, "Port");
    to->tags = decoding_texts(decoding, sidecar, "Tags");
    to->meta = decoding_pairs(decoding, &meta, 1, "Meta");
    to->no_tcp_check = decoding_bool(decoding, sidecar, "DisableDefaultTCPCheck");
    to->service_address = line(decoding, proxy, "LocalServiceAddress");
    to->service_port = decode_port(decoding, proxy, "LocalServicePort");
    to->config_json = decode_config(decoding, proxy);
    decode_upstreams(decoding, proxy, to);
    decode_exposed(decoding, proxy, to);
    return to;
}

void decode_kind(struct decoding *decoding, const json_t *from, struct task_spec *task)
{
    static const struct {
        const char *prefix;
        enum spec_connect_kind kind;
    } kinds[] = {{"connect-proxy:", CONNECT_PROXY}, {"connect-native:", CONNECT_NATIVE}};
    const char *kind = decoding_text(decoding, from, "Kind", 2 * SPEC_SERVICE_TEXT_SIZE);

    task->connect_service = "";
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (!text_starts_with(kind, kinds[i].prefix))
            continue;
        task->connect = kinds[i].kind;
        task->connect_service = kind + strlen(kinds[i].prefix);
    }
    if (*kind != '\0' && *task->connect_service == '\0')
        decoding_damaged(decoding, "Kind", "a kind of tasks");
}
