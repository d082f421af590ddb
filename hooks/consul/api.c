/* The node's own API among the services of Consul. */
#include "hooks/consul/part.h"

#include <string.h>

json_t *consul_api_registration(const struct consul_api *api, const char *node_id)
{
    const char *colon = strrchr(api->address, ':');
    bool is_v6 = api->address[0] == '[';
    size_t length = (size_t)(colon - api->address);
    char host[CONSUL_PLACE_SIZE], url[CONSUL_PLACE_SIZE + 64];
    uint64_t port = 0;

    check(colon != NULL && length < sizeof(host) && text_to_u64(colon + 1, &port));
    memcpy(host, api->address, length);
    host[length] = '\0';
    if (is_v6) { /* Consul has it without brackets */
        host[length - 1] = '\0';
        memmove(host, host + 1, length - 1);
    }
    check(text_format(url, sizeof(url), "%s://%s/v1/agent/health?type=client",
                      api->has_tls ? "https" : "http", api->address));
    json_t *made =
        json_pack("{s:s+, s:s, s:[s], s:i, s:s, s:{s:s, s:s}, s:[]}", "ID", CONSUL_API_PREFIX,
                  node_id, "Name", api->service, "Tags", "http", "Port", (int)port, "Address", host,
                  "Meta", "external-source", "nomad", CONSUL_MARK, node_id, "Checks");
    check(made != NULL);
    if (api->asks_certificates)
        return made;
    json_t *asks = json_pack("{s:s+, s:s, s:s, s:s, s:s, s:s}", "CheckID", CONSUL_CHECK_PREFIX,
                             node_id, "Name", api->check_name, "HTTP", url, "Method", "GET",
                             "Interval", "10s", "Timeout", "5s");
    check(asks != NULL);
    if (api->has_tls)
        check(json_object_set_new(asks, "TLSSkipVerify", json_true()) == 0);
    check(json_array_append_new(json_object_get(made, "Checks"), asks) == 0);
    return made;
}
