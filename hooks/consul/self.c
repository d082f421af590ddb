/* What an agent of Consul says of itself, as attributes of the node: nomad v2.0.5
 * client/fingerprint/consul.go. */
#include "hooks/consul/part.h"

#include <stdlib.h>
#include <string.h>

/* Reading one object; what is too long or missing is left out. */
struct reading {
    char (*values)[CONSUL_ATTRIBUTE_SIZE];
    struct spec_pair *pairs;
    size_t count;
};

static void add(struct reading *reading, const char *name, const char *text)
{
    char *to = reading->values[reading->count];

    check(reading->count < CONSUL_ATTRIBUTES_MAX);
    if (text == NULL || *text == '\0' || !text_copy(to, CONSUL_ATTRIBUTE_SIZE, text))
        return;
    reading->pairs[reading->count++] = (struct spec_pair){.key = name, .value = to};
}

static void add_text(struct reading *reading, const char *name, const json_t *object,
                     const char *field)
{
    add(reading, name, json_string_value(json_object_get(object, field)));
}

static void add_bool(struct reading *reading, const char *name, const json_t *object,
                     const char *field)
{
    const json_t *value = json_object_get(object, field);

    if (json_is_boolean(value))
        add(reading, name, json_is_true(value) ? "true" : "false");
}

static void add_number(struct reading *reading, const char *name, const json_t *object,
                       const char *field)
{
    const json_t *value = json_object_get(object, field);
    char text[24];

    if (!json_is_integer(value))
        return;
    (void)text_format(text, sizeof(text), "%lld", (long long)json_integer_value(value)); /* fits */
    add(reading, name, text);
}

/* From 1.14 on there is a port of its own for TLS. */
static bool splits_ports(const char *version)
{
    char *end;
    unsigned long major = strtoul(version, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

    return major > 1 || (major == 1 && minor >= 14);
}

/* It is in what is said beside the version: "1.20.0+ent". */
static bool is_enterprise(const char *version)
{
    const char *beside = strchr(version, '+');

    return beside != NULL && strstr(beside, "ent") != NULL;
}

/* It becomes a part of an image's name. */
const char *consul_envoy_of(const json_t *self)
{
    const json_t *proxies = json_object_get(json_object_get(self, "xDS"), "SupportedProxies");
    const char *version = json_string_value(json_array_get(json_object_get(proxies, "envoy"), 0));
    size_t length = version == NULL ? 0 : strspn(version, "0123456789.");

    return length > 0 && length < CONSUL_ENVOY_SIZE && version[length] == '\0' ? version : "";
}

bool consul_read_self(const json_t *self, bool https,
                      char values[CONSUL_ATTRIBUTES_MAX][CONSUL_ATTRIBUTE_SIZE],
                      struct spec_pair pairs[CONSUL_ATTRIBUTES_MAX], size_t *ret_count)
{
    const json_t *config = json_object_get(self, "Config");
    const json_t *debug = json_object_get(self, "DebugConfig");
    const json_t *tags = json_object_get(json_object_get(self, "Member"), "Tags");
    const char *version = json_string_value(json_object_get(config, "Version"));
    struct reading reading = {.values = values, .pairs = pairs};

    if (version == NULL)
        return false;
    add_text(&reading, "consul.version", config, "Version");
    add_bool(&reading, "consul.server", config, "Server");
    add_text(&reading, "consul.revision", config, "Revision");
    add_text(&reading, "consul.datacenter", config, "Datacenter");
    add_text(&reading, "consul.partition", config, "Partition");
    add_text(&reading, "unique.consul.name", config, "NodeName");
    add_text(&reading, "consul.segment", tags, "segment");
    add_bool(&reading, "consul.connect", debug, "ConnectEnabled");
    add_number(&reading, "consul.grpc", debug,
               https && splits_ports(version) ? "GRPCTLSPort" : "GRPCPort");
    add_number(&reading, "consul.dns.port", debug, "DNSPort");
    add(&reading, "consul.sku", is_enterprise(version) ? "ent" : "oss");
    add(&reading, "consul.ft.namespaces", "false"); /* services are in the default one */
    *ret_count = reading.count;
    return true;
}
